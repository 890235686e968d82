"""What is computed after the release, against DuckDB's own results on a table of the same released numbers."""

from __future__ import annotations

import datetime
import math
import random
from dataclasses import replace
from fractions import Fraction
from typing import Any

import duckdb
import pytest

from idios.core.domain import Kind
from idios.declare.dates import since_1970
from idios.expressions import language
from idios.expressions.language import Call, Literal
from idios.plan import postprocessing
from idios.plan.postprocessing import Row, Select, apply_selects
from idios.plan.question import Question
from idios.sql.reader import read
from tests.plan.random_selects import (
    DIVISORS,
    KEYS,
    NUMBER,
    REGIONS,
    STATISTICS,
    Expressions,
    Named,
    Written,
    make_select,
    make_totals,
)
from tests.sql.declared import PEOPLE

EXPRESSIONS, SELECTS = 5_000, 300


def make_rows(rng: random.Random) -> list[dict[str, Any]]:
    """Released rows: numbers that doubles hold, NULLs, zeros, negative ones, text, dates."""

    def some(values: Any) -> Any:
        return None if rng.random() < 0.2 else rng.choice(values)

    quarters = [Fraction(i, 4) for i in range(-36, 37)]
    day, moment = datetime.date(2020, 3, 1), datetime.datetime(2020, 3, 1, 10, 20, 30)
    return [
        {
            "n": Fraction(rng.randint(-3, 9)),
            "total": some(quarters),
            "mean": some([Fraction(0), *quarters]),
            "middle": some([Fraction(i, 2) for i in range(-19, 20, 2)]),  # ties of ROUND
            "high": some(quarters),
            "power": some([Fraction(v) for v in (0, 1, 2, 4)]),
            "mode": some(REGIONS),
            "first": some([day + datetime.timedelta(days=i) for i in (-30, -1, 0, 1, 14, 300)]),
            "last": some([day + datetime.timedelta(days=i) for i in (-1, 0, 5, 14)]),
            "moment": some([moment + datetime.timedelta(hours=i, microseconds=i) for i in (-40, 0, 1, 15)]),
            "region": region,
            "sex": sex,
            "decade": Fraction(decade),
        }
        for region in REGIONS
        for sex in ("f", "m")
        for decade in (0, 10, 20)
    ]


MEANINGS = {
    (measure.statistic.normalise(), measure.column): name
    for name, (spelt, _) in STATISTICS.items()
    for measure in read(f"SELECT {spelt} FROM people", {"people": PEOPLE}).measures
}


@pytest.fixture(scope="module")
def released() -> tuple[list[dict[str, Any]], duckdb.DuckDBPyConnection]:
    """Released rows, and a table of DuckDB that holds them."""
    rows = make_rows(random.Random(16))
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("SET ieee_floating_point_ops = false")
    types = {"text": "VARCHAR", "number": "DOUBLE", "date": "DATE", "timestamp": "TIMESTAMP"}
    columns = {name: types[kind] for name, (_, kind) in (STATISTICS | KEYS).items()}
    declared = ", ".join(f"{name} {kind}" for name, kind in columns.items())
    connection.execute(f"CREATE TABLE released ({declared}, place INTEGER)")
    for place, row in enumerate(rows):
        values = [float(row[name]) if isinstance(row[name], Fraction) else row[name] for name in columns]
        connection.execute(f"INSERT INTO released VALUES ({', '.join('?' * (len(values) + 1))})", [*values, place])
    return rows, connection


def show(question: Question, rows: list[dict[str, Any]]) -> list[Row]:
    """What a question shows of released rows, noise apart."""
    keys = {"region": "region", "sex": "sex", "age": "decade"}
    names = [keys[key.column] for key in question.keys]
    names += [MEANINGS[measure.statistic.normalise(), measure.column] for measure in question.measures]
    return apply_selects(question.shown, [tuple(to_value(row[name]) for name in names) for row in rows])


def to_value(value: Any) -> Any:
    if isinstance(value, datetime.datetime):
        return since_1970(value, Kind.TIMESTAMP)
    return since_1970(value, Kind.DATE) if isinstance(value, datetime.date) else value


def same(ours: Any, theirs: Any, *, exact: bool) -> bool:
    theirs = to_value(theirs)
    if ours is None or theirs is None or isinstance(ours, bool | str):
        return type(ours) is type(theirs) and ours == theirs
    if isinstance(theirs, bool | str):
        return False
    return ours == Fraction(theirs) if exact else math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-9)


def find_difference(select: Written, rows: list[dict[str, Any]], connection: duckdb.DuckDBPyConnection) -> str | None:
    """What a question shows otherwise than DuckDB does; None if nothing."""
    sql = select.ask()
    shown = [row.values for row in show(read(sql, {"people": PEOPLE}), rows)]
    expected = connection.execute(select.ask_duckdb()).fetchall()
    if len(shown) != len(expected):
        return f"{sql}: {len(shown)} rows, and {len(expected)} by DuckDB"
    for place, (ours, theirs) in enumerate(zip(shown, expected, strict=True)):
        for (item, named), own, other in zip(select.items, ours, theirs[:-1], strict=True):
            if not same(own, other, exact=named.exact):
                return f"{sql}: row {place}: {item} is {own}, and {other} by DuckDB: {select.ask_duckdb()}"
    return None


def list_expressions(seed: int, count: int) -> list[Written]:
    """SELECTs of many expressions each."""
    rng = random.Random(seed)
    names = tuple(Named(f"{{{name}}}", kind) for name, (_, kind) in (STATISTICS | KEYS).items())
    made = Expressions(rng, names, DIVISORS)
    listed = []
    for i in range(count):
        exact = rng.random() < 0.85
        kind = rng.choice((NUMBER, NUMBER, "boolean", "text", "date")) if exact else NUMBER
        listed.append((made.make(kind, 3) if exact else made.inexact(), Named(f"a{i}", kind, exact)))
    keys = tuple((f"{{{name}}}", Named(f"k{name}", kind)) for name, (_, kind) in KEYS.items())
    grouped = tuple(f"{{{name}}}" for name in KEYS)
    counted = ("{n}", Named("counted", NUMBER))
    return [Written((*keys, counted, *listed[i : i + 25]), grouped) for i in range(0, count, 25)]


def list_selects(seed: int, count: int) -> list[Written]:
    rng = random.Random(seed)
    return [make_select(rng, rng.choice((0, 0, 1, 1, 2))) for _ in range(count)]


@pytest.mark.slow
def test_expressions_are_what_duckdb_makes_of_the_same_numbers(released):
    differences = [find_difference(select, *released) for select in list_expressions(1, EXPRESSIONS)]
    assert [found for found in differences if found] == []


@pytest.mark.slow
def test_totals_are_what_duckdb_adds_up(released):
    rng = random.Random(4)
    differences = [find_difference(make_totals(rng, rng.choice((0, 0, 1, 2))), *released) for _ in range(SELECTS)]
    assert [found for found in differences if found] == []


@pytest.mark.slow
def test_selects_are_what_duckdb_makes_of_the_same_numbers(released):
    differences = [find_difference(select, *released) for select in list_selects(2, SELECTS)]
    assert [found for found in differences if found] == []


def plant_half_even(patch: pytest.MonkeyPatch) -> None:
    even = language.Function(lambda value, digits: Fraction(round(value / 10**-digits)) * 10**-digits)
    patch.setitem(language.FUNCTIONS, "round", even)


def plant_integer_division(patch: pytest.MonkeyPatch) -> None:
    whole = language.Function(lambda a, b: Fraction(a // b) if b else None)
    patch.setitem(language.FUNCTIONS, "/", whole)


def plant_nulls_first(patch: pytest.MonkeyPatch) -> None:
    sort = postprocessing._sort
    patch.setattr(
        postprocessing, "_sort", lambda order, rows: sort([replace(part, nulls_first=True) for part in order], rows)
    )


def plant_reversed_ties(patch: pytest.MonkeyPatch) -> None:
    sort = postprocessing._sort
    patch.setattr(
        postprocessing, "_sort", lambda order, rows: sort(order, rows[::-1] if order[-1].descending else list(rows))
    )


def plant_early_limit(patch: pytest.MonkeyPatch) -> None:
    apply = postprocessing._apply

    def limit_first(select: Select, rows: list[Row]) -> list[Row]:
        end = None if select.limit is None else select.offset + select.limit
        return apply(replace(select, limit=None, offset=0), rows[select.offset : end])

    patch.setattr(postprocessing, "_apply", limit_first)


def plant_kept_unknown(patch: pytest.MonkeyPatch) -> None:
    apply = postprocessing._apply

    def keep(select: Select, rows: list[Row]) -> list[Row]:
        having = select.having and Call("coalesce", (select.having, Literal(True)))
        return apply(replace(select, having=having), rows)

    patch.setattr(postprocessing, "_apply", keep)


def plant_two_values(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(language.FUNCTIONS, "or", language.Function(lambda *values: True in values, strict=False))


def plant_counted_nulls(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        postprocessing,
        "_fold",
        lambda fold, values, own=postprocessing._fold: (
            Fraction(len(values)) if fold.function == "COUNT" else own(fold, values)
        ),
    )


def plant_kept_totals(patch: pytest.MonkeyPatch) -> None:
    """A total of what has no answer in a cell is that of the other cells."""
    patch.setattr(
        postprocessing,
        "_fold",
        lambda fold, values, own=postprocessing._fold: own(
            replace(fold, function="SUM") if fold.function == "TOTAL" else fold, values
        ),
    )


def plant_one_partition(patch: pytest.MonkeyPatch) -> None:
    look = postprocessing._look_beside
    patch.setattr(
        postprocessing,
        "_look_beside",
        lambda windows, rows: look([replace(window, partition=()) for window in windows], rows),
    )


PLANTED = [
    plant_half_even,
    plant_integer_division,
    plant_nulls_first,
    plant_reversed_ties,
    plant_early_limit,
    plant_kept_unknown,
    plant_two_values,
    plant_counted_nulls,
    plant_kept_totals,
    plant_one_partition,
]


@pytest.mark.parametrize("plant", PLANTED)
def test_a_planted_error_is_found(released, plant, monkeypatch):
    plant(monkeypatch)
    rng = random.Random(3)
    totals = (make_totals(rng, 0) for _ in range(30))
    assert any(find_difference(select, *released) for select in (*list_selects(3, 150), *totals))

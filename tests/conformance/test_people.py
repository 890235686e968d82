"""People with several rows: every function that reduces them, on every engine, against Python."""

from __future__ import annotations

import datetime
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

from idios.core.calibration import Protection
from idios.core.domain import LIMIT, Categories, Domain, Kind
from idios.core.neighbours import Neighbours
from idios.data.engines.sql_backend import SqlBackend
from idios.data.sql import reduction_sql
from idios.data.sql.reduction_sql import reduce_rows
from idios.data.sql.selection import SelectStatement
from idios.declare.schema import Column, Dataset
from idios.errors import SourceError
from idios.plan.planner import make_plan
from idios.plan.question import Plan
from idios.plan.reductions import ReducedValue
from idios.sql.reader import read
from tests.conformance.engines import Engine
from tests.conformance.plans import category, number, whole
from tests.conformance.reference import find_moves, point, select_values
from tests.summaries import summarise

COLUMNS = (
    whole("big"),
    number("price", "0.01"),
    whole("flag", (0, 1)),
    category("region", "north", "south", "east"),
    Column("day", Kind.DATE, Domain()),
)
FUNCTIONS = [
    *(f"{f}({c})" for f in ("SUM", "AVG", "MEDIAN") for c in ("big", "price", "flag")),
    *(f"{f}({c.name})" for f in ("MIN", "MAX", "LAST", "COUNT") for c in COLUMNS),
    "COUNT(*)",
    "LEAST(SUM(big), 10)",
    "GREATEST(LEAST(AVG(price), 5.001), -1)",
    "GREATEST(MEDIAN(big), -0.5)",
    "LEAST(MAX(day), DATE '2020-01-02')",
    "LEAST(COUNT(*), 4)",
]
REDUCED = ", ".join(f'{call} AS "{call}"' for call in FUNCTIONS)
UNIT = "GROUP BY code, born"


def make_dataset(notion: str) -> Dataset:
    return Dataset(
        "t",
        {column.name: column for column in COLUMNS},
        Neighbours(notion),
        Protection.declare("differential"),
        unit=("born", "code"),
        unit_word="person",
        order="day",
    )


def make_rows(n: int, seed: int) -> list[dict[str, Any]]:
    """Rows of some people, with ties, NULLs, and values whose sum exceeds 64 bits; some belong to nobody."""
    draw = random.Random(seed)
    days = [datetime.date(2020, 1, 1) + datetime.timedelta(days=i) for i in range(4)]
    codes = ["a", "A", "a ", "ß", "", None]
    return [
        {
            "code": draw.choice(codes),
            "born": draw.choice([None, *days]),
            "big": draw.choice([None, 2**63 - 1, -(2**63) + 1, 2**61, -7, 7, draw.randrange(-50, 50)]),
            "price": draw.choice([None, -0.005, 0.005, draw.gauss(0, 9), 1e15]),
            "flag": draw.choice([None, True, False]),
            "region": draw.choice(["north", "south", "east", "west", None]),
            "day": draw.choice([None, *days]),
        }
        for _ in range(n)
    ]


def make_table(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    types = {
        "code": pa.string(), "born": pa.date32(), "big": pa.int64(), "price": pa.float64(), "flag": pa.bool_(),
        "region": pa.string(), "day": pa.date32(),
    }  # fmt: skip
    return pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in types.items()})


Points = Mapping[str, int | None]


def reduce_points(rows: Sequence[Points], function: str, column: str) -> int | None:
    """A person's point, on the grid of the reduced column."""
    if column == "*":
        return len(rows)
    ordered = sorted((row for row in rows if row[column] is not None), key=lambda row: _order(row, column))
    values = sorted(row[column] for row in ordered)  # type: ignore[type-var]
    if function == "COUNT":
        return len(values)
    if not values:
        return None
    total, size = sum(values), len(values)  # type: ignore[arg-type]
    found = {
        "SUM": total,
        "AVG": (2000 * total + size) // (2 * size),
        "MEDIAN": values[(size - 1) // 2] + values[size // 2],  # type: ignore[operator]
        "MIN": values[0],
        "MAX": values[-1],
        "LAST": ordered[-1][column],
    }[function]
    assert found is not None
    return max(-LIMIT, min(LIMIT, found))


def cap_point(value: ReducedValue, found: int | None) -> int | None:
    """Python's min and max, which know no NULL."""
    if found is None:
        return None
    found = found if value.upper is None else min(found, value.upper.point)
    return found if value.lower is None else max(found, value.lower.point)


def _order(row: Points, column: str) -> tuple[bool, int, int]:
    return row["day"] is not None, row["day"] or 0, row[column] or 0


Rows = Sequence[Mapping[str, Any]]


def list_people(rows: Rows) -> list[list[Points]]:
    people: dict[Any, list[Points]] = {}
    for row in rows:
        if row["code"] is not None and row["born"] is not None:
            points = {column.name: point(column, row[column.name]) for column in COLUMNS}
            people.setdefault((row["code"], row["born"]), []).append(points)
    return list(people.values())


def expect_points(plan: Plan, rows: Rows, holds: Callable[[Points], bool]) -> dict[str, list[int | None]]:
    """The points of everyone who has a row that fulfils the condition."""
    kept = [chosen for person in list_people(rows) if (chosen := [row for row in person if holds(row)])]
    assert plan.dataset.reduction is not None
    return {
        value.name: [cap_point(value, reduce_points(person, value.function, value.column or "*")) for person in kept]
        for value in plan.dataset.reduction.values
    }


def expect(plan: Plan, rows: Rows, holds: Callable[[Points], bool]) -> list[list[Any]]:
    """What a backend must return."""
    points, size = expect_points(plan, rows, holds), len(list_people(rows))
    table = {name: [_write(plan, name, found) for found in column] for name, column in points.items()}
    return [
        [
            summarise(found, a.reading, a.grid, find_moves(a, len(found), size), a.distance)
            for a, found in zip(plan.aggregates, cell, strict=True)
        ]
        for cell, _ in select_values(plan, table)
    ]


def read_points(backend: SqlBackend, plan: Plan) -> list[tuple[int | None, ...]]:
    """The reduced table itself."""
    names = list(plan.dataset.columns)
    read = reduce_rows(plan.dataset, names, backend.held_rows, backend.dialect)
    listed = [f"r{i}" for i in range(len(names))]
    text = f"SELECT {', '.join(map(backend.dialect.identifier, listed))} FROM {read.source}"
    with backend._connected() as connection:
        return [tuple(row.values()) for row in connection.fetch(SelectStatement.of_integers(text, *listed)).to_pylist()]


def _write(plan: Plan, name: str, found: int | None) -> Any:
    domain = plan.dataset.columns[name].domain
    if found is None:
        return None
    return domain.values[found] if isinstance(domain, Categories) else Fraction(found) * domain.step


QUESTIONS: list[tuple[str, Callable[[Points], bool]]] = [
    (
        "SELECT {statistics}, COUNT(*) FROM (SELECT {reduced} FROM t {unit})",
        lambda row: True,
    ),
    (
        "SELECT {statistics} FROM (SELECT {reduced} FROM t WHERE price > 0 OR region = 'south' {unit}) "
        'WHERE "SUM(big)" > 3 OR "MAX(flag)"',
        lambda row: (row["price"] is not None and row["price"] > 0) or row["region"] == 1,
    ),
    (
        'SELECT "LAST(region)", {statistics}, COUNT(*) FROM (SELECT {reduced} FROM t WHERE region IS NOT NULL {unit}) '
        'GROUP BY "LAST(region)"',
        lambda row: row["region"] is not None,
    ),
    (
        "SELECT COUNT(*), COUNT(big), SUM(big), AVG(price) FROM t WHERE flag IS NULL OR NOT flag",
        lambda row: row["flag"] in (None, 0),
    ),
]
STATISTICS = (
    'MEDIAN("AVG(price)"), SUM("SUM(big)"), MEDIAN("LAST(big)"), SUM("GREATEST(LEAST(AVG(price), 5.001), -1)"), '
    'AVG(LEAST("SUM(flag)", 2))'
)


@pytest.mark.parametrize("notion", ["replace", "add-remove"])
def test_every_function_on_every_engine(engine: Engine, notion: str) -> None:
    data, rows = make_dataset(notion), make_rows(120, seed=3)
    table = make_table(rows)
    with engine.open(table, data) as backend:
        assert isinstance(backend, SqlBackend)
        people = {(row["code"], row["born"]) for row in rows if None not in (row["code"], row["born"])}
        assert backend.count_units() == len(people)
        assert backend.rows() == len(rows)
        for sql, holds in QUESTIONS[1:3] if notion == "replace" else QUESTIONS[::3]:
            text = sql.format(statistics=STATISTICS, reduced=REDUCED, unit=UNIT)
            plan = make_plan(read(text, {"t": data}), data, 500)
            points = expect_points(plan, rows, holds)
            assert Counter(read_points(backend, plan)) == Counter(zip(*points.values(), strict=True)), text
            assert backend.summarise(plan) == expect(plan, rows, holds), text


def test_a_cap_that_is_left_out_is_caught(quick_engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever reads people afterwards clamps to the bounds as well, so the reduced table itself is compared."""
    data, rows = make_dataset("replace"), make_rows(60, seed=3)
    sql = f"SELECT AVG(s) FROM (SELECT LEAST(SUM(big), 10) AS s FROM t {UNIT})"
    with quick_engine.open(make_table(rows), data) as backend:
        assert isinstance(backend, SqlBackend)
        plan = make_plan(read(sql, {"t": data}), data, 5)
        expected = Counter(zip(*expect_points(plan, rows, lambda row: True).values(), strict=True))
        assert Counter(read_points(backend, plan)) == expected
        clamp = reduction_sql._clamp
        monkeypatch.setattr(reduction_sql, "_clamp", lambda point, _, dialect: clamp(point, Domain(), dialect))
        assert Counter(read_points(backend, plan)) != expected


def test_nobody_at_all(engine: Engine) -> None:
    data = make_dataset("add-remove")
    with engine.open(make_table([]), data) as backend:
        assert backend.count_units() == 0
        plan = make_plan(read(f"SELECT MEDIAN(s) FROM (SELECT SUM(big) AS s FROM t {UNIT})", {"t": data}), data, 5)
        assert backend.summarise(plan) == expect(plan, [], lambda row: True)


def test_a_unit_that_the_source_lacks(quick_engine: Engine) -> None:
    table = make_table(make_rows(3, seed=1)).drop_columns(["born"])
    with pytest.raises(SourceError, match="no column 'born'"):
        quick_engine.open(table, make_dataset("replace"))

"""People through SQL: what the party calibrates to is what trying every neighbouring table of people gives."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import Any

import pytest

from idios.core.domain import Domain
from idios.data.sql import reduction_sql
from idios.party import TrustedParty
from idios.plan import planner, reductions
from tests import oracle
from tests.people import REDUCED, Person, Row, Table, forget_questions, list_neighbours, make_data, reduce_table

ROWS: list[Row] = [(x, y, g, t) for x, y, (g, t) in product((None, 0, 1, 3), (0, 1), (("a", 1), ("b", None)))]
PEOPLE: list[Person] = [
    *((row,) for row in ROWS),
    *combinations_with_replacement(ROWS[::3], 2),
    *combinations_with_replacement(ROWS[1::5], 3),
]
"""Everybody who can come instead: with one row of any sort, and some with two and three."""
COLUMNS = {
    "x": {"type": "integer", "bounds": [0, 3]},
    "y": {"type": "integer", "bounds": [0, 1], "nullable": False},
    "g": {"type": "category", "values": ["a", "b"]},
    "t": {"type": "integer"},
}
INNER: list[tuple[str, Callable[[Row], bool]]] = [
    ("", lambda row: True),
    (" WHERE y = 1", lambda row: row[1] == 1),
    (" WHERE x >= 1 OR y = 0", lambda row: (row[0] is not None and row[0] >= 1) or row[1] == 0),
    (" WHERE x > 0", lambda row: row[0] is not None and row[0] > 0),
]
OUTER: list[tuple[str, Callable[[dict[str, Any]], bool]]] = [
    ("", lambda person: True),
    (" WHERE c >= 1", lambda person: person["MAX(x)"] is not None and person["MAX(x)"] >= 1),
    (" WHERE n > 1 OR z", lambda person: person["COUNT(*)"] > 1 or person["BOOL_OR(y)"] == 1),
]
LABELS = dict(zip("abcdefnsz", ["AVG(x)", "MIN(x)", "MAX(x)", "MEDIAN(x)", "LAST(x)", "COUNT(x)", "COUNT(*)", "SUM(x)",
                                "BOOL_OR(y)"], strict=True)) | {"h": "LAST(g)", "w": "ALL(y)"}  # fmt: skip
LABELS["u"] = "LEAST(SUM(x), 2)"
AROUND = {"GREATEST(LEAST(s, 4), 1)": "GREATEST(LEAST(SUM(x), 4), 1)"}
"""Values that are capped by the SELECT around, and what they are of the rows."""
HALF = Fraction(1, 2)
STATISTICS: list[tuple[str, str, Callable[[Sequence[Any]], Any]]] = [
    ("COUNT(a)", "a", len),
    ("COUNT(w)", "w", len),
    ("MEDIAN(a)", "a", lambda v: oracle.quantile(v, HALF)),
    ("MAX(a)", "a", lambda v: oracle.kth_largest(v, 1)),
    ("AVG(b)", "b", oracle.mean),
    ("MEDIAN(c)", "c", lambda v: oracle.quantile(v, HALF)),
    ("TRIMMED_MEAN(d, 0.3)", "d", lambda v: oracle.trimmed_mean(v, Fraction(3, 10))),
    ("SUM(e)", "e", sum),
    ("MEDIAN(f)", "f", lambda v: oracle.quantile(v, HALF)),
    ("MEDIAN(n)", "n", lambda v: oracle.quantile(v, HALF)),
    ("MEDIAN(s)", "s", lambda v: oracle.quantile(v, HALF)),
    ("SUM(w)", "w", sum),
    ("SUM(u)", "u", sum),
    ("MAX(u)", "u", lambda v: oracle.kth_largest(v, 1)),
    ("AVG(GREATEST(LEAST(s, 4), 1))", "GREATEST(LEAST(s, 4), 1)", oracle.mean),
]
UNBOUNDED = "fns"
"""Values that more rows make ever greater: no table that is tried has the greatest."""


def list_tables(seed: int, count: int) -> Iterator[Table]:
    draw = random.Random(seed)
    for _ in range(count):
        yield tuple(draw.choice(PEOPLE) for _ in range(draw.randint(1, 4)))


def open_party(table: Table, notion: str) -> TrustedParty:
    return TrustedParty.open(
        make_data(table),
        name="t",
        unit=["name", "number"],
        order="t",
        columns=COLUMNS,
        neighbours=notion,
        budget=10**6,
        min_epsilon="0.001",
        parameters={"trim": False, "quantile": False, "k": False},
        protection="individual",
    )


def compare_table(
    table: Table, notion: str, *, grouped: bool, inner: Any = INNER, outer: Any = OUTER, step: int = 1
) -> int:
    """Compare the value and the envelope of every statistic with what neighbours give; how many were compared."""
    reduced = ", ".join(f"{call} AS {label}" for label, call in LABELS.items())
    select = ", ".join(f"{call} AS s{i}" for i, (call, _, _) in enumerate(STATISTICS))
    select, group = (f"h, {select}", " GROUP BY h") if grouped else (select, "")
    others = list(list_neighbours(table, PEOPLE, notion))
    compared = 0
    with open_party(table, notion) as party:
        assert party.datasets["t"].dataset.size == (len(table) if notion == "replace" else None)
        for (where, holds), (around, passes) in list(product(inner, outer))[::step]:
            people = f"(SELECT name, number, {reduced} FROM t{where} GROUP BY name, number)"
            inspection = party.inspect(f"SELECT {select} FROM {people}{around}{group}", 12)
            selected = [[p for p in reduce_table(each, holds) if passes(p)] for each in (table, *others)]
            for cell in inspection.cells:
                _, label, textbook = STATISTICS[int(cell.statistic[1:])]
                found = [_evaluate(each, (LABELS | AROUND)[label], textbook, cell.group.get("h")) for each in selected]
                # values of one person may depend on each other, of which a condition on one of them makes no use
                _compare(cell, found, exact=label not in UNBOUNDED and not around)
                compared += 1
    return compared


def _evaluate(people: Sequence[dict[str, Any]], name: str, textbook: Callable[..., Any], group: str | None) -> Any:
    chosen = [p[name] for p in people if p[name] is not None and (group is None or p["LAST(g)"] == group)]
    value, grid = textbook(sorted(chosen)), Fraction(1, 10**9)
    return None if value is None else math.floor(Fraction(value) / grid + HALF) * grid


def _compare(cell: Any, found: list[Any], *, exact: bool) -> None:
    assert cell.value == found[0] or abs(cell.value - found[0]) < Fraction(1, 10**6), (cell, found[0])
    defined = [value for value in found if value is not None]
    low, high = min(defined, default=math.inf), max(defined, default=-math.inf)
    rounding = Fraction(1, 10**6)
    assert cell.lows[1] - rounding <= low <= high <= cell.highs[1] + rounding or not defined, (cell, low, high)
    if len(defined) == len(found) and exact:
        assert max(abs(cell.lows[1] - low), abs(cell.highs[1] - high)) < rounding, (cell, low, high)


@pytest.mark.slow
@pytest.mark.parametrize("notion", ["replace", "add-remove"])
def test_envelopes_of_people_are_what_their_neighbours_give(notion: str) -> None:
    for number, table in enumerate(list_tables(7, 5)):
        assert compare_table(table, notion, grouped=number % 4 == 3, step=1 + 2 * (number > 0)) > 40
    assert set(REDUCED) == {*LABELS.values(), *AROUND.values()}


TABLE: Table = (((1, 1, "a", 1), (3, 0, "b", 2)), ((0, 0, "a", 1),), ((3, 1, "b", 1), (3, 1, "b", 1), (0, 0, "a", 2)))
"""Three people, of whom one has no row with y = 1, and two have others beside it."""


NULLS: Table = (((None, 0, "a", 1),), ((1, 0, "a", 1),))
"""Someone without a known x beside someone who has one."""


def compare_quickly(notion: str = "replace") -> int:
    return compare_table(TABLE, notion, grouped=False, inner=INNER[:2], outer=OUTER[:1])


@pytest.mark.parametrize("notion", ["replace", "add-remove"])
def test_three_people(notion: str) -> None:
    assert compare_quickly(notion) == 2 * len(STATISTICS)


# ---------------------------------------------------------------------------------------------- planted errors


def test_rows_of_nobody_that_count_as_a_person_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reduction_sql.Rows, "owned", "TRUE")
    with pytest.raises(AssertionError):
        compare_quickly()


def test_a_filter_after_the_reduction_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that WHERE leaves out count, so that it would have to select people, and selects all."""
    monkeypatch.setattr(reduction_sql, "write_condition", lambda *_: "TRUE")
    with pytest.raises(AssertionError):
        compare_quickly()


def test_a_cap_that_turns_null_into_its_bound_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """As LEAST and GREATEST of most engines, which ignore NULL."""
    clamp = reduction_sql._clamp

    def ignore_null(point: str, bounds: Domain, dialect: Any) -> str:
        written = clamp(point, bounds, dialect)
        return written if bounds.upper is None else f"COALESCE({written}, {bounds.upper})"

    monkeypatch.setattr(reduction_sql, "_clamp", ignore_null)
    with pytest.raises(AssertionError):
        compare_table(NULLS, "add-remove", grouped=False, inner=INNER[:1], outer=OUTER[:1])


def test_bounds_that_are_narrower_than_the_cap_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planner that knows of a lower cap than the engine applies."""
    make = reductions._make_column

    def make_narrower(value: Any, columns: Any) -> Any:
        made = make(value, columns)
        return replace(made, domain=replace(made.grid, upper=made.grid.upper - 1)) if value.upper else made

    monkeypatch.setattr(reductions, "_make_column", make_narrower)
    with pytest.raises(AssertionError):
        compare_quickly()


def test_a_public_size_in_spite_of_a_filter_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    keep_everyone(monkeypatch)
    with pytest.raises(AssertionError):
        compare_quickly()


def keep_everyone(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if nobody could be left out by a filter of rows."""
    reduce = planner.reduce_to_people

    def reduce_all(dataset: Any, reduction: Any, work: Any) -> Any:
        made = reduce(dataset, reduction, work)
        return replace(made, size=dataset.size, reduction=replace(made.reduction, keeps_everyone=True))

    monkeypatch.setattr(planner, "reduce_to_people", reduce_all)
    forget_questions(monkeypatch)

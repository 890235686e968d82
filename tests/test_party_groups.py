"""Groups with any multiples of ε, through SQL and back: what i records lose in a whole answer, by trying all of them.

A table is a list of records (x, g). The party says which noise it would add to each number; the loss between two tables
is then Σ |difference|/scale over all numbers of the answer, an exact fraction, attained where every answer is the true
value. Nothing here knows how noise is calibrated, or that groups are cells.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import Any

import pyarrow as pa
import pytest

from idios.answer import release
from idios.core import calibration, joint
from idios.core.multiples import declare_multiples
from idios.party import TrustedParty
from idios.plan import budget
from tests import oracle

Record = tuple[int, str]
Table = tuple[Record, ...]
VALUES, CELLS = (0, 1, 3), ("a", "b", "c")
RECORDS: list[Record] = list(product(VALUES, CELLS))
COLUMNS = {
    "x": {"type": "integer", "bounds": [0, 3], "nullable": False},
    "g": {"type": "category", "values": list(CELLS), "nullable": False},
}
EPSILON = Fraction(2)
FLAT = {"size": 3, "growth": "flat"}
GROUPS: list[Any] = [3, FLAT, [1, "1.5", "1.5"], [1, 1, 4], ["0.5", 1, 1]]

Reader = Callable[[Sequence[int]], Any]
TEXTBOOK: dict[str, Reader] = {
    "COUNT(*)": len,
    "SUM(x)": sum,
    "MEDIAN(x)": lambda values: oracle.quantile(values, Fraction(1, 2)),
    "COUNT(DISTINCT x)": lambda values: len(set(values)),
}
QUESTIONS: list[tuple[str, Callable[[Record], bool]]] = [
    ("SELECT COUNT(*) FROM t WHERE x >= 1", lambda record: record[0] >= 1),
    ("SELECT MEDIAN(x) FROM t", lambda record: True),
    ("SELECT COUNT(*), SUM(x), MEDIAN(x) FROM t WHERE x <= 1", lambda record: record[0] <= 1),
    ("SELECT g, COUNT(*) FROM t GROUP BY g", lambda record: True),
    ("SELECT g, MEDIAN(x) FROM t GROUP BY g", lambda record: True),
    ("SELECT g, SUM(x), COUNT(DISTINCT x) FROM t WHERE x >= 1 GROUP BY g", lambda record: record[0] >= 1),
]


def distance(one: Table, other: Table, notion: str) -> int:
    """How many records have to change to make one table of the other."""
    here, there = Counter(one), Counter(other)
    if notion == "replace":
        return len(one) - (here & there).total()
    return (here - there).total() + (there - here).total()


def tables_near(table: Table, notion: str, reach: int) -> Iterator[tuple[Table, int]]:
    sizes = [len(table)] if notion == "replace" else range(max(0, len(table) - reach), len(table) + reach + 1)
    for size in sizes:
        for other in combinations_with_replacement(RECORDS, size):
            if 0 < (apart := distance(table, other, notion)) <= reach:
                yield other, apart


def starts() -> Iterator[Table]:
    rng = random.Random(12)
    yield ((1, "a"), (1, "b"), (1, "c"))
    yield ((1, "a"), (1, "a"), (3, "a"))  # all can leave for one other cell
    for size in (2, 3):
        yield tuple(sorted(rng.choice(RECORDS) for _ in range(size)))


def open_party(table: Table, group: Any, notion: str, floor: object) -> TrustedParty:
    data = pa.table(
        {"x": pa.array([x for x, _ in table], pa.int64()), "g": pa.array([g for _, g in table], pa.string())}
    )
    return TrustedParty.open(
        data,
        name="t",
        columns=COLUMNS,
        neighbours=notion,
        protection="group",
        group=group,
        floor=floor,
        budget=10**6,
        min_epsilon="0.001",
    )


def losses(table: Table, group: Any, notion: str, floor: object = 1) -> Iterator[tuple[str, list[Fraction]]]:
    """For each question, the greatest loss of i records, i = 1, …, g."""
    multiples = declare_multiples(group)
    near = list(tables_near(table, notion, len(multiples)))
    with open_party(table, group, notion, floor) as party:
        for sql, holds in QUESTIONS:
            cells = party.inspect(sql, EPSILON).cells
            worst = [Fraction(0)] * len(multiples)
            for other, apart in near:
                loss = sum((_loss(cell, table, other, holds) for cell in cells), Fraction(0))
                worst[apart - 1] = max(worst[apart - 1], loss)
            yield sql, worst


def _loss(cell: Any, table: Table, other: Table, holds: Callable[[Record], bool]) -> Fraction:
    scale = cell.noise["scale"]
    if scale is None:  # NULL, whatever is drawn
        return Fraction(0)
    here, there = (_value(cell, rows, holds) for rows in (table, other))
    assert cell.value == here
    # an undefined value stands for all that it could be
    possible = [there] if there is not None else [x for x in range(4) if holds((x, "a"))]
    furthest = max(abs(here - value) for value in possible)
    return Fraction(furthest) / scale if furthest else Fraction(0)


def _value(cell: Any, rows: Table, holds: Callable[[Record], bool]) -> Any:
    name = cell.group.get("g")
    return TEXTBOOK[cell.statistic](sorted(x for x, g in rows if holds((x, g)) and name in (None, g)))


@pytest.mark.slow
@pytest.mark.parametrize("notion", ["replace", "add-remove"])
@pytest.mark.parametrize("group", GROUPS, ids=str)
def test_no_group_loses_more_than_its_epsilon(group: Any, notion: str) -> None:
    promised = [multiple * EPSILON for multiple in declare_multiples(group)]
    attained = {sql: Fraction(0) for sql, _ in QUESTIONS}
    for table in starts():
        for sql, worst in losses(table, group, notion):
            assert all(loss <= epsilon for loss, epsilon in zip(worst, promised, strict=True)), (sql, table, worst)
            ratios = (loss / epsilon for loss, epsilon in zip(worst, promised, strict=True))
            attained[sql] = max(attained[sql], *ratios)
    # nothing was given away
    for sql in ("SELECT COUNT(*) FROM t WHERE x >= 1", "SELECT g, COUNT(*) FROM t GROUP BY g"):
        assert attained[sql] == 1


def test_to_the_letter_of_the_paper_too() -> None:
    for table in starts():
        for sql, worst in losses(table, FLAT, "replace", floor=0):
            assert max(worst) <= EPSILON, (sql, table)


def caught(notion: str = "add-remove", group: Any = FLAT) -> bool:
    promised = [multiple * EPSILON for multiple in declare_multiples(group)]
    return any(
        loss > epsilon
        for table in starts()
        for _, worst in losses(table, group, notion)
        for loss, epsilon in zip(worst, promised, strict=True)
    )


@pytest.mark.parametrize("notion", ["replace", "add-remove"])
def test_cells_that_are_flat_each_are_caught(monkeypatch: pytest.MonkeyPatch, notion: str) -> None:
    monkeypatch.setattr(joint, "_factors", lambda cells, *_: [cell.alone() for cell in cells])
    assert caught(notion)


def test_the_second_cell_forgotten_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "split_between_parts", lambda epsilon, neighbours, parts: epsilon)
    assert caught("replace")


def test_a_count_with_the_noise_of_one_record_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "limit_epsilon", lambda epsilon, multiples: epsilon)
    assert caught()


def test_the_multiple_of_another_size_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right = release.calibrate_cells

    def shifted(cells: Any, epsilon: Fraction, multiples: Sequence[Fraction], check: Any, **others: Any) -> Any:
        return right(cells, epsilon, [*multiples[1:], multiples[-1]], check, **others)

    monkeypatch.setattr(release, "calibrate_cells", shifted)
    assert caught(group=[1, "1.5", 4])

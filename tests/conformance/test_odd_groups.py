"""Groups of every odd shape, asked in every way: no question that was charged fails because of what a group holds.

A group is empty, holds one value, nothing but NULL, one value many times, the ends of the grid, NaN and infinities, or
fewer values than the rank that is asked for; beside it in the same question stands a group of another shape. What the
engine finds must be what reading record by record gives, and what is drawn from it must come out.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from fractions import Fraction

import pyarrow as pa
import pytest

from idios.answer.release import calibrate_plan, clip_values, draw_cell
from idios.core.calibration import Protection
from idios.core.domain import LIMIT
from idios.core.statistics import Median
from idios.data import group_counts, group_ranks, group_windows
from idios.data.brackets import Bracket
from idios.data.engines.sql_backend import SqlSnapshot
from idios.data.scan import Need, scan
from idios.declare.schema import Dataset
from idios.errors import Unanswerable
from idios.plan.planner import make_plan
from idios.plan.question import Plan
from idios.sql.reader import read
from tests.conformance.engines import SPARK, Engine
from tests.conformance.plans import by, call_tables_large, category, dataset, number, plan, whole
from tests.conformance.reference import Table, reference

LABELS = [f"g{i}" for i in range(8)]
PART, SIDE = category("part", *LABELS), category("side", "a", "b", nullable=False)
COLUMNS = (
    whole("n"),
    whole("kept", (-40, 40), nullable=False),
    number("x", "0.01"),
    number("y", "0.1", (-50, 50), nullable=False),
    PART,
    SIDE,
)
TYPES = pa.schema([("n", pa.int64()), ("kept", pa.int64()), ("x", pa.float64()), ("y", pa.float64())])
TYPES = pa.schema([*TYPES, ("part", pa.string()), ("side", pa.string())])
ODD = (math.nan, math.inf, -math.inf, -0.0, 1e300, -1e300, 5e-324)
ENDS = (LIMIT, -LIMIT, LIMIT - 1, 1 - LIMIT, 2**63 - 1, -(2**63))

SHAPES: Sequence[Callable[[random.Random], list[float | int | None]]] = (
    lambda draw: [],
    lambda draw: [draw.randint(-9, 9)],
    lambda draw: [None] * draw.randint(1, 5),
    lambda draw: [draw.choice((7, -LIMIT, LIMIT))] * draw.randint(2, 60),
    lambda draw: [draw.choice((None, 3, 3, 4)) for _ in range(draw.randint(1, 60))],
    lambda draw: [draw.choice(ODD) for _ in range(draw.randint(1, 30))],
    lambda draw: [draw.choice(ENDS) for _ in range(draw.randint(1, 30))],
    lambda draw: [draw.randint(-30, 30) for _ in range(draw.randint(2, 9))],
    lambda draw: [draw.choice((None, *ODD, *ENDS, 5)) for _ in range(draw.randint(2, 90))],
    lambda draw: [draw.randint(-(10**9), 10**9) for _ in range(draw.randint(80, 400))],
)
STATISTICS = (
    *("MEDIAN({})", "PERCENTILE_DISC({}, 0.9)", "PERCENTILE_CONT({}, 0.05)", "IQR({})", "COUNT({})"),
    *("KTH_LARGEST({}, 2)", "KTH_LARGEST({}, 20)", "KTH_SMALLEST({}, 3)", "KTH_SMALLEST({}, 20)"),
    *("TRIMMED_MEAN({}, 0.05)", "WINSORIZED_MEAN({}, 0.05)", "COUNT(DISTINCT {})"),
)
BOUNDED = ("SUM({})", "AVG({})", "VARIANCE({})", "MAX({})", "MIN({})")
GROUPS = ("part", "side", "part, side", "BIN(y, 20)", "part, BIN(y, 50)")
WHERE = ("", "", " WHERE x > 3", " WHERE n IS NULL OR n < 5", " WHERE side = 'a'", " WHERE y > 49 AND n = 7")


def make_table(draw: random.Random) -> Table:
    """Each group of an own shape in each column, so that one group is odd in one column and plain in another."""
    table: dict[str, list[object]] = {name: [] for name in TYPES.names}
    for label in [*draw.sample(LABELS, draw.randint(1, len(LABELS))), "undeclared", None]:
        columns = [draw.choice(SHAPES)(draw) for _ in range(4)]
        rows = draw.choice([*columns, [0]])
        for name, shape, kind in zip(TYPES.names, columns, (int, int, float, float), strict=False):
            held = [shape[i % len(shape)] if shape else None for i in range(len(rows))]
            table[name] += [_as(kind, value) for value in held]
        table["part"] += [label] * len(rows)
        table["side"] += [draw.choice(("a", "b", "c", None)) for _ in rows]
    return table


def _as(kind: type, value: float | int | None) -> object:
    if value is None or kind is float:
        return value if value is None else float(value)
    return None if isinstance(value, float) and (not math.isfinite(value) or abs(value) > 2**62) else int(value)


def make_plans(draw: random.Random, data: Dataset, number: int) -> list[Plan]:
    plans: list[Plan] = []
    while len(plans) < number:
        asked = [
            text.format(name)
            for name in draw.sample(["n", "kept", "x", "y"], draw.randint(1, 2))
            for text in draw.sample(STATISTICS + (BOUNDED if name in ("kept", "y") else ()), draw.randint(1, 3))
        ]
        sql = f"SELECT {', '.join(asked)} FROM people{draw.choice(WHERE)} GROUP BY {draw.choice(GROUPS)}"
        with suppress(Unanswerable):  # by public facts alone
            plans.append(make_plan(read(sql, {"people": data}), data, Fraction(200)))
    return plans


def use_way(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make small groups take one of the ways that are meant for large ones."""
    for module in (group_ranks, group_windows):
        if way == "brackets":
            monkeypatch.setattr(module, "NARROW", 0)
            monkeypatch.setattr(module, "WIDE_ENOUGH", 0)
        elif way == "shares":
            monkeypatch.setattr(module, "NARROW", 10**6)
            monkeypatch.setattr(module, "WIDE_ENOUGH", 0)
        elif way == "lists":
            monkeypatch.setattr(module, "WIDE_ENOUGH", 10**9)
    if way == "brackets":  # arrays do without them
        monkeypatch.setattr(group_windows.GroupReader, "applies", False)
    if way in ("large", "counted"):
        call_tables_large(monkeypatch)
    if way == "counted":
        monkeypatch.setattr(group_counts, "LARGE", 0)


def ask_everything(engine: Engine, seed: int, tables: int, questions: int) -> None:
    for i in range(tables):
        draw = random.Random(100 * seed + i)
        protection = Protection.declare(draw.choice(("individual", "differential")))
        table = make_table(draw)
        data = Dataset("people", {column.name: column for column in COLUMNS}, protection=protection)
        with engine.open(pa.table(table, schema=TYPES), data) as backend:
            for one in make_plans(draw, data, questions):
                with backend.open_snapshot(one) as snapshot:
                    read_first = snapshot.summaries
                    _, found = clip_values(one, snapshot)
                labels = [aggregate.label for aggregate in one.aggregates], one.groups, one.filter
                for cell, seen, wanted in zip(one.cells, read_first, reference(one, table), strict=True):
                    assert list(seen) == wanted, (seed, i, cell, labels)
                for mechanisms in calibrate_plan(one, found):
                    for aggregate, mechanism in zip(one.aggregates, mechanisms, strict=True):
                        draw_cell(one, aggregate, mechanism, None)


WAYS = [
    *(("duckdb", way, seed) for way in ("as chosen", "brackets", "shares", "lists", "large") for seed in range(3)),
    *(("postgresql", way, seed) for way in ("as chosen", "large") for seed in range(3)),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("engine", "way", "seed"),
    [
        *WAYS,
        pytest.param("spark", "counted", 0, marks=SPARK.marks),
        pytest.param("spark", "large", 1, marks=SPARK.marks),
    ],
    indirect=["engine"],
)
def test_no_group_decides_whether_a_question_is_answered(
    engine: Engine, way: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_way(way, monkeypatch)
    tables, questions = (1, 2) if str(engine) == "spark" else (6, 4)
    ask_everything(engine, seed, tables, questions)


EVERYTHING = Bracket(-LIMIT, LIMIT)
HELD = {1: [7, 4, 6, 5, 6, -3], 2: [5, 5], 3: [6, 6, 2**63 - 1, -(2**63), 0], 4: [1, None], 5: [None]}
"""By cell, what it holds."""


@pytest.mark.parametrize(
    "given",
    [
        {1: [EVERYTHING]},
        {1: [EVERYTHING], 2: [EVERYTHING], 3: [EVERYTHING]},
        {1: [EVERYTHING], 2: [Bracket(-LIMIT, 5)], 5: [EVERYTHING]},
        {1: [EVERYTHING], 3: [Bracket(5, LIMIT, tied_low=True)]},
        {1: [Bracket(-LIMIT, 4), Bracket(6, 7)], 2: [EVERYTHING], 3: [Bracket(6, 6, tied_low=True, tied_high=True)]},
        {1: [Bracket(-LIMIT, 4), Bracket(6, LIMIT)], 2: [Bracket(5, 5)], 3: [Bracket(LIMIT, LIMIT)]},
        {1: [Bracket(-LIMIT, LIMIT, tied_low=True)], 3: [Bracket(-LIMIT, LIMIT, tied_low=True, tied_high=True)]},
    ],
)
def test_a_scan_finds_what_brackets_contain(engine: Engine, given: dict[int, list[Bracket]]) -> None:
    """Whether they are open at one end, at both or at none, and beside cells that have no bracket."""
    data = dataset(whole("n"), PART)
    table: Table = {
        "n": [value for values in HELD.values() for value in values],
        "part": [LABELS[cell - 1] for cell, values in HELD.items() for _ in values],
    }
    asked = plan(data, (Median(), "n"), groups=[by(PART)])
    arrow = pa.table(table, schema=pa.schema([TYPES.field("n"), TYPES.field("part")]))
    with engine.open(arrow, data) as backend, backend.open_snapshot(asked) as snapshot:
        assert isinstance(snapshot, SqlSnapshot)
        brackets = {(cell, "v0"): listed for cell, listed in given.items()}
        for sums in (False, True):
            _, known = scan(snapshot.queries, {"v0": Need(total=sums, below=sums)}, brackets)
            for cell, listed in given.items():
                points = sorted(max(-LIMIT, min(LIMIT, value)) for value in HELD[cell] if value is not None)
                for bracket, piece in zip(listed, known[cell, "v0"].pieces, strict=True):
                    below = [point for point in points if point < bracket.low]
                    inside = [*[piece.low] * piece.lows, *sorted(piece.inside), *[piece.high] * piece.highs]
                    assert inside == [point for point in points if bracket.low <= point <= bracket.high]
                    assert (piece.start, piece.below) == (len(below), sum(below) if sums else 0)

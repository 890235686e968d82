"""Types, steps and limits: the same grid point for the same value, whatever holds it."""

from __future__ import annotations

import datetime
import math
import random
from decimal import Decimal
from fractions import Fraction

import pyarrow as pa
import pytest

import idios
from idios.core.domain import LIMIT, Kind
from idios.core.statistics import Count, DistinctCount, KthLargest, KthSmallest, Median, Mode, Statistic
from idios.data.backend import open_source
from idios.declare.schema import Column
from idios.errors import SourceError
from idios.expressions.predicates import Among, Interval
from tests.conformance.engines import Engine
from tests.conformance.plans import by, category, dataset, number, of_kind, plan, whole
from tests.conformance.reference import Table
from tests.conformance.test_statistics import same

EVERY_POINT: list[Statistic] = [KthSmallest(1), DistinctCount()]
"""With a distance as long as the table, the window of the least value is all points in order."""

draw = random.Random(3)
HALVES = [Decimal(n).scaleb(-2) / 2 for n in range(-25, 26, 2)]  # 0.005 apart: exact halves of a step of 0.01
DAYS = [datetime.date(1970, 1, 1) + datetime.timedelta(d) for d in (-719162, -365, -1, 0, 1, 59, 20000, 2932896)]
MOMENTS = [
    datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=us)
    for us in (-62135596800000000, -86400000001, -1, 0, 1, 499999, 500000, 1700000000123456)
]
COLUMNS: dict[str, tuple[pa.DataType, list[object], list[Column]]] = {
    "float": (
        pa.float64(),
        [*(draw.gauss(0, 100) for _ in range(60)), 0.285, -0.285, 0.5, -0.5, 1.5, 2.5, -0.0, 5e-324, -5e-324, 1e-310],
        [number("x", step) for step in ("0.01", "0.001", 1, 7, "1/3", "1e-6", "1e5")],
    ),
    "single": (pa.float32(), [0.1, 0.25, 16777216.0, -3.5, math.nan], [number("x", step) for step in ("0.01", 2)]),
    "whole": (
        pa.int64(),
        [*range(-30, 30), 2**53 + 1, 10**15 + 3, -(10**15) - 3],
        [whole("x", step=step) for step in (1, 2, 5, 60, "1/4", "2/3", "0.3")],
    ),
    "short": (pa.int16(), [-32768, -1, 0, 32767, None], [whole("x"), whole("x", (-10, 10)), whole("x", step=3)]),
    "decimal": (
        pa.decimal128(12, 3),
        [*HALVES, Decimal("123456789.125"), Decimal("-999999999.999"), None],
        [of_kind(Kind.DECIMAL, "x", step) for step in ("0.001", "0.01", "0.25", 1, 3, "1/3", "0.0001")],
    ),
    "long decimal": (
        pa.decimal128(38, 18),
        [*HALVES, Decimal("12345678901.123456789012345678"), Decimal("-0.000000000000000001")],
        [of_kind(Kind.DECIMAL, "x", step) for step in ("0.01", "1e-6", 1, 3)],
    ),
    "date": (pa.date32(), [*DAYS, None], [of_kind(Kind.DATE, "x", step) for step in (1, 7, "1/2")]),
    "timestamp": (
        pa.timestamp("us"),
        [*MOMENTS, None],
        [of_kind(Kind.TIMESTAMP, "x", step) for step in (1, 1000, 86400000000)] + [of_kind(Kind.DATE, "x")],
    ),
    "zoned": (
        pa.timestamp("us", "UTC"),
        [moment.replace(tzinfo=datetime.UTC) for moment in MOMENTS],
        [of_kind(Kind.TIMESTAMP, "x", 1000000)],
    ),
    "date as timestamp": (pa.date32(), DAYS[1:-1], [of_kind(Kind.TIMESTAMP, "x", 1000)]),
    "boolean": (pa.bool_(), [True, False, None, True], [whole("x"), whole("x", step="1/2")]),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_the_same_points(engine: Engine, kind: str) -> None:
    held, values, declared = COLUMNS[kind]
    if str(engine) == "spark":
        declared = declared[::3]
    table: Table = {"x": values}
    arrow = pa.table(table, schema=pa.schema([("x", held)]))
    if pa.types.is_float32(held):
        table = {"x": arrow["x"].to_pylist()}
    source = engine.keep(arrow)
    for column in declared:
        data = dataset(column)
        with open_source(source, data) as backend:
            same(backend, plan(data, *((s, "x") for s in EVERY_POINT), distance=len(values)), table)


ODD = (
    *("it's", 'a"b', "back\\slash", "ünï", "%s {x} $1", "A", "a", " a", "a ", "line\nbreak", "", "--", "NULL", "`t`"),
    *("${x}", "$${env:HOME}"),
)


def test_categories_are_compared_exactly(engine: Engine) -> None:
    table: Table = {
        "text": [*ODD, "other", None, "A ", "IT'S"] * 2,
        "code": [(3, -1, 30, None)[i % 4] for i in range(2 * len(ODD) + 8)],
        "flag": [(True, False, None)[i % 3] for i in range(2 * len(ODD) + 8)],
    }
    text, code, flag = category("text", *ODD), category("code", "3", "03", "-1"), category("flag", "false", "true")
    data = dataset(text, code, flag)
    with engine.open(pa.table(table), data) as backend:
        same(backend, plan(data, *((Mode(), name) for name in table), *((Count(), name) for name in table)), table)
        same(backend, plan(data, (Count(), None), groups=[by(text), by(flag)], where=Among("code", ((0, 2),))), table)


@pytest.mark.parametrize("held", [pa.float64(), pa.float32(), pa.decimal128(20, 2)], ids=str)
def test_codes_are_whole_numbers_of_any_type(engine: Engine, held: pa.DataType) -> None:
    values: list[object] = [1.0, 2.0, 2.5, None, 9.0, -1.0, 0.0, 2.0**53, 2.0**53 + 2, 3.0]
    if pa.types.is_decimal(held):
        values = [None if value is None else Decimal(str(value)) for value in values]
    else:
        values += [-0.0, math.nan, math.inf, -math.inf, 1e38, -1e38, 1e-30]
    arrow = pa.table({"x": pa.array(values, held), "n": list(range(len(values)))})
    # what a whole number reads as is told here once more, from the values themselves
    texts = [
        str(int(value)) if value is not None and abs(value) <= 2**53 and value == int(value) else None
        for value in arrow["x"].to_pylist()
    ]
    code, n = category("x", "2", "1", "-1", "0", str(2**53), str(2**53 + 2), "1.0"), whole("n", (0, 20))
    data = dataset(code, n)
    table: Table = {"x": texts, "n": list(range(len(values)))}
    with engine.open(arrow, data) as backend:
        same(backend, plan(data, (Mode(), "x"), (Count(), "x")), table)
        same(backend, plan(data, (Count(), None), (Median(), "n"), groups=[by(code)]), table)
        same(backend, plan(data, (Median(), "n"), where=Among("x", ((0, 1),))), table)


def test_odd_names(engine: Engine) -> None:
    names = ['say "hi"', "select", "a.b", "ünï", "semi;colon", "back`tick", "it's", "{x}", "%s", "${x}"]
    if str(engine) == "spark":
        names.remove("semi;colon")  # Spark itself cannot name such a column of a file
        names.remove("${x}")  # and takes this for a variable
        with pytest.raises(SourceError, match="variable"), engine.open(pa.table({"${x}": [1]}), dataset(whole("${x}"))):
            pass
    table: Table = {name: [i, i + 1, 2 * i] for i, name in enumerate(names)}
    data = dataset(*(whole(name, (0, 40)) for name in names))
    with engine.open(pa.table(table), data) as backend:
        same(backend, plan(data, *((Median(), name) for name in names)), table)
        chosen = data.columns[names[0]]
        same(backend, plan(data, (Median(), names[1]), groups=[by(chosen, 3)], where=Among(names[2], ((2, 3),))), table)
        assert backend.check().sound


MOST = 2**63 - 1
FAR: dict[str, tuple[pa.DataType, list[object], str]] = {
    "integers": (pa.int64(), [MOST, -MOST - 1, 5, 2**62, -(2**62), 2**62 + 1], "integer"),
    "floats": (pa.float64(), [1e308, -1e308, 5.0, 1.7e308, 4.0e18, 5.0e18, math.inf, math.nan], "number"),
    "decimals": (pa.decimal128(38, 2), [Decimal(10) ** 35, -(Decimal(10) ** 35), Decimal("5.25")], "decimal"),
}


@pytest.mark.parametrize("kind", FAR)
def test_values_at_the_limits_are_clamped(engine: Engine, kind: str) -> None:
    held, values, declared = FAR[kind]
    table: Table = {"x": values, "y": list(range(len(values)))}
    arrow = pa.table(table, schema=pa.schema([("x", held), ("y", pa.int64())]))
    source = engine.keep(arrow)
    y = whole("y", (0, 10))
    few = slice(1 if str(engine) == "spark" else None)
    bounded = (("0.5", (-3, 100)), (1, (-(2**61), 2**61)), ("0.001", (-3, 7)), (10**6, (-(10**9), 10**9)))
    for step, bounds in bounded[few]:
        data = dataset(of_kind(Kind(declared), "x", step, bounds), y)
        with open_source(source, data) as backend:
            same(backend, plan(data, *((s, "x") for s in EVERY_POINT), distance=len(values)), table)
            assert not any(column.breaks_nullable or column.too_far for column in backend.check().columns)
    for bounds in (None, (0, None), (None, 0))[few]:
        data = dataset(of_kind(Kind(declared), "x", "0.001", bounds), y)
        with open_source(source, data) as backend:
            same(backend, plan(data, (Median(), "x"), *((s, "x") for s in EVERY_POINT), distance=len(values)), table)
            same(backend, plan(data, (Count(), "x"), (Median(), "y")), table)
            same(backend, plan(data, (Median(), "x"), where=Among("y", ((2, 2),))), table)
            assert not backend.check().sound  # the controller is told that values were cut off


def test_a_filter_at_the_ends_of_the_grid(quick_engine: Engine) -> None:
    table: Table = {"x": [1, 2, 2**61, MOST, -MOST - 1], "y": [1, 2, 3, 4, 5]}
    data = dataset(whole("x"), whole("y"))
    with quick_engine.open(pa.table(table), data) as backend:
        for ends in ((None, LIMIT), (LIMIT, None), (None, -LIMIT), (1 - LIMIT, LIMIT - 1), (LIMIT, LIMIT)):
            same(backend, plan(data, (Median(), "y"), where=Among("x", (ends,))), table)


def test_every_shape_of_a_leaf(quick_engine: Engine) -> None:
    """One interval or many, single points, gaps of single points, open ends, NULL or not."""
    table: Table = {"x": [None, *range(-6, 7)], "y": list(range(14))}
    data = dataset(whole("x"), whole("y"))
    shapes: list[tuple[Interval, ...]] = [
        (),
        ((None, None),),
        ((None, -2),),
        ((3, None),),
        ((0, 0), (2, 2), (4, 4)),
        ((None, -3), (-1, 0), (2, None)),
        ((None, -5), (-3, -2), (0, 0), (2, 3), (5, None)),
        ((-6, -6), (-3, 1), (5, 6)),
    ]
    with quick_engine.open(pa.table(table), data) as backend:
        for intervals in shapes:
            for nulls in (False, True):
                where = Among("x", intervals, nulls)
                same(backend, plan(data, (Count(), None), (Median(), "y"), where=where), table)


@pytest.mark.parametrize("held", [pa.int64(), pa.decimal128(22, 3), pa.float64()], ids=str)
def test_steps_so_fine_that_hardly_a_value_fits(quick_engine: Engine, held: pa.DataType) -> None:
    source = quick_engine.keep(pa.table({"x": pa.array([0, 1, -1, 7]).cast(held)}))
    values = [0.0, 1.0, -1.0, 7.0] if held == pa.float64() else [0, 1, -1, 7]
    step = Fraction(1, 10**19)
    for bounds in ((0, 0), ("-1e-18", "1e-18")):
        data = dataset(number("x", step, bounds))
        with open_source(source, data) as backend:
            same(backend, plan(data, (KthLargest(1), "x"), distance=4), {"x": values})
    data = dataset(number("x", step))
    with open_source(source, data) as backend:
        same(backend, plan(data, (Median(), "x"), (KthLargest(1), "x"), distance=4), {"x": values})


def test_the_greatest_points_are_told_apart(quick_engine: Engine) -> None:
    edge = 2**62
    table: Table = {"x": [edge, edge - 1, -edge, 1 - edge]}
    data = dataset(whole("x"))
    with quick_engine.open(pa.table(table), data) as backend:
        same(backend, plan(data, (KthLargest(1), "x"), (Median(), "x"), distance=4), table)


def test_check_counts_what_does_not_fit(engine: Engine) -> None:
    table: Table = {
        "a": [1, None, 200, -5],
        "f": [math.nan, 1.0, math.inf, None],
        "c": ["x", "y", None, "X"],
        "u": [MOST, 1, 1, 1],
    }
    data = dataset(
        whole("a", (0, 120), nullable=False),
        number("f", "0.1"),
        category("c", "x"),
        whole("u", step="1/4", nullable=False),
    )
    with engine.open(pa.table(table), data) as backend:
        found = backend.check()
    assert found.rows == 4
    counted = {c.name: (c.missing, c.unreadable, c.outside, c.too_far, c.nulls) for c in found.columns}
    assert counted == {"a": (1, 0, 2, 0, 1), "f": (1, 2, 0, 0, 3), "c": (1, 0, 2, 0, 3), "u": (0, 0, 0, 1, 0)}
    assert [c.breaks_nullable for c in found.columns] == [True, False, False, False]
    assert not found.sound
    assert all("200" not in text for column in found.columns for text in column.problems())


def test_every_engine_has_the_same_proposed(engine: Engine) -> None:
    """A sample of records is text, which is the same for the same value as far as a proposal looks at it."""
    size = 900
    table = pa.table(
        {
            "Sex": pa.array([1 + i % 2 for i in range(size)], pa.int32()),
            "region": [("north", "it's", None)[i % 3] if i != 5 else "a hamlet" for i in range(size)],
            "income": [999999 if i % 9 == 0 else 900 + 7 * i for i in range(size)],
            "height": [1.5 + i / size if i % 9 else -9.0 for i in range(size)],
            "wage": pa.array([Decimal(i).scaleb(-2) for i in range(size)], pa.decimal128(9, 2)),
            "works": [i % 3 == 0 for i in range(size)],
            "born": [datetime.date(1990, 1, 1) + datetime.timedelta(i) for i in range(size)],
            "seen": pa.array([i * 10**9 for i in range(size)], pa.timestamp("us")),
        }
    )
    proposed = idios.schema(engine.keep(table))
    assert dict(proposed) == {
        "Sex": {"values": [1, 2]},
        "region": {"values": ["it's", "north"]},
        "income": {"type": "integer", "missing": [999999]},
        "height": {"type": "number", "missing": [-9]},
        "wage": {"type": "decimal", "decimals": 2},
        "works": {"type": "boolean"},
        "born": {"type": "date"},
        "seen": {"type": "timestamp"},
    }
    assert (proposed.records, proposed.sample.total) == (size, size)

"""Columns in memory: types, missing values, exactness, and the summaries they yield."""

from __future__ import annotations

import datetime
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from idios.core.domain import Domain
from idios.core.neighbours import Neighbours
from idios.core.statistics import (
    DistinctCount,
    Histogram,
    InterquartileRange,
    KthLargest,
    Mean,
    Median,
    Sum,
    TrimmedMean,
    Variance,
    WinsorizedMean,
)
from idios.core.summary import Summary
from idios.data.arrays import exact_sum, exact_sum_of_squares, read_bins, read_numbers, to_grid
from idios.data.columns import is_present, plain_number
from idios.errors import InvalidInput
from tests.summaries import summarise

ODD = ["text", b"bytes", 1j, np.complex64(1), datetime.time(3), datetime.timedelta(3), np.timedelta64(3, "s")]
ODD += [
    np.timedelta64("NaT"),
    [1],
    (1,),
    {1},
    {1: 2},
    np.array([1]),
    np.array(1),
    pd.Timedelta(1),
    pd.Period("2020"),
    object(),
]
ODD += [pa.scalar(5), pd.Interval(1, 2), np.str_("x"), np.bytes_(b"x"), np.void(b"x")]
CENT, MICRO = Fraction(1, 100), Fraction(1, 10**6)


@pytest.mark.parametrize(
    ("values", "step", "missing", "points"),
    [
        ([3, 1, 2], 1, 0, [3, 1, 2]),
        ([3, None, 2], 1, 1, [3, 2]),
        ([1.5, 2.0, None, float("nan"), float("inf")], MICRO, 3, [1_500_000, 2_000_000]),
        ([3, None, float("nan")], 1, 2, [3]),
        ([True, None, False], 1, 1, [1, 0]),
        (np.ma.array([1, 2, 999], mask=[0, 0, 1]), 1, 1, [1, 2]),
        (np.array([1.5], dtype=np.longdouble), MICRO, 0, [1_500_000]),
        (np.array([10**15], dtype="datetime64[s]"), 1, 0, [10**21]),
        (pd.Series([1, 2], dtype="int64[pyarrow]"), 1, 0, [1, 2]),
        (pd.Series([1, None], dtype="int64[pyarrow]"), 1, 1, [1]),
        (pd.Series([True, None], dtype="boolean"), 1, 1, [1]),
        (pd.Series([True, False], dtype="boolean"), 1, 0, [1, 0]),
        (pd.Series([3, 4, 3], dtype="category"), 1, 0, [3, 4, 3]),
        (pa.array([True, None]), 1, 1, [1]),
        (pa.array([5, None, 5]).dictionary_encode(), 1, 1, [5, 5]),
        (pl.Series([True, None]), 1, 1, [1]),
        ([True, False], 1, 0, [1, 0]),
        ([2**70, -(2**70)], 1, 0, [2**70, -(2**70)]),
        (np.array([3, 1], dtype=np.int32), 1, None, [3, 1]),
        (np.array([2**64 - 1], dtype=np.uint64), 1, None, [2**64 - 1]),
        (np.array([0.5, np.nan]), MICRO, 1, [500_000]),
        (np.array(["2020-01-02", "NaT"], dtype="datetime64[D]"), 1, 1, [18263]),
        (np.array(["1970-01-01T00:00:01"], dtype="datetime64[s]"), 1, 0, [1_000_000]),
        ([datetime.date(1970, 1, 3), None], 1, 1, [2]),
        ([datetime.datetime(1970, 1, 1, 0, 0, 2)], 1, 0, [2_000_000]),
        (pd.Series([1, 2]), 1, None, [1, 2]),
        (pd.Series([1, None], dtype="Int64"), 1, 1, [1]),
        (pd.Series([1.0, None]), MICRO, 1, [1_000_000]),
        (pd.Series([1.5, None], dtype="Float64"), MICRO, 1, [1_500_000]),
        (pl.Series([1, None, 2**62 + 1]), 1, 1, [1, 2**62 + 1]),
        (pl.Series([1.5]), MICRO, 0, [1_500_000]),
        (pl.Series([datetime.date(1970, 1, 2)]), 1, 0, [1]),
        (pa.array([1, None, 2**62 + 1]), 1, 1, [1, 2**62 + 1]),
        (pa.chunked_array([[1.5], [2.5]]), MICRO, 0, [1_500_000, 2_500_000]),
        (pa.array([Decimal("1.25"), None], pa.decimal128(10, 2)), CENT, 1, [125]),
        (pa.array([datetime.date(1970, 1, 2)]), 1, 0, [1]),
        ([], MICRO, 0, []),
        (range(3), 1, 0, [0, 1, 2]),
        ([3, pd.NA, np.ma.masked, pd.NaT, None], 1, 4, [3]),
        (
            [np.float16(0.5), np.float32(1.5), np.float64(2.5), np.longdouble(3.5)],
            MICRO,
            0,
            [10**5 * x for x in (5, 15, 25, 35)],
        ),
        ([np.longdouble("inf"), np.longdouble("nan"), np.float16("inf")], MICRO, 3, []),
        ([True, np.bool_(False), 7, np.int8(-3), np.uint64(2**64 - 1)], 1, 0, [1, 0, 7, -3, 2**64 - 1]),
        ([np.datetime64("1970-01-03"), np.datetime64("NaT"), datetime.date(1970, 1, 2)], 1, 1, [2, 1]),
        ([np.datetime64("1971"), np.datetime64("1970-02"), np.datetime64(1, "W")], 1, 0, [365, 31, 7]),
        ([np.datetime64("1970-01-01T00:00:01", "s"), pd.Timestamp(2, unit="s"), pd.NaT], 1, 1, [10**6, 2 * 10**6]),
        ([pd.Timestamp("1970-01-01T02:00:00", tz="Europe/Paris")], 1, 0, [3600 * 10**6]),
        ([pd.Timestamp("1970-01-01T00:00:00.000001999")], 1, 0, [1]),
        ([np.datetime64(10**15, "s"), datetime.datetime(1970, 1, 1)], 1, 0, [10**21, 0]),
        (np.ma.array([1, "hidden"], mask=[0, 1], dtype=object), 1, 1, [1]),
        (np.array([2**61, 3], dtype="datetime64[W]"), 1, 0, [7 * 2**61, 21]),
        (np.array([2**61, 3], dtype="datetime64[4D]"), 1, 0, [4 * 2**61, 12]),
        (np.array([2**61, 3], dtype="datetime64[4ms]"), 1, 0, [4000 * 2**61, 12_000]),
        (np.array([2**61, -(2**61)], dtype="datetime64[8ns]"), 1, 0, [2**64 // 1000, -(2**64) // 1000]),
        (pa.array([86_400_007, -1, None], pa.int64()).view(pa.date64()), 1, 1, [1, -1]),
        (pd.Series(pd.Categorical([None, None])), MICRO, 2, []),
    ],
)
def test_every_kind_of_column(values: object, step: Fraction, missing: int | None, points: list[int]) -> None:
    column = read_numbers(values)
    assert column.domain.step == step
    assert column.missing == missing
    found = column.raw if column.on_grid else to_grid(column.raw, column.domain)
    assert found.tolist() == points


def test_nullable_is_declared_or_a_fact_of_the_type_never_of_the_values() -> None:
    assert read_numbers([1.0, 2.0]).missing == 0
    assert read_numbers([1.0, 2.0], nullable=False).missing is None
    assert read_numbers(np.array([1, 2])).missing is None
    assert read_numbers(np.array([1, 2]), nullable=True).missing == 0
    with pytest.raises(InvalidInput, match="not nullable and has missing values"):
        read_numbers([1.0, None], nullable=False)


@pytest.mark.parametrize(
    "bad",
    [
        "text",
        5,
        ["a", "b"],
        np.zeros((2, 2)),
        np.array(["x"]),
        [1, "2"],
        None,
        pd.DataFrame({"x": [1]}),
        pl.DataFrame({"x": [1]}),
        pa.table({"x": [1]}),
        pa.array(["x"]),
        pd.Series(["x"]),
        pd.Series(pd.arrays.SparseArray([1.5, 0.0])),
        [datetime.date(2020, 1, 1), 5],
        {"x": [1]},
        {1, 2},
        pa.scalar(5),
        np.array(5),
        np.array([5], dtype="timedelta64[s]"),
        np.array([5j]),
        np.array(["NaT"], dtype="datetime64"),
        pd.Series(pd.Categorical([1, "secret"])),
        pd.Series(pd.timedelta_range("1h", periods=2)),
        pl.Series([b"secret"]),
        pl.Series([1], dtype=pl.Int128),
    ],
    ids=lambda bad: type(bad).__name__,
)
def test_what_is_no_column_of_numbers(bad: object) -> None:
    with pytest.raises(InvalidInput) as told:
        read_numbers(bad)
    assert "secret" not in str(told.value)


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: type(odd).__name__)
def test_an_element_that_is_no_number_is_named_by_its_type_alone(odd: object) -> None:
    for values in ([odd], [1, odd], [None, odd, 2.5]):
        for step in (None, 1):
            with pytest.raises(InvalidInput, match=rf"elements of type {type(odd).__name__}$"):
                read_numbers(values, step=step)


ENDS = st.sampled_from([None, (0, 100), (None, 5), (-3, None)])
NUMBERS = st.one_of(
    st.booleans(),
    st.integers(),
    st.integers(-(2**63), 2**63 - 1).map(np.int64),
    st.integers(0, 2**64 - 1).map(np.uint64),
    st.floats(),
    st.floats(width=16).map(np.float16),
    st.floats(width=32).map(np.float32),
    st.floats().map(np.longdouble),
    st.sampled_from(["1e4000", "-1e4000", "1e-4000"]).map(np.longdouble),
    st.fractions(),
    st.decimals(),
    st.builds(
        lambda digit, power: Decimal((digit < 0, (abs(digit),), power)),
        st.integers(-9, 9),
        st.integers(-(10**6), 10**6),
    ),
    st.builds(lambda digit, power: digit * Fraction(10) ** power, st.integers(-9, 9), st.integers(-2000, 2000)),
    st.sampled_from([None, np.nan, pd.NA, np.ma.masked, Decimal("sNaN"), 10**400, -(10**4000), Decimal("1E+500")]),
)


@settings(deadline=None)
@given(st.lists(NUMBERS, max_size=6), st.sampled_from(["1e-100", "0.01", 1, 7, "1e100"]), ENDS)
def test_every_list_of_numbers_is_read(
    values: list[object], step: object, bounds: tuple[int | None, int | None] | None
) -> None:
    column = read_numbers(values, step=step, bounds=bounds)
    points = column.points(column.raw).tolist()
    assert len(points) + (column.missing or 0) == len(values)
    assert all(column.domain.low <= point <= column.domain.high for point in points)
    there = [value for value in values if is_present(value)]
    for value, point in zip(there, points, strict=True):
        expected = column.domain.read(plain_number(value))
        assert abs(point - expected) <= max(1, abs(expected) // 10**12)  # doubles are read by two operations on doubles
    column.summarise(Median(), Neighbours.REPLACE, 2)


HOURS = datetime.timedelta(hours=23)
TICKS = st.integers(-(2**63) + 1, 2**63 - 1)
MOMENTS = st.one_of(
    st.datetimes(),
    st.datetimes(timezones=st.timezones()),
    st.datetimes(timezones=st.timedeltas(-HOURS, HOURS).map(datetime.timezone)),
    st.builds(np.datetime64, TICKS, st.sampled_from(["h", "m", "s", "ms", "us", "ns", "as"])),
    TICKS.map(pd.Timestamp),
    st.integers(-(10**12), 10**12).map(lambda seconds: pd.Timestamp(np.datetime64(seconds, "s"))),
    st.sampled_from([pd.NaT, np.datetime64("NaT"), np.datetime64("NaT", "s"), None]),
)
DATES = st.one_of(
    st.dates(),
    st.builds(np.datetime64, TICKS, st.sampled_from(["Y", "M", "W", "D"])),
    st.sampled_from([pd.NaT, np.datetime64("NaT"), np.datetime64("NaT", "D"), None]),
)


@settings(deadline=None)
@given(st.one_of(st.lists(MOMENTS, max_size=5), st.lists(DATES, max_size=5)))
def test_every_list_of_dates_or_timestamps_is_read(values: list[object]) -> None:
    column = read_numbers(values)
    assert len(column.raw) + (column.missing or 0) == len(values)
    assert len(column.raw) == sum(is_present(value) for value in values)
    column.summarise(Median(), Neighbours.REPLACE, 2)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([50] * 9, [50] * 8 + [50.5]),
        (np.array([50, 50], dtype=object), np.array([50, 50.5], dtype=object)),
        ([Decimal(1)], [1.5]),
    ],
)
def test_a_list_of_several_types_is_refused_rather_than_read_by_its_values(one: object, other: object) -> None:
    """Otherwise one record would decide the grid, and with it the shape of every answer."""
    read_numbers(one, step=1)
    with pytest.raises(InvalidInput, match="mixes the types"):
        read_numbers([*one, *other])  # type: ignore[misc]
    assert read_numbers([*one, *other], step="0.5").domain.step == Fraction(1, 2)  # type: ignore[misc]


@pytest.mark.parametrize("dtype", ["int64[pyarrow]", "Int64", "boolean", "bool[pyarrow]", "Float64", "double[pyarrow]"])
def test_one_missing_value_changes_neither_grid_nor_kind(dtype: str) -> None:
    full, holed = pd.Series([1, 1, 0], dtype=dtype), pd.Series([1, None, 0], dtype=dtype)
    one, other = read_numbers(full), read_numbers(holed)
    assert one.domain == other.domain
    assert (one.missing, other.missing) == (0, 1)


def test_a_far_value_is_clamped_before_it_can_slow_or_overflow_anything() -> None:
    far = (Decimal("1E+500"), 10**400, Fraction(10**900, 7), np.longdouble("1e4000"))
    lists = [[5, 10**40], *([Decimal(5), value] for value in far), [5, Decimal("1E+500")]]
    for values in (np.array([5, 2**62]), np.array([5.0, 1e300]), np.array([5, far[-1]]), *lists):
        column = read_numbers(values, step="0.01", bounds=(0, 100))
        points = to_grid(column.raw, column.domain) if not column.on_grid else column.raw
        assert points.dtype == np.int64
        assert points.tolist() == [500, 10_000]
    wide = read_numbers([5, 6], bounds=(10**30, 10**31))
    assert to_grid(wide.raw, wide.domain).tolist() == [10**30, 10**30]


def test_decimals_in_a_list_need_a_step() -> None:
    with pytest.raises(InvalidInput, match="declare a step"):
        read_numbers([Decimal("1.25")])
    column = read_numbers([Decimal("1.255"), Decimal("NaN")], step="0.01")
    assert column.raw.tolist() == [126]


@pytest.mark.parametrize(
    ("values", "points"),
    [
        ([1e308, -1e308], [10**314, -(10**314)]),
        ([-0.0, 0.0, 5e-7, 4.9e-7], [0, 0, 1, 0]),
        ([2.0**53, 2.0**70], [2**53 * 10**6, 2**70 * 10**6]),
    ],
)
def test_floats_at_their_limits_never_wrap(values: list[float], points: list[int]) -> None:
    column = read_numbers(values)
    found = to_grid(column.raw, column.domain).tolist()
    assert all(abs(a - b) <= abs(b) // 10**15 for a, b in zip(found, points, strict=True))
    clamped = read_numbers(values, bounds=(-1, 1))
    assert set(to_grid(clamped.raw, clamped.domain).tolist()) <= set(range(-(10**6), 10**6 + 1))


@given(st.lists(st.integers(-(2**61), 2**61), max_size=30))
def test_sums_are_exact(values: list[int]) -> None:
    points = np.array(values, dtype=np.int64)
    assert exact_sum(points) == sum(values)
    assert exact_sum_of_squares(points) == sum(v * v for v in values)


@given(
    st.lists(st.integers(-(2**40), 2**40), min_size=1, max_size=20),
    st.fractions(min_value=Fraction(1, 1000), max_value=1000, max_denominator=1000),
)
def test_integers_are_read_exactly_at_any_step(values: list[int], step: Fraction) -> None:
    domain = Domain(step)
    assert to_grid(np.array(values), domain).tolist() == [domain.read(v) for v in values]


STATISTICS = [
    Median(),
    KthLargest(2),
    InterquartileRange(),
    Mean(),
    TrimmedMean(Fraction(1, 5)),
    WinsorizedMean(Fraction(1, 5)),
    Sum(),
    Variance(),
    DistinctCount(),
]


@settings(max_examples=60)
@given(
    st.lists(st.one_of(st.none(), st.integers(-9, 9)), max_size=25),
    st.sampled_from(["replace", "add-remove"]),
    st.integers(1, 6),
)
def test_summaries_give_the_same_envelopes_as_the_full_list(
    values: list[int | None], notion: str, distance: int
) -> None:
    column = read_numbers(np.array([np.nan if v is None else v for v in values], dtype=float), step=1, bounds=(-8, 8))
    points = sorted(min(max(v, -8), 8) for v in values if v is not None)
    neighbours = Neighbours(notion)
    for statistic in STATISTICS:
        reference = summarise(points, statistic, column.domain, column.moves(neighbours), distance)
        found = column.summarise(statistic, neighbours, distance)
        assert statistic.envelope(found, distance) == statistic.envelope(reference, distance)


@pytest.mark.parametrize(
    ("values", "bins", "counts", "missing"),
    [
        ([-1, 0, 19, 20, 39, 40, 41, None], [0, 20, 40], (2, 3), 3),
        ([0.0, 19.5, 20.0, 40.0, 40.5, float("nan")], (0, "20", 40.0), (2, 2), 2),
        (np.array([1, 2, 3]), [1, 3], (3,), 0),
        (np.array([1, 2, 3]), np.array([1.5, 2.5, 3]), (1, 1), 1),
        (np.array([1, 2, 3]), ["1/3", "2/3", "5/2"], (0, 2), 1),  # the last bin is closed, and ends between points
        (np.array([1, 2, 3]), [1.25, 1.5, 9], (0, 2), 1),  # no grid point in the first bin
        (np.array([2**63 - 1, -(2**63)]), [-(10**30), 0, 10**30], (1, 1), 0),
        (np.array([2**62 - 1, 5]), [2**62 - 1, 2**62], (1,), 1),
        (np.array([5]), [10**30, 10**31], (0,), 1),
        (np.array([5]), [-(10**31), -(10**30)], (0,), 1),
        ([10**400, 10**500, -(10**500)], [10**399, 10**400], (2,), 1),
        (np.array([True, False, True]), [0, 1], (3,), 0),
        (pd.Series([15, None, 35], dtype="Int64"), [0, 20, 40], (1, 1), 1),
        (pl.Series([0.1, 0.2, 0.3]), [0.1, 0.2, 0.3], (1, 2), 0),
        (pa.array([Decimal("0.10"), Decimal("0.19")]), ["0.1", "0.15", "0.2"], (1, 1), 0),
        ([], [0, 1], (0,), 0),
        ([None], [datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)], (0,), 1),
        (
            [datetime.date(2020, 1, 1), datetime.date(2021, 1, 1), None],
            [np.datetime64("2020-01-01"), datetime.date(2021, 1, 1), datetime.date(2022, 1, 1)],
            (1, 1),
            1,
        ),
        (
            pd.Series(pd.to_datetime(["2020-06-01 12:00", None, "2019-01-01 00:00"])),
            pd.to_datetime(["2020-01-01 00:00", "2020-06-01 12:00"]),
            (1,),
            2,
        ),
    ],
)
def test_bins(values: object, bins: object, counts: tuple[int, ...], missing: int) -> None:
    column = read_bins(values, bins)
    assert column.counts == counts
    assert column.missing == missing


def test_a_value_is_in_the_bin_of_its_grid_point() -> None:
    assert read_bins([19.4, 19.5, 45.0], [0, 20, 40], step=1, bounds=(0, 40)).counts == (1, 2)
    assert read_bins([1, 1.5, Decimal("2.5"), Fraction(7, 3)], [1, 2, 3], step="0.5").counts == (2, 2)
    assert read_bins(
        [datetime.date(1970, 1, 5)], [datetime.date(1970, 1, 1), datetime.date(1970, 1, 7)], step=7
    ).counts == (0,)
    assert read_bins(np.array([1]), [0, 2], nullable=False).missing == 0  # a record can leave the bins, missing or not


@pytest.mark.parametrize(
    ("bins", "told"),
    [
        (10, "at least two public edges, such as .*, got 10"),
        ([], "at least two"),
        ([5], "at least two"),
        ("0123", "at least two"),
        ({1, 2}, "at least two"),
        ({1: 2, 2: 3}, "at least two"),
        ([0, 0], "must increase"),
        ([0, 2, 1], "must increase"),
        ([0, float("inf")], "an edge of bins must be a finite number"),
        ([0, None], "an edge of bins must be a finite number"),
        (["0", "１"], "an edge of bins must be a finite number"),
        ([False, True], "an edge of bins must be a finite number"),
        ([datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)], "of the type of the values, integer, got date"),
    ],
)
def test_what_cannot_be_bins(bins: object, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        read_bins([1, 2, 3], bins)


@pytest.mark.parametrize(
    ("bins", "told"),
    [
        ([2000, 2010], "of the type of the values, date, got integer"),
        ([datetime.datetime(2020, 1, 1), datetime.datetime(2021, 1, 1)], "type of the values, date, got timestamp"),
        ([datetime.date(2020, 1, 1), None], "of the type of the values, date, got date"),
        (["2020", "2021"], "elements of type str"),
    ],
)
def test_bins_of_dates_are_dates(bins: object, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        read_bins([datetime.date(2020, 5, 5)], bins)


@settings(deadline=None)
@given(
    st.lists(st.one_of(st.none(), st.integers(-40, 40)), max_size=20),
    st.lists(st.fractions(-12, 12, max_denominator=6), min_size=2, max_size=6, unique=True).map(sorted),
    st.sampled_from([Fraction(1), Fraction(1, 4), Fraction(2, 3)]),
)
def test_bins_are_those_of_exact_arithmetic_and_of_numpy(
    quarters: list[int | None], bins: list[Fraction], step: Fraction
) -> None:
    values = [None if quarter is None else Fraction(quarter, 4) for quarter in quarters]
    column = read_bins(values, bins, step=step)
    points = [Domain(step).read(value) * step for value in values if value is not None]
    inside = [sum(a <= point < b for point in points) for a, b in pairwise(bins)]
    inside[-1] += points.count(bins[-1])
    assert column.counts == tuple(inside)
    assert column.missing == len(values) - sum(inside)
    scaled = [int(point * 60) for point in points]  # whole numbers, so that numpy compares exactly too
    assert np.histogram(scaled, [int(edge * 60) for edge in bins])[0].tolist() == inside


@pytest.mark.parametrize("bins", [[0, 2], [0, 1, 2], ["1/2", "3/2", "5/2"], [-1, 9], [5, 6]])
@pytest.mark.parametrize("nullable", [False, True])
@pytest.mark.parametrize("notion", ["replace", "add-remove"])
def test_bins_move_by_no_more_than_the_sensitivity(notion: str, nullable: bool, bins: list[object]) -> None:
    """All tables of up to three records over the values 0 to 3, and all their neighbours."""
    records = [0, 1, 2, 3, *([None] if nullable else [])]
    greatest = 0
    for size in range(4):
        for table in product(records, repeat=size):
            here = read_bins(list(table), bins, nullable=nullable)
            others = [table[:i] + table[i + 1 :] for i in range(size)]
            if notion == "replace":
                others = [(*other, record) for other in others for record in records]
            for other in others:
                there = read_bins(list(other), bins, nullable=nullable)
                moved = sum(abs(a - b) for a, b in zip(here.counts, there.counts, strict=True))
                promised = Histogram(len(bins) - 1).global_sensitivity(here.moves(Neighbours(notion)))
                assert moved <= promised
                greatest = max(greatest, moved)
    if bins in ([0, 2], [0, 1, 2], ["1/2", "3/2", "5/2"]):
        assert greatest == promised


@settings(max_examples=200)
@given(
    st.lists(st.one_of(st.none(), st.integers(-9, 9), st.integers(-(2**63), 2**63 - 1)), max_size=12),
    st.tuples(st.integers(-(2**66), 2**66), st.integers(-(2**66), 2**66)) | st.tuples(st.integers(-9, 9), st.just(9)),
    st.sampled_from(["replace", "add-remove"]),
)
def test_clipped_sums_are_exact(values: list[int | None], ends: tuple[int, int], notion: str) -> None:
    """Limits within the values, beyond all of them, equal, and too far away for 64 bits."""
    low, high = sorted(ends)
    column = read_numbers(pa.array(values, pa.int64()))
    clipped = [min(max(v, low), high) for v in values if v is not None]
    moves, domain = column.moves(Neighbours(notion)), Domain(Fraction(1), low, high)
    assert column.sum_clipped((low, high), Sum(), Neighbours(notion)) == Summary(domain, moves, total=sum(clipped))
    squares = sum(v * v for v in clipped)
    with_squares = column.sum_clipped((low, high), Variance(), Neighbours(notion))
    assert with_squares == Summary(domain, moves, total=sum(clipped), squares=squares)


def test_clipped_sums_of_floats_and_of_values_beyond_64_bits() -> None:
    column = read_numbers(np.array([-1.25, 0.5, 2.0, np.nan, np.inf]), step="0.25")
    assert column.sum_clipped((-2, 4), Sum(), Neighbours.REPLACE).total == -2 + 2 + 4
    far = read_numbers([10**30, -(10**30), 5], step=1)
    found = far.sum_clipped((-(10**25), 10**26), Variance(), Neighbours.REPLACE)
    assert (found.total, found.squares) == (10**26 - 10**25 + 5, 10**52 + 10**50 + 25)

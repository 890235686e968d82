"""Columns in memory: types, missing values, exactness, and the summaries they yield."""

from __future__ import annotations

import datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from idios.backends.arrays import exact_sum, exact_sum_of_squares, read_categories, read_numbers, to_grid
from idios.core.domain import Domain
from idios.core.neighbours import Neighbours
from idios.core.statistics import (
    DistinctCount,
    InterquartileRange,
    KthLargest,
    Mean,
    Median,
    Sum,
    TrimmedMean,
    Variance,
    WinsorizedMean,
)
from idios.errors import InvalidInput
from summaries import summarise

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
    ],
    ids=lambda bad: type(bad).__name__,
)
def test_what_is_no_column_of_numbers(bad: object) -> None:
    with pytest.raises(InvalidInput):
        read_numbers(bad)


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
    for values in (np.array([5, 2**62]), np.array([5.0, 1e300]), [5, 10**40]):
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


def test_categories_match_by_type_and_value() -> None:
    assert read_categories(np.array([1, 1, 2]), [1, 2]).counts == (2, 1)
    assert read_categories([True, 1, "1"], [1]).counts == (1,)
    assert read_categories([["unhashable"], 1], [1]).missing == 1
    for bad in ("text", b"x"):
        with pytest.raises(InvalidInput, match="not a single text"):
            read_categories(bad, ["t"])


def test_categories() -> None:
    column = read_categories(["a", "b", "a", "z", None], ["a", "b", "c"])
    assert column.counts == (2, 1, 0)
    assert column.missing == 2
    assert read_categories(pa.array(["a"]), ["a"], nullable=False).missing is None
    with pytest.raises(InvalidInput, match="missing or undeclared"):
        read_categories(["z"], ["a"], nullable=False)

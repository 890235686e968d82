"""Categories of every type: equal ones are counted however they were written, and types that differ are told."""

from __future__ import annotations

import datetime
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from idios.data.arrays import read_categories
from idios.errors import InvalidInput

DAY, NEXT = datetime.date(2020, 1, 2), datetime.date(2020, 1, 3)
NOON = datetime.datetime(2020, 1, 2, 12)
PARIS = NOON.replace(hour=13, tzinfo=datetime.timezone(datetime.timedelta(hours=1)))
TEXTS = ["a", "b", "a", "z", None]
MISSING = [None, float("nan"), float("inf"), np.nan, pd.NA, pd.NaT, np.ma.masked, Decimal("NaN"), Decimal("sNaN")]
MISSING += [np.datetime64("NaT"), np.datetime64("NaT", "D"), np.float32("nan")]
Colour = StrEnum("Colour", {"RED": "red"})


@pytest.mark.parametrize(
    "values",
    [
        TEXTS,
        tuple(TEXTS),
        [np.str_(text) if text else None for text in TEXTS],
        ["a", "b", "a", "z", float("nan")],
        np.array(TEXTS, dtype=object),
        np.ma.array(["a", "b", "a", "z", "a"], mask=[0, 0, 0, 0, 1]),
        np.array(TEXTS, dtype=np.dtypes.StringDType(na_object=None)),
        pd.Series(TEXTS),
        pd.Series(TEXTS, dtype=object),
        pd.Series(["a", "b", "a", "z", float("nan")], dtype=object),
        pd.Series(TEXTS, dtype="string"),
        pd.Series(TEXTS, dtype="string[pyarrow]"),
        pd.Series(TEXTS, dtype="category"),
        pd.Series(pd.Categorical(TEXTS, categories=pd.Index(["a", "b", "z"], dtype=object))),
        pd.Index(TEXTS),
        pd.Categorical(TEXTS),
        pl.Series(TEXTS),
        pl.Series(TEXTS, dtype=pl.Categorical),
        pl.Series(TEXTS, dtype=pl.Enum(["a", "b", "z"])),
        pa.array(TEXTS),
        pa.array(TEXTS, pa.string_view()),
        pa.array(TEXTS, pa.large_string()),
        pa.array(TEXTS).dictionary_encode(),
        pa.chunked_array([TEXTS[:2], TEXTS[2:]]),
        pa.chunked_array([TEXTS[:2], TEXTS[2:]]).dictionary_encode(),
    ],
)
@pytest.mark.parametrize(
    "categories",
    [
        ["a", "b", "c"],
        np.array(["a", "b", "c"]),
        pd.Series(["a", "b", "c"], index=[7, 8, 9]),
        pa.array(["a", "b", "c"]),
    ],
    ids=lambda categories: type(categories).__name__,
)
def test_text_of_every_column(values: object, categories: object) -> None:
    column = read_categories(values, categories)
    assert column.counts == (2, 1, 0)
    assert column.missing == 2


@pytest.mark.parametrize(
    ("values", "categories", "counts"),
    [
        ([np.int8(1), 1.0, Decimal("1.00"), Fraction(1), np.float16(1), 2], [1, 2], (5, 1)),
        ([0.1, np.float16(0.1), np.float32(0.1), np.longdouble("0.1"), Decimal("0.1"), Fraction(1, 10)], [0.1], (6,)),
        (np.array([0.1, 0.2], dtype=np.float32), [0.1, Decimal("0.2")], (1, 1)),
        (np.array([0.1, 0.2], dtype=np.float16), [0.1, np.float64(0.2)], (1, 1)),
        (np.array([0.1, 0.2]), [np.float32(0.1), np.float16(0.2)], (1, 1)),
        (pa.array([0.1, None], pa.float32()), [0.1], (1,)),
        (pl.Series([0.1, 0.1], dtype=pl.Float32), [0.1], (2,)),
        (pd.Series([0.1, None], dtype="Float32"), [0.1], (1,)),
        (np.array([1, 1, 2]), [1, 2], (2, 1)),
        (np.array([1, 1, 2], dtype=np.uint8), np.array([1.0, 2.0]), (2, 1)),
        (pd.Series([1, None, 2]), [1, 2], (1, 1)),
        (pd.Series([1, None, 2], dtype="Int64"), [1, 2], (1, 1)),
        (pd.Series([1, None, 2], dtype="int64[pyarrow]"), [1, 2], (1, 1)),
        (pd.Series([1, 2, 1], dtype="category"), [1, 2], (2, 1)),
        (pd.Series(pd.Categorical([1, 2, None], categories=pd.Index([1, 2], dtype=object))), [1, 2], (1, 1)),
        (pa.array([Decimal("1.50"), None]), [1.5], (1,)),
        (np.array([2.0**70]), [2**70], (1,)),
        ([2**70, Decimal(2**70)], [2.0**70], (2,)),
        ([10**400, Decimal("1E+400"), Decimal("1E+999999"), -1], [10**400, -1], (2, 1)),
        ([Decimal("1E-999999"), 0, -0.0], [0], (2,)),
        ([10**500, Decimal("1E+500"), 10**400], [10**500], (2,)),
        ([Fraction(1, 3), 1 / 3], [Fraction(1, 3)], (1,)),
        (range(4), [3, 5], (1, 0)),
        ([True, np.bool_(False), None], [False, True], (1, 1)),
        (np.array([True, False]), [np.True_], (1,)),
        (pd.Series([True, None], dtype="boolean"), [True], (1,)),
        (pd.Series([True, None], dtype=object), [True], (1,)),
        (pa.array([True, None]), [False, True], (0, 1)),
        ([DAY, np.datetime64("2020-01-02"), NEXT, pd.NaT], [DAY], (2,)),
        (np.array(["2020-01-02", "NaT"], dtype="datetime64[D]"), [DAY, np.datetime64("2020-01-03")], (1, 0)),
        (pa.array([DAY, None]), [DAY], (1,)),
        (pl.Series([DAY, None]), pl.Series([DAY]), (1,)),
        ([NOON, PARIS, pd.Timestamp(PARIS), np.datetime64(NOON, "ns"), pd.NaT], [NOON], (4,)),
        (pd.Series([NOON, None]), [PARIS], (1,)),
        (pd.Series([PARIS, None]), [pd.Timestamp(NOON)], (1,)),
        (np.array([NOON], dtype="datetime64[ns]"), [np.datetime64(NOON, "s")], (1,)),
        (pa.array([NOON], pa.timestamp("ns", "Europe/Paris")), [NOON], (1,)),
        (pl.Series([NOON, None]), [NOON], (1,)),
        ([Colour.RED, "red"], ["red"], (2,)),
    ],
)
def test_equal_values_are_counted_however_they_were_written(
    values: object, categories: object, counts: tuple[int, ...]
) -> None:
    column = read_categories(values, categories)
    assert column.counts == counts
    assert column.missing == len(values) - sum(counts)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "values", [MISSING, [], pa.nulls(3), pl.Series([None]), pd.Series([None, None], dtype="category")]
)
@pytest.mark.parametrize("categories", [["a"], [1], [True], [DAY], [NOON]], ids=lambda one: type(one[0]).__name__)
def test_nothing_is_of_any_type(values: object, categories: list[object]) -> None:
    column = read_categories(values, categories)
    assert column.counts == (0,)
    assert column.missing == len(values)  # type: ignore[arg-type]


FAMILIES = {
    "bool": [[True, None], np.array([True]), pd.Series([True, None], dtype="boolean")],
    "number": [[7, 7.5], np.array([7]), pd.Series([None, 7.5]), pa.array([Decimal(7)]), np.array([], dtype=int)],
    "text": [
        ["secret"],
        np.array(["secret"]),
        pa.array([None], pa.string()),
        pl.Series(["secret"], dtype=pl.Categorical),
    ],
    "date": [[DAY], np.array(["2020"], dtype="datetime64[Y]"), pa.array([DAY])],
    "timestamp": [[NOON], np.array([NOON]), np.array([NOON], dtype="datetime64[s]"), pd.Series([NOON, None])],
}


@pytest.mark.parametrize("values", FAMILIES)
@pytest.mark.parametrize("categories", FAMILIES)
def test_values_and_categories_of_two_types_are_told_so(values: str, categories: str) -> None:
    for column in FAMILIES[values]:
        declared = FAMILIES[categories][0][:1]  # type: ignore[index]
        if values == categories:
            read_categories(column, declared)
            continue
        with pytest.raises(InvalidInput, match=f"type {values} and the categories of the type {categories}") as told:
            read_categories(column, declared)
        assert "secret" not in str(told.value)
    if values != categories:
        mixed = [FAMILIES[values][0][0], None, FAMILIES[categories][0][0]]  # type: ignore[index]
        for one, other, name in ((mixed, ["a"], "values"), (["a"], mixed[::2], "categories")):
            with pytest.raises(
                InvalidInput, match=f"{name} mix the types {' and '.join(sorted([values, categories]))}"
            ):
                read_categories(one, other)


@pytest.mark.parametrize(
    "odd",
    [
        *(b"secret", 1j, datetime.time(3), datetime.timedelta(3), np.timedelta64(3, "s"), ["secret"], ("secret",)),
        *({"secret"}, {"secret": 1}, np.array(["secret"]), pd.Interval(1, 2), pd.Period("2020"), object(), Ellipsis),
        pa.scalar("secret"),
    ],
    ids=lambda odd: type(odd).__name__,
)
def test_an_element_of_no_known_type_is_named_by_its_type_alone(odd: object) -> None:
    for values in ([odd], ["a", odd, None], np.array([odd, None, "a"], dtype=object)[:1]):
        with pytest.raises(InvalidInput, match=rf"^values must be text.*got elements of type {type(odd).__name__}$"):
            read_categories(values, ["a"])
    with pytest.raises(InvalidInput, match="categories must be text"):
        read_categories(["a"], [odd])


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        ("text", "not a single text"),
        (b"x", "not a single text"),
        (5, "got int"),
        (None, "got NoneType"),
        ({"a", "b"}, "got set"),
        ({"a": 1}, "got dict"),
        (iter(["a"]), "got list_iterator"),
        (pd.DataFrame({"a": ["a"]}), "select a column"),
        (pl.DataFrame({"a": ["a"]}), "select a column"),
        (pa.table({"a": ["a"]}), "select a column"),
        (np.array([["a"]]), "one dimension, got 2"),
        (np.array([b"a"]), r"an array of \|S1"),
        (np.array([1j]), "an array of complex128"),
        (pa.array([b"a"]), "a column of binary"),
        (pa.array([["a"]]), "a column of list"),
        (pd.Series(pd.cut([1, 2], 2)), "a column of"),
    ],
    ids=lambda bad: type(bad).__name__,
)
def test_what_is_no_column_of_categories(bad: object, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        read_categories(bad, ["a"])
    with pytest.raises(InvalidInput, match=told):
        read_categories(["a"], bad)


@pytest.mark.parametrize(
    ("categories", "told"),
    [
        ([], "at least one"),
        (["a", None], "got a missing one"),
        ([1.5, float("nan")], "got a missing one"),
        (["a", "a"], "must differ"),
        ([1, 1.0], "must differ"),
        ([0.1, Decimal("0.1")], "must differ"),
        ([NOON, PARIS], "must differ"),
        ([True, 1], "mix the types bool and number"),
        ([Decimal("1E+500")], "a category must be a finite number"),
    ],
)
def test_what_cannot_be_declared(categories: list[object], told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        read_categories([], categories)


def test_undeclared_values_are_missing() -> None:
    assert read_categories(pa.array(["a"]), ["a"], nullable=False).missing is None
    with pytest.raises(InvalidInput, match="missing or undeclared"):
        read_categories(["z"], ["a"], nullable=False)


WRITTEN = st.one_of(
    st.integers(-3, 3),
    st.integers(-3, 3).map(np.int16),
    st.sampled_from([0.0, -0.0, 0.1, 0.5, 1e22, 2.0**60, 5e-324]),
    st.sampled_from([0.1, 0.5, 2.0]).map(np.float16),
    st.sampled_from([0.1, 0.5, 2.0, 3e7]).map(np.float32),
    st.sampled_from(["0.1", "0.5", "2", "1e30"]).map(np.longdouble),
    st.sampled_from(["0.1", "0.50", "2", "1E22", "-1E+300"]).map(Decimal),
    st.sampled_from([Fraction(1, 10), Fraction(1, 3), Fraction(2)]),
)


def spelt(value: object) -> Fraction:
    """The oracle: whole numbers by value, others as they print."""
    number = Fraction(value) if isinstance(value, int | Decimal | Fraction) else Fraction(int(value))  # type: ignore[call-overload]
    return number if number == value else Fraction(str(value))


@settings(deadline=None)
@given(st.lists(WRITTEN, max_size=8), st.lists(WRITTEN, min_size=1, max_size=4, unique_by=spelt))
def test_numbers_are_counted_by_what_they_are(values: list[object], categories: list[object]) -> None:
    found = [spelt(value) for value in values]
    assert read_categories(values, categories).counts == tuple(found.count(spelt(one)) for one in categories)

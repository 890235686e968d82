"""The array API: what a user types, and what is refused."""

from __future__ import annotations

import inspect
import math
import re
import warnings
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from importlib.metadata import version

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import idios
from idios import IdiosError, errors
from idios.errors import InvalidInput, Unanswerable

PLAIN = ["count", "iqr", "maximum", "mean", "median", "minimum", "stddev", "total", "variance"]
WITH_PARAMETER = [("quantile", 0.25), ("kth_largest", 2), ("kth_smallest", 3), ("trimmed_mean", 0.1)]
WITH_PARAMETER += [("winsorized_mean", 0.1)]
KEYWORDS = ["epsilon", "step", "bounds", "centre", "neighbours", "protection", "group", "floor", "nullable"]


def test_the_public_names_are_these() -> None:
    functions = {*PLAIN, *(name for name, _ in WITH_PARAMETER), "mode", "histogram"}
    raised = {name for name, found in vars(errors).items() if isinstance(found, type)} - {"Fraction", "TracebackType"}
    others = {"NoAnswer", "PackageMissing", "ServerError", "TrustedParty", "__version__", "connect", "schema"}
    assert set(idios.__all__) == {*functions, *raised, *others}
    assert list(idios.__all__) == sorted(idios.__all__)
    assert all(issubclass(getattr(idios, name), idios.IdiosError) for name in raised)
    assert idios.__version__ == version("idios")
    assert not hasattr(idios, "average")
    for name in functions:
        shown = list(inspect.signature(getattr(idios, name)).parameters)
        assert shown[-len(KEYWORDS) :] == KEYWORDS
        assert getattr(idios, name).__doc__


@pytest.mark.parametrize("protection", [{"protection": "individual"}, {"protection": "group", "group": 3}, {}])
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_answers_are_near_the_truth_at_a_generous_epsilon(neighbours: str, protection: dict[str, object]) -> None:
    values = np.arange(2001) / 2  # 0, 0.5, …, 1000
    truth = {
        "count": 2001,
        "iqr": 500,
        "maximum": 1000,
        "mean": 500,
        "median": 500,
        "minimum": 0,
        "total": 1_000_500,
        "variance": 83_417.5,
        "stddev": 288.8,
        "quantile": 250,
        "kth_largest": 999.5,
        "kth_smallest": 1,
        "trimmed_mean": 500,
        "winsorized_mean": 500,
    }
    for name, parameter in [*((name, None) for name in PLAIN), *WITH_PARAMETER]:
        function = getattr(idios, name)
        own = [] if parameter is None else [parameter]
        found = function(values, *own, epsilon=40, step="0.5", bounds=(0, 1000), neighbours=neighbours, **protection)
        assert found == pytest.approx(truth[name], rel=0.03, abs=5), name


def test_the_level_is_differential_unless_another_is_named() -> None:
    for name in [*PLAIN, *(name for name, _ in WITH_PARAMETER), "mode", "histogram"]:
        assert inspect.signature(getattr(idios, name)).parameters["protection"].default == "differential"
    with pytest.raises(Unanswerable, match="at least 101 records"):
        idios.median([1, 2, 3], epsilon=1, nullable=False)
    with pytest.raises(Unanswerable, match="k ≥ 10"):
        idios.kth_largest([1, 2, 3], 2, epsilon=1)


def test_plain_numbers() -> None:
    assert isinstance(idios.maximum(np.arange(50), epsilon=1, bounds=(0, 100)), int)
    assert isinstance(idios.iqr(np.arange(150.0), epsilon=4), float)
    assert isinstance(idios.median(np.arange(150), epsilon=4), float)
    assert isinstance(idios.count([1.0], epsilon=1), int)


def test_answers_stay_within_public_bounds() -> None:
    for _ in range(30):
        assert 0 <= idios.maximum([5, 6], epsilon="0.001", bounds=(0, 10)) <= 10
        assert idios.count([1.0], epsilon="0.001") >= 0


def test_without_bounds_what_peers_cannot_answer() -> None:
    values = np.random.default_rng(1).lognormal(10, 2, 5001)
    assert idios.median(values, epsilon=1, protection="individual") == pytest.approx(np.median(values), rel=0.05)
    assert idios.kth_largest(values, 2, epsilon=5, protection="individual") > np.median(values)
    private = idios.median(values, epsilon=1, protection="differential")
    assert private == pytest.approx(np.median(values), rel=0.1)


@pytest.mark.filterwarnings("ignore::idios.NoAnswer")
def test_selections_too_small_are_none() -> None:
    assert idios.median([], epsilon=1, protection="individual") is None
    assert idios.median([1, 2], epsilon=1, protection="individual") is None
    assert idios.kth_largest([1, 2, 3], 7, epsilon=1, protection="individual") is None
    assert idios.kth_largest([1, 2, 3], 7, epsilon=1, bounds=(0, 5), protection="individual") is None
    assert [idios.median([1, 2, 3], epsilon="0.1", protection="differential") for _ in range(20)].count(None) > 15
    assert [idios.median([], epsilon="0.1", protection="differential", bounds=(0, 5)) for _ in range(20)].count(
        None
    ) > 15


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf, "much", None, "0", "1_0", "\uff11", "0x1"])
def test_a_bad_epsilon(epsilon: object) -> None:
    with pytest.raises(InvalidInput, match="epsilon must be"):
        idios.median([1, 2, 3], epsilon=epsilon)
    with pytest.raises(InvalidInput, match="epsilon must be"):
        idios.mode(["a"], ["a"], epsilon=epsilon)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: idios.median([1]), "'epsilon'; it is called as idios.median(values, epsilon=…)"),
        (lambda: idios.histogram(["a"], ["a"]), "idios.histogram() missing a required"),
        (lambda: idios.quantile([1], epsilon=1), "called as idios.quantile(values, q, epsilon=…)"),
        (lambda: idios.mode(["a"], ["a"], epsilon=1, eps=2), "idios.mode() got an unexpected keyword argument 'eps'"),
        (lambda: idios.stddev([1], 2, epsilon=1), "idios.stddev() too many positional arguments"),
    ],
)
def test_a_wrong_call_names_the_public_function(call: Callable[[], object], message: str) -> None:
    with pytest.raises(TypeError, match=re.escape(message)):
        call()


def test_none_says_why_once_and_tells_nothing_else() -> None:
    said = set()
    for values in ([1, math.nan, 3], [1.0, 2.0], [], [math.nan] * 3, pa.array([None, None], pa.int64())):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("default")
            for _ in range(3):
                assert idios.median(values, epsilon=1) is None
        (only,) = caught
        assert only.category is idios.NoAnswer
        assert only.filename == __file__
        said.add(str(only.message))
    (told,) = said  # the same words whatever the values
    assert "idios.median is None: too few values" in told
    assert "NaN" in told


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: idios.total(np.arange(9), epsilon=1), "at least 86 records, or with a greater epsilon"),
        (lambda: idios.mean(np.arange(9), epsilon=1, bounds=(0, None)), "at least 86 records"),
        (lambda: idios.trimmed_mean(np.arange(9), 0, epsilon=1), "at least 86 records"),
        (lambda: idios.variance(np.arange(9), epsilon=1), "at least 86 records"),
        (lambda: idios.maximum([1, 2], epsilon=1, protection="individual"), "kth_largest with k ≥ 2"),
        (lambda: idios.minimum([1, 2], epsilon=1, protection="individual"), "kth_smallest with k ≥ 2"),
        (lambda: idios.quantile([1, 2], 1, epsilon=1), "strictly between 0 and 1"),
        (lambda: idios.kth_largest([1, 2], 3, epsilon=1, protection="group", group=5), "k ≥ 6"),
        (
            lambda: idios.median(np.arange(9), epsilon=1, protection="differential"),
            "at least 101 records, or with epsilon = 12.5 or more",
        ),
        (
            lambda: idios.kth_largest([1, 2], 3, epsilon=1, protection="differential"),
            "k ≥ 10",
        ),
    ],
)
def test_what_nobody_could_answer_names_what_would_do(call: object, message: str) -> None:
    with pytest.raises(Unanswerable, match=message):
        call()  # type: ignore[operator]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"step": 0}, "step must be greater than 0"),
        ({"step": "fine"}, "step must be a finite number"),
        ({"step": "1e-300"}, "between 1e-100 and 1e100"),
        ({"bounds": (3, 1)}, "lower ≤ upper"),
        ({"bounds": 7}, "a pair"),
        ({"neighbours": "swap"}, '"replace" or "add-remove"'),
        ({"protection": "total"}, '"individual", "group" or "differential"'),
        ({"protection": "group"}, "needs group"),
        ({"group": 3}, "group = 3 belongs"),
        ({"protection": "group", "group": 0}, "at least 1"),
        ({"centre": "far"}, "centre must be"),
        ({"floor": -1}, "floor must be at least 0"),
    ],
)
def test_bad_options(options: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        idios.median([1, 2, 3], epsilon=1, **options)


def test_bad_parameters() -> None:
    for call in (
        lambda: idios.quantile([1], 1.5, epsilon=1),
        lambda: idios.quantile([1], "half", epsilon=1),
        lambda: idios.kth_largest([1], 0, epsilon=1),
        lambda: idios.kth_smallest([1], 1.5, epsilon=1),
        lambda: idios.trimmed_mean([1], 0.5, epsilon=1),
        lambda: idios.winsorized_mean([1], -0.1, epsilon=1),
        lambda: idios.mode(["a"], [], epsilon=1),
        lambda: idios.mode(["a"], ["a"], epsilon=1, bounds=(0, 1)),
    ):
        with pytest.raises(InvalidInput):
            call()


@pytest.mark.filterwarnings("ignore::idios.NoAnswer")
@settings(max_examples=50)
@given(st.lists(st.one_of(st.integers(10**6, 10**7), st.just("x"), st.none()), max_size=5), st.data())
def test_no_message_contains_a_value(values: list[object], data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(PLAIN))
    bounds = data.draw(st.sampled_from([None, (0, 5), (9, 2)]))
    epsilon = data.draw(st.sampled_from([1, 0, "1/2"]))
    message = ""
    try:
        getattr(idios, name)(values, epsilon=epsilon, bounds=bounds)
    except IdiosError as error:
        message = str(error)
    assert not any(str(v) in message for v in values if isinstance(v, int))


def test_far_beyond_floats() -> None:
    assert isinstance(idios.median([1e308, -1e308] * 5, epsilon="0.001", protection="individual"), float)
    with pytest.raises(InvalidInput, match="denominator of at most 1000"):
        idios.quantile(np.array([3, 9]), 1 - Fraction(1, 10**400), bounds=(None, 10), epsilon=1)
    with pytest.raises(TypeError, match="neighbors"):
        idios.mode(["a"], ["a"], epsilon=1, neighbors="replace")


def test_mode_and_histogram() -> None:
    values = ["a"] * 500 + ["b"] * 20 + [None, "undeclared"]
    assert idios.mode(values, ["a", "b", "c"], epsilon=1) == "a"
    counts = idios.histogram(values, ["a", "b", "c"], epsilon=5)
    assert counts == pytest.approx([500, 20, 0], abs=10)
    assert all(isinstance(count, int) for count in counts)


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_a_histogram_of_bins_is_that_of_numpy_at_a_huge_epsilon(neighbours: str) -> None:
    ages = np.random.default_rng(1).integers(-20, 120, 1000)
    for values in (ages, ages.tolist(), ages / 4, pd.Series(ages, dtype="Int64"), pl.Series(ages), pa.array(ages)):
        for bins in ([0, 20, 40], [-7.5, 0.25, 3, 99], np.arange(0, 100, 10), [10, 11]):
            counts = idios.histogram(values, bins=bins, epsilon=10**6, neighbours=neighbours)
            assert counts == np.histogram(np.asarray(values), bins)[0].tolist()
            assert all(type(count) is int for count in counts)


def test_a_histogram_of_bins_is_noisy() -> None:
    assert len({tuple(idios.histogram([5] * 50, bins=[0, 10], epsilon=0.1, nullable=False)) for _ in range(20)}) > 5


@pytest.mark.parametrize("codes", [[0, 20, 40], (1.5, 2), np.array([1, 2]), [Decimal(1)], [np.int8(1)], pd.Series([1])])
def test_numbers_are_binned_or_turned_into_text(codes: object) -> None:
    with pytest.raises(
        InvalidInput, match=r"for intervals write bins=\[0, 20, 40\]; to count exact codes, turn them into"
    ):
        idios.histogram([1, 2, 3], codes, epsilon=1)
    assert idios.mode([1] * 90 + [2] * 5, [1, 2], epsilon=5) == 1


@pytest.mark.parametrize(
    ("arguments", "options", "told"),
    [
        ([], {}, "either categories or bins"),
        ([["a"]], {"bins": [0, 1]}, "either categories or bins"),
        ([["a"]], {"step": 1}, "step belongs to columns of numbers"),
        ([["a"]], {"bounds": (0, 1)}, "bounds belongs to columns of numbers"),
        ([], {"bins": 10}, "public edges"),
        ([], {"bins": [0, 1], "bounds": (5, 2)}, "lower ≤ upper"),
    ],
)
def test_what_a_histogram_cannot_count(arguments: list[object], options: dict[str, object], told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        idios.histogram([1, 2], *arguments, epsilon=1, **options)


@pytest.mark.parametrize(
    ("values", "categories"),
    [
        ([np.int64(1)] * 99, [np.int64(1), 2]),
        (np.array(["a"] * 99), np.array(["a", "b"])),
        (pd.Series([1] * 99 + [None]), pd.Series([1, 2], index=[5, 6])),
        (pd.Series(pd.to_datetime(["2020-01-01"] * 99)), [pd.Timestamp("2020-01-01"), pd.Timestamp("2021-01-01")]),
        (pa.array([True] * 99), pa.array([True, False])),
        (pl.Series(["a"] * 99), ("a", "b")),
        ([0.5] * 99, [Decimal("0.50"), Decimal("0.6")]),
    ],
)
def test_the_mode_is_the_category_as_it_was_written(values: object, categories: object) -> None:
    expected = categories.to_pylist()[0] if isinstance(categories, pa.Array) else next(iter(categories))  # type: ignore[call-overload]
    found = idios.mode(values, categories, epsilon=10)
    assert found == expected
    assert type(found) is type(expected)


def test_values_of_another_type_than_the_categories_are_told() -> None:
    for function in (idios.mode, idios.histogram):
        with pytest.raises(InvalidInput, match="type number and the categories of the type text"):
            function(np.array([1, 2]), ["1", "2"], epsilon=1)


FAR = [Decimal("1E+500"), -(10**400), Fraction(10**900, 7), Decimal("-1E-500"), 1e308, np.longdouble("-1e4000")]
PROTECTIONS = [{"protection": "individual"}, {"protection": "group", "group": 2}, {}]


@pytest.mark.filterwarnings("ignore::idios.NoAnswer")
@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.one_of(st.integers(), st.decimals(), st.fractions(), st.floats(), st.none()), max_size=8),
    st.lists(st.sampled_from(FAR), max_size=8),
    st.sampled_from(["replace", "add-remove"]),
    st.sampled_from(PROTECTIONS),
)
def test_no_number_in_a_list_is_too_large_for_any_function(
    near: list[object], far: list[object], neighbours: str, protection: dict[str, object]
) -> None:
    values = [*far, *near]
    common: dict[str, object] = {"epsilon": 3, "neighbours": neighbours, **protection}
    for name in PLAIN:
        found = getattr(idios, name)(values, step="0.01", bounds=(0, 100), **common)
        assert found is None or math.isfinite(found)
    for step in ("1e-100", "0.01", 10):
        for name in ("median", "iqr", "count"):
            getattr(idios, name)(values, step=step, **common)
        for name, own in (("quantile", 0.25), ("trimmed_mean", 0.4), ("winsorized_mean", 0.4)):
            getattr(idios, name)(values, own, step=step, **common)
        idios.kth_largest(values, 40, step=step, bounds=(0, None), **common)
        idios.maximum(values, step=step, bounds=(None, 100), **common)
    assert all(isinstance(count, int) for count in idios.histogram(values, bins=[0, 1, 10**500], step=1, **common))


def test_the_floor_keeps_ties_from_making_answers_exact() -> None:
    ties = [7] * 100
    assert {idios.median(ties, epsilon=1, floor=0, protection="individual") for _ in range(20)} == {7}
    assert len({idios.median(ties, epsilon=1, protection="individual") for _ in range(20)}) > 2


def test_epsilon_is_exact_to_the_last_digit() -> None:
    from idios.core.calibration import Added, Protection, calibrate, choose
    from idios.core.domain import Domain
    from idios.core.neighbours import Moves, Neighbours
    from idios.core.statistics import Count
    from idios.core.summary import Summary

    moves = Moves(Neighbours.ADD_REMOVE, 5)
    choice = choose(Count(), Domain(), moves.neighbours, False, Protection(), Fraction("0.1"))
    mechanism = calibrate(choice, Count(), Summary(Domain(), moves), Protection())
    assert isinstance(mechanism, Added)
    assert mechanism.noise.scale == 10


@pytest.mark.parametrize("group", [[1] * 40, {"size": 40, "growth": "flat"}])
def test_flat_groups_are_noisier_and_counts_too(group: object) -> None:
    values, options = [3] * 500 + [None] * 500, {"epsilon": 20, "protection": "group"}
    assert idios.count(values, group=40, **options) == 500  # type: ignore[arg-type]
    assert len({idios.count(values, group=group, **options) for _ in range(20)}) > 1  # type: ignore[arg-type]
    letters = ["a"] * 500 + ["b"] * 499
    few = idios.histogram(letters, ["a", "b"], group=40, **options)  # type: ignore[arg-type]
    assert few == [500, 499]
    assert len({tuple(idios.histogram(letters, ["a", "b"], group=group, **options)) for _ in range(20)}) > 1  # type: ignore[arg-type]
    assert {idios.mode(letters, ["a", "b"], group=group, **options) for _ in range(60)} == {"a", "b"}  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="must not decrease"):
        idios.median(values, group=[2, 1], **options)  # type: ignore[arg-type]

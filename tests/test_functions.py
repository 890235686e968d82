"""The array API: what a user types, and what is refused."""

from __future__ import annotations

import inspect
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import idios
from idios import IdiosError
from idios.errors import InvalidInput, Unanswerable

PLAIN = ["count", "iqr", "maximum", "mean", "median", "minimum", "total", "variance"]
WITH_PARAMETER = [("quantile", 0.25), ("kth_largest", 2), ("kth_smallest", 3), ("trimmed_mean", 0.1)]
WITH_PARAMETER += [("winsorized_mean", 0.1)]
KEYWORDS = ["epsilon", "step", "bounds", "neighbours", "protection", "group", "delta", "floor", "nullable"]


def test_the_public_names_are_these() -> None:
    functions = {*PLAIN, *(name for name, _ in WITH_PARAMETER), "mode", "histogram"}
    assert set(idios.__all__) == {*functions, "IdiosError", "TrustedParty", "connect"}
    for name in functions:
        shown = list(inspect.signature(getattr(idios, name)).parameters)
        assert shown[-len(KEYWORDS) :] == KEYWORDS
        assert getattr(idios, name).__doc__


@pytest.mark.parametrize("protection", [{}, {"protection": "group", "group": 3}, {"protection": "differential"}])
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


def test_plain_numbers() -> None:
    assert isinstance(idios.maximum(np.arange(50), epsilon=1, bounds=(0, 100)), int)
    assert isinstance(idios.iqr(np.arange(50.0), epsilon=1), float)
    assert isinstance(idios.median(np.arange(50), epsilon=1), float)
    assert isinstance(idios.count([1.0], epsilon=1), int)


def test_answers_stay_within_public_bounds() -> None:
    for _ in range(30):
        assert 0 <= idios.maximum([5, 6], epsilon="0.001", bounds=(0, 10)) <= 10
        assert idios.count([1.0], epsilon="0.001") >= 0


def test_without_bounds_what_peers_cannot_answer() -> None:
    values = np.random.default_rng(1).lognormal(10, 2, 5001)
    assert idios.median(values, epsilon=1) == pytest.approx(np.median(values), rel=0.05)
    assert idios.kth_largest(values, 2, epsilon=5) > np.median(values)
    private = idios.median(values, epsilon=1, protection="differential", delta=1e-6)
    assert private == pytest.approx(np.median(values), rel=0.1)


def test_selections_too_small_are_none() -> None:
    assert idios.median([], epsilon=1) is None
    assert idios.median([1, 2], epsilon=1) is None
    assert idios.kth_largest([1, 2, 3], 7, epsilon=1) is None
    assert idios.kth_largest([1, 2, 3], 7, epsilon=1, bounds=(0, 5)) is None
    assert idios.median([1, 2, 3], epsilon=1, protection="differential", delta=1e-6) is None
    assert idios.median([], epsilon=1, protection="differential", bounds=(0, 5)) is not None


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf, "much", None, "0"])
def test_a_bad_epsilon(epsilon: object) -> None:
    with pytest.raises(InvalidInput, match="epsilon must be"):
        idios.median([1, 2, 3], epsilon=epsilon)
    with pytest.raises(InvalidInput, match="epsilon must be"):
        idios.mode(["a"], ["a"], epsilon=epsilon)


def test_epsilon_is_asked_for() -> None:
    with pytest.raises(TypeError, match="epsilon"):
        idios.median([1, 2, 3])
    with pytest.raises(TypeError, match="epsilon"):
        idios.histogram(["a"], ["a"])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: idios.total([1, 2], epsilon=1), "trimmed_mean, winsorized_mean or median"),
        (lambda: idios.mean([1, 2], epsilon=1), "trimmed_mean, winsorized_mean or median"),
        (lambda: idios.mean([1, 2], epsilon=1, bounds=(0, None)), "needs bounds"),
        (lambda: idios.trimmed_mean([1, 2], 0, epsilon=1), "needs bounds"),
        (lambda: idios.maximum([1, 2], epsilon=1), "kth_largest with k ≥ 2"),
        (lambda: idios.minimum([1, 2], epsilon=1), "kth_smallest with k ≥ 2"),
        (lambda: idios.variance([1, 2], epsilon=1), "iqr"),
        (lambda: idios.quantile([1, 2], 1, epsilon=1), "strictly between 0 and 1"),
        (lambda: idios.kth_largest([1, 2], 3, epsilon=1, protection="group", group=5), "k ≥ 6"),
        (lambda: idios.median([1, 2], epsilon=1, protection="differential"), "declare bounds or delta"),
        (lambda: idios.mean([1, 2], epsilon=1, protection="differential"), "Declare bounds, or ask for trimmed"),
        (
            lambda: idios.kth_largest([1, 2], 3, epsilon=1, protection="differential", delta=1e-6),
            "k ≥ 29",
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
        ({"delta": 1e-6}, "delta = 1e-06 belongs"),
        ({"protection": "differential", "delta": 1}, "less than 1"),
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
    assert isinstance(idios.median([1e308, -1e308] * 5, epsilon="0.001"), float)
    assert idios.quantile(np.array([3, 9]), 1 - Fraction(1, 10**400), bounds=(None, 10), epsilon=1) is None
    with pytest.raises(InvalidInput, match="at least 1e-100"):
        idios.median([1], epsilon=1, protection="differential", delta="1e-300")
    with pytest.raises(TypeError, match="neighbors"):
        idios.mode(["a"], ["a"], epsilon=1, neighbors="replace")


def test_mode_and_histogram() -> None:
    values = ["a"] * 500 + ["b"] * 20 + [None, "undeclared"]
    assert idios.mode(values, ["a", "b", "c"], epsilon=1) == "a"
    counts = idios.histogram(values, ["a", "b", "c"], epsilon=5)
    assert counts == pytest.approx([500, 20, 0], abs=10)
    assert all(isinstance(count, int) for count in counts)


def test_the_floor_keeps_ties_from_making_answers_exact() -> None:
    ties = [7] * 100
    assert {idios.median(ties, epsilon=1, floor=0) for _ in range(20)} == {7}
    assert len({idios.median(ties, epsilon=1) for _ in range(20)}) > 10


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

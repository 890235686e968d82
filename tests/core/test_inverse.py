"""When the inverse-sensitivity mechanism answers: what is told beforehand is what its law says."""

from __future__ import annotations

from fractions import Fraction
from unittest.mock import Mock

import numpy as np
import pytest

from idios.backends.arrays import read_numbers
from idios.core import inverse
from idios.core.calibration import Choice, Level, Method, Protection, calibrate
from idios.core.distributions import InverseSensitivity
from idios.core.domain import Domain
from idios.core.inverse import count_survived, describe_null_risk, find_largest_distance, find_needed_size, make_measure
from idios.core.neighbours import Neighbours
from idios.core.statistics import InterquartileRange, KthLargest, KthSmallest, Median, Quantile, Statistic, TrimmedMean

STATISTICS = [Median(), Quantile(Fraction(1, 4)), InterquartileRange(), TrimmedMean(Fraction(1, 10))]


def refusal_probability(
    statistic: Statistic, neighbours: Neighbours, size: int, epsilon: Fraction, refusal: int
) -> float:
    values = np.random.default_rng(size).lognormal(10, 1, size).round().tolist()
    column = read_numbers(values, nullable=False, step=1)
    distance = find_largest_distance(make_measure(statistic, Domain(), 10**6), epsilon, refusal)
    choice = Choice(Method.INVERSE, distance, epsilon, refusal=refusal)
    summary = column.summarise(statistic, neighbours, distance)
    mechanism = calibrate(choice, statistic, summary, Protection(Level.DIFFERENTIAL))
    assert isinstance(mechanism, InverseSensitivity)
    return mechanism.refusal_probability


@pytest.mark.parametrize("refusal", [1000, 8000])
@pytest.mark.parametrize("epsilon", [Fraction(1), Fraction(1, 4)])
@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize("statistic", STATISTICS, ids=str)
def test_the_needed_size_is_that_from_which_on_answers_are_nearly_certain(
    statistic: Statistic, neighbours: Neighbours, epsilon: Fraction, refusal: int
) -> None:
    needed = find_needed_size(statistic, epsilon, refusal, neighbours)
    assert refusal_probability(statistic, neighbours, needed, epsilon, refusal) < 0.01
    if not (isinstance(statistic, TrimmedMean) and neighbours is Neighbours.ADD_REMOVE):  # twice what it takes
        assert refusal_probability(statistic, neighbours, needed // 2, epsilon, refusal) > 0.9


@pytest.mark.parametrize("epsilon", [Fraction(1), Fraction(1, 4)])
@pytest.mark.parametrize("statistic", STATISTICS, ids=str)
def test_where_null_is_called_likely_it_is(statistic: Statistic, epsilon: Fraction) -> None:
    needed = find_needed_size(statistic, epsilon, 1000)
    said = {
        size: describe_null_risk(statistic, Neighbours.REPLACE, size, True, epsilon, 1000)
        for size in range(needed // 5, needed + 1, max(1, needed // 20))
    }
    likely = [size for size, risk in said.items() if risk.startswith("NULL is likely")]
    assert 0 < len(likely) < len(said)
    for size in (likely[0], likely[-1]):
        assert refusal_probability(statistic, Neighbours.REPLACE, size, epsilon, 1000) >= 0.5


def test_what_is_said_depends_on_what_is_public() -> None:
    def say(size: int | None, whole: bool) -> str:
        return describe_null_risk(Median(), Neighbours.REPLACE, size, whole, Fraction(1), 1000)

    assert say(85, True) == ""
    assert say(84, True).endswith("from about 85 values on, and there are 84")
    assert say(84, False).endswith("from about 85 values on, and there are at most 84")
    assert say(85, False) == say(None, True) == say(None, False)


def test_what_no_table_could_answer_is_found_out_in_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """An analyst may name any k: how many records it takes is told before anything is paid."""
    for statistic in (KthLargest(10**12), KthSmallest(10**300), TrimmedMean(Fraction(1, 10**300))):
        counted = Mock(side_effect=count_survived)
        monkeypatch.setattr(inverse, "count_survived", counted)
        needed = find_needed_size(statistic, Fraction(1), 1001)
        assert counted.call_count <= 130
        assert needed <= 2**60
        assert (needed == 2**60) == (statistic != KthLargest(10**12))

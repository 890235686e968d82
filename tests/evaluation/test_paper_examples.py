"""The paper's own examples, with its numbers, as the package answers them."""

from __future__ import annotations

from fractions import Fraction

import pytest

import idios
from idios.core.calibration import Added, Level, Protection, calibrate, choose
from idios.core.domain import Domain
from idios.core.multiples import linear_multiples
from idios.core.neighbours import Moves, Neighbours
from idios.core.statistics import KthLargest, Maximum, Median, Statistic
from idios.evaluation.noises import Admissible, Laplace, paper_pair
from tests import oracle
from tests.oracle import Space, Table
from tests.summaries import summarise

Values = tuple[int, ...]
EPSILON = Fraction(1, 2)
HALF = Fraction(1, 2)
MEDIAN, UNBOUNDED = Median(), Domain()
UNIT = MEDIAN.resolution()
"""Steps of the answer's grid in one of the column."""

D1: Values = (0, 0, 0, 0, 1)
D2: Values = (0, 0, 0, 1, 1)
D3: Values = (0,) * 9 + (1,) * 90
D4: Values = (0,) * 49 + (1,) * 50
BINARY = [
    pytest.param(D1, 0, 0, id="D1"),
    pytest.param(D2, 0, 1, id="D2"),
    pytest.param(D3, 1, 0, id="D3"),
    pytest.param(D4, 1, 1, id="D4"),
]


def zeros_and_ones(zeros: int, ones: int) -> Values:
    return (0,) * zeros + (1,) * ones


def mechanism(values: Values, protection: Protection, domain: Domain) -> Added:
    """What answers MEDIAN on a whole table under replace, the paper's setting."""
    moves = Moves(Neighbours.REPLACE, len(values))
    choice = choose(Median(), domain, moves.neighbours, moves.whole, protection, EPSILON)
    found = calibrate(choice, Median(), summarise(values, Median(), domain, moves, choice.distance), protection)
    assert isinstance(found, Added)
    return found


def local_sensitivity(values: Values, statistic: Statistic = MEDIAN, domain: Domain = UNBOUNDED) -> Fraction:
    """In the column's units, from the package's envelope."""
    moves = Moves(Neighbours.REPLACE, len(values))
    envelope = statistic.envelope(summarise(values, statistic, domain, moves, 1), 1)
    return Fraction(envelope.local_sensitivity) / statistic.resolution()


def enumerated_medians(values: Values) -> set[Fraction | None]:
    """The medians of all neighbours."""
    space = Space([], notion="replace", selection=False, domain=(0, 1), bounded=True, reach=0)
    return {oracle.quantile(other.values, HALF) for other in space.neighbours(Table(values))}


# Section 4.2: what iDP masks and what it does not.


@pytest.mark.parametrize("domain", [Domain(), Domain(lower=0, upper=1)], ids=["unbounded", "bounded"])
@pytest.mark.parametrize(("values", "median", "sensitivity"), BINARY)
def test_binary_tables(values: Values, median: int, sensitivity: int, domain: Domain) -> None:
    assert oracle.quantile(values, HALF) == median
    assert enumerated_medians(values) == ({median} if sensitivity == 0 else {0, 1})
    assert local_sensitivity(values, domain=domain) == sensitivity


@pytest.mark.parametrize(("values", "median", "sensitivity"), BINARY)
def test_to_the_letter_only_what_one_record_can_move_is_masked(values: Values, median: int, sensitivity: int) -> None:
    answer = mechanism(values, Protection(Level.INDIVIDUAL, floor=Fraction(0)), Domain())
    assert answer.value == median * UNIT
    assert answer.noise.scale == sensitivity * UNIT / EPSILON
    assert (answer.pmf(answer.value) == 1) == (sensitivity == 0)
    if sensitivity == 0:
        answers = {
            idios.median(list(values), epsilon=EPSILON, floor=0, nullable=False, bounds=bounds, protection="individual")
            for bounds in (None, (0, 1))
            for _ in range(5)
        }
        assert answers == {median}


@pytest.mark.parametrize(("values", "median", "sensitivity"), BINARY)
def test_by_default_every_answer_is_noisy_and_alike(values: Values, median: int, sensitivity: int) -> None:
    answer = mechanism(values, Protection(Level.INDIVIDUAL), Domain())
    assert answer.value == median * UNIT
    assert answer.noise.scale == UNIT / EPSILON  # one step of the column, here the global sensitivity
    assert answer.pmf(answer.value) < 0.2


@pytest.mark.parametrize(("values", "group"), [(D1, 2), (D2, 1), (D3, 41), (D4, 1)])
def test_the_smallest_group_that_can_move_the_median(values: Values, group: int) -> None:
    """Section 4.3: what a group of that size needs, smaller ones do not."""

    def scale(size: int) -> Fraction:
        level = Level.GROUP if size > 1 else Level.INDIVIDUAL
        return mechanism(values, Protection(level, linear_multiples(size), floor=Fraction(0)), Domain()).noise.scale

    if group > 1:
        assert scale(group - 1) == 0
    assert scale(group) == UNIT / (group * EPSILON)


# Section 2.2: global and local sensitivity of the median of binary records.


@pytest.mark.parametrize("m", [1, 2, 3, 10, 49])
def test_the_table_of_section_two(m: int) -> None:
    """X has m+2 zeros and m−1 ones, X′ one zero less and one 1 more."""
    for values, sensitivity in ((zeros_and_ones(m + 2, m - 1), 0), (zeros_and_ones(m + 1, m), 1)):
        assert oracle.quantile(values, HALF) == 0
        assert enumerated_medians(values) == ({0} if sensitivity == 0 else {0, 1})
        assert local_sensitivity(values) == sensitivity


@pytest.mark.parametrize("m", [1, 2, 3, 10])
def test_only_two_binary_tables_have_a_median_that_moves(m: int) -> None:
    n = 2 * m + 1
    for ones in range(n + 1):
        values = zeros_and_ones(n - ones, ones)
        moving = ones in (m, m + 1)
        assert local_sensitivity(values) == moving
        assert (len(enumerated_medians(values)) == 2) == moving
    assert oracle.quantile(zeros_and_ones(m + 1, m), HALF) == 0
    assert oracle.quantile(zeros_and_ones(m, m + 1), HALF) == 1


# Section 6.1: the confidence intervals of the noise, at ε = 1 and sensitivities of 1.


def test_the_table_of_confidence_intervals() -> None:
    # 2.996, 101.65 and 34.22 before the paper's rounding
    assert Laplace(1).central_interval(0.95) == pytest.approx((-3, 3), abs=0.005)
    for gamma, half_width in ((2, 101.7), (3, 34.2)):
        alpha, _ = paper_pair(gamma, 1)
        interval = Admissible(gamma, 1 / alpha).central_interval(0.95)
        assert interval == pytest.approx((-half_width, half_width), abs=0.06)


# Section 6.2: the maximum, and the second maximum that needs no bounds.


def test_the_maximum_and_the_second_maximum() -> None:
    values = (1, 4, 6, 9)
    upper = 20
    assert local_sensitivity(values, Maximum(), Domain(lower=0, upper=upper)) == max(upper - 9, 9 - 6)
    assert local_sensitivity(values, KthLargest(2)) == max(9 - 6, 6 - 4)
    space = Space([], notion="replace", selection=False, domain=(0, upper), bounded=False, reach=0)
    seconds = {other.values[-2] for other in space.neighbours(Table(values))}
    assert max(abs(second - 6) for second in seconds) == 3
    with pytest.raises(idios.IdiosError, match="kth_largest with k ≥ 2"):
        idios.maximum(list(values), epsilon=1, protection="individual")

"""The paper's definition and propositions on groups, each as a test of that name, over all small tables.

Section 4.3 defines (ε_1, …, ε_n)-group differential privacy; section 4.4 composes; section 5 adds noise.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations_with_replacement, pairwise, product

import pytest

from idios.core.accounting import compose_choice, compose_parallel, compose_sequential
from idios.core.calibration import Added, Level, Protection, calibrate, choose
from idios.core.distributions import DiscreteLaplace
from idios.core.domain import Domain
from idios.core.guarantee import Guarantee
from idios.core.multiples import Multiples, declare_multiples, linear_multiples
from idios.core.neighbours import Moves, Neighbours
from idios.core.statistics import Median, Statistic, Sum
from tests.summaries import summarise

Values = tuple[int, ...]
DOMAIN = Domain(lower=0, upper=3)
EPSILON = Fraction(1, 2)
TABLES: list[Values] = list(combinations_with_replacement(range(4), 5))
VECTORS = [
    linear_multiples(3),
    declare_multiples([1, 1, 1]),
    declare_multiples([1, "1.5", 2]),
    declare_multiples([1, 1, 5]),
]
GROUP = pytest.mark.parametrize("multiples", VECTORS, ids=lambda multiples: str([str(m) for m in multiples]))


def distance(one: Values, other: Values) -> int:
    """How many records have to be replaced."""
    rest = list(other)
    for value in one:
        if value in rest:
            rest.remove(value)
    return len(rest)


def mechanism(values: Values, statistic: Statistic, multiples: Multiples) -> Added:
    """Noise fitted to the data, without a floor: the paper to the letter."""
    moves = Moves(Neighbours.REPLACE, len(values))
    protection = Protection(Level.GROUP, multiples, floor=Fraction(0), fineness=2)
    choice = choose(statistic, DOMAIN, moves.neighbours, True, protection, EPSILON)
    made = calibrate(choice, statistic, summarise(values, statistic, DOMAIN, moves, choice.distance), protection)
    assert isinstance(made, Added)
    return made


def loss(made: Added, statistic: Statistic, other: Values) -> Fraction:
    """max over answers s of |log Pr(κ(D) = s) − log Pr(κ(D′) = s)|, κ calibrated at D: no set of answers loses more."""
    there = int(statistic.place(statistic.define(other), 2))  # type: ignore[arg-type]
    if made.noise.scale == 0:
        assert there == made.value
        return Fraction(0)
    return made.noise.log_ratio(there - made.value)


def worst(values: Values, statistic: Statistic, multiples: Multiples) -> list[Fraction]:
    made, found = mechanism(values, statistic, multiples), [Fraction(0)] * len(multiples)
    for other in TABLES:
        if 0 < (apart := distance(values, other)) <= len(multiples):
            found[apart - 1] = max(found[apart - 1], loss(made, statistic, other))
    return found


@GROUP
@pytest.mark.parametrize("statistic", [Median(), Sum()], ids=lambda statistic: statistic.name)
def test_definition_of_group_differential_privacy(statistic: Statistic, multiples: Multiples) -> None:
    """For any D′ at distance i the probabilities differ by at most e^{ε_i}, and by as much for some D′ and i."""
    for values in TABLES:
        ratios = [
            found / (multiple * EPSILON)
            for found, multiple in zip(worst(values, statistic, multiples), multiples, strict=True)
        ]
        assert max(ratios) == (1 if mechanism(values, statistic, multiples).noise.scale else 0)


@pytest.mark.parametrize("sensitivity", [1, 2, 5])
def test_differential_privacy_grows_linearly_with_the_group(sensitivity: int) -> None:
    """Section 4.3: ε-DP limits what is learned of n records by e^{nε}, which is ε_i = iε."""
    noise = DiscreteLaplace(sensitivity / EPSILON)
    losses = tuple(noise.log_ratio(size * sensitivity) for size in (1, 2, 3))
    assert losses == tuple(size * EPSILON for size in (1, 2, 3))
    dp = Guarantee(Level.DIFFERENTIAL, EPSILON, Neighbours.REPLACE)
    assert tuple(dp.protect(size) for size in (1, 2, 3)) == losses


def test_individual_differential_privacy_does_not_chain() -> None:
    """Section 4.3: κ is calibrated on D_1, κ′ on D_2, so that nothing follows for D_1 and D_3."""
    first, second, third = (0, 0, 0, 0, 3), (0, 0, 0, 3, 3), (0, 0, 3, 3, 3)
    kappa, kappa_2 = (mechanism(values, Median(), linear_multiples(1)) for values in (first, second))
    assert loss(kappa, Median(), second) == 0
    assert loss(kappa_2, Median(), third) == EPSILON
    assert kappa.noise.scale == 0  # and two records move the median: told with certainty
    assert Median().define(third) != Median().define(first)
    protected = mechanism(first, Median(), linear_multiples(2))
    assert loss(protected, Median(), third) == 2 * EPSILON


@GROUP
def test_sequential_composition(multiples: Multiples) -> None:
    """Two answers lose together, for every D′ at distance i, at most the sum of their ε_i, and it is attained."""
    promise = Guarantee.for_groups([multiple * EPSILON for multiple in multiples], Neighbours.REPLACE)
    both = compose_sequential([promise, promise])
    assert [both.protect(i) for i in range(1, 4)] == [2 * multiple * EPSILON for multiple in multiples]
    for values in TABLES:
        mechanisms = [(mechanism(values, statistic, multiples), statistic) for statistic in (Median(), Sum())]
        for other in TABLES:
            if 0 < (apart := distance(values, other)) <= 3:
                lost = sum((loss(made, statistic, other) for made, statistic in mechanisms), Fraction(0))
                assert lost <= both.protect(apart)


@GROUP
def test_parallel_composition(multiples: Multiples) -> None:
    """Disjoint subsets: parts fixed by position promise what one of them does only where m_i/i never falls.

    The theorem's max(ε_1, ε_2) is about one record. For groups it holds component by component exactly for vectors such
    as (ε, 2ε, …); three records protected like one can be in three parts.
    """
    part = Guarantee.for_groups([multiple * EPSILON for multiple in multiples], Neighbours.REPLACE)
    whole = compose_parallel([part] * 3, fixed_parts=True)
    found = [Fraction(0)] * 3
    for changes in product(range(4), repeat=3):  # of three parts, each with a record or more to change
        if 0 < sum(changes) <= 3:
            lost = sum((part.protect(changed) for changed in changes if changed), Fraction(0))
            found[sum(changes) - 1] = max(found[sum(changes) - 1], lost)
    together = [max(found[: i + 1]) for i in range(3)]
    assert all(lost <= whole.protect(i) for i, lost in enumerate(together, start=1))
    grows_like_dp = all(a / i <= b / (i + 1) for i, (a, b) in enumerate(pairwise(multiples), start=1))
    assert (whole == part) == grows_like_dp


@GROUP
def test_axiom_of_transformation_invariance(multiples: Multiples) -> None:
    """What is computed from an answer, here whether it lies between two numbers, loses no more to any group."""
    for values in TABLES[::8]:
        made = mechanism(values, Median(), multiples)
        if made.noise.scale == 0:
            continue
        for other in TABLES:
            if 0 < (apart := distance(values, other)) <= 3:
                there = Added(int(Median().place(Median().define(other), 2)), made.noise)  # type: ignore[arg-type]
                for first in (-4, 0, 2, 5):
                    p, q = (sum(answer.pmf(s) for s in range(first, first + 4)) for answer in (made, there))
                    bound = 2.718281828459045 ** float(multiples[apart - 1] * EPSILON) * (1 + 1e-9)
                    assert p <= bound * q
                    assert q <= bound * p


def test_privacy_axiom_of_choice() -> None:
    """One of several mechanisms, picked at random, promises every group the weakest of what they promise it."""
    flat, linear = (
        Guarantee.for_groups(vector, Neighbours.REPLACE)
        for vector in ([2 * EPSILON] * 3, [EPSILON * size for size in (1, 2, 3)])
    )
    assert compose_choice([flat, linear]).epsilons == (2 * EPSILON, 2 * EPSILON, 3 * EPSILON)

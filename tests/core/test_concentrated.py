"""Concentrated accounting: what ρ stands for, against decimals and against published figures, and the ρ of choices."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from idios.core.calibration import Choice, Level, Method, Protection, choose
from idios.core.clipping import ClippingPlan
from idios.core.concentrated import (
    Rho,
    add_cells,
    convert_to_epsilon,
    find_largest_rho,
    find_rho,
    pure_rho,
    range_rho,
)
from idios.core.distributions import DiscreteGaussian, DiscreteLaplace
from idios.core.distributions.discrete_gaussian import gaussian_variance
from idios.core.domain import Domain
from idios.core.neighbours import Moves, Neighbours
from idios.core.outer_ranks import RankPlan
from idios.core.statistics import Count, DistinctCount, KthLargest, Mean, Median, Mode, Statistic, Sum, Variance
from idios.errors import InvalidInput
from tests.core.stopping import cut_windows

REPLACE, ADD_REMOVE = Neighbours.REPLACE, Neighbours.ADD_REMOVE
DIFFERENTIAL = Protection(Level.DIFFERENTIAL)
EPSILON = Fraction(1, 20)
DELTA = Fraction(1, 10**6)

# ------------------------------------------------------------------------------------------------------- conversion


def decimal(number: Fraction) -> Decimal:
    return Decimal(number.numerator) / Decimal(number.denominator)


def convert(rho: Fraction, delta: Fraction) -> Decimal:
    """ε(ρ, δ) by its definition, in decimals: the least over a net of orders that is refined around the best."""
    with localcontext(prec=40):
        loss, log_delta = decimal(rho), decimal(delta).ln()

        def at(place: Decimal) -> Decimal:
            order = 1 + place.exp()
            return order * loss + (-log_delta - order.ln()) / (order - 1) + (1 - 1 / order).ln()

        centre, width = (-log_delta / loss).ln() / 2, Decimal(10)
        while width > Decimal("1e-9"):
            centre = min((centre + width * i / 10 for i in range(-10, 11)), key=at)
            width /= 4
        return at(centre)


CASES = [
    (Fraction(rho), Fraction(delta))
    for rho in ("1/100000000", "1/3200", "0.00125", "1/32", "1/8", "0.463", "3", "1000")
    for delta in ("1/10", "1e-6", "1e-12", "1e-300")
]


@pytest.mark.parametrize(("rho", "delta"), CASES, ids=str)
def test_epsilon_is_the_least_one_and_on_the_safe_side(rho: Fraction, delta: Fraction) -> None:
    epsilon, expected = convert_to_epsilon(rho, delta), max(convert(rho, delta), Decimal(0))
    with localcontext(prec=40):
        assert decimal(epsilon) >= expected * (1 - Decimal("1e-16"))
        assert decimal(epsilon) <= expected * (1 + Decimal("2e-11"))


@pytest.mark.parametrize(("epsilon", "delta"), CASES, ids=str)
def test_the_largest_rho_is_on_the_safe_side_and_hardly_more_would_be_too_much(
    epsilon: Fraction, delta: Fraction
) -> None:
    rho = find_largest_rho(epsilon, delta)
    assert rho > 0
    assert convert_to_epsilon(rho, delta) <= epsilon
    assert convert(rho, delta) <= decimal(epsilon) * (1 + Decimal("1e-16"))
    assert convert_to_epsilon(rho * (1 + Fraction(1, 10**7)), delta) > epsilon


@settings(max_examples=60, deadline=None)
@given(st.fractions(0, 100), st.fractions(0, 100), st.fractions(Fraction(1, 10**20), Fraction(1, 2)))
def test_more_rho_is_more_epsilon(one: Fraction, other: Fraction, delta: Fraction) -> None:
    low, high = sorted((one, other))
    least, most = convert_to_epsilon(low, delta), convert_to_epsilon(high, delta)
    assert least <= most * (1 + Fraction(1, 10**10))
    assert most == 0 or find_largest_rho(most, delta) >= high * (1 - Fraction(1, 10**6))
    classic = float(high) + 2 * math.sqrt(float(high) * -math.log(delta))  # Bun, Steinke 2016
    assert float(most) <= classic * (1 + 1e-9)


def test_it_never_promises_more_than_the_discrete_gaussian_keeps() -> None:
    """(ε, δ) of a discrete Gaussian of ρ, exactly: δ(ε) = Pr(L > ε) − e^ε·Pr′(L > ε) ≤ δ."""
    for variance, delta in [(Fraction(4), Fraction(1, 1000)), (Fraction(100), DELTA), (Fraction(900), Fraction(1, 50))]:
        noise = DiscreteGaussian(variance)
        epsilon = convert_to_epsilon(noise.rho(1), delta)
        # L(x) = (1 − 2x)/2σ² > ε where x < ½ − ε·σ²
        last = math.ceil(Fraction(1, 2) - epsilon * variance) - 1
        kept = noise.cdf(last) - math.exp(epsilon) * noise.cdf(last - 1)
        assert 0 < kept <= delta


def test_published_figures() -> None:
    """maths.md, section 12: a hundred questions of 0.05, and how many fit into (5, 10⁻⁶)."""
    assert round(float(convert_to_epsilon(100 * pure_rho(EPSILON), DELTA)), 2) == 2.42
    assert round(float(convert_to_epsilon(100 * range_rho(EPSILON), DELTA)), 2) == 1.14
    most = find_largest_rho(Fraction(5), DELTA)
    count = choose(Count(), Domain(), ADD_REMOVE, True, DIFFERENTIAL, EPSILON)
    median = choose(Median(), Domain(), ADD_REMOVE, True, DIFFERENTIAL, EPSILON)
    assert most // find_rho(count, Count(), ADD_REMOVE, True).worst(ADD_REMOVE) == 370
    assert most // find_rho(median, Median(), ADD_REMOVE, True).worst(ADD_REMOVE) == 1481


def test_ends_of_the_conversion() -> None:
    assert convert_to_epsilon(Fraction(0), DELTA) == 0
    assert convert_to_epsilon(Fraction(1, 10**13), DELTA) == 0  # δ alone covers it
    assert convert_to_epsilon(Fraction(1, 10**350), Fraction(1, 10**390)) > 0
    assert find_largest_rho(Fraction(1, 10**300), DELTA) > 0
    assert convert_to_epsilon(Fraction(10**300), DELTA) > 10**300
    for delta in (0, 1, -1, 2):
        with pytest.raises(InvalidInput, match="delta must lie strictly between 0 and 1"):
            convert_to_epsilon(Fraction(1), Fraction(delta))
        with pytest.raises(InvalidInput, match="delta must lie strictly between 0 and 1"):
            find_largest_rho(Fraction(1), Fraction(delta))
    with pytest.raises(InvalidInput, match="rho must be at least 0"):
        convert_to_epsilon(Fraction(-1), DELTA)
    with pytest.raises(InvalidInput, match="epsilon must be greater than 0"):
        find_largest_rho(Fraction(0), DELTA)


# ------------------------------------------------------------------------------------------------------- mechanisms


def chosen(statistic: Statistic, neighbours: Neighbours, whole: bool, **bounds: int) -> Rho:
    choice = choose(statistic, Domain(**bounds), neighbours, whole, DIFFERENTIAL, Fraction(1))
    return find_rho(choice, statistic, neighbours, whole)


def test_the_rho_of_every_method() -> None:
    half, eighth = Fraction(1, 2), Fraction(1, 8)
    assert chosen(Count(), REPLACE, True) == Rho(Fraction(0), Fraction(0))
    assert chosen(Count(), REPLACE, False) == chosen(Count(), ADD_REMOVE, True) == Rho(half, Fraction(0))
    assert chosen(DistinctCount(), REPLACE, False) == chosen(DistinctCount(), ADD_REMOVE, True) == Rho(half, half)
    assert chosen(Sum(), ADD_REMOVE, True, lower=0, upper=9) == Rho(half, 4 * half)
    assert chosen(Sum(), REPLACE, True, lower=0, upper=9) == Rho(Fraction(0), half)
    assert chosen(Median(), REPLACE, False) == Rho(eighth, eighth)
    assert chosen(Mode(), REPLACE, False, lower=0, upper=3) == Rho(eighth / 4, eighth)
    assert chosen(Mode(), ADD_REMOVE, True, lower=0, upper=3) == Rho(eighth, 4 * eighth)
    search = range_rho(Fraction(3, 2))  # e₁ = e₂ = ½
    assert chosen(KthLargest(20), REPLACE, False, centre=5) == Rho(search, search)
    assert chosen(Mean(), REPLACE, False, lower=0, upper=9) == Rho(half / 2, half)
    assert chosen(Mean(), ADD_REMOVE, True, lower=0, upper=9) == Rho(half / 2, half)
    assert chosen(Variance(), REPLACE, False, lower=0, upper=9) == Rho(Fraction(3, 16), Fraction(1, 6))
    assert find_rho(Choice(Method.LOCAL, 1, Fraction(1)), Median(), REPLACE, True) == Rho(Fraction(0), half)
    assert find_rho(Choice(Method.LOCAL, 1, Fraction(1)), Median(), ADD_REMOVE, True) == Rho(half, None)


@pytest.mark.parametrize("neighbours", [REPLACE, ADD_REMOVE])
def test_rounds_add_up(neighbours: Neighbours) -> None:
    steps = 4 if neighbours is ADD_REMOVE else 1  # to change under add-remove is to take two
    for case, size in ((KthLargest(10), None), (Mean(), None), (Variance(), None), (Sum(), None), (Mean(), 1000)):
        whole = size is not None and neighbours is REPLACE
        choice = choose(case, Domain(), neighbours, whole, DIFFERENTIAL, Fraction(1), size=size)
        plan, rho = choice.reading, find_rho(choice, case, neighbours, whole)
        assert isinstance(plan, RankPlan | ClippingPlan)
        search = range_rho(plan.threshold_epsilon + 2 * plan.count_epsilon)
        search += range_rho(plan.centre.epsilon) if plan.centre else 0
        noise = Fraction(0)
        if isinstance(plan, ClippingPlan):
            noise = plan.noise_epsilon**2
            search += (2 * plan.tally_epsilon**2 + plan.size_epsilon**2) / 2
        if isinstance(case, Variance):
            expected = Rho(search + noise * 3 / 16, steps * search + noise / 6)
        elif isinstance(case, Mean) and not whole:
            expected = Rho(search + noise / 4, steps * search + noise / 2)
        else:
            expected = Rho(search + noise / 2, steps * (search + noise / 2))
        assert rho == (replace(expected, entering=Fraction(0)) if whole else expected)
        assert (plan.centre is None) == (case == Sum())


@pytest.mark.parametrize("size", [None, 1000])
@pytest.mark.parametrize("statistic", [Sum(), Mean(), Variance()], ids=lambda each: each.name)
def test_every_count_that_is_drawn_has_its_rho(
    statistic: Statistic, size: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The scales of what is really drawn, and not the plan's own list of it."""
    drawn: list[Fraction] = []

    def note(noise: DiscreteLaplace, **_: object) -> int:
        drawn.append(noise.scale)
        return 0

    choice = choose(statistic, Domain(), REPLACE, size is not None, DIFFERENTIAL, Fraction(1), size=size)
    plan, values, moves = choice.clipping, list(range(1000)), Moves(REPLACE, 1000, None if size else 0)
    assert plan is not None
    monkeypatch.setattr(DiscreteLaplace, "sample", note)
    plan.draw_limits(cut_windows(values, list(plan.ranks(moves)), moves, plan.domain))
    assert len(drawn) == (3 if size is None else 2)
    searches = range_rho(plan.threshold_epsilon + 2 * plan.count_epsilon)
    searches += range_rho(plan.centre.epsilon) if plan.centre else 0
    noise = plan.noise_epsilon**2 / (6 if isinstance(statistic, Variance) else 2)
    counts = sum((1 / scale**2 / 2 for scale in drawn), Fraction(0))
    assert find_rho(choice, statistic, REPLACE, size is not None).changing == searches + counts + noise


def test_limits_that_cells_share_are_paid_for_once() -> None:
    """Leaving a cell for another changes the limits as staying does, and a person's cells do not divide them."""
    shared = choose(Sum(), Domain(), ADD_REMOVE, False, DIFFERENTIAL, Fraction(1, 2), parts=2, pooled=True)
    plan = shared.clipping
    assert plan is not None
    assert plan.epsilon == Fraction(1, 2)
    limits = range_rho(plan.threshold_epsilon + 2 * plan.count_epsilon)
    limits += (2 * plan.tally_epsilon**2 + plan.size_epsilon**2) / 2
    noise = plan.noise_epsilon**2 / 2
    rho = find_rho(shared, Sum(), ADD_REMOVE, False)
    assert rho == Rho(limits / 2 + noise, limits + 4 * noise)
    assert add_cells([rho, rho], REPLACE) == max(limits + 2 * noise, limits + 4 * noise)
    assert find_rho(shared, Sum(), ADD_REMOVE, False, apart=3).entering == 3 * limits / 2 + noise


def test_a_round_without_its_rho_is_an_error() -> None:
    class Longer(RankPlan):
        """One round more."""

        @property
        def epsilon(self) -> Fraction:
            return super().epsilon + 1

    choice = choose(KthLargest(10), Domain(), REPLACE, False, DIFFERENTIAL, Fraction(1))
    assert isinstance(choice.reading, RankPlan)
    plan = Longer(**{field.name: getattr(choice.reading, field.name) for field in fields(choice.reading)})
    with pytest.raises(AssertionError, match="every round"):
        find_rho(replace(choice, reading=plan), KthLargest(10), REPLACE, False)
    with pytest.raises(AssertionError, match="has a plan"):
        find_rho(replace(choice, reading=None), KthLargest(10), REPLACE, False)


def test_groups() -> None:
    inverse = Choice(Method.INVERSE, 9, EPSILON)
    assert find_rho(inverse, Median(), REPLACE, False, records=3).entering == 9 * range_rho(EPSILON)
    frozen = Choice(Method.LOCAL, 2, EPSILON, multiples=(Fraction(1), Fraction(3, 2)))
    assert find_rho(frozen, Median(), REPLACE, False, records=2).entering == pure_rho(EPSILON * 3 / 2)
    with pytest.raises(InvalidInput, match="protects 2 records, not 3"):
        find_rho(frozen, Median(), REPLACE, False, records=3)
    assert Rho(EPSILON, None).of_group(2) == Rho(4 * EPSILON, None)


def test_cells() -> None:
    one, two = Rho(Fraction(1), Fraction(3)), Rho(Fraction(2), Fraction(2))
    assert add_cells([one, two, one], ADD_REMOVE) == 2
    assert add_cells([one, two], REPLACE) == 3
    assert add_cells([two, two, one], REPLACE) == 4
    assert add_cells([], REPLACE) == add_cells([], ADD_REMOVE) == 0
    assert (one + two).worst(REPLACE) == 5
    count = Rho(Fraction(1), Fraction(0))
    assert (one + count) == (count + one) == Rho(Fraction(2), Fraction(4))  # it stays, and enters one column
    assert add_cells([count] * 3, REPLACE) == 2
    frozen = Rho(Fraction(1), None)
    assert (one + frozen) == (frozen + one) == Rho(Fraction(2), None)
    assert frozen.worst(ADD_REMOVE) == 1
    with pytest.raises(InvalidInput, match="nothing where a record changes"):
        frozen.worst(REPLACE)


def test_what_the_cells_of_a_question_may_spend() -> None:
    """Section 12: what one median of ε has is enough for cells of ε/√2, or for add-remove envelopes of ε/2 a step."""
    within, share = range_rho(EPSILON), EPSILON * 70 / 99  # just below 1/√2
    cell = find_rho(Choice(Method.INVERSE, 9, share), Median(), REPLACE, False)
    assert Fraction(99, 100) * within < add_cells([cell] * 9, REPLACE) <= within
    cell = find_rho(Choice(Method.INVERSE, 9, EPSILON / 2), Median(), ADD_REMOVE, True)
    assert add_cells([cell] * 9, REPLACE) == within


def test_choices_with_gaussian_noise() -> None:
    """ρ is that of all cells together: to move from one to another counts half in each."""
    rho, nothing = Fraction(1, 8), Fraction(0)

    def find(
        method: Method, statistic: Statistic, notion: Neighbours, whole: bool, parts: int, records: int = 1
    ) -> Rho:
        choice = Choice(method, 2, EPSILON, (Fraction(1), Fraction(3, 2)), rho=rho, parts=parts)
        return find_rho(choice, statistic, notion, whole, records)

    for parts in (1, 2):
        assert find(Method.GLOBAL, Count(), REPLACE, False, parts) == Rho(rho / parts, nothing)
        assert find(Method.GLOBAL, DistinctCount(), REPLACE, False, parts) == Rho(rho / parts, rho / parts)
        assert find(Method.GLOBAL, Sum(), REPLACE, False, parts) == Rho(rho / parts, rho)
        assert find(Method.LOCAL, Median(), REPLACE, False, parts) == Rho(rho / parts, rho)
        assert find(Method.LOCAL, Median(), REPLACE, False, parts, 2) == Rho(rho * 9 / 4 / parts, rho * 9 / 4)
        for case, method in ((Count(), Method.GLOBAL), (Sum(), Method.GLOBAL), (Median(), Method.LOCAL)):
            cell = find(method, case, REPLACE, False, parts)
            assert add_cells([cell] * parts, REPLACE) == rho
        assert find(Method.GLOBAL, Sum(), ADD_REMOVE, True, parts) == Rho(rho, 4 * rho)
        assert find(Method.LOCAL, Median(), ADD_REMOVE, True, parts) == Rho(rho, None)
    assert find(Method.GLOBAL, Sum(), REPLACE, True, 1) == Rho(nothing, rho)
    assert find(Method.GLOBAL, Sum(), REPLACE, False, 1, 3) == Rho(9 * rho, 9 * rho)
    assert find(Method.LOCAL, Median(), REPLACE, True, 1) == Rho(nothing, rho)
    with pytest.raises(InvalidInput, match="protects 2 records, not 3"):
        find(Method.LOCAL, Median(), REPLACE, False, 1, 3)


def test_gaussian_noise() -> None:
    assert gaussian_variance(Fraction(2), Fraction(1, 100)) == 100
    assert DiscreteGaussian(gaussian_variance(Fraction(1), pure_rho(EPSILON))).rho(1) == pure_rho(EPSILON)
    with pytest.raises(InvalidInput, match="rho must be greater than 0"):
        gaussian_variance(Fraction(1), Fraction(0))

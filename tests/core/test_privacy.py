"""Every mechanism at every level, from exact probabilities: what it promises is what it does."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import cache

import pytest

from idios.core import calibration
from idios.core.calibration import (
    Added,
    ExponentialMechanism,
    Level,
    Mechanism,
    Method,
    Protection,
    Silent,
    calibrate,
    choose,
)
from idios.core.distributions import InverseSensitivity
from idios.core.domain import Domain
from idios.core.exact import exp_minus
from idios.core.multiples import linear_multiples
from idios.core.neighbours import Moves, Neighbours
from idios.core.statistics import STATISTICS, Count, Mean, Median, Mode, Statistic, Sum
from tests.oracle import Space, Table, small_tables
from tests.summaries import summarise

BITS = 400

CASES = [statistic.examples()[0] for statistic in STATISTICS]
NUMBERS = [case for case in CASES if not case.selects]
ROBUST = [case for case in NUMBERS if not case.always_global and case.missing_bound(Domain(), 10**6) is None]
"""What a column without bounds can answer however many records change."""
NOTIONS = [("replace", False), ("replace", True), ("add-remove", False)]


@cache
def space(notion: str, selection: bool, bounded: bool, largest: int, reach: int) -> Space:
    domain = (-1, 2)
    starts = small_tables(domain, range(largest + 1), [0, 2] if selection else [0])
    return Space(starts, notion=notion, selection=selection, domain=domain, bounded=bounded, reach=reach)


def moves_of(table: Table, notion: str, selection: bool) -> Moves:
    outside = table.outside if selection and notion == "replace" else None
    return Moves(Neighbours(notion), len(table.values), outside)


def mechanism_at(table: Table, case: Statistic, tables: Space, protection: Protection, epsilon: Fraction) -> Mechanism:
    """The mechanism that the trusted party would use on this table."""
    domain = Domain(Fraction(1), *(tables.domain if tables.bounded else (None, None)))
    moves = moves_of(table, tables.notion, tables.selection)
    choice = choose(case, domain, moves.neighbours, moves.whole, protection, epsilon)
    summary = summarise(table.values, case, domain, moves, choice.distance)
    return calibrate(choice, case, summary, protection)


def at_distance(tables: Space, table: Table, distance: int) -> set[Table]:
    found = {table}
    for _ in range(distance):
        found |= {other for one in found for other in tables.neighbours(one)}
    return found - {table}


def refused(case: Statistic, bounded: bool, group: int) -> bool:
    """Whether the statistic cannot be answered at all for want of bounds."""
    return not bounded and case.missing_bound(Domain(), group) is not None


@pytest.mark.slow
@pytest.mark.parametrize("floor", [0, 1])
@pytest.mark.parametrize(("notion", "selection"), NOTIONS)
@pytest.mark.parametrize(
    ("case", "bounded", "group"),
    [
        pytest.param(case, bounded, group, id=f"{case.name}-{'bounded' if bounded else 'unbounded'}-{group}")
        for case in NUMBERS
        for bounded in (True, False)
        for group in (1, 2)
        if not refused(case, bounded, group)
    ],
)
def test_frozen_at_the_data_the_loss_is_at_most_epsilon(
    case: Statistic, notion: str, selection: bool, bounded: bool, group: int, floor: int
) -> None:
    """individual and group: κ calibrated at D, compared with κ at every D′ within reach, over every answer s.

    log Pr(κ(D)=s) − log Pr(κ(D′)=s) = (|s − f(D′)| − |s − f(D)|)/scale exactly, a fraction.
    """
    epsilon = Fraction(1, 3)
    level = Level.INDIVIDUAL if group == 1 else Level.GROUP
    protection = Protection(level, linear_multiples(group), floor=Fraction(floor), fineness=60)
    tables = space(notion, selection, bounded, 5, 1)
    attained = 0
    for table in tables.starts:
        mechanism = mechanism_at(table, case, tables, protection, epsilon)
        if isinstance(mechanism, Silent):
            continue
        assert isinstance(mechanism, Added)
        here, scale = mechanism.value, mechanism.noise.scale
        assert here == case.place(case.define(table.values), 60)
        worst = Fraction(0)
        for distance in range(1, group + 1):
            for other in at_distance(tables, table, distance):
                value = case.define(other.values)
                if value is None:
                    continue  # stands for any value in range, which the envelope already allows for
                there = int(case.place(value, 60))
                if scale == 0:
                    assert there == here
                    continue
                losses = [
                    abs(Fraction(abs(s - there) - abs(s - here)) / scale)
                    for s in range(min(here, there) - 1, max(here, there) + 2, max(1, abs(here - there)))
                ]
                assert max(losses) <= distance * epsilon
                worst = max(worst, max(losses) / distance)
        calibrated = scale * epsilon
        at_floor = calibrated == calibration.find_floor(case, protection) or (case.always_global and floor)
        defined = moves_of(table, notion, selection).sizes(group)[0] >= case.least_size
        if scale and not at_floor and defined and case.exact_reach(Neighbours(notion)) >= group:
            assert worst == epsilon, table
            attained += 1
    trivial = case.name == "count" and (notion, selection) == ("replace", False)
    bound_only = case.exact_reach(Neighbours(notion)) < group
    needs_larger_tables = group > 1 and not bounded  # all of these are too small for a finite envelope
    if not (floor or trivial or bound_only or needs_larger_tables):
        assert attained


VECTORS = [(1, 1, 1), (1, Fraction(3, 2), Fraction(3, 2)), (Fraction(1, 2), 1, 4)]


@pytest.mark.parametrize("floor", [0, 1])
@pytest.mark.parametrize(("notion", "selection"), NOTIONS)
@pytest.mark.parametrize("vector", VECTORS, ids=str)
@pytest.mark.parametrize("case", [Count(), Sum(), Median(), Mean()], ids=lambda case: case.name)
def test_groups_with_any_multiples_of_epsilon(
    case: Statistic, vector: tuple[Fraction, ...], notion: str, selection: bool, floor: int
) -> None:
    """The same for (m_1·ε, …, m_g·ε): no group loses more than its ε_i, and some group loses as much."""
    epsilon, multiples = Fraction(1, 3), tuple(map(Fraction, vector))
    protection = Protection(Level.GROUP, multiples, floor=Fraction(floor), fineness=60)
    tables = space(notion, selection, True, 3, 1)
    attained = Fraction(0)
    for table in tables.starts:
        mechanism = mechanism_at(table, case, tables, protection, epsilon)
        if isinstance(mechanism, Silent):
            continue
        assert isinstance(mechanism, Added)
        for distance, multiple in enumerate(multiples, start=1):
            for other in at_distance(tables, table, distance):
                value = case.define(other.values)
                if value is None or mechanism.noise.scale == 0:
                    assert value is None or int(case.place(value, 60)) == mechanism.value
                    continue
                loss = abs(int(case.place(value, 60)) - mechanism.value) / mechanism.noise.scale
                assert loss <= multiple * epsilon
                attained = max(attained, loss / (multiple * epsilon))
    public = case.name == "count" and (notion, selection) == ("replace", False)
    assert attained == (0 if public else 1)


@pytest.mark.parametrize(("notion", "selection"), NOTIONS)
@pytest.mark.parametrize("vector", VECTORS, ids=str)
def test_a_mode_protects_groups_too(vector: tuple[Fraction, ...], notion: str, selection: bool) -> None:
    """Calibrated on each table by itself, as it is differentially private."""
    epsilon, multiples = Fraction(1, 2), tuple(map(Fraction, vector))
    protection = Protection(Level.GROUP, multiples)
    tables = space(notion, selection, True, 3, 1)

    @cache
    def chances(table: Table) -> list[float]:
        mechanism = mechanism_at(table, Mode(), tables, protection, epsilon)
        return [mechanism.pmf(point) for point in range(tables.domain[0], tables.domain[1] + 1)]

    worst = 0.0
    for table in tables.starts:
        for distance, multiple in enumerate(multiples, start=1):
            for other in at_distance(tables, table, distance):
                losses = (abs(math.log(p / r)) for p, r in zip(chances(table), chances(other), strict=True))
                worst = max(worst, max(losses) / float(multiple * epsilon))
    assert 0.4 < worst <= 1 + 1e-12


@cache
def power(exponent: Fraction) -> tuple[int, int]:
    return exp_minus(exponent, BITS)


def enclosed(mechanism: InverseSensitivity) -> tuple[int, int]:
    """N = Σ weights[i]·q^i, enclosed, in units of 2^−BITS."""
    low = high = 0
    for distance, count in mechanism.weights.items():
        one = power(mechanism.epsilon / 2 * distance)
        low, high = low + count * one[0], high + count * one[1]
    return low, high


def probability(mechanism: InverseSensitivity | Silent, point: int | None) -> Fraction:
    """Accurate to 100 digits and more: q is enclosed to 400 bits."""
    if isinstance(mechanism, Silent):
        return Fraction(point is None)
    distance = mechanism.envelope.distance if point is None else mechanism.distance_of(point)
    weight = mechanism.refusal if point is None else 1
    if distance is None:
        return Fraction(0)
    return Fraction(weight * power(mechanism.epsilon / 2 * distance)[0], enclosed(mechanism)[0])


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(3)])
@pytest.mark.parametrize(("notion", "selection"), NOTIONS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_differential_over_all_pairs_each_calibrated_on_itself(
    case: Statistic, notion: str, selection: bool, epsilon: Fraction
) -> None:
    tables = space(notion, selection, True, 4, 2)
    protection = Protection(Level.DIFFERENTIAL, fineness=2)

    @cache
    def at(table: Table) -> Mechanism:
        return mechanism_at(table, case, tables, protection, epsilon)

    tightness = 0.0
    bound = Fraction(1 << BITS, exp_minus(epsilon, BITS)[0])
    for table in tables.starts:
        one = at(table)
        for other in tables.neighbours(table):
            two = at(other)
            if isinstance(one, Added) and isinstance(two, Added):
                assert one.noise == two.noise
                if one.noise.scale:
                    loss = one.noise.log_ratio(one.value - two.value)
                    assert loss <= epsilon
                    tightness = max(tightness, float(loss / epsilon))
                else:
                    assert one.value == two.value
                continue
            if isinstance(one, ExponentialMechanism) and isinstance(two, ExponentialMechanism):
                for point in range(tables.domain[0], tables.domain[1] + 1):
                    loss = abs(math.log(one.pmf(point) / two.pmf(point)))
                    tightness = max(tightness, loss / float(epsilon))
                continue
            if isinstance(one, Silent) or isinstance(two, Silent):
                assert one == two  # a whole table of no records has no neighbours to be told from
                continue
            assert isinstance(one, InverseSensitivity)
            assert isinstance(two, InverseSensitivity)
            assert one.low is not None
            assert one.high is not None
            for point in range(one.low, one.high + 1):
                ratio = probability(one, point) / probability(two, point)
                assert 0 < ratio <= bound * (1 + Fraction(1, 10**100))
                tightness = max(tightness, abs(math.log(ratio)) / float(epsilon))
    assert tightness <= 1 + 1e-12
    if case.name == "count" and (notion, selection) == ("replace", False):
        assert tightness == 0  # n is public
    else:
        assert tightness > 0.3


def divergences(
    case: Statistic, notion: str, selection: bool, epsilon: Fraction, protection: Protection
) -> list[Fraction]:
    """Σ max(0, P − e^ε·P′) for every ordered pair of neighbours, each calibrated on itself."""
    tables = space(notion, selection, False, 6 if notion == "replace" and not selection else 5, 1)

    @cache
    def at(table: Table) -> InverseSensitivity | Silent:
        found = mechanism_at(table, case, tables, protection, epsilon)
        assert isinstance(found, InverseSensitivity | Silent)
        return found

    @cache
    def chances(table: Table) -> dict[int | None, Fraction]:
        mechanism = at(table)
        points: list[int | None] = [None]
        if isinstance(mechanism, InverseSensitivity):
            points += [t for run in mechanism.plateaus for t in range(run.first, run.last + 1)]
        return {point: probability(mechanism, point) for point in points}

    bound = Fraction(1 << BITS, exp_minus(epsilon, BITS)[0])
    found = []
    for table in tables.starts:
        here = chances(table)
        for other in tables.neighbours(table):
            there = chances(other)
            for p, r in ((here, there), (there, here)):
                found.append(sum(max(Fraction(0), p[s] - bound * r.get(s, Fraction(0))) for s in p))
    return [Fraction(f) for f in found]


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "delta"), [(Fraction(1), Fraction(1, 10)), (Fraction(3), Fraction(1, 50))])
@pytest.mark.parametrize(("notion", "selection"), NOTIONS)
@pytest.mark.parametrize("case", ROBUST, ids=lambda case: case.name)
def test_without_bounds_the_divergence_is_at_most_delta(
    case: Statistic, notion: str, selection: bool, epsilon: Fraction, delta: Fraction
) -> None:
    protection = Protection(Level.DIFFERENTIAL, delta=delta, fineness=2, width=4)
    found = divergences(case, notion, selection, epsilon, protection)
    assert len(found) > 1000
    assert max(found) <= delta
    assert max(found) > 0


@pytest.mark.slow
def test_a_refusal_weight_five_times_too_small_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right = calibration._compute_refusal_weight
    monkeypatch.setattr(calibration, "_compute_refusal_weight", lambda *given: right(*given) // 5)
    delta = Fraction(1, 50)
    protection = Protection(Level.DIFFERENTIAL, delta=delta, fineness=1, width=5)
    worst = max(max(divergences(case, *where, Fraction(1), protection)) for case in ROBUST[:2] for where in NOTIONS)
    assert worst > delta


def test_the_choice_of_mechanism_is_public() -> None:
    """It is made before any data is there: nothing of the data is among its arguments."""
    unbounded, bounded = Domain(), Domain(Fraction(1), 0, 10)
    differential = Protection(Level.DIFFERENTIAL)
    replace_ = Neighbours.REPLACE
    one = Fraction(1)
    assert choose(Count(), unbounded, replace_, True, Protection(), one).method is Method.EXACT
    assert choose(Count(), unbounded, replace_, False, Protection(), one).method is Method.GLOBAL
    assert choose(Median(), unbounded, replace_, True, Protection(), one).method is Method.LOCAL
    assert choose(Sum(), bounded, replace_, True, Protection(), one).method is Method.GLOBAL
    to_the_letter = Protection(floor=Fraction(0))
    assert choose(Sum(), bounded, replace_, True, to_the_letter, one).method is Method.LOCAL
    assert choose(Mean(), bounded, replace_, True, differential, one).method is Method.GLOBAL
    assert choose(Mean(), bounded, replace_, False, differential, one).method is Method.INVERSE
    with_delta = replace(differential, delta=Fraction(1, 10**6))
    choice = choose(Median(), unbounded, replace_, False, with_delta, one)
    assert choice.method is Method.REFUSING
    assert 100 < choice.distance < 200


def test_a_share_of_delta_is_what_counts() -> None:
    """Several statistics of one question split δ: each refuses by its own share, not by the whole."""
    median, domain = Median(), Domain()
    values = tuple(range(1001))
    moves = Moves(Neighbours.REPLACE, len(values))
    protection = Protection(Level.DIFFERENTIAL, delta=Fraction(1, 10**6))
    whole = choose(median, domain, moves.neighbours, True, protection, Fraction(1))
    half = replace(whole, delta=whole.delta / 2)
    summary = summarise(values, median, domain, moves, whole.distance)
    one, two = (calibrate(choice, median, summary, protection) for choice in (whole, half))
    assert isinstance(one, InverseSensitivity)
    assert isinstance(two, InverseSensitivity)
    assert 2 * one.refusal - 2 <= two.refusal <= 2 * one.refusal

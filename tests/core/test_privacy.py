"""Every mechanism at every level, from exact probabilities: what it promises is what it does."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache

import pytest

from idios.core.base_measure import BaseMeasure, RoundPoints
from idios.core.calibration import (
    Added,
    Choice,
    Level,
    Mechanism,
    Method,
    Protection,
    Silent,
    calibrate,
    choose,
    find_floor,
)
from idios.core.distributions import InverseSensitivity
from idios.core.domain import Domain
from idios.core.multiples import linear_multiples
from idios.core.neighbours import Moves, Neighbours
from idios.core.sampling import SeededSource
from idios.core.statistics import STATISTICS, Count, KthLargest, Maximum, Mean, Median, Mode, Quantile, Statistic, Sum
from idios.errors import Unanswerable
from tests.core.test_base_measure import list_weights
from tests.losses import BITS, ROUNDING, Law, find_loss, greatest_loss, law, power
from tests.oracle import Space, Table, small_tables
from tests.summaries import summarise

CASES = [statistic.examples()[0] for statistic in STATISTICS]
NUMBERS = [case for case in CASES if not case.selects]
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
    summary = summarise(table.values, choice.reading or case, domain, moves, choice.distance)
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
    define = cache(case.define)
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
            # undefined stands for any value in range, which the envelope already allows for
            values = {define(other.values) for other in at_distance(tables, table, distance)} - {None}
            for there in {int(case.place(value, 60)) for value in values}:
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
        at_floor = calibrated == find_floor(case, protection) or (case.always_global and floor)
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
    for table in tables.starts:
        for other in tables.neighbours(table):
            one, two = at(table), at(other)
            tightness = max(tightness, find_loss(one, two) / float(epsilon), find_loss(two, one) / float(epsilon))
    assert tightness <= 1 + ROUNDING
    if case.name == "count" and (notion, selection) == ("replace", False):
        assert tightness == 0  # n is public
    else:
        assert tightness > 0.3


NESTED = [case for case in NUMBERS if not case.always_global and case.missing_bound(Domain(), 1) is None] + [
    Maximum(),
    Quantile(Fraction(9, 10)),
]
BOUNDS = {"none": (None, None), "low": (-1, None), "high": (None, 2), "both": (-1, 2)}


@cache
def laws(
    case: Statistic, notion: str, selection: bool, bounds: str, epsilon: Fraction, refusal: int, reach: int
) -> tuple[list[tuple[Table, Table]], dict[Table, InverseSensitivity]]:
    """All neighbouring pairs, and the mechanism on each of their tables."""
    tables = space(notion, selection, False, 4, 1)
    protection = Protection(Level.DIFFERENTIAL, fineness=2)
    choice = Choice(Method.INVERSE, reach, epsilon, refusal=refusal)
    domain = Domain(Fraction(1), *BOUNDS[bounds])
    mechanisms = {}
    pairs = []
    for table in tables.starts:
        for other in {table, *tables.neighbours(table)}:
            if other not in mechanisms:
                inside = Table(tuple(sorted(map(domain.clamp, other.values))), other.outside)
                moves = moves_of(inside, notion, selection)
                summary = summarise(inside.values, case, domain, moves, reach)
                mechanism = calibrate(choice, case, summary, protection)
                assert isinstance(mechanism, InverseSensitivity)
                mechanisms[other] = mechanism
            if other != table:
                pairs.append((table, other))
    return pairs, mechanisms


@pytest.mark.slow
@pytest.mark.parametrize(("notion", "selection"), NOTIONS)
@pytest.mark.parametrize(
    ("case", "bounds"),
    [
        pytest.param(case, bounds, id=f"{case.name}-{bounds}")
        for case in NESTED
        for bounds in BOUNDS
        if case == Median() or bounds in ("none", "both")
    ],
)
def test_without_bounds_the_loss_is_at_most_epsilon_and_attains_it(
    case: Statistic, notion: str, selection: bool, bounds: str
) -> None:
    """Each table calibrated on itself; and what is out of reach is answered with probability q/R at most."""
    greatest = 0.0
    for epsilon, refusal, reach in ((Fraction(1), 1, 6), (Fraction(1, 2), 10, 2), (Fraction(2), 1000, 6)):
        pairs, mechanisms = laws(case, notion, selection, bounds, epsilon, refusal, reach)
        known = {table: law(mechanism) for table, mechanism in mechanisms.items()}
        greatest = max(
            greatest, max(greatest_loss(known[table], known[other]) / float(epsilon) for table, other in pairs)
        )
        rare = power(epsilon / 2)[1]
        for one in known.values():
            beyond = sum(w * one.weigh(exponent) for _, _, w, exponent in one.runs if exponent > one.refusal[1])
            assert beyond * refusal << BITS <= rare * one.total
    assert len(pairs) > 300
    assert 0.5 < greatest <= 1 + 1e-12
    if case == Median() and selection:
        assert greatest > 0.99


@pytest.mark.parametrize(("notion", "selection"), NOTIONS)
def test_planted_errors_are_caught(notion: str, selection: bool) -> None:
    bound = 1 + 1e-12
    pairs, mechanisms = laws(Median(), notion, selection, "none", Fraction(1), 1000, 6)

    def worst(known: dict[Table, Law]) -> float:
        return max(greatest_loss(known[table], known[other]) for table, other in pairs)

    assert worst({table: law(m) for table, m in mechanisms.items()}) <= bound
    steep = {table: law(m, refusal_exponent=2 * len(m.balls)) for table, m in mechanisms.items()}
    # R·q^(2b); of a whole table b is public
    assert worst(steep) > bound or (notion, selection) == ("replace", False)
    followed = {
        table: replace(m, measure=replace(m.measure, centre=m.balls[0][0] if m.balls else 0))
        for table, m in mechanisms.items()
    }
    # a centre taken from the data
    assert any(followed[one].pmf(0) > math.e * 1.0001 * followed[two].pmf(0) for one, two in pairs)


def draw_measure(rng: random.Random) -> BaseMeasure:
    """Any public measure: shells, bounds, and up to two families of round points."""
    low, high = rng.choice([(None, None), (-2, 4), (-9, None), (None, 6), (-4, 12)])
    families = [
        RoundPoints(rng.randint(1, 5), most, rng.randint(1, 15), end)
        for most, end in rng.choices([(1, 0), (3, 0), (9, 0), (9, 60)], k=rng.randrange(3))
    ]
    return BaseMeasure(rng.randint(-3, 5), rng.randint(3, 6), low, high, tuple(families))


def change_measure(measure: BaseMeasure, rng: random.Random) -> BaseMeasure:
    """A measure beside it."""
    other = draw_measure(rng)
    return replace(measure, **{name: getattr(other, name) for name in (rng.choice(("centre", "shells", "rounds")),)})


def compare_pairs(
    pairs: Sequence[tuple[Table, Table]], mechanisms: dict[Table, InverseSensitivity]
) -> tuple[float, float]:
    """The greatest loss, and the greatest chance of an answer out of reach in q/R: point by point, by definition."""
    known = {}
    out_of_reach = 0.0
    for table, mechanism in mechanisms.items():
        measure, balls, q = mechanism.measure, mechanism.balls, math.exp(-float(mechanism.epsilon) / 2)
        logarithms, beyond = {}, 0.0
        for point, weight in sorted(list_weights(measure).items()):
            distance = next((j for j, (low, high) in enumerate(balls) if low <= point <= high), len(balls))
            logarithms[point] = math.log(weight / measure.denominator) + distance * math.log(q)
            beyond += weight / measure.denominator * q**distance if distance == len(balls) else 0
        logarithms[math.inf] = math.log(mechanism.refusal) + (len(balls) - 1) * math.log(q)
        total = math.fsum(map(math.exp, logarithms.values()))
        known[table] = {point: found - math.log(total) for point, found in logarithms.items()}
        out_of_reach = max(out_of_reach, beyond / total * mechanism.refusal / q)
    losses = (
        max(abs(known[one].get(t, -math.inf) - known[two].get(t, -math.inf)) for t in {*known[one], *known[two]})
        for one, two in pairs
    )
    return max(losses), out_of_reach


@pytest.mark.slow
@pytest.mark.parametrize(("notion", "selection"), NOTIONS)
@pytest.mark.parametrize(("epsilon", "refusal"), [(Fraction(1), 1), (Fraction(1, 2), 10), (Fraction(2), 1000)])
def test_over_base_measures_the_loss_climbs_to_epsilon_and_no_further(
    notion: str, selection: bool, epsilon: Fraction, refusal: int
) -> None:
    """An even measure hides half of it: the sum of all weights hardly changes then."""
    rng = random.Random(f"{notion} {selection} {epsilon}")
    pairs, mechanisms = laws(Median(), notion, selection, "none", epsilon, refusal, 4)
    some = rng.sample(pairs, 60)
    used = {table for pair in some for table in pair}

    def find_loss_of(measure: BaseMeasure) -> float:
        loss, beyond = compare_pairs(some, {table: replace(mechanisms[table], measure=measure) for table in used})
        assert loss <= float(epsilon) * (1 + 1e-9), measure
        assert beyond <= 1 + 1e-9, measure
        return loss

    best = max((draw_measure(rng) for _ in range(8)), key=find_loss_of)
    greatest = find_loss_of(best)
    for _ in range(40):
        tried = change_measure(best, rng)
        if (loss := find_loss_of(tried)) > greatest:
            best, greatest = tried, loss
    even = find_loss_of(BaseMeasure(0, 0, -9, 9))
    if (notion, selection) == ("replace", False):  # b is public, and R·q^b most of the sum
        assert greatest > 0.5 * float(epsilon)
    else:
        assert greatest > max(even, 0.9 * float(epsilon))


def test_round_points_that_follow_the_data_are_caught() -> None:
    pairs, mechanisms = laws(Median(), "replace", True, "none", Fraction(1), 1000, 6)
    measure = BaseMeasure(0, 5, rounds=(RoundPoints(2, 3, 8),))
    public = {table: replace(mechanism, measure=measure) for table, mechanism in mechanisms.items()}
    assert compare_pairs(pairs, public)[0] <= 1 + 1e-9
    followed = {  # a grid, or a share, taken from the data
        table: replace(m, measure=replace(measure, rounds=(RoundPoints(1 + len(m.balls), 3, 8),)))
        for table, m in mechanisms.items()
    }
    assert compare_pairs(pairs, followed)[0] > 1.1
    shared = {
        table: replace(m, measure=replace(measure, rounds=(RoundPoints(2, 3, 1 + 15 * (len(m.balls) % 2)),)))
        for table, m in mechanisms.items()
    }
    assert compare_pairs(pairs, shared)[0] > 1.1


def test_a_mass_above_one_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Round points on top of all the shells: answers out of reach are more likely than q/R."""
    pairs, mechanisms = laws(Median(), "replace", True, "none", Fraction(1), 1000, 6)
    measure = BaseMeasure(0, 5, rounds=(RoundPoints(2, 3, 16),))
    assert compare_pairs(pairs, {t: replace(m, measure=measure) for t, m in mechanisms.items()})[1] <= 1 + 1e-9
    monkeypatch.setattr(BaseMeasure, "denominator", measure.denominator // 2)
    assert compare_pairs(pairs, {t: replace(m, measure=replace(measure)) for t, m in mechanisms.items()})[1] > 1.4


@pytest.mark.statistical
def test_a_draw_follows_its_law() -> None:
    mechanism = InverseSensitivity(((4, 4), (3, 6), (3, 9)), Fraction(2), BaseMeasure(0, 4), refusal=2)
    source = SeededSource(3)
    times = Counter(mechanism.draw(source) for _ in range(20_000))
    points = [t for plateau in mechanism.plateaus for t in range(plateau.first, plateau.last + 1)]
    chances = {point: mechanism.pmf(point) for point in (*points, None)}
    assert math.isclose(sum(chances.values()), 1)
    assert math.isclose(chances[3] / chances[4], math.exp(-1) * 2)  # the next shell, one change further
    assert math.isclose(chances[None] / chances[0], 2 * 5 * math.exp(1))
    for point, chance in chances.items():
        assert abs(times[point] - 20_000 * chance) < 6 * math.sqrt(20_000 * chance) + 6
    mean = sum(abs(t - 4) * chances[t] for t in points) / (1 - chances[None])
    assert 0.98 * mean < mechanism.expected_absolute(4) < mean  # but for the farthest


def test_the_choice_of_mechanism_is_public() -> None:
    """It is made before any data is there: nothing of the data is among its arguments."""
    unbounded, bounded = Domain(), Domain(Fraction(1), 0, 10)
    differential = Protection(Level.DIFFERENTIAL)
    replace_ = Neighbours.REPLACE
    one = Fraction(1)
    assert choose(Count(), unbounded, replace_, True, Protection(Level.INDIVIDUAL), one).method is Method.EXACT
    assert choose(Count(), unbounded, replace_, False, Protection(Level.INDIVIDUAL), one).method is Method.GLOBAL
    assert choose(Median(), unbounded, replace_, True, Protection(Level.INDIVIDUAL), one).method is Method.LOCAL
    assert choose(Sum(), bounded, replace_, True, Protection(Level.INDIVIDUAL), one).method is Method.GLOBAL
    to_the_letter = Protection(Level.INDIVIDUAL, floor=Fraction(0))
    assert choose(Sum(), bounded, replace_, True, to_the_letter, one).method is Method.LOCAL
    assert choose(Mean(), bounded, replace_, True, differential, one).method is Method.GLOBAL
    assert choose(Mean(), bounded, replace_, False, differential, one).method is Method.MOMENTS
    assert choose(Mean(), unbounded, replace_, False, differential, one).method is Method.CLIPPED
    assert choose(Sum(), unbounded, replace_, True, Protection(Level.INDIVIDUAL), one).method is Method.CLIPPED
    assert choose(KthLargest(10), unbounded, replace_, False, differential, one).method is Method.ABOVE_THRESHOLD
    choice = choose(Median(), unbounded, replace_, False, differential, one)
    assert choice.method is Method.INVERSE
    assert 100 < choice.distance < 200


def test_what_would_be_null_nearly_always_is_refused_beforehand() -> None:
    differential, half = Protection(Level.DIFFERENTIAL), Fraction(1, 2)

    def ask(size: int, epsilon: Fraction) -> Choice:
        return choose(Median(), Domain(), Neighbours.REPLACE, True, differential, epsilon, size=size)

    with pytest.raises(Unanswerable, match=r"at least 201 records, or with epsilon = 10 or more"):
        ask(11, half)
    assert ask(201, half).method is Method.INVERSE
    assert ask(11, Fraction(10)).method is Method.INVERSE
    assert choose(Median(), Domain(), Neighbours.REPLACE, False, differential, half, size=11)  # of a secret part

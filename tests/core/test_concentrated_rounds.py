"""Concentrated accounting of several rounds by enumeration: limits and what is clipped to them, a centre and a search.

As in the tests of clipping a rational number stands for e^(−UNIT), so that laws are fractions.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace
from fractions import Fraction
from functools import cache

import pytest

from idios.core.calibration import Choice, Level, Method, Protection, choose
from idios.core.centre import place_centre
from idios.core.concentrated import find_rho, range_rho
from idios.core.domain import Domain
from idios.core.neighbours import Neighbours
from idios.core.outer_ranks import RankPlan
from idios.core.statistics import KthLargest, Mean, Statistic, Sum, Variance
from tests.core import test_clipping, test_outer_ranks
from tests.core.renyi import ORDERS, TOLERANCE, diverge, find_share, lose, lose_shift
from tests.core.stopping import cut_windows, list_deficits, stopping_law
from tests.oracle import Space, Table

NOTIONS = [("replace", False), ("replace", True), ("add-remove", False)]
WITHIN = 1 + TOLERANCE
DIFFERENTIAL = Protection(Level.DIFFERENTIAL, fineness=2)
UNIT = test_clipping.UNIT


def natural(epsilon: Fraction) -> float:
    """The ε that POWER stands for, in the tests of clipping."""
    return float(epsilon / test_clipping.UNIT) * -math.log(test_clipping.POWER)


def share_of_rounds(rounds: test_clipping.Rounds, tables: Space, rho: float) -> float:
    """All three rounds: over the outcomes of the first two, of which each decides the noises of the third."""
    laws = test_clipping.Laws.enumerate(rounds, tables)

    @cache
    def lose_noise(here: int, there: int, order: float) -> float:
        return noise(laws.released[here], laws.released[there], order)

    worst = 0.0
    for table in tables.starts:
        for other in tables.neighbours(table):
            pair = laws.tables[table], laws.tables[other]
            for one, two in (pair, pair[::-1]):
                compared = [(float(p), *rest, *two[drawn][1:]) for drawn, (p, *rest) in one.items()]
                for order in ORDERS:
                    total = math.fsum(
                        p * math.exp((order - 1) * (logarithm - other_logarithm + lose_noise(here, there, order)))
                        for p, logarithm, here, other_logarithm, there in compared
                    )
                    worst = max(worst, math.log(total) / (order - 1) / (order * rho))
    return worst


def noise(here: test_clipping.Released, there: test_clipping.Released, order: float) -> float:
    """The divergence of the last round; its scales are in units of UNIT for a loss of ln(1/POWER)."""
    total = 0.0
    for (one, scale), (two, same) in zip(here, there, strict=True):
        assert scale == same
        if one != two:
            total += shift_divergence(abs(one - two), scale, order)
    return total


@cache
def shift_divergence(distance: int, scale: Fraction, order: float) -> float:
    rate = Fraction(natural(1 / scale)).limit_denominator(10**12)
    return diverge(lose_shift(distance, 1 / rate), order)


def clipping_rho(rounds: test_clipping.Rounds, notion: str, selection: bool) -> float:
    """What ``find_rho`` gives, in the ε that POWER stands for."""
    plan, neighbours = rounds.plan, Neighbours(notion)
    choice = choose(rounds.statistic, Domain(), neighbours, not selection, DIFFERENTIAL, Fraction(1))
    choice = replace(choice, reading=plan)
    return (
        float(find_rho(choice, rounds.statistic, neighbours, not selection).worst(neighbours))
        * natural(Fraction(1)) ** 2
    )


@pytest.mark.slow
@pytest.mark.parametrize(("notion", "selection"), NOTIONS)
@pytest.mark.parametrize("statistic", [Sum(), Mean(), Variance()], ids=lambda case: case.name)
def test_clipped(statistic: Statistic, notion: str, selection: bool) -> None:
    attained = 0.0
    for case, plan in test_clipping.cases():
        if case != statistic or plan.domain.lower is not None or plan.reach == 1:
            continue
        rounds = test_clipping.Rounds(plan, statistic)
        share = share_of_rounds(rounds, test_clipping.space(notion, selection), clipping_rho(rounds, notion, selection))
        assert share <= WITHIN, plan
        attained = max(attained, share)
    assert attained > 0.1


@pytest.mark.parametrize(("statistic", "counted"), [(Sum(), 0), (Sum(), Fraction(1, 8)), (Mean(), 0), (Variance(), 0)])
def test_a_last_round_of_clipping_that_is_not_counted_is_caught(statistic: Statistic, counted: Fraction) -> None:
    """Left out, or taken for an exponential mechanism."""
    tables = test_clipping.space("add-remove", False)
    plan = test_clipping.tiny_plan(2, 1, None, fallback=1)
    rounds = test_clipping.Rounds(plan, statistic)
    planted = range_rho(plan.threshold_epsilon + 2 * plan.count_epsilon) + counted * plan.noise_epsilon**2
    assert share_of_rounds(rounds, tables, float(planted) * natural(Fraction(1)) ** 2) > 1.1
    assert share_of_rounds(rounds, tables, clipping_rho(rounds, "add-remove", False)) <= WITHIN


# ----------------------------------------------------------------------------------------------- a centre and a search

SEARCH = RankPlan(
    test_outer_ranks.LADDER, Fraction(0), Fraction(1), 9, 4 * UNIT, 2 * UNIT, centre=test_clipping.CENTRE, fallback=1
)


def law_of_search(plan: RankPlan, table: Table, tables: Space) -> dict[tuple[int, int], Fraction]:
    """The probability of every centre and of every threshold from there."""
    moves = test_clipping.moves_of(table, tables)
    summary = cut_windows(table.values, plan.ranks(moves), moves)
    assert plan.centre is not None
    mechanism, q = plan.centre.calibrate(summary), test_clipping.power(plan.centre.epsilon / 2)
    weights: dict[int, Fraction] = defaultdict(Fraction)
    for plateau in mechanism.plateaus:
        for point in range(plateau.first, plateau.last + 1):
            weights[place_centre(point)] += plateau.weight * q**plateau.distance
    refusal = mechanism.refusal * mechanism.measure.denominator * q ** (len(mechanism.balls) - 1)
    weights[plan.fallback] += refusal
    total, law = sum(weights.values()), {}
    for centre, weight in weights.items():
        deficits = list_deficits(plan.search(summary, centre))
        powers = test_clipping.power(plan.threshold_epsilon), test_clipping.power(plan.count_epsilon)
        for i, p in enumerate(stopping_law(deficits, *powers)):
            law[centre, i] = weight / total * p
    return law


def share_of_search(plan: RankPlan, tables: Space, rho: Fraction) -> float:
    known = {table: law_of_search(plan, table, tables) for table in tables.tables}
    return max(
        find_share(
            [lose([*known[table].values()], [known[other][outcome] for outcome in known[table]])],
            float(rho) * natural(Fraction(1)) ** 2,
        )
        for table in tables.starts
        for other in tables.neighbours(table)
    )


@pytest.mark.slow
@pytest.mark.parametrize(("notion", "selection"), NOTIONS)
@pytest.mark.parametrize("plan", [SEARCH, replace(SEARCH, target=Fraction(3), unit=-1)], ids=["up", "down"])
def test_a_centre_and_a_search_from_there(plan: RankPlan, notion: str, selection: bool) -> None:
    choice, neighbours = Choice(Method.ABOVE_THRESHOLD, 0, plan.epsilon, reading=plan), Neighbours(notion)
    rho = find_rho(choice, KthLargest(2), neighbours, not selection).worst(neighbours)
    assert rho == range_rho(8 * UNIT) + range_rho(6 * UNIT)
    share = share_of_search(plan, test_clipping.space(notion, selection), rho)
    assert 0.1 < share <= WITHIN

"""Concentrated accounting by enumeration: D_α ≤ α·ρ over all neighbouring pairs, both ways, for every mechanism.

Laws are exact (fractions, or whole numbers of 400 bits) until their losses become floats.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import product

import pytest

from idios.core.calibration import Added, Choice, Level, Mechanism, Method, Protection, Silent, calibrate, choose
from idios.core.concentrated import Rho, add_cells, find_rho, pure_rho, range_rho
from idios.core.distributions import DiscreteGaussian
from idios.core.domain import Domain
from idios.core.multiples import linear_multiples
from idios.core.neighbours import Neighbours
from idios.core.statistics import Count, DistinctCount, Mean, Median, Mode, Statistic, Variance
from idios.core.statistics.order import DiscreteQuantile, OrderStatistic
from tests.core import test_outer_ranks
from tests.core.renyi import TOLERANCE, Losses, find_key, find_share, lose, lose_mechanisms, lose_noise
from tests.core.stopping import cut_windows, list_deficits, stopping_law
from tests.core.test_privacy import CASES, NESTED, NUMBERS, at_distance, laws, moves_of, space
from tests.oracle import Space, Table, small_tables
from tests.summaries import summarise

NOTIONS = [("replace", False), ("replace", True), ("add-remove", False)]
WITHIN = 1 + TOLERANCE


@dataclass(frozen=True)
class Asked:
    """A question about every table of a space: its ρ and what is drawn from."""

    case: Statistic
    tables: Space
    protection: Protection
    epsilon: Fraction
    refusal: int | None = None  # R of the inverse-sensitivity mechanism; None asks as the trusted party would
    gaussian: Fraction | None = None  # ρ of Gaussian noise, over all cells together
    parts: int = 1

    @property
    def _domain(self) -> Domain:
        return Domain(Fraction(1), *(self.tables.domain if self.tables.bounded else (None, None)))

    @property
    def neighbours(self) -> Neighbours:
        return Neighbours(self.tables.notion)

    @property
    def _whole(self) -> bool:
        return not self.tables.selection

    @property
    def choice(self) -> Choice:
        if self.refusal is not None:
            return Choice(Method.INVERSE, 6, self.epsilon, refusal=self.refusal)
        facts = self.case, self._domain, self.neighbours, self._whole, self.protection, self.epsilon
        return choose(*facts, rho=self.gaussian, parts=self.parts)

    def rho(self, records: int = 1) -> Rho:
        return find_rho(self.choice, self.case, self.neighbours, self._whole, records)

    def worst(self, records: int = 1) -> float:
        return float(self.rho(records).worst(self.neighbours))

    @cache  # noqa: B019 (a question lives as long as its test)
    def at(self, table: Table) -> Mechanism:
        moves = moves_of(table, self.tables.notion, self.tables.selection)
        summary = summarise(table.values, self.case, self._domain, moves, self.choice.distance)
        return calibrate(self.choice, self.case, summary, self.protection)

    def find_share(self, rho: float) -> float:
        """The greatest share of α·ρ over all pairs, each calibrated on itself."""
        pairs = {}
        for table in self.tables.starts:
            for other in self.tables.neighbours(table):
                one, two = self.at(table), self.at(other)
                pairs[find_key(one, two)] = one, two
        return max(find_share(lose_mechanisms(one, two), rho) for one, two in pairs.values())


DIFFERENTIAL = Protection(Level.DIFFERENTIAL, fineness=2)
PLAIN = [case for case in CASES if case not in NESTED and not isinstance(case, OrderStatistic)]
"""Counts, sums, averages, variances and a mode; the others have tests of their own."""


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(2)], ids=str)
@pytest.mark.parametrize(("notion", "selection"), NOTIONS)
@pytest.mark.parametrize("case", PLAIN, ids=lambda case: case.name)
def test_differential(case: Statistic, notion: str, selection: bool, epsilon: Fraction) -> None:
    asked = Asked(case, space(notion, selection, True, 3, 1), DIFFERENTIAL, epsilon)
    share = asked.find_share(asked.worst())
    assert share <= WITHIN
    assert share > 0.3 or (case.name == "count" and not selection and notion == "replace")


@pytest.mark.slow
@pytest.mark.parametrize("bounds", ["none", "low"])
@pytest.mark.parametrize(("notion", "selection"), NOTIONS)
@pytest.mark.parametrize("case", NESTED, ids=lambda case: case.name)
def test_without_bounds_refusals_included(case: Statistic, notion: str, selection: bool, bounds: str) -> None:
    for epsilon, refusal, reach in ((Fraction(1), 1, 6), (Fraction(1, 2), 10, 2)):
        pairs, mechanisms = laws(case, notion, selection, bounds, epsilon, refusal, reach)
        rho = float(range_rho(epsilon))
        for one, two in {(min(pair), max(pair)) for pair in pairs}:  # the share is that of both ways round
            assert find_share(lose_mechanisms(mechanisms[one], mechanisms[two]), rho) <= WITHIN


@pytest.mark.parametrize(("notion", "selection"), NOTIONS)
@pytest.mark.parametrize("group", [1, 2])
@pytest.mark.parametrize("case", [case for case in NUMBERS if case.name in ("median", "sum", "trimmed_mean", "iqr")])
def test_frozen_at_the_data(case: Statistic, group: int, notion: str, selection: bool) -> None:
    """individual and group: κ calibrated at D and every table within reach, each group with its own ρ."""
    level = Level.INDIVIDUAL if group == 1 else Level.GROUP
    protection = Protection(level, linear_multiples(group), floor=Fraction(0), fineness=2)
    asked = Asked(case, space(notion, selection, True, 3, 1), protection, Fraction(1, 10))
    greatest = 0.0
    for table in asked.tables.starts:
        mechanism = asked.at(table)
        if isinstance(mechanism, Silent):
            continue
        assert isinstance(mechanism, Added)
        for records in range(1, group + 1):
            for other in at_distance(asked.tables, table, records):
                value = case.define(other.values)
                if value is None:
                    continue
                shift = int(case.place(value, 2)) - mechanism.value
                share = find_share([lose_noise(shift, mechanism.noise)], asked.worst(records))
                greatest = max(greatest, share)
    assert 0.8 < greatest <= WITHIN


@pytest.mark.parametrize("case", [Median(), Mode(), Count(), Mean(), Variance()], ids=lambda case: case.name)
def test_two_records_have_four_times_as_much(case: Statistic) -> None:
    asked = Asked(case, space("replace", True, True, 2, 2), DIFFERENTIAL, Fraction(1, 2))
    for table in asked.tables.starts:
        for other in at_distance(asked.tables, table, 2):
            assert find_share(lose_mechanisms(asked.at(table), asked.at(other)), asked.worst(2)) <= WITHIN


@pytest.mark.slow
@pytest.mark.parametrize(("notion", "selection"), NOTIONS)
def test_above_threshold(notion: str, selection: bool) -> None:
    """With rational numbers in place of e^(−e₁/b) and e^(−e₂/b), as the law is then a fraction."""
    tables, attained = test_outer_ranks.space(notion, selection), 0.0
    for plan in test_outer_ranks.plans():
        if plan.reach == 2:
            continue
        first, second = (-plan.parts * math.log(share) for share in test_outer_ranks.shares(plan.parts))
        rho = (first + 2 * second) ** 2 / 8
        known = {
            table: test_outer_ranks.true_law(plan, table, test_outer_ranks.moves_of(table, tables))
            for table in tables.tables
        }
        share = max(
            find_share([lose(known[table], known[other])], rho)
            for table in tables.starts
            for other in tables.neighbours(table)
        )
        assert share <= WITHIN, plan
        attained = max(attained, share)
    assert attained > 0.3


def test_moments_cost_what_their_moves_cost() -> None:
    """Entering and changing by themselves, on all values within limits; and a twentieth less is too little."""
    for case, least in ((Mean(), 0.95), (Variance(), 0.9)):
        rho = Asked(case, space("replace", True, True, 2, 1), DIFFERENTIAL, Fraction(1, 20)).rho()
        assert rho.changing is not None
        tables = Space([Table((-6,), 1)], notion="replace", selection=True, domain=(-6, 6), bounded=True, reach=1)
        asked = Asked(case, tables, DIFFERENTIAL, Fraction(1, 20))
        changed = [Table((v,), 1) for v in range(-6, 7)]
        gone = Table((), 2)
        entering = max(
            find_share(lose_mechanisms(asked.at(one), asked.at(gone)), float(rho.entering)) for one in changed
        )
        changing = max(
            find_share(lose_mechanisms(asked.at(one), asked.at(two)), float(rho.changing))
            for one, two in product(changed, changed)
        )
        assert least < entering <= WITHIN
        assert least < changing <= WITHIN


# -------------------------------------------------------------------------------------------------------------- cells


def share_of_cells(asked: Asked, rho: float) -> float:
    """Two cells of a whole table under replace: a record changes within one, or leaves one and enters the other."""
    worst, seen = 0.0, set()
    values = [(), *((v,) for v in asked.tables.points), (0, 1), (1, 1), (-1, -1, 0, 2)]
    for one, two in product(values, values):
        everyone = len(one) + len(two)
        here = [asked.at(Table(cell, everyone - len(cell))) for cell in (one, two)]
        for left, right in move_one(one, two, asked.tables.points):
            there = [asked.at(Table(cell, everyone - len(cell))) for cell in (left, right)]
            key = tuple(find_key(before, after) for before, after in zip(here, there, strict=True))
            if key in seen:
                continue
            seen.add(key)
            losses: list[Losses] = []
            for before, after in zip(here, there, strict=True):
                losses += lose_mechanisms(before, after)
            worst = max(worst, find_share(losses, rho))
    return worst


def move_one(
    one: tuple[int, ...], two: tuple[int, ...], points: Iterable[int]
) -> Iterable[tuple[tuple[int, ...], tuple[int, ...]]]:
    """All pairs of cells after one record of the first has changed; the mirror image is another pair's."""
    for i in range(len(one)):
        rest = one[:i] + one[i + 1 :]
        for value in points:
            yield tuple(sorted((*rest, value))), two
            yield rest, tuple(sorted((*two, value)))


CELLS = [Count(), Median(), Mode(), Mean(), Variance()]


@pytest.mark.parametrize("case", CELLS, ids=lambda case: case.name)
def test_two_cells_change_under_replace(case: Statistic) -> None:
    asked = Asked(case, space("replace", True, True, 2, 1), DIFFERENTIAL, Fraction(1, 20))
    both = float(add_cells([asked.rho()] * 2, Neighbours.REPLACE))
    assert 0 < share_of_cells(asked, both) <= WITHIN


@pytest.mark.parametrize("case", [Median(), Mode(), Count(), DistinctCount()], ids=lambda case: case.name)
def test_cells_with_the_envelopes_of_add_remove(case: Statistic) -> None:
    """Section 9: ε/2 for each addition or removal, and a change within a cell is two of them; not so for counts."""
    asked = Asked(case, space("add-remove", False, True, 2, 1), DIFFERENTIAL, Fraction(1, 20) / 2)
    both = add_cells([asked.rho()] * 2, Neighbours.REPLACE)
    assert both == (
        pure_rho(Fraction(1, 20)) / 2 if isinstance(case, Count | DistinctCount) else range_rho(Fraction(1, 20))
    )
    assert 0 < share_of_cells(asked, float(both)) <= WITHIN


# ------------------------------------------------------------------------------------------------------ planted errors


LOWER_HALF = DiscreteQuantile(Fraction(1, 2))


@pytest.mark.parametrize(("notion", "selection"), NOTIONS)
def test_a_ninth_for_an_exponential_mechanism_is_caught(notion: str, selection: bool) -> None:
    """Of ε²: the mode of two categories, and inverse sensitivity, of which the refusal would take some of the mass."""
    epsilon = Fraction(1, 20)
    starts = small_tables((0, 1), range(4), [0, 2] if selection else [0])
    two = Space(starts, notion=notion, selection=selection, domain=(0, 1), bounded=True, reach=1)
    for case, refusal, tables in ((Mode(), None, two), (LOWER_HALF, 0, space(notion, selection, True, 4, 1))):
        asked = Asked(case, tables, DIFFERENTIAL, epsilon, refusal)
        assert asked.worst() == float(epsilon**2 / 8)
        assert asked.find_share(float(epsilon**2 / 9)) > 1.1
        assert asked.find_share(float(epsilon**2 / 8)) <= WITHIN


@pytest.mark.parametrize(("case", "refusal"), [(Count(), None), (LOWER_HALF, 0), (LOWER_HALF, 1)], ids=str)
def test_the_rho_of_one_cell_only_is_caught(case: Statistic, refusal: int | None) -> None:
    asked = Asked(case, space("replace", True, True, 2, 1), DIFFERENTIAL, Fraction(1, 20), refusal)
    assert share_of_cells(asked, asked.worst()) > 1.1
    assert share_of_cells(asked, float(add_cells([asked.rho()] * 2, Neighbours.REPLACE))) <= WITHIN


def test_too_little_for_laplace_noise_moments_and_groups_is_caught() -> None:
    epsilon = Fraction(1, 20)
    for case, part in [(Count(), Fraction(9, 20)), (Mean(), Fraction(1, 4)), (Variance(), Fraction(1, 8))]:
        asked = Asked(case, space("replace", True, True, 2, 1), DIFFERENTIAL, epsilon)
        assert asked.find_share(float(epsilon**2 * part)) > WITHIN
    asked = Asked(Count(), space("replace", True, True, 2, 2), DIFFERENTIAL, epsilon)
    two = [
        find_share(lose_mechanisms(asked.at(table), asked.at(other)), 2 * asked.worst())  # i·ρ for i²·ρ
        for table in asked.tables.starts
        for other in at_distance(asked.tables, table, 2)
    ]
    assert max(two) > WITHIN


def test_epsilon_of_above_threshold_taken_for_a_range_is_caught() -> None:
    """(e₁+e₂)²/8, as if it were an exponential mechanism of ε = e₁ + e₂."""
    tables, share = test_outer_ranks.space("add-remove", False), Fraction(9, 10)
    plan = replace(test_outer_ranks.COUNTING, target=Fraction(3))
    known = {}
    for table in tables.tables:
        moves = test_outer_ranks.moves_of(table, tables)
        deficits = list_deficits(plan.calibrate(cut_windows(table.values, plan.ranks(moves), moves)))
        known[table] = stopping_law(deficits, share, share)
    each = -math.log(share)
    pairs = [(known[table], known[other]) for table in tables.starts for other in tables.neighbours(table)]
    assert max(find_share([lose(one, two)], (2 * each) ** 2 / 8) for one, two in pairs) > 1.3
    assert max(find_share([lose(one, two)], (3 * each) ** 2 / 8) for one, two in pairs) <= WITHIN


def test_several_gaussian_numbers_share_their_rho() -> None:
    """A histogram under replace: Δ₂² = 2. The divergence of independent parts adds up to α·ρ exactly at whole α."""
    noise_ = DiscreteGaussian(Fraction(50))
    points = range(-200, 201)
    losses = [(noise_.pmf(x), float(Fraction(1 - 2 * x) / 100)) for x in points]
    share = find_share([losses, losses], float(2 * noise_.rho(1)))
    assert 1 - 1e-6 < share <= WITHIN

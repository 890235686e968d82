"""Gaussian noise by enumeration: D_α ≤ α·ρ over all neighbouring pairs of small tables, both ways.

At the global sensitivity each table is calibrated on itself; at the local one the calibration is frozen at D, and i
records have m_i²·ρ. With cells, and with several statistics of one question, all draws count together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement, product
from random import Random

import pytest

from idios.core.calibration import Added, Choice, Level, Mechanism, Method, Protection, Silent, calibrate, choose
from idios.core.concentrated import Rho, add_cells, find_rho, range_rho
from idios.core.distributions import DiscreteGaussian
from idios.core.multiples import declare_multiples, linear_multiples
from idios.core.neighbours import Neighbours
from idios.core.statistics import Count, DistinctCount, Mean, Median, Mode, Statistic, Sum, Variance
from tests.core.renyi import TOLERANCE, find_key, find_share, find_shift_share, lose_mechanisms
from tests.core.test_concentrated_laws import Asked, share_of_cells
from tests.core.test_joint import GROUPS, ONE, ORDER, components, some_question, some_tables
from tests.core.test_joint_gaussian import fit_table
from tests.core.test_privacy import NUMBERS, at_distance, space
from tests.records import Asked as Question
from tests.records import Records, World, table

REPLACE, ADD_REMOVE = Neighbours.REPLACE, Neighbours.ADD_REMOVE
NOTIONS = [("replace", False), ("replace", True), ("add-remove", False)]
DIFFERENTIAL = Protection(Level.DIFFERENTIAL, fineness=2)
WITHIN, EXACTLY = 1 + TOLERANCE, 1 - 1e-6
RHO, HALF = Fraction(1, 50), Fraction(1, 2)


# --------------------------------------------------------------------------------------------- the global sensitivity


def ask(case: Statistic, notion: str, selection: bool, parts: int = 1, protection: Protection = DIFFERENTIAL) -> Asked:
    tables = space(notion, selection, True, 2, 2 if protection.group > 1 else 1)
    return Asked(case, tables, protection, HALF, gaussian=RHO, parts=parts)


@pytest.mark.parametrize(("notion", "selection"), NOTIONS)
@pytest.mark.parametrize("case", [Count(), Sum(), DistinctCount()], ids=lambda case: case.name)
def test_at_the_global_sensitivity(case: Statistic, notion: str, selection: bool) -> None:
    """It is attained, at every whole order."""
    asked = ask(case, notion, selection)
    if asked.choice.method is Method.EXACT:
        assert asked.worst() == 0
        return
    assert asked.choice.rho == asked.rho().worst(asked.neighbours) == RHO
    assert EXACTLY < asked.find_share(float(RHO)) <= WITHIN


@pytest.mark.parametrize("case", [Mean(), Variance()], ids=lambda case: case.name)
def test_averages_of_a_whole_table(case: Statistic) -> None:
    """One size each, as it is public; rounding up to the grid leaves a little."""
    asked = ask(case, "replace", False)
    assert asked.choice.method is Method.GLOBAL
    assert 0.4 < asked.find_share(asked.worst()) <= WITHIN


@pytest.mark.parametrize("case", [Count(), Sum(), DistinctCount()], ids=lambda case: case.name)
def test_two_cells(case: Statistic) -> None:
    """ρ is that of all cells together, whichever two a record moves between."""
    asked = ask(case, "replace", True, parts=2)
    assert add_cells([asked.rho()] * 7, REPLACE) == RHO
    share = share_of_cells(asked, float(RHO))
    assert share <= WITHIN
    assert share > EXACTLY


@pytest.mark.parametrize("multiples", [linear_multiples(2), (Fraction(1), Fraction(1)), (Fraction(1), Fraction(3, 2))])
@pytest.mark.parametrize("case", [Count(), Sum()], ids=lambda case: case.name)
def test_groups_at_the_global_sensitivity(case: Statistic, multiples: tuple[Fraction, ...]) -> None:
    asked = ask(case, "replace", True, protection=Protection(Level.GROUP, multiples, fineness=2))
    assert asked.choice.method is Method.GLOBAL
    greatest = 0.0
    for start in asked.tables.starts:
        for records, multiple in enumerate(multiples, start=1):
            assert asked.rho(records).worst(REPLACE) <= multiple**2 * RHO
            for other in at_distance(asked.tables, start, records):
                here, there = asked.at(start), asked.at(other)
                assert isinstance(here, Added)
                assert isinstance(there, Added)
                assert here.noise == there.noise
                shifts = ((abs(here.value - there.value), here.noise),)
                greatest = max(greatest, find_shift_share(shifts, multiple**2 * RHO))
    assert EXACTLY < greatest <= WITHIN


# ---------------------------------------------------------------------------------------------- the local sensitivity

FITTED = [case for case in NUMBERS if case.name in ("median", "trimmed_mean", "iqr", "kth_largest")]


def share_of_frozen(asked: Asked, squared: Callable[[Fraction], Fraction]) -> float:
    """κ calibrated at D, and every table within reach; ``squared`` is what a multiple is taken for."""
    greatest = 0.0
    for start in asked.tables.starts:
        mechanism = asked.at(start)
        if isinstance(mechanism, Silent):
            continue
        assert isinstance(mechanism, Added)
        assert isinstance(mechanism.noise, DiscreteGaussian)
        for records, multiple in enumerate(asked.protection.multiples, start=1):
            for other in at_distance(asked.tables, start, records):
                value = asked.case.define(other.values)
                if value is not None:
                    shift = int(asked.case.place(value, 2)) - mechanism.value
                    greatest = max(
                        greatest, find_shift_share(((abs(shift), mechanism.noise),), squared(multiple) * RHO)
                    )
    return greatest


@pytest.mark.parametrize(("notion", "selection"), NOTIONS)
@pytest.mark.parametrize("multiples", [ONE, linear_multiples(2), (Fraction(1), Fraction(3, 2))], ids=str)
@pytest.mark.parametrize("case", FITTED, ids=lambda case: case.name)
def test_frozen_at_the_data(case: Statistic, multiples: tuple[Fraction, ...], notion: str, selection: bool) -> None:
    level = Level.INDIVIDUAL if multiples == ONE else Level.GROUP
    asked = Asked(
        case,
        space(notion, selection, True, 3, 1),
        Protection(level, multiples, floor=Fraction(0), fineness=2),
        HALF,
        gaussian=RHO,
    )
    for records, multiple in enumerate(multiples, start=1):
        assert asked.rho(records).worst(asked.neighbours) == multiple**2 * RHO
    assert 0.8 < share_of_frozen(asked, lambda multiple: multiple**2) <= WITHIN
    if len(multiples) > 1:
        assert share_of_frozen(asked, lambda multiple: multiple) > WITHIN  # m_i where m_i² is meant


# -------------------------------------------------------------------------------- several statistics, and their cells


def share_of_question(
    world: World, records: Records, asked: Sequence[Question], multiples: Sequence[Fraction], weight: Fraction = 2 * RHO
) -> float:
    """Calibrated together at D, against every table within reach: the share of m_i²·ρ."""
    fitted = fit_table(world, records, asked, [weight / len(asked)] * len(asked), 0, multiples)
    released = [
        (c, one, DiscreteGaussian(v))
        for c, row in enumerate(fitted)
        for one, v in zip(asked, row, strict=True)
        if v is not None
    ]
    greatest = 0.0
    for multiple, level in zip(multiples, world.ball(records, len(multiples)), strict=True):
        seen = set()
        for other in level:
            if any(world.answer(other, c, one) is None for c, one, _ in released):
                continue
            moved = ((int(world.change(records, other, c, one)), noise) for c, one, noise in released)
            seen.add(tuple(sorted((part for part in moved if part[0]), key=str)))
        greatest = max([greatest, *(find_shift_share(shifts, multiple**2 * RHO) for shifts in seen)])
    return greatest


JOINT = [
    World(notion, (0, 2), cells=cells, filtered=filtered, fineness=2)
    for notion in (REPLACE, ADD_REMOVE)
    for cells in (1, 2)
    for filtered in (False, True)
]


@pytest.mark.slow
@pytest.mark.parametrize("multiples", [ONE, GROUPS[0], GROUPS[2]], ids=lambda m: ",".join(map(str, m)))
@pytest.mark.parametrize("world", JOINT, ids=lambda w: f"{w.notion}-{w.cells}-{w.filtered}")
def test_several_statistics_calibrated_together(world: World, multiples: tuple[Fraction, ...]) -> None:
    random, greatest = Random(3), 0.0
    for records in some_tables(world, 6 if len(multiples) == 1 else 3, [4, 5]):
        asked, _ = some_question(random, ORDER)
        greatest = max(greatest, share_of_question(world, records, asked, multiples))
    assert 0.5 < greatest <= WITHIN
    records = some_tables(world, 1, [5], seed=4)[0]
    assert share_of_question(world, records, ORDER[:2], multiples, weight=3 * RHO) > 1  # half as much again


def test_a_weight_is_twice_its_rho() -> None:
    """The components of one cell by themselves, as ``calibrate`` would: σ² = S²/2ρ."""
    world = World(REPLACE, (0, 9))
    records = table((0, (v,)) for v in (0, 2, 5, 7, 9))
    [[variance]] = fit_table(world, records, [ORDER[0]], [2 * RHO])
    [part] = components(world, records, 0, [ORDER[0]], [2 * RHO], 0, 1)
    choice = Choice(Method.LOCAL, 1, HALF, rho=RHO)
    alone = calibrate(choice, Median(), part.summary, Protection(Level.INDIVIDUAL, floor=Fraction(0)))
    assert isinstance(alone, Added)
    assert alone.noise == DiscreteGaussian(variance)


class Mixed:
    """COUNT of one column with Gaussian noise and a mode of another, in two cells; every value may be missing."""

    def __init__(self, rho: Fraction, epsilon: Fraction) -> None:
        self.world = World(REPLACE, (0, 1), cells=2, columns=2, nullable=True)
        self.asked = [(Count(), 0), (Mode(), 1)]
        self.choices = [
            choose(case, self.world.grid, REPLACE, False, DIFFERENTIAL, epsilon, rho=rho, parts=2)
            for case, _ in self.asked
        ]
        self.rhos = [
            find_rho(choice, case, REPLACE, False) for choice, (case, _) in zip(self.choices, self.asked, strict=True)
        ]
        self._known: dict[Records, list[Mechanism]] = {}

    def at(self, records: Records) -> list[Mechanism]:
        if records not in self._known:
            found = []
            for cell, (choice, (case, column)) in product(range(2), zip(self.choices, self.asked, strict=True)):
                summary = self.world.summary(records, cell, Question(case, case.define, column), choice.distance)
                found.append(calibrate(choice, case, summary, DIFFERENTIAL))
            self._known[records] = found
        return self._known[records]

    def find_share(self, rho: Fraction) -> float:
        greatest, seen = 0.0, set()
        for size in (1, 2):
            for records in combinations_with_replacement(self.world.kinds, size):
                for other in self.world.neighbours(table(records)):
                    pairs = [pair for pair in zip(self.at(records), self.at(other), strict=True) if pair[0] != pair[1]]
                    key = tuple(find_key(one, two) for one, two in pairs)
                    if key not in seen:
                        seen.add(key)
                        losses = [part for one, two in pairs for part in lose_mechanisms(one, two)]
                        greatest = max(greatest, find_share(losses, float(rho)))
        return greatest


@pytest.mark.slow
def test_a_question_of_several_mechanisms_in_cells() -> None:
    """A record that stays in its cell may enter one column and change within the other: what is added covers it."""
    epsilon = Fraction(1, 10)
    mixed = Mixed(range_rho(epsilon) / 2, epsilon)
    count, mode = mixed.rhos
    assert 0.95 < mixed.find_share(add_cells([count + mode] * 2, REPLACE)) <= WITHIN
    apart = Rho(
        sum((rho.entering for rho in mixed.rhos), Fraction(0)),
        sum((rho.changing or Fraction(0) for rho in mixed.rhos), Fraction(0)),
    )
    assert mixed.find_share(add_cells([apart] * 2, REPLACE)) > WITHIN  # as if all columns were selected alike


# ------------------------------------------------------------------------------------------------------ planted errors


def test_one_cell_taken_for_two_is_caught() -> None:
    """Δ₂² = e², as if a record could not leave one cell for another: the ρ of one cell only."""
    asked = ask(Count(), "replace", True, parts=1)
    assert share_of_cells(asked, float(RHO)) > 1.9


def test_the_sensitivity_to_a_change_taken_for_all_is_caught() -> None:
    """A sum of values that are far from 0 moves more when one enters than when one changes."""
    world = World(REPLACE, (1, 2), cells=2)
    choice = choose(Sum(), world.grid, REPLACE, False, DIFFERENTIAL, HALF, rho=RHO, parts=2)
    records = table([(0, (2,)), (1, (1,))])
    summary = world.summary(records, 0, Question(Sum(), sum), 0)
    mechanism = calibrate(choice, Sum(), summary, DIFFERENTIAL)
    assert isinstance(mechanism, Added)
    assert isinstance(mechanism.noise, DiscreteGaussian)
    assert find_shift_share(((2, mechanism.noise), (2, mechanism.noise)), RHO) <= WITHIN
    assert find_shift_share(((2, DiscreteGaussian(1 / (2 * RHO))),), RHO) > 3.9


def test_the_rho_of_an_exponential_mechanism_is_too_little() -> None:
    """ε²/8 and ε²/9 in place of ε²/2, for Gaussian noise of variance (Δ/ε)²."""
    noise = DiscreteGaussian(1 / HALF**2)
    assert noise.rho(1) == HALF**2 / 2
    assert find_shift_share(((1, noise),), HALF**2 / 2) <= WITHIN
    for less in (range_rho(HALF), HALF**2 / 9):
        assert find_shift_share(((1, noise),), less) > 3


def test_groups_of_flat_multiples_need_less_noise_share() -> None:
    """Without the share of ``differential_share``², two records of a flat group lose 4·ρ."""
    flat = declare_multiples({"size": 2, "growth": "flat"})
    asked = ask(Count(), "replace", True, protection=Protection(Level.GROUP, flat, fineness=2))
    assert asked.choice.rho == RHO / 4
    assert find_shift_share(((2, DiscreteGaussian(1 / (2 * RHO))),), RHO) > 3.9

"""Global sensitivities against enumeration: one record, every neighbour of all small tables, all cells together."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations_with_replacement

import pytest

from idios.core.calibration import (
    Added,
    Level,
    Method,
    Protection,
    calibrate,
    choose,
    expected_error,
    find_sensitivity,
    find_squared_sensitivity,
)
from idios.core.distributions import DiscreteGaussian, DiscreteLaplace
from idios.core.neighbours import Moves, Neighbours
from idios.core.statistics import Count, DistinctCount, Mean, Median, RangeCount, Statistic, Sum, Variance
from tests.records import Asked, Records, World
from tests.summaries import summarise

REPLACE, ADD_REMOVE = Neighbours.REPLACE, Neighbours.ADD_REMOVE
FINENESS = 4
WORLDS = [
    World(notion, domain, cells=cells, filtered=filtered, nullable=nullable, fineness=FINENESS)
    for domain in ((-1, 1), (0, 2), (-3, -2))
    for notion in (REPLACE, ADD_REMOVE)
    for cells in (1, 2)
    for filtered, nullable in ((False, False), (True, False), (False, True))
]


def name(world: World) -> str:
    facts = [str(world.notion), f"{world.cells}cells", str(world.domain)]
    return "-".join([*facts, *["filter"] * world.filtered, *["null"] * world.nullable])


def list_tables(world: World, most: int) -> Iterator[Records]:
    for size in range(most + 1):
        yield from combinations_with_replacement(world.kinds, size)


def find_moves(world: World, size: int = 3) -> Moves:
    outside = None if world.whole or world.notion is ADD_REMOVE else 1
    return Moves(world.notion, size, outside)


def find_parts(world: World) -> int:
    return 2 if world.cells > 1 and world.notion is REPLACE else 1


def find_worst(world: World, statistic: Statistic, most: int = 3) -> Fraction:
    """The greatest Σ_c Δ_c² by trying everything."""
    asked = Asked(statistic, statistic.define)
    return max(
        sum((Fraction(world.change(records, other, c, asked)) ** 2 for c in range(world.cells)), Fraction(0))
        for records in list_tables(world, most)
        for other in world.neighbours(records)
        if all(world.answer(records, c, asked) is not None for c in range(world.cells))
    )


@pytest.mark.parametrize("world", WORLDS, ids=name)
@pytest.mark.parametrize("statistic", [Count(), Sum(), DistinctCount()], ids=lambda s: s.name)
def test_the_square_is_what_one_record_can_do(statistic: Statistic, world: World) -> None:
    found = find_squared_sensitivity(statistic, world.grid, find_moves(world), find_parts(world), FINENESS)
    assert find_worst(world, statistic) == found


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("statistic", [Mean(), Variance()], ids=lambda s: s.name)
def test_averages_of_a_whole_table(statistic: Statistic, size: int) -> None:
    """Rounded up to the grid, and public: of a selection they have none."""
    world = World(REPLACE, (0, 3), fineness=FINENESS)
    asked = Asked(statistic, statistic.define)
    worst = max(
        Fraction(world.change(records, other, 0, asked)) ** 2
        for records in combinations_with_replacement(world.kinds, size)
        for other in world.neighbours(records)
    )
    found = find_squared_sensitivity(statistic, world.grid, Moves(REPLACE, size), 1, FINENESS)
    assert worst <= found <= (worst**0.5 + 1) ** 2
    for moves in (Moves(REPLACE, size, 1), Moves(ADD_REMOVE, size)):
        with pytest.raises(AssertionError, match="does not know"):
            find_squared_sensitivity(statistic, world.grid, moves, 1, FINENESS)


def test_a_range_count_is_never_above() -> None:
    for world in WORLDS:
        for first, last in ((0, 0), (-5, 5), (7, 9)):
            statistic = RangeCount(first, last)
            moves = find_moves(world)
            found = find_squared_sensitivity(statistic, world.grid, moves, find_parts(world), FINENESS)
            assert find_worst(world, statistic, 2) <= found


def test_what_a_question_of_two_cells_costs() -> None:
    """Δ₁ = 2 and Δ₂² = 2 of a histogram: half of the variance that Laplace's Δ₁² would ask for."""
    world = World(REPLACE, (-9, 10), cells=2)
    moves = Moves(REPLACE, 3, 1)
    squares = [[find_squared_sensitivity(s, world.grid, moves, parts, 1) for parts in (1, 2)] for s in (Count(), Sum())]
    assert squares == [[1, 2], [19**2, 19**2]]
    assert find_squared_sensitivity(Sum(), World(REPLACE, (5, 10)).grid, moves, 2, 1) == 2 * 10**2
    assert find_sensitivity(Sum(), world.grid, moves, 1) == 19


class TestChoice:
    """With ρ, noise at the local and at the global sensitivity is Gaussian; nothing else changes."""

    RHO = Fraction(1, 8)

    def choose(self, statistic: Statistic, level: Level = Level.DIFFERENTIAL, whole: bool = False, **facts: object):  # type: ignore[no-untyped-def]
        protection = Protection(level, **facts)  # type: ignore[arg-type]
        domain = World(REPLACE).grid
        return choose(statistic, domain, REPLACE, whole, protection, Fraction(1, 2), rho=self.RHO, parts=2)

    def test_who_carries_it(self) -> None:
        assert (self.choose(Count()).rho, self.choose(Count()).parts) == (self.RHO, 2)
        local = self.choose(Median(), Level.INDIVIDUAL)
        assert (local.method, local.rho, local.parts) == (Method.LOCAL, self.RHO, 2)
        assert self.choose(Count(), whole=True) == choose(
            Count(), World(REPLACE).grid, REPLACE, True, Protection(Level.DIFFERENTIAL), Fraction(1, 2)
        )
        for statistic in (Median(), Mean()):
            choice = self.choose(statistic)
            assert choice.method in (Method.INVERSE, Method.MOMENTS)
            assert (choice.rho, choice.parts) == (None, 1)

    def test_groups_of_records(self) -> None:
        """A zCDP mechanism protects i records with i²·ρ′, which may be m_i²·ρ at most."""
        flat, grown = (Fraction(1),) * 5, (Fraction(1), Fraction(3))
        assert self.choose(Count(), Level.GROUP, multiples=flat).rho == self.RHO / 25
        assert self.choose(Count(), Level.GROUP, multiples=grown).rho == self.RHO
        assert self.choose(Median(), Level.GROUP, multiples=flat).rho == self.RHO

    def test_the_variance(self) -> None:
        domain, moves = World(REPLACE).grid, Moves(REPLACE, 5, 9)
        values = [0, 0, 1, 2, 3]
        count = calibrate(
            self.choose(Count()), Count(), summarise(values, Count(), domain, moves, 0), Protection(Level.DIFFERENTIAL)
        )
        assert (count.value, count.noise) == (5, DiscreteGaussian(2 / (2 * self.RHO)))  # type: ignore[union-attr]
        protection = Protection(Level.INDIVIDUAL)
        summary = summarise(values, Median(), domain, moves, 1)
        median = calibrate(self.choose(Median(), Level.INDIVIDUAL), Median(), summary, protection)
        # on half steps a median of 1 moves by 2, to 0 or to 2
        assert (median.value, median.noise) == (2, DiscreteGaussian(4 / (2 * self.RHO)))  # type: ignore[union-attr]

    def test_the_error_to_expect(self) -> None:
        """Of noise around a value that clipping has moved, and in the units of the answer."""
        noise = DiscreteGaussian(Fraction(100))
        moved = sum(abs(k + 3) * noise.pmf(k) for k in range(-200, 201))
        assert expected_error(Added(10, noise), 7, Fraction(1, 2)) == pytest.approx(moved / 2)
        assert expected_error(Added(10, noise), None, Fraction(1)) == pytest.approx(noise.expected_absolute)
        assert expected_error(Added(10, DiscreteGaussian(Fraction(0))), 7, Fraction(1)) == 3

    @pytest.mark.parametrize("noise", [DiscreteLaplace(Fraction(7)), DiscreteGaussian(Fraction(100))])
    @pytest.mark.parametrize(("low", "high"), [(-math.inf, 12), (3, math.inf), (3, 12), (10, 10), (0, 10**30)])
    def test_answers_that_are_clamped(self, noise: DiscreteLaplace | DiscreteGaussian, low: float, high: float) -> None:
        """Whatever lies beyond the range is answered with its end: a sum over the law, of every value within."""
        for value in range(*(int(min(max(end, 3), 13)) for end in (low, high + 1))):
            clamped = sum(abs(min(max(10 + k, low), high) - value) * noise.pmf(k) for k in range(-250, 251))
            expected = expected_error(Added(10, noise), value, Fraction(1, 2), low, high)  # type: ignore[arg-type]
            assert expected == pytest.approx(clamped / 2, abs=1e-9)

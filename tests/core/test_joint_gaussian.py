"""Joint calibration of Gaussian noise against enumeration: Σ Δ²/σ² ≤ m_i²·W at every distance i, in all cells."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from random import Random

import pytest

from idios.core import joint, joint_loss
from idios.core.calibration import Added
from idios.core.distributions import DiscreteGaussian
from idios.core.joint import Component, calibrate_cells
from idios.core.multiples import declare_multiples
from idios.core.neighbours import Neighbours
from idios.core.statistics import KthLargest, KthSmallest, Maximum, Minimum
from tests import oracle
from tests.core.test_joint import (
    ANY,
    COLUMNS,
    GROUPED,
    GROUPS,
    HALF,
    MEDIAN,
    MONOTONE,
    ONE,
    ORDER,
    QUARTER,
    ROUNDED,
    SINGLE,
    THIRD,
    components,
    quantile,
    some_question,
    some_tables,
    today,
    world_name,
)
from tests.records import Asked, Records, World, table

REPLACE, ADD_REMOVE = Neighbours.REPLACE, Neighbours.ADD_REMOVE
Variances = list[list[Fraction | None]]


def fit(cells: Sequence[Sequence[Component]], multiples: Sequence[Fraction] = ONE) -> Variances:
    """The variance of each component's noise; None where it is not answered."""
    found: Variances = []
    for cell in calibrate_cells(cells, Fraction(1), multiples, gaussian=True):
        found.append([])
        for part in cell:
            variance = None
            if isinstance(part, Added):
                assert isinstance(part.noise, DiscreteGaussian)
                variance = part.noise.variance
            found[-1].append(variance)
    return found


def fit_table(
    world: World,
    records: Records,
    asked: Sequence[Asked],
    weights: Sequence[Fraction],
    floor: int = 0,
    multiples: Sequence[Fraction] = ONE,
) -> Variances:
    return fit(
        [components(world, records, c, asked, weights, floor, len(multiples)) for c in range(world.cells)], multiples
    )


def find_losses(
    world: World, records: Records, asked: Sequence[Asked], fitted: Variances, reach: int
) -> list[Fraction | float]:
    """The greatest Σ Δ²/σ² over the tables at distance 1, 2, …; a variance of 0 bears no change at all."""
    released = [(c, one, v) for c, row in enumerate(fitted) for one, v in zip(asked, row, strict=True) if v is not None]
    worst: list[Fraction | float] = []
    for level in world.ball(records, reach):
        worst.append(Fraction(0))
        for other in level:
            loss: Fraction | float = Fraction(0)
            for c, one, variance in released:
                change = world.change(records, other, c, one)
                if change:
                    loss += Fraction(change) ** 2 / variance if variance else math.inf
            worst[-1] = max(worst[-1], loss)
    return worst


def find_excess(
    world: World,
    count: int,
    sizes: Sequence[int],
    pool: Sequence[Asked] = ANY,
    multiples: Sequence[Fraction] = ONE,
    floors: Sequence[int] = (0, 0, 1),
) -> Fraction | float:
    """The greatest loss at distance i divided by m_i², over random tables, each with a question of its own."""
    random = Random(12)
    worst: Fraction | float = Fraction(0)
    for records in some_tables(world, count, sizes):
        asked, weights = some_question(random, pool, world.columns)
        fitted = fit_table(world, records, asked, weights, random.choice(floors), multiples)
        lost = find_losses(world, records, asked, fitted, len(multiples))
        worst = max(worst, *(loss / m**2 for loss, m in zip(lost, multiples, strict=True)))
    return worst


@pytest.mark.slow
class TestAtDistanceOne:
    @pytest.mark.parametrize("world", [*SINGLE, *COLUMNS, *GROUPED], ids=world_name)
    def test_no_neighbour_loses_more_than_its_share(self, world: World) -> None:
        assert find_excess(world, 120, [1, 2, 3, 4, 5, 6] if world.cells == 1 else [2, 3, 5, 7, 8]) <= 1

    @pytest.mark.parametrize("world", SINGLE, ids=world_name)
    def test_order_statistics_of_one_column_are_calibrated_exactly(self, world: World) -> None:
        random = Random(5)
        for records in some_tables(world, 200, [1, 2, 3, 4, 5, 6, 7], seed=2):
            size = len(world.values(records, 0, 0)) - (world.notion is ADD_REMOVE or not world.whole)
            asked, weights = some_question(random, [one for one in ORDER if one.statistic.least_size <= size] or ORDER)
            fitted = fit_table(world, records, asked, weights)
            if any(fitted[0]) and all(one.statistic.least_size <= size for one in asked):
                assert find_losses(world, records, asked, fitted, 1) == [1], (records, asked)

    def test_monotone_statistics_of_a_whole_column_are_calibrated_exactly(self) -> None:
        random, world = Random(6), World(REPLACE)
        for records in some_tables(world, 300, [1, 2, 3, 4, 5, 6, 7], seed=3):
            asked, weights = some_question(random, MONOTONE)
            fitted = fit_table(world, records, asked, weights)
            if any(fitted[0]):
                assert find_losses(world, records, asked, fitted, 1) == [1], (records, asked)

    @pytest.mark.parametrize("world", SINGLE, ids=world_name)
    def test_what_is_rounded(self, world: World) -> None:
        rough = World(world.notion, filtered=world.filtered, nullable=world.nullable, fineness=10)
        assert find_excess(rough, 150, [2, 3, 4, 5, 6, 7], ROUNDED, floors=(0,)) <= 1

    @pytest.mark.parametrize("notion", [REPLACE, ADD_REMOVE])
    @pytest.mark.parametrize("filtered", [False, True])
    def test_a_column_without_bounds(self, notion: Neighbours, filtered: bool) -> None:
        world = World(notion, filtered=filtered, bounded=False)
        inner = [one for one in ORDER if not isinstance(one.statistic, (Minimum, Maximum))]
        assert find_excess(world, 100, [3, 4, 5, 6, 7], inner, floors=(0,)) == 1


@pytest.mark.slow
class TestGroups:
    @pytest.mark.parametrize("multiples", GROUPS, ids=lambda m: ",".join(map(str, m)))
    @pytest.mark.parametrize("world", [*SINGLE, *COLUMNS], ids=world_name)
    def test_i_records_lose_m_i_squared(self, world: World, multiples: tuple[Fraction, ...]) -> None:
        small = World(world.notion, (0, 2), 1, world.columns, world.filtered, world.nullable)
        deep = len(multiples) > 2
        if deep and world.columns > 1:
            count, sizes = 4, [2, 3]
        else:
            count, sizes = 12 if deep else 40 // world.columns**2, [1, 2, 3, 4, 5]
        assert find_excess(small, count, sizes, ANY, multiples) <= 1

    @pytest.mark.parametrize("simple", [False, True])
    @pytest.mark.parametrize("multiples", GROUPS, ids=lambda m: ",".join(map(str, m)))
    @pytest.mark.parametrize("world", GROUPED, ids=world_name)
    def test_in_cells(
        self, world: World, multiples: tuple[Fraction, ...], simple: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        if simple:
            monkeypatch.setattr(joint, "MOST_CELL_WORK", 0)
        deep = len(multiples) > 2
        assert find_excess(world, 3 if deep else 10, [3, 4] if deep else [3, 5, 6], ANY, multiples) <= 1


class TestProposition3:
    @pytest.mark.parametrize("multiples", [ONE, *GROUPS], ids=lambda m: ",".join(map(str, m)))
    @pytest.mark.parametrize("world", SINGLE, ids=world_name)
    def test_between_alone_and_divided(self, world: World, multiples: tuple[Fraction, ...]) -> None:
        random = Random(9)
        for records in some_tables(world, 20, [3, 4, 5, 6]):
            asked, weights = some_question(random, ANY)
            parts = components(world, records, 0, asked, weights, 1, len(multiples))
            for part, variance in zip(parts, *fit([parts], multiples), strict=True):
                alone = today(part, multiples)
                assert (variance is None) == (alone is None)
                if variance is not None and alone is not None:
                    assert alone**2 <= variance <= alone**2 / part.weight

    def test_one_statistic_has_its_own_variance(self) -> None:
        for world, multiples in product(SINGLE, [ONE, *GROUPS]):
            for records in some_tables(world, 3, [3, 4, 5, 6]):
                for one, floor in product(ANY, (0, 1)):
                    [part] = components(world, records, 0, [one], [HALF], floor, len(multiples))
                    alone = today(part, multiples)
                    assert fit([[part]], multiples) == [[None if alone is None else 2 * alone**2]]

    def test_tied_statistics_share_what_they_may_lose(self) -> None:
        """Three floors at once are √3 of each, where Laplace noise pays three times."""
        records = table((0, (1,)) for _ in range(9))
        asked = [quantile(QUARTER), MEDIAN, quantile(3 * QUARTER)]
        steps = [one.statistic.resolution() for one in asked]
        assert fit_table(World(REPLACE), records, asked, [THIRD] * 3, floor=1) == [[Fraction(3 * s**2) for s in steps]]

    @pytest.mark.parametrize("world", [*SINGLE, *GROUPED], ids=world_name)
    def test_the_floors_together_lose_no_more(self, world: World) -> None:
        random = Random(3)
        touched = 2 if world.cells > 1 and world.notion is REPLACE else 1
        for records in some_tables(world, 30, [4, 6, 9]):
            asked, weights = some_question(random, ANY)
            rows = []
            for cell, fitted in enumerate(fit_table(world, records, asked, weights, floor=1)):
                parts = components(world, records, cell, asked, weights, 1, 1)
                rows.append(sum(p.floor**2 / v for p, v in zip(parts, fitted, strict=True) if v is not None))
            assert sum(sorted(rows)[-touched:]) <= 1


class TestCells:
    def test_medians_of_two_cells(self) -> None:
        """A record that leaves a cell for another pays half in each; one that changes moves a median twice as far."""
        world = World(REPLACE, (0, 9), cells=2)
        records = table((cell, (v,)) for cell in (0, 1) for v in (0, 2, 4, 6, 8))
        [one], [two] = fit_table(world, records, [MEDIAN], [Fraction(1)])
        assert one == two == (2 * MEDIAN.statistic.resolution(world.fineness)) ** 2
        assert find_losses(world, records, [MEDIAN], [[one], [two]], 1) == [1]

    @pytest.mark.parametrize("cells", [2, 3])
    def test_no_cell_can_have_less_noise(self, cells: int) -> None:
        world = World(REPLACE, (0, 5), cells=cells)
        random = Random(4)
        for records in some_tables(world, 20, [8, 9, 10], seed=5):
            if min(len(world.values(records, c, 0)) for c in range(cells)) < 3:
                continue  # a cell whose statistics a neighbour may not have
            asked, weights = some_question(random, ORDER)
            fitted = fit_table(world, records, asked, weights)
            assert find_losses(world, records, asked, fitted, 1)[0] <= 1
            for c in range(cells):
                if not any(fitted[c]):
                    continue
                less = [[v and v * Fraction(999, 1000) for v in row] if c == i else row for i, row in enumerate(fitted)]
                assert find_losses(world, records, asked, less, 1)[0] > 1, (records, c)


class TestPlantedErrors:
    """Each of these is a plausible mistake; the enumeration above sees it."""

    def test_the_coefficients_of_laplace_noise(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """|Δ| where Δ² is meant."""
        right = joint_loss.JointLoss.__init__
        monkeypatch.setattr(
            joint_loss.JointLoss, "__init__", lambda self, moved, distance, **k: right(self, moved, distance)
        )
        assert find_excess(World(REPLACE), 40, [3, 4, 5, 6], floors=(0,)) > 1

    def test_the_multiples_of_laplace_noise(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """m_i where m_i² is meant: two records of (½, 2) would lose 2·W as if it were 4·W, and one ½ for ¼."""
        right = joint._Cell.__init__

        def linear(self: joint._Cell, components, multiples, simple, power=1) -> None:  # type: ignore[no-untyped-def]
            right(self, components, declare_multiples(["0.5", 2]), simple, power)

        monkeypatch.setattr(joint._Cell, "__init__", linear)
        multiples = declare_multiples(["0.5", 2])
        assert find_excess(World(REPLACE, (0, 2)), 20, [3, 4, 5], ORDER, multiples, (0,)) > 1

    def test_two_cells_forgotten(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(joint, "_factors", lambda cells, *_: [cell.alone() for cell in cells])
        assert find_excess(World(REPLACE, (0, 2), cells=2), 40, [3, 4, 5, 6], ORDER, floors=(0,)) > 1
        flat = declare_multiples({"size": 2, "growth": "flat"})
        assert find_excess(World(ADD_REMOVE, (0, 2), cells=2), 40, [3, 4, 5, 6], ORDER, flat, (0,)) > 1

    def test_entering_and_leaving_forgotten(self, monkeypatch: pytest.MonkeyPatch) -> None:
        right = joint_loss.splits
        monkeypatch.setattr(
            joint_loss, "splits", lambda m, n: (s for s in right(m, n) if not s.added and not s.removed)
        )
        crossing = [
            Asked(KthSmallest(3), lambda v: oracle.kth_smallest(v, 3)),
            Asked(KthLargest(3), lambda v: oracle.kth_largest(v, 3)),
        ]
        assert find_excess(World(REPLACE, filtered=True), 80, [3, 4, 5, 6], crossing, floors=(0,)) > 1

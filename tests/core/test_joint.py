"""Joint calibration against enumeration: every neighbour of thousands of small tables, and every group up to three."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product
from random import Random

import pytest

from idios.core import joint, joint_loss
from idios.core.accounting import compose_parallel, split_between_parts
from idios.core.calibration import Added
from idios.core.distributions import DiscreteLaplace
from idios.core.domain import Domain
from idios.core.envelope import Envelope
from idios.core.guarantee import Guarantee
from idios.core.joint import Component, calibrate_cells
from idios.core.joint_loss import JointLoss, Split
from idios.core.multiples import declare_multiples, limit_epsilon, part_multiples
from idios.core.neighbours import Moves, Neighbours
from idios.core.statistics import (
    Count,
    DiscreteQuantile,
    DistinctCount,
    InterquartileRange,
    KthLargest,
    KthSmallest,
    Maximum,
    Mean,
    Median,
    Minimum,
    Quantile,
    Sum,
    TrimmedMean,
    Variance,
    WinsorizedMean,
)
from tests import oracle
from tests.records import Asked, Records, World, table
from tests.summaries import summarise

pytestmark = pytest.mark.slow  # every test enumerates

REPLACE, ADD_REMOVE = Neighbours.REPLACE, Neighbours.ADD_REMOVE
ONE = (Fraction(1),)
HALF, THIRD, QUARTER = Fraction(1, 2), Fraction(1, 3), Fraction(1, 4)


def quantile(q: Fraction) -> Asked:
    return Asked(Quantile(q), lambda v: oracle.quantile(v, q))


def discrete(q: Fraction) -> Asked:
    return Asked(DiscreteQuantile(q), lambda v: oracle.discrete_quantile(v, q))


MEDIAN = Asked(Median(), lambda v: oracle.quantile(v, HALF))
ORDER = [
    MEDIAN,
    quantile(QUARTER),
    quantile(3 * QUARTER),
    discrete(QUARTER),
    discrete(HALF),
    discrete(3 * QUARTER),
    Asked(Minimum(), lambda v: oracle.kth_smallest(v, 1)),
    Asked(Maximum(), lambda v: oracle.kth_largest(v, 1)),
    Asked(KthSmallest(2), lambda v: oracle.kth_smallest(v, 2)),
    Asked(KthLargest(2), lambda v: oracle.kth_largest(v, 2)),
]
MONOTONE = [
    *ORDER,
    Asked(Mean(), oracle.mean),
    Asked(TrimmedMean(QUARTER), lambda v: oracle.trimmed_mean(v, QUARTER)),
    Asked(WinsorizedMean(QUARTER), lambda v: oracle.winsorized_mean(v, QUARTER)),
    Asked(Sum(), sum),
]
ANY = [
    *MONOTONE,
    Asked(InterquartileRange(), oracle.iqr),
    Asked(Variance(), oracle.variance),
    Asked(DistinctCount(), lambda v: len(set(v))),
]
ROUNDED = [quantile(THIRD), quantile(Fraction(2, 5)), quantile(Fraction(4, 7)), MEDIAN, discrete(HALF)]


def components(
    world: World,
    records: Records,
    cell: int,
    asked: Sequence[Asked],
    weights: Sequence[Fraction],
    floor: int,
    group: int,
) -> list[Component]:
    return [
        Component(
            one.statistic,
            world.summary(records, cell, one, group),
            weight,
            Fraction(floor * (one.statistic.resolution(world.fineness) if one.statistic.coarse_floor else 1)),
            one.column,
            world.fineness,
        )
        for one, weight in zip(asked, weights, strict=True)
    ]


def scales(
    cells: Sequence[Sequence[Component]], epsilon: Fraction, multiples: Sequence[Fraction] = ONE
) -> list[list[Fraction | None]]:
    """The scale of each component's noise; None where it is not answered."""
    return [
        [part.noise.scale if isinstance(part, Added) else None for part in cell]
        for cell in calibrate_cells(cells, epsilon, multiples)
    ]


def calibrated(
    world: World,
    records: Records,
    asked: Sequence[Asked],
    weights: Sequence[Fraction],
    floor: int = 0,
    multiples: Sequence[Fraction] = ONE,
) -> list[list[Fraction | None]]:
    cells = [components(world, records, c, asked, weights, floor, len(multiples)) for c in range(world.cells)]
    return scales(cells, Fraction(1), multiples)


def losses(
    world: World, records: Records, asked: Sequence[Asked], fitted: Sequence[Sequence[Fraction | None]], reach: int
) -> list[Fraction | float]:
    """The greatest Σ|Δ|/b over the tables at distance 1, 2, …; a scale of 0 bears no change at all."""
    released = [(c, one, b) for c, row in enumerate(fitted) for one, b in zip(asked, row, strict=True) if b is not None]
    worst: list[Fraction | float] = []
    for level in world.ball(records, reach):
        worst.append(Fraction(0))
        for other in level:
            loss: Fraction | float = Fraction(0)
            for c, one, b in released:
                change = world.change(records, other, c, one)
                if change:
                    loss += Fraction(change) / b if b else math.inf
            worst[-1] = max(worst[-1], loss)
    return worst


def some_question(random: Random, pool: Sequence[Asked], columns: int = 1) -> tuple[list[Asked], list[Fraction]]:
    asked = [
        Asked(one.statistic, one.textbook, random.randrange(columns))
        for one in random.sample(pool, random.randint(1, min(4, len(pool))))
    ]
    parts = [random.choice([1, 1, 1, 2, 3]) for _ in asked]
    return asked, [Fraction(part, sum(parts)) for part in parts]


def excess(
    world: World,
    tables: Sequence[Records],
    questions: Callable[[Random], tuple[list[Asked], list[Fraction]]],
    multiples: Sequence[Fraction] = ONE,
    floors: Sequence[int] = (0,),
) -> Fraction | float:
    """The greatest loss at distance i divided by m_i, over all tables, each with a question of its own."""
    random = Random(12)
    worst: Fraction | float = Fraction(0)
    for records in tables:
        asked, weights = questions(random)
        fitted = calibrated(world, records, asked, weights, random.choice(floors), multiples)
        lost = losses(world, records, asked, fitted, len(multiples))
        worst = max(worst, *(loss / m for loss, m in zip(lost, multiples, strict=True)))
    return worst


def some_tables(world: World, count: int, sizes: Sequence[int], seed: int = 1) -> list[Records]:
    random = Random(seed)
    return [world.random_table(random, random.choice(sizes)) for _ in range(count)]


def world_name(world: World) -> str:
    facts = {"filter": world.filtered, "null": world.nullable, "unbounded": not world.bounded}
    listed = [str(world.notion), *(name for name, holds in facts.items() if holds)]
    return "-".join([*listed, f"{world.cells}cells", f"{world.columns}columns"])


SINGLE = [
    World(REPLACE),
    World(REPLACE, filtered=True),
    World(REPLACE, nullable=True),
    World(REPLACE, filtered=True, nullable=True),
    World(ADD_REMOVE),
    World(ADD_REMOVE, filtered=True, nullable=True),
]
COLUMNS = [
    World(notion, (0, 2), columns=2, filtered=filtered, nullable=nullable)
    for notion in (REPLACE, ADD_REMOVE)
    for filtered, nullable in ((False, False), (True, True))
]
GROUPED = [
    World(notion, (0, 2), cells=cells, filtered=filtered, nullable=nullable)
    for notion in (REPLACE, ADD_REMOVE)
    for cells in (2, 3)
    for filtered, nullable in ((False, False), (True, True))
]


class TestAtDistanceOne:
    @pytest.mark.parametrize("world", [*SINGLE, *COLUMNS, *GROUPED], ids=world_name)
    def test_no_neighbour_loses_more_than_epsilon(self, world: World) -> None:
        tables = some_tables(world, 120, [1, 2, 3, 4, 5, 6] if world.cells == 1 else [2, 3, 5, 7, 8])
        assert excess(world, tables, lambda r: some_question(r, ANY, world.columns), floors=(0, 0, 1)) <= 1

    @pytest.mark.parametrize("world", [*SINGLE, *COLUMNS, *GROUPED], ids=world_name)
    def test_no_neighbour_loses_more_than_epsilon_in_many_tables(self, world: World) -> None:
        tables = some_tables(world, 500, [1, 2, 3, 4, 5, 6] if world.cells == 1 else [2, 3, 5, 7, 8], seed=9)
        assert excess(world, tables, lambda r: some_question(r, ANY, world.columns), floors=(0, 0, 1)) <= 1

    @pytest.mark.parametrize("world", SINGLE, ids=world_name)
    def test_order_statistics_of_one_column_are_calibrated_exactly(self, world: World) -> None:
        random = Random(5)
        for records in some_tables(world, 200, [1, 2, 3, 4, 5, 6, 7], seed=2):
            size = len(world.values(records, 0, 0)) - (world.notion is ADD_REMOVE or not world.whole)
            asked, weights = some_question(random, [one for one in ORDER if one.statistic.least_size <= size] or ORDER)
            fitted = calibrated(world, records, asked, weights)
            if any(fitted[0]) and all(one.statistic.least_size <= size for one in asked):
                assert losses(world, records, asked, fitted, 1) == [1], (records, asked)

    def test_monotone_statistics_of_a_whole_column_are_calibrated_exactly(self) -> None:
        random, world = Random(6), World(REPLACE)
        for records in some_tables(world, 300, [1, 2, 3, 4, 5, 6, 7], seed=3):
            asked, weights = some_question(random, MONOTONE)
            fitted = calibrated(world, records, asked, weights)
            if any(fitted[0]):
                assert losses(world, records, asked, fitted, 1) == [1], (records, asked)

    @pytest.mark.parametrize("world", SINGLE, ids=world_name)
    def test_what_is_rounded_loses_at_most_epsilon_and_little_less(self, world: World) -> None:
        rough = World(world.notion, filtered=world.filtered, nullable=world.nullable, fineness=10)
        random = Random(7)
        for records in some_tables(rough, 120, [2, 3, 4, 5, 6, 7], seed=4):
            asked, weights = some_question(random, ROUNDED)
            fitted = calibrated(rough, records, asked, weights)
            assert losses(rough, records, asked, fitted, 1)[0] <= 1

    @pytest.mark.parametrize("notion", [REPLACE, ADD_REMOVE])
    @pytest.mark.parametrize("filtered", [False, True])
    def test_a_column_without_bounds(self, notion: Neighbours, filtered: bool) -> None:
        world = World(notion, filtered=filtered, bounded=False)
        inner = [one for one in ORDER if not isinstance(one.statistic, (Minimum, Maximum))]
        tables = some_tables(world, 150, [3, 4, 5, 6, 7])
        assert excess(world, tables, lambda r: some_question(r, inner)) == 1


GROUPS = [
    declare_multiples(2),
    declare_multiples(3),
    declare_multiples({"size": 2, "growth": "flat"}),
    declare_multiples({"size": 3, "growth": "flat"}),
    declare_multiples([1, "1.5"]),
    declare_multiples(["0.5", 2, 2]),
]


class TestGroups:
    @pytest.mark.parametrize("multiples", GROUPS, ids=lambda m: ",".join(map(str, m)))
    @pytest.mark.parametrize("world", [*SINGLE, *COLUMNS], ids=world_name)
    def test_no_group_loses_more_than_its_epsilon(self, world: World, multiples: tuple[Fraction, ...]) -> None:
        small = World(world.notion, (0, 2), 1, world.columns, world.filtered, world.nullable)
        deep = len(multiples) > 2
        if deep and world.columns > 1:
            tables = some_tables(small, 6, [2, 3])
        else:
            tables = some_tables(small, 15 if deep else 40 // world.columns**2, [1, 2, 3, 4, 5])
        assert excess(small, tables, lambda r: some_question(r, ANY, world.columns), multiples, (0, 0, 1)) <= 1

    @pytest.mark.parametrize("multiples", GROUPS, ids=lambda m: ",".join(map(str, m)))
    @pytest.mark.parametrize("world", GROUPED, ids=world_name)
    def test_no_group_that_moves_between_cells_loses_more(self, world: World, multiples: tuple[Fraction, ...]) -> None:
        tables = some_tables(world, 4 if len(multiples) > 2 else 10, [3, 4] if len(multiples) > 2 else [3, 5, 6])
        assert excess(world, tables, lambda r: some_question(r, ANY), multiples, (0, 0, 1)) <= 1

    @pytest.mark.parametrize("multiples", [ONE, *GROUPS], ids=lambda m: ",".join(map(str, m)))
    @pytest.mark.parametrize("world", GROUPED, ids=world_name)
    def test_no_group_loses_more_by_the_simple_bound(
        self, world: World, multiples: tuple[Fraction, ...], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(joint, "MOST_CELL_WORK", 0)
        tables = some_tables(world, 4 if len(multiples) > 2 else 10, [3, 4] if len(multiples) > 2 else [3, 5, 6])
        assert excess(world, tables, lambda r: some_question(r, ANY), multiples, (0, 0, 1)) <= 1

    @pytest.mark.parametrize("cells", [1, 40])
    @pytest.mark.parametrize("group", [5, 12, 30, 100])
    def test_the_work_of_a_large_group_is_bounded(
        self, group: int, cells: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        tried, right = [], joint_loss.Moved.step
        monkeypatch.setattr(joint_loss.Moved, "step", lambda part, split: tried.append(1) or right(part, split))
        summary = summarise(list(range(1000)), Median(), Domain(), Moves(REPLACE, 1000, 10**6), group)
        components = [Component(Median(), summary, Fraction(1), Fraction(1), fineness=2)] * 30
        calibrate_cells([components] * cells, Fraction(1), declare_multiples(group))
        assert len(tried) <= 2 * joint.MOST_GROUP_WORK

    def test_the_bound_is_attained_at_the_distances_it_is_made_for(self) -> None:
        """Flat groups on a whole column: all i records go the same way, and nothing else does more."""
        world, multiples = World(REPLACE, (0, 9)), declare_multiples({"size": 2, "growth": "flat"})
        records = table((0, (v,)) for v in (0, 1, 2, 4, 7, 9))
        asked = [quantile(QUARTER), MEDIAN, quantile(3 * QUARTER)]
        fitted = calibrated(world, records, asked, [THIRD] * 3, multiples=multiples)
        assert losses(world, records, asked, fitted, 2)[1] == 1

    def test_many_changes_fall_back_to_the_sum(self) -> None:
        """Both bounds hold; the simple one is never below the other."""
        world, group = World(REPLACE, filtered=True), 3
        for records in some_tables(world, 50, [4, 5, 6]):
            asked, weights = some_question(Random(1), MONOTONE)
            cell = joint._Cell(components(world, records, 0, asked, weights, 0, group), declare_multiples(group), False)
            simple = JointLoss(cell.moved, group, simple=True)
            for i, d, e in product(range(1, group + 1), range(group + 1), range(group + 1)):
                if max(d, e) <= i and d + e:
                    assert cell.selection.loss(d, e, i) <= simple.loss(d, e, i)


class TestProposition3:
    """What the joint calibration never does: more noise than today, or less than alone."""

    @pytest.mark.parametrize("multiples", [ONE, *GROUPS], ids=lambda m: ",".join(map(str, m)))
    @pytest.mark.parametrize("world", SINGLE, ids=world_name)
    def test_between_alone_and_divided(self, world: World, multiples: tuple[Fraction, ...]) -> None:
        random = Random(9)
        for records in some_tables(world, 40, [3, 4, 5, 6]):
            asked, weights = some_question(random, ANY)
            parts = components(world, records, 0, asked, weights, 1, len(multiples))
            for part, scale in zip(parts, *scales([parts], Fraction(1), multiples), strict=True):
                alone = today(part, multiples)
                assert (scale is None) == (alone is None)
                if scale is not None and alone is not None:
                    assert alone <= scale <= alone / part.weight

    @pytest.mark.parametrize("multiples", [ONE, *GROUPS], ids=lambda m: ",".join(map(str, m)))
    @pytest.mark.parametrize("world", SINGLE, ids=world_name)
    def test_one_statistic_is_calibrated_as_before(self, world: World, multiples: tuple[Fraction, ...]) -> None:
        for records in some_tables(world, 15, [1, 2, 3, 4, 5, 6]):
            for one, floor in product(ANY, (0, 1)):
                [part] = components(world, records, 0, [one], [Fraction(1)], floor, len(multiples))
                assert scales([[part]], Fraction(1), multiples) == [[today(part, multiples)]]

    def test_tied_statistics_keep_their_noise_together(self) -> None:
        world = World(REPLACE, cells=2)
        records = table((cell, (1,)) for cell in (0, 1) for _ in range(9))
        asked = [quantile(QUARTER), MEDIAN, quantile(3 * QUARTER)]
        natural = [one.statistic.resolution() for one in asked]
        for fitted in calibrated(world, records, asked, [THIRD] * 3, floor=1):
            assert fitted == [Fraction(2 * 3 * step) for step in natural]
        single = World(REPLACE)
        records = table((0, (1,)) for _ in range(9))
        assert calibrated(single, records, asked, [THIRD] * 3, floor=1) == [[Fraction(3 * step) for step in natural]]

    @pytest.mark.parametrize("world", [*SINGLE, *GROUPED], ids=world_name)
    def test_the_floors_together_cost_at_most_epsilon(self, world: World) -> None:
        random = Random(3)
        touched = 2 if world.cells > 1 and world.notion is REPLACE else 1
        for records in some_tables(world, 60, [4, 6, 9]):
            asked, weights = some_question(random, ANY)
            rows = []
            for cell, fitted in enumerate(calibrated(world, records, asked, weights, floor=1)):
                parts = components(world, records, cell, asked, weights, 1, 1)
                rows.append(sum(p.floor / b for p, b in zip(parts, fitted, strict=True) if b is not None))
            assert sum(sorted(rows)[-touched:]) <= 1


def today(part: Component, multiples: Sequence[Fraction]) -> Fraction | None:
    """max_i max(A_i, floor)/m_i, at ε = 1."""
    envelope: Envelope = part.statistic.envelope(part.summary, len(multiples), part.fineness)
    if envelope.sensitivity(len(multiples)) == math.inf:
        return None
    return max(max(Fraction(envelope.sensitivity(i)), part.floor) / m for i, m in enumerate(multiples, start=1))


class TestCells:
    @pytest.mark.parametrize("cells", [2, 3])
    def test_no_cell_can_have_less_noise(self, cells: int) -> None:
        """A thousandth less in any one cell, and some neighbour loses more than ε."""
        world = World(REPLACE, (0, 5), cells=cells)
        random = Random(4)
        for records in some_tables(world, 60, [8, 9, 10], seed=5):
            if min(len(world.values(records, c, 0)) for c in range(cells)) < 3:
                continue  # a cell whose statistics a neighbour may not have
            asked, weights = some_question(random, ORDER)
            fitted = calibrated(world, records, asked, weights)
            assert losses(world, records, asked, fitted, 1)[0] <= 1
            for c in range(cells):
                if not any(fitted[c]):
                    continue
                less = [[b and b * Fraction(999, 1000) for b in row] if c == i else row for i, row in enumerate(fitted)]
                assert losses(world, records, asked, less, 1)[0] > 1, (records, c)

    @pytest.mark.parametrize("world", GROUPED, ids=world_name)
    def test_never_more_noise_than_half_of_epsilon_for_each_cell(self, world: World) -> None:
        random = Random(8)
        for records in some_tables(world, 60, [4, 6, 9]):
            asked, weights = some_question(random, ANY)
            for cell, fitted in enumerate(calibrated(world, records, asked, weights, floor=1)):
                for part, scale in zip(components(world, records, cell, asked, weights, 1, 1), fitted, strict=True):
                    alone = today(part, ONE)
                    if scale is not None and alone is not None:
                        assert scale <= (2 if world.notion is REPLACE else 1) * alone / part.weight

    def test_medians_of_even_gaps_have_half_the_noise(self) -> None:
        """A record that leaves, or enters, moves a median by half of what a replacement moves it."""
        domain = Domain()
        cells = []
        for size in (11, 31, 101):
            values = [10 * v for v in range(size)]
            moves = Moves(REPLACE, size, 143 - size)
            summary = summarise(values, Median(), domain, moves, 1)
            cells.append([Component(Median(), summary, Fraction(1), Fraction(1), fineness=2)])
        assert scales(cells, HALF) == [[Fraction(40)]] * 3  # one gap, 20 steps, over ½

    def test_a_cell_that_is_not_answered_costs_nothing(self) -> None:
        world = World(REPLACE, cells=2, bounded=False)
        records = table((0, (v,)) for v in (0, 1, 2, 3, 3))
        [[scale], empty] = calibrated(world, records, [MEDIAN], [Fraction(1)])
        assert (scale, empty) == (Fraction(MEDIAN.statistic.resolution()), [None])
        assert losses(world, records, [MEDIAN], [[scale], empty], 1) == [1]

    @pytest.mark.parametrize("world", [World(n, cells=3, bounded=False) for n in (REPLACE, ADD_REMOVE)], ids=world_name)
    def test_whether_a_cell_is_answered_does_not_depend_on_the_others(self, world: World) -> None:
        random = Random(2)
        inner = [one for one in ORDER if not isinstance(one.statistic, (Minimum, Maximum))]
        for records in some_tables(world, 40, [3, 6, 9]):
            asked, weights = some_question(random, inner)
            together = calibrated(world, records, asked, weights)
            for cell, row in enumerate(together):
                [alone] = scales([components(world, records, cell, asked, weights, 0, 1)], Fraction(1))
                assert [scale is None for scale in row] == [scale is None for scale in alone]

    def test_a_check_that_raises_stops_the_work(self) -> None:
        world, calls = World(REPLACE, cells=3), []
        records = some_tables(world, 1, [9])[0]
        cells = [components(world, records, c, [MEDIAN], [Fraction(1)], 0, 1) for c in range(3)]

        def check() -> None:
            calls.append(None)
            if len(calls) == 2:
                raise TimeoutError

        with pytest.raises(TimeoutError):
            calibrate_cells(cells, Fraction(1), ONE, check)

    def test_many_cells(self) -> None:
        random = Random(1)
        domain = Domain()
        kinds = []
        for _ in range(40):
            values = sorted(random.randrange(1000) for _ in range(9))
            kinds.append(summarise(values, Median(), domain, Moves(REPLACE, 9, 10**6), 1))
        cells = [[Component(Median(), kinds[c % 40], Fraction(1), Fraction(1), fineness=2)] for c in range(1000)]
        assert len(calibrate_cells(cells, Fraction(1))) == 1000


def parallel_multiples(
    parts: Sequence[Sequence[Fraction]], notion: Neighbours, *, fixed_parts: bool = False
) -> tuple[Fraction, ...]:
    together = compose_parallel([Guarantee.for_groups(part, notion) for part in parts], fixed_parts=fixed_parts)
    return tuple(together.protect(size) for size in range(1, together.group + 1))


class TestParallelComposition:
    @pytest.mark.parametrize("notion", [REPLACE, ADD_REMOVE])
    @pytest.mark.parametrize("cells", [2, 3])
    @pytest.mark.parametrize("multiples", GROUPS, ids=lambda m: ",".join(map(str, m)))
    def test_cells_calibrated_one_by_one(self, notion: Neighbours, cells: int, multiples: tuple[Fraction, ...]) -> None:
        """Parallel composition, enumerated: medians calibrated in each cell alone promise together what it says."""
        world = World(notion, (0, 2), cells=cells)
        promised = parallel_multiples([multiples] * cells, notion)
        attained = Fraction(0)
        for records in some_tables(world, 8 if len(multiples) > 2 else 25, [4, 5]):
            fitted: list[list[Fraction | None]] = []
            for cell in range(cells):
                parts = components(world, records, cell, [MEDIAN], [Fraction(1)], 0, len(multiples))
                fitted += scales([parts], Fraction(1), multiples)
            lost = losses(world, records, [MEDIAN], fitted, len(multiples))
            assert all(loss <= m for loss, m in zip(lost, promised, strict=True))
            attained = max(attained, lost[0] / promised[0])
        assert attained > Fraction(1, 2)

    def test_what_it_gives(self) -> None:
        linear, flat = declare_multiples(3), declare_multiples({"size": 3, "growth": "flat"})
        assert parallel_multiples([linear] * 9, ADD_REMOVE) == linear
        assert parallel_multiples([linear] * 9, REPLACE) == (2, 4, 6)
        assert parallel_multiples([linear] * 9, REPLACE, fixed_parts=True) == linear
        assert parallel_multiples([flat] * 9, ADD_REMOVE) == (1, 2, 3)
        assert parallel_multiples([flat] * 9, REPLACE) == (2, 4, 6)
        assert parallel_multiples([flat] * 4, REPLACE) == (2, 4, 4)
        assert parallel_multiples([linear], REPLACE) == linear
        assert parallel_multiples([(Fraction(1),), (Fraction(3),), (Fraction(2),)], REPLACE) == (5,)

    @pytest.mark.parametrize("multiples", GROUPS, ids=lambda m: ",".join(map(str, m)))
    @pytest.mark.parametrize("world", GROUPED, ids=world_name)
    def test_counts_by_cells_at_their_global_sensitivity(self, world: World, multiples: tuple[Fraction, ...]) -> None:
        count = Asked(Count(), len)
        share = split_between_parts(Fraction(1), world.notion, world.cells)
        scale = 1 / limit_epsilon(share, part_multiples(multiples))
        for records in some_tables(world, 5, [4, 5]):
            lost = losses(world, records, [count], [[scale]] * world.cells, len(multiples))
            assert all(loss <= m for loss, m in zip(lost, multiples, strict=True))


class TestFromProbabilities:
    """The loss is the greatest logarithm of a ratio of probabilities, from the probabilities themselves."""

    @pytest.mark.parametrize(
        "world", [World(REPLACE), World(REPLACE, filtered=True), World(ADD_REMOVE)], ids=world_name
    )
    @pytest.mark.parametrize("multiples", [ONE, declare_multiples(2)], ids=len)
    def test_every_answer_is_nearly_as_likely(self, world: World, multiples: tuple[Fraction, ...]) -> None:
        asked = [discrete(QUARTER), discrete(HALF), discrete(3 * QUARTER)]
        for records in some_tables(world, 6, [4, 5, 6], seed=6):
            [fitted] = calibrated(world, records, asked, [THIRD] * 3, 1, multiples)
            for m, level in zip(multiples, world.ball(records, len(multiples)), strict=True):
                worst = max(self.log_ratio(world, asked, fitted, records, other) for other in level)
                assert worst <= float(m) + 1e-9

    @staticmethod
    def log_ratio(
        world: World, asked: Sequence[Asked], fitted: Sequence[Fraction | None], here: Records, there: Records
    ) -> float:
        total = 0.0
        for one, scale in zip(asked, fitted, strict=True):
            before, after = world.answer(here, 0, one), world.answer(there, 0, one)
            if scale is None or before is None or after is None:
                continue
            noise = DiscreteLaplace(scale)
            # the noise of the numbers is independent, so the worst answer is the worst of each
            total += max(
                abs(math.log(noise.pmf(answer - before) / noise.pmf(answer - after))) for answer in range(-4, 8)
            )
        return total


class TestPlantedErrors:
    """Each of these is a plausible mistake; the enumeration above sees it."""

    @staticmethod
    def worst(
        world: World, multiples: Sequence[Fraction] = ONE, count: int = 80, pool: Sequence[Asked] = ORDER
    ) -> Fraction | float:
        tables = some_tables(world, count, [3, 4, 5, 6])
        return excess(world, tables, lambda r: some_question(r, pool), multiples)

    def test_entering_and_leaving_forgotten(self, monkeypatch: pytest.MonkeyPatch) -> None:
        right = joint_loss.splits
        monkeypatch.setattr(
            joint_loss, "splits", lambda m, n: (s for s in right(m, n) if not s.added and not s.removed)
        )
        # of four values, losing the second lifts the third smallest and lowers the third largest
        crossing = [
            Asked(KthSmallest(3), lambda v: oracle.kth_smallest(v, 3)),
            Asked(KthLargest(3), lambda v: oracle.kth_largest(v, 3)),
        ]
        assert self.worst(World(REPLACE, filtered=True), pool=crossing) > 1

    def test_entering_and_leaving_taken_for_one_direction(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """max(Σ up, Σ down) holds for replacements only: an added value lifts one quartile and lowers the other."""

        def one_way(
            ordered: Sequence[joint_loss.Moved], dropped: int, placed: int, records: int, common: int, power: int
        ) -> int:
            ways = []
            for up in (True, False):
                total = Fraction(0)
                for part in ordered:
                    if not part.defined(records):
                        total += part.coefficient * part.counted(records)
                        continue
                    statistic, summary = part.component.statistic, part.component.summary
                    size = summary.size + placed - dropped
                    end = statistic.place(
                        statistic.read(summary, size, dropped if up else -placed), part.component.fineness
                    )
                    total += part.coefficient * max(0, end - part.value if up else part.value - end)
                ways.append(total)
            return int(max(ways) * common)

        monkeypatch.setattr(joint_loss, "_rank_losses", one_way)
        assert self.worst(World(ADD_REMOVE)) > 1

    def test_directions_mixed_up(self, monkeypatch: pytest.MonkeyPatch) -> None:
        right = joint_loss.Moved.step

        def mixed(part: joint_loss.Moved, split: Split) -> int:
            if isinstance(part.component.statistic, (Median, KthLargest)):
                split = split._replace(raised=split.lowered, lowered=split.raised)
            return right(part, split)

        monkeypatch.setattr(joint_loss.Moved, "step", mixed)
        assert self.worst(World(REPLACE)) > 1

    def test_two_cells_forgotten(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(joint, "_factors", lambda cells, *_: [cell.alone() for cell in cells])
        assert self.worst(World(REPLACE, (0, 2), cells=2)) > 1

    def test_two_cells_of_a_group_forgotten(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(joint, "_factors", lambda cells, *_: [cell.alone() for cell in cells])
        flat = declare_multiples({"size": 2, "growth": "flat"})
        assert self.worst(World(ADD_REMOVE, (0, 2), cells=2), flat, 40) > 1

    def test_a_record_that_changes_inside_its_cell_forgotten(self, monkeypatch: pytest.MonkeyPatch) -> None:
        right = joint._Cell.costs
        monkeypatch.setattr(
            joint._Cell, "costs", lambda cell: {**(costs := right(cell)), (1, 1): max(costs[1, 0], costs[0, 1], 1)}
        )
        assert self.worst(World(REPLACE, (0, 2), cells=2)) > 1

    def test_the_multiple_of_another_distance(self, monkeypatch: pytest.MonkeyPatch) -> None:
        right = joint._Cell.loss
        monkeypatch.setattr(
            joint._Cell, "loss", lambda cell, d, e, n: right(cell, min(d, n - 1), min(e, n - 1), n - 1) if n > 1 else 0
        )
        assert self.worst(World(REPLACE, (0, 2)), declare_multiples(2), 40) > 1


class TestDeclaring:
    def test_a_component_has_a_share(self) -> None:
        summary = summarise([1, 2, 3], Median(), Domain(), Moves(REPLACE, 3), 1)
        with pytest.raises(ValueError, match="weight"):
            Component(Median(), summary, Fraction(0))

    def test_components_of_one_column_read_one_selection(self) -> None:
        first = summarise([1, 2, 3], Median(), Domain(), Moves(REPLACE, 3), 1)
        second = summarise([1, 2, 3, 4], Median(), Domain(), Moves(REPLACE, 4), 1)
        with pytest.raises(ValueError, match="one selection"):
            calibrate_cells([[Component(Median(), s, HALF) for s in (first, second)]], Fraction(1))

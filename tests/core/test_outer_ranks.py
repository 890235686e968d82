"""Ranks by AboveThreshold: every neighbouring pair of small tables, in fractions, and what a plan makes public."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache

import pytest

from idios.core.distributions.above_threshold import Ladder, list_offsets
from idios.core.domain import LIMIT, Domain
from idios.core.neighbours import Moves, Neighbours
from idios.core.outer_ranks import (
    RATIO,
    RankPlan,
    _choose_ratio,
    find_lacking,
    least_order,
    plan_rank,
    prepare_ladders,
)
from idios.core.sampling import SeededSource
from idios.core.statistics import Mean, Statistic
from idios.core.statistics.order import DiscreteQuantile, KthLargest, KthSmallest, Maximum, Median, Quantile
from tests.core.stopping import cut_windows, list_deficits, stopping_law
from tests.oracle import Space, Table, small_tables

NOTIONS = [("replace", False), ("replace", True), ("add-remove", False)]
LADDER = Ladder(-1, 4, centre=0, ratio=Fraction(2))


def shares(parts: int) -> tuple[Fraction, Fraction]:
    """What stands for e^(−e₁/b) and e^(−e₂/b)."""
    return (Fraction(2, 5), Fraction(3, 4)) if parts == 1 else (Fraction(4, 5), Fraction(9, 10))


@cache
def space(notion: str, selection: bool) -> Space:
    domain = (0, 3)
    starts = small_tables(domain, range(5), [0, 1] if selection else [0])
    return Space(starts, notion=notion, selection=selection, domain=domain, bounded=True, reach=1)


def moves_of(table: Table, tables: Space) -> Moves:
    outside = table.outside if tables.selection and tables.notion == "replace" else None
    return Moves(Neighbours(tables.notion), len(table.values), outside)


Law = Callable[[RankPlan, Table, Moves], tuple[Fraction, ...]]


def true_law(plan: RankPlan, table: Table, moves: Moves) -> tuple[Fraction, ...]:
    mechanism = plan.calibrate(cut_windows(table.values, plan.ranks(moves), moves))
    return stopping_law(list_deficits(mechanism), *shares(plan.parts))


def worst_ratio(plan: RankPlan, tables: Space, law: Law = true_law) -> Fraction | float:
    laws = {table: law(plan, table, moves_of(table, tables)) for table in tables.tables}
    return max(
        p / other_p if other_p else math.inf
        for table in tables.starts
        for other in tables.neighbours(table)
        for p, other_p in zip(laws[table], laws[other], strict=True)
        if p
    )


def promised(plan: RankPlan) -> Fraction:
    """e^ε."""
    first, second = shares(plan.parts)
    return 1 / (first * second) ** plan.parts


def plans() -> Iterator[RankPlan]:
    unknown = Fraction(1)  # the law is given its own
    for reach in (1, 2, 9):
        for target in (-1, 0, 1, 2):
            for unit in (1, -1):
                yield RankPlan(LADDER, Fraction(0), Fraction(target), reach, unknown, unknown, unit)
        for share in (Fraction(1, 2), Fraction(1, 3), Fraction(1, 4)):
            for target in (Fraction(0), -share, 2 * share):
                yield RankPlan(LADDER, share, target, reach, unknown, unknown, 1)
            yield RankPlan(LADDER, share, share, reach, unknown, unknown, -1)


@pytest.mark.slow
@pytest.mark.parametrize(("notion", "selection"), NOTIONS)
def test_one_record_changes_no_probability_by_more_than_epsilon(notion: str, selection: bool) -> None:
    tables, attained = space(notion, selection), []
    for plan in plans():
        worst, most = worst_ratio(plan, tables), promised(plan)
        assert worst <= most, plan
        attained.append(math.log(worst) / math.log(most))
    assert max(attained) > 0.98


COUNTING = RankPlan(LADDER, Fraction(0), Fraction(1), 9, Fraction(1), Fraction(1))
SHARING = replace(COUNTING, share=Fraction(1, 3), target=Fraction(0))


def without_noise_on_the_threshold(plan: RankPlan, table: Table, moves: Moves) -> tuple[Fraction, ...]:
    mechanism = plan.calibrate(cut_windows(table.values, plan.ranks(moves), moves))
    return stopping_law(list_deficits(mechanism), Fraction(0), shares(plan.parts)[1])


def with_half_the_noise_on_counts(plan: RankPlan, table: Table, moves: Moves) -> tuple[Fraction, ...]:
    mechanism = plan.calibrate(cut_windows(table.values, plan.ranks(moves), moves))
    first, second = shares(plan.parts)
    return stopping_law(list_deficits(mechanism), first, second**2)


def with_half_the_noise_on_the_threshold(plan: RankPlan, table: Table, moves: Moves) -> tuple[Fraction, ...]:
    mechanism = plan.calibrate(cut_windows(table.values, plan.ranks(moves), moves))
    first, second = shares(plan.parts)
    return stopping_law(list_deficits(mechanism), first**2, second)


def capped_by_the_data(plan: RankPlan, table: Table, moves: Moves) -> tuple[Fraction, ...]:
    """As many values are read as there are below 2: where the cap ends is told."""
    return true_law(replace(plan, reach=1 + 2 * sum(v < 2 for v in table.values)), table, moves)


def with_the_wrong_sign(plan: RankPlan, table: Table, moves: Moves) -> tuple[Fraction, ...]:
    deficits = [
        int(plan.parts * (sum(v > t for v in table.values) + plan.share * len(table.values)))
        for t in plan.ladder.thresholds.tolist()
    ]
    return stopping_law(tuple(deficits), *shares(plan.parts))


def counted_both_ways(plan: RankPlan, table: Table, moves: Moves) -> tuple[Fraction, ...]:
    """The values beyond less those before: a replacement moves it by 2."""
    deficits = [sum(1 if v > t else -1 for v in table.values) for t in plan.ladder.thresholds.tolist()]
    return stopping_law(tuple(deficits), *shares(plan.parts))


@pytest.mark.parametrize(
    ("plan", "law"),
    [
        (COUNTING, without_noise_on_the_threshold),
        (SHARING, without_noise_on_the_threshold),
        (COUNTING, with_half_the_noise_on_counts),
        (SHARING, with_half_the_noise_on_counts),
        (COUNTING, with_half_the_noise_on_the_threshold),
        (COUNTING, capped_by_the_data),
        (SHARING, capped_by_the_data),
        (SHARING, with_the_wrong_sign),
        (COUNTING, counted_both_ways),
    ],
)
def test_planted_errors_are_caught(plan: RankPlan, law: Law) -> None:
    caught = [worst_ratio(plan, space(*notion), law) > promised(plan) for notion in NOTIONS]
    assert any(caught)


# ----------------------------------------------------------------------------------------------------- plans

STATISTICS = [
    KthLargest(10),
    KthSmallest(12),
    Quantile(Fraction(19, 20)),
    Quantile(Fraction(1, 20)),
    DiscreteQuantile(Fraction(99, 100)),
]


@pytest.mark.parametrize("statistic", STATISTICS, ids=str)
@pytest.mark.parametrize("size", [None, 1000])
def test_an_answer_is_near_the_wanted_value(statistic: Statistic, size: int | None) -> None:
    values = [1000 + 10 * i for i in range(1000)]
    plan = plan_rank(statistic, Domain(), Fraction(5), size=size, resolution=20)
    assert plan is not None
    assert plan.epsilon == 5
    moves = Moves(Neighbours.REPLACE, 1000, None if size else 5)
    mechanism = plan.calibrate(cut_windows(values, plan.ranks(moves), moves))
    truth = 20 * statistic.define(values)  # type: ignore[operator]
    assert mechanism.expected_absolute(int(truth)) < 20 * 10 * 8
    source = SeededSource(1)
    drawn = sorted(mechanism.draw(source) for _ in range(21))
    assert abs(drawn[10] - truth) < 20 * 10 * 6
    assert all(answer % 20 == 0 for answer in drawn)


def test_low_ranks_are_the_mirror_image_of_high_ones() -> None:
    values = [i * i for i in range(200)]
    moves = Moves(Neighbours.ADD_REMOVE, 200)
    for high, low in [(KthLargest(20), KthSmallest(20)), (Quantile(Fraction(9, 10)), Quantile(Fraction(1, 10)))]:
        up = plan_rank(high, Domain(lower=-50, centre=7), Fraction(1))
        down = plan_rank(low, Domain(upper=50, centre=-7), Fraction(1))
        assert up is not None
        assert down is not None
        assert replace(down, unit=1) == up
        one = up.calibrate(cut_windows(values, up.ranks(moves), moves))
        other = down.calibrate(cut_windows([-v for v in reversed(values)], down.ranks(moves), moves))
        assert one.runs == other.runs
        assert one.draw(SeededSource(3)) == -other.draw(SeededSource(3))


def test_too_near_an_open_end_there_is_no_plan() -> None:
    one = Fraction(1)
    assert (least_order(one), least_order(Fraction(1, 10)), least_order(Fraction(3))) == (10, 100, 4)
    assert plan_rank(Maximum(), Domain(), one) is None
    assert plan_rank(KthLargest(9), Domain(), one) is None
    assert plan_rank(KthLargest(9), Domain(lower=0), one) is None
    assert plan_rank(KthLargest(9), Domain(upper=0), one) is not None
    assert plan_rank(KthSmallest(9), Domain(lower=0), one) is not None
    assert plan_rank(KthLargest(10), Domain(), one) is not None
    assert plan_rank(Quantile(Fraction(99, 100)), Domain(), one, size=400) is None
    assert plan_rank(Quantile(Fraction(99, 100)), Domain(), one, size=500) is not None
    assert plan_rank(Quantile(Fraction(99, 100)), Domain(), one) is not None
    assert plan_rank(Quantile(Fraction(0)), Domain(), one) is None
    assert plan_rank(Quantile(Fraction(1)), Domain(), one) is None
    assert plan_rank(Mean(), Domain(), one) is None


def test_how_much_more_epsilon_an_open_end_takes() -> None:
    for statistic, epsilon in (
        (Maximum(), Fraction(1)),
        (KthSmallest(3), Fraction(1, 7)),
        (KthLargest(9), Fraction(1)),
    ):
        factor = find_lacking(statistic, epsilon)
        assert factor is not None
        assert plan_rank(statistic, Domain(), epsilon * factor) is not None
        assert plan_rank(statistic, Domain(), epsilon * factor * Fraction(99, 100)) is None
    assert find_lacking(Quantile(Fraction(99, 100)), Fraction(1)) is None


def test_epsilon_is_divided_by_how_far_out_the_rank_is() -> None:
    bounded = Domain(lower=0, upper=10**6)
    for statistic, ratio in [
        (Maximum(), 2),
        (KthLargest(18), 2),
        (KthLargest(45), Fraction(3, 2)),
        (KthLargest(46), 1),
        (Median(), 1),
    ]:
        plan = plan_rank(statistic, bounded, Fraction(1, 3))
        assert plan is not None
        assert plan.epsilon == Fraction(1, 3)
        assert plan.threshold_epsilon == ratio * plan.count_epsilon


def test_a_ladder_from_a_drawn_centre_is_as_fine_as_the_rank_can_be_told() -> None:
    for k, domain, parts in [
        (10, Domain(), 64),
        (20, Domain(lower=0), 128),
        (10**6, Domain(), 4096),
        (20, Domain(centre=1), Fraction(10_000, 3)),
    ]:
        plan = plan_rank(KthLargest(k), domain, Fraction(1))
        assert plan is not None
        assert plan.ladder.ratio == 1 + 1 / Fraction(parts)


def test_only_values_near_the_rank_are_read() -> None:
    plan = plan_rank(KthLargest(10), Domain(centre=1), Fraction(1))
    assert plan is not None
    assert plan.ranks(Moves(Neighbours.REPLACE, 10**6)) == [(10**6 - plan.reach - int(plan.target) + 1, 10**6)]
    inner = plan_rank(Quantile(Fraction(19, 20)), Domain(centre=1), Fraction(1))
    assert inner is not None
    ((first, last),) = inner.ranks(Moves(Neighbours.REPLACE, 10**6))
    assert 900_000 < first < 950_000 < last < 951_000
    assert last - first <= 2 * inner.reach


def test_capping_changes_nothing_that_can_be_seen() -> None:
    values = [i * i for i in range(3000)]
    moves = Moves(Neighbours.ADD_REMOVE, 3000)
    plan = plan_rank(KthLargest(20), Domain(lower=0, upper=10**7), Fraction(2))
    assert plan is not None
    near, all_of_it = (
        p.calibrate(cut_windows(values, p.ranks(moves), moves)) for p in (plan, replace(plan, reach=10**6))
    )
    assert len(near.runs) < len(all_of_it.runs)
    for threshold in plan.ladder.thresholds[::50].tolist():
        assert near.pmf(threshold) == pytest.approx(all_of_it.pmf(threshold), abs=1e-11)


@pytest.mark.parametrize("statistic", STATISTICS, ids=str)
@pytest.mark.parametrize(
    "values",
    [[], [3], [7] * 50, [7] * 5000, [-(10**30), 10**30], [-LIMIT] * 200 + [LIMIT] * 200],
    ids=["empty", "one", "few equal", "many equal", "beyond the limit", "both ends"],
)
def test_every_selection_has_an_answer(statistic: Statistic, values: list[int]) -> None:
    moves = Moves(Neighbours.ADD_REMOVE, len(values))
    plan = plan_rank(statistic, Domain(), Fraction(5))
    assert plan is not None
    mechanism = plan.calibrate(cut_windows(values, plan.ranks(moves), moves))
    source = SeededSource(2)
    drawn = [mechanism.draw(source) for _ in range(9)]
    assert all(-LIMIT <= answer <= LIMIT for answer in drawn)
    assert mechanism.expected_absolute(0) >= 0
    if len(values) == 5000:
        assert sorted(drawn)[4] in range(7, 12)
    if not values:  # near the first threshold tried
        assert sorted(drawn)[4] * plan.unit < -LIMIT // 100


def test_a_public_number_of_values_says_when_the_data_suffices() -> None:
    plan = plan_rank(KthLargest(20), Domain(centre=1), Fraction(1))
    assert plan is not None
    for size, seen in [(plan.least_size, True), (plan.least_size // 2, False)]:
        moves = Moves(Neighbours.REPLACE, size)
        mechanism = plan.calibrate(cut_windows([5] * size, plan.ranks(moves), moves))
        before = sum(mechanism.pmf(t) for t in plan.ladder.thresholds[:1000].tolist()) * len(plan.ladder.thresholds)
        assert (before / 1000 < 0.2) == seen


def test_a_centre_is_drawn_where_an_end_is_open_and_none_is_declared() -> None:
    one = Fraction(1)
    for domain, size, drawn in [
        (Domain(), None, True),
        (Domain(lower=0), 1000, True),
        (Domain(), 199, False),
        (Domain(centre=50_000), None, False),
        (Domain(lower=0, upper=9), None, False),
    ]:
        plan = plan_rank(KthLargest(20), domain, one, size=size)
        assert plan is not None
        assert plan.epsilon == 1
        assert (plan.centre is not None) == drawn


@pytest.mark.parametrize("statistic", [KthLargest(20), KthSmallest(20), Quantile(Fraction(19, 20))], ids=str)
def test_far_from_0_a_rank_is_found_as_well_as_near_it(statistic: Statistic) -> None:
    """The answers move along with the values, but for the draw of the centre."""
    errors = []
    for shift in (0, 10**9):
        values = [shift + i * i for i in range(1000)]
        moves = Moves(Neighbours.REPLACE, 1000)
        plan = plan_rank(statistic, Domain(), Fraction(2), size=1000)
        assert plan is not None
        mechanism = plan.calibrate(cut_windows(values, plan.ranks(moves), moves))
        truth = int(statistic.define(values))  # type: ignore[arg-type]
        source = SeededSource(5)
        away = sorted(abs(mechanism.draw(source) - truth) for _ in range(41))
        errors.append(away[20])
        assert mechanism.expected_absolute(truth) < 100_000
    assert errors[1] < 2 * errors[0] + 1000


def test_a_centre_and_a_search_are_drawn_one_after_the_other() -> None:
    values = [50_000 + i * i for i in range(1000)]
    moves = Moves(Neighbours.REPLACE, 1000)
    plan = plan_rank(KthSmallest(20), Domain(), Fraction(2), size=1000, resolution=3)
    assert plan is not None
    assert plan.centre is not None
    summary = cut_windows(values, plan.ranks(moves), moves)
    one, other = SeededSource(4), SeededSource(4)
    centre = plan.centre.draw(summary, other)
    assert centre is not None
    assert plan.calibrate(summary).draw(one) == plan.search(summary, centre).draw(other) + 3 * centre


def test_no_certainty_needs_a_ladder_that_was_not_prepared() -> None:
    """Else the time of a plan would tell whether another analyst asked with nearly the same k·ε before."""
    prepare_ladders()
    before = list_offsets.cache_info().misses
    for exponent in range(-60, 200):
        list_offsets(_choose_ratio(Fraction(3, 2) ** exponent))
    list_offsets(RATIO)
    assert list_offsets.cache_info().misses == before

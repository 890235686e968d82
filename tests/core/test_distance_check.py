"""How far off an answer is told to be: by enumeration, over all neighbouring small tables, whatever the answer.

A table's summary holds what an aggregate with a check reads, and nothing else. Points t lie on the answer's grid,
between its points, at the ends of the range and beyond.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

from idios.core.calibration import Choice, Method
from idios.core.concentrated import pure_rho
from idios.core.distance_check import DistanceCheck, find_reach
from idios.core.distributions.noisy_moments import find_half_width
from idios.core.domain import Domain
from idios.core.envelope import Envelope
from idios.core.neighbours import Moves, Neighbours
from idios.core.outer_ranks import plan_rank
from idios.core.statistics import STATISTICS, Count, InterquartileRange, Median, Quantile, Statistic, TrimmedMean
from idios.core.statistics.order import OrderStatistic
from idios.core.summary import Summary
from idios.plan.budget import can_check, needs_check
from idios.plan.question import Aggregate
from tests.core.renyi import find_share, lose_noise
from tests.oracle import FAR, Space, Table, small_tables
from tests.summaries import summarise

DOMAIN = (-1, 2)
FINENESS = 3
LARGEST = 4
ONE = Fraction(1)
NOTIONS = [("replace", False), ("replace", True), ("add-remove", False)]
CASES = [case for kind in STATISTICS for case in kind.examples() if case.nested and not case.selects]

Measure = Callable[[Aggregate, Summary, Fraction], int]


@cache
def space(notion: str, selection: bool, bounded: bool) -> Space:
    starts = small_tables(DOMAIN, range(LARGEST + 1), [0, 1, 2] if selection else [0])
    return Space(starts, notion=notion, selection=selection, domain=DOMAIN, bounded=bounded, reach=1)


def make_aggregate(case: Statistic, tables: Space, reach: int, choice: Choice | None = None) -> Aggregate:
    """A statistic with a check, whose mechanism itself reads next to nothing."""
    domain = Domain(ONE, *(tables.domain if tables.bounded else (None, None)))
    chosen = choice or Choice(Method.LOCAL, 0, ONE)
    notion = Neighbours(tables.notion)
    return Aggregate("t", case, "x", domain, not tables.selection, ONE, chosen, notion, DistanceCheck(ONE, reach))


def read(aggregate: Aggregate, table: Table, missing: int = 0) -> Summary:
    """What is read of a table: exactly that, or for ``missing`` records less."""
    outside = None if aggregate.whole or aggregate.neighbours is Neighbours.ADD_REMOVE else table.outside
    moves = Moves(aggregate.neighbours, len(table.values), outside)
    return summarise(table.values, aggregate.reading, aggregate.grid, moves, aggregate.distance - missing)


def list_points(case: Statistic) -> list[Fraction]:
    """The grid, what lies between its points, and what lies beyond the ends."""
    ends = (
        end if math.isfinite(end) else far for end, far in zip(case.range(Domain(ONE, *DOMAIN)), (-6, 9), strict=True)
    )
    low, high = (int(case.place(end, FINENESS)) for end in ends)
    near = [Fraction(twice, 2) for twice in range(2 * low - 2, 2 * high + 3)]
    return [Fraction(-FAR), *near, Fraction(FAR)]


@dataclass(frozen=True)
class Known:
    """A statistic whose envelope is computed once for all points."""

    statistic: Statistic
    computed: dict[int, Envelope]

    @property
    def least_size(self) -> int:
        return self.statistic.least_size

    def envelope(self, summary: Summary, distance: int, fineness: int) -> Envelope:
        if distance not in self.computed:
            self.computed[distance] = self.statistic.envelope(summary, distance, fineness)
        return self.computed[distance]


def measure(aggregate: Aggregate, summary: Summary, point: Fraction) -> int:
    assert aggregate.check is not None
    return aggregate.check.measure(aggregate.statistic, summary, point, FINENESS)


def measure_all(aggregate: Aggregate, tables: Space, by: Measure = measure) -> dict[Table, list[int]]:
    """s of all points, for every table."""
    points = list_points(aggregate.statistic)
    measured = {}
    for table in tables.starts:
        summary: Any = read(aggregate, table)
        known: Any = replace(aggregate, statistic=Known(aggregate.statistic, {}))  # type: ignore[arg-type]
        measured[table] = [by(known, summary, point) for point in points]
    return measured


def list_pairs(tables: Space) -> Iterator[tuple[Table, Table]]:
    for table in tables.starts:
        for other in tables.neighbours(table):
            if tables.index.get(other, len(tables.starts)) < len(tables.starts):
                yield table, other


def find_moves(measured: Mapping[Table, list[int]], tables: Space) -> set[tuple[int, int]]:
    """Every pair of values of s that the same answer has on neighbours."""
    return {pair for one, two in list_pairs(tables) for pair in zip(measured[one], measured[two], strict=True)}


def find_sensitivity(pairs: set[tuple[int, int]]) -> int:
    return max(abs(one - two) for one, two in pairs)


def find_distance(signed: int) -> int:
    """u of s."""
    return (abs(signed) + 1) // 2


def never_moves(case: Statistic, tables: Space) -> bool:
    return isinstance(case, Count) and tables.notion == "replace" and not tables.selection


# ------------------------------------------------------------------------------------------------- sensitivity

SETTINGS = [
    pytest.param(case, notion, selection, bounded, id=f"{case}-{notion}-{selection}-{bounded}")
    for case in CASES
    for notion, selection in NOTIONS
    for bounded in (True, False)
    if bounded or not case.missing_bound(Domain(), 1)
]


@pytest.mark.parametrize(("case", "notion", "selection", "bounded"), SETTINGS)
def test_a_record_moves_the_signed_distance_by_at_most_two(
    case: Statistic, notion: str, selection: bool, bounded: bool
) -> None:
    tables = space(notion, selection, bounded)
    for reach in (1, 2, 3, 9):
        pairs = find_moves(measure_all(make_aggregate(case, tables, reach), tables), tables)
        assert find_sensitivity(pairs) == (0 if never_moves(case, tables) else 2)
        assert max(abs(find_distance(one) - find_distance(two)) for one, two in pairs) <= 1
        assert {find_distance(one) for one, _ in pairs} <= set(range(reach + 1))


@pytest.mark.parametrize(("notion", "selection"), NOTIONS)
@pytest.mark.parametrize("case", [case for case in CASES if isinstance(case, OrderStatistic)], ids=repr)
def test_a_search_for_a_rank_reads_what_its_check_needs(case: OrderStatistic, notion: str, selection: bool) -> None:
    """It reads ranks of its own, here few and elsewhere."""
    tables = space(notion, selection, True)
    search = plan_rank(case, Domain(ONE, *DOMAIN), ONE)
    assert search is not None
    elsewhere = replace(search, share=Fraction(0), target=Fraction(5), reach=1)
    choice = Choice(Method.ABOVE_THRESHOLD, 0, ONE, reading=elsewhere)
    aggregate = make_aggregate(case, tables, 2, choice)
    assert len(list(aggregate.reading.ranks(Moves(Neighbours(notion), 9), 2))) == 2
    assert measure_all(aggregate, tables) == measure_all(make_aggregate(case, tables, 2), tables)


DISTANCES = [
    pytest.param(
        case,
        notion,
        selection,
        bounded,
        id=f"{case}-{notion}-{selection}-{bounded}",
        marks=() if bounded and not selection else pytest.mark.slow,
    )
    for case in CASES
    for notion, selection in NOTIONS
    for bounded in (True, False)
    if not case.always_global and (bounded or not case.missing_bound(Domain(), 1))
]


@cache
def search_changes(notion: str, selection: bool, bounded: bool) -> Space:
    """Small tables, and all that are up to three changed records away, tried one by one."""
    starts = small_tables(DOMAIN, range(6), [0, 2] if selection else [0])
    return Space(starts, notion=notion, selection=selection, domain=DOMAIN, bounded=bounded, reach=3)


@pytest.mark.parametrize(("case", "notion", "selection", "bounded"), DISTANCES)
def test_what_a_check_tells_is_the_least_number_of_changes(
    case: Statistic, notion: str, selection: bool, bounded: bool
) -> None:
    """Of every statistic whose error is secret: either its distance is the true one, or it has no check.

    And no statistic is left out without need: where an envelope is a bound, some distance is told too small.
    """
    tables = search_changes(notion, selection, bounded)
    aggregate = make_aggregate(case, tables, tables.reach)
    domain = Domain(ONE, *(DOMAIN if bounded else (None, None)))
    low, high = map(float, case.range(domain))
    tried = tables.envelopes(case.define, (low, high), lambda value: case.place(value, FINENESS))
    measured = measure_all(aggregate, tables)
    told, true = [], []
    for table in tables.starts:
        for point, signed in zip(list_points(case), measured[table], strict=True):
            expected = next((i for i, (low, high) in enumerate(tried[table]) if low <= point <= high), tables.reach)
            told.append(find_distance(signed))
            true.append(expected)
            if signed:
                assert (signed > 0) == (point > tried[table][0][1])
    assert needs_check(aggregate)
    assert can_check(aggregate) == (told == true)
    assert all(one <= other for one, other in zip(told, true, strict=True))


# --------------------------------------------------------------------------------------------------------- laws


@cache
def move_anyhow() -> list[tuple[int, int]]:
    """All ways in which s moves between neighbours, for statistics of every kind."""
    return sorted(
        set().union(
            *(
                find_moves(measure_all(make_aggregate(case, tables, 9), tables), tables)
                for case in (Median(), InterquartileRange(), TrimmedMean(Fraction(1, 3)))
                for tables in (space(notion, selection, True) for notion, selection in NOTIONS)
            )
        )
    )


@pytest.mark.parametrize("epsilon", [Fraction(1, 20), Fraction(1, 3), Fraction(4)])
def test_the_law_of_what_is_told_is_within_epsilon(epsilon: Fraction) -> None:
    check = DistanceCheck(epsilon, 9)
    assert max(check.noise.log_ratio(one - two) for one, two in move_anyhow()) == epsilon  # type: ignore[union-attr]
    for one, two in move_anyhow():
        ratios = [check.noise.pmf(told - one) / check.noise.pmf(told - two) for told in range(-40, 41)]
        assert max(ratios) <= math.exp(epsilon) * (1 + 1e-12)


@pytest.mark.parametrize("cells", [1, 2])
def test_gaussian_noise_is_within_rho(cells: int) -> None:
    """In all cells that a record touches together, and by what ``find_rho`` says of each."""
    rho = pure_rho(Fraction(1, 3))
    check = DistanceCheck(Fraction(1, 3), 9, rho, 4 * cells)
    worst = max(find_share([lose_noise(one - two, check.noise)] * cells, float(rho)) for one, two in move_anyhow())
    assert 1 - 1e-9 < worst <= 1 + 1e-9
    assert check.find_rho(Neighbours.REPLACE, False).entering * cells == rho
    assert check.find_rho(Neighbours.REPLACE, True).entering == 0
    assert check.find_rho(Neighbours.REPLACE, True).changing == rho / cells


@pytest.mark.parametrize("rho", [None, Fraction(1, 50)])
def test_a_replacement_is_two_steps_where_additions_and_removals_are_counted(rho: Fraction | None) -> None:
    tables = space("add-remove", False, True)
    measured = measure_all(make_aggregate(Median(), tables, 9), tables)
    moved = max(
        abs(one - two)
        for table in tables.starts
        for other in space("replace", False, True).neighbours(table)
        for one, two in zip(measured[table], measured[other], strict=True)
    )
    check = DistanceCheck(Fraction(1, 2), 9, rho)
    found = check.find_rho(Neighbours.ADD_REMOVE, False)
    assert moved == 4
    assert found.changing == 4 * found.entering
    worst = find_share([lose_noise(moved, check.noise)], float(found.changing))
    assert worst <= 1 + 1e-9


# ----------------------------------------------------------------------------------------------- what is stated


CHECKS = [
    *(DistanceCheck(Fraction(epsilon), reach) for epsilon in ("1/50", "1/3", "1", "4", "20") for reach in (1, 5, 40)),
    *(DistanceCheck(ONE, reach, pure_rho(Fraction(1, 2)), squared) for reach in (1, 40) for squared in (4, 8)),
]


@pytest.mark.parametrize("check", CHECKS, ids=str)
@pytest.mark.parametrize("parts", [1, 2, 5, 20])
def test_what_is_stated_holds_with_95_percent(check: DistanceCheck, parts: int) -> None:
    """Whatever the distance is, from the law of the noise; beyond the reach as at it. So do several together."""
    half = find_half_width(check.noise)
    noises = np.arange(-4 * half - 4, 4 * half + 5)
    chances = check.noise.pmf(noises)
    far = 2 * check.reach + int(noises[-1])
    stated = {noisy: check.bound(noisy, parts) for noisy in range(-far, far + 1)}
    for distance in range(-check.reach, check.reach + 1):
        signed = 2 * distance - 1 if distance > 0 else 2 * distance + 1 if distance < 0 else 0
        beyond = 10**6 * distance if abs(distance) == check.reach else distance
        held = [is_within(stated[signed + noise], distance, beyond) for noise in noises.tolist()]
        assert chances[held].sum() >= 1 - 0.05 / parts - 1e-12


def is_within(stated: tuple[int | None, int | None], *distances: int) -> bool:
    low, high = stated
    return all((low is None or low <= distance) and (high is None or distance <= high) for distance in distances)


@pytest.mark.parametrize("check", CHECKS, ids=str)
def test_what_is_stated_is_an_interval_that_moves_along(check: DistanceCheck) -> None:
    stated = [check.bound(noisy) for noisy in range(-9 * check.reach - 9, 9 * check.reach + 10)]
    intervals = [(-math.inf if low is None else low, math.inf if high is None else high) for low, high in stated]
    assert all(low <= high for low, high in intervals)
    assert intervals == sorted(intervals)
    assert [high for _, high in intervals] == sorted(high for _, high in intervals)
    opposite = [(None if high is None else -high, None if low is None else -low) for low, high in reversed(stated)]
    assert stated == opposite
    assert all(end is None or abs(end) <= check.reach for pair in stated for end in pair)


def test_the_reach_is_public() -> None:
    """It follows from the statistic, ε and how far the mechanism looks."""
    assert find_reach(Median(), Fraction(1, 10), 3) == find_reach(Quantile(Fraction(1, 3)), Fraction(1, 10), 0)
    assert find_reach(Median(), Fraction(1, 10**6), 5000) == 5000
    assert find_reach(TrimmedMean(Fraction(1, 3)), Fraction(1, 10**6), 0) < find_reach(Median(), Fraction(1, 10**6), 0)


# ---------------------------------------------------------------------------------------------- planted errors


def find_planted(by: Measure, notion: str = "replace", selection: bool = True, case: Statistic | None = None) -> int:
    """The sensitivity of s as measured in another way."""
    tables = space(notion, selection, True)
    measured = measure_all(make_aggregate(case or Median(), tables, 3), tables, by)
    return find_sensitivity(find_moves(measured, tables))


def test_too_few_ranks_are_caught() -> None:
    for case in (Median(), InterquartileRange(), TrimmedMean(Fraction(1, 3))):
        tables = space("replace", False, True)
        aggregate = make_aggregate(case, tables, 3)
        table = Table((-1,) * 4 + (0,) * 4 + (1,) * 6 + (2,) * 8)
        assert aggregate.check is not None
        assert aggregate.check.measure(case, read(aggregate, table), Fraction(99), FINENESS) == 5
        with pytest.raises(LookupError):
            aggregate.check.measure(case, read(aggregate, table, missing=2), Fraction(99), FINENESS)


def test_the_rank_alone_is_caught() -> None:
    """It calls a perfect median of tied values 2 records too low."""
    tables = space("replace", False, True)
    aggregate, table = make_aggregate(Median(), tables, 9), Table((0, 0, 0, 0))
    point = Fraction(0)
    rank = sum(value < point for value in table.values)
    assert (rank - len(table.values) // 2, measure(aggregate, read(aggregate, table), point)) == (-2, 0)


def test_twice_the_distance_is_caught() -> None:
    def double(aggregate: Aggregate, summary: Summary, point: Fraction) -> int:
        signed = measure(aggregate, summary, point)
        return signed + (signed > 0) - (signed < 0)

    assert find_planted(measure) == 2
    assert find_planted(double) == 4


def test_a_sign_by_the_value_of_a_neighbour_is_caught() -> None:
    def sign_elsewhere(aggregate: Aggregate, summary: Summary, point: Fraction) -> int:
        distance = abs(measure(aggregate, summary, point))
        envelope = aggregate.statistic.envelope(summary, 1, FINENESS)
        return distance if point > envelope.lows[1] else -distance

    assert find_planted(sign_elsewhere) > 2


def test_a_reach_that_follows_the_size_is_caught() -> None:
    def reach_by_size(aggregate: Aggregate, summary: Summary, point: Fraction) -> int:
        return measure(replace(aggregate, check=DistanceCheck(ONE, 2 * summary.size + 1)), summary, point)

    assert find_planted(reach_by_size) > 2
    assert find_planted(reach_by_size, selection=False) == 2  # whose size is public


def test_an_envelope_of_counts_that_ends_with_the_size_is_caught() -> None:
    """A count may grow beyond twice the size: the reach is not the distance of what lies there."""

    def stop_early(aggregate: Aggregate, summary: Summary, point: Fraction) -> int:
        near = measure(replace(aggregate, check=DistanceCheck(ONE, summary.size + 1)), summary, point)
        return near if find_distance(near) <= summary.size else 17

    assert find_planted(measure, "add-remove", False, Count()) == 2
    assert find_planted(stop_early, "add-remove", False, Count()) > 2

"""Drawn limits: all three rounds over every neighbouring pair of small tables, in fractions, and what a plan reads."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement
from typing import Any

import pytest

from idios.core.base_measure import BaseMeasure
from idios.core.clipping import Centre, ClippingPlan, calibrate_clipped, plan_clipping
from idios.core.distributions.above_threshold import Ladder
from idios.core.domain import LIMIT, Domain
from idios.core.neighbours import Moves, Neighbours
from idios.core.sampling import SeededSource
from idios.core.statistics import Mean, Median, Statistic, Sum, Variance
from idios.core.statistics.spread import StandardDeviation
from idios.core.summary import Summary
from idios.errors import InvalidInput
from tests.core.stopping import cut_windows, list_deficits, stopping_law
from tests.losses import compare_noise, list_noisy
from tests.oracle import Space, Table, small_tables

NOTIONS = [("replace", False), ("replace", True), ("add-remove", False)]
UNIT = Fraction(1, 24)
"""All ε of a test are multiples of this."""
POWER = Fraction(9, 10)
"""What stands for e^(−UNIT)."""
FINENESS = 60
Released = tuple[tuple[int, Fraction], ...]
"""The numbers that noise is added to, each with the scale of its noise."""


@cache
def space(notion: str, selection: bool) -> Space:
    domain = (0, 3)
    starts = small_tables(domain, range(4), [0, 1] if selection else [0])
    return Space(starts, notion=notion, selection=selection, domain=domain, bounded=True, reach=1)


def moves_of(table: Table, tables: Space) -> Moves:
    outside = table.outside if tables.selection and tables.notion == "replace" else None
    return Moves(Neighbours(tables.notion), len(table.values), outside)


def power(epsilon: Fraction) -> Fraction:
    exponent = epsilon / UNIT
    assert exponent.denominator == 1
    return POWER**exponent.numerator


@dataclass(frozen=True)
class Rounds:
    """How each round is answered; a test plants its errors here."""

    plan: ClippingPlan
    statistic: Statistic

    def summarise(self, table: Table, moves: Moves) -> Summary:
        return cut_windows(table.values, list(self.plan.ranks(moves)), moves, self.plan.domain)

    def middles(self, table: Table, moves: Moves) -> dict[int, Fraction]:
        """The law of the centre."""
        if self.plan.centre is None:
            return {self.plan.fallback: Fraction(1)}
        mechanism = self.plan.centre.calibrate(self.summarise(table, moves))
        q = power(self.plan.centre.epsilon / 2)
        weights: dict[int, Fraction] = defaultdict(Fraction)
        for plateau in mechanism.plateaus:
            for point in range(plateau.first, plateau.last + 1):
                weights[self.plan.find_middle(point)] += plateau.weight * q**plateau.distance
        weights[self.plan.find_middle(None)] += (
            mechanism.refusal * mechanism.measure.denominator * q ** (len(mechanism.balls) - 1)
        )
        total = sum(weights.values())
        return {middle: weight / total for middle, weight in weights.items()}

    def radii(self, table: Table, moves: Moves, middle: int) -> dict[int, Fraction]:
        """The law of the radius."""
        mechanism = self.plan.calibrate_radius(self.summarise(table, moves), middle)
        law = stopping_law(list_deficits(mechanism), power(self.plan.threshold_epsilon), power(self.plan.count_epsilon))
        return dict(zip(self.plan.ladder.thresholds.tolist(), law, strict=True))

    def released(self, table: Table, moves: Moves, limits: tuple[int, int]) -> list[tuple[int, Fraction]]:
        """The numbers that noise is added to in the last round, each with the scale of its noise."""
        values = [min(max(v, limits[0]), limits[1]) for v in table.values]
        squares = sum(v * v for v in values)
        clipped = Summary(Domain(Fraction(1), *limits), moves, total=sum(values), squares=squares)
        epsilon = self.plan.noise_epsilon
        mechanism = calibrate_clipped(self.statistic, clipped, epsilon, FINENESS)
        counts = self.counted(table, moves, limits)
        if mechanism is not None:
            return [*counts, *list_noisy(mechanism)]
        sensitivity = self.statistic.global_sensitivity(clipped.domain, moves)
        assert sensitivity is not None
        value = self.statistic.envelope(clipped, 0, FINENESS).value
        scale = Fraction(math.ceil(sensitivity * self.statistic.resolution(FINENESS))) / epsilon
        return counts if value is None else [*counts, (value, scale)]

    def counted(self, table: Table, moves: Moves, limits: tuple[int, int]) -> list[tuple[int, Fraction]]:
        """The numbers of clipped values, of values beyond nearer points, and of all, with the scales of their noise.

        The nearer points follow from the centre and the radius. Wherever they lie, the count costs as much: here they
        are a third of the way between the limits.
        """
        summary, inset = self.summarise(table, moves), (limits[1] - limits[0]) // 3
        beyond = self.plan.count_beyond(summary, *limits)
        nearer = self.plan.count_beyond(summary, limits[0] + inset, limits[1] - inset)
        scale = 1 / self.plan.tally_epsilon
        return [(beyond, scale), (nearer, scale), (moves.size, 1 / self.plan.size_epsilon)]


@dataclass(frozen=True)
class Laws:
    """The first two rounds of every table, and what is released after them."""

    tables: dict[Table, dict[tuple[int, int], tuple[Fraction, float, int]]]
    """By table and by what was drawn: its probability, the logarithm of that, and the place of what is released."""
    released: list[Released]
    """Each list once, as very many are equal."""

    @classmethod
    def enumerate(cls, rounds: Rounds, tables: Space) -> Laws:
        places: dict[Released, int] = {}
        laws = {}
        for table in tables.tables:
            moves = moves_of(table, tables)
            laws[table] = {
                drawn: (p, logarithm, places.setdefault(tuple(rounds.released(table, moves, limits)), len(places)))
                for drawn, (p, logarithm, limits) in list_limits(replace(rounds, statistic=Sum()), table, moves).items()
            }
        return cls(laws, list(places))


@cache
def list_limits(
    rounds: Rounds, table: Table, moves: Moves
) -> dict[tuple[int, int], tuple[Fraction, float, tuple[int, int]]]:
    """The law of the first two rounds, which is that of every statistic: its logarithm too, and the limits drawn."""
    return {
        (middle, radius): (p * r, math.log(p * r), rounds.plan.find_limits(middle, radius))
        for middle, p in rounds.middles(table, moves).items()
        for radius, r in rounds.radii(table, moves, middle).items()
        if p * r
    }


def worst_share(rounds: Rounds, tables: Space) -> float:
    """The greatest share of ε that a pair of neighbours uses up; above 1 exactly if the promise is broken."""
    epsilon = rounds.plan.epsilon
    laws = Laws.enumerate(rounds, tables)

    @cache
    def lose(here: int, there: int) -> tuple[Fraction | float, float]:
        loss = compare_noise(laws.released[here], laws.released[there])
        return loss, float(loss)

    unit, whole = float(UNIT) / -math.log(POWER), float(epsilon)
    worst = 0.0
    for table in tables.starts:
        for other in tables.neighbours(table):
            beside = laws.tables[other]
            for drawn, (p, logarithm, here) in laws.tables[table].items():
                if drawn not in beside:
                    return math.inf
                other_p, other_logarithm, there = beside[drawn]
                loss, rounded = lose(here, there)
                if isinstance(loss, float):
                    return loss
                used = ((logarithm - other_logarithm) * unit + rounded) / whole
                worst = max(worst, used)
                if used > 1 - 1e-9:  # decided in fractions: (p/p′)^d ≤ e^((ε − loss)·d)
                    left = (epsilon - loss) / UNIT
                    if (p / other_p) ** left.denominator > POWER**-left.numerator:
                        return max(worst, 1 + 1e-9)
    return min(worst, 1.0) if worst <= 1 + 1e-9 else worst


def tiny_plan(reach: int, target: int, centre: Centre | None, fallback: int = 0, **bounds: int) -> ClippingPlan:
    ladder = Ladder(0, 3, 0, Fraction(2))
    shares = (4 * UNIT, 2 * UNIT, UNIT / 2, UNIT / 2, 12 * UNIT)
    return ClippingPlan(Domain(**bounds), fallback, centre, ladder, target, reach, *shares)


CENTRE = Centre(6 * UNIT, BaseMeasure(centre=0, shells=3), distance=2, refusal=10)


def cases() -> Iterator[tuple[Statistic, ClippingPlan]]:
    centres = [CENTRE, replace(CENTRE, measure=BaseMeasure(centre=5, shells=4), distance=1, refusal=1)]
    for statistic in (Sum(), Mean(), Variance()):
        for reach, target in ((1, 0), (2, 1)):
            yield statistic, tiny_plan(reach, target, None)
            yield statistic, tiny_plan(reach, target, None, fallback=1)
            for centre in centres:
                yield statistic, tiny_plan(reach, target, centre)
        yield statistic, tiny_plan(9, 0, CENTRE)
        yield statistic, tiny_plan(2, 1, None, fallback=1, lower=1)


@pytest.mark.slow
@pytest.mark.parametrize(("notion", "selection"), NOTIONS)
def test_three_rounds_cost_epsilon_together(notion: str, selection: bool) -> None:
    shares = {}
    for statistic, plan in cases():
        tables = space(notion, selection)
        if plan.domain.lower is not None:  # only such values are in the domain
            tables = Space(
                small_tables((1, 3), range(4), [0, 1] if selection else [0]),
                notion=notion,
                selection=selection,
                domain=(1, 3),
                bounded=True,
                reach=1,
            )
        shares[statistic, plan] = worst_share(Rounds(plan, statistic), tables)
        assert shares[statistic, plan] <= 1, (statistic, plan)
    assert max(shares.values()) > 0.9


class CentreFromTheData(Rounds):
    def middles(self, table: Table, moves: Moves) -> dict[int, Fraction]:
        median = Median().define(table.values)
        return {0 if median is None else math.floor(median): Fraction(1)}


class NoiseOfTheRadiusAlone(Rounds):
    """Scale C/ε for a sum, wherever the limits lie."""

    def released(self, table: Table, moves: Moves, limits: tuple[int, int]) -> list[tuple[int, Fraction]]:
        *counts, (value, _) = super().released(table, moves, limits)
        return [*counts, (value, Fraction(limits[1] - limits[0], 2) / self.plan.noise_epsilon)]


class HalfTheNoise(Rounds):
    def released(self, table: Table, moves: Moves, limits: tuple[int, int]) -> list[tuple[int, Fraction]]:
        return [(value, scale / 2) for value, scale in super().released(table, moves, limits)]


class CountWithoutNoise(Rounds):
    def released(self, table: Table, moves: Moves, limits: tuple[int, int]) -> list[tuple[int, Fraction]]:
        *others, (count, _) = super().released(table, moves, limits)
        return [*others, (count, Fraction(0))]


class TallyWithoutNoise(Rounds):
    def counted(self, table: Table, moves: Moves, limits: tuple[int, int]) -> list[tuple[int, Fraction]]:
        (clipped, _), *others = super().counted(table, moves, limits)
        return [(clipped, Fraction(0)), *others]


class OneTallyForTwo(Rounds):
    def counted(self, table: Table, moves: Moves, limits: tuple[int, int]) -> list[tuple[int, Fraction]]:
        """Both counts with the noise of half of their ε, as if no record could move both."""
        (clipped, scale), (nearer, _), size = super().counted(table, moves, limits)
        return [(clipped, scale / 2), (nearer, scale / 2), size]


class RadiusFromTheData(Rounds):
    def radii(self, table: Table, moves: Moves, middle: int) -> dict[int, Fraction]:
        return {max((abs(v - middle) for v in table.values), default=0): Fraction(1)}


@pytest.mark.parametrize(
    ("rounds", "notion", "selection"),
    [
        (CentreFromTheData(tiny_plan(2, 1, CENTRE), Mean()), "replace", False),
        (CentreFromTheData(tiny_plan(2, 1, CENTRE), Mean()), "add-remove", False),
        (NoiseOfTheRadiusAlone(tiny_plan(2, 1, None, fallback=3), Sum()), "replace", True),
        (NoiseOfTheRadiusAlone(tiny_plan(2, 1, None, fallback=3), Sum()), "add-remove", False),
        (NoiseOfTheRadiusAlone(tiny_plan(2, 1, None, fallback=1), Sum()), "replace", False),
        (HalfTheNoise(tiny_plan(2, 1, None, fallback=1), Sum()), "replace", False),
        (HalfTheNoise(tiny_plan(2, 1, None, fallback=1), Mean()), "replace", False),
        (HalfTheNoise(tiny_plan(2, 1, None, fallback=1), Mean()), "replace", True),
        (HalfTheNoise(tiny_plan(2, 1, None), Variance()), "add-remove", False),
        (CountWithoutNoise(tiny_plan(2, 1, None), Mean()), "add-remove", False),
        (TallyWithoutNoise(tiny_plan(2, 1, None), Mean()), "replace", False),
        (OneTallyForTwo(replace(tiny_plan(2, 1, None), tally_epsilon=12 * UNIT), Mean()), "replace", False),
        (RadiusFromTheData(tiny_plan(2, 1, None), Mean()), "replace", False),
    ],
)
def test_planted_errors_are_caught(rounds: Rounds, notion: str, selection: bool) -> None:
    assert worst_share(rounds, space(notion, selection)) > 1


# ------------------------------------------------------------------------------------------- several cells together

Grouped = tuple[tuple[int, int], ...]
"""Records, each a value and the cell that it is in; cell 2 is outside of the selection."""


@dataclass(frozen=True)
class SharedLimits:
    """A question about two cells; a test plants its errors here."""

    rounds: Rounds
    notion: str

    def neighbours(self, records: Grouped) -> Iterator[Grouped]:
        """Every table that differs by one record."""
        changed = [(value, cell) for value in range(4) for cell in range(2)] + [(0, 2)]
        for i in range(len(records)):
            rest = records[:i] + records[i + 1 :]
            if self.notion == "add-remove":
                yield rest
            else:
                yield from (tuple(sorted((*rest, new))) for new in changed)

    def limits(self, records: Grouped) -> dict[tuple[int, int], tuple[Fraction, float, tuple[int, int]]]:
        """The law of the limits: of all records in a cell together."""
        table = Table(tuple(sorted(value for value, cell in records if cell < 2)), 0)
        return list_limits(self.rounds, table, Moves(Neighbours(self.notion), len(table.values), 0))

    def released(self, records: Grouped, limits: tuple[int, int]) -> Released:
        """The counts over all cells, and what each cell gets."""
        union = tuple(sorted(value for value, cell in records if cell < 2))
        found = self.rounds.counted(Table(union, 0), Moves(Neighbours(self.notion), len(union), 0), limits)
        for cell in range(2):
            values = tuple(sorted(value for value, of in records if of == cell))
            moves = Moves(Neighbours.ADD_REMOVE, len(values))
            found += self.rounds.released(Table(values, 0), moves, limits)[3:]
        return tuple(found)

    def worst(self, sizes: range = range(3)) -> float:
        """The greatest share of ε that a pair of neighbours uses up."""
        plan, unit = self.rounds.plan, float(UNIT) / -math.log(POWER)
        epsilon = float(plan.parts * plan.epsilon)
        symbols = [(value, cell) for value in range(4) for cell in range(2)] + [(0, 2)]
        find_limits, find_released = cache(self.limits), cache(self.released)
        worst = 0.0
        for size in sizes:
            for records in combinations_with_replacement(symbols, size):
                for other in set(self.neighbours(records)):
                    here, there = find_limits(records), find_limits(other)
                    for drawn, (_, logarithm, limits) in here.items():
                        if drawn not in there:
                            return math.inf
                        lost = float(compare_noise(find_released(records, limits), find_released(other, limits)))
                        for sign in (1, -1):  # the removed record may be the one of either table
                            worst = max(worst, (sign * (logarithm - there[drawn][1]) * unit + lost) / epsilon)
        return worst


class LimitsOfEachCell(SharedLimits):
    """Each cell draws its own limits, at the price of one draw."""

    def limits(self, records: Grouped) -> dict[tuple[int, int], tuple[Fraction, float, tuple[int, int]]]:
        laws = []
        for cell in range(2):
            table = Table(tuple(sorted(value for value, of in records if of == cell)), 0)
            laws.append(list_limits(self.rounds, table, Moves(Neighbours(self.notion), len(table.values), 0)))
        return {
            (*one, *two): (laws[0][one][0] * laws[1][two][0], laws[0][one][1] + laws[1][two][1], laws[0][one][2])
            for one in laws[0]
            for two in laws[1]
        }


class CellsAtFullEpsilon(SharedLimits):
    """Noise in each cell as if no record could move to another."""

    def released(self, records: Grouped, limits: tuple[int, int]) -> Released:
        found = super().released(records, limits)
        return (*found[:3], *((value, scale / 2) for value, scale in found[3:]))


def shared_plan(notion: str, reach: int = 2, target: int = 1, centre: Centre | None = None) -> ClippingPlan:
    """Shares of ε such that all cells together cost as much as the limits and, with ``parts``, the noise."""
    parts = 2 if notion == "replace" else 1
    return replace(tiny_plan(reach, target, centre), parts=parts, noise_epsilon=12 * UNIT / parts, pooled=True)


def shared(kind: type[SharedLimits], notion: str, statistic: Statistic, **options: Any) -> SharedLimits:
    class Pooled(Rounds):
        """The union is read as one selection."""

        def summarise(self, table: Table, moves: Moves) -> Summary:
            ranks = list(replace(self.plan, pooled=False).ranks(moves))
            return cut_windows(table.values, ranks, moves, self.plan.domain)

    return kind(Pooled(shared_plan(notion, **options), statistic), notion)


@pytest.mark.slow
@pytest.mark.parametrize("notion", ["replace", "add-remove"])
@pytest.mark.parametrize("statistic", [Sum(), Mean(), Variance()], ids=lambda each: each.name)
def test_limits_that_cells_share_cost_what_those_of_one_selection_do(notion: str, statistic: Statistic) -> None:
    used = [
        shared(SharedLimits, notion, statistic, reach=reach, target=target, centre=centre).worst()
        for reach, target, centre in ((1, 0, None), (2, 1, None), (2, 1, CENTRE))
    ]
    assert max(used) <= 1 + 1e-9
    assert max(used) > 0.75


@pytest.mark.parametrize("kind", [LimitsOfEachCell, CellsAtFullEpsilon])
def test_planted_errors_of_shared_limits_are_caught(kind: type[SharedLimits]) -> None:
    assert shared(kind, "replace", Sum(), reach=1, target=0).worst() > 1.01


def test_a_cell_reads_nothing_for_limits_that_all_share() -> None:
    plan = shared_plan("replace")
    assert not list(plan.ranks(Moves(Neighbours.ADD_REMOVE, 100)))
    assert list(replace(plan, pooled=False).ranks(Moves(Neighbours.REPLACE, 100, 0)))


# ------------------------------------------------------------------------------------------------- the plans


def planned(
    statistic: Statistic, neighbours: str = "replace", whole: bool = True, size: int | None = None, **bounds: int
) -> ClippingPlan:
    plan = plan_clipping(statistic, Domain(**bounds), Neighbours(neighbours), whole, Fraction(1), size)
    assert plan is not None
    assert plan.epsilon == 1
    return plan


def test_who_has_a_centre_and_where() -> None:
    assert planned(Mean(), size=1000).centre is not None
    assert planned(Mean(), size=199).centre is None
    assert planned(Mean(), whole=False).centre is not None
    assert planned(Mean(), "add-remove").centre is not None
    assert planned(StandardDeviation(), "add-remove").centre is not None
    assert planned(Sum(), size=1000).centre is not None
    assert planned(Sum(), size=199).centre is None
    assert planned(Sum(), whole=False).centre is None
    assert planned(Sum(), "add-remove").centre is None
    assert planned(Sum(), size=1000, lower=0).centre is None
    assert planned(Sum(), size=1000, upper=-3).centre is None
    assert planned(Sum(), size=1000, lower=-3).centre is not None
    assert planned(Mean(), whole=False, centre=70).fallback == 70
    assert planned(Mean(), whole=False, lower=80, centre=70).fallback == 80
    assert planned(Sum(), whole=False, centre=70).fallback == 0
    assert planned(Sum(), whole=False, lower=5).fallback == 5
    assert planned(Sum(), whole=False, upper=-5).fallback == -5


def test_other_questions_need_no_limits() -> None:
    bounded = Domain(lower=0, upper=9)
    for statistic, domain in [(Sum(), bounded), (Mean(), bounded), (Median(), Domain())]:
        assert plan_clipping(statistic, domain, Neighbours.REPLACE, True, Fraction(1)) is None


def test_epsilon_is_divided_among_the_rounds() -> None:
    without = planned(Sum(), whole=False)
    assert without.threshold_epsilon + without.count_epsilon == Fraction(3, 10)
    assert (without.tally_epsilon, without.size_epsilon) == (Fraction(1, 9), Fraction(1, 24))
    assert without.noise_epsilon == Fraction(157, 360)
    assert without.limits_epsilon + without.noise_epsilon == 1
    few, many = planned(Sum(), size=1000, lower=0), planned(Sum(), size=10**6, lower=0)  # the size is public
    assert [plan.threshold_epsilon + plan.count_epsilon for plan in (few, many)] == [Fraction(2, 5), Fraction(1, 4)]
    assert few.size_epsilon == many.size_epsilon == 0
    assert 2 * without.threshold_epsilon == 5 * without.count_epsilon
    assert (without.target, planned(Sum(), "add-remove").target) == (5, 3)


def draw_limits(plan: ClippingPlan, values: list[int], moves: Moves, seed: int) -> tuple[int, int]:
    return plan.draw_limits(cut_windows(values, list(plan.ranks(moves)), moves, plan.domain), SeededSource(seed))[:2]


def test_limits_hold_nearly_all_values_and_little_more() -> None:
    values = [50_000 + (i - 5000) ** 3 // 10**8 for i in range(10_001)]  # within ±1250
    moves = Moves(Neighbours.REPLACE, len(values))
    around = planned(Mean(), size=len(values))
    for seed in range(5):
        low, high = draw_limits(around, values, moves, seed)
        assert 48_000 < low < 49_500
        assert 50_500 < high < 52_000
    sums = planned(Sum(), whole=False, lower=0)
    low, high = draw_limits(sums, values, moves, 1)
    assert low == 0
    assert 50_000 < high < 60_000


@pytest.mark.parametrize(
    "values",
    [[], [7], [7] * 2000, [-(10**30), 10**30], [-LIMIT] * 2000 + [LIMIT] * 2000],
    ids=["empty", "one", "equal", "beyond the limit", "both ends"],
)
@pytest.mark.parametrize("statistic", [Sum(), Mean(), Variance(), StandardDeviation()], ids=lambda s: s.name)
def test_every_selection_has_limits(values: list[int], statistic: Statistic) -> None:
    moves = Moves(Neighbours.ADD_REMOVE, len(values))
    plan = planned(statistic, "add-remove")
    for seed in range(3):
        low, high = draw_limits(plan, values, moves, seed)
        assert low <= high
        clipped = [min(max(v, low), high) for v in values]
        squares = sum(v * v for v in clipped)
        summary = Summary(Domain(Fraction(1), low, high), moves, total=sum(clipped), squares=squares)
        mechanism = calibrate_clipped(statistic, summary, plan.noise_epsilon)
        assert (mechanism is None) == isinstance(statistic, Sum)
        if mechanism is not None:
            mechanism.draw(SeededSource(seed))


def test_what_is_clipped_has_two_limits() -> None:
    summary = Summary(Domain(lower=0), Moves(Neighbours.ADD_REMOVE, 1), total=4)
    with pytest.raises(InvalidInput, match="two limits"):
        calibrate_clipped(Mean(), summary, Fraction(1))


def test_values_that_both_ends_hold_are_counted_once() -> None:
    plan = tiny_plan(3, 0, None, fallback=2)
    for values in [
        (),
        (0,),
        (0, 3),
        (0, 0, 1, 3),
        (0, 1, 1, 2, 3),
        (0, 0, 1, 2, 2, 3, 3),
        (0,) * 4 + (2,) * 9 + (3,) * 2,
    ]:
        moves = Moves(Neighbours.ADD_REMOVE, len(values))
        mechanism = plan.calibrate_radius(cut_windows(values, list(plan.ranks(moves)), moves), 2)
        expected = tuple(min(3, sum(abs(v - 2) > t for v in values)) for t in (0, 1, 2, 3))
        assert list_deficits(mechanism) == expected

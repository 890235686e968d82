"""How far off an answer may be, told from public facts and from what is released, and from nothing else.

1. A margin is the 95 % half-width of noise whose scale is public: it is known before asking, unless it follows from a
   number of records that is not public.
2. An interval is drawn with its value. It is the value ± its margin; or what the noisy sums and the noisy count behind
   a mean or a variance tell of it, which is post-processing of these releases (``core.distributions.noisy_moments``).
   From the plan and what is stored it is found again at any confidence: 1 − 0.05/parts for each of so many numbers, so
   that all their intervals together hold with 95 %, however the numbers depend on each other.
3. Where values were clipped to limits that were drawn, those limits are released first and the noise is that for them:
   its scale is public too. The interval is of the clipped values, and wide enough for what clipping usually takes away
   (rule 7 of ``core.clipping``). Where too many are clipped for that there is none, and where limits found nothing, or
   the noisy count behind a mean or a variance is no more than its noise, there is no answer.
4. An interval is cut to the statistic's public range. The truth lies there, so it is not missed more often for that.
5. A row that is shown because of its noise (HAVING, ORDER BY with LIMIT) is the likelier to be far off. Where the
   value of an aggregate decides which rows are shown, its margins and intervals are taken at 1 − 0.05/k, k the number
   of cells that could have been: all of one aggregate hold together with 95 %, so those that are shown do. Others are
   drawn independently of that choice, and their intervals stay as they are. So do checks, which are drawn afterwards.
6. Noise that is fitted to the data, and noise of a shape that follows the data, have neither. This is said once for
   each statistic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cache
from typing import NamedTuple, TypeAlias

from idios.core.calibration import Added, Choice, Mechanism, Method, make_global_noise
from idios.core.clipping import ClippingPlan, DrawnLimits, calibrate_clipped
from idios.core.distributions.noisy_moments import (
    NOTHING,
    Beyond,
    Interval,
    NoisyQuotient,
    NoisyVariance,
    find_half_width,
)
from idios.core.domain import Categories, Domain
from idios.core.exact import round_up_digits, text
from idios.core.inverse import describe_null_risk, find_needed_size
from idios.core.neighbours import VALUES, Counted, Moves
from idios.core.outer_ranks import RankPlan
from idios.core.sampling import RandomSource
from idios.core.statistics import Mean, Statistic, Sum
from idios.core.summary import Summary
from idios.model import ReleasedTable
from idios.plan.question import Aggregate, Plan

PublicMechanism: TypeAlias = Added | NoisyQuotient | NoisyVariance
"""A mechanism whose noise is public, as far as it is: it says nothing of the data."""
Limits: TypeAlias = tuple[Fraction, Fraction]
"""What values were clipped to, in the column's units."""

PUBLIC_NOISE = (Method.EXACT, Method.GLOBAL)
WITH_INTERVALS = (*PUBLIC_NOISE, Method.MOMENTS, Method.CLIPPED)
UNKNOWN_MARGIN = {
    Method.LOCAL: "the noise is fitted to the data, so its scale is for the controller alone",
    Method.INVERSE: "the shape of the noise follows the data, so it is for the controller alone",
    Method.ABOVE_THRESHOLD: "the shape of the noise follows the data, so it is for the controller alone",
    Method.MOMENTS: "it follows from a number of records that is drawn too, so each answer has an interval of its own",
    Method.CLIPPED: "it follows from limits that are drawn, so each answer has an interval of its own, of the values "
    "clipped to them",
    Method.EXPONENTIAL: "a category has no margin",
}

ANSWERED, UNCROWDED = 2, 30
"""From how many times ``ClippingPlan.least_size`` on hardly an answer is NULL, and most have an interval: as measured
with lognormal values, where the number of values is public."""
SLACK = Fraction(11, 10)
"""By how much more ε is proposed than falls with the number of values: parts of it are counts, which are whole."""

CHECKED = "this only checks an earlier answer, which has its margin if there is one"


def public_margin(plan: Plan, number: int, parts: int | None = None) -> Fraction | None:
    """The margin of an aggregate as far as it is known without the data, alone or as one of so many parts."""
    mechanism = _make_public_mechanism(plan, plan.aggregates[number])
    if mechanism is None:
        return None
    return find_margin(plan, plan.aggregates[number], mechanism, parts or plan.count_choices(number))


def find_margin(plan: Plan, aggregate: Aggregate, mechanism: Mechanism, parts: int = 1) -> Fraction | None:
    """The half-width of noise whose scale is public at 1 − 0.05/parts, in the column's units."""
    if aggregate.choice.method not in PUBLIC_NOISE or not isinstance(mechanism, Added):
        return None
    step = aggregate.statistic.answer_step(aggregate.grid, plan.dataset.protection.fineness)
    return find_half_width(mechanism.noise, parts) * step


def widen_margins(plan: Plan, margins: Sequence[Fraction | None]) -> list[Fraction | None]:
    """Those that are stored, at 95 %, as they hold for the rows that a question shows."""
    return [
        public_margin(plan, i) if margin is not None and plan.count_choices(i) > 1 else margin
        for i, margin in enumerate(margins)
    ]


class DrawnPoint(NamedTuple):
    """A point of the answer's grid, its 95 % interval, and the noisy sums and count that both follow from."""

    point: int | None
    interval: Interval | None = None
    noisy_sums: tuple[int, ...] | None = None


def draw_with_interval(
    aggregate: Aggregate,
    mechanism: Mechanism,
    fineness: int,
    source: RandomSource | None = None,
    limits: DrawnLimits | None = None,
) -> DrawnPoint:
    """One draw on the answer's grid, clamped to the statistic's public range, with its interval where it has one.

    Clamping brings what was drawn nearer to every point of the range, the truth among them: a margin stays one.
    ``limits`` are those that values were clipped to; where they found nothing, nothing is drawn.
    """
    sums: tuple[int, ...] | None = None
    found: Interval | None = None
    if limits is not None and limits.collapsed:
        return DrawnPoint(None)
    if isinstance(mechanism, NoisyQuotient | NoisyVariance):
        sums = mechanism.draw_sums(source)
        drawn = mechanism.place(*sums)
        if limits is not None and mechanism.counts_nothing(sums[-1]):
            return DrawnPoint(None)
    else:
        drawn = mechanism.draw(source)
    if drawn is None:
        return DrawnPoint(None)
    low, high = find_public_range(aggregate.statistic, aggregate.grid, fineness)
    point = int(min(max(drawn, low), high))
    if isinstance(mechanism, Added | NoisyQuotient | NoisyVariance) and aggregate.choice.method in WITH_INTERVALS:
        found = _find_interval(aggregate, mechanism, fineness, point, sums, limits, 1)
    return DrawnPoint(point, found, sums)


def _find_interval(
    aggregate: Aggregate,
    mechanism: PublicMechanism,
    fineness: int,
    point: int,
    sums: tuple[int, ...] | None,
    limits: DrawnLimits | None,
    parts: int,
) -> Interval | None:
    """The interval of what was drawn at 1 − 0.05/parts, on the answer's grid, cut to the public range."""
    statistic, grid = aggregate.statistic, aggregate.grid
    if limits is not None and limits.crowded:
        return None
    beyond = NOTHING if limits is None else limits.allow(grid)
    if isinstance(mechanism, Added):
        half, lost = find_half_width(mechanism.noise, parts), _lose(aggregate, beyond, fineness)
        found: Interval | None = (point - half - lost[0], point + half + lost[1])
    else:
        found = None if sums is None else mechanism.find_interval(*sums, parts=parts, beyond=beyond)
    return found and _cut(found, *find_public_range(statistic, grid, fineness))


def _lose(aggregate: Aggregate, beyond: Beyond, fineness: int) -> Interval:
    """What a sum, or a mean of a public number of values, may have lost by clipping, in steps of the answer's grid."""
    statistic, clipping = aggregate.statistic, aggregate.choice.clipping
    many = clipping.size if clipping is not None and clipping.size and isinstance(statistic, Mean) else 1
    below, above = (-(-lost * statistic.resolution(fineness) // many) for lost in beyond.lost)
    return below, above


def _cut(interval: Interval, low: int | float, high: int | float) -> Interval:
    return int(min(max(interval[0], low), high)), int(min(max(interval[1], low), high))


def find_public_range(statistic: Statistic, grid: Domain, fineness: int) -> tuple[int | float, int | float]:
    """The public range of a statistic, in steps of the answer's grid."""
    low, high = statistic.range(grid)
    return statistic.place(low, fineness), statistic.place(high, fineness)


# Intervals of what is stored.


def find_intervals(plan: Plan, table: ReleasedTable, parts: int) -> list[list[tuple[Fraction, Fraction] | None]]:
    """By cell and aggregate, where the truth lies with 1 − 0.05/parts, in the column's units."""
    found = StoredIntervals(plan, table)
    return [[found.find(cell, i, parts) for i in range(len(plan.aggregates))] for cell in range(len(table.cells))]


class StoredIntervals:
    """The intervals of a released table at any confidence.

    Dates and timestamps have none: their noise is never public. At 95 % these are the intervals that are stored. Others
    of means and variances need their noisy sums, which tables of before do not have.
    """

    def __init__(self, plan: Plan, table: ReleasedTable) -> None:
        self.plan, self.table = plan, table
        aggregates = plan.aggregates
        self._find_mechanism = cache(lambda number, limits: _make_public_mechanism(plan, aggregates[number], limits))

    def find(self, cell: int, number: int, parts: int) -> tuple[Fraction, Fraction] | None:
        """Where the truth of an aggregate lies in one cell, with 1 − 0.05/parts."""
        if parts > 1:
            return self.compute(cell, number, parts)
        stored = self.table.intervals[cell][number] if self.table.intervals else None
        return stored and (Fraction(stored[0]), Fraction(stored[1]))

    def compute(self, cell: int, number: int, parts: int) -> tuple[Fraction, Fraction] | None:
        """The same from the noise that was drawn and the noisy sums behind an answer, not as it is stored."""
        table, aggregate = self.table, self.plan.aggregates[number]
        written = table.cells[cell][number]
        mechanism = self._find_mechanism(number, table.clipped[cell][number] if table.clipped else None)
        if written is None or mechanism is None or isinstance(aggregate.domain, Categories):
            return None
        fineness = self.plan.dataset.protection.fineness
        step = aggregate.statistic.answer_step(aggregate.grid, fineness)
        point, limits = int(Fraction(written) / step), find_drawn_limits(aggregate, table, number)
        sums = table.noisy_sums[cell][number] if table.noisy_sums else None
        found = _find_interval(aggregate, mechanism, fineness, point, sums, limits, parts)
        return found and (found[0] * step, found[1] * step)


def find_drawn_limits(aggregate: Aggregate, table: ReleasedTable, number: int) -> DrawnLimits | None:
    """The limits that an aggregate's values were clipped to in all cells, with the counts that tell of them."""
    clipping, tally = aggregate.choice.clipping, table.tallies[number] if table.tallies else None
    ends = table.clipped[0][number] if table.clipped else None
    if clipping is None or tally is None or ends is None:
        return None
    low, high = (int(end / aggregate.grid.step) for end in ends)
    return DrawnLimits(low, high, *tally, clipping.spread)


def _make_public_mechanism(plan: Plan, aggregate: Aggregate, limits: Limits | None = None) -> PublicMechanism | None:
    """What was drawn from, with nothing of the data in it; ``limits`` are those that values were clipped to."""
    choice, statistic, domain = aggregate.choice, aggregate.statistic, aggregate.grid
    fineness = plan.dataset.protection.fineness
    size = plan.dataset.size if aggregate.whole else None
    moves = Moves(aggregate.neighbours, 1 if size is None else size, None if aggregate.whole else 0)
    if plan.checked is not None or choice.method not in WITH_INTERVALS:
        return None
    if choice.clipping is not None:
        if limits is None:
            return None
        domain = Domain(domain.step, int(limits[0] / domain.step), int(limits[1] / domain.step))
    if choice.method not in PUBLIC_NOISE:
        epsilon = choice.epsilon if choice.clipping is None else choice.clipping.noise_epsilon
        if moments := calibrate_clipped(statistic, Summary(domain, moves, total=0, squares=0), epsilon, fineness):
            return moments
    if size is None and not statistic.always_global:
        return None
    return Added(0, make_global_noise(choice, statistic, domain, moves, fineness))


# Why there is none.


def list_margin_reasons(plan: Plan, margins: Mapping[str, Fraction | None]) -> dict[str, str]:
    """By column, why it has no margin."""
    return {
        label: CHECKED if plan.checked is not None else describe_unknown_margin(plan.aggregates[number].choice)
        for label, number in plan.measures
        if margins[label] is None
    }


def describe_unknown_margin(choice: Choice) -> str:
    """Why the margin of a statistic is not public."""
    otherwise = "the scale follows from the number of records, which is not read before asking"
    return UNKNOWN_MARGIN.get(choice.method, otherwise)


def describe_risk(
    aggregate: Aggregate, records: int | None, counted: Counted = VALUES, asked: Fraction | None = None
) -> str:
    """On how few values an answer is to be expected NULL or far off, where they may be so few; else nothing.

    With the ε that was ``asked`` with, it is told how much would do for the number of records that is public.
    """
    choice, whole = aggregate.choice, aggregate.whole
    if choice.method is Method.INVERSE:
        neighbours, epsilon, refusal = aggregate.neighbours, choice.epsilon, choice.refusal
        risk = describe_null_risk(aggregate.statistic, neighbours, records, whole, epsilon, refusal, counted)
        needed = find_needed_size(aggregate.statistic, epsilon, refusal, neighbours)
        return risk + _propose_epsilon(asked, needed, records, whole) if risk else ""
    bounds = ", or declared bounds," if choice.clipping else ""
    if choice.clipping is not None and (size := choice.clipping.size) is not None:
        for what, times in (("NULL or far off", ANSWERED), ("no interval", UNCROWDED)):
            if size < (needed := times * choice.clipping.least_size):
                there = f"{counted.write(needed)}, and there are {counted.count(size):,}"
                return f"{what} is likely: it takes about {there}" + _propose_epsilon(asked, needed, size, True, bounds)
    least = find_least_size(aggregate, records)
    if least is None:
        return ""
    what = "far off" if choice.clipping is None else "NULL or far off"
    nonzero = " other than 0" if choice.clipping and isinstance(aggregate.statistic, Sum) else ""
    if records is not None and records < least:
        told = f"{what} is likely: it takes about {counted.write(least)}{nonzero}, and there are at most"
        return f"{told} {counted.count(records):,}" + _propose_epsilon(asked, least, records, False, bounds)
    few = f"{what} where fewer than about {counted.write(least)}{nonzero} are selected"
    if choice.clipping is None:
        return few
    where = ", in all groups together" if choice.clipping.pooled else ""
    return f"{few}{where}; twice the ε takes half as many, declared bounds none"


def _propose_epsilon(asked: Fraction | None, needed: int, size: int | None, known: bool, instead: str = "") -> str:
    """Which ε would do for so many values, or for no more than these; the number that is needed falls with it."""
    if asked is None or not size or size >= needed:
        return ""
    enough = text(round_up_digits(SLACK * asked * needed / size, 2))
    return f"; ε of {'' if known else 'at least '}about {enough}{instead} would {'do' if known else 'be needed'}"


def find_least_size(aggregate: Aggregate, records: int | None) -> int | None:
    """From how many values on an answer with drawn limits is not far off; None where that is no risk."""
    reading = aggregate.choice.reading
    if isinstance(reading, ClippingPlan):
        return reading.least_size if reading.size is None else None
    return reading.least_size if (records is None or not aggregate.whole) and isinstance(reading, RankPlan) else None

"""How far off an answer may be, told from public facts and from what is released, and from nothing else.

1. A margin is the 95 % half-width of noise whose scale is public: it is known before asking, unless it follows from a
   number of records that is not public.
2. An interval is drawn with its value. It is the value ± its margin; or what the noisy sums and the noisy count behind
   a mean or a variance tell of it, which is post-processing of these releases (``core.distributions.noisy_moments``).
3. Where values were clipped to limits that were drawn, those limits are released first and the noise is that for them:
   its scale is public too. The interval is of the clipped values. What clipping took away it does not show.
4. An interval is cut to the statistic's public range. The truth lies there, so it is not missed more often for that.
5. Noise that is fitted to the data, and noise of a shape that follows the data, have neither. This is said once for
   each statistic.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from idios.core.calibration import Added, Choice, Mechanism, Method, make_global_noise
from idios.core.clipping import ClippingPlan
from idios.core.distributions.noisy_moments import Interval, NoisyQuotient, NoisyVariance, find_half_width
from idios.core.inverse import describe_null_risk
from idios.core.neighbours import Moves
from idios.core.outer_ranks import RankPlan
from idios.core.sampling import Source
from idios.query.plan import Aggregate, Plan

PUBLIC_NOISE = (Method.EXACT, Method.GLOBAL)
UNKNOWN_MARGIN = {
    Method.LOCAL: "the noise is fitted to the data, so its scale is for the controller alone",
    Method.INVERSE: "the shape of the noise follows the data, so it is for the controller alone",
    Method.ABOVE_THRESHOLD: "the shape of the noise follows the data, so it is for the controller alone",
    Method.MOMENTS: "it follows from a number of records that is drawn too, so each answer has an interval of its own",
    Method.CLIPPED: "it follows from limits that are drawn, so each answer has an interval of its own, of the values "
    "clipped to them",
    Method.EXPONENTIAL: "a category has no margin",
}

CHECKED = "this only checks an earlier answer, which has its margin if there is one"


def public_margin(plan: Plan, aggregate: Aggregate) -> Fraction | None:
    """The margin as far as it is known without the data."""
    choice, statistic = aggregate.choice, aggregate.statistic
    size = plan.dataset.size if aggregate.whole else None
    if choice.method not in PUBLIC_NOISE or plan.checked is not None:
        return None
    if size is None and not statistic.always_global:
        return None
    moves = Moves(aggregate.neighbours, 1 if size is None else size, None if aggregate.whole else 0)
    noise = make_global_noise(choice, statistic, aggregate.grid, moves, plan.dataset.protection.fineness)
    return find_margin(plan, aggregate, Added(0, noise))


def find_margin(plan: Plan, aggregate: Aggregate, mechanism: Mechanism) -> Fraction | None:
    """The 95 % half-width of noise whose scale is public, in the column's units."""
    if aggregate.choice.method not in PUBLIC_NOISE or not isinstance(mechanism, Added):
        return None
    step = aggregate.statistic.answer_step(aggregate.grid, plan.dataset.protection.fineness)
    return find_half_width(mechanism.noise) * step


def draw_with_interval(
    choice: Choice, mechanism: Mechanism, low: int | float, high: int | float, source: Source | None
) -> tuple[int | None, Interval | None]:
    """One draw on the answer's grid, clamped to the public range low..high, with its interval where it has one.

    Clamping brings what was drawn nearer to every point of the range, the truth among them: a margin stays one.
    """
    if isinstance(mechanism, NoisyQuotient | NoisyVariance):
        drawn, found = mechanism.draw_with_interval(source)
    else:
        drawn, found = mechanism.draw(source), None
    if drawn is None:
        return None, None
    point = int(min(max(drawn, low), high))
    if isinstance(mechanism, Added) and choice.method in (*PUBLIC_NOISE, Method.CLIPPED):
        half = find_half_width(mechanism.noise)
        found = point - half, point + half
    if found is None:
        return point, None
    return point, (int(min(max(found[0], low), high)), int(min(max(found[1], low), high)))


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


def describe_risk(aggregate: Aggregate, records: int | None) -> str:
    """On how few values an answer is to be expected NULL or far off, where they may be so few; else nothing."""
    choice, whole = aggregate.choice, aggregate.whole
    if choice.method is Method.INVERSE:
        neighbours, epsilon, refusal = aggregate.neighbours, choice.epsilon, choice.refusal
        return describe_null_risk(aggregate.statistic, neighbours, records, whole, epsilon, refusal)
    if (records is None or not whole) and isinstance(choice.reading, RankPlan | ClippingPlan):
        return f"far off where fewer than about {choice.reading.least_size:,} values are selected"
    return ""

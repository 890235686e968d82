"""The chart of what was spent over time, by whom, against the budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from itertools import accumulate

from markupsafe import Markup

from idios.ledger import Spending
from idios.server.console.axes import Axis
from idios.server.console.charts import label, line, svg
from idios.server.console.wording import amount, approximate

WIDTH, HEIGHT = 400, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 34, 396, 12, 194
MOST_SERIES = 6
DAY = 86_400
CONTROLLER = "controller"


@dataclass(frozen=True)
class Share:
    """What one analyst spent of a data set's budget."""

    name: str
    style: str
    epsilon: Fraction
    charges: int


@dataclass(frozen=True)
class Timeline:
    """The drawing, and the same as a table."""

    drawing: Markup
    shares: tuple[Share, ...]


def timeline(dataset: str, spending: Spending, budget: Fraction, now: datetime) -> Timeline:
    """Stacked steps, one layer for each analyst, largest at the bottom; the budget is the top.

    The smallest are drawn as one layer, as there are only so many colours.
    """
    totals = spending.epsilon
    ranked = sorted(totals, key=lambda caller: (-totals[caller], caller or ""))
    styles = [f"series-{min(number, MOST_SERIES - 1) + 1}" for number in range(len(ranked))]
    shares = tuple(
        Share(caller or CONTROLLER, style, totals[caller], spending.charges[caller])
        for caller, style in zip(ranked, styles, strict=True)
    )
    spent = sum(totals.values(), Fraction(0))
    y = Axis(0, max(float(budget), float(spent), 1e-9), _BOTTOM, _TOP)
    times = [datetime.fromisoformat(step.time).timestamp() for step in spending.steps]
    began = now if spending.began is None else datetime.fromisoformat(spending.began)
    first = min([began.timestamp(), now.timestamp() - 1, *times])
    last = max([now.timestamp(), *times])
    x = Axis(first, last, _LEFT, _RIGHT)
    parts = [_frame(y, budget)]
    below = [0.0] * len(times)
    for style in dict.fromkeys(styles):
        callers = [caller for caller, own in zip(ranked, styles, strict=True) if own == style]
        steps = (sum(float(step.epsilon.get(caller, 0)) for caller in callers) for step in spending.steps)
        above = [level + more for level, more in zip(below, accumulate(steps), strict=True)]
        parts.append(_layer(x, y, times, below, above, style))
        below = above
    shape = "%Y-%m-%d" if last - first > 3 * DAY else "%Y-%m-%d %H:%M" if last - first > 600 else "%H:%M:%S"
    for moment, anchor in ((first, "start"), (last, "end")):
        shown = datetime.fromtimestamp(moment, now.tzinfo).strftime(shape)
        parts.append(label(x.at(moment), _BOTTOM + 15, shown, anchor, "tick"))
    charges = sum(spending.charges.values())
    described = f"{charges} charges: ε = {amount(spent)} of {amount(budget)} spent; the table has the totals."
    return Timeline(svg(f"Spending of {dataset} over time", described, HEIGHT, parts, WIDTH), shares)


def _frame(y: Axis, budget: Fraction) -> Markup:
    parts = []
    for tick in y.ticks():
        parts += [line(_LEFT, y.at(tick), _RIGHT, y.at(tick), "grid")]
        parts += [label(_LEFT - 6, y.at(tick), approximate(tick), "end", "tick")]
    parts += [line(_LEFT, y.at(float(budget)), _RIGHT, y.at(float(budget)), "limit")]
    return Markup("").join(parts)


def _layer(
    x: Axis, y: Axis, times: Sequence[float], below: Sequence[float], above: Sequence[float], style: str
) -> Markup:
    """The area between two stairs, from the first charge to now."""

    def stairs(levels: Sequence[float]) -> list[tuple[float, float]]:
        points = []
        before = 0.0
        for time, level in zip(times, levels, strict=True):
            points += [(x.at(time), y.at(before)), (x.at(time), y.at(level))]
            before = level
        return [*points, (x.at(x.high), y.at(before))]

    path = " L".join(f"{a:g} {b:g}" for a, b in [*stairs(above), *reversed(stairs(below))])
    return Markup('<path class="{}" d="M{} Z"/>').format(style, path)

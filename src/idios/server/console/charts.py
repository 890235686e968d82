"""Charts drawn on the server as SVG: presentation attributes and classes alone, with a title and a description.

Every chart stands beside a table of the same numbers, so it is one picture to a screen reader.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from itertools import accumulate, count

from markupsafe import Markup

from idios.display import format_meaning
from idios.ledger import Balance, Spending
from idios.server.console.formatting import format_amount, format_quantity, format_rough

WIDTH = 360
_ROW = 26
MOST_LABEL = 110
MOST_BARS = 40
LOG_FROM = 50
"""The ratio of the largest to the smallest value from which a scale of powers of ten is clearer."""

FARTHEST_DRAWN = 1e300
"""Nothing beyond it is drawn: sums and differences of such numbers are floats."""

TIMELINE_WIDTH, TIMELINE_HEIGHT = 400, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 34, 396, 12, 194
MOST_SERIES = 6
DAY = 86_400
CONTROLLER = "controller"

_ids = count(1)


@dataclass(frozen=True)
class Bar:
    """One value with the ends of its 95 % interval, if it has one."""

    label: str
    value: float | None
    shown: str
    interval: tuple[float, float] | None = None


@dataclass(frozen=True)
class LevelErrors:
    """The expected errors at one level of protection, each with its group; none where it cannot be answered."""

    label: str
    errors: tuple[tuple[str, float], ...]


def draw_bars(title: str, rows: Sequence[Bar]) -> Markup:
    """Horizontal bars from 0, one for each group, with the interval as a whisker."""
    drawn = rows[:MOST_BARS]
    reach = [end for bar in drawn if bar.value is not None for end in (bar.value, *(bar.interval or ()))]
    labels = min(MOST_LABEL, 12 + 7.5 * max(len(bar.label) for bar in drawn))
    values = 10 + 8.5 * max(len(bar.shown) for bar in drawn)
    axis = linear_axis(reach, labels + 8, WIDTH - values)
    zero = axis.at(0)
    height = _ROW * len(drawn) + 12
    parts = [_line(zero, 4, zero, height - 4, "axis")]
    for number, bar in enumerate(drawn):
        top = 6 + number * _ROW
        middle = top + _ROW / 2
        parts.append(_label(labels, middle, bar.label, "end"))
        parts.append(_label(WIDTH - 2, middle, bar.shown, "end", "value"))
        if bar.value is None:
            continue
        end = axis.at(bar.value)
        left, wide = min(zero, end), max(abs(end - zero), 0.5)
        parts.append(_rectangle(left, top + 5, wide, _ROW - 10, "series-1"))
        if bar.interval and bar.interval[0] < bar.interval[1]:
            low, high = map(axis.at, bar.interval)
            parts += [_line(low, middle, high, middle, "whisker")]
            parts += [_line(x, middle - 4, x, middle + 4, "whisker") for x in (low, high)]
    more = f" The first {MOST_BARS} of {len(rows)}." if len(rows) > MOST_BARS else ""
    description = f"{len(drawn)} bars, one for each group; the table has the same numbers.{more}"
    return _svg(title, description, height, parts)


def draw_levels(title: str, rows: Sequence[LevelErrors]) -> Markup:
    """One line for each level, a dot for each expected error; powers of ten where they differ much."""
    labels = 6 + 6.4 * max(len(row.label) for row in rows)
    axis = error_axis([error for row in rows for _, error in row.errors] or [1.0], labels + 14, WIDTH - 18)
    row = 34
    height = row * len(rows) + 34
    bottom = height - 26
    parts = []
    for tick in axis.ticks():
        x = axis.at(tick)
        parts += [_line(x, 6, x, bottom, "grid"), _label(x, bottom + 14, format_rough(tick), "middle", "tick")]
    for number, level in enumerate(rows):
        middle = 6 + number * row + row / 2
        parts.append(_label(labels, middle, level.label, "end", most=40))
        if not level.errors:
            parts.append(_label(labels + 16, middle, "not answered", "start", "absent"))
            continue
        parts.append(_line(axis.start, middle, axis.at(max(error for _, error in level.errors)), middle, "stem"))
        style = f"series-{number % 6 + 1}"
        parts += [
            _circle(axis.at(error), middle, 5, style, f"{group} {format_rough(error)}") for group, error in level.errors
        ]
    scale = "powers of ten" if axis.logarithmic else "a linear scale from 0"
    return _svg(title, f"Expected error at {len(rows)} levels of protection, on {scale}.", height, parts)


def draw_meter(title: str, share: float) -> Markup:
    """How much of a budget is left."""
    wide = round(100 * min(max(share, 0.0), 1.0), 2)
    state = "low" if share < 0.1 else "fair" if share < 0.3 else "good"
    return Markup(
        '<svg class="meter" viewBox="0 0 100 6" preserveAspectRatio="none" role="img" aria-label="{}">'
        '<rect class="track" width="100" height="6"/><rect class="{}" width="{}" height="6"/></svg>'
    ).format(title, state, wide)


@dataclass(frozen=True)
class BudgetMeter:
    """What is left of one budget, drawn and in words."""

    dataset: str
    left: str
    whole: str
    drawing: Markup
    meaning: str = ""
    """What ρ stands for, with concentrated accounting."""
    promise: str = ""


def draw_budgets(balances: Iterable[Balance]) -> list[BudgetMeter]:
    """Draw a meter for each balance."""
    return [draw_budget(balance) for balance in balances]


def draw_budget(balance: Balance) -> BudgetMeter:
    """Draw what is left of one balance as a meter."""
    account, letter, meaning, promise = balance.epsilon, "ε", "", balance.promise
    if balance.rho is not None:
        account, letter = balance.rho, "ρ"
        delta = format_quantity(balance.delta.remaining, "δ")
        meaning = f"{format_meaning(balance.left or Fraction(0), account.remaining or Fraction(0))}, {delta}"
    left, whole = account.remaining, account.budget
    remaining = format_quantity(left, letter)
    if left is None or whole is None:
        # The analyst is limited by the data set's budget, which is shared: there is no total of their own to draw.
        return BudgetMeter(
            balance.dataset, f"{remaining} left of the data set's budget", "", Markup(""), meaning, promise
        )
    total = format_amount(whole)
    share = float(left / whole) if whole else 0.0
    drawing = draw_meter(f"{balance.dataset}: {remaining} left of {total}", share)
    return BudgetMeter(balance.dataset, remaining, total, drawing, meaning, promise)


@dataclass(frozen=True)
class Spender:
    """What one analyst spent of a data set's budget."""

    name: str
    style: str
    amount: Fraction
    charges: int


@dataclass(frozen=True)
class Timeline:
    """The drawing, and the same as a table."""

    drawing: Markup
    spenders: tuple[Spender, ...]
    letter: str


def draw_timeline(balance: Balance, spending: Spending, now: datetime) -> Timeline:
    """Stacked steps of ε, or of ρ where that adds up: one layer for each analyst, largest at the bottom, then the rest.

    The budget is the top. The smallest are drawn as one layer, as there are only so many colours.
    """
    account, quantity, letter = (balance.rho, "rho", "ρ") if balance.rho else (balance.epsilon, "epsilon", "ε")
    budget = account.budget or Fraction(0)
    totals: Mapping[str | None, Fraction] = getattr(spending, quantity)
    ranked = sorted(totals, key=lambda caller: (-totals[caller], caller or ""))
    styles = [f"series-{min(number, MOST_SERIES - 1) + 1}" for number in range(len(ranked))]
    spenders = tuple(
        Spender(caller or CONTROLLER, style, totals[caller], spending.charges[caller])
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
        steps = (sum(float(getattr(step, quantity).get(caller, 0)) for caller in callers) for step in spending.steps)
        above = [level + more for level, more in zip(below, accumulate(steps), strict=True)]
        parts.append(_layer(x, y, times, below, above, style))
        below = above
    shape = "%Y-%m-%d" if last - first > 3 * DAY else "%Y-%m-%d %H:%M" if last - first > 600 else "%H:%M:%S"
    for end, anchor in ((first, "start"), (last, "end")):
        text = datetime.fromtimestamp(end, now.tzinfo).strftime(shape)
        parts.append(_label(x.at(end), _BOTTOM + 15, text, anchor, "tick"))
    charges = sum(spending.charges.values())
    description = (
        f"{charges} charges: {format_quantity(spent, letter)} of {format_amount(budget)} spent; the table has the "
        "totals."
    )
    title = f"Spending of {balance.dataset} over time"
    return Timeline(_svg(title, description, TIMELINE_HEIGHT, parts, TIMELINE_WIDTH), spenders, letter)


def _frame(y: Axis, budget: Fraction) -> Markup:
    parts = []
    for tick in y.ticks():
        parts += [_line(_LEFT, y.at(tick), _RIGHT, y.at(tick), "grid")]
        parts += [_label(_LEFT - 6, y.at(tick), format_rough(tick), "end", "tick")]
    parts += [_line(_LEFT, y.at(float(budget)), _RIGHT, y.at(float(budget)), "limit")]
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


@dataclass(frozen=True)
class Axis:
    """Places values between two ends of a drawing."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    def at(self, value: float) -> float:
        """Where a value is drawn, in the drawing's units, to a hundredth.

        >>> Axis(0, 10, 100, 300).at(5), Axis(1, 100, 0, 200, logarithmic=True).at(10)
        (200.0, 100.0)
        """
        low, high, value = self.low, self.high, min(max(value, self.low), self.high)
        if self.logarithmic:
            low, high, value = math.log10(low), math.log10(high), math.log10(value)
        share = (value - low) / (high - low)
        return round(self.start + share * (self.end - self.start), 2)

    def ticks(self, about: int = 4) -> list[float]:
        """Round values along the axis.

        >>> Axis(0, 10, 0, 1).ticks(), Axis(1, 1000, 0, 1, logarithmic=True).ticks()
        ([0.0, 5.0, 10.0], [1.0, 10.0, 100.0, 1000.0])
        """
        if self.logarithmic:
            first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
            every = max(1, math.ceil((last - first) / about))
            return [10.0**power for power in range(first, last + 1, every)]
        step = _step((self.high - self.low) / about)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [round(number * step, 12) + 0.0 for number in range(first, last + 1)]


def linear_axis(values: list[float], start: float, end: float) -> Axis:
    """Make an axis from 0, or from below it, that holds all values."""
    low, high = max(min(0.0, *values, 0.0), -FARTHEST_DRAWN), min(max(0.0, *values, 0.0), FARTHEST_DRAWN)
    return Axis(low, high if high - low > 1 / FARTHEST_DRAWN else low + 1, start, end)


def error_axis(values: list[float], start: float, end: float) -> Axis:
    """Make an axis for errors, which are above 0: of powers of ten where they differ much."""
    above = [min(max(value, 1 / FARTHEST_DRAWN), FARTHEST_DRAWN) for value in values if value > 0]
    if len(above) < len(values) or not above or max(above) / min(above) < LOG_FROM:
        return linear_axis(values, start, end)
    return Axis(10.0 ** math.floor(math.log10(min(above))), 10.0 ** math.ceil(math.log10(max(above))), start, end, True)


def _step(wanted: float) -> float:
    power: float = 10.0 ** math.floor(math.log10(wanted))
    return next((factor * power for factor in (1, 2, 5) if factor * power >= wanted * 0.999), 10 * power)


def _svg(title: str, description: str, height: float, parts: Iterable[Markup], width: float = WIDTH) -> Markup:
    """A whole chart."""
    number = next(_ids)
    return Markup(
        '<svg class="chart" viewBox="0 0 {} {}" width="{}" height="{}" role="img" aria-labelledby="t{} d{}">'
        '<title id="t{}">{}</title><desc id="d{}">{}</desc>{}</svg>'
    ).format(width, height, width, height, number, number, number, title, number, description, Markup("").join(parts))


def _line(x1: float, y1: float, x2: float, y2: float, style: str) -> Markup:
    """A straight line."""
    return Markup('<line class="{}" x1="{}" y1="{}" x2="{}" y2="{}"/>').format(style, x1, y1, x2, y2)


def _rectangle(x: float, y: float, width: float, height: float, style: str) -> Markup:
    """A bar."""
    return Markup('<rect class="{}" x="{}" y="{}" width="{}" height="{}" rx="2"/>').format(
        style, x, y, round(width, 2), height
    )


def _circle(x: float, y: float, radius: float, style: str, tooltip: str) -> Markup:
    """A dot with a tooltip."""
    return Markup('<circle class="{}" cx="{}" cy="{}" r="{}"><title>{}</title></circle>').format(
        style, x, y, radius, tooltip.strip()
    )


def _label(x: float, y: float, text: str, anchor: str, style: str = "label", most: int = 18) -> Markup:
    """A short text; a tooltip has all of one that does not fit."""
    short = text if len(text) <= most else text[: most - 1] + "…"
    whole = Markup("<title>{}</title>").format(text) if short != text else ""
    return Markup('<text class="{}" x="{}" y="{}" text-anchor="{}" dy="0.35em">{}{}</text>').format(
        style, x, y, anchor, short, whole
    )

"""Charts drawn on the server as SVG: presentation attributes and classes alone, with a title and a description.

Every chart stands beside a table of the same numbers, so it is one picture to a screen reader.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count

from markupsafe import Markup

from idios.server.console.axes import fitted, linear
from idios.server.console.wording import approximate

WIDTH = 360
_ROW = 26
_LABELS = 110
MOST_BARS = 40

_ids = count(1)


@dataclass(frozen=True)
class Bar:
    """One value with the half-width of its noise, if that is public."""

    label: str
    value: float | None
    shown: str
    margin: float | None = None


@dataclass(frozen=True)
class Level:
    """The expected errors at one level of protection, each with its group; none where it cannot be answered."""

    label: str
    errors: tuple[tuple[str, float], ...]


def bars(title: str, rows: Sequence[Bar]) -> Markup:
    """Horizontal bars from 0, one for each group, with the margin as a whisker."""
    drawn = rows[:MOST_BARS]
    reach = [bar.value + side * (bar.margin or 0) for bar in drawn if bar.value is not None for side in (-1, 0, 1)]
    labels = min(_LABELS, 12 + 7.5 * max(len(bar.label) for bar in drawn))
    values = 10 + 8.5 * max(len(bar.shown) for bar in drawn)
    axis = linear(reach, labels + 8, WIDTH - values)
    zero = axis.at(0)
    height = _ROW * len(drawn) + 12
    parts = [line(zero, 4, zero, height - 4, "axis")]
    for number, bar in enumerate(drawn):
        top = 6 + number * _ROW
        middle = top + _ROW / 2
        parts.append(label(labels, middle, bar.label, "end"))
        parts.append(label(WIDTH - 2, middle, bar.shown, "end", "value"))
        if bar.value is None:
            continue
        end = axis.at(bar.value)
        left, wide = min(zero, end), max(abs(end - zero), 0.5)
        parts.append(rectangle(left, top + 5, wide, _ROW - 10, "series-1"))
        if bar.margin:
            low, high = axis.at(bar.value - bar.margin), axis.at(bar.value + bar.margin)
            parts += [line(low, middle, high, middle, "whisker")]
            parts += [line(x, middle - 4, x, middle + 4, "whisker") for x in (low, high)]
    more = f" The first {MOST_BARS} of {len(rows)}." if len(rows) > MOST_BARS else ""
    described = f"{len(drawn)} bars, one for each group; the table has the same numbers.{more}"
    return svg(title, described, height, parts)


def levels(title: str, rows: Sequence[Level]) -> Markup:
    """One line for each level, a dot for each expected error; powers of ten where they differ much."""
    labels = 6 + 6.4 * max(len(row.label) for row in rows)
    axis = fitted([error for row in rows for _, error in row.errors] or [1.0], labels + 14, WIDTH - 18)
    row = 34
    height = row * len(rows) + 34
    bottom = height - 26
    parts = []
    for tick in axis.ticks():
        x = axis.at(tick)
        parts += [line(x, 6, x, bottom, "grid"), label(x, bottom + 14, approximate(tick), "middle", "tick")]
    for number, one in enumerate(rows):
        middle = 6 + number * row + row / 2
        parts.append(label(labels, middle, one.label, "end", most=40))
        if not one.errors:
            parts.append(label(labels + 16, middle, "not answered", "start", "absent"))
            continue
        parts.append(line(axis.start, middle, axis.at(max(error for _, error in one.errors)), middle, "stem"))
        style = f"series-{number % 6 + 1}"
        parts += [
            circle(axis.at(error), middle, 5, style, f"{group} {approximate(error)}") for group, error in one.errors
        ]
    scale = "powers of ten" if axis.logarithmic else "a linear scale from 0"
    return svg(title, f"Expected error at {len(rows)} levels of protection, on {scale}.", height, parts)


def meter(title: str, share: float) -> Markup:
    """How much of a budget is left."""
    wide = round(100 * min(max(share, 0.0), 1.0), 2)
    state = "low" if share < 0.1 else "fair" if share < 0.3 else "good"
    return Markup(
        '<svg class="meter" viewBox="0 0 100 6" preserveAspectRatio="none" role="img" aria-label="{}">'
        '<rect class="track" width="100" height="6"/><rect class="{}" width="{}" height="6"/></svg>'
    ).format(title, state, wide)


def svg(title: str, described: str, height: float, parts: Iterable[Markup], width: float = WIDTH) -> Markup:
    """A whole chart."""
    number = next(_ids)
    return Markup(
        '<svg class="chart" viewBox="0 0 {} {}" width="{}" height="{}" role="img" aria-labelledby="t{} d{}">'
        '<title id="t{}">{}</title><desc id="d{}">{}</desc>{}</svg>'
    ).format(width, height, width, height, number, number, number, title, number, described, Markup("").join(parts))


def line(x1: float, y1: float, x2: float, y2: float, style: str) -> Markup:
    """A straight line."""
    return Markup('<line class="{}" x1="{}" y1="{}" x2="{}" y2="{}"/>').format(style, x1, y1, x2, y2)


def rectangle(x: float, y: float, width: float, height: float, style: str) -> Markup:
    """A bar."""
    return Markup('<rect class="{}" x="{}" y="{}" width="{}" height="{}" rx="2"/>').format(
        style, x, y, round(width, 2), height
    )


def circle(x: float, y: float, radius: float, style: str, told: str) -> Markup:
    """A dot with a tooltip that says what it is."""
    return Markup('<circle class="{}" cx="{}" cy="{}" r="{}"><title>{}</title></circle>').format(
        style, x, y, radius, told.strip()
    )


def label(x: float, y: float, text: str, anchor: str, style: str = "label", most: int = 18) -> Markup:
    """A short text; a tooltip has all of one that does not fit."""
    short = text if len(text) <= most else text[: most - 1] + "…"
    whole = Markup("<title>{}</title>").format(text) if short != text else ""
    return Markup('<text class="{}" x="{}" y="{}" text-anchor="{}" dy="0.35em">{}{}</text>').format(
        style, x, y, anchor, short, whole
    )

"""What a report consists of: sections of figures, tables and numbers. ``rendering`` draws them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Series:
    """One curve or one set of dots; ``style`` names its colour, dash and marker, the same in every figure.

    A y that is None or infinite leaves a gap.
    """

    name: str
    style: str
    x: tuple[float, ...]
    y: tuple[float | str | None, ...]
    dots: bool = False
    """Whether only markers are drawn, as for a check by simulation."""


@dataclass(frozen=True)
class Panel:
    """One pair of axes."""

    series: tuple[Series, ...]
    x_label: str
    y_label: str
    title: str = ""
    log_x: bool = False
    log_y: bool = False
    y_range: tuple[float, float] | None = None
    categories: tuple[str, ...] = ()
    """What the y axis lists from top to bottom, where it is no number."""


@dataclass(frozen=True)
class Figure:
    """Panels side by side, ``columns`` in a row."""

    name: str
    title: str
    panels: tuple[Panel, ...]
    caption: str
    columns: int = 1


@dataclass(frozen=True)
class Table:
    """Rows of text and numbers under a head."""

    name: str
    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    caption: str = ""


@dataclass(frozen=True)
class Section:
    """One part of a report; ``numbers`` is what it says in JSON."""

    name: str
    title: str
    text: str
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()
    numbers: Any = field(default_factory=dict)


def make_jsonable(value: Any) -> Any:
    """Make numbers fit for JSON, which has no infinity: it is written as the text "inf".

    >>> make_jsonable({"error": float("inf"), "n": (10, 1.5)})
    {'error': 'inf', 'n': [10, 1.5]}
    """
    if isinstance(value, dict):
        return {str(key): make_jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [make_jsonable(item) for item in value]
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return value


def format_cell(value: object) -> str:
    """Format one cell of a table for people: three significant digits, infinity in words.

    >>> [format_cell(value) for value in (0.01262, 1234567.8, float("inf"), None, "as it is")]
    ['0.0126', '1,234,568', 'infinite', '–', 'as it is']
    """
    if value is None:
        return "–"
    if isinstance(value, float):
        if math.isinf(value):
            return "infinite"
        if abs(value) >= 1000:
            return f"{value:,.0f}"
        return f"{value:.3g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return str(value)

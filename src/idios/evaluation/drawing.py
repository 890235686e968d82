"""Figures for plotly: labelled axes, and styles that can be told apart without colour.

The colours are those of Okabe and Ito, which colour-blind people can tell apart; each mechanism has its own dash and
marker besides, so that a figure survives greyscale. On a dark background some colours are lighter; both are sent
along, and the page picks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from idios.evaluation.content import Figure, Panel, Series

WIDTH = 1180
_ROW = 290
_ALONE = 430


class Style(NamedTuple):
    """How one mechanism looks wherever it appears."""

    light: str
    dark: str
    dash: str
    marker: str


STYLES = {
    "local": Style("#0072B2", "#56B4E9", "solid", "circle"),
    "second": Style("#0072B2", "#56B4E9", "solid", "circle"),
    "staircase": Style("#56B4E9", "#9AD4F5", "dot", "circle-open"),
    "third": Style("#56B4E9", "#9AD4F5", "dot", "circle-open"),
    "group2": Style("#009E73", "#2FD6A3", "dash", "triangle-up"),
    "group5": Style("#009E73", "#2FD6A3", "dot", "triangle-up-open"),
    "group10": Style("#009E73", "#2FD6A3", "dashdot", "triangle-down"),
    "group": Style("#009E73", "#2FD6A3", "dash", "triangle-up"),
    "inverse": Style("#CC79A7", "#E79BC5", "dash", "square"),
    "bounds_free": Style("#CC79A7", "#E79BC5", "dot", "square-open"),
    "exponential": Style("#B8860B", "#E69F00", "dashdot", "diamond"),
    "smooth": Style("#D55E00", "#FF8A3D", "longdash", "x"),
    "smooth2": Style("#B8860B", "#E69F00", "dashdot", "diamond"),
    "tight": Style("#D55E00", "#FF8A3D", "dot", "x-open"),
    "tight2": Style("#D55E00", "#FF8A3D", "dashdot", "x-open"),
    "global": Style("#333333", "#DDDDDD", "longdashdot", "cross"),
    "maximum": Style("#009E73", "#2FD6A3", "dash", "triangle-up"),
    "gap": Style("#777777", "#AAAAAA", "dot", "line-ew-open"),
}


def draw(figure: Figure) -> dict[str, Any]:
    """One figure as plotly's data and layout, validated by plotly itself."""
    rows = math.ceil(len(figure.panels) / figure.columns)
    drawn = make_subplots(
        rows=rows,
        cols=figure.columns,
        subplot_titles=[panel.title for panel in figure.panels],
        horizontal_spacing=0.08 if figure.columns < 3 else 0.075,
        vertical_spacing=0.30 / rows if rows > 1 else 0,
        row_heights=[len(panel.categories) + 1 for panel in figure.panels] if figure.panels[0].categories else None,
    )
    named: set[str] = set()
    for i, panel in enumerate(figure.panels):
        row, column = i // figure.columns + 1, i % figure.columns + 1
        for series in panel.series:
            drawn.add_trace(
                _trace(series, show=series.name not in named, many=len(panel.series[0].x) > 50), row, column
            )
            named.add(series.name)
        _axes(drawn, panel, row, column)
    listed = max(len(panel.categories) for panel in figure.panels)
    legend_rows = 0 if listed else math.ceil(len(named) / 3)
    inner = _ALONE - 80 if rows == 1 else _ROW * rows
    inner = max(inner, sum(28 * len(panel.categories) + 90 for panel in figure.panels)) if listed else inner
    height = inner + 110 + 24 * legend_rows
    drawn.update_layout(
        template="none",
        title={"text": figure.title, "x": 0.01, "xanchor": "left", "y": 1 - 18 / height, "font": {"size": 18}},
        font={"family": "Helvetica, Arial, sans-serif", "size": 13},
        margin={"l": 70, "r": 20, "t": 70, "b": 70 + 24 * legend_rows},
        height=height,
        legend={"orientation": "h", "x": 0, "y": -60 / inner, "yanchor": "top", "font": {"size": 12}},
        hovermode="closest",
        showlegend=not listed,
    )
    found: dict[str, Any] = drawn.to_plotly_json()
    return found


def _trace(series: Series, *, show: bool, many: bool) -> go.Scatter:
    style = STYLES[series.style]
    y = [None if isinstance(v, float) and not math.isfinite(v) else v for v in series.y]
    marker = {"symbol": style.marker, "size": 8, "color": style.light}
    return go.Scatter(
        x=list(series.x),
        y=y,
        name=series.name,
        mode="markers" if series.dots else "lines" if many else "lines+markers",
        line={"color": style.light, "dash": style.dash, "width": 2},
        marker=marker
        | (
            {"symbol": "circle-open", "size": 10, "line": {"width": 1.5}}
            if series.dots
            else {"size": 6 if len(series.x) > 1 else 11}
        ),
        legendgroup=series.name,
        showlegend=show,
        meta={"light": style.light, "dark": style.dark},
    )


def _axes(drawn: go.Figure, panel: Panel, row: int, column: int) -> None:
    line = {
        "showline": True,
        "ticks": "outside",
        "zeroline": False,
        "exponentformat": "power",
        "tickfont": {"size": 12},
    }
    drawn.update_xaxes(title_text=panel.x_label, title_standoff=6, title_font_size=13, row=row, col=column, **line)
    drawn.update_yaxes(
        title_text=panel.y_label, title_standoff=6, title_font_size=13, row=row, col=column, automargin=True, **line
    )
    if panel.log_x:
        drawn.update_xaxes(type="log", row=row, col=column, **_ticks([x for one in panel.series for x in one.x]))
    if panel.log_y:
        shown = [*(panel.y_range or ()), *([] if panel.y_range else [y for one in panel.series for y in one.y])]
        drawn.update_yaxes(type="log", row=row, col=column, **_ticks(shown))
    if panel.y_range is not None:
        drawn.update_yaxes(
            range=[math.log10(end) if panel.log_y else end for end in panel.y_range], row=row, col=column
        )
    if panel.categories:
        listed = list(panel.categories)
        drawn.update_yaxes(type="category", categoryarray=listed, range=[len(listed) - 0.5, -0.5], row=row, col=column)


def _ticks(values: Sequence[float | str | None]) -> dict[str, Any]:
    """Ticks of a log axis that are never fewer than two: powers of ten, or 1, 2, 5 where it spans little."""
    logs = [math.log10(v) for v in values if isinstance(v, int | float) and 0 < v < math.inf]
    if not logs:
        return {}
    low, high = min(logs), max(logs)
    if high - low < 0.7:  # so that single values, and nearly equal ones, do not fill the axis
        low, high = (low + high) / 2 - 0.5, (low + high) / 2 + 0.5
    low, high = low - 0.05 * (high - low), high + 0.05 * (high - low)
    steps = (1, 2, 5) if high - low < 2.5 else (1,)
    every = 1 if high - low < 8 else 2
    powers = range(math.floor(low), math.ceil(high) + 1)
    ticks = [step * 10.0**power for power in powers if power % every == 0 for step in steps]
    ticks = [tick for tick in ticks if low <= math.log10(tick) <= high]
    texts = [f"{tick:g}" if 1e-3 <= tick < 1e4 else _power(tick) for tick in ticks]
    return {"tickvals": ticks, "ticktext": texts, "range": [low, high]}


def _power(tick: float) -> str:
    power = math.floor(math.log10(tick) + 1e-9)
    factor = round(tick / 10.0**power)
    return f"{'' if factor == 1 else f'{factor}·'}10<sup>{'−' if power < 0 else ''}{abs(power)}</sup>"

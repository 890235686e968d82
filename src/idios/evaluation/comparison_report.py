"""A comparison as a section of a report: one table, and one panel for every statistic."""

from __future__ import annotations

import math

from idios.evaluation.comparison import EYES, Comparison, Row
from idios.evaluation.document import Figure, Panel, Section, Series, Table, format_cell


def section(found: Comparison, column: str) -> Section:
    """The rows, drawn and listed."""
    names = list(dict.fromkeys(row.statistic for row in found))
    panels = tuple(_panel(name, [row for row in found if row.statistic == name], column) for name in names)
    known = f"bounds {found.bounds[0]} to {found.bounds[1]}" if found.bounds else "no bounds"
    figure = Figure(
        "comparison",
        f"What each level costs on {column} (ε = {found.epsilon})",
        panels,
        "Expected distance between the answer and the true value. What has no answer, or an infinite error, is listed "
        "without a mark.",
    )
    rows = tuple(
        (row.statistic, row.value, row.mechanism, row.promise, row.error, percentage(row), row.note) for row in found
    )
    table = Table(
        "compared",
        "Expected errors",
        ("statistic", "true value", "mechanism", "promise", "expected error", "of the value", "note"),
        rows,
        "Under replace. The DP baselines take the number of values for public, and no answer is clamped to its bounds.",
    )
    missing = f", {found.missing:,} missing" if found.missing else ""
    text = f"{EYES} {found.size:,} values of {column}{missing}; ε = {found.epsilon}, {known}."
    return Section("comparison", "Levels and baselines", text, (figure,), (table,), found.to_dict())


def percentage(row: Row) -> str:
    """The error as a share of the value."""
    relative = row.relative
    return "" if relative is None or math.isinf(relative) else f"{format_cell(100 * relative)} %"


def _panel(name: str, rows: list[Row], column: str) -> Panel:
    listed = {row.mechanism: _listed(row) for row in rows}
    series = tuple(
        Series(row.mechanism, row.style, (row.error,), (listed[row.mechanism],))
        for row in rows
        if row.error is not None and math.isfinite(row.error)
    )
    value = rows[0].value
    return Panel(
        series,
        f"expected absolute error ({column}, log scale)",
        "",
        f"{name} (true value {format_cell(value)})",
        log_x=True,
        categories=tuple(listed.values()),
    )


def _listed(row: Row) -> str:
    if row.error is None:
        words = "refuses" if row.refusal else row.note
        return f"{row.mechanism}: {words}"
    return row.mechanism if math.isfinite(row.error) else f"{row.mechanism}: infinite"

"""How results look on a terminal."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from threading import Timer
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from idios.core.exact import Extended, text
from idios.inspecting import Inspection
from idios.model import Answer, Quote

out = Console()
errors = Console(stderr=True)

PATIENCE = 2.0
"""Seconds after which a running question shows that it is running."""


def as_json(content: Any) -> None:
    """Print exact JSON, nothing else."""
    out.out(json.dumps(content, ensure_ascii=False, indent=2), highlight=False)


@contextmanager
def patience() -> Iterator[Callable[[str, float], None]]:
    """Show a progress bar on the error stream once something takes longer than two seconds.

    It yields a callback that takes the name of each step and the share of the work that is done.
    """
    progress = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        console=errors,
        transient=True,
    )
    task = progress.add_task("reading the data", total=1.0)
    timer = Timer(PATIENCE, progress.start)
    timer.daemon = True
    timer.start()
    try:
        yield lambda step, share: progress.update(task, description=step, completed=share)
    finally:
        timer.cancel()
        if progress.live.is_started:
            progress.stop()


def number(value: Extended | None) -> str:
    """A number for people: exact where it ends soon, else six digits."""
    if value is None:
        return "no limit"
    written = str(text(value))
    if len(written) <= 12:
        return written
    return f"{float(value):.6g}"


def cell(value: Any) -> str:
    """One released value."""
    if value is None:
        return "NULL"
    if isinstance(value, float):
        return f"{value:,.2f}" if abs(value) >= 1000 else f"{value:,.6g}"
    if isinstance(value, int):
        return f"{value:,}"
    return str(value)


def answer(result: Answer) -> None:
    """The released table, what it cost and what it promises."""
    table = Table()
    for column in result.columns:
        table.add_column(column, justify="left" if column not in result.margins else "right")
    for row in result.rows:
        table.add_row(*(cell(row[column]) for column in result.columns))
    out.print(table)
    margins = [f"{c} ± {number(m)}" for c, m in result.margins.items() if m is not None]
    if margins:
        out.print(f"95 % of the noise lies within: {', '.join(margins)}", highlight=False)
    elif result.margin_reason:
        out.print(f"No margin is shown: {result.margin_reason}.", highlight=False)
    spent = "a stored answer, nothing was charged" if result.stored else f"ε = {number(result.epsilon)}"
    if result.delta and not result.stored:
        spent += f", δ = {number(result.delta)}"
    out.print(f"Cost: {spent}. Remaining: ε = {number(result.remaining)}.", highlight=False)
    out.print(f"Promise: {result.guarantee}", highlight=False)


def quote(result: Quote) -> None:
    """What a question would cost."""
    table = Table(show_header=False)
    rows = [
        ("cost", f"ε = {number(result.cost)}" + (f", δ = {number(result.delta)}" if result.delta else "")),
        ("each released cell", ", ".join(f"{c}: ε = {number(e)}" for c, e in result.split.items())),
        ("released cells", str(result.cells)),
        ("least ε", result.least),
        ("remaining before", f"ε = {number(result.remaining_before)}"),
        (
            "remaining after",
            f"ε = {number(result.remaining_after)}" if result.affordable else f"not affordable: {result.shortage}",
        ),
        ("stored answer", "yes, it would be returned" if result.stored else "no"),
    ]
    for column in result.split:
        margin = result.margins[column]
        said = f"± {number(margin)}" if margin is not None else f"not public: {result.margin_reasons[column]}"
        rows.append((f"95 % margin of {column}", said))
    rows.append(("promise", str(result.guarantee)))
    for name, value in rows:
        table.add_row(name, value)
    out.print(table)


def inspection(result: Inspection) -> None:
    """The truth, for the controller."""
    out.print("For the controller's eyes: true values and noise.", style="bold")
    for one in result.cells:
        table = Table(show_header=False)
        if one.group:
            table.add_row("group", ", ".join(f"{key} = {value}" for key, value in one.group.items()))
        table.add_row("statistic", one.statistic)
        true = one.value if isinstance(one.value, str) else "NULL" if one.value is None else number(one.value)
        table.add_row("true value", true)
        for i, (low, high) in enumerate(zip(one.lows, one.highs, strict=True)):
            if i:
                table.add_row(f"within {i} change{'s' if i > 1 else ''}", f"{number(low)} … {number(high)}")
        if one.local_sensitivity is not None:
            table.add_row("local sensitivity", number(one.local_sensitivity))
        scale = one.noise["scale"]
        shown = f", scale {number(scale)}" if isinstance(scale, Fraction) else ""
        table.add_row("noise", f"{one.noise['distribution']}{shown}, ε = {number(one.noise['epsilon'])}")
        if one.expected_error is not None:
            table.add_row("expected error", f"{one.expected_error:.6g}")
        out.print(table)

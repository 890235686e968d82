"""How results look on a terminal."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Timer
from typing import Any

import typer
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.segment import Segment
from rich.table import Table

from idios.display import (
    NO_ROWS,
    RHO_MEANING,
    escape_controls,
    escape_json,
    format_number,
    format_short,
    format_value,
)
from idios.errors import InvalidInput
from idios.model import Answer, BalanceList, Quote
from idios.model.inspection import COMPUTED, EYES, Inspection, format_exact
from idios.model.released import format_cell_limits, format_interval


class PlainConsole(Console):
    """Prints text that may come from strangers' files: none of it is markup, and a terminal obeys none of it."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, markup=False, emoji=False)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """Render; what is no instruction of rich's own has no control character."""
        for segment in super().render(renderable, options):
            plain = segment.control or segment.text.isprintable()
            yield segment if plain else segment._replace(text=escape_controls(segment.text))


console, stderr = PlainConsole(), PlainConsole(stderr=True)

PROGRESS_DELAY = 2.0
"""Seconds after which a running question shows that it is running."""


def confirm(question: str) -> bool:
    """Ask for yes or no on the error stream."""
    return bool(_read(lambda: typer.confirm(question, err=True)))


def ask(question: str) -> str:
    """Ask for a text; nothing is one too."""
    return str(_read(lambda: typer.prompt(question, default="", show_default=False)))


def _read(read: Callable[[], Any]) -> Any:
    try:
        return read()
    except typer.Abort:
        raise InvalidInput("nothing was done: nobody answered the question. Without a terminal, add --yes") from None


def print_json(content: Any) -> None:
    """Print exact JSON, nothing else."""
    console.out(escape_json(json.dumps(content, ensure_ascii=False, indent=2)), highlight=False)


@contextmanager
def show_progress() -> Iterator[Callable[[str, float], None]]:
    """Show a progress bar on the error stream once something takes longer than two seconds.

    It yields a callback that takes the name of each step and the share of the work that is done.
    """
    progress = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        console=stderr,
        transient=True,
    )
    task = progress.add_task("reading the data", total=1.0)
    timer = Timer(PROGRESS_DELAY, progress.start)
    timer.daemon = True
    timer.start()
    try:
        yield lambda step, share: progress.update(task, description=step, completed=share)
    finally:
        timer.cancel()
        if progress.live.is_started:
            progress.stop()


def print_table(table: Table, to: Console | None = None) -> None:
    """Print a table of which no word and no number is cut.

    Where it is too wide for the terminal its lines wrap between words, and where they are too wide by word, each row is
    a list of names and values. What is no terminal has no width, but for lists with sentences in them.
    """
    to = console if to is None else to
    columns = table.columns
    texts = [[str(cell) for cell in (column.header, *column.cells)] for column in columns]
    widths = [max(cell_len(line) for cell in cells for line in cell.split("\n")) for cells in texts]
    least = [max(cell_len(word) for cell in cells for word in cell.split() or [""]) for cells in texts]
    borders = 3 * len(columns) + 1
    room = to.width - borders
    if sum(widths) > room and (to.is_terminal or not table.show_header):
        if sum(least) > room and table.show_header and table.row_count:
            print_table(_list_rows(table), to)
            return
        widths = _share_room(widths, least, room)
    for column, width in zip(columns, widths, strict=True):
        column.width, column.overflow = width, "fold"
    table.width = sum(widths) + borders
    to.print(table, crop=False)


def _share_room(widths: list[int], least: list[int], room: int) -> list[int]:
    """The widths of columns that wrap, alike as far as they need it; where their words do not fit, the longest fold."""
    shared = [*least]
    while sum(shared) > max(room, len(shared)):
        shared[shared.index(max(shared))] -= 1
    for _ in range(room - sum(shared)):
        lacking = [i for i, width in enumerate(widths) if shared[i] < width]
        shared[min(lacking, key=shared.__getitem__)] += 1
    return shared


def _list_rows(table: Table) -> Table:
    """A table as one list of names and values for each row."""
    rows = Table(title=table.title, title_justify=table.title_justify, show_header=False)
    for cells in zip(*(column.cells for column in table.columns), strict=True):
        for column, cell in zip(table.columns, cells, strict=True):
            if cell:
                rows.add_row(column.header, cell)
        rows.add_section()
    return rows


def print_answer(result: Answer) -> None:
    """Print the released table, what it cost and what it promises."""
    table = Table()
    for column in result.columns:
        table.add_column(
            format_value(column), justify="right" if result.types.get(column) in ("integer", "number") else "left"
        )
    several = len(result.rows) > 1
    clipped, intervals = (result.clipped_columns, result.interval_columns) if several else ((), ())
    for column in intervals:
        table.add_column(f"{column} ({result.name_interval(column)})", justify="right")
    for column in clipped:
        table.add_column(f"{column} clipped to", justify="right")
    checked = result.checked_columns if several else ()
    for column in checked:
        table.add_column(f"{column} is off by")
    for i, row in enumerate(result.rows):
        limits = (result.clipped_rows[i].get(column) for column in clipped)
        found = (result.intervals[i].get(column) for column in intervals)
        distances = (result.check_rows[i].get(column, "") for column in checked)
        table.add_row(
            *(format_value(row[column]) for column in result.columns),
            *("" if pair is None else format_interval(pair) for pair in found),
            *map(format_cell_limits, limits),
            *map(str, distances),
        )
    print_table(table)
    if not result.rows:
        console.print(NO_ROWS, highlight=False)
    for column, distance in result.check_rows[0].items() if len(result.check_rows) == 1 else ():
        console.print(f"{column}: {distance}", highlight=False)
    if result.clipped_note:
        console.print(result.clipped_note, highlight=False)
    margins = [f"{c} ± {format_number(m)}" for c, m in result.margins.items() if m is not None]
    if margins:
        console.print(f"95 % of the noise lies within: {', '.join(margins)}", highlight=False)
    own = {} if several else {c: pair for c, pair in result.intervals.items() if result.margins[c] is None}
    for column, pair in own.items():
        console.print(f"{column} ({result.name_interval(column)}): {format_interval(pair)}", highlight=False)
    if result.no_margin_note:
        console.print(f"No margin: {result.no_margin_note}.", highlight=False)
    for note in result.notes:
        console.print(format_value(note), highlight=False)
    spent = "a stored answer, nothing was charged" if result.stored else result.price
    console.print(f"Cost: {spent}. Remaining: {result.left}.", highlight=False)
    console.print(f"Promise: {result.guarantee}", highlight=False)


def print_quote(result: Quote) -> None:
    """Print what a question would cost and promise."""
    table = Table(show_header=False)
    drawn = result.drawn.items()
    rows = [
        *result.prices,
        *([("each released cell", ", ".join(f"{c}: ε = {format_short(e)}" for c, e in drawn))] if drawn else []),
        *result.check_pairs,
        *([("reduced", result.reduction)] if result.reduction else []),
        *((f"computed: {column}", written) for column, written in result.computed.items()),
        ("released cells", str(result.cells)),
        ("least ε", result.least),
        ("remaining before", result.before),
        ("remaining after", result.after),
        ("stored answer", "yes, it would be returned" if result.stored else "no"),
    ]
    rows += result.margin_pairs
    rows += [(f"risk of {column}", risk) for column, risk in result.null_risks.items()]
    rows += [("note", note) for note in result.notes]
    rows.append(("promise", str(result.guarantee)))
    for name, value in rows:
        table.add_row(name, value)
    print_table(table)


def print_balances(table: Table, balances: BalanceList) -> None:
    """Print a table of balances; where there is any ρ, what that is."""
    print_table(table)
    if any(balance.rho is not None for balance in balances.budgets):
        console.print(RHO_MEANING, highlight=False)


def print_inspection(result: Inspection) -> None:
    """Print the truth behind a question, for the controller."""
    console.print(EYES, style="bold")
    for cell in result.cells:
        table = Table(show_header=False)
        if cell.group:
            table.add_row("group", ", ".join(f"{key} = {value}" for key, value in cell.group.items()))
        table.add_row("statistic", cell.statistic)
        table.add_row("true value", cell.true_value)
        for i, (low, high) in enumerate(zip(cell.lows, cell.highs, strict=True)):
            if i:
                table.add_row(f"within {i} change{'s' if i > 1 else ''}", f"{format_short(low)} … {format_short(high)}")
        if cell.local_sensitivity is not None:
            table.add_row("local sensitivity", format_short(cell.local_sensitivity))
        table.add_row("noise", cell.noise_in_words)
        if cell.expected_error is not None:
            table.add_row("expected error", f"{cell.expected_error:.6g}")
        if cell.note:
            table.add_row("note", cell.note)
        print_table(table)
    if result.rows:
        console.print(COMPUTED, style="bold")
        table = Table(*map(format_value, result.rows[0]))
        for row in result.rows:
            table.add_row(*map(format_exact, row.values()))
        print_table(table)

"""``idios reproduce`` and ``idios compare``: the paper's evaluation, and the same on the controller's own data."""

from __future__ import annotations

import json as text
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from idios.cli import output
from idios.cli.configuration_text import quote_key
from idios.cli.init import find_declared
from idios.cli.query import Config
from idios.declare.declared_columns import parse_bounds
from idios.errors import ConfigurationError, SourceError

if TYPE_CHECKING:
    from idios.evaluation.comparison import Comparison
    from idios.evaluation.document import Figure

# plotly is slow to import, and an extra: only what draws figures imports it, when it runs.


def reproduce(
    out: Annotated[Path, typer.Option(help="The folder for the report, its pictures and its numbers.")] = Path(
        "reproduction"
    ),
    quick: Annotated[
        bool, typer.Option("--quick", help="A fraction of the data sets: seconds, rougher curves.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the numbers as JSON.")] = False,
) -> None:
    """Compute every number and figure of the paper's evaluation again, and the comparisons it leaves out.

    Writes report.html, which needs no network, numbers.json, and PNGs of the figures if Chromium is found.
    """
    _require_extra("idios reproduce", "scipy", "plotly")
    from idios.evaluation.rendering import render_report
    from idios.evaluation.reproduction import FULL, QUICK, collect_numbers
    from idios.evaluation.reproduction import reproduce as run

    _make_folder(out)
    effort = QUICK if quick else FULL
    with output.show_progress() as progress:
        sections = run(effort, progress)
    content = collect_numbers(sections)
    lead = (
        f"{effort.median:,} data sets a point for the median, {effort.extremes:,} for the maximum. Errors are expected "
        "absolute errors, computed for each data set; data and figures were made on this machine by idios reproduce."
    )
    report = out / "report.html"
    report.write_text(
        render_report("Individual differential privacy: the evaluation, reproduced", lead, sections), "utf-8"
    )
    (out / "numbers.json").write_text(text.dumps(content, ensure_ascii=False, indent=2) + "\n", "utf-8")
    _draw_pictures([figure for section in sections for figure in section.figures], out)
    if json:
        output.print_json(content)
    else:
        for section in sections:
            for table in section.tables[: 2 if section.name != "errata" else 0]:
                _print_table(table.title, table.head, table.rows)
        output.console.print(f"Report: {report}", highlight=False)


def compare(
    source: Annotated[str, typer.Argument(help="A data file: csv, parquet, file.duckdb::table.")],
    column: Annotated[str, typer.Option("--column", "-c", help="The numeric column.")],
    epsilon: Annotated[str, typer.Option("--epsilon", "-e", help="What each answer would cost.")] = "1",
    bounds: Annotated[str | None, typer.Option(help="Publicly known bounds of the column, 0..120 or 0..")] = None,
    statistics: Annotated[
        str | None, typer.Option(help='Comma-separated, such as "median, kth_largest 2, trimmed_mean 0.05, iqr".')
    ] = None,
    step: Annotated[str | None, typer.Option(help="The column's grid; by default that of its type.")] = None,
    group: Annotated[
        str | None,
        typer.Option(
            help="The groups at the group level: their size, or the multiples of ε, such as 1,1,1; as declared, or 5."
        ),
    ] = None,
    config: Config = None,
    json: Annotated[bool, typer.Option("--json", help="Print the rows as JSON.")] = False,
    html: Annotated[Path | None, typer.Option(help="Also write a page with the table and a plot.")] = None,
) -> None:
    """Show what each level of protection would cost on your data, beside plain DP. For the controller's eyes only.

    Where an idios.toml beside the file declares it, the column is read as that says: type, missing values, bounds,
    expression, neighbours. --bounds and --step replace what it says of these.
    """
    if html is not None:
        _require_extra("the page of --html", "plotly")
    from idios.evaluation.comparison import DEFAULT, compare_column, read_column

    names = [name.strip() for name in statistics.split(",")] if statistics else DEFAULT
    file, name, known = find_declared(source, config)
    declared = None if known is None else known.tables[name]
    if declared is not None:
        told = "as declared" if column in declared.dataset.columns else "a column that is not declared"
        output.stderr.print(
            f"{column}: {told} in [datasets.{quote_key(name)}] of {file}", highlight=False, markup=False
        )
    given = None if bounds is None else parse_bounds(bounds)
    values = read_column(source, column, step=step, bounds=given, declared=declared)
    groups = group.split(",") if group is not None and "," in group else group
    comparison = compare_column(values, names, epsilon, groups, None if declared is None else declared.dataset)
    if html is not None:
        _write_comparison(comparison, column, html)
    if json:
        output.print_json(comparison.to_dict())
        return
    _print_comparison(comparison, column)


def _print_comparison(comparison: Comparison, column: str) -> None:
    from idios.evaluation.comparison import EYES, format_percentage
    from idios.evaluation.document import format_cell

    known = f"bounds {comparison.bounds[0]} to {comparison.bounds[1]}" if comparison.bounds else "no bounds"
    output.console.print(EYES, style="bold")
    output.console.print(f"{column}: {comparison.size:,} values, ε = {comparison.epsilon}, {known}", highlight=False)
    head = ("mechanism", "promise", "expected error", "of the value", "note")
    for name, rows in groupby(comparison, key=lambda row: row.statistic):
        listed = list(rows)
        cells = [(row.mechanism, row.promise, row.error, format_percentage(row), row.note) for row in listed]
        _print_table(f"{name}, true value {format_cell(listed[0].value)}", head, cells)


def _write_comparison(comparison: Comparison, column: str, path: Path) -> None:
    from idios.evaluation.comparison import make_section
    from idios.evaluation.rendering import render_report

    if not path.parent.is_dir():
        raise SourceError(f"there is no folder {str(path.parent)!r} to write {path.name!r} to")
    part = make_section(comparison, column)
    path.write_text(render_report(f"Levels of protection compared on {column}", part.text, [part]), "utf-8")
    output.stderr.print(f"Written: {path} (for the controller's eyes: it shows true values)", highlight=False)


def _draw_pictures(figures: list[Figure], out: Path) -> None:
    from idios.evaluation import rendering

    program = rendering.find_chromium()
    if program is None:
        output.stderr.print(
            "No PNGs were drawn: no Chromium is on the search path (Debian: apt install chromium). The report has the "
            "figures.",
            highlight=False,
        )
        return
    with output.show_progress() as progress:
        progress("drawing the figures in Chromium", 0.5)
        written = rendering.write_images(figures, out, program)
    output.stderr.print(f"{len(written)} PNGs drawn by {Path(program).name} in {out}", highlight=False)


def _print_table(title: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    from idios.evaluation.document import format_cell

    table = Table(title=title, title_justify="left")
    for name in head:
        table.add_column(name, justify="right" if name in ("expected error", "of the value") else "left")
    for row in rows:
        table.add_row(*(format_cell(value) for value in row))
    output.print_table(table)


def _require_extra(what: str, *packages: str) -> None:
    """Refuse what needs packages of the extra that are not installed, before anything is computed."""
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        raise ConfigurationError(
            f"{what} needs {' and '.join(missing)}, not installed here: pip install 'idios[evaluation]'"
        )


def _make_folder(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SourceError(f"the folder {str(out)!r} cannot be made: {error.strerror}") from error

"""``idios check``: compare the data with its declaration, and the ledger with its signatures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from idios.audit import WORSE, find_worse_columns
from idios.cli.configuration_text import format_csv, quote_key, write_table
from idios.cli.init import propose
from idios.cli.output import console, print_json, print_table, show_progress
from idios.config import read_configuration
from idios.core.neighbours import to_plural
from idios.data.backend import CsvFormat, DeclarationReport, is_address
from idios.datasets import DatasetConfig
from idios.errors import IdiosError
from idios.party import TrustedParty
from idios.sql.names import quote
from idios.sql.suggestions import list_some

LINES = 20
"""Of more columns than this, those that are as declared are told in one line."""


def check(
    config: Annotated[Path, typer.Option(help="The configuration file.")] = Path("idios.toml"),
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compare the data with its declaration, and the ledger with its signatures; for the controller.

    Values out of bounds, not declared, or not of the declared type are counted: they read as the nearer bound, or as
    missing. The exit status is 1 where they are more than half of a column's values, where values are missing though
    they cannot be, or keys repeat, and where the ledger contradicts its signatures. Nothing is recorded: a budget can
    be changed until something is quoted, asked or granted.
    """
    with show_progress() as progress, TrustedParty.from_config(config, progress=progress, record=False) as party:
        reports = {name: dataset.backend.check() for name, dataset in party.datasets.items()}
        worse = {name: find_worse_columns(held.dataset, held.backend) for name, held in party.datasets.items()}
        verified = party.ledger.verify()
    if json:
        content = {
            name: {**_to_json(report), "worse_than_differential": list(worse[name])} for name, report in reports.items()
        }
        print_json({"datasets": content, "ledger": str(verified)})
    else:
        declared = read_configuration(config).tables
        for name, report in reports.items():
            _print_report(name, report, worse[name], declared)
        console.print(f"Ledger: {verified}", highlight=False)
    if not (verified.ok and all(report.sound for report in reports.values())):
        raise typer.Exit(1)


def _to_json(report: DeclarationReport) -> dict[str, Any]:
    return {
        "rows": report.rows,
        "sound": report.sound,
        "columns": [asdict(column) for column in report.columns],
        **({"people": asdict(report.people)} if report.people else {}),
        **({"everyone": report.everyone} if report.everyone is not None else {}),
        **({"tables": {name: _to_json(table) for name, table in report.tables.items()}} if report.tables else {}),
        **({"links": [asdict(link) for link in report.links]} if report.links else {}),
    }


def _propose_again(dataset: DatasetConfig, report: DeclarationReport) -> dict[str, str]:
    """What to do about columns of which many values do not have the declared type: what would fit a sample of them."""
    often = [column.name for column in report.columns if column.often_unreadable(report.rows)]
    told = dict.fromkeys(often, "declare its type or format, which `idios init` proposes into another file (--out)")
    source = str(dataset.source)
    if not often or is_address(source):
        return told
    with suppress(IdiosError):  # what cannot be proposed has no line
        given = dataset.csv_format or CsvFormat()
        proposal = propose(source, given.header)
        written = proposal.csv_format or given
        other_marks = (written.decimal, written.thousands) != (given.decimal, given.thousands)
        for name in often:
            table, column = proposal.schema.get(name, {}), dataset.dataset.columns[name]
            other_type = (table.get("type"), table.get("format", "")) != (column.kind.value, column.format)
            if table and (other_type or other_marks):
                told[name] = f"a sample of the file fits {quote_key(name)} = {write_table(table)}"
                told[name] += f" with csv = {format_csv(written)}" if other_marks else ""
    return told


def _print_report(
    name: str, report: DeclarationReport, worse: Sequence[str], declared: Mapping[str, DatasetConfig]
) -> None:
    several = {name: report, **report.tables}
    for title, each in several.items():
        advice = _propose_again(declared[title], each)
        table = Table(title=f"{quote(title)}: {each.rows:,} rows")
        for head in ("column", "missing", "finding"):
            table.add_column(head)
        sound = []
        for column in each.columns:
            problems = column.problems()
            if column.mostly_misfits(each.rows):
                problems.append("these are most of its values: the declaration may be wrong")
            if column.name in advice:
                problems.append(advice[column.name])
            if each.rows and column.missing == each.rows:  # JSON lines have no list of columns that it could lack
                problems.append("every value is missing: the source may call it otherwise")
            if not problems:
                sound.append(column)
            if problems or len(each.columns) <= LINES:
                table.add_row(column.name, f"{column.nulls:,}", "; ".join(problems) or "as declared")
        if table.row_count:
            print_table(table)
        else:
            console.print(f"{quote(title)}: {each.rows:,} rows", highlight=False, markup=False)
        if len(each.columns) > LINES:
            most = max(sound, key=lambda column: column.nulls, default=None)
            missing = f"; at most {most.nulls:,} values are missing, of {most.name}" if most and most.nulls else ""
            console.print(f"{len(sound)} columns are as declared{missing}", highlight=False, markup=False)
    names = {*several, *(column.name for each in several.values() for column in each.columns)}
    if quoted := sorted(quote(column) for column in names if quote(column) != column):
        told = f"Names that questions write in double quotes: {list_some(quoted)}"
        console.print(told, highlight=False, markup=False)
    for title, each in several.items():
        if each.people:
            console.print(f"{quote(title)}: {each.people}", highlight=False, markup=False)
    if report.everyone is not None and report.people:
        several_people = f"{report.everyone:,} {to_plural(report.people.word)}"
        console.print(f"In all tables together: {several_people}", highlight=False, markup=False)
    for link in report.links:
        console.print(str(link), highlight=False, markup=False)
    if worse:
        listed = ", ".join(f"MEDIAN({column})" for column in worse)
        console.print(f"{listed}: {WORSE}; `idios compare` tells by how much", highlight=False)

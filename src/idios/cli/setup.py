"""``idios init`` and ``idios check``: declare a data set, and compare the data with its declaration."""

from __future__ import annotations

import sys
import tomllib
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.prompt import Prompt
from rich.table import Table

from idios.cli import show
from idios.cli.files import Header, Yes, confirm, dataset_name, dataset_text, ledger_text, propose
from idios.core.domain import Kind
from idios.core.exact import positive
from idios.datasets import read_columns
from idios.errors import ConfigurationError, InvalidInput
from idios.party import TrustedParty


def init(
    source: Annotated[str, typer.Argument(help="The data: csv, parquet, file.duckdb::table, postgresql://…")],
    out: Annotated[Path, typer.Option(help="Where to write the configuration.")] = Path("idios.toml"),
    name: Annotated[str | None, typer.Option(help="What analysts call the data set.")] = None,
    budget: Annotated[str, typer.Option(help="Total ε over all analysts.")] = "10",
    bounds: Annotated[
        list[str] | None, typer.Option(help="Publicly known bounds, such as --bounds age=0..120; repeatable.")
    ] = None,
    values: Annotated[
        list[str] | None, typer.Option(help="The values of a text column, such as --values region=north,south.")
    ] = None,
    ask: Annotated[bool, typer.Option(help="Ask for the bounds of every numeric column.")] = True,
    header: Header = None,
    yes: Yes = False,
) -> None:
    """Write a commented idios.toml from the names and types of a source's columns.

    No value is read, except of a csv file, which has no types: its delimiter, header and types are proposed from its
    first records, for you to confirm.
    """
    if out.exists():
        raise ConfigurationError(f"{out} exists already; it is never overwritten: edit it, or name another with --out")
    proposal = propose(source, header)
    columns, chosen = proposal.columns, name or dataset_name(source)
    confirm(proposal, chosen, out, yes=yes)
    known = dict(_bounds(one) for one in bounds or [])
    listed = dict(_values(one) for one in values or [])
    for column, kind, _ in columns:
        if ask and sys.stdin.isatty() and kind is not Kind.CATEGORY and column not in known:
            _ask_bounds(column, known)
    unknown = [column for column in (*known, *listed) if column not in {one for one, *_ in columns}]
    if unknown:
        raise InvalidInput(f"the source has no column {unknown[0]!r}")
    positive(budget, "budget")
    path = source if ":" in source.partition("::")[0] else str(Path(source.partition("::")[0]).resolve())
    if path != source:
        folder = out.resolve().parent
        inside = Path(path)
        path = str(inside.relative_to(folder)) if inside.is_relative_to(folder) else path
        path += source[len(source.partition("::")[0]) :]
    text = dataset_text(chosen, path, proposal, budget, known, listed)
    _check_columns(chosen, text)
    out.write_text(ledger_text() + text, encoding="utf-8")
    show.out.print(f"{out} declares {chosen!r} with {len(columns)} columns. Read it, then: idios check --config {out}")


def check(
    config: Annotated[Path, typer.Option(help="The configuration file.")] = Path("idios.toml"),
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compare the data with its declaration, and the ledger with its signatures; for the controller."""
    with show.patience() as progress, TrustedParty.from_config(config, progress=progress) as party:
        reports = {name: dataset.backend.check() for name, dataset in party.datasets.items()}
        verified = party.ledger.verify()
    if json:
        content = {
            name: {"rows": report.rows, "sound": report.sound, "columns": [asdict(column) for column in report.columns]}
            for name, report in reports.items()
        }
        show.as_json({"datasets": content, "ledger": str(verified)})
    else:
        for name, report in reports.items():
            table = Table(title=f"{name}: {report.rows:,} rows")
            for head in ("column", "missing", "finding"):
                table.add_column(head)
            for column in report.columns:
                table.add_row(column.name, f"{column.missing:,}", "; ".join(column.problems()) or "as declared")
            show.out.print(table)
        show.out.print(f"Ledger: {verified}", highlight=False)
    if not (verified.ok and all(report.sound for report in reports.values())):
        raise typer.Exit(1)


def _ask_bounds(column: str, known: dict[str, tuple[str, str]]) -> None:
    while asked := Prompt.ask(
        f"Publicly known bounds of {column} as LOW..HIGH (empty: none)", default="", show_default=False
    ):
        try:
            known[column] = _bounds(f"{column}={asked}")[1]
            return
        except InvalidInput as error:
            show.errors.print(str(error), highlight=False, markup=False)


def _check_columns(dataset: str, text: str) -> None:
    """Refuse to write what could not be read again; a table of which no column is declared yet is to be filled in."""
    try:
        columns = tomllib.loads(text)["datasets"][dataset].get("columns")
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"the bounds or values given cannot be written down: {error}") from None
    if columns:
        read_columns(columns)


def _bounds(given: str) -> tuple[str, tuple[str, str]]:
    name, mark, pair = given.partition("=")
    low, dots, high = pair.partition("..")
    if not (mark and dots):
        raise InvalidInput(f"bounds are NAME=LOW..HIGH, got {given!r}")
    return name, (low.strip(), high.strip())


def _values(given: str) -> tuple[str, list[str]]:
    name, mark, listed = given.partition("=")
    if not mark:
        raise InvalidInput(f"values are NAME=A,B,C, got {given!r}")
    return name, [value.strip() for value in listed.split(",")]

"""``idios init``: declare a data set.

A declaration is proposed from the names and types of a source, confirmed by the controller and written to a
configuration; a question about a file that no configuration declares begins in the same way (``declare_file``).
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from json import dumps
from pathlib import Path
from typing import Annotated

import typer
from rich.prompt import Confirm, Prompt

from idios.backends.base import CsvFormat, describe_source
from idios.backends.csv import propose_format
from idios.cli.output import console, stderr
from idios.config import read_configuration
from idios.core.calibration import Level, Protection
from idios.core.domain import Kind
from idios.core.exact import text
from idios.datasets import read_budget, read_columns
from idios.errors import ConfigurationError, InvalidInput, SourceError
from idios.query.schema import Budget

Header = Annotated[
    bool | None,
    typer.Option("--header/--no-header", help="Whether a csv file begins with names; found out where that is clear."),
]
Yes = Annotated[
    bool, typer.Option("--yes", "-y", help="Confirm what is proposed for a csv file that is not declared yet.")
]

LEDGER = """\
# The trusted party's configuration: everything in it is public.

[ledger]
url = "sqlite:///ledger.db"    # or postgresql://…
key_file = "ledger.key"        # signs the chain of entries; keep a copy elsewhere
"""
"""The part of a configuration that says where the ledger is."""

LEVELS = """\
# The level of protection (docs/promise.md, docs/limits.md); choose one.
# differential: holds whatever the data, against any attacker, with bounds or without; the level for most.
# individual, group: noise fitted to the actual data. Whatever ε, one MEDIAN of a column of 0s and 1000s shows on
#   which side of a threshold the data lies; so a server needs analysts = "trusted" beside them.
{individual}protection = "individual"
# protection = "group"         # the same for up to `group` records together, with ε, 2ε, …
# group = 5                    # or {{ size = 5, growth = "flat" }}: a household of five like one person
{differential}protection = "differential"
# analysts = "trusted"         # no analyst will try to find out about single records
# release_seconds = 0.25  # on a server: answers leave at 0.25, 0.5, 1, 2, … seconds, so that time tells nothing; \
default at "differential\""""
"""What a controller chooses between, with its consequences; the levels not chosen are comments."""
ACCOUNTING = (
    '# What adds up to the budget. "pure": the ε of all answers, a promise without exception. "concentrated": their ρ,',
    '# about ε²/2, so that many more fit into { epsilon = 5, delta = "1e-6" }; it may fail, with the probability δ.',
)
"""Between which accountings a controller chooses."""
BUDGET = "10"
"""The total ε that is proposed."""


def init(
    source: Annotated[str, typer.Argument(help="The data: csv, parquet, file.duckdb::table, postgresql://…")],
    out: Annotated[Path, typer.Option(help="Where to write the configuration.")] = Path("idios.toml"),
    name: Annotated[str | None, typer.Option(help="What analysts call the data set.")] = None,
    budget: Annotated[str, typer.Option(help="Total ε over all analysts.")] = BUDGET,
    accounting: Annotated[
        str, typer.Option(help="What adds up: pure, the ε of all answers; or concentrated, their ρ, with a --delta.")
    ] = "pure",
    delta: Annotated[
        str | None, typer.Option(help="With concentrated accounting: the probability that the promise fails.")
    ] = None,
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
    columns, chosen = proposal.columns, name or read_dataset_name(source)
    confirm(proposal, chosen, out, yes=yes)
    known = dict(_parse_bounds(option) for option in bounds or [])
    listed = dict(_parse_values(option) for option in values or [])
    for column, kind, _ in columns:
        if ask and sys.stdin.isatty() and kind is not Kind.CATEGORY and column not in known:
            _ask_bounds(column, known)
    unknown = [column for column in (*known, *listed) if column not in {known_name for known_name, *_ in columns}]
    if unknown:
        raise InvalidInput(f"the source has no column {unknown[0]!r}")
    total = read_budget({"epsilon": budget, **({} if delta is None else {"delta": delta})}, accounting)
    path = source if ":" in source.partition("::")[0] else str(Path(source.partition("::")[0]).resolve())
    if path != source:
        folder = out.resolve().parent
        inside = Path(path)
        path = str(inside.relative_to(folder)) if inside.is_relative_to(folder) else path
        path += source[len(source.partition("::")[0]) :]
    text = format_dataset(chosen, path, proposal, total, known, listed)
    _check_columns(chosen, text)
    out.write_text(LEDGER + text, encoding="utf-8")
    console.print(f"{out} declares {chosen!r} with {len(columns)} columns. Read it, then: idios check --config {out}")


def declare_file(
    source: str, config: str | None, budget: str | None, header: bool | None, yes: bool, protection: str | None
) -> Path:
    """The configuration beside a file; if it does not declare the file yet, it does once that is confirmed.

    Who names the level of protection declares the file: that confirms the proposal as ``yes`` does, and the budget
    is the proposed one unless it is given.
    """
    level = Protection.declare(protection or Level.INDIVIDUAL).level
    path = Path(source.partition("::")[0])
    file = Path(config) if config else path.parent / "idios.toml"
    name = read_dataset_name(source)
    if file.exists() and (known := read_configuration(file).datasets.get(name)):
        declared = known.dataset.protection.level
        if protection is not None and declared is not level:
            raise ConfigurationError(
                f'{file} declares {name!r} with protection = "{declared}", not "{level}": change it there, or ask '
                "without --protection"
            )
        return file
    proposal = propose(source, header)
    total = budget or (BUDGET if protection else _ask_budget(name))
    spendable = read_budget(total, "pure")
    relative = (
        source if path.is_absolute() and file.parent.resolve() != path.parent.resolve() else _relative_to_folder(source)
    )
    table = format_dataset(name, relative, proposal, spendable, level=level)
    confirm(proposal, name, file, yes=yes or protection is not None)
    head = "" if file.exists() else LEDGER
    with file.open("a", encoding="utf-8") as target:
        target.write(head + table)
    stderr.print(
        f"{file} now declares the data set {name!r}: the columns above, without bounds, which few statistics need; "
        f'protection = "{level}"; neighbours = "replace", so that one record may change and their number is public; '
        f"budget = {total}, the ε of all questions together. Edit it there: bounds or a centre that are publicly known "
        "make answers more accurate.",
        highlight=False,
    )
    return file


@dataclass(frozen=True)
class Proposal:
    """The columns of a source, and of a csv file the format, as they would be declared."""

    columns: Sequence[tuple[str, Kind, int]]
    csv_format: CsvFormat | None = None


def propose(source: str, header: bool | None = None) -> Proposal:
    """Look at a source: at its names and types, or at the first records of a csv file, which has no types."""
    if not source.lower().endswith(".csv"):
        return Proposal(describe_source(source))
    if not Path(source).is_file():
        raise SourceError(f"there is no file {source!r}")
    format = propose_format(Path(source), header)
    return Proposal(describe_source(source, format), format)


def confirm(proposal: Proposal, name: str, file: Path, *, yes: bool) -> None:
    """Show what would be declared; what was read from records counts only once the controller confirms it."""
    stderr.print(f"Proposed for the data set {name!r}:", highlight=False)
    for column, kind, _ in proposal.columns:
        kind_text = "text, left out until its values are declared" if kind is Kind.CATEGORY else str(kind)
        stderr.print(f"  {column}: {kind_text}", highlight=False)
    if proposal.csv_format is None:
        return
    stderr.print(f"  csv: {_format_csv(proposal.csv_format)}", highlight=False)
    stderr.print(
        "It was made by reading the first records of the file. "
        f"{'It is' if yes else 'What you confirm is'} declared as public knowledge of the file, and kept from now on.",
        highlight=False,
    )
    if yes:
        return
    if not sys.stdin.isatty():
        raise ConfigurationError(f"nothing is written to {file} until the proposal is confirmed: add --yes")
    if not Confirm.ask("Declare it so?", default=False, console=stderr):
        raise ConfigurationError(
            f"nothing was written; declare the data set in {file} by hand, or with `idios init` and its options"
        )


def read_dataset_name(source: str) -> str:
    """The name of a file's data set: its table, or its stem."""
    path, _, table = source.partition("::")
    return table or Path(path).stem


def format_dataset(
    name: str,
    source: str,
    proposal: Proposal,
    budget: Budget,
    bounds: Mapping[str, tuple[str, str]] | None = None,
    values: Mapping[str, Sequence[str]] | None = None,
    level: Level = Level.INDIVIDUAL,
) -> str:
    """The table of one data set, with the choices a controller has as comments."""
    total, accounting = text(budget.epsilon), "pure"
    if budget.concentrated:
        total, accounting = f'{{ epsilon = {total}, delta = "{text(budget.delta)}" }}', "concentrated"
    marks = {each.value: "" if each is level else "# " for each in Level}
    lines = [
        "",
        f"[datasets.{_quote_key(name)}]",
        f"source = {_quote(source)}",
        *([f"csv = {_format_csv(proposal.csv_format)}"] if proposal.csv_format else []),
        *ACCOUNTING,
        f'accounting = "{accounting}"',
        f"budget = {total}  # over all analysts; to raise it later: idios ledger raise",
        'neighbours = "replace"         # one record changes, n is public; or "add-remove"',
        LEVELS.format(**marks),
        "# check = 0.2                  # the share of ε that tells how many records off answers are",
        "min_epsilon = 0.05             # the least ε of every released cell; medians of n groups take n × 0.05",
        "",
        f"[datasets.{_quote_key(name)}.columns]",
        "# bounds = [lower, upper] make MIN and MAX answerable and the rest more accurate; where none are known,",
        "# centre = 30000 says about where values lie. State what is publicly known, never what the data shows.",
        "# Columns may miss values unless nullable = false is declared.",
    ]
    for column, kind, decimals in proposal.columns:
        key = _quote_key(column)
        known = (bounds or {}).get(column)
        listed = (values or {}).get(column)
        if listed is not None:
            values_text = ", ".join(_quote(value) for value in listed)
            lines.append(f'{key} = {{ type = "category", values = [{values_text}] }}')
        elif kind is Kind.CATEGORY:
            lines.append(
                f'# {key} = {{ type = "category", values = ["…"] }}  # text: declare its values to ask about it'
            )
        else:
            parts = [f'type = "{kind}"']
            if kind is Kind.DECIMAL:
                parts.append(f"decimals = {decimals}")
            if known is not None:
                parts.append(f"bounds = [{known[0]}, {known[1]}]")
            lines.append(f"{key} = {{ {', '.join(parts)} }}")
    return "\n".join(lines) + "\n"


def _relative_to_folder(source: str) -> str:
    path, mark, table = source.partition("::")
    return f"{Path(path).name}{mark}{table}"


def _ask_budget(name: str) -> str:
    if not sys.stdin.isatty():
        raise ConfigurationError(f"the data set {name!r} has no budget yet: give its total ε once, such as --budget 10")
    return Prompt.ask(f"Total ε that may ever be spent on {name!r}", default="10", console=stderr)


def _format_csv(format: CsvFormat) -> str:
    """A csv format as the configuration has it."""
    parts = [f"delimiter = {_quote(format.delimiter)}", f"header = {str(format.header).lower()}"]
    parts += [f"decimal = {_quote(format.decimal)}"] if format.decimal != "." else []
    parts += [f"encoding = {_quote(format.encoding)}"] if format.encoding != "utf-8" else []
    return f"{{ {', '.join(parts)} }}"


def _quote(value: str) -> str:
    """A basic string of TOML, which escapes as JSON does and DEL too."""
    return dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _quote_key(name: str) -> str:
    bare = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if bare else _quote(name)


def _ask_bounds(column: str, known: dict[str, tuple[str, str]]) -> None:
    while answer := Prompt.ask(
        f"Publicly known bounds of {column} as LOW..HIGH (empty: none)", default="", show_default=False
    ):
        try:
            known[column] = _parse_bounds(f"{column}={answer}")[1]
            return
        except InvalidInput as error:
            stderr.print(str(error), highlight=False)


def _check_columns(dataset: str, text: str) -> None:
    """Refuse to write what could not be read again; a table of which no column is declared yet is to be filled in."""
    try:
        columns = tomllib.loads(text)["datasets"][dataset].get("columns")
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"the bounds or values given cannot be written down: {error}") from None
    if columns:
        read_columns(columns)


def _parse_bounds(given: str) -> tuple[str, tuple[str, str]]:
    name, mark, pair = given.partition("=")
    low, dots, high = pair.partition("..")
    if not (mark and dots):
        raise InvalidInput(f"bounds are NAME=LOW..HIGH, got {given!r}")
    return name, (low.strip(), high.strip())


def _parse_values(given: str) -> tuple[str, list[str]]:
    name, mark, listed = given.partition("=")
    if not mark:
        raise InvalidInput(f"values are NAME=A,B,C, got {given!r}")
    return name, [value.strip() for value in listed.split(",")]

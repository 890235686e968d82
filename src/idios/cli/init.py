"""``idios init``: declare data sets.

A declaration is proposed from the names and types of a source, confirmed by the controller and written to a
configuration; a question about a file that no configuration declares begins in the same way (``declare_file``).
"""

from __future__ import annotations

import shlex
import sys
import tomllib
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from datetime import date
from glob import has_magic
from os.path import exists  # Path.exists fails where a text is too long for a name
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.prompt import Confirm, Prompt
from rich.text import Text

from idios.cli.configuration_text import LEDGER, Belonging, Proposal, format_csv, format_dataset
from idios.cli.output import console, stderr
from idios.cli.people import propose_belonging, propose_unique, read_belonging
from idios.config import find_shared_sources, read_configuration
from idios.core.calibration import DEFAULT, Level, Protection
from idios.core.domain import Kind
from idios.data.backend import describe_source, is_address, read_dataset_name
from idios.data.formats.csv_proposal import propose_format
from idios.data.formats.files import FileKind, describe_absent, find_files, refuse_mislabelled
from idios.data.formats.reservoir import ROWS
from idios.data.formats.statistics_files import read_value_labels
from idios.datasets import DatasetConfig, declare, read_budget
from idios.declare.declared_columns import parse_bounds, read_column
from idios.display import format_value
from idios.errors import ConfigurationError, InvalidInput, SourceError
from idios.linked_datasets import link_datasets
from idios.propose.proposals import describe_column, propose_columns
from idios.server.catalogue import ATTACK
from idios.sql.suggestions import find_nearest

# What a controller gives of columns to ``idios init``: bounds and values, by options or when they are asked.
#
# Each is checked when it is given, so that one that cannot be read is told with the way to write it, and nothing else
# that was typed is lost.


Bounds = tuple[str | None, str | None]
_MOMENTS = (Kind.DATE, Kind.TIMESTAMP)
_WRITTEN = {
    False: "numbers are written with a decimal point and nothing else between their digits, such as 0..30000 or 0..2.5",
    True: "dates are written year-month-day, such as 1900-01-01..2030-12-31",
}
"""How bounds are written, by whether they are dates."""


def split_option(given: str, example: str) -> tuple[str, str]:
    """The name of a column and what is given of it.

    >>> split_option("age=0..120", "NAME=LOW..HIGH")
    ('age', '0..120')
    """
    name, mark, rest = given.partition("=")
    if not mark:
        raise InvalidInput(f"this is written {example}, got {given!r}")
    return name, rest


def read_bounds(column: str, given: str, table: Mapping[str, Any]) -> Bounds:
    """Bounds as they are typed, once the column can be declared with them as a configuration would have them.

    >>> read_bounds("age", "0..120", {"type": "integer"})
    ('0', '120')
    >>> read_bounds("wage", "0..30,000", {"type": "number"})  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    idios.errors.InvalidInput: the bounds of wage cannot be read from '0..30,000': numbers are written with ...
    """
    low, high = parse_bounds(given)
    if "type" not in table:
        raise InvalidInput(f"no type is proposed for {column!r}, so that it has no bounds: declare both in the file")
    dates = table["type"] in _MOMENTS
    values = [None if end is None else _read_value(end) for end in (low, high)]
    if any(not isinstance(value, date if dates else int | float) for value in values if value is not None):
        raise InvalidInput(f"the bounds of {column} cannot be read from {given!r}: {_WRITTEN[dates]}")
    read_column(column, {**table, "bounds": values})
    return low, high


def _read_value(written: str) -> Any:
    """A value as a configuration would have it; text where it could not."""
    try:
        read = tomllib.loads(f"value = {written}")
    except tomllib.TOMLDecodeError:
        return written
    return read["value"] if len(read) == 1 and not isinstance(read["value"], bool) else written


def ask_bounds(column: str, table: Mapping[str, Any]) -> Bounds | None:
    """Ask until the answer can be read; None for none."""
    example = "1900-01-01..2030-12-31" if table.get("type") in _MOMENTS else "LOW..HIGH"
    asked = Text(f"Publicly known bounds of {column} as {example}, or LOW.. (empty: none)", "prompt")
    while answer := Prompt.ask(asked, default="", show_default=False, console=console):
        try:
            return read_bounds(column, answer, table)
        except InvalidInput as error:
            stderr.print(str(error), highlight=False, markup=False)
    return None


def read_values(given: str) -> tuple[str, list[str]]:
    """The column and its values.

    >>> read_values("region=north, south")
    ('region', ['north', 'south'])
    """
    name, listed = split_option(given, "NAME=A,B,C")
    return name, [value.strip() for value in listed.split(",")]


def refuse_unknown(named: Iterable[str], columns: Collection[str]) -> None:
    """Refuse a column that the source does not have, with the one that was probably meant."""
    for name in named:
        if name not in columns:
            nearest = find_nearest(name, list(columns))
            meant = "" if nearest is None else f". Did you mean {nearest!r}?"
            raise InvalidInput(f"the source has no column {name!r}{meant}")


Header = Annotated[
    bool | None,
    typer.Option("--header/--no-header", help="Whether a csv file begins with names; found out where that is clear."),
]
Yes = Annotated[
    bool,
    typer.Option("--yes", "-y", help="Confirm what is proposed for data not declared yet, and a total ε of 10."),
]

LINES = 20
"""So many columns are described in a line each."""
SHOWN = 8
"""So many names stand for many."""
EACH_RECORD = "none"
"""What ``--unit`` says where each record is protected by itself."""
PEOPLE = (
    "people may have several rows in {name!r}, and who is protected cannot be changed once something is answered: add "
    "--unit {unit} if that tells people apart, or --unit none to protect each record by itself. Nothing is written, "
    "and nothing was asked"
)
"""What is said where it is not told whom the rows belong to."""
UNREAD = (
    "Names and types alone were read, and no record: codes, values that mean missing and the values of text are left "
    "to you, or proposed from a sample with --yes and without --no-sample."
)
"""What is said where nothing is proposed from records."""
BUDGET = "10"
"""The total ε that is proposed."""
EPSILON = (
    "ε limits what all answers together may tell about one {one}: if that {one} were another, the same answers would "
    "be at most e^ε times as likely, 2.7 times at a total of 1 and 22,026 times at 10; a question that gets more ε has "
    "less noise."
)
"""What is said before a total is asked for."""


def init(
    sources: Annotated[
        list[str],
        typer.Argument(help="The data: csv, parquet, xlsx, … (docs/files.md), postgresql://…; one or several."),
    ],
    out: Annotated[Path, typer.Option(help="Where to write the configuration.")] = Path("idios.toml"),
    name: Annotated[str | None, typer.Option(help="What analysts call the data set, if it is one.")] = None,
    budget: Annotated[
        str | None, typer.Option(help="Total ε over all analysts; asked at a terminal, 10 where nobody is.")
    ] = None,
    accounting: Annotated[
        str, typer.Option(help="What adds up: pure, the ε of all answers; or concentrated, their ρ, with a --delta.")
    ] = "pure",
    delta: Annotated[
        str | None, typer.Option(help="With concentrated accounting: the probability that the promise fails.")
    ] = None,
    protection: Annotated[
        str, typer.Option(help="differential or individual; the file says what they mean.")
    ] = DEFAULT.value,
    unit: Annotated[
        list[str] | None,
        typer.Option(help="What tells people apart who may have several rows, such as --unit orders=customer_id."),
    ] = None,
    link: Annotated[
        list[str] | None, typer.Option(help="Keys of another data set, such as --link orders.customer_id=customers.id.")
    ] = None,
    public: Annotated[list[str] | None, typer.Option(help="A data set in which nobody is described.")] = None,
    bounds: Annotated[
        list[str] | None,
        typer.Option(help="Publicly known bounds, such as --bounds age=0..120 or age=0..; repeatable."),
    ] = None,
    values: Annotated[
        list[str] | None, typer.Option(help="The values of a text column, such as --values region=north,south.")
    ] = None,
    sample: Annotated[
        bool,
        typer.Option(
            help="Propose categories, labels and missing values from a sample of records, once you confirm it or say "
            "--yes; --no-sample looks at names and types alone."
        ),
    ] = True,
    ask: Annotated[bool, typer.Option(help="Ask for the total ε and the bounds of every numeric column.")] = True,
    header: Header = None,
    yes: Yes = False,
) -> None:
    """Write a commented idios.toml from the names and types of the columns of one or several sources.

    Records are read for it: categories and their labels, and values that mean "missing", are proposed from a sample;
    of a file without types (csv, JSON lines, Excel) delimiter, header and types too. Values that occur fewer than ten
    times are never proposed, but of what --public names. It is for you to confirm: what is declared is public.

    Unless --unit, --link or --public say whose rows there are, the values of columns that are called like keys are
    counted too: what may tell people apart, or lead to another source, is proposed as a comment.
    """
    if exists(out):
        added = f'; `idios query {shlex.quote(sources[0])} "SELECT …" --config {out}` adds a file to it'
        raise ConfigurationError(
            f"{out} exists already; it is never overwritten: edit it, or name another with --out"
            f"{added if len(sources) == 1 and not is_address(sources[0]) else ''}"
        )
    if name is not None and len(sources) > 1:
        raise InvalidInput("--name is for one source; several are called by their files or tables")
    level = Protection.declare(protection).level
    if budget is None and delta is None and ask and not yes and sys.stdin.isatty():
        budget = _ask_budget([name or read_dataset_name(source) for source in sources], "person" if unit else "record")
    total = read_budget({"epsilon": budget or BUDGET, **({} if delta is None else {"delta": delta})}, accounting)
    asked = yes or sys.stdin.isatty()
    proposals = {
        named: propose(source, header, sample=sample, asked=asked, public=named in (public or []))
        for source in sources
        for named in [name or read_dataset_name(source)]
    }
    if len(proposals) < len(sources):
        raise InvalidInput("two of the sources have one name: rename a file, or declare one of them by hand")
    for chosen, proposal in proposals.items():
        confirm(proposal, chosen, out, level, yes=yes)
    bounded = dict(split_option(option, "NAME=LOW..HIGH") for option in bounds or [])
    listed = dict(read_values(option) for option in values or [])
    refuse_unknown((*bounded, *listed), [column for proposal in proposals.values() for column in proposal.kinds])
    tables = {column: table for proposal in proposals.values() for column, table in proposal.schema.items()}
    categories = [column for column in bounded if "values" in tables.get(column, {})]
    if categories:
        raise InvalidInput(f"{categories[0]!r} is proposed as a category, which has no bounds; see --no-sample")
    known = {column: read_bounds(column, given, tables.get(column, {})) for column, given in bounded.items()}
    if unit or link or public:
        belonging, told = read_belonging(list(proposals), unit or [], link or [], public or []), list[str]()
        for each, proposal in proposals.items():
            refuse_unknown(belonging[each].keys, proposal.kinds)
            for target in belonging[each].links.values():
                other, _, key = target.partition(".")
                if other in proposals:
                    refuse_unknown([key], proposals[other].kinds)
        belonging = {each: propose_unique(each, proposals[each], owned) for each, owned in belonging.items()}
    else:
        belonging, told = propose_belonging(proposals)
    for column, table in tables.items() if ask and sys.stdin.isatty() else ():
        if "values" not in table and column not in (*known, *listed) and (given := ask_bounds(column, table)):
            known[column] = given
    text = "".join(
        format_dataset(each, _write_path(proposal.source, out), proposal, total, known, listed, level, belonging[each])
        for each, proposal in proposals.items()
    )
    _check_datasets(text, list(proposals))
    out.write_text(LEDGER + text, encoding="utf-8")
    for line in told:
        stderr.print(line, highlight=False, markup=False)
    if told:
        stderr.print("Nothing of this is declared: the file has it as comments, or use --unit, --link and --public.")
    declared = " and ".join(f"{each!r} with {_count_columns(proposal, listed)}" for each, proposal in proposals.items())
    console.print(f"{out} declares {declared}. Read it, then: idios check --config {out}", soft_wrap=True)


def _write_path(source: str, out: Path) -> str:
    """A source as the configuration has it: a path relative to its folder, if it lies there."""
    path, mark, table = source.partition("::")
    if ":" in path:
        return source
    folder, place = out.resolve().parent, Path(path).resolve()
    return f"{place.relative_to(folder) if place.is_relative_to(folder) else place}{mark}{table}"


def declare_file(
    source: str,
    config: str | None,
    budget: str | None,
    header: bool | None,
    yes: bool,
    protection: str | None,
    unit: str | None,
) -> Path:
    """The configuration beside a file; if it does not declare the file yet, it does once that is confirmed.

    ``yes`` confirms the proposal, and the proposed budget unless one is given; so does naming the level of protection.
    Whom the rows belong to is never assumed: where a column may tell people apart, its name or "none" is the ``unit``.
    """
    level = Protection.declare(protection or DEFAULT).level
    file, name, known = find_declared(source, config)
    if known is not None:
        declared = known.dataset.protection.level
        if protection is not None and declared is not level:
            raise ConfigurationError(
                f'{file} declares {name!r} with protection = "{declared}", not "{level}": change it there, or ask '
                "without --protection"
            )
        if budget is not None and read_budget(budget, "pure") != known.dataset.budget:
            raise ConfigurationError(
                f"{file} declares the budget of {name!r} already: ask without --budget, or have the controller allow "
                f"more with `idios ledger raise {shlex.quote(name)} --epsilon {budget}`"
            )
        if unit is not None and _split_unit(unit) != known.linked.get(name, known).dataset.unit:
            raise ConfigurationError(f"{file} declares already whose rows {name!r} has: ask without --unit")
        return file
    confirmed = yes or protection is not None
    proposal = propose(source, header, asked=confirmed or sys.stdin.isatty())
    belonging = _choose_unit(name, proposal, unit, asks=not confirmed and sys.stdin.isatty())
    changes = "person" if belonging.unit else "record"
    total = budget or (BUDGET if confirmed else _ask_budget([name], changes))
    spendable = read_budget(total, "pure")
    table = format_dataset(name, _write_path(source, file), proposal, spendable, level=level, belonging=belonging)
    confirm(proposal, name, file, level, yes=confirmed)
    head = "" if file.exists() else LEDGER
    with file.open("a", encoding="utf-8") as target:
        target.write(head + table)
    stderr.print(
        f"{file} now declares the data set {name!r}: the columns above, without bounds, which few statistics need; "
        f'protection = "{level}"; neighbours = "replace", so that one {changes} may change and their number is public; '
        f"budget = {total}, the ε of all questions together. Edit it there: bounds or a centre that are publicly known "
        "make answers more accurate.",
        highlight=False,
    )
    return file


def _split_unit(given: str) -> tuple[str, ...]:
    return () if given == EACH_RECORD else tuple(column.strip() for column in given.split(","))


def _choose_unit(name: str, proposal: Proposal, given: str | None, *, asks: bool) -> Belonging:
    """Whose rows a file has, as given or answered; it is not assumed where a column may tell people apart."""
    if given is not None and given != EACH_RECORD:
        refuse_unknown(_split_unit(given), proposal.kinds)
        return propose_unique(name, proposal, Belonging(unit=_split_unit(given)))
    proposed, told = propose_belonging({name: proposal})
    candidate = proposed[name].candidate
    if candidate and given is None:
        stderr.print("\n".join(told), highlight=False, markup=False)
        if not asks:
            raise ConfigurationError(PEOPLE.format(name=name, unit=shlex.quote(candidate)))
        chosen = Prompt.ask(
            f"What tells people apart? It cannot be changed later; {EACH_RECORD}: each record is protected by itself",
            choices=[candidate, EACH_RECORD],
            console=stderr,
        )
        return proposed[name] if chosen == EACH_RECORD else Belonging(unit=(chosen,))
    return proposed[name]


def _refuse_other_source(source: str, declared: str, name: str, file: Path) -> None:
    """A question about one file is never answered from another that is called alike."""
    if not exists(source.partition("::")[0]) and not has_magic(source):
        raise SourceError(describe_absent(source.partition("::")[0]))
    raise ConfigurationError(
        f"{file} declares {name!r}, and its source is not {source!r}: ask about {Path(declared).name!r}, or declare "
        f"{source!r} under another name"
        if not is_address(declared)  # an address may hold a password
        else f"{file} declares {name!r}, and its source is not {source!r}: declare that under another name"
    )


def find_declared(source: str, config: str | None) -> tuple[Path, str, DatasetConfig | None]:
    """The configuration beside a source, what it calls the source, and the data set that it is or is linked to.

    A source is known by what it is, whatever its data set is called; one that is not, by its name.
    """
    path, name = Path(source.partition("::")[0]), read_dataset_name(source)
    beside = next(folder for folder in path.parents if not has_magic(str(folder)) or exists(folder))
    file = Path(config) if config else (Path() if is_address(source) else beside) / "idios.toml"
    if not exists(file):
        return file, name, None
    configuration = read_configuration(file)
    tables = configuration.tables
    known = [each for each in tables if find_shared_sources({"declared": tables[each].source, "given": source})]
    if known and name not in known:
        name = known[0]
    elif name in tables and not known:
        _refuse_other_source(source, tables[name].source, name, file)
    return file, name, next((each for each in configuration.datasets.values() if name in each.tables), None)


def propose(
    source: str, header: bool | None = None, *, sample: bool = True, asked: bool = True, public: bool = False
) -> Proposal:
    """Look at a source: at its names and types, and at a sample of its records.

    If nobody is ``asked`` to confirm it, no records are read where there are types. Nobody is described in what is
    ``public``.
    """
    if is_address(source):
        described, sampled = describe_source(source), sample and asked
        proposed = propose_columns(source, described, None, {}, ROWS if sampled else 0, public=public)
        return Proposal(source, described, proposed, reads_records=sampled)
    found = find_files(source)
    refuse_mislabelled(found)
    format = propose_format(found.path, header) if found.kind is FileKind.CSV else None
    described = describe_source(source, format)
    untyped = found.kind in (FileKind.CSV, FileKind.JSON_LINES, FileKind.EXCEL)
    sampled = sample and (asked or untyped)
    labels, rows = read_value_labels(found), ROWS if sampled else 0
    proposed = propose_columns(source, described, format, labels, rows, public=public)
    return Proposal(source, described, proposed, format, reads_records=sampled or untyped)


def confirm(proposal: Proposal, name: str, file: Path, level: Level, *, yes: bool) -> None:
    """Show what would be declared; what was read from records counts only once the controller confirms it."""
    stderr.print(f"Proposed for the data set {name!r}:", highlight=False)
    for line in _describe(proposal):
        stderr.print(f"  {format_value(line)}", highlight=False, markup=False)
    if level is not DEFAULT:
        stderr.print(f'protection = "{level}": {ATTACK}', highlight=False)
    if not proposal.reads_records:
        stderr.print(UNREAD, highlight=False)
        return
    if proposal.csv_format is not None:
        stderr.print(f"  csv: {format_csv(proposal.csv_format)}", highlight=False)
    stderr.print(
        f"It was made by reading {_name_records(proposal)}. "
        f"{'It is' if yes else 'What you confirm is'} declared as public knowledge of the file, and kept from now on.",
        highlight=False,
    )
    if yes:
        return
    if not sys.stdin.isatty():
        raise ConfigurationError(
            f"nothing is written to {file} until the proposal is confirmed: add --yes, and {_offer_level(level)}"
        )
    stderr.print(f"Level: {_offer_level(level)}.", highlight=False)
    if not Confirm.ask("Declare it so?", default=False, console=stderr):
        raise ConfigurationError(
            f"nothing was written; declare the data set in {file} by hand, or with `idios init` and its options"
        )


def _offer_level(level: Level) -> str:
    """What the level will be, and how the other is chosen."""
    other = Level.INDIVIDUAL if level is Level.DIFFERENTIAL else Level.DIFFERENTIAL
    return f'protection = "{level}" is declared, unless --protection {other} chooses the other level'


def _count_columns(proposal: Proposal, listed: Container[str]) -> str:
    kept = sum(column in proposal.schema or column in listed for column in proposal.kinds)
    return f"{kept} of {len(proposal.columns)} columns" if kept < len(proposal.columns) else f"{kept} columns"


def _name_records(proposal: Proposal) -> str:
    sample = proposal.schema.sample
    return str(sample) if sample.records else "some records of the file"


def _describe(proposal: Proposal) -> list[str]:
    """The columns that would be declared: a line each, or for many of them a line for each kind."""
    proposed, notes = proposal.schema, proposal.schema.notes
    described = {
        column: describe_column(proposed[column]) if column in proposed else "" for column, _, _ in proposal.columns
    }
    if len(described) <= LINES:
        return [
            f"{column}: {'; '.join(part for part in (text, notes.get(column)) if part)}"
            for column, text in described.items()
        ]
    kinds: dict[str, list[str]] = {}
    for column, text in described.items():
        kinds.setdefault(text.partition(":")[0].partition(",")[0] or "left out", []).append(column)
    lines = [f"{len(names)} × {kind}: {_shorten(names)}" for kind, names in kinds.items()]
    with_missing = [column for column, text in described.items() if "missing:" in text]
    doubtful: dict[str, list[str]] = {}
    for column, advice in proposed.advice.items():
        doubtful.setdefault(advice, []).append(column)
    return [
        *lines,
        *([f"with values that mean missing: {_shorten(with_missing)}"] if with_missing else []),
        *(f"{_shorten(names)}: {advice}" for advice, names in doubtful.items()),
    ]


def _shorten(names: Sequence[str]) -> str:
    return ", ".join(names[:SHOWN]) + (f", … ({len(names) - SHOWN} more)" if len(names) > SHOWN else "")


def _ask_budget(names: Sequence[str], one: str) -> str:
    told = " and on ".join(map(repr, names))
    if not sys.stdin.isatty():
        raise ConfigurationError(
            f"the data set {told} is not declared yet, and has no budget: add --yes, which confirms what is proposed, "
            f"with a total ε of {BUDGET} unless --budget gives another"
        )
    stderr.print(EPSILON.format(one=one), highlight=False)
    return Prompt.ask(f"Total ε that may ever be spent on {told}", default=BUDGET, console=stderr)


def _check_datasets(text: str, names: Sequence[str]) -> None:
    """Refuse to write what could not be read again; a table of which no column is declared yet is to be filled in."""
    try:
        tables = tomllib.loads(text)["datasets"]
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"the bounds or values given cannot be written down: {error}") from None
    complete = {name: declare(name, tables[name]) for name in names if tables[name].get("columns")}
    if len(complete) == len(names):
        link_datasets(complete)

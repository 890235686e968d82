"""Files without a configuration: one is proposed, confirmed by the controller, and written beside them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.prompt import Confirm, Prompt

from idios.backends.base import CsvFormat, Progress, describe_source
from idios.backends.csv import propose_format
from idios.cli.show import errors
from idios.config import read_configuration
from idios.core.domain import Kind
from idios.core.exact import positive, text
from idios.errors import ConfigurationError, SourceError
from idios.party import TrustedParty

Header = Annotated[
    bool | None,
    typer.Option("--header/--no-header", help="Whether a csv file begins with names; found out where that is clear."),
]
Yes = Annotated[
    bool, typer.Option("--yes", "-y", help="Confirm what is proposed for a csv file that is not declared yet.")
]

LEVELS = """\
# The level of protection (docs/limits.md); choose one.
# individual, group: noise fitted to the actual data. Whatever ε, one MEDIAN of a column of 0s and 1000s shows on
#   which side of a threshold the data lies; so a server needs analysts = "trusted" beside them.
# differential: holds whatever the data, against any attacker. Statistics need bounds; medians and the like can do with
#   a delta instead, which every question that uses it spends.
protection = "individual"
# protection = "group"         # the same for up to `group` records together
# group = 5
# protection = "differential"
# delta = 1e-6
# analysts = "trusted"         # no analyst will try to find out about single records
# release_seconds = 0.25  # on a server: answers leave at 0.25, 0.5, 1, 2, … seconds, so that time tells nothing; \
default at "differential\""""
"""What a controller chooses between, with its consequences."""


@dataclass(frozen=True)
class Asked:
    """A question and where it goes: to a configuration, or to a file that gets one."""

    sql: str
    source: str | None
    config: str | None
    budget: str | None
    header: bool | None = None
    yes: bool = False


@contextmanager
def opened(asked: Asked, progress: Progress | None = None) -> Iterator[TrustedParty]:
    """The party that answers the question."""
    config = Path(asked.config) if asked.config else Path("idios.toml")
    if asked.source is not None:
        config = configured(asked.source, asked)
    with TrustedParty.from_config(config, progress=progress) as party:
        yield party


def configured(source: str, asked: Asked) -> Path:
    """The configuration beside a file; if it does not declare the file yet, it does once that is confirmed."""
    path = Path(source.partition("::")[0])
    file = Path(asked.config) if asked.config else path.parent / "idios.toml"
    name = dataset_name(source)
    if file.exists():
        declared = read_configuration(file).datasets
        if name in declared:
            return file
    proposal = propose(source, asked.header)
    total = asked.budget or _asked_budget(name)
    positive(total, "budget")
    relative = source if path.is_absolute() and file.parent.resolve() != path.parent.resolve() else _beside(source)
    written = dataset_text(name, relative, proposal, total)
    confirm(proposal, name, file, yes=asked.yes)
    head = "" if file.exists() else ledger_text()
    with file.open("a", encoding="utf-8") as target:
        target.write(head + written)
    errors.print(f"{file} now declares the data set {name!r}.", highlight=False)
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
    """Show what would be declared; what was found by reading records counts once the controller has confirmed it."""
    errors.print(f"Proposed for the data set {name!r}:", highlight=False)
    for column, kind, _ in proposal.columns:
        shown = "text, left out until its values are declared" if kind is Kind.CATEGORY else str(kind)
        errors.print(f"  {column}: {shown}", highlight=False, markup=False)
    if proposal.csv_format is None:
        return
    errors.print(f"  csv: {_format_text(proposal.csv_format)}", highlight=False, markup=False)
    errors.print(
        "It was made by reading the first records of the file. What you confirm is declared as public knowledge of the "
        "file, and is kept from now on.",
        highlight=False,
    )
    if yes:
        return
    if not sys.stdin.isatty():
        raise ConfigurationError(f"nothing is written to {file} until the proposal is confirmed: add --yes")
    if not Confirm.ask("Declare it so?", default=False, console=errors):
        raise ConfigurationError(
            f"nothing was written; declare the data set in {file} by hand, or with `idios init` and its options"
        )


def dataset_name(source: str) -> str:
    """The name of a file's data set: its table, or its stem."""
    path, _, table = source.partition("::")
    return table or Path(path).stem


def ledger_text() -> str:
    """The part of a configuration that says where the ledger is."""
    return """# The trusted party's configuration: everything in it is public.

[ledger]
url = "sqlite:///ledger.db"    # or postgresql://…
key_file = "ledger.key"        # signs the chain of entries; keep a copy elsewhere
"""


def dataset_text(
    name: str,
    source: str,
    proposal: Proposal,
    budget: str,
    bounds: Mapping[str, tuple[str, str]] | None = None,
    values: Mapping[str, Sequence[str]] | None = None,
) -> str:
    """The table of one data set, with the choices a controller has as comments."""
    lines = [
        "",
        f"[datasets.{_quoted_key(name)}]",
        f"source = {_quoted(source)}",
        *([f"csv = {_format_text(proposal.csv_format)}"] if proposal.csv_format else []),
        f"budget = {text(positive(budget, 'budget'))}  # ε over all analysts; to raise it later: idios ledger raise",
        'neighbours = "replace"         # one record changes, n is public; or "add-remove"',
        LEVELS,
        "min_epsilon = 0.05             # the least ε of every released cell; medians of n groups take n × 0.05",
        "",
        f"[datasets.{_quoted_key(name)}.columns]",
        "# bounds = [lower, upper] make sums, means and extremes answerable: state what is publicly known, never",
        "# what the data shows. Columns may miss values unless nullable = false is declared.",
    ]
    for column, kind, decimals in proposal.columns:
        key = _quoted_key(column)
        known = (bounds or {}).get(column)
        listed = (values or {}).get(column)
        if listed is not None:
            shown = ", ".join(_quoted(value) for value in listed)
            lines.append(f'{key} = {{ type = "category", values = [{shown}] }}')
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


def _beside(source: str) -> str:
    path, mark, table = source.partition("::")
    return f"{Path(path).name}{mark}{table}"


def _asked_budget(name: str) -> str:
    if not sys.stdin.isatty():
        raise ConfigurationError(f"the data set {name!r} has no budget yet: give its total ε once, such as --budget 10")
    return Prompt.ask(f"Total ε that may ever be spent on {name!r}", default="10", console=errors)


def _format_text(format: CsvFormat) -> str:
    """A csv format as the configuration has it."""
    parts = [f"delimiter = {_quoted(format.delimiter)}", f"header = {str(format.header).lower()}"]
    parts += [f"decimal = {_quoted(format.decimal)}"] if format.decimal != "." else []
    parts += [f"encoding = {_quoted(format.encoding)}"] if format.encoding != "utf-8" else []
    return f"{{ {', '.join(parts)} }}"


def _quoted(value: str) -> str:
    """A basic string of TOML, which escapes as JSON does and DEL too."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _quoted_key(name: str) -> str:
    bare = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if bare else _quoted(name)

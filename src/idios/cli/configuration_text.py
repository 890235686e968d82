"""The text of a configuration: what ``idios init`` writes of a data set, with a controller's choices as comments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from json import dumps
from typing import Any

from idios.core.calibration import DEFAULT, Level
from idios.core.domain import Kind
from idios.core.exact import text
from idios.data.backend import CsvFormat
from idios.declare.schema import Budget
from idios.display import is_harmless
from idios.propose.proposals import Schema

LEDGER = """\
# The trusted party's configuration: everything in it is public.

[ledger]
url = "sqlite:///ledger.db"    # or postgresql://…
key_file = "ledger.key"        # signs the chain of entries; keep a copy elsewhere
"""
"""The part of a configuration that says where the ledger is."""

LEVELS = """\
# The level of protection (docs/promise.md, docs/limits.md); choose one. differential: ε for each record of any data
# that there could be; individual: ε for each record of the data as it is.
# differential: holds whatever the data, against any attacker, with bounds or without; the level for most.
{differential}protection = "differential"
# individual, group: noise fitted to the actual data. Whatever ε, one MEDIAN of a column of 0s and 1000s shows on
#   which side of a threshold the data lies; so a server needs analysts = "trusted" beside them.
{individual}protection = "individual"
# protection = "group"         # the same for up to `group` records together, with ε, 2ε, …
# group = 5                    # or {{ size = 5, growth = "flat" }}: a household of five like one person
# analysts = "trusted"         # no analyst will try to find out about single records
# release_seconds = 0.25  # on a server: answers leave at 0.25, 0.5, 1, 2, … seconds, so that time tells nothing; \
default at "differential\""""
"""What a controller chooses between, with its consequences; the levels not chosen are comments."""
ACCOUNTING = (
    '# What adds up to the budget. "pure": the ε of all answers, a promise without exception. "concentrated": their ρ,',
    '# about ε²/2, so that many more fit into { epsilon = 5, delta = "1e-6" }; it may fail, with the probability δ.',
)
"""Between which accountings a controller chooses."""


@dataclass(frozen=True)
class Proposal:
    """A source, its columns and of a csv file the format, as they would be declared; perhaps records were read."""

    source: str
    columns: Sequence[tuple[str, Kind, int]]
    schema: Schema
    csv_format: CsvFormat | None = None
    reads_records: bool = False

    @property
    def kinds(self) -> dict[str, Kind]:
        """The kind of each column."""
        return {name: kind for name, kind, _ in self.columns}


@dataclass(frozen=True)
class Belonging:
    """What is declared of whose rows a table holds, and what is proposed: each as a line, and why."""

    unit: tuple[str, ...] = ()
    links: Mapping[str, str] = field(default_factory=dict)
    public: bool = False
    linked: bool = False
    """Whether the rows are those of another data set's people, who pay and are protected there."""
    proposed: Sequence[str] = ()
    candidate: str = ""
    """What may tell people apart who have several rows."""

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns that are no facts to ask about."""
        return *self.unit, *self.links

    def write(self) -> list[str]:
        """The lines of the configuration."""
        unit = ", ".join(map(quote_text, self.unit))
        links = ", ".join(f"{quote_key(column)} = {quote_text(target)}" for column, target in self.links.items())
        return [
            *(["public = true"] if self.public else []),
            *([f"unit = {unit if len(self.unit) == 1 else f'[{unit}]'}"] if self.unit else []),
            *([f"links = {{ {links} }}"] if self.links else []),
            *self.proposed,
        ]


def format_dataset(
    name: str,
    source: str,
    proposal: Proposal,
    budget: Budget,
    bounds: Mapping[str, tuple[str | None, str | None]] | None = None,
    values: Mapping[str, Sequence[str]] | None = None,
    level: Level = DEFAULT,
    belonging: Belonging | None = None,
) -> str:
    """The table of one data set, with the choices a controller has as comments."""
    total, accounting = text(budget.epsilon), "pure"
    if budget.concentrated:
        total, accounting = f'{{ epsilon = {total}, delta = "{text(budget.delta)}" }}', "concentrated"
    owned = belonging or Belonging()
    change = "person changes with all their rows" if owned.unit else "record changes"
    marks = {each.value: "" if each is level else "# " for each in Level}
    nulls = "  # nulls read as missing, in every column" if proposal.csv_format and proposal.csv_format.nulls else ""
    lines = [
        "",
        f"[datasets.{quote_key(name)}]",
        f"source = {quote_text(source)}",
        *([f"csv = {format_csv(proposal.csv_format)}{nulls}"] if proposal.csv_format else []),
        *owned.write(),
    ]
    promise = [
        *ACCOUNTING,
        f'accounting = "{accounting}"',
        f"budget = {total}  # over all analysts; to raise it later: idios ledger raise",
        f'neighbours = "replace"         # one {change}, n is public; or "add-remove"',
        LEVELS.format(**marks),
        "# check = 0.2                  # the share of ε that tells how many records off answers are",
        "min_epsilon = 0.05             # the least ε of every released cell; medians of n groups take n × 0.05",
    ]
    # what is public has no budget, and rows of another data set's people are paid and protected there
    lines += [] if owned.public or owned.linked else promise
    lines += [
        "",
        f"[datasets.{quote_key(name)}.columns]",
        "# bounds = [lower, upper] make MIN and MAX answerable and the rest more accurate; where none are known,",
        "# centre = 30000 says about where values lie. State what is publicly known, never what the data shows.",
        "# Columns may miss values unless nullable = false is declared.",
    ]
    for column, kind, _ in proposal.columns:
        key = quote_key(column)
        known = (bounds or {}).get(column)
        listed = (values or {}).get(column)
        if column in owned.keys:
            lines.append(f"# {key} is a key: it tells rows apart, and nothing is asked about it")
        elif listed is not None:
            values_text = ", ".join(quote_text(value) for value in listed)
            lines.append(f'{key} = {{ type = "category", values = [{values_text}] }}')
        elif column in proposal.schema:
            table = dict(proposal.schema[column]) | ({} if known is None else {"bounds": known})
            lines.append(f"{key} = {write_table(table)}{_write_advice(proposal.schema, column)}")
        elif column in proposal.schema.offers:
            offered = write_table(proposal.schema.offers[column])
            lines.append(f"# {key} = {offered}{_write_advice(proposal.schema, column)}")
        elif column in proposal.schema.advice:
            lines.append(f"# {key}{_write_advice(proposal.schema, column)}")
        elif kind is Kind.CATEGORY:
            lines.append(
                f'# {key} = {{ type = "category", values = ["…"] }}  # text: declare its values to ask about it'
            )
        else:
            lines.append(f'# {key} = {{ type = "{kind}" }}  # a key, left out')
    return "\n".join(lines) + "\n"


def _write_advice(schema: Schema, column: str) -> str:
    """A comment, which may have neither ends of lines nor other control characters, as labels may."""
    advice = "".join(mark if mark.isprintable() else " " for mark in schema.advice.get(column, ""))
    return f"  # {advice}" if advice else ""


def write_table(table: Mapping[str, Any]) -> str:
    """What is declared of a column, as an inline table of TOML.

    >>> write_table({"values": {"1": "male", "2": "female"}}), write_table({"type": "integer", "missing": [99]})
    ('{ values = { 1 = "male", 2 = "female" } }', '{ type = "integer", missing = [99] }')
    """
    return f"{{ {', '.join(f'{key} = {_write_value(key, value)}' for key, value in table.items())} }}"


def _write_value(key: str, value: Any) -> str:
    if key == "bounds":  # as they were typed
        low, high = value
        return quote_text(f"{low or ''}..{high or ''}") if None in value else f"[{low}, {high}]"
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{quote_key(code)} = {quote_text(label)}' for code, label in value.items())} }}"
    if isinstance(value, list):
        return f"[{', '.join(_write_value('', each) for each in value)}]"
    return str(value) if isinstance(value, int) else quote_text(value)


def format_csv(format: CsvFormat) -> str:
    """A csv format as the configuration has it."""
    parts = [f"delimiter = {quote_text(format.delimiter)}", f"header = {str(format.header).lower()}"]
    parts += [f"decimal = {quote_text(format.decimal)}"] if format.decimal != "." else []
    parts += [f"thousands = {quote_text(format.thousands)}"] if format.thousands else []
    parts += [f"encoding = {quote_text(format.encoding)}"] if format.encoding != "utf-8" else []
    parts += [f"nulls = [{', '.join(map(quote_text, format.nulls))}]"] if format.nulls else []
    return f"{{ {', '.join(parts)} }}"


def quote_text(value: str) -> str:
    """A basic string of TOML, which escapes as JSON does; beyond 16 bits it has escapes of its own."""
    written = dumps(value, ensure_ascii=False)
    harmful = {c for c in written if not is_harmless(c)}
    return written.translate({ord(c): f"\\u{ord(c):04x}" if c <= "\uffff" else f"\\U{ord(c):08x}" for c in harmful})


def quote_key(name: str) -> str:
    """A key of TOML, bare where it can be."""
    bare = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if bare else quote_text(name)

"""What ``idios init`` writes of people: units, links and public tables, declared by options or proposed as comments.

    orders.customer_id ── its values repeat ──▶ # unit = "customer_id"
    orders.customer_id ── is in ──▶ customers.id, which is unique ──▶ # links = { customer_id = "customers.id" }

Rules:

1. Nothing is declared that the controller has not written or confirmed: what is found in the data is a comment.
2. A configuration is public, so a comment tells no number. The controller is told them beside it.
3. A column is tried only if its name is that of a key: all others are measures or facts, whose values are left alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from idios.cli.configuration_text import Belonging, Proposal, quote_key, quote_text
from idios.core.domain import Kind
from idios.data.backend import DataSource, DeclarationReport, open_source
from idios.declare.schema import Dataset, Link
from idios.errors import InvalidInput, SourceError
from idios.propose.key_names import LEAST_MATCHED, find_subject, is_called_key, tells_people_apart
from idios.propose.samples import read_nothing


def read_belonging(
    tables: Sequence[str], units: Sequence[str], links: Sequence[str], public: Sequence[str]
) -> dict[str, Belonging]:
    """Read the options of ``idios init``: whose rows each table holds.

    >>> read = read_belonging(["people", "orders"], ["people=id", "orders=buyer"], ["orders.buyer=people.id"], [])
    >>> read["orders"].write(), read["orders"].linked
    (['unit = "buyer"', 'links = { buyer = "people.id" }'], True)
    """
    named_units, named_links = (
        dict(_read_unit(given, tables) for given in units),
        [_read_link(given) for given in links],
    )
    for table in (*named_units, *public, *(table for table, _, _ in named_links)):
        if table not in tables:
            raise InvalidInput(f"there is no data set {table!r} among {', '.join(tables)}")
    followed = {table: {c: target for named, c, target in named_links if named == table} for table in tables}
    return {
        table: Belonging(
            unit=named_units.get(table, ()),
            links=followed[table],
            public=table in public,
            linked=any(target.partition(".")[0] not in public for target in followed[table].values()),
        )
        for table in tables
    }


def _read_unit(given: str, tables: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    table, mark, columns = given.rpartition("=")
    if not mark and len(tables) > 1:
        raise InvalidInput(f"of several data sets a unit is NAME=COLUMN, got {given!r}")
    return table if mark else tables[0], tuple(column.strip() for column in columns.split(","))


def _read_link(given: str) -> tuple[str, str, str]:
    source, mark, target = given.partition("=")
    table, dot, column = source.partition(".")
    if not (mark and dot and "." in target):
        raise InvalidInput(f"a link is DATASET.COLUMN=DATASET.COLUMN, got {given!r}")
    return table, column, target


UNIQUE = "# unique = true  # each value of this unit occurs once: questions are then as of records (docs/people.md)"
"""What is proposed of people who have one row each."""


@dataclass(frozen=True)
class FoundLink:
    """A column whose values are keys of another table, as far as ``matched`` of the ``given`` rows with a value go."""

    table: str
    column: str
    target: str
    key: str
    matched: int
    given: int

    @property
    def share(self) -> Fraction:
        """How much of them that is."""
        return Fraction(self.matched, max(1, self.given))

    def __str__(self) -> str:
        ends = f"{self.table}.{self.column} may be linked to {self.target}.{self.key}"
        return f"{ends}: {self.matched:,} of {self.given:,} rows with a key lead to a row there"


def propose_belonging(tables: Mapping[str, Proposal]) -> tuple[dict[str, Belonging], list[str]]:
    """Find what may be units and links; what a controller is told of it."""
    units: dict[str, str] = {}
    told: list[str] = []
    for name, table in tables.items():
        for column in _list_keys(name, table):
            report = _try_opening({name: table}, name, (column,), None)
            if report is not None and report.people is not None and _tells_people_apart(report):
                units.setdefault(name, column)
                told.append(f"{name}.{column} may be a unit: {report.people}")
    links = _find_links(tables)
    told += map(str, links)
    comments = {name: list(_write_comments(name, units.get(name), links)) for name in tables}
    return {name: Belonging(proposed=lines, candidate=units.get(name, "")) for name, lines in comments.items()}, told


def propose_unique(name: str, table: Proposal, declared: Belonging) -> Belonging:
    """What is declared, with a comment where each value of its unit occurs once."""
    report = _try_opening({name: table}, name, declared.unit, None) if declared.unit else None
    if report is None or report.people is None or report.people.rows_each[-1:] != (1,):
        return declared
    return replace(declared, proposed=[*declared.proposed, UNIQUE])


def _write_comments(name: str, unit: str | None, links: Sequence[FoundLink]) -> Iterator[str]:
    own = [link for link in links if link.table == name]
    into = [link for link in links if link.target == name]
    if not (unit or own or into):
        return
    yield "# Proposed from names and values; --unit, --link and --public of `idios init` declare it (docs/people.md)."
    if unit:
        yield f"# unit = {quote_text(unit)}  # its values repeat: if each is a person, they may have several rows"
    for key in dict.fromkeys(link.key for link in into):
        sources = ", ".join(f"{link.table}.{link.column}" for link in into if link.key == key)
        yield f"# unit = {quote_text(key)}  # {sources} leads here: if each is a person who may have rows there"
        yield UNIQUE
    if into:
        yield "# public = true  # or, if nobody is described in it: remove budget, accounting, neighbours, protection …"
    if own:
        kept = "" if all(link.matched == link.given for link in own) else "not all "
        listed = ", ".join(f"{quote_key(link.column)} = {quote_text(f'{link.target}.{link.key}')}" for link in own)
        yield f"# links = {{ {listed} }}  # {kept}their values are keys there"


def _list_keys(name: str, table: Proposal) -> list[str]:
    """The columns that are called like keys: whole numbers and text."""
    kinds = (Kind.INTEGER, Kind.CATEGORY)
    return [column for column, kind in table.kinds.items() if kind in kinds and is_called_key(column, name)]


def _tells_people_apart(report: DeclarationReport) -> bool:
    people = report.people
    if people is None or not people.rows_each:
        return False
    return tells_people_apart(people.people, report.rows - people.rows_of_nobody, people.rows_of_nobody)


def _find_links(tables: Mapping[str, Proposal]) -> list[FoundLink]:
    """The columns that lead to a key of another table by their names, and in part of their rows by their values."""
    found: dict[frozenset[tuple[str, str]], FoundLink] = {}
    for target, other in tables.items():
        for key in _list_keys(target, other):
            for name, table in tables.items():
                for column, kind in table.kinds.items():
                    ends = frozenset([(name, column), (target, key)])
                    if name == target or kind not in (Kind.INTEGER, Kind.CATEGORY):
                        continue
                    best = found[ends].share if ends in found else Fraction(0)
                    if find_subject(column, name) != find_subject(key, target) or best == 1:
                        continue
                    link = Link((column,), target, (key,))
                    report = _try_opening({name: table, target: other}, name, (column,), link)
                    if report is not None:
                        given = report.rows - report.links[0].missing
                        made = FoundLink(name, column, target, key, given - report.links[0].dangling, given)
                        if LEAST_MATCHED * made.share >= 1 and made.share > best:
                            found[ends] = made
    return list(found.values())


def _try_opening(
    tables: Mapping[str, Proposal], name: str, unit: tuple[str, ...], link: Link | None
) -> DeclarationReport | None:
    """Compare a table with what might be declared of it; None where keys repeat, or cannot be compared."""
    others = {
        other: Dataset(other, read_nothing(described.columns), public=True)
        for other, described in tables.items()
        if other != name
    }
    own = Dataset(
        name,
        read_nothing(tables[name].columns),
        unit=unit,
        unit_word="value",
        links=(link,) if link else (),
        tables=others,
    )
    linked = {other: DataSource(tables[other].source, tables[other].csv_format) for other in others}
    try:
        with open_source(tables[name].source, own, None, tables[name].csv_format, linked) as backend:
            return backend.check()
    except SourceError:
        return None

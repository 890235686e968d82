"""What a controller wrote as the source of a data set, taken apart."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import ibis.expr.datatypes as dt  # type: ignore[import-untyped]

from idios.backends.dialect import Dialect
from idios.backends.reading import Reading, read_column
from idios.core.domain import Kind
from idios.errors import SourceError
from idios.query.schema import Dataset

_PART = re.compile(r'"((?:[^"]|"")+)"|([^".]+)')


def table_name(written: str) -> tuple[str, ...]:
    """Split a table's name at its dots, outside of quotes.

    >>> table_name("people"), table_name('public."odd.name"')
    (('people',), ('public', 'odd.name'))
    """
    parts: list[str] = []
    at = 0
    while match := _PART.match(written, at):
        parts.append(match[1].replace('""', '"') if match[1] else match[2])
        at = match.end()
        if at == len(written):
            return tuple(parts)
        if written[at] != ".":
            break
        at += 1
    raise SourceError(f'a table is written as name, schema.name or schema."odd name", got {written!r}')


def readings(dataset: Dataset, held: Mapping[str, dt.DataType], dialect: Dialect) -> dict[str, Reading]:
    """How each declared column is read from a source that holds columns of some types."""
    refuse_absent(dataset, held)
    return {
        name: read_column(column, dialect.identifier(name), held[name], dialect)
        for name, column in dataset.columns.items()
    }


def refuse_absent(dataset: Dataset, held: Iterable[str]) -> None:
    """Say which declared columns a source lacks."""
    names = list(held)
    absent = [name for name in dataset.columns if name not in names]
    if absent:
        raise SourceError(
            f"the source of {dataset.name!r} has no column {', '.join(map(repr, absent))}; it has "
            f"{', '.join(map(repr, names))}"
        )


def described(held: Mapping[str, dt.DataType]) -> list[tuple[str, Kind, int]]:
    """The kinds that columns of some types would be declared as; columns that no kind can read are left out."""
    found = []
    for name, held_type in held.items():
        kind = _kind(held_type)
        if kind is not None:
            scale = held_type.scale if isinstance(held_type, dt.Decimal) else 0
            found.append((name, kind, scale or 0))
    return found


def _kind(held: dt.DataType) -> Kind | None:
    if isinstance(held, dt.Decimal):
        return Kind.INTEGER if held.scale == 0 else Kind.DECIMAL
    if held.is_integer() or held.is_boolean():
        return Kind.INTEGER
    if held.is_floating():
        return Kind.NUMBER
    if held.is_date():
        return Kind.DATE
    if held.is_timestamp():
        return Kind.TIMESTAMP
    return Kind.CATEGORY if held.is_string() else None

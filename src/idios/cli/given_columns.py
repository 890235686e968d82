"""What a controller gives of columns to ``idios init``: bounds and values, by options or when they are asked.

Each is checked when it is given, so that one that cannot be read is told with the way to write it, and nothing else
that was typed is lost.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterable, Mapping
from datetime import date
from typing import Any

from rich.prompt import Prompt
from rich.text import Text

from idios.cli.output import console, stderr
from idios.core.domain import Kind
from idios.declare.declared_columns import parse_bounds, read_column
from idios.errors import InvalidInput
from idios.sql.suggestions import find_nearest

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

"""Columns of the source as a controller declares them: a table of each one's type and what belongs to that.

A key that is not known is an error that lists the known ones; nothing is ignored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from idios.core.domain import Categories, Domain, Kind, default_step
from idios.core.exact import whole
from idios.errors import InvalidInput
from idios.query.calendar import since_1970
from idios.query.schema import Column

COLUMN_KEYS = ("type", "step", "bounds", "centre", "nullable", "values", "decimals")


def read_column(name: str, given: Any) -> Column:
    """Check one column.

    >>> read_column("age", {"type": "integer", "bounds": [0, 120], "nullable": False}).grid
    Domain(step=Fraction(1, 1), lower=0, upper=120, centre=0)
    """
    if isinstance(given, Column):
        return given
    if isinstance(given, str):
        given = {"type": given}
    if isinstance(given, Mapping) and "values" in given:
        given = {"type": "category", **given}
    if not isinstance(given, Mapping) or "type" not in given:
        raise InvalidInput(f'column {name!r} must be a table with a type, such as {{ type = "integer" }}')
    unknown = [key for key in given if key not in COLUMN_KEYS]
    if unknown:
        raise InvalidInput(f"column {name!r}: {unknown[0]!r} is not known; known are {', '.join(COLUMN_KEYS)}")
    declared = dict(given)
    if declared["type"] == "boolean":
        declared |= {"type": "integer", "bounds": (0, 1)}
    try:
        kind = Kind(declared["type"])
    except ValueError:
        types = ", ".join([*Kind, "boolean"])
        raise InvalidInput(f"column {name!r}: type must be one of {types}, got {declared['type']!r}") from None
    nullable = declared.get("nullable", True)
    if not isinstance(nullable, bool):
        raise InvalidInput(f"column {name!r}: nullable must be true or false, got {nullable!r}")
    try:
        domain = read_domain(kind, declared)
    except InvalidInput as error:
        raise InvalidInput(f"column {name!r}: {error}") from None
    return Column(name, kind, domain, nullable)


def read_domain(kind: Kind, given: Mapping[str, Any]) -> Domain | Categories:
    """Check what belongs to a column of some kind."""
    if kind is Kind.CATEGORY:
        for key in ("step", "bounds", "centre", "decimals"):
            if key in given:
                raise InvalidInput(f"{key} belongs to numeric columns; a category declares values")
        return read_values(given.get("values"))
    if "values" in given:
        raise InvalidInput("values belong to category columns")
    decimals = whole(given["decimals"], "decimals", least=0) if "decimals" in given else None
    if kind is Kind.DECIMAL and decimals is None and "step" not in given:
        raise InvalidInput("a decimal column declares its step, such as step = 0.01, or its decimals")
    step = given.get("step", default_step(kind, decimals or 0))
    bounds, centre = given.get("bounds"), given.get("centre")
    if kind in (Kind.DATE, Kind.TIMESTAMP):
        if bounds is not None:
            if not isinstance(bounds, Sequence) or isinstance(bounds, str) or len(bounds) != 2:
                raise InvalidInput(f"bounds must be a pair (lower, upper), got {bounds!r}")
            bounds = tuple(None if b is None else _read_moment(b, kind, "a bound") for b in bounds)
        if centre is not None:
            centre = _read_moment(centre, kind, "centre")
    return Domain.declare(step=step, bounds=bounds, centre=centre)


def read_values(given: Any) -> Categories:
    """Check the values of a category column: a list, or a table of what each is called.

    >>> read_values({1: "male", 2: "female"})
    Categories(values=('1', '2'), labels=('male', 'female'))
    """
    if isinstance(given, Mapping):
        return Categories(tuple(_write(code) for code in given), tuple(str(label) for label in given.values()))
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise InvalidInput(
            'a category column declares its values, such as values = ["a", "b"], or those of codes with their labels, '
            'such as values = { 1 = "male", 2 = "female" }'
        )
    return Categories(tuple(_write(value) for value in given))


def _write(value: Any) -> str:
    """A declared value as the engines write it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(int(value) if isinstance(value, float) and value.is_integer() else value)


def _read_moment(moment: Any, kind: Kind, what: str) -> Fraction:
    """What is declared of a date or timestamp column as a number."""
    try:
        return since_1970(moment, kind)
    except ValueError:
        raise InvalidInput(f"{what} must be a date such as 2026-01-31, got {moment!r}") from None

"""Columns of the source as a controller declares them: a table of each one's type and what belongs to that.

A key that is not known is an error that lists the known ones; nothing is ignored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from idios.core.domain import Categories, Domain, Kind, count_day, default_step
from idios.core.exact import exact, whole
from idios.declare.dates import check_format, since_1970
from idios.declare.schema import Column
from idios.errors import InvalidInput

COLUMN_KEYS = ("type", "step", "bounds", "centre", "nullable", "values", "decimals", "format", "missing")

MOST_MISSING = 100


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
        missing = read_missing(kind, declared.get("missing", []), domain)
        format = check_format(declared["format"], kind) if "format" in declared else ""
    except InvalidInput as error:
        raise InvalidInput(f"column {name!r}: {error}") from None
    return Column(name, kind, domain, nullable, missing=missing, format=format)


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
    if isinstance(bounds, str):
        bounds = parse_bounds(bounds)
    if kind in (Kind.DATE, Kind.TIMESTAMP):
        if bounds is not None:
            if not isinstance(bounds, Sequence) or isinstance(bounds, str) or len(bounds) != 2:
                raise InvalidInput(f"bounds must be a pair (lower, upper), got {bounds!r}")
            bounds = tuple(None if b is None else _read_moment(b, kind, "a bound") for b in bounds)
        if centre is not None:
            centre = _read_moment(centre, kind, "centre")
    return Domain.declare(step=step, bounds=bounds, centre=centre, day=count_day(kind))


def read_values(given: Any) -> Categories:
    """Check the values of a category column: a list, or a table of what each is called.

    >>> read_values({1: "male", 2: "female"})
    Categories(values=('1', '2'), labels=('male', 'female'))
    """
    if isinstance(given, Mapping):
        return Categories(tuple(_write(code) for code in given), tuple(str(label) for label in given.values()))
    if isinstance(given, set | frozenset):
        raise InvalidInput("the values of a category have an order, and a set has none: write a list")
    given = _to_list(given)
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise InvalidInput(
            'a category column declares its values, such as values = ["a", "b"], or those of codes with their labels, '
            'such as values = { 1 = "male", 2 = "female" }'
        )
    return Categories(tuple(_write(value) for value in given))


def _to_list(given: Any) -> Any:
    """The elements of an array or of a column of a frame; anything else as it is."""
    return given.tolist() if hasattr(given, "tolist") else given.to_list() if hasattr(given, "to_list") else given


def _write(value: Any) -> str:
    """A declared value as the engines write it."""
    if value is None or value != value or (isinstance(value, Sequence | Mapping) and not isinstance(value, str)):
        raise InvalidInput(f"a declared value is text, a number or true or false, got {value!r}: leave it out")
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(int(value) if isinstance(value, float) and value.is_integer() else value)


def read_missing(kind: Kind, given: Any, domain: Domain | Categories) -> tuple[Fraction | str, ...]:
    """Check the values that mean "missing".

    >>> read_missing(Kind.INTEGER, [9, 99], Domain())
    (Fraction(9, 1), Fraction(99, 1))
    """
    given = _to_list(given)
    if not isinstance(given, Sequence) or isinstance(given, str) or len(given) > MOST_MISSING:
        raise InvalidInput(f"missing must be a list of at most {MOST_MISSING} values such as [9, 99], got {given!r}")
    if isinstance(domain, Categories):
        texts = tuple(_write(value) for value in given)
        both = [value for value in texts if value in domain.values]
        if both:
            raise InvalidInput(f"{both[0]!r} is declared as a value and as missing")
        return texts
    if kind in (Kind.DATE, Kind.TIMESTAMP):
        return tuple(_read_moment(value, kind, "a missing value") for value in given)
    numbers = tuple(exact(value, "a missing value") for value in given)
    if any(abs(number) >= 10**18 or (number * 10**18).denominator != 1 for number in numbers):
        raise InvalidInput("missing values must have at most 18 digits before and 18 after the point")
    return numbers


def parse_bounds(written: str) -> tuple[str | None, str | None]:
    """Bounds as text, of which one may be left out.

    >>> parse_bounds("0..120"), parse_bounds("0..")
    (('0', '120'), ('0', None))
    """
    low, dots, high = written.partition("..")
    if not dots or not (low.strip() or high.strip()):
        raise InvalidInput(f"bounds are LOW..HIGH, such as 0..100000, or 0.. where only one is known, got {written!r}")
    return low.strip() or None, high.strip() or None


def _read_moment(moment: Any, kind: Kind, what: str) -> Fraction:
    """What is declared of a date or timestamp column as a number."""
    try:
        return since_1970(moment, kind)
    except ValueError:
        raise InvalidInput(f"{what} must be a date such as 2026-01-31, got {moment!r}") from None

"""Literals: what is written in a condition, as an exact place on a column's grid.

A column is its grid: the grid point g stands for the value g·step, so the literal c lies at c/step, exactly and
usually between two points. Dates count days and timestamps microseconds from 1970-01-01, without time zones.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction

from sqlglot import exp

from idios.core.domain import LIMIT, Categories, Kind
from idios.core.exact import text as number_text
from idios.query.schema import Column
from idios.query.text import Text
from idios.query.whitelist import offset, only

EPOCH = datetime(1970, 1, 1)
DAY = 86_400_000_000
"""Microseconds in a day."""

_MOMENT = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[ T]([0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?))?")
_NUMBER = re.compile(r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?0*[0-9]{1,3})?")
_FORMAT = "DATE '2026-01-31' or TIMESTAMP '2026-01-31 23:59:59'"


@dataclass(frozen=True)
class Moment:
    """A DATE or TIMESTAMP literal: microseconds since 1970-01-01."""

    microseconds: int


Value = Fraction | str | bool | Moment


def literal(text: Text, node: exp.Expression) -> Value | None:
    """The value of a literal; None for a node that is no literal."""
    if type(node) is exp.Neg:
        only(text, node, "this")
        value = literal(text, node.this)
        return -value if isinstance(value, Fraction) and type(node.this) is exp.Literal else None
    if type(node) is exp.Boolean:
        only(text, node, "this")
        return bool(node.this)
    if type(node) is exp.Literal:
        only(text, node, "this", "is_string")
        return str(node.this) if node.args.get("is_string") else _number(text, node)
    if type(node) is exp.Cast and type(node.this) is exp.Literal and node.this.args.get("is_string"):
        return _moment_literal(text, node)
    if type(node) is exp.Null:
        raise text.refuse("a comparison with NULL holds for no record: write IS NULL or IS NOT NULL", offset(node))
    return None


def place(text: Text, column: Column, value: Value, at: int | None) -> Fraction | None:
    """c/step, the place of a literal on a column's grid; None for a category that is not declared.

    A place beyond the ends of the grid is refused: no value is told apart there.

    >>> from idios.core.domain import Domain
    >>> from idios.query.text import cut
    >>> cents = Column("price", Kind.DECIMAL, Domain(Fraction(1, 100)))
    >>> place(cut("SELECT"), cents, Fraction("9.995"), None)
    Fraction(1999, 2)
    """
    if isinstance(column.domain, Categories):
        return _category(text, column, column.domain, value, at)
    step = column.domain.step
    if column.kind in (Kind.DATE, Kind.TIMESTAMP):
        unit = DAY if column.kind is Kind.DATE else 1
        number = Fraction(_microseconds(text, column, value, at), unit)
    elif isinstance(value, bool) and column.kind is Kind.INTEGER:
        number = Fraction(int(value))
    elif isinstance(value, Fraction):
        number = value
    else:
        raise text.refuse(f"{column.name} is a number: compare it with a number, written without quotes", at)
    if abs(number) > LIMIT * step:
        raise text.refuse(
            f"{column.name} is read in steps of {number_text(step)}, up to 2^62 of them either way: compare it with a "
            f"number within ±{float(LIMIT * step):.3g}",
            at,
        )
    return number / step


def show(column: Column, value: Fraction) -> str | Fraction:
    """What an analyst sees for a value of a column: itself, or a date or timestamp as text.

    >>> from idios.core.domain import Domain
    >>> show(Column("born", Kind.DATE, Domain()), Fraction(365))
    '1971-01-01'
    """
    if column.kind not in (Kind.DATE, Kind.TIMESTAMP):
        return value
    microseconds = value * DAY if column.kind is Kind.DATE else value
    try:
        moment = EPOCH + timedelta(microseconds=int(microseconds // 1))
    except OverflowError:
        return value
    return moment.date().isoformat() if column.kind is Kind.DATE else moment.isoformat(sep=" ")


def _number(text: Text, node: exp.Expression) -> Fraction:
    """The number as it is written, in the digits that the text may hold: what else Fraction reads is no literal."""
    written = str(node.this)
    if not _NUMBER.fullmatch(written):
        raise text.refuse(f"{written!r} is no number", offset(node))
    return Fraction(written)


def _moment_literal(text: Text, node: exp.Expression) -> Moment | None:
    only(text, node, "this", "to")
    only(text, node.this, "this", "is_string")
    to = node.args.get("to")
    if type(to) is not exp.DataType:
        return None
    only(text, to, "this")
    written = str(node.this.this)
    if to.this is exp.DataType.Type.DATE:
        moment = _moment(written, dates_only=True)
    elif to.this is exp.DataType.Type.TIMESTAMP:
        moment = _moment(written)
    else:
        return None
    if moment is None:
        raise text.refuse(f"{written!r} is no date: write {_FORMAT}, without a time zone", offset(node))
    return moment


def _moment(written: str, dates_only: bool = False) -> Moment | None:
    match = _MOMENT.fullmatch(written)
    if match is None or (dates_only and match[2]):
        return None
    try:
        moment = datetime.fromisoformat(written)
    except ValueError:
        return None
    return Moment((moment - EPOCH) // timedelta(microseconds=1))


def _microseconds(text: Text, column: Column, value: Value, at: int | None) -> int:
    if isinstance(value, str):
        moment = _moment(value, dates_only=column.kind is Kind.DATE)
        if moment is not None:
            return moment.microseconds
    if isinstance(value, Moment):
        return value.microseconds
    raise text.refuse(f"{column.name} is a {column.kind}: compare it with {_FORMAT}, without a time zone", at)


def _category(text: Text, column: Column, domain: Categories, value: Value, at: int | None) -> Fraction | None:
    if isinstance(value, bool) and set(domain.values) <= {"true", "false"}:
        value = "true" if value else "false"
    if not isinstance(value, str):
        raise text.refuse(f"{column.name} is a category: compare it with a string in single quotes", at)
    index = domain.read(value)
    return None if index is None else Fraction(index)

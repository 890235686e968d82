"""Literals: numbers, text, truth, NULL, dates and timestamps as they are written in SQL."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from sqlglot import exp

from idios.query.calendar import DAY, parse_moment
from idios.query.expressions import Expression, Literal, Type
from idios.query.lexer import QuestionText
from idios.query.parser import allow_only, offset_of

LITERALS = (exp.Literal, exp.Boolean, exp.Null, exp.Cast)
MOMENT_FORMAT = "DATE '2026-01-31' or TIMESTAMP '2026-01-31 23:59:59'"
REFERENCE_BITS = 256
"""How long a value of a row is expected to be."""

_NUMBER = re.compile(r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?0*[0-9]{1,3})?")
_MOMENTS = {exp.DataType.Type.DATE: Type.DATE, exp.DataType.Type.TIMESTAMP: Type.TIMESTAMP}


@dataclass(frozen=True)
class Typed:
    """An expression, and what is known of it: its type (None: it is NULL), the length of its numbers, its depth."""

    expression: Expression
    type: Type | None
    bits: int = REFERENCE_BITS
    depth: int = 1
    whole: bool = False

    @property
    def constant(self) -> bool:
        """Whether it is a literal."""
        return isinstance(self.expression, Literal)


def read_literal(text: QuestionText, node: exp.Expression) -> Typed:
    """A constant as it is written."""
    if type(node) is exp.Null:
        return Typed(Literal(None), None, 0)
    if type(node) is exp.Boolean:
        allow_only(text, node, "this")
        return Typed(Literal(bool(node.this)), Type.BOOLEAN, 1)
    if type(node) is exp.Cast:
        return _read_cast(text, node)
    allow_only(text, node, "this", "is_string")
    written = str(node.this)
    if node.args.get("is_string"):
        return Typed(Literal(written), Type.TEXT, 0)
    # what else Fraction reads is no literal
    if not _NUMBER.fullmatch(written):
        raise text.refusal(f"{written!r} is no number", offset_of(node))
    value = Fraction(written)
    bits = value.numerator.bit_length() + value.denominator.bit_length()
    return Typed(Literal(value), Type.NUMBER, bits, 1, value.denominator == 1)


def _read_cast(text: QuestionText, node: exp.Expression) -> Typed:
    allow_only(text, node, "this", "to")
    to, inner = node.args.get("to"), node.this
    if type(to) is exp.DataType and type(inner) is exp.Literal and inner.args.get("is_string") and to.this in _MOMENTS:
        allow_only(text, to, "this")
        return read_moment(text, str(inner.this), _MOMENTS[to.this], node)
    raise text.refusal(f"casts are not supported: write {MOMENT_FORMAT}", offset_of(node))


def read_moment(text: QuestionText, written: str, kind: Type, node: exp.Expression) -> Typed:
    """The date or timestamp that a text says."""
    found = parse_moment(written, dates_only=kind is Type.DATE)
    if found is None:
        raise text.refusal(f"{written!r} is no date: write {MOMENT_FORMAT}, without a time zone", offset_of(node))
    return Typed(Literal(Fraction(found, DAY if kind is Type.DATE else 1)), kind, 64, 1, True)

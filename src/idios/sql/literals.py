"""Literals: numbers, text, truth, NULL, dates and timestamps as a question writes them, with their types."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fractions import Fraction

from idios.core.domain import Categories
from idios.core.exact import text as number_text
from idios.declare.dates import DAY, parse_moment
from idios.declare.schema import Column
from idios.expressions.language import Expression, Literal, Type, Value
from idios.sql.lexer import QuestionText
from idios.sql.parser import Moment, Null, Number, String, SyntaxNode, Truth
from idios.sql.suggestions import find_nearest, list_some

MOMENT_FORMAT = "DATE '2026-01-31' or TIMESTAMP '2026-01-31 23:59:59'"
LONGEST_SHOWN = 60
"""How many characters of a literal a message repeats."""
REFERENCE_BITS = 256
"""How long a value of a row is expected to be."""

_NUMBER = re.compile(r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?0*[0-9]{1,3})?")
_DOTTED = re.compile(r"([0-9]{1,2})\.([0-9]{1,2})\.([0-9]{4})")
LITERALS = (Number, String, Truth, Null, Moment)
_MOMENTS = {"DATE": Type.DATE, "TIMESTAMP": Type.TIMESTAMP}


@dataclass(frozen=True)
class TypedExpression:
    """An expression, and what is known of it: its type (None: it is NULL), the length of its numbers, its depth."""

    expression: Expression
    type: Type | None
    bits: int = REFERENCE_BITS
    depth: int = 1
    whole: bool = False
    column: Column | None = None
    """The column of categories that it stands for, whose values constants name."""
    released: bool = False
    """Whether its values were released, and so are labels where the column has some."""
    offset: int | None = field(default=None, compare=False)
    """Where a literal stands in the text."""
    written: str = field(default="", compare=False)
    """A number as it is written."""

    @property
    def constant(self) -> bool:
        """Whether it is a literal."""
        return isinstance(self.expression, Literal)

    @property
    def value(self) -> Value:
        """The value of a literal; None if it is NULL, or no literal."""
        return self.expression.value if isinstance(self.expression, Literal) else None


def read_literal(text: QuestionText, node: SyntaxNode) -> TypedExpression:
    """Read a number, text, TRUE, FALSE, NULL, DATE '…' or TIMESTAMP '…'."""
    if isinstance(node, Number):
        value = Fraction(node.written)
        bits = value.numerator.bit_length() + value.denominator.bit_length()
        whole = value.denominator == 1
        return TypedExpression(Literal(value), Type.NUMBER, bits, 1, whole, offset=node.start, written=node.written)
    if isinstance(node, String):
        return TypedExpression(Literal(node.value), Type.TEXT, 0, offset=node.start)
    if isinstance(node, Truth):
        return TypedExpression(Literal(node.value), Type.BOOLEAN, 1, offset=node.start)
    if isinstance(node, Moment):
        return make_moment(text, node.written, _MOMENTS[node.kind], node)
    return TypedExpression(Literal(None), None, 0)


def find_category(text: QuestionText, column: Column, constant: TypedExpression, at: int | None = None) -> int:
    """The index of the declared value that a constant names: by its text, its number or its label.

    Of codes that are equal as numbers, a number names the one that is written like it.
    Whatever else it names holds for no record, and so is a typo: it is refused, wherever it is compared.
    """
    domain, value = column.domain, constant.value
    if not isinstance(domain, Categories):
        raise AssertionError("only categories have values to be named")
    if isinstance(value, bool) and set(domain.values) <= {"true", "false"}:
        value = "true" if value else "false"
    numbered = constant.type is Type.NUMBER and bool(domain.numbers)
    at = at if constant.offset is None else constant.offset
    if not isinstance(value, str) and not numbered:
        raise text.refusal(f"{column.name} is a category: compare it with a string in single quotes", at)
    written = value if isinstance(value, str) else str(number_text(Fraction(value or 0)))
    if isinstance(value, str):
        index = domain.find(value)
    else:
        alike = {domain.values[i]: i for i in domain.numbers.get(Fraction(value or 0), ())}
        spelt = constant.written or written
        if len(alike) > 1 and spelt not in alike:
            codes = list_some([quote_string(code) for code in alike])
            raise text.refusal(f"{spelt} could be several values of {column.name}: write one of {codes}", at)
        index = alike.get(spelt, next(iter(alike.values()), None))
    if index is not None:
        return index
    if written in column.missing:
        raise text.refusal(f"{written} is declared to mean that {column.name} is missing: write IS NULL", at)
    if written in column.null_words:
        raise text.refusal(f"{quote_string(written)} is NULL in the file: write {column.name} IS NULL", at)
    short = written if len(written) <= LONGEST_SHOWN else f"{written[:LONGEST_SHOWN]}…"
    shown = quote_string(short) if isinstance(value, str) else short
    raise text.refusal(f"{shown} is no declared value of {column.name}. {_offer_values(written, domain)}", at)


def _offer_values(written: str, domain: Categories) -> str:
    """The value that was probably meant, or some of those that are declared; of numbers none is nearer."""
    meant = None if _NUMBER.fullmatch(written) else find_nearest(written, [*domain.labels, *domain.values])
    if meant is not None:
        blanks = ""
        if meant.strip().casefold() == written.strip().casefold() and len(meant) != len(written):
            blanks = f", {'with' if len(meant) > len(written) else 'without'} a blank at its end or beginning"
        return f"Did you mean {quote_string(meant)}{blanks}?"
    labelled = [f"{value} {label}" for value, label in zip(domain.values, domain.labels, strict=False)]
    return f"Declared: {list_some(labelled or [quote_string(value) for value in domain.values])}"


def quote_string(value: str) -> str:
    """A text as a question writes it.

    >>> quote_string("it's")
    "'it''s'"
    """
    return "'" + value.replace("'", "''") + "'"


def make_moment(text: QuestionText, written: str, kind: Type, node: SyntaxNode) -> TypedExpression:
    """The date or timestamp that a text says."""
    found = parse_moment(written, dates_only=kind is Type.DATE)
    if found is None:
        form = rewrite_date(written) or f"{MOMENT_FORMAT}, without a time zone"
        raise text.refusal(f"{written!r} is no date: write {form}", node.start)
    return TypedExpression(Literal(Fraction(found, DAY if kind is Type.DATE else 1)), kind, 64, 1, True)


def rewrite_date(written: str) -> str | None:
    """A day, a month and a year between dots as a question writes them; None if it is no such date.

    >>> rewrite_date("31.1.2026"), rewrite_date("31.13.2026"), rewrite_date("1/2/2026")
    ("DATE '2026-01-31'", None, None)
    """
    parts = _DOTTED.fullmatch(written.strip())
    if parts is None:
        return None
    iso = f"{parts[3]}-{int(parts[2]):02}-{int(parts[1]):02}"
    return None if parse_moment(iso, dates_only=True) is None else f"DATE '{iso}'"

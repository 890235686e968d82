"""After the release: what is computed from released values, and which rows of them are shown, in which order.

    released rows ─ HAVING ─▶ ORDER BY ─▶ LIMIT ─▶ the SELECT list ─▶ perhaps a SELECT around it, which does the same

Theorem. This costs nothing and changes no guarantee.
Proof. A private mechanism followed by any function of its output alone is as private as the mechanism. Here the input
is what is released, whole and stored, and public facts; the data is never read. ∎

So what is charged, and the key under which an answer is stored, follow from the released statistics alone. A statistic
that stands only in HAVING, ORDER BY or CASE is released as well. Rows that HAVING or LIMIT hide were released too.

A released row has the values of the GROUP BY keys and then those of the statistics; ``Reference(i)`` is its i-th. The
rows come in the order of the keys as they are written, the first one slowest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from typing import TypeAlias

from idios.query.expressions import Expression, Literal, Reference, Type, Value, evaluate, substitute, walk
from idios.query.work import CHARACTERS

Values: TypeAlias = tuple[Value, ...]

SHORT = 400
"""Bits of a fraction that is shown as it is; a longer one is rounded to ``DIGITS``."""
DIGITS = 60


@dataclass(frozen=True)
class Item:
    """One column of a SELECT list; ``written`` is how the analyst wrote it, ``whole`` whether its numbers are.

    ``bits`` is how long its numbers may be, through all SELECTs inside.
    """

    label: str
    expression: Expression
    type: Type | None
    whole: bool = False
    written: str = field(default="", compare=False)
    bits: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Order:
    """One part of ORDER BY; NULL comes last unless asked for first."""

    expression: Expression
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True)
class Fold:
    """One aggregate of a SELECT around another, over the rows of a group; without an argument it counts them."""

    function: str
    argument: Expression | None = None


@dataclass(frozen=True)
class Select:
    """One SELECT over rows.

    Where ``folds`` is given, rows that fulfil ``where`` are grouped by ``keys``, and the rest is about the values of
    keys and folds; the innermost SELECT has none, since what it groups is the data.
    """

    items: tuple[Item, ...]
    where: Expression | None = None
    keys: tuple[Expression, ...] = ()
    folds: tuple[Fold, ...] | None = None
    having: Expression | None = None
    order: tuple[Order, ...] = ()
    limit: int | None = None
    offset: int = 0


@dataclass(frozen=True)
class Row:
    """A row that is shown, and the number of the released row that it comes from; None if it comes from several."""

    values: Values
    origin: int | None


def apply_selects(selects: Sequence[Select], released: Sequence[Values]) -> list[Row]:
    """Compute and choose what is shown of released rows."""
    rows = [Row(values, i) for i, values in enumerate(released)]
    for select in selects:
        rows = _apply(select, rows)
    return rows


def _apply(select: Select, rows: list[Row]) -> list[Row]:
    if select.where is not None:
        rows = [row for row in rows if evaluate(select.where, row.values) is True]
    if select.folds is not None:
        rows = _group(select, rows)
    if select.having is not None:
        rows = [row for row in rows if evaluate(select.having, row.values) is True]
    for part in reversed(select.order):
        rows = _sort(part, rows)
    rows = rows[select.offset : None if select.limit is None else select.offset + select.limit]
    return [
        Row(tuple(shorten(evaluate(item.expression, row.values)) for item in select.items), row.origin) for row in rows
    ]


def _sort(part: Order, rows: list[Row]) -> list[Row]:
    keyed = [(evaluate(part.expression, row.values), row) for row in rows]
    known = [pair for pair in keyed if pair[0] is not None]
    known.sort(key=lambda pair: pair[0], reverse=part.descending)  # type: ignore[arg-type,return-value]
    ordered, missing = [row for _, row in known], [row for value, row in keyed if value is None]
    return missing + ordered if part.nulls_first else ordered + missing


def _group(select: Select, rows: Sequence[Row]) -> list[Row]:
    """One row for each group that there is, and the only one where there are no keys; as they first occur."""
    groups: dict[Values, list[Row]] = {} if select.keys else {(): []}
    for row in rows:
        groups.setdefault(tuple(evaluate(key, row.values) for key in select.keys), []).append(row)
    return [
        Row((*keys, *(_fold(fold, grouped) for fold in select.folds or ())), None) for keys, grouped in groups.items()
    ]


def _fold(fold: Fold, rows: Sequence[Row]) -> Value:
    if fold.argument is None:
        return Fraction(len(rows))
    values = [evaluate(fold.argument, row.values) for row in rows]
    return FOLDS[fold.function]([value for value in values if value is not None])


def _sum(values: Sequence[Fraction]) -> Fraction | None:
    total = Fraction(0)
    for value in values:
        total = shorten_number(total + value)
    return total if values else None


def _average(values: Sequence[Fraction]) -> Fraction | None:
    total = _sum(values)
    return None if total is None else total / len(values)


def _middle(values: Sequence[Fraction]) -> Fraction | None:
    ordered = sorted(values)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2 if ordered else None


FOLDS: Mapping[str, Callable[..., Value]] = {
    "COUNT": lambda values: Fraction(len(values)),
    "SUM": _sum,
    "AVG": _average,
    "MEAN": _average,
    "MIN": lambda values: min(values, default=None),
    "MAX": lambda values: max(values, default=None),
    "MEDIAN": _middle,
}
"""The aggregates of a SELECT around another, of values that are not NULL."""


def shorten(value: Value) -> Value:
    """A value as it is shown: exact, unless it is a fraction that is longer than anybody could read."""
    return shorten_number(value) if isinstance(value, Fraction) else value


def shorten_number(number: Fraction) -> Fraction:
    """The number, to 60 significant digits where it is longer than 400 bits: sums of many fractions have no end."""
    if number.numerator.bit_length() + number.denominator.bit_length() <= SHORT:
        return number
    context = Context(prec=DIGITS, rounding=ROUND_HALF_EVEN, Emax=10**6, Emin=-(10**6))
    return Fraction(context.divide(Decimal(number.numerator), Decimal(number.denominator)))


def compose(selects: Sequence[Select]) -> tuple[Expression | None, ...]:
    """Each column that is shown, as an expression of one released row; None where it is one of several rows."""
    composed: tuple[Expression | None, ...] | None = None
    for select in selects:
        if composed is None:
            composed = tuple(item.expression for item in select.items)
        elif select.folds is not None or None in composed:
            return (None,) * len(selects[-1].items)
        else:
            known = [expression for expression in composed if expression is not None]
            composed = tuple(substitute(item.expression, known) for item in select.items)
    return composed or ()


def count_work(selects: Sequence[Select]) -> int:
    """How many steps showing one released row takes, where each column stands for all that it is computed from.

    That is more than computing takes, since each SELECT is computed once. It bounds the length of what is shown, too: a
    text is one of the literals, and a number as long as those that it is computed from are together.
    """
    steps = 0
    sizes: Sequence[int] = ()
    for select in selects:
        folded = [*select.keys, *(fold.argument for fold in select.folds or ())]
        steps += sum(_measure(part, sizes) for part in (select.where, *folded))
        if select.folds is not None:
            sizes = [_measure(part, sizes) for part in folded]
        steps += sum(_measure(part, sizes) for part in (select.having, *(order.expression for order in select.order)))
        sizes = [_measure(item.expression, sizes) for item in select.items]
        steps += sum(sizes)
    return steps


def _measure(expression: Expression | None, sizes: Sequence[int]) -> int:
    """How many parts an expression has, where its references stand for so many, and literals for their length."""
    steps = 1
    for part in () if expression is None else walk(expression):
        if isinstance(part, Reference):
            steps += sizes[int(part.name)] if sizes else 1
        else:
            steps += 1 + (_find_length(part.value) // CHARACTERS if isinstance(part, Literal) else 0)
    return steps


def _find_length(value: Value) -> int:
    """The characters of a literal, about."""
    if isinstance(value, Fraction):
        return (value.numerator.bit_length() + value.denominator.bit_length()) // 3
    return len(value) if isinstance(value, str) else 0

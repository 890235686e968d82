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

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from typing import TypeAlias

from idios.query.expressions import Expression, Literal, Reference, Type, Value, evaluate, list_references, walk
from idios.query.schema import Column
from idios.query.work import CHARACTERS

Values: TypeAlias = tuple[Value, ...]

SHORT = 400
"""Bits of a fraction that is shown as it is; a longer one is rounded to ``DIGITS``."""
DIGITS = 60
INTERVAL = 4
"""What interval arithmetic takes for one part of an expression, in steps of computing it."""


@dataclass(frozen=True)
class Item:
    """One column of a SELECT list; ``written`` is how the analyst wrote it, ``whole`` whether its numbers are.

    ``bits`` is how long its numbers may be, through all SELECTs inside. ``column`` is that of categories whose released
    values it shows.
    """

    label: str
    expression: Expression
    type: Type | None
    whole: bool = False
    written: str = field(default="", compare=False)
    bits: int = field(default=0, compare=False)
    column: Column | None = field(default=None, compare=False)


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


@dataclass(frozen=True, eq=False)
class Row:
    """A row that is shown, and the number of the released row that it comes from; None if it comes from several.

    ``made_of`` are the rows of the SELECT inside that it comes from, and ``released`` is how many released ones these
    come from.
    """

    values: Values
    origin: int | None
    made_of: tuple[Row, ...] = ()
    released: int = 1


def list_origins(row: Row) -> list[int]:
    """The numbers of all released rows that a row comes from."""
    if row.origin is not None:
        return [row.origin]
    return [number for part in row.made_of for number in list_origins(part)]


def apply_selects(selects: Sequence[Select], released: Sequence[Values]) -> list[Row]:
    """Compute and choose what is shown of released rows."""
    rows = [Row(values, i) for i, values in enumerate(released)]
    for select in selects:
        rows = _apply(select, rows)
    return rows


def _apply(select: Select, rows: list[Row]) -> list[Row]:
    if select.where is not None:
        rows = [row for row in rows if evaluate(select.where, row.values) is True]
    rows = (
        [Row(row.values, row.origin, (row,), row.released) for row in rows]
        if select.folds is None
        else _group(select, rows)
    )
    if select.having is not None:
        rows = [row for row in rows if evaluate(select.having, row.values) is True]
    for part in reversed(select.order):
        rows = _sort(part, rows)
    rows = rows[select.offset : None if select.limit is None else select.offset + select.limit]
    return [
        replace(row, values=tuple(shorten(evaluate(item.expression, row.values)) for item in select.items))
        for row in rows
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
        Row(
            (*keys, *(_fold(fold, grouped) for fold in select.folds or ())),
            None,
            tuple(grouped),
            sum(row.released for row in grouped),
        )
        for keys, grouped in groups.items()
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


def find_middle(values: Sequence[Fraction]) -> Fraction | None:
    """The median: the mean of both middle values where there are two."""
    ordered = sorted(values)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2 if ordered else None


FOLDS: Mapping[str, Callable[..., Value]] = {
    "COUNT": lambda values: Fraction(len(values)),
    "SUM": _sum,
    "AVG": _average,
    "MEAN": _average,
    "MIN": lambda values: min(values, default=None),
    "MAX": lambda values: max(values, default=None),
    "MEDIAN": find_middle,
}
"""The aggregates of a SELECT around another, of values that are not NULL."""


def shorten(value: Value) -> Value:
    """A value as it is shown: exact, unless it is a fraction that is longer than anybody could read."""
    return shorten_number(value) if isinstance(value, Fraction) else value


def shorten_number(number: Fraction, rounding: str = ROUND_HALF_EVEN) -> Fraction:
    """The number, to 60 significant digits where it is longer than 400 bits: sums of many fractions have no end."""
    if number.numerator.bit_length() + number.denominator.bit_length() <= SHORT:
        return number
    context = Context(prec=DIGITS, rounding=rounding, Emax=10**6, Emin=-(10**6))
    return Fraction(context.divide(Decimal(number.numerator), Decimal(number.denominator)))


@dataclass(frozen=True)
class Trace:
    """Where a column comes from.

    ``place`` is that of a released row which it is as it stands, if any. ``uses`` are all places that it is computed
    from, or that decide of which rows. ``folds`` says that it is of several rows.
    """

    place: int | None = None
    uses: frozenset[int] = frozenset()
    folds: bool = False


@dataclass(frozen=True)
class TracedSelect:
    """Where the columns of a SELECT come from; ``chosen`` are the places that decide which rows it folds, and how."""

    columns: tuple[Trace, ...]
    chosen: frozenset[int] = frozenset()


def trace_selects(selects: Sequence[Select], width: int) -> list[TracedSelect]:
    """Where everything comes from that is shown of released rows with so many places.

    Each SELECT is looked at once: an expression that is written out in full grows with every SELECT around it.
    """
    inside = tuple(Trace(place, frozenset([place])) for place in range(width))
    chosen: frozenset[int] = frozenset()
    ordered: frozenset[int] = frozenset()
    traced = []
    for select in selects:
        chosen |= _join_uses([select.where], inside)
        folded = chosen | _join_uses(select.keys, inside)
        if select.folds is not None:
            folds = (Trace(None, folded | _join_uses([fold.argument], inside), True) for fold in select.folds)
            inside = (*(_trace(key, inside, folds=True) for key in select.keys), *folds)
        chosen |= _join_uses([select.having], inside)
        ordered |= _join_uses([order.expression for order in select.order], inside)
        if select.limit is not None or select.offset:
            chosen |= ordered
        inside = tuple(_trace(item.expression, inside) for item in select.items)
        traced.append(TracedSelect(inside, folded))
    return traced


def _trace(expression: Expression, inside: Sequence[Trace], *, folds: bool = False) -> Trace:
    parts = [inside[int(name)] for name in list_references(expression)]
    return Trace(
        parts[0].place if isinstance(expression, Reference) and not folds else None,
        frozenset().union(*(part.uses for part in parts)),
        any(part.folds for part in parts),
    )


def _join_uses(expressions: Iterable[Expression | None], inside: Sequence[Trace]) -> frozenset[int]:
    known = (expression for expression in expressions if expression is not None)
    return frozenset().union(*(_trace(expression, inside).uses for expression in known))


def count_work(selects: Sequence[Select]) -> int:
    """How many steps showing one released row takes, where each column stands for all that it is computed from.

    That is more than computing takes, since each SELECT is computed once. It bounds the length of what is shown, too: a
    text is one of the literals, and a number as long as those that it is computed from are together. Intervals are
    computed from all of it for each column anew, as each may ask for a confidence of its own.
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
    plain = 1 + len(selects)  # a reference to a reference, and so on
    return steps + INTERVAL * sum(size for size in sizes if size > plain)


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

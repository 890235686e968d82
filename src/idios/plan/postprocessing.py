"""After the release: what is computed from released values, and which rows of them are shown, in which order.

    released rows ─ GROUP BY ROLLUP ─▶ HAVING ─▶ OVER ─▶ ORDER BY ─▶ LIMIT ─▶ the SELECT list ─▶ perhaps a SELECT around

Theorem. This costs nothing and changes no guarantee.
Proof. A private mechanism followed by any function of its output alone is as private as the mechanism. Here the input
is what is released, whole and stored, and public facts; the data is never read. ∎

So what is charged, and the key under which an answer is stored, follow from the released statistics alone. A statistic
that stands only in HAVING, ORDER BY or CASE is released as well. Rows that HAVING or LIMIT hide were released too.

A released row has the values of the GROUP BY keys and then those of the statistics; ``Reference(i)`` is its i-th. The
rows come in the order of the keys as they are written, the first one slowest.

ROLLUP, CUBE and GROUPING SETS release the finest cells alone. A total is the sum of its cells, so that totals add up
exactly; where a cell has no answer, a total of it has none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from typing import TypeAlias

from idios.declare.schema import Column
from idios.expressions.language import (
    Call,
    Case,
    Expression,
    Literal,
    Reference,
    Type,
    Value,
    evaluate,
    list_references,
    walk,
)
from idios.expressions.ranges import MAX_NARROWED
from idios.expressions.work import CHARACTERS

Values: TypeAlias = tuple[Value, ...]

SHORT = 400
"""Bits of a fraction that is shown as it is; a longer one is rounded to ``DIGITS``."""
DIGITS = 60
INTERVAL = 4
"""What interval arithmetic takes for one part of an expression, in steps of computing it."""
LONG = 1024
"""How many bits of numbers are computed with in one step more."""
RELEASED_BITS = 128
"""How long a released number is expected to be."""
FOLDED_BITS = 32
"""How many bits folding adds to a number: those of the number of rows."""
FOLDED_TEXTS = 64
"""Of how many texts it is known which one a fold over rows may be; of more it may be any."""


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
class OrderItem:
    """One part of ORDER BY; NULL comes last unless asked for first."""

    expression: Expression
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True)
class Fold:
    """One aggregate of a SELECT around another, over the rows of a group; without an argument it counts them.

    TOTAL is a sum that is NULL where a part of it is. GROUPING is 1 where its key is not one of the row's, and else 0.
    """

    function: str
    argument: Expression | None = None


@dataclass(frozen=True)
class OverWindow:
    """An aggregate over all rows that are alike in ``partition``, which each of them has."""

    fold: Fold
    partition: tuple[Expression, ...] = ()


@dataclass(frozen=True)
class Select:
    """One SELECT over rows.

    Where ``folds`` is given, rows that fulfil ``where`` are grouped by ``keys``, and the rest is about the values of
    keys and folds; the innermost SELECT has none unless it has ``sets``, since what it groups is the data. They are
    grouped by each of the ``sets`` of places of keys, if there are any. ``windows`` come after all other values.
    """

    items: tuple[Item, ...]
    where: Expression | None = None
    keys: tuple[Expression, ...] = ()
    folds: tuple[Fold, ...] | None = None
    sets: tuple[tuple[int, ...], ...] | None = None
    windows: tuple[OverWindow, ...] = ()
    having: Expression | None = None
    order: tuple[OrderItem, ...] = ()
    limit: int | None = None
    offset: int = 0


@dataclass(frozen=True, eq=False)
class Row:
    """A row that is shown, and the number of the released row that it comes from; None if it comes from several.

    ``made_of`` are the rows of the SELECT inside that it comes from, and ``released`` is how many released ones these
    come from, at most. Where a window stands at it or inside, ``reached`` is how many all rows of that one come from.
    ``beside`` has for each window the rows of its partition, ``totalled`` the places of the keys that it is a total of.
    """

    values: Values
    origin: int | None
    made_of: tuple[Row, ...] = ()
    released: int = 1
    reached: int = 0
    beside: tuple[tuple[Row, ...], ...] = ()
    totalled: frozenset[int] = frozenset()


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
        [Row(row.values, row.origin, (row,), row.released, row.reached) for row in rows]
        if select.folds is None
        else _group(select, rows)
    )
    if select.having is not None:
        rows = [row for row in rows if evaluate(select.having, row.values) is True]
    if select.windows:
        rows = _look_beside(select.windows, rows)
    if select.order:
        rows = _sort(select.order, rows)
    rows = rows[select.offset : None if select.limit is None else select.offset + select.limit]
    items = [item.expression for item in select.items]
    return [replace(row, values=tuple(map(shorten, _compute(items, row)))) for row in rows]


def _compute(expressions: Sequence[Expression], row: Row) -> Values:
    """The values of several expressions, which may share parts."""
    known: dict[int, Value] = {}
    return tuple([evaluate(expression, row.values, known) for expression in expressions])


def _sort(order: Sequence[OrderItem], rows: Sequence[Row]) -> list[Row]:
    expressions = [part.expression for part in order]
    keyed = [(_compute(expressions, row), row) for row in rows]
    for place, part in reversed(list(enumerate(order))):
        known = [pair for pair in keyed if pair[0][place] is not None]
        known.sort(key=lambda pair: pair[0][place], reverse=part.descending)  # type: ignore[arg-type,return-value]
        missing = [pair for pair in keyed if pair[0][place] is None]
        keyed = missing + known if part.nulls_first else known + missing
    return [row for _, row in keyed]


def _group(select: Select, rows: Sequence[Row]) -> list[Row]:
    """One row for each group that there is, and the only one where there are no keys; as they first occur.

    With several sets of keys, the total over a key follows what it is the total of.
    """
    folds = select.folds or ()
    arguments = [fold.argument or Literal(None) for fold in folds]
    known = [(_compute(select.keys, row), _compute(arguments, row), row) for row in rows]
    every = range(len(select.keys))
    found = []
    for kept in (every,) if select.sets is None else select.sets:
        totalled = frozenset(every) - frozenset(kept)
        groups: dict[Values, list[tuple[Values, Row]]] = {} if kept else {(None,) * len(every): []}
        for keys, values, row in known:
            own = tuple([None if place in totalled else key for place, key in enumerate(keys)]) if totalled else keys
            groups.setdefault(own, []).append((values, row))
        for keys, grouped in groups.items():
            folded = [
                Fraction(int(fold.argument.name) in totalled)
                if fold.function == "GROUPING" and isinstance(fold.argument, Reference)
                else _fold(fold, [values[place] for values, _ in grouped])
                for place, fold in enumerate(folds)
            ]
            inside = tuple([row for _, row in grouped])
            counted = sum(row.released for row in inside), max((row.reached for row in inside), default=0)
            found.append(Row((*keys, *folded), None, inside, *counted, totalled=totalled))
    if select.sets is not None:
        ranks = [
            {value: rank for rank, value in enumerate(dict.fromkeys(keys[i] for keys, _, _ in known))} for i in every
        ]
        found.sort(key=lambda row: [len(ranks[i]) if i in row.totalled else ranks[i][row.values[i]] for i in every])
    return found


def _look_beside(windows: Sequence[OverWindow], rows: Sequence[Row]) -> list[Row]:
    """The rows with the values of windows after their own."""
    reached = rows[0].reached or sum(row.released for row in rows) if rows else 0
    values, beside = [list(row.values) for row in rows], [list[tuple[Row, ...]]() for _ in rows]
    for window in windows:
        partitions: dict[Values, list[int]] = {}
        for number, row in enumerate(rows):
            partitions.setdefault(_compute(window.partition, row), []).append(number)
        for numbers in partitions.values():
            alike = tuple([rows[number] for number in numbers])
            folded = _fold(window.fold, [evaluate(window.fold.argument or Literal(None), row.values) for row in alike])
            for number in numbers:
                values[number].append(folded)
                beside[number].append(alike)
    return [
        replace(row, values=tuple(own), beside=tuple(others), reached=reached)
        for row, own, others in zip(rows, values, beside, strict=True)
    ]


def _fold(fold: Fold, values: Sequence[Value]) -> Value:
    if fold.argument is None:
        return Fraction(len(values))
    known = [value for value in values if value is not None]
    if fold.function == "TOTAL":
        return _sum(known) if len(known) == len(values) else None  # type: ignore[arg-type]
    return FOLDS[fold.function](known)


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
    from, or that decide of which rows. ``folds`` says that it is of several rows, and ``beside`` of others than those
    that its own row is made of. ``total`` is the place of the released row whose totals it has in some rows.
    """

    place: int | None = None
    uses: frozenset[int] = frozenset()
    folds: bool = False
    beside: bool = False
    total: int | None = None


@dataclass(frozen=True)
class TracedSelect:
    """Where the columns of a SELECT come from.

    ``folding`` are the places that decide which rows it folds, and how, ``dividing`` those that do so of its windows;
    ``choosing`` those that decide which rows it shows.
    """

    columns: tuple[Trace, ...]
    folding: frozenset[int] = frozenset()
    dividing: frozenset[int] = frozenset()
    choosing: frozenset[int] = frozenset()


def trace_selects(selects: Sequence[Select], width: int, rows: int) -> list[TracedSelect]:
    """Where everything comes from that is shown of so many released rows with so many places.

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
            folds = (_trace_fold(fold, inside, folded) for fold in select.folds)
            inside = (*(_trace(key, inside, folds=True) for key in select.keys), *folds)
        rows *= len(select.sets or ((),))
        chosen |= _join_uses([select.having], inside)
        divided = chosen | _join_uses((key for window in select.windows for key in window.partition), inside)
        windows = (_trace_fold(window.fold, inside, divided) for window in select.windows)
        inside = (*inside, *(replace(trace, folds=True, beside=True) for trace in windows))
        ordered |= _join_uses([order.expression for order in select.order], inside)
        if select.offset or (select.limit is not None and select.limit < rows):
            chosen |= ordered
        inside = tuple(_trace(item.expression, inside) for item in select.items)
        traced.append(TracedSelect(inside, folded, divided if select.windows else frozenset(), chosen))
    return traced


def _trace_fold(fold: Fold, inside: Sequence[Trace], deciding: frozenset[int]) -> Trace:
    beside = any(inside[int(name)].beside for name in list_references(fold.argument or Literal(None)))
    uses = deciding | _join_uses([fold.argument], inside)
    total = int(fold.argument.name) if fold.function == "TOTAL" and isinstance(fold.argument, Reference) else None
    return Trace(None, uses, fold.function != "GROUPING", beside, total)


def _trace(expression: Expression, inside: Sequence[Trace], *, folds: bool = False) -> Trace:
    parts = [inside[int(name)] for name in list_references(expression)]
    return Trace(
        parts[0].place if isinstance(expression, Reference) and not folds else None,
        frozenset().union(*(part.uses for part in parts)),
        any(part.folds for part in parts),
        any(part.beside for part in parts),
        parts[0].total if isinstance(expression, Reference) else None,
    )


def _join_uses(expressions: Iterable[Expression | None], inside: Sequence[Trace]) -> frozenset[int]:
    known = (expression for expression in expressions if expression is not None)
    return frozenset().union(*(_trace(expression, inside).uses for expression in known))


@dataclass(frozen=True)
class _Size:
    """How long the numbers and the texts of a node may be, how many texts there are, and what its interval takes.

    ``texts`` are how many it may be, ``characters`` how many these have together. ``tree`` is what interval arithmetic
    takes for the node written out, and ``full`` the same with all that its references stand for written out too.
    """

    bits: int
    longest: int = 0
    texts: int = 0
    characters: int = 0
    tree: int = 1
    full: int = 1


_RELEASED = _Size(RELEASED_BITS, texts=1)


def count_rows(selects: Sequence[Select], rows: int, sizes: Sequence[int]) -> int:
    """How many rows are shown at most of so many released ones, whose keys have so many values each."""
    for number, select in enumerate(selects):
        if select.folds is not None:
            sets = [range(len(select.keys))] if select.sets is None else select.sets
            values = [math.prod(sizes[i] for i in kept) if number == 0 or not kept else rows for kept in sets]
            rows = sum(min(rows, most) for most in values)
        rows = rows if select.limit is None else min(rows, select.limit)
    return rows


def count_work(selects: Sequence[Select], width: int) -> int:
    """How many steps showing one released row of so many values takes, and how long what is shown may be, in steps.

    A node is computed once, however many columns it stands in. Intervals are computed once for each confidence: as many
    as there are columns, or numbers of released values that these are made of; of a column, what it is written out.
    """
    steps, around, released, times = 0, 0, 0, 1
    sizes: list[_Size] = []
    for select in selects:
        folds = select.folds or ()
        folded = [*select.keys, *(fold.argument or Literal(None) for fold in folds)]
        counted = _measure([*_list_known([select.where]), *folded], sizes)
        times *= len(select.sets or ((),))
        steps, around = steps + times * counted.steps, around + counted.intervals
        released = released or counted.places
        if select.folds is not None:
            own = counted.sizes[len(counted.sizes) - len(folded) :]
            sizes = [*own[: len(select.keys)], *map(_fold_size, folds, own[len(select.keys) :])]
            steps += times * sum(2 + size.bits // LONG for size in sizes)
        if select.windows:
            sizes = sizes or [_RELEASED] * width
            shared = [key for window in select.windows for key in window.partition]
            opened = [window.fold for window in select.windows]
            counted = _measure([*(fold.argument or Literal(None) for fold in opened), *shared], sizes)
            sizes = [*sizes, *map(_fold_size, opened, counted.sizes)]
            steps += times * (counted.steps + sum(4 + size.bits // LONG for size in sizes[-len(opened) :]))
            around, released = around + counted.intervals, released or counted.places
        chosen = [select.having, *(order.expression for order in select.order)]
        counted = _measure([item.expression for item in select.items], sizes)
        steps += times * (counted.steps + _measure(_list_known(chosen), sizes).steps)
        around, sizes, released = around + counted.intervals, counted.sizes, released or counted.places
        steps += times * sum(1 + size.bits // LONG + size.longest // CHARACTERS for size in sizes)
    choosing = any(s.where or s.having or s.limit is not None or s.offset for s in selects)
    plain = INTERVAL * sum(size.full <= 1 for size in sizes) if choosing else 0  # these intervals are wider
    computed = sum(min(size.full, around) for size in sizes if size.full > 1)
    return steps + times * (plain + min(computed, max(released, 1) * around))


def _list_known(expressions: Iterable[Expression | None]) -> list[Expression]:
    return [expression for expression in expressions if expression is not None]


def _fold_size(fold: Fold, size: _Size) -> _Size:
    if fold.function in ("MIN", "MAX"):
        texts = min(size.texts, 1) * FOLDED_TEXTS
        return replace(size, texts=texts, characters=texts * size.longest, tree=1, full=size.full + INTERVAL)
    return _Size(size.bits + FOLDED_BITS, full=size.full + INTERVAL)


@dataclass(frozen=True)
class _Measured:
    """The steps of some expressions, those of their intervals, to how many places they refer, and the size of each."""

    steps: int
    intervals: int
    places: int
    sizes: list[_Size]


def _measure(expressions: Sequence[Expression], inside: Sequence[_Size]) -> _Measured:
    """Measure expressions, of which each node is computed once, and whose references have the sizes ``inside``."""
    if all(isinstance(expression, Reference) for expression in expressions):  # which most questions list alone
        places = [int(expression.name) for expression in expressions if isinstance(expression, Reference)]
        return _Measured(
            len(places), len(places), len(set(places)), [inside[place] if inside else _RELEASED for place in places]
        )
    sizes: dict[int, _Size] = {}
    steps, intervals, nodes = 0, 0, list(walk(*expressions))
    literals = [node.value for node in nodes if isinstance(node, Literal) and isinstance(node.value, str)]
    most = len(literals) + sum(size.texts for size in inside) + 1
    for node in nodes:
        if isinstance(node, Reference):
            size = inside[int(node.name)] if inside else _RELEASED
            sizes[id(node)] = size if size.tree == 1 else replace(size, tree=1)
            steps, intervals = steps + 1, intervals + 1
            continue
        own, size = _measure_node(node, [sizes[id(part)] for part in node.parts], most)
        sizes[id(node)], steps = size, steps + own
        narrowed = isinstance(node, Case) and node.written_out <= MAX_NARROWED
        intervals += size.tree if narrowed else size.tree - sum(sizes[id(part)].tree for part in node.parts)
    named = len({node.name for node in nodes if isinstance(node, Reference)})
    return _Measured(steps, intervals, named, [sizes[id(expression)] for expression in expressions])


def _measure_node(node: Literal | Call | Case, parts: Sequence[_Size], most: int) -> tuple[int, _Size]:
    """The steps of computing a node from its parts, and its size; it may be no more texts than ``most``."""
    if isinstance(node, Literal):
        value = node.value
        length = len(value) if isinstance(value, str) else 0
        bits = value.numerator.bit_length() + value.denominator.bit_length() if isinstance(value, Fraction) else 1
        return 1, _Size(bits, length, min(length, 1), length)
    steps = 1 + len(parts) // 4
    bits = max((part.bits for part in parts), default=0)
    if isinstance(node, Call):
        steps += sum(part.bits for part in parts) // LONG
        if node.function in ("+", "-", "*", "/"):
            bits = sum(part.bits for part in parts) + 1
    longest = max((part.longest for part in parts), default=0)
    texts = min(sum(part.texts for part in parts), most)
    characters = min(sum(part.characters for part in parts), texts * longest)
    taken = INTERVAL * steps + texts
    if isinstance(node, Call) and node.function in ("like", "ilike"):
        steps += sum(part.longest for part in parts) // CHARACTERS
        subject, pattern = parts[0], sum(part.longest for part in parts[1:])
        taken += (subject.characters + subject.texts * pattern) // CHARACTERS
    tree, full = (taken + sum(getattr(part, name) for part in parts) for name in ("tree", "full"))
    return steps, _Size(bits, longest, texts, characters, tree, full)

"""What a question shows of a released table: computed from it, chosen, ordered and named as the question says.

A column is plain where it is a key or a statistic as it was released. Whatever belongs to a statistic (its margin, its
limits, its check) is told of the plain column, and otherwise under the statistic's own name, where a computed column
uses it.

How long all of it may be in JSON follows from the plan (``count_characters``). That stands here, beside what is shown:
who changes the one sees the other.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias

from idios.answer.computed import NO_NUMBER, WITH_INTERVAL, ComputedIntervals, ExpectedMargins
from idios.answer.intervals import list_margin_reasons
from idios.answer.release import kind_of, write_value
from idios.core.domain import Categories, Kind
from idios.core.exact import Extended, text
from idios.core.statistics import Count
from idios.declare.dates import since_1970
from idios.expressions.language import Expression, Literal, Reference, Type, Value, list_references, walk
from idios.model import ReleasedTable
from idios.model.quote import ExpectedMargin
from idios.model.released import Interval
from idios.plan.postprocessing import (
    DIGITS,
    SHORT,
    Item,
    Row,
    Select,
    Trace,
    Values,
    apply_selects,
    count_rows,
    list_origins,
)
from idios.plan.question import Aggregate, Group, Plan

KINDS = {
    Type.TEXT: "category",
    Type.BOOLEAN: "boolean",
    Type.DATE: "date",
    Type.TIMESTAMP: "timestamp",
}

COUNTED, RELEASED = 24, 44
"""How many digits a point of the grid of a count has at most, and one of any other statistic's."""
MOMENT = 40
"""The length of a date or a timestamp in JSON."""
AROUND = 12
"""The length of what stands around a name and a value in JSON."""
CHECKED = 160
"""The length of a distance in JSON."""
TOTALS = "totals of"
"""What a quote says before the name of a statistic whose totals are told of beside it."""
TOLD = 3_000
"""The length of what is told of a column once, without its name, or of the answer as a whole."""

Cells: TypeAlias = Sequence[Sequence[str | None]]
"""By cell and aggregate, values as they are stored."""


@dataclass(frozen=True)
class ShownColumn:
    """One column of an answer.

    ``group`` and ``measure`` say which key or which statistic it plainly is, ``total`` of which it has totals, ``uses``
    which statistics it is made of; ``folds`` that it is of several rows.
    """

    label: str
    kind: str
    group: int | None
    measure: int | None
    total: int | None
    uses: tuple[int, ...]
    folds: bool

    @property
    def named(self) -> int | None:
        """The statistic that its label is the name of, whose limits and checks are told under it."""
        return self.total if self.measure is None else self.measure

    @property
    def of_statistics(self) -> bool:
        """Whether it is anything but a key, or computed from keys alone."""
        return bool(self.uses) or self.folds


def list_columns(plan: Plan) -> tuple[ShownColumn, ...]:
    """The columns that a question shows."""
    shown = zip(plan.shown[-1].items, plan.traced[-1].columns, strict=True)
    return tuple(_make_column(plan, item, trace) for item, trace in shown)


def list_computed(plan: Plan) -> dict[str, str]:
    """The columns that are computed from what is released, and how they were written; totals are no others."""
    shown = zip(plan.shown[-1].items, list_columns(plan), strict=True)
    return {
        item.label: item.written
        for item, column in shown
        if column.named is None and (column.of_statistics or not isinstance(item.expression, Reference))
    }


def _make_column(plan: Plan, item: Item, trace: Trace) -> ShownColumn:
    keys, place = len(plan.keys), trace.place
    measures = tuple(used - keys for used in sorted(trace.uses) if used >= keys)
    group = plan.keys[place] if place is not None and place < keys else None
    measure = place - keys if place is not None and place >= keys else None
    if group is not None:
        kind = _find_key_kind(plan, plan.groups[group])
    elif measure is not None:
        kind = kind_of(plan, plan.aggregates[plan.measures[measure][1]])
    else:
        number = "integer" if item.whole else "number"
        kind = number if item.type is None else KINDS.get(item.type, number)
    total = None if trace.total is None else trace.total - keys
    return ShownColumn(item.label, kind, group, measure, total, measures, trace.folds)


def count_characters(plan: Plan) -> int:
    """How many bytes of JSON the answer of a plan may be: an upper bound that follows from public facts.

    A name stands in every row, with the value, and again with each of its interval, its limits and its check.
    """
    columns, lengths = list_columns(plan), _find_lengths(plan)
    rows = count_rows(plan.shown, len(plan.cells), [len(plan.groups[group].values) for group in plan.keys])
    row, once = 4, 4 * TOLD + _measure_text(plan.sql) + 2 * len(str(plan.guarantee))
    for column, length in zip(columns, lengths, strict=True):
        name = _measure_text(column.label) + AROUND
        row += name + length + (name + 2 * length if column.of_statistics else 0)
        once += 8 * name + TOLD + sum(_measure_text(plan.measures[number][0]) + AROUND for number in column.uses)
    for number in {number for column in columns for number in column.uses}:
        # under the name of its column, or under its own where none shows it
        label, place = plan.measures[number]
        names = [column.label for column in columns if column.named == number]
        name = max(_measure_text(each) for each in (*names, f"{label}{'_' * len(columns)}")) + AROUND
        aggregate = plan.aggregates[place]
        limits = 0 if aggregate.choice.clipping is None else name + 2 * _measure_aggregate(plan, aggregate)
        checks = 0 if aggregate.check is None else name + CHECKED
        row += max(1, len(names)) * (limits + checks)
        once += 8 * name + TOLD
    return once + rows * row


def _find_lengths(plan: Plan) -> list[int]:
    """How long the values of each column that is shown may be in JSON.

    A text is a literal, a group or a category; a number that is computed has so many bits.
    """
    keys = [max(_measure_text(_write_key(value)) for value in plan.groups[group].values) for group in plan.keys]
    inside = keys + [_measure_aggregate(plan, plan.aggregates[number]) for _, number in plan.measures]

    for select in plan.shown:
        if select.folds is not None:
            folded = [*select.keys, *(fold.argument or Literal(None) for fold in select.folds)]
            inside = _measure_expressions(folded, inside)
        inside = [*inside, *_measure_expressions([w.fold.argument or Literal(None) for w in select.windows], inside)]
        measured = _measure_expressions([item.expression for item in select.items], inside)
        inside = [
            inside[int(item.expression.name)]
            if isinstance(item.expression, Reference) and select.folds is None
            else max(length, _count_digits(item))
            for item, length in zip(select.items, measured, strict=True)
        ]
    return inside


def _measure_expressions(expressions: Sequence[Expression], inside: Sequence[int]) -> list[int]:
    """How long the values of some expressions may be in JSON, but for the digits of what is computed.

    Each part is looked at once, however many of the expressions share it.
    """
    lengths: dict[int, int] = {}
    for node in walk(*expressions):
        if isinstance(node, Reference):
            lengths[id(node)] = max(MOMENT, inside[int(node.name)])
        elif isinstance(node, Literal):
            lengths[id(node)] = max(MOMENT, _measure_text(node.value) if isinstance(node.value, str) else 0)
        else:
            lengths[id(node)] = max(lengths[id(part)] for part in node.parts)
    return [lengths[id(expression)] for expression in expressions]


def _measure_text(written: str) -> int:
    return len(json.dumps(written, ensure_ascii=False).encode("utf-8", "surrogatepass"))


def _measure_aggregate(plan: Plan, aggregate: Aggregate) -> int:
    """How long a released value may be in JSON: a category, or a point of a grid times its step."""
    if isinstance(aggregate.domain, Categories):
        return max(map(_measure_text, (*aggregate.domain.values, *aggregate.domain.labels, "null")))
    digits = COUNTED if isinstance(aggregate.statistic, Count) else RELEASED
    step = aggregate.statistic.answer_step(aggregate.grid, plan.dataset.protection.fineness)
    return max(MOMENT, digits + len(str(text(step))) + AROUND)


def _count_digits(item: Item) -> int:
    """How many digits a computed number is written with at most: one with many is shortened (``shorten_number``)."""
    short = AROUND + 7 * min(item.bits, SHORT) // 10  # most where it ends after as many decimals as it has bits
    return short if item.bits <= SHORT else max(short, AROUND + DIGITS + item.bits // 3)


def _write_key(value: str | Fraction) -> str:
    return value if isinstance(value, str) else str(text(value))


def _is_truth(plan: Plan, group: Group) -> bool:
    """Whether the groups are false and true."""
    return group.width is None and plan.dataset.columns[group.column].kind is not Kind.CATEGORY


def _find_key_kind(plan: Plan, group: Group) -> str:
    """The kind of a group's values: truth, text, or the lower ends of bins."""
    if _is_truth(plan, group):
        return "boolean"
    if any(isinstance(value, str) for value in group.values):
        return "category"
    return "integer" if all(Fraction(value).denominator == 1 for value in group.values) else "number"


@dataclass(frozen=True)
class Shown:
    """A table as a question shows it; ``origins`` has for each row the cells that it is of.

    ``intervals`` has for each row those of the columns that are computed, or whose values decide which rows there are.
    """

    plan: Plan
    columns: tuple[ShownColumn, ...]
    values: list[list[str | None]]
    """By column and row, as it is stored."""
    origins: list[tuple[int, ...]]
    intervals: list[dict[str, Interval]]
    reasons: dict[str, str]
    """By computed column, why it has no margin."""

    @cached_property
    def used(self) -> dict[str, int]:
        """By name, the statistics that computed columns use and that are no columns themselves."""
        plain, taken = {column.named for column in self.columns}, {column.label for column in self.columns}
        used: dict[str, int] = {}
        for number in dict.fromkeys(number for column in self.columns for number in column.uses):
            label = self.plan.measures[number][0]
            while label in taken:  # what an analyst called a column comes first
                label += "_"
            if number not in plain:
                used[label] = number
        return used

    def list_measures(self, *, computed: bool = True) -> dict[str, int]:
        """By column, which aggregate it plainly is; with ``computed`` also by the name of what is used."""
        plain = {column.label: column.named for column in self.columns if column.named is not None}
        named = plain | self.used if computed else plain
        return {label: self.plan.measures[number][1] for label, number in named.items()}

    def list_clipped_sources(self) -> dict[str, tuple[str, ...]]:
        """By computed column, under which names the statistics are told that it uses and whose values are clipped."""
        names = {column.named: column.label for column in self.columns if column.named is not None}
        names |= {number: label for label, number in self.used.items()}
        aggregates, measures = self.plan.aggregates, self.plan.measures
        clipped = {n for n, (_, number) in enumerate(measures) if aggregates[number].choice.clipping is not None}
        found = {c.label: tuple(names[n] for n in c.uses if n in clipped) for c in self.columns if c.named is None}
        return {label: sources for label, sources in found.items() if sources}

    @cached_property
    def parts(self) -> dict[int, int]:
        """By aggregate, of how many released values together it is told how far off they are, at most."""
        parts: dict[int, int] = {}
        for column in self.columns:
            aggregates = {self.plan.measures[number][1] for number in column.uses}
            parts |= {number: max(len(aggregates), parts.get(number, 1)) for number in aggregates}
        return parts

    def list_margins(self, margins: Sequence[Fraction | None]) -> dict[str, Fraction | None]:
        """By column, the margin of what is plainly a statistic."""
        return {
            column.label: None if column.measure is None else margins[self.plan.measures[column.measure][1]]
            for column in self.columns
            if column.of_statistics
        }

    def list_margin_reasons(self, margins: Mapping[str, Fraction | None]) -> dict[str, str]:
        """By column, why it has no margin."""
        released = dict.fromkeys((label for label, _ in self.plan.measures), None)
        reasons = list_margin_reasons(self.plan, released)
        return {
            column.label: self.reasons[column.label]
            if column.measure is None
            else reasons[self.plan.measures[column.measure][0]]
            for column in self.columns
            if column.of_statistics and margins[column.label] is None
        }

    def pick_rows(
        self,
        cells: Sequence[Mapping[int, Any]],
        *,
        computed: bool = True,
        join: Callable[[list[Any]], Any] | None = None,
    ) -> tuple[dict[str, Any], ...]:
        """By row and column, what its cell has of its aggregates; with ``computed`` also of what is used.

        A row of several cells has nothing, unless what they have can be joined.
        """
        if not cells:
            return ()
        names = self.list_measures(computed=computed)
        rows: list[dict[str, Any]] = []
        for origin in self.origins:
            found = {label: [cells[cell][i] for cell in origin if i in cells[cell]] for label, i in names.items()}
            known = {label: values for label, values in found.items() if values and (join or len(origin) == 1)}
            rows.append({label: join(values) if join else values[0] for label, values in known.items()})
        return tuple(rows)

    def list_intervals(self, table: ReleasedTable) -> tuple[dict[str, Interval], ...]:
        """By row and column, the intervals of released and of computed values."""
        if not table.intervals and not any(self.intervals):
            return ()
        choosing = self.plan.choosing
        cells = [
            {i: pair for i, pair in enumerate(row) if pair is not None and i not in choosing} for row in table.intervals
        ]
        plain = self.pick_rows(cells, computed=False) or ({},) * len(self.origins)
        rows = tuple(released | computed for released, computed in zip(plain, self.intervals, strict=True))
        return rows if any(rows) else ()


def show_truth(plan: Plan, values: Sequence[Extended | str | None]) -> tuple[dict[str, str | None], ...]:
    """What a question computes from true values, cell by cell, for the controller; empty if it computes nothing."""
    if not plan.shown or not list_computed(plan):
        return ()
    rest = iter(values)
    cells = [[_write_truth(plan, aggregate, next(rest)) for aggregate in plan.aggregates] for _ in plan.cells]
    return tuple(_show_rows(plan, list_columns(plan), _order_cells(plan), cells)[1])


def expect_margins(plan: Plan) -> dict[str, ExpectedMargin]:
    """By computed column, how far off it will be, as far as that is known before asking."""
    columns, traced, known = list_columns(plan), plan.traced[-1].columns, set(range(len(plan.keys)))
    wanted = {i: column for i, column in enumerate(columns) if column.of_statistics and column.measure is None}
    if not wanted:
        return {}
    order = _order_cells(plan)
    if not any(traced[i].folds or traced[i].uses & known for i in wanted):
        order = order[:1]  # all rows are alike
    nothing = [None] * len(plan.aggregates)
    released = [_read_row(plan, nothing, plan.cells[cell], [""] * len(nothing), known) for cell in order]
    expected = ExpectedMargins(plan, released)
    return {
        column.label if column.named is None else f"{TOTALS} {column.label}": expected.expect(i)
        if column.kind in ("integer", "number")
        else ExpectedMargin(reason=NO_NUMBER)
        for i, column in wanted.items()
    }


def _write_truth(plan: Plan, aggregate: Aggregate, value: Extended | str | None) -> str | None:
    if value is None or isinstance(value, str):
        return value
    column = None if aggregate.column is None else plan.dataset.columns[aggregate.column].kind
    return write_value(Fraction(value), kind_of(plan, aggregate), column)


def _order_cells(plan: Plan) -> list[int]:
    if plan.keys == tuple(range(len(plan.groups))):
        return sorted(range(len(plan.cells)), key=plan.cells.__getitem__)
    return sorted(range(len(plan.cells)), key=lambda number: [plan.cells[number][group] for group in plan.keys])


def _show_rows(
    plan: Plan, columns: Sequence[ShownColumn], order: Sequence[int], cells: Cells
) -> tuple[list[Row], list[dict[str, str | None]]]:
    used = _list_used(plan)
    kinds = [kind_of(plan, aggregate) for aggregate in plan.aggregates]
    released = [_read_row(plan, cells[number], plan.cells[number], kinds, used) for number in order]
    rows = apply_selects(plan.shown, released)
    exact_rows = [
        {
            column.label: _write(plan, cells, order, column, row, value)
            for column, value in zip(columns, row.values, strict=True)
        }
        for row in rows
    ]
    return rows, exact_rows


def _is_plain(plan: Plan, columns: Sequence[ShownColumn]) -> bool:
    """Whether all rows are shown in the order of their keys, and nothing is computed from them."""
    (first, *around), known = plan.shown, all(c.group is not None or c.measure is not None for c in columns)
    return known and not around and first == Select(first.items)


def _show_plainly(plan: Plan, column: ShownColumn, order: Sequence[int], table: ReleasedTable) -> list[str | None]:
    """What each row shows in a column: keys and released values as they are."""
    if column.group is not None:
        group = column.group
        keys = [_write_key(key) for key in plan.groups[group].values]
        return [keys[plan.cells[number][group]] for number in order]
    if column.measure is None:
        raise AssertionError("a plain column is a key or a statistic")
    values = table.list_values(plan.measures[column.measure][1])
    return [values[number] for number in order]


def show_table(plan: Plan, table: ReleasedTable) -> Shown:
    """Apply what comes after the release."""
    columns, order = list_columns(plan), _order_cells(plan)
    if _is_plain(plan, columns):
        values = [_show_plainly(plan, column, order, table) for column in columns]
        return Shown(plan, columns, values, list(zip(order)), [{}] * len(order), {})
    rows, exact_rows = _show_rows(plan, columns, order, table.cells)
    computed = ComputedIntervals(plan, table, order)
    wanted = [
        (i, column)
        for i, column in enumerate(columns)
        if column.of_statistics and (column.measure is None or plan.measures[column.measure][1] in plan.choosing)
    ]
    intervals = [
        {column.label: found for i, column in wanted if (found := computed.find(row, i, column.kind)) is not None}
        for row in rows
    ]
    return Shown(
        plan,
        columns,
        [[row[column.label] for row in exact_rows] for column in columns],
        [tuple(order[number] for number in list_origins(row)) for row in rows],
        intervals,
        {
            column.label: WITH_INTERVAL
            if any(column.label in found for found in intervals)
            else computed.explain_none(i, column.kind)
            for i, column in wanted
            if column.measure is None
        },
    )


def _list_used(plan: Plan) -> set[int]:
    """The places of a released row that anything is computed from; the others are shown as they are."""
    first, *around = plan.shown
    if around or first.folds is not None:
        return set(range(len(plan.keys) + len(plan.measures)))
    computed = (item.expression for item in first.items if not isinstance(item.expression, Reference))
    parts: list[Expression] = [*computed]
    parts += [order.expression for order in first.order]
    parts += [part for w in first.windows for part in (w.fold.argument or Literal(None), *w.partition)]
    parts += [] if first.having is None else [first.having]
    return {int(name) for part in parts for name in list_references(part)}


def _read_row(
    plan: Plan, values: Sequence[str | None], cell: Sequence[int], kinds: Sequence[str], used: set[int]
) -> Values:
    row: list[Value] = []
    for place, group in enumerate(plan.keys):
        row.append(_read_key(plan, plan.groups[group], cell[group]) if place in used else None)
    for place, (_, number) in enumerate(plan.measures, start=len(plan.keys)):
        row.append(_read_value(values[number], kinds[number]) if place in used else None)
    return tuple(row)


def _read_key(plan: Plan, group: Group, place: int) -> Value:
    value, kind = group.values[place], plan.dataset.columns[group.column].kind
    if _is_truth(plan, group):
        return value == "true"
    if isinstance(value, str) and kind in (Kind.DATE, Kind.TIMESTAMP):
        return since_1970(value, kind)
    return value


def _read_value(written: str | None, kind: str) -> Value:
    if written is None or kind == "category":
        return written
    return since_1970(written, Kind(kind)) if kind in ("date", "timestamp") else Fraction(written)


def _write(plan: Plan, cells: Cells, order: Sequence[int], column: ShownColumn, row: Row, value: Value) -> str | None:
    if row.origin is not None and column.measure is not None:
        return cells[order[row.origin]][plan.measures[column.measure][1]]
    if row.origin is not None and column.group is not None:
        key = plan.groups[column.group].values[plan.cells[order[row.origin]][column.group]]
        return _write_key(key)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Fraction):
        return write_value(value, column.kind, Kind(column.kind) if column.kind in ("date", "timestamp") else None)
    return value

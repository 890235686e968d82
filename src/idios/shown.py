"""What a question shows of a released table: computed from it, chosen, ordered and named as the question says.

A column is plain where it is a key or a statistic as it was released. Whatever belongs to a statistic (its margin, its
limits, its check) is told of the plain column, and otherwise under the statistic's own name, where a computed column
uses it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from idios.core.domain import Kind
from idios.core.exact import text
from idios.margins import list_margin_reasons
from idios.model import ReleasedTable
from idios.model.answer import python_value
from idios.query.calendar import since_1970
from idios.query.expressions import Expression, Reference, Type, Value, list_references
from idios.query.plan import Group, Plan
from idios.query.postprocessing import Item, Row, Values, apply_selects, compose
from idios.release import kind_of, write_value

COMPUTED = "it is computed from released values, so each answer has an interval of its own where they have one"
KINDS = {
    Type.TEXT: "category",
    Type.BOOLEAN: "boolean",
    Type.DATE: "date",
    Type.TIMESTAMP: "timestamp",
}


@dataclass(frozen=True)
class ShownColumn:
    """One column of an answer; ``expression`` is what it is of a released row, None if it is of several rows.

    ``group`` and ``measure`` say which key or which statistic it plainly is, ``uses`` which statistics it is made of.
    """

    label: str
    kind: str
    expression: Expression | None
    group: int | None
    measure: int | None
    uses: tuple[int, ...]

    @property
    def of_statistics(self) -> bool:
        """Whether it is anything but a key, or computed from keys alone."""
        return bool(self.uses) or self.expression is None


def list_columns(plan: Plan) -> tuple[ShownColumn, ...]:
    """The columns that a question shows."""
    shown = zip(plan.shown[-1].items, compose(plan.shown), strict=True)
    return tuple(_make_column(plan, item, expression) for item, expression in shown)


def list_computed(plan: Plan) -> dict[str, str]:
    """The columns that are computed from what is released, and how they were written."""
    plain = [column.group is not None or column.measure is not None for column in list_columns(plan)]
    items = plan.shown[-1].items
    return {item.label: item.written for item, known in zip(items, plain, strict=True) if not known}


def _make_column(plan: Plan, item: Item, expression: Expression | None) -> ShownColumn:
    keys = len(plan.keys)
    used = () if expression is None else list_references(expression)
    measures = tuple(int(name) - keys for name in used if int(name) >= keys)
    place = int(expression.name) if isinstance(expression, Reference) else None
    group = plan.keys[place] if place is not None and place < keys else None
    measure = place - keys if place is not None and place >= keys else None
    if group is not None:
        kind = _find_key_kind(plan.groups[group])
    elif measure is not None:
        kind = kind_of(plan, plan.aggregates[plan.measures[measure][1]])
    else:
        number = "integer" if item.whole else "number"
        kind = number if item.type is None else KINDS.get(item.type, number)
    return ShownColumn(item.label, kind, expression, group, measure, measures)


def _find_key_kind(group: Group) -> str:
    """The kind of a group's values: text, or the lower ends of bins."""
    if any(isinstance(value, str) for value in group.values):
        return "category"
    return "integer" if all(Fraction(value).denominator == 1 for value in group.values) else "number"


@dataclass(frozen=True)
class Shown:
    """A table as a question shows it; ``origins`` has for each row the cell that it is of, None if it is of several."""

    plan: Plan
    columns: tuple[ShownColumn, ...]
    rows: list[dict[str, Any]]
    exact_rows: list[dict[str, str | None]]
    origins: list[int | None]

    @cached_property
    def used_labels(self) -> tuple[str, ...]:
        """The statistics that computed columns use and that are no columns themselves."""
        plain = {column.measure for column in self.columns}
        hidden = (number for column in self.columns for number in column.uses if number not in plain)
        return tuple(dict.fromkeys(self.plan.measures[number][0] for number in hidden))

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
            column.label: COMPUTED if column.measure is None else reasons[self.plan.measures[column.measure][0]]
            for column in self.columns
            if column.of_statistics and margins[column.label] is None
        }

    def pick_rows(self, cells: Sequence[Mapping[int, Any]], *, computed: bool = True) -> tuple[dict[str, Any], ...]:
        """By row and column, what each cell has of its aggregates; with ``computed`` also of what is used."""
        if not cells:
            return ()
        names = {column.label: column.measure for column in self.columns if column.measure is not None}
        if computed:
            names |= {
                label: number for number, (label, _) in enumerate(self.plan.measures) if label in self.used_labels
            }
        aggregates = {label: self.plan.measures[number][1] for label, number in names.items()}
        return tuple(
            {}
            if origin is None
            else {label: cells[origin][number] for label, number in aggregates.items() if number in cells[origin]}
            for origin in self.origins
        )


def show_table(plan: Plan, table: ReleasedTable) -> Shown:
    """Apply what comes after the release."""
    columns = list_columns(plan)
    order = sorted(range(len(plan.cells)), key=lambda number: [plan.cells[number][group] for group in plan.keys])
    used = _list_used(plan)
    kinds = [kind_of(plan, aggregate) for aggregate in plan.aggregates]
    released = [_read_row(plan, table.cells[number], plan.cells[number], kinds, used) for number in order]
    rows = apply_selects(plan.shown, released)
    exact_rows = [
        {
            column.label: _write(plan, table, order, column, row, value)
            for column, value in zip(columns, row.values, strict=True)
        }
        for row in rows
    ]
    return Shown(
        plan,
        columns,
        [{column.label: python_value(row[column.label], column.kind) for column in columns} for row in exact_rows],
        exact_rows,
        [None if row.origin is None else order[row.origin] for row in rows],
    )


def _list_used(plan: Plan) -> set[int]:
    """The places of a released row that anything is computed from; the others are shown as they are."""
    first, *around = plan.shown
    if around:
        return set(range(len(plan.keys) + len(plan.measures)))
    computed = (item.expression for item in first.items if not isinstance(item.expression, Reference))
    parts: list[Expression] = [*computed]
    parts += [order.expression for order in first.order]
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
    if isinstance(value, str) and kind in (Kind.DATE, Kind.TIMESTAMP):
        return since_1970(value, kind)
    return value


def _read_value(written: str | None, kind: str) -> Value:
    if written is None or kind == "category":
        return written
    return since_1970(written, Kind(kind)) if kind in ("date", "timestamp") else Fraction(written)


def _write(
    plan: Plan, table: ReleasedTable, order: Sequence[int], column: ShownColumn, row: Row, value: Value
) -> str | None:
    if row.origin is not None and column.measure is not None:
        return table.cells[order[row.origin]][plan.measures[column.measure][1]]
    if row.origin is not None and column.group is not None:
        key = plan.groups[column.group].values[plan.cells[order[row.origin]][column.group]]
        return key if isinstance(key, str) else str(text(key))
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Fraction):
        return write_value(value, column.kind, Kind(column.kind) if column.kind in ("date", "timestamp") else None)
    return value

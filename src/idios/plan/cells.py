"""GROUP BY: the cells that are answered, from public facts alone.

Every group that the declarations and the filter allow is answered, present in the data or not. A group that the
filter excludes (WHERE region = 'north' GROUP BY region) holds no record of any table, and is no cell.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

from idios.core.domain import LIMIT, Categories
from idios.core.exact import text
from idios.declare.dates import format_value
from idios.declare.schema import Column, Dataset
from idios.errors import QuestionRefused
from idios.expressions.diagram import Diagram
from idios.expressions.predicates import Among, Intervals, intersection, partition
from idios.expressions.work import RUN
from idios.plan.derived_values import find_possible
from idios.plan.question import Group, Key, Question

Cell = tuple[int, ...]


def make_groups(question: Question, dataset: Dataset, selection: Diagram) -> tuple[Group, ...]:
    """The groups of each key, in the order of the columns' names; ``selection`` excludes NULL in a key."""
    counted = 1
    for key in question.keys:
        counted *= _count(question, key, dataset.columns[key.column], selection)
    if counted > dataset.max_groups:
        raise QuestionRefused(
            f"GROUP BY makes {counted:,} groups, at most {dataset.max_groups:,} are allowed: "
            "use fewer keys, wider bins, or narrow the keys with WHERE"
        )
    return tuple(
        _group(question, key, dataset.columns[key.column], selection)
        for key in sorted(question.keys, key=lambda key: key.column)
    )


def make_cells(groups: Sequence[Group], selection: Diagram) -> tuple[Cell, ...]:
    """The combinations of groups that some record can be in.

    The groups of derived columns are conditions on others, so that each of them is asked for what is left.
    """
    columns = selection.manager.columns
    derived = [place for place, group in enumerate(groups) if columns[group.column].expression is not None]
    if not derived:
        return selection.combinations([(group.column, group.intervals) for group in groups])
    plain = [place for place in range(len(groups)) if place not in derived]
    cells = []
    for chosen, left in _divide([groups[place] for place in derived], selection):
        for rest in left.combinations([(groups[place].column, groups[place].intervals) for place in plain]):
            indices = dict(zip([*derived, *plain], [*chosen, *rest], strict=True))
            cells.append(tuple(indices[place] for place in range(len(groups))))
    return tuple(sorted(cells))


def _divide(groups: Sequence[Group], selection: Diagram) -> Iterator[tuple[Cell, Diagram]]:
    """Each combination of groups of derived columns that some record can be in, and the records that are."""
    if not groups:
        yield (), selection
        return
    for index, interval in enumerate(groups[0].intervals):
        part = selection & selection.manager.build(Among(groups[0].column, (interval,)))
        if not part.never:
            for rest, left in _divide(groups[1:], part):
                yield (index, *rest), left


def partition_selection(group: Group, selection: Diagram) -> tuple[Intervals, ...]:
    """What each group can hold of what is selected: equal for equal partitions, however the bins were named."""
    possible, _ = find_possible(selection, group.column)
    selection.manager.work.spend(RUN * (len(possible) + len(group.intervals)))
    if intersection(group.points, possible) == group.points:  # as nearly always, and there may be many
        return tuple(zip(group.intervals))
    return partition(possible, group.intervals)


def _count(question: Question, key: Key, column: Column, selection: Diagram) -> int:
    """How many groups a key has, without listing them."""
    possible, _ = find_possible(selection, key.column)
    selection.manager.work.spend(len(possible))
    size = _size(question, key, column)
    counted, counted_to = 0, -math.inf
    for first, last in possible:
        if first is None or last is None:
            raise QuestionRefused(
                f"bins need bounds, and {column.name} declares none: narrow it, WHERE {column.name} BETWEEN … AND …",
                question.source,
                key.offset,
            )
        # a bin that the previous run has reached already is not counted again
        counted += last // size - int(max(first // size - 1, counted_to))
        counted_to = last // size
    return counted


def _size(question: Question, key: Key, column: Column) -> int:
    """How many grid points make a group: one category, false or true, or the width of a bin in steps."""
    whole = isinstance(column.domain, Categories) or (key.width is None and column.holds_truth)
    if (key.width is None) != whole:
        raise QuestionRefused(
            "GROUP BY lists columns of categories or booleans and BIN(column, width) of the others; "
            f"{column.name} is {column.kind.with_article}",
            question.source,
            key.offset,
        )
    size = (key.width or 1) / column.grid.step
    if size > LIMIT:
        raise QuestionRefused(
            f"the width of a bin is at most 2^62 steps of the column, which are {text(column.grid.step)} each",
            question.source,
            key.offset,
        )
    if size.denominator != 1 or size < 1:
        raise QuestionRefused(
            f"the width of a bin is a multiple of the column's step, which is {text(column.grid.step)}",
            question.source,
            key.offset,
        )
    return int(size)


def _group(question: Question, key: Key, column: Column, selection: Diagram) -> Group:
    size, grid = _size(question, key, column), column.grid
    possible, _ = find_possible(selection, key.column)
    intervals: list[tuple[int, int]] = []
    values: list[str | Fraction] = []
    indices = _indices(possible, size)
    selection.manager.work.spend(len(possible) + RUN * len(indices))
    if isinstance(column.domain, Categories) and column.expression is None:  # of which there may be many
        shown = column.domain.labels or column.domain.values
        every = tuple(zip(indices, indices, strict=True)), tuple(map(shown.__getitem__, indices))
        return Group(key.label, column.name, *every, key.width)
    for index in indices:
        first, last = index * size, (index + 1) * size - 1
        if column.expression is not None:
            within = selection.manager.build(Among(column.name, ((grid.clamp(first), grid.clamp(last)),)))
            if (selection & within).never:
                continue
        intervals.append((grid.clamp(first), grid.clamp(last)))
        if isinstance(column.domain, Categories):
            values.append(column.domain.shown(index))
        elif key.width is None:
            values.append("true" if index else "false")
        else:
            values.append(format_value(first * grid.step, column.kind))
    return Group(key.label, column.name, tuple(intervals), tuple(values), key.width)


def _indices(possible: Intervals, size: int) -> list[int]:
    """The groups ⌊point/size⌋ that some possible point lies in, ascending."""
    if len(possible) == 1 and possible[0][0] is not None and possible[0][1] is not None:
        return list(range(possible[0][0] // size, possible[0][1] // size + 1))
    indices: dict[int, None] = {}
    for first, last in possible:
        if first is None or last is None:
            raise AssertionError("groups are counted, which needs bounds, before they are listed")
        indices.update(dict.fromkeys(range(first // size, last // size + 1)))
    return list(indices)

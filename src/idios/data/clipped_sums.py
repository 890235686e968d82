"""The second round of a plan: exact sums of values that are clipped to limits drawn after the first round.

1. From the first round, if it added up all values: limits are drawn so that few values lie beyond (rule 2 of
   ``core/clipping.py``), and it read those at both ends for that. The sum of all is corrected for them, exactly.
2. Else one query answers for all cells and aggregates. The limits are constants of the cells, as the ends of brackets
   are. What reads as missing in the first round is missing here, and what stands in for it there is clipped like any
   other value.

The second way is taken in groups, where an index gave the order, and where more values lie beyond a limit than were
read: whatever the data, with a chance of less than e^−30, unless the radius is the greatest there is. Both ways give
the same, so that the choice shows in time alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import ibis  # type: ignore[import-untyped]
import ibis.expr.types as ir  # type: ignore[import-untyped]

from idios.core.summary import Summary
from idios.data.clip import Clip, Limits
from idios.data.queries import (
    WIDE,
    Queries,
    aggregate_by_cell,
    read_squares,
    read_sum,
    rows_by_cell,
    sum_exactly,
    sum_squares_exactly,
)
from idios.data.requirements import Requirements
from idios.data.sql.dialect import Dialect
from idios.data.summarise import Summaries


@dataclass(frozen=True)
class _ClippedColumn:
    """The column of one aggregate, clipped to its own limits, and whether squares are added up too."""

    index: int
    name: str
    squares: bool
    default: int | None
    """What replaces values that cannot be read, where it is added to the sums afterwards; None: it is in them."""


def correct_sums(
    requirements: Requirements, first: Summaries, limits: Mapping[int, Sequence[Limits]]
) -> dict[int, list[Summary]]:
    """The same as ``sum_clipped``, of those aggregates for which the first round suffices."""
    corrected: dict[int, list[Summary]] = {}
    for index, totals in first.totals.items():
        if index in limits:
            (cell,), (pair,) = first.cells, limits[index]
            summary = Clip.of(requirements.plan.aggregates[index].grid, pair).correct(cell[index], totals)
            if summary is not None:
                corrected[index] = [summary]
    return corrected


def sum_clipped(
    requirements: Requirements, queries: Queries, limits: Mapping[int, Sequence[Limits]]
) -> dict[int, list[Summary]]:
    """By the index of an aggregate, for every cell of the plan: the number and the sum of its clipped values.

    The domain of each summary is what its values were clipped to. Squares are added up where the statistic needs them.
    """
    if not limits:
        return {}
    plan, cells = requirements.plan, requirements.cells
    clips = {
        index: {cell: Clip.of(plan.aggregates[index].grid, pair) for cell, pair in zip(cells, of_cells, strict=True)}
        for index, of_cells in limits.items()
    }
    columns = tuple(_make_column(requirements, index) for index in clips)
    constants = {
        f"{end}_{index}": {cell: getattr(clip, end) for cell, clip in of_cells.items()}
        for index, of_cells in clips.items()
        for end in ("low", "high")
    }
    rows = dict(rows_by_cell(queries.fetch(_add_clipped, columns, constants=constants)))
    found: dict[int, list[Summary]] = {}
    for column in columns:
        found[column.index] = []
        for cell in cells:
            row, prefix = rows.get(cell, {}), f"clipped_{column.index}"
            read = row.get(f"{prefix}_size") or 0  # Spark counts by adding, and a sum of nothing is NULL
            total = read_sum(row[f"{prefix}_sum"], read) if read else 0
            squares = (read_squares(row, prefix, read) if read else 0) if column.squares else None
            clip, replaced = clips[column.index][cell], 0
            if column.default is not None:
                replaced, value = row.get("records", 0) - read, max(clip.low, min(clip.high, column.default))
                total += replaced * value
                squares = None if squares is None else squares + replaced * value**2
            moves = requirements.moves(plan.aggregates[column.index], read + replaced)
            found[column.index].append(clip.summarise(moves, total, squares))
    return found


def _make_column(requirements: Requirements, index: int) -> _ClippedColumn:
    aggregate = requirements.plan.aggregates[index]
    name = requirements.alias(aggregate)
    column = requirements.selection.grid_column(name)
    default = column.default if column.bounded is not None else None
    return _ClippedColumn(index, name, aggregate.statistic.needs_squares, default)


def _add_clipped(relation: ir.Table, dialect: Dialect, columns: tuple[_ClippedColumn, ...]) -> ir.Table:
    aggregates: dict[str, ir.Value] = {"records": relation.count()}
    for column in columns:
        read = column.name if column.default is None else f"p{column.name[1:]}"
        value, low, high = (relation[name] for name in (read, f"low_{column.index}", f"high_{column.index}"))
        # never GREATEST and LEAST, which in most engines ignore NULL
        clipped = ibis.cases((value < low, low), (value > high, high), else_=value)
        prefix = f"clipped_{column.index}"
        aggregates[f"{prefix}_size"] = value.count()
        aggregates[f"{prefix}_sum"] = sum_exactly(clipped, dialect).cast(WIDE)
        if column.squares:
            aggregates |= sum_squares_exactly(prefix, clipped, dialect)
    return aggregate_by_cell(relation, aggregates)

"""Order statistics by an index of PostgreSQL, which holds a column in the order of its points.

    cut     a k-th value needs the values near its end alone: the table is cut to those rows before anything is read
    walk    other ranks are reached by walking the index from the nearer end; nothing is sorted, and no row is visited

Which way is taken follows from the declaration, the question and the catalogue. What is found does not depend on it:
these are ordinary queries, which would be slow without the index and would give the same.

Two facts make the order of the source that of the points. The map from what is held to points never decreases
(``grid_sql.py``); and what has no point (NULL, NaN, ±∞) lies outside an interval of the order, so that the index
leaves it out or counts it.

Lemma (cutting). Let the statistic be the k-th largest, d the number of changed records it is read for, and let it read
none but the r greatest of n ≥ r values. Let T be some of the records of D, with the m = r + d + 1 greatest of D's
values among T's own, or with all of them, and with m of the records that have no value, or all. Then D and T are
answered with the same law. For k ≤ r, so that every size is compared with k, k + d, d or d + 1, and both sizes are at
least m or equal; every rank that is read lies at least d + 1 above the lowest, and is read as the same value when all
ranks shift by the difference of sizes, as those beyond the greatest are; and of the records outside the selection no
more than d are ever counted. The mirror image holds of the k-th smallest, without a shift.

A column that is declared not nullable has public points in place of what cannot be read. The m greatest of its values
are among the m greatest that can be read and m public points, or as many as there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import ibis.expr.datatypes as dt  # type: ignore[import-untyped]
import numpy as np

from idios.core.calibration import Method
from idios.core.neighbours import Moves, Neighbours
from idios.core.outer_ranks import RankPlan
from idios.core.statistics import KthLargest, KthSmallest
from idios.data.brackets import Known, Piece
from idios.data.guesses import FEW
from idios.data.queries import CHANGED, Queries, Run
from idios.data.requirements import NOMINAL
from idios.data.scan import Need
from idios.data.sql.selection import ONLY, SelectStatement
from idios.data.summarise import RankSearch
from idios.errors import SourceError
from idios.expressions.predicates import ALWAYS
from idios.plan.question import Aggregate, Plan

VISIBLE = "relpages > 0 AND relallvisible >= 0.9 * relpages"
"""Whether nearly all pages of a table are known to be visible to everyone, so that an index is read without its rows.

It follows from when the table was last written to and vacuumed. Few values are quickly found without."""

FARTHEST = 1.0
"""How many times the number of rows may be walked for all ranks of a question together."""


@dataclass(frozen=True)
class IndexedColumn:
    """A column that an index leads with: whether a row has a point, and whether it has none, as ranges of the index."""

    held: str
    read: str
    unread: str

    @classmethod
    def of_type(cls, held: str, kind: dt.DataType) -> IndexedColumn | None:
        """By the type of what is held; None where its order is not that of points. NaN is greater than infinity."""
        if kind.is_integer() or kind.is_boolean():
            return cls(held, f"{held} IS NOT NULL", f"{held} IS NULL")
        if kind.is_floating() or kind.is_decimal() or kind.is_date() or kind.is_timestamp():
            read = f"{held} > '-infinity' AND {held} < 'infinity'"
            return cls(held, read, f"({held} IS NULL OR {held} >= 'infinity' OR {held} = '-infinity')")
        return None


def cut_to_ends(plan: Plan, indexed: Mapping[str, IndexedColumn], table: str) -> str | None:
    """What stands after FROM to read only those rows that matter; None if that may be any.

    They are the same values however ties are broken, so that all queries of a question read the same.
    """
    columns = {aggregate.column for aggregate in plan.aggregates}
    statistics = [aggregate.statistic for aggregate in plan.aggregates]
    if not _reads_rows(plan) or plan.filter != ALWAYS or len(columns) != 1 or not all(map(_reads_end, plan.aggregates)):
        return None
    column = indexed.get(next(iter(columns)) or "")
    greatest = all(isinstance(statistic, KthLargest) for statistic in statistics)
    if column is None or not (greatest or all(isinstance(statistic, KthSmallest) for statistic in statistics)):
        return None
    number = max(_count_read(aggregate, greatest) + aggregate.distance + 1 for aggregate in plan.aggregates)
    if number > FEW:
        return None
    order = "DESC" if greatest else "ASC"
    ends = f"SELECT {column.held} FROM {table} WHERE {column.read} ORDER BY {column.held} {order} LIMIT {number}"
    rest = f"SELECT {column.held} FROM {table} WHERE {column.unread} LIMIT {number}"
    return f"(({ends}) UNION ALL ({rest})) AS ends"


def _reads_rows(plan: Plan) -> bool:
    """Whether records are rows of the table, all in one cell."""
    data = plan.dataset
    return data.reduction is None and not data.unit and data.covers_everyone and not plan.groups


def _reads_end(aggregate: Aggregate) -> bool:
    """Whether the lemma holds of what is read and drawn: a k-th value by its envelope, or searched for from its end."""
    choice = aggregate.choice
    if choice.reading is None:
        return choice.method in (Method.LOCAL, Method.INVERSE)
    return isinstance(choice.reading, RankPlan) and not choice.reading.share and choice.reading.centre is None


def _count_read(aggregate: Aggregate, greatest: bool) -> int:
    """How many values from the end are read."""
    outside = None if aggregate.whole or aggregate.neighbours is Neighbours.ADD_REMOVE else NOMINAL
    runs = list(aggregate.reading.ranks(Moves(aggregate.neighbours, NOMINAL, outside), aggregate.distance))
    return max(NOMINAL - first + 1 if greatest else last for first, last in runs)


def walk_index(search: RankSearch, indexed: Mapping[str, IndexedColumn]) -> bool:
    """Find all that a plan needs by walking indices, and tell whether that was possible; if not, nothing is changed."""
    requirements, queries = search.requirements, search.queries
    selection, plan = requirements.selection, requirements.plan
    on_held, on_points = selection.divide_filter()
    walked = sum(min(last, NOMINAL - first) for runs in requirements.nominal.values() for first, last in _merge(runs))
    if (
        not search.samples
        or not requirements.nominal
        or not _reads_rows(plan)
        or any(need != Need() for need in search.needs.values())
        or any(aggregate.reading.needs_distinct or aggregate.reading.needs_counts for aggregate in plan.aggregates)
        or not set(selection.columns) <= set(indexed)
        or on_points
        or (on_held and len(selection.columns) > 1)
        or walked > FARTHEST * NOMINAL
        or not _is_visible(queries)
    ):
        return False
    search.progress("walking", 0.2)
    where = " AND ".join([*on_held, ""])
    records = queries.connection.count(f"{queries.source} WHERE {where}TRUE") if on_held else requirements.rows
    known: dict[str, Known] = {}
    for name in search.needs:
        column = indexed[selection.column_name(name)]
        unread = queries.connection.count(f"{queries.source} WHERE {where}{column.unread}")
        if unread and selection.grid_column(name).default is not None:
            return False  # public points have no place in the order of the source
        size = records - unread
        ranked = [aggregate for aggregate in requirements.ranked if requirements.alias(aggregate) == name]
        runs = _merge(run for aggregate in ranked for run in requirements.runs(aggregate, size))
        pieces = [_read_run(queries, name, f"{where}{column.read}", run, size) for run in runs]
        known[name] = Known(size).extended(pieces)
    search.records = {ONLY: records}
    search.known = {(ONLY, name): of_column for name, of_column in known.items()}
    return True


def _is_visible(queries: Queries) -> bool:
    name = queries.connection.dialect.string(queries.source)
    return queries.connection.count(f"pg_class WHERE oid = to_regclass({name}) AND {VISIBLE}") == 1


def _merge(runs: Iterable[Run]) -> list[Run]:
    """Those that overlap, or nearly, as one."""
    merged: list[Run] = []
    for first, last in sorted(runs):
        if merged and first - merged[-1][1] <= FEW:
            merged[-1] = merged[-1][0], max(last, merged[-1][1])
        else:
            merged.append((first, last))
    return merged


def _read_run(queries: Queries, name: str, where: str, run: Run, size: int) -> Piece:
    """Some ranks of ``size`` values, from the nearer end."""
    column, (first, last) = queries.selection.grid_column(name), run
    order, skipped = ("ASC", first - 1) if first - 1 <= size - last else ("DESC", size - last)
    held = f"SELECT {column.held} FROM {queries.source} WHERE {where} ORDER BY {column.held} {order}"
    points = f"SELECT {column.point} AS point FROM ({held} OFFSET {skipped} LIMIT {last - first + 1}) AS few"
    text = f"SELECT {column.value('point')} AS point FROM ({points}) AS points"
    found = queries.connection.fetch(SelectStatement.of_integers(text, "point"))["point"]
    if found.null_count or len(found) != last - first + 1:
        raise SourceError(CHANGED)
    return Piece(first - 1, inside=np.asarray(found.to_numpy()))

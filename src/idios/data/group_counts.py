"""Order statistics of large cells by counting, for an engine that counts far quicker than it sorts or collects.

A round divides the values of each cell into buckets and tells of each bucket how many values it holds, their least and
greatest, and if wanted their sum. So the ranks that a bucket holds are known, and only buckets with wanted ranks and
more than one value are divided again, until they hold so few values that each may be a bucket of its own. The first
division is guessed from a sample.

*What is found is exact, however the buckets were chosen.* If the buckets of a cell are disjoint, each value lies in one
of them, and in ascending order the values of bucket i have the ranks from 1 + Σ_{j<i} times_j to Σ_{j≤i} times_j. A
bucket whose least value is its greatest holds this one alone. That buckets do not overlap, and that a cell holds as
many values after a division as before, is checked from what was read. A bad guess costs a round and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import or_
from typing import Any, TypeAlias

import ibis  # type: ignore[import-untyped]
import ibis.expr.types as ir  # type: ignore[import-untyped]
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from idios.core.summary import Window
from idios.data.group_ranks import Wanted
from idios.data.queries import CHANGED, WIDE, Queries, Run, sum_exactly
from idios.data.sql.dialect import Dialect
from idios.data.sql.selection import CELL
from idios.errors import SourceError

BUCKETS = 64
"""Into how many parts a span of values is divided."""
LARGE = 512
"""How many records a cell should have on average: sorting is as quick for smaller ones."""
ROUNDS = 5
"""After so many divisions, what is not found is left to sorting: values spread over many orders of magnitude."""
FETCHED = 2**20
"""How many values may be buckets of their own."""
BUCKET = "bucket"

Spans: TypeAlias = Mapping[int, Sequence[Run]]
"""By cell the first and the last value of what is divided, in ascending order and disjoint."""


@dataclass(frozen=True)
class Buckets:
    """The buckets of all cells, by cell and in ascending order."""

    cells: NDArray[np.int64]
    least: NDArray[np.int64]
    greatest: NDArray[np.int64]
    times: NDArray[np.int64]
    sums: NDArray[np.object_]
    """The sum of each bucket; of no use unless it was asked for."""

    @classmethod
    def read(cls, table: pa.Table) -> Buckets:
        """What a division gave: a bucket of NULL alone holds no value."""
        table = table.filter(table["bucket_least"].is_valid())
        sums = table["bucket_sum"].to_pylist() if "bucket_sum" in table.column_names else [0] * len(table)
        cells, least, greatest, times = (
            table[name].to_numpy() for name in (CELL, "bucket_least", "bucket_greatest", "bucket_times")
        )
        return cls(cells, least, greatest, times, np.array([int(total) for total in sums], object))._in_order()

    def refine(self, divided: NDArray[np.bool_], finer: Buckets) -> Buckets:
        """With finer buckets for those that were divided."""
        kept = [column[~divided] for column in self._columns]
        return Buckets(*map(np.concatenate, zip(kept, finer._columns, strict=True)))._in_order()

    def check_sizes(self, wanted: Wanted) -> None:
        """Raise unless each cell holds as many values as were counted."""
        places = [*self._starts.values(), len(self.cells)]
        sizes = dict(zip(self._starts, np.diff(self._up_to[places]).tolist(), strict=True))
        if any(sizes.get(cell) != size for cell, size in wanted.sizes.items()):
            raise SourceError(CHANGED)

    def find_open(self, wanted: Wanted) -> NDArray[np.bool_]:
        """Which buckets hold wanted ranks and several values."""
        places = self._locate(wanted)
        edges = np.zeros(len(self.cells) + 1, np.int64)
        np.add.at(edges, [first for first, _ in places.values()], 1)
        np.add.at(edges, [last + 1 for _, last in places.values()], -1)
        return (np.cumsum(edges)[:-1] > 0) & (self.least < self.greatest)

    def list_spans(self, divided: NDArray[np.bool_]) -> dict[int, list[Run]]:
        """The spans of some buckets, those of neighbours joined; none so wide that a difference would overflow."""
        spans: dict[int, list[Run]] = {}
        places = np.flatnonzero(divided).tolist()
        cells, least, greatest = self.cells.tolist(), self.least.tolist(), self.greatest.tolist()
        previous = -2
        for i in places:
            listed = spans.setdefault(cells[i], [])
            if i == previous + 1 and listed:
                listed[-1] = (listed[-1][0], greatest[i])
            else:
                listed.append((least[i], greatest[i]))
            previous = i
        return {cell: [part for span in listed for part in cut_span(*span)] for cell, listed in spans.items()}

    def find_windows(self, wanted: Wanted, *, sums: bool) -> dict[tuple[int, Run], Window]:
        """The windows of those runs all of whose buckets hold one value."""
        several = np.concatenate([[0], np.cumsum(self.least < self.greatest)])
        sums_up_to = np.concatenate([[0], np.cumsum(self.sums)]) if sums else None
        found: dict[tuple[int, Run], Window] = {}
        for (cell, (first, last)), (i, j) in self._locate(wanted).items():
            if several[j + 1] > several[i]:
                continue
            start = self._starts[cell]
            ranks = np.arange(first, last + 1) + self._up_to[start]
            values = self.least[np.searchsorted(self._up_to[1:], ranks)].tolist()
            below = 0
            if sums_up_to is not None:
                within = first - 1 - int(self._up_to[i] - self._up_to[start])
                below = int(sums_up_to[i] - sums_up_to[start]) + within * values[0]
            found[cell, (first, last)] = Window(first, tuple(values), below)
        return found

    def _locate(self, wanted: Wanted) -> dict[tuple[int, Run], tuple[int, int]]:
        """The first and the last bucket of each run."""
        keys = [(cell, run) for cell, runs in wanted.runs.items() for run in runs]
        offsets = np.array([self._up_to[self._starts[cell]] for cell, _ in keys], np.int64)
        first, last = (
            np.searchsorted(self._up_to[1:], offsets + np.array([run[end] for _, run in keys], np.int64)).tolist()
            for end in (0, 1)
        )
        return dict(zip(keys, zip(first, last, strict=True), strict=True))

    def _in_order(self) -> Buckets:
        order = np.lexsort((self.least, self.cells))
        ordered = Buckets(*(column[order] for column in self._columns))
        same_cell = ordered.cells[1:] == ordered.cells[:-1]
        if (same_cell & (ordered.least[1:] <= ordered.greatest[:-1])).any():
            raise SourceError(CHANGED)  # as buckets of one state do not overlap
        return ordered

    @property
    def _columns(self) -> tuple[NDArray[Any], ...]:
        return self.cells, self.least, self.greatest, self.times, self.sums

    @cached_property
    def _up_to(self) -> NDArray[np.int64]:
        """How many values lie in all buckets before each, of all cells."""
        return np.concatenate([[0], np.cumsum(self.times)])

    @cached_property
    def _starts(self) -> dict[int, int]:
        """Where the buckets of each cell start."""
        cells, places = np.unique(self.cells, return_index=True)
        return dict(zip(cells.tolist(), places.tolist(), strict=True))


def search_by_counting(
    queries: Queries, wanted: Wanted, buckets: Buckets, *, sums: bool
) -> dict[tuple[int, Run], Window]:
    """Divide buckets until they tell the wanted windows, as far as that is found in a few rounds."""
    ranks = sum(last - first + 1 for runs in wanted.runs.values() for first, last in runs)
    buckets.check_sizes(wanted)
    for _ in range(ROUNDS):
        divided = buckets.find_open(wanted)
        if not divided.any():
            break
        few = int(buckets.times[divided].sum()) <= max(FETCHED, 4 * ranks)
        spans = buckets.list_spans(divided)
        inquiry = _list_values if few else _divide_spans
        table = queries.fetch(inquiry, wanted.name, count_spans(spans), sums, constants=write_spans(spans))
        buckets = buckets.refine(divided, Buckets.read(table))
        buckets.check_sizes(wanted)
    return buckets.find_windows(wanted, sums=sums)


def divide_all(queries: Queries, name: str, spans: Spans, *, sums: bool) -> Buckets:
    """All values of a column, divided inside some spans."""
    return Buckets.read(queries.fetch(_divide, name, count_spans(spans), sums, constants=write_spans(spans)))


def write_spans(spans: Spans) -> dict[str, dict[int, int]]:
    """The ends of spans, as constants of the cells."""
    constants: dict[str, dict[int, int]] = {}
    for k in range(count_spans(spans)):
        kth = {cell: listed[k] for cell, listed in spans.items() if k < len(listed)}
        constants[f"from_{k}"] = {cell: first for cell, (first, _) in kth.items()}
        constants[f"to_{k}"] = {cell: last for cell, (_, last) in kth.items()}
    return constants


def cut_span(first: int, last: int) -> list[Run]:
    """A span, cut at 0 if differences of its values could leave 64 bits.

    >>> cut_span(-3, 5), len(cut_span(-2**62, 2**62))
    ([(-3, 5)], 2)
    """
    return [(first, last)] if last - first < 2**62 else [(first, -1), (0, last)]


def number_buckets(relation: ir.Table, name: str, spans: int) -> ir.IntegerValue:
    """The bucket of a record: never less for a greater value, as every step of the arithmetic is monotone."""
    value, cases = relation[name], []
    for k in range(spans):
        first, last = relation[f"from_{k}"], relation[f"to_{k}"]
        share = (value - first).cast("float64") / (last - first + 1).cast("float64")
        inside = ibis.least((share * BUCKETS).floor().cast("int64"), BUCKETS - 1)
        cases += [(value < first, 2 * k * BUCKETS), (value <= last, (2 * k + 1) * BUCKETS + inside)]
    return ibis.cases(*cases, else_=2 * spans * BUCKETS)


def aggregate_buckets(relation: ir.Table, dialect: Dialect, name: str, sums: bool) -> dict[str, ir.Value]:
    """What is told of a bucket."""
    value = relation[name]
    told = {"bucket_least": value.min(), "bucket_greatest": value.max(), "bucket_times": value.count()}
    return told | ({"bucket_sum": sum_exactly(value, dialect).cast(WIDE)} if sums else {})


def _divide(relation: ir.Table, dialect: Dialect, name: str, spans: int, sums: bool) -> ir.Table:
    relation = relation.filter(relation[name].notnull())
    numbered = relation.mutate(**{BUCKET: number_buckets(relation, name, spans)})
    return numbered.group_by([CELL, BUCKET]).aggregate(**aggregate_buckets(numbered, dialect, name, sums)).drop(BUCKET)


def _divide_spans(relation: ir.Table, dialect: Dialect, name: str, spans: int, sums: bool) -> ir.Table:
    return _divide(_inside(relation, name, spans), dialect, name, spans, sums)


def _list_values(relation: ir.Table, dialect: Dialect, name: str, spans: int, sums: bool) -> ir.Table:
    inside = _inside(relation, name, spans).mutate(**{BUCKET: relation[name]})
    return inside.group_by([CELL, BUCKET]).aggregate(**aggregate_buckets(inside, dialect, name, sums)).drop(BUCKET)


def _inside(relation: ir.Table, name: str, spans: int) -> ir.Table:
    value = relation[name]
    return relation.filter(
        reduce(or_, (value.between(relation[f"from_{k}"], relation[f"to_{k}"]) for k in range(spans)))
    )


def count_spans(spans: Spans) -> int:
    """How many spans a cell has, at most."""
    return max(map(len, spans.values()))

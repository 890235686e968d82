"""One implementation of a backend over Ibis; each engine's module holds what it does differently."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from idios.core.domain import Kind
from idios.core.summary import Summary
from idios.data.backend import Backend, Limits, Snapshot
from idios.data.cancellation import CancellationToken, Cancelled, Progress, silent
from idios.data.clipped_sums import correct_sums, sum_clipped
from idios.data.compare_declared import DeclarationReport, check_dataset
from idios.data.connection_pool import Connection, ConnectionPool
from idios.data.guesses import ColumnSample
from idios.data.queries import CHANGED, Queries
from idios.data.requirements import Requirements
from idios.data.sql.dialect import Dialect
from idios.data.sql.grid_sql import GridColumn, list_layers, nest_layers, with_sources
from idios.data.sql.join_sql import (
    HeldKey,
    Rows,
    describe_repeated_key,
    find_repeated_keys,
    list_comparisons,
    refuse_incomparable,
    write_everyone,
)
from idios.data.sql.reduction_sql import ReducedTable, reduce_rows
from idios.data.sql.selection import Selection, SelectStatement, columns_of
from idios.data.summarise import SMALL, RankSearch, Summaries, summarise
from idios.declare.schema import Dataset
from idios.errors import IdiosError, SourceError
from idios.plan.question import Plan

log = logging.getLogger("idios.controller")

SAMPLED = 2**16
"""How many records a sample should have."""
SAMPLED_A_CELL = 2**12
"""And how many in each cell, on average."""
COUNTED_A_CELL = 2**7
"""The same where ranks are found by counting, and the sample says only where to begin."""


@dataclass(frozen=True)
class SqlSnapshot(Snapshot):
    """A plan over one connection, in one transaction where the engine has them."""

    summaries: Sequence[Sequence[Summary]]
    first: Summaries
    requirements: Requirements
    queries: Queries
    translate_errors: Callable[[], AbstractContextManager[None]]
    pooled: Sequence[Summary] = ()

    def sum_clipped(self, limits: Mapping[int, Sequence[Limits]]) -> dict[int, list[Summary]]:
        """Read one more round, of what the first one does not say already; see ``clipped_sums.py``."""
        with self.translate_errors():
            self.queries.connection.cancellation.step("adding up", 0.95)
            corrected = correct_sums(self.requirements, self.first, limits)
            rest = {index: of_cells for index, of_cells in limits.items() if index not in corrected}
            found = sum_clipped(self.requirements, self.queries, rest)
        for index, of_cells in found.items():
            for first, clipped in zip(self.summaries, of_cells, strict=True):
                if first[index].moves != clipped.moves:
                    raise SourceError(CHANGED)
        return corrected | found


class SqlBackend(Backend):
    """A table in a database that Ibis can talk to.

    ``table`` is what stands after FROM, ``columns`` the SQL that puts each declared column on the grid, ``keys`` what
    tells people apart or is named by a link, and ``linked`` the other tables of the data set.
    """

    dialect: Dialect
    table: str
    columns: Mapping[str, GridColumn]
    keys: Mapping[str, HeldKey]
    linked: Mapping[str, Rows]
    kept: dict[Hashable, Any] | None = None
    """What questions have counted and sampled, where the source does not change while it is open."""

    def __init__(self, dataset: Dataset, connections: ConnectionPool, progress: Progress | None = None) -> None:
        self.dataset = dataset
        self.connections = connections
        self.progress = progress or silent
        self._warned: set[str] = set()

    def hold(self, tables: Mapping[str, Rows]) -> None:
        """Read the data set from these tables, by their names."""
        own = tables[self.dataset.name]
        self.table, self.columns, self.keys = own.table, own.columns, own.keys
        self.linked = {name: rows for name, rows in tables.items() if name != self.dataset.name}

    @abstractmethod
    def samplings(self, share: float, rows: int) -> list[ColumnSample]:
        """Quick ways to take a sample of about that share; it need not be even."""

    def cut(self, plan: Plan) -> str | None:
        """What stands after FROM to read only those rows that can matter, where few are found without a scan."""
        return None

    def find_ordered(self, search: RankSearch) -> bool:
        """Find all that is searched for where the source keeps it in order, and tell whether that was possible."""
        return False

    def try_reading(self) -> None:
        """Let the engine compile the columns that will be read, without reading a record."""
        held = [column for column in self.columns.values() if column.derive is None]
        names = [f"point{i}" for i in range(len(held))]
        columns = ", ".join(f"{column.point} AS {name}" for column, name in zip(held, names, strict=True))
        failed = f"the source of {self.dataset.name!r} cannot be read as declared, or may not be read"
        with self._connected(failed=failed) as connection:
            connection.fetch(SelectStatement.of_integers(f"SELECT {columns} FROM {self.table} LIMIT 0", *names))
            for name, column in self.columns.items():
                if column.derive is not None:
                    self._read_points(connection, name, " LIMIT 0")
            if self.dataset.unit:
                text = f"SELECT number_of_rows FROM {self.held_rows.sizes} LIMIT 0"
                connection.fetch(SelectStatement.of_integers(text, "number_of_rows"))
            if self.dataset.tables:
                self._try_linked(connection)
            self._refuse_repeated_keys(connection)

    def _try_linked(self, connection: Connection) -> None:
        """Let the engine compile what is read of linked tables."""
        refuse_incomparable(self.dataset, self.held_rows)
        for rows in self.linked.values():
            points = nest_layers(list_layers(rows.columns, self.dialect), rows.table, self.dialect)
            names = [f"v{i}" for i in range(len(rows.columns))]
            columns = ", ".join(map(self.dialect.identifier, names))
            connection.fetch(SelectStatement.of_integers(f"SELECT {columns} FROM ({points}) AS points LIMIT 0", *names))
        for compared in list_comparisons(self.dataset, self.held_rows, self.dialect):
            connection.fetch(SelectStatement.of_integers(f"SELECT 1 AS one FROM {compared} LIMIT 0", "one"))

    def _refuse_repeated_keys(self, connection: Connection) -> None:
        """Check that keys are unique which must be."""
        for (table, keys), repeated in find_repeated_keys(self.dataset, self.held_rows, self.dialect).items():
            if number := connection.count(repeated):
                raise SourceError(describe_repeated_key(self.dataset, table, keys, number))

    def rows(self) -> int:
        """How many records the table has."""
        with self._connected() as connection:
            return connection.count(self.table)

    def count_units(self) -> int:
        """How many people the table has; how many records, where it declares no unit."""
        with self._connected() as connection:
            return self._count_units(connection)

    @contextmanager
    def open_snapshot(self, plan: Plan, cancellation: CancellationToken | None = None) -> Iterator[SqlSnapshot]:
        """Read the first round; see ``summarise.py``. An error of the caller's own passes as it is."""
        with ExitStack() as stack:
            with self._translate_errors():
                connection = stack.enter_context(self._acquire(cancellation))
                read = self._choose_columns(plan)
                if plan.dataset.reduction is not None:  # people are grouped once, however many queries read them
                    read = replace(read, source=stack.enter_context(connection.materialise(read.source)))
                snapshot = self._read_first(plan, connection, read)
                if plan.pool is not None:
                    (pooled,) = self._read_first(plan.pool, connection, read).summaries
                    snapshot = replace(snapshot, pooled=pooled)
            yield snapshot
            with self._translate_errors():
                stack.close()
                connection.cancellation.step("summarised", 1.0)

    def _read_first(self, plan: Plan, connection: Connection, read: ReducedTable) -> SqlSnapshot:
        selection = Selection(plan, read.columns, self.dialect)
        rows = connection.count(read.source) if read.cut else self._count_units(connection)
        samples = [] if read.cut else self._list_samples(plan, connection, read.source, rows, selection.span)
        requirements, queries = (
            Requirements(plan, selection, rows * plan.dataset.records),
            Queries(connection, selection, read.source, None if plan.dataset.reduction else self.kept),
        )
        summaries = summarise(requirements, queries, samples, connection.cancellation, self.find_ordered)
        for name, number in summaries.unread.items():
            if number and name not in self._warned:
                self._warned.add(name)
                log.warning(
                    "column %r of %r is declared not nullable, and %d of the values that a question selected are "
                    "missing or cannot be read: they read as a public point; `idios check` counts them all",
                    name,
                    self.dataset.name,
                    number,
                )
        return SqlSnapshot(summaries.cells, summaries, requirements, queries, self._translate_errors)

    def _choose_columns(self, plan: Plan) -> ReducedTable:
        """What a plan reads: the table, or the people in it."""
        if plan.dataset.reduction is None:
            columns, cut = {name: self.columns[name] for name in columns_of(plan)}, self.cut(plan)
            return ReducedTable(cut or self.table, columns, cut=cut is not None)
        return reduce_rows(plan.dataset, columns_of(plan), self.held_rows, self.dialect)

    @property
    def held_rows(self) -> Rows:
        """The rows, of which a person may have several."""
        return Rows(self.table, self.columns, self.unit_columns, self.keys, self.linked)

    @property
    def unit_columns(self) -> Sequence[str]:
        """What tells people apart, as SQL."""
        return [self.keys[name].value for name in self.dataset.unit]

    def check(self) -> DeclarationReport:
        """Count what does not fit the declaration."""
        with self._connected() as connection:
            return check_dataset(self.dataset, self.held_rows, connection)

    def sample_texts(self, described: Sequence[tuple[str, Kind, int]], rows: int) -> tuple[pa.Table, int]:
        """About so many records, drawn from everywhere, as text, and how many there are; for the controller's eyes.

        Engines write every value of a type that can be declared as text. A number that is none is NULL.
        """
        with self._connected(failed="some values of the columns cannot be read as text") as connection:
            total = connection.count(self.table)
            listed = []
            for i, (name, kind, _) in enumerate(described):
                x = self.dialect.identifier(name)
                text = self.dialect.text.format(x=x)
                finite = f"CASE WHEN {self.dialect.finite.format(x=x)} THEN {text} END"
                listed.append(f"{finite if kind is Kind.NUMBER else text} AS {self.dialect.identifier(f'c{i}')}")
            drawn = self.dialect.even_sample.format(share=min(1.0, rows / max(total, 1)))
            schema = pa.schema([(f"c{i}", pa.string()) for i in range(len(described))])
            text = f"SELECT {', '.join(listed)} FROM {self.table} WHERE {drawn}"
            return connection.fetch(SelectStatement(text, schema)), total

    def points(self, column: str) -> pa.ChunkedArray:
        """Every value of a column as its grid point: for the controller's own comparisons, never for a question."""
        with self._connected() as connection:
            return self._read_points(connection, column)

    def _read_points(self, connection: Connection, column: str, limit: str = "") -> pa.ChunkedArray:
        text = f"SELECT {self.dialect.identifier('v0')} AS point FROM {self._place_on_grid([column])}{limit}"
        return connection.fetch(SelectStatement.of_integers(text, "point"))["point"]

    def _place_on_grid(self, names: Sequence[str]) -> str:
        """What stands after FROM to read some columns as v0, v1, … in their order."""
        columns = {name: self.columns[name] for name in with_sources(names, self.dataset.columns)}
        rows = self.held_rows
        owned = f"(SELECT * FROM {rows.table} WHERE {rows.owned}) AS owned" if rows.unit else rows.table
        return f"({nest_layers(list_layers(columns, self.dialect), owned, self.dialect)}) AS points"

    def close(self) -> None:
        """Wait for what is being read, and disconnect."""
        self.connections.close()

    @contextmanager
    def _connected(self, failed: str | None = None) -> Iterator[Connection]:
        """A connection for one call: all its queries see one snapshot, and drivers' errors become ours."""
        with self._translate_errors(failed), self._acquire() as connection:
            yield connection

    @contextmanager
    def _acquire(self, cancellation: CancellationToken | None = None) -> Iterator[Connection]:
        token = cancellation or CancellationToken(self.progress)
        with self.connections.acquire(token) as connection, connection.snapshot():
            yield connection

    @contextmanager
    def _translate_errors(self, failed: str | None = None) -> Iterator[None]:
        try:
            yield
        except (IdiosError, Cancelled):
            raise
        except Exception as error:
            # an engine's own words may quote values, so they are only chained, for the controller's log
            raise SourceError(failed or f"reading {self.dataset.name!r} failed in {self.dialect.name}") from error

    def _count_units(self, connection: Connection) -> int:
        if not self.dataset.covers_everyone:
            return connection.count(write_everyone(self.dataset, self.held_rows, self.dialect))
        return connection.count(self.held_rows.sizes if self.dataset.unit else self.table)

    def _list_samples(
        self, plan: Plan, connection: Connection, source: str, rows: int, cells: int
    ) -> list[ColumnSample]:
        """Ways to take a sample of what is read, if that is much; of people only where they are held in a table."""
        reduced = plan.dataset.reduction is not None
        if reduced and not connection.materialises:
            return []
        size = connection.count(source) if reduced else rows
        if size <= SMALL:
            return []
        in_each = COUNTED_A_CELL if self.dialect.quick_counts else SAMPLED_A_CELL
        share = min(0.5, max(SAMPLED, in_each * cells) / size)
        even = ColumnSample(
            f"(SELECT * FROM {source} WHERE {self.dialect.even_sample.format(share=share)}) AS even", share
        )
        return [even] if reduced else [*self.samplings(share, rows), even]

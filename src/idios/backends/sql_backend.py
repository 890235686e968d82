"""One implementation of a backend over Ibis; each engine's module holds what it does differently."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pyarrow as pa

from idios.backends.base import Backend
from idios.backends.cancellation import CancellationToken, Cancelled, Progress, silent
from idios.backends.connections import Connection, ConnectionPool
from idios.backends.dialect import Dialect
from idios.backends.grid_sql import GridColumn
from idios.backends.order_statistics import SMALL, Sample
from idios.backends.queries import Queries
from idios.backends.report import Report, make_report, report_conditions
from idios.backends.requirements import Requirements
from idios.backends.selection import Selection, Statement, columns_of
from idios.backends.summarise import summarise
from idios.core.summary import Summary
from idios.errors import IdiosError, SourceError
from idios.query.plan import Plan
from idios.query.schema import Dataset

log = logging.getLogger("idios.controller")

SAMPLED = 2**16
"""How many records a sample should have."""
SAMPLED_A_CELL = 2**12
"""And how many in each cell, on average."""


class SqlBackend(Backend):
    """A table in a database that Ibis can talk to.

    ``table`` is what stands after FROM, ``columns`` the SQL that puts each declared column on the grid.
    """

    dialect: Dialect
    table: str
    columns: Mapping[str, GridColumn]

    def __init__(self, dataset: Dataset, connections: ConnectionPool, progress: Progress | None = None) -> None:
        self.dataset = dataset
        self.connections = connections
        self.progress = progress or silent
        self._warned: set[str] = set()

    @abstractmethod
    def samplings(self, share: float, rows: int) -> list[Sample]:
        """Quick ways to take a sample of about that share; it need not be even."""

    def try_reading(self) -> None:
        """Let the engine compile the columns that will be read, without reading a record."""
        names = [f"point{i}" for i in range(len(self.columns))]
        points = (grid_column.point for grid_column in self.columns.values())
        columns = ", ".join(f"{point} AS {name}" for point, name in zip(points, names, strict=True))
        failed = f"the source of {self.dataset.name!r} cannot be read as declared, or may not be read"
        with self._connected(failed=failed) as connection:
            connection.fetch(Statement.of_integers(f"SELECT {columns} FROM {self.table} LIMIT 0", *names))

    def rows(self) -> int:
        """How many records the table has."""
        with self._connected() as connection:
            return self._count(connection)

    def summarise(self, plan: Plan, cancellation: CancellationToken | None = None) -> list[list[Summary]]:
        """Run a plan; see ``summarise.py``."""
        with self._connected(cancellation) as connection:
            columns = {name: self.columns[name] for name in columns_of(plan)}
            selection = Selection(plan, columns, self.dialect)
            rows = self._count(connection)
            samples = self._samples(rows, selection.span) if rows > SMALL else []
            queries = Queries(connection, selection, self.table)
            summaries = summarise(Requirements(plan, selection, rows), queries, samples, connection.cancellation)
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
        return summaries.cells

    def check(self) -> Report:
        """Count what does not fit the declaration."""
        with self._connected() as connection:
            columns = {
                f"{name}_{i}": f"COUNT(*) FILTER (WHERE {condition})"
                for i, grid_column in enumerate(self.columns.values())
                for name, condition in report_conditions(grid_column).items()
            }
            columns["records"] = "COUNT(*)"
            text = ", ".join(f"{what} AS {self.dialect.identifier(name)}" for name, what in columns.items())
            [counted] = connection.fetch(
                Statement.of_integers(f"SELECT {text} FROM {self.table}", *columns)
            ).to_pylist()
            return make_report(counted, list(self.columns.values()))

    def points(self, column: str) -> pa.ChunkedArray:
        """Every value of a column as its grid point: for the controller's own comparisons, never for a question."""
        with self._connected() as connection:
            grid_column = self.columns[column]
            inner = f"SELECT {grid_column.point} AS point FROM {self.table}"
            text = f"SELECT {grid_column.value('point')} AS point FROM ({inner}) AS points"
            return connection.fetch(Statement.of_integers(text, "point"))["point"]

    def close(self) -> None:
        """Wait for what is being read, and disconnect."""
        self.connections.close()

    @contextmanager
    def _connected(
        self, cancellation: CancellationToken | None = None, failed: str | None = None
    ) -> Iterator[Connection]:
        """A connection for one call: all its queries see one snapshot, and drivers' errors become ours."""
        try:
            token = cancellation or CancellationToken(self.progress)
            with self.connections.acquire(token) as connection, connection.snapshot():
                yield connection
        except (IdiosError, Cancelled):
            raise
        except Exception as error:
            # an engine's own words may quote values, so they are only chained, for the controller's log
            raise SourceError(failed or f"reading {self.dataset.name!r} failed in {self.dialect.name}") from error

    def _count(self, connection: Connection) -> int:
        counted = connection.fetch(Statement.of_integers(f"SELECT COUNT(*) AS number FROM {self.table}", "number"))
        return int(counted["number"][0].as_py())

    def _samples(self, rows: int, cells: int) -> list[Sample]:
        share = min(0.5, max(SAMPLED, SAMPLED_A_CELL * cells) / rows)
        even = self.dialect.even_sample.format(share=share)
        return [*self.samplings(share, rows), Sample(f"(SELECT * FROM {self.table} WHERE {even}) AS even", share)]

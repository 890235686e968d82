"""One implementation of a backend over Ibis; each engine's module holds what it does differently."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pyarrow as pa

from idios.backends.asked import Asked
from idios.backends.base import Backend
from idios.backends.channel import Channel, Pool
from idios.backends.dialect import Dialect
from idios.backends.progress import Progress, Stopped, Watch, silent
from idios.backends.queries import Queries
from idios.backends.reading import Reading
from idios.backends.report import Report, conditions, report
from idios.backends.search import SMALL, Sample
from idios.backends.selection import Selection, columns_of
from idios.backends.statements import Statement
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

    ``table`` is what stands after FROM, ``readings`` how each declared column is read from it.
    """

    dialect: Dialect
    table: str
    readings: Mapping[str, Reading]

    def __init__(self, dataset: Dataset, channels: Pool, progress: Progress | None = None) -> None:
        self.dataset = dataset
        self.channels = channels
        self.progress = progress or silent
        self._told: set[str] = set()

    @abstractmethod
    def samplings(self, share: float, rows: int) -> list[Sample]:
        """Quick ways to take a sample of about that share; it need not be even."""

    def try_reading(self) -> None:
        """Let the engine compile the columns that will be read, without reading a record."""
        names = [f"point{i}" for i in range(len(self.readings))]
        points = (reading.point for reading in self.readings.values())
        columns = ", ".join(f"{point} AS {name}" for point, name in zip(points, names, strict=True))
        failed = f"the source of {self.dataset.name!r} cannot be read as declared, or may not be read"
        with self._reading(failed=failed) as channel:
            channel.fetch(Statement.of_integers(f"SELECT {columns} FROM {self.table} LIMIT 0", *names))

    def rows(self) -> int:
        """How many records the table has."""
        with self._reading() as channel:
            return self._count(channel)

    def summarise(self, plan: Plan, watch: Watch | None = None) -> list[list[Summary]]:
        """Run a plan; see ``summarise.py``."""
        with self._reading(watch) as channel:
            columns = {name: self.readings[name] for name in columns_of(plan)}
            selection = Selection(plan, columns, self.dialect)
            rows = self._count(channel)
            samples = self._samples(rows, selection.span) if rows > SMALL else []
            queries = Queries(channel, selection, self.table)
            found = summarise(Asked(plan, selection, rows), queries, samples, channel.watch)
        for name, number in found.unread.items():
            if number and name not in self._told:
                self._told.add(name)
                log.warning(
                    "column %r of %r is declared not nullable, and %d of the values that a question selected are "
                    "missing or cannot be read: they read as a public point; `idios check` counts them all",
                    name,
                    self.dataset.name,
                    number,
                )
        return found.cells

    def check(self) -> Report:
        """Count what does not fit the declaration."""
        with self._reading() as channel:
            columns = {
                f"{name}_{i}": f"COUNT(*) FILTER (WHERE {condition})"
                for i, reading in enumerate(self.readings.values())
                for name, condition in conditions(reading).items()
            }
            columns["records"] = "COUNT(*)"
            text = ", ".join(f"{what} AS {self.dialect.identifier(name)}" for name, what in columns.items())
            [counted] = channel.fetch(Statement.of_integers(f"SELECT {text} FROM {self.table}", *columns)).to_pylist()
            return report(counted, list(self.readings.values()))

    def points(self, column: str) -> pa.ChunkedArray:
        """Every value of a column as its grid point: for the controller's own comparisons, never for a question."""
        with self._reading() as channel:
            reading = self.readings[column]
            inner = f"SELECT {reading.point} AS point FROM {self.table}"
            text = f"SELECT {reading.value('point')} AS point FROM ({inner}) AS points"
            return channel.fetch(Statement.of_integers(text, "point"))["point"]

    def close(self) -> None:
        """Wait for what is being read, and disconnect."""
        self.channels.close()

    @contextmanager
    def _reading(self, watch: Watch | None = None, failed: str | None = None) -> Iterator[Channel]:
        """A channel of its own for a reader: all queries see one snapshot, and drivers' errors become ours."""
        try:
            with self.channels.channel(watch or Watch(self.progress)) as channel, channel.snapshot():
                yield channel
        except (IdiosError, Stopped):
            raise
        except Exception as error:
            # an engine's own words may quote values, so they are only chained, for the controller's log
            raise SourceError(failed or f"reading {self.dataset.name!r} failed in {self.dialect.name}") from error

    def _count(self, channel: Channel) -> int:
        counted = channel.fetch(Statement.of_integers(f"SELECT COUNT(*) AS number FROM {self.table}", "number"))
        return int(counted["number"][0].as_py())

    def _samples(self, rows: int, cells: int) -> list[Sample]:
        share = min(0.5, max(SAMPLED, SAMPLED_A_CELL * cells) / rows)
        even = self.dialect.even_sample.format(share=share)
        return [*self.samplings(share, rows), Sample(f"(SELECT * FROM {self.table} WHERE {even}) AS even", share)]

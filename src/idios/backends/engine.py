"""One implementation of a backend over Ibis; what an engine does differently it says in its own module."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import RLock

import ibis.expr.types as ir  # type: ignore[import-untyped]
import pyarrow as pa
from ibis.backends.sql import SQLBackend  # type: ignore[import-untyped]

from idios.backends.asked import Asked
from idios.backends.base import Backend
from idios.backends.dialect import Dialect
from idios.backends.progress import Progress, silent
from idios.backends.queries import Queries
from idios.backends.reading import LIMIT, Reading
from idios.backends.report import Report, conditions, report
from idios.backends.search import SMALL, Sample
from idios.backends.selection import Selection, columns_of
from idios.backends.summarise import Found, summarise, too_far
from idios.errors import IdiosError, SourceError
from idios.query.plan import Plan
from idios.query.schema import Dataset

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

    def __init__(self, dataset: Dataset, connection: SQLBackend, progress: Progress | None = None) -> None:
        self.dataset = dataset
        self.connection = connection
        self.progress = progress or silent
        self._lock = RLock()

    @abstractmethod
    def samplings(self, share: float, rows: int) -> list[Sample]:
        """Quick ways to take a sample of about that share; it need not be even."""

    def snapshot(self) -> AbstractContextManager[object]:
        """A state of the data that does not change while several queries read it."""
        return nullcontext()

    def prepare(self) -> None:
        """Whatever must be done once before data is read."""

    def original(self) -> tuple[str, Mapping[str, Reading]]:
        """The table and readings that ``check`` looks at: as the source holds them."""
        return self.table, self.readings

    def try_reading(self) -> None:
        """Let the engine look at what will be asked of it, without reading a record."""
        names = [f"point{i}" for i in range(len(self.readings))]
        points = (reading.point for reading in self.readings.values())
        columns = ", ".join(f"{point} AS {name}" for point, name in zip(points, names, strict=True))
        with self._reading(f"the source of {self.dataset.name!r} cannot be read as declared, or may not be read"):
            self.fetch(self.query(f"SELECT {columns} FROM {self.table} LIMIT 0", dict.fromkeys(names, "int64")))

    def rows(self) -> int:
        """How many records the table has."""
        with self._reading():
            self.prepare()
            return self._count()

    def fits(self, column: str) -> bool:
        """Whether a glance shows that all values of a column fit the grid; False if it does not."""
        return False

    def summarise(self, plan: Plan) -> list[list[Found]]:
        """Run a plan; see ``summarise.py``."""
        with self._reading():
            self.prepare()
            columns = {name: self.readings[name] for name in columns_of(plan)}
            selection = Selection(plan, columns, self.dialect)
            self._refuse_undecided(selection)
            rows = self._count()
            samples = self._samples(rows, selection.span) if rows > SMALL else []
            queries = Queries(self, selection, self.table)
            return summarise(Asked(plan, selection, rows), queries, samples, self.fits, self.progress)

    def check(self) -> Report:
        """Count what does not fit the declaration."""
        with self._reading():
            table, readings = self.original()
            columns = {
                f"{name}_{i}": f"COUNT(*) FILTER (WHERE {condition})"
                for i, reading in enumerate(readings.values())
                for name, condition in conditions(reading).items()
            }
            columns["records"] = "COUNT(*)"
            text = ", ".join(f"{what} AS {self.dialect.identifier(name)}" for name, what in columns.items())
            result = self.query(f"SELECT {text} FROM {table}", dict.fromkeys(columns, "int64"))
            [counted] = self.fetch(result).to_pylist()
            return report(counted, list(readings.values()))

    def fetch(self, expression: ir.Table) -> pa.Table:
        """Run an expression and bring its result."""
        return expression.to_pyarrow()

    def query(self, text: str, schema: Mapping[str, str]) -> ir.Table:
        """An expression from the engine's own SQL."""
        return self.connection.sql(text, schema=dict(schema))

    def compiled(self, expression: ir.Table) -> str:
        """The engine's own SQL of an expression."""
        return str(self.connection.compile(expression))

    def close(self) -> None:
        """Disconnect."""
        with self._lock:
            self.connection.disconnect()

    @contextmanager
    def _reading(self, failed: str | None = None) -> Iterator[None]:
        """Data is read: one caller at a time, all queries at one state, and drivers' errors made ours."""
        with self._lock:
            try:
                with self.snapshot():
                    yield
            except IdiosError:
                raise
            except Exception as error:
                # an engine's own words may quote values, so they are only chained, for the controller's log
                raise SourceError(failed or f"reading {self.dataset.name!r} failed in {self.dialect.name}") from error

    def _count(self) -> int:
        result = self.query(f"SELECT COUNT(*) AS records FROM {self.table}", {"records": "int64"})
        return int(self.fetch(result)["records"][0].as_py())

    def _samples(self, rows: int, cells: int) -> list[Sample]:
        share = min(0.5, max(SAMPLED, SAMPLED_A_CELL * cells) / rows)
        even = self.dialect.even_sample.format(share=share)
        return [*self.samplings(share, rows), Sample(f"(SELECT * FROM {self.table} WHERE {even}) AS even", share)]

    def _refuse_undecided(self, selection: Selection) -> None:
        """A filter that compares with points beyond the grid cannot tell apart the values that lie there."""
        for column in selection.undecided():
            relation = self.query(selection.sql(self.table), selection.schema())
            value = relation[selection.name(column)]
            [ends] = self.fetch(relation.aggregate(least=value.min(), greatest=value.max())).to_pylist()
            if (ends["least"] or 0) < -LIMIT or (ends["greatest"] or 0) > LIMIT:
                raise too_far(column)

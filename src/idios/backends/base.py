"""The interface of a backend, and how a source is opened.

A source is one of

    people.csv                                   a csv file, read as the declared format and types
    people.parquet                               a Parquet file
    people.duckdb::table                         a table of a DuckDB file (schema.table where it is not in main)
    postgresql://user@host/base?table=people     a table or view of PostgreSQL (schema.people likewise)
    spark:table                                  a table or view of the running Spark session; also (session, "table")
    an Arrow table, a pandas or polars frame, a dict of lists or arrays

A name with a dot or quotes in it is written as in SQL: ``main."odd.name"``. Names are taken as they are written,
capitals included.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from importlib import import_module
from types import TracebackType
from typing import Protocol, Self, cast

from idios.backends.csv import CsvFormat
from idios.backends.progress import Progress, Stopped, Watch
from idios.backends.report import Report
from idios.core.domain import Kind
from idios.core.summary import Summary
from idios.errors import SourceError
from idios.query.plan import Plan
from idios.query.schema import Dataset

__all__ = ["Backend", "CsvFormat", "Progress", "Report", "Stopped", "Watch", "describe_source", "open_source"]


class Backend(ABC):
    """One data set where it lives. Only what a plan asks for leaves it.

    A few calls from several threads run concurrently, more wait for their turn.
    """

    dataset: Dataset
    progress: Progress
    """Called with the steps of a call that brings no watch of its own."""

    @abstractmethod
    def rows(self) -> int:
        """How many records the table has."""

    @abstractmethod
    def summarise(self, plan: Plan, watch: Watch | None = None) -> list[list[Summary]]:
        """For every cell of the plan, what each of its aggregates needs: every cell, whether or not the data has it.

        The watch reports the steps; when it is stopped, the call ends with ``Stopped``.
        """

    @abstractmethod
    def check(self) -> Report:
        """How well the data fits its declaration, in numbers; for the controller."""

    @abstractmethod
    def close(self) -> None:
        """Close files and connections."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Engine(Protocol):
    """The functions of each engine's module."""

    def connect(self, source: object, dataset: Dataset, progress: Progress | None, csv_format: CsvFormat) -> Backend:
        """Open a declared data set."""

    def describe(self, source: object, csv_format: CsvFormat) -> list[tuple[str, Kind, int]]:
        """The names and types of a source."""


EXTRAS = {"postgresql": "postgres", "spark": "spark"}
"""The engines whose drivers are optional, and what installs them."""


def open_source(
    source: object, dataset: Dataset, progress: Progress | None = None, csv_format: CsvFormat | None = None
) -> Backend:
    """Open the data of a declared data set; what does not fit the declaration is refused now, not later.

    ``progress`` is called with the name of each step of a slow call and the share of the work done. A csv file is read
    as ``csv_format`` says, or RFC 4180.
    """
    return _engine(source).connect(source, dataset, progress, csv_format or CsvFormat())


def describe_source(source: object, csv_format: CsvFormat | None = None) -> list[tuple[str, Kind, int]]:
    """The columns of a source: name, the kind it would be declared as, and the places of a decimal.

    Nothing but names and types is read, except that the kinds of a csv file are what its first records look like.
    Columns that no kind can read are left out.
    """
    return _engine(source).describe(source, csv_format or CsvFormat())


def _engine(source: object) -> Engine:
    name = "duckdb"
    if isinstance(source, str) and source.startswith(("postgresql://", "postgres://")):
        name = "postgresql"
    elif isinstance(source, tuple) or (isinstance(source, str) and source.startswith("spark:")):
        name = "spark"
    try:
        # a driver is imported by its engine's module, and that only when a source needs it
        return cast(Engine, import_module(f"idios.backends.{name}"))
    except ImportError as error:
        if name not in EXTRAS:
            raise
        raise SourceError(
            f"this source needs a driver that is not installed ({error.name}): pip install 'idios[{EXTRAS[name]}]'"
        ) from error

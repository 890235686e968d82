"""The engines that must agree: each takes an Arrow table, keeps it in its own way, and opens it as a data set."""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from idios.data.backend import Backend, open_source
from idios.declare.schema import Dataset

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL_TYPES = {
    pa.int16(): "smallint",
    pa.int32(): "integer",
    pa.int64(): "bigint",
    pa.float32(): "real",
    pa.float64(): "double precision",
    pa.bool_(): "boolean",
    pa.string(): "text",
    pa.date32(): "date",
    pa.timestamp("us"): "timestamp",
    pa.timestamp("us", "UTC"): "timestamptz",
}


class Engine(ABC):
    """Somewhere to keep tables."""

    def __init__(self) -> None:
        self._numbers = count()

    @abstractmethod
    def keep(self, table: pa.Table) -> object:
        """Store a table; what ``open_source`` takes for it."""

    def open(self, table: pa.Table, dataset: Dataset) -> Backend:
        return open_source(self.keep(table), dataset)

    def __str__(self) -> str:
        return type(self).__name__.removesuffix("Engine").lower()


class DuckdbEngine(Engine):
    def __init__(self, directory: Path) -> None:
        super().__init__()
        self.directory = directory

    def keep(self, table: pa.Table) -> object:
        path = self.directory / f"table {next(self._numbers)}.parquet"
        pq.write_table(table, path, row_group_size=8192)
        return str(path)


class PostgresqlEngine(Engine):
    def __init__(self, url: str) -> None:
        import psycopg

        super().__init__()
        self.url = url
        self.connection = psycopg.connect(url, autocommit=True)

    def keep(self, table: pa.Table) -> object:
        name = f"Table {next(self._numbers)}"
        columns = ", ".join(f"{_quoted(field.name)} {_sql_type(field.type)}" for field in table.schema)
        self.connection.execute(f"CREATE TABLE {_quoted(name)} ({columns})")
        with self.connection.cursor().copy(f"COPY {_quoted(name)} FROM STDIN") as copy:
            for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
                copy.write_row(row)
        return f"{self.url}?table={quote(_quoted(name))}"

    def close(self) -> None:
        self.connection.close()


class SparkEngine(Engine):
    def __init__(self, session: SparkSession, directory: Path) -> None:
        super().__init__()
        self.session = session
        self.directory = directory

    def keep(self, table: pa.Table) -> object:
        name = f"table_{next(self._numbers)}"
        path = self.directory / f"{name}.parquet"
        pq.write_table(table, path)
        self.session.read.parquet(str(path)).createOrReplaceTempView(name)
        return self.session, name


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _sql_type(held: pa.DataType) -> str:
    if pa.types.is_decimal(held):
        return f"numeric({held.precision}, {held.scale})"
    return SQL_TYPES[held]


SPARK = pytest.param(
    "spark",
    marks=[
        pytest.mark.xdist_group("spark"),  # one Java machine, not one in every process
        # pyspark leaves the sockets that results come through to the garbage collector
        pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
    ],
)

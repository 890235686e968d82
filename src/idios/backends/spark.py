"""Spark: a table or view of a session, for what is too large for one machine.

The session stays the caller's and is not stopped. Ibis sets its time zone to UTC, and ancient dates of files are read
as they stand there. Spark has no snapshots: do not write to a table while it is read. Questions wait for each other:
Spark gives each the whole cluster. A question that is stopped has its jobs cancelled, except in a Spark Connect
session, where it ends with the statement that is running.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import cast
from uuid import uuid4

import ibis  # type: ignore[import-untyped]
import ibis.expr.datatypes as dt  # type: ignore[import-untyped]
import pyarrow as pa
from ibis.backends.pyspark.datatypes import PySparkType  # type: ignore[import-untyped]
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from idios.backends.base import Source, describe_types, hold_rows, split_table_name
from idios.backends.cancellation import Progress
from idios.backends.connection_pool import Connection, ConnectionPool
from idios.backends.csv import CsvFormat
from idios.backends.dialect import Dialect
from idios.backends.selection import Statement
from idios.backends.sql_backend import SqlBackend
from idios.backends.summarise import Sample
from idios.core.domain import Kind
from idios.errors import SourceError
from idios.query.schema import Dataset


def _unscaled(x: str, precision: int, scale: int) -> str:
    """A product has precision + scale + 2 digits, of which Spark keeps 38; before and after the point each fits.

    Cut off towards zero: rounded down, the part before the point could have a digit more.
    """
    if precision + scale + 2 <= 38:
        return f"{x} * CAST({10**scale} AS DECIMAL({scale + 1}, 0))"
    unit = f"CAST('{10**scale}' AS DECIMAL(38, 0))"
    before = f"CAST(CASE WHEN {x} < 0 THEN CEIL({x}) ELSE FLOOR({x}) END AS DECIMAL(38, 0))"
    return f"({before} * {unit} + CAST({x} % 1 * {unit} AS DECIMAL(38, 0)))"


DIALECT = Dialect(
    name="spark",
    compiler="pyspark",
    double="DOUBLE",
    wide="DECIMAL(38, 0)",
    widest=10**38 - 1,
    text="CAST({x} AS STRING)",
    array="array({items})",
    integers="ARRAY<BIGINT>",
    element="element_at({array}, CAST({i} AS INT))",
    position="NULLIF(array_position({array}, {x}), 0)",
    quotient="(({n}) DIV ({d}))",
    wide_quotient="((({n}) - ({n}) % ({d})) / ({d}))",
    listed=None,
    narrow="CAST({x} AS BIGINT)",
    finite="ABS({x}) <= CAST('1.7976931348623157e308' AS DOUBLE)",
    days="unix_date({x})",
    timestamps={6: "unix_micros(CAST({x} AS TIMESTAMP))"},
    quantiles="percentile_approx({x}, {shares}, 10000)",
    even_sample="rand() < {share}",
    unscaled=_unscaled,
    greatest_scale=18,
    sum_as="decimal(28, 0)",
    substituted="${",
    hash="xxhash64({key}, {values})",
    sorted_list="sort_array(collect_list({x}))",
)


def connect(source: Source, dataset: Dataset, progress: Progress | None, linked: Mapping[str, Source]) -> SparkBackend:
    """Open a declared data set in a session."""
    session, table = _table(source.place)
    others = {name: _table(other.place) for name, other in linked.items()}
    for name, (other, _) in others.items():
        if other is not session:
            raise SourceError(f"{name!r} is linked to {dataset.name!r}: keep both in one session")
    return SparkBackend(
        session, {dataset.name: table} | {name: other for name, (_, other) in others.items()}, dataset, progress
    )


def describe(source: object, csv_format: CsvFormat) -> list[tuple[str, Kind, int]]:
    """The names and types of a table."""
    return describe_types(_held(*_table(source)))


class SparkConnection(Connection):
    """A session."""

    dialect = DIALECT

    def __init__(self, session: SparkSession) -> None:
        super().__init__(ibis.pyspark.connect(session))
        self._jobs = f"idios {uuid4()}"
        try:
            self._context: SparkContext | None = session.sparkContext
        except PySparkException:  # Spark Connect has none
            self._context = None

    def run(self, statement: Statement) -> pa.Table:
        """Run a statement as jobs of one group."""
        schema = statement.schema
        with self._grouped():
            frame = self.ibis_backend.raw_sql(statement.text)
            if hasattr(frame, "toArrow"):  # from version 4 on
                return frame.toArrow().cast(schema)
            records = frame.collect()
        columns = [pa.array([row[i] for row in records], field.type) for i, field in enumerate(schema)]
        return pa.Table.from_arrays(columns, schema=schema)

    def interrupt(self) -> None:
        """Cancel the jobs of this connection."""
        if self._context is not None:
            self._context.cancelJobGroup(self._jobs)

    def close(self) -> None:
        """Leave the session open: it is the caller's."""

    @contextmanager
    def _grouped(self) -> Iterator[None]:
        """The job group is a property of the calling thread, restored in the end."""
        if self._context is None:
            yield
            return
        before = {name: self._context.getLocalProperty(name) for name in GROUP}
        self._context.setJobGroup(self._jobs, "a question", interruptOnCancel=True)
        try:
            yield
        finally:
            for name, value in before.items():
                self._context.setLocalProperty(name, cast(str, value))  # None takes it away


GROUP = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")
"""What names a group of jobs."""


AS_WRITTEN = (
    "spark.sql.parquet.datetimeRebaseModeInRead",
    "spark.sql.parquet.int96RebaseModeInRead",
    "spark.sql.avro.datetimeRebaseModeInRead",
)
"""Read dates before 1582 in files of other programs as they stand there; without this, Spark 3 raises for one."""


class SparkBackend(SqlBackend):
    """A table or view of a session."""

    dialect = DIALECT

    def __init__(
        self, session: SparkSession, tables: Mapping[str, str], dataset: Dataset, progress: Progress | None
    ) -> None:
        for name in AS_WRITTEN:
            session.conf.set(name, "CORRECTED")
        rows = {name: hold_rows(dataset, name, table, _held(session, table), DIALECT) for name, table in tables.items()}
        super().__init__(dataset, ConnectionPool(lambda: SparkConnection(session), at_once=1), progress)
        self.hold(rows)
        self.try_reading()

    def samplings(self, share: float, rows: int) -> list[Sample]:
        """None is quicker than an even one."""
        return []


def _table(source: object) -> tuple[SparkSession, str]:
    if isinstance(source, str):
        return SparkSession.builder.getOrCreate(), DIALECT.identifier(*split_table_name(source.removeprefix("spark:")))
    if isinstance(source, tuple) and len(source) == 2 and isinstance(source[1], str):
        return source[0], DIALECT.identifier(*split_table_name(source[1]))
    raise SourceError('a Spark source is "spark:table", or a pair of a session and the name of a table')


def _held(session: SparkSession, table: str) -> dict[str, dt.DataType]:
    try:
        fields = session.table(table).schema.fields
    except PySparkException as error:
        raise SourceError(f"Spark has no table or view {table}, or it may not be read") from error
    return {field.name: _type(field.dataType) for field in fields}


def _type(held: object) -> dt.DataType:
    try:
        return PySparkType.to_ibis(held)
    except Exception:  # whatever Ibis cannot name, no declared column can be
        return dt.unknown

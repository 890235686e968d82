"""The interface of a backend, how a source is opened, and what engines' modules share to open one.

A source is one of

    people.csv                                   a csv file, read as the declared format and types; also .tsv, .txt,
                                                 .jsonl and these with .gz, people.xlsx::sheet, .dta, .sav, .xpt
    people.parquet                               a Parquet file, a pattern of such names or a folder of such files,
                                                 of Delta or of Iceberg; also .arrow and .feather
    people.duckdb::table                         a table of a DuckDB file (schema.table where it is not in main)
    postgresql://user@host/base?table=people     a table or view of PostgreSQL (schema.people likewise)
    spark://master:7077?table=people             a table of a Spark cluster, or files: ?path=/data/people; also
                                                 spark:local[2]?… and sc://host:15002?… (spark_address.py)
    spark:table                                  a table or view of the running Spark session; also (session, "table")
    an Arrow table or stream, a pandas or polars frame, a dict of lists or arrays

A name with a dot or quotes in it is written as in SQL: ``main."odd.name"``. Names are taken as they are written,
capitals included.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from importlib import import_module
from types import TracebackType
from typing import Any, Protocol, Self, cast
from urllib.parse import parse_qsl, urlsplit

import ibis.expr.datatypes as dt  # type: ignore[import-untyped]

from idios.core.domain import Kind
from idios.core.summary import Summary
from idios.data.cancellation import CancellationToken, Cancelled, Progress
from idios.data.clip import Limits
from idios.data.compare_declared import DeclarationReport
from idios.data.engines.spark_address import is_spark
from idios.data.formats.csv import CsvFormat
from idios.data.formats.files import read_stem
from idios.data.sql.dialect import Dialect
from idios.data.sql.expression_sql import ExpressionSql
from idios.data.sql.grid_sql import GridColumn, hide_sentinels, make_grid_column
from idios.data.sql.join_sql import Rows, hold_key
from idios.declare.schema import Column, Dataset
from idios.errors import SourceError
from idios.expressions.preimages import find_node
from idios.plan.joins import find_table, list_keys
from idios.plan.question import Plan
from idios.sql.derived import cuts_values

__all__ = [
    "Backend",
    "CancellationToken",
    "Cancelled",
    "CsvFormat",
    "DeclarationReport",
    "Limits",
    "Progress",
    "Snapshot",
    "describe_source",
    "is_address",
    "open_source",
    "read_dataset_name",
]


class Snapshot(ABC):
    """One state of the data, which a plan reads in rounds: between them something is drawn from what was read."""

    summaries: Sequence[Sequence[Summary]]
    """For every cell of the plan, what each aggregate reads first: every cell, whether or not the data has it."""
    pooled: Sequence[Summary] = ()
    """For each aggregate of ``Plan.pool``, what limits are drawn from that all cells share."""

    @abstractmethod
    def sum_clipped(self, limits: Mapping[int, Sequence[Limits]]) -> dict[int, list[Summary]]:
        """The number and the sum of the values of some aggregates, clipped to limits that were drawn.

        ``limits`` has, by the index of an aggregate, a pair of grid points for every cell of the plan; they become the
        domain of each summary. Squares are added up where the statistic needs them.
        """


class Backend(ABC):
    """One data set where it lives. Only what a plan asks for leaves it.

    A few calls from several threads run concurrently, more wait for their turn.
    """

    dataset: Dataset
    progress: Progress
    """Called with the steps of a call that brings no cancellation token of its own."""

    @abstractmethod
    def rows(self) -> int:
        """How many records the table has."""

    @abstractmethod
    def count_units(self) -> int:
        """How many people the table has; how many records, where it declares no unit."""

    @abstractmethod
    def open_snapshot(
        self, plan: Plan, cancellation: CancellationToken | None = None
    ) -> AbstractContextManager[Snapshot]:
        """One state of the data, of which the first round of a plan has been read; inside, more rounds can be.

        ``cancellation`` reports the steps; when it is cancelled, reading ends with ``Cancelled``.
        """

    def summarise(self, plan: Plan, cancellation: CancellationToken | None = None) -> Sequence[Sequence[Summary]]:
        """For every cell of the plan, what each of its aggregates reads in the first round."""
        with self.open_snapshot(plan, cancellation) as snapshot:
            return snapshot.summaries

    @abstractmethod
    def check(self) -> DeclarationReport:
        """How well the data fits its declaration, in numbers; for the controller."""

    @property
    def state(self) -> str | None:
        """Text that is another one when the data is, as far as its engine tells without reading it; else None."""
        return None

    def check_reachable(self) -> None:
        """Raise ``SourceUnavailable`` if the engine is away and that can be known quickly, before a charge."""
        return

    def check_unchanged(self) -> None:
        """Raise ``DataChanged`` if the engine knows that the data is not what was opened."""
        return

    @abstractmethod
    def close(self) -> None:
        """Close files and connections."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@dataclass(frozen=True)
class DataSource:
    """Where a table is; a csv file is read as ``csv_format`` says, or as its name and RFC 4180 do."""

    place: Any = field(repr=False)  # an address may hold a password
    csv_format: CsvFormat | None = None
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)  # they may hold a secret
    """Of a Spark session that is started for it."""


class EngineModule(Protocol):
    """The functions of each engine's module."""

    def connect(
        self, source: DataSource, dataset: Dataset, progress: Progress | None, linked: Mapping[str, DataSource]
    ) -> Backend:
        """Open a declared data set, and the tables that are linked to it, by their names."""

    def describe(self, source: object, csv_format: CsvFormat | None) -> list[tuple[str, Kind, int]]:
        """The names and types of a source."""


EXTRAS = {"postgresql": "postgres", "spark": "spark"}
"""The engines whose drivers are optional, and what installs them."""


def open_source(
    source: object,
    dataset: Dataset,
    progress: Progress | None = None,
    csv_format: CsvFormat | None = None,
    linked: Mapping[str, DataSource] | None = None,
    settings: Mapping[str, str] | None = None,
) -> Backend:
    """Open the data of a declared data set; what does not fit the declaration is refused now, not later.

    ``progress`` is called with the name of each step of a slow call and the share of the work done. A csv file is read
    as ``csv_format`` says, or RFC 4180. ``linked`` has the tables of the data set, which one engine must hold.
    ``settings`` are those of a Spark session that is started for it.
    """
    engine = _engine(source)
    for name, other in (linked or {}).items():
        if _engine(other.place) is not engine:
            raise SourceError(
                f"{name!r} is linked to {dataset.name!r}: keep both in one engine, so that they can be joined"
            )
    return engine.connect(DataSource(source, csv_format, settings or {}), dataset, progress, linked or {})


def describe_source(source: object, csv_format: CsvFormat | None = None) -> list[tuple[str, Kind, int]]:
    """The columns of a source: name, the kind it would be declared as, and the places of a decimal.

    Nothing but names and types is read, except that the kinds of a file without types are what some of its records look
    like. Columns that no kind can read are left out.
    """
    return _engine(source).describe(source, csv_format)


def is_address(source: object) -> bool:
    """Whether a source is a table in a database or in Spark, and no file or frame.

    >>> is_address("postgresql://me@host/shop?table=orders"), is_address("spark:orders"), is_address("orders.csv")
    (True, True, False)
    """
    return is_spark(source) or (isinstance(source, str) and "://" in source)


def _engine(source: object) -> EngineModule:
    name = "duckdb"
    if isinstance(source, str) and source.startswith(("postgresql://", "postgres://")):
        name = "postgresql"
    elif is_spark(source):
        name = "spark"
    try:
        # a driver is imported by its engine's module, and that only when a source needs it
        return cast(EngineModule, import_module(f"idios.data.engines.{name}"))
    except ImportError as error:
        if name not in EXTRAS:
            raise
        raise SourceError(
            f"this source needs a driver that is not installed ({error.name}): pip install 'idios[{EXTRAS[name]}]'"
        ) from error


_PART = re.compile(r'"((?:[^"]|"")+)"|([^".]+)')


def read_dataset_name(source: str) -> str:
    """The name of a source's data set: its table, or the stem of its file.

    >>> read_dataset_name("shop/orders.csv"), read_dataset_name("postgresql://me@host/shop?table=public.orders")
    ('orders', 'orders')
    >>> read_dataset_name("orders.csv.gz"), read_dataset_name("shop/orders/*.parquet")
    ('orders', 'orders')
    """
    path, _, table = source.partition("::")
    if path.startswith("spark:"):
        return split_table_name(path.removeprefix("spark:"))[-1]
    named = dict(parse_qsl(urlsplit(path).query)).get("table") if "://" in path else None
    if named or table:
        return split_table_name(named)[-1] if named else table
    return read_stem(path)


def split_table_name(written: str) -> tuple[str, ...]:
    """Split a table's name at its dots, outside of quotes.

    >>> split_table_name("people"), split_table_name('public."odd.name"')
    (('people',), ('public', 'odd.name'))
    """
    parts: list[str] = []
    at = 0
    while match := _PART.match(written, at):
        parts.append(match[1].replace('""', '"') if match[1] else match[2])
        at = match.end()
        if at == len(written):
            return tuple(parts)
        if written[at] != ".":
            break
        at += 1
    raise SourceError(f'a table is written as name, schema.name or schema."odd name", got {written!r}')


def describe_change(name: str) -> str:
    """What is said when the data of a data set is not what was opened."""
    return (
        f"the data of {name!r} has changed since it was opened, and answers would mix the two: open it again, or "
        "restart the server"
    )


def make_grid_columns(dataset: Dataset, held: Mapping[str, dt.DataType], dialect: Dialect) -> dict[str, GridColumn]:
    """How each declared column is read from a source that holds columns of some types."""
    refuse_absent(dataset, held)
    written = [name for name, column in dataset.columns.items() if column.format]
    if written:
        raise SourceError(
            f"column {written[0]!r} declares a format, which says how dates are written in files without types (csv, "
            "JSON lines, Excel), and this source has types: remove it"
        )
    read = {
        name: make_grid_column(column, dialect.identifier(name), held[name], dialect)
        for name, column in dataset.columns.items()
        if column.expression is None
    }
    return add_derived_columns(dataset, read, dialect)


def add_derived_columns(dataset: Dataset, read: Mapping[str, GridColumn], dialect: Dialect) -> dict[str, GridColumn]:
    """All declared columns, given how those are read that the source holds."""

    def make_derived(column: Column) -> GridColumn:
        node = find_node(column, dataset.columns)
        return GridColumn(
            column,
            held="",
            given="",
            point="",
            readable="",
            derive=lambda names: ExpressionSql(dialect, names).write_point(column, node),
            settled=not cuts_values(column, dataset.columns),
        )

    return {name: read[name] if name in read else make_derived(column) for name, column in dataset.columns.items()}


def hold_rows(dataset: Dataset, name: str, table: str, held: Mapping[str, dt.DataType], dialect: Dialect) -> Rows:
    """How a table of a data set is read, given what stands after FROM for it and the types of its columns."""
    own, keys = find_table(dataset, name), list_keys(dataset, name)
    refuse_absent(own, held, keys)
    columns = make_grid_columns(own, held, dialect)
    read = {key: hold_key(key, dialect.identifier(key), held[key], dialect) for key in keys}
    source = hide_sentinels(own.columns, list_read(dataset, name), table, held, dialect)
    return Rows(source, columns, [read[column].value for column in own.unit], read)


def list_read(dataset: Dataset, name: str) -> list[str]:
    """The names of the columns that questions read of a table: those that are declared, and keys."""
    declared = [name for name, column in find_table(dataset, name).columns.items() if column.expression is None]
    return list(dict.fromkeys([*declared, *list_keys(dataset, name)]))


def refuse_absent(dataset: Dataset, held: Iterable[str], keys: Sequence[str] = ()) -> None:
    """Say which declared columns a source lacks."""
    names = list(held)
    read = [name for name, column in dataset.columns.items() if column.expression is None]
    absent = [name for name in dict.fromkeys([*read, *dataset.unit, *keys]) if name not in names]
    if absent:
        raise SourceError(
            f"the source of {dataset.name!r} has no column {', '.join(map(repr, absent))}; it has "
            f"{', '.join(map(repr, names))}"
        )


def describe_types(held: Mapping[str, dt.DataType]) -> list[tuple[str, Kind, int]]:
    """The kinds that columns of some types would be declared as; columns that no kind can read are left out."""
    described = []
    for name, held_type in held.items():
        kind = _kind(held_type)
        if kind is not None:
            scale = held_type.scale if isinstance(held_type, dt.Decimal) else 0
            described.append((name, kind, scale or 0))
    return described


def _kind(held: dt.DataType) -> Kind | None:
    if isinstance(held, dt.Decimal):
        return Kind.INTEGER if held.scale == 0 else Kind.DECIMAL
    if held.is_integer() or held.is_boolean():
        return Kind.INTEGER
    if held.is_floating():
        return Kind.NUMBER
    if held.is_date():
        return Kind.DATE
    if held.is_timestamp():
        return Kind.TIMESTAMP
    return Kind.CATEGORY if held.is_string() else None

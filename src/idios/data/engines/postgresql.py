"""PostgreSQL (14 or newer): a table, a view or a materialised view, read where it lives.

Every call reads one snapshot of the database, in a transaction that cannot write. A few calls run concurrently,
each on a connection of its own. A connection that was lost is opened again by the next call.

Each of these transactions begins with all settings that say what a statement means (``SETTINGS``): a role, a database,
an address or the last user of a pooled connection may have left others. So every function, operator and type is
PostgreSQL's own, and every table is named with its schema.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import ibis.expr.datatypes as dt  # type: ignore[import-untyped]
import psycopg
import pyarrow as pa
from ibis.backends.sql.datatypes import PostgresType  # type: ignore[import-untyped]

from idios.core.domain import Kind
from idios.data.backend import DataSource, describe_types, hold_rows, list_read, split_table_name
from idios.data.cancellation import Progress
from idios.data.connection_pool import Connection, ConnectionPool
from idios.data.engines.indexed import IndexedColumn, cut_to_ends, walk_index
from idios.data.engines.sql_backend import SqlBackend
from idios.data.formats.csv import CsvFormat
from idios.data.guesses import ColumnSample
from idios.data.sql.dialect import Dialect
from idios.data.sql.grid_sql import hide_sentinels
from idios.data.sql.selection import SelectStatement
from idios.data.summarise import RankSearch
from idios.declare.schema import Dataset
from idios.errors import SourceError
from idios.plan.question import Plan

DIALECT = Dialect(
    name="postgres",
    compiler="postgres",
    double="DOUBLE PRECISION",
    wide="NUMERIC",
    widest=None,
    text='CAST({x} AS TEXT) COLLATE "C"',
    key='(CAST({x} AS TEXT) COLLATE "C")',
    array="ARRAY[{items}]",
    integers="BIGINT[]",
    element="({array})[{i}]",
    position="array_position({array}, {x})",
    quotient="div({n}, {d})",
    narrow_quotient="(({n}) / ({d}))",
    listed="(SELECT * FROM unnest({array}) WITH ORDINALITY AS texts(label, place))",
    narrow="CAST({x} AS BIGINT)",
    finite="ABS({x}) <= CAST('1.7976931348623157e308' AS DOUBLE PRECISION)",
    days="CASE WHEN isfinite({x}) THEN {x} - DATE '1970-01-01' END",
    timestamps={6: "CASE WHEN isfinite({x}) THEN EXTRACT(EPOCH FROM {x}) * 1000000 END"},
    quantiles="percentile_disc(CAST({shares} AS DOUBLE PRECISION[])) WITHIN GROUP (ORDER BY {x})",
    even_sample="random() < {share}",
    unscaled=None,
    fence=" OFFSET 0",
    finite_decimal="{x} - {x} = 0",
    plain_decimal="CASE WHEN {x} - {x} = 0 THEN trim_scale({x}) END",
    hash="hashtextextended(concat_ws(',', {key}, {values}), 0)",
    sorted_list="array_agg({x} ORDER BY {x}) FILTER (WHERE {x} IS NOT NULL)",
)

SETTINGS = {
    "search_path": "pg_catalog, pg_temp",
    "standard_conforming_strings": "on",
    "backslash_quote": "off",
    "client_encoding": "'UTF8'",
    "timezone": "'UTC'",
    "datestyle": "ISO, YMD",
    "intervalstyle": "postgres",
    "extra_float_digits": "1",
    "bytea_output": "hex",
    "array_nulls": "on",
    "transform_null_equals": "off",
    "row_security": "on",
    "gin_fuzzy_search_limit": "0",
}
"""Names, literals, the text of values, which rows a policy shows, and that an index finds all of them."""

BEGINNING = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY; " + "; ".join(
    f"SET LOCAL {name} = {value}" for name, value in SETTINGS.items()
)
"""Commands, which nothing can shadow, sent at once. For the transaction alone: a pool may have another connection for
the next one."""

OLDEST = 140000
"""From here on EXTRACT is exact, and decimals can be infinite."""

PATIENCE = 5.0
"""Timeout of a request to cancel a statement, in seconds, after which it is sent again."""

SAMPLED_KINDS = "rmp"
"""What TABLESAMPLE takes: tables, materialised views and partitioned tables, but no views."""


def connect(
    source: DataSource, dataset: Dataset, progress: Progress | None, linked: Mapping[str, DataSource]
) -> PostgresqlBackend:
    """Open a declared data set in a database."""
    address = _address(source.place)
    others = {name: _address(other.place) for name, other in linked.items()}
    for name, other in others.items():
        if other.url != address.url:
            raise SourceError(
                f"{name!r} is linked to {dataset.name!r}: give both the same address but for the table, so that one "
                "connection reads both"
            )
    connection = address.connect()
    try:
        return PostgresqlBackend({dataset.name: address} | others, connection, dataset, progress)
    except BaseException:
        connection.close()
        raise


def describe(source: object, csv_format: CsvFormat | None) -> list[tuple[str, Kind, int]]:
    """The names and types of a table."""
    address = _address(source)
    with address.connect() as connection:
        return describe_types(_Relation.find(connection, address.table).held)


@contextmanager
def read_snapshot(connection: psycopg.Connection) -> Iterator[None]:
    """One transaction: everything in it sees the same data and means the same, and nothing is written."""
    with connection.transaction():
        connection.execute(BEGINNING, prepare=False)  # of several statements there is no prepared one
        yield


class PostgresqlConnection(Connection):
    """A connection to a database."""

    dialect = DIALECT

    def __init__(self, address: _Address, connection: psycopg.Connection | None = None) -> None:
        super().__init__()
        self._address = address
        self.connection = connection or address.connect()

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """One transaction (``read_snapshot``), on another connection if this one was lost."""
        if self.connection.closed:
            self.connection = self._address.connect()
        with read_snapshot(self.connection):
            yield

    def run(self, statement: SelectStatement) -> pa.Table:
        """Run a statement without a cursor on the server, which would keep it to one process there."""
        with self.connection.cursor(binary=True) as cursor:
            rows = cursor.execute(statement.text).fetchall()
        columns = [pa.array([row[i] for row in rows], field.type) for i, field in enumerate(statement.schema)]
        return pa.Table.from_arrays(columns, schema=statement.schema)

    def interrupt(self) -> None:
        """Send the server a cancel request for the statement, and wait until it has arrived."""
        self.connection.cancel_safe(timeout=PATIENCE)

    def close(self) -> None:
        """Disconnect."""
        self.connection.close()


class PostgresqlBackend(SqlBackend):
    """A table of a database."""

    dialect = DIALECT

    def __init__(
        self,
        addresses: Mapping[str, _Address],
        connection: psycopg.Connection,
        dataset: Dataset,
        progress: Progress | None,
    ) -> None:
        first, address = [connection], addresses[dataset.name]
        super().__init__(
            dataset, ConnectionPool(lambda: PostgresqlConnection(address, first.pop() if first else None)), progress
        )
        relations = {name: _Relation.find(connection, each.table) for name, each in addresses.items()}
        self.hold(
            {
                name: hold_rows(dataset, name, DIALECT.identifier(*relation.name), relation.held, DIALECT)
                for name, relation in relations.items()
            }
        )
        own = self._own = relations[dataset.name]
        self._blocks = own.kind in SAMPLED_KINDS
        self._indexed = {
            name: indexed
            for name, column in self.columns.items()
            if name in own.indexed and column.derive is None and column.place is None and not column.declared.missing
            if (indexed := IndexedColumn.of_type(column.held, own.held[name])) is not None
        }
        self.try_reading()

    def samplings(self, share: float, rows: int) -> list[ColumnSample]:
        """Whole pages, of what is stored in pages."""
        if not self._blocks:
            return []
        pages = f"{DIALECT.identifier(*self._own.name)} TABLESAMPLE SYSTEM ({100 * share})"
        names = list_read(self.dataset, self.dataset.name)
        return [ColumnSample(hide_sentinels(self.dataset.columns, names, pages, self._own.held, DIALECT), share)]

    def cut(self, plan: Plan) -> str | None:
        """The rows at one end of an index, where that is all that is asked about."""
        return cut_to_ends(plan, self._indexed, self.table)

    def find_ordered(self, search: RankSearch) -> bool:
        """Ranks of indexed columns, of the whole table."""
        return search.queries.source == self.table and walk_index(search, self._indexed)


@dataclass(frozen=True)
class _Address:
    """A database and a table in it."""

    url: str
    table: tuple[str, ...]
    shown: str
    """The address without its secrets."""

    def connect(self) -> psycopg.Connection:
        try:
            connection = psycopg.connect(self.url, autocommit=True)
        except psycopg.Error as error:
            raise SourceError(f"PostgreSQL cannot be reached at {self.shown}") from error
        if connection.info.server_version < OLDEST:
            connection.close()
            raise SourceError(f"PostgreSQL at {self.shown} is older than version 14, the oldest that can be used")
        return connection


def _address(source: object) -> _Address:
    parts = urlsplit(str(source))
    options = parse_qsl(parts.query)
    tables = [value for key, value in options if key == "table"]
    display = f"{parts.hostname or 'localhost'}:{parts.port or 5432}{parts.path}"
    if len(tables) != 1:
        raise SourceError(f"name the table in the address: postgresql://{display}?table=schema.name")
    rest = urlencode([(key, value) for key, value in options if key != "table"])
    return _Address(urlunsplit(parts._replace(query=rest)), split_table_name(tables[0]), display)


@dataclass(frozen=True)
class _Relation:
    """A table as the catalogue knows it."""

    name: tuple[str, str]
    kind: str
    held: dict[str, dt.DataType]
    indexed: frozenset[str]
    """The columns whose order an index keeps, the default one of their type, with all rows in it."""

    @classmethod
    def find(cls, connection: psycopg.Connection, table: tuple[str, ...]) -> _Relation:
        """Look a table up: without a schema, in those that the session began with, where one alone may have it."""
        *database, name = table
        schemas = [database.pop()] if database else _list_schemas(connection)
        if database and database != [connection.info.dbname]:
            schemas = []
        with read_snapshot(connection):
            found = connection.execute(
                """
                SELECT n.nspname, c.relname, c.relkind, c.oid FROM pg_class AS c JOIN pg_namespace AS n
                ON n.oid = c.relnamespace
                WHERE c.relname = %s AND n.nspname = ANY(%s) AND c.relkind IN ('r', 'm', 'p', 'v', 'f')
                """,
                [name, schemas],
            ).fetchall()
            if len(found) > 1:
                several = ", ".join(repr(f"{schema}.{name}") for schema, name, *_ in found)
                raise SourceError(f"the database has {several}: name the schema in the address")
            if not found:
                quoted = DIALECT.identifier(*table)
                raise SourceError(f"the database has no table or view {quoted}, or it may not be read")
            return cls._read(connection, *found[0])

    @classmethod
    def _read(cls, connection: psycopg.Connection, schema: str, name: str, kind: str, oid: int) -> _Relation:
        """Read what the catalogue says of a table."""
        columns = connection.execute(
            """
            SELECT a.attname, t.typcategory,
                   format_type(CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END,
                               CASE WHEN t.typtype = 'd' THEN t.typtypmod ELSE a.atttypmod END)
            FROM pg_attribute AS a JOIN pg_type AS t ON t.oid = a.atttypid
            WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
            """,
            [oid],
        ).fetchall()
        held = {column: _type(category, text) for column, category, text in columns}
        return cls((schema, name), kind, held, _find_indexed(connection, oid))


def _list_schemas(connection: psycopg.Connection) -> list[str]:
    """The schemas in which a session looks for a table whose schema is not given."""
    rows = connection.execute("SELECT pg_catalog.unnest(pg_catalog.current_schemas(false))").fetchall()
    return [schema for (schema,) in rows]


def _find_indexed(connection: psycopg.Connection, oid: int) -> frozenset[str]:
    # options 0 and 3 are ASC NULLS LAST and DESC NULLS FIRST: the order of ORDER BY, forwards and backwards
    rows = connection.execute(
        """
        SELECT a.attname FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid
        JOIN pg_am AS m ON m.oid = c.relam JOIN pg_opclass AS o ON o.oid = i.indclass[0]
        JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
        JOIN pg_class AS t ON t.oid = i.indrelid AND (t.relkind = 'p' OR NOT t.relhassubclass)
        WHERE i.indrelid = %s AND m.amname = 'btree' AND o.opcdefault AND i.indoption[0] IN (0, 3)
        AND i.indisvalid AND i.indisready AND i.indislive AND i.indpred IS NULL
        """,
        [oid],
    ).fetchall()
    return frozenset(name for (name,) in rows)


def _type(category: str, text: str) -> dt.DataType:
    if category in "SE":  # text of any sort, and enumerations
        return dt.string
    try:
        found = PostgresType.from_string(text)
    except Exception:  # whatever Ibis cannot name, no declared column can be
        return dt.unknown
    # Ibis takes oid, among others, for numbers of 64 bits, which are read without a cast
    return dt.uint32 if isinstance(found, dt.Int64) and text != "bigint" else found

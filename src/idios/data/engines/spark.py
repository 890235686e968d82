"""Spark: a table, view or folder of Parquet files, for what is too large for one machine.

A source is an address (``spark_address.py``), whose session is started for it, ``spark:table`` of the running session,
or a pair of a session and a table; the last two stay the caller's and are not stopped. What says what a statement means
is set in all of them (``spark_address.MEANING``).

A folder is read as it was when it was opened. Of a table Spark has no snapshots: do not write to
one while it is read. Each question has a scheduler pool of its own where the scheduler is fair; where it is not, they
wait for each other. A question that is stopped has its jobs cancelled, and so has one whose executors are all gone.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Event, Lock, Thread
from typing import cast
from uuid import uuid4

import ibis.expr.datatypes as dt  # type: ignore[import-untyped]
import pyarrow as pa
from ibis.backends.pyspark.datatypes import PySparkType  # type: ignore[import-untyped]
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from idios.core.domain import Kind
from idios.data.backend import DataSource, describe_change, describe_types, hold_rows, split_table_name
from idios.data.cancellation import Progress
from idios.data.connection_pool import AT_ONCE, Connection, ConnectionPool
from idios.data.engines.spark_address import WRITTEN, read_address
from idios.data.engines.spark_cluster import GivenSession, SparkPlace, find_cluster, find_context
from idios.data.engines.sql_backend import SqlBackend
from idios.data.formats.csv import CsvFormat
from idios.data.guesses import ColumnSample
from idios.data.sql.dialect import Dialect
from idios.data.sql.selection import SelectStatement
from idios.declare.schema import Dataset
from idios.errors import DataChanged, SourceError, SourceUnavailable

# A folder of Parquet files as it was when it was opened: the files that were there, and no others.
#
# Spark reads a folder as it finds it, statement by statement, and the rounds of one question are several statements. So
# the files are listed once, with their sizes and times, and a view of just those is what all questions read:
#
# 1. A file that is added later is not seen until the data set is opened again.
# 2. A file that was replaced, written to or removed is noticed before the next question is charged, and again before
#    what was read is released.
#
# The list is Spark's own (the source ``binaryFile`` without its content), so it is the same in Spark Connect, and no
# record is read for it.


_PATTERN_CHARACTERS = re.compile(r"([][{}*?\\])")
"""What Hadoop reads as a pattern in a path."""


@dataclass(frozen=True)
class PinnedFiles:
    """The files below a path: the name, the size in bytes and the time in microseconds of each."""

    path: str
    files: frozenset[tuple[str, int, int]]

    @classmethod
    def list(cls, session: SparkSession, path: str) -> PinnedFiles:
        """What lies below a path now, without what Spark ignores: names that begin with ``.`` or ``_``."""
        try:
            listed = session.read.format("binaryFile").load(escape_pattern(path))
            facts = listed.selectExpr("path", "length", "unix_micros(modificationTime) AS time").collect()
        except AnalysisException as error:
            raise SourceError(f"Spark finds nothing at the path {path}") from error
        except Exception as error:  # of Java, or of what holds the files
            raise SourceUnavailable(f"Spark cannot list the files at {path} at the moment, or may not") from error
        if not facts:
            raise SourceError(f"the path {path} has no files")
        return cls(path, frozenset((fact["path"], fact["length"], fact["time"]) for fact in facts))

    def read(self, session: SparkSession) -> DataFrame:
        """These files, with the columns that the names of folders tell (``year=2024``)."""
        names = sorted(name for name, _, _ in self.files)
        reader = session.read
        if any(_below(name) != _below(self.path) for name in names):  # else the path is the file itself
            reader = reader.option("basePath", self.path)  # which is taken as it is
        try:
            return reader.parquet(*map(escape_pattern, names))
        except Exception as error:  # Java's own, of a footer that is none
            raise SourceError(f"the files at {self.path} are not Parquet, or may not be read") from error

    def is_kept(self, session: SparkSession) -> bool:
        """Whether each file is there as it was; others may have come."""
        try:
            return self.files <= PinnedFiles.list(session, self.path).files
        except SourceUnavailable:
            raise
        except SourceError:
            return False

    @property
    def facts(self) -> str:
        """Text that is another one when a file is."""
        return "\n".join(f"{name} {size} {time}" for name, size, time in sorted(self.files))


def escape_pattern(path: str) -> str:
    """A path as Spark takes it, whatever characters it has.

    >>> escape_pattern("/data/[a]*")
    '/data/\\\\[a\\\\]\\\\*'
    """
    return _PATTERN_CHARACTERS.sub(r"\\\1", path)


def _below(path: str) -> str:
    """A path without its file system, as ``file:/data`` and ``/data`` are one."""
    return re.sub(r"^[a-zA-Z][a-zA-Z0-9+.-]*:(//[^/]*)?", "", path).rstrip("/")


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
    key="CAST(CAST({x} AS STRING) AS BINARY)",
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
    quick_counts=True,  # compiled, where for lists of many groups all records are sorted
    unscaled=_unscaled,
    greatest_scale=18,
    sum_as="decimal(28, 0)",
    substituted="${",
    hash="xxhash64({key}, {values})",
    sorted_list="sort_array(collect_list({x}))",
)


def connect(
    source: DataSource, dataset: Dataset, progress: Progress | None, linked: Mapping[str, DataSource]
) -> SparkBackend:
    """Open a declared data set in a session."""
    sources = {dataset.name: source, **linked}
    places: list[SparkPlace] = []
    try:
        tables: dict[str, SparkTable] = {}
        for name, each in sources.items():
            place, tables[name] = _find(each)
            places.append(place)
            if place.session() is not places[0].session():
                raise SourceError(f"{name!r} is linked to {dataset.name!r}: keep both in one session")
        return SparkBackend(places, tables, dataset, progress)
    except BaseException:
        for place in places:
            place.release()
        raise


def describe(source: object, csv_format: CsvFormat | None) -> list[tuple[str, Kind, int]]:
    """The names and types of a table."""
    place, table = _find(DataSource(source))
    try:
        table.hold(place)
        return describe_types(table.list_columns(place.session()))
    finally:
        if table.files is not None:
            place.drop_view(table.view)
        place.release()


class SparkConnection(Connection):
    """A session, and a name for what one question at a time runs in it."""

    dialect = DIALECT

    def __init__(self, place: SparkPlace) -> None:
        self._place = place
        super().__init__()
        self._session = place.session()
        self._jobs = f"idios-{uuid4()}"

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Read in the session that runs now: a lost one may have been started again."""
        self._session = self._place.session()
        yield

    def run(self, statement: SelectStatement) -> pa.Table:
        """Run a statement as jobs of one group, as long as there is someone to run them."""
        schema = statement.schema
        with self._grouped(), self._watched():
            frame = self._session.sql(statement.text)
            if hasattr(frame, "toArrow"):  # from version 4 on
                return frame.toArrow().cast(schema)
            records = frame.collect()
        columns = [pa.array([row[i] for row in records], field.type) for i, field in enumerate(schema)]
        return pa.Table.from_arrays(columns, schema=schema)

    def interrupt(self) -> None:
        """Cancel the jobs of this connection."""
        context = find_context(self._session)
        if context is not None:
            context.cancelJobGroup(self._jobs)
        else:
            self._session.interruptTag(self._jobs)

    def close(self) -> None:
        """Leave the session open: others may use it."""

    @contextmanager
    def _grouped(self) -> Iterator[None]:
        """Name the jobs of the calling thread, and take the names away in the end."""
        context = find_context(self._session)
        if context is None:
            self._session.addTag(self._jobs)
            try:
                yield
            finally:
                self._session.removeTag(self._jobs)
            return
        before = {name: context.getLocalProperty(name) for name in GROUP}
        context.setJobGroup(self._jobs, "a question", interruptOnCancel=True)
        context.setLocalProperty(POOL, self._jobs)
        try:
            yield
        finally:
            for name, value in before.items():
                context.setLocalProperty(name, cast(str, value))  # None takes it away

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Cancel the jobs when there has been no executor for a while: Spark itself would wait for one for ever."""
        over = Event()
        watch = Thread(target=self._cancel_without_executors, args=(over,), name="idios-spark-watch", daemon=True)
        watch.start()
        try:
            yield
        finally:
            over.set()
            watch.join()

    def _cancel_without_executors(self, over: Event) -> None:
        without = 0
        while not over.wait(SECONDS_BETWEEN_LOOKS):
            with suppress(Exception):  # a session that is gone ends its statements itself
                without = 0 if self._place.has_executors() else without + 1
                if without * SECONDS_BETWEEN_LOOKS >= SECONDS_WITHOUT_EXECUTORS:
                    self.interrupt()


POOL = "spark.scheduler.pool"
GROUP = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel", POOL)
"""What names a group of jobs, and the pool that they take turns in."""

SECONDS_BETWEEN_LOOKS = 1.0
SECONDS_WITHOUT_EXECUTORS = 60
"""After this time a question whose executors are all gone fails; a worker that is started again may be back by then."""


class SparkBackend(SqlBackend):
    """A table, view or folder of a session."""

    dialect = DIALECT

    def __init__(
        self,
        places: Sequence[SparkPlace],
        tables: Mapping[str, SparkTable],
        dataset: Dataset,
        progress: Progress | None,
    ) -> None:
        self._places, self._place, self._tables = places, places[0], tables
        self._units: int | None = None
        self._sample: SparkTable | None = None
        self._lock = Lock()
        at_once = self._place.questions_at_once or AT_ONCE
        super().__init__(dataset, ConnectionPool(lambda: SparkConnection(self._place), at_once), progress)
        try:
            for table in tables.values():
                table.hold(self._place)
            columns = {name: table.list_columns(self._place.session()) for name, table in tables.items()}
            self.hold({name: hold_rows(dataset, name, tables[name].name, columns[name], DIALECT) for name in tables})
            self.try_reading()
        except BaseException:
            self._drop_views()
            raise

    @property
    def state(self) -> str | None:
        """The files that are read; nothing is known of tables."""
        return "\n".join(table.files.facts for table in self._tables.values() if table.files) or None

    def check_reachable(self) -> None:
        """Ask the context, or the address of Spark Connect."""
        self._place.check()

    def check_unchanged(self) -> None:
        """Look whether the files are those that were opened."""
        session = self._place.session()
        if not all(table.files.is_kept(session) for table in self._tables.values() if table.files):
            raise DataChanged(describe_change(self.dataset.name))

    def samplings(self, share: float, rows: int) -> list[ColumnSample]:
        """Of files that stay as they are, one sample for all questions, kept where it was read; of a table none.

        No sample is ever trusted, so one that all questions share can cost time and nothing else.
        """
        kept = min(0.5, KEPT / rows)
        if not self._is_pinned or share > SPARSE * kept:
            return []
        with self._lock:
            if self._sample is None:
                self._sample = self._tables[self.dataset.name].sample(self._place, kept)
        return [ColumnSample(f"{self._sample.name} AS kept", kept)]

    def close(self) -> None:
        """Wait for what is being read, and leave the session."""
        super().close()
        self._drop_views()
        for place in self._places:
            place.release()
        self._places = []

    @property
    def _is_pinned(self) -> bool:
        return all(table.files for table in self._tables.values())

    def _count_units(self, connection: Connection) -> int:
        """Count once where the files stay as they are: that spares each question a scan."""
        if self._units is None or not self._is_pinned:
            self._units = super()._count_units(connection)
        return self._units

    def _drop_views(self) -> None:
        for table in (self._sample, *self._tables.values()):
            if table is not None and table.files is not None:
                with suppress(Exception):  # a session that is gone has no views
                    self._place.drop_view(table.view)


SPARSE = 4
"""A sample that is this much smaller than wished is better than reading all for one."""

KEPT = 2**18
"""How many records a sample has that all questions share: four times what one alone would take, as WHERE selects."""


@dataclass(frozen=True)
class SparkTable:
    """What is read: a table by its name, or a view of some files."""

    view: str
    files: PinnedFiles | None = None

    @property
    def name(self) -> str:
        """As it stands after FROM."""
        return self.view if self.files is None else DIALECT.identifier(self.view)

    def hold(self, place: SparkPlace) -> None:
        """Make the view, if it is one of ours."""
        if self.files is not None:
            place.hold_view(self.view, self.files.read)

    def sample(self, place: SparkPlace, share: float) -> SparkTable:
        """A view of a sample, kept by the executors from its first use on."""
        seed, name = secrets.randbits(31), f"{self.view}_sample"

        def make_frame(session: SparkSession) -> DataFrame:
            cores = int(session.conf.get("spark.sql.shuffle.partitions") or 2)
            return session.table(self.name).sample(share, seed).coalesce(cores).persist()

        place.hold_view(name, make_frame)
        return SparkTable(name, self.files)

    def list_columns(self, session: SparkSession) -> dict[str, dt.DataType]:
        """The names and types of what can be read."""
        try:
            return {field.name: _type(field.dataType) for field in session.table(self.name).schema.fields}
        except Exception as error:  # Spark's, or Java's own
            raise SourceError(f"Spark has no table or view {self.name}, or it may not be read") from error


def _find(source: DataSource) -> tuple[SparkPlace, SparkTable]:
    given = source.place
    if isinstance(given, str):
        address = read_address(given)
        if address is None:
            session = SparkSession.builder.getOrCreate()
            return GivenSession(session), _name_table(given.removeprefix("spark:"))
        cluster = find_cluster(address, source.settings)
        try:
            if address.table:
                return cluster, _name_table(address.table)
            files = PinnedFiles.list(cluster.session(), address.path)
            return cluster, SparkTable(f"idios_{uuid4().hex}", files)
        except BaseException:
            cluster.release()
            raise
    if isinstance(given, tuple) and len(given) == 2 and isinstance(given[1], str):
        return GivenSession(given[0]), _name_table(given[1])
    raise SourceError(f'{WRITTEN}; "spark:table" for the running session, or a pair of a session and a table')


def _name_table(written: str) -> SparkTable:
    return SparkTable(DIALECT.identifier(*split_table_name(written)))


def _type(held: object) -> dt.DataType:
    try:
        return PySparkType.to_ibis(held)
    except Exception:  # whatever Ibis cannot name, no declared column can be
        return dt.unknown

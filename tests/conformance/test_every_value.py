"""No value of any type makes a question fail, changes what it costs, or changes what other records give.

For every type that an engine has: a table of a few harmless records and of every hostile value, declared in several
ways and asked the same questions. What the engine finds must be what reading record by record gives, so a selection
without the hostile records is as if there were none; and what is drawn from it must come out. A declaration that is
refused must be refused of an empty table too: by its type alone.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from idios.answer.release import calibrate_plan, clip_values, draw_cell
from idios.core.calibration import Protection
from idios.core.domain import Categories, Domain, Kind
from idios.data.backend import open_source
from idios.declare.schema import Column, Dataset
from idios.errors import IdiosError, SourceError, Unanswerable
from idios.plan.planner import make_plan
from idios.plan.question import Plan
from idios.sql.reader import read
from tests.conformance import hostile
from tests.conformance.engines import SPARK, DuckdbEngine, Engine, PostgresqlEngine, SparkEngine
from tests.conformance.hostile import Hostile, Meaning
from tests.conformance.plans import call_tables_large
from tests.conformance.reference import reference

pytestmark = pytest.mark.slow

HARMLESS = 12
"""So many records hold nothing, or a value from the middle of the type."""

DECLARED: dict[Kind, list[dict[str, Any]]] = {
    Kind.INTEGER: [{}, {"nullable": False}, {"bounds": (-3, 100)}, {"step": 7, "bounds": (0, None)}],
    Kind.NUMBER: [{"step": "1e-6"}, {"step": "1e-6", "bounds": (-3, 100), "nullable": False}, {"step": "1e12"}],
    Kind.DECIMAL: [{"step": "0.01"}, {"step": "1/3", "bounds": (-3, 100)}],
    Kind.DATE: [{}, {"bounds": (0, 30000), "nullable": False}],
    Kind.TIMESTAMP: [{}, {"step": 1000}, {"bounds": (0, 10**15), "nullable": False}],
}
ALWAYS = (
    "SELECT COUNT(*), COUNT(x), COUNT(DISTINCT x) FROM t",
    "SELECT COUNT(*) FROM t WHERE x IS NULL",
)
ORDERED = (
    "SELECT MEDIAN(x), KTH_LARGEST(x, 2), KTH_SMALLEST(x, 3) FROM t",
    f"SELECT MEDIAN(x), COUNT(DISTINCT x) FROM t WHERE id < {HARMLESS}",
    "SELECT PERCENTILE_DISC(x, 0.25), MEDIAN(id) FROM t WHERE {later}",
    "SELECT MEDIAN(x) FROM t GROUP BY BIN(id, 100)",
)
NUMERIC = (
    "SELECT TRIMMED_MEAN(x, 0.05), WINSORIZED_MEAN(x, 0.1), IQR(x) FROM t",
    f"SELECT TRIMMED_MEAN(x, 0.05) FROM t WHERE id < {HARMLESS}",
)
BOUNDED = (
    "SELECT SUM(x), AVG(x), VARIANCE(x), MAX(x) FROM t",
    f"SELECT SUM(x), AVG(x) FROM t WHERE id < {HARMLESS}",
    "SELECT COUNT(*) FROM t GROUP BY BIN(x, {width})",
)
CATEGORIES = ("SELECT MODE(x), COUNT(DISTINCT x) FROM t", "SELECT COUNT(*), MEDIAN(id) FROM t GROUP BY x")


def columns(kind: Kind) -> list[Column]:
    if kind is Kind.CATEGORY:
        return [Column("x", kind, Categories(("b", "a", "日本語", "")), nullable) for nullable in (True, False)]
    return [
        Column(
            "x",
            kind,
            Domain.declare(step=given.get("step", 1), bounds=given.get("bounds")),
            given.get("nullable", True),
        )
        for given in DECLARED[kind]
    ]


def questions(column: Column) -> Iterator[str]:
    yield from ALWAYS
    if column.kind is Kind.CATEGORY:
        yield from CATEGORIES
        return
    later = {Kind.DATE: "x > DATE '1990-01-01'", Kind.TIMESTAMP: "x > TIMESTAMP '1990-01-01 00:00:00'"}
    yield from (text.format(later=later.get(column.kind, "x > 5")) for text in ORDERED)
    if column.kind in hostile.NUMBERS:
        yield from NUMERIC
        yield from BOUNDED[:2]
    width = 100 * column.grid.step * (1 if column.kind is not Kind.TIMESTAMP else 10**13)
    yield BOUNDED[2].format(width=int(width) if width.denominator == 1 else 50)


@cache
def plans(column: Column, protection: Protection) -> list[Plan]:
    """What is asked of a column; made once, for all types and engines that hold it."""
    data, made = data_set(column, protection), []
    for sql in questions(column):
        try:
            made.append(make_plan(read(sql, {"t": data}), data, Fraction(100)))
        except (Unanswerable, IdiosError):
            continue  # by public facts alone
    return made


NUMBERS = count()
INDIVIDUAL = Protection.declare("individual")
DIFFERENTIAL = Protection.declare("differential")


def asked(engine: str, case: Hostile) -> Iterator[tuple[Column, list[Plan]]]:
    """Two declarations of each kind, others for other types, and what is asked of each."""
    place = hostile.ENGINES[engine].index(case)
    for kind in case.kinds:
        declared = columns(kind)
        for i in range(1 if engine == "spark" else 2):
            column = declared[(place + i) % len(declared)]
            every = [*plans(column, INDIVIDUAL), *(plans(column, DIFFERENTIAL) if engine == "duckdb" else ())]
            yield column, every[:: 3 if engine == "spark" else 1]


@pytest.mark.parametrize(
    ("engine", "place"),
    [
        pytest.param(engine, i, id=f"{engine} {case.type}", marks=SPARK.marks if engine == "spark" else [])
        for engine, cases in hostile.ENGINES.items()
        for i, case in enumerate(cases)
    ],
    indirect=["engine"],
)
def test_no_value_decides_whether_a_question_is_answered(engine: Engine, place: int) -> None:
    case = hostile.ENGINES[str(engine)][place]
    # every other type of DuckDB as a file, which is read in another way
    file = str(engine) == "duckdb" and place % 2 == 1 and case.type not in NOT_IN_PARQUET
    source, answered = keep(engine, case, parquet=file), 0
    for column, every in asked(str(engine), case):
        table = meant(case, column.kind)
        try:
            backend = open_source(source, data_set(column))
        except SourceError:
            with pytest.raises(SourceError):
                open_source(keep(engine, Hostile(case.type, [], case.kinds)), data_set(column))
            continue
        with backend:
            for one in every:
                with backend.open_snapshot(one) as snapshot:
                    read_first = snapshot.summaries
                    _, found = clip_values(one, snapshot)
                assert read_first == reference(one, table), (column, [aggregate.label for aggregate in one.aggregates])
                for mechanisms in calibrate_plan(one, found):
                    for aggregate, mechanism in zip(one.aggregates, mechanisms, strict=True):
                        draw_cell(one, aggregate, mechanism, None)
                answered += 1
    assert answered or case.type in REFUSED_BY_TYPE


@pytest.mark.parametrize("type", ["BIGINT", "DOUBLE", "DECIMAL(18, 6)", "DECIMAL(38, 2)", "TIMESTAMP", "DATE"])
def test_no_value_decides_on_the_ways_of_large_tables(
    duckdb_engine: DuckdbEngine, type: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Samples, brackets and ends, which small tables do not need, on tables that are called large."""
    call_tables_large(monkeypatch)
    case = next(case for case in hostile.DUCKDB if case.type == type)
    source = keep(duckdb_engine, case, parquet=True)
    for kind in case.kinds:
        for column in columns(kind):
            with open_source(source, data_set(column)) as backend:
                for one in (*plans(column, INDIVIDUAL), *plans(column, DIFFERENTIAL)):
                    assert backend.summarise(one) == reference(one, meant(case, kind)), (column, one.aggregates)


NOT_IN_PARQUET = ("HUGEINT", "TIMESTAMP_S", "TIMESTAMP_MS")
REFUSED_BY_TYPE = ("DECIMAL(38, 38)", "DECIMAL(37, 36)")
"""Cannot be read exactly in steps as large as the declared ones."""


def test_how_much_is_tried() -> None:
    tried = {
        engine: sum(len(case.values) * len(every) for case in cases for _, every in asked(engine, case))
        for engine, cases in hostile.ENGINES.items()
    }
    types = {engine: (len(cases), sum(len(case.values) for case in cases)) for engine, cases in hostile.ENGINES.items()}
    sys.stderr.write(f"types and values: {types}; values × questions: {tried}\n")
    assert tried["duckdb"] > 200_000
    assert tried["postgresql"] > 100_000
    assert tried["spark"] > 5_000


def data_set(column: Column, protection: Protection = INDIVIDUAL) -> Dataset:
    id = Column("id", Kind.INTEGER, Domain(lower=0, upper=3000), nullable=False)
    return Dataset("t", {"id": id, "x": column}, protection=protection)


def records(case: Hostile) -> list[tuple[str, Callable[[Kind], Meaning]] | None]:
    """A few records with nothing or a value from the middle of the type, and one for every hostile value."""
    middle = case.values[len(case.values) // 2 :][:2] or [None]
    return [*(middle[i % len(middle)] if i % 3 else None for i in range(HARMLESS)), *case.values]


def meant(case: Hostile, kind: Kind) -> Mapping[str, Sequence[object]]:
    """The table as reading record by record sees it."""
    found = [record and record[1](kind) for record in records(case)]
    return {"id": list(range(len(found))), "x": found}


def keep(engine: Engine, case: Hostile, *, parquet: bool = False) -> object:
    """A table of the engine's own, or a file of DuckDB's, that holds the records."""
    literals = [record and record[0] for record in records(case)]
    written = case.kinds == (Kind.CATEGORY,)
    number = next(NUMBERS)
    if isinstance(engine, SparkEngine):
        if written:
            frame = engine.session.createDataFrame(list(enumerate(literals)), "id INT, x STRING")
        else:
            rows = ", ".join(f"({i}, CAST({text or 'NULL'} AS {case.type}))" for i, text in enumerate(literals))
            frame = engine.session.sql(f"SELECT * FROM VALUES {rows} AS t(id, x)")
        path = str(engine.directory / f"hostile {number}")
        frame.write.parquet(path)
        engine.session.read.parquet(path).createOrReplaceTempView(f"hostile_{number}")
        return engine.session, f"hostile_{number}"
    if isinstance(engine, PostgresqlEngine):
        engine.connection.execute(f"CREATE TABLE hostile_{number} (id integer, x {case.type})")
        with engine.connection.transaction():
            for i, text in enumerate(literals):
                value = text and ("%s" if written else text.replace("%", "%%"))
                arguments = [i, text] if written else [i]
                engine.connection.execute(
                    f"INSERT INTO hostile_{number} VALUES (%s, {value or '%s' if written else value or 'NULL'})",
                    arguments,
                )
        return f"{engine.url}?table={quote(f'hostile_{number}')}"
    assert isinstance(engine, DuckdbEngine)
    path = engine.directory / f"hostile {number}.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"CREATE TABLE t (id INTEGER, x {case.type})")
        if written:
            connection.executemany("INSERT INTO t VALUES (?, ?)", list(enumerate(literals)))
        else:
            rows = ", ".join(f"({i}, {text or 'NULL'})" for i, text in enumerate(literals))
            connection.execute(f"INSERT INTO t VALUES {rows}")
        if parquet:
            connection.execute(f"COPY t TO '{path}.parquet' (FORMAT parquet)")
    return f"{path}.parquet" if parquet else f"{path}::t"


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC"])
def test_timestamps_of_a_frame_in_every_unit(unit: str, zone: str | None) -> None:
    """Frames have timestamps that no file of DuckDB's has: seconds and milliseconds that reach far beyond its own."""
    ticks = [n for n in hostile.sizes(63) if abs(n) < 2**63 - 1]
    factor = {"s": 10**6, "ms": 1000, "us": 1, "ns": Fraction(1, 1000)}[unit]
    frame = pa.table({"id": list(range(len(ticks))), "x": pa.array(ticks, pa.int64()).cast(pa.timestamp(unit, zone))})
    for kind in (Kind.TIMESTAMP, Kind.DATE):
        moments = (math.floor(n * factor) for n in ticks)
        if unit in ("s", "ms"):  # which reach further than microseconds of 64 bits
            last, least = 9223372036854000000, -9223372022400000000
            moments = (n if least <= n <= last else (2**63 - 1) * (1 if n > 0 else -1) for n in moments)
        meant = [n // (hostile.DAY if kind is Kind.DATE else 1) for n in moments]
        for column in columns(kind):
            with open_source(frame, data_set(column)) as backend:
                for one in plans(column, INDIVIDUAL):
                    assert backend.summarise(one) == reference(one, {"id": list(range(len(ticks))), "x": meant})


def test_what_duckdb_cannot_decode_of_a_file_is_found_when_it_is_opened(tmp_path: Path) -> None:
    """Text that is no UTF-8, and milliseconds beyond its microseconds, make DuckDB's reader fail, whatever is asked."""
    far = pa.array([0, 2**62], pa.int64()).cast(pa.timestamp("ms"))
    offsets, content = np.array([0, 1, 2], dtype=np.int32), b"a\xff"
    broken = pa.Array.from_buffers(pa.string(), 2, [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(content)])
    bits = (10**4).to_bytes(16, "little") + (2**70).to_bytes(16, "little")
    long = pa.Array.from_buffers(pa.decimal128(19, 4), 2, [None, pa.py_buffer(bits)])
    for array, kind in ((far, Kind.TIMESTAMP), (broken, Kind.CATEGORY), (long, Kind.DECIMAL)):
        path = tmp_path / f"{kind}.parquet"
        pq.write_table(pa.table({"id": [1, 2], "x": array}), path)
        with pytest.raises(SourceError, match="cannot decode every text, timestamp"):
            open_source(path, data_set(columns(kind)[0]))
        id_alone = Dataset("t", {"id": Column("id", Kind.INTEGER, Domain())})
        with open_source(path, id_alone) as backend:
            assert backend.rows() == 2
    with pytest.raises(SourceError, match="of one type"):
        open_source(pa.table({"id": [1, 2], "x": broken}), data_set(columns(Kind.CATEGORY)[0]))

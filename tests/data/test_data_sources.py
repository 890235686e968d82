"""Files, frames and databases as sources: what is opened, what is refused, and how it is said."""

from __future__ import annotations

import datetime
import importlib
import os
import pickle
import sqlite3
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from idios.core.domain import Kind
from idios.core.statistics import Count, KthSmallest, Median, Mode, TrimmedMean
from idios.data.backend import DataSource, describe_source, open_source, split_table_name
from idios.data.engines import duckdb_sources
from idios.data.engines.duckdb import DuckDbBackend
from idios.data.engines.duckdb_sources import attach
from idios.errors import SourceError
from tests.conformance.plans import by, category, dataset, number, of_kind, plan, whole
from tests.conformance.reference import Table
from tests.conformance.test_statistics import same

TABLE: Table = {"n": [3, 1, None, 2], "x": [0.5, 1.5, None, -2.25], "c": ["a", "b", "a", None]}
COLUMNS = (whole("n"), number("x", "0.25"), category("c", "b", "a"))
DATA = dataset(*COLUMNS)
ASKED = plan(DATA, (KthSmallest(1), "n"), (KthSmallest(1), "x"), (Mode(), "c"), (Count(), None), distance=4)
KINDS = [("n", Kind.INTEGER, 0), ("x", Kind.NUMBER, 0), ("c", Kind.CATEGORY, 0)]


def csv_file(directory: Path) -> object:
    path = directory / "it's a file.csv"
    path.write_text("n,x,c,more\n3,0.5,a,1\n1,1.5,b,1\n,,a,1\n2,-2.25,,1\n")
    return path


def parquet_file(directory: Path) -> object:
    path = directory / "people.parquet"
    pq.write_table(pa.table(TABLE), path)
    return str(path)


def duckdb_file(directory: Path) -> object:
    path = directory / "people.duckdb"
    with duckdb.connect(str(path)) as connection:
        frame = pa.table(TABLE)
        connection.register("frame", frame)
        connection.execute('CREATE SCHEMA "odd schema"')
        connection.execute('CREATE TABLE "odd schema"."odd.""table" AS SELECT * FROM frame')
        connection.execute("CREATE TABLE other (a INTEGER)")
    return f'{path}::odd schema."odd.""table"'


SOURCES = {
    "csv": csv_file,
    "parquet": parquet_file,
    "duckdb": duckdb_file,
    "arrow": lambda directory: pa.table(TABLE),
    "pandas": lambda directory: pd.DataFrame(TABLE),
    "pandas categories": lambda directory: pd.DataFrame(TABLE).astype({"c": "category", "n": "Int32"}),
    "polars": lambda directory: pl.DataFrame(TABLE),
    "polars categories": lambda directory: pl.DataFrame(TABLE).cast({"c": pl.Categorical}),
    "lists": lambda directory: TABLE,
    "arrays": lambda directory: {
        "n": np.array([3, 1, np.nan, 2]),
        "x": np.array([0.5, 1.5, np.nan, -2.25]),
        "c": np.array(["a", "b", "a", None], dtype=object),
    },
}


@pytest.mark.parametrize("kind", SOURCES)
def test_every_source_gives_the_same(kind: str, tmp_path: Path) -> None:
    source = SOURCES[kind](tmp_path)
    with open_source(source, DATA) as backend:
        assert backend.rows() == 4
        same(backend, ASKED, TABLE)
        assert backend.check().sound
        assert backend.check().rows == 4
    described = [(name, found, places) for name, found, places in describe_source(source) if name != "more"]
    assert [name for name, *_ in described] == ["n", "x", "c"]
    assert described[1:] == KINDS[1:]
    assert described[0][1] is (Kind.NUMBER if kind in ("pandas", "arrays") else Kind.INTEGER)


def test_a_described_decimal_knows_its_places() -> None:
    table = pa.table({"d": pa.array([Decimal("1.25")]), "t": [datetime.datetime(2020, 1, 1)], "b": [True], "l": [[1]]})
    assert describe_source(table) == [("d", Kind.DECIMAL, 2), ("t", Kind.TIMESTAMP, 0), ("b", Kind.INTEGER, 0)]


LARGE: Table = {"n": [i * 7919 % 60_013 for i in range(60_000)], "c": ["ab"[i % 2] for i in range(60_000)]}


@pytest.mark.parametrize("kind", ["duckdb", "arrow", "pandas", "polars", "csv"])
def test_large_sources_of_every_kind_can_be_sampled(kind: str, tmp_path: Path) -> None:
    source: object = {"arrow": pa.table, "pandas": pd.DataFrame, "polars": pl.DataFrame}.get(kind, dict)(LARGE)
    if kind == "csv":
        source = tmp_path / "large.csv"
        pd.DataFrame(LARGE).to_csv(source, index=False)
    elif kind == "duckdb":
        source = tmp_path / "large.duckdb"
        with duckdb.connect(str(source)) as connection:
            frame = pa.table(LARGE)
            connection.register("frame", frame)
            connection.execute("CREATE TABLE stored AS SELECT * FROM frame; CREATE VIEW seen AS SELECT * FROM stored")
        source = f"{source}::stored"
    columns = (whole("n"), category("c", "b", "a"))
    data = dataset(*columns)
    with open_source(source, data) as backend:
        asked = (Median(), "n"), (TrimmedMean(Fraction(1, 20)), "n"), (KthSmallest(2), "n")
        same(backend, plan(data, *asked), LARGE)
        same(backend, plan(data, *asked, groups=[by(columns[1])]), LARGE)


def test_types_that_only_duckdb_has(tmp_path: Path) -> None:
    path = tmp_path / "types.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE TABLE t (u UBIGINT, h HUGEINT, n TIMESTAMP_NS, d DATE, e ENUM ('x', 'y'), s TINYINT)"
        )
        connection.execute(
            "INSERT INTO t VALUES (18446744073709551615, -170141183460469231731687303715884105727, "
            "'1970-01-01 00:00:01.000001', 'infinity', 'y', -128), (5, 7, '1969-12-31', '1970-01-02', 'x', 127)"
        )
    data = dataset(
        whole("u", (0, 10)),
        whole("h", (-9, 9)),
        of_kind(Kind.TIMESTAMP, "n"),
        of_kind(Kind.DATE, "d"),
        category("e", "y", "x"),
        whole("s"),
    )
    moments = [datetime.datetime(1970, 1, 1, 0, 0, 1, 1), datetime.datetime(1969, 12, 31)]
    table: Table = {
        "u": [10**30, 5],
        "h": [-(10**38), 7],
        "n": moments,
        "d": [None, datetime.date(1970, 1, 2)],
        "e": ["y", "x"],
        "s": [-128, 127],
    }
    with open_source(str(path), data) as backend:
        same(backend, plan(data, *((KthSmallest(1), name) for name in "uhnds"), (Mode(), "e"), distance=2), table)


def test_times_of_a_frame() -> None:
    moments = pd.to_datetime(["2024-01-01 12:30:00.000000", None, "1969-12-31 23:59:59.999999"])
    frame = pd.DataFrame({"m": moments, "z": moments.tz_localize("Europe/Vienna"), "d": moments})
    data = dataset(of_kind(Kind.TIMESTAMP, "m"), of_kind(Kind.TIMESTAMP, "z"), of_kind(Kind.DATE, "d"))
    table: Table = {
        "m": [None if pd.isna(m) else m.to_pydatetime() for m in frame["m"]],
        "z": [None if pd.isna(m) else m.to_pydatetime() for m in frame["z"]],
        "d": [None if pd.isna(m) else m.to_pydatetime() for m in frame["d"]],
    }
    with open_source(frame, data) as backend:
        same(backend, plan(data, *((KthSmallest(1), name) for name in "mzd"), distance=3), table)


def test_an_only_table_need_not_be_named(tmp_path: Path) -> None:
    path = tmp_path / "one.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE people AS SELECT 5 AS n")
    with open_source(str(path), dataset(whole("n"))) as backend:
        assert backend.rows() == 1


REFUSED = {
    "no file": ("absent.parquet", "there is no file 'absent.parquet'"),
    "no such kind of file": ("{other}", "must be a .csv, .parquet, .+ got '.+/people.docx'"),
    "a typo": ("{csv}x", 'there is no file .+csvx"; did you mean "it\'s a file.csv"'),
    "a table in a CSV file": ("{csv}::t", "only a .duckdb file has tables"),
    "no such table": ("{duckdb}::absent", "has no table 'absent'; it has"),
    "which table": ("{duckdb}", "write the table after the file"),
    "a broken name": ('{duckdb}::a"b', "a table is written as"),
    "not a Parquet file": ("{broken}", "'broken.parquet' cannot be read as a Parquet file"),
    "a number": (5, "got int"),
    "columns of different lengths": ({"n": [1], "x": [1.0, 2.0], "c": ["a"]}, "equally long"),
    "mixed types": ({"n": [1, "secret"], "x": [1.0], "c": ["a"]}, "mixes the types int and str"),
    "an absent column": ({"n": [1], "x": [1.0]}, "has no column 'c'; it has 'n', 'x'"),
    "text for a number": (
        {"n": ["1"], "x": [1.0], "c": ["a"]},
        "'n' is declared as integer, and the source holds string",
    ),
    "a date for a category": (
        {"n": [1], "x": [1.0], "c": [datetime.date(2020, 1, 1)]},
        "'c' is declared as category",
    ),
    "a date for a number": ({"n": [datetime.date(2020, 1, 1)], "x": [1.0], "c": ["a"]}, "'n' is declared as integer"),
    "no columns": (pd.DataFrame(), "the frame has no columns"),
    "a name twice": (pd.DataFrame([[1, 2]], columns=["n", "n"]), "several columns of the frame are called 'n'"),
    "a name twice in Arrow": (pa.table([[1], [2]], names=["n", "n"]), "several columns of the frame are called 'n'"),
    "lists for a number": ({"n": [[1]], "x": [1.0], "c": ["a"]}, "'n' is declared as integer"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_read_is_said_at_once(case: str, tmp_path: Path) -> None:
    source, message = REFUSED[case]
    if isinstance(source, str):
        broken = tmp_path / "broken.parquet"
        broken.write_text("secret")
        base = str(duckdb_file(tmp_path)).partition("::")[0]
        other = tmp_path / "people.docx"
        other.write_text("secret")
        source = source.format(csv=csv_file(tmp_path), duckdb=base, broken=broken, other=other)
    with pytest.raises(SourceError, match=message) as raised:
        open_source(source, DATA)
    assert "secret" not in str(raised.value)


def test_csv_fields_are_read_as_declared_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "odd.csv"
    rows = {
        "i": [" 12 ", "+3", "1.0", "1e3", "TRUE", "0x10", "1_000", "", "99999999999999999999", "-5"],
        "x": [" 1.5", "1e3", ".5", "5.", "1,5", "nan", "inf", "1_000", "1e999", "-0.0"],
        "d": ["12.345", "-.005", "1e3", "5.", "12345678901234567890.5", "1.0000000000000000001", "", "a", "1", "+2"],
        "t": [
            "2024-02-29",
            "2023-02-29",
            "29.02.2024",
            "2024/02/28",
            "2024-2-8",
            "1600-01-01",
            "",
            "x",
            " 1970-01-01",
            "0",
        ],
        "m": [
            "2024-02-29 01:02",
            "1970-01-01T00:00:00Z",
            "1970-01-01 02:00:00+02:00",
            "1970-01-01 00:00:00.000001",
            "1970-01-01 00:00:00.0000001",
            "1969-12-31 23:59:59.5-01",
            "1970-01-01 25:00:00",
            "1970-01-01",
            "",
            "noon",
        ],
        "c": [" a", "a", "A", "b", "", "c", "a ", "a", "é", "b"],
    }
    records = zip(*rows.values(), strict=True)
    lines = [",".join(rows), *(",".join(f'"{field}"' if field else "" for field in record) for record in records)]
    path.write_text("\n".join(lines) + "\n")
    huge = 99999999999999999999
    read: Table = {
        "i": [12, 3, None, None, 1, None, None, None, huge, -5],
        "x": [1.5, 1000.0, 0.5, 5.0, None, None, None, None, None, -0.0],
        "d": [
            Decimal(t) if t else None
            for t in ("12.345", "-.005", "", "5", "12345678901234567890.5", "", "", "", "1", "2")
        ],
        "t": [
            *(datetime.date(2024, 2, 29), None, None, None, None),
            *(datetime.date(1600, 1, 1), None, None, datetime.date(1970, 1, 1), None),
        ],
        "m": [
            datetime.datetime(2024, 2, 29, 1, 2),
            *(datetime.datetime(1970, 1, 1),) * 2,
            datetime.datetime(1970, 1, 1, microsecond=1),
            None,
            datetime.datetime(1970, 1, 1, 0, 59, 59, 500000),
            None,
            datetime.datetime(1970, 1, 1),
            None,
            None,
        ],
        "c": [None, "a", None, "b", None, None, None, "a", None, "b"],
    }
    columns = (
        whole("i", (0, 10**9)),
        number("x", "0.5", (-5, 500)),
        of_kind(Kind.DECIMAL, "d", "0.01", (-1, 1000)),
        of_kind(Kind.DATE, "t"),
        of_kind(Kind.TIMESTAMP, "m"),
        category("c", "a", "b"),
    )
    data = dataset(*columns)
    with open_source(path, data) as backend:
        asked = plan(data, *((KthSmallest(1), name) for name in "ixdtm"), (Mode(), "c"), distance=10)
        same(backend, asked, read)
        same(backend, plan(data, (KthSmallest(1), "i"), groups=[by(columns[5])]), read)
        report = backend.check()
    counted = {column.name: (column.missing, column.unreadable, column.outside) for column in report.columns}
    assert counted == {
        "i": (1, 4, 2),
        "x": (0, 5, 1),
        "d": (1, 3, 1),
        "t": (1, 6, 0),
        "m": (1, 3, 0),
        "c": (1, 0, 5),
    }


def test_the_connection_reaches_nothing_else(tmp_path: Path) -> None:
    parquet_file(tmp_path)
    other = tmp_path / "other.csv"
    other.write_text("a\n1\n")
    with open_source(tmp_path / "people.parquet", DATA) as backend:
        assert isinstance(backend, DuckDbBackend)
        for attack in (
            f"SELECT * FROM read_csv('{other}')",
            f"ATTACH '{tmp_path / 'new.duckdb'}'",
            f"COPY (SELECT 1) TO '{tmp_path / 'out.csv'}'",
            "SET enable_external_access = true",
            "SET threads = 1",
            "INSTALL httpfs",
        ):
            for cursor in backend._attached.cursors:
                with pytest.raises(duckdb.Error):
                    cursor.execute(attack)
        assert backend.rows() == 4


def test_a_duckdb_file_is_not_written_to(tmp_path: Path) -> None:
    source = str(duckdb_file(tmp_path))
    with open_source(source, DATA) as backend:
        assert isinstance(backend, DuckDbBackend)
        with pytest.raises(duckdb.Error, match="read-only"):
            backend._attached.cursors[-1].execute("CREATE TABLE base.main.mine (a INTEGER)")


@pytest.mark.parametrize("linked", [False, True])
@pytest.mark.parametrize("ending", [".wal", ".wal.checkpoint", ".wal.recovery"])
def test_a_duckdb_file_with_a_log_of_changes_beside_it_is_refused(ending: str, linked: bool, tmp_path: Path) -> None:
    """A pipe, which would be waited for without end: nobody opens it."""
    file, _, table = str(duckdb_file(tmp_path)).partition("::")
    log = Path(file + ending)
    os.mkfifo(log)
    if linked:
        (tmp_path / "elsewhere").mkdir()
        link = tmp_path / "elsewhere" / "link.duckdb"
        link.symlink_to(file)
        file = str(link)
    for _ in range(2):
        with pytest.raises(SourceError, match=r"is not read while there is .+\.wal.+ and run CHECKPOINT"):
            open_source(f"{file}::{table}", DATA)
    log.unlink()
    with open_source(f"{file}::{table}", DATA) as backend:
        assert backend.rows() == 4


def test_a_parquet_file_with_a_column_named_like_duckdbs_own(tmp_path: Path) -> None:
    path = tmp_path / "named.parquet"
    table: Table = {"file_row_number": [5, 7, 9]}
    pq.write_table(pa.table(table), path)
    data = dataset(whole("file_row_number"))
    with open_source(path, data) as backend:
        same(backend, plan(data, (KthSmallest(1), "file_row_number"), distance=3), table)


@pytest.mark.parametrize(
    "name", ["a*.parquet", "a?.parquet", "[ab].parquet", "a[b.parquet", "it's {a}.parquet", "ü %.parquet"]
)
def test_a_file_name_is_not_a_pattern(name: str, tmp_path: Path) -> None:
    for other in ("ab.parquet", "a.parquet", "b.parquet"):
        pq.write_table(pa.table({"n": [1, 2, 3]}), tmp_path / other)
    pq.write_table(pa.table({"n": [1]}), tmp_path / name)
    (tmp_path / name.replace("parquet", "csv")).write_text("n\n1\n")
    for path in (tmp_path / name, tmp_path / name.replace("parquet", "csv")):
        with open_source(path, dataset(whole("n"))) as backend:
            assert backend.rows() == 1
        assert describe_source(path) == [("n", Kind.INTEGER, 0)]


@pytest.mark.parametrize("wrap", [lambda x: {"x": x}, lambda x: pd.DataFrame({"x": x}, copy=False)])
def test_arrays_may_be_written_to_after_opening(wrap: Callable[[np.ndarray], object]) -> None:
    """What was counted of a frame is kept, and its version was taken when it was opened."""
    values = np.arange(2_000_000.0)
    data = dataset(number("x"))
    with open_source(wrap(values), data) as backend:
        before = backend.summarise(plan(data, (Median(), "x")))
        values[:] = 0
        assert backend.summarise(plan(data, (Median(), "x"))) == before


def test_collations_of_the_source_do_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "collated.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE t (c VARCHAR COLLATE NOCASE)")
        connection.execute("INSERT INTO t VALUES ('a'), ('A'), ('a'), ('b')")
    table: Table = {"c": ["a", "A", "a", "b"]}
    column = category("c", "a", "b")
    data = dataset(column)
    with open_source(str(path), data) as backend:
        same(backend, plan(data, (Mode(), "c"), (Count(), "c")), table)
        same(backend, plan(data, (Count(), None), groups=[by(column)]), table)


def test_threads_do_not_disturb_each_other() -> None:
    with open_source(LARGE, dataset(whole("n"))) as backend:
        asked = plan(backend.dataset, (Median(), "n"))
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda _: backend.summarise(asked), range(8)))
    assert all(one == found[0] for one in found)


def test_progress_is_told(tmp_path: Path) -> None:
    told: list[tuple[str, float]] = []
    with open_source(csv_file(tmp_path), DATA, lambda step, share: told.append((step, share))) as backend:
        backend.summarise(ASKED)
    opening = [share for step, share in told if step == "reading the file"]
    asking = [share for step, share in told if step != "reading the file"]
    assert told[len(opening) - 1] == ("reading the file", 1.0)
    assert told[-1] == ("summarised", 1.0)
    assert opening == sorted(opening)
    assert asking == sorted(asking)


@pytest.mark.parametrize(("source", "extra"), [("postgresql://h/d?table=t", "postgres"), ("spark:t", "spark")])
def test_a_missing_driver_is_named(source: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    driver, module = {"postgres": ("psycopg", "postgresql"), "spark": ("pyspark.sql", "spark")}[extra]
    monkeypatch.setitem(sys.modules, driver, None)
    monkeypatch.delitem(sys.modules, f"idios.data.engines.{module}", raising=False)
    with pytest.raises(SourceError, match=rf"pip install 'idios\[{extra}\]'"):
        open_source(source, DATA)
    monkeypatch.undo()
    importlib.invalidate_caches()


@pytest.mark.parametrize("written", ["", ".", "a.", ".a", 'a"b', '"a', '"a"b', '""'])
def test_names_that_are_none(written: str) -> None:
    with pytest.raises(SourceError, match="a table is written as"):
        split_table_name(written)


@pytest.mark.parametrize("values", [[1, 1.5], [datetime.date(2024, 1, 1), datetime.datetime(2024, 1, 1, 5)], ["a", 1]])
def test_a_list_has_one_type(values: list[object]) -> None:
    """Otherwise one element would decide what the others are read as."""
    with pytest.raises(SourceError, match="mixes the types"):
        open_source({"n": values}, dataset(whole("n")))


# Parquet and DuckDB files of somebody who wants more than to hand over data; other formats: test_foreign_files.py.

WHOLE = dataset(whole("n"))


def test_statements_in_a_duckdb_file_are_not_run(tmp_path: Path) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("n\n42\n")
    path = tmp_path / "people.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"CREATE VIEW seen AS SELECT * FROM read_csv('{secret}')")
        connection.execute("CREATE VIEW endless AS WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL FROM r) FROM r")
        connection.execute("CREATE TABLE made (a INTEGER, n INTEGER GENERATED ALWAYS AS (a + 1))")
        connection.execute("""CREATE TABLE "GENERATED ALWAYS AS" (n INTEGER, "x GENERATED ALWAYS AS" VARCHAR)""")
        connection.execute("CREATE MACRO count(x) AS 42; CREATE MACRO sum(x) AS 42; CREATE MACRO floor(x) AS 42")
    for name in ("seen", "endless"):
        with pytest.raises(SourceError, match=rf"'{name}' in 'people.duckdb' is a view.+: store what it selects"):
            open_source(f"{path}::{name}", WHOLE)
    with pytest.raises(SourceError, match="has generated columns"):
        open_source(f"{path}::made", WHOLE)
    with open_source(f'{path}::"GENERATED ALWAYS AS"', WHOLE) as backend:
        assert backend.rows() == 0
    with pytest.raises(SourceError, match=r"it has 'GENERATED ALWAYS AS', 'made'$"):
        open_source(path, WHOLE)


def test_a_database_of_another_kind_makes_duckdb_fetch_nothing(tmp_path: Path) -> None:
    path = tmp_path / "people.duckdb"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE people (n INTEGER)")
        connection.commit()
    with pytest.raises(SourceError, match="cannot be read as a DuckDB file") as raised:
        open_source(path, WHOLE)
    assert "not a valid DuckDB database file" in str(raised.value.__cause__)  # and not: failed to download


def test_no_connection_loads_extensions_or_finds_secrets(tmp_path: Path) -> None:
    attached = attach({"people": DataSource(parquet_file(tmp_path))})
    attached.lock()
    try:
        names = ["autoinstall_known_extensions", "autoload_known_extensions", "allow_community_extensions"]
        for name in [*names, "allow_persistent_secrets", "allow_unsigned_extensions", "enable_external_access"]:
            assert attached.cursors[-1].execute(f"SELECT current_setting('{name}')").fetchone() == (False,), name
            with pytest.raises(duckdb.Error):
                attached.cursors[-1].execute(f"SET {name} = true")
    finally:
        attached.close()


def test_a_parquet_file_that_refers_to_another_is_refused(tmp_path: Path) -> None:
    collected: list[pq.FileMetaData] = []
    table = pa.table({"n": list(range(2**11))})
    pq.write_table(table, tmp_path / "secret.parquet", metadata_collector=collected)
    for i, name in enumerate(["secret.parquet", str(tmp_path / "secret.parquet"), "http://127.0.0.1:9/secret.parquet"]):
        collected[0].set_file_path(name)
        pq.write_metadata(table.schema, tmp_path / f"{i}.parquet", metadata_collector=collected)
        with pytest.raises(SourceError):
            open_source(tmp_path / f"{i}.parquet", WHOLE)


def test_a_large_parquet_file_that_refers_to_another_is_refused(tmp_path: Path) -> None:
    collected: list[pq.FileMetaData] = []
    table = pa.table({"n": np.zeros(2**21, dtype=np.int64)})
    pq.write_table(table, tmp_path / "secret.parquet", metadata_collector=collected)
    collected[0].set_file_path("secret.parquet")
    folder = tmp_path / "people"
    folder.mkdir()
    pq.write_table(table, folder / "0.parquet")
    pq.write_metadata(table.schema, folder / "1.parquet", metadata_collector=collected)
    for source in (folder, folder / "1.parquet"):
        with pytest.raises(SourceError, match="DuckDB cannot decode"):
            open_source(source, WHOLE)


def test_a_parquet_file_with_more_rows_than_bytes_can_be_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "zeros.parquet"
    pq.write_table(pa.table({"n": np.zeros(2**20, dtype=np.int64)}), path)
    monkeypatch.setattr(duckdb_sources, "MOST_ROWS", 2**20)
    monkeypatch.setattr(duckdb_sources, "MOST_EACH", 1)
    with open_source(path, WHOLE) as backend:
        assert backend.rows() == 2**20
    monkeypatch.setattr(duckdb_sources, "MOST_ROWS", 2**20 - 1)
    with pytest.raises(SourceError, match="has 1,048,576 rows, more than 1,048,575"):
        open_source(path, WHOLE)
    monkeypatch.setattr(duckdb_sources, "MOST_EACH", 2**20)
    with open_source(path, WHOLE) as backend:
        assert backend.rows() == 2**20


def test_one_long_text_in_many_records_is_not_copied_for_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("idios.data.engines.duckdb.KEPT_TEXT", 2**20)
    data, long = dataset(whole("n"), category("c", "a", "b")), "x" * 1000
    for times, kept in ((1000, True), (2000, False)):
        path = tmp_path / f"{times}.parquet"
        pq.write_table(pa.table({"n": range(times), "c": [long] * times}), path)
        with open_source(path, data) as backend:
            assert isinstance(backend, DuckDbBackend)
            assert backend.table.startswith("kept_") == kept
            assert backend.check().columns[1].outside == times


@pytest.mark.parametrize("name", [b"arrow.py_extension_type", b"geoarrow.wkb", b"arrow.json"])
def test_types_of_a_parquet_file_bring_no_code(name: bytes, tmp_path: Path) -> None:
    named = {b"ARROW:extension:name": name, b"ARROW:extension:metadata": pickle.dumps(closing(tmp_path))}
    geo = {b"geo": b'{"version":"1.0.0","primary_column":"c","columns":{"c":{"encoding":"WKB","geometry_types":[]}}}'}
    fields = [pa.field("n", pa.int64()), pa.field("c", pa.binary(), metadata=named)]
    path = tmp_path / "typed.parquet"
    pq.write_table(pa.table({"n": [1, 2], "c": [b"a", None]}, schema=pa.schema(fields, geo)), path)
    describe_source(path)
    with open_source(path, WHOLE) as backend:
        assert backend.rows() == 2


def test_names_of_folders_are_values_and_nothing_else(tmp_path: Path) -> None:
    names = ["c=${HOME}", "c=getenv('HOME')", "c='); ATTACH 'x", "c=%2e%2e", "c=..", "c=~"]
    for name in names:
        (tmp_path / name).mkdir()
        pq.write_table(pa.table({"n": [1]}), tmp_path / name / "a.parquet")
    data = dataset(whole("n"), category("c", *(name.removeprefix("c=") for name in names[:3])))
    with open_source(tmp_path, data) as backend:
        assert backend.rows() == len(names)
        assert backend.check().columns[1].outside == 3
    (tmp_path / "file_row_number=1").mkdir()
    pq.write_table(pa.table({"n": [1]}), tmp_path / "file_row_number=1" / "a.parquet")
    with pytest.raises(SourceError):
        open_source(tmp_path, data)
    with open_source(tmp_path / "file_row_number=1", WHOLE) as backend:
        assert backend.rows() == 1

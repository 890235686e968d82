"""Files as offices have them: each format is read from what another library wrote, and what is broken is refused."""

from __future__ import annotations

import datetime
import gzip
import math
import random
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import deltalake
import duckdb
import openpyxl
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pyreadstat
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from idios import TrustedParty
from idios.core.domain import Kind
from idios.core.statistics import Count, KthSmallest, Median, Mode
from idios.data.backend import CsvFormat, describe_source, open_source
from idios.data.formats import files
from idios.data.formats.csv import read_format
from idios.data.formats.csv_proposal import propose_format
from idios.data.formats.text_files import JsonLinesFile
from idios.errors import DataChanged, SourceError
from tests.conformance.plans import category, dataset, number, of_kind, plan, whole
from tests.conformance.reference import Table
from tests.conformance.test_statistics import same

DAY, MOMENT = datetime.date, datetime.datetime
TABLE: Table = {
    "n": [3, 1, None, 2],
    "x": [0.5, 1.5, None, -2.25],
    "c": ["a", "é", "a", None],
    "d": [DAY(2024, 2, 29), DAY(1583, 1, 1), None, DAY(1969, 12, 31)],
    "t": [MOMENT(2024, 2, 29, 12, 30), MOMENT(1969, 12, 31, 23, 59, 59), MOMENT(2000, 1, 1), None],
}
DATA = dataset(
    whole("n"), number("x", "0.25"), category("c", "é", "a"), of_kind(Kind.DATE, "d"), of_kind(Kind.TIMESTAMP, "t")
)
ASKED = plan(DATA, *((KthSmallest(1), name) for name in "nxdt"), (Mode(), "c"), (Count(), None), distance=4)
FRAME = pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in TABLE.items()})
WHOLE = FRAME.astype({"n": "Int64", "x": float})
FLOATS = FRAME.astype({"n": float, "x": float})


def write_csv(path: Path, **options: Any) -> None:
    WHOLE.to_csv(path, index=False, **options)


def write_excel(path: Path) -> None:
    book = openpyxl.Workbook()
    book.active.title = "People"
    book.active.append(list(TABLE))
    for record in zip(*TABLE.values(), strict=True):
        book.active.append([DAY(1900, 1, 1) if value == DAY(1583, 1, 1) else value for value in record])
    book.save(path)


WRITERS: dict[str, Callable[[Path], None]] = {
    "plain.csv": write_csv,
    "tabs.tsv": lambda path: write_csv(path, sep="\t"),
    "commas.txt": write_csv,
    "packed.csv.gz": lambda path: write_csv(path, compression="gzip"),
    "packed.tsv.gz": lambda path: write_csv(path, sep="\t", compression="gzip"),
    "lines.jsonl": lambda path: WHOLE.astype({"d": str, "t": str}).to_json(path, orient="records", lines=True),
    "lines.ndjson.gz": lambda path: pl.DataFrame(TABLE).write_ndjson(path, compression="gzip"),
    "book.xlsx": write_excel,
    "stata.dta": lambda path: pyreadstat.write_dta(FLOATS, path, version=15),
    "older.dta": lambda path: FLOATS.assign(
        c=FLOATS["c"].fillna(""), d=pd.to_datetime(FLOATS["d"]).dt.as_unit("s"), t=pd.to_datetime(FLOATS["t"])
    ).to_stata(path, write_index=False, version=114, convert_dates={"d": "td", "t": "tc"}),
    "spss.sav": lambda path: pyreadstat.write_sav(FLOATS, path),
    "spss.zsav": lambda path: pyreadstat.write_sav(FLOATS, path, compress=True),
    "sas.xpt": lambda path: pyreadstat.write_xport(FLOATS, path, file_format_version=8),
    "older.xpt": lambda path: pyreadstat.write_xport(FLOATS, path, file_format_version=5),
    "typed.parquet": lambda path: pl.DataFrame(TABLE).write_parquet(path),
    "typed.arrow": lambda path: pl.DataFrame(TABLE).write_ipc(path),
    "stream.arrow": lambda path: pl.DataFrame(TABLE).write_ipc_stream(path),
    "typed.feather": lambda path: feather.write_feather(pa.table(TABLE), path),
}


@pytest.mark.parametrize("name", WRITERS)
def test_what_another_library_wrote_is_read(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    WRITERS[name](path)
    table = dict(TABLE)
    if name == "book.xlsx":  # Excel has no earlier days
        table["d"] = [DAY(1900, 1, 1) if value == DAY(1583, 1, 1) else value for value in TABLE["d"]]
    with open_source(path, DATA) as backend:
        same(backend, ASKED, table)
        assert [column.missing for column in backend.check().columns] == [1, 1, 1, 1, 1]
        assert not any(column.unreadable for column in backend.check().columns)
    kinds = {name: kind for name, kind, _ in describe_source(path, read_format(path, None) if ".t" in name else None)}
    assert kinds["c"] is Kind.CATEGORY
    assert (kinds["d"], kinds["t"]) == (Kind.DATE, Kind.TIMESTAMP)
    assert kinds["n"] in (Kind.INTEGER, Kind.NUMBER)


WRITTEN = {
    "semicolons": ({"sep": ";", "decimal": ","}, CsvFormat(delimiter=";", decimal=",")),
    "Latin-1": ({"encoding": "latin-1"}, CsvFormat(encoding="latin-1")),
    "UTF-16": ({"encoding": "utf-16"}, CsvFormat(encoding="utf-16")),
    "UTF-16 without a mark": ({"encoding": "utf-16-le"}, CsvFormat(encoding="utf-16-le")),
    "a byte order mark": ({"encoding": "utf-8-sig"}, CsvFormat()),
    "NA": ({"na_rep": "NA"}, CsvFormat(nulls=("NA",))),
    "points and bars": ({"na_rep": ".", "sep": "|"}, CsvFormat(delimiter="|", nulls=(".",))),
    "all of it": (
        {"sep": ";", "decimal": ",", "encoding": "cp1252", "na_rep": "NA", "compression": "gzip"},
        CsvFormat(delimiter=";", decimal=",", encoding="latin-1", nulls=("NA",)),
    ),
}


@pytest.mark.parametrize("kind", WRITTEN)
def test_how_a_csv_file_is_written_is_proposed_and_then_declared(kind: str, tmp_path: Path) -> None:
    options, format = WRITTEN[kind]
    path = tmp_path / ("people.csv.gz" if "compression" in options else "people.csv")
    write_csv(path, **options)
    assert propose_format(path) == format
    with open_source(path, DATA, csv_format=format) as backend:
        same(backend, ASKED, TABLE)


def test_a_text_file_of_any_ending_is_csv_if_that_is_declared(tmp_path: Path) -> None:
    path = tmp_path / "people.dat"
    write_csv(path, sep=";")
    with pytest.raises(SourceError, match=r'such as csv = \{ delimiter = ";" \}'):
        open_source(path, DATA)
    with open_source(path, DATA, csv_format=CsvFormat(delimiter=";")) as backend:
        same(backend, ASKED, TABLE)


ENCODINGS = {"latin-1": "latin-1", "cp1252": "cp1252", "utf-16": "utf-16", "utf-16-be": "utf-16-be"}


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_wrong_encoding_is_said_with_the_line_to_write(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "old.csv"
    path.write_bytes("n,c\n1,é\n2,à 5 €\n".replace("€" if encoding == "latin-1" else "\0", "").encode(encoding))
    line = rf'csv = \{{ encoding = "{ENCODINGS[encoding]}" \}}'
    with pytest.raises(SourceError, match=f"not utf-8: .+ {line}"):
        open_source(path, dataset(whole("n")))
    with open_source(path, dataset(whole("n")), csv_format=CsvFormat(encoding=encoding)) as backend:
        assert backend.rows() == 2


def test_text_that_begins_like_another_kind_of_file_is_text(tmp_path: Path) -> None:
    for i, header in enumerate(["PAR1,n", "animals,DUCK,n", "ARROW1,n", "FEA1,n", "PK,n", "$FL2,n"]):
        path = tmp_path / f"{i}.csv"
        path.write_text(f"{header}\n{'1,' * header.count(',')}5\n")
        with open_source(path, dataset(whole("n"))) as backend:
            assert backend.rows() == 1


def mislabel(name: str, other: str) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        source = path.with_name(other)
        WRITERS[other](source)
        source.rename(path)

    return write


def cut(name: str, share: float = 0.6) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        WRITERS[name](path)
        content = path.read_bytes()
        path.write_bytes(content[: int(len(content) * share)])

    return write


def put(content: bytes) -> Callable[[Path], None]:
    return lambda path: path.write_bytes(content) and None  # type: ignore[func-returns-value]


def write_duckdb(path: Path) -> None:
    with duckdb.connect(str(path.with_suffix(".duckdb"))) as connection:
        connection.execute("CREATE TABLE people AS SELECT 5 AS n")
    path.with_suffix(".duckdb").rename(path)


BROKEN: dict[str, tuple[str, Callable[[Path], None], str]] = {
    "csv called Parquet": ("a.parquet", mislabel("a.parquet", "plain.csv"), "cannot be read as a Parquet file"),
    "Parquet called csv": ("a.csv", mislabel("a.csv", "typed.parquet"), "begins like a Parquet file.+ending .parquet"),
    "Excel called csv": ("a.csv", mislabel("a.csv", "book.xlsx"), "begins like an Excel file.+ending .xlsx"),
    "csv called Excel": ("a.xlsx", mislabel("a.xlsx", "plain.csv"), "cannot be read as an Excel file"),
    "SPSS called Stata": ("a.dta", mislabel("a.dta", "spss.sav"), "begins like an SPSS file"),
    "csv called SPSS": ("a.sav", mislabel("a.sav", "plain.csv"), "cannot be read as an SPSS file"),
    "csv called SAS": ("a.xpt", mislabel("a.xpt", "plain.csv"), "cannot be read as a SAS transport file"),
    "csv called Arrow": ("a.arrow", mislabel("a.arrow", "plain.csv"), "cannot be read as an Arrow file"),
    "csv called JSON lines": ("a.jsonl", mislabel("a.jsonl", "plain.csv"), "line 1 of 'a.jsonl' is no JSON object"),
    "JSON lines called csv": ("a.csv", mislabel("a.csv", "lines.jsonl"), "has no column"),
    "compressed without saying": ("a.csv", mislabel("a.csv", "packed.csv.gz"), "begins like a gzip file"),
    "DuckDB called csv": ("a.csv", write_duckdb, "begins like a DuckDB file: give it the ending .duckdb"),
    "not compressed": ("a.csv.gz", mislabel("a.csv.gz", "plain.csv"), "is not compressed: take .gz off its name"),
    "a compressed file that was cut off": ("packed.csv.gz", cut("packed.csv.gz"), "cannot be decompressed"),
    "compressed damage": ("a.csv.gz", put(gzip.compress(b"n\n" * 99)[:12] + b"\xff" * 30), "cannot be decompressed"),
    "JSON that was cut off": ("lines.jsonl", cut("lines.jsonl"), "is no JSON object"),
    "JSON of another encoding": ("a.jsonl", put('{"c": "é"}\n'.encode("latin-1")), "is no JSON object in UTF-8"),
    "JSON that is nested too deep": ("a.jsonl", put(b'{"n": ' + b"[" * 100_000), "line 1 .+ is no JSON object"),
    "a list of JSON": ("a.jsonl", put(b'{"n": 1}\n[1]\n'), "line 2 .+ is no JSON object"),
    "Excel that was cut off": ("book.xlsx", cut("book.xlsx"), "cannot be read as an Excel file"),
    "Stata that was cut off": ("stata.dta", cut("stata.dta"), "cannot be read as a Stata file"),
    "SPSS that was cut off": ("spss.sav", cut("spss.sav"), "cannot be read as an SPSS file"),
    "SAS that was cut off": ("sas.xpt", cut("sas.xpt", 0.77), "cannot be read as a SAS transport file"),
    "Parquet that was cut off": ("typed.parquet", cut("typed.parquet"), "cannot be read as a Parquet file"),
    "Arrow that was cut off": ("typed.arrow", cut("typed.arrow"), "cannot be read as an Arrow file"),
    "a stream that was cut off": ("stream.arrow", cut("stream.arrow"), "cannot be read as an Arrow file"),
    **{
        f"nothing called {ending}": (f"a{ending}", put(b""), message)
        for ending, message in {
            ".csv": "the csv file is empty",
            ".csv.gz": "is not compressed",
            ".xlsx": "cannot be read as",
            ".dta": "cannot be read as",
            ".sav": "cannot be read as",
            ".xpt": "cannot be read as",
            ".parquet": "cannot be read as",
            ".arrow": "cannot be read as",
            ".feather": "cannot be read as",
            ".duckdb": "cannot be read as|has no table|write the table",
        }.items()
    },
}


@pytest.mark.parametrize("kind", BROKEN)
def test_what_is_broken_or_mislabelled_is_refused_when_it_is_opened(kind: str, tmp_path: Path) -> None:
    name, write, message = BROKEN[kind]
    write(tmp_path / name)
    with pytest.raises(SourceError, match=message) as raised:
        open_source(tmp_path / name, DATA)
    assert "2.25" not in str(raised.value)


# Folders, patterns, tables of versions.

SMALL = dataset(whole("n"), category("c", "a", "b"))
PARTS: list[Table] = [{"n": [1, 2], "c": ["a", None]}, {"n": [None, 4], "c": ["b", "a"]}]
TOGETHER: Table = {name: [*PARTS[0][name], *PARTS[1][name]] for name in "nc"}
BOTH = plan(SMALL, (KthSmallest(1), "n"), (Mode(), "c"), (Count(), None), distance=4)


def write_folder(folder: Path) -> Path:
    for i, part in enumerate(PARTS):
        place = folder / f"year={2024 + i}"
        place.mkdir(parents=True)
        pq.write_table(pa.table(part, schema=pa.schema([("n", pa.int64()), ("c", pa.string())])), place / "a.parquet")
    (folder / "_temporary").mkdir()
    (folder / "_temporary" / "b.parquet").write_text("half a file")
    (folder / "_SUCCESS").touch()
    return folder


def write_delta(folder: Path) -> Path:
    for part in PARTS:
        frame = pa.table(part, schema=pa.schema([("n", pa.int64()), ("c", pa.string())]))
        deltalake.write_deltalake(str(folder), frame, mode="append", partition_by=["c"])
    return folder


def write_iceberg(folder: Path) -> Path:
    folder.mkdir()
    catalog = SqlCatalog("test", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
    catalog.create_namespace("shop")
    schema = pa.schema([("n", pa.int64()), ("c", pa.string())])
    table = catalog.create_table("shop.people", schema=schema)
    for part in PARTS:
        table.append(pa.table(part, schema=schema))
    catalog.close()
    return folder / "shop" / "people"


FOLDERS = {"a folder": write_folder, "Delta": write_delta, "Iceberg": write_iceberg}


@pytest.mark.parametrize("kind", FOLDERS)
def test_a_folder_is_read_as_it_was_when_it_was_opened(kind: str, tmp_path: Path) -> None:
    folder = FOLDERS[kind](tmp_path / "people")
    assert describe_source(folder)[:2] == [("n", Kind.INTEGER, 0), ("c", Kind.CATEGORY, 0)]
    with open_source(folder, SMALL) as backend:
        same(backend, BOTH, TOGETHER)
        if kind == "a folder":
            pq.write_table(pa.table({"n": [7], "c": ["a"]}), folder / "year=2025" / "later.parquet")
        elif kind == "Delta":
            write_delta(folder)
        same(backend, BOTH, TOGETHER)
    with open_source(folder, SMALL) as backend:
        assert backend.rows() == {"a folder": 5, "Delta": 8, "Iceberg": 4}[kind]


def test_a_pattern_stands_for_the_files_that_match_it(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "people")
    with open_source(folder / "*" / "*.parquet", SMALL) as backend:
        same(backend, BOTH, TOGETHER)
    with open_source(folder / "year=2025" / "?.parquet", SMALL) as backend:
        same(backend, BOTH, PARTS[1])
    with pytest.raises(SourceError, match=r"no file matches .+b\*\.parquet"):
        open_source(folder / "b*.parquet", SMALL)
    year = category("year", "2024", "2025")
    data = dataset(whole("n"), year)
    with open_source(folder, data) as backend:
        same(backend, plan(data, (Mode(), "year")), {"n": TOGETHER["n"], "year": ["2024", "2024", "2025", "2025"]})


def test_a_large_folder_is_sampled_in_every_file(tmp_path: Path) -> None:
    values = [i * 7919 % 60_013 for i in range(60_000)]
    for i, (start, end) in enumerate([(0, 5_000), (5_000, 35_000), (35_000, 60_000)]):
        pq.write_table(pa.table({"n": values[start:end]}), tmp_path / f"{i}.parquet", row_group_size=4_000)
    data = dataset(whole("n"))
    with open_source(tmp_path, data) as backend:
        same(backend, plan(data, (Median(), "n"), (KthSmallest(2), "n"), (Count(), None)), {"n": values})


def test_files_of_one_folder_are_alike(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "people")
    pq.write_table(pa.table({"n": [1.5], "c": ["a"]}), folder / "year=2025" / "other.parquet")
    with pytest.raises(SourceError, match="must be alike"):
        open_source(folder, SMALL)
    (folder / "year=2025" / "other.parquet").write_text("n,c\n1,a\n")
    with pytest.raises(SourceError, match="cannot be read as a Parquet file"):
        open_source(folder, SMALL)
    (folder / "year=2025" / "other.parquet").rename(folder / "other.parquet")
    pq.write_table(pa.table(PARTS[1]), folder / "other.parquet")
    with pytest.raises(SourceError, match="must be alike"):
        open_source(folder, SMALL)
    (tmp_path / "empty").mkdir()
    with pytest.raises(SourceError, match=r"has no \.parquet files"):
        open_source(tmp_path / "empty", SMALL)


@pytest.mark.parametrize("kind", ["Delta", "Iceberg"])
def test_a_table_of_versions_that_is_broken_is_refused(kind: str, tmp_path: Path) -> None:
    folder = FOLDERS[kind](tmp_path / "people")
    log = max((folder / ("_delta_log" if kind == "Delta" else "metadata")).glob("*.json"))
    log.write_text("{")
    with pytest.raises(SourceError, match=f"cannot be read as an? {kind} table"):
        open_source(folder, SMALL)


def test_the_version_is_another_one_when_a_file_of_the_folder_is(tmp_path: Path) -> None:
    columns = {"n": "integer", "c": {"type": "category", "values": ["a", "b"]}}

    def open_party(folder: Path) -> TrustedParty:
        return TrustedParty.open(folder, name="people", columns=columns, budget=5, ledger=tmp_path / "ledger.db")

    for kind, write in FOLDERS.items():
        folder = write(tmp_path / kind)
        versions = []
        for _ in range(2):
            with open_party(folder) as party:
                versions.append(party.datasets["people"].dataset.version)
        if kind == "a folder":
            pq.write_table(pa.table({"n": [7], "c": ["a"]}), folder / "year=2025" / "later.parquet")
        elif kind == "Delta":
            write(folder)
        with open_party(folder) as party:
            versions.append(party.datasets["people"].dataset.version)
            if kind == "a folder":
                (folder / "year=2025" / "later.parquet").write_text("n")
                with pytest.raises(DataChanged):
                    party.query("SELECT COUNT(*) FROM people", 1)
                assert party.ledger.balance("people").epsilon.spent == 0
        assert versions[0] == versions[1]
        assert (versions[1] != versions[2]) == (kind != "Iceberg")


def test_a_missing_reader_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needed = {
        "book.xlsx": ("python_calamine", "excel"),
        "spss.sav": ("pyreadstat", "statistics-files"),
        "Delta": ("deltalake", "delta"),
        "Iceberg": ("pyiceberg.table", "iceberg"),
    }
    places = {"book.xlsx": tmp_path / "book.xlsx", "spss.sav": tmp_path / "spss.sav"}
    for name, path in places.items():
        WRITERS[name](path)
    places |= {kind: FOLDERS[kind](tmp_path / kind) for kind in ("Delta", "Iceberg")}
    for name, (module, extra) in needed.items():
        absent = tmp_path / extra / f"{module.partition('.')[0]}.py"
        absent.parent.mkdir()
        absent.write_text("raise ImportError('absent')")
        with monkeypatch.context() as patch:
            patch.syspath_prepend(absent.parent)
            with pytest.raises(SourceError, match=rf"pip install 'idios\[{extra}\]'"):
                open_source(places[name], SMALL)


# Folders and files of somebody who wants more than to hand over data; other formats: test_foreign_files.py.


@pytest.mark.parametrize("kind", ["a file", "a folder"])
def test_a_link_that_leads_out_of_a_folder_is_refused(kind: str, tmp_path: Path) -> None:
    folder, others = write_folder(tmp_path / "people"), tmp_path / "others"
    others.mkdir()
    pq.write_table(pa.table(PARTS[0]).cast(pa.schema([("n", pa.int64()), ("c", pa.string())])), others / "a.parquet")
    link = folder / "year=2026" / "a.parquet"
    if kind == "a file":
        link.parent.mkdir()
        link.symlink_to(others / "a.parquet")
    else:
        link.parent.symlink_to(others)
    for source in (folder, folder / "*" / "*.parquet", folder / "**" / "*.parquet"):
        if source == folder and kind == "a folder":
            with open_source(source, SMALL) as backend:  # links to folders are not listed
                assert backend.rows() == 4
            continue
        with pytest.raises(
            SourceError, match=r"'year=2026/a\.parquet' is a link that leads out of the folder 'people'"
        ):
            open_source(source, SMALL)
    for source in (link, *[link.parent] * (kind == "a folder")):  # what a controller names is followed
        with open_source(source, SMALL) as backend:
            assert backend.rows() == 2


def test_links_within_a_folder_are_followed(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "people")
    (folder / "year=2024" / "a.parquet").rename(folder / "_temporary" / "real")
    (folder / "year=2024" / "a.parquet").symlink_to("../_temporary/real")
    (tmp_path / "current").symlink_to(folder)
    for source in (folder, tmp_path / "current", tmp_path / "current" / "*" / "*.parquet"):
        with open_source(source, SMALL) as backend:
            same(backend, BOTH, TOGETHER)


@pytest.mark.parametrize("name", ["a.csv.gz", "a.jsonl.gz"])
def test_what_is_compressed_is_no_bomb(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = {"a.csv.gz": b"n\n" + b"1\n" * 2**20, "a.jsonl.gz": b'{"n": 1}\n' * 2**18}[name]
    path, data = tmp_path / name, dataset(whole("n"))
    path.write_bytes(gzip.compress(lines))
    assert path.stat().st_size * 200 < len(lines)
    monkeypatch.setattr(files, "LARGEST", 2**20)
    for read in (lambda: open_source(path, data), lambda: describe_source(path)):
        with pytest.raises(SourceError, match=r"is not read: decompressed it is .+ more than 200 times as large"):
            read()
    monkeypatch.setattr(files, "LARGEST", len(lines))
    with open_source(path, data) as backend:
        assert backend.rows() in (2**20, 2**18)
    name = name.removesuffix(".gz")
    (tmp_path / name).write_bytes(lines)
    monkeypatch.setattr(files, "LARGEST", 1)
    with open_source(tmp_path / name, data) as backend:  # it is as large as it says
        assert backend.rows() in (2**20, 2**18)


MANY = 20_000
HEADERS = {
    "plain": ",".join(f"c{i}" for i in range(MANY)),
    "in quotes": ",".join(f'"c{i}"' for i in range(MANY)),
    "after a line break in quotes": '"c\n",' + ",".join(f"c{i}" for i in range(MANY)),
    "after a quote in a field": 'c",' + ",".join(f"c{i}" for i in range(MANY)),
    "empty": "," * MANY,
}


@pytest.mark.parametrize("kind", HEADERS)
def test_a_short_header_does_not_take_all_memory(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "many.csv"
    path.write_text(f"{HEADERS[kind]}\n")
    with pytest.raises(SourceError, match="more than 10,000 columns"):
        open_source(path, SMALL)
    path.write_text('n,c\n1,"' + "," * MANY + '"\n')
    with open_source(path, SMALL) as backend:
        assert backend.rows() == 1


def test_records_of_json_have_so_many_names(tmp_path: Path) -> None:
    path = tmp_path / "many.jsonl"
    path.write_text("".join(f'{{"c{i}": {i}}}\n' for i in range(MANY)))
    with pytest.raises(SourceError, match="more than 10,000 names"):
        describe_source(path)


def test_json_of_any_depth_is_read_or_refused(tmp_path: Path) -> None:
    """Also where it can just be parsed, and what is made of it could not be written."""
    path, outcomes = tmp_path / "deep.jsonl", set()
    for depth in range(600, 1000):
        path.write_text('{"n": ' + "[" * depth + "]" * depth + "}")
        for read in (JsonLinesFile(path).propose_columns, lambda: [*JsonLinesFile(path).read_records([], ["n"])]):
            try:
                read()
                outcomes.add("read")
            except SourceError as error:
                outcomes.add(str(error).partition(", such as")[0])
    assert outcomes == {"read", "line 1 of 'deep.jsonl' is no JSON object in UTF-8"}


# Values that no engine expects.

ODD = [math.nan, math.inf, -math.inf, 1e300, -1e300, 5e-324, 2.0**63, -(2.0**70), 1e22, 0.1, -0.0, 7.0]


def write_odd_excel(path: Path) -> None:
    book = openpyxl.Workbook()
    book.active.append(["n", "c"])
    for value in ODD:
        book.active.append([value if math.isfinite(value) else "=1/0", "\x7f�𝄞"])
    for odd in ["#N/A", datetime.time(5), datetime.timedelta(3), Decimal("1.5"), " 7 ", True]:
        book.active.append([odd, None])
    book.save(path)


def write_odd_lines(path: Path) -> None:
    odd = ["NaN", "-Infinity", "1e400", "1" * 5000, '"\\ud800"', "[1, {}]", "{}", "true", '"7"', "null", '""', "-0.0"]
    path.write_text("".join(f'{{"n": {value}, "c": {value}}}\n' for value in odd) + '\n{"m": 1}\n{}\n')


FAR = [-9e15, -8e5, -1e300, 1e300, 9e15, 2.9e6, 0.5]
ODD_FRAME = pd.DataFrame(
    {"n": ODD, "c": ["\x00", "é", "a" * 200, ""] * 3, "d": [*FAR, *FAR[:5]], "t": [*FAR, *FAR[:5]]}
)
ODD_WRITERS: dict[str, Callable[[Path], None]] = {
    "odd.xlsx": write_odd_excel,
    "odd.jsonl": write_odd_lines,
    "odd.dta": lambda path: pyreadstat.write_dta(
        ODD_FRAME.replace([math.inf, -math.inf, 1e300, -1e300], 1e200), path, variable_format={"d": "%td", "t": "%tc"}
    ),
    "odd.sav": lambda path: pyreadstat.write_sav(ODD_FRAME, path, variable_format={"d": "DATE11", "t": "DATETIME20"}),
    "odd.xpt": lambda path: pyreadstat.write_xport(
        ODD_FRAME.replace([math.inf, -math.inf, 1e300, -1e300], 1e60).drop(columns=["d", "t"]), path
    ),
    "odd.arrow": lambda path: pl.DataFrame(ODD_FRAME).write_ipc(path),
    "odd.csv": lambda path: ODD_FRAME.to_csv(path, index=False),
}


@pytest.mark.parametrize("name", ["floats.sav", "floats.dta", "floats.jsonl"])
def test_a_float_that_became_text_is_the_same_float(name: str, tmp_path: Path) -> None:
    draw = random.Random(30)
    values = [draw.gauss(0, 10.0 ** draw.randrange(-9, 9)) for _ in range(200)] + [0.285, 2.0**53, -0.0, 1e15, 1 / 3]
    frame, path = pd.DataFrame({"x": values}), tmp_path / name
    if name.endswith("jsonl"):
        path.write_text("".join(f'{{"x": {value!r}}}\n' for value in values))
    else:
        {"sav": pyreadstat.write_sav, "dta": pyreadstat.write_dta}[name[-3:]](frame, path)
    for step in ("1e-9", "0.01", 3):
        data = dataset(number("x", step))
        with open_source(path, data) as backend:
            same(backend, plan(data, (KthSmallest(1), "x"), distance=len(values)), {"x": values})


CHANGED = ("book.xlsx", "stata.dta", "older.dta", "spss.sav", "sas.xpt", "typed.arrow", "lines.jsonl", "packed.csv.gz")


@pytest.mark.slow
@pytest.mark.parametrize("name", CHANGED)
def test_a_damaged_file_is_read_or_refused(name: str, tmp_path: Path) -> None:
    """Whatever is wrong with it: no other error, and nothing that a question would meet."""
    draw, path = random.Random(31), tmp_path / name
    WRITERS[name](path)
    whole_content = path.read_bytes()
    for _ in range(25):
        content = bytearray(whole_content)
        for _ in range(draw.choice([1, 3, 20])):
            content[draw.randrange(len(content))] = draw.randrange(256)
        path.write_bytes(content[: draw.choice([len(content), draw.randrange(len(content))])])
        try:
            with open_source(path, DATA) as backend:
                backend.summarise(ASKED)
        except SourceError:
            continue


@pytest.mark.parametrize("name", ODD_WRITERS)
def test_no_value_keeps_a_question_from_being_answered(name: str, tmp_path: Path) -> None:
    ODD_WRITERS[name](tmp_path / name)
    columns: dict[str, Any] = {"c": {"type": "category", "values": ["a", "7", "true"]}}
    for kind in ("integer", "number", {"type": "decimal", "decimals": 2}):
        with TrustedParty.open(
            tmp_path / name, name="odd", columns={"n": kind, **columns}, budget=50, protection="individual"
        ) as party:
            answer = party.query("SELECT COUNT(n), MEDIAN(n), KTH_LARGEST(n, 2), MODE(c) FROM odd", 10)
            assert len(answer.rows) == 1
    if name in ("odd.dta", "odd.sav"):
        dates = {"d": "date", "t": "timestamp"}
        with TrustedParty.open(tmp_path / name, name="odd", columns=dates, budget=50, protection="individual") as party:
            assert len(party.query("SELECT COUNT(d), MEDIAN(d), KTH_LARGEST(t, 2) FROM odd", 10).rows) == 1

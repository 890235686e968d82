"""Files as offices have them: each format is read from what another library wrote, and what is broken is refused."""

from __future__ import annotations

import datetime
import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pyreadstat
import pytest

from idios.backends.base import CsvFormat, describe_source, open_source
from idios.backends.csv import read_format
from idios.backends.csv_proposal import propose_format
from idios.core.domain import Kind
from idios.core.statistics import Count, KthSmallest, Mode
from idios.errors import SourceError
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

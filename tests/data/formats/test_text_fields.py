"""Fields of text under declared kinds: any text gives a value or none, never an error, and what Python would read."""

from __future__ import annotations

import datetime
import random
import re
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from idios.core.domain import Kind
from idios.data.backend import CsvFormat
from idios.data.formats.text_fields import BLANKS, FORMS, Notation, parse_field
from idios.declare.dates import read_day
from idios.errors import InvalidInput, SourceError
from idios.party import TrustedParty
from tests.declare.test_date_formats import FORMATS, write_field

NOTATIONS = [Notation(), Notation(","), Notation(",", "."), Notation(".", ","), Notation(",", " "), Notation(".", "'")]
KINDS = [Kind.INTEGER, Kind.NUMBER, Kind.DECIMAL]
ALPHABET = "0123456789" * 3 + "..,,''’+-eE \u00a0\u202fx\n\0٣"


def read(texts: list[str], sql: str) -> list[Any]:
    """What DuckDB makes of texts."""
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("texts", pa.table({"field": pa.array(texts, pa.string())}))
        return [value for (value,) in connection.execute(f"SELECT {sql} FROM texts").fetchall()]


def write_number(draw: random.Random, notation: Notation) -> str:
    """A number, perhaps with its marks, perhaps with a slip of the pen; or any text."""
    if draw.random() < 0.3:
        return "".join(draw.choice(ALPHABET) for _ in range(draw.randrange(12)))
    whole = f"{draw.randrange(10 ** draw.randrange(1, 12)):,}"
    written = whole.replace(",", draw.choice([notation.thousands, notation.thousands, ""]))
    if draw.random() < 0.5:
        written += f"{notation.decimal}{draw.randrange(10 ** draw.randrange(1, 6))}"
    if draw.random() < 0.2:
        place = draw.randrange(len(written) + 1)
        written = written[:place] + draw.choice(ALPHABET) + written[place + draw.randrange(2) :]
    return draw.choice(["", "-", "+", " "]) + written + draw.choice(["", "", " "])


def read_number(text: str, kind: Kind, notation: Notation) -> Fraction | None:
    """The number that a text is, by rules of its own: digits in groups of three or in one, then a decimal mark."""
    stripped, marks = text.strip(BLANKS), {" ": " \u00a0\u202f", "'": "'’"}.get(notation.thousands, notation.thousands)
    sign, rest = (stripped[:1], stripped[1:]) if stripped[:1] in ("+", "-") else ("", stripped)
    whole, _, digits = rest.partition(notation.decimal) if kind is not Kind.INTEGER else (rest, "", "")
    power = ""
    if kind is Kind.NUMBER and (found := re.search("[eE]", rest)):
        body, power = rest[: found.start()], rest[found.start() + 1 :]
        whole, _, digits = body.partition(notation.decimal)
        if not re.fullmatch("[+-]?[0-9]+", power):
            return None
    groups = re.split(f"[{re.escape(marks)}]", whole) if marks else [whole]
    if not all(re.fullmatch("[0-9]*", part) for part in (*groups, digits)) or not (whole or digits):
        return None
    if len(groups) > 1 and not (1 <= len(groups[0]) <= 3 and all(len(part) == 3 for part in groups[1:])):
        return None
    if kind is Kind.DECIMAL and (len("".join(groups)) > 20 or len(digits) > 18 or (not whole and not digits)):
        return None
    number = Fraction(int("".join(groups) + digits or "0"), 10 ** len(digits)) * (-1 if sign == "-" else 1)
    return number * Fraction(10) ** int(power) if power and abs(int(power)) < 200 else None if power else number


@pytest.mark.parametrize("notation", NOTATIONS, ids=str)
def test_any_text_is_a_number_or_none(notation: Notation) -> None:
    draw = random.Random(str(notation))
    for kind in KINDS:
        texts = [write_number(draw, notation) for _ in range(2500)]
        texts = [text for text in texts if not re.search(r"[eE][+-]?[0-9]{3}", text)]
        expected = [read_number(text, kind, notation) for text in texts]
        for text, value, number in zip(
            texts, read(texts, parse_field(kind, "field", notation)[0]), expected, strict=True
        ):
            shown = None if number is None else float(number) if kind is Kind.NUMBER else number
            exact = value if value is None or kind is Kind.NUMBER else Fraction(Decimal(value))
            assert exact == shown, (kind, text)
            form = re.fullmatch(FORMS[kind][0], notation.normalise(text.strip(BLANKS)))
            assert bool(form) == (value is not None), (kind, text)  # what a proposal goes by
        assert sum(number is not None for number in expected) > 300


@pytest.mark.parametrize("format", FORMATS)
def test_any_text_is_a_date_or_none(format: str) -> None:
    draw = random.Random(format + "!")
    texts = [write_field(draw, format) for _ in range(1500)]
    texts += ["".join(draw.choice(ALPHABET + "JanPM:/") for _ in range(draw.randrange(20))) for _ in range(1500)]
    days = [read_day(text.strip(BLANKS), format) for text in texts]
    assert read(texts, parse_field(Kind.DATE, "field", format=format)[0]) == days
    moments = read(texts, f"epoch_us({parse_field(Kind.TIMESTAMP, 'field', format=format)[0]})")
    for text, day, moment in zip(texts, days, moments, strict=True):
        if day is None:
            assert moment is None, text
        else:
            written = datetime.datetime.strptime(text.strip(BLANKS), format)
            assert moment == (written - datetime.datetime(1970, 1, 1)) // datetime.timedelta(microseconds=1), text


COLUMNS = {"day": {"type": "date", "format": "%d.%m.%Y"}, "at": {"type": "timestamp", "format": "%m/%d/%Y %H:%M"}}
DAYS = ["22.01.1996", "1.2.1996", "31.02.1996", "k.A.", None]
TIMES = ["01/22/1996 12:00", "1/2/1996 0:30", "13/1/1996 12:00", "never", None]


@pytest.mark.parametrize("ending", ["csv", "jsonl", "xlsx"])
def test_dates_of_files_without_types(ending: str, tmp_path: Path) -> None:
    frame, path = pd.DataFrame({"day": DAYS, "at": TIMES}), tmp_path / f"visits.{ending}"
    if ending == "csv":
        frame.to_csv(path, index=False)
    elif ending == "jsonl":
        frame.to_json(path, orient="records", lines=True)
    else:
        cells = frame.astype(object)
        cells.loc[5] = [datetime.date(1996, 3, 4), datetime.datetime(1996, 3, 4, 5, 6)]  # which are dates already
        cells.to_excel(path, index=False)
    with TrustedParty.open(path, name="visits", columns=COLUMNS, budget=10**6, protection="individual") as party:
        question = "SELECT COUNT(day) AS days, COUNT(at) AS times, MAX(day) AS last FROM visits"
        bounded = {name: {**column, "bounds": ["1990-01-01", "2000-01-01"]} for name, column in COLUMNS.items()}
        report = party.datasets["visits"].backend.check()
    assert [column.unreadable for column in report.columns] == [2, 2]
    with TrustedParty.open(path, name="visits", columns=bounded, budget=10**6, protection="individual") as party:
        (row,) = party.query(question, epsilon=10**5).rows
    cells_too = ending == "xlsx"
    assert (row["days"], row["times"]) == (2 + cells_too, 2 + cells_too)
    assert row["last"] == datetime.date(1996, 3, 4) if cells_too else datetime.date(1996, 2, 1)


def test_where_there_are_types_a_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "visits.parquet"
    parquet.write_table(pa.table({"day": [datetime.date(1996, 1, 22)], "at": ["01/22/1996 12:00"]}), path)
    for name in COLUMNS:
        with pytest.raises(SourceError, match=f"column '{name}' declares a format"):
            TrustedParty.open(path, name="visits", columns={name: COLUMNS[name]}, budget=1)


def test_marks_that_may_not_be_declared() -> None:
    for given, told in (
        ({"thousands": "x"}, 'thousands must be one of "."'),
        ({"thousands": 3}, "thousands must be one of"),
        ({"thousands": "."}, "decimal and thousands must differ"),
        ({"decimal": ",", "thousands": ","}, "decimal and thousands must differ"),
    ):
        with pytest.raises(InvalidInput, match=told):
            CsvFormat.declare(given)
    assert CsvFormat.declare({"decimal": ",", "thousands": "."}).thousands == "."
    assert CsvFormat.declare({"thousands": ""}).thousands == ""


def test_what_is_trimmed() -> None:
    characters = [chr(i) for i in range(1, 0x3100) if not 0xD800 <= i < 0xE000]
    trimmed = read([f"{each}1{each}" for each in characters], "trim(field)")
    assert {each for each, text in zip(characters, trimmed, strict=True) if text == "1"} == set(BLANKS)


def test_another_format_is_another_question(tmp_path: Path) -> None:
    """An answer that was stored belongs to what the dates were read as."""
    path = tmp_path / "days.csv"
    path.write_text("day,n\n" + "01/02/2024,1\n" * 50)
    answers = []
    for format in ("%d/%m/%Y", "%m/%d/%Y", "%d/%m/%Y"):
        columns = {"day": {"type": "date", "format": format, "bounds": ["2024-01-01", "2024-12-31"]}}
        ledger = f"sqlite:///{tmp_path / 'ledger.db'}"
        with TrustedParty.open(path, name="days", columns=columns, budget=10**6, ledger=ledger) as party:
            answer = party.query("SELECT MEDIAN(day) AS day FROM days", epsilon=10**4)
            answers.append((str(answer.rows[0]["day"])[:10], answer.stored))
    assert answers == [("2024-02-01", False), ("2024-01-02", False), ("2024-02-01", True)]

"""Columns proposed from a sample: what is proposed, what never is, and that it can be declared as it stands."""

from __future__ import annotations

import re
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as parquet
import pyreadstat
import pytest

import idios
from idios.data.formats.text_proposals import RARE
from idios.errors import InvalidInput
from idios.party import TrustedParty

SIZE = 2000
RANDOM = np.random.default_rng(19)


def draw(*values: Any, rare: tuple[Any, ...] = ()) -> list[Any]:
    """Values that repeat, and others that occur once each."""
    drawn = [values[i] for i in RANDOM.integers(0, len(values), SIZE - len(rare))]
    return [*drawn, *rare]


COLUMNS: dict[str, tuple[list[Any], dict[str, Any] | None]] = {
    "sex": (draw(1, 2, 9), {"values": [1, 2], "missing": [9]}),
    "status": (draw(1, 2, 3, 4, 97, 98, 99), {"values": [1, 2, 3, 4], "missing": [97, 98, 99]}),
    "rating": (draw(*range(1, 10)), {"values": [*range(1, 10)]}),
    "year": (draw(2024, 2025), {"values": [2024, 2025]}),
    "children": (draw(0, 1, 2, 3), {"type": "integer"}),
    "age": (draw(*range(16, 95), *[99] * 8), {"type": "integer", "missing": [99]}),
    "very_old_age": (draw(*range(16, 100)), {"type": "integer"}),
    "income": (
        [*RANDOM.lognormal(10, 1, SIZE - 100).tolist(), *[999999.0] * 100],
        {"type": "number", "missing": [999999]},
    ),
    "balance": (draw(*range(-500, 500)), {"type": "integer"}),
    "answered": (draw(*range(300), *[-1] * 30), {"type": "integer", "missing": [-1]}),
    "region": (draw("north", "south", rare=("Ada's house",)), {"values": ["north", "south"]}),
    "code": (draw(*range(5), rare=(7,)), {"values": [*range(5)]}),
    "name": ([f"person {i}" for i in range(SIZE)], None),
    "person_id": ([*range(SIZE)], None),
    "weight": (list(RANDOM.gamma(4, 100, SIZE)), {"type": "number"}),
    "whole": ([float(i) for i in RANDOM.integers(0, 10**6, SIZE)], {"type": "integer"}),
    "nothing": ([None] * SIZE, None),
}
FRAME = {name: values for name, (values, _) in COLUMNS.items() if name != "nothing"}
EXPECTED = {name: table for name, (_, table) in COLUMNS.items() if name in FRAME and table is not None}


def test_a_frame() -> None:
    proposed = idios.schema(FRAME)
    assert dict(proposed) == EXPECTED
    assert proposed.records == SIZE
    assert set(proposed.notes) >= {"name", "person_id", "weight", "year", "region"}
    assert "person 1" not in repr(proposed)
    assert "Ada" not in repr(proposed)
    assert f"Proposed from {SIZE:,} records, for their controller to confirm" in repr(proposed)


def test_what_is_proposed_can_be_declared() -> None:
    with TrustedParty.open(FRAME, name="survey", columns=idios.schema(FRAME), budget=10**6) as party:
        counted = party.query("SELECT sex, COUNT(*) AS n FROM survey GROUP BY sex", epsilon=1000)
        assert [(row["sex"], row["n"]) for row in counted.rows] == [
            (str(code), FRAME["sex"].count(code)) for code in (1, 2)
        ]


@pytest.mark.parametrize("kind", ["parquet", "csv", "semicolons"])
def test_a_file(kind: str, tmp_path: Path) -> None:
    frame = pd.DataFrame(FRAME)
    path = tmp_path / f"survey.{'parquet' if kind == 'parquet' else 'csv'}"
    if kind == "parquet":
        parquet.write_table(pa.Table.from_pandas(frame), path)
    elif kind == "csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_csv(path, index=False, sep=";", decimal=",", encoding="latin-1")
    # text with a decimal mark is no whole number to the reader of a csv file
    assert dict(idios.schema(path)) == EXPECTED | ({} if kind == "parquet" else {"whole": {"type": "number"}})


def test_a_csv_file_is_read_as_it_was_proposed(tmp_path: Path) -> None:
    path = tmp_path / "strom.csv"
    frame = pd.DataFrame({"Größe": draw("klein", "groß"), "Wert": RANDOM.gamma(4, 100, SIZE).round(2)})
    frame.to_csv(path, index=False, sep=";", decimal=",", encoding="latin-1")
    columns = idios.schema(path)
    with TrustedParty.open(path, name="strom", columns=columns, budget=10**6) as party:
        answer = party.query('SELECT "Größe", COUNT("Wert") AS n FROM strom GROUP BY "Größe"', epsilon=1000)
    assert [(row["Größe"], row["n"]) for row in answer.rows] == [
        (size, int((frame["Größe"] == size).sum())) for size in ("groß", "klein")
    ]


def test_every_value_reads_as_it_was_proposed(tmp_path: Path) -> None:
    """Whatever text looks like: numbers with a mark, codes with zeros before them, thousands."""
    path = tmp_path / "texts.csv"
    texts = {
        "marked": draw("1.0", "2.0"),
        "income": [f"{i}.0" for i in range(17000, 17000 + SIZE)],
        "county": draw("01", "02", "10"),
        "zip": [f"{i:05}" for i in range(SIZE)],
        "three": draw("4.038", "17.250", "1.001"),  # as other columns show a decimal point
        "truth": draw("true", "false"),
    }
    pd.DataFrame(texts).to_csv(path, index=False)
    proposed = idios.schema(path)
    assert dict(proposed) == {
        "marked": {"type": "number"},
        "income": {"type": "number"},
        "county": {"values": ["01", "02", "10"]},
        "three": {"type": "number"},
        "truth": {"values": ["false", "true"]},
    }
    assert "key" in proposed.notes["zip"]
    with TrustedParty.open(path, name="texts", columns=proposed, budget=10**6) as party:
        counts = ", ".join(f"COUNT({name})" for name in proposed)
        (row,) = party.query(f"SELECT {counts} FROM texts", epsilon=10**5).rows
    assert set(row.values()) == {SIZE}
    assert idios.schema({"truth": [True, False] * 100})["truth"] == {"type": "boolean"}


@pytest.mark.parametrize(
    ("mark", "delimiter", "beside", "proposed"),
    [
        (".", ";", "x", None),
        (",", ",", "x", None),
        (".", ",", "x", None),
        (",", ";", "x", None),
        (".", ";", "4,5", {"type": "integer"}),
        (",", ",", "4.5", {"type": "integer"}),
        (".", ",", "4.5", None),  # which end in 0 as amounts do
        (",", ";", "4,5", None),
    ],
)
def test_thousands_are_never_taken_for_decimals(
    mark: str, delimiter: str, beside: str, proposed: dict[str, str] | None, tmp_path: Path
) -> None:
    """Where nothing decides, a column is left out, with the line for either; else all of it can be read."""
    path = tmp_path / "amounts.csv"
    amounts = [f"{10 + i}{mark}{i % 10}00" for i in range(200)]
    columns = {"n": [*range(200)], "amount": [*amounts, "k.A."][-200:], "beside": [beside] * 200}
    pd.DataFrame(columns).to_csv(path, index=False, sep=delimiter)
    found = idios.schema(path)
    assert found.get("amount") == proposed
    assert found.csv_format is not None
    other = "," if mark == "." else "."
    if proposed is None:
        either = (
            f'type = "integer", and decimal = "{other}", thousands = "{mark}"',
            f'"number", and decimal = "{mark}"',
        )
        assert all(line in found.notes["amount"] and line in found.advice["amount"] for line in either)
        assert found.offers["amount"]["type"] == ("number" if found.csv_format.decimal == mark else "integer")
    else:
        assert found.csv_format.thousands == (mark if proposed["type"] == "integer" else "")
        with TrustedParty.open(path, columns=found, budget=10**6) as party:
            (report,) = [each for each in party.datasets["amounts"].backend.check().columns if each.name == "amount"]
        assert (report.missing, report.unreadable) == (0, 1)


def test_numbers_that_are_not_written_as_one(tmp_path: Path) -> None:
    """Rounded thousands beside decimals, other marks than elsewhere, units and signs: told, and never declared."""
    path = tmp_path / "odd.csv"
    texts = {
        "weight": [f"{1 + i / 100:.2f}" for i in range(SIZE)],
        "income": [f"{1 + i % 80}.{i % 4 * 25:02}0" for i in range(SIZE)],
        "length": [f"{1 + i % 80}.{i % 1000:03}" for i in range(SIZE)],
        "wage": [f"{1 + i % 80}.{i % 1000:03},67" for i in range(SIZE)],
        "euros": [f"{1 + i} 000 €" for i in range(SIZE)],
        "share": [f"{i / 10}%" for i in range(SIZE)],
        "profit": [f"({i})" if i % 7 else str(i) for i in range(SIZE)],
        "loss": [f"−{i}" for i in range(SIZE)],
        "flagged": [f"{i}e" if i % 7 else str(i) for i in range(SIZE)],
        "zip": [f"{1000 + i} {chr(65 + i % 26)}{chr(65 + i % 25)}" for i in range(SIZE)],
    }
    pd.DataFrame(texts).to_csv(path, index=False, sep=";")
    proposed = idios.schema(path)
    assert dict(proposed) == {"weight": {"type": "number"}, "length": {"type": "number"}}
    assert 'another column has "." as its decimal mark' in proposed.notes["income"]
    assert 'declare decimal = ",", thousands = "." of csv' in proposed.notes["wage"]
    for name in ("euros", "share", "profit", "loss", "flagged"):
        assert proposed.notes[name].startswith("they look like numbers with a unit or a sign"), name
    assert proposed.notes["zip"].startswith("text with more than")


def test_dotted_codes_truths_and_days(tmp_path: Path) -> None:
    path = tmp_path / "codes.csv"
    days = [date(1990, 1, 1) + timedelta(i) for i in range(SIZE)]
    texts = {
        "nuts": draw("1.1", "1.2", "1.10", "2.1"),
        "height": draw("1", "1.0", "1.5", "2.00"),
        "price": draw(*(f"{i / 100:g}" for i in range(1, 300))),
        "mixed": draw(*(f"{i / 100:g}" for i in range(1, 300)), "1.50", "2.50"),
        "employed": draw("TRUE", "FALSE", "NA"),
        "married": draw("T", "F"),
        "day": [f"{day:%Y%m%d}" for day in days],
        "number": [str(20240100 + i) for i in range(SIZE)],
        "flow": draw(":", *map(str, range(500))),
    }
    pd.DataFrame(texts).to_csv(path, index=False)
    proposed = idios.schema(path)
    assert proposed["nuts"] == {"values": ["1.1", "1.10", "1.2", "2.1"]}
    for name in ("height", "price", "mixed"):
        assert proposed[name] == {"type": "number"}
        assert ("1.1 and 1.10" in proposed.notes.get(name, "")) == (name == "mixed")
    assert proposed["employed"] == {"values": ["FALSE", "TRUE"]}
    assert proposed["married"] == {"values": ["F", "T"]}
    for name in ("day", "number"):
        assert proposed[name] == {"type": "integer"}
        assert ('type = "date", format = "%Y%m%d"' in proposed.advice.get(name, "")) == (name == "day")
    assert proposed["flow"] == {"type": "integer"}
    assert proposed.csv_format is not None
    assert proposed.csv_format.nulls == (":", "NA")
    proposed["day"] = {"type": "date", "format": "%Y%m%d"}
    with TrustedParty.open(path, name="codes", columns=proposed, budget=10**6) as party:
        counted = party.query("SELECT nuts, COUNT(*) AS n, COUNT(day) AS m FROM codes GROUP BY nuts", epsilon=10**4)
        assert [row["n"] for row in counted.rows] == [texts["nuts"].count(code) for code in sorted({*texts["nuts"]})]
        assert sum(row["m"] for row in counted.rows) == SIZE
    assert "convert them" in idios.schema({"day": [int(day) for day in texts["day"]]}).notes["day"]


def test_what_a_frame_holds_as_text() -> None:
    days = pd.date_range("1990-01-01", periods=SIZE)
    proposed = idios.schema(
        {
            "seen": [day.strftime("%d.%m.%Y") for day in days],
            "paid": [f"{i // 10},{i % 10}00.50" for i in range(10, SIZE + 10)],
            "zip_code": [f"{i:05}" for i in range(SIZE)],
        }
    )
    assert dict(proposed) == {}
    assert proposed.notes["seen"] == (
        "dates written as text, left out: convert them, or open the csv file that they come from"
    )
    assert proposed.notes["paid"].startswith("numbers written as text, left out: convert them")
    assert "written as text" not in proposed.notes["zip_code"]


def test_labels(tmp_path: Path) -> None:
    path = tmp_path / "survey.sav"
    frame = pd.DataFrame(
        {
            "sex": draw(1.0, 2.0, 9.0),
            "hours": draw(*map(float, range(60)), 99.0),
            "part": draw(*map(float, range(1, 7))),
        }
    )
    labels = {
        "sex": {1: "male", 2: "female", 9: "No answer"},
        "hours": {99: "refused"},
        "part": {1: "one", 2: "one", 3: "6", 4: "four", 5: "five", 6: "six"},
    }
    pyreadstat.write_sav(frame, path, variable_value_labels=labels)
    assert dict(idios.schema(path)) == {
        "sex": {"values": {"1": "male", "2": "female"}, "missing": [9]},
        "hours": {"type": "integer", "missing": [99]},
        "part": {"values": {"1": "1 one", "2": "2 one", "3": "3 6", "4": "four", "5": "five", "6": "six"}},
    }
    with TrustedParty.open(path, name="survey", columns=idios.schema(path), budget=10**6) as party:
        answer = party.query("SELECT sex, COUNT(*) FROM survey WHERE part = '3 6' GROUP BY sex", epsilon=10)
        assert [row["sex"] for row in answer.rows] == ["male", "female"]


def test_labels_of_real_answers_are_no_missing_values(tmp_path: Path) -> None:
    """A label means no answer if all of it says so, and one that may be an answer only with a code that does."""
    labels = {
        "asylum": {1: "granted", 2: "refused", 3: "pending"},
        "father": {1: "Father known", 2: "Father unknown", 3: "Missing one parent", 4: "No answer needed"},
        "race": {1: "White", 2: "Black", 3: "Other, don't know"},
        "asked": {1: "yes", 2: "no", 3: "[Don't know]", 8: "REFUSED", 9: "Missing"},
        "below": {1: "yes", 2: "no", -1: "unknown", 0: "not applicable / refused"},
        "beyond": {8: "missing", 98: "many", 99: "Refused!\nOr unknown"},
    }
    frame = pd.DataFrame({name: draw(*map(float, codes)) for name, codes in labels.items()})
    path = tmp_path / "labels.sav"
    pyreadstat.write_sav(frame, path, variable_value_labels=labels)
    proposed = idios.schema(path)
    missing = {name: table.get("missing") for name, table in proposed.items()}
    assert missing == {
        "asylum": None,
        "father": None,
        "race": None,
        "asked": [3, 8, 9],
        "below": [-1, 0],
        "beyond": [99],
    }
    assert proposed["asylum"]["values"] == {"1": "granted", "2": "refused", "3": "pending"}
    assert proposed.notes["asylum"].startswith('2 "refused" may mean that there is no answer')
    assert proposed.notes["asked"] == '3 is "[Don\'t know]", 8 is "REFUSED", 9 is "Missing"'
    assert {"father", "race"}.isdisjoint(proposed.notes)
    assert proposed.advice["beyond"].startswith('99 is "Refused!\nOr unknown"; 8 "missing" may mean')


@pytest.mark.parametrize("times", [RARE - 1, RARE])
def test_a_rare_value_is_never_proposed(times: int) -> None:
    values = {
        "town": ["somewhere"] * 1000 + ["a hamlet"] * times,
        "part": [1] * 1000 + [2] * times,
        "odd": [*range(1000), *[9999] * times],
    }
    written = str(dict(idios.schema(values)))
    assert ("a hamlet" in written) == (times == RARE)
    assert ("[1, 2]" in written) == (times == RARE)
    assert ("9999" in written) == (times == RARE)


def test_nothing_public_is_left_out_for_being_rare() -> None:
    products = {
        "product_id": [f"{i:02}" for i in range(40)],
        "kind": ["food"] * 30 + ["toy"] * 9 + ["one of its kind"],
        "shelf": [1] * 39 + [2],
    }
    proposed = idios.schema(products, public=True)
    assert proposed["kind"] == {"values": ["food", "one of its kind", "toy"]}
    assert proposed["shelf"] == {"values": [1, 2]}
    assert proposed["product_id"]["values"] == products["product_id"]
    assert not proposed.notes
    private = str(dict(idios.schema(products)))
    assert "one of its kind" not in private
    assert "07" not in private
    many = {"kind": ["food", "toy"] * 50 + ["one of its kind"]}
    assert "a value that is not listed reads as missing" in idios.schema(many, public=True, rows=50).notes["kind"]
    assert not idios.schema(many, public=True).notes


def test_what_has_no_records() -> None:
    assert dict(idios.schema(pa.table({"text": pa.array([], pa.string()), "n": pa.array([], pa.int64())}))) == {
        "n": {"type": "integer"}
    }
    with pytest.raises(InvalidInput, match="csv says how"):
        idios.schema("postgresql://host/base?table=t", csv={"header": True})


def test_a_notebook_shows_a_table() -> None:
    proposed = idios.schema(FRAME | {"<b>": FRAME["sex"]})
    shown = proposed._repr_html_()
    assert shown.count("<tr>") == 1 + len(FRAME) + 1
    assert '<td style="text-align: left">category: 1, 2, missing: 9</td>' in shown
    assert ">left out</td>" in shown
    assert "&lt;b&gt;" in shown
    assert "<b>" not in shown
    assert f"<p>Proposed from {SIZE:,} records" in shown
    proposed["age"], proposed["old"] = "integer", {"expression": "age > 65"}
    assert "age: integer" in repr(proposed), "it may be changed as a declaration is written"
    assert "derived: age &gt; 65" in proposed._repr_html_()


def test_words_among_numbers_read_as_missing(tmp_path: Path) -> None:
    """Rare ones are counted and never shown; the others are null strings of the file."""
    path = tmp_path / "survey.csv"
    ages = [*draw(*range(18, 90)), *["k.A."] * 40, *["x"] * RARE, *["Ada refused"] * (RARE - 1)]
    size = len(ages)
    pd.DataFrame({"age": ages, "region": ["north", "south"] * (size // 2) + ["north"] * (size % 2)}).to_csv(
        path, index=False
    )
    proposed = idios.schema(path)
    assert proposed["age"] == {"type": "integer"}
    assert proposed.csv_format is not None
    assert proposed.csv_format.nulls == ("k.A.", "x")
    assert proposed.notes["age"] == f"{RARE - 1} values that are no numbers read as missing; idios check counts them"
    assert not re.search("[0-9]", proposed.advice["age"])
    assert "Ada" not in repr(proposed) + str(proposed.advice)
    with TrustedParty.open(path, name="survey", columns=proposed, budget=10**6) as party:
        (report,) = [each for each in party.datasets["survey"].backend.check().columns if each.name == "age"]
    assert (report.missing, report.unreadable) == (40 + RARE, RARE - 1)


@pytest.mark.parametrize("ending", ["csv", "jsonl", "xlsx"])
def test_dates_are_proposed_with_their_format(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"visits.{ending}"
    days = [pd.Timestamp("1990-01-01") + pd.Timedelta(days=int(day)) for day in RANDOM.integers(0, 9000, SIZE)]
    frame = pd.DataFrame(
        {
            "born": [day.strftime("%d.%m.%Y") for day in days[:-1]] + ["unknown"],
            "seen": [day.strftime("%m/%d/%Y %H:%M") for day in days],
            "paid": draw("01/02/2024", "03/04/2024"),
            "old": draw("1", "2"),
        }
    )
    if ending == "csv":
        frame.to_csv(path, index=False)
    elif ending == "jsonl":
        frame.to_json(path, orient="records", lines=True)
    else:
        frame["born"] = [day if i % 2 else text for i, (day, text) in enumerate(zip(days, frame["born"], strict=True))]
        frame.to_excel(path, index=False)
    proposed = idios.schema(path)
    assert proposed["born"] == {"type": "date", "format": "%d.%m.%Y"}
    assert proposed["seen"] == {"type": "timestamp", "format": "%m/%d/%Y %H:%M"}
    assert "born: date as %d.%m.%Y" in repr(proposed)
    assert "paid" not in proposed
    assert 'format = "%d/%m/%Y" or format = "%m/%d/%Y"' in proposed.notes["paid"]
    with TrustedParty.open(path, name="visits", columns=proposed, budget=10**6) as party:
        (row,) = party.query("SELECT COUNT(born) AS born, COUNT(seen) AS seen FROM visits", epsilon=10**5).rows
    # cells of Excel that are dates are dates, and the last one of these is where a word stands in other files
    assert (row["born"], row["seen"]) == (SIZE if ending == "xlsx" else SIZE - 1, SIZE)


def test_text_is_offered_or_doubted() -> None:
    towns = [f"town {i}" for i in RANDOM.integers(0, 700, SIZE)]
    proposed = idios.schema({"town": towns, "voted": draw("yes", "no", "don't know"), "applied": draw("keine Angabe")})
    assert proposed["voted"] == {"values": ["don't know", "no", "yes"]}
    assert proposed.advice["voted"].startswith('"don\'t know" may mean that there is no answer')
    assert proposed["applied"] == {"values": ["keine Angabe"]}
    assert proposed.notes["town"] == "text with more than 500 values, left out"
    assert proposed.offers["town"] == {"values": "codes/town.csv"}
    assert proposed.advice["town"].startswith("text with more than 60 values: list them in a file")


def test_values_that_mean_no_answer() -> None:
    """As surveys write them: the whole tail is missing, or pointed out; the last value is shown in any case."""
    proposed = idios.schema(
        {
            "trust": draw(*range(11), 77, 88, 99),
            "agree": draw(*range(1, 6), 8, 9),
            "score": draw(*range(1, 6), 8, 9, 99),
            "party": draw(*range(1, 6), 8),
            "size": draw(*range(1, 6), 8),
            "scale": draw(*range(1, 10)),
            "hours": draw(*range(100)),
            "state": draw(*(f"state {i:02}" for i in range(56))),
        }
    )
    assert proposed["trust"] == {"values": [*range(11)], "missing": [77, 88, 99]}
    assert proposed["agree"] == {"values": [*range(1, 6)], "missing": [8, 9]}
    assert proposed["score"] == {"type": "integer", "missing": [8, 9, 99]}
    assert proposed["party"] == {"values": [1, 2, 3, 4, 5, 8]}
    assert proposed.advice["party"] == "8 may mean no answer: if so, missing = [8], and not in values"
    assert proposed["size"] == {"type": "integer"}
    assert proposed.notes["size"] == proposed.advice["size"] == "8 may mean no answer: if so, missing = [8]"
    assert proposed["scale"] == {"values": [*range(1, 10)]}
    assert proposed["hours"] == {"type": "integer"}
    assert proposed["state"]["values"][-1] == "state 55"
    assert set(proposed.notes) == {"party", "size"}
    assert "agree: category: 1, 2, 3, 4, 5, missing: 8, 9\n" in repr(proposed)
    assert "scale: category: 1, 2, 3, 4, 5, …, 9 (9 values)\n" in repr(proposed)


def test_a_key_whose_values_repeat_may_be_a_unit() -> None:
    frame = {
        "customer_id": [*RANDOM.integers(0, 500, SIZE)],
        "order_id": [*range(SIZE)],
        "shop_id": draw(1, 2, 3),
        "age": draw(*range(18, 90)),
    }
    told = {name for name, note in idios.schema(frame).notes.items() if f'until unit = "{name}" is declared' in note}
    assert told == {"customer_id"}

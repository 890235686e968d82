"""Columns proposed from a sample: what is proposed, what never is, and that it can be declared as it stands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as parquet
import pyreadstat
import pytest

import idios
from idios.errors import InvalidInput
from idios.party import TrustedParty
from idios.proposals import RARE

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
        "thousands": draw("4.038", "17.250", "1.001"),
        "truth": draw("true", "false"),
    }
    pd.DataFrame(texts).to_csv(path, index=False)
    proposed = idios.schema(path)
    assert dict(proposed) == {
        "marked": {"type": "number"},
        "income": {"type": "number"},
        "county": {"values": ["01", "02", "10"]},
        "thousands": {"type": "number"},
        "truth": {"type": "boolean"},
    }
    assert "divides thousands" in proposed.notes["thousands"]
    assert "key" in proposed.notes["zip"]
    with TrustedParty.open(path, name="texts", columns=proposed, budget=10**6) as party:
        counts = ", ".join(f"COUNT({name})" for name in proposed)
        (row,) = party.query(f"SELECT {counts} FROM texts", epsilon=10**5).rows
    assert set(row.values()) == {SIZE}
    assert idios.schema({"truth": [True, False] * 100})["truth"] == {"type": "boolean"}


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


def test_what_has_no_records() -> None:
    assert dict(idios.schema(pa.table({"text": pa.array([], pa.string()), "n": pa.array([], pa.int64())}))) == {
        "n": {"type": "integer"}
    }
    for elsewhere in ("postgresql://host/base?table=t", "spark:people"):
        with pytest.raises(InvalidInput, match="of a frame or a file"):
            idios.schema(elsewhere)

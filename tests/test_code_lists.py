"""Codes: lists of them in files, and questions about columns of them."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from idios.config import read_configuration
from idios.datasets import read_code_list
from idios.errors import InvalidInput, QuestionRefused
from idios.party import TrustedParty

SEXES = {1: "male", 2: "female"}
TABLE = {"sex": np.array([1, 2, 2, 9, np.nan] * 40), "wave": np.array([1, 2] * 100), "age": np.arange(200)}
COLUMNS = {
    "sex": {"values": SEXES},
    "wave": {"values": [1, 2]},
    "age": "integer",
    "by_number": {"expression": "CASE WHEN sex = 2 THEN 'w' ELSE 'o' END"},
    "by_label": {"expression": "CASE WHEN sex IN ('female') THEN 'w' ELSE 'o' END"},
}


def open_party() -> TrustedParty:
    return TrustedParty.open(TABLE, name="survey", columns=COLUMNS, budget=10**9)


def test_answers_show_labels() -> None:
    with open_party() as party:
        counted = party.query("SELECT sex, wave, COUNT(*) AS n FROM survey GROUP BY sex, wave", epsilon=1000)
        assert [(row["sex"], row["wave"], row["n"]) for row in counted.rows] == [
            ("male", "1", 20),
            ("male", "2", 20),
            ("female", "1", 40),
            ("female", "2", 40),
        ]
        assert party.query("SELECT MODE(sex) AS m FROM survey", epsilon=1000).rows == ({"m": "female"},)
        assert "male" in str(party.inspect("SELECT MODE(sex) FROM survey", epsilon=1))


@pytest.mark.parametrize("condition", ["sex = 2", "2 = sex", "sex = '2'", "sex = 'female'", "sex IN (2)", "sex = 2.0"])
def test_a_code_is_a_number_a_text_and_a_label(condition: str) -> None:
    with open_party() as party:
        first = party.query("SELECT COUNT(*) AS n FROM survey WHERE sex LIKE 'fem%'", epsilon=1000)
        again = party.query(f"SELECT COUNT(*) AS n FROM survey WHERE {condition}", epsilon=1000)
    assert first.rows == again.rows == ({"n": 80},)
    assert again.stored, "all of them are one question"


def test_derived_columns_name_codes_likewise() -> None:
    with open_party() as party:
        for name in ("by_number", "by_label"):
            counted = party.query(f"SELECT {name}, COUNT(*) AS n FROM survey GROUP BY {name}", epsilon=1000)
            present = {row[name]: row["n"] for row in counted.rows if row["n"]}
            assert present == {"w": 80, "o": 120}


ASKED = "SELECT sex, COUNT(*) AS n FROM survey GROUP BY sex"


@pytest.mark.parametrize("named", ["2", "'2'", "'female'", "2.0"])
def test_conditions_on_groups_name_codes_likewise(named: str) -> None:
    with open_party() as party:
        for asked in (
            f"{ASKED} HAVING sex = {named}",
            f"{ASKED} HAVING sex NOT IN (1) AND {named} = sex",
            f"SELECT * FROM ({ASKED}) WHERE sex IN ({named})",
            f"SELECT s AS sex, MAX(n) AS n FROM (SELECT sex AS s, n FROM ({ASKED})) GROUP BY s HAVING s = {named}",
            f"SELECT MAX(sex) AS sex, MAX(n) AS n FROM ({ASKED} HAVING sex = 2) HAVING MAX(sex) = {named}",
            f"SELECT sex, CASE sex WHEN {named} THEN n END AS n FROM ({ASKED}) WHERE sex <> 1",
        ):
            assert party.query(asked, epsilon=1000).rows == ({"sex": "female", "n": 80},), asked
        most = party.query(f"SELECT MODE(sex) AS m FROM survey HAVING MODE(sex) = {named}", epsilon=1000)
        assert most.rows == ({"m": "female"},)


@pytest.mark.parametrize(
    ("condition", "message", "place"),
    [
        ("WHERE sex = 'femal'", "'femal' is no declared value of sex. Did you mean 'female'?", "'femal'"),
        ("WHERE sex <> 3", "3 is no declared value of sex. Declared: 1 male, 2 female", "3"),
        ("WHERE sex NOT IN (1, '02')", "'02' is no declared value of sex. Declared: 1 male", "'02'"),
        ("WHERE wave IN (1, 7)", "7 is no declared value of wave. Declared: '1', '2'", "7"),
        ("WHERE padded = 'north'", "Did you mean 'north ', with a blank at its end or beginning?", "'north'"),
        ("WHERE sex = ' male'", "Did you mean 'male', without a blank at its end or beginning?", "' male'"),
        ("WHERE answer = 9", "9 is declared to mean that answer is missing: write IS NULL", "9"),
        ("GROUP BY sex HAVING sex = 'mal'", "Did you mean 'male'?", "'mal'"),
        ("GROUP BY sex HAVING COUNT(*) > 3 OR 4 <> sex", "4 is no declared value of sex", "4"),
        ("HAVING MODE(sex) <> 'Male '", "Did you mean 'male', without a blank", "'Male '"),
        ("GROUP BY sex) WHERE sex IN ('male', 'fmale')", "Did you mean 'female'?", "'fmale'"),
        ("GROUP BY sex) WHERE sex = DATE '1970-01-03'", "sex is a category: compare it with a string", ""),
    ],
)
def test_what_names_no_value_is_refused_unpaid(condition: str, message: str, place: str) -> None:
    table = {**TABLE, "answer": TABLE["sex"], "padded": TABLE["sex"]}
    columns = {**COLUMNS, "answer": {"values": SEXES, "missing": [9]}, "padded": {"values": ["north ", "south "]}}
    sql = f"{'SELECT * FROM (' if ')' in condition[:14] else ''}SELECT COUNT(*) FROM survey {condition}"
    with TrustedParty.open(table, name="survey", columns=columns, budget=9) as party:
        with pytest.raises(QuestionRefused) as refused:
            party.query(sql, epsilon=1)
        assert message in str(refused.value)
        assert sql[refused.value.offset :].startswith(place)
        assert party.ledger.balance("survey").epsilon.spent == 0


@pytest.mark.parametrize("codes", [["01", "1", "2"], ["1", "01", "2"]])
def test_a_number_names_the_code_that_is_written_like_it(codes: list[str]) -> None:
    table = {"nace": ["01"] * 30 + ["1"] * 50 + ["2"] * 20}
    with TrustedParty.open(table, name="firms", columns={"nace": {"values": codes}}, budget=9000) as party:
        for named, count in (("01", 30), ("1", 50), ("0 + 1", 50), ("2.0", 20), ("02", 20), ("'01'", 30)):
            asked = party.query(f"SELECT COUNT(*) FROM firms WHERE nace = {named}", epsilon=1000)
            assert asked.value == count, named
        for condition in ("WHERE nace = 1.0", "WHERE nace IN (2, 001)", "GROUP BY nace HAVING nace = 1.0"):
            written = condition.split()[-1].strip("()")
            told = f"{written} could be several values of nace: write one of '{codes[0]}', '{codes[1]}' (line 1"
            with pytest.raises(QuestionRefused, match=re.escape(told)):
                party.query(f"SELECT COUNT(*) FROM firms {condition}", epsilon=1)


def test_a_derived_column_that_names_no_value_is_refused() -> None:
    for formula, message in (
        ("CASE WHEN sex = 7 THEN 'x' ELSE 'o' END", "7 is no declared value of sex"),
        ("CASE WHEN by_label = 'W' THEN 1 ELSE 0 END", "Did you mean 'w'?"),
    ):
        columns = {**COLUMNS, "wrong": {"expression": formula}}
        with pytest.raises(InvalidInput, match=re.escape(message)):
            TrustedParty.open(TABLE, name="survey", columns=columns, budget=9)


def test_what_is_no_code_is_told() -> None:
    columns = {"sex": "integer", "region": {"values": ["north", "south"]}}
    with TrustedParty.open({"sex": [1, 2], "region": ["north", "south"]}, columns=columns, budget=9) as party:
        with pytest.raises(QuestionRefused, match=r"declared by their controller: sex = \{ values = \[1, 2\] \}"):
            party.quote("SELECT sex, COUNT(*) FROM data GROUP BY sex", epsilon=1)
        with pytest.raises(QuestionRefused, match="region is a category: compare it with a string"):
            party.quote("SELECT COUNT(*) FROM data WHERE region = 1", epsilon=1)
        with pytest.raises(QuestionRefused, match="the column 'age' is not declared"):
            party.quote("SELECT MEDIAN(age) FROM data", epsilon=1)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({1: "a", 2: "a"}, "labels of a category column must differ"),
        ({1: "2", 2: "b"}, "'2' is the label of '1', and another value"),
        ({}, "at least one declared value"),
        ("north", "there is no code list 'north'"),
        (7, r"values = \{ 1 = \"male\""),
    ],
)
def test_labels_name_one_value(values: object, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        TrustedParty.open({"x": [1]}, columns={"x": {"values": values}}, budget=1)


@pytest.mark.parametrize(
    ("written", "codes"),
    [
        ("code,label\n1,male\n2,female\n", {"1": "male", "2": "female"}),
        ("1;north, far\r\n2;south\r\n", {"1": "north, far", "2": "south"}),
        ("\ufeffCode\tName\n01\tä\n\n", {"01": "ä"}),
        ("a\nb\n", ["a", "b"]),
    ],
)
def test_code_lists(written: str, codes: object, tmp_path: Path) -> None:
    path = tmp_path / "codes.csv"
    path.write_bytes(written.encode())
    assert read_code_list(path) == codes


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (b"1,a\n1,b\n", "has a code twice"),
        (b"1,a,x\n", "one column, the codes, or two"),
        (b"1,a\n2\n", "one column, the codes, or two"),
        (b"", "one column, the codes, or two"),
        (b"1,\xff\n", "no csv file in UTF-8"),
        (b'1,"a\n', "no csv file in UTF-8"),
    ],
)
def test_what_is_no_code_list(written: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "codes.csv"
    path.write_bytes(written)
    with pytest.raises(InvalidInput, match=message):
        read_code_list(path)


def test_a_code_list_lies_beside_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "sex.csv").write_text("code,label\n1,male\n2,female\n")
    (tmp_path / "survey.csv").write_text("sex\n1\n2\n2\n")
    config = tmp_path / "idios.toml"
    config.write_text(
        '[datasets.survey]\nsource = "survey.csv"\nbudget = 1000\n[datasets.survey.columns]\n'
        'sex = { values = "sex.csv" }\n'
    )
    read_configuration(config)
    with TrustedParty.from_config(config) as party:
        rows = party.query("SELECT sex, COUNT(*) AS n FROM survey GROUP BY sex", epsilon=500).rows
    assert [(row["sex"], row["n"]) for row in rows] == [("male", 1), ("female", 2)]


def test_equal_codes_with_other_labels_are_told_apart() -> None:
    """Whatever is remembered of one data set, the labels of another are its own."""
    for labels in (SEXES, {1: "männlich", 2: "weiblich"}):
        columns = {"sex": {"values": labels}, "old": {"expression": "CASE WHEN sex = 1 THEN 'a' ELSE 'b' END"}}
        with TrustedParty.open({"sex": [1, 2] * 50}, name="survey", columns=columns, budget=10**6) as party:
            asked = "SELECT sex, old, COUNT(*) FROM survey GROUP BY sex, old"
            assert {row["sex"] for row in party.query(asked, epsilon=1000).rows} == set(labels.values())
            assert party.query("SELECT MODE(sex) AS m FROM survey", epsilon=1000).rows[0]["m"] in labels.values()

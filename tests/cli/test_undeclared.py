"""Columns that a file has and its declaration leaves out."""

from __future__ import annotations

from pathlib import Path

import pytest

from idios.errors import QuestionRefused
from idios.party import TrustedParty
from tests.cli.runner import run
from tests.cli.test_shell import pipe

ASKED = "SELECT region, COUNT(*) FROM people GROUP BY region"
LINE = 'region = { values = ["…"] } under [datasets.people.columns]'


def test_the_line_that_declares_it_is_told_to_who_holds_the_file(folder: Path) -> None:
    run("init", "people.csv", "--yes", "--no-sample")
    for command in ("query", "quote", "inspect"):
        with pytest.raises(QuestionRefused) as refused:
            run(command, ASKED, "-e", "1")
        assert refused.value.message.startswith("the column 'region' is not declared. people.csv has it")
        assert LINE in refused.value.message
        assert refused.value.position is not None
    code, _, errors = pipe(
        f"{ASKED};", 'SELECT MEDIAN("AGE") FROM people;', "SELECT AVG(pay) FROM people;", options=("-e", "1")
    )
    assert code == 1
    assert LINE in errors
    assert "the column 'AGE' is not declared. Did you mean age?" in errors
    assert "the column 'pay' is not declared. Declared: age, income" in errors


def test_nobody_else_is_told(folder: Path) -> None:
    run("init", "people.csv", "--yes", "--no-sample")
    with TrustedParty.from_config("idios.toml") as party, pytest.raises(QuestionRefused) as refused:
        party.quote(ASKED, 1)
    assert refused.value.message == "the column 'region' is not declared. Declared: age, income"


def test_other_refusals_are_as_they_are(folder: Path) -> None:
    run("init", "people.csv", "--yes", "--no-sample")
    path = folder / "idios.toml"
    path.write_text(
        path.read_text().replace("[datasets.people]", "[datasets.persons]").replace(".people.", ".persons.")
    )
    with pytest.raises(QuestionRefused, match="there is no data set 'people'"):
        run("quote", ASKED, "-e", "1")


def test_the_line_is_by_what_the_question_does(folder: Path) -> None:
    run("init", "people.csv", "--yes", "--no-sample")
    number, date, values = 'type = "number"', 'type = "date"', 'values = ["…"]'
    for asked, line in (
        ("SELECT MEDIAN(region) FROM people", number),
        ("SELECT AVG(p.region) FROM people AS p", number),
        ("SELECT BIN(region, 5), COUNT(*) FROM people GROUP BY 1", number),
        ('SELECT COUNT(*) FROM people WHERE "region" >= -5', number),
        ("SELECT COUNT(*) FROM people WHERE age > 3 AND region BETWEEN 3 AND 4", number),
        ("SELECT COUNT(*) FROM people WHERE region > '2023-06-01'", date),
        ("SELECT COUNT(*) FROM people WHERE region = DATE '2023-06-01'", date),
        ("SELECT COUNT(*) FROM people WHERE region = 3", values),
        ("SELECT COUNT(*) FROM people WHERE region <> 3", values),
        ("SELECT COUNT(*) FROM people WHERE region IN ('a')", values),
        ("SELECT COUNT(region) FROM people", values),
        ("SELECT MODE(region) FROM people", values),
    ):
        with pytest.raises(QuestionRefused) as refused:
            run("quote", asked, "-e", "1")
        assert f"region = {{ {line} }} under [datasets.people.columns]" in refused.value.message, asked


def test_a_line_that_the_file_has_as_a_comment_is_told(folder: Path) -> None:
    run("init", "people.csv", "--yes", "--no-sample")
    path = folder / "idios.toml"
    lines = [line for line in path.read_text().splitlines() if "region" not in line]
    path.write_text("\n".join([*lines, '# region = { type = "date", format = "%d.%m.%Y" }  # or "%m.%d.%Y"', ""]))
    for command in ("query", "shell"):
        if command == "query":
            with pytest.raises(QuestionRefused) as refused:
                run("query", "SELECT COUNT(*) FROM people WHERE region > 5", "-e", "1")
            told = refused.value.message
        else:
            told = pipe("SELECT COUNT(*) FROM people WHERE region > 5;", options=("-e", "1"))[2]
        assert (
            'the # from this line of idios.toml, where it is right: region = { type = "date", format = "%d.%m.%Y" }'
            in (" ".join(told.split()))
        )

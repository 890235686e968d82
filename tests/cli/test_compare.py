"""``idios compare``: as a table, as JSON and as a page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from idios.errors import ConfigurationError, InvalidInput
from idios.evaluation import compare
from tests.cli.runner import run, run_text
from tests.services.chromium import opened

INCOMES = np.round(np.random.default_rng(5).lognormal(10, 1, 1001)).astype(np.int64)


@pytest.fixture
def people(tmp_path: Path) -> str:
    path = tmp_path / "people.csv"
    lines = ["income,height,name", *(f"{income},{1 + i / 1000:.3f},a" for i, income in enumerate(INCOMES))]
    path.write_text("\n".join([*lines, ",,b"]) + "\n")
    return str(path)


def test_the_command(people: str) -> None:
    printed = run_text("compare", people, "--column", "income")
    assert "controller's eyes" in printed
    for part in ("individual", "needs bounds", "infinite", "1,001 values"):
        assert part in " ".join(printed.split())
    report = json.loads(
        run_text("compare", people, "-c", "income", "--bounds", "0..1000000", "--statistics", "median,iqr", "--json")
    )
    assert "controller's eyes" in report["note"]
    assert report["missing"] == 1
    assert {row["statistic"] for row in report["rows"]} == {"median", "iqr"}
    rows = {row["mechanism"]: row["error"] for row in report["rows"] if row["statistic"] == "median"}
    library = {row.mechanism: row.error for row in compare(INCOMES, statistics=["median"], bounds=(0, 1_000_000))}
    assert rows["DP, exponential mechanism"] == pytest.approx(library["DP, exponential mechanism"])
    assert rows["individual"] == pytest.approx(library["individual"])
    unbounded = json.loads(run_text("compare", people, "-c", "income", "--statistics", "median", "--json"))
    assert {row["mechanism"]: row["error"] for row in unbounded["rows"]}["DP, exponential mechanism"] == "inf"
    assert "DP without bounds, ApproxBounds" in {row["mechanism"] for row in unbounded["rows"]}


def test_the_commands_refusals(people: str) -> None:
    for arguments, words in (
        (("--column", "wealth"), "no column"),
        (("--column", "name"), "is text"),
        (("--column", "income", "--bounds", "5"), r"LOW\.\.HIGH"),
        (("--column", "income", "--bounds", "5..2"), "lower ≤ upper"),
        (("--column", "income", "--epsilon", "0"), "epsilon"),
        (("--column", "income", "--group", "2,1"), "must not decrease"),
        (("--column", "income", "--group", "flat"), "group must be a finite number"),
    ):
        with pytest.raises(InvalidInput, match=words):
            run_text("compare", people, *arguments)


def test_the_page(people: str, tmp_path: Path) -> None:
    path = tmp_path / "compared.html"
    run_text("compare", people, "--column", "height", "--bounds", "0..3", "--html", str(path))
    with opened(path) as seen:
        seen.wait("document.querySelectorAll('.figure .trace').length > 10")
        text = seen.page.inner_text("body")
        ticks = seen.page.evaluate("[...document.querySelectorAll('g[class^=y][class$=tick]')].map(t => t.textContent)")
    assert "controller's eyes" in text
    assert "exponential mechanism" in text
    assert sum(tick.startswith("individual") for tick in ticks) == 6
    assert seen.requests == []
    assert seen.faults == []


def test_groups_are_a_size_or_multiples(people: str) -> None:
    errors = {}
    for group in ("5", "1,1,1,1,1", "1, 1.5"):
        printed = run_text("compare", people, "-c", "income", "--statistics", "median", "--group", group, "--json")
        row = json.loads(printed)["rows"][1]
        errors[row["mechanism"]] = row["error"]
    assert list(errors) == ["group of 5", "group of 5, flat", "group of 2, with ε × (1, 1.5)"]
    assert errors["group of 5"] < errors["group of 5, flat"]


SURVEY = """
[ledger]
url = "sqlite:///ledger.db"

[datasets.survey]
source = "people.csv"
csv = {{ delimiter = ";" }}
budget = 1
{more}

[datasets.survey.columns]
income = {{ type = "integer", bounds = [0, 1000000], missing = [999999] }}
monthly = {{ expression = "ROUND(income / 12, 0)" }}
sex = {{ values = [1, 2] }}
"""


@pytest.fixture
def survey(tmp_path: Path) -> Path:
    """A file with a sentinel for incomes, which a configuration beside it declares under another name."""
    rows = [f"{income};{1 + i % 2};{i % 7};{i}" for i, income in enumerate([*INCOMES, *[999999] * 200])]
    (tmp_path / "people.csv").write_text("\n".join(["income;sex;visits;person", *rows]) + "\n")
    (tmp_path / "idios.toml").write_text(SURVEY.format(more=""))
    return tmp_path


def compare_json(folder: Path, *arguments: str) -> dict[str, Any]:
    result = run("compare", str(folder / "people.csv"), "--statistics", "median", *arguments, "--json")
    return json.loads(result.stdout) | {"told": " ".join(result.stderr.split())}


def test_what_is_declared_of_a_column_is_compared(survey: Path) -> None:
    """Its missing values, bounds, expression and the csv format, where the file is declared under another name."""
    found = compare_json(survey, "-c", "income")
    assert (found["size"], found["missing"], found["bounds"]) == (len(INCOMES), 200, ["0", "1000000"])
    assert "income: as declared in [datasets.survey] of" in found["told"]
    declared = compare(INCOMES, statistics=["median"], bounds=(0, 1_000_000))
    assert found["rows"][0]["value"] == declared.rows[0].value
    errors = {row["mechanism"]: row["error"] for row in found["rows"]}
    assert errors["DP, exponential mechanism"] == pytest.approx(
        {row.mechanism: row.error for row in declared}["DP, exponential mechanism"]
    )
    monthly = compare_json(survey, "-c", "monthly")
    assert (monthly["size"], monthly["bounds"]) == (len(INCOMES), ["0", "83333"])
    assert monthly["rows"][0]["value"] == np.median(np.floor(INCOMES / 12 + 0.5))
    narrow = compare_json(survey, "-c", "income", "--bounds", "0..20000")
    assert narrow["bounds"] == ["0", "20000"], "other bounds are tried by naming them"
    undeclared = compare_json(survey, "-c", "visits")
    assert undeclared["size"] == len(INCOMES) + 200
    assert "visits: a column that is not declared in [datasets.survey] of" in undeclared["told"]
    alone = survey / "alone"
    alone.mkdir()
    (survey / "people.csv").rename(alone / "people.csv")
    assert compare_json(alone, "-c", "income")["size"] == len(INCOMES) + 200, "nothing beside it declares it"


def test_neighbours_and_groups_are_as_declared(survey: Path) -> None:
    replaced = compare_json(survey, "-c", "income", "-e", "0.1")
    more = 'neighbours = "add-remove"\nprotection = "group"\ngroup = 3\nfloor = 50'
    (survey / "idios.toml").write_text(SURVEY.format(more=more))
    added = compare_json(survey, "-c", "income", "-e", "0.1")
    assert (replaced["neighbours"], added["neighbours"]) == ("replace", "add-remove")
    assert added["rows"][1]["mechanism"] == "group of 3"
    assert added["rows"][0]["error"] > 499, "a floor of 50 steps at an ε of 0.1"
    assert compare_json(survey, "-c", "income", "--group", "2")["rows"][1]["mechanism"] == "group of 2"


def test_rows_of_people_are_no_records(survey: Path) -> None:
    (survey / "idios.toml").write_text(SURVEY.format(more='unit = "person"'))
    with pytest.raises(InvalidInput, match="people may have several rows in 'survey'"):
        compare_json(survey, "-c", "income")
    (survey / "idios.toml").write_text(SURVEY.format(more='unit = "person"\nunique = true'))
    (survey / "people.csv").write_text((survey / "people.csv").read_text() + "5;1;1;\n" * 30)
    assert compare_json(survey, "-c", "income")["size"] == len(INCOMES), "rows of nobody are left out"


def test_what_cannot_be_compared_as_declared_is_refused(survey: Path) -> None:
    for arguments, words in (
        (("-c", "sex"), "'sex' is declared as a category"),
        (("-c", "monthly", "--step", "5"), "follows from its expression"),
    ):
        with pytest.raises(InvalidInput, match=words):
            compare_json(survey, *arguments)
    (survey / "idios.toml").write_text(
        SURVEY.format(more="").replace("people.csv", "others.csv").replace("survey", "people")
    )
    with pytest.raises(ConfigurationError, match="declares 'people', and its source is not"):
        compare_json(survey, "-c", "income")

"""``idios quote`` and ``idios inspect``."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from idios.errors import InvalidInput, Unanswerable
from tests.cli.runner import run, run_json


def test_quote_and_inspect_json(folder: Path) -> None:
    quote = run_json(
        "quote",
        "people.csv",
        "--protection",
        "individual",
        "SELECT COUNT(*), MEDIAN(age) FROM people WHERE age > 30",
        "-e",
        "1",
        "--budget",
        "5",
    )
    assert quote["cost"] == "1"
    assert quote["split"] == {"COUNT(*)": "0.5", "MEDIAN(age)": "0.5"}
    assert quote["margin"]["COUNT(*)"] == "6"
    assert (quote["fitted"], quote["least_epsilon"]) == (1, "0.1")
    weighted = run_json(
        "quote", "SELECT COUNT(*) AS n, MEDIAN(age) AS m FROM people WHERE age > 3", "-e", "1", "-s", "n=1", "-s", "m=3"
    )
    assert weighted["split"] == {"n": "0.25", "m": "0.75"}
    cell = run_json("inspect", "people.csv", "--yes", "SELECT KTH_LARGEST(age, 2) FROM people", "-e", "0.5")["cells"][0]
    assert set(cell) >= {"group", "statistic", "value", "lows", "highs", "local_sensitivity", "noise", "level"}
    assert int(cell["lows"][1]) <= int(cell["value"]) <= int(cell["highs"][1])


def test_a_quote_warns_of_null(folder: Path) -> None:
    asked = ("people.csv", "SELECT MEDIAN(income) FROM people WHERE age > 30", "-e", "1")
    risk = "NULL is possible where fewer than about 127 values are selected"  # a fifth of ε is for the check
    assert run_json("quote", *asked, "--protection", "differential")["null_risks"] == {"MEDIAN(income)": risk}
    assert "risk of MEDIAN(income)" in run("quote", *asked).stdout


def test_a_split_is_named_by_statistic(folder: Path) -> None:
    run("init", "people.csv", "--yes", "--bounds", "age=0..120")
    asked = ("quote", "SELECT AVG(age), SUM(age) FROM people", "-e", "1", "-s", "AVG(age)=3", "-s", "SUM(age)=1")
    assert run_json(*asked)["split"] == {"AVG(age)": "0.75", "SUM(age)": "0.25"}
    with pytest.raises(InvalidInput, match=r"for each of AVG\(age\), SUM\(age\), by its name"):
        run(*asked[:-4], "-s", "AVG=3")


def test_a_quote_tells_of_checks(folder: Path) -> None:
    asked = ("people.csv", "SELECT MEDIAN(income) FROM people", "-e", "1")
    assert run_json("quote", *asked, "--protection", "differential")["checks"] == {"MEDIAN(income)": "0.2"}
    assert "ε = 0.2, tells how many records off it is" in run("quote", *asked).stdout
    assert run_json("quote", *asked, "--check", "0.5")["split"] == {"MEDIAN(income)": "0.5"}
    assert "checks" not in run_json("quote", *asked, "--check", "0")
    assert "none below ε = 0.25" in run("quote", *asked[:2], "-e", "0.2").stdout
    with pytest.raises(InvalidInput, match="leave out --epsilon, --split, --check and --then-check"):
        run("quote", *asked[:2], "--within", "5", "--check", "0.2")


def test_a_quote_tells_what_is_released_and_what_is_computed_from_it(folder: Path) -> None:
    ratio = "ROUND(100 * SUM(age) / COUNT(*), 1)"
    asked = ("people.csv", f"SELECT region, {ratio} AS mean FROM people GROUP BY 1 ORDER BY mean DESC", "-e", "1")
    run("init", "people.csv", "--yes", "--bounds", "age=0..120", "--values", "region=north,south")
    shown = run("quote", *asked).stdout
    assert "SUM(age): ε =" in shown
    assert re.search(rf"computed: mean\s+│ {re.escape(ratio)}", shown)
    assert run_json("quote", *asked)["computed"] == {"mean": ratio}
    seen = run("inspect", *asked).stdout.partition("What the question computes from the true values:")[2]
    assert "┃ region ┃ mean" in seen
    assert len(re.findall(r"│ (?:north|south)\s+│ [0-9,.]+\s+│", seen)) == 2


def test_a_quote_tells_how_far_off_a_ratio_will_be_and_finds_its_epsilon(folder: Path) -> None:
    run("init", "people.csv", "--yes", "--bounds", "age=0..120", "--protection", "differential")
    asked = ("quote", "SELECT SUM(age) / COUNT(*) AS a FROM people WHERE age > 30")
    shown = run(*asked, "-e", "1").stdout
    assert "margin of a " in shown
    assert " where COUNT(*) is 1" in shown
    found = run(*asked, "--within", "20 at 100")
    assert "within 20 at 100: --epsilon " in found.stderr
    with pytest.raises(Unanswerable, match=r"the margin of a follows from COUNT\(\*\)"):
        run(*asked, "--within", "20")

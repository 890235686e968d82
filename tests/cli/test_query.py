"""``idios query``: a file with and without a configuration."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest

from idios.cli import output
from idios.cli.init import declare_file
from idios.config import read_configuration
from idios.core.calibration import Level
from idios.declare.schema import Budget
from idios.errors import ConfigurationError, InvalidInput, QuestionRefused, SourceError
from tests.cli.runner import MEDIAN, MEDIAN_AGE, answer_prompts, run, run_json, run_text


def test_a_proposal_that_reads_records_is_confirmed_first(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for command in (
        ["query", "people.csv", MEDIAN, "-e", "0.5", "--budget", "10"],
        ["quote", "people.csv", MEDIAN, "-e", "0.5", "--budget", "10"],
        ["init", "people.csv"],
    ):
        level = 'protection = "differential" is declared, unless --protection individual chooses the other level'
        with pytest.raises(ConfigurationError, match=f"add --yes, and {level}"):
            run(*command)
        assert not (folder / "idios.toml").exists()
    monkeypatch.setattr("idios.cli.init.sys", SimpleNamespace(stdin=SimpleNamespace(isatty=lambda: True)))
    monkeypatch.setattr("idios.cli.init.Confirm.ask", lambda *args, **options: False)
    with pytest.raises(ConfigurationError, match="nothing was written"):
        run("query", "people.csv", MEDIAN, "-e", "0.5", "--budget", "10")
    assert not (folder / "idios.toml").exists()
    monkeypatch.setattr("idios.cli.init.Confirm.ask", lambda *args, **options: True)
    shown = " ".join(run("query", "people.csv", MEDIAN, "-e", "0.5", "--budget", "10").stderr.split())
    assert "It was made by reading" in shown
    assert f"Level: {level}." in shown
    assert "delimiter" in (folder / "idios.toml").read_text()


def test_a_long_question_is_no_name_of_a_file(declared: Path) -> None:
    """Longer than any file may be called."""
    several = ", ".join(f"COUNT(*) + {i} AS n{i}" for i in range(40))
    assert len(several) > 255
    assert "n39" in run_text("query", f"SELECT {several} FROM people WHERE age > 3", "-e", "0.5")
    with pytest.raises(QuestionRefused, match="common table expressions"):
        run("query", f"WITH t AS (SELECT 1) SELECT {several} FROM t", "-e", "0.5")


def test_a_long_question_in_place_of_a_file_is_told(declared: Path) -> None:
    """Longer than any file may be called, and with signs that patterns and folders have."""
    question = f"SELECT {', '.join(f'COUNT(*) / {i} AS n{i}' for i in range(1, 60))} FROM people"
    for asked in (question, question.replace("/", "+"), f"{question}.parquet", f"{question}.csv"):
        for command in (["shell"], ["compare", "-c", "age"], ["init", "--out", "other.toml"], ["query", "-e", "1"]):
            second = ["SELECT COUNT(*) FROM people"] if command[0] == "query" else []
            with pytest.raises((SourceError, InvalidInput), match=r"there is no file|no file matches|other way round"):
                run(command[0], asked, *second, *command[1:])


def test_what_is_missing_or_out_of_place_is_told(folder: Path) -> None:
    for command in ("query", "quote", "inspect"):
        for file in ("people.csv", "nowhere.csv"):
            with pytest.raises(InvalidInput, match=f'the question is missing: write it after the file, {file} "SELECT'):
                run(command, file, "-e", "1")
        with pytest.raises(InvalidInput, match="the file comes first, and the question after it"):
            run(command, MEDIAN, "people.csv", "-e", "1")
    with pytest.raises(InvalidInput, match=r"got '0,5': write 0\.5"):
        run("query", "people.csv", MEDIAN, "-e", "0,5", "--protection", "differential")


def test_a_file_without_configuration(folder: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"add --yes, .* with a total ε of 10 unless --budget gives another"):
        run("query", "people.csv", MEDIAN, "--epsilon", "0.5")
    assert not (folder / "idios.toml").exists()
    first = run_json("query", "people.csv", "--yes", MEDIAN, "--epsilon", "0.5")
    assert first["remaining"] == "9.5"
    assert first["guarantee"]["notation"] == "0.5-DP"
    assert not first["stored"]
    assert isinstance(first["rows"][0]["MEDIAN(income)"], str)
    written = (folder / "idios.toml").read_text()
    assert 'income = { type = "number" }' in written
    assert 'region = { values = ["north", "south"] }' in written
    assert "bounds = [" not in written.replace("# bounds = [lower", "")
    again = run_json("query", "people.csv", "--yes", MEDIAN, "--epsilon", "0.5")  # the budget is kept between runs
    assert again["stored"]
    assert again["rows"] == first["rows"]
    assert run_json("ledger", "balance")[0]["epsilon"]["spent"] == "0.5"
    by_config = run_json("query", MEDIAN, "--epsilon", "0.5")
    assert by_config["rows"] == first["rows"]


def test_tables_for_people(folder: Path) -> None:
    told = run("query", "people.csv", "--protection", "individual", MEDIAN, "-e", "0.5").stderr
    assert 'protection = "individual": At this level the noise is fitted' in " ".join(told.split())
    shown = run("query", "people.csv", "--yes", MEDIAN, "-e", "0.5").stdout
    assert "MEDIAN(income)" in shown
    assert "nothing was charged" in shown
    assert "individual differential privacy" in shown.replace("\n", " ")
    quoted = run("quote", "people.csv", "--yes", MEDIAN, "-e", "1").stdout
    assert "remaining after" in quoted
    assert "0.05 (1 value has noise fitted to the data)" in quoted
    inspected = run("inspect", "people.csv", "--yes", MEDIAN, "-e", "1").stdout
    assert "true value" in inspected
    assert "local sensitivity" in inspected
    assert "as declared" in run("check").stdout
    assert "inspected" in run("ledger", "show").stdout


def test_two_files_share_a_configuration(folder: Path) -> None:
    (folder / "other.csv").write_text("x\n" + "\n".join(str(i) for i in range(99)))
    run("query", "people.csv", "--yes", MEDIAN, "-e", "1", "--budget", "10")
    other = run_json("query", "other.csv", "--yes", "SELECT MEDIAN(x) FROM other", "-e", "1", "--budget", "5")
    assert other["remaining"] == "4"
    assert {one["dataset"] for one in run_json("ledger", "balance")} == {"people", "other"}


def test_the_level_of_protection_declares_a_file_without_asking(folder: Path) -> None:
    asked = ["query", "people.csv", "SELECT COUNT(*) FROM people WHERE age > 40", "--epsilon", "1"]
    result = run(*asked, "--protection", "differential")
    assert "1-differential privacy" in result.stdout
    assert "noise is fitted" not in result.stderr
    told = " ".join(result.stderr.split())
    for assumed in ("income: number", "without bounds", 'neighbours = "replace"', "number is public", "budget = 10"):
        assert assumed in told
    declared = read_configuration(folder / "idios.toml").datasets["people"]
    assert declared.dataset.protection.level is Level.DIFFERENTIAL
    assert declared.dataset.budget == Budget(Fraction(10))
    again = run(*asked, "--protection", "differential")
    assert "nothing was charged" in again.stdout
    assert "declares" not in again.stderr
    with pytest.raises(
        ConfigurationError, match=r'with protection = "differential", not "individual": change it there'
    ):
        run(*asked, "--protection", "individual")


def test_a_level_that_cannot_be_declares_nothing(folder: Path) -> None:
    for level, message in (("strong", '"individual", "group" or "differential"'), ("group", "the number of records")):
        with pytest.raises(InvalidInput, match=message):
            run("query", "people.csv", MEDIAN, "-e", "1", "--protection", level)
    with pytest.raises(InvalidInput, match="--protection and --unit declare a file"):
        run("query", MEDIAN, "-e", "1", "--protection", "differential")
    assert not (folder / "idios.toml").exists()


def test_a_given_budget_comes_before_the_proposed_one(folder: Path) -> None:
    level = ["--protection", "individual", "--budget", "2"]
    assert run_json("query", "people.csv", MEDIAN, "-e", "0.5", *level)["remaining"] == "1.5"


def test_checks(folder: Path) -> None:
    asked = ("people.csv", MEDIAN, "-e", "8")
    checked = run_json("query", *asked, "--protection", "differential", "--budget", "100")
    assert set(checked["checks"][0]["MEDIAN(income)"]) >= {"low", "high"}
    shown = " ".join(run("query", *asked).stdout.split())
    assert "MEDIAN(income): " in shown
    assert "(noise, 95 %)" in shown
    with pytest.raises(InvalidInput, match="there is no stored answer to this question"):
        run("query", *asked, "--then-check", "2")
    plain = run_json("query", *asked, "--check", "0")
    assert "checks" not in plain
    assert run_json("quote", *asked, "--then-check", "2")["cost"] == "2"
    assert "each released cell" not in run("quote", *asked, "--then-check", "2").stdout
    later = run_json("query", *asked, "--then-check", "2")
    assert later["rows"] == plain["rows"]
    assert later["checks"]
    assert run_json("ledger", "balance")[0]["epsilon"]["spent"] == "18"
    with pytest.raises(InvalidInput, match="leave out --check"):
        run("query", *asked, "--check", "0.5", "--then-check", "2")


def test_checks_of_several_rows_are_a_column(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output.console, "width", 200)
    options = ("--values", "region=north,south", "--bounds", "age=0..120")
    run("init", "people.csv", "--yes", "--name", "people", *options)
    asked = "SELECT region, MEDIAN(age) FROM people GROUP BY region"
    shown = run("query", asked, "-e", "4", "--check", "0.5").stdout
    assert "MEDIAN(age) is off by" in shown
    assert "(noise, 95 %)" in shown


def test_a_typo_is_an_error_and_never_another_file(folder: Path) -> None:
    run("query", "people.csv", "--yes", MEDIAN, "-e", "0.5", "--budget", "10")
    with pytest.raises(SourceError, match=r"there is no file 'people\.cvs'; did you mean 'people\.csv'\?"):
        run("query", "people.cvs", MEDIAN, "-e", "0.5")
    (folder / "people.txt").write_text((folder / "people.csv").read_text())
    with pytest.raises(ConfigurationError, match=r"its source is not 'people\.txt': ask about 'people\.csv'"):
        run("query", "people.txt", MEDIAN, "-e", "0.5")
    assert run_json("query", "./people.csv", MEDIAN, "-e", "0.5")["stored"]
    assert run_json("ledger", "balance")[0]["epsilon"]["spent"] == "0.5"


def test_a_budget_is_declared_once(folder: Path) -> None:
    run("query", "people.csv", "--yes", MEDIAN, "-e", "0.5", "--budget", "10")
    run("query", "people.csv", MEDIAN, "-e", "0.5", "--budget", "10.0")
    with pytest.raises(ConfigurationError, match="declares the budget of 'people' already"):
        run("query", "people.csv", MEDIAN, "-e", "0.5", "--budget", "20")


def test_a_folder_and_a_pattern_are_declared_where_they_are(folder: Path) -> None:
    for year in (2024, 2025):
        (folder / "data" / f"year={year}").mkdir(parents=True)
        pl.DataFrame({"income": range(300)}).write_parquet(folder / "data" / f"year={year}" / "a.parquet")
    asked = "SELECT MEDIAN(income) FROM data"
    for source, config in (("data", "idios.toml"), ("data/*/*.parquet", "data/idios.toml")):
        with pytest.raises(ConfigurationError, match="add --yes"):
            run("query", source, asked, "-e", "1")
        first = run_json("query", source, asked, "-e", "1", "--budget", "5")
        assert run_json("query", asked, "-e", "1", "--config", config)["rows"] == first["rows"]
    run(
        "query",
        "data/year=2024/a.parquet",
        "SELECT MEDIAN(income) FROM a",
        "-e",
        "1",
        "--budget",
        "5",
        "--config",
        "b.toml",
    )
    assert 'source = "data/year=2024/a.parquet"' in (folder / "b.toml").read_text()


def test_where_people_may_have_several_rows_nothing_is_asked_until_it_is_told(folder: Path) -> None:
    rows = [f"{i % 100},{20 + i % 60}" for i in range(400)]
    (folder / "visits.csv").write_text("\n".join(["patient_id,age", *rows]))
    asked = ["query", "visits.csv", "SELECT MEDIAN(age) FROM visits", "-e", "1", "--protection", "differential"]
    with pytest.raises(ConfigurationError, match=r"add --unit patient_id if .* or --unit none"):
        run(*asked)
    assert not (folder / "idios.toml").exists()
    assert not (folder / "ledger.db").exists()
    with pytest.raises(InvalidInput, match=r"no column 'patientid'. Did you mean 'patient_id'\?"):
        run(*asked, "--unit", "patientid")
    shown = " ".join(run(*asked, "--unit", "none").stderr.split())
    assert "one record may change" in shown
    assert '\n# unit = "patient_id"  # its values repeat' in (folder / "idios.toml").read_text()
    assert "may be a unit" not in run(*asked).stderr  # declared by now
    with pytest.raises(ConfigurationError, match=r"whose rows 'visits' has: ask without --unit"):
        run(*asked, "--unit", "patient_id")
    (folder / "idios.toml").unlink()
    (folder / "ledger.db").unlink()
    (folder / "ledger.key").unlink()
    assert "one person may change" in " ".join(run(*asked, "--unit", "patient_id").stderr.split())
    assert '\nunit = "patient_id"\n' in (folder / "idios.toml").read_text()
    run(*asked, "--unit", "patient_id")
    run("query", "people.csv", MEDIAN, "-e", "1", "--protection", "differential")  # nothing there may be a unit


def test_somebody_at_a_terminal_is_told_what_a_total_means_and_offered_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = answer_prompts(monkeypatch, "2")
    result = run("query", "people.csv", MEDIAN, "-e", "0.5")
    told = " ".join(result.stderr.split())
    assert "ε limits what all answers together may tell about one record: if that record were another" in told
    assert asked == [("Total ε that may ever be spent on 'people'", "10")]
    assert "Remaining: ε = 1.5" in result.stdout
    run("query", "people.csv", MEDIAN_AGE, "-e", "0.5")
    assert len(asked) == 1, "a total is asked for once"


def test_somebody_at_a_terminal_is_asked_whose_rows_there_are(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [f"{i % 100},{20 + i % 60}" for i in range(400)]
    (folder / "visits.csv").write_text("\n".join(["patient_id,age", *rows]))
    monkeypatch.setattr("idios.cli.init.sys", SimpleNamespace(stdin=SimpleNamespace(isatty=lambda: True)))
    monkeypatch.setattr("idios.cli.init.Prompt.ask", lambda *_, **__: "patient_id")
    monkeypatch.setattr("idios.cli.init.Confirm.ask", lambda *_, **__: True)
    declare_file("visits.csv", None, "3", None, False, None, None)
    assert '\nunit = "patient_id"\n' in (folder / "idios.toml").read_text()


def test_a_file_that_is_declared_under_another_name_is_not_declared_anew(folder: Path) -> None:
    """By what it is, whatever it is called: two budgets for the same people would add up."""
    run("init", "people.csv", "--yes", "--name", "survey")
    before = (folder / "idios.toml").read_text()
    asked = "SELECT MEDIAN(income) FROM survey"
    first = run_json("query", "people.csv", asked, "-e", "0.5")
    assert run_json("query", str(folder / "people.csv"), asked, "-e", "0.5")["id"] == first["id"]
    assert run_json("query", asked, "-e", "0.5")["id"] == first["id"]
    with pytest.raises(QuestionRefused, match="no data set 'people'"):
        run("query", "people.csv", MEDIAN, "-e", "0.5", "--budget", "10")
    assert (folder / "idios.toml").read_text() == before

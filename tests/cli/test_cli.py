"""The command line as a controller uses it."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from idios.cli.main import app
from idios.config import read_configuration
from idios.errors import BudgetExceeded, ConfigurationError, IdiosError, InvalidInput, QuestionRefused, SourceError
from idios.ledger import Ledger

MEDIAN = "SELECT MEDIAN(income) FROM people"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rng = np.random.default_rng(1)
    with (tmp_path / "people.csv").open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["age", "income", "region"])
        for i in range(500):
            income = round(float(rng.lognormal(10, 1)), 2) if i % 40 else ""
            lines.writerow([int(rng.integers(18, 90)), income, ["north", "south"][i % 2]])
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> Result:
    result = CliRunner().invoke(app, list(arguments), catch_exceptions=True)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def run_json(*arguments: str) -> Any:
    return json.loads(run(*arguments, "--json").stdout)


def test_a_proposal_that_reads_records_is_confirmed_first(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for command in (
        ["query", "people.csv", MEDIAN, "-e", "0.5", "--budget", "10"],
        ["quote", "people.csv", MEDIAN, "-e", "0.5", "--budget", "10"],
        ["init", "people.csv"],
    ):
        with pytest.raises(ConfigurationError, match="add --yes"):
            run(*command)
        assert not (folder / "idios.toml").exists()
    monkeypatch.setattr("idios.cli.init.sys", SimpleNamespace(stdin=SimpleNamespace(isatty=lambda: True)))
    monkeypatch.setattr("idios.cli.init.Confirm.ask", lambda *args, **options: False)
    with pytest.raises(ConfigurationError, match="nothing was written"):
        run("query", "people.csv", MEDIAN, "-e", "0.5", "--budget", "10")
    assert not (folder / "idios.toml").exists()
    monkeypatch.setattr("idios.cli.init.Confirm.ask", lambda *args, **options: True)
    shown = run("query", "people.csv", MEDIAN, "-e", "0.5", "--budget", "10").stderr
    assert "reading the first records" in " ".join(shown.split())
    assert "delimiter" in (folder / "idios.toml").read_text()


def test_a_file_without_a_header(folder: Path) -> None:
    """No record becomes a name, neither in the configuration nor on the way there."""
    (folder / "bare.csv").write_text("Ada,41,north\nBo,35,south\n" * 50)
    shown = run("init", "bare.csv", "--yes")
    written = (folder / "idios.toml").read_text()
    assert "header = false" in written
    assert 'column2 = { type = "integer" }' in written
    assert not any(value in text for value in ("Ada", "41", "north") for text in (written, shown.stdout, shown.stderr))
    answer = run_json("query", "SELECT MEDIAN(column2) FROM bare", "-e", "1")
    assert answer["rows"]
    (folder / "texts.csv").write_text("Ada,north\nBo,south\n")
    with pytest.raises(SourceError, match="--header or --no-header"):
        run("init", "texts.csv", "--out", "texts.toml", "--yes")
    run("init", "texts.csv", "--out", "texts.toml", "--yes", "--no-header", "--values", "column1=Ada,Bo")
    assert "header = false" in (folder / "texts.toml").read_text()


def test_a_file_without_configuration(folder: Path) -> None:
    with pytest.raises(ConfigurationError, match="--budget 10"):
        run("query", "people.csv", "--yes", MEDIAN, "--epsilon", "0.5")
    assert not (folder / "idios.toml").exists()
    first = run_json("query", "people.csv", "--yes", MEDIAN, "--epsilon", "0.5", "--budget", "10")
    assert first["remaining"] == "9.5"
    assert not first["stored"]
    assert isinstance(first["rows"][0]["MEDIAN(income)"], str)
    written = (folder / "idios.toml").read_text()
    assert 'income = { type = "number" }' in written
    assert "# region" in written
    assert "bounds = [" not in written.replace("# bounds = [lower", "")
    again = run_json("query", "people.csv", "--yes", MEDIAN, "--epsilon", "0.5")  # the budget is kept between runs
    assert again["stored"]
    assert again["rows"] == first["rows"]
    assert run_json("ledger", "balance")[0]["epsilon"]["spent"] == "0.5"
    by_config = run_json("query", MEDIAN, "--epsilon", "0.5")
    assert by_config["rows"] == first["rows"]


def test_tables_for_people(folder: Path) -> None:
    run("query", "people.csv", "--yes", MEDIAN, "-e", "0.5", "--budget", "10")
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


def test_quote_and_inspect_json(folder: Path) -> None:
    quote = run_json(
        "quote",
        "people.csv",
        "--yes",
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


def test_init_writes_what_it_is_told_and_never_overwrites(folder: Path) -> None:
    run("init", "people.csv", "--yes", "--budget", "7", "--bounds", "age=0..120", "--values", "region=north,south")
    text = (folder / "idios.toml").read_text()
    assert 'age = { type = "integer", bounds = [0, 120] }' in text
    assert 'region = { type = "category", values = ["north", "south"] }' in text
    answer = run_json("query", "SELECT region, AVG(age) FROM people GROUP BY region", "-e", "1")
    assert [row["region"] for row in answer["rows"]] == ["north", "south"]
    with pytest.raises(ConfigurationError, match="never overwritten"):
        run("init", "people.csv", "--yes")
    with pytest.raises(InvalidInput, match="no column"):
        run("init", "people.csv", "--yes", "--out", "b.toml", "--bounds", "nope=1..2")
    with pytest.raises(InvalidInput, match=r"NAME=LOW\.\.HIGH"):
        run("init", "people.csv", "--yes", "--out", "b.toml", "--bounds", "age:1")
    for unreadable in ("age=120..0", "age=zero..ten"):
        with pytest.raises(InvalidInput):
            run("init", "people.csv", "--yes", "--out", "b.toml", "--bounds", unreadable)
    assert not (folder / "b.toml").exists()


def test_the_version_is_told() -> None:
    assert run("--version").stdout.strip() == version("idios")


def test_a_token_comes_with_its_name(folder: Path) -> None:
    run("init", "people.csv", "--yes", "--bounds", "age=0..120")
    issued = run("analyst", "token", "carla", "--controller", "--days", "7")
    [secret] = issued.stdout.split()
    with Ledger.open(f"sqlite:///{folder}/ledger.db", folder / "ledger.key") as ledger:
        [token] = ledger.tokens()
        assert ledger.authenticate(secret).token == token.token
    assert f"token {token.token} of carla, valid until {token.expires[:10]}" in issued.stderr


def test_a_split_is_named_by_statistic(folder: Path) -> None:
    run("init", "people.csv", "--yes", "--bounds", "age=0..120")
    asked = ("quote", "SELECT AVG(age), SUM(age) FROM people", "-e", "1", "-s", "AVG(age)=3", "-s", "SUM(age)=1")
    assert run_json(*asked)["split"] == {"AVG(age)": "0.75", "SUM(age)": "0.25"}
    with pytest.raises(InvalidInput, match=r"for each of AVG\(age\), SUM\(age\), by its name"):
        run(*asked[:-4], "-s", "AVG=3")


def test_init_says_what_each_level_means_and_every_choice_can_be_taken(folder: Path) -> None:
    run("init", "people.csv", "--yes", "--bounds", "age=0..120")
    text = (folder / "idios.toml").read_text()
    assert "one MEDIAN of a column of 0s and 1000s" in text
    assert 'so a server needs analysts = "trusted"' in text
    assert (
        "# release_seconds = 0.25  # on a server: answers leave at 0.25, 0.5, 1, 2, … seconds, so that time tells "
        'nothing; default at "differential"\n'
    ) in text
    written = 'protection = "individual"\n'
    assert read_configuration(folder / "idios.toml").datasets["people"].dataset.protection.level == "individual"
    for level, lines in (
        ("group", ['protection = "group" ', "group = 5", 'analysts = "trusted"']),
        ("differential", ['protection = "differential"', "delta = 1e-6"]),
    ):
        chosen = text.replace(written, "")
        for line in lines:
            assert f"\n# {line}" in chosen
            chosen = chosen.replace(f"\n# {line}", f"\n{line}")
        (folder / "chosen.toml").write_text(chosen)
        declared = read_configuration(folder / "chosen.toml").datasets["people"]
        assert declared.dataset.protection.level == level
        assert declared.analysts_trusted == (level == "group")


def test_check_finds_what_is_not_as_declared(folder: Path) -> None:
    run("init", "people.csv", "--yes", "--bounds", "age=0..50")
    path = folder / "idios.toml"
    path.write_text(
        path.read_text().replace('income = { type = "number" }', 'income = { type = "number", nullable = false }')
    )
    result = run("check")
    assert result.exit_code == 1
    assert "nullable" in result.stdout
    report = run_json("check")["datasets"]["people"]
    assert not report["sound"]
    assert report["rows"] == 500


def test_analysts(folder: Path) -> None:
    run("init", "people.csv", "--yes")
    run("check")
    run("analyst", "add", "ada")
    run("analyst", "grant", "ada", "people", "--epsilon", "1")
    token = run("analyst", "token", "ada").stdout.strip()
    assert len(token) >= 43
    listed = run_json("analyst", "list")
    assert listed["analysts"] == ["ada"]
    assert listed["grants"][0]["remaining"] == "1"
    assert token not in json.dumps(listed)
    run("query", MEDIAN, "-e", "1", "--analyst", "ada")
    with pytest.raises(BudgetExceeded):
        run("query", "SELECT MEDIAN(age) FROM people", "-e", "1", "--analyst", "ada")
    run("analyst", "revoke", listed["tokens"][0]["token"])
    assert "ada" in run("analyst", "list").stdout


def test_ledger_commands(folder: Path) -> None:
    run("query", "people.csv", "--yes", MEDIAN, "-e", "1", "--budget", "2")
    anchor = run("ledger", "head").stdout.strip()
    assert run("ledger", "verify", "--anchor", anchor).exit_code == 0
    exported = json.loads(run("ledger", "export").stdout)
    assert exported[0]["statistics"] == ["MEDIAN(income)"]
    assert "individual differential privacy" in exported[0]["guarantee"]
    run("ledger", "export", "--format", "csv", "--out", "answers.csv")
    rows = list(csv.DictReader((folder / "answers.csv").read_text().splitlines()))
    assert rows[0]["value"] == exported[0]["cells"][0][0]
    with pytest.raises(InvalidInput, match="csv or json"):
        run("ledger", "export", "--format", "xml")
    run("ledger", "raise", "people", "--epsilon", "5")
    assert run_json("ledger", "balance")[0]["epsilon"]["remaining"] == "4"
    for typed in ("", "people!\n"):
        assert CliRunner().invoke(app, ["ledger", "retire", "people"], input=typed).exit_code
    assert run("query", "people.csv", "--yes", MEDIAN, "-e", "1").exit_code == 0
    run("ledger", "retire", "people", "--yes")
    with pytest.raises(IdiosError):
        run("query", "people.csv", "--yes", MEDIAN, "-e", "1")


def test_a_tampered_ledger_is_found(folder: Path) -> None:
    import sqlite3

    run("query", "people.csv", "--yes", MEDIAN, "-e", "1", "--budget", "2")
    with sqlite3.connect(folder / "ledger.db") as connection:
        [table] = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE '%mac%' AND sql LIKE '%payload%'"
        ).fetchone()
        connection.execute(
            f"UPDATE {table} SET payload = replace(payload, '\"1/1\"', '\"1/9\"') WHERE kind = 'reserved'"
        )
    connection.close()
    assert run("ledger", "verify").exit_code == 1


def test_errors_are_one_message_and_exit_code_1(folder: Path) -> None:
    with pytest.raises(QuestionRefused, match="joins"):
        run("query", "people.csv", "--yes", "SELECT MEDIAN(income) FROM people JOIN x", "-e", "1", "--budget", "2")
    with pytest.raises(InvalidInput, match="--epsilon"):
        run("query", "people.csv", "--yes", MEDIAN)
    with pytest.raises(IdiosError, match=r"none\.csv"):
        run("query", "none.csv", "--yes", "SELECT MEDIAN(x) FROM none", "-e", "1", "--budget", "1")
    done = subprocess.run(
        [sys.executable, "-m", "idios", "query", "people.csv", "SELECT nonsense", "-e", "1"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "error:" in done.stderr
    assert "Traceback" not in done.stderr


def test_help_teaches() -> None:
    shown = run("--help").stdout
    for command in ("query", "quote", "inspect", "init", "check", "analyst", "ledger", "demo"):
        assert command in shown
        assert run(command, "--help").exit_code == 0
    assert "Start with" in shown


def test_demo_tells_the_story() -> None:
    done = subprocess.run([sys.executable, "-m", "idios", "demo"], capture_output=True, text=True, check=True)
    for part in ("MEDIAN(income)", "plain DP", "stored answer", "refused before anything is charged", "all as signed"):
        assert part in done.stdout

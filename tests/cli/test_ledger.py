"""``idios ledger``: balance, verification and backup."""

from __future__ import annotations

import csv
import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from typer.testing import CliRunner

from idios.answer.release import draw_table
from idios.cli.main import app
from idios.errors import (
    IdiosError,
    InvalidInput,
    LedgerError,
    LedgerTampered,
    LedgerUnavailable,
    NotPermitted,
)
from idios.ledger.tables import FORMAT
from tests.cli.runner import MEDIAN, MEDIAN_AGE, configure, run, run_json, run_text


def move_ledger_away() -> None:
    for path in Path().glob("ledger.db*"):
        path.unlink()


def test_ledger_commands(folder: Path) -> None:
    run("query", "people.csv", "--yes", MEDIAN, "-e", "1", "--budget", "2")
    anchor = run("ledger", "head").stdout.strip()
    assert run("ledger", "verify", "--anchor", anchor).exit_code == 0
    exported = json.loads(run("ledger", "export").stdout)
    assert exported[0]["statistics"] == ["MEDIAN(income)"]
    assert "1-differential privacy" in exported[0]["guarantee"]
    run("ledger", "export", "--format", "csv", "--out", "answers.csv")
    rows = list(csv.DictReader((folder / "answers.csv").read_text().splitlines()))
    assert rows[0]["value"] == exported[0]["cells"][0][0]
    with pytest.raises(InvalidInput, match="csv or json"):
        run("ledger", "export", "--format", "xml")
    run("ledger", "raise", "people", "--epsilon", "5")
    assert run_json("ledger", "balance")[0]["epsilon"]["remaining"] == "4"
    for typed, told in (("", "Without a terminal, add --yes"), ("people!\n", "people was not retired")):
        refused = CliRunner().invoke(app, ["ledger", "retire", "people"], input=typed)
        assert isinstance(refused.exception, InvalidInput)
        assert told in str(refused.exception)
    assert run("query", "people.csv", "--yes", MEDIAN, "-e", "1").exit_code == 0
    run("ledger", "retire", "people", "--yes")
    with pytest.raises(IdiosError):
        run("query", "people.csv", "--yes", MEDIAN, "-e", "1")


def test_another_promise_is_refused_and_retiring_is_no_way_out(declared: Path) -> None:
    """Whoever is told to retire a data set is told that the people in it keep what was lost."""
    budgets = "up to the sum of both budgets, under the weaker of both promises"
    for keys in ({"neighbours": "add-remove"}, {"protection": "differential"}):
        configure(**keys)
        for command in (["query", MEDIAN_AGE, "-e", "0.1"], ["check"]):
            with pytest.raises(
                LedgerError, match=f'{next(iter(keys))} = "{next(iter(keys.values()))}", but .*{budgets}'
            ):
                run_text(*command)
    configure()
    assert "individual, replace" in run_text("ledger", "balance")
    assert "protection individual, neighbours replace" in " ".join(run_text("ledger", "show").split())
    assert budgets in " ".join(run_text("ledger", "retire", "--help").split())
    refused = CliRunner().invoke(app, ["ledger", "retire", "people"], input="no\n")
    assert budgets in " ".join((refused.stdout + refused.stderr).split())
    printed = CliRunner().invoke(app, ["ledger", "retire", "people", "--yes"])
    assert "people is retired; ε = 0.5 was spent (individual, replace)" in " ".join(printed.stdout.split())
    assert budgets in " ".join(printed.stderr.split())
    [line] = [line for line in run_text("ledger", "balance").splitlines() if "people" in line]
    assert [cell.strip() for cell in line.split("│")[3:7]] == ["0.5", "retired", "", "individual, replace"]
    [balance] = run_json("ledger", "balance")
    assert (balance["retired"], balance["epsilon"]["spent"]) == (True, "0.5")
    with pytest.raises(IdiosError, match=f"answers nothing more; remove it from the configuration.*{budgets}"):
        run_text("query", MEDIAN_AGE, "-e", "0.1")


def test_what_was_spent_is_counted_before_anything_is_opened(declared: Path) -> None:
    """``forfeit`` records a data set that is configured, as ``analyst grant`` does; no other."""
    move_ledger_away()
    printed = " ".join(run_text("ledger", "create", "--reason", "the disk was lost").split())
    assert "declare each data set as it was declared then" in printed
    with pytest.raises(NotPermitted, match="the ledger knows no data set 'firms'; it is recorded when"):
        run_text("ledger", "forfeit", "firms", "--epsilon", "0.5", "--reason", "lost")
    run_text("ledger", "forfeit", "people", "--epsilon", "0.5", "--reason", "lost")
    configure(neighbours="add-remove")
    with pytest.raises(LedgerError, match="was asked about with neighbours"):
        run_text("query", MEDIAN_AGE, "-e", "0.1")


def test_an_export_has_what_was_clipped(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = (Fraction(-1200), Fraction(1, 3))
    monkeypatch.setattr("idios.pipeline.draw_table", lambda *given: replace(draw_table(*given), clipped=((limits,),)))
    run("query", "people.csv", "--yes", MEDIAN, "-e", "1", "--budget", "2")
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    run("query", "people.csv", "--yes", MEDIAN_AGE, "-e", "1")
    clipped, plain = json.loads(run("ledger", "export").stdout)
    assert clipped["clipped"] == [[["-1200", "1/3"]]]
    assert "clipped" not in plain
    assert (clipped["interval"], plain["interval"]) == (["noise, 95 %, of the clipped values"], ["noise, 95 %"])
    rows = list(csv.DictReader(run("ledger", "export", "--format", "csv").stdout.splitlines()))
    assert [(row["clipped_low"], row["clipped_high"]) for row in rows] == [("-1200", "1/3"), ("", "")]


def test_a_tampered_ledger_is_found(folder: Path) -> None:
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


def test_what_was_lost_is_forfeited(declared: Path) -> None:
    assert "remaining ε = 0.2" in run_text("ledger", "forfeit", "people", "--epsilon", "0.3", "--reason", "old backup")
    account = run_json("ledger", "balance")[0]["epsilon"]
    assert (account["spent"], account["remaining"]) == ("0.8", "0.2")
    assert "old backup" in run_text("ledger", "show")
    run_text("ledger", "forfeit", "people", "--epsilon", "5", code=2)


def test_a_raise_needs_no_edit_and_allows_one(declared: Path) -> None:
    run_text("ledger", "raise", "people", "--epsilon", "3")
    assert run_json("query", "SELECT KTH_LARGEST(age, 2) FROM people", "--epsilon", "1")["remaining"] == "1.5"
    configure("2")
    with pytest.raises(LedgerError, match="before it was raised: ε = 1"):
        run_text("query", MEDIAN_AGE, "--epsilon", "0.5")
    configure("3")
    assert run_json("query", "SELECT KTH_LARGEST(age, 3) FROM people", "--epsilon", "1")["remaining"] == "0.5"


def test_backup_and_restore(declared: Path) -> None:
    lines = run_text("ledger", "backup", "monday.db").splitlines()
    assert lines[-1] == run_text("ledger", "head").strip()
    assert "The key file is not in it" in " ".join(lines)
    with pytest.raises(InvalidInput, match="a ledger is never overwritten"):
        run_text("ledger", "restore", "monday.db")
    run_text("query", "SELECT KTH_LARGEST(age, 2) FROM people", "--epsilon", "0.25")
    anchor = run_text("ledger", "head").strip()
    move_ledger_away()
    lost = " ".join(run_text("ledger", "restore", "monday.db", "--anchor", anchor, code=1).split())
    assert "The chain ends at entry 3, the anchor is entry 5: 2 missing. Answers given since" in lost
    assert "idios ledger forfeit" in lost
    assert "idios ledger retire" in lost
    run_text("ledger", "forfeit", "people", "--epsilon", "0.25", "--reason", "restored from monday.db")
    assert run_json("ledger", "balance")[0]["epsilon"]["remaining"] == "0.25"
    move_ledger_away()
    assert "missing" not in run_text("ledger", "restore", "monday.db", "--anchor", lines[-1])
    move_ledger_away()
    assert "Nothing tells whether newer entries are missing" in " ".join(
        run_text("ledger", "restore", "monday.db").split()
    )


def test_tables_that_were_changed_are_made_anew(declared: Path) -> None:
    with closing(sqlite3.connect("ledger.db")) as base, base:
        base.execute("UPDATE idios_datasets SET epsilon_spent = '0/1'")
    with pytest.raises(LedgerTampered, match="run `idios ledger verify`"):
        run_text("ledger", "balance")
    assert "epsilon_spent is 0/1, the chain says 1/2" in " ".join(run_text("ledger", "verify", code=1).split())
    assert "Rebuilt: 3 entries, all as signed" in run_text("ledger", "rebuild")
    assert run_json("ledger", "balance")[0]["epsilon"]["spent"] == "0.5"


def test_a_lost_ledger_is_begun_anew_on_purpose(declared: Path) -> None:
    move_ledger_away()
    with pytest.raises(LedgerUnavailable, match="`idios ledger create --reason"):
        run_text("query", MEDIAN_AGE, "--epsilon", "0.5")
    assert not Path("ledger.db").exists()
    run_text("ledger", "create", code=2)
    printed = " ".join(run_text("ledger", "create", "--reason", "the disk was lost").split())
    assert "Begun: 1 entry, all as signed" in printed
    assert "idios ledger forfeit" in printed
    assert "the disk was lost" in run_text("ledger", "show")
    assert run_json("query", MEDIAN_AGE, "--epsilon", "0.5")["remaining"] == "0.5"
    with pytest.raises(InvalidInput, match=r"there is a ledger in .* already"):
        run_text("ledger", "create", "--reason", "again")


@pytest.mark.parametrize("written", [FORMAT - 1, FORMAT + 1])
def test_a_ledger_of_another_format_is_left_alone(declared: Path, written: int) -> None:
    run_text("ledger", "backup", "monday.db")
    for name in ("ledger.db", "monday.db"):
        with closing(sqlite3.connect(name)) as base, base:
            base.execute(f"UPDATE idios_chain SET format = {written}")
    told = rf"has format {written}, this version of Idios reads format {FORMAT}: use the version that wrote it, or move"
    for command in (("balance",), ("verify",), ("backup", "tuesday.db")):
        with pytest.raises(LedgerError, match=told):
            run_text("ledger", *command)
    with pytest.raises(LedgerError, match=told):
        run_text("query", MEDIAN_AGE, "--epsilon", "0.25")
    assert not Path("tuesday.db").exists()
    move_ledger_away()
    with pytest.raises(LedgerError, match=told):
        run_text("ledger", "restore", "monday.db")


def test_a_backup_makes_no_ledger(declared: Path) -> None:
    for path in Path().glob("ledger.*"):
        path.unlink()
    with pytest.raises(LedgerUnavailable, match="there is no ledger in"):
        run_text("ledger", "backup", "monday.db")
    assert not list(Path().glob("*.db"))


def test_a_data_set_goes_on_with_concentrated_accounting(declared: Path) -> None:
    configure(delta="1e-6")
    with pytest.raises(LedgerError, match=r"idios ledger raise people --delta 0\.000001"):
        run_text("query", MEDIAN_AGE, "-e", "0.05")
    assert "budget ε = 1, δ = 0.000001; remaining ε = 0.5" in run_text("ledger", "raise", "people", "--delta", "1e-6")
    assert "ρ" not in run_text("ledger", "balance")
    run_text("ledger", "raise", "people", "--epsilon", "5")
    configure(budget="5", delta="1e-6")
    answer = run_json("query", MEDIAN_AGE, "-e", "0.05")
    [balance] = run_json("ledger", "balance")
    assert Fraction(balance["rho"]["spent"]) == Fraction(1, 8) + Fraction(answer["rho"])
    shown = run_text("ledger", "balance")
    assert "ρ is what concentrated accounting adds up" in shown
    assert "0.12625" in shown
    assert [row["rho"] for row in json.loads(run_text("ledger", "export"))] == ["0.125", "0.00125"]
    exported = run_text("ledger", "export", "--format", "csv").splitlines()
    assert [row["rho"] for row in csv.DictReader(exported)] == ["0.125", "0.00125"]
    assert "0.00125" in run_text("ledger", "show")


def test_rho_is_forfeited(declared: Path) -> None:
    configure(budget="5", delta="1e-6")
    for path in Path().glob("ledger.*"):
        path.unlink()
    run_text("query", MEDIAN_AGE, "-e", "0.05")
    left = Fraction(run_json("ledger", "balance")[0]["rho"]["remaining"])
    shown = run_text("ledger", "forfeit", "people", "--rho", "0.1", "--reason", "old backup")
    assert f"remaining ρ = {float(left) - 0.1:.6g}, which stands for ε = " in shown
    assert Fraction(run_json("ledger", "balance")[0]["rho"]["remaining"]) == left - Fraction(1, 10)


def test_caps_are_shown_with_their_rho(declared: Path) -> None:
    configure(budget="5", delta="1e-6")
    for path in Path().glob("ledger.*"):
        path.unlink()
    run_text("query", "SELECT COUNT(*) FROM people WHERE age > 30", "-e", "0.05")
    for name in ("ada", "bob"):
        run_text("analyst", "add", name)
    granted = run_text("analyst", "grant", "ada", "people", "--epsilon", "1")
    assert "remaining: ρ = 0.024356, which stands for ε = 1" in granted
    whole = Fraction(run_json("ledger", "balance")[0]["rho"]["remaining"])
    run_text("analyst", "grant", "bob", "people")
    ada, bob = run_json("analyst", "list")["grants"]
    assert Fraction(ada["rho"]["remaining"]) < Fraction(bob["rho"]["remaining"]) == whole
    shown = run_text("analyst", "list")
    assert "0.461815" in shown, "bob, who has no cap, sees what is left of the data set's"
    assert "0.024356" in shown

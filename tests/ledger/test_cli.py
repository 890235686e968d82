"""The ledger's commands as a controller uses them."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from idios.cli.main import app
from idios.errors import InvalidInput, LedgerError, LedgerTampered, LedgerUnavailable, NotPermitted
from idios.ledger import Ledger, Role
from tests.ledger.ledger_place import Place
from tests.ledger.old_ledger import use_next_format, write_old_ledger

CONFIGURATION = """
[ledger]
url = "sqlite:///ledger.db"
key_file = "ledger.key"

[datasets.people]
source = "people.csv"
budget = "{budget}"

[datasets.people.columns]
age = {{ type = "integer" }}
"""
MEDIAN = "SELECT MEDIAN(age) FROM people"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "people.csv").write_text("age\n" + "\n".join(map(str, range(20, 60))) + "\n")
    monkeypatch.chdir(tmp_path)
    configure()
    run("query", MEDIAN, "--epsilon", "0.5")
    return tmp_path


def configure(budget: str = "1") -> None:
    Path("idios.toml").write_text(CONFIGURATION.format(budget=budget))


def run(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, list(arguments))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result.output


def run_json(*arguments: str) -> Any:
    return json.loads(run(*arguments, "--json"))


def opened() -> Ledger:
    return Ledger.open("sqlite:///ledger.db", create=False)


def test_tokens_of_both_roles(folder: Path) -> None:
    with pytest.raises(NotPermitted, match="no analyst 'carol'"):
        run("analyst", "token", "carol")
    secret, *named = run("analyst", "token", "carol", "--controller").split()
    assert {"token", "carol,"} <= set(named)
    run("analyst", "add", "ada")
    run("analyst", "token", "ada")
    with opened() as ledger:
        assert ledger.authenticate(secret).role is Role.CONTROLLER
    tokens = run_json("analyst", "list")["tokens"]
    assert {(one["holder"], one["role"]) for one in tokens} == {("ada", "analyst"), ("carol", "controller")}
    assert all(one.keys() == {"token", "holder", "role", "expires"} for one in tokens)
    shown = run("analyst", "tokens")
    assert "controller" in shown
    assert secret not in shown


def test_a_grant_is_withdrawn(folder: Path) -> None:
    run("analyst", "add", "ada")
    run("analyst", "grant", "ada", "people", "--epsilon", "1")
    run("query", MEDIAN, "--epsilon", "0.5", "--analyst", "ada")
    assert "no longer ask about people" in run("analyst", "withdraw", "ada", "people")
    assert run_json("analyst", "list")["grants"] == []
    with pytest.raises(NotPermitted, match="withdrawn"):
        run("query", MEDIAN, "--epsilon", "0.5", "--analyst", "ada")
    run("analyst", "grant", "ada", "people", "--epsilon", "1")
    assert run_json("analyst", "list")["grants"][0]["spent"] == "0.5"


def test_what_was_lost_is_forfeited(folder: Path) -> None:
    assert "remaining ε = 0.2" in run("ledger", "forfeit", "people", "--epsilon", "0.3", "--reason", "old backup")
    account = run_json("ledger", "balance")[0]["epsilon"]
    assert (account["spent"], account["remaining"]) == ("0.8", "0.2")
    assert "old backup" in run("ledger", "show")
    run("ledger", "forfeit", "people", "--epsilon", "5", code=2)


def test_a_raise_needs_no_edit_and_allows_one(folder: Path) -> None:
    run("ledger", "raise", "people", "--epsilon", "3")
    assert run_json("query", "SELECT KTH_LARGEST(age, 2) FROM people", "--epsilon", "1")["remaining"] == "1.5"
    configure("2")
    with pytest.raises(LedgerError, match="before it was raised: ε = 1"):
        run("query", MEDIAN, "--epsilon", "0.5")
    configure("3")
    assert run_json("query", "SELECT KTH_LARGEST(age, 3) FROM people", "--epsilon", "1")["remaining"] == "0.5"


def test_backup_and_restore(folder: Path) -> None:
    said = run("ledger", "backup", "monday.db").splitlines()
    assert said[-1] == run("ledger", "head").strip()
    assert "The key file is not in it" in " ".join(said)
    with pytest.raises(InvalidInput, match="a ledger is never overwritten"):
        run("ledger", "restore", "monday.db")
    run("query", "SELECT KTH_LARGEST(age, 2) FROM people", "--epsilon", "0.25")
    anchor = run("ledger", "head").strip()
    move_ledger_away()
    lost = " ".join(run("ledger", "restore", "monday.db", "--anchor", anchor, code=1).split())
    assert "The chain ends at entry 3, the anchor is entry 5: 2 are missing. Answers given since" in lost
    assert "idios ledger forfeit" in lost
    assert "idios ledger retire" in lost
    run("ledger", "forfeit", "people", "--epsilon", "0.25", "--reason", "restored from monday.db")
    assert run_json("ledger", "balance")[0]["epsilon"]["remaining"] == "0.25"
    move_ledger_away()
    assert "missing" not in run("ledger", "restore", "monday.db", "--anchor", said[-1])
    move_ledger_away()
    assert "Nothing tells whether newer entries are missing" in " ".join(run("ledger", "restore", "monday.db").split())


def test_tables_that_were_changed_are_made_anew(folder: Path) -> None:
    with closing(sqlite3.connect("ledger.db")) as base, base:
        base.execute("UPDATE idios_datasets SET epsilon_spent = '0/1'")
    with pytest.raises(LedgerTampered, match="run `idios ledger verify`"):
        run("ledger", "balance")
    assert "epsilon_spent is 0/1, the chain says 1/2" in " ".join(run("ledger", "verify", code=1).split())
    assert "Rebuilt: 3 entries, all as signed" in run("ledger", "rebuild")
    assert run_json("ledger", "balance")[0]["epsilon"]["spent"] == "0.5"


def test_a_lost_ledger_is_begun_anew_on_purpose(folder: Path) -> None:
    move_ledger_away()
    with pytest.raises(LedgerUnavailable, match="`idios ledger create --reason"):
        run("query", MEDIAN, "--epsilon", "0.5")
    assert not Path("ledger.db").exists()
    run("ledger", "create", code=2)
    said = " ".join(run("ledger", "create", "--reason", "the disk was lost").split())
    assert "Begun: 1 entries, all as signed" in said
    assert "idios ledger forfeit" in said
    assert "the disk was lost" in run("ledger", "show")
    assert run_json("query", MEDIAN, "--epsilon", "0.5")["remaining"] == "0.5"
    with pytest.raises(InvalidInput, match=r"there is a ledger in .* already"):
        run("ledger", "create", "--reason", "again")


def move_ledger_away() -> None:
    for path in Path().glob("ledger.db*"):
        path.unlink()


def test_an_older_ledger_is_backed_up_and_upgraded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_next_format(monkeypatch)
    move_ledger_away()
    write_old_ledger(Place("sqlite", f"sqlite:///{folder / 'ledger.db'}", folder / "ledger.key"))
    with pytest.raises(LedgerError, match="run `idios ledger upgrade`; make a backup first"):
        run("ledger", "balance")
    run("ledger", "backup", "before.db")
    assert "Upgraded: 19 entries, all as signed" in run("ledger", "upgrade")
    assert "Nothing to do: 19 entries, all as signed" in run("ledger", "upgrade")
    move_ledger_away()
    assert "run `idios ledger upgrade`" in run("ledger", "restore", "before.db")

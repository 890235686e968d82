"""``idios analyst``: analysts, grants and tokens."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from idios.errors import (
    BudgetExceeded,
    NotPermitted,
)
from idios.ledger import Ledger, Role
from tests.cli.runner import MEDIAN, MEDIAN_AGE, run, run_json, run_text


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


def test_a_token_comes_with_its_name(folder: Path) -> None:
    run("init", "people.csv", "--yes", "--bounds", "age=0..120")
    issued = run("analyst", "token", "carla", "--controller", "--days", "7")
    [secret] = issued.stdout.split()
    with Ledger.open(f"sqlite:///{folder}/ledger.db", folder / "ledger.key") as ledger:
        [token] = ledger.tokens()
        assert ledger.authenticate(secret).token == token.token
    assert f"token {token.token} of carla, valid until {token.expires[:10]}" in issued.stderr


def test_tokens_of_both_roles(declared: Path) -> None:
    with pytest.raises(NotPermitted, match="no analyst 'carol'"):
        run_text("analyst", "token", "carol")
    secret, *named = run_text("analyst", "token", "carol", "--controller").split()
    assert {"token", "carol,"} <= set(named)
    run_text("analyst", "add", "ada")
    run_text("analyst", "token", "ada")
    with Ledger.open("sqlite:///ledger.db", create=False) as ledger:
        assert ledger.authenticate(secret).role is Role.CONTROLLER
    tokens = run_json("analyst", "list")["tokens"]
    assert {(one["holder"], one["role"]) for one in tokens} == {("ada", "analyst"), ("carol", "controller")}
    assert all(one.keys() == {"token", "holder", "role", "expires"} for one in tokens)
    shown = run_text("analyst", "tokens")
    assert "controller" in shown
    assert secret not in shown


def test_a_grant_is_withdrawn(declared: Path) -> None:
    run_text("analyst", "add", "ada")
    run_text("analyst", "grant", "ada", "people", "--epsilon", "1")
    run_text("query", MEDIAN_AGE, "--epsilon", "0.5", "--analyst", "ada")
    assert "no longer ask about people" in run_text("analyst", "withdraw", "ada", "people")
    assert run_json("analyst", "list")["grants"] == []
    with pytest.raises(NotPermitted, match="withdrawn"):
        run_text("query", MEDIAN_AGE, "--epsilon", "0.5", "--analyst", "ada")
    run_text("analyst", "grant", "ada", "people", "--epsilon", "1")
    assert run_json("analyst", "list")["grants"][0]["spent"] == "0.5"


def test_a_cap_above_the_budget_is_warned_of(declared: Path) -> None:
    run_text("analyst", "add", "ada")
    assert "above the budget" not in run("analyst", "grant", "ada", "people", "--epsilon", "1").stderr
    assert "above the budget of people" in run("analyst", "grant", "ada", "people", "--epsilon", "1000").stderr

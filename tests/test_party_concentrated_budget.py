"""A party with concentrated accounting and a real ledger: what is let in, what it costs, and what came before."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from idios.core.concentrated import convert_to_epsilon, find_largest_rho, pure_rho, range_rho
from idios.errors import BudgetExceeded
from idios.model import Account
from idios.party import TrustedParty

F = Fraction
DELTA = F(1, 10**6)
MOST = find_largest_rho(F(5), DELTA)  # 0.463
EACH = F(1, 2)
COLUMNS = {"x": {"type": "integer", "bounds": [0, 99], "nullable": False}}
CONCENTRATED = {"budget": {"epsilon": 5, "delta": "1e-6"}, "accounting": "concentrated"}


def count(least: int) -> str:
    return f"SELECT COUNT(*) FROM t WHERE x >= {least}"


def median(least: int) -> str:
    return f"SELECT MEDIAN(x) FROM t WHERE x >= {least}"


def open_party(ledger: Path | None = None, **declared: Any) -> TrustedParty:
    declared = {"protection": "differential", "check": 0, **CONCENTRATED, **declared}
    data = {"x": list(range(100)) * 5}
    return TrustedParty.open(data, name="t", version="1", columns=COLUMNS, ledger=ledger, **declared)


@pytest.fixture
def party(tmp_path: Path) -> Iterator[TrustedParty]:
    with open_party(tmp_path / "ledger.db") as party:
        yield party


def ask_until_refused(party: TrustedParty, question: Any, first: int = 1) -> int:
    """How often one after another is answered."""
    for asked in range(60):
        try:
            party.query(question(first + asked), EACH)
        except BudgetExceeded:
            return asked
    raise AssertionError("never refused")


def spent_rho(party: TrustedParty) -> Account:
    account = party.ledger.balance("t").rho
    assert account is not None
    return account


@pytest.mark.parametrize(("question", "rho"), [(count, pure_rho(EACH)), (median, range_rho(EACH))])
def test_questions_are_refused_once_rho_is_spent(party: TrustedParty, question: Any, rho: Fraction) -> None:
    assert ask_until_refused(party, question) == MOST // rho
    assert spent_rho(party) == Account(MOST, MOST // rho * rho)
    assert MOST // rho in (3, 14)
    again = party.query(question(1), EACH)
    assert again.stored
    assert spent_rho(party) == Account(MOST, MOST // rho * rho), "a stored answer is free"
    assert party.ledger.verify().ok


def test_noise_that_has_epsilon_and_noise_that_has_none(party: TrustedParty) -> None:
    for least in (1, 2):
        party.query(count(least), EACH)
    left = MOST - 2 * pure_rho(EACH)
    assert ask_until_refused(party, median) == left // range_rho(EACH)
    assert not party.ledger.balance("t").pure


@pytest.mark.parametrize("sql", [count(1), median(1)])
def test_a_dear_question_is_let_in_until_something_has_no_epsilon(sql: str, party: TrustedParty) -> None:
    """ρ of ε = 2 is too much, ε = 2 is not; Gaussian noise has no ε that it could be added to."""
    plan = party.make_plan(sql, 2)
    assert plan.pure
    assert plan.rho > MOST
    assert party.quote(sql, 2).shortage is None
    party.query(sql, 2)
    with open_party() as other:
        other.query(count(9), EACH)
        assert other.quote(sql, 2).shortage is not None
        with pytest.raises(BudgetExceeded) as refused:
            other.query(sql, 2)
    assert (refused.value.quantity, refused.value.requested) == ("rho", plan.rho)


@pytest.mark.parametrize("sql", [count(1), median(1), "SELECT COUNT(*), SUM(x), MEDIAN(x) FROM t WHERE x > 1"])
@pytest.mark.parametrize("declared", [{}, {"protection": "individual"}, {"protection": "group", "group": 2}], ids=str)
def test_what_is_quoted_is_charged(sql: str, declared: dict[str, Any]) -> None:
    with open_party(**declared) as party:
        before = party.ledger.balance("t")
        quote = party.quote(sql, EACH)
        answer = party.query(sql, EACH)
        after = party.ledger.balance("t")
        assert before.rho is not None
        assert after.rho is not None
        assert after.rho.spent - before.rho.spent == quote.rho == answer.rho > 0
        assert after.epsilon.spent - before.epsilon.spent == quote.cost == answer.epsilon
        assert after.pure == quote.pure
        assert quote.guarantee == answer.guarantee
        assert (quote.remaining_rho_before, quote.remaining_rho_after) == (before.rho.remaining, after.rho.remaining)
        assert (quote.remaining_before, quote.remaining_after) == (before.left, after.left)
        assert answer.remaining_rho == after.rho.remaining
        assert (party.quote(sql, EACH).cost, party.quote(sql, EACH).rho) == (0, 0), "it is stored"


def test_what_was_asked_with_pure_accounting_counts_with_its_rho(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with open_party(path, budget=5, accounting="pure") as party:
        first = party.query(median(1), EACH)
        party.query(count(1), EACH)
        assert party.ledger.balance("t").rho is None
        party.ledger.raise_budget("t", delta=DELTA)
    with open_party(path) as party:
        before = pure_rho(EACH) + range_rho(EACH)
        assert spent_rho(party) == Account(MOST, before)
        again = party.query(median(1), EACH)
        assert again.stored
        assert again.value == first.value
        assert spent_rho(party) == Account(MOST, before)
        assert ask_until_refused(party, count, 2) == (MOST - before) // pure_rho(EACH)
        spent = spent_rho(party).spent
        assert convert_to_epsilon(spent, DELTA) <= 5
        assert party.ledger.verify().ok

"""Forfeiting: what no entry accounts for counts as spent."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

from idios.errors import BudgetExceeded, InvalidInput, NotPermitted
from idios.ledger import Ledger, StoredAnswer
from tests.ledger.ledger_place import Place, ask
from tests.ledger.ledger_worker import table


def test_what_is_forfeited_is_spent(ledger: Ledger) -> None:
    ledger.raise_budget("people", delta=Fraction(1, 10))
    balance = ledger.forfeit("people", epsilon=Fraction(3, 4), delta=Fraction(1, 10), reason="restored")
    assert (balance.epsilon.spent, balance.delta.spent) == (Fraction(3, 4), Fraction(1, 10))
    with pytest.raises(BudgetExceeded):
        ledger.reserve(ask(epsilon="1/2"))
    ledger.reserve(ask(epsilon="1/4"))
    assert ledger.balance("people", "bob").epsilon.spent == 0  # whose question it was is unknown
    (entry,) = ledger.entries(kinds=("forfeited",))
    assert json.loads(entry.payload) == {
        "dataset": "people",
        "delta": "1/10",
        "epsilon": "3/4",
        "reason": "restored",
    }
    assert ledger.verify().ok


def test_more_than_the_budget_can_be_forfeited(ledger: Ledger) -> None:
    stored = ledger.release(ledger.reserve(ask()), table("{}"))  # type: ignore[arg-type]
    balance = ledger.forfeit("people", epsilon=Fraction(7), reason="ε = 7 since the backup")
    assert (balance.epsilon.spent, balance.epsilon.remaining) == (Fraction("7.25"), 0)
    with pytest.raises(BudgetExceeded, match=r"ε = 0\.000001 asked, 0 left of 1") as caught:
        ledger.reserve(ask("fresh", "0.000001"))
    assert caught.value.remaining == 0
    assert ledger.reserve(ask()) == stored
    assert isinstance(ledger.reserve(ask(analyst="ada")), StoredAnswer)
    ledger.raise_budget("people", epsilon=Fraction(8))
    assert ledger.balance("people").epsilon.remaining == Fraction(3, 4)
    ledger.rebuild()
    assert ledger.balance("people").epsilon.spent == Fraction("7.25")


def test_a_retired_data_set_can_forfeit_too(ledger: Ledger) -> None:
    ledger.retire("people")
    assert ledger.forfeit("people", epsilon=Fraction(1), reason="late").epsilon.remaining == 0


def test_what_cannot_be_forfeited(ledger: Ledger) -> None:
    before = ledger.head()
    for refused, message in (
        ({"epsilon": Fraction(0)}, "an ε, a δ or a ρ above 0"),
        ({"epsilon": Fraction(-1)}, "epsilon must be between"),
        ({"epsilon": 0.5}, "epsilon must be an exact Fraction"),
        ({"epsilon": Fraction(1), "delta": Fraction(-1)}, "delta must be between"),
        ({"epsilon": Fraction(1), "reason": ""}, "a reason is a line of 1 to 1000 printable characters"),
        ({"epsilon": Fraction(1), "reason": "  "}, "a reason is a line"),
        ({"epsilon": Fraction(1), "reason": "a\nb"}, "a reason is a line"),
        ({"epsilon": Fraction(1), "reason": "x" * 1001}, "a reason is a line"),
        ({"epsilon": Fraction(1), "reason": None}, "a reason is a line"),
    ):
        with pytest.raises(InvalidInput, match=message):
            ledger.forfeit("people", **({"reason": "why"} | refused))  # type: ignore[arg-type]
    with pytest.raises(NotPermitted, match="no data set 'nowhere'"):
        ledger.forfeit("nowhere", epsilon=Fraction(1), reason="why")
    assert ledger.head() == before


def test_a_forfeit_that_was_made_smaller_is_found(place: Place, ledger: Ledger) -> None:
    ledger.forfeit("people", epsilon=Fraction(1, 2), reason="why")
    number = ledger.head().sequence
    place.execute("UPDATE idios_entries SET payload = REPLACE(payload, '1/2', '1/9') WHERE kind = 'forfeited'")
    assert ledger.verify().sequence == number

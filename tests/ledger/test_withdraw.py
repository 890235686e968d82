"""A grant can be withdrawn: nothing more is given, nothing spent is forgotten."""

from __future__ import annotations

from fractions import Fraction

import pytest

from idios.errors import NotPermitted
from idios.ledger import Ledger, Reservation, StoredAnswer
from tests.ledger.ledger_place import ask, kinds
from tests.ledger.ledger_worker import table

WITHDRAWN = r"'bob' has no grant on data set 'people' any more: it was withdrawn \(entry \d+\).*idios analyst grant"


def answered(ledger: Ledger, question: str = "median(income)") -> StoredAnswer:
    charge = ledger.reserve(ask(question, analyst="bob"))
    assert isinstance(charge, Reservation)
    return ledger.release(charge, table("{}"))


def test_a_withdrawn_grant_is_no_grant(ledger: Ledger) -> None:
    paid = answered(ledger)
    ledger.withdraw("bob", "people")
    for refused in (
        lambda: ledger.reserve(ask(analyst="bob")),
        lambda: ledger.reserve(ask("max(age)", analyst="bob")),
        lambda: ledger.price(ask(analyst="bob")),
        lambda: ledger.balance("people", "bob"),
    ):
        with pytest.raises(NotPermitted, match=WITHDRAWN):
            refused()
    assert [balance.analyst for balance in ledger.grants()] == ["ada"]
    assert ledger.answers(analyst="bob") == [paid]
    assert ledger.balance("people").epsilon.spent == Fraction(1, 4)
    assert ledger.verify().ok


def test_a_new_grant_goes_on_from_the_old_spending(ledger: Ledger) -> None:
    answered(ledger)
    ledger.withdraw("bob", "people")
    balance = ledger.grant("bob", "people", epsilon=Fraction(1, 2))  # the caps that were withdrawn
    assert (balance.epsilon.spent, balance.epsilon.remaining) == (Fraction(1, 4), Fraction(1, 4))
    assert isinstance(ledger.reserve(ask(analyst="bob")), StoredAnswer)
    assert ledger.balance("people", "bob").epsilon.spent == Fraction(1, 4)
    assert kinds(ledger)[-2:] == ["withdrawn", "granted"]
    ledger.rebuild()
    assert ledger.balance("people", "bob") == balance


def test_a_question_that_is_being_computed_is_still_stored(ledger: Ledger) -> None:
    charge = ledger.reserve(ask(analyst="bob"))
    assert isinstance(charge, Reservation)
    ledger.withdraw("bob", "people")
    answer = ledger.release(charge, table("{}"))
    assert ledger.answers(analyst="bob") == [answer]


def test_withdrawing_twice_or_nothing(ledger: Ledger) -> None:
    ledger.withdraw("bob", "people")
    ledger.withdraw("bob", "people")
    assert kinds(ledger).count("withdrawn") == 1
    with pytest.raises(NotPermitted, match="'eve' has no grant on data set 'people'; "):
        ledger.withdraw("eve", "people")
    with pytest.raises(NotPermitted, match="no analyst 'mallory'"):
        ledger.withdraw("mallory", "people")
    with pytest.raises(NotPermitted, match="no data set 'nowhere'"):
        ledger.withdraw("bob", "nowhere")


def test_a_retired_data_sets_grants_can_be_withdrawn(ledger: Ledger) -> None:
    ledger.retire("people")
    ledger.withdraw("bob", "people")
    assert [balance.analyst for balance in ledger.grants()] == ["ada"]
    assert ledger.verify().ok

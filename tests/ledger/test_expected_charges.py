"""Whether a request is likely to be charged is guessed from memory: it saves a transaction, and decides nothing."""

from __future__ import annotations

from fractions import Fraction

import pytest

from idios.errors import BudgetExceeded, KeyReused, LedgerTampered, NotPermitted
from idios.ledger import ChargeRequest, Ledger, Reservation, StoredAnswer
from idios.ledger.rules import expects_charge
from tests.ledger.ledger_place import Place, ask, kinds
from tests.ledger.ledger_worker import table


def answer(ledger: Ledger, request: ChargeRequest) -> StoredAnswer:
    charged = ledger.reserve(request)
    assert isinstance(charged, Reservation)
    return ledger.release(charged, table("{}"))


def expected(ledger: Ledger, request: ChargeRequest) -> bool:
    return expects_charge(ledger._transactions.remembered, request)


def test_what_is_known_to_be_stored_or_refused_waits_for_no_writer(ledger: Ledger) -> None:
    answer(ledger, ask("stored", "1/4", analyst="ada"))
    with ledger._database.lock.hold(1):
        stored = ledger.reserve(ask("stored", "1/4", analyst="ada"))
        assert isinstance(stored, StoredAnswer)
        assert stored.balance is not None
        assert stored.balance.epsilon.spent == Fraction(1, 4)
        with pytest.raises(BudgetExceeded):
            ledger.reserve(ask("too much", "7/8", analyst="ada"))
        with pytest.raises(NotPermitted):
            ledger.reserve(ask("not granted", "1/8", analyst="eve"))


def test_what_another_process_did_counts_whatever_was_expected(place: Place, ledger: Ledger) -> None:
    answer(ledger, ask("known", "1/8"))
    with place.open() as other:
        answer(other, ask("elsewhere", "1/4"))
        other.reserve(ask("open", "1/4"))
        other.withdraw("ada", "people")
    assert expected(ledger, ask("elsewhere", "1/4"))
    assert isinstance(ledger.reserve(ask("elsewhere", "1/4")), StoredAnswer)
    joined = ledger.reserve(ask("open", "1/4"))
    assert isinstance(joined, Reservation)
    assert joined.joined
    assert kinds(ledger).count("reserved") == 3
    with place.open() as other:
        other.reserve(ask("the rest", "3/8"))
    assert expected(ledger, ask("more", "1/8"))
    with pytest.raises(BudgetExceeded):
        ledger.reserve(ask("more", "1/8"))
    assert not expected(ledger, ask("never", "1/8", analyst="eve"))
    with pytest.raises(NotPermitted):
        ledger.reserve(ask("withdrawn", "1/8", analyst="ada"))
    assert ledger.verify().ok


def test_a_key_that_was_used_is_refused_where_a_charge_is_expected(ledger: Ledger) -> None:
    ledger.reserve(ask("one", "1/8"), idempotency_key="k")
    assert expected(ledger, ask("two", "1/8"))
    with pytest.raises(KeyReused):
        ledger.reserve(ask("two", "1/8"), idempotency_key="k")
    assert kinds(ledger).count("reserved") == 1


def test_a_row_that_was_changed_is_found_where_a_charge_is_expected(place: Place, ledger: Ledger) -> None:
    answer(ledger, ask("one", "1/2"))
    place.execute("UPDATE idios_datasets SET epsilon_spent = '0/1'")
    assert expected(ledger, ask("two", "1/4"))
    with pytest.raises(LedgerTampered):
        ledger.reserve(ask("two", "1/4"))
    assert kinds(ledger).count("reserved") == 1

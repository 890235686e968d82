"""A caller's own key for a request: repeated it changes nothing, with another question it is refused."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest

from idios.errors import BudgetExceeded, InvalidInput, KeyReused, LedgerError
from idios.ledger import Ledger, Reservation, StoredAnswer
from tests.ledger.ledger_place import Place, ask, kinds, people
from tests.ledger.ledger_worker import table

ROWS = "SELECT caller, idempotency_key, question_key FROM idios_idempotency_keys ORDER BY caller, idempotency_key"


def test_a_repeated_request_joins_and_then_gets_the_stored_answer(place: Place, ledger: Ledger) -> None:
    first = ledger.reserve(ask(analyst="bob"), idempotency_key="k1")
    again = ledger.reserve(ask(analyst="bob"), idempotency_key="k1")
    assert isinstance(first, Reservation)
    assert isinstance(again, Reservation)
    assert again.joined
    answer = ledger.release(first, table("{}"))
    assert ledger.reserve(ask(analyst="bob"), idempotency_key="k1") == answer
    assert ledger.reserve(ask(analyst="bob"), idempotency_key="k2") == answer  # another key for the same question
    assert kinds(ledger).count("reserved") == 1
    assert place.execute(ROWS) == [("analyst:bob", "k1", first.key)]


def test_only_what_is_charged_is_remembered(place: Place, ledger: Ledger) -> None:
    charge = ledger.reserve(ask(analyst="bob"), idempotency_key="k1")
    assert isinstance(charge, Reservation)
    for number in range(3):
        assert isinstance(
            ledger.reserve(ask(analyst="bob"), idempotency_key=f"while it is computed {number}"), Reservation
        )
    ledger.release(charge, table("{}"))
    for number in range(3):
        assert isinstance(
            ledger.reserve(ask(analyst="bob"), idempotency_key=f"when it is stored {number}"), StoredAnswer
        )
    assert place.execute(ROWS) == [("analyst:bob", "k1", charge.key)]
    ledger.reserve(ask(analyst="ada"), idempotency_key="k2")  # ada pays for it, out of a cap of their own
    assert [row[1] for row in place.execute(ROWS)] == ["k2", "k1"]
    with pytest.raises(KeyReused):
        ledger.reserve(ask("max(age)", analyst="bob"), idempotency_key="k1")


@pytest.mark.parametrize("other", [ask("max(age)", analyst="bob"), ask(epsilon="1/5", analyst="bob")])
def test_a_key_with_another_question_is_refused(ledger: Ledger, other: object) -> None:
    ledger.reserve(ask(analyst="bob"), idempotency_key="k1")
    before = ledger.head()
    with pytest.raises(KeyReused, match=r"key 'k1' was used before .*choose a new key.*nothing was charged"):
        ledger.reserve(other, idempotency_key="k1")  # type: ignore[arg-type]
    assert ledger.head() == before
    assert ledger.balance("people").epsilon.spent == Fraction(1, 4)


def test_callers_do_not_share_keys(ledger: Ledger) -> None:
    ledger.add_analyst("controller")
    ledger.grant("controller", "people")
    for number, analyst in enumerate((None, "controller", "ada", "bob")):
        charge = ledger.reserve(ask(f"question {number}", analyst=analyst), idempotency_key="k1")
        assert isinstance(charge, Reservation)
        assert not charge.joined


def test_a_refused_request_leaves_its_key_free(place: Place, ledger: Ledger) -> None:
    with pytest.raises(BudgetExceeded):
        ledger.reserve(ask(epsilon=2), idempotency_key="k1")
    assert place.execute(ROWS) == []
    assert isinstance(ledger.reserve(ask(), idempotency_key="k1"), Reservation)


def test_key_and_charge_are_one_transaction(place: Place, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    # The charge is written first. A key that cannot be written then takes it back.
    def full(*_: object) -> None:
        raise LedgerError("no room")

    with monkeypatch.context() as patch:
        patch.setattr("idios.ledger.ledger.remember_key", full)
        with pytest.raises(LedgerError, match="no room"):
            ledger.reserve(ask(), idempotency_key="k1")
    assert ledger.balance("people").epsilon.spent == 0
    assert kinds(ledger).count("reserved") == 0
    assert isinstance(ledger.reserve(ask("max(age)"), idempotency_key="k1"), Reservation)
    assert place.execute(ROWS) == [("controller", "k1", ask("max(age)").key)]


def test_keys_are_forgotten_after_a_month(place: Place) -> None:
    now = datetime(2026, 11, 15, tzinfo=UTC)
    with place.open(clock=lambda: now) as ledger:
        ledger.declare(people())
        ledger.reserve(ask(), idempotency_key="old")
        now += timedelta(days=29)
        ledger.reserve(ask("min(age)"), idempotency_key="young")
        with pytest.raises(KeyReused):
            ledger.reserve(ask("max(age)"), idempotency_key="old")
        now += timedelta(days=2)
        ledger.reserve(ask("max(age)"), idempotency_key="new")
        assert [row[1] for row in place.execute(ROWS)] == ["new", "young"]
        ledger.reserve(ask("sum(age)"), idempotency_key="old")


@pytest.mark.parametrize("key", ["", "x" * 201, "a\nb", "ε", "\x00", 5])
def test_keys_that_are_refused(ledger: Ledger, key: str) -> None:
    with pytest.raises(InvalidInput, match="a request's key is 1 to 200 printable ASCII characters"):
        ledger.reserve(ask(), idempotency_key=key)
    assert ledger.balance("people").epsilon.spent == 0


def test_the_chain_knows_nothing_of_keys(place: Place, ledger: Ledger) -> None:
    ledger.release(ledger.reserve(ask(), idempotency_key="k1"), table("{}"))  # type: ignore[arg-type]
    ledger.rebuild()
    assert len(place.execute(ROWS)) == 1
    place.execute("DELETE FROM idios_idempotency_keys")
    assert ledger.verify().ok
    assert isinstance(ledger.reserve(ask(), idempotency_key="k1"), StoredAnswer)


def test_one_key_for_two_questions_at_once(ledger: Ledger) -> None:
    outcomes: list[str] = []
    barrier = threading.Barrier(6)

    def reserve(number: int) -> None:
        barrier.wait()
        try:
            ledger.reserve(ask(f"question {number}", "1/10"), idempotency_key="k1")
            outcomes.append("charged")
        except KeyReused:
            outcomes.append("refused")

    threads = [threading.Thread(target=reserve, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["charged"] + ["refused"] * 5
    assert ledger.balance("people").epsilon.spent == Fraction(1, 10)

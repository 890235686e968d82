"""What was charged over time: every charge once, read once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

import pytest

from idios.errors import LedgerTampered
from idios.ledger import Declaration, Ledger, Spending, Step, history
from tests.ledger.ledger_place import Place, ask, people


def test_nothing_was_spent(ledger: Ledger) -> None:
    for dataset in ("people", "unknown"):
        assert ledger.spending(dataset) == Spending()


def test_charges_count_for_whoever_asked_first(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "READ_AT_ONCE", 2)
    ledger.declare(Declaration("animals", "1", Fraction(1)))
    for question, epsilon, analyst in (
        ("one", "1/4", "ada"),
        ("one", "1/4", "bob"),  # charged to their own budget only
        ("two", "1/7", None),
        ("three", "1/9", "ada"),
        ("four", "1/11", "bob"),
    ):
        ledger.reserve(ask(question, epsilon, analyst=analyst))
    ledger.forfeit("people", epsilon=Fraction(1, 100), reason="restored from an old backup")
    found = ledger.spending("people")
    paid = [
        ("ada", Fraction(1, 4)),
        (None, Fraction(1, 7)),
        ("ada", Fraction(1, 9)),
        ("bob", Fraction(1, 11)),
        (None, Fraction(1, 100)),
    ]
    times = [one.time for one in ledger.entries(kinds=("reserved", "forfeited"))]
    assert found.began == times[0]
    assert found.steps == tuple(
        Step(time, {who: epsilon}, {who: epsilon**2 / 2}) for time, (who, epsilon) in zip(times, paid, strict=True)
    )
    assert found.epsilon == {"ada": Fraction(13, 36), None: Fraction(107, 700), "bob": Fraction(1, 11)}
    assert found.charges == {"ada": 2, None: 2, "bob": 1}
    assert sum(found.epsilon.values()) == ledger.balance("people").epsilon.spent
    assert sum(found.rho.values()) == sum(epsilon**2 / 2 for _, epsilon in paid)
    assert ledger.spending("animals") == Spending()


def test_what_was_read_is_not_read_again(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    original = history.read_entries

    def spied(*given: Any, **options: Any) -> Any:
        found = original(*given, **options)
        read.extend(entry.sequence for entry in found)
        return found

    monkeypatch.setattr(history, "read_entries", spied)
    with place.open() as ledger, place.open() as other:
        ledger.declare(people())
        for number in range(3):
            ledger.reserve(ask(f"question {number}", "1/8"))
            assert sum(other.spending("people").epsilon.values()) == Fraction(number + 1, 8)
            assert other.spending("people").charges == {None: number + 1}
        assert read == [2, 3, 4]


def test_many_charges_share_steps(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "STEPS", 4)
    now = [datetime(2026, 11, 15, tzinfo=UTC)]
    with place.open(clock=lambda: now[0]) as ledger:
        ledger.declare(people(100))
        ledger.add_analyst("ada")
        ledger.grant("ada", "people")
        held = []
        for number in range(1, 12):
            now[0] += timedelta(minutes=1)
            ledger.reserve(ask(f"question {number}", number, analyst="ada" if number % 3 == 0 else None))
            held.append(len(ledger.spending("people").steps))
        assert held == [1, 2, 3, 4, 3, 3, 4, 4, 3, 3, 3]
        found = ledger.spending("people")
        assert found.began == "2026-11-15T00:01:00.000000Z"
        assert [step.time[14:16] for step in found.steps] == ["04", "08", "11"]
        assert [step.epsilon for step in found.steps] == [
            {None: 7, "ada": 3},
            {None: 20, "ada": 6},
            {None: 21, "ada": 9},
        ]
        assert found.epsilon == {None: 48, "ada": 18}
        assert [step.rho[None] for step in found.steps] == [Fraction(21, 2), 69, Fraction(221, 2)]
        assert found.rho == {None: 190, "ada": 63}
        with place.open() as other:
            assert other.spending("people") == found


def test_a_chain_that_was_replaced_is_read_anew(place: Place, ledger: Ledger) -> None:
    for number in range(2):
        ledger.reserve(ask(f"question {number}", "1/8"))
    assert sum(ledger.spending("people").epsilon.values()) == Fraction(1, 4)
    place.execute("DELETE FROM idios_entries WHERE sequence = (SELECT MAX(sequence) FROM idios_entries)")
    assert sum(ledger.spending("people").epsilon.values()) == Fraction(1, 8)


def test_an_entry_that_cannot_be_read_is_told(place: Place, ledger: Ledger) -> None:
    ledger.reserve(ask("one", "1/8"))
    ledger.reserve(ask("two", "1/8"))
    last = ledger.head().sequence
    (payload,) = place.execute(f"SELECT payload FROM idios_entries WHERE sequence = {last}")[0]
    place.execute(f"UPDATE idios_entries SET payload = '{{}}' WHERE sequence = {last}")
    for _ in range(2):
        with pytest.raises(LedgerTampered, match=f"entry {last} cannot be read"):
            ledger.spending("people")
    place.execute(f"UPDATE idios_entries SET payload = :payload WHERE sequence = {last}", payload=payload)
    assert ledger.spending("people").charges == {None: 2}

"""Finding entries, paging through answers, and the history of a budget."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import pytest

from idios.errors import InvalidInput
from idios.ledger import Ledger, Reservation, Role, StoredAnswer
from tests.ledger.ledger_place import Place, ask, people
from tests.ledger.ledger_worker import table


@pytest.fixture
def ledger(place: Place) -> Iterator[Ledger]:
    with place.open() as opened:
        opened.declare(people(10))  # 1
        opened.declare(replace(people(10), dataset="People"))  # 2
        opened.add_analyst("ada")  # 3
        opened.add_analyst("Zoë")  # 4
        opened.grant("ada", "people")  # 5
        opened.grant("Zoë", "People", epsilon=Fraction(5))  # 6
        charge = opened.reserve(ask("median(100%_income)", analyst="ada"))  # 7
        assert isinstance(charge, Reservation)
        opened.fail(charge, "Connection LOST")  # 8
        opened.release(charge, table('{"value": "É!"}'))  # 9
        other = opened.reserve(replace(ask("max(x)", "1/3", analyst="Zoë"), dataset="People"))  # 10
        assert isinstance(other, Reservation)
        opened.release(other, table('{"dataset":"people"}'))  # 11
        opened.issue_token("ada")  # 12
        opened.revoke_token(opened.tokens()[0].token)  # 13
        opened.issue_token("ada", role=Role.CONTROLLER)  # 14
        opened.forfeit("people", epsilon=Fraction(1, 2), reason="back\\slash")  # 15
        yield opened


def numbers(ledger: Ledger, **conditions: object) -> list[int]:
    return [entry.sequence for entry in ledger.search(**conditions)]  # type: ignore[arg-type]


def test_newest_first_in_pages(ledger: Ledger) -> None:
    assert numbers(ledger) == list(range(15, 0, -1))
    assert numbers(ledger, limit=4) == [15, 14, 13, 12]
    assert numbers(ledger, limit=4, before=12) == [11, 10, 9, 8]
    assert numbers(ledger, before=1) == []
    assert numbers(ledger, limit=0) == []
    assert ledger.search(limit=1)[0] == ledger.entries(after=14)[0]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("connection lost", [8]),
        ("CONNECTION", [8]),
        ("100%_income", [7]),
        ("100%", [7]),
        ("0%_", [7]),
        ("%", [7]),
        ("_income", [7]),
        ("1__%", []),
        ("!", [9]),
        ("é!", [9]),
        ("É", [9]),
        ("zoë", [10, 6, 4]),
        ("ZOË", [10, 6, 4]),
        ("Zoë", [10, 6, 4]),
        ("RELEASED", [11, 9]),
        ('{"value"', [9]),
        ("back\\slash", [15]),
        ("\\", [15]),
        ("\x00", []),
        ("\ud800", []),
        ("no such text", []),
    ],
)
def test_text_is_found_as_it_is(ledger: Ledger, text: str, found: list[int]) -> None:
    assert numbers(ledger, text=text) == found


def test_by_data_set(ledger: Ledger) -> None:
    assert numbers(ledger, dataset="people") == [15, 9, 8, 7, 5, 1]
    assert numbers(ledger, dataset="People") == [11, 10, 6, 2]
    assert numbers(ledger, dataset="peopl_") == []


def test_answers_and_failures_are_found_by_their_numbers(ledger: Ledger) -> None:
    charge = ledger.reserve(ask("min(x)", "1/9", analyst="ada"))  # 16
    assert isinstance(charge, Reservation)
    ledger.fail(charge, "first")  # 17
    ledger.fail(charge, f'{{"dataset":"People","key":"{charge.key}"}}')  # 18: what a detail says does not count
    stored = ledger.reserve(ask("median(100%_income)", analyst="ada"))
    assert isinstance(stored, StoredAnswer)
    ledger.release(charge, table(stored.key))  # 19: nor does an answer that is another question's key
    assert numbers(ledger, dataset="people", kinds=("failed", "released")) == [19, 18, 17, 9, 8]
    assert numbers(ledger, dataset="People", kinds=("failed", "released")) == [11]
    assert numbers(ledger, analyst="ada", kinds=("failed", "released")) == [19, 18, 17, 9, 8]
    assert ledger.verify().ok


def test_by_analyst(ledger: Ledger) -> None:
    assert numbers(ledger, analyst="ada") == [13, 12, 9, 8, 7, 5, 3]
    assert numbers(ledger, analyst="Zoë") == [11, 10, 6, 4]
    assert numbers(ledger, analyst="ADA") == []


def test_conditions_are_all_met(ledger: Ledger) -> None:
    assert numbers(ledger, dataset="people", kinds=("reserved", "released")) == [9, 7]
    assert numbers(ledger, dataset="people", analyst="Zoë") == []
    assert numbers(ledger, text="median", analyst="ada", before=8, limit=1) == [7]


def test_a_search_is_refused(ledger: Ledger) -> None:
    for conditions in (
        {"kinds": ("grunted",)},
        {"dataset": "a\x00b"},
        {"analyst": ""},
        {"text": "x" * 1001},
        {"text": None},
        {"before": -1},
        {"before": 2**63},
        {"limit": 1001},
        {"limit": -1},
        {"limit": True},
    ):
        with pytest.raises(InvalidInput):
            ledger.search(**conditions)  # type: ignore[arg-type]


def test_answers_are_paged_backwards(ledger: Ledger) -> None:
    for number in range(4):
        ledger.release(ledger.reserve(ask(f"question {number}", analyst="ada")), table(str(number)))  # type: ignore[arg-type]
    newest = ledger.answers(analyst="ada", newest_first=True, limit=2)
    assert [answer.text for answer in newest] == ["3", "2"]
    older = ledger.answers(analyst="ada", newest_first=True, before=newest[-1].sequence, limit=2)
    assert [answer.text for answer in older] == ["1", "0"]
    assert [answer.sequence for answer in ledger.answers("people", newest_first=True)][-1] == 9
    assert [answer.text for answer in ledger.answers("people", before=older[-1].sequence)] == ['{"value": "É!"}']
    for refused in ({"before": -1}, {"before": 2**63}, {"after": 2**63}):
        with pytest.raises(InvalidInput):
            ledger.answers(**refused)  # type: ignore[arg-type]


def test_derived_keys(place: Place, ledger: Ledger) -> None:
    key = place.key_file.read_bytes()
    assert ledger.derive("cookies") == hmac.new(key, b"idios derived key: cookies", hashlib.sha256).digest()
    assert ledger.derive("cookies") != ledger.derive("forms")
    with place.open() as again:
        assert again.derive("cookies") == ledger.derive("cookies")

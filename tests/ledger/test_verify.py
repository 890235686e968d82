"""Tampering is found: any change to the chain, its tables or its length."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import pytest

from idios.errors import InvalidInput, LedgerError, LedgerTampered
from idios.ledger import Anchor, Ledger, Reservation
from idios.ledger.chain import sign_entry
from idios.ledger.facts import Fact, Failed, Forfeited, Released, Reserved, Retired, Shared, Withdrawn, read_fact
from idios.ledger.state import MemoryRowStore, apply
from tests.ledger.ledger_place import Place, ask, people
from tests.ledger.ledger_worker import table


@pytest.fixture
def ledger(place: Place) -> Iterator[Ledger]:
    """Thirteen entries: declared, analyst-added, granted, 4 × (reserved, released), reserved, failed."""
    with place.open() as opened:
        opened.declare(people(10))
        opened.add_analyst("ada")
        opened.grant("ada", "people", epsilon=Fraction(5))
        for number in range(4):
            charge = opened.reserve(ask(f"question {number}", "1/10", analyst="ada"))
            assert isinstance(charge, Reservation)
            opened.release(charge, table(f'{{"value": {number}}}'))
        charge = opened.reserve(ask("question 4", "1/10"))
        assert isinstance(charge, Reservation)
        opened.fail(charge, "lost")
        yield opened


def test_an_untouched_ledger_is_good(ledger: Ledger) -> None:
    found = ledger.verify()
    assert found.ok
    assert (found.entries, found.head) == (13, ledger.head())
    assert str(found) == "13 entries, all as signed; the tables agree with them"
    assert ledger.verify(ledger.head()).ok


@pytest.mark.parametrize("page", [1, 5, 6, 7, 13])
def test_a_chain_longer_than_a_page(place: Place, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, page: int) -> None:
    monkeypatch.setattr("idios.ledger.verification.PAGE", page)
    assert ledger.verify(ledger.head()).entries == 13
    place.execute("DELETE FROM idios_entries WHERE sequence = 6")
    assert ledger.verify().sequence == 6


def test_an_empty_ledger_is_good(place: Place) -> None:
    with place.open() as ledger:
        assert ledger.verify(ledger.head()).ok
        assert str(ledger.head()) == "0:" + "0" * 64


CHANGES = {
    "payload": "UPDATE idios_entries SET payload = REPLACE(payload, '1/10', '1/20') WHERE sequence = 6",
    "payload, same meaning": "UPDATE idios_entries SET payload = payload || ' ' WHERE sequence = 6",
    "time": "UPDATE idios_entries SET time = '2020-01-01T00:00:00.000000Z' WHERE sequence = 6",
    "kind": "UPDATE idios_entries SET kind = 'shared' WHERE sequence = 6",
    "mac": "UPDATE idios_entries SET mac = REPLACE(mac, SUBSTR(mac, 1, 1), 'x') WHERE sequence = 6",
    "mac, not hexadecimal": "UPDATE idios_entries SET mac = 'ε' WHERE sequence = 6",
    "removed": "DELETE FROM idios_entries WHERE sequence = 6",
    "removed, the rest renumbered": """
        DELETE FROM idios_entries WHERE sequence = 6;
        UPDATE idios_entries SET sequence = -sequence WHERE sequence > 6;
        UPDATE idios_entries SET sequence = -sequence - 1 WHERE sequence < 0""",
    "swapped": """
        UPDATE idios_entries SET sequence = -6 WHERE sequence = 6;
        UPDATE idios_entries SET sequence = 6 WHERE sequence = 8;
        UPDATE idios_entries SET sequence = 8 WHERE sequence = -6""",
    "inserted, the rest renumbered": """
        UPDATE idios_entries SET sequence = -sequence WHERE sequence > 5;
        UPDATE idios_entries SET sequence = -sequence + 1 WHERE sequence < 0;
        INSERT INTO idios_entries SELECT 6, time, kind, payload, mac FROM idios_entries WHERE sequence = 5""",
    "replaced by a copy of another": """
        DELETE FROM idios_entries WHERE sequence = 6;
        INSERT INTO idios_entries SELECT 6, time, kind, payload, mac FROM idios_entries WHERE sequence = 4""",
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_the_first_bad_entry_is_named(place: Place, ledger: Ledger, change: str) -> None:
    for statement in change.split(";"):
        place.execute(statement)
    found = ledger.verify()
    assert not found.ok
    assert (found.sequence, found.entries) == (6, 5)
    assert str(found).startswith("entry 6: ")
    with place.open() as again:  # a ledger that was tampered with can still be opened and looked into
        assert again.verify() == found


COPY = "INSERT INTO idios_entries SELECT {}, time, kind, payload, mac FROM idios_entries WHERE sequence = {}"


@pytest.mark.parametrize(
    ("statement", "sequence"),
    [
        ("DELETE FROM idios_entries WHERE sequence = 1", 1),
        ("UPDATE idios_entries SET time = '' WHERE sequence = 1", 1),
        ("UPDATE idios_entries SET time = '' WHERE sequence = 13", 13),
        (COPY.format(0, 1), 0),
        (COPY.format(-7, 1), -7),
        (COPY.format(14, 13), 14),
        (COPY.format(99, 13), 14),
    ],
)
def test_the_ends_are_checked_too(place: Place, ledger: Ledger, statement: str, sequence: int) -> None:
    place.execute(statement)
    assert ledger.verify().sequence == sequence


def test_truncation_is_found_by_the_anchor(place: Place, ledger: Ledger) -> None:
    old = place.copied()
    ledger.record_inspection(ask())
    anchor = Anchor.parse(str(ledger.head()))
    place.put_back(old)
    with place.open() as other:  # which has not seen the newer end
        assert other.verify().ok
        for found, told in ((other.verify(anchor), "the anchor is"), (ledger.verify(), "this process has seen")):
            assert (found.sequence, found.entries) == (14, 13)
            assert f"{told} entry 14; it was cut off" in str(found)


def test_truncation_of_the_chain_alone_is_found_by_the_proof(place: Place, ledger: Ledger) -> None:
    ledger.record_inspection(ask())
    place.execute("DELETE FROM idios_entries WHERE sequence = 14")  # an inspection leaves nothing in the tables
    with place.open() as other:
        found = other.verify()
    assert (found.sequence, found.entries) == (None, 13)
    assert "entries were cut off" in str(found)


def test_truncation_of_charges_is_found_by_the_tables(place: Place, ledger: Ledger) -> None:
    place.execute("DELETE FROM idios_entries WHERE sequence > 10")
    with place.open() as other:
        found = other.verify()
    assert found.sequence is None
    assert "no entry accounts for" in str(found) or "is wrong about" in str(found)


def test_a_running_process_notices_truncation_by_itself(place: Place, ledger: Ledger) -> None:
    old = place.copied()
    ledger.record_inspection(ask())
    place.put_back(old)
    with pytest.raises(LedgerTampered, match="ends at entry 13 and lacks the entry 14 that was there before"):
        ledger.record_inspection(ask())
    with place.open() as other:
        other.record_inspection(ask("something else"))
    with pytest.raises(LedgerTampered, match="ends at entry 14 and lacks the entry 14 that was there before"):
        ledger.record_inspection(ask())


def test_a_chain_rewritten_with_the_key_is_found_by_the_anchor(place: Place, ledger: Ledger) -> None:
    anchor = ledger.head()
    (previous,) = ledger.entries(after=11, limit=1)
    forged = sign_entry(
        place.key_file.read_bytes(), Anchor(12, previous.mac), previous.time, ledger.entries(after=12)[0].fact
    )
    place.execute(
        "UPDATE idios_entries SET time = :time, mac = :mac WHERE sequence = 13",
        time=forged.time,
        mac=forged.mac,
    )
    assert not ledger.verify().ok
    with place.open() as forger:
        forger.rebuild(Anchor(forged.sequence, forged.mac))
    with place.open() as other:
        assert other.verify().ok
        for found, told in ((other.verify(anchor), "anchored one"), (ledger.verify(), "one that was there before")):
            assert found.sequence == 13
            assert f"is not the {told}: the chain was rewritten" in str(found)


def test_an_entry_of_another_history_is_found(place: Place, ledger: Ledger) -> None:
    # A ledger restored from a backup goes on with the same key and the same numbers. Its entries do not mix.
    old = place.copied()
    ledger.record_inspection(ask("of the first history"))
    (stray,) = ledger.entries(after=13)
    place.put_back(old)
    with place.open() as restored:
        restored.record_inspection(ask("of the second history"))
        restored.record_inspection(ask("and the one after it"))
        place.execute(
            "UPDATE idios_entries SET time = :time, payload = :payload, mac = :mac WHERE sequence = 14",
            time=stray.time,
            payload=stray.payload,
            mac=stray.mac,
        )
        assert restored.verify().sequence == 15


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE idios_datasets SET epsilon_spent = '0/1'",
        "UPDATE idios_datasets SET epsilon = '1000/1'",
        "UPDATE idios_datasets SET epsilon_spent = 'a lot'",
        "UPDATE idios_datasets SET min_epsilon = '1/1'",
        "UPDATE idios_datasets SET declared_epsilon = '1/1'",
        "UPDATE idios_datasets SET declared_delta = '1/1'",
        "UPDATE idios_datasets SET accounting = 'concentrated'",
        "UPDATE idios_datasets SET accounting = 'none'",
        "UPDATE idios_datasets SET rho_spent = '0/1'",
        "UPDATE idios_datasets SET impure = 1",
        "UPDATE idios_grants SET rho_spent = '0/1'",
        "UPDATE idios_questions SET impure = 1",
        "UPDATE idios_grants SET epsilon_spent = '0/1'",
        "UPDATE idios_grants SET epsilon = NULL",
        "UPDATE idios_grants SET withdrawn = 3",
        "DELETE FROM idios_grants",
        "INSERT INTO idios_analysts VALUES ('mallory')",
        "DELETE FROM idios_payments",
        "DELETE FROM idios_questions WHERE reserved = 4",
        "UPDATE idios_questions SET released = NULL WHERE reserved = 4",
        "DELETE FROM idios_failures",
        "UPDATE idios_failures SET failed = 5",
        "UPDATE idios_questions SET released = 7 WHERE reserved = 4",
        "INSERT INTO idios_tokens VALUES ('t', 'd', 'ada', 'controller', '2099', 2, NULL)",
    ],
)
def test_tables_that_disagree_are_found_and_made_anew(place: Place, ledger: Ledger, statement: str) -> None:
    balance = ledger.balance("people")
    place.execute(statement)
    found = ledger.verify()
    assert not found.ok
    assert found.sequence is None
    assert found.entries == 13
    assert "the table of" in str(found)
    ledger.rebuild()
    assert ledger.verify().ok
    assert ledger.balance("people") == balance


def test_tables_are_not_made_from_a_bad_chain(place: Place, ledger: Ledger) -> None:
    place.execute(CHANGES["payload"])
    with pytest.raises(LedgerTampered, match="entry 6 is not signed"):
        ledger.rebuild()
    anchor = Anchor(14, "0" * 64)
    with pytest.raises(LedgerTampered):
        ledger.rebuild(anchor)


def test_a_changed_answer_is_not_given_out(place: Place, ledger: Ledger) -> None:
    place.execute("UPDATE idios_entries SET payload = REPLACE(payload, '1}', '2}') WHERE sequence = 7")
    for read in (lambda: ledger.reserve(ask("question 1", "1/10")), lambda: ledger.answers()):
        with pytest.raises(LedgerTampered, match="entry 7 of the ledger is not what was signed"):
            read()
    assert isinstance(ledger.reserve(ask("question 0", "1/10", analyst="ada")).text, str)  # type: ignore[union-attr]


def test_another_questions_answer_is_not_given_out(place: Place, ledger: Ledger) -> None:
    place.execute("UPDATE idios_questions SET released = 9 WHERE reserved = 4")
    with pytest.raises(LedgerTampered, match="questions has one that is not what was signed"):
        ledger.reserve(ask("question 0", "1/10"))


def test_unreadable_tables_are_no_crash(place: Place, ledger: Ledger) -> None:
    place.execute("UPDATE idios_datasets SET epsilon_spent = '-5/1'")
    with pytest.raises(LedgerTampered, match="cannot be read"):
        ledger.reserve(ask("fresh"))


def test_a_row_the_chain_does_not_know_stops_the_writer(place: Place, ledger: Ledger) -> None:
    key = ask("fresh").key
    place.execute("INSERT INTO idios_payments VALUES (:key, 'ada')", key=key)
    with pytest.raises(LedgerError, match="its tables disagree with its chain"):
        ledger.reserve(ask("fresh", analyst="ada"))
    assert ledger.head().sequence == 13


def test_nothing_is_appended_to_a_changed_end(place: Place, ledger: Ledger) -> None:
    place.execute("UPDATE idios_entries SET payload = '{}' WHERE sequence = 13")
    with (
        place.open() as again,
        pytest.raises(LedgerTampered, match="entry 13, the ledger's last, is not signed"),
    ):
        again.record_inspection(ask())


@pytest.mark.parametrize(
    "text", ["", "7", "7:abc", "7:" + "g" * 64, "-1:" + "0" * 64, "1:" + "0" * 65, "9" * 30 + ":" + "0" * 64]
)
def test_an_anchor_is_read_strictly(text: str) -> None:
    with pytest.raises(InvalidInput, match="an anchor is a number"):
        Anchor.parse(text)


@pytest.mark.parametrize(
    "fact",
    [
        Retired("people"),
        Forfeited("people", Fraction(1), Fraction(0), "why"),
        Withdrawn("ada", "people"),
        Released("k", "{}"),
        Failed("k", None, "lost"),
        Shared("k", "people", "ada", Fraction(1), Fraction(0)),
        Reserved("k", "people", "1", "q", Fraction(1), Fraction(0), None),
    ],
)
def test_signed_facts_that_cannot_stand_are_named(fact: Fact) -> None:
    with pytest.raises(ValueError, match="it is about one of the"):
        apply(MemoryRowStore(), 1, fact)


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        ("forgotten", '{"dataset":"people"}'),
        ("retired", "{}"),
        ("retired", '{"dataset":"people","why":"old"}'),
        ("retired", '{"dataset":5}'),
        ("retired", '["people"]'),
        ("retired", "people"),
        ("raised", '{"dataset":"people","delta":"0/1","epsilon":0.5}'),
        ("raised", '{"dataset":"people","delta":null,"epsilon":"1/1"}'),
    ],
)
def test_facts_are_read_strictly(kind: str, payload: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 (json, amounts and fields each say it their way)
        read_fact(kind, payload)


def test_a_second_answer_to_one_charge_would_be_found(place: Place, ledger: Ledger) -> None:
    # A holder of the key can sign nonsense; it is still nonsense.
    forged = sign_entry(
        place.key_file.read_bytes(),
        ledger.head(),
        "2026-11-15T00:00:00.000000Z",
        Released(ask("question 0", "1/10").key, "{}"),
    )
    place.execute(
        "INSERT INTO idios_entries VALUES (:sequence, :time, :kind, :payload, :mac)",
        sequence=forged.sequence,
        time=forged.time,
        kind=forged.kind,
        payload=forged.payload,
        mac=forged.mac,
    )
    found = ledger.verify()
    assert found.sequence == 14
    assert "releases a second answer" in str(found)

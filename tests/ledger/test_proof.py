"""Rows are trusted only with proof: an intruder who writes the database without the key is refused at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import pytest

from idios.errors import LedgerTampered, NotPermitted
from idios.ledger import Ledger, Reservation, Role
from tests.ledger.ledger_place import Place, ask, people
from tests.ledger.ledger_worker import table

ADA, BOB = ask("of ada", "1/4", analyst="ada"), ask("of bob", "1/4", analyst="bob")


@dataclass(frozen=True)
class Office:
    """A ledger in use, and the secrets of two tokens of ada, of which one is revoked."""

    place: Place
    ledger: Ledger
    token: str
    revoked: str


@pytest.fixture
def office(place: Place) -> Iterator[Office]:
    """People (ε = 1) of which ada (ε ≤ 1/2) has spent 1/2 and bob 1/4; eve has no grant; firms are not granted."""
    with place.open() as ledger:
        ledger.declare(people())
        for analyst in ("ada", "bob", "eve"):
            ledger.add_analyst(analyst)
        ledger.grant("ada", "people", epsilon=Fraction(1, 2))
        ledger.grant("bob", "people")
        for request in (ADA, BOB, ask("another of ada", "1/4", analyst="ada")):
            charge = ledger.reserve(request)
            assert isinstance(charge, Reservation)
            ledger.release(charge, table(f'{{"asked": "{request.question}"}}'))
        token, revoked = ledger.issue_token("ada").secret, ledger.issue_token("ada").secret
        ledger.revoke_token(ledger.authenticate(revoked).token)
        yield Office(place, ledger, token, revoked)


GRANTED = (
    "INSERT INTO idios_grants (analyst, dataset, epsilon_spent, delta_spent, rho_spent, impure) "
    "VALUES ('eve', 'people', '0/1', '0/1', '0/1', 0)"
)

# What is done to the database, and the question that is asked next.
EDITS: dict[str, tuple[str, Callable[[Office, Ledger], object]]] = {
    "an analyst's spending is lowered": (
        "UPDATE idios_grants SET epsilon_spent = '0/1' WHERE analyst = 'ada'",
        lambda _, ledger: ledger.reserve(ask("fresh", "1/4", analyst="ada")),
    ),
    "a cap is raised": (
        "UPDATE idios_grants SET epsilon = '100/1' WHERE analyst = 'ada'",
        lambda _, ledger: ledger.reserve(ask("fresh", "1/4", analyst="ada")),
    ),
    "a cap is removed": (
        "UPDATE idios_grants SET epsilon = NULL WHERE analyst = 'ada'",
        lambda _, ledger: ledger.reserve(ask("fresh", "1/4", analyst="ada")),
    ),
    "the data set's spending is lowered": (
        "UPDATE idios_datasets SET epsilon_spent = '0/1'",
        lambda _, ledger: ledger.reserve(ask("fresh", "1/2", analyst="bob")),
    ),
    "the data set's budget is raised": (
        "UPDATE idios_datasets SET epsilon = '100/1'",
        lambda _, ledger: ledger.reserve(ask("fresh", "1/2", analyst="bob")),
    ),
    "the data set's ρ is lowered": (
        "UPDATE idios_datasets SET rho_spent = '0/1'",
        lambda _, ledger: ledger.reserve(ask("fresh", "1/2", analyst="bob")),
    ),
    "another accounting is declared": (
        "UPDATE idios_datasets SET accounting = 'concentrated'",
        lambda _, ledger: ledger.reserve(ask("fresh", "1/2", analyst="bob")),
    ),
    "a question becomes cheaper": (
        "UPDATE idios_questions SET rho = '0/1'",
        lambda _, ledger: ledger.reserve(ask("of ada", "1/4", analyst="bob")),
    ),
    "a revoked token is revived": (
        "UPDATE idios_tokens SET revoked = NULL",
        lambda office, ledger: ledger.authenticate(office.revoked),
    ),
    "a token lives longer": (
        "UPDATE idios_tokens SET expires = '2999-01-01T00:00:00.000000Z'",
        lambda office, ledger: ledger.authenticate(office.token),
    ),
    "an analyst becomes a controller": (
        "UPDATE idios_tokens SET role = 'controller'",
        lambda office, ledger: ledger.authenticate(office.token),
    ),
    "a data set is granted": (GRANTED, lambda _, ledger: ledger.reserve(ask("of ada", "1/4", analyst="eve"))),
    "a grant is removed": (
        "DELETE FROM idios_grants WHERE analyst = 'ada'",
        lambda _, ledger: ledger.reserve(ask("fresh", "1/4", analyst="ada")),
    ),
    "a data set is removed": ("DELETE FROM idios_datasets", lambda _, ledger: ledger.declare(people(100))),
    "an analyst is removed": ("DELETE FROM idios_analysts", lambda _, ledger: ledger.add_analyst("ada")),
    "a token is removed": (
        "DELETE FROM idios_tokens",
        lambda office, ledger: ledger.authenticate(office.token),
    ),
    "an answer is forgotten": (
        "UPDATE idios_questions SET released = NULL",
        lambda _, ledger: ledger.reserve(ADA),
    ),
    "a charge is forgotten": ("DELETE FROM idios_questions", lambda _, ledger: ledger.reserve(ADA)),
    "a payment is forgotten": ("DELETE FROM idios_payments", lambda _, ledger: ledger.reserve(ADA)),
    "a payment is invented": (
        "INSERT INTO idios_payments SELECT key, 'bob' FROM idios_payments WHERE analyst = 'ada'",
        lambda _, ledger: ledger.reserve(ask("of ada", "1/4", analyst="bob")),
    ),
    "a payment is invented and the answers are listed": (
        "INSERT INTO idios_payments SELECT key, 'eve' FROM idios_payments WHERE analyst = 'ada'",
        lambda _, ledger: ledger.answers(analyst="eve"),
    ),
    "a grant is invented and the data sets are listed": (GRANTED, lambda _, ledger: ledger.grants("eve")),
}


@pytest.mark.parametrize(("edit", "question"), EDITS.values(), ids=EDITS)
def test_an_edited_row_is_refused_at_the_next_question(
    office: Office, edit: str, question: Callable[[Office, Ledger], object]
) -> None:
    head = office.ledger.head()
    office.place.execute(edit)
    with pytest.raises(LedgerTampered, match="run `idios ledger verify`"):
        question(office, office.ledger)
    with office.place.open() as another, pytest.raises(LedgerTampered, match="run `idios ledger verify`"):
        question(office, another)
    assert office.ledger.head() == head
    assert not office.ledger.verify().ok


# What is done on the record, which table is then made what it was before, and the question that is asked next.
RETURNS: dict[str, tuple[Callable[[Office], object], str, Callable[[Office, Ledger], object]]] = {
    "the spending of before": (
        lambda office: office.ledger.reserve(ask("fresh", "1/4", analyst="bob")),
        "datasets",
        lambda _, ledger: ledger.reserve(ask("fresher", "1/4", analyst="bob")),
    ),
    "the analyst's spending of before": (
        lambda office: office.ledger.reserve(ask("fresh", "1/4", analyst="bob")),
        "grants",
        lambda _, ledger: ledger.reserve(ask("fresher", "1/4", analyst="bob")),
    ),
    "a grant of before it was withdrawn": (
        lambda office: office.ledger.withdraw("bob", "people"),
        "grants",
        lambda _, ledger: ledger.reserve(BOB),
    ),
    "a data set of before it was retired": (
        lambda office: office.ledger.retire("people"),
        "datasets",
        lambda _, ledger: ledger.reserve(BOB),
    ),
    "a token of before it was revoked": (
        lambda office: office.ledger.revoke_token(office.ledger.authenticate(office.token).token),
        "tokens",
        lambda office, ledger: ledger.authenticate(office.token),
    ),
}


@pytest.mark.parametrize(("action", "table", "question"), RETURNS.values(), ids=RETURNS)
@pytest.mark.parametrize("proofs_too", [False, True])
def test_an_old_row_cannot_be_put_back(
    office: Office,
    action: Callable[[Office], object],
    table: str,
    question: Callable[[Office, Ledger], object],
    proofs_too: bool,
) -> None:
    # Each old row was signed once, and so was its proof; the chain has gone on since.
    old = office.place.copied(table, *(["merkle"] if proofs_too else []))
    action(office)
    office.place.put_back(old)
    with office.place.open() as another:
        for ledger in (office.ledger, another):
            with pytest.raises(LedgerTampered):
                question(office, ledger)


def test_an_answer_is_not_drawn_a_second_time(office: Office) -> None:
    request = ask("fresh", "1/4", analyst="bob")
    charge = office.ledger.reserve(request)
    assert isinstance(charge, Reservation)
    old = office.place.copied("questions")
    office.ledger.release(charge, table('{"draw": 1}'))
    office.place.put_back(old)
    with office.place.open() as another:
        for ledger in (office.ledger, another):
            with pytest.raises(LedgerTampered):
                ledger.reserve(request)
            with pytest.raises(LedgerTampered):
                ledger.release(charge, table('{"draw": 2}'))


def test_a_later_entry_is_not_hidden(office: Office) -> None:
    # The row, its proof, and the entries since: all as they were, but for the last entry.
    old = office.place.copied("tokens", "merkle")
    office.ledger.revoke_token(office.ledger.authenticate(office.token).token)
    office.ledger.record_inspection(ask())
    office.place.put_back(old)
    office.place.execute(
        "UPDATE idios_entries SET kind = 'inspected', payload = '{}' WHERE kind = 'token-revoked' AND sequence > 14"
    )
    with office.place.open() as another:
        for ledger in (office.ledger, another):
            with pytest.raises(LedgerTampered):
                ledger.authenticate(office.token)


def test_a_consistent_old_state_is_found_by_whoever_has_seen_a_newer_one(office: Office) -> None:
    old = office.place.copied()
    office.ledger.revoke_token(office.ledger.authenticate(office.token).token)
    anchor = office.ledger.head()
    office.place.put_back(old)
    refused: list[Callable[[], object]] = [
        lambda: office.ledger.authenticate(office.token),
        lambda: office.ledger.reserve(BOB),
        lambda: office.ledger.reserve(ask("fresh", "1/4", analyst="bob")),
        lambda: office.ledger.balance("people"),
        lambda: office.ledger.head(),
        lambda: office.ledger.check(),
    ]
    for refusal in refused:
        with pytest.raises(LedgerTampered, match=r"ends at entry \d+ and lacks the entry \d+ that was there before"):
            refusal()
    assert "it was cut off" in str(office.ledger.verify())
    assert office.ledger.health.trouble is not None
    # A process that has seen nothing newer cannot tell; an anchor can.
    with office.place.open() as another:
        assert another.authenticate(office.token).role is Role.ANALYST
        assert another.verify().ok
        assert "it was cut off" in str(another.verify(anchor))


def test_another_history_is_found_however_long_it_has_become(office: Office) -> None:
    old = office.place.copied()
    office.ledger.record_inspection(ask("of the first history"))
    office.place.put_back(old)
    with office.place.open() as another:
        for number in range(3):
            another.record_inspection(ask(f"of the second history {number}"))
    with pytest.raises(LedgerTampered, match="was there before"):
        office.ledger.reserve(ask("fresh", "1/4", analyst="bob"))
    with pytest.raises(LedgerTampered, match="was there before"):
        office.ledger.balance("people")
    assert "is not the one that was there before" in str(office.ledger.verify())


def test_entries_that_others_wrote_are_followed(office: Office) -> None:
    with office.place.open() as another:
        another.withdraw("bob", "people")
        with pytest.raises(NotPermitted, match="withdrawn"):
            office.ledger.reserve(BOB)
        another.record_inspection(ask("one"))
        office.place.execute(
            "UPDATE idios_entries SET time = '' WHERE sequence = (SELECT MAX(sequence) FROM idios_entries)"
        )
        another.record_inspection(ask("two"))
    with pytest.raises(LedgerTampered, match="is not signed"):
        office.ledger.balance("people")


@pytest.mark.parametrize(
    "edit",
    [
        "DELETE FROM idios_merkle",
        "DELETE FROM idios_merkle WHERE page = 0",
        "DELETE FROM idios_merkle WHERE page > 64",
        "DELETE FROM idios_merkle WHERE page BETWEEN 1 AND 64",
        "UPDATE idios_merkle SET content = :other",
        "UPDATE idios_merkle SET content = 'a text'",
        "UPDATE idios_merkle SET content = (SELECT content FROM idios_merkle WHERE page = 0)",
    ],
)
def test_proofs_are_believed_only_as_signed(office: Office, edit: str) -> None:
    head = office.ledger.head()
    office.place.execute(edit, **({"other": b"\x00" * 2000} if ":other" in edit else {}))
    with office.place.open() as another:
        with pytest.raises(LedgerTampered, match="run `idios ledger verify`"):
            another.reserve(ask("fresh", "1/4", analyst="bob"))
        found = another.verify()
        assert found.sequence is None
        assert "the proof of the tables" in str(found)
        another.rebuild(head)
        assert another.verify().ok
        assert isinstance(another.reserve(ask("fresh", "1/4", analyst="bob")), Reservation)
        assert another.verify().ok


def test_a_cut_chain_is_found_without_an_anchor(office: Office) -> None:
    # The entries alone: without the key an intruder cannot sign the proof that would go with them.
    anchor = office.ledger.head()
    office.place.execute(f"DELETE FROM idios_entries WHERE sequence = {anchor.sequence}")
    with office.place.open() as another:
        with pytest.raises(LedgerTampered, match="run `idios ledger verify`"):
            another.reserve(ask("fresh", "1/4", analyst="bob"))
        assert not another.verify().ok
        # Made anew from what is left, the tables would agree with it, and the cut would never be found.
        with pytest.raises(LedgerTampered, match="entries may have been cut off; give the newest anchor"):
            another.rebuild()
        with pytest.raises(LedgerTampered, match="it was cut off"):
            another.rebuild(anchor)


def test_an_emptied_ledger_is_not_a_new_one(office: Office) -> None:
    office.place.put_back({name: [] for name in office.place.copied() if name != "idios_chain"})
    with office.place.open() as another, pytest.raises(LedgerTampered):
        another.declare(people(100))


def test_rows_are_checked_now_and_then(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    # The end of the chain each time; all permissions only after a pause.
    now = 1000.0
    monkeypatch.setattr("idios.ledger.verification.time.monotonic", lambda: now)
    office.ledger.check()
    office.place.execute("DELETE FROM idios_grants WHERE analyst = 'ada'")
    office.ledger.check()
    now += 60
    for _ in range(2):
        with pytest.raises(LedgerTampered, match="table of grants has 1 rows of 2"):
            office.ledger.check()
    assert office.ledger.health.trouble is not None
    office.ledger.rebuild()
    office.ledger.check()


def test_what_was_found_once_is_told_until_all_is_verified(office: Office) -> None:
    office.ledger.check()
    (spent,) = office.place.execute("SELECT epsilon_spent FROM idios_datasets")[0]
    office.place.execute("UPDATE idios_datasets SET epsilon_spent = '0/1'")
    with pytest.raises(LedgerTampered):
        office.ledger.reserve(BOB)
    office.place.execute("UPDATE idios_datasets SET epsilon_spent = :spent", spent=spent)
    assert office.ledger.balance("people").epsilon.spent == Fraction(3, 4)
    with pytest.raises(LedgerTampered, match="the ledger is not what was signed: the ledger's table of datasets"):
        office.ledger.check()
    assert office.ledger.verify().ok
    office.ledger.check()


@pytest.mark.parametrize("value", ["x'ff'", "1.5", "X'61646100'"])
def test_what_is_no_text_is_no_crash(sqlite_place: Place, value: str) -> None:
    # SQLite keeps in a column whatever it is given.
    with sqlite_place.open() as ledger:
        ledger.declare(people())
        ledger.add_analyst("ada")
        ledger.grant("ada", "people")
        sqlite_place.execute(f"UPDATE idios_grants SET analyst = {value}")
        for refused in (ledger.check, ledger.grants, lambda: ledger.reserve(ask(analyst="ada"))):
            with pytest.raises(LedgerTampered, match="run `idios ledger verify`"):
                refused()
        assert not ledger.verify().ok

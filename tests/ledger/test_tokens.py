"""Tokens: shown once, kept as a hash, refused alike for whatever reason."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from idios.errors import InvalidInput, LedgerTampered, NotPermitted
from idios.ledger import Identity, Ledger, Role
from idios.ledger.tokens import authenticate
from tests.ledger.ledger_place import Place, kinds

REFUSED = "the token is unknown, revoked or expired"


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 11, 15, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ledger(place: Place, clock: Clock) -> Iterator[Ledger]:
    with place.open(clock=clock) as opened:
        opened.add_analyst("ada")
        opened.add_analyst("bob")
        yield opened


def test_a_token_names_its_analyst(ledger: Ledger) -> None:
    tokens = {analyst: ledger.issue_token(analyst).secret for analyst in ("ada", "bob")}
    for analyst, token in tokens.items():
        assert ledger.authenticate(token) == Identity(analyst, Role.ANALYST, sha256(token)[:16])
    assert all(len(token) == 43 for token in tokens.values())  # 256 bits in base64


def test_the_token_itself_is_nowhere_in_the_ledger(ledger: Ledger) -> None:
    token = ledger.issue_token("ada").secret
    (entry,) = ledger.entries(kinds=("token-issued",))
    assert token not in entry.payload
    assert token not in str(ledger.tokens())


@pytest.mark.parametrize("token", ["", "x", "x" * 43, "\x00", "\ud800", "ε" * 10_000])
def test_a_strange_token_is_refused(ledger: Ledger, token: str) -> None:
    with pytest.raises(NotPermitted, match=REFUSED):
        ledger.authenticate(token)


def test_a_token_expires(ledger: Ledger, clock: Clock) -> None:
    token = ledger.issue_token("ada", lifetime=timedelta(days=1)).secret
    clock.now += timedelta(hours=23, minutes=59)
    assert ledger.authenticate(token).name == "ada"
    name = ledger.identify(ledger.tokens()[0].token).token
    clock.now += timedelta(minutes=1)
    for refused in (lambda: ledger.authenticate(token), lambda: ledger.identify(name)):
        with pytest.raises(NotPermitted, match=REFUSED):
            refused()


def test_a_token_is_revoked_by_name(ledger: Ledger) -> None:
    token, kept = ledger.issue_token("ada").secret, ledger.issue_token("ada").secret
    (name,) = (found.token for found in ledger.tokens() if found.digest.startswith(sha256(token)[:16]))
    ledger.revoke_token(name)
    ledger.revoke_token(name)
    for refused in (lambda: ledger.authenticate(token), lambda: ledger.identify(name)):
        with pytest.raises(NotPermitted, match=REFUSED):
            refused()
    assert ledger.authenticate(kept).name == "ada"
    assert kinds(ledger).count("token-revoked") == 1
    assert ledger.verify().ok
    with pytest.raises(NotPermitted, match="knows no token"):
        ledger.revoke_token("nonsense")


def sha256(text: str) -> str:
    import hashlib

    return hashlib.sha256(text.encode()).hexdigest()


def test_a_token_for_nobody_or_for_no_time(ledger: Ledger) -> None:
    with pytest.raises(NotPermitted, match="no analyst 'eve'"):
        ledger.issue_token("eve")
    for lifetime in (timedelta(0), timedelta(days=-1), timedelta.max):
        with pytest.raises(InvalidInput, match="a token"):
            ledger.issue_token("ada", lifetime=lifetime)


def test_times_are_the_clocks_in_utc(place: Place, clock: Clock, ledger: Ledger) -> None:
    ledger.issue_token("ada", lifetime=timedelta(days=1))
    assert {entry.time for entry in ledger.entries()} == {"2026-11-15T00:00:00.000000Z"}
    assert ledger.tokens()[0].expires == "2026-11-16T00:00:00.000000Z"


def test_a_controller_needs_no_introduction(ledger: Ledger) -> None:
    issued = ledger.issue_token("carol", role=Role.CONTROLLER)
    token = issued.secret
    identity = ledger.authenticate(token)
    assert (identity.name, identity.role) == ("carol", Role.CONTROLLER)
    assert ledger.identify(identity.token) == identity
    (entry,) = ledger.entries(kinds=("controller-token-issued",))
    assert token not in entry.payload
    assert "carol" not in ledger.analysts()
    (row,) = ledger.tokens()
    assert row == issued.row
    assert token not in repr(issued)
    assert (row.token, row.holder, row.role, row.revoked) == (identity.token, "carol", Role.CONTROLLER, None)
    ledger.revoke_token(identity.token)
    with pytest.raises(NotPermitted, match=REFUSED):
        ledger.authenticate(token)
    assert ledger.verify().ok


def test_a_name_can_be_an_analysts_and_a_controllers(ledger: Ledger) -> None:
    tokens = {role: ledger.issue_token("ada", role=role).secret for role in Role}
    assert {role: ledger.authenticate(token).role for role, token in tokens.items()} == {role: role for role in Role}


def test_a_role_is_given_as_one_and_a_controllers_name_is_a_name(ledger: Ledger) -> None:
    with pytest.raises(InvalidInput, match="role is one of analyst, controller"):
        ledger.issue_token("ada", role="controller")  # type: ignore[arg-type]
    for name in ("", "a\x00b", "x" * 201):
        with pytest.raises(InvalidInput, match="a name of a controller"):
            ledger.issue_token(name, role=Role.CONTROLLER)
    assert ledger.tokens() == []


@pytest.mark.parametrize("name", ["", "x", "\x00", "\ud800", "0" * 16])
def test_a_strange_token_name_is_refused(ledger: Ledger, name: str) -> None:
    with pytest.raises(NotPermitted, match=REFUSED):
        ledger.identify(name)


def test_a_secret_is_not_a_name(ledger: Ledger) -> None:
    token = ledger.issue_token("ada").secret
    with pytest.raises(NotPermitted, match=REFUSED):
        ledger.identify(token)
    with pytest.raises(NotPermitted, match=REFUSED):
        ledger.authenticate(ledger.tokens()[0].token)


def test_a_role_that_is_none_is_tampering(place: Place, ledger: Ledger) -> None:
    token = ledger.issue_token("ada").secret
    place.execute("UPDATE idios_tokens SET role = 'king'")
    with pytest.raises(LedgerTampered, match="cannot be read"):
        ledger.authenticate(token)


def test_a_row_makes_nobody_a_controller(place: Place, ledger: Ledger) -> None:
    token, controllers = ledger.issue_token("ada").secret, ledger.issue_token("carol", role=Role.CONTROLLER).secret
    ada, carol = ledger.authenticate(token), ledger.authenticate(controllers)
    changes = {
        "role = 'controller'": "role is controller, the chain says analyst",
        "holder = 'bob'": "holder is bob, the chain says ada",
        "expires = '2999'": "expires is 2999",
        f"role = 'controller', holder = 'carol', issued = {place_of(ledger, carol)}": "holder is carol",
        "role = 'controller', issued = 1": "role is controller",
        "issued = 99": "issued is 99",
    }
    for change, found in changes.items():
        place.execute(f"UPDATE idios_tokens SET {change} WHERE token = '{ada.token}'")
        for refused in (lambda: ledger.authenticate(token), lambda: ledger.identify(ada.token)):
            with pytest.raises(LedgerTampered, match="tokens has one that is not what was signed"):
                refused()
        assert found in str(ledger.verify())
        ledger.rebuild()
        assert ledger.authenticate(token) == ada


def test_a_forged_token_is_not_accepted(place: Place, ledger: Ledger) -> None:
    ledger.issue_token("carol", role=Role.CONTROLLER)
    forged = sha256("chosen by a stranger")
    place.execute(
        f"INSERT INTO idios_tokens (token, digest, holder, role, expires, issued) SELECT '{forged[:16]}', "
        f"'{forged}', holder, role, expires, issued FROM idios_tokens"
    )
    with pytest.raises(LedgerTampered, match="tokens has one that was not signed"):
        ledger.authenticate("chosen by a stranger")


def place_of(ledger: Ledger, identity: Identity) -> int:
    return next(found.issued for found in ledger.tokens() if found.token == identity.token)


def test_unknown_tokens_leave_nothing_in_memory(sqlite_place: Place) -> None:
    with sqlite_place.open() as ledger:
        names = [f"analyst {number}" for number in range(40)]
        for name in names:
            ledger.add_analyst(name)  # rows whose pages the lookups read
        token = ledger.issue_token(names[0]).secret
        transactions = ledger._transactions
        memory = transactions._memory
        before = len(memory._tags)
        now = datetime.now(UTC)
        for start in range(0, 100_000, 1000):
            with transactions.reading() as store:
                for number in range(start, start + 1000):
                    with pytest.raises(NotPermitted):
                        authenticate(store, f"unknown {number}", now)
        assert len(memory._tags) <= before + 1
        assert len(memory.pages) <= 2 * len(names) + 10
        assert ledger.authenticate(token).name == names[0]


def test_what_is_only_read_fills_no_memory(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("idios.ledger.proof.CACHED", 8)
    with place.open() as ledger:
        tokens = [ledger.issue_token(f"controller {number}", role=Role.CONTROLLER).secret for number in range(30)]
        memory = ledger._transactions._memory
        for token in tokens:
            assert ledger.authenticate(token).role is Role.CONTROLLER
            assert max(map(len, (memory.pages, memory.rows, memory._tags))) <= 8
        assert len(ledger.tokens()) == 30
        assert max(map(len, (memory.pages, memory.rows, memory._tags))) <= 8
        ledger.revoke_token(ledger.authenticate(tokens[3]).token)
        assert ledger.verify().ok

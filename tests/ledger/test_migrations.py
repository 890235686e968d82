"""An older ledger is upgraded whole or not at all."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, MetaData, inspect, text

from idios.core.concentrated import find_largest_rho
from idios.errors import KeyReused, LedgerError, LedgerTampered, LedgerUnavailable, NotPermitted, WrongLedgerKey
from idios.ledger import Account, ChargeRequest, Identity, Ledger, Reservation, Role, StoredAnswer
from idios.ledger.chain import START
from idios.ledger.facts import Declared, Forfeited, Reserved, Shared
from idios.ledger.migrations import migrate, read_scripts
from idios.ledger.tables import FORMAT, OLDEST_FORMAT, REVISION, SCHEMA, metadata
from tests.ledger.ledger_place import Place, ask, people
from tests.ledger.old_ledger import ASKED, HISTORY, LOST, REVOKED, SECRET, raw_engine, use_next_format, write_old_ledger


@pytest.fixture
def next_format(monkeypatch: pytest.MonkeyPatch) -> MetaData:
    return use_next_format(monkeypatch)


def content(place: Place) -> dict[str, Any]:
    """Every table with its columns, indexes and rows."""
    with raw_engine(place).begin() as connection:
        return {
            table: (columns, sorted(map(str, connection.execute(text(f"SELECT * FROM {table}")).all())))
            for table, columns in layout(connection).items()
        }


def layout(connection: Connection) -> dict[str, Any]:
    seen = inspect(connection)
    return {
        table: (
            {column["name"]: (str(column["type"]), column["nullable"]) for column in seen.get_columns(table)},
            seen.get_pk_constraint(table)["constrained_columns"],
            sorted((index["name"] or "", index["column_names"]) for index in seen.get_indexes(table)),
        )
        for table in sorted(seen.get_table_names())
    }


def differences(place: Place, tables: MetaData) -> list[Any]:
    with raw_engine(place).begin() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": SCHEMA.name, "compare_type": True})
        return list(compare_metadata(context, tables))


@pytest.mark.usefixtures("next_format")
def test_an_old_ledger_says_what_to_do(place: Place) -> None:
    write_old_ledger(place)
    before = content(place)
    for create in (True, False):
        with pytest.raises(LedgerError, match=r"has format 4, .* run `idios ledger upgrade`; make a backup first"):
            place.open(create=create)
    assert content(place) == before


@pytest.mark.parametrize("form", range(1, OLDEST_FORMAT))
def test_a_ledger_of_an_unreleased_format_is_left_alone(place: Place, form: int) -> None:
    write_old_ledger(place)
    place.execute(f"UPDATE idios_chain SET format = {form}")
    before = content(place)
    told = rf"has format {form}, .* reads format {FORMAT} .*before the first release.*`idios ledger create --reason"
    for action in (place.open, lambda: Ledger.upgrade(place.url, place.key_file)):
        with pytest.raises(LedgerError, match=told):
            action()
    assert content(place) == before


@pytest.mark.usefixtures("next_format")
def test_everything_is_there_after_an_upgrade(place: Place) -> None:
    anchor = write_old_ledger(place)
    assert Ledger.upgrade(place.url, place.key_file) is True
    with place.open(create=False) as ledger:
        assert ledger.verify(anchor).ok
        assert ledger.head() == anchor
        assert ledger.verify().entries == len(HISTORY)
        balance = ledger.balance("people")
        assert (balance.epsilon.budget, balance.epsilon.spent) == (3, Fraction(3, 8))
        assert balance.delta.budget == Fraction(1, 10)
        assert ledger.balance("people", "ada").epsilon.budget is None
        assert ledger.balance("people", "bob").epsilon.remaining == Fraction(1, 4)
        stored = ledger.reserve(ASKED)
        assert isinstance(stored, StoredAnswer)
        assert stored.text == '{"value": "41320"}'
        identity = ledger.authenticate(SECRET)
        assert (identity.name, identity.role) == ("ada", Role.ANALYST)
        with pytest.raises(NotPermitted):
            ledger.authenticate(REVOKED)
        lost = ledger.reserve(LOST)
        assert isinstance(lost, Reservation)
        assert lost.joined
        assert [declaration.dataset for declaration in ledger.datasets()] == ["people"]
        failed = ledger.search(dataset="people", kinds=("failed",))
        assert [entry.sequence for entry in failed] == [16]
        with pytest.raises(KeyReused):
            ledger.reserve(replace(ASKED, question="max(income)"), idempotency_key="k0")
        assert ledger.running.find("q0") is not None
        assert ledger.sessions.has_ended("s0")


@pytest.mark.usefixtures("next_format")
def test_an_upgraded_ledger_goes_on(place: Place) -> None:
    write_old_ledger(place)
    Ledger.upgrade(place.url, place.key_file)
    with place.open() as ledger:
        assert ledger.declare(people(2, version="2", min_epsilon=Fraction(1, 20))).epsilon.budget == 3
        ledger.withdraw("bob", "people")
        ledger.forfeit("people", epsilon=Fraction(1, 8), reason="to see that it counts")
        ledger.reserve(ask("fresh", version="2"), idempotency_key="k1")
        ledger.running.begin("q1", "controller", "people", "{}")
        secret = ledger.issue_token("carol", role=Role.CONTROLLER).secret
        assert isinstance(ledger.authenticate(secret), Identity)
        assert ledger.verify().ok
        assert ledger.balance("people").epsilon.spent == Fraction(3, 4)


def clear(place: Place) -> None:
    with raw_engine(place).begin() as connection:
        for table in layout(connection):
            connection.execute(text(f"DROP TABLE {table}"))


def tables_of(place: Place, expected: MetaData) -> dict[str, Any]:
    assert differences(place, expected) == []
    # PostgreSQL lists columns in the order they were added; the ledger names them always.
    with raw_engine(place).begin() as connection:
        return layout(connection)


def test_fresh_upgraded_and_migrated_ledgers_have_the_same_tables(place: Place, next_format: MetaData) -> None:
    place.open().close()
    fresh = tables_of(place, next_format)
    assert set(fresh) == {*next_format.tables, SCHEMA.name}
    clear(place)
    write_old_ledger(place)
    assert differences(place, next_format) != []
    Ledger.upgrade(place.url, place.key_file)
    assert tables_of(place, next_format) == fresh
    clear(place)
    with raw_engine(place).begin() as connection:
        migrate(connection)
    assert tables_of(place, next_format) == fresh


def test_fresh_and_migrated_ledgers_have_the_same_tables(place: Place) -> None:
    place.open().close()
    fresh = tables_of(place, metadata)
    assert set(fresh) == {*metadata.tables, SCHEMA.name}
    clear(place)
    with raw_engine(place).begin() as connection:
        migrate(connection)
    assert tables_of(place, metadata) == fresh
    with place.open() as ledger:
        ledger.rebuild(START)  # migrations make tables; what proves them is made from the chain
        assert ledger.verify().ok


def test_entries_of_the_oldest_format_are_written_as_they_were() -> None:
    payloads = {type(fact): json.loads(fact.payload) for fact in HISTORY}
    assert payloads[Declared].keys() == {"dataset", "version", "epsilon", "delta", "min_epsilon"}
    assert payloads[Reserved].keys() == {"key", "dataset", "version", "question", "epsilon", "delta", "analyst"}
    assert payloads[Shared].keys() == {"key", "dataset", "analyst", "epsilon", "delta"}


def test_an_old_ledger_of_format_4_counts_the_rho_of_its_epsilon(place: Place) -> None:
    """Σε²/2 comes from the chain, and what it spent of δ is missing when the data set changes its accounting."""
    spent = ChargeRequest("people", "2", "ada", "mean(age)", Fraction(1, 2), Fraction("1e-6"))
    anchor = write_old_ledger(
        place,
        Reserved(spent.key, "people", "2", spent.question, spent.epsilon, spent.delta, "ada"),
        Forfeited("people", Fraction(1, 10), Fraction("1e-6"), "lost"),
    )
    assert Ledger.upgrade(place.url, place.key_file) is True
    with place.open(create=False) as ledger:
        assert ledger.verify(anchor).ok
        before = ledger.balance("people")
        assert (before.rho, before.pure) == (None, True)
        after = ledger.declare(people(3, "0.1", "2", min_epsilon=Fraction(1, 20), accounting="concentrated"))
        assert after.rho is not None
        assert after.rho.spent == sum(Fraction(text) ** 2 for text in ("1/4", "1/8", "1/2", "1/10")) / 2
        assert after.rho.budget == find_largest_rho(Fraction(3), Fraction("0.099998"))
        assert ledger.balance("people", "ada").rho == Account(None, Fraction(5, 32), after.rho.remaining)
        assert ledger.verify().ok


def test_a_new_ledger_is_at_the_newest_version(place: Place) -> None:
    place.open().close()
    assert place.execute("SELECT format FROM idios_chain") == [(FORMAT,)]
    assert place.execute("SELECT version_num FROM idios_schema") == [(REVISION,)]
    assert read_scripts().get_current_head() == REVISION


@pytest.mark.usefixtures("next_format")
def test_a_second_upgrade_does_nothing(place: Place) -> None:
    write_old_ledger(place)
    results: list[bool] = []
    threads = [
        threading.Thread(target=lambda: results.append(Ledger.upgrade(place.url, place.key_file))) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [False, False, True]
    after = content(place)
    assert Ledger.upgrade(place.url, place.key_file) is False
    assert content(place) == after


@pytest.mark.usefixtures("next_format")
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE idios_entries SET payload = REPLACE(payload, '1/4', '1/9') WHERE sequence = 9",
        "DELETE FROM idios_entries WHERE sequence = 12",
    ],
)
def test_a_bad_chain_is_not_upgraded(place: Place, statement: str) -> None:
    write_old_ledger(place)
    place.execute(statement)
    before = content(place)
    with pytest.raises(LedgerTampered, match=r"cannot be upgraded.*entry \d+ is .*nothing was changed"):
        Ledger.upgrade(place.url, place.key_file)
    assert content(place) == before


@pytest.mark.usefixtures("next_format")
def test_a_failure_half_way_changes_nothing(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    anchor = write_old_ledger(place)
    before = content(place)

    def broken(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("idios.ledger.migrations.replace_rows", broken)
        with pytest.raises(KeyboardInterrupt):
            Ledger.upgrade(place.url, place.key_file)
    assert content(place) == before
    assert Ledger.upgrade(place.url, place.key_file)
    with place.open() as ledger:
        assert ledger.verify(anchor).ok


@pytest.mark.usefixtures("next_format")
def test_old_tables_that_were_tampered_with_are_made_from_the_chain(place: Place) -> None:
    write_old_ledger(place)
    place.execute("UPDATE idios_datasets SET epsilon_spent = '0/1'")
    place.execute("UPDATE idios_tokens SET holder = 'bob'")
    Ledger.upgrade(place.url, place.key_file)
    with place.open() as ledger:
        assert ledger.balance("people").epsilon.spent == Fraction(3, 8)
        assert ledger.authenticate(SECRET).name == "ada"
        assert ledger.verify().ok


@pytest.mark.usefixtures("next_format")
def test_what_cannot_be_upgraded(place: Place) -> None:
    with pytest.raises(LedgerUnavailable, match="there is no ledger in"):
        Ledger.upgrade(place.url, place.key_file)
    write_old_ledger(place)
    before = content(place)
    place.key_file.write_bytes(b"k" * 32)
    with pytest.raises(WrongLedgerKey):
        Ledger.upgrade(place.url, place.key_file)
    assert content(place) == before
    place.execute("UPDATE idios_chain SET format = 9")
    place.key_file.unlink()
    with pytest.raises(WrongLedgerKey, match="missing"):
        Ledger.upgrade(place.url, place.key_file)


def test_a_newer_ledger_is_left_alone(place: Place) -> None:
    place.open().close()
    place.execute("UPDATE idios_chain SET format = 9")
    before = content(place)
    with pytest.raises(LedgerError, match=r"has format 9.*use the version that wrote it or a newer one"):
        Ledger.upgrade(place.url, place.key_file)
    assert content(place) == before


def test_opening_a_ledger_does_not_import_alembic() -> None:
    # It would take longer than all the rest.
    program = (
        "import sys; from idios.ledger import Ledger; Ledger.open('sqlite://').close(); "
        "sys.exit('alembic' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0

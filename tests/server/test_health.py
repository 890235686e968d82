"""Whether the server is ready: its ledger can be written, and is what was signed."""

from __future__ import annotations

import contextlib
import logging
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx2
import pytest
from sqlalchemy import create_engine, make_url, text

from idios.errors import LedgerTampered
from idios.server.startup import load_configuration, verify_ledger
from tests.server.office import MEDIAN, Office, open_another, open_office, write_office
from tests.services.serving import Serving
from tests.waiting import until

Edit = Callable[[str], None]


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Office, Edit]]:
    """An office, and what an intruder does who can write its ledger's database without the key."""
    if request.param == "sqlite":
        address = "sqlite:///ledger.db"
        engine = create_engine(f"sqlite:///{tmp_path / 'ledger.db'}")
    else:
        address = request.getfixturevalue("ledger_base")
        engine = create_engine(make_url(address).set(drivername="postgresql+psycopg"))

    def edit(statement: str) -> None:
        with engine.begin() as connection:
            connection.execute(text(statement))

    office = open_office(write_office(tmp_path, ledger=address))
    with office.client:
        yield office, edit
    engine.dispose()


def readiness(office: Office) -> tuple[int, Any]:
    answer = office.call("GET", "/readyz", None)
    return answer.status_code, answer.json()


READY = (200, {"status": "ready"})
GRANTED = (
    "INSERT INTO idios_grants (analyst, dataset, epsilon_spent, delta_spent, rho_spent, impure) "
    "VALUES ('bob', 'people', '0/1', '0/1', '0/1', 0)"
)

# What is done to the database, and who asks next.
EDITS = {
    "an analyst's spending is lowered": ("UPDATE idios_grants SET epsilon_spent = '0/1'", "ada"),
    "a cap is raised": ("UPDATE idios_grants SET epsilon = '100/1'", "ada"),
    "the data set's spending is lowered": ("UPDATE idios_datasets SET epsilon_spent = '0/1'", "ada"),
    "a revoked token is revived": ("UPDATE idios_tokens SET revoked = NULL", "revoked"),
    "a data set is granted": (GRANTED, "bob"),
}


@pytest.mark.parametrize(("edit", "who"), EDITS.values(), ids=EDITS)
def test_an_edit_is_refused_at_the_next_question(
    place: tuple[Office, Edit], edit: str, who: str, caplog: pytest.LogCaptureFixture
) -> None:
    office, execute = place
    assert office.ask(epsilon="0.5").status_code == 200
    revoked = office.ledger.issue_token("ada").secret
    office.ledger.revoke_token(office.ledger.authenticate(revoked).token)
    assert office.ask(who=revoked).status_code == 401
    assert office.ask(who="bob").status_code == 422  # for bob there is no such data set
    assert readiness(office) == READY
    head = office.ledger.head()
    execute(edit)
    refused = office.ask(epsilon="0.25", who={"revoked": revoked}.get(who, who))
    assert refused.status_code == 503
    assert refused.json()["error"]["code"] == "ledger_unavailable"
    with caplog.at_level(logging.ERROR, "idios"):
        status, told = readiness(office)
    assert status == 503
    assert "signed" not in str(told)
    assert "signed" in str([getattr(record, "fields", {}) for record in caplog.records])
    assert office.ledger.entries(after=head.sequence) == []


@pytest.mark.parametrize(("edit", "who"), EDITS.values(), ids=EDITS)
def test_an_edit_is_noticed_by_whoever_watches(place: tuple[Office, Edit], edit: str, who: str) -> None:
    office, execute = place
    office.ask(epsilon="0.5")
    office.ledger.revoke_token(office.ledger.authenticate(office.ledger.issue_token("ada").secret).token)
    assert readiness(office) == READY
    execute(edit)
    assert until(lambda: readiness(office)[0] == 503)


@pytest.mark.parametrize(
    "edit",
    [
        "DELETE FROM idios_entries WHERE sequence = (SELECT MAX(sequence) FROM idios_entries)",
        "DELETE FROM idios_merkle WHERE page = 0",
        "DELETE FROM idios_grants",
    ],
)
def test_a_cut_chain_and_missing_rows_are_noticed(place: tuple[Office, Edit], edit: str) -> None:
    office, execute = place
    assert readiness(office) == READY
    execute(edit)
    assert until(lambda: readiness(office)[0] == 503)


def test_a_restored_ledger_is_noticed(office: Office, tmp_path: Path) -> None:
    office.ledger.backup(tmp_path / "copy.db")
    office.ask()
    assert readiness(office) == READY
    with (
        closing(sqlite3.connect(tmp_path / "copy.db")) as source,
        closing(sqlite3.connect(tmp_path / "ledger.db")) as target,
    ):
        source.backup(target)
    assert readiness(office)[0] == 503
    assert office.ask(epsilon="0.25").status_code == 503


def test_a_replaced_file_is_noticed(office: Office, tmp_path: Path) -> None:
    office.ledger.backup(tmp_path / "copy.db")
    shutil.move(tmp_path / "ledger.db", tmp_path / "old.db")
    assert readiness(office)[0] == 503
    shutil.copy(tmp_path / "copy.db", tmp_path / "ledger.db")
    assert readiness(office)[0] == 503
    assert office.ask().status_code == 503


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as filler, contextlib.suppress(OSError):
        while filler.write(b"x" * 4096):
            pass


def test_a_full_disk_is_told(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(disk)], capture_output=True)
    if mounted.returncode:
        pytest.skip("a small disk can only be mounted by root")
    try:
        office = open_office(write_office(tmp_path, ledger=f"sqlite:///{disk}/ledger.db"))
        with office.client:
            assert readiness(office) == READY
            fill(disk / "filler")
            assert readiness(office)[0] == 503
            assert office.call("GET", "/healthz", None).status_code == 200
            (disk / "filler").unlink()
            assert readiness(office) == READY
            assert office.ask().status_code == 200
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_it_says_that_it_is_verifying(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(office.ledger.health, "verifying", True)
    assert readiness(office) == (200, {"status": "verifying"})
    assert office.ask().status_code == 200


def test_a_chain_that_is_not_good_ends_all_answers(place: tuple[Office, Edit]) -> None:
    office, execute = place
    office.ask()
    verify_ledger(office.ledger)
    assert readiness(office) == READY
    # An entry in the middle, which no row depends on: the verification of the whole chain finds it.
    execute("UPDATE idios_entries SET time = '2020-01-01T00:00:00.000000Z' WHERE sequence = 2")
    assert office.ask(epsilon="0.25").status_code == 200
    verify_ledger(office.ledger)
    assert readiness(office)[0] == 503
    assert office.ask().status_code == 503
    assert office.call("GET", "/v1/budget").status_code == 503


def test_a_ledger_that_cannot_be_verified_is_not_trusted(office: Office, tmp_path: Path) -> None:
    shutil.move(tmp_path / "ledger.db", tmp_path / "elsewhere.db")
    verify_ledger(office.ledger, wait=0)
    shutil.move(tmp_path / "elsewhere.db", tmp_path / "ledger.db")
    assert readiness(office)[0] == 503


def test_what_another_worker_writes_is_followed(office: Office, tmp_path: Path) -> None:
    another = open_another(office, tmp_path / "idios.toml")
    office.ledger.grant("bob", "people", epsilon=Fraction(1))
    with another.client:
        assert another.ask(who="bob").status_code == 200
        office.ledger.withdraw("bob", "people")
        assert another.ask(MEDIAN, who="bob").status_code == 422


def test_a_server_does_not_start_on_a_changed_end(tmp_path: Path) -> None:
    config = write_office(tmp_path)
    open_office(config).service.party.close()
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as base, base:
        base.execute("DELETE FROM idios_entries WHERE sequence = (SELECT MAX(sequence) FROM idios_entries)")
    with pytest.raises(LedgerTampered, match="entry"):
        load_configuration(config)


def test_a_server_verifies_its_ledger_by_itself(tmp_path: Path) -> None:
    config = write_office(tmp_path)
    open_office(config).service.party.close()
    server = Serving(config).wait()
    try:
        until(lambda: "verified the ledger" in server.log.read_text())
        assert httpx2.get(f"{server.url}/readyz").json() == {"status": "ready"}
        server.kill()
        with closing(sqlite3.connect(tmp_path / "ledger.db")) as base, base:
            base.execute("UPDATE idios_entries SET time = '' WHERE sequence = 2")
        server.restart(ready=False)
        until(lambda: "not what was signed" in server.log.read_text())
        refused = httpx2.get(f"{server.url}/readyz")
        assert refused.status_code == 503
        assert "entry" not in refused.text
    finally:
        server.stop()

"""A version that is not declared tells a change of the file, and nothing about its records."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from idios.data.engines.duckdb import DuckDbBackend
from idios.party import TrustedParty
from tests.server.office import MEDIAN, Office, open_office, write_office
from tests.waiting import until


def undeclared(folder: Path) -> Path:
    config = write_office(folder)
    config.write_text(config.read_text().replace('version = "1"\n', ""))
    return config


def test_no_analyst_sees_the_size_of_a_file(tmp_path: Path) -> None:
    office: Office = open_office(undeclared(tmp_path))
    facts = (tmp_path / "people.parquet").stat()
    with office.client:
        office.ask()
        seen = office.call("GET", "/v1/datasets").text + office.call("GET", "/v1/answers").text
    assert "file " in seen
    assert f"{facts.st_size} bytes" not in seen
    assert str(facts.st_mtime_ns) not in seen


def test_another_time_or_size_is_another_version(tmp_path: Path) -> None:
    config = undeclared(tmp_path)
    source = tmp_path / "people.parquet"
    versions = []
    for moment in (10**18, 10**18, 10**18 + 1):
        os.utime(source, ns=(moment, moment))
        with TrustedParty.from_config(config) as party:
            versions.append(party.datasets["people"].dataset.version)
    write_office(tmp_path, rows=501)
    undeclared_again = tmp_path / "idios.toml"
    undeclared_again.write_text(undeclared_again.read_text().replace('version = "1"\n', ""))
    os.utime(source, ns=(10**18, 10**18))
    with TrustedParty.from_config(undeclared_again) as party:
        versions.append(party.datasets["people"].dataset.version)
    assert versions[0] == versions[1]
    assert len(set(versions)) == 3


def test_a_file_replaced_while_the_server_runs_is_noticed(tmp_path: Path) -> None:
    office = open_office(write_office(tmp_path))
    with office.client:
        assert office.ask().status_code == 200
        assert office.call("GET", "/readyz", None).status_code == 200
        spent = office.ledger.balance("people").epsilon.spent
        write_office(tmp_path, rows=501)
        for reply in (office.ask(), office.ask(f"{MEDIAN} WHERE age > 30"), office.call("GET", "/readyz", None)):
            assert reply.status_code == 503
            assert reply.json()["error"]["code"] == "data_changed"
            assert "nothing was charged" in reply.json()["error"]["message"]
            assert "restart" in reply.json()["error"]["fix"]
        assert office.call("GET", "/healthz", None).status_code == 200
        assert office.ledger.balance("people").epsilon.spent == spent


def test_what_was_answered_before_the_file_was_replaced_is_still_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, original = threading.Event(), DuckDbBackend.open_snapshot

    def held(*given: Any) -> Any:
        opened.wait(20)
        return original(*given)

    monkeypatch.setattr(DuckDbBackend, "open_snapshot", held)
    office = open_office(write_office(tmp_path))
    with office.client:
        href = office.ask(wait=0).json()["href"]
        opened.set()
        until(lambda: office.call("GET", href).json()["state"] == "answered")
        write_office(tmp_path, rows=501)
        assert office.ask().status_code == 503
        given = office.call("GET", href)
        assert given.status_code == 200
        assert given.json()["answer"]["rows"]

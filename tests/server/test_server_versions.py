"""A version that nobody declared tells a change of the file, and nothing about its records."""

from __future__ import annotations

import os
from pathlib import Path

from office import Office, open_office, write_office

from idios.party import TrustedParty


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
            versions.append(party.holdings["people"].dataset.version)
    write_office(tmp_path, rows=501)
    undeclared_again = tmp_path / "idios.toml"
    undeclared_again.write_text(undeclared_again.read_text().replace('version = "1"\n', ""))
    os.utime(source, ns=(10**18, 10**18))
    with TrustedParty.from_config(undeclared_again) as party:
        versions.append(party.holdings["people"].dataset.version)
    assert versions[0] == versions[1]
    assert len(set(versions)) == 3

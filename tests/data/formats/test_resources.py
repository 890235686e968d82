"""All engines together fit the machine; what a killed process leaves behind is removed, and only that."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from idios.data.backend import open_source
from idios.data.engines.duckdb import DuckDbBackend
from idios.data.formats.resources import (
    LEAST,
    LOCK,
    TemporaryFolder,
    divide_memory,
    limit_memory,
    memory_limit,
    remove_abandoned,
)
from idios.datasets import read_columns
from idios.declare.schema import Dataset
from idios.party import TrustedParty

TABLE = pa.table({"age": [1, 2, 3]})
PEOPLE = Dataset("people", read_columns({"age": "integer"}))
TOML = "".join(
    f"""
[datasets.people{i}]
source = "people.csv"
shares_source = true
budget = 1
columns = {{ age = "integer" }}
"""
    for i in range(4)
)


def limit(backend: object) -> float:
    assert isinstance(backend, DuckDbBackend)
    return memory_limit(backend._attached.cursors[0])


@pytest.fixture
def whole() -> float:
    with duckdb.connect(":memory:") as connection:
        return memory_limit(connection)


def test_one_source_has_all_there_is(whole: float) -> None:
    backend = open_source(TABLE, PEOPLE)
    assert limit(backend) == whole
    backend.close()


def test_parts_of_parts(whole: float) -> None:
    with divide_memory(2), divide_memory(4):
        backend = open_source(TABLE, PEOPLE)
    assert limit(backend) == pytest.approx(whole / 8, rel=0.05)
    backend.close()


def test_no_part_is_too_small_to_work_with() -> None:
    with duckdb.connect(":memory:") as connection, divide_memory(10**9):
        limit_memory(connection)
        assert memory_limit(connection) == pytest.approx(LEAST, rel=0.01)


def test_the_data_sets_of_a_party_share_the_memory(tmp_path: Path, whole: float) -> None:
    (tmp_path / "people.csv").write_text("age\n1\n2\n")
    (tmp_path / "idios.toml").write_text(TOML)
    with TrustedParty.from_config(tmp_path / "idios.toml") as party:
        limits = [limit(dataset.backend) for dataset in party.datasets.values()]
        assert len(limits) == 4
        assert sum(limits) <= whole * 1.01
        assert limit(party.twins.of(party.datasets["people0"].dataset)) <= max(LEAST, whole / 60)


HOLDS = """
import sys
import pyarrow as pa
from idios.party import TrustedParty
party = TrustedParty.open(pa.table({"age": [1]}), columns={"age": "integer"}, budget=1)
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place for temporary folders that no other test uses, for child processes too."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


@contextmanager
def holding() -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen([sys.executable, "-c", HOLDS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin
    assert process.stdout
    try:
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.wait(10)
        process.stdin.close()
        process.stdout.close()


def test_what_a_killed_process_left_is_removed_at_the_next_start(folder: Path) -> None:
    with holding() as process:
        (left,) = folder.iterdir()
        process.send_signal(signal.SIGKILL)
        process.wait(10)
        assert left.exists()
    with TrustedParty.open(pa.table({"age": [1]}), columns={"age": "integer"}, budget=1):
        assert not left.exists()
    assert list(folder.iterdir()) == []


def test_what_is_in_use_is_never_removed(folder: Path) -> None:
    with holding():
        (used,) = folder.iterdir()
        with TemporaryFolder() as own:
            assert remove_abandoned() == []
            assert used.exists()
            assert Path(own).exists()
    assert remove_abandoned() == [used.name]


def test_what_is_not_known_to_be_abandoned_is_left_alone(folder: Path) -> None:
    (folder / "idios-plain").mkdir()
    (folder / "idios-file").write_text("")
    target = folder / "elsewhere"
    target.mkdir()
    (target / LOCK).write_text("")
    (folder / "idios-link").symlink_to(target)
    (folder / "idios-lock-link").mkdir()
    (folder / "idios-lock-link" / LOCK).symlink_to(target / LOCK)
    assert remove_abandoned() == []
    assert len(list(folder.iterdir())) == 5

"""What a killed process leaves behind is removed; what a living one uses is not."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from idios.backends.resources import LOCK, TemporaryFolder, remove_abandoned
from idios.party import TrustedParty

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

"""What engines in this process take of the machine: memory, and temporary folders for what does not fit it.

DuckDB takes up to four fifths of the memory unless told otherwise, each connection for itself. A caller that opens
several divides the memory among them; what does not fit is spilled to disk.

A temporary folder does not outlive its process: one whose process was killed is removed at the next start. A folder
holds a file that its process keeps locked. The system gives the lock up when the process ends, however it ends, so a
process that gets it knows that the folder is abandoned. Folders without such a file are left alone. Where there are no
such locks (Windows), nothing is removed.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

import duckdb

if sys.platform != "win32":
    import fcntl

LEAST = 64
"""Mebibytes below which nothing can be computed."""
PREFIX = "idios-"
"""How the name of a temporary folder begins."""
LOCK = "in-use"
"""The file in it that its process keeps locked."""

_PARTS: ContextVar[int] = ContextVar("parts of the memory", default=1)
_UNITS = {"bytes": 2**-20, "KiB": 2**-10, "MiB": 1.0, "GiB": 2.0**10, "TiB": 2.0**20}


@contextmanager
def divide_memory(parts: int) -> Iterator[None]:
    """Give each connection that is opened inside 1/``parts`` of the memory it would have had."""
    token = _PARTS.set(_PARTS.get() * max(1, parts))
    try:
        yield
    finally:
        _PARTS.reset(token)


def limit_memory(connection: duckdb.DuckDBPyConnection) -> None:
    """Limit a connection to its part of what DuckDB found to be there, containers' limits included."""
    if _PARTS.get() > 1:
        part = max(LEAST, int(memory_limit(connection) / _PARTS.get()))
        connection.execute(f"SET memory_limit = '{part}MiB'")


def limit_reader() -> int:
    """The memory that a process that reads a file may take, in mebibytes: half of what a connection may."""
    with duckdb.connect(":memory:") as connection:
        return int(memory_limit(connection) / _PARTS.get() / 2)


def memory_limit(connection: duckdb.DuckDBPyConnection) -> float:
    """The memory that a connection may take, in mebibytes."""
    row = connection.execute("SELECT current_setting('memory_limit')").fetchone()
    written = re.fullmatch(r"([0-9.]+) (\w+)", str(row[0])) if row else None
    if written is None:
        raise AssertionError("DuckDB writes its memory limit as a number and a unit")
    return float(written[1]) * _UNITS[written[2]]


class TemporaryFolder(tempfile.TemporaryDirectory[str]):
    """A temporary folder that is known to be in use."""

    def __init__(self, purpose: str = "") -> None:
        super().__init__(prefix=f"{PREFIX}{purpose}-" if purpose else PREFIX)
        self._lock = -1
        if sys.platform == "win32":
            return
        # Under another name first: no other process may find the file before it is locked.
        draft = Path(self.name) / f"{LOCK}-draft"
        self._lock = os.open(draft, os.O_CREAT | os.O_RDWR, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        draft.rename(Path(self.name) / LOCK)

    def cleanup(self) -> None:
        """Remove it."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1
        super().cleanup()


def remove_abandoned() -> list[str]:
    """Remove this user's folders whose processes are gone; their names."""
    removed: list[str] = []
    if sys.platform == "win32":
        return removed
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            lock = os.open(folder / LOCK, os.O_RDWR | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder)
                removed.append(folder.name)
            finally:
                os.close(lock)
    return removed

"""Temporary folders that do not outlive their process: one whose process was killed is removed at the next start.

A folder holds a file that its process keeps locked. The system gives the lock up when the process ends, however it
ends, so a process that gets it knows that the folder is abandoned. Folders without such a file are left alone. Where
there are no such locks (Windows), nothing is removed.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

if sys.platform != "win32":
    import fcntl

PREFIX = "idios-"
LOCK = "in-use"


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

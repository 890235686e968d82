"""The key that signs the chain: 32 random bytes in a file of their own, outside the database."""

from __future__ import annotations

import fcntl
import hmac
import os
import secrets
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from idios.errors import LedgerUnavailable, WrongLedgerKey

LENGTH = 32


def generate_key() -> bytes:
    """Draw a fresh key from the operating system's generator."""
    return secrets.token_bytes(LENGTH)


def derive(key: bytes, purpose: str) -> bytes:
    """Derive a secret of 32 bytes for one purpose, always the same; it tells nothing about the key."""
    return hmac.digest(key, f"idios derived key: {purpose}".encode(), "sha256")


def read_key(path: Path) -> bytes | None:
    """Read the key in the file; None if there is no file."""
    try:
        key = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise WrongLedgerKey(f"the ledger's key file {path} cannot be read: {error.strerror}") from error
    if len(key) != LENGTH:
        raise WrongLedgerKey(
            f"the ledger's key file {path} holds {len(key)} bytes, a key has {LENGTH}; restore it from its backup"
        )
    return key


def create_key(path: Path) -> tuple[bytes, bool]:
    """Make a key, durably in the file before it is used; return it and True, or a faster process's key and False."""
    made = False
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        try:
            _write(draft, generate_key())
            # Linking fails if the name is taken, which renaming does not, and never shows half a key.
            os.link(draft, path)
            made = True
            sync_directory(path.parent)
        except FileExistsError:
            pass
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise WrongLedgerKey(f"the ledger's key file {path} cannot be created: {error.strerror}") from error
    key = read_key(path)
    if key is None:
        raise WrongLedgerKey(f"the ledger's key file {path} was removed while it was being created")
    return key, made


def _write(path: Path, content: bytes) -> None:
    handle = create_private_file(path)
    try:
        os.write(handle, content)
        os.fsync(handle)
    finally:
        os.close(handle)


def create_private_file(path: Path) -> int:
    """Make a new file that only its owner can read and write, whatever the umask; return its open handle."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    os.fchmod(handle, 0o600)
    return handle


def sync_directory(path: Path) -> None:
    """Make durable which names a directory holds."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class Hold:
    """A hold on a ledger by its key file: shared by processes that use it, exclusive for one that restores it.

    The ledger's own file is not locked: it may be moved away while a process still writes it.
    """

    def __init__(self, path: Path, *, exclusive: bool = False) -> None:
        try:
            handle = os.open(path, os.O_RDONLY)
        except OSError as error:
            raise WrongLedgerKey(f"the ledger's key file {path} cannot be read: {error.strerror}") from error
        self.release = weakref.finalize(self, os.close, handle)
        try:
            fcntl.flock(handle, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except BlockingIOError:
            self.release()
            raise LedgerUnavailable(
                f"a server or another command has the ledger open whose key is {path}; stop it first"
                if exclusive
                else f"the ledger whose key is {path} is being restored; try again when that is done"
            ) from None
        except OSError:
            pass  # a file system without locks


@contextmanager
def hold_exclusively(path: Path) -> Iterator[None]:
    """Hold the ledger of this key exclusively; refused while another process has it open."""
    hold = Hold(path, exclusive=True)
    try:
        yield
    finally:
        hold.release()

"""The key that signs the chain: 32 random bytes in a file of their own, outside the database."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from idios.errors import WrongLedgerKey

LENGTH = 32


def new_key() -> bytes:
    """A fresh key from the operating system's generator."""
    return secrets.token_bytes(LENGTH)


def read_key(path: Path) -> bytes | None:
    """The key in the file; None if there is no file."""
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


def create_key(path: Path) -> bytes:
    """A new key, durably in the file before it is used; if another process was first, that process's key."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        try:
            _write(draft, new_key())
            # Linking fails if the name is taken, which renaming does not, and never shows half a key.
            os.link(draft, path)
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
    return key


def _write(path: Path, content: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(handle, content)
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_directory(path: Path) -> None:
    """Make durable which names a directory holds."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

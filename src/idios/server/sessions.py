"""Console sessions: a signed cookie that names a token, never contains it, and dies with it.

    cookie = payload ‖ "." ‖ HMAC-SHA256(key, payload),   payload = token's name, expiry, 128 random bits
    CSRF token = HMAC-SHA256(key, "csrf" ‖ payload)

The key is derived from the ledger's own, so that every worker reads every cookie. Each request looks the token up by
its name: one that was revoked or has expired ends its sessions at once. Signing out ends one session everywhere: its
random bits are remembered by the ledger until it would have expired.
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

PURPOSE = "console session"


@dataclass(frozen=True)
class Session:
    """Whose session it is (by the name of their token), until when, and what their forms must carry."""

    id: str
    token: str
    expires: int
    csrf: str

    @property
    def end(self) -> datetime:
        """When it expires."""
        return datetime.fromtimestamp(self.expires, UTC)


class Sessions:
    """Makes and reads session cookies."""

    def __init__(self, key: bytes, hours: int, *, clock: Callable[[], float] = time.time) -> None:
        self._key = key
        self._seconds = hours * 3600
        self._clock = clock

    @property
    def seconds(self) -> int:
        """How long a session lasts."""
        return self._seconds

    def open(self, token: str) -> str:
        """A cookie for the holder of the token with this name.

        >>> sessions = Sessions(bytes(32), 12)
        >>> sessions.read(sessions.open("0123456789abcdef")).token
        '0123456789abcdef'
        """
        payload = f"{token}.{int(self._clock()) + self._seconds}.{secrets.token_hex(16)}"
        return f"{payload}.{self._mac('cookie', payload)}"

    def read(self, cookie: str) -> Session | None:
        """The session behind a cookie; None unless it was made here and is not over."""
        payload, _, mac = cookie.rpartition(".")
        if not payload.isascii() or not mac.isascii() or not hmac.compare_digest(self._mac("cookie", payload), mac):
            return None
        token, expires, id = payload.split(".")
        if int(expires) <= self._clock():
            return None
        return Session(id, token, int(expires), self._mac("csrf", payload))

    def _mac(self, purpose: str, payload: str) -> str:
        return hmac.digest(self._key, f"{purpose}:{payload}".encode(), "sha256").hex()


def same(given: str, expected: str) -> bool:
    """Compare two secrets in constant time."""
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), expected.encode())

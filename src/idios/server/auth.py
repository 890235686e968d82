"""Who is calling: the holder of a bearer token or of a console session, and what each role may do.

Both lead to the same identity: that of a token which the ledger knows, and which is neither revoked nor expired. A
session is a signed cookie that names a token, never contains it, and dies with it:

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
from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPBearer
from fastapi.security.http import HTTPAuthorizationCredentials

from idios.errors import NotPermitted
from idios.ledger import Identity, Ledger, Role
from idios.server.http_errors import FOR_CONTROLLERS, NOT_AUTHENTICATED, Problem, Refused, locate, too_many
from idios.server.limits import Limiter

PURPOSE = "console session"
COOKIE = "idios_session"
CSRF_HEADER = "X-CSRF-Token"
SAFE = ("GET", "HEAD", "OPTIONS")
FAILURES = 60
"""Failed sign-ins a minute from one address: 256 random bits cannot be guessed, but trying costs work."""
NO_CSRF = Problem(
    403,
    "not_permitted",
    "a request with a session cookie must carry the session's CSRF token",
    f"send the header {CSRF_HEADER}, or use a bearer token",
    locate("header", CSRF_HEADER),
)


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
        """Make a cookie for the holder of the token with this name.

        >>> sessions = Sessions(bytes(32), 12)
        >>> sessions.read(sessions.open("0123456789abcdef")).token
        '0123456789abcdef'
        """
        payload = f"{token}.{int(self._clock()) + self._seconds}.{secrets.token_hex(16)}"
        return f"{payload}.{self._mac('cookie', payload)}"

    def read(self, cookie: str) -> Session | None:
        """Read the session behind a cookie; None unless it was made here and is not over."""
        payload, _, mac = cookie.rpartition(".")
        if not payload.isascii() or not mac.isascii() or not hmac.compare_digest(self._mac("cookie", payload), mac):
            return None
        token, expires, id = payload.split(".")
        if int(expires) <= self._clock():
            return None
        return Session(id, token, int(expires), self._mac("csrf", payload))

    def _mac(self, purpose: str, payload: str) -> str:
        return hmac.digest(self._key, f"{purpose}:{payload}".encode(), "sha256").hex()


class Authenticator:
    """Tells who holds a token or a session, and limits how often each caller and each stranger may try."""

    def __init__(self, ledger: Ledger, session_hours: int, requests_per_minute: int) -> None:
        self.sessions = Sessions(ledger.derive(PURPOSE), session_hours)
        self.by_token = Limiter(requests_per_minute)
        self.failures = Limiter(FAILURES)
        self._ledger = ledger

    def authenticate(self, *, token: str | None, cookie: str | None = None) -> tuple[Identity, Session | None]:
        """Identify the holder of a bearer token or else of a session, or raise NotPermitted if it is not valid now."""
        if token is not None:
            return self._ledger.authenticate(token), None
        return self.authenticate_session(cookie)

    def authenticate_session(self, cookie: str | None) -> tuple[Identity, Session]:
        """Identify the holder of a session, or raise NotPermitted if it or its token is not valid now."""
        session = None if cookie is None else self.sessions.read(cookie)
        if session is None or self._ledger.sessions.has_ended(session.id):
            raise NotPermitted("no session")
        return self._ledger.identify(session.token), session

    def limit_failures(self, request: Request) -> None:
        """Count a failed attempt against its address, and refuse it if there were too many."""
        seconds = self.failures.try_acquire(request.client.host if request.client else "unknown")
        if seconds:
            raise Refused(too_many(seconds))

    def limit_requests(self, identity: Identity) -> None:
        """Count a request against its token, and refuse it if there were too many."""
        seconds = self.by_token.try_acquire(identity.token)
        if seconds:
            raise Refused(too_many(seconds))

    def end(self, session: Session) -> None:
        """Sign out: end the session, wherever a copy of its cookie is."""
        self._ledger.sessions.end(session.id, session.end)


bearer = HTTPBearer(
    auto_error=False,
    description="A token of 256 random bits, issued by the controller with `idios analyst token NAME`.",
)


def authenticate_caller(
    request: Request, given: Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)] = None
) -> Identity:
    """Identify the caller of the API; with a session, a request that changes something carries its CSRF token."""
    auth: Authenticator = request.app.state.service.auth
    token = None if given is None else given.credentials
    try:
        identity, session = auth.authenticate(token=token, cookie=read_cookie(request))
    except NotPermitted:
        auth.limit_failures(request)
        raise Refused(NOT_AUTHENTICATED) from None
    if session is not None and request.method not in SAFE:
        check_csrf(session, request.headers.get(CSRF_HEADER, ""), NO_CSRF)
    auth.limit_requests(identity)
    request.scope["idios.identity"] = identity
    return identity


def require_controller(identity: Annotated[Identity, Depends(authenticate_caller)]) -> Identity:
    """Refuse every caller but a controller."""
    check_controller(identity)
    return identity


Caller = Annotated[Identity, Depends(authenticate_caller)]
Controller = Annotated[Identity, Depends(require_controller)]


def check_controller(identity: Identity) -> None:
    """Refuse an identity that is not a controller's."""
    if identity.role is not Role.CONTROLLER:
        raise Refused(FOR_CONTROLLERS)


def check_csrf(session: Session, given: str, problem: Problem) -> None:
    """Refuse a request that does not carry its session's CSRF token; they are compared in constant time."""
    if not hmac.compare_digest(given.encode("utf-8", "surrogatepass"), session.csrf.encode()):
        raise Refused(problem)


def read_cookie(request: Request) -> str | None:
    """Read the session's cookie of a request, if it has one."""
    return request.cookies.get(cookie_name(request))


def cookie_name(request: Request) -> str:
    """Name the cookie; over TLS it has the prefix that browsers accept only from this host, for all paths."""
    return f"__Host-{COOKIE}" if request.url.scheme == "https" else COOKIE


def charged_analyst(identity: Identity) -> str | None:
    """Name the analyst who is charged beside the data set; None for the controller."""
    return None if identity.role is Role.CONTROLLER else identity.name


def caller_name(identity: Identity) -> str:
    """Name the caller as the log and the ledger's table of running questions do."""
    return f"{identity.role}:{identity.name}"

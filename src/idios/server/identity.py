"""Who is asking: a bearer token, or a console session with its CSRF token; and what each role may do."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPBearer
from fastapi.security.http import HTTPAuthorizationCredentials

from idios.errors import NotPermitted
from idios.ledger import Identity, Role
from idios.server.problems import FOR_CONTROLLERS, NOT_AUTHENTICATED, Problem, Refused, place, too_many
from idios.server.service import Service
from idios.server.sessions import Session, same

COOKIE = "idios_session"
CSRF_HEADER = "X-CSRF-Token"
SAFE = ("GET", "HEAD", "OPTIONS")
NO_CSRF = Problem(
    403,
    "not_permitted",
    "a request with a session cookie must carry the session's CSRF token",
    f"send the header {CSRF_HEADER}, or use a bearer token",
    place("header", CSRF_HEADER),
)

bearer = HTTPBearer(
    auto_error=False,
    description="A token of 256 random bits, issued by the controller with `idios analyst token NAME`.",
)


def service_of(request: Request) -> Service:
    """The server process that a request came to."""
    found: Service = request.app.state.service
    return found


def session_of(request: Request) -> Session | None:
    """The console session of a request, if its cookie is valid and was not signed out."""
    service = service_of(request)
    cookie = request.cookies.get(cookie_name(request))
    session = None if cookie is None else service.sessions.read(cookie)
    return None if session is None or service.party.ledger.sessions.has_ended(session.id) else session


def cookie_name(request: Request) -> str:
    """The cookie's name; over TLS it has the prefix that browsers accept only from this host, for all paths."""
    return f"__Host-{COOKIE}" if request.url.scheme == "https" else COOKIE


def caller(request: Request, given: Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)] = None) -> Identity:
    """The holder of the token or the session; refused unless it is valid now."""
    service = service_of(request)
    address = request.client.host if request.client else "unknown"
    session = None if given is not None else session_of(request)
    try:
        if given is not None:
            identity = service.party.ledger.authenticate(given.credentials)
        elif session is not None:
            identity = service.party.ledger.identify(session.token)
        else:
            raise NotPermitted("no token")
    except NotPermitted:
        seconds = service.strangers.wait(address)
        raise Refused(too_many(seconds) if seconds else NOT_AUTHENTICATED) from None
    given_csrf = request.headers.get(CSRF_HEADER, "")
    if session is not None and request.method not in SAFE and not same(given_csrf, session.csrf):
        raise Refused(NO_CSRF)
    seconds = service.by_token.wait(identity.token)
    if seconds:
        raise Refused(too_many(seconds))
    request.scope["idios.identity"] = identity
    return identity


def controller(identity: Annotated[Identity, Depends(caller)]) -> Identity:
    """The holder of a controller's token."""
    if identity.role is not Role.CONTROLLER:
        raise Refused(FOR_CONTROLLERS)
    return identity


Caller = Annotated[Identity, Depends(caller)]
Controller = Annotated[Identity, Depends(controller)]


async def _served(request: Request) -> Service:
    return service_of(request)


Served = Annotated[Service, Depends(_served)]

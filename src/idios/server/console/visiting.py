"""Who opens a page: a session's holder, looked up anew at every request; forms carry the session's CSRF token."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from anyio.to_thread import run_sync
from fastapi import Depends, Request
from fastapi.responses import Response

from idios.errors import NotPermitted
from idios.ledger import Identity, Ledger, Role
from idios.party import TrustedParty
from idios.server.identity import cookie_name, service_of, session_of
from idios.server.problems import FOR_CONTROLLERS, NOT_AUTHENTICATED, Problem, Refused, place, too_many
from idios.server.service import Service
from idios.server.sessions import Session, same

FIELD = "csrf"
STALE = Problem(
    403,
    "not_permitted",
    "this form does not belong to the session it came with",
    "open the page again and send the form from there",
    place("body", FIELD),
)


@dataclass(frozen=True)
class Visit:
    """One request of a visitor who has signed in, with the fields of their form, if they sent one."""

    request: Request
    service: Service
    identity: Identity
    session: Session
    form: Mapping[str, str] = field(default_factory=dict)

    @property
    def csrf(self) -> str:
        """The CSRF token that the visitor's forms must carry."""
        return self.session.csrf

    @property
    def ledger(self) -> Ledger:
        """The ledger."""
        return self.service.party.ledger

    @property
    def party(self) -> TrustedParty:
        """The party with the data sets that the visitor may see."""
        return self.service.party_for(self.identity)

    @property
    def oversees(self) -> bool:
        """Whether the visitor is a controller."""
        return self.identity.role is Role.CONTROLLER

    def sent(self, name: str) -> str:
        """A field of the form, stripped of blanks around it; empty if it is not there."""
        # Browsers send line breaks as CRLF.
        return self.form.get(name, "").replace("\r\n", "\n").strip()


def visitor(request: Request) -> Visit:
    """The holder of the session's token; a token that was revoked or has expired ends the session here."""
    service, session = service_of(request), session_of(request)
    if session is None:
        raise Refused(NOT_AUTHENTICATED)
    try:
        identity = service.party.ledger.identify(session.token)
    except NotPermitted:
        raise Refused(NOT_AUTHENTICATED) from None
    seconds = service.by_token.wait(identity.token)
    if seconds:
        raise Refused(too_many(seconds))
    visit = Visit(request, service, identity, session)
    request.scope["idios.identity"], request.scope["idios.visit"] = identity, visit
    return visit


async def sender(request: Request) -> Visit:
    """A visitor who sends a form with the CSRF token of their session."""
    visit = await run_sync(visitor, request)
    form = await read_form(request)
    if not same(form.get(FIELD, ""), visit.csrf):
        raise Refused(STALE)
    return Visit(request, visit.service, visit.identity, visit.session, form)


def overseer(visit: Annotated[Visit, Depends(visitor)]) -> Visit:
    """A controller who opens a page."""
    return _controller(visit)


def deciding(visit: Annotated[Visit, Depends(sender)]) -> Visit:
    """A controller who sends a form."""
    return _controller(visit)


def _controller(visit: Visit) -> Visit:
    if not visit.oversees:
        raise Refused(FOR_CONTROLLERS)
    return visit


async def read_form(request: Request) -> dict[str, str]:
    """The fields of a form; files are not taken."""
    async with request.form(max_files=0, max_fields=100) as form:
        return {name: value for name, value in form.items() if isinstance(value, str)}


def forget(request: Request, response: Response) -> None:
    """Have the browser drop its session."""
    response.delete_cookie(
        cookie_name(request), path="/", secure=request.url.scheme == "https", httponly=True, samesite="strict"
    )


Visitor = Annotated[Visit, Depends(visitor)]
Sender = Annotated[Visit, Depends(sender)]
Overseer = Annotated[Visit, Depends(overseer)]
Deciding = Annotated[Visit, Depends(deciding)]

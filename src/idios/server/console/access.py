"""Access to the console's pages: the holder of a session, looked up anew at every request, and what they sent.

Authentication is the API's own (``server/auth.py``); here forms carry the session's CSRF token in a field.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated

from anyio.to_thread import run_sync
from fastapi import Depends, Request
from fastapi.responses import Response

from idios.errors import NotPermitted
from idios.ledger import Identity, Ledger, Role
from idios.party import TrustedParty
from idios.server.auth import Session, check_controller, check_csrf, cookie_name, read_cookie
from idios.server.http_errors import NOT_AUTHENTICATED, Problem, Refused, locate
from idios.server.service import Service, service_of

CSRF_FIELD = "csrf"
STALE_FORM = Problem(
    403,
    "not_permitted",
    "this form does not belong to the session it came with",
    "open the page again and send the form from there",
    locate("body", CSRF_FIELD),
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
        return self.service.ledger

    @property
    def party(self) -> TrustedParty:
        """The party with the data sets that the visitor may see."""
        return self.service.party_for(self.identity)

    @property
    def is_controller(self) -> bool:
        """Whether the visitor is a controller."""
        return self.identity.role is Role.CONTROLLER

    def field(self, name: str) -> str:
        """A field of the form, stripped of blanks around it; empty if it is not there."""
        # Browsers send line breaks as CRLF.
        return self.form.get(name, "").replace("\r\n", "\n").strip()


def open_page(request: Request) -> Visit:
    """Identify the visitor by their session; a token that was revoked or has expired ends the session here."""
    service = service_of(request)
    try:
        identity, session = service.auth.authenticate_session(read_cookie(request))
    except NotPermitted:
        raise Refused(NOT_AUTHENTICATED) from None
    service.auth.limit_requests(identity)
    visit = Visit(request, service, identity, session)
    request.scope["idios.identity"], request.scope["idios.visit"] = identity, visit
    return visit


async def receive_form(request: Request) -> Visit:
    """Identify a visitor who sends a form with the CSRF token of their session."""
    visit = await run_sync(open_page, request)
    form = await read_form(request)
    check_csrf(visit.session, form.get(CSRF_FIELD, ""), STALE_FORM)
    return replace(visit, form=form)


def open_controller_page(visit: Annotated[Visit, Depends(open_page)]) -> Visit:
    """Refuse a page to every visitor but a controller."""
    check_controller(visit.identity)
    return visit


def receive_controller_form(visit: Annotated[Visit, Depends(receive_form)]) -> Visit:
    """Refuse a form of every visitor but a controller."""
    check_controller(visit.identity)
    return visit


async def read_form(request: Request) -> dict[str, str]:
    """Read the fields of a form; files are not taken."""
    async with request.form(max_files=0, max_fields=100) as form:
        return {name: value for name, value in form.items() if isinstance(value, str)}


def drop_session(request: Request, response: Response) -> None:
    """Have the browser drop its session."""
    response.delete_cookie(
        cookie_name(request), path="/", secure=request.url.scheme == "https", httponly=True, samesite="strict"
    )


PageVisit = Annotated[Visit, Depends(open_page)]
FormVisit = Annotated[Visit, Depends(receive_form)]
ControllerPage = Annotated[Visit, Depends(open_controller_page)]
ControllerForm = Annotated[Visit, Depends(receive_controller_form)]

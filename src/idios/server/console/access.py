"""Access to the console: signing in with a token and out, and the holder of a session at every request.

The token is sent once, in a form's body, and never kept. Authentication is the API's own (``server/auth.py``); here
forms carry the session's CSRF token in a field.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated
from urllib.parse import urlsplit

from anyio.to_thread import run_sync
from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response

from idios.errors import NotPermitted
from idios.ledger import Identity, Ledger, Role
from idios.party import TrustedParty
from idios.server.auth import Session, check_controller, check_csrf, cookie_name, drop_session, read_cookie
from idios.server.console.pages import redirect, show_open
from idios.server.http_errors import NOT_AUTHENTICATED, Problem, Refused, locate
from idios.server.service import Service, service_of

router = APIRouter()

CSRF_FIELD = "csrf"
STALE_FORM = Problem(
    403,
    "not_permitted",
    "this form does not belong to the session it came with",
    "open the page again and send the form from there",
    locate("body", CSRF_FIELD),
)
WRONG_TOKEN = Problem(
    401,
    "not_authenticated",
    "This token is unknown, revoked or expired.",
    "Paste the whole token as the controller gave it to you, or ask for a new one.",
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


PageVisit = Annotated[Visit, Depends(open_page)]
FormVisit = Annotated[Visit, Depends(receive_form)]
ControllerPage = Annotated[Visit, Depends(open_controller_page)]
ControllerForm = Annotated[Visit, Depends(receive_controller_form)]


@router.get("/")
@router.get("/console")
@router.get("/console/")
def redirect_to_start(visit: PageVisit) -> Response:
    """Redirect to the first page of the visitor's role."""
    return redirect("/console/overview" if visit.is_controller else "/console/datasets")


@router.get("/console/sign-in")
def sign_in_page(request: Request, ended: str = "", left: str = "") -> Response:
    """The form that asks for a token; a visitor who has signed in is redirected to the console."""
    try:
        open_page(request)
    except Refused:
        message = "Your session has ended, or your token was revoked. Sign in again." if ended else ""
        return show_open("sign-in.html", done=message or ("You have signed out." if left else None))
    return redirect("/console")


@router.post("/console/sign-in")
async def sign_in(request: Request) -> Response:
    """Open a session for the holder of the token."""
    if not _is_same_origin(request):
        raise Refused(STALE_FORM)
    service = service_of(request)
    form = await read_form(request)
    try:
        identity, _ = await run_sync(lambda: service.auth.authenticate(token=form.get("token", "").strip()))
    except NotPermitted:
        service.auth.limit_failures(request)
        return show_open("sign-in.html", status=401, problem=WRONG_TOKEN)
    service.auth.limit_requests(identity)  # each session that is signed out leaves a row in the ledger's database
    request.scope["idios.identity"] = identity
    response = redirect("/console")
    response.set_cookie(
        cookie_name(request),
        service.auth.sessions.open(identity.token),
        max_age=service.auth.sessions.seconds,
        path="/",
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )
    return response


@router.post("/console/sign-out")
async def sign_out(visit: FormVisit) -> Response:
    """End the session, wherever a copy of its cookie is."""
    await run_sync(visit.service.auth.end, visit.session)
    response = redirect("/console/sign-in?left=1")
    drop_session(visit.request, response)
    return response


def _is_same_origin(request: Request) -> bool:
    """Whether the form came from this server's own page, as far as the browser says."""
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site in ("same-origin", "none")
    origin = request.headers.get("origin")
    return origin is None or urlsplit(origin).netloc == request.headers.get("host")

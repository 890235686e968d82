"""Signing in with a token, and out. The token is sent once, in a form's body, and never kept."""

from __future__ import annotations

from urllib.parse import urlsplit

from anyio.to_thread import run_sync
from fastapi import APIRouter, Request
from fastapi.responses import Response

from idios.errors import NotPermitted
from idios.ledger import Role
from idios.server.console.pages import back, show_open
from idios.server.console.visiting import STALE, Sender, Visitor, forget, read_form, visitor
from idios.server.identity import cookie_name, service_of
from idios.server.problems import Problem, Refused, too_many

router = APIRouter()

WRONG = Problem(
    401,
    "not_authenticated",
    "This token is unknown, revoked or expired.",
    "Paste the whole token as the controller gave it to you, or ask for a new one.",
)


@router.get("/")
@router.get("/console")
@router.get("/console/")
def begin(visit: Visitor) -> Response:
    """Redirect to the first page of the visitor's role."""
    return back("/console/overview" if visit.identity.role is Role.CONTROLLER else "/console/datasets")


@router.get("/console/sign-in")
def sign_in_page(request: Request, ended: str = "", left: str = "") -> Response:
    """The form that asks for a token; a visitor who has signed in is redirected to the console."""
    try:
        visitor(request)
    except Refused:
        said = "Your session has ended, or your token was revoked. Sign in again." if ended else ""
        return show_open("sign-in.html", done=said or ("You have signed out." if left else None))
    return back("/console")


@router.post("/console/sign-in")
async def sign_in(request: Request) -> Response:
    """Open a session for the holder of the token."""
    if not _own(request):
        raise Refused(STALE)
    service = service_of(request)
    form = await read_form(request)
    try:
        identity = await run_sync(service.party.ledger.authenticate, form.get("token", "").strip())
    except NotPermitted:
        seconds = service.strangers.wait(request.client.host if request.client else "unknown")
        if seconds:
            raise Refused(too_many(seconds)) from None
        return show_open("sign-in.html", status=401, problem=WRONG)
    request.scope["idios.identity"] = identity
    response = back("/console")
    response.set_cookie(
        cookie_name(request),
        service.sessions.open(identity.token),
        max_age=service.sessions.seconds,
        path="/",
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )
    return response


@router.post("/console/sign-out")
async def sign_out(visit: Sender) -> Response:
    """End the session, wherever a copy of its cookie is."""
    await run_sync(visit.ledger.sessions.end, visit.session.id, visit.session.end)
    response = back("/console/sign-in?left=1")
    forget(visit.request, response)
    return response


def _own(request: Request) -> bool:
    """Whether the form came from this server's own page, as far as the browser says."""
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site in ("same-origin", "none")
    origin = request.headers.get("origin")
    return origin is None or urlsplit(origin).netloc == request.headers.get("host")

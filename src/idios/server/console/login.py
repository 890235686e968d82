"""Signing in with a token, and out. The token is sent once, in a form's body, and never kept."""

from __future__ import annotations

from urllib.parse import urlsplit

from anyio.to_thread import run_sync
from fastapi import APIRouter, Request
from fastapi.responses import Response

from idios.errors import NotPermitted
from idios.server.auth import cookie_name
from idios.server.console.access import STALE_FORM, FormVisit, PageVisit, drop_session, open_page, read_form
from idios.server.console.pages import redirect, show_open
from idios.server.http_errors import Problem, Refused
from idios.server.service import service_of

router = APIRouter()

WRONG_TOKEN = Problem(
    401,
    "not_authenticated",
    "This token is unknown, revoked or expired.",
    "Paste the whole token as the controller gave it to you, or ask for a new one.",
)


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

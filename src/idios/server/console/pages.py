"""Pages: templates filled in, with the headers that every page has; a page for every error; and the files they load."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from fractions import Fraction
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from jinja2 import Environment, PackageLoader, StrictUndefined

from idios.display import CLIPPED_BIAS, FRESH_BUDGET, NO_ROWS, RHO_MEANING, format_meaning, name_interval
from idios.model.balance import describe_rho
from idios.server.auth import drop_session, read_cookie
from idios.server.console import formatting
from idios.server.http_errors import NO_SUCH_PAGE, Problem, Refused

if TYPE_CHECKING:
    from idios.server.console.access import Visit

router = APIRouter()

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    # Forms say where they come from, to this server alone.
    "Referrer-Policy": "same-origin",
}
ANALYST_LINKS = (("datasets", "Data sets"), ("ask", "Ask"), ("history", "History"))
CONTROLLER_LINKS = (("overview", "Overview"), ("ledger", "Ledger"), ("analysts", "Analysts"), ("compare", "Compare"))
TITLES = {
    403: "Not permitted",
    404: "There is nothing here",
    405: "This address takes no such request",
    408: "The request took too long",
    413: "The request is too large",
    422: "The request cannot be read",
    429: "Too many requests",
    503: "Not now",
}
ADVICE = {
    "not_found": "follow one of the links above, or begin at /console",
    "no_such_method": "follow one of the links above, or begin at /console",
    "internal_error": "go back and try again: a question that was charged costs nothing more; tell the controller the "
    "request's id if it lasts",
    "busy": "ask again in a few seconds",
    "ledger_unavailable": "try again in a moment, and tell the controller if it lasts",
}
"""What to do where the API's advice is about headers and bodies."""

TYPES = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
FOR_EVER = "public, max-age=31536000, immutable"


@dataclass(frozen=True)
class Asset:
    """A file as it is served; its address changes with its content, so that browsers may keep it for ever."""

    address: str
    content: bytes
    media_type: str


def _read_asset(name: str) -> Asset:
    content = (files("idios.server.console") / "static" / name).read_bytes()
    stem, ending = name.split(".")
    return Asset(f"/console/assets/{stem}.{hashlib.sha256(content).hexdigest()[:16]}.{ending}", content, TYPES[ending])


ASSETS = {name: _read_asset(name) for name in ("console.css", "console.js", "mark.svg")}
_BY_ADDRESS = {asset.address: asset for asset in ASSETS.values()}

templates = Environment(
    loader=PackageLoader("idios.server.console"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
templates.globals |= {
    "assets": {name: asset.address for name, asset in ASSETS.items()},
    "clipped_bias": CLIPPED_BIAS,
    "name_interval": name_interval,
    "no_rows": NO_ROWS,
    "describe_level": formatting.describe_level,
    "describe_unit": formatting.describe_unit,
    "describe_neighbours": formatting.describe_neighbours,
    "describe_rho": lambda amount: describe_rho(Fraction(amount)),
    "format_meaning": format_meaning,
    "rho_meaning": RHO_MEANING,
    "fresh_budget": FRESH_BUDGET,
}
templates.filters |= {
    "amount": formatting.format_amount,
    "quantity": formatting.format_quantity,
    "figure": formatting.format_value,
    "limits": formatting.format_limits,
    "moment": formatting.format_time,
    "approximate": formatting.format_rough,
}


def show(visit: Visit, template: str, *, status: int = 200, **values: Any) -> Response:
    """A page for a visitor who has signed in; ``problem`` is what went wrong on it, if something did."""
    wrong: Problem | None = values.get("problem")

    def kept(action: str, field: str, usual: str = "") -> str:
        """What was written into a field of the form that is shown again."""
        return visit.form.get(field, usual) if failed(action) else usual

    def failed(action: str) -> bool:
        return wrong is not None and visit.request.url.path == action

    context = {"done": None, **values, "kept": kept, "failed": failed, **_frame(visit, template)}
    context["problem"] = None if wrong is None else adapt_advice(wrong, visit.is_controller)
    return HTMLResponse(templates.get_template(template).render(context), status, headers=HEADERS)


def show_open(template: str, *, status: int = 200, headers: dict[str, str] | None = None, **values: Any) -> Response:
    """A page that needs no session."""
    context = {"problem": None, "done": None, **values, "identity": None, "links": (), "csrf": ""}
    return HTMLResponse(templates.get_template(template).render(context), status, headers=HEADERS | (headers or {}))


def adapt_advice(problem: Problem, is_controller: bool = False) -> Problem:
    """A problem with advice for the reader of a page; a controller is not told to ask the controller."""
    usual = "" if is_controller and problem.code == "not_permitted" else problem.fix
    return replace(problem, fix=ADVICE.get(problem.code, usual))


def redirect(address: str) -> Response:
    """After a form: the page it changed, so that reloading repeats nothing."""
    return RedirectResponse(address, 303, headers=HEADERS)


def error_page(request: Request, problem: Problem) -> Response:
    """The page for a request that ended with a problem; a visitor who is not signed in is asked to sign in."""
    if problem.status == 401:
        ended = read_cookie(request) is not None
        response = redirect("/console/sign-in?ended=1" if ended else "/console/sign-in")
        if ended:
            drop_session(request, response)
        return response
    title = TITLES.get(problem.status, "Something went wrong")
    values = {
        "title": title,
        "failure": adapt_advice(problem),
        "request_id": request.scope.get("idios.request", ""),
    }
    visit: Visit | None = request.scope.get("idios.visit")
    if visit is None:
        return show_open("error.html", status=problem.status, headers=problem.headers, **values)
    page = show(visit, "error.html", status=problem.status, **values)
    page.headers.update(problem.headers)
    return page


def _frame(visit: Visit, template: str) -> dict[str, Any]:
    links = CONTROLLER_LINKS + ANALYST_LINKS if visit.is_controller else ANALYST_LINKS
    here = {"question.html": "ask"}.get(template, template.removesuffix(".html"))
    return {
        "identity": visit.identity,
        "links": [(f"/console/{name}", title, name == here) for name, title in links],
        "csrf": visit.csrf,
    }


@router.get("/console/assets/{name}")
async def send_asset(name: str) -> Response:
    """Send one file to any caller: it holds nothing private."""
    asset = _BY_ADDRESS.get(f"/console/assets/{name}")
    if asset is None:
        raise Refused(NO_SUCH_PAGE)
    return Response(asset.content, media_type=asset.media_type, headers={"Cache-Control": FOR_EVER})

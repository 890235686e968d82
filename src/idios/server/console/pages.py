"""Pages: templates filled in, with the headers that every page has; and a page for every error."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from jinja2 import Environment, PackageLoader, StrictUndefined

from idios.ledger import Role
from idios.server.console import wording
from idios.server.console.assets import ASSETS
from idios.server.console.visiting import Visit, forget
from idios.server.identity import cookie_name
from idios.server.problems import Problem

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    # Forms say where they come from, to this server alone.
    "Referrer-Policy": "same-origin",
}
ASKING = (("datasets", "Data sets"), ("ask", "Ask"), ("history", "History"))
OVERSEEING = (("overview", "Overview"), ("ledger", "Ledger"), ("analysts", "Analysts"), ("compare", "Compare"))
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
FOR_PEOPLE = {
    "not_found": "follow one of the links above, or begin at /console",
    "no_such_method": "follow one of the links above, or begin at /console",
    "internal_error": "go back and try again: a question that was charged costs nothing more; tell the controller the "
    "request's id if it lasts",
    "busy": "ask again in a few seconds",
    "ledger_unavailable": "try again in a moment, and tell the controller if it lasts",
}
"""What to do where the API's advice is about headers and bodies."""

templates = Environment(
    loader=PackageLoader("idios.server.console"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
templates.globals |= {"assets": {name: asset.address for name, asset in ASSETS.items()}, "wording": wording}
templates.filters |= {
    "amount": wording.amount,
    "quantity": wording.quantity,
    "figure": wording.figure,
    "moment": wording.moment,
    "approximate": wording.approximate,
}


def show(visit: Visit, template: str, *, status: int = 200, **values: Any) -> Response:
    """A page for a visitor who has signed in; ``problem`` is what went wrong on it, if something did."""
    wrong: Problem | None = values.get("problem")

    def kept(action: str, field: str, usual: str = "") -> str:
        """What was written into a field of the form that is shown again."""
        return visit.form.get(field, usual) if failed(action) else usual

    def failed(action: str) -> bool:
        return wrong is not None and visit.request.url.path == action

    shown = {"done": None, **values, "kept": kept, "failed": failed, **_frame(visit, template)}
    shown["problem"] = None if wrong is None else for_people(wrong, visit.oversees)
    return HTMLResponse(templates.get_template(template).render(shown), status, headers=HEADERS)


def show_open(template: str, *, status: int = 200, headers: dict[str, str] | None = None, **values: Any) -> Response:
    """A page that needs no session."""
    shown = {"problem": None, "done": None, **values, "identity": None, "links": (), "csrf": ""}
    return HTMLResponse(templates.get_template(template).render(shown), status, headers=HEADERS | (headers or {}))


def for_people(problem: Problem, oversees: bool = False) -> Problem:
    """A problem with advice for the reader of a page; a controller is not told to ask the controller."""
    usual = "" if oversees and problem.code == "not_permitted" else problem.fix
    return replace(problem, fix=FOR_PEOPLE.get(problem.code, usual))


def back(address: str) -> Response:
    """After a form: the page it changed, so that reloading repeats nothing."""
    return RedirectResponse(address, 303, headers=HEADERS)


def error_page(request: Request, problem: Problem) -> Response:
    """The page for a request that ended with a problem; a visitor who is not signed in is asked to sign in."""
    if problem.status == 401:
        ended = cookie_name(request) in request.cookies
        gone = back("/console/sign-in?ended=1" if ended else "/console/sign-in")
        if ended:
            forget(request, gone)
        return gone
    title = TITLES.get(problem.status, "Something went wrong")
    values = {
        "title": title,
        "failure": for_people(problem),
        "request_id": request.scope.get("idios.request", ""),
    }
    visit: Visit | None = request.scope.get("idios.visit")
    if visit is None:
        return show_open("error.html", status=problem.status, headers=problem.headers, **values)
    page = show(visit, "error.html", status=problem.status, **values)
    page.headers.update(problem.headers)
    return page


def _frame(visit: Visit, template: str) -> dict[str, Any]:
    links = ASKING if visit.identity.role is Role.ANALYST else OVERSEEING + ASKING
    here = {"question.html": "ask"}.get(template, template.removesuffix(".html"))
    return {
        "identity": visit.identity,
        "links": [(f"/console/{name}", title, name == here) for name, title in links],
        "csrf": visit.csrf,
    }

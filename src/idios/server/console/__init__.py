"""The console: server-rendered pages for analysts and controllers, with a little script of their own.

Rules:

1. Nothing is loaded from elsewhere, and nothing is written into a page but text: no inline script, no inline style.
2. Every change is a form with the session's CSRF token. Reloading a page never asks a question twice.
3. Everything works without script, except completion, the live quote and copying.
4. The pages show what the service does (``server/service.py``), which the API calls too; nothing is decided here.
"""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import Response

from idios.server.console import analyst_pages, ask, controller_pages, login, manage_analysts, pages
from idios.server.console.access import PageVisit
from idios.server.console.pages import error_page
from idios.server.http_errors import NO_SUCH_PAGE, Refused

__all__ = ["error_page", "router"]

PARTS = (pages, login, analyst_pages, ask, controller_pages, manage_analysts)

# The console is for people: the OpenAPI document does not describe it.
router = APIRouter(include_in_schema=False)
for part in PARTS:
    router.include_router(part.router)


@router.get("/console/{path:path}")
def refuse_other_addresses(visit: PageVisit, path: str) -> Response:
    """Any other address: a page that says so, for visitors who have signed in."""
    raise Refused(NO_SUCH_PAGE)

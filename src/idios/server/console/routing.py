"""Every address of the console."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import Response

from idios.server.console import admitting, analyst, asking, assets, comparing, controller, signing
from idios.server.console.visiting import Visitor
from idios.server.problems import NO_SUCH_PAGE, Refused

PARTS = (assets, signing, analyst, asking, controller, admitting, comparing)

# The console is for people: the OpenAPI document does not describe it.
router = APIRouter(include_in_schema=False)
for part in PARTS:
    router.include_router(part.router)


@router.get("/console/{path:path}")
def nothing(visit: Visitor, path: str) -> Response:
    """Any other address: a page that says so, for visitors who have signed in."""
    raise Refused(NO_SUCH_PAGE)

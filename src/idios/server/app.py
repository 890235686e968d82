"""The application: routes, the doorway (middleware), one shape for errors, and a graceful shutdown."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from idios.errors import IdiosError
from idios.server import console
from idios.server.doorway import Doorway
from idios.server.problems import NO_SUCH_PAGE, Problem, Refused, place, problem
from idios.server.routes import analyst, controller, health
from idios.server.service import Service

DESCRIPTION = """\
A trusted party of individual differential privacy: statistical questions in SQL, answered with noise, within a budget.

Every error has one shape: `{"error": {"code", "message", "where", "fix", "request"}}`. Exact numbers are text.
"""


def create_app(service: Service) -> FastAPI:
    """The application of one server process; it closes the party when it ends."""

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        yield
        await service.desk.close()
        service.party.close()

    app = FastAPI(
        title="Idios",
        version=version("idios"),
        description=DESCRIPTION,
        lifespan=life,
        # FastAPI's own documentation pages load their scripts from another host.
        docs_url=None,
        redoc_url=None,
        # A redirect to the path without its slash would lead to whatever host the request names.
        redirect_slashes=False,
    )
    app.state.service = service
    app.state.sent = _sent
    app.add_middleware(Doorway)
    app.add_exception_handler(Refused, _refused)
    app.add_exception_handler(IdiosError, _foreseen)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _unknown)
    for routes in (health, analyst, controller, console):
        app.include_router(routes.router)
    return app


def _sent(request: Request, found: Problem) -> Response:
    """A problem as JSON, or as a page in the console."""
    request.scope["idios.counted"] = found.counted
    if request.url.path == "/" or request.url.path.startswith("/console"):
        return console.error_page(request, found)
    return JSONResponse(found.body(request.scope["idios.request"]), found.status, headers=found.headers)


async def _refused(request: Request, error: Any) -> Response:
    return _sent(request, error.problem)


async def _foreseen(request: Request, error: Any) -> Response:
    return _sent(request, problem(error))


async def _invalid(request: Request, error: Any) -> Response:
    first = error.errors()[0]
    part, *names = (str(one) for one in first["loc"])
    if first["type"] == "json_invalid":
        part, names = "body", []
    name = ".".join(names) or None
    message = f"{name}: {first['msg']}" if name else str(first["msg"])
    where = place(part if part in ("body", "query", "path", "header") else "body", name)
    return _sent(
        request, Problem(422, "invalid_request", message, "see /openapi.json for what this address takes", where)
    )


async def _unknown(request: Request, error: Any) -> Response:
    if error.status_code == 404:
        return _sent(request, NO_SUCH_PAGE)
    code = {405: "no_such_method"}.get(error.status_code, "invalid_request")
    fix = "see /openapi.json for what there is"
    return _sent(request, Problem(error.status_code, code, str(error.detail), fix, headers=dict(error.headers or {})))

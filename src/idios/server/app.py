"""The application: routes, the middleware, one shape for errors, and a graceful shutdown."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from idios.core.outer_ranks import prepare_ladders
from idios.errors import IdiosError
from idios.server import console
from idios.server.http_errors import NO_SUCH_PAGE, Problem, Refused, locate, to_problem
from idios.server.middleware import RequestMiddleware
from idios.server.routes import controller, health, questions
from idios.server.service import Service

DESCRIPTION = """\
A trusted party of individual differential privacy: statistical questions in SQL, answered with noise, within a budget.

Every error has one shape: `{"error": {"code", "message", "where", "fix", "request"}}`. Exact numbers are text.
"""


def create_app(service: Service, at_end: Callable[[], None] | None = None) -> FastAPI:
    """The application of one server process; it closes the party when it ends, and calls ``at_end`` after that."""

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        prepare_ladders()
        yield
        service.free_work.stop()
        await service.questions.close()
        service.party.close()
        if at_end is not None:
            at_end()

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
    app.state.respond = _respond
    app.add_middleware(RequestMiddleware)
    app.add_exception_handler(Refused, _handle_refusal)
    app.add_exception_handler(IdiosError, _handle_idios_error)
    app.add_exception_handler(RequestValidationError, _handle_invalid_request)
    app.add_exception_handler(HTTPException, _handle_http_exception)
    for routes in (health, questions, controller, console):
        app.include_router(routes.router)
    return app


def _respond(request: Request, problem: Problem) -> Response:
    """A problem as JSON, or as a page in the console."""
    request.scope["idios.counted"] = problem.counted
    if request.url.path == "/" or request.url.path.startswith("/console"):
        return console.error_page(request, problem)
    return JSONResponse(problem.body(request.scope["idios.request"]), problem.status, headers=problem.headers)


async def _handle_refusal(request: Request, error: Any) -> Response:
    return _respond(request, error.problem)


async def _handle_idios_error(request: Request, error: Any) -> Response:
    return _respond(request, to_problem(error))


async def _handle_invalid_request(request: Request, error: Any) -> Response:
    first = error.errors()[0]
    part, *names = (str(step) for step in first["loc"])
    if first["type"] == "json_invalid":
        part, names = "body", []
    name = ".".join(names) or None
    message = f"{name}: {first['msg']}" if name else str(first["msg"])
    where = locate(part if part in ("body", "query", "path", "header") else "body", name)
    return _respond(
        request, Problem(422, "invalid_request", message, "see /openapi.json for what this address takes", where)
    )


async def _handle_http_exception(request: Request, error: Any) -> Response:
    if error.status_code == 404:
        return _respond(request, NO_SUCH_PAGE)
    code = {405: "no_such_method"}.get(error.status_code, "invalid_request")
    fix = "see /openapi.json for what there is"
    return _respond(
        request, Problem(error.status_code, code, str(error.detail), fix, headers=dict(error.headers or {}))
    )

"""The outermost middleware: limits, headers, one line in the log for every request.

Order: an id, the limit of its address, the size and the time of its body, the application, the headers of the
response, the count and the line. An exception that escapes the application becomes one constant error.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import MutableMapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from idios.server.auth import caller_name
from idios.server.http_errors import INTERNAL, TOO_LARGE, TOO_SLOW, Problem, Refused, too_many
from idios.server.logs import REQUEST
from idios.server.service import Service

log = logging.getLogger("idios.server")

BODY_SECONDS = 15.0
PART = 256 * 1024
"""Bytes of a response that are handed to the network at a time: the next when the client has read most of them."""
UNLIMITED = ("/healthz",)
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE")
"""The methods that are counted by name: each count is kept for ever, and a client can invent methods."""
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "Cache-Control": "no-store",
}
STRICT_TRANSPORT = "max-age=31536000"


class RequestMiddleware:
    """The outermost middleware: it passes requests on within limits, and gives every response its headers."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on to the application, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        context = _RequestContext(scope, receive, send)
        scope["idios.request"] = context.id
        try:
            refused = context.check_limits()
            if refused is not None:
                await context.send_problem(refused)
                return
            await self._app(scope, context.receive, context.send)
        except Refused as error:
            await context.send_problem(error.problem)
        except Exception:
            log.exception("unforeseen", extra={"fields": {"request": context.id}})
            await context.send_problem(INTERNAL)
        finally:
            context.finish()


class _RequestContext:
    """One request and its response, as far as the middleware follows them."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.id = secrets.token_hex(8)
        self._scope = scope
        self._receive = receive
        self._send = send
        self._service: Service = scope["app"].state.service
        self._started_at = time.monotonic()
        self._body_length = 0
        self._body_complete = False
        self._status = 0
        self._response_started = False
        self._refused: Problem | None = None

    def check_limits(self) -> Problem | None:
        """Say why the request is refused before the application sees it, if it is."""
        address = (self._scope.get("client") or ("unknown",))[0]
        if self._scope["path"] not in UNLIMITED:
            seconds = self._service.by_address.try_acquire(address)
            if seconds:
                return too_many(seconds)
        for name, value in self._scope["headers"]:
            # A length that is no number is the web server's own refusal; one that is too long is ours.
            if name == b"content-length" and int(value) > self._service.settings.body_bytes:
                return TOO_LARGE
        return None

    async def receive(self) -> Message:
        """A part of the body, as long as it is neither too long nor too late."""
        if self._body_complete:
            return await self._receive()  # now it waits for the client to disconnect, which has no deadline
        left = BODY_SECONDS - (time.monotonic() - self._started_at)
        try:
            message = await asyncio.wait_for(self._receive(), max(0.001, left))
        except TimeoutError:
            raise self._refuse(TOO_SLOW) from None
        if message["type"] == "http.request":
            self._body_length += len(message.get("body", b""))
            if self._body_length > self._service.settings.body_bytes:
                raise self._refuse(TOO_LARGE)
            self._body_complete = not message.get("more_body", False)
        return message

    def _refuse(self, problem: Problem) -> Refused:
        """The exception to raise; the problem is remembered, as a reader of the body may take it for invalid JSON."""
        self._refused = problem
        return Refused(problem)

    async def send(self, message: Message) -> None:
        """A part of the application's response; none of it if the request was refused meanwhile."""
        if self._refused is not None:
            await self.send_problem(self._refused)
        else:
            await self._send_with_headers(message)

    async def _send_with_headers(self, message: Message) -> None:
        """A part of the response, with the headers that every response has."""
        if message["type"] == "http.response.start":
            self._response_started = True
            self._status = message["status"]
            headers = message["headers"] = list(message.get("headers", []))
            present = {name.lower() for name, _ in headers}
            required = HEADERS | {"X-Request-Id": self.id}
            if self._scope.get("scheme") == "https":
                required = required | {"Strict-Transport-Security": STRICT_TRANSPORT}
            headers += [
                (name.lower().encode(), value.encode())
                for name, value in required.items()
                if name.lower().encode() not in present
            ]
        if message["type"] == "http.response.body" and len(message.get("body", b"")) > PART:
            await self._send_in_parts(message)
        else:
            await self._send(message)

    async def _send_in_parts(self, message: Message) -> None:
        """Send a long part of the response, and count what its client has not read."""
        body, more = memoryview(message["body"]), message.get("more_body", False)
        identity = self._scope.get("idios.identity")
        caller = "" if identity is None else caller_name(identity)
        turns, left = self._service.turns, len(body)
        turns.count_unread(caller, left)
        try:
            for start in range(0, len(body), PART):
                part = bytes(body[start : start + PART])
                await self._send({**message, "body": part, "more_body": more or start + PART < len(body)})
                turns.count_unread(caller, -len(part))
                left -= len(part)
        finally:
            turns.count_unread(caller, -left)

    async def send_problem(self, problem: Problem) -> None:
        """Send an error; if a response has begun, there is nothing left to say."""
        if self._response_started:
            return
        response: Response = self._scope["app"].state.respond(Request(self._scope), problem)
        await response(self._scope, self._receive, self._send_with_headers)

    def finish(self) -> None:
        """Count the request and write its line; neither has what was asked nor what was answered."""
        route = route_of(self._scope)
        method = self._scope["method"] if self._scope["method"] in METHODS else "OTHER"
        counted = self._scope.get("idios.counted", self._status)
        self._service.metrics.requests.labels(method, route, str(counted)).inc()
        identity = self._scope.get("idios.identity")
        fields: dict[str, Any] = {
            "request": self.id,
            "method": method,
            "route": route,
            "status": self._status,
            "milliseconds": round(1000 * (time.monotonic() - self._started_at)),
            "caller": None if identity is None else caller_name(identity),
            **self._scope.get("idios.log", {}),
        }
        log.info(REQUEST, extra={"fields": fields})


def route_of(scope: MutableMapping[str, Any]) -> str:
    """The route's pattern, never the path itself: a path that is no route has no place in counts and logs."""
    return str(getattr(scope.get("route"), "path", "unknown"))

"""Connections: how many there are, how long one may be idle, and how long its client may not read.

Rules:

1. A connection without a request on its way is idle. It has HEADER_SECONDS from its first byte, or from its beginning,
   to send all of its headers; between two requests it has the server's keep-alive time.
2. There are at most half as many connections as files that the process may open; the other half is for the
   ledger, the data and replies. One more takes the place of the connection that has been idle longest, so that a client
   who sends a request at once is served; if none is idle, the new one is closed.
3. A client who does not read a reply for WRITE_SECONDS is disconnected.
4. A request whose length is told in two ways, or in one that its version of HTTP does not have, is refused, and its
   connection closed: a proxy in front may have cut it elsewhere, and what follows would be another client's request.

A TLS connection counts here once its handshake is done, for which it has HEADER_SECONDS too.
"""

from __future__ import annotations

import asyncio
import resource
from collections import OrderedDict
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

HEADER_SECONDS = 10.0
WRITE_SECONDS = 60.0
KEEP_ALIVE_SECONDS = 30
BACKLOG = 64
"""How many connections are accepted before any of them is counted; the kernel keeps as many waiting."""
MOST, LEAST = 4096, 16

_IDLE: WeakKeyDictionary[ServerState, OrderedDict[GuardedProtocol, None]] = WeakKeyDictionary()
"""The idle connections of each server, the longest idle first."""


def most_connections() -> int:
    """How many connections one process keeps: half of the files it may open (``ulimit -n``)."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST if soft == resource.RLIM_INFINITY else max(LEAST, min(MOST, soft // 2))


class _Timer:
    """Calls an action after a delay, unless it is stopped; starting one that runs changes nothing."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._handle: asyncio.TimerHandle | None = None

    def start(self, seconds: float, action: Callable[[], None]) -> None:
        if self._handle is None:
            self._handle = self._loop.call_later(seconds, action)

    def stop(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None


class EventLoop(asyncio.SelectorEventLoop):
    """asyncio's event loop, with a shorter timeout of TLS handshakes than its minute."""

    async def create_server(self, *given: Any, **options: Any) -> asyncio.Server:
        """Listen."""
        if options.get("ssl"):
            options.setdefault("ssl_handshake_timeout", HEADER_SECONDS)
        return await super().create_server(*given, **options)


class _StrictConnection(h11.Connection):
    """h11's parser, which by itself lets Transfer-Encoding win over Content-Length."""

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """Parse the next event."""
        event = super().next_event()
        if isinstance(event, h11.Request):
            names = {name for name, _ in event.headers}
            if b"transfer-encoding" in names and (b"content-length" in names or event.http_version < b"1.1"):
                raise h11.RemoteProtocolError("Transfer-Encoding beside Content-Length, or in a request of HTTP/1.0")
        return event


class GuardedProtocol(H11Protocol):
    """uvicorn's protocol, by the rules above."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        size = self.config.h11_max_incomplete_event_size
        self.conn = _StrictConnection(h11.SERVER, **({} if size is None else {"max_incomplete_event_size": size}))
        self._idle = _IDLE.setdefault(self.server_state, OrderedDict())
        self._header_timer, self._write_timer = _Timer(self.loop), _Timer(self.loop)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a place, or the place of the connection that has been idle longest if none is left."""
        super().connection_made(transport)
        if len(self.connections) > most_connections():
            if not self._idle:
                self._cut()
                return
            next(iter(self._idle))._cut()
        self._idle[self] = None
        self._header_timer.start(HEADER_SECONDS, self._cut)

    def data_received(self, data: bytes) -> None:
        """Read, and note whether a request is on its way now."""
        super().data_received(data)
        self._look()
        if not self._at_work and not self.transport.is_closing():
            self._header_timer.start(HEADER_SECONDS, self._cut)

    def on_response_complete(self) -> None:
        """Become idle again, unless the next request is there already."""
        super().on_response_complete()
        self._look()

    def pause_writing(self) -> None:
        """Start the timeout of a client who does not read."""
        super().pause_writing()
        self._write_timer.start(WRITE_SECONDS, self._cut)

    def resume_writing(self) -> None:
        """Stop that timeout: the client has read."""
        super().resume_writing()
        self._write_timer.stop()

    def connection_lost(self, exc: Exception | None) -> None:
        """Give the place back."""
        self._forget()
        super().connection_lost(exc)

    @property
    def _at_work(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _look(self) -> None:
        if self._at_work:
            self._idle.pop(self, None)
            self._header_timer.stop()
        elif self in self.connections:
            self._idle.setdefault(self, None)

    def _cut(self) -> None:
        self._forget()
        self.connections.discard(self)  # at once: the transport calls connection_lost only later
        self.transport.abort()

    def _forget(self) -> None:
        self._idle.pop(self, None)
        self._header_timer.stop()
        self._write_timer.stop()

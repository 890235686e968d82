"""The HTTP transport: one connection, with retries where they are safe, that never shows the token.

1. A lost connection and the statuses 408, 429, 502, 503 and 504 are retried; a refusal never is.
2. Every request that is retried is idempotent: a question carries an idempotency key, which is charged once.
3. No redirect is followed: the token goes to the address it was given for and nowhere else.
4. A server that has never been reached is not retried: its address is probably wrong.
5. A call ends by its deadline and a reply by its size, whatever the server does: no reply is decompressed, and a
   connection that is still busy at the deadline is cut.
"""

from __future__ import annotations

import contextlib
import ipaddress
import itertools
import json
import random
import socket
import ssl
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from fractions import Fraction
from typing import Any
from urllib.parse import urlsplit

import httpx2

from idios.client.error_mapping import NOT_IDIOS, ServerError, error_from_reply, printable
from idios.errors import IdiosError, InvalidInput
from idios.model.answer import LONGEST_REPLY

TRANSIENT = frozenset({408, 429, 502, 503, 504})
"""The transient statuses, which are retried."""

PATIENCE = 120.0
"""Seconds after the first failure of a call at which it gives up."""

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 20.0
CONNECT_SECONDS, READ_SECONDS = 10.0, 90.0  # a server keeps a question waiting for 60 seconds at most


@dataclass(frozen=True)
class HttpCall:
    """One request: what is asked, until when, and what an error needs to know of the question behind it."""

    method: str
    path: str
    deadline: float
    body: Mapping[str, Any] | None = None
    params: Mapping[str, str] | None = None
    key: str | None = None
    sql: str = ""
    epsilon: Fraction = Fraction(0)


@dataclass(frozen=True)
class Reply:
    """What a server answered: JSON, and after how many seconds it wants to be asked again."""

    status: int
    content: Any
    retry_after: float | None


def open_http(
    url: str, token: str, *, insecure: bool = False, transport: httpx2.BaseTransport | None = None
) -> httpx2.Client:
    """A connection that sends the token to this address only."""
    if not token.isascii() or not token.isprintable() or " " in token:
        raise InvalidInput("the token must be printable ASCII without spaces; copy it exactly as it was issued")
    base = _check_address(url, insecure)
    return httpx2.Client(
        base_url=base,
        headers={
            "Authorization": f"Bearer {token}",
            "Accept": "application/json",
            "Accept-Encoding": "identity",  # a few compressed bytes can be any number of decompressed ones
            "User-Agent": "idios-client",
        },
        follow_redirects=False,
        trust_env=base.startswith("https:"),  # over http a proxy of the environment would see the token
        transport=transport,
    )


def _check_address(url: str, insecure: bool) -> str:
    """The address without a final slash, if the token may travel to it."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise InvalidInput("url is not an address; write for example https://idios.example.org") from None
    if "@" in parts.netloc:
        raise InvalidInput("url must not contain a user name or a password; the token says who asks")
    if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment:
        raise InvalidInput(f"url must look like https://idios.example.org or http://127.0.0.1:8000, got {url!r}")
    if parts.scheme == "http" and not insecure and not _is_loopback(host):
        raise InvalidInput(
            f"http://{host} would carry the token in the clear; use https://, or insecure=True on a network you trust"
        )
    return url.rstrip("/")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.rstrip(".") == "localhost"


class Sockets:
    """The sockets that a client has opened, so that another thread can end a wait for one of them.

    The timeout of a read starts anew with each byte; a slow server could keep a call waiting for ever.
    """

    def __init__(self) -> None:
        self._opened: weakref.WeakSet[socket.socket] = weakref.WeakSet()

    def trace(self, event: str, facts: Mapping[str, Any]) -> None:
        """Keep the socket of a new connection; httpx2 calls this at each step of a request."""
        if event in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
            opened = facts["return_value"].get_extra_info("socket")
            if isinstance(opened, socket.socket):
                self._opened.add(opened)

    @contextlib.contextmanager
    def cut_after(self, seconds: float) -> Iterator[None]:
        """Cut every connection if the block takes longer."""
        timer = threading.Timer(seconds, self._cut)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _cut(self) -> None:
        for opened in list(self._opened):
            with contextlib.suppress(OSError):
                opened.shutdown(socket.SHUT_RDWR)


class Transport:
    """Sends calls, with retries where they are safe."""

    def __init__(
        self,
        http: httpx2.Client,
        token: str,
        timeout: float,
        *,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._http = http
        self._sockets = Sockets()
        self._hide_token: Callable[[str], str] = lambda message: message.replace(token, "…")
        self._timeout = timeout
        self._chance = chance
        self._reached = False
        self.sleep = sleep
        self.clock = clock

    @property
    def address(self) -> str:
        """The address of the server."""
        return str(self._http.base_url).rstrip("/")

    def prepare(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, Any] | None = None,
        params: Mapping[str, str] | None = None,
        sql: str = "",
        epsilon: Fraction = Fraction(0),
    ) -> HttpCall:
        """A call that begins now, and has to end when the time of one call is over."""
        return HttpCall(method, path, self.clock() + self._timeout, body, params, None, sql, epsilon)

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    def send(self, call: HttpCall) -> Reply:
        """Send a call, with retries of transient failures, until it is answered or refused."""
        if self._http.is_closed:
            raise ServerError("this connection was closed; call idios.connect again")
        give_up = call.deadline
        for attempt in itertools.count():
            outcome = self._try_once(call)
            if isinstance(outcome, Reply):
                return outcome
            trouble, after = outcome
            if attempt == 0:
                give_up = min(give_up, self.clock() + PATIENCE)
            # Jitter: clients that failed together must not retry together.
            backoff = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(attempt, 10)) * (0.5 + self._chance() / 2)
            pause = backoff if after is None else after + self._chance()
            if self.clock() + pause >= give_up:
                if after:
                    trouble.add_note(f"the server asks not to be called again for {after:.0f} seconds")
                raise trouble
            self.sleep(pause)
        raise AssertionError("unreachable")

    def send_once(self, call: HttpCall) -> None:
        """Send a call once and ignore the reply and any failure."""
        with contextlib.suppress(IdiosError):
            self._try_once(call)

    def _try_once(self, call: HttpCall) -> Reply | tuple[ServerError, float | None]:
        """A reply, or a transient failure; raises what a retry does not change."""
        headers = {} if call.key is None else {"Idempotency-Key": call.key}
        left = max(0.1, call.deadline - self.clock())
        try:
            with (
                self._sockets.cut_after(left),
                self._http.stream(
                    call.method,
                    call.path,
                    json=call.body,
                    params=call.params,
                    headers=headers,
                    timeout=httpx2.Timeout(min(left, READ_SECONDS), connect=min(left, CONNECT_SECONDS)),
                    extensions={"trace": self._sockets.trace},
                ) as response,
            ):
                body = self._body(response, call.deadline)
        except httpx2.RequestError as error:
            if self.clock() >= call.deadline:
                return self._late(), None
            return self._unreachable(error), None
        self._reached = True
        if response.is_redirect:
            target = urlsplit(response.headers.get("location", ""))
            where = f"{target.scheme}://{target.netloc}" if target.netloc else "another path"
            raise ServerError(
                f"{self.address} redirects to {self.clean(where)}, and the token is not sent there; if you trust that "
                "address, connect to it directly"
            )
        content, after = _json(body), _retry_seconds(response.headers.get("retry-after"))
        if response.status_code < 300:
            if not isinstance(content, dict):
                raise ServerError(f"what {self.address} answers is not JSON of an Idios server; {NOT_IDIOS}")
            return Reply(response.status_code, content, after)
        raised = self.refused(response.status_code, content, call)
        if response.status_code not in TRANSIENT or not isinstance(raised, ServerError):
            raise raised
        if _error_of(content) is None:
            raised = ServerError(
                f"{self.address} is busy or being restarted (status {response.status_code}); try again in a minute",
                response.status_code,
            )
        return raised, after

    def _body(self, response: httpx2.Response, deadline: float) -> bytes:
        """The reply's bytes, refused if they are compressed, too many or too late."""
        if response.headers.get("content-encoding", "identity") != "identity":
            raise ServerError(f"{self.address} sends a compressed reply, which was not asked for; {NOT_IDIOS}")
        parts: list[bytes] = []
        length = 0
        for part in response.iter_bytes():
            length += len(part)
            parts.append(part)
            if length > LONGEST_REPLY:
                raise ServerError(f"the reply of {self.address} is longer than {LONGEST_REPLY:,} bytes; {NOT_IDIOS}")
            if self.clock() >= deadline:
                raise self._late()
        return b"".join(parts)

    def _late(self) -> ServerError:
        return ServerError(
            f"{self.address} did not answer in time; ask again: a question that was charged costs nothing more"
        )

    def refused(self, status: int, content: Any, call: HttpCall) -> IdiosError:
        """The exception for an error object, wherever it was found."""
        return error_from_reply(status, _clean_error(content, self.clean), call.sql, call.epsilon)

    def _unreachable(self, error: httpx2.RequestError) -> ServerError:
        """What to do about a connection that failed; raised at once if a retry would change nothing."""
        reason = self.clean(str(error)) or type(error).__name__
        if _ssl_error(error) is not None and isinstance(error, httpx2.ConnectError):
            raise ServerError(
                f"{self.address} cannot be trusted: {reason}. If its certificate was issued by an authority of your "
                "own, set SSL_CERT_FILE to that authority's file; if the server speaks plain http, correct the address"
            ) from None
        if isinstance(error, httpx2.TimeoutException) and not isinstance(error, httpx2.ConnectTimeout):
            return self._late()
        trouble = ServerError(f"{self.address} cannot be reached ({reason}); check the address and that it is running")
        if not self._reached and isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout):
            raise trouble from None
        if not isinstance(error, httpx2.NetworkError | httpx2.TimeoutException | httpx2.RemoteProtocolError):
            raise trouble from None
        return trouble

    def clean(self, message: str) -> str:
        """A text of the server without the token and the control characters that a terminal would obey."""
        return self._hide_token(printable(message))


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _error_of(content: Any) -> Any:
    return content.get("error") if isinstance(content, dict) else None


def _clean_error(content: Any, clean: Callable[[str], str]) -> Any:
    """An error object whose texts are safe to show."""
    error = _error_of(content)
    if not isinstance(error, dict):
        return content
    return {"error": {key: clean(value) if isinstance(value, str) else value for key, value in error.items()}}


def _retry_seconds(retry_after: str | None) -> float | None:
    """What Retry-After asks for: seconds, or a date."""
    if retry_after is None:
        return None
    if retry_after.strip().isdecimal():
        return float(retry_after)
    try:
        moment = parsedate_to_datetime(retry_after)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())


def _ssl_error(error: BaseException | None) -> ssl.SSLError | None:
    """The failure of TLS behind another failure; a connection that merely ended is none."""
    while error is not None:
        if isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
            return error
        error = error.__cause__ or error.__context__
    return None

"""Idempotency keys: a request sent twice with one key is one request; the key with another question is an error.

The row is written in the transaction that charges the question, so that there is never one without the other.
The rows are not in the chain: losing one charges no caller twice, as a question is charged once in any case.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import Connection, bindparam, delete, insert, select

from idios.errors import InvalidInput, KeyReused
from idios.ledger.names import LONGEST, moment
from idios.ledger.request import Request
from idios.ledger.tables import requests

KEPT = timedelta(days=30)

_FIND = select(requests.c.question_key).where(
    requests.c.caller == bindparam("this_caller"), requests.c.request_key == bindparam("this_key")
)
_ADD = insert(requests)
_FORGET = delete(requests).where(requests.c.time < bindparam("oldest"))


def caller_of(request: Request) -> str:
    """The namespace of a caller's keys; an analyst called "controller" does not share the controller's."""
    return "controller" if request.analyst is None else f"analyst:{request.analyst}"


def checked_request_key(key: str) -> str:
    """The key itself, refused unless it fits into a header."""
    if not isinstance(key, str) or not 1 <= len(key) <= LONGEST or not (key.isascii() and key.isprintable()):
        raise InvalidInput(f"a request's key is 1 to {LONGEST} printable ASCII characters, not {str(key)[:LONGEST]!r}")
    return key


def seen_before(connection: Connection, request: Request, key: str) -> bool:
    """Whether the caller has used the key for this question; KeyReused if it was for another."""
    found = connection.scalar(_FIND, {"this_caller": caller_of(request), "this_key": key})
    if found is not None and found != request.key:
        raise KeyReused(
            f"the key {key!r} was used before with another question, version or ε; choose a new key for every "
            "new question; nothing was charged"
        )
    return found is not None


def remember(connection: Connection, request: Request, key: str, now: datetime) -> None:
    """Keep the key, and delete those that are so old that no client repeats their request."""
    connection.execute(_FORGET, {"oldest": moment(now - KEPT)})
    row = {"caller": caller_of(request), "request_key": key, "question_key": request.key, "time": moment(now)}
    connection.execute(_ADD, row)

"""Replies as they are sent, encoded in a thread: a long one would block the event loop, and so all callers.

A thread alone is not enough where there can be many of them, since Python runs one at a time and never switches in
the middle of reading or writing JSON. So what is stored as JSON is sent as it is stored.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from fastapi import Response
from pydantic import BaseModel

MOST = 1_000_000
"""Characters after which a page of a list ends, whatever was asked for: the rest is on the next one."""
STEP = 10
"""How many items are read at a time; a page exceeds MOST by at most this many."""


def encoded(content: BaseModel) -> Response:
    """The reply with this content, which FastAPI sends as it is."""
    return Response(content.model_dump_json(by_alias=True), media_type="application/json")


def with_facts(facts: Mapping[str, Any], stored: str) -> str:
    """A JSON object that was stored, with some facts before its own.

    >>> with_facts({"sequence": 7}, '{"cells":[["41320"]]}')
    '{"sequence": 7,"cells":[["41320"]]}'
    """
    return f"{json.dumps(facts, ensure_ascii=False)[:-1]},{stored[1:]}"


def listed(name: str, items: Sequence[str], **facts: Any) -> Response:
    """The reply that lists items, each written as JSON already, beside some facts."""
    body = f'{json.dumps(facts, ensure_ascii=False)[:-1]},"{name}":[{",".join(items)}]}}'
    return Response(body, media_type="application/json")


class Numbered(Protocol):
    """What is listed by its number, newest first."""

    @property
    def sequence(self) -> int:
        """The number."""


T = TypeVar("T", bound=Numbered)


def page(
    read: Callable[[int | None, int], Sequence[T]], size: Callable[[T], int], before: int | None, limit: int
) -> tuple[list[T], int | None]:
    """A page of up to ``limit`` items, fewer if they are long, and the number before which the next page begins.

    ``read(before, count)`` gives up to ``count`` items whose numbers are below ``before``.
    """
    found: list[T] = []
    used = 0
    while len(found) < limit and used < MOST:
        wanted = min(STEP, limit - len(found))
        part = read(before, wanted)
        found += part
        if len(part) < wanted:
            return found, None
        before = part[-1].sequence
        used += sum(map(size, part))
    return found, before

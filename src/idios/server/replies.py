"""Replies as they are sent, made in a thread: a long one would keep the event loop, and so everybody, waiting.

A thread alone is not enough where there can be many of them, since Python runs one at a time, and reading or writing
JSON is one step that nothing interrupts. So what is stored as JSON is sent as it is stored.
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
"""How many items are read at a time; a page is longer than MOST by so many at most."""


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
    """Up to so many items, fewer if they are long, and before which number the next page begins.

    ``read`` gives so many items before a number.
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

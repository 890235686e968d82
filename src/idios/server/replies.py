"""Replies as they are sent, made in a thread: a long one would keep the event loop, and so everybody, waiting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from fastapi import Response
from pydantic import BaseModel

MOST = 1_000_000
"""Characters after which a page of a list ends, whatever was asked for: the rest is on the next one."""
STEP = 10
"""How many items are read at a time; a page is longer than MOST by so many at most."""


def encoded(content: BaseModel) -> Response:
    """The reply with this content, which FastAPI sends as it is."""
    return Response(content.model_dump_json(by_alias=True), media_type="application/json")


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

"""A request to a server and its reply, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any


@dataclass(frozen=True)
class Call:
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

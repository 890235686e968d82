"""A question that a server was asked, and its progress until it is answered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from idios.codec import json_field
from idios.model.answer import Answer


@dataclass(frozen=True)
class QuestionRequest:
    """A question as it came to a server, its numbers as text.

    ``then_check`` is the ε of a check of the answer that is stored; without it the question itself is asked.
    """

    sql: str
    epsilon: str
    split: Mapping[str, str] | None = None
    check: str | None = None
    then_check: str | None = None


class QuestionState(StrEnum):
    """The state of a question that outlasted its request."""

    RUNNING = "running"
    ANSWERED = "answered"
    CANCELLED = "cancelled"
    FAILED = "failed"


@dataclass(frozen=True, kw_only=True)
class QuestionProgress:
    """The progress of a question that outlasted its request; step and share only where they may be told.

    ``answer`` is there once it is answered, ``error`` once it failed.
    """

    id: str
    state: QuestionState
    step: str | None = None
    share: float | None = None
    elapsed: float
    href: str = field(init=False)
    answer: Answer | None = None
    error: Mapping[str, Any] | None = None
    question: QuestionRequest | None = json_field(hidden=True, default=None)
    """The question itself, on the server alone."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "href", f"/v1/questions/{self.id}")

"""The errors of a server, as the exceptions that a party on this machine raises.

question_refused, unanswerable, budget_exceeded   the same classes, with place and remaining budget
not_authenticated, not_permitted                  NotPermitted
invalid_request, too_large                        InvalidInput
key_reused                                        KeyReused
answer_failed                                     AnswerFailed
anything else                                     ServerError
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from idios.codec import from_json, read_number
from idios.errors import (
    AnswerFailed,
    BudgetExceeded,
    IdiosError,
    InvalidInput,
    KeyReused,
    NotPermitted,
    QuestionRefused,
    Unanswerable,
)


class ServerError(IdiosError):
    """The server could not be reached, is not an Idios server, or could not do its work; it says what to do.

    ``status`` is the status of its reply, if there was one.
    """

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


NOT_IDIOS = "check that the address is that of an Idios server, without /v1 at its end"

_PLAIN: dict[str, type[IdiosError]] = {
    "unanswerable": Unanswerable,
    "not_authenticated": NotPermitted,
    "not_permitted": NotPermitted,
    "invalid_request": InvalidInput,
    "too_large": InvalidInput,
    "key_reused": KeyReused,
}


@dataclass(frozen=True)
class _Place:
    """Where in a question something is wrong."""

    line: int
    column: int


def error_from_reply(status: int, content: Any, sql: str = "", requested: Fraction = Fraction(0)) -> IdiosError:
    """The exception for what a server answered with a status of 400 or more."""
    sent = content.get("error") if isinstance(content, Mapping) else None
    error: Mapping[str, Any] = sent if isinstance(sent, Mapping) else {}
    code, message = _text(error, "code"), _text(error, "message")
    if code is None or message is None:
        return ServerError(f"the server answered with status {status} and no explanation; {NOT_IDIOS}", status)
    fix = _text(error, "fix") or ""
    if code in _OWN:
        raised = _OWN[code](message, error, sql, requested)
    elif code in _PLAIN:
        raised = _PLAIN[code](message)
    else:
        raised = ServerError(f"{message}; {fix}" if fix and fix not in message else message, status)
    if fix and fix not in str(raised):
        raised.add_note(fix)
    request = _text(error, "request")
    if request is not None:
        raised.add_note(f"request {request}")
    return raised


def _text(error: Mapping[str, Any], key: str) -> str | None:
    value = error.get(key)
    return printable(value) if isinstance(value, str) else None


def _refused_question(message: str, error: Mapping[str, Any], sql: str, requested: Fraction) -> IdiosError:
    try:
        place = from_json(_Place, error.get("where"), "where")
    except InvalidInput:
        return QuestionRefused(message)
    lines = sql.split("\n")
    if not 1 <= place.line <= len(lines) or not 1 <= place.column <= len(lines[place.line - 1]) + 1:
        return QuestionRefused(message)
    # The exception prints the place itself, so it must not be in the message as well.
    bare = message.partition(f" (line {place.line}, column {place.column})")[0]
    return QuestionRefused(bare, sql, sum(len(line) + 1 for line in lines[: place.line - 1]) + place.column - 1)


def _exceeded_budget(message: str, error: Mapping[str, Any], sql: str, requested: Fraction) -> IdiosError:
    quantity = str(error["quantity"]) if error.get("quantity") in ("delta", "rho") else "epsilon"
    amount = _number_or(error, "requested", requested)
    return BudgetExceeded(message, quantity=quantity, requested=amount, remaining=_number_or(error, "remaining"))


def _number_or(error: Mapping[str, Any], key: str, otherwise: Fraction = Fraction(0)) -> Fraction:
    try:
        return read_number(error.get(key), key)
    except InvalidInput:
        return otherwise


_OWN: dict[str, Callable[[str, Mapping[str, Any], str, Fraction], IdiosError]] = {
    "question_refused": _refused_question,
    "budget_exceeded": _exceeded_budget,
    "answer_failed": lambda *_: AnswerFailed(),
}


def printable(message: str) -> str:
    """A message of a server without the control characters that a terminal would obey."""
    return "".join(c if c.isprintable() or c == "\n" else " " for c in message[:4000])

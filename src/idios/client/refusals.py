"""What a server refuses, as the exceptions that a party on this machine raises.

question_refused, unanswerable, budget_exceeded   the same classes, with place and remaining budget
not_authenticated, not_permitted                  NotPermitted
invalid_request, too_large                        InvalidInput
key_reused                                        KeyReused
answer_failed                                     AnswerFailed
anything else                                     ServerError
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

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
from idios.exchange import Fields


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


def refusal(status: int, content: Any, sql: str = "", requested: Fraction = Fraction(0)) -> IdiosError:
    """The exception for what a server answered with a status of 400 or more."""
    try:
        error = Fields(content, "the server's reply").object("error")
        code, message = error.text("code"), printable(error.text("message"))
    except InvalidInput:
        return ServerError(f"the server answered with status {status} and no explanation; {NOT_IDIOS}", status)
    fix = printable(error.text("fix")) if "fix" in error and isinstance(error.content["fix"], str) else ""
    if code in _OWN:
        raised = _OWN[code](message, error, sql, requested)
    elif code in _PLAIN:
        raised = _PLAIN[code](message)
    else:
        raised = ServerError(f"{message}; {fix}" if fix and fix not in message else message, status)
    if fix and fix not in str(raised):
        raised.add_note(fix)
    if isinstance(error.content.get("request"), str):
        raised.add_note(f"request {printable(error.content['request'])}")
    return raised


def _refused_question(message: str, error: Fields, sql: str, requested: Fraction) -> IdiosError:
    try:
        where = error.object("where")
        line, column = where.whole("line"), where.whole("column")
    except InvalidInput:
        return QuestionRefused(message)
    lines = sql.split("\n")
    if not 1 <= line <= len(lines) or not 1 <= column <= len(lines[line - 1]) + 1:
        return QuestionRefused(message)
    # The exception prints the place itself, so it must not be in the message as well.
    bare = message.partition(f" (line {line}, column {column})")[0]
    return QuestionRefused(bare, sql, sum(len(one) + 1 for one in lines[: line - 1]) + column - 1)


def _exceeded_budget(message: str, error: Fields, sql: str, requested: Fraction) -> IdiosError:
    quantity = "delta" if error.content.get("quantity") == "delta" else "epsilon"
    asked = _number_or(error, "requested", requested)
    return BudgetExceeded(message, quantity=quantity, requested=asked, remaining=_number_or(error, "remaining"))


def _number_or(error: Fields, key: str, otherwise: Fraction = Fraction(0)) -> Fraction:
    try:
        return error.number(key)
    except InvalidInput:
        return otherwise


_OWN: dict[str, Callable[[str, Fields, str, Fraction], IdiosError]] = {
    "question_refused": _refused_question,
    "budget_exceeded": _exceeded_budget,
    "answer_failed": lambda *_: AnswerFailed(),
}


def printable(message: str) -> str:
    """A message of a server without the control characters that a terminal would obey."""
    return "".join(c if c.isprintable() or c == "\n" else " " for c in message[:4000])

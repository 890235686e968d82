"""One shape for everything that goes wrong: code, message, where, how to fix it.

    {"error": {"code", "message", "where", "fix", "request", …}}

What is refused before a charge says exactly why. After a charge there is one constant message, and an unexpected
error is one constant message too: neither may depend on the data.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from idios.core.exact import text
from idios.errors import (
    AnswerFailed,
    BudgetExceeded,
    ConfigurationError,
    DataChanged,
    IdiosError,
    InvalidInput,
    KeyReused,
    LedgerError,
    NotPermitted,
    QuestionRefused,
    SourceError,
    SourceUnavailable,
    Unanswerable,
)


@dataclass(frozen=True)
class Problem:
    """An error as it is sent."""

    status: int
    code: str
    message: str
    fix: str
    where: dict[str, Any] | None = None
    headers: dict[str, str] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def counted(self) -> int:
        """The status that metrics know: whether a charged question failed depends on the data, so it is as answered."""
        return 200 if self.code == "answer_failed" else self.status

    def body(self, request: str) -> dict[str, Any]:
        """The error's JSON, with the id of the request it answers."""
        error = {"code": self.code, "message": self.message, "where": self.where, "fix": self.fix, "request": request}
        return {"error": error | self.extra}


class Refused(Exception):
    """A request ends with a problem."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.code)
        self.problem = problem


def locate(part: str, name: str | None = None, line: int | None = None, column: int | None = None) -> dict[str, Any]:
    """Locate in a request what is wrong."""
    return {"in": part, "name": name, "line": line, "column": column}


NOT_AUTHENTICATED = Problem(
    401,
    "not_authenticated",
    "this needs a token that is known, not revoked and not expired",
    "send the header `Authorization: Bearer TOKEN`; the controller issues tokens with `idios analyst token NAME`",
    locate("header", "Authorization"),
    {"WWW-Authenticate": "Bearer"},
)
FOR_CONTROLLERS = Problem(
    403, "not_permitted", "this is for the controller alone", "ask the controller, or use a controller's token"
)
NO_SUCH_PAGE = Problem(404, "not_found", "there is nothing at this address", "see /openapi.json for what there is")
NO_SUCH_QUESTION = Problem(
    404,
    "not_found",
    "no question of yours has this id",
    "ids are given with the answer 202 to /v1/query; finished answers are listed by /v1/answers",
    locate("path", "id"),
)
DECLARED_ANEW = Problem(
    410,
    "outdated",
    "the data set was declared anew since this question was asked, and the answer is about what it was before",
    "look at /v1/answers, where it is listed; or ask the question again, which is charged",
    locate("path", "id"),
)
TOO_LARGE = Problem(
    413, "too_large", "the request is larger than this server reads", "send a shorter question; no answer needs so much"
)
TOO_SLOW = Problem(
    408, "too_slow", "the request took too long to arrive", "send it again at once", headers={"Connection": "close"}
)
BUSY = Problem(
    503,
    "busy",
    "too many questions are waiting; nothing was charged",
    "send the same request again after the time in Retry-After",
    headers={"Retry-After": "2"},
)
CLOSING = Problem(
    503,
    "busy",
    "the server is shutting down; nothing was charged",
    "send the same request again after the time in Retry-After",
    headers={"Retry-After": "5"},
)
UNREADABLE = Problem(
    500,
    "source_unreadable",
    "the data could not be read as it is declared; nothing was charged",
    "run `idios check` where the data is, which says what does not fit",
)
INTERNAL = Problem(
    500,
    "internal_error",
    "an unexpected error happened",
    "send the request again with the same Idempotency-Key; tell the controller the id of the request",
)


def too_many(seconds: int) -> Problem:
    """A limit on requests was reached."""
    return Problem(
        429,
        "too_many_requests",
        "more requests arrived than are allowed",
        f"wait {seconds} s before the next one",
        headers={"Retry-After": str(seconds)},
    )


def to_problem(error: IdiosError | Refused) -> Problem:
    """Translate an error that Idios raised into the one that is sent."""
    match error:
        case Refused():
            return error.problem
        case QuestionRefused():
            line, column = error.position or (None, None)
            where = locate("sql", None, line, column)
            return Problem(422, "question_refused", error.message, "change the question as the message says", where)
        case Unanswerable():
            fix = "ask for another statistic, or have the controller declare what is missing"
            return Problem(422, "unanswerable", str(error), fix, locate("sql"))
        case BudgetExceeded():
            amounts = {
                "quantity": error.quantity,
                "remaining": text(error.remaining),
                "requested": text(error.requested),
            }
            fix = "ask with a smaller epsilon, or ask the controller for more budget; nothing was charged"
            return Problem(409, "budget_exceeded", str(error), fix, locate("body", "epsilon"), extra=amounts)
        case KeyReused():
            fix = "use a new Idempotency-Key for every new question"
            return Problem(409, "key_reused", str(error), fix, locate("header", "Idempotency-Key"))
        case AnswerFailed():
            return Problem(500, "answer_failed", str(error), "ask the same question again; it costs nothing more")
        case NotPermitted():
            return Problem(403, "not_permitted", str(error), "ask the controller")
        case InvalidInput() | ConfigurationError():
            return Problem(422, "invalid_request", str(error), "change the request as the message says", locate("body"))
        case LedgerError():
            # What the ledger says names places and entries, which are the controller's.
            message = "the ledger cannot be written or read at the moment"
            fix = "send the same request again, with the same Idempotency-Key; tell the controller if it lasts"
            return Problem(503, "ledger_unavailable", message, fix, headers={"Retry-After": "2"})
        case DataChanged():
            fix = "ask the controller to restart the server, which opens the data as it is now"
            message = f"{error}; nothing was charged"
            return Problem(503, "data_changed", message, fix, headers={"Retry-After": "30"})
        case SourceUnavailable():
            # Where it is, is the controller's.
            message = "the data cannot be reached at the moment; nothing was charged"
            fix = "send the same request again later; tell the controller if it lasts"
            return Problem(503, "source_unavailable", message, fix, headers={"Retry-After": "30"})
        case SourceError():
            # Only a controller's inspection gets here: after a charge it is an AnswerFailed.
            return UNREADABLE
    return INTERNAL

"""The JSON that clients send and receive: how it is checked, how the OpenAPI document describes it, how it is sent.

Replies that may be long are encoded in the caller's turn (``work_pool.Turns``): in a thread, or they would block the
event loop, and one at a time. Python never switches threads in the middle of reading or writing JSON. So what is stored
as JSON is sent as it is stored, and long lists are written in parts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from functools import cache
from typing import Annotated, Any, Literal, Protocol, TypeVar

from fastapi import Response
from pydantic import BaseModel, ConfigDict, Field

from idios.codec import json_field, json_schema, to_json
from idios.core.exact import exact
from idios.model import QuestionRequest
from idios.server.question_queue import check_affordable

MOST = 1_000_000
"""Characters after which a page of a list ends, whatever was asked for: the rest is on the next one."""
STEP = 10
"""How many items are read at a time at most; a page exceeds MOST by one item, if they are of one length."""
PART = 100
"""How many items of a list are written at a time."""

# Made once: json.dumps would make one for every part.
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))

_MEANING = {
    400: "The request cannot be read.",
    401: "No valid token.",
    403: "Not for this caller.",
    404: "Not there, or not for this caller.",
    405: "No such method here.",
    408: "The request took too long to arrive.",
    409: "A budget does not allow it, or the Idempotency-Key was used for another question.",
    410: "The data set was declared anew since.",
    413: "The request is too large.",
    422: "The request says something that is not offered; nothing was charged.",
    429: "Too many requests.",
    500: "Charged, and no answer could be computed; or an unexpected error.",
    503: "Busy, shutting down, or the ledger cannot be reached; send it again.",
}
_ALWAYS = (400, 401, 403, 408, 413, 422, 429, 500, 503)


class RequestPart(StrEnum):
    """A part of a request."""

    SQL = "sql"
    BODY = "body"
    QUERY = "query"
    PATH = "path"
    HEADER = "header"


@dataclass(frozen=True, kw_only=True)
class ErrorPlace:
    """The place in a request that is wrong."""

    part: RequestPart = json_field(key="in")
    name: str | None
    line: int | None
    column: int | None


@dataclass(frozen=True, kw_only=True)
class ErrorDetail:
    """What went wrong, where, and what to do; ``request`` is the id of the request, which the log has too."""

    code: str
    message: str
    where: ErrorPlace | None
    fix: str
    request: str
    quantity: str = json_field(optional=True, default="")
    remaining: str = json_field(optional=True, default="")
    requested: str = json_field(optional=True, default="")


@dataclass(frozen=True)
class Error:
    """The one shape of every error."""

    error: ErrorDetail


@cache
def document(kind: Any) -> type[BaseModel]:
    """A response model for the OpenAPI document: the schema of what ``encode_reply`` writes for this type."""
    schema = json_schema(kind)

    def describe(cls: type[BaseModel], core_schema: Any, handler: Any) -> dict[str, Any]:
        return schema

    return type(kind.__name__, (BaseModel,), {"__get_pydantic_json_schema__": classmethod(describe)})


def document_errors(*more: int) -> dict[int | str, dict[str, Any]]:
    """The error responses that a route documents beside its own."""
    return {status: {"model": document(Error), "description": _MEANING[status]} for status in sorted({*_ALWAYS, *more})}


def encode_reply(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """The reply with this content, which FastAPI sends as it is."""
    body = "".join(_write(to_json(content)))
    return Response(body, status_code=status, media_type="application/json", headers=headers)


def _write(plain: Any) -> Iterator[str]:
    """JSON in parts: between two of them another thread can run.

    >>> "".join(_write({"rows": [{"n": "1"}, {"n": None}], "more": {}})), "".join(_write([[]] * (2 * PART))).count("[]")
    ('{"rows":[{"n":"1"},{"n":null}],"more":{}}', 200)
    """
    if isinstance(plain, dict) and plain:
        for number, (key, value) in enumerate(plain.items()):
            yield f"{',' if number else '{'}{_ENCODER.encode(key)}:"
            yield from _write(value)
        yield "}"
    elif isinstance(plain, list | tuple) and len(plain) > PART:
        for start in range(0, len(plain), PART):
            yield f"{',' if start else '['}{_ENCODER.encode(plain[start : start + PART])[1:-1]}"
        yield "]"
    else:
        yield _ENCODER.encode(plain)


def add_facts(facts: Mapping[str, Any], stored: str) -> str:
    """A JSON object that was stored, with some facts before its own.

    >>> add_facts({"sequence": 7}, '{"cells":[["41320"]]}')
    '{"sequence": 7,"cells":[["41320"]]}'
    """
    return f"{json.dumps(facts, ensure_ascii=False)[:-1]},{stored[1:]}"


def encode_list(name: str, items: Sequence[str], **facts: Any) -> Response:
    """The reply that lists items, each written as JSON already, beside some facts."""
    body = f'{json.dumps(facts, ensure_ascii=False)[:-1]},"{name}":[{",".join(items)}]}}'
    return Response(body, media_type="application/json")


class Numbered(Protocol):
    """What is listed by its number, newest first."""

    @property
    def sequence(self) -> int:
        """The number."""


T = TypeVar("T", bound=Numbered)


def read_page(
    read: Callable[[int | None, int], Sequence[T]], size: Callable[[T], int], before: int | None, limit: int
) -> tuple[list[T], int | None]:
    """A page of up to ``limit`` items, fewer if they are long, and the number before which the next page begins.

    ``read(before, count)`` gives up to ``count`` items whose numbers are below ``before``.
    """
    items: list[T] = []
    used, longest = 0, MOST
    while len(items) < limit and used < MOST:
        wanted = min(STEP, limit - len(items), max(1, (MOST - used) // max(1, longest)))
        part = read(before, wanted)
        items += part
        if len(part) < wanted:
            return items, None
        before = part[-1].sequence
        sizes = list(map(size, part))
        used, longest = used + sum(sizes), max(sizes)
    return items, before


SQL = "SELECT region, MEDIAN(income) FROM people GROUP BY region"

Exact = Annotated[
    str | int | float,
    Field(
        description="A number, best as text: a decimal such as 0.5 or a fraction such as 1/3, read exactly.",
        examples=["0.5"],
        union_mode="left_to_right",
    ),
]
Name = Annotated[str, Field(min_length=1, max_length=200)]


class Body(BaseModel):
    """What a client sends; a field that is not known is an error."""

    model_config = ConfigDict(extra="forbid", strict=True)


class QuestionBody(Body):
    """A question in SQL and what it may cost."""

    sql: str = Field(min_length=1, max_length=20_000, examples=[SQL])
    epsilon: Exact
    split: dict[str, Exact] | None = Field(
        default=None, max_length=200, description="Proportions of ε by column; evenly unless given.", examples=[None]
    )

    def question(self) -> QuestionRequest:
        """The question, its numbers as the text they were; refused if the server would work too long for it."""
        split = None if self.split is None else {label: str(share) for label, share in self.split.items()}
        return check_affordable(QuestionRequest(self.sql, str(self.epsilon), split))


class SandboxBody(QuestionBody):
    """A question, and how much of its ε tells how far off the answer is."""

    check: Exact | None = Field(
        default=None,
        description="The share of ε that tells how many records off each answer is; 0: none; as declared unless given.",
        examples=[None],
    )

    def question(self) -> QuestionRequest:
        """The question with its check."""
        return replace(super().question(), check=None if self.check is None else str(self.check))


class QuoteBody(SandboxBody):
    """A question, or a check of the answer that it was given."""

    then_check: Exact | None = Field(
        default=None,
        description="The ε that tells how many records off the stored answer to this question is, which was asked "
        "without a check; nothing else is asked then.",
        examples=[None],
    )

    def question(self) -> QuestionRequest:
        """The question, or the check of its answer."""
        return check_affordable(
            replace(super().question(), then_check=None if self.then_check is None else str(self.then_check))
        )


class QueryBody(QuoteBody):
    """A question to be answered."""

    wait: float | None = Field(
        default=None, ge=0, le=60, description="Seconds after which the answer is fetched later.", examples=[30]
    )


class VerifyBody(Body):
    """What the chain is held against."""

    anchor: str | None = Field(
        default=None, max_length=100, description="A line that `idios ledger head` printed.", examples=[None]
    )


class AnalystBody(Body):
    """A new analyst."""

    name: Name = Field(examples=["ada"])


class AmountBody(Body):
    """Totals of ε and δ; what is left out stays as it is, or without a limit of its own."""

    epsilon: Exact | None = Field(default=None, examples=["2"])
    delta: Exact | None = Field(default=None, examples=[None])

    def amounts(self) -> dict[str, Fraction | None]:
        """The totals by name, exact."""
        given = (("epsilon", self.epsilon), ("delta", self.delta))
        return {name: None if amount is None else exact(str(amount), name) for name, amount in given}


class TokenBody(Body):
    """A new token."""

    name: Name = Field(examples=["ada"], description="Whose it is.")
    role: Literal["analyst", "controller"] = "analyst"
    days: int = Field(default=90, ge=1, le=3650)

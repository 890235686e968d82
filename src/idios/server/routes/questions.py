"""What an analyst may do: see what is declared, ask what a question costs, ask it, look at budgets and answers."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Header, Path, Query, Request, Response

from idios.codec import to_json
from idios.errors import AnswerFailed
from idios.ledger import StoredAnswer
from idios.model import Answer, AnswerPage, BalanceList, DatasetList, Holder, QuestionProgress, Quote
from idios.server.auth import Caller
from idios.server.http_errors import to_problem
from idios.server.messages import (
    QueryBody,
    QuoteBody,
    SandboxBody,
    add_facts,
    document,
    document_errors,
    encode_list,
    encode_reply,
    read_page,
)
from idios.server.service import Served

router = APIRouter(prefix="/v1", tags=["analyst"])

Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        pattern="^[!-~]+$",
        description="Chosen by the client, new for every question: the same request sent again is charged once.",
    ),
]
Id = Annotated[str, Path(pattern="^[0-9a-f]{32}$", description="As given with the answer 202.")]


@router.get("/me", response_model=document(Holder), responses=document_errors(), summary="Who holds this token")
def me(identity: Caller) -> Response:
    """The caller's name and role."""
    return encode_reply(Holder(identity.name, identity.role))


@router.get(
    "/datasets", response_model=document(DatasetList), responses=document_errors(), summary="What may be asked about"
)
async def datasets(identity: Caller, service: Served) -> Response:
    """The declared schema of every data set the caller may ask about; nothing here comes from the data."""
    return await service.render(identity, lambda: encode_reply(DatasetList(tuple(service.datasets(identity)))))


@router.post(
    "/quote", response_model=document(Quote), responses=document_errors(), summary="What a question would cost"
)
async def quote(body: QuoteBody, identity: Caller, service: Served) -> Response:
    """Cost, guarantee and remaining budget of a question; nothing is charged and no data is touched."""
    return await service.quote(identity, body.question(), encode_reply)


@router.post(
    "/query",
    response_model=document(Answer),
    responses={
        **document_errors(409),
        202: {"model": document(QuestionProgress), "description": "Not answered yet: look at the address in Location."},
    },
    summary="Ask a question",
)
async def query(
    body: QueryBody, identity: Caller, service: Served, request: Request, idempotency_key: Key = None
) -> Response:
    """Charge and answer a question. The same question again returns the stored answer, free.

    With `then_check`, charge that and tell how far off the stored answer is.
    """
    question = body.question()
    request.scope["idios.log"] = service.log_fields(question)
    wait = service.settings.wait_seconds if body.wait is None else body.wait
    outcome = await service.ask(identity, question, idempotency_key, wait, encode_reply)
    if isinstance(outcome, QuestionProgress):
        return _encode_progress(request, outcome, 202, {"Location": outcome.href, "Retry-After": "1"})
    return outcome


@router.get(
    "/questions/{id}",
    response_model=document(QuestionProgress),
    responses=document_errors(404, 410),
    summary="A question that outlasted its request",
)
async def question(id: Id, identity: Caller, service: Served, request: Request) -> Response:
    """Its progress, or its answer once there is one."""
    return await service.find_question(identity, id, partial(_encode_progress, request))


@router.delete(
    "/questions/{id}",
    response_model=document(QuestionProgress),
    responses=document_errors(404, 410),
    summary="Stop a question",
)
async def cancel(id: Id, identity: Caller, service: Served, request: Request) -> Response:
    """Stop computing. The question stays charged; asking it again completes it without a new charge.

    One that is `cancelled` gives no answer. One whose answer is on its way out is not stopped: it is still `running`,
    or `answered`.
    """
    return await service.cancel_question(identity, id, partial(_encode_progress, request))


@router.get(
    "/budget", response_model=document(BalanceList), responses=document_errors(), summary="What may still be spent"
)
def budget(identity: Caller, service: Served) -> Response:
    """The caller's own budgets; a controller sees those of the data sets."""
    return encode_reply(BalanceList(tuple(service.balances(identity))))


@router.get(
    "/answers", response_model=document(AnswerPage), responses=document_errors(), summary="Answers already paid for"
)
async def answers(
    identity: Caller,
    service: Served,
    dataset: Annotated[str | None, Query(min_length=1, max_length=200)] = None,
    before: Annotated[int | None, Query(ge=1, le=2**53, description="`next` of the page before.")] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
) -> Response:
    """The caller's own answers, newest first; a controller sees all. A page of long answers has fewer than `limit`."""

    def read(before: int | None, limit: int) -> list[StoredAnswer]:
        return service.answers(identity, dataset=dataset, before=before, limit=limit)

    def list_page() -> Response:
        page, following = read_page(read, lambda stored: len(stored.text), before, limit)
        return encode_list("answers", [add_facts(_facts(stored), stored.text) for stored in page], next=following)

    return await service.render(identity, list_page)


@router.post(
    "/sandbox", response_model=document(Answer), responses=document_errors(), summary="Try a question on made-up data"
)
async def sandbox(body: SandboxBody, identity: Caller, service: Served) -> Response:
    """Answer about a table generated from the declared schema alone: free, and only good for debugging."""
    return await service.sandbox(identity, body.question(), encode_reply)


def _facts(stored: StoredAnswer) -> dict[str, object]:
    """What is known of an answer beside what is stored of it."""
    facts = {"sequence": stored.sequence, "id": stored.id, "time": stored.time}
    costs = {"epsilon": stored.epsilon, "delta": stored.delta, "rho": stored.rho}
    return {**facts, **{name: to_json(amount) for name, amount in costs.items()}}


def _encode_progress(
    request: Request, progress: QuestionProgress, status: int = 200, headers: dict[str, str] | None = None
) -> Response:
    """The progress of a question; one that failed carries the one message for that."""
    if progress.state == "failed":
        body = to_problem(AnswerFailed()).body(request.scope["idios.request"])
        progress = replace(progress, error=body["error"])
    return encode_reply(progress, status, headers)

"""What an analyst may do: see what is declared, ask what a question costs, ask it, look at budgets and answers."""

from __future__ import annotations

import json
from typing import Annotated, Any

from anyio.to_thread import run_sync
from fastapi import APIRouter, Header, Path, Query, Request, Response

from idios.codec import to_json
from idios.core.exact import text
from idios.ledger import Account, Balance, Role, StoredAnswer
from idios.model import Answer
from idios.server.desk import Asked, Progress, analyst
from idios.server.identity import Caller, Served
from idios.server.replies import encoded, listed, page, with_facts
from idios.server.routes.documented import errors
from idios.server.schemas import (
    Answers,
    AnswerShown,
    Budgets,
    Datasets,
    Me,
    ProgressShown,
    QueryBody,
    QuestionBody,
    QuoteShown,
    SandboxAnswer,
)

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


@router.get("/me", responses=errors(), summary="Who holds this token")
def me(identity: Caller) -> Me:
    """The caller's name and role."""
    return Me(name=identity.name, role=identity.role.value)


@router.get("/datasets", response_model=Datasets, responses=errors(), summary="What may be asked about")
def datasets(identity: Caller, service: Served) -> Response:
    """The declared schema of every data set the caller may ask about; nothing here comes from the data."""
    live = {one.dataset for one in service.party.ledger.datasets()}
    party = service.party_for(identity)
    offered = [service.catalogue[name] for name in party.holdings if name in live]
    return encoded(Datasets.model_validate({"datasets": offered}))


@router.post("/quote", response_model=QuoteShown, responses=errors(), summary="What a question would cost")
async def quote(body: QuestionBody, identity: Caller, service: Served) -> Response:
    """Cost, guarantee and remaining budget of a question; nothing is charged and no data is touched."""
    asked = read_question(body)
    party = await run_sync(service.party_for, identity)
    quoted = await service.desk.quote(party, asked, identity)
    return await run_sync(lambda: encoded(QuoteShown.model_validate(quoted.to_dict())))


@router.post(
    "/query",
    response_model=AnswerShown,
    responses={
        **errors(409),
        202: {"model": ProgressShown, "description": "Not answered yet: look at the address in Location."},
    },
    summary="Ask a question",
)
async def query(body: QueryBody, identity: Caller, service: Served, request: Request, once: Key = None) -> Response:
    """Charge and answer a question. The same question again returns the stored answer, free."""
    party = await run_sync(service.party_for, identity)
    asked = read_question(body)
    if service.settings.log_questions:
        request.scope["idios.log"] = {"sql": asked.sql, "epsilon": asked.epsilon}
    wait = service.settings.wait_seconds if body.wait is None else body.wait
    found = await service.desk.ask(party, asked, identity, once, wait)
    if isinstance(found, Progress):
        return _progress(found, request, status=202)
    return await run_sync(lambda: encoded(AnswerShown.model_validate(found.to_dict())))


@router.get(
    "/questions/{id}",
    response_model=ProgressShown,
    responses=errors(404, 410),
    summary="A question that outlasted its request",
)
async def question(id: Id, identity: Caller, service: Served, request: Request) -> Response:
    """Its progress, or its answer once there is one."""
    party = await run_sync(service.party_for, identity)
    found = await service.desk.find(party, id, identity)
    return await run_sync(lambda: encoded(ProgressShown.model_validate(found.to_dict(request.scope["idios.request"]))))


@router.delete("/questions/{id}", response_model=ProgressShown, responses=errors(404, 410), summary="Stop a question")
async def cancel(id: Id, identity: Caller, service: Served, request: Request) -> Response:
    """Stop computing. The question stays charged; asking it again completes it without a new charge.

    One that is `cancelled` gives no answer. One whose answer is on its way out is not stopped: it is still `running`,
    or `answered`.
    """
    party = await run_sync(service.party_for, identity)
    found = await service.desk.cancel(party, id, identity)
    return await run_sync(lambda: encoded(ProgressShown.model_validate(found.to_dict(request.scope["idios.request"]))))


@router.get("/budget", responses=errors(), summary="What may still be spent")
def budget(identity: Caller, service: Served) -> Budgets:
    """The caller's own budgets; a controller sees those of the data sets."""
    ledger = service.party.ledger
    if identity.role is Role.CONTROLLER:
        found = [ledger.balance(name) for name in service.party.holdings]
    else:
        found = [one for one in ledger.grants(identity.name) if one.dataset in service.party.holdings]
    return Budgets.model_validate({"budgets": [shown_balance(one) for one in found]})


@router.get("/answers", response_model=Answers, responses=errors(), summary="Answers already paid for")
def answers(
    identity: Caller,
    service: Served,
    dataset: Annotated[str | None, Query(min_length=1, max_length=200)] = None,
    before: Annotated[int | None, Query(ge=1, le=2**53, description="`next` of the page before.")] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
) -> Response:
    """The caller's own answers, newest first; a controller sees all. A page of long answers has fewer than `limit`."""
    ledger, whose = service.party.ledger, analyst(identity)

    def read(before: int | None, limit: int) -> list[StoredAnswer]:
        return ledger.answers(dataset, whose, newest_first=True, before=before, limit=limit)

    found, following = page(read, lambda one: len(one.text), before, limit)
    return listed("answers", [with_facts(_facts(one), one.text) for one in found], next=following)


@router.post("/sandbox", response_model=SandboxAnswer, responses=errors(), summary="Try a question on made-up data")
async def sandbox(body: QuestionBody, identity: Caller, service: Served) -> Response:
    """Answer about a table generated from the declared schema alone: free, and only good for debugging."""

    def shown(answer: Answer) -> Response:
        return encoded(SandboxAnswer.model_validate({**answer.to_dict(), "sandbox": True}))

    return await service.sandbox(identity, read_question(body), shown)


def read_question(body: QuestionBody) -> Asked:
    """A question as it came, its numbers as the text they were."""
    weights = None if body.weights is None else {label: str(share) for label, share in body.weights.items()}
    return Asked(body.sql, str(body.epsilon), weights).affordable()


def shown_balance(balance: Balance) -> dict[str, Any]:
    """A balance for JSON."""

    def account(one: Account) -> dict[str, Any]:
        return {"budget": text(one.budget), "spent": text(one.spent), "remaining": text(one.remaining)}

    return {
        "dataset": balance.dataset,
        "analyst": balance.analyst,
        "epsilon": account(balance.epsilon),
        "delta": account(balance.delta),
    }


def shown_answer(stored: StoredAnswer) -> dict[str, Any]:
    """A stored answer for JSON."""
    return {**_facts(stored), **to_json(stored.table)}


def _facts(stored: StoredAnswer) -> dict[str, Any]:
    """What is known of an answer beside what is stored of it."""
    return {
        "sequence": stored.sequence,
        "id": stored.key[:16],
        "time": stored.time,
        "epsilon": text(stored.epsilon),
        "delta": text(stored.delta),
    }


def _progress(found: Progress, request: Request, status: int) -> Response:
    body = found.to_dict(request.scope["idios.request"])
    headers = {"Location": body["href"], "Retry-After": "1"}
    return Response(
        json.dumps(body, ensure_ascii=False), status_code=status, media_type="application/json", headers=headers
    )

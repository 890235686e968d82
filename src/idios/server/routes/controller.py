"""What the controller may do: look behind questions, read and verify the ledger, let analysts in and out.

Everything that changes something is recorded in the ledger's chain.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Response

from idios.codec import json_field
from idios.ledger import Entry, Role, TokenRow
from idios.model import Balance
from idios.server.auth import Controller
from idios.server.messages import (
    AmountBody,
    AnalystBody,
    QuestionBody,
    TokenBody,
    VerifyBody,
    document,
    document_errors,
    encode_list,
    encode_reply,
    read_page,
)
from idios.server.service import Served

router = APIRouter(prefix="/v1", tags=["controller"])

NamePath = Annotated[str, Path(min_length=1, max_length=200)]


@dataclass(frozen=True)
class CellList:
    """The truth behind a question, cell by cell, and as rows what it would compute from that."""

    cells: tuple[Mapping[str, Any], ...]
    rows: tuple[Mapping[str, str | None], ...] = json_field(optional=True, default=())


@dataclass(frozen=True)
class CostList:
    """What each level of protection would cost for one question."""

    rows: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class EntryFacts:
    """One entry of the chain."""

    sequence: int
    time: str
    kind: str
    content: Mapping[str, Any]


@dataclass(frozen=True)
class EntryPage:
    """Entries of the chain, newest first, and where the chain ends."""

    entries: tuple[EntryFacts, ...]
    next: int | None
    head: str


@dataclass(frozen=True)
class Verified:
    """Whether the chain and the tables are what was signed."""

    ok: bool
    entries: int
    head: str
    problem: str | None


@dataclass(frozen=True)
class TokenFacts:
    """A token by its public name."""

    token: str
    holder: str
    role: Role
    expires: str
    revoked: bool


@dataclass(frozen=True)
class AnalystList:
    """Who may ask, about what, and with which tokens."""

    analysts: tuple[str, ...]
    grants: tuple[Balance, ...]
    tokens: tuple[TokenFacts, ...]


@dataclass(frozen=True)
class NewToken:
    """A new token: `token` is the secret, which cannot be shown again."""

    token: str
    name: str
    holder: str
    role: Role
    expires: str


@dataclass(frozen=True)
class Done:
    """What was asked for is done, and is in the chain."""

    done: bool = True


@router.post(
    "/inspect", response_model=document(CellList), responses=document_errors(), summary="The truth behind a question"
)
async def inspect(body: QuestionBody, identity: Controller, service: Served) -> Response:
    """True values, envelopes and noise; charges nothing and is recorded."""
    question = body.question()

    def look() -> Response:
        inspection = service.party.inspect(question.sql, question.epsilon, split=question.split)
        return encode_reply(inspection.to_dict())

    return await service.run_free_work(identity, look)


@router.post(
    "/compare",
    response_model=document(CostList),
    responses=document_errors(),
    summary="What each level of protection would cost",
)
async def compare(body: QuestionBody, identity: Controller, service: Served) -> Response:
    """Expected errors of a question at every level; charges nothing and is recorded."""
    return await service.compare(identity, body.question(), lambda costs: encode_reply(costs.to_dict()))


@router.get(
    "/ledger", response_model=document(EntryPage), responses=document_errors(), summary="The entries of the chain"
)
def ledger(
    _: Controller,
    service: Served,
    text: Annotated[str, Query(max_length=200, description="Only entries that contain this.")] = "",
    kind: Annotated[list[str] | None, Query(max_length=20, description="Only entries of these kinds.")] = None,
    dataset: Annotated[str | None, Query(min_length=1, max_length=200)] = None,
    analyst: Annotated[str | None, Query(min_length=1, max_length=200)] = None,
    before: Annotated[int | None, Query(ge=1, le=2**53, description="`next` of the page before.")] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
) -> Response:
    """Entries, newest first, and the end of the chain, to be kept elsewhere. A page of long ones has fewer."""
    book = service.ledger

    def read(before: int | None, limit: int) -> list[Entry]:
        kinds = tuple(kind or ())
        return book.search(text=text, kinds=kinds, dataset=dataset, analyst=analyst, before=before, limit=limit)

    page, following = read_page(read, lambda entry: len(entry.payload), before, limit)
    entries = [json.dumps(_facts(entry))[:-1] + f',"content":{entry.payload}}}' for entry in page]
    return encode_list("entries", entries, next=following, head=str(book.head()))


@router.post(
    "/ledger/verify", response_model=document(Verified), responses=document_errors(), summary="Check every signature"
)
async def verify(body: VerifyBody, identity: Controller, service: Served) -> Response:
    """Hold the chain and the tables against their signatures, and against an anchor kept elsewhere."""
    result = await service.verify(identity, body.anchor)
    trouble = None if result.ok else str(result)
    return encode_reply(Verified(result.ok, result.entries, str(result.head), trouble))


@router.get(
    "/analysts", response_model=document(AnalystList), responses=document_errors(), summary="Who may ask about what"
)
def analysts(_: Controller, service: Served) -> Response:
    """Analysts, grants and tokens; of a token only its name, which opens nothing."""
    book = service.ledger
    tokens = tuple(_token_facts(token) for token in book.tokens())
    return encode_reply(AnalystList(tuple(book.analysts()), tuple(book.grants()), tokens))


@router.post(
    "/analysts",
    response_model=document(Done),
    responses=document_errors(),
    status_code=201,
    summary="Make an analyst known",
)
def add_analyst(body: AnalystBody, _: Controller, service: Served) -> Response:
    """Before a grant they may ask nothing."""
    service.ledger.add_analyst(body.name)
    return encode_reply(Done(), 201)


@router.put(
    "/analysts/{name}/grants/{dataset}",
    response_model=document(Balance),
    responses=document_errors(),
    summary="Let an analyst ask",
)
def grant(name: NamePath, dataset: NamePath, body: AmountBody, _: Controller, service: Served) -> Response:
    """Up to totals of their own; without them, up to the data set's budget."""
    return encode_reply(service.ledger.grant(name, dataset, **body.amounts()))


@router.delete(
    "/analysts/{name}/grants/{dataset}",
    response_model=document(Done),
    responses=document_errors(),
    summary="Let an analyst ask no longer",
)
def withdraw(name: NamePath, dataset: NamePath, _: Controller, service: Served) -> Response:
    """What they have spent stays spent."""
    service.ledger.withdraw(name, dataset)
    return encode_reply(Done())


@router.post(
    "/tokens", response_model=document(NewToken), responses=document_errors(), status_code=201, summary="Issue a token"
)
def issue(body: TokenBody, _: Controller, service: Served) -> Response:
    """The token is shown now and never again; only its hash is kept."""
    issued = service.issue_token(body.name, Role(body.role), body.days)
    row = issued.row
    return encode_reply(NewToken(issued.secret, row.token, row.holder, row.role, row.expires), 201)


@router.delete("/tokens/{token}", response_model=document(Done), responses=document_errors(), summary="Revoke a token")
def revoke(token: NamePath, _: Controller, service: Served) -> Response:
    """Accept it no longer; sessions that were opened with it end."""
    service.ledger.revoke_token(token)
    return encode_reply(Done())


@router.post(
    "/datasets/{name}/raise", response_model=document(Balance), responses=document_errors(), summary="Raise a budget"
)
def raise_budget(name: NamePath, body: AmountBody, _: Controller, service: Served) -> Response:
    """To new totals, on the record; a budget never shrinks."""
    return encode_reply(service.ledger.raise_budget(name, **body.amounts()))


@router.post(
    "/datasets/{name}/retire", response_model=document(Done), responses=document_errors(), summary="Retire a data set"
)
def retire(name: NamePath, _: Controller, service: Served) -> Response:
    """Nothing about it is answered from here on; this cannot be undone.

    What was answered stays known: with another data set about the same people they lose up to the sum of both budgets,
    under the weaker of both promises.
    """
    service.ledger.retire(name)
    return encode_reply(Done())


def entry_facts(entry: Entry) -> EntryFacts:
    """An entry with its content read."""
    return EntryFacts(**_facts(entry), content=json.loads(entry.payload))


def _facts(entry: Entry) -> dict[str, Any]:
    return {"sequence": entry.sequence, "time": entry.time, "kind": entry.kind}


def _token_facts(token: TokenRow) -> TokenFacts:
    return TokenFacts(token.token, token.holder, token.role, token.expires, token.revoked is not None)

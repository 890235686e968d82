"""What the controller may do: look behind questions, read and verify the ledger, let analysts in and out.

Everything that changes something is recorded in the ledger's chain.
"""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Response

from idios.core.exact import exact
from idios.ledger import Entry, Role, TokenRow
from idios.server.auth import Controller
from idios.server.replies import encoded, listed, page
from idios.server.routes.analyst import read_question, shown_balance
from idios.server.routes.documented import errors
from idios.server.schemas import (
    AmountBody,
    AnalystBody,
    Analysts,
    BudgetShown,
    CostsShown,
    Done,
    Entries,
    InspectionShown,
    QuestionBody,
    TokenBody,
    TokenIssued,
    Verified,
    VerifyBody,
)
from idios.server.service import Served

router = APIRouter(prefix="/v1", tags=["controller"])

NamePath = Annotated[str, Path(min_length=1, max_length=200)]


@router.post("/inspect", response_model=InspectionShown, responses=errors(), summary="The truth behind a question")
async def inspect(body: QuestionBody, identity: Controller, service: Served) -> Response:
    """True values, envelopes and noise; charges nothing and is recorded."""
    asked = read_question(body)

    def inspected() -> Response:
        found = service.party.inspect(asked.sql, asked.epsilon, split=asked.split)
        return encoded(InspectionShown.model_validate(found.to_dict()))

    return await service.run_free_work(identity, inspected)


@router.post(
    "/compare", response_model=CostsShown, responses=errors(), summary="What each level of protection would cost"
)
async def compare(body: QuestionBody, identity: Controller, service: Served) -> Response:
    """Expected errors of a question at every level; charges nothing and is recorded."""
    asked = read_question(body)
    return await service.compare(identity, asked, lambda costs: encoded(CostsShown.model_validate(costs.to_dict())))


@router.get("/ledger", response_model=Entries, responses=errors(), summary="The entries of the chain")
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

    found, following = page(read, lambda one: len(one.payload), before, limit)
    entries = [json.dumps(_facts(one))[:-1] + f',"content":{one.payload}}}' for one in found]
    return listed("entries", entries, next=following, head=str(book.head()))


@router.post("/ledger/verify", responses=errors(), summary="Check every signature")
async def verify(body: VerifyBody, identity: Controller, service: Served) -> Verified:
    """Hold the chain and the tables against their signatures, and against an anchor kept elsewhere."""
    found = await service.verify(identity, body.anchor)
    return Verified(ok=found.ok, entries=found.entries, head=str(found.head), problem=None if found.ok else str(found))


@router.get("/analysts", responses=errors(), summary="Who may ask about what")
def analysts(_: Controller, service: Served) -> Analysts:
    """Analysts, grants and tokens; of a token only its name, which opens nothing."""
    book = service.ledger
    return Analysts.model_validate(
        {
            "analysts": book.analysts(),
            "grants": [shown_balance(one) for one in book.grants()],
            "tokens": [shown_token(one) for one in book.tokens()],
        }
    )


@router.post("/analysts", responses=errors(), status_code=201, summary="Make an analyst known")
def add_analyst(body: AnalystBody, _: Controller, service: Served) -> Done:
    """Before a grant they may ask nothing."""
    service.ledger.add_analyst(body.name)
    return Done()


@router.put("/analysts/{name}/grants/{dataset}", responses=errors(), summary="Let an analyst ask")
def grant(name: NamePath, dataset: NamePath, body: AmountBody, _: Controller, service: Served) -> BudgetShown:
    """Up to totals of their own; without them, up to the data set's budget."""
    balance = service.ledger.grant(name, dataset, **_amounts(body))
    return BudgetShown.model_validate(shown_balance(balance))


@router.delete("/analysts/{name}/grants/{dataset}", responses=errors(), summary="Let an analyst ask no longer")
def withdraw(name: NamePath, dataset: NamePath, _: Controller, service: Served) -> Done:
    """What they have spent stays spent."""
    service.ledger.withdraw(name, dataset)
    return Done()


@router.post("/tokens", responses=errors(), status_code=201, summary="Issue a token")
def issue(body: TokenBody, _: Controller, service: Served) -> TokenIssued:
    """The token is shown now and never again; only its hash is kept."""
    secret, issued = service.issue_token(body.name, Role(body.role), body.days)
    return TokenIssued(token=secret, name=issued.token, holder=issued.holder, role=issued.role, expires=issued.expires)


@router.delete("/tokens/{token}", responses=errors(), summary="Revoke a token")
def revoke(token: NamePath, _: Controller, service: Served) -> Done:
    """Accept it no longer; sessions that were opened with it end."""
    service.ledger.revoke_token(token)
    return Done()


@router.post("/datasets/{name}/raise", responses=errors(), summary="Raise a budget")
def raise_budget(name: NamePath, body: AmountBody, _: Controller, service: Served) -> BudgetShown:
    """To new totals, on the record; a budget never shrinks."""
    return BudgetShown.model_validate(shown_balance(service.ledger.raise_budget(name, **_amounts(body))))


@router.post("/datasets/{name}/retire", responses=errors(), summary="Retire a data set")
def retire(name: NamePath, _: Controller, service: Served) -> Done:
    """Nothing about it is answered from here on; this cannot be undone."""
    service.ledger.retire(name)
    return Done()


def shown_entry(entry: Entry) -> dict[str, Any]:
    """An entry for JSON."""
    return {**_facts(entry), "content": json.loads(entry.payload)}


def _facts(entry: Entry) -> dict[str, Any]:
    return {"sequence": entry.sequence, "time": entry.time, "kind": entry.kind}


def shown_token(token: TokenRow) -> dict[str, Any]:
    """A token for JSON."""
    return {
        "token": token.token,
        "holder": token.holder,
        "role": token.role,
        "expires": token.expires,
        "revoked": token.revoked is not None,
    }


def _amounts(body: AmountBody) -> dict[str, Fraction | None]:
    return {
        name: None if given is None else exact(str(given), name)
        for name, given in (("epsilon", body.epsilon), ("delta", body.delta))
    }

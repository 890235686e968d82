"""The controller's overview of budgets, and the ledger's entries."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from fractions import Fraction
from typing import Annotated, Any
from urllib.parse import urlencode

from anyio.to_thread import run_sync
from fastapi import APIRouter, Path, Query
from fastapi.responses import Response

from idios.core.exact import exact
from idios.errors import IdiosError, InvalidInput
from idios.ledger import Anchor
from idios.ledger.facts import KINDS
from idios.server.admission import warnings
from idios.server.console.budgets import drawn
from idios.server.console.entries import facts
from idios.server.console.pages import back, show
from idios.server.console.timeline import timeline
from idios.server.console.visiting import Deciding, Overseer, Visit
from idios.server.problems import Problem, Refused, problem
from idios.server.routes.controller import entry_facts

router = APIRouter()

PAGE = 25
DONE = {
    "raised": "The budget was raised; the chain says so.",
    "retired": "The data set was retired. Nothing about it is answered any more.",
}
Name = Annotated[str, Path(min_length=1, max_length=200)]


@router.get("/console/overview")
def overview(visit: Overseer, done: str = "") -> Response:
    """Budgets, spending over time and risks of every data set."""
    return _overview(visit, done=DONE.get(done))


@router.post("/console/datasets/{name}/raise")
def raise_budget(name: Name, visit: Deciding) -> Response:
    """Raise a budget to new totals."""

    def change() -> None:
        epsilon, delta = (total(visit, quantity) for quantity in ("epsilon", "delta"))
        visit.ledger.raise_budget(name, epsilon=epsilon, delta=delta)

    return decided(visit, change, _overview, "/console/overview?done=raised")


@router.post("/console/datasets/{name}/retire")
def retire(name: Name, visit: Deciding) -> Response:
    """Retire a data set, if its name was typed as it is."""

    def change() -> None:
        if visit.sent("name") != name:
            raise InvalidInput(f"to retire {name!r}, type its name; got {visit.sent('name')!r}")
        visit.ledger.retire(name)

    return decided(visit, change, _overview, "/console/overview?done=retired")


@router.get("/console/ledger")
def ledger(
    visit: Overseer,
    text: Annotated[str, Query(max_length=200)] = "",
    kind: Annotated[str, Query(max_length=50)] = "",
    dataset: Annotated[str, Query(max_length=200)] = "",
    analyst: Annotated[str, Query(max_length=200)] = "",
    before: Annotated[int | None, Query(ge=1, le=2**53)] = None,
) -> Response:
    """Entries of the chain, newest first."""
    return _ledger(visit, {"text": text, "kind": kind, "dataset": dataset, "analyst": analyst}, before)


@router.post("/console/ledger/verify")
async def verify(visit: Deciding) -> Response:
    """Check every signature, and the anchor if one was given."""
    try:
        given = visit.sent("anchor")
        anchor = Anchor.parse(given) if given else None
        found = await visit.service.run_beside(visit.identity, lambda: visit.ledger.verify(anchor))
    except (IdiosError, Refused) as error:
        wrong = problem(error)
        return await run_sync(lambda: _ledger(visit, {}, None, problem=wrong))
    return await run_sync(lambda: _ledger(visit, {}, None, verified=found))


def decided(visit: Visit, change: Callable[[], None], again: Callable[..., Response], address: str) -> Response:
    """Change something and go to the page that shows it; or show the page again with what was wrong."""
    try:
        change()
    except IdiosError as error:
        return again(visit, problem=problem(error))
    return back(address)


def total(visit: Visit, quantity: str) -> Fraction | None:
    """A total of ε or δ from a form; None where nothing was written."""
    given = visit.sent(quantity)
    return exact(given, quantity) if given else None


def _overview(visit: Visit, *, problem: Problem | None = None, done: str | None = None) -> Response:
    book = visit.ledger
    served = {one.dataset for one in book.datasets()}
    now = datetime.now(UTC)
    shown = []
    for name, declared in visit.service.declared.items():
        balance = book.balance(name)
        shown.append(
            {
                "name": name,
                "balance": balance,
                "budget": drawn(balance),
                "retired": name not in served,
                "described": visit.service.catalogue[name],
                "warnings": warnings(declared),
                "timeline": timeline(name, book.spending(name), balance.epsilon.budget or Fraction(0), now),
            }
        )
    status = 200 if problem is None else problem.status
    return show(visit, "overview.html", status=status, datasets=shown, problem=problem, done=done)


def _ledger(visit: Visit, wanted: dict[str, str], before: int | None, **values: Any) -> Response:
    book = visit.ledger
    wanted = {"text": "", "kind": "", "dataset": "", "analyst": "", **wanted}
    found = book.search(
        text=wanted["text"],
        kinds=(wanted["kind"],) if wanted["kind"] else (),
        dataset=wanted["dataset"] or None,
        analyst=wanted["analyst"] or None,
        before=before,
        limit=PAGE + 1,
    )
    older = urlencode({**wanted, "before": found[PAGE - 1].sequence}) if len(found) > PAGE else None
    wrong: Problem | None = values.get("problem")
    return show(
        visit,
        "ledger.html",
        status=200 if wrong is None else wrong.status,
        **{"verified": None, **values},
        entries=[{**vars(entry), "facts": facts(dict(entry.content))} for entry in map(entry_facts, found[:PAGE])],
        wanted=wanted,
        filtered=any(wanted.values()),
        first=before is None,
        older=older,
        kinds=list(KINDS),
        datasets=[*visit.service.declared],
        analysts=book.analysts(),
        head=str(book.head()),
    )

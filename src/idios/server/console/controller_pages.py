"""The controller's pages: budgets of the data sets, entries of the ledger, costs of protection, and analysts.

Of the analysts they manage grants and tokens; a token is shown in the response that issues it and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from fractions import Fraction
from typing import Annotated, Any
from urllib.parse import urlencode

from anyio.to_thread import run_sync
from fastapi import APIRouter, Path, Query
from fastapi.responses import Response

from idios.core.exact import exact, whole
from idios.display import FRESH_BUDGET
from idios.errors import IdiosError, InvalidInput
from idios.ledger import Entry, Role
from idios.ledger.facts import KINDS
from idios.model import QuestionRequest
from idios.model.inspection import Costs, LevelCost
from idios.server.catalogue import list_dataset_risks
from idios.server.console.access import ControllerForm, ControllerPage, Visit
from idios.server.console.analyst_pages import EPSILON, list_words
from idios.server.console.charts import LevelErrors, draw_budget, draw_levels, draw_timeline
from idios.server.console.pages import redirect, show
from idios.server.console.presentation import mark_error, present_entry
from idios.server.http_errors import Problem, Refused, to_problem
from idios.server.question_queue import check_affordable
from idios.server.routes.controller import entry_facts

router = APIRouter()

ANALYSTS = "/console/analysts"
PAGE = 25
"""How many entries a page of the ledger lists."""
DONE = {
    "raised": "The budget was raised; the chain says so.",
    "retired": f"The data set was retired. Nothing about it is answered any more. {FRESH_BUDGET}.",
    "added": "The analyst is known now. Grant a data set next, then issue a token.",
    "granted": "The grant is in force.",
    "withdrawn": "The grant was withdrawn. What was spent stays spent.",
    "revoked": "The token was revoked; its sessions have ended.",
}
Name = Annotated[str, Path(min_length=1, max_length=200)]


@router.get("/console/overview")
def overview(visit: ControllerPage, done: str = "") -> Response:
    """Budgets, spending over time and risks of every data set."""
    return _overview(visit, done=DONE.get(done))


@router.post("/console/datasets/{name}/raise")
def raise_budget(name: Name, visit: ControllerForm) -> Response:
    """Raise a budget to new totals."""

    def change() -> None:
        epsilon, delta = (_read_total(visit, quantity) for quantity in ("epsilon", "delta"))
        visit.ledger.raise_budget(name, epsilon=epsilon, delta=delta)

    return _apply_change(visit, change, _overview, "/console/overview?done=raised")


@router.post("/console/datasets/{name}/retire")
def retire(name: Name, visit: ControllerForm) -> Response:
    """Retire a data set, if its name was typed as it is."""

    def change() -> None:
        if visit.field("name") != name:
            raise InvalidInput(f"to retire {name!r}, type its name; got {visit.field('name')!r}")
        visit.ledger.retire(name)

    return _apply_change(visit, change, _overview, "/console/overview?done=retired")


@router.get("/console/ledger")
def ledger(
    visit: ControllerPage,
    text: Annotated[str, Query(max_length=200)] = "",
    kind: Annotated[str, Query(max_length=50)] = "",
    dataset: Annotated[str, Query(max_length=200)] = "",
    analyst: Annotated[str, Query(max_length=200)] = "",
    before: Annotated[int | None, Query(ge=1, le=2**53)] = None,
) -> Response:
    """Entries of the chain, newest first."""
    return _ledger(visit, {"text": text, "kind": kind, "dataset": dataset, "analyst": analyst}, before)


@router.post("/console/ledger/verify")
async def verify(visit: ControllerForm) -> Response:
    """Check every signature, and the anchor if one was given."""
    try:
        verification = await visit.service.verify(visit.identity, visit.field("anchor") or None)
    except (IdiosError, Refused) as error:
        problem = to_problem(error)
        return await run_sync(lambda: _ledger(visit, {}, None, problem=problem))
    return await run_sync(lambda: _ledger(visit, {}, None, verified=verification))


@router.get("/console/compare")
def compare_page(visit: ControllerPage) -> Response:
    """The form."""
    return _compare(visit, QuestionRequest("", EPSILON))


@router.post("/console/compare")
async def compare(visit: ControllerForm) -> Response:
    """The cost of protection for the question in the form; it is recorded in the chain."""
    question = QuestionRequest(visit.field("sql"), visit.field("epsilon"))
    try:
        check_affordable(question)
        costs = await visit.service.compare(visit.identity, question, lambda costs: costs)
    except (IdiosError, Refused) as error:
        problem = to_problem(error)
        mark = mark_error(question.sql, problem.where)
        return await run_sync(lambda: _compare(visit, question, problem=problem, mark=mark))
    refused = dict.fromkeys((row.level, row.note) for row in costs.rows if row.expected_error is None)
    return await run_sync(lambda: _compare(visit, question, panels=_draw_panels(costs), refused=list(refused)))


@router.get(ANALYSTS)
def analysts(visit: ControllerPage, done: str = "") -> Response:
    """Who may ask about what, and with which tokens."""
    return _analysts(visit, done=DONE.get(done))


@router.post(ANALYSTS + "/add")
def add(visit: ControllerForm) -> Response:
    """Make an analyst known."""
    return _apply_change(
        visit, lambda: visit.ledger.add_analyst(visit.field("name")), _analysts, f"{ANALYSTS}?done=added"
    )


@router.post(ANALYSTS + "/grant")
def grant(visit: ControllerForm) -> Response:
    """Let an analyst ask, up to totals of their own."""

    def change() -> None:
        epsilon, delta = (_read_total(visit, quantity) for quantity in ("epsilon", "delta"))
        visit.ledger.grant(visit.field("analyst"), visit.field("dataset"), epsilon=epsilon, delta=delta)

    return _apply_change(visit, change, _analysts, f"{ANALYSTS}?done=granted")


@router.post(ANALYSTS + "/withdraw")
def withdraw(visit: ControllerForm) -> Response:
    """Let an analyst ask no longer."""
    return _apply_change(
        visit,
        lambda: visit.ledger.withdraw(visit.form.get("analyst", ""), visit.form.get("dataset", "")),
        _analysts,
        f"{ANALYSTS}?done=withdrawn",
    )


@router.post(ANALYSTS + "/token")
def issue(visit: ControllerForm) -> Response:
    """Issue a token and show it, once: it is in this response and nowhere else."""
    people = _read_people(visit)  # before: a fault of the ledger afterwards would hide the secret for ever
    try:
        role = Role.CONTROLLER if visit.field("role") == Role.CONTROLLER else Role.ANALYST
        days = whole(visit.field("days"), "days")
        issued = visit.service.issue_token(visit.field("name"), role, days)
    except IdiosError as error:
        return _analysts(visit, problem=to_problem(error))
    people["tokens"].append(issued.row)
    return _show_people(
        visit, people, issued={"secret": issued.secret, "holder": issued.row.holder, "role": role, "days": days}
    )


@router.post(ANALYSTS + "/revoke")
def revoke(visit: ControllerForm) -> Response:
    """Accept a token no longer."""
    return _apply_change(
        visit, lambda: visit.ledger.revoke_token(visit.field("token")), _analysts, f"{ANALYSTS}?done=revoked"
    )


def _apply_change(visit: Visit, change: Callable[[], None], again: Callable[..., Response], address: str) -> Response:
    """Apply a change and redirect to the page that shows it; or show the page again with what was wrong."""
    try:
        change()
    except IdiosError as error:
        return again(visit, problem=to_problem(error))
    return redirect(address)


def _read_total(visit: Visit, quantity: str) -> Fraction | None:
    """Read a total of ε or δ from a form; None where nothing was written."""
    given = visit.field(quantity)
    return exact(given, quantity) if given else None


def _overview(visit: Visit, *, problem: Problem | None = None, done: str | None = None) -> Response:
    book = visit.ledger
    served = {dataset.dataset for dataset in book.datasets()}
    now = datetime.now(UTC)
    datasets = []
    for name, declared in visit.service.declared.items():
        balance = book.balance(name)
        datasets.append(
            {
                "name": name,
                "balance": balance,
                "budget": draw_budget(balance),
                "retired": name not in served,
                "described": visit.service.catalogue[name],
                "warnings": list_dataset_risks(declared),
                "timeline": draw_timeline(balance, book.spending(name), now),
            }
        )
    status = 200 if problem is None else problem.status
    return show(visit, "overview.html", status=status, datasets=datasets, problem=problem, done=done)


def _describe_entry(entry: Entry) -> dict[str, Any]:
    described = entry_facts(entry)
    return {**vars(described), "facts": present_entry(dict(described.content))}


def _ledger(visit: Visit, filters: dict[str, str], before: int | None, **values: Any) -> Response:
    book = visit.ledger
    filters = {"text": "", "kind": "", "dataset": "", "analyst": "", **filters}
    entries = book.search(
        text=filters["text"],
        kinds=(filters["kind"],) if filters["kind"] else (),
        dataset=filters["dataset"] or None,
        analyst=filters["analyst"] or None,
        before=before,
        limit=PAGE + 1,
    )
    older = urlencode({**filters, "before": entries[PAGE - 1].sequence}) if len(entries) > PAGE else None
    problem: Problem | None = values.get("problem")
    return show(
        visit,
        "ledger.html",
        status=200 if problem is None else problem.status,
        **{"verified": None, **values},
        entries=[_describe_entry(entry) for entry in entries[:PAGE]],
        wanted=filters,
        filtered=any(filters.values()),
        first=before is None,
        older=older,
        kinds=list(KINDS),
        datasets=[*visit.service.declared],
        analysts=book.analysts(),
        head=str(book.head()),
    )


def _compare(visit: Visit, question: QuestionRequest, **values: Any) -> Response:
    problem: Problem | None = values.get("problem")
    context = {"panels": [], "refused": [], "mark": None, **values, "question": question, "words": list_words(visit)}
    return show(visit, "compare.html", status=200 if problem is None else problem.status, **context)


def _draw_panels(costs: Costs) -> list[dict[str, Any]]:
    """Draw a chart and a table for each statistic: a line for each level, and on it a dot for each group."""
    panels = []
    for statistic in dict.fromkeys(row.statistic for row in costs.rows):
        rows = [row for row in costs.rows if row.statistic == statistic]
        names = list(dict.fromkeys(row.level for row in rows))
        table: dict[str, dict[str, LevelCost]] = {}
        for row in rows:
            table.setdefault(" · ".join(str(value) for value in row.group.values()), {})[row.level] = row
        lines = [
            LevelErrors(
                name,
                tuple((group, error) for group, cells in table.items() if (error := _error(cells, name)) is not None),
            )
            for name in names
        ]
        title = f"Expected error of {statistic} by level of protection"
        panels.append(
            {
                "statistic": statistic,
                "drawing": draw_levels(title, lines),
                "levels": names,
                "table": table,
                "by": " · ".join(rows[0].group),
            }
        )
    return panels


def _error(cells: dict[str, LevelCost], level: str) -> float | None:
    return cells[level].expected_error if level in cells else None


def _analysts(visit: Visit, *, problem: Problem | None = None, done: str | None = None) -> Response:
    return _show_people(visit, _read_people(visit), problem=problem, done=done)


def _read_people(visit: Visit) -> dict[str, list[Any]]:
    book = visit.ledger
    return {
        "analysts": book.analysts(),
        "grants": book.grants(),
        "tokens": book.tokens(),
        "datasets": [declaration.dataset for declaration in book.datasets()],
    }


def _show_people(
    visit: Visit,
    people: dict[str, list[Any]],
    *,
    problem: Problem | None = None,
    done: str | None = None,
    issued: dict[str, Any] | None = None,
) -> Response:
    people["tokens"].sort(key=lambda token: (token.revoked is not None, token.role, token.holder))
    return show(
        visit,
        "analysts.html",
        status=200 if problem is None else problem.status,
        problem=problem,
        done=done,
        issued=issued,
        own=visit.identity.token,
        **people,
    )

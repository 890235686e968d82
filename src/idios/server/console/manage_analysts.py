"""The page where a controller manages analysts, their grants, and the tokens of analysts and controllers."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from fastapi.responses import Response

from idios.core.exact import whole
from idios.errors import IdiosError
from idios.ledger import Role
from idios.server.console.access import ControllerForm, ControllerPage, Visit
from idios.server.console.controller_pages import apply_change, read_total
from idios.server.console.pages import show
from idios.server.http_errors import Problem, to_problem

router = APIRouter()

HERE = "/console/analysts"
DONE = {
    "added": "The analyst is known now. Grant a data set next, then issue a token.",
    "granted": "The grant is in force.",
    "withdrawn": "The grant was withdrawn. What was spent stays spent.",
    "revoked": "The token was revoked; its sessions have ended.",
}


@router.get(HERE)
def analysts(visit: ControllerPage, done: str = "") -> Response:
    """Who may ask about what, and with which tokens."""
    return _page(visit, done=DONE.get(done))


@router.post(HERE + "/add")
def add(visit: ControllerForm) -> Response:
    """Make an analyst known."""
    return apply_change(visit, lambda: visit.ledger.add_analyst(visit.field("name")), _page, f"{HERE}?done=added")


@router.post(HERE + "/grant")
def grant(visit: ControllerForm) -> Response:
    """Let an analyst ask, up to totals of their own."""

    def change() -> None:
        epsilon, delta = (read_total(visit, quantity) for quantity in ("epsilon", "delta"))
        visit.ledger.grant(visit.field("analyst"), visit.field("dataset"), epsilon=epsilon, delta=delta)

    return apply_change(visit, change, _page, f"{HERE}?done=granted")


@router.post(HERE + "/withdraw")
def withdraw(visit: ControllerForm) -> Response:
    """Let an analyst ask no longer."""
    return apply_change(
        visit,
        lambda: visit.ledger.withdraw(visit.form.get("analyst", ""), visit.form.get("dataset", "")),
        _page,
        f"{HERE}?done=withdrawn",
    )


@router.post(HERE + "/token")
def issue(visit: ControllerForm) -> Response:
    """Issue a token and show it, once: it is in this response and nowhere else."""
    try:
        role = Role.CONTROLLER if visit.field("role") == Role.CONTROLLER else Role.ANALYST
        days = whole(visit.field("days"), "days")
        secret, token = visit.service.issue_token(visit.field("name"), role, days)
    except IdiosError as error:
        return _page(visit, problem=to_problem(error))
    return _page(visit, issued={"secret": secret, "holder": token.holder, "role": role, "days": days})


@router.post(HERE + "/revoke")
def revoke(visit: ControllerForm) -> Response:
    """Accept a token no longer."""
    return apply_change(visit, lambda: visit.ledger.revoke_token(visit.field("token")), _page, f"{HERE}?done=revoked")


def _page(
    visit: Visit, *, problem: Problem | None = None, done: str | None = None, issued: dict[str, Any] | None = None
) -> Response:
    book = visit.ledger
    tokens = sorted(book.tokens(), key=lambda token: (token.revoked is not None, token.role, token.holder))
    return show(
        visit,
        "analysts.html",
        status=200 if problem is None else problem.status,
        problem=problem,
        done=done,
        issued=issued,
        analysts=book.analysts(),
        grants=book.grants(),
        tokens=tokens,
        datasets=[dataset.dataset for dataset in book.datasets()],
        own=visit.identity.token,
    )

"""Analysts, their grants, and the tokens of analysts and controllers."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from fastapi import APIRouter
from fastapi.responses import Response

from idios.core.exact import whole
from idios.errors import IdiosError, InvalidInput
from idios.ledger import Role
from idios.server.console.controller import decided, total
from idios.server.console.pages import show
from idios.server.console.visiting import Deciding, Overseer, Visit
from idios.server.problems import Problem, problem

router = APIRouter()

HERE = "/console/analysts"
LONGEST = 3650
DONE = {
    "added": "The analyst is known now. Grant a data set next, then issue a token.",
    "granted": "The grant is in force.",
    "withdrawn": "The grant was withdrawn. What was spent stays spent.",
    "revoked": "The token was revoked; its sessions have ended.",
}


@router.get(HERE)
def analysts(visit: Overseer, done: str = "") -> Response:
    """Who may ask about what, and with which tokens."""
    return _page(visit, done=DONE.get(done))


@router.post(HERE + "/add")
def add(visit: Deciding) -> Response:
    """Make an analyst known."""
    return decided(visit, lambda: visit.ledger.add_analyst(visit.sent("name")), _page, f"{HERE}?done=added")


@router.post(HERE + "/grant")
def grant(visit: Deciding) -> Response:
    """Let an analyst ask, up to totals of their own."""

    def change() -> None:
        epsilon, delta = (total(visit, quantity) for quantity in ("epsilon", "delta"))
        visit.ledger.grant(visit.sent("analyst"), visit.sent("dataset"), epsilon=epsilon, delta=delta)

    return decided(visit, change, _page, f"{HERE}?done=granted")


@router.post(HERE + "/withdraw")
def withdraw(visit: Deciding) -> Response:
    """Let an analyst ask no longer."""
    return decided(
        visit,
        lambda: visit.ledger.withdraw(visit.form.get("analyst", ""), visit.form.get("dataset", "")),
        _page,
        f"{HERE}?done=withdrawn",
    )


@router.post(HERE + "/token")
def issue(visit: Deciding) -> Response:
    """Issue a token and show it, once: it is in this response and nowhere else."""
    try:
        role = Role.CONTROLLER if visit.sent("role") == Role.CONTROLLER else Role.ANALYST
        days = whole(visit.sent("days"), "days")
        if days > LONGEST:
            raise InvalidInput(f"a token lives for at most {LONGEST} days, got {days}")
        name = visit.sent("name")
        secret = visit.ledger.issue_token(name, role=role, lifetime=timedelta(days=days))
    except IdiosError as error:
        return _page(visit, problem=problem(error))
    return _page(visit, issued={"secret": secret, "holder": name, "role": role, "days": days})


@router.post(HERE + "/revoke")
def revoke(visit: Deciding) -> Response:
    """Accept a token no longer."""
    return decided(visit, lambda: visit.ledger.revoke_token(visit.sent("token")), _page, f"{HERE}?done=revoked")


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
        datasets=[one.dataset for one in book.datasets()],
        own=visit.identity.token,
    )

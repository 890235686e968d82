"""The page where questions are asked: free on made-up data, or charged on the real one.

A question that takes longer than a page should is shown on a page of its own, which reloads itself.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from dataclasses import replace
from typing import Annotated, Any

from anyio.to_thread import run_sync
from fastapi import APIRouter, Path, Query
from fastapi.responses import Response

from idios.errors import IdiosError, InvalidInput
from idios.model import Answer, QuestionProgress
from idios.server.console.answers import marked, presented
from idios.server.console.budgets import budgets
from idios.server.console.completion import words_for
from idios.server.console.dividing import read_weights, written
from idios.server.console.pages import back, show
from idios.server.console.visiting import Sender, Visit, Visitor
from idios.server.desk import Asked
from idios.server.problems import Problem, Refused, problem

router = APIRouter()

PATIENCE = 4.0
"""Seconds after which a question gets a page of its own."""
LONGEST = 20_000
EPSILON = "0.5"
CHARGED_PROBLEMS = ("answer_failed",)

Id = Annotated[str, Path(pattern="^[0-9a-f]{32}$")]


@router.get("/console/ask")
def ask_page(
    visit: Visitor,
    sql: Annotated[str, Query(max_length=LONGEST)] = "",
    epsilon: Annotated[str, Query(max_length=200)] = EPSILON,
) -> Response:
    """An empty form, or one with a question filled in, which is not asked yet."""
    return _page(visit, Asked(sql, epsilon))


@router.post("/console/ask")
async def ask(visit: Sender) -> Response:
    """Quote, try or ask what the form says, and show the result; or only fill it in, to go on writing."""
    asked = Asked(visit.sent("sql"), visit.sent("epsilon"))
    action = visit.form.get("action", "quote")
    if action == "write":
        return await run_sync(lambda: _page(visit, asked))
    shown: dict[str, Any] = {}
    try:
        if not 0 < len(asked.sql) <= LONGEST:
            raise InvalidInput(f"a question has 1 to {LONGEST} characters, got {len(asked.sql)}")
        asked = replace(asked, weights=read_weights(visit.sent("weights"))).affordable()
        if action == "ask":
            found = await _asked(visit, asked)
            if isinstance(found, QuestionProgress):
                return back(f"/console/questions/{found.id}")
            shown["answer"] = await run_sync(presented, found)
        elif action == "sandbox":
            shown |= {"answer": await visit.service.sandbox(visit.identity, asked, presented), "sandbox": True}
        else:
            party = await run_sync(lambda: visit.party)
            shown["quote"] = (await visit.service.desk.quote(party, asked, visit.identity)).to_dict()
    except (IdiosError, Refused) as error:
        wrong = problem(error)
        visit.request.scope["idios.counted"] = wrong.counted
        shown |= {"problem": wrong, "mark": marked(asked.sql, wrong.where)}
        return await run_sync(lambda: _page(visit, asked, status=wrong.status, **shown))
    return await run_sync(lambda: _page(visit, asked, **shown))


@router.get("/console/questions/{id}")
async def question(id: Id, visit: Visitor) -> Response:
    """A question that takes its time: running, stopped, failed or answered."""
    party = await run_sync(lambda: visit.party)
    found = await visit.service.desk.find(party, id, visit.identity)
    row = await run_sync(lambda: visit.ledger.running.find(id))
    asked = Asked("", "") if row is None else Asked(**json.loads(row.request)["asked"])
    shown: dict[str, Any] = {
        "progress": found,
        "question": asked,
        "weights": written(asked.weights),
        "sandbox": False,
    }

    def page() -> Response:
        answer = None if found.answer is None else presented(found.answer)
        return show(visit, "question.html", **shown, answer=answer, budgets=budgets(visit))

    return await run_sync(page)


@router.post("/console/questions/{id}/stop")
async def stop(id: Id, visit: Sender) -> Response:
    """Stop computing; the question stays charged."""
    party = await run_sync(lambda: visit.party)
    await visit.service.desk.cancel(party, id, visit.identity)
    return back(f"/console/questions/{id}")


async def _asked(visit: Visit, asked: Asked) -> Answer | QuestionProgress:
    service = visit.service
    if service.settings.log_questions:
        visit.request.scope["idios.log"] = {"sql": asked.sql, "epsilon": asked.epsilon}
    party = await run_sync(lambda: visit.party)
    return await service.desk.ask(party, asked, visit.identity, _once(visit, asked), PATIENCE)


def _once(visit: Visit, asked: Asked) -> str:
    """The idempotency key of a form and its question: a reload repeats it, and a changed text gets another."""
    facts = json.dumps([visit.sent("once"), asked.sql, asked.epsilon, asked.weights])
    return "console-" + hashlib.sha256(facts.encode()).hexdigest()


def _page(visit: Visit, asked: Asked, *, status: int = 200, **values: Any) -> Response:
    wrong: Problem | None = values.get("problem")
    shown = {
        "answer": None,
        "sandbox": False,
        "quote": None,
        "mark": None,
        "nothing_charged": wrong is not None and wrong.code not in CHARGED_PROBLEMS,
        **values,
        "asked": asked,
        "weights": visit.sent("weights"),
        "once": secrets.token_hex(16),
        "words": words_for(visit),
        "budgets": budgets(visit),
    }
    return show(visit, "ask.html", status=status, **shown)

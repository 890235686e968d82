"""The analyst's pages: what may be asked about, and what was answered."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Query
from fastapi.responses import Response

from idios.codec import to_json
from idios.query.normal_form import describe_selection
from idios.server.catalogue import identifier
from idios.server.console.access import PageVisit
from idios.server.console.charts import draw_budgets
from idios.server.console.pages import show

router = APIRouter()

PAGE = 20


@router.get("/console/datasets")
def datasets(visit: PageVisit) -> Response:
    """Every data set the visitor may ask about, with what it guarantees and what can be asked of each column."""
    described = [_with_links(to_json(dataset)) for dataset in visit.service.datasets(visit.identity)]
    budgets = draw_budgets(visit.service.balances(visit.identity))
    return show(visit, "datasets.html", datasets=described, budgets=budgets)


@router.get("/console/history")
def history(visit: PageVisit, before: Annotated[int | None, Query(ge=1, le=2**53)] = None) -> Response:
    """The visitor's own answers, newest first; a controller sees all."""
    answers = visit.service.answers(visit.identity, before=before, limit=PAGE + 1)
    page = [{**to_json(answer.released), "selected": describe_selection(answer.question)} for answer in answers[:PAGE]]
    older = answers[PAGE - 1].sequence if len(answers) > PAGE else None
    budgets = draw_budgets(visit.service.balances(visit.identity))
    return show(visit, "history.html", answers=page, older=older, first=before is None, budgets=budgets)


def _with_links(described: dict[str, Any]) -> dict[str, Any]:
    """Add an address for every question that can be asked to a data set's public description."""
    table = identifier(described["name"])

    def link(sql: str) -> str:
        return "/console/ask?" + urlencode({"sql": sql})

    columns = []
    for column in described["columns"]:
        offers = [{**offer, "href": link(f"SELECT {offer['call']} FROM {table}")} for offer in column["functions"]]
        name = identifier(column["name"])
        grouped = f"SELECT {name}, COUNT(*) FROM {table} GROUP BY {name}"
        columns.append(
            {
                **column,
                "possible": [offer for offer in offers if offer["answerable"]],
                "impossible": [offer for offer in offers if not offer["answerable"]],
                "grouped": link(grouped) if column["values"] else None,
            }
        )
    return {**described, "columns": columns, "count": link(f"SELECT COUNT(*) FROM {table}")}

"""What may be asked about, and what was answered."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Query
from fastapi.responses import Response

from idios.codec import to_json
from idios.server.catalogue import identifier
from idios.server.console.budgets import budgets
from idios.server.console.conditions import selected
from idios.server.console.pages import show
from idios.server.console.visiting import Visitor
from idios.server.desk import analyst

router = APIRouter()

PAGE = 20


@router.get("/console/datasets")
def datasets(visit: Visitor) -> Response:
    """Every data set the visitor may ask about, with what it guarantees and what can be asked of each column."""
    described = [_offered(to_json(visit.service.catalogue[name])) for name in visit.party.holdings]
    return show(visit, "datasets.html", datasets=described, budgets=budgets(visit))


@router.get("/console/history")
def history(visit: Visitor, before: Annotated[int | None, Query(ge=1, le=2**53)] = None) -> Response:
    """The visitor's own answers, newest first; a controller sees all."""
    found = visit.ledger.answers(None, analyst(visit.identity), newest_first=True, before=before, limit=PAGE + 1)
    page = [{**to_json(one.released), "selected": selected(one.question)} for one in found[:PAGE]]
    older = found[PAGE - 1].sequence if len(found) > PAGE else None
    return show(visit, "history.html", answers=page, older=older, first=before is None, budgets=budgets(visit))


def _offered(described: dict[str, Any]) -> dict[str, Any]:
    """The public description, with an address for every question that can be asked."""
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

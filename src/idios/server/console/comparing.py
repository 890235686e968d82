"""What protection costs: the expected error of one question at every level, for the controller alone."""

from __future__ import annotations

from typing import Any

from anyio.to_thread import run_sync
from fastapi import APIRouter
from fastapi.responses import Response

from idios.audit import Cost, Costs
from idios.errors import IdiosError
from idios.server.console.answers import marked
from idios.server.console.asking import EPSILON
from idios.server.console.charts import Level, levels
from idios.server.console.completion import words_for
from idios.server.console.pages import show
from idios.server.console.visiting import Deciding, Overseer, Visit
from idios.server.desk import Asked
from idios.server.problems import Problem, Refused, problem

router = APIRouter()


@router.get("/console/compare")
def compare_page(visit: Overseer) -> Response:
    """The form."""
    return _page(visit, Asked("", EPSILON))


@router.post("/console/compare")
async def compare(visit: Deciding) -> Response:
    """The cost of protection for the question in the form; it is recorded in the chain."""
    asked = Asked(visit.form.get("sql", "").replace("\r\n", "\n").strip(), visit.sent("epsilon"))
    try:
        asked.affordable()
        found = await visit.service.run_beside(
            visit.identity, lambda: visit.service.party.costs(asked.sql, asked.epsilon)
        )
    except (IdiosError, Refused) as error:
        wrong = problem(error)
        return await run_sync(lambda: _page(visit, asked, problem=wrong, mark=marked(asked.sql, wrong.where)))
    refused = dict.fromkeys((row.level, row.note) for row in found.rows if row.expected_error is None)
    return await run_sync(lambda: _page(visit, asked, panels=_panels(found), refused=list(refused)))


def _panels(costs: Costs) -> list[dict[str, Any]]:
    """A chart and a table for each statistic: a line for each level, and on it a dot for each group."""
    panels = []
    for statistic in dict.fromkeys(row.statistic for row in costs.rows):
        rows = [row for row in costs.rows if row.statistic == statistic]
        names = list(dict.fromkeys(row.level for row in rows))
        table: dict[str, dict[str, Cost]] = {}
        for row in rows:
            table.setdefault(" · ".join(str(value) for value in row.group.values()), {})[row.level] = row
        lines = [
            Level(
                name,
                tuple((group, error) for group, cells in table.items() if (error := _error(cells, name)) is not None),
            )
            for name in names
        ]
        title = f"Expected error of {statistic} by level of protection"
        panels.append(
            {
                "statistic": statistic,
                "drawing": levels(title, lines),
                "levels": names,
                "table": table,
                "by": " · ".join(rows[0].group),
            }
        )
    return panels


def _error(cells: dict[str, Cost], level: str) -> float | None:
    return cells[level].expected_error if level in cells else None


def _page(visit: Visit, asked: Asked, **values: Any) -> Response:
    wrong: Problem | None = values.get("problem")
    shown = {"panels": [], "refused": [], "mark": None, **values, "asked": asked, "words": words_for(visit)}
    return show(visit, "compare.html", status=200 if wrong is None else wrong.status, **shown)

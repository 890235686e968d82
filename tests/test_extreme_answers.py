"""What is paid for is shown, whatever was released: the greatest noise, NULL everywhere, no row that HAVING leaves."""

from __future__ import annotations

import datetime
import json
import re
from fractions import Fraction
from typing import Any

import pytest

from idios.answer.assembly import make_answer
from idios.answer.release import kind_of
from idios.cli import output
from idios.core.exact import text
from idios.model import Answer, ReleasedTable
from idios.plan.question import Aggregate, Plan
from idios.plan.question_words import name_statistics
from idios.server.console.pages import templates
from idios.server.console.presentation import present_answer
from tests.sql.declared import planned, protected

QUESTIONS = {
    "ratios": "SELECT COUNT(*) / SUM(price) AS r, ROUND(AVG(price), 30) AS q, SUM(price) / 3 AS t FROM people",
    "beyond floats": "SELECT 1e399 * 1e399 * SUM(price) AS h, -1e399 * COUNT(*) AS i, 1e399 * SUM(price) / 7 AS f "
    "FROM people",
    "rounded": "SELECT ROUND(COUNT(*), -30) AS r, FLOOR(SUM(price)) AS f, ROUND(SUM(price) * 1e399, -3) AS k, "
    "ROUND(SUM(price), 30) AS m FROM people",
    "beyond the calendar": "SELECT region, MIN(born) + 1000000000 AS d, MIN(born) - 1000000000 AS e, MAX(seen) AS s, "
    "EXTRACT(YEAR FROM MIN(born) + 100000000000000) AS y FROM people GROUP BY region",
    "dates": "SELECT COALESCE(MIN(born), DATE '2020-01-01') AS d, GREATEST(MAX(seen), MIN(born)) AS g, "
    "MAX(born) - MIN(born) AS days FROM people",
    "truth": "SELECT region, COUNT(*) > 3 AS b, NULL IS NULL AS t, SUM(price) IS NULL AS u FROM people GROUP BY region",
    "types that meet": "SELECT CASE WHEN COUNT(*) > 3 THEN COUNT(*) ELSE SUM(price) END AS a, "
    "COALESCE(COUNT(*), 0) AS b, GREATEST(COUNT(*), 0.5) AS c FROM people",
    "nothing known": "SELECT region, CASE WHEN COUNT(*) > 3 THEN MODE(region) END AS m, NULL AS n, "
    "NULLIF(COUNT(*), COUNT(*)) AS z FROM people GROUP BY region",
    "long": "SELECT region, COUNT(*) / 3 * 1e40 AS a, COUNT(*) * 1e308 * 10 AS b, COUNT(*) / 1e399 AS c, "
    "SUM(price) / 7 / 1e30 AS d, 1e300 * SUM(price) - 1e308 * COUNT(*) AS e FROM people GROUP BY region",
    "no rows": "SELECT region, COUNT(*), SUM(price) / 2 AS h FROM people GROUP BY region HAVING COUNT(*) > 1e399",
    "no rows, and a limit": "SELECT region, COUNT(*) > 1 AS b, MIN(born) AS d, NULL AS n FROM people GROUP BY region "
    "LIMIT 0",
    "no rows inside": "SELECT MAX(c), MIN(r), MEDIAN(c), SUM(c), AVG(c), COUNT(*), COUNT(c) FROM (SELECT region AS r, "
    "COUNT(*) AS c FROM people GROUP BY region HAVING COUNT(*) > 1e399)",
    "bins": "SELECT BIN(price, 5), COUNT(*), -COUNT(*) AS m, STDDEV(price) AS s FROM people GROUP BY 1 ORDER BY 1 DESC",
    "bins of dates": "SELECT BIN(born, 1000) AS b, COUNT(*) AS n, b + 3 AS c FROM people GROUP BY 1 ORDER BY n DESC",
    "a SELECT around": "SELECT b, COUNT(*), SUM(n) / COUNT(n) AS m, MAX(d) AS d FROM (SELECT region, "
    "COUNT(*) > 3 AS b, COUNT(*) AS n, MIN(born) + 3000000 AS d FROM people GROUP BY region) GROUP BY b "
    "ORDER BY 2 DESC",
    "odd words": """SELECT 'a|b "c", d' AS "x, y", '1/3' AS z, COUNT(*) AS "=n" FROM people""",
}
EXTREMES = ("huge", "low", "tiny", "zero", "missing", "some missing")


def make_table(plan: Plan, extreme: str, *, intervals: bool) -> ReleasedTable:
    """A table whose values are all extreme."""

    def write(cell: int, aggregate: Aggregate) -> str | None:
        kind, number = kind_of(plan, aggregate), plan.aggregates.index(aggregate)
        if extreme == "missing" or (extreme == "some missing" and (cell + number) % 2):
            return None
        if kind == "category":
            return str(aggregate.domain.values[cell % 2])  # type: ignore[union-attr]
        if kind in ("date", "timestamp"):
            ends = {"huge": datetime.datetime.max, "low": datetime.datetime.min}
            moment = ends.get(extreme, datetime.datetime(2020, 2, 29))
            return moment.date().isoformat() if kind == "date" else moment.isoformat()
        if extreme == "tiny" and kind == "number":
            return str(text(Fraction(1, 10**30)))
        value = {"huge": Fraction(10**40), "low": -Fraction(10**40), "zero": Fraction(0)}.get(extreme, Fraction(cell))
        return str(text(value + (Fraction(1, 10**6) if kind == "number" and extreme != "zero" else 0)))

    cells = tuple(tuple(write(cell, aggregate) for aggregate in plan.aggregates) for cell in range(len(plan.cells)))
    numbers = [kind_of(plan, aggregate) in ("integer", "number") for aggregate in plan.aggregates]
    wide = tuple(
        tuple((value, value) if value and number else None for value, number in zip(row, numbers, strict=True))
        for row in cells
    )
    return ReleasedTable(
        dataset="people",
        version="1",
        guarantee=str(plan.guarantee),
        statistics=name_statistics(plan.normal_form),
        groups=tuple({key.name: str(key.values[i]) for key, i in zip(plan.groups, c, strict=True)} for c in plan.cells),
        cells=cells,
        margins=(None,) * len(plan.aggregates),
        intervals=wide if intervals and any(map(any, wide)) else (),
    )


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_display_shows_extreme_answers(name: str, capsys: Any) -> None:
    plan = planned(QUESTIONS[name], 1000, people=protected("differential"))
    for extreme in EXTREMES:
        for intervals in (False, True):
            answer = make_answer(plan, make_table(plan, extreme, intervals=intervals), id="x")
            assert str(answer)
            assert answer._repr_html_()
            assert len(answer.to_pandas()) == len(answer.to_polars()) == len(answer.rows)
            assert str(answer.to_pandas())
            assert str(answer.to_polars())
            assert len((answer.to_csv() or "").splitlines()) == len(answer.rows) + 1
            assert answer.to_csv(metadata=True)
            again = Answer.from_dict(json.loads(answer.to_json()))
            assert again.to_dict() == answer.to_dict()
            assert again.rows == answer.rows
            assert [answer.margin, answer.margin_reason, answer.intervals, answer.no_margin_note, answer.clipped_note]
            output.print_answer(answer)
            output.print_json(answer.to_dict())
            assert capsys.readouterr().out
            shown = str(templates.get_template("parts.html").module.answer(present_answer(answer), False))
            assert not re.search(r"""["> ](nan|-?inf)["< ]""", shown)


def test_text_that_looks_like_a_fraction_stays_text_in_a_csv_file() -> None:
    plan = planned(QUESTIONS["odd words"], 1000, people=protected("differential"))
    assert "1/3" in str(make_answer(plan, make_table(plan, "zero", intervals=False), id="x").to_csv())

"""Answers made of what was released: what a check counts, and of how many it is a percentile."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from idios.answer.assembly import make_answer
from idios.answer.release import calibrate_plan, draw_table
from idios.core.calibration import Added
from idios.core.sampling import SeededSource
from idios.model import Answer, Distance
from idios.party import TrustedParty

COLUMNS: dict[str, Any] = {
    "x": {"type": "integer", "nullable": False},
    "y": {"type": "integer"},
}
TABLE = {"x": list(range(2000)), "y": [None if i % 2 else i for i in range(2000)]}


@pytest.mark.parametrize(
    ("sql", "size"),
    [
        ("SELECT MEDIAN(x) AS m FROM t", 2000),  # public
        ("SELECT MEDIAN(x) AS m FROM t WHERE x < 1500", None),  # secret
        ("SELECT MEDIAN(x) AS m, COUNT(*) AS n FROM t WHERE x < 1500", 1500),
        ("SELECT MEDIAN(y) AS m, COUNT(*) AS n FROM t WHERE x < 1500", None),  # counts other records
        ("SELECT MEDIAN(y) AS m, COUNT(y) AS n FROM t WHERE x < 1500", 750),
        ("SELECT MEDIAN(x) AS m, COUNT(y) AS n FROM t WHERE x < 1500", None),
    ],
)
def test_percentiles_are_of_what_was_counted(sql: str, size: int | None) -> None:
    with TrustedParty.open(TABLE, name="t", columns=COLUMNS, budget=100, check="0.2", protection="individual") as party:
        answer = party.query(sql, 50)
    distance = answer.check_rows[0]["m"]
    assert ("percentiles" in str(answer)) == (size is not None) == (distance.percentiles is not None)
    assert Answer.from_dict(answer.to_dict()) == answer
    if size is not None and distance.percentiles is not None:
        for records, percent in zip((distance.low, distance.high), distance.percentiles, strict=True):
            assert float(percent) == pytest.approx(100 * (records or 0) / size, abs=0.06 if size == 2000 else 0.3)


@pytest.mark.parametrize("options", [{}, {"order": "ORDER BY n LIMIT 1"}, {"computed": ", m / n AS r"}])
def test_percentiles_hold_with_95_percent_by_the_exact_law(options: dict[str, str]) -> None:
    """Of a count that is drawn, too, over every pair of noises; and they would not, if its noise were forgotten."""
    values, size = {"x": [i % 20 for i in range(100)]}, 60
    chosen = {"min_epsilon": "0.01", "check": "0.5", "floor": 1, "protection": "individual"}
    with TrustedParty.open(values, name="t", columns=COLUMNS_OF_FEW, budget=100, **chosen) as party:
        sql = f"SELECT MEDIAN(x) AS m, COUNT(*) AS n{options.get('computed', '')} FROM t WHERE x < 12 "
        plan = party.make_plan(sql + options.get("order", ""), "2.25", split={"m": 2, "n": "0.25"})
        backend = party.datasets["t"].backend
        table = draw_table(plan, backend, None, SeededSource(1))
        with backend.open_snapshot(plan) as snapshot:
            [summaries], [mechanisms] = snapshot.summaries, calibrate_plan(plan, snapshot.summaries)
    median, count = (dict(plan.measures)[label] for label in ("m", "n"))
    checked, counted = plan.aggregates[median], mechanisms[count]
    assert checked.check is not None
    assert isinstance(counted, Added)
    noises, others = range(-20, 21), range(-40, 41)
    check_chances, count_chances = checked.check.noise.pmf(np.array(noises)), counted.noise.pmf(np.array(others))
    for point in (0, 11):
        signed = checked.check.measure(checked.statistic, summaries[median], Fraction(2 * point), 2)
        true = Fraction(100 * (abs(signed) + 1) // 2 * (1 if signed > 0 else -1), size)
        held = naive = told = 0.0
        for i, noise in enumerate(noises):
            for j, other in enumerate(others):
                chance = check_chances[i] * count_chances[j]
                seen = max(0, counted.value + other)
                drawn = replace(
                    table,
                    cells=(write_cell(table.cells[0], {median: str(point), count: str(seen)}),),
                    checks=(write_cell(table.checks[0], {median: signed + noise}),),
                    intervals=(),
                )
                distance = make_answer(plan, drawn, id="").check_rows[0]["m"]
                if distance.percentiles is None:
                    held += chance
                    continue
                told += chance
                held += chance * (distance.percentiles[0] <= true <= distance.percentiles[1])
                ends = [Fraction(100 * (end or 0), max(seen, 1)) for end in checked.check.bound(signed + noise)]
                naive += chance * (ends[0] <= true <= ends[1])
        assert held >= 0.95
        assert naive < 0.8 < 0.95 < told


COLUMNS_OF_FEW: dict[str, Any] = {"x": {"type": "integer", "bounds": [0, 30], "nullable": False}}


def write_cell(cell: Any, changed: dict[int, Any]) -> tuple[Any, ...]:
    return tuple(changed.get(number, value) for number, value in enumerate(cell))


@pytest.mark.parametrize("notion", ["replace", "add-remove"])
@pytest.mark.parametrize(
    ("select", "grouped"), [("MEDIAN(x)", True), ("MEDIAN(x)", False), ("WINSORIZED_MEAN(x, 0.1)", True)]
)
def test_a_check_says_what_it_counts(select: str, grouped: bool, notion: str) -> None:
    """Between groups a record that is replaced leaves and arrives; an envelope that takes long counts replacements."""
    rows = {"x": list(range(3000)), "g": ["a", "b"] * 1500}
    columns = COLUMNS_OF_FEW | {"g": {"type": "category", "values": ["a", "b"], "nullable": False}}
    options: dict[str, Any] = {"protection": "differential", "neighbours": notion, "check": "0.3", "budget": 100}
    with TrustedParty.open(rows, name="t", columns=columns, **options) as party:
        sql = f"SELECT {select} AS m FROM t{' GROUP BY g' if grouped else ''}"
        answer, quoted = party.query(sql, 20), party.quote(sql, 20)
    arriving = notion == "add-remove" or (grouped and select == "MEDIAN(x)")
    units = {distance.unit for row in answer.check_rows for distance in row.values()}
    assert units == {"added or removed record" if arriving else "record"}
    assert (" added or removed record" in str(answer)) == arriving
    twice = ("How far off an answer is, is counted in records added or removed: a replaced one counts twice.",)
    assert answer.notes == quoted.notes == (twice if arriving and notion == "replace" else ())
    assert Answer.from_dict(answer.to_dict()) == answer
    assert str(Distance(-3, None, unit="added or removed person")).startswith(
        "at most 3 added or removed people too low"
    )

"""Questions with many groups are answered over arrays as they are cell by cell, from the same bytes."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from idios.answer import many_cells, release
from idios.answer.many_cells import DrawnPoints, make_whole, write_multiples
from idios.core.exact import text
from idios.core.sampling import SeededSource
from idios.data import summarise
from idios.party import TrustedParty

draw = random.Random(13)
LABELS = [f"cell {i}" for i in range(70)]


def make_case() -> tuple[dict[str, list[Any]], dict[str, Any], str]:
    """Data, its declaration and a question."""
    kind, span, rows = draw.choice(("integer", "number")), draw.choice((3, 1000, 10**9)), draw.choice((50, 400, 2000))
    values: list[Any] = [draw.randrange(span) if kind == "integer" else draw.randrange(span) / 8 for _ in range(rows)]
    nullable = draw.random() < 0.3
    if nullable:
        values = [None if draw.random() < 0.1 else value for value in values]
    column = {"type": kind, "nullable": nullable} | ({"bounds": [0, 10**9]} if draw.random() < 0.5 else {})
    labels = [*LABELS, *["undeclared"] * draw.choice((0, 30))]
    declared = {
        "columns": {"g": {"type": "category", "values": LABELS}, "x": column},
        "neighbours": draw.choice(("replace", "add-remove")),
        "floor": draw.choice((0, 1, 2)),
    }
    statistic = draw.choice(("MEDIAN(x)", "PERCENTILE_DISC(x, 0.25)", "PERCENTILE_CONT(x, 0.75)"))
    return {"g": [draw.choice(labels) for _ in range(rows)], "x": values}, declared, statistic


def ask(case: tuple[dict[str, list[Any]], dict[str, Any], str], seed: int, level: str = "individual") -> Any:
    data, declared, statistic = case
    common = {"budget": 10**9, "min_epsilon": Fraction(1, 10**6), "max_groups": 10**4, "check": 0}
    with TrustedParty.open(data, name="t", protection=level, **common, **declared) as party:
        party.source = SeededSource(seed)
        return party.query(f"SELECT g, {statistic} FROM t GROUP BY g", 2).exact_rows


def test_answers_are_those_of_cells_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[object] = []
    for seed in range(12):
        case = make_case()
        with monkeypatch.context() as patch:
            original = many_cells.draw_many
            patch.setattr(release, "draw_many", lambda *a, _f=original: drawn.append(_f(*a)) or drawn[-1])
            found = ask(case, seed)
        with monkeypatch.context() as patch:
            patch.setattr(release, "draw_many", lambda *given: None)
            patch.setattr(summarise, "_summarise_groups", lambda *given: None)
            assert ask(case, seed) == found
    assert sum(found is not None for found in drawn) >= 6


def test_differential_answers_are_points_of_the_grid_or_null() -> None:
    for seed in range(4):
        rows = ask(make_case(), seed, "differential")
        assert len(rows) == len(LABELS)
        values = [row[next(name for name in row if name != "g")] for row in rows]
        assert all(value is None or Fraction(value) is not None for value in values)


def test_multiples_of_a_step_are_written_as_every_number_is() -> None:
    for _ in range(300):
        step = Fraction(draw.randrange(1, 50), draw.choice((1, 2, 3, 8, 10, 20, 500, 10**6, 2 * 10**6, 10**12)))
        large = draw.choice((10**4, 10**9, 10**17, 10**30))
        points = [draw.choice((None, 0, draw.randrange(-large, large), 10**6, draw.randrange(30))) for _ in range(9)]
        known = np.array([point is not None for point in points])
        drawn = DrawnPoints(make_whole([point or 0 for point in points]), known)
        assert write_multiples(drawn, step) == [None if point is None else text(point * step) for point in points]

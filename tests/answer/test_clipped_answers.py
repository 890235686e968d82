"""Answers without bounds do not mislead: an interval holds the true value, or there is none and the answer says why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import idios
from idios.answer.assembly import make_answer
from idios.answer.release import draw_table
from idios.core.sampling import SeededSource
from idios.model import Answer
from idios.plan.planner import make_plan
from idios.sql.reader import read

Make = Callable[[np.random.Generator, int], np.ndarray]
DRAWS, MISSED = 50, 0.06
ASKED = [(400, Fraction(4)), (4000, Fraction(1))]
"""Sizes of a table, and ε."""
GROUPS = ["a", "b", "c", "d"]
SHAPES: dict[str, Make] = {
    "skewed": lambda rng, n: rng.lognormal(7, 1, n),
    "very skewed": lambda rng, n: rng.lognormal(7, 1.4, n),
    "sparse": lambda rng, n: np.where(rng.random(n) < 0.06, rng.integers(1, 2001, n), 0),
    "very sparse": lambda rng, n: np.where(rng.random(n) < 0.01, rng.integers(1, 2001, n), 0),
    "sparse and skewed": lambda rng, n: np.where(rng.random(n) < 0.03, rng.lognormal(7, 1, n), 0),
    "far from 0": lambda rng, n: rng.normal(50_000, 900, n),
    "both signs": lambda rng, n: rng.standard_t(4, n) * 1000,
    "ties": lambda rng, n: rng.choice([0, 37, 38, 40, 60], n, p=[0.2, 0.4, 0.2, 0.19, 0.01]),
}
STATISTICS: dict[str, Callable[[np.ndarray], float]] = {
    "SUM(x)": lambda values: float(values.sum()),
    "AVG(x)": lambda values: float(values.mean()),
}


def draw(party: idios.TrustedParty, sql: str, epsilon: Fraction, seed: int) -> Answer:
    """One answer, drawn from the data, which nothing is charged for."""
    (opened,) = party.datasets.values()
    plan = make_plan(read(sql, {opened.dataset.name: opened.dataset}), opened.dataset, epsilon)
    return make_answer(plan, draw_table(plan, opened.backend, source=SeededSource(seed)), id="")


def make_groups(rng: np.random.Generator, shape: str, spread: str, size: int) -> tuple[np.ndarray, np.ndarray]:
    """The values of a table, and the group that each is in."""
    values = SHAPES[shape](rng, size)
    groups = rng.choice(GROUPS, size, p=[0.25] * 4 if spread == "even" else [0.6, 0.3, 0.09, 0.01])
    if spread == "the greatest in one group":
        groups[values > np.quantile(values, 0.99)] = "d"
    return values, groups


def open_groups(values: np.ndarray, groups: np.ndarray, **options: Any) -> idios.TrustedParty:
    columns = {"x": {"type": "number"}, "g": {"type": "category", "values": GROUPS, "nullable": False}}
    table = pa.table({"x": np.rint(values).astype(np.int64), "g": groups})
    return idios.TrustedParty.open(table, name="t", columns=columns, budget=100, protection="differential", **options)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("spread", ["even", "skewed sizes", "the greatest in one group"])
@pytest.mark.parametrize("shape", SHAPES)
def test_an_interval_holds_the_true_value(shape: str, spread: str) -> None:
    """In every group, an interval is shown that misses the truth in at most 6 of 100 draws; their seeds are fixed."""
    rng = np.random.default_rng(len(shape) + len(spread))
    stated = missed = 0
    for size, epsilon in ASKED:
        wrong = {statistic: Counter[str]() for statistic in STATISTICS}
        for seed in range(DRAWS):
            if seed % 5 == 0:
                values, groups = make_groups(rng, shape, spread, size)
                party = open_groups(values, groups)
            for statistic, find in STATISTICS.items():
                answer = draw(party, f"SELECT g, {statistic} AS v FROM t GROUP BY g", epsilon, seed)
                assert any("clipped" in note or "NULL" in note for note in answer.notes)
                for row, found in zip(answer.rows, answer.interval_rows, strict=False):
                    own = values[groups == row["g"]]
                    if (interval := found.get("v")) is not None and len(own):
                        low, high = map(Fraction, interval)
                        assert low < high
                        stated += 1
                        wrong[statistic][row["g"]] += not low <= find(np.rint(own)) <= high
            if seed % 5 == 4:
                party.close()
        worst = max(number for counts in wrong.values() for number in (0, *counts.values()))
        assert worst <= MISSED * DRAWS, (size, epsilon, wrong)
        missed += sum(counts.total() for counts in wrong.values())
    assert missed <= MISSED * max(stated, DRAWS)


def test_too_few_values_are_null_with_a_reason_and_not_a_number() -> None:
    """Limits that found nothing, and groups with next to no values, are NULL in every row and in what is computed."""
    values, groups = np.array([5, 900, 20_000] * 10), np.array(["a", "b", "c"] * 10)
    with open_groups(values, groups) as party:
        for seed in range(5):
            answer = draw(party, "SELECT g, SUM(x) AS s, 2 * SUM(x) AS twice FROM t GROUP BY g", Fraction(1, 2), seed)
            assert [(row["s"], row["twice"]) for row in answer.rows] == [(None, None)] * 4
            assert not answer.interval_rows or not any(answer.interval_rows)
            assert any(note.startswith("s: NULL, as the drawn limits found too few values") for note in answer.notes)
    rng = np.random.default_rng(1)
    values, groups = rng.lognormal(7, 1, 4000), np.array(["a"] * 3997 + ["b"] * 3)
    with open_groups(values, groups) as party:
        null = 0
        for seed in range(20):
            answer = draw(party, "SELECT g, AVG(x) AS m FROM t GROUP BY g", Fraction(1), seed)
            found = {row["g"]: row["m"] for row in answer.rows}
            assert found["a"] is not None
            if found["b"] is None:
                null += 1
                assert any("NULL is" in note and "too few values are counted" in note for note in answer.notes)
        assert null >= 15


def test_limits_are_the_same_in_every_group_and_their_counts_are_told() -> None:
    rng = np.random.default_rng(2)
    values, groups = rng.lognormal(7, 1, 4000), rng.choice(GROUPS, 4000)
    with open_groups(values, groups) as party:
        answer = draw(party, "SELECT g, SUM(x) AS s FROM t GROUP BY g", Fraction(1), 1)
        assert len({row["s"] for row in answer.clipped_rows}) == 1
        (note,) = (note for note in answer.notes if "were clipped" in note)
        assert note.startswith("s: about ")
        assert " of 4" in note or " of 3" in note  # of some 4,000, with noise


def test_values_that_lie_farther_out_than_is_allowed_for_are_counted() -> None:
    """One value in a hundred holds most of the sum: no interval can know, and the count of clipped values tells it."""
    rng = np.random.default_rng(5)
    values, groups = rng.choice([37, 9000], 4000, p=[0.99, 0.01]), rng.choice(GROUPS, 4000)
    with open_groups(values, groups) as party:
        for seed in range(20):
            answer = draw(party, "SELECT g, SUM(x) AS s FROM t GROUP BY g", Fraction(2), seed)
            if all(row["s"] is None for row in answer.rows):
                continue
            (low, high) = answer.clipped_rows[0]["s"]
            (note,) = (note for note in answer.notes if "were clipped" in note)
            counted = int(note.split("about ")[1].split()[0].replace(",", ""))
            assert abs(counted - (values > high).sum() - (values < low).sum()) < 60


def test_many_clipped_values_are_marked_and_have_no_interval() -> None:
    rng = np.random.default_rng(3)
    values, groups = rng.lognormal(7, 2.5, 600), rng.choice(GROUPS, 600)
    marked = 0
    with open_groups(values, groups) as party:
        for seed in range(20):
            answer = draw(party, "SELECT g, SUM(x) AS s FROM t GROUP BY g", Fraction(1), seed)
            if any("too many for an interval" in note for note in answer.notes):
                marked += 1
                assert not any(answer.interval_rows)
                assert all(row["s"] is not None for row in answer.rows)
    assert marked >= 5

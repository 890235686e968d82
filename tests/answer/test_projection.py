"""How long an answer may be is known before it is charged: no answer is longer, however it is asked."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from idios.answer.projection import count_characters, list_columns
from idios.codec import to_json
from idios.errors import IdiosError
from idios.party import TrustedParty
from idios.server.console.presentation import present_answer
from tests.plan.random_selects import NUMBER, TEXT, Named, make_question

REGIONS = ["north", "south", "\x01\x02 'ö' \"😀\"", "a" * 60]
COLUMNS: dict[str, Any] = {
    "age": {"type": "integer", "bounds": [0, 120], "nullable": False},
    "income": {"type": "number", "step": "1e-6"},
    "third": {"type": "number", "step": "1/3", "bounds": [0, 1000]},
    "day": {"type": "date"},
    "seen": {"type": "timestamp"},
    "region": {"type": "category", "values": REGIONS},
}
STATISTICS = [
    *(
        "COUNT(*)",
        "COUNT(DISTINCT age)",
        "SUM(age)",
        "SUM(income)",
        "AVG(income)",
        "MEDIAN(income)",
        "VARIANCE(income)",
    ),
    *(
        "STDDEV(age)",
        "MAX(income)",
        "IQR(third)",
        "AVG(third)",
        "SUM(third)",
        "MEDIAN(third)",
        "KTH_LARGEST(income, 2)",
    ),
]
TEXTS, MOMENTS = ["MODE(region)"], ["MIN(day)", "MEDIAN(day)", "MAX(seen)", "MEDIAN(seen)"]
EXTREME = [
    "SELECT COUNT(*) * 1e300 AS huge, COUNT(*) / 1e300 AS tiny, SUM(income) * SUM(income) / 3 AS long FROM people",
    "SELECT region, COUNT(*) / 1024 / 1024 / 1024 / 1024 / 1024 / 1024 / 1024 AS halves FROM people GROUP BY region",
    "SELECT CASE WHEN COUNT(*) > 0 THEN '" + "\t😀" * 400 + "' ELSE MODE(region) END AS said FROM people",
    'SELECT region, COUNT(*) AS "' + "\\" * 120 + '", SUM(income) AS "' + "€" * 120 + '" FROM people GROUP BY region',
    "SELECT MAX(said) AS said, SUM(n) AS n FROM (SELECT region, MODE(region) AS said, COUNT(*) AS n FROM people "
    "GROUP BY region) GROUP BY region",
    f"SELECT BIN(age, 1), {', '.join(f'SUM(income) / (COUNT(*) + {i}) AS c{i}' for i in range(60))} FROM people "
    "GROUP BY BIN(age, 1)",
    f"SELECT BIN(age, 10), {', '.join(f'COUNT(*) AS c{i}' for i in range(190))} FROM people GROUP BY BIN(age, 10)",
    "SELECT BIN(age, 10), region, COUNT(*), SUM(income), SUM(third) / COUNT(third) AS m, GROUPING(region) FROM people "
    "GROUP BY CUBE(BIN(age, 10), region)",
    "SELECT region, MAX(region) OVER () AS r, SUM(SUM(income)) OVER () AS s FROM people GROUP BY ROLLUP(region)",
    "SELECT BIN(age, 1), region, MEDIAN(seen), MEDIAN(day), AVG(income), SUM(third) FROM people "
    "GROUP BY BIN(age, 1), region",
]


@pytest.fixture(scope="module", params=["0", "0.3"])
def party(request: pytest.FixtureRequest) -> Iterator[TrustedParty]:
    rng, rows = np.random.default_rng(7), 2_000
    table = {
        "age": rng.integers(0, 121, rows),
        "income": rng.lognormal(10, 3, rows),
        "third": rng.random(rows) * 900,
        "day": (np.datetime64("1900-01-01") + rng.integers(0, 40_000, rows)).astype("datetime64[D]"),
        "seen": np.datetime64("1970-01-01T00:00:00.000001") + rng.integers(0, 10**15, rows).astype("timedelta64[us]"),
        "region": rng.choice(REGIONS, rows),
    }
    options = {"protection": "differential", "budget": 10**9, "min_epsilon": "1e-6", "check": request.param}
    with TrustedParty.open(table, name="people", columns=COLUMNS, **options) as opened:
        yield opened


def measure_longer(party: TrustedParty, sql: str, epsilon: object) -> tuple[int, int]:
    """The length of an answer, and how long it may be."""
    plan = party.make_plan(sql, epsilon)  # type: ignore[arg-type]
    written = json.dumps(to_json(party.query(sql, epsilon)), ensure_ascii=False, separators=(",", ":"))  # type: ignore[arg-type]
    return len(written.encode("utf-8", "surrogatepass")), count_characters(plan)


@pytest.mark.parametrize("sql", EXTREME, ids=range(len(EXTREME)))
@pytest.mark.parametrize("epsilon", ["0.001", "1000"])
def test_no_answer_is_longer_than_was_known(party: TrustedParty, sql: str, epsilon: str) -> None:
    length, most = measure_longer(party, sql, epsilon)
    assert length <= most


def test_no_random_answer_is_longer_than_was_known(party: TrustedParty) -> None:
    rng, answered = random.Random(28), 0
    for _ in range(150):
        listed = rng.sample(STATISTICS + TEXTS + MOMENTS, rng.randint(1, 4))
        named = [Named(one, TEXT if one in TEXTS else NUMBER) for one in listed if one not in MOMENTS]
        group = rng.choice(["", "region", "BIN(age, 10)"])
        keys = [Named(group, TEXT if group == "region" else NUMBER)] if group else []
        plain = f"SELECT {', '.join([group] * bool(group) + listed)} FROM people{' GROUP BY ' * bool(group)}{group}"
        sql = make_question(rng, named, keys, "") if named and rng.random() < 0.8 else plain
        try:
            length, most = measure_longer(party, sql, rng.choice(["0.01", "5", "200"]))
        except IdiosError:
            continue
        answered += 1
        assert length <= most, sql
    assert answered > 90


def test_what_may_be_long_counts(party: TrustedParty) -> None:
    """Cells, columns, names and literals all count, and what LIMIT leaves out does not."""

    def count(sql: str) -> int:
        return count_characters(party.make_plan(sql, 1))

    grouped = "SELECT BIN(age, 1), COUNT(*) AS {} FROM people GROUP BY BIN(age, 1) {}"
    one = count(grouped.format("n", ""))
    assert count(grouped.format("n" * 100, "")) > one + 121 * 99
    assert count(grouped.format("n, COUNT(*) AS m", "")) > 1.4 * one
    assert count(grouped.format("n", "ORDER BY 2 LIMIT 3")) < 0.6 * one
    assert count(f"SELECT CASE WHEN COUNT(*) > 1 THEN '{'x' * 9000}' END AS t FROM people") > 9000


SHAPES = [
    "SELECT region, {0} FROM people GROUP BY region HAVING {0} > 3 ORDER BY 2 LIMIT 2",
    "SELECT region, {0} AS s, {0} / COUNT(*) AS r, SUM({0}) OVER () AS o FROM people GROUP BY region",
    "SELECT MAX(s) AS m FROM (SELECT region, {0} AS s FROM people GROUP BY region)",
    "SELECT {0} + 1 AS x, CASE WHEN {0} > 3 THEN 'a' ELSE 'b' END AS y FROM people",
]
TOTALS = [
    "SELECT region, {0}, {0} AS again, {0} / COUNT(*) AS r FROM people GROUP BY ROLLUP(region)",
    "SELECT region, {0} AS s, SUM({0}) OVER () AS o FROM people GROUP BY ROLLUP(region) HAVING {0} > 3 ORDER BY 2",
    "SELECT BIN(age, 40), region, {0} FROM people GROUP BY CUBE(BIN(age, 40), region)",
    "SELECT BIN(age, 40), region, {0} FROM people GROUP BY GROUPING SETS ((BIN(age, 40)), (region), ())",
    "SELECT region, s FROM (SELECT region, {0} AS s FROM people GROUP BY ROLLUP(region)) WHERE region IS NULL",
]


@pytest.mark.parametrize("epsilon", ["0.001", "50"])
@pytest.mark.parametrize(
    ("statistic", "sql"),
    [
        *((statistic, sql) for statistic in ("SUM", "AVG", "VARIANCE") for sql in SHAPES),
        *(("SUM", sql) for sql in TOTALS),
    ],
)
def test_whatever_limits_are_drawn_every_question_is_answered_and_shown(
    party: TrustedParty, statistic: str, sql: str, epsilon: str
) -> None:
    """A failure here would be one after the charge; totals tell their limits under their own name."""
    sql = sql.format(f"{statistic}(income)")
    answer, plan = party.query(sql, epsilon), party.make_plan(sql, epsilon)
    shown = (str(answer), answer._repr_html_(), answer.to_csv(metadata=True), answer.to_json(), present_answer(answer))
    assert all(shown)
    named = {column.label for column in list_columns(plan) if column.named is not None}
    assert not named & set(answer.clipped_from)
    assert named - set(answer.clipped_columns) <= {"COUNT(*)"} or not answer.rows

"""One released set of statistics is one key: charged, drawn and stored once, whatever is made of it afterwards."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

from idios.answer import release
from idios.party import TrustedParty

STATISTICS = {
    "count": ("COUNT(*)", "count( * )"),
    "sum": ("SUM(age)", "Sum(AGE)"),
    "mean": ("AVG(age)", "MEAN(age)"),
    "median": ("MEDIAN(income)", "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY income)", "QUANTILE(income, 1 / 2)"),
    "high": ("PERCENTILE_CONT(income, 0.9)", "QUANTILE(income, 0.90)"),
    "greatest": ("MAX(age)", "max(age)"),
}
"""By meaning, the ways to write it."""
KEYS = {"region": ("region", "REGION"), "decade": ("BIN(age, 30)", "bin(age, 3e1)")}
FILTERS = {
    "": ("", "WHERE TRUE", "WHERE age >= 0 /* everybody */"),
    "adults": ("WHERE age > 17", "WHERE NOT age < 18", "WHERE age NOT BETWEEN 0 AND 10 + 7"),
}
COLUMNS: dict[str, Any] = {
    "age": {"type": "integer", "bounds": [0, 120], "nullable": False},
    "income": {"type": "number", "step": 1, "bounds": [0, 100_000]},
    "region": {"type": "category", "values": ["north", "south"]},
}
EPSILON = 1


@dataclass(frozen=True)
class Asked:
    """A question, what it releases (statistics, keys, filter), and by label the statistics that it shows plainly."""

    sql: str
    released: tuple[frozenset[str], frozenset[str], str]
    plain: dict[str, str]
    grouped: tuple[str, ...]


def write(rng: random.Random, statistics: list[str], keys: list[str], where: str) -> Asked:
    """A question that releases exactly these, each somewhere: listed, within an expression, HAVING, CASE, ORDER BY."""
    items: list[str] = []
    having, order, plain = [], [], {}
    for i, name in enumerate(rng.sample(statistics, len(statistics))):
        call = rng.choice(STATISTICS[name])
        where_to = rng.randrange(7)
        if where_to < 2:
            plain[f"s{i}"] = name
            items.append(f"{call} AS s{i}")
        elif where_to == 2:
            items.append(f"ROUND(100 * {call} / NULLIF({call} - {rng.randrange(9)}, 0), 2) AS e{i}")
        elif where_to == 3:
            items.append(f"CASE WHEN {call} > {rng.randrange(99)} THEN 'much' ELSE 'little' END AS c{i}")
        elif where_to == 4:
            having.append(f"({call} > {rng.randrange(99)} OR TRUE)")
        elif where_to == 5:
            order.append(f"{call} DESC")
        else:
            plain[f"s{i}"] = name
            items.append(f"{call} AS s{i}")
            having.append(f"s{i} IS NOT DISTINCT FROM s{i}")
            order.append(rng.choice((f"s{i}", f"ABS({call}) DESC NULLS FIRST")))
    ordered = rng.sample(keys, len(keys))
    listed = {key: f"k_{key}" for key in ordered}
    items += [f"{rng.choice(KEYS[key])} AS {label}" for key, label in listed.items()]
    items += ["'constant' AS t"] if rng.random() < 0.2 or not items else []
    rng.shuffle(items)
    grouped = [
        rng.choice((rng.choice(KEYS[key]), listed[key], str(find_place(items, listed[key]) + 1))) for key in ordered
    ]
    parts = [
        f"SELECT {rng.choice((' ', '/* as agreed */ '))}{', '.join(items)} FROM people",
        rng.choice(FILTERS[where]),
        f"GROUP BY {', '.join(grouped)}" if grouped else "",
        f"HAVING {' AND '.join(having)}" if having else "",
        f"ORDER BY {', '.join(order)}" if order else "",
    ]
    sql = " ".join(filter(None, parts))
    released = frozenset(statistics), frozenset(keys), where
    around = rng.randrange(4)
    if around == 0:
        sql = f"SELECT * FROM ({sql}) {rng.choice(('', 'AS s'))} -- all of it"
    elif around == 1:
        return Asked(f"SELECT COUNT(*) AS n FROM ({sql}) LIMIT 1", released, {}, ())
    return Asked(sql, released, plain, tuple(listed.values()))


def find_place(items: list[str], label: str) -> int:
    return next(i for i, item in enumerate(items) if item.endswith(f" AS {label}"))


def draw(rng: random.Random) -> Asked:
    """A random question."""
    return write(
        rng,
        rng.sample(list(STATISTICS), rng.randint(1, 3)),
        rng.sample(list(KEYS), rng.choice((0, 1, 1, 2))),
        rng.choice(list(FILTERS)),
    )


@pytest.fixture(scope="module")
def party() -> Iterator[TrustedParty]:
    rng = random.Random(3)
    table = pa.table(
        {
            "age": [rng.randint(0, 120) for _ in range(200)],
            "income": [rng.randint(0, 100_000) for _ in range(200)],
            "region": [rng.choice(["north", "south"]) for _ in range(200)],
        }
    )
    with TrustedParty.open(
        table, name="people", columns=COLUMNS, budget=10**9, protection="differential", min_epsilon="0.000001"
    ) as opened:
        yield opened


def test_a_key_is_the_set_of_what_is_released(party: TrustedParty) -> None:
    """Of any two questions: one released set, one key; another set, another key."""
    rng = random.Random(1)
    keys: dict[Any, str] = {}
    sets: dict[str, Any] = {}
    for _ in range(400):
        asked = draw(rng)
        key = party.key(party.make_plan(asked.sql, EPSILON))
        assert keys.setdefault(asked.released, key) == key, asked.sql
        assert sets.setdefault(key, asked.released) == asked.released, asked.sql
    assert len(keys) > 100


PAIRS = [
    ("SELECT COUNT(*) FROM people", "SELECT COUNT(*) FROM people HAVING SUM(age) > 3"),
    (
        "SELECT region, COUNT(*) FROM people GROUP BY 1",
        "SELECT region, COUNT(*) FROM people GROUP BY 1 ORDER BY SUM(age)",
    ),
    ("SELECT COUNT(*) FROM people", "SELECT CASE WHEN MAX(age) > 3 THEN COUNT(*) END AS c FROM people"),
    ("SELECT COUNT(*) FROM people", "SELECT COALESCE(COUNT(*), MAX(age)) AS c FROM people"),
    ("SELECT COUNT(*) AS n FROM people", "SELECT n FROM (SELECT COUNT(*) AS n, SUM(age) AS s FROM people)"),
    ("SELECT COUNT(*) AS n FROM people", "SELECT n FROM (SELECT COUNT(*) AS n FROM people HAVING SUM(age) > 3)"),
    ("SELECT MAX(age) FROM people", "SELECT MAX(m) FROM (SELECT region, MAX(age) AS m FROM people GROUP BY region)"),
    ("SELECT SUM(age) / COUNT(*) AS a FROM people", "SELECT AVG(age) FROM people"),
    ("SELECT COUNT(*) FROM people WHERE age > 3", "SELECT n FROM (SELECT COUNT(*) AS n FROM people) WHERE n > 3"),
]
"""Pairs of questions that release different sets."""


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_another_released_set_is_another_key(party: TrustedParty, one: str, other: str) -> None:
    assert party.key(party.make_plan(one, EPSILON)) != party.key(party.make_plan(other, EPSILON))


def test_never_one_sample_more_than_is_charged(party: TrustedParty, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every released set is drawn once, cell by cell, and shown alike to each question that uses it."""
    drawn = 0
    draw_cell = release.draw_cell

    def count(*arguments: Any) -> Any:
        nonlocal drawn
        drawn += 1
        return draw_cell(*arguments)

    monkeypatch.setattr(release, "draw_cell", count)
    rng = random.Random(2)
    sets = [draw(rng).released for _ in range(12)]
    charged: dict[str, Fraction] = {}
    samples = 0
    values: dict[Any, Any] = {}
    before = party.ledger.balance("people").epsilon.spent
    for _ in range(100):
        statistics, keys, where = rng.choice(sets)
        asked = write(rng, sorted(statistics), sorted(keys), where)
        plan = party.make_plan(asked.sql, EPSILON)
        key, quoted = party.key(plan), party.price(plan)
        answer = party.query(asked.sql, EPSILON)
        assert answer.stored == quoted.stored == (key in charged)
        assert quoted.cost == (0 if key in charged else plan.epsilon)
        if key not in charged:
            charged[key] = plan.epsilon
            samples += len(plan.cells) * len(plan.aggregates)
        for row in answer.exact_rows:
            group = frozenset((label, row[label]) for label in asked.grouped)
            for label, statistic in asked.plain.items():
                assert values.setdefault((key, statistic, group), row[label]) == row[label], asked.sql
        assert drawn == samples
    assert party.ledger.balance("people").epsilon.spent - before == sum(charged.values())
    assert len(charged) == len(set(sets))

"""Ten thousand questions, valid, broken and hostile: each is answered or refused; none reaches the engine as text.

Most of them compute something after the release, as do those of ``tests.sql.test_hostile_sql``.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from contextlib import suppress
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from idios.data.engines.duckdb import DuckDbConnection
from idios.errors import IdiosError, QuestionRefused
from idios.party import TrustedParty
from tests.plan.random_selects import NUMBER, TEXT, Named, make_question

COUNT = 10_000
MARK = "zzmarkzz"
TRACE = "qqtraceqq"
"""Stands in labels, literals and comments of questions, and in nothing that is declared."""
LABEL = re.compile(r"\b([pabc][kf]?[0-9])\b")
COLUMNS: dict[str, Any] = {
    "age": {"type": "integer", "bounds": [0, 120], "nullable": False},
    "income": {"type": "number", "step": 1},
    "region": {"type": "category", "values": ["north", "south", MARK]},
}
STATISTICS = [
    "COUNT(*)",
    "COUNT(income)",
    "COUNT(DISTINCT age)",
    "SUM(age)",
    "AVG(age)",
    "MEDIAN(income)",
    "MIN(age)",
    "MAX(age)",
    "QUANTILE(income, 0.25)",
    "PERCENTILE_DISC(income, 0.75)",
    "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY income)",
    "KTH_LARGEST(income, 2)",
    "KTH_SMALLEST(income, 3)",
    "IQR(income)",
    "TRIMMED_MEAN(income, 0.05)",
    "WINSORIZED_MEAN(income, 0.1)",
    "VARIANCE(age)",
    "STDDEV(age)",
    "MODE(region)",
    "MAX(income)",
    "SUM(income)",
]
CONDITIONS = [
    "age > 30",
    "age BETWEEN 20 AND 60",
    "income < 50000.5",
    "region = 'north'",
    f"region <> '{MARK}'",
    "region IN ('north', 'south')",
    "income IS NULL",
    "NOT (age = 44)",
    "income >= -1e5",
    "age <> 7",
]
HOSTILE = [
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT getenv('HOME')",
    "COPY people TO '/tmp/x'",
    "ATTACH 'x.db'",
    "PRAGMA database_list",
    "SELECT MEDIAN(income) FROM people; DROP TABLE people",
    "INSTALL httpfs",
    "LOAD httpfs",
    "SELECT MEDIAN(income) FROM (SELECT * FROM people)",
    "WITH t AS (SELECT 1) SELECT COUNT(*) FROM t",
    "SELECT MEDIAN(CASE WHEN age > 3 THEN income END) FROM people",
    "SELECT MEDIAN(income) OVER () FROM people",
    "SELECT 1/0",
    "SELECT COUNT(*) FILTER (WHERE age > 3) FROM people",
    "SELECT MEDIAN(income) FROM people, people",
    "EXPLAIN SELECT 1",
    "SELECT MEDIAN(income) FROM people WHERE age = (SELECT MAX(age) FROM people)",
    "\x00",
    "SELECT",
    "((((",
    "'",
    "SELECT MEDIAN(income) FROM people WHERE " + "(" * 5000 + "age > 1" + ")" * 5000,
    "SELECT MEDIAN(income) FROM people WHERE age > 1e999",
    "SELECT MEDIAN(income) FROM people WHERE random() < 0.5",
    "SELECT list(income) FROM people",
    "ＳＥＬＥＣＴ 1",
    "SELECT string_agg(region) FROM people",
    "SELECT DISTINCT age FROM people",
    "SELECT income FROM people ORDER BY 1 LIMIT 1",
    "SELECT MEDIAN(income + 0) FROM people",
    "SELECT MAX(m) FROM (SELECT income AS m FROM people)",
    "SELECT COUNT(*) FROM people WHERE income > (SELECT MEDIAN(income) FROM people)",
    "SELECT COUNT(*) FROM people HAVING income > 3",
    "SELECT COUNT(*) FROM people ORDER BY income",
    "SELECT CASE WHEN income > 3 THEN COUNT(*) END FROM people",
    "SELECT COUNT(*) + age FROM people",
    "SELECT ROUND(income, 2) FROM people",
    "SELECT COUNT(*) FROM people ORDER BY (SELECT 1)",
    "SELECT COUNT(*) FROM people LIMIT (SELECT MAX(age) FROM people)",
    "SELECT n FROM (SELECT COUNT(*) AS n FROM people) WHERE n > (SELECT MAX(age) FROM people)",
    "SELECT n, income FROM (SELECT COUNT(*) AS n FROM people)",
    "SELECT n FROM (SELECT COUNT(*) AS n FROM people), people",
    "SELECT COALESCE(income, 0) FROM people GROUP BY region",
    "SELECT GREATEST(MAX(age), age) FROM people",
    "SELECT region FROM people GROUP BY region HAVING region LIKE income",
    "SELECT printf('%s', COUNT(*)) FROM people",
    "SELECT COUNT(*) FROM people HAVING read_text('/etc/passwd') IS NULL",
    "SELECT COUNT(*) FROM people ORDER BY getenv('HOME')",
    "SELECT CASE WHEN TRUE THEN (SELECT income FROM people) END, COUNT(*) FROM people",
]


def question(rng: random.Random) -> str:
    """A question from the grammar, often with something wrong in it."""
    listed = rng.sample(STATISTICS, rng.randint(1, 3))
    group = rng.choice([None, None, "region", "BIN(age, 30)"])
    if rng.random() < 0.7:
        named = [Named(one, TEXT if one.startswith("MODE") else NUMBER) for one in listed]
        keys = [Named(group, TEXT if group == "region" else NUMBER)] if group else []
        where = f"WHERE {rng.choice(CONDITIONS)}" if rng.random() < 0.3 else ""
        sql = LABEL.sub(rf"\1_{TRACE}", make_question(rng, named, keys, where))
        return sql.replace("'other'", f"'{TRACE}'") + f" -- {TRACE}"
    sql = f"SELECT {', '.join([*([group] if group else []), *listed])} FROM people"
    if rng.random() < 0.6:
        parts = rng.sample(CONDITIONS, rng.randint(1, 3))
        sql += " WHERE " + rng.choice([" AND ", " OR "]).join(parts)
    if group:
        sql += f" GROUP BY {group}"
    return sql


def mutated(sql: str, rng: random.Random) -> str:
    """The same with words dropped, doubled, swapped, or characters changed."""
    words = sql.split(" ")
    for _ in range(rng.randint(1, 3)):
        i = rng.randrange(len(words))
        change = rng.randrange(5)
        if change == 0:
            words.pop(i)
        elif change == 1:
            words.insert(i, words[i])
        elif change == 2:
            words[i] = rng.choice(
                ["FROM", "JOIN", "(", ")", "''", "--", "*", ";", "NULL", MARK, "1e400", "é", "\x00", "/*"]
            )
        elif change == 3:
            words[i] = words[i][::-1]
        else:
            at = rng.randrange(len(words[i]) + 1)
            words[i] = words[i][:at] + rng.choice("'\"();,.%\\\n\t") + words[i][at:]
        if not words:
            break
    return " ".join(words)


@pytest.fixture
def party() -> Any:
    rng = random.Random(2)
    table = pa.table(
        {
            "age": [rng.randint(0, 120) for _ in range(300)],
            "income": [None if i % 9 == 0 else rng.lognormvariate(10, 1) for i in range(300)],
            "region": [rng.choice(["north", "south", "other"]) for _ in range(300)],
        }
    )
    with TrustedParty.open(
        table, name="people", columns=COLUMNS, budget=10**9, min_epsilon="0.000001", protection="individual"
    ) as opened:
        yield opened


def spy_on_the_engine(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the engine is asked from now on."""
    seen: list[str] = []
    run = DuckDbConnection.run

    def spy(self: DuckDbConnection, given: Any) -> Any:
        seen.append(str(given))
        return run(self, given)

    monkeypatch.setattr(DuckDbConnection, "run", spy)
    return seen


@pytest.mark.slow
def test_ten_thousand_questions(party: TrustedParty, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(11)
    outcomes: Counter[str] = Counter()
    answered = 0
    seen = spy_on_the_engine(monkeypatch)
    for i in range(COUNT):
        kind = rng.random()
        sql = rng.choice(HOSTILE) if kind < 0.15 else question(rng)
        if 0.15 <= kind < 0.65 or (kind < 0.15 and rng.random() < 0.5):
            sql = mutated(sql, rng)
        try:
            # planning is all that a refusal needs; every twentieth question that passes is also answered
            plan = party.make_plan(sql, 5)
            outcomes["planned"] += 1
            if outcomes["planned"] % 20 == 0:
                spent = party.ledger.balance("people").epsilon.spent
                answer = party.query(sql, 5)
                answered += 1
                assert answer.columns == party.price(plan).columns
                assert party.ledger.balance("people").epsilon.spent - spent == (0 if answer.stored else plan.epsilon)
                assert TRACE not in " ".join(seen)
                seen.clear()
        except IdiosError as error:
            outcomes[type(error).__name__] += 1
        assert i == outcomes.total() - 1
    assert outcomes["planned"] > 1000
    assert outcomes["QuestionRefused"] > 1000
    assert answered > 100


@pytest.mark.parametrize("sql", HOSTILE)
def test_hostile_questions_are_refused(party: TrustedParty, sql: str) -> None:
    with pytest.raises(IdiosError):
        party.query(sql, 1)
    assert party.ledger.balance("people").epsilon.spent == 0


def test_no_word_of_a_question_reaches_the_engine(party: TrustedParty, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names, literals and aliases of the analyst's text: the engine sees grid points and the declared columns."""
    seen = spy_on_the_engine(monkeypatch)
    condition = "region = 'north' OR age < 31415 AND income < 27182.8 OR region LIKE 'nor%tzz'"
    party.query(
        "SELECT aliaszz / 14142 AS ratiozz, 'textzz' AS t FROM (SELECT MEDIAN(income) AS aliaszz, COUNT(*) FROM people "
        f"WHERE {condition} HAVING COUNT(*) > 16180 OR 'otherzz' LIKE 'likezz%' ORDER BY ABS(SUM(age) - 57721)) "
        "WHERE aliaszz <> 26457 OR TRUE LIMIT 17320 -- commentzz",
        1,
    )
    text = " ".join(seen)
    assert "WHERE" in text, "the condition does reach it, as grid points"
    for word in ("zz", "31415", "27182.8", "14142", "16180", "57721", "26457", "17320", "nor%", "LIMIT"):
        assert word not in text.replace(MARK, "")


def test_the_engine_is_shut_off_from_other_files(party: TrustedParty) -> None:
    connection = party.datasets["people"].backend._attached.cursors[1]  # type: ignore[attr-defined]
    with pytest.raises(duckdb.Error):
        connection.execute("SELECT * FROM read_csv('/etc/passwd')")
    with pytest.raises(duckdb.Error):
        connection.execute("SET enable_external_access = true")


SIZES = [
    *("0", "1", "-1", "0.5", "1e-300", "-1e-400", "1e-6", "1e9", "4611686018427", "4611686018428", "-4611686018427.4"),
    *(
        "4611686018427387904",
        "-4611686018427387904",
        "4611686018427387905",
        "9223372036854775807",
        "-9223372036854775808",
    ),
    *("1e18", "1e19", "1e30", "1e60", "-1e100", "1e308", "1e400", "-1e400", "1e9999", "0." + "3" * 200, "9" * 300),
]
"""Numbers around every limit, and far beyond."""

SIZED = [
    "SELECT VARIANCE({x}) FROM people WHERE {x} < {a}",
    "SELECT AVG({x}), SUM({x}) FROM people WHERE {x} BETWEEN {a} AND {b}",
    "SELECT MEDIAN({x}), MAX({x}), COUNT(*) FROM people WHERE {x} >= {a} OR {x} IN ({b}, 7)",
    "SELECT COUNT(DISTINCT {x}), KTH_LARGEST({x}, 2) FROM people WHERE NOT {x} BETWEEN {a} AND {b}",
    "SELECT STDDEV({x}) FROM people WHERE {x} > {a} AND {x} <> {b}",
    "SELECT COUNT(*), MEDIAN({x}) FROM people WHERE {x} BETWEEN {a} AND {b} GROUP BY BIN({x}, {c})",
    "SELECT QUANTILE({x}, {c}) FROM people",
    "SELECT KTH_SMALLEST({x}, {c}), TRIMMED_MEAN({x}, {c}) FROM people",
]


@pytest.mark.slow
@pytest.mark.parametrize("protection", ["individual", "differential"])
def test_what_is_planned_is_answered_whatever_numbers_it_names(protection: str) -> None:
    """Refused when it is planned, or answered: nothing is charged and then fails, and nothing else is raised."""
    columns = {
        "coarse": {"type": "integer"},
        "fine": {"type": "number"},
        "bounded": {"type": "integer", "bounds": [-(2**62), 2**62]},
    }
    rng = random.Random(6)
    values = {name: [rng.randint(-1000, 1000) for _ in range(60)] + [2**63 - 1, -(2**63)] for name in columns}
    table = pa.table(
        {"coarse": values["coarse"], "fine": [float(v) for v in values["fine"]], "bounded": values["bounded"]}
    )
    free = {"quantile": False, "k": False, "trim": False}
    outcomes: Counter[str] = Counter()
    with TrustedParty.open(
        table, name="people", columns=columns, budget=10**9, protection=protection, parameters=free
    ) as party:
        for _ in range(600):
            a, b, c = (rng.choice(SIZES if rng.random() < 0.4 else SIZES[:12]) for _ in range(3))
            sql = rng.choice(SIZED).format(x=rng.choice(list(columns)), a=a, b=b, c=c)
            try:
                party.quote(sql, 20)
            except IdiosError:
                outcomes["refused"] += 1
            else:
                party.query(sql, 20)
                outcomes["answered"] += 1
        for epsilon in ("1e400", "1e-400", "1e300", "1e-300", "0.05"):
            try:
                party.quote("SELECT MEDIAN(bounded), COUNT(*), VARIANCE(bounded) FROM people", epsilon)
            except IdiosError:
                outcomes["refused"] += 1
    assert outcomes["answered"] > 60
    assert outcomes["refused"] > 60


@pytest.mark.parametrize("condition", ["income < 1e400", "income BETWEEN 0 AND 1e60", "age > -1e19", "income = 1e300"])
def test_a_literal_beyond_the_grid_is_refused_before_anything_is_charged(party: TrustedParty, condition: str) -> None:
    with pytest.raises(QuestionRefused, match=r"up to 2\^62 of them|is no number"):
        party.query(f"SELECT MEDIAN(age) FROM people WHERE {condition}", 1)


@pytest.mark.parametrize("protection", ["individual", "differential"])
def test_what_lies_beyond_the_grid_is_answered_where_a_filter_selects_nothing_else(protection: str) -> None:
    table = pa.table({"x": [1, 2, 2**63 - 1, -(2**63)] * 30})
    columns = {"x": {"type": "integer"}}
    with TrustedParty.open(table, name="t", columns=columns, budget=100, protection=protection) as party:
        for condition, end in ((f"x > {2**62}", 2**62), (f"x < {-(2**62)}", -(2**62))):
            answer = party.query(f"SELECT COUNT(x), MEDIAN(x), AVG(x) FROM t WHERE {condition}", 30)
            assert answer.rows[0]["COUNT(x)"] in range(25, 36)
            assert answer.rows[0]["MEDIAN(x)"] in (end, None)
            assert answer.rows[0]["AVG(x)"] is None  # drawn limits that are one point tell no values apart
            assert any(note.startswith("AVG(x): NULL, as the drawn limits found too few") for note in answer.notes)


@pytest.mark.parametrize("epsilon", ["1e-400", "1e-300", "1e-30", "1e-13", "1e13", "1e300", "1e400"])
@pytest.mark.parametrize("protection", ["individual", "differential"])
def test_no_epsilon_makes_planning_fail(protection: str, epsilon: str) -> None:
    """A quote or a refusal in our own words, also where the number of records is public."""
    columns = {
        "x": {"type": "integer", "nullable": False},
        "b": {"type": "integer", "bounds": [0, 1000], "nullable": False},
        "g": {"type": "category", "values": ["m", "n"]},
    }
    table = pa.table({"x": list(range(500)), "b": list(range(500)), "g": ["m", "n"] * 250})
    calls = ["MEDIAN", "MAX", "AVG", "SUM", "VARIANCE", "STDDEV", "IQR"]
    listed = [f"{call}({column})" for call in calls for column in "xb"]
    listed += ["QUANTILE(x, 0.95)", "KTH_LARGEST(b, 20)", "TRIMMED_MEAN(x, 0.1)"]
    free = {"trim": False}
    with TrustedParty.open(
        table, name="t", columns=columns, budget=10**9, protection=protection, min_epsilon="1e-12", parameters=free
    ) as party:
        for call in [*listed, "TRIMMED_MEAN(x, 1e-40)"]:
            for rest in ("", " WHERE x > 3", " GROUP BY g"):
                with suppress(IdiosError):
                    party.quote(f"SELECT {call} FROM t{rest}", epsilon)
        uneven = "SELECT MEDIAN(x), KTH_LARGEST(x, 20) FROM t"
        with pytest.raises(IdiosError):
            party.quote(uneven, 1000, split=[1, "1e30"])

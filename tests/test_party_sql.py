"""Ten thousand questions, valid, broken and hostile: each is answered or refused; none reaches the engine as text."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from idios.backends.duckdb import DuckDbChannel
from idios.errors import IdiosError
from idios.party import TrustedParty

COUNT = 10_000
MARK = "zzmarkzz"
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
    f"region = '{MARK}x'",
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
    "SELECT MEDIAN(income) FROM people -- WHERE age > 3",
    "SELECT /*+ x */ MEDIAN(income) FROM people",
    "SELECT MEDIAN(income) FROM (SELECT * FROM people)",
    "WITH t AS (SELECT 1) SELECT COUNT(*) FROM t",
    "SELECT MEDIAN(CASE WHEN age > 3 THEN income END) FROM people",
    "SELECT MEDIAN(income) + 1 FROM people",
    "SELECT COUNT(*) FROM people HAVING COUNT(*) > 3",
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
    "SELECT MEDIAN(income) FROM people ORDER BY 1",
    "SELECT MEDIAN(income) FROM people WHERE region = 'x' OR 1=1",
    "SELECT MEDIAN(income) FROM people WHERE age > 1e999",
    "SELECT MEDIAN(income) FROM people WHERE random() < 0.5",
    "SELECT list(income) FROM people",
    "ＳＥＬＥＣＴ 1",
    "SELECT string_agg(region) FROM people",
    "SELECT MEDIAN(income) FROM people LIMIT 1",
    "SELECT DISTINCT age FROM people",
]


def question(rng: random.Random) -> str:
    """A question from the grammar, often with something wrong in it."""
    listed = rng.sample(STATISTICS, rng.randint(1, 3))
    group = rng.choice([None, None, "region", "BIN(age, 30)"])
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
    with TrustedParty.open(table, name="people", columns=COLUMNS, budget=10**9, min_epsilon="0.000001") as opened:
        yield opened


def test_ten_thousand_questions(party: TrustedParty, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(11)
    outcomes: Counter[str] = Counter()
    answered = 0
    for i in range(COUNT):
        kind = rng.random()
        sql = rng.choice(HOSTILE) if kind < 0.15 else question(rng)
        if 0.15 <= kind < 0.65 or (kind < 0.15 and rng.random() < 0.5):
            sql = mutated(sql, rng)
        try:
            # planning is all that a refusal needs; every tenth question that passes is also answered
            plan = party.plan(sql, 5)
            outcomes["planned"] += 1
            if outcomes["planned"] % 10 == 0:
                answer = party.query(sql, 5)
                answered += 1
                assert len(answer.rows) == len(plan.cells)
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
    seen: list[str] = []
    for name in ("run", "execute"):
        right = getattr(DuckDbChannel, name)

        def spy(self: DuckDbChannel, given: Any, right: Any = right) -> Any:
            seen.append(str(given))
            return right(self, given)

        monkeypatch.setattr(DuckDbChannel, name, spy)
    condition = "region = 'strangezz' OR age < 31415 AND income < 27182.8"
    party.query(f"SELECT MEDIAN(income) AS aliaszz, COUNT(*) FROM people WHERE {condition}", 1)
    text = " ".join(seen)
    assert "WHERE" in text, "the condition does reach it, as grid points"
    for word in ("aliaszz", "strangezz", "31415", "27182.8"):
        assert word not in text


def test_the_engine_is_shut_off_from_other_files(party: TrustedParty) -> None:
    connection = party.holdings["people"].backend._attached.cursors[1]  # type: ignore[attr-defined]
    with pytest.raises(duckdb.Error):
        connection.execute("SELECT * FROM read_csv('/etc/passwd')")
    with pytest.raises(duckdb.Error):
        connection.execute("SET enable_external_access = true")

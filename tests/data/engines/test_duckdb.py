"""DuckDB: what a question reads several times is computed once, and nothing is left of it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from idios import TrustedParty
from idios.data import brackets, summarise
from idios.data.cancellation import CancellationToken
from idios.data.engines import sql_backend
from idios.data.engines.duckdb import DuckDbBackend, DuckDbConnection
from idios.data.sql.selection import SelectStatement
from idios.errors import AnswerFailed

DATA = {"person": [i % 300 for i in range(1000)], "x": list(range(1000))}
OPTIONS: dict[str, Any] = {"name": "t", "protection": "differential", "budget": 100}
COLUMNS = {"x": {"type": "integer", "bounds": [0, None]}}


@pytest.fixture
def party() -> Iterator[TrustedParty]:
    with TrustedParty.open(DATA, unit="person", columns=COLUMNS, **OPTIONS) as opened:
        yield opened


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The text of all statements."""
    texts: list[str] = []
    run = DuckDbConnection.run

    def record(self: DuckDbConnection, statement: SelectStatement) -> Any:
        texts.append(statement.text)
        return run(self, statement)

    monkeypatch.setattr(DuckDbConnection, "run", record)
    return texts


def list_tables(party: TrustedParty) -> list[str]:
    """What any cursor holds of its own."""
    backend = party.datasets["t"].backend
    assert isinstance(backend, DuckDbBackend)
    with backend.connections.acquire(CancellationToken()) as connection:
        held = connection.cursor.execute("SELECT table_name FROM duckdb_tables() WHERE temporary").fetchall()
    return [name for (name,) in held]


def test_people_are_grouped_once_in_a_question(party: TrustedParty, run: list[str]) -> None:
    party.query("SELECT SUM(x), COUNT(*) FROM t WHERE x > 10", epsilon=1)
    assert len(run) == 3, "people, their number, and their values"
    assert len([text for text in run if 'GROUP BY "u0"' in text]) == 1
    assert list_tables(party) == []


def test_nothing_is_left_of_a_question_that_fails(
    party: TrustedParty, monkeypatch: pytest.MonkeyPatch, run: list[str]
) -> None:
    recorded = DuckDbConnection.run
    failing = {"yes"}

    def fail(self: DuckDbConnection, statement: SelectStatement) -> Any:
        if failing and "temp.held" in statement.text:
            assert list_tables(party) == [], "another cursor sees nothing of it"
            raise RuntimeError("the engine is out of order")
        return recorded(self, statement)

    monkeypatch.setattr(DuckDbConnection, "run", fail)
    with pytest.raises(AnswerFailed):
        party.query("SELECT SUM(x) FROM t", epsilon=1)
    failing.clear()
    assert list_tables(party) == []
    assert party.query("SELECT SUM(x) FROM t", epsilon=2).rows


def test_tables_without_people_are_read_where_they_are(run: list[str]) -> None:
    with TrustedParty.open(DATA, columns=COLUMNS, **OPTIONS) as party:
        party.query("SELECT MEDIAN(x) FROM t", epsilon=1)
    assert not [text for text in run if "TEMP TABLE" in text]


def test_samples_of_many_people_find_what_sorting_finds(monkeypatch: pytest.MonkeyPatch, run: list[str]) -> None:
    draw = random.Random(1)
    data = {
        "person": [draw.choice([None, *range(900)]) for _ in range(3000)],
        "x": [draw.choice([None, 7, draw.randrange(10_000)]) for _ in range(3000)],
        "g": [draw.choice("ab") for _ in range(3000)],
    }
    columns = COLUMNS | {"g": {"type": "category", "values": ["a", "b"]}}
    inner = "(SELECT SUM(x) AS x, MAX(g) AS g, COUNT(*) AS n FROM t WHERE x > 5 GROUP BY person)"
    statistics = ("MEDIAN(x)", "KTH_LARGEST(x, 20)", "SUM(x), AVG(n)", "QUANTILE(n, 0.2)")
    questions = [
        *(f"SELECT {statistic} FROM {inner}" for statistic in statistics),
        f"SELECT g, MEDIAN(x), COUNT(*) FROM {inner} WHERE n > 1 GROUP BY g",
        "SELECT MEDIAN(x) FROM t",
    ]
    with TrustedParty.open(data, unit="person", columns=columns, **OPTIONS) as party:
        plans = [party.make_plan(question, epsilon=1) for question in questions]
        backend = party.datasets["t"].backend
        sorted_ones = [backend.summarise(plan) for plan in plans]
        assert not [text for text in run if "quantile_disc" in text]
        limits = ((sql_backend, "SMALL", 10), (summarise, "SMALL", 10), (summarise, "FEW", 4))
        for module, name, small in (*limits, (sql_backend, "SAMPLED", 60), (brackets, "ENOUGH", 10)):
            monkeypatch.setattr(module, name, small)
        assert [backend.summarise(plan) for plan in plans] == sorted_ones
        assert len([text for text in run if "quantile_disc" in text]) >= 4

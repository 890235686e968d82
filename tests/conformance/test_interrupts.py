"""Every engine: a running statement is stopped, and no other caller's is."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

from idios.core.statistics import Count, DistinctCount, KthLargest, Mean, Median, Mode, TrimmedMean
from idios.data.cancellation import CancellationToken, Cancelled
from idios.data.connection_pool import AT_ONCE, Connection
from idios.data.engines.sql_backend import SqlBackend
from idios.data.sql.selection import SelectStatement
from idios.expressions.predicates import Among
from tests.conformance.engines import Engine
from tests.conformance.plans import by, category, dataset, number, plan, whole
from tests.waiting import until

SLOW = {
    "duckdb": "SELECT sum(i % 7) AS s FROM range(1000000000000) AS r(i)",
    "postgres": "SELECT count(*) AS s FROM pg_sleep(300)",
    "spark": "SELECT sum(id % 7) AS s FROM range(1000000000000)",
}
WAIT = 60.0
DATA = dataset(whole("n"))
TABLE = pa.table({"n": pa.array(range(1001), pa.int64())})
ASKED = plan(DATA, (Median(), "n"))


class Slowed:
    """Lets the questions with some cancellation tokens run a statement that would take minutes."""

    def __init__(self, backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        assert isinstance(backend, SqlBackend)
        self.slow_ones: set[CancellationToken] = set()
        self.running: set[CancellationToken] = set()
        with backend.connections.acquire(CancellationToken()) as connection:
            kind = type(connection)
        run, slowed = kind.run, self

        def slow(self: Connection, statement: SelectStatement) -> Any:
            if self.cancellation not in slowed.slow_ones:
                return run(self, statement)
            slowed.running.add(self.cancellation)
            return run(self, SelectStatement.of_integers(SLOW[self.dialect.name], "s"))

        monkeypatch.setattr(kind, "run", slow)

    def token(self) -> CancellationToken:
        made = CancellationToken()
        self.slow_ones.add(made)
        return made


def test_a_running_statement_is_stopped(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    with engine.open(TABLE, DATA) as backend, ThreadPoolExecutor(1) as pool:
        slowed = Slowed(backend, monkeypatch)
        right = backend.summarise(ASKED)
        for wait in (0.0, 1.5):  # before the engine has begun, and when it runs
            cancellation = slowed.token()
            running = pool.submit(backend.summarise, ASKED, cancellation)
            until(lambda cancellation=cancellation: cancellation in slowed.running)
            time.sleep(wait)  # no engine tells when it begins
            cancellation.cancel()
            with pytest.raises(Cancelled):
                running.result(WAIT)
            assert backend.summarise(ASKED) == right


def test_a_long_question_holds_up_nobody_and_its_end_hits_nobody(
    quick_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    with quick_engine.open(TABLE, DATA) as backend, ThreadPoolExecutor(AT_ONCE) as pool:
        slowed = Slowed(backend, monkeypatch)
        right = backend.summarise(ASKED)
        for _ in range(5):
            cancellation = slowed.token()
            running = pool.submit(backend.summarise, ASKED, cancellation)
            until(lambda cancellation=cancellation: cancellation in slowed.running)
            assert backend.summarise(ASKED) == right
            others = [pool.submit(backend.summarise, ASKED) for _ in range(10)]
            cancellation.cancel()
            assert all(other.result(WAIT) == right for other in others)
            with pytest.raises(Cancelled):
                running.result(WAIT)


def test_whoever_waits_for_a_place_can_be_stopped(quick_engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    with quick_engine.open(TABLE, DATA) as backend, ThreadPoolExecutor(AT_ONCE + 1) as pool:
        slowed = Slowed(backend, monkeypatch)
        taken = [slowed.token() for _ in range(AT_ONCE)]
        running = [pool.submit(backend.summarise, ASKED, cancellation) for cancellation in taken]
        until(lambda: slowed.running == set(taken))
        late = CancellationToken()
        waiting = pool.submit(backend.summarise, ASKED, late)
        until(lambda: late._action)
        assert not waiting.done()
        late.cancel()
        with pytest.raises(Cancelled):
            waiting.result(WAIT)
        assert not any(one.done() for one in running)
        for cancellation in taken:
            cancellation.cancel()
        for one in running:
            with pytest.raises(Cancelled):
                one.result(WAIT)
        assert backend.summarise(ASKED)


def test_different_questions_beside_each_other(quick_engine: Engine) -> None:
    """Each gets its own answer, however the threads take turns."""
    age, part = whole("age", (0, 99), nullable=False), category("part", "a", "b", "c")
    data = dataset(age, part, number("x", "0.25"))
    rows = 60_000  # large enough for samples and brackets
    table = pa.table(
        {
            "age": pa.array([i * 31 % 100 for i in range(rows)], pa.int64()),
            "part": ["abc"[i % 3] for i in range(rows)],
            "x": [i * 7919 % 60_013 / 4 for i in range(rows)],
        }
    )
    questions = [
        plan(data, (Median(), "x"), (Count(), None)),
        plan(data, (Median(), "age"), groups=[by(part)]),
        plan(data, (KthLargest(3), "x"), (Mean(), "age")),
        plan(data, (Mode(), "part")),
        plan(data, (TrimmedMean(Fraction(1, 20)), "x"), groups=[by(age, 25)]),
        plan(data, (DistinctCount(), "age"), where=Among("age", ((0, 49),))),
    ]
    with quick_engine.open(table, data) as backend, ThreadPoolExecutor(8) as pool:
        right = [backend.summarise(question) for question in questions]
        order = [i * 5 % 6 for i in range(36)]
        found = list(pool.map(lambda i: backend.summarise(questions[i]), order))
    assert all(one == right[i] for i, one in zip(order, found, strict=True))

"""Where the time of a question about a tiny table goes, stage by stage.

Each question is asked with an ε that was never used, so that none is stored. Time is that of all cores, which other
work on the machine hardly disturbs.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from itertools import count
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

from bench.figures import Figure, Settings
from idios.answer import release
from idios.data.engines.duckdb import DuckDbConnection
from idios.data.engines.sql_backend import SqlBackend
from idios.ledger import Ledger
from idios.party import TrustedParty

TITLE = "A question about a tiny table"
ABOUT = """\
The time of all cores that a question takes, as a whole and by stage, beside that of DuckDB's own answer, at
`differential` with the ledger in a file. Figures are medians of all rounds, and the spread is from the tenth to the
ninetieth percentile of them."""
RECORDS = 20_001
ROUNDS = 200
WARMING = 20
"""Rounds that are not counted: Python specialises what it runs, and the proof's pages fill."""

COLUMNS = {"age": {"type": "integer", "bounds": [0, 120], "nullable": False}}
QUESTIONS = {
    "MEDIAN within bounds": "SELECT MEDIAN(age) FROM people",
    "COUNT": "SELECT COUNT(*) FROM people WHERE age >= 40",
}
EXPECTED = {"MEDIAN within bounds": 8.0, "COUNT": 4.0}
"""Milliseconds."""

REST = "around all of it"
STAGES: tuple[tuple[str, object, str], ...] = (
    ("reading and planning", TrustedParty, "make_plan"),
    ("ledger: reserve", Ledger, "reserve"),
    ("DuckDB", DuckDbConnection, "run"),
    ("Python around DuckDB", SqlBackend, "_read_first"),
    ("calibrating and drawing", release, "calibrate_plan"),
    ("calibrating and drawing", release, "draw_cell"),
    ("ledger: release", Ledger, "release"),
    ("making the answer", TrustedParty, "_answer"),
)
"""A stage, and a function that belongs to it as far as no other stage runs inside."""


class Stopwatch:
    """Gives the time of all cores to the innermost stage that runs."""

    def __init__(self) -> None:
        self.spent: Counter[str] = Counter()
        self._inside = [REST]
        self._since = time.process_time()

    def switch(self) -> None:
        """Give the time since the last switch to the stage that ran."""
        now = time.process_time()
        self.spent[self._inside[-1]] += now - self._since
        self._since = now

    def measure(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Let the time of a function be that of a stage."""

        def measured(*arguments: Any, **options: Any) -> Any:
            self.switch()
            self._inside.append(stage)
            try:
                return function(*arguments, **options)
            finally:
                self.switch()
                self._inside.pop()

        return measured

    def take(self) -> Counter[str]:
        """What was spent since the last time."""
        self.switch()
        spent, self.spent = self.spent, Counter()
        return spent


@contextmanager
def measuring() -> Iterator[Stopwatch]:
    """A stopwatch that follows the stages of this process."""
    watch, kept = Stopwatch(), [(owner, name, getattr(owner, name)) for _, owner, name in STAGES]
    for (stage, owner, name), (_, _, function) in zip(STAGES, kept, strict=True):
        setattr(owner, name, watch.measure(stage, function))
    try:
        yield watch
    finally:
        for owner, name, function in kept:
            setattr(owner, name, function)


def measure_stages(rounds: int = ROUNDS) -> dict[str, dict[str, list[float]]]:
    """The milliseconds of each stage of each question, and of DuckDB's own answer, which is a stage called plain."""
    ages = np.random.default_rng(1).integers(0, 121, RECORDS)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "people.parquet"
        parquet.write_table(pa.table({"age": ages}), path)
        with (
            TrustedParty.open(
                path,
                columns=COLUMNS,
                budget=10**9,
                protection="differential",
                ledger=Path(folder) / "ledger.db",
            ) as party,
            duckdb.connect() as plain,
            measuring() as watch,
        ):
            plain.execute(f"CREATE TABLE people AS FROM '{path}'")
            return {name: _measure(party, plain, watch, sql, rounds) for name, sql in QUESTIONS.items()}


def _measure(
    party: TrustedParty, plain: duckdb.DuckDBPyConnection, watch: Stopwatch, sql: str, rounds: int
) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {stage: [] for stage in [stage for stage, _, _ in STAGES] + [REST, "all", "plain"]}
    for number in count():
        watch.take()
        party.query(sql, 1 + Fraction(number, 10**6))
        spent = watch.take()
        plain.execute(sql).fetchall()
        theirs = watch.take()[REST]
        if number < WARMING:
            continue
        if number == WARMING + rounds:
            break
        for stage in found:
            found[stage].append(1000 * spent[stage])
        found["all"][-1], found["plain"][-1] = 1000 * spent.total(), 1000 * theirs
    return found


def describe(settings: Settings) -> str:
    """How much is read."""
    return f"{RECORDS:,} records, {choose_rounds(settings)} rounds"


def choose_rounds(settings: Settings) -> int:
    return ROUNDS // 4 if settings.quick else ROUNDS


def measure(settings: Settings) -> Iterator[Figure]:
    """Every question as a whole, and its stages."""
    for question, stages in measure_stages(choose_rounds(settings)).items():
        whole, plain = stages.pop("all"), stages.pop("plain")
        beside = f"plain {median(plain):.2g} ms"
        for what, times in {
            question: whole,
            **{f"{question}: {stage}": each for stage, each in stages.items()},
        }.items():
            tenths, total = quantiles(times, n=10), what == question
            expected = EXPECTED[question] if total else None
            yield Figure(
                what, median(times), tenths[0], tenths[-1], expected, unit="ms", beside=beside if total else ""
            )

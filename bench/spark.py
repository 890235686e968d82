"""Spark: the private answer against Spark's own exact ``percentile``, on one machine and on a standalone cluster.

    python -m bench.spark [rows] [places]     10⁷ rows unless given, as Parquet files under .bench/

Places are ``local`` (two threads of this process), ``cluster`` (a master and two workers) and ``killed``: the same, of
which one worker is killed in the middle of the third private question, and is not replaced until the next pair.

Each pair is asked once to warm up and then in turns, five times each; the medians are compared. A private question has
an ε of its own each time, so that none is answered from the ledger.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from statistics import median
from threading import Timer
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from idios.datasets import declare, open_datasets
from idios.ledger import Ledger
from idios.party import TrustedParty

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.services.spark_cluster import StandaloneCluster

ROWS, FILES, ROUNDS = 10**7, 8, 5
GROUPS = 1000
COLUMNS = {
    "x": {"type": "number", "step": 0.01},
    "g": {"type": "integer", "bounds": [0, GROUPS - 1], "nullable": False},
}
QUESTIONS = {
    "MEDIAN": ("SELECT MEDIAN(x) FROM people", "SELECT percentile(x, 0.5) FROM {table}", 0.5),
    f"MEDIAN by {GROUPS} groups": (
        "SELECT BIN(g, 1), MEDIAN(x) FROM people GROUP BY BIN(g, 1)",
        "SELECT g, percentile(x, 0.5) FROM {table} GROUP BY g",
        1.0,
    ),
}
"""What is asked, of the party and of Spark, and the ratio that is expected."""


def write_rows(rows: int) -> Path:
    folder = Path(".bench") / f"spark-{rows}"
    if not folder.exists():
        rng = np.random.default_rng(18)
        folder.mkdir(parents=True)
        for i in range(FILES):
            number = rows // FILES
            table = pa.table({"x": rng.lognormal(10, 1, number).round(2), "g": rng.integers(0, GROUPS, number)})
            pq.write_table(table, folder / f"part-{i}.parquet")
    return folder.resolve()


def time_turns(
    ours: Callable[[], object], theirs: Callable[[], object], disturb: Callable[[], object] | None
) -> tuple[list[float], list[float]]:
    """Warm both up, and then time them in turns; half-way through the third of ours, something may happen."""
    times: tuple[list[float], list[float]] = ([], [])
    for turn in range(ROUNDS + 1):
        for i, action in enumerate((ours, theirs)):
            timer = Timer(times[0][-1] / 2, disturb) if disturb and turn == 3 and not i else None
            if timer:
                timer.start()
            began = time.perf_counter()
            action()
            if turn:
                times[i].append(time.perf_counter() - began)
            if timer:
                timer.join()
    return times


def measure(
    where: str, address: str, folder: Path, settings: dict[str, str], cluster: StandaloneCluster | None = None
) -> Iterator[str]:
    """Both questions at one address, as lines to print; with a cluster, one of its workers is killed in each."""
    from pyspark.sql import SparkSession

    table = {"source": f"{address}?path={folder}", "budget": 10**6, "columns": COLUMNS, "max_groups": GROUPS}
    config = replace(declare("people", table), session_settings=settings)
    ledger = Ledger.open("sqlite://")
    began = time.perf_counter()
    datasets = open_datasets([config], ledger, None, retired=True)
    yield f"{where}: opened in {time.perf_counter() - began:.1f} s"
    with TrustedParty(datasets, ledger) as party:
        session = SparkSession.builder.getOrCreate()
        session.read.parquet(str(folder)).createOrReplaceTempView("plain")
        for name, (question, plain, expected) in QUESTIONS.items():
            epsilons = count(100)
            kill = cluster.workers[-1].kill if cluster else None
            ours, theirs = time_turns(
                partial(_ask, party, question, epsilons), partial(_run, session, plain.format(table="plain")), kill
            )
            yield describe(f"{where}: {name}", ours, theirs, expected)
            if cluster:
                yield f"    that with the kill took {ours[2]:.2f} s, the one before {ours[1]:.2f} s"
                cluster.add_worker().wait_for("Successfully registered with master")


def _ask(party: TrustedParty, question: str, epsilons: Iterator[int]) -> None:
    party.query(question, next(epsilons))


def _run(session: SparkSession, statement: str) -> None:
    session.sql(statement).collect()


def describe(what: str, ours: Sequence[float], theirs: Sequence[float], expected: float) -> str:
    ratio = median(ours) / median(theirs)
    verdict = "as expected" if ratio <= expected else "NOT AS EXPECTED"
    spread = f"{min(ours):.2f}–{max(ours):.2f} against {min(theirs):.2f}–{max(theirs):.2f} s"
    return f"{what:<40} {ratio:6.2f} ×  ({spread}), expected at most {expected}: {verdict}"


def main(arguments: Sequence[str]) -> int:
    from tests.services.spark_cluster import StandaloneCluster

    rows = int(arguments[0]) if arguments else ROWS
    places = arguments[1:] or ("local", "cluster", "killed")
    folder = write_rows(rows)
    common = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    print(f"{rows:,} rows in {FILES} files, medians of {ROUNDS} turns after one to warm up")
    if "local" in places:
        for line in measure("local[2]", "spark:local[2]", folder, common | {"spark.driver.memory": "4g"}):
            print(line, flush=True)
    for place in ("cluster", "killed"):
        if place not in places:
            continue
        killed = place == "killed"
        cluster = StandaloneCluster(memory="4g")
        try:
            settings = common | {"spark.driver.memory": "2g", "spark.executor.memory": "4g"}
            where = "two workers, one killed" if killed else "two workers"
            for line in measure(where, cluster.url, folder, settings, cluster if killed else None):
                print(line, flush=True)
        finally:
            cluster.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Spark: the private answer beside Spark's own exact ``percentile``, on one machine and on a standalone cluster."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.figures import FOLDER, Figure, Settings, write_time
from bench.timing import compare, interleave
from idios.datasets import declare, open_datasets
from idios.ledger import Ledger
from idios.party import TrustedParty

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.services.spark_cluster import StandaloneCluster

TITLE = "Spark"
ABOUT = """\
Parquet files, both sides turn by turn in one session: in one process (`local[2]`), and on a standalone master with two
worker processes, once undisturbed and once with a worker killed in the middle of the third private question and not
replaced before the next row. Spark's `percentile` is exact, as is what Idios reads."""
FILES = 8
DISTURBED = 3
"""Which question meets the death of a worker; the first, which is number 0, warms up."""
NOT_KILLED = "no question met the death of a worker"
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
    folder = FOLDER / f"spark-{rows}"
    if not folder.exists():
        rng = np.random.default_rng(18)
        folder.mkdir(parents=True)
        for i in range(FILES):
            number = rows // FILES
            table = pa.table({"x": rng.lognormal(10, 1, number).round(2), "g": rng.integers(0, GROUPS, number)})
            pq.write_table(table, folder / f"part-{i}.parquet")
    return folder.resolve()


def describe(settings: Settings) -> str:
    """How much is read."""
    return f"{settings.choose_rows(10**7, 2 * 10**5):,} rows in {FILES} files, {settings.turns}"


def measure(settings: Settings) -> Iterator[Figure]:
    """Every question in one process and on a cluster of two workers."""
    from tests.services.spark_cluster import StandaloneCluster, java

    java()  # says what is missing
    folder = write_rows(settings.choose_rows(10**7, 2 * 10**5))
    common = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    if is_wanted("local[2]", settings):
        yield from ask_both("local[2]", "spark:local[2]", folder, common | {"spark.driver.memory": "4g"}, settings)
    if settings.quick:
        return
    memory = {"spark.driver.memory": "2g", "spark.executor.memory": "4g"}
    for where in filter(lambda where: is_wanted(where, settings), ("two workers", "two workers, one killed")):
        cluster = StandaloneCluster(memory="4g")
        try:
            killed = cluster if "killed" in where else None
            yield from ask_both(where, cluster.url, folder, common | memory, settings, killed)
        finally:
            cluster.close()


def is_wanted(where: str, settings: Settings) -> bool:
    """Whether any question is asked there."""
    return any(settings.wants(f"{name}, {where}") for name in QUESTIONS)


def ask_both(
    where: str,
    address: str,
    folder: Path,
    session_settings: dict[str, str],
    settings: Settings,
    cluster: StandaloneCluster | None = None,
) -> Iterator[Figure]:
    """Time each question both ways at one address; of a cluster that is given, kill a worker in each."""
    from pyspark.sql import SparkSession

    table = {"source": f"{address}?path={folder}", "budget": 10**6, "columns": COLUMNS, "max_groups": GROUPS}
    table["protection"] = "individual"
    config = replace(declare("people", table), session_settings=session_settings)
    ledger = Ledger.open("sqlite://")
    datasets = open_datasets([config], ledger, None, retired=True)
    with TrustedParty(datasets, ledger) as party:
        session = SparkSession.builder.getOrCreate()
        session.read.parquet(str(folder)).createOrReplaceTempView("plain")
        for name, (question, plain, expected) in QUESTIONS.items():
            if not settings.wants(what := f"{name}, {where}"):
                continue
            asking = Asking(party, question, cluster.workers[-1].kill if cluster else None)
            ours, theirs = interleave(
                settings.repetitions,
                asking.ask,
                partial(_run, session, plain.format(table="plain")),
                seconds=inf if cluster else 3 * settings.seconds_of_a_row,
            )
            figure = compare(what, ours, theirs, expected, wanted=settings.repetitions, cores=False)
            if cluster:
                figure = replace(
                    figure, **({"note": asking.told} if asking.told else {"value": None, "note": NOT_KILLED})
                )
                cluster.add_worker().wait_for("Successfully registered with master")
            yield figure


@dataclass
class Asking:
    """A private question, with an ε of its own each time; half-way through the third that counts, something happens."""

    party: TrustedParty
    question: str
    disturb: Callable[[], object] | None
    seconds: list[float] = field(default_factory=list)
    told: str = ""
    """How long the disturbed question took, if there was one."""

    def ask(self) -> None:
        """Ask once."""
        timer = None
        if self.disturb and len(self.seconds) == DISTURBED:
            timer = Timer(self.seconds[-1] / 2, self.disturb)
            timer.start()
        began = time.perf_counter()
        self.party.query(self.question, 100 + len(self.seconds))
        self.seconds.append(time.perf_counter() - began)
        if timer:
            # a question that ended before its time met no disturbance
            met = not timer.is_alive()
            timer.join()
            if met:
                self.told = f"that with the kill took {write_time(self.seconds[-1])}, the one before "
                self.told += write_time(self.seconds[-2])


def _run(session: SparkSession, statement: str) -> None:
    session.sql(statement).collect()

"""Spark: the private answer beside Spark's own exact ``percentile``, on one machine and on a standalone cluster."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.figures import FOLDER, Figure, Settings
from bench.timing import compare, interleave
from idios.datasets import declare, open_datasets
from idios.ledger import Ledger
from idios.party import TrustedParty

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TITLE = "Spark"
ABOUT = """\
Parquet files, both sides turn by turn in one session: in one process (`local[2]`), and on a standalone master with two
worker processes. Spark's `percentile` is exact, as is what Idios reads."""
FILES = 8
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
    yield from ask_both("local[2]", "spark:local[2]", folder, common | {"spark.driver.memory": "4g"}, settings)
    if settings.quick:
        return
    cluster = StandaloneCluster(memory="4g")
    try:
        memory = {"spark.driver.memory": "2g", "spark.executor.memory": "4g"}
        yield from ask_both("two workers", cluster.url, folder, common | memory, settings)
    finally:
        cluster.close()


def ask_both(
    where: str, address: str, folder: Path, session_settings: dict[str, str], settings: Settings
) -> Iterator[Figure]:
    """Time each question both ways at one address."""
    from pyspark.sql import SparkSession

    table = {"source": f"{address}?path={folder}", "budget": 10**6, "columns": COLUMNS, "max_groups": GROUPS}
    config = replace(declare("people", table), session_settings=session_settings)
    ledger = Ledger.open("sqlite://")
    datasets = open_datasets([config], ledger, None, retired=True)
    with TrustedParty(datasets, ledger) as party:
        session = SparkSession.builder.getOrCreate()
        session.read.parquet(str(folder)).createOrReplaceTempView("plain")
        for name, (question, plain, expected) in QUESTIONS.items():
            if not settings.wants(what := f"{name}, {where}"):
                continue
            ours, theirs = interleave(
                settings.repetitions,
                partial(_ask, party, question, count(100)),
                partial(_run, session, plain.format(table="plain")),
                seconds=3 * settings.seconds_of_a_row,
            )
            yield compare(what, ours, theirs, expected, wanted=settings.repetitions, cores=False)


def _ask(party: TrustedParty, question: str, epsilons: Iterator[int]) -> None:
    party.query(question, next(epsilons))


def _run(session: SparkSession, statement: str) -> None:
    session.sql(statement).collect()

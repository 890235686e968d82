"""What is read in Spark, and what is asked there, stays what it was: its files, and what a statement means."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from idios.data.backend import CancellationToken
from idios.errors import AnswerFailed, DataChanged, SourceError
from idios.party import TrustedParty
from tests.conformance.engines import SPARK, SparkEngine

COLUMNS = {"age": {"type": "integer", "bounds": [0, 120]}, "year": {"type": "integer", "bounds": [2000, 2100]}}


@pytest.fixture(params=[SPARK])
def folder(request: pytest.FixtureRequest, spark_engine: SparkEngine, tmp_path: Path) -> Path:
    """Two files, in a folder whose name says the year; the session of the other tests runs in local[2] too."""
    below = tmp_path / "people {a}" / "year=2024"
    below.mkdir(parents=True)
    for i in range(2):
        pq.write_table(pa.table({"age": list(range(i, 100, 2))}), below / f"part [{i}]*.parquet")
    return below


def open_party(folder: Path) -> TrustedParty:
    source = f"spark:local[2]?path={folder.parent}"
    return TrustedParty.open(source, name="people", columns=COLUMNS, budget=100, protection="individual")


def test_files_that_come_later_are_not_seen_and_changed_ones_are_noticed(folder: Path) -> None:
    from idios.data.engines.spark import SparkBackend  # without Spark this test is skipped

    with open_party(folder) as party:
        backend = party.datasets["people"].backend
        assert isinstance(backend, SparkBackend)
        assert party.datasets["people"].dataset.size == 100
        assert 0 <= party.query("SELECT MAX(age) FROM people WHERE year = 2024", 10).rows[0]["MAX(age)"] <= 120

        def add_a_file(step: str, share: float) -> None:
            pq.write_table(pa.table({"age": [1] * 500}), folder / "later.parquet")

        party.query("SELECT AVG(age), MIN(age) FROM people", 10, cancellation=CancellationToken(add_a_file))
        assert backend.rows() == 100

        def change_a_file(step: str, share: float) -> None:
            pq.write_table(pa.table({"age": [1] * 500}), folder / "part [0]*.parquet")

        with pytest.raises(AnswerFailed):
            party.query("SELECT MEDIAN(age) FROM people", 10, cancellation=CancellationToken(change_a_file))
        spent = party.ledger.balance("people").epsilon.spent
        with pytest.raises(DataChanged):
            party.query("SELECT MIN(age) FROM people", 10)
        assert party.ledger.balance("people").epsilon.spent == spent
        first = party.datasets["people"].dataset.version
    with open_party(folder) as party:
        assert party.datasets["people"].dataset.size == 1050
        assert party.datasets["people"].dataset.version != first
        (folder / "later.parquet").unlink()
        with pytest.raises(DataChanged):
            party.query("SELECT MIN(age) FROM people", 10)


def test_what_cannot_be_a_folder_of_parquet_is_refused(folder: Path, spark_engine: SparkEngine) -> None:
    (folder.parent / "empty").mkdir()
    (folder.parent / "text").mkdir()
    (folder.parent / "text" / "a.parquet").write_text("no Parquet")
    for wrong in ("nowhere", "empty", "text"):
        with pytest.raises(SourceError):
            open_party(folder.parent / wrong / "x" if wrong == "nowhere" else folder.parent / wrong / "below")
    assert spark_engine.session.sql("SELECT 1").collect()  # which a closed data set leaves running


HOSTILE = {
    "spark.sql.ansi.enabled": "false",
    "spark.sql.session.timeZone": "Pacific/Kiritimati",
    "spark.sql.parser.escapedStringLiterals": "true",
    "spark.sql.parser.quotedRegexColumnNames": "true",
    "spark.sql.groupByOrdinal": "false",
    "spark.sql.orderByOrdinal": "false",
    "spark.sql.caseSensitive": "true",
    "spark.sql.decimalOperations.allowPrecisionLoss": "false",
    "spark.sql.legacy.literal.pickMinimumPrecision": "false",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.variable.substitute": "false",
}
"""What a session's owner, or a server's configuration, can have set."""
WORDS = ["north", "back\\slash", "\\' OR TRUE --", "${x}", "it's"]


@pytest.mark.slow
@pytest.mark.parametrize("name", [SPARK])
def test_no_setting_of_a_session_changes_what_a_statement_means(name: str, spark_engine: SparkEngine) -> None:
    columns = {
        "n": {"type": "integer", "bounds": [0, 1000]},
        "d": {"type": "decimal", "step": "0.01"},
        "z": {"type": "timestamp"},
        "day": {"type": "date"},
        "word": {"type": "category", "values": WORDS},
    }
    table = pa.table(
        {
            "n": [i % 700 for i in range(500)],
            "d": [Decimal(i % 40) / 8 for i in range(500)],
            "z": [datetime(2020, 1, 1, tzinfo=UTC) + timedelta(hours=7 * (i % 50)) for i in range(500)],
            "day": [date(2020, 1, 1 + i % 9) for i in range(500)],
            "word": [WORDS[i % 5] for i in range(500)],
        }
    )
    place, kept = spark_engine.keep(table)  # type: ignore[misc]
    path = spark_engine.directory / f"{kept}.parquet"
    found = []
    for settings in ({}, HOSTILE):
        session = place.newSession()
        for setting, value in settings.items():
            session.conf.set(setting, value)
        session.read.parquet(str(path)).createOrReplaceTempView("held")
        with TrustedParty.open(
            (session, "held"), name="held", columns=columns, budget=10**9, protection="individual"
        ) as party:
            asked = [
                "SELECT word, COUNT(*), MEDIAN(n) FROM held GROUP BY word",
                "SELECT MEDIAN(d), MEDIAN(z), MEDIAN(day) FROM held WHERE n < 400 OR day > DATE '2020-01-03'",
                "SELECT COUNT(*) FROM held WHERE word = '\\'' OR TRUE --' AND n > 20",
            ]
            plans = [party.make_plan(sql, 1) for sql in asked]
            found.append([party.datasets["held"].backend.summarise(plan) for plan in plans])
            assert all(session.conf.get(setting) != value for setting, value in settings.items())
    assert found[0] == found[1]

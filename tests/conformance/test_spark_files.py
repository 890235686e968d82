"""A folder of Parquet files in Spark is read as it was when it was opened, by every round of every question."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from idios.backends.base import CancellationToken
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
    return TrustedParty.open(source, name="people", columns=COLUMNS, budget=100)


def test_files_that_come_later_are_not_seen_and_changed_ones_are_noticed(folder: Path) -> None:
    from idios.backends.spark import SparkBackend  # without Spark this test is skipped

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

"""All engines together fit the machine."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from idios.backends.base import open_source
from idios.backends.duckdb import DuckDbBackend
from idios.backends.memory import LEAST, divided, limit_memory, mebibytes
from idios.datasets import read_columns
from idios.party import TrustedParty
from idios.query.schema import Dataset

TABLE = pa.table({"age": [1, 2, 3]})
PEOPLE = Dataset("people", read_columns({"age": "integer"}))
TOML = "".join(
    f"""
[datasets.people{i}]
source = "people.csv"
shares_source = true
budget = 1
columns = {{ age = "integer" }}
"""
    for i in range(4)
)


def limit(backend: object) -> float:
    assert isinstance(backend, DuckDbBackend)
    return mebibytes(backend._attached.cursors[0])


@pytest.fixture
def whole() -> float:
    with duckdb.connect(":memory:") as connection:
        return mebibytes(connection)


def test_one_source_has_all_there_is(whole: float) -> None:
    backend = open_source(TABLE, PEOPLE)
    assert limit(backend) == whole
    backend.close()


def test_parts_of_parts(whole: float) -> None:
    with divided(2), divided(4):
        backend = open_source(TABLE, PEOPLE)
    assert limit(backend) == pytest.approx(whole / 8, rel=0.05)
    backend.close()


def test_no_part_is_too_small_to_work_with() -> None:
    with duckdb.connect(":memory:") as connection, divided(10**9):
        limit_memory(connection)
        assert mebibytes(connection) == pytest.approx(LEAST, rel=0.01)


def test_the_data_sets_of_a_party_share_the_memory(tmp_path: Path, whole: float) -> None:
    (tmp_path / "people.csv").write_text("age\n1\n2\n")
    (tmp_path / "idios.toml").write_text(TOML)
    with TrustedParty.from_config(tmp_path / "idios.toml") as party:
        limits = [limit(dataset.backend) for dataset in party.datasets.values()]
        assert len(limits) == 4
        assert sum(limits) <= whole * 1.01
        assert limit(party.twins.of(party.datasets["people0"].dataset)) <= max(LEAST, whole / 60)

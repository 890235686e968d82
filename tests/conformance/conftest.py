"""The engines as fixtures: an engine that is not on the machine is skipped and says so, unless everything must run."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from tests.conformance.engines import SPARK, DuckdbEngine, Engine, PostgresqlEngine, SparkEngine
from tests.services.spark import session


@pytest.fixture(scope="session")
def duckdb_engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    return DuckdbEngine(tmp_path_factory.mktemp("duckdb"))


@pytest.fixture(scope="session")
def postgresql_engine(postgresql_url: str) -> Iterator[Engine]:
    engine = PostgresqlEngine(postgresql_url)
    yield engine
    engine.close()


@pytest.fixture(scope="session")
def spark_engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    started = session()
    yield SparkEngine(started, tmp_path_factory.mktemp("spark"))
    started.stop()


@pytest.fixture(params=["duckdb", "postgresql", SPARK])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """Every engine in turn."""
    yield request.getfixturevalue(f"{request.param}_engine")
    if request.param == "spark":
        gc.collect()  # here, where its complaints are expected


@pytest.fixture(params=["duckdb", "postgresql"])
def quick_engine(request: pytest.FixtureRequest) -> Engine:
    """The engines that take no seconds for a query, for what is asked many times."""
    return request.getfixturevalue(f"{request.param}_engine")

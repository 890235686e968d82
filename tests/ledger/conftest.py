"""The ledger's tests run on both engines."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine, make_url, text

from idios.ledger import Ledger
from tests.ledger.ledger_place import Place, people

_numbers = itertools.count()


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """An empty place for a ledger."""
    if request.param == "sqlite":
        yield Place("sqlite", f"sqlite:///{tmp_path / 'ledger.db'}", tmp_path / "ledger.key")
    else:
        yield request.getfixturevalue("postgresql_place")


@pytest.fixture
def sqlite_place(tmp_path: Path) -> Place:
    """An empty place in an SQLite file."""
    return Place("sqlite", f"sqlite:///{tmp_path / 'ledger.db'}", tmp_path / "ledger.key")


@pytest.fixture(scope="session")
def postgresql_engine(postgresql_url: str) -> Iterator[Engine]:
    """The server as its superuser; one session serves all tests, as logging in is slow."""
    engine = create_engine(make_url(postgresql_url).set(drivername="postgresql+psycopg"))
    yield engine
    engine.dispose()


@pytest.fixture
def postgresql_place(postgresql_url: str, postgresql_engine: Engine, tmp_path: Path) -> Iterator[Place]:
    """An empty place on a PostgreSQL server."""
    # A schema of its own is an empty database to the ledger, and much cheaper than one.
    schema = f"ledger_{next(_numbers)}"
    with postgresql_engine.begin() as connection:
        connection.execute(text(f"CREATE SCHEMA {schema}"))
    yield Place("postgresql", f"{postgresql_url}?options=-csearch_path%3D{schema}", tmp_path / "ledger.key")
    with postgresql_engine.begin() as connection:
        connection.execute(text(f"DROP SCHEMA {schema} CASCADE"))


@pytest.fixture
def ledger(place: Place) -> Iterator[Ledger]:
    """A ledger with people (ε = 1) and the analysts ada (no cap), bob (ε ≤ 1/2) and eve (no grant)."""
    with place.open() as opened:
        opened.declare(people())
        for analyst in ("ada", "bob", "eve"):
            opened.add_analyst(analyst)
        opened.grant("ada", "people")
        opened.grant("bob", "people", epsilon=people("1/2").epsilon)
        yield opened

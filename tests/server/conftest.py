"""An office for every test that asks for one."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, make_url, text

from idios.server import auth
from tests.server.office import Office, open_office, write_office


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    opened = open_office(write_office(tmp_path))
    with opened.client:
        yield opened


@pytest.fixture(scope="module")
def untouched_office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    """One office for all tests of a module that change nothing in it, however often they fail to get in."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(auth, "FAILURES", 10**6)
        opened = open_office(write_office(tmp_path_factory.mktemp("office")))
    with opened.client:
        before = opened.ledger.head()
        yield opened
        assert opened.ledger.head() == before


@pytest.fixture
def ledger_base(postgresql_url: str) -> Iterator[str]:
    """An empty place for a ledger on a PostgreSQL server: a schema of its own."""
    engine = create_engine(make_url(postgresql_url).set(drivername="postgresql+psycopg"))
    schema = f"served_{secrets.token_hex(4)}"
    with engine.begin() as connection:
        connection.execute(text(f"CREATE SCHEMA {schema}"))
    yield f"{postgresql_url}?options=-csearch_path%3D{schema}"
    with engine.begin() as connection:
        connection.execute(text(f"DROP SCHEMA {schema} CASCADE"))
    engine.dispose()

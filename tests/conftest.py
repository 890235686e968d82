"""The services that tests ask for."""

import gc
import os
from collections.abc import Generator, Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.services import NotInstalled, choose_services
from tests.services.marking import needs_service
from tests.services.postgresql import PostgresqlServer

# A single example may take as long as a busy machine lets it; where time is the subject, the test measures it itself.
settings.register_profile("idios", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("idios")


def pytest_xdist_auto_num_workers() -> int:
    """One process more than there are cores: tests wait often, for a browser, a server, Java or a disk."""
    return len(os.sched_getaffinity(0)) + 1 if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1) + 1


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that need a service; ``make quick`` leaves them out."""
    for test in items:
        if needs_service(test):
            test.add_marker("service")


def pytest_collection_finish() -> None:
    """Leave modules and tests out of every later search for garbage, which else looks at 700,000 objects again."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None, object, object]:
    """Skip a test that misses a service; where everything must run, fail it."""
    try:
        return (yield)
    except NotInstalled as missing:
        if choose_services() == "all":
            pytest.fail(str(missing), pytrace=False)
        pytest.skip(str(missing))


pytest_runtest_call = pytest_runtest_setup


@pytest.fixture(scope="session")
def postgresql_url() -> Iterator[str]:
    """The address of a PostgreSQL server that lives as long as the tests do."""
    server = PostgresqlServer()
    yield server.url
    server.close()

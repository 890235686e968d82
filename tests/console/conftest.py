"""An office behind the console, and a browser in front of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.console.console_office import Office, open_office, write_office
from tests.console.running import Served, Watched, browser, served, window


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    opened = open_office(write_office(tmp_path_factory.mktemp("office")))
    with opened.client:
        yield opened


@pytest.fixture
def own_office(tmp_path: Path) -> Iterator[Office]:
    """An office that a test may turn upside down."""
    opened = open_office(write_office(tmp_path))
    with opened.client:
        yield opened


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("served")) as started:
        yield started


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser() as started:
        yield started


@pytest.fixture
def seen(chromium: Any, running: Served) -> Iterator[Watched]:
    with window(chromium, running) as opened:
        yield opened

"""An office behind the console."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from console_office import Office, open_office, write_office


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

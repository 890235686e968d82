"""docs/sql.md is what the code makes of it."""

from __future__ import annotations

import pytest

from tests.sql_reference import DOCUMENT, write_reference


@pytest.mark.slow
def test_the_reference_is_the_documents() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == write_reference(), "run python -m tests.sql_reference"

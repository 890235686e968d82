"""Answers made of what was released: how many records a check counts in."""

from __future__ import annotations

from typing import Any

import pytest

from idios.party import TrustedParty

COLUMNS: dict[str, Any] = {
    "x": {"type": "integer", "nullable": False},
    "y": {"type": "integer"},
}
TABLE = {"x": list(range(2000)), "y": [None if i % 2 else i for i in range(2000)]}


@pytest.mark.parametrize(
    ("sql", "size"),
    [
        ("SELECT MEDIAN(x) AS m FROM t", 2000),  # public
        ("SELECT MEDIAN(x) AS m FROM t WHERE x < 1500", None),  # secret
        ("SELECT MEDIAN(x) AS m, COUNT(*) AS n FROM t WHERE x < 1500", 1500),
        ("SELECT MEDIAN(y) AS m, COUNT(*) AS n FROM t WHERE x < 1500", None),  # counts other records
        ("SELECT MEDIAN(y) AS m, COUNT(y) AS n FROM t WHERE x < 1500", 750),
        ("SELECT MEDIAN(x) AS m, COUNT(y) AS n FROM t WHERE x < 1500", None),
    ],
)
def test_percentiles_are_of_what_was_counted(sql: str, size: int | None) -> None:
    with TrustedParty.open(TABLE, name="t", columns=COLUMNS, budget=100, check="0.2") as party:
        answer = party.query(sql, 50)
    found = answer.check_rows[0]["m"].size
    if size is None or found is None:
        assert found is size
    else:
        assert found == pytest.approx(size, abs=10)
    assert ("percentiles" in str(answer)) == (size is not None)

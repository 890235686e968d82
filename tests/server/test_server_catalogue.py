"""What can be asked of each column, whatever the column is called."""

from __future__ import annotations

import pytest

from idios.config import declare
from idios.party import TrustedParty
from idios.query.text import KEYWORDS
from idios.server.catalogue import described


@pytest.mark.parametrize("name", ["income", "odd name", "median", *sorted(word.lower() for word in KEYWORDS)])
def test_every_column_is_offered_the_same_functions(name: str) -> None:
    columns = {name: {"type": "integer", "bounds": [0, 9]}}
    declared = declare("people", {"source": "unused.parquet", "budget": 1, "columns": columns})
    with TrustedParty.open({name: [1, 2, 3]}, name="people", columns=columns, budget=1) as party:
        [column] = described(party, declared)["columns"]
    assert {function["name"] for function in column["functions"]} >= {"MEDIAN", "AVG", "COUNT(DISTINCT)"}

"""What can be asked of each column, whatever the column is called."""

from __future__ import annotations

from sqlglot.tokens import Tokenizer

from idios.config import declare
from idios.party import TrustedParty
from idios.query.functions import FUNCTIONS
from idios.query.text import RESERVED
from idios.server.catalogue import described


@pytest.mark.slow
def test_every_column_is_offered_the_same_functions() -> None:
    words = {word.lower() for word in [*RESERVED, *FUNCTIONS, *Tokenizer.KEYWORDS] if word.replace("_", "").isalpha()}
    names = ["income", "odd name", *sorted(words)]
    columns = {name: {"type": "integer", "bounds": [0, 9]} for name in names}
    declared = declare("people", {"source": "unused.parquet", "budget": 1, "columns": columns})
    with TrustedParty.open({name: [1, 2, 3] for name in names}, name="people", columns=columns, budget=1) as party:
        described_columns = described(party, declared)["columns"]
    assert len(described_columns) > 100
    for column in described_columns:
        assert {function["name"] for function in column["functions"]} >= {"MEDIAN", "AVG", "COUNT(DISTINCT)"}, column[
            "name"
        ]

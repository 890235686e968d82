"""What can be asked of each column, whatever the column is called."""

from __future__ import annotations

from typing import Any

import pytest
from sqlglot.tokens import Tokenizer

from idios.codec import from_json, to_json
from idios.datasets import declare
from idios.model import DatasetFacts
from idios.party import TrustedParty
from idios.server.catalogue import describe_dataset
from idios.server.console.formatting import describe_level
from idios.sql.lexer import RESERVED
from idios.sql.sql_functions import function_names


@pytest.mark.slow
def test_every_column_is_offered_the_same_functions() -> None:
    words = {
        word.lower() for word in [*RESERVED, *function_names(), *Tokenizer.KEYWORDS] if word.replace("_", "").isalpha()
    }
    names = ["income", "odd name", *sorted(words)]
    columns = {name: {"type": "integer", "bounds": [0, 9]} for name in names}
    declared = declare("people", {"source": "unused.parquet", "budget": 1, "columns": columns})
    with TrustedParty.open({name: [1, 2, 3] for name in names}, name="people", columns=columns, budget=1) as party:
        described_columns = describe_dataset(party, declared).columns
    assert len(described_columns) > 100
    for column in described_columns:
        assert {function.name for function in column.functions} >= {"MEDIAN", "AVG", "COUNT(DISTINCT)"}, column.name


@pytest.mark.parametrize(
    ("group", "listed", "words"),
    [
        (5, None, "groups of up to 5 records of the actual data. How"),
        ({"size": 5, "growth": "flat"}, ["1"] * 5, "5 records of the actual data, all of them together like one. How"),
        ([1, "1.5"], ["1", "1.5"], "2 records of the actual data, i of them with the i-th of 1, 1.5 × ε. How"),
    ],
)
def test_groups_are_told_with_their_multiples(group: Any, listed: list[str] | None, words: str) -> None:
    """To clients as numbers, in the console in words; what grows linearly is told as it always was."""
    columns = {"x": {"type": "integer", "bounds": [0, 9]}}
    table = {"budget": 1, "columns": columns, "protection": "group", "group": group}
    declared = declare("people", {"source": "unused.parquet", **table})
    with TrustedParty.open({"x": [1, 2, 3]}, name="people", **table) as party:
        facts = describe_dataset(party, declared)
    plain = to_json(facts)
    assert plain.get("multiples") == listed
    assert ("multiples" in plain) == (listed is not None)
    assert from_json(DatasetFacts, plain, "a data set") == facts
    assert words in describe_level(plain)
    assert f"{facts.group} records" in str(facts)


@pytest.mark.parametrize(("neighbours", "size"), [("replace", 3), ("add-remove", None)])
def test_the_number_of_records_is_told_where_it_is_public(neighbours: str, size: int | None) -> None:
    table = {"budget": 1, "columns": {"x": "integer"}, "neighbours": neighbours}
    declared = declare("people", {"source": "unused.parquet", **table})
    with TrustedParty.open({"x": [1, 2, 3]}, name="people", **table) as party:
        facts = describe_dataset(party, declared)
    plain = to_json(facts)
    assert plain.get("size") == size
    assert from_json(DatasetFacts, plain, "a data set") == facts
    assert ("records: 3\n" in str(facts)) == (size is not None)


def test_a_centre_is_told_with_the_bounds() -> None:
    columns = {
        "x": {"type": "number", "step": "0.5", "centre": 30},
        "y": {"type": "integer", "bounds": [0, 9], "centre": 4},
        "z": "integer",
    }
    table = {"budget": 1, "columns": columns}
    declared = declare("people", {"source": "unused.parquet", **table})
    with TrustedParty.open({name: [1, 2, 3] for name in columns}, name="people", **table) as party:
        facts = describe_dataset(party, declared)
    assert [column.centre for column in facts.columns] == ["30", "4", None]
    assert [column.domain for column in facts.columns] == ["no bounds, around 30", "0 to 9, around 4", "no bounds"]
    assert from_json(DatasetFacts, to_json(facts), "a data set") == facts

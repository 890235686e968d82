"""A released table is stored in one layout for ever, and refuses what does not fit together."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from idios.codec import from_json, to_json
from idios.errors import InvalidInput
from idios.model import ReleasedAnswer, ReleasedTable

TABLE = ReleasedTable(
    dataset="people",
    version="2026-11",
    guarantee="0.5-iDP …",
    statistics=("COUNT(*)", "MODE(region)"),
    groups=({"region": "north"}, {"region": "sööth"}),
    cells=(("12", "a"), (None, "b")),
    margins=(Fraction(7, 2), None),
)
STORED = (
    '{"dataset":"people","version":"2026-11","guarantee":"0.5-iDP …","statistics":["COUNT(*)","MODE(region)"],'
    '"groups":[{"region":"north"},{"region":"sööth"}],"cells":[["12","a"],[null,"b"]],"margins":["7/2",null]}'
)
"""As the ledgers of every version have it: signed, so that not a byte may change."""


def test_the_stored_layout_never_changes() -> None:
    assert TABLE.to_text() == STORED
    assert ReleasedTable.from_text(STORED) == TABLE


@pytest.mark.parametrize(
    "change",
    [
        {"cells": TABLE.cells[:1]},
        {"cells": (("12",), ("13",))},
        {"margins": (None,)},
        {"statistics": ("COUNT(*)",)},
    ],
)
def test_cells_that_do_not_fit_their_heads_are_refused(change: dict[str, tuple[object, ...]]) -> None:
    with pytest.raises(InvalidInput, match="must be a list of"):
        replace(TABLE, **change)  # type: ignore[arg-type]


def test_a_listed_answer_is_the_table_with_its_facts() -> None:
    listed = ReleasedAnswer(
        **vars(TABLE), sequence=7, id="ab", time="2026-11-15T08:00:00", epsilon=Fraction(1, 2), delta=Fraction(0)
    )
    plain = to_json(listed)
    assert {key: plain[key] for key in to_json(TABLE)} == to_json(TABLE)
    assert from_json(ReleasedAnswer, plain, "an answer") == listed
    assert str(listed).startswith("people, 2026-11-15T08:00:00, ε = 0.5\nregion  COUNT(*)  MODE(region)\n")

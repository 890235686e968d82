"""A released table is stored in one layout for ever, and refuses what does not fit together."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from idios.codec import from_json, to_json
from idios.errors import InvalidInput
from idios.model import ReleasedAnswer, ReleasedTable
from idios.model.released import TableColumns

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


LIMITS = (Fraction(-1200), Fraction(1, 3))
CLIPPED = replace(TABLE, clipped=((LIMITS, None), (None, None)))


def test_what_was_clipped_is_stored_behind_the_rest() -> None:
    stored = STORED[:-1] + ',"clipped":[[["-1200","1/3"],null],[null,null]]}'
    assert CLIPPED.to_text() == stored
    assert ReleasedTable.from_text(stored) == CLIPPED
    assert "clipped" not in TABLE.to_text()


def test_what_was_clipped_is_shown_beside_the_values() -> None:
    assert str(CLIPPED).splitlines() == [
        "people",
        "region  COUNT(*)  MODE(region)  COUNT(*) clipped to",
        "north   12        a             [−1,200, 0.333333]",
        "sööth   NULL      b",
        "An interval allows for what clipping usually takes away, and not for values that lie very far out.",
        "0.5-iDP …",
    ]
    assert CLIPPED._repr_html_().count("An interval allows for what clipping") == 1
    assert "[−1,200, 0.333333]" in CLIPPED._repr_html_()
    assert "clipped" not in str(replace(TABLE, clipped=((None, None), (None, None))))


def test_a_value_that_was_clipped_to_one_value_is_none() -> None:
    """As it was stored before such limits made NULL; the rest stays, and so does what is stored."""
    point = (Fraction(7), Fraction(7))
    old = replace(
        TABLE,
        cells=(("7", "a"), ("12", "b")),
        clipped=((point, None), (LIMITS, None)),
        intervals=((("7", "7"), None), (("9", "15"), None)),
    )
    shown = old.drop_collapsed()
    assert shown.cells == ((None, "a"), ("12", "b"))
    assert shown.intervals == ((None, None), (("9", "15"), None))
    assert (shown.clipped, CLIPPED.drop_collapsed()) == (old.clipped, CLIPPED)
    assert ReleasedTable.from_text(old.to_text()) == old


@pytest.mark.parametrize(
    ("clipped", "message"),
    [
        ((), None),
        (((LIMITS, None),), "clipped must be a list of 2"),
        (((LIMITS,), (None,)), "a row of clipped must be a list of 2"),
        (((LIMITS[::-1], None), (None, None)), "low ≤ high"),
    ],
)
def test_limits_that_do_not_fit_are_refused(clipped: Any, message: str | None) -> None:
    if message is None:
        assert replace(CLIPPED, clipped=clipped) == TABLE
    else:
        with pytest.raises(InvalidInput, match=message):
            replace(TABLE, clipped=clipped)


@pytest.mark.parametrize("hostile", ['"x"', '[["1","2"]]', "[[[1,2],null],[null,null]]", '[[["1"],null],[null,null]]'])
def test_limits_of_another_kind_are_refused(hostile: str) -> None:
    with pytest.raises(InvalidInput, match="clipped"):
        ReleasedTable.from_text(STORED[:-1] + f',"clipped":{hostile}}}')


def test_noisy_sums_are_stored_last_and_only_where_there_are_any() -> None:
    table = replace(TABLE, noisy_sums=((None, (-(10**30), 7)), (None, None)))
    stored = STORED[:-1] + f',"noisy_sums":[[null,[-{10**30},7]],[null,null]]}}'
    assert table.to_text() == stored
    assert ReleasedTable.from_text(stored) == table
    assert str(table) == str(TABLE)
    for hostile in (
        '"x"',
        "[[null,[1,2]]]",
        "[[null],[null]]",
        "[[null,[1.5]],[null,null]]",
        '[[null,["1"]],[null,null]]',
    ):
        with pytest.raises(InvalidInput, match="noisy_sums"):
            ReleasedTable.from_text(STORED[:-1] + f',"noisy_sums":{hostile}}}')


def test_a_table_by_column_is_that_of_its_rows() -> None:
    for keys, statistics in ((1, 1), (2, 1), (1, 2)):
        groups = {f'key "{i}" {{}}': ["nörth", 'so"uth', "east\\"] for i in range(keys)}
        cells: list[list[str | None]] = [["12", None, "1/3"] for _ in range(statistics)]
        names, margins = tuple(f"COUNT({i})" for i in range(statistics)), (None,) * statistics
        facts: dict[str, Any] = {"dataset": "people", "version": "1", "guarantee": "…", "statistics": names}
        rows = tuple(dict(zip(groups, row, strict=True)) for row in zip(*groups.values(), strict=True))
        early = ReleasedTable(**facts, groups=rows, cells=tuple(zip(*cells, strict=True)), margins=margins)
        columns = TableColumns(groups, cells)
        late = ReleasedTable(**facts, groups=(), cells=(), margins=margins, by_column=columns)
        assert late.to_text() == early.to_text()
        assert late == early == ReleasedTable.from_text(late.to_text())
        assert [late.list_values(i) for i in range(statistics)] == [early.list_values(i) for i in range(statistics)]
        assert to_json(late) == to_json(early)
    for wrong in (TableColumns(groups, cells[:1]), TableColumns({"key": ["north"]}, cells)):
        with pytest.raises(InvalidInput):
            ReleasedTable(**facts, groups=(), cells=(), margins=margins, by_column=wrong)

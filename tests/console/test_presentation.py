"""How entries and places are shown in words."""

from __future__ import annotations

import pytest

from idios.server.console.presentation import mark_error, present_entry


def test_entries_are_told_exactly_and_briefly() -> None:
    told = present_entry(
        {"question": "q" * 100, "epsilon": "1/3", "analyst": "ada", "expires": "2027-01-02T03:04:05.6Z"}
    )
    assert [(one.name, one.shown, one.folded) for one in told] == [
        ("epsilon", "≈\u202f0.3333", False),
        ("analyst", "ada", False),
        ("expires", "2027-01-02 03:04:05", False),
        ("question", "q" * 100, True),
    ]
    assert told[0].exact == "1/3"


@pytest.mark.parametrize(
    ("line", "column", "mark"),
    [(1, 1, ("", "ab", " c")), (2, 2, ("d", "(", "e")), (1, 99, ("ab c", " ", "")), (9, 1, None), (None, None, None)],
)
def test_places_are_marked(line: int | None, column: int | None, mark: tuple[str, str, str] | None) -> None:
    assert mark_error("ab c\nd(e", {"in": "sql", "name": None, "line": line, "column": column}) == mark

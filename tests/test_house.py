"""``bench.house`` measures what it says; how large the house may be is for people to judge."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

house = pytest.importorskip("bench.house", reason="a source distribution has no bench/")


def test_what_one_question_enters() -> None:
    files = house.files_entered_locally()
    assert {"party.py", "core/envelope.py", "core/sampling.py"} <= files
    assert not any(name.startswith(("server/", "cli/", "client/", "evaluation/")) for name in files)


def test_the_walk_through_the_files_names_every_one_and_is_about_as_long() -> None:
    root = Path(__file__).parent.parent
    walk = (root / "docs" / "how-it-works.md").read_text().partition("## One question, file by file")[2]
    told = {name: int(lines) for name, lines in re.findall(r"`([\w/]+\.py)`(?:\*\*)? (\d+)", walk)}
    assert house.files_entered_locally() <= set(told)
    for name, lines in told.items():
        counted = len((root / "src" / "idios" / name).read_text().splitlines())
        assert abs(counted - lines) <= max(15, counted // 5), f"{name} has {counted} lines by now"


def test_the_table_has_a_row_for_every_measure() -> None:
    measured = house.measure_house({"party.py"}, {"party.py", "server/app.py"})
    lines = house.format_table([*house.OTHERS, measured]).splitlines()
    assert len(lines) == 1 + len(house.ROWS)
    assert lines[0].split()[-2:] == ["Idios", "now"]
    assert (measured.entered, measured.entered_over_http) == (1, 2)
    assert measured.files > 100
    assert measured.root_layers

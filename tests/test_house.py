"""``bench.house``: the house stays below its ceilings, and its ceilings close to the house."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

house = pytest.importorskip("bench.house", reason="a source distribution has no bench/")


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    """In a process of its own: here other tests have asked before, and what they left is not made again."""
    command = [sys.executable, "-m", "bench.house", "--json"]
    ended = subprocess.run(command, cwd=house.ROOT, env=os.environ | {"PYTHONHASHSEED": "0"}, capture_output=True)
    assert ended.returncode == 0, ended.stderr.decode()
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


@pytest.fixture
def measured(found: dict[str, Any]) -> dict[str, float]:
    sizes: dict[str, float] = found["sizes"]
    return sizes


def test_nothing_is_above_its_ceiling(measured: dict[str, float]) -> None:
    assert not house.find_above(measured, house.read_ceilings())


def test_no_ceiling_is_far_above_what_is_measured(measured: dict[str, float]) -> None:
    assert not house.find_loose(measured, house.read_ceilings())


def test_every_size_has_a_ceiling_and_every_ceiling_a_size(measured: dict[str, float]) -> None:
    assert {*measured, "start.times_numpy"} == set(house.read_ceilings())


def test_the_start_is_below_its_ceiling() -> None:
    ceilings = house.read_ceilings()
    for _ in range(4):  # another process may take the processor's caches meanwhile
        if not (above := house.find_above(house.measure_start(), ceilings)):
            return
    pytest.fail(above[0])


def test_the_walk_is_the_one_that_is_measured(found: dict[str, Any]) -> None:
    assert house.PAGE.read_text(encoding="utf-8") == found["walk"], "run python -m bench.house --walk"


def test_a_question_enters_the_pipeline_and_no_front_end() -> None:
    files = set(house.record_locally("median").files)
    assert {"party.py", "pipeline.py", "core/sampling.py"} <= files
    assert not any(name.startswith(("server/", "cli/", "client/", "evaluation/")) for name in files)


SOURCE = '''"""What it is for."""

import re
from enum import (
    Enum,
)
from typing import TypeVar

T = TypeVar("T")
MOST = 3  # of all
"""Why so many."""
_LEAST: int = 1


class Row:
    """A row."""

    most = MOST


class _Cell: ...
'''


def test_sizes_of_a_source_are_as_counted_by_hand(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(SOURCE)
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "one.py").write_text("class Row: ...\n\n\nMOST, LEAST = 3, 1\nMOST: int\n_LEAST = 0\n")
    (tmp_path / "two" / "__init__.py").write_text("")
    modules = house.read_modules(tmp_path)
    assert house.list_repeated(modules) == {"classes": ["Row"], "constants": ["MOST"], "modules": ["one"]}
    assert house.measure_source(modules) == {
        "source.files": 3,
        "source.lines": 21 + 6,
        "source.imports_percent": round(100 * 5 / (11 + 4), 2),
        "names_twice.classes": 1,
        "names_twice.constants": 1,
        "names_twice.modules": 1,
    }


def test_a_ceiling_fails_on_both_sides(tmp_path: Path) -> None:
    ceilings = {"source.lines": 1000, "start.times_numpy": 9}
    assert house.find_above({"source.lines": 1007}, ceilings) == ["source.lines is 1,007, 7 above its ceiling of 1,000"]
    assert not house.find_above({"source.lines": 1000}, ceilings)
    assert not house.find_loose({"source.lines": 981}, ceilings)
    assert "lower its ceiling" in house.find_loose({"source.lines": 980}, ceilings)[0]
    assert not house.find_loose({"start.times_numpy": 1}, ceilings)
    path = tmp_path / "house.toml"
    path.write_text("# The most.\n")
    house.write_ceilings(ceilings, path)
    assert path.read_text().startswith("# The most.\n\n[source]\n")
    assert house.read_ceilings(path) == ceilings

"""The command line as a whole: its version, its help and its errors."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import idios
from idios.cli.main import COMMANDS
from idios.errors import (
    IdiosError,
    InvalidInput,
    QuestionRefused,
)
from tests.cli.runner import MEDIAN, run


def test_the_version_is_told() -> None:
    assert run("--version").stdout.strip() == version("idios")


def test_help_teaches() -> None:
    shown = run("--help").stdout
    for command, place in COMMANDS.items():
        assert f"{command} " in shown
        assert place.summary in shown
        own = run(command, "--help")
        assert own.exit_code == 0
        assert "--help" in own.stdout
    assert "Start with" in shown
    assert run("nonsense").exit_code == 2


@pytest.mark.parametrize("start", ["import idios", "import sys; sys.argv = ['idios', '--help']; import idios.__main__"])
def test_nothing_heavy_is_imported_before_it_is_needed(start: str) -> None:
    heavy = ("numpy", "scipy", "pyarrow", "pandas", "duckdb", "ibis", "sqlglot", "sqlalchemy", "httpx", "starlette")
    text = f"import atexit, sys; atexit.register(lambda: print('found', *(n for n in {heavy} if n in sys.modules)))"
    done = subprocess.run([sys.executable, "-c", f"{text}; {start}"], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "found"


def test_names_are_found_on_their_first_use() -> None:
    assert idios.TrustedParty.open
    assert set(dir(idios)) == set(idios.__all__)
    assert all(getattr(idios, name) is not None for name in idios.__all__)
    with pytest.raises(AttributeError, match="no attribute 'sum'"):
        _ = idios.sum


def test_errors_are_one_message_and_exit_code_1(folder: Path) -> None:
    with pytest.raises(QuestionRefused, match="questions cannot be combined"):
        run("query", "people.csv", "--yes", "SELECT MEDIAN(income) FROM people UNION x", "-e", "1", "--budget", "2")
    with pytest.raises(InvalidInput, match="--epsilon"):
        run("query", "people.csv", "--yes", MEDIAN)
    with pytest.raises(IdiosError, match=r"none\.csv"):
        run("query", "none.csv", "--yes", "SELECT MEDIAN(x) FROM none", "-e", "1", "--budget", "1")
    done = subprocess.run(
        [sys.executable, "-m", "idios", "query", "people.csv", "SELECT nonsense", "-e", "1"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "error:" in done.stderr
    assert "Traceback" not in done.stderr

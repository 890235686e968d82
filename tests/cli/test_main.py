"""The command line as a whole: its version, its help and its errors."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

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
    for command in ("query", "quote", "inspect", "plan", "init", "check", "analyst", "ledger", "demo"):
        assert command in shown
        assert run(command, "--help").exit_code == 0
    assert "Start with" in shown


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

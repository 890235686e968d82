"""The suite is collected whole on a machine without any service, and says of each test why it is skipped."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ABSENT = "pyspark,py4j,grpc,psycopg,playwright,opendp,chdb"
"""Packages that ``make test`` does not install, and drivers of services."""

RUN = """
import sys
from importlib.machinery import PathFinder
import pytest
absent, find = set(sys.argv.pop(1).split(",")), PathFinder.find_spec
PathFinder.find_spec = lambda name, *rest: None if name.partition(".")[0] in absent else find(name, *rest)
sys.exit(pytest.main([*sys.argv[1:], "-q", "-p", "no:cacheprovider", "-n", "0"]))
"""


def run(absent: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run pytest in a process that does not find some packages."""
    command = [sys.executable, "-c", RUN, absent, *arguments]
    inherited = {name: value for name, value in os.environ.items() if name not in ("CI", "SERVICES")}
    return subprocess.run(command, env=inherited | environment, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_nothing_that_is_missing_breaks_the_collection() -> None:
    """Neither packages nor programs: the tests that need them are collected, and skipped when they run."""
    collected = run(ABSENT, "tests", "--collect-only", PATH=str(ROOT / "nowhere"))
    assert collected.returncode == 0, collected.stdout[-4000:]
    found = {line.partition("::")[0] for line in collected.stdout.splitlines()}
    modules = {str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py")}
    # a source distribution has no bench/, and without it no tests of it
    assert {name for name in modules - found if 'importorskip("bench.' not in (ROOT / name).read_text()} == set()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("absent", "environment", "outcomes"),
    [
        ("psycopg", {}, {"skipped": "3"}),
        ("psycopg", {"SERVICES": "any", "CI": "true"}, {"skipped": "3"}),
        ("psycopg", {"CI": "true"}, {"failed": "1", "errors": "2"}),
        ("psycopg", {"SERVICES": "all"}, {"failed": "1", "errors": "2"}),
        ("pyspark", {"SERVICES": "none", "CI": "true"}, {"passed": "1", "skipped": "2"}),
    ],
)
def test_what_misses_a_service_is_skipped_unless_everything_must_run(
    absent: str, environment: dict[str, str], outcomes: dict[str, str]
) -> None:
    """One test needs the driver alone, and two need a server."""
    pytest.importorskip("psycopg", reason="without the driver nothing here passes")
    chosen = ["tests/ledger/test_faults.py", "-k", "a_server_that_is_not_there or a_server_that_refuses"]
    said = run(absent, *chosen, **environment).stdout
    found = re.findall(r"([0-9]+) (passed|skipped|failed|errors)", said.splitlines()[-1])
    assert {kind: number for number, kind in found} == outcomes, said
    assert "passed" in outcomes or "psycopg is not installed (" in said

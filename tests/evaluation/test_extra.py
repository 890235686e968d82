"""Nothing but Spark, the reproduction and a comparison's page needs pandas, polars, scipy or plotly."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

WITHOUT = """
from importlib.machinery import PathFinder
find = PathFinder.find_spec
absent = ("pandas", "polars", "scipy", "plotly")
PathFinder.find_spec = lambda name, *rest: None if name.partition(".")[0] in absent else find(name, *rest)
"""
"""What makes the interpreter believe that they are not installed."""


def python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", WITHOUT + code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def idios(*arguments: str) -> subprocess.CompletedProcess[str]:
    return python("from idios.cli import main; main()", *arguments)


@pytest.fixture
def incomes(tmp_path: Path) -> str:
    path = tmp_path / "people.csv"
    path.write_text("\n".join(["income", *(str(20_000 + 37 * i) for i in range(101))]) + "\n")
    return str(path)


def test_the_library_and_the_server_need_neither() -> None:
    code = (
        "import pkgutil, idios\n"
        "for found in pkgutil.walk_packages(idios.__path__, 'idios.'):\n"
        "    if not found.name.startswith(('idios.evaluation.', 'idios.__main__')):\n"
        "        try:\n"
        "            __import__(found.name)\n"
        "            print(found.name)\n"
        "        except ModuleNotFoundError as error:\n"
        "            if not found.name.startswith(('idios.data.engines.spark', 'idios.data.engines.postgresql')):\n"
        "                raise\n"
    )
    done = python(code)
    assert done.returncode == 0, done.stderr
    assert {"idios.evaluation", "idios.party", "idios.server.console.controller_pages"} <= set(done.stdout.split())


def test_the_demo_needs_neither() -> None:
    done = idios("demo")
    assert done.returncode == 0, done.stderr
    assert "MEDIAN(income)" in done.stdout


@pytest.mark.slow
def test_a_comparison_as_text_and_as_json_needs_neither(incomes: str) -> None:
    for options in ((), ("--json",)):
        done = idios("compare", incomes, "--column", "income", "--bounds", "0..100000", *options)
        assert done.returncode == 0, done.stderr
        assert "smooth" in done.stdout


def test_a_reproduction_says_what_to_install(tmp_path: Path) -> None:
    done = idios("reproduce", "--quick", "--out", str(tmp_path / "out"))
    assert done.returncode == 1
    assert "needs scipy and plotly" in done.stderr
    assert "pip install 'idios[evaluation]'" in " ".join(done.stderr.split())
    assert not (tmp_path / "out").exists()


def test_the_page_of_a_comparison_says_what_to_install(incomes: str, tmp_path: Path) -> None:
    done = idios("compare", incomes, "--column", "income", "--html", str(tmp_path / "page.html"))
    assert done.returncode == 1
    assert "pip install 'idios[evaluation]'" in " ".join(done.stderr.split())
    assert done.stdout == "", "what cannot be done is said before anything is computed"
    assert not (tmp_path / "page.html").exists()

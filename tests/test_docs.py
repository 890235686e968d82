"""The documentation is tested: its examples run, its links lead somewhere, nothing names a package registry."""

from __future__ import annotations

import doctest
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])


@pytest.mark.filterwarnings("ignore::idios.NoAnswer")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_run(page: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    examples = "\n".join(block for block in blocks if ">>>" in block)
    test = doctest.DocTestParser().get_doctest(examples, {}, page.name, str(page), 0)
    results = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test)
    assert results.failed == 0
    for block in blocks:
        if ">>>" not in block:
            compile(block, str(page), "exec")


COMMANDS = [page for page in PAGES if "```console" in page.read_text()]


@pytest.mark.slow
@pytest.mark.parametrize("page", COMMANDS, ids=lambda page: page.name)
def test_commands_run(page: Path, tmp_path: Path) -> None:
    """What follows a command is what it prints, in this order and among other things; `...` stands for anything.

    A block that begins with the name of a file in a comment is that file.
    """
    told = page.read_text()
    for content, name in re.findall(r"^```\w+\n((?:#|--) ([\w.]+)\n.*?)^```", told, flags=re.DOTALL | re.MULTILINE):
        (tmp_path / name).write_text(content)
    named = f'idios() {{ "{sys.executable}" -m idios "$@"; }}; python() {{ "{sys.executable}" "$@"; }}; '
    for block in re.findall(r"^```console\n(.*?)^```", told, flags=re.DOTALL | re.MULTILINE):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, expected = part.replace("\\\n", " ").partition("\n")
            ran = subprocess.run(named + command, shell=True, cwd=tmp_path, capture_output=True, text=True, check=False)
            shown = " ".join(re.sub(r"[│┃━┏┓┡┩└┘─]", " ", ran.stderr + ran.stdout).split())
            assert ran.returncode == 0, shown
            parts = [re.escape(" ".join(line.split())).replace(r"\.\.\.", ".*") for line in expected.splitlines()]
            assert re.search(".*".join(parts), shown), f"{command}\n{shown}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_the_readme_begins_with_the_promise_and_code_that_runs() -> None:
    text = (ROOT / "README.md").read_text()
    lines = [line for line in text.splitlines() if line.strip()]
    assert lines[0].startswith("# Idios")
    first_code = re.search(r"^```(\w+)\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    assert first_code is not None
    assert first_code[1] == "python"
    exec(compile(first_code[2], "README.md", "exec"), {})


def test_the_page_on_intervals_begins_with_what_is_not_in_them() -> None:
    page = " ".join((ROOT / "docs" / "promise.md").read_text().split())
    _, section = page.split("## How far off an answer is ", 1)
    assert section.startswith("Sampling error is in no margin, interval or check")
    table = (ROOT / "docs" / "client.md").read_text()
    assert "Sampling error is not in an interval" in table


def test_no_file_names_a_package_registry() -> None:
    """Requirements are pinned by name and version; where they come from is the reader's own setting."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
    hosts = re.compile(r"py" + r"pi\.org|pythonhosted|--(extra-)?index-url|--find-links|npmjs")
    for name in listed or ["pyproject.toml", "constraints.txt"]:
        path = ROOT / name
        if path.is_file() and path.name != Path(__file__).name:
            assert not hosts.search(path.read_text(errors="ignore")), name
    assert "://" not in (ROOT / "constraints.txt").read_text()

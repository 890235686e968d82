"""The documentation is tested: its examples run, its links lead somewhere, nothing names a package registry."""

from __future__ import annotations

import doctest
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])


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


def test_no_file_names_a_package_registry() -> None:
    """Requirements are pinned by name and version; where they come from is the reader's own setting."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
    hosts = re.compile(r"py" + r"pi\.org|pythonhosted|--(extra-)?index-url|--find-links|npmjs")
    for name in listed or ["pyproject.toml", "constraints.txt"]:
        path = ROOT / name
        if path.is_file() and path.name != Path(__file__).name:
            assert not hosts.search(path.read_text(errors="ignore")), name
    assert "://" not in (ROOT / "constraints.txt").read_text()

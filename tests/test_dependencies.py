"""A plain install has all that a question imports: what the tests bring besides is never needed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from importlib.metadata import packages_distributions, requires

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ASKED = """
import sys, tempfile
from pathlib import Path

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ABSENT:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

ABSENT = set(sys.argv[1:])
sys.meta_path.insert(0, Absent())
import idios
import idios.cli.main

with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "people.csv"
    file.write_text("sex,income\\n" + "".join(f"{i % 2},{i}\\n" for i in range(500)))
    columns = idios.schema(file)
    with idios.TrustedParty.open(file, columns=columns, budget=100, protection="differential") as party:
        party.query("SELECT MEDIAN(income), AVG(income) FROM people", epsilon=1).to_arrow()
        party.query("SELECT sex, SUM(income), COUNT(*) FROM people WHERE income > 5 GROUP BY sex", epsilon=1)
"""
"""A file is proposed, opened and asked about in a process of its own, where some modules are not to be had."""


def find_required(names: Iterable[str]) -> set[str]:
    """The packages that some packages require, directly or not, without extras that nobody named."""
    found: set[str] = set()
    pending = [(name, "") for name in names]
    visited = set()
    while pending:
        name, extra = pending.pop()
        if (name, extra) in visited:
            continue
        visited.add((name, extra))
        found.add(name)
        for written in requires(name) or ():
            needed = Requirement(written)
            if needed.marker is None or needed.marker.evaluate({"extra": extra}):
                pending += [(canonicalize_name(needed.name), each) for each in ("", *needed.extras)]
    return found


def test_a_question_needs_nothing_but_what_a_plain_install_has() -> None:
    present, homes = find_required(["idios"]), packages_distributions()
    absent = [name for name, packages in homes.items() if not present & set(map(canonicalize_name, packages))]
    assert {"pytest", "hypothesis"} <= set(absent)
    done = subprocess.run([sys.executable, "-c", ASKED, *absent], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

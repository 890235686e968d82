"""docs/benchmarks.md: the tables of all sections, written from docs/benchmarks.json, which keeps the last figures.

A section that was measured replaces its former figures and shows them beside the new ones. One that was not keeps what
it had, with its date; why it was not is said where something it needs is missing.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from bench.figures import TITLES, Figure

DOCS = Path(__file__).parents[1] / "docs"
STORED, WRITTEN = DOCS / "benchmarks.json", DOCS / "benchmarks.md"
PACKAGES = ("duckdb", "numpy", "pyarrow", "psycopg", "pyspark")
OPENING = """\
# Benchmarks

`make bench` measures these figures and writes this page; `make bench-quick` shows fewer of them in the terminal, from
less data, in about two minutes; `python -m bench --help` has the rest. Nothing here is a time by itself: a figure is a
ratio to something that was measured in turns with it, in one run on one machine, and the spread is that of the ratios
of single turns. A private answer is the whole of `party.query`, its charge in the ledger included, with an ε that was
never used before, so that none is a stored answer. "Last time" is the figure of the run before.
"""


@dataclass(frozen=True)
class Measured:
    """The figures of one section, and when and on what they were measured."""

    figures: tuple[Figure, ...] = ()
    date: str = ""
    conditions: str = ""
    missing: str = ""
    """Why the last run has none."""


def describe_machine() -> str:
    """Cores, and versions of what is measured."""
    found = [f"{os.cpu_count()} cores", f"Python {platform.python_version()}"]
    for package in PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return ", ".join(found)


def read_stored(path: Path = STORED) -> dict[str, Measured]:
    """The last figures by section; none, if they were never measured."""
    if not path.exists():
        return {}
    stored = json.loads(path.read_text(encoding="utf-8"))
    return {
        name: Measured(**{**section, "figures": tuple(Figure(**figure) for figure in section["figures"])})
        for name, section in stored.items()
    }


def write_stored(sections: Mapping[str, Measured], path: Path = STORED) -> None:
    """Keep the figures for the next run."""
    listed = {name: asdict(section) for name, section in sections.items()}
    path.write_text(json.dumps(listed, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def follow(new: Measured, former: Measured | None) -> Measured:
    """The new figures beside the former ones, or the former ones where the new run has none."""
    if former is None:
        return new
    if new.missing:
        return replace(former, missing=new.missing)
    known = {figure.what: figure for figure in former.figures}
    return replace(new, figures=tuple(figure.follow(known.get(figure.what)) for figure in new.figures))


def write_page(sections: Mapping[str, Measured], titles: Mapping[str, tuple[str, str]]) -> str:
    """The page, its sections in the order of their titles; each has a title and what it is about."""
    parts = [OPENING]
    for name, (title, about) in titles.items():
        section = sections.get(name, Measured(missing="never measured"))
        parts.append(f"## {title}\n\n{about}\n")
        if section.missing:
            parts.append(f"Not in the last run: {section.missing}.\n")
        if section.figures:
            parts.append(f"{section.date}: {section.conditions}.\n")
            parts.append(write_table(section.figures))
    return "\n".join(parts)


def write_table(figures: Sequence[Figure]) -> str:
    """A table in Markdown; columns that no figure fills are left out."""
    rows = [figure.cells for figure in figures]
    used = [i for i in range(len(TITLES)) if any(row[i] for row in rows)]
    lines = ["| " + " | ".join(TITLES[i] for i in used) + " |", "|" + "---|" * len(used)]
    lines += ["| " + " | ".join(row[i].replace("|", "\\|") for i in used) + " |" for row in rows]
    return "\n".join(lines) + "\n"

"""Measure all sections, or some: ``make bench`` and ``make bench-quick``.

    python -m bench [--quick] [--growth] [section …]

A whole run writes docs/benchmarks.md, section by section. What is quick, or has --rows, --repetitions or --only, goes
to the terminal alone.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import import_module

from bench.figures import Figure, Settings
from bench.report import WRITTEN, Measured, describe_machine, follow, read_stored, write_page, write_stored
from tests.services import NotInstalled

SECTIONS = ("plain", "peers", "growth", "arrays", "postgresql", "spark", "start", "stages", "server")
"""The modules of this package that measure something, in the order of the page."""
MISSING = (ImportError, NotInstalled)
"""What a section raises where something that it needs is not on this machine."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", metavar="section", help=f"some of {', '.join(SECTIONS)}")
    parser.add_argument("--quick", action="store_true", help="less data and fewer repetitions, in about two minutes")
    parser.add_argument("--growth", action="store_true", help="10⁸ rows in the section growth too")
    parser.add_argument("--rows", type=int, help="another number of rows")
    parser.add_argument("--repetitions", type=int, help="how many turns count at least: 5, or 2 if quick")
    parser.add_argument("--only", default="", help="words of the figures that are measured")
    parser.add_argument("--page", action="store_true", help="measure nothing, and write the page from stored figures")
    chosen = parser.parse_args(arguments)
    if chosen.page:
        WRITTEN.write_text(write_page(read_stored(), list_titles()), encoding="utf-8")
        return 0
    for name in chosen.sections:
        if name not in SECTIONS:
            parser.error(f"there is no section {name!r}: choose from {', '.join(SECTIONS)}")
    repetitions = chosen.repetitions or (2 if chosen.quick else 5)
    settings = Settings(chosen.quick, chosen.growth, chosen.rows, repetitions, chosen.only)
    to_page = not (chosen.quick or chosen.rows or chosen.repetitions or chosen.only)
    return run([name for name in SECTIONS if name in chosen.sections or not chosen.sections], settings, to_page)


def run(names: Sequence[str], settings: Settings, to_page: bool) -> int:
    """Measure sections one after the other, and write each down when it is done; 1 if one broke."""
    stored, began, figures, broken = read_stored(), time.perf_counter(), list[Figure](), 0
    for name in names:
        started = time.perf_counter()
        print(f"\n{name}", flush=True)
        try:
            measured = measure(name, settings)
        except MISSING as error:
            measured = Measured(missing=str(error))
            print(f"  left out: {error}", flush=True)
        except Exception as error:
            traceback.print_exc()
            measured, broken = Measured(missing=f"it broke with {type(error).__name__}"), 1
        figures += measured.figures
        print(f"  {time.perf_counter() - started:.0f} s", flush=True)
        if to_page:
            stored[name] = follow(measured, stored.get(name))
            write_stored(stored)
            WRITTEN.write_text(write_page(stored, list_titles()), encoding="utf-8")
    missed = sum(figure.kept is False for figure in figures)
    print(f"\n{len(figures)} figures in {time.perf_counter() - began:.0f} s, {missed} not as expected")
    return broken


def measure(name: str, settings: Settings) -> Measured:
    """The figures of a section, each printed as soon as it is known."""
    section, figures = import_module(f"bench.{name}"), []
    for figure in section.measure(settings):
        print(f"  {figure}", flush=True)
        figures.append(figure)
    conditions = f"{section.describe(settings)}; {describe_machine()}"
    return Measured(tuple(figures), datetime.now(UTC).date().isoformat(), conditions)


def list_titles() -> dict[str, tuple[str, str]]:
    """The title of each section, and what it is about."""
    modules = {name: import_module(f"bench.{name}") for name in SECTIONS}
    return {name: (module.TITLE, module.ABOUT) for name, module in modules.items()}


if __name__ == "__main__":
    sys.exit(main())

"""How long it takes to start: interpreters that import Idios, or print its help, beside one that imports numpy."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from functools import partial

from bench.figures import Figure, Settings
from bench.timing import compare, interleave

TITLE = "Start"
ABOUT = """\
New interpreters, each from its start to its end."""
NUMPY = "import numpy"
STARTED = {
    "`import idios`": ("import idios", 1.5),
    "`idios --help`": ("import sys; sys.argv = ['idios', '--help']; from idios.cli import main; main()", 2.5),
}


def describe(settings: Settings) -> str:
    """Nothing is read."""
    return f"compiled modules on disk, {settings.turns}"


def measure(settings: Settings) -> Iterator[Figure]:
    """Each start, in turns with that of numpy."""
    for what, (program, expected) in STARTED.items():
        if not settings.wants(what):
            continue
        ours, theirs = interleave(settings.repetitions, partial(start, program), partial(start, NUMPY))
        yield compare(what, ours, theirs, expected, beside="`import numpy`", cores=False)


def start(program: str) -> None:
    """Run a program in a new interpreter."""
    subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL)

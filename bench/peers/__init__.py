"""The same questions to other libraries, about the same Parquet file and in turns with ours.

Each peer has an environment of its own under .bench, since they need different versions of the same packages, and a
process that stays while it is asked; what does not install is said and left out.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import venv
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace
from fractions import Fraction
from functools import partial
from math import inf
from pathlib import Path
from statistics import median
from typing import Any

from bench.figures import FOLDER, Figure, Settings, write_time
from bench.plain import COLUMNS, generate, make_asking, open_party
from bench.timing import compare, interleave

TITLE = "Peers"
ABOUT = """\
The same questions at ε = 1, ours at `differential`; each side is told that values lie between 0 and 10⁶ and which 20
groups there are, and reads the file anew. The ratio is that to the fastest peer; the others were asked once or twice,
unless they were nearly as fast. A peer is waited for 20 s, and one that took longer than 3 s for 10⁶ rows is not asked
about 10⁷. OpenDP is asked in both of its ways: about vectors, whose length it is told, and about Polars' frames.

Medians are meant to take a fifth of the fastest peer's time. Of 10⁷ rows they do, of 10⁶ they do not beside OpenDP's
vectors: these choose among 1,001 given values, 1,000 apart, where we find any value of the grid. Looked at by itself
(cores' time of 10⁶ rows on a busy machine, so roughly), OpenDP took 56 ms beside reading the file, three to nine times
that with 100,001 given values, and our whole question 63 ms. Sums and means of floats may take longer than
diffprivlib's, which adds floats: ours are exact on a grid. In DuckDB alone such a sum took 29 ms where the plain one
took 11, our whole question 29; what a question costs whatever it reads is not the reason (a count took 3 ms)."""
PEERS = {
    "diffprivlib": ["diffprivlib", "scikit-learn<1.6", "pyarrow"],
    "opendp_vectors": ["opendp[polars]"],
    "opendp": ["opendp[polars]"],
    "smartnoise": ["smartnoise-sql", "pyarrow"],
    "tumult": ["tmlt.analytics"],
}
QUICK = ("diffprivlib", "opendp_vectors")
NAMES = {
    "diffprivlib": "diffprivlib",
    "opendp_vectors": "OpenDP, vectors",
    "opendp": "OpenDP, Polars",
    "smartnoise": "SmartNoise",
    "tumult": "Tumult",
}
QUESTIONS = {
    "COUNT": ("SELECT COUNT(*) FROM t", 1.0),
    "SUM": ("SELECT SUM(bx) FROM t", 1.0),
    "AVG": ("SELECT AVG(bx) FROM t", 1.0),
    "MEDIAN": ("SELECT MEDIAN(bx) FROM t", 0.2),
    "QUANTILE": ("SELECT QUANTILE(bx, 0.9) FROM t", 0.2),
    "COUNT by 20 groups": ("SELECT g20, COUNT(*) FROM t GROUP BY g20", 1.0),
}
"""How we are asked, and how many times the fastest peer's time we may take."""
PATIENCE = 20.0
"""Seconds after which an answer is not waited for."""
LONGEST = 3.0
"""Seconds after which a peer is not asked about more rows."""
INSTALLED = "installed"
"""A file in an environment that is whole."""
NEARLY = 3.0
"""How many times the fastest peer's time another may take to be asked again."""


class Peer:
    """A process in a peer's environment that answers one question after the other; it is started when it is needed."""

    def __init__(self, name: str, python: Path, path: Path, rows: int) -> None:
        self._command = [str(python), str(Path(__file__).parent / "ask.py"), name, str(path), str(rows)]
        self._process: subprocess.Popen[str] | None = None

    def ask(self, question: str) -> float:
        """How many seconds the answer took; infinitely many, if it took too long."""
        process = self._start()
        assert process.stdin is not None
        process.stdin.write(f"{question}\n")
        process.stdin.flush()
        stop = threading.Timer(PATIENCE, kill, [process])
        stop.start()
        try:
            found = self._read(process)
        except PeerError:
            self.close()
            return inf
        finally:
            stop.cancel()
        if "error" in found:
            raise PeerError(found["error"])
        return float(found["seconds"])

    def _start(self) -> subprocess.Popen[str]:
        if self._process is None:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                start_new_session=True,
            )
            self._read(self._process)  # it is ready
        return self._process

    @staticmethod
    def _read(process: subprocess.Popen[str]) -> Any:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise PeerError("its process ended")
        return json.loads(line)

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            kill(self._process)
            self._process.communicate()
            self._process = None


def kill(process: subprocess.Popen[str]) -> None:
    """End a process and all that it started, such as Spark."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


class PeerError(Exception):
    """A peer has no answer."""


def describe(settings: Settings) -> str:
    """How much is read."""
    return " and ".join(f"{rows:,}" for rows in choose_sizes(settings)) + f" rows, {settings.turns}"


def choose_sizes(settings: Settings) -> tuple[int, ...]:
    if settings.rows:
        return (settings.rows,)
    return (10**6,) if settings.quick else (10**6, 10**7)


def measure(settings: Settings) -> Iterator[Figure]:
    """Every question at every size."""
    pythons = {name: install(name, PEERS[name]) for name in (QUICK if settings.quick else PEERS)}
    slow: set[tuple[str, str]] = set()
    for rows in choose_sizes(settings):
        path = generate(rows)
        columns = {name: COLUMNS[name] for name in ("bx", "bn", "g20")}
        peers = {name: Peer(name, python, path, rows) for name, python in pythons.items() if python is not None}
        with ExitStack() as opened, open_party(path, columns, "differential") as party:
            for peer in peers.values():
                opened.callback(peer.close)
            ask = make_asking(party, Fraction(1))
            absent = [NAMES[name] for name, python in pythons.items() if python is None]
            for question, (sql, expected) in QUESTIONS.items():
                what = f"{question}, {rows:,} rows"
                if not settings.wants(what):
                    continue
                asked = {name: peer for name, peer in peers.items() if (name, question) not in slow}
                once = ask_once(asked, question)
                slow |= {(name, question) for name, seconds in once.items() if seconds > LONGEST}
                figure = race(what, partial(ask, sql), asked, once, question, expected, settings)
                yield replace(figure, note=f"{figure.note}; not here: {', '.join(absent)}") if absent else figure


def ask_once(peers: Mapping[str, Peer], question: str) -> dict[str, float]:
    """The seconds of each peer that has an answer, of the second time where the first took little."""
    found = {}
    for name, peer in peers.items():
        with suppress(PeerError):
            found[name] = peer.ask(question)
            if found[name] <= LONGEST:
                found[name] = peer.ask(question)
    return found


def race(
    what: str,
    ours: Callable[[], object],
    peers: Mapping[str, Peer],
    once: Mapping[str, float],
    question: str,
    expected: float,
    settings: Settings,
) -> Figure:
    """Our time and that of the fastest peers, in turns; the time of the others is the one that is known."""
    if min(once.values(), default=inf) == inf:
        return Figure(what, None, expected=expected, note="no peer answers it")
    near = [name for name, seconds in once.items() if seconds <= NEARLY * min(once.values())]
    mine, *theirs = interleave(
        settings.repetitions,
        ours,
        *(partial(peers[name].ask, question) for name in near),
        seconds=settings.seconds_of_a_row,
    )
    times = {name: median(turn.clock for turn in turns) for name, turns in zip(near, theirs, strict=True)}
    fastest = min(times, key=times.__getitem__)
    figure = compare(what, mine, theirs[near.index(fastest)], expected, beside=NAMES[fastest], cores=False)
    others = {**once, **times}
    told = [f"{NAMES[name]} {tell(seconds)}" for name, seconds in others.items() if name != fastest]
    return replace(figure, note=", ".join(told))


def tell(seconds: float) -> str:
    return f"more than {PATIENCE:g} s" if seconds == inf else write_time(seconds)


def install(name: str, needs: list[str]) -> Path | None:
    """The Python of a peer's environment, which is made once; None if it does not install."""
    folder = FOLDER / name.removesuffix("_vectors")
    python = folder / "bin" / "python"
    if not (folder / INSTALLED).exists():
        print(f"  installing {NAMES.get(name, name)} ...", flush=True)
        venv.create(folder, with_pip=True)
        done = subprocess.run([python, "-m", "pip", "install", "--quiet", *needs], capture_output=True, check=False)
        if done.returncode:
            return None
        (folder / INSTALLED).touch()
    return python

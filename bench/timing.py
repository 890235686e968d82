"""Time two ways of doing the same thing, turn by turn, and compare them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Row:
    """One line of the report."""

    what: str
    ours: float
    theirs: float
    peer: str
    expected: str
    ok: bool

    def __str__(self) -> str:
        ratio = f"{self.ours / self.theirs:8.3f} ×"
        verdict = "as expected" if self.ok else "NOT AS EXPECTED"
        times = f"{self.ours * 1e3:10.1f} ms {self.theirs * 1e3:10.1f} ms"
        return f"{self.what:<58} {times} {ratio} {self.peer:<24} expected {self.expected}: {verdict}"


@dataclass(frozen=True)
class Turn:
    """How long one turn took, in seconds: by the clock, and of all cores together."""

    clock: float
    cores: float


@dataclass(frozen=True)
class Ratio:
    """The turns of two ways of doing the same thing, one after the other."""

    what: str
    ours: list[Turn]
    theirs: list[Turn]
    expected: float
    """How many times the other's time ours may take."""

    @property
    def ratio(self) -> float:
        """That of the median times by the clock."""
        return median(turn.clock for turn in self.ours) / median(turn.clock for turn in self.theirs)

    @property
    def ratio_of_cores(self) -> float:
        """That of the median times of all cores, which says more where others use them too."""
        return median(turn.cores for turn in self.ours) / median(turn.cores for turn in self.theirs)

    @property
    def ok(self) -> bool:
        """Whether it is as expected."""
        return self.ratio <= self.expected

    def __str__(self) -> str:
        turns = sorted(ours.clock / theirs.clock for ours, theirs in zip(self.ours, self.theirs, strict=True))
        cells = [
            self.what,
            *(f"{median(turn.clock for turn in way) * 1e3:.1f} ms" for way in (self.ours, self.theirs)),
            f"{self.ratio:.2f}",
            f"{turns[0]:.2f} to {turns[-1]:.2f}",
            f"{self.ratio_of_cores:.2f}",
            f"{self.expected:g}",
            "yes" if self.ok else "no",
        ]
        return f"| {' | '.join(cells)} |"


RATIO_TITLES = ("what", "ours", "plain", "ratio", "spread", "ratio of cores' time", "expected", "kept")


def write_ratios(ratios: Iterable[Ratio], write: Callable[[str], object] = print) -> int:
    """Write a table in Markdown, line by line as it is measured; how many are not as expected."""
    write(f"| {' | '.join(RATIO_TITLES)} |\n|{'---|' * len(RATIO_TITLES)}")
    missed = 0
    for ratio in ratios:
        write(str(ratio))
        missed += not ratio.ok
    return missed


def interleave(rounds: int, *actions: Callable[[], object]) -> list[list[Turn]]:
    """The times of each action, taken in turns so that noise hits all alike, after one turn that is not counted."""
    turns: list[list[Turn]] = [[] for _ in actions]
    for number in range(rounds + 1):
        for i, action in enumerate(actions):
            clock, cores = time.perf_counter(), time.process_time()
            action()
            if number:
                turns[i].append(Turn(time.perf_counter() - clock, time.process_time() - cores))
    return turns


def best_of(rounds: int, *actions: Callable[[], object]) -> list[float]:
    """The least time of each action over some rounds, taken in turns so that noise hits all alike."""
    return [min(turn.clock for turn in turns) for turns in interleave(rounds, *actions)]

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
class Ratio:
    """The times of two ways of doing the same thing, taken in turns, in seconds."""

    what: str
    ours: list[float]
    theirs: list[float]
    expected: float
    """How many times the other's time ours may take."""

    @property
    def ratio(self) -> float:
        """That of the medians."""
        return median(self.ours) / median(self.theirs)

    @property
    def ok(self) -> bool:
        """Whether it is as expected."""
        return self.ratio <= self.expected

    def __str__(self) -> str:
        turns = sorted(ours / theirs for ours, theirs in zip(self.ours, self.theirs, strict=True))
        times = f"{median(self.ours) * 1e3:.1f} ms | {median(self.theirs) * 1e3:.1f} ms"
        spread = f"{turns[0]:.2f} to {turns[-1]:.2f}"
        return (
            f"| {self.what} | {times} | {self.ratio:.2f} | {spread} | {self.expected:g} | {'' if self.ok else 'no'} |"
        )


RATIO_TITLES = ("what", "ours", "plain", "ratio", "spread", "expected", "kept")


def write_ratios(ratios: Iterable[Ratio], write: Callable[[str], object] = print) -> int:
    """Write a table in Markdown, line by line as it is measured; how many are not as expected."""
    write(f"| {' | '.join(RATIO_TITLES)} |\n|{'---|' * len(RATIO_TITLES)}")
    missed = 0
    for ratio in ratios:
        write(str(ratio))
        missed += not ratio.ok
    return missed


def interleave(rounds: int, *actions: Callable[[], object]) -> list[list[float]]:
    """The times of each action, taken in turns so that noise hits all alike, after one turn that is not counted."""
    times: list[list[float]] = [[] for _ in actions]
    for turn in range(rounds + 1):
        for i, action in enumerate(actions):
            start = time.perf_counter()
            action()
            if turn:
                times[i].append(time.perf_counter() - start)
    return times


def best_of(rounds: int, *actions: Callable[[], object]) -> list[float]:
    """The least time of each action over some rounds, taken in turns so that noise hits all alike."""
    return [min(times) for times in interleave(rounds, *actions)]

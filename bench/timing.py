"""Time two ways of doing the same thing, turn by turn, and compare the best of each."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


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


def best_of(rounds: int, *actions: Callable[[], object]) -> list[float]:
    """The least time of each action over some rounds, taken in turns so that noise hits all alike."""
    best = [float("inf")] * len(actions)
    for _ in range(rounds):
        for i, action in enumerate(actions):
            start = time.perf_counter()
            action()
            best[i] = min(best[i], time.perf_counter() - start)
    return best

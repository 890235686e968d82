"""Time several ways of doing the same thing, turn by turn, and compare them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from bench.figures import Figure, write_time

LEAST_SECONDS = 2.0


@dataclass(frozen=True)
class Turn:
    """How long one turn took, in seconds: by the clock, and of all cores together."""

    clock: float
    cores: float


def interleave(rounds: int, *actions: Callable[[], object], seconds: float = float("inf")) -> list[list[Turn]]:
    """The times of each action, taken in turns so that noise hits all alike, after one turn that is not counted.

    What is quick has up to three times as many turns, as long as they fit in two seconds. After so many ``seconds`` no
    further turn begins; the first one counts if it is the only one then.
    """
    turns: list[list[Turn]] = [[] for _ in actions]
    began = time.perf_counter()
    for number in range(3 * rounds + 1):
        passed = time.perf_counter() - began
        if number and (passed > seconds or (number > rounds and passed > LEAST_SECONDS)):
            break
        for i, action in enumerate(actions):
            clock, cores = time.perf_counter(), time.process_time()
            action()
            turns[i].append(Turn(time.perf_counter() - clock, time.process_time() - cores))
    return [each[1:] or each for each in turns]


def compare(
    what: str,
    ours: Sequence[Turn],
    theirs: Sequence[Turn],
    expected: float | None,
    *,
    beside: str = "",
    wanted: int = 0,
    cores: bool = True,
) -> Figure:
    """The ratio of the median times by the clock, with that of the cores' time where it says something of its own.

    The spread is that of the ratios of single turns. ``wanted`` is how many turns there should have been.
    """
    pairs = [mine.clock / other.clock for mine, other in zip(ours, theirs, strict=True)]
    mine, other = (median(turn.clock for turn in turns) for turns in (ours, theirs))
    notes = []
    if cores and (plain := median(turn.cores for turn in theirs)) > 0:
        notes.append(f"cores' time {median(turn.cores for turn in ours) / plain:.2f}")
    if len(ours) < wanted:
        notes.append(f"{len(ours)} turn{'s' * (len(ours) > 1)}")
    return Figure(
        what,
        mine / other,
        min(pairs),
        max(pairs),
        expected,
        ours=write_time(mine),
        beside=f"{beside} {write_time(other)}".strip(),
        note="; ".join(notes),
    )

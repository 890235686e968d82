"""Errors of a sum over people of contributions that nobody bounded: Idios, R2T, and truncation at a declared limit.

    python -m bench.contributions [--quick]

It prints the table of docs/evaluation.md, in Markdown: the median of |answer − truth| in per cent of the truth, over
data sets and draws. Add-remove, as R2T has it; no contribution is negative.

- Idios is asked for SUM at ``differential`` and is told nothing but x ≥ 0.
- R2T has to be told a bound: a million times the median contribution, or, as nobody could, the greatest one there is.
- Truncation has to be told a limit: the best one for these data and this ε, as nobody could, or ten times as much.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

import idios
from idios.evaluation.race_to_the_top import draw_raced_sums, draw_truncated_sums, find_best_limit

SPREADS = (1.0, 2.0)
"""σ of lognormal(10, σ)."""
SETS = {1000: 20, 100_000: 4}
"""Data sets for each n; each is asked about equally often."""
EPSILONS = (0.1, 0.5, 1.0, 4.0)
DRAWS = 2000

Ask = Callable[[np.ndarray, float, int, np.random.Generator], np.ndarray]


def ask_idios(values: np.ndarray, epsilon: float, draws: int, rng: np.random.Generator) -> np.ndarray:
    points, spent = values.astype(np.int64), Fraction(str(epsilon))
    found = [
        idios.total(
            points, epsilon=spent, protection="differential", neighbours="add-remove", bounds=(0, None), nullable=False
        )
        for _ in range(max(1, draws // 5))
    ]
    return np.array([np.nan if answer is None else float(answer) for answer in found])


ASKED: dict[str, Ask] = {
    "Idios, nothing declared": ask_idios,
    "R2T, 10⁶ medians declared": lambda x, e, m, rng: draw_raced_sums(x, e, m, rng, 1e6 * float(np.median(x))),
    "R2T, the greatest known": lambda x, e, m, rng: draw_raced_sums(x, e, m, rng, float(x[-1])),
    "truncation, the best limit known": lambda x, e, m, rng: draw_truncated_sums(x, e, m, rng, find_best_limit(x, e)),
    "truncation, ten times that": lambda x, e, m, rng: draw_truncated_sums(x, e, m, rng, 10 * find_best_limit(x, e)),
}


@dataclass(frozen=True)
class Row:
    """One row of the table."""

    spread: float
    n: int
    epsilon: float
    thin: int = 1

    def measure(self) -> list[float]:
        """The median relative error of each, in per cent."""
        rng = np.random.default_rng([17, int(self.spread), self.n])
        sets = [np.sort(np.rint(rng.lognormal(10, self.spread, self.n))) for _ in range(SETS[self.n])]
        draws = max(1, DRAWS // self.thin // len(sets))
        found = []
        for ask in ASKED.values():
            errors = [np.abs(ask(values, self.epsilon, draws, rng) / values.sum() - 1) for values in sets]
            found.append(100 * float(np.median(np.concatenate(errors))))
        return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="n = 1000 and a tenth of the draws")
    quick = parser.parse_args().quick
    rows = [
        Row(spread, n, epsilon, 10 if quick else 1)
        for spread in SPREADS
        for n in (SETS if not quick else (1000,))
        for epsilon in EPSILONS
    ]
    start = time.perf_counter()
    print(f"| contributions | n | ε | {' | '.join(ASKED)} |\n|---{'|---' * (len(ASKED) + 2)}|")
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for row, found in zip(rows, pool.map(Row.measure, rows), strict=True):
            cells = " | ".join(f"{error:.3g} %" for error in found)
            print(f"| lognormal(10, {row.spread:g}) | {row.n:,} | {row.epsilon:g} | {cells} |", flush=True)
    print(f"\n{time.perf_counter() - start:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Errors of answers about columns that nobody bounded: Idios, its rivals, and libraries that are told bounds.

    python -m bench.unbounded [--quick] [--only median,mean]

It prints the tables of docs/evaluation.md, in Markdown: for every statistic, shape, n and ε the mean absolute error of
the answers given, and the share of refusals where there are any. Columns of whole numbers, the whole table, replace.

- The same data sets for everyone. An error counts for no more than the truth or the largest value.
- What promises ε for adding or removing a record promises 2ε for replacing one, so PyDP, which knows nothing else,
  is given ε/2; OpenDP is asked for two changes of its symmetric distance. The rivals of ``idios.evaluation`` are
  calibrated to replace.
- An expert's bounds hold 99.9 % of the distribution; the others reach ten times as far around the same middle.
- PyDP and OpenDP are asked if they can be imported: ``pip install python-dp opendp``.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

import idios
from idios.core.statistics import KthLargest, Mean, Median, Quantile, Statistic, Sum
from idios.errors import IdiosError
from idios.evaluation.rivals import list_rivals, measure_answers

Answers = np.ndarray
Ask = Callable[[np.ndarray, float, int], Answers]
"""Sorted values, ε and a number of draws; NaN is a refusal."""

TYPE_END = 2.0**31
"""PyDP's quantiles search the range of their type: that of its default one, since 64 bits are too many for n = 200."""
CANDIDATES = 2000
EPSILONS = (0.1, 0.5, 1.0)
SETS = {200: 20, 1000: 20, 100_000: 4}
"""Data sets for each n; each is asked about equally often."""


@dataclass(frozen=True)
class Shape:
    name: str
    draw: Callable[[np.random.Generator, int], np.ndarray]
    expert: tuple[float, float]

    @property
    def wide(self) -> tuple[float, float]:
        low, high = self.expert
        return (low + high) / 2 - 5 * (high - low), (low + high) / 2 + 5 * (high - low)


SHAPES = (
    Shape("N(50000, 1000)", lambda rng, n: rng.normal(50_000, 1000, n), (46_709, 53_291)),
    Shape("lognormal(10, 1)", lambda rng, n: rng.lognormal(10, 1, n), (0, math.exp(10 + 3.0902))),
    Shape("Pareto(1.5)·1000", lambda rng, n: 1000 * (1 + rng.pareto(1.5, n)), (1000, 1000 * 1000 ** (2 / 3))),
)


@dataclass(frozen=True)
class Measured:
    name: str
    statistic: Statistic
    truth: Callable[[np.ndarray], float]


STATISTICS = (
    Measured("median", Median(), lambda x: float(np.median(x))),
    Measured("0.99 quantile", Quantile(Fraction(99, 100)), lambda x: float(np.quantile(x, 0.99))),
    Measured("10th largest", KthLargest(10), lambda x: float(x[-10])),
    Measured("mean", Mean(), lambda x: float(x.mean())),
    Measured("sum", Sum(), lambda x: float(x.sum())),
)
IDIOS = "Idios `differential`"
INDIVIDUAL = "Idios `individual`"
PYDP = "PyDP"
EXPERT, WIDE = "OpenDP, expert's bounds", "OpenDP, ten times too wide"


def ask_idios(measured: Measured, protection: str) -> Ask:
    function: Callable[..., Any] = {
        "median": idios.median,
        "0.99 quantile": lambda x, **options: idios.quantile(x, "0.99", **options),
        "10th largest": lambda x, **options: idios.kth_largest(x, 10, **options),
        "mean": idios.mean,
        "sum": idios.total,
    }[measured.name]

    def ask(values: np.ndarray, epsilon: float, draws: int) -> Answers:
        points, spent = values.astype(np.int64), Fraction(str(epsilon))
        options: dict[str, Any] = {"epsilon": spent, "protection": protection, "nullable": False}
        try:
            answers = [function(points, **options) for _ in range(draws)]
        except IdiosError:  # decided by public facts, so for all draws
            return np.full(draws, math.nan)
        return np.array([math.nan if answer is None else float(answer) for answer in answers])

    return ask


def ask_pydp(measured: Measured) -> Ask:
    from pydp.algorithms import laplacian

    def make(values: np.ndarray, epsilon: float) -> Any:
        n = len(values)
        if measured.name == "mean":
            return laplacian.BoundedMean(epsilon=epsilon, dtype="int64")
        if measured.name == "sum":
            return laplacian.BoundedSum(epsilon=epsilon, dtype="int64")
        if measured.name == "median":
            return laplacian.Median(epsilon=epsilon, dtype="int")
        # without bounds it does not take a share, and of integers it answers 0 whatever the data
        share = 0.99 if measured.name == "0.99 quantile" else (n - 10 + 0.5) / n
        ends = {"lower_bound": -TYPE_END, "upper_bound": TYPE_END}
        return laplacian.Percentile(epsilon=epsilon, percentile=share, dtype="float", **ends)

    def ask(values: np.ndarray, epsilon: float, draws: int) -> Answers:
        floats = measured.name in ("0.99 quantile", "10th largest")
        data = values.tolist() if floats else [int(value) for value in values]
        answers = []
        for _ in range(draws):
            try:
                answers.append(float(make(values, epsilon / 2).quick_result(data)))
            except RuntimeError:  # too few values for bounds
                answers.append(math.nan)
        return np.array(answers)

    return ask


def ask_opendp(measured: Measured, bounds: tuple[float, float]) -> Ask:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    low, high = map(float, bounds)

    # What noise is added to, or chosen from, is the same for every draw, so it is computed once.
    def ask(values: np.ndarray, epsilon: float, draws: int) -> Answers:
        data = values.tolist()
        space = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=len(data)), dp.symmetric_distance()
        if measured.name in ("mean", "sum"):
            last = dp.t.then_mean() if measured.name == "mean" else dp.t.then_sum()
            found = space >> dp.t.then_clamp((low, high)) >> last
            noisy = _fit_scale(found, lambda scale: dp.m.then_laplace(scale), epsilon)
            exact = found(data)
            return np.array([noisy(exact) for _ in range(draws)])
        share = {"median": 0.5, "0.99 quantile": 0.99}.get(measured.name, (len(data) - 9.5) / len(data))
        candidates = [low + (high - low) * i / CANDIDATES for i in range(CANDIDATES + 1)]
        scored = space >> dp.t.then_quantile_score_candidates(candidates, alpha=share)
        chosen = _fit_scale(
            scored, lambda scale: dp.m.then_noisy_max(dp.max_divergence(), scale=scale, negate=True), epsilon
        )
        scores = scored(data)
        return np.array([candidates[chosen(scores)] for _ in range(draws)])

    return ask


def _fit_scale(before: Any, then: Callable[[float], Any], epsilon: float) -> Any:
    """The measurement that, after ``before``, costs ε for two changes: the loss is one over the scale."""
    scale = (before >> then(1.0)).map(2) / epsilon * (1 + 1e-9)
    measurement = then(scale)(before.output_domain, before.output_metric)
    assert (before >> then(scale)).check(2, epsilon)
    return measurement


def list_mechanisms(measured: Measured, shape: Shape, n: int) -> Iterator[tuple[str, Ask | None, int]]:
    """Name, how to ask, and how many draws the time allows; None where it is not installed."""
    yield IDIOS, ask_idios(measured, "differential"), 400
    yield INDIVIDUAL, ask_idios(measured, "individual"), 400
    for i, rival in enumerate(list_rivals(measured.statistic)):
        rng = np.random.default_rng([n, i])
        yield rival.name, lambda x, e, m, rival=rival, rng=rng: rival.draw(x, e, m, rng), 4000
    yield PYDP, _when_installed("pydp", lambda: ask_pydp(measured)), 400 if n < 10_000 else 100
    draws = 400 if measured.name in ("mean", "sum") else 200
    yield EXPERT, _when_installed("opendp", lambda: ask_opendp(measured, shape.expert)), draws
    yield WIDE, _when_installed("opendp", lambda: ask_opendp(measured, shape.wide)), draws


def _when_installed(package: str, make: Callable[[], Ask]) -> Ask | None:
    try:
        __import__(package)
    except ImportError:
        return None
    return make()


@dataclass(frozen=True)
class Cell:
    error: float
    refused: float

    def __str__(self) -> str:
        if self.refused > 0.5:
            return f"refuses {100 * self.refused:.0f} %"
        written = f"{self.error:,.0f}" if self.error >= 100 else f"{self.error:.3g}"
        return written + (f" ({100 * self.refused:.2g} % refused)" if self.refused >= 0.0005 else "")


def measure(ask: Ask, sets: list[np.ndarray], measured: Measured, epsilon: float, draws: int) -> Cell:
    """The mean over data sets and draws."""
    each = max(1, draws // len(sets))
    errors, refusals = [], []
    for values in sets:
        error, refused = measure_answers(ask(values, epsilon, each), measured.truth(values), values)
        errors.append(error)
        refusals.append(refused)
    shares = 1 - np.array(refusals)
    given = float(shares.sum())
    return Cell(float(np.nansum(np.array(errors) * shares) / given) if given else math.nan, 1 - given / len(sets))


def draw_sets(shape: Shape, n: int) -> list[np.ndarray]:
    rng = np.random.default_rng([13, SHAPES.index(shape), n])
    return [np.sort(np.rint(shape.draw(rng, n))) for _ in range(SETS[n])]


@dataclass(frozen=True)
class Row:
    """One row of a table, by the numbers of its statistic and shape, so that it can go to another process."""

    statistic: int
    shape: int
    n: int
    epsilon: float
    thin: int

    def measure(self) -> tuple[float, dict[str, Cell | None]]:
        """The truth, and what each mechanism makes of it."""
        measured, shape = STATISTICS[self.statistic], SHAPES[self.shape]
        sets = draw_sets(shape, self.n)
        cells = {
            name: None if ask is None else measure(ask, sets, measured, self.epsilon, draws // self.thin)
            for name, ask, draws in list_mechanisms(measured, shape, self.n)
        }
        return float(np.mean([measured.truth(values) for values in sets])), cells


def print_table(number: int, sizes: tuple[int, ...], epsilons: tuple[float, ...], thin: int, pool: Executor) -> None:
    rows = [Row(number, shape, n, e, thin) for shape in range(len(SHAPES)) for n in sizes for e in epsilons]
    names = [name for name, _, _ in list_mechanisms(STATISTICS[number], SHAPES[0], 0)]
    free = [name for name in names if name not in (INDIVIDUAL, EXPERT, WIDE) and "told" not in name]
    print(f"\n### {STATISTICS[number].name}\n\n| column | n | ε | truth | {' | '.join(names)} |")
    print(f"|---{'|---' * (len(names) + 3)}|")
    ahead = 0
    for row, (truth, cells) in zip(rows, pool.map(Row.measure, rows), strict=True):
        answered = {name: cell.error for name in free if (cell := cells[name]) and cell.refused <= 0.5}
        best = min(answered, key=lambda name: answered[name], default=None)
        ahead += best == IDIOS
        written = [
            "not installed" if cell is None else f"**{cell}**" if name == best else str(cell)
            for name, cell in cells.items()
        ]
        head = f"| {SHAPES[row.shape].name} | {row.n:,} | {row.epsilon} | {truth:,.0f} |"
        print(f"{head} {' | '.join(written)} |", flush=True)
    print(f"\nBold: the least error without bounds under DP; that is Idios in {ahead} of {len(rows)} rows.")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="n = 1000, ε = 1 and a tenth of the draws")
    parser.add_argument("--only", help="some of the statistics, separated by commas")
    chosen = parser.parse_args()
    wanted = chosen.only.split(",") if chosen.only else [measured.name for measured in STATISTICS]
    start = time.perf_counter()
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for number, measured in enumerate(STATISTICS):
            if measured.name in wanted:
                sizes, epsilons, thin = ((1000,), (1.0,), 10) if chosen.quick else (tuple(SETS), EPSILONS, 1)
                print_table(number, sizes, epsilons, thin, pool)
    print(f"\n{time.perf_counter() - start:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Errors of questions with several numbers, each number calibrated by itself and all of them together, at the same ε.

    python -m bench.joint [census.csv]

It writes the tables of docs/evaluation.md: E|answer − value| before and after, in the unit of the column, as a mean
over the fitted numbers of the answer and over the data sets.
"""

from __future__ import annotations

import csv
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

import numpy as np

from idios.core.calibration import Added
from idios.core.domain import Domain
from idios.core.joint import Component, calibrate_cells
from idios.core.multiples import declare_multiples
from idios.core.neighbours import Moves, Neighbours
from idios.core.statistics import KthLargest, Mean, Median, Quantile, Statistic, TrimmedMean
from idios.core.summary import Summary, Window

REPEATS = 20
SIZE = 1000
EPSILON = Fraction(1)

Numbers = Sequence[int]


def percentiles(*listed: int) -> list[Statistic]:
    return [Median() if p == 50 else Quantile(Fraction(p, 100)) for p in listed]


QUESTIONS: dict[str, list[Statistic]] = {
    "median, quartiles": percentiles(25, 50, 75),
    "P10 P25 P50 P75 P90": percentiles(10, 25, 50, 75, 90),
    "median, 2nd largest": [Median(), KthLargest(2)],
    "median, trimmed mean": [Median(), TrimmedMean(Fraction(1, 10))],
    "`COUNT`, `SUM`, `AVG`": [Mean()],  # the others have their global sensitivities, and a third of ε each as before
    "median by 20 groups": [Median()],
    "quartiles by 20 groups": percentiles(25, 50, 75),
}

SHAPES: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
    "uniform": lambda rng: rng.uniform(0, 100_000, SIZE),
    "normal": lambda rng: rng.normal(50_000, 15_000, SIZE),
    "exponential": lambda rng: rng.exponential(30_000, SIZE),
    "lognormal": lambda rng: rng.lognormal(10, 1, SIZE),
    "integers with ties": lambda rng: rng.poisson(40, SIZE).astype(float),
}


DOMAIN, BOUNDED = Domain(), Domain(lower=0, upper=1_000_000)


def summary_of(values: Numbers, statistic: Statistic, moves: Moves, distance: int) -> Summary:
    windows = []
    bounded = isinstance(statistic, Mean)
    if bounded:
        values = [min(max(v, 0), 1_000_000) for v in values]
    for first, last in statistic.ranks(moves, distance):
        first, last = max(first, 1), min(last, len(values))
        if first <= last:
            below = sum(values[: first - 1]) if statistic.needs_sums else 0
            windows.append(Window(first, tuple(values[first - 1 : last]), below))
    return Summary(BOUNDED if bounded else DOMAIN, moves, tuple(windows), total=sum(values))


def errors(
    cells: Sequence[Numbers],
    statistics: Sequence[Statistic],
    neighbours: Neighbours,
    whole: bool,
    multiples: tuple[Fraction, ...],
) -> tuple[float, float]:
    """The mean error, each number by itself and jointly."""
    records = sum(map(len, cells))
    listed = []
    for values in cells:
        outside = None if whole or neighbours is Neighbours.ADD_REMOVE else records - len(values) + 50
        moves = Moves(neighbours, len(values), outside)
        listed.append(
            [
                Component(
                    statistic,
                    summary_of(values, statistic, moves, len(multiples)),
                    Fraction(1, 3 if isinstance(statistic, Mean) else len(statistics)),
                    Fraction(statistic.resolution() if statistic.coarse_floor else 1),
                )
                for statistic in statistics
            ]
        )
    apart = divided(multiples, len(cells), neighbours)
    before, after = [], []
    for components, mechanisms in zip(listed, calibrate_cells(listed, EPSILON, multiples), strict=True):
        for component, jointly in zip(components, mechanisms, strict=True):
            [[alone]] = calibrate_cells([[component]], EPSILON, apart)
            if isinstance(jointly, Added) and isinstance(alone, Added):
                step = float(component.statistic.answer_step(component.summary.domain))
                before.append(alone.noise.expected_absolute * step)
                after.append(jointly.noise.expected_absolute * step)
    return float(np.mean(before)), float(np.mean(after))


def divided(multiples: tuple[Fraction, ...], cells: int, neighbours: Neighbours) -> tuple[Fraction, ...]:
    """What each cell must promise by itself, ε/2 for one record under replace: t·min over i ≥ t of m_i/(2i)."""
    if cells == 1:
        return multiples
    touched = 2 if neighbours is Neighbours.REPLACE else 1
    group = len(multiples)
    return tuple(t * min(multiples[i - 1] / (touched * i) for i in range(t, group + 1)) for t in range(1, group + 1))


def data_sets(path: str | None) -> Iterator[tuple[str, list[list[int]]]]:
    rng = np.random.default_rng(12)
    for name, draw in SHAPES.items():
        yield name, [[int(v) for v in np.floor(draw(rng) + 0.5)] for _ in range(REPEATS)]
    if path:
        with open(path, newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        for name in ("agi", "fedtax", "ptotval", "ernval"):
            yield f"census {name}", [[int(float(row[name])) for row in rows]]


def main(path: str | None) -> None:
    settings = [
        ("replace, the whole table", Neighbours.REPLACE, True),
        ("replace, a selection", Neighbours.REPLACE, False),
        ("add-remove", Neighbours.ADD_REMOVE, False),
    ]
    groups = {"individual": declare_multiples(1), "group of 3, flat": declare_multiples({"size": 3, "growth": "flat"})}
    shapes = list(data_sets(path))
    for level, multiples in groups.items():
        for setting, neighbours, whole in settings:
            names = [name for name, _ in shapes]
            print(f"\n{level}, {setting}\n\n| | {' | '.join(names)} |\n|---{'|---' * len(names)}|")
            for question, statistics in QUESTIONS.items():
                grouped = "groups" in question
                if (grouped and whole) or (len(multiples) > 1 and "largest" in question):
                    continue
                row = []
                for _, drawn in shapes:
                    pairs = []
                    for values in drawn:
                        cells = [values[c::20] for c in range(20)] if grouped else [values]
                        pairs.append(errors([sorted(c) for c in cells], statistics, neighbours, whole, multiples))
                    before, after = np.mean(pairs, axis=0)
                    row.append(f"{_format(before)} → {_format(after)} ({before / after:.2f} ×)")
                print(f"| {question} | {' | '.join(row)} |", flush=True)


def _format(error: float) -> str:
    return f"{error:,.0f}" if error >= 100 else f"{error:.3g}"


def many_cells(count: int = 100_000) -> None:
    rng = np.random.default_rng(1)
    cells = []
    for _ in range(count):
        values = sorted(int(v) for v in rng.integers(0, 10**6, 11))
        summary = summary_of(values, Median(), Moves(Neighbours.REPLACE, 11, 11 * count), 1)
        cells.append([Component(Median(), summary, Fraction(1), Fraction(10**6))])
    start = time.process_time()
    calibrate_cells(cells, EPSILON)
    print(f"median of {count} cells calibrated in {time.process_time() - start:.1f} s of one processor")


if __name__ == "__main__":
    main(*(sys.argv[1:2] or [None]))
    many_cells()

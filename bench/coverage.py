"""How often stated intervals and distance checks hold: answers drawn many times, of data that is difficult for them.

    python -m bench.coverage [--runs 10000]

It prints the tables of docs/evaluation.md, in Markdown. Each question is planned and calibrated once, then drawn so
many times; a draw holds if the value lies in the interval, or if the answer is as many records off as its check says.
What was clipped to drawn limits has an interval of the clipped values, and is not among them.
With several groups each draw takes the next group. The expectation is at least 94 % everywhere.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import cast

import numpy as np
import pyarrow as pa

from idios.answer.release import calibrate_plan, draw_cell
from idios.core.calibration import Mechanism, Protection
from idios.core.distance_check import DistanceCheck
from idios.core.domain import Categories, Domain, Kind
from idios.core.envelope import Envelope
from idios.core.neighbours import Neighbours
from idios.core.sampling import SeededSource
from idios.core.statistics import FINENESS, Statistic
from idios.core.summary import Summary
from idios.data.backend import open_source
from idios.declare.schema import Column, Dataset
from idios.plan.planner import make_plan
from idios.plan.question import Aggregate, Plan
from idios.sql.reader import read

EPSILON, SHARE = Fraction(1), Fraction(1, 5)
RECORDS, GROUPS = 1000, 50
HIGHEST = 10**6
EXPECTED, LOOSE = 0.94, 0.99
LEVELS = ("differential", "individual")

Shape = Callable[[np.random.Generator], np.ndarray]


SHAPES: dict[str, Shape] = {
    "ties": lambda rng: rng.choice([20, 37, 38, 40, 60], RECORDS, p=[0.1, 0.45, 0.1, 0.3, 0.05]),
    "heaps": lambda rng: np.where(
        rng.random(RECORDS) < 0.8, rng.normal(40, 12, RECORDS).round() * 1000, rng.normal(40_000, 12_000, RECORDS)
    ),
    "gaps": lambda rng: np.where(rng.random(RECORDS) < 0.5, 100, 900_000) + rng.integers(0, 50, RECORDS),
    "heavy tails": lambda rng: rng.pareto(1.2, RECORDS) * 1000,
    "tiny groups": lambda rng: rng.lognormal(8, 1, RECORDS // 5),
}

ALONE = ("MEDIAN(x)", "QUANTILE(x, 0.9)", "IQR(x)", "TRIMMED_MEAN(x, 0.05)", "KTH_LARGEST(x, 20)", "AVG(x)")
QUESTIONS = {
    **{f"`{statistic}`": f"SELECT {statistic} FROM t" for statistic in ALONE},
    "`MEDIAN(x)`, half of the groups": "SELECT MEDIAN(x) FROM t WHERE {half}",
    "`AVG(x)`, half of the groups": "SELECT AVG(x) FROM t WHERE {half}",
    "`VARIANCE(x)`, half of the groups": "SELECT VARIANCE(x) FROM t WHERE {half}",
    "`COUNT(*)`, half of the groups": "SELECT COUNT(*) FROM t WHERE {half}",
    "`SUM(x)`, half of the groups": "SELECT SUM(x) FROM t WHERE {half}",
}
GROUPED = {
    f"`{statistic}` by 50 groups": f"SELECT g, {statistic} FROM t GROUP BY g" for statistic in ("MEDIAN(x)", "COUNT(*)")
}


@dataclass(frozen=True)
class Row:
    """What was found of one statistic: ``null`` is the share of draws without an answer, which nothing is stated of."""

    question: str
    statement: str
    coverage: float
    width: float
    null: float

    @property
    def verdict(self) -> str:
        return "loose" if self.coverage > LOOSE else "" if self.coverage >= EXPECTED else "too low"

    def __str__(self) -> str:
        null = f"{self.null:.1%} NULL" if self.null else ""
        return ", ".join(filter(None, [f"{self.coverage:.1%}", self.verdict, null]))


def measure_shape(shape: str, level: str, runs: int, seed: int = 1) -> Iterator[Row]:
    """Every statistic that has a margin or a check, of data of one shape."""
    rng = np.random.default_rng(seed)
    values = np.clip(SHAPES[shape](rng).round(), 0, HIGHEST).astype(np.int64)
    names = [f"g{i:02}" for i in range(GROUPS)]
    data = pa.table({"x": values, "g": [names[i] for i in rng.integers(0, GROUPS, len(values))]})
    dataset = declare(level, names)
    source = SeededSource(seed)
    for question, sql in (QUESTIONS if shape != "tiny groups" else GROUPED).items():
        plan = make_plan(read(sql.format(half=list_half(names)), {"t": dataset}), dataset, EPSILON)
        with open_source(data, dataset) as backend, backend.open_snapshot(plan) as snapshot:
            summaries = snapshot.summaries
        mechanisms = calibrate_plan(plan, summaries)
        for i, aggregate in enumerate(plan.aggregates):
            cells = [(summary[i], drawn[i]) for summary, drawn in zip(summaries, mechanisms, strict=True)]
            if (found := measure_aggregate(plan, aggregate, cells, runs, source)) is not None:
                yield Row(question, "check" if aggregate.check else "interval", *found)


def declare(level: str, names: list[str]) -> Dataset:
    columns = [
        Column("x", Kind.INTEGER, Domain(lower=0, upper=HIGHEST), nullable=False),
        Column("g", Kind.CATEGORY, Categories(tuple(names)), nullable=False),
    ]
    protection = Protection.declare(level)
    listed = {column.name: column for column in columns}
    return Dataset("t", listed, Neighbours.REPLACE, protection, min_epsilon=Fraction(1, 1000), check=SHARE)


def list_half(names: list[str]) -> str:
    return f"g IN ({', '.join(repr(name) for name in names[: len(names) // 2])})"


def measure_aggregate(
    plan: Plan, aggregate: Aggregate, cells: list[tuple[Summary, Mechanism]], runs: int, source: SeededSource
) -> tuple[float, float, float] | None:
    """Coverage, mean width and share of NULL; nothing where nothing is stated, or hardly ever."""
    statistic, check = aggregate.statistic, aggregate.check
    step = statistic.answer_step(aggregate.grid)
    noises = check.noise.sample(runs, source).tolist() if check else [0] * runs
    computed = [Computed(statistic, {}) for _ in cells]
    held: list[bool] = []
    widths: list[float] = []
    for run, noise in enumerate(noises):
        place = run % len(cells)
        summary, mechanism = cells[place]
        drawn, interval, _ = draw_cell(plan, aggregate, mechanism, source)
        if drawn is None:
            continue
        if interval is not None:
            value = computed[place].envelope(summary, 0, FINENESS).value
            held.append(value is not None and interval[0] <= value * step <= interval[1])
            widths.append(float(interval[1] - interval[0]))
        elif check is not None:
            signed = check.measure(cast(Statistic, computed[place]), summary, drawn / step, FINENESS)
            low, high = check.bound(signed + noise)
            held.append(holds(check, signed, low, high))
            widths.append((check.reach if high is None else high) - (-check.reach if low is None else low))
    if len(held) < runs / 10:
        return None
    return float(np.mean(held)), float(np.mean(widths)), 1 - len(held) / runs


def holds(check: DistanceCheck, signed: int, low: int | None, high: int | None) -> bool:
    """Whether an answer of this s is as far off as was stated; beyond the reach only an open end is right."""
    records = (abs(signed) + 1) // 2 * (1 if signed > 0 else -1)
    farthest = records if abs(records) < check.reach else HIGHEST * records
    return all((low is None or low <= u) and (high is None or u <= high) for u in (records, farthest))


@dataclass(frozen=True)
class Computed:
    """A statistic whose envelope is computed once for all draws."""

    statistic: Statistic
    envelopes: dict[int, Envelope]

    @property
    def least_size(self) -> int:
        return self.statistic.least_size

    def envelope(self, summary: Summary, distance: int, fineness: int) -> Envelope:
        if distance not in self.envelopes:
            self.envelopes[distance] = self.statistic.envelope(summary, distance, fineness)
        return self.envelopes[distance]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000, help="how often each answer is drawn")
    runs = parser.parse_args().runs
    for level in LEVELS:
        found = {shape: {row.question: row for row in measure_shape(shape, level, runs)} for shape in SHAPES}
        print(f"\n`{level}`:\n\n| | stated | {' | '.join(SHAPES)} | mean width |\n|---|---|{'---|' * len(SHAPES)}---|")
        for question in (*QUESTIONS, *GROUPED):
            rows = {shape: of_shape[question] for shape, of_shape in found.items() if question in of_shape}
            if rows:
                line = [question, next(iter(rows.values())).statement, *(str(rows.get(shape, "")) for shape in SHAPES)]
                print(f"| {' | '.join(line)} | {format_widths(list(rows.values()))} |", flush=True)


def format_widths(rows: list[Row]) -> str:
    """In records, or for intervals in the answer's units."""
    widths = [f"{width:,.0f}" for width in sorted(row.width for row in rows)]
    unit = " records" if rows[0].statement == "check" else ""
    return f"{widths[0]}{unit}" if widths[0] == widths[-1] else f"{widths[0]} to {widths[-1]}{unit}"


if __name__ == "__main__":
    main()

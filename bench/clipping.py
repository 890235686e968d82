"""Sums and means without bounds, of groups, drawn many times: how often their intervals hold the true value.

    python -m bench.clipping [--draws 100]

Limits are drawn for each answer anew, so each draw is a whole answer. Per question and ε: how many values are NULL, how
many stand without an interval because many values were clipped, how many of the other intervals hold the *true* value
(of all values, not of the clipped ones), their median and least width as shares of the truth, how many values lie
within 25 % of the truth, and the greatest error. The data is made here: weights of which 4 % are not
0, in regions of 600 to 3,000 people; a lognormal amount of each of 2,377 households in each of 12 months; lognormal
incomes of a whole table.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

import idios
from idios.answer.assembly import make_answer
from idios.answer.release import draw_table
from idios.core.sampling import SeededSource
from idios.datasets import OpenDataset
from idios.model import Answer
from idios.plan.planner import make_plan
from idios.sql.reader import read

REGIONS, MONTHS = 12, 12
NUMBER = {"type": "number", "step": 1}


@dataclass(frozen=True)
class Asked:
    """A question about made-up data, the column whose truth is known, and that truth by group."""

    name: str
    sql: str
    options: dict[str, Any]
    data: pa.Table
    column: str
    keys: tuple[str, ...]
    truth: dict[tuple[str, ...], float]


@dataclass(frozen=True)
class Found:
    """What came of all draws of one question."""

    null: float
    marked: float
    coverage: float
    width: float
    error: float
    near: float
    narrowest: float

    def __str__(self) -> str:
        stated = (
            "– | –" if np.isnan(self.coverage) else f"{self.coverage:.1%} | {self.width:.3g} ({self.narrowest:.3g})"
        )
        return f"{self.null:.0%} | {self.marked:.0%} | {stated} | {self.near:.0%} | {self.error:.0%}"


def list_questions(seed: int = 1) -> Iterator[Asked]:
    """The questions, each with data of its shape."""
    rng = np.random.default_rng(seed)
    sizes = np.linspace(600, 3000, REGIONS).astype(int)
    region = np.repeat([f"r{i:02}" for i in range(REGIONS)], sizes)
    weight, status = rng.integers(1, 2001, len(region)), rng.random(len(region))
    unemployed, active = np.where(status < 0.04, weight, 0), np.where(status < 0.62, weight, 0)
    labels = np.select([status < 0.04, status < 0.62], ["unemployed", "employed"], "inactive")
    people = pa.table({"region": region, "status": labels, "w": weight, "wune": unemployed, "wact": active})
    names = [f"r{i:02}" for i in range(REGIONS)]
    of_people = {
        "name": "people",
        "columns": {
            "region": {"type": "category", "values": names, "nullable": False},
            "status": {"type": "category", "values": ["unemployed", "employed", "inactive"], "nullable": False},
            **dict.fromkeys(("w", "wune", "wact"), NUMBER),
        },
    }
    rate = {(n,): 100 * unemployed[region == n].sum() / active[region == n].sum() for n in names}
    sql = "SELECT region, 100 * SUM(wune) / SUM(wact) AS rate FROM people GROUP BY region"
    yield Asked("rate of 12 regions", sql, of_people, people, "rate", ("region",), rate)
    both = {(n, s): float(weight[(region == n) & (labels == s)].sum()) for n in names for s in np.unique(labels)}
    sql = "SELECT region, status, SUM(w) AS s FROM people GROUP BY region, status"
    yield Asked("one SUM by region and status", sql, of_people, people, "s", ("region", "status"), both)

    months = [f"m{i:02}" for i in range(MONTHS)]
    level = rng.lognormal(4.5, 0.6, 2377)
    amounts = np.rint(100 * level[:, None] * rng.lognormal(0, 0.5, (2377, MONTHS)) * np.linspace(0.9, 1.1, MONTHS))
    household = np.repeat(np.arange(2377), MONTHS)
    sales = pa.table(
        {"household": household, "month": np.tile(months, 2377), "cents": amounts.ravel().astype(np.int64)}
    )
    of_sales = {
        "name": "sales",
        "unit": "household",
        "groups": MONTHS,
        "columns": {"month": {"type": "category", "values": months, "nullable": False}, "cents": NUMBER},
    }
    truth = {(month,): float(amounts[:, i].sum()) for i, month in enumerate(months)}
    yield Asked(
        "sales of 12 months",
        "SELECT month, SUM(cents) AS s FROM sales GROUP BY month",
        of_sales,
        sales,
        "s",
        ("month",),
        truth,
    )

    incomes = np.rint(rng.lognormal(10.3, 0.8, 20_001))
    whole = {"name": "incomes", "columns": {"income": NUMBER | {"nullable": False}}}
    table = pa.table({"income": incomes})
    for statistic, true in (("AVG", incomes.mean()), ("SUM", incomes.sum()), ("STDDEV", incomes.std())):
        sql = f"SELECT {statistic}(income) AS x FROM incomes"
        yield Asked(f"{statistic} of 20,001 incomes", sql, whole, table, "x", (), {(): float(true)})


def measure(asked: Asked, epsilon: Fraction, draws: int) -> Found:
    """Draw one question so many times."""
    with idios.TrustedParty.open(asked.data, budget=1000, protection="differential", **asked.options) as party:
        (opened,) = party.datasets.values()
        answers = [draw(opened, asked.sql, epsilon, seed) for seed in range(draws)]
    return summarise(asked, answers)


def draw(opened: OpenDataset, sql: str, epsilon: Fraction, seed: int) -> Answer:
    """One answer, which nothing is charged for."""
    dataset = opened.dataset
    plan = make_plan(read(sql, {dataset.name: dataset}), dataset, epsilon)
    return make_answer(plan, draw_table(plan, opened.backend, source=SeededSource(seed)), id="")


def summarise(asked: Asked, answers: list[Answer]) -> Found:
    """Count what holds."""
    null = marked = held = values = 0
    widths: list[float] = []
    errors: list[float] = []
    for answer in answers:
        intervals = answer.interval_rows or [{}] * len(answer.rows)
        for row, found in zip(answer.rows, intervals, strict=True):
            values += 1
            true, value = asked.truth[tuple(row[key] for key in asked.keys)], row[asked.column]
            if value is None:
                null += 1
                continue
            errors.append(abs(float(Fraction(value)) / true - 1))
            if (interval := found.get(asked.column)) is None:
                marked += 1
                continue
            low, high = (float(Fraction(end)) for end in interval)
            held += low <= true <= high
            widths.append((high - low) / true)
    stated = values - null - marked
    return Found(
        null / values,
        marked / values,
        held / stated if stated else float("nan"),
        float(np.median(widths)) if widths else float("nan"),
        max(errors, default=0.0),
        float(np.mean(np.array(errors) <= 0.25)) if errors else 0.0,
        min(widths, default=float("nan")),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=100, help="how often each question is answered")
    draws = parser.parse_args().draws
    print(
        "| question | ε | NULL | no interval | hold the truth | width (least) | within 25 % | greatest error |\n"
        "|---|---|---|---|---|---|---|---|"
    )
    for asked in list_questions():
        for epsilon in (Fraction(1, 2), Fraction(1), Fraction(2), Fraction(4)):
            print(f"| {asked.name} | {epsilon} | {measure(asked, epsilon, draws)} |", flush=True)


if __name__ == "__main__":
    main()

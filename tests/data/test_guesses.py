"""Brackets are guessed from a sample and from what earlier questions counted, and none of that changes an answer."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from idios.core.clipping import plan_clipping
from idios.core.statistics import Mean, Median, Quantile, Statistic, Sum, TrimmedMean
from idios.data.backend import open_source
from idios.data.brackets import Bracket, Known, Piece, Sketch
from idios.data.engines import duckdb
from idios.data.engines.duckdb import DuckDbBackend
from idios.data.guesses import KeptColumn
from idios.data.queries import Queries
from idios.data.scan import scan
from idios.plan.question import Plan
from tests.conformance.plans import call_tables_large, dataset, number, plan, whole
from tests.conformance.reference import Table, reference

N = 3_000
COLUMNS = (whole("wild"), whole("rising"), whole("tied"), number("odd"), number("holes", nullable=False))
ASKED: tuple[Statistic, ...] = (Median(), Quantile(Fraction(9, 10)), TrimmedMean(Fraction(1, 20)))


def make_table(chance: random.Random) -> Table:
    """Numbers in the orders and with the ties and gaps that are worst for a sample."""
    wild = [chance.randrange(-(10**12), 10**12) for _ in range(N)]
    return {
        "wild": wild,
        "rising": sorted(wild),
        "tied": [chance.choice((0, 0, 0, 1, 5, 5, 9, None, chance.randrange(10))) for _ in range(N)],
        "odd": [chance.choice((None, math.nan, math.inf, float(i), i / 2)) for i in range(N)],
        "holes": [None if i % 500 == 7 else math.nan if i % 500 == 8 else float(i % 800) for i in range(N)],
    }


def clip(asked: Plan, epsilon: Fraction) -> Plan:
    """The plan with limits that are drawn, as the planner makes it."""
    aggregates = []
    for each in asked.aggregates:
        planned = plan_clipping(each.statistic, each.grid, each.neighbours, each.whole, epsilon, N)
        aggregates.append(replace(each, choice=replace(each.choice, reading=planned)))
    return replace(asked, aggregates=tuple(aggregates))


@pytest.fixture(autouse=True)
def _small_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    call_tables_large(monkeypatch, sampled=400)
    monkeypatch.setattr(duckdb, "KEPT", 0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_what_was_asked_before_changes_nothing(seed: int, tmp_path: Path) -> None:
    """Other ranks, other distances, several columns at once: each is what Python finds."""
    chance = random.Random(seed)
    table, data = make_table(chance), dataset(*COLUMNS)
    parquet.write_table(pa.table(table), tmp_path / "t.parquet", row_group_size=500)
    with open_source(tmp_path / "t.parquet", data) as backend:
        for _ in range(120):
            names = chance.sample([column.name for column in COLUMNS], chance.choice((1, 1, 2)))
            if chance.random() < 0.3:
                epsilon = chance.choice((Fraction(1), Fraction(1, 3), Fraction(7, 2)))
                asked = clip(plan(data, *((chance.choice((Mean(), Sum())), name) for name in names)), epsilon)
            else:
                statistics = [(statistic, name) for name in names for statistic in chance.sample(ASKED, 1)]
                asked = plan(data, *statistics, distance=chance.choice((1, 3, 40, 200)))
            assert backend.summarise(asked) == reference(asked, table), [a.label for a in asked.aggregates]


def test_a_column_is_sampled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """And what its brackets hold is counted once: later ones are narrower, and still hold the ranks."""
    sampled, scanned = [], []
    sketches = Queries.sketches

    def note_sample(self: Queries, *arguments: Any) -> Any:
        sampled.append(arguments)
        return sketches(self, *arguments)

    def note_scan(queries: Queries, needs: Any, found: dict[Any, tuple[Bracket, ...]]) -> Any:
        scanned.append(found)
        return scan(queries, needs, found)

    monkeypatch.setattr(Queries, "sketches", note_sample)
    monkeypatch.setattr("idios.data.summarise.scan", note_scan)
    monkeypatch.setattr(DuckDbBackend, "samplings", lambda *_: [])  # an even sample is never empty
    data, table = dataset(whole("x")), {"x": random.Random(1).sample(range(10**9), 20_000)}
    with open_source(pa.table(table), data) as backend:
        for distance in (5, 5, 8):
            asked = plan(data, (Median(), "x"), distance=distance)
            assert backend.summarise(asked) == reference(asked, table)
        assert len(sampled) == 1
        first, *later = (bracket for found in scanned for of_column in found.values() for bracket in of_column)
        assert first.start is None
        for bracket in later:
            assert bracket.start == sum(value < bracket.low for value in table["x"])
            assert bracket.high - bracket.low < (first.high - first.low) / 5


def look(values: list[int], bracket: Bracket) -> Piece:
    """What a scan finds in a bracket."""
    inside = [value for value in values if bracket.first <= value <= bracket.last]
    return Piece(
        sum(value < bracket.low for value in values),
        low=bracket.low,
        lows=values.count(bracket.low) if bracket.tied_low else 0,
        inside=np.array(inside, np.int64),
        high=bracket.high,
        highs=values.count(bracket.high) if bracket.tied_high and bracket.high > bracket.low else 0,
    )


@pytest.mark.parametrize("seed", range(300))
def test_what_is_counted_is_true_whatever_the_sketch(seed: int) -> None:
    """Ties at an end, ties inside, sketches of other columns; and what a true sketch held is held by less."""
    chance = random.Random(seed)
    distinct = chance.choice((3, 40, 10**6))
    values = sorted(chance.randrange(distinct) for _ in range(1_000))
    told = values if seed % 3 else [chance.randrange(distinct) for _ in range(1_000)]
    shares = tuple(i / 32 for i in range(33))
    quantiles = tuple(sorted(told)[min(999, int(1_000 * share))] for share in shares)
    kept = KeptColumn(Sketch(chance.choice((10, 500)), 0.5, shares, quantiles))
    for _ in range(10):
        first = chance.randrange(1, 1_000)
        last = min(1_000, first + chance.choice((0, 3, 200)))
        guessed, bracket = kept.sketch.bracket(first, last), kept.bracket(first, last)
        if guessed is None or bracket is None:
            assert guessed is bracket is None
            continue
        before, piece = look(values, guessed), look(values, bracket)
        assert bracket.low <= bracket.high
        assert bracket.start in (None, piece.start)
        if before.holds(first, last):
            assert piece.holds(first, last)
            assert piece.window(first, last, sums=False).values == tuple(values[first - 1 : last])
            assert len(piece.inside) <= len(before.inside)
        kept = kept.count(Known(len(values), pieces=(before, piece)), [bracket])
        assert kept.population == len(values)
        assert all(below == sum(value < point for value in values) for point, below in kept.below.items())

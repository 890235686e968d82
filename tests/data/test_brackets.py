"""Pieces, sketches and brackets, against sorted lists."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from idios.core.domain import LIMIT
from idios.core.summary import Window
from idios.data.arrays import exact_sum
from idios.data.brackets import DEVIATIONS, Bracket, Known, Piece, Sketch, outermost, shares_near


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=40), st.data())
def test_a_piece_is_a_part_of_the_sorted_list(values: list[int], data: st.DataObject) -> None:
    values.sort()
    low = data.draw(st.integers(-10, 9))
    high = data.draw(st.integers(low, 10))
    bracket = Bracket(low, high, *data.draw(st.tuples(st.booleans(), st.booleans())))
    inside = [v for v in values if bracket.first <= v <= bracket.last]
    piece = Piece(
        start=sum(v < low for v in values),
        below=sum(v for v in values if v < low),
        low=low,
        lows=values.count(low) if bracket.tied_low else 0,
        inside=np.array(random.Random(1).sample(inside, len(inside)), np.int64),
        high=high,
        highs=values.count(high) if bracket.tied_high and high > low else 0,
    )
    held = [v for v in values if low <= v <= high]
    assert piece.end - piece.start == len(held) or (low == high and bracket.tied_high and not bracket.tied_low)
    for first in range(1, len(values) + 1):
        for last in range(first, len(values) + 1):
            if piece.holds(first, last):
                expected = Window(first, tuple(values[first - 1 : last]), sum(values[: first - 1]))
                assert piece.window(first, last, sums=True) == expected
                assert Known(pieces=(piece,)).window(first, last, sums=False) == Window(first, expected.values)


@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_sums_do_not_wrap(values: list[int]) -> None:
    assert exact_sum(np.array(values, np.int64)) == sum(values)


def sketch(population: list[int], size: int, places: list[float]) -> Sketch:
    sample = sorted(random.Random(5).sample(population, size))
    shares = shares_near(places)
    values = tuple(sample[max(0, -(-int(share * size) // 1) - 1)] for share in shares)
    return Sketch(size, size / len(population), tuple(shares), values)


@pytest.mark.parametrize("place", [0.001, 0.05, 0.5, 0.9, 0.9999])
def test_a_bracket_holds_its_ranks_and_little_else(place: float) -> None:
    population = [i * 7919 % 100_003 for i in range(100_000)]
    ordered = sorted(population)
    rank = max(1, round(place * len(population)))
    found = sketch(population, 5000, [place]).bracket(rank - 1, rank + 1)
    assert found is not None
    assert found.low <= ordered[max(0, rank - 2)]
    assert ordered[min(rank, len(ordered) - 1)] <= found.high
    inside = sum(found.low <= v <= found.high for v in population)
    assert inside < len(population) * (0.005 + 3 * DEVIATIONS * 0.5 / 5000**0.5)


def test_ties_are_counted_and_not_fetched() -> None:
    population = [5] * 60_000 + list(range(1000, 41_000))
    found = sketch(population, 5000, [0.5]).bracket(50_000, 50_000)
    assert found == Bracket(5, 5, True, True)
    assert found.first > found.last


def test_too_small_a_sample_says_nothing() -> None:
    assert sketch(list(range(1000)), 100, [0.5]).bracket(500, 500) is None


def test_ends_are_open() -> None:
    found = sketch(list(range(100_000)), 5000, [1.0]).bracket(99_999, 100_000)
    assert found is not None
    assert found.high == LIMIT
    assert found.low < 99_999


def test_outermost() -> None:
    inner, outer, beside = Bracket(3, 4), Bracket(1, 9), Bracket(8, 12)
    assert set(outermost([inner, outer, outer, beside])) == {outer, beside}

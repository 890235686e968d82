"""The inverse-sensitivity mechanism of many cells has the balls, the rings and so the law of each cell by itself."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest

from idios.core import inverse_cells
from idios.core.distributions.inverse_sensitivity import InverseSensitivity
from idios.core.domain import Domain
from idios.core.enclosures import Enclosure, exp_minus_levels
from idios.core.inverse import find_balls, make_measure
from idios.core.inverse_cells import Balls, InverseCells
from idios.core.neighbours import Neighbours
from idios.core.sampling import SeededSource
from idios.core.statistics.order import DiscreteQuantile, KthLargest, Median, Quantile
from idios.core.weighted_index import _locate
from tests.core.test_cell_windows import make_cells

draw = random.Random(11)


def make_case(cells: int = 12) -> InverseCells:
    span = draw.choice((3, 10**3, 10**9, 10**17))
    domain = draw.choice((Domain(), Domain(lower=0, upper=span), Domain(lower=-5, centre=draw.choice((0, 7)))))
    statistic = draw.choice((Median(), Quantile(Fraction(1, 3)), DiscreteQuantile(Fraction(1, 4)), KthLargest(3)))
    sizes = [draw.choice((0, 1, 2, 3, 7, 8, 30, 40)) for _ in range(cells)]
    windows = make_cells(sizes, span, domain, draw.choice(list(Neighbours)))
    epsilon = Fraction(draw.choice((1, 3)), draw.choice((1, 2, 7)))
    measure = make_measure(statistic, domain, 1000)
    return InverseCells(windows, statistic, draw.choice((2, 10, 100)), epsilon, measure, draw.choice((1, 1000)))


def enclose(mechanism: InverseSensitivity) -> list[Enclosure]:
    """The weights of all rings and of the refusal."""
    rings = mechanism.rings
    counts = [*rings.masses, mechanism.refusal * mechanism.measure.denominator]
    exponents = [*range(1, len(counts)), len(mechanism.balls)]
    powers = exp_minus_levels(mechanism.epsilon / 2, set(exponents), 900)
    pairs = zip(counts, exponents, strict=True)
    return [(count * powers[exponent][0], count * powers[exponent][1]) for count, exponent in pairs]


def list_words(weights: list[Enclosure]) -> list[int]:
    """Random bits, and those at, beside and near every boundary."""
    words, reached, total = [draw.getrandbits(64) for _ in range(9)], 0, sum(low for low, _ in weights)
    for low, _ in weights[:-1]:
        reached += low
        words += [min(max((reached << 64) // total + d, 0), 2**64 - 1) for d in (-(1 << 30), -1, 0, 1, 1 << 30)]
    return words


def test_balls_and_rings_are_those_of_each_cell_by_itself() -> None:
    certain = 0
    for _ in range(25):
        case = make_case()
        for moves, numbers in case.cells.by_size():
            balls = case.find_balls(moves, numbers)
            for i, cell in enumerate(numbers.tolist()):
                own = find_balls(case.statistic, case.cells[cell], case.distance, 1000)
                assert balls.of(i) == own
                weights = enclose(InverseSensitivity(own, case.epsilon, case.measure, case.refusal))
                words = list_words(weights)
                same = Balls(*(np.repeat(ends[i : i + 1], len(words), 0) for ends in (balls.lows, balls.highs)))
                rings = case.choose(same, np.array(words, np.uint64)).tolist()
                known = [(word, ring) for word, ring in zip(words, rings, strict=True) if ring >= 0]
                assert all(_locate(word, 64, weights) == ring for word, ring in known)
                certain += len(known)
    assert certain > 1000


def test_what_floats_cannot_tell_is_drawn_exactly_from_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(25):
        case = make_case(40)
        drawn = case.draw(SeededSource(seed))
        assert drawn is not None
        with monkeypatch.context() as patch:
            patch.setattr(inverse_cells, "MARGIN", 2.0)
            assert case.draw(SeededSource(seed)) == drawn


def test_a_planted_error_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """What lies below all balls is forgotten."""
    monkeypatch.setattr(inverse_cells._Masses, "below", lambda self, end: np.zeros(len(end.points)))
    with pytest.raises(AssertionError):
        test_balls_and_rings_are_those_of_each_cell_by_itself()


def test_numbers_too_large_for_floats_are_left_to_the_exact_way() -> None:
    cells = make_cells([9, 9], 2**62)
    case = InverseCells(cells, Median(), 5, Fraction(1), make_measure(Median(), Domain(), 1), 1)
    assert case.draw() is None

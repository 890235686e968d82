"""The inverse-sensitivity mechanism of many cells has the balls, the rings and so the law of each cell by itself."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from unittest.mock import Mock

import numpy as np
import pytest

from idios.core import base_measure, inverse_cells
from idios.core.base_measure import BaseMeasure, RoundPoints
from idios.core.distributions.inverse_sensitivity import InverseSensitivity
from idios.core.domain import Domain
from idios.core.enclosures import Enclosure, exp_minus_levels
from idios.core.inverse import find_balls, make_measure
from idios.core.inverse_cells import Balls, InverseCells
from idios.core.neighbours import Neighbours
from idios.core.sampling import SeededSource
from idios.core.statistics.order import DiscreteQuantile, KthLargest, Median, Quantile
from idios.core.weighted_index import _locate
from tests.core.test_base_measure import list_weights
from tests.core.test_cell_windows import make_cells

draw = random.Random(11)


def make_case(cells: int = 12) -> InverseCells:
    span = draw.choice((3, 10**3, 10**9, 10**17))
    some = (Domain(), Domain(lower=0, upper=span), Domain(lower=-5, centre=draw.choice((0, 7))))
    domain = replace(draw.choice(some), step=Fraction(1, draw.choice((1, 10**6))), day=draw.choice((0, 0, 24, 86_400)))
    statistic = draw.choice((Median(), Quantile(Fraction(1, 3)), DiscreteQuantile(Fraction(1, 4)), KthLargest(3)))
    sizes = [draw.choice((0, 1, 2, 3, 7, 8, 30, 40)) for _ in range(cells)]
    windows = make_cells(sizes, span, domain, draw.choice(list(Neighbours)))
    epsilon = Fraction(draw.choice((1, 3)), draw.choice((1, 2, 7)))
    measure = make_measure(statistic, domain, 1000)
    return InverseCells(windows, statistic, draw.choice((2, 10, 100)), epsilon, measure, draw.choice((1, 1000)))


def enclose(mechanism: InverseSensitivity) -> list[Enclosure]:
    """The weights of all rings and of the refusal."""
    counts = [*mechanism.masses, mechanism.refusal * mechanism.measure.denominator]
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
    """What lies below all balls is forgotten, or round points are."""
    with monkeypatch.context() as patch:
        patch.setattr(inverse_cells._Masses, "below", lambda self, end: np.zeros(len(end.places)))
        with pytest.raises(AssertionError):
            test_balls_and_rings_are_those_of_each_cell_by_itself()
    plain = InverseCells._masses
    monkeypatch.setattr(InverseCells, "_masses", property(lambda self: plain.func(self)[:1]))
    with pytest.raises(AssertionError):
        test_balls_and_rings_are_those_of_each_cell_by_itself()


def test_cells_that_lie_in_one_stretch_have_the_same_rings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which is the quicker way, of dates and of incomes."""
    found = []
    for domain, middle, spread in (
        (Domain(), 50_000, 900),
        (Domain(Fraction(1, 10**6)), 50_000 * 10**6, 900 * 10**6),
        (Domain(lower=-10, upper=10**9), -8, 3),
        (Domain(day=86_400 * 10**6), 1_767_225_600 * 10**6, 10**12),
    ):
        plain = make_cells([40] * 9, spread, domain)
        windows = replace(plain, values=plain.values + middle)
        case = InverseCells(windows, Median(), 12, Fraction(1), make_measure(Median(), domain, 1000), 10)
        ((moves, numbers),) = windows.by_size()
        balls, words = case.find_balls(moves, numbers), np.arange(9, dtype=np.uint64) << np.uint64(60)
        quick, shape = [], (9, balls.lows.shape[1] + 1)
        for masses in case._masses:
            one, other = np.zeros(shape), np.zeros(shape)
            masses.add_rings(one, balls)
            with monkeypatch.context() as patch:
                alike = Mock()
                patch.setattr(inverse_cells._Masses, "_add_alike", alike)
                masses.add_rings(other, balls)
                quick.append(alike.called)
                if alike.called:
                    patch.setattr(masses.firsts, "far", np.ones(len(masses.weights), bool))
                    masses.add_rings(other, balls)
            assert np.allclose(one, other, rtol=1e-14, atol=0)
        found.append(any(quick))
        assert len(case.choose(balls, words)) == 9
    assert all(found)


BOUNDED = BaseMeasure(3, 2, low=-4, high=20, rounds=(RoundPoints(grid=4, most=9, share=9),))
SMALL = [BaseMeasure(0, 6, rounds=(RoundPoints(grid=4, most=9, share=8, end=90), RoundPoints(6, 3, 7))), BOUNDED]


@pytest.mark.parametrize("measure", SMALL, ids=str)
def test_every_draw_from_a_mixture_has_the_law(measure: BaseMeasure, monkeypatch: pytest.MonkeyPatch) -> None:
    """The points of each ring, by their weights, and each ring with the weight of its points."""
    windows = make_cells([5, 9, 9, 0], 30)
    case, weights = InverseCells(windows, Median(), 3, Fraction(1), measure, 5), list_weights(measure)
    for moves, numbers in windows.by_size():
        balls = case.find_balls(moves, numbers)
        rings = np.zeros((len(numbers), balls.lows.shape[1] + 1))
        for masses in case._masses:
            masses.add_rings(rings, balls)
        for i in range(len(numbers)):
            law: Counter[tuple[int | None, int]] = Counter()
            for ring, total in enumerate(rings[i].astype(int).tolist()):
                places = iter(range(total))
                monkeypatch.setattr(base_measure, "uniform_below", lambda _, __, places=places: next(places))
                law.update((case._draw_point(balls, i, ring, None), ring) for _ in range(total))
            first = {
                t: next((j for j, (low, high) in enumerate(balls.of(i)) if low <= t <= high), len(balls.of(i)))
                for t in weights
            }
            assert law == Counter({(t, first[t]): weight for t, weight in weights.items()})


def test_numbers_too_large_for_floats_are_left_to_the_exact_way() -> None:
    cells = make_cells([9, 9], 2**62)
    case = InverseCells(cells, Median(), 5, Fraction(1), make_measure(Median(), Domain(), 1), 1)
    assert case.draw() is None

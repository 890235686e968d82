"""Noise of many cells over arrays is that of ``calibrate_cells``, to the last digit."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from idios.core import joint, joint_cells
from idios.core.calibration import Added
from idios.core.cell_windows import CellWindows
from idios.core.distributions import DiscreteLaplace
from idios.core.domain import Domain
from idios.core.joint import calibrate_cells
from idios.core.joint_cells import calibrate_windows
from idios.core.joint_loss import Component
from idios.core.neighbours import Neighbours
from idios.core.statistics.order import DiscreteQuantile, KthLargest, Maximum, Median, OrderStatistic, Quantile
from tests.core.test_cell_windows import make_cells

draw = random.Random(7)
STATISTICS: list[OrderStatistic] = [
    Median(),
    Quantile(Fraction(1, 3)),
    DiscreteQuantile(Fraction(1, 4)),
    KthLargest(2),
    Maximum(),
]


def agree(cells: CellWindows, statistic: OrderStatistic, floor: int, epsilon: Fraction) -> bool:
    """Whether both ways say the same; also whether one was left to the other."""
    weight = Fraction(2, 3)
    found = calibrate_windows(cells, statistic, weight, Fraction(floor), epsilon)
    if found is None:
        return True
    components = [[Component(statistic, summary, weight, Fraction(floor), "x")] for summary in cells]
    expected = [part for (part,) in calibrate_cells(components, epsilon)]
    for i, part in enumerate(expected):
        if found.answered[i] != isinstance(part, Added):
            return False
        if isinstance(part, Added):
            scale = Fraction(*found.scale(i))
            assert isinstance(part.noise, DiscreteLaplace)
            if (int(found.values[i]), scale) != (part.value, part.noise.scale):
                return False
    return True


def make_case() -> tuple[CellWindows, OrderStatistic, int, Fraction]:
    span = draw.choice((3, 1000, 2**61))
    sizes = [draw.choice((0, 1, 2, 3, 4, 7, 8)) for _ in range(12)]
    domain = draw.choice((Domain(), Domain(lower=0, upper=span), Domain(lower=-7)))
    cells = make_cells(sizes, span, domain, draw.choice(list(Neighbours)), draw.choice((0, 1, 50)))
    return cells, draw.choice(STATISTICS), draw.choice((0, 1, 3)), Fraction(draw.choice((1, 2)))


def test_generated_cells_have_the_noise_that_cells_one_by_one_have() -> None:
    assert all(agree(*make_case()) for _ in range(300))


def test_very_many_cells_have_the_simple_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joint, "MOST_WORK", 5)
    assert all(agree(*make_case()) for _ in range(60))


def test_a_planted_error_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """An addition that is forgotten."""
    original = joint_cells._FittedCells.count_loss
    forgotten = {(0, 1): (1, 0), (1, 0): (1, 0), (1, 1): (1, 1)}
    monkeypatch.setattr(
        joint_cells._FittedCells, "count_loss", lambda self, pair, active: original(self, forgotten[pair], active)
    )
    assert not all(agree(*make_case()) for _ in range(300))

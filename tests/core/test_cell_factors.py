"""ρ of many cells over arrays is what one cell after the other finds, to the last digit."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest

from idios.core import joint, joint_cells
from idios.core.joint import FINEST, TAUS, find_factors
from idios.core.joint_cells import divide_up, find_cell_factors
from idios.core.neighbours import Neighbours

draw = random.Random(3)


def make_losses(cells: int) -> dict[tuple[int, int], list[int]]:
    """What cells lose: many alike, all different, or a few that lose much more than the others."""
    if draw.random() < 0.5:
        rare = draw.choice((0.01, 0.05, 0.3))
        leave, enter = (
            [FINEST - draw.randrange(9) if draw.random() < rare else draw.randrange(FINEST // 8) for _ in range(cells)]
            for _ in range(2)
        )
        return {(0, 1): enter, (1, 0): leave, (1, 1): [FINEST] * cells}
    least = draw.choice((0, 1, FINEST // 3, FINEST - 5))
    choices = [draw.randrange(least, FINEST + 1) for _ in range(draw.choice((1, 3, cells)))]
    leave, enter = ([draw.choice(choices) for _ in range(cells)] for _ in range(2))
    return {(0, 1): enter, (1, 0): leave, (1, 1): [FINEST] * cells}


def agree(cells: int, neighbours: Neighbours) -> bool:
    losses = make_losses(cells)
    if neighbours is Neighbours.ADD_REMOVE:
        del losses[1, 1]
        losses[0, 1] = [max(1, loss) for loss in losses[0, 1]]
    found = find_cell_factors({pair: np.array(of_cells) for pair, of_cells in losses.items()}, neighbours)
    return found is not None and found.tolist() == find_factors(losses, (Fraction(1),), neighbours)


def lower_alike(cells: int) -> bool:
    """Whether cells are lowered alike, from factors for a τ that leaves room."""
    losses, tau = make_losses(cells), draw.randrange(1, TAUS)
    leave, enter, change = losses[1, 0], losses[0, 1], [draw.randrange(1, FINEST // 2) for _ in range(cells)]
    factors = [
        max(needed, -(-out * TAUS // tau), -(-into * TAUS // (TAUS - tau)))
        for out, into, needed in zip(leave, enter, change, strict=True)
    ]
    found = joint_cells._lower(*(np.array(numbers) for numbers in (factors, leave, enter, change)))
    joint._lower(factors, leave, enter, change)
    return found is not None and found.tolist() == factors


def test_generated_losses_have_the_factors_that_cells_one_by_one_have() -> None:
    for neighbours in Neighbours:
        assert all(agree(draw.choice((2, 3, 10, 70, 300)), neighbours) for _ in range(150))


def test_cells_are_lowered_as_they_are_one_after_the_other() -> None:
    assert all(lower_alike(draw.choice((2, 3, 10, 70, 300))) for _ in range(300))


def test_cells_that_change_what_others_see_are_left_to_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joint_cells, "MOST_BLOCKS", 1)
    losses = {pair: np.array(of_cells) for pair, of_cells in make_losses(1000).items()}
    assert find_cell_factors(losses, Neighbours.REPLACE) is None
    beyond = {pair: np.array([8 * FINEST, 1]) for pair in losses}
    assert find_cell_factors(beyond, Neighbours.REPLACE) is None


def test_a_planted_error_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A block goes on as if nothing had changed."""
    nothing = np.zeros(1, bool)
    monkeypatch.setattr(joint_cells._Greatest, "would_change", lambda self, cells, numbers: nothing)
    assert not all(lower_alike(50) for _ in range(100))


def test_long_division_is_exact() -> None:
    for _ in range(500):
        most = draw.choice((5, 2**30, 2**52))
        divisors = [draw.randrange(1, most) for _ in range(5)]
        numbers = [draw.randrange(2 * divisor + 1) for divisor in divisors]
        found = divide_up(np.array(numbers), np.array(divisors), 40)
        assert found.tolist() == [
            -(-number * 2**40 // divisor) for number, divisor in zip(numbers, divisors, strict=True)
        ]

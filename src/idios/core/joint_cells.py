"""One order statistic in many cells, calibrated as in ``joint`` and to the same numbers, over arrays of cells.

For one statistic, single records and Laplace noise, with w its share of ε, what ``joint`` computes of a cell is short.
Let V be the value, L and H what one record can make of it, A = max(H − V, V − L), F the floor and S = max(A, F).
Then k = w/S and φ = k·F, so that in steps of 1/FINEST

    the loss of a record that leaves    ⌈max(step of a removal, F)·FINEST/S⌉      likewise of one that enters
    the loss of one that changes        the same with the greatest step of all splits

where a step is that of ``joint_loss``: max(hi − V, V − lo) at the two readings of Proposition 1, and A where the
statistic may become undefined. All cells of one size read the same ranks: their values are columns of an array. Where
64 bits may not hold a number, arrays hold Python's own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import isinf

import numpy as np
from numpy.typing import NDArray

from idios.core.cell_windows import CellWindows
from idios.core.joint import FINEST, find_factors, is_too_much
from idios.core.neighbours import Moves, Neighbours
from idios.core.statistics.order import OrderStatistic
from idios.core.summary import NARROW, Whole

Read = Whole | int | float


@dataclass(frozen=True)
class CellNoises:
    """By cell, whether it is answered, its value, and the scale of its noise as a multiple of 1/denominator."""

    answered: NDArray[np.bool_]
    values: Whole
    numerators: Whole
    denominator: int


def calibrate_windows(
    cells: CellWindows, statistic: OrderStatistic, weight: Fraction, floor: Fraction, epsilon: Fraction
) -> CellNoises | None:
    """What ``calibrate_cells`` says of cells with this one component; None where it has to be asked."""
    parts = statistic.position(1)[1]
    if floor.denominator != 1 or statistic.resolution() != parts:
        return None
    fitted = _FittedCells(cells, statistic, parts, int(floor))
    fitted.fit()
    active = np.flatnonzero(fitted.answered & (fitted.sensitivities > 0))
    if len(active) < 2:
        return None
    neighbours = cells.make_moves(1).neighbours
    factors: Whole = np.full(len(cells), FINEST, object)
    if is_too_much(1, [1] * len(cells)):
        factors[active] = FINEST * (2 if neighbours is Neighbours.REPLACE else 1)
    else:
        losses = {pair: fitted.count_loss(pair, active) for pair in ((0, 1), (1, 0), (1, 1))}
        if neighbours is Neighbours.ADD_REMOVE:
            del losses[1, 1]
        factors[active] = find_factors(losses, (Fraction(1),), neighbours)
    each = weight * epsilon
    numerators = factors * fitted.sensitivities.astype(object) * each.denominator
    return CellNoises(fitted.answered, fitted.values, numerators, FINEST * each.numerator)


class _FittedCells:
    """Values, sensitivities and steps of all cells, filled in size by size."""

    def __init__(self, cells: CellWindows, statistic: OrderStatistic, parts: int, floor: int) -> None:
        self.cells, self.statistic, self.parts, self.floor = cells, statistic, parts, floor
        # a reading is at most parts·greatest, and a step the difference of two
        kind = np.int64 if 2 * max(parts * cells.greatest, floor) < NARROW else object
        self.answered = np.zeros(len(cells), bool)
        self.values, self.sensitivities, self.removals, self.additions, self.steps = (
            np.zeros(len(cells), kind) for _ in range(5)
        )

    def fit(self) -> None:
        for moves, cells in self.cells.by_size():
            if moves.size >= self.statistic.least_size:
                self._fit_size(moves, cells)

    def _fit_size(self, moves: Moves, cells: NDArray[np.int64]) -> None:
        size, kind = moves.size, self.values.dtype

        def read(other: int, offset: int) -> Read:
            """The statistic of a list of another size whose rank r is rank r + offset here."""
            rank, rest = divmod(self.statistic.position(other)[0], self.parts)
            below = self._at(cells, size, rank + offset)
            if isinstance(below, float):
                return below
            if not rest:
                return self.parts * below
            above = self._at(cells, size, rank + offset + 1)
            return above if isinstance(above, float) else (self.parts - rest) * below + rest * above

        value = read(size, 0)
        defined = moves.sizes(1)[0] >= self.statistic.least_size
        lower, upper = self._find_ends(moves, read, defined)
        if any(isinstance(end, float) and isinf(end) for end in (lower, upper)):
            return
        reach = _widen(value, lower, upper)

        def find_step(other: int, low: int, high: int) -> Read:
            return _widen(value, read(other, low), read(other, high)) if defined else reach

        nothing = np.zeros(len(cells), kind)
        removal = find_step(size - 1, 0, 1) if moves.most_removed(1) else nothing
        addition = find_step(size + 1, -1, 0) if moves.most_added(1) else nothing
        replacement = reach if moves.neighbours is Neighbours.REPLACE else nothing
        self.answered[cells] = True
        self.values[cells] = value
        self.sensitivities[cells] = np.maximum(reach, self.floor)
        self.removals[cells], self.additions[cells] = removal, addition
        self.steps[cells] = np.maximum(np.maximum(removal, addition), replacement)

    def _at(self, cells: NDArray[np.int64], size: int, rank: int) -> Read:
        found = self.cells.at(cells, size, rank)
        return found.astype(self.values.dtype) if isinstance(found, np.ndarray) else found

    def _find_ends(self, moves: Moves, read: Callable[[int, int], Read], defined: bool) -> tuple[Read, Read]:
        """lo_1 and hi_1, as ``OrderStatistic.envelope`` says."""
        size, domain = moves.size, self.cells.domain
        if not defined:
            low, high = (self.statistic.place(end) for end in self.statistic.range(domain))
            return low, high
        if moves.neighbours is Neighbours.REPLACE:
            return read(size, -1), read(size, 1)
        return (
            _choose(np.minimum, read(size + 1, -1), read(size - 1, 0)),
            _choose(np.maximum, read(size + 1, 0), read(size - 1, 1)),
        )

    def count_loss(self, pair: tuple[int, int], active: NDArray[np.int64]) -> list[int]:
        """What is lost to d drops and e places in some cells, in steps of 1/FINEST."""
        steps = {(1, 0): self.removals, (0, 1): self.additions, (1, 1): self.steps}[pair]
        lost = np.maximum(steps[active], self.floor).astype(object) * FINEST
        found: list[int] = (-(-lost // self.sensitivities[active])).tolist()
        return found


def _widen(value: Read, low: Read, high: Read) -> Read:
    """max(high − value, value − low)."""
    found: Whole = np.maximum(high - value, value - low)
    return found


def _choose(extreme: np.ufunc, one: Read, other: Read) -> Read:
    """The lesser or the greater of two readings; an infinite one is either that or no number at all."""
    for end in (one, other):
        if isinstance(end, float):
            return end
    found: Whole = extreme(one, other)
    return found

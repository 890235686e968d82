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

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import isinf

import numpy as np
from numpy.typing import NDArray

from idios.core.cell_windows import CellWindows
from idios.core.joint import FINEST, TAUS, find_best_tau, find_factors, is_too_much
from idios.core.many_scales import GREAT
from idios.core.neighbours import Moves, Neighbours
from idios.core.statistics.order import OrderStatistic
from idios.core.summary import NARROW, Whole

# ρ_c of many cells with single records, as ``joint.find_factors`` finds them, over arrays of cells.
#
# The pass that lowers every ρ_c takes one cell after the other, and what a cell needs depends on the others by the
# greatest of their ratios alone. So cells are taken in blocks: each is lowered as if nothing had changed before it,
# which is right up to the first cell that changes one of the two greatest ratios. The next block begins after it.


MOST = 4 * FINEST
"""Losses beyond are left to Python's own numbers."""
BLOCK = 64
MOST_BLOCKS = 1000
"""Beyond, one cell after the other takes no longer."""

Numbers = NDArray[np.int64]


def find_cell_factors(losses: Mapping[tuple[int, int], Numbers], neighbours: Neighbours) -> Numbers | None:
    """ρ_c of every cell in steps of 1/FINEST, from what each loses; None where this is not the way to find them."""
    if max(int(of_cells.max(initial=0)) for of_cells in losses.values()) > MOST:
        return None
    if neighbours is Neighbours.ADD_REMOVE:
        return np.maximum(losses[1, 0], losses[0, 1])
    tau = find_best_tau(losses, (Fraction(1),))
    leave, enter, change = losses[1, 0], losses[0, 1], losses[1, 1]
    priced = (-(-TAUS * leave // tau), -(-TAUS * enter // (TAUS - tau)), change)
    factors: Numbers = np.maximum.reduce(priced)
    return _lower(factors, leave, enter, change)


def divide_up(numbers: Numbers, divisors: Numbers, bits: int) -> Numbers:
    """⌈numbers·2^bits/divisors⌉, by long division; the divisors are below 2^61, and so is what is found.

    >>> divide_up(np.array([7, 6]), np.array([3, 3]), 40).tolist() == [-(-7 * 2**40 // 3), 2**41]
    True
    """
    found, rest = np.divmod(numbers, divisors)
    room = 62 - int(divisors.max(initial=1)).bit_length()
    while bits:
        taken = min(room, bits)
        digits, rest = np.divmod(rest << taken, divisors)
        found, bits = (found << taken) + digits, bits - taken
    rounded: Numbers = found + (rest > 0)
    return rounded


def _lower(factors: Numbers, leave: Numbers, enter: Numbers, change: Numbers) -> Numbers | None:
    """Lower each ρ_c, one after the other, as far as the other cells let it."""
    leaving, entering = _Greatest(_find_ratios(leave, factors)), _Greatest(_find_ratios(enter, factors))
    at, width, blocks = 0, BLOCK, 0
    while at < len(factors):
        blocks += 1
        if blocks > MOST_BLOCKS:
            return None
        cells = np.arange(at, min(at + width, len(factors)))
        before, leaves, enters = factors[cells], leave[cells], enter[cells]
        needed = np.maximum.reduce(
            (
                change[cells],
                _need(leaves, entering.beside(cells), before),
                _need(enters, leaving.beside(cells), before),
            )
        )
        after = np.minimum(needed, before)
        left, entered = _find_ratios(leaves, after), _find_ratios(enters, after)
        changed = np.flatnonzero(leaving.would_change(cells, left) | entering.would_change(cells, entered))
        done = int(changed[0]) + 1 if len(changed) else len(cells)
        factors[cells[:done]] = after[:done]
        leaving.numbers[cells[:done]], entering.numbers[cells[:done]] = left[:done], entered[:done]
        at, width = at + done, BLOCK if len(changed) else 2 * width
        if len(changed):
            leaving.note(at - 1)
            entering.note(at - 1)
    return factors


def _find_ratios(losses: Numbers, factors: Numbers) -> Numbers:
    """⌈loss/ρ⌉ in steps of 1/FINEST; a cell that loses nothing has no ratio."""
    return divide_up(losses, np.maximum(factors, 1), FINEST.bit_length() - 1)


def _need(losses: Numbers, others: Numbers, before: Numbers) -> Numbers:
    """The ρ with which a loss leaves room for the greatest ratio of the others; where there is none, it stays."""
    room = FINEST - others
    found = divide_up(losses, np.maximum(room, 1), FINEST.bit_length() - 1)
    needed: Numbers = np.where(losses > 0, np.where(room > 0, found, before), 0)
    return needed


class _Greatest:
    """The greatest of some numbers that only grow, leaving out any one of them."""

    def __init__(self, numbers: Numbers) -> None:
        self.numbers = numbers
        self._place = int(np.argmax(numbers))
        self._first = int(numbers[self._place])
        self._second = int(np.delete(numbers, self._place).max(initial=0))

    def beside(self, cells: Numbers) -> Numbers:
        return np.where(cells == self._place, self._second, self._first)

    def would_change(self, cells: Numbers, numbers: Numbers) -> NDArray[np.bool_]:
        """Which of the numbers, put in place one at a time, would change what the others see."""
        changed: NDArray[np.bool_] = (numbers > self._second) & (numbers > self.numbers[cells])
        return changed

    def note(self, cell: int) -> None:
        """Take account of one number that grew."""
        number = int(self.numbers[cell])
        if cell == self._place:
            self._first = number
        elif number > self._first:
            self._place, self._first, self._second = cell, number, self._first
        else:
            self._second = max(self._second, number)


SHORT = 2**52
"""Below, long division takes few steps."""

CHANGES = (-1, 0, 1)
"""How many values a cell has more after one change."""

Read = Whole | int | float
Place = int | NDArray[np.int64]


@dataclass(frozen=True)
class CellNoises:
    """By cell, whether it is answered, its value, and the scale of its noise: factor·sensitivity·``quotient``."""

    answered: NDArray[np.bool_]
    values: Whole
    factors: Whole
    sensitivities: Whole
    quotient: Fraction

    def scale(self, cell: int) -> tuple[int, int]:
        """The scale of a cell's noise as numerator and denominator, which may have common factors."""
        numerator = int(self.factors[cell]) * int(self.sensitivities[cell]) * self.quotient.numerator
        return numerator, self.quotient.denominator

    def list_scales(self, cells: NDArray[np.int64]) -> NDArray[np.float64]:
        """The scales of some cells as floats, which are at most 5 roundings off."""
        if self.factors.dtype == object or self.sensitivities.dtype == object:
            return np.array([float(min(Fraction(*self.scale(cell)), GREAT)) for cell in cells.tolist()])
        factors, sensitivities = (numbers[cells].astype(np.float64) for numbers in (self.factors, self.sensitivities))
        return factors * sensitivities * float(self.quotient)


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
    factors: Whole = np.full(len(cells), FINEST, np.int64)
    if is_too_much(1, [1] * len(cells)):
        factors[active] = FINEST * (2 if neighbours is Neighbours.REPLACE else 1)
    else:
        losses = {pair: fitted.count_loss(pair, active) for pair in ((0, 1), (1, 0), (1, 1))}
        if neighbours is Neighbours.ADD_REMOVE:
            del losses[1, 1]
        factors = _spread(_find_factors(losses, neighbours), active, len(cells))
    return CellNoises(fitted.answered, fitted.values, factors, fitted.sensitivities, 1 / (weight * epsilon * FINEST))


def _find_factors(losses: Mapping[tuple[int, int], Whole], neighbours: Neighbours) -> Whole:
    if all(of_cells.dtype != object for of_cells in losses.values()):
        found = find_cell_factors(losses, neighbours)
        if found is not None:
            return found
    listed = {pair: of_cells.tolist() for pair, of_cells in losses.items()}
    return np.array(find_factors(listed, (Fraction(1),), neighbours), object)


def _spread(found: Whole, active: NDArray[np.int64], size: int) -> Whole:
    """What is found of some cells, among all; of the others 1."""
    factors: Whole = np.full(size, FINEST, found.dtype)
    factors[active] = found
    return factors


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
        """Cells whose ranks are all there are read together, the others by size."""
        inner: list[NDArray[np.int64]] = []
        for moves, cells in self.cells.by_size():
            if moves.size < self.statistic.least_size:
                continue
            if self._is_inner(moves):
                inner.append(cells)
            else:
                self._fit(moves, cells, {change: self._find_place(moves.size + change) for change in CHANGES})
        if inner:
            cells = np.concatenate(inner)
            sizes = [int(self.cells.sizes[alike[0]]) for alike in inner]
            times = [len(alike) for alike in inner]
            places: dict[int, tuple[Place, Place]] = {}
            for change in CHANGES:
                found = np.array([self._find_place(size + change) for size in sizes], np.int64)
                places[change] = np.repeat(found[:, 0], times), np.repeat(found[:, 1], times)
            self._fit(self.cells.make_moves(sizes[0]), cells, places)

    def _find_place(self, size: int) -> tuple[int, int]:
        """The rank that the statistic reads of so many values, and in parts how far it goes to the next."""
        return divmod(self.statistic.position(size)[0], self.parts)

    def _is_inner(self, moves: Moves) -> bool:
        """Whether every reading of cells of one size is of ranks that they have."""
        if moves.sizes(1)[0] < self.statistic.least_size or not moves.most_removed(1) or not moves.most_added(1):
            return False
        (fewer, _), (rank, _), (more, _) = (self._find_place(moves.size + change) for change in CHANGES)
        return min(fewer, rank - 1, more - 1) >= 1 and max(fewer + 2, rank + 2, more + 1) <= moves.size

    def _fit(self, moves: Moves, cells: NDArray[np.int64], places: Mapping[int, tuple[Place, Place]]) -> None:
        """Fit cells of one size; or of any, where each reads ranks that it has, and ``places`` are those of each."""
        kind = self.values.dtype

        def read(change: int, offset: int) -> Read:
            """The statistic of a list of that many more values whose rank r is rank r + offset here."""
            rank, rest = places[change]
            below = self._at(cells, moves.size, rank + offset)
            if isinstance(below, float):
                return below
            if isinstance(rest, int) and not rest:
                return self.parts * below
            above = self._at(cells, moves.size, rank + offset + (rest > 0))
            return above if isinstance(above, float) else (self.parts - rest) * below + rest * above

        value = read(0, 0)
        defined = moves.sizes(1)[0] >= self.statistic.least_size
        lower, upper = self._find_ends(moves, read, defined)
        if any(isinstance(end, float) and isinf(end) for end in (lower, upper)):
            return
        reach = _widen(value, lower, upper)

        def find_step(change: int, low: int, high: int) -> Read:
            return _widen(value, read(change, low), read(change, high)) if defined else reach

        nothing = np.zeros(len(cells), kind)
        removal = find_step(-1, 0, 1) if moves.most_removed(1) else nothing
        addition = find_step(1, -1, 0) if moves.most_added(1) else nothing
        replacement = reach if moves.neighbours is Neighbours.REPLACE else nothing
        self.answered[cells] = True
        self.values[cells] = value
        self.sensitivities[cells] = np.maximum(reach, self.floor)
        self.removals[cells], self.additions[cells] = removal, addition
        self.steps[cells] = np.maximum(np.maximum(removal, addition), replacement)

    def _at(self, cells: NDArray[np.int64], size: int, rank: Place) -> Read:
        found = self.cells.at(cells, size, rank) if isinstance(rank, int) else self.cells.pick(cells, rank)
        return found.astype(self.values.dtype) if isinstance(found, np.ndarray) else found

    def _find_ends(self, moves: Moves, read: Callable[[int, int], Read], defined: bool) -> tuple[Read, Read]:
        """lo_1 and hi_1, as ``OrderStatistic.envelope`` says."""
        if not defined:
            low, high = (self.statistic.place(end) for end in self.statistic.range(self.cells.domain))
            return low, high
        if moves.neighbours is Neighbours.REPLACE:
            return read(0, -1), read(0, 1)
        return (
            _choose(np.minimum, read(1, -1), read(-1, 0)),
            _choose(np.maximum, read(1, 0), read(-1, 1)),
        )

    def count_loss(self, pair: tuple[int, int], active: NDArray[np.int64]) -> Whole:
        """What is lost to d drops and e places in some cells, in steps of 1/FINEST."""
        steps = {(1, 0): self.removals, (0, 1): self.additions, (1, 1): self.steps}[pair]
        lost, sensitivities = np.maximum(steps[active], self.floor), self.sensitivities[active]
        if lost.dtype != object and sensitivities.max() < SHORT and (lost <= 2 * sensitivities).all():
            return divide_up(lost, sensitivities, FINEST.bit_length() - 1)
        found: Whole = -(-lost.astype(object) * FINEST // sensitivities)
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

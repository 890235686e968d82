"""ρ_c of many cells with single records, as ``joint.find_factors`` finds them, over arrays of cells.

The pass that lowers every ρ_c takes one cell after the other, and what a cell needs depends on the others by the
greatest of their ratios alone. So cells are taken in blocks: each is lowered as if nothing had changed before it, which
is right up to the first cell that changes one of the two greatest ratios. The next block begins after it.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from idios.core.joint import FINEST, TAUS, find_best_tau
from idios.core.neighbours import Neighbours

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

"""Smooth sensitivity, the standard-DP baseline of the paper (Nissim, Raskhodnikova, Smith 2007).

    S_β(D) = max_k e^{−βk}·(greatest local sensitivity at distance k)

under replace, for a column with bounds L and U. With x_j = L for j < 1 and U for j > n:

    median, odd n, m = (n+1)/2:    max over i ≤ m ≤ j of (x_j − x_i)·e^{−β(j−i−1)}
    median, even n, h = n/2:       max over i ≤ h < j, j−i ≥ 2, of (x_j − x_i)/2·e^{−β(j−i−2)}
    maximum:                       max over k of e^{−βk}·max(U − x_{n−k}, x_n − x_{n−k−1})

It takes neither O(n²) nor all the data. Pairs of ranks further than K from the middle weigh at most
(U−L)·e^{−βK}, so a window of ranks suffices, widened until that cannot win. Inside it, the best j for
a given i never moves up when i moves down (that adds (x_i − x_i′)·e^{−βj}, which falls with j, to what j is
chosen by), so divide and conquer finds all row maxima in O(K log K).

This is a yardstick for comparisons, in floats; no answer is ever calibrated with it.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from idios.errors import InvalidInput

Floats = NDArray[np.float64]


def median_smooth_sensitivity(values: ArrayLike, lower: float, upper: float, beta: float) -> float:
    """S_β of the median of values within [lower, upper].

    >>> median_smooth_sensitivity([1.0, 4.0, 5.0], 0.0, 10.0, beta=1.0)  # (4−1) > (10−4)·e^−1
    3.0
    """
    data = _checked(values, lower, upper, beta)
    n = len(data)
    below = (n + 1) // 2  # the rank of the (lower) middle; the upper one follows for even n
    above = n // 2 + 1
    odd = n % 2
    window = 16
    while True:
        first, last = max(below - window, 0), min(above + window, n + 1)
        ranks = _ranks(data, first, last, lower, upper)
        left, right = ranks[: below - first + 1], ranks[above - first :]
        best = _best_pair(left, right, beta, nearest=1 if odd else 2, gap=above - below)
        best = best if odd else best / 2
        if (first == 0 and last == n + 1) or (upper - lower) * math.exp(-beta * window) <= best:
            return best
        window *= 2


def maximum_smooth_sensitivity(values: ArrayLike, lower: float, upper: float, beta: float) -> float:
    """S_β of the maximum of values within [lower, upper].

    >>> maximum_smooth_sensitivity([1.0, 4.0, 5.0], 0.0, 10.0, beta=1.0)
    5.0
    """
    data = _checked(values, lower, upper, beta)
    n = len(data)
    window = 16
    while True:
        depth = min(window, n)
        top = _ranks(data, n - depth, n, lower, upper)[::-1]  # x_n, x_{n−1}, …
        here = np.maximum(upper - top[:-1], top[0] - top[1:]) * np.exp(-beta * np.arange(depth))
        rest = (upper - lower) * math.exp(-beta * depth)
        best = float(here.max(initial=0.0))
        if depth == n:
            return max(best, rest)  # all values changed: x_0 and below are the lower bound
        if rest <= best:
            return best
        window *= 2


def _checked(values: ArrayLike, lower: float, upper: float, beta: float) -> Floats:
    data = np.asarray(values, dtype=np.float64)
    if data.ndim != 1 or not len(data):
        raise InvalidInput("smooth sensitivity needs a list of at least one number")
    if not (math.isfinite(lower) and math.isfinite(upper) and lower <= upper):
        raise InvalidInput("smooth sensitivity needs finite bounds, lower ≤ upper")
    if not beta > 0:
        raise InvalidInput(f"beta must be greater than 0, got {beta}")
    if data.min() < lower or data.max() > upper:
        raise InvalidInput("smooth sensitivity needs all values within the bounds")
    return data


def _ranks(data: Floats, first: int, last: int, lower: float, upper: float) -> Floats:
    """x_first, …, x_last with rank 0 the lower bound and rank n+1 the upper."""
    n = len(data)
    start, stop = max(first, 1) - 1, min(last, n)
    inner = np.sort(np.partition(data, [start, stop - 1])[start:stop])
    ends = [[lower]] if first < 1 else [], [[upper]] if last > n else []
    return np.concatenate([*ends[0], inner, *ends[1]])


def _best_pair(left: Floats, right: Floats, beta: float, nearest: int, gap: int) -> float:
    """The greatest (right_j − left_i)·e^{−β(distance − nearest)}, distance counted in ranks.

    ``left`` ends, and ``right`` begins, at the middle; their ends are ``gap`` ranks apart (0 if it is the same).
    """
    backwards = left[::-1]
    steps = np.arange(len(right))

    def row(i: int, start: int, stop: int) -> tuple[int, float]:
        distance = i + gap + steps[start:stop]
        # a pair nearer than that is no pair of the formula, and its difference is covered by the next one
        weights = np.where(distance >= nearest, np.exp(-beta * np.maximum(distance - nearest, 0)), 0.0)
        weighed = (right[start:stop] - backwards[i]) * weights
        j = int(weighed.argmax())
        return start + j, float(weighed[j])

    return _row_maxima(row, len(backwards), len(right))


def _row_maxima(row: Callable[[int, int, int], tuple[int, float]], rows: int, columns: int) -> float:
    """The maximum over all rows, whose best column never moves right from one row to the next."""
    best = -math.inf
    pending = [(0, rows, 0, columns)]
    while pending:
        top, bottom, start, stop = pending.pop()
        if top >= bottom:
            continue
        middle = (top + bottom) // 2
        column, value = row(middle, start, stop)
        best = max(best, value)
        pending += [(top, middle, column, stop), (middle + 1, bottom, start, column + 1)]
    return best

"""Discrete Laplace noise of many scales, one draw each, exactly.

``sampling`` computes the digits of forty probabilities for each scale, which pays where a scale is drawn from often.
Here one list of digits serves all scales.

1. Let E be exponential, Pr(E ≥ t) = e^(−t). Then ⌊s·E⌋ is geometric with a = e^(−1/s), for any s > 0: it is at least
   g where E ≥ g/s, that is with probability a^g.
2. The difference of two independent ones is discrete Laplace: Σ_g (1−a)²·a^g·a^(g+|k|) = (1−a)/(1+a)·a^|k|.
3. By 1. with s = 2^m, the first m binary places of E are ⌊2^m·E⌋, which is geometric, and its binary digits are
   independent (``sampling``, 3.). So further places can be drawn later: the last digits of ⌊2^(m+n)·E⌋ do not depend on
   ⌊2^m·E⌋, which are its first.
4. With G = ⌊2^m·E⌋, s·E lies from s·G/2^m on and below s·(G + 1)/2^m. Where all numbers there have one floor, that is
   the draw; otherwise more places of E are drawn. They settle it with probability 1: s·E is a whole number with none.
5. Nearly always floats tell that floor. Let x be the float of s·G/2^64: from the float of s, at most 8 roundings off,
   and from G/2^64 = ⌊E⌋ + places/2^64, of two floats that are not negative and rounded once each, their sum and the
   product once more, x is at most 12 roundings off, less than 2^(−48) of itself. So all numbers of 4. lie between
   x·(1 − 2^(−47)) and x·(1 + 2^(−47)) + s·2^(−63), whatever is rounded in computing these. Where both have one floor,
   below 2^52, that is the draw. Elsewhere whole numbers decide as in 4. (Of a scale below 2^(−900), which a float may
   lack, the floor is 0 both ways.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from idios.core.sampling import RandomSource, draw_exponentials, geometric
from idios.core.summary import Whole

PLACES = 64
"""How many binary places of E are drawn at once."""
GREAT = Fraction(2**900)
"""A scale from here on is never told from floats, and this stands for it in them."""


def draw_discrete_laplaces(scales: Sequence[Fraction], source: RandomSource | None = None) -> list[int]:
    """One draw of Pr(X = k) = (1−a)/(1+a)·a^|k|, a = e^(−1/scale), for each scale ≥ 0 (0 gives 0), all independent.

    >>> from idios.core.sampling import SeededSource
    >>> draw_discrete_laplaces([Fraction(0), Fraction(10, 3), Fraction(10**30)], SeededSource(1))
    [0, 5, -1313033853981699816263888194139]
    """
    floats = np.array([float(min(scale, GREAT)) for scale in scales])
    drawn: list[int] = draw_scaled(floats, lambda i: scales[i].as_integer_ratio(), source).tolist()
    return drawn


def draw_scaled(
    floats: NDArray[np.float64], find_scale: Callable[[int], tuple[int, int]], source: RandomSource | None = None
) -> Whole:
    """The same, where a scale is a quotient: each as a float, at most 8 roundings off, and exactly when asked."""
    places, wholes = draw_exponentials(2 * len(floats), source)
    scales = np.repeat(floats, 2)
    near = scales * (wholes.astype(np.float64) + places.astype(np.float64) * 2.0**-64)
    least, most = np.floor(near * (1 - 2.0**-47)), np.floor(near * (1 + 2.0**-47) + scales * 2.0**-63)
    clear = (least == most) & (most < 2.0**52)
    drawn: Whole = np.where(clear, least, 0).astype(np.int64)
    if unclear := np.flatnonzero(~clear).tolist():
        exact = [
            _multiply_down(numerator, denominator << PLACES, int(wholes[i]) << PLACES | int(places[i]), source)
            for i in unclear
            for numerator, denominator in [find_scale(i // 2)]
        ]
        if max(exact) >= 2**62:
            drawn = drawn.astype(object)
        drawn[unclear] = exact
    noise: Whole = drawn[::2] - drawn[1::2]
    return noise


def _multiply_down(numerator: int, denominator: int, exponential: int, source: RandomSource | None) -> int:
    """⌊s·E⌋ with s = 2^m·numerator/denominator, where ``exponential`` are the first m places of E."""
    places = PLACES
    while True:
        least, rest = divmod(exponential * numerator, denominator)
        if rest + numerator <= denominator or numerator == 0:
            return least
        places, denominator = places + PLACES, denominator << PLACES
        more = int(geometric(Fraction(1, 1 << places), source=source))
        exponential = (exponential << PLACES) | (more & ((1 << PLACES) - 1))

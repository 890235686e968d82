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
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from idios.core.sampling import Source, geometric

PLACES = 64
"""How many binary places of E are drawn at once."""


def draw_discrete_laplaces(scales: Sequence[Fraction], source: Source | None = None) -> list[int]:
    """One draw of Pr(X = k) = (1−a)/(1+a)·a^|k|, a = e^(−1/scale), for each scale ≥ 0 (0 gives 0), all independent.

    >>> from idios.core.sampling import SeededSource
    >>> draw_discrete_laplaces([Fraction(0), Fraction(10, 3), Fraction(10**30)], SeededSource(1))
    [0, 5, -1313033853981699816263888194139]
    """
    return draw_multiples([scale.numerator for scale in scales], [scale.denominator for scale in scales], source)


def draw_multiples(numerators: Sequence[int], denominators: Sequence[int], source: Source | None = None) -> list[int]:
    """The same for scales that are quotients, not necessarily in lowest terms."""
    drawn = geometric(Fraction(1, 1 << PLACES), 2 * len(numerators), source).tolist()
    return [
        _multiply_down(numerator, denominator << PLACES, first, source)
        - _multiply_down(numerator, denominator << PLACES, second, source)
        for numerator, denominator, first, second in zip(numerators, denominators, drawn[::2], drawn[1::2], strict=True)
    ]


def _multiply_down(numerator: int, denominator: int, exponential: int, source: Source | None) -> int:
    """⌊s·E⌋ with s = 2^m·numerator/denominator, where ``exponential`` are the first m places of E."""
    places = PLACES
    while True:
        least, rest = divmod(exponential * numerator, denominator)
        if rest + numerator <= denominator or numerator == 0:
            return least
        places, denominator = places + PLACES, denominator << PLACES
        more = int(geometric(Fraction(1, 1 << places), source=source))
        exponential = (exponential << PLACES) | (more & ((1 << PLACES) - 1))

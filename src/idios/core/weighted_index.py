"""An index drawn exactly, in proportion to weights that no float can hold.

The weights w_j can be enclosed to any precision. With C_j = w_0 + … + w_j and C the sum of all, j is the index with
C_(j−1) ≤ U·C < C_j, for a uniform U in [0, 1) that is drawn bit by bit. The w_j are enclosed between integers, and an
index is returned only if the inequalities hold for every U that begins with the bits drawn so far and for all weights
within their enclosures. Otherwise both are refined. U hits a boundary with probability 0.
"""

from __future__ import annotations

import operator
from bisect import bisect_right
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import accumulate, compress
from numbers import Integral

from idios.core.enclosures import Enclosure, exp_minus_levels
from idios.core.exact import exact
from idios.core.sampling import MORE, SYSTEM, RandomSource, random_bits
from idios.errors import InvalidInput


def draw_index(
    enclose: Callable[[int], list[Enclosure]], places: int, source: RandomSource | None = None, begun: int | None = None
) -> int:
    """Draw j with probability proportional to w_j, exactly, where `enclose(places)` encloses all w_j to so many places.

    The enclosures must shrink to the weights, which have a positive sum; `places` is what to begin with. `begun` are
    the first 64 bits of U, where they are drawn already.

    >>> from idios.core.enclosures import exp_minus
    >>> from idios.core.sampling import SeededSource
    >>> draw_index(lambda places: [(1 << places, 1 << places), exp_minus(Fraction(1), places)], 64, SeededSource(1))
    0
    """
    return _draw_located(lambda uniform, known, places: _locate(uniform, known, enclose(places)), places, source, begun)


def _draw_located(
    locate: Callable[[int, int, int], int | None], places: int, source: RandomSource | None, begun: int | None
) -> int:
    """Draw bits and compute to more places until they locate an index."""
    source = source or SYSTEM
    uniform, known = random_bits(source, MORE) if begun is None else begun, MORE
    while True:
        index = locate(uniform, known, places)
        if index is not None:
            return index
        uniform = uniform << MORE | random_bits(source, MORE)
        known += MORE
        places += MORE


def weighted_index(
    counts: Sequence[int],
    exponents: Sequence[int],
    rate: Fraction,
    source: RandomSource | None = None,
    begun: int | None = None,
) -> int:
    """Draw j with probability proportional to counts[j]·e^(−rate·exponents[j]), exactly.

    Counts and exponents are whole numbers ≥ 0 of any size and in any order; at least one count is positive. `begun` are
    the first 64 bits of U, where they are drawn already.

    >>> from idios.core.sampling import SeededSource
    >>> weighted_index([1, 10**30, 5], [0, 100, 1], Fraction(1, 2), SeededSource(1))
    1
    """
    # What is given here describes private data, so no message repeats it.
    if len(counts) != len(exponents):
        raise InvalidInput("counts and exponents must be of the same length")
    counts, exponents = _check_weights(counts), _check_weights(exponents)
    if not any(counts):
        raise InvalidInput("at least one of the counts must be positive")
    rate = exact(rate, "rate")
    if rate < 0:
        raise InvalidInput(f"rate must be at least 0, got {rate}")

    # A common factor changes nothing: with the least exponent at 0 the total weight is at least 1, so the
    # enclosures, at most 128·levels·counts wide in all, are 2^(−MORE) of it from the first round on.
    least = min(compress(exponents, counts))
    levels = {exponent - least for exponent in exponents if exponent >= least}
    width = 128 * len(levels)

    def locate(uniform: int, known: int, places: int) -> int | None:
        powers = exp_minus_levels(rate, levels, places)
        # below the least no count is positive
        lows = [powers.get(exponent - least, (0, 0))[0] for exponent in exponents]
        sums = [0, *accumulate(map(operator.mul, counts, lows))]
        return _find_index(uniform, known, sums, lambda j: width * sum(counts[:j]))

    # Rounded up, so that the powers of one question's ε are there for the next.
    places = MORE * (2 + (sum(counts).bit_length() + len(levels).bit_length() + 7) // MORE)
    return _draw_located(locate, places, source, begun)


def _check_weights(numbers: Sequence[int]) -> Sequence[int]:
    """Refuse all but whole numbers of at least 0; those of numpy, which overflow, become Python's own."""
    if not set(map(type, numbers)) <= {int}:
        numbers = [int(number) if isinstance(number, Integral) else -1 for number in numbers]
    if min(numbers, default=0) < 0:
        raise InvalidInput("counts and exponents must be whole numbers of at least 0")
    return numbers


def _locate(uniform: int, known: int, enclosures: list[Enclosure]) -> int | None:
    """Find j with C_(j−1)/C ≤ U < C_j/C for every U of [uniform, uniform+1)/2^known, if that is certain."""
    lows, highs = ([0, *accumulate(ends)] for ends in zip(*enclosures, strict=True))
    return _find_index(uniform, known, lows, lambda j: highs[j] - lows[j])


def _find_index(uniform: int, known: int, lows: list[int], more: Callable[[int], int]) -> int | None:
    """Do the same by the least weight of the first 0, 1, … of all; `more(j)` is what the first j may weigh above it."""
    total = lows[-1]
    if not total:  # too few places to tell anything
        return None
    j = bisect_right(lows, uniform * total >> known) - 1  # a guess; what counts is the check
    # C_j/C = A/(A+B), A the weight up to j, B the rest: greatest for the greatest A and the least B.
    most = lows[j] + more(j), total + more(j)
    least = lows[j + 1], total + more(len(lows) - 1) - more(j + 1)
    certain = uniform * most[1] >= most[0] << known and (uniform + 1) * least[1] <= least[0] << known
    return j if certain else None

"""Discrete Gaussian noise: whole steps of a public grid, drawn exactly, for concentrated accounting.

    Pr(X = x) ∝ e^(−x²/2σ²) over the whole numbers   (Canonne, Kamath, Steinke 2020; the sampler is another one)

**The draw is exact.** A magnitude y ≥ 0 and a sign are proposed; −0 is thrown away, so that 0 counts once.

1. The magnitudes are cut into *strata* of w = 2^k, stratum i being i·w ≤ y < (i+1)·w. With c = w²/2σ² the first point
   of stratum i has the weight W_i = e^(−c·i²). It is proposed with that weight, then each of its w points alike.
2. y = i·w + l is kept with probability e^(−z), z = l·(2iw + l)/2σ², for then its weight is e^(−c·i² − z) = e^(−y²/2σ²).
   What is thrown away is drawn anew from the start: little, as w is at most σ/16; where w = 1 nothing.
3. Beyond the first M strata, Mw ≥ 6σ, is the *tail*, proposed as a whole. W_(M+g) = W_M·e^(−2Mc·g)·e^(−c·g²): g is
   geometric with rate 2Mc, the whole tail has the weight W_M/(1 − e^(−2Mc)), a point of it is kept with e^(−c·g² − z).

**So is every comparison.** A uniform U in [0, 1) is known by its first word v: it lies in [v, v+1)/2^bits. What holds
for all such U is decided; certified bounds of the probabilities (``enclosures.exp_minus``) say so. Otherwise the
outcome is drawn anew *given v*, by ``weighted_index.draw_index``:

4. Stratum: with C_j the weight up to j and C that of all, j has the length of [v, v+1)/2^32·C ∩ [C_(j−1), C_j).
5. Kept: 1 − z ≤ e^(−z) ≤ 1 − z + z²/2, with z = c·s·(2i + s), s = l/w, between whole multiples of 2^(−32). Where that
   does not decide, y is kept with the length of [v, v+1)/2^16 ∩ [0, e^(−z)) and thrown away with that of the rest.

**Guarantee**, for two answers that differ by d: D_α(X ‖ X + d) ≤ α·d²/2σ² for every α > 1.
Proof. Pr(X = x)^α·Pr(X + d = x)^(1−α) has the exponent −(αx² + (1−α)(x−d)²)/2σ² = −((x − (1−α)·d)² − α(α−1)·d²)/2σ².
The sum of e^(−(x−m)²/2σ²) over all whole x is greatest at m = 0 (by Poisson's formula it is a sum of positive terms
times cos(2πjm)), so it is at most the normaliser, and e^((α−1)·D_α) ≤ e^(α(α−1)·d²/2σ²). Equal where α·d is whole. ∎
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from itertools import accumulate
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from idios.core.distributions.discrete_laplace import Reals, Wholes, number_or_array, probabilities
from idios.core.enclosures import Enclosure, exp_minus, exp_minus_multiples
from idios.core.exact import exact, positive, whole
from idios.core.question_memory import remembered
from idios.core.sampling import SYSTEM, RandomSource, geometric, uniform_below
from idios.core.weighted_index import draw_index
from idios.errors import InvalidInput

_FINE = 16  # strata in one σ, at least: more take longer to prepare, fewer throw more away
_OUTER = 6  # σ, from which on is the tail
_WORD = 32  # bits that choose a stratum
_KEEP = 16  # bits that keep a point, and of s
_RATE = 30  # bits of c
_PLACES = 128  # of a weight, to begin with
_CHUNK = 1 << 15  # draws at once: their words stay in the cache
_NARROW = 54  # bits of a stratum, at most, of which 2·6·16 fit into an int64

_TABULATED = 1000.0  # σ below which floats add up term by term
_UNDERFLOW = 39  # σ beyond which a float knows no mass


class _Strata:
    """What one variance needs for drawing."""

    def __init__(self, variance: Fraction) -> None:
        self.variance = variance
        self.bits = 0  # k
        while variance >= _FINE**2 << 2 * (self.bits + 1):
            self.bits += 1
        self.rate = Fraction(1 << 2 * self.bits) / (2 * variance)  # c
        self.number = math.isqrt(math.ceil(_OUTER**2 / (2 * self.rate)) - 1) + 1  # M: M²·w² ≥ 36σ²
        self.low, self.high = _bound_places(self.enclose(_PLACES))

    def enclose(self, places: int) -> list[Enclosure]:
        """The weights of the strata, W_(i+1) = W_i·e^(−c·(2i+1)), and of the tail."""
        one = 1 << places
        low = high = one
        weights = []
        for least, most in exp_minus_multiples(self.rate, range(1, 2 * self.number, 2), places):
            weights.append((low, high))
            low, high = low * least >> places, -(-high * most >> places)
        least, most = exp_minus(2 * self.number * self.rate, places)
        return [*weights, ((low << places) // (one - least), -((-high << places) // (one - most)))]

    def draw(self, count: int, source: RandomSource) -> Wholes:
        """Propose ``count`` values and give those that are kept."""
        strata, offsets = self._draw_strata(count, source), self._draw_offsets(count, source)
        values: Wholes = (strata.astype(offsets.dtype) << self.bits) + offsets
        kept = np.ones(count, dtype=np.bool_)
        if self.bits:
            words = np.frombuffer(source.read(2 * count), dtype="<u2").astype(np.int64)
            kept, least = self._decide(words, strata, offsets)
            for n in np.flatnonzero(~kept & least):
                kept[n] = _keep(self._exponent(int(strata[n]), int(offsets[n])), int(words[n]), source)
        for n in np.flatnonzero(strata == self.number):
            point, kept[n] = self._draw_tail(source)
            if point.bit_length() > 63:
                values = values.astype(object)
            values[n] = point
        negative = np.unpackbits(np.frombuffer(source.read(-(-count // 8)), dtype=np.uint8), count=count).view(np.bool_)
        kept &= ~negative | (values != 0)
        return np.where(negative, -values, values)[kept]

    def _draw_strata(self, count: int, source: RandomSource) -> NDArray[np.int64]:
        """Draw indices of strata; the tail is the last one."""
        words = np.frombuffer(source.read(4 * count), dtype="<u4").astype(np.int64)
        # Boundary j is surely not above v/2^32 where high_j ≤ v, and surely not below (v+1)/2^32 where low_j > v.
        strata: NDArray[np.int64] = np.searchsorted(self.high, words, side="right")
        for n in np.flatnonzero(words >= self.low[strata]):
            strata[n] = draw_index(partial(self._enclose_overlaps, int(words[n])), _PLACES, source)
        return strata

    def _enclose_overlaps(self, word: int, places: int) -> list[Enclosure]:
        """The length that each stratum has in common with the place of the word, times 2^32."""
        lows, highs = _accumulate(self.enclose(places))
        first, following = (word * lows[-1], word * highs[-1]), ((word + 1) * lows[-1], (word + 1) * highs[-1])
        overlaps = []
        for j in range(self.number + 1):
            ends = lows[j] << _WORD, highs[j] << _WORD, lows[j + 1] << _WORD, highs[j + 1] << _WORD
            least = min(ends[2], following[0]) - max(ends[1], first[1])
            most = min(ends[3], following[1]) - max(ends[0], first[0])
            overlaps.append((max(least, 0), max(most, 0)))
        return overlaps

    def _draw_offsets(self, count: int, source: RandomSource) -> Wholes:
        """Draw numbers of k bits."""
        if self.bits > _NARROW:
            return np.array([uniform_below(1 << self.bits, source) for _ in range(count)], dtype=object)
        if not self.bits:
            return np.zeros(count, dtype=np.int64)
        words = np.frombuffer(source.read(8 * count), dtype="<u8")
        return (words >> np.uint64(64 - self.bits)).astype(np.int64)

    def _decide(self, words: Wholes, strata: Wholes, offsets: Wholes) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which points are surely kept, and which may be: rule 5 in multiples of 2^(−32).

        s has 16 bits, 2i + s fewer than 25 and c fewer than 22, so that no product has more than 63.
        """
        shift = self.bits - _KEEP
        share = (offsets >> shift if shift > 0 else offsets << -shift).astype(np.int64)  # s, rounded down
        rate = (self.rate.numerator << _RATE) // self.rate.denominator  # c, rounded down
        twice = strata << _KEEP + 1
        low = share * (twice + share) * rate >> _RATE
        high = ((share + 1) * (twice + share + 1) * (rate + 1) >> _RATE) + 1
        one = 1 << 2 * _KEEP
        return words + 1 << _KEEP <= one - high, words << _KEEP < one - low + (high * high >> 2 * _KEEP + 1) + 1

    def _draw_tail(self, source: RandomSource) -> tuple[int, bool]:
        """Propose a point of the tail, and say whether it is kept."""
        steps = geometric(2 * self.number * self.rate, source=source)
        stratum, offset = self.number + steps, uniform_below(1 << self.bits, source)
        exponent = self.rate * steps**2 + self._exponent(stratum, offset)
        return (stratum << self.bits) + offset, _keep(exponent, uniform_below(1 << _KEEP, source), source)

    def _exponent(self, stratum: int, offset: int) -> Fraction:
        """z."""
        return offset * ((stratum << self.bits + 1) + offset) / (2 * self.variance)


def _accumulate(enclosures: Sequence[Enclosure]) -> tuple[list[int], list[int]]:
    """Bounds of C_(j−1), for every j and one more."""
    return [0, *accumulate(low for low, _ in enclosures)], [0, *accumulate(high for _, high in enclosures)]


def _bound_places(weights: Sequence[Enclosure]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Whole numbers with low_j ≤ 2^32·C_j/C ≤ high_j; the last, where C_j = C, is for ``low`` alone.

    C_j/C = A/(A+B), A the weight up to j and B the rest: least for the least A and the greatest B.
    """
    lows, highs = _accumulate(weights)
    low = [(a << _WORD) // (a + highs[-1] - most) for a, most in zip(lows[1:], highs[1:], strict=True)]
    high = [-((-a << _WORD) // (a + lows[-1] - least)) for a, least in zip(highs[1:-1], lows[1:-1], strict=True)]
    return np.array(low, dtype=np.int64), np.array(high, dtype=np.int64)


def _keep(exponent: Fraction, word: int, source: RandomSource) -> bool:
    """Decide U < e^(−exponent) for a U of which the first 16 bits are ``word``."""

    def enclose(places: int) -> list[Enclosure]:
        low, high = exp_minus(exponent, places)
        first, one = word << places, 1 << places
        least, most = (min(max((end << _KEEP) - first, 0), one) for end in (low, high))
        return [(least, most), (one - most, one - least)]

    return draw_index(enclose, _PLACES // 2, source) == 0


_strata = remembered(256)(_Strata)


def gaussian_variance(squared_sensitivity: Fraction, rho: Fraction) -> Fraction:
    """The σ² of discrete Gaussian noise with this ρ: Δ₂²/2ρ. With ρ = ε²/2 it is (Δ₂/ε)².

    >>> gaussian_variance(Fraction(2), Fraction(1, 200))
    Fraction(200, 1)
    """
    return squared_sensitivity / (2 * positive(rho, "rho"))


@dataclass(frozen=True)
class DiscreteGaussian:
    """Pr(X = k) ∝ e^(−k²/2σ²), σ² = ``variance`` (that of X is a little less); 0 is the constant 0.

    Variance and guarantee are exact fractions. Probabilities are floats, for people to read; no draw uses them.

    >>> from idios.core.sampling import SeededSource
    >>> noise = DiscreteGaussian(Fraction(100))
    >>> noise.rho(5)
    Fraction(1, 8)
    >>> noise.central_interval(0.95)
    (-20, 20)
    >>> print(f"{noise.pmf(0):.6f} {noise.cdf(0):.6f} {noise.expected_absolute:.6f}")
    0.039894 0.519947 7.972193
    >>> noise.sample(3, SeededSource(1))
    array([-3, 10,  4])
    """

    variance: Fraction

    def __post_init__(self) -> None:
        variance = exact(self.variance, "variance")
        if variance < 0:
            raise InvalidInput(f"variance must be at least 0, got {self.variance}")
        object.__setattr__(self, "variance", variance)

    def rho(self, shift: int) -> Fraction:
        """Give the least ρ with D_α(X ‖ X + shift) ≤ α·ρ for all α > 1, exactly: shift²/2σ².

        It is reached at every whole α. Where the variance is 0 no shift is hidden, and none is accepted.
        """
        distance = whole(abs(shift), "shift", least=0)
        if self.variance == 0 and distance:
            raise InvalidInput(f"shift must be 0 where the variance is 0 (nothing is hidden), got {shift}")
        return distance**2 / (2 * self.variance) if distance else Fraction(0)

    @overload
    def sample(self, size: None = None, source: RandomSource | None = None) -> int: ...
    @overload
    def sample(self, size: int, source: RandomSource | None = None) -> Wholes: ...
    def sample(self, size: int | None = None, source: RandomSource | None = None) -> int | Wholes:
        """Draw exactly, one integer or an array of `size`: int64, or Python's own where σ is beyond some 10^17."""
        count = 1 if size is None else whole(size, "size", least=0)
        if self.variance == 0:
            drawn: list[Wholes] = [np.zeros(count, dtype=np.int64)]
        else:
            strata, left = _strata(self.variance), count
            drawn = [strata.draw(0, source or SYSTEM)]
            while left:
                drawn.append(strata.draw(min(left, _CHUNK), source or SYSTEM))
                left -= len(drawn[-1])
        values: NDArray[Any] = np.concatenate(drawn)
        return int(values[0]) if size is None else values

    @cached_property
    def _sigma(self) -> float:
        """σ, also where σ² is beyond what a float holds."""
        top, bottom = self.variance.numerator, self.variance.denominator
        shift = max(0, 128 + bottom.bit_length() - top.bit_length())
        return float(Fraction(math.isqrt((top << 2 * shift) // bottom), 1 << shift))

    @cached_property
    def _tails(self) -> Reals:
        """Σ_{k ≥ m} e^(−k²/2σ²) for m = 0, 1, …, added up from the far end."""
        points = np.arange(math.ceil(_UNDERFLOW * self._sigma) + 2, dtype=np.float64)
        return np.cumsum(self._weigh(points)[::-1])[::-1]

    @property
    def _tabulated(self) -> bool:
        return self._sigma < _TABULATED

    @property
    def _normaliser(self) -> float:
        """Σ e^(−k²/2σ²); from σ = 3 on √(2π)·σ, by Poisson's formula, as far as floats can tell."""
        return 2 * float(self._tails[0]) - 1 if self._tabulated else math.sqrt(2 * math.pi) * self._sigma

    @property
    def expected_absolute(self) -> float:
        """E|X|, about 0.8·σ: twice Σ k·e^(−k²/2σ²) = σ² − 1/12 − …, over the normaliser."""
        if not self._tabulated:
            return 2 * (self._sigma - 1 / (12 * self._sigma)) / math.sqrt(2 * math.pi)
        return 2 * math.fsum(self._tails[1:]) / self._normaliser  # Σ k·f(k) = Σ_{m ≥ 1} Σ_{k ≥ m} f(k)

    def expected_distance(self, shift: int) -> float:
        """E|X + c| = |c| + 2·E max(0, X − |c|)."""
        return abs(shift) + 2 * self.expected_beyond(abs(shift))

    def expected_beyond(self, distance: int) -> float:
        """E max(0, X − c) = Σ_{k > c} (k − c)·Pr(X = k), for c ≥ 0.

        Where σ is large the sum is ∫ (x − c)·f less f(c)/12 (Euler, Maclaurin).
        """
        if self._tabulated:
            return math.fsum(self._tails[distance + 1 :]) / self._normaliser
        ratio = float(min(distance / Fraction(self._sigma), Fraction(_UNDERFLOW)))
        weight = math.exp(-ratio * ratio / 2)
        beyond = weight - ratio * math.sqrt(math.pi / 2) * math.erfc(ratio / math.sqrt(2))
        return (self._sigma * beyond - weight / (12 * self._sigma)) / math.sqrt(2 * math.pi)

    @overload
    def pmf(self, k: float) -> float: ...
    @overload
    def pmf(self, k: Wholes) -> Reals: ...
    def pmf(self, k: float | Wholes) -> float | Reals:
        """Give Pr(X = k), which is 0 where k is no whole number."""
        point = np.asarray(k, dtype=np.float64)
        return number_or_array(np.where(point == np.floor(point), self._weigh(point) / self._normaliser, 0.0))

    @overload
    def cdf(self, k: float) -> float: ...
    @overload
    def cdf(self, k: Wholes) -> Reals: ...
    def cdf(self, k: float | Wholes) -> float | Reals:
        """Give Pr(X ≤ k), k rounded down."""
        point = np.floor(np.asarray(k, dtype=np.float64))
        tail = self._sum_tail(np.where(point < 0, -point, point + 1)) / self._normaliser
        return number_or_array(np.where(point < 0, tail, 1 - tail))

    def quantile(self, p: float) -> int:
        """Give the least k with Pr(X ≤ k) ≥ p, for p strictly between 0 and 1, as far as floats can tell."""
        probability = float(probabilities(p))
        above = math.ceil(_UNDERFLOW * self._sigma) + 1
        below = -above - 1
        while above - below > 1:
            middle = (below + above) // 2
            if self.cdf(middle) >= probability:
                above = middle
            else:
                below = middle
        return above

    def central_interval(self, p: float) -> tuple[int, int]:
        """Give the least interval −k..k that holds X with probability p or more."""
        k = -self.quantile((1 - float(probabilities(p))) / 2)
        return -k, k

    def _weigh(self, point: Reals) -> Reals:
        """e^(−k²/2σ²)."""
        if self._sigma == 0:
            return np.where(point == 0, 1.0, 0.0)
        with np.errstate(over="ignore", under="ignore"):
            return np.exp(-((point / self._sigma) ** 2) / 2)

    def _sum_tail(self, first: Reals) -> Reals:
        """Σ_{k ≥ m} f(k); where σ is large ∫ f from a = m − ½ on, + f′(a)/24 − 7·f‴(a)/5760 (Euler, Maclaurin)."""
        if self._tabulated:
            return self._tails[np.minimum(first, len(self._tails) - 1).astype(np.int64)]
        away = (first - 0.5) / self._sigma
        integral = np.vectorize(math.erfc, otypes=[np.float64])(away / math.sqrt(2)) * math.sqrt(math.pi / 2)
        slope = away / 24 / self._sigma**2 - 7 * (away**3 - 3 * away) / 5760 / self._sigma**4
        total: Reals = self._sigma * (integral - slope * self._weigh(first - 0.5))
        return total

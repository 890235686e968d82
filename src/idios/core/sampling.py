"""Exact samplers: the only home of randomness.

Why they are exact. All of them compare a uniform U in [0, 1), drawn bit by bit from the source, with a number
p known to any precision (`exact.exp_minus`). If the first w bits of U differ from the first w digits ⌊p·2^w⌋ of p,
the comparison U < p is decided, whatever follows; if they are equal, more bits of U and more digits of p are
compared. So Pr(U < p) is p, not a rounding of p, and nothing is ever rounded on the way.

*Discrete Laplace*, Pr(X = k) = (1−a)/(1+a)·a^|k| with a = e^(−1/scale).

1. Pr(X > 0) = Pr(X < 0) = a/(1+a) = 1/(1+e^(1/scale)) =: p. One uniform decides: X > 0 if U < p, X < 0 if
   1 − U < p, otherwise X = 0 (p < 1/2, so both cannot be).
2. Given X ≠ 0, |X| − 1 = G is geometric and independent of the sign: Pr(G = g) = (1−a)·a^g.
3. The binary digits of G are independent: with G = Σ 2^j·B_j, a^G is the product of the a^(2^j·B_j). So
   digit j is 1 with probability a^(2^j)/(1+a^(2^j)) = 1/(1+e^(2^j/scale)).
4. Above the digits 0..J−1 the rest ⌊G/2^J⌋ is geometric again and independent of them: it is not 0 with
   probability e^(−2^J/scale), and at each number reached it goes on to the next with the same probability.
   J is chosen so that a rest is rare; one flag says that there is one, which is then counted, coin by coin.

*Geometric*, Pr(G = g) = (1−a)·a^g with a = e^(−rate), is the G of 3. and 4.

*Index*, Pr(j) proportional to weights w_j that can be enclosed to any precision. With C_j = w_0 + … + w_j and
C the sum of all, j is the index with C_(j−1) ≤ U·C < C_j. The w_j are enclosed between integers, and an index
is returned only if the inequalities hold for every U that begins with the bits drawn so far and for all
weights within their enclosures. Otherwise both are refined. U hits a boundary with probability 0. *Weighted index*
has w_j = counts[j]·e^(−rate·exponents[j]).

*Uniform below n*: whole numbers of as many bits as n−1 are equally likely; those from n on are thrown away.
"""

from __future__ import annotations

import hashlib
import operator
import os
import threading
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache, partial
from itertools import accumulate, compress
from numbers import Integral
from typing import Any, ClassVar, overload

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from numpy.typing import NDArray

from idios.core.exact import (
    Enclosure,
    Number,
    divide_odds,
    exact,
    exp_minus,
    exp_minus_doublings,
    exp_minus_levels,
    floor_bits,
    logistic,
    positive,
    whole,
)
from idios.errors import InvalidInput

# --------------------------------------------------------------------------------------------------- sources


class Source(ABC):
    """Independent uniform random bytes; `secure` says whether an adversary may be faced with them."""

    secure: ClassVar[bool]

    @abstractmethod
    def read(self, size: int) -> bytes:
        """Return the next `size` random bytes."""


def _keystream(key: bytes) -> CipherContext:
    return Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()


_ZEROS = memoryview(bytes(1 << 18))  # encrypting zeros gives the key stream itself


def _stream(cipher: CipherContext, size: int) -> bytes:
    return cipher.update(_ZEROS[:size] if size <= len(_ZEROS) else bytes(size))


_forks = 0


def _count_fork() -> None:
    global _forks
    _forks += 1


if hasattr(os, "register_at_fork"):  # elsewhere processes do not fork
    os.register_at_fork(after_in_child=_count_fork)


class _Key(threading.local):
    """One thread's key stream, and in which process it was made."""

    cipher: CipherContext
    left = -1
    process = (-1, -1)


class SystemSource(Source):
    """AES-256 in counter mode under a key from the operating system, replaced every 2^20 bytes.

    The 2^26 blocks of a key are distinct, which tells them from random ones with advantage 2^(−77) at most.
    Each thread has its own key, so no lock is needed (and none can be held by a thread that a fork leaves
    behind). A child process takes a new key: it is known by its number and, since numbers are reused, by a
    count of forks.

    >>> len(SystemSource().read(5))
    5
    """

    secure = True
    bytes_per_key: ClassVar[int] = 1 << 20

    def __init__(self) -> None:
        self._key = _Key()

    def read(self, size: int) -> bytes:
        """Return the next `size` random bytes."""
        key = self._key
        process = (os.getpid(), _forks)
        if key.left < size or key.process != process:
            key.cipher = _keystream(os.urandom(32))
            key.left = self.bytes_per_key
            key.process = process
        key.left -= size
        return _stream(key.cipher, size)


class SeededSource(Source):
    """The same bytes for the same seed, on every machine: for tests only, so a server refuses it.

    >>> SeededSource(1).read(4) == SeededSource(1).read(4)
    True
    """

    secure = False

    def __init__(self, seed: int) -> None:
        self._cipher = _keystream(hashlib.sha256(b"idios %d" % operator.index(seed)).digest())

    def read(self, size: int) -> bytes:
        """Return the next `size` bytes of the seed's stream."""
        return _stream(self._cipher, size)


SYSTEM = SystemSource()
"""The source of every draw that names no other."""


def _random_bits(source: Source, bits: int) -> int:
    return int.from_bytes(source.read(-(-bits // 8)), "little") >> (-bits % 8)


# ------------------------------------------------------------------------------------------- uniform numbers


def random_words(number: int, source: Source | None = None) -> NDArray[np.uint64]:
    """Draw so many times 64 bits.

    >>> random_words(2, SeededSource(1)).dtype
    dtype('uint64')
    """
    return np.frombuffer((source or SYSTEM).read(8 * number), "<u8").astype(np.uint64, copy=False)


def uniform_below(n: int, source: Source | None = None) -> int:
    """Draw one of 0, 1, …, n−1, each with probability 1/n, for n of any size.

    >>> uniform_below(6, SeededSource(1))
    5
    """
    n = whole(n, "n")
    bits = (n - 1).bit_length()
    source = source or SYSTEM
    while True:
        number = _random_bits(source, bits)
        if number < n:
            return number


# ------------------------------------------------------------------------------------------ discrete Laplace

_WORD = 16  # bits compared at once: 32 doubles what is drawn, 8 ties too often
_TOP = (1 << _WORD) - 1
_MORE = 64  # bits compared after a tie
_GUARD = 32  # bits beyond the first two comparisons, which settle what these are
_FIRST = _WORD + _MORE + _GUARD
_CHUNK = 1 << 17  # words drawn at once: a quarter of a megabyte, which stays in the cache
_RARE = 12  # the rest above the digits is not 0 with probability at most e^(−12)
_NARROW = 56  # digits, at most, of an int64: a rest overflows it with probability below e^(−12·2^7)


class _Coin:
    """A Bernoulli variable with an irrational probability: its first digits, and all others when asked."""

    def __init__(self, probability: Callable[[int], Enclosure], first: Enclosure) -> None:
        """`first` encloses the probability to _FIRST places, which nearly always settles the digits wanted here."""
        self._probability = probability
        lo, hi = (end >> _GUARD for end in first)
        self.head, self._next = divmod(lo if lo == hi else floor_bits(probability, _WORD + _MORE), 1 << _MORE)

    def settle(self, source: Source) -> bool:
        """Decide U < p for a U whose first word equals that of p."""
        digits, known = self._next, _WORD + _MORE
        while (word := _random_bits(source, _MORE)) == digits:
            known += _MORE
            digits = floor_bits(self._probability, known) % (1 << _MORE)
        return word < digits

    def flip(self, source: Source) -> bool:
        """Decide U < p."""
        word = _random_bits(source, _WORD)
        return self.settle(source) if word == self.head else word < self.head


class _Digits:
    """The coins of one scale: digits 0..J−1 of G, then the flag of the rest; whole bytes in all."""

    def __init__(self, scale: Fraction) -> None:
        self.scale = scale
        needed = 1
        while (1 << (needed - 1)) < _RARE * scale:
            needed += 1
        self.width = -(-needed // 8) * 8
        self.rest = self.width - 1  # J
        *powers, last = exp_minus_doublings(1 / scale, self.width, _FIRST)
        self.coins = [
            _Coin(partial(self._enclose, logistic, j), divide_odds(*power, _FIRST)) for j, power in enumerate(powers)
        ]
        self.coins.append(_Coin(partial(self._enclose, exp_minus, self.rest), last))
        self.heads = np.array([coin.head for coin in self.coins], dtype="<u2")

    def _enclose(self, function: Callable[[Fraction, int], Enclosure], j: int, bits: int) -> Enclosure:
        """A function of 2^j/scale: only a tie asks for it."""
        return function((1 << j) / self.scale, bits)

    def magnitudes(self, count: int, source: Source) -> NDArray[Any]:
        """Draw `count` values of G + 1."""
        words = np.frombuffer(source.read(2 * count * self.width), dtype="<u2")
        heads = np.tile(self.heads, count)
        bits = words < heads
        for i in np.flatnonzero(words == heads):
            bits[i] = self.coins[i % self.width].settle(source)

        packed = np.packbits(bits, bitorder="little").reshape(count, self.width // 8)
        if self.width <= _NARROW:
            padded = np.zeros((count, 8), dtype=np.uint8)
            padded[:, : self.width // 8] = packed
            values: NDArray[Any] = padded.view("<i8")[:, 0].astype(np.int64, copy=False)
        else:
            values = np.array([int.from_bytes(row.tobytes(), "little") for row in packed], dtype=object)

        # A flag stands at the place of digit J, so it counts as a rest of 1; coins say how much more it is.
        flag = self.coins[self.rest]
        for i in np.flatnonzero(bits[self.rest :: self.width]):
            more = 0
            while flag.flip(source):
                more += 1
            if more >> (62 - self.rest) and values.dtype != object:  # could pass 2^63
                values = values.astype(object)
            values[i] += more << self.rest
        values += 1
        return values

    def signs(self, count: int, source: Source) -> NDArray[np.int8]:
        """Draw `count` signs of X: 1 with probability p, −1 with probability p, otherwise 0."""
        coin = self.coins[0]  # its probability is that of digit 0, 1/(1+e^(1/scale))
        words = np.frombuffer(source.read(2 * count), dtype="<u2")
        # The digits of 1 − U are those of U turned over, so 1 − U ties with p where U's word is _TOP − head.
        signs = (words < coin.head).view(np.int8) - (words > _TOP - coin.head).view(np.int8)
        for i in np.flatnonzero((words == coin.head) | (words == _TOP - coin.head)):
            if coin.settle(source):
                signs[i] = 1 if words[i] == coin.head else -1
        return signs

    def draw(self, count: int, source: Source) -> NDArray[Any]:
        """Draw `count` values of X."""
        values = self.magnitudes(count, source)
        values *= self.signs(count, source).astype(values.dtype)
        return values


_digits = lru_cache(maxsize=256)(_Digits)


@overload
def discrete_laplace(scale: Number, size: None = None, source: Source | None = None) -> int: ...
@overload
def discrete_laplace(scale: Number, size: int, source: Source | None = None) -> NDArray[Any]: ...
def discrete_laplace(scale: Number, size: int | None = None, source: Source | None = None) -> int | NDArray[Any]:
    """Draw from Pr(X = k) = (1−a)/(1+a)·a^|k|, a = e^(−1/scale), exactly, for any scale ≥ 0 (0 gives 0).

    One draw is a Python integer; `size` draws are an array of int64, or of Python integers where the scale is
    beyond 2^55/12, some 3·10^15.

    >>> discrete_laplace("10/3", source=SeededSource(1))
    3
    >>> discrete_laplace(10, 5, SeededSource(1))
    array([ 3, -4, 15, -1, -2])
    """
    rational = exact(scale, "scale")
    count = 1 if size is None else whole(size, "size", least=0)
    if rational < 0:
        raise InvalidInput(f"scale must be at least 0, got {scale}")
    if rational == 0:
        values: NDArray[Any] = np.zeros(count, dtype=np.int64)
    else:
        digits = _digits(rational)
        values = _draw_in_chunks(digits, digits.draw, count, source)
    return int(values[0]) if size is None else values


@overload
def geometric(rate: Number, size: None = None, source: Source | None = None) -> int: ...
@overload
def geometric(rate: Number, size: int, source: Source | None = None) -> NDArray[Any]: ...
def geometric(rate: Number, size: int | None = None, source: Source | None = None) -> int | NDArray[Any]:
    """Draw from Pr(G = g) = (1−a)·a^g, g ≥ 0, a = e^(−rate), exactly, for any rate > 0; like `discrete_laplace`.

    >>> geometric("1/10", 5, SeededSource(1))
    array([ 2,  3, 14,  0,  1])
    """
    digits = _digits(1 / positive(rate, "rate"))
    count = 1 if size is None else whole(size, "size", least=0)
    values = _draw_in_chunks(digits, digits.magnitudes, count, source) - 1
    return int(values[0]) if size is None else values


def _draw_in_chunks(
    digits: _Digits, draw: Callable[[int, Source], NDArray[Any]], count: int, source: Source | None
) -> NDArray[Any]:
    chunk = max(1, _CHUNK // digits.width)
    starts = range(0, max(count, 1), chunk)
    return np.concatenate([draw(min(chunk, count - start), source or SYSTEM) for start in starts])


# ----------------------------------------------------------------------------------------------------- index


def draw_index(
    enclose: Callable[[int], list[Enclosure]], places: int, source: Source | None = None, begun: int | None = None
) -> int:
    """Draw j with probability proportional to w_j, exactly, where `enclose(places)` encloses all w_j to so many places.

    The enclosures must shrink to the weights, which have a positive sum; `places` is what to begin with. `begun` are
    the first 64 bits of U, where they are drawn already.

    >>> draw_index(lambda places: [(1 << places, 1 << places), exp_minus(Fraction(1), places)], 64, SeededSource(1))
    0
    """
    return _draw_located(lambda uniform, known, places: _locate(uniform, known, enclose(places)), places, source, begun)


def _draw_located(
    locate: Callable[[int, int, int], int | None], places: int, source: Source | None, begun: int | None
) -> int:
    """Draw bits and compute to more places until they locate an index."""
    source = source or SYSTEM
    uniform, known = _random_bits(source, _MORE) if begun is None else begun, _MORE
    while True:
        index = locate(uniform, known, places)
        if index is not None:
            return index
        uniform = uniform << _MORE | _random_bits(source, _MORE)
        known += _MORE
        places += _MORE


def weighted_index(
    counts: Sequence[int],
    exponents: Sequence[int],
    rate: Fraction,
    source: Source | None = None,
    begun: int | None = None,
) -> int:
    """Draw j with probability proportional to counts[j]·e^(−rate·exponents[j]), exactly.

    Counts and exponents are whole numbers ≥ 0 of any size and in any order; at least one count is positive. `begun` are
    the first 64 bits of U, where they are drawn already.

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
    # enclosures, at most 128·levels·counts wide in all, are 2^(−_MORE) of it from the first round on.
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
    places = _MORE * (2 + (sum(counts).bit_length() + len(levels).bit_length() + 7) // _MORE)
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

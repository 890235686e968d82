"""Exact samplers: the only home of randomness.

Why they are exact. All of them compare a uniform U in [0, 1), drawn bit by bit from the source, with a number
p known to any precision (`enclosures.exp_minus`). If the first w bits of U differ from the first w digits ⌊p·2^w⌋ of p,
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

*Uniform below n*: whole numbers of as many bits as n−1 are equally likely; those from n on are thrown away.
"""

from __future__ import annotations

import hashlib
import operator
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, overload

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from numpy.typing import NDArray

from idios.core.enclosures import Enclosure, divide_odds, exp_minus, exp_minus_doublings, floor_bits, logistic
from idios.core.exact import Number, exact, positive, whole
from idios.core.question_memory import remembered
from idios.errors import InvalidInput

# --------------------------------------------------------------------------------------------------- sources


class RandomSource(ABC):
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


class SystemSource(RandomSource):
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


class SeededSource(RandomSource):
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


def random_bits(source: RandomSource, bits: int) -> int:
    """Draw a whole number of so many bits."""
    return int.from_bytes(source.read(-(-bits // 8)), "little") >> (-bits % 8)


# ------------------------------------------------------------------------------------------- uniform numbers

MORE = 64
"""Bits of U compared after a tie."""


def random_words(number: int, source: RandomSource | None = None) -> NDArray[np.uint64]:
    """Draw so many times 64 bits.

    >>> random_words(2, SeededSource(1)).dtype
    dtype('uint64')
    """
    return np.frombuffer((source or SYSTEM).read(8 * number), "<u8").astype(np.uint64, copy=False)


def uniform_below(n: int, source: RandomSource | None = None) -> int:
    """Draw one of 0, 1, …, n−1, each with probability 1/n, for n of any size.

    >>> uniform_below(6, SeededSource(1))
    5
    """
    n = whole(n, "n")
    bits = (n - 1).bit_length()
    source = source or SYSTEM
    while True:
        number = random_bits(source, bits)
        if number < n:
            return number


# ------------------------------------------------------------------------------------------ discrete Laplace

_WORD = 16  # bits compared at once: 32 doubles what is drawn, 8 ties too often
_TOP = (1 << _WORD) - 1
_GUARD = 32  # bits beyond the first two comparisons, which settle what these are
_FIRST = _WORD + MORE + _GUARD
_CHUNK = 1 << 17  # words drawn at once: a quarter of a megabyte, which stays in the cache
_RARE = 12  # the rest above the digits is not 0 with probability at most e^(−12)
_NARROW = 56  # digits, at most, of an int64: a rest overflows it with probability below e^(−12·2^7)


class _Coin:
    """A Bernoulli variable with an irrational probability: its first digits, and all others when asked."""

    def __init__(self, probability: Callable[[int], Enclosure], first: Enclosure) -> None:
        """`first` encloses the probability to _FIRST places, which nearly always settles the digits wanted here."""
        self._probability = probability
        lo, hi = (end >> _GUARD for end in first)
        self.head, self._next = divmod(lo if lo == hi else floor_bits(probability, _WORD + MORE), 1 << MORE)

    def settle(self, source: RandomSource) -> bool:
        """Decide U < p for a U whose first word equals that of p."""
        digits, known = self._next, _WORD + MORE
        while (word := random_bits(source, MORE)) == digits:
            known += MORE
            digits = floor_bits(self._probability, known) % (1 << MORE)
        return word < digits

    def flip(self, source: RandomSource) -> bool:
        """Decide U < p."""
        word = random_bits(source, _WORD)
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

    def _draw_bytes(self, count: int, source: RandomSource) -> tuple[NDArray[np.uint8], dict[int, int]]:
        """Draw the digits of `count` values of G, and what some of them have above, as a multiple of 2^J."""
        words = np.frombuffer(source.read(2 * count * self.width), dtype="<u2")
        heads = np.tile(self.heads, count)
        bits = words < heads
        for i in np.flatnonzero(words == heads):
            bits[i] = self.coins[i % self.width].settle(source)

        packed = np.packbits(bits, bitorder="little").reshape(count, self.width // 8)
        # A flag stands at the place of digit J, so it counts as a rest of 1; coins say how much more it is.
        flag, rests = self.coins[self.rest], dict.fromkeys(np.flatnonzero(bits[self.rest :: self.width]).tolist(), 0)
        for place in rests:
            while flag.flip(source):
                rests[place] += 1
        return packed, rests

    def split(self, count: int, source: RandomSource) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """Draw `count` values of G as its last 64 digits, and those above, where there are few."""
        packed, rests = self._draw_bytes(count, source)
        last = np.ascontiguousarray(packed[:, :8]).view("<u8")[:, 0].astype(np.uint64, copy=False)
        above = packed[:, 8].astype(np.int64)
        for i, more in rests.items():
            above[i] += more << (self.rest - 64)
        return last, above

    def magnitudes(self, count: int, source: RandomSource) -> NDArray[Any]:
        """Draw `count` values of G + 1."""
        packed, rests = self._draw_bytes(count, source)
        if self.width <= _NARROW:
            padded = np.zeros((count, 8), dtype=np.uint8)
            padded[:, : self.width // 8] = packed
            values: NDArray[Any] = padded.view("<i8")[:, 0].astype(np.int64, copy=False)
        else:
            values = np.array([int.from_bytes(row.tobytes(), "little") for row in packed], dtype=object)

        for i, more in rests.items():
            if more >> (62 - self.rest) and values.dtype != object:  # could pass 2^63
                values = values.astype(object)
            values[i] += more << self.rest
        values += 1
        return values

    def signs(self, count: int, source: RandomSource) -> NDArray[np.int8]:
        """Draw `count` signs of X: 1 with probability p, −1 with probability p, otherwise 0."""
        coin = self.coins[0]  # its probability is that of digit 0, 1/(1+e^(1/scale))
        words = np.frombuffer(source.read(2 * count), dtype="<u2")
        # The digits of 1 − U are those of U turned over, so 1 − U ties with p where U's word is _TOP − head.
        signs = (words < coin.head).view(np.int8) - (words > _TOP - coin.head).view(np.int8)
        for i in np.flatnonzero((words == coin.head) | (words == _TOP - coin.head)):
            if coin.settle(source):
                signs[i] = 1 if words[i] == coin.head else -1
        return signs

    def draw(self, count: int, source: RandomSource) -> NDArray[Any]:
        """Draw `count` values of X."""
        values = self.magnitudes(count, source)
        values *= self.signs(count, source).astype(values.dtype)
        return values


_digits = remembered(256)(_Digits)


@overload
def discrete_laplace(scale: Number, size: None = None, source: RandomSource | None = None) -> int: ...
@overload
def discrete_laplace(scale: Number, size: int, source: RandomSource | None = None) -> NDArray[Any]: ...
def discrete_laplace(scale: Number, size: int | None = None, source: RandomSource | None = None) -> int | NDArray[Any]:
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
def geometric(rate: Number, size: None = None, source: RandomSource | None = None) -> int: ...
@overload
def geometric(rate: Number, size: int, source: RandomSource | None = None) -> NDArray[Any]: ...
def geometric(rate: Number, size: int | None = None, source: RandomSource | None = None) -> int | NDArray[Any]:
    """Draw from Pr(G = g) = (1−a)·a^g, g ≥ 0, a = e^(−rate), exactly, for any rate > 0; like `discrete_laplace`.

    >>> geometric("1/10", 5, SeededSource(1))
    array([ 2,  3, 14,  0,  1])
    """
    digits = _digits(1 / positive(rate, "rate"))
    count = 1 if size is None else whole(size, "size", least=0)
    values = _draw_in_chunks(digits, digits.magnitudes, count, source) - 1
    return int(values[0]) if size is None else values


def draw_exponentials(count: int, source: RandomSource | None = None) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Of `count` exponential variables the first 64 binary places, and the whole numbers before them.

    >>> places, wholes = draw_exponentials(5, SeededSource(1))
    >>> joined = [above << 64 | last for last, above in zip(places.tolist(), wholes.tolist(), strict=True)]
    >>> wholes, joined == geometric(Fraction(1, 2**64), 5, SeededSource(1)).tolist()
    (array([0, 2, 2, 1, 0]), True)
    """
    digits = _digits(Fraction(1 << 64))
    parts = [digits.split(size, source or SYSTEM) for size in _list_chunks(digits, count)]
    return np.concatenate([last for last, _ in parts]), np.concatenate([above for _, above in parts])


def _draw_in_chunks(
    digits: _Digits, draw: Callable[[int, RandomSource], NDArray[Any]], count: int, source: RandomSource | None
) -> NDArray[Any]:
    return np.concatenate([draw(size, source or SYSTEM) for size in _list_chunks(digits, count)])


def _list_chunks(digits: _Digits, count: int) -> list[int]:
    chunk = max(1, _CHUNK // digits.width)
    return [min(chunk, count - start) for start in range(0, max(count, 1), chunk)]

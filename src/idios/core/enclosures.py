"""Certified bounds of e^(−x) and ln x: what is irrational is enclosed by integers.

A real number p is known to `bits` binary places by a pair of integers

    (lo, hi)   with   lo ≤ p·2^bits ≤ hi,

an *enclosure*. Every operation rounds the lower end down and the upper end up, so an enclosure is true by
construction: an error analysis is needed only to show that it is narrow, never that it is right. Where the
digits of p themselves are wanted, the enclosure is refined until both ends agree on them (`floor_bits`).

Rules of enclosures:

1. No float is used, in them or in what calls them.
2. Python's `//` and `>>` round down; `-(-a // b)` and `-(-a >> b)` round up. Nothing else rounds.
3. `hi - lo` is small (each function says how small) whatever the argument, tiny or huge.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from fractions import Fraction

from idios.core.exact import format_value
from idios.core.question_memory import remembered
from idios.errors import InvalidInput

Enclosure = tuple[int, int]
"""(lo, hi) with lo ≤ p·2^bits ≤ hi, for a number of bits known from the context."""


def exp_minus(x: Fraction, bits: int) -> Enclosure:
    """Enclose e^(−x) for x ≥ 0, with hi − lo ≤ 2.

    >>> exp_minus(Fraction(1), 20)  # 2^20/e = 385749.7…
    (385749, 385750)
    >>> exp_minus(Fraction(0), 20)
    (1048576, 1048576)
    >>> exp_minus(Fraction(10**9), 20)
    (0, 1)
    """
    if x < 0:
        raise InvalidInput(f"x must be at least 0 for e^(-x), got {x}")
    if bits < 0:
        raise InvalidInput(f"bits must be at least 0, got {bits}")
    if x == 0:
        return 1 << bits, 1 << bits
    if x > bits:  # e > 2, so 0 < e^(−x) < 2^(−x) < 2^(−bits)
        return 0, 1

    # Argument reduction: e^(−x) = (e^(−z))^(2^halvings), z = x/2^halvings < 1/16, as x < 2^bit_length(⌊x⌋).
    halvings = (x.numerator // x.denominator).bit_length() + 4
    # Width, in units of 2^(−places): the series has at most places/4 + 2 terms (z < 1/16) and each adds less
    # than 3, so it ends below places + 8; a squaring turns a width d into at most 2d + 2, so all of them end
    # below 2^halvings·(places + 10), which is less than 2^guard. Dropping the guard bits leaves at most 2.
    guard = halvings + bits.bit_length() + 8
    places = bits + guard
    lo, hi = _taylor(x.numerator, x.denominator << halvings, places)
    for _ in range(halvings):
        lo, hi = lo * lo >> places, -(-hi * hi >> places)
    return lo >> guard, -(-hi >> guard)


def exp_minus_doublings(x: Fraction, number: int, bits: int) -> list[Enclosure]:
    """Enclose e^(−x), e^(−2x), e^(−4x), … for x ≥ 0, ``number`` of them, each with hi − lo ≤ 2.

    Each is the square of the one before, so that one series serves all. A squaring turns a width d into at most 2d + 2,
    so the k-th is below 2^(k+2) wide in units of 2^(−places); the guard bits are number + 2 ≥ k + 2, and dropping them
    leaves at most 2.

    >>> exp_minus_doublings(Fraction(1, 2), 2, 20)
    [(635993, 635994), (385749, 385750)]
    """
    guard = number + 2
    places = bits + guard
    lo, hi = exp_minus(x, places)
    enclosures = []
    for _ in range(number):
        enclosures.append((lo >> guard, -(-hi >> guard)))
        lo, hi = lo * lo >> places, -(-hi * hi >> places)
    return enclosures


def _taylor(numerator: int, denominator: int, places: int) -> Enclosure:
    """Enclose e^(−z) = Σ (−z)^n/n! for 0 < z = numerator/denominator < 1/16."""
    least = most = lo = hi = 1 << places  # least ≤ z^n/n!·2^places ≤ most; the sum so far lies in lo..hi
    n = 0
    while most > 1:
        n += 1
        least = least * numerator // (denominator * n)
        most = -(-most * numerator // (denominator * n))
        lo, hi = (lo - most, hi - least) if n % 2 else (lo + least, hi + most)
    # The terms shrink and alternate, so what is left out is smaller than the last term taken: at most `most`.
    return max(lo - most, 0), min(hi + most, 1 << places)


def exp_minus_multiples(rate: Fraction, multiples: Sequence[int], bits: int) -> list[Enclosure]:
    """Enclose e^(−rate·m) for every m of an ascending sequence, with hi − lo ≤ 4·len(multiples).

    Each is the one before times e^(−rate·gap), so thousands cost thousands of multiplications and, since gaps
    repeat, a handful of exponentials.

    >>> exp_minus_multiples(Fraction(1, 2), [0, 2, 2, 4], 20)
    [(1048576, 1048576), (385749, 385750), (385749, 385750), (141908, 141910)]
    """
    steps: dict[int, Enclosure] = {0: (1 << bits, 1 << bits)}
    enclosures = []
    lo, hi = steps[0]
    reached = 0
    for multiple in multiples:
        gap = multiple - reached
        if gap < 0:
            raise InvalidInput("multiples must be ascending and at least 0")
        if gap:
            if gap not in steps:
                steps[gap] = exp_minus(rate * gap, bits)
            step_lo, step_hi = steps[gap]
            # Both are at most 1 and the step at most 2 wide: the width grows by 2, by rounding less than 2.
            lo, hi = lo * step_lo >> bits, -(-hi * step_hi >> bits)
            reached = multiple
        enclosures.append((lo, hi))
    return enclosures


def exp_minus_levels(rate: Fraction, levels: Collection[int], bits: int) -> Mapping[int, Enclosure]:
    """Enclose e^(−rate·m) for every m of some levels, each at most 128 times as wide as there are of them.

    Unless they are few and far between, all up to a power of two are computed and kept: the next to ask needs others.

    >>> exp_minus_levels(Fraction(1, 2), {4, 1000}, 20)[4]  # 2^20·0.135335…
    (141909, 141910)
    """
    dense = range(1 << max(levels).bit_length())
    return _list_powers(rate, dense if len(dense) <= 32 * len(levels) else tuple(sorted(levels)), bits)


@remembered(8)
def _list_powers(rate: Fraction, multiples: Sequence[int], bits: int) -> Mapping[int, Enclosure]:
    return dict(zip(multiples, exp_minus_multiples(rate, multiples, bits), strict=True))


def logistic(x: Fraction, bits: int) -> Enclosure:
    """Enclose 1/(1 + e^x) = e^(−x)/(1 + e^(−x)) for x ≥ 0, with hi − lo ≤ 3.

    >>> logistic(Fraction(1), 20)  # 2^20·0.26894…
    (282005, 282006)
    """
    return divide_odds(*exp_minus(x, bits), bits)


def divide_odds(lo: int, hi: int, bits: int) -> Enclosure:
    """Enclose t/(1 + t) for a t in 0..1 that lies in lo..hi, at most one wider."""
    one = 1 << bits
    # t/(1+t) grows with t, so the ends go to the ends; its slope is at most 1, so 2 grows by rounding only.
    return (lo << bits) // (one + lo), -(-(hi << bits) // (one + hi))


def logarithm(x: Fraction, bits: int) -> Enclosure:
    """Enclose ln x for x > 0, with hi − lo ≤ 3; both are negative where x < 1.

    Newton's step y + x·e^(−y) − 1 finds the digits. What counts is the check: lo/2^bits ≤ ln x is e^(−lo/2^bits) ≥ 1/x.

    >>> logarithm(Fraction(2), 20)  # 2^20·0.693147…
    (726816, 726819)
    >>> logarithm(Fraction(1, 2), 20), logarithm(Fraction(1), 20)
    ((-726819, -726816), (0, 0))
    """
    if x <= 0:
        raise InvalidInput(f"x must be greater than 0 for ln x, got {format_value(x)}")
    if x < 1:
        low, high = logarithm(1 / x, bits)
        return -high, -low
    if x == 1:
        return 0, 0
    size = x.numerator.bit_length() - x.denominator.bit_length()  # 2^(size−1) < x < 2^(size+1)
    places = bits + size + 9
    guess, step = Fraction(size * 710, 1024), Fraction(1)
    while True:
        if step * step * (1 << bits) < 4:
            low = max((guess.numerator << bits) // guess.denominator - 1, 0)
            high = low + 3
            above, below = (
                exp_minus(Fraction(low, 1 << bits), places)[0],
                exp_minus(Fraction(high, 1 << bits), places)[1],
            )
            if above * x >= 1 << places >= below * x:
                return low, high
        step = Fraction(exp_minus(guess, places)[0], 1 << places) * x - 1
        guess = max(Fraction(math.floor((guess + step) * (1 << bits + 8)), 1 << bits + 8), Fraction(0))


def floor_bits(enclose: Callable[[int], Enclosure], bits: int) -> int:
    """Find ⌊p·2^bits⌋, the first `bits` binary digits of an irrational p in (0, 1), exactly.

    `enclose(b)` must enclose p to b places. With g extra places, lo ≤ p·2^(bits+g) ≤ hi gives
    ⌊lo/2^g⌋ ≤ ⌊p·2^bits⌋ ≤ ⌊hi/2^g⌋; equal ends settle it. They become equal: p·2^bits is no whole number,
    so it keeps a distance from the nearest one, and the enclosure shrinks below any distance. (For rational
    x ≠ 0, e^x is irrational, hence so are e^(−x) and 1/(1+e^x): the samplers ask for nothing else.)

    >>> floor_bits(lambda bits: exp_minus(Fraction(1), bits), 20)
    385749
    >>> bin(floor_bits(lambda bits: logistic(Fraction(1, 10**30), bits), 100))  # 1/2 − 10^(−30)/4
    '0b111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111'
    """
    guard = 32
    while True:
        lo, hi = enclose(bits + guard)
        if lo >> guard == hi >> guard:
            return lo >> guard
        guard *= 2

"""AboveThreshold: the first of many public thresholds that a noisy count of values passes.

Public thresholds t_1 < t_2 < … < t_N are tried in turn (the ladder; downwards for the least values, which is the same
with every value negated). Each has a *deficit* d_i, how far the data is from stopping there, a whole number of 1/b
records: the number of values beyond t_i, less the number allowed. With one-sided geometric noise on the lattice 1/b,

    G_0 ~ geometric(e₁/b),   G_1, G_2, … ~ geometric(e₂/b),   Pr(g) ∝ e^(−rate·g), g ≥ 0,

the answer is the first t_i with G_i ≥ d_i + G_0, or the last one (Dwork, Naor, Reingold, Rothblum, Vadhan 2009; for
quantiles without bounds Durfee 2023). Noise that is never negative suffices, as only its differences count.

Theorem. Let one changed record move all deficits by amounts that lie in one interval of length ≤ 1 record that
contains 0. Then the answer is (e₁+e₂)-differentially private.

Proof. Write d′_i = d_i − s_i for a neighbour's deficits, σ = max(0, max s_i), so that 0 ≤ σ − s_i ≤ 1 and σ ≤ 1 (in
records). Take any draw that answers t_i at D. At D′ let G_0 be greater by σ, G_i by σ − s_i, and all others the same.
No t_j before i stops: G_j < d_j + G_0 = d′_j + s_j + G_0 ≤ d′_j + (G_0 + σ). And t_i stops: G_i + σ − s_i ≥ d_i + G_0 +
σ − s_i = d′_i + (G_0 + σ). So the changed draw answers t_i at D′ (at the last threshold nothing need stop there). The
change is one to one and costs a factor of at most e^(e₁·σ + e₂·(σ − s_i)) ≤ e^(e₁+e₂). ∎

Which deficits qualify:

1. *A count beyond each threshold*, d_i = #{x > t_i} − T: a replacement, an arrival or a departure moves all of them the
   same way, each by 0 or 1.
2. *A share of an unknown size*, d_i = #{x > t_i} − (1−q)·s − T with q = a/b: a replacement as in 1.; an arrival moves
   each by −(1−q) or q, a departure by 1−q or −q: intervals of length 1 that contain 0.
3. *Clamped* to a public interval, both still do: clamping is monotone and never lengthens a difference, so a difference
   s_i becomes one between 0 and s_i. So only the values near the wanted rank need be read.

The draw is exact. Neighbouring thresholds with equal deficits form a *run*; given G_0, each of its m thresholds stops
with p = e^(−e₂·(d + G_0)/b) (1 where d + G_0 ≤ 0), the run with 1 − (1−p)^m. So one exact draw finds the run, from
certified enclosures of all these, and then halving finds the place in it: of two parts of m and l thresholds the first
has the weight 1 − (1−p)^m and the second (1−p)^m·(1 − (1−p)^l).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from idios.core.distributions.nearest import average_nearest
from idios.core.domain import LIMIT, Domain
from idios.core.enclosures import Enclosure, exp_minus_levels
from idios.core.question_memory import remembered
from idios.core.sampling import RandomSource, geometric
from idios.core.weighted_index import draw_index
from idios.errors import InvalidInput

Reals = NDArray[np.float64]
Wholes = NDArray[np.int64]

_FARTHEST = 2**63 - 1  # of all offsets: twice the limit of the grid, as near as 64 bits come
_PLACES = 128  # of a probability: its enclosure is 2^(−100) wide, whatever the ladder
_STRATA = 512  # of G_0, at most, where floats for people are computed


@dataclass(frozen=True)
class Ladder:
    """The thresholds: all whole numbers near a public centre, then a geometric sequence on each side, out to the ends.

    >>> Ladder(-8, 20, centre=0, ratio=Fraction(3, 2)).thresholds.tolist()
    [-8, -6, -4, -3, -2, -1, 0, 1, 2, 3, 4, 6, 9, 13, 19, 20]
    """

    low: int
    high: int
    centre: int
    ratio: Fraction

    def __post_init__(self) -> None:
        if not -LIMIT <= self.low <= self.high <= LIMIT or abs(self.centre) > LIMIT or self.ratio <= 1:
            raise InvalidInput("a ladder leads from low up to high, within the limit of the grid, in ratios above 1")

    @classmethod
    def within(cls, domain: Domain, ratio: Fraction) -> Ladder:
        """From bound to bound, or to the ends of the grid where none is declared."""
        low, high = (min(max(end, -LIMIT), LIMIT) for end in (domain.low, domain.high))
        return cls(int(low), int(high), min(max(domain.centre, -LIMIT), LIMIT), ratio)

    @property
    def mirrored(self) -> Ladder:
        """The same with every threshold negated."""
        return Ladder(-self.high, -self.low, -self.centre, self.ratio)

    @property
    def thresholds(self) -> Wholes:
        """All of them, ascending."""
        return _list_thresholds(self)


@remembered(32)
def _list_thresholds(ladder: Ladder) -> Wholes:
    offsets = list_offsets(ladder.ratio)
    # what is beyond an end is cut off first: it could overflow
    up = offsets[: np.searchsorted(offsets, min(max(ladder.high - ladder.centre, 0), _FARTHEST), side="right")]
    down = offsets[: np.searchsorted(offsets, min(max(ladder.centre - ladder.low, 0), _FARTHEST), side="right")]
    inner = np.concatenate([ladder.centre - down[:0:-1], ladder.centre + up])  # ascending already: sorting is slow
    inner = inner[(inner > ladder.low) & (inner < ladder.high)]
    ends = np.array([ladder.low, ladder.high] if ladder.low < ladder.high else [ladder.low], dtype=np.int64)
    return np.concatenate([ends[:1], inner, ends[1:]])


@cache  # there are few ratios (``prepare_ladders``)
def list_offsets(ratio: Fraction) -> Wholes:
    """0, 1, 2, … as long as a step of 1 is the longer one, then by the ratio, rounded down."""
    offsets = [0]
    while (following := max(offsets[-1] + 1, offsets[-1] * ratio.numerator // ratio.denominator)) <= _FARTHEST:
        offsets.append(following)
    return np.array(offsets, dtype=np.int64)


class Run(NamedTuple):
    """So many thresholds in a row with the same deficit."""

    length: int
    deficit: int


@dataclass(frozen=True)
class AboveThreshold:
    """One draw of a threshold; ``runs`` describe the data, everything else is public.

    The rates are those of the noise on the lattice of deficits, e₁/b and e₂/b. An answer is ``unit`` times a threshold:
    steps of the answer's grid in one of the column's, negative where the ladder is mirrored.

    >>> ladder = Ladder(0, 9, centre=0, ratio=Fraction(3, 2))
    >>> three = AboveThreshold(ladder, (Run(4, 30), Run(2, 0), Run(1, -1)), Fraction(1, 2), Fraction(1, 2))
    >>> ladder.thresholds.tolist(), [round(three.pmf(t), 3) for t in (3, 4, 6, 9, 5)]
    ([0, 1, 2, 3, 4, 6, 9], [0.0, 0.622, 0.116, 0.262, 0.0])
    """

    ladder: Ladder
    runs: tuple[Run, ...]
    first_rate: Fraction
    second_rate: Fraction
    unit: int = 1

    def __post_init__(self) -> None:
        if sum(run.length for run in self.runs) != len(self.ladder.thresholds):
            raise InvalidInput("every threshold of the ladder belongs to one run")

    def draw(self, source: RandomSource | None = None) -> int:
        """One exact draw: G_0, then a run, then a place in it."""
        tried = self._list_tried(geometric(self.first_rate, source=source))
        chosen = draw_index(partial(_enclose_runs, tried, self.second_rate), _PLACES, source)
        place = sum(run.length for run in tried[:chosen]) + _draw_place(tried[chosen], self.second_rate, source)
        return self.unit * int(self.ladder.thresholds[place])

    def _list_tried(self, start: int) -> list[Run]:
        """The runs with d + G_0 in place of d, up to the first threshold that is sure to stop; the last one is."""
        tried: list[Run] = []
        for length, deficit in self.runs:
            if deficit + start <= 0:
                return [*tried, Run(1, 0)]
            tried.append(Run(length, deficit + start))
        length, deficit = tried.pop()
        return [*tried, *([Run(length - 1, deficit)] if length > 1 else []), Run(1, 0)]

    def pmf(self, point: int | None) -> float:
        """The probability of an answer, as far as floats can tell; there is always one."""
        if point is None or point % self.unit:
            return 0.0
        threshold = point // self.unit
        place = int(np.searchsorted(self.ladder.thresholds, min(max(threshold, -LIMIT), LIMIT)))
        if self.ladder.thresholds[min(place, len(self.ladder.thresholds) - 1)] != threshold:
            return 0.0
        firsts, lengths, _ = self._pieces
        piece = int(np.searchsorted(firsts, place, side="right")) - 1
        return float(self._masses[piece] / lengths[piece])

    def expected_absolute(self, value: int, low: int | float = -math.inf, high: int | float = math.inf) -> float:
        """E|answer − value|, but for the farthest answers (``nearest``), each clamped to low..high."""
        firsts, lengths, _ = self._pieces
        answers = np.clip(self.unit * self.ladder.thresholds.astype(np.float64), float(low), float(high))
        away = np.abs(answers - float(value))
        return average_nearest(self._masses, np.add.reduceat(away, firsts) / lengths)

    @cached_property
    def _pieces(self) -> tuple[Wholes, Wholes, Reals]:
        """First threshold, length and deficit of parts of runs, so short that all their thresholds are alike."""
        pieces = [(length, float(deficit)) for run in self.runs[:-1] for length, deficit in _split(run)]
        final = self.runs[-1]
        pieces += [(length, float(deficit)) for length, deficit in _split(Run(final.length - 1, final.deficit))]
        pieces.append((1, -np.inf))
        lengths = np.array([length for length, _ in pieces], dtype=np.int64)
        return np.cumsum(lengths) - lengths, lengths, np.array([deficit for _, deficit in pieces])

    @cached_property
    def _masses(self) -> Reals:
        """The probability of each piece: its mean over strata of G_0."""
        _, lengths, deficits = self._pieces
        first, second = float(self.first_rate), float(self.second_rate)
        stride = max(1, math.ceil(45 / first / _STRATA))
        starts = stride * np.arange(math.ceil(45 / first / stride), dtype=np.float64)
        with np.errstate(divide="ignore"):  # a threshold that is sure to stop
            deficits = np.maximum(deficits + (starts + (stride - 1) / 2)[:, None], 0)
            survival = lengths * np.log1p(-np.exp(-second * deficits))
        before = np.cumsum(survival[:, :-1], axis=1)
        reached = np.exp(np.hstack([np.zeros((len(starts), 1)), before]))
        shares = np.exp(-first * starts)
        masses: Reals = (shares / shares.sum()) @ (reached * -np.expm1(survival))
        return masses


def find_runs(ladder: Ladder, values: Sequence[int], deficits: Sequence[int]) -> tuple[Run, ...]:
    """The runs of a ladder: a threshold with j of the values (ascending) beyond it has the deficit ``deficits[j]``.

    A value beyond the limit of the grid reads as the limit.

    >>> find_runs(Ladder(0, 9, centre=0, ratio=Fraction(3, 2)), (2, 2, 7), (-1, 0, 1, 2))
    (Run(length=2, deficit=2), Run(length=4, deficit=0), Run(length=1, deficit=-1))
    """
    if values and not -LIMIT <= values[0] <= values[-1] <= LIMIT:
        values = [min(max(value, -LIMIT), LIMIT) for value in values]
    thresholds = ladder.thresholds
    # how many lie below each value
    edges = np.concatenate([[0], np.searchsorted(thresholds, np.array(values, np.int64)), [len(thresholds)]])
    lengths = np.diff(edges)
    met = lengths > 0
    steps = np.array(deficits, np.int64)[::-1][met]
    firsts = np.flatnonzero(np.concatenate([[True], steps[1:] != steps[:-1]]))
    return tuple(map(Run, np.add.reduceat(lengths[met], firsts).tolist(), steps[firsts].tolist()))


def _split(run: Run) -> Iterator[Run]:
    done = 0
    while done < run.length:
        length = min(max(1, done // 32), run.length - done)
        yield Run(length, run.deficit)
        done += length


def _enclose_runs(runs: list[Run], rate: Fraction, places: int) -> list[Enclosure]:
    """The probability that each run is the first to stop: that none before it does, times 1 − (1−p)^m."""
    one = 1 << places
    powers = exp_minus_levels(rate, {run.deficit for run in runs}, places)
    enclosures = []
    least = most = one
    for length, deficit in runs:
        low, high = powers[deficit]
        lasts_least, lasts_most = _raise((one - high, one - low), length, places)
        enclosures.append((least * (one - lasts_most) >> places, -(-most * (one - lasts_least) >> places)))
        least, most = least * lasts_least >> places, -(-most * lasts_most >> places)
    return enclosures


def _draw_place(run: Run, rate: Fraction, source: RandomSource | None) -> int:
    """Which threshold of a run stops, given that one does."""
    place, length = 0, run.length
    while length > 1:
        half = length // 2
        parts = [Run(half, run.deficit), Run(length - half, run.deficit)]
        if draw_index(partial(_enclose_runs, parts, rate), _PLACES, source):
            place, length = place + half, length - half
        else:
            length = half
    return place


def _raise(base: Enclosure, exponent: int, places: int) -> Enclosure:
    """Enclose a power of a number between 0 and 1, by squaring."""
    low = high = 1 << places
    square_low, square_high = base
    while exponent:
        if exponent & 1:
            low, high = low * square_low >> places, -(-high * square_high >> places)
        square_low, square_high = square_low * square_low >> places, -(-square_high * square_high >> places)
        exponent >>= 1
    return low, high

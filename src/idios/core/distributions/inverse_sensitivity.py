"""The inverse-sensitivity distribution: a point is drawn the likelier, the fewer records reach it.

    Pr(t) ∝ q^{u(t)},   q = e^{−ε/2},   u(t) = least i with lo_i ≤ t ≤ hi_i

on the points of a grid. Neighbouring data sets have nested envelopes, so u moves by at most 1 between
them, every weight by a factor of at most e^{ε/2} and their sum too: the draw is ε-differentially private,
each data set calibrated on itself. Two forms:

- on a bounded range, points beyond the last known distance K count as K + 1 (min(u, K+1) moves by at
  most 1 as well);
- with a refusal, only the points within the last known distance b can be drawn, and "no answer" is one
  more outcome, of weight C·q^b (``idios.core.calibration`` chooses b and C, and has the proof).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from idios.core.envelope import Envelope
from idios.core.sampling import Source, uniform_below, weighted_index
from idios.errors import InvalidInput


class Piece(NamedTuple):
    """The grid points first..last, all reached by the same number of changed records."""

    first: int
    last: int
    distance: int

    @property
    def points(self) -> int:
        """How many there are."""
        return self.last - self.first + 1


@dataclass(frozen=True)
class InverseSensitivity:
    """A draw from the grid points low..high, or from the last ball, by inverse sensitivity.

    >>> ends = InverseSensitivity(Envelope(4, (4, 3), (4, 6)), Fraction(2), low=0, high=9)
    >>> [round(ends.pmf(t) / ends.pmf(4), 3) for t in (4, 3, 6, 0)]
    [1.0, 0.368, 0.368, 0.135]
    """

    envelope: Envelope
    epsilon: Fraction
    low: int | None = None
    high: int | None = None
    refusal: int = 0

    def __post_init__(self) -> None:
        if self.epsilon <= 0:
            raise InvalidInput(f"epsilon must be greater than 0, got {self.epsilon}")
        if (self.low is None) != (self.high is None) or (self.low is None) == (self.refusal == 0):
            raise InvalidInput("either a range low..high or a weight of refusal must be given")

    @cached_property
    def balls(self) -> list[tuple[int, int]]:
        """The first and the last point within each distance; each contains the one before."""
        lows, highs = self.envelope.lows, self.envelope.highs
        if self.low is None or self.high is None:
            return [(int(lo), int(hi)) for lo, hi in zip(lows, highs, strict=True)]
        low, high = self.low, self.high
        balls = [(int(max(lo, low)), int(min(hi, high))) for lo, hi in zip(lows, highs, strict=True)]
        return [*balls, (low, high)]

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        """The grid in runs of equal distance, in ascending order."""
        left: list[Piece] = []
        right: list[Piece] = []
        inner: tuple[int, int] | None = None
        for distance, (low, high) in enumerate(self.balls):
            if inner is None:
                left.append(Piece(low, high, distance))
            else:
                if low < inner[0]:
                    left.append(Piece(low, inner[0] - 1, distance))
                if high > inner[1]:
                    right.append(Piece(inner[1] + 1, high, distance))
            inner = low, high
        return (*reversed(left), *right)

    @cached_property
    def weights(self) -> dict[int, int]:
        """How many outcomes there are of each distance, refusal included: N = Σ weights[i]·q^i."""
        sizes = [0, *(high - low + 1 for low, high in self.balls)]
        weights = {i: outer - inner for i, (inner, outer) in enumerate(pairwise(sizes)) if outer > inner}
        if self.refusal:
            last = self.envelope.distance
            weights[last] = weights.get(last, 0) + self.refusal
        return weights

    def draw(self, source: Source | None = None) -> int | None:
        """One exact draw; None is the refusal. First a distance, then one of its outcomes, all equally likely."""
        distances = list(self.weights)
        distance = distances[weighted_index(list(self.weights.values()), distances, self.epsilon / 2, source)]
        chosen = uniform_below(self.weights[distance], source)
        low, high = self.balls[distance]
        inner_low, inner_high = self.balls[distance - 1] if distance else (low, low - 1)
        left, right = inner_low - low, high - inner_high
        if chosen < left:
            return low + chosen
        return inner_high + 1 + chosen - left if chosen < left + right else None

    def distance_of(self, point: int) -> int | None:
        """The exponent of a point's weight, None if it cannot be drawn."""
        for piece in self.pieces:
            if piece.first <= point <= piece.last:
                return piece.distance
        return None

    def pmf(self, point: int | None) -> float:
        """The probability of a point, or of the refusal (None)."""
        if point is None:
            return self.refusal_probability
        distance = self.distance_of(point)
        return 0.0 if distance is None else self._weight(distance) / self._normaliser

    @property
    def refusal_probability(self) -> float:
        """The probability of no answer."""
        return self.refusal * self._weight(self.envelope.distance) / self._normaliser if self.refusal else 0.0

    def cdf(self, point: int) -> float:
        """The probability of an answer at or below a point, given that there is one."""
        below = sum(
            (min(piece.last, point) - piece.first + 1) * self._weight(piece.distance)
            for piece in self.pieces
            if piece.first <= point
        )
        return below / self._answered

    def quantile(self, probability: float) -> int:
        """The least point whose cdf reaches a probability."""
        if not 0 <= probability <= 1:
            raise InvalidInput(f"a probability must be between 0 and 1, got {probability}")
        wanted = probability * self._answered
        for piece in self.pieces:
            each = self._weight(piece.distance)
            if each and wanted <= piece.points * each:
                return piece.first + max(0, math.ceil(wanted / each) - 1)
            wanted -= piece.points * each
        return self.pieces[-1].last

    def central_interval(self, probability: float) -> tuple[int, int]:
        """An interval that contains an answer with at least this probability, equal tails outside."""
        tail = (1 - probability) / 2
        return self.quantile(tail), self.quantile(1 - tail)

    def expected_absolute(self, centre: int) -> float:
        """E|t − centre| of an answer, given that there is one."""
        total = sum(
            _absolute_sum(piece.first - centre, piece.last - centre) * self._weight(piece.distance)
            for piece in self.pieces
        )
        return total / self._answered

    def _weight(self, distance: int) -> float:
        return math.exp(-float(self.epsilon) / 2 * distance)

    @cached_property
    def _answered(self) -> float:
        return math.fsum(piece.points * self._weight(piece.distance) for piece in self.pieces)

    @cached_property
    def _normaliser(self) -> float:
        return math.fsum(count * self._weight(distance) for distance, count in self.weights.items())


def _absolute_sum(first: int, last: int) -> int:
    """Σ |t| over the integers first..last."""
    if first >= 0:
        return (first + last) * (last - first + 1) // 2
    if last <= 0:
        return -(first + last) * (last - first + 1) // 2
    return (first * (first - 1) + last * (last + 1)) // 2

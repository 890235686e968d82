"""The inverse-sensitivity distribution: a point is drawn the likelier, the fewer records reach it.

    Pr(t) ∝ π(t)·q^{u(t)},   Pr(no answer) ∝ R·q^b,   q = e^{−ε/2}

π is a public measure on the grid (``base_measure``) and R a public number. The data gives nested balls, ball j being
the points that j changed records reach. Those up to ball b are used: u(t) is the first ball that t is in, and b + 1
outside of all.

Theorem. If the balls of neighbours are nested, ball_j(D′) ⊂ ball_{j+1}(D), and |b − b′| ≤ 1, then the draw is
ε-differentially private, each data set calibrated on itself.
Proof. Let v(t) be the first of all balls, used or not, that t is in. The balls are nested, so |v − v′| ≤ 1, and as
u = min(v, b + 1), |u − u′| ≤ 1 at every point. Every weight, the refusal's included, changes by a factor of at most 1/q
between neighbours, and so does their sum: Pr/Pr′ ≤ q^{−2} = e^ε. ∎

No support ever changes, so that no δ is needed. A point out of reach has u ≥ b + 1 and all of π is at most 1, so
Pr(an answer that b changed records do not reach) ≤ q^{b+1}/(R·q^b) = q/R, whatever the data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from operator import sub
from typing import NamedTuple

from idios.core.base_measure import BaseMeasure
from idios.core.distributions.nearest import average_nearest
from idios.core.sampling import RandomSource
from idios.core.weighted_index import weighted_index
from idios.errors import InvalidInput


class Plateau(NamedTuple):
    """The points first, first + step, …, last: reached by equally many changed records, each of the same ``weight``."""

    first: int
    last: int
    weight: int
    distance: int
    step: int = 1

    @property
    def points(self) -> int:
        """How many there are."""
        return (self.last - self.first) // self.step + 1


@dataclass(frozen=True)
class InverseSensitivity:
    """A draw from all points that the measure knows, or None.

    >>> free = InverseSensitivity(((4, 4), (3, 6)), Fraction(2), BaseMeasure(centre=4, shells=3), refusal=1)
    >>> [round(free.pmf(t) / free.pmf(4), 3) for t in (4, 5, 3, 6, 0)]
    [1.0, 0.184, 0.184, 0.092, 0.017]
    """

    balls: tuple[tuple[int, int], ...]
    epsilon: Fraction
    measure: BaseMeasure
    refusal: int

    def __post_init__(self) -> None:
        if self.epsilon <= 0:
            raise InvalidInput(f"epsilon must be greater than 0, got {self.epsilon}")

    @cached_property
    def plateaus(self) -> tuple[Plateau, ...]:
        """Points in runs of equal weight and distance: the law, where a point of several runs has the sum of them."""
        inward = [(low - 1, distance) for distance, (low, _) in enumerate(self.balls, start=1)]
        outward = [(high, distance) for distance, (_, high) in enumerate(self.balls)]
        # the last point of each run; what follows the last of them is outside
        runs = [*reversed(inward), *outward]
        plateaus: list[Plateau] = []
        for component in self.measure.components:
            i = 0
            for first, last, weight, step in component.stretches:
                start = first
                while start <= last:
                    while i < len(runs) and runs[i][0] < start:
                        i += 1
                    end, distance = runs[i] if i < len(runs) else (last, len(self.balls))
                    plateaus.append(Plateau(start, min(end // step * step, last), weight, distance, step))
                    start = plateaus[-1].last + step
        return tuple(plateaus)

    @cached_property
    def masses(self) -> list[int]:
        """The same law in few numbers: of each ball what is not in the one before, and of the grid what is in none."""
        below = self.measure.sum_below([low for low, _ in reversed(self.balls)])[::-1]
        upto = self.measure.sum_below([high + 1 for _, high in self.balls])
        balls = [*map(sub, upto, below), self.measure.total]
        return [balls[0], *map(sub, balls[1:], balls)]

    def draw(self, source: RandomSource | None = None, begun: int | None = None) -> int | None:
        """One exact draw; None is the refusal. First a ring, then one of its points by their weights.

        ``begun`` are the first 64 bits of the number that chooses the ring, where they are drawn already.
        """
        # one more for each exponent: the refusal's is −1 where there is no ball
        counts = [*self.masses, self.refusal * self.measure.denominator]
        exponents = [*range(1, len(counts)), len(self.balls)]
        chosen = weighted_index(counts, exponents, self.epsilon / 2, source, begun)
        if chosen == len(self.balls) + 1:
            return None
        within = self.balls[chosen] if chosen < len(self.balls) else None
        outside = self.balls[chosen - 1] if chosen else None
        return self.measure.draw(within, outside, source)

    def pmf(self, point: int | None) -> float:
        """The probability of a point, or of the refusal (None)."""
        if point is None:
            return self.refusal_probability
        found = [p for p in self.plateaus if p.first <= point <= p.last and point % p.step == 0]
        weights = (p.weight / self.measure.denominator * self._power(p.distance) for p in found)
        return math.fsum(weights) / self._normaliser

    @property
    def refusal_probability(self) -> float:
        """The probability of no answer."""
        return self.refusal * self._power(len(self.balls) - 1) / self._normaliser

    def expected_absolute(self, centre: int) -> float:
        """E|t − centre| of an answer, given that there is one, but for the farthest answers (``nearest``)."""
        return average_nearest(
            [self._mass(p) for p in self.plateaus],
            [_average_absolute(p.first - centre, p.last - centre, p.step) for p in self.plateaus],
        )

    def _mass(self, plateau: Plateau) -> float:
        return plateau.points * plateau.weight / self.measure.denominator * self._power(plateau.distance)

    def _power(self, distance: int) -> float:
        return math.exp(-float(self.epsilon) / 2 * distance)

    @cached_property
    def _answered(self) -> float:
        denominator = self.measure.denominator
        return math.fsum(mass / denominator * self._power(distance) for distance, mass in enumerate(self.masses))

    @cached_property
    def _normaliser(self) -> float:
        return self._answered + self.refusal * self._power(len(self.balls) - 1)


def _average_absolute(first: int, last: int, step: int) -> float:
    """The mean of |t| over first, first + step, …, last."""
    if first >= 0 or last <= 0:
        return abs(first + last) / 2
    below = -first // step + 1  # from first up to 0 at most
    points = (last - first) // step + 1
    return (-below * (2 * first + (below - 1) * step) + (points - below) * (first + below * step + last)) / (2 * points)

"""A drawn centre: where the values of a column without bounds lie, so that distances from there mean something.

The median by the inverse-sensitivity mechanism, with a share of ε. Sums and averages are clipped around it
(``clipping``), and ranks near an end are searched for from there (``outer_ranks``): a narrow distribution far from 0
looks like any other then. Its share is the least with which a median is found nearly always, where the number of
values is public: some 120 values times ε; a quarter of ε where it is secret. A centre that is not found, or found
wrongly, costs accuracy and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from idios.core.base_measure import BaseMeasure
from idios.core.distributions import InverseSensitivity
from idios.core.domain import LIMIT, Domain
from idios.core.inverse import find_balls, find_largest_distance, make_measure
from idios.core.neighbours import Moves
from idios.core.sampling import RandomSource
from idios.core.statistics.base import FINENESS
from idios.core.statistics.order import Median
from idios.core.summary import Summary

REFUSAL = 100
"""R of a centre: a refusal costs little here, a centre from nowhere much, and a greater R takes more records."""
NEEDED = 120
"""ε·n with which a median is found nearly always, also of microseconds."""
ENOUGH = 200
"""ε·n of a question from which on a centre is worth its share."""
_MEDIAN = Median()


@dataclass(frozen=True)
class Centre:
    """How a centre is drawn."""

    epsilon: Fraction
    measure: BaseMeasure
    distance: int
    refusal: int = REFUSAL

    def ranks(self, moves: Moves) -> Iterable[tuple[int, int]]:
        """The run around the median."""
        return _MEDIAN.ranks(moves, self.distance)

    def calibrate(self, summary: Summary) -> InverseSensitivity:
        """The mechanism from the values around the middle."""
        balls = find_balls(_MEDIAN, summary, self.distance, FINENESS)
        return InverseSensitivity(balls, self.epsilon, self.measure, self.refusal)

    def draw(self, summary: Summary, source: RandomSource | None = None) -> int | None:
        """A grid point of the column, half steps rounded down; None where the median is refused."""
        drawn = self.calibrate(summary).draw(source)
        return None if drawn is None else place_centre(drawn)


def place_centre(drawn: int) -> int:
    """The grid point of the column for a median on half steps."""
    return min(max(drawn // _MEDIAN.resolution(), -LIMIT), LIMIT)


def plan_centre(domain: Domain, epsilon: Fraction, size: int | None) -> Centre | None:
    """Give a centre its share of ``epsilon``; None where the values are publicly too few for that.

    >>> plan_centre(Domain(), Fraction(1), 1000).epsilon, plan_centre(Domain(), Fraction(1), None).epsilon
    (Fraction(3, 25), Fraction(1, 4))
    """
    if size is None:
        share = epsilon / 4
    elif epsilon * size < ENOUGH:
        return None
    else:
        share = min(epsilon / 2, max(epsilon / 20, Fraction(NEEDED, size)))
    measure = make_measure(_MEDIAN, domain, FINENESS)
    return Centre(share, measure, find_largest_distance(measure, share, REFUSAL))

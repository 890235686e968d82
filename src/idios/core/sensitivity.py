"""How far one record moves a statistic on any data at all: the global sensitivity, in steps of the answer's grid.

Laplace noise needs the greatest change |Δ|. Gaussian noise needs Δ₂², the greatest Σ_c Δ_c² over all cells c of a
question, whose noises are independent. With e the sensitivity to a value that enters or leaves a selection, and c that
to one that changes within it, a changed record

    add-remove                    enters or leaves one cell            Δ₂² = e²
    replace, the whole table      changes within it                    Δ₂² = c²
    replace, one selection        enters, leaves or changes            Δ₂² = max(e², c²)
    replace, several cells        leaves one cell and enters another,
                                  or any of these                      Δ₂² = max(2e², c²)

So a record that leaves one cell for another costs √2 times as much as one that leaves, and not twice. i records move
all answers together by i·Δ₂ at most, in whichever cells they are: the Euclidean norm of a sum is at most the sum of the
norms.
"""

from __future__ import annotations

import math
from fractions import Fraction

from idios.core.domain import Domain
from idios.core.neighbours import Moves, Neighbours
from idios.core.statistics.base import Statistic


def find_sensitivity(statistic: Statistic, domain: Domain, moves: Moves, fineness: int) -> Fraction:
    """The greatest |Δ|, rounded up to the grid: ⌊x+½⌋ − ⌊y+½⌋ ≤ ⌈x − y⌉."""
    known = statistic.global_sensitivity(domain, moves)
    if known is None:
        raise AssertionError("a statistic chose its global sensitivity and then does not know it")
    return Fraction(math.ceil(known * statistic.resolution(fineness)))


def find_squared_sensitivity(statistic: Statistic, domain: Domain, moves: Moves, parts: int, fineness: int) -> Fraction:
    """Δ₂², where a changed record touches ``parts`` cells at most.

    >>> from idios.core.statistics import Count, Sum
    >>> column, cell = Domain(lower=-10, upper=10), Moves(Neighbours.REPLACE, size=5, outside=100)
    >>> # to enter two cells, 1² + 1², and to change by 20 within one
    >>> [int(find_squared_sensitivity(s, column, cell, parts=2, fineness=1)) for s in (Count(), Sum())]
    [2, 400]
    """
    changing = Moves(Neighbours.REPLACE, moves.size)
    if moves.whole:
        return find_sensitivity(statistic, domain, changing, fineness) ** 2
    entered: Fraction = find_sensitivity(statistic, domain, Moves(Neighbours.ADD_REMOVE, moves.size), fineness) ** 2
    if moves.neighbours is Neighbours.ADD_REMOVE:
        return entered
    changed: Fraction = find_sensitivity(statistic, domain, changing, fineness) ** 2
    return max(parts * entered, changed)

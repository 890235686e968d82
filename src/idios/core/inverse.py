"""What the inverse-sensitivity mechanism needs: how far it looks, what it can answer, and its balls at the data.

The mechanism and its proof are in ``distributions/inverse_sensitivity``. Here:

1. Its balls are the envelope of the column *without* its declared bounds, and b is the last distance, up to a public J,
   at which that is finite: with the bounds it always would be, and a handful of records in a wide range would be
   answered from nowhere.
2. Envelopes are nested as computed, which the contract tests of the statistics check; also where they are infinite from
   the distance on at which the statistic can be undefined. So |b − b′| ≤ 1 between neighbours.
3. R, J and the base measure are public. A refusal has the weight R·q^b and all answers together at most 1, so data must
   survive some (2/ε)·ln R changed records to be answered at all, and (2/ε)·(ln R + 18) to be answered nearly always:
   even if all values are one round point. One point of more digits, or of a day's microseconds, takes up to twice that.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import cast

from idios.core.base_measure import PARTS, BaseMeasure, RoundPoints
from idios.core.domain import LIMIT, Domain
from idios.core.exact import text
from idios.core.neighbours import RECORDS, VALUES, Counted, Moves, Neighbours, to_plural
from idios.core.question_memory import remembered
from idios.core.statistics.base import Statistic
from idios.core.statistics.order import DiscreteQuantile, OrderStatistic, Quantile
from idios.core.summary import Summary
from idios.errors import Unanswerable

REFUSAL = 1000
"""R for each value of a question that is drawn so: that any of them is out of reach is less likely than 1 in 1000."""
NEGLIGIBLE = 14
"""−ln of what may be cut off at the largest distance: a millionth."""
USUAL = 18
"""−ln of the mass of a round point, and 4 more for an answer that is 50 times as likely as a refusal."""
ROUND = PARTS // 4
"""The share of the shells' mass that round points get: more of it would draw answers to them, less refuse heaps."""
MOST_DIGITS = 9999
MOST_PLACES = 100
"""Steps lie between 10^−100 and 10^100."""
DAYS = 2**16
"""How far whole days count as round, from 1970 on both sides."""
OUTER = Fraction(1, 10)
HOPELESS = 3
"""Of a refusal with odds of at least e to this, 20 to 1, a question need not be asked."""
MOST_RECORDS = 10**18
"""More than any table has: a rank or a share that needs as many is not pursued further."""


@remembered(256)
def make_measure(statistic: Statistic, domain: Domain, fineness: int) -> BaseMeasure:
    """The base measure on the grid of a statistic's answers."""
    resolution = statistic.resolution(fineness)
    centre = domain.centre * resolution if statistic.equivariant else 0
    low, high = (statistic.place(end, fineness) for end in statistic.range(domain))
    return BaseMeasure(
        centre,
        (2 * LIMIT * resolution).bit_length(),
        None if isinstance(low, float) else low,
        None if isinstance(high, float) else high,
        tuple(list_round_points(domain.step, domain.day, resolution)),
    )


def list_round_points(step: Fraction, day: int, resolution: int = 1) -> Iterator[RoundPoints]:
    """What counts as round in a column of some step, on a grid of so many parts of it; ``day`` as in ``Domain``.

    Numbers of up to four digits, at any place of the decimal point at which they are whole steps: 0.05, 12.99, 50,000.
    Of a step that divides no power of ten, as many steps. Where columns tell the time: days from 1790 to 2149, and
    their hours, minutes and seconds, as far as they are whole steps.

    >>> [(family.grid, family.most, family.share) for family in list_round_points(Fraction(1, 4), 0)]
    [(4, 9999, 8)]
    >>> [(family.grid, family.most, family.share) for family in list_round_points(Fraction(1), 48)]
    [(48, 65535, 4), (2, 1572863, 4)]
    """
    if not day:
        places = range(-MOST_PLACES, MOST_PLACES + 1)
        # ten times as much as whole steps are whole steps
        first = bisect_left(places, True, key=lambda e: (Fraction(10) ** e / step).denominator == 1)
        unit = int(Fraction(10) ** places[first] / step) if first < len(places) else 1
        yield RoundPoints(unit * resolution, MOST_DIGITS, ROUND, LIMIT * resolution)
        return
    units = [parts for parts in (1, 24, 1440, 86_400) if (day / step / parts).denominator == 1]
    for i, parts in enumerate(units, start=1):
        share = ROUND >> min(i, len(units) - 1)
        yield RoundPoints(int(day / step / parts) * resolution, DAYS * parts - 1, share)
    if not units:
        yield RoundPoints(resolution, DAYS - 1, ROUND)


def find_largest_distance(measure: BaseMeasure, epsilon: Fraction, refusal: int) -> int:
    """J = ⌈(2/ε)·(ln R + ln 1/π_min + 14)⌉."""
    return math.ceil(2 / epsilon * Fraction(math.log(refusal) - math.log(measure.least) + NEGLIGIBLE))


def find_enough(epsilon: Fraction, refusal: int, mass: int = USUAL) -> int:
    """How many changed records data of any usual shape must survive in order to be answered nearly always.

    ``mass`` is −ln of what the measure has where such data lie, with a margin.
    """
    return math.ceil(2 / epsilon * Fraction(math.log(refusal) + mass))


def is_outer(statistic: OrderStatistic, epsilon: Fraction, refusal: int, size: int | None) -> bool:
    """Whether a rank lies so near an end that enough changed records to be refused would move it out of the data.

    Decided by the rank and by the number of values where that is public; where it is secret, a quantile of the outer
    tenths is taken for an outer rank.
    """
    enough = find_enough(epsilon, refusal, NEGLIGIBLE)
    if statistic.missing_bound(Domain(), enough) is not None:
        return True
    if not isinstance(statistic, Quantile | DiscreteQuantile) or min(statistic.q, 1 - statistic.q) >= OUTER:
        return False
    return size is None or count_survived(statistic, size) < enough


def find_balls(statistic: Statistic, summary: Summary, distance: int, fineness: int) -> tuple[tuple[int, int], ...]:
    """The points that 0, 1, …, b changed records reach. If all of them can change, that is every point there is."""
    distance = min(distance, summary.size + 1)
    envelope = statistic.envelope(replace(summary, domain=Domain(summary.domain.step)), distance, fineness)
    # what is infinite once stays so
    finite = min(bisect_left(ends, True, key=_is_infinite) for ends in (envelope.lows, envelope.highs))
    return cast(tuple[tuple[int, int], ...], tuple(zip(envelope.lows[:finite], envelope.highs[:finite], strict=True)))


def _is_infinite(end: int | float) -> bool:
    return isinstance(end, float)


def refuse_hopeless(
    statistic: Statistic, size: int, epsilon: Fraction, refusal: int, counted: Counted = RECORDS
) -> None:
    """Refuse what would be NULL nearly always; ``size`` is public."""
    survived = count_survived(statistic, size)
    if Fraction(math.log(refusal) - HOPELESS) < epsilon / 2 * survived:
        return
    instead = f"ask about at least {counted.write(find_needed_size(statistic, epsilon, refusal))}"
    if survived:
        # whoever has so many records is protected with so many times the ε
        least = Fraction(math.ceil(20 * counted.each * (math.log(refusal) + USUAL) / survived), 10)
        instead += f", or with epsilon = {text(least)} or more"
    raise Unanswerable(
        f"{statistic.name} of {counted.write(size)} would be NULL nearly always, as {counted.count(survived + 1):,} "
        f"changed {to_plural(counted.word)} could move it anywhere: {instead}"
    )


def describe_null_risk(
    statistic: Statistic,
    neighbours: Neighbours,
    size: int | None,
    whole: bool,
    epsilon: Fraction,
    refusal: int,
    counted: Counted = VALUES,
) -> str:
    """Where NULL is to be expected, in a few words; nothing where an answer is nearly certain.

    ``size`` is the number of records where it is public, and ``whole`` says that all of them have a value that counts.
    All answers together weigh at most 1: while R·q^b ≥ 1, NULL is as likely as an answer at least, whatever the data.

    >>> from idios.core.statistics.order import Median
    >>> describe_null_risk(Median(), Neighbours.REPLACE, 500, False, Fraction(1), 1000)
    'NULL is possible where fewer than about 101 values are selected'
    >>> describe_null_risk(Median(), Neighbours.REPLACE, 21, True, Fraction(1), 1000)
    'NULL is likely: an answer is nearly certain from about 101 values on, and there are 21'
    """
    needed = find_needed_size(statistic, epsilon, refusal, neighbours)
    if size is None or (size >= needed and not whole):
        return f"NULL is possible where fewer than about {counted.write(needed)} are selected"
    if size >= needed:
        return ""
    likely = math.log(refusal) >= epsilon / 2 * count_survived(statistic, size, neighbours)
    return (
        f"NULL is {'likely' if likely else 'possible'}: an answer is nearly certain from about "
        f"{counted.write(needed)} on, and there are {'' if whole else 'at most '}{counted.count(size):,}"
    )


@remembered(256)
def find_needed_size(
    statistic: Statistic, epsilon: Fraction, refusal: int, neighbours: Neighbours = Neighbours.REPLACE
) -> int:
    """About how many records must be selected so that an answer is nearly certain, or the most there can be."""
    enough = find_enough(epsilon, refusal)

    def survives(size: int) -> bool:
        return enough <= size and not _is_lost(statistic, Moves(neighbours, size), enough)

    size = 1
    while size < MOST_RECORDS and not survives(size):
        size *= 2
    return _find_first(size, survives)


def count_survived(statistic: Statistic, size: int, neighbours: Neighbours = Neighbours.REPLACE) -> int:
    """How many changes ``size`` records survive before the statistic without bounds could be anything."""
    moves = Moves(neighbours, size)
    return max(0, _find_first(size + 1, lambda distance: _is_lost(statistic, moves, distance)) - 1)


def _is_lost(statistic: Statistic, moves: Moves, distance: int) -> bool:
    """Whether so many changes could move the statistic beyond the first or the last record."""
    return any(first < 1 or last > moves.size for first, last in statistic.ranks(moves, distance))


def _find_first(end: int, holds: Callable[[int], bool]) -> int:
    """The first number from 0 on for which a condition holds, and goes on to hold; ``end`` if there is none below.

    ``bisect`` would not do: a size may be greater than any list is long.
    """
    first, last = 0, end
    while first < last:
        middle = (first + last) // 2
        if holds(middle):
            last = middle
        else:
            first = middle + 1
    return first

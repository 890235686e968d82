"""The inverse-sensitivity mechanism in many cells: the law of ``InverseSensitivity`` in each, drawn over arrays.

1. All cells of one size read the same ranks, so that ball j of all of them are two columns of an array.
2. The ring is chosen by 64 bits U of each cell's own, the rest of U is drawn only if they do not decide. Masses and
   cumulative weights are computed in floats, from terms that are never negative: whole numbers below 2⁶², weights of
   points and certified powers of q, each rounded once. A cumulative sum of m rings is off by at most (m + 24)·2⁻⁵³ of
   itself, which is below 2⁻⁴⁰, and so a share of the whole by less than 2⁻³⁸. Where U is at least 2⁻³⁷ away from every
   share, the ring is the one that exact weights would choose, whatever the rest of U is.
3. Elsewhere ``InverseSensitivity`` goes on with the same bits. So what is drawn has its law exactly.
4. The point within a ring is drawn in whole numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from idios.core.base_measure import BaseMeasure, MixtureComponent
from idios.core.cell_windows import CellWindows
from idios.core.distributions.inverse_sensitivity import InverseSensitivity
from idios.core.enclosures import exp_minus_levels
from idios.core.neighbours import Moves, Neighbours
from idios.core.sampling import RandomSource, random_words
from idios.core.statistics.order import OrderStatistic

FAR = 2**61
"""Points beyond are left to the exact way."""
MOST_BALLS = 2**12
MOST_AT_ONCE = 2**20
"""How many balls are looked at together."""
PLACES = 512
SMALLEST = 2.0**-300
"""A power of q below this is left to the exact way."""
MARGIN = 2.0**-37

Floats = NDArray[np.float64]
Points = NDArray[np.int64]


@dataclass(frozen=True)
class Balls:
    """Ball j of some cells of one size: from ``lows[:, j]`` to ``highs[:, j]``."""

    lows: Points
    highs: Points

    def pick(self, cell: int, ball: int) -> tuple[int, int]:
        """One of them."""
        return int(self.lows[cell, ball]), int(self.highs[cell, ball])

    def of(self, cell: int) -> tuple[tuple[int, int], ...]:
        """Those of one cell."""
        return tuple(zip(self.lows[cell].tolist(), self.highs[cell].tolist(), strict=True))


@dataclass(frozen=True)
class InverseCells:
    """What is drawn in every cell; ``distance`` is how far balls are looked for."""

    cells: CellWindows
    statistic: OrderStatistic
    distance: int
    epsilon: Fraction
    measure: BaseMeasure
    refusal: int

    def draw(self, source: RandomSource | None = None) -> list[int | None] | None:
        """One draw for each cell; None for all of them where floats do not serve."""
        parts = self.statistic.position(1)[1]
        if parts * self.cells.greatest >= FAR - 1 or self._powers is None or self.statistic.resolution() != parts:
            return None
        drawn: list[int | None] = [None] * len(self.cells)
        for moves, cells in self.cells.by_size():
            if moves.whole:
                return None
            places = self._find_places(moves)
            step = max(1, MOST_AT_ONCE // (len(places[0]) + 1))
            for start in range(0, len(cells), step):
                chunk = cells[start : start + step]
                for cell, point in zip(chunk.tolist(), self._draw_some(places, chunk, source), strict=True):
                    drawn[cell] = point
        return drawn

    def _draw_some(self, places: tuple[Points, Points], cells: Points, source: RandomSource | None) -> list[int | None]:
        balls = Balls(self._read(cells, places[0]), self._read(cells, places[1]))
        words = random_words(len(cells), source)
        return [
            InverseSensitivity(balls.of(i), self.epsilon, self.measure, self.refusal).draw(source, word)
            if ring < 0
            else self._draw_point(balls, i, ring, source)
            for i, (ring, word) in enumerate(zip(self.choose(balls, words).tolist(), words.tolist(), strict=True))
        ]

    def _find_places(self, moves: Moves) -> tuple[Points, Points]:
        """Where the ends of balls are read in cells of one size, in parts of a rank, as far as they are finite."""
        size, parts = moves.size, self.statistic.position(1)[1]
        defined = min(self.distance, size - self.statistic.least_size)
        steps = np.arange(defined + 1) * parts
        if defined < 0:
            return steps, steps
        if moves.neighbours is Neighbours.REPLACE:
            place = self.statistic.position(size)[0]
            lows, highs = place - steps, place + steps
        else:
            more = _list_positions(self.statistic, range(size, size + defined + 1))
            fewer = _list_positions(self.statistic, range(size, size - defined - 1, -1))
            lows, highs = np.minimum(more - steps, fewer), np.maximum(more, fewer + steps)
        finite = int(((lows >= parts) & (highs <= size * parts)).sum())  # what is infinite once stays so
        return lows[:finite], highs[:finite]

    def find_balls(self, moves: Moves, cells: Points) -> Balls:
        """The points that 0, 1, … changed records reach in some cells of one size."""
        lows, highs = self._find_places(moves)
        return Balls(self._read(cells, lows), self._read(cells, highs))

    def _read(self, cells: Points, places: Points) -> Points:
        """The values at some places, interpolated, on the answer's grid."""
        windows, parts = self.cells, self.statistic.position(1)[1]
        if not len(places):
            return np.empty((len(cells), 0), np.int64)
        ranks, rests = np.divmod(places, parts)
        above = ranks + (rests > 0)
        firsts, counts = windows.firsts[cells], windows.counts[cells]
        if ranks.min() < firsts.max() or above.max() >= (firsts + counts).min():
            raise LookupError("ranks that were not summarised")
        base = (windows.starts[cells] - firsts)[:, None]
        found: Points = (parts - rests) * windows.values[base + ranks] + rests * windows.values[base + above]
        return found

    def choose(self, balls: Balls, words: NDArray[np.uint64]) -> Points:
        """The ring that each word chooses: one more than there are balls is the refusal, −1 is not certain."""
        number = balls.lows.shape[1]
        powers = self._powers
        if powers is None or number > MOST_BALLS:
            return np.full(len(words), -1)
        rings = np.zeros((len(words), number + 2))
        for masses in self._masses:
            masses.add_rings(rings, balls)
        rings[:, : number + 1] *= powers[1 : number + 2]
        rings[:, number + 1] = float(self.refusal * self.measure.denominator) * powers[number]
        shares = np.cumsum(rings, axis=1)
        shares /= shares[:, -1:]
        uniform = ((words >> np.uint64(11)).astype(np.float64) * 2.0**-53)[:, None]
        chosen = (shares[:, :-1] <= uniform).sum(axis=1)
        near = (abs(shares[:, :-1] - uniform) < MARGIN).any(axis=1)
        return np.where(near, -1, chosen)

    def _draw_point(self, balls: Balls, cell: int, ring: int, source: RandomSource | None) -> int | None:
        """One of the points of a ring, by their weights; of the outermost, what is in no ball."""
        number = balls.lows.shape[1]
        if ring > number:
            return None
        within = balls.pick(cell, ring) if ring < number else None
        return self.measure.draw(within, balls.pick(cell, ring - 1) if ring else None, source)

    @cached_property
    def _powers(self) -> Floats | None:
        """q^0, q^1, … as far as they are needed; None where they are too small for floats."""
        largest = int(min(self.distance + 1, int(self.cells.sizes.max(initial=0)) + 1)) + 1
        if largest > MOST_BALLS + 2:
            return None
        enclosed = exp_minus_levels(self.epsilon / 2, range(largest + 1), PLACES)
        powers = np.array([float(enclosed[level][0] >> (PLACES - 400)) for level in range(largest + 1)]) * 2.0**-400
        return powers if powers[-1] > SMALLEST else None

    @cached_property
    def _masses(self) -> list[_Masses]:
        return [_Masses(component) for component in self.measure.components]


def _list_positions(statistic: OrderStatistic, sizes: range) -> Points:
    found = statistic.positions(sizes)
    return np.arange(found.start, found.stop, found.step) if isinstance(found, range) else np.array(found)


@dataclass(frozen=True)
class _Located:
    """Points, as numbers of steps of the stretch that each of them is in, and that stretch."""

    steps: Points
    places: Points

    def __getitem__(self, chosen: tuple[slice, int | slice]) -> _Located:
        return _Located(self.steps[chosen], self.places[chosen])


class _Masses:
    """The mass of stretches of points in floats, from terms that are never negative."""

    def __init__(self, component: MixtureComponent) -> None:
        stretches = component.stretches
        if not all(0 < after.first - before.last <= after.step for before, after in pairwise(stretches)):
            raise AssertionError("the stretches of a component follow each other")
        # in steps of each: where it begins, and what follows its last point
        firsts = _Ends([stretch.first // stretch.step for stretch in stretches])
        self.firsts, self.ends = firsts, _Ends([stretch.last // stretch.step + 1 for stretch in stretches])
        sums = component.sum_below([*(stretch.first for stretch in stretches), stretches[-1].last + 1])
        self.total = float(component.total)
        self.weights = np.array([float(stretch.weight) for stretch in stretches])
        self.before = np.array([float(mass) for mass in sums[:-1]])
        self.after = np.array([float(sums[-1] - mass) for mass in sums[1:]])
        # the mass of all stretches after one and before another
        self.inner = np.array([[float(max(0, b - a)) for b in sums[:-1]] for a in sums[1:]])
        self.cuts = _make_near([stretch.last + 1 for stretch in stretches[:-1]])
        self.low, self.high = _make_near([stretches[0].first, stretches[-1].last + 1]).tolist()
        self.steps = _make_near([stretch.step for stretch in stretches])

    def add_rings(self, rings: Floats, balls: Balls) -> None:
        """Add the mass of each ball that is not in the one before, and of what is in none, to the first columns."""
        number = balls.lows.shape[1]
        if not number:
            rings[:, 0] += self.total
            return
        starts, ends = balls.lows, balls.highs + 1
        least, most = int(starts[:, -1].min()), int(ends[:, -1].max())  # balls are nested
        if least < self.low or most > self.high:
            starts, ends = np.clip(starts, self.low, self.high), np.clip(ends, self.low, self.high)
        first, last = np.searchsorted(self.cuts, np.clip((least, most), self.low, self.high), "right").tolist()
        if first == last and not (self.firsts.far[first] or self.ends.far[first]):
            self._add_alike(rings, starts, ends, first)
            return
        lows, highs = self._locate(starts), self._locate(ends)
        rings[:, 0] += self.between(lows[:, 0], highs[:, 0])
        rings[:, 1:number] += self.between(lows[:, 1:], lows[:, :-1])
        rings[:, 1:number] += self.between(highs[:, :-1], highs[:, 1:])
        rings[:, number] += self.below(lows[:, -1]) + self.above(highs[:, -1])

    def _add_alike(self, rings: Floats, starts: Points, ends: Points, place: int) -> None:
        """The same where all balls lie in one stretch, which is quicker."""
        step, weight = int(self.steps[place]), self.weights[place]
        if step > 1:
            starts, ends = -(-starts // step), -(-ends // step)
        number = starts.shape[1]
        rings[:, 0] += (ends[:, 0] - starts[:, 0]) * weight
        rings[:, 1:number] += (starts[:, :-1] - starts[:, 1:] + ends[:, 1:] - ends[:, :-1]) * weight
        rings[:, number] += self.before[place] + (starts[:, -1] - self.firsts.near[place]) * weight
        rings[:, number] += self.after[place] + (self.ends.near[place] - ends[:, -1]) * weight

    def _locate(self, points: Points) -> _Located:
        """The stretch that each point is in, as numbers of its steps."""
        places = np.searchsorted(self.cuts, points, "right")
        if self.steps.max() > 1:
            points = -(-points // self.steps[places])
        return _Located(points, places)

    def between(self, start: _Located, end: _Located) -> Floats:
        """The mass from each start on and before each end, which is no lesser."""
        found: Floats = (end.steps - start.steps).astype(np.float64) * self.weights[start.places]
        apart = start.places != end.places
        if apart.any():  # of few
            (first, last), (a, b) = (start.steps[apart], end.steps[apart]), (start.places[apart], end.places[apart])
            found[apart] = self._measure_rest(first, a) + self.inner[a, b] + self._measure_begun(last, b)
        return found

    def below(self, end: _Located) -> Floats:
        """The mass before each end."""
        found: Floats = self.before[end.places] + self._measure_begun(end.steps, end.places)
        return found

    def above(self, start: _Located) -> Floats:
        """The mass from each start on."""
        found: Floats = self._measure_rest(start.steps, start.places) + self.after[start.places]
        return found

    def _measure_begun(self, steps: Points, place: Points) -> Floats:
        """The mass of what a stretch has before a point of it."""
        found: Floats = self.firsts.subtract(steps, place) * self.weights[place]
        return found

    def _measure_rest(self, steps: Points, place: Points) -> Floats:
        """The mass of what a stretch has from a point of it on."""
        found: Floats = -self.ends.subtract(steps, place) * self.weights[place]
        return found


def _make_near(points: Sequence[int]) -> Points:
    return np.array([min(max(point, -FAR), FAR) for point in points], np.int64)


class _Ends:
    """The first or the last points of stretches, of which some may lie beyond all points that are asked for."""

    def __init__(self, ends: Sequence[int]) -> None:
        self.exact = ends
        self.near = _make_near(ends)
        self.far = np.array([abs(end) > FAR for end in ends])

    def subtract(self, steps: Points, place: Points) -> Floats:
        """Each point less the end of its stretch, in steps, rounded once."""
        found: Floats = (steps - self.near[place]).astype(np.float64)
        far = self.far[place]
        if far.any():
            pairs = zip(steps[far].tolist(), place[far].tolist(), strict=True)
            found[far] = [float(point - self.exact[i]) for point, i in pairs]
        return found

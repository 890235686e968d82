"""How far the changes of a few records move several statistics of one selection at once.

Notation. D is the data, n changed records drop ``d`` selected values and place ``e`` new ones. With coefficients k_j,

    G(d, e, n) ≥ max over all data sets that n records reach with at most d drops and e places of Σ_j k_j·|Δ_j|^p,

Δ_j the change of statistic j on its answer's grid; the power p is 1 for Laplace noise and 2 for Gaussian noise. G never
falls in d, e or n. ``JointLoss.loss`` computes it.

One changed record is one of: an addition (of which there are a in all), a removal (b), a replacement by a greater
value (p) or by a lesser one (q). So n = a + b + p + q, d = b + p + q, e = a + p + q, and the selection has s + a − b
values. On a whole table a = b = 0; under add-remove p = q = 0; on a selection a is at most the number of records
outside.

Proposition 1 (monotone statistics). Let f not fall when a value rises. Then, with x_(r) the value of rank r at D,
    read(s+a−b, −(a+q)) ≤ f(D′) ≤ read(s+a−b, b+p),
read(s′, o) being f of the list whose rank r is x_(r+o), with the bounds of the domain beyond the ends.
Proof. Undo the q replacements downwards and set all that was placed by the others to the upper bound: no value falls,
so neither does f. Now b+p values are dropped and a+p stand at the bound. Dropping the least b+p instead raises the
list rank by rank, to the one whose rank r is x_(r+b+p). Downwards it is the mirror image. ∎
So |Δ_j| ≤ max(hi_j − f_j, f_j − lo_j) with the two readings, and its power likewise: G is at most the greatest Σ_j over
all (a, b, p, q).

Corollary 1. For one replacement this is the greater of Σ k_j·u_j and Σ k_j·d_j, or of the same with squares, u and d
the steps up and down: with one replacement upwards no statistic falls. It is attained: the least value, replaced by the
upper bound, lifts every statistic by its u_j.

Proposition 2 (order statistics). Let z_r be the value of rank r at D′. There are R(r) in 0..d and E(r) in 0..e,
neither falling in r, with z_r = x_(r + R(r) − E(r)), if every placed value is one of D's or a bound. And G is
attained at such D′.
Proof. For a kept value x_(t) = z_r let R(r) and E(r) count the dropped and the placed values before it: t = r + R(r)
− E(r). A placed value stands between two kept ones x_(t₀) and x_(t₁), all ranks between which were dropped. It equals
some x_(t), t₀ ≤ t ≤ t₁. If t > t₀ let E(r) count the placed values before it and R(r) be what gives t, which is
between the R of both neighbours; if t = t₀ let E(r) count it too and R(r) be that of x_(t₀). Last, let D′ have placed
values strictly between two neighbouring values of D. The z_r are linear in them as long as their order stays the
same; each |Δ_j|, and each Δ_j², is convex there, so their weighted sum is greatest where every one has met a value of D
or a bound. ∎
So G is at most the greatest sum along two counters that never fall, over the ranks that the statistics read: dynamic
programming. (What is read between two ranks is a point of the answer's grid, which is made for it: nothing is rounded.)

Corollary 2. For one changed record that leaves all statistics defined it is exact. A counter of a removal or an
addition rises once, between two ranks that are read: drop the later of the two, or place what stood at the earlier one.
Replacements: Corollary 1.

Any other statistic, and a sum on a selection, counts with its own distance-n sensitivity A_n. Blocks (the monotone
statistics of one column; every other statistic) add up, as one record may change all its columns at once.

Undefined statistics. Where n changes can make f undefined, its envelope is the whole range, and A_n is what it counts
with.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from idios.core.envelope import Envelope
from idios.core.neighbours import Moves, Neighbours
from idios.core.statistics.averages import Sum
from idios.core.statistics.base import FINENESS, MonotoneStatistic, Statistic
from idios.core.statistics.order import OrderStatistic
from idios.core.summary import Summary

DEEPEST = 6
"""Up to how many drops or places Proposition 2 is used; its cost grows with their fourth power."""


@dataclass(frozen=True)
class Component:
    """One statistic of a question in one cell, whose noise is fitted to the data.

    ``weight`` is its share of ε and ``floor`` the least sensitivity that noise is calibrated to, in steps of the
    answer's grid. Components with the same ``column`` read the same selected values.
    """

    statistic: Statistic
    summary: Summary
    weight: Fraction
    floor: Fraction = Fraction(0)
    column: Hashable = None
    fineness: int = FINENESS

    def __post_init__(self) -> None:
        if self.weight <= 0 or self.floor < 0:
            raise ValueError("a component has a weight greater than 0 and a floor of at least 0")


class Split(NamedTuple):
    """What the changed records do: additions, removals, replacements upwards and downwards."""

    added: int
    removed: int
    raised: int
    lowered: int

    @property
    def dropped(self) -> int:
        """How many selected values go."""
        return self.removed + self.raised + self.lowered

    @property
    def placed(self) -> int:
        """How many values come."""
        return self.added + self.raised + self.lowered


def splits(moves: Moves, distance: int) -> Iterator[Split]:
    """Every way to spend 1 to ``distance`` changes on a selection.

    >>> list(splits(Moves(Neighbours.REPLACE, size=5), 1))
    [Split(added=0, removed=0, raised=0, lowered=1), Split(added=0, removed=0, raised=1, lowered=0)]
    """
    replacing = moves.neighbours is Neighbours.REPLACE
    for added in range(moves.most_added(distance) + 1):
        for removed in range(min(moves.most_removed(distance), distance - added) + 1):
            most = min(distance - added - removed, moves.size - removed) if replacing else 0
            for raised in range(most + 1):
                for lowered in range(most - raised + 1):
                    if added + removed + raised + lowered:
                        yield Split(added, removed, raised, lowered)


@dataclass(frozen=True)
class Moved:
    """A component with its envelope, and the coefficient k_j its change is counted with."""

    component: Component
    envelope: Envelope
    coefficient: Fraction

    @property
    def value(self) -> int:
        """The statistic at the data, on its grid."""
        if self.envelope.value is None:
            raise AssertionError("an undefined statistic is not calibrated")
        return self.envelope.value

    def counted(self, distance: int) -> int:
        """A_n, which is finite for every statistic that is calibrated."""
        return int(self.envelope.sensitivity(distance))

    def defined(self, distance: int) -> bool:
        """Whether the statistic is defined after any ``distance`` changes."""
        return self.component.summary.moves.sizes(distance)[0] >= self.component.statistic.least_size

    def step(self, split: Split) -> int:
        """max(hi − f, f − lo) of Proposition 1."""
        distance = sum(split)
        if not self.defined(distance):
            return self.counted(distance)
        if split.added or split.removed:
            size = self.component.summary.size + split.added - split.removed
            low: int | float = self._read(size, -(split.added + split.lowered))
            high: int | float = self._read(size, split.removed + split.raised)
        else:
            low, high = self.envelope.lows[split.lowered], self.envelope.highs[split.raised]
        return int(max(high - self.value, self.value - low))

    def _read(self, size: int, offset: int) -> int:
        statistic = self.component.statistic
        assert isinstance(statistic, MonotoneStatistic)
        return int(statistic.read_placed(self.component.summary, size, offset, self.component.fineness))


class JointLoss:
    """The components of one cell, and G for them out to ``distance`` changed records.

    ``simple`` asks for the bound Σ_j k_j·A_n alone, which is quick for large groups and many cells; ``power`` is p.
    """

    def __init__(self, moved: Sequence[Moved], distance: int, *, simple: bool = False, power: int = 1) -> None:
        self._power = power
        blocks: dict[Hashable, list[Moved]] = {}
        self._single: list[Moved] = []
        for part in moved:
            if simple or not _is_monotone(part.component):
                self._single.append(part)
            else:
                blocks.setdefault(part.component.column, []).append(part)
        self._tables = [_block_losses(block, distance, power) for block in blocks.values()]

    def loss(self, dropped: int, placed: int, distance: int) -> Fraction:
        """G(d, e, n)."""
        records = min(distance, dropped + placed)
        lost = [part.coefficient * part.counted(records) ** self._power for part in self._single]
        for table, common in self._tables:
            losses = [loss for (d, e, n), loss in table.items() if d <= dropped and e <= placed and n <= distance]
            if losses:
                lost.append(Fraction(max(losses), common))
        return lost[0] if len(lost) == 1 else sum(lost, Fraction(0))


def _is_monotone(component: Component) -> bool:
    if isinstance(component.statistic, Sum):
        return component.summary.moves.whole
    return isinstance(component.statistic, MonotoneStatistic)


def _block_losses(block: Sequence[Moved], distance: int, power: int) -> tuple[Mapping[tuple[int, int, int], int], int]:
    """The loss of every split, by (d, e, n), the greatest where several agree in these; and what to divide it by."""
    moves = block[0].component.summary.moves
    if any(part.component.summary.moves != moves for part in block):
        raise ValueError("components of one column read one selection")
    # whole numbers from here on: Fractions are slow
    common = math.lcm(*(part.coefficient.denominator for part in block))
    ordered = [part for part in block if isinstance(part.component.statistic, OrderStatistic)]
    coefficients = [part.coefficient.numerator * (common // part.coefficient.denominator) for part in block]
    is_ordered = [isinstance(part.component.statistic, OrderStatistic) for part in block]
    table: dict[tuple[int, int, int], int] = {}
    together: dict[tuple[int, int, int], int] = {}
    for split in splits(moves, distance):
        key = split.dropped, split.placed, sum(split)
        loss = apart = 0
        for part, coefficient, orders in zip(block, coefficients, is_ordered, strict=True):
            lost = coefficient * part.step(split) ** power
            loss += lost
            apart += lost if orders else 0
        # one replacement is exact already
        if len(ordered) > 1 and max(key[:2]) <= DEEPEST and (split.added or split.removed or key[2] > 1):
            if key not in together:
                together[key] = _rank_losses(ordered, *key, common, power)
            loss += min(apart, together[key]) - apart
        table[key] = max(loss, table.get(key, 0))
    return table, common


def _rank_losses(ordered: Sequence[Moved], dropped: int, placed: int, records: int, common: int, power: int) -> int:
    """Proposition 2, times ``common``: the greatest sum over two counters that never fall along the ranks read."""
    total = 0
    at_rank: dict[int, list[_Reading]] = {}
    across: dict[int, list[_Reading]] = {}
    for part in ordered:
        coefficient = part.coefficient.numerator * (common // part.coefficient.denominator)
        if part.defined(records):
            reading = _Reading.of(part, coefficient, part.component.summary.size + placed - dropped, power)
            (across if reading.rest else at_rank).setdefault(reading.rank, []).append(reading)
        else:
            total += coefficient * part.counted(records) ** power
    ranks = sorted({*at_rank, *across, *(rank + 1 for rank in across)})
    states = [(r, e) for r in range(dropped + 1) for e in range(placed + 1)]
    best = dict.fromkeys(states, 0)
    for i, rank in enumerate(ranks):
        here = {(r, e): sum(x.lost(r - e, r - e) for x in at_rank.get(rank, ())) for r, e in states}
        between = across.get(ranks[i - 1], ()) if i else ()
        best = {
            (r, e): here[r, e]
            + max(
                best[r0, e0] + sum(x.lost(r0 - e0, r - e) for x in between)
                for r0 in range(r + 1)
                for e0 in range(e + 1)
            )
            for r, e in states
        }
    return total + max(best.values())


class _Reading(NamedTuple):
    """Where an order statistic is read in a list of another size: ``rank``, and a share of the next.

    What it reads is in ``parts`` of a step of the column, each ``steps`` steps of the answer's grid.
    """

    summary: Summary
    coefficient: int
    power: int
    steps: int
    parts: int
    rank: int
    rest: int
    value: int

    @classmethod
    def of(cls, part: Moved, coefficient: int, size: int, power: int) -> _Reading:
        statistic, summary = part.component.statistic, part.component.summary
        assert isinstance(statistic, OrderStatistic)
        numerator, parts = statistic.position(size)
        now, share = divmod(statistic.position(summary.size)[0], parts)
        value = (parts - share) * summary.at(now) + (share * summary.at(now + 1) if share else 0)
        steps, rest = divmod(statistic.resolution(part.component.fineness), parts)
        if rest:
            raise AssertionError("what an order statistic reads is a point of its grid")
        return cls(summary, coefficient, power, steps, parts, *divmod(numerator, parts), int(value))

    def lost(self, shift: int, next_shift: int) -> int:
        """k_j·|Δ_j|^p where the two ranks read x_(rank+shift) and x_(rank+1+next_shift)."""
        read = (self.parts - self.rest) * self.summary.at(self.rank + shift)
        if self.rest:
            read += self.rest * self.summary.at(self.rank + 1 + next_shift)
        return int(self.coefficient * (self.steps * abs(int(read) - self.value)) ** self.power)

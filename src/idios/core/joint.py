"""Several numbers are one answer: their noise is calibrated together, at the levels individual and group.

The mechanism of the paper for f: D → ℤᵏ needs Σ_j |Δ_j|/b_j ≤ ε_i for every data set at distance i. Here ε_i = m_i·ε,
with m_1 ≤ m_2 ≤ … ≤ m_g the multiples that were declared (1, 2, …, g unless said otherwise). For statistic j let

    S_j = max_i max(A_{j,i}, floor_j)/m_i       what it is calibrated to when it is asked alone
    b_j = ρ·S_j/(w_j·ε)                         its scale; w_j is its share of ε, W the sum of the shares

With k_j = w_j/S_j, what has to hold is Σ_j k_j·|Δ_j| ≤ ρ·m_i·W. (The statistics whose sensitivity is global are not
part of this: each keeps its own share, so that its margin stays public. All shares together are 1.) So ρ is the least
number with

    W·ρ ≥ G(i, i, i)/m_i    and    W·ρ ≥ φ/m_1,    φ = Σ_j k_j·floor_j

for i = 1..g, where G is the joint loss of ``joint_loss``, an upper bound that is exact at i = 1 for monotone
statistics of one whole column and for order statistics of any one column. The floor is one more neighbour: a record
that moves every statistic it touches by its floor.

Proposition 3. max_j w_j/W ≤ ρ ≤ 1, ρ = 1 for k = 1, and Σ_j floor_j/b_j ≤ m_1·W·ε.
Proof. |Δ_j| ≤ A_{j,i} ≤ m_i·S_j and floor_j ≤ m_1·S_j give ρ ≤ 1. A neighbour, or the floor, attains S_j, where G, or
φ, is at least w_j·m_i. The last is the second condition. ∎
So no number has more noise than it has today, none less than alone for the whole W·ε, and k tied statistics asked at
once have the noise they have today: moving all of them by their floors never shows more than what was charged.

Cells (GROUP BY) under replace: a record may leave one cell and enter another. Cell c has its own ρ_c, with

    ρ_c = max over i ≤ g and d, e ≤ i, d+e > 0 of (i/m_i)·G_c(d, e, i)/(W·(τ·d + (1−τ)·e))

for one τ in (0, 1) and with φ_c in place of G_c where that is greater.
Proposition 4. Then Σ_c Σ_j |Δ_cj|/b_cj ≤ m_i·W·ε at every distance i ≤ g.
Proof. Let i records drop d_c values of cell c and place e_c there: Σ_c d_c ≤ i and Σ_c e_c ≤ i. The loss in c is at
most W·ε·(m_i/i)·(τ·d_c + (1−τ)·e_c), and Σ_c (τ·d_c + (1−τ)·e_c) ≤ i. ∎
For g = 1 it reads ρ_c = max(change_c, leave_c/τ, enter_c/(1−τ)), and ρ_c ≤ 2, today's, for τ = ½. Any τ is safe; the
one taken has the least Σ_c ρ_c among 64ths that leave no cell worse off than today. For g = 1 one pass over the cells
then lowers every ρ_c as far as leave_c/ρ_c + enter_c′/ρ_c′ ≤ 1 lets it: since ρ only falls in the pass, the others'
ratios only grow and no cell can be lowered afterwards.

Under add-remove i records drop and place together Σ_c (d_c + e_c) ≤ i, so ρ_c = max (i/m_i)·G_c(d, e, i)/(W·(d + e))
over d + e ≤ i. For g = 1 that is each cell by itself, and for m_i = i too; but not for flat groups, of which each
record may be in a cell of its own (``multiples``).

Gaussian noise (concentrated accounting; here ρ is a factor, and r_j is what statistic j may lose). The noises are
independent, so a change loses Σ_j Δ_j²/2σ_j² in all, which must be at most m_i²·Σ_j r_j at distance i. That is the same
problem with squares: for |Δ_j|, S_j, floor_j and m_i read Δ_j², S_j², floor_j² and m_i², with

    w_j = 2·r_j over all cells together, ε = 1,    σ_j² = ρ·S_j²/(w_j·ε),    k_j = w_j/S_j²

and G the joint loss of power 2. Proposition 3 holds as it stands: Δ_j² ≤ A_{j,i}² ≤ m_i²·S_j² and floor_j² ≤ m_1²·S_j².
So does Proposition 4, of which the proof takes from the loss only that it adds up over cells: the loss in c is at most
W·ε·(m_i²/i)·(τ·d_c + (1−τ)·e_c). And so does the pass that lowers ρ_c.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from heapq import nlargest

import numpy as np
from numpy.typing import ArrayLike, NDArray

from idios.core.calibration import Added, Silent
from idios.core.distributions import DiscreteGaussian, DiscreteLaplace
from idios.core.exact import INFINITY
from idios.core.joint_loss import Component, JointLoss, Moved
from idios.core.multiples import check_multiples
from idios.core.neighbours import Neighbours

TAUS = 64
FINEST = 1 << 40
"""Where there are several cells, losses and ρ are multiples of 1/FINEST, rounded up: quick, and of few digits."""
MOST_WORK = 2_000_000
MOST_GROUP_WORK = 20_000
MOST_CELL_WORK = 2_000
"""How many splits of changes are tried before the simple bound is used: in all cells together, for single records and
for groups, whose splits take longer; and in one cell, between two calls of ``check``."""

Cost = dict[tuple[int, int], int]
Losses = Mapping[tuple[int, int], Sequence[int]]
"""By (d, e), what each cell loses."""


def calibrate_cells(
    cells: Sequence[Sequence[Component]],
    epsilon: Fraction,
    multiples: Sequence[Fraction] = (Fraction(1),),
    check: Callable[[], None] | None = None,
    *,
    gaussian: bool = False,
) -> list[list[Added | Silent]]:
    """Calibrate the components of every cell, where no record is in two cells; ``epsilon`` is that of all of them.

    With ``gaussian`` noise a component's weight is twice the ρ it may lose over all cells together, and ``epsilon`` 1.
    A component is silent where it is undefined or of infinite sensitivity, whatever the others are. ``check`` is called
    for every cell: it may raise to stop the work.

    >>> from idios.core.domain import Domain
    >>> from idios.core.neighbours import Moves
    >>> from idios.core.statistics import Maximum, Minimum
    >>> from idios.core.summary import Summary, Window
    >>> five = Summary(Domain(lower=0, upper=9), Moves(Neighbours.REPLACE, 5), (Window(1, (0, 3, 4, 7, 9)),))
    >>> both = [Component(statistic, five, Fraction(1, 2), fineness=1) for statistic in (Minimum(), Maximum())]
    >>> # no record that lifts the least value lowers the greatest: each has the noise it would have alone
    >>> [[str(part.noise.scale) for part in cell] for cell in calibrate_cells([both], Fraction(1))]
    [['3', '2']]
    >>> [[str(part.noise.variance) for part in cell] for cell in calibrate_cells([both], Fraction(1), gaussian=True)]
    [['9', '4']]
    """
    check_multiples(multiples)
    power = 2 if gaussian else 1
    multiples = [multiple**power for multiple in multiples]
    simple = is_too_much(len(multiples), [len(components) for components in cells])
    parts = []
    for components in cells:
        if check is not None:
            check()
        parts.append(_Cell(components, multiples, simple, power))
    active = [part for part in parts if part.moved]
    if len(active) == 1:
        factors = [max(part.alone() for part in active)]
    elif simple:
        factors = [part.divide() for part in active]
    else:
        factors = _factors(active, multiples, check)
    for part, factor in zip(active, factors, strict=True):
        part.factor = factor
    return [part.calibrate(epsilon) for part in parts]


def is_too_much(group: int, sizes: Sequence[int]) -> bool:
    """Whether all splits are too many to try; public facts alone."""
    splits = math.comb(group + 4, 4)
    most = MOST_WORK if group == 1 else MOST_GROUP_WORK
    return splits * sum(sizes) > most or splits * max(sizes, default=0) > MOST_CELL_WORK


class _Cell:
    """The components of one cell that are answered, and what they lose to leaving, entering and changing records."""

    def __init__(
        self, components: Sequence[Component], multiples: Sequence[Fraction], simple: bool, power: int = 1
    ) -> None:
        self.components, self.multiples, self.power = components, multiples, power  # m_i, or m_i²
        self.factor = Fraction(1)
        self.values: list[int | None] = []
        self.sensitivities: list[Fraction | None] = []  # S_j, or S_j²
        self.moved: list[Moved] = []
        self.weight = sum((component.weight for component in components), Fraction(0))
        self.floor = Fraction(0)  # φ
        for component in components:
            envelope = component.statistic.envelope(component.summary, len(multiples), component.fineness)
            self.values.append(envelope.value)
            if envelope.sensitivity(len(multiples)) == INFINITY:  # or undefined
                self.sensitivities.append(None)
                continue
            sensitivity = max(
                max(Fraction(envelope.sensitivity(i)), component.floor) ** power / m
                for i, m in enumerate(multiples, start=1)
            )
            self.sensitivities.append(sensitivity)
            if sensitivity:  # otherwise it never moves, and has no floor
                moved = Moved(component, envelope, component.weight / sensitivity)
                self.moved.append(moved)
                self.floor += moved.coefficient * component.floor**power
        self.selection = JointLoss(self.moved, len(multiples), simple=simple, power=power)

    @property
    def neighbours(self) -> Neighbours:
        return self.components[0].summary.moves.neighbours

    def loss(self, dropped: int, placed: int, distance: int) -> Fraction:
        """max(G, φ)/W."""
        return max(self.selection.loss(dropped, placed, distance), self.floor) / self.weight

    def alone(self) -> Fraction:
        """ρ where no other cell is answered."""
        return min(Fraction(1), max(self.loss(i, i, i) / m for i, m in enumerate(self.multiples, start=1)))

    def divide(self) -> Fraction:
        """ρ_c at τ = ½ by the simple bound, where G(d, e, i) follows from n = min(i, d + e) alone.

        (τ·d + (1−τ)·e) is then at least n/2, so that the greatest of 2·(i/m_i)·G(n)/(W·n) over n ≤ i will do.
        """
        touched = 2 if self.neighbours is Neighbours.REPLACE else 1
        rate = worst = Fraction(0)
        for n in range(len(self.multiples), 0, -1):
            rate = max(rate, n / self.multiples[n - 1])
            worst = max(worst, rate * self.loss(n, 0, n) / n)
        return touched * worst

    def costs(self) -> Cost:
        """By (d, e) the greatest (i/m_i)·G(d, e, i)/W, in steps of 1/FINEST."""
        costs: Cost = {}
        for i, m in enumerate(self.multiples, start=1):
            unit = Fraction(i * FINEST) / (m * self.weight)
            for d in range(i + 1):
                for e in range(i + 1):
                    if (d or e) and (self.neighbours is Neighbours.REPLACE or d + e <= i):
                        loss = max(self.selection.loss(d, e, i), self.floor)
                        # ⌈loss·unit⌉ without the greatest common divisor
                        times, parts = loss.numerator * unit.numerator, loss.denominator * unit.denominator
                        costs[d, e] = max(-(-times // parts), costs.get((d, e), 0))
        return costs

    def calibrate(self, epsilon: Fraction) -> list[Added | Silent]:
        """b_j = ρ·S_j/(w_j·ε), or σ_j² = ρ·S_j²/(w_j·ε)."""
        noise = DiscreteLaplace if self.power == 1 else DiscreteGaussian
        return [
            Silent()
            if value is None or sensitivity is None
            else Added(value, noise(self.factor * sensitivity / (component.weight * epsilon)))
            for component, value, sensitivity in zip(self.components, self.values, self.sensitivities, strict=True)
        ]


def _factors(
    cells: Sequence[_Cell], multiples: Sequence[Fraction], check: Callable[[], None] | None = None
) -> list[Fraction]:
    """ρ_c of every cell, of which there are several."""
    if not cells:
        return []
    costs = []
    for cell in cells:
        if check is not None:
            check()
        costs.append(cell.costs())
    losses = {pair: [cost[pair] for cost in costs] for pair in costs[0]}
    return [Fraction(factor, FINEST) for factor in find_factors(losses, multiples, cells[0].neighbours)]


def find_factors(losses: Losses, multiples: Sequence[Fraction], neighbours: Neighbours) -> list[int]:
    """ρ_c of every cell in steps of 1/FINEST, from what each loses, by (d, e), in the same steps."""
    if neighbours is Neighbours.ADD_REMOVE:
        prices = {(d, e): d + e for d, e in losses}
        times = 1
    else:
        tau, times = find_best_tau(losses, multiples), TAUS
        prices = {(d, e): tau * d + (TAUS - tau) * e for d, e in losses}
    priced = [[-(-times * loss // prices[pair]) for loss in of_cells] for pair, of_cells in losses.items()]
    factors = list(map(max, zip(*priced, strict=True)))
    if neighbours is Neighbours.REPLACE and len(multiples) == 1:
        _lower(factors, losses[1, 0], losses[0, 1], losses[1, 1])
    return factors


def find_best_tau(losses: Mapping[tuple[int, int], ArrayLike], multiples: Sequence[Fraction]) -> int:
    """The τ, in parts of TAUS, with the least Σ_c ρ_c; floats will do, as every τ is safe."""
    table = {pair: np.array(of_cells, dtype=float) / FINEST for pair, of_cells in losses.items()}

    def factors(tau: float) -> NDArray[np.float64]:
        priced = [of_cells / (tau * d + (1 - tau) * e) for (d, e), of_cells in table.items()]
        worst: NDArray[np.float64] = np.maximum.reduce(priced)
        return worst

    half = factors(0.5)
    best, least = TAUS // 2, float(half.sum())
    # what dividing each ε_i equally among the 2i cells that i records may touch would give
    equally = 2 * max(float(i / m * multiples[0]) for i, m in enumerate(multiples, start=1))
    allowed = np.maximum(half, equally)
    most, worst = {pair: float(of_cells.max()) for pair, of_cells in table.items()}, max(equally, float(half.max()))
    for numerator in range(1, TAUS):
        tau = numerator / TAUS
        if max(most[d, e] / (tau * d + (1 - tau) * e) for d, e in most) > worst:
            continue  # the worst cell alone is worse off
        tried = factors(tau)
        if (tried <= allowed).all() and tried.sum() < least * (1 - 1e-9):
            best, least = numerator, float(tried.sum())
    return best


def _lower(factors: list[int], leave: Sequence[int], enter: Sequence[int], change: Sequence[int]) -> None:
    """Lower each ρ_c, one after the other, as far as the other cells let it; g = 1, all in steps of 1/FINEST."""
    leaving = _TopTwo(-(-loss * FINEST // factor) for loss, factor in zip(leave, factors, strict=True))
    entering = _TopTwo(-(-loss * FINEST // factor) for loss, factor in zip(enter, factors, strict=True))
    for c, needed in enumerate(change):
        if factors[c] <= needed:
            continue
        for loss, other in ((leave[c], entering.beside(c)), (enter[c], leaving.beside(c))):
            if loss:
                # rounding may have left nothing over, and then this cell stays as it is
                needed = max(needed, -(-loss * FINEST // (FINEST - other)) if other < FINEST else factors[c])
        if needed < factors[c]:
            factors[c] = needed
            leaving.raise_to(c, -(-leave[c] * FINEST // needed))
            entering.raise_to(c, -(-enter[c] * FINEST // needed))


class _TopTwo:
    """The greatest of some numbers that only grow, leaving out any one of them."""

    def __init__(self, numbers: Iterable[int]) -> None:
        self._top = nlargest(2, ((number, i) for i, number in enumerate(numbers)))

    def raise_to(self, index: int, number: int) -> None:
        if len(self._top) == 2 and number <= self._top[1][0]:
            return
        others = [entry for entry in self._top if entry[1] != index]
        self._top = sorted([*others, (number, index)], reverse=True)[:2]

    def beside(self, index: int) -> int:
        return next((number for number, i in self._top if i != index), 0)

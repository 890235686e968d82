"""The median's error under every mechanism, for thousands of data sets at once, by expectation.

A data set has an even number n of sorted records, h = n/2, and bounds L ≤ x_1, x_n ≤ U; ranks beyond the data read L
or U. With f the median and hi_i, lo_i = (x_{h±i} + x_{h+1±i})/2 its envelope:

    local            E|error| = LS/ε, LS = max(hi_1 − f, f − lo_1)                               ε-iDP
    staircase        LS·e^(ε/2)/(e^ε − 1)                                                        ε-iDP
    group            max_{i ≤ g} A_i/(i·ε), A_i = max(hi_i − f, f − lo_i); infinite past the data   gDP
    smooth           S_β/α·E|N|                                                                  ε-DP
    exponential      density ∝ e^(−(ε/2)·|rank(t) − n/2|) on [L, U]                              ε-DP
    inverse          density ∝ e^(−(ε/2)·u(t)), u(t) = least i with lo_i ≤ t ≤ hi_i, on [L, U]   ε-DP
    differential     weights π(t)·q^u(t), q = e^(−ε/2), over all t, or a refusal with R·q^b          ε-DP

π is a public measure that no data is needed for. Without bounds it is dyadic shells around 0, {0} and 2^(k−1) ≤ |t| <
2^k for k = 1 … K in steps of the answer's grid, all of the same mass; with bounds, half of that (cut to them) and half
even. b = n/2 − 1 changes keep the median within the data, and R = 1000. That is what Idios answers at ``differential``,
but for the round points that its measure favours, as none of the values here is one; coded apart from it, in floats.
Its error is that of an answer which b changes can reach: others come with probability q/R at most, and where they come
from, 2^K steps away, they would be all that a mean tells.

No noise is drawn for any of it: for a given data set each expectation is a sum.

``measure_panel`` averages them over many data sets, for the paper's second figure (nine panels of the median's mean
absolute error) and for the same panels as a fair fight. Conventions, as far as the paper states them: the bounds of
N(0, 1) and Exp(1) are each data set's own minimum and maximum, those of U[0, 1] are 0 and 1; smooth sensitivity has
γ = 3 with (α, β) = (ε/12, ε/3). What it leaves open is read as docs/errata.md says: β is the noise's, and for even n
the median is the mean of the middle two. The same data sets serve every ε and every mechanism.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from idios.evaluation.made_samples import SHAPES, Shape, draw_sorted_sets, make_generator
from idios.evaluation.noises import Admissible, paper_pair, tight_pair
from idios.evaluation.smooth import Floats

SIZES = (10, 100, 1000)
EPSILONS = tuple(round(0.5 + 0.05 * i, 2) for i in range(11))
REACH = 300
"""Ranks on each side of the middle that are used: what lies beyond weighs less than e^(−75) at ε = 0.5."""
PAIRS = 160
"""The furthest pair of ranks the smooth sensitivity looks at: e^(−β·158) < 3·10⁻⁹ for every β used here."""
GRID = 0.5e-6
"""The answer's grid: medians of floats, whose step is 10⁻⁶, are whole numbers of half steps."""
SHELLS = 65
"""K: a column has 2⁶³ steps, from −2⁶² to 2⁶², so that no two answers are more than 2⁶⁴ half steps apart."""
REFUSAL = 1000.0
"""R, the weight of a refusal where no record may change."""


@dataclass(frozen=True)
class Medians:
    """The ranks around the middle of many data sets: row r is rank h − reach + r, one data set a column."""

    n: int
    reach: int
    ranks: Floats
    width: Floats
    """U − L of each data set."""

    @classmethod
    def cut(cls, data: Floats, bounds: tuple[float, float] | None = None) -> Medians:
        """Cut the window out of sorted rows; without bounds each row's own range stands for them, as in the paper."""
        n = data.shape[1]
        if n % 2:
            raise ValueError("the panels have even n")
        h, reach = n // 2, min(REACH, n // 2 + 1)
        wanted = np.clip(np.arange(h - reach, h + reach + 2), 1, n) - 1
        ranks = np.ascontiguousarray(data[:, wanted].T)
        if bounds is not None and reach > h:  # both ends of the window lie outside the data
            ranks[: reach - h + 1], ranks[h - 1 - reach :] = bounds
        width = data[:, -1] - data[:, 0] if bounds is None else np.full(len(data), bounds[1] - bounds[0])
        return cls(n, reach, ranks, width)

    @cached_property
    def value(self) -> Floats:
        """f, the mean of the middle two."""
        return np.asarray((self.ranks[self.reach] + self.ranks[self.reach + 1]) / 2)

    @cached_property
    def _means(self) -> Floats:
        return (self.ranks[:-1] + self.ranks[1:]) / 2  # row reach + i is hi_i, row reach − i is lo_i

    def sensitivity(self, distance: int) -> Floats:
        """A_i where no bounds are known: infinite as soon as i changes reach past the data."""
        if distance > self.n // 2 - 1:
            return np.full(self.ranks.shape[1], math.inf)
        high, low = self._means[self.reach + distance], self._means[self.reach - distance]
        return np.asarray(np.maximum(high - self.value, self.value - low))

    def local(self, epsilon: float) -> Floats:
        """Laplace noise at the local sensitivity."""
        return self.sensitivity(1) / epsilon

    def staircase(self, epsilon: float) -> Floats:
        """Staircase noise at the local sensitivity."""
        return self.sensitivity(1) / (2 * math.sinh(epsilon / 2))

    def group(self, size: int, epsilon: float) -> Floats:
        """Laplace noise that protects groups of up to ``size`` records."""
        scales = [self.sensitivity(i) / i for i in range(1, size + 1)]
        return np.asarray(np.max(scales, axis=0) / epsilon)

    @cached_property
    def _widest(self) -> Floats:
        """Row d − 2: the greatest x_{i+d} − x_i across the middle; all that smooth sensitivity needs, whatever β."""
        middle, end = self.reach + 1, len(self.ranks)  # the row of rank h + 1, and the end of the window
        rows = []
        for d in range(2, min(PAIRS, end - 1) + 1):
            first, last = max(middle, d), min(middle + d, end)
            rows.append((self.ranks[first:last] - self.ranks[first - d : last - d]).max(axis=0))
        return np.array(rows)

    def smooth_sensitivity(self, beta: float) -> Floats:
        """S_β = max over d of the greatest difference at d ranks, halved, times e^(−β(d−2))."""
        weights = np.exp(-beta * np.arange(len(self._widest)))
        return np.asarray((self._widest * weights[:, None]).max(axis=0) / 2)

    def smooth(self, gamma: float, pair: tuple[float, float]) -> Floats:
        """Noise ∝ 1/(1+|x|^γ) at the smooth sensitivity; infinite for γ ≤ 2, whose tails have no mean."""
        alpha, beta = pair
        return self.smooth_sensitivity(beta) / alpha * Admissible(gamma).expected_absolute

    def exponential(self, epsilon: float) -> Floats:
        """The exponential mechanism's median: an interval weighs its length times e^(−(ε/2)·|rank − n/2|)."""
        lengths, moments = self._intervals
        weights = np.exp(-epsilon / 2 * np.abs(np.arange(len(lengths)) - self.reach))
        return np.asarray((weights @ moments) / (weights @ lengths))

    @cached_property
    def _intervals(self) -> tuple[Floats, Floats]:
        """Between neighbouring ranks: the length, and the integral of |t − f|."""
        lengths = np.diff(self.ranks, axis=0)
        away = np.abs(self._means - self.value)
        away[self.reach] = lengths[self.reach] / 4  # the median is the middle of its own interval
        return lengths, lengths * away

    def inverse(self, epsilon: float) -> Floats:
        """The inverse-sensitivity mechanism on [L, U]."""
        weights = np.exp(-epsilon / 2 * np.concatenate([np.arange(self.reach, 0, -1), np.arange(1, self.reach + 1)]))
        lengths, moments = self._shells
        return np.asarray((weights @ moments) / (weights @ lengths))

    def unbounded(self, epsilon: float) -> Floats:
        """E|error| at ``differential`` without bounds, of an answer within reach."""
        weight, moment = self._reach(epsilon, self._dyadic)
        return np.asarray(moment / weight)

    def bounded(self, epsilon: float) -> Floats:
        """E|error| at ``differential`` with bounds, of an answer within reach."""
        weight, moment = self._reach(epsilon, self._halved)
        return np.asarray(moment / weight)

    def refusal(self, epsilon: float, *, bounded: bool = False) -> Floats:
        """The probability that ``differential`` refuses."""
        return np.asarray(REFUSAL * math.exp(-epsilon / 2 * self._last) / self._total(epsilon, bounded))

    def astray(self, epsilon: float, *, bounded: bool = False) -> Floats:
        """The probability that it answers out of reach; at most q/R."""
        return np.asarray(self._outside(epsilon, bounded) / self._total(epsilon, bounded))

    @property
    def _last(self) -> int:
        """b, or as far as the window knows: what lies beyond weighs nothing."""
        return min(self.reach, self.n // 2 - 1)

    def _total(self, epsilon: float, bounded: bool) -> Floats:
        inside, _ = self._reach(epsilon, self._halved if bounded else self._dyadic)
        refusal = REFUSAL * math.exp(-epsilon / 2 * self._last)
        return np.asarray(inside + self._outside(epsilon, bounded) + refusal)

    def _outside(self, epsilon: float, bounded: bool) -> Floats:
        """The weight of everything that b changes do not reach."""
        masses, _ = self._halved if bounded else self._dyadic
        whole = masses.sum(axis=0) if bounded else 1.0
        reached = masses[self.reach - self._last : self.reach + self._last + 1].sum(axis=0)
        return np.asarray((whole - reached) * math.exp(-epsilon / 2 * (self._last + 1)))

    def _reach(self, epsilon: float, measure: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
        """Mass and integral of |t − f| within b changes, each shell of the envelope weighed with q^u."""
        last = self._last
        weights = np.exp(-epsilon / 2 * np.abs(np.arange(-last, last + 1)))
        part = slice(self.reach - last, self.reach + last + 1)
        masses, moments = measure
        return np.asarray(weights @ masses[part]), np.asarray(weights @ moments[part])

    @cached_property
    def _dyadic(self) -> tuple[Floats, Floats]:
        """Row reach + i: the mass, and the integral of |t − f|, between hi_{i−1} and hi_i (below f likewise)."""
        mass, moment = measure_shells(self._means)
        masses, moments = np.diff(mass, axis=0), np.diff(moment, axis=0)
        away = np.abs(moments - self.value * masses)
        # the median itself is one point of the grid, in the middle of the row
        point = GRID * measure_density(self.value)
        return np.insert(masses, self.reach, point, axis=0), np.insert(away, self.reach, 0.0, axis=0)

    @cached_property
    def _halved(self) -> tuple[Floats, Floats]:
        """The same for half of that, cut to the bounds, and half an even measure on them."""
        masses, moments = self._dyadic
        lengths, areas = self._shells
        even = np.insert(lengths, self.reach, GRID, axis=0) / self.width
        return (masses + even) / 2, (moments + np.insert(areas, self.reach, 0.0, axis=0) / self.width) / 2

    @cached_property
    def _shells(self) -> tuple[Floats, Floats]:
        """Between neighbouring ends of the envelope: the length, and the integral of |t − f|."""
        means = self._means
        lengths = np.diff(means, axis=0)
        return lengths, lengths * np.abs((means[:-1] + means[1:]) / 2 - self.value)


def measure_shells(t: Floats) -> tuple[Floats, Floats]:
    """π(0 … t) with the sign of t, and the integral of |s| over it, for dyadic shells around 0.

    In steps of the grid, with 2^e the greatest power of two that is not above s = |t|: each full shell has 1/(K+1), of
    which one side is half, so the mass up to s ≥ 1 is (e + s/2^e)/(2(K+1)) and the moment is
    (½ + 3/2·(2^e − 1) + (s² − 4^e)/2^(e+1))/(2(K+1)).

    >>> mass, _ = measure_shells(np.array([GRID, -2 * GRID, 4 * GRID]))  # one side of {0}, then of one more shell each
    >>> (2 * (SHELLS + 1) * mass).round(6).tolist()
    [1.0, -2.0, 3.0]
    """
    steps = np.abs(t) / GRID
    power = np.exp2(np.floor(np.log2(np.maximum(steps, 1.0))))
    mass = np.where(steps < 1, steps, np.log2(power) + steps / power)
    moment = np.where(steps < 1, steps**2 / 2, 0.5 + 1.5 * (power - 1) + (steps**2 - power**2) / (2 * power))
    sides = 2 * (SHELLS + 1)
    return np.sign(t) * mass / sides, moment * GRID / sides


def measure_density(t: Floats) -> Floats:
    """The mass of one point, divided by the grid: 1/((K+1)·2^k) in the k-th shell, 1/(K+1) at 0."""
    steps = np.abs(t) / GRID
    points = np.where(steps < 1, 1.0, 2 * np.exp2(np.floor(np.log2(np.maximum(steps, 1.0)))))
    return np.asarray(1 / ((SHELLS + 1) * points * GRID))


Error = Callable[[Medians, float], Floats]
ERRORS: dict[str, Error] = {
    "local": lambda m, e: m.local(e),
    "smooth": lambda m, e: m.smooth(3, paper_pair(3, e)),
    "tight": lambda m, e: m.smooth(3, tight_pair(3, e)),
    "tight2": lambda m, e: m.smooth(2, tight_pair(2, e)),
    "exponential": lambda m, e: m.exponential(e),
    "inverse": lambda m, e: m.inverse(e),
    "bounded": lambda m, e: m.bounded(e),
    "unbounded": lambda m, e: m.unbounded(e),
    "bounded_refusal": lambda m, e: m.refusal(e, bounded=True),
    "unbounded_refusal": lambda m, e: m.refusal(e),
    "astray": lambda m, e: m.astray(e),
    "staircase": lambda m, e: m.staircase(e),
    "group2": lambda m, e: m.group(2, e),
    "group5": lambda m, e: m.group(5, e),
    "group10": lambda m, e: m.group(10, e),
}
"""What is averaged over the data sets: expected errors, and how often ``differential`` refuses or goes astray."""

NAMES = {
    "local": "iDP, Laplace at LS",
    "smooth": "DP, smooth sensitivity γ = 3 (the paper's pair)",
    "tight": "DP, smooth sensitivity γ = 3 (tight pair)",
    "tight2": "DP, smooth sensitivity γ = 2 (tight pair)",
    "exponential": "DP, exponential mechanism",
    "inverse": "DP, inverse sensitivity within the bounds",
    "bounded": "DP, differential with bounds",
    "unbounded": "DP, differential without bounds",
    "staircase": "iDP, staircase at LS",
    "group2": "gDP, g = 2",
    "group5": "gDP, g = 5",
    "group10": "gDP, g = 10",
}


@dataclass(frozen=True)
class PanelMeasurement:
    """One panel: for every mechanism the mean expected error at each ε, its standard error, and simulations."""

    shape: Shape
    n: int
    sets: int
    epsilons: tuple[float, ...]
    errors: dict[str, tuple[float, ...]]
    deviations: dict[str, tuple[float, ...]]
    simulated: dict[str, tuple[float, ...]]

    def at(self, key: str, epsilon: float) -> float:
        """The mean expected error of one mechanism."""
        return self.errors[key][self.epsilons.index(epsilon)]


def measure_panel(shape: Shape, n: int, sets: int, epsilons: tuple[float, ...] = EPSILONS) -> PanelMeasurement:
    """Average every mechanism's expected error over data sets of n records."""
    rng = make_generator(1, SHAPES.index(shape), n)
    noise = make_generator(3, SHAPES.index(shape), n)  # apart, so that the data sets do not depend on the ε's
    sums = np.zeros((len(ERRORS), len(epsilons)))
    squares = np.zeros_like(sums)
    simulated = np.zeros((2, len(epsilons)))
    for data in draw_sorted_sets(shape, n, sets, rng):
        medians = Medians.cut(data, shape.bounds)
        for j, epsilon in enumerate(epsilons):
            for i, error in enumerate(ERRORS.values()):
                each = error(medians, epsilon)
                sums[i, j] += each.sum()
                squares[i, j] += (each**2).sum()
            simulated[:, j] += _simulate(medians, epsilon, noise)
    means = sums / sets
    with np.errstate(invalid="ignore"):  # where the error is infinite there is no deviation
        spread = np.nan_to_num(np.sqrt(np.maximum(squares / sets - means**2, 0) / sets), nan=np.inf)
    return PanelMeasurement(
        shape,
        n,
        sets,
        epsilons,
        {key: tuple(map(float, means[i])) for i, key in enumerate(ERRORS)},
        {key: tuple(map(float, spread[i])) for i, key in enumerate(ERRORS)},
        {key: tuple(map(float, simulated[i] / sets)) for i, key in enumerate(("local", "smooth"))},
    )


def _simulate(medians: Medians, epsilon: float, rng: np.random.Generator) -> Floats:
    """Sum |noise| of one draw a data set: the check on the two closed forms of the paper's figure.

    The draws are stratified, one in each of equally likely parts, because the mean of noise with γ = 3, whose
    variance is infinite, settles too slowly otherwise.
    """
    sets = len(medians.value)
    shares = (rng.permutation(sets) + rng.random(sets)) / sets
    alpha, beta = paper_pair(3, epsilon)
    laplace = -np.log1p(-shares) * medians.sensitivity(1) / epsilon  # |Laplace| is exponential
    heavy = Admissible(3).quantile((1 + shares) / 2) * medians.smooth_sensitivity(beta) / alpha
    return np.array([laplace.sum(), heavy.sum()])

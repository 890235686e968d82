"""The paper's second figure, nine panels of the median's mean absolute error, and the same panels as a fair fight.

Conventions, as far as the paper states them: the bounds of N(0, 1) and Exp(1) are each data set's own minimum and
maximum, those of U[0, 1] are 0 and 1; smooth sensitivity has γ = 3 with (α, β) = (ε/12, ε/3). What it leaves open is
read as docs/errata.md says: β is the noise's, and for even n the median is the mean of the middle two. The same
data sets serve every ε and every mechanism.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from idios.evaluation.admissible import Admissible, paper_pair, tight_pair
from idios.evaluation.medians import Medians
from idios.evaluation.samples import SHAPES, Shape, generator, sorted_sets
from idios.evaluation.smooth import Floats

SIZES = (10, 100, 1000)
EPSILONS = tuple(round(0.5 + 0.05 * i, 2) for i in range(11))
DELTA = 1e-6

Error = Callable[[Medians, float], Floats]
ERRORS: dict[str, Error] = {
    "local": lambda m, e: m.local(e),
    "smooth": lambda m, e: m.smooth(3, paper_pair(3, e)),
    "tight": lambda m, e: m.smooth(3, tight_pair(3, e)),
    "tight2": lambda m, e: m.smooth(2, tight_pair(2, e)),
    "exponential": lambda m, e: m.exponential(e),
    "inverse": lambda m, e: m.inverse(e),
    "bounds_free": lambda m, e: m.bounds_free(e, DELTA),
    "refusal": lambda m, e: m.refusal(e, DELTA),
    "staircase": lambda m, e: m.staircase(e),
    "group2": lambda m, e: m.group(2, e),
    "group5": lambda m, e: m.group(5, e),
    "group10": lambda m, e: m.group(10, e),
}
"""What is averaged over the data sets: expected errors, and the probability that the bounds-free one refuses."""

NAMES = {
    "local": "iDP, Laplace at LS",
    "smooth": "DP, smooth sensitivity γ = 3 (the paper's pair)",
    "tight": "DP, smooth sensitivity γ = 3 (tight pair)",
    "tight2": "DP, smooth sensitivity γ = 2 (tight pair)",
    "exponential": "DP, exponential mechanism",
    "inverse": "DP, inverse sensitivity (differential)",
    "bounds_free": "(ε, 10⁻⁶)-DP without bounds",
    "staircase": "iDP, staircase at LS",
    "group2": "gDP, g = 2",
    "group5": "gDP, g = 5",
    "group10": "gDP, g = 10",
}


@dataclass(frozen=True)
class Measured:
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


def measure(shape: Shape, n: int, sets: int, epsilons: tuple[float, ...] = EPSILONS) -> Measured:
    """Average every mechanism's expected error over data sets of n records."""
    rng = generator(1, SHAPES.index(shape), n)
    noise = generator(3, SHAPES.index(shape), n)  # apart, so that the data sets do not depend on the ε's
    sums = np.zeros((len(ERRORS), len(epsilons)))
    squares = np.zeros_like(sums)
    simulated = np.zeros((2, len(epsilons)))
    for data in sorted_sets(shape, n, sets, rng):
        medians = Medians.of(data, shape.bounds)
        for j, epsilon in enumerate(epsilons):
            for i, error in enumerate(ERRORS.values()):
                each = error(medians, epsilon)
                sums[i, j] += each.sum()
                squares[i, j] += (each**2).sum()
            simulated[:, j] += _simulated(medians, epsilon, noise)
    means = sums / sets
    with np.errstate(invalid="ignore"):  # where the error is infinite there is no deviation
        spread = np.nan_to_num(np.sqrt(np.maximum(squares / sets - means**2, 0) / sets), nan=np.inf)
    return Measured(
        shape,
        n,
        sets,
        epsilons,
        {key: tuple(map(float, means[i])) for i, key in enumerate(ERRORS)},
        {key: tuple(map(float, spread[i])) for i, key in enumerate(ERRORS)},
        {key: tuple(map(float, simulated[i] / sets)) for i, key in enumerate(("local", "smooth"))},
    )


def _simulated(medians: Medians, epsilon: float, rng: np.random.Generator) -> Floats:
    """Summed |noise| of one draw a data set: the check on the two closed forms of the paper's figure.

    The draws are stratified, one in each of equally likely parts, because the mean of noise with γ = 3, whose
    variance is infinite, settles too slowly otherwise.
    """
    sets = len(medians.value)
    shares = (rng.permutation(sets) + rng.random(sets)) / sets
    alpha, beta = paper_pair(3, epsilon)
    laplace = -np.log1p(-shares) * medians.sensitivity(1) / epsilon  # |Laplace| is exponential
    heavy = Admissible(3).quantile((1 + shares) / 2) * medians.smooth_sensitivity(beta) / alpha
    return np.array([laplace.sum(), heavy.sum()])

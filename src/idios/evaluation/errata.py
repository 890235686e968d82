"""The errata of the paper, each with its smallest case computed afresh; docs/errata.md has the words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from idios.core.accounting import compose_parallel
from idios.core.calibration import Added, Level, Protection, calibrate, choose
from idios.core.distributions import DiscreteLaplace
from idios.core.domain import Domain
from idios.core.guarantee import Guarantee
from idios.core.neighbours import Moves, Neighbours
from idios.core.statistics import Histogram, Median, RangeCount
from idios.data.arrays import read_numbers
from idios.evaluation.document import Table
from idios.evaluation.noises import Admissible, paper_pair
from idios.evaluation.smooth import median_smooth_sensitivity


@dataclass(frozen=True)
class Erratum:
    """What is printed and what holds, in numbers, at the smallest case."""

    title: str
    case: str
    printed: object
    holds: object

    def to_table(self, number: int) -> Table:
        """Put the erratum into a small table."""
        row = (self.case, self.printed, self.holds)
        return Table(f"erratum-{number}", f"{number}. {self.title}", ("smallest case", "as printed", "holds"), (row,))


def compute_errata() -> tuple[Erratum, ...]:
    """Compute all of them, in the order of docs/errata.md."""
    alpha, beta = paper_pair(3, 1)
    domain, moves = Domain(lower=0, upper=1), Moves(Neighbours.REPLACE, size=1)
    each = Guarantee(Level.INDIVIDUAL, Fraction(1), Neighbours.REPLACE)
    return (
        Erratum("The scale of Laplace noise", "a count, ε = 0.1: the loss", *_noise_losses("1/10", "10")),
        Erratum("Which record is the median", "LS of {0, 0, 0, 1, 1}", 0, _local_sensitivity([0, 0, 0, 1, 1])),
        Erratum("Tables of even size", "LS of {0, 0, 0, 1}", 0, _local_sensitivity([0, 0, 0, 1])),
        Erratum(
            "The exponent of the smooth sensitivity",
            "loss between {0, 0, 0} and {0, 0, 1} on [0, 1], ε = 1, γ = 3",
            _stretch_loss(1, alpha),
            _stretch_loss(beta, alpha),
        ),
        Erratum(
            "The admissible pair",
            "loss at γ = 10, ε = 1 between 56 zeros, 55 ones and the same with a zero moved to 245",
            "at most 1",
            _greatest_loss([0] * 56 + [1] * 55, [0] * 55 + [1] * 55 + [245], 245, 10),
        ),
        Erratum(
            "The cost of the smooth sensitivity",
            "pairs of ranks looked at, n = 10⁶",
            "all, O(n²)",
            "a window: O(K log K), K ≈ (1/β)·ln((U − L)/S)",
        ),
        Erratum(
            "Bounds taken from the data",
            "ratio of the scales at {0, …, 8, 9} and {0, …, 8, 9000}; DP allows e^β",
            math.exp(beta),
            _sensitivity_of_own_range([*range(9), 9000]) / _sensitivity_of_own_range([*range(9), 9]),
        ),
        Erratum(
            "The sensitivity of a histogram",
            "{0} and {1}, two cells, replace",
            1,
            Histogram(2).local_sensitivity((1, 0), moves, 1),
        ),
        Erratum(
            "Range counts without sensitivity",
            "a range that holds the whole domain",
            1,
            RangeCount(0, 1).global_sensitivity(domain, RangeCount(0, 1).moves(moves, domain, 1)),
        ),
        Erratum(
            "Parallel composition",
            "counts of zeros and of ones, ε = 1 each",
            "1-iDP",
            compose_parallel([each, each]).notation,
        ),
        Erratum(
            "The probability of one exact answer",
            "probability that {0, 0, 0} and {0, 0, 1} answer anything but 0",
            "of answering 1: 0 and 0",
            " and ".join(f"{1 - _pmf_at_0(values):.3g}" for values in ([0, 0, 0], [0, 0, 1])),
        ),
        Erratum("A local sensitivity of zero", "{0, 0, 0}: the noise", "Laplace(0, 0), undefined", "none: exact"),
        Erratum(
            "Lower, or not greater",
            "{0} on [0, 1]: local and smooth sensitivity",
            "lower",
            f"{_local_sensitivity([0], (0, 1)):g} and {median_smooth_sensitivity([0.0], 0, 1, 1):g}",
        ),
        Erratum(
            "What the deployed mechanism promises",
            "Pr(answer is 0) at {0, 0, 0, 0, 1} and {0, 0, 0, 1, 1}",
            "within a factor e^ε",
            f"{_pmf_at_0([0, 0, 0, 0, 1]):.3g} and {_pmf_at_0([0, 0, 0, 1, 1]):.1g}",
        ),
    )


def _noise_losses(*scales: str) -> tuple[float, ...]:
    return tuple(float(DiscreteLaplace(Fraction(scale)).log_ratio(1)) for scale in scales)


def _local_sensitivity(values: Sequence[int], bounds: tuple[int, int] | None = None) -> float:
    column = read_numbers(list(values), bounds=bounds, nullable=False)
    envelope = Median().envelope(column.summarise(Median(), Neighbours.REPLACE, 1), 1)
    return float(envelope.local_sensitivity) / Median().resolution()


def _pmf_at_0(values: Sequence[int]) -> float:
    column, protection = read_numbers(list(values), nullable=False), Protection.declare("individual", floor=0)
    choice = choose(Median(), column.domain, Neighbours.REPLACE, True, protection, Fraction(1))
    mechanism = calibrate(choice, Median(), column.summarise(Median(), Neighbours.REPLACE, 1), protection)
    return mechanism.pmf(0) if isinstance(mechanism, Added) else 0.0


def _stretch_loss(beta: float, alpha: float) -> float:
    """The loss far out, where only the scales matter."""
    scales = (median_smooth_sensitivity(values, 0, 1, beta) / alpha for values in ([0, 0, 0], [0, 0, 1]))
    less, more = (Admissible(3, scale).pdf(1e6) for scale in scales)
    return round(math.log(more / less), 3)


def _greatest_loss(first: Sequence[int], second: Sequence[int], upper: int, gamma: float) -> float:
    alpha, beta = paper_pair(gamma, epsilon=1)
    answers = np.linspace(-2 * upper, 2 * upper, 100_001)
    here, there = (
        np.log(Admissible(gamma, median_smooth_sensitivity(v, 0, upper, beta) / alpha).pdf(answers - np.median(v)))
        for v in (first, second)
    )
    return round(float(np.abs(here - there).max()), 3)


def _sensitivity_of_own_range(values: Sequence[int]) -> float:
    return median_smooth_sensitivity(values, min(values), max(values), beta=1 / 3)

"""Sums over people of contributions that nobody bounded, in floats: R2T, and truncation at a limit that is known.

W. Dong, J. Fang, K. Yi, Y. Tao, A. Machanavajjhala, "R2T: Instance-optimal Truncation for Differentially Private Query
Evaluation with Foreign Keys", SIGMOD 2022. One bound G on what a person can contribute is declared, in the paper GS_Q.
With L = log₂ G, for each τ = 2, 4, …, 2^L the sum is truncated at τ, which nobody can then change by more than τ, and

    Q̃(τ) = Q(τ) + Lap(L·τ/ε) − L·ln(L/β)·τ/ε,    Q(τ) = Σ min(x, τ),

of which the greatest is answered, or 0 if that is greater. Each costs ε/L. Noise exceeds its penalty for any τ with a
chance of at most β/2, so that the answer hardly ever exceeds the truth; and with 1 − β it is no farther below than

    4·L·ln(L/β)·τ*/ε,    τ* the greatest contribution.

That is for sums without self-joins. Where tables are joined with themselves, Q(τ) is a linear program's: R2T answers
such questions, and Idios refuses them. Noise is in proportion to L, so that G matters as a logarithm only.

All are ε-DP under add-remove, as in the paper: a person with all their rows is there, or is not.
"""

from __future__ import annotations

import math

import numpy as np

from idios.evaluation.clipped_means import sum_clipped
from idios.evaluation.smooth import Floats

BETA = 0.1
"""The chance with which the bound of the error need not hold."""


def draw_raced_sums(
    values: Floats, epsilon: float, draws: int, rng: np.random.Generator, greatest: float, beta: float = BETA
) -> Floats:
    """Draw R2T's sum of sorted contributions, none of them negative and none above ``greatest``, as is declared."""
    limits, exact = truncate_at_powers(values, greatest)
    scales = len(limits) * limits / epsilon
    noise = rng.laplace(size=(draws, len(limits))) - find_penalty(len(limits), beta)
    return np.asarray(np.maximum((exact + noise * scales).max(axis=1), 0))


def truncate_at_powers(values: Floats, greatest: float) -> tuple[Floats, Floats]:
    """All τ up to the first power of two that is no less than ``greatest``, and the sum that each leaves.

    >>> truncate_at_powers(np.array([1.0, 3.0, 9.0]), 9)
    (array([ 2.,  4.,  8., 16.]), array([ 5.,  8., 12., 13.]))
    """
    limits = np.exp2(np.arange(1.0, max(1, math.ceil(math.log2(greatest))) + 1))
    return limits, sum_clipped(values, np.zeros(len(limits)), limits)


def find_penalty(powers: int, beta: float = BETA) -> float:
    """What is taken off each sum, in scales of its noise: all of them together exceed it with a chance of β/2.

    >>> round(find_penalty(34), 2)
    5.83
    """
    return math.log(powers / beta)


def draw_truncated_sums(
    values: Floats, epsilon: float, draws: int, rng: np.random.Generator, greatest: float
) -> Floats:
    """Draw sums of contributions truncated at a limit that is declared."""
    exact = float(np.minimum(values, greatest).sum())
    return np.asarray(exact + rng.laplace(size=draws) * greatest / epsilon)


def find_best_limit(values: Floats, epsilon: float) -> float:
    """The contribution at which truncation has the least expected error: only who knows the data can declare it.

    With b = m/ε the scale of the noise and B what m takes off the sum, E|Lap(b) − B| = B + b·e^(−B/b).

    >>> find_best_limit(np.array([1.0] * 100 + [50.0]), 1.0), find_best_limit(np.array([1.0] * 100 + [50.0] * 9), 1.0)
    (1.0, 50.0)
    """
    limits = values[values > 0]
    scales = limits / epsilon
    lost = values.sum() - sum_clipped(values, np.zeros(len(limits)), limits)
    return float(limits[np.argmin(lost + scales * np.exp(-lost / scales))])

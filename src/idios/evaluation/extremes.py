"""Maximum against second maximum: what calibration to the global, smooth and local sensitivity costs.

For N(0, 1) within public bounds ±R. The maximum needs the bounds at every level; the k-th largest, k ≥ 2, does not
at the individual one. That is the paper's section on the maximum, which has no figure.

The second largest has fair rivals. One that draws from all the domain by how many records must change, inverse
sensitivity, has no chance: two records reach the bound. One that counts has (``thresholds_exceeded``): Durfee's, whose
thresholds begin at the lower bound and grow by β = 1.001, with ε in equal parts; and one whose thresholds grow with the
distance from 0 on both sides, by β = 1.01, with two thirds of ε for the target, since a noisy target is what makes a
scan run far past the data. Both end at the upper bound, and both are simulated: one draw for each data set.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from idios.evaluation.made_samples import NORMAL, draw_top_ranks, make_generator
from idios.evaluation.noises import Admissible, paper_pair, tight_pair
from idios.evaluation.smooth import Floats
from idios.evaluation.thresholds_exceeded import RATIO, draw_stops, make_ladder

EPSILON = 1.0
DEPTH = 200
"""Ranks from the top that are used; those beyond weigh less than e^(−50)."""

COUNTED = 60
"""Ranks from the top that a scan can stop between: those below do so with a probability of e^(−19)."""

NAMES = {
    "global": "DP maximum, global sensitivity",
    "smooth": "DP maximum, smooth γ = 3 (the paper's pair)",
    "tight": "DP maximum, smooth γ = 3 (tight pair)",
    "inverse": "DP 2nd largest, inverse sensitivity",
    "durfee": "DP 2nd largest, Durfee 2023",
    "ladder": "DP 2nd largest, AboveThreshold on both sides of 0",
    "maximum": "iDP maximum (needs bounds)",
    "second": "iDP 2nd largest (no bounds)",
    "third": "iDP 3rd largest (no bounds)",
    "gap": "distance from 2nd to largest value",
}


@dataclass(frozen=True)
class Sweep:
    """Mean expected errors along one axis."""

    name: str
    label: str
    log: bool
    x: tuple[float, ...]
    errors: dict[str, tuple[float, ...]]


def run_sweeps(sets: int) -> tuple[Sweep, Sweep, Sweep]:
    """Vary the number of records, the size of the domain, and an outlier."""
    sizes = (11, 31, 101, 301, 1001, 3001, 10_001, 100_001)
    radii = (5.0, 10.0, 30.0, 100.0, 300.0, 1e3, 1e4, 1e5, 1e6)
    outliers = (0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 90.0)
    return (
        _make_sweep("size", "records n (bounds ±100)", True, sizes, [_mean_errors(n, 100.0, 0.0, sets) for n in sizes]),
        _make_sweep(
            "domain", "bound R (n = 1001, domain ±R)", True, radii, [_mean_errors(1001, r, 0.0, sets) for r in radii]
        ),
        _make_sweep(
            "outlier",
            "outlier: largest value moved up by",
            False,
            outliers,
            [_mean_errors(1001, 100.0, away, sets) for away in outliers],
        ),
    )


def _make_sweep(name: str, label: str, log: bool, x: tuple[float, ...], points: list[dict[str, float]]) -> Sweep:
    errors = {key: tuple(point[key] for point in points) for key in NAMES}
    return Sweep(name, label, log, tuple(map(float, x)), errors)


def _mean_errors(n: int, radius: float, outlier: float, sets: int) -> dict[str, float]:
    """Mean expected errors at ε = 1 over drawn data sets; values beyond the bounds read as the bounds."""
    top = draw_top_ranks(NORMAL, n, DEPTH, sets, make_generator(2, n))
    top[0] += outlier
    top = np.clip(top, -radius, radius)
    ranks = np.concatenate([top, np.full((DEPTH + 2 - len(top), sets), -radius)])
    gaps = ranks[:-1] - ranks[1:]
    errors = {
        "global": np.full(sets, 2 * radius / EPSILON),
        "smooth": _smooth_errors(ranks, radius, paper_pair(3, EPSILON)),
        "tight": _smooth_errors(ranks, radius, tight_pair(3, EPSILON)),
        "inverse": second_largest_error(ranks, radius, EPSILON),
        "durfee": scan_error(ranks, n, make_ladder(RATIO, 2 * radius + 1) - radius, radius, (0.5, 0.5)),
        "ladder": scan_error(ranks, n, _make_double_ladder(radius), radius, (2 / 3, 1 / 3)),
        "maximum": np.maximum(radius - ranks[0], gaps[0]) / EPSILON,
        "second": np.maximum(gaps[0], gaps[1]) / EPSILON,
        "third": np.maximum(gaps[1], gaps[2]) / EPSILON,
        "gap": gaps[0],
    }
    return {key: float(errors[key].mean()) for key in NAMES}


def _smooth_errors(ranks: Floats, radius: float, pair: tuple[float, float]) -> Floats:
    """S_β/α·E|N| with S_β = max_k e^(−βk)·max(U − x_{n−k}, x_n − x_{n−k−1})."""
    alpha, beta = pair
    here = np.maximum(radius - ranks[:-1], ranks[0] - ranks[1:])
    weighed = here * np.exp(-beta * np.arange(len(here)))[:, None]
    return np.asarray(weighed.max(axis=0)) / alpha * Admissible(3).expected_absolute


def second_largest_error(ranks: Floats, radius: float, epsilon: float) -> Floats:
    """E|error| of the second largest at the level ``differential``.

    One change lifts it to the largest value, two to the bound; i changes lower it to the (2+i)-th largest.
    """
    q = math.exp(-epsilon / 2)
    value = ranks[1]
    knots = np.concatenate([[np.full_like(value, radius)], ranks])  # descending: U, x_n, x_{n−1}, …
    lengths = knots[:-1] - knots[1:]
    away = np.abs((knots[:-1] + knots[1:]) / 2 - value)
    weights = q ** np.concatenate([[2.0, 1.0], np.arange(1, len(lengths) - 1)])
    return np.asarray((weights @ (lengths * away)) / (weights @ lengths))


def scan_error(ranks: Floats, n: int, ladder: Floats, radius: float, shares: tuple[float, float]) -> Floats:
    """|answer − second largest| of one scan for each data set, with ε divided among the target and the counts."""
    thresholds = np.append(ladder[ladder < radius], radius)
    ascending = ranks[COUNTED::-1]
    passed = np.searchsorted(thresholds, ascending, side="right")  # how many are not above each value
    ends = np.full_like(passed[:1], len(thresholds))
    lengths = np.diff(np.concatenate([np.zeros_like(ends), passed, ends]), axis=0)
    below = n - len(ascending) + np.arange(len(ascending) + 1, dtype=np.float64)[:, None]
    target = n - 1.5  # between the second and the third largest
    rates = (shares[0] * EPSILON, shares[1] * EPSILON)
    stops = draw_stops(lengths, below - target, rates, ranks.shape[1], make_generator(5, n))
    return np.asarray(np.abs(thresholds[stops] - ranks[1]))


def _make_double_ladder(radius: float) -> Floats:
    upwards = make_ladder(1.01, radius + 1)
    return np.concatenate([-upwards[:0:-1], upwards])

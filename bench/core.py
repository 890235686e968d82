"""The mathematical core: samplers, smooth sensitivity, medians of arrays."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

import idios
from bench.timing import Row, best_of
from idios.core.distributions import DiscreteGaussian
from idios.core.sampling import discrete_laplace
from idios.evaluation.smooth import median_smooth_sensitivity


def rows() -> Iterator[Row]:
    yield from sampler_against_opendp()
    yield from gaussian_against_opendp()
    yield smooth_sensitivity_growth()
    yield median_against_numpy()


def sampler_against_opendp() -> Iterator[Row]:
    """Exact discrete Laplace, 10⁶ samples; OpenDP draws a vector of 10⁵, its time is scaled up."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    for scale in (1, 10, 1000):
        measurement = space >> dp.m.then_laplace(scale=float(scale))
        zeros = [0] * 10**5
        ours, theirs = best_of(
            3, lambda scale=scale: discrete_laplace(scale, 10**6), lambda m=measurement, z=zeros: m(z)
        )
        theirs *= 10
        what = f"exact discrete Laplace, scale {scale}, 10^6 samples"
        yield Row(what, ours, theirs, "OpenDP", "below 1/30", ours * 30 <= theirs)


def gaussian_against_opendp() -> Iterator[Row]:
    """Exact discrete Gaussian, 10⁶ samples; OpenDP draws a vector of 2·10⁴, its time is scaled up."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    for sigma in (1, 10, 1000, 10**9):
        measurement = space >> dp.m.then_gaussian(scale=float(sigma))
        zeros = [0] * (2 * 10**4)
        noise = DiscreteGaussian(Fraction(sigma) ** 2)
        ours, theirs = best_of(3, lambda noise=noise: noise.sample(10**6), lambda m=measurement, z=zeros: m(z))
        theirs *= 50
        what = f"exact discrete Gaussian, σ = {sigma}, 10^6 samples"
        yield Row(what, ours, theirs, "OpenDP", "below 1/30", ours * 30 <= theirs)


def smooth_sensitivity_growth() -> Row:
    """10⁶ values in our window; the O(n²) formula at n = 2,000 and its growth, extrapolated."""
    rng = np.random.default_rng(1)
    large, small = rng.random(10**6), np.sort(rng.random(2000))

    def all_pairs() -> float:
        x = np.concatenate([[0.0], small, [1.0]])
        gaps = x[1001:, None] - x[None, :1001]
        ranks = np.arange(1001, 2002)[:, None] - np.arange(1001)[None, :]
        return float((gaps / 2 * np.exp(-(ranks - 2) / 3) * (ranks >= 2)).max())

    ours, theirs = best_of(3, lambda: median_smooth_sensitivity(large, 0, 1, 1 / 3), all_pairs)
    theirs *= (10**6 / 2000) ** 2
    return Row(
        "smooth sensitivity of the median, 10^6 values", ours, theirs, "O(n²), extrapolated", "≪ 1", ours < theirs
    )


def median_against_numpy() -> Row:
    """A private median of 10⁷ floats beside the plain one."""
    values = np.random.default_rng(2).lognormal(10, 1, 10**7)
    ours, theirs = best_of(5, lambda: idios.median(values, epsilon=1), lambda: np.median(values))
    return Row("idios.median of 10^7 floats", ours, theirs, "numpy.median", "below 1.5", ours < 1.5 * theirs)

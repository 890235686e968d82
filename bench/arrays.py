"""Arrays and noise: exact samplers beside OpenDP's, smooth sensitivity, medians beside numpy's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from importlib.util import find_spec

import numpy as np

import idios
from bench.figures import Figure, Settings
from bench.timing import Turn, compare, interleave
from idios.core.distributions import DiscreteGaussian
from idios.core.sampling import discrete_laplace
from idios.evaluation.smooth import median_smooth_sensitivity

TITLE = "Arrays and noise"
ABOUT = """\
Functions of the library without a party: exact discrete noise beside OpenDP's, which draws fewer samples and whose time
is scaled up; the smooth sensitivity of a median beside the formula over all pairs, extrapolated from 2,000 values;
`idios.median` beside `numpy.median`."""
DRAWN = 10**6


def describe(settings: Settings) -> str:
    """How much is drawn."""
    return f"{DRAWN:,} samples, {settings.turns}"


def measure(settings: Settings) -> Iterator[Figure]:
    """Every figure; without OpenDP, those that do not need it."""
    yield median_against_numpy(settings)
    yield smooth_sensitivity_growth(settings)
    if find_spec("opendp") is None:
        yield Figure("exact noise beside OpenDP's", None, note="OpenDP is not installed (it comes with idios[bench])")
    else:
        yield from samplers_against_opendp(settings)


def samplers_against_opendp(settings: Settings) -> Iterator[Figure]:
    """Vectors of exact noise; OpenDP draws fewer, and its time is scaled up."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    laplace = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    gaussian = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    for scale in (1, 10, 1000):
        measurement = laplace >> dp.m.then_laplace(scale=float(scale))
        draw = partial(discrete_laplace, scale, DRAWN)
        yield against(f"discrete Laplace, scale {scale}", draw, measurement, 50, settings)
    for sigma in (1, 10, 1000, 10**9):
        measurement = gaussian >> dp.m.then_gaussian(scale=float(sigma))
        draw = partial(DiscreteGaussian(Fraction(sigma) ** 2).sample, DRAWN)
        yield against(f"discrete Gaussian, σ = {sigma:,}", draw, measurement, 50, settings)


def against(
    what: str, ours: Callable[[], object], theirs: Callable[[list[int]], object], fewer: int, settings: Settings
) -> Figure:
    """Time both, the other with so many times fewer samples."""
    zeros = [0] * (DRAWN // fewer)
    mine, other = interleave(settings.repetitions, ours, lambda: theirs(zeros), seconds=settings.seconds_of_a_row)
    return compare(what, mine, scale_up(other, fewer), 1 / 30, beside="OpenDP", cores=False)


def smooth_sensitivity_growth(settings: Settings) -> Figure:
    """10⁶ values in our window; the O(n²) formula at n = 2,000 and its growth, extrapolated."""
    rng = np.random.default_rng(1)
    large, small = rng.random(10**6), np.sort(rng.random(2000))

    def all_pairs() -> float:
        x = np.concatenate([[0.0], small, [1.0]])
        gaps = x[1001:, None] - x[None, :1001]
        ranks = np.arange(1001, 2002)[:, None] - np.arange(1001)[None, :]
        return float((gaps / 2 * np.exp(-(ranks - 2) / 3) * (ranks >= 2)).max())

    ours, theirs = interleave(settings.repetitions, lambda: median_smooth_sensitivity(large, 0, 1, 1 / 3), all_pairs)
    scaled = scale_up(theirs, (10**6 / 2000) ** 2)
    return compare("smooth sensitivity of a median, 10⁶ values", ours, scaled, 1, beside="all pairs", cores=False)


def median_against_numpy(settings: Settings) -> Figure:
    """A private median of floats beside the plain one."""
    rows = settings.choose_rows(10**7, 10**6)
    values = np.random.default_rng(2).lognormal(10, 1, rows)
    ours, theirs = interleave(
        settings.repetitions,
        lambda: idios.median(values, epsilon=1, protection="individual"),
        lambda: np.median(values),
    )
    return compare(f"`idios.median` of {rows:,} floats", ours, theirs, 1.5, beside="numpy")


def scale_up(turns: list[Turn], times: float) -> list[Turn]:
    """The time of so many times as much."""
    return [Turn(turn.clock * times, turn.cores * times) for turn in turns]

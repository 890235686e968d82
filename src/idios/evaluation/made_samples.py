"""The data sets of the experiments: drawn, never read.

The generator is numpy's, seeded, so that every run gives the same figures. Nothing here is ever released; noise that
protects a person comes from ``idios.core.sampling`` alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy import special

from idios.evaluation.smooth import Floats

SEED = 2017
"""The year of the paper."""


@dataclass(frozen=True)
class Shape:
    """A distribution that records are drawn from, by its quantile function at 1 − tail (accurate for small tails)."""

    name: str
    key: str
    draw: Callable[[np.random.Generator, tuple[int, int]], Floats]
    upper_quantile: Callable[[Floats], Floats]
    bounds: tuple[float, float] | None = None
    """The domain where there is one; the paper bounds the others by each data set's own range."""


UNIFORM = Shape("U[0, 1]", "uniform", lambda rng, size: rng.random(size), lambda tail: 1 - tail, (0.0, 1.0))
NORMAL = Shape(
    "N(0, 1)", "normal", lambda rng, size: rng.standard_normal(size), lambda tail: np.asarray(-special.ndtri(tail))
)
EXPONENTIAL = Shape(
    "Exp(1)", "exponential", lambda rng, size: rng.standard_exponential(size), lambda tail: -np.log(tail)
)
SHAPES = (UNIFORM, NORMAL, EXPONENTIAL)


def make_generator(*label: int) -> np.random.Generator:
    """Make the generator of one experiment: the same label, the same data sets."""
    return np.random.default_rng([SEED, *label])


def draw_sorted_sets(shape: Shape, n: int, sets: int, rng: np.random.Generator, chunk: int = 2_500) -> Iterator[Floats]:
    """Draw ``sets`` data sets of n records each, sorted, a chunk of rows at a time to spare memory."""
    for start in range(0, sets, chunk):
        data = shape.draw(rng, (min(chunk, sets - start), n))
        data.sort(axis=1)
        yield data


def draw_top_ranks(shape: Shape, n: int, depth: int, sets: int, rng: np.random.Generator) -> Floats:
    """Draw the ``depth`` greatest of n records, greatest first, one data set a column.

    The greatest of n uniform values has the logarithm −E/n with E exponential, the next one is the greatest of n − 1
    below it, and so on (Rényi's representation), so the other records need not be drawn.
    """
    count = min(depth, n)
    waits = rng.standard_exponential((count, sets)) / (n - np.arange(count))[:, None]
    return shape.upper_quantile(-np.expm1(-np.cumsum(waits, axis=0)))

"""The mean distance of answers from the truth, where a few answers can be anywhere at all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

LEFT_OUT = 0.001
"""The share of the answers that a mean distance leaves out.

A column without bounds ends at 2⁶² steps: one answer in a billion that lies out there would be all of the mean.
"""


def average_nearest(
    masses: Sequence[float] | NDArray[np.float64], distances: Sequence[float] | NDArray[np.float64]
) -> float:
    """The mean of the least distances, the greatest ``LEFT_OUT`` of all mass being left out; of any total mass.

    >>> average_nearest([1.0, 0.9985, 0.0015], [1.0, 2.0, 1e18])
    1.4994994994994995
    """
    weights, values = np.asarray(masses, np.float64), np.asarray(distances, np.float64)
    order = np.argsort(values)
    weights, values = weights[order], values[order]
    before = np.cumsum(weights) - weights
    kept = np.clip((1 - LEFT_OUT) * weights.sum() - before, 0, weights)
    return float(kept @ values / kept.sum())

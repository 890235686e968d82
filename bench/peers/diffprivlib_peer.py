"""diffprivlib: quantiles by the exponential mechanism, means of bounded data."""

from __future__ import annotations

from collections.abc import Callable


def questions(values: list[float], low: float, high: float, epsilon: float) -> dict[str, Callable[[], float]]:
    import numpy as np
    from diffprivlib import tools

    data, bounds = np.asarray(values), (low, high)
    return {
        "median": lambda: float(tools.median(data, epsilon=epsilon, bounds=bounds)),
        "maximum": lambda: float(tools.quantile(data, 1.0, epsilon=epsilon, bounds=bounds)),
        "mean": lambda: float(tools.mean(data, epsilon=epsilon, bounds=bounds)),
    }

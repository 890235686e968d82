"""Idios itself, at three levels; without any bounds where it can."""

from __future__ import annotations

from collections.abc import Callable


def questions(values: list[float], low: float, high: float, epsilon: float) -> dict[str, Callable[[], float]]:
    import numpy as np

    import idios

    data = np.asarray(values)
    bounded = {"epsilon": epsilon, "bounds": (low, high), "nullable": False}
    free = {"epsilon": epsilon, "nullable": False}
    return {
        "median": lambda: idios.median(data, **free),
        "median, differential": lambda: idios.median(data, protection="differential", **bounded),
        "median, differential without bounds": lambda: idios.median(data, protection="differential", **free),
        "maximum": lambda: idios.maximum(data, **bounded),
        "second largest": lambda: idios.kth_largest(data, 2, **free),
        "mean": lambda: idios.mean(data, protection="differential", **bounded),
        "5 % trimmed mean": lambda: idios.trimmed_mean(data, 0.05, **free),
    }

"""``make demo``: a handful of private statistics beside the truth and beside plain differential privacy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import idios


def main() -> None:
    """Generate incomes that nobody can bound, and ask."""
    incomes = np.round(np.random.default_rng(7).lognormal(10.3, 0.8, 20_001)).astype(np.int64)
    print("20,001 generated incomes, lognormal; no bounds are declared. Each answer spends ε = 0.5.\n")
    print(f"{'statistic':<28}{'true':>14}{'individual':>14}{'DP, bounds 0..10⁹':>20}")
    wide = {"protection": "differential", "bounds": (0, 10**9)}
    trimmed = np.sort(incomes)[1000:-1000].mean()
    rows: list[tuple[str, float, Callable[..., Any], tuple[Any, ...]]] = [
        ("median", np.median(incomes), idios.median, ()),
        ("second largest", np.sort(incomes)[-2], idios.kth_largest, (2,)),
        ("mean, 5 % trimmed", trimmed, idios.trimmed_mean, (0.05,)),
    ]
    for name, truth, function, own in rows:
        ours = function(incomes, *own, epsilon=0.5)
        theirs = function(incomes, *own, epsilon=0.5, **wide)
        print(f"{name:<28}{truth:>14,.0f}{ours:>14,.0f}{theirs:>20,.0f}")


if __name__ == "__main__":
    main()

"""OpenDP: quantiles by noisy maximum over candidates, means of bounded floats."""

from __future__ import annotations

from collections.abc import Callable


def questions(values: list[float], low: float, high: float, epsilon: float) -> dict[str, Callable[[], float]]:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=len(values)), dp.symmetric_distance()

    def quantile(share: float) -> Callable[[], float]:
        candidates = [low + (high - low) * i / 1000 for i in range(1001)]
        scores = space >> dp.t.then_quantile_score_candidates(candidates, alpha=share)
        chosen = dp.binary_search_chain(
            lambda s: scores >> dp.m.then_noisy_max(dp.max_divergence(), scale=s, negate=True), 2, epsilon
        )
        return lambda: float(candidates[chosen(values)])

    mean = dp.binary_search_chain(
        lambda s: space >> dp.t.then_clamp((low, high)) >> dp.t.then_mean() >> dp.m.then_laplace(s), 2, epsilon
    )
    # a change of one record by replacement is two of OpenDP's symmetric distance
    return {"median": quantile(0.5), "maximum": quantile(1.0), "mean": lambda: float(mean(values))}

"""Who answers what, and that each answers about right where it is easy."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from idios.core.statistics import KthLargest, Mean, Median, Quantile, Statistic, Sum, Variance
from idios.evaluation.rivals import list_rivals

VALUES = np.sort(np.rint(np.random.default_rng(1).normal(50_000, 1000, 20_001)))
TRUTHS: list[tuple[Statistic, float, float]] = [
    (Median(), float(np.median(VALUES)), 60),
    (Quantile(Fraction(1, 4)), float(np.quantile(VALUES, 0.25)), 60),
    (KthLargest(1000), VALUES[-1000], 300),
    (Mean(), float(VALUES.mean()), 15),
    (Sum(), float(VALUES.sum()), 300_000),
]


@pytest.mark.parametrize(("statistic", "truth", "allowed"), TRUTHS, ids=lambda value: getattr(value, "name", ""))
def test_every_rival_is_about_right_on_many_records(statistic: Statistic, truth: float, allowed: float) -> None:
    rivals = list_rivals(statistic)
    assert len(rivals) == 3
    for rival in rivals:
        found = rival.draw(VALUES, 2.0, 500, np.random.default_rng(2))
        assert np.median(np.abs(found - truth)) < allowed, rival.name


def test_a_variance_has_none() -> None:
    assert list_rivals(Variance()) == ()

"""Stated intervals and checks hold as often as they say, drawn; ``bench.coverage`` measures the same at length."""

from __future__ import annotations

import math

import pytest

coverage = pytest.importorskip("bench.coverage", reason="a source distribution has no bench/")

RUNS = 500
FALSE_ALARM = 5.5
"""Standard deviations: of some sixty coverages one is lower by chance once in a million runs."""
TINY = ("tiny groups", "differential")
"""Four records or so have no differentially private median."""


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("level", coverage.LEVELS)
@pytest.mark.parametrize("shape", coverage.SHAPES)
def test_what_is_stated_holds(shape: str, level: str) -> None:
    rows = list(coverage.measure_shape(shape, level, RUNS))
    assert {row.statement for row in rows} == ({"check", "interval"} if (shape, level) != TINY else {"interval"})
    for row in rows:
        drawn = RUNS * (1 - row.null)
        assert row.coverage >= 0.95 - FALSE_ALARM * math.sqrt(0.95 * 0.05 / drawn), row

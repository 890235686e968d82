"""The numbers of the report's sections that have no file of their own: the noise's intervals and counts."""

from __future__ import annotations

import pytest

from idios.evaluation.reproduction import describe_counts, describe_noise


def test_the_interval_table_is_the_papers() -> None:
    numbers = describe_noise().numbers
    printed = {name: noise["printed"] for name, noise in numbers.items() if noise["printed"]}
    assert len(printed) == 3
    for name, half in printed.items():
        assert numbers[name]["half_width"] == pytest.approx(half, abs=0.06)
    assert numbers["DP smooth, γ = 3, tight pair"]["half_width"] == pytest.approx(9.05, abs=0.01)
    assert numbers["DP smooth, γ = 2, tight pair"]["half_width"] == pytest.approx(25.4, abs=0.05)


def test_counts_gain_nothing() -> None:
    numbers = describe_counts().numbers
    for _, _, local, bound, idp, dp in numbers["ranges"]:
        assert (local, idp) == (bound, dp)
    for _, notion, local, bound, idp, dp in numbers["histograms"]:
        assert (local, idp) == (bound, dp)
        assert bound == (2 if notion == "replace" else 1)

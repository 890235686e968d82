"""Maximum and second maximum: what the paper has no figure for."""

from __future__ import annotations

import numpy as np
import pytest

from idios.core.neighbours import Neighbours
from idios.core.statistics import KthLargest
from idios.data.arrays import read_numbers
from idios.evaluation import extremes
from idios.evaluation.made_samples import EXPONENTIAL, NORMAL, UNIFORM, draw_top_ranks, make_generator
from idios.evaluation.smooth import maximum_smooth_sensitivity


@pytest.fixture(scope="module")
def swept() -> dict[str, extremes.Sweep]:
    return {sweep.name: sweep for sweep in extremes.run_sweeps(2_000)}


def test_the_second_largest_of_a_thousand_normals(swept: dict[str, extremes.Sweep]) -> None:
    """On [−100, 100], n = 1001, ε = 1: iDP 0.35, inverse sensitivity some 45, and the scans below 1."""
    size = swept["size"]
    at = size.x.index(1001)
    assert size.errors["second"][at] == pytest.approx(0.35, rel=0.1)
    assert size.errors["inverse"][at] == pytest.approx(45, rel=0.1)
    assert size.errors["global"][at] == 200
    assert size.errors["durfee"][at] == pytest.approx(0.6, abs=0.2)
    assert size.errors["ladder"][at] == pytest.approx(0.44, rel=0.1)


def test_few_records_are_left_to_idp(swept: dict[str, extremes.Sweep]) -> None:
    errors = swept["size"].errors
    assert errors["second"][0] < 1 < 50 < min(errors["durfee"][0], errors["ladder"][0])
    assert all(scan < 2 * idp for scan, idp in zip(errors["ladder"][2:], errors["second"][2:], strict=True))


def test_only_the_interior_ranks_are_free_of_the_domain(swept: dict[str, extremes.Sweep]) -> None:
    domain = swept["domain"]
    assert domain.errors["second"][0] == pytest.approx(domain.errors["second"][-1])
    for key in ("global", "smooth", "tight", "inverse", "maximum"):
        assert domain.errors[key][-1] > 1e4 * domain.errors[key][0]
    assert domain.errors["durfee"][-1] > 1e3 * domain.errors["durfee"][0], "its thresholds begin at the bound"
    assert domain.errors["ladder"][-1] == pytest.approx(domain.errors["ladder"][0], rel=0.05)


def test_an_outlier_widens_the_second_and_not_the_third(swept: dict[str, extremes.Sweep]) -> None:
    outlier = swept["outlier"]
    assert outlier.errors["second"][-1] > 80
    assert outlier.errors["ladder"][-1] == pytest.approx(outlier.errors["ladder"][0], rel=0.05)
    assert outlier.errors["third"][-1] == pytest.approx(outlier.errors["third"][0])


@pytest.mark.parametrize("shape", [UNIFORM, NORMAL, EXPONENTIAL], ids=lambda shape: shape.key)
def test_top_ranks_are_those_of_whole_data_sets(shape) -> None:
    quick = draw_top_ranks(shape, 50, 3, 20_000, make_generator(20)).mean(axis=1)
    whole = np.sort(shape.draw(make_generator(21), (20_000, 50)), axis=1)[:, :-4:-1].mean(axis=0)
    assert quick == pytest.approx(whole, rel=0.02)


def test_a_scan_of_few_ranks_is_that_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    top = draw_top_ranks(NORMAL, 1001, extremes.DEPTH + 2, 500, make_generator(23))
    ladder = extremes._make_double_ladder(100.0)
    some = extremes.scan_error(top, 1001, ladder, 100.0, (0.5, 0.5))
    monkeypatch.setattr(extremes, "COUNTED", extremes.DEPTH)
    assert extremes.scan_error(top, 1001, ladder, 100.0, (0.5, 0.5)) == pytest.approx(some)


def test_the_formulas_are_the_engines() -> None:
    data = np.round(np.clip(NORMAL.draw(make_generator(22), (1, 101))[0], -100, 100), 6)
    top = np.sort(data)[::-1]
    ranks = np.concatenate([top, np.full(extremes.DEPTH + 2 - len(top), -100.0)])[:, None]
    smooth = extremes._smooth_errors(ranks, 100.0, (1.0, 0.25))[0]
    assert smooth == pytest.approx(maximum_smooth_sensitivity(data, -100, 100, 0.25))
    column = read_numbers(data, bounds=(-100, 100), nullable=False)
    summary = column.summarise(KthLargest(2), Neighbours.REPLACE, 101)
    envelope = KthLargest(2).envelope(summary, 101)
    lows, highs = np.array(envelope.lows) * 1e-6, np.array(envelope.highs) * 1e-6
    points = np.linspace(-100, 100, 400_001)
    changes = np.maximum(np.searchsorted(-lows, -points), np.searchsorted(highs, points))  # the least i in reach
    weights = np.exp(-changes / 2)
    expected = (weights @ np.abs(points - lows[0])) / weights.sum()
    assert extremes.second_largest_error(ranks, 100.0, 1.0)[0] == pytest.approx(expected, rel=1e-3)

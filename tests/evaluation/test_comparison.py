"""Levels and baselines compared on generated data; the command has its tests in tests/cli."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import idios.evaluation.comparison as baselines
from idios.core.statistics import Median
from idios.errors import InvalidInput
from idios.evaluation import compare, compare_frame
from idios.evaluation.comparison import parse_statistic
from idios.party import TrustedParty

INCOMES = np.round(np.random.default_rng(5).lognormal(10, 1, 1001)).astype(np.int64)
ALL = ("median", "kth_largest 2", "trimmed_mean 0.05", "iqr", "mean", "maximum", "minimum", "total", "variance")


def errors(found, statistic: str) -> dict[str, float | None]:
    return {row.mechanism: row.error for row in found if row.statistic == statistic}


def test_without_bounds() -> None:
    found = compare(INCOMES, statistics=ALL)
    median = errors(found, "median")
    ordered = np.sort(INCOMES)
    sensitivity = max(ordered[501] - ordered[500], ordered[500] - ordered[499])
    assert median["individual"] == pytest.approx(max(sensitivity, 1), rel=0.01)
    assert median["individual"] <= median["group of 5"]
    assert median["differential"] < 5 * median["individual"]
    for rival in ("Durfee 2023", "ApproxBounds"):
        assert median["differential"] < median[f"DP without bounds, {rival}"]
    assert all(math.isinf(error) for name, error in median.items() if name.startswith("DP, "))
    notes = {(row.statistic, row.mechanism): row.note for row in found}
    assert notes["maximum", "individual"] == "needs an upper bound"
    assert notes["kth_largest 2", "group of 5"] == "needs an upper bound"
    assert notes["median", "DP, exponential mechanism"] == "infinite: needs bounds"
    assert "refuses" in notes["trimmed_mean 0.05", "differential"]
    assert notes["mean", "DP without bounds, Huang, Liang, Yi 2021"] == "simulated, 2,000 draws"
    values = {row.statistic: row.value for row in found}
    assert values["median"] == np.median(INCOMES)
    assert values["maximum"] == INCOMES.max()
    assert values["mean"] == pytest.approx(INCOMES.mean())


def test_with_bounds() -> None:
    found = compare(INCOMES, statistics=ALL, bounds=(0, 1_000_000), epsilon="0.5")
    for statistic in ALL:
        one = errors(found, statistic)
        assert one["individual"] is not None
        if statistic in ("median", "iqr", "mean", "total", "variance"):
            assert one["differential"] is not None
        if statistic not in ("variance", "total"):
            assert one["DP, Laplace at the global sensitivity"] >= 0.99 * one["individual"]
    median = errors(found, "median")
    assert median["DP, exponential mechanism"] == pytest.approx(median["differential"], rel=0.1)
    tight, loose = (f"DP, smooth sensitivity γ = 3 ({pair} pair)" for pair in ("tight", "the paper's"))
    assert median["DP, exponential mechanism"] < median[tight] < median[loose]
    assert median["DP, Laplace at the global sensitivity"] == 2_000_000
    assert errors(found, "mean")["DP, Laplace at the global sensitivity"] == pytest.approx(2_000_000 / 1001)
    assert found.bounds == ("0", "1000000")


@pytest.mark.parametrize(
    ("mechanism", "options"),
    [
        ("individual", {"protection": "individual"}),
        ("group of 5", {"protection": "group", "group": 5}),
        ("differential", {"protection": "differential", "check": 0}),
    ],
)
def test_a_level_costs_what_an_inspection_at_that_level_says(mechanism: str, options: dict[str, Any]) -> None:
    statistics = ["median", "quantile 0.9", "mean"]
    compared = compare(INCOMES, statistics=statistics, bounds=(0, 1_000_000), nullable=False)
    columns = {"income": {"type": "integer", "bounds": [0, 1_000_000], "nullable": False}}
    with TrustedParty.open({"income": INCOMES}, name="people", columns=columns, budget=10, **options) as party:
        for statistic, sql in (
            ("median", "MEDIAN(income)"),
            ("quantile 0.9", "QUANTILE(income, 0.9)"),
            ("mean", "AVG(income)"),
        ):
            inspected = party.inspect(f"SELECT {sql} FROM people", 1)
            assert errors(compared, statistic)[mechanism] == inspected.expected_error > 0


@pytest.mark.parametrize("bounds", [(0, 1_000_000), None])
def test_the_levels_are_those_of_an_audit(bounds: tuple[int, int] | None) -> None:
    """Expected errors are computed once: by the audit of the controller's question."""
    compared = compare(INCOMES, statistics=["median", "quantile 0.9", "mean"], bounds=bounds, nullable=False)
    columns = {"income": {"type": "integer", "nullable": False} | ({"bounds": list(bounds)} if bounds else {})}
    with TrustedParty.open(
        {"income": INCOMES}, name="people", columns=columns, budget=10, protection="individual"
    ) as party:
        for statistic, sql in (
            ("median", "MEDIAN(income)"),
            ("quantile 0.9", "QUANTILE(income, 0.9)"),
            ("mean", "AVG(income)"),
        ):
            if bounds is None and statistic == "mean":
                continue  # what is answered in rounds has no expectation in closed form
            costs = party.costs(f"SELECT {sql} FROM people", 1)
            audited = {row.level: row.expected_error for row in costs.rows}
            assert len(audited) == 3
            assert {name: errors(compared, statistic)[name] for name in audited} == audited


def test_levels_that_cannot_be_are_refused() -> None:
    with pytest.raises(InvalidInput, match="group must be"):
        compare(INCOMES, group=0)


def test_rivals_answer_the_same_in_every_run_and_on_any_grid() -> None:
    def rivals(values: Any, step: str = "1") -> dict[str, float | None]:
        rows = compare(values, statistics=["median"], step=step)
        return {row.mechanism: row.error for row in rows if "without" in row.mechanism}

    assert rivals(INCOMES) == rivals(INCOMES)
    cents = [Decimal(int(value)) / 100 for value in INCOMES]
    assert rivals(cents, "0.01") == {name: pytest.approx((error or 0) / 100) for name, error in rivals(INCOMES).items()}
    assert "DP without bounds, Durfee 2023, told x ≥ 0" not in rivals(INCOMES - 100_000), "what would not hold"


def test_rivals_that_mostly_refuse_have_no_error() -> None:
    [row] = [row for row in compare(INCOMES[:20], statistics=["median"]) if row.mechanism.endswith("ApproxBounds")]
    assert row.error is None
    assert row.refusal == 1
    assert row.note == "refuses with probability 1: too few values"


def test_values_beyond_the_bounds_read_as_the_bounds() -> None:
    inside = compare(np.clip(INCOMES, 0, 30_000), bounds=(0, 30_000), statistics=["median", "maximum"])
    outside = compare(INCOMES, bounds=(0, 30_000), statistics=["median", "maximum"])
    assert [row.error for row in inside][:3] == [row.error for row in outside][:3]


@pytest.mark.parametrize(
    "text",
    ["median", "quantile 0.3", "kth_largest 2", "iqr", "mean", "trimmed_mean 0.25", "winsorized_mean 0.25", "variance"],
)
@pytest.mark.parametrize("n", [4, 5])
def test_global_sensitivities_by_enumeration(text: str, n: int) -> None:
    """Over all tables of 0, 1, 2 and 3 and all replacements of one record."""
    formula = {
        "median": np.median,
        "quantile 0.3": lambda v: np.quantile(v, 0.3),
        "kth_largest 2": lambda v: np.sort(v)[-2],
        "iqr": lambda v: np.sort(v)[math.ceil(0.75 * n) - 1] - np.sort(v)[math.ceil(0.25 * n) - 1],
        "mean": np.mean,
        "trimmed_mean 0.25": lambda v: np.mean(np.sort(v)[n // 4 : n - n // 4]),
        "winsorized_mean 0.25": lambda v: np.mean(np.clip(v, np.sort(v)[n // 4], np.sort(v)[n - 1 - n // 4])),
        "variance": np.var,
    }[text]
    worst = 0.0
    for rest in itertools.combinations_with_replacement(range(4), n - 1):
        found = [formula(np.array([*rest, value])) for value in range(4)]
        worst = max(worst, float(max(found) - min(found)))
    assert baselines._global_sensitivity(parse_statistic(text), n, 3.0) == pytest.approx(worst)


def test_the_exponential_mechanism_by_integration() -> None:
    values, (low, high), epsilon = np.array([0.1, 0.4, 0.45, 0.7, 0.95]), (0.0, 1.0), 0.8
    t = np.linspace(low, high, 400_001)
    density = np.exp(-epsilon / 2 * np.abs(np.searchsorted(values, t) - 2.5))
    expected = float((density * np.abs(t - 0.45)).sum() / density.sum())
    assert baselines.exponential_median_error(values, low, high, epsilon) == pytest.approx(expected, rel=1e-3)
    assert len(baselines.list_baselines(Median())) == 4


def test_as_a_data_frame() -> None:
    frame = compare_frame(INCOMES, statistics=["median", "iqr"])
    assert set(frame["statistic"]) == {"median", "iqr"}
    assert {"value", "mechanism", "promise", "error", "refusal", "note", "relative_error"} <= set(frame.columns)


@pytest.mark.parametrize(
    "text", ["nonsense", "median 2", "kth_largest", "kth_largest x", "kth_largest 1_0", "trimmed_mean 0.7", ""]
)
def test_unknown_statistics_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        compare(INCOMES, statistics=[text])


def test_empty_columns_are_refused() -> None:
    with pytest.raises(InvalidInput, match="no values"):
        compare(np.array([], dtype=np.int64))

"""``idios compare``: as a table, as JSON and as a page."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from idios.errors import InvalidInput
from idios.evaluation import compare
from tests.cli.runner import run_text
from tests.services.chromium import opened

INCOMES = np.round(np.random.default_rng(5).lognormal(10, 1, 1001)).astype(np.int64)


@pytest.fixture
def people(tmp_path: Path) -> str:
    path = tmp_path / "people.csv"
    lines = ["income,height,name", *(f"{income},{1 + i / 1000:.3f},a" for i, income in enumerate(INCOMES))]
    path.write_text("\n".join([*lines, ",,b"]) + "\n")
    return str(path)


def test_the_command(people: str) -> None:
    printed = run_text("compare", people, "--column", "income")
    assert "controller's eyes" in printed
    for part in ("individual", "needs bounds", "infinite", "1,001 values"):
        assert part in " ".join(printed.split())
    report = json.loads(
        run_text("compare", people, "-c", "income", "--bounds", "0..1000000", "--statistics", "median,iqr", "--json")
    )
    assert "controller's eyes" in report["note"]
    assert report["missing"] == 1
    assert {row["statistic"] for row in report["rows"]} == {"median", "iqr"}
    rows = {row["mechanism"]: row["error"] for row in report["rows"] if row["statistic"] == "median"}
    library = {row.mechanism: row.error for row in compare(INCOMES, statistics=["median"], bounds=(0, 1_000_000))}
    assert rows["DP, exponential mechanism"] == pytest.approx(library["DP, exponential mechanism"])
    assert rows["individual"] == pytest.approx(library["individual"])
    unbounded = json.loads(run_text("compare", people, "-c", "income", "--statistics", "median", "--json"))
    assert {row["mechanism"]: row["error"] for row in unbounded["rows"]}["DP, exponential mechanism"] == "inf"
    assert "DP without bounds, ApproxBounds" in {row["mechanism"] for row in unbounded["rows"]}


def test_the_commands_refusals(people: str) -> None:
    for arguments, words in (
        (("--column", "wealth"), "no column"),
        (("--column", "name"), "is text"),
        (("--column", "income", "--bounds", "5"), r"LOW\.\.HIGH"),
        (("--column", "income", "--bounds", "5..2"), "lower ≤ upper"),
        (("--column", "income", "--epsilon", "0"), "epsilon"),
        (("--column", "income", "--group", "2,1"), "must not decrease"),
        (("--column", "income", "--group", "flat"), "group must be a finite number"),
    ):
        with pytest.raises(InvalidInput, match=words):
            run_text("compare", people, *arguments)


def test_the_page(people: str, tmp_path: Path) -> None:
    path = tmp_path / "compared.html"
    run_text("compare", people, "--column", "height", "--bounds", "0..3", "--html", str(path))
    with opened(path) as seen:
        seen.wait("document.querySelectorAll('.figure .trace').length > 10")
        text = seen.page.inner_text("body")
        ticks = seen.page.evaluate("[...document.querySelectorAll('g[class^=y][class$=tick]')].map(t => t.textContent)")
    assert "controller's eyes" in text
    assert "exponential mechanism" in text
    assert sum(tick.startswith("individual") for tick in ticks) == 6
    assert seen.requests == []
    assert seen.faults == []


def test_groups_are_a_size_or_multiples(people: str) -> None:
    errors = {}
    for group in ("5", "1,1,1,1,1", "1, 1.5"):
        printed = run_text("compare", people, "-c", "income", "--statistics", "median", "--group", group, "--json")
        row = json.loads(printed)["rows"][1]
        errors[row["mechanism"]] = row["error"]
    assert list(errors) == ["group of 5", "group of 5, flat", "group of 2, with ε × (1, 1.5)"]
    assert errors["group of 5"] < errors["group of 5, flat"]

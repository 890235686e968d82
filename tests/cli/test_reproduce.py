"""``idios reproduce`` as a reader meets it: its numbers, and its report in a real browser without a network."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from idios.cli.main import app
from idios.evaluation import rendering, reproduction
from idios.evaluation.reproduction import Effort
from tests.services.chromium import opened, program

FIGURES = {"densities", "panels", "fair", "levels", "maximum", "counts"}


DRAWN = """Object.fromEntries([...document.querySelectorAll('.figure')].map(f => [f.id, {
    drawn: f.querySelectorAll('.scatterlayer .trace').length,
    wanted: f.data.length,
    labels: [...f.querySelectorAll('[class*=title]')].filter(t => /^x[0-9]*title$/.test(t.classList[0])).length,
    panels: f.querySelectorAll('.cartesianlayer > .subplot').length,
    paper: f.layout.paper_bgcolor}]))"""


def test_the_numbers_and_a_machine_without_a_browser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendering, "find_chromium", lambda: None)
    monkeypatch.setattr(reproduction, "QUICK", Effort(median=50, extremes=20))
    folder = tmp_path / "not" / "there"
    result = CliRunner().invoke(app, ["reproduce", "--quick", "--json", "--out", str(folder)], catch_exceptions=False)
    assert result.exit_code == 0
    assert "No PNGs were drawn" in result.stderr
    assert (folder / "report.html").exists()
    numbers = json.loads(result.stdout)
    assert set(numbers) == {"noise", "panels", "fair", "maximum", "counts", "errata"}
    assert len(numbers["panels"]["panels"]) == 9
    assert numbers["panels"]["epsilons"][0] == 0.5
    assert "minimum and maximum" in numbers["panels"]["conventions"]
    assert json.loads((folder / "numbers.json").read_text()) == numbers
    assert numbers["fair"]["panels"][0]["group10"][0] == "inf"  # JSON knows no infinity


def test_the_report_in_a_browser(tmp_path: Path) -> None:
    program()
    result = CliRunner().invoke(app, ["reproduce", "--quick", "--out", str(tmp_path)], catch_exceptions=False)
    assert "12 PNGs drawn" in result.stderr
    assert "95 % intervals" in result.stdout
    with opened(tmp_path / "report.html") as seen:
        seen.wait("document.querySelectorAll('.figure .legend').length >= 6")
        light = seen.page.evaluate(DRAWN)
        tables = seen.page.evaluate("document.querySelectorAll('table').length")
        seen.page.emulate_media(color_scheme="dark")
        seen.wait(
            f"document.getElementById('figure-counts').layout.paper_bgcolor === '{rendering.THEMES['dark']['paper']}'"
        )
        dark = seen.page.evaluate(DRAWN)
    for scheme, found in (("light", light), ("dark", dark)):
        assert set(found) == {f"figure-{name}" for name in FIGURES}
        for name, one in found.items():
            assert one["drawn"] == one["wanted"] > 0, name
            assert one["labels"] == one["panels"] > 0, name
            assert one["paper"] == rendering.THEMES[scheme]["paper"]
    assert tables >= 6 + 14
    assert seen.requests == []
    assert seen.faults == []
    for name in FIGURES:
        for variant in ("", "-dark"):
            picture = (tmp_path / f"{name}{variant}.png").read_bytes()
            assert picture.startswith(b"\x89PNG")
            assert int.from_bytes(picture[16:20], "big") == rendering.WIDTH

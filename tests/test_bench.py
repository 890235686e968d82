"""The benchmarks start, and their page tells what was measured, beside what was before."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

pytest.importorskip("bench.figures", reason="a source distribution has no bench/")

from bench import __main__ as command
from bench import growth, report, timing
from bench.figures import Figure, Settings
from bench.report import Measured
from bench.timing import Turn, compare, interleave

BENCH = Path(__file__).parents[1] / "bench"
MODULES = sorted(
    ".".join(path.relative_to(BENCH.parent).with_suffix("").parts)
    for path in BENCH.rglob("*.py")
    if not path.name.startswith("__")
)
HALF = Figure("`MEDIAN(x)`", 0.5, 0.4, 0.7, 0.6, ours="5 ms", beside="10 ms")


@pytest.mark.parametrize("module", MODULES)
def test_it_can_be_imported(module: str) -> None:
    importlib.import_module(module)


def test_every_section_has_a_title_and_measures() -> None:
    assert list(command.list_titles()) == list(command.SECTIONS)
    for name in command.SECTIONS:
        section = importlib.import_module(f"bench.{name}")
        assert section.TITLE
        assert section.ABOUT
        assert section.describe(Settings())
        assert callable(section.measure)


def test_a_section_that_is_not_there_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["plane"])
    assert "there is no section 'plane': choose from plain, peers" in capsys.readouterr().err


def test_the_page_is_what_is_stored() -> None:
    written = report.write_page(report.read_stored(), command.list_titles())
    assert written == report.WRITTEN.read_text(encoding="utf-8"), "python -m bench --page writes it"


def test_a_figure_is_kept_when_it_is_within_what_is_expected() -> None:
    assert HALF.kept is True
    assert Figure("a", 0.7, expected=0.6).kept is False
    assert Figure("a", 0.7).kept is None
    assert Figure("a", None, expected=0.6).kept is False
    assert Figure("a", 90, expected=200, at_least=True).kept is False
    assert Figure("a", 210, expected=200, at_least=True).kept is True


def test_a_table_shows_the_columns_that_are_used() -> None:
    assert report.write_table([HALF]).splitlines() == [
        "| what | ours | beside it | figure | spread | expected | kept |",
        "|---|---|---|---|---|---|---|",
        "| `MEDIAN(x)` | 5 ms | 10 ms | 0.5 | 0.4 to 0.7 | ≤ 0.6 | yes |",
    ]
    rate = Figure("server", 1234.5, 1000, 1300, 200, at_least=True, unit="/s", note="p50 1 s", last=90)
    assert report.write_table([rate]).splitlines()[2] == (
        "| server | 1,234 /s | 1,000 /s to 1,300 /s | ≥ 200 /s | yes | 90 /s | p50 1 s |"
    )
    assert "not measured" in report.write_table([Figure("a", None, expected=1, note="refused")])


def test_figures_are_read_back_as_they_were_stored(tmp_path: Path) -> None:
    path, sections = tmp_path / "figures.json", {"plain": Measured((HALF,), "2026-01-02", "10 rows")}
    assert report.read_stored(path) == {}
    report.write_stored(sections, path)
    assert report.read_stored(path) == sections


def test_new_figures_stand_beside_the_last_ones() -> None:
    former = Measured((HALF, Figure("`COUNT(*)`", None, last=1.2)), "2026-01-02")
    new = Measured((Figure("`COUNT(*)`", 1.1), Figure("`MEDIAN(x)`", 0.3), Figure("`SUM(x)`", 2)), "2026-02-03")
    found = report.follow(new, former)
    assert [figure.last for figure in found.figures] == [1.2, 0.5, None]
    assert found.date == "2026-02-03"
    assert report.follow(new, None) == new


def test_a_section_that_cannot_run_keeps_its_figures_and_says_why() -> None:
    former = Measured((HALF,), "2026-01-02", "10 rows")
    kept = report.follow(Measured(missing="there is no Java"), former)
    assert kept.figures == former.figures
    page = report.write_page({"spark": kept}, {"spark": ("Spark", "About it."), "start": ("Start", "About that.")})
    assert "## Spark\n\nAbout it.\n\nNot in the last run: there is no Java.\n\n2026-01-02: 10 rows.\n\n| what" in page
    assert "## Start\n\nAbout that.\n\nNot in the last run: never measured.\n" in page
    assert report.follow(Measured((HALF,), "2026-03-04"), kept).missing == ""


def test_sections_are_written_down_as_they_are_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def measure(name: str, settings: Settings) -> Measured:
        if name == "plain":
            return Measured((HALF,), "2026-01-02", "10 rows")
        raise ModuleNotFoundError("no Spark here") if name == "spark" else ZeroDivisionError

    stored, page = tmp_path / "figures.json", tmp_path / "page.md"
    monkeypatch.setattr(command, "measure", measure)
    monkeypatch.setattr(command, "read_stored", lambda: report.read_stored(stored))
    monkeypatch.setattr(command, "write_stored", lambda sections: report.write_stored(sections, stored))
    monkeypatch.setattr(command, "WRITTEN", page)
    assert command.main(["--quick", "plain"]) == 0
    assert not stored.exists()
    assert command.main(["spark", "plain"]) == 0
    assert command.main(["server"]) == 1
    found = report.read_stored(stored)
    assert found["plain"].figures == (HALF,)
    assert found["spark"].missing == "no Spark here"
    assert found["server"].missing == "it broke with ZeroDivisionError"
    assert "| `MEDIAN(x)` | 5 ms | 10 ms | 0.5 |" in page.read_text(encoding="utf-8")
    assert "1 figures in" in capsys.readouterr().out


def test_turns_are_taken_in_turns_and_the_first_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    turns = interleave(2, lambda: asked.append("a"), lambda: asked.append("b"))
    assert asked == ["a", "b"] * 7
    assert [len(each) for each in turns] == [6, 6], "what is quick is timed more often"
    monkeypatch.setattr(timing, "LEAST_SECONDS", 0)
    assert [len(each) for each in interleave(2, lambda: None, lambda: None)] == [2, 2]
    assert [len(each) for each in interleave(5, lambda: None, lambda: None, seconds=0)] == [1, 1]


def test_a_ratio_is_that_of_medians_and_its_spread_that_of_turns() -> None:
    ours, theirs = [Turn(1, 2), Turn(2, 2), Turn(9, 2)], [Turn(4, 1), Turn(4, 1), Turn(4, 1)]
    figure = compare("x", ours, theirs, 1, wanted=5)
    assert (figure.value, figure.least, figure.greatest) == (0.5, 0.25, 2.25)
    assert figure.note == "cores' time 2.00; 3 turns"


def test_the_exponent_of_growth_is_the_slope_of_logarithms() -> None:
    assert growth.fit_exponent([10, 100, 1000], [2.0, 20.0, 200.0]) == pytest.approx(1)
    assert growth.fit_exponent([10, 100, 1000], [5.0, 5.0, 5.0]) == pytest.approx(0)
    found = {10**6: growth.Found([1.0, 1.0], 200), 10**7: growth.Found([10.0, 20.0], 300)}
    exponent, memory = growth.describe_growth(growth.Asked("MEDIAN(x)"), found)
    assert (exponent.least, exponent.beside) == (pytest.approx(1), "1e6, 1e7 rows")
    assert (memory.value, memory.kept) == (300, True)

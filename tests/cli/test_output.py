"""How answers look on a terminal."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
import tomllib
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from rich.console import Console
from rich.prompt import Prompt
from rich.table import Table
from rich.text import Text

import idios
from idios.cli import output
from idios.display import CLIPPED_BIAS, NO_ROWS
from tests.cli.runner import run, run_json
from tests.client.scripted_server import ANSWER
from tests.model.test_answer import some_answer


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch) -> Console:
    console = Console(record=True, width=200, markup=False, emoji=False)
    monkeypatch.setattr(output, "console", console)
    return console


@pytest.fixture
def print_at(monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Print an answer with long names and numbers to a terminal of some width, or to a pipe."""
    means = ("AVG(income)", "MEDIAN(income)", "SUM(income)")
    rows = ({"sex": "female"} | dict.fromkeys(means, "12345678.75"), {"sex": "male"} | dict.fromkeys(means, "-7.5"))
    kinds = {"sex": "category"} | dict.fromkeys(means, "number")
    pairs = tuple({means[0]: ("12345678.25", "23456789.5")} for _ in rows)
    answer = some_answer(
        columns=tuple(kinds),
        types=kinds,
        exact_rows=rows,
        rows=(),
        margins=dict.fromkeys(means),
        interval_rows=pairs,
        clipped_rows=({means[0]: (Fraction(-52_240_000), Fraction(88_000_000))}, {}),
    )

    def print_to(width: int, terminal: bool = True) -> str:
        console = Console(
            record=True, width=width, force_terminal=terminal, file=io.StringIO(), markup=False, emoji=False
        )
        monkeypatch.setattr(output, "console", console)
        output.print_answer(answer)
        return console.export_text()

    return print_to


@pytest.mark.parametrize("width", [200, 120, 100, 80, 60, 40])
def test_no_number_is_cut_at_any_width(print_at: Callable[..., str], width: int) -> None:
    shown = print_at(width)
    for part in ("AVG(income)", "MEDIAN(income)", "SUM(income)", "12,345,678.25", "23,456,789.5", "[−52,240,000,"):
        assert part in shown
    assert shown.count("12,345,678.75") == 3
    assert "…" not in shown
    assert max(map(len, shown.splitlines())) <= width


def test_headings_wrap_before_rows_become_lists(print_at: Callable[..., str]) -> None:
    wide, narrow, lists = print_at(200), print_at(130), print_at(80)
    assert "AVG(income) (noise, 95 %, of the clipped values)" in wide
    assert ["┃" in shown for shown in (wide, narrow, lists)] == [True, True, False]
    assert "AVG(income) (noise, 95 %, of the clipped values)" not in narrow
    assert ["sex", "female"] in [[cell.strip() for cell in line.split("│")[1:-1]] for line in lists.splitlines()]


def test_a_pipe_has_no_width(print_at: Callable[..., str]) -> None:
    shown = print_at(80, terminal=False)
    assert "AVG(income) (noise, 95 %, of the clipped values)" in shown
    assert "12,345,678.25 to 23,456,789.5" in shown


def test_what_does_not_fit_by_word_is_folded(print_at: Callable[..., str]) -> None:
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in print_at(25).splitlines()]
    values = "".join(line[1] for line in cells if len(line) == 2)
    assert values.count("12,345,678.75") == 3


LIMITS = (Fraction(-1200), Fraction(88000))


def test_what_was_clipped_in_one_row_is_told_below_it(printed: Console) -> None:
    output.print_answer(replace(ANSWER, clipped_rows=({"MEDIAN(income)": LIMITS},)))
    assert f"Values outside [−1,200, 88,000] were clipped to it. {CLIPPED_BIAS}\n" in printed.export_text()


def test_what_was_clipped_in_groups_is_a_column(printed: Console) -> None:
    output.print_answer(some_answer(clipped_rows=({"m": LIMITS}, {})))
    shown = printed.export_text()
    assert "m clipped to" in shown
    assert shown.count("[−1,200, 88,000]") == shown.count(CLIPPED_BIAS) == 1


def test_what_an_answer_says_about_itself_is_printed(printed: Console) -> None:
    one = (Fraction(7), Fraction(7))
    told = some_answer(clipped_rows=({"m": one}, {}), interval_rows=({"m": ("7", "7")}, {}), notes=("m may be off.",))
    output.print_answer(told)
    shown = printed.export_text()
    for part in ("m (noise, 95 %, of the clipped values)", "[7, 7] collapsed", "\nm may be off.\n"):
        assert part in shown


def test_an_answer_without_clipping_does_not_mention_it(printed: Console) -> None:
    output.print_answer(ANSWER)
    output.print_answer(some_answer())
    assert "clipped" not in printed.export_text()


def test_names_and_text_are_no_markup(printed: Console) -> None:
    for console in (output.console, output.stderr):
        assert console.render_str("[/x] :smile:").plain == "[/x] :smile:"
    rows = ({"[/k]": "[bold]", "yes": "true", "n": None}, {"[/k]": ":smile:\x1b[2J", "yes": "false", "n": "2.5"})
    kinds = {"[/k]": "category", "yes": "boolean", "n": "number"}
    computed = replace(ANSWER, columns=tuple(kinds), types=kinds, exact_rows=rows, rows=(), margins={"yes": None})
    output.print_answer(computed)
    lines = [[cell.strip() for cell in line.split("│")[1:-1]] for line in printed.export_text().splitlines()]
    assert [line for line in lines if line] == [["[bold]", "true", "NULL"], [":smile: [2J", "false", "2.5"]]


def test_a_table_without_rows_says_why(printed: Console) -> None:
    nothing = some_answer(exact_rows=(), rows=())
    output.print_answer(nothing)
    assert f"\n{NO_ROWS}\n" in printed.export_text()
    assert f"\n{NO_ROWS}\n" in str(nothing)
    assert NO_ROWS in nothing._repr_html_()


OBEYED = "a\x1b]0;title\x07\x1b[31mb\x9b2Jc\r\u202ed\x7f\u200be\U000e0001f [red]"
"""What a terminal obeys, hides or turns, and what rich takes for a style."""


def is_plain(shown: str) -> bool:
    return all(c.isprintable() or c in "\n\u202f\xa0" for c in shown)


@pytest.mark.parametrize("width", [30, 400])
def test_a_terminal_obeys_nothing_that_is_printed(width: int) -> None:
    console = output.PlainConsole()
    console.file, console.width = io.StringIO(), width
    table = Table(OBEYED, title=OBEYED)
    table.add_row(OBEYED)
    output.print_table(table, console)
    for printed in (OBEYED, Text(OBEYED), f"error: {OBEYED}"):
        console.print(printed, highlight=False)
    console.out(OBEYED)
    answers = iter([""])
    console.input = lambda prompt, **_: console.print(prompt) or next(answers)  # type: ignore[method-assign]
    assert Prompt.ask(Text(OBEYED), console=console, default="") == ""
    shown = console.file.getvalue()
    assert is_plain(shown)
    assert r"\x1b]0;title" in shown.replace("\n", "")
    assert "[red]" in shown


def test_json_that_is_printed_says_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_json({OBEYED: [OBEYED, "\u202f€"]})
    shown = capsys.readouterr().out
    assert is_plain(shown)
    assert json.loads(shown) == {OBEYED: [OBEYED, "\u202f€"]}


def test_names_and_values_of_a_file_are_shown_and_kept_safely(folder: Path) -> None:
    """In what is proposed, found, asked and refused; and the configuration declares what the file says."""
    name, north = f"pay{OBEYED}\nnone: integer", f"north{OBEYED}"
    with (folder / "people.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["age", name, "region"], *([i, i % 9, (north, "south")[i % 2]] for i in range(99))])
    shown = [run("init", "people.csv", "--yes").output]
    assert is_plain((folder / "idios.toml").read_text())
    declared = tomllib.loads((folder / "idios.toml").read_text())["datasets"]["people"]["columns"]
    assert list(declared) == ["age", name, "region"]
    assert "\n  none: integer" not in shown[0]
    grouped = "SELECT region, COUNT(*), MEDIAN(age) FROM people GROUP BY region"
    for arguments in (["check"], ["query", grouped, "-e", "1"], ["inspect", grouped, "-e", "1"], ["ledger", "export"]):
        shown.append(run(*arguments).output)
    assert [row["region"] for row in run_json("query", grouped, "-e", "1")["rows"]] == declared["region"]["values"]
    unknown = [sys.executable, "-m", "idios", "query", f'SELECT MEDIAN("nobody{OBEYED}") FROM people', "-e", "1"]
    shown.append(subprocess.run(unknown, capture_output=True, text=True, check=False).stderr)
    shown.append(repr(idios.schema("people.csv")))
    for each in shown:
        assert is_plain(each), each.encode("unicode_escape")

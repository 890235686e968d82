"""How answers look on a terminal."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from rich.console import Console

from idios.cli import output
from idios.display import CLIPPED_BIAS, NO_ROWS
from tests.client.scripted_server import ANSWER
from tests.model.test_answer import some_answer


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch) -> Console:
    console = Console(record=True, width=200, markup=False, emoji=False)
    monkeypatch.setattr(output, "console", console)
    return console


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
    for part in ("m (95 %, of the clipped values)", "[7, 7] collapsed", "\nm may be off.\n"):
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

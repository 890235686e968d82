"""How answers look on a terminal."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from rich.console import Console

from idios.cli import output
from idios.display import CLIPPED_BIAS
from tests.client.scripted_server import ANSWER
from tests.model.test_answer import some_answer


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch) -> Console:
    console = Console(record=True, width=200)
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


def test_an_answer_without_clipping_does_not_mention_it(printed: Console) -> None:
    output.print_answer(ANSWER)
    output.print_answer(some_answer())
    assert "clipped" not in printed.export_text()

"""What a controller gives of columns, by options or when they are asked."""

from __future__ import annotations

import pytest

from idios.cli.init import ask_bounds, read_bounds
from idios.errors import InvalidInput

NUMBERS = ("0..30,000", "0..30.000,00", "$0..$20000", "0..20000 EUR", "0..true", "0..2010-12-31", "1\ny = 2..3", "x..")
DATES = ("01/01/1900..12/31/2010", "1.1.1900..31.12.2010", "1900..2010", "1900-01-01..2010-13-31", "..2010")


def test_bounds_that_cannot_be_read_are_told_with_the_way_to_write_them() -> None:
    for kind, unreadable, told in (
        ("integer", NUMBERS, "nothing else between their digits, such as 0..30000"),
        ("number", NUMBERS, "nothing else between their digits, such as 0..30000"),
        ("date", DATES, "year-month-day, such as 1900-01-01..2030-12-31"),
        ("timestamp", DATES, "year-month-day, such as 1900-01-01..2030-12-31"),
    ):
        for given in unreadable:
            with pytest.raises(InvalidInput) as refused:
                read_bounds("wage", given, {"type": kind})
            assert told in str(refused.value), given


def test_bounds_that_can_be_read() -> None:
    assert read_bounds("wage", "-0.5..1e5", {"type": "number"}) == ("-0.5", "1e5")
    assert read_bounds("born", "1900-01-01..", {"type": "date"}) == ("1900-01-01", None)
    assert read_bounds("seen", "1900-01-01..2026-01-31T12:00:00", {"type": "timestamp"})
    with pytest.raises(InvalidInput, match="wage"):
        read_bounds("wage", "9..1", {"type": "integer"})
    with pytest.raises(InvalidInput, match="no type is proposed"):
        read_bounds("name", "0..1", {})


def test_it_is_asked_again(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    answers, asked = iter(["01/01/1900..12/31/2010", "1900-01-01..2010-12-31", ""]), []

    def ask(question: str, **_: object) -> str:
        asked.append(question)
        return next(answers)

    monkeypatch.setattr("idios.cli.init.Prompt.ask", ask)
    assert ask_bounds("born", {"type": "date"}) == ("1900-01-01", "2010-12-31")
    assert len(asked) == 2
    assert "1900-01-01..2030-12-31" in asked[0]
    assert "year-month-day" in " ".join(capsys.readouterr().err.split())
    assert ask_bounds("born", {"type": "date"}) is None

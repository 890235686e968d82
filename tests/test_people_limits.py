"""Several records of a person: what is declared of them, and what is said of them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from idios.errors import InvalidInput, QuestionRefused, Unanswerable
from idios.party import TrustedParty


def open_several(people: int = 60, **declared: Any) -> TrustedParty:
    """Each of these people has five rows."""
    rows = range(5 * people)
    source = {
        "who": [i % people for i in rows],
        "x": [i % 61 for i in rows],
        "g": [("a", "b", "c")[i % 3] for i in rows],
        "h": [("a", "b")[i % 2] for i in rows],
    }
    columns = {"x": {"type": "integer", "bounds": [0, 100], "nullable": False}} | {
        name: {"type": "category", "values": values} for name, values in (("g", ["a", "b", "c"]), ("h", ["a", "b"]))
    }
    given: dict[str, Any] = {"protection": "differential", "budget": 1000} | declared
    return TrustedParty.open(source, name="t", unit="who", columns=columns, **given)


def test_messages_count_people() -> None:
    with open_several() as party:
        few = "median of 60 people would be NULL nearly always, as 30 changed people could move it anywhere: ask about "
        for sql, needed in (
            ("SELECT MEDIAN(x) FROM t", "at least 997 people, or with epsilon = 1.7 or more"),
            (
                "SELECT MEDIAN(s) FROM (SELECT AVG(x) AS s FROM t GROUP BY who)",
                "at least 999 people, or with epsilon = 1.8 or",
            ),
        ):
            with pytest.raises(Unanswerable, match=few + needed):
                party.quote(sql, "0.1")
        with pytest.raises(Unanswerable, match=r"ask about at least 219 people.*WHERE x BETWEEN"):
            party.quote("SELECT QUANTILE(x, 0.99) FROM t", "0.1")
        risk = "NULL is possible where fewer than about 100 people are selected"
        assert party.quote("SELECT MEDIAN(x) FROM t WHERE g = 'a'", 1).null_risks == {"MEDIAN(x)": risk}
        with pytest.raises(InvalidInput, match="of which a person has several: ask without check"):
            party.quote("SELECT MEDIAN(x) FROM t", 5, check="0.2")
        assert party.sandbox("SELECT MEDIAN(x) FROM t", 5).rows


def test_the_least_epsilon_is_that_of_a_person() -> None:
    with open_several(rows=5) as party:
        assert party.quote("SELECT COUNT(*) FROM t", "0.05").least_epsilon == Fraction(1, 20)
        with pytest.raises(InvalidInput, match=r"leaves 0.04 for COUNT.*ask with epsilon = 0.05 or more"):
            party.quote("SELECT COUNT(*) FROM t", "0.04")


def test_inspections_tell_what_people_can_do() -> None:
    with open_several(600, rows=5, protection="individual") as party:
        [cell] = party.inspect("SELECT SUM(x) FROM t", 5).cells
        assert (cell.level, len(cell.lows), cell.local_sensitivity) == ("individual", 2, 500)
        assert (cell.lows[0], cell.highs[0], cell.highs[1]) == (cell.value, cell.value, cell.value + 500)


def test_limits_that_are_too_great_are_refused() -> None:
    with pytest.raises(InvalidInput, match="rows must be at most 200, as 5 are protected together, got 201"):
        open_several(rows=201, protection="group", group=5)
    with pytest.raises(InvalidInput, match="groups must be at most 1,000, got 1,001"):
        open_several(groups=1001)
    with (
        open_several(protection="group", group=51) as party,
        pytest.raises(QuestionRefused, match="counts here with up to 20 values, and 51 people together have more"),
    ):
        party.quote("SELECT MEDIAN(x) FROM t", 5)


def test_what_takes_too_long_is_refused() -> None:
    """Of a person with many rows an interquartile range is searched for far out, at each distance in every way."""
    with (
        open_several(rows=100) as party,
        pytest.raises(Unanswerable, match=r"too long with so little epsilon: ask with 1\d.\d times as much"),
    ):
        party.quote("SELECT IQR(x) FROM t", "0.05")


def test_no_more_groups_count_than_there_are() -> None:
    with open_several(groups=4) as party:
        records = {
            sql: party.make_plan(sql, 5).dataset.records
            for sql in (
                "SELECT g, COUNT(*) FROM t GROUP BY g",
                "SELECT h, COUNT(*) FROM t WHERE h = 'a' GROUP BY h",
                "SELECT g, h, COUNT(*) FROM t GROUP BY g, h",
                "SELECT h, g, COUNT(*) FROM t WHERE g <> 'a' OR h = 'a' GROUP BY h, g",
            )
        }
        assert list(records.values()) == [3, 1, 4, 4]
        forms = {party.make_plan(f"SELECT COUNT(*) FROM t GROUP BY {by}", 5).normal_form for by in ("g, h", "h, g")}
        assert len(forms) == 1


def test_another_limit_is_another_question() -> None:
    forms = set()
    for declared in ({}, {"rows": 2}, {"rows": 3}, {"groups": 1}, {"groups": 2}):
        with open_several(**declared) as party:
            sql = "SELECT g, COUNT(*) FROM t GROUP BY g" if declared else "SELECT COUNT(*) FROM t"
            forms.add(party.make_plan(sql, 5).normal_form)
    assert len(forms) == 5

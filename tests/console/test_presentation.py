"""How answers, entries and places are shown in words."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from html import unescape

import pytest

from idios.cli.output import print_answer
from idios.core.calibration import Level
from idios.core.guarantee import Guarantee
from idios.core.neighbours import Neighbours
from idios.display import CLIPPED_BIAS, NO_ROWS
from idios.model import Answer
from idios.model.released import Limits
from idios.server.console.pages import templates
from idios.server.console.presentation import mark_error, present_answer, present_entry


def test_entries_are_told_exactly_and_briefly() -> None:
    told = present_entry(
        {"question": "q" * 100, "epsilon": "1/3", "analyst": "ada", "expires": "2027-01-02T03:04:05.6Z"}
    )
    assert [(one.name, one.shown, one.folded) for one in told] == [
        ("epsilon", "≈\u202f0.3333", False),
        ("analyst", "ada", False),
        ("expires", "2027-01-02 03:04:05", False),
        ("question", "q" * 100, True),
    ]
    assert told[0].exact == "1/3"


@pytest.mark.parametrize(
    ("line", "column", "mark"),
    [(1, 1, ("", "ab", " c")), (2, 2, ("d", "(", "e")), (1, 99, ("ab c", " ", "")), (9, 1, None), (None, None, None)],
)
def test_places_are_marked(line: int | None, column: int | None, mark: tuple[str, str, str] | None) -> None:
    assert mark_error("ab c\nd(e", {"in": "sql", "name": None, "line": line, "column": column}) == mark


def answered(rows: int, clipped: tuple[dict[str, Limits], ...]) -> Answer:
    exact = {"region": "<b>", "AVG(income)": "41320"}
    return Answer(
        id="1",
        dataset="people",
        columns=tuple(exact),
        types={"region": "category", "AVG(income)": "number"},
        exact_rows=(exact,) * rows,
        epsilon=Fraction(1),
        delta=Fraction(0),
        guarantee=Guarantee(Level.DIFFERENTIAL, Fraction(1), Neighbours.REPLACE),
        remaining=None,
        margins={"AVG(income)": None},
        margin_reasons={"AVG(income)": "not public"},
        clipped_rows=clipped,
    )


def show(answer: Answer) -> str:
    return unescape(str(templates.get_template("parts.html").module.answer(present_answer(answer), False)))


def test_what_was_clipped_is_told_once() -> None:
    limits = (Fraction(-12000), Fraction(1, 3))
    one = show(answered(1, ({"AVG(income)": limits},)))
    assert f"Values outside [−12,000, 0.333333] were clipped to it. {CLIPPED_BIAS}" in one
    assert "clipped to</th>" not in one
    several = show(answered(3, ({"AVG(income)": limits}, {}, {"AVG(income)": limits})))
    assert several.count(CLIPPED_BIAS) == 1
    assert several.count("AVG(income) clipped to</th>") == 1
    assert several.count('title="[-12000, 1/3]">[−12,000, 0.333333]</td>') == 2
    assert "lipped" not in show(answered(1, ())) + show(answered(3, ()))


def test_what_an_answer_says_about_itself_is_shown() -> None:
    one = (Fraction(7), Fraction(7))
    answer = replace(
        answered(2, ({"AVG(income)": one}, {})),
        interval_rows=({"AVG(income)": ("7", "7")}, {}),
        notes=("AVG(income) may be <far> off.",),
    )
    shown = show(answer)
    assert "<dd>AVG(income) may be <far> off.</dd>" in shown
    assert "AVG(income) (noise, 95 %, of the clipped values)</th>" in shown
    assert "[7, 7] collapsed</td>" in shown
    assert "&lt;far&gt;" in str(templates.get_template("parts.html").module.answer(present_answer(answer), False))


def test_an_interval_is_a_fact_of_one_row_and_a_column_of_several() -> None:
    interval = {"AVG(income)": ("40990.25", "41655.75")}
    one = show(replace(answered(1, ()), interval_rows=(interval,)))
    assert "<dd>40,990.25 to 41,655.75 " in one
    assert "not public" not in one
    three = replace(answered(3, ()), interval_rows=(interval, {}, interval))
    several = show(three)
    assert several.count("AVG(income) (noise, 95 %)</th>") == 1
    assert several.count('title="40990.25 to 41655.75">40,990.25 to 41,655.75</td>') == 2
    assert several.count("not public") == 1, "said once, not in each row"
    assert several.count('class="whisker"') == 2 * 3


def test_a_constant_names_no_bar_and_an_empty_one_is_null() -> None:
    rows = tuple({"region": name, "none": None, "ratio": ratio} for name, ratio in (("east", "5.02"), ("west", None)))
    kinds = {"region": "category", "none": "number", "ratio": "number"}
    reasons = {"ratio": "computed"}
    answer = replace(
        answered(1, ()), columns=tuple(kinds), types=kinds, exact_rows=rows, rows=(), margins={"ratio": None}
    )
    view = present_answer(replace(answer, margin_reasons=reasons))
    assert [[text for text, _, _ in row] for row in view.rows] == [["east", "NULL", "5.02"], ["west", "NULL", "NULL"]]
    assert [chart.title for chart in view.charts] == ["ratio by region"]
    assert "divided by 0" in show(view.answer)


def test_an_answer_without_rows_says_why_and_offers_no_check() -> None:
    nothing = replace(answered(1, ()), exact_rows=(), rows=())
    assert NO_ROWS in show(nothing)
    assert NO_ROWS not in show(answered(1, ()))
    assert [present_answer(answer).checkable for answer in (nothing, answered(1, ()))] == [False, True]


def test_what_has_no_margin_is_told_once() -> None:
    rows = ({"a": "1", "b": "2"},)
    reasons = {"a": "computed", "b": "computed"}
    answer = replace(answered(1, ()), columns=("a", "b"), types={}, exact_rows=rows, rows=({"a": 1, "b": 2},))
    assert "not public: a, b: computed<" in show(replace(answer, margins=dict.fromkeys("ab"), margin_reasons=reasons))


@pytest.mark.parametrize(
    ("exact", "written"),
    [("-1234567.256", "−1,234,567.26"), ("1234.5", "1,234.5"), ("9999", "9,999"), ("1/3", "0.333333")],
)
def test_a_number_is_written_alike_wherever_it_is_shown(
    exact: str, written: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """In plain text, a notebook, a terminal and the console: values, interval ends, limits and margins."""
    number = Fraction(exact)
    row = {"region": "north", "m": exact}
    answer = replace(
        answered(2, ()),
        columns=("region", "m"),
        types={"region": "category", "m": "number"},
        exact_rows=(row, row),
        rows=(),
        margins={"m": abs(number)},
        margin_reasons={},
        interval_rows=({"m": (exact, exact)},) * 2,
        clipped_rows=({"m": (number, number + 1)},) * 2,
    )
    print_answer(answer)
    for shown in (str(answer), answer._repr_html_(), capsys.readouterr().out, show(answer)):
        assert f"{written} to {written}" in shown
        assert f"[{written}, " in shown
        assert shown.count(written) >= 8  # in two rows: a value, two ends, a limit

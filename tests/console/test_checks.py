"""How far off answers are, as the console asks for it and shows it."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from html import unescape

import pytest

from idios.answer.computed import SEVERAL
from idios.model import Distance
from idios.server.console.presentation import present_answer
from tests.console.console_office import MEDIAN, Office, sign_in
from tests.console.test_forms import _ask
from tests.console.test_presentation import answered, show

WORDS = "about 12 ± 5 records too high (noise, 95 %)"
OFF = {"AVG(income)": Distance(7, 17)}


def read(page: str) -> str:
    return " ".join(unescape(re.sub("<[^>]+>", " ", page)).split())


def test_the_form_names_the_declared_share(office: Office) -> None:
    ada = sign_in(office, office.tokens.ada)
    assert (
        'name="check" inputmode="decimal" autocomplete="off" maxlength="100" value="" placeholder="0.2"'
        in ada.get("/console/ask").text
    )
    grace = sign_in(office, office.tokens.grace)
    assert 'placeholder="as declared"' in grace.get("/console/ask").text, "her data sets declare different shares"


def test_the_field_is_the_share_of_the_question(own_office: Office) -> None:
    ada = sign_in(own_office, own_office.tokens.ada)
    quoted = _ask(ada, MEDIAN, action="quote", epsilon="1", check="0.5").text
    assert "Check of MEDIAN(income) ε = 0.5, tells how many records off it is" in read(quoted)
    assert 'value="0.5" placeholder' in quoted, "the page shows what was written"
    little = read(_ask(ada, MEDIAN, action="quote", epsilon="0.2").text)
    assert "Check of MEDIAN(income) none below ε = 0.25" in little
    assert "How far off" in read(_ask(ada, MEDIAN, action="sandbox", epsilon="1").text)
    assert own_office.ledger.balance("people").epsilon.spent == 0
    assert "How far off" in read(_ask(ada, MEDIAN, epsilon="1").text)
    assert "(noise, 95 %)" not in read(_ask(ada, MEDIAN, epsilon="1", check="0").text)
    assert own_office.ledger.balance("people").epsilon.spent == 2
    assert _ask(ada, MEDIAN, epsilon="1", check="much").status_code == 422
    assert ada.get("/console/history").status_code == 200


def test_one_form_with_another_check_is_another_question(own_office: Office) -> None:
    ada = sign_in(own_office, own_office.tokens.ada)
    for check in ("0.2", "0.4", "0.4"):
        assert _ask(ada, MEDIAN, once="a", epsilon="1", check=check).status_code == 200
    assert own_office.ledger.balance("people", "ada").epsilon.spent == Fraction(2)


def test_the_history_shows_a_check_that_was_bought_later(own_office: Office) -> None:
    ada = sign_in(own_office, own_office.tokens.ada)
    for more in ({"check": "0"}, {"then_check": "0.5"}):
        body = {"sql": MEDIAN, "epsilon": "1", **more}
        headers = {"Authorization": f"Bearer {own_office.tokens.ada}"}
        assert own_office.client.post("/v1/query", json=body, headers=headers).status_code == 200
    assert ada.get("/console/history").status_code == 200


@pytest.mark.parametrize("rows", [1, 2])
def test_distances_are_shown_in_words(rows: int) -> None:
    answer = replace(answered(rows, ()), check_rows=(OFF,) * rows)
    shown = show(answer)
    assert shown.count(WORDS) == rows, "in a sentence, or beside the cell"
    assert shown.count(">+7 to +17<") == (rows if rows > 1 else 0)
    assert ("How far off" in shown) == (rows == 1)
    assert ("AVG(income) is off by" in shown) == (rows == 2)


def test_a_cell_without_a_check_is_empty() -> None:
    answer = replace(answered(2, ()), check_rows=(OFF, {}))
    assert [row[-1][0] for row in present_answer(answer).rows] == ["+7 to +17", ""]


def test_how_far_off_an_answer_is_can_be_asked_on_its_page(own_office: Office) -> None:
    ada = sign_in(own_office, own_office.tokens.ada)
    button = "How far off is this?"
    assert button not in _ask(ada, MEDIAN, epsilon="1").text, "it is told already"
    assert button not in _ask(ada, "SELECT COUNT(*) FROM people WHERE age > 40").text, "it has a margin"
    assert button not in _ask(ada, MEDIAN, epsilon="1", check="0", action="sandbox").text
    plain = _ask(ada, MEDIAN, epsilon="1", check="0").text
    assert button in plain
    spent = own_office.ledger.balance("people").epsilon.spent
    checked = _ask(ada, MEDIAN, epsilon="1", action="check", then_check="0.5", once="c").text
    assert "(noise, 95 %)" in read(checked)
    assert button not in checked
    assert own_office.ledger.balance("people").epsilon.spent == spent + Fraction(1, 2)
    single = re.compile(r'<output title="([^"]*)">')
    assert single.findall(checked) == single.findall(plain)
    assert _ask(ada, MEDIAN, epsilon="1", action="check", then_check="0.5", once="c").status_code == 200
    assert own_office.ledger.balance("people").epsilon.spent == spent + Fraction(1, 2)
    refused = _ask(ada, MEDIAN, epsilon="1", action="check", then_check="")
    assert refused.status_code == 422
    assert "Nothing was charged." in refused.text


def test_a_check_is_offered_only_where_it_would_tell_something(own_office: Office) -> None:
    ada = sign_in(own_office, own_office.tokens.ada)
    around = "SELECT MAX(m) AS top FROM (SELECT region, MEDIAN(age) AS m FROM people GROUP BY region)"
    several = _ask(ada, around, epsilon="1", check="0")
    assert several.status_code == 200
    assert SEVERAL in read(several.text)
    assert "How far off is this?" not in several.text
    assert "How far off is this?" in _ask(ada, "SELECT 2 * MEDIAN(age) FROM people", epsilon="1", check="0").text

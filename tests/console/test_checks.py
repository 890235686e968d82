"""How far off answers are, as the console asks for it and shows it."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from html import unescape

import pytest

from idios.model import Distance
from idios.server.console.presentation import present_answer
from tests.console.console_office import MEDIAN, Office, sign_in
from tests.console.test_forms import _ask
from tests.console.test_presentation import answered, show

WORDS = "about 12 ± 5 records too high (95\N{NO-BREAK SPACE}%)"
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
    assert "How far off" not in read(_ask(ada, MEDIAN, epsilon="1", check="0").text)
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
    shown = re.sub("<[^>]+>", " ", show(answer))
    assert shown.count(WORDS) == rows
    assert ("How far off" in shown) == (rows == 1)
    assert ("AVG(income) is off by" in shown) == (rows == 2)


def test_a_cell_without_a_check_is_empty() -> None:
    answer = replace(answered(2, ()), check_rows=(OFF, {}))
    assert [row[-1][0] for row in present_answer(answer).rows] == [WORDS, ""]

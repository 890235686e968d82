"""What the client sends for checks, and what it makes of them."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

from idios.errors import InvalidInput
from idios.model import Distance
from tests.client.scripted_server import ANSWER, QUOTE, SQL, Script, ok

PLAIN = ANSWER.to_dict()
CHECKED = {**PLAIN, "checks": [{"MEDIAN(income)": {"low": 7, "high": 17}}]}


def test_the_share_for_checks_is_sent_exactly() -> None:
    script = Script(ok(CHECKED), ok(PLAIN), ok({**QUOTE, "checks": {"MEDIAN(income)": "0.1"}}), ok(PLAIN))
    party = script.party()
    answer = party.query(SQL, 0.5, check=0.2)
    assert answer.check_rows == ({"MEDIAN(income)": Distance(7, 17)},)
    assert "about 12 ± 5 records too high (noise, 95 %)" in str(answer)
    party.query(SQL, 0.5)
    quote = party.quote(SQL, 0.5, check="1/3")
    assert quote.checks == {"MEDIAN(income)": Fraction(1, 10)}
    assert "check of MEDIAN(income): ε = 0.1, tells how many records off it is" in str(quote)
    party.sandbox(SQL, 0.5, check=0)
    bodies = [json.loads(request.content) for request in script.requests if request.content]
    assert [body.get("check") for body in bodies] == ["0.2", None, "1/3", "0"]
    assert not any("then_check" in body for body in bodies)


def test_a_check_bought_later_is_a_question_of_its_own() -> None:
    script = Script(ok(CHECKED), ok(QUOTE))
    party = script.party()
    assert party.check(SQL, 0.5, with_epsilon="0.25").check_rows
    party.quote(SQL, 0.5, then_check=0.25)
    asked, quoted = (request for request in script.requests if request.content)
    assert json.loads(asked.content) == {"sql": SQL, "epsilon": "0.5", "split": None, "then_check": "0.25"}
    assert asked.url.path == "/v1/query"
    assert asked.headers["Idempotency-Key"]
    assert json.loads(quoted.content)["then_check"] == "0.25"


def test_what_is_wrong_is_not_sent() -> None:
    party = Script().party()
    with pytest.raises(InvalidInput, match="with_epsilon"):
        party.check(SQL, 0.5, with_epsilon=0)
    with pytest.raises(InvalidInput, match="check"):
        party.query(SQL, 0.5, check="much")

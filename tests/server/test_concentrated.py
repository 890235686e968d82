"""A data set whose budget is (ε, δ): what the API and the client tell of ρ."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import pytest

from idios.client.error_mapping import error_from_reply
from idios.codec import from_json
from idios.errors import BudgetExceeded
from idios.model import Answer, BalanceList, DatasetList, Quote
from tests.server.office import CONCENTRATED, Office, open_office, write_office

COUNT = "SELECT COUNT(*) FROM people WHERE age > 40"


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    opened = open_office(write_office(tmp_path_factory.mktemp("office"), budget=CONCENTRATED))
    with opened.client:
        yield opened


def test_the_data_set_says_how_it_is_accounted(office: Office) -> None:
    described = office.call("GET", "/v1/datasets", "grace").json()["datasets"]
    assert [one.get("accounting") for one in described] == ["concentrated", None]
    people, patients = from_json(DatasetList, {"datasets": described}, "reply").datasets
    assert "accounting: concentrated" in str(people)
    assert "accounting" not in str(patients)


def test_quote_answer_budget_and_history_tell_rho(office: Office) -> None:
    body = {"sql": COUNT, "epsilon": "0.05"}
    quote = from_json(Quote, office.call("POST", "/v1/quote", json=body).json(), "reply")
    assert quote.prices[0] == ("cost", "ρ = 0.00125")
    assert "about 247 more like this one" in quote.after
    answer = from_json(Answer, office.ask(COUNT, "0.05").json(), "reply")
    assert answer.rho == Fraction(1, 800)
    assert answer.left.startswith("ρ = 0.309815, which stands for ε = ")
    [released] = office.call("GET", "/v1/answers").json()["answers"]
    assert (released["epsilon"], released["rho"]) == ("0.05", "0.00125")
    listed = from_json(BalanceList, office.call("GET", "/v1/budget").json(), "reply").listing()
    assert "spent ρ  remaining ρ" in str(listed)
    assert "0.00125  0.309815" in str(listed)


def test_metrics_have_rho_where_it_is_added_up(office: Office) -> None:
    text = office.call("GET", "/metrics", "grace").text
    assert 'idios_budget{dataset="people",quantity="rho"} 0.463' in text
    assert 'idios_spent{dataset="people",quantity="rho"}' in text
    assert 'dataset="patients",quantity="rho"' not in text


def test_too_much_of_rho_is_refused_with_the_epsilon_that_would_do(office: Office) -> None:
    refused = office.ask(COUNT, "0.9")
    assert refused.status_code == 409
    error = refused.json()["error"]
    assert (error["quantity"], error["requested"]) == ("rho", "0.405")
    assert "enough for a question with ε = 0.7" in error["message"]
    raised = error_from_reply(409, {"error": error})
    assert isinstance(raised, BudgetExceeded)
    assert (raised.quantity, raised.requested) == ("rho", Fraction("0.405"))

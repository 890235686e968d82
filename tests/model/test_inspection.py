"""What the controller sees, as text and in a notebook; and that no object shows a raw fraction."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import pytest

import idios
from idios.display import Listing
from idios.model import Balance
from idios.model.inspection import Costs, InspectedCell, Inspection, format_exact
from idios.party import TrustedParty

BY_REGION = "SELECT region, ROUND(SUM(age) / COUNT(*), 2) AS mean FROM people GROUP BY region"


@pytest.fixture(scope="module")
def party() -> Iterator[TrustedParty]:
    people = {"age": [20 + i % 60 for i in range(600)], "region": [["<b>", "south"][i % 2] for i in range(600)]}
    columns = {
        "age": {"type": "integer", "bounds": [0, 120], "nullable": False},
        "region": {"type": "category", "values": ["<b>", "south"]},
    }
    with idios.TrustedParty.open(people, name="people", columns=columns, budget=20, protection="individual") as party:
        yield party


def test_nothing_shows_a_raw_fraction(party: TrustedParty) -> None:
    third = "1/3"
    plan = party.plan({"old": "SELECT COUNT(*) FROM people WHERE age > 60"}, third)
    answer = party.query("SELECT AVG(age) FROM people WHERE age > 30", third)
    shown = {
        "party": party,
        "answer": answer,
        "guarantee": answer.guarantee,
        "quote": party.quote(BY_REGION, third),
        "budget": party.budget(),
        "balance": party.budget()[0],
        "account": party.budget()[0].epsilon,
        "inspection": party.inspect(BY_REGION, third),
        "cell": party.inspect(BY_REGION, third).cells[0],
        "costs": party.costs(BY_REGION, third),
        "plan": plan,
        "report": plan.ask(),
    }
    for name, found in shown.items():
        for text in (repr(found), str(found), getattr(found, "_repr_html_", found.__str__)()):
            assert text, name
            assert "Fraction" not in text, name
            assert "object at 0x" not in text, name
            assert "<b></" not in text, name
    for name in ("party", "answer", "quote", "budget", "balance", "inspection", "costs", "plan", "report"):
        assert "<table>" in shown[name]._repr_html_(), name


def test_an_inspection_is_a_table(party: TrustedParty) -> None:
    found = party.inspect(BY_REGION, 1)
    lines = str(found).splitlines()
    assert lines[0] == "For the controller's eyes: true values and noise."
    assert lines[1].split()[:2] == ["region", "statistic"]
    assert "note" not in lines[1]  # a column that says nothing is left out
    assert lines[-3:] == ["region  mean", "<b>     49", "south   50"]
    html = found._repr_html_()
    assert "&lt;b&gt;" in html
    assert "<b>" not in html
    assert repr(found.cells[0]) == "<InspectedCell COUNT(*) = 300; noise: discrete Laplace, scale 4, ε = 0.25>"


def test_what_has_no_cells_and_no_number() -> None:
    noise = {"distribution": "none", "scale": None, "epsilon": Fraction(1, 3)}
    named = Inspection((InspectedCell({}, "MODE(g)", "north", (), (), None, noise, "individual"),))
    assert str(named).splitlines()[1:] == ["statistic  true value  noise", "MODE(g)    north       none, ε = 1/3"]
    absent = InspectedCell({}, "MEDIAN(x)", None, (0, 0), (0, 0), None, noise, "individual")
    assert absent.true_value == "NULL"
    assert str(Costs(())).splitlines()[0] == "For the controller's eyes: true values and noise."
    assert format_exact("-100000/3") == "−33,333.33"


def test_budgets_of_the_party_and_of_an_analyst(party: TrustedParty) -> None:
    party.ledger.add_analyst("ada")
    assert not party.budget("ada")
    party.ledger.grant("ada", "people", epsilon=Fraction(1, 3))
    (granted,) = party.budget("ada")
    assert isinstance(granted, Balance)
    assert str(granted).splitlines() == [
        "data set  analyst  budget ε  spent ε  remaining ε  remaining δ  promise",
        "people    ada      1/3       0        1/3          0            individual, replace",
    ]
    assert isinstance(party.budget(), Listing)
    assert repr(granted.epsilon) == "<Account budget 1/3, spent 0, remaining 1/3>"
    assert not party.budget("nobody")


def test_a_closed_party_still_shows_itself() -> None:
    party = idios.TrustedParty.open(
        {"x": [1, 2]}, name="t", columns={"x": {"type": "integer"}}, budget=1, protection="individual"
    )
    assert "x (integer)" in party._repr_html_()
    party.close()
    assert repr(party) == "<TrustedParty t: x (individual)>"
    assert repr(party.datasets) == "{'t': <OpenDataset t: x (individual)>}"
    assert "x (integer)" in party._repr_html_()

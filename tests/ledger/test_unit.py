"""Answers are promised to the people of a unit: it does not change once there are any."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import pytest

from idios.errors import LedgerError
from idios.ledger import Declaration, Ledger
from idios.ledger.facts import Declared
from tests.ledger.ledger_place import Place, ask, people
from tests.ledger.old_ledger import write_old_ledger

UNITS = ("", "customer", "household", "customer with orders.customer = people.customer")


def test_a_unit_changes_until_something_was_charged(place: Place) -> None:
    with place.open() as ledger:
        for unit in (*UNITS, *reversed(UNITS)):
            ledger.declare(people(3, unit=unit))
        ledger.declare(people(3, unit="customer"))
        ledger.reserve(ask("median(income)"))
        ledger.declare(people(3, version="2", unit="customer"))
        for unit in UNITS:
            if unit != "customer":
                with pytest.raises(
                    LedgerError, match=r"'people' is declared with .* was asked about with the unit custo"
                ):
                    ledger.declare(people(3, version="2", unit=unit))
        assert ledger.verify().ok
    with place.open() as ledger, pytest.raises(LedgerError, match="declared with no unit, but was asked about with"):
        ledger.declare(people(3, version="2"))


@pytest.mark.parametrize("free", [True, False])
def test_free_answers_and_forfeited_amounts_count(place: Place, free: bool) -> None:
    with place.open() as ledger:
        ledger.declare(people(3))
        if free:
            ledger.reserve(ask("count(*)", epsilon=0))
        else:
            ledger.forfeit("people", epsilon=Fraction(1, 8), reason="a backup was lost")
        with pytest.raises(LedgerError, match="with the unit customer, but was asked about with no unit"):
            ledger.declare(people(3, unit="customer"))


def test_a_table_that_was_charged_by_itself_is_not_linked(place: Place) -> None:
    with place.open() as ledger:
        ledger.declare(Declaration("orders", "1", Fraction(2), unit="customer"))
        linked = people(3, unit=UNITS[-1], tables=("orders",))
        ledger.declare(linked)
        ledger.reserve(replace(ask("median(amount)"), dataset="orders"))
        with pytest.raises(
            LedgerError, match=r"'orders' is linked to the people of 'people', and was charged .*forfeit"
        ):
            ledger.declare(linked)
        ledger.declare(people(3, unit=UNITS[-1], tables=("purchases",)))


def test_an_older_ledger_has_no_unit(place: Place) -> None:
    anchor = write_old_ledger(place)
    Ledger.upgrade(place.url, place.key_file)
    with place.open() as ledger:
        assert ledger.verify(anchor).ok
        declared = {"version": "2", "min_epsilon": Fraction(1, 20)}
        with pytest.raises(LedgerError, match="with the unit customer, but was asked about with no unit"):
            ledger.declare(people(3, "0.1", unit="customer", **declared))
        ledger.declare(people(2, **declared))


def test_a_declaration_without_a_unit_is_written_as_before() -> None:
    fact = Declared("people", "1", Fraction(1), Fraction(0), Fraction(0))
    assert "unit" not in json.loads(fact.payload)

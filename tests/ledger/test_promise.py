"""Answers keep the promise under which they were given: it does not change once there are any."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from idios.core.calibration import Protection
from idios.core.multiples import declare_multiples
from idios.errors import DataChanged, LedgerError
from idios.ledger import Declaration, Ledger, Promise, restore
from idios.ledger.facts import Declared, Reserved, Shared
from tests.ledger.ledger_place import Place, ask, kinds, people

UNITS = ("", "customer", "household", "customer with orders.customer = people.customer")
BASE = Promise("replace", "individual", "customer")
PROMISES = [
    BASE,
    BASE._replace(neighbours="add-remove"),
    BASE._replace(protection="differential"),
    BASE._replace(protection="group of 5"),
    BASE._replace(protection="group of 5, flat"),
    *(BASE._replace(unit=unit) for unit in UNITS if unit != "customer"),
]


def test_a_promise_changes_until_something_was_charged(place: Place) -> None:
    with place.open() as ledger:
        for promise in (*PROMISES, *reversed(PROMISES), PROMISES[1]):
            ledger.declare(people(3, promise=promise))
        assert len(kinds(ledger)) == 2 * len(PROMISES), "a change is recorded, and nothing else"
        ledger.declare(people(3, promise=BASE))
        ledger.reserve(ask("median(income)", promise=BASE))
        ledger.declare(people(3, version="2", promise=BASE))
        for promise in PROMISES[1:]:
            with pytest.raises(LedgerError, match=r"'people' is declared with .*was asked about with .*budgets, under"):
                ledger.declare(people(3, version="2", promise=promise))
            with pytest.raises(LedgerError, match="was asked about with"):
                ledger.check_declaration(people(3, version="2", promise=promise))
        assert ledger.verify().ok
    with place.open() as ledger, pytest.raises(LedgerError, match="was asked about with the unit customer"):
        ledger.declare(people(3, version="2", promise=BASE._replace(unit="")))


@pytest.mark.parametrize(
    ("promise", "told"),
    [
        (
            PROMISES[1],
            'is declared with neighbours = "add-remove", but was asked about with neighbours = "replace": no',
        ),
        (PROMISES[3], 'with protection = "group of 5", but was asked about with protection = "individual": no promise'),
        (PROMISES[5], "is declared with no unit, but was asked about with the unit customer: no promise covers what"),
        (
            Promise("add-remove", "differential", "customer"),
            'with neighbours = "add-remove" and protection = "differential", but was asked about with neighbours = '
            '"replace" and protection = "individual": no promise',
        ),
    ],
)
def test_the_refusal_says_what_differs_and_what_to_do(promise: Promise, told: str) -> None:
    with Ledger.open("sqlite://") as ledger:
        ledger.declare(people(promise=BASE))
        ledger.reserve(ask(promise=BASE))
        with pytest.raises(LedgerError) as refused:
            ledger.declare(people(promise=promise))
    message = str(refused.value)
    assert told in message
    assert "Declare it as before; or retire it, for ever, and declare another data set. What was answered" in message
    assert "the sum of both budgets, under the weaker of both promises, and more where neighbours or unit" in message


@pytest.mark.parametrize("free", [True, False])
def test_free_answers_and_forfeited_amounts_count(place: Place, free: bool) -> None:
    with place.open() as ledger:
        ledger.declare(people(3, promise=BASE))
        if free:
            ledger.reserve(ask("count(*)", epsilon=0, promise=BASE))
        else:
            ledger.forfeit("people", epsilon=Fraction(1, 8), reason="a backup was lost")
        for promise in PROMISES[1:]:
            with pytest.raises(LedgerError, match="was asked about with"):
                ledger.declare(people(3, promise=promise))


def test_a_number_that_was_told_stays_told(place: Place) -> None:
    """Under replace an analyst who is let in sees how many there are, before anything is asked."""
    with place.open() as ledger:
        ledger.add_analyst("ada")
        ledger.declare(people(promise=PROMISES[1]))
        ledger.grant("ada", "people")
        ledger.declare(people(promise=BASE))  # from here on it is told
        ledger.withdraw("ada", "people")
        for promise in (PROMISES[1], PROMISES[5]):
            with pytest.raises(LedgerError, match=r"granted to analysts with .*, which told them how many there are"):
                ledger.declare(people(promise=promise))
        ledger.declare(people(promise=BASE._replace(protection="differential")))
        assert ledger.verify().ok


def test_another_process_does_not_go_on_with_a_promise_that_was_replaced(place: Place) -> None:
    with place.open() as ledger, place.open() as other:
        other.declare(people(promise=BASE))
        ledger.declare(people(promise=PROMISES[1]))
        for call in (other.price, other.reserve, other.find_settled):
            with pytest.raises(DataChanged, match="was declared with another promise since it was opened"):
                call(ask(promise=BASE))
        assert ledger.balance("people").epsilon.spent == 0
        ledger.reserve(ask(promise=PROMISES[1]))
        with pytest.raises(DataChanged):
            other.reserve(ask(promise=BASE))  # the same question, whose answer is another's


@pytest.mark.parametrize(
    ("before", "now", "told"),
    [
        ({}, {"dataset": "other", "tables": ("orders",)}, "rows of the people of 'other', but .* data set of its own"),
        ({}, {"dataset": "other", "public": ("orders",)}, "as public, but was asked about as a data set of its own"),
        ({"dataset": "people", "tables": ("orders",)}, {}, "of its own, but .* as rows of the people of 'people'"),
        (
            {"dataset": "people", "tables": ("orders",)},
            {"dataset": "other", "tables": ("orders",)},
            "of the people of 'other', but .* of the people of 'people'",
        ),
        (
            {"dataset": "people", "tables": ("orders",)},
            {"dataset": "other", "public": ("orders",)},
            "as public, but .* of the people of 'people'",
        ),
        (
            {"dataset": "people", "public": ("orders",)},
            {},
            "of its own, but was asked about as public: nothing protects",
        ),
        (
            {"dataset": "people", "public": ("orders",)},
            {"dataset": "people", "tables": ("orders",)},
            "of the people of 'people', but was asked about as public",
        ),
    ],
)
def test_a_table_does_not_change_its_budget(
    place: Place, before: dict[str, Any], now: dict[str, Any], told: str
) -> None:
    first, second = (replace(Declaration("orders", "1", Fraction(3)), **changed) for changed in (before, now))
    with place.open() as ledger:
        for each in (first, second, first):
            ledger.declare(each)
        ledger.reserve(replace(ask("median(amount)"), dataset=first.dataset))
        with pytest.raises(LedgerError, match=rf"^'orders' is declared .*{told}"):
            ledger.declare(second)
        ledger.declare(first)
        if first.dataset != second.dataset:
            ledger.retire(first.dataset)
            with pytest.raises(LedgerError, match=told):
                ledger.declare(second)
        assert ledger.verify().ok


def test_what_was_joined_as_public_stays_public_when_it_is_joined_no_more(place: Place) -> None:
    with place.open() as ledger:
        ledger.declare(people(3, public=("regions", "products")))
        ledger.declare(people(3, public=("products",)))
        ledger.reserve(ask())
        ledger.declare(people(3))
        entries = kinds(ledger)
        ledger.declare(people(3))
        assert kinds(ledger) == entries, "nothing has changed"
        with pytest.raises(LedgerError, match=r"'products' is declared as a data set of its own, but .* as public"):
            ledger.declare(Declaration("products", "1", Fraction(2)))
        ledger.declare(Declaration("regions", "1", Fraction(2)))


def test_entries_without_a_promise_have_no_unit_and_take_the_first_promise(place: Place) -> None:
    with place.open() as ledger:
        ledger.declare(people(2))
        ledger.reserve(ask())
        anchor = ledger.head()
    with place.open() as ledger:
        with pytest.raises(LedgerError, match="with the unit customer, but was asked about with no unit"):
            ledger.declare(people(2, promise=BASE))
        ledger.declare(people(2, promise=BASE._replace(unit="")))
        with pytest.raises(LedgerError, match='neighbours = "add-remove", but was asked about'):
            ledger.declare(people(2, promise=Promise("add-remove", "individual")))
        assert ledger.verify(anchor).ok


def test_a_backup_keeps_the_promise(tmp_path: Path) -> None:
    url, copy = f"sqlite:///{tmp_path / 'ledger.db'}", tmp_path / "copy.db"
    with Ledger.open(url) as ledger:
        ledger.declare(people(promise=BASE, public=("products",)))
        ledger.reserve(ask(promise=BASE))
        assert ledger.backup(copy).ok
    for name in ("ledger.db", "ledger.db-wal", "ledger.db-shm"):
        (tmp_path / name).unlink(missing_ok=True)
    assert restore(url, None, copy).verification.ok
    with Ledger.open(url) as ledger:
        assert ledger.balance("people").promise == "individual, replace, by customer"
        for declaration in (people(promise=PROMISES[1]), Declaration("products", "1", Fraction(1))):
            with pytest.raises(LedgerError, match="was asked about"):
                ledger.declare(declaration)
        ledger.rebuild()
        assert ledger.verify().ok


@pytest.mark.parametrize("column", ["neighbours", "protection", "unit", "tables", "public", "granted", "charges"])
def test_a_promise_that_was_changed_behind_the_ledgers_back_is_found(place: Place, column: str) -> None:
    with place.open() as ledger:
        ledger.declare(people(promise=BASE))
        ledger.reserve(ask(promise=BASE))
    value = "granted + 1" if column == "granted" else "0" if column == "charges" else "'[\"x\"]'"
    place.execute(f"UPDATE idios_datasets SET {column} = {value}")
    with place.open() as ledger:
        assert not ledger.verify().ok
        with pytest.raises(LedgerError, match="not what was signed"):
            ledger.declare(people(promise=PROMISES[1]))


def test_what_came_later_is_left_out_where_it_says_nothing() -> None:
    """The signed text of entries that lack a field stays what it was."""
    one, none = Fraction(1), Fraction(0)
    declared, reserved = Declared("people", "1", one, none, none), Reserved("key", "people", "1", "q", one, none, "ada")
    assert json.loads(declared.payload).keys() == {"dataset", "version", "epsilon", "delta", "min_epsilon"}
    charged = {"key", "dataset", "analyst", "epsilon", "delta"}
    assert json.loads(reserved.payload).keys() == {*charged, "version", "question"}
    assert json.loads(Shared("key", "people", "ada", one, none).payload).keys() == charged


def test_promises_are_equal_only_where_they_promise_the_same() -> None:
    """The text has every multiple: of long lists, messages show but the ends."""
    groups: list[object] = [1, 2, 5, [1, 2], [1, 1], {"size": 5, "growth": "flat"}, [1, 2, 3, 4, "5.5"], ["1/3", 1]]
    groups += [[1, 2, 3, 4, 5, 9], [1, 2, 3, 5, 5, 9], [2, 4]]
    declared = [Protection.declare("group", group=group) for group in groups]
    declared += [Protection.declare("individual"), Protection.declare("differential")]
    for one, other in product(declared, declared):
        same = (one.level, one.multiples) == (other.level, other.multiples)
        assert (one.promise == other.promise) is same
    assert Protection.declare("group", group=declare_multiples(5)).promise == "group of 5"

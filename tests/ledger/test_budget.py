"""Charges, answers and refusals, one process, both engines."""

from __future__ import annotations

import json
import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction

import pytest

from idios.errors import BudgetExceeded, InvalidInput, LedgerError, NotPermitted
from idios.ledger import ChargeRequest, Ledger, Price, Reservation, StoredAnswer
from idios.ledger.rules import MOST_FAILURES, STOPPED
from tests.ledger.ledger_place import Place, ask, kinds, people
from tests.ledger.ledger_worker import table

AWKWARD = '{"value": "1/3", "text": "\\u0000 \\ud800 ε 😀", "nul": "\x00", "line":\r\n"end" }  '


def reserved(result: Reservation | StoredAnswer) -> Reservation:
    assert isinstance(result, Reservation)
    return result


def test_a_question_is_charged_once_and_answered_once(ledger: Ledger) -> None:
    charge = reserved(ledger.reserve(ask()))
    assert not charge.joined
    assert ledger.balance("people").epsilon.spent == Fraction(1, 4)
    answer = ledger.release(charge, table('{"value": "41320"}'))
    assert ledger.reserve(ask()) == answer
    assert answer.text == '{"value": "41320"}'
    assert (answer.dataset, answer.version, answer.question) == ("people", "1", "median(income)")
    assert ledger.balance("people").epsilon.spent == Fraction(1, 4)
    assert kinds(ledger)[-2:] == ["reserved", "released"]


@pytest.mark.parametrize(
    "other",
    [
        ask("median(age)"),
        ask(epsilon="1/5"),
        ask(delta="1/1000000"),
        ask(version="2"),
    ],
)
def test_another_question_version_epsilon_or_delta_is_charged_anew(ledger: Ledger, other: ChargeRequest) -> None:
    ledger.raise_budget("people", delta=Fraction(1))
    ledger.release(reserved(ledger.reserve(ask())), table("{}"))
    assert not reserved(ledger.reserve(other)).joined
    assert ledger.balance("people").epsilon.spent == Fraction(1, 4) + other.epsilon
    assert ledger.balance("people").delta.spent == other.delta


def test_the_key_is_unambiguous() -> None:
    assert ChargeRequest("a", "bc", None, "q", Fraction(1)).key != ChargeRequest("ab", "c", None, "q", Fraction(1)).key
    assert ask(analyst="ada").key == ask(analyst="bob").key == ask().key


def test_a_budget_is_spent_to_the_last_fraction_and_no_further(ledger: Ledger) -> None:
    for number in range(10):
        reserved(ledger.reserve(ask(f"question {number}", "0.1")))
    with pytest.raises(BudgetExceeded, match=r"ε = 0\.000001 asked, 0 left of 1;.*idios ledger raise") as caught:
        ledger.reserve(ask("one too many", "0.000001"))
    error = caught.value
    assert (error.requested, error.remaining) == (Fraction(1, 10**6), 0)
    assert (error.dataset, error.analyst, error.quantity) == ("people", None, "epsilon")
    assert isinstance(ledger.reserve(ask("question 3", "0.1")), Reservation)
    ledger.raise_budget("people", epsilon=Fraction("1.000001"))
    reserved(ledger.reserve(ask("one too many", "0.000001")))
    assert ledger.balance("people").epsilon.remaining == 0


def test_delta_is_budgeted_like_epsilon(ledger: Ledger) -> None:
    with pytest.raises(BudgetExceeded, match=r"δ = 0\.000001 asked, 0 left of 0") as caught:
        ledger.reserve(ask(delta="1e-6"))
    assert caught.value.quantity == "delta"
    ledger.raise_budget("people", delta=Fraction("1e-6"))
    reserved(ledger.reserve(ask(delta="1e-6")))
    assert ledger.balance("people").delta.remaining == 0
    assert ledger.balance("people").epsilon.spent == Fraction(1, 4)


def test_a_refusal_leaves_no_trace(ledger: Ledger) -> None:
    before = ledger.head()
    with pytest.raises(BudgetExceeded):
        ledger.reserve(ask(epsilon=2))
    with pytest.raises(BudgetExceeded):
        ledger.reserve(ask(epsilon="0.6", analyst="bob"))
    assert ledger.head() == before
    assert ledger.balance("people").epsilon.spent == 0


def test_a_second_analyst_pays_out_of_his_own_cap(ledger: Ledger) -> None:
    answer = ledger.release(reserved(ledger.reserve(ask(analyst="ada"))), table("{}"))
    assert ledger.reserve(ask(analyst="bob")) == answer
    assert ledger.reserve(ask(analyst="bob")) == answer
    assert ledger.balance("people").epsilon.spent == Fraction(1, 4)
    assert ledger.balance("people", "ada").epsilon.spent == Fraction(1, 4)
    assert ledger.balance("people", "ada").epsilon.remaining == Fraction(3, 4)
    assert ledger.balance("people", "bob").epsilon.remaining == Fraction(1, 4)
    assert kinds(ledger)[-1] == "shared"
    assert [kind for kind in kinds(ledger) if kind == "shared"] == ["shared"]


def test_a_cap_refuses_even_a_stored_answer(ledger: Ledger) -> None:
    ledger.release(reserved(ledger.reserve(ask(epsilon="3/4"))), table("{}"))
    with pytest.raises(BudgetExceeded, match=r"analyst 'bob'.*idios analyst grant") as caught:
        ledger.reserve(ask(epsilon="3/4", analyst="bob"))
    assert (caught.value.analyst, caught.value.remaining) == ("bob", Fraction(1, 2))
    ledger.grant("bob", "people", epsilon=Fraction(1))
    assert isinstance(ledger.reserve(ask(epsilon="3/4", analyst="bob")), StoredAnswer)
    assert ledger.balance("people", "bob").epsilon.spent == Fraction(3, 4)


def test_a_grant_can_shrink_but_what_is_spent_stays_spent(ledger: Ledger) -> None:
    ledger.release(reserved(ledger.reserve(ask(analyst="bob"))), table("{}"))
    balance = ledger.grant("bob", "people", epsilon=Fraction(1, 10))
    assert (balance.epsilon.spent, balance.epsilon.remaining) == (Fraction(1, 4), 0)
    with pytest.raises(BudgetExceeded):
        ledger.reserve(ask("count(age)", "1/100", analyst="bob"))
    assert isinstance(ledger.reserve(ask(analyst="bob")), StoredAnswer)  # what they paid for is theirs


def test_an_open_reservation_is_joined_without_a_new_charge(ledger: Ledger) -> None:
    first = reserved(ledger.reserve(ask(analyst="ada")))
    second = reserved(ledger.reserve(ask(analyst="bob")))
    third = reserved(ledger.reserve(ask()))
    assert (first.joined, second.joined, third.joined) == (False, True, True)
    assert first.sequence == second.sequence == third.sequence
    assert ledger.balance("people").epsilon.spent == Fraction(1, 4)
    assert ledger.balance("people", "bob").epsilon.spent == Fraction(1, 4)
    answers = [
        ledger.release(charge, table(f'{{"draw": {number}}}')) for number, charge in enumerate((second, first, third))
    ]
    assert [answer.text for answer in answers] == ['{"draw": 0}'] * 3
    assert kinds(ledger).count("released") == 1


def test_a_failure_keeps_the_charge_and_can_be_completed_once(ledger: Ledger) -> None:
    charge = reserved(ledger.reserve(ask(analyst="bob")))
    ledger.fail(charge, "connection lost")
    (entry,) = ledger.entries(kinds=("failed",))
    assert json.loads(entry.payload) == {"analyst": "bob", "detail": "connection lost", "key": charge.key}
    assert ledger.answers() == []
    again = reserved(ledger.reserve(ask(analyst="bob")))
    assert again.joined
    assert ledger.release(again, table('{"value": 1}')).text == '{"value": 1}'
    assert ledger.release(charge, table('{"value": 2}')).text == '{"value": 1}'
    assert ledger.balance("people").epsilon.spent == Fraction(1, 4)
    assert ledger.balance("people", "bob").epsilon.spent == Fraction(1, 4)


def test_an_answer_is_kept_byte_for_byte(place: Place, ledger: Ledger) -> None:
    question = "median(\x00\ud800ε)"
    ledger.release(reserved(ledger.reserve(ask(question))), table(AWKWARD))
    with place.open() as again:
        stored = again.reserve(ask(question))
        assert isinstance(stored, StoredAnswer)
        assert (stored.text, stored.question) == (AWKWARD, question)
        assert again.verify().ok
    with pytest.raises(InvalidInput, match="with a ReleasedTable, not with dict"):
        ledger.release(reserved(ledger.reserve(ask("another"))), {})  # type: ignore[arg-type]


def test_who_may_not_ask(ledger: Ledger) -> None:
    with pytest.raises(NotPermitted, match="no data set 'nowhere'"):
        ledger.reserve(replace(ask(), dataset="nowhere"))
    with pytest.raises(NotPermitted, match=r"no analyst 'mallory'.*idios analyst add"):
        ledger.reserve(ask(analyst="mallory"))
    with pytest.raises(NotPermitted, match=r"'eve' has no grant on data set 'people'.*idios analyst grant"):
        ledger.reserve(ask(analyst="eve"))
    with pytest.raises(NotPermitted):
        ledger.balance("people", "eve")
    with pytest.raises(NotPermitted):
        ledger.balance("nowhere")


@pytest.mark.parametrize("name", ["", "a\x00b", "\ud800", "x" * 5000, "'; DROP TABLE idios_entries; --", 5])
def test_strange_names_are_merely_unknown(ledger: Ledger, name: str) -> None:
    for refused in (
        lambda: ledger.balance(name),
        lambda: ledger.balance("people", name),
        lambda: ledger.grant(name, "people"),
        lambda: ledger.grant("ada", name),
        lambda: ledger.withdraw(name, "people"),
        lambda: ledger.withdraw("ada", name),
        lambda: ledger.raise_budget(name, epsilon=Fraction(5)),
        lambda: ledger.forfeit(name, epsilon=Fraction(5), reason="why"),
        lambda: ledger.retire(name),
        lambda: ledger.issue_token(name),
        lambda: ledger.revoke_token(name),
    ):
        with pytest.raises(NotPermitted, match="the ledger knows no"):
            refused()
    assert ledger.verify().ok


def test_a_retired_data_set_answers_nothing(ledger: Ledger) -> None:
    stored = ledger.release(reserved(ledger.reserve(ask())), table("{}"))
    in_flight = reserved(ledger.reserve(ask("max(age)")))
    ledger.retire("people")
    ledger.retire("people")
    assert kinds(ledger).count("retired") == 1
    for refused in (
        lambda: ledger.reserve(ask()),
        lambda: ledger.reserve(ask("min(age)")),
        lambda: ledger.release(in_flight, table("{}")),
        lambda: ledger.declare(people()),
        lambda: ledger.raise_budget("people", epsilon=Fraction(2)),
        lambda: ledger.grant("eve", "people"),
        lambda: ledger.price(ask()),
    ):
        with pytest.raises(NotPermitted, match=r"'people' is retired \(entry \d+\) and answers nothing more"):
            refused()
    with pytest.raises(NotPermitted, match=r"with the budget of another .* lose up to the sum of both budgets"):
        ledger.declare(people())
    assert ledger.datasets() == []
    assert ledger.answers("people") == [stored]
    assert ledger.balance("people").epsilon.spent == Fraction(1, 2)


def test_declaring_again(ledger: Ledger) -> None:
    before = ledger.head()
    balance = ledger.declare(people())
    assert balance == ledger.balance("people")
    assert ledger.head() == before
    ledger.reserve(ask())
    assert ledger.declare(people(version="2", min_epsilon=Fraction(1, 20))).epsilon.spent == Fraction(1, 4)
    assert ledger.datasets() == [people(version="2", min_epsilon=Fraction(1, 20))]
    for budget in ({"epsilon": 2}, {"epsilon": "1/2"}, {"delta": "1e-6"}):
        with pytest.raises(LedgerError, match="a recorded budget never shrinks"):
            ledger.declare(people(**budget, version="2"))  # type: ignore[arg-type]


def test_a_raise_outlasts_a_restart_with_the_old_configuration(ledger: Ledger) -> None:
    ledger.raise_budget("people", epsilon=Fraction(3))
    before = ledger.head()
    assert ledger.declare(people(1)).epsilon.budget == 3
    assert ledger.head() == before
    assert ledger.declare(people(1, version="2")).epsilon.budget == 3
    assert ledger.datasets() == [people(3, version="2")]
    for epsilon in ("2", "1/2", "4"):
        with pytest.raises(LedgerError, match=r"recorded with ε = 3, δ = 0 \(before it was raised: ε = 1, δ = 0\)"):
            ledger.declare(people(epsilon, version="2"))
    with pytest.raises(LedgerError, match="a recorded budget never shrinks"):
        ledger.declare(people(1, "1e-6", version="2"))
    ledger.rebuild()
    assert ledger.declare(people(1, version="2")).epsilon.budget == 3


def test_a_configuration_that_declares_no_delta_leaves_what_is_recorded(ledger: Ledger) -> None:
    ledger.raise_budget("people", epsilon=Fraction(1), delta=Fraction(1, 10))
    ledger.declare(people(1, "1/10"))
    before = ledger.head()
    assert ledger.declare(people(1)).delta.budget == Fraction(1, 10)
    assert ledger.head() == before, "nothing has changed"
    assert ledger.declare(people(1, version="2")).delta.budget == Fraction(1, 10)
    assert ledger.datasets() == [people(1, "1/10", version="2")]
    ledger.raise_budget("people", epsilon=Fraction(2))
    for epsilon in (1, 2, 2):
        assert ledger.declare(people(epsilon)).delta.budget == Fraction(1, 10)
    for epsilon, delta in ((1, "0"), (3, "0"), (2, "1/100")):
        with pytest.raises(LedgerError, match="a recorded budget never shrinks"):
            ledger.declare(people(epsilon, delta))
    ledger.rebuild()
    assert ledger.declare(people(2)).delta.budget == Fraction(1, 10)
    assert ledger.verify().ok


def test_a_configuration_that_followed_a_raise_cannot_go_back(ledger: Ledger) -> None:
    ledger.raise_budget("people", epsilon=Fraction(2))
    for _ in range(2):
        assert ledger.declare(people(2)).epsilon.budget == 2
    assert kinds(ledger).count("declared") == 2
    with pytest.raises(LedgerError, match=r"ε = 1, δ = 0, but recorded with ε = 2, δ = 0; "):
        ledger.declare(people(1))
    ledger.raise_budget("people", epsilon=Fraction(3), delta=Fraction(1, 10))
    assert ledger.declare(people(2)).delta.budget == Fraction(1, 10)
    assert ledger.declare(people(3, "1/10")).epsilon.budget == 3
    with pytest.raises(LedgerError):
        ledger.declare(people(2))
    assert ledger.verify().ok


def test_a_budget_is_only_raised(ledger: Ledger) -> None:
    assert ledger.raise_budget("people", epsilon=Fraction(3), delta=Fraction(1, 10)).epsilon.budget == 3
    for totals in (
        {},
        {"epsilon": Fraction(3)},
        {"epsilon": Fraction(2)},
        {"epsilon": Fraction(4), "delta": Fraction(0)},
    ):
        with pytest.raises(InvalidInput, match=r"above the recorded ε = 3, δ = 0\.1, not"):
            ledger.raise_budget("people", **totals)
    assert kinds(ledger).count("raised") == 1


def test_price_charges_nobody(ledger: Ledger) -> None:
    before = ledger.head()
    assert ledger.price(ask(analyst="bob")) == Price(stored=False, charges_dataset=True, charges_analyst=True)
    assert ledger.price(ask()) == Price(stored=False, charges_dataset=True, charges_analyst=False)
    assert ledger.price(ask(epsilon=100)).charges_dataset
    assert ledger.head() == before
    charge = reserved(ledger.reserve(ask(analyst="ada")))
    assert ledger.price(ask(analyst="ada")) == Price(stored=False, charges_dataset=False, charges_analyst=False)
    ledger.release(charge, table("{}"))
    assert ledger.price(ask(analyst="bob")) == Price(stored=True, charges_dataset=False, charges_analyst=True)


def test_an_inspection_is_recorded_and_free(ledger: Ledger) -> None:
    ledger.record_inspection(ask())
    (entry,) = ledger.entries(kinds=("inspected",))
    assert json.loads(entry.payload)["question"] == "median(income)"
    assert ledger.balance("people").epsilon.spent == 0
    assert ledger.price(ask()).charges_dataset


def test_a_reservation_of_another_ledger_is_refused(ledger: Ledger) -> None:
    with Ledger.open("sqlite://") as other:
        other.declare(people())
        charge = reserved(other.reserve(ask()))
    with pytest.raises(InvalidInput, match="detail is text, not bytes"):
        ledger.fail(charge, b"")  # type: ignore[arg-type]
    for refused in (lambda: ledger.release(charge, table("{}")), lambda: ledger.fail(charge, "")):
        with pytest.raises(LedgerError, match="not in this ledger"):
            refused()
    own = reserved(ledger.reserve(ask()))
    with pytest.raises(LedgerError, match="not in this ledger"):
        ledger.release(replace(own, sequence=own.sequence + 1), table("{}"))


def test_lists_and_pages(ledger: Ledger) -> None:
    ledger.declare(replace(people(), dataset="firms"))
    for number in range(5):
        request = replace(ask(f"question {number}", "1/10", analyst="ada" if number % 2 else None))
        ledger.release(reserved(ledger.reserve(request)), table(str(number)))
    ledger.release(reserved(ledger.reserve(replace(ask(), dataset="firms"))), table("firms"))
    assert [answer.text for answer in ledger.answers()] == ["0", "1", "2", "3", "4", "firms"]
    assert [answer.text for answer in ledger.answers("people", "ada")] == ["1", "3"]
    assert [answer.text for answer in ledger.answers(analyst="bob")] == []
    first = ledger.answers("people", limit=2)
    assert [answer.text for answer in ledger.answers("people", after=first[-1].sequence, limit=2)] == [
        "2",
        "3",
    ]
    with pytest.raises(InvalidInput, match="a name of a data set"):
        ledger.answers("a\x00b")
    page = ledger.entries(limit=3)
    assert [entry.sequence for entry in page + ledger.entries(after=3, limit=2)] == [1, 2, 3, 4, 5]
    assert {entry.kind for entry in ledger.entries(kinds=("granted", "declared"))} == {"granted", "declared"}
    with pytest.raises(InvalidInput, match="not grunted"):
        ledger.entries(kinds=("grunted",))
    assert ledger.analysts() == ["ada", "bob", "eve"]
    assert [declaration.dataset for declaration in ledger.datasets()] == ["firms", "people"]
    assert [(balance.analyst, balance.epsilon.spent) for balance in ledger.grants()] == [
        ("ada", Fraction(1, 5)),
        ("bob", 0),
    ]


def test_an_analyst_is_added_once(ledger: Ledger) -> None:
    with pytest.raises(InvalidInput, match="'ada' exists already"):
        ledger.add_analyst("ada")
    with pytest.raises(NotPermitted, match="no analyst 'mallory'"):
        ledger.grant("mallory", "people")
    before = ledger.head()
    ledger.grant("ada", "people")
    assert ledger.head() == before


def test_everything_is_there_after_reopening(place: Place, ledger: Ledger) -> None:
    answer = ledger.release(reserved(ledger.reserve(ask(analyst="bob"))), table("{}"))
    with place.open() as again:
        assert again.balance("people", "bob") == ledger.balance("people", "bob")
        assert again.reserve(ask(analyst="bob")) == answer
        assert again.verify(ledger.head()).ok


def test_a_refusal_travels_between_processes(ledger: Ledger) -> None:
    with pytest.raises(BudgetExceeded) as caught:
        ledger.reserve(ask(epsilon=2))
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (str(copy), copy.remaining, copy.requested) == (str(caught.value), 1, 2)


def test_without_a_cap_what_remains_is_the_data_set_s(ledger: Ledger) -> None:
    ledger.raise_budget("people", delta=Fraction(1, 100))
    ledger.reserve(ask(epsilon="3/4", delta="1/1000"))
    ada, bob = (ledger.balance("people", analyst) for analyst in ("ada", "bob"))
    assert (ada.epsilon.budget, ada.epsilon.spent, ada.epsilon.remaining) == (None, 0, Fraction(1, 4))
    assert (ada.delta.remaining, bob.delta.remaining) == (Fraction(9, 1000), Fraction(9, 1000))
    assert bob.epsilon.remaining == Fraction(1, 2), "their own cap"
    assert ledger.grants() == [ada, bob]
    assert ledger.grants("ada") == [ada]
    assert ledger.grant("bob", "people").epsilon.remaining == Fraction(1, 4)
    assert ada.epsilon.allows(Fraction(1)), "what is stored costs the data set nothing"


def test_one_charge_leaves_few_failures(ledger: Ledger) -> None:
    """Stopped questions and broken ones can be asked again for nothing, without end."""
    request = ask(analyst="ada")

    def count_failures() -> int:
        return len(ledger.entries(kinds=("failed",)))

    for _ in range(3):
        charge = ledger.reserve(request)
        assert isinstance(charge, Reservation)
        ledger.fail(charge, STOPPED)
    assert count_failures() == 1
    for number in range(2 * MOST_FAILURES):
        ledger.fail(charge, f"lost {number}")
    assert count_failures() == MOST_FAILURES
    another = ledger.reserve(ask("another", "1/10"))
    assert isinstance(another, Reservation)
    with ThreadPoolExecutor(8) as threads:  # some of them in one transaction
        list(threads.map(lambda _: ledger.fail(another, STOPPED), range(24)))
    assert count_failures() == MOST_FAILURES + 1
    assert ledger.verify().ok

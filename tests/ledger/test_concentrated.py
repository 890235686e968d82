"""Concentrated accounting: ρ is charged beside ε, and the budget (ε, δ) is never exceeded."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from idios.core.concentrated import find_largest_rho
from idios.errors import BudgetExceeded, InvalidInput, LedgerError
from idios.ledger import Account, ChargeRequest, Declaration, Ledger, Reservation, StoredAnswer
from idios.ledger.values import COMMON, make_cost, omit_rho, round_rho_up
from idios.model import Balance, ReleasedTable
from tests.ledger.ledger_place import Place, ask, kinds, people
from tests.ledger.ledger_worker import table

DELTA = Fraction(1, 10**6)
RHO = find_largest_rho(Fraction(1), DELTA)  # 0.0244
GAUSSIAN: dict[str, Any] = {"rho": "1/200", "pure": False}


def concentrated(epsilon: object = 1, delta: object = DELTA, **others: Any) -> Declaration:
    return people(epsilon, delta, accounting="concentrated", **others)


@pytest.fixture
def ledger(ledger: Ledger) -> Ledger:
    """The same with concentrated accounting: people (1, 10⁻⁶), ada without a cap, bob with ε ≤ 1/2."""
    ledger.raise_budget("people", delta=DELTA)
    ledger.declare(concentrated())
    return ledger


def answer(ledger: Ledger, request: ChargeRequest) -> StoredAnswer:
    charge = ledger.reserve(request)
    assert isinstance(charge, Reservation)
    return ledger.release(charge, table('{"value": "1"}'))


def payload(ledger: Ledger, kind: str) -> Any:
    return json.loads(ledger.entries(kinds=(kind,), limit=None)[-1].payload)


def spend_all(ledger: Ledger, rho: Fraction = Fraction(1, 200), analyst: str | None = None) -> int:
    """Ask for Gaussian noise of this ρ until it is refused; how often it was answered."""
    for number in range(1000):
        try:
            ledger.reserve(ask(f"question {number}", "1/10", rho=rho, pure=False, analyst=analyst))
        except BudgetExceeded:
            return number
    raise AssertionError


# Amounts.


def test_a_request_has_the_rho_of_its_epsilon_unless_it_says_another() -> None:
    assert ask(epsilon="1/10").cost == make_cost(Fraction(1, 10), Fraction(0))
    assert ask(epsilon="1/10").cost.rho == Fraction(1, 200)
    assert ask(epsilon="1/10", rho="1/200") == ask(epsilon="1/10")
    assert ask(epsilon="1/10", rho="1/800").cost.rho == Fraction(1, 800)
    assert ask(epsilon="1/10", **GAUSSIAN).rho == Fraction(1, 200), "it is recorded where there is no ε"
    assert ask(rho="1/800").key == ask(**GAUSSIAN).key == ask().key
    for refused, message in (
        ({"pure": False}, "needs its ρ"),
        ({"rho": Fraction(-1)}, "rho must be between"),
        ({"rho": 0.5}, "rho must be an exact Fraction"),
        ({"rho": True}, "rho must be an exact Fraction"),
        ({"pure": "no"}, "pure is True or False"),
    ):
        with pytest.raises(InvalidInput, match=message):
            replace(ask(), **refused)  # type: ignore[arg-type]


@pytest.mark.parametrize("epsilon", ["1/997", "1e-30", "1/3000", "0.3", "1/7", "1e12", "0", f"1/{997 * 10**20}"])
def test_rho_is_rounded_up_only_where_it_must_be(epsilon: str) -> None:
    exact = Fraction(epsilon) ** 2 / 2
    rounded = round_rho_up(exact)
    assert COMMON % rounded.denominator == 0
    assert exact <= rounded < exact + Fraction(1, 10**30)
    assert (rounded == exact) is (COMMON % exact.denominator == 0)
    assert round_rho_up(rounded) == rounded
    cost = make_cost(Fraction(epsilon), Fraction(0))
    assert (cost.rho, omit_rho(cost)) == (rounded, None)


def test_what_is_declared(place: Place) -> None:
    for refused in ({"delta": 0}, {"delta": 1}, {"delta": "1.5"}):
        with pytest.raises(InvalidInput, match="needs a δ between 0 and 1"):
            concentrated(**refused)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="accounting is one of pure, concentrated, not 'renyi'"):
        people(accounting="renyi")
    with place.open() as ledger:
        balance = ledger.declare(concentrated())
        assert balance.rho == Account(RHO, Fraction(0))
        assert payload(ledger, "declared")["accounting"] == "concentrated"
        assert ledger.datasets() == [concentrated()]


# The rule.


def test_questions_are_answered_beyond_epsilon_up_to_rho(ledger: Ledger) -> None:
    medians = [ask(f"question {number}", "1/20", rho="1/3200") for number in range(RHO // Fraction(1, 3200))]
    for request in medians:
        answer(ledger, request)
    with pytest.raises(BudgetExceeded) as caught:
        ledger.reserve(ask("one more", "1/20", rho="1/3200"))
    assert caught.value.quantity == "rho"
    balance = ledger.balance("people")
    assert balance.rho is not None
    assert (balance.epsilon.spent, balance.rho.spent) == (Fraction(len(medians), 20), Fraction(len(medians), 3200))
    assert balance.epsilon.spent > 3
    assert isinstance(ledger.reserve(medians[3]), StoredAnswer)
    assert ledger.verify().ok
    ledger.rebuild()
    assert ledger.balance("people") == balance


def test_one_dear_question_is_answered_within_epsilon(ledger: Ledger) -> None:
    answer(ledger, ask(epsilon="3/4"))
    answer(ledger, ask("another", "1/4"))
    with pytest.raises(BudgetExceeded, match="enough for no question"):
        ledger.reserve(ask("one more", "0.000001"))
    assert ledger.price(ask("one more", "0.000001")).shortage == (
        "ρ = 0 left of the data set's budget, enough for no question"
    )


def test_after_gaussian_noise_only_rho_counts(ledger: Ledger) -> None:
    stored = answer(ledger, ask(epsilon="1/10", **GAUSSIAN))
    assert (stored.epsilon, stored.rho, stored.pure) == (Fraction(1, 10), Fraction(1, 200), False)
    assert ledger.balance("people").pure is False
    recorded = payload(ledger, "reserved")
    assert (recorded["rho"], recorded["pure"]) == ("1/200", False)
    with pytest.raises(BudgetExceeded) as caught:
        ledger.reserve(ask("another", "1/2"))
    assert (caught.value.quantity, caught.value.remaining) == ("rho", RHO - Fraction(1, 200))
    answer(ledger, ask("another", "1/10"))
    assert ledger.verify().ok


def test_gaussian_noise_needs_concentrated_accounting(ledger: Ledger) -> None:
    answer(ledger, ask("before", "1/10"))
    ledger.declare(people())
    assert ledger.balance("people").rho is None
    with pytest.raises(BudgetExceeded, match=r'this question has none.*accounting = "concentrated"'):
        ledger.reserve(ask(**GAUSSIAN))
    answer(ledger, ask("between", "1/10"))
    ledger.declare(concentrated())
    stored = answer(ledger, ask(**GAUSSIAN))
    ledger.declare(people())
    with pytest.raises(BudgetExceeded, match="what was answered before has none"):
        ledger.reserve(ask("after", "1/10"))
    answer(ledger, ask("free", 0))
    assert ledger.reserve(ask(**GAUSSIAN)) == stored
    ledger.declare(concentrated())
    answer(ledger, ask("after", "1/10"))
    assert ledger.verify().ok


def test_delta_that_was_spent_is_missing(ledger: Ledger) -> None:
    with pytest.raises(BudgetExceeded, match="no question may spend δ"):
        ledger.reserve(ask(delta="1e-9"))
    balance = ledger.forfeit("people", epsilon=Fraction(0), delta=DELTA * 9 / 10, reason="restored")
    assert balance.rho is not None
    assert balance.rho.budget == find_largest_rho(Fraction(1), DELTA / 10) < RHO
    assert spend_all(ledger) == balance.rho.budget // Fraction(1, 200)
    balance = ledger.forfeit("people", epsilon=Fraction(0), delta=DELTA / 10, reason="restored again")
    assert balance.rho is not None
    assert (balance.rho.budget, balance.rho.remaining) == (0, 0)


# Declarations, raises, forfeits.


def test_delta_is_raised_before_the_accounting_changes(place: Place) -> None:
    with place.open() as ledger:
        ledger.declare(people())
        told = r"recorded with δ = 0; .*`idios ledger raise people --delta 0\.000001`"
        with pytest.raises(LedgerError, match=told):
            ledger.declare(concentrated())
        ledger.raise_budget("people", delta=DELTA)
        answer(ledger, ask())
        balance = ledger.declare(concentrated())
        assert balance.rho == Account(RHO, Fraction(1, 32))
        before = ledger.head()
        assert ledger.declare(concentrated()) == balance
        assert ledger.head() == before, "nothing has changed"
        with pytest.raises(LedgerError, match="idios ledger raise"):
            ledger.declare(concentrated(2))
        with pytest.raises(LedgerError, match="a recorded budget never shrinks"):
            ledger.declare(concentrated(delta=DELTA / 2))


def test_a_raise_raises_rho(ledger: Ledger) -> None:
    balance = ledger.raise_budget("people", epsilon=Fraction(2))
    assert balance.rho == Account(find_largest_rho(Fraction(2), DELTA), Fraction(0))
    assert ledger.declare(concentrated()) == balance, "as before it was raised"
    assert ledger.datasets() == [concentrated(2)]
    with pytest.raises(InvalidInput, match="needs a δ below 1"):
        ledger.raise_budget("people", delta=Fraction(1))


def test_what_is_forfeited_counts_as_rho(ledger: Ledger) -> None:
    balance = ledger.forfeit("people", epsilon=Fraction(1, 10), reason="lost")
    assert balance.rho == Account(RHO, Fraction(1, 200))
    assert balance.pure
    assert "rho" not in payload(ledger, "forfeited")
    balance = ledger.forfeit("people", epsilon=Fraction(3), rho=Fraction(1, 100), reason="many were lost")
    assert balance.rho == Account(RHO, Fraction(3, 200))
    assert not balance.pure, "what was lost may have been Gaussian noise"
    assert payload(ledger, "forfeited")["rho"] == "1/100"
    ledger.forfeit("people", epsilon=Fraction(0), rho=Fraction(1), reason="all of it")
    assert spend_all(ledger) == 0
    with pytest.raises(InvalidInput, match="a ρ above 0"):
        ledger.forfeit("people", epsilon=Fraction(0), rho=Fraction(0), reason="nothing")
    assert ledger.verify().ok
    assert sum(ledger.spending("people").rho.values()) == Fraction(203, 200)


# Analysts.


def test_a_cap_is_a_cap_on_rho(ledger: Ledger) -> None:
    cap = find_largest_rho(Fraction(1, 2), DELTA)
    assert ledger.balance("people", "bob").rho == Account(cap, Fraction(0))
    assert ledger.balance("people", "ada").rho == Account(None, Fraction(0), RHO)
    assert spend_all(ledger, Fraction(1, 500), "bob") == cap // Fraction(1, 500) == 3
    bob = ledger.balance("people", "bob")
    assert bob.rho == Account(cap, Fraction(3, 500))
    assert ledger.grants("bob") == [bob]
    with pytest.raises(BudgetExceeded, match=r"analyst 'bob'.*idios analyst grant"):
        ledger.reserve(ask("question 3", "1/10", rho="1/500", pure=False, analyst="bob"))
    assert ledger.grant("bob", "people").rho == Account(None, Fraction(3, 500), RHO - Fraction(3, 500))


def test_a_second_analyst_pays_what_the_answer_cost(ledger: Ledger) -> None:
    """Whatever their own request says: neither ρ nor whether there is an ε is in the key."""
    stored = answer(ledger, ask(epsilon="1/10", rho="1/500", pure=False))
    assert ledger.reserve(ask(epsilon="1/10", rho="1/1000", analyst="bob")) == stored
    shared = payload(ledger, "shared")
    assert (shared["rho"], shared["pure"]) == ("1/500", False)
    bob = ledger.balance("people", "bob")
    assert bob.rho is not None
    assert (bob.rho.spent, bob.pure) == (Fraction(1, 500), False)
    assert ledger.balance("people", "ada").pure


def test_an_open_charge_is_not_completed_at_a_greater_cost(ledger: Ledger) -> None:
    cheap = ask(epsilon="1/10", rho="1/1000")
    charge = ledger.reserve(cheap)
    for dearer in (ask(epsilon="1/10"), ask(epsilon="1/10", rho="1/1000", pure=False)):
        with pytest.raises(InvalidInput, match="charged before at another cost"):
            ledger.reserve(dearer)
    assert isinstance(charge, Reservation)
    joined = ledger.reserve(ask(epsilon="1/10", rho="1/2000"))
    assert isinstance(joined, Reservation)
    assert joined.joined
    stored = ledger.release(joined, table("{}"))
    assert stored.rho == Fraction(1, 1000), "what was charged"
    assert ledger.reserve(ask(epsilon="1/10")) == stored, "there is nothing left to compute"
    assert kinds(ledger).count("reserved") == 1


def test_a_released_answer_says_its_rho(ledger: Ledger) -> None:
    released = ReleasedTable(
        dataset="people", version="1", guarantee="", statistics=("m",), groups=({},), cells=(("1",),), margins=(None,)
    )
    for request, told in (
        (ask("pure", "1/10"), Fraction(1, 200)),
        (ask("median", "1/10", rho="1/1600"), Fraction(1, 1600)),
        (ask("noise", "1/10", **GAUSSIAN), Fraction(1, 200)),
    ):
        charge = ledger.reserve(request)
        assert isinstance(charge, Reservation)
        assert ledger.release(charge, released).released.rho == told
    assert [one.released.rho for one in ledger.answers()] == [Fraction(1, 200), Fraction(1, 1600), Fraction(1, 200)]


# Planted errors.


def exceed(ledger: Ledger) -> bool:
    """Whether more ρ can be spent than what is left of δ allows."""
    spend_all(ledger)
    balance = ledger.balance("people")
    assert balance.rho is not None
    assert balance.delta.remaining is not None
    return balance.rho.spent > find_largest_rho(Fraction(1), balance.delta.remaining)


def test_a_check_of_epsilon_alone_is_found(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    def check_epsilon(self: Balance, cost: Any) -> None:
        if not self.epsilon.allows(cost.epsilon):
            raise BudgetExceeded("")

    assert not exceed(ledger)
    monkeypatch.setattr(Balance, "require", check_epsilon)
    assert exceed(ledger)


def test_delta_that_is_forgotten_is_found(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger.forfeit("people", epsilon=Fraction(0), delta=DELTA * 99 / 100, reason="lost")
    assert not exceed(ledger)
    monkeypatch.setattr("idios.model.balance._find_rho_budget", lambda epsilon, _: find_largest_rho(epsilon, DELTA))
    assert exceed(ledger)

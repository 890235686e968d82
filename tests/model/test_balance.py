"""Balances: what fits into them with either accounting, and how they say it."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from statistics import NormalDist

import pytest

from idios.codec import from_json, to_json
from idios.core.concentrated import convert_to_epsilon, find_largest_rho
from idios.errors import BudgetExceeded
from idios.model import Account, Accounting, Balance, BalanceList, Cost
from idios.model.balance import describe_shortage

ZERO, NOTHING = Fraction(0), Cost(Fraction(0), Fraction(0), Fraction(0))
DELTA = Fraction(1, 10**6)
RHO = find_largest_rho(Fraction(5), DELTA)


def pure(spent: Cost = NOTHING) -> Balance:
    return Balance.of_dataset("people", Accounting.PURE, Fraction(5), DELTA, spent)


def concentrated(spent: Cost = NOTHING, delta: Fraction = DELTA) -> Balance:
    return Balance.of_dataset("people", Accounting.CONCENTRATED, Fraction(5), delta, spent)


def laplace(epsilon: object) -> Cost:
    number = Fraction(epsilon)  # type: ignore[call-overload]
    return Cost(number, ZERO, number**2 / 2)


def gaussian(rho: object) -> Cost:
    return Cost(Fraction(1), ZERO, Fraction(rho), pure=False)  # type: ignore[call-overload]


def allows(balance: Balance, cost: Cost) -> bool:
    try:
        balance.require(cost)
    except BudgetExceeded:
        return False
    return True


def test_the_rho_of_a_budget_is_what_is_left_of_delta() -> None:
    assert pure().rho is None
    assert concentrated().rho == Account(RHO, ZERO)
    half = concentrated(Cost(ZERO, DELTA / 2, ZERO))
    assert half.rho is not None
    assert half.rho.budget == find_largest_rho(Fraction(5), DELTA / 2)
    for spent in (DELTA, 2 * DELTA):
        assert concentrated(Cost(ZERO, spent, ZERO)).rho == Account(ZERO, ZERO)


# Spent, asked, and whether it is allowed with pure and with concentrated accounting.
CASES = {
    "one dear question within ε": (NOTHING, laplace(5), True, True),
    "a dearer one": (NOTHING, laplace("5.000001"), False, False),
    "after a dear one the rest of ε": (laplace(3), laplace(2), True, True),
    "and no more": (laplace(3), laplace("2.000001"), False, False),
    "a hundredth question within ε": (Cost(Fraction("4.95"), ZERO, Fraction("0.12375")), laplace("1/20"), True, True),
    "one after it, within ρ": (Cost(Fraction(5), ZERO, Fraction("0.125")), laplace("1/20"), False, True),
    "the last within ρ": (Cost(Fraction("18.45"), ZERO, 369 * Fraction(1, 800)), laplace("1/20"), False, True),
    "one beyond ρ": (Cost(Fraction("18.5"), ZERO, 370 * Fraction(1, 800)), laplace("1/20"), False, False),
    "Gaussian noise": (NOTHING, gaussian(RHO), False, True),
    "too much of it": (NOTHING, gaussian(RHO + Fraction(1, 10**30)), False, False),
    "it after what only ε allowed": (laplace(3), gaussian("1/1000"), False, False),
    "ε after it is not what counts": (gaussian("0.4"), laplace(1), False, False),
    "ρ after it is": (gaussian("0.4"), laplace("1/10"), False, True),
    "nothing, after everything": (gaussian(9), NOTHING, True, True),
}


@pytest.mark.parametrize(("spent", "asked", "by_pure", "by_concentrated"), CASES.values(), ids=CASES)
def test_only_what_exceeds_both_is_refused(spent: Cost, asked: Cost, by_pure: bool, by_concentrated: bool) -> None:
    assert (allows(pure(spent), asked), allows(concentrated(spent), asked)) == (by_pure, by_concentrated)


def test_a_hundred_and_three_hundred_seventy_questions() -> None:
    """Of ε = 0.05 within (5, 10⁻⁶), as often as it is said that they can be asked."""
    for cost, by_pure, by_rho in (
        (laplace("1/20"), 100, 370),
        (Cost(Fraction(1, 20), ZERO, Fraction(1, 3200)), 100, 1481),
        (Cost(Fraction(1, 20), ZERO, Fraction(1, 800), pure=False), 0, 370),
        (laplace(4), 1, 1),
    ):
        for balance, number in ((pure(), by_pure), (concentrated(), by_rho)):
            assert balance.count_more(cost) == number
            for _ in range(number):
                balance.require(cost)
                balance = balance.spend(cost)
            assert not allows(balance, cost)
            assert balance.count_more(cost) == 0


def test_nothing_limits_what_is_free_or_has_no_cap() -> None:
    uncapped = Balance("people", "ada", Account(None, ZERO), Account(None, ZERO), Account(None, ZERO))
    assert uncapped.count_more(laplace(1)) is None
    assert uncapped.spend(laplace(1)).epsilon == Account(None, Fraction(1))
    assert uncapped.left is None
    assert pure().count_more(NOTHING) is None
    shared = uncapped.within(concentrated())
    assert shared.count_more(laplace("1/20")) == 370
    assert shared.spend(laplace("1/20")).count_more(laplace("1/20")) == 369


def test_no_question_spends_delta_with_concentrated_accounting() -> None:
    costs_delta = Cost(Fraction(1, 20), DELTA / 2, Fraction(1, 800))
    assert allows(pure(), costs_delta)
    with pytest.raises(BudgetExceeded, match="with concentrated accounting no question may spend δ") as caught:
        concentrated().require(costs_delta)
    assert (caught.value.quantity, caught.value.requested, caught.value.remaining) == ("delta", DELTA / 2, 0)


def test_why_no_question_may_spend_delta() -> None:
    """The counterexample beside the rule: δ chosen by an answer fails more often than δ_max, up to the crumb."""
    normal = NormalDist()

    def fail(epsilon: float, rho: float) -> float:
        """How much Gaussian noise of this ρ exceeds a factor e^ε."""
        shift = math.sqrt(2 * rho)
        return normal.cdf(shift / 2 - epsilon / shift) - math.exp(epsilon) * normal.cdf(-shift / 2 - epsilon / shift)

    half = float(RHO) / 2
    spread = math.sqrt(2 * half)
    crumb = Fraction(1, 10**12)
    assert find_largest_rho(Fraction(5), crumb) > half, "the rule without 3 would let it in"
    answers = [half + spread * (step / 500 - 10) for step in range(10_000)]  # the log ratio of the first answer
    chosen = [max(fail(5 - answer, half), float(DELTA - crumb)) for answer in answers]
    weights = [normal.pdf((answer - half) / spread) / 500 for answer in answers]
    assert sum(failed * weight for failed, weight in zip(chosen, weights, strict=True)) > 1.17e-6 > float(DELTA)


@pytest.mark.parametrize(
    ("epsilon", "delta", "cap"),
    [
        (None, None, None),
        ("1/2", None, (Fraction(1, 2), DELTA / 2)),
        (None, "1e-9", (Fraction(5), Fraction(1, 10**9))),
        ("1/2", "1e-9", (Fraction(1, 2), Fraction(1, 10**9))),
        ("1/2", "0.5", (Fraction(1, 2), DELTA / 2)),
        ("1/2", "0", None),
        ("0", None, None),
    ],
)
def test_a_cap_is_one_on_rho(epsilon: str | None, delta: str | None, cap: tuple[Fraction, Fraction] | None) -> None:
    caps = [Account(None if text is None else Fraction(text), ZERO) for text in (epsilon, delta)]
    whole = concentrated(Cost(ZERO, DELTA / 2, Fraction(1, 10)))
    assert whole.rho is not None
    found = Balance("people", "ada", *caps, Account(None, Fraction(1, 1000))).within(whole).rho
    if epsilon is None and delta is None:
        assert found == Account(None, Fraction(1, 1000), whole.rho.remaining)
    else:
        assert found == Account(ZERO if cap is None else find_largest_rho(*cap), Fraction(1, 1000))


def test_a_cap_of_epsilon_alone_allows_it_when_rho_does_not() -> None:
    own = Balance("people", "ada", Account(Fraction(2), ZERO), Account(ZERO, ZERO), Account(None, ZERO))
    capped = own.within(concentrated())
    assert allows(capped, laplace(2))
    assert not allows(capped, gaussian("1/1000"))
    assert not allows(replace(capped, pure=False), laplace("1/1000"))
    assert own.within(pure()).rho is None


def test_what_is_left_is_told_in_the_terms_of_a_question() -> None:
    with pytest.raises(BudgetExceeded) as caught:
        concentrated(gaussian("0.4")).require(laplace(1))
    error = caught.value
    assert str(error) == (
        "data set 'people': ρ = 0.5 asked, 0.063065 left of 0.463065, enough for a question with ε = 0.355147; ask "
        "with less, or have the controller allow more with `idios ledger raise`"
    )
    assert (error.dataset, error.analyst, error.quantity) == ("people", None, "rho")
    assert (error.requested, error.remaining) == (Fraction(1, 2), RHO - Fraction(2, 5))
    assert describe_shortage(error) == (
        "ρ = 0.063065 left of the data set's budget, enough for a question with ε = 0.355147"
    )
    concentrated(gaussian("0.4")).require(laplace("0.355147"))
    with pytest.raises(BudgetExceeded, match=r"0 left of 0\.463065, enough for no question"):
        concentrated(gaussian(1)).require(laplace("1e-9"))
    own = Balance("people", "ada", Account(Fraction(1), Fraction(1)), Account(None, ZERO), Account(None, Fraction(1)))
    with pytest.raises(BudgetExceeded, match=r"^analyst 'ada' on data set 'people': ρ = .*`idios analyst grant`"):
        own.within(concentrated()).require(laplace(1))


def test_what_has_no_epsilon_needs_concentrated_accounting() -> None:
    for balance, cost, what in (
        (pure(), gaussian("1/1000"), "this question"),
        (pure(gaussian("1/1000")), laplace("1/1000"), "what was answered before"),
    ):
        with pytest.raises(BudgetExceeded, match=f'{what} has none.* accounting = "concentrated"') as caught:
            balance.require(cost)
        assert (caught.value.quantity, caught.value.remaining) == ("epsilon", 0)


def test_what_is_left_of_rho_stands_for_epsilon_and_delta() -> None:
    assert pure(laplace(2)).convert_remaining() is None
    assert pure(laplace(2)).left == 3
    spent = gaussian("0.4")
    assert concentrated(spent).convert_remaining() == (convert_to_epsilon(RHO - spent.rho, DELTA), DELTA)
    assert concentrated(spent).left == convert_to_epsilon(RHO - spent.rho, DELTA)
    assert concentrated().left == pytest.approx(5)
    assert concentrated(gaussian(1)).convert_remaining() == (0, DELTA)
    assert concentrated(laplace(3)).left == 2, "which ε allows by itself"
    capped = Balance("people", "ada", Account(None, ZERO), Account(Fraction(3), ZERO), Account(None, ZERO))
    assert capped.within(concentrated()).convert_remaining() == (0, 3), "δ = 3 promises nothing"


def test_balances_in_json_and_in_a_table() -> None:
    own = Balance("people", "ada", Account(None, ZERO), Account(None, ZERO), Account(None, Fraction(1, 8)))
    balances = (pure(), concentrated(gaussian("0.4")), own.within(concentrated()))
    for balance in balances:
        assert from_json(Balance, to_json(balance), "a balance") == balance
    assert to_json(pure()).keys() == {"dataset", "analyst", "epsilon", "delta"}
    assert to_json(balances[1])["pure"] is False
    assert "ρ" not in str(BalanceList((pure(),)).listing())
    table = str(BalanceList(balances).listing())
    assert "spent ρ" in table
    assert "0.063065" in table
    assert "0.463065" in table


def test_what_covers_what() -> None:
    dear = Cost(Fraction(1), ZERO, Fraction(1, 2))
    cheap = Cost(Fraction(1), ZERO, Fraction(1, 8))
    noisy = Cost(Fraction(1), ZERO, Fraction(1, 8), pure=False)
    assert dear.covers(dear)
    assert dear.covers(cheap)
    assert noisy.covers(cheap)
    for paid, asked in ((cheap, dear), (cheap, noisy), (dear, noisy), (noisy, dear)):
        assert not paid.covers(asked)
    assert not cheap.covers(replace(cheap, delta=DELTA))
    assert not cheap.covers(replace(cheap, epsilon=Fraction(2)))

"""Budgets: what a data set or an analyst may spend and has spent, and whether that allows a question.

Rules:

1. With pure accounting ε and δ add up, and each stays within its budget.
2. With concentrated accounting the budget is (ε, δ) for everything together. A question is refused only if it exceeds
   both: Σε > ε_max, or something has no ε of its own; and Σρ > ρ_max, the greatest ρ that stands for (ε_max, δ_left).
   δ_left is δ_max less what was spent of it with pure accounting, or forfeited.
3. With concentrated accounting no question spends δ.

Proof of 2. Both sums only grow. Take the run on D and on a neighbour D′, and divide its outcomes: into A, where in the
end everything has its ε and Σε ≤ ε_max, and the rest, B. An outcome in A loses a factor of at most e^Σε ≤ e^ε_max, so
P(S∩A) ≤ e^ε_max·P′(S∩A) for any S. On the way to an outcome in B the first question that left A was let in by
Σρ ≤ ρ_max, and so was every later one: it has the same probability in the run that is stopped at ρ_max. That run is
ρ_max-concentrated (core/concentrated.py, rule 1), so (ε_max, δ_left)-private: P(S∩B) ≤ e^ε_max·P′(S∩B) + δ_left. A and
B are disjoint, so the sum is the claim; with what was spent of δ before, it fails with at most δ_max in all. ∎

Conditions: the ρ of a question follows from earlier answers, which are all that its plan has seen; and the budget is
fixed beforehand: it is not raised, and the accounting not changed, because of what was answered.

Why 3. ρ(ε_max, δ_max − Σδ) with a Σδ that follows from answers is not sound. Spend half of ρ(ε_max, δ_max) on Gaussian
noise. If the answer says very much, which is rare, spend the other half: most of what can fail fails there. If not, ask
what fails with δ_max less a crumb. At (5, 10⁻⁶) all this fails with 1.17·10⁻⁶.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction

from idios.codec import json_field
from idios.core.concentrated import convert_to_epsilon, find_largest_rho
from idios.core.exact import round_root_down
from idios.display import Listing, format_amount, format_left, format_rho, format_short
from idios.errors import BudgetExceeded

ZERO = Fraction(0)


class Accounting(StrEnum):
    """What adds up to a data set's spending: ε alone, or ρ beside it."""

    PURE = "pure"
    CONCENTRATED = "concentrated"


class Role(StrEnum):
    """The role of a token's holder."""

    ANALYST = "analyst"
    CONTROLLER = "controller"


@dataclass(frozen=True, slots=True)
class Holder:
    """Who a token stands for: the name, and whether they are an analyst or a controller."""

    name: str
    role: Role


@dataclass(frozen=True, slots=True)
class Account:
    """One quantity, ε, δ or ρ: its budget (None: no limit of its own), what is spent, and what remains.

    Without a budget, what remains is given: it is what is left of the data set's, which other analysts spend too.

    >>> Account(budget=Fraction(1), spent=Fraction(1, 4)).remaining
    Fraction(3, 4)
    >>> Account(budget=None, spent=Fraction(1, 4), remaining=Fraction(6)).remaining
    Fraction(6, 1)
    """

    budget: Fraction | None
    spent: Fraction
    remaining: Fraction | None = None

    def __post_init__(self) -> None:
        if self.budget is not None:
            left = self.budget - self.spent if self.spent else self.budget
            # A cap may have been set below what was spent already.
            object.__setattr__(self, "remaining", left if left.numerator > 0 else ZERO)

    def __repr__(self) -> str:
        written = (format_amount(amount) for amount in (self.budget, self.spent, self.remaining))
        return "<Account budget {}, spent {}, remaining {}>".format(*written)

    def allows(self, requested: Fraction) -> bool:
        """Whether the requested amount fits into the account's own budget, compared exactly.

        >>> Account(budget=Fraction(1), spent=Fraction(9, 10)).allows(Fraction(1, 10))
        True
        """
        return requested == 0 or self.budget is None or requested <= self.budget - self.spent

    def spend(self, amount: Fraction) -> Account:
        """The account once the amount is spent."""
        remaining = None if self.remaining is None else max(self.remaining - amount, ZERO)
        return replace(self, spent=self.spent + amount, remaining=remaining)

    def count(self, amount: Fraction) -> int | None:
        """How many times the amount could be spent; None if nothing limits it."""
        return None if self.remaining is None or not amount else self.remaining // amount


@dataclass(frozen=True, slots=True)
class Cost:
    """What an answer costs. Where it is not ``pure``, ε is only what was asked with: Gaussian noise has none."""

    epsilon: Fraction
    delta: Fraction
    rho: Fraction
    pure: bool = True

    def covers(self, other: Cost) -> bool:
        """Whether one that paid this has paid for the other too."""
        return (
            other.epsilon <= self.epsilon
            and other.delta <= self.delta
            and other.rho <= self.rho
            and (other.pure or not self.pure)
        )


@dataclass(frozen=True, slots=True)
class Balance:
    """The accounts of a data set over all analysts, or of one analyst on it.

    ``rho`` is there with concentrated accounting, and its budget is what (ε, δ) allow. ``pure`` says whether all that
    was spent has an ε of its own. ``promise`` is what the ε promise, in a few words: level, neighbours, unit.
    """

    dataset: str
    analyst: str | None
    epsilon: Account
    delta: Account
    rho: Account | None = json_field(optional=True, default=None)
    pure: bool = json_field(optional=True, default=True)
    promise: str = json_field(optional=True, default="")

    def __str__(self) -> str:
        """The accounts as a table of one line."""
        return str(BalanceList((self,)).listing())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The same for a notebook."""
        return BalanceList((self,)).listing()._repr_html_()

    @classmethod
    def of_dataset(
        cls,
        dataset: str,
        accounting: Accounting,
        epsilon: Fraction,
        delta: Fraction,
        spent: Cost,
        promise: str = "",
    ) -> Balance:
        """The accounts of a data set with this budget."""
        left = Account(delta, spent.delta)
        rho = None
        if accounting is Accounting.CONCENTRATED:
            rho = Account(_find_rho_budget(epsilon, left.remaining), spent.rho)
        return cls(dataset, None, Account(epsilon, spent.epsilon), left, rho, spent.pure, promise)

    def within(self, whole: Balance) -> Balance:
        """The same accounts of an analyst, which also say what is left of the data set's.

        A cap (ε, δ) is one on ρ as the data set's budget is; what it leaves open is the data set's: of its ε by itself
        nothing, once something was answered there that has none.
        """
        by_itself = whole.epsilon.remaining if whole.pure or whole.rho is None else ZERO
        epsilon = replace(self.epsilon, remaining=by_itself)
        delta = replace(self.delta, remaining=whole.delta.remaining)
        if self.rho is None or whole.rho is None:
            return replace(self, epsilon=epsilon, delta=delta, rho=None, promise=whole.promise)
        cap = None
        if epsilon.budget is not None or delta.budget is not None:
            most = whole.epsilon.budget if epsilon.budget is None else epsilon.budget
            cap = _find_rho_budget(most, min(delta.remaining or ZERO, whole.delta.remaining or ZERO))
        rho = Account(cap, self.rho.spent, whole.rho.remaining)
        return replace(self, epsilon=epsilon, delta=delta, rho=rho, promise=whole.promise)

    def require(self, cost: Cost) -> None:
        """Raise BudgetExceeded unless the budget allows the cost: rules 1, 2 and 3."""
        pure = cost.pure and self.pure
        if self.rho is None:
            if not pure and cost.rho and self.epsilon.budget is not None:
                what = "this question" if self.pure else "what was answered before"
                raise self._refuse(
                    "epsilon",
                    cost.epsilon,
                    ZERO,
                    f"with pure accounting only ε counts, and {what} has none, as its noise is Gaussian; the "
                    'controller can declare accounting = "concentrated"',
                )
            for quantity, letter, account, requested in (
                ("epsilon", "ε", self.epsilon, cost.epsilon),
                ("delta", "δ", self.delta, cost.delta),
            ):
                remaining = account.remaining
                if remaining is not None and not account.allows(requested):
                    asked = f"{letter} = {format_amount(requested)} asked, {format_amount(remaining)} left of "
                    raise self._refuse(
                        quantity, requested, remaining, f"{asked}{format_amount(account.budget)}; {self._remedy}"
                    )
            return
        if cost.delta and self.rho.budget is not None:
            told = f"δ = {format_amount(cost.delta)} asked, but with concentrated accounting no question may spend δ"
            raise self._refuse("delta", cost.delta, ZERO, told)
        if self.rho.allows(cost.rho) or (pure and self.epsilon.allows(cost.epsilon)):
            return
        remaining = self.rho.remaining or ZERO
        raise self._refuse(
            "rho",
            cost.rho,
            remaining,
            f"ρ = {format_rho(cost.rho)} asked, {format_rho(remaining)} left of {format_rho(self.rho.budget or ZERO)}, "
            f"{describe_rho(remaining)}; {self._remedy}",
        )

    @property
    def _remedy(self) -> str:
        command = "`idios ledger raise`" if self.analyst is None else "`idios analyst grant`"
        return f"ask with less, or have the controller allow more with {command}"

    def _refuse(self, quantity: str, requested: Fraction, remaining: Fraction, why: str) -> BudgetExceeded:
        whose = f"data set {self.dataset!r}"
        if self.analyst is not None:
            whose = f"analyst {self.analyst!r} on {whose}"
        return BudgetExceeded(
            f"{whose}: {why}",
            dataset=self.dataset,
            analyst=self.analyst,
            quantity=quantity,
            requested=requested,
            remaining=remaining,
        )

    def spend(self, cost: Cost) -> Balance:
        """The accounts once the cost is spent."""
        return replace(
            self,
            epsilon=self.epsilon.spend(cost.epsilon),
            delta=self.delta.spend(cost.delta),
            rho=None if self.rho is None else self.rho.spend(cost.rho),
            pure=self.pure and cost.pure,
        )

    def count_more(self, cost: Cost) -> int | None:
        """How many answers at this cost are still allowed, one after the other; None if nothing limits them."""
        counts = [] if self.rho is None else [self.rho.count(cost.rho)]
        if self.pure and cost.pure:
            counts.append(self.epsilon.count(cost.epsilon))
        return None if None in counts else max((count for count in counts if count is not None), default=0)

    @property
    def left(self) -> Fraction | None:
        """The ε that is left; with concentrated accounting what ρ stands for, or ε by itself where that is more."""
        converted = self.convert_remaining()
        if converted is None:
            return self.epsilon.remaining
        return max(converted[0], self.epsilon.remaining or ZERO if self.pure else ZERO)

    @property
    def left_in_words(self) -> str:
        """The same in words, with ρ where there is any."""
        return format_left(self.left, None if self.rho is None else self.rho.remaining)

    def convert_remaining(self) -> tuple[Fraction, Fraction] | None:
        """The (ε, δ) that what is left of ρ stands for, ε rounded up; None without ρ or without a limit.

        >>> budget, spent = (Fraction(5), Fraction(1, 10**6)), Cost(ZERO, ZERO, Fraction(1, 4))
        >>> balance = Balance.of_dataset("people", Accounting.CONCENTRATED, *budget, spent)
        >>> print(f"{float(balance.convert_remaining()[0]):.3f}")
        3.242
        """
        if self.rho is None or self.rho.remaining is None or self.delta.remaining is None:
            return None
        delta = self.delta.remaining
        trivial = not self.rho.remaining or not 0 < delta < 1
        return (ZERO if trivial else convert_to_epsilon(self.rho.remaining, delta)), delta


def _find_rho_budget(epsilon: Fraction | None, delta: Fraction | None) -> Fraction:
    """The greatest ρ that stands for (ε, δ): none where nothing of either is left."""
    return find_largest_rho(epsilon, delta) if epsilon and delta else ZERO


def describe_rho(rho: Fraction) -> str:
    """How much that is, in the terms of a question."""
    most = round_root_down(2 * rho)  # ε²/2 = ρ
    return f"enough for a question with ε = {format_amount(most)}" if most else "enough for no question"


_AMOUNTS, _RHO = ("budget ε", "spent ε", "remaining ε", "remaining δ"), ("spent ρ", "remaining ρ")


@dataclass(frozen=True)
class BalanceList:
    """The balances that a caller may see."""

    budgets: tuple[Balance, ...]

    @property
    def head(self) -> tuple[str, ...]:
        """The names of the amounts that a table of them has, ρ where there is any; and what an ε promises, if known."""
        head = (*_AMOUNTS, *_RHO) if any(one.rho is not None for one in self.budgets) else _AMOUNTS
        return (*head, "promise") if any(one.promise for one in self.budgets) else head

    def cells(self, balance: Balance) -> tuple[str, ...]:
        """The amounts of one balance under this head; the remaining ε is what is left of ρ stands for."""
        rho = (None, None) if balance.rho is None else (balance.rho.spent, balance.rho.remaining)
        amounts = (balance.epsilon.budget, balance.epsilon.spent, balance.left, balance.delta.remaining)
        written = (*map(format_short, amounts), *("" if amount is None else format_rho(amount) for amount in rho))
        cells = dict(zip((*_AMOUNTS, *_RHO, "promise"), (*written, balance.promise), strict=True))
        return tuple(cells[name] for name in self.head)

    def listing(self) -> Listing[Balance]:
        """The balances as a sequence that prints as a table."""
        return Listing(self.budgets, ("data set", "analyst", *self.head), self._named_cells)

    def _named_cells(self, balance: Balance) -> tuple[str, ...]:
        return (balance.dataset, balance.analyst or "", *self.cells(balance))


def describe_shortage(refusal: BudgetExceeded) -> str:
    """Which budget is too small for a question, in a few words.

    >>> describe_shortage(BudgetExceeded("", analyst="ada", remaining=Fraction(2, 5)))
    "ε = 0.4 left of the analyst's cap"
    """
    whose = "the data set's budget" if refusal.analyst is None else "the analyst's cap"
    if refusal.quantity == "rho":
        return f"ρ = {format_rho(refusal.remaining)} left of {whose}, {describe_rho(refusal.remaining)}"
    letter = "δ" if refusal.quantity == "delta" else "ε"
    return f"{letter} = {format_amount(refusal.remaining)} left of {whose}"

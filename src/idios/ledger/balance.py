"""What a data set or an analyst may spend, and has spent."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from idios.errors import BudgetExceeded
from idios.ledger.values import format_amount


@dataclass(frozen=True, slots=True)
class Account:
    """One quantity, ε or δ: its budget (None: no limit of its own), what is spent, and what remains.

    `shared` is what is left of the data set's budget, which is the limit of an analyst without one of their own.

    >>> Account(budget=Fraction(1), spent=Fraction(1, 4)).remaining
    Fraction(3, 4)
    >>> Account(budget=None, spent=Fraction(1, 4), shared=Fraction(6)).remaining
    Fraction(6, 1)
    """

    budget: Fraction | None
    spent: Fraction
    shared: Fraction | None = None

    @property
    def remaining(self) -> Fraction | None:
        """What may still be spent; 0 where a cap was set below what was spent already."""
        return self.shared if self.budget is None else max(self.budget - self.spent, Fraction(0))

    def allows(self, requested: Fraction) -> bool:
        """Whether the requested amount fits into the account's own budget, compared exactly.

        >>> Account(budget=Fraction(1), spent=Fraction(9, 10)).allows(Fraction(1, 10))
        True
        """
        return requested == 0 or self.budget is None or requested <= self.budget - self.spent


@dataclass(frozen=True, slots=True)
class Balance:
    """The accounts of a data set over all analysts, or of one analyst on it."""

    dataset: str
    analyst: str | None
    epsilon: Account
    delta: Account

    def within(self, whole: Balance) -> Balance:
        """The same accounts of an analyst, which also say what is left of the data set's."""
        return replace(
            self,
            epsilon=replace(self.epsilon, shared=whole.epsilon.remaining),
            delta=replace(self.delta, shared=whole.delta.remaining),
        )

    def require(self, epsilon: Fraction, delta: Fraction) -> None:
        """Raise BudgetExceeded unless both amounts fit."""
        for quantity, letter, account, requested in (
            ("epsilon", "ε", self.epsilon, epsilon),
            ("delta", "δ", self.delta, delta),
        ):
            remaining = account.remaining
            if remaining is None or account.allows(requested):
                continue
            whose = f"data set {self.dataset!r}"
            if self.analyst is not None:
                whose = f"analyst {self.analyst!r} on {whose}"
            remedy = "`idios ledger raise`" if self.analyst is None else "`idios analyst grant`"
            raise BudgetExceeded(
                f"{whose}: {letter} = {format_amount(requested)} asked, {format_amount(remaining)} left of "
                f"{format_amount(account.budget or Fraction(0))}; ask with less, or have the controller allow more "
                f"with {remedy}",
                dataset=self.dataset,
                analyst=self.analyst,
                quantity=quantity,
                requested=requested,
                remaining=remaining,
            )


def shortage(refusal: BudgetExceeded) -> str:
    """What is too little for a question, in a few words.

    >>> shortage(BudgetExceeded("", analyst="ada", remaining=Fraction(2, 5)))
    "ε = 0.4 left of the analyst's cap"
    """
    letter = "δ" if refusal.quantity == "delta" else "ε"
    whose = "the data set's budget" if refusal.analyst is None else "the analyst's cap"
    return f"{letter} = {format_amount(refusal.remaining)} left of {whose}"

"""What several questions cost together: whether every budget suffices for all of them, before the first is charged.

Questions are charged one by one, to the data set and to the analyst's own cap if there is one. Both are followed
through all charges here, by the rules that the ledger will apply (``Balance.require``), so that what fits here fits
there unless others spend meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from idios.codec import json_field
from idios.display import format_cost, format_left, format_rho
from idios.errors import BudgetExceeded
from idios.model import Account, Balance, Cost, Quote
from idios.model.balance import describe_shortage


@dataclass(frozen=True)
class Payer:
    """An account that questions are charged to: its balance of a data set, and what a question with its ε costs it."""

    balance: Callable[[str], Balance]
    quote: Callable[[str, Fraction], Quote]


@dataclass(frozen=True, kw_only=True)
class Total:
    """What the questions of a report about one data set take from the asker, and what is left to them.

    ``shortage`` says which budget does not suffice for all of them together, None if all do.
    """

    dataset: str
    cost: Fraction
    rho: Fraction
    remaining_before: Fraction | None
    remaining_after: Fraction | None
    remaining_rho_before: Fraction | None = json_field(optional=True, default=None)
    remaining_rho_after: Fraction | None = json_field(optional=True, default=None)
    shortage: str | None

    @property
    def price(self) -> str:
        """What is to be paid, in words."""
        return _format_price(self.cost, self.rho, self.remaining_rho_before is not None)

    def __str__(self) -> str:
        before = format_left(self.remaining_before, self.remaining_rho_before)
        after = format_left(self.remaining_after, self.remaining_rho_after)
        return f"to pay {self.price}; {before} left, " + (
            f"not affordable: {self.shortage}" if self.shortage else f"{after} after"
        )


def add_up(quotes: Mapping[str, Sequence[Quote]], payers: Sequence[Payer]) -> tuple[Total, ...]:
    """The totals of questions by name, of each of which every payer has a quote, by data set."""
    by_dataset: dict[str, dict[str, Sequence[Quote]]] = {}
    for name, each in quotes.items():
        by_dataset.setdefault(each[0].dataset, {})[name] = each
    return tuple(_add_dataset(dataset, of_dataset, payers) for dataset, of_dataset in by_dataset.items())


def _add_dataset(dataset: str, quotes: Mapping[str, Sequence[Quote]], payers: Sequence[Payer]) -> Total:
    """Let every payer pay one question after the other, as the ledger will have it."""
    shortage = None
    ends: list[tuple[Balance, Balance]] = []
    for i, payer in enumerate(payers):
        before = after = _limit(payer.balance(dataset))
        for name, each in quotes.items():
            cost = _find_cost(each[i])
            try:
                after.require(cost)
            except BudgetExceeded as refusal:
                shortage = shortage or f"{describe_shortage(refusal)} when it comes to {name!r}"
            after = after.spend(cost)
        ends.append((before, after))
    before, after = ends[0]
    return Total(
        dataset=dataset,
        cost=sum((each[0].cost for each in quotes.values()), Fraction(0)),
        rho=sum((each[0].rho for each in quotes.values()), Fraction(0)),
        remaining_before=before.left,
        remaining_after=after.left,
        remaining_rho_before=None if before.rho is None else before.rho.remaining,
        remaining_rho_after=None if after.rho is None else after.rho.remaining,
        shortage=shortage,
    )


def _limit(balance: Balance) -> Balance:
    """The balance of an analyst without a cap as that of the data set, which is what limits them."""
    if balance.epsilon.budget is not None or balance.epsilon.remaining is None:
        return balance
    epsilon, delta = Account(balance.epsilon.remaining, Fraction(0)), Account(balance.delta.remaining, Fraction(0))
    rho = None if balance.rho is None else Account(balance.rho.remaining, Fraction(0))
    return replace(balance, analyst=None, epsilon=epsilon, delta=delta, rho=rho)


def _find_cost(quote: Quote) -> Cost:
    """What a question takes from what is left: nothing of a data set that has paid for it already."""
    before, after = quote.remaining_before, quote.remaining_after
    if (before, quote.remaining_rho_before) == (after, quote.remaining_rho_after):
        return Cost(Fraction(0), Fraction(0), Fraction(0))
    return Cost(quote.cost, quote.delta, quote.rho, quote.pure)


def settle(total: Total, paid: Sequence[Quote], payer: Payer) -> Total:
    """What was paid of a planned total, and what is left now."""
    quotes = [quote for quote in paid if quote.dataset == total.dataset]
    balance = _limit(payer.balance(total.dataset))
    return replace(
        total,
        cost=sum((quote.cost for quote in quotes), Fraction(0)),
        rho=sum((quote.rho for quote in quotes), Fraction(0)),
        remaining_after=balance.left,
        remaining_rho_after=None if balance.rho is None else balance.rho.remaining,
    )


def _format_price(cost: Fraction, rho: Fraction, concentrated: bool) -> str:
    return f"ρ = {format_rho(rho)}" if concentrated else format_cost(cost)

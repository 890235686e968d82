"""The budget meters on every page where questions are asked."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from idios.ledger import Balance
from idios.server.console.charts import meter
from idios.server.console.visiting import Visit
from idios.server.console.wording import amount, quantity


@dataclass(frozen=True)
class Budget:
    """What is left of one budget, drawn and in words."""

    dataset: str
    left: str
    whole: str
    drawing: Markup


def budgets(visit: Visit) -> list[Budget]:
    """What the visitor may still spend; a controller sees the budgets of the data sets."""
    datasets = visit.service.party.datasets
    found = (
        [visit.ledger.balance(name) for name in datasets]
        if visit.oversees
        else [one for one in visit.ledger.grants(visit.identity.name) if one.dataset in datasets]
    )
    return [drawn(one) for one in found]


def drawn(balance: Balance) -> Budget:
    """One balance as a meter."""
    left, whole = balance.epsilon.remaining, balance.epsilon.budget
    shown = quantity(left)
    if left is None or whole is None:
        # The analyst is limited by the data set's budget, which is shared: there is no total of their own to draw.
        return Budget(balance.dataset, f"{shown} left of the data set's budget", "", Markup(""))
    total = amount(whole)
    share = float(left / whole) if whole else 0.0
    return Budget(balance.dataset, shown, total, meter(f"{balance.dataset}: {shown} left of {total}", share))

"""Every charge in its order, for the history of a budget."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from sqlalchemy import Connection

from idios.errors import LedgerTampered
from idios.ledger.facts import Forfeited, Reserved, Shared
from idios.ledger.tables import VERIFY, read_entries

PAGE = 1000
_KINDS = (Reserved.kind, Shared.kind, Forfeited.kind)


@dataclass(frozen=True, slots=True)
class Spending:
    """One charge: to the data set, to an analyst's cap, or to both.

    `charged_dataset` is False where an analyst paid for a question that the data set had been charged for; what
    was forfeited has no analyst.
    """

    sequence: int
    time: str
    dataset: str
    analyst: str | None
    epsilon: Fraction
    delta: Fraction
    charged_dataset: bool


def read_spending(connection: Connection, dataset: str | None) -> Iterator[Spending]:
    """The charges on record, of one data set or of all."""
    page = read_entries(connection, after=0, limit=PAGE, kinds=_KINDS)
    while page:
        for entry in page:
            try:
                fact = entry.fact
            except ValueError as error:
                raise LedgerTampered(f"entry {entry.sequence} cannot be read ({error}); {VERIFY}") from error
            assert isinstance(fact, Reserved | Shared | Forfeited)
            if dataset is None or fact.dataset == dataset:
                yield Spending(
                    entry.sequence,
                    entry.time,
                    fact.dataset,
                    None if isinstance(fact, Forfeited) else fact.analyst,
                    fact.epsilon,
                    fact.delta,
                    charged_dataset=not isinstance(fact, Shared),
                )
        page = read_entries(connection, after=page[-1].sequence, limit=PAGE, kinds=_KINDS)

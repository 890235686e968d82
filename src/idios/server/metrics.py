"""Prometheus metrics: what was asked and spent, nothing that the data decides.

No durations of questions, no failures apart from answers, no sizes: what is counted follows from requests and from
charges, which are public facts. With several workers the counts are kept in files, and the one asked adds them up.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, disable_created_metrics, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector

from idios.ledger import Ledger
from idios.pipeline import Charged

FILES = "PROMETHEUS_MULTIPROC_DIR"

# The time at which a counter began is the time of an analyst's request, which is private.
disable_created_metrics()  # type: ignore[no-untyped-call]


class BudgetCollector:
    """What every data set may spend and has spent, read from the ledger when asked."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """The gauges."""
        budget = GaugeMetricFamily("idios_budget", "What may be spent on a data set.", labels=["dataset", "quantity"])
        spent = GaugeMetricFamily("idios_spent", "What was spent on a data set.", labels=["dataset", "quantity"])
        for declared in self._ledger.datasets():
            balance = self._ledger.balance(declared.dataset)
            accounts = (("epsilon", balance.epsilon), ("delta", balance.delta), ("rho", balance.rho))
            for quantity, account in accounts:
                if account is None:
                    continue
                if account.budget is not None:
                    budget.add_metric([declared.dataset, quantity], float(account.budget))
                spent.add_metric([declared.dataset, quantity], float(account.spent))
        return [budget, spent]


class Metrics:
    """The counters of one server process."""

    def __init__(self, ledger: Ledger) -> None:
        self._shared = FILES in os.environ
        self._own = CollectorRegistry()
        self._budgets = BudgetCollector(ledger)
        self.requests = Counter(
            "idios_requests", "Requests by route and status.", ["method", "route", "status"], registry=self._own
        )
        self.questions = Counter(
            "idios_questions",
            "Questions by data set and whether they were charged or stored.",
            ["dataset", "outcome"],
            registry=self._own,
        )
        self.running = Gauge(
            "idios_questions_in_hand",
            "Questions taken in that have not left.",
            registry=self._own,
            multiprocess_mode="livesum",
        )

    def count_question(self, charged: Charged) -> None:
        """Count a question when it is charged: what becomes of it depends on the data."""
        self.questions.labels(charged.dataset, "stored" if charged.stored else "charged").inc()

    def render(self) -> bytes:
        """Render everything in Prometheus' own format."""
        counted = self._own
        if self._shared:
            counted = CollectorRegistry()
            MultiProcessCollector(counted)  # type: ignore[no-untyped-call]
        accounts = CollectorRegistry()
        accounts.register(self._budgets)
        return generate_latest(counted) + generate_latest(accounts)

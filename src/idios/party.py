"""The trusted party: a question goes in as SQL and comes out as a private answer.

    SQL text ─ read ─▶ Question ─ plan ─▶ Plan ─ charge ─▶ summarise ─▶ calibrate ─▶ draw ─▶ Answer

1. read and plan look at public facts only; what they refuse was never charged (``quote`` stops here).
2. charge: the ledger records the cost durably before any data is read. The same question again gets the stored answer.
3. summarise: the backend computes a handful of integers where the data lives.
4. calibrate and draw: the core turns them into noise and one exact draw.
5. the answer is stored before it is given.

After the charge an analyst sees an answer, NULL, or one constant message; why, is in the ledger, for the controller.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from idios.backends.base import Progress, Stopped, Watch
from idios.config import (
    DELTA_QUESTIONS,
    MAX_GROUPS,
    MIN_EPSILON,
    Declared,
    read_columns,
    read_configuration,
    read_csv_format,
    read_parameters,
)
from idios.core.calibration import Protection
from idios.core.exact import Number, positive, whole
from idios.core.neighbours import Neighbours
from idios.core.sampling import Source
from idios.costs import Costs, at_every_level, costs
from idios.errors import AnswerFailed, NotPermitted
from idios.holding import Holding, hold
from idios.inspecting import Inspection, inspected, reaching
from idios.ledger import Ledger, Request, Reservation, StoredAnswer
from idios.model import Answer, Quote, ReleasedTable
from idios.query.plan import Plan
from idios.query.planner import plan as make_plan
from idios.query.question import Question
from idios.query.reader import read
from idios.query.schema import Dataset, Parameters
from idios.query.shares import Weights
from idios.release import Standing, draw_table, make_answer, make_quote
from idios.sandbox import Sandbox, Twins

log = logging.getLogger("idios.controller")


@dataclass(frozen=True)
class Charged:
    """A question that is paid for: its answer may be computed now, or is stored."""

    plan: Plan
    analyst: str | None
    outcome: Reservation | StoredAnswer

    @property
    def key(self) -> str:
        """The digest that identifies the question."""
        return self.outcome.key

    @property
    def id(self) -> str:
        """The id of the answer."""
        return self.key[:16]

    @property
    def dataset(self) -> str:
        """What the question is about."""
        return self.plan.dataset.name

    @property
    def stored(self) -> bool:
        """Whether the answer is there already."""
        return isinstance(self.outcome, StoredAnswer)


@dataclass(frozen=True)
class Drawn:
    """The result of computing a charged question, not released yet: an answer, or why there is none."""

    table: ReleasedTable | None = None
    error: Exception | None = None


class TrustedParty:
    """Holds sensitive tables, answers questions about them, and keeps the account."""

    def __init__(
        self,
        holdings: Mapping[str, Holding],
        ledger: Ledger,
        source: Source | None = None,
        twins: Twins | None = None,
    ) -> None:
        self.holdings = dict(holdings)
        self.ledger = ledger
        self.sandbox = Sandbox(twins or Twins(), self.plan)
        self.source = source

    @classmethod
    def open(
        cls,
        source: Any,
        *,
        name: str | None = None,
        columns: Mapping[str, Any],
        neighbours: str = "replace",
        protection: str = "individual",
        group: int | None = None,
        delta: Number | None = None,
        floor: Number = 1,
        budget: Number,
        min_epsilon: Number = MIN_EPSILON,
        ledger: str | Path | Ledger | None = None,
        version: str | None = None,
        max_groups: int = MAX_GROUPS,
        parameters: Mapping[str, Any] | Parameters | None = None,
        csv: Mapping[str, Any] | None = None,
        progress: Progress | None = None,
    ) -> TrustedParty:
        """Hold one table: a file, a data frame or a dict of columns.

        ``columns`` declares what is public of each column, as in ``idios.toml``; ``csv`` the format of a csv file that
        does not follow RFC 4180, such as ``{"delimiter": ";", "decimal": ","}``. ``ledger`` is a database address, the
        path of an SQLite file, or None for one that is forgotten at the end. ``progress`` is called with the name of
        each step of a slow question and the share of the work that is done.
        """
        named = name or (Path(str(source).partition("::")[0]).stem if isinstance(source, str | Path) else "data")
        dataset = Dataset(
            name=named,
            columns=read_columns(columns),
            neighbours=Neighbours.named(neighbours),
            protection=Protection.declare(protection, group=group, delta=delta, floor=floor),
            min_epsilon=positive(min_epsilon, "min_epsilon"),
            max_groups=whole(max_groups, "max_groups"),
            parameters=read_parameters({} if parameters is None else parameters),
            version=version or "",
        )
        delta_budget = min(dataset.protection.delta * DELTA_QUESTIONS, Fraction(1))
        declared = Declared(dataset, source, positive(budget, "budget"), delta_budget, read_csv_format(csv, source))
        if isinstance(ledger, Path) or (isinstance(ledger, str) and "://" not in ledger):
            ledger = f"sqlite:///{ledger}"
        book = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger or "sqlite://")
        return cls(hold([declared], book, progress, retired=True), book)

    @classmethod
    def from_config(
        cls, path: str | Path = "idios.toml", *, progress: Progress | None = None, retired: bool = True
    ) -> TrustedParty:
        """Hold every data set of a configuration file.

        One that the ledger has retired is an error, unless ``retired`` is False: then it is left out, data and all.
        """
        configuration = read_configuration(path)
        ledger = Ledger.open(configuration.ledger_url, configuration.key_file)
        return cls(hold(configuration.datasets.values(), ledger, progress, retired=retired), ledger)

    def close(self) -> None:
        """Close the data and the ledger."""
        for holding in self.holdings.values():
            holding.backend.close()
        self.sandbox.twins.close()
        self.ledger.close()

    def __enter__(self) -> TrustedParty:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def limited_to(self, names: Collection[str]) -> TrustedParty:
        """A view of the party with only these data sets; close the party, not the view."""
        kept = {name: holding for name, holding in self.holdings.items() if name in names}
        return TrustedParty(kept, self.ledger, self.source, self.sandbox.twins)

    # The way of a question.

    def query(
        self,
        sql: str,
        epsilon: Number,
        *,
        weights: Weights = None,
        analyst: str | None = None,
        once: str | None = None,
        watch: Watch | None = None,
    ) -> Answer:
        """Answer a question for ``epsilon``, charged to the data set and to the analyst (None: the controller).

        ``once`` is the caller's idempotency key: sent again with the same question it is the same request, with another
        it is refused. ``watch`` reports the steps and may cancel them; the charge stays, and the same question asked
        again completes it.
        """
        return self.complete(self.charge(sql, epsilon, weights=weights, analyst=analyst, once=once), watch)

    def charge(
        self,
        sql: str,
        epsilon: Number,
        *,
        weights: Weights = None,
        analyst: str | None = None,
        once: str | None = None,
    ) -> Charged:
        """The first half of ``query``: read, plan and charge. What is refused is refused here, whatever the data."""
        return self.reserve(self.plan(sql, epsilon, weights), analyst=analyst, once=once)

    def reserve(self, plan: Plan, *, analyst: str | None = None, once: str | None = None) -> Charged:
        """Charge what was planned, unless the data is no longer what was opened."""
        self.holdings[plan.dataset.name].check()
        return Charged(plan, analyst, self.ledger.reserve(_request(plan, analyst), once=once))

    def recall(self, plan: Plan, *, analyst: str | None = None) -> Answer:
        """The answer to a question that was paid for before, whatever has become of the data since."""
        return self.complete(Charged(plan, analyst, self.ledger.reserve(_request(plan, analyst))))

    def complete(self, charged: Charged, watch: Watch | None = None) -> Answer:
        """The second half of ``query``: compute, store and give the answer; or say that it failed, and nothing else."""
        if isinstance(charged.outcome, StoredAnswer):
            return self._answer(charged, charged.outcome)
        return self.release(charged, self.compute(charged, watch), watch)

    def compute(self, charged: Charged, watch: Watch | None = None) -> Drawn:
        """The first half of ``complete``: read the data and draw. It has no visible effect."""
        plan = charged.plan
        holding = self.holdings[plan.dataset.name]
        try:
            table = draw_table(plan, holding.backend, watch, self.source)
            holding.check()  # what was read in several steps may be of two files
            return Drawn(table)
        except Exception as error:
            return Drawn(error=error)

    def release(self, charged: Charged, drawn: Drawn, watch: Watch | None = None) -> Answer:
        """The second half of ``complete``: record and return what was drawn; or say that it failed.

        A question that was stopped by now fails, whether it was computed in time or not: that would tell how long it
        took.
        """
        outcome = charged.outcome
        if isinstance(outcome, StoredAnswer):
            return self._answer(charged, outcome)
        try:
            if drawn.table is None:
                raise drawn.error or AssertionError("nothing was drawn")
            if watch is not None:
                watch.check()
            released = self.ledger.release(outcome, drawn.table)
        except Exception as error:
            self._failed(outcome, error)
            raise AnswerFailed from None
        return self._answer(charged, released)

    def key(self, plan: Plan) -> str:
        """The digest that identifies the question, as the data set is declared now; touches no data."""
        return _request(plan, None).key

    def quote(self, sql: str, epsilon: Number, *, weights: Weights = None, analyst: str | None = None) -> Quote:
        """Say what a question would cost and promise; touches no data."""
        return self.price(self.plan(sql, epsilon, weights), analyst=analyst)

    def price(self, plan: Plan, *, analyst: str | None = None) -> Quote:
        """Say what it would cost and promise to answer what was planned."""
        price = self.ledger.price(_request(plan, analyst))
        balance = self.ledger.balance(plan.dataset.name, analyst)
        charged = price.charges_dataset if analyst is None else price.charges_analyst
        cost, delta = (plan.epsilon, plan.delta) if charged else (Fraction(0), Fraction(0))
        # Without a cap of their own an analyst is limited by the data set, which pays for a question once.
        taken = cost if price.charges_dataset or balance.epsilon.budget is not None else Fraction(0)
        standing = Standing(cost, delta, balance.epsilon.remaining, taken, price.shortage, price.stored)
        return make_quote(plan, standing)

    def inspect(self, sql: str, epsilon: Number, *, weights: Weights = None) -> Inspection:
        """Show the controller what lies behind a question; charges nothing and is recorded."""
        plan = self.plan(sql, epsilon, weights)
        holding = self.holdings[plan.dataset.name]
        holding.check()
        self.ledger.inspected(_request(plan, None))
        reach = max(1, plan.dataset.protection.group)
        summaries = holding.backend.summarise(reaching(plan, reach))
        cells = []
        for cell, found in zip(plan.cells, summaries, strict=True):
            group = {key.label: key.values[i] for key, i in zip(plan.groups, cell, strict=True)}
            cells += [inspected(plan, number, seen, group, reach) for number, seen in enumerate(found)]
        return Inspection(tuple(cells))

    def costs(self, sql: str, epsilon: Number, *, weights: Weights = None) -> Costs:
        """Show the controller how far off the answers would be at each level of protection; is recorded.

        For the controller alone: expected errors follow from the data. Charges nothing.
        """
        question = self._read(sql)
        holding = self.holdings[question.dataset]
        plans = at_every_level(question, holding.dataset, epsilon, weights)
        holding.check()
        self.ledger.inspected(_request(plans.some, None))
        return costs(plans, holding.backend.summarise(plans.furthest))

    def plan(self, sql: str, epsilon: Number, weights: Weights = None) -> Plan:
        """Read and plan a question: public facts only."""
        question = self._read(sql)
        return make_plan(question, self.holdings[question.dataset].dataset, epsilon, weights)

    def _read(self, sql: str) -> Question:
        return read(sql, {name: holding.dataset for name, holding in self.holdings.items()})

    def _answer(self, charged: Charged, released: StoredAnswer) -> Answer:
        try:
            remaining = self.ledger.balance(charged.dataset, charged.analyst).epsilon.remaining
        except NotPermitted:
            remaining = Fraction(0)  # the grant was withdrawn meanwhile; the answer is paid for
        return make_answer(charged.plan, released.table, id=charged.id, remaining=remaining, stored=charged.stored)

    def _failed(self, reservation: Reservation, error: Exception) -> None:
        """Keep the reason where the controller alone finds it; the charge stays.

        Logs travel further than the ledger does, and an engine's words may quote data: they name the error's kind only.
        """
        stopped, kind = isinstance(error, Stopped), type(error).__name__
        urgency = logging.INFO if stopped else logging.ERROR
        log.log(urgency, "question %s was charged and not answered: %s", reservation.key[:16], kind)
        try:
            self.ledger.fail(reservation, "stopped" if stopped else f"{kind}: {error}")
        except Exception as second:
            log.error("and the ledger could not record it: %s", type(second).__name__)


def _request(plan: Plan, analyst: str | None) -> Request:
    dataset = plan.dataset
    return Request(dataset.name, dataset.version, analyst, plan.normal_form, plan.epsilon, plan.delta)

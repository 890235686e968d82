"""The way of a question, step by step: it goes in as SQL and comes out as a private answer.

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
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from idios.answer.assembly import make_answer, make_quote
from idios.answer.release import check_table, draw_table
from idios.core.exact import Number
from idios.core.sampling import RandomSource
from idios.data.backend import CancellationToken, Cancelled
from idios.datasets import OpenDataset
from idios.errors import AnswerFailed, InvalidInput, NotPermitted
from idios.ledger import ChargeRequest, Ledger, Reservation, StoredAnswer
from idios.ledger.rules import STOPPED
from idios.model import Account, Answer, Balance, Quote, ReleasedTable
from idios.plan.planner import make_plan, plan_check
from idios.plan.question import Plan, Question, Split
from idios.sql.reader import RecentQuestions

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
class DrawnAnswer:
    """The result of computing a charged question, not released yet: an answer, or why there is none."""

    table: ReleasedTable | None = None
    error: Exception | None = None


class Pipeline:
    """The steps of a question about some data sets, which one ledger pays for."""

    def __init__(
        self,
        datasets: Mapping[str, OpenDataset],
        ledger: Ledger,
        source: RandomSource | None = None,
        recent: RecentQuestions | None = None,
    ) -> None:
        self.datasets = dict(datasets)
        self.ledger = ledger
        self.source = source
        self._recent = recent or RecentQuestions()

    def make_plan(self, sql: str, epsilon: Number, split: Split = None, check: Number | None = None) -> Plan:
        """Read and plan a question: public facts only."""
        question = self._read(sql)
        dataset = self.datasets[question.dataset].dataset
        return make_plan(question, dataset, epsilon, split, check, preparing=self._recent.prepare)

    def make_check_plan(
        self, sql: str, epsilon: Number, with_epsilon: Number, split: Split = None, *, analyst: str | None = None
    ) -> Plan:
        """Plan a check of an answer that the caller has."""
        answered = self.make_plan(sql, epsilon, split, 0)
        stored = self.ledger.find_settled(self.make_request(answered, analyst))
        if stored is None:
            raise InvalidInput("there is no stored answer to this question, without a check and with this ε, to check")
        return plan_check(answered, stored.table.cells, with_epsilon)

    def price(self, plan: Plan, *, analyst: str | None = None) -> Quote:
        """Say what it would cost and promise to answer what was planned."""
        price = self.ledger.price(self.make_request(plan, analyst))
        balance = self.ledger.balance(plan.dataset.name, analyst)
        charged = price.charges_dataset if analyst is None else price.charges_analyst
        return make_quote(plan, price, balance, charged=charged)

    def key(self, plan: Plan) -> str:
        """The digest that identifies the question, as the data set is declared now; touches no data."""
        return self.make_request(plan, None).key

    def reserve(self, plan: Plan, *, analyst: str | None = None, idempotency_key: str | None = None) -> Charged:
        """Charge what was planned, unless the data is no longer what was opened."""
        self.datasets[plan.dataset.name].check_unchanged()
        request = self.make_request(plan, analyst)
        return Charged(plan, analyst, self.ledger.reserve(request, idempotency_key=idempotency_key))

    def find_stored(
        self, plan: Plan, *, analyst: str | None = None, idempotency_key: str | None = None
    ) -> Charged | None:
        """What ``reserve`` gives where the answer is stored and paid for; None where it looks as if it were not."""
        self.datasets[plan.dataset.name].check_unchanged()
        request = self.make_request(plan, analyst)
        if self.ledger.expects_charge(request):
            return None
        stored = self.ledger.find_settled(request, idempotency_key)
        return None if stored is None else Charged(plan, analyst, stored)

    def recall(self, plan: Plan, *, analyst: str | None = None) -> Answer:
        """The answer to a question that was paid for before, whatever has become of the data since."""
        request = self.make_request(plan, analyst)
        return self.complete(Charged(plan, analyst, self.ledger.find_settled(request) or self.ledger.reserve(request)))

    def complete(self, charged: Charged, cancellation: CancellationToken | None = None) -> Answer:
        """What follows ``reserve``: compute, store and give the answer; or say that it failed, and nothing else."""
        drawn = DrawnAnswer() if charged.stored else self.compute(charged, cancellation)
        return self.show(charged, self.release(charged, drawn, cancellation))

    def compute(self, charged: Charged, cancellation: CancellationToken | None = None) -> DrawnAnswer:
        """The first part of ``complete``: read the data and draw. It has no visible effect."""
        plan = charged.plan
        opened = self.datasets[plan.dataset.name]
        try:
            draw = draw_table if plan.checked is None else check_table
            table = draw(plan, opened.backend, cancellation, self.source)
            opened.check_unchanged()  # what was read in several steps may be of two files
            return DrawnAnswer(table)
        except Exception as error:
            return DrawnAnswer(error=error)

    def release(
        self, charged: Charged, drawn: DrawnAnswer, cancellation: CancellationToken | None = None
    ) -> StoredAnswer:
        """The second part of ``complete``: record what was drawn; or say that it failed.

        A question that was stopped by now fails, whether it was computed in time or not: that would tell how long it
        took.
        """
        outcome = charged.outcome
        if isinstance(outcome, StoredAnswer):
            return outcome
        try:
            if drawn.table is None:
                raise drawn.error or AssertionError("nothing was drawn")
            if cancellation is not None:
                cancellation.check()
            return self.ledger.release(outcome, drawn.table)
        except Exception as error:
            self._failed(outcome, error)
            raise AnswerFailed from None

    def make_request(self, plan: Plan, analyst: str | None) -> ChargeRequest:
        """What the ledger is asked for, to charge a plan."""
        name, version = plan.dataset.name, plan.dataset.version
        question, promise = plan.normal_form, self.datasets[name].promise
        return ChargeRequest(
            name, version, analyst, question, plan.epsilon, rho=plan.rho, pure=plan.pure, promise=promise
        )

    def _read(self, sql: str) -> Question:
        return self._recent.read(sql, {name: opened.dataset for name, opened in self.datasets.items()})

    def show(self, charged: Charged, released: StoredAnswer) -> Answer:
        """The last part of ``complete``: make the caller's answer of what was recorded."""
        try:
            balance = released.balance or self.ledger.balance(charged.dataset, charged.analyst)
        except NotPermitted:
            # the grant was withdrawn meanwhile; the answer is paid for
            nothing = Account(Fraction(0), Fraction(0))
            balance = Balance(charged.dataset, charged.analyst, nothing, nothing)
        return make_answer(
            charged.plan, released.table, id=charged.id, balance=balance, stored=charged.stored, released=released
        )

    def _failed(self, reservation: Reservation, error: Exception) -> None:
        """Keep the reason where the controller alone finds it; the charge stays.

        Logs travel further than the ledger does, and an engine's words may quote data: they name the error's kind only.
        """
        stopped, kind = isinstance(error, Cancelled), type(error).__name__
        urgency = logging.INFO if stopped else logging.ERROR
        log.log(urgency, "question %s was charged and not answered: %s", reservation.key[:16], kind)
        try:
            self.ledger.fail(reservation, STOPPED if stopped else f"{kind}: {error}")
        except Exception as second:
            log.error("and the ledger could not record it: %s", type(second).__name__)

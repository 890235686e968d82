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
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from idios.answers import make_answer, make_quote
from idios.audit import Costs, Inspection, compute_costs, inspect_plan, plan_levels
from idios.backends.base import CancellationToken, Cancelled, Progress
from idios.backends.files import read_stem
from idios.config import read_configuration, warn_of_shared_sources
from idios.core.exact import Number
from idios.core.sampling import Source
from idios.core.statistics import Parameters
from idios.datasets import OpenDataset, declare, open_datasets
from idios.errors import AnswerFailed, InvalidInput, NotPermitted
from idios.ledger import ChargeRequest, Ledger, Reservation, StoredAnswer
from idios.linked_datasets import link_datasets
from idios.model import Account, Answer, Balance, Quote, ReleasedTable
from idios.query.plan import Plan, Question, Split
from idios.query.planner import make_plan, plan_check
from idios.query.reader import RecentQuestions
from idios.query.shares import shares_rho
from idios.release import check_table, draw_table
from idios.reports.least_epsilon import find_epsilon
from idios.reports.report import Asker, ReportPlan, plan_report, plan_within
from idios.reports.totals import Payer
from idios.sandbox import ROWS, TWIN_PEOPLE, Twins

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
        datasets: Mapping[str, OpenDataset],
        ledger: Ledger,
        source: Source | None = None,
        twins: Twins | None = None,
        recent: RecentQuestions | None = None,
    ) -> None:
        self.datasets = dict(datasets)
        self.ledger = ledger
        self.twins = twins or Twins()
        self.source = source
        self._recent = recent or RecentQuestions()

    @classmethod
    def open(
        cls,
        source: Any,
        *,
        columns: Mapping[str, Any],
        budget: Number | Mapping[str, Any],
        accounting: str | None = None,
        check: Number | None = None,
        name: str | None = None,
        csv: Mapping[str, Any] | None = None,
        version: str | None = None,
        unit: str | Sequence[str] | None = None,
        unit_word: str | None = None,
        order: str | None = None,
        rows: int | None = None,
        groups: int | None = None,
        links: Mapping[str, str] | None = None,
        linked: Mapping[str, Mapping[str, Any]] | None = None,
        neighbours: str | None = None,
        protection: str | None = None,
        analysts: str | None = None,
        group: int | Sequence[Number] | Mapping[str, Any] | None = None,
        floor: Number | None = None,
        fineness: int | None = None,
        min_epsilon: Number | None = None,
        max_groups: int | None = None,
        parameters: Mapping[str, Any] | Parameters | None = None,
        release_seconds: Number | None = None,
        ledger: str | Path | Ledger | None = None,
        progress: Progress | None = None,
    ) -> TrustedParty:
        """Hold one table: a file, an address, a data frame or a dict of columns.

        The arguments are the keys of a data set in ``idios.toml``, with the same meaning, defaults and checks:
        ``columns`` declares what is public of each column, ``csv`` the format of a csv file that does not follow
        RFC 4180, such as ``{"delimiter": ";", "decimal": ","}``, ``unit`` the columns that tell people apart who may
        have several rows. ``linked`` are the data sets that can be joined to it, by name, each a table of such keys.
        ``analysts`` and ``release_seconds`` matter on a server only.

        ``ledger`` is a database address, the path of an SQLite file, or None for one that is forgotten at the end.
        ``progress`` is called with the name of each step of a slow question and the share of the work that is done.
        """
        table = {
            "source": source,
            "csv": csv,
            "version": version,
            "unit": unit,
            "unit_word": unit_word,
            "order": order,
            "rows": rows,
            "groups": groups,
            "links": links,
            "neighbours": neighbours,
            "protection": protection,
            "analysts": analysts,
            "group": group,
            "floor": floor,
            "fineness": fineness,
            "accounting": accounting,
            "budget": budget,
            "check": check,
            "min_epsilon": min_epsilon,
            "max_groups": max_groups,
            "parameters": parameters,
            "release_seconds": release_seconds,
            "columns": columns,
        }
        stem = read_stem(str(source).partition("::")[0]) if isinstance(source, str | Path) else "data"
        config = declare(name or stem, {key: value for key, value in table.items() if value is not None})
        others = {other: declare(other, keys) for other, keys in (linked or {}).items()}
        configs = link_datasets({config.dataset.name: config} | others)
        if isinstance(ledger, Path) or (isinstance(ledger, str) and "://" not in ledger):
            ledger = f"sqlite:///{ledger}"
        book = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger or "sqlite://")
        return cls(open_datasets(configs.values(), book, progress, retired=True), book)

    @classmethod
    def from_config(
        cls, path: str | Path = "idios.toml", *, progress: Progress | None = None, retired: bool = True
    ) -> TrustedParty:
        """Hold every data set of a configuration file.

        A retired data set is an error, unless ``retired`` is False: then it is left out, and its data is not read.
        """
        configuration = read_configuration(path)
        ledger = Ledger.open(configuration.ledger_url, configuration.key_file)
        datasets = open_datasets(configuration.datasets.values(), ledger, progress, retired=retired)
        party = cls(datasets, ledger)
        try:
            warn_of_shared_sources(configuration, datasets, ledger)
        except BaseException:
            party.close()
            raise
        return party

    def close(self) -> None:
        """Close the data and the ledger."""
        for dataset in self.datasets.values():
            dataset.backend.close()
        self.twins.close()
        self.ledger.close()

    def __enter__(self) -> TrustedParty:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def limited_to(self, names: Collection[str]) -> TrustedParty:
        """A view of the party with only these data sets; close the party, not the view."""
        kept = {name: dataset for name, dataset in self.datasets.items() if name in names}
        return TrustedParty(kept, self.ledger, self.source, self.twins, self._recent)

    # The way of a question.

    def query(
        self,
        sql: str,
        epsilon: Number,
        *,
        split: Split = None,
        check: Number | None = None,
        analyst: str | None = None,
        idempotency_key: str | None = None,
        cancellation: CancellationToken | None = None,
    ) -> Answer:
        """Answer a question for ``epsilon``, charged to the data set and to the analyst (None: the controller).

        ``split`` gives the proportions in which the statistics divide ε, by their names; evenly unless given.
        ``check`` is the share of ε that tells how many records off an answer is, 0 for none; as declared unless given.
        ``idempotency_key`` is the caller's own: sent again with the same question it is the same request, with another
        it is refused. ``cancellation`` reports the steps and may cancel them; the charge stays, and the same question
        asked again completes it.
        """
        plan = self.make_plan(sql, epsilon, split, check)
        return self.complete(self.reserve(plan, analyst=analyst, idempotency_key=idempotency_key), cancellation)

    def check(
        self,
        sql: str,
        epsilon: Number,
        *,
        with_epsilon: Number,
        split: Split = None,
        analyst: str | None = None,
        cancellation: CancellationToken | None = None,
    ) -> Answer:
        """Tell, for ``with_epsilon`` more, how many records off the stored answer to a question without a check is."""
        plan = self.make_check_plan(sql, epsilon, with_epsilon, split, analyst=analyst)
        return self.complete(self.reserve(plan, analyst=analyst), cancellation)

    def make_check_plan(
        self, sql: str, epsilon: Number, with_epsilon: Number, split: Split = None, *, analyst: str | None = None
    ) -> Plan:
        """Plan a check of an answer that the caller has."""
        answered = self.make_plan(sql, epsilon, split, 0)
        stored = self.ledger.find_settled(_request(answered, analyst))
        if stored is None:
            raise InvalidInput("there is no stored answer to this question, without a check and with this ε, to check")
        return plan_check(answered, stored.table.cells, with_epsilon)

    def reserve(self, plan: Plan, *, analyst: str | None = None, idempotency_key: str | None = None) -> Charged:
        """Charge what was planned, unless the data is no longer what was opened."""
        self.datasets[plan.dataset.name].check_unchanged()
        return Charged(plan, analyst, self.ledger.reserve(_request(plan, analyst), idempotency_key=idempotency_key))

    def recall(self, plan: Plan, *, analyst: str | None = None) -> Answer:
        """The answer to a question that was paid for before, whatever has become of the data since."""
        return self.complete(Charged(plan, analyst, self.ledger.reserve(_request(plan, analyst))))

    def complete(self, charged: Charged, cancellation: CancellationToken | None = None) -> Answer:
        """What follows ``reserve``: compute, store and give the answer; or say that it failed, and nothing else."""
        if isinstance(charged.outcome, StoredAnswer):
            return self._answer(charged, charged.outcome)
        return self.release(charged, self.compute(charged, cancellation), cancellation)

    def compute(self, charged: Charged, cancellation: CancellationToken | None = None) -> Drawn:
        """The first half of ``complete``: read the data and draw. It has no visible effect."""
        plan = charged.plan
        opened = self.datasets[plan.dataset.name]
        try:
            draw = draw_table if plan.checked is None else check_table
            table = draw(plan, opened.backend, cancellation, self.source)
            opened.check_unchanged()  # what was read in several steps may be of two files
            return Drawn(table)
        except Exception as error:
            return Drawn(error=error)

    def release(self, charged: Charged, drawn: Drawn, cancellation: CancellationToken | None = None) -> Answer:
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
            if cancellation is not None:
                cancellation.check()
            released = self.ledger.release(outcome, drawn.table)
        except Exception as error:
            self._failed(outcome, error)
            raise AnswerFailed from None
        return self._answer(charged, released)

    def key(self, plan: Plan) -> str:
        """The digest that identifies the question, as the data set is declared now; touches no data."""
        return _request(plan, None).key

    def quote(
        self,
        sql: str,
        epsilon: Number,
        *,
        split: Split = None,
        check: Number | None = None,
        then_check: Number | None = None,
        analyst: str | None = None,
    ) -> Quote:
        """Say what a question, or ``check`` of its answer for ``then_check``, would cost; touches no data."""
        if then_check is None:
            return self.price(self.make_plan(sql, epsilon, split, check), analyst=analyst)
        return self.price(self.make_check_plan(sql, epsilon, then_check, split, analyst=analyst), analyst=analyst)

    def price(self, plan: Plan, *, analyst: str | None = None) -> Quote:
        """Say what it would cost and promise to answer what was planned."""
        price = self.ledger.price(_request(plan, analyst))
        balance = self.ledger.balance(plan.dataset.name, analyst)
        charged = price.charges_dataset if analyst is None else price.charges_analyst
        return make_quote(plan, price, balance, charged=charged)

    def plan(
        self,
        questions: Mapping[str, str],
        epsilon: Number | None = None,
        *,
        split: Mapping[str, Number] | None = None,
        within: Number | None = None,
        analyst: str | None = None,
    ) -> ReportPlan:
        """Plan questions by name as one report, and quote it; ``ask`` of the result spends, question by question.

        ``epsilon`` is the total for each data set, divided evenly or in the proportions of ``split``. Or ``within``
        is given, and each question has the least ε that keeps its margins so small (``find_epsilon``).
        """
        own = Payer(
            lambda dataset: self.ledger.balance(dataset, analyst),
            lambda sql, share: self.quote(sql, share, analyst=analyst),
        )
        asker = Asker(
            query=lambda sql, share: self.query(sql, share, analyst=analyst),
            identify=lambda sql, share: self.key(self.make_plan(sql, share)),
            payers=(own,) if analyst is None else (own, Payer(self.ledger.balance, self.quote)),
            adds_squares=lambda dataset, total: shares_rho(self.datasets[dataset].dataset, total),
        )
        if within is None and epsilon is not None:
            return plan_report(asker, questions, epsilon, split)
        if within is None or epsilon is not None or split is not None:
            raise InvalidInput("a report takes either epsilon, with or without split, or within")
        return plan_within(asker, questions, lambda sql: self.find_epsilon(sql, within))

    def find_epsilon(self, sql: str, within: Number) -> Fraction:
        """The least ε for which the 95 % margin of each statistic of a question is ``within``, such as 50 or "2%"."""
        return find_epsilon(lambda epsilon: self.make_plan(sql, epsilon), within)

    def sandbox(
        self,
        sql: str,
        epsilon: Number,
        split: Split = None,
        check: Number | None = None,
        *,
        cancellation: CancellationToken | None = None,
    ) -> Answer:
        """Answer a question about made-up data, as it would be answered about the real data; free.

        No data, no ledger and nothing stored is touched. ``cancellation`` may cancel it, which raises ``Cancelled``.
        """
        plan = self.make_plan(sql, epsilon, split, check)
        table = draw_table(plan, self.twins.of(self.datasets[plan.dataset.name].dataset), cancellation)
        size = None if plan.dataset.size is None else TWIN_PEOPLE * plan.dataset.records if plan.dataset.unit else ROWS
        made_up = replace(plan, dataset=replace(plan.dataset, size=size))
        return replace(make_answer(made_up, table, id="sandbox"), sandbox=True)

    def inspect(self, sql: str, epsilon: Number, *, split: Split = None) -> Inspection:
        """Show the controller what lies behind a question; charges nothing and is recorded."""
        plan = self.make_plan(sql, epsilon, split)
        opened = self.datasets[plan.dataset.name]
        strongest = plan_levels(self._read(sql), opened.dataset, epsilon, split, limit=None).strongest
        opened.check_unchanged()
        self.ledger.record_inspection(_request(plan, None))
        return inspect_plan(plan, opened.backend, strongest)

    def costs(self, sql: str, epsilon: Number, *, split: Split = None) -> Costs:
        """Show the controller how far off the answers would be at each level of protection; is recorded.

        For the controller alone: expected errors follow from the data. Charges nothing.
        """
        question = self._read(sql)
        opened = self.datasets[question.dataset]
        plans = plan_levels(question, opened.dataset, epsilon, split)
        opened.check_unchanged()
        self.ledger.record_inspection(_request(plans.first, None))
        return compute_costs(plans, opened.backend)

    def make_plan(self, sql: str, epsilon: Number, split: Split = None, check: Number | None = None) -> Plan:
        """Read and plan a question: public facts only."""
        question = self._read(sql)
        return make_plan(question, self.datasets[question.dataset].dataset, epsilon, split, check)

    def _read(self, sql: str) -> Question:
        return self._recent.read(sql, {name: opened.dataset for name, opened in self.datasets.items()})

    def _answer(self, charged: Charged, released: StoredAnswer) -> Answer:
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
            self.ledger.fail(reservation, "stopped" if stopped else f"{kind}: {error}")
        except Exception as second:
            log.error("and the ledger could not record it: %s", type(second).__name__)


def _request(plan: Plan, analyst: str | None) -> ChargeRequest:
    dataset = plan.dataset
    question = plan.normal_form
    return ChargeRequest(dataset.name, dataset.version, analyst, question, plan.epsilon, rho=plan.rho, pure=plan.pure)

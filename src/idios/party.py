"""The trusted party: a question goes in as SQL and comes out as a private answer.

    SQL text ─ read ─▶ Question ─ plan ─▶ Plan ─ charge ─▶ summarise ─▶ calibrate ─▶ draw ─▶ Answer

1. read and plan look at public facts only; what they refuse was never charged (``quote`` stops here).
2. charge: the ledger records the cost durably before any data is read. The same question again gets the stored answer.
3. summarise: the backend computes a handful of integers where the data lives.
4. calibrate and draw: the core turns them into noise and one exact draw.
5. the answer is stored before it is given.

After the charge an analyst sees an answer, NULL, or one constant message; why, is for the controller's log.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from idios.answer import (
    Answer,
    Inspection,
    Quote,
    kind_of,
    plain,
    unknown_margin,
)
from idios.backends.base import Backend, Progress, open_source
from idios.config import (
    DELTA_QUESTIONS,
    MAX_GROUPS,
    MIN_EPSILON,
    Declared,
    read_columns,
    read_configuration,
    read_parameters,
)
from idios.core.calibration import Protection
from idios.core.exact import Number, positive, text, whole
from idios.core.neighbours import Neighbours
from idios.core.sampling import Source
from idios.errors import AnswerFailed
from idios.inspecting import inspected, reaching
from idios.ledger import Declaration, Ledger, Request, Reservation, StoredAnswer
from idios.query.plan import Plan
from idios.query.planner import plan as make_plan
from idios.query.reader import read
from idios.query.schema import Dataset, Parameters
from idios.releasing import public_margin, release

log = logging.getLogger("idios.controller")

Weights = Mapping[str, Number] | Sequence[Number] | None


@dataclass(frozen=True)
class Holding:
    """One data set that the party holds."""

    dataset: Dataset
    backend: Backend


class TrustedParty:
    """Holds sensitive tables, answers questions about them, and keeps the account."""

    def __init__(self, holdings: Mapping[str, Holding], ledger: Ledger, source: Source | None = None) -> None:
        self.holdings = dict(holdings)
        self.ledger = ledger
        self._source = source

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
        progress: Progress | None = None,
    ) -> TrustedParty:
        """Hold one table: a file, a data frame or a dict of columns.

        ``columns`` declares what is public of each column, as in ``idios.toml``. ``ledger`` is a database address, the
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
        declared = Declared(dataset, source, positive(budget, "budget"), delta_budget)
        if isinstance(ledger, Path) or (isinstance(ledger, str) and "://" not in ledger):
            ledger = f"sqlite:///{ledger}"
        book = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger or "sqlite://")
        return cls._holding([declared], book, progress)

    @classmethod
    def from_config(cls, path: str | Path = "idios.toml", *, progress: Progress | None = None) -> TrustedParty:
        """Hold every data set of a configuration file."""
        configuration = read_configuration(path)
        ledger = Ledger.open(configuration.ledger_url, configuration.key_file)
        return cls._holding(list(configuration.datasets.values()), ledger, progress)

    @classmethod
    def _holding(cls, declared: Sequence[Declared], ledger: Ledger, progress: Progress | None) -> TrustedParty:
        holdings: dict[str, Holding] = {}
        try:
            for one in declared:
                dataset = replace(one.dataset, version=one.dataset.version or _version(one.source))
                holdings[dataset.name] = Holding(dataset, open_source(one.source, dataset, progress))
                ledger.declare(
                    Declaration(dataset.name, dataset.version, one.budget, one.delta_budget, dataset.min_epsilon)
                )
        except BaseException:
            for holding in holdings.values():
                holding.backend.close()
            ledger.close()
            raise
        return cls(holdings, ledger)

    def close(self) -> None:
        """Let go of the data and the ledger."""
        for holding in self.holdings.values():
            holding.backend.close()
        self.ledger.close()

    def __enter__(self) -> TrustedParty:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    # The way of a question.

    def query(self, sql: str, epsilon: Number, *, weights: Weights = None, analyst: str | None = None) -> Answer:
        """Answer a question for ``epsilon``, charged to the data set and to the analyst (None: the controller)."""
        plan = self.plan(sql, epsilon, weights)
        outcome = self.ledger.reserve(_request(plan, analyst))
        if isinstance(outcome, StoredAnswer):
            return self._answer(plan, outcome, analyst, stored=True)
        try:
            released = self.ledger.release(outcome, self._compute(plan))
        except Exception as error:
            self._failed(outcome, error)
            raise AnswerFailed from None
        return self._answer(plan, released, analyst, stored=False)

    def quote(self, sql: str, epsilon: Number, *, weights: Weights = None, analyst: str | None = None) -> Quote:
        """Say what a question would cost and promise; touches no data."""
        plan = self.plan(sql, epsilon, weights)
        price = self.ledger.price(_request(plan, analyst))
        balance = self.ledger.balance(plan.dataset.name, analyst)
        charged = price.charges_dataset if analyst is None else price.charges_analyst
        cost = plan.epsilon if charged else Fraction(0)
        before = balance.epsilon.remaining
        affordable = balance.epsilon.allows(cost) and balance.delta.allows(plan.delta if charged else Fraction(0))
        if price.charges_dataset and analyst is not None:
            whole_set = self.ledger.balance(plan.dataset.name)
            affordable &= whole_set.epsilon.allows(plan.epsilon) and whole_set.delta.allows(plan.delta)
        margins = [public_margin(plan, aggregate) for aggregate in plan.aggregates]
        by_label = _labelled(plan, margins)
        return Quote(
            dataset=plan.dataset.name,
            columns=tuple(output.label for output in plan.outputs),
            cost=cost,
            delta=plan.delta if charged else Fraction(0),
            split=_labelled(plan, [aggregate.epsilon for aggregate in plan.aggregates]),
            cells=len(plan.cells) * len(plan.aggregates),
            guarantee=plan.guarantee,
            remaining_before=before,
            remaining_after=None if before is None else before - cost,
            affordable=affordable,
            stored=price.stored,
            margins=by_label,
            margin_reasons=_margin_reasons(plan, by_label),
        )

    def inspect(self, sql: str, epsilon: Number, *, weights: Weights = None) -> Inspection:
        """Show the controller what lies behind a question; charges nothing and is recorded."""
        plan = self.plan(sql, epsilon, weights)
        self.ledger.inspected(_request(plan, None))
        reach = max(1, plan.dataset.protection.group)
        summaries = self.holdings[plan.dataset.name].backend.summarise(reaching(plan, reach))
        cells = []
        for cell, found in zip(plan.cells, summaries, strict=True):
            group = {key.label: key.values[i] for key, i in zip(plan.groups, cell, strict=True)}
            cells += [inspected(plan, number, seen, group, reach) for number, seen in enumerate(found)]
        return Inspection(tuple(cells))

    def plan(self, sql: str, epsilon: Number, weights: Weights = None) -> Plan:
        """Read and plan a question: public facts only."""
        question = read(sql, {name: holding.dataset for name, holding in self.holdings.items()})
        return make_plan(question, self.holdings[question.dataset].dataset, epsilon, weights)

    def _compute(self, plan: Plan) -> str:
        """Summarise, calibrate and draw every cell: what will be stored, as JSON."""
        summaries = self.holdings[plan.dataset.name].backend.summarise(plan)
        margins: list[Fraction | None] = [None] * len(plan.aggregates)
        cells = []
        for found in summaries:
            values: list[str | None] = [None] * len(plan.aggregates)
            for i, (aggregate, seen) in enumerate(zip(plan.aggregates, found, strict=True)):
                values[i], margins[i] = release(plan, aggregate, seen, self._source)
            cells.append(values)
        shown = {
            "dataset": plan.dataset.name,
            "version": plan.dataset.version,
            "guarantee": str(plan.guarantee),
            "statistics": [aggregate.label for aggregate in plan.aggregates],
            "groups": [
                {key.label: str(key.values[i]) for key, i in zip(plan.groups, cell, strict=True)} for cell in plan.cells
            ],
            "cells": cells,
            "margins": [None if margin is None else str(margin) for margin in margins],
        }
        return json.dumps(shown, ensure_ascii=False, separators=(",", ":"))

    def _answer(self, plan: Plan, released: StoredAnswer, analyst: str | None, *, stored: bool) -> Answer:
        """Show stored cells under the names of this question."""
        content = json.loads(released.answer)
        kinds = [kind_of(plan, aggregate) for aggregate in plan.aggregates]
        rows, exact_rows = [], []
        for cell, values in zip(plan.cells, content["cells"], strict=True):
            row: dict[str, Any] = {}
            exact_row: dict[str, str | None] = {}
            for output in plan.outputs:
                if output.group is not None:
                    key = plan.groups[output.group].values[cell[output.group]]
                    row[output.label] = key if isinstance(key, str) else _plain_number(key)
                    exact_row[output.label] = key if isinstance(key, str) else str(text(key))
                elif output.aggregate is not None:
                    value = values[output.aggregate]
                    row[output.label] = plain(value, kinds[output.aggregate])
                    exact_row[output.label] = value
            rows.append(row)
            exact_rows.append(exact_row)
        margins = _labelled(plan, [None if m is None else Fraction(m) for m in content["margins"]])
        return Answer(
            id=released.key[:16],
            dataset=plan.dataset.name,
            columns=tuple(output.label for output in plan.outputs),
            rows=tuple(rows),
            exact_rows=tuple(exact_rows),
            epsilon=plan.epsilon,
            delta=plan.delta,
            guarantee=plan.guarantee,
            remaining=self.ledger.balance(plan.dataset.name, analyst).epsilon.remaining,
            margins=margins,
            margin_reasons=_margin_reasons(plan, margins),
            stored=stored,
        )

    def _failed(self, reservation: Reservation, error: Exception) -> None:
        """Keep the reason where the controller finds it; the charge stays."""
        detail = f"{type(error).__name__}: {error}"
        log.error("question %s was charged and could not be answered: %s", reservation.key[:16], detail)
        try:
            self.ledger.fail(reservation, detail)
        except Exception as second:
            log.error("and the ledger could not record it: %s", second)


def _request(plan: Plan, analyst: str | None) -> Request:
    dataset = plan.dataset
    return Request(dataset.name, dataset.version, analyst, plan.normal_form, plan.epsilon, plan.delta)


def _margin_reasons(plan: Plan, margins: Mapping[str, Fraction | None]) -> dict[str, str]:
    reasons = {}
    for output in plan.outputs:
        if output.aggregate is not None and margins[output.label] is None:
            reason = unknown_margin(plan.aggregates[output.aggregate].choice)
            reasons[output.label] = (
                reason or "the scale follows from the number of records, which is not read before asking"
            )
    return reasons


def _labelled(plan: Plan, by_aggregate: Sequence[Any]) -> dict[str, Any]:
    return {output.label: by_aggregate[output.aggregate] for output in plan.outputs if output.aggregate is not None}


def _plain_number(value: Fraction) -> int | float:
    return int(value) if value.denominator == 1 else float(value)


def _version(source: Any) -> str:
    """The size and time of a file, never its content; a table in memory has no version of its own."""
    path = Path(str(source).partition("::")[0]) if isinstance(source, str | Path) else None
    if path is None or not path.exists():
        return "as opened"
    facts = path.stat()
    return f"{facts.st_size} bytes, {facts.st_mtime_ns} ns"

"""From what was released to the answer that a caller gets, and from a plan to a quote.

Both show public facts, what was released and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from idios.core.exact import text
from idios.core.neighbours import Neighbours
from idios.core.statistics import Count
from idios.core.statistics.order import OrderStatistic
from idios.ledger import Price, StoredAnswer
from idios.margins import describe_risk, list_margin_reasons, public_margin
from idios.model import Answer, Balance, Cost, Distance, Quote, ReleasedTable
from idios.model.answer import python_value
from idios.query.normal_form import describe_question
from idios.query.plan import Aggregate, Plan
from idios.release import kind_of


def make_answer(
    plan: Plan,
    table: ReleasedTable,
    *,
    id: str,
    balance: Balance | None = None,
    stored: bool = False,
    released: StoredAnswer | None = None,
) -> Answer:
    """The answer that a released table is to this question, or to another that means the same.

    ``balance`` is what is left to the caller; None: nothing is charged. ``released`` is its entry in the ledger.
    """
    kinds = [kind_of(plan, aggregate) for aggregate in plan.aggregates]
    rows, exact_rows = [], []
    for cell, values in zip(plan.cells, table.cells, strict=True):
        row: dict[str, Any] = {}
        exact_row: dict[str, str | None] = {}
        for output in plan.outputs:
            if output.group is not None:
                key = plan.groups[output.group].values[cell[output.group]]
                row[output.label] = key if isinstance(key, str) else _plain_number(key)
                exact_row[output.label] = key if isinstance(key, str) else str(text(key))
            elif output.aggregate is not None:
                value = values[output.aggregate]
                row[output.label] = python_value(value, kinds[output.aggregate])
                exact_row[output.label] = value
        rows.append(row)
        exact_rows.append(exact_row)
    margins = _by_label(plan, table.margins)
    return Answer(
        id=id,
        dataset=plan.dataset.name,
        columns=tuple(output.label for output in plan.outputs),
        rows=tuple(rows),
        exact_rows=tuple(exact_rows),
        epsilon=plan.epsilon,
        delta=Fraction(0),
        rho=plan.rho if plan.dataset.concentrated else None,
        guarantee=plan.guarantee,
        remaining=None if balance is None else balance.left,
        remaining_rho=None if balance is None or balance.rho is None else balance.rho.remaining,
        margins=margins,
        margin_reasons=list_margin_reasons(plan, margins),
        stored=stored,
        clipped_rows=tuple(_list_present(plan, limits) for limits in table.clipped),
        interval_rows=tuple(_list_present(plan, row) for row in table.intervals),
        question=describe_question(plan.normal_form),
        sql=plan.sql,
        version=table.version,
        time=None if released is None else released.time,
        sequence=None if released is None else released.sequence,
        check_rows=tuple(_check_row(plan, *row) for row in zip(table.checks, table.cells, strict=False)),
        types={
            output.label: kinds[output.aggregate] if output.aggregate is not None else _key_kind(plan, output.group)
            for output in plan.outputs
        },
    )


def _check_row(plan: Plan, noisy: Sequence[int | None], values: Sequence[str | None]) -> dict[str, Distance]:
    counted = [int(v) for a, v in zip(plan.aggregates, values, strict=True) if v and isinstance(a.statistic, Count)]
    distances = [
        None
        if value is None or aggregate.check is None
        else Distance(*aggregate.check.bound(value), _find_size(plan, aggregate, counted))
        for aggregate, value in zip(plan.aggregates, noisy, strict=True)
    ]
    return _list_present(plan, distances)


def _find_size(plan: Plan, aggregate: Aggregate, counted: Sequence[int]) -> int | None:
    """How many values an order statistic is of, where that is public or was counted: then records are percentiles."""
    if not isinstance(aggregate.statistic, OrderStatistic) or aggregate.neighbours is not Neighbours.REPLACE:
        return None
    if aggregate.whole and plan.dataset.size is not None:
        return plan.dataset.size
    return counted[0] if len(counted) == 1 and counted[0] > 0 else None


def make_quote(plan: Plan, price: Price, balance: Balance, *, charged: bool) -> Quote:
    """What a question would cost and promise; ``charged`` says whether the caller would pay for it."""
    margins = _by_label(plan, [public_margin(plan, aggregate) for aggregate in plan.aggregates])
    nothing = Cost(Fraction(0), Fraction(0), Fraction(0))
    full = Cost(plan.epsilon, Fraction(0), plan.rho, plan.pure)
    # Without a cap of their own an analyst is limited by the data set, which pays for a question once.
    takes = charged and (price.charges_dataset or balance.epsilon.budget is not None)
    after = balance.spend(full if takes else nothing)
    cost = full if charged else nothing
    return Quote(
        dataset=plan.dataset.name,
        columns=tuple(output.label for output in plan.outputs),
        cost=cost.epsilon,
        delta=cost.delta,
        rho=cost.rho,
        pure=cost.pure,
        split=_by_label(plan, [aggregate.epsilon for aggregate in plan.aggregates]),
        cells=len(plan.cells) * len(plan.aggregates),
        fitted=plan.fitted,
        least_epsilon=plan.least_epsilon,
        guarantee=plan.guarantee,
        remaining_before=balance.left,
        remaining_after=after.left,
        remaining_rho_before=None if balance.rho is None else balance.rho.remaining,
        remaining_rho_after=None if after.rho is None else after.rho.remaining,
        more=after.count_more(full),
        shortage=price.shortage,
        stored=price.stored,
        margins=margins,
        margin_reasons=list_margin_reasons(plan, margins),
        null_risks=_null_risks(plan),
        checks=plan.checks,
        checked_from=plan.checked_from,
    )


def _null_risks(plan: Plan) -> dict[str, str]:
    """By column, on how few values an answer is to be expected NULL or far off, where they may be so few."""
    return _list_present(plan, [describe_risk(aggregate, plan.dataset.size) or None for aggregate in plan.aggregates])


def _key_kind(plan: Plan, group: int | None) -> str:
    """The kind of a group's values: text, or the lower ends of bins."""
    values = () if group is None else plan.groups[group].values
    if any(isinstance(value, str) for value in values):
        return "category"
    return "integer" if all(Fraction(value).denominator == 1 for value in values) else "number"


def _by_label(plan: Plan, by_aggregate: Sequence[Any]) -> dict[str, Any]:
    return {output.label: by_aggregate[output.aggregate] for output in plan.outputs if output.aggregate is not None}


def _list_present(plan: Plan, by_aggregate: Sequence[Any]) -> dict[str, Any]:
    """By column, what is there."""
    return {label: value for label, value in _by_label(plan, by_aggregate).items() if value is not None}


def _plain_number(value: Fraction) -> int | float:
    return int(value) if value.denominator == 1 else float(value)

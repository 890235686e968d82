"""From what was released to the answer that a caller gets, and from a plan to a quote.

Both show public facts, what was released and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from idios.answer.intervals import StoredIntervals, describe_risk, list_margin_reasons, public_margin, widen_margins
from idios.answer.notes import count_in_words, list_advice, list_notes, list_public_notes, name_clipped
from idios.answer.projection import expect_margins, list_computed, show_table
from idios.core.exact import round_up_digits
from idios.core.neighbours import Neighbours
from idios.core.question_memory import one_question
from idios.core.statistics import Count
from idios.core.statistics.order import OrderStatistic
from idios.expressions.predicates import column_names
from idios.ledger import Price, StoredAnswer
from idios.model import Answer, Balance, Cost, Distance, Quote, ReleasedTable
from idios.model.released import Limits
from idios.plan.question import Aggregate, Plan
from idios.plan.question_words import describe_question
from idios.plan.reductions import KEY, SPREAD, SPREAD_VALUES, ReducedValue
from idios.sql.names import quote


@one_question()
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
    shown = show_table(plan, table)
    stored_intervals = StoredIntervals(plan, table)
    margins = shown.list_margins(widen_margins(plan, table.margins))
    return Answer(
        id=id,
        dataset=plan.dataset.name,
        columns=tuple(column.label for column in shown.columns),
        exact_rows=(),
        by_column=shown.values,
        epsilon=plan.epsilon,
        delta=Fraction(0),
        rho=plan.rho if plan.dataset.concentrated else None,
        guarantee=plan.guarantee,
        remaining=None if balance is None else balance.left,
        remaining_rho=None if balance is None or balance.rho is None else balance.rho.remaining,
        margins=margins,
        margin_reasons=shown.list_margin_reasons(margins),
        stored=stored,
        clipped_rows=shown.pick_rows([_by_number(limits) for limits in table.clipped], join=_join_limits),
        interval_rows=shown.list_intervals(table),
        question=describe_question(plan.form),
        sql=plan.sql,
        version=table.version,
        time=None if released is None else released.time,
        sequence=None if released is None else released.sequence,
        check_rows=shown.pick_rows(
            [_check_row(plan, stored_intervals, cell, shown.parts) for cell in range(len(table.checks))]
        ),
        types={column.label: column.kind for column in shown.columns},
        used=tuple(shown.used),
        clipped_values=name_clipped(plan, shown) if table.clipped else {},
        clipped_from=shown.list_clipped_sources() if table.clipped else {},
        notes=list_notes(plan, shown, table),
    )


def _by_number(row: Sequence[Any]) -> dict[int, Any]:
    """By number of the aggregate, what is there."""
    return {number: value for number, value in enumerate(row) if value is not None}


def _join_limits(pairs: Sequence[Limits]) -> Limits:
    """The least and the greatest limit of several cells: what lies outside was clipped in each of them."""
    return min(low for low, _ in pairs), max(high for _, high in pairs)


def _check_row(plan: Plan, stored: StoredIntervals, cell: int, parts: Mapping[int, int]) -> dict[int, Distance]:
    """The distance of each value, as it holds with 95 % for all parts of a computed column together."""
    distances: list[Distance | None] = []
    for i, (aggregate, noisy) in enumerate(zip(plan.aggregates, stored.table.checks[cell], strict=True)):
        if noisy is None or aggregate.check is None:
            distances.append(None)
            continue
        unit = plan.dataset.unit_word
        if aggregate.neighbours is Neighbours.ADD_REMOVE:
            unit = f"added or removed {unit}"
        percentiles = _find_percentiles(plan, stored, cell, aggregate, noisy, parts.get(i, 1))
        distances.append(Distance(*aggregate.check.bound(noisy, parts.get(i, 1)), percentiles, unit))
    return _by_number(distances)


def _find_percentiles(
    plan: Plan, stored: StoredIntervals, cell: int, aggregate: Aggregate, noisy: int, parts: int
) -> tuple[Fraction, Fraction] | None:
    """How many percent of its values the rank of an order statistic is off, where their number is told.

    A number that is drawn too is within its interval with half of the 5 %, and the distance with the other half.
    """
    if not isinstance(aggregate.statistic, OrderStatistic) or aggregate.neighbours is not Neighbours.REPLACE:
        return None
    if aggregate.check is None:
        raise AssertionError("only a checked answer is told how far off it is")
    sizes = (plan.dataset.size, plan.dataset.size)
    if not aggregate.whole or plan.dataset.size is None:
        counted = {each.column: i for i, each in enumerate(plan.aggregates) if isinstance(each.statistic, Count)}
        column = aggregate.column
        if column not in counted and column is not None and not plan.dataset.columns[column].nullable:
            column = None
        parts = 2 * parts
        found = (
            stored.find(cell, counted[column], parts * plan.count_choices(counted[column]))
            if column in counted
            else None
        )
        sizes = (None, None) if found is None else (int(found[0]), int(found[1]))
    (low, high), (least, most) = aggregate.check.bound(noisy, parts), sizes
    if low is None or high is None or not least or not most:
        return None
    ends = Fraction(-100 * low, least if low < 0 else most), Fraction(100 * high, least if high > 0 else most)
    return -round_up_digits(ends[0], 2), round_up_digits(ends[1], 2)


@one_question()
def make_quote(plan: Plan, price: Price, balance: Balance, *, charged: bool) -> Quote:
    """What a question would cost and promise; ``charged`` says whether the caller would pay for it."""
    margins = _by_label(plan, [public_margin(plan, i) for i in range(len(plan.aggregates))])
    nothing = Cost(Fraction(0), Fraction(0), Fraction(0))
    full = Cost(plan.epsilon, Fraction(0), plan.rho, plan.pure)
    # Without a cap of their own an analyst is limited by the data set, which pays for a question once.
    takes = charged and (price.charges_dataset or balance.epsilon.budget is not None)
    after = balance.spend(full if takes else nothing)
    cost = full if charged else nothing
    return Quote(
        dataset=plan.dataset.name,
        columns=tuple(item.label for item in plan.shown[-1].items),
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
        computed=list_computed(plan),
        computed_margins=expect_margins(plan),
        reduction=describe_reduction(plan),
        notes=(*list_public_notes(plan), *list_advice(plan)),
    )


def describe_reduction(plan: Plan) -> str:
    """What each person is reduced to, which is never released; empty where a question is about records."""
    reduction = plan.dataset.reduction
    if reduction is None:
        return ""
    named = [aggregate.column for aggregate in plan.aggregates] + [group.column for group in plan.groups]
    used = {name for name in named if name} | column_names(plan.filter)
    word, read = plan.dataset.unit_word, [value for value in reduction.values if value.name in used]
    names = ", ".join(
        _describe_value(value, joined=reduction.join is not None) for value in read if value.function != KEY
    )
    if reduction.rows is not None:
        kept = f"at most {reduction.rows} rows of each {word}"
        return f"{kept} are read{f', their {names}' if names else ''}, and never released"
    if reduction.keys:
        keys = " and ".join(reduction.keys)
        word = f"{word} in at most {reduction.groups} groups of {keys}"
    return f"the rows of each {word} to {names or f'one {plan.dataset.unit_word}'}, which is never released"


def _describe_value(value: ReducedValue, *, joined: bool) -> str:
    """A person's value as it is written; in a join a column has the name of its table and its own."""
    table, dot, own = (value.column or "").partition(".")
    column = f"{quote(table)}.{quote(own)}" if joined and dot else value.column
    if value.function == SPREAD:
        return f"{SPREAD_VALUES} evenly spaced {column}"
    return value.write_cap(f"{value.function}({column})") if joined and dot else value.name


def _null_risks(plan: Plan) -> dict[str, str]:
    """By column, on how few values an answer is to be expected NULL or far off, where they may be so few."""
    size, words = plan.dataset.size, count_in_words(plan)
    return _list_present(plan, [describe_risk(each, size, words, plan.asked) or None for each in plan.aggregates])


def _by_label(plan: Plan, by_aggregate: Sequence[Any]) -> dict[str, Any]:
    return {label: by_aggregate[number] for label, number in plan.measures}


def _list_present(plan: Plan, by_aggregate: Sequence[Any]) -> dict[str, Any]:
    """By column, what is there."""
    return {label: value for label, value in _by_label(plan, by_aggregate).items() if value is not None}

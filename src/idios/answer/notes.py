"""What an answer says about itself: what was measured, where it is far off, who is in no group.

Every note follows from the declaration, the question and what is released with it, so it costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from idios.answer.intervals import WITH_INTERVALS, describe_risk, find_drawn_limits, find_least_size
from idios.answer.projection import Shown
from idios.core.calibration import Method
from idios.core.domain import Categories
from idios.core.neighbours import VALUES, Counted, Neighbours, to_plural
from idios.core.statistics import Count, Sum
from idios.display import format_value, shorten_list
from idios.model import ReleasedTable
from idios.plan.question import Aggregate, Plan
from idios.plan.question_words import put_into_words
from idios.plan.reductions import SEVERAL, SPREAD_VALUES, describe_value

COLLAPSED = (
    "NULL, as the drawn limits found too few values for this ε, or all of them are the same. A larger ε, fewer "
    "statistics in one question, or declared bounds would do"
)


def list_notes(plan: Plan, shown: Shown, table: ReleasedTable) -> tuple[str, ...]:
    """What is said below an answer, a sentence each."""
    labels = {number: label for label, number in reversed(shown.list_measures().items())}
    risks = (_describe_risk(plan, shown, table, label, number) for number, label in sorted(labels.items()))
    clipped = (_describe_clipped(plan, shown, table, label, number) for number, label in sorted(labels.items()))
    missing = (_explain_null(plan, shown, table, label, number) for number, label in sorted(labels.items()))
    return (*filter(None, risks), *filter(None, clipped), *filter(None, missing), *list_public_notes(plan))


def list_public_notes(plan: Plan) -> tuple[str, ...]:
    """What is known before asking: which rows are shown and why, what statistics are of, and who is in no group."""
    return (*_describe_choice(plan), *_describe_counting(plan), *_describe_people(plan), *_describe_missing_keys(plan))


def list_advice(plan: Plan) -> tuple[str, ...]:
    """Which form of a question would be answered more accurately, before it is asked."""
    clipped = {number for number, a in enumerate(plan.aggregates) if a.choice.clipping and isinstance(a.statistic, Sum)}
    if len(clipped) < 2 or not plan.groups:
        return ()
    share = 1 / len(plan.aggregates)
    return (
        f"Each statistic has a share of ε, {share:.0%} if they are equal. One SUM by a further key that tells the sums "
        f"apart would have all of it.",
    )


def count_in_words(plan: Plan) -> Counted:
    """What the records behind a statistic are called: values, or people of whom each has several."""
    counted = plan.dataset.counted
    return counted if counted.each > 1 else VALUES


def name_clipped(plan: Plan, shown: Shown) -> dict[str, str]:
    """By statistic, which value of a person was clipped; those of records are not named."""
    named = {label: _name_owned(plan, plan.aggregates[number]) for label, number in shown.list_measures().items()}
    return {label: owned for label, owned in named.items() if owned}


# Where an answer is far off.


def _describe_risk(plan: Plan, shown: Shown, table: ReleasedTable, label: str, number: int) -> str:
    """On how few values it is far off, and which rows count fewer, as far as the same answer counts them."""
    aggregate = plan.aggregates[number]
    least = find_least_size(aggregate, plan.dataset.size)
    if least is None or aggregate.choice.clipping is not None:
        return ""  # of clipped values, what was drawn tells it
    risk = f"{format_value(label)} may be {describe_risk(aggregate, plan.dataset.size, count_in_words(plan))}"
    counts = _count_values(plan, table, number)
    few = {cell: counts[cell] for cell in _list_cells(shown) if counts and counts[cell] < least}
    if not few:
        return f"{risk}."
    if not plan.groups:
        return f"{risk}, as here, where {next(iter(few.values())):,} are counted."
    return f"{risk}, as in {shorten_list(f'{_name_cell(plan, cell)} ({few[cell]:,})' for cell in few)}."


def _count_values(plan: Plan, table: ReleasedTable, number: int) -> list[int]:
    """By cell, how many values a statistic is of, or no fewer records than it has values; empty where nothing tells.

    What counts them is a COUNT of the same question, or else the noisy count behind a mean or a variance.
    """
    counters = {each.column: number for number, each in enumerate(plan.aggregates) if isinstance(each.statistic, Count)}
    counter = counters.get(plan.aggregates[number].column, counters.get(None))
    if counter is not None:
        return [int(count or 0) for count in table.list_values(counter)]
    sums = [row[number] for row in table.noisy_sums]
    return [max(0, each[-1]) if each else 0 for each in sums] if any(sums) else []  # no answer, no values counted


def _explain_null(plan: Plan, shown: Shown, table: ReleasedTable, label: str, number: int) -> str:
    """Why there may be no answer, and what helps, where there is none."""
    aggregate, values = plan.aggregates[number], table.list_values(number)
    risk = describe_risk(aggregate, plan.dataset.size, count_in_words(plan))
    unanswered = any(values[cell] is None for cell in _list_cells(shown))
    if aggregate.choice.method is not Method.INVERSE or not risk or not unanswered:
        return ""
    return f"{format_value(label)}: {risk}. With a larger ε{' or fewer groups' if plan.groups else ''} fewer suffice."


def _describe_clipped(plan: Plan, shown: Shown, table: ReleasedTable, label: str, number: int) -> str:
    """How many values were clipped, and why there is no answer or no interval where that is so."""
    limits = find_drawn_limits(plan.aggregates[number], table, number)
    name, values = format_value(label), table.list_values(number)
    if limits is None:  # no counts are told of tables of before
        ends = [row[number] for row in table.clipped]
        found = [cell for cell in _list_cells(shown) if ends and (pair := ends[cell]) and pair[0] == pair[1]]
        named = f"{name} of {shorten_list(_name_cell(plan, cell) for cell in found)}" if plan.groups else name
        return f"{named}: {COLLAPSED}." if found else ""
    if limits.collapsed:
        return f"{name}: {COLLAPSED}."
    told = f"{name}: about {max(limits.clipped, 0):,} of {max(limits.size, 0):,} values were clipped"
    if limits.crowded:
        told += ", too many for an interval" if limits.many else ", perhaps by far, so that there is no interval"
        told += ": the true value may be far off. A larger ε or declared bounds would do"
    few = [cell for cell in _list_cells(shown) if values[cell] is None]
    if few and plan.groups:
        told += f". NULL is {shorten_list(_name_cell(plan, cell) for cell in few)}, where too few values are counted"
    elif few:
        told += ". It is NULL, as too few values are counted"
    return f"{told}."


def _list_cells(shown: Shown) -> Sequence[int]:
    """The cells that rows are of, in the order of the rows."""
    return list(dict.fromkeys(cell for origin in shown.origins for cell in origin))


def _name_cell(plan: Plan, cell: int) -> str:
    keys = (plan.groups[group].values[plan.cells[cell][group]] for group in plan.keys)
    return " · ".join(map(format_value, keys))


# What was chosen, and what is counted.


def _describe_choice(plan: Plan) -> Iterator[str]:
    """By what it is decided which rows are shown, where that is drawn, and how often their intervals hold then."""
    labels: dict[int, str] = {}
    for label, number in plan.measures:
        if number in plan.choosing:
            labels.setdefault(number, format_value(label))
    if not labels:
        return
    yield f"Rows are chosen by {_list(labels.values())} as released, noise included: the truth might choose others."
    keys = len(plan.keys)
    if plan.checked is not None or any(
        select.folds is not None and any(place >= keys for place in traced.folding)
        for select, traced in zip(plan.shown, plan.traced, strict=True)
    ):
        return  # nothing has an interval
    shown = {plan.measures[place - keys][1] for c in plan.traced[-1].columns for place in c.uses if place >= keys}
    sure = [
        label
        for number, label in labels.items()
        if number in shown and plan.aggregates[number].choice.method in WITH_INTERVALS
    ]
    if not sure:
        return
    held = "in 95 % of all draws none that is shown is wrong"
    # two statistics have 5 % each
    held = held if len(sure) == 1 else f"{held}, of each statistic by itself"
    at = f"1 − 0.05/{len(plan.cells):,}" if len(plan.cells) > 1 else "95 %"
    yield f"Intervals of {_list(sure)} are each at {at}: {held}."


def _describe_counting(plan: Plan) -> Iterator[str]:
    """What checks count where records move between groups."""
    moving = plan.dataset.neighbours is Neighbours.REPLACE
    if moving and any(each.check and each.neighbours is Neighbours.ADD_REMOVE for each in plan.aggregates):
        several = to_plural(plan.dataset.unit_word)
        yield f"How far off an answer is, is counted in {several} added or removed: a replaced one counts twice."


def _list(names: Iterable[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


# What an answer is of.


def _describe_people(plan: Plan) -> Iterator[str]:
    """What statistics are of where each person's rows are reduced to one value first."""
    reduction, word = plan.dataset.reduction, plan.dataset.unit_word
    if reduction is None:
        return
    if reduction.spread:
        yield f"Each {word} counts alike: their rows are read as {SPREAD_VALUES} evenly spaced values."
        return
    words = put_into_words(plan.form)
    named = {label: words[n] for label, n in plan.measures if _differs_from_rows(plan, plan.aggregates[n])}
    if named:
        yield "; ".join(f"{format_value(label)} is the {of}" for label, of in named.items()) + "."
    for name, form in {group.column: reduction.find(group.column).form for group in plan.groups}.items():
        if len(form) > 2:
            yield f"{format_value(plan.dataset.label_column(name))} is each {word}'s {describe_value(*form)}."


def _name_owned(plan: Plan, aggregate: Aggregate) -> str:
    """Which value of a person a statistic is of; empty where it is of records."""
    reduction = plan.dataset.reduction
    if reduction is None or aggregate.column is None or isinstance(aggregate.statistic, Count):
        return ""
    value = reduction.find(aggregate.column)
    if value.function in SEVERAL:
        return ""
    return f"each {plan.dataset.unit_word}'s {describe_value(*value.form)}"


def _differs_from_rows(plan: Plan, aggregate: Aggregate) -> bool:
    """Whether it is of a value of each person; a sum of their sums is that of the rows, unless these are capped."""
    reduction = plan.dataset.reduction
    if reduction is None or aggregate.column is None or not _name_owned(plan, aggregate):
        return False
    value = reduction.find(aggregate.column)
    return not isinstance(aggregate.statistic, Sum) or value.form != ("SUM", value.column)


def _describe_missing_keys(plan: Plan) -> Iterator[str]:
    """Whom no group has, as a key may be missing by declaration."""
    reduction = plan.dataset.reduction
    for group in plan.groups:
        column, several = plan.dataset.columns[group.column], "records"
        if reduction is not None:
            value = reduction.find(group.column)
            several = to_plural(plan.dataset.unit_word)
            if value.function in SEVERAL and reduction.base is not None and value.column is not None:
                column, several = reduction.base[value.column], "rows"
        if column.nullable:
            name = plan.dataset.label_column(group.column)
            missing = "missing or not declared" if isinstance(column.domain, Categories) else "missing"
            yield f"{several.capitalize()} whose {format_value(name)} is {missing} are in no group."

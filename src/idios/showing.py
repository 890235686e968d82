"""Released cells and prices, shown under the names that a question gives them; public facts and nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from idios.answer import Answer, Quote, kind_of, plain, unknown_margin
from idios.core.exact import text
from idios.query.plan import Plan
from idios.releasing import public_margin


@dataclass(frozen=True)
class Standing:
    """How a question stands with the account: what it costs the caller, what is left, what is too little for it.

    ``taken`` is what the question would take from what is left.
    """

    cost: Fraction
    delta: Fraction
    remaining: Fraction | None
    taken: Fraction
    shortage: str | None
    stored: bool


def answer(plan: Plan, content: str, *, id: str, remaining: Fraction | None, stored: bool) -> Answer:
    """Show what ``releasing.compute`` wrote down, for this question or another that means the same."""
    released = json.loads(content)
    kinds = [kind_of(plan, aggregate) for aggregate in plan.aggregates]
    rows, exact_rows = [], []
    for cell, values in zip(plan.cells, released["cells"], strict=True):
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
    margins = _labelled(plan, [None if m is None else Fraction(m) for m in released["margins"]])
    return Answer(
        id=id,
        dataset=plan.dataset.name,
        columns=tuple(output.label for output in plan.outputs),
        rows=tuple(rows),
        exact_rows=tuple(exact_rows),
        epsilon=plan.epsilon,
        delta=plan.delta,
        guarantee=plan.guarantee,
        remaining=remaining,
        margins=margins,
        margin_reasons=_margin_reasons(plan, margins),
        stored=stored,
        types={
            output.label: kinds[output.aggregate] if output.aggregate is not None else _key_kind(plan, output.group)
            for output in plan.outputs
        },
    )


def quote(plan: Plan, standing: Standing) -> Quote:
    """Show what a question would cost and promise."""
    margins = _labelled(plan, [public_margin(plan, aggregate) for aggregate in plan.aggregates])
    before = standing.remaining
    return Quote(
        dataset=plan.dataset.name,
        columns=tuple(output.label for output in plan.outputs),
        cost=standing.cost,
        delta=standing.delta,
        split=_labelled(plan, [aggregate.epsilon for aggregate in plan.aggregates]),
        cells=len(plan.cells) * len(plan.aggregates),
        fitted=plan.fitted,
        least_epsilon=plan.least_epsilon,
        guarantee=plan.guarantee,
        remaining_before=before,
        remaining_after=None if before is None else before - standing.taken,
        shortage=standing.shortage,
        stored=standing.stored,
        margins=margins,
        margin_reasons=_margin_reasons(plan, margins),
    )


def _key_kind(plan: Plan, group: int | None) -> str:
    """The kind of a group's values: text, or the lower ends of bins."""
    values = () if group is None else plan.groups[group].values
    if any(isinstance(value, str) for value in values):
        return "category"
    return "integer" if all(Fraction(value).denominator == 1 for value in values) else "number"


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

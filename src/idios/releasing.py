"""From a plan to what is released: summarise, and of every cell calibrate, draw, keep within public limits, write down.

Margins are told only where the scale of the noise is public.
"""

from __future__ import annotations

import json
from fractions import Fraction

from idios.answer import kind_of, written
from idios.backends.base import Backend, CancellationToken
from idios.core.calibration import Added, Mechanism, Method, calibrate
from idios.core.distributions import DiscreteLaplace
from idios.core.domain import Categories
from idios.core.neighbours import Moves
from idios.core.sampling import Source
from idios.core.summary import Summary
from idios.query.plan import Aggregate, Plan


def compute(
    plan: Plan, backend: Backend, cancellation: CancellationToken | None = None, source: Source | None = None
) -> str:
    """Everything that is released of a plan, as JSON, cell by cell in the plan's own order."""
    margins: list[Fraction | None] = [None] * len(plan.aggregates)
    cells = []
    for found in backend.summarise(plan, cancellation):
        if cancellation is not None:
            cancellation.check()
        values: list[str | None] = [None] * len(plan.aggregates)
        for i, (aggregate, seen) in enumerate(zip(plan.aggregates, found, strict=True)):
            values[i], margins[i] = release(plan, aggregate, seen, source)
        cells.append(values)
    content = {
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
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))


def release(
    plan: Plan, aggregate: Aggregate, seen: Summary, source: Source | None
) -> tuple[str | None, Fraction | None]:
    """Draw the value of one cell, as text (None is NULL), and its margin where that is public."""
    mechanism = calibrated(plan, aggregate, seen)
    drawn = mechanism.draw(source)
    margin = _margin(plan, aggregate, mechanism)
    if drawn is None:
        return None, margin
    if isinstance(aggregate.domain, Categories):
        return aggregate.domain.values[drawn], margin
    statistic, fineness = aggregate.statistic, plan.dataset.protection.fineness
    low, high = (statistic.place(end, fineness) for end in statistic.range(aggregate.grid))
    value = Fraction(min(max(drawn, low), high)) * statistic.answer_step(aggregate.grid, fineness)
    column = plan.dataset.columns[aggregate.column].kind if aggregate.column is not None else None
    return written(value, kind_of(plan, aggregate), column), margin


def calibrated(plan: Plan, aggregate: Aggregate, summary: Summary) -> Mechanism:
    """What is drawn from."""
    return calibrate(aggregate.choice, aggregate.statistic, summary, plan.dataset.protection)


def public_margin(plan: Plan, aggregate: Aggregate) -> Fraction | None:
    """The margin as far as it is known without the data: where the sensitivity does not depend on the size."""
    choice, statistic = aggregate.choice, aggregate.statistic
    if not statistic.always_global:
        return None
    moves = Moves(plan.dataset.neighbours, 1, None if aggregate.whole else 0)
    known = statistic.global_sensitivity(aggregate.grid, moves)
    if known is None:
        return None
    scale = Fraction(known) / choice.epsilon if choice.epsilon else Fraction(0)
    return _margin(plan, aggregate, Added(0, DiscreteLaplace(scale)))


def _margin(plan: Plan, aggregate: Aggregate, mechanism: Mechanism) -> Fraction | None:
    """The 95 % half-width of noise whose scale is public."""
    choice, statistic = aggregate.choice, aggregate.statistic
    if choice.method not in (Method.EXACT, Method.GLOBAL) or not isinstance(mechanism, Added):
        return None
    step = statistic.answer_step(aggregate.grid, plan.dataset.protection.fineness)
    return mechanism.noise.central_interval(0.95)[1] * step

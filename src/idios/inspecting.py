"""What lies behind a question, exact and in the column's units: for the controller alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from idios.backends.base import Found
from idios.core.calibration import Added, Mechanism, Method, expected_error
from idios.core.domain import Categories
from idios.core.exact import Extended, text
from idios.core.statistics import Mode
from idios.core.summary import Summary
from idios.query.plan import Aggregate, Plan
from idios.release import calibrate_cell


@dataclass(frozen=True)
class InspectedCell:
    """The truth about one cell, exact and in the column's units: for the controller alone.

    ``expected_error`` is the mean distance between the true value and an answer (a float, for people to read).
    """

    group: Mapping[str, Any]
    statistic: str
    value: Extended | str | None
    lows: tuple[Extended, ...]
    highs: tuple[Extended, ...]
    local_sensitivity: Extended | None
    noise: Mapping[str, Any]
    level: str
    expected_error: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """The cell for JSON; exact numbers are text."""
        return {
            "group": {key: str(value) for key, value in self.group.items()},
            "statistic": self.statistic,
            "value": self.value if isinstance(self.value, str) else text(self.value),
            "lows": [text(low) for low in self.lows],
            "highs": [text(high) for high in self.highs],
            "local_sensitivity": text(self.local_sensitivity),
            "noise": {
                key: value if isinstance(value, str) or value is None else text(value)
                for key, value in self.noise.items()
            },
            "level": self.level,
            "expected_error": self.expected_error,
        }


@dataclass(frozen=True)
class Inspection:
    """What lies behind a question; with one cell its fields can be read off the inspection itself."""

    cells: tuple[InspectedCell, ...]

    def __getattr__(self, name: str) -> Any:
        if name in InspectedCell.__dataclass_fields__:
            if len(self.cells) != 1:
                raise AttributeError(
                    f"{name} is for inspections of one cell; this one has {len(self.cells)}, see cells"
                )
            return getattr(self.cells[0], name)
        raise AttributeError(name)

    def to_dict(self) -> dict[str, Any]:
        """The inspection for JSON."""
        return {"cells": [cell.to_dict() for cell in self.cells]}


def reaching(plan: Plan, distance: int) -> Plan:
    """The plan with every envelope known at least out to ``distance``."""
    return replace(plan, aggregates=tuple(_further(aggregate, distance) for aggregate in plan.aggregates))


def _further(aggregate: Aggregate, distance: int) -> Aggregate:
    choice = aggregate.choice
    if choice is None or choice.distance >= distance:
        return aggregate
    return replace(aggregate, choice=replace(choice, distance=distance))


def inspected(plan: Plan, number: int, seen: Found, group: Mapping[str, Any], reach: int) -> InspectedCell:
    """One cell of the plan's aggregate of that number, its envelope out to ``reach``."""
    aggregate, protection = plan.aggregates[number], plan.dataset.protection
    statistic = aggregate.statistic
    label = next(output.label for output in plan.outputs if output.aggregate == number)
    if not isinstance(seen, Summary) or isinstance(statistic, Mode):
        values = aggregate.domain.values if isinstance(aggregate.domain, Categories) else ()
        counts = seen if isinstance(seen, tuple) else ()
        most = values[counts.index(max(counts))] if any(counts) else None
        noise = {"distribution": "exponential mechanism", "scale": None, "epsilon": aggregate.epsilon}
        return InspectedCell(group, label, most, (), (), None, noise, protection.level.value)
    envelope = statistic.envelope(seen, reach, protection.fineness)
    step = statistic.answer_step(seen.domain, protection.fineness)
    mechanism = calibrate_cell(plan, aggregate, seen)
    return InspectedCell(
        group=group,
        statistic=label,
        value=None if envelope.value is None else envelope.value * step,
        lows=tuple(_scaled(low, step) for low in envelope.lows),
        highs=tuple(_scaled(high, step) for high in envelope.highs),
        local_sensitivity=_scaled(envelope.local_sensitivity, step),
        noise=_noise(mechanism, aggregate, step),
        level=protection.level.value,
        expected_error=expected_error(mechanism, envelope.value, step),
    )


def _noise(mechanism: Mechanism, aggregate: Aggregate, step: Fraction) -> dict[str, Any]:
    noise: dict[str, Any] = {"distribution": "none", "scale": None, "epsilon": aggregate.epsilon}
    if isinstance(mechanism, Added):
        noise |= {"distribution": "discrete Laplace", "scale": mechanism.noise.scale * step}
    elif aggregate.choice is not None and aggregate.choice.method in (Method.INVERSE, Method.REFUSING):
        noise |= {"distribution": aggregate.choice.method.value}
    return noise


def _scaled(value: Extended, step: Fraction) -> Extended:
    return value if isinstance(value, float) else value * step

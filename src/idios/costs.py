"""The cost of protection: how far off one question's answers would be at each level; for the controller alone.

Expected errors follow from the true values and the sensitivities at the actual data. They are no statistics that may be
shown to analysts, and looking at them is recorded as an inspection.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from idios.backends.base import Found
from idios.core.calibration import Level, Method
from idios.core.distributions import InverseSensitivity
from idios.core.exact import Number
from idios.core.statistics import Mode
from idios.core.summary import Summary
from idios.errors import InvalidInput, Unanswerable
from idios.inspecting import inspected, reaching
from idios.query.plan import Plan
from idios.query.planner import plan as make_plan
from idios.query.question import Question
from idios.query.schema import Dataset
from idios.query.shares import Weights
from idios.release import calibrate_cell

GROUP = 5
DELTA = Fraction(1, 10**6)
LEVELS: Mapping[str, Mapping[str, Any]] = {
    "individual": {"level": Level.INDIVIDUAL, "group": 1, "delta": Fraction(0)},
    f"group of {GROUP}": {"level": Level.GROUP, "group": GROUP, "delta": Fraction(0)},
    "differential": {"level": Level.DIFFERENTIAL, "group": 1, "delta": Fraction(0)},
    f"differential, δ = {float(DELTA)}": {"level": Level.DIFFERENTIAL, "group": 1, "delta": DELTA},
}
"""What is compared, and what of a data set's protection each changes."""

MOST_CELLS = 24
"""More than a controller would read, and each is computed at every level."""


@dataclass(frozen=True)
class Cost:
    """One statistic of one cell at one level: E|answer − truth| of an answer, in the column's units.

    None where there is no such number, and ``note`` says why.
    """

    statistic: str
    group: Mapping[str, Any]
    level: str
    expected_error: float | None
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The row for JSON."""
        return {
            "statistic": self.statistic,
            "group": {key: str(value) for key, value in self.group.items()},
            "level": self.level,
            "expected_error": self.expected_error,
            "note": self.note,
        }


@dataclass(frozen=True)
class Costs:
    """What protection costs one question: a row for every cell, statistic and level, in this order."""

    rows: tuple[Cost, ...]

    def to_dict(self) -> dict[str, Any]:
        """The costs for JSON."""
        return {"rows": [row.to_dict() for row in self.rows]}


@dataclass(frozen=True)
class Plans:
    """One question planned at every level, or why a level refuses it; at least one does not."""

    by_level: Mapping[str, Plan | str]

    @property
    def some(self) -> Plan:
        """Any of the plans: they differ in the noise alone."""
        return next(plan for plan in self.by_level.values() if isinstance(plan, Plan))

    @property
    def furthest(self) -> Plan:
        """A plan whose summaries serve every level."""
        plans = [plan for plan in self.by_level.values() if isinstance(plan, Plan)]
        distances = (a.choice.distance for plan in plans for a in plan.aggregates if a.choice is not None)
        return reaching(self.some, max(distances, default=0))


def at_every_level(question: Question, dataset: Dataset, epsilon: Number, weights: Weights = None) -> Plans:
    """Plan a question at every level; public facts only."""
    found: dict[str, Plan | str] = {}
    refusals: list[InvalidInput | Unanswerable] = []
    for name, changes in LEVELS.items():
        changed = replace(dataset, protection=replace(dataset.protection, **changes))
        try:
            found[name] = make_plan(question, changed, epsilon, weights)
        except (InvalidInput, Unanswerable) as refusal:
            found[name] = f"refused: {refusal}"
            refusals.append(refusal)
    if len(refusals) == len(LEVELS):
        if isinstance(refusals[0], InvalidInput):
            raise refusals[0]
        raise Unanswerable(f"no level answers this question. {found[next(iter(LEVELS))]}")
    plans = Plans(found)
    cells = len(plans.some.cells) * len(plans.some.aggregates)
    if cells > MOST_CELLS:
        raise InvalidInput(
            f"the question releases {cells:,} cells, and costs are compared for at most {MOST_CELLS}: ask for fewer "
            "groups or statistics"
        )
    return plans


def costs(plans: Plans, summaries: Sequence[Sequence[Found]]) -> Costs:
    """The expected errors at every level, from the summaries of the furthest plan."""
    rows = []
    shown = plans.some
    for cell, found in zip(shown.cells, summaries, strict=True):
        group = {key.label: key.values[i] for key, i in zip(shown.groups, cell, strict=True)}
        for number, seen in enumerate(found):
            rows += [_cost(level, plan, shown, number, seen, group) for level, plan in plans.by_level.items()]
    return Costs(tuple(rows))


def _cost(level: str, plan: Plan | str, shown: Plan, number: int, seen: Found, group: Mapping[str, Any]) -> Cost:
    label = next(output.label for output in shown.outputs if output.aggregate == number)
    if isinstance(plan, str):
        return Cost(label, group, level, None, plan)
    error = inspected(plan, number, seen, group, max(1, plan.dataset.protection.group)).expected_error
    return Cost(label, group, level, error, _note(plan, number, seen, error))


def _note(plan: Plan, number: int, seen: Found, error: float | None) -> str:
    aggregate = plan.aggregates[number]
    if isinstance(aggregate.statistic, Mode) or not isinstance(seen, Summary):
        return "a category is named, which is right or wrong but not off by a number"
    mechanism = calibrate_cell(plan, aggregate, seen)
    if isinstance(mechanism, InverseSensitivity) and mechanism.refusal_probability > 0:
        return f"NULL with probability {mechanism.refusal_probability:.3g}; the error is that of an answer"
    if aggregate.choice is not None and aggregate.choice.method is Method.EXACT:
        return "publicly known"
    if error is None:
        return "NULL: too few records are selected for an answer"
    return ""

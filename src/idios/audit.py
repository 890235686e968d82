"""What the controller sees behind a question: the truth and the noise, and what each level of protection costs.

Expected errors follow from the true values and the sensitivities at the actual data. They must not be shown to
analysts, and looking at them is recorded as an inspection. ``idios compare`` computes its levels here too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from idios.answer.intervals import find_public_range
from idios.answer.projection import show_truth
from idios.answer.release import calibrate_plan, clip_values
from idios.core.calibration import Added, Level, Mechanism, Method, Protection, Silent, expected_error
from idios.core.distributions import DiscreteGaussian, DiscreteLaplace, InverseSensitivity
from idios.core.domain import Categories, Kind
from idios.core.exact import Extended, Number, round_root_up
from idios.core.multiples import SINGLE, Multiples, describe_multiples, linear_multiples
from idios.core.question_memory import one_question
from idios.core.sampling import SeededSource
from idios.core.statistics import Median, Statistic
from idios.core.summary import Summary
from idios.data.backend import Backend
from idios.declare.schema import Dataset
from idios.errors import InvalidInput, Unanswerable
from idios.model.inspection import Costs, InspectedCell, Inspection, LevelCost
from idios.plan.planner import make_plan
from idios.plan.question import Aggregate, Measure, Plan, Question, Split

WORSE = "differential would be nearer to the truth here, and promises more"
"""What the controller is told of a weaker level where it costs more, as on heavily tied data and in small groups."""
GROUP: Multiples = linear_multiples(5)
"""The groups that are compared where the data set declares none."""
CLIPPINGS = 20
"""How often limits are drawn to estimate the error of values that are clipped to them; with a seed, the same always."""
UNLIKELY = 1e-6
"""A NULL less likely than this is not worth a word."""
MAX_CELLS = 24
"""More than a controller would read, and each is computed at every level."""


# How far off one answer is expected to be.


@dataclass(frozen=True)
class Expectation:
    """What to expect of one answer, in the column's units; ``error`` is E|answer − value| of those that are given.

    ``value`` is None where the statistic is undefined, ``error`` where no answer can be expected; ``refusal`` is the
    probability of NULL.
    """

    mechanism: Mechanism
    value: Fraction | None
    error: float | None
    refusal: float


def expect_answer(mechanism: Mechanism, statistic: Statistic, summary: Summary, protection: Protection) -> Expectation:
    """What a mechanism that is calibrated to this summary would answer, without drawing."""
    point = statistic.envelope(summary, 0, protection.fineness).value
    step = statistic.answer_step(summary.domain, protection.fineness)
    refusal = 1.0 if isinstance(mechanism, Silent) else 0.0
    if isinstance(mechanism, InverseSensitivity):
        refusal = mechanism.refusal_probability
    value = None if point is None else point * step
    within = find_public_range(statistic, summary.domain, protection.fineness)
    return Expectation(mechanism, value, expected_error(mechanism, point, step, *within), refusal)


_SHAPED = frozenset({Method.INVERSE, Method.ABOVE_THRESHOLD, Method.MOMENTS, Method.CLIPPED, Method.EXPONENTIAL})
"""The methods whose noise is not one distribution of one scale."""


# The truth behind a question.


@one_question()
def inspect_plan(plan: Plan, backend: Backend, strongest: Plan | None = None) -> Inspection:
    """Read the data and show what would be answered, with its envelope as far as its group reaches.

    ``strongest`` is the same question at the level differential, to say so where that would cost less.
    """
    distance = max(1, plan.dataset.protection.group)
    truths = backend.summarise(read_plainly(plan, distance))
    expected = expect_answers(plan, backend, truths)
    stronger = expected if strongest is None else expect_answers(strongest, backend, truths)
    cells = tuple(
        replace(
            _inspect_cell(plan, number, truths[i][number], expected[i][number], group, distance),
            note=WORSE if _costs_less(stronger[i][number], expected[i][number]) else "",
        )
        for i, number, group in _walk_cells(plan)
    )
    return Inspection(cells, show_truth(plan, [cell.value for cell in cells]))


def find_worse_columns(dataset: Dataset, backend: Backend) -> tuple[str, ...]:
    """The columns whose median would be nearer to the truth at the level differential, with an ε of 1 or the least.

    It is one bit of each column that follows from the data: for the controller.
    """
    epsilon, worse = max(Fraction(1), dataset.min_epsilon), []
    if dataset.protection.level is Level.DIFFERENTIAL or dataset.unit:  # of rows there are no medians
        return ()
    strongest = replace(dataset, protection=list_levels(dataset.protection)["differential"])
    for column in dataset.columns.values():
        if column.kind is Kind.CATEGORY:
            continue
        question = Question(dataset.name, (Measure(column.name, Median(), column.name),))
        try:
            plans = [make_plan(question, declared, epsilon) for declared in (dataset, strongest)]
        except Unanswerable:
            continue
        if inspect_plan(plans[0], backend, plans[1]).cells[0].note:
            worse.append(column.name)
    return tuple(worse)


def _costs_less(one: Expectation, other: Expectation) -> bool:
    """Whether an answer is surely less far off by one mechanism than by another."""
    return one.error is not None and (other.error is None or one.error < other.error) and one.refusal < UNLIKELY


def read_plainly(plan: Plan, distance: int) -> Plan:
    """The plan with every envelope known out to ``distance``, whatever its mechanisms need."""
    return replace(plan, aggregates=tuple(_read_plainly(plan, aggregate, distance) for aggregate in plan.aggregates))


def _read_plainly(plan: Plan, aggregate: Aggregate, distance: int) -> Aggregate:
    choice = replace(aggregate.choice, distance=distance, reading=None)
    return replace(aggregate, choice=choice, neighbours=plan.dataset.neighbours)


def expect_answers(plan: Plan, backend: Backend, truths: Sequence[Sequence[Summary]]) -> list[list[Expectation]]:
    """What to expect of every cell and aggregate; ``truths`` are what the statistics themselves read."""
    source, clips = SeededSource(CLIPPINGS), any(aggregate.choice.clipping for aggregate in plan.aggregates)
    with backend.open_snapshot(plan) as snapshot:
        drawn = [calibrate_plan(plan, clip_values(plan, snapshot, source)[1]) for _ in range(CLIPPINGS if clips else 1)]
    protection = plan.dataset.protection
    return [
        [
            average_expectations(
                [expect_answer(mechanisms[i][j], aggregate.statistic, summary, protection) for mechanisms in drawn]
            )
            for j, (aggregate, summary) in enumerate(zip(plan.aggregates, cell, strict=True))
        ]
        for i, cell in enumerate(truths)
    ]


def average_expectations(drawn: Sequence[Expectation]) -> Expectation:
    """The mean over draws of the limits that values are clipped to."""
    errors = [expected.error for expected in drawn if expected.error is not None]
    return replace(drawn[0], error=sum(errors) / len(errors) if errors else None)


def _walk_cells(plan: Plan) -> Iterator[tuple[int, int, Mapping[str, Any]]]:
    """The number of the cell, that of the aggregate and the group of everything released, in the plan's order."""
    for i, cell in enumerate(plan.cells):
        group = {key.label: key.values[value] for key, value in zip(plan.groups, cell, strict=True)}
        for number in range(len(plan.aggregates)):
            yield i, number, group


def _label(plan: Plan, number: int) -> str:
    return next(label for label, aggregate in plan.measures if aggregate == number)


def _inspect_cell(
    plan: Plan, number: int, summary: Summary, expected: Expectation, group: Mapping[str, Any], distance: int
) -> InspectedCell:
    aggregate, protection, level = plan.aggregates[number], plan.dataset.protection, plan.dataset.promised.level
    statistic, label, each = aggregate.statistic, _label(plan, number), plan.dataset.records
    step = statistic.answer_step(summary.domain, protection.fineness)
    noise = _describe_noise(expected.mechanism, aggregate, step)
    if isinstance(aggregate.domain, Categories):  # a category has no distance from others
        place = statistic.envelope(summary, 0).value
        category = None if place is None else aggregate.domain.shown(place)
        return InspectedCell(group, label, category, (), (), None, noise, level.value)
    envelope = statistic.envelope(summary, distance, protection.fineness)
    return InspectedCell(
        group=group,
        statistic=label,
        value=expected.value,
        lows=tuple(_scale(low, step) for low in envelope.lows[::each]),
        highs=tuple(_scale(high, step) for high in envelope.highs[::each]),
        local_sensitivity=_scale(envelope.sensitivity(each), step),
        noise=noise,
        level=level.value,
        expected_error=expected.error,
    )


def _describe_noise(mechanism: Mechanism, aggregate: Aggregate, step: Fraction) -> dict[str, Any]:
    noise: dict[str, Any] = {"distribution": "none", "scale": None, "epsilon": aggregate.epsilon}
    if aggregate.choice.method in _SHAPED:
        noise |= {"distribution": aggregate.choice.method.value}
    elif isinstance(mechanism, Added) and isinstance(mechanism.noise, DiscreteLaplace):
        noise |= {"distribution": "discrete Laplace", "scale": mechanism.noise.scale * step}
    elif isinstance(mechanism, Added) and isinstance(mechanism.noise, DiscreteGaussian):
        deviation = round_root_up(mechanism.noise.variance * step**2)
        noise |= {"distribution": "discrete Gaussian", "scale": deviation}
    return noise


def _scale(value: Extended, step: Fraction) -> Extended:
    return value if isinstance(value, float) else value * step


# The cost of protection: one question at every level.


def list_levels(protection: Protection, group: Multiples = GROUP) -> dict[str, Protection]:
    """The levels that are compared, by name; what else is declared of the protection stays.

    ``group`` has the multiples of ε for groups.

    >>> list(list_levels(Protection()))
    ['individual', 'group of 5', 'differential']
    """
    level = replace(protection, level=Level.INDIVIDUAL, multiples=SINGLE)
    return {
        "individual": level,
        f"group of {describe_multiples(group)}": replace(level, level=Level.GROUP, multiples=group),
        "differential": replace(level, level=Level.DIFFERENTIAL),
    }


@dataclass(frozen=True)
class LevelPlans:
    """One question planned at every level, or why a level refuses it; at least one does not."""

    by_level: Mapping[str, Plan | str]

    @property
    def first(self) -> Plan:
        """The first level's plan that there is: all differ in the noise alone."""
        return next(plan for plan in self.by_level.values() if isinstance(plan, Plan))

    @property
    def strongest(self) -> Plan | None:
        """The plan at the level differential, if there is one."""
        plan = self.by_level[Level.DIFFERENTIAL]
        return plan if isinstance(plan, Plan) else None


def plan_levels(
    question: Question, dataset: Dataset, epsilon: Number, split: Split = None, *, limit: int | None = MAX_CELLS
) -> LevelPlans:
    """Plan a question at every level; public facts only. Groups are those that the data set declares, if it does."""
    plans: dict[str, Plan | str] = {}
    refusals: list[InvalidInput | Unanswerable] = []
    declared = dataset.protection
    group = declared.multiples if declared.level is Level.GROUP else GROUP
    for name, protection in list_levels(declared, group).items():
        try:
            plans[name] = make_plan(question, replace(dataset, protection=protection), epsilon, split)
        except (InvalidInput, Unanswerable) as refusal:
            plans[name] = f"refused: {refusal}"
            refusals.append(refusal)
    if len(refusals) == len(plans):
        if isinstance(refusals[0], InvalidInput):
            raise refusals[0]
        raise Unanswerable(f"no level answers this question. {next(iter(plans.values()))}")
    levels = LevelPlans(plans)
    cells = len(levels.first.cells) * len(levels.first.aggregates)
    if limit is not None and cells > limit:
        raise InvalidInput(
            f"the question releases {cells:,} cells, and costs are compared for at most {limit}: ask for fewer "
            "groups or statistics"
        )
    return levels


@one_question()
def compute_costs(plans: LevelPlans, backend: Backend) -> Costs:
    """Read the data and compute the expected errors at every level."""
    truths = backend.summarise(read_plainly(plans.first, 0))
    expected = {
        level: expect_answers(plan, backend, truths) for level, plan in plans.by_level.items() if isinstance(plan, Plan)
    }
    rows = []
    for i, number, group in _walk_cells(plans.first):
        label = _label(plans.first, number)
        for level, plan in plans.by_level.items():
            if isinstance(plan, str):
                rows.append(LevelCost(label, group, level, None, plan))
                continue
            row = _compute_cost(level, plan.aggregates[number], label, expected[level][i][number], group)
            stronger = expected.get(Level.DIFFERENTIAL)
            if stronger and not row.note and _costs_less(stronger[i][number], expected[level][i][number]):
                row = replace(row, note=WORSE)
            rows.append(row)
    return Costs(tuple(rows))


def _compute_cost(
    level: str, aggregate: Aggregate, label: str, expected: Expectation, group: Mapping[str, Any]
) -> LevelCost:
    if aggregate.statistic.selects:
        note = "a category is named, which is right or wrong but not off by a number"
        return LevelCost(label, group, level, None, note)
    note = ""
    if isinstance(expected.mechanism, InverseSensitivity) and expected.refusal > UNLIKELY:
        note = f"NULL with probability {expected.refusal:.3g}; the error is that of an answer"
    elif aggregate.choice.method is Method.EXACT:
        note = "publicly known"
    elif expected.error is None:
        note = "NULL: too few records are selected for an answer"
    return LevelCost(label, group, level, expected.error, note)

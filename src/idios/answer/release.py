"""From a summary to what is released.

    summaries ─ calibrate ─▶ mechanisms ─ draw, clamp to public limits ─▶ ReleasedTable

Intervals are those of ``intervals``. What is stored names statistics and groups by their normal form, so that nobody
reads another's words. What a caller sees of it is made in ``assembly``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import NamedTuple

from idios.answer.intervals import draw_with_interval, find_margin, find_public_range
from idios.answer.many_cells import draw_many
from idios.core.calibration import (
    Added,
    Mechanism,
    Protection,
    calibrate,
    find_floor,
)
from idios.core.clipping import DrawnLimits
from idios.core.distributions import DiscreteLaplace
from idios.core.domain import Categories, Domain, Kind
from idios.core.exact import text
from idios.core.joint import calibrate_cells
from idios.core.joint_loss import Component
from idios.core.many_scales import draw_discrete_laplaces
from idios.core.question_memory import one_question
from idios.core.sampling import RandomSource
from idios.core.statistics import Statistic
from idios.core.summary import Summary
from idios.data.backend import Backend, CancellationToken, Snapshot
from idios.declare.dates import since_1970, to_datetime
from idios.declare.schema import find_kind
from idios.model import ReleasedTable
from idios.model.released import TableColumns
from idios.plan.question import Aggregate, Plan
from idios.plan.question_words import name_statistics


@dataclass(frozen=True)
class DrawnNoise(Added):
    """Noise that was drawn already, together with that of other cells: to be added once."""

    drawn: int

    def draw(self, source: RandomSource | None = None) -> int | None:
        """The value plus what was drawn."""
        return self.value + self.drawn


class DrawnCell(NamedTuple):
    """A value, the ends of its interval, and the noisy sums and count behind it, as far as there are any."""

    value: Fraction | int | None
    interval: tuple[Fraction, Fraction] | None = None
    noisy_sums: tuple[int, ...] | None = None


# What is drawn.


@one_question()
def draw_table(
    plan: Plan, backend: Backend, cancellation: CancellationToken | None = None, source: RandomSource | None = None
) -> ReleasedTable:
    """Summarise and draw everything that is released of a plan, cell by cell in the plan's own order."""
    margins: list[Fraction | None] = [None] * len(plan.aggregates)
    cells, intervals, checks, noisy_sums = [], [], [], []
    check = None if cancellation is None else cancellation.check
    with backend.open_snapshot(plan, cancellation) as snapshot:
        drawn_limits, summaries = clip_values(plan, snapshot, source, check)
    if check is not None:
        check()
    if (drawn_cells := draw_many(plan, summaries, source)) is not None:
        columns = TableColumns(_list_groups(plan), [drawn_cells])
        return _make_table(plan, (), margins, (), by_column=columns)
    calibrated = _draw_together(calibrate_plan(plan, summaries, check), source)
    for mechanisms, cell in zip(calibrated, summaries, strict=True):
        if check is not None:
            check()
        drawn = [
            draw_cell(plan, aggregate, mechanism, source, drawn_limits.get(i))
            for i, (aggregate, mechanism) in enumerate(zip(plan.aggregates, mechanisms, strict=True))
        ]
        values = [each.value for each in drawn]
        cells.append(tuple(map(partial(_write_drawn, plan), plan.aggregates, values)))
        intervals.append(tuple(_write_interval(plan, *pair) for pair in zip(plan.aggregates, drawn, strict=True)))
        noisy_sums.append(tuple(each.noisy_sums for each in drawn))
        checks.append(tuple(map(partial(_check, plan, source), plan.aggregates, cell, values)))
        margins = list(map(partial(find_margin, plan), plan.aggregates, mechanisms))
    return _make_table(plan, cells, margins, checks, drawn_limits, intervals, noisy_sums)


@one_question()
def check_table(
    plan: Plan, backend: Backend, cancellation: CancellationToken | None = None, source: RandomSource | None = None
) -> ReleasedTable:
    """Tell how far off the cells of an earlier answer are."""
    if plan.checked is None:
        raise AssertionError("there is no earlier answer to check")
    checks = []
    with backend.open_snapshot(plan, cancellation) as snapshot:
        for cell, written in zip(snapshot.summaries, plan.checked, strict=True):
            if cancellation is not None:
                cancellation.check()
            values = [_read_written(plan, *pair) for pair in zip(plan.aggregates, written, strict=True)]
            checks.append(tuple(map(partial(_check, plan, source), plan.aggregates, cell, values)))
    return _make_table(plan, plan.checked, [None] * len(plan.aggregates), checks)


def _read_written(plan: Plan, aggregate: Aggregate, written: str | None) -> Fraction | None:
    """The number that was released, in the column's units."""
    if written is None or aggregate.check is None or aggregate.column is None:
        return None
    kind = plan.dataset.columns[aggregate.column].kind
    return since_1970(written, kind) if kind in (Kind.DATE, Kind.TIMESTAMP) else Fraction(written)


def _make_table(
    plan: Plan,
    cells: Sequence[Sequence[str | None]],
    margins: Sequence[Fraction | None],
    checks: Sequence[tuple[int | None, ...]],
    limits: Mapping[int, DrawnLimits] | None = None,
    intervals: Sequence[Sequence[tuple[str, str] | None]] = (),
    noisy_sums: Sequence[tuple[tuple[int, ...] | None, ...]] = (),
    *,
    by_column: TableColumns | None = None,
) -> ReleasedTable:
    return ReleasedTable(
        dataset=plan.dataset.name,
        version=plan.dataset.version,
        guarantee=str(plan.guarantee),
        statistics=name_statistics(plan.form),
        groups=() if by_column else _name_groups(plan),
        cells=tuple(map(tuple, cells)),
        margins=tuple(margins),
        clipped=_scale_limits(plan, limits or {}),
        tallies=_list_tallies(plan, limits or {}),
        checks=tuple(checks) if any(aggregate.check for aggregate in plan.aggregates) else (),
        intervals=tuple(map(tuple, intervals)) if any(map(any, intervals)) else (),
        noisy_sums=tuple(noisy_sums) if any(map(any, noisy_sums)) else (),
        by_column=by_column,
    )


def _name_groups(plan: Plan) -> tuple[dict[str, str], ...]:
    """By cell and key, the group that it is."""
    return tuple(
        {key.name: str(key.values[i]) for key, i in zip(plan.groups, cell, strict=True)} for cell in plan.cells
    )


def _list_groups(plan: Plan) -> dict[str, list[str]]:
    """By key, the group that each cell is."""
    named = [[str(value) for value in key.values] for key in plan.groups]
    return {key.name: [named[i][cell[i]] for cell in plan.cells] for i, key in enumerate(plan.groups)}


def clip_values(
    plan: Plan, snapshot: Snapshot, source: RandomSource | None = None, check: Callable[[], None] | None = None
) -> tuple[dict[int, DrawnLimits], Sequence[Sequence[Summary]]]:
    """Draw limits where the plan says so, by aggregate, and read what is clipped to them: the second round.

    Limits are drawn once for all cells. The other summaries are those of the first round. ``check`` is called for every
    draw, and may raise to stop.
    """
    limits: dict[int, DrawnLimits] = {}
    pooled = iter(snapshot.pooled)
    for i, aggregate in enumerate(plan.aggregates):
        if (clipping := aggregate.choice.clipping) is None:
            continue
        if check is not None:
            check()
        limits[i] = clipping.draw_limits(next(pooled) if clipping.pooled else snapshot.summaries[0][i], source)
    if not limits:
        return {}, snapshot.summaries
    clipped = snapshot.sum_clipped({i: [drawn[:2]] * len(plan.cells) for i, drawn in limits.items()})
    return limits, [
        [clipped[i][number] if i in clipped else summary for i, summary in enumerate(cell)]
        for number, cell in enumerate(snapshot.summaries)
    ]


def _scale_limits(
    plan: Plan, limits: Mapping[int, DrawnLimits]
) -> tuple[tuple[tuple[Fraction, Fraction] | None, ...], ...]:
    """The limits of every cell and aggregate in the column's units; nothing if none were drawn."""
    if not limits:
        return ()
    steps = [aggregate.grid.step for aggregate in plan.aggregates]
    scaled = [(limits[i].low * step, limits[i].high * step) if i in limits else None for i, step in enumerate(steps)]
    return (tuple(scaled),) * len(plan.cells)


def _list_tallies(plan: Plan, limits: Mapping[int, DrawnLimits]) -> tuple[tuple[int, int, int] | None, ...]:
    """By aggregate, the noisy counts that were drawn with its limits; nothing if none were drawn."""
    if not limits:
        return ()
    return tuple(limits[i].tallies if i in limits else None for i in range(len(plan.aggregates)))


def calibrate_plan(
    plan: Plan, summaries: Sequence[Sequence[Summary]], check: Callable[[], None] | None = None
) -> list[list[Mechanism]]:
    """What is drawn in every cell for every aggregate; ``check`` is called now and then, and may raise to stop.

    Noise that is fitted to the data is calibrated for all aggregates and cells together (``core.joint``).
    """
    protection = plan.dataset.protection
    fitted = [i for i, aggregate in enumerate(plan.aggregates) if aggregate.fitted]
    components = [
        [_component(plan.aggregates[i], cell[i], protection) for i in fitted] for cell in (summaries if fitted else ())
    ]
    gaussian = any(plan.aggregates[i].choice.rho is not None for i in fitted)
    epsilon = Fraction(1 if gaussian else plan.cells_touched)  # ρ is that of all cells, ε that of one
    jointly = calibrate_cells(components, epsilon, protection.multiples, check, gaussian=gaussian)
    mechanisms: list[list[Mechanism]] = []
    for number, cell in enumerate(summaries):
        if check is not None:
            check()
        together = iter(jointly[number] if fitted else ())
        mechanisms.append(
            [
                next(together)
                if aggregate.fitted
                else calibrate(aggregate.choice, aggregate.statistic, summary, protection)
                for aggregate, summary in zip(plan.aggregates, cell, strict=True)
            ]
        )
    return mechanisms


def _draw_together(cells: list[list[Mechanism]], source: RandomSource | None) -> list[list[Mechanism]]:
    """Draw Laplace noise of all scales at once: to prepare for one scale takes longer, and few are used again."""
    scales = [scale for cell in cells for m in cell if (scale := _find_scale(m)) is not None]
    drawn = iter(draw_discrete_laplaces(scales, source))
    return [
        [
            DrawnNoise(m.value, m.noise, next(drawn)) if isinstance(m, Added) and _find_scale(m) is not None else m
            for m in cell
        ]
        for cell in cells
    ]


def _find_scale(mechanism: Mechanism) -> Fraction | None:
    """That of added Laplace noise."""
    if isinstance(mechanism, Added) and isinstance(mechanism.noise, DiscreteLaplace):
        return mechanism.noise.scale
    return None


def _component(aggregate: Aggregate, summary: Summary, protection: Protection) -> Component:
    statistic = aggregate.statistic
    floor, rho = find_floor(statistic, protection), aggregate.choice.rho
    weight = aggregate.epsilon if rho is None else 2 * rho
    return Component(statistic, summary, weight, floor, aggregate.column, protection.fineness)


def draw_cell(
    plan: Plan,
    aggregate: Aggregate,
    mechanism: Mechanism,
    source: RandomSource | None,
    limits: DrawnLimits | None = None,
) -> DrawnCell:
    """Draw one cell: a number in the column's units, the place of a category, None for NULL; and its interval."""
    if isinstance(aggregate.domain, Categories):
        return DrawnCell(mechanism.draw(source))
    statistic, fineness = aggregate.statistic, plan.dataset.protection.fineness
    point, interval, sums = draw_with_interval(aggregate, mechanism, fineness, source, limits)
    step = statistic.answer_step(aggregate.grid, fineness)
    scaled = None if interval is None else (interval[0] * step, interval[1] * step)
    return DrawnCell(None if point is None else point * step, scaled, sums)


def _write_drawn(plan: Plan, aggregate: Aggregate, drawn: Fraction | int | None) -> str | None:
    if drawn is None:
        return None
    if isinstance(aggregate.domain, Categories):
        return aggregate.domain.shown(int(drawn))
    column = plan.dataset.columns[aggregate.column].kind if aggregate.column is not None else None
    return write_value(Fraction(drawn), kind_of(plan, aggregate), column)


def _write_interval(plan: Plan, aggregate: Aggregate, drawn: DrawnCell) -> tuple[str, str] | None:
    if drawn.interval is None:
        return None
    low, high = (_write_drawn(plan, aggregate, end) for end in drawn.interval)
    return str(low), str(high)


def _check(
    plan: Plan, source: RandomSource | None, aggregate: Aggregate, summary: Summary, drawn: Fraction | int | None
) -> int | None:
    """How far off what was drawn is, with noise; nothing of NULL."""
    if aggregate.check is None or drawn is None:
        return None
    fineness = plan.dataset.protection.fineness
    point = drawn / aggregate.statistic.answer_step(aggregate.grid, fineness)
    return aggregate.check.draw(aggregate.statistic, summary, point, fineness, source)


def draw_number(
    mechanism: Mechanism, statistic: Statistic, grid: Domain, fineness: int, source: RandomSource | None = None
) -> Fraction | None:
    """Draw one number in the column's units, clamped to the statistic's public range; None is NULL."""
    drawn = mechanism.draw(source)
    if drawn is None:
        return None
    low, high = find_public_range(statistic, grid, fineness)
    return Fraction(min(max(drawn, low), high)) * statistic.answer_step(grid, fineness)


# How it is written.


def kind_of(plan: Plan, aggregate: Aggregate) -> str:
    """The type of an aggregate's answers: integer, number, date, timestamp or category."""
    column = None if aggregate.column is None else plan.dataset.columns[aggregate.column]
    return find_kind(aggregate.statistic, column, plan.dataset.protection.fineness)


def write_value(value: Fraction, kind: str, column_kind: Kind | None) -> str:
    """One released number as it is stored: exact, or a date in ISO form."""
    if kind not in ("date", "timestamp"):
        return str(text(value))
    # What noise carries beyond the calendar is put at its end; that is post-processing.
    moment = to_datetime(value, Kind.DATE if column_kind is Kind.DATE else Kind.TIMESTAMP)
    return moment.date().isoformat() if kind == "date" else moment.isoformat()

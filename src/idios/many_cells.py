"""The values of one order statistic in many cells, calibrated, drawn and written over arrays of cells.

What is drawn is what ``release`` draws cell by cell, from the same bytes of the source: a question that is answered
here is answered there as well, only later.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from idios.core.calibration import Method, find_floor
from idios.core.cell_windows import CellWindows, SummaryTable
from idios.core.domain import Categories, Kind
from idios.core.exact import count_places, text
from idios.core.inverse import make_measure
from idios.core.inverse_cells import InverseCells
from idios.core.joint_cells import calibrate_windows
from idios.core.many_scales import draw_multiples
from idios.core.multiples import SINGLE
from idios.core.sampling import Source
from idios.core.statistics.order import OrderStatistic
from idios.core.summary import Summary
from idios.margins import find_public_range
from idios.query.plan import Aggregate, Plan

MANY = 64
"""From this many cells on noise is drawn for all of them together."""


def draw_many(
    plan: Plan, summaries: Sequence[Sequence[Summary]], source: Source | None = None
) -> list[str | None] | None:
    """What is released of each cell, as it is written; None where cells have to be looked at one by one."""
    if not isinstance(summaries, SummaryTable) or len(summaries.columns) != 1:
        return None
    (aggregate,), (cells,) = plan.aggregates, summaries.columns
    if not isinstance(cells, CellWindows) or not _is_plain(plan, aggregate):
        return None
    if aggregate.fitted:
        points = _draw_fitted(plan, aggregate, cells, source)
    elif aggregate.choice.method is Method.INVERSE:
        points = _draw_inverse(plan, aggregate, cells, source)
    else:
        return None
    if points is None:
        return None
    return write_multiples(points, aggregate.statistic.answer_step(aggregate.grid, plan.dataset.protection.fineness))


def _is_plain(plan: Plan, aggregate: Aggregate) -> bool:
    """Whether answers are numbers, and nothing else is told of them."""
    if isinstance(aggregate.domain, Categories) or aggregate.column is None or aggregate.check is not None:
        return False
    return plan.dataset.columns[aggregate.column].kind not in (Kind.DATE, Kind.TIMESTAMP)


def _draw_fitted(
    plan: Plan, aggregate: Aggregate, cells: CellWindows, source: Source | None
) -> list[int | None] | None:
    """Values with Laplace noise that is fitted to the data."""
    statistic, protection = aggregate.statistic, plan.dataset.protection
    if not isinstance(statistic, OrderStatistic) or aggregate.choice.rho is not None or protection.multiples != SINGLE:
        return None
    if len(cells) < MANY:
        return None
    floor, epsilon = find_floor(statistic, protection), Fraction(plan.cells_touched)
    noises = calibrate_windows(cells, statistic, aggregate.epsilon, floor, epsilon)
    if noises is None:
        return None
    answered = noises.answered
    numerators = noises.numerators[answered].tolist()
    drawn = iter(draw_multiples(numerators, [noises.denominator] * len(numerators), source))
    low, high = find_public_range(statistic, aggregate.grid, protection.fineness)
    values, known = noises.values.tolist(), answered.tolist()
    return [
        int(min(max(value + next(drawn), low), high)) if is_known else None
        for value, is_known in zip(values, known, strict=True)
    ]


def _draw_inverse(
    plan: Plan, aggregate: Aggregate, cells: CellWindows, source: Source | None
) -> list[int | None] | None:
    """Points that are the likelier, the fewer records reach them."""
    statistic, choice, fineness = aggregate.statistic, aggregate.choice, plan.dataset.protection.fineness
    if not isinstance(statistic, OrderStatistic) or len(cells) < MANY:
        return None
    measure = make_measure(statistic, aggregate.grid, fineness)
    drawn = InverseCells(cells, statistic, choice.distance, choice.epsilon, measure, choice.refusal).draw(source)
    low, high = find_public_range(statistic, aggregate.grid, fineness)
    return drawn and [None if point is None else int(min(max(point, low), high)) for point in drawn]


def write_multiples(points: Iterable[int | None], step: Fraction) -> list[str | None]:
    """Each multiple of a step as ``text`` writes it.

    >>> write_multiples([3, -20, None, 0], Fraction(1, 20))
    ['0.15', '-1', None, '0']
    """
    places = count_places(step.denominator)
    if places is None:
        return [None if point is None else text(point * step) for point in points]
    times = step.numerator * 10**places // step.denominator
    if not places:
        return [None if point is None else str(point * times) for point in points]
    return [None if point is None else _write_decimal(point * times, places) for point in points]


def _write_decimal(number: int, places: int) -> str:
    """number/10^places, without zeros at the end."""
    digits = str(abs(number)).rjust(places + 1, "0")
    fraction = digits[-places:].rstrip("0")
    written = f"{digits[:-places]}.{fraction}" if fraction else digits[:-places]
    return f"-{written}" if number < 0 else written

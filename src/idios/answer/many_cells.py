"""The values of one order statistic in many cells, calibrated, drawn and written over arrays of cells.

What is drawn is what ``release`` draws cell by cell, from the same bytes of the source: a question that is answered
here is answered there as well, only later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from idios.answer.intervals import find_public_range
from idios.core.calibration import Method, find_floor
from idios.core.cell_windows import CellWindows, SummaryTable
from idios.core.domain import Categories, Kind
from idios.core.exact import count_places, text
from idios.core.inverse import make_measure
from idios.core.inverse_cells import InverseCells
from idios.core.joint_cells import calibrate_windows
from idios.core.many_scales import draw_scaled
from idios.core.multiples import SINGLE
from idios.core.sampling import RandomSource
from idios.core.statistics.order import OrderStatistic
from idios.core.summary import NARROW, Summary, Whole
from idios.plan.question import Aggregate, Plan

MANY = 64
"""From this many cells on noise is drawn for all of them together."""


@dataclass(frozen=True)
class DrawnPoints:
    """By cell, what was drawn, on the answer's grid, and whether it is there: it may be NULL."""

    numbers: Whole
    known: NDArray[np.bool_]


def draw_many(
    plan: Plan, summaries: Sequence[Sequence[Summary]], source: RandomSource | None = None
) -> list[str | None] | None:
    """What is released of each cell, as it is written; None where cells have to be looked at one by one."""
    if not isinstance(summaries, SummaryTable) or len(summaries.columns) != 1:
        return None
    (aggregate,), (cells,) = plan.aggregates, summaries.columns
    if not isinstance(cells, CellWindows) or not _is_plain(plan, aggregate):
        return None
    if aggregate.fitted:
        drawn = _draw_fitted(plan, aggregate, cells, source)
    elif aggregate.choice.method is Method.INVERSE:
        drawn = _draw_inverse(plan, aggregate, cells, source)
    else:
        return None
    if drawn is None:
        return None
    statistic, fineness = aggregate.statistic, plan.dataset.protection.fineness
    points = clamp(drawn, *find_public_range(statistic, aggregate.grid, fineness))
    return write_multiples(points, statistic.answer_step(aggregate.grid, fineness))


def _is_plain(plan: Plan, aggregate: Aggregate) -> bool:
    """Whether answers are numbers, and nothing else is told of them."""
    if isinstance(aggregate.domain, Categories) or aggregate.column is None or aggregate.check is not None:
        return False
    return plan.dataset.columns[aggregate.column].kind not in (Kind.DATE, Kind.TIMESTAMP)


def _draw_fitted(
    plan: Plan, aggregate: Aggregate, cells: CellWindows, source: RandomSource | None
) -> DrawnPoints | None:
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
    answered = np.flatnonzero(noises.answered)
    noise = draw_scaled(noises.list_scales(answered), lambda i: noises.scale(int(answered[i])), source)
    numbers = noises.values if noise.dtype != object else noises.values.astype(object)
    numbers[answered] += noise
    return DrawnPoints(numbers, noises.answered)


def _draw_inverse(
    plan: Plan, aggregate: Aggregate, cells: CellWindows, source: RandomSource | None
) -> DrawnPoints | None:
    """Points that are the likelier, the fewer records reach them."""
    statistic, choice, fineness = aggregate.statistic, aggregate.choice, plan.dataset.protection.fineness
    if not isinstance(statistic, OrderStatistic) or len(cells) < MANY:
        return None
    measure = make_measure(statistic, aggregate.grid, fineness)
    drawn = InverseCells(cells, statistic, choice.distance, choice.epsilon, measure, choice.refusal).draw(source)
    if drawn is None:
        return None
    known = np.array([point is not None for point in drawn])
    return DrawnPoints(make_whole([0 if point is None else point for point in drawn]), known)


def make_whole(numbers: Sequence[int]) -> Whole:
    """Whole numbers as an array, of 64 bits where that holds them."""
    narrow = all(-NARROW < number < NARROW for number in numbers)
    return np.array(numbers, np.int64 if narrow else object)


def clamp(drawn: DrawnPoints, low: float, high: float) -> DrawnPoints:
    """The nearest points within a public range, whose ends are whole numbers or infinite."""
    numbers = drawn.numbers
    for end, choose in ((low, np.maximum), (high, np.minimum)):
        if isinstance(end, int) and not -NARROW < end < NARROW:
            numbers = numbers.astype(object)
        if isinstance(end, int):
            numbers = choose(numbers, end)
    return replace(drawn, numbers=numbers)


def write_multiples(points: DrawnPoints, step: Fraction) -> list[str | None]:
    """Each multiple of a step as ``text`` writes it.

    >>> write_multiples(DrawnPoints(np.array([3, -20, 7, 0]), np.array([True, True, False, True])), Fraction(1, 20))
    ['0.15', '-1', None, '0']
    """
    places, numbers = count_places(step.denominator), points.numbers[points.known]
    if places is None:
        written: list[str | None] = [text(number * step) for number in numbers.tolist()]
    else:
        times = step.numerator * 10**places // step.denominator
        narrow = numbers.dtype != object and times * int(abs(numbers).max(initial=0)) < NARROW
        written = [*_write_decimals((numbers if narrow else numbers.astype(object)) * times, places)]
    if points.known.all():
        return written
    rest = iter(written)
    return [next(rest) if is_known else None for is_known in points.known.tolist()]


def _write_decimals(numbers: Whole, places: int) -> list[str]:
    """numbers/10^places, without zeros at the end.

    Arrow writes all digits of a decimal, with an exponent only where more than five zeros would follow the point.
    """
    if not places:
        return list(map(str, numbers.tolist()))
    if numbers.dtype == object or places > 18:
        return [_write_decimal(number, places) for number in numbers.tolist()]
    words = np.stack((numbers, numbers >> 63), axis=1)  # a decimal has 128 bits
    decimals = pa.Array.from_buffers(pa.decimal128(38, places), len(numbers), [None, pa.py_buffer(words)])
    written = pc.ascii_rtrim(pc.ascii_rtrim(decimals.cast(pa.string()), characters="0"), characters=".")
    listed: list[str] = written.to_numpy(zero_copy_only=False).tolist()
    for i in np.flatnonzero(abs(numbers) < 10 ** max(0, places - 6)).tolist():
        listed[i] = _write_decimal(int(numbers[i]), places)
    return listed


def _write_decimal(number: int, places: int) -> str:
    """number/10^places, without zeros at the end."""
    digits = str(abs(number)).rjust(places + 1, "0")
    fraction = digits[-places:].rstrip("0")
    written = f"{digits[:-places]}.{fraction}" if fraction else digits[:-places]
    return f"-{written}" if number < 0 else written

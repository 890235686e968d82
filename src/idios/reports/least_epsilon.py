"""The least ε for a margin: how much a question must cost so that its noise stays within what the asker can bear.

Only public facts are used: the 95 % margin of a statistic whose noise has a public scale, such as a count or a sum
within bounds, and of what is computed from these. What has no public margin is refused. That of a quotient follows from
what is divided by: the asker says where it is to hold. The margin never grows with ε, so that the least one is found by
bisection, among the numbers of three significant digits.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import ceil

from idios.answer.intervals import describe_unknown_margin, public_margin
from idios.answer.projection import expect_margins, list_columns
from idios.codec import shorten
from idios.core.exact import Number, positive, text
from idios.core.question_memory import one_question
from idios.core.statistics import Sum
from idios.errors import InvalidInput, Unanswerable
from idios.model.quote import ExpectedMargin
from idios.plan.question import Aggregate, Plan
from idios.reports.report import try_doubling

PER_DECADE = 900
"""How many numbers of three significant digits there are from one power of ten to the next."""
LARGEST = Fraction(10**6)
"""The ε beyond which nothing is searched: no noise is left of a count long before."""


@one_question()
def find_epsilon(make_plan: Callable[[Fraction], Plan], within: Number) -> Fraction:
    """The least ε, rounded up to three significant digits, for which every margin of the question is ``within``.

    ``within`` is a number in the units of the answer, or a percentage such as "2%": of the number of records for
    counts, of the largest possible sum for sums, and otherwise of the width of the declared bounds. "5 at 600" is 5
    where what a computed column is divided by is 600. What only computed columns use is as far off as it may be.
    """
    amount, relative, divisor = _read_within(within)
    plan = try_doubling(make_plan, Fraction(1))
    computed = expect_margins(plan)
    for label, margin in computed.items():
        _check_computed(label, margin, relative, divisor)
    columns = list_columns(plan)
    used = {plan.measures[number][1] for column in columns if column.measure is None for number in column.uses}
    shown = {plan.measures[column.measure][1] for column in columns if column.measure is not None}
    own = [number for number in range(len(plan.aggregates)) if number in shown or number not in used]
    allowed = {i: amount * _find_scale(plan, plan.aggregates[i]) if relative else amount for i in own}
    for number in own:
        aggregate = plan.aggregates[number]
        if public_margin(plan, number) is None:
            raise Unanswerable(
                f"{aggregate.label} has no public margin ({describe_unknown_margin(aggregate.choice)}): give epsilon "
                "instead of within, or leave it out"
            )

    def suffices(place: int) -> bool:
        tried = make_plan(round_place(place))
        margins = [(public_margin(tried, number), most) for number, most in allowed.items()]
        margins += [(each.at(divisor), amount) for each in expect_margins(tried).values()]
        return all(margin is not None and margin <= most for margin, most in margins)

    low = find_place(plan.least_epsilon or plan.dataset.min_epsilon or Fraction(1, 100))
    high = low
    while not suffices(high):
        low, high = high + 1, high + PER_DECADE
        if round_place(high) > LARGEST:
            raise Unanswerable(f"no ε up to {text(LARGEST)} keeps the margin within {within}: allow a wider one")
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if suffices(middle) else (middle + 1, high)
    return round_place(high)


def round_place(place: int) -> Fraction:
    """The number of three significant digits at a place in their order; 1 is at 0.

    >>> [str(round_place(place)) for place in (-1, 0, 1, 900)]
    ['999/1000', '1', '101/100', '10']
    """
    decade, within = divmod(place, PER_DECADE)
    return (100 + within) * Fraction(10) ** (decade - 2)


def find_place(number: Fraction) -> int:
    """The place of the least number of three significant digits that is not below ``number``.

    >>> [find_place(Fraction(number)) for number in ("0.999", "0.9991", "1", "9.999")]
    [-1, 0, 0, 900]
    """
    decade = 0
    while number >= 10:
        number, decade = number / 10, decade + 1
    while number < 1:
        number, decade = number * 10, decade - 1
    return decade * PER_DECADE + ceil(number * 100) - 100


def _read_within(within: Number) -> tuple[Fraction, bool, Fraction]:
    """The number, whether it is a share, and where it is to hold."""
    if isinstance(within, str) and " at " in within:
        within, _, at = within.partition(" at ")
        divisor = positive(at, "what is divided by, in within,")
        if divisor < 1:
            raise InvalidInput(f"what is divided by, in within, must be 1 or more, got {shorten(at)}")
        return positive(within, "within"), False, divisor
    if isinstance(within, str) and within.strip().endswith("%"):
        return positive(within.strip()[:-1], "within") / 100, True, Fraction(0)
    return positive(within, "within"), False, Fraction(0)


def _check_computed(label: str, margin: ExpectedMargin, relative: bool, divisor: Fraction) -> None:
    """Refuse a computed column of which nothing is known, or nothing without its divisor."""
    if margin.reason:
        raise Unanswerable(
            f"{label} has no public margin ({margin.reason}): give epsilon instead of within, or compute it from "
            "counts and from sums of columns with bounds"
        )
    if relative:
        raise InvalidInput(f"{label} is computed, so that a percentage is of nothing public: give within as a number")
    if margin.divisor and not divisor:
        raise Unanswerable(
            f"the margin of {label} follows from {margin.divisor}, which is not public: say where it is to hold, as in "
            f'within = "5 at 1000" for 5 where {margin.divisor} is 1000'
        )


def _find_scale(plan: Plan, aggregate: Aggregate) -> Fraction:
    """What a percentage is of: a public size of the statistic's values."""
    statistic, grid, records = aggregate.statistic, aggregate.grid, plan.dataset.size
    if (statistic.degree == 0 or isinstance(statistic, Sum)) and records is None:
        raise InvalidInput(
            f"{aggregate.label}: a percentage would be of the number of records, which is not public here; give within "
            "as a number, in the units of the answer"
        )
    if statistic.degree == 0:
        return Fraction(records or 0)
    if grid.lower is None or grid.upper is None:
        raise InvalidInput(
            f"{aggregate.label}: a percentage would be of the width of its column's bounds, and it has none; give "
            "within as a number, in the units of the answer"
        )
    if isinstance(statistic, Sum):
        return (records or 0) * max(abs(grid.lower), abs(grid.upper)) * grid.step
    return (grid.upper - grid.lower) * grid.step

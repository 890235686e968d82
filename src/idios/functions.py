"""Private statistics of an array, one function each: ``idios.median(values, epsilon=0.5)``.

Every function reads a list or a numpy, pandas, polars or Arrow column, spends ``epsilon`` and returns a plain number
(or None where the selection is too small for an answer). Nothing is remembered between calls: a caller
who calls twice has spent twice. The trusted party keeps the account.

All of them take, beside their own parameter:

    epsilon      what the answer may cost, exactly as written: 0.1 is one tenth
    step         the grid of the column; by default that of its type: 1 for integers, 10⁻⁶ for floats, the scale of
                 decimals, a day for dates, a microsecond for timestamps (which count from 1970). A list has the type of
                 its elements, which must be one; an empty one reads as floats
    bounds       (lower, upper) as publicly known, either may be None; values outside read as the nearer bound, and
                 without a bound values end at ±10⁴⁰⁰
    centre       a public guess of where the values lie, 0 by default; it affects accuracy and nothing else
    neighbours   "replace" (one record changes; the number of records is public) or "add-remove"
    protection   "individual", "group" (with group) or "differential"
    group        how many records are protected together, with ε, 2ε, …; or the multiples of ε, such as [1, 1.5, 2]; or
                 {"size": 5, "growth": "flat"}, five records like one
    floor        the least sensitivity, 1 by default; 0 is the paper to the letter
    nullable     whether values can be missing; by default whether the column's type can hold missing values

Missing are None, NaN, ±∞, NaT, NA and what is masked. Values and categories must be of one type (bool, number, text,
date or timestamp), in which a value that is not declared reads as missing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from inspect import Parameter, Signature, signature
from typing import Any, Required, TypedDict, TypeVar, Unpack

from idios.backends.arrays import read_bins, read_categories, read_numbers
from idios.backends.labels import Family, read_declared, to_list
from idios.core.calibration import Protection, calibrate, choose
from idios.core.distributions import DiscreteLaplace
from idios.core.exact import Number, positive
from idios.core.multiples import limit_epsilon
from idios.core.neighbours import Neighbours
from idios.core.statistics import Histogram, find_statistic
from idios.errors import InvalidInput
from idios.release import draw_number

Bounds = Sequence[Number | None]
Group = int | Sequence[Number] | Mapping[str, Any]
"""The size of a group, its multiples of ε one by one, or its size and growth."""
Plain = int | float | None


class Options(TypedDict, total=False):
    """The keywords that every function takes."""

    epsilon: Required[Number]
    step: Number | None
    bounds: Bounds | None
    centre: Number | None
    neighbours: str
    protection: str
    group: Group | None
    floor: Number | None
    nullable: bool | None


def _answer(
    function: str,
    values: Any,
    *argument: Number,
    epsilon: Number,
    step: Number | None = None,
    bounds: Bounds | None = None,
    centre: Number | None = None,
    neighbours: str = "replace",
    protection: str = "individual",
    group: Group | None = None,
    floor: Number | None = None,
    nullable: bool | None = None,
) -> Plain:
    """Read, choose, summarise, calibrate, draw: the way of every numeric answer."""
    statistic = find_statistic(function).make(*argument).normalise()
    spent = positive(epsilon, "epsilon")
    notion = Neighbours.named(neighbours)
    declared = Protection.declare(protection, group=group, floor=floor)
    column = read_numbers(values, step=step, bounds=bounds, centre=centre, nullable=nullable)
    moves = column.moves(notion)
    size = moves.size if moves.whole else None
    choice = choose(statistic, column.domain, notion, moves.whole, declared, spent, size=size)
    summary = column.summarise(choice.reading or statistic, notion, choice.distance)
    if choice.clipping is not None:
        summary = column.sum_clipped(choice.clipping.draw_limits(summary), statistic, notion)
    mechanism = calibrate(choice, statistic, summary, declared)
    answer = draw_number(mechanism, statistic, column.domain, declared.fineness)
    if answer is None:
        return None
    if statistic.answer_step(column.domain, declared.fineness).denominator == 1:
        return int(answer)
    try:
        return float(answer)
    except OverflowError:  # noise has carried it beyond what a float can hold
        return math.inf if answer > 0 else -math.inf


Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def _with_options(function: Decorated) -> Decorated:
    """Show the keywords in the function's signature, for ``help`` and editors."""
    own = [p for p in signature(function).parameters.values() if p.kind is not Parameter.VAR_KEYWORD]
    common = [p for p in signature(_answer).parameters.values() if p.kind is Parameter.KEYWORD_ONLY]
    function.__signature__ = Signature([*own, *common])  # type: ignore[attr-defined]
    return function


@_with_options
def count(values: Any, **options: Unpack[Options]) -> Plain:
    """Count the values that are not missing; the size of a column that cannot miss any is public.

    >>> count([3, 1, 2], epsilon=1, nullable=False)
    3
    """
    return _answer("count", values, **options)


@_with_options
def total(values: Any, **options: Unpack[Options]) -> Plain:
    """Add up a column; without bounds, of values clipped to limits that are drawn first."""
    return _answer("total", values, **options)


@_with_options
def mean(values: Any, **options: Unpack[Options]) -> Plain:
    """Average a column; without bounds, values clipped to limits that are drawn first."""
    return _answer("mean", values, **options)


@_with_options
def median(values: Any, **options: Unpack[Options]) -> Plain:
    """Find the middle value, or the mean of the middle two.

    >>> incomes = [21_000 + 10 * i for i in range(1001)]
    >>> 25_000 < median(incomes, epsilon=0.5) < 27_000
    True
    """
    return _answer("median", values, **options)


@_with_options
def quantile(values: Any, q: Number, **options: Unpack[Options]) -> Plain:
    """Find the value below which a share q lies, interpolated between ranks."""
    return _answer("quantile", values, q, **options)


@_with_options
def minimum(values: Any, **options: Unpack[Options]) -> Plain:
    """Find the least value; without a lower bound ask for ``kth_smallest`` with k ≥ 2."""
    return _answer("minimum", values, **options)


@_with_options
def maximum(values: Any, **options: Unpack[Options]) -> Plain:
    """Find the greatest value; without an upper bound ask for ``kth_largest`` with k ≥ 2."""
    return _answer("maximum", values, **options)


@_with_options
def kth_smallest(values: Any, k: int, **options: Unpack[Options]) -> Plain:
    """Find the k-th smallest value."""
    return _answer("kth_smallest", values, k, **options)


@_with_options
def kth_largest(values: Any, k: int, **options: Unpack[Options]) -> Plain:
    """Find the k-th largest value; k = 2 is the paper's maximum of data without known bounds."""
    return _answer("kth_largest", values, k, **options)


@_with_options
def iqr(values: Any, **options: Unpack[Options]) -> Plain:
    """Find the interquartile range: the difference of the discrete quartiles."""
    return _answer("iqr", values, **options)


@_with_options
def trimmed_mean(values: Any, p: Number, **options: Unpack[Options]) -> Plain:
    """Average what is left after cutting ⌊p·n⌋ values off each end."""
    return _answer("trimmed_mean", values, p, **options)


@_with_options
def winsorized_mean(values: Any, p: Number, **options: Unpack[Options]) -> Plain:
    """Average after setting the ⌊p·n⌋ values at each end to the nearest one that is kept."""
    return _answer("winsorized_mean", values, p, **options)


@_with_options
def variance(values: Any, **options: Unpack[Options]) -> Plain:
    """Find the variance (dividing by n), in squared units; without bounds, of values clipped to drawn limits."""
    return _answer("variance", values, **options)


@_with_options
def mode(values: Any, categories: Sequence[Any], **options: Unpack[Options]) -> Any:
    """Select the most frequent of the declared categories; always differentially private.

    >>> mode(["a"] * 90 + ["b"] * 10, ["a", "b", "c"], epsilon=1)
    'a'
    """
    epsilon, notion, protection = _category_options(options)
    column = read_categories(values, categories, nullable=options.get("nullable"))
    statistic = find_statistic("mode").make()
    choice = choose(statistic, column.domain, notion, column.moves(notion).whole, protection, epsilon)
    drawn = calibrate(choice, statistic, column.summarise(notion), protection).draw()
    return None if drawn is None else to_list(categories)[drawn]


@_with_options
def histogram(
    values: Any,
    categories: Sequence[Any] | None = None,
    *,
    bins: Sequence[Any] | None = None,
    **options: Unpack[Options],
) -> list[int]:
    """Count each of the declared categories, or the values in each bin, all for one ε; always differentially private.

    ``bins`` are the public edges of intervals, half-open [lower, upper), the last one closed. A
    value is counted where its grid point is (``step``), and not at all outside.

    >>> histogram(["a"] * 90 + ["b"] * 10, ["a", "b", "c"], epsilon=20)
    [90, 10, 0]
    >>> histogram([3, 19, 20, 40, 41], bins=[0, 20, 40], epsilon=40)
    [2, 2]
    """
    if (categories is None) == (bins is None):
        raise InvalidInput("give either categories or bins: the values to count, or the edges of intervals")
    epsilon, notion, protection = _category_options(options, grid=bins is not None)
    if bins is not None:
        step, bounds, nullable = options.get("step"), options.get("bounds"), options.get("nullable")
        column = read_bins(values, bins, step=step, bounds=bounds, nullable=nullable)
    else:
        if read_declared(categories).family is Family.NUMBER:
            raise InvalidInput(
                "numbers as categories would be counted one by one: for intervals write bins=[0, 20, 40]; to count "
                "exact codes, turn them into text, the values too"
            )
        column = read_categories(values, categories, nullable=options.get("nullable"))
    cells = len(column.counts)
    scale = Histogram(cells).global_sensitivity(column.moves(notion)) / limit_epsilon(epsilon, protection.multiples)
    noise = DiscreteLaplace(scale).sample(cells)
    return [max(0, count + int(n)) for count, n in zip(column.counts, noise, strict=True)]


def _category_options(options: Options, *, grid: bool = False) -> tuple[Fraction, Neighbours, Protection]:
    """Check the options of a statistic of categories, which has no floor, and a grid only if there are bins."""
    unknown = set(options) - set(Options.__annotations__)
    if unknown:
        raise TypeError(f"got an unexpected keyword argument {min(unknown)!r}")
    for name in ("step", "bounds", "centre"):
        if options.get(name) is not None and not grid:
            raise InvalidInput(f"{name} belongs to columns of numbers; categories are declared by their values")
    protection = Protection.declare(options.get("protection", "individual"), group=options.get("group"))
    if "epsilon" not in options:
        raise TypeError("missing a required keyword argument: 'epsilon'")
    epsilon, notion = positive(options["epsilon"], "epsilon"), Neighbours.named(options.get("neighbours", "replace"))
    return epsilon, notion, protection

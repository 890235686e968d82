"""Private statistics of an array, one function each: ``idios.median(values, epsilon=0.5)``.

Every function reads a column, spends ``epsilon`` and returns a plain number, or None where the selection is too small
for an answer. Nothing is remembered between calls: a caller who calls twice has spent twice. The trusted party keeps
the account. ``help(idios)`` lists the keywords, which are those of ``_answer``.

None comes with the warning ``NoAnswer``, which says what None means. It tells no more than None does: it is given
whenever None is returned, and its words follow from the name of the function alone; never from how many values there
are, or how many of them are missing, which no answer tells.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, Required, TypedDict, TypeVar, Unpack, cast

from idios.answer.release import draw_number
from idios.core.calibration import DEFAULT, Protection, calibrate, choose
from idios.core.distributions import DiscreteLaplace
from idios.core.exact import Number, positive
from idios.core.multiples import limit_epsilon
from idios.core.neighbours import Neighbours
from idios.core.statistics import Histogram, find_statistic
from idios.data.arrays import read_bins, read_categories, read_numbers
from idios.data.labels import Family, read_declared, to_list
from idios.errors import InvalidInput

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
    protection: str = DEFAULT.value,
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
        limits = choice.clipping.draw_limits(summary)
        if limits.collapsed:
            return None
        summary = column.sum_clipped(limits[:2], statistic, notion)
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


class NoAnswer(UserWarning):
    """A function of an array returned None: too few values for an answer. Python shows it once for each line."""


Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def _with_options(function: Decorated) -> Decorated:
    """Give the function its keywords, in its signature (for ``help`` and editors) and its errors; and warn of None."""
    own = [p for p in signature(function).parameters.values() if p.kind is not Parameter.VAR_KEYWORD]
    common = [p for p in signature(_answer).parameters.values() if p.kind is Parameter.KEYWORD_ONLY]
    shown, name = Signature([*own, *common]), f"idios.{function.__name__}"

    @wraps(function)
    def checked(*values: Any, **options: Any) -> Any:
        try:
            shown.bind(*values, **options)
        except TypeError as error:
            raise TypeError(f"{name}() {error}; it is called as {name}{_write_call(shown)}") from None
        answer = function(*values, **options)
        if answer is None:
            warnings.warn(f"{name} is None: {TOO_FEW}", NoAnswer, stacklevel=2)
        return answer

    checked.__signature__ = shown  # type: ignore[attr-defined]
    checked.__doc__ = f"{function.__doc__ or ''}\n    help(idios) lists the keywords.\n    "
    return cast(Decorated, checked)


TOO_FEW = (
    "too few values for an answer with this epsilon and protection. Missing values (None, NaN, ±∞, NaT) do not count. "
    "Ask of more values or with a greater epsilon; where bounds are publicly known, declare them."
)


def _write_call(shown: Signature) -> str:
    """The parameters that must be given, for a message.

    >>> _write_call(signature(quantile))
    '(values, q, epsilon=…)'
    """
    needed = [p for p in shown.parameters.values() if p.default is Parameter.empty]
    return f"({', '.join(f'{p.name}=…' if p.kind is Parameter.KEYWORD_ONLY else p.name for p in needed)})"


@_with_options
def count(values: Any, **options: Unpack[Options]) -> Plain:
    """Count the values that are not missing; the size of a column that cannot miss any is public.

    >>> count([3, 1, 2], epsilon=1, nullable=False)
    3
    """
    return _answer("count", values, **options)


@_with_options
def total(values: Any, **options: Unpack[Options]) -> Plain:
    """Add up a column; without bounds, of values clipped to limits that are drawn first.

    >>> ages = [20 + i % 60 for i in range(3000)]
    >>> 145_000 < total(ages, epsilon=1, bounds=(0, 120)) < 152_000  # it is 148,500
    True
    """
    return _answer("total", values, **options)


@_with_options
def mean(values: Any, **options: Unpack[Options]) -> Plain:
    """Average a column; without bounds, values clipped to limits that are drawn first.

    >>> ages = [20 + i % 60 for i in range(3000)]
    >>> 48 < mean(ages, epsilon=1, bounds=(0, 120)) < 51  # it is 49.5
    True
    """
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
    """Find the value below which a share q lies, interpolated between ranks.

    >>> incomes = [21_000 + 10 * i for i in range(2001)]
    >>> 35_000 < quantile(incomes, 0.9, epsilon=0.5) < 41_000  # it is 39,000
    True
    """
    return _answer("quantile", values, q, **options)


@_with_options
def minimum(values: Any, **options: Unpack[Options]) -> Plain:
    """Find the least value; without a lower bound ask for ``kth_smallest`` with k ≥ 10/ε.

    >>> ages = [20 + i % 60 for i in range(3000)]
    >>> 0 <= minimum(ages, epsilon=1, bounds=(0, 120)) <= 120  # at least a bound that is public
    True
    """
    return _answer("minimum", values, **options)


@_with_options
def maximum(values: Any, **options: Unpack[Options]) -> Plain:
    """Find the greatest value; without an upper bound ask for ``kth_largest`` with k ≥ 10/ε.

    >>> maximum([1, 2, 3], epsilon=1)
    Traceback (most recent call last):
    idios.errors.Unanswerable: maximum needs an upper bound, ...
    """
    return _answer("maximum", values, **options)


@_with_options
def kth_smallest(values: Any, k: int, **options: Unpack[Options]) -> Plain:
    """Find the k-th smallest value.

    >>> incomes = [21_000 + 10 * i for i in range(2001)]
    >>> 20_000 < kth_smallest(incomes, 50, epsilon=4) < 22_000  # it is 21,490
    True
    """
    return _answer("kth_smallest", values, k, **options)


@_with_options
def kth_largest(values: Any, k: int, **options: Unpack[Options]) -> Plain:
    """Find the k-th largest value; k = 2 at "individual" is the paper's maximum of data without known bounds.

    >>> incomes = [21_000 + 10 * i for i in range(2001)]
    >>> 40_000 < kth_largest(incomes, 2, epsilon=1, protection="individual") < 42_000  # it is 40,990
    True
    """
    return _answer("kth_largest", values, k, **options)


@_with_options
def iqr(values: Any, **options: Unpack[Options]) -> Plain:
    """Find the interquartile range: the difference of the discrete quartiles.

    >>> incomes = [21_000 + 10 * i for i in range(2001)]
    >>> 9_000 < iqr(incomes, epsilon=0.5) < 11_000  # it is 10,000
    True
    """
    return _answer("iqr", values, **options)


@_with_options
def trimmed_mean(values: Any, p: Number, **options: Unpack[Options]) -> Plain:
    """Average what is left after cutting ⌊p·n⌋ values off each end.

    >>> incomes = [21_000 + 10 * i for i in range(2001)]
    >>> 30_500 < trimmed_mean(incomes, 0.05, epsilon=0.5) < 31_500  # it is 31,000
    True
    """
    return _answer("trimmed_mean", values, p, **options)


@_with_options
def winsorized_mean(values: Any, p: Number, **options: Unpack[Options]) -> Plain:
    """Average after setting the ⌊p·n⌋ values at each end to the nearest one that is kept.

    >>> incomes = [21_000 + 10 * i for i in range(2001)]
    >>> 30_500 < winsorized_mean(incomes, 0.05, epsilon=0.5) < 31_500  # it is 31,000
    True
    """
    return _answer("winsorized_mean", values, p, **options)


@_with_options
def variance(values: Any, **options: Unpack[Options]) -> Plain:
    """Find the variance (dividing by n), in squared units; without bounds, of values clipped to drawn limits.

    >>> ages = [20 + i % 60 for i in range(3000)]
    >>> 250 < variance(ages, epsilon=1, bounds=(0, 120)) < 350  # it is 299.9
    True
    """
    return _answer("variance", values, **options)


@_with_options
def stddev(values: Any, **options: Unpack[Options]) -> Plain:
    """Find the standard deviation, the root of ``variance``, in the column's units.

    >>> ages = [20 + i % 60 for i in range(3000)]
    >>> 15 < stddev(ages, epsilon=1, bounds=(0, 120)) < 20  # it is 17.3
    True
    """
    return _answer("stddev", values, **options)


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
    for name in ("step", "bounds", "centre"):
        if options.get(name) is not None and not grid:
            raise InvalidInput(f"{name} belongs to columns of numbers; categories are declared by their values")
    protection = Protection.declare(options.get("protection", DEFAULT), group=options.get("group"))
    epsilon, notion = positive(options["epsilon"], "epsilon"), Neighbours.named(options.get("neighbours", "replace"))
    return epsilon, notion, protection

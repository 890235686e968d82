"""A question as it was read, and the plan that is made of it.

1. A question is the analyst's words resolved against the declared columns; nothing is decided yet.
2. Its ε is divided among its statistics evenly, or in the proportions that ``split=`` gives. A quote shows what results
   from it (``Quote.split``): the ε of each released cell, by column.
3. A plan says what will be computed and released, decided from public facts alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias

from idios.core.calibration import Choice, Method
from idios.core.distance_check import Both, DistanceCheck
from idios.core.domain import Categories, Domain
from idios.core.exact import positive, round_root_up, text
from idios.core.guarantee import Guarantee
from idios.core.neighbours import Neighbours
from idios.core.statistics import Reading, Statistic
from idios.declare.schema import Dataset
from idios.errors import InvalidInput
from idios.expressions.predicates import ALWAYS, Intervals, Predicate, union
from idios.plan.postprocessing import Select, TracedSelect, trace_selects
from idios.plan.reductions import Reduction


@dataclass(frozen=True)
class Measure:
    """One statistic of one column (None: of the records themselves) under the name it is shown by.

    ``offset`` is its place in the text, for messages.
    """

    label: str
    statistic: Statistic
    column: str | None = None
    offset: int | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Key:
    """One GROUP BY key: a column of categories or of truth, or with ``width`` the bins of a numeric one."""

    label: str
    column: str
    width: Fraction | None = None
    offset: int | None = field(default=None, compare=False)

    @property
    def meaning(self) -> tuple[str, Fraction | None]:
        """The key whatever it is called."""
        return self.column, self.width


@dataclass(frozen=True)
class Question:
    """What is asked of one data set.

    ``measures`` are the statistics that are released, ``keys`` is the GROUP BY list in its order. ``shown`` says what
    is computed from the values of keys and measures, in this order, and which rows are shown. With a ``reduction`` all
    of it is about people, and measures, filter and keys name columns of the reduced data set.
    """

    dataset: str
    measures: tuple[Measure, ...]
    filter: Predicate = ALWAYS
    keys: tuple[Key, ...] = ()
    shown: tuple[Select, ...] = ()
    source: str = field(default="", compare=False)
    reduction: Reduction | None = None

    def __post_init__(self) -> None:
        if not self.measures:
            raise InvalidInput("a question asks for at least one statistic")


MAX_BITS = 4_000
"""How long the common denominator of the parts may be: shares are written out, and lengths of fractions add up."""

Split: TypeAlias = Mapping[str, object] | Sequence[object] | None
"""A number for each label, or for each statistic in the order of the SELECT list; None: evenly."""


def read_split(measures: Sequence[Measure], same: Sequence[int], split: Split) -> tuple[Fraction, ...]:
    """The proportion of each different statistic; ``same[i]`` says which of them the i-th measure is.

    A statistic listed twice gets the sum of both.

    >>> from idios.core.statistics import Count, Median
    >>> two = (Measure("n", Count()), Measure("m", Median(), "age"))
    >>> read_split(two, (0, 1), None), read_split(two, (1, 0), {"n": 1, "m": "0.5"})
    ((Fraction(1, 1), Fraction(1, 1)), (Fraction(1, 2), Fraction(1, 1)))
    """
    different = max(same) + 1
    if split is None:
        return (Fraction(1),) * different
    proportions = [Fraction(0)] * different
    together = Fraction(0)
    for measure, index, part in zip(measures, same, _parts(measures, split), strict=True):
        if part is not None:
            proportions[index] += positive(part, f"the part of {measure.label}")
            together += proportions[index]
            if max(together.numerator.bit_length(), together.denominator.bit_length()) > MAX_BITS:
                raise InvalidInput("the parts of split cannot be added up in reasonable length: write short decimals")
    for measure, index in zip(measures, same, strict=True):
        if not proportions[index]:
            raise InvalidInput(f"split gives no part to {measure.label}: {_wanted(measures)}")
    return tuple(proportions)


def _parts(measures: Sequence[Measure], split: Mapping[str, object] | Sequence[object]) -> list[object]:
    """What each measure is given; None for the second of two with one label."""
    labels = [measure.label for measure in measures]
    if isinstance(split, Mapping):
        if unknown := [str(label) for label in split if label not in labels]:
            raise InvalidInput(f"split names {unknown[0]!r}, which is no statistic here: {_wanted(measures)}")
        return [split.get(label) if label not in labels[:i] else None for i, label in enumerate(labels)]
    if isinstance(split, str) or not isinstance(split, Sequence) or len(split) != len(measures):
        raise InvalidInput(f"split does not fit the question: {_wanted(measures)}")
    return list(split)


def _wanted(measures: Sequence[Measure]) -> str:
    labels = ", ".join(dict.fromkeys(measure.label for measure in measures))
    return f"give one number greater than 0 for each of {labels}, by its name"


@dataclass(frozen=True)
class Aggregate:
    """One statistic of one column (None: of the records themselves) as it is answered in every cell.

    ``domain`` is the column's, narrowed by the filter. ``whole`` says that the selected values are all values of the
    table by declaration (no filter, no groups, not nullable), so that under replace their number is public.
    ``neighbours`` are those that its mechanism is calibrated to. ``check`` tells how far off the answer is, and
    ``demanded`` is the least part of ε that follows from it; where the declared one was left out for want of ε,
    ``check_lacks`` is by what ε would have to be multiplied.
    """

    label: str
    statistic: Statistic
    column: str | None
    domain: Domain | Categories
    whole: bool
    epsilon: Fraction
    choice: Choice
    neighbours: Neighbours
    check: DistanceCheck | None = None
    demanded: Fraction | None = None
    check_lacks: Fraction | None = None

    @property
    def least_part(self) -> Fraction:
        """The ε that is compared with ``min_epsilon``. A default check is dropped before a question is refused."""
        return self.epsilon if self.demanded is None else self.demanded

    @property
    def reading(self) -> Reading:
        """What is read of the data before anything is drawn."""
        if self.choice.reading is None or self.check is None:
            return self.choice.reading or self.statistic
        return Both(self.choice.reading, self.statistic)

    @property
    def distance(self) -> int:
        """How many changed records the envelope is read for."""
        return self.choice.distance if self.check is None else max(self.choice.distance, self.check.reach)

    @property
    def pure(self) -> bool:
        """Whether ε bounds what it tells: not with Gaussian noise."""
        return self.choice.rho is None and (self.check is None or self.check.rho is None)

    @property
    def fitted(self) -> bool:
        """Whether the scale of its noise follows from the data, so that each value tells a threshold whatever its ε."""
        return self.choice.method is Method.LOCAL

    @property
    def grid(self) -> Domain:
        """The domain as a grid; the indices of its values, for categories."""
        return self.domain.grid


@dataclass(frozen=True)
class Group:
    """One GROUP BY key: a column of categories or of truth, or bins of equal width of a bounded one.

    ``intervals`` are the grid points of each group in order, ``values`` what the analyst sees for it, ``width`` that of
    a bin.
    """

    label: str
    column: str
    intervals: tuple[tuple[int, int], ...]
    values: tuple[str | Fraction, ...]
    width: Fraction | None = None

    @cached_property
    def points(self) -> Intervals:
        """The grid points of all groups."""
        return union(self.intervals)

    @property
    def name(self) -> str:
        """The key in SQL, whatever the analyst called it."""
        return self.column if self.width is None else f"BIN({self.column}, {text(self.width)})"


@dataclass(frozen=True)
class Plan:
    """One question, ready to be charged and answered.

    ``cells`` lists the groups answered, as indices into each key's values; one empty tuple without GROUP BY.
    ``normal_form`` is equal for questions that mean the same. Groups, cells and aggregates are in a canonical
    order, which does not depend on the wording either, so that a stored answer, cell by cell, serves every
    question of the same normal form. ``keys`` and ``measures`` say which group and which aggregate each of the
    question's own is, and ``shown`` what is made of them. ``asked`` is the ε that the question was asked with, ``rho``
    what it costs with concentrated accounting. ``sql`` is the question as the caller wrote it. ``checked`` are the
    cells of an earlier answer, where this only tells how far off they are.
    """

    dataset: Dataset
    filter: Predicate
    groups: tuple[Group, ...]
    cells: tuple[tuple[int, ...], ...]
    aggregates: tuple[Aggregate, ...]
    asked: Fraction
    rho: Fraction
    guarantee: Guarantee
    normal_form: str
    keys: tuple[int, ...] = ()
    measures: tuple[tuple[str, int], ...] = ()
    shown: tuple[Select, ...] = ()
    sql: str = field(default="", compare=False)
    checked: tuple[tuple[str | None, ...], ...] | None = None
    form: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """What ``normal_form`` is the text of, as far as ``question_words`` reads it."""

    @cached_property
    def pool(self) -> Plan | None:
        """What limits are read from that all cells share: every record in a cell; None where none are shared."""
        pooled = [a for a in self.aggregates if a.choice.clipping is not None and a.choice.clipping.pooled]
        if not pooled:
            return None
        drawn = tuple(
            replace(
                a,
                whole=a.choice.clipping.size is not None,
                neighbours=self.dataset.neighbours,
                choice=replace(a.choice, reading=replace(a.choice.clipping, pooled=False)),
            )
            for a in pooled
            if a.choice.clipping is not None
        )
        return replace(self, groups=(), cells=((),), keys=(), aggregates=drawn, shown=())

    @cached_property
    def traced(self) -> tuple[TracedSelect, ...]:
        """Where all that is shown comes from: the places are those of the keys, then those of the measures."""
        return tuple(trace_selects(self.shown, len(self.keys) + len(self.measures), len(self.cells)))

    @cached_property
    def choosing(self) -> frozenset[int]:
        """The aggregates whose released values, noise included, decide which rows are shown."""
        places = self.traced[-1].choosing if self.traced else ()
        found = {self.measures[place - len(self.keys)][1] for place in places if place >= len(self.keys)}
        exact = (aggregate.choice.method is Method.EXACT and self.checked is None for aggregate in self.aggregates)
        return frozenset(found - {number for number, known in enumerate(exact) if known})

    def count_choices(self, number: int) -> int:
        """How many cells a row that is shown is chosen from by the value of an aggregate; 1 where it is not."""
        return len(self.cells) if number in self.choosing else 1

    @property
    def pure(self) -> bool:
        """Whether ε bounds what the answer tells: not with Gaussian noise."""
        return all(aggregate.pure for aggregate in self.aggregates)

    @property
    def epsilon(self) -> Fraction:
        """What it costs with pure accounting; with Gaussian noise only what it was asked with, which bounds nothing."""
        return self.guarantee.epsilon if self.pure else self.asked * self.dataset.protection.multiples[0]

    @property
    def cells_touched(self) -> int:
        """How many cells one changed record can touch: under replace it may leave one cell and enter another."""
        return 2 if self.dataset.neighbours is Neighbours.REPLACE and len(self.cells) > 1 else 1

    @property
    def fitted(self) -> int:
        """How many of the released values have noise fitted to the data."""
        return len(self.cells) * sum(aggregate.fitted for aggregate in self.aggregates)

    @property
    def least_epsilon(self) -> Fraction:
        """The ε from which on this question is answered.

        It leaves the data set's least ε to every released value, and pays for every fitted one as if that had been
        asked alone: disjoint cells share ε, but each of them tells a threshold of its own. With Gaussian noise what is
        paid is ρ, of which k values at the least ε cost k times as much: √k times the ε. What counts is ε_1.
        """
        least = self.dataset.min_epsilon / self.dataset.protection.multiples[0]
        each = self.asked * least / self.smallest_share if self.smallest_share else Fraction(0)
        enough = max(each, self.least_fitted)
        return self._round(enough)

    @property
    def least_fitted(self) -> Fraction:
        """The ε from which on the fitted values are answered."""
        least = self.dataset.min_epsilon / self.dataset.protection.multiples[0]
        return self.fitted * least if self.pure else round_root_up(self.fitted * least**2)

    @property
    def smallest_share(self) -> Fraction:
        """The least ε of any released value, or check that was asked for; 0 where nothing is paid for."""
        return min((part for aggregate in self.aggregates if (part := aggregate.least_part)), default=Fraction(0))

    @property
    def checks(self) -> dict[str, Fraction]:
        """By column, the ε of the check of its answer."""
        return self._by_label(lambda aggregate: None if aggregate.check is None else aggregate.check.epsilon)

    @property
    def checked_from(self) -> dict[str, Fraction]:
        """By column whose declared check was left out, the ε from which on a question like this one has it."""
        return self._by_label(
            lambda aggregate: aggregate.check_lacks and self._round(self.asked * aggregate.check_lacks)
        )

    def _by_label(self, find: Callable[[Aggregate], Fraction | None]) -> dict[str, Fraction]:
        found = [(label, find(self.aggregates[number])) for label, number in self.measures]
        return {label: amount for label, amount in found if amount is not None}

    def _round(self, epsilon: Fraction) -> Fraction:
        # shares of ρ are rounded, and nobody can type 10000/141421
        return Fraction(math.ceil(epsilon * 10**6), 10**6) if self.dataset.concentrated else epsilon

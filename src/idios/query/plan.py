"""A plan: what will be computed and released, decided from public facts alone."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from idios.core.calibration import Choice, Method
from idios.core.domain import Categories, Domain
from idios.core.guarantee import Guarantee
from idios.core.neighbours import Neighbours
from idios.core.statistics import Statistic
from idios.query.predicates import Predicate
from idios.query.schema import Dataset


@dataclass(frozen=True)
class Aggregate:
    """One statistic of one column (None: of the records themselves) as it is answered in every cell.

    ``domain`` is the column's, narrowed by the filter. ``whole`` says that the selected values are all values of the
    table by declaration (no filter, no groups, not nullable), so that under replace their number is public.
    """

    label: str
    statistic: Statistic
    column: str | None
    domain: Domain | Categories
    whole: bool
    epsilon: Fraction
    delta: Fraction
    choice: Choice

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
    """One GROUP BY key: a category column, or bins of equal width of a bounded one.

    ``intervals`` are the grid points of each group in order, ``values`` what the analyst sees for it.
    """

    label: str
    column: str
    intervals: tuple[tuple[int, int], ...]
    values: tuple[str | Fraction, ...]


@dataclass(frozen=True)
class Output:
    """One column of the answer: a key (``group``, an index into the plan's groups) or a statistic (``aggregate``)."""

    label: str
    group: int | None = None
    aggregate: int | None = None


@dataclass(frozen=True)
class Plan:
    """One question, ready to be charged and answered.

    ``cells`` lists the groups answered, as indices into each key's values; one empty tuple without GROUP BY.
    ``normal_form`` is equal for questions that mean the same. Groups, cells and aggregates are in a canonical
    order, which does not depend on the wording either, so that a stored answer, cell by cell, serves every
    question of the same normal form; ``outputs`` says how this question wants it shown.
    """

    dataset: Dataset
    filter: Predicate
    groups: tuple[Group, ...]
    cells: tuple[tuple[int, ...], ...]
    aggregates: tuple[Aggregate, ...]
    epsilon: Fraction
    delta: Fraction
    guarantee: Guarantee
    normal_form: str
    outputs: tuple[Output, ...] = ()

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

        It leaves the data set's least ε to every released value, and pays it in full for every fitted one: disjoint
        cells share ε, but each of them tells a threshold of its own.
        """
        least = self.dataset.min_epsilon
        shares = [aggregate.epsilon for aggregate in self.aggregates if aggregate.epsilon]
        each = self.epsilon * least / min(shares) if shares else Fraction(0)
        return max(each, self.fitted * least)

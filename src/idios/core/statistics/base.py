"""The contract of a statistic: how it is called, what it reads, its value, its envelope, and how it is tested.

A statistic is a public description (``Quantile(1/4)``), never data. It reads one summary and
answers two questions: what is my value, and how far can i changed records move it. All
intermediate numbers are exact; the last step places them on the answer's grid, which is monotone,
so the envelope stays exact there.

A new statistic is one frozen dataclass that is listed in ``STATISTICS`` (``idios.core.statistics``): SQL, the
catalogue, the comparison of levels and the contract tests read everything else off the class.

A rank, an order or a share that an analyst can choose freely is a knob to aim an answer at a single record (an attack
in the literature walks a quantile along a threshold) where noise is fitted to the data. So the values of every
parameter come from a public set that is declared beforehand (``Parameters``). MEDIAN, MIN, MAX and AVG name no
parameter and are always offered. Where every answer is differentially private, each step of such a walk costs its ε and
tells no more than any other question: the set may be as fine as answers are (``FINE``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, ClassVar, Protocol, Self

from idios.core.domain import Domain, Kind
from idios.core.envelope import Envelope
from idios.core.exact import INFINITY, Extended, floor_half_up, text
from idios.core.neighbours import Exchange, Moves, Neighbours
from idios.core.summary import Summary

NUMERIC = frozenset({Kind.INTEGER, Kind.NUMBER, Kind.DECIMAL})
ORDERED = NUMERIC | {Kind.DATE, Kind.TIMESTAMP}
ANY_KIND = frozenset(Kind)
CATEGORICAL = frozenset({Kind.CATEGORY})


@dataclass(frozen=True)
class Parameters:
    """The ranks, orders and shares that an analyst may name: public sets, fixed beforehand.

    Quantiles are the multiples of ``quantile`` strictly between 0 and 1, trims the multiples of ``trim`` below ½,
    k one of ``k``. None lifts the restriction.
    """

    quantile: Fraction | None = Fraction(1, 20)
    k: frozenset[int] | None = frozenset({1, 2, 3, 5, 10, 20})
    trim: Fraction | None = Fraction(1, 20)

    @property
    def orders(self) -> list[int]:
        """The values of k to propose, ascending."""
        return [2, 3, 5, 10, 20, 30, 50, 100, 200, 500, 1000] if self.k is None else sorted(self.k)


FINE = Parameters(quantile=Fraction(1, 1000), k=None, trim=Fraction(1, 1000))
"""What may be named where no noise is fitted to the data."""


class Parameter(Protocol):
    """The one argument that some statistics take: ``name`` is that of the field, in SQL and in the library alike."""

    @property
    def name(self) -> str:
        """The name of the argument."""

    def find_objection(self, value: Fraction | int, parameters: Parameters) -> str | None:
        """Why a value is not one of those declared; None if it is."""

    def propose(self, parameters: Parameters) -> Fraction | int:
        """A value for an example."""


@dataclass(frozen=True)
class Share:
    """A fraction out of the multiples of a declared step, such as q = 0.05, 0.1, 0.15, …"""

    name: str
    declared_as: str
    where: str
    example: Fraction

    def find_objection(self, value: Fraction | int, parameters: Parameters) -> str | None:
        """Why the value is no multiple of the declared step; None if it is."""
        step = self._step(parameters)
        if step is None or not value % step:
            return None
        return f"{self.name} = {text(value)} is not offered: {self.name} is a multiple of {text(step)} {self.where}"

    def propose(self, parameters: Parameters) -> Fraction | int:
        """The usual one where it is offered, else the declared step itself."""
        step = self._step(parameters)
        return self.example if step is None or not self.example % step else step

    def _step(self, parameters: Parameters) -> Fraction | None:
        step: Fraction | None = getattr(parameters, self.declared_as)
        return step


@dataclass(frozen=True)
class Order:
    """A whole number out of the declared set ``k``."""

    name: str

    def find_objection(self, value: Fraction | int, parameters: Parameters) -> str | None:
        """Why the value is not in the set; None if it is."""
        if parameters.k is None or value in parameters.k:
            return None
        offered = ", ".join(map(str, sorted(parameters.k)))
        return f"{self.name} = {value} is not offered: {self.name} is one of {offered}"

    def propose(self, parameters: Parameters) -> Fraction | int:
        """The least one above 1, if there is one."""
        return min(parameters.k or {2}, key=lambda k: (k == 1, k))


QUANTILE_SHARE = Share("q", "quantile", "between 0 and 1", example=Fraction(1, 4))
TRIMMED_SHARE = Share("p", "trim", "below 0.5", example=Fraction(1, 20))
ORDER = Order("k")


@dataclass(frozen=True)
class Spelling:
    """One name of a statistic in SQL.

    ``within_group`` allows NAME(q) WITHIN GROUP (ORDER BY column) as well; ``distinct`` asks for NAME(DISTINCT column);
    ``synonym`` marks a second spelling that lists of functions need not repeat.

    >>> Spelling("KTH_LARGEST").write("income", 2), Spelling("COUNT", distinct=True).write("income")
    ('KTH_LARGEST(income, 2)', 'COUNT(DISTINCT income)')
    """

    name: str
    within_group: bool = False
    distinct: bool = False
    synonym: bool = False

    def write(self, column: str, argument: Fraction | int | str | None = None) -> str:
        """The call as SQL text; the column is written as given."""
        column = f"DISTINCT {column}" if self.distinct else column
        if argument is None:
            return f"{self.name}({column})"
        return f"{self.name}({column}, {argument if isinstance(argument, str) else text(argument)})"


FINENESS = 10**6
"""How many steps of the fine grid make one step of the column, unless declared otherwise."""


class Reading:
    """What is read of the selected values of a column, and nothing else of them leaves the source."""

    counts_records: ClassVar[bool] = False
    """Whether only the number of selected records matters, whichever column they are selected by."""
    needs_sums: ClassVar[bool] = False
    needs_squares: ClassVar[bool] = False
    needs_distinct: ClassVar[bool] = False
    needs_counts: ClassVar[bool] = False
    """Whether it reads how often every point of a bounded domain occurs."""

    def ranks(self, moves: Moves, distance: int) -> Iterable[tuple[int, int]]:
        """The runs of ranks (first, last) that are read; ends beyond the data are cut off."""
        return ()

    def thresholds(self, moves: Moves, domain: Domain, total: int) -> Iterable[Fraction]:
        """The points whose nearest selected values on both sides are read."""
        return ()


@dataclass(frozen=True)
class Sums(Reading):
    """The sum of the values."""

    needs_sums = True


@dataclass(frozen=True)
class SumsOfSquares(Sums):
    """The sum of the values and that of their squares."""

    needs_squares = True


class Statistic(Reading, ABC):
    """A number, or a category, computed from the selected values of one column."""

    name: ClassVar[str]
    """What messages and normal forms call it; it must never change, as stored answers are found by it."""

    # How it is called.

    spellings: ClassVar[tuple[Spelling, ...]] = ()
    """Its names in SQL, the preferred one first; none for a statistic that SQL does not offer."""
    function: ClassVar[str | None] = None
    """The library's function of an array, if there is one; it takes the parameter after the values."""
    kinds: ClassVar[frozenset[Kind]] = NUMERIC
    """The kinds of column that it is offered for."""
    parameter: ClassVar[Parameter | None] = None
    """The argument that a caller names, which is the dataclass's field of that name."""
    advice: ClassVar[Mapping[str, str]] = {}
    """Names of other SQL dialects that are not offered, and what to write instead."""

    # What its answer is.

    fractional: ClassVar[bool] = False
    """Whether the value is not a whole number of steps by nature, so that the fine grid is used."""
    degree: ClassVar[int] = 1
    """The unit of the answer: the column's step to this power."""
    selects: ClassVar[bool] = False
    """Whether the answer is a category, drawn by how far each is ``behind``, rather than a number with noise."""
    coarse_floor: ClassVar[bool] = False
    """Whether the floor under the sensitivity is a step of the column rather than of the answer."""
    always_global: ClassVar[bool] = False
    """Whether the local sensitivity is never much below the global one, which is then always used."""
    nested: ClassVar[bool] = True
    """Whether computed envelopes of neighbours are nested, as differential privacy needs."""
    tries_splits: ClassVar[bool] = False
    """Whether under add-remove all splits into additions and removals are tried, which takes long far out."""
    equivariant: ClassVar[bool] = True
    """Whether it moves along when all values move, so that it lies where the values lie."""

    @classmethod
    def make(cls, *argument: Any) -> Self:
        """The statistic with its argument as a caller wrote it, or without one."""
        return cls(*argument)

    @property
    def argument(self) -> Fraction | int | None:
        """The value of its field, also where its name implies it (½ for a median); None if it has none."""
        values = [getattr(self, field.name) for field in fields(self)]  # type: ignore[arg-type]
        return values[0] if values else None

    def normalise(self) -> Statistic:
        """The one way to say this statistic, for all ways to spell it: QUANTILE(x, 0.5) is MEDIAN(x)."""
        return self

    def find_objection(self, parameters: Parameters) -> str | None:
        """Why its argument is not one of those declared; None if it is. What a plain name says is always offered."""
        plain = self.normalise()
        if plain.parameter is None or plain.argument is None:
            return None
        return plain.parameter.find_objection(plain.argument, parameters)

    def alternatives(self, parameters: Parameters) -> Iterator[Statistic]:
        """What to propose where it cannot be answered, best first; a median is always proposed last."""
        yield from ()

    def advise(self, distance: int) -> str:
        """What to ask for instead where bounds are missing and ``distance`` changes must be survived."""
        return "trimmed_mean, winsorized_mean or median"

    @classmethod
    def examples(cls) -> Sequence[Self]:
        """Instances that every contract test tries, on tables of a handful of values."""
        return (cls(),)

    @abstractmethod
    def define(self, values: Sequence[int]) -> Fraction | int | None:
        """The definition, from the whole ascending list; None where there is none, and before ``place``.

        No answer is computed from it: the contract tests compare envelopes with it by trying every neighbour.
        """

    def exact_reach(self, neighbours: Neighbours) -> float:
        """The distance up to which the envelope is exact; beyond, it is a safe bound."""
        return INFINITY

    @property
    def least_size(self) -> int:
        """The smallest selection on which the statistic is defined."""
        return 1

    @abstractmethod
    def limits(self, summary: Summary, distance: int) -> tuple[Extended, Extended]:
        """Exact lo_i and hi_i at one distance, where the statistic is defined all the way there."""

    @abstractmethod
    def range(self, domain: Domain) -> tuple[Extended, Extended]:
        """The values the statistic can take at all."""

    def global_sensitivity(self, domain: Domain, moves: Moves) -> Extended | None:
        """The greatest change by one record over all data sets, where it is known and small.

        ``moves.size`` may be used only where it is public (``moves.whole``).
        """
        return None

    def missing_bound(self, domain: Domain, distance: int) -> str | None:
        """What must be declared for the envelope to be finite on any data at all; None if nothing."""
        return None

    def behind(self, summary: Summary) -> tuple[int, ...]:
        """Where it ``selects``: by how many records each point of the domain falls short of the best."""
        raise NotImplementedError(f"{self.name} is a number")

    def rate(self, epsilon: Fraction, neighbours: Neighbours) -> Fraction:
        """Where it ``selects``: the rate at which a point's weight falls with every record it is ``behind``."""
        raise NotImplementedError(f"{self.name} is a number")

    def resolution(self, fineness: int = FINENESS) -> int:
        """Steps of the answer's grid in one unit of the answer."""
        return fineness if self.fractional else 1

    def answer_step(self, domain: Domain, fineness: int = FINENESS) -> Fraction:
        """The step of the answer's grid, in the column's units."""
        return domain.step**self.degree / self.resolution(fineness)

    def place(self, value: Extended, fineness: int = FINENESS) -> int | float:
        """The point of the answer's grid that stands for an exact value; monotone."""
        return floor_half_up(value, self.resolution(fineness))

    def placed_limits(self, summary: Summary, distance: int, fineness: int) -> tuple[int | float, int | float]:
        """``limits`` on the answer's grid."""
        least, most = self.limits(summary, distance)
        return self.place(least, fineness), self.place(most, fineness)

    def envelope(self, summary: Summary, distance: int, fineness: int = FINENESS) -> Envelope:
        """The envelope out to ``distance``, on the answer's grid."""
        return self.enveloped(summary, distance, fineness, lambda i: self.placed_limits(summary, i, fineness))

    def enveloped(
        self, summary: Summary, distance: int, fineness: int, limits: Callable[[int], tuple[int | float, int | float]]
    ) -> Envelope:
        """The envelope from the placed limits of each distance; the whole range where the statistic is undefined."""
        low, high = (self.place(end, fineness) for end in self.range(summary.domain))
        lows: list[int | float] = []
        highs: list[int | float] = []
        value: int | None = None
        for i in range(distance + 1):
            if summary.moves.sizes(i)[0] >= self.least_size:
                least, most = limits(i)
                if i == 0:
                    value = int(least)
                lows.append(min([least, *lows[-1:]]))
                highs.append(max([most, *highs[-1:]]))
            else:
                lows.append(low)
                highs.append(high)
        return Envelope(value, tuple(lows), tuple(highs))


class MonotoneStatistic(Statistic):
    """A statistic that grows with its values and obeys the lemma of ``Moves.extreme_exchanges``.

    Its highest value after an exchange is read from the list of which the least ``dropped`` values
    are gone and ``placed`` stand at the upper bound: rank r of that list is rank r + dropped of the
    data. Its lowest value: rank r is rank r − placed of the data. So one formula, ``read``, gives
    value and envelope alike.
    """

    @abstractmethod
    def read_parts(self, summary: Summary, size: int, offset: int) -> tuple[int | float, int]:
        """``read`` as a numerator, which may be infinite, and a denominator; Fractions are slow."""

    def read(self, summary: Summary, size: int, offset: int) -> Extended:
        """The statistic of a list of ``size`` values whose rank r is the data's rank r + offset."""
        numerator, denominator = self.read_parts(summary, size, offset)
        return numerator if isinstance(numerator, float) else Fraction(numerator, denominator)

    def read_placed(self, summary: Summary, size: int, offset: int, fineness: int) -> int | float:
        """The same on the answer's grid."""
        numerator, denominator = self.read_parts(summary, size, offset)
        if isinstance(numerator, float):
            return numerator
        return (2 * numerator * self.resolution(fineness) + denominator) // (2 * denominator)

    def extreme_exchanges(self, moves: Moves, distance: int) -> Iterable[Exchange]:
        """The exchanges among which the highest and the lowest value are found."""
        return moves.extreme_exchanges(distance)

    def limits(self, summary: Summary, distance: int) -> tuple[Extended, Extended]:
        """The least and greatest reading over the extreme exchanges."""
        return self._read_extremes(summary, distance, lambda size, offset: self.read(summary, size, offset))

    def placed_limits(self, summary: Summary, distance: int, fineness: int) -> tuple[int | float, int | float]:
        """The same on the answer's grid, to which rounding is monotone."""
        return self._read_extremes(
            summary, distance, lambda size, offset: self.read_placed(summary, size, offset, fineness)
        )

    def _read_extremes(self, summary: Summary, distance: int, read: Callable[[int, int], Any]) -> tuple[Any, Any]:
        lows, highs = [], []
        for dropped, placed in self.extreme_exchanges(summary.moves, distance):
            size = summary.size - dropped + placed
            lows.append(read(size, -placed))
            highs.append(read(size, dropped))
        return min(lows), max(highs)

    def range(self, domain: Domain) -> tuple[Extended, Extended]:
        """The bounds of the column."""
        return domain.low, domain.high

"""How a statistic is called: its names in SQL, the columns it takes, its parameter and the values that are offered.

A rank, an order or a share that an analyst can choose freely is a knob to aim an answer at a single record (an attack
in the literature walks a quantile along a threshold). So the values of every parameter come from a public set that is
declared beforehand (``Parameters``). MEDIAN, MIN, MAX and AVG name no parameter and are always offered.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from idios.core.domain import Kind
from idios.core.exact import text

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
        return list(range(2, 21)) if self.k is None else sorted(self.k)

    @property
    def trims(self) -> list[Fraction]:
        """The shares to propose: the least one that cuts something off, if there is one below ½."""
        least = self.trim or Fraction(1, 20)
        return [least] if least < Fraction(1, 2) else []


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
        """The declared step itself."""
        return self._step(parameters) or self.example

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

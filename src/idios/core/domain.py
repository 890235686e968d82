"""What is publicly known of a column: its grid, and perhaps its bounds.

Rules:

1. Every numeric column lives on a grid of whole multiples of a declared step. A value v is
   read as the integer ⌊v/step + ½⌋; everything after that is integer arithmetic.
2. With bounds, a value outside reads as the nearer bound; without, as the nearer of ±10⁴⁰⁰ (in the unit of the column),
   which no float reaches. NaN and ±∞ read as missing.
3. Steps and bounds are declared, or the step follows from the type alone. Neither is ever
   taken from the data.
4. A centre is a public guess of where the values lie. It moves nothing that is read: answers near it are more accurate,
   and that is all.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction
from functools import cached_property

from idios.core.exact import FARTHEST, INFINITY, exact, exact_value, floor_half_up, positive
from idios.errors import InvalidInput

_NUMBER = re.compile(r"-?[0-9]{1,30}(\.[0-9]{1,30})?")

LEAST_STEP = Fraction(1, 10**100)

LIMIT = 2**62
"""The ends of every grid in a database: a point further from 0 reads as ±LIMIT.

They follow from the type of a grid point and are public. They are no bounds: what is computed from a column without
bounds takes into account that a record may lie anywhere.
"""


class Kind(StrEnum):
    """The types of column that Idios reads."""

    INTEGER = "integer"
    NUMBER = "number"
    DECIMAL = "decimal"
    DATE = "date"
    TIMESTAMP = "timestamp"
    CATEGORY = "category"

    @property
    def with_article(self) -> str:
        """The type in a sentence.

        >>> Kind.INTEGER.with_article, Kind.DATE.with_article
        ('an integer', 'a date')
        """
        return f"an {self}" if self is Kind.INTEGER else f"a {self}"


def default_step(kind: Kind, decimals: int = 0) -> Fraction:
    """The step of a column that declares none: a fact of its type, never of its values.

    Dates count in days and timestamps in microseconds; a decimal's step is its scale.

    >>> default_step(Kind.NUMBER), default_step(Kind.DECIMAL, decimals=2)
    (Fraction(1, 1000000), Fraction(1, 100))
    """
    if kind is Kind.CATEGORY:
        raise InvalidInput("a category column has values, not a step")
    if kind is Kind.NUMBER:
        return Fraction(1, 10**6)
    if kind is Kind.DECIMAL:
        return Fraction(1, 10**decimals)
    return Fraction(1)


def count_day(kind: Kind) -> int:
    """How many units of a column make a day, where it tells the time; 0 where its values are numbers."""
    return {Kind.DATE: 1, Kind.TIMESTAMP: 86_400 * 10**6}.get(kind, 0)


@dataclass(frozen=True)
class Domain:
    """A grid, its bounds and its centre, all in whole steps; a bound that is None is unknown.

    ``day`` is how many units make a day, 0 where there is none: whole days and hours are round then, where otherwise
    decimals are.

    >>> cents = Domain.declare(step="0.01", bounds=(0, 100), centre=20)
    >>> cents.lower, cents.upper, cents.centre, cents.read("12.345")
    (0, 10000, 2000, 1235)
    """

    step: Fraction = Fraction(1)
    lower: int | None = None
    upper: int | None = None
    centre: int = 0
    day: int = field(default=0, repr=False)

    def __post_init__(self) -> None:
        if self.step <= 0:
            raise InvalidInput(f"step must be greater than 0, got {self.step}")
        if self.lower is not None and self.upper is not None and self.lower > self.upper:
            raise InvalidInput("bounds must be (lower, upper) with lower ≤ upper, got them reversed")

    @classmethod
    def declare(
        cls, *, step: object = 1, bounds: Sequence[object] | None = None, centre: object = None, day: int = 0
    ) -> Domain:
        """Make a domain from what a controller writes; either bound may be None.

        A centre outside the bounds is refused as a mistake. Without one it is 0, whatever the bounds.
        """
        grid = positive(step, "step")
        if not LEAST_STEP <= grid <= 1 / LEAST_STEP:
            raise InvalidInput("step must be between 1e-100 and 1e100")
        middle = Fraction(0) if centre is None else exact(centre, "centre")
        if abs(middle) > FARTHEST:
            raise InvalidInput("centre must be between -1e400 and 1e400, where values end")
        if bounds is None:
            return cls(grid, centre=int(floor_half_up(middle / grid)), day=day)
        if isinstance(bounds, str) or not hasattr(bounds, "__len__") or len(bounds) != 2:
            raise InvalidInput(f"bounds must be a pair (lower, upper), got {bounds!r}")
        low, high = (None if b is None else exact(b, "a bound") for b in bounds)
        if any(b is not None and abs(b) > FARTHEST for b in (low, high)):
            raise InvalidInput("bounds must be between -1e400 and 1e400, where values end")
        if low is not None and high is not None and low > high:
            raise InvalidInput(f"bounds must be (lower, upper) with lower ≤ upper, got {bounds[0]!r} > {bounds[1]!r}")
        if centre is not None and ((low is not None and middle < low) or (high is not None and middle > high)):
            raise InvalidInput(f"centre must lie within the bounds, got {centre!r}")
        lower, upper = (None if b is None else int(floor_half_up(b / grid)) for b in (low, high))
        return cls(grid, lower, upper, int(floor_half_up(middle / grid)), day)

    def read(self, value: object) -> int:
        """The grid point of one value: ⌊v/step + ½⌋, clamped to the bounds."""
        return self.clamp(int(floor_half_up(exact_value(value) / self.step)))

    def clamp(self, point: int) -> int:
        """The nearest point inside the bounds."""
        if self.lower is not None and point < self.lower:
            return self.lower
        if self.upper is not None and point > self.upper:
            return self.upper
        return point

    @property
    def low(self) -> int | float:
        """The lower bound in steps, −∞ where none is declared."""
        return -INFINITY if self.lower is None else self.lower

    @property
    def high(self) -> int | float:
        """The upper bound in steps, +∞ where none is declared."""
        return INFINITY if self.upper is None else self.upper

    @property
    def grid(self) -> Domain:
        """The domain itself; ``Categories.grid`` has its like."""
        return self

    @property
    def bounded(self) -> bool:
        """Whether both bounds are declared."""
        return self.lower is not None and self.upper is not None

    @property
    def points(self) -> int | float:
        """How many grid points there are, possibly +∞."""
        if self.lower is None or self.upper is None:
            return INFINITY
        return self.upper - self.lower + 1

    def narrowed(self, low: int | None, high: int | None) -> Domain | None:
        """The part between two points (a predicate on the column); None if nothing is left."""
        lower = self.lower if low is None else low if self.lower is None else max(self.lower, low)
        upper = self.upper if high is None else high if self.upper is None else min(self.upper, high)
        if lower is not None and upper is not None and lower > upper:
            return None
        return replace(self, lower=lower, upper=upper)


@dataclass(frozen=True)
class Categories:
    """The declared values of a category column; any other value reads as missing.

    Codes may have labels, one for each: what people read in place of a value.

    >>> sexes = Categories(("1", "2"), ("male", "female"))
    >>> sexes.find("2"), sexes.find("female"), sexes.find("other"), sexes.numbers[Fraction(2)]
    (1, 1, None, (1,))
    >>> sexes.shown(1)
    'female'
    """

    values: tuple[str, ...]
    labels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.values:
            raise InvalidInput("a category column needs at least one declared value")
        if len(set(self.values)) != len(self.values):
            raise InvalidInput("the declared values of a category column must differ from each other")
        if self.labels and len(self.labels) != len(self.values):
            raise InvalidInput(f"{len(self.values)} values have {len(self.labels)} labels")
        if len(set(self.labels)) != len(self.labels):
            raise InvalidInput("the labels of a category column must differ from each other")
        for i, label in enumerate(self.labels):
            if self._places.get(label, i) != i:
                raise InvalidInput(f"{label!r} is the label of {self.values[i]!r}, and another value")

    @property
    def grid(self) -> Domain:
        """The indices of the values."""
        return Domain(lower=0, upper=len(self.values) - 1)

    def find(self, constant: str) -> int | None:
        """The index of the value that a text of a question names: the value itself, or its label."""
        return self._places.get(constant, self._labelled.get(constant))

    def shown(self, index: int) -> str:
        """The label of a value, or the value where there is none."""
        return (self.labels or self.values)[index]

    @cached_property
    def numbers(self) -> dict[Fraction, tuple[int, ...]]:
        """The indices of those values that are written as numbers; '1' and '01' are one number."""
        found: dict[Fraction, tuple[int, ...]] = {}
        for i, value in enumerate(self.values):
            if _NUMBER.fullmatch(value):
                number = Fraction(value)
                found[number] = (*found.get(number, ()), i)
        return found

    @cached_property
    def _places(self) -> dict[str, int]:
        return {value: i for i, value in enumerate(self.values)}

    @cached_property
    def _labelled(self) -> dict[str, int]:
        return {label: i for i, label in enumerate(self.labels)}

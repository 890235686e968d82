"""What differs between the engines' SQL, as a table.

Everything else is one implementation: ``grid_sql.py`` writes the map from a source's columns to grid points with these
pieces, and Ibis says the rest. A template names its operands in braces; operands are complete SQL expressions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import ibis.expr.datatypes as dt  # type: ignore[import-untyped]
import sqlglot.expressions as sge

from idios.errors import SourceError


@lru_cache(maxsize=4096)
def _quote(name: str, dialect: str) -> str:
    """Quote a name; a question writes the same few dozens of times, and sqlglot takes 40 µs for each."""
    return sge.to_identifier(name, quoted=True).sql(dialect=dialect)


@dataclass(frozen=True)
class Dialect:
    """One engine's spelling of what the library asks for."""

    name: str
    """The engine as sqlglot calls it."""
    compiler: str
    """The engine as Ibis calls it."""
    double: str
    """The type of 64-bit floats."""
    wide: str
    """The widest exact whole numbers, in which nothing may overflow."""
    widest: int | None
    """The greatest number of that type; None if there is none."""
    text: str
    """{x} as text with a binary collation."""
    key: str
    """{x} as what GROUP BY, JOIN, UNION and PARTITION BY tell apart by the bytes of its text, under any collation."""
    array: str
    """An array of {items}."""
    integers: str
    """The type of an array of 64-bit integers."""
    element: str
    """Element {i}, from 1, of {array}; NULL if {i} is."""
    position: str
    """The place, from 1, of the text {x} in {array}; NULL if it is not there."""
    listed: str | None
    """A table of the texts of {array}, each as ``label``, and of their places in it, from 1, as ``place``.

    None if the engine groups by grid point, and not by the label in the source."""
    quotient: str
    """The whole number {n} divided by {d}, exactly, towards zero."""
    narrow: str
    """The whole float {x}, which fits, as a 64-bit number."""
    finite: str
    """Whether the float {x} is a number."""
    days: str
    """Days from 1970-01-01 to the date {x}; NULL for an infinite one."""
    timestamps: Mapping[int, str] = field(hash=False)
    """By the decimal places of its seconds: whole microseconds from 1970-01-01 to the timestamp {x}.

    NULL for an infinite one, anything beyond ±2⁶² for one that does not fit 64 bits. 6 stands for all others."""
    quantiles: str
    """The values of {x} at an array of {shares}, as discrete quantiles; an approximation is enough."""
    even_sample: str
    """A condition that each record passes independently with probability {share}."""
    unscaled: Callable[[str, int, int], str] | None
    """x·10^scale as a whole number, for a decimal x of a given precision and scale (1 or more).

    None: decimals stay as they are."""
    exact_quantiles: bool = False
    """Whether ``quantiles`` are exact, and quicker than sorting; and lists can be unnested beside their places."""
    quick_counts: bool = False
    """Whether counting by groups is far quicker than sorting, or collecting lists."""
    vectorised: bool = False
    """Whether conditions are computed for many records at once: adding them up is quicker than filtering by them."""
    ends: bool = False
    """Whether MIN(x, k) and MAX(x, k) are lists of the k outermost values."""
    dictionaries: bool = False
    """Whether functions of a text column are computed once for each different text."""
    fence: str = ""
    """An optimisation fence: the end of a subquery whose columns are computed once, not wherever they are named."""
    sum_as: str | None = None
    """The type to add in, for Ibis, where the engine's own sum of 64-bit numbers could overflow."""
    greatest_scale: int = 38
    """The most decimal places that ``unscaled`` can read."""
    substituted: str | None = None
    """The start of a variable that the engine substitutes anywhere in a statement, even in a literal."""
    narrow_quotient: str | None = None
    """``quotient`` of 64-bit numbers, where it is another."""
    wide_quotient: str | None = None
    """``quotient`` of wide numbers that gives a wide one, where it is another."""
    finite_decimal: str | None = None
    """Whether the decimal {x} is a number, where decimals can be something else."""
    plain_decimal: str | None = None
    """The decimal {x} without zeros at its end, NULL if it is no number, where equal decimals can differ in that."""
    hash: str = ""
    """A whole number that follows from a {key} and the {values}, evenly spread; NULLs are left out."""
    sorted_list: str = ""
    """The values of {x} in a group in ascending order, without NULL, as an array."""

    def identifier(self, *parts: str) -> str:
        """A possibly qualified name, always quoted."""
        if self.substituted and any(self.substituted in part for part in parts):
            raise SourceError(f"{self.name} takes {self.substituted} in a name for a variable: rename it for Idios")
        return ".".join(_quote(part, self.name) for part in parts)

    def string(self, text: str) -> str:
        """A string literal; the start of a variable is split into two adjacent literals, which are read as one."""
        literal = sge.Literal.string(text).sql(dialect=self.name)
        start = self.substituted
        return literal.replace(start, f"{start[0]}' '{start[1:]}") if start else literal

    def strings(self, texts: Iterable[str]) -> str:
        """An array of string literals."""
        return self.array.format(items=", ".join(self.string(text) for text in texts))

    def microseconds(self, x: str, held: dt.Timestamp) -> str:
        """The timestamp ``x`` as a whole number."""
        return self.timestamps.get(held.scale, self.timestamps[6]).format(x=x)

    def real(self, number: float) -> str:
        """A float literal that is read back as the same float: digits in text, not a decimal constant."""
        return f"CAST('{number!r}' AS {self.double})"

    def whole(self, number: int) -> str:
        """A literal of the wide type."""
        return f"CAST('{number}' AS {self.wide})"

    def floor_quotient(self, n: str, d: int) -> str:
        """⌊n/d⌋ for whole n (or decimals, where the engine divides them exactly) and d ≥ 1."""
        divisor = self.whole(d)
        truncated = self.quotient.format(n=n, d=divisor)
        return f"({truncated} - CASE WHEN ({n}) % {divisor} < 0 THEN 1 ELSE 0 END)"

"""How the values of a source become grid points, in the engine, record by record.

Rules:

1. A float v is read as ⌊v·k + ½⌋ with k = float(1/step): the same two operations on doubles in every engine.
   NaN and ±∞ read as NULL.
2. Whole numbers and decimals are read as ⌊v/step + ½⌋ in exact arithmetic. Booleans are 0 and 1.
3. Dates count days and timestamps microseconds since 1970-01-01 (UTC where they have a zone), then as rule 2. A
   timestamp in a date column is read as the day it lies in.
4. A category is the index of the declared value that has exactly the same text, otherwise NULL.
5. With bounds, a point outside reads as the nearer bound. Where there is no bound (or one beyond ±2⁶² steps), a
   point beyond ±2⁶² reads as ±(2⁶² + 1), a value that stands for "does not fit" and is found out where it matters.

Nothing in here can wrap, and nothing raises because of a value: limits are compared before anything is multiplied.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass

import ibis.expr.datatypes as dt  # type: ignore[import-untyped]

from idios.backends.dialect import Dialect
from idios.core.domain import Categories, Domain, Kind
from idios.errors import SourceError
from idios.query.schema import Column

LIMIT = 2**62
"""The greatest distance from 0, in steps, at which a value is told apart from its neighbours."""
BEYOND = LIMIT + 1
"""Stands for every point that lies further away."""

_NUMBERS = (Kind.INTEGER, Kind.NUMBER, Kind.DECIMAL)


@dataclass(frozen=True)
class Reading:
    """One declared column in the SQL of its engine.

    ``held`` is what the source holds, ``given`` whether it holds anything, ``point`` the grid point before bounds,
    NULL where what is held cannot be read. Of two numbers the greater has the greater point, or the same.
    """

    column: Column
    held: str
    given: str
    point: str
    readable: str
    """Whether there is a point, in words that are quick to check."""
    reach: int = 2**63
    """No point is further from 0 than this."""
    place: str | None = None
    """For a category, its place among the declared ones, from 1."""

    @property
    def lower(self) -> int:
        """The least point that is read."""
        bound = self.column.grid.lower
        return -BEYOND if bound is None or bound < -LIMIT else min(bound, BEYOND)

    @property
    def upper(self) -> int:
        """The greatest point that is read."""
        bound = self.column.grid.upper
        return BEYOND if bound is None or bound > LIMIT else max(bound, -BEYOND)

    @property
    def can_overflow(self) -> bool:
        """Whether a point may turn out to lie beyond what fits."""
        return self.lower == -BEYOND or self.upper == BEYOND

    def clamped(self, point: str) -> str:
        """The nearest point inside the limits; ``point`` names the result of ``self.point``."""
        low, high = self.lower, self.upper
        cases = f"WHEN {point} < {low} THEN {low} " if low > -self.reach else ""
        cases += f"WHEN {point} > {high} THEN {high} " if high < self.reach else ""
        return f"CASE {cases}ELSE {point} END" if cases and self.place is None else point


def read_column(column: Column, x: str, held: dt.DataType, dialect: Dialect) -> Reading:
    """Write the map for the column ``x`` of type ``held``, or say why there is none."""
    given, point = f"{x} IS NOT NULL", _point(column, x, held, dialect)
    if column.kind is Kind.CATEGORY:
        return Reading(column, x, given, f"CAST({point} - 1 AS BIGINT)", f"{point} IS NOT NULL", place=point)
    if held.is_floating():
        return Reading(column, x, given, point, readable=dialect.finite.format(x=x), reach=BEYOND)
    if held.is_integer() or (held.is_decimal() and not dialect.finite_decimal):
        return Reading(column, x, given, point, readable=given)
    return Reading(column, x, given, point, readable=f"({point}) IS NOT NULL")


def _point(column: Column, x: str, held: dt.DataType, dialect: Dialect) -> str:
    domain = column.domain
    if isinstance(domain, Categories):
        return _category(column, domain, x, held, dialect)
    grid = _Grid(column.name, domain, dialect)
    point: str | None = None
    if column.kind in _NUMBERS:
        if held.is_floating():
            point = grid.of_double(f"CAST({x} AS {dialect.double})")
        elif held.is_boolean():
            point = grid.of_whole(f"CASE WHEN {x} THEN 1 WHEN NOT {x} THEN 0 END", small=True)
        elif held.is_integer():
            point = grid.of_whole(x, small=not isinstance(held, dt.UInt64))
        elif isinstance(held, dt.Decimal):
            point = grid.of_decimal(x, held.precision, held.scale)
    elif column.kind is Kind.DATE:
        if held.is_date():
            point = grid.of_whole(dialect.days.format(x=x), small=True)
        elif held.is_timestamp():
            point = grid.of_whole(dialect.days.format(x=f"CAST({x} AS DATE)"), small=True)
    elif held.is_timestamp() or held.is_date():
        point = grid.of_whole(dialect.microseconds.format(x=f"CAST({x} AS TIMESTAMP)"), small=True)
    if point is None:
        raise _unreadable(column, held)
    return point


@dataclass(frozen=True)
class _Grid:
    """The arithmetic of one column's step."""

    name: str
    domain: Domain
    dialect: Dialect

    def of_double(self, x: str) -> str:
        """Rule 1. Beyond t the point does not fit; near 0, some engines raise where the product underflows."""
        real = self.dialect.real
        try:
            k = float(1 / self.domain.step)
        except OverflowError:
            k = 0.0
        if not k:
            raise self._too_far()
        finite = self.dialect.finite.format(x=x)
        t = _last_that_fits(k)
        cases = [
            f"WHEN {finite} AND ABS({x}) <= {real(t)} THEN CAST(FLOOR({x} * {real(k)} + {real(0.5)}) AS BIGINT)",
            f"WHEN {finite} AND {x} > 0 THEN {BEYOND}",
            f"WHEN {finite} THEN {-BEYOND}",
        ]
        if k < 1:
            cases.insert(0, f"WHEN {finite} AND ABS({x}) <= {real(0.25 / k)} THEN 0")
        return f"CASE {' '.join(cases)} END"

    def of_whole(self, x: str, *, small: bool) -> str:
        """Rule 2 for whole numbers; ``small`` ones have 64 bits with a sign."""
        step = self.domain.step
        if small and step == 1:
            return f"CAST({x} AS BIGINT)"
        greatest = 2**63 if small else 2**64
        return self._scaled(f"CAST({x} AS {self.dialect.wide})", step.denominator, step.numerator, greatest)

    def of_decimal(self, x: str, precision: int | None, scale: int | None) -> str:
        """Rule 2 for decimals: a whole number of 10^−scale, and then as whole numbers are read."""
        dialect, step = self.dialect, self.domain.step
        if dialect.unscaled is None:
            return self._fraction(x)
        if precision is None or scale is None or scale > dialect.greatest_scale:
            raise SourceError(
                f"column {self.name!r} is a decimal with {scale} places, and at most {dialect.greatest_scale} "
                "can be read exactly here: store it with fewer"
            )
        unit = step * 10**scale
        greatest = 10**precision
        if scale == 0:
            return self._scaled(f"CAST({x} AS {dialect.wide})", unit.denominator, unit.numerator, greatest)
        # the product x·10^scale has precision + scale + 2 digits by every engine's rules
        if precision + scale + 2 <= 38:
            n = f"CAST({x} * CAST({10**scale} AS DECIMAL({scale + 1}, 0)) AS {dialect.wide})"
        else:
            n = dialect.unscaled.format(x=x, scale=scale, unit=dialect.whole(10**scale))
        return self._scaled(n, unit.denominator, unit.numerator, greatest)

    def _scaled(self, n: str, b: int, a: int, greatest: int) -> str:
        """⌊n·b/a + ½⌋ = ⌊(n·b + ⌊a/2⌋)/a⌋ for whole n with |n| ≤ ``greatest``, kept from overflowing."""
        dialect = self.dialect
        limit = min(BEYOND * a // b, greatest)  # up to here a point is at most BEYOND, from here on at least
        if dialect.widest is not None and limit * b + a > dialect.widest:
            raise self._too_far()
        product = n if b == 1 else f"{n} * {dialect.whole(b)}"
        point = product if a == 1 else dialect.floor_quotient(f"{product} + {dialect.whole(a // 2)}", a)
        read = f"CAST({point} AS BIGINT)"
        if greatest * b <= LIMIT * a:
            return read
        return (
            f"CASE WHEN {n} > {dialect.whole(limit)} THEN {BEYOND} "
            f"WHEN {n} < {dialect.whole(-limit)} THEN {-BEYOND} ELSE {read} END"
        )

    def _fraction(self, x: str) -> str:
        """⌊(2·b·x + a)/2a⌋ for step a/b, where decimals of any length are divided exactly."""
        dialect, a, b = self.dialect, self.domain.step.numerator, self.domain.step.denominator
        limit = BEYOND * a
        point = dialect.floor_quotient(f"({x} * {dialect.whole(2 * b)} + {dialect.whole(a)})", 2 * a)
        finite = f"WHEN NOT ({dialect.finite_decimal.format(x=x)}) THEN NULL " if dialect.finite_decimal else ""
        return (
            f"CASE {finite}WHEN {x} * {dialect.whole(b)} > {dialect.whole(limit)} THEN {BEYOND} "
            f"WHEN {x} * {dialect.whole(b)} < {dialect.whole(-limit)} THEN {-BEYOND} ELSE CAST({point} AS BIGINT) END"
        )

    def _too_far(self) -> SourceError:
        return SourceError(
            f"column {self.name!r} cannot be read exactly in steps of {self.domain.step}: declare a step nearer to "
            "the size of its values"
        )


def _last_that_fits(k: float) -> float:
    """The greatest float v with ⌊v·k + ½⌋ ≤ 2⁶²; the map is monotone, and its mirror image ends where it does."""
    t = min(LIMIT / k, sys.float_info.max)
    while t * k + 0.5 > LIMIT:
        t = math.nextafter(t, 0)
    while t < sys.float_info.max and math.nextafter(t, math.inf) * k + 0.5 <= LIMIT:
        t = math.nextafter(t, math.inf)
    return t


def _category(column: Column, domain: Categories, x: str, held: dt.DataType, dialect: Dialect) -> str:
    if not (held.is_string() or held.is_integer() or held.is_boolean()):
        raise _unreadable(column, held)
    text = dialect.text.format(x=x)
    return dialect.position.format(array=dialect.strings(domain.values), x=text)


def _unreadable(column: Column, held: dt.DataType) -> SourceError:
    return SourceError(
        f"column {column.name!r} is declared as {column.kind.value}, and the source holds {held}, which cannot be "
        "read as that: correct the declaration, or convert the column in the source"
    )

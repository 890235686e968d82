"""The SQL that puts the values of a source on the grid, in the engine, record by record.

Rules:

1. A float v is read as ⌊v·k + ½⌋ with k = float(1/step): the same two operations on doubles in every engine.
   NaN and ±∞ read as NULL.
2. Whole numbers and decimals are read as ⌊v/step + ½⌋ in exact arithmetic. Booleans are 0 and 1.
3. Dates count days and timestamps microseconds (whole ones, rounded down) since 1970-01-01 (UTC where they have a
   zone), then as rule 2. A timestamp in a date column is read as the day it lies in.
4. A category is the index of the declared value that has exactly the same text, otherwise NULL. The text of a float
   or a decimal is that of the whole number it is, if it is one within ±2⁵³.
5. A point beyond ±2⁶² reads as ±2⁶², the public ends of every grid. With bounds, a point outside reads as the nearer
   bound.
6. In a column that is declared not nullable, what would read as NULL reads as a public point: the one nearest to 0
   within the bounds, or the first category.

Nothing in here can wrap, and nothing raises because of a value: limits are compared before anything is multiplied or
cast. A type whose values could not be kept from that is refused when it is read here, before there is any value.
"""

from __future__ import annotations

import math
import struct
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import ibis.expr.datatypes as dt  # type: ignore[import-untyped]
import numpy as np

from idios.core.domain import LIMIT, Categories, Domain, Kind
from idios.core.exact import text
from idios.data.sql.dialect import Dialect
from idios.declare.dates import DAY
from idios.declare.schema import Column
from idios.errors import SourceError
from idios.expressions.language import list_references

NEVER = "1 = 0"
EVERY = "TRUE"

_NUMBERS = (Kind.INTEGER, Kind.NUMBER, Kind.DECIMAL)


@dataclass(frozen=True)
class GridColumn:
    """One declared column as grid points, in the SQL of its engine.

    ``held`` is what the source holds, ``given`` whether it holds anything, ``point`` the grid point before bounds,
    NULL where what is held cannot be read. The map from what is held to points is monotone.
    """

    declared: Column
    held: str
    given: str
    point: str
    readable: str
    """Whether there is a point, as a condition that is quick to check."""
    beyond: str = NEVER
    """Whether the point lay beyond ±2⁶²."""
    place: str | None = None
    """For a category, its place among the declared ones, from 1."""
    derive: Callable[[Mapping[str, str]], str] | None = None
    """For a derived column, its point before bounds, given what the points of other columns are called.

    The source holds nothing of it, so that nothing else here means anything."""
    settled: bool = False
    """Whether every point is within bounds, and NULL only where it may be."""
    bounded: str | None = None
    """The point within bounds, NULL where what is held cannot be read, if that is quicker than ``point`` and bounds."""
    within: str | None = None
    """The same where no point lies outside of bounds or beyond the ends of the grid."""
    told: tuple[int, int] | None = None
    """The least and the greatest point within bounds of all that can be read, where the source tells them unread."""
    guesses: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    """Literals that may be among the least of what is held, and among the greatest, outermost first; none is certain.

    As many rows lie beyond the k-th as few groups of a file hold, which is quick to find out."""
    compared: str = ""
    """What is held, as numbers that literals can be compared with."""
    first_held: Callable[[int], str] | None = field(default=None, compare=False)
    """The least of these that reads as a point or a greater one; None if there is no telling."""
    whole: bool = False
    """Whether what is held has 64 bits and is the point, but for NULL, bounds and the ends of the grid."""
    label: str | None = None
    """For a category, the text that is compared with the declared ones."""
    listed: str = ""
    """For a category with a label, a table of the declared ones: their ``label`` and their ``place``, from 1."""

    @property
    def ends(self) -> tuple[int, int]:
        """The least and the greatest point: the bounds, or the ends of the grid."""
        low, high = self.declared.grid.lower, self.declared.grid.upper
        return -LIMIT if low is None else low, LIMIT if high is None else high

    @property
    def default(self) -> int | None:
        """The point of what cannot be read; None if that is missing."""
        return None if self.declared.nullable else self.declared.grid.clamp(0)

    @property
    def complete(self) -> bool:
        """Whether it is known that every value can be read."""
        return self.readable == EVERY

    def value(self, point: str) -> str:
        """The final grid point: clamped to bounds, NULL replaced where it cannot be. ``point`` names ``self.point``."""
        if self.settled:
            return point
        if self.place is not None:
            # NULL is no argument to GREATEST; COALESCE would lose what DuckDB knows of a text column's dictionary
            return point if self.default is None else f"GREATEST({point}, {self.default})"
        low, high = self.declared.grid.lower, self.declared.grid.upper
        cases = "" if self.default is None else f"WHEN {point} IS NULL THEN {self.default} "
        cases += "" if low is None else f"WHEN {point} < {low} THEN {low} "
        cases += "" if high is None else f"WHEN {point} > {high} THEN {high} "
        return f"CASE {cases}ELSE {point} END" if cases else point

    def settle(self, point: str) -> str:
        """The point that counts; ``point`` names ``self.bounded``, or ``self.point`` where there is none."""
        if self.bounded is None:
            return self.value(point)
        if self.default is None or self.complete:
            return point
        return f"CASE WHEN {point} IS NULL THEN {self.default} ELSE {point} END"


@dataclass(frozen=True)
class _Point:
    """A grid point in SQL, the condition that it had to be moved to an end of the grid, and the point within bounds."""

    text: str
    beyond: str = NEVER
    bounded: str | None = None
    within: str | None = None
    """The point where none is outside of bounds."""


def make_grid_column(column: Column, x: str, held: dt.DataType, dialect: Dialect) -> GridColumn:
    """Write the map for the column ``x`` of type ``held``, or say why there is none."""
    given = f"{x} IS NOT NULL"
    if isinstance(column.domain, Categories):
        label, array = write_label(column, x, held, dialect), dialect.strings(column.domain.values)
        place = dialect.position.format(array=array, x=label)
        index, readable = f"CAST({place} - 1 AS BIGINT)", f"{place} IS NOT NULL"
        if dialect.listed is None:
            return GridColumn(column, x, given, index, readable, place=place)
        listed = dialect.listed.format(array=array)
        return GridColumn(column, x, given, index, readable, place=place, label=label, listed=listed)
    point = _point(column, column.domain, x, held, dialect)
    if held.is_floating():
        readable = dialect.finite.format(x=x)
    elif held.is_integer() or (held.is_decimal() and not dialect.finite_decimal):
        readable = given
    else:
        readable = f"({point.text}) IS NOT NULL"
    # an expression that is written three times is computed as often by some engines
    quick = held.is_integer() or held.is_floating()
    compared, first_held = _compare_held(column.domain, x, held, dialect)
    return GridColumn(
        column,
        x,
        given,
        point.text,
        readable,
        point.beyond,
        bounded=point.bounded if quick else None,
        within=point.within if quick else None,
        compared=compared,
        first_held=first_held,
        whole=isinstance(held, dt.Int64) and column.kind in _NUMBERS and column.domain.step == 1,
    )


def write_label(column: Column, x: str, held: dt.DataType, dialect: Dialect) -> str:
    """The text that is compared with declared values; a whole number has one, whatever type holds it."""
    if held.is_string() or held.is_integer() or held.is_boolean():
        return dialect.text.format(x=x)
    if not (held.is_floating() or held.is_decimal()):
        raise _unreadable(column, held)
    # beyond 2⁵³ not every whole number is a double; NaN and ±∞ are further than that in every engine
    whole = f"ABS({x}) <= {2**53} AND FLOOR({x}) = {x}"
    return f"CASE WHEN {whole} THEN {dialect.text.format(x=dialect.narrow.format(x=x))} END"


def _compare_held(
    domain: Domain, x: str, held: dt.DataType, dialect: Dialect
) -> tuple[str, Callable[[int], str] | None]:
    """Where points begin, for types whose literals are certain: 64-bit floats, and whole numbers in steps of 1."""
    if isinstance(held, dt.Float64):
        k = float(1 / domain.step)
        return x, lambda point: dialect.real(math.nextafter(_find_last(point - 1, k), math.inf))
    if isinstance(held, dt.Integer) and domain.step == 1:
        return f"CAST({x} AS BIGINT)" if held.bounds.upper < 2**63 - 1 else x, str
    return "", None


def _point(column: Column, domain: Domain, x: str, held: dt.DataType, dialect: Dialect) -> _Point:
    grid = _Grid(column.name, domain, dialect)
    if column.kind in _NUMBERS:
        if held.is_floating():
            return grid.of_double(f"CAST({x} AS {dialect.double})")
        if held.is_boolean():
            return grid.of_whole(f"CASE WHEN {x} THEN 1 WHEN NOT {x} THEN 0 END", 1)
        if isinstance(held, dt.Integer):
            return grid.of_whole(x, max(abs(held.bounds.lower), held.bounds.upper), narrow=isinstance(held, dt.Int64))
        if isinstance(held, dt.Decimal):
            return grid.of_decimal(x, held.precision, held.scale)
    elif held.is_date():
        days = dialect.days.format(x=x)
        return grid.of_whole(days, 2**31, DAY if column.kind is Kind.TIMESTAMP else 1)
    elif isinstance(held, dt.Timestamp):
        moment = dialect.microseconds(x, held)
        if column.kind is Kind.TIMESTAMP:
            return grid.of_whole(moment, 2**64)
        return grid.of_whole(dialect.floor_quotient(f"CAST({moment} AS {dialect.wide})", DAY), 2**64 // DAY)
    raise _unreadable(column, held)


@dataclass(frozen=True)
class _Grid:
    """The arithmetic of one column's step."""

    name: str
    domain: Domain
    dialect: Dialect

    def of_double(self, x: str) -> _Point:
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
            f"WHEN {finite} AND {x} > 0 THEN {LIMIT}",
            f"WHEN {finite} THEN {-LIMIT}",
        ]
        if k < 1:
            cases.insert(0, f"WHEN {finite} AND ABS({x}) <= {real(0.25 / k)} THEN 0")
        read = self.dialect.narrow.format(x=f"FLOOR({x} * {real(k)} + {real(0.5)})")
        return _Point(
            f"CASE {' '.join(cases)} END",
            f"{finite} AND ABS({x}) > {real(t)}",
            self._bounded_double(x, k, read),
            read if k >= 1 else None,
        )

    def _bounded_double(self, x: str, k: float, read: str) -> str:
        """The same within bounds, with two comparisons for a value that is.

        NaN is greater than every number in all engines; where DuckDB finds in a file's statistics, which do not count
        NaN, that nothing is greater, it comes to the cast, which gives NULL there.
        """
        real, finite, (low, high) = self.dialect.real, self.dialect.finite.format(x=x), self._ends
        first, last = math.nextafter(_find_last(low - 1, k), math.inf), _find_last(high, k)
        cases = [f"WHEN ABS({x}) <= {real(0.25 / k)} THEN {self.domain.clamp(0)}"] if k < 1 else []
        cases.append(f"WHEN {x} < {real(first)} THEN CASE WHEN {finite} THEN {low} END")
        cases.append(f"WHEN {x} > {real(last)} THEN CASE WHEN {finite} THEN {high} END")
        return f"CASE {' '.join(cases)} ELSE {read} END"

    @property
    def _ends(self) -> tuple[int, int]:
        """The bounds, or the ends of the grid."""
        low, high = self.domain.lower, self.domain.upper
        return -LIMIT if low is None else low, LIMIT if high is None else high

    def of_whole(self, x: str, greatest: int, unit: int = 1, *, narrow: bool = False) -> _Point:
        """Rule 2 for whole numbers of some unit, none of which is further from 0 than ``greatest``.

        Those that are ``narrow`` have the type of points.
        """
        step = self.domain.step / unit
        if step == 1:
            # a cast fails beyond 2⁶³, so that what can lie there is compared first
            read = x if narrow else f"CAST({x} AS BIGINT)"
            point = self._ended(read, read if greatest <= 2**63 else x, LIMIT if greatest > LIMIT else None, str)
            (low, high), n = self._ends, read if greatest <= 2**63 else x
            cases = f"WHEN {n} < {low} THEN {low} " if -greatest < low else ""
            cases += f"WHEN {n} > {high} THEN {high} " if greatest > high else ""
            return replace(point, bounded=f"CASE {cases}ELSE {read} END" if cases else read, within=read)
        return self._scaled(f"CAST({x} AS {self.dialect.wide})", step.denominator, step.numerator, greatest)

    def of_decimal(self, x: str, precision: int | None, scale: int | None) -> _Point:
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
        if scale == 0:
            # HUGEINT, which has a few more values, is a decimal of 38 digits to Ibis
            greatest = 2**127 if precision == 38 else 10**precision
            return self._scaled(f"CAST({x} AS {dialect.wide})", unit.denominator, unit.numerator, greatest)
        n = f"CAST({dialect.unscaled(x, precision, scale)} AS {dialect.wide})"
        return self._scaled(n, unit.denominator, unit.numerator, 10**precision)

    def _scaled(self, n: str, b: int, a: int, greatest: int) -> _Point:
        """⌊n·b/a + ½⌋ = ⌊(n·b + ⌊a/2⌋)/a⌋ for whole n with |n| ≤ ``greatest``, kept from overflowing."""
        dialect = self.dialect
        last = LIMIT * a // b  # up to here a point is within the ends, from here on outside
        if dialect.widest is not None and min(last, greatest) * b + a > dialect.widest:
            raise self._too_far()
        product = n if b == 1 else f"{n} * {dialect.whole(b)}"
        point = product if a == 1 else dialect.floor_quotient(f"{product} + {dialect.whole(a // 2)}", a)
        return self._ended(f"CAST({point} AS BIGINT)", n, last if greatest > last else None, dialect.whole)

    def _ended(self, read: str, n: str, last: int | None, literal: Callable[[int], str]) -> _Point:
        """What is read, or an end of the grid where n lies beyond ``last``, if it can."""
        if last is None:
            return _Point(read)
        above, below = f"{n} > {literal(last)}", f"{n} < {literal(-last)}"
        return _Point(
            f"CASE WHEN {above} THEN {LIMIT} WHEN {below} THEN {-LIMIT} ELSE {read} END", f"{above} OR {below}"
        )

    def _fraction(self, x: str) -> _Point:
        """⌊(2·b·x + a)/2a⌋ for step a/b, where decimals of any length are divided exactly.

        They are so long that a product may not fit; so they are compared with whole numbers first.
        """
        dialect, a, b = self.dialect, self.domain.step.numerator, self.domain.step.denominator
        near, last, product = LIMIT * a // b + 1, dialect.whole(LIMIT * a), f"{x} * {dialect.whole(b)}"
        finite = dialect.finite_decimal.format(x=x) if dialect.finite_decimal else "TRUE"
        point = dialect.floor_quotient(f"({x} * {dialect.whole(2 * b)} + {dialect.whole(a)})", 2 * a)
        cases = (
            f"WHEN NOT ({finite}) THEN NULL WHEN {x} > {dialect.whole(near)} THEN {LIMIT} "
            f"WHEN {x} < {dialect.whole(-near)} THEN {-LIMIT} WHEN {product} > {last} THEN {LIMIT} "
            f"WHEN {product} < -{last} THEN {-LIMIT}"
        )
        beyond = (
            f"CASE WHEN NOT ({finite}) THEN FALSE WHEN ABS({x}) > {dialect.whole(near)} THEN TRUE "
            f"ELSE ABS({product}) > {last} END"
        )
        return _Point(f"CASE {cases} ELSE CAST({point} AS BIGINT) END", beyond)

    def _too_far(self) -> SourceError:
        return SourceError(
            f"column {self.name!r} cannot be read exactly in steps of {self.domain.step}: declare a step nearer to "
            "the size of its values"
        )


def _last_that_fits(k: float) -> float:
    """The greatest float v with ⌊v·k + ½⌋ ≤ 2⁶²; its mirror image fits too."""
    return _find_last(LIMIT, k)


def _find_last(point: int, k: float) -> float:
    """The greatest float v with ⌊v·k + ½⌋ ≤ point; the map is monotone, so that halving finds it."""
    low, high = -_GREATEST, _GREATEST + 1
    while high - low > 1:
        middle = (low + high) // 2
        product = _nth_float(middle) * k + 0.5
        fits = product < 0 if math.isinf(product) else math.floor(product) <= point
        low, high = (middle, high) if fits else (low, middle)
    return _nth_float(low)


_GREATEST = struct.unpack("<q", struct.pack("<d", sys.float_info.max))[0]


def _nth_float(n: int) -> float:
    """The n-th float above 0, or below."""
    magnitude: float = struct.unpack("<d", struct.pack("<q", abs(n)))[0]
    return magnitude if n >= 0 else -magnitude


def _unreadable(column: Column, held: dt.DataType) -> SourceError:
    return SourceError(
        f"column {column.name!r} is declared as {column.kind.value}, and the source holds {held}, which cannot be "
        "read as that: correct the declaration, or convert the column in the source"
    )


# Values that are declared to mean "missing" (9, 99, 999, 9999-12-31) are NULL before anything else is read.
#
# They are compared with what a source holds, not with grid points: on a coarse grid, values beside a sentinel share its
# point. Where a source is read, a SELECT of the columns that are asked about stands in its place, in which a sentinel
# is NULL; so no query has to know of it.


_MOMENTS = {Kind.DATE: DAY, Kind.TIMESTAMP: 1}
"""In microseconds, the unit in which sentinels of each kind are declared."""


def is_sentinel(column: Column, x: str, held: dt.DataType, dialect: Dialect) -> str:
    """The condition that the column ``x`` of type ``held`` holds a declared sentinel; unknown where it is NULL."""
    if column.kind is Kind.CATEGORY:
        label = write_label(column, x, held, dialect)
        return f"{label} IN ({', '.join(dialect.string(str(value)) for value in column.missing)})"
    numbers = [Fraction(value) for value in column.missing]
    unit = Fraction(1)
    if held.is_floating():
        single = isinstance(held, dt.Float32)  # which holds the nearest of its own
        floats = [float(np.float32(float(number))) if single else float(number) for number in numbers]
        return f"{x} IN ({', '.join(map(dialect.real, floats))})"
    if isinstance(held, dt.Timestamp) and column.kind in _MOMENTS:
        x, unit = dialect.microseconds(x, held), Fraction(_MOMENTS[column.kind])
    elif held.is_date() and column.kind in _MOMENTS:
        x, unit = dialect.days.format(x=x), Fraction(_MOMENTS[column.kind], DAY)
    elif not (held.is_integer() or held.is_decimal()):
        raise SourceError(
            f"column {column.name!r} declares missing values, and the source holds {held}, which has none of them: "
            "remove missing, or convert the column in the source"
        )
    # a whole number equals nothing that is none
    listed = [number * unit for number in numbers if held.is_decimal() or (number * unit).denominator == 1]
    return f"{x} IN ({', '.join(str(text(number)) for number in listed)})" if listed else NEVER


def select_known(
    columns: Mapping[str, Column], names: Sequence[str], held: Mapping[str, dt.DataType], dialect: Dialect
) -> list[str]:
    """What stands after SELECT to read some columns of a source, those of ``columns`` without their sentinels."""
    listed = []
    for name in names:
        quoted, column = dialect.identifier(name), columns.get(name)
        if column is not None and column.missing:
            condition = is_sentinel(column, quoted, held[name], dialect)
            listed.append(f"CASE WHEN {condition} THEN NULL ELSE {quoted} END AS {quoted}")
        else:
            listed.append(quoted)
    return listed


def hide_sentinels(
    columns: Mapping[str, Column], names: Sequence[str], source: str, held: Mapping[str, dt.DataType], dialect: Dialect
) -> str:
    """What stands after FROM to read some columns of a source: the source itself, where no sentinel is declared."""
    if not any(column.missing for column in columns.values()):
        return source
    return f"(SELECT {', '.join(select_known(columns, names, held, dialect))} FROM {source}) AS known"


# The nested SELECTs that put records on the grid.


def list_layers(
    columns: Mapping[str, GridColumn], dialect: Dialect, read: Collection[str] | None = None
) -> list[list[str]]:
    """What puts records on the grid: columns p0, p1, … of points, v0, … of those that count, has_v0, ….

    Derived columns are computed from the points that count, so that they come last. Of some columns, all others are
    left out.
    """
    quoted = dialect.identifier
    points, values = [] if (columns if read is None else read) else [f"1 AS {quoted('one')}"], []
    derived, derived_values = [], []
    names = {name: quoted(f"v{i}") for i, name in enumerate(columns)}
    for i, (name, column) in enumerate(columns.items()):
        if read is not None and name not in read:
            continue
        point, value, has = (quoted(f"{letter}{i}") for letter in ("p", "v", "has_v"))
        if column.derive is not None:
            derived.append(f"{column.derive(names)} AS {point}")
            derived_values += [f"{point} IS NOT NULL AS {has}", f"{column.value(point)} AS {value}"]
            continue
        points.append(f"{column.readable} AS {has}")
        if column.declared.kind is Kind.CATEGORY:
            points.append(f"{column.value(column.point)} AS {value}")
        else:
            points.append(f"{column.bounded or column.point} AS {point}")
            values.append(f"{column.settle(point)} AS {value}")
    return [points, values, derived, derived_values]


def nest_layers(layers: Sequence[Sequence[str]], source: str, dialect: Dialect) -> str:
    """Nested SELECTs over a source, of which each computes its expressions once, and the next one names them."""
    text = f"SELECT {', '.join(layers[0])} FROM {source}"
    for depth, layer in enumerate(layers[1:]):
        if layer:
            text = f"SELECT *, {', '.join(layer)} FROM ({text}{dialect.fence}) AS layer{depth}"
    return text + dialect.fence


def with_sources(names: Iterable[str], columns: Mapping[str, Column]) -> list[str]:
    """Some columns, and those that they are derived from, each once."""
    listed = list(names)
    derived = [expression for name in listed if (expression := columns[name].expression) is not None]
    return list(dict.fromkeys([*listed, *(str(name) for each in derived for name in list_references(each))]))

"""Values that are declared to mean "missing" (9, 99, 999, 9999-12-31) are NULL before anything else is read.

They are compared with what a source holds, not with grid points: on a coarse grid, values beside a sentinel share its
point. Where a source is read, a SELECT of the columns that are asked about stands in its place, in which a sentinel is
NULL; so no query has to know of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import ibis.expr.datatypes as dt  # type: ignore[import-untyped]
import numpy as np

from idios.core.domain import Kind
from idios.core.exact import text
from idios.data.sql.dialect import Dialect
from idios.data.sql.grid_sql import NEVER, write_label
from idios.declare.dates import DAY
from idios.declare.schema import Column
from idios.errors import SourceError

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

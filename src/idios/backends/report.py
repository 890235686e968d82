"""What ``check`` tells a controller: numbers, never values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from idios.backends.reading import NEVER, Reading
from idios.core.domain import Kind


@dataclass(frozen=True)
class ColumnReport:
    """How the values of one column fit its declaration."""

    name: str
    nullable: bool
    missing: int
    """NULL in the source."""
    unreadable: int
    """Not of the declared type (text that does not parse, NaN, ±∞)."""
    outside: int
    """Out of bounds, read as the nearer bound; of a category column, not declared."""
    too_far: int
    """More than 2⁶² steps from 0 with no bound on that side: read as ±2⁶² steps."""
    nulls: int
    """Missing, unreadable or undeclared: read as NULL, or as a public point where the column is not nullable."""

    @property
    def breaks_nullable(self) -> bool:
        """Whether something is missing although the column is declared not nullable."""
        return not self.nullable and self.nulls > 0

    def problems(self) -> list[str]:
        """What a controller should know, in words."""
        found = []
        if self.unreadable:
            found.append(f"{self.unreadable} values do not have the declared type")
        if self.outside:
            found.append(f"{self.outside} values are out of bounds or not declared")
        if self.too_far:
            found.append(f"{self.too_far} values lie beyond the grid and read as its end: declare a larger step")
        if self.breaks_nullable:
            found.append(
                f"{self.nulls} values are missing or unreadable though not nullable, and read as a public point"
            )
        return found


@dataclass(frozen=True)
class Report:
    """A data set against its declaration."""

    rows: int
    columns: tuple[ColumnReport, ...]

    @property
    def sound(self) -> bool:
        """Whether the data is as declared: no value is made up, and none is cut off where no bound says so."""
        return not any(column.breaks_nullable or column.too_far for column in self.columns)


def conditions(reading: Reading) -> dict[str, str]:
    """What is counted of a column, as SQL."""
    point, grid = f"({reading.point})", reading.column.grid
    outside, unbounded = [], []
    for bound, order in ((grid.lower, "<"), (grid.upper, ">")):
        if bound is None:
            unbounded.append(f"{point} {order} 0")
        else:
            outside.append(f"{point} {order} {bound}")
    return {
        "given": reading.given,
        "read": f"{point} IS NOT NULL",
        "outside": " OR ".join(outside) or NEVER,
        "too_far": f"({reading.beyond}) AND ({' OR '.join(unbounded)})" if unbounded else NEVER,
    }


def report(counted: Mapping[str, int], readings: Sequence[Reading]) -> Report:
    """The report from the number of records that meet each condition."""
    rows = counted["records"]
    columns = []
    for i, reading in enumerate(readings):
        given, read, outside, too_far = (counted[f"{name}_{i}"] for name in conditions(reading))
        category = reading.column.kind is Kind.CATEGORY
        columns.append(
            ColumnReport(
                reading.column.name,
                reading.column.nullable,
                missing=rows - given,
                unreadable=0 if category else given - read,
                outside=given - read if category else outside,
                too_far=too_far,
                nulls=rows - read,
            )
        )
    return Report(rows, tuple(columns))

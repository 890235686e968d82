"""What ``check`` tells a controller: numbers, never values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from idios.backends.reading import LIMIT, Reading
from idios.core.domain import Kind


@dataclass(frozen=True)
class ColumnReport:
    """How the values of one column fit its declaration."""

    name: str
    nullable: bool
    missing: int
    """NULL in the source."""
    unreadable: int
    """Not of the declared type (text that does not parse, NaN, ±∞): read as NULL."""
    outside: int
    """Out of bounds, read as the nearer bound; of a category column, not declared, read as NULL."""
    too_far: int
    """More than 2⁶² steps from 0 with no bound on that side: statistics of them fail."""
    nulls: int
    """All that reads as NULL."""

    @property
    def breaks_nullable(self) -> bool:
        """Whether something reads as NULL although the column is declared not nullable."""
        return not self.nullable and self.nulls > 0

    def problems(self) -> list[str]:
        """What a controller should know, in words."""
        found = []
        if self.unreadable:
            found.append(f"{self.unreadable} values do not have the declared type and read as NULL")
        if self.outside:
            found.append(f"{self.outside} values are out of bounds or not declared")
        if self.too_far:
            found.append(f"{self.too_far} values do not fit the grid: declare a larger step, or bounds")
        if self.breaks_nullable:
            found.append(f"{self.nulls} values read as NULL, and the column is declared not nullable")
        return found


@dataclass(frozen=True)
class Report:
    """A data set against its declaration."""

    rows: int
    columns: tuple[ColumnReport, ...]

    @property
    def sound(self) -> bool:
        """Whether every question that the declaration allows can be answered from this data."""
        return not any(column.breaks_nullable or column.too_far for column in self.columns)


def conditions(reading: Reading) -> dict[str, str]:
    """What is counted of a column, as SQL."""
    point, grid = f"({reading.point})", reading.column.grid
    bounds, limits = [], []
    for bound, beyond, order in ((grid.lower, -LIMIT, "<"), (grid.upper, LIMIT, ">")):
        if bound is None or abs(bound) > LIMIT:
            limits.append(f"{point} {order} {beyond}")
        else:
            bounds.append(f"{point} {order} {bound}")
    return {
        "given": reading.given,
        "read": f"{point} IS NOT NULL",
        "outside": " OR ".join(bounds) or "1 = 0",
        "too_far": " OR ".join(limits) or "1 = 0",
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

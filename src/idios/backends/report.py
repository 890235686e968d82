"""What ``check`` tells a controller: numbers, never values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from idios.backends.grid_sql import NEVER, GridColumn
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
        problems = []
        if self.unreadable:
            problems.append(f"{self.unreadable} values do not have the declared type")
        if self.outside:
            problems.append(f"{self.outside} values are out of bounds or not declared")
        if self.too_far:
            problems.append(f"{self.too_far} values lie beyond the grid and read as its end: declare a larger step")
        if self.breaks_nullable:
            problems.append(
                f"{self.nulls} values are missing or unreadable though not nullable, and read as a public point"
            )
        return problems


@dataclass(frozen=True)
class Report:
    """A data set against its declaration."""

    rows: int
    columns: tuple[ColumnReport, ...]

    @property
    def sound(self) -> bool:
        """Whether the data is as declared: no value is made up, and none is cut off where no bound says so."""
        return not any(column.breaks_nullable or column.too_far for column in self.columns)


def report_conditions(column: GridColumn) -> dict[str, str]:
    """What is counted of a column, as SQL."""
    point, grid = f"({column.point})", column.declared.grid
    outside, unbounded = [], []
    for bound, order in ((grid.lower, "<"), (grid.upper, ">")):
        if bound is None:
            unbounded.append(f"{point} {order} 0")
        else:
            outside.append(f"{point} {order} {bound}")
    return {
        "given": column.given,
        "read": f"{point} IS NOT NULL",
        "outside": " OR ".join(outside) or NEVER,
        "too_far": f"({column.beyond}) AND ({' OR '.join(unbounded)})" if unbounded else NEVER,
    }


def make_report(counted: Mapping[str, int], grid_columns: Sequence[GridColumn]) -> Report:
    """The report from the number of records that meet each condition."""
    rows = counted["records"]
    reports = []
    for i, column in enumerate(grid_columns):
        given, read, outside, too_far = (counted[f"{name}_{i}"] for name in report_conditions(column))
        category = column.declared.kind is Kind.CATEGORY
        reports.append(
            ColumnReport(
                column.declared.name,
                column.declared.nullable,
                missing=rows - given,
                unreadable=0 if category else given - read,
                outside=given - read if category else outside,
                too_far=too_far,
                nulls=rows - read,
            )
        )
    return Report(rows, tuple(reports))

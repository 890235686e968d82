"""What is public of a data set: its columns, and which statistics they offer. Nothing here comes from the data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from idios import display
from idios.codec import json_field
from idios.core.exact import text
from idios.core.multiples import Multiples, list_multiples
from idios.core.neighbours import to_plural
from idios.display import Listing
from idios.model.balance import Accounting


@dataclass(frozen=True, slots=True)
class FunctionFacts:
    """A statistic of a column: how it is written, whether it can be answered, and if not, why."""

    name: str
    call: str
    answerable: bool
    why: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnFacts:
    """What is public of one column, and which functions it offers; ``groups`` says whether GROUP BY takes it.

    ``expression`` is that of a derived column.
    """

    name: str
    type: str
    nullable: bool
    groups: bool
    step: Fraction | None
    bounds: tuple[str | None, str | None] | None
    centre: str | None = json_field(optional=True, default=None)
    expression: str | None = json_field(optional=True, default=None)
    values: tuple[str, ...] | None
    labels: tuple[str, ...] | None = json_field(optional=True, default=None)
    functions: tuple[FunctionFacts, ...]

    @property
    def domain(self) -> str:
        """The values that are possible, in a few words."""
        if self.values:
            if not self.labels:
                return ", ".join(self.values)
            return ", ".join(f"{value} {label}" for value, label in zip(self.values, self.labels, strict=True))
        lower, upper = self.bounds or (None, None)
        if lower is None and upper is None:
            bounds = "no bounds"
        elif upper is None:
            bounds = f"from {lower}"
        else:
            bounds = f"up to {upper}" if lower is None else f"{lower} to {upper}"
        return bounds if self.centre is None else f"{bounds}, around {self.centre}"

    def __repr__(self) -> str:
        return f"<column {self.name}: {self.type}, {self.domain}>"


COLUMN_HEAD = ("column", "type", "values", "NULL", "GROUP BY", "functions")


def _column_cells(column: ColumnFacts) -> tuple[str, ...]:
    return (
        column.name,
        column.type,
        column.domain if column.expression is None else f"{column.domain}; derived: {column.expression}",
        "yes" if column.nullable else "no",
        "yes" if column.groups else "no",
        ", ".join(function.name for function in column.functions if function.answerable),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFacts:
    """What is public of a table that can be joined to a data set; ``links`` are "data set.column" by column.

    One that is neither public nor has a unit belongs to people by its link to their rows.
    """

    name: str
    public: bool
    unit: tuple[str, ...] = json_field(optional=True, default=())
    order: str | None = json_field(optional=True, default=None)
    links: Mapping[str, str]
    columns: tuple[ColumnFacts, ...]

    @property
    def text(self) -> str:
        """The table in a few words."""
        kind = "public" if self.public else f"by {', '.join(self.unit)}" if self.unit else "by its link to other rows"
        order = [] if self.order is None else [f"in the order of {self.order}"]
        return "; ".join([kind, *order, *(f"{column} = {key}" for column, key in self.links.items())])


@dataclass(frozen=True, kw_only=True)
class DatasetFacts:
    """What is public of one data set; ``columns`` prints as a table.

    ``size`` is the number of records, None where that is not public. ``multiples`` are the multiples of ε that groups
    are protected with, or None where they are 1, 2, …, ``group``. ``accounting`` says what adds up: ε, or ρ beside it.
    ``check`` is the share of ε that tells how far off answers are, unless a question says otherwise. ``unit`` are the
    columns that tell people apart who may have several rows, ``unit_word`` is what one of them is called, and ``order``
    the column that says which row is the last; ``rows`` and ``groups`` limit what counts of one of them. ``tables`` can
    be joined to it along their ``links`` and its own.
    """

    name: str
    version: str
    neighbours: str
    level: str
    group: int
    multiples: Multiples | None = json_field(optional=True, default=None)
    size: int | None = json_field(optional=True, default=None)
    analysts_trusted: bool
    accounting: Accounting = json_field(optional=True, default=Accounting.PURE)
    check: Fraction = json_field(optional=True, default=Fraction(0))
    unit: tuple[str, ...] = json_field(optional=True, default=())
    unit_word: str = json_field(optional=True, default="record")
    order: str | None = json_field(optional=True, default=None)
    rows: int | None = json_field(optional=True, default=None)
    groups: int | None = json_field(optional=True, default=None)
    links: Mapping[str, str] = json_field(optional=True, default_factory=dict)
    tables: tuple[TableFacts, ...] = json_field(optional=True, default=())
    min_epsilon: Fraction
    max_groups: int
    release_seconds: Fraction | None
    parameters: Mapping[str, Any]
    columns: tuple[ColumnFacts, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", Listing(self.columns, COLUMN_HEAD, _column_cells))

    def _pairs(self) -> list[tuple[str, str]]:
        level = f"{self.level}, {self.group} {to_plural(self.unit_word)}" if self.group > 1 else self.level
        level += f" with ε × ({list_multiples(self.multiples)})" if self.multiples else ""
        pairs = [("data set", self.name), ("version", self.version), ("level", level), ("neighbours", self.neighbours)]
        pairs += [("accounting", self.accounting)] if self.accounting is Accounting.CONCENTRATED else []
        pairs += [("unit", f"{self.unit_word}, by {', '.join(self.unit)}")] if self.unit else []
        pairs += [("order of rows", self.order)] if self.order else []
        several = {"rows": self.rows, "groups": self.groups}
        pairs += [(f"{name} of a {self.unit_word}", f"at most {most}") for name, most in several.items() if most]
        pairs += [("links", ", ".join(f"{column} = {key}" for column, key in self.links.items()))] if self.links else []
        pairs += [(f"table {table.name}", table.text) for table in self.tables]
        pairs += [(to_plural(self.unit_word), f"{self.size:,}")] if self.size is not None else []
        pairs += [("share of ε for checks", str(text(self.check)))] if self.check else []
        return [*pairs, ("least ε of a cell", str(text(self.min_epsilon))), ("most groups", str(self.max_groups))]

    def __str__(self) -> str:
        return f"{display.pairs_text(self._pairs())}\n{display.table_text(COLUMN_HEAD, self._column_rows())}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return display.pairs_html(self._pairs()) + display.table_html(COLUMN_HEAD, self._column_rows())

    def _column_rows(self) -> list[tuple[str, ...]]:
        joined = [
            (f"{table.name}.{column.name}", *_column_cells(column)[1:])
            for table in self.tables
            for column in table.columns
        ]
        return [*(_column_cells(column) for column in self.columns), *joined]


@dataclass(frozen=True)
class DatasetList:
    """The data sets that a caller may ask about."""

    datasets: tuple[DatasetFacts, ...]

    def listing(self) -> Listing[DatasetFacts]:
        """The data sets as a sequence that prints as a table."""
        return Listing(self.datasets, ("data set", "version", "level", "least ε", "columns"), _dataset_cells)


def _dataset_cells(dataset: DatasetFacts) -> tuple[str, ...]:
    columns = ", ".join(column.name for column in dataset.columns)
    return (dataset.name, dataset.version, dataset.level, str(text(dataset.min_epsilon)), columns)

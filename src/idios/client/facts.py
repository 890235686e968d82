"""What a server tells beside answers: data sets, budgets, answers released before; values that print themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic, TypeVar, overload

from idios import tables
from idios.core.exact import text
from idios.errors import InvalidInput
from idios.exchange import Fields, number, shorten
from idios.tables import amount

T = TypeVar("T")


class Listing(Sequence[T], Generic[T]):
    """A sequence that prints as a table; ``head`` names its columns, ``lines`` are the cells of each item."""

    def __init__(self, items: Sequence[T], head: Sequence[str], lines: Sequence[Sequence[Any]]) -> None:
        self._items = tuple(items)
        self._head = tuple(head)
        self._lines = tuple(lines)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        return self._items[index]

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[T]:
        return iter(self._items)

    def __str__(self) -> str:
        return tables.as_text(self._head, self._lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return tables.as_html(self._head, self._lines)


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a token stands for: the name, and whether it is an analyst or a controller."""

    name: str
    role: str

    @classmethod
    def read(cls, given: Fields) -> Identity:
        """From what the server sent."""
        return cls(given.text("name"), given.text("role"))


@dataclass(frozen=True, slots=True)
class FunctionFacts:
    """A statistic of a column: how it is written, whether it can be answered, and if not, why."""

    name: str
    call: str
    answerable: bool
    why: str | None

    @classmethod
    def read(cls, given: Fields) -> FunctionFacts:
        """From what the server sent."""
        why = given.text("why") if "why" in given else None
        return cls(given.text("name"), given.text("call"), given.flag("answerable"), why)


@dataclass(frozen=True)
class ColumnFacts:
    """What is public of one column, and which functions it offers."""

    name: str
    type: str
    step: Fraction | None
    lower: str | None
    upper: str | None
    nullable: bool
    values: tuple[str, ...]
    groups: bool
    functions: tuple[FunctionFacts, ...]

    @classmethod
    def read(cls, given: Fields) -> ColumnFacts:
        """From what the server sent."""
        lower, upper = _exactly(2, given.items("bounds"), "bounds") if "bounds" in given else (None, None)
        return cls(
            name=given.text("name"),
            type=given.text("type"),
            step=given.number_or_none("step"),
            lower=None if lower is None else str(lower),
            upper=None if upper is None else str(upper),
            nullable=given.flag("nullable"),
            values=given.texts("values") if "values" in given else (),
            groups=given.flag("groups"),
            functions=tuple(FunctionFacts.read(one) for one in given.objects("functions")),
        )

    @property
    def domain(self) -> str:
        """The values that are possible, in a few words."""
        if self.values:
            return ", ".join(self.values)
        if self.lower is None and self.upper is None:
            return "no bounds"
        if self.upper is None:
            return f"from {self.lower}"
        return f"up to {self.upper}" if self.lower is None else f"{self.lower} to {self.upper}"


@dataclass(frozen=True)
class DatasetFacts:
    """What is public of one data set; ``columns`` prints as a table."""

    name: str
    version: str
    neighbours: str
    level: str
    group: int | None
    delta: Fraction
    min_epsilon: Fraction
    max_groups: int
    release_seconds: Fraction | None
    parameters: Mapping[str, Any]
    columns: Listing[ColumnFacts]

    @classmethod
    def read(cls, given: Fields) -> DatasetFacts:
        """From what the server sent."""
        columns = [ColumnFacts.read(one) for one in given.objects("columns")]
        lines = [
            (
                one.name,
                one.type,
                one.domain,
                "yes" if one.nullable else "no",
                "yes" if one.groups else "no",
                ", ".join(function.name for function in one.functions if function.answerable),
            )
            for one in columns
        ]
        return cls(
            name=given.text("name"),
            version=given.text("version"),
            neighbours=given.text("neighbours"),
            level=given.text("level"),
            group=int(_written(given, "group")) if "group" in given else None,
            delta=_written(given, "delta") if "delta" in given else Fraction(0),
            min_epsilon=_written(given, "min_epsilon"),
            max_groups=int(_written(given, "max_groups")),
            release_seconds=_written(given, "release_seconds") if "release_seconds" in given else None,
            parameters=dict(given.object("parameters").content) if "parameters" in given else {},
            columns=Listing(columns, ("column", "type", "values", "NULL", "GROUP BY", "functions"), lines),
        )

    def _facts(self) -> list[tuple[str, str]]:
        level = f"{self.level}, {self.group} records" if self.group and self.group > 1 else self.level
        pairs = [("data set", self.name), ("version", self.version), ("level", level), ("neighbours", self.neighbours)]
        pairs += [("delta of a question", str(text(self.delta)))] if self.delta else []
        return [*pairs, ("least ε of a cell", str(text(self.min_epsilon))), ("most groups", str(self.max_groups))]

    def __str__(self) -> str:
        return "\n".join([*(f"{name}: {said}" for name, said in self._facts()), str(self.columns)])

    def _repr_html_(self) -> str:
        return tables.facts(self._facts()) + self.columns._repr_html_()


@dataclass(frozen=True, slots=True)
class Amount:
    """A budget, what is spent of it and what is left.

    A budget of None has no limit of its own; what is left is then the data set's, which others spend too.
    """

    budget: Fraction | None
    spent: Fraction
    remaining: Fraction | None

    @classmethod
    def read(cls, given: Fields) -> Amount:
        """From what the server sent."""
        return cls(given.number_or_none("budget"), given.number("spent"), given.number_or_none("remaining"))


@dataclass(frozen=True, slots=True)
class Account:
    """The ε and δ of one data set; ``analyst`` is None where it is the data set's own account."""

    dataset: str
    analyst: str | None
    epsilon: Amount
    delta: Amount

    @classmethod
    def read(cls, given: Fields) -> Account:
        """From what the server sent."""
        analyst = given.text("analyst") if "analyst" in given else None
        return cls(
            given.text("dataset"), analyst, Amount.read(given.object("epsilon")), Amount.read(given.object("delta"))
        )


@dataclass(frozen=True)
class ReleasedAnswer:
    """An answer that was released before; ``cells`` holds exact text, one row for each group."""

    sequence: int
    id: str
    time: str
    dataset: str
    version: str
    epsilon: Fraction
    delta: Fraction
    guarantee: str
    statistics: tuple[str, ...]
    groups: tuple[Mapping[str, str], ...]
    cells: tuple[tuple[str | None, ...], ...]
    margins: tuple[Fraction | None, ...]

    @classmethod
    def read(cls, given: Fields) -> ReleasedAnswer:
        """From what the server sent."""
        statistics, groups = given.texts("statistics"), given.objects("groups")
        rows = _exactly(len(groups), given.items("cells"), "cells")
        return cls(
            sequence=given.whole("sequence"),
            id=given.text("id"),
            time=given.text("time"),
            dataset=given.text("dataset"),
            version=given.text("version"),
            epsilon=given.number("epsilon"),
            delta=given.number("delta"),
            guarantee=given.text("guarantee"),
            statistics=statistics,
            groups=tuple(dict(one.content) for one in groups),
            cells=tuple(tuple(_exactly(len(statistics), row, "a row of cells")) for row in rows),
            margins=tuple(None if one is None else number(one, "a margin") for one in given.items("margins")),
        )

    def _table(self) -> tuple[list[str], list[list[Any]]]:
        keys = list(self.groups[0]) if self.groups else []
        rows = [
            [*(group.get(key) for key in keys), *values] for group, values in zip(self.groups, self.cells, strict=True)
        ]
        return [*keys, *self.statistics], rows

    def _caption(self) -> str:
        return f"{self.dataset}, {self.time[:19]}, ε = {text(self.epsilon)}"

    def __str__(self) -> str:
        return "\n".join([self._caption(), tables.as_text(*self._table()), self.guarantee])

    def _repr_html_(self) -> str:
        return tables.paragraph(self._caption()) + tables.as_html(*self._table()) + tables.paragraph(self.guarantee)


def datasets_listing(given: Fields) -> Listing[DatasetFacts]:
    """The data sets of a server."""
    found = [DatasetFacts.read(one) for one in given.objects("datasets")]
    lines = [
        (one.name, one.version, one.level, text(one.min_epsilon), ", ".join(column.name for column in one.columns))
        for one in found
    ]
    return Listing(found, ("data set", "version", "level", "least ε", "columns"), lines)


def accounts_listing(given: Fields) -> Listing[Account]:
    """The budgets that the caller may see."""
    found = [Account.read(one) for one in given.objects("budgets")]
    lines = [
        (
            one.dataset,
            one.analyst or "",
            amount(one.epsilon.budget),
            amount(one.epsilon.spent),
            amount(one.epsilon.remaining),
            amount(one.delta.remaining),
        )
        for one in found
    ]
    return Listing(found, ("data set", "analyst", "budget ε", "spent ε", "remaining ε", "remaining δ"), lines)


def _exactly(count: int, found: Any, what: str) -> list[Any]:
    """A list of ``count`` values, each a text, a number or null."""
    if not isinstance(found, list) or len(found) != count:
        raise InvalidInput(f"{what} must be a list of {count}, got {shorten(found)}")
    return found


def _written(given: Fields, key: str) -> Fraction:
    """A number that may be exact text or a plain whole number."""
    found = given.content.get(key)
    return Fraction(found) if isinstance(found, int) and not isinstance(found, bool) else given.number(key)

"""A question as it was read: the analyst's words resolved against the declared columns, nothing decided yet."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from idios.core.statistics import Statistic
from idios.errors import InvalidInput
from idios.query.predicates import ALWAYS, Predicate


@dataclass(frozen=True)
class Measure:
    """One statistic of one column (None: of the records themselves) under the name it is shown by.

    ``offset`` is its place in the text, for messages.
    """

    label: str
    statistic: Statistic
    column: str | None = None
    offset: int | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Key:
    """One GROUP BY key: a category column, or with ``width`` the bins of a numeric one."""

    label: str
    column: str
    width: Fraction | None = None
    offset: int | None = field(default=None, compare=False)

    @property
    def meaning(self) -> tuple[str, Fraction | None]:
        """The key whatever it is called."""
        return self.column, self.width


@dataclass(frozen=True)
class Question:
    """What is asked of one data set: ``items`` is the SELECT list in its order, ``keys`` the GROUP BY list."""

    dataset: str
    items: tuple[Measure | Key, ...]
    filter: Predicate = ALWAYS
    keys: tuple[Key, ...] = ()
    source: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if not self.measures:
            raise InvalidInput("a question asks for at least one statistic")
        meanings = [key.meaning for key in self.keys]
        if any(item.meaning not in meanings for item in self.items if isinstance(item, Key)):
            raise InvalidInput("a question shows the keys that it groups by, and no others")

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The statistics of the SELECT list, in its order."""
        return tuple(item for item in self.items if isinstance(item, Measure))

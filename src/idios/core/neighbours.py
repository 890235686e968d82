"""Which data sets are neighbours, and what that means for the values a statistic sees.

Replace:     one record of the table changes; the number of records n is public.
Add-remove:  one record appears or disappears.

A statistic does not see the table, it sees the *selected values*: the non-missing values of
the records that pass a filter. Changing a record can therefore

    replace a selected value by another,
    remove it      (the record now fails the filter, or its value is missing), or
    add one        (a record from outside now passes).

Under replace, remove and add are possible exactly when the selection is not the whole
table by declaration; an addition uses up one of the ``outside`` records. Under add-remove,
one change is one addition or one removal, filter or not.

Whether the selection is the whole table is a public fact (no filter, no nullable column). It
is never concluded from the data.

Where a person has several rows, "record" stands for all rows of one person, reduced to one
(``plan/reductions.py``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from idios.errors import InvalidInput


class Neighbours(StrEnum):
    """The two notions of neighbouring data sets."""

    REPLACE = "replace"
    ADD_REMOVE = "add-remove"

    @classmethod
    def named(cls, name: str) -> Neighbours:
        """Read the notion a controller wrote."""
        try:
            return cls(name)
        except ValueError:
            raise InvalidInput(f'neighbours must be "replace" or "add-remove", got {name!r}') from None


def to_plural(word: str) -> str:
    """Several of what one change is about.

    >>> [to_plural(word) for word in ("record", "person", "company", "added or removed person")]
    ['records', 'people', 'companies', 'added or removed people']
    """
    if word.split()[-1:] == ["person"]:
        return f"{word.removesuffix('person')}people"
    if word.endswith("y") and word[-2:-1] not in "aeiou":
        return f"{word[:-1]}ies"
    return f"{word}s"


def write_count(number: int, word: str) -> str:
    """So many of something.

    >>> write_count(1, "record"), write_count(1200, "person"), write_count(0, "entry")
    ('1 record', '1,200 people', '0 entries')
    """
    return f"{number:,} {word if number == 1 else to_plural(word)}"


class Counted(NamedTuple):
    """What records are in words: ``each`` of them stand for one ``word``.

    >>> Counted().write(1200), Counted("person", 20).write(1950)
    ('1,200 records', '98 people')
    """

    word: str = "record"
    each: int = 1

    def count(self, records: int) -> int:
        """How many they stand for, at least."""
        return -(-records // self.each)

    def write(self, records: int) -> str:
        """So many in words."""
        return write_count(self.count(records), self.word)


RECORDS, VALUES = Counted(), Counted("value")


class Exchange(NamedTuple):
    """``dropped`` selected values leave and ``placed`` new ones, of any value, come."""

    dropped: int
    placed: int


@dataclass(frozen=True)
class Moves:
    """What i changed records can do to a selection of ``size`` values.

    ``outside`` counts the records that are not selected; None says that the selection is the
    whole table by declaration. Under add-remove it does not matter.

    >>> Moves(Neighbours.REPLACE, size=5).sizes(2)
    (5, 5)
    >>> Moves(Neighbours.REPLACE, size=5, outside=1).sizes(2)
    (3, 6)
    """

    neighbours: Neighbours
    size: int
    outside: int | None = None

    def __post_init__(self) -> None:
        if self.size < 0 or (self.outside is not None and self.outside < 0):
            raise InvalidInput("a selection and what is outside it cannot have a negative size")

    @property
    def whole(self) -> bool:
        """Whether the selection is the whole table under replace, so that its size is public."""
        return self.neighbours is Neighbours.REPLACE and self.outside is None

    def most_added(self, distance: int) -> int:
        """How many values can be added with ``distance`` changes."""
        if self.neighbours is Neighbours.ADD_REMOVE:
            return distance
        return 0 if self.outside is None else min(distance, self.outside)

    def most_removed(self, distance: int) -> int:
        """How many values can be removed with ``distance`` changes."""
        return 0 if self.whole else min(distance, self.size)

    def sizes(self, distance: int) -> tuple[int, int]:
        """The least and the greatest size the selection can have after ``distance`` changes."""
        return self.size - self.most_removed(distance), self.size + self.most_added(distance)

    def exchanges(self, distance: int) -> Iterator[Exchange]:
        """For every reachable size, the exchange of as many values as possible.

        With d the change in size, i changes drop at most i − max(d, 0) values under replace
        (an addition drops none, a removal and a replacement one each) and ⌊(i − d)/2⌋ under
        add-remove, and never more than there are; they place d more than they drop.
        """
        for change in range(-self.most_removed(distance), self.most_added(distance) + 1):
            if self.neighbours is Neighbours.REPLACE:
                dropped = distance - max(change, 0)
            else:
                dropped = (distance - change) // 2
            dropped = min(dropped, self.size)
            yield Exchange(dropped, dropped + change)

    def extreme_exchanges(self, distance: int) -> Iterator[Exchange]:
        """The exchanges that can be extreme for a statistic that obeys the lemma below.

        Lemma (replacing dominates). Let f not decrease when a value grows, and let f not
        increase when a value is added that is no greater than all others, or removed that is no
        smaller. Under replace, dropping the i least values and placing i at the upper bound is
        then as high as i changes can lift f. For with a additions, b removals and c replacements
        the highest list is: the b+c least dropped, a+c placed at the bound. Compare it with the
        list after i = a+b+c replacements: it has a more values, all among the least, and lacks b
        of those at the bound; neither lifts f. The mirror image holds downwards.

        Quantiles, means, trimmed and winsorized means obey it; counts and sums do not. Under
        add-remove every split of i into additions and removals can be extreme.
        """
        if self.neighbours is Neighbours.REPLACE:
            yield Exchange(min(distance, self.size), min(distance, self.size))
        else:
            for removed in range(min(distance, self.size) + 1):
                yield Exchange(removed, distance - removed)

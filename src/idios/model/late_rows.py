"""Rows that are made when they are first read: of many groups they take longer than their values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

Owner = TypeVar("Owner")


class LateRows(Generic[Owner]):
    """A field of a dataclass that is made by a function where nothing else has set it.

    It stands on the class in place of the field's default. What an object holds itself comes before it.
    """

    def __init__(self, name: str, make: Callable[[Owner], tuple[Any, ...]]) -> None:
        self.name, self._make = name, make

    def __get__(self, owner: Owner | None, kind: type[Owner]) -> Any:
        if owner is None:
            return self
        rows = self._make(owner)
        owner.__dict__[self.name] = rows
        return rows


def make_rows(labels: Sequence[str], columns: Sequence[Sequence[Any]]) -> tuple[dict[str, Any], ...]:
    """Rows from what each column has.

    >>> make_rows(("a", "b"), [[1, 2], [3, 4]])
    ({'a': 1, 'b': 3}, {'a': 2, 'b': 4})
    """
    return tuple([dict(zip(labels, row, strict=True)) for row in zip(*columns, strict=True)])

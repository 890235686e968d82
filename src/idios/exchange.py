"""Values as JSON and back: exact numbers are text, and what is read is checked before it is used."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, TypeVar

from idios.core.calibration import Level
from idios.core.exact import text
from idios.core.guarantee import Guarantee
from idios.core.neighbours import Neighbours
from idios.errors import InvalidInput

# A decimal or a fraction as `text` writes it. No exponent: a few characters must not stand for millions of digits.
_NUMBER = re.compile(r"-?[0-9]{1,4000}(\.[0-9]{1,4000}|/[0-9]{1,4000})?")

_Kind = TypeVar("_Kind")


def number(value: Any, what: str) -> Fraction:
    """Read one exact number that was written as text.

    >>> number("0.25", "epsilon"), number("-1/3", "margin")
    (Fraction(1, 4), Fraction(-1, 3))
    """
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        try:
            return Fraction(value)
        except (ValueError, ZeroDivisionError):  # a denominator of 0, or more digits than Python reads at once
            pass
    raise InvalidInput(f"{what} must be an exact number written as text, got {shorten(value)}")


class Fields:
    """A JSON object that is read key by key; what is missing or of another type is named."""

    def __init__(self, content: Any, what: str) -> None:
        if not isinstance(content, Mapping):
            raise InvalidInput(f"{what} must be a JSON object, got {shorten(content)}")
        self.content = content
        self.what = what

    def __contains__(self, key: str) -> bool:
        return self.content.get(key) is not None

    def text(self, key: str) -> str:
        """A text."""
        return self._typed(key, str, "a text")

    def text_or_none(self, key: str) -> str | None:
        """A text, or None for null."""
        return self.text(key) if key in self else None

    def flag(self, key: str) -> bool:
        """True or false."""
        return self._typed(key, bool, "true or false")

    def whole(self, key: str) -> int:
        """A whole number."""
        found = self._typed(key, int, "a whole number")
        if isinstance(found, bool):
            raise self._refused(key, "a whole number", found)
        return found

    def number(self, key: str) -> Fraction:
        """An exact number."""
        return number(self.content.get(key), f"{self.what}: {key}")

    def number_or_none(self, key: str) -> Fraction | None:
        """An exact number, or None for null."""
        return self.number(key) if key in self else None

    def items(self, key: str) -> list[Any]:
        """A list of anything."""
        return self._typed(key, list, "a list")

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts."""
        found = self.items(key)
        if not all(isinstance(one, str) for one in found):
            raise self._refused(key, "a list of texts", found)
        return tuple(found)

    def objects(self, key: str) -> list[Fields]:
        """A list of objects."""
        return [Fields(one, f"{self.what}: {key}") for one in self.items(key)]

    def object(self, key: str) -> Fields:
        """An object inside this one."""
        return Fields(self.content.get(key), f"{self.what}: {key}")

    def numbers(self, key: str) -> dict[str, Fraction | None]:
        """A table of exact numbers, some of them null."""
        inner = self.object(key)
        return {name: inner.number_or_none(name) for name in inner.content}

    def table(self, key: str) -> dict[str, str]:
        """A table of texts."""
        inner = self.object(key)
        return {name: inner.text(name) for name in inner.content}

    def _typed(self, key: str, kind: type[_Kind], wanted: str) -> _Kind:
        found = self.content.get(key)
        if not isinstance(found, kind):
            raise self._refused(key, wanted, found)
        return found

    def _refused(self, key: str, wanted: str, found: Any) -> InvalidInput:
        return InvalidInput(f"{self.what}: {key} must be {wanted}, got {shorten(found)}")


def guarantee_to_dict(guarantee: Guarantee) -> dict[str, Any]:
    """A guarantee for JSON: as people read it, and the facts it follows from."""
    return {
        "notation": guarantee.notation,
        "sentence": str(guarantee),
        "level": str(guarantee.level),
        "epsilon": text(guarantee.epsilon),
        "delta": text(guarantee.delta),
        "neighbours": str(guarantee.neighbours),
        "group": guarantee.group,
    }


def read_guarantee(fields: Fields) -> Guarantee:
    """A guarantee from its facts; its notation and its sentence follow from them."""
    given = fields.text("level"), fields.text("neighbours")
    try:
        level, neighbours = Level(given[0]), Neighbours(given[1])
    except ValueError as error:
        raise InvalidInput(f"{fields.what}: {error}") from None
    return Guarantee(level, fields.number("epsilon"), neighbours, fields.number("delta"), fields.whole("group"))


def shorten(value: Any) -> str:
    """A value as an error message shows it."""
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."

"""Frozen records as plain values and back: one text for one record, which is what gets signed.

A record is a dataclass whose fields are texts, words of a fixed list, integers, exact amounts, or any of these
or None.
"""

from __future__ import annotations

import json
import types
from collections.abc import Mapping
from dataclasses import fields
from enum import StrEnum
from fractions import Fraction
from typing import Any, TypeVar, get_args, get_type_hints

from idios.ledger.values import decode_amount, encode_amount

Record = TypeVar("Record")
Plain = str | int | None


# Made once: json.dumps would make one for every value.
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)

_known: dict[type, dict[str, tuple[type, bool]]] = {}


def fields_of(record: type) -> dict[str, tuple[type, bool]]:
    """Each field's name, its type without None, and whether it may be None."""
    if record not in _known:
        hints = get_type_hints(record)
        _known[record] = {field.name: _kind(hints[field.name]) for field in fields(record)}
    return _known[record]


def _kind(hint: Any) -> tuple[type, bool]:
    choices = get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    (kind,) = (choice for choice in choices if choice is not types.NoneType)
    return kind, types.NoneType in choices


def to_plain(record: Any) -> dict[str, Plain]:
    """The record's fields as texts and integers, amounts as "n/d"."""
    return {name: _plain(getattr(record, name)) for name in fields_of(type(record))}


def _plain(value: Any) -> Plain:
    if isinstance(value, Fraction):
        return encode_amount(value)
    # Drivers convert members of an enumeration differently; all store a plain text unchanged.
    return value.value if isinstance(value, StrEnum) else value


def from_plain(record: type[Record], plain: Mapping[str, Any]) -> Record:
    """The record behind plain values; ValueError if they are not exactly its fields, of their types."""
    expected = fields_of(record)
    if plain.keys() != expected.keys():
        raise ValueError(f"the fields of {record.__name__} are {', '.join(expected)}")
    values: dict[str, Any] = {}
    for name, (kind, optional) in expected.items():
        value = plain[name]
        if value is None and optional:
            values[name] = None
            continue
        wanted: type[Any] = str if kind is Fraction or issubclass(kind, StrEnum) else kind
        if not isinstance(value, wanted):
            raise ValueError(f"{name} of {record.__name__} has the wrong type")
        values[name] = decode_amount(value) if kind is Fraction else kind(value)
    return record(**values)


def canonical(value: Any) -> str:
    """The value as canonical JSON: keys sorted, no spaces, and pure ASCII, which every database keeps.

    >>> canonical({"b": 1, "a": "ε"})
    '{"a":"\\\\u03b5","b":1}'
    """
    return _ENCODER.encode(value)

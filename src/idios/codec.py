"""Frozen dataclasses as plain JSON values and back, driven by their type hints.

Rules:

1. A field is a text, a whole number, a float, true or false, an exact number, a member of an enumeration, a tuple, a
   mapping from texts, or another dataclass; any of these may be None-able. ``Any`` is passed on as it is.
2. An exact number is text: a decimal where it ends, otherwise a fraction.
3. What is read is not trusted: it may come from a hostile server or an edited file. A key that is missing, a value of
   another type and a number that is too long are refused with a message that names the place.
4. A field with ``init=False`` follows from the others: it is written and never read. Where the JSON differs otherwise,
   ``json_field`` says how.
"""

from __future__ import annotations

import json
import math
import re
import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from enum import StrEnum
from fractions import Fraction
from functools import cache
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

from idios.core.exact import text
from idios.errors import InvalidInput

T = TypeVar("T")
Reader = Callable[[Any, str], Any]
"""Reads one plain value; the text says what it is, for the message that refuses it."""

# A decimal or a fraction as `text` writes it. No exponent: a few characters must not stand for millions of digits.
_NUMBER = re.compile(r"-?[0-9]{1,4000}(\.[0-9]{1,4000}|/[0-9]{1,4000})?")
# Made once: json.dumps would make one for every value.
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


_PLAIN = frozenset((str, int, bool, types.NoneType))


@dataclass(frozen=True)
class FieldShape:
    """How the JSON of one field differs from the field; see ``json_field``."""

    key: str | None = None
    hidden: bool = False
    optional: bool = False
    write: Callable[[Any], Any] | None = None
    read: Reader | None = None


def json_field(
    *,
    key: str | None = None,
    hidden: bool = False,
    optional: bool = False,
    write: Callable[[Any], Any] | None = None,
    read: Reader | None = None,
    **options: Any,
) -> Any:
    """A dataclass field with a shape of its own in JSON.

    ``key`` is its name there. A ``hidden`` field is not there at all. An ``optional`` one is left out while it has its
    default. ``write`` and ``read`` replace what its type says. The other options are those of ``dataclasses.field``.
    """
    shape = {"key": key, "hidden": hidden, "optional": optional, "write": write, "read": read}
    return field(metadata={"json": shape}, **options)


@dataclass(frozen=True)
class _Field:
    """One field of a dataclass, as far as JSON is concerned."""

    name: str
    key: str
    hint: Any
    derived: bool
    shape: FieldShape
    default: Any


@cache
def _describe(record: Any) -> tuple[_Field, ...]:
    hints = get_type_hints(record)
    # plain metadata, so that the core can shape a field without this module
    described = ((each, FieldShape(**each.metadata.get("json", {}))) for each in fields(record))
    return tuple(
        _Field(
            each.name,
            shape.key or each.name,
            hints[each.name],
            not each.init,
            shape,
            each.default if each.default_factory is MISSING else each.default_factory(),
        )
        for each, shape in described
        if not shape.hidden
    )


def _fields(record: type) -> tuple[_Field, ...]:
    kind: Any = record  # a type is hashable, which mypy does not see of one with slots
    return _describe(kind)


def field_types(record: type) -> Mapping[str, tuple[type, bool]]:
    """Each field's name, its type without None, and whether it may be None; for records of simple fields."""
    kind: Any = record
    return _simple_types(kind)


@cache
def _simple_types(record: Any) -> Mapping[str, tuple[type, bool]]:
    return {each.name: _without_none(each.hint) for each in _fields(record)}


def _without_none(hint: Any) -> tuple[Any, bool]:
    choices = get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    (kind,) = (choice for choice in choices if choice is not types.NoneType)
    return kind, types.NoneType in choices


def read_number(value: Any, what: str) -> Fraction:
    """Read one exact number that was written as text.

    >>> read_number("0.25", "epsilon"), read_number("-1/3", "margin")
    (Fraction(1, 4), Fraction(-1, 3))
    """
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        try:
            return Fraction(value)
        except (ValueError, ZeroDivisionError):  # a denominator of 0, or more digits than Python reads at once
            pass
    raise refuse(what, "an exact number written as text", value)


@dataclass(frozen=True, eq=False)
class Codec:
    """How dataclasses go to JSON and back; ``exact_keys`` refuses keys that are no field.

    The ledger has one of its own: its old entries are signed, and write exact numbers in another way.
    """

    write_number: Callable[[Fraction], str]
    read_number: Callable[[Any, str], Fraction]
    exact_keys: bool = False

    def to_json(self, value: Any) -> Any:
        """The value as JSON's own types."""
        kind = type(value)
        if kind in _PLAIN:
            return value
        if kind is Fraction:  # a number's class is an abstract one's, so that isinstance takes ten times as long
            return self.write_number(value)
        # Drivers convert members of an enumeration differently.
        if isinstance(value, str):
            return value.value if isinstance(value, StrEnum) else value
        if value is None or isinstance(value, int):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else None  # JSON has no infinity
        if isinstance(value, Fraction):
            return self.write_number(value)
        if isinstance(value, tuple | list):
            return [item if type(item) in _PLAIN else self.to_json(item) for item in value]
        if isinstance(value, Mapping):
            return {key: item if type(item) in _PLAIN else self.to_json(item) for key, item in value.items()}
        return self._write_record(value)

    def _write_record(self, record: Any) -> dict[str, Any]:
        plain = {}
        for each in _fields(type(record)):
            value, shape = getattr(record, each.name), each.shape
            if shape.optional and value == each.default:
                continue
            if type(value) in _PLAIN and shape.write is None:
                plain[each.key] = value
            else:
                plain[each.key] = (shape.write or self.to_json)(value)
        return plain

    def from_json(self, kind: type[T], plain: Any, what: str) -> T:
        """The value of this type behind plain ones; ``what`` is what a message calls it."""
        return cast(T, _reader(self, cast(Any, kind))(plain, what))


@cache
def _reader(codec: Codec, hint: Any) -> Reader:
    """What reads values of this type."""
    if isinstance(hint, types.UnionType):
        kind, _ = _without_none(hint)
        inner = _reader(codec, kind)
        return lambda value, what: None if value is None else inner(value, what)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is tuple:
        return _tuple_reader(codec, arguments)
    if origin is not None and issubclass(origin, Mapping):
        return _mapping_reader(_reader(codec, arguments[1]))
    if hint is Any:
        return lambda value, what: value
    if is_dataclass(hint):
        return _record_reader(codec, cast(type, hint))
    if hint is Fraction:
        return codec.read_number
    if issubclass(hint, StrEnum):
        return lambda value, what: _read_member(hint, value, what)
    return _SIMPLE[hint]


def _record_reader(codec: Codec, record: type) -> Reader:
    known = [each for each in _fields(record) if not each.derived]
    keys = {each.key for each in known}
    required = {each.key for each in known if not each.shape.optional}
    readers = [(each.name, each.key, each.shape.read or _reader(codec, each.hint)) for each in known]
    defaults = {each.key: each.default for each in known if each.shape.optional}

    def read(plain: Any, what: str) -> Any:
        if not isinstance(plain, Mapping):
            raise refuse(what, "a JSON object", plain)
        if codec.exact_keys and not required <= set(plain) <= keys:
            raise InvalidInput(f"{what}: the fields are {', '.join(each.key for each in known)}")
        values = {
            name: defaults[key]
            if key in defaults and key not in plain
            else read_value(plain.get(key), f"{what}: {key}")
            for name, key, read_value in readers
        }
        try:
            return record(**values)
        except InvalidInput:
            raise
        except (ValueError, OverflowError):  # such as a number of more digits than Python prints
            raise InvalidInput(f"{what} has values that are too long or do not fit together") from None

    return read


def _tuple_reader(codec: Codec, arguments: tuple[Any, ...]) -> Reader:
    item = _reader(codec, arguments[0])
    length = None if arguments[-1] is Ellipsis else len(arguments)

    def read(value: Any, what: str) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise refuse(what, "a list", value)
        if length is not None and len(value) != length:
            raise refuse(what, f"a list of {length}", value)
        if arguments[0] is str and not all(isinstance(each, str) for each in value):
            raise refuse(what, "a list of texts", value)
        return tuple([item(each, what) for each in value])

    return read


def _mapping_reader(item: Reader) -> Reader:
    def read(value: Any, what: str) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise refuse(what, "a JSON object", value)
        return {key: item(each, f"{what}: {key}") for key, each in value.items()}

    return read


def _read_member(kind: type[StrEnum], value: Any, what: str) -> StrEnum:
    if not isinstance(value, str):
        raise refuse(what, "a text", value)
    try:
        return kind(value)
    except ValueError:
        raise refuse(what, f"one of {', '.join(kind)}", value) from None


def _read_text(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise refuse(what, "a text", value)
    return value


def _read_flag(value: Any, what: str) -> bool:
    if not isinstance(value, bool):
        raise refuse(what, "true or false", value)
    return value


def _read_whole(value: Any, what: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise refuse(what, "a whole number", value)
    return value


def _read_float(value: Any, what: str) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not abs(value) < math.inf:
        raise refuse(what, "a number", value)
    return float(value)


_SIMPLE: dict[type, Reader] = {str: _read_text, bool: _read_flag, int: _read_whole, float: _read_float}


def json_schema(hint: Any) -> dict[str, Any]:
    """The JSON schema of what ``to_json`` writes for values of this type.

    >>> json_schema(tuple[str | None, ...])
    {'type': 'array', 'items': {'anyOf': [{'type': 'string'}, {'type': 'null'}]}}
    """
    if isinstance(hint, types.UnionType):
        return {"anyOf": [json_schema(_without_none(hint)[0]), {"type": "null"}]}
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is tuple:
        fixed = {} if arguments[-1] is Ellipsis else {"minItems": len(arguments), "maxItems": len(arguments)}
        return {"type": "array", "items": json_schema(arguments[0]), **fixed}
    if origin is not None and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": json_schema(arguments[1])}
    if hint is Any:
        return {}
    if hint is Fraction:
        return {"type": "string", "description": "An exact number as text: a decimal, or a fraction."}
    if is_dataclass(hint):
        return _record_schema(cast(type, hint))
    if issubclass(hint, StrEnum):
        return {"type": "string", "enum": [member.value for member in hint]}
    return {"type": {str: "string", bool: "boolean", int: "integer", float: "number"}[hint]}


def _record_schema(record: type) -> dict[str, Any]:
    return {
        "type": "object",
        "title": record.__name__,
        "description": (record.__doc__ or "").partition("\n")[0],
        "properties": {each.key: json_schema(each.hint) for each in _fields(record)},
        "required": [each.key for each in _fields(record) if not each.shape.optional],
    }


_EXACT_TEXT = Codec(lambda number: cast(str, text(number)), read_number)
to_json = _EXACT_TEXT.to_json
from_json = _EXACT_TEXT.from_json


def canonical(value: Any) -> str:
    """The value as canonical JSON: keys sorted, no spaces, and pure ASCII, which every database keeps.

    >>> canonical({"b": 1, "a": "ε"})
    '{"a":"\\\\u03b5","b":1}'
    """
    return _CANONICAL.encode(value)


def refuse(what: str, wanted: str, value: Any) -> InvalidInput:
    """The refusal of a value that is not what is wanted."""
    return InvalidInput(f"{what} must be {wanted}, got {shorten(value)}")


def shorten(value: Any) -> str:
    """A value as an error message shows it."""
    written = repr(value)
    return written if len(written) <= 60 else f"{written[:57]}..."

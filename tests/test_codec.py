"""Dataclasses to JSON and back: what is written comes back, what is not the type's is refused with its place."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from idios.codec import Codec, canonical, from_json, json_field, json_schema, read_number, to_json
from idios.errors import InvalidInput
from idios.ledger.facts import Retired
from idios.ledger.values import RECORDS


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Part:
    name: str
    colour: Colour


@dataclass(frozen=True, kw_only=True)
class Whole:
    count: int
    share: float | None
    flag: bool
    amount: Fraction
    parts: tuple[Part, ...]
    pair: tuple[str | None, str | None]
    table: Mapping[str, Fraction | None]
    anything: Any
    length: int = field(init=False)
    renamed: str = json_field(key="called")
    extra: str = json_field(optional=True, default="")
    secret: str = json_field(hidden=True, default="")

    def __post_init__(self) -> None:
        if self.count > 10**6:
            raise ValueError("too much")
        object.__setattr__(self, "length", len(self.parts))


SOME = Whole(
    count=3,
    share=0.5,
    flag=True,
    amount=Fraction(1, 3),
    parts=(Part("a", Colour.RED),),
    pair=(None, "x"),
    table={"m": Fraction(1, 4), "n": None},
    anything=[1, {"k": None}],
    renamed="r",
    secret="s",
)
PLAIN = {
    "count": 3,
    "share": 0.5,
    "flag": True,
    "amount": "1/3",
    "parts": [{"name": "a", "colour": "red"}],
    "pair": [None, "x"],
    "table": {"m": "0.25", "n": None},
    "anything": [1, {"k": None}],
    "length": 1,
    "called": "r",
}


def test_every_kind_of_field_is_written_and_read() -> None:
    assert to_json(SOME) == PLAIN
    back = from_json(Whole, json.loads(json.dumps(PLAIN)), "it")
    assert to_json(back) == PLAIN
    assert back.secret == ""
    assert back.parts == SOME.parts
    assert back.table == SOME.table
    assert from_json(Whole, {**PLAIN, "extra": "e", "length": 99}, "it").length == 1
    assert to_json(from_json(Whole, {**PLAIN, "extra": "e"}, "it"))["extra"] == "e"
    assert to_json(float("inf")) is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"count": True}, "^it: count must be a whole number, got True$"),
        ({"count": None}, "^it: count must be a whole number, got None$"),
        ({"share": float("nan")}, "^it: share must be a number"),
        ({"flag": 1}, "^it: flag must be true or false, got 1$"),
        ({"amount": 0.5}, "^it: amount must be an exact number written as text, got 0.5$"),
        ({"amount": "9" * 5000}, "^it: amount must be an exact number"),
        ({"parts": {}}, "^it: parts must be a list, got {}$"),
        ({"parts": [1]}, "^it: parts must be a JSON object, got 1$"),
        ({"parts": [{"name": "a"}]}, "^it: parts: colour must be a text, got None$"),
        ({"parts": [{"name": "a", "colour": "green"}]}, "^it: parts: colour must be one of red, blue, got 'green'$"),
        ({"pair": ["x"]}, "^it: pair must be a list of 2"),
        ({"table": []}, "^it: table must be a JSON object"),
        ({"table": {"m": 1}}, "^it: table: m must be an exact number"),
        ({"called": None}, "^it: called must be a text, got None$"),
        ({"count": 10**9}, "^it has values that are too long or do not fit together$"),
    ],
)
def test_what_is_not_of_the_type_is_refused_with_its_place(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        from_json(Whole, {**PLAIN, **change}, "it")


@pytest.mark.parametrize("key", sorted(set(PLAIN) - {"length", "share", "anything"}))
def test_a_missing_key_is_refused(key: str) -> None:
    with pytest.raises(InvalidInput, match=f"^it: {key} must be"):
        from_json(Whole, {name: value for name, value in PLAIN.items() if name != key}, "it")


def test_only_objects_are_read_as_records() -> None:
    for plain in (None, [], "x", 7):
        with pytest.raises(InvalidInput, match=r"^it must be a JSON object"):
            from_json(Whole, plain, "it")


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), lambda i: st.lists(i)))
def test_whatever_is_read_is_a_value_or_an_error_of_ours(plain: Any) -> None:
    for key in PLAIN:
        with suppress(InvalidInput):
            from_json(Whole, {**PLAIN, key: plain}, "it")


def test_the_schema_is_that_of_what_is_written() -> None:
    schema = json_schema(Whole)
    assert list(schema["properties"]) == [*PLAIN, "extra"]
    assert schema["required"] == list(PLAIN)
    assert schema["properties"]["amount"]["type"] == "string"
    assert schema["properties"]["pair"]["minItems"] == 2
    jsonschema_rs.validate(schema, PLAIN)


def test_the_ledger_writes_amounts_as_it_always_did_and_takes_no_other_key() -> None:
    own = Codec(lambda number: f"{number.numerator}/{number.denominator}", read_number, exact_keys=True)
    assert own.to_json(Fraction(2)) == "2/1"
    assert canonical(RECORDS.to_json(Retired("pe ε"))) == '{"dataset":"pe \\u03b5"}'
    with pytest.raises(ValueError, match="the fields are dataset"):
        RECORDS.from_json(Retired, {"dataset": "people", "more": 1}, "retired")

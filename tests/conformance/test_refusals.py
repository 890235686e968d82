"""What is refused is refused by every engine, before anything else, and in words that help."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pytest

from idios.core.domain import Kind
from idios.data.backend import describe_source, open_source
from idios.declare.schema import Column
from idios.errors import SourceError
from tests.conformance.engines import Engine
from tests.conformance.plans import category, dataset, number, of_kind, whole

TABLE = pa.table(
    {
        "n": [1],
        "x": [1.5],
        "t": ["secret"],
        "b": [True],
        "d": [datetime.date(2020, 1, 1)],
        "m": [datetime.datetime(2020, 1, 1)],
    }
)
REFUSED: dict[str, list[Column]] = {
    "has no column 'absent'": [whole("absent")],
    "'t' is declared as integer": [whole("t")],
    "'t' is declared as number": [number("t")],
    "'t' is declared as date": [of_kind(Kind.DATE, "t")],
    "'d' is declared as category": [category("d", "2020-01-01")],
    "'d' is declared as integer": [whole("d")],
    "'n' is declared as date": [of_kind(Kind.DATE, "n")],
    "'n' is declared as timestamp": [of_kind(Kind.TIMESTAMP, "n")],
    "'m' is declared as decimal": [of_kind(Kind.DECIMAL, "m")],
}


def test_columns_that_cannot_be_read_as_declared(engine: Engine) -> None:
    source = engine.keep(TABLE)
    for message, columns in REFUSED.items():
        with pytest.raises(SourceError, match=message) as raised:
            open_source(source, dataset(*columns))
        assert "secret" not in str(raised.value)


def test_the_same_description(engine: Engine) -> None:
    assert describe_source(engine.keep(TABLE)) == [
        ("n", Kind.INTEGER, 0),
        ("x", Kind.NUMBER, 0),
        ("t", Kind.CATEGORY, 0),
        ("b", Kind.INTEGER, 0),
        ("d", Kind.DATE, 0),
        ("m", Kind.TIMESTAMP, 0),
    ]


def test_a_table_that_is_not_there(engine: Engine) -> None:
    source = engine.keep(TABLE)
    absent = {
        "duckdb": lambda: str(source).replace("table", "absent"),
        "postgresql": lambda: str(source).partition("?")[0] + "?table=absent",
        "spark": lambda: "spark:absent",
    }[str(engine)]()
    with pytest.raises(SourceError, match=r"there is no file|has no table"):
        open_source(absent, dataset(whole("n")))
    with pytest.raises(SourceError, match=r"there is no file|has no table"):
        describe_source(absent)

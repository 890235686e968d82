"""Derived columns in every engine: the same points as ``evaluate`` gives, for generated expressions and any values."""

from __future__ import annotations

import datetime as dt
import math
import random
from contextlib import suppress
from decimal import Decimal

import pyarrow as pa
import pytest

from idios.core.domain import Domain, Kind
from idios.data.backend import Backend, open_source
from idios.data.engines.sql_backend import SqlBackend
from idios.data.sql.grid_sql import list_layers, nest_layers
from idios.data.sql.selection import SelectStatement
from idios.datasets import read_columns
from idios.declare.schema import Column, Dataset
from idios.errors import InvalidInput, SourceError
from idios.sql.derived import derive_columns
from tests.conformance import hostile
from tests.conformance.engines import SPARK, Engine
from tests.conformance.test_every_value import columns, keep
from tests.derived_expressions import derive_many, find_point, find_value

HELD = read_columns(
    {
        "i": {"type": "integer"},
        "small": {"type": "integer", "bounds": [-3, 4], "nullable": False},
        "real": {"type": "number", "step": "0.25"},
        "tiny": {"type": "number"},
        "price": {"type": "decimal", "step": "0.01", "bounds": [0, 1000]},
        "weeks": {"type": "integer", "step": 7},
        "region": {"type": "category", "values": ["north", "south", "mid"]},
        "size": {"type": "category", "values": ["s", "north"], "nullable": False},
        "day": {"type": "date"},
        "moment": {"type": "timestamp"},
    }
)
TYPES = {
    "i": pa.int64(),
    "small": pa.int64(),
    "real": pa.float64(),
    "tiny": pa.float64(),
    "price": pa.decimal128(18, 2),
    "weeks": pa.int64(),
    "region": pa.string(),
    "size": pa.string(),
    "day": pa.date32(),
    "moment": pa.timestamp("us"),
}
ENDS = {
    "i": [0, 1, -1, 2**63 - 1, -(2**63), 2**62, -(2**62), 2**62 + 1, 10**18, -7],
    "real": [0.0, 0.125, -0.125, 1.5, math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324, 2.0**62],
    "day": [dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(1970, 1, 1), dt.date(2024, 2, 29), dt.date(1900, 3, 1)],
    "moment": [dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999), dt.datetime(1969, 12, 31, 23, 59)],
}


def make_table(seed: int, rows: int) -> pa.Table:
    """Values of every size, the ends of each type among them, and NULL."""
    draw = random.Random(seed)

    def whole() -> int:
        return (
            draw.randint(-12, 12) if draw.random() < 0.5 else draw.randint(-(2**63), 2**63 - 1) >> draw.randint(0, 62)
        )

    makers = {
        "i": lambda: draw.choice([whole(), draw.choice(ENDS["i"])]),
        "small": lambda: draw.randint(-5, 6),
        "real": lambda: draw.choice([draw.randint(-20, 20) / 8, draw.choice(ENDS["real"])]),
        "tiny": lambda: draw.choice(
            [draw.gauss(0, 3), draw.randint(-(10**7), 10**7) * 5e-7, draw.choice(ENDS["real"])]
        ),
        "price": lambda: Decimal(draw.randint(-100, 200_000)) / 100,
        "weeks": whole,
        "region": lambda: draw.choice(["north", "south", "mid", "elsewhere", ""]),
        "size": lambda: draw.choice(["s", "north", "x"]),
        "day": lambda: draw.choice([dt.date.fromordinal(draw.randint(1, 3_652_059)), draw.choice(ENDS["day"])]),
        "moment": lambda: draw.choice(
            [
                dt.datetime.fromtimestamp(draw.randint(-(10**10), 10**10), dt.UTC).replace(tzinfo=None),
                draw.choice(ENDS["moment"]),
            ]
        ),
    }
    lists = {name: [None if draw.random() < 0.1 else make() for _ in range(rows)] for name, make in makers.items()}
    return pa.table({name: pa.array(values, TYPES[name]) for name, values in lists.items()})


def read_points(backend: Backend) -> dict[str, list[int | None]]:
    """The points that count of every declared column, by one statement."""
    assert isinstance(backend, SqlBackend)
    names = [f"v{i}" for i in range(len(backend.columns))]
    points = nest_layers(list_layers(backend.columns, backend.dialect), backend.table, backend.dialect)
    columns = ", ".join(map(backend.dialect.identifier, names))
    with backend._connected() as connection:
        found = connection.fetch(SelectStatement.of_integers(f"SELECT {columns} FROM ({points}) AS points", *names))
    return {name: found[f"v{i}"].to_pylist() for i, name in enumerate(backend.columns)}


def compare(engine: Engine, seed: int, derived: dict[str, Column], rows: int) -> int:
    table = make_table(seed, rows)
    with engine.open(table, Dataset("t", HELD | derived)) as backend:
        points = read_points(backend)
    compared = 0
    for i in range(rows):
        row = {name: find_value(column, points[name][i]) for name, column in HELD.items()}
        for name, column in derived.items():
            assert points[name][i] == find_point(column, row), (column.formula, row)
            compared += 1
    return compared


def test_some_expressions_give_what_evaluating_them_does(duckdb_engine: Engine) -> None:
    assert compare(duckdb_engine, 7, derive_many(7, HELD, 50), 60) == 3000


BATCHES = {"duckdb": range(5), "postgresql": range(8), "spark": range(1)}


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["duckdb", "postgresql", SPARK], indirect=True)
def test_generated_expressions_give_what_evaluating_them_does(engine: Engine) -> None:
    count = 30 if str(engine) == "spark" else 150
    for seed in BATCHES[str(engine)]:
        assert compare(engine, seed, derive_many(seed, HELD, count, 2 + seed % 2), 150) == 150 * count


ON_NUMBERS = (
    "x + x",
    "x * 3 - 1",
    "x * x",
    "0 - x / 4",
    "ROUND(x / 7, 1)",
    "ROUND(x / NULLIF(x - 1, 2), 2)",
    "FLOOR(x / x)",
    "FLOOR(x / 2)",
    "CEIL(x / 2)",
    "ABS(x)",
    "CASE WHEN x > 5 THEN x ELSE 0 - x END",
    "CASE WHEN x <> 0 THEN ROUND(1 / x, 3) END",
    "GREATEST(x, 0) - LEAST(x, 1)",
    "x > 100",
    "COALESCE(x, 1) IN (1, 2)",
)
ON_DATES = (
    *(f"EXTRACT({part} FROM x)" for part in ("YEAR", "QUARTER", "MONTH", "DAY", "DOW")),
    "CASE WHEN x > DATE '2000-02-29' THEN x ELSE COALESCE(x, DATE '1600-02-29') END",
    "x BETWEEN DATE '1900-01-01' AND DATE '2100-01-01'",
)
ON_KINDS: dict[Kind, tuple[str, ...]] = {
    **dict.fromkeys(hostile.NUMBERS, ON_NUMBERS),
    Kind.DATE: (*ON_DATES, "x + 30", "x - DATE '2000-01-01'"),
    Kind.TIMESTAMP: (*ON_DATES, *(f"EXTRACT({part} FROM x)" for part in ("HOUR", "MINUTE", "SECOND"))),
    Kind.CATEGORY: ("COALESCE(x, 'none')", "NULLIF(x, 'b')", "CASE x WHEN 'a' THEN 'b' ELSE x END", "x LIKE '%a%'"),
}


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["duckdb", "postgresql", SPARK], indirect=True)
def test_no_value_makes_a_derived_column_fail(engine: Engine) -> None:
    """Every value that a type can hold, of every other type (of Spark, fewer), declared in some way."""
    compared, stride = 0, 4 if str(engine) == "spark" else 2
    for place, case in list(enumerate(hostile.ENGINES[str(engine)]))[::stride]:
        source = keep(engine, case)
        for kind in case.kinds[: 1 if str(engine) == "spark" else None]:
            column = columns(kind)[place % len(columns(kind))]
            held = {"id": Column("id", Kind.INTEGER, Domain()), "x": column}
            derived: dict[str, Column] = {}
            for expression in ON_KINDS[kind]:
                with suppress(InvalidInput):  # by the declaration alone: too large a step
                    derived |= derive_columns({f"d{len(derived)}": {"expression": expression}}, held)
            assert len(derived) >= len(ON_KINDS[kind]) - 2
            dataset = Dataset("t", held | derived)
            try:
                backend = open_source(source, dataset)
            except SourceError:
                with pytest.raises(SourceError):
                    open_source(source, Dataset("t", held))
                continue
            with backend:
                points = read_points(backend)
            for i, point in enumerate(points["x"]):
                row = {"x": find_value(column, point)}
                for name in derived:
                    assert points[name][i] == find_point(dataset.columns[name], row), (case.type, name, column, point)
                    compared += 1
    assert compared > 2_000

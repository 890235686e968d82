"""Columns that nobody wishes for, and every statistic: an answer, NULL, or a refusal before anything is charged.

Never an exception, and never a question that is charged and fails.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import idios
from idios.core.domain import Kind
from idios.core.statistics import STATISTICS, Mean, Sum, Variance
from idios.errors import Unanswerable
from idios.party import TrustedParty

TYPES = {
    Kind.INTEGER: pa.int64(),
    Kind.NUMBER: pa.float64(),
    Kind.DECIMAL: pa.decimal128(38, 2),
    Kind.DATE: pa.date32(),
    Kind.TIMESTAMP: pa.timestamp("us"),
}
MIDDLE: dict[Kind, Any] = {
    Kind.INTEGER: -7,
    Kind.NUMBER: -7.25,
    Kind.DECIMAL: Decimal("-7.25"),
    Kind.DATE: date(2026, 2, 28),
    Kind.TIMESTAMP: datetime(2026, 2, 28, 12),
}
ENDS: dict[Kind, list[Any]] = {
    Kind.INTEGER: [-(2**63), 2**63 - 1],
    Kind.NUMBER: [-1.7976931348623157e308, 1.7976931348623157e308, math.nan, math.inf, -math.inf, 5e-324, -0.0],
    Kind.DECIMAL: [Decimal("-" + "9" * 36 + ".99"), Decimal("9" * 36 + ".99")],
    Kind.DATE: [date.min, date.max],
    Kind.TIMESTAMP: [datetime.min, datetime.max],
}
BOUNDS: dict[Kind, list[Any]] = {
    Kind.INTEGER: [-20, 20],
    Kind.NUMBER: [-20, 20],
    Kind.DECIMAL: [-20, 20],
    Kind.DATE: ["2020-01-01", "2030-01-01"],
    Kind.TIMESTAMP: ["2020-01-01", "2030-01-01"],
}
TABLES: dict[str, Callable[[Kind], list[Any]]] = {
    "no rows": lambda kind: [],
    "one row": lambda kind: [MIDDLE[kind]],
    "one end": lambda kind: ENDS[kind][:1] * 300,
    "constant": lambda kind: [MIDDLE[kind]] * 300,
    "all missing": lambda kind: [None] * 300,
    "both ends": lambda kind: [*ENDS[kind], MIDDLE[kind]] * 100,
}
SHAPES = [
    "SELECT {} FROM t",
    "SELECT {} FROM t WHERE g = 'empty'",
    "SELECT {} FROM t WHERE x IS NOT NULL AND g = 'full'",
    "SELECT g, {} FROM t GROUP BY g",
]
ARGUMENTS = {"q": ["0.001", "0.05", "0.25", "0.999"], "k": ["1", "2", "40"], "p": ["0.05", "0.499"]}


def list_calls(kind: Kind, level: str) -> Iterator[str]:
    """Every statistic at ``differential``; elsewhere those that are answered by its mechanisms for want of bounds."""
    for statistic in STATISTICS:
        if kind in statistic.kinds and (level == "differential" or statistic in (Sum, Mean, Variance)):
            for argument in ARGUMENTS[statistic.parameter.name] if statistic.parameter else [None]:
                yield statistic.spellings[0].write("x", argument)


def open_party(kind: Kind, values: list[Any], notion: str, level: str, **declared: Any) -> TrustedParty:
    column = {"type": str(kind), **({"step": "0.01"} if kind is Kind.DECIMAL else {}), **declared}
    return TrustedParty.open(
        pa.table({"x": pa.array(values, TYPES[kind]), "g": pa.array(["full"] * len(values), pa.string())}),
        name="t",
        columns={"x": column, "g": {"type": "category", "values": ["full", "empty"], "nullable": False}},
        neighbours=notion,
        protection=level,
        group=2 if level == "group" else None,
        budget=10**9,
        min_epsilon="0.001",
        parameters={"trim": False, "quantile": False, "k": False},
    )


ANSWERED: dict[tuple[object, ...], list[str]] = {}
"""What is not refused, by all that is public: whatever the values are, the same must be answered."""


def ask_everything(party: TrustedParty, kind: Kind, level: str, *public: object) -> int:
    """Ask for all statistics that are not refused, each at ε = 1, in one question of every shape."""
    answered = 0
    for shape in SHAPES:
        known = kind, level, shape, *public
        if known not in ANSWERED:
            calls: list[str] = []
            for call in list_calls(kind, level):
                more = [*calls, f"{call} AS s{len(calls)}"]
                try:  # beside the others: the more statistics a question has, the rarer an answer out of reach must be
                    party.make_plan(shape.format(", ".join(more)), len(more))
                except Unanswerable:
                    continue
                calls = more
            ANSWERED[known] = calls
        calls = ANSWERED[known]
        if not calls:  # so few records of a whole table
            continue
        answer = party.query(shape.format(", ".join(calls)), len(calls))
        assert len(answer.rows) == (2 if "GROUP" in shape else 1)
        answer.to_dict()
        answered += len(calls)
    return answered


@pytest.mark.slow
@pytest.mark.parametrize("notion", ["replace", "add-remove"])
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("table", TABLES)
def test_every_statistic_of_every_column_through_sql(table: str, kind: Kind, notion: str) -> None:
    values = TABLES[table](kind)
    answered = 0
    levels = ["differential", "individual", "group"]
    for level in levels if kind in Sum.kinds else levels[:1]:
        for declared in ({}, {"nullable": False}, {"bounds": BOUNDS[kind]}, {"bounds": [None, BOUNDS[kind][1]]}):
            with open_party(kind, values, notion, level, **declared) as party:
                answered += ask_everything(party, kind, level, notion, str(declared), len(values))
    assert answered > 90


FUNCTIONS: list[tuple[str, tuple[Any, ...]]] = [
    (statistic.function, (argument,) if argument else ())
    for statistic in STATISTICS
    if statistic.function and not statistic.selects
    for argument in (
        [int(a) if statistic.parameter.name == "k" else a for a in ARGUMENTS[statistic.parameter.name]]
        if statistic.parameter
        else [None]
    )
]
ARRAYS: dict[str, Any] = {
    "no values": np.array([], dtype=np.int64),
    "one value": np.array([-7]),
    "constant": np.full(300, -7),
    "all missing": pa.array([None] * 300, pa.int64()),
    "the ends of integers": np.array([-(2**63), 2**63 - 1] * 150),
    "the ends of unsigned integers": np.array([0, 2**64 - 1] * 150, dtype=np.uint64),
    "the ends of floats": np.array([*ENDS[Kind.NUMBER], -7.25] * 50),
    "whole numbers of any size": [-(10**300), 0, 10**300] * 100,
}


@pytest.mark.filterwarnings("ignore::idios.NoAnswer")
@pytest.mark.slow
@pytest.mark.parametrize("notion", ["replace", "add-remove"])
@pytest.mark.parametrize("array", ARRAYS)
def test_every_function_of_every_array(array: str, notion: str) -> None:
    answered = 0
    levels: list[dict[str, Any]] = [
        {"protection": "differential"},
        {"protection": "individual"},
        {"protection": "group", "group": 2},
    ]
    for level in levels:
        for declared in ({}, {"bounds": (-20, 20)}, {"bounds": (None, 20)}, {"step": 1000, "centre": 2**62 * 1000}):
            for name, arguments in FUNCTIONS:
                try:
                    answer = getattr(idios, name)(
                        ARRAYS[array], *arguments, epsilon=1, neighbours=notion, **level, **declared
                    )
                except Unanswerable:
                    continue
                assert answer is None or isinstance(answer, int | float)
                answered += 1
    assert answered > 50

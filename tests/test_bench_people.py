"""The ten questions of ``bench.people``, about tables of TPC-H's shape: answered, and about like the plain ones."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

people = pytest.importorskip("bench.people", reason="a source distribution has no bench/")

CUSTOMERS = 1500
LARGE = 2000
"""An ε with which answers are nearly exact."""


def money(values: np.ndarray) -> pa.Array:
    return pa.array([Decimal(int(value)).scaleb(-2) for value in values], pa.decimal128(15, 2))


def days(rng: np.random.Generator, n: int) -> pa.Array:
    first = datetime.date(1994, 6, 1).toordinal()
    return pa.array([datetime.date.fromordinal(int(day)) for day in rng.integers(first, first + 900, n)])


def write_tables(folder: Path) -> None:
    """Customers with up to nine orders, some with none, of up to four items each."""
    rng = np.random.default_rng(1)
    per_customer = rng.integers(0, 10, CUSTOMERS)
    owners = np.repeat(np.arange(CUSTOMERS), per_customer)
    lines = np.repeat(np.arange(len(owners)), rng.integers(1, 5, len(owners)))
    tables: dict[str, dict[str, Any]] = {
        "customer": {
            "c_custkey": np.arange(CUSTOMERS),
            "c_nationkey": np.arange(CUSTOMERS) % 25,
            "c_acctbal": money(rng.integers(50_000, 1_000_000, CUSTOMERS)),
            "c_mktsegment": [people.SEGMENTS[i] for i in rng.integers(0, 5, CUSTOMERS)],
        },
        "orders": {
            "o_orderkey": np.arange(len(owners)),
            "o_custkey": owners,
            "o_totalprice": money(rng.lognormal(16, 0.5, len(owners))),
            "o_orderdate": days(rng, len(owners)),
            "o_orderpriority": [people.PRIORITIES[i] for i in rng.integers(0, 5, len(owners))],
        },
        "lineitem": {
            "l_orderkey": lines,
            "l_extendedprice": money(rng.lognormal(15, 0.5, len(lines))),
            "l_discount": money(rng.integers(0, 11, len(lines))),
            "l_shipdate": days(rng, len(lines)),
            "l_returnflag": [("A", "N", "R")[i] for i in rng.integers(0, 3, len(lines))],
        },
        "nation": {"n_nationkey": np.arange(25), "n_name": people.NATIONS, "n_regionkey": np.arange(25) % 5},
        "region": {"r_regionkey": np.arange(5), "r_name": people.REGIONS},
    }
    assert set(tables) == set(people.TABLES)
    for name, columns in tables.items():
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")


def test_every_question_is_answered_like_the_plain_one(tmp_path: Path) -> None:
    write_tables(tmp_path)
    with people.open_party(tmp_path, budget=100_000) as party, people.open_plain(tmp_path) as connection:
        assert len(people.QUESTIONS) == 10
        for question in people.QUESTIONS:
            answer = party.query(question.sql, epsilon=LARGE)
            truth = people.ask_plain(connection, question)
            assert [list(row) for row in answer.rows] == [list(row) for row in truth], question.title
            errors = people.measure_errors(list(answer.rows), truth)
            assert max(errors) < 0.05, question.title
            assert party.quote(question.sql, epsilon=1).cost == 1, question.title

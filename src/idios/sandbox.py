"""Made-up tables: a twin of every data set, to try questions for free, and the people of the demonstrations.

A twin is generated from the declared columns alone. ``TrustedParty.sandbox`` answers about it with the
code that answers real questions: the noise is real, the answer costs nothing and says nothing about any record.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

from idios.core.domain import Categories, Domain, Kind
from idios.data.backend import Backend, DataSource, open_source
from idios.data.formats.resources import divide_memory
from idios.declare.dates import DAY, UNITS, since_1970, to_datetime
from idios.declare.schema import Column, Dataset
from idios.plan.joins import list_keys, list_tables, list_unique_keys

ROWS = 1000
TWIN_PEOPLE = 400
"""Whose the rows are, where people have several: one of them one row, the next two, three, four, and so on."""
PARTS = 64
"""A twin gets one of this many parts of the memory: it is small, and real data needs the rest."""
MISSING = 20
"""In a nullable column, one of this many values is missing."""
HALF = 1000
"""Values of a column without bounds lie at most this far from its centre; in steps, if a step is greater than 1."""
TEN_YEARS = 3652
"""Dates lie at most this many days from the centre, or from the beginning of 2000 where none is declared."""
FURTHEST = 2**61
"""No value is further from 0, in steps: a column's bounds may be, but what is read may not."""

_MIDDLE = "2000-01-01"


class Twins:
    """The twins of data sets, each made when it is needed for the first time."""

    def __init__(self) -> None:
        self._made: dict[str, Backend] = {}
        self._making = Lock()

    def of(self, dataset: Dataset) -> Backend:
        """The twin of a data set."""
        with self._making:
            if dataset.name not in self._made:
                unique = {(name, key) for name, keys in list_unique_keys(dataset) for key in keys}
                tables = {
                    table.name: make_twin(
                        table.columns,
                        [column for column in table.unit if (table.name, column) not in unique],
                        list_keys(dataset, table.name),
                    )
                    for table in list_tables(dataset)
                }
                linked = {name: DataSource(table) for name, table in tables.items() if name != dataset.name}
                with divide_memory(PARTS):
                    self._made[dataset.name] = open_source(tables[dataset.name], dataset, linked=linked)
            return self._made[dataset.name]

    def close(self) -> None:
        """Close the twins; the next question would make them anew."""
        with self._making:
            while self._made:
                self._made.popitem()[1].close()


def make_twin(columns: Mapping[str, Column], unit: Sequence[str] = (), keys: Sequence[str] = ()) -> pa.Table:
    """The same made-up table for the same declaration, whatever the data; derived columns are derived from it.

    ``keys`` are of other tables, of which each leads from the first row to the first, from the second to the second, ….
    """
    values = {name: _make_values(column) for name, column in columns.items() if column.expression is None}
    owners = [person for person in range(TWIN_PEOPLE) for _ in range(1 + person % 4)]
    places = {name: pa.array(range(ROWS), pa.int64()) for name in keys}
    return pa.table(values | places | {name: pa.array(owners, pa.int64()) for name in unit})


def _make_values(column: Column) -> pa.Array:
    # not noise: an analyst who knows the declaration may know these values
    declared = repr((column.name, column.kind.value, column.domain, column.nullable))
    random = np.random.default_rng(list(hashlib.sha256(declared.encode()).digest()))
    missing = np.zeros(ROWS, bool)
    if column.nullable:
        missing[random.permutation(ROWS)[: ROWS // MISSING]] = True
    if isinstance(column.domain, Categories):
        chosen = random.integers(len(column.domain.values), size=ROWS)
        return pa.array([column.domain.values[i] for i in chosen], pa.string(), mask=missing)
    low, high = _range(column.kind, column.domain)
    points = (_draw_uniform(random, low, high) for _ in range(ROWS))
    values = [point * column.domain.step for point in points]
    if column.kind is Kind.DATE:
        return pa.array([to_datetime(value, Kind.DATE).date() for value in values], pa.date32(), mask=missing)
    if column.kind is Kind.TIMESTAMP:
        return pa.array([to_datetime(value, Kind.TIMESTAMP) for value in values], pa.timestamp("us"), mask=missing)
    # as floats, which are read onto any grid
    return pa.array([float(value) for value in values], pa.float64(), mask=missing)


def _range(kind: Kind, domain: Domain) -> tuple[int, int]:
    """The first and the last point: the bounds, and where there is none a made-up one."""
    half, middle = max(Fraction(HALF), HALF * domain.step), domain.centre * domain.step
    if kind in UNITS:
        half = Fraction(TEN_YEARS * DAY, UNITS[kind])
        middle = middle or since_1970(_MIDDLE, kind)
    low, high = ((middle - half) // domain.step, (middle + half) // domain.step)
    if domain.centre and not domain.bounded:
        return _clamp(domain.clamp(low)), _clamp(domain.clamp(high))
    width = high - low
    if domain.lower is not None:
        low, high = domain.lower, domain.lower + width
    if domain.upper is not None:
        high = domain.upper
        low = high - width if domain.lower is None else domain.lower
    return _clamp(low), _clamp(high)


def _clamp(point: int) -> int:
    return min(max(point, -FURTHEST), FURTHEST)


def _draw_uniform(random: np.random.Generator, low: int, high: int) -> int:
    # 128 bits, so that what the division leaves over does not show
    return low + int.from_bytes(random.bytes(16), "big") % (high - low + 1)


# The people of ``idios demo``, ``idios serve --demo`` and the benchmarks.

PEOPLE = 20_001
REGIONS = ["north", "south", "east", "west"]
PEOPLE_COLUMNS: dict[str, Any] = {
    "age": {"type": "integer", "bounds": [0, 120], "nullable": False},
    "income": {"type": "integer", "nullable": False},  # no bound of it is publicly known
    "region": {"type": "category", "values": REGIONS},
}


def write_people(path: Path, size: int = PEOPLE, seed: int = 7) -> None:
    """Write a table of generated people: heavy-tailed incomes, ages, regions."""
    random = np.random.default_rng(seed)
    age = np.clip(np.round(random.normal(45, 17, size)), 0, 120).astype(np.int64)
    income = np.round(random.lognormal(10.3, 0.8, size)).astype(np.int64)
    region = random.choice(REGIONS, size, p=[0.4, 0.3, 0.2, 0.1])
    parquet.write_table(pa.table({"age": age, "income": income, "region": region}), path)

"""A sandbox to try questions for free: tables generated from public facts, and the code that answers real questions.

Every data set has a twin, generated from its declared columns alone. An answer about it has real noise, costs nothing
and says nothing about any record: no data, no ledger and nothing stored is touched.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from fractions import Fraction
from threading import Lock

import numpy as np
import pyarrow as pa

from idios.backends.base import Backend, Watch, open_source
from idios.backends.memory import divided
from idios.core.domain import Categories, Domain, Kind
from idios.core.exact import Number
from idios.model import Answer
from idios.query.plan import Plan
from idios.query.schema import Column, Dataset
from idios.query.shares import Weights
from idios.release import EPOCH, draw_table, make_answer

ROWS = 1000
PARTS = 64
"""A twin gets one of this many parts of the memory: it is small, and real data needs the rest."""
MISSING = 20
"""In a nullable column, one of this many values is missing."""
HALF = 1000
"""Values of a column without bounds lie between −HALF and HALF; in steps, if a step is greater than 1."""
TEN_YEARS = 3652
"""Dates lie at most this many days from the beginning of 2000."""
FURTHEST = 2**61
"""No value is further from 0, in steps: a column's bounds may be, but what is read may not."""

_DAY = timedelta(days=1)
_MICROSECOND = timedelta(microseconds=1)
_UNITS = {Kind.DATE: _DAY, Kind.TIMESTAMP: _MICROSECOND}
_MIDDLE = datetime(2000, 1, 1)


class Twins:
    """The twins that were asked for so far, each made once."""

    def __init__(self) -> None:
        self._made: dict[str, Backend] = {}
        self._making = Lock()

    def of(self, dataset: Dataset) -> Backend:
        """The twin of a data set."""
        with self._making:
            if dataset.name not in self._made:
                with divided(PARTS):
                    self._made[dataset.name] = open_source(twin(dataset.columns), dataset)
            return self._made[dataset.name]

    def close(self) -> None:
        """Close the twins; the next question would make them anew."""
        with self._making:
            while self._made:
                self._made.popitem()[1].close()


@dataclass(frozen=True)
class Sandbox:
    """Answers about twins; ``plan`` reads and plans a question about the data sets that the caller may ask about."""

    twins: Twins
    plan: Callable[[str, Number, Weights], Plan]

    def __call__(self, sql: str, epsilon: Number, weights: Weights = None, *, watch: Watch | None = None) -> Answer:
        """Answer a question about made-up data, as it would be answered about the real; ``Stopped`` if that is."""
        plan = self.plan(sql, epsilon, weights)
        table = draw_table(plan, self.twins.of(plan.dataset), watch)
        return replace(make_answer(plan, table, id="sandbox", remaining=None, stored=False), sandbox=True)


def twin(columns: Mapping[str, Column]) -> pa.Table:
    """The same made-up table for the same declaration, whatever the data."""
    return pa.table({name: _values(column) for name, column in columns.items()})


def _values(column: Column) -> pa.Array:
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
    points = (_uniform(random, low, high) for _ in range(ROWS))
    values = [point * column.domain.step for point in points]
    if column.kind is Kind.DATE:
        return pa.array([_moment(value, _DAY).date() for value in values], pa.date32(), mask=missing)
    if column.kind is Kind.TIMESTAMP:
        return pa.array([_moment(value, _MICROSECOND) for value in values], pa.timestamp("us"), mask=missing)
    # as floats, which are read onto any grid
    return pa.array([float(value) for value in values], pa.float64(), mask=missing)


def _range(kind: Kind, domain: Domain) -> tuple[int, int]:
    """The first and the last point: the bounds, and where there is none a made-up one."""
    half, middle = max(Fraction(HALF), HALF * domain.step), Fraction(0)
    if kind in _UNITS:
        half, middle = (Fraction(span // _UNITS[kind]) for span in (TEN_YEARS * _DAY, _MIDDLE - EPOCH))
    low, high = ((middle - half) // domain.step, (middle + half) // domain.step)
    width = high - low
    if domain.lower is not None:
        low, high = domain.lower, domain.lower + width
    if domain.upper is not None:
        high = domain.upper
        low = high - width if domain.lower is None else domain.lower
    return _near(low), _near(high)


def _near(point: int) -> int:
    return min(max(point, -FURTHEST), FURTHEST)


def _uniform(random: np.random.Generator, low: int, high: int) -> int:
    # 128 bits, so that what the division leaves over does not show
    return low + int.from_bytes(random.bytes(16), "big") % (high - low + 1)


def _moment(count: Fraction, unit: timedelta) -> datetime:
    """``count`` units after 1970, clamped to the ends of the calendar."""
    first, last = ((end - EPOCH) // unit for end in (datetime.min, datetime.max))
    return EPOCH + min(max(int(count // 1), first), last) * unit

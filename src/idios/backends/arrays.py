"""Columns in memory: lists, numpy, pandas, polars and Arrow, read onto the grid with numpy.

Reading onto the grid and clamping are monotone, so order statistics are picked from the raw values and only
the few that are wanted are converted. Sums are exact: 64-bit where they fit, split in halves where they might not.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idios.core.domain import Categories, Domain, Kind, default_step
from idios.core.neighbours import Moves, Neighbours
from idios.core.statistics import Statistic
from idios.core.summary import Summary, Window
from idios.errors import InvalidInput

Array = NDArray[Any]

_SAFE = 2**62  # grid points beyond this are kept as Python integers, so that nothing wraps


@dataclass(frozen=True)
class NumberColumn:
    """The non-missing values of a column, its grid, and how many values are missing.

    ``missing`` is None where the type cannot hold a missing value: then the selection is the whole column.
    """

    raw: Array
    domain: Domain
    missing: int | None

    def moves(self, neighbours: Neighbours) -> Moves:
        """What changed records can do to the values."""
        return Moves(neighbours, len(self.raw), self.missing)

    def summarise(self, statistic: Statistic, neighbours: Neighbours, distance: int) -> Summary:
        """Compute what a statistic needs to know, and no more."""
        moves = self.moves(neighbours)
        total = squares = None
        distinct: int | None = None
        rarest: tuple[int, ...] = ()
        beside: dict[Fraction, tuple[int, ...]] = {}
        if statistic.needs_squares or statistic.needs_distinct:
            points = to_grid(self.raw, self.domain)
            if statistic.needs_squares:
                total, squares = exact_sum(points), exact_sum_of_squares(points)
                for threshold in statistic.thresholds(moves, self.domain, total):
                    beside[threshold] = _beside(points, threshold)
            if statistic.needs_distinct:
                counts = np.sort(np.unique(points, return_counts=True)[1])
                distinct, rarest = len(counts), tuple(int(c) for c in counts[:distance])
        ordered, runs = self._partitioned(statistic.ranks(moves, distance))
        windows = []
        for first, last in runs:
            below = exact_sum(to_grid(ordered[: first - 1], self.domain)) if statistic.needs_sums else 0
            points = to_grid(np.sort(ordered[first - 1 : last]), self.domain)
            windows.append(Window(first, tuple(int(p) for p in points), below))
        if statistic.needs_sums and total is None:
            total = exact_sum(to_grid(self.raw, self.domain))
        return Summary(self.domain, moves, tuple(windows), total, squares, beside, distinct=distinct, rarest=rarest)

    def _partitioned(self, ranks: Any) -> tuple[Array, list[tuple[int, int]]]:
        """The values with every run of ranks in its place, and the runs as far as there is data."""
        size = len(self.raw)
        runs = [(max(first, 1), min(last, size)) for first, last in ranks]
        runs = [(first, last) for first, last in runs if first <= last]
        if not runs:
            return self.raw, runs
        ends = sorted({end - 1 for run in runs for end in run})
        return np.partition(self.raw, ends), runs


@dataclass(frozen=True)
class CategoryColumn:
    """How often each declared category occurs, and how many values are missing or undeclared."""

    counts: tuple[int, ...]
    missing: int | None

    def moves(self, neighbours: Neighbours) -> Moves:
        """What changed records can do to the values."""
        return Moves(neighbours, sum(self.counts), self.missing)


def read_numbers(
    values: Any, *, step: object = None, bounds: Sequence[object] | None = None, nullable: bool | None = None
) -> NumberColumn:
    """Read any one-dimensional column of numbers, dates or timestamps.

    The grid is the declared step, or that of the type. Whether values can be missing is a fact of the type too, unless
    ``nullable`` declares it: numpy's and pandas' integers cannot be; floats, lists, Arrow and polars columns can.
    """
    raw, kind, decimals, can_miss = _plain(values)
    if step is None and kind is Kind.DECIMAL and decimals is None:
        raise InvalidInput("decimal numbers in a list have no common scale: declare a step, such as step='0.01'")
    grid = default_step(kind, decimals or 0) if step is None else step
    domain = Domain.declare(step=grid, bounds=bounds)
    present = _present(raw)
    missing = len(raw) - int(present.sum()) if present is not None else 0
    if missing:
        raw = raw[present]
        if nullable is False or (nullable is None and not can_miss):
            raise InvalidInput("the column is declared not nullable and has missing values: declare nullable=True")
    return NumberColumn(_numeric(raw), domain, missing if (can_miss if nullable is None else nullable) else None)


def read_categories(values: Any, categories: Sequence[str], *, nullable: bool | None = None) -> CategoryColumn:
    """Count the declared categories of a column; what is not declared reads as missing."""
    declared = Categories(tuple(categories))
    listed = list(values.to_pylist() if hasattr(values, "to_pylist") else values)
    index: dict[object, int] = {value: i for i, value in enumerate(declared.values)}
    counts = [0] * len(declared.values)
    missing = 0
    for value in listed:
        place = index.get(value) if isinstance(value, str | int | bool) else None
        if place is None:
            missing += 1
        else:
            counts[place] += 1
    if missing and nullable is False:
        raise InvalidInput("the column is declared not nullable and has missing or undeclared values")
    return CategoryColumn(tuple(counts), None if nullable is False else missing)


def to_grid(raw: Array, domain: Domain) -> Array:
    """⌊v·k + ½⌋ with k = 1/step, clamped: 64-bit integers, or Python's own where those could overflow.

    Doubles take the same two operations in the same order in every engine; integers and decimals are exact.
    """
    if raw.dtype == object:
        points = np.array([domain.read(v) for v in raw], dtype=object)
        return points.astype(np.int64) if _fits(points) else points
    if raw.dtype.kind == "f":
        with np.errstate(over="ignore"):
            scaled = np.floor(raw.astype(np.float64, copy=False) * float(1 / domain.step) + 0.5)
        if domain.lower is not None or domain.upper is not None:
            scaled = np.clip(scaled, _float_bound(domain.lower), _float_bound(domain.upper))
        if not len(scaled) or max(-scaled.min(), scaled.max()) < _SAFE:
            return _clamped(scaled.astype(np.int64), domain)
        exact = [int(s) if np.isfinite(s) else domain.read(float(v)) for s, v in zip(scaled, raw, strict=True)]
        return np.array([domain.clamp(point) for point in exact], dtype=object)
    if not len(raw):
        return raw.astype(np.int64)
    p, q = domain.step.numerator, domain.step.denominator
    largest = max(abs(int(raw.min())), abs(int(raw.max())))
    if (2 * largest + 1) * max(p, q) >= _SAFE:
        return to_grid(raw.astype(object), domain)
    points = raw.astype(np.int64)
    if (p, q) != (1, 1):
        points = (2 * q * points + p) // (2 * p)
    return _clamped(points, domain)


def exact_sum(points: Array) -> int:
    """The sum of grid points, without overflow."""
    if points.dtype == object or not len(points):
        return int(sum(points.tolist()))
    if max(-int(points.min()), int(points.max())) * len(points) < _SAFE:
        return int(points.sum())
    return (int((points >> 32).sum()) << 32) + int((points & 0xFFFFFFFF).sum())


def exact_sum_of_squares(points: Array) -> int:
    """The sum of squared grid points, without overflow: each is split into h·2³¹ + l."""
    if points.dtype == object:
        return int(sum(p * p for p in points.tolist()))
    high, low = points >> 31, points & 0x7FFFFFFF
    return (exact_sum(high * high) << 62) + (exact_sum(high * low) << 32) + exact_sum(low * low)


def _plain(values: Any) -> tuple[Array, Kind, int | None, bool]:
    """The values as a numpy array, their kind, the scale of a decimal type, and whether the type has missing values."""
    if isinstance(values, str | bytes) or not hasattr(values, "__len__"):
        raise InvalidInput(f"values must be a list or a column of numbers, got {type(values).__name__}")
    module = type(values).__module__.partition(".")[0]
    if module == "polars":
        values = values.to_arrow()
        module = "pyarrow"
    if module == "pyarrow":
        decimals = getattr(values.type, "scale", None)
        if decimals is not None:
            return np.array(values.to_pylist(), dtype=object), Kind.DECIMAL, decimals, True
        if values.null_count and str(values.type).startswith(("int", "uint", "bool")):
            listed = np.array(values.to_pylist(), dtype=object)  # a float could not hold every integer
            return listed, Kind.INTEGER, None, True
        array = values.to_numpy(zero_copy_only=False) if hasattr(values, "chunks") is False else values.to_numpy()
        return (*_kind_of(np.asarray(array)), None, True)
    if module == "pandas":
        dtype = str(values.dtype)
        if dtype[:1].isupper():  # pandas' own nullable types
            if dtype.startswith("Float"):
                return values.to_numpy(dtype=np.float64, na_value=np.nan), Kind.NUMBER, None, True
            return values.astype(object).where(values.notna(), None).to_numpy(), Kind.INTEGER, None, True
        values = values.to_numpy()
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise InvalidInput(f"values must have one dimension, got {values.ndim}")
        if values.dtype != object:
            array, kind = _kind_of(values)
            return array, kind, None, kind not in (Kind.INTEGER,)
        values = values.tolist()
    return (*_from_list(list(values)), None, True)


def _kind_of(array: Array) -> tuple[Array, Kind]:
    if array.dtype.kind == "b":
        return array.astype(np.int64), Kind.INTEGER
    if array.dtype.kind in "iu":
        return array, Kind.INTEGER
    if array.dtype.kind == "f":
        return array, Kind.NUMBER
    if array.dtype.kind == "M":
        day = np.datetime_data(array.dtype)[0] == "D"
        return array.astype("datetime64[D]" if day else "datetime64[us]"), Kind.DATE if day else Kind.TIMESTAMP
    if array.dtype == object:
        return _from_list(array.tolist())
    raise InvalidInput(f"values must be numbers, dates or timestamps, got an array of {array.dtype}")


def _from_list(values: list[Any]) -> tuple[Array, Kind]:
    """A list by the types of its elements; None is missing."""
    types = {type(v) for v in values if v is not None}
    if any(issubclass(t, datetime.datetime) for t in types):
        return np.array(values, dtype="datetime64[us]"), Kind.TIMESTAMP
    if types and all(issubclass(t, datetime.date) for t in types):
        return np.array(values, dtype="datetime64[D]"), Kind.DATE
    if any(issubclass(t, Decimal | Fraction) for t in types):
        return np.array(values, dtype=object), Kind.DECIMAL
    if all(issubclass(t, int | np.integer) for t in types):
        if None not in values and all(-_SAFE < v < _SAFE for v in values):
            return np.array(values, dtype=np.int64), Kind.INTEGER
        return np.array(values, dtype=object), Kind.INTEGER
    if all(issubclass(t, int | float | np.integer | np.floating) for t in types):
        return np.array([np.nan if v is None else v for v in values], dtype=np.float64), Kind.NUMBER
    names = ", ".join(sorted(t.__name__ for t in types))
    raise InvalidInput(f"values must be numbers, dates or timestamps, got elements of type {names}")


def _present(raw: Array) -> Array | None:
    """Which values are there; None if all are, by type."""
    if raw.dtype == object:
        return np.array([_is_finite(v) for v in raw], dtype=bool)
    if raw.dtype.kind == "f":
        return np.isfinite(raw)
    if raw.dtype.kind == "M":
        return ~np.isnat(raw)
    return None


def _is_finite(value: Any) -> bool:
    if value is None:
        return False
    if isinstance(value, Decimal):
        return value.is_finite()
    return True


def _numeric(raw: Array) -> Array:
    """Dates as days and timestamps as microseconds since 1970."""
    return raw.astype(np.int64) if raw.dtype.kind == "M" else raw


def _beside(points: Array, threshold: Fraction) -> tuple[int, ...]:
    """The nearest points on both sides of a threshold."""
    below = points[points <= threshold.numerator // threshold.denominator]
    above = points[points >= -(-threshold.numerator // threshold.denominator)]
    found = ([below.max()] if len(below) else []) + ([above.min()] if len(above) else [])
    return tuple(int(point) for point in found)


def _clamped(points: Array, domain: Domain) -> Array:
    if domain.lower is None and domain.upper is None:
        return points
    limits = np.iinfo(np.int64)
    low = limits.min if domain.lower is None else max(domain.lower, limits.min)
    high = limits.max if domain.upper is None else min(domain.upper, limits.max)
    return np.clip(points, low, high)


def _float_bound(bound: int | None) -> float | None:
    return None if bound is None else float(bound)


def _fits(points: Array) -> bool:
    return not len(points) or max(-min(points), max(points)) < _SAFE

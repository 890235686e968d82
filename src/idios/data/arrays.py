"""Columns in memory: lists, numpy, pandas, polars and Arrow, read onto the grid with numpy.

Reading onto the grid and clamping are monotone, so order statistics are picked from the raw values and only
the few that are wanted are converted. Sums are exact: 64-bit where they fit, split in halves where they might not.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from idios.core.domain import Domain, Kind, count_day, default_step
from idios.core.exact import exact
from idios.core.neighbours import Moves, Neighbours
from idios.core.statistics import Reading, Statistic
from idios.core.summary import Summary, Window
from idios.data.clip import Clip, Limits
from idios.data.columns import read_typed
from idios.data.labels import count_labels, read_declared, read_labels, to_list
from idios.declare.dates import Array
from idios.errors import InvalidInput

_SAFE = 2**62  # grid points beyond this are kept as Python integers, so that nothing wraps


@dataclass(frozen=True)
class NumberColumn:
    """The non-missing values of a column, its grid, and how many values are missing.

    ``missing`` is None where the type cannot hold a missing value: then the selection is the whole column.
    """

    raw: Array
    domain: Domain
    missing: int | None
    on_grid: bool = False
    """Whether the values are grid points already."""
    kind: Kind = Kind.NUMBER

    def moves(self, neighbours: Neighbours) -> Moves:
        """What changed records can do to the values."""
        return Moves(neighbours, len(self.raw), self.missing)

    def summarise(self, reading: Reading, neighbours: Neighbours, distance: int) -> Summary:
        """Compute what is read, and no more."""
        moves = self.moves(neighbours)
        total = squares = None
        distinct: int | None = None
        rarest: tuple[int, ...] = ()
        beside: dict[Fraction, tuple[int, ...]] = {}
        if reading.needs_squares or reading.needs_distinct:
            points = self.points(self.raw)
            if reading.needs_squares:
                total, squares = exact_sum(points), exact_sum_of_squares(points)
                for threshold in reading.thresholds(moves, self.domain, total):
                    beside[threshold] = find_beside(points, threshold)
            if reading.needs_distinct:
                counts = np.sort(np.unique(points, return_counts=True)[1])
                distinct, rarest = len(counts), tuple(int(c) for c in counts[:distance])
        ordered, runs = self._partitioned(reading.ranks(moves, distance))
        windows = []
        for first, last in runs:
            below = exact_sum(self.points(ordered[: first - 1])) if reading.needs_sums else 0
            points = self.points(np.sort(ordered[first - 1 : last]))
            windows.append(Window(first, tuple(int(p) for p in points), below))
        if reading.needs_sums and total is None:
            total = exact_sum(self.points(self.raw))
        return Summary(self.domain, moves, tuple(windows), total, squares, beside, distinct=distinct, rarest=rarest)

    def sum_clipped(self, limits: Limits, statistic: Statistic, neighbours: Neighbours) -> Summary:
        """The number and the sum of the values clipped to limits that were drawn, and the sum of squares if needed."""
        clip, points = Clip.of(self.domain, limits), self.points(self.raw)
        far = points.dtype == object
        if far:
            clipped = np.array([clip.domain.clamp(point) for point in points.tolist()], dtype=object)
        else:
            clipped = np.clip(points, clip.low, clip.high)
        moves, total = self.moves(neighbours), exact_sum(clipped)
        squares = exact_sum_of_squares(clipped) if statistic.needs_squares else None
        if far:
            return Summary(clip.domain, moves, total=total, squares=squares)
        return clip.summarise(moves, total, squares)

    def points(self, values: Array) -> Array:
        """The grid points of some of the values."""
        return values if self.on_grid else to_grid(values, self.domain)

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
    """How often each declared category or bin occurs, and how many values are missing or in none of them."""

    counts: tuple[int, ...]
    missing: int | None

    @property
    def domain(self) -> Domain:
        """The indices of the categories."""
        return Domain(lower=0, upper=len(self.counts) - 1)

    def moves(self, neighbours: Neighbours) -> Moves:
        """What changed records can do to the values."""
        return Moves(neighbours, sum(self.counts), self.missing)

    def summarise(self, neighbours: Neighbours) -> Summary:
        """What a statistic that counts categories needs to know."""
        return Summary(self.domain, self.moves(neighbours), counts=self.counts)


def read_numbers(
    values: Any,
    *,
    step: object = None,
    bounds: Sequence[object] | None = None,
    centre: object = None,
    nullable: bool | None = None,
) -> NumberColumn:
    """Read any one-dimensional column of numbers, dates or timestamps.

    The grid is the declared step, or that of the type. Whether values can be missing is a fact of the type too, unless
    ``nullable`` declares it: numpy's and pandas' integers cannot be; floats, lists, Arrow and polars columns can.
    """
    typed = read_typed(values, mixed=step is not None)
    if step is None and typed.kind is Kind.DECIMAL and typed.decimals is None:
        raise InvalidInput("decimal numbers in a list have no common scale: declare a step, such as step='0.01'")
    grid = default_step(typed.kind, typed.decimals or 0) if step is None else step
    domain = Domain.declare(step=grid, bounds=bounds, centre=centre, day=count_day(typed.kind))
    raw, missing = typed.values, 0
    if typed.present is not None:
        missing = len(raw) - int(typed.present.sum())
        raw = raw[typed.present] if missing else raw
    can_miss = typed.present is not None if nullable is None else nullable
    if missing and not can_miss:
        raise InvalidInput("the column is declared not nullable and has missing values: declare nullable=True")
    if raw.dtype == object:  # several types may be mixed, so that only their grid points compare
        return NumberColumn(to_grid(raw, domain), domain, missing if can_miss else None, on_grid=True, kind=typed.kind)
    return NumberColumn(raw, domain, missing if can_miss else None, kind=typed.kind)


def read_categories(values: Any, categories: Any, *, nullable: bool | None = None) -> CategoryColumn:
    """Count the declared categories of a column; what is not declared reads as missing."""
    declared, labels = read_declared(categories), read_labels(values)
    if labels.family is not None and labels.family is not declared.family:
        raise InvalidInput(
            f"the values are of the type {labels.family} and the categories of the type {declared.family}, so that "
            "none would ever be counted: give both one type"
        )
    counts = count_labels(labels, declared)
    missing = len(labels.values) + labels.missing - sum(counts)
    if missing and nullable is False:
        raise InvalidInput("the column is declared not nullable and has missing or undeclared values")
    return CategoryColumn(counts, None if nullable is False else missing)


def read_bins(
    values: Any,
    bins: Any,
    *,
    step: object = None,
    bounds: Sequence[object] | None = None,
    nullable: bool | None = None,
) -> CategoryColumn:
    """Count the values of a column in half-open public bins [a, b), [b, c), …, of which the last is closed.

    A value is where its grid point is. What lies outside counts as missing, which any record can become.
    """
    column = read_numbers(values, step=step, bounds=bounds, nullable=nullable)
    places = [edge / column.domain.step for edge in _read_edges(bins, column.kind if len(column.raw) else None)]
    # the first grid point of every bin, and the first one behind the last
    firsts = [math.ceil(place) for place in places[:-1]] + [math.floor(places[-1]) + 1]
    points = column.points(column.raw)
    if points.dtype != object:
        firsts = [min(max(first, -_SAFE), _SAFE) for first in firsts]
    below = np.searchsorted(np.sort(points), np.array(firsts, dtype=points.dtype))
    counts = tuple(int(after - before) for before, after in pairwise(below))
    return CategoryColumn(counts, len(points) + (column.missing or 0) - sum(counts))


def _read_edges(bins: Any, kind: Kind | None) -> list[Fraction]:
    """The edges as numbers of a column of some kind, or of any if nothing is known of it."""
    if isinstance(bins, str | bytes | Set | Mapping) or not hasattr(bins, "__len__") or len(bins) < 2:
        given = bins if isinstance(bins, int) else type(bins).__name__
        raise InvalidInput(f"bins must be a list of at least two public edges, such as [0, 20, 40], got {given}")
    edges = to_list(bins)
    if kind in (Kind.DATE, Kind.TIMESTAMP) or isinstance(edges[0], datetime.date | np.datetime64):
        read = read_typed(edges)
        if read.kind is not (kind or read.kind) or not np.all(read.present):
            raise InvalidInput(f"the edges of bins must be of the type of the values, {kind}, got {read.kind}")
        numbers = [Fraction(int(edge)) for edge in read.values]
    else:
        numbers = [exact(edge, "an edge of bins") for edge in edges]
    if any(before >= after for before, after in pairwise(numbers)):
        raise InvalidInput("the edges of bins must increase from each to the next, such as [0, 20, 40]")
    return numbers


def to_grid(raw: Array, domain: Domain) -> Array:
    """⌊v·k + ½⌋ with k = 1/step, clamped: 64-bit integers, or Python's own where those could overflow.

    Doubles take the same two operations in the same order in every engine; integers and decimals are exact. With
    bounds, values are clamped before they could overflow, so that one far value does not slow down all the others.
    """
    if not _narrow(domain):
        return _one_by_one(raw, domain)
    if raw.dtype == object:
        points = _one_by_one(raw, domain)
        return points.astype(np.int64) if _fits(points) else points
    if raw.dtype.kind == "f":
        with np.errstate(over="ignore"):
            scaled = np.floor(raw * float(1 / domain.step) + 0.5)
        if domain.lower is not None or domain.upper is not None:
            scaled = np.clip(scaled, domain.lower, domain.upper)
        if not len(scaled) or max(-scaled.min(), scaled.max()) < _SAFE:
            return _clamped(scaled.astype(np.int64), domain)
        return _one_by_one(raw, domain)
    p, q = domain.step.numerator, domain.step.denominator
    if domain.lower is not None or domain.upper is not None:
        # a step beyond the bounds reads as the bound, and so does every value that is cut off there
        low, high = (None if b is None else (b + way) * p // q for b, way in ((domain.lower, -1), (domain.upper, 2)))
        limits = np.iinfo(raw.dtype)
        low = limits.min if low is None else min(max(low, limits.min), limits.max)
        high = limits.max if high is None else min(max(high, limits.min), limits.max)
        raw = np.clip(raw, low, high)
    if not len(raw):
        return raw.astype(np.int64)
    largest = max(abs(int(raw.min())), abs(int(raw.max())))
    if (2 * largest + 1) * max(p, q) >= _SAFE:
        return _one_by_one(raw, domain)
    points = raw.astype(np.int64)
    if (p, q) != (1, 1):
        points = (2 * q * points + p) // (2 * p)
    return _clamped(points, domain)


def _one_by_one(raw: Array, domain: Domain) -> Array:
    """The points as Python's integers: exact whatever their size, and slow."""
    k = float(1 / domain.step)
    points = []
    for value in raw.tolist():
        scaled = np.floor(np.float64(value) * k + 0.5) if isinstance(value, float) and abs(value) < 1e150 else None
        points.append(domain.read(value) if scaled is None or not np.isfinite(scaled) else domain.clamp(int(scaled)))
    return np.array(points, dtype=object)


def exact_sum(points: Array) -> int:
    """The sum of grid points, without overflow."""
    if points.dtype == object or not len(points):
        return int(sum(points.tolist()))
    if max(-int(points.min()), int(points.max())) * len(points) < _SAFE:
        return int(points.sum())
    return (int((points >> 32).sum()) << 32) + int((points & 0xFFFFFFFF).sum())


def exact_sum_of_squares(points: Array) -> int:
    """The sum of squared grid points, without overflow: each is split into h·2³¹ + l."""
    if points.dtype == object or not _fits(points):
        return int(sum(p * p for p in points.tolist()))
    high, low = points >> 31, points & 0x7FFFFFFF
    return (exact_sum(high * high) << 62) + (exact_sum(high * low) << 32) + exact_sum(low * low)


def find_beside(points: Array, threshold: Fraction) -> tuple[int, ...]:
    """The nearest points on both sides of a threshold."""
    below = points[points <= threshold.numerator // threshold.denominator]
    above = points[points >= -(-threshold.numerator // threshold.denominator)]
    nearest = ([below.max()] if len(below) else []) + ([above.min()] if len(above) else [])
    return tuple(int(point) for point in nearest)


def _clamped(points: Array, domain: Domain) -> Array:
    return points if domain.lower is None and domain.upper is None else np.clip(points, domain.lower, domain.upper)


def _narrow(domain: Domain) -> bool:
    """Whether the bounds, if there are any, fit 64 bits with room to spare."""
    return all(bound is None or abs(bound) < _SAFE for bound in (domain.lower, domain.upper))


def _fits(points: Array) -> bool:
    return not len(points) or max(-int(points.min()), int(points.max())) < _SAFE

"""Order statistics of groups as arrays: every way finds what Python finds, and what ``RankSearch`` finds."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import pyarrow as pa
import pytest

from idios.core.cell_windows import SummaryTable
from idios.core.statistics import DiscreteQuantile, Median, Quantile
from idios.data import group_windows, scan, summarise
from idios.data.backend import Backend, open_source
from idios.data.group_windows import GroupReader
from idios.data.queries import Queries
from idios.errors import SourceError
from idios.expressions.predicates import Among
from idios.plan.question import Plan
from tests.conformance.plans import by, dataset, plan
from tests.conformance.reference import Table
from tests.conformance.test_statistics import same
from tests.data.test_group_ranks import FEW, PART, N, X, make_table

ASKED = [(Median(), "x"), (DiscreteQuantile(Fraction(9, 10)), "n"), (Quantile(Fraction(1, 4)), "x")]
TYPES = {"x": pa.float64(), "n": pa.int64(), "part": pa.string(), "few": pa.string()}


def open_table(*, hostile: bool) -> tuple[Backend, Table]:
    table = make_table(hostile=hostile)
    arrow = pa.table({name: pa.array(values, TYPES[name]) for name, values in table.items()})
    return open_source(arrow, dataset(X, N, PART, FEW)), table


def is_of_arrays(backend: Backend, asked: Plan) -> bool:
    return isinstance(backend.summarise(asked), SummaryTable)


@pytest.mark.parametrize("hostile", [False, True])
@pytest.mark.parametrize("way", ["as chosen", "lists", "lists at once", "shares"])
def test_all_ways_find_the_same_values(way: str, hostile: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if way == "lists":
        monkeypatch.setattr(group_windows, "WIDE_ENOUGH", 10**9)
    if way == "lists at once":
        monkeypatch.setattr(group_windows, "NARROW", 0)
    if way == "shares":
        monkeypatch.setattr(group_windows, "WIDE_ENOUGH", 0)
    backend, table = open_table(hostile=hostile)
    data, used = dataset(X, N, PART, FEW), 0
    with backend:
        for groups, distance in (([by(PART)], 1), ([by(FEW), by(PART)], 1), ([by(FEW)], 9), ([by(X, 100)], 9)):
            asked = plan(data, *ASKED, groups=groups, distance=distance)
            same(backend, asked, table)
            used += is_of_arrays(backend, asked)
        where = Among("n", ((None, 6), (8, None)), nulls=True)
        same(backend, plan(data, *ASKED, where=where, groups=[by(PART)]), table)
    assert used


def test_a_share_that_hits_another_rank_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted error: ranks counted from above."""
    find_hit = group_windows.find_hit
    monkeypatch.setattr(group_windows, "find_hit", lambda share, size: size + 1 - find_hit(share, size))
    monkeypatch.setattr(group_windows, "WIDE_ENOUGH", 0)
    backend, table = open_table(hostile=False)
    with backend, pytest.raises(SourceError):
        same(backend, plan(dataset(X, N, PART, FEW), (Median(), "x"), groups=[by(PART)]), table)


def test_cells_are_counted_once_for_the_same_groups_and_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[object] = []

    def count_cells(queries: Queries, names: Sequence[str], *, listed: bool = False) -> scan.CellCounts:
        counted.append(names)
        return scan.count_cells(queries, names, listed=listed)

    monkeypatch.setattr(group_windows, "count_cells", count_cells)
    monkeypatch.setattr(group_windows, "WIDE_ENOUGH", 0)
    backend, table = open_table(hostile=False)
    data = dataset(X, N, PART, FEW)
    with backend:
        for _ in range(3):
            same(backend, plan(data, (Median(), "x"), groups=[by(PART)]), table)
        assert len(counted) == 1
        same(backend, plan(data, (Median(), "x"), groups=[by(PART)], where=Among("few", ((1, 1),))), table)
        assert len(counted) == 2


def test_labels_that_are_not_declared_stay_in_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    fetched: list[pa.Table] = []
    for name in ("fetch", "fetch_quantiles"):
        original = getattr(Queries, name)
        monkeypatch.setattr(Queries, name, lambda *a, _f=original, **k: fetched.append(_f(*a, **k)) or fetched[-1])
    for at_least in (0, 10**9):
        monkeypatch.setattr(group_windows, "WIDE_ENOUGH", at_least)
        backend, _ = open_table(hostile=False)
        with backend:
            backend.summarise(plan(dataset(X, N, PART, FEW), (Median(), "x"), groups=[by(PART)]))
    assert len(fetched) == 4
    for found in fetched:
        assert not any(pa.types.is_string(kind) for kind in found.schema.types)
        assert set(found["cell"].to_pylist()) <= set(range(1, 61))


def test_a_source_with_more_records_than_it_had_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GroupReader, "read", lambda self: group_windows.GroupWindows([], 10**9, {}))
    backend, _ = open_table(hostile=False)
    with backend, pytest.raises(SourceError, match=summarise.CHANGED):
        backend.summarise(plan(dataset(X, N, PART, FEW), (Median(), "x"), groups=[by(PART)]))

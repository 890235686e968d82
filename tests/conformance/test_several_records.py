"""Several records of a person: evenly spaced values, and limits of rows and groups, on every engine, against Python."""

from __future__ import annotations

import datetime
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from idios.core.calibration import Protection
from idios.core.domain import Domain, Kind
from idios.core.neighbours import Neighbours
from idios.data.backend import open_source
from idios.data.engines.sql_backend import SqlBackend
from idios.data.sql import reduction_sql
from idios.declare.schema import Column, Dataset
from idios.plan.planner import make_plan
from idios.plan.reductions import SPREAD_VALUES
from idios.sql.reader import read
from tests.conformance.engines import Engine
from tests.conformance.plans import category, number, whole
from tests.conformance.reference import point
from tests.conformance.test_people import read_points

Row = dict[str, Any]
GROUPS = ("north", "south", "east")
COLUMNS = (
    whole("who"),
    whole("x"),
    number("price", "0.01"),
    category("region", *GROUPS),
    Column("day", Kind.DATE, Domain()),
)
UNITS = {
    "word": (pa.string(), lambda who: ("", "ß", "a", "A", "a ", "1,2", "1")[who % 7] + "x" * (who // 7)),
    "code": (pa.int64(), lambda who: who - 3),
    "born": (pa.date32(), lambda who: datetime.date(1999, 12, 30) + datetime.timedelta(days=who)),
    "seen": (pa.timestamp("us"), lambda who: datetime.datetime(1999, 12, 31, 23, 59, 59, who)),
    "weight": (pa.float64(), lambda who: who / 7 or -0.0),
    "price_paid": (pa.decimal128(20, 2), lambda who: Decimal(who) / 100),
    "first": (pa.string(), lambda who: "1,2"[: 1 + who % 3]),
    "second": (pa.int64(), lambda who: who // 3),
}
"""What tells people apart, by their numbers; the last two only together."""
TYPES = {"who": pa.int64(), "x": pa.int64(), "price": pa.float64(), "region": pa.string(), "day": pa.date32()}


def make_dataset(*unit: str, **declared: Any) -> Dataset:
    return Dataset(
        "t",
        {column.name: column for column in COLUMNS},
        Neighbours.ADD_REMOVE,
        Protection.declare("differential"),
        unit=unit,
        unit_word="person",
        **declared,
    )


def make_rows(counts: Mapping[int, int], seed: int) -> list[Row]:
    """So many rows of each person, with ties and NULLs, and some of nobody."""
    draw = random.Random(seed)
    days = [datetime.date(1969, 12, 25) + datetime.timedelta(days=i) for i in range(14)]
    rows = [
        {
            "who": who,
            "x": draw.choice([None, 2**63 - 1, -(2**62), draw.randrange(-9, 9), draw.randrange(10**6)]),
            "price": draw.choice([None, -0.005, draw.gauss(0, 9)]),
            "region": draw.choice([*GROUPS, None, "west"]),
            "day": draw.choice([None, *days]),
        }
        for who, count in counts.items()
        for _ in range(count)
    ]
    draw.shuffle(rows)
    return rows


def make_table(rows: Sequence[Row]) -> pa.Table:
    nobody = {name: 5 if name in ("who", "x") else None for name in TYPES}
    held = [*rows, nobody, nobody]
    columns = {name: pa.array([row[name] for row in held], kind) for name, kind in TYPES.items()}
    for name, (kind, make) in UNITS.items():
        columns[name] = pa.array([*(make(row["who"]) for row in rows), None, None], kind)
    return pa.table(columns)


def read_records(backend: Any, dataset: Dataset, sql: str) -> list[dict[str, int | None]]:
    """The reduced table of a question, by column."""
    assert isinstance(backend, SqlBackend)
    plan = make_plan(read(sql, {"t": dataset}), dataset, 500)
    return [dict(zip(plan.dataset.columns, points, strict=True)) for points in read_points(backend, plan)]


# ------------------------------------------------------------------------------------------------ evenly spaced values


def spread(values: Iterable[int | None]) -> list[int | None]:
    """The value at rank ⌈(2i − 1)·k/2M⌉ of k, for i = 1, …, M."""
    known = sorted(value for value in values if value is not None)
    if not known:
        return [None] * SPREAD_VALUES
    ranks = [-(-(2 * i - 1) * len(known) // (2 * SPREAD_VALUES)) for i in range(1, SPREAD_VALUES + 1)]
    return [known[rank - 1] for rank in ranks]


def test_values_are_evenly_spaced(engine: Engine) -> None:
    """Where a person has M rows or fewer each counts; of others each M-th."""
    rows = make_rows(dict(enumerate([1, 2, 3, 19, 20, 21, 39, 40, 41, 1000])), seed=5)
    rows += [{"who": 10, "x": None, "price": None, "region": "north", "day": None}] * 30
    data = replace(make_dataset("code"), groups=3)
    plain = {name: [_find_points(row, name) for row in rows] for name in ("x", "price", "day")}
    with engine.open(make_table(rows), data) as backend:
        for where, holds in (("", lambda row: True), (" WHERE region = 'north'", lambda row: row["region"] == "north")):
            people: dict[int, list[int]] = defaultdict(list)
            for place, row in enumerate(rows):
                if holds(row):
                    people[row["who"]].append(place)
            found = read_records(backend, data, f"SELECT MEDIAN(x), MEDIAN(price), MEDIAN(day) FROM t{where}")
            expected = [
                record
                for places in people.values()
                for record in zip(*(spread(plain[name][place] for place in places) for name in plain), strict=True)
            ]
            assert Counter(tuple(record[name] for name in plain) for record in found) == Counter(expected)
        found = read_records(backend, data, "SELECT region, QUANTILE(x, 0.3) FROM t GROUP BY region")
        grouped: dict[tuple[int, str], list[int | None]] = defaultdict(list)
        for row, point in zip(rows, plain["x"], strict=True):
            if row["region"] in GROUPS:
                grouped[row["who"], row["region"]].append(point)
        expected = [(GROUPS.index(region), x) for (_, region), values in grouped.items() for x in spread(values)]
        assert Counter((record["region"], record["x"]) for record in found) == Counter(expected)


def _find_points(row: Row, name: str) -> int | None:
    column = next(column for column in COLUMNS if column.name == name)
    return point(column, row[name])


# -------------------------------------------------------------------------------------------------------------- limits


COUNTS = {who: (who * who) % 7 for who in range(60)}
SELECTED = "price IS NOT NULL"


def keep_rows(backend: Any, unit: Sequence[str], most: int) -> dict[int, Counter[Any]]:
    found = read_records(
        backend, make_dataset(*unit, rows=most), f"SELECT MEDIAN(who), MEDIAN(x), MEDIAN(price) FROM t WHERE {SELECTED}"
    )
    kept: dict[int, Counter[Any]] = defaultdict(Counter)
    for record in found:
        assert record["who"] is not None
        kept[record["who"]][record["x"], record["price"]] += 1
    return kept


def keep_groups(backend: Any, unit: Sequence[str], most: int) -> dict[int, dict[Any, int | None]]:
    """In which groups each person is, with how many rows."""
    by = ", ".join(unit)
    sql = f"SELECT COUNT(*) FROM (SELECT region, MAX(who) AS w FROM t WHERE {SELECTED} GROUP BY {by}, region)"
    kept: dict[int, dict[Any, int | None]] = defaultdict(dict)
    for record in read_records(backend, make_dataset(*unit, groups=most), sql):
        assert record["MAX(who)"] is not None
        assert record["region"] not in kept[record["MAX(who)"]]
        kept[record["MAX(who)"]][record["region"]] = record["COUNT(*)"]
    return kept


def test_limits_follow_from_a_persons_own_rows(engine: Engine) -> None:
    """As many are kept as there are, up to the limit: the same in another order, and without others."""
    rows = make_rows(COUNTS, seed=8)
    selected = [row for row in rows if row["price"] is not None]
    listed: dict[int, Counter[Any]] = defaultdict(Counter)
    groups: dict[int, Counter[int]] = defaultdict(Counter)
    for row in selected:
        listed[row["who"]][_find_points(row, "x"), _find_points(row, "price")] += 1
        if row["region"] in GROUPS:
            groups[row["who"]][GROUPS.index(row["region"])] += 1
    others = [row for row in reversed(rows) if row["who"] % 3]
    whole_table, part = engine.keep(make_table(rows)), engine.keep(make_table(others))
    units = [(name,) for name in UNITS if name not in ("first", "second")] + [("second", "first")]
    for place, unit in enumerate(units[:: 6 if str(engine) == "spark" else 1]):
        most = 1 + place % 3
        with open_source(whole_table, make_dataset(*unit)) as backend, open_source(part, make_dataset(*unit)) as fewer:
            kept = keep_rows(backend, unit, most)
            assert {who: chosen.total() for who, chosen in kept.items()} == {
                who: min(most, chosen.total()) for who, chosen in listed.items()
            }
            assert all(chosen <= listed[who] for who, chosen in kept.items())
            assert keep_rows(fewer, unit, most) == {who: chosen for who, chosen in kept.items() if who % 3}
            kept_groups = keep_groups(backend, unit, most)
            assert {who: len(chosen) for who, chosen in kept_groups.items()} == {
                who: min(most, len(chosen)) for who, chosen in groups.items()
            }
            assert all(groups[who][g] == n for who, chosen in kept_groups.items() for g, n in chosen.items())
            assert keep_groups(fewer, unit, most) == {who: chosen for who, chosen in kept_groups.items() if who % 3}


def test_a_limit_before_where_is_caught(duckdb_engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that WHERE leaves out would take the place of others."""
    written = reduction_sql._Writer._keep_rows

    def keep_first(self: Any, text: str, points: Sequence[str]) -> str:
        every, where, condition = text.removeprefix("SELECT * FROM (").rpartition(") AS points WHERE ")
        assert where
        return f"SELECT * FROM ({written(self, every, points)}) AS late WHERE {condition}"

    monkeypatch.setattr(reduction_sql._Writer, "_keep_rows", keep_first)
    rows = make_rows(COUNTS, seed=8)
    listed = Counter(row["who"] for row in rows if row["price"] is not None)
    with duckdb_engine.open(make_table(rows), make_dataset("code")) as backend:
        kept = keep_rows(backend, ["code"], 2)
    assert any(chosen.total() < min(2, listed[who]) for who, chosen in kept.items())


def test_limits_are_evenly_spread(engine: Engine) -> None:
    """Of 3000 people with a row in each of three groups a third count in each, and a third of all rows are kept."""
    rows = [
        {"who": who, "x": place, "price": 1.0, "region": region, "day": None}
        for place, region in enumerate(GROUPS)
        for who in range(3000)
    ]
    with engine.open(make_table(rows), make_dataset("code")) as backend:
        groups = Counter(region for chosen in keep_groups(backend, ["code"], 1).values() for region in chosen)
        kept = Counter(x for chosen in keep_rows(backend, ["code"], 1).values() for x, _ in chosen)
    for counted in (groups, kept):
        assert len(counted) == 3
        assert all(abs(count - 1000) < 120 for count in counted.values()), counted

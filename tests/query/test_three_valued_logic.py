"""WHERE means what SQL means: thousands of random conditions, NULLs included, against two engines."""

import itertools
import random
import sqlite3
from datetime import date, datetime

import pytest

from idios.core.domain import Domain, Kind
from idios.query.predicates import holds, simplify
from idios.query.reader import read
from idios.query.schema import Column
from idios.query.work import Work
from tests.query.declared import SMALL, dataset
from tests.query.wording import said

ROWS = list(itertools.product([None, 0, 1, 2, 3], [-2, 0, 1], [None, 0, 1, 2], [None, 0, 1]))
RECORDS = [dict(zip("abcd", row, strict=True)) for row in ROWS]
CATEGORIES = SMALL.columns["c"].domain.values
TABLE = [(i, a, b / 4, None if c is None else CATEGORIES[c], d) for i, (a, b, c, d) in enumerate(ROWS)]


def selected(sql):
    question = read(f"SELECT COUNT(*) FROM small WHERE {sql}", {"small": SMALL})
    executed = simplify(question.filter, SMALL.columns, Work())
    ids = [i for i, record in enumerate(RECORDS) if holds(question.filter, record)]
    assert ids == [i for i, record in enumerate(RECORDS) if holds(executed, record)]
    return ids


@pytest.mark.slow
def test_sqlite_selects_the_same_records():
    engine = sqlite3.connect(":memory:")
    engine.execute("CREATE TABLE small (i INTEGER, a INTEGER, b REAL, c TEXT, d INTEGER)")
    engine.executemany("INSERT INTO small VALUES (?, ?, ?, ?, ?)", TABLE)
    rng = random.Random(1)
    for _ in range(2000):
        sql = str(said(rng))
        rows = engine.execute(f"SELECT i FROM small WHERE {sql} ORDER BY i").fetchall()
        assert selected(sql) == [i for (i,) in rows], sql
    engine.close()


@pytest.mark.slow
def test_duckdb_selects_the_same_records():
    duckdb = pytest.importorskip("duckdb")
    engine = duckdb.connect()
    engine.execute("CREATE TABLE small (i INTEGER, a INTEGER, b DOUBLE, c TEXT, d INTEGER)")
    engine.executemany("INSERT INTO small VALUES (?, ?, ?, ?, ?)", TABLE)
    rng = random.Random(2)
    for _ in range(1000):
        sql = str(said(rng))
        rows = engine.execute(f"SELECT i FROM small WHERE {sql} ORDER BY i").fetchall()
        assert selected(sql) == [i for (i,) in rows], sql


@pytest.mark.parametrize(
    "sql",
    [
        "NOT a = 1 AND d = 0",
        "NOT (a = 1 OR d = 0) OR c = 'u'",
        "a = 1 OR d = 0 AND c = 'u' OR NOT b > 0 AND a IS NULL",
        "NOT a IN (1, 2) AND NOT d BETWEEN 0 AND 1",
        "a NOT IN (1, 2) OR d NOT BETWEEN 0 AND 1",
        "NOT a IS NULL AND NOT NOT c <> 'v'",
        "a = TRUE OR d IN (FALSE)",
    ],
)
def test_precedence_without_parentheses_is_sql_s(sql):
    engine = sqlite3.connect(":memory:")
    engine.execute("CREATE TABLE small (i INTEGER, a INTEGER, b REAL, c TEXT, d INTEGER)")
    engine.executemany("INSERT INTO small VALUES (?, ?, ?, ?, ?)", TABLE)
    rows = engine.execute(f"SELECT i FROM small WHERE {sql} ORDER BY i").fetchall()
    assert selected(sql) == [i for (i,) in rows]
    engine.close()


DAYS = [None, *(date(1969, 12, 31).toordinal() + i for i in range(4))]
MOMENTS = [None, datetime(1969, 12, 31, 23, 59, 59, 999_999), datetime(1970, 1, 1), datetime(1970, 1, 1, 12, 0, 0, 1)]
DATED = dataset("dated", Column("day", Kind.DATE, Domain()), Column("seen", Kind.TIMESTAMP, Domain()))


@pytest.mark.parametrize(
    "sql",
    [
        "day < DATE '1970-01-02'",
        "day >= '1970-01-01'",
        "day > TIMESTAMP '1970-01-01 12:00:00'",
        "day = TIMESTAMP '1970-01-01 12:00:00'",
        "day BETWEEN DATE '1969-12-31' AND DATE '1970-01-01'",
        "NOT day IN ('1970-01-01', '1970-01-02')",
        "seen < DATE '1970-01-01'",
        "seen <= '1970-01-01'",
        "seen > '1970-01-01 12:00:00'",
        "seen > '1970-01-01T12:00'",
        "seen <> TIMESTAMP '1970-01-01 12:00:00.000001'",
        "TIMESTAMP '1969-12-31 23:59:59.999999' = seen",
        "seen >= '1969-12-31 23:59:59.9999' AND day IS NOT NULL",
    ],
)
def test_dates_and_timestamps_compare_as_in_duckdb(sql):
    duckdb = pytest.importorskip("duckdb")
    rows = [(i, *pair) for i, pair in enumerate(itertools.product(DAYS, MOMENTS))]
    engine = duckdb.connect()
    engine.execute("CREATE TABLE dated (i INTEGER, day DATE, seen TIMESTAMP)")
    engine.executemany(
        "INSERT INTO dated VALUES (?, ?, ?)",
        [(i, None if day is None else date.fromordinal(day), at) for i, day, at in rows],
    )
    epoch = datetime(1970, 1, 1)
    grid = [
        {
            "day": None if day is None else day - epoch.toordinal(),
            "seen": None if at is None else round((at - epoch).total_seconds() * 10**6),
        }
        for _, day, at in rows
    ]
    found = read(f"SELECT COUNT(*) FROM dated WHERE {sql}", {"dated": DATED}).filter
    expected = engine.execute(f"SELECT i FROM dated WHERE {sql} ORDER BY i").fetchall()
    assert [i for i, record in enumerate(grid) if holds(found, record)] == [i for (i,) in expected]

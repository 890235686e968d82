"""WHERE means what SQL means: thousands of random conditions, NULLs included, against two engines."""

import itertools
import random
import sqlite3
from datetime import date, datetime, timedelta

import duckdb
import pytest

from idios.core.domain import Categories, Domain, Kind
from idios.declare.schema import Column
from idios.expressions.predicates import holds, simplify
from idios.expressions.work import Work
from idios.sql.reader import read
from tests.expressions.random_conditions import write_condition
from tests.sql.declared import SMALL, dataset
from tests.sql.wording import said

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


LABELS = ("u", "uv", "W", "w%", "u_w", "ü", "")
LOGIC = dataset(
    "logic",
    Column("a", Kind.INTEGER, Domain(lower=0, upper=3)),
    Column("b", Kind.NUMBER, Domain.declare(step="0.25", bounds=(-2, 2))),
    Column("c", Kind.CATEGORY, Categories(LABELS)),
    Column("d", Kind.DATE, Domain()),
    Column("e", Kind.INTEGER, Domain(lower=0, upper=1)),
    Column("f", Kind.CATEGORY, Categories(("true", "false"))),
)


def make_logic_table():
    """A row for every pair of values of two columns, so that every leaf meets every value beside NULLs."""
    values = {
        "a": [None, 0, 1, 2, 3],
        "b": [None, -4, -2, 0, 1, 2],
        "c": [None, *range(len(LABELS))],
        "d": [None, -2, -1, 0, 1, 2],
        "e": [None, 0, 1],
        "f": [None, 0, 1],
    }
    rng = random.Random(7)
    return [
        {name: one if name == first else rng.choice(listed) for name, listed in values.items()}
        for first, points in values.items()
        for one in points
        for _ in range(4)
    ]


@pytest.mark.slow
def test_every_condition_is_true_false_or_unknown_where_duckdb_says_so():
    records = make_logic_table()
    engine = duckdb.connect()
    engine.execute("CREATE TABLE logic (i INTEGER, a INTEGER, b DOUBLE, c TEXT, d DATE, e BOOLEAN, f BOOLEAN)")
    shown = {
        "b": lambda point: point / 4,
        "c": LABELS.__getitem__,
        "d": lambda point: date(1970, 1, 1) + timedelta(days=point),
        "e": bool,
        "f": [True, False].__getitem__,
    }
    for i, record in enumerate(records):
        row = [None if p is None else shown.get(name, int)(p) for name, p in record.items()]
        engine.execute("INSERT INTO logic VALUES (?, ?, ?, ?, ?, ?, ?)", [i, *row])
    rng = random.Random(16)
    seen = set()
    for _ in range(30):
        written = [write_condition(rng) for _ in range(100)]
        rows = engine.execute(f"SELECT {', '.join(f'({one})' for one in written)} FROM logic ORDER BY i").fetchall()
        for sql, column in zip(written, zip(*rows, strict=True), strict=True):
            true, false = (
                read(f"SELECT COUNT(*) FROM logic WHERE {said}", {"logic": LOGIC}).filter
                for said in (sql, f"NOT ({sql})")
            )
            found = [True if holds(true, r) else False if holds(false, r) else None for r in records]
            assert found == list(column), sql
            seen |= set(column)
    assert seen == {True, False, None}
    engine.close()

"""Who is one person: two spellings of a unit are one person in everything that is asked, or two people in all of it.

People are told apart where rows are counted, grouped, joined, limited and checked, in several tables, and each of these
is another statement. So each is compared with the same list of who is who, over the types and collations that a unit
can have on each engine.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import idios.data.engines.duckdb
from idios.core.calibration import Protection
from idios.core.neighbours import Neighbours
from idios.core.statistics import Count, Median, Mode
from idios.data.backend import DataSource, open_source
from idios.data.engines.sql_backend import SqlBackend
from idios.declare.schema import Dataset, Link
from idios.errors import SourceError
from idios.expressions.predicates import Among
from idios.plan.planner import make_plan
from idios.sql.reader import read
from tests.conformance.engines import SPARK, DuckdbEngine, Engine, PostgresqlEngine, SparkEngine
from tests.conformance.plans import by, category, dataset, plan, whole
from tests.conformance.test_people import read_points
from tests.conformance.test_statistics import same

Spellings = Sequence[tuple[str, int | None]]
"""Values as SQL literals, each with the number of the person; None where a value names nobody."""

TEXTS: Spellings = [
    ("'p'", 0), ("'P'", 1), ("'p '", 2), ("' p'", 3), ("'\N{LATIN SMALL LETTER E WITH ACUTE}'", 4),
    ("'e\N{COMBINING ACUTE ACCENT}'", 5), ("'e'", 6), ("''", 7), ("'ß'", 8), ("'ss'", 9), ("'p'", 0),
    ("'\N{FULLWIDTH LATIN SMALL LETTER P}'", 10), ("'1'", 11), ("'01'", 12), ("NULL", None),
]  # fmt: skip
PADDED: Spellings = [("'p'", 0), ("'p  '", 0), ("'P '", 1), ("' p '", 2), ("' p'", 2), ("''", 3), ("'   '", 3)]
WORDS: Spellings = [("'p'", 0), ("'P'", 1), ("'p '", 2), ("'p'", 0), ("NULL", None)]
FLOATS: Spellings = [
    ("'0'", 0), ("'-0'", 0), ("'1.5'", 1), ("'1.500'", 1), ("'-1.5'", 2), ("'NaN'", None), ("'Infinity'", None),
    ("'-Infinity'", None), ("NULL", None),
]  # fmt: skip
NARROW: Spellings = [*FLOATS, ("'0.1'", 3), ("'0.10000000149011612'", 3)]
WIDE: Spellings = [*FLOATS, ("'0.1'", 3), ("'0.10000000149011612'", 4), ("'0.30000000000000004'", 5), ("'0.3'", 6)]
DECIMALS: Spellings = [("1.0", 0), ("1.00", 0), ("1", 0), ("0.00", 1), ("-0.0", 1), ("1.01", 2), ("NULL", None)]
WHOLE: Spellings = [("1", 0), ("01", 0), ("-1", 1), ("0", 2), ("9223372036854775807", 3), ("NULL", None)]
DATES: Spellings = [("'2024-02-01'", 0), ("'2024-02-02'", 1), ("'1582-10-10'", 2), ("'2024-02-01'", 0), ("NULL", None)]
MOMENTS: Spellings = [
    ("'2024-02-01 00:00:00'", 0), ("'2024-02-01 00:00:00.000000'", 0), ("'2024-02-01 00:00:00.000001'", 1),
    ("'1969-12-31 23:59:59.999999'", 2), ("NULL", None),
]  # fmt: skip
ZONED: Spellings = [
    ("'2024-02-01 00:00:00+00:00'", 0), ("'2024-02-01 02:00:00+02:00'", 0), ("'2024-01-31 19:00:00-05:00'", 0),
    ("'2024-02-01 00:00:00-05:00'", 1), ("NULL", None),
]  # fmt: skip
ENDLESS: Spellings = [("'infinity'", None), ("'-infinity'", None)]
TRUTH: Spellings = [("TRUE", 0), ("FALSE", 1), ("TRUE", 0), ("NULL", None)]
UUIDS: Spellings = [
    ("'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", 0), ("'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'", 0),
    ("'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12'", 1), ("NULL", None),
]  # fmt: skip
DUCKDB: Mapping[str, tuple[str, Spellings]] = {
    "text": ("VARCHAR", TEXTS),
    **{name: (f"VARCHAR COLLATE {name}", TEXTS) for name in ("NOCASE", "NOACCENT", "NFC", "NOCASE.NOACCENT", "de")},
    "enum": ("ENUM ('p', 'P', 'p ')", WORDS),
    "double": ("DOUBLE", WIDE),
    "single": ("REAL", NARROW),
    "decimal": ("DECIMAL(9, 2)", DECIMALS),
    "bigint": ("BIGINT", WHOLE),
    "ubigint": ("UBIGINT", [each for each in WHOLE if each[0] != "-1"] + [("18446744073709551615", 9)]),
    "hugeint": ("HUGEINT", WHOLE),
    "date": ("DATE", [*DATES, *ENDLESS]),
    "timestamp": ("TIMESTAMP", [*MOMENTS, *ENDLESS]),
    "timestamptz": ("TIMESTAMPTZ", [*ZONED, *ENDLESS]),
    "nanoseconds": ("TIMESTAMP_NS", [*MOMENTS, *ENDLESS]),
    "boolean": ("BOOLEAN", TRUTH),
    "uuid": ("UUID", UUIDS),
    "blob": ("BLOB", WORDS),
}
POSTGRESQL: Mapping[str, tuple[str, Spellings]] = {
    "text": ("text", TEXTS),
    "loose": ("text COLLATE loose", TEXTS),
    "unaccented": ("varchar(9) COLLATE unaccented", TEXTS),
    "char": ("char(3)", PADDED),
    "loose char": ("char(3) COLLATE loose", PADDED),
    "name": ("name", TEXTS),
    "enum": ("unit_word", WORDS),
    "domain": ("loose_text", TEXTS),
    "citext": ("citext", TEXTS),
    "float8": ("float8", WIDE),
    "float4": ("float4", NARROW),
    "numeric": ("numeric", [*DECIMALS, ("1e0", 0), ("10e-1", 0), ("'NaN'", None)]),
    "numeric(9, 2)": ("numeric(9, 2)", DECIMALS),
    "bigint": ("bigint", WHOLE),
    "date": ("date", [*DATES, *ENDLESS]),
    "timestamp": ("timestamp", [*MOMENTS, *ENDLESS]),
    "timestamptz": ("timestamptz", [*ZONED, *ENDLESS]),
    "boolean": ("boolean", TRUTH),
    "uuid": ("uuid", UUIDS),
    "bytea": ("bytea", WORDS),
}
SPARK_TYPES: Mapping[str, tuple[str, Spellings]] = {
    "lcase": ("STRING COLLATE UTF8_LCASE", TEXTS),
    "unicode": ("STRING COLLATE UNICODE_CI_AI", TEXTS),
    "german": ("STRING COLLATE de_CI", TEXTS),
    "double": ("DOUBLE", WIDE),
    "float": ("FLOAT", NARROW),
    "decimal": ("DECIMAL(9, 2)", DECIMALS),
    "bigint": ("BIGINT", WHOLE),
    "date": ("DATE", DATES),
    "timestamp": ("TIMESTAMP", [*ZONED, ("'2024-02-01 00:00:00'", 0), ("'2024-02-01 00:00:00.000001'", 2)]),
    "ntz": ("TIMESTAMP_NTZ", MOMENTS),
    "binary": ("BINARY", WORDS),
}
CASES = [
    *(pytest.param("duckdb", name, id=f"duckdb-{name}") for name in DUCKDB),
    *(pytest.param("postgresql", name, id=f"postgresql-{name}") for name in POSTGRESQL),
    *(pytest.param("spark", name, id=f"spark-{name}", marks=SPARK.marks) for name in SPARK_TYPES),
]
NUMBERS = count()


def make_dataset() -> Dataset:
    """People of a register, with facts of theirs, and public facts about each."""
    kinds = Dataset("kinds", {"size": whole("size")}, public=True)
    facts = Dataset(
        "facts",
        {"x": whole("x"), "g": category("g", "a", "b")},
        unit=("person",),
        unit_word="person",
        links=(Link(("person",), "register", ("person",)), Link(("person",), "kinds", ("id",))),
    )
    return Dataset(
        "register",
        {"age": whole("age")},
        Neighbours.ADD_REMOVE,
        Protection.declare("differential"),
        unit=("person",),
        unit_word="person",
        tables={"facts": facts, "kinds": kinds},
        covers_everyone=False,
    )


@dataclass(frozen=True)
class World:
    """Rows of three tables, each with its spelling and with who that is. A sum of facts tells which were added up."""

    facts: list[tuple[str, int | None, int, str]]
    register: list[tuple[str, int | None, int]]
    kinds: list[tuple[str, int | None, int]]

    @classmethod
    def of(cls, spellings: Spellings) -> World:
        """Everything in the facts, in two groups; every other spelling in the register; each person once in public."""
        who = [person for _, person in spellings]
        each = [(spelling, "aba"[j]) for i, spelling in enumerate(spellings) for j in range(2 + i % 2)]
        return cls(
            [(s, w, 2**place, g) for place, ((s, w), g) in enumerate(each)],
            [(s, w, i) for i, (s, w) in enumerate(spellings) if i % 2 == 0],
            [(s, w, 100 + i) for i, (s, w) in enumerate(spellings) if w not in who[:i]],
        )


def keep(engine: Engine, world: World, held: str, others: str | None = None) -> dict[str, object]:
    """Store the three tables with units and keys of a type, or the facts with one and the others with another."""
    number = next(NUMBERS)
    kept: dict[str, object] = {}
    for name, columns, rows in _list_tables(world):
        table, of_type = f"units_{number}_{name}", held if name == "facts" else others or held
        if isinstance(engine, DuckdbEngine):
            path = engine.directory / f"units {number}.duckdb"
            with duckdb.connect(str(path)) as connection:
                connection.execute(f"CREATE TABLE {name} ({columns.format(of_type)})")
                connection.execute(f"INSERT INTO {name} VALUES {rows}")
            kept[name] = f"{path}::{name}"
        elif isinstance(engine, PostgresqlEngine):
            engine.connection.execute(f"CREATE TABLE {table} ({columns.format(of_type)})")
            engine.connection.execute(f"INSERT INTO {table} VALUES {rows}")
            kept[name] = f"{engine.url}?table={table}"
        else:
            assert isinstance(engine, SparkEngine)
            if "COLLATE" in of_type and engine.session.version < "4":
                pytest.skip("this version of Spark has no collations")
            names = [column.split()[0] for column in columns.split(", ")]
            first = f"CAST({names[0]} AS {of_type}) AS {names[0]}"
            engine.session.sql(
                f"CREATE TEMP VIEW {table} AS SELECT {', '.join([first, *names[1:]])} FROM VALUES {rows} "
                f"AS t({', '.join(names)})"
            )
            kept[name] = engine.session, table
    return kept


def _list_tables(world: World) -> list[tuple[str, str, str]]:
    """Names, columns and rows, as SQL."""
    facts = ", ".join(f"({s}, {x}, '{g}')" for s, _, x, g in world.facts)
    register = ", ".join(f"({s}, {age})" for s, _, age in world.register)
    kinds = ", ".join(f"({s}, {size})" for s, _, size in world.kinds)
    return [
        ("facts", "person {0}, x BIGINT, g VARCHAR(9)", facts),
        ("register", "person {0}, age BIGINT", register),
        ("kinds", "id {0}, size BIGINT", kinds),
    ]


def prepare(engine: Engine) -> None:
    """Make what PostgreSQL has no name for before it is asked, once."""
    if not isinstance(engine, PostgresqlEngine):
        return
    import psycopg

    connection = engine.connection
    made = "SELECT 1 FROM pg_collation WHERE collname = 'loose' AND pg_collation_is_visible(oid)"
    if connection.execute(made).fetchone():
        return
    for name, locale in (("loose", "und-u-ks-level2"), ("unaccented", "und-u-ks-level1-ka-shifted-kv-space")):
        try:
            connection.execute(f"CREATE COLLATION {name} (provider = icu, locale = '{locale}', deterministic = false)")
        except psycopg.Error:  # a server without ICU has no such collations
            connection.execute(f'CREATE COLLATION {name} FROM "C"')
    connection.execute("CREATE TYPE unit_word AS ENUM ('p', 'P', 'p ')")
    connection.execute("CREATE DOMAIN loose_text AS text COLLATE loose")
    try:
        connection.execute("CREATE EXTENSION citext")
    except psycopg.Error:  # nor one without its contributed modules such a type
        connection.execute("CREATE DOMAIN citext AS text COLLATE loose")


def group(rows: Sequence[tuple[Any, ...]]) -> dict[int, list[tuple[Any, ...]]]:
    """The rows of each person; those of nobody are left out."""
    people: dict[int, list[tuple[Any, ...]]] = {}
    for _, who, *rest in rows:
        if who is not None:
            people.setdefault(who, []).append(tuple(rest))
    return people


def read_records(backend: SqlBackend, data: Dataset, sql: str) -> Counter[tuple[int | None, ...]]:
    """The records of a question, as points."""
    return Counter(read_points(backend, make_plan(read(sql, {"register": data}), data, 500)))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "case"), CASES)
def test_two_spellings_are_one_person_everywhere_or_two(name: str, case: str, request: pytest.FixtureRequest) -> None:
    engine: Engine = request.getfixturevalue(f"{name}_engine")
    held, spellings = {"duckdb": DUCKDB, "postgresql": POSTGRESQL, "spark": SPARK_TYPES}[name][case]
    prepare(engine)
    world, data = World.of(spellings), make_dataset()
    kept = {table: DataSource(place) for table, place in keep(engine, world, held).items()}
    with open_source(kept.pop("register").place, data, linked=kept) as backend:
        assert isinstance(backend, SqlBackend)
        check_counts(backend, world)
        check_records(backend, data, world)


def check_counts(backend: SqlBackend, world: World) -> None:
    """How many people there are, in each table and in all, and where their keys lead."""
    facts, register = group(world.facts), group(world.register)
    assert backend.count_units() == len({*facts, *register})
    report = backend.check()
    assert report.everyone == len({*facts, *register})
    for found, rows, people in (
        (report.people, world.register, register),
        (report.tables["facts"].people, world.facts, facts),
    ):
        assert found is not None
        assert (found.people, found.rows_of_nobody) == (len(people), sum(who is None for _, who, *_ in rows))
        assert found.rows_each[::4] == (min(map(len, people.values())), max(map(len, people.values())))
    missing = sum(who is None for _, who, *_ in world.facts)
    strangers = sum(len(rows) for who, rows in facts.items() if who not in register)
    assert [(link.missing, link.dangling, link.repeated) for link in report.links] == [
        (missing, strangers, 0),
        (missing, 0, 0),
    ]


def check_records(backend: SqlBackend, data: Dataset, world: World) -> None:
    """One record of each person, whatever is joined; and as many of their rows and groups as are counted."""
    facts, register, kinds = group(world.facts), group(world.register), group(world.kinds)
    sizes = {who: size for who, [(size,)] in kinds.items()}
    both = "facts AS f JOIN register AS r ON f.person = r.person LEFT JOIN kinds AS k ON f.person = k.id"
    found = read_records(
        backend,
        data,
        f"SELECT MEDIAN(n), MEDIAN(s), MEDIAN(a), MEDIAN(k) FROM (SELECT COUNT(*) AS n, SUM(x) AS s, SUM(age) AS a, "
        f"SUM(size) AS k FROM {both} GROUP BY f.person)",
    )
    expected = Counter(
        (
            len(own) * len(register[who]),
            sum(x for x, _ in own) * len(register[who]),
            sum(age for (age,) in register[who]) * len(own),
            sizes[who] * len(own) * len(register[who]),
        )
        for who, own in facts.items()
        if who in register
    )
    assert found == expected
    left = "SELECT MEDIAN(n) FROM (SELECT COUNT(x) AS n FROM register LEFT JOIN facts ON {} GROUP BY register.person)"
    found = read_records(backend, data, left.format("facts.person = register.person"))
    assert Counter(n for _, n in found.elements()) == Counter(
        len(facts.get(who, [])) * len(entries) for who, entries in register.items()
    )
    kept = read_records(backend, replace(data, rows=1), "SELECT MEDIAN(x) FROM facts")
    owners = {x: who for who, own in facts.items() for x, _ in own}
    assert sorted(owners[x] for (x,) in kept.elements() if x is not None) == sorted(facts)
    grouped = "SELECT g, MEDIAN(s) FROM (SELECT g, SUM(x) AS s FROM facts GROUP BY person, g) GROUP BY g"
    kept = read_records(backend, replace(data, groups=1), grouped)
    possible = {(who, sum(x for x, g in own if g == chosen)) for who, own in facts.items() for chosen in "ab"}
    sums = {total: who for who, total in possible}
    assert sorted(sums[total] for _, _, total in kept.elements() if total is not None) == sorted(facts)


# -------------------------------------------------------------------------------------------------------------- keys


def open_tables(engine: Engine, **tables: pa.Table) -> Any:
    """The people of a register, from Arrow tables."""
    kept = {name: DataSource(engine.keep(table)) for name, table in tables.items()}
    return open_source(kept.pop("register").place, make_dataset(), linked=kept)


def make_tables(person: pa.Array, others: pa.Array | None = None) -> dict[str, pa.Table]:
    """Each value in a fact, and in the other tables as it stands there."""
    there, size = person if others is None else others, len(person)
    return {
        "facts": pa.table({"person": person, "x": [2**i for i in range(size)], "g": ["a"] * size}),
        "register": pa.table({"person": there, "age": list(range(len(there)))}),
        "kinds": pa.table({"id": there, "size": list(range(len(there)))}),
    }


def test_text_and_whole_numbers_meet_as_text(engine: Engine) -> None:
    """Of a number and text that means it, one spelling alone is the number's own."""
    spelt = pa.array(["7", "07", "+7", " 7", "7.0", "-7", "0", "-0", None])
    tables = make_tables(spelt, pa.array([7, -7, 0, None], pa.int64()))
    with open_tables(engine, **tables) as backend:
        assert backend.count_units() == 8
        sql = "SELECT MEDIAN(s) FROM (SELECT SUM(x) AS s FROM facts JOIN register ON {} GROUP BY facts.person)"
        records = read_records(backend, make_dataset(), sql.format("facts.person = register.person"))
        assert sorted(total for _, total in records) == [1, 2**5, 2**6]
        assert [link.dangling for link in backend.check().links] == [5, 5]


FRAMES: Mapping[str, tuple[pa.Array, int]] = {
    "strings": (pa.array(["p", "P", "p ", None, "p"], pa.string_view()), 3),
    "dictionary": (pa.array(["p", "P", "p ", None, "p"]).dictionary_encode(), 3),
    "unsigned": (pa.array([0, 2**64 - 1, None, 1, 0], pa.uint64()), 3),
    "floats": (pa.array([0.0, -0.0, math.nan, None, math.inf, 1.0]), 2),
    "single": (pa.array([0.0, -0.0, math.nan, None, 0.1], pa.float32()), 2),
    "days": (pa.array([0, 0, 86_400_000, None]).cast(pa.int64()).cast(pa.date64()), 2),
    "seconds": (pa.array([2**62, 2**62 + 1, -(2**62), 0, None]).cast(pa.timestamp("s")), 3),
    "nanoseconds": (pa.array([2**63 - 2, 1, 1001, 0, None]).cast(pa.timestamp("ns", "UTC")), 3),
    "microseconds": (pa.array([2**62, 1, 0, None]).cast(pa.timestamp("us")), 3),
    "decimals": (pa.array([Decimal("1.0"), Decimal("1.00"), Decimal("-0.0"), None], pa.decimal128(9, 3)), 2),
    "bytes": (pa.array([b"p", b"p\x00", b"P", None, b"p"]), 3),
    "truth": (pa.array([True, False, None, True]), 2),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_units_of_frames(kind: str) -> None:
    """What lies too far away for microseconds is one moment, and no value makes a question fail."""
    person, people = FRAMES[kind]
    tables = make_tables(person)
    linked = {name: DataSource(tables[name]) for name in ("facts",)}
    data = make_dataset()
    facts = replace(data.tables["facts"], links=data.tables["facts"].links[:1])
    for limits in ({}, {"rows": 1}, {"groups": 1}):
        declared = replace(data, tables={"facts": facts}, **limits)
        with open_source(tables["register"], declared, linked=linked) as backend:
            assert isinstance(backend, SqlBackend)
            assert backend.count_units() == people
            counted = "SELECT COUNT(*) FROM (SELECT {} FROM facts GROUP BY person{})"
            of = ("g", ", g") if "groups" in limits else ("SUM(x) AS s", "")
            sql = "SELECT COUNT(*) FROM facts" if "rows" in limits else counted.format(*of)
            assert read_records(backend, declared, sql).total() == people


def open_unique(engine: Engine, person: pa.Array) -> Any:
    """A table in which each person has one row by its declaration."""
    declared = dataset(whole("x", (0, 9), nullable=False))
    source = engine.keep(pa.table({"person": person, "x": pa.array([i % 10 for i in range(len(person))], pa.int64())}))
    return source, replace(declared, name="register", unit=("person",), unit_word="person", unique=True)


def test_one_row_each_is_checked_when_a_table_is_opened(engine: Engine) -> None:
    source, declared = open_unique(engine, pa.array(["p", "P", "p ", None, None]))
    with open_source(source, declared) as backend:
        assert isinstance(backend, SqlBackend)
        assert backend.count_units() == 3
        sql = "SELECT MEDIAN(x), COUNT(*) FROM register"
        assert sorted(x for (x,) in read_records(backend, declared, sql).elements()) == [0, 1, 2]
        assert backend.check().sound
    source, declared = open_unique(engine, pa.array([7, 8, 7, 9, 7, 9], pa.int64()))
    with pytest.raises(SourceError, match=r"person is no key of .*: 2 of its values occur more than once, and unique"):
        open_source(source, declared)


def test_a_second_row_that_comes_later_does_not_count(postgresql_engine: PostgresqlEngine) -> None:
    """A database goes on while a data set is open: a person stays one record, and `idios check` tells."""
    source, declared = open_unique(postgresql_engine, pa.array([7, 8, 9], pa.int64()))
    table = unquote(str(source).partition("?table=")[2])
    with open_source(source, declared) as backend:
        postgresql_engine.connection.execute(f"INSERT INTO {table} VALUES (7, 5), (7, 0)")
        sql = "SELECT SUM(x), COUNT(*) FROM register"
        assert read_records(backend, declared, sql).total() == backend.count_units() == 3
        report = backend.check()
        assert not report.sound
        assert "3 people with 1 to 3 rows each" in str(report.people)
        assert str(report.people).endswith("unique = true says that each has one row")


REFUSED = {
    "duckdb": ["INTERVAL", "TIME", "TIMETZ", "JSON", "BIT", "BIGNUM", "VARCHAR[]", "STRUCT(a VARCHAR)", "UHUGEINT"],
    "postgresql": ["interval", "time", "timetz", "jsonb", "bit(3)", "inet", "bigint[]", "tsvector", "money", "json"],
    "spark": ["INTERVAL DAY TO SECOND", "ARRAY<STRING>", "STRUCT<a: STRING>", "VARIANT"],
}


@pytest.mark.parametrize("name", ["duckdb", "postgresql", SPARK])
def test_types_whose_values_have_several_forms_are_refused(name: str, request: pytest.FixtureRequest) -> None:
    engine: Engine = request.getfixturevalue(f"{name}_engine")
    world = World([("NULL", None, 1, "a")], [("NULL", None, 1)], [("NULL", None, 1)])
    for held in REFUSED[name]:
        if held == "VARIANT" and isinstance(engine, SparkEngine) and engine.session.version < "4":
            continue
        kept = {table: DataSource(place) for table, place in keep(engine, world, held).items()}
        with pytest.raises(SourceError, match=r"is a unit or a key, and the source holds|cannot be read as declared"):
            open_source(kept.pop("register").place, make_dataset(), linked=kept)


# -------------------------------------------------------------------------------------------------------- categories


@pytest.mark.parametrize(
    ("name", "held"),
    [
        *(("duckdb", f"VARCHAR COLLATE {each}") for each in ("NOCASE", "NOACCENT", "NFC")),
        *(("postgresql", each) for each in ("text COLLATE loose", "citext", "loose_text")),
        pytest.param("spark", "STRING COLLATE UTF8_LCASE", marks=SPARK.marks),
    ],
)
def test_categories_are_compared_by_their_bytes(name: str, held: str, request: pytest.FixtureRequest) -> None:
    """Declared values that a collation takes for one are two, where they are counted, grouped and selected."""
    engine: Engine = request.getfixturevalue(f"{name}_engine")
    prepare(engine)
    spelt = ["p", "P", "\N{LATIN SMALL LETTER E WITH ACUTE}", "e\N{COMBINING ACUTE ACCENT}", "e", "P", None, "E"]
    world = World(
        [("'p'", 0, 1, "a")], [("NULL" if s is None else f"'{s}'", 0, i) for i, s in enumerate(spelt)], [("'p'", 0, 0)]
    )
    source = keep(engine, world, held)["register"]
    person, age = category("person", *dict.fromkeys(s for s in spelt[:-1] if s is not None)), whole("age", (0, 20))
    data = dataset(person, age)
    table = {"person": spelt, "age": list(range(len(spelt)))}
    with open_source(source, data) as backend:
        same(backend, plan(data, (Mode(), "person"), (Count(), "person")), table)
        same(backend, plan(data, (Count(), None), (Median(), "age"), groups=[by(person)]), table)
        same(backend, plan(data, (Median(), "age"), where=Among("person", ((1, 1), (3, 4)))), table)


# ------------------------------------------------------------------------------------------------------------ files


def test_keys_of_csv_files_are_text_as_it_stands(tmp_path: Path) -> None:
    spelt = ["p", "P", '" p"', "1", "01", "1.0", "", "NaN", "-0", "0", "e\N{COMBINING ACUTE ACCENT}"]
    (tmp_path / "facts.csv").write_text("person,x,g\n" + "".join(f"{each},{2**i},a\n" for i, each in enumerate(spelt)))
    (tmp_path / "register.csv").write_text("person,age\n" + "".join(f"{each},1\n" for each in spelt[:4]))
    data = make_dataset()
    facts = replace(data.tables["facts"], links=data.tables["facts"].links[:1])
    declared = replace(data, tables={"facts": facts})
    linked = {"facts": DataSource(str(tmp_path / "facts.csv"))}
    with open_source(str(tmp_path / "register.csv"), declared, linked=linked) as backend:
        assert backend.count_units() == len(spelt) - 1
        assert [link.dangling for link in backend.check().links] == [len(spelt) - 5]


def test_a_key_that_cannot_be_decoded_is_refused_when_it_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Text that is no UTF-8, in a file whose statistics tell counts: else a question failed for one record."""
    monkeypatch.setattr(idios.data.engines.duckdb, "KEPT", 0)
    broken = pa.array([b"p", b"\xff\xfe"]).view(pa.string())
    pq.write_table(pa.table({"person": broken, "age": [1, 2]}), tmp_path / "register.parquet")
    data = replace(make_dataset(), tables={}, covers_everyone=True)
    with pytest.raises(SourceError, match="cannot decode every text"):
        open_source(str(tmp_path / "register.parquet"), data)


def test_macros_of_a_file_shadow_nothing(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "register.duckdb")) as connection:
        connection.execute("CREATE TABLE register AS SELECT 'p' || i % 3 AS person, i AS age FROM range(9) AS t(i)")
        for name, made in (("encode", "'same'::BLOB"), ("hash", "1"), ("sum", "7"), ("concat_ws", "''")):
            connection.execute(f"CREATE MACRO {name}(a) AS {made}")
    data = replace(make_dataset(), tables={}, covers_everyone=True)
    with open_source(f"{tmp_path / 'register.duckdb'}::register", data) as backend:
        assert isinstance(backend, SqlBackend)
        assert backend.count_units() == 3
        found = read_records(
            backend, data, "SELECT MEDIAN(s) FROM (SELECT SUM(age) AS s FROM register GROUP BY person)"
        )
        assert Counter(total for _, total in found.elements()) == Counter([9, 12, 15])

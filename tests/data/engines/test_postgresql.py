"""What only PostgreSQL has: its types, its snapshots, and a server that can go away."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import product
from urllib.parse import urlsplit

import pytest

from idios.core.domain import Kind
from idios.core.statistics import Count, KthSmallest, Median, Mode
from idios.data.backend import open_source
from idios.data.cancellation import CancellationToken
from idios.errors import SourceError
from idios.plan.planner import make_plan
from idios.sql.reader import read
from tests.conformance.plans import by, category, dataset, number, of_kind, plan, whole
from tests.conformance.reference import Table
from tests.conformance.test_statistics import same
from tests.evaluation.test_extra import WITHOUT
from tests.services.postgresql import PostgresqlServer

with suppress(ImportError):  # the tests that need the driver are skipped without it
    import psycopg

    from idios.data.engines.postgresql import PostgresqlConnection

DATA = dataset(whole("n"))


@pytest.fixture(scope="module")
def base(postgresql_url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgresql_url, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA shop; SET search_path = shop")
        yield connection


def test_what_is_not_a_number_is_null(base: psycopg.Connection, postgresql_url: str) -> None:
    base.execute("CREATE TABLE odd (d numeric, f float8, t date, m timestamp, z timestamptz)")
    for value in ("NaN", "Infinity", "-Infinity"):
        infinite = None if value == "NaN" else value
        base.execute("INSERT INTO odd VALUES (%s, %s, %s, %s, %s)", [value, value, infinite, infinite, infinite])
    base.execute(
        "INSERT INTO odd VALUES (1e1000, 1e300, '1970-01-02', '1970-01-01 00:00:01', '1970-01-01 02:00:00+02')"
    )
    base.execute("INSERT INTO odd VALUES (-0.125, -1e-300, '4713-01-01 BC', '0001-01-01', '1970-01-01 00:00:00+00')")
    data = dataset(
        of_kind(Kind.DECIMAL, "d", "0.25", (-5, 5)),
        number("f", 100, (-5, 500)),
        of_kind(Kind.DATE, "t"),
        of_kind(Kind.TIMESTAMP, "m", 1000),
        of_kind(Kind.TIMESTAMP, "z"),
    )
    with open_source(f"{postgresql_url}?table=shop.odd", data) as backend:
        [found] = backend.summarise(plan(data, *((KthSmallest(1), name) for name in data.columns), distance=5))
        values = [summary.windows[0].values for summary in found]
        assert values == [(0, 20), (0, 5), (-2440550, 1), (-62135596800000, 1000), (0, 0)]
        unreadable = {column.name: column.unreadable for column in backend.check().columns}
        assert unreadable == {"d": 3, "f": 3, "t": 2, "m": 2, "z": 2}


def test_text_of_every_sort_is_compared_exactly(base: psycopg.Connection, postgresql_url: str) -> None:
    base.execute("CREATE TYPE mood AS ENUM ('a', 'A'); CREATE DOMAIN word AS text CHECK (value <> 'z')")
    try:
        base.execute("CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
        collated = "text COLLATE loose"
    except psycopg.Error:  # a server without ICU has no such collations
        collated = "text"
    base.execute(f"CREATE TABLE words (e mood, w word, v varchar(9), f char(3), c {collated})")
    base.execute("INSERT INTO words SELECT x::mood, x, x, x, x FROM unnest(ARRAY['a', 'A', 'A']) AS x")
    columns = [category(name, "a", "A") for name in "ewvfc"]
    data, table = dataset(*columns), {name: ["a", "A", "A"] for name in "ewvfc"}
    with open_source(f"{postgresql_url}?table=shop.words", data) as backend:
        same(backend, plan(data, *((Mode(), name) for name in table)), table)
        for column in columns:
            same(backend, plan(data, (Count(), None), groups=[by(column)]), table)


@pytest.mark.parametrize("kind", ["VIEW", "MATERIALIZED VIEW"])
def test_views_are_sources(kind: str, base: psycopg.Connection, postgresql_url: str) -> None:
    name = kind.lower().replace(" ", "_")
    base.execute(f"CREATE {kind} {name} AS SELECT i AS n FROM generate_series(1, 60000) AS i")
    with open_source(f"{postgresql_url}?table=shop.{name}", DATA) as backend:
        same(backend, plan(DATA, (Median(), "n")), {"n": list(range(1, 60001))})


def test_all_queries_of_a_call_see_one_state(
    base: psycopg.Connection, postgresql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    base.execute("CREATE TABLE growing AS SELECT i AS n FROM generate_series(1, 200) AS i")
    table: Table = {"n": list(range(1, 201))}
    with open_source(f"{postgresql_url}?table=shop.growing", DATA) as backend:
        run, fetched = PostgresqlConnection.run, []

        def interrupted(self: PostgresqlConnection, expression: object) -> object:
            # the snapshot is taken by the first query, so nothing changes before that
            if fetched:
                base.execute("INSERT INTO growing VALUES (1), (100000)")
            fetched.append(expression)
            return run(self, expression)

        monkeypatch.setattr(PostgresqlConnection, "run", interrupted)
        same(backend, plan(DATA, (Median(), "n"), (KthSmallest(2), "n")), table)
        assert len(fetched) > 2


def test_nothing_can_be_written(base: psycopg.Connection, postgresql_url: str) -> None:
    base.execute("CREATE TABLE kept (n bigint)")
    with open_source(f"{postgresql_url}?table=shop.kept", DATA) as backend:
        with (
            backend.connections.acquire(CancellationToken()) as connection,
            pytest.raises(psycopg.errors.ReadOnlySqlTransaction),
            connection.snapshot(),
        ):
            connection.connection.execute("INSERT INTO shop.kept VALUES (1)")
        assert backend.rows() == 0


SHADOWS = """
    CREATE SCHEMA evil;
    CREATE DOMAIN evil.text AS varchar(1);
    CREATE DOMAIN evil.date AS timestamp;
    CREATE FUNCTION evil.abs(float8) RETURNS float8 LANGUAGE sql AS 'SELECT 0::float8';
    CREATE FUNCTION evil.floor(float8) RETURNS float8 LANGUAGE sql AS 'SELECT 7::float8';
    CREATE FUNCTION evil.isfinite(pg_catalog.date) RETURNS boolean LANGUAGE sql AS 'SELECT false';
    CREATE FUNCTION evil.isfinite(timestamptz) RETURNS boolean LANGUAGE sql AS 'SELECT false';
    CREATE FUNCTION evil.div(numeric, numeric) RETURNS numeric LANGUAGE sql AS 'SELECT 1::numeric';
    CREATE FUNCTION evil.trim_scale(numeric) RETURNS numeric LANGUAGE sql AS 'SELECT 1::numeric';
    CREATE FUNCTION evil.array_position(pg_catalog.text[], pg_catalog.text) RETURNS int LANGUAGE sql AS 'SELECT 1';
    CREATE FUNCTION evil.hashtextextended(pg_catalog.text, bigint) RETURNS bigint LANGUAGE sql AS 'SELECT 1::int8';
    CREATE FUNCTION evil.unnest(name[]) RETURNS SETOF name LANGUAGE sql AS 'SELECT NULL::name';
    CREATE FUNCTION evil.never(bigint, bigint) RETURNS boolean LANGUAGE sql AS 'SELECT false';
    CREATE FUNCTION evil.never(bigint, int) RETURNS boolean LANGUAGE sql AS 'SELECT false';
    CREATE FUNCTION evil.never(pg_catalog.text, pg_catalog.text) RETURNS boolean LANGUAGE sql AS 'SELECT false';
    CREATE FUNCTION evil.never(numeric, numeric) RETURNS boolean LANGUAGE sql AS 'SELECT false';
    CREATE FUNCTION evil.never(name, pg_catalog.text) RETURNS boolean LANGUAGE sql AS 'SELECT false';
    CREATE FUNCTION evil.first(bigint, bigint) RETURNS bigint LANGUAGE sql AS 'SELECT $1';
    CREATE AGGREGATE evil.sum(bigint) (SFUNC = evil.first, STYPE = bigint);
    CREATE AGGREGATE evil.max(bigint) (SFUNC = evil.first, STYPE = bigint);
    CREATE AGGREGATE evil.min(bigint) (SFUNC = evil.first, STYPE = bigint);
    CREATE AGGREGATE evil.count(*) (SFUNC = pg_catalog.int8inc, STYPE = bigint, INITCOND = '1000');
"""
"""Of a schema that comes before PostgreSQL's own, what questions use."""
OPERATORS = ["bigint, bigint", "bigint, int", "text, text", "numeric, numeric", "name, text"]
HOSTILE = {
    "search_path": "evil, pg_catalog, public",
    "standard_conforming_strings": "off",
    "backslash_quote": "on",
    "client_encoding": "LATIN1",
    "timezone": "'Pacific/Kiritimati'",
    "datestyle": "'German, DMY'",
    "intervalstyle": "iso_8601",
    "extra_float_digits": "-15",
    "bytea_output": "escape",
    "array_nulls": "off",
    "transform_null_equals": "on",
    "row_security": "off",
    "gin_fuzzy_search_limit": "1",
    "default_transaction_isolation": "'read uncommitted'",
    "default_transaction_read_only": "on",
}
WORDS = ["north", "back\\slash", "\\' OR TRUE --", "it's", "\\", "日本"]
ASKED = [
    "SELECT word, COUNT(*), MEDIAN(n) FROM people GROUP BY word",
    "SELECT COUNT(*) FROM people WHERE word = '\\'' OR TRUE --' AND n > 20",
    "SELECT MEDIAN(f), MEDIAN(d), MEDIAN(z), MEDIAN(day) FROM people WHERE n < 400 OR day > DATE '2020-01-03'",
    "SELECT SUM(n), AVG(d), KTH_LARGEST(n, 3) FROM people WHERE f > 3.5",
]
OF_PEOPLE = ["SELECT AVG(n) FROM people", "SELECT MEDIAN(d) FROM people"]


def fill(connection: psycopg.Connection) -> None:
    connection.execute("SET standard_conforming_strings = on; SET client_encoding = 'UTF8'")
    connection.execute(
        "SET default_transaction_read_only = off; SET search_path = pg_catalog, public; SET timezone = 'UTC'"
    )
    connection.execute("CREATE TABLE public.people (n bigint, f float8, d numeric, z timestamptz, day date, word text)")
    connection.execute(
        "INSERT INTO public.people SELECT mod(i, 700), sqrt(i), mod(i, 40) / 8.0, "
        "'2020-01-01'::timestamptz + make_interval(hours => 7 * mod(i, 50)), date '2020-01-01' + mod(i, 9), "
        "(%s::text[])[1 + mod(i, 7)] FROM generate_series(1, 3000) AS i",
        [WORDS],
    )
    connection.execute(
        "CREATE VIEW public.shown AS SELECT n, f, d, z, CAST(z AS date) AS day, "
        "CASE mod(n, 3) WHEN 0 THEN day::text WHEN 1 THEN f::text ELSE convert_to(word, 'UTF8')::text END AS word "
        "FROM public.people"
    )


def read_everything(address: str) -> list[object]:
    """Everything that some questions read of a table."""
    words = category("word", *WORDS, "2020-01-03", f"{7**0.5}", "\\x6e6f727468", "\\xe697a5e69cac")
    columns = (
        *(whole("n", (0, 1000)), number("f", "0.001"), of_kind(Kind.DECIMAL, "d", "0.125"), words),
        *(of_kind(Kind.TIMESTAMP, "z"), of_kind(Kind.DATE, "day")),
    )
    data = dataset(*columns)
    found: list[object] = []
    people = replace(data, unit=("d", "day", "z"), unit_word="person", rows=2)
    for declared, questions in ((data, ASKED), (people, OF_PEOPLE), (replace(people, unit=("f",)), OF_PEOPLE)):
        with open_source(address, declared) as backend:
            found += [backend.rows(), backend.count_units(), str(backend.check())]
            plans = [make_plan(read(sql, {"people": declared}), declared, 1000) for sql in questions]
            found += [backend.summarise(plan) for plan in plans]
    return found


@pytest.mark.slow
def test_no_setting_or_schema_changes_what_a_statement_means(postgresql_url: str) -> None:
    """A database whose defaults, and those of its role, are others, and a schema that shadows what is PostgreSQL's."""
    with psycopg.connect(postgresql_url, autocommit=True) as server:
        for name in ("plain", "hostile"):
            server.execute(f"CREATE DATABASE {name}")
        address = urlsplit(postgresql_url)
        plain, hostile = (address._replace(path=f"/{name}").geturl() for name in ("plain", "hostile"))
        with psycopg.connect(plain, autocommit=True) as connection:
            fill(connection)
        with psycopg.connect(hostile, autocommit=True) as connection:
            fill(connection)
            connection.execute(SHADOWS)
            for operator, types in product(("=", "<", ">", "<=", ">=", "<>"), OPERATORS):
                left, right = types.replace("text", "pg_catalog.text").split(", ")
                connection.execute(
                    f"CREATE OPERATOR evil.{operator} (LEFTARG = {left}, RIGHTARG = {right}, FUNCTION = evil.never)"
                )
        for i, (name, value) in enumerate(HOSTILE.items()):
            whose = "DATABASE hostile" if i % 2 else f"ROLE {address.username} IN DATABASE hostile"
            server.execute(f"ALTER {whose} SET {name} = {value}")
    for name in ("people", "shown"):
        expected = read_everything(f"{plain}?table={name}")
        for table in (name, f"public.{name}", f"hostile.public.{name}")[:: 1 if name == "people" else 2]:
            assert read_everything(f"{hostile}?table={table}") == expected


def test_a_table_of_several_schemas_is_named_with_its_schema(base: psycopg.Connection, postgresql_url: str) -> None:
    base.execute("CREATE TABLE twice AS SELECT 1::bigint AS n; CREATE TABLE public.twice AS SELECT 2::bigint AS n")
    both = f"{postgresql_url}?options=-csearch_path%3Dshop,public&table="
    with pytest.raises(SourceError, match=r"'shop.twice', 'public.twice'|'public.twice', 'shop.twice'"):
        open_source(f"{both}twice", DATA)
    for table, n in (("shop.twice", 1), ("public.twice", 2), ("postgres.public.twice", 2)):
        with open_source(f"{both}{table}", DATA) as backend:
            same(backend, plan(DATA, (KthSmallest(1), "n")), {"n": [n]})
    for table in ("elsewhere.public.twice", "a.b.c.d", "nowhere"):
        with pytest.raises(SourceError, match="has no table or view"):
            open_source(f"{both}{table}", DATA)


def test_settings_hold_for_one_transaction(base: psycopg.Connection, postgresql_url: str) -> None:
    """A pool may give every transaction another connection, which others have used."""
    base.execute("CREATE TABLE pooled AS SELECT 1::bigint AS n")
    with (
        open_source(f"{postgresql_url}?table=shop.pooled", DATA) as backend,
        backend.connections.acquire(CancellationToken()) as connection,
    ):
        connection.connection.execute("SET standard_conforming_strings = off; SET search_path = public")
        for _ in range(9):  # longer than it takes a driver to prepare a statement
            with connection.snapshot():
                found = dict(connection.connection.execute("SELECT name, setting FROM pg_settings").fetchall())
                assert found["standard_conforming_strings"] == "on"
                assert found["search_path"] == "pg_catalog, pg_temp"
        assert connection.connection.execute("SHOW search_path").fetchone() == ("public",)


def test_a_table_that_may_not_be_read(base: psycopg.Connection, postgresql_url: str) -> None:
    base.execute("CREATE TABLE closed (n bigint, hidden bigint)")
    base.execute("CREATE ROLE guest LOGIN PASSWORD 'secret'; GRANT USAGE ON SCHEMA shop TO guest")
    base.execute("GRANT SELECT (n) ON closed TO guest")
    address = urlsplit(postgresql_url)
    guest = f"postgresql://guest:secret@{address.hostname}:{address.port}{address.path}?table=shop.closed"
    open_source(guest, DATA).close()
    with pytest.raises(SourceError, match="may not be read") as raised:
        open_source(guest, dataset(whole("hidden")))
    assert "secret" not in str(raised.value)


def test_an_address_without_a_table_or_a_server(postgresql_url: str) -> None:
    with pytest.raises(
        SourceError, match=r"name the table in the address: postgresql://127.0.0.1:\d+/postgres\?table="
    ):
        open_source(postgresql_url, DATA)
    for address in ("postgresql://me:secret@127.0.0.1:1/base?table=t", "postgres://me:secret@127.0.0.1:1?table=t"):
        with pytest.raises(SourceError, match=r"cannot be reached at 127\.0\.0\.1:1") as raised:
            open_source(address, DATA)
        assert "secret" not in str(raised.value)


def test_neither_a_driver_nor_a_type_needs_pandas(postgresql_url: str, base: psycopg.Connection) -> None:
    base.execute("CREATE TABLE bare AS SELECT n, 'north' AS region FROM generate_series(1, 9) AS n")
    code = (
        "import idios, sys\n"
        "columns = {'n': {'type': 'integer'}, 'region': {'type': 'category', 'values': ['north']}}\n"
        "with idios.TrustedParty.open(sys.argv[1], name='t', columns=columns, budget=10**6) as party:\n"
        "    print(party.query('SELECT region, MEDIAN(n) FROM t GROUP BY region', epsilon=10**5).rows)"
    )
    command = [sys.executable, "-c", WITHOUT + code, f"{postgresql_url}?table=shop.bare"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "'MEDIAN(n)': 5" in done.stdout, done.stderr


def test_a_server_that_goes_away_and_comes_back() -> None:
    server = PostgresqlServer(fsync=True)
    try:
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute("CREATE TABLE t AS SELECT 5::bigint AS n")
        with open_source(f"{server.url}?table=t", DATA) as backend:
            assert backend.rows() == 1
            server.stop(crash=True)
            for _ in range(2):
                with pytest.raises(SourceError, match=r"reading 'people' failed|cannot be reached"):
                    backend.summarise(plan(DATA, (Count(), "n")))
            server.start()
            same(backend, plan(DATA, (Count(), "n")), {"n": [5]})
    finally:
        server.close()

"""Questions about an indexed table in PostgreSQL, beside plain ones, on a server that is started for them."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import count

from bench.figures import Figure, Settings
from bench.timing import Turn, compare, interleave
from idios.core.statistics import KthLargest, Median, Statistic
from idios.data.backend import open_source
from idios.party import TrustedParty
from tests.conformance.plans import dataset, number, plan, whole
from tests.services.postgresql import PostgresqlServer

TITLE = "PostgreSQL"
ABOUT = """\
A table with an index of each column, in a server of its own, both sides turn by turn. "Read" is the reading of the
data alone, without the charge. Plain PostgreSQL finds a k-th largest value in next to no time, so that it is compared
with 10 ms."""
MEDIAN = "percentile_cont(0.5) WITHIN GROUP (ORDER BY {x})"
PRIVATE: dict[str, tuple[Statistic, str]] = {
    "MEDIAN({x})": (Median(), MEDIAN),
    "KTH_LARGEST({x}, 10)": (KthLargest(10), "max({x})"),
}
ALLOWED = 0.3
"""How many times the plain median's time a private one may take."""
LONGEST = 0.010
"""How many seconds the reading of a k-th largest value may take."""


def fill(url: str, rows: int) -> None:
    """A table of floats and whole numbers, a note beside them, and an index of each."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE t AS SELECT exp(10 + random() * 3) AS x, (random() * 1000000)::bigint AS n, "
            f"md5(i::text) AS note FROM generate_series(1, {rows}) AS i"
        )
        for column in "xn":
            connection.execute(f"CREATE INDEX ON t ({column})")
        connection.execute("VACUUM ANALYZE t")


def describe(settings: Settings) -> str:
    """How much is read."""
    return f"{settings.choose_rows(2 * 10**6, 2 * 10**5):,} rows, {settings.turns}"


def measure(settings: Settings) -> Iterator[Figure]:
    """Start a server, fill a table and ask."""
    server = PostgresqlServer()
    try:
        fill(server.url, settings.choose_rows(2 * 10**6, 2 * 10**5))
        yield from ask_both(server.url, settings)
    finally:
        server.close()


def ask_both(url: str, settings: Settings) -> Iterator[Figure]:
    """Time each question both ways."""
    import psycopg

    numbers, source = count(1), f"{url}?table=t"
    data = dataset(number("x", "0.000001", nullable=False), whole("n", nullable=False))
    columns = {"x": {"type": "number", "nullable": False}, "n": {"type": "integer", "nullable": False}}
    with (
        psycopg.connect(url, autocommit=True) as plain,
        open_source(source, data) as backend,
        TrustedParty.open(
            source, name="t", columns=columns, budget=10**9, min_epsilon=Fraction(1, 10**9), protection="individual"
        ) as party,
    ):

        def ask(question: str) -> object:
            # an ε that was never used before, so that no answer is stored
            return party.query(f"SELECT {question} FROM t", 1 + Fraction(next(numbers), 10**6))

        for written, (statistic, aggregate) in PRIVATE.items():
            for column in "xn":
                if not settings.wants(written.format(x=column)):
                    continue
                question, asked = written.format(x=column), plan(data, (statistic, column))
                text = f"SELECT {aggregate.format(x=column)} FROM t"
                answered, read, theirs = interleave(
                    settings.repetitions,
                    lambda question=question: ask(question),
                    lambda asked=asked: backend.summarise(asked),
                    lambda text=text: plain.execute(text).fetchall(),
                )
                if isinstance(statistic, KthLargest):
                    theirs = [Turn(LONGEST, LONGEST)] * len(answered)
                expected = 1 if isinstance(statistic, KthLargest) else ALLOWED
                for what, ours in ((f"`{question}`", answered), (f"`{question}`, read", read)):
                    yield compare(what, ours, theirs, expected, cores=False)

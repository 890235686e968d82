"""Questions about an indexed table in PostgreSQL, beside plain ones.

    python -m bench.postgresql [--rows 2000000] [--repetitions 5]

A server of its own is started for it. Both sides read one table turn by turn, and the ratio is that of their medians.
A private answer includes its charge in the ledger; "read" is its reading of the data alone. Plain PostgreSQL finds a
k-th largest value in next to no time, so that it is compared with 10 ms. It prints a table in Markdown, in which the
cores' time is that of this process alone and not that of the server.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from fractions import Fraction
from itertools import count

import psycopg

from bench.timing import Ratio, Turn, interleave, write_ratios
from idios.backends.base import open_source
from idios.core.statistics import KthLargest, Median, Statistic
from idios.party import TrustedParty
from tests.conformance.plans import dataset, number, plan, whole
from tests.services.postgresql import PostgresqlServer

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
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE t AS SELECT exp(10 + random() * 3) AS x, (random() * 1000000)::bigint AS n, "
            f"md5(i::text) AS note FROM generate_series(1, {rows}) AS i"
        )
        for column in "xn":
            connection.execute(f"CREATE INDEX ON t ({column})")
        connection.execute("VACUUM ANALYZE t")


def compare(url: str, repetitions: int) -> Iterator[Ratio]:
    """Time each question both ways."""
    numbers, source = count(1), f"{url}?table=t"
    data = dataset(number("x", "0.000001", nullable=False), whole("n", nullable=False))
    columns = {"x": {"type": "number", "nullable": False}, "n": {"type": "integer", "nullable": False}}
    with (
        psycopg.connect(url, autocommit=True) as plain,
        open_source(source, data) as backend,
        TrustedParty.open(
            source, name="t", columns=columns, budget=10**9, min_epsilon=Fraction(1, 10**9), check=0
        ) as party,
    ):

        def ask(question: str) -> object:
            # an ε that was never used before, so that no answer is stored
            return party.query(f"SELECT {question} FROM t", 1 + Fraction(next(numbers), 10**6))

        for written, (statistic, aggregate) in PRIVATE.items():
            for column in "xn":
                question, asked = written.format(x=column), plan(data, (statistic, column))
                text = f"SELECT {aggregate.format(x=column)} FROM t"
                answered, read, theirs = interleave(
                    repetitions,
                    lambda question=question: ask(question),
                    lambda asked=asked: backend.summarise(asked),
                    lambda text=text: plain.execute(text).fetchall(),
                )
                if isinstance(statistic, KthLargest):
                    theirs = [Turn(LONGEST, LONGEST)] * repetitions
                expected = 1 if isinstance(statistic, KthLargest) else ALLOWED
                yield Ratio(f"`{question}`", answered, theirs, expected)
                yield Ratio(f"`{question}`, read", read, theirs, expected)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2 * 10**6)
    parser.add_argument("--repetitions", type=int, default=5)
    arguments = parser.parse_args()
    server = PostgresqlServer()
    try:
        fill(server.url, arguments.rows)
        return write_ratios(compare(server.url, arguments.repetitions))
    finally:
        server.close()


if __name__ == "__main__":
    sys.exit(main())

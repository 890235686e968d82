"""Ten questions about customers of TPC-H, who have many orders: how long they take, and how far off answers are.

    pip install tpchgen-cli
    python -m bench.people [--scale 1] [--rounds 7]

It prints the table of docs/evaluation.md, in Markdown. Tables are generated once, as Parquet files under ``.bench/``.
Customers are private, orders and line items are facts about them, nations and regions are public. Nothing has bounds,
and everything is asked at ``differential`` with ε = 1.

- Plain is the same SQL in DuckDB on the same files, private the whole of ``party.query``: in turns, the median of each.
- An error is the median of |answer − truth| in per cent of the truth, over all numbers in all rows of all rounds.
- The same question would get its stored answer, so that each round has an ε of its own, greater by a millionth.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from shutil import which
from statistics import median
from typing import Any

import duckdb

from idios import TrustedParty

FILES = Path(__file__).parents[1] / ".bench"
TABLES = ("customer", "orders", "lineitem", "nation", "region")

SEGMENTS = ["AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY"]
PRIORITIES = ["1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW"]
REGIONS = ["AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"]
NATIONS = [
    *["ALGERIA", "ARGENTINA", "BRAZIL", "CANADA", "CHINA", "EGYPT", "ETHIOPIA", "FRANCE", "GERMANY", "INDIA"],
    *["INDONESIA", "IRAN", "IRAQ", "JAPAN", "JORDAN", "KENYA", "MOROCCO", "MOZAMBIQUE", "PERU", "ROMANIA", "RUSSIA"],
    *["SAUDI ARABIA", "UNITED KINGDOM", "UNITED STATES", "VIETNAM"],
]
REVENUE = "l_extendedprice * (1 - l_discount)"
MONEY = {"type": "decimal", "decimals": 2}


@dataclass(frozen=True)
class Question:
    title: str
    sql: str


QUESTIONS = (
    Question(
        "customers with an order in 1995, by market segment",
        """SELECT segment, COUNT(*) AS customers
        FROM (
            SELECT o_custkey, MAX(c_mktsegment) AS segment
            FROM orders JOIN customer ON o_custkey = c_custkey
            WHERE o_orderdate BETWEEN DATE '1995-01-01' AND DATE '1995-12-31'
            GROUP BY o_custkey
        )
        GROUP BY segment ORDER BY segment""",
    ),
    Question(
        "median of what a customer spent",
        """SELECT MEDIAN(spent) AS spent
        FROM (SELECT o_custkey, SUM(o_totalprice) AS spent FROM orders GROUP BY o_custkey)""",
    ),
    Question(
        "revenue of 1995",
        """SELECT SUM(revenue) AS revenue FROM lineitem
        WHERE l_shipdate BETWEEN DATE '1995-01-01' AND DATE '1995-12-31'""",
    ),
    Question(
        "revenue by region",
        """SELECT region, SUM(spent) AS revenue
        FROM (
            SELECT c_custkey, MAX(r_name) AS region, SUM(revenue) AS spent
            FROM lineitem
            JOIN orders ON l_orderkey = o_orderkey
            JOIN customer ON o_custkey = c_custkey
            JOIN nation ON c_nationkey = n_nationkey
            JOIN region ON n_regionkey = r_regionkey
            GROUP BY c_custkey
        )
        GROUP BY region ORDER BY region""",
    ),
    Question(
        "mean of customers' mean order",
        """SELECT AVG(value) AS value
        FROM (SELECT o_custkey, AVG(o_totalprice) AS value FROM orders GROUP BY o_custkey)""",
    ),
    Question(
        "urgent orders",
        "SELECT COUNT(*) AS orders FROM orders WHERE o_orderpriority = '1-URGENT'",
    ),
    Question(
        "quartiles of orders per customer",
        """SELECT PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY orders) AS lower,
            PERCENTILE_CONT(0.75) WITHIN GROUP (ORDER BY orders) AS upper
        FROM (SELECT o_custkey, COUNT(*) AS orders FROM orders GROUP BY o_custkey)""",
    ),
    Question(
        "0.9 quantile of account balances",
        """SELECT PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY balance) AS balance
        FROM (SELECT c_custkey, MAX(c_acctbal) AS balance FROM customer GROUP BY c_custkey)""",
    ),
    Question(
        "median account balance by nation",
        """SELECT nation, MEDIAN(balance) AS balance
        FROM (
            SELECT c_custkey, MAX(n_name) AS nation, MAX(c_acctbal) AS balance
            FROM customer JOIN nation ON c_nationkey = n_nationkey
            GROUP BY c_custkey
        )
        GROUP BY nation ORDER BY nation""",
    ),
    Question(
        "customers with five returned items or more",
        """SELECT COUNT(*) AS customers
        FROM (
            SELECT o_custkey, COUNT(*) AS returned
            FROM lineitem JOIN orders ON l_orderkey = o_orderkey
            WHERE l_returnflag = 'R'
            GROUP BY o_custkey
        )
        WHERE returned >= 5""",
    ),
)


def open_party(folder: Path, budget: int = 10_000) -> TrustedParty:
    """The tables as a controller declares them: no column has bounds."""
    sources = {name: str(folder / f"{name}.parquet") for name in TABLES}
    return TrustedParty.open(
        sources["customer"],
        name="customer",
        unit="c_custkey",
        unit_word="customer",
        protection="differential",
        budget=budget,
        links={"c_nationkey": "nation.n_nationkey"},
        columns={"c_acctbal": MONEY, "c_mktsegment": {"type": "category", "values": SEGMENTS}},
        linked={
            "orders": {
                "source": sources["orders"],
                "unit": "o_custkey",
                "links": {"o_custkey": "customer.c_custkey"},
                "columns": {
                    "o_totalprice": MONEY,
                    "o_orderdate": {"type": "date"},
                    "o_orderpriority": {"type": "category", "values": PRIORITIES},
                },
            },
            "lineitem": {
                "source": sources["lineitem"],
                "links": {"l_orderkey": "orders.o_orderkey"},
                "columns": {
                    "l_extendedprice": MONEY,
                    "l_discount": MONEY,
                    "l_shipdate": {"type": "date"},
                    "l_returnflag": {"type": "category", "values": ["A", "N", "R"]},
                    "revenue": {"expression": REVENUE},
                },
            },
            "nation": {
                "source": sources["nation"],
                "public": True,
                "links": {"n_regionkey": "region.r_regionkey"},
                "columns": {"n_name": {"type": "category", "values": NATIONS}},
            },
            "region": {
                "source": sources["region"],
                "public": True,
                "columns": {"r_name": {"type": "category", "values": REGIONS}},
            },
        },
    )


def open_plain(folder: Path) -> duckdb.DuckDBPyConnection:
    """The same tables under the same names, the derived column included."""
    connection = duckdb.connect()
    for name in TABLES:
        derived = f", {REVENUE} AS revenue" if name == "lineitem" else ""
        file = str(folder / f"{name}.parquet").replace("'", "''")
        connection.execute(f"CREATE VIEW {name} AS SELECT *{derived} FROM read_parquet('{file}')")
    return connection


def ask_plain(connection: duckdb.DuckDBPyConnection, question: Question) -> list[dict[str, Any]]:
    found = connection.execute(question.sql)
    names = [name for name, *_ in found.description]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def measure_errors(answered: list[dict[str, Any]], truth: list[dict[str, Any]]) -> list[float]:
    """|answer − truth|/truth of every number; rows are in the same order."""
    return [
        abs(float(given[name]) / float(value) - 1) if given[name] is not None else float("inf")
        for given, row in zip(answered, truth, strict=True)
        for name, value in row.items()
        if isinstance(value, int | float | Decimal)
    ]


@dataclass(frozen=True)
class Measured:
    plain: float
    private: float
    error: float


def measure(party: TrustedParty, connection: duckdb.DuckDBPyConnection, question: Question, rounds: int) -> Measured:
    plain, private, errors = [], [], []
    for i in range(rounds + 1):
        start = time.perf_counter()
        truth = ask_plain(connection, question)
        middle = time.perf_counter()
        answer = party.query(question.sql, epsilon=1 + Fraction(i, 10**6))
        end = time.perf_counter()
        if i:  # the first is for what is read and compiled once
            plain.append(middle - start)
            private.append(end - middle)
        errors += measure_errors(list(answer.rows), truth)
    return Measured(median(plain), median(private), median(errors))


def generate(scale: float) -> Path:
    """The folder of the tables at a scale factor; they are generated if they are not there."""
    folder = FILES / f"tpch-{scale:g}"
    if not all((folder / f"{name}.parquet").is_file() for name in TABLES):
        command = which("tpchgen-cli") or which("tpchgen-cli", path=str(Path(sys.executable).parent))
        if command is None:
            raise SystemExit("the tables are generated by tpchgen-cli: pip install tpchgen-cli")
        folder.mkdir(parents=True, exist_ok=True)
        written = [f"--tables={','.join(TABLES)}", f"--output-dir={folder}"]
        subprocess.run([command, "parquet", "-s", f"{scale:g}", *written], check=True)
    return folder


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1, help="TPC-H's scale factor: 1 has 150,000 customers")
    parser.add_argument("--rounds", type=int, default=7, help="how often each question is asked")
    chosen = parser.parse_args()
    folder = generate(chosen.scale)
    print("| question | plain | private | ratio | error |\n|---|---|---|---|---|")
    with open_party(folder) as party, open_plain(folder) as connection:
        for question in QUESTIONS:
            found = measure(party, connection, question, chosen.rounds)
            times = f"{found.plain * 1e3:,.0f} ms | {found.private * 1e3:,.0f} ms | {found.private / found.plain:.1f} ×"
            print(f"| {question.title} | {times} | {100 * found.error:.2g} % |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""What privacy costs in time: each question through the trusted party, beside the same question in plain DuckDB.

    python -m bench.plain [--rows 10000000] [--repetitions 5] [--only groups]

Both read one Parquet file of generated rows, kept under .bench/ between runs, turn by turn in one process, and the
ratio is that of their medians. A private answer includes its charge in the ledger. It prints a table in Markdown.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import count
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

from bench.timing import Ratio, interleave, write_ratios
from idios.party import TrustedParty

FOLDER = Path(__file__).parents[1] / ".bench"
ROW_GROUPS = 10**6
"""How many rows a batch of the generator has."""
GROUPS = {"g20": 20, "g1000": 10**3, "g100000": 10**5}
NUMBERS = {
    "x": {"type": "number", "nullable": False},
    "bx": {"type": "number", "bounds": [0, 10**6], "nullable": False},
    "n": {"type": "integer", "nullable": False},
    "bn": {"type": "integer", "bounds": [0, 10**6], "nullable": False},
}
COLUMNS = NUMBERS | {
    name: {"type": "category", "values": [f"{name} {i}" for i in range(number)]} for name, number in GROUPS.items()
}
"""Those with a b have bounds, the others none."""
DIFFERENTIAL = Fraction(1, 2)
"""The ε of questions at that level."""


@dataclass(frozen=True)
class Comparison:
    """A question, the plain one, and how many times its time the private one may take."""

    private: str
    plain: str
    expected: float
    level: str = "individual"
    kind: str = "sums"


def list_comparisons() -> Iterator[Comparison]:
    """Every question, and what is expected of its ratio."""
    yield Comparison("MEDIAN(x)", "median(x)", 0.6, kind="medians")
    yield Comparison("MEDIAN(x)", "median(x)", 0.72, "differential", "medians")
    for group in GROUPS:
        for level, expected in (("individual", 1.5), ("differential", 3)):
            yield Comparison(f"{group}, MEDIAN(x) BY", f"{group}, median(x) BY", expected, level, "groups")
    yield Comparison("g20, COUNT(*) BY", "g20, count(*) BY", 2.5, kind="groups")
    for column, expected in (("bn", 2.5), ("bx", 6.5)):
        yield Comparison(f"g20, AVG({column}) BY", f"g20, avg({column}) BY", expected, kind="groups")
    for column, expected in (("n", 1.6), ("bn", 1.6), ("x", 6.5), ("bx", 6.5)):
        for function in ("AVG", "SUM"):
            call = f"{function}({column})"
            # without bounds, at every level: limits are drawn first, and sums are taken in a second round
            within = expected if column.startswith("b") else 2.5 * expected
            for level in ("individual", "differential"):
                yield Comparison(call, call, within, level)
    yield Comparison("COUNT(*) WHERE n > 30000", "count(*) WHERE n > 30000", 1.3)
    yield Comparison("COUNT(*) WHERE g20 = 'g20 7'", "count(*) WHERE g20 = 'g20 7'", 1.3)
    yield Comparison("COUNT(DISTINCT g20)", "count(DISTINCT g20)", 2)
    yield Comparison("COUNT(DISTINCT g1000)", "count(DISTINCT g1000)", 2)


def write_statement(written: str, table: str) -> str:
    """A whole statement from its short form."""
    selected, _, condition = written.partition(" WHERE ")
    selected, grouped = selected.removesuffix(" BY"), selected.endswith(" BY")
    text = f"SELECT {selected} FROM {table}" + (f" WHERE {condition}" if condition else "")
    return text + (f" GROUP BY {selected.split(',')[0]}" if grouped else "")


def generate(rows: int) -> Path:
    """The file, made once: lognormal floats, the same as whole numbers, and labels."""
    path = FOLDER / f"plain-{rows}.parquet"
    if path.exists():
        return path
    FOLDER.mkdir(exist_ok=True)
    rng, unfinished = np.random.default_rng(1), path.with_suffix(".unfinished")
    writer: parquet.ParquetWriter | None = None
    for start in range(0, rows, ROW_GROUPS):
        size = min(ROW_GROUPS, rows - start)
        values = np.minimum(rng.lognormal(10, 1, size), 10**6)
        batch = {"x": values, "bx": values, "n": values.astype(np.int64), "bn": values.astype(np.int64)}
        for name, number in GROUPS.items():
            labels = pa.array([f"{name} {i}" for i in range(number)])
            batch[name] = pa.DictionaryArray.from_arrays(rng.integers(0, number, size), labels).cast(pa.string())
        table = pa.table(batch)
        writer = writer or parquet.ParquetWriter(unfinished, table.schema)
        writer.write_table(table, row_group_size=2**17)
    if writer is not None:
        writer.close()
    unfinished.rename(path)
    return path


def compare(path: Path, comparisons: Sequence[Comparison], repetitions: int) -> Iterator[Ratio]:
    """Time each question both ways."""
    numbers = count(1)
    for comparison in comparisons:
        private, public = write_statement(comparison.private, "t"), write_statement(comparison.plain, f"'{path}'")
        epsilon = DIFFERENTIAL if comparison.level == "differential" else Fraction(1)
        named = {name: column for name, column in COLUMNS.items() if re.search(rf"\b{name}\b", private)}
        with (
            duckdb.connect() as plain,
            TrustedParty.open(
                path,
                name="t",
                columns=named or NUMBERS,
                protection=comparison.level,
                budget=10**9,
                max_groups=10**6,
                min_epsilon=Fraction(1, 10**9),
                check=0,
            ) as party,
        ):
            ours, theirs = interleave(
                repetitions,
                # an ε that was never used before, so that no answer is stored
                lambda ask=party.query, text=private, epsilon=epsilon: ask(
                    text, epsilon + Fraction(next(numbers), 10**6)
                ),
                lambda ask=plain.execute, text=public: ask(text).to_arrow_table(),
            )
        yield Ratio(f"`{comparison.private}`, {comparison.level}", ours, theirs, comparison.expected)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10**7)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--only", help="a part of what is compared: medians, groups, sums, or words of a question")
    arguments = parser.parse_args()
    comparisons = [
        comparison
        for comparison in list_comparisons()
        if not arguments.only
        or arguments.only == comparison.kind
        or arguments.only in f"{comparison.private}, {comparison.level}"
    ]
    return write_ratios(compare(generate(arguments.rows), comparisons, arguments.repetitions))


if __name__ == "__main__":
    sys.exit(main())

"""What privacy costs in time: each question through the trusted party, beside the same question in plain DuckDB."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import count
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

from bench.figures import FOLDER, Figure, Settings
from bench.timing import compare, interleave
from idios.errors import IdiosError
from idios.model import Answer
from idios.party import TrustedParty

TITLE = "Plain questions"
ABOUT = """\
Both sides read one Parquet file, turn by turn. Columns with a b have declared bounds, the others none: n and bn are
whole numbers, x and bx floats, g20, g1000 and g100000 categories with so many values. The ε is 1 at `individual` and
0.5 at `differential`. A second largest value is compared with plain DuckDB's `max(x, 2)`, and a sum or mean without
bounds both with plain SQL and with the one that has them. The first turn, which is not counted, also finds what is kept
for later questions: a sample of the column (about 20 ms), and how many records each group has. "Cores' time" is the
same ratio of the time of all cores together. Either side is timed until it has delivered an Arrow table."""
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
    expected: float | None
    level: str = "individual"
    bounded: str | None = None
    """The private question about the column with bounds that stands for the plain one."""

    @property
    def name(self) -> str:
        """What is compared, in words."""
        beside = "" if self.bounded is None else f" beside `{self.bounded}`"
        return f"`{self.private}`{beside}, {self.level}"


def list_comparisons() -> Iterator[Comparison]:
    """Every question, and what is expected of its ratio."""
    yield Comparison("MEDIAN(x)", "median(x)", 0.6)
    yield Comparison("MEDIAN(x)", "median(x)", 0.72, "differential")
    yield Comparison("QUANTILE(x, 0.9)", "quantile_cont(x, 0.9)", 0.6)
    yield Comparison("KTH_LARGEST(x, 2)", "max(x, 2)", 1)
    yield Comparison("TRIMMED_MEAN(x, 0.05)", "median(x)", None)
    yield Comparison("VARIANCE(bx)", "var_pop(bx)", None)
    for group in GROUPS:
        for level, expected in (("individual", 1.5), ("differential", 3)):
            yield Comparison(f"{group}, MEDIAN(x) BY", f"{group}, median(x) BY", expected, level)
    yield Comparison("g20, COUNT(*) BY", "g20, count(*) BY", 2.5)
    for column in ("bn", "bx"):
        yield Comparison(f"g20, AVG({column}) BY", f"g20, avg({column}) BY", 2.5)
    for column, expected in (("n", 1.6), ("bn", 1.6), ("x", 6.5), ("bx", 6.5)):
        for function in ("AVG", "SUM"):
            call = f"{function}({column})"
            for level in ("individual", "differential"):
                if column.startswith("b"):
                    yield Comparison(call, call, expected, level)
                else:  # limits are drawn first
                    yield Comparison(call, call, None, level)
                    yield Comparison(call, call, 2.5, level, bounded=f"{function}(b{column})")
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


def describe(settings: Settings) -> str:
    """How much is read."""
    return f"{settings.choose_rows(10**7, 10**6):,} rows, {settings.turns}"


def measure(settings: Settings) -> Iterator[Figure]:
    """Time each question both ways."""
    path = generate(settings.choose_rows(10**7, 10**6))
    for comparison in list_comparisons():
        what = comparison.name
        slow = settings.quick and "g100000" in what
        if settings.wants(what) and not slow:
            try:
                yield measure_one(comparison, path, settings)
            except IdiosError as error:
                yield Figure(what, None, expected=comparison.expected, note=f"refused: {error}")


def measure_one(comparison: Comparison, path: Path, settings: Settings) -> Figure:
    """Time one question both ways."""
    private, public = write_statement(comparison.private, "t"), write_statement(comparison.plain, f"'{path}'")
    bounded = None if comparison.bounded is None else write_statement(comparison.bounded, "t")
    epsilon = DIFFERENTIAL if comparison.level == "differential" else Fraction(1)
    asked = f"{private} {bounded}"
    named = {name: column for name, column in COLUMNS.items() if re.search(rf"\b{name}\b", asked)}
    with duckdb.connect() as plain, open_party(path, named or NUMBERS, comparison.level) as party:
        ask = make_asking(party, epsilon)
        ours, theirs = interleave(
            settings.repetitions,
            lambda: ask(private).to_arrow(),
            lambda: plain.execute(public).to_arrow_table() if bounded is None else ask(bounded).to_arrow(),
            seconds=settings.seconds_of_a_row,
        )
    return compare(comparison.name, ours, theirs, comparison.expected, wanted=settings.repetitions)


def open_party(path: Path, columns: Mapping[str, object], level: str) -> TrustedParty:
    """A party that never runs out, with its ledger in memory."""
    return TrustedParty.open(
        path,
        name="t",
        columns=columns,
        protection=level,
        budget=10**9,
        max_groups=10**6,
        min_epsilon=Fraction(1, 10**9),
        check=0,
    )


def make_asking(party: TrustedParty, epsilon: Fraction) -> Callable[[str], Answer]:
    """Ask with an ε that was never used before, so that no answer is stored."""
    numbers = count(1)
    return lambda text: party.query(text, epsilon + Fraction(next(numbers), 10**6))

"""Whole questions through the trusted party, beside DuckDB's plain SQL and beside peers, in the same run."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import count
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

from bench.timing import Row, best_of
from idios.party import TrustedParty

LARGE, SMALL, GROUPS = 10**7, 10**6, 20
COLUMNS = {
    "x": {"type": "number", "step": 1, "nullable": False},
    "g": {"type": "category", "values": [f"g{i}" for i in range(GROUPS)]},
}


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        yield from against_duckdb(Path(folder))
        yield from against_peers(Path(folder))


def against_duckdb(folder: Path) -> Iterator[Row]:
    """10⁷ rows of Parquet: a private answer, ledger included, beside the engine's own aggregate."""
    path = folder / "large.parquet"
    rng = np.random.default_rng(1)
    groups = pa.DictionaryArray.from_arrays(rng.integers(0, GROUPS, LARGE), COLUMNS["g"]["values"])
    parquet.write_table(pa.table({"x": rng.lognormal(10, 1, LARGE), "g": groups.cast(pa.string())}), path)
    with (
        TrustedParty.open(path, name="t", columns=COLUMNS, budget=10**9, ledger=folder / "ledger.db") as party,
        duckdb.connect() as plain,
    ):
        ask = _asking(party)
        for what, private, public, expected in (
            ("median", "SELECT MEDIAN(x) FROM t", "SELECT median(x) FROM t", 1.0),
            ("second largest", "SELECT KTH_LARGEST(x, 2) FROM t", "SELECT max(x) FROM t", None),
            ("5 % trimmed mean", "SELECT TRIMMED_MEAN(x, 0.05) FROM t", "SELECT avg(x) FROM t", None),
            (
                f"median of {GROUPS} groups",
                "SELECT g, MEDIAN(x) FROM t GROUP BY g",
                "SELECT g, median(x) FROM t GROUP BY g",
                2.0,
            ),
        ):
            sql = public.replace("FROM t", f"FROM '{path}'")
            ours, theirs = best_of(
                3, lambda private=private: ask(private), lambda sql=sql: plain.execute(sql).fetchall()
            )
            said = "any" if expected is None else f"below {expected}"
            ok = expected is None or ours < expected * theirs
            yield Row(f"{what}, 10^7 rows", ours, theirs, sql.replace(f"'{path}'", "t")[:40], said, ok)


def against_peers(folder: Path) -> Iterator[Row]:
    """A median of 10⁶ rows, ε = 1: ours without bounds from a Parquet file, theirs with bounds from memory."""
    values = np.clip(np.random.default_rng(2).lognormal(10, 1, SMALL), 0, 10**6)
    path = folder / "small.parquet"
    parquet.write_table(pa.table({"x": values}), path)
    with TrustedParty.open(
        path, name="t", columns={"x": COLUMNS["x"]}, budget=10**9, ledger=folder / "small.db"
    ) as party:
        ask = _asking(party)
        for name, peer in (("OpenDP", _opendp_median(values)), ("diffprivlib", _diffprivlib_median(values))):
            ours, theirs = best_of(2, lambda: ask("SELECT MEDIAN(x) FROM t"), peer)
            yield Row("median, 10^6 rows", ours, theirs, name, "below 1", ours < theirs)


def _asking(party: TrustedParty) -> Callable[[str], object]:
    """Ask at an ε never used before, so that no answer is stored."""
    numbers = count(1)
    return lambda sql: party.query(sql, 1 + Fraction(next(numbers), 10**6))


def _opendp_median(values: np.ndarray) -> Callable[[], object]:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    candidates = list(np.linspace(0, 10**6, 1001))
    scores = space >> dp.t.then_quantile_score_candidates(candidates, alpha=0.5)
    measurement = scores >> dp.m.then_noisy_max(dp.max_divergence(), scale=2.0, negate=True)
    listed = values.tolist()
    return lambda: measurement(listed)


def _diffprivlib_median(values: np.ndarray) -> Callable[[], object]:
    from diffprivlib.tools import median

    return lambda: median(values, epsilon=1.0, bounds=(0, 10**6))

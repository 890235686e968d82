"""Run inside a peer's environment: one question a line on standard input, its seconds and answer as JSON on the other.

    python ask.py PEER PARQUET_FILE ROWS

It imports nothing of Idios. Each peer is asked as its documentation asks for, with bounds and, where it needs them,
candidates, the keys of groups and the number of records. Every question reads the file again, and of it the one column
that it needs.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

LOW, HIGH, EPSILON = 0.0, 1e6, 1.0
NUMBER, LABEL = "bx", "g20"
LABELS = [f"g20 {i}" for i in range(20)]
CANDIDATES = [1000.0 * i for i in range(1001)]
"""Of medians, where a peer chooses among given values."""

Questions = dict[str, Callable[[], object]]


def ask_diffprivlib(path: str, rows: int) -> Questions:
    """Quantiles by the exponential mechanism, sums and means of bounded arrays; grouped counts are a histogram."""
    import numpy as np
    import pyarrow.parquet as parquet
    from diffprivlib import tools

    given = {"epsilon": EPSILON, "bounds": (LOW, HIGH)}

    def read() -> Any:
        return parquet.read_table(path, columns=[NUMBER])[NUMBER].to_numpy()

    def read_codes() -> Any:
        table = parquet.read_table(path, columns=[LABEL], read_dictionary=[LABEL])
        column = table[LABEL].unify_dictionaries().combine_chunks()
        places = np.array([LABELS.index(label) for label in column.dictionary.to_pylist()])
        return places[column.indices.to_numpy()]

    return {
        "COUNT": lambda: tools.count_nonzero(read() >= LOW, epsilon=EPSILON),
        "SUM": lambda: tools.sum(read(), **given),
        "AVG": lambda: tools.mean(read(), **given),
        "MEDIAN": lambda: tools.median(read(), **given),
        "QUANTILE": lambda: tools.quantile(read(), 0.9, **given),
        "COUNT by 20 groups": lambda: tools.histogram(
            read_codes(), epsilon=EPSILON, bins=len(LABELS), range=(0, len(LABELS))
        )[0].tolist(),
    }


def ask_opendp(path: str, rows: int) -> Questions:
    """The Polars interface, which its documentation proposes for tables."""
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib")
    number = pl.col(NUMBER).fill_nan(0.0).fill_null(0.0)
    keys = pl.LazyFrame({LABEL: LABELS})

    def ask(column: str, build: Callable[[Any], Any]) -> object:
        context = dp.Context.compositor(
            data=pl.scan_parquet(path).select(column),
            privacy_unit=dp.unit_of(contributions=1),
            privacy_loss=dp.loss_of(epsilon=EPSILON),
            split_evenly_over=1,
            margins=[dp.polars.Margin(max_length=10 * rows)],
        )
        return build(context.query()).release().collect().rows()

    def select(expression: Any) -> Callable[[], object]:
        return lambda: ask(NUMBER, lambda query: query.select(expression))

    return {
        "COUNT": select(dp.len()),
        "SUM": select(number.dp.sum((LOW, HIGH))),
        "AVG": select(number.dp.mean((LOW, HIGH))),
        "MEDIAN": select(number.dp.median(CANDIDATES)),
        "QUANTILE": select(number.dp.quantile(0.9, CANDIDATES)),
        "COUNT by 20 groups": lambda: ask(LABEL, lambda query: query.group_by(LABEL).agg(dp.len()).with_keys(keys)),
    }


def ask_opendp_vectors(path: str, rows: int) -> Questions:
    """The framework of vectors, of a known number of records; a replacement is two of its symmetric distance."""
    import opendp.prelude as dp
    import pyarrow.parquet as parquet

    dp.enable_features("contrib")
    plain = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    sized = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=rows), dp.symmetric_distance()
    clamped = sized >> dp.t.then_clamp((LOW, HIGH))

    def read() -> Any:
        return parquet.read_table(path, columns=[NUMBER])[NUMBER].to_numpy()

    def find(make: Callable[[float], Any]) -> Any:
        return dp.binary_search_chain(make, 2, EPSILON)

    def choose(share: float) -> Callable[[], object]:
        scores = plain >> dp.t.then_quantile_score_candidates(CANDIDATES, alpha=share)
        chosen = find(lambda scale: scores >> dp.m.then_noisy_max(dp.max_divergence(), scale=scale, negate=True))
        return lambda: CANDIDATES[chosen(read())]

    added = find(lambda scale: clamped >> dp.t.then_sum() >> dp.m.then_laplace(scale))
    mean = find(lambda scale: clamped >> dp.t.then_mean() >> dp.m.then_laplace(scale))
    counted = find(lambda scale: plain >> dp.t.then_count() >> dp.m.then_laplace(scale))
    return {
        "COUNT": lambda: counted(read()),
        "SUM": lambda: added(read()),
        "AVG": lambda: mean(read()),
        "MEDIAN": choose(0.5),
        "QUANTILE": choose(0.9),
    }


def ask_smartnoise(path: str, rows: int) -> Questions:
    """Questions in SQL about a frame; it has no private quantile."""
    import pandas as pd
    import snsql

    number = {"type": "float", "lower": LOW, "upper": HIGH}
    table = {"row_privacy": True, "rows": rows, NUMBER: number, LABEL: {"type": "string"}}
    privacy = snsql.Privacy(epsilon=EPSILON, delta=1e-6)

    def ask(column: str, selected: str) -> object:
        frame = pd.read_parquet(path, columns=[column])
        reader = snsql.from_df(frame, privacy=privacy, metadata={"": {"public": {"t": table}}})
        return reader.execute(f"SELECT {selected}")[1:]

    return {
        "COUNT": lambda: ask(NUMBER, "COUNT(*) AS a FROM public.t"),
        "SUM": lambda: ask(NUMBER, f"SUM({NUMBER}) AS a FROM public.t"),
        "AVG": lambda: ask(NUMBER, f"AVG({NUMBER}) AS a FROM public.t"),
        "COUNT by 20 groups": lambda: ask(LABEL, f"{LABEL}, COUNT(*) AS a FROM public.t GROUP BY {LABEL}"),
    }


def ask_tumult(path: str, rows: int) -> Questions:
    """On Spark, in this machine; each session answers one question."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession
    from tmlt.analytics import AddOneRow, KeySet, PureDPBudget, QueryBuilder, Session

    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = spark.config("spark.driver.host", "127.0.0.1").config("spark.driver.memory", "4g").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    keys = KeySet.from_dict({LABEL: LABELS})

    def ask(column: str, build: Callable[[Any], Any]) -> object:
        budget = PureDPBudget(EPSILON)
        frame = spark.read.parquet(path).select(column)
        session = Session.from_dataframe(budget, "t", frame, protected_change=AddOneRow())
        return [list(row) for row in session.evaluate(build(QueryBuilder("t")), budget).collect()]

    return {
        "COUNT": lambda: ask(NUMBER, lambda t: t.count()),
        "SUM": lambda: ask(NUMBER, lambda t: t.sum(NUMBER, LOW, HIGH)),
        "AVG": lambda: ask(NUMBER, lambda t: t.average(NUMBER, LOW, HIGH)),
        "MEDIAN": lambda: ask(NUMBER, lambda t: t.median(NUMBER, LOW, HIGH)),
        "QUANTILE": lambda: ask(NUMBER, lambda t: t.quantile(NUMBER, 0.9, LOW, HIGH)),
        "COUNT by 20 groups": lambda: ask(LABEL, lambda t: t.groupby(keys).count()),
    }


def main() -> None:
    warnings.simplefilter("ignore")
    peer, path, rows = sys.argv[1:]
    questions = globals()[f"ask_{peer}"](path, int(rows))
    print(json.dumps(list(questions)), flush=True)
    for line in sys.stdin:
        began = time.perf_counter()
        try:
            answer = questions[line.strip()]()
            found = {"seconds": time.perf_counter() - began, "answer": str(answer)}
        except Exception as error:
            found = {"error": f"{type(error).__name__}: {str(error)[:200]}"}
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()

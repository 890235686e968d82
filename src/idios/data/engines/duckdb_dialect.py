"""DuckDB's SQL: what differs from other engines."""

from __future__ import annotations

from idios.data.sql.dialect import Dialect


def _unscaled(x: str, precision: int, scale: int) -> str:
    """A product of two decimals of up to 18 digits has 18 digits, and overflows; wider ones are slower than text."""
    unit = f"CAST({10**scale} AS DECIMAL({scale + 1}, 0))"
    if precision + scale < 18:
        return f"CAST({x} * {unit} AS BIGINT)"
    if precision <= 18 and scale <= 9:
        return f"(CAST(trunc({x}) AS BIGINT) * {10**scale} + CAST(({x} - trunc({x})) * {unit} AS BIGINT))"
    return f"CAST(replace(CAST({x} AS VARCHAR), '.', '') AS HUGEINT)"


_COARSE = (
    "CASE WHEN {x} IN (CAST('infinity' AS {type}), CAST('-infinity' AS {type})) THEN NULL "
    "WHEN {x} > CAST('294247-01-10 04:00:54' AS {type}) THEN 9223372036854775807 "
    "WHEN {x} < CAST('290309-12-22 (BC)' AS {type}) THEN -9223372036854775807 ELSE epoch_us({x}) END"
)
"""A timestamp in units that reach further than microseconds of 64 bits, which is where it is cut off."""

DIALECT = Dialect(
    name="duckdb",
    compiler="duckdb",
    double="DOUBLE",
    wide="HUGEINT",
    widest=2**127 - 1,
    text="(CAST({x} AS VARCHAR) COLLATE C)",
    key="encode(CAST({x} AS VARCHAR))",  # a BLOB, which has no collation
    array="[{items}]",
    integers="BIGINT[]",
    element="list_extract({array}, {i})",
    position="list_position({array}, {x})",
    quotient="(({n}) // ({d}))",
    listed="(SELECT unnest({array}) AS label, generate_subscripts({array}, 1) AS place)",
    narrow="TRY_CAST({x} AS BIGINT)",
    # never a comparison, which DuckDB may decide by a Parquet file's statistics, and those do not count NaN
    finite="isfinite({x})",
    days="CASE WHEN isfinite({x}) THEN date_diff('day', DATE '1970-01-01', {x}) END",
    timestamps={
        # DuckDB raises where seconds or milliseconds do not fit its microseconds, in TRY_CAST too
        0: _COARSE.format(type="TIMESTAMP_S", x="{x}"),
        3: _COARSE.format(type="TIMESTAMP_MS", x="{x}"),
        6: "CASE WHEN isfinite({x}) THEN epoch_us({x}) END",
        9: "CASE WHEN isfinite({x}) THEN epoch_ns({x}) // 1000 - CAST(epoch_ns({x}) % 1000 < 0 AS BIGINT) END",
    },
    quantiles="quantile_disc({x}, {shares})",
    even_sample="random() < {share}",
    unscaled=_unscaled,
    exact_quantiles=True,
    vectorised=True,
    ends=True,
    dictionaries=True,
    hash="hash(concat_ws(',', {key}, {values}))",  # of several values it is not evenly spread
    sorted_list="list_sort(list({x}) FILTER (WHERE {x} IS NOT NULL))",
)

"""Released rows as data frames of pandas or polars, whichever is installed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from idios.errors import IdiosError


class PackageMissing(IdiosError, ImportError):
    """A data frame was asked for whose package is not installed."""


def to_pandas(columns: Sequence[str], types: Mapping[str, str], rows: Sequence[Mapping[str, Any]]) -> Any:
    """A pandas data frame; every type admits missing values."""
    try:
        import pandas as pd
    except ImportError:
        raise PackageMissing("to_pandas needs the package pandas: pip install pandas") from None
    dtypes = {"number": "float64", "date": "datetime64[s]", "timestamp": "datetime64[us]", "category": "string"}
    frame = {}
    for column in columns:
        values, kind = [row[column] for row in rows], types.get(column, "")
        dtype = "Int64" if kind == "integer" and _fits(values) else dtypes.get(kind, "object")
        frame[column] = pd.Series(values, dtype=dtype)
    return pd.DataFrame(frame, columns=list(columns))


def to_polars(columns: Sequence[str], types: Mapping[str, str], rows: Sequence[Mapping[str, Any]]) -> Any:
    """A polars data frame."""
    try:
        import polars as pl
    except ImportError:
        raise PackageMissing("to_polars needs the package polars: pip install polars") from None
    dtypes: dict[str, Any] = {
        "number": pl.Float64,
        "date": pl.Date,
        "timestamp": pl.Datetime("us"),
        "category": pl.String,
    }
    frame = []
    for column in columns:
        values, kind = [row[column] for row in rows], types.get(column, "")
        if kind == "number":
            values = [None if value is None else float(value) for value in values]
        whole = pl.Int64 if kind == "integer" and _fits(values) else pl.Object
        dtype = dtypes.get(kind, whole if kind == "integer" else pl.Null)
        frame.append(pl.Series(column, values, dtype))
    return pl.DataFrame(frame)


def _fits(values: list[int | None]) -> bool:
    """Whether whole numbers fit the 64 bits of a data frame; where they do not, they are kept as Python's own."""
    return all(value is None or -(2**63) <= value < 2**63 for value in values)

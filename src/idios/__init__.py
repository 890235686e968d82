"""Idios: the trusted party of individual differential privacy."""

from idios.errors import IdiosError
from idios.functions import (
    count,
    histogram,
    iqr,
    kth_largest,
    kth_smallest,
    maximum,
    mean,
    median,
    minimum,
    mode,
    quantile,
    total,
    trimmed_mean,
    variance,
    winsorized_mean,
)

__all__ = [
    "IdiosError",
    "count",
    "histogram",
    "iqr",
    "kth_largest",
    "kth_smallest",
    "maximum",
    "mean",
    "median",
    "minimum",
    "mode",
    "quantile",
    "total",
    "trimmed_mean",
    "variance",
    "winsorized_mean",
]

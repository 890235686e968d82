"""Idios: the trusted party of individual differential privacy."""

from idios.client import connect
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
from idios.party import TrustedParty

__all__ = [
    "IdiosError",
    "TrustedParty",
    "connect",
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

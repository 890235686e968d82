"""Idios: the trusted party of individual differential privacy."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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
    from idios.proposals import schema

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
    "schema",
    "total",
    "trimmed_mean",
    "variance",
    "winsorized_mean",
]

_MODULES = {"IdiosError": "errors", "TrustedParty": "party", "connect": "client", "schema": "proposals"}
"""Where a name is from that is none of ``functions``."""


def __getattr__(name: str) -> Any:
    """Import what a name is from on its first use: engines and ledger take a second that not everyone needs."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_MODULES.get(name, 'functions')}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)

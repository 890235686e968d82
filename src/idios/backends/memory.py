"""How much memory each engine in this process may take, so that all of them together fit the machine.

DuckDB takes up to four fifths of the machine unless told otherwise, each connection for itself. A caller that opens
several divides the memory among them; what does not fit is spilled to disk.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import duckdb

LEAST = 64
"""Mebibytes below which nothing can be computed."""

_PARTS: ContextVar[int] = ContextVar("parts of the memory", default=1)
_UNITS = {"bytes": 2**-20, "KiB": 2**-10, "MiB": 1.0, "GiB": 2.0**10, "TiB": 2.0**20}


@contextmanager
def divided(parts: int) -> Iterator[None]:
    """Give each connection that is opened inside 1/``parts`` of the memory it would have had."""
    token = _PARTS.set(_PARTS.get() * max(1, parts))
    try:
        yield
    finally:
        _PARTS.reset(token)


def limit_memory(connection: duckdb.DuckDBPyConnection) -> None:
    """Limit a connection to its part of what DuckDB found to be there, containers' limits included."""
    if _PARTS.get() > 1:
        part = max(LEAST, int(mebibytes(connection) / _PARTS.get()))
        connection.execute(f"SET memory_limit = '{part}MiB'")


def mebibytes(connection: duckdb.DuckDBPyConnection) -> float:
    """The memory that a connection may take."""
    row = connection.execute("SELECT current_setting('memory_limit')").fetchone()
    written = re.fullmatch(r"([0-9.]+) (\w+)", str(row[0])) if row else None
    if written is None:
        raise AssertionError("DuckDB writes its memory limit as a number and a unit")
    return float(written[1]) * _UNITS[written[2]]

"""Which data sets are about the same people, as far as their sources tell.

Two data sets over one table are two budgets for the same people: what both release about a person adds up. Whether two
sources are one is told by public facts alone: a file by its place on the disk, whatever it is called there, and a table
by its name and its database. A copy, a view or another name of a host cannot be told from other people's data.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping
from urllib.parse import parse_qsl, unquote, urlsplit

from idios.backends.base import split_table_name
from idios.errors import SourceError

_HERE = ("", "localhost", "127.0.0.1", "::1")


def sharing(sources: Mapping[str, str]) -> list[tuple[str, ...]]:
    """The names of the data sets of every source that has several of them.

    >>> sharing({"people": "spark:people", "adults": "spark:default.People", "firms": "spark:firms"})
    [('people', 'adults')]
    """
    found: dict[Hashable, list[str]] = {}
    for name, source in sources.items():
        found.setdefault(_identity(source), []).append(name)
    return [tuple(names) for names in found.values() if len(names) > 1]


def _identity(source: str) -> Hashable:
    if source.startswith(("postgresql://", "postgres://")):
        return _database(source)
    if source.startswith("spark:"):
        return "spark", _table(source.removeprefix("spark:").lower(), "default")
    path, _, table = source.partition("::")
    within = _table(table.lower(), "main") if table else ()
    try:
        facts = os.stat(path)
    except OSError:
        return "path", os.path.realpath(path), within
    return "file", facts.st_dev, facts.st_ino, within


def _database(source: str) -> Hashable:
    """Host, port, database and table, without the user, who sees the same table as others."""
    parts = urlsplit(source)
    options = dict(parse_qsl(parts.query))
    try:
        host, port = parts.hostname or "", parts.port
    except ValueError:  # several hosts, or a port that is none
        host, port = parts.netloc.rpartition("@")[2].lower(), None
    host = options.get("host", unquote(host)).lower()
    user = options.get("user", unquote(parts.username or ""))
    base = options.get("dbname", unquote(parts.path.removeprefix("/"))) or user
    where = "" if host in _HERE or host.startswith("/") else host  # a socket is of this machine
    return "postgresql", where, options.get("port", str(port or 5432)), base, _table(options.get("table", ""), "public")


def _table(written: str, usual: str) -> tuple[str, ...]:
    """A table by its schema and name; the schema is left out where it is the usual one."""
    try:
        parts = split_table_name(written)[-2:]
    except SourceError:  # raised when the source is opened
        return (written,)
    return parts[1:] if len(parts) == 2 and parts[0] == usual else parts

"""The address of a data set in Spark, and the settings of its session, as a configuration writes them.

    spark://master:7077?table=people             a table or view of the session's catalogue, on a standalone master
    spark://master:7077?path=/data/people        a folder of Parquet files, or one file; any URL that Spark can read
    spark:local[2]?path=/data/people             the same in this process, in two threads
    sc://host:15002?table=people                 Spark Connect; sc://host:15002/;token=…;use_ssl=true?table=people

Rules:

1. A name or path is written as in any URL: ``%26`` is ``&``. A plus sign is a plus sign.
2. What is shown of an address is its hosts: parameters of Spark Connect may hold a token.
3. Nothing that decides what a statement computes can be set in a configuration (``RESERVED``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

from idios.errors import InvalidInput, SourceError

MASTER_PORT = 7077
CONNECT_PORT = 15002

_ADDRESS = re.compile(r"(?:spark://|sc://|spark:local(?:\[[^]]*\])?\?)")
_LOCAL = re.compile(r"local(?:\[(?:\*|[1-9][0-9]{0,3})(?:,[0-9]{1,3})?\])?")
_HOST = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::(?P<port>[0-9]{1,5}))?")

WRITTEN = "write spark://host:7077?table=name, spark:local[2]?path=/folder or sc://host:15002?table=name"


@dataclass(frozen=True)
class SparkAddress:
    """Where a session runs, and what it reads there: a table or the files of a path."""

    kind: str
    """``spark``, ``local`` or ``sc``."""
    url: str = field(repr=False)
    """As Spark takes it: ``spark://host:port``, ``local[2]`` or ``sc://host:port/;token=…``."""
    hosts: tuple[tuple[str, int], ...]
    table: str = ""
    path: str = ""

    @property
    def connects(self) -> bool:
        """Whether it is Spark Connect: the session runs at the other end."""
        return self.kind == "sc"

    @property
    def shown(self) -> str:
        """The address without its secrets, and without what is read there."""
        if self.kind == "local":
            return self.url
        return f"{self.kind}://{','.join(f'{host}:{port}' for host, port in self.hosts)}"


def is_spark(source: object) -> bool:
    """Whether a source is one of Spark: an address, ``spark:table`` or a pair of a session and a table."""
    return isinstance(source, tuple) or (isinstance(source, str) and source.startswith(("spark:", "sc://")))


def read_address(source: str) -> SparkAddress | None:
    """An address in its parts; None for ``spark:table``, which names no place.

    >>> read_address("spark://a,b:7078?path=/data/people").shown
    'spark://a:7077,b:7078'
    >>> read_address("spark:people") is None
    True
    """
    if not _ADDRESS.match(source):
        return None
    place, _, query = source.partition("?")
    hosts: tuple[tuple[str, int], ...]
    if place.startswith("spark:local"):
        kind, url, hosts = "local", place.removeprefix("spark:"), ()
        if not _LOCAL.fullmatch(url):
            raise SourceError(f"{url!r} says not how many threads to use, as local[2] does: {WRITTEN}")
    else:
        kind, url, hosts = _read_place(place)
    address = SparkAddress(kind, url, hosts)
    read = dict(_read_query(query, address))
    if len(read) != 1:
        raise SourceError(f"name what to read at {address.shown}, either ?table=name or ?path=/folder")
    return SparkAddress(kind, url, hosts, **read)


def _read_place(place: str) -> tuple[str, str, tuple[tuple[str, int], ...]]:
    kind, _, rest = place.partition("://")
    named, slash, parameters = rest.partition("/")
    written = named.split(",") if kind == "spark" else [named]
    matches = [_HOST.fullmatch(each) for each in written]
    if (slash and (kind == "spark" or not parameters.startswith(";"))) or not all(matches):
        raise SourceError(f"an address of Spark has hosts and ports, and no user or folder: {WRITTEN}")
    usual = MASTER_PORT if kind == "spark" else CONNECT_PORT
    hosts = tuple((match["host"], int(match["port"] or usual)) for match in matches if match)
    url = f"{kind}://{','.join(f'{host}:{port}' for host, port in hosts)}"
    return kind, f"{url}/{parameters}" if parameters else url, hosts


def _read_query(query: str, address: SparkAddress) -> Iterator[tuple[str, str]]:
    for part in query.split("&") if query else ():
        key, _, value = part.partition("=")
        read = unquote(value)
        if key not in ("table", "path") or not read:
            raise SourceError(
                f"an address of Spark has ?table=name or ?path=/folder after {address.shown}, got {key!r}"
            )
        if key == "path" and not (read.startswith("/") or urlsplit(read).scheme):
            raise SourceError(f"a path in Spark begins with / or names its file system, as s3a://…, got {read!r}")
        yield key, read


DEFAULTS = {
    "spark.app.name": "idios",
    "spark.ui.enabled": "false",  # it shows anybody how many records each step gave
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.scheduler.mode": "FAIR",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "30s",
    "spark.network.timeout": "60s",
    "spark.executor.heartbeatInterval": "5s",
    "spark.rpc.askTimeout": "30s",
    "spark.rpc.lookupTimeout": "30s",
    "spark.storage.blockManagerHeartbeatTimeoutMs": "60s",
}
"""What a session has unless the configuration says otherwise: fair turns, and nothing that waits for minutes."""

MEANING = {
    "spark.sql.ansi.enabled": "true",  # what overflows is an error, and no other number
    "spark.sql.caseSensitive": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.avro.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
}
"""What every session is set to, whatever its server or its owner set: all records of all files are read, and dates
before 1582 as they stand there; without this, Spark 3 raises for one."""

RESERVED = (
    "spark.master",
    "spark.remote",
    "spark.submit.",
    *MEANING,
    "spark.sql.ansi.",
    "spark.sql.decimalOperations.",
    "spark.sql.files.ignore",
    "spark.sql.groupBy",
    "spark.sql.legacy.",
    "spark.sql.mapKeyDedupPolicy",
    "spark.sql.orderBy",
    "spark.sql.parquet.binaryAsString",
    "spark.sql.parquet.fieldId.",
    "spark.sql.parquet.inferTimestampNTZ.",
    "spark.sql.parquet.int96AsTimestamp",
    "spark.sql.parser.",
    "spark.sql.readSideCharPadding",
    "spark.sql.storeAssignmentPolicy",
    "spark.sql.variable.substitute",
)
"""The beginnings of settings that a configuration cannot make: they say what is read, or what a statement means.

What a server or an owner of a session set of these, and is not in ``MEANING``, returns to Spark's own default."""


def read_session_settings(given: Any) -> dict[str, str]:
    """Check ``[spark]``: Spark's own names, as text or as tables within tables, and their values as Spark writes them.

    >>> read_session_settings({"spark.executor.memory": "8g", "spark": {"cores": {"max": 16}}})
    {'spark.executor.memory': '8g', 'spark.cores.max': '16'}
    """
    if not isinstance(given, Mapping):
        raise InvalidInput(f"[spark] must be a table of Spark's settings, got {given!r}")
    settings = dict(_flatten(given, ""))
    for name in settings:
        if not name.startswith("spark."):
            raise InvalidInput(f'[spark]: settings have Spark\'s own names, as "spark.executor.memory"; got {name!r}')
        if name.startswith(RESERVED):
            raise InvalidInput(f"[spark]: {name} cannot be set: it could change what is read, or what it means")
    return settings


def _flatten(table: Mapping[str, Any], before: str) -> Iterator[tuple[str, str]]:
    for key, value in table.items():
        name = f"{before}{key}"
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{name}.")
        elif isinstance(value, bool):
            yield name, "true" if value else "false"
        elif isinstance(value, str | int):
            yield name, str(value)
        else:
            raise InvalidInput(f"[spark]: {name} must be text, a whole number, true or false, got {value!r}")

"""``idios.toml`` and the environment: what a controller configures, read strictly.

Rules:

1. A key that is not known is an error that lists the known ones; nothing is ignored.
2. The environment replaces what the file says of the server and the ledger: IDIOS_HOST, IDIOS_PORT, … name the keys of
   ``[server]``, IDIOS_LEDGER_URL and IDIOS_LEDGER_KEY_FILE those of ``[ledger]``. A command's own flags come before
   both.
3. Two data sets over one table are two budgets for the same people, and what both release about a person adds up: the
   file must say that this is meant.
"""

from __future__ import annotations

import logging
import os
import re
import tomllib
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from idios.core.exact import text
from idios.data.backend import split_table_name
from idios.data.engines.spark_address import read_address, read_session_settings
from idios.datasets import DatasetConfig, declare, find_promise
from idios.display import FRESH_BUDGET
from idios.errors import ConfigurationError, InvalidInput, SourceError
from idios.ledger import Ledger
from idios.linked_datasets import link_datasets

LEDGER_KEYS = ("url", "key_file")
LEDGER_VARIABLES = {"url": "IDIOS_LEDGER_URL", "key_file": "IDIOS_LEDGER_KEY_FILE"}
PREFIX = "IDIOS_"
ANY_PROXY = "*"
NARROWEST = (8, 16)
"""How long a prefix of a network of proxies is at least, of IPv4 and of IPv6, unless it is the whole world."""

log = logging.getLogger("idios.controller")


@dataclass(frozen=True)
class Settings:
    """``[server]``: how the server listens, and how much of it each caller may use."""

    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    tls_cert: str = ""
    tls_key: str = ""
    behind_proxy: str = ""
    requests_per_minute: int = 600
    requests_per_minute_address: int = 1200
    concurrent_questions: int = 8
    waiting_questions: int = 128
    question_seconds: int = 600
    wait_seconds: int = 30
    shutdown_seconds: int = 30
    body_bytes: int = 65_536
    session_hours: int = 12
    log_questions: bool = False

    def __post_init__(self) -> None:
        for setting in fields(self):
            value = getattr(self, setting.name)
            if setting.type != "int":
                continue
            least = 0 if setting.name in ("port", "shutdown_seconds", "waiting_questions") else 1
            if value < least:
                raise ConfigurationError(f"[server]: {setting.name} must be at least {least}, got {value}")
        if self.port > 65_535:
            raise ConfigurationError(f"[server]: port must be at most 65535, got {self.port}")
        if bool(self.tls_cert) != bool(self.tls_key):
            raise ConfigurationError("[server]: TLS needs both tls_cert and tls_key, the files of a certificate")
        if not all(_is_proxy(address) for address in self.proxies):
            raise ConfigurationError(
                "[server]: behind_proxy must be the address of a proxy or its network, such as 127.0.0.1 or "
                f"10.1.2.0/24, several with commas between; got {self.behind_proxy!r}"
            )

    @property
    def proxies(self) -> list[str]:
        """The addresses and networks whose X-Forwarded headers are believed."""
        return [address.strip() for address in self.behind_proxy.split(",")] if self.behind_proxy else []

    @property
    def believes_anybody(self) -> bool:
        """Whether the believed networks are too large to be the operator's own proxies."""
        return any(
            address == ANY_PROXY or ("/" in address and ip_network(address).prefixlen < NARROWEST[":" in address])
            for address in self.proxies
        )


SERVER_KEYS = tuple(setting.name for setting in fields(Settings))


@dataclass(frozen=True)
class Configuration:
    """A whole ``idios.toml``; paths in it are relative to its own folder."""

    file: Path
    folder: Path
    ledger_url: str = field(repr=False)  # an address may hold a password
    key_file: Path | None
    datasets: Mapping[str, DatasetConfig]
    server: Settings

    @property
    def tables(self) -> dict[str, DatasetConfig]:
        """All that is declared, by name: data sets, and what is linked to each."""
        return {name: each for dataset in self.datasets.values() for name, each in dataset.tables.items()}


def read_configuration(path: str | Path, environment: Mapping[str, str] | None = None) -> Configuration:
    """Read and check a configuration file; what the environment says of the ledger and the server comes first."""
    variables = os.environ if environment is None else environment
    file = Path(path)
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigurationError(f"there is no configuration file {file}; `idios init` writes one") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigurationError(f"{file} cannot be read: {error}") from None
    _refuse_unknown(content, ("ledger", "server", "spark", "datasets"), str(file))
    folder = file.resolve().parent
    tables = _table(content, "datasets", str(file))
    if not tables:
        raise ConfigurationError(f"{file} declares no data set: add a table [datasets.NAME]")
    ledger = dict(_table(content, "ledger", str(file)))
    _refuse_unknown(ledger, LEDGER_KEYS, "[ledger]")
    ledger |= {key: variables[name] for key, name in LEDGER_VARIABLES.items() if name in variables}
    url = str(ledger.get("url", "sqlite:///ledger.db"))
    if url.startswith("sqlite:///") and not url.startswith("sqlite:////"):
        url = f"sqlite:///{folder / url.removeprefix('sqlite:///')}"
    key_file = folder / str(ledger["key_file"]) if "key_file" in ledger else None
    try:
        settings = read_session_settings(content.get("spark", {}))
        declared = {name: declare(name, _table(tables, name, str(file)), folder) for name in tables}
        datasets = {
            name: replace(config, session_settings=settings) for name, config in link_datasets(declared).items()
        }
    except InvalidInput as error:
        raise ConfigurationError(str(error)) from None
    _refuse_shared_sources({name: config for name, config in declared.items() if not config.dataset.public})
    return Configuration(
        file, folder, url, key_file, datasets, read_settings(_table(content, "server", str(file)), variables)
    )


def read_settings(table: Mapping[str, Any], environment: Mapping[str, str]) -> Settings:
    """Check what is declared of the server; the environment replaces what the file says.

    >>> read_settings({"port": 8080}, {"IDIOS_PORT": "9000", "IDIOS_LOG_QUESTIONS": "true"}).port
    9000
    """
    _refuse_unknown(table, SERVER_KEYS, "[server]")
    settings = {key: _check_type(key, value, "[server]") for key, value in table.items()}
    for key in SERVER_KEYS:
        variable = PREFIX + key.upper()
        if variable in environment:
            value = _parse_variable(key, environment[variable])
            settings[key] = _check_type(key, value, f"the environment's {variable}")
    return Settings(**settings)


def _parse_variable(key: str, written: str) -> Any:
    """A variable's text as the type of its key, or the text itself where it is no such value."""
    kind = type(getattr(Settings, key))
    if kind is int and re.fullmatch("-?[0-9]{1,20}", written.strip()):
        return int(written)
    if kind is bool and written.strip().lower() in ("true", "false"):
        return written.strip().lower() == "true"
    return written


def _check_type(key: str, value: Any, where: str) -> Any:
    kind = type(getattr(Settings, key))
    if type(value) is not kind:
        required = {int: "a whole number", bool: "true or false", str: "text"}[kind]
        raise ConfigurationError(f"{where}: {key} must be {required}, got {value!r}")
    return value


def _is_proxy(written: str) -> bool:
    """Whether uvicorn can match it: an address or a network, as a host name would match no address."""
    try:
        return written == ANY_PROXY or bool(ip_network(written) if "/" in written else ip_address(written))
    except ValueError:
        return False


def _refuse_unknown(table: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    unknown = [key for key in table if key not in known]
    if unknown:
        raise ConfigurationError(f"{where}: {unknown[0]!r} is not known; known are {', '.join(known)}")


def _table(content: Mapping[str, Any], key: str, where: str) -> Mapping[str, Any]:
    table = content.get(key, {})
    if not isinstance(table, Mapping):
        raise ConfigurationError(f"{where}: {key} must be a table")
    return table


# Data sets about the same people.


def find_shared_sources(sources: Mapping[str, str]) -> list[tuple[str, ...]]:
    """The names of the data sets of every source that has several of them.

    Public facts alone tell whether two sources are one: a file's place on the disk, whatever its name there, and a
    table's name and database. A copy, a view or another name of a host cannot be told from other people's data.

    >>> find_shared_sources({"people": "spark:people", "adults": "spark:default.People", "firms": "spark:firms"})
    [('people', 'adults')]
    """
    names_by_source: dict[Hashable, list[str]] = {}
    for name, source in sources.items():
        names_by_source.setdefault(_identify_source(source), []).append(name)
    return [tuple(names) for names in names_by_source.values() if len(names) > 1]


def warn_of_shared_sources(configuration: Configuration, names: Collection[str], ledger: Ledger) -> None:
    """Tell the controller what those of these data sets that share a source may cost the people in it together."""
    for shared in find_shared_sources({name: configuration.datasets[name].source for name in names}):
        declared = {name: configuration.datasets[name].dataset.budget for name in shared}
        budgets = {name: budget.epsilon for name, budget in declared.items() if budget is not None}
        recorded = {each.dataset: each.epsilon for each in ledger.datasets()}
        total = sum((recorded.get(name, budget) for name, budget in budgets.items()), Fraction(0))
        promises = {name: str(find_promise(configuration.datasets[name].dataset)) for name in budgets}
        differ = "; their promises differ, and the sum is of none of them: " if len(set(promises.values())) > 1 else ""
        log.warning(
            "%s have one source: about the same people up to ε = %s may be spent, the sum of their budgets%s",
            " and ".join(shared),
            text(total),
            differ and differ + "; ".join(f"{name} is {promise}" for name, promise in promises.items()),
        )


def warn_of_fresh_budgets(declared: Collection[str], ledger: Ledger) -> None:
    """Tell the controller that data sets are new where others were given up: they may be about the same people."""
    recorded = [each.dataset for each in ledger.datasets(retired=True)]
    new = [name for name in declared if name not in recorded]
    given_up = [ledger.balance(name) for name in recorded if name not in declared or ledger.retired(name)]
    if new and (spent := [balance for balance in given_up if balance.epsilon.spent]):
        log.warning(
            "new to the ledger, with a budget of its own: %s; on record, and declared no more or retired: %s. %s",
            ", ".join(new),
            ", ".join(f"{each.dataset} (ε = {text(each.epsilon.spent)} spent, {each.promise})" for each in spent),
            FRESH_BUDGET,
        )


def _refuse_shared_sources(datasets: Mapping[str, DatasetConfig]) -> None:
    """Refuse two budgets for the same people, unless each of them is declared to share its source."""
    for names in find_shared_sources({name: config.source for name, config in datasets.items()}):
        if not all(datasets[name].shares_source for name in names):
            tables = " and ".join(f"[datasets.{name}]" for name in names)
            count = "two" if len(names) == 2 else len(names)
            raise ConfigurationError(
                f"{tables} have one source: they are {count} budgets for the same people, whose ε add up. Declare one "
                "data set, or shares_source = true in each of them if that is meant"
            )


def _identify_source(source: str) -> Hashable:
    if source.startswith(("postgresql://", "postgres://")):
        return _identify_postgresql(source)
    if source.startswith(("spark:", "sc://")):
        return _identify_spark(source)
    path, _, table = source.partition("::")
    within = _identify_table(table.lower(), "main") if table else ()
    try:
        status = os.stat(path)
    except OSError:
        return "path", os.path.realpath(path), within
    return "file", status.st_dev, status.st_ino, within


def _identify_spark(source: str) -> Hashable:
    """A table by its name, as a process has one master, and the host of Spark Connect; a path by itself."""
    try:
        address = read_address(source)
    except SourceError:  # raised when the source is opened
        return "spark", source
    if address is not None and address.path:
        path = address.path.rstrip("/")
        local = re.sub("^file:(///?)?(?=/)", "", path)
        return _identify_source(local) if local.startswith("/") else ("path", path)
    table = source.removeprefix("spark:") if address is None else address.table
    place = address.hosts if address is not None and address.connects else ()
    return "spark", *place, _identify_table(table.lower(), "default")


def _identify_postgresql(source: str) -> Hashable:
    """Host, port, database and table, without the user, who sees the same table as others."""
    parts = urlsplit(source)
    options = dict(parse_qsl(parts.query))
    try:
        host, port = parts.hostname or "", parts.port
    except ValueError:  # several hosts, or a port that is none
        host, port = parts.netloc.rpartition("@")[2].lower(), None
    host = options.get("host", unquote(host)).lower()
    user = options.get("user", unquote(parts.username or ""))
    database = options.get("dbname", unquote(parts.path.removeprefix("/"))) or user
    if host in ("localhost", "127.0.0.1", "::1") or host.startswith("/"):  # a socket is of this machine
        host = ""
    table = _identify_table(options.get("table", ""), "public")
    return "postgresql", host, options.get("port", str(port or 5432)), database, table


def _identify_table(written: str, default_schema: str) -> tuple[str, ...]:
    """A table by its schema and name; the schema is left out where it is the default."""
    try:
        parts = split_table_name(written)[-2:]
    except SourceError:  # raised when the source is opened
        return (written,)
    return parts[1:] if len(parts) == 2 and parts[0] == default_schema else parts

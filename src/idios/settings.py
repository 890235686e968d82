"""``[server]`` of ``idios.toml``, and the environment, which has the last word.

A container is configured by its environment: IDIOS_HOST, IDIOS_PORT, … name the keys of ``[server]``, and
IDIOS_LEDGER_URL and IDIOS_LEDGER_KEY_FILE those of ``[ledger]``. A command's own flags come before both.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from ipaddress import ip_address, ip_network
from typing import Any

from idios.errors import ConfigurationError

PREFIX = "IDIOS_"
EVERYBODY = "*"
NARROWEST = (8, 16)
"""How long a prefix of a network of proxies is at least, of IPv4 and of IPv6, unless it is the whole world."""
LEDGER_VARIABLES = {"url": "IDIOS_LEDGER_URL", "key_file": "IDIOS_LEDGER_KEY_FILE"}


@dataclass(frozen=True)
class Settings:
    """How the server listens, and how much of it each caller may use."""

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
        for field in fields(self):
            value = getattr(self, field.name)
            if field.type != "int":
                continue
            least = 0 if field.name in ("port", "shutdown_seconds", "waiting_questions") else 1
            if value < least:
                raise ConfigurationError(f"[server]: {field.name} must be at least {least}, got {value}")
        if self.port > 65_535:
            raise ConfigurationError(f"[server]: port must be at most 65535, got {self.port}")
        if bool(self.tls_cert) != bool(self.tls_key):
            raise ConfigurationError("[server]: TLS needs both tls_cert and tls_key, the files of a certificate")
        if not all(_is_proxy(written) for written in self.proxies):
            raise ConfigurationError(
                "[server]: behind_proxy must be the address of a proxy or its network, such as 127.0.0.1 or "
                f"10.1.2.0/24, several with commas between; got {self.behind_proxy!r}"
            )

    @property
    def proxies(self) -> list[str]:
        """The addresses and networks whose X-Forwarded headers are believed."""
        return [written.strip() for written in self.behind_proxy.split(",")] if self.behind_proxy else []

    @property
    def believes_anybody(self) -> bool:
        """Whether the believed networks are too large to be the operator's own proxies."""
        return any(
            written == EVERYBODY or ("/" in written and ip_network(written).prefixlen < NARROWEST[":" in written])
            for written in self.proxies
        )


def _is_proxy(written: str) -> bool:
    """Whether uvicorn can match it: an address or a network, as a host name would match no address."""
    try:
        return written == EVERYBODY or bool(ip_network(written) if "/" in written else ip_address(written))
    except ValueError:
        return False


SERVER_KEYS = tuple(field.name for field in fields(Settings))


def read_settings(table: Mapping[str, Any], environment: Mapping[str, str]) -> Settings:
    """Check what is declared of the server; the environment replaces what the file says.

    >>> read_settings({"port": 8080}, {"IDIOS_PORT": "9000", "IDIOS_LOG_QUESTIONS": "true"}).port
    9000
    """
    unknown = [key for key in table if key not in SERVER_KEYS]
    if unknown:
        raise ConfigurationError(f"[server]: {unknown[0]!r} is not known; known are {', '.join(SERVER_KEYS)}")
    given = {key: _typed(key, value, "[server]") for key, value in table.items()}
    for key in SERVER_KEYS:
        variable = PREFIX + key.upper()
        if variable in environment:
            given[key] = _typed(key, _read(key, environment[variable]), f"the environment's {variable}")
    return Settings(**given)


def _kind(key: str) -> type:
    return type(getattr(Settings, key))


def _read(key: str, text: str) -> Any:
    """A variable's text as the type of its key, or the text itself where it is none."""
    if _kind(key) is int and re.fullmatch("-?[0-9]{1,20}", text.strip()):
        return int(text)
    if _kind(key) is bool and text.strip().lower() in ("true", "false"):
        return text.strip().lower() == "true"
    return text


def _typed(key: str, value: Any, where: str) -> Any:
    kind = _kind(key)
    if type(value) is not kind:
        wanted = {int: "a whole number", bool: "true or false", str: "text"}[kind]
        raise ConfigurationError(f"{where}: {key} must be {wanted}, got {value!r}")
    return value

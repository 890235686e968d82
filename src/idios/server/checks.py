"""Checks before the first request, by public facts alone: what a server refuses to serve, and what it warns about."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterable

from idios.config import Configuration, Settings
from idios.core.calibration import Level
from idios.core.domain import Categories
from idios.core.sampling import Source
from idios.datasets import DatasetConfig
from idios.errors import ConfigurationError
from idios.ledger import Ledger, Role

LEAST_EPSILON = 0.01
"""The smallest ``min_epsilon`` that is declared without a warning."""
ATTACK = (
    "At this level the noise is fitted to the actual data, and how much of it there is (or whether an answer is exact) "
    "tells an analyst about single records: one MEDIAN of a column of 0s and 1000s shows on which side of a threshold "
    "the data lies, whatever ε."
)
REMEDY = (
    'Declare protection = "differential", which holds against any attacker: it answers everything whose columns have '
    "public bounds, and with a declared delta also medians and other robust statistics of columns without bounds. Or, "
    'if every analyst would be trusted with the data itself, declare analysts = "trusted".'
)


def check_levels(datasets: Iterable[DatasetConfig]) -> None:
    """Refuse the levels that published attacks break, unless the controller says that analysts are trusted."""
    for declared in datasets:
        level = declared.dataset.protection.level
        if level is not Level.DIFFERENTIAL and not declared.analysts_trusted:
            raise ConfigurationError(
                f'[datasets.{declared.dataset.name}] is declared with protection = "{level}", which is not served to '
                f"analysts who are not trusted. {ATTACK} {REMEDY}"
            )


def check_source(source: Source | None) -> None:
    """Refuse a seeded source of noise, which a caller could predict."""
    if source is not None and not source.secure:
        raise ConfigurationError("a seeded source of noise is for tests; a server draws from the operating system")


def list_dataset_risks(declared: DatasetConfig) -> list[str]:
    """List what is risky in a declaration, for the controller to read."""
    dataset = declared.dataset
    protection = dataset.protection
    risks = []
    private = protection.level is Level.DIFFERENTIAL
    if not private:
        risks.append(f'protection = "{protection.level}": {ATTACK}')
        if protection.floor == 0:
            risks.append(
                "floor = 0: answers can be exact, and whether one is shows on which side of a threshold it is."
            )
        unbounded = [
            name
            for name, column in dataset.columns.items()
            if not isinstance(column.domain, Categories) and not column.domain.bounded
        ]
        if unbounded:
            risks.append(
                f"extremes (MIN, MAX, KTH_LARGEST, KTH_SMALLEST) of {', '.join(unbounded)}: their noise follows the "
                "gap between the largest records, so that repeated questions show whether one record stands out."
            )
    if dataset.min_epsilon < LEAST_EPSILON:
        risks.append(
            f"min_epsilon = {float(dataset.min_epsilon):g}: nearly free questions can be asked by the thousand; 0.05 "
            "is usual."
        )
    if dataset.parameters.quantile is None or dataset.parameters.k is None or dataset.parameters.trim is None:
        risks.append("parameters: a lifted restriction lets a rank be slid across the data one record at a time.")
    if private and declared.release_seconds == 0:
        risks.append("release_seconds = 0: how long an answer takes tells about the data.")
    return risks


def list_address_risks(settings: Settings) -> list[str]:
    """List what is risky about where the server listens."""
    risks = []
    local = settings.host in ("localhost", "::1") or settings.host.startswith("127.")
    if not (local or settings.tls_cert or settings.behind_proxy):
        risks.append("Tokens travel in the clear: give --tls-cert and --tls-key, or listen on 127.0.0.1 behind a proxy")
    if settings.believes_anybody:
        risks.append(
            f"--behind-proxy {settings.behind_proxy} believes any client about their address, so that no limit by "
            "address holds, not even on failed sign-ins: name the address of the proxy alone"
        )
    return risks


def check_address(settings: Settings) -> None:
    """Refuse an address or a certificate that cannot be used, in one line and before anything is opened."""
    if settings.tls_cert:
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(settings.tls_cert, settings.tls_key or None)
        except OSError as error:  # an SSLError is one too
            raise ConfigurationError(
                f"the certificate {settings.tls_cert} with the key {settings.tls_key} cannot be used: "
                f"{error.strerror or error}"
            ) from None
    try:
        family, kind, _, _, address = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
    except OSError as error:
        raise ConfigurationError(
            f"the server cannot listen on {settings.host} port {settings.port}: {error.strerror}; choose another with "
            "--host and --port"
        ) from None


def list_next_steps(configuration: Configuration) -> list[str]:
    """List what a controller still has to do before they or an analyst can sign in."""
    with Ledger.open(configuration.ledger_url, configuration.key_file) as ledger:
        roles = {token.role for token in ledger.tokens() if token.revoked is None}
    hints = {
        Role.CONTROLLER: "No controller has a token yet: idios analyst token NAME --controller",
        Role.ANALYST: "No analyst has a token yet: idios analyst add NAME, then grant NAME DATASET, then token NAME",
    }
    return [hint for role, hint in hints.items() if role not in roles]

"""What an analyst imports: a trusted party on a server.

``idios.connect`` gives a ``RemoteParty``; its answers, quotes and errors are those of a party on this machine.
"""

from __future__ import annotations

import os

from idios.client.error_mapping import ServerError
from idios.client.remote import RemoteParty
from idios.core.exact import positive
from idios.display import Listing
from idios.errors import InvalidInput
from idios.model import Account, Balance, ColumnFacts, DatasetFacts, FunctionFacts, Holder, ReleasedAnswer

TOKEN_VARIABLE = "IDIOS_TOKEN"

__all__ = [
    "Account",
    "Balance",
    "ColumnFacts",
    "DatasetFacts",
    "FunctionFacts",
    "Holder",
    "Listing",
    "ReleasedAnswer",
    "RemoteParty",
    "ServerError",
    "connect",
]


def connect(url: str, token: str | None = None, *, timeout: float = 900, insecure: bool = False) -> RemoteParty:
    """Connect to an Idios server; the token is the one the controller handed out, or that in ``IDIOS_TOKEN``.

    ``timeout`` is the most seconds one call may take in all, retries and waiting included. Over ``http://`` the token
    travels in the clear, so that is refused beyond this machine unless ``insecure`` is true.

    >>> idios.connect("http://idios.example.org", "secret")
    Traceback (most recent call last):
    idios.errors.InvalidInput: http://idios.example.org would carry the token in the clear; use https://, ...
    """
    secret = os.environ.get(TOKEN_VARIABLE) if token is None else token
    if not secret:
        raise InvalidInput(f"a token is needed: pass token=… or set {TOKEN_VARIABLE}; the controller issues tokens")
    from idios.client.transport import Transport, open_http  # here: importing httpx2 takes longer than the rest

    transport = Transport(open_http(url, secret, insecure=insecure), secret, float(positive(timeout, "timeout")))
    try:
        return RemoteParty(transport)
    except BaseException:
        transport.close()
        raise

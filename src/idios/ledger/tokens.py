"""Analysts' tokens: 256 random bits, shown once, kept as their SHA-256."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from datetime import datetime, timedelta

from idios.errors import InvalidInput, NotPermitted
from idios.ledger.facts import TokenIssued
from idios.ledger.names import moment
from idios.ledger.rows import Book, Token

LIFETIME = timedelta(days=90)
_NAME = 16


def new_token(analyst: str, now: datetime, lifetime: timedelta) -> tuple[str, TokenIssued]:
    """A token for the analyst, and the fact that it was issued, which does not contain it."""
    if lifetime <= timedelta(0):
        raise InvalidInput(f"a token lives for a time above 0, not {lifetime}")
    try:
        expires = now + lifetime
    except OverflowError:
        raise InvalidInput(f"a token cannot live for {lifetime}; give some days or years") from None
    secret = secrets.token_urlsafe(32)
    digest = _digest(secret)
    return secret, TokenIssued(digest[:_NAME], digest, analyst, moment(expires))


def holder(book: Book, secret: str, now: datetime) -> str:
    """The analyst who holds the token; one message for every token that is not valid."""
    digest = _digest(secret)
    # The time of the lookup tells a stranger nothing: to come near a stored name he has to invert SHA-256.
    found = book.find(Token, digest[:_NAME])
    same = hmac.compare_digest(digest, digest[::-1] if found is None else found.digest)
    if found is None or not same or found.revoked is not None or found.expires <= moment(now):
        raise NotPermitted("the token is unknown, revoked or expired; ask the controller for a new one")
    return found.analyst


def _digest(secret: str) -> str:
    # Whatever arrives over the network has a digest; "surrogatepass" keeps broken text from being an error.
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()

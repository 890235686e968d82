"""Tokens of analysts and controllers: 256 random bits, shown once, kept as their SHA-256."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from datetime import datetime, timedelta

from idios.errors import InvalidInput, NotPermitted
from idios.ledger.facts import ControllerTokenIssued, TokenIssued
from idios.ledger.identity import Identity, Role
from idios.ledger.names import checked_name, moment
from idios.ledger.rows import Book, Token

LIFETIME = timedelta(days=90)
_NAME = 16


def new_token(
    name: str, role: Role, now: datetime, lifetime: timedelta
) -> tuple[str, TokenIssued | ControllerTokenIssued]:
    """A token for the holder, and the fact that it was issued, which does not contain it."""
    if not isinstance(role, Role):
        raise InvalidInput(f"a token's role is one of {', '.join(Role)}, given as a Role, not {role!r}")
    if role is Role.CONTROLLER:
        checked_name("controller", name)
    if lifetime <= timedelta(0):
        raise InvalidInput(f"a token lives for a time above 0, not {lifetime}")
    try:
        expires = now + lifetime
    except OverflowError:
        raise InvalidInput(f"a token cannot live for {lifetime}; give some days or years") from None
    secret = secrets.token_urlsafe(32)
    digest = _digest(secret)
    issued = ControllerTokenIssued if role is Role.CONTROLLER else TokenIssued
    return secret, issued(digest[:_NAME], digest, name, moment(expires))


def shown_token(book: Book, secret: str, now: datetime) -> Identity:
    """The holder of this token; one message for every token that is not valid."""
    digest = _digest(secret)
    # The time of the lookup tells an attacker nothing: to come near a stored name they have to invert SHA-256.
    found = book.find(Token, digest[:_NAME])
    same = hmac.compare_digest(digest, digest[::-1] if found is None else found.digest)
    return _valid(found if same else None, now)


def named_token(book: Book, name: str, now: datetime) -> Identity:
    """The holder of the token of this public name, refused like one that is shown."""
    return _valid(book.find(Token, name), now)


def _valid(found: Token | None, now: datetime) -> Identity:
    if found is None or found.revoked is not None or found.expires <= moment(now):
        raise NotPermitted("the token is unknown, revoked or expired; ask the controller for a new one")
    return Identity(found.holder, found.role, found.token)


def _digest(secret: str) -> str:
    # Whatever arrives over the network has a digest; "surrogatepass" keeps broken text from being an error.
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()

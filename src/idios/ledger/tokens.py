"""Tokens of analysts and controllers: 256 random bits, shown once, kept as their SHA-256."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from datetime import datetime, timedelta

from sqlalchemy import Connection

from idios.errors import InvalidInput, LedgerTampered, NotPermitted
from idios.ledger.answers import checked_entry
from idios.ledger.facts import ControllerTokenIssued, TokenIssued
from idios.ledger.identity import Identity, Role
from idios.ledger.names import checked_name, moment
from idios.ledger.rows import Book, Token
from idios.ledger.tables import VERIFY, numbered_entries

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


def shown_token(book: Book, secret: str, now: datetime) -> Token:
    """The token that somebody shows; one message for every token that is not valid."""
    digest = _digest(secret)
    # The time of the lookup tells a stranger nothing: to come near a stored name he has to invert SHA-256.
    found = book.find(Token, digest[:_NAME])
    same = hmac.compare_digest(digest, digest[::-1] if found is None else found.digest)
    return _valid(found if same else None, now)


def named_token(book: Book, name: str, now: datetime) -> Token:
    """The token of this public name, refused like one that is shown."""
    return _valid(book.find(Token, name), now)


def _valid(found: Token | None, now: datetime) -> Token:
    if found is None or found.revoked is not None or found.expires <= moment(now):
        raise NotPermitted("the token is unknown, revoked or expired; ask the controller for a new one")
    return found


def holder(connection: Connection, key: bytes, token: Token) -> Identity:
    """Whoever holds the token, as the entry that issued it says: nobody becomes a controller without a signature."""
    entry = checked_entry(key, numbered_entries(connection, {token.issued, token.issued - 1}), token.issued)
    signed: tuple[str, ...] | None
    match entry.fact:
        case TokenIssued() as fact:
            signed = (fact.token, fact.digest, fact.analyst, Role.ANALYST, fact.expires)
        case ControllerTokenIssued() as fact:
            signed = (fact.token, fact.digest, fact.controller, Role.CONTROLLER, fact.expires)
        case _:
            signed = None
    if signed != (token.token, token.digest, token.holder, token.role, token.expires):
        raise LedgerTampered(f"the ledger's table of tokens disagrees with entry {token.issued}; {VERIFY}")
    return Identity(token.holder, token.role, token.token)


def _digest(secret: str) -> str:
    # Whatever arrives over the network has a digest; "surrogatepass" keeps broken text from being an error.
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()

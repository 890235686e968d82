"""Tokens of analysts and controllers: 256 random bits, shown once, kept as their SHA-256."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from idios.errors import InvalidInput, NotPermitted
from idios.ledger.facts import ControllerTokenIssued, TokenIssued
from idios.ledger.state import Place, RowStore, TokenRow
from idios.ledger.values import check_name, format_time
from idios.model import Role

LIFETIME = timedelta(days=90)
_NAME = 16


@dataclass(frozen=True, slots=True)
class Identity:
    """The holder of a valid token; `token` is its public name.

    `granted` are the data sets that an analyst had a grant on when the token was looked up: what they may see. Whether
    a question of theirs is charged is decided by what the ledger says then.
    """

    name: str
    role: Role
    token: str
    granted: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """A token that was just issued: the secret, which is kept nowhere else, and its row."""

    secret: str = field(repr=False)
    row: TokenRow


def create_token(
    name: str, role: Role, now: datetime, lifetime: timedelta
) -> tuple[str, TokenIssued | ControllerTokenIssued]:
    """Make a token for the holder, and the fact that it was issued, which does not contain it."""
    if not isinstance(role, Role):
        raise InvalidInput(f"a token's role is one of {', '.join(Role)}, given as a Role, not {role!r}")
    if role is Role.CONTROLLER:
        check_name("controller", name)
    if lifetime <= timedelta(0):
        raise InvalidInput(f"a token lives for a time above 0, not {lifetime}")
    try:
        expires = now + lifetime
    except OverflowError:
        raise InvalidInput(f"a token cannot live for {lifetime}; give some days or years") from None
    secret = secrets.token_urlsafe(32)
    digest = _digest(secret)
    issued = ControllerTokenIssued if role is Role.CONTROLLER else TokenIssued
    return secret, issued(digest[:_NAME], digest, name, format_time(expires))


def locate(secret: str) -> Place:
    """Say where the row of this token stands, if it is one."""
    return TokenRow, (_digest(secret)[:_NAME],)


def authenticate(store: RowStore, secret: str, now: datetime) -> Identity:
    """Find the holder of this token; there is one message for every token that is not valid."""
    digest = _digest(secret)
    # The time of the lookup tells an attacker nothing: to come near a stored name they have to invert SHA-256.
    row = store.get(TokenRow, digest[:_NAME])
    same = hmac.compare_digest(digest, digest[::-1] if row is None else row.digest)
    return _check_validity(row if same else None, now)


def identify_token(store: RowStore, name: str, now: datetime) -> Identity:
    """Find the holder of the token of this public name; it is refused like a secret."""
    return _check_validity(store.get(TokenRow, name), now)


def _check_validity(row: TokenRow | None, now: datetime) -> Identity:
    if row is None or row.revoked is not None or row.expires <= format_time(now):
        raise NotPermitted("the token is unknown, revoked or expired; ask the controller for a new one")
    return Identity(row.holder, row.role, row.token)


def _digest(secret: str) -> str:
    # Whatever arrives over the network has a digest; "surrogatepass" keeps broken text from being an error.
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()

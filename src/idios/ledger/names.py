"""Names of data sets, versions and analysts, and moments in time, as the ledger writes them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from idios.errors import InvalidInput

LONGEST = 200

Clock = Callable[[], datetime]


def checked_name(what: str, value: str) -> str:
    """The name itself, refused unless every database stores it unchanged and every terminal shows it.

    >>> checked_name("data set", "people")
    'people'
    """
    if not isinstance(value, str) or not value or len(value) > LONGEST or not value.isprintable():
        raise InvalidInput(f"a name of a {what} is 1 to {LONGEST} printable characters, not {str(value)[:LONGEST]!r}")
    return value


def system_clock() -> datetime:
    """The time now, in UTC."""
    return datetime.now(UTC)


def moment(value: datetime) -> str:
    """The time as the ledger writes it: UTC, of fixed width, so that text order is time order.

    >>> moment(datetime(2026, 11, 15, 12, tzinfo=UTC))
    '2026-11-15T12:00:00.000000Z'
    """
    if value.tzinfo is None:
        raise InvalidInput("the ledger's clock must give times with a time zone: use datetime.now(UTC)")
    return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

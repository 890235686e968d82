"""Names of data sets, versions and analysts, and moments in time, as the ledger writes them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from idios.errors import InvalidInput

LONGEST = 200
LONGEST_TEXT = 1000

Clock = Callable[[], datetime]


def checked_name(what: str, value: str) -> str:
    """The name itself, refused unless every database stores it unchanged and every terminal shows it.

    >>> checked_name("data set", "people")
    'people'
    """
    if not isinstance(value, str) or not value or len(value) > LONGEST or not value.isprintable():
        raise InvalidInput(f"a name of a {what} is 1 to {LONGEST} printable characters, not {str(value)[:LONGEST]!r}")
    return value


def checked_text(what: str, value: str) -> str:
    """A line that a person wrote, refused if it is empty or no line.

    >>> checked_text("reason", "restored from the backup of Monday")
    'restored from the backup of Monday'
    """
    if not isinstance(value, str) or not value.strip() or len(value) > LONGEST_TEXT or not value.isprintable():
        raise InvalidInput(
            f"a {what} is a line of 1 to {LONGEST_TEXT} printable characters, not {str(value)[:LONGEST]!r}"
        )
    return value


def checked_number(what: str, value: int, largest: int = 2**63 - 1) -> int:
    """The number itself, refused unless it is one that every database can compare.

    >>> checked_number("before", 7)
    7
    """
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= largest:
        raise InvalidInput(f"{what} must be an integer from 0 to {largest}, not {str(value)[:LONGEST]}")
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

"""Console sessions that were signed out, remembered until they would have expired, for every process of a server.

What is kept here is operational, like the questions that are running: it is not in the chain, and losing a row
allows no more than the session's token does.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime

from sqlalchemy import bindparam, delete, insert, select
from sqlalchemy.exc import IntegrityError

from idios.ledger.database import Database
from idios.ledger.names import Clock, checked_name, moment
from idios.ledger.tables import ended_sessions

_ADD = insert(ended_sessions)
_FIND = select(ended_sessions.c.id).where(ended_sessions.c.id == bindparam("this"))
_FORGET = delete(ended_sessions).where(ended_sessions.c.expires < bindparam("now"))


class _EndedElsewhere(Exception):
    """Another process ended the session at the same moment."""


class EndedSessions:
    """The sessions that are over before their time; `Ledger.sessions`."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def end(self, id: str, expires: datetime) -> None:
        """Remember that a session is over; ending it once more changes nothing."""
        checked_name("session", id)
        if self.ended(id):
            return
        with suppress(_EndedElsewhere), self._database.noting() as connection:
            connection.execute(_FORGET, {"now": moment(self._clock())})
            try:
                connection.execute(_ADD, {"id": id, "expires": moment(expires)})
            except IntegrityError:
                raise _EndedElsewhere from None  # so that the transaction is rolled back

    def ended(self, id: str) -> bool:
        """Whether the session was signed out."""
        with self._database.reading() as connection:
            return connection.scalar(_FIND, {"this": id}) is not None

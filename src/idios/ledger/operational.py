"""Operational tables: questions in progress, console sessions that were signed out, idempotency keys.

Rules:

1. What is kept here is about work in progress, for every process of a server. It is not in the chain, and `verify` and
   `rebuild` leave it alone.
2. No charge and no permission depends on a running question's row, and of an answer only whether it was stopped. A
   report is one short transaction that does not lock the chain. It is a heartbeat: where it is old, the process that
   computed the question is gone.
3. A running question is cancelled or it leaves, never both: each is one conditional update of its row, and the first
   counts, whichever process makes it.
4. A session that was signed out is remembered until it would have expired. Losing its row allows no more than the
   session's token does.
5. A request sent twice with one idempotency key is one request; the key with another question is an error. The key is
   written in the transaction that charges the question, so that there is never one without the other. Losing it
   charges no caller twice, as a question is charged once in any case.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, bindparam, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from idios.errors import InvalidInput, KeyReused
from idios.ledger.database import Database
from idios.ledger.request import ChargeRequest
from idios.ledger.statements import run, write_marks
from idios.ledger.tables import ended_sessions, idempotency_keys, running
from idios.ledger.values import LONGEST, Clock, check_name, format_time

QUESTIONS_KEPT = timedelta(days=30)
MOST_QUESTIONS = 500
"""How many questions of one caller are kept: asking a charged one again is free, and each leaves a row."""
KEYS_KEPT = timedelta(days=30)
RUNNING = "running"
LEAVING = "leaving"
LIVE = (RUNNING, LEAVING)
"""The states of a question that has not ended: it can still be cancelled, or its result is on its way out."""
ENDS = ("answered", "failed", "cancelled")

_ADD_QUESTION = insert(running)
_FORGET_QUESTIONS = delete(running).where(running.c.started < bindparam("oldest"))
_FORGET_OLDEST = delete(running).where(
    running.c.caller == bindparam("caller"),
    running.c.started
    <= select(running.c.started)
    .where(running.c.caller == bindparam("caller"))
    .order_by(running.c.started.desc())
    .offset(MOST_QUESTIONS - 1)
    .limit(1)
    .scalar_subquery(),
)
_FIND_QUESTION = select(running).where(running.c.id == bindparam("this"))
_CANCELLED = select(running.c.cancel).where(running.c.id == bindparam("this"))
_THIS = update(running).where(running.c.id == bindparam("this"))
_LIVE = _THIS.where(running.c.state.in_(LIVE))
_REPORT = _LIVE.values(step=bindparam("step"), share=bindparam("share"), heartbeat=bindparam("now"))
_END = _LIVE.values(state=bindparam("end"), heartbeat=bindparam("now"))
_CANCEL = _THIS.where(running.c.state == RUNNING).values(cancel=True)
_LEAVE = _THIS.where(running.c.state == RUNNING, running.c.cancel.is_(False)).values(state=LEAVING)

_ADD_SESSION = insert(ended_sessions)
_FIND_SESSION = select(ended_sessions.c.id).where(ended_sessions.c.id == bindparam("this"))
_FORGET_SESSIONS = delete(ended_sessions).where(ended_sessions.c.expires < bindparam("now"))

_FIND_KEY = f"SELECT question_key FROM {idempotency_keys} WHERE caller = ? AND idempotency_key = ?"
_ADD_KEY = f"INSERT INTO {idempotency_keys} (caller, idempotency_key, question_key, time) VALUES {write_marks(4)}"
_FORGET_KEYS = f"DELETE FROM {idempotency_keys} WHERE time < ?"


@dataclass(frozen=True, slots=True)
class RunningQuestion:
    """A question that was begun: who asked, how far it is, and whether it was cancelled."""

    id: str
    caller: str
    dataset: str
    request: str
    started: str
    heartbeat: str
    step: str
    share: float
    state: str
    cancel: bool


class RunningQuestions:
    """The questions that are being computed, and what became of those that were; `Ledger.running`."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def begin(self, id: str, caller: str, dataset: str, request: str) -> None:
        """Say that a question is being computed; `request` is whatever is needed to format its answer later."""
        for what, name in (("running question", id), ("data set", dataset)):
            check_name(what, name)
        for what, text in (("caller", caller), ("request", request)):
            if not isinstance(text, str) or "\x00" in text or not _is_storable(text):
                raise InvalidInput(f"a running question's {what} is text that can be stored as UTF-8, without NUL")
        now = self._clock()
        row = RunningQuestion(id, caller, dataset, request, format_time(now), format_time(now), "", 0.0, RUNNING, False)
        with self._database.noting() as connection:
            connection.execute(_FORGET_QUESTIONS, {"oldest": format_time(now - QUESTIONS_KEPT)})
            connection.execute(_FORGET_OLDEST, {"caller": caller})
            try:
                connection.execute(_ADD_QUESTION, {name: getattr(row, name) for name in RunningQuestion.__slots__})
            except IntegrityError:
                raise InvalidInput(f"a running question has an id of its own; {id!r} is taken") from None

    def report(self, id: str, step: str, share: float) -> bool:
        """Say how far a question is and that its process is alive; True if a caller cancelled it."""
        check_name("step", step)
        if not (math.isfinite(share) and 0 <= share <= 1):
            raise InvalidInput(f"the share of the work that is done is between 0 and 1, not {share!r}")
        values = {"this": id, "step": step, "share": float(share), "now": format_time(self._clock())}
        with self._database.noting() as connection:
            connection.execute(_REPORT, values)
            return bool(connection.scalar(_CANCELLED, {"this": id}))

    def end(self, id: str, state: str) -> None:
        """Say what became of a question; only the first end counts."""
        if state not in ENDS:
            raise InvalidInput(f"a question ends as one of {', '.join(ENDS)}, not {state!r}")
        with self._database.noting() as connection:
            connection.execute(_END, {"this": id, "end": state, "now": format_time(self._clock())})

    def cancel(self, id: str) -> bool:
        """Stop a question, if it is not leaving yet: True if it is cancelled, now or before, and will not leave.

        The computing process learns of it at its next report, or when it asks whether the question may leave.
        """
        if self.find(id) is None:
            return False  # the id may come from anywhere, and each driver refuses strange texts in its own way
        with self._database.noting() as connection:
            connection.execute(_CANCEL, {"this": id})
            return bool(connection.scalar(_CANCELLED, {"this": id}))

    def leave(self, id: str) -> bool:
        """Ask whether a question's result may leave; if so it can no longer be cancelled. False if it was."""
        with self._database.noting() as connection:
            connection.execute(_LEAVE, {"this": id})
            return not connection.scalar(_CANCELLED, {"this": id})

    def find(self, id: str) -> RunningQuestion | None:
        """Return the question with this id, if it was begun."""
        if not isinstance(id, str) or not id.isprintable():
            return None
        with self._database.reading() as connection:
            row = connection.execute(_FIND_QUESTION, {"this": id}).one_or_none()
        return None if row is None else RunningQuestion(*row)


def _is_storable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class _EndedElsewhere(Exception):
    """Another process ended the session at the same moment."""


class EndedSessions:
    """The sessions that are over before their time; `Ledger.sessions`."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def end(self, id: str, expires: datetime) -> None:
        """Remember that a session is over; ending it once more changes nothing."""
        check_name("session", id)
        if self.has_ended(id):
            return
        with suppress(_EndedElsewhere), self._database.noting() as connection:
            connection.execute(_FORGET_SESSIONS, {"now": format_time(self._clock())})
            try:
                connection.execute(_ADD_SESSION, {"id": id, "expires": format_time(expires)})
            except IntegrityError:
                raise _EndedElsewhere from None  # so that the transaction is rolled back

    def has_ended(self, id: str) -> bool:
        """Whether the session was signed out."""
        with self._database.reading() as connection:
            return connection.scalar(_FIND_SESSION, {"this": id}) is not None


def get_namespace(request: ChargeRequest) -> str:
    """Return the namespace of a caller's keys; an analyst called "controller" does not share the controller's."""
    return "controller" if request.analyst is None else f"analyst:{request.analyst}"


def check_idempotency_key(key: str | None) -> str | None:
    """Return the key, if there is one; refuse one that does not fit into a header."""
    if key is None:
        return None
    if not isinstance(key, str) or not 1 <= len(key) <= LONGEST or not (key.isascii() and key.isprintable()):
        raise InvalidInput(f"a request's key is 1 to {LONGEST} printable ASCII characters, not {str(key)[:LONGEST]!r}")
    return key


def was_used(connection: Connection, request: ChargeRequest, key: str | None) -> bool:
    """Whether the caller has used the key, if there is one, for this question; KeyReused if it was for another."""
    if key is None:
        return False
    found = run(connection, _FIND_KEY, (get_namespace(request), key))
    if found and found[0][0] != request.key:
        raise KeyReused(
            f"the key {key!r} was used before with another question, version or ε; choose a new key for every "
            "new question; nothing was charged"
        )
    return bool(found)


def remember_key(connection: Connection, request: ChargeRequest, key: str, now: datetime) -> None:
    """Remember the key, and forget those that are so old that no client repeats their request."""
    run(connection, _FORGET_KEYS, (format_time(now - KEYS_KEPT),))
    run(connection, _ADD_KEY, (get_namespace(request), key, request.key, format_time(now)))

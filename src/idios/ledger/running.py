"""Questions that outlast one HTTP request, seen by every process of a server.

Rules:

1. What is kept here is about work in progress. No charge and no permission depends on it, and of an answer only
   whether it was stopped; it is not in the chain, and `verify` and `rebuild` leave it alone.
2. A report is one short transaction that does not lock the chain.
3. A report is a heartbeat: where it is old, the process that computed the question is gone.
4. A question is cancelled or it leaves, never both: each is one conditional update of its row, and the first counts,
   whichever process makes it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import bindparam, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from idios.errors import InvalidInput
from idios.ledger.database import Database
from idios.ledger.names import Clock, checked_name, moment
from idios.ledger.tables import running

KEPT = timedelta(days=30)
RUNNING = "running"
LEAVING = "leaving"
LIVE = (RUNNING, LEAVING)
"""The states of a question that has not ended: it can still be cancelled, or its result is on its way out."""
ENDS = ("answered", "failed", "cancelled")

_ADD = insert(running)
_FORGET = delete(running).where(running.c.started < bindparam("oldest"))
_FIND = select(running).where(running.c.id == bindparam("this"))
_CANCELLED = select(running.c.cancel).where(running.c.id == bindparam("this"))
_THIS = update(running).where(running.c.id == bindparam("this"))
_LIVE = _THIS.where(running.c.state.in_(LIVE))
_REPORT = _LIVE.values(step=bindparam("step"), share=bindparam("share"), heartbeat=bindparam("now"))
_END = _LIVE.values(state=bindparam("end"), heartbeat=bindparam("now"))
_CANCEL = _THIS.where(running.c.state == RUNNING).values(cancel=True)
_LEAVE = _THIS.where(running.c.state == RUNNING, running.c.cancel.is_(False)).values(state=LEAVING)


@dataclass(frozen=True, slots=True)
class Running:
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
            checked_name(what, name)
        for what, text in (("caller", caller), ("request", request)):
            if not isinstance(text, str) or "\x00" in text or not _storable(text):
                raise InvalidInput(f"a running question's {what} is text that can be stored as UTF-8, without NUL")
        now = self._clock()
        row = Running(id, caller, dataset, request, moment(now), moment(now), "", 0.0, RUNNING, False)
        with self._database.noting() as connection:
            connection.execute(_FORGET, {"oldest": moment(now - KEPT)})
            try:
                connection.execute(_ADD, {name: getattr(row, name) for name in Running.__slots__})
            except IntegrityError:
                raise InvalidInput(f"a running question has an id of its own; {id!r} is taken") from None

    def report(self, id: str, step: str, share: float) -> bool:
        """Say how far a question is and that its process is alive; True if a caller cancelled it."""
        checked_name("step", step)
        if not (math.isfinite(share) and 0 <= share <= 1):
            raise InvalidInput(f"the share of the work that is done is between 0 and 1, not {share!r}")
        values = {"this": id, "step": step, "share": float(share), "now": moment(self._clock())}
        with self._database.noting() as connection:
            connection.execute(_REPORT, values)
            return bool(connection.scalar(_CANCELLED, {"this": id}))

    def end(self, id: str, state: str) -> None:
        """Say what became of a question; only the first end counts."""
        if state not in ENDS:
            raise InvalidInput(f"a question ends as one of {', '.join(ENDS)}, not {state!r}")
        with self._database.noting() as connection:
            connection.execute(_END, {"this": id, "end": state, "now": moment(self._clock())})

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

    def find(self, id: str) -> Running | None:
        """The question with this id, if it was begun."""
        if not isinstance(id, str) or not id.isprintable():
            return None
        with self._database.reading() as connection:
            found = connection.execute(_FIND, {"this": id}).one_or_none()
        return None if found is None else Running(*found)


def _storable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True

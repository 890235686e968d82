"""Group commit: of the threads that want to write, one writes for all that wait.

Rules:

1. The first that comes leads. It waits for the ledger's lock, and does its own work and that of every thread that has
   come meanwhile, in their order, in one transaction. Then the next that waits leads. A thread that is alone pays
   nothing for this.
2. A caller goes on only when the transaction that its work was part of is durable, or has failed.
3. Work that is refused has changed nothing yet, so the others' goes on. If anything else goes wrong before the commit,
   the transaction is undone, and the work of each is done in one of its own: one thread's fault is not another's.
4. If the commit fails, all whose work was in it are told the same.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from copy import copy
from typing import Any, Generic, Protocol, TypeVar

from sqlalchemy.exc import SQLAlchemyError

from idios.ledger.database import Database
from idios.ledger.state import Place

MOST = 32
"""How many threads' work is committed together: the first of them waits for the last."""

T = TypeVar("T")


class Store(Protocol):
    """Where the rows are read."""

    def fetch(self, places: Sequence[Place]) -> None:
        """Read what stands at these places, in one statement."""


class Transaction(Protocol):
    """What work is done in; `appended` tells how much of it is to be undone."""

    appended: int

    @property
    def store(self) -> Store:
        """The rows as the transaction sees them."""

    def flush(self) -> None:
        """Write what was appended."""


SomeTransaction = TypeVar("SomeTransaction", bound=Transaction)


class _Job(Generic[SomeTransaction, T]):
    """One thread's work and, once it is finished, what came of it."""

    def __init__(self, work: Callable[[SomeTransaction], T], places: Sequence[Place]) -> None:
        self.places = places
        self.error: Exception | None = None
        self.leads = False
        """Whether its thread does the work of those that wait."""
        self.finished = False
        self.abandoned = False
        """Whether a signal has ended its thread's wait."""
        self._work = work
        self._result: list[T] = []
        self._gate = threading.Lock()
        self._gate.acquire()

    def do(self, transaction: SomeTransaction) -> None:
        """Do the work; a refusal is kept for its thread."""
        before = transaction.appended
        try:
            transaction.store.fetch(self.places)
            self.error, self._result = None, [self._work(transaction)]
        except SQLAlchemyError:
            raise
        except Exception as error:
            if transaction.appended != before:
                raise _Undo from error
            self.error = error

    def wait(self, timeout: float = -1) -> bool:
        """Wait until it is finished or leads; False if it is neither in time."""
        return self._gate.acquire(timeout=timeout)

    def wake(self) -> None:
        """End the wait."""
        self._gate.release()

    @property
    def result(self) -> T:
        """What the work gave, or the error that it ended with."""
        if self.error is not None:
            raise self.error
        return self._result[0]


class _Undo(Exception):
    """Work failed after it had changed something."""


class CommitQueue(Generic[SomeTransaction]):
    """The threads of one process that want to write one ledger; `begin` locks it and begins a transaction."""

    def __init__(self, database: Database, begin: Callable[..., AbstractContextManager[SomeTransaction]]) -> None:
        self._database = database
        self._begin = begin
        self._guard = threading.Lock()
        self._led = False
        self._waiting: deque[_Job[SomeTransaction, Any]] = deque()

    def run(self, work: Callable[[SomeTransaction], T], places: Sequence[Place]) -> T:
        """Do the work in a transaction, with others' if they wait; return when it is durable."""
        job = _Job(work, places)
        with self._guard:
            if self._led:
                self._waiting.append(job)
            else:
                self._led = job.leads = True
        try:
            if not job.leads:
                self._wait(job)
            if job.leads:
                self._lead(job)
        finally:
            with self._guard:
                # Also when a signal's exception ends the wait: nobody would lead in its place.
                job.abandoned = True
                if job in self._waiting:
                    self._waiting.remove(job)
            if job.leads:
                self._hand_over()
        return job.result

    def _wait(self, job: _Job[SomeTransaction, Any]) -> None:
        """Wait until the work is done, or this thread is to lead."""
        if job.wait(self._database.timeout):
            return
        with self._guard:
            if job in self._waiting:
                raise self._database.make_busy_error()
        job.wait()  # a leader has just taken it, or it leads

    def _hand_over(self) -> None:
        with self._guard:
            if not self._waiting:
                self._led = False
                return
            heir = self._waiting.popleft()
            heir.leads = True
        heir.wake()

    def _lead(self, own: _Job[SomeTransaction, Any]) -> None:
        taken = [own]
        try:
            if not self._commit(self._take(taken), own.places):
                for job in taken:
                    self._commit([job], job.places)
        finally:
            # A signal may have ended this thread's work, and the transaction with it: the next leader does the others'.
            with self._guard:
                left = [job for job in taken[1:] if not job.finished and not job.abandoned]
                self._waiting.extendleft(reversed(left))
            for job in taken[1:]:
                if job.finished:
                    job.wake()

    def _take(self, taken: list[_Job[SomeTransaction, Any]]) -> Iterator[_Job[SomeTransaction, Any]]:
        """Take the leader's work and then, one by one, that of all who wait by then."""
        yield taken[0]
        while len(taken) < MOST:
            with self._guard:
                if not self._waiting:
                    return
                taken.append(self._waiting.popleft())
            yield taken[-1]

    def _commit(self, jobs: Iterable[_Job[SomeTransaction, Any]], places: Sequence[Place]) -> bool:
        """Do these jobs in one transaction; False if they have to be done one by one."""
        done: list[_Job[SomeTransaction, Any]] = []
        complete = False
        try:
            with self._begin(*places) as transaction:
                for job in jobs:
                    done.append(job)
                    job.do(transaction)
                transaction.flush()
                complete = True
        except Exception as error:
            if len(done) > 1 and not complete:
                return False
            cause = error.__cause__ if isinstance(error, _Undo) else error
            assert isinstance(cause, Exception)
            # Without a transaction only the leader's wait is over.
            for job in done or [next(iter(jobs))]:
                job.error = copy(cause)
        for job in done:
            job.finished = True
        return True

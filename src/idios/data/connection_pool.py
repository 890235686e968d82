"""The connections of a backend: a few questions at a time, each on a connection of its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from threading import Condition
from typing import Any, ClassVar, cast

import pyarrow as pa

from idios.data.cancellation import CancellationToken
from idios.data.sql.dialect import Dialect
from idios.data.sql.selection import SelectStatement
from idios.errors import SourceError

AT_ONCE = 4
"""How many questions a data set answers at a time.

One long question then holds up no other, while each still has a fair part of the machine's cores and memory, and a
database gives no more than this many of its connections (PostgreSQL has 100) to each process that reads from it.
"""


class Connection(ABC):
    """One connection, used by one caller at a time, whose cancellation token interrupts what runs on it."""

    dialect: Dialect
    materialises: ClassVar[bool] = False
    """Whether ``materialise`` makes a table."""
    in_process: ClassVar[bool] = False
    """Whether values come from the engine as they lie in memory."""

    def __init__(self) -> None:
        self.cancellation = CancellationToken()

    def fetch(self, statement: SelectStatement) -> pa.Table:
        """Run a statement and return its result, unless the caller cancels it."""
        with self.cancellation.interruptible(self.interrupt):
            return self.run(statement)

    def fetch_row(self, statement: SelectStatement) -> Mapping[str, Any]:
        """The one row of a statement that gives one."""
        (row,) = self.fetch(replace(statement, single=True)).to_pylist()
        return cast(Mapping[str, Any], row)

    def count(self, source: str) -> int:
        """How many rows there are in what stands after FROM."""
        counted = self.fetch_row(SelectStatement.of_integers(f"SELECT COUNT(*) AS number FROM {source}", "number"))
        return int(counted["number"])

    @abstractmethod
    def run(self, statement: SelectStatement) -> pa.Table:
        """Run a statement in the engine."""

    @abstractmethod
    def interrupt(self) -> None:
        """Let the statement that is running end with an error; called from another thread."""

    @abstractmethod
    def close(self) -> None:
        """Disconnect."""

    def snapshot(self) -> AbstractContextManager[object]:
        """A state of the data that does not change while several queries read it."""
        return nullcontext()

    def materialise(self, source: str) -> AbstractContextManager[str]:
        """What stands after FROM to read a subquery several times: a table of what it gives, where an engine can."""
        return nullcontext(source)


class CancellableSemaphore:
    """A semaphore whose waiting callers can be cancelled."""

    def __init__(self, places: int) -> None:
        self._places = self._free = places
        self._changed = Condition()

    @contextmanager
    def acquire(self, cancellation: CancellationToken) -> Iterator[None]:
        """Hold a place while inside; wait until one is free."""
        taken = False
        try:
            with cancellation.interruptible(self._wake), self._changed:
                self._changed.wait_for(lambda: self._free or cancellation.cancelled)
                cancellation.check()
                self._free -= 1
                taken = True
            yield
        finally:
            if taken:
                with self._changed:
                    self._free += 1
                    self._changed.notify_all()  # one of them may have been cancelled just now

    def wait_until_empty(self) -> None:
        """Wait until all places are free."""
        with self._changed:
            self._changed.wait_for(lambda: self._free == self._places)

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()


class ConnectionPool:
    """At most ``at_once`` connections to one source, each opened when it is first needed."""

    def __init__(self, open_connection: Callable[[], Connection], at_once: int = AT_ONCE) -> None:
        self._open = open_connection
        self._places = CancellableSemaphore(at_once)
        self._idle: list[Connection] = []
        self._closed = False

    @contextmanager
    def acquire(self, cancellation: CancellationToken) -> Iterator[Connection]:
        """A connection for one caller, as soon as one is free."""
        with self._places.acquire(cancellation):
            if self._closed:
                raise SourceError("the source was closed")
            try:
                connection = self._idle.pop()
            except IndexError:
                connection = self._open()
            connection.cancellation = cancellation
            try:
                yield connection
            finally:
                self._idle.append(connection)

    def close(self) -> None:
        """Refuse new callers, wait for those that read, and disconnect."""
        self._closed = True
        self._places.wait_until_empty()
        while self._idle:
            self._idle.pop().close()

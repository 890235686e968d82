"""The connections of a backend: a few questions at a time, each on a connection of its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import Condition

import pyarrow as pa
from ibis.backends.sql import SQLBackend  # type: ignore[import-untyped]

from idios.backends.dialect import Dialect
from idios.backends.progress import Watch
from idios.backends.statements import Statement
from idios.errors import SourceError

AT_ONCE = 4
"""How many questions a data set answers at a time.

One long question then holds up no other, while each still has a fair part of the machine's cores and memory, and a
database gives no more than this many of its connections (PostgreSQL has 100) to each process that reads from it.
"""


class Channel(ABC):
    """One connection, used by one caller at a time: their watch can cancel what runs on it."""

    dialect: Dialect

    def __init__(self, connection: SQLBackend) -> None:
        self.connection = connection
        self.watch = Watch()

    def fetch(self, statement: Statement) -> pa.Table:
        """Run a statement and return its result, unless the watch cancels it."""
        with self.watch.interruptible(self.interrupt):
            return self.run(statement)

    @abstractmethod
    def run(self, statement: Statement) -> pa.Table:
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


class Gate:
    """A semaphore whose waiting callers can be cancelled."""

    def __init__(self, places: int) -> None:
        self._places = self._free = places
        self._changed = Condition()

    @contextmanager
    def entered(self, watch: Watch) -> Iterator[None]:
        """Hold a place; wait until one is free."""
        taken = False
        try:
            with watch.interruptible(self._wake), self._changed:
                self._changed.wait_for(lambda: self._free or watch.stopped)
                watch.check()
                self._free -= 1
                taken = True
            yield
        finally:
            if taken:
                with self._changed:
                    self._free += 1
                    self._changed.notify_all()  # one of them may have been stopped just now

    def wait_until_empty(self) -> None:
        """Wait until all places are free."""
        with self._changed:
            self._changed.wait_for(lambda: self._free == self._places)

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()


class Pool:
    """At most ``at_once`` channels to one source, each opened when it is first needed."""

    def __init__(self, opened: Callable[[], Channel], at_once: int = AT_ONCE) -> None:
        self._opened = opened
        self._gate = Gate(at_once)
        self._idle: list[Channel] = []
        self._closed = False

    @contextmanager
    def channel(self, watch: Watch) -> Iterator[Channel]:
        """A channel for one caller, as soon as one is free."""
        with self._gate.entered(watch):
            if self._closed:
                raise SourceError("the source was closed")
            try:
                channel = self._idle.pop()
            except IndexError:
                channel = self._opened()
            channel.watch = watch
            try:
                yield channel
            finally:
                self._idle.append(channel)

    def close(self) -> None:
        """Refuse new callers, wait for those that read, and disconnect."""
        self._closed = True
        self._gate.wait_until_empty()
        while self._idle:
            self._idle.pop().close()

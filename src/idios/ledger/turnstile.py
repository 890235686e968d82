"""A fair lock: it serves threads in the order they came.

SQLite lets waiting writers sleep and poll, so that of sixteen busy threads some wait for seconds while others
pass them again and again. One turnstile per database and process queues them before they reach it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from weakref import WeakValueDictionary


class Turnstile:
    """A fair (first in, first out) lock for threads.

    >>> with Turnstile().turn(timeout=1) as entered:
    ...     entered
    True
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._taken = False
        self._waiting: deque[threading.Lock] = deque()

    @contextmanager
    def turn(self, timeout: float) -> Iterator[bool]:
        """Hold the lock; False if it was not free within `timeout` seconds."""
        entered = self._enter(timeout)
        try:
            yield entered
        finally:
            if entered:
                self._leave()

    def _enter(self, timeout: float) -> bool:
        gate = threading.Lock()
        with self._guard:
            if not self._taken:
                self._taken = True
                return True
            gate.acquire()
            self._waiting.append(gate)
        opened = False
        try:
            opened = gate.acquire(timeout=timeout)
        finally:
            # Also when a signal's exception ends the wait: a turn already given must go to the next waiter.
            with self._guard:
                given = gate not in self._waiting
                if not given:
                    self._waiting.remove(gate)
            if given and not opened:
                self._leave()
        return opened

    def _leave(self) -> None:
        with self._guard:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._taken = False


_by_place: WeakValueDictionary[str, Turnstile] = WeakValueDictionary()
_registry = threading.Lock()


def turnstile_for(place: str) -> Turnstile:
    """The one turnstile of this process for a database, however many times it is opened."""
    with _registry:
        return _by_place.setdefault(place, Turnstile())

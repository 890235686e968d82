"""Progress and cancellation of a backend's work.

Two threads hold a watch: one computes, the other may stop it. Rules:

1. After ``stop`` nothing new begins: the next step, the next statement and every wait raise ``Stopped``.
2. What runs at that moment is interrupted, again and again until it ends: an interrupt that an engine gets before its
   statement has begun is lost.
3. No interrupt comes after the statement it was meant for, where it could hit another question's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Condition, Thread
from typing import TypeAlias

Progress: TypeAlias = Callable[[str, float], None]
"""Is called with the name of each step as it begins, and the share of the work that lies behind, from 0 to 1."""

AGAIN = 0.05
"""Seconds after which a statement that still runs is interrupted once more."""


class Stopped(Exception):
    """The question was stopped while it was being computed; the party turns it into what an analyst sees."""


def silent(step: str, share: float) -> None:
    """Report nothing."""


class Watch:
    """One question's progress and cancellation token: another thread can stop it.

    >>> watch = Watch()
    >>> watch.stop()
    >>> watch.step("scanning", 0.2)
    Traceback (most recent call last):
    idios.backends.progress.Stopped: the question was stopped
    """

    def __init__(self, told: Progress = silent) -> None:
        self._told = told
        self._stopped = False
        self._action: Callable[[], None] | None = None
        self._changed = Condition()

    @property
    def stopped(self) -> bool:
        """Whether the question was stopped."""
        return self._stopped

    def check(self) -> None:
        """Raise ``Stopped`` if the question was stopped."""
        if self._stopped:
            raise Stopped("the question was stopped")

    def step(self, name: str, share: float) -> None:
        """Report that a step begins; the callback may stop the question."""
        self.check()
        self._told(name, share)
        self.check()

    def stop(self) -> None:
        """Let the question end as soon as it can; returns at once, and does nothing the second time."""
        if self._stopped:
            return  # without the lock, which an interrupt over a network may hold for a while
        with self._changed:
            first, self._stopped = not self._stopped, True
            if first and self._action is not None:
                Thread(target=self._insist, name="idios-stop", daemon=True).start()

    @contextmanager
    def interruptible(self, action: Callable[[], None]) -> Iterator[None]:
        """While inside, ``stop`` calls the action; every error that follows is raised as ``Stopped``."""
        with self._changed:
            self.check()
            self._action = action
        try:
            yield
        except Exception as error:
            if self._stopped:
                raise Stopped("the question was stopped") from error
            raise
        finally:
            # waits for an interrupt that is on its way, so that it is over before anything else begins
            with self._changed:
                self._action = None
                self._changed.notify_all()
        self.check()

    def _insist(self) -> None:
        with self._changed:
            while self._action is not None:
                with suppress(Exception):  # a connection that is gone needs no interrupt
                    self._action()
                self._changed.wait(AGAIN)

"""Progress and cancellation of a backend's work.

Two threads hold a cancellation token: one computes, the other may cancel it. Rules:

1. After ``cancel`` nothing new begins: the next step, the next statement and every wait raise ``Cancelled``.
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

INTERRUPT_INTERVAL = 0.05
"""Seconds after which a statement that still runs is interrupted once more."""


class Cancelled(Exception):
    """The question was cancelled while it was being computed; the party turns it into what an analyst sees."""


def silent(step: str, share: float) -> None:
    """Report nothing."""


class CancellationToken:
    """One question's progress, and the means for another thread to cancel it.

    >>> cancellation = CancellationToken()
    >>> cancellation.cancel()
    >>> cancellation.step("scanning", 0.2)
    Traceback (most recent call last):
    idios.data.cancellation.Cancelled: the question was stopped
    """

    def __init__(self, progress: Progress = silent) -> None:
        self._progress = progress
        self._cancelled = False
        self._action: Callable[[], None] | None = None
        self._changed = Condition()

    @property
    def cancelled(self) -> bool:
        """Whether the question was cancelled."""
        return self._cancelled

    def check(self) -> None:
        """Raise ``Cancelled`` if the question was cancelled."""
        if self._cancelled:
            raise Cancelled("the question was stopped")

    def step(self, name: str, share: float) -> None:
        """Report that a step begins; the callback may cancel the question."""
        self.check()
        self._progress(name, share)
        self.check()

    def cancel(self) -> None:
        """Let the question end as soon as it can; returns at once, and does nothing the second time."""
        if self._cancelled:
            return  # without the lock, which an interrupt over a network may hold for a while
        with self._changed:
            first, self._cancelled = not self._cancelled, True
            if first and self._action is not None:
                Thread(target=self._interrupt_until_over, name="idios-cancel", daemon=True).start()

    @contextmanager
    def interruptible(self, action: Callable[[], None]) -> Iterator[None]:
        """While inside, ``cancel`` calls the action; every error that follows is raised as ``Cancelled``."""
        with self._changed:
            self.check()
            self._action = action
        try:
            yield
        except Exception as error:
            if self._cancelled:
                raise Cancelled("the question was stopped") from error
            raise
        finally:
            # waits for an interrupt that is on its way, so that it is over before anything else begins
            with self._changed:
                self._action = None
                self._changed.notify_all()
        self.check()

    def _interrupt_until_over(self) -> None:
        with self._changed:
            while self._action is not None:
                with suppress(Exception):  # a connection that is gone needs no interrupt
                    self._action()
                self._changed.wait(INTERRUPT_INTERVAL)

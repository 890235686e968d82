"""How much work planning one question may take: one counter that every step of it charges, before it does the work.

A unit is about a microsecond. The length of a question is limited (``lexer``), but not what planning makes of it, so
each loop over runs, groups, cells or characters charges its iterations beforehand. Where work is counted it can also be
stopped from outside: a server does so when a question has taken too long, and when it ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from idios.errors import QuestionRefused

_check: ContextVar[Callable[[], None] | None] = ContextVar("check", default=None)

MAX_WORK = 600_000
"""Units that planning one question may take: about half a second."""
GROUP = 20
"""Units more for each group that the data set allows: its controller declares how many (``max_groups``)."""
RUN = 4
"""Units for making a run of a diagram; reading one takes one unit."""
CHARACTERS = 4
"""How many characters of a normal form are written, compared and stored for one unit."""


class Work:
    """The work that one question has caused so far.

    >>> work = Work(limit=10)
    >>> work.spend(7)
    >>> work.spent
    7
    """

    def __init__(self, limit: int = MAX_WORK) -> None:
        self._limit = limit
        self._check = _check.get()
        self.spent = 0

    def spend(self, units: int) -> None:
        """Count work that is about to be done, or refuse the question."""
        if self._check is not None:
            self._check()
        self.spent += units
        if self.spent > self._limit:
            raise QuestionRefused(
                "the question is too complex: planning it takes more work than one question may cause; use fewer or "
                "simpler alternatives, fewer groups or statistics, or ask in parts"
            )


@contextmanager
def stoppable(check: Callable[[], None]) -> Iterator[None]:
    """While inside, work that is counted calls ``check`` first, which raises an exception to stop it.

    >>> def stop():
    ...     raise TimeoutError
    >>> with stoppable(stop):
    ...     Work().spend(1)
    Traceback (most recent call last):
    TimeoutError
    """
    token = _check.set(check)
    try:
        yield
    finally:
        _check.reset(token)

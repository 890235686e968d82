"""Work beside the questions that costs no budget and may take seconds: the sandbox, inspections, verifications.

Whatever is free can be asked for without end, and every request needs one of the process's threads to be let in at
all. So this work has a few threads of its own, and each caller a few places.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from threading import Timer
from typing import TypeVar

from anyio import CapacityLimiter
from anyio.to_thread import run_sync

from idios.backends.progress import Stopped, Watch
from idios.ledger import Identity
from idios.server.problems import Problem, Refused

AT_ONCE = 2
"""How much of it runs at a time; the rest of the machine is for questions."""
EACH = 4
"""How much of it one token may have running or waiting."""
TOO_MUCH = Problem(
    503,
    "busy",
    f"at most {EACH} requests of this kind may be under way for one token; nothing was charged",
    "send it again when one of them is answered",
    headers={"Retry-After": "2"},
)

LONGEST = 20.0
"""Seconds after which what can be stopped is stopped."""
TOO_LONG = Problem(
    422,
    "invalid_request",
    f"this took longer than the {LONGEST:g} seconds that the sandbox has; nothing was charged",
    "ask for fewer groups or statistics",
)

T = TypeVar("T")


class SideWork:
    """Runs what is free, a little at a time."""

    def __init__(self) -> None:
        self._threads: CapacityLimiter | None = None
        self._of: Counter[str] = Counter()

    async def run(self, identity: Identity, work: Callable[[], T]) -> T:
        """Do the work in a thread, as soon as there is one for it."""
        if self._of[identity.token] >= EACH:
            raise Refused(TOO_MUCH)
        if self._threads is None:
            self._threads = CapacityLimiter(AT_ONCE)  # belongs to the event loop, so it is made inside
        self._of[identity.token] += 1
        try:
            return await run_sync(work, limiter=self._threads)
        finally:
            self._of[identity.token] -= 1
            if not self._of[identity.token]:
                del self._of[identity.token]

    async def stoppable(self, identity: Identity, work: Callable[[Watch], T]) -> T:
        """Do the work, for a limited time once it has begun."""
        watch = Watch()

        def limited() -> T:
            timer = Timer(LONGEST, watch.stop)
            timer.daemon = True
            timer.start()
            try:
                return work(watch)
            except Stopped:
                raise Refused(TOO_LONG) from None
            finally:
                timer.cancel()

        return await self.run(identity, limited)

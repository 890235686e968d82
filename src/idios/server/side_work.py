"""Work beside the questions that costs no budget: planning, which takes little, and what may take seconds.

A caller can ask for free work without end. So it is done in lanes (``lanes``): the sandbox, inspections,
comparisons and verifications in one set of them, the planning of quotes and of questions that will be paid for in
another, so that neither keeps the other waiting.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Timer
from typing import TypeVar

from idios.backends.cancellation import CancellationToken, Cancelled
from idios.config import Settings
from idios.server.lanes import Lanes
from idios.server.problems import BUSY, Problem, Refused

AT_ONCE = 2
"""How much of it runs at a time; the rest of the machine is for questions."""
EACH = 4
"""How much of it one caller may have running or waiting; one at a time runs."""
TOO_MUCH = Problem(
    503,
    "busy",
    f"at most {EACH} requests of this kind may be under way for one caller; nothing was charged",
    "send it again when one of them is answered",
    headers={"Retry-After": "2"},
)

LONGEST = 20.0
"""Seconds after which work that can be cancelled is cancelled."""
TOO_LONG = Problem(
    422,
    "invalid_request",
    f"this took longer than the {LONGEST:g} seconds that the sandbox has; nothing was charged",
    "ask for fewer groups or statistics",
)

T = TypeVar("T")


def planning_lanes(settings: Settings) -> Lanes:
    """Where questions are planned, one at a time: Python would not plan two faster in parallel."""
    most = settings.concurrent_questions + settings.waiting_questions
    return Lanes(1, most, BUSY)


class SideWork(Lanes):
    """Runs what is free and may take seconds."""

    def __init__(self) -> None:
        super().__init__(AT_ONCE, EACH, TOO_MUCH)

    async def stoppable(self, caller: str, work: Callable[[CancellationToken], T]) -> T:
        """Run the work with a deadline that starts when it begins."""
        cancellation = CancellationToken()

        def limited() -> T:
            timer = Timer(LONGEST, cancellation.cancel)
            timer.daemon = True
            timer.start()
            try:
                return work(cancellation)
            except Cancelled:
                raise Refused(TOO_LONG) from None
            finally:
                timer.cancel()

        return await self.run(caller, limited)

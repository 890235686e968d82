"""Threads and places in the queue, shared fairly: callers take turns, and none takes everything.

Every request needs one of the process's shared threads to be authenticated, so long work has threads of its own.
Each caller has a FIFO queue, of which a limited number runs at a time; the queues are served round-robin, so that
a caller's work waits behind their own and never in front of another caller's.

A caller can ask for free work without end. There are two pools, so that neither keeps the other waiting: one for the
sandbox, inspections, comparisons and verifications, which may take seconds, and one for planning and rendering, which
are bounded. What takes longer than a deadline is stopped where its work is counted (``expressions.work``), and so is
what still runs when the server ends.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from typing import TypeVar

from anyio import CapacityLimiter
from anyio.to_thread import run_sync

from idios.config import Settings
from idios.data.cancellation import CancellationToken, Cancelled
from idios.expressions.work import stoppable
from idios.server.http_errors import BUSY, Problem, Refused

AT_ONCE = 2
"""How much free work runs at a time; the rest of the machine is for questions."""
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
    f"this took longer than the {LONGEST:g} seconds that planning and the sandbox have; nothing was charged",
    "ask for fewer groups or statistics",
)
MOST_UNREAD = 64 * 2**20
"""Bytes of replies that are held for one caller whose clients do not read them."""
UNREAD = Problem(
    503,
    "busy",
    "too many replies to this caller have not been read yet",
    "read them, and send the request again: a question that was charged is not charged again",
    headers={"Retry-After": "2"},
)

T = TypeVar("T")


class FairPool:
    """Runs work in a few threads, with limits for each caller on what runs and on what runs or waits."""

    def __init__(self, threads: int, each: int, full: Problem, at_once: int = 1) -> None:
        self._threads = self._free = threads
        self._each = each
        self._full = full
        self._at_once = at_once
        self._limiter: CapacityLimiter | None = None
        self._taken: Counter[str] = Counter()
        self._running: Counter[str] = Counter()
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        self._under_way: set[CancellationToken] = set()

    def stop(self) -> None:
        """Stop what runs, as soon as its work is counted."""
        for cancellation in self._under_way:
            cancellation.cancel()

    async def run(
        self,
        caller: str,
        work: Callable[[], T],
        cancellation: CancellationToken | None = None,
        *,
        refuse: bool = True,
    ) -> T:
        """Do the work in a thread when it is the caller's turn; refused if too much of theirs waits already.

        Its deadline starts when it begins, and it is stopped when the request is.
        """
        if refuse and self._taken[caller] >= self._each:
            raise Refused(self._full)
        if self._limiter is None:
            self._limiter = CapacityLimiter(self._threads)  # belongs to the event loop, so it is made inside
        self._taken[caller] += 1
        try:
            await self._wait_for_turn(caller)
            cancellation = cancellation or CancellationToken()
            deadline = None
            if refuse:  # what shows a charged answer is finished, also when the server ends
                self._under_way.add(cancellation)
                deadline = asyncio.get_running_loop().call_later(LONGEST, cancellation.cancel)
            try:
                return await run_sync(_run_stoppable, work, cancellation, limiter=self._limiter)
            except Cancelled:
                raise Refused(TOO_LONG) from None
            finally:
                cancellation.cancel()  # its thread goes on where the request was stopped
                if deadline is not None:
                    deadline.cancel()
                self._under_way.discard(cancellation)
                self._end_turn(caller)
        finally:
            self._taken[caller] -= 1
            if not self._taken[caller]:
                del self._taken[caller]

    async def _wait_for_turn(self, caller: str) -> None:
        """Wait until a thread is the caller's."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(caller, deque()).append(turn)
        self._assign_threads()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._end_turn(caller)
            elif caller in self._waiting and turn in self._waiting[caller]:
                self._waiting[caller].remove(turn)
            raise

    def _end_turn(self, caller: str) -> None:
        self._free += 1
        self._running[caller] -= 1
        if not self._running[caller]:
            del self._running[caller]
        if caller in self._waiting:
            self._waiting.move_to_end(caller)  # they had their turn, even if no other caller waited then
        self._assign_threads()

    def _assign_threads(self) -> None:
        """Give each free thread to the caller whose last turn is longest ago and who may have one."""
        for caller in list(self._waiting):
            queue = self._waiting[caller]
            if not self._free:
                return
            while queue and queue[0].cancelled():
                queue.popleft()  # its request is gone, and has not come to remove it yet
            if queue and self._running[caller] < self._at_once:
                self._free -= 1
                self._running[caller] += 1
                queue.popleft().set_result(None)
            if not queue:
                del self._waiting[caller]


def _run_stoppable(work: Callable[[], T], cancellation: CancellationToken) -> T:
    with stoppable(cancellation.check):
        return work()


class FreeWorkPool(FairPool):
    """Runs what is free and may take seconds."""

    def __init__(self) -> None:
        super().__init__(AT_ONCE, EACH, TOO_MUCH)

    async def run_with_deadline(self, caller: str, work: Callable[[CancellationToken], T]) -> T:
        """Run work that looks for its cancellation itself, too."""
        cancellation = CancellationToken()
        return await self.run(caller, lambda: work(cancellation), cancellation)


class Places:
    """Places for questions that wait or run, of which no caller can take all, nor all threads at a time."""

    def __init__(self, running: int, waiting: int) -> None:
        self.taken = 0
        self._most = running + waiting
        # One caller cannot take the last places, so that there is one for another.
        self._most_each = self._most - self._most // 4
        self._running_each = max(1, running * 3 // 4)
        self._taken_by: Counter[str] = Counter()
        self._semaphores: dict[str, asyncio.Semaphore] = {}

    def take(self, caller: str) -> None:
        """Take a place for a caller's question; refused if none is left for them."""
        if self.taken >= self._most or self._taken_by[caller] >= self._most_each:
            raise Refused(BUSY)
        self.taken += 1
        self._taken_by[caller] += 1
        if caller not in self._semaphores:
            self._semaphores[caller] = asyncio.Semaphore(self._running_each)

    def give_back(self, caller: str) -> None:
        """Give a place back."""
        self.taken -= 1
        self._taken_by[caller] -= 1
        if not self._taken_by[caller]:
            del self._taken_by[caller]
            del self._semaphores[caller]

    def semaphore(self, caller: str) -> asyncio.Semaphore:
        """What a caller's questions hold while they run, so that only so many of them do at a time."""
        return self._semaphores[caller]


class Turns(FairPool):
    """Plans questions and renders replies, one at a time: Python would not make two faster in parallel.

    A reply is read from the ledger and rendered in one turn, so that nothing is held of those that wait but what the
    caller sent. What is rendered is held until its client has read it: a caller who leaves too much of it unread gets
    nothing more.
    """

    def __init__(self, settings: Settings) -> None:
        super().__init__(1, settings.concurrent_questions + settings.waiting_questions, BUSY)
        self._unread: Counter[str] = Counter()

    async def render(self, caller: str, work: Callable[[], T], *, charged: bool = False) -> T:
        """Do the work when it is the caller's turn; one that follows a charge is never refused for what waits."""

        def limited() -> T:
            self.check_unread(caller)
            return work()

        return await self.run(caller, limited, refuse=not charged)

    def check_unread(self, caller: str) -> None:
        """Refuse a caller who leaves too much unread."""
        if self._unread[caller] >= MOST_UNREAD:
            raise Refused(UNREAD)

    def count_unread(self, caller: str, size: int) -> None:
        """Count bytes that were rendered for a caller, or, below 0, that were sent."""
        self._unread[caller] += size
        if not self._unread[caller]:
            del self._unread[caller]

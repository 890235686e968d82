"""Threads that callers take turns at: one caller's work waits behind their own, never in front of another caller's.

Every request needs one of the process's shared threads to be authenticated, so long work has threads of its own.
Each caller has a lane (a FIFO queue), of which a limited number runs at a time; the lanes are served round-robin.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from typing import TypeVar

from anyio import CapacityLimiter
from anyio.to_thread import run_sync

from idios.server.problems import Problem, Refused

T = TypeVar("T")


class Lanes:
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

    async def run(self, caller: str, work: Callable[[], T]) -> T:
        """Do the work in a thread when it is the caller's turn; refused if too much of theirs waits already."""
        if self._taken[caller] >= self._each:
            raise Refused(self._full)
        if self._limiter is None:
            self._limiter = CapacityLimiter(self._threads)  # belongs to the event loop, so it is made inside
        self._taken[caller] += 1
        try:
            await self._turn(caller)
            try:
                return await run_sync(work, limiter=self._limiter)
            finally:
                self._leave(caller)
        finally:
            self._taken[caller] -= 1
            if not self._taken[caller]:
                del self._taken[caller]

    async def _turn(self, caller: str) -> None:
        """Wait until a thread is the caller's."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(caller, deque()).append(turn)
        self._call()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._leave(caller)
            elif caller in self._waiting and turn in self._waiting[caller]:
                self._waiting[caller].remove(turn)
            raise

    def _leave(self, caller: str) -> None:
        self._free += 1
        self._running[caller] -= 1
        if not self._running[caller]:
            del self._running[caller]
        if caller in self._waiting:
            self._waiting.move_to_end(caller)  # they had their turn, even if no other caller waited then
        self._call()

    def _call(self) -> None:
        """Give each free thread to the caller whose last turn is longest ago and who may have one."""
        for caller in list(self._waiting):
            lane = self._waiting[caller]
            if not self._free:
                return
            while lane and lane[0].cancelled():
                lane.popleft()  # its request is gone, and has not come to remove it yet
            if lane and self._running[caller] < self._at_once:
                self._free -= 1
                self._running[caller] += 1
                lane.popleft().set_result(None)
            if not lane:
                del self._waiting[caller]

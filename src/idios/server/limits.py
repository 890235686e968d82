"""Rate limits: a token bucket for each caller's token and each address.

Each process of the server counts for itself, so with several workers a limit is reached a little later.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock

MOST = 10_000
"""How many callers are remembered; the least recent is forgotten first, which only helps them."""


class Limiter:
    """Allows `per_minute` requests a minute for each caller, at most a quarter of them at once.

    >>> now = [0.0]
    >>> limiter = Limiter(60, clock=lambda: now[0])
    >>> [limiter.try_acquire("ada") for _ in range(16)][-2:]
    [0, 1]
    >>> now[0] = 1.0
    >>> limiter.try_acquire("ada")
    0
    """

    def __init__(self, per_minute: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = per_minute / 60
        self._most = max(1.0, per_minute / 4)
        self._clock = clock
        self._lock = Lock()
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def try_acquire(self, caller: str, cost: float = 1) -> int:
        """Count a request: 0 if it is allowed now, else the seconds until the next one will be; this never waits."""
        now = self._clock()
        with self._lock:
            left, then = self._buckets.pop(caller, (self._most, now))
            left = min(self._most, left + (now - then) * self._rate)
            allowed = left >= cost
            self._buckets[caller] = (left - cost if allowed else left, now)
            while len(self._buckets) > MOST:
                self._buckets.popitem(last=False)
        return 0 if allowed else max(1, math.ceil((cost - left) / self._rate))

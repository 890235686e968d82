"""Wait for a condition, not for a time: a test that waits passes at once where it can, and later where it must."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

SECONDS = 30.0
"""How long a condition may take on a busy machine before the test fails."""


def until(condition: Callable[[], Any], seconds: float = SECONDS) -> Any:
    """Wait for something that another thread or process does, and give what the condition gives."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if value := condition():
            return value
        time.sleep(0.005)
    raise AssertionError("the condition never came true")

"""What a backend tells while it works, for whoever shows a bar after a while."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Progress: TypeAlias = Callable[[str, float], None]
"""Is called with the name of each step as it begins, and the share of the work that lies behind, from 0 to 1."""


def silent(step: str, share: float) -> None:
    """Tell nobody."""

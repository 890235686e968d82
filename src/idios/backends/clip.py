"""Clipping to limits that were drawn, exactly, in engines whose points have 64 bits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from idios.core.domain import LIMIT, Domain
from idios.core.neighbours import Moves
from idios.core.summary import Summary

Limits: TypeAlias = tuple[int, int]
"""The least and the greatest grid point that values are clipped to."""


@dataclass(frozen=True)
class Clip:
    """Clipping to the bounds of a domain, as clipping to ``low`` and ``high`` plus a ``shift``.

    Points of an engine lie within ±2⁶². So a limit beyond is the same as ±2⁶², unless both lie beyond on one side:
    then every value is clipped to the nearer one, which is ±2⁶² shifted.

    >>> clip = Clip(Domain(lower=2**70, upper=2**80))
    >>> clip.low == clip.high == 2**62, clip.shift == 2**70 - 2**62
    (True, True)
    """

    domain: Domain

    @classmethod
    def of(cls, grid: Domain, limits: Limits) -> Clip:
        """Clipping to some points of a grid."""
        return cls(Domain(grid.step, *limits))

    @property
    def low(self) -> int:
        """The lower limit, within 64 bits."""
        return -LIMIT if self.domain.lower is None else max(-LIMIT, min(LIMIT, self.domain.lower))

    @property
    def high(self) -> int:
        """The upper limit, within 64 bits."""
        return LIMIT if self.domain.upper is None else max(-LIMIT, min(LIMIT, self.domain.upper))

    @property
    def shift(self) -> int:
        """What is missing from a value that was clipped to ``low`` and ``high``."""
        return self.domain.clamp(self.low) - self.low

    def summarise(self, moves: Moves, total: int, squares: int | None) -> Summary:
        """The values clipped to the domain, from the sums of those clipped to ``low`` and ``high``.

        Σ(v + s) = Σv + n·s and Σ(v + s)² = Σv² + 2s·Σv + n·s².
        """
        size, shift = moves.size, self.shift
        if squares is not None:
            squares += 2 * shift * total + size * shift**2
        return Summary(self.domain, moves, total=total + size * shift, squares=squares)

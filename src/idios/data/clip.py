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
class Totals:
    """The sum of all values that a selection has of a column, and that of their squares where it is needed."""

    total: int
    squares: int | None = None


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

    def correct(self, summary: Summary, totals: Totals) -> Summary | None:
        """The values clipped to the domain, from the sums of all; None where some beyond it are not in ``summary``.

        Σ clip(v) = Σv − Σ(v − clip(v)), where only values beyond the limits l ≤ u differ from 0, and likewise squares.
        The windows hold all values below l if they begin at the first rank and end with one that is not below l, or
        hold all values; and the mirror image.
        """
        if self.domain.lower is None or self.domain.upper is None:
            raise AssertionError("values are clipped to two limits")
        below = _list_below(summary, self.domain.lower)
        above = _list_above(summary, self.domain.upper)
        if below is None or above is None:
            return None
        beyond = [(value, self.domain.clamp(value)) for value in below + above]
        total, squares = totals.total - sum(value - clipped for value, clipped in beyond), totals.squares
        if squares is not None:
            squares -= sum(value**2 - clipped**2 for value, clipped in beyond)
        return Summary(self.domain, summary.moves, total=total, squares=squares)

    def summarise(self, moves: Moves, total: int, squares: int | None) -> Summary:
        """The values clipped to the domain, from the sums of those clipped to ``low`` and ``high``.

        Σ(v + s) = Σv + n·s and Σ(v + s)² = Σv² + 2s·Σv + n·s².
        """
        size, shift = moves.size, self.shift
        if squares is not None:
            squares += 2 * shift * total + size * shift**2
        return Summary(self.domain, moves, total=total + size * shift, squares=squares)


def _list_below(summary: Summary, limit: int) -> list[int] | None:
    """The values below a limit; None where the windows do not hold them all."""
    if not summary.size:
        return []
    for window in summary.windows:
        if window.first == 1 and (window.values[-1] >= limit or len(window.values) == summary.size):
            return [value for value in window.values if value < limit]
    return None


def _list_above(summary: Summary, limit: int) -> list[int] | None:
    """The values above a limit; None where the windows do not hold them all."""
    if not summary.size:
        return []
    for window in summary.windows:
        ends = window.first + len(window.values) - 1 == summary.size
        if ends and (window.values[0] <= limit or window.first == 1):
            return [value for value in window.values if value > limit]
    return None

"""Parallel composition by enumeration: every way in which i records can touch the parts of a table."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product


def lose_in_parts(parts: Sequence[Sequence[Fraction]], touched: int) -> list[Fraction]:
    """The greatest Σ_c e_c(t_c) for i = 1, 2, …, where t_c ≤ i of the records touch part c, ``touched``·i in all."""
    losses = []
    for records in range(1, min(map(len, parts)) + 1):
        worst = Fraction(0)
        for counts in product(range(records + 1), repeat=len(parts)):
            if sum(counts) <= touched * records:
                spent = (part[t - 1] for part, t in zip(parts, counts, strict=True) if t)
                worst = max(worst, sum(spent, Fraction(0)))
        losses.append(worst)
    return losses

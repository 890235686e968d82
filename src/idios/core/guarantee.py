"""What an answer promises, as a value that prints itself in one sentence."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

from idios.core.calibration import Level
from idios.core.exact import text
from idios.core.neighbours import Neighbours
from idios.errors import InvalidInput


@dataclass(frozen=True)
class Guarantee:
    """ε-iDP, (ε, …, gε)-gDP or (ε, δ)-DP, for one notion of neighbouring data sets.

    >>> print(Guarantee(Level.DIFFERENTIAL, Fraction(1, 2), Neighbours.REPLACE))
    0.5-differential privacy: whatever the data, replacing any one record changes the probability of any \
answer by a factor of at most e^0.5 ≈ 1.65.
    """

    notation: str = field(init=False, repr=False, compare=False)
    """The guarantee as the papers write it."""
    sentence: str = field(init=False, repr=False, compare=False)
    """The guarantee in words."""
    level: Level
    epsilon: Fraction
    neighbours: Neighbours
    delta: Fraction = Fraction(0)
    group: int = 1

    def __post_init__(self) -> None:
        if self.epsilon < 0 or not 0 <= self.delta <= 1 or self.group < 1:
            raise InvalidInput("a guarantee has ε ≥ 0, 0 ≤ δ ≤ 1 and a group of at least one record")
        if self.group > 1 and self.level is not Level.GROUP:
            raise InvalidInput(f"a group of {self.group} belongs to the level group, not {self.level}")
        if self.delta and self.level is Level.GROUP:
            raise InvalidInput("a group guarantee has no delta")
        object.__setattr__(self, "notation", self._notation())
        object.__setattr__(self, "sentence", self._sentence())

    def __str__(self) -> str:
        return self.sentence

    def _notation(self) -> str:
        epsilon, delta = text(self.epsilon), text(self.delta)
        if self.level is Level.GROUP:
            sizes = [*range(1, self.group + 1)] if self.group <= 4 else [1, 2, None, self.group]
            steps = ["…" if size is None else str(text(size * self.epsilon)) for size in sizes]
            return f"({', '.join(steps)})-gDP"
        name = "iDP" if self.level is Level.INDIVIDUAL else "DP"
        return f"({epsilon}, {delta})-{name}" if self.delta else f"{epsilon}-{name}"

    def _sentence(self) -> str:
        epsilon = text(self.epsilon)
        change = "replacing" if self.neighbours is Neighbours.REPLACE else "adding or removing"
        factor = f"by a factor of at most e^{epsilon}"
        if self.epsilon <= 100:
            factor += f" ≈ {math.exp(self.epsilon):.3g}"
        if self.delta:
            factor += f", up to a probability of {text(self.delta)}"
        if not self.epsilon and not self.delta:
            return "No privacy is spent: the answer is publicly known."
        if self.level is Level.DIFFERENTIAL:
            named = f"({epsilon}, {text(self.delta)})" if self.delta else epsilon
            return (
                f"{named}-differential privacy: whatever the data, {change} any one record changes the "
                f"probability of any answer {factor}."
            )
        frozen = "for the noise calibrated on the actual data; how it was calibrated is not covered"
        if self.level is Level.INDIVIDUAL:
            return (
                f"{epsilon}-individual differential privacy: {change} any one record of the actual data changes "
                f"the probability of any answer {factor}, {frozen}, and neither are groups of records."
            )
        records = f"{self.group} records" if self.group > 1 else "1 record"
        return (
            f"{epsilon}-group differential privacy for up to {records}: {change} any i of them in the actual data "
            f"changes the probability of any answer by a factor of at most e^(i·{epsilon}), {frozen}."
        )

"""An analyst who attacks a table of secret bits: knows the ids, the declarations and the code, and none of the bits.

The table has the ids 0 … n−1 and x, which is 0 or 1000. The median of an odd number 2m+1 of records is one of four
draws, and noise of a thousandth of the size, or a five-hundredth, tells which, whatever ε is:

    ones among them    below m      m          m+1         above
    drawn around       0            0          1000        1000
    noise              of a step    of 1000    of 1000     of a step

Ids are taken in windows. For each the analyst keeps the probability of every pattern of bits, asks about the subset
that promises most information, and learns by Bayes' rule. Where one window is asked about at a time, a record whose bit
is known already can stand beside the subset, which moves its threshold. Of several cells in one question a loud one has
noise of 1000/ε, since a record that leaves or enters moves its median by 500; a quiet one of 2/ε, since a record can
move two cells by their floors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from idios.errors import BudgetExceeded
from idios.party import TrustedParty

GAP = 1000
CENTRES = np.array([0, 0, GAP, GAP])
SENSITIVITIES = np.array([1, GAP, GAP, 1])
SURE = 0.99

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Actions:
    """What can be asked about a window: ``subsets`` as masks, ``beside`` known ones (below 0: zeros), odd together.

    ``draws[a, p]`` is which of the four draws action a makes of pattern p.
    """

    subsets: NDArray[np.int64]
    beside: NDArray[np.int64]
    draws: NDArray[np.int8]


@cache
def actions(width: int, beside: int) -> Actions:
    patterns = np.arange(2**width)
    ones = np.array([int(pattern).bit_count() for pattern in patterns])
    every = [(subset, extra) for subset in patterns[1:] for extra in range(-beside, beside + 1)]
    subsets, extras = np.array([one for one in every if (size := ones[one[0]] + abs(one[1])) >= 3 and size % 2]).T
    middle = (ones[subsets] + np.abs(extras)) // 2
    counted = ones[subsets[:, None] & patterns] + np.maximum(extras, 0)[:, None]
    return Actions(subsets, extras, np.clip(counted - middle[:, None] + 1, 0, 3).astype(np.int8))


class Window:
    """Some neighbouring ids, and how likely each pattern of their bits is."""

    def __init__(self, first: int, width: int, beside: int = 0) -> None:
        self.first, self.width = first, width
        self.actions = actions(width, beside)
        self.patterns = np.full(2**width, 2.0**-width)
        self.asked: set[int] = set()

    @property
    def bits(self) -> Floats:
        """The probability that each bit is 1."""
        places = np.arange(2**self.width)[:, None] >> np.arange(self.width) & 1
        return np.asarray(self.patterns @ places)

    @property
    def known(self) -> bool:
        return bool(np.all(np.maximum(self.bits, 1 - self.bits) >= SURE))

    def choose(self, epsilon: float, zeros: int = 0, ones: int = 0) -> int:
        """The action not asked before that tells most, with so many known records to put beside."""
        likely = self.patterns > 1e-9
        draws, patterns = self.actions.draws[:, likely], self.patterns[likely]
        low, loud_low, loud_high, high = ((draws == draw) @ patterns for draw in range(4))
        loud = loud_low + loud_high
        told = 1 - _entropy(1 - np.exp(-epsilon / 2) / 2, np.exp(-epsilon / 2) / 2)  # of which loud draw it was
        within = _entropy(loud_low, loud_high) - _entropy(loud)
        score = _entropy(low, loud, high) + told * within
        score[(self.actions.beside > ones) | (-self.actions.beside > zeros)] = -1
        score[list(self.asked)] = -1
        return int(np.argmax(np.round(score, 6)))  # rounded, so that the last digits of a sum decide nothing

    def ids(self, action: int) -> list[int]:
        return [self.first + i for i in range(self.width) if self.actions.subsets[action] >> i & 1]

    def learn(self, action: int, answer: float, epsilon: float, quiet_epsilon: float) -> None:
        draws = self.actions.draws[action]
        scale = np.where(SENSITIVITIES[draws] == GAP, GAP / epsilon, 1 / quiet_epsilon)
        likelihood = np.log(self.patterns + 1e-300) - np.abs(answer - CENTRES[draws]) / scale - np.log(scale)
        likely = np.exp(likelihood - likelihood.max())
        self.patterns = likely / likely.sum()


def _entropy(*shares: Floats | float) -> Floats:
    bits = [np.where(np.asarray(p) > 0, p * np.log2(np.maximum(p, 1e-300)), 0.0) for p in shares]
    return np.asarray(-sum(bits, np.zeros(1)))


def ask_together(party: TrustedParty, windows: Sequence[Window], epsilon: float) -> None:
    """One question with a cell for each window, all of one width."""
    key = f"BIN(id, {windows[0].width})"
    chosen = [window.choose(epsilon) for window in windows]
    ids = [i for window, action in zip(windows, chosen, strict=True) for i in window.ids(action)]
    answer = party.query(f"SELECT {key}, MEDIAN(x) FROM t WHERE id IN ({_listed(ids)}) GROUP BY {key}", str(epsilon))
    values = {row[key]: row["MEDIAN(x)"] for row in answer.rows}
    for window, action in zip(windows, chosen, strict=True):
        window.learn(action, values[window.first], epsilon, epsilon / 2)


def ask_singly(party: TrustedParty, size: int, width: int, epsilon: float) -> list[Window]:
    """One window after the other, a question for each value, until all is known or the budget is gone."""
    windows: list[Window] = []
    zeros: list[int] = []
    ones: list[int] = []
    for first in range(0, size - width + 1, width):
        window = Window(first, width, beside=1)
        windows.append(window)
        while not window.known:
            action = window.choose(epsilon, len(zeros), len(ones))
            beside = {1: ones[:1], 0: [], -1: zeros[:1]}[int(window.actions.beside[action])]
            sql = f"SELECT MEDIAN(x) FROM t WHERE id IN ({_listed(window.ids(action) + beside)})"
            try:
                answer = party.query(sql, str(epsilon))
            except BudgetExceeded:
                return windows
            window.learn(action, answer.value, epsilon, epsilon)
            window.asked.add(action)  # asked again, it would be the same answer
        for i, likely in enumerate(window.bits):
            (ones if likely > 0.5 else zeros).append(first + i)
    return windows


def _listed(ids: Sequence[int]) -> str:
    return ", ".join(map(str, sorted(ids)))

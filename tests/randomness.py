"""What the tests of randomness share: bytes prepared by hand, a chi-square test and its alarm level."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from idios.core.sampling import RandomSource

FALSE_ALARM = 1e-6 / 60  # of one p-value: the samplers' tests compute fewer than sixty, so all together 10^(−6)


class Scripted(RandomSource):
    """Hands out prepared bytes, each read exactly as long as prepared."""

    secure = False

    def __init__(self, *reads: bytes) -> None:
        self.reads = list(reads)

    def read(self, size: int) -> bytes:
        data = self.reads.pop(0)
        assert len(data) == size
        return data


def words(values: Iterable[int]) -> bytes:
    """Give the bytes of 16-bit words, what a digit is compared with first."""
    return np.array(list(values), dtype="<u2").tobytes()


def more(value: int) -> bytes:
    """Give the bytes of a 64-bit block, what is compared after a tie."""
    return value.to_bytes(8, "little")


def chi_square(observed: ArrayLike, expected: ArrayLike, least: float = 20) -> float:
    """Give the p-value of counts; cells in which fewer than `least` are expected are put together first."""
    cells = [[0.0, 0.0]]
    for expectation, count in sorted(zip(np.asarray(expected), np.asarray(observed), strict=True)):
        if cells[-1][0] >= least:
            cells.append([0.0, 0.0])
        cells[-1][0] += expectation
        cells[-1][1] += count
    if len(cells) > 1 and cells[-1][0] < least:
        last = cells.pop()
        cells[-1] = [cells[-1][0] + last[0], cells[-1][1] + last[1]]
    expectations, counts = zip(*cells, strict=True)
    return float(stats.chisquare(counts, expectations).pvalue)

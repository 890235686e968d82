"""Numbers that stand for "no answer": which of a column's values surveys usually write instead of one.

Where codes have labels, these say it (``find_unanswered``). Else these rules together answer for every column of
numbers:

1. Candidates are 7, 8 and 9; of two to seven digits those that are all 6, 7, 8 or 9, and the last three (97, 98, 99);
   the negatives of all these, and −1, −2, −3.
2. A *tail* is nothing but candidates, up to the end of all values: at the lower end negative ones, at the upper end
   the others. What is in no tail is the rest. The longest certain tail of each end counts, as a whole: 8, 9 and 99
   after 1 to 5.
3. A value of a tail that occurs fewer than ``RARE`` times is never named, whatever it is.
4. A tail stands apart if it lies further from the rest than values of the rest do from each other, and the rest has
   two values at least.
5. Apart from whole numbers, one that begins with one digit is certain if it is negative or has a common 9. Any other
   that stands apart is certain if it is ``FAR`` times as far away, if two of its values are common, or if its common
   values occur more often than the value next to it, and are ``OFTEN`` times as far away or occur ``OFTEN`` times as
   often: the oldest of all ages lie apart, too.
6. Not apart, it is certain if it is negative, all of it common, and the rest has more than ``MOST_CODES`` values, none
   of them negative (−1 beside 0 to 60, but not −1, 0, 1); or if its common values, of several digits, pile up
   (``PILED``) further away than values usually are from each other (999,999 among incomes).
7. What is not certain is doubtful, and for the controller to decide, if it stands apart, if it is negative beside a
   rest that is not, if it piles up, or if it ends with nines and a single other value is
   not next to it. All else is a value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import dropwhile, pairwise

from idios.data.formats.text_proposals import MOST_CODES, RARE, is_no_answer, may_be_answer

OFTEN = 3
"""So many times as often as the value next to it occurs what lies apart, if it is no answer; or it is as far away."""
PILED = 20
"""And so many times as often, if it hardly lies apart."""
FAR = 10
"""Further away than this times the widest gap between others, a value belongs to none of them."""

_WHOLE = re.compile(r"-?[0-9]{1,18}")
_LENGTHS = range(2, 8)
_REPEATED = frozenset(int(digit * length) for digit in "6789" for length in _LENGTHS)
_LAST = frozenset(10**length - back for length in _LENGTHS for back in (1, 2, 3))
_ABOVE = frozenset(map(Fraction, {7, 8, 9} | _REPEATED | _LAST))
_BELOW = frozenset(-number for number in _ABOVE) | {Fraction(-number) for number in (1, 2, 3)}


@dataclass(frozen=True)
class Sentinels:
    """The values that stand for no answer, and those that may."""

    certain: tuple[int, ...] = ()
    doubtful: tuple[int, ...] = ()


def find_sentinels(counts: Mapping[Fraction, int]) -> Sentinels:
    """Which numbers stand for no answer, by how often each occurs.

    >>> find_sentinels({Fraction(number): 50 for number in (1, 2, 3, 4, 5, 8, 9)})
    Sentinels(certain=(8, 9), doubtful=())
    >>> find_sentinels({Fraction(number): 50 for number in range(1, 10)})
    Sentinels(certain=(), doubtful=())
    """
    certain, doubtful = set[Fraction](), set[Fraction]()
    left = dict(counts)
    for tails in (_list_tails_below, _list_tails_above):
        judged = [(tail, tail.is_certain()) for tail in tails(left)]
        found = next((tail for tail, sure in judged if sure), None)
        if found is not None:
            certain.update(found.common)
            left = {number: times for number, times in left.items() if number not in found.values}
        doubted = next((tail for tail in tails(left) if tail.is_doubtful()), None)
        if doubted is not None:
            doubtful.update(doubted.common)
            left = {number: times for number, times in left.items() if number not in doubted.values}
    return Sentinels(tuple(sorted(map(int, certain))), tuple(sorted(map(int, doubtful))))


def find_unanswered(labels: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """The codes whose labels say that there is no answer, and those whose labels may, by the code of each label.

    A label that may be an answer, such as "refused", says so where its code does, too: negative, or a candidate beyond
    the codes of all answers. Where no label is one of an answer, all say it.

    >>> find_unanswered({"1": "granted", "2": "refused", "3": "pending", "8": "don't know", "9": "unknown"})
    (['8', '9'], ['2'])
    """
    said = [code for code, label in labels.items() if is_no_answer(label)]
    answers = [code for code in labels if code not in said]
    last = max((Fraction(code) for code in answers if _WHOLE.fullmatch(code)), default=Fraction(0))

    def stands_apart(code: str) -> bool:
        number = Fraction(code) if _WHOLE.fullmatch(code) else Fraction(0)
        return number < 0 or (number in _ABOVE and number > last)

    doubtful = [code for code in said if answers and may_be_answer(labels[code]) and not stands_apart(code)]
    return [code for code in said if code not in doubtful], doubtful


@dataclass(frozen=True)
class _Tail:
    """The values at one end, from the one nearest to the rest on, and the rest in the same order."""

    counts: Mapping[Fraction, int]
    values: Sequence[Fraction]
    rest: Sequence[Fraction]

    @property
    def common(self) -> list[Fraction]:
        """Rule 3."""
        return [value for value in self.values if self.counts[value] >= RARE]

    def is_certain(self) -> bool:
        """Rules 5 and 6."""
        if not self.common or len(self.rest) < 2:
            return False
        if self._is_apart():
            if self._has_one_digit() and all(value.denominator == 1 for value in self.rest):
                return self._is_negative() or Fraction(9) in self.common
            far = self._distance > FAR * max(self._gaps) or (
                self._distance > OFTEN * max(self._gaps) and self._occurs(1)
            )
            return far or len(self.common) > 1 or self._occurs(OFTEN)
        if self._is_beside() and len(self.common) == len(self.values) and len(self.rest) > MOST_CODES:
            return True
        return self._piles_up() and self._distance > sorted(self._gaps)[len(self._gaps) // 2]

    def is_doubtful(self) -> bool:
        """Rule 7, of what is not certain."""
        if not self.common or not self.rest:
            return False
        if len(self.rest) == 1:
            nines = not self._is_negative() and set(str(self.common[-1])) == {"9"}
            return self._is_beside() or (nines and self._distance > 1)
        return self._is_apart() or self._is_beside() or self._piles_up()

    def _has_one_digit(self) -> bool:
        return abs(self.values[0]) < 10

    def _is_negative(self) -> bool:
        return self.values[0] < 0

    def _is_beside(self) -> bool:
        """Whether these are the only negative values."""
        return self._is_negative() and self.rest[-1] >= 0

    def _is_apart(self) -> bool:
        """Rule 4."""
        return self._distance > max(self._gaps)

    def _occurs(self, often: int) -> bool:
        return all(self.counts[value] > often * self.counts[self.rest[-1]] for value in self.common)

    def _piles_up(self) -> bool:
        """Whether values of several digits do: 7 may be the days of a whole week."""
        return not self._has_one_digit() and self._occurs(PILED)

    @property
    def _distance(self) -> Fraction:
        return abs(self.values[0] - self.rest[-1])

    @property
    def _gaps(self) -> list[Fraction]:
        return [abs(later - earlier) for earlier, later in pairwise(self.rest)]


def _list_tails_above(counts: Mapping[Fraction, int]) -> Iterator[_Tail]:
    return _list_tails(counts, sorted(counts), _BELOW, _ABOVE)


def _list_tails_below(counts: Mapping[Fraction, int]) -> Iterator[_Tail]:
    return _list_tails(counts, sorted(counts, reverse=True), _ABOVE, _BELOW)


def _list_tails(
    counts: Mapping[Fraction, int],
    ordered: Sequence[Fraction],
    other: frozenset[Fraction],
    candidates: frozenset[Fraction],
) -> Iterator[_Tail]:
    """Rule 2, the longest first; the longest tail at the other end is no part of the rest."""
    rest = list(dropwhile(other.__contains__, ordered))
    start = len(rest)
    while start and rest[start - 1] in candidates:
        start -= 1
    for first in range(start, len(rest)):
        yield _Tail(counts, rest[first:], rest[:first])

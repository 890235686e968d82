"""What is proposed of one column, from a sample of its values.

Rules:

1. A proposal has read records, and says so. It counts once its controller has declared it: columns are public.
2. A value is proposed if it occurs at least ``RARE`` times in the sample: a rare one may be one person's. Of a public
   table, in which nobody is described, all values are.
3. Whole numbers that are few and repeat are codes, and so categories, unless the name says that they are counted or
   measured, or no code has so many digits.
4. Values that stand for "no answer" (8, 9, 77, 88, 99, 999, −1, −9, or so labelled) are proposed as missing where they
   certainly stand apart, and pointed out where they may. Labels of these are shown.
5. Text with many values, keys, numbers whose mark may divide thousands as well as decimals, and numbers with units or
   signs that are not read are left out. Weights, periods, and numbers that look like dates are pointed out.
6. Among numbers and dates that are written as text, a few words read as missing (``formats/text_proposals.py``). They
   are counted, not shown. Where words among categories seem to mean "missing", that is for the controller to decide.
7. Advice is written into a configuration, which is public, and so tells no number that was counted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import dropwhile, pairwise
from typing import Any

from idios.core.domain import Kind
from idios.data.formats.text_fields import BLANKS, FORMS, Notation
from idios.data.formats.text_proposals import (
    MOST_CODES,
    RARE,
    are_days,
    are_dotted_codes,
    are_measured,
    are_round,
    is_no_answer,
    may_be_answer,
    may_be_thousands,
    propose_reading,
    strip_fields,
)
from idios.propose.key_names import CERTAIN, is_called_key, tells_people_apart
from idios.propose.samples import ValueCounts

# Numbers that stand for "no answer": which of a column's values surveys usually write instead of one.
#
# Where codes have labels, these say it (``find_unanswered``). Else these rules together answer for every column of
# numbers:
#
# 1. Candidates are 7, 8 and 9; of two to seven digits those that are all 6, 7, 8 or 9, and the last three (97, 98, 99);
#    the negatives of all these, and −1, −2, −3.
# 2. A *tail* is nothing but candidates, up to the end of all values: at the lower end negative ones, at the upper end
#    the others. What is in no tail is the rest. The longest certain tail of each end counts, as a whole: 8, 9 and 99
#    after 1 to 5.
# 3. A value of a tail that occurs fewer than ``RARE`` times is never named, whatever it is.
# 4. A tail stands apart if it lies further from the rest than values of the rest do from each other, and the rest has
#    two values at least.
# 5. Apart from whole numbers, one that begins with one digit is certain if it is negative or has a common 9. Any other
#    that stands apart is certain if it is ``FAR`` times as far away, if two of its values are common, or if its common
#    values occur more often than the value next to it, and are ``OFTEN`` times as far away or occur ``OFTEN`` times as
#    often: the oldest of all ages lie apart, too.
# 6. Not apart, it is certain if it is negative, all of it common, and the rest has more than ``MOST_CODES`` values,
#    none of them negative (−1 beside 0 to 60, but not −1, 0, 1); or if its common values, of several digits, pile up
#    (``PILED``) further away than values usually are from each other (999,999 among incomes).
# 7. What is not certain is doubtful, and for the controller to decide, if it stands apart, if it is negative beside a
#    rest that is not, if it piles up, or if it ends with nines and a single other value is not next to it. All else is
#    a value.


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


MOST_LISTED = 60
"""So many values at most are proposed of a column of text: the states and territories of a country are fewer."""
REPEATED = 20
"""How often a code occurs at least, on average."""
MOST_LABELS = 200
"""So many codes with labels at most are proposed."""
RARE_LEFT_OUT = "rare values are not proposed, and would read as missing"
THOUSANDS = (
    'three digits after every mark: if "{mark}" divides thousands, declare type = "integer", and decimal = "{other}", '
    'thousands = "{mark}" of csv; if it is the decimal mark, type = "number", and decimal = "{mark}" of csv'
)
ROUND = (
    '; another column has "{mark}" as its decimal mark, but these end in 0 as amounts do: convert them where they are '
    "thousands, or that column"
)
OTHER_MARKS = (
    "numbers with other marks than the file's other columns, left out: convert them, or all others and declare "
    'decimal = "{decimal}", thousands = "{thousands}" of csv'
)
MEASURED = "they look like numbers with a unit or a sign, left out: convert them to plain numbers"
DOTTED = (
    "some differ in zeros at their end alone: if 1.1 and 1.10 are two codes, and not one number, list them in a file"
)
DAYS = "they look like dates: if they are, convert them"
DAYS_WRITTEN = 'they look like dates: if they are, type = "date", format = "%Y%m%d"'
AS_TEXT = "{kind} written as text, left out: convert them, or open the csv file that they come from"
WORDS = "values that are no {kind} read as missing; idios check counts them"
ORDER = "which are days and which months cannot be told: declare"
PERIOD = "answers about a single year, month or day rest on fewer records, and are less accurate"
REPEATS = (
    'its values repeat: if each is a person, records are protected and not people, until unit = "{name}" is declared'
)
LISTED = "list them in a file, with labels; an expression can group them (docs/configuration.md#codes)"
PERHAPS = "{listed} may mean no answer: if so, missing = [{listed}]"
PERHAPS_CODES = PERHAPS + ", and not in values"
UNANSWERED = "{listed} may mean that there is no answer: move it from values to missing then"
SAMPLED = "not all records were read: a value that is not listed reads as missing, so add what is rare"
COVERED = Fraction(9, 10)
"""The values that are proposed make up at least this share of a column."""

_NUMBER = re.compile(r"\s*[-+]?[0-9]{1,30}([.,][0-9]{1,30})?\s*")
_UNUSUAL = re.compile(r"[^\w-]+")
_NUMBERS = (Kind.INTEGER, Kind.NUMBER, Kind.DECIMAL)
_NOTATIONS = (Notation(), Notation(","), Notation(".", ","), Notation(",", "."))
_WEIGHT = re.compile(r"weight|(^|_)(wgt|wt|pwt|hwt)(_|$|\d)|gewicht", re.IGNORECASE)
_PERIOD = re.compile(r"(^|_)(year|month|quarter|wave|period|round)(_|$)", re.IGNORECASE)
_COUNTED = re.compile(
    r"(^|_)(age|years?|hours?|days?|weeks?|minutes?|number|num|n|count|size|rooms?|children|kids|persons?|members?|"
    r"income|wage|salary|amount|total|price|value|score|distance)(_|$|\d)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class ProposedColumn:
    """What would be declared of a column, or None, and what its controller is told."""

    table: dict[str, Any] | None
    note: str = ""
    advice: str = ""
    """What the configuration says beside it."""
    offered: dict[str, Any] | None = None
    """What could be declared of a column that is left out."""

    def add(self, note: str, advice: str = "") -> ProposedColumn:
        """The same with more to be told."""
        return replace(self, note=_join(self.note, note), advice=_join(self.advice, advice))


@dataclass(frozen=True)
class SampledColumn:
    """What is known of one column."""

    name: str
    kind: Kind
    decimals: int = 0
    counted: ValueCounts = field(default_factory=ValueCounts)
    labels: Mapping[str, str] = field(default_factory=dict)
    csv: bool = False
    """Whether it is of a csv file, which declares how numbers are written."""
    marked: bool = False
    """Whether another column shows what the decimal mark is."""
    public: bool = False
    """Whether it is of a public table: nobody is described in it, so that nothing is left out for being rare."""

    @property
    def _least(self) -> int:
        """How often a value occurs that is proposed."""
        return 1 if self.public else RARE

    def propose(self) -> ProposedColumn:
        """What would be declared of it."""
        if self.labels:
            return self._propose_labelled(self.counted.values)
        written = self._propose_thousands() or self._propose_dates() or self._propose_written()
        return written or self._propose_known()

    def tells_people_apart(self) -> bool:
        """Whether its values may be people who have several rows."""
        counted = self.counted
        return is_called_key(self.name) and tells_people_apart(len(counted.values), counted.given, counted.missing)

    def _propose_thousands(self) -> ProposedColumn | None:
        """Numbers of a csv file that are a thousand times smaller if a mark is read as the decimal mark."""
        notation = self.counted.notation
        if not self.csv or notation is None or notation.thousands:
            return None
        fields = strip_fields(self.counted.values)
        for mark, other in (".,", ",."):
            decimal = self.marked and mark == notation.decimal
            if may_be_thousands(fields, mark) and not (decimal and not are_round(fields, mark)):
                told = (THOUSANDS + ROUND * decimal).format(mark=mark, other=other)
                offered = {"type": "number" if mark == notation.decimal else "integer"}
                return ProposedColumn(None, f"numbers, left out: {told}", told, offered)
        return None

    def _propose_written(self) -> ProposedColumn | None:
        """Numbers and dates that are written as text, without the words among them."""
        notation = self.counted.notation
        if notation is None or self.kind is Kind.CATEGORY or self._are_padded():
            return None
        fields = Counter[str]()
        for text, times in self.counted.values.items():
            fields[notation.normalise(text.strip(BLANKS)) if self.kind in _NUMBERS else text.strip(BLANKS)] += times
        kind = self.kind
        if kind is Kind.INTEGER and any(_fits(Kind.NUMBER, each) and not _fits(kind, each) for each in fields):
            kind = Kind.NUMBER
        readable = Counter({text: times for text, times in fields.items() if _fits(kind, text)})
        dotted = kind is Kind.NUMBER and are_dotted_codes(readable)
        if dotted and (coded := self._propose_text(self.counted.values)).table is not None:
            return coded
        counted = ValueCounts(readable, self.counted.records - readable.total(), notation)
        proposed = replace(self, kind=kind, counted=counted)._propose_known()
        proposed = proposed.add(DOTTED, DOTTED) if dotted else proposed
        words = fields.total() - readable.total()
        return proposed.add(*self._tell_words(words, kind)) if words else proposed

    def _propose_dates(self) -> ProposedColumn | None:
        """Dates in another format than ISO 8601."""
        notation = self.counted.notation
        if notation is None or self.kind is not Kind.CATEGORY:
            return None
        cells = {text for text in self.counted.values if notation.dated and _fits(Kind.TIMESTAMP, text)}  # dates
        fields = strip_fields({text: times for text, times in self.counted.values.items() if text not in cells})
        reading = propose_reading(fields)
        tables = [{"type": reading.kind.value, "format": format} for format in reading.formats]
        if len(tables) > 1:
            either = " or ".join(f'format = "{format}"' for format in reading.formats)
            return ProposedColumn(None, f"dates, left out: {ORDER} {either}", f"{ORDER} {either}", tables[0])
        if not tables:
            return None
        words = sum(fields[word] for word in reading.words)
        proposed = ProposedColumn(tables[0], PERIOD)
        return proposed.add(*self._tell_words(words, reading.kind)) if words else proposed

    def _tell_words(self, words: int, kind: Kind) -> tuple[str, str]:
        """What is told of values that cannot be read: how many to the controller, and that there are to everyone."""
        told = WORDS.format(kind="numbers" if kind in _NUMBERS else "dates")
        return f"{words:,} {told}", told

    def _propose_known(self) -> ProposedColumn:
        counts = self.counted.values
        numbers = _read_numbers(counts)
        if self._is_key(numbers) or (numbers and self._are_padded() and len(counts) > MOST_LISTED):
            return ProposedColumn(None, "a key, left out: it may tell people apart who have several rows (unit)")
        if self.kind is Kind.CATEGORY or self._are_padded():
            return self._propose_text(counts)
        if set(counts) <= {"true", "false"} and counts:
            return ProposedColumn({"type": "boolean"})
        note = ""
        if _WEIGHT.search(self.name):
            note = "looks like a weight; no statistic weighs by it"
        elif _PERIOD.search(self.name) or self.kind in (Kind.DATE, Kind.TIMESTAMP):
            note = PERIOD
        if not numbers or self.kind in (Kind.DATE, Kind.TIMESTAMP):
            return ProposedColumn(self._declare(self.kind), note)
        found = find_sentinels(numbers)
        listed = ", ".join(map(str, found.doubtful))
        answered = {number: times for number, times in numbers.items() if number not in found.certain}
        missing = {"missing": [*found.certain]} if found.certain else {}
        if self._are_codes(answered):
            common = sorted(int(number) for number, times in answered.items() if times >= self._least)
            rare = RARE_LEFT_OUT if len(common) < len(answered) else ""
            doubt = PERHAPS_CODES.format(listed=listed) if listed else ""
            return ProposedColumn({"values": common} | missing, _join(note, doubt, rare), doubt)
        doubt = PERHAPS.format(listed=listed) if listed else ""
        if are_days(answered):
            doubt = _join(doubt, DAYS_WRITTEN if self.counted.written else DAYS)
        whole = self.kind is Kind.NUMBER and self._are_whole(numbers)
        declared = self._declare(Kind.INTEGER if whole else self.kind) | missing
        return ProposedColumn(declared, _join(note, doubt), doubt)

    def _declare(self, kind: Kind) -> dict[str, Any]:
        return {"type": kind.value} | ({"decimals": self.decimals} if kind is Kind.DECIMAL else {})

    def _is_key(self, numbers: Mapping[Fraction, int] | None) -> bool:
        """Whether a column is called like a key, and has many different whole numbers or texts."""
        whole = numbers is not None and self._are_whole(numbers)
        many = 2 * len(self.counted.values) > self.counted.given
        named = bool(CERTAIN.search(self.name)) and not self.public
        return named and many and (whole or self.kind is Kind.CATEGORY)

    def _propose_text(self, counts: Counter[str]) -> ProposedColumn:
        common = sorted(text for text, times in counts.items() if times >= self._least)
        if not counts:
            return ProposedColumn(None, "text, left out until its values are declared")
        covered = sum(counts[text] for text in common) >= COVERED * self.counted.given
        if not common or len(common) > MOST_LISTED or not covered:
            few = len(counts) <= MOST_LISTED
            told = "text with rare values" if few else f"text with more than {_round_down(len(counts) - 1):,} values"
            rounded = "text with rare values" if few else f"text with more than {MOST_LISTED} values"
            if not few and (written := self._name_written()):
                return ProposedColumn(None, written, written)
            offered = {"values": f"codes/{_UNUSUAL.sub('_', self.name)}.csv"}
            return ProposedColumn(None, f"{told}, left out", f"{rounded}: {LISTED}", offered)
        rare = RARE_LEFT_OUT if len(common) < len(counts) else ""
        unanswered = ", ".join(f'"{text}"' for text in common if is_no_answer(text))
        doubt = UNANSWERED.format(listed=unanswered) if unanswered and len(common) > 1 else ""
        return ProposedColumn({"values": common}, _join(doubt, rare), doubt)

    def _name_written(self) -> str:
        """What text is, if it is numbers or dates as this source cannot be read."""
        fields = strip_fields(self.counted.values)
        if self._are_padded() or any(re.fullmatch(r"-?0[0-9]+", text) for text in fields):
            return ""
        read = {notation: propose_reading(fields, notation).kind for notation in _NOTATIONS}
        kinds = {*read.values()} - {Kind.CATEGORY}
        if kinds and self.csv:
            marks = next(notation for notation, kind in read.items() if kind in kinds)
            return OTHER_MARKS.format(decimal=marks.decimal, thousands=marks.thousands)
        if kinds:
            return AS_TEXT.format(kind="numbers" if kinds <= {*_NUMBERS} else "dates")
        return MEASURED if are_measured(fields) else ""

    def _propose_labelled(self, counts: Counter[str]) -> ProposedColumn:
        """Codes with labels; of a number, labels may tell no more than which codes mean that there is none."""
        unanswered, doubtful = find_unanswered(self.labels)
        means = ", ".join(f'{code} is "{self.labels[code]}"' for code in unanswered)
        listed = ", ".join(f'{code} "{self.labels[code]}"' for code in doubtful)
        told = _join(means, UNANSWERED.format(listed=listed) if listed else "")
        named = {code: label for code, label in self.labels.items() if code not in unanswered}
        given = sum(times for code, times in counts.items() if code not in unanswered)
        missing = {"missing": [int(code) if _WHOLE.fullmatch(code) else code for code in unanswered]}
        if named and len(named) <= MOST_LABELS and sum(counts[code] for code in named) >= COVERED * given:
            return ProposedColumn({"values": _make_distinct(named)} | (missing if unanswered else {}), told, told)
        numbers = _read_numbers(counts)
        if numbers is None or not all(_WHOLE.fullmatch(code) for code in unanswered):
            return self._propose_text(counts)
        whole = self._are_whole(numbers)
        kind = self.kind if self.kind not in (Kind.CATEGORY, Kind.NUMBER) else Kind.INTEGER if whole else Kind.NUMBER
        return ProposedColumn(self._declare(kind) | (missing if unanswered else {}), told, told)

    def _are_whole(self, numbers: Mapping[Fraction, int]) -> bool:
        """Whether all are whole numbers, and where they are text are written as such: 2.0 is none then."""
        if self.counted.written:
            return all(_WHOLE.fullmatch(text.strip()) for text in self.counted.values)
        return all(number.denominator == 1 for number in numbers)

    def _are_padded(self) -> bool:
        """Whether some begin with a zero that no number has, such as 01: these are names, and compared as text."""
        written = self.counted.written and self.kind in _NUMBERS
        return written and any(re.match(r"-?0[0-9]", text) for text in self.counted.values)

    def _are_codes(self, numbers: Mapping[Fraction, int]) -> bool:
        if not numbers or self.kind is Kind.DECIMAL or not self._are_whole(numbers):
            return False
        period = _PERIOD.search(self.name) is not None
        short = all(0 <= number < 100 or period for number in numbers)
        few = len(numbers) <= MOST_CODES and sum(numbers.values()) >= REPEATED * len(numbers)
        return short and few and (period or not _COUNTED.search(self.name))


def _read_numbers(counts: Counter[str]) -> Counter[Fraction] | None:
    """The numbers that texts are; None if one of them is none."""
    numbers: Counter[Fraction] = Counter()
    for text, times in counts.items():
        if not _NUMBER.fullmatch(text):
            return None
        numbers[Fraction(text.strip().replace(",", "."))] += times
    return numbers


def _make_distinct(labels: Mapping[str, str]) -> dict[str, str]:
    """Labels that differ from each other and from all codes: where they do not, the code stands beside them."""
    times = Counter(labels.values())
    return {
        code: label
        if times[label] == 1 and label and (label not in labels or label == code)
        else f"{code} {label}".strip()
        for code, label in labels.items()
    }


def _fits(kind: Kind, text: str) -> bool:
    return bool(re.fullmatch(FORMS[kind][0], text)) or (kind is Kind.INTEGER and text.lower() in ("true", "false"))


def _join(*parts: str) -> str:
    return "; ".join(part for part in parts if part)


def _round_down(count: int) -> int:
    """1, 2 or 5 with zeros, which tells little of a number.

    >>> _round_down(51), _round_down(1234)
    (50, 1000)
    """
    scale = int("1" + "0" * (len(str(count)) - 1))
    return max(digit for digit in (1, 2, 5) if digit * scale <= count) * scale

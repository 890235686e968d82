"""A declaration proposed from a sample of the records, for the controller to confirm.

Rules:

1. A proposal has read records, and says so. It counts once its controller has declared it: columns are public.
2. A value is proposed if it occurs at least ``RARE`` times in the sample: a rare one may be one person's.
3. Whole numbers that are few and repeat are codes, and so categories, unless the name says that they are counted or
   measured, or no code has so many digits.
4. Values that stand for "no answer" (9, 99, 999, −1, −9, or so labelled) are proposed as missing where nothing else
   lies near them.
5. Text with many values, and keys, are left out. Weights and periods are pointed out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

from idios.backends.base import describe_source
from idios.backends.csv import CsvFormat
from idios.backends.csv_proposal import propose_format
from idios.backends.files import FileKind, find_files, refuse_mislabelled
from idios.backends.samples import ROWS, ValueCounts, count_values
from idios.backends.spark_address import is_spark
from idios.backends.statistics_files import read_value_labels
from idios.core.domain import Kind
from idios.errors import InvalidInput

RARE = 10
"""A value that occurs less often than this is not proposed."""
MOST_LISTED = 50
"""So many values at most are proposed of a column of text."""
MOST_CODES = 12
"""So many different whole numbers at most are codes without labels."""
REPEATED = 20
"""How often a code occurs at least, on average."""
MOST_LABELS = 200
"""So many codes with labels at most are proposed."""
PILED = 20
"""A value at the end that occurs so many times as often as the next one stands for something else."""
RARE_LEFT_OUT = "rare values are not proposed, and would read as missing"
THOUSANDS = "three digits after every mark: if it divides thousands, values would read a thousand times too small"
COVERED = Fraction(9, 10)
"""The values that are proposed make up at least this share of a column."""

_NUMBER = re.compile(r"\s*[-+]?[0-9]{1,30}([.,][0-9]{1,30})?\s*")
_WHOLE = re.compile(r"-?[0-9]{1,18}")
_THREE = re.compile(r"\s*[-+]?[0-9]{1,3}[.,][0-9]{3}\s*")
_KEY = re.compile(r"(^|_)(id|key|nr|no|uuid)$|^serial|[a-z](Id|ID)$")
_WEIGHT = re.compile(r"weight|(^|_)(wgt|wt|pwt|hwt)(_|$|\d)|gewicht", re.IGNORECASE)
_PERIOD = re.compile(r"(^|_)(year|month|quarter|wave|period|round)(_|$)", re.IGNORECASE)
_COUNTED = re.compile(
    r"(^|_)(age|years?|hours?|days?|weeks?|minutes?|number|num|n|count|size|rooms?|children|kids|persons?|members?|"
    r"income|wage|salary|amount|total|price|value|score|distance)(_|$|\d)",
    re.IGNORECASE,
)
_NO_ANSWER = re.compile(
    r"missing|refus|don.?t know|no answer|not (applicable|stated|asked|known)|unknown|inapplicable|\bn/?a\b|\bdk\b",
    re.IGNORECASE,
)
_SENTINELS = frozenset(map(Fraction, (9, *(10**d - back for d in (2, 3, 4, 5, 6, 7) for back in (1, 2, 3)))))
_SENTINELS |= {-number for number in _SENTINELS} | {Fraction(-number) for number in (1, 2, 3, 7, 8)}
"""9, 99, 98, 97, 999, …: what surveys write where there is no answer; also negative."""


class Schema(dict[str, dict[str, Any]]):
    """Columns as they would be declared, by name; ``notes`` says what else there is to know, also of those left out."""

    def __init__(
        self,
        columns: Mapping[str, dict[str, Any]],
        notes: Mapping[str, str],
        records: int,
        csv_format: CsvFormat | None = None,
    ) -> None:
        super().__init__(columns)
        self.notes = dict(notes)
        self.records = records
        self.csv_format = csv_format
        """How a csv file is written, which ``TrustedParty.open`` reads it as."""

    def __repr__(self) -> str:
        lines = [f"{name}: {describe_column(table)}" for name, table in self.items()]
        noted = [f"{name}: {note}" for name, note in self.notes.items()]
        read = f"Proposed from {self.records:,} records, for their controller to confirm: what is declared is public."
        return "\n".join([*lines, *(["Notes", *noted] if noted else []), read])


def schema(source: Any, *, rows: int = ROWS) -> Schema:
    """Propose the columns of a frame or a file: types, categories, labels, and values that mean "missing".

    Up to ``rows`` records are read, so the proposal is for the eyes of whoever holds the data. Read it, change it (it
    is a dict), and declare it: that makes it public.

    >>> survey = {"sex": [1, 2, 2, 1] * 50, "income": [1200.5, 900.0, 3100.0, 999.0] * 50}
    >>> proposed = schema(survey)
    >>> proposed["sex"], proposed["income"]
    ({'values': [1, 2]}, {'type': 'number'})

    ``TrustedParty.open(survey, columns=proposed, budget=1)`` declares it as it is.
    """
    if isinstance(source, str | Path) and (is_spark(str(source)) or "://" in str(source)):
        raise InvalidInput("a schema is proposed of a frame or a file; of a table elsewhere, declare its columns")
    csv_format, labels = None, dict[str, dict[str, str]]()
    if isinstance(source, str | Path):
        found = find_files(source)
        refuse_mislabelled(found)
        csv_format = propose_format(found.path, None) if found.kind is FileKind.CSV else None
        labels = read_value_labels(found)
    return propose_columns(source, describe_source(source, csv_format), csv_format, labels, rows)


def propose_columns(
    source: Any,
    described: Sequence[tuple[str, Kind, int]],
    csv_format: CsvFormat | None,
    labels: Mapping[str, Mapping[str, str]],
    rows: int = ROWS,
) -> Schema:
    """Propose the columns of a source whose names and types are known; with ``rows`` 0 from these and labels alone."""
    names = [name for name, _, _ in described]
    counted = (
        count_values(source, names, csv_format, rows) if names and rows else {name: ValueCounts() for name in names}
    )
    columns: dict[str, dict[str, Any]] = {}
    notes: dict[str, str] = {}
    for name, kind, decimals in described:
        proposed = _Column(name, kind, decimals, counted[name], labels.get(name, {})).propose()
        if proposed.table is not None:
            columns[name] = proposed.table
        if proposed.note:
            notes[name] = proposed.note
    return Schema(columns, notes, max((each.records for each in counted.values()), default=0), csv_format)


def describe_column(table: Mapping[str, Any]) -> str:
    """What is declared of a column in a few words.

    >>> describe_column({"values": {"1": "male", "2": "female"}}), describe_column({"type": "integer", "missing": [99]})
    ('category: 1 male, 2 female', 'integer, missing: 99')
    """
    values = table.get("values")
    if values is None:
        kind = str(table["type"])
    else:
        listed = [f"{code} {label}" for code, label in values.items()] if isinstance(values, Mapping) else values
        shown = ", ".join(map(str, listed[:6])) + (f", … ({len(listed)} values)" if len(listed) > 6 else "")
        kind = f"category: {shown}"
    return kind + (f", missing: {', '.join(map(str, table['missing']))}" if table.get("missing") else "")


@dataclass(frozen=True)
class _Proposed:
    table: dict[str, Any] | None
    note: str = ""


@dataclass(frozen=True)
class _Column:
    """What is known of one column."""

    name: str
    kind: Kind
    decimals: int
    counted: ValueCounts
    labels: Mapping[str, str]

    def propose(self) -> _Proposed:
        counts = self.counted.values
        if self.labels:
            return self._propose_labelled(counts)
        numbers = _read_numbers(counts)
        if self._is_key(numbers) or (numbers and self._are_padded() and len(counts) > MOST_LISTED):
            return _Proposed(None, "a key, left out: it may tell people apart who have several rows (unit)")
        if self.kind is Kind.CATEGORY or (numbers and self._are_padded()):
            return self._propose_text(counts)
        if set(counts) <= {"true", "false"} and counts:
            return _Proposed({"type": "boolean"})
        note = ""
        if _WEIGHT.search(self.name):
            note = "looks like a weight; no statistic weighs by it"
        elif _PERIOD.search(self.name) or self.kind in (Kind.DATE, Kind.TIMESTAMP):
            note = "a period: answers for one of them are of fewer records"
        elif self._may_be_thousands():
            note = THOUSANDS
        if not numbers or self.kind in (Kind.DATE, Kind.TIMESTAMP):
            return _Proposed(self._declare(self.kind), note)
        sentinels = [int(number) for number in sorted(_find_sentinels(numbers))]
        answered = {number: times for number, times in numbers.items() if number not in sentinels}
        missing = {"missing": sentinels} if sentinels else {}
        if self._are_codes(answered):
            common = sorted(int(number) for number, times in answered.items() if times >= RARE)
            rare = RARE_LEFT_OUT if len(common) < len(answered) else ""
            return _Proposed({"values": common} | missing, "; ".join(part for part in (note, rare) if part))
        whole = self.kind is Kind.NUMBER and self._are_whole(numbers)
        return _Proposed(self._declare(Kind.INTEGER if whole else self.kind) | missing, note)

    def _declare(self, kind: Kind) -> dict[str, Any]:
        return {"type": kind.value} | ({"decimals": self.decimals} if kind is Kind.DECIMAL else {})

    def _is_key(self, numbers: Mapping[Fraction, int] | None) -> bool:
        """Whether a column is called like a key, and has many different whole numbers or texts."""
        whole = numbers is not None and self._are_whole(numbers)
        many = 2 * len(self.counted.values) > self.counted.given
        return bool(_KEY.search(self.name)) and many and (whole or self.kind is Kind.CATEGORY)

    def _propose_text(self, counts: Counter[str]) -> _Proposed:
        common = sorted(text for text, times in counts.items() if times >= RARE)
        if not counts:
            return _Proposed(None, "text, left out until its values are declared")
        if not common or len(common) > MOST_LISTED:
            return _Proposed(None, "text with many values, left out")
        if sum(counts[text] for text in common) < COVERED * self.counted.given:
            return _Proposed(None, "text with many rare values, left out")
        rare = RARE_LEFT_OUT if len(common) < len(counts) else ""
        return _Proposed({"values": common}, rare)

    def _propose_labelled(self, counts: Counter[str]) -> _Proposed:
        """Codes with labels; of a number, labels may tell no more than which codes mean that there is none."""
        unanswered = [code for code, label in self.labels.items() if _NO_ANSWER.search(label)]
        named = {code: label for code, label in self.labels.items() if code not in unanswered}
        given = sum(times for code, times in counts.items() if code not in unanswered)
        missing = {"missing": [int(code) if _WHOLE.fullmatch(code) else code for code in unanswered]}
        if named and len(named) <= MOST_LABELS and sum(counts[code] for code in named) >= COVERED * given:
            return _Proposed({"values": _make_distinct(named)} | (missing if unanswered else {}))
        numbers = _read_numbers(counts)
        if numbers is None or not all(_WHOLE.fullmatch(code) for code in unanswered):
            return self._propose_text(counts)
        whole = self._are_whole(numbers)
        kind = self.kind if self.kind not in (Kind.CATEGORY, Kind.NUMBER) else Kind.INTEGER if whole else Kind.NUMBER
        return _Proposed(self._declare(kind) | (missing if unanswered else {}))

    def _are_whole(self, numbers: Mapping[Fraction, int]) -> bool:
        """Whether all are whole numbers, and where they are text are written as such: 2.0 is none then."""
        if self.counted.written:
            return all(_WHOLE.fullmatch(text.strip()) for text in self.counted.values)
        return all(number.denominator == 1 for number in numbers)

    def _are_padded(self) -> bool:
        """Whether some begin with a zero that no number has, such as 01: these are names, and compared as text."""
        return self.counted.written and any(re.match(r"-?0[0-9]", text) for text in self.counted.values)

    def _may_be_thousands(self) -> bool:
        """Whether text has three digits after each point or comma, and no other number of them."""
        marked = [text for text in self.counted.values if "." in text or "," in text]
        return bool(marked) and self.counted.written and all(_THREE.fullmatch(text) for text in marked)

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


def _find_sentinels(numbers: Mapping[Fraction, int]) -> set[Fraction]:
    """Nines, and numbers below 0, that lie further from all others than these do from each other, or pile up.

    Those that are not far away occur more often than what is nearest to them: the oldest of all ages lie apart, too.
    """
    others = sorted(number for number in numbers if number not in _SENTINELS)
    if len(others) < 2:
        return set()
    gap = max(Fraction(later - earlier) for earlier, later in pairwise(others))
    found = set()
    for value in _SENTINELS.intersection(numbers):
        nearest = others[0] if value < 0 else others[-1]
        times, usual = numbers[value], numbers[nearest]
        beyond = nearest >= 0 if value < 0 else value > nearest
        distance = abs(value - nearest)
        piled_up = times > PILED * usual
        apart = (value < 0 or distance > gap) and (abs(value) < 10 or distance > 10 * gap or times > usual)
        if beyond and times >= RARE and (apart or piled_up):
            found.add(value)
    return found


def _make_distinct(labels: Mapping[str, str]) -> dict[str, str]:
    """Labels that differ from each other and from all codes: where they do not, the code stands beside them."""
    times = Counter(labels.values())
    return {
        code: label
        if times[label] == 1 and label and (label not in labels or label == code)
        else f"{code} {label}".strip()
        for code, label in labels.items()
    }

"""What fields of text seem to be, for a controller to confirm: kinds, formats of dates, words that mean "missing".

Rules:

1. Fields are of a kind if all of them can be read as it, words aside.
2. Words that mean "no answer" in some language (``NO_ANSWER``) may be as many as they like. Other words are at most
   ``MOST_WORDS`` different ones, at most one field in ``WORDS_AMONG``, and stand among more than ``MOST_CODES`` other
   values: where there are fewer, a word is another category.
3. A format of dates is proposed if it is the only one that all fields fit. Where days and months can be told apart
   neither way, both are returned, and it is for the controller to choose.
4. A mark with three digits after it everywhere may divide thousands, or be the decimal mark: other fields or columns
   decide that, or the controller does.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice

from idios.core.domain import Kind
from idios.data.formats.text_fields import BLANKS, FORMS, PLAIN, Notation
from idios.declare.dates import read_day

RARE = 10
"""A value that occurs less often than this is not proposed."""
MOST_CODES = 12
"""So many different whole numbers at most are codes without labels."""
MOST_WORDS = 5
"""So many different words at most are taken for missing values among numbers or dates."""
WORDS_AMONG = 10
"""And at most one field in so many is such a word."""
NO_ANSWER = frozenset(
    word.casefold()
    for line in (
        ".|..|:|-|--|–|—|?|*|na|n/a|n.a.|n.a|#n/a|nan|null|missing|unknown|refused|dk|don't know|don’t know|dont know",
        "do not know|no answer|not applicable|not available|not stated|not known|not asked|prefer not to say",
        "inapplicable|not answered|not reported|no response|nonresponse|non-response|missing value|refusal",
        "refused to answer|does not apply|not ascertained|system missing|iap|niu",
        "k.a.|k.a|k. a.|keine angabe|keine angaben|keine antwort|weiß nicht|weiss nicht|trifft nicht zu|unbekannt",
        "verweigert|nsp|ne sait pas|sans réponse|non réponse|pas de réponse|sans objet|non renseigné|refus|inconnu",
        "ns/nc|no sabe|no contesta|no responde|sin respuesta|sin dato|desconocido|não sabe|não responde|sem resposta",
        "non so|non risponde|nessuna risposta|n.d.|weet niet|geen antwoord|onbekend|vet ej|brak danych|nie wiem",
    )
    for word in line.split("|")
)
"""What stands where nobody answered, in several languages and without regard to case."""
ALSO_ANSWERS = {"missing", "unknown", "not known", "refused", "refusal", "unbekannt", "verweigert", "refus", "inconnu"}
ALSO_ANSWERS |= {"desconocido", "onbekend"}
"""Those of them that may be an answer: to an application, of a person who is sought."""
_AROUND = " \t\n.,:;!*_'\"()[]{}<>"
"""What may stand around words that mean no answer."""
_BETWEEN = re.compile(r"[/,;|()]| or | and | - ")
"""What may stand between them."""
TRUTHS = {"true", "false"}
_SHAPE = str.maketrans("012345678", "999999999")
_THREE = re.compile(r"[-+]?[1-9][0-9]{0,2}[.,][0-9]{3}")
"""What may be thousands, or three digits after a decimal mark."""
_SEPARATED = "0-9.,'’ \u00a0\u202f"
_MEASURED = re.compile(
    rf"\(?[<>≤≥~±]? ?[-+−–]? ?[€$£¥]? ?[0-9][{_SEPARATED}]*(%|‰|[€$£¥]|[a-zA-Z]{{1,4}}[²³]?|[-*])?\)?"
)
"""A number with a unit, or a sign that no reader takes: 17 000 €, 45.3%, (1,234), 123e."""
LONG = 38
"""From so many characters on, the digits themselves may matter: zeros before others do not."""
_NUMBERS = (Kind.INTEGER, Kind.NUMBER)
_ORDER = (*_NUMBERS, Kind.DATE, Kind.TIMESTAMP)
_DAYS: tuple[str, ...] = (
    "%d.%m.%Y",
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%d-%m-%Y",
    "%m-%d-%Y",
    "%Y/%m/%d",
    "%Y.%m.%d",
    "%d-%b-%Y",
    "%d %b %Y",
)
_DAYS += ("%d.%m.%y", "%d/%m/%y", "%m/%d/%y", "%d-%m-%y", "%m-%d-%y", "%d-%b-%y", "%d %B %Y", "%B %d, %Y", "%b %d, %Y")
_TIMES = ("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f", " %I:%M %p", " %I:%M:%S %p", ", %H:%M", ", %H:%M:%S", "T%H:%M:%S")
_FORMATS = [day + time for day in _DAYS for time in _TIMES]
_LETTERS = re.compile(r"%[a-zA-Z]|[0-9A-Za-z]")
_BY_MARKS: dict[str, list[str]] = {}
for _format in _FORMATS:
    _BY_MARKS.setdefault(_LETTERS.sub("", _format), []).append(_format)


@dataclass(frozen=True)
class TextKind:
    """What some fields seem to be."""

    kind: Kind
    words: frozenset[str] = frozenset()
    """Those that would be read as missing."""
    formats: tuple[str, ...] = ()
    """The formats of dates that all others fit, if they are not ISO 8601."""


def propose_reading(counts: Mapping[str, int], notation: Notation = PLAIN, nulls: Collection[str] = ()) -> TextKind:
    """What fields, none of them empty, can be read as, by how often each occurs; text if there is nothing else.

    >>> propose_reading({"22.01.1996": 1, "4.12.2001": 1, "k.A.": 3})
    TextKind(kind=<Kind.DATE: 'date'>, words=frozenset({'k.A.'}), formats=('%d.%m.%Y',))
    """
    known = {field: times for field, times in counts.items() if field not in nulls}
    if TRUTHS & {field.lower() for field in known}:
        words = frozenset(field for field in known if field.lower() not in TRUTHS)
        if all(map(is_no_answer, words)):
            return TextKind(Kind.INTEGER, words)
    by_kinds: dict[frozenset[Kind], list[str]] = {}
    by_shape: dict[str, frozenset[Kind]] = {}
    for field in known:
        shape = field.translate(_SHAPE) if len(field) < LONG else field  # a kind is told by where digits are
        if shape not in by_shape:
            by_shape[shape] = _list_kinds(shape, notation)
        by_kinds.setdefault(by_shape[shape], []).append(field)
    words = frozenset(by_kinds.pop(frozenset(), []))
    common = [kind for kind in _ORDER if by_kinds and all(kind in kinds for kinds in by_kinds)]
    if common and _are_few(words, known):
        return TextKind(common[0], words)
    return TextKind(Kind.CATEGORY) if by_kinds else _propose_dates(known)


def strip_fields(counts: Mapping[str, int]) -> Counter[str]:
    """Fields without the blanks around them, and those that have nothing else not at all.

    >>> strip_fields({"5": 2, " 5": 1, " ": 4})
    Counter({'5': 3})
    """
    fields = Counter[str]()
    for text, times in counts.items():
        if stripped := text.strip(BLANKS):
            fields[stripped] += times
    return fields


def propose_kind(fields: Iterable[str], notation: Notation = PLAIN, nulls: Collection[str] = ()) -> Kind:
    """The kind that fields, none of them empty, can be read as without a format; text if there is no other.

    >>> propose_kind(["1,5", "NA"], Notation(","), ["NA"])
    <Kind.NUMBER: 'number'>
    """
    counts = Counter(fields)
    reading = propose_reading(counts, notation, nulls)
    # TRUE and FALSE can be read as 1 and 0, and are what groups are made of
    truths = reading.kind is Kind.INTEGER and all(field.lower() in TRUTHS for field in counts if field not in nulls)
    return Kind.CATEGORY if reading.formats or truths else reading.kind


def propose_kinds(columns: Mapping[str, Sequence[str | None]]) -> list[tuple[str, Kind, int]]:
    """The kinds that columns of text can be read as."""
    stripped = {name: [field.strip(BLANKS) for field in fields if field] for name, fields in columns.items()}
    return [(name, propose_kind(field for field in fields if field), 0) for name, fields in stripped.items()]


def shows_decimals(counts: Mapping[str, int], decimal: str) -> bool:
    """Whether numbers have a decimal mark that cannot divide thousands: digits after it are not always three.

    >>> shows_decimals({"17.25": 1, "4.000": 1}, "."), shows_decimals({"17.250": 1, "4.000": 1}, ".")
    (True, False)
    """
    certain = any(decimal in field and field[0].isdigit() and not _THREE.fullmatch(field) for field in counts)
    return certain and propose_reading(counts, Notation(decimal)).kind is Kind.NUMBER


def may_be_thousands(counts: Mapping[str, int], mark: str) -> bool:
    """Whether fields are whole numbers if the mark divides thousands, and some have it once and none has it twice.

    >>> may_be_thousands({"17.250": 1, "900": 1, "k.A.": 1}, "."), may_be_thousands({"0.250": 1}, ".")
    (True, False)
    """
    marked = [field for field in counts if mark in field and not is_no_answer(field)]
    if not marked or not all(_THREE.fullmatch(field) for field in marked):
        return False
    return propose_reading(counts, Notation("," if mark == "." else ".", mark)).kind is Kind.INTEGER


def are_round(counts: Mapping[str, int], mark: str) -> bool:
    """Whether most of the fields that have a mark end in 0, as rounded amounts do and measurements do not.

    >>> are_round({"17.000": 2, "17.250": 1, "4.038": 1}, "."), are_round({"4.038": 3, "1.250": 1, "900": 9}, ".")
    (True, False)
    """
    ends = Counter[bool]()
    for field, times in counts.items():
        if mark in field:
            ends[field.endswith("0")] += times
    return ends[True] > ends[False]


def are_dotted_codes(numbers: Iterable[str]) -> bool:
    """Whether numbers with a decimal point differ in nothing but zeros at their end, which tell chapters apart.

    >>> are_dotted_codes(["1.1", "1.2", "1.10"]), are_dotted_codes(["1", "1.0", "2.00", "2.5"])
    (True, False)
    """
    bare = Counter(number.rstrip("0") for number in {*numbers} if "." in number)
    return any(times > 1 and not number.endswith(".") for number, times in bare.items())


def are_measured(counts: Mapping[str, int]) -> bool:
    """Whether fields look like numbers with a few units or signs, such as are not read.

    >>> are_measured({"17 000 €": 1, "(1,234)": 1, "−5": 1, "45.3%": 1}), are_measured({"12A": 1, "x": 1})
    (True, False)
    """
    fields = [field for field in counts if not is_no_answer(field)]
    if not fields or not all(map(_MEASURED.fullmatch, fields)):
        return False
    return len({re.sub(f"[{_SEPARATED}]", "", field) for field in fields}) <= MOST_WORDS


def are_days(numbers: Iterable[Fraction]) -> bool:
    """Whether numbers are days as 19960122 is one, and many.

    >>> are_days(map(Fraction, range(20240101, 20240129))), are_days(map(Fraction, range(20240101, 20240133)))
    (True, False)
    """
    texts = {str(number) for number in numbers}
    return len(texts) > MOST_CODES and all(len(text) == 8 and read_day(text, "%Y%m%d") for text in texts)


def find_wrong_name(names: Sequence[str]) -> str:
    """Which name of a column is empty, or there twice; nothing if all are different.

    >>> find_wrong_name(["age", "sex", "age"]), find_wrong_name(["age", ""]), find_wrong_name(["age", "sex"])
    ("the columns 1 and 3 are called 'age'", 'column 2 of 2 has none', '')
    """
    if "" in names:
        return f"column {names.index('') + 1} of {len(names)} has none"
    repeated = next((name for name, times in Counter(names).items() if times > 1), None)
    if repeated is None:
        return ""
    places = [str(place) for place, name in enumerate(names, 1) if name == repeated]
    return f"the columns {' and '.join(places)} are called {repeated!r}"


def is_no_answer(word: str) -> bool:
    """Whether a word says that there is no answer, or each of several does, and nothing beside.

    >>> is_no_answer("<NA>"), is_no_answer("Don’t know / refused"), is_no_answer("Other, don't know")
    (True, True, False)
    """
    return bool(_list_no_answers(word))


def may_be_answer(word: str) -> bool:
    """Whether a word that says that there is no answer may be one nevertheless.

    >>> may_be_answer("Refused"), may_be_answer("don't know, refused")
    (True, False)
    """
    return ALSO_ANSWERS.issuperset(_list_no_answers(word))


def _list_no_answers(word: str) -> list[str]:
    """The words for no answer that make up a text; none if it says anything else."""
    plain = " ".join(word.casefold().split())
    if plain in NO_ANSWER:
        return [plain]
    parts = [part for each in _BETWEEN.split(plain) if (part := each.strip(_AROUND))]
    if (whole := plain.strip(_AROUND)) in NO_ANSWER:
        parts = [whole]
    return parts if all(part in NO_ANSWER for part in parts) else []


def _list_kinds(field: str, notation: Notation) -> frozenset[Kind]:
    number = notation.normalise(field)
    return frozenset(kind for kind in _ORDER if re.fullmatch(FORMS[kind][0], number if kind in _NUMBERS else field))


def _are_few(words: Collection[str], known: Mapping[str, int]) -> bool:
    """Rule 2."""
    unknown = list(islice((word for word in words if not is_no_answer(word)), MOST_WORDS + 1))
    few = len(unknown) <= MOST_WORDS and WORDS_AMONG * sum(known[word] for word in unknown) <= sum(known.values())
    return not unknown or (few and len(known) - len(words) > MOST_CODES)


def _propose_dates(known: Mapping[str, int]) -> TextKind:
    """Rule 3."""
    fits: dict[str, frozenset[str]] = {}
    strange = 0
    for field in known:
        fits[field] = _list_formats(field)
        strange += not fits[field] and not is_no_answer(field)
        if strange > MOST_WORDS:
            return TextKind(Kind.CATEGORY)
    words = frozenset(field for field, formats in fits.items() if not formats)
    dates = {formats for formats in fits.values() if formats}
    common = frozenset.intersection(*dates) if dates else frozenset[str]()
    if not common or not _are_few(words, known):
        return TextKind(Kind.CATEGORY)
    formats = [format for format in _FORMATS if format in common]
    if not ("%m" in formats[0] and len(formats) > 1):  # May is short and long at once
        formats = formats[:1]
    return TextKind(Kind.TIMESTAMP if "%M" in formats[0] else Kind.DATE, words, tuple(formats))


def _list_formats(field: str) -> frozenset[str]:
    """The formats that a field fits."""
    return frozenset(format for format in _BY_MARKS.get(_LETTERS.sub("", field), ()) if read_day(field, format))

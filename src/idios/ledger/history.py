"""What was recorded, read for people: stored answers, entries by what they say, and charges over time.

Rules:

1. Answers are read from signed entries: the tables only say where to look.
2. Entries are searched newest first. Their signatures are checked by verification, not here.
3. In the charges over time every charge counts once and exactly; of its time only the step is kept that it fell into.
4. The chain grows at its end, so charges that were read are not read again. A chain that does not go on from there,
   such as one that was restored, is read from its beginning.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from threading import Lock
from typing import Any

from sqlalchemy import ColumnElement, Connection, func, or_, select

from idios.codec import canonical
from idios.errors import InvalidInput, LedgerTampered
from idios.ledger.chain import BEGINNING, START, Anchor, Entry, is_signed, read_entries, read_numbered
from idios.ledger.database import Database
from idios.ledger.facts import KINDS, Forfeited, Released, Reserved
from idios.ledger.request import StoredAnswer
from idios.ledger.state import FailureRow, PaymentRow, QuestionRow, TokenRow
from idios.ledger.store import DatabaseRowStore
from idios.ledger.tables import TABLES, VERIFY, entries, read_row
from idios.ledger.values import LONGEST_TEXT, check_name, check_number
from idios.model import Cost, Role

LONGEST_PAGE = 1000
"""The most entries that a search lists."""
_ESCAPE = "!"
READ_AT_ONCE = 1000
STEPS = 300
"""The most steps of one data set, an even number; where there are more charges, a step holds several."""
_CHARGES = (Reserved.kind, Forfeited.kind)


def check_kinds(kinds: tuple[str, ...]) -> None:
    """Refuse kinds that no entry has."""
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown:
        raise InvalidInput(f"entries are of the kinds {', '.join(KINDS)}; not {', '.join(unknown)}")


def _check_conditions(dataset: str | None, analyst: str | None, before: int | None) -> None:
    """Refuse conditions that some database could not compare."""
    for what, name in (("data set", dataset), ("analyst", analyst)):
        if name is not None:
            check_name(what, name)
    if before is not None:
        check_number("before", before)


def find_entries(
    connection: Connection,
    *,
    text: str,
    kinds: tuple[str, ...],
    dataset: str | None,
    analyst: str | None,
    before: int | None,
    limit: int,
) -> list[Entry]:
    """Read the newest entries that meet every condition."""
    check_kinds(kinds)
    _check_conditions(dataset, analyst, before)
    if not isinstance(text, str) or len(text) > LONGEST_TEXT:
        raise InvalidInput(f"the text to search for has at most {LONGEST_TEXT} characters")
    check_number("limit", limit, LONGEST_PAGE)
    statement = select(entries).order_by(entries.c.sequence.desc()).limit(limit)
    if before is not None:
        statement = statement.where(entries.c.sequence < before)
    if kinds:
        statement = statement.where(entries.c.kind.in_(kinds))
    if text:
        statement = statement.where(_contains(text))
    if dataset is not None:
        statement = statement.where(_is_about_dataset(connection, dataset))
    if analyst is not None:
        statement = statement.where(_is_about_analyst(connection, analyst))
    return [Entry(*row) for row in connection.execute(statement)]


# An answer's or a failure's entry names the question's key alone: the derived rows say which entries are whose.


def _is_about_dataset(connection: Connection, dataset: str) -> ColumnElement[bool]:
    questions, failures = TABLES[QuestionRow], TABLES[FailureRow]
    of_dataset = questions.c.dataset == dataset
    released = select(questions.c.released).where(of_dataset, questions.c.released.is_not(None))
    failed = select(failures.c.failed).join(questions, questions.c.key == failures.c.key).where(of_dataset)
    return or_(
        _has_field(connection, "dataset", dataset), entries.c.sequence.in_(released), entries.c.sequence.in_(failed)
    )


def _is_about_analyst(connection: Connection, analyst: str) -> ColumnElement[bool]:
    questions, payments, tokens = TABLES[QuestionRow], TABLES[PaymentRow], TABLES[TokenRow]
    released = (
        select(questions.c.released)
        .join(payments, payments.c.key == questions.c.key)
        .where(payments.c.analyst == analyst, questions.c.released.is_not(None))
    )
    revoked = select(tokens.c.revoked).where(
        tokens.c.holder == analyst, tokens.c.role == Role.ANALYST.value, tokens.c.revoked.is_not(None)
    )
    return or_(
        _has_field(connection, "analyst", analyst), entries.c.sequence.in_(released), entries.c.sequence.in_(revoked)
    )


def _contains(text: str) -> ColumnElement[bool]:
    """Whether kind or payload contain the text, ignoring case.

    A payload is ASCII: "é" stands in it as "\\u00e9" and "É" as "\\u00c9". So letters beyond ASCII are searched for
    as given, in lower case and in upper case.
    """
    patterns = {_make_pattern(variant) for variant in (text, text.lower(), text.upper())}
    columns = (entries.c.kind, func.lower(entries.c.payload))
    return or_(*(column.like(pattern, escape=_ESCAPE) for column in columns for pattern in sorted(patterns)))


def _make_pattern(text: str) -> str:
    """Write the text as a payload does, in lower case, for LIKE.

    >>> print(_make_pattern("100% É"))
    %100!% \\u00c9%
    """
    written = canonical(text)[1:-1].lower()
    for special in (_ESCAPE, "%", "_"):
        written = written.replace(special, _ESCAPE + special)
    return f"%{written}%"


def _has_field(connection: Connection, field: str, name: str) -> ColumnElement[bool]:
    # A payload is written in one way only, and quotes inside its texts are escaped: this is the field itself.
    needle = f"{canonical(field)}:{canonical(name)}"
    # LIKE would not do: SQLite's ignores case.
    position: Any = func.instr if connection.dialect.name == "sqlite" else func.strpos
    contained: ColumnElement[bool] = position(entries.c.payload, needle) > 0
    return contained


def list_answers(
    store: DatabaseRowStore,
    key: bytes,
    dataset: str | None,
    analyst: str | None,
    *,
    after: int,
    before: int | None,
    limit: int | None,
    newest_first: bool,
) -> list[StoredAnswer]:
    """List the answers that were released between the entries `after` and `before`."""
    _check_conditions(dataset, analyst, before)
    check_number("after", after)
    questions, payments = TABLES[QuestionRow], TABLES[PaymentRow]
    order = questions.c.released.desc() if newest_first else questions.c.released
    wanted = select(questions).where(questions.c.released > after).order_by(order).limit(limit)
    if before is not None:
        wanted = wanted.where(questions.c.released < before)
    if dataset is not None:
        wanted = wanted.where(questions.c.dataset == dataset)
    if analyst is not None:
        wanted = wanted.join(payments, payments.c.key == questions.c.key).where(payments.c.analyst == analyst)
    answered = [read_row(QuestionRow, row) for row in store.connection.execute(wanted).mappings()]
    if analyst is not None:
        for question in answered:
            store.prove(PaymentRow, (question.key, analyst))
    return read_answers(store.connection, key, answered)


def read_answers(connection: Connection, key: bytes, questions: list[QuestionRow]) -> list[StoredAnswer]:
    """Read the answers to these questions, each checked against its signature."""
    numbers = {number for question in questions for number in (question.reserved, question.released) if number}
    by_number = read_numbered(connection, numbers | {number - 1 for number in numbers})
    return [_read_answer(key, by_number, question) for question in questions]


def _read_answer(key: bytes, by_number: dict[int, Entry], question: QuestionRow) -> StoredAnswer:
    entry = _check_entry(key, by_number, question.released)
    released, reserved = entry.fact, _check_entry(key, by_number, question.reserved).fact
    if (
        not isinstance(released, Released)
        or not isinstance(reserved, Reserved)
        or (released.key, reserved.key) != (question.key, question.key)
    ):
        raise LedgerTampered(f"the ledger's tables take entry {question.released} for another question's; {VERIFY}")
    return StoredAnswer(
        key=question.key,
        dataset=reserved.dataset,
        version=reserved.version,
        question=reserved.question,
        cost=reserved.cost,
        text=released.answer,
        sequence=entry.sequence,
        time=entry.time,
    )


def _check_entry(key: bytes, by_number: dict[int, Entry], number: int | None) -> Entry:
    """Return the entry of this number, as it was signed or not at all; `by_number` holds it and the one before."""
    entry, previous = by_number.get(number or 0), by_number.get((number or 0) - 1)
    before = previous.mac if previous is not None else BEGINNING
    if entry is None or not is_signed(key, before, entry):
        raise LedgerTampered(f"entry {number} of the ledger is not what was signed; {VERIFY}")
    return entry


@dataclass(frozen=True, slots=True)
class Step:
    """Charges that follow one another: when the last of them was made, and the ε and ρ of each who asked."""

    time: str
    epsilon: Mapping[str | None, Fraction]
    rho: Mapping[str | None, Fraction] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Spending:
    """What was charged to a data set: in steps from its first charge on, and in all by the analyst who asked first.

    The analyst None is the controller, or what was forfeited.
    """

    began: str | None = None
    steps: tuple[Step, ...] = ()
    epsilon: Mapping[str | None, Fraction] = field(default_factory=dict)
    charges: Mapping[str | None, int] = field(default_factory=dict)
    rho: Mapping[str | None, Fraction] = field(default_factory=dict)


class SpendingTracker:
    """The charges of every data set, added up as far as the chain was read."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = Lock()
        self._read = START
        self._tallies: dict[str, _Tally] = {}

    def read(self, dataset: str) -> Spending:
        """Say what was charged to the data set up to now."""
        with self._lock, self._database.reading() as connection:
            self._read_on(connection)
            tally = self._tallies.get(dataset)
            return Spending() if tally is None else tally.sum_up()

    def _read_on(self, connection: Connection) -> None:
        number = self._read.sequence
        last = read_numbered(connection, {number}).get(number)
        if last is None or last.mac != self._read.mac:
            self._read, self._tallies = START, {}
        while page := read_entries(connection, after=self._read.sequence, limit=READ_AT_ONCE, kinds=_CHARGES):
            for entry in page:
                self._count(entry)
                self._read = Anchor(entry.sequence, entry.mac)

    def _count(self, entry: Entry) -> None:
        try:
            fact = entry.fact
        except ValueError as error:
            raise LedgerTampered(f"entry {entry.sequence} cannot be read ({error}); {VERIFY}") from error
        assert isinstance(fact, Reserved | Forfeited)
        analyst = fact.analyst if isinstance(fact, Reserved) else None
        if fact.dataset not in self._tallies:
            self._tallies[fact.dataset] = _Tally(entry.time)
        self._tallies[fact.dataset].add(entry.time, analyst, fact.cost)


class _Tally:
    """The charges of one data set. Every step but the last holds ``each`` charges."""

    def __init__(self, began: str) -> None:
        self._began = began
        self._steps: list[_Sums] = []
        self._each = self._last = 1
        self._sums = _Sums(began)
        self._charges: dict[str | None, int] = {}

    def add(self, time: str, analyst: str | None, cost: Cost) -> None:
        """Count one more charge."""
        self._charges[analyst] = self._charges.get(analyst, 0) + 1
        charge = _Sums(time, {analyst: cost.epsilon}, {analyst: cost.rho})
        self._sums.add(charge)
        if self._last == self._each:
            if len(self._steps) == STEPS:
                self._join_pairs()
            self._steps.append(_Sums(time))
            self._last = 0
        self._steps[-1].add(charge)
        self._last += 1

    def sum_up(self) -> Spending:
        """Say what it amounts to now."""
        steps = tuple(Step(step.time, dict(step.epsilon), dict(step.rho)) for step in self._steps)
        return Spending(self._began, steps, dict(self._sums.epsilon), dict(self._charges), dict(self._sums.rho))

    def _join_pairs(self) -> None:
        for step, more in zip(self._steps[::2], self._steps[1::2], strict=True):
            step.add(more)
        self._steps = self._steps[::2]
        self._each *= 2


@dataclass
class _Sums:
    """What each who asked was charged in all, up to a time."""

    time: str
    epsilon: dict[str | None, Fraction] = field(default_factory=dict)
    rho: dict[str | None, Fraction] = field(default_factory=dict)

    def add(self, later: _Sums) -> None:
        """Count what was charged later."""
        self.time = later.time
        for sums, more in ((self.epsilon, later.epsilon), (self.rho, later.rho)):
            for analyst, amount in more.items():
                sums[analyst] = sums.get(analyst, Fraction(0)) + amount

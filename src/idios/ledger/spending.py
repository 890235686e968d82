"""What was charged to each data set over time, and who asked.

Rules:

1. Every charge counts once and exactly; of its time only the step is kept that it fell into.
2. The chain grows at its end, so what was read is not read again. A chain that does not go on from there, such as one
   that was restored, is read from its beginning.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from threading import Lock

from sqlalchemy import Connection

from idios.errors import LedgerTampered
from idios.ledger.chain import START, Anchor, Entry, read_entries, read_numbered
from idios.ledger.database import Database
from idios.ledger.facts import Forfeited, Reserved
from idios.ledger.tables import VERIFY

PAGE = 1000
STEPS = 300
"""The most steps of one data set, an even number; where there are more charges, a step holds several."""
_KINDS = (Reserved.kind, Forfeited.kind)


@dataclass(frozen=True, slots=True)
class Step:
    """Charges that follow one another: when the last of them was made, and the ε of each who asked."""

    time: str
    epsilon: Mapping[str | None, Fraction]


@dataclass(frozen=True, slots=True)
class Spending:
    """What was charged to a data set: in steps from its first charge on, and in all by the analyst who asked first.

    The analyst None is the controller, or what was forfeited.
    """

    began: str | None = None
    steps: tuple[Step, ...] = ()
    epsilon: Mapping[str | None, Fraction] = field(default_factory=dict)
    charges: Mapping[str | None, int] = field(default_factory=dict)


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
        while page := read_entries(connection, after=self._read.sequence, limit=PAGE, kinds=_KINDS):
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
        self._tallies[fact.dataset].add(entry.time, analyst, fact.epsilon)


class _Tally:
    """The charges of one data set. Every step but the last holds ``each`` charges."""

    def __init__(self, began: str) -> None:
        self._began = began
        self._steps: list[tuple[str, dict[str | None, Fraction]]] = []
        self._each = self._last = 1
        self._epsilon: dict[str | None, Fraction] = {}
        self._charges: dict[str | None, int] = {}

    def add(self, time: str, analyst: str | None, epsilon: Fraction) -> None:
        """Count one more charge."""
        self._charges[analyst] = self._charges.get(analyst, 0) + 1
        _add(self._epsilon, {analyst: epsilon})
        if self._last == self._each:
            if len(self._steps) == STEPS:
                self._join_pairs()
            self._steps.append((time, {}))
            self._last = 0
        paid = self._steps[-1][1]
        _add(paid, {analyst: epsilon})
        self._steps[-1] = (time, paid)
        self._last += 1

    def sum_up(self) -> Spending:
        """Say what it amounts to now."""
        steps = tuple(Step(time, dict(paid)) for time, paid in self._steps)
        return Spending(self._began, steps, dict(self._epsilon), dict(self._charges))

    def _join_pairs(self) -> None:
        joined = []
        for (_, paid), (time, more) in zip(self._steps[::2], self._steps[1::2], strict=True):
            _add(paid, more)
            joined.append((time, paid))
        self._steps = joined
        self._each *= 2


def _add(sums: dict[str | None, Fraction], more: Mapping[str | None, Fraction]) -> None:
    for analyst, epsilon in more.items():
        sums[analyst] = sums.get(analyst, Fraction(0)) + epsilon

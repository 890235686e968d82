"""The derived rows in the database, none of which is trusted without its proof; and the transactions on them.

Rules:

1. What a question needs is asked for at once: the end of the chain, the sealed root and the rows come in one statement.
   A row is read again in every transaction that uses it, however often it was proved before: one that was changed
   behind the ledger's back is found then.
2. What a transaction changes is kept in memory and written once, at its end: one statement for each table.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from copy import copy
from dataclasses import replace
from functools import cache
from itertools import groupby
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar

from sqlalchemy import Connection, delete, insert
from sqlalchemy.exc import SQLAlchemyError

from idios.codec import field_types
from idios.errors import LedgerTampered
from idios.ledger.chain import Anchor, Entry, sign_entry, write_entries
from idios.ledger.database import Database
from idios.ledger.facts import Fact
from idios.ledger.proof import TOP, End, Memory, Proof, write_proof
from idios.ledger.state import (
    ROWS,
    ContradictoryFact,
    DerivedRow,
    GrantRow,
    Place,
    PrimaryKey,
    RowStore,
    SomeRow,
    apply,
    get_primary_key,
)
from idios.ledger.statements import run, write_marks
from idios.ledger.tables import TABLES, VERIFY, entries, merkle, read_row
from idios.ledger.tokens import Identity
from idios.ledger.values import RECORDS, Clock, Plain, check_name, format_time
from idios.model import Role

# Group commit: of the threads that want to write, one writes for all that wait.
#
# Rules:
#
# 1. The first that comes leads. It waits for the ledger's lock, and does its own work and that of every thread that has
#    come meanwhile, in their order, in one transaction. Then the next that waits leads. A thread that is alone pays
#    nothing for this.
# 2. A caller goes on only when the transaction that its work was part of is durable, or has failed.
# 3. Work that is refused has changed nothing yet, so the others' goes on. If anything else goes wrong before the
#    commit, the transaction is undone, and the work of each is done in one of its own: one thread's fault is not
#    another's.
# 4. If the commit fails, all whose work was in it are told the same.


MOST = 32
"""How many threads' work is committed together: the first of them waits for the last."""

T = TypeVar("T")


class Store(Protocol):
    """Where the rows are read."""

    def fetch(self, places: Sequence[Place]) -> None:
        """Read what stands at these places, in one statement."""


class Transaction(Protocol):
    """What work is done in; `appended` tells how much of it is to be undone."""

    appended: int

    @property
    def store(self) -> Store:
        """The rows as the transaction sees them."""

    def flush(self) -> None:
        """Write what was appended."""


SomeTransaction = TypeVar("SomeTransaction", bound=Transaction)


class _Job(Generic[SomeTransaction, T]):
    """One thread's work and, once it is finished, what came of it."""

    def __init__(self, work: Callable[[SomeTransaction], T], places: Sequence[Place]) -> None:
        self.places = places
        self.error: Exception | None = None
        self.leads = False
        """Whether its thread does the work of those that wait."""
        self.finished = False
        self.abandoned = False
        """Whether a signal has ended its thread's wait."""
        self._work = work
        self._result: list[T] = []
        self._gate = threading.Lock()
        self._gate.acquire()

    def do(self, transaction: SomeTransaction) -> None:
        """Do the work; a refusal is kept for its thread."""
        before = transaction.appended
        try:
            transaction.store.fetch(self.places)
            self.error, self._result = None, [self._work(transaction)]
        except SQLAlchemyError:
            raise
        except Exception as error:
            if transaction.appended != before:
                raise _Undo from error
            self.error = error

    def wait(self, timeout: float = -1) -> bool:
        """Wait until it is finished or leads; False if it is neither in time."""
        return self._gate.acquire(timeout=timeout)

    def wake(self) -> None:
        """End the wait."""
        self._gate.release()

    @property
    def result(self) -> T:
        """What the work gave, or the error that it ended with."""
        if self.error is not None:
            raise self.error
        return self._result[0]


class _Undo(Exception):
    """Work failed after it had changed something."""


class CommitQueue(Generic[SomeTransaction]):
    """The threads of one process that want to write one ledger; `begin` locks it and begins a transaction."""

    def __init__(self, database: Database, begin: Callable[..., AbstractContextManager[SomeTransaction]]) -> None:
        self._database = database
        self._begin = begin
        self._guard = threading.Lock()
        self._led = False
        self._waiting: deque[_Job[SomeTransaction, Any]] = deque()

    def run(self, work: Callable[[SomeTransaction], T], places: Sequence[Place]) -> T:
        """Do the work in a transaction, with others' if they wait; return when it is durable."""
        job = _Job(work, places)
        with self._guard:
            if self._led:
                self._waiting.append(job)
            else:
                self._led = job.leads = True
        try:
            if not job.leads:
                self._wait(job)
            if job.leads:
                self._lead(job)
        finally:
            with self._guard:
                # Also when a signal's exception ends the wait: nobody would lead in its place.
                job.abandoned = True
                if job in self._waiting:
                    self._waiting.remove(job)
            if job.leads:
                self._hand_over()
        return job.result

    def _wait(self, job: _Job[SomeTransaction, Any]) -> None:
        """Wait until the work is done, or this thread is to lead."""
        if job.wait(self._database.timeout):
            return
        with self._guard:
            if job in self._waiting:
                raise self._database.make_busy_error()
        job.wait()  # a leader has just taken it, or it leads

    def _hand_over(self) -> None:
        with self._guard:
            if not self._waiting:
                self._led = False
                return
            heir = self._waiting.popleft()
            heir.leads = True
        heir.wake()

    def _lead(self, own: _Job[SomeTransaction, Any]) -> None:
        taken = [own]
        try:
            if not self._commit(self._take(taken), own.places):
                for job in taken:
                    self._commit([job], job.places)
        finally:
            # A signal may have ended this thread's work, and the transaction with it: the next leader does the others'.
            with self._guard:
                left = [job for job in taken[1:] if not job.finished and not job.abandoned]
                self._waiting.extendleft(reversed(left))
            for job in taken[1:]:
                if job.finished:
                    job.wake()

    def _take(self, taken: list[_Job[SomeTransaction, Any]]) -> Iterator[_Job[SomeTransaction, Any]]:
        """Take the leader's work and then, one by one, that of all who wait by then."""
        yield taken[0]
        while len(taken) < MOST:
            with self._guard:
                if not self._waiting:
                    return
                taken.append(self._waiting.popleft())
            yield taken[-1]

    def _commit(self, jobs: Iterable[_Job[SomeTransaction, Any]], places: Sequence[Place]) -> bool:
        """Do these jobs in one transaction; False if they have to be done one by one."""
        done: list[_Job[SomeTransaction, Any]] = []
        complete = False
        try:
            with self._begin(*places) as transaction:
                for job in jobs:
                    done.append(job)
                    job.do(transaction)
                transaction.flush()
                complete = True
        except Exception as error:
            if len(done) > 1 and not complete:
                return False
            cause = error.__cause__ if isinstance(error, _Undo) else error
            assert isinstance(cause, Exception)
            # Without a transaction only the leader's wait is over.
            for job in done or [next(iter(jobs))]:
                job.error = copy(cause)
        for job in done:
            job.finished = True
        return True


P = ParamSpec("P")

Found = dict[Place, Sequence[Any] | None]
"""The columns at each place, None where there is no row."""


class DatabaseRowStore:
    """Rows in the database, each read once: a transaction's view of the ledger does not change under it."""

    def __init__(self, connection: Connection, proof: Proof, found: Found) -> None:
        self.connection = connection
        self.proof = proof
        self._found = found
        self._rows: dict[Place, DerivedRow | None] = {}
        self._added: dict[Place, DerivedRow] = {}
        self._updated: dict[Place, DerivedRow] = {}

    def fetch(self, places: Sequence[Place]) -> None:
        """Read what stands at these places, as far as it is not known, in one statement."""
        missing = [place for place in places if place not in self._found and place not in self._rows]
        if missing:
            self._found |= _read_rows(self.connection, missing)[1]

    def get(self, row: type[SomeRow], *key: str) -> SomeRow | None:
        """Return the row with this primary key, if there is one."""
        place = (row, key)
        if place not in self._rows:
            self.fetch([place])
            # What could not have been stored was not asked of the database.
            self._rows[place] = self.proof.read(row, key, self._found[place]) if place in self._found else None
        known = self._rows[place]
        return known if isinstance(known, row) else None

    def list_all(self, row: type[SomeRow], **wanted: str | None) -> list[SomeRow]:
        """Return all rows, none missing, or those with the wanted values (None: any)."""
        conditions = {name: check_name(name, value) for name, value in wanted.items() if value is not None}
        where = " AND ".join(f"{name} = ?" for name in conditions)
        chosen = f"{_LIST[row]} WHERE {where}" if where else _LIST[row]
        columns = run(self.connection, f"{chosen} ORDER BY {', '.join(row.primary_key)}", tuple(conditions.values()))
        rows = [self.prove(row, each) for each in columns]
        if not conditions:
            self.proof.check_count(row, len(rows))
        return rows

    def prove(self, row: type[SomeRow], columns: Sequence[Any]) -> SomeRow:
        """Return the row behind columns of its table; refuse one that was not signed."""
        named, kinds = dict(zip(field_types(row), columns, strict=True)), field_types(row)
        key = tuple(named[name] for name in row.primary_key)
        if not all(isinstance(named[name], kinds[name][0]) for name in row.primary_key):
            return read_row(row, named)  # which refuses it: SQLite stores any type in a column
        proved = self.proof.read(row, key, columns)
        assert proved is not None
        return proved

    def add(self, row: DerivedRow) -> None:
        """Keep a row that was not there; one that is there after all is found when it is written."""
        place = (type(row), get_primary_key(row))
        if self._rows.get(place) is not None:
            raise ContradictoryFact("it records a second time what can happen once")
        self._rows[place] = self._added[place] = row

    def update(self, row: DerivedRow) -> None:
        """Keep a row in place of the one with its primary key."""
        place = (type(row), get_primary_key(row))
        changed = self._added if place in self._added else self._updated
        self._rows[place] = changed[place] = row

    def flush(self) -> None:
        """Write what was added and updated, and let the proof follow."""
        for kind, rows in groupby(sorted(self._added.values(), key=_get_table), key=type):
            added = [self._prove_later(row, added=True) for row in rows]
            statement = _ADD[kind] + write_marks(len(added[0]), len(added))
            run(self.connection, statement, [value for columns in added for value in columns])
        for row in self._updated.values():
            kind, key = type(row), row.primary_key
            named = dict(zip(field_types(kind), self._prove_later(row, added=False), strict=True))
            values = [value for name, value in named.items() if name not in key]
            run(self.connection, _UPDATE[kind], values + [named[name] for name in key])
        self._added, self._updated = {}, {}

    def _prove_later(self, row: DerivedRow, *, added: bool) -> tuple[Plain, ...]:
        columns = tuple(RECORDS.to_json(row).values())
        self.proof.put(row, columns, added=added)
        return columns


class RememberedRows:
    """Rows as this process last saw them, none of them proved: good for a guess at what a transaction will do."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def get(self, row: type[SomeRow], *key: str) -> SomeRow | None:
        """Return the row with this primary key, if it is remembered."""
        known = self._memory.rows.get((row, key))
        return known.row if known is not None and isinstance(known.row, row) else None

    def list_all(self, row: type[SomeRow]) -> list[SomeRow]:
        """All rows are not remembered."""
        raise AssertionError("a guess is about the rows of one question")

    def add(self, row: DerivedRow) -> None:
        """Nothing is written here."""
        raise AssertionError("a guess changes nothing")

    update = add


def add_grants(store: DatabaseRowStore, identity: Identity) -> Identity:
    """Say with the holder of a token what they may see: every request needs both."""
    if identity.role is Role.CONTROLLER:
        return identity
    grants = store.list_all(GrantRow, analyst=identity.name)
    return replace(identity, granted=tuple([row.dataset for row in grants if row.withdrawn is None]))


def _get_table(row: DerivedRow) -> str:
    return row.table


_COLUMNS = {row: ", ".join(field_types(row)) for row in ROWS}
_LIST = {row: f"SELECT {_COLUMNS[row]} FROM {TABLES[row]}" for row in ROWS}
_ADD = {row: f"INSERT INTO {TABLES[row]} ({_COLUMNS[row]}) VALUES " for row in ROWS}
_UPDATE = {
    row: f"UPDATE {TABLES[row]} SET "
    + ", ".join(f"{name} = ?" for name in field_types(row) if name not in row.primary_key)
    + " WHERE "
    + " AND ".join(f"{name} = ?" for name in row.primary_key)
    for row in ROWS
}
_END = (
    f"(SELECT 1) AS here LEFT JOIN {merkle} ON {merkle}.page = {TOP} "
    f"LEFT JOIN (SELECT sequence, mac FROM {entries} ORDER BY sequence DESC LIMIT 1) AS head ON 1 = 1"
)


@cache
def _find_rows(rows: tuple[Any, ...]) -> tuple[str, list[slice]]:
    """Write the statement that finds the end of the chain and one row of each of these tables by its primary key.

    The slices are those of each row's columns.
    """
    columns, sources, slices = [f"{merkle}.content", "head.sequence", "head.mac"], [_END], []
    for number, row in enumerate(rows):
        slices.append(slice(len(columns), len(columns) + len(field_types(row))))
        columns += [f"r{number}.{name}" for name in field_types(row)]
        matches = " AND ".join(f"r{number}.{name} = ?" for name in row.primary_key)
        sources.append(f"LEFT JOIN {TABLES[row]} AS r{number} ON {matches}")
    return f"SELECT {', '.join(columns)} FROM {' '.join(sources)}", slices


def _read_rows(connection: Connection, places: Sequence[Place]) -> tuple[End, Found]:
    """Read the end of the chain and what stands at these places, which is not proved yet."""
    # What could not have been stored is not asked of the database: each driver fails in its own way.
    asked = [place for place in places if all(isinstance(part, str) and part.isprintable() for part in place[1])]
    statement, slices = _find_rows(tuple([row for row, _ in asked]))
    read = run(connection, statement, [part for _, key in asked for part in key])
    if len(read) != 1:
        raise LedgerTampered(f"the ledger's tables have a row twice; {VERIFY}")
    columns, found = read[0], Found()
    for place, own in zip(asked, slices, strict=True):
        # A row begins with its primary key, which is never NULL.
        found[place] = None if columns[own.start] is None else columns[own]
    return columns[:3], found


def replace_rows(
    connection: Connection, key: bytes, head: Anchor, rows: dict[type[DerivedRow], dict[PrimaryKey, DerivedRow]]
) -> None:
    """Make the derived tables hold these rows and no others, with their proof."""
    for row, table in TABLES.items():
        connection.execute(delete(table))
        if rows[row]:
            connection.execute(insert(table), [RECORDS.to_json(derived) for derived in rows[row].values()])
    write_proof(connection, key, head, (row for table in rows.values() for row in table.values()))


class Transactions:
    """The transactions of one process on its ledger: each reads rows with their proof, and a writer appends facts.

    `watch` surrounds each of them. The places that are given are those that the transaction will need, to be read at
    once; others are read when they are needed.
    """

    def __init__(
        self, database: Database, key: bytes, clock: Clock, watch: Callable[[], AbstractContextManager[None]]
    ) -> None:
        self._database = database
        self._memory = Memory(key)
        self._clock = clock
        self._watch = watch
        self._queue = CommitQueue(database, self.writing)
        self.remembered = RememberedRows(self._memory)

    @property
    def known(self) -> Anchor | None:
        """The newest end of the chain that this process has seen."""
        return self._memory.known

    @contextmanager
    def reading(self, *places: Place) -> Iterator[DatabaseRowStore]:
        """Open one consistent view of the rows, each with its proof."""
        with self._watch():
            # Before the view is taken: another thread may learn of a newer end meanwhile.
            known = self._memory.known
            with self._database.reading() as connection:
                end, found = _read_rows(connection, places)
                proof = Proof(connection, self._memory, known, end)
                yield DatabaseRowStore(connection, proof, found)
            proof.learn()

    @contextmanager
    def writing(self, *places: Place) -> Iterator[Writer]:
        """Lock the ledger against other writers; what was appended is durable at the end."""
        with self._watch():
            with self._database.writing() as connection:
                writer = Writer(connection, self._memory, self._clock, places)
                yield writer
                writer.flush()
            writer.proof.learn()  # only what was committed is known

    def write(self, work: Callable[[Writer], T], *places: Place) -> T:
        """Do the work of a short transaction, perhaps together with that of other threads; durable when it returns."""
        with self._watch():
            return self._queue.run(work, places)

    def append(
        self, rule: Callable[Concatenate[RowStore, P], Fact | None], *arguments: P.args, **options: P.kwargs
    ) -> None:
        """Record the fact that a rule gives, if it gives one, and nothing else."""
        self.write(lambda writer: writer.append(rule(writer.store, *arguments, **options)))


class Writer:
    """Appends facts to a chain whose end it has checked, and keeps the derived rows and their proof in step."""

    def __init__(self, connection: Connection, memory: Memory, clock: Clock, places: Sequence[Place]) -> None:
        self.connection = connection
        end, found = _read_rows(connection, places)
        # The ledger is locked: what this process knows is not newer than what is there.
        self.proof = Proof(connection, memory, memory.known, end)
        self.store = DatabaseRowStore(connection, self.proof, found)
        self.appended = 0
        self._head = self.proof.head
        self._entries: list[Entry] = []
        self._key = memory.key
        self._clock = clock

    def append(self, fact: Fact | None) -> Entry | None:
        """Record the fact, if there is one; its entry is durable when the transaction has ended."""
        if fact is None:
            return None
        self.appended += 1
        entry = sign_entry(self._key, self._head, format_time(self._clock()), fact)
        self._entries.append(entry)
        self._head = Anchor(entry.sequence, entry.mac)
        try:
            apply(self.store, entry.sequence, fact)
        except ContradictoryFact as error:
            raise LedgerTampered(f"the ledger's tables disagree with its chain: {error}; {VERIFY}") from error
        return entry

    def flush(self) -> None:
        """Write what was appended: from here on this transaction finds it in the database."""
        if self._entries:
            write_entries(self.connection, self._entries)
            self.store.flush()
            self.proof.write(self._head)
            self._entries = []

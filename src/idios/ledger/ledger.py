"""The ledger: every charge, answer and permission, durable, exact and signed.

Rules:

1. A charge is on disk before `reserve` returns, an answer before `release` does: a crash can lose budget,
   never privacy.
2. A question is charged to its data set once, and to each analyst who learns its answer once.
3. One answer is ever sent for a charge: the first that is released. Whoever comes later gets that one.
4. Nothing is ever taken back or altered: facts are appended, and `verify` finds whoever did otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from fractions import Fraction
from pathlib import Path
from types import TracebackType

from sqlalchemy import select

from idios.errors import InvalidInput, LedgerError, LedgerTampered
from idios.ledger import rules
from idios.ledger.amounts import optional_amount
from idios.ledger.answers import read_answers, released_questions
from idios.ledger.balance import Balance
from idios.ledger.chain import START, Anchor, Entry
from idios.ledger.database import Database
from idios.ledger.facts import KINDS, Reserved
from idios.ledger.names import Clock, checked_name, system_clock
from idios.ledger.opening import open_database, open_key
from idios.ledger.request import Declaration, Price, Request, Reservation, StoredAnswer
from idios.ledger.rows import Analyst, Dataset, Grant, Question, SomeRow, Token
from idios.ledger.tables import TABLES, TableBook, read_entries, read_row, replace_rows
from idios.ledger.tokens import LIFETIME, holder, new_token
from idios.ledger.verification import Verification, replay, verify
from idios.ledger.writer import Writer, checked_head


class Ledger:
    """A durable record of budgets, charges and answers; made by `Ledger.open`, safe to use from many threads.

    >>> with Ledger.open("sqlite://") as ledger:
    ...     _ = ledger.declare(Declaration("people", "2026-11", epsilon=Fraction(1)))
    ...     charge = ledger.reserve(Request("people", "2026-11", None, "median(income)", Fraction(1, 4)))
    ...     answer = ledger.release(charge, '{"value": "41320"}')
    ...     ledger.balance("people").epsilon.remaining
    Fraction(3, 4)
    """

    def __init__(self, database: Database, key: bytes, clock: Clock) -> None:
        self._database = database
        self._key = key
        self._clock = clock
        self._known = START

    @classmethod
    def open(
        cls,
        url: str,
        key_file: str | Path | None = None,
        *,
        create: bool = True,
        clock: Clock = system_clock,
        timeout: float = 30,
    ) -> Ledger:
        """Open the ledger at sqlite:///file, sqlite:// (in memory) or postgresql://…, creating a new one.

        The key file of an SQLite ledger lies beside it unless named; waiting for other writers ends after
        `timeout` seconds.
        """
        database = open_database(url, timeout=timeout, create=create)
        try:
            database.prepare(create)
            key = open_key(database, url, key_file)
        except BaseException:
            database.close()
            raise
        return cls(database, key, clock)

    def close(self) -> None:
        """Close every connection; what was recorded stays."""
        self._database.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # What the controller does.

    def declare(self, declaration: Declaration) -> Balance:
        """Record a data set or a new version of it; a budget other than the recorded one is refused."""
        with self._writing() as writer:
            writer.append(rules.declare(writer.book, declaration))
            return rules.known_dataset(writer.book, declaration.dataset).balance

    def raise_budget(self, dataset: str, *, epsilon: Fraction | None = None, delta: Fraction | None = None) -> Balance:
        """Raise a data set's budgets to new totals, on the record; None leaves one as it is."""
        epsilon, delta = optional_amount("epsilon", epsilon), optional_amount("delta", delta)
        with self._writing() as writer:
            writer.append(rules.raise_budget(writer.book, dataset, epsilon, delta))
            return rules.known_dataset(writer.book, dataset).balance

    def retire(self, dataset: str) -> None:
        """Answer nothing about the data set from here on, not even what is stored or being computed."""
        with self._writing() as writer:
            writer.append(rules.retire(writer.book, dataset))

    def add_analyst(self, analyst: str) -> None:
        """Make an analyst known; he may ask nothing before a grant."""
        checked_name("analyst", analyst)
        with self._writing() as writer:
            writer.append(rules.add_analyst(writer.book, analyst))

    def grant(
        self, analyst: str, dataset: str, *, epsilon: Fraction | None = None, delta: Fraction | None = None
    ) -> Balance:
        """Let an analyst ask about a data set, up to totals of his own; None: up to the data set's budget.

        A second grant replaces the totals; what he has spent stays spent.
        """
        epsilon, delta = optional_amount("epsilon", epsilon), optional_amount("delta", delta)
        with self._writing() as writer:
            writer.append(rules.grant(writer.book, analyst, dataset, epsilon, delta))
            return rules.known_grant(writer.book, analyst, dataset).balance

    def issue_token(self, analyst: str, *, lifetime: timedelta = LIFETIME) -> str:
        """Give an analyst a token: this is the only time it can be seen."""
        secret, issued = new_token(analyst, self._clock(), lifetime)
        with self._writing() as writer:
            writer.append(rules.issue_token(writer.book, issued))
        return secret

    def revoke_token(self, name: str) -> None:
        """Accept the token of this name (see `tokens`) no longer."""
        with self._writing() as writer:
            writer.append(rules.revoke_token(writer.book, name))

    def inspected(self, request: Request) -> None:
        """Record that the controller looked behind a question; nothing is charged."""
        with self._writing() as writer:
            writer.append(rules.inspect(writer.book, request))

    # What a question does.

    def price(self, request: Request) -> Price:
        """Say whom the request would charge, and charge nobody."""
        with self._database.reading() as connection:
            return rules.price(TableBook(connection), request)

    def reserve(self, request: Request) -> Reservation | StoredAnswer:
        """Charge the request, durably, and allow the data to be read; or give the answer that is stored.

        An analyst who has not paid for an answer that is stored or being computed is charged on his cap only.
        BudgetExceeded, and no charge, if a budget does not allow it.
        """
        with self._writing() as writer:
            fact = rules.reserve(writer.book, request)
            writer.append(fact)
            question = self._question(writer, request.key)
            if question.released is not None:
                return read_answers(writer.connection, self._key, [question])[0]
            return Reservation(request, request.key, question.reserved, joined=not isinstance(fact, Reserved))

    def release(self, reservation: Reservation, answer: str) -> StoredAnswer:
        """Store the answer, durably, and give what may be sent: the first one released for the charge."""
        if not isinstance(answer, str):
            raise InvalidInput(f"an answer is released as JSON text, not as {type(answer).__name__}")
        with self._writing() as writer:
            writer.append(rules.release(writer.book, reservation, answer))
            question = self._question(writer, reservation.key)
            return read_answers(writer.connection, self._key, [question])[0]

    def fail(self, reservation: Reservation, detail: str) -> None:
        """Record why an answer could not be computed; the charge stays and can still be completed once."""
        if not isinstance(detail, str):
            raise InvalidInput(f"a failure's detail is text, not {type(detail).__name__}")
        with self._writing() as writer:
            writer.append(rules.fail(writer.book, reservation, detail))

    def authenticate(self, token: str) -> str:
        """Name the analyst who holds the token."""
        with self._database.reading() as connection:
            return holder(TableBook(connection), token, self._clock())

    # What is on record.

    def balance(self, dataset: str, analyst: str | None = None) -> Balance:
        """Say what a data set has spent over all analysts, or one analyst on it."""
        with self._database.reading() as connection:
            book = TableBook(connection)
            known = rules.known_dataset(book, dataset)
            return known.balance if analyst is None else rules.known_grant(book, analyst, dataset).balance

    def datasets(self) -> list[Declaration]:
        """List the data sets that are not retired, with their recorded budgets."""
        return [
            Declaration(row.dataset, row.version, row.epsilon, row.delta, row.min_epsilon)
            for row in self._rows(Dataset)
            if row.retired is None
        ]

    def analysts(self) -> list[str]:
        """List the analysts."""
        return [row.analyst for row in self._rows(Analyst)]

    def grants(self) -> list[Balance]:
        """List every analyst's balance on every data set he may ask about."""
        return [row.balance for row in self._rows(Grant)]

    def tokens(self) -> list[Token]:
        """List the tokens by name; the tokens themselves are not kept."""
        return self._rows(Token)

    def answers(
        self,
        dataset: str | None = None,
        analyst: str | None = None,
        *,
        after: int = 0,
        limit: int | None = None,
    ) -> list[StoredAnswer]:
        """List the released answers in their order: of a data set, or those an analyst has paid for.

        `after` is the `sequence` of the last answer already seen.
        """
        for what, name in (("data set", dataset), ("analyst", analyst)):
            if name is not None:
                checked_name(what, name)
        with self._database.reading() as connection:
            found = released_questions(connection, dataset=dataset, analyst=analyst, after=after, limit=limit)
            return read_answers(connection, self._key, found)

    def entries(self, *, after: int = 0, limit: int | None = 100, kinds: tuple[str, ...] = ()) -> list[Entry]:
        """List entries of the chain in their order, a page at a time."""
        unknown = [kind for kind in kinds if kind not in KINDS]
        if unknown:
            raise InvalidInput(f"entries are of the kinds {', '.join(KINDS)}; not {', '.join(unknown)}")
        with self._database.reading() as connection:
            return read_entries(connection, after=after, limit=limit, kinds=kinds)

    def head(self) -> Anchor:
        """Give the end of the chain: kept elsewhere, it lets `verify` find a chain that was cut off."""
        with self._database.reading() as connection:
            return checked_head(connection, self._key)

    def verify(self, anchor: Anchor | None = None) -> Verification:
        """Check every entry's signature, the anchor if given, and the tables against the chain."""
        with self._database.reading() as connection:
            return verify(connection, self._key, anchor)

    def rebuild(self, anchor: Anchor | None = None) -> None:
        """Make the tables anew from the chain, which must be good; the chain is not touched."""
        with self._writing() as writer:
            result = replay(writer.connection, self._key, anchor)
            if result.problem is not None:
                raise LedgerTampered(
                    f"the tables cannot be made from this chain: entry {result.sequence} {result.problem}"
                )
            replace_rows(writer.connection, result.book.rows)

    @contextmanager
    def _writing(self) -> Iterator[Writer]:
        with self._database.writing() as connection:
            writer = Writer(connection, self._key, self._clock, self._known)
            yield writer
        # Only what was committed is known. Another thread may have come further meanwhile.
        self._known = max(self._known, writer.head, key=lambda anchor: anchor.sequence)

    def _rows(self, row: type[SomeRow]) -> list[SomeRow]:
        table = TABLES[row]
        with self._database.reading() as connection:
            found = connection.execute(select(table).order_by(*table.primary_key.columns)).mappings()
            return [read_row(row, columns) for columns in found]

    def _question(self, writer: Writer, key: str) -> Question:
        found = writer.book.find(Question, key)
        if found is None:
            raise LedgerError("the question was not recorded")
        return found

"""The read-only half of the ledger: balances, permissions, answers, entries."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

from idios.errors import InvalidInput, LedgerTampered
from idios.ledger import rules
from idios.ledger.answers import read_answers, released_questions
from idios.ledger.book import TableBook
from idios.ledger.chain import Anchor, Entry
from idios.ledger.database import Database
from idios.ledger.facts import KINDS
from idios.ledger.names import LONGEST_TEXT, checked_name, checked_number
from idios.ledger.proof import Memory, Proof
from idios.ledger.request import Declaration, StoredAnswer
from idios.ledger.rows import Analyst, Dataset, Grant, Row, SomeRow, Token
from idios.ledger.searching import find_entries
from idios.ledger.spending import Spending, SpendingSoFar
from idios.ledger.tables import read_entries
from idios.ledger.verification import Verification, verify
from idios.model import Balance

log = logging.getLogger("idios.ledger")
# Where logging is not set up, errors are raised and nothing is printed besides.
log.addHandler(logging.NullHandler())

LONGEST_PAGE = 1000
PERMISSIONS: tuple[type[Row], ...] = (Dataset, Analyst, Grant, Token)
"""The tables of permissions, short enough to be checked while others wait."""
PAUSE = 1.0
SHARE = 20
"""They are checked again after this many seconds, or after this many times as long as it took."""


class Record:
    """The readable half of a ledger; `Ledger` is the whole."""

    def __init__(self, database: Database, key: bytes) -> None:
        self._database = database
        self._key = key
        self._memory = Memory(key)
        self._spending = SpendingSoFar(database)
        self._distrusted: str | None = None
        self._check_again = 0.0
        self.trouble: str | None = None
        """The last difference from what was signed that was found; None once all was found to be good again."""
        self.verifying = False
        """Whether the whole chain is being verified at the moment."""

    def balance(self, dataset: str, analyst: str | None = None) -> Balance:
        """Say what a data set has spent over all analysts, or one analyst on it."""
        with self._reading() as book:
            return rules.balance(book, dataset, analyst)

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

    def grants(self, analyst: str | None = None) -> list[Balance]:
        """List every analyst's balance, or one analyst's, on every data set they may ask about."""
        with self._reading() as book:
            granted = [row for row in book.every(Grant, analyst=analyst) if row.withdrawn is None]
            whole = {row.dataset: row.balance for row in book.every(Dataset)}
        return [row.balance.within(whole[row.dataset]) for row in granted]

    def retired(self, dataset: str) -> bool:
        """Whether a data set is on record and answers nothing more."""
        checked_name("data set", dataset)
        with self._reading() as book:
            found = book.find(Dataset, dataset)
        return found is not None and found.retired is not None

    def tokens(self) -> list[Token]:
        """List the tokens by name; the tokens themselves are not kept."""
        return self._rows(Token)

    def answers(
        self,
        dataset: str | None = None,
        analyst: str | None = None,
        *,
        after: int = 0,
        before: int | None = None,
        limit: int | None = None,
        newest_first: bool = False,
    ) -> list[StoredAnswer]:
        """List the released answers in their order: of a data set, or those an analyst has paid for.

        `after`, or `before` when the newest come first, is the `sequence` of the last answer already seen. What
        an analyst has paid for stays listed when their grant is withdrawn or the data set retired, as they know
        it already.
        """
        for what, name in (("data set", dataset), ("analyst", analyst)):
            if name is not None:
                checked_name(what, name)
        checked_number("after", after)
        if before is not None:
            checked_number("before", before)
        with self._reading() as book:
            found = released_questions(
                book,
                dataset=dataset,
                analyst=analyst,
                after=after,
                before=before,
                limit=limit,
                newest_first=newest_first,
            )
            return read_answers(book.connection, self._key, found)

    def entries(self, *, after: int = 0, limit: int | None = 100, kinds: tuple[str, ...] = ()) -> list[Entry]:
        """List entries of the chain in their order, a page at a time."""
        _checked_kinds(kinds)
        with self._database.reading() as connection:
            return read_entries(connection, after=after, limit=limit, kinds=kinds)

    def search(
        self,
        *,
        text: str = "",
        kinds: tuple[str, ...] = (),
        dataset: str | None = None,
        analyst: str | None = None,
        before: int | None = None,
        limit: int = 50,
    ) -> list[Entry]:
        """List the newest entries first: those that contain a text, of some kinds, about a data set or an analyst.

        `before` is the `sequence` of the last entry already seen. Signatures are checked by `verify`, not here.
        """
        _checked_kinds(kinds)
        for what, name in (("data set", dataset), ("analyst", analyst)):
            if name is not None:
                checked_name(what, name)
        if not isinstance(text, str) or len(text) > LONGEST_TEXT:
            raise InvalidInput(f"the text to search for has at most {LONGEST_TEXT} characters")
        if before is not None:
            checked_number("before", before)
        checked_number("limit", limit, LONGEST_PAGE)
        with self._database.reading() as connection:
            return find_entries(
                connection, text=text, kinds=kinds, dataset=dataset, analyst=analyst, before=before, limit=limit
            )

    def spending(self, dataset: str) -> Spending:
        """Say what was charged to a data set over time and who asked; signatures are checked by `verify`, not here."""
        return self._spending.of(checked_name("data set", dataset))

    def head(self) -> Anchor:
        """Give the end of the chain: kept elsewhere, it lets `verify` find a chain that was cut off."""
        with self._reading() as book:
            book.proof.check_seal()
            return book.proof.head

    def verify(self, anchor: Anchor | None = None) -> Verification:
        """Check every entry's signature, the anchor if given, and the tables and their proof against the chain."""
        self.verifying = True
        try:
            with self._database.reading() as connection:
                found = verify(connection, self._key, anchor)
        finally:
            self.verifying = False
        self.trouble = None if found.ok else str(found)
        return found

    def check(self) -> None:
        """Refuse a ledger that cannot be written, or with any fault that can be found without reading the whole chain.

        It checks the end of the chain, that this follows from the last one seen, the proof, and every permission.
        What was found good is written and read again only after a while, so that a client who asks often cannot keep
        the ledger busy.
        """
        began = time.monotonic()
        due = began >= self._check_again
        self._database.check_room()
        if due:
            self._database.check_writable()
        with self._reading() as book:
            book.proof.check_seal()
            for row in PERMISSIONS if due else ():
                book.every(row)
        if due:
            self._check_again = began + max(PAUSE, SHARE * (time.monotonic() - began))
        if self.trouble is not None:
            raise LedgerTampered(f"the ledger is not what was signed: {self.trouble}")

    def distrust(self, problem: str, *, answer: bool = False) -> None:
        """Note what is wrong, for `check` and the log; nothing is answered from here on, unless `answer` says so."""
        self.trouble = problem
        if not answer:
            self._distrusted = problem
        log.error("not what was signed", extra={"fields": {"problem": problem}})

    def _rows(self, row: type[SomeRow]) -> list[SomeRow]:
        with self._reading() as book:
            return book.every(row)

    @contextmanager
    def _reading(self) -> Iterator[TableBook]:
        """One consistent view of the rows, each with its proof."""
        with self._watched():
            # Before the view is taken: another thread may learn of a newer end meanwhile.
            known = self._memory.known
            with self._database.reading() as connection:
                proof = Proof(connection, self._memory, known)
                yield TableBook(connection, proof)
            proof.learn()

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Remember the first difference from what was signed."""
        if self._distrusted is not None:
            raise LedgerTampered(f"the ledger is not what was signed, and nothing is answered: {self._distrusted}")
        try:
            yield
        except LedgerTampered as error:
            if self.trouble is None:
                self.distrust(str(error), answer=True)
            raise


def _checked_kinds(kinds: tuple[str, ...]) -> None:
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown:
        raise InvalidInput(f"entries are of the kinds {', '.join(KINDS)}; not {', '.join(unknown)}")

"""What is on record, for whoever may read it: balances, permissions, answers, entries; nothing here writes."""

from __future__ import annotations

from sqlalchemy import select

from idios.errors import InvalidInput
from idios.ledger import rules
from idios.ledger.answers import read_answers, released_questions
from idios.ledger.balance import Balance
from idios.ledger.chain import Anchor, Entry
from idios.ledger.database import Database
from idios.ledger.facts import KINDS
from idios.ledger.names import LONGEST_TEXT, checked_name, checked_number
from idios.ledger.request import Declaration, StoredAnswer
from idios.ledger.rows import Analyst, Dataset, Grant, SomeRow, Token
from idios.ledger.searching import find_entries
from idios.ledger.spending import Spending, SpendingSoFar
from idios.ledger.tables import TABLES, TableBook, read_entries, read_row
from idios.ledger.verification import Verification, verify
from idios.ledger.writer import checked_head

LONGEST_PAGE = 1000


class Record:
    """The readable half of a ledger; `Ledger` is the whole."""

    def __init__(self, database: Database, key: bytes) -> None:
        self._database = database
        self._key = key
        self._spending = SpendingSoFar(database)

    def balance(self, dataset: str, analyst: str | None = None) -> Balance:
        """Say what a data set has spent over all analysts, or one analyst on it."""
        with self._database.reading() as connection:
            return rules.balance(TableBook(connection), dataset, analyst)

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
        """List every analyst's balance, or one's, on every data set he may ask about."""
        granted = [row for row in self._rows(Grant, analyst=analyst) if row.withdrawn is None]
        whole = {row.dataset: row.balance for row in self._rows(Dataset)}
        return [row.balance.within(whole[row.dataset]) for row in granted]

    def retired(self, dataset: str) -> bool:
        """Whether a data set is on record and answers nothing more."""
        return any(row.retired is not None for row in self._rows(Dataset, dataset=dataset))

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
        an analyst has paid for stays listed when his grant is withdrawn or the data set retired, as he knows it
        already.
        """
        for what, name in (("data set", dataset), ("analyst", analyst)):
            if name is not None:
                checked_name(what, name)
        checked_number("after", after)
        if before is not None:
            checked_number("before", before)
        with self._database.reading() as connection:
            found = released_questions(
                connection,
                dataset=dataset,
                analyst=analyst,
                after=after,
                before=before,
                limit=limit,
                newest_first=newest_first,
            )
            return read_answers(connection, self._key, found)

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
        with self._database.reading() as connection:
            return checked_head(connection, self._key)

    def verify(self, anchor: Anchor | None = None) -> Verification:
        """Check every entry's signature, the anchor if given, and the tables against the chain."""
        with self._database.reading() as connection:
            return verify(connection, self._key, anchor)

    def _rows(self, row: type[SomeRow], **wanted: str | None) -> list[SomeRow]:
        """All rows, or those with the wanted values (None: any)."""
        table = TABLES[row]
        asked = select(table).order_by(*table.primary_key.columns)
        for name, value in wanted.items():
            if value is not None:
                asked = asked.where(table.c[name] == checked_name(name, value))
        with self._database.reading() as connection:
            found = connection.execute(asked).mappings()
            return [read_row(row, columns) for columns in found]


def _checked_kinds(kinds: tuple[str, ...]) -> None:
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown:
        raise InvalidInput(f"entries are of the kinds {', '.join(KINDS)}; not {', '.join(unknown)}")

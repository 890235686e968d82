"""The ledger: every charge, answer and permission, durable, exact and signed.

Rules:

1. A charge is on disk before `reserve` returns, an answer before `release` does: a crash can lose budget,
   never privacy.
2. A question is charged to its data set once, and to each analyst who learns its answer once.
3. One answer is ever sent for a charge: the first that is released. Later callers get that one.
4. Nothing is ever taken back or altered: facts are appended, and `verify` finds any other change.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from fractions import Fraction
from pathlib import Path
from types import TracebackType

from idios.errors import BudgetExceeded, InvalidInput, LedgerError, LedgerTampered
from idios.ledger import rules
from idios.ledger.amounts import amount, optional_amount
from idios.ledger.answers import read_answers
from idios.ledger.backup import back_up
from idios.ledger.book import replace_rows
from idios.ledger.chain import Anchor
from idios.ledger.facts import Begun, Reserved
from idios.ledger.idempotency import checked_request_key, remember, seen_before
from idios.ledger.identity import Identity, Role
from idios.ledger.key import derive
from idios.ledger.names import Clock, checked_name, checked_text, system_clock
from idios.ledger.opening import Opened, existing_ledger, open_ledger
from idios.ledger.record import Record
from idios.ledger.request import Declaration, Price, Request, Reservation, StoredAnswer
from idios.ledger.rows import Question
from idios.ledger.running import RunningQuestions
from idios.ledger.sessions import EndedSessions
from idios.ledger.tokens import LIFETIME, named_token, new_token, shown_token
from idios.ledger.upgrading import upgrade
from idios.ledger.verification import Verification, replay
from idios.ledger.writer import Writer
from idios.model import Balance, ReleasedTable
from idios.model.budget import describe_shortage


class Ledger(Record):
    """A durable record of budgets, charges and answers; made by `Ledger.open`, safe to use from many threads.

    >>> with Ledger.open("sqlite://") as ledger:
    ...     _ = ledger.declare(Declaration("people", "2026-11", epsilon=Fraction(1)))
    ...     charge = ledger.reserve(Request("people", "2026-11", None, "median(income)", Fraction(1, 4)))
    ...     answer = ledger.release(charge, '{"value": "41320"}')
    ...     ledger.balance("people").epsilon.remaining
    Fraction(3, 4)
    """

    def __init__(self, opened: Opened, clock: Clock) -> None:
        super().__init__(opened.database, opened.key)
        self._opened = opened
        self._clock = clock
        self.running = RunningQuestions(opened.database, clock)
        self.sessions = EndedSessions(opened.database, clock)

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

        A new one is created where there is neither a ledger nor a key; a key whose ledger is missing is refused. The
        key file of an SQLite ledger lies beside it unless named; waiting for other writers ends after `timeout`
        seconds.
        """
        return cls(open_ledger(url, key_file, timeout=timeout, create=create), clock)

    @classmethod
    def create(
        cls,
        url: str,
        key_file: str | Path | None = None,
        *,
        reason: str,
        clock: Clock = system_clock,
        timeout: float = 30,
    ) -> Ledger:
        """Begin a new ledger where there is none, also where there is a key of a lost one, and record why."""
        begun = Begun(checked_text("reason", reason))
        return cls(open_ledger(url, key_file, timeout=timeout, create=True, begun=begun), clock)

    @staticmethod
    def upgrade(url: str, key_file: str | Path | None = None, *, timeout: float = 30) -> bool:
        """Bring a ledger that an older version made to this version's format; False if it has that already.

        Its chain must be good. On any failure nothing has changed; make a backup all the same.
        """
        with existing_ledger(url, key_file, timeout) as (database, key):
            return upgrade(database, key)

    def close(self) -> None:
        """Close every connection; what was recorded stays."""
        self._opened.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # What the controller does.

    def declare(self, declaration: Declaration) -> Balance:
        """Record a data set or a new version of it.

        A budget is refused unless it is the recorded one or, after a raise, the one that was declared before.
        """
        with self._writing() as writer:
            writer.append(rules.declare(writer.book, declaration))
            return rules.known_dataset(writer.book, declaration.dataset).balance

    def raise_budget(self, dataset: str, *, epsilon: Fraction | None = None, delta: Fraction | None = None) -> Balance:
        """Raise a data set's budgets to new totals, on the record; None leaves one as it is."""
        epsilon, delta = optional_amount("epsilon", epsilon), optional_amount("delta", delta)
        with self._writing() as writer:
            writer.append(rules.raise_budget(writer.book, dataset, epsilon, delta))
            return rules.known_dataset(writer.book, dataset).balance

    def forfeit(self, dataset: str, *, epsilon: Fraction, delta: Fraction = Fraction(0), reason: str) -> Balance:
        """Count amounts as spent, on the record and even beyond the budget.

        For what was answered and is not in this chain, such as after a restore from an old backup.
        """
        epsilon, delta = amount("epsilon", epsilon), amount("delta", delta)
        checked_text("reason", reason)
        with self._writing() as writer:
            writer.append(rules.forfeit(writer.book, dataset, epsilon, delta, reason))
            return rules.known_dataset(writer.book, dataset).balance

    def retire(self, dataset: str) -> None:
        """Answer nothing about the data set from here on, not even what is stored or being computed."""
        with self._writing() as writer:
            writer.append(rules.retire(writer.book, dataset))

    def add_analyst(self, analyst: str) -> None:
        """Make an analyst known; they may ask nothing before a grant."""
        checked_name("analyst", analyst)
        with self._writing() as writer:
            writer.append(rules.add_analyst(writer.book, analyst))

    def grant(
        self, analyst: str, dataset: str, *, epsilon: Fraction | None = None, delta: Fraction | None = None
    ) -> Balance:
        """Let an analyst ask about a data set, up to totals of their own; None: up to the data set's budget.

        A second grant replaces the totals, also after a withdrawal; what they have spent stays spent.
        """
        epsilon, delta = optional_amount("epsilon", epsilon), optional_amount("delta", delta)
        with self._writing() as writer:
            writer.append(rules.grant(writer.book, analyst, dataset, epsilon, delta))
            return rules.balance(writer.book, dataset, analyst)

    def withdraw(self, analyst: str, dataset: str) -> None:
        """End an analyst's grant: from here on they get nothing about the data set, not even what is stored.

        A question that is charged already is still answered, and the answers they paid for are still listed by
        `answers(analyst=...)`: they know them already.
        """
        with self._writing() as writer:
            writer.append(rules.withdraw(writer.book, analyst, dataset))

    def issue_token(self, name: str, *, role: Role = Role.ANALYST, lifetime: timedelta = LIFETIME) -> str:
        """Give an analyst, or a controller of any name, a token: this is the only time it can be seen."""
        secret, issued = new_token(name, role, self._clock(), lifetime)
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
        """Say whom the request would charge, without charging."""
        with self._reading() as book:
            price = rules.price(book, request)
            try:
                rules.reserve(book, request)
            except BudgetExceeded as error:
                return replace(price, shortage=describe_shortage(error))
            return price

    def reserve(self, request: Request, *, once: str | None = None) -> Reservation | StoredAnswer:
        """Charge the request, durably, and allow the data to be read; or give the answer that is stored.

        An analyst who has not paid for an answer that is stored or being computed is charged on their cap only.
        BudgetExceeded, and no charge, if a budget does not allow it. `once` is the idempotency key of this
        request: KeyReused, and no charge, if the caller used it in the last 30 days for another question.
        """
        if once is not None:
            checked_request_key(once)
        settled = self._settled(request, once)
        if settled is not None:
            return settled
        with self._writing() as writer:
            repeated = once is not None and seen_before(writer.connection, request, once)
            fact = rules.reserve(writer.book, request)
            writer.append(fact)
            # Only keys of charged requests: a caller who repeats a question, free, could fill the table with new keys.
            if once is not None and fact is not None and not repeated:
                remember(writer.connection, request, once, self._clock())
            question = self._question(writer, request.key)
            if question.released is not None:
                return read_answers(writer.connection, self._key, [question])[0]
            return Reservation(request, request.key, question.reserved, joined=not isinstance(fact, Reserved))

    def _settled(self, request: Request, once: str | None) -> StoredAnswer | None:
        """What needs no write, and so no wait for the writers' lock: a refusal, or an answer that is paid for."""
        with self._reading() as book:
            if once is not None:
                seen_before(book.connection, request, once)
            if rules.reserve(book, request) is not None:
                return None
            question = book.find(Question, request.key)
            if question is None or question.released is None:
                return None
            return read_answers(book.connection, self._key, [question])[0]

    def release(self, reservation: Reservation, table: ReleasedTable) -> StoredAnswer:
        """Store the table, durably, and give what may be sent: the first one released for the charge."""
        if not isinstance(table, ReleasedTable):
            raise InvalidInput(f"a question is answered with a ReleasedTable, not with {type(table).__name__}")
        text = table.to_text()
        with self._writing() as writer:
            entry = writer.append(rules.release(writer.book, reservation, text))
            request = reservation.request
            if entry is not None and request.key == reservation.key:
                # The key is a digest of the request: this is what was charged.
                return StoredAnswer(
                    key=reservation.key,
                    dataset=request.dataset,
                    version=request.version,
                    question=request.question,
                    epsilon=request.epsilon,
                    delta=request.delta,
                    text=text,
                    sequence=entry.sequence,
                    time=entry.time,
                )
            question = self._question(writer, reservation.key)
            return read_answers(writer.connection, self._key, [question])[0]

    def fail(self, reservation: Reservation, detail: str) -> None:
        """Record why an answer could not be computed; the charge stays and can still be completed once."""
        if not isinstance(detail, str):
            raise InvalidInput(f"a failure's detail is text, not {type(detail).__name__}")
        with self._writing() as writer:
            writer.append(rules.fail(writer.book, reservation, detail))

    def authenticate(self, secret: str) -> Identity:
        """Say who holds the token; every token that is not valid is refused with the same message."""
        with self._reading() as book:
            return shown_token(book, secret, self._clock())

    def identify(self, token: str) -> Identity:
        """Say who holds the token of this public name, for a caller who has shown the token itself before."""
        with self._reading() as book:
            return named_token(book, token, self._clock())

    # What the ledger does for itself and for the server.

    def rebuild(self, anchor: Anchor | None = None) -> None:
        """Make the tables and their proof anew from the chain, which must be good; the chain is not touched.

        It needs an anchor where the proof is not the one of this end of the chain: entries may have been cut off.
        """
        with self._writing() as writer:
            if anchor is None and not writer.proof.sealed:
                raise LedgerTampered(
                    f"the proof of the tables is not the one of entry {writer.proof.head.sequence}, the last: entries "
                    "may have been cut off; give the newest anchor that you have, or restore a backup"
                )
            result = replay(writer.connection, self._key, anchor)
            if result.problem is not None:
                raise LedgerTampered(
                    f"the tables cannot be made from this chain: entry {result.sequence} {result.problem}"
                )
            replace_rows(writer.connection, self._key, result.head, result.book.rows)
        self.trouble = None

    def backup(self, path: str | Path) -> Verification:
        """Copy an SQLite ledger into a new file while others write it, and say what the copy holds.

        The copy's `head` is its anchor. The key is not in it.
        """
        return back_up(self._database, self._key, Path(path))

    def derive(self, purpose: str) -> bytes:
        """Give a secret of 32 bytes for one purpose, always the same; it tells nothing about the ledger's key."""
        return derive(self._key, purpose)

    @contextmanager
    def _writing(self) -> Iterator[Writer]:
        with self._watched():
            with self._database.writing() as connection:
                writer = Writer(connection, self._memory, self._clock)
                yield writer
            writer.proof.learn()  # only what was committed is known

    def _question(self, writer: Writer, key: str) -> Question:
        found = writer.book.find(Question, key)
        if found is None:
            raise LedgerError("the question was not recorded")
        return found

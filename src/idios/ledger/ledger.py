"""The ledger: every charge, answer and permission, durable, exact and signed.

Rules:

1. A charge is on disk before `reserve` returns, an answer before `release` does: a crash can lose budget,
   never privacy.
2. A question is charged to its data set once, and to each analyst who learns its answer once.
3. One answer is ever sent for a charge: the first that is released. Later callers get that one.
4. Nothing is ever taken back or altered: facts are appended, and `verify` finds any other change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from fractions import Fraction
from pathlib import Path

from idios.errors import InvalidInput
from idios.ledger import rules
from idios.ledger.backup import back_up
from idios.ledger.chain import Anchor, Entry, read_entries
from idios.ledger.facts import Begun, Promise, Reserved
from idios.ledger.history import Spending, SpendingTracker, check_kinds, find_entries, list_answers, read_answers
from idios.ledger.key import derive
from idios.ledger.opening import OpenedLedger, open_ledger
from idios.ledger.operational import EndedSessions, RunningQuestions, check_idempotency_key, remember_key, was_used
from idios.ledger.request import ChargeRequest, Declaration, Price, Reservation, StoredAnswer
from idios.ledger.state import AnalystRow, DatasetRow, FailureRow, GrantRow, QuestionRow, SomeRow, TokenRow
from idios.ledger.store import Transactions, Writer, add_grants
from idios.ledger.tokens import LIFETIME, Identity, IssuedToken, authenticate, create_token, identify_token, locate
from idios.ledger.values import Clock, check_name, check_optional_amount, check_text, system_clock
from idios.ledger.verification import LedgerHealth, Verification, rebuild, verify
from idios.model import Balance, ReleasedTable, Role


class Ledger:
    """A durable record of budgets, charges and answers; made by `Ledger.open`, safe to use from many threads.

    >>> with Ledger.open("sqlite://") as ledger:
    ...     _ = ledger.declare(Declaration("people", "2026-11", epsilon=Fraction(1)))
    ...     charge = ledger.reserve(ChargeRequest("people", "2026-11", None, "median(income)", Fraction(1, 4)))
    ...     ledger.balance("people").epsilon.remaining
    Fraction(3, 4)
    """

    def __init__(self, opened: OpenedLedger, clock: Clock) -> None:
        self._opened = opened
        self._database = opened.database
        self._key = opened.key
        self._clock = clock
        self._spending = SpendingTracker(opened.database)
        self.health = LedgerHealth()
        self._transactions = Transactions(opened.database, opened.key, clock, self.health.watch)
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
        begun = Begun(check_text("reason", reason))
        return cls(open_ledger(url, key_file, timeout=timeout, create=True, begun=begun), clock)

    def close(self) -> None:
        """Close every connection; what was recorded stays."""
        self._opened.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # What the controller does.

    def declare(self, declaration: Declaration) -> Balance:
        """Record a data set or a new version of it.

        A budget is refused unless it is the recorded one or, after a raise, the one that was declared before.
        """
        with self._transactions.writing() as writer:
            writer.append(rules.declare(writer.store, declaration))
            return rules.require_dataset(writer.store, declaration.dataset).balance

    def check_declaration(self, declaration: Declaration) -> None:
        """Refuse what ``declare`` refuses, and record nothing."""
        with self._transactions.reading() as store:
            rules.declare(store, declaration)

    def raise_budget(self, dataset: str, *, epsilon: Fraction | None = None, delta: Fraction | None = None) -> Balance:
        """Raise a data set's budgets to new totals, on the record; None leaves one as it is."""
        epsilon, delta = check_optional_amount("epsilon", epsilon), check_optional_amount("delta", delta)
        with self._transactions.writing() as writer:
            writer.append(rules.raise_budget(writer.store, dataset, epsilon, delta))
            return rules.require_dataset(writer.store, dataset).balance

    def forfeit(
        self,
        dataset: str,
        *,
        epsilon: Fraction,
        delta: Fraction = Fraction(0),
        rho: Fraction | None = None,
        reason: str,
    ) -> Balance:
        """Count as spent, even beyond the budget, what was answered and is not in this chain, as after a restore.

        ρ None is ε²/2; one that is given may have been that of Gaussian noise.
        """
        with self._transactions.writing() as writer:
            writer.append(rules.forfeit(writer.store, dataset, epsilon, delta, rho, reason))
            return rules.require_dataset(writer.store, dataset).balance

    def retire(self, dataset: str) -> None:
        """Answer nothing about the data set from here on, not even what is stored or being computed."""
        self._transactions.append(rules.retire, dataset)

    def add_analyst(self, analyst: str) -> None:
        """Make an analyst known; they may ask nothing before a grant."""
        check_name("analyst", analyst)
        self._transactions.append(rules.add_analyst, analyst)

    def grant(
        self, analyst: str, dataset: str, *, epsilon: Fraction | None = None, delta: Fraction | None = None
    ) -> Balance:
        """Let an analyst ask about a data set, up to totals of their own; None: up to the data set's budget.

        A second grant replaces the totals, also after a withdrawal; what they have spent stays spent.
        """
        epsilon, delta = check_optional_amount("epsilon", epsilon), check_optional_amount("delta", delta)
        with self._transactions.writing() as writer:
            writer.append(rules.grant(writer.store, analyst, dataset, epsilon, delta))
            return rules.get_balance(writer.store, dataset, analyst)

    def withdraw(self, analyst: str, dataset: str) -> None:
        """End an analyst's grant: from here on they get nothing about the data set, not even what is stored.

        A question that is charged already is still answered, and the answers they paid for are still listed by
        `answers(analyst=...)`: they know them already.
        """
        self._transactions.append(rules.withdraw, analyst, dataset)

    def issue_token(self, name: str, *, role: Role = Role.ANALYST, lifetime: timedelta = LIFETIME) -> IssuedToken:
        """Give an analyst, or a controller of any name, a token: this is the only time it can be seen."""
        secret, issued = create_token(name, role, self._clock(), lifetime)
        with self._transactions.writing() as writer:
            writer.append(rules.issue_token(writer.store, issued))
            row = writer.store.get(TokenRow, issued.token)
            assert row is not None
        # Nothing is read once it is issued: a fault of the ledger would hide the secret for ever.
        return IssuedToken(secret, row)

    def revoke_token(self, name: str) -> None:
        """Accept the token of this name (see `tokens`) no longer."""
        self._transactions.append(rules.revoke_token, name)

    def record_inspection(self, request: ChargeRequest) -> None:
        """Record that the controller looked behind a question; nothing is charged."""
        self._transactions.append(rules.inspect, request)

    # What a question does.

    def price(self, request: ChargeRequest) -> Price:
        """Say whom the request would charge, without charging."""
        with self._transactions.reading(*rules.find_places(request)) as store:
            return rules.quote(store, request)

    def reserve(self, request: ChargeRequest, *, idempotency_key: str | None = None) -> Reservation | StoredAnswer:
        """Charge the request, durably, and allow the data to be read; or give the answer that is stored.

        An analyst who has not paid for an answer that is stored or being computed is charged on their cap only.
        BudgetExceeded, and no charge, if a budget does not allow it. KeyReused, and no charge, if the caller used the
        idempotency key in the last 30 days for another question.
        """
        check_idempotency_key(idempotency_key)
        if not self.expects_charge(request) and (settled := self.find_settled(request, idempotency_key)) is not None:
            return settled

        def charge(writer: Writer) -> Reservation | StoredAnswer:
            repeated = was_used(writer.connection, request, idempotency_key)
            fact = rules.reserve(writer.store, request)
            writer.append(fact)
            # Only keys of charged requests: a caller who repeats a question, free, could fill the table with new keys.
            if idempotency_key is not None and fact is not None and not repeated:
                remember_key(writer.connection, request, idempotency_key, self._clock())
            question = rules.get_question(writer.store, request.key)
            if question.released is not None:
                return self._read_answer(writer, question)
            return Reservation(request, request.key, question.reserved, joined=not isinstance(fact, Reserved))

        return self._transactions.write(charge, *rules.find_places(request))

    def expects_charge(self, request: ChargeRequest) -> bool:
        """Guess whether a request will be charged; this reads nothing."""
        return rules.expects_charge(self._transactions.remembered, request)

    def find_settled(self, request: ChargeRequest, idempotency_key: str | None = None) -> StoredAnswer | None:
        """The answer that is stored and that the caller has paid for, if there is one; it takes no writers' lock."""
        with self._transactions.reading(*rules.find_places(request)) as store:
            was_used(store.connection, request, idempotency_key)
            if rules.reserve(store, request) is not None:
                return None
            question = store.get(QuestionRow, request.key)
            if question is None or question.released is None:
                return None
            stored = read_answers(store.connection, self._key, [question])[0]
            return replace(stored, balance=rules.find_balance(store, request))

    def release(self, reservation: Reservation, table: ReleasedTable) -> StoredAnswer:
        """Store the table, durably, and give what may be sent: the first one released for the charge."""
        if not isinstance(table, ReleasedTable):
            raise InvalidInput(f"a question is answered with a ReleasedTable, not with {type(table).__name__}")
        text, request = table.to_text(), reservation.request

        def record(writer: Writer) -> StoredAnswer:
            entry = writer.append(rules.release(writer.store, reservation, text))
            if entry is not None and request.key == reservation.key:
                # The key is a digest of the request: this is what was charged.
                cost, balance = rules.get_cost(writer.store, request), rules.find_balance(writer.store, request)
                return StoredAnswer.of(reservation, cost, table, text, entry, balance)
            return self._read_answer(writer, rules.get_question(writer.store, reservation.key))

        return self._transactions.write(record, *rules.find_places(request))

    def fail(self, reservation: Reservation, detail: str) -> None:
        """Record why an answer could not be computed; the charge stays and can still be completed once.

        Of one question the first failures are recorded; the others add nothing.
        """
        if not isinstance(detail, str):
            raise InvalidInput(f"a failure's detail is text, not {type(detail).__name__}")

        def record(writer: Writer) -> None:
            writer.flush()  # another thread may record one in this transaction
            recorded = len(writer.store.list_all(FailureRow, key=reservation.key))
            writer.append(rules.fail(writer.store, reservation, detail, recorded))

        self._transactions.write(record)

    def authenticate(self, secret: str) -> Identity:
        """Say who holds the token; every token that is not valid is refused with the same message."""
        with self._transactions.reading(locate(secret)) as store:
            return add_grants(store, authenticate(store, secret, self._clock()))

    def identify(self, token: str) -> Identity:
        """Say who holds the token of this public name, for a caller who has shown the token itself before."""
        with self._transactions.reading((TokenRow, (token,))) as store:
            return add_grants(store, identify_token(store, token, self._clock()))

    # What was recorded.

    def balance(self, dataset: str, analyst: str | None = None) -> Balance:
        """Say what a data set has spent over all analysts, or one analyst on it."""
        with self._transactions.reading(*rules.find_places_of_balance(dataset, analyst)) as store:
            return rules.get_balance(store, dataset, analyst)

    def datasets(self, *, retired: bool = False) -> list[Declaration]:
        """List the data sets that are not retired, or all of them, with their recorded budgets."""
        return [
            Declaration(row.dataset, row.version, row.epsilon, row.delta, row.min_epsilon, row.accounting, row.promise)
            for row in self._rows(DatasetRow)
            if retired or row.retired is None
        ]

    def analysts(self) -> list[str]:
        """List the analysts."""
        return [row.analyst for row in self._rows(AnalystRow)]

    def grants(self, analyst: str | None = None) -> list[Balance]:
        """List every analyst's balance, or one analyst's, on every data set they may ask about."""
        with self._transactions.reading() as store:
            granted = [row for row in store.list_all(GrantRow, analyst=analyst) if row.withdrawn is None]
            datasets = {row.dataset: row.balance for row in store.list_all(DatasetRow)}
        return [row.find_balance(datasets[row.dataset]) for row in granted]

    def retired(self, dataset: str) -> bool:
        """Whether a data set is on record and answers nothing more."""
        with self._transactions.reading() as store:
            row = store.get(DatasetRow, check_name("data set", dataset))
        return row is not None and row.retired is not None

    def tokens(self) -> list[TokenRow]:
        """List the tokens by name; the tokens themselves are not kept."""
        return self._rows(TokenRow)

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
        with self._transactions.reading() as store:
            return list_answers(
                store, self._key, dataset, analyst, after=after, before=before, limit=limit, newest_first=newest_first
            )

    def entries(self, *, after: int = 0, limit: int | None = 100, kinds: tuple[str, ...] = ()) -> list[Entry]:
        """List entries of the chain in their order, a page at a time."""
        check_kinds(kinds)
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
        with self._database.reading() as connection:
            return find_entries(
                connection, text=text, kinds=kinds, dataset=dataset, analyst=analyst, before=before, limit=limit
            )

    def spending(self, dataset: str) -> Spending:
        """Say what was charged to a data set over time and who asked; signatures are checked by `verify`, not here."""
        return self._spending.read(check_name("data set", dataset))

    # What the ledger does for itself and for the server.

    def head(self) -> Anchor:
        """Give the end of the chain: kept elsewhere, it lets `verify` find a chain that was cut off."""
        with self._transactions.reading() as store:
            store.proof.check_seal()
            return store.proof.head

    def verify(self, anchor: Anchor | None = None) -> Verification:
        """Check every entry's signature, the anchor if given, and the tables and their proof against the chain.

        The newest end that this process has seen is an anchor too.
        """
        known = self._transactions.known  # before the view is taken: another thread may learn of a newer end meanwhile
        with self.health.mark_verifying(), self._database.reading() as connection:
            verification = verify(connection, self._key, anchor, known)
        self.health.note(verification)
        return verification

    def check(self) -> None:
        """Refuse a ledger that cannot be written, or with any fault that can be found without reading the whole chain.

        It checks the end of the chain, that this follows from the last one seen, the proof, and every permission.
        """
        self.health.check(self._database, self._transactions.reading)

    def check_promises(self, promises: Mapping[str, Promise]) -> None:
        """Refuse if a data set was declared with another promise than the one that it was opened with."""
        with self._transactions.reading() as store:
            for dataset, promise in promises.items():
                rules.require_promise(store, dataset, promise)

    def rebuild(self, anchor: Anchor | None = None) -> None:
        """Make the tables and their proof anew from the chain, which must be good; the chain is not touched.

        It needs an anchor where the proof is not the one of this end of the chain: entries may have been cut off.
        """
        with self._transactions.writing() as writer:
            rebuild(writer, self._key, anchor)
        self.health.trouble = None

    def backup(self, path: str | Path) -> Verification:
        """Copy an SQLite ledger into a new file while others write it, and say what the copy holds.

        The copy's `head` is its anchor. The key is not in it.
        """
        return back_up(self._database, self._key, Path(path))

    def derive(self, purpose: str) -> bytes:
        """Give a secret of 32 bytes for one purpose, always the same; it tells nothing about the ledger's key."""
        return derive(self._key, purpose)

    def _read_answer(self, writer: Writer, question: QuestionRow) -> StoredAnswer:
        writer.flush()  # it may be another thread's, in this transaction
        return read_answers(writer.connection, self._key, [question])[0]

    def _rows(self, row: type[SomeRow]) -> list[SomeRow]:
        with self._transactions.reading() as store:
            return store.list_all(row)

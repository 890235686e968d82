"""The state of the ledger: the derived rows, and how each fact changes them.

    state_0 = nothing,   state_n = apply(state_{n-1}, fact_n)

The chain is the truth. A row is derived from it and kept for speed: the same `apply` keeps the database's tables while
facts are appended and recomputes them in memory when the chain is verified.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Protocol, TypeVar

from idios.codec import canonical
from idios.ledger.facts import (
    AnalystAdded,
    Begun,
    ControllerTokenIssued,
    Declared,
    Fact,
    Failed,
    Forfeited,
    Granted,
    Inspected,
    Promise,
    Raised,
    Released,
    Reserved,
    Retired,
    Shared,
    TokenIssued,
    TokenRevoked,
    Withdrawn,
)
from idios.model import Account, Accounting, Balance, Cost, Role

ZERO = Fraction(0)


class DerivedRow:
    """A line of a derived table; `primary_key` names the fields that tell it from the others."""

    __slots__ = ()
    table: ClassVar[str]
    primary_key: ClassVar[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class DatasetRow(DerivedRow):
    """A data set, its budgets and what is spent of them over all analysts.

    `declared_epsilon` and `declared_delta` are what the configuration said when it was last accepted; a raise
    lifts the budgets above them until the configuration follows. `unit`, `neighbours` and `protection` are its
    `promise`; `tables` and `public` are lists as JSON. `charges` counts what was charged, free answers too, and
    `impure` those without an ε of their own; `granted` is 1 once any analyst was let in.
    """

    table: ClassVar[str] = "datasets"
    primary_key: ClassVar[tuple[str, ...]] = ("dataset",)
    dataset: str
    version: str
    min_epsilon: Fraction
    epsilon: Fraction
    delta: Fraction
    declared_epsilon: Fraction
    declared_delta: Fraction
    accounting: Accounting
    unit: str
    neighbours: str
    protection: str
    tables: str
    public: str
    epsilon_spent: Fraction = ZERO
    delta_spent: Fraction = ZERO
    rho_spent: Fraction = ZERO
    impure: int = 0
    charges: int = 0
    granted: int = 0
    retired: int | None = None

    @property
    def balance(self) -> Balance:
        """Its accounts, and what they promise."""
        spent = Cost(self.epsilon_spent, self.delta_spent, self.rho_spent, pure=not self.impure)
        budget = self.accounting, self.epsilon, self.delta
        return Balance.of_dataset(self.dataset, *budget, spent, str(self.promise))

    @property
    def promise(self) -> Promise:
        """What its answers promise; without `neighbours` the entries say nothing but the unit."""
        return Promise(self.neighbours, self.protection, self.unit)

    @property
    def declared(self) -> Declared:
        """The fact that declares it as it is on record."""
        return Declared(
            self.dataset,
            self.version,
            self.declared_epsilon,
            self.declared_delta,
            self.min_epsilon,
            self.accounting,
            self.unit,
            self.neighbours,
            self.protection,
            tuple(json.loads(self.tables)),
            tuple(json.loads(self.public)),
        )


@dataclass(frozen=True, slots=True)
class AnalystRow(DerivedRow):
    """An analyst who is known."""

    table: ClassVar[str] = "analysts"
    primary_key: ClassVar[tuple[str, ...]] = ("analyst",)
    analyst: str


@dataclass(frozen=True, slots=True)
class GrantRow(DerivedRow):
    """What an analyst may spend on a data set (None: no limit of their own), and has spent.

    A grant that was withdrawn is kept for what was spent under it, and allows nothing. `impure` is as of a data set.
    """

    table: ClassVar[str] = "grants"
    primary_key: ClassVar[tuple[str, ...]] = ("analyst", "dataset")
    analyst: str
    dataset: str
    epsilon: Fraction | None
    delta: Fraction | None
    epsilon_spent: Fraction = ZERO
    delta_spent: Fraction = ZERO
    rho_spent: Fraction = ZERO
    impure: int = 0
    withdrawn: int | None = None

    def find_balance(self, whole: Balance) -> Balance:
        """Its accounts, which share what is left of the data set's."""
        own = Balance(
            self.dataset,
            self.analyst,
            Account(self.epsilon, self.epsilon_spent),
            Account(self.delta, self.delta_spent),
            Account(None, self.rho_spent),
            pure=not self.impure,
        )
        return own.within(whole)


@dataclass(frozen=True, slots=True)
class TokenRow(DerivedRow):
    """A token by its public name; `digest` is the SHA-256 of the secret, which only its holder has.

    `issued` is the signed entry that says all this: a row alone makes no one a controller.
    """

    table: ClassVar[str] = "tokens"
    primary_key: ClassVar[tuple[str, ...]] = ("token",)
    token: str
    digest: str
    holder: str
    role: Role
    expires: str
    issued: int
    revoked: int | None = None


@dataclass(frozen=True, slots=True)
class QuestionRow(DerivedRow):
    """A charged question: what it cost, and the entries that reserved it and, once there is an answer, released it.

    `impure` is 1 where the answer has no ε of its own. The rest of the cost is in the key.
    """

    table: ClassVar[str] = "questions"
    primary_key: ClassVar[tuple[str, ...]] = ("key",)
    key: str
    dataset: str
    rho: Fraction
    impure: int
    reserved: int
    released: int | None = None


@dataclass(frozen=True, slots=True)
class FailureRow(DerivedRow):
    """A failed attempt at a charged question: the entry that records it."""

    table: ClassVar[str] = "failures"
    primary_key: ClassVar[tuple[str, ...]] = ("key", "failed")
    key: str
    failed: int


@dataclass(frozen=True, slots=True)
class PaymentRow(DerivedRow):
    """An analyst paid for a question and may see its answer as often as they like."""

    table: ClassVar[str] = "payments"
    primary_key: ClassVar[tuple[str, ...]] = ("key", "analyst")
    key: str
    analyst: str


ROWS: tuple[type[DerivedRow], ...] = (
    DatasetRow,
    AnalystRow,
    GrantRow,
    TokenRow,
    QuestionRow,
    PaymentRow,
    FailureRow,
)

Payer = TypeVar("Payer", DatasetRow, GrantRow)
SomeRow = TypeVar("SomeRow", bound=DerivedRow)
PrimaryKey = tuple[str | int, ...]
Place = tuple[type[DerivedRow], PrimaryKey]
"""Where a row stands, if there is one."""


class RowStore(Protocol):
    """Where rows are kept: in memory or in a database."""

    def get(self, row: type[SomeRow], *key: str) -> SomeRow | None:
        """Return the row with this primary key, if there is one."""

    def list_all(self, row: type[SomeRow]) -> list[SomeRow]:
        """Return all rows, none missing."""

    def add(self, row: DerivedRow) -> None:
        """Keep a row that was not there."""

    def update(self, row: DerivedRow) -> None:
        """Keep a row in place of the one with its primary key."""


class ContradictoryFact(ValueError):
    """A fact that cannot follow the facts before it."""


class MemoryRowStore:
    """Rows in memory, by type and primary key."""

    def __init__(self) -> None:
        self.rows: dict[type[DerivedRow], dict[PrimaryKey, DerivedRow]] = {row: {} for row in ROWS}

    def get(self, row: type[SomeRow], *key: str) -> SomeRow | None:
        """Return the row with this primary key, if there is one."""
        known = self.rows[row].get(key)
        return known if isinstance(known, row) else None

    def list_all(self, row: type[SomeRow]) -> list[SomeRow]:
        """Return all rows, none missing."""
        return [known for known in self.rows[row].values() if isinstance(known, row)]

    def add(self, row: DerivedRow) -> None:
        """Keep a row that was not there."""
        key = get_primary_key(row)
        if key in self.rows[type(row)]:
            raise ContradictoryFact("it records a second time what can happen once")
        self.rows[type(row)][key] = row

    def update(self, row: DerivedRow) -> None:
        """Keep a row in place of the one with its primary key."""
        self.rows[type(row)][get_primary_key(row)] = row


def get_primary_key(row: DerivedRow) -> PrimaryKey:
    """Return the values that tell the row from the others of its table."""
    return tuple(getattr(row, name) for name in row.primary_key)


def apply(store: RowStore, sequence: int, fact: Fact) -> None:
    """Bring the store up to the fact that the entry with this number records."""
    match fact:
        case Declared():
            _declare(store, fact)
        case Raised():
            dataset = _expect(store, DatasetRow, fact.dataset)
            store.update(replace(dataset, epsilon=fact.epsilon, delta=fact.delta))
        case Forfeited():
            _spend(store, fact.dataset, fact.cost)
        case Retired():
            store.update(replace(_expect(store, DatasetRow, fact.dataset), retired=sequence))
        case AnalystAdded():
            store.add(AnalystRow(fact.analyst))
        case Granted():
            store.update(replace(_expect(store, DatasetRow, fact.dataset), granted=1))
            grant = store.get(GrantRow, fact.analyst, fact.dataset)
            if grant is None:
                store.add(GrantRow(fact.analyst, fact.dataset, fact.epsilon, fact.delta))
            else:
                store.update(replace(grant, epsilon=fact.epsilon, delta=fact.delta, withdrawn=None))
        case Withdrawn():
            store.update(replace(_expect(store, GrantRow, fact.analyst, fact.dataset), withdrawn=sequence))
        case TokenIssued():
            store.add(TokenRow(fact.token, fact.digest, fact.analyst, Role.ANALYST, fact.expires, sequence))
        case ControllerTokenIssued():
            store.add(TokenRow(fact.token, fact.digest, fact.controller, Role.CONTROLLER, fact.expires, sequence))
        case TokenRevoked():
            store.update(replace(_expect(store, TokenRow, fact.token), revoked=sequence))
        case Reserved():
            cost = fact.cost
            _spend(store, fact.dataset, cost)
            store.add(QuestionRow(fact.key, fact.dataset, cost.rho, int(not cost.pure), sequence))
            if fact.analyst is not None:
                _pay(store, fact.key, fact.analyst, fact.dataset, cost)
        case Shared():
            _pay(store, fact.key, fact.analyst, fact.dataset, fact.cost)
        case Released():
            question = _expect(store, QuestionRow, fact.key)
            if question.released is not None:
                raise ContradictoryFact("it releases a second answer to one charge")
            store.update(replace(question, released=sequence))
        case Failed():
            _expect(store, QuestionRow, fact.key)
            store.add(FailureRow(fact.key, sequence))
        case Begun() | Inspected():
            pass  # they charge nothing and answer nothing
        case _:
            raise ContradictoryFact(f"no rule says what {fact.kind!r} does")


def _declare(store: RowStore, fact: Declared) -> None:
    known = store.get(DatasetRow, fact.dataset)
    epsilon, delta = fact.epsilon, fact.delta
    tables, public = canonical(fact.tables), canonical(fact.public)
    if known is None:
        budgets = (epsilon, delta, epsilon, delta)
        promise = (fact.unit, fact.neighbours, fact.protection)
        row = DatasetRow(
            fact.dataset, fact.version, fact.min_epsilon, *budgets, fact.accounting, *promise, tables, public
        )
        store.add(row)
        return
    store.update(
        replace(
            known,
            version=fact.version,
            min_epsilon=fact.min_epsilon,
            declared_epsilon=epsilon,
            declared_delta=delta,
            accounting=fact.accounting,
            unit=fact.unit,
            neighbours=fact.neighbours,
            protection=fact.protection,
            tables=tables,
            public=public,
        )
    )


def _spend(store: RowStore, dataset: str, cost: Cost) -> None:
    row = _add_cost(_expect(store, DatasetRow, dataset), cost)
    store.update(replace(row, charges=row.charges + 1))


def _pay(store: RowStore, key: str, analyst: str, dataset: str, cost: Cost) -> None:
    store.update(_add_cost(_expect(store, GrantRow, analyst, dataset), cost))
    store.add(PaymentRow(key, analyst))


def _add_cost(row: Payer, cost: Cost) -> Payer:
    return replace(
        row,
        epsilon_spent=row.epsilon_spent + cost.epsilon,
        delta_spent=row.delta_spent + cost.delta,
        rho_spent=row.rho_spent + cost.rho,
        impure=row.impure + (not cost.pure),
    )


def _expect(store: RowStore, row: type[SomeRow], *key: str) -> SomeRow:
    known = store.get(row, *key)
    if known is None:
        raise ContradictoryFact(f"it is about one of the {row.table} that no entry before it mentions")
    return known

"""The state of the ledger: the derived rows, and how each fact changes them.

    state_0 = nothing,   state_n = apply(state_{n-1}, fact_n)

The chain is the truth. A row is derived from it and kept for speed: the same `apply` keeps the database's tables while
facts are appended and recomputes them in memory when the chain is verified.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Protocol, TypeVar

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
    Raised,
    Released,
    Reserved,
    Retired,
    Shared,
    TokenIssued,
    TokenRevoked,
    Withdrawn,
)
from idios.model import Account, Balance, Role

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
    lifts the budgets above them until the configuration follows.
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
    epsilon_spent: Fraction = ZERO
    delta_spent: Fraction = ZERO
    retired: int | None = None

    @property
    def balance(self) -> Balance:
        """Its accounts."""
        return Balance(
            self.dataset,
            None,
            Account(self.epsilon, self.epsilon_spent),
            Account(self.delta, self.delta_spent),
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

    A grant that was withdrawn is kept for what was spent under it, and allows nothing.
    """

    table: ClassVar[str] = "grants"
    primary_key: ClassVar[tuple[str, ...]] = ("analyst", "dataset")
    analyst: str
    dataset: str
    epsilon: Fraction | None
    delta: Fraction | None
    epsilon_spent: Fraction = ZERO
    delta_spent: Fraction = ZERO
    withdrawn: int | None = None

    @property
    def balance(self) -> Balance:
        """Its accounts."""
        epsilon, delta = Account(self.epsilon, self.epsilon_spent), Account(self.delta, self.delta_spent)
        return Balance(self.dataset, self.analyst, epsilon, delta)


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
    """A charged question: the entries that reserved it and, once there is an answer, released it."""

    table: ClassVar[str] = "questions"
    primary_key: ClassVar[tuple[str, ...]] = ("key",)
    key: str
    dataset: str
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

SomeRow = TypeVar("SomeRow", bound=DerivedRow)
PrimaryKey = tuple[str | int, ...]


class RowStore(Protocol):
    """Where rows are kept: in memory or in a database."""

    def get(self, row: type[SomeRow], *key: str) -> SomeRow | None:
        """Return the row with this primary key, if there is one."""

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
            _spend(store, fact)
        case Retired():
            store.update(replace(_expect(store, DatasetRow, fact.dataset), retired=sequence))
        case AnalystAdded():
            store.add(AnalystRow(fact.analyst))
        case Granted():
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
            _spend(store, fact)
            store.add(QuestionRow(fact.key, fact.dataset, sequence))
            if fact.analyst is not None:
                _pay(store, fact.key, fact.analyst, fact.dataset, fact.epsilon, fact.delta)
        case Shared():
            _pay(store, fact.key, fact.analyst, fact.dataset, fact.epsilon, fact.delta)
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
    if known is None:
        store.add(DatasetRow(fact.dataset, fact.version, fact.min_epsilon, epsilon, delta, epsilon, delta))
        return
    store.update(
        replace(
            known,
            version=fact.version,
            min_epsilon=fact.min_epsilon,
            declared_epsilon=epsilon,
            declared_delta=delta,
        )
    )


def _spend(store: RowStore, fact: Reserved | Forfeited) -> None:
    dataset = _expect(store, DatasetRow, fact.dataset)
    epsilon, delta = dataset.epsilon_spent + fact.epsilon, dataset.delta_spent + fact.delta
    store.update(replace(dataset, epsilon_spent=epsilon, delta_spent=delta))


def _pay(store: RowStore, key: str, analyst: str, dataset: str, epsilon: Fraction, delta: Fraction) -> None:
    grant = _expect(store, GrantRow, analyst, dataset)
    store.update(replace(grant, epsilon_spent=grant.epsilon_spent + epsilon, delta_spent=grant.delta_spent + delta))
    store.add(PaymentRow(key, analyst))


def _expect(store: RowStore, row: type[SomeRow], *key: str) -> SomeRow:
    known = store.get(row, *key)
    if known is None:
        raise ContradictoryFact(f"it is about one of the {row.table} that no entry before it mentions")
    return known

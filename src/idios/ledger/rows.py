"""The derived tables' rows, and the book that keeps them.

The chain is the truth; a row is derived from it (state.py) and kept for speed.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Protocol, TypeVar

from idios.ledger.identity import Role
from idios.model import Account, Balance

ZERO = Fraction(0)


class Row:
    """A line of a derived table; `identity` names the fields that tell it from the others."""

    __slots__ = ()
    table: ClassVar[str]
    identity: ClassVar[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Dataset(Row):
    """A data set, its budgets and what is spent of them over all analysts.

    `declared_epsilon` and `declared_delta` are what the configuration said when it was last accepted; a raise
    lifts the budgets above them until the configuration follows.
    """

    table: ClassVar[str] = "datasets"
    identity: ClassVar[tuple[str, ...]] = ("dataset",)
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
class Analyst(Row):
    """An analyst who is known."""

    table: ClassVar[str] = "analysts"
    identity: ClassVar[tuple[str, ...]] = ("analyst",)
    analyst: str


@dataclass(frozen=True, slots=True)
class Grant(Row):
    """What an analyst may spend on a data set (None: no limit of their own), and has spent.

    A grant that was withdrawn is kept for what was spent under it, and allows nothing.
    """

    table: ClassVar[str] = "grants"
    identity: ClassVar[tuple[str, ...]] = ("analyst", "dataset")
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
class Token(Row):
    """A token by its public name; `digest` is the SHA-256 of the secret, which only its holder has.

    `issued` is the signed entry that says all this: a row alone makes no one a controller.
    """

    table: ClassVar[str] = "tokens"
    identity: ClassVar[tuple[str, ...]] = ("token",)
    token: str
    digest: str
    holder: str
    role: Role
    expires: str
    issued: int
    revoked: int | None = None


@dataclass(frozen=True, slots=True)
class Question(Row):
    """A charged question: the entries that reserved it and, once there is an answer, released it."""

    table: ClassVar[str] = "questions"
    identity: ClassVar[tuple[str, ...]] = ("key",)
    key: str
    dataset: str
    reserved: int
    released: int | None = None


@dataclass(frozen=True, slots=True)
class Payment(Row):
    """An analyst paid for a question and may see its answer as often as they like."""

    table: ClassVar[str] = "payments"
    identity: ClassVar[tuple[str, ...]] = ("key", "analyst")
    key: str
    analyst: str


ROWS: tuple[type[Row], ...] = (Dataset, Analyst, Grant, Token, Question, Payment)

SomeRow = TypeVar("SomeRow", bound=Row)


class Book(Protocol):
    """Where rows are kept: in memory or in a database."""

    def find(self, row: type[SomeRow], *identity: str) -> SomeRow | None:
        """The row with this identity, if there is one."""

    def add(self, row: Row) -> None:
        """Keep a row that was not there."""

    def change(self, row: Row) -> None:
        """Keep a row in place of the one with its identity."""


class Contradiction(ValueError):
    """A fact that cannot follow the facts before it."""


class MemoryBook:
    """Rows in memory, by type and identity."""

    def __init__(self) -> None:
        self.rows: dict[type[Row], dict[tuple[str, ...], Row]] = {row: {} for row in ROWS}

    def find(self, row: type[SomeRow], *identity: str) -> SomeRow | None:
        """The row with this identity, if there is one."""
        found = self.rows[row].get(identity)
        return found if isinstance(found, row) else None

    def add(self, row: Row) -> None:
        """Keep a row that was not there."""
        identity = identity_of(row)
        if identity in self.rows[type(row)]:
            raise Contradiction("it records a second time what can happen once")
        self.rows[type(row)][identity] = row

    def change(self, row: Row) -> None:
        """Keep a row in place of the one with its identity."""
        self.rows[type(row)][identity_of(row)] = row


def identity_of(row: Row) -> tuple[str, ...]:
    """The values that tell the row from the others of its table."""
    return tuple(getattr(row, name) for name in row.identity)

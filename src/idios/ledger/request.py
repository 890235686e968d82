"""What is asked of the ledger and what it gives back: declaration, request, reservation, stored answer."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

from idios.codec import canonical
from idios.errors import InvalidInput
from idios.ledger.chain import Entry
from idios.ledger.facts import UNSAID, Promise
from idios.ledger.values import check_amount, check_name, encode_amount, make_cost, omit_rho
from idios.model import Accounting, Balance, Cost, ReleasedAnswer, ReleasedTable


@dataclass(frozen=True, slots=True)
class Declaration:
    """A data set as its controller declares it; the budgets are for all analysts and versions together.

    With `accounting` "concentrated" the budget is (ε, δ), and ρ is added up: see model/balance.py. `promise` is what
    one ε promises, and to whom. `tables` are the other data sets that hold rows of the same people, and `public` those
    that are joined as public.
    """

    dataset: str
    version: str
    epsilon: Fraction
    delta: Fraction = Fraction(0)
    min_epsilon: Fraction = Fraction(0)
    accounting: str = "pure"
    promise: Promise = UNSAID
    tables: tuple[str, ...] = ()
    public: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_name("data set", self.dataset)
        check_name("version", self.version)
        for table in (*self.tables, *self.public):
            check_name("data set", table)
        for name in ("epsilon", "delta", "min_epsilon"):
            object.__setattr__(self, name, check_amount(name, getattr(self, name)))
        if self.accounting not in list(Accounting):
            raise InvalidInput(f"accounting is one of {', '.join(Accounting)}, not {str(self.accounting)[:60]!r}")
        if self.accounting == Accounting.CONCENTRATED and not 0 < self.delta < 1:
            raise InvalidInput(f"concentrated accounting needs a δ between 0 and 1, not {self.delta}")


@dataclass(frozen=True, slots=True)
class ChargeRequest:
    """One question in normal form, its cost, and who asks; the controller is `analyst=None`.

    `rho` None is ε²/2. Without `pure` the answer has no ε of its own: `epsilon` is what was asked with. `promise` is
    what the answer will promise: it is charged only where that is what the ledger has on record.

    >>> ChargeRequest("people", "2026-11", "ada", "median(income)", Fraction(1, 2)).key[:8]
    '40290d30'
    """

    dataset: str
    version: str
    analyst: str | None
    question: str
    epsilon: Fraction
    delta: Fraction = Fraction(0)
    rho: Fraction | None = None
    pure: bool = True
    promise: Promise = UNSAID
    cost: Cost = field(init=False, repr=False, compare=False)
    """What the answer costs."""
    key: str = field(init=False, repr=False, compare=False)
    """The digest of what makes two requests one question: data set, version, normal form, ε, δ; not who asks."""

    def __post_init__(self) -> None:
        check_name("data set", self.dataset)
        check_name("version", self.version)
        if self.analyst is not None:
            check_name("analyst", self.analyst)
        if not isinstance(self.question, str) or not self.question:
            raise InvalidInput("a request needs the question's normal form as text")
        for name in ("epsilon", "delta"):
            object.__setattr__(self, name, check_amount(name, getattr(self, name)))
        if not isinstance(self.pure, bool):
            raise InvalidInput(f"pure is True or False, not {self.pure!r}")
        object.__setattr__(self, "cost", make_cost(self.epsilon, self.delta, self.rho, self.pure))
        object.__setattr__(self, "rho", omit_rho(self.cost))
        facts = [self.dataset, self.version, self.question, encode_amount(self.epsilon), encode_amount(self.delta)]
        object.__setattr__(self, "key", hashlib.sha256(canonical(facts).encode("ascii")).hexdigest())


@dataclass(frozen=True, slots=True)
class Reservation:
    """A charge that is durably recorded and not answered yet: the data may be read now.

    `joined`: the data set was charged earlier, by a request whose answer was lost or is being computed.
    """

    request: ChargeRequest
    key: str
    sequence: int
    joined: bool


@dataclass(frozen=True)
class StoredAnswer:
    """The one answer ever sent for a charge; ``text`` is its table byte for byte as it was released."""

    key: str
    dataset: str
    version: str
    question: str
    cost: Cost
    text: str
    sequence: int
    time: str
    balance: Balance | None = field(default=None, compare=False)
    """What was left for the caller when it was released or found, if that was just now."""
    written: ReleasedTable | None = field(default=None, repr=False, compare=False)
    """The table that ``text`` was written from, if that was just now."""

    @classmethod
    def of(
        cls,
        reservation: Reservation,
        cost: Cost,
        table: ReleasedTable,
        text: str,
        entry: Entry,
        balance: Balance | None,
    ) -> StoredAnswer:
        """Make the answer to what was reserved at this cost and released by this entry."""
        request = reservation.request
        return cls(
            key=reservation.key,
            dataset=request.dataset,
            version=request.version,
            question=request.question,
            cost=cost,
            text=text,
            sequence=entry.sequence,
            time=entry.time,
            balance=balance,
            written=table,
        )

    @property
    def epsilon(self) -> Fraction:
        """The ε that was charged, or only asked with if the answer is not `pure`."""
        return self.cost.epsilon

    @property
    def delta(self) -> Fraction:
        """The δ that was charged."""
        return self.cost.delta

    @property
    def rho(self) -> Fraction:
        """The ρ that was charged."""
        return self.cost.rho

    @property
    def pure(self) -> bool:
        """Whether the answer has an ε of its own."""
        return self.cost.pure

    @property
    def id(self) -> str:
        """The id of the answer."""
        return self.key[:16]

    @cached_property
    def table(self) -> ReleasedTable:
        """What was released, read when it is needed: a long table takes time to read."""
        return self.written or ReleasedTable.from_text(self.text).drop_collapsed()

    @property
    def released(self) -> ReleasedAnswer:
        """The table with its place in the ledger and what it cost, as it is listed."""
        facts = {name: getattr(self, name) for name in ("sequence", "id", "time", "epsilon", "delta", "rho")}
        return ReleasedAnswer(**vars(self.table), **facts)


@dataclass(frozen=True, slots=True)
class Price:
    """What a request would cost now: whether its answer is stored, whom it would charge, and what is too little."""

    stored: bool
    charges_dataset: bool
    charges_analyst: bool
    shortage: str | None = None

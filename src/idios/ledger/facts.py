"""The kinds of fact the ledger records. Their names and fields are a promise: old chains are read for ever.

Rules:

1. A fact says what happened, completely: the state of the ledger is a function of its facts (state.py).
2. No fact holds a value of the data. An answer is what the analyst was sent; a failure's detail is for the
   controller.
3. A token is recorded by its SHA-256 alone.
4. A field that came later is optional: it is left out while it has its default, which is what older entries mean.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, NamedTuple

from idios.codec import canonical, json_field
from idios.ledger.values import RECORDS, make_cost
from idios.model import Accounting, Cost


class Fact:
    """Anything that happened; `kind` is its name in the chain."""

    __slots__ = ()
    kind: ClassVar[str]

    @property
    def payload(self) -> str:
        """The fact as canonical JSON, which is what is signed and stored.

        >>> Retired("people").payload
        '{"dataset":"people"}'
        """
        return canonical(RECORDS.to_json(self))


class Promise(NamedTuple):
    """What the ε of a data set's answers promise, and to whom, as its controller declares it.

    ``neighbours`` is the notion of neighbouring data sets, ``protection`` the level with the multiples of ε for groups.
    ``unit`` says what tells people apart who may have several rows, in every table with rows of theirs; without one,
    each record is a person. The ε of answers with different promises add up to nothing: with another notion one change
    can cost twice as much or anything at all.
    """

    neighbours: str = ""
    protection: str = ""
    unit: str = ""

    def __str__(self) -> str:
        """The promise in a few words, without links.

        >>> str(Promise("replace", "differential")), str(Promise("add-remove", "group of 5, flat", "customer"))
        ('differential, replace', 'group of 5, flat, add-remove, by customer')
        """
        people = self.unit.partition(" with ")[0]
        return ", ".join(filter(None, (self.protection, self.neighbours, people and f"by {people}")))


UNSAID = Promise()
"""Of entries of before, which say nothing of notion and level."""


@dataclass(frozen=True, slots=True)
class Begun(Fact):
    """The controller began this chain on purpose, where another may have been lost, and says why."""

    kind: ClassVar[str] = "begun"
    reason: str


@dataclass(frozen=True, slots=True)
class Declared(Fact):
    """A data set was declared, anew or otherwise than before; the first declaration sets the budgets.

    The accounting in force is the one that was declared last. ``neighbours``, ``protection`` and ``unit`` are what is
    promised (``Promise``); an entry without the first two says nothing about them. ``tables`` are the data sets with
    more rows of its people, and ``public`` those that were joined to it as public since the first charge.
    """

    kind: ClassVar[str] = "declared"
    dataset: str
    version: str
    epsilon: Fraction
    delta: Fraction
    min_epsilon: Fraction
    accounting: Accounting = json_field(optional=True, default=Accounting.PURE)
    unit: str = json_field(optional=True, default="")
    neighbours: str = json_field(optional=True, default="")
    protection: str = json_field(optional=True, default="")
    tables: tuple[str, ...] = json_field(optional=True, default=())
    public: tuple[str, ...] = json_field(optional=True, default=())


@dataclass(frozen=True, slots=True)
class Raised(Fact):
    """The controller raised a data set's budgets to these totals."""

    kind: ClassVar[str] = "raised"
    dataset: str
    epsilon: Fraction
    delta: Fraction


@dataclass(frozen=True, slots=True)
class Forfeited(Fact):
    """The controller counts amounts as spent that no entry accounts for, and says why.

    A ρ of its own may be that of Gaussian noise: whether it was is not known, so it has no pure ε.
    """

    kind: ClassVar[str] = "forfeited"
    dataset: str
    epsilon: Fraction
    delta: Fraction
    reason: str
    rho: Fraction | None = json_field(optional=True, default=None)

    @property
    def cost(self) -> Cost:
        """What counts as spent."""
        return make_cost(self.epsilon, self.delta, self.rho, pure=self.rho is None)


@dataclass(frozen=True, slots=True)
class Retired(Fact):
    """Nothing about the data set is answered from here on."""

    kind: ClassVar[str] = "retired"
    dataset: str


@dataclass(frozen=True, slots=True)
class AnalystAdded(Fact):
    """An analyst became known; without a grant, nothing more."""

    kind: ClassVar[str] = "analyst-added"
    analyst: str


@dataclass(frozen=True, slots=True)
class Granted(Fact):
    """The analyst may ask about the data set, up to these totals of their own (None: the data set's budget)."""

    kind: ClassVar[str] = "granted"
    analyst: str
    dataset: str
    epsilon: Fraction | None
    delta: Fraction | None


@dataclass(frozen=True, slots=True)
class Withdrawn(Fact):
    """The analyst may no longer ask about the data set; what they have spent stays spent."""

    kind: ClassVar[str] = "withdrawn"
    analyst: str
    dataset: str


@dataclass(frozen=True, slots=True)
class TokenIssued(Fact):
    """The analyst got a token; `token` is its public name, `digest` its SHA-256."""

    kind: ClassVar[str] = "token-issued"
    token: str
    digest: str
    analyst: str
    expires: str


@dataclass(frozen=True, slots=True)
class ControllerTokenIssued(Fact):
    """A controller got a token; a fact of its own, as the fields of an older one never change."""

    kind: ClassVar[str] = "controller-token-issued"
    token: str
    digest: str
    controller: str
    expires: str


@dataclass(frozen=True, slots=True)
class TokenRevoked(Fact):
    """The token of that name is no longer accepted."""

    kind: ClassVar[str] = "token-revoked"
    token: str


@dataclass(frozen=True, slots=True)
class Reserved(Fact):
    """The data set, and the analyst if there is one, were charged; the data may be read now.

    Without `pure` the answer has no ε of its own.
    """

    kind: ClassVar[str] = "reserved"
    key: str
    dataset: str
    version: str
    question: str
    epsilon: Fraction
    delta: Fraction
    analyst: str | None
    rho: Fraction | None = json_field(optional=True, default=None)
    pure: bool = json_field(optional=True, default=True)

    @property
    def cost(self) -> Cost:
        """What was charged."""
        return make_cost(self.epsilon, self.delta, self.rho, self.pure)


@dataclass(frozen=True, slots=True)
class Released(Fact):
    """The one answer to a charged question."""

    kind: ClassVar[str] = "released"
    key: str
    answer: str


@dataclass(frozen=True, slots=True)
class Shared(Fact):
    """Another analyst learns the answer to a charged question and pays for it out of their own cap."""

    kind: ClassVar[str] = "shared"
    key: str
    dataset: str
    analyst: str
    epsilon: Fraction
    delta: Fraction
    rho: Fraction | None = json_field(optional=True, default=None)
    pure: bool = json_field(optional=True, default=True)

    @property
    def cost(self) -> Cost:
        """What was charged."""
        return make_cost(self.epsilon, self.delta, self.rho, self.pure)


@dataclass(frozen=True, slots=True)
class Inspected(Fact):
    """The controller looked behind a question; nothing is charged."""

    kind: ClassVar[str] = "inspected"
    dataset: str
    version: str
    question: str
    epsilon: Fraction
    delta: Fraction


@dataclass(frozen=True, slots=True)
class Failed(Fact):
    """An answer could not be computed; the charge stays, and the question can still be completed once."""

    kind: ClassVar[str] = "failed"
    key: str
    analyst: str | None
    detail: str


KINDS: dict[str, type[Fact]] = {
    fact.kind: fact
    for fact in (
        Begun,
        Declared,
        Raised,
        Forfeited,
        Retired,
        AnalystAdded,
        Granted,
        Withdrawn,
        TokenIssued,
        ControllerTokenIssued,
        TokenRevoked,
        Reserved,
        Released,
        Shared,
        Inspected,
        Failed,
    )
}


def read_fact(kind: str, payload: str) -> Fact:
    """Read the fact behind its kind and payload; ValueError if they are none.

    >>> read_fact("retired", '{"dataset":"people"}')
    Retired(dataset='people')
    """
    if kind not in KINDS:
        raise ValueError(f"no kind of fact is called {kind!r}")
    plain = json.loads(payload)
    if not isinstance(plain, dict):
        raise ValueError("a payload is a JSON object")
    return RECORDS.from_json(KINDS[kind], plain, kind)

"""What is asked of the ledger and what it gives back: declaration, request, reservation, stored answer."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from fractions import Fraction

from idios.errors import InvalidInput
from idios.ledger.codec import canonical
from idios.ledger.values import check_amount, check_name, encode_amount


@dataclass(frozen=True, slots=True)
class Declaration:
    """A data set as its controller declares it; the budgets are for all analysts and versions together."""

    dataset: str
    version: str
    epsilon: Fraction
    delta: Fraction = Fraction(0)
    min_epsilon: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        check_name("data set", self.dataset)
        check_name("version", self.version)
        for name in ("epsilon", "delta", "min_epsilon"):
            object.__setattr__(self, name, check_amount(name, getattr(self, name)))


@dataclass(frozen=True, slots=True)
class ChargeRequest:
    """One question in normal form, its cost, and who asks; the controller is `analyst=None`.

    >>> ChargeRequest("people", "2026-11", "ada", "median(income)", Fraction(1, 2)).key[:8]
    '40290d30'
    """

    dataset: str
    version: str
    analyst: str | None
    question: str
    epsilon: Fraction
    delta: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        check_name("data set", self.dataset)
        check_name("version", self.version)
        if self.analyst is not None:
            check_name("analyst", self.analyst)
        if not isinstance(self.question, str) or not self.question:
            raise InvalidInput("a request needs the question's normal form as text")
        for name in ("epsilon", "delta"):
            object.__setattr__(self, name, check_amount(name, getattr(self, name)))

    @property
    def key(self) -> str:
        """The digest of what makes two requests one question: data set, version, normal form, ε, δ; not who asks."""
        facts = [self.dataset, self.version, self.question, encode_amount(self.epsilon), encode_amount(self.delta)]
        return hashlib.sha256(canonical(facts).encode("ascii")).hexdigest()


@dataclass(frozen=True, slots=True)
class Reservation:
    """A charge that is durably recorded and not answered yet: the data may be read now.

    `joined`: the data set was charged earlier, by a request whose answer was lost or is being computed.
    """

    request: ChargeRequest
    key: str
    sequence: int
    joined: bool


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """The one answer ever sent for a charge, byte for byte as it was released."""

    key: str
    dataset: str
    version: str
    question: str
    epsilon: Fraction
    delta: Fraction
    answer: str
    sequence: int
    time: str

    @classmethod
    def of(cls, reservation: Reservation, answer: str, sequence: int, time: str) -> StoredAnswer:
        """Make the answer to what was reserved, released by the entry of this number and time."""
        request = reservation.request
        return cls(
            key=reservation.key,
            dataset=request.dataset,
            version=request.version,
            question=request.question,
            epsilon=request.epsilon,
            delta=request.delta,
            answer=answer,
            sequence=sequence,
            time=time,
        )


@dataclass(frozen=True, slots=True)
class Price:
    """What a request would cost now: whether its answer is stored, whom it would charge, and what is too little."""

    stored: bool
    charges_dataset: bool
    charges_analyst: bool
    shortage: str | None = None

"""The state of the ledger: what its facts amount to.

    state_0 = nothing,   state_n = apply(state_{n-1}, fact_n)

The same `apply` keeps the database's tables while facts are appended and recomputes them in memory when the
chain is verified; the tables are there for speed.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

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
from idios.ledger.identity import Role
from idios.ledger.rows import Analyst, Book, Contradiction, Dataset, Grant, Payment, Question, SomeRow, Token


def apply(book: Book, sequence: int, fact: Fact) -> None:
    """Bring the book up to the fact that the entry with this number records."""
    match fact:
        case Declared():
            _declare(book, fact)
        case Raised():
            dataset = _expect(book, Dataset, fact.dataset)
            book.change(replace(dataset, epsilon=fact.epsilon, delta=fact.delta))
        case Forfeited():
            _spend(book, fact)
        case Retired():
            book.change(replace(_expect(book, Dataset, fact.dataset), retired=sequence))
        case AnalystAdded():
            book.add(Analyst(fact.analyst))
        case Granted():
            grant = book.find(Grant, fact.analyst, fact.dataset)
            if grant is None:
                book.add(Grant(fact.analyst, fact.dataset, fact.epsilon, fact.delta))
            else:
                book.change(replace(grant, epsilon=fact.epsilon, delta=fact.delta, withdrawn=None))
        case Withdrawn():
            book.change(replace(_expect(book, Grant, fact.analyst, fact.dataset), withdrawn=sequence))
        case TokenIssued():
            book.add(Token(fact.token, fact.digest, fact.analyst, Role.ANALYST, fact.expires, sequence))
        case ControllerTokenIssued():
            book.add(Token(fact.token, fact.digest, fact.controller, Role.CONTROLLER, fact.expires, sequence))
        case TokenRevoked():
            book.change(replace(_expect(book, Token, fact.token), revoked=sequence))
        case Reserved():
            _spend(book, fact)
            book.add(Question(fact.key, fact.dataset, sequence))
            if fact.analyst is not None:
                _pay(book, fact.key, fact.analyst, fact.dataset, fact.epsilon, fact.delta)
        case Shared():
            _pay(book, fact.key, fact.analyst, fact.dataset, fact.epsilon, fact.delta)
        case Released():
            question = _expect(book, Question, fact.key)
            if question.released is not None:
                raise Contradiction("it releases a second answer to one charge")
            book.change(replace(question, released=sequence))
        case Begun() | Inspected() | Failed():
            pass  # they charge nothing and answer nothing
        case _:
            raise Contradiction(f"no rule says what {fact.kind!r} does")


def _declare(book: Book, fact: Declared) -> None:
    known = book.find(Dataset, fact.dataset)
    epsilon, delta = fact.epsilon, fact.delta
    if known is None:
        book.add(Dataset(fact.dataset, fact.version, fact.min_epsilon, epsilon, delta, epsilon, delta))
        return
    book.change(
        replace(
            known,
            version=fact.version,
            min_epsilon=fact.min_epsilon,
            declared_epsilon=epsilon,
            declared_delta=delta,
        )
    )


def _spend(book: Book, fact: Reserved | Forfeited) -> None:
    dataset = _expect(book, Dataset, fact.dataset)
    epsilon, delta = dataset.epsilon_spent + fact.epsilon, dataset.delta_spent + fact.delta
    book.change(replace(dataset, epsilon_spent=epsilon, delta_spent=delta))


def _pay(book: Book, key: str, analyst: str, dataset: str, epsilon: Fraction, delta: Fraction) -> None:
    grant = _expect(book, Grant, analyst, dataset)
    book.change(replace(grant, epsilon_spent=grant.epsilon_spent + epsilon, delta_spent=grant.delta_spent + delta))
    book.add(Payment(key, analyst))


def _expect(book: Book, row: type[SomeRow], *identity: str) -> SomeRow:
    found = book.find(row, *identity)
    if found is None:
        raise Contradiction(f"it is about one of the {row.table} that no entry before it mentions")
    return found

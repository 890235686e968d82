"""What may be recorded: a rule reads the book and gives the fact to append, None for nothing new, or refuses.

Rules are pure. The ledger runs one and appends its fact in one transaction: what the rule saw is still true.
"""

from __future__ import annotations

from fractions import Fraction

from idios.display import format_amount
from idios.errors import InvalidInput, LedgerError, NotPermitted
from idios.ledger.facts import (
    AnalystAdded,
    ControllerTokenIssued,
    Declared,
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
from idios.ledger.request import Declaration, Price, Request, Reservation
from idios.ledger.rows import Analyst, Book, Dataset, Grant, Payment, Question, Token
from idios.model import Balance


def known_dataset(book: Book, name: str) -> Dataset:
    """The data set, retired or not."""
    found = book.find(Dataset, name)
    if found is None:
        raise NotPermitted(f"the ledger knows no data set {name!r}; declare it in the configuration first")
    return found


def live_dataset(book: Book, name: str) -> Dataset:
    """The data set, unless it is retired."""
    found = known_dataset(book, name)
    if found.retired is not None:
        raise NotPermitted(
            f"data set {name!r} is retired (entry {found.retired}) and answers nothing more; "
            "data that is to be asked about again is declared under another name"
        )
    return found


def known_analyst(book: Book, name: str) -> Analyst:
    """The analyst."""
    found = book.find(Analyst, name)
    if found is None:
        raise NotPermitted(f"the ledger knows no analyst {name!r}; add one with `idios analyst add`")
    return found


def known_grant(book: Book, analyst: str, dataset: str) -> Grant:
    """The analyst's grant on the data set, unless it was withdrawn."""
    found = _any_grant(book, analyst, dataset)
    if found.withdrawn is not None:
        raise NotPermitted(
            f"analyst {analyst!r} has no grant on data set {dataset!r} any more: it was withdrawn (entry "
            f"{found.withdrawn}); the controller gives a new one with `idios analyst grant`"
        )
    return found


def balance(book: Book, dataset: str, analyst: str | None) -> Balance:
    """The balance of a data set, or of an analyst on it, who shares what is left of the data set's."""
    whole = known_dataset(book, dataset).balance
    return whole if analyst is None else known_grant(book, analyst, dataset).balance.within(whole)


def _any_grant(book: Book, analyst: str, dataset: str) -> Grant:
    found = book.find(Grant, analyst, dataset)
    if found is None:
        known_analyst(book, analyst)
        raise NotPermitted(
            f"analyst {analyst!r} has no grant on data set {dataset!r}; "
            "the controller gives one with `idios analyst grant`"
        )
    return found


def declare(book: Book, declaration: Declaration) -> Declared | None:
    """A data set is declared: new, as recorded, or with another version; its budget cannot change here.

    After a raise the configuration may go on to say what it said before, until it is edited to the new total.
    """
    fact = Declared(
        declaration.dataset,
        declaration.version,
        declaration.epsilon,
        declaration.delta,
        declaration.min_epsilon,
    )
    if book.find(Dataset, declaration.dataset) is None:
        return fact
    known = live_dataset(book, declaration.dataset)
    recorded, before = (known.epsilon, known.delta), (known.declared_epsilon, known.declared_delta)
    if (declaration.epsilon, declaration.delta) not in (recorded, before):
        formerly = "" if before == recorded else f" (before it was raised: {_both(*before)})"
        raise LedgerError(
            f"data set {known.dataset!r} is declared with a budget of {_both(declaration.epsilon, declaration.delta)}, "
            f"but recorded with {_both(*recorded)}{formerly}; a recorded budget never shrinks and grows only on the "
            "record: put it back in the configuration, or use `idios ledger raise`"
        )
    last = Declared(known.dataset, known.version, *before, known.min_epsilon)
    return None if fact == last else fact


def _both(epsilon: Fraction, delta: Fraction) -> str:
    return f"ε = {format_amount(epsilon)}, δ = {format_amount(delta)}"


def raise_budget(book: Book, name: str, epsilon: Fraction | None, delta: Fraction | None) -> Raised:
    """A data set's budget is raised to new totals; None leaves one as it is."""
    known = live_dataset(book, name)
    fact = Raised(name, known.epsilon if epsilon is None else epsilon, known.delta if delta is None else delta)
    if fact.epsilon < known.epsilon or fact.delta < known.delta or fact == Raised(name, known.epsilon, known.delta):
        raise InvalidInput(
            f"raising data set {name!r} takes new totals above the recorded ε = {format_amount(known.epsilon)}, "
            f"δ = {format_amount(known.delta)}, not ε = {format_amount(fact.epsilon)}, δ = {format_amount(fact.delta)}"
        )
    return fact


def forfeit(book: Book, name: str, epsilon: Fraction, delta: Fraction, reason: str) -> Forfeited:
    """Amounts count as spent, also beyond the budget: what was learnt is learnt."""
    known_dataset(book, name)
    if not epsilon and not delta:
        raise InvalidInput(f"forfeiting of data set {name!r} takes an ε or a δ above 0")
    return Forfeited(name, epsilon, delta, reason)


def retire(book: Book, name: str) -> Retired | None:
    """A data set answers nothing more."""
    return Retired(name) if known_dataset(book, name).retired is None else None


def add_analyst(book: Book, name: str) -> AnalystAdded:
    """An analyst becomes known."""
    if book.find(Analyst, name) is not None:
        raise InvalidInput(f"analyst {name!r} exists already; choose another name")
    return AnalystAdded(name)


def grant(book: Book, analyst: str, dataset: str, epsilon: Fraction | None, delta: Fraction | None) -> Granted | None:
    """An analyst may ask about a data set, up to caps of their own."""
    known_analyst(book, analyst)
    live_dataset(book, dataset)
    known = book.find(Grant, analyst, dataset)
    if known is not None and known.withdrawn is None and (known.epsilon, known.delta) == (epsilon, delta):
        return None
    return Granted(analyst, dataset, epsilon, delta)


def withdraw(book: Book, analyst: str, dataset: str) -> Withdrawn | None:
    """An analyst may no longer ask about a data set, retired or not."""
    known_dataset(book, dataset)
    return Withdrawn(analyst, dataset) if _any_grant(book, analyst, dataset).withdrawn is None else None


def issue_token(book: Book, fact: TokenIssued | ControllerTokenIssued) -> TokenIssued | ControllerTokenIssued:
    """An analyst who is known, or a controller, gets a token."""
    if isinstance(fact, TokenIssued):
        known_analyst(book, fact.analyst)
    return fact


def revoke_token(book: Book, name: str) -> TokenRevoked | None:
    """A token is accepted no longer."""
    known = book.find(Token, name)
    if known is None:
        # What was given is not repeated: it may be the secret itself.
        raise NotPermitted("the ledger knows no token of that name; `idios analyst tokens` lists the names")
    return TokenRevoked(name) if known.revoked is None else None


def price(book: Book, request: Request) -> Price:
    """Whom the request would charge: no analyst twice for one question."""
    live_dataset(book, request.dataset)
    question = book.find(Question, request.key)
    paid = True
    if request.analyst is not None:
        known_grant(book, request.analyst, request.dataset)
        paid = question is not None and book.find(Payment, request.key, request.analyst) is not None
    return Price(
        stored=question is not None and question.released is not None,
        charges_dataset=question is None,
        charges_analyst=not paid,
    )


def reserve(book: Book, request: Request) -> Reserved | Shared | None:
    """A question is charged to the data set and the analyst if they have not paid yet and their budgets allow it."""
    cost = price(book, request)
    if cost.charges_dataset:
        known_dataset(book, request.dataset).balance.require(request.epsilon, request.delta)
    if request.analyst is not None and cost.charges_analyst:
        known_grant(book, request.analyst, request.dataset).balance.require(request.epsilon, request.delta)
    if cost.charges_dataset:
        return Reserved(
            request.key,
            request.dataset,
            request.version,
            request.question,
            request.epsilon,
            request.delta,
            request.analyst,
        )
    if request.analyst is not None and cost.charges_analyst:
        return Shared(request.key, request.dataset, request.analyst, request.epsilon, request.delta)
    return None


def charged_question(book: Book, reservation: Reservation) -> Question:
    """The question that the reservation is for."""
    found = book.find(Question, reservation.key)
    if found is None or found.reserved != reservation.sequence:
        raise LedgerError(
            "the reservation is not in this ledger; an answer goes to the ledger that charged its question"
        )
    return found


def release(book: Book, reservation: Reservation, answer: str) -> Released | None:
    """The first answer to a charge is stored; nothing is added when there is one already."""
    question = charged_question(book, reservation)
    live_dataset(book, question.dataset)
    return Released(reservation.key, answer) if question.released is None else None


def fail(book: Book, reservation: Reservation, detail: str) -> Failed:
    """An answer could not be computed."""
    charged_question(book, reservation)
    return Failed(reservation.key, reservation.request.analyst, detail)


def inspect(book: Book, request: Request) -> Inspected:
    """The controller looks behind a question."""
    known_dataset(book, request.dataset)
    return Inspected(request.dataset, request.version, request.question, request.epsilon, request.delta)

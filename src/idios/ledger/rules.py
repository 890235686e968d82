"""What may be recorded: a rule reads the store and gives the fact to append, None for nothing new, or refuses.

Rules are pure. The ledger runs one and appends its fact in one transaction: what the rule saw is still true.
"""

from __future__ import annotations

import shlex
from dataclasses import replace
from fractions import Fraction

from idios.core.neighbours import Neighbours
from idios.display import FRESH_BUDGET, format_amount
from idios.errors import BudgetExceeded, DataChanged, IdiosError, InvalidInput, LedgerError, NotPermitted
from idios.ledger.facts import (
    AnalystAdded,
    ControllerTokenIssued,
    Declared,
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
from idios.ledger.request import ChargeRequest, Declaration, Price, Reservation
from idios.ledger.state import AnalystRow, DatasetRow, GrantRow, PaymentRow, Place, QuestionRow, RowStore, TokenRow
from idios.ledger.values import check_amount, check_text, omit_rho, round_rho_up
from idios.model import Accounting, Balance, Cost
from idios.model.balance import describe_shortage

STOPPED = "stopped"
"""The detail of a failure that the caller wanted, or that took too long."""
MOST_FAILURES = 10
"""How many failures of one question are recorded."""


def require_dataset(store: RowStore, name: str) -> DatasetRow:
    """Return the data set, retired or not; refuse an unknown one."""
    row = store.get(DatasetRow, name)
    if row is None:
        raise NotPermitted(
            f"the ledger knows no data set {name!r}; it is recorded when it is declared in the configuration and first "
            "opened, as by `idios quote`"
        )
    return row


def require_live_dataset(store: RowStore, name: str, advice: str = "") -> DatasetRow:
    """Return the data set; refuse one that is unknown, or retired, with advice."""
    row = require_dataset(store, name)
    if row.retired is not None:
        raise NotPermitted(f"data set {name!r} is retired (entry {row.retired}) and answers nothing more{advice}")
    return row


def require_promise(store: RowStore, name: str, promise: Promise) -> None:
    """Refuse what would be answered with another promise than the one on record.

    A process that opened the data set before it was declared anew would go on with the promise of then.
    """
    if require_dataset(store, name).promise != promise:
        raise DataChanged(
            f"data set {name!r} was declared with another promise since it was opened: open it again, or restart the "
            "server"
        )


def require_analyst(store: RowStore, name: str) -> AnalystRow:
    """Return the analyst; refuse an unknown one."""
    row = store.get(AnalystRow, name)
    if row is None:
        raise NotPermitted(f"the ledger knows no analyst {name!r}; add one with `idios analyst add`")
    return row


def require_grant(store: RowStore, analyst: str, dataset: str) -> GrantRow:
    """Return the analyst's grant on the data set; refuse one that was withdrawn."""
    row = _require_any_grant(store, analyst, dataset)
    if row.withdrawn is not None:
        raise NotPermitted(
            f"analyst {analyst!r} has no grant on data set {dataset!r} any more: it was withdrawn (entry "
            f"{row.withdrawn}); the controller gives a new one with `idios analyst grant`"
        )
    return row


def get_balance(store: RowStore, dataset: str, analyst: str | None) -> Balance:
    """Return the balance of a data set, or of an analyst on it, who shares what is left of the data set's."""
    whole = require_dataset(store, dataset).balance
    return whole if analyst is None else require_grant(store, analyst, dataset).find_balance(whole)


def find_balance(store: RowStore, request: ChargeRequest) -> Balance | None:
    """Return the balance of who asks; None if their grant was withdrawn."""
    try:
        return get_balance(store, request.dataset, request.analyst)
    except NotPermitted:
        return None


def _require_any_grant(store: RowStore, analyst: str, dataset: str) -> GrantRow:
    row = store.get(GrantRow, analyst, dataset)
    if row is None:
        require_analyst(store, analyst)
        raise NotPermitted(
            f"analyst {analyst!r} has no grant on data set {dataset!r}; "
            "the controller gives one with `idios analyst grant`"
        )
    return row


def find_places(request: ChargeRequest) -> tuple[Place, ...]:
    """Say where the rows stand that decide about a request."""
    payment: tuple[Place, ...] = () if request.analyst is None else ((PaymentRow, (request.key, request.analyst)),)
    return (*find_places_of_balance(request.dataset, request.analyst), (QuestionRow, (request.key,)), *payment)


def find_places_of_balance(dataset: str, analyst: str | None) -> tuple[Place, ...]:
    """Say where the rows stand that a balance is made of."""
    whole: Place = (DatasetRow, (dataset,))
    return (whole,) if analyst is None else (whole, (GrantRow, (analyst, dataset)))


def declare(store: RowStore, declaration: Declaration) -> Declared | None:
    """Declare a data set: new, as recorded, or with another version; its budget cannot change here.

    After a raise the configuration may go on to say what it said before, until it is edited to the new total. One that
    declares no δ leaves what was recorded of it.
    """
    fact = Declared(
        declaration.dataset,
        declaration.version,
        declaration.epsilon,
        declaration.delta,
        declaration.min_epsilon,
        Accounting(declaration.accounting),
        *(declaration.promise.unit, declaration.promise.neighbours, declaration.promise.protection),
        tuple(sorted(declaration.tables)),
        tuple(sorted(declaration.public)),
    )
    _refuse_other_budget(store, declaration)
    if store.get(DatasetRow, declaration.dataset) is None:
        return fact
    known = require_live_dataset(store, declaration.dataset, f"; remove it from the configuration. {FRESH_BUDGET}")
    _refuse_other_promise(known, declaration)
    last = known.declared
    if known.charges:  # what was joined as public stays so
        fact = replace(fact, public=tuple(sorted({*last.public, *fact.public})))
    recorded, before = (known.epsilon, known.delta), (known.declared_epsilon, known.declared_delta)
    accepted = [delta for epsilon, delta in (before, recorded) if declaration.epsilon == epsilon]
    if fact.accounting is Accounting.CONCENTRATED and accepted and declaration.delta > known.delta:
        raise LedgerError(
            f"data set {known.dataset!r} is declared with concentrated accounting and δ = "
            f"{format_amount(declaration.delta)}, but recorded with δ = {format_amount(known.delta)}; a budget grows "
            f"only on the record: run `idios ledger raise {shlex.quote(known.dataset)} --delta "
            f"{format_amount(declaration.delta)}`"
        )
    if not accepted or declaration.delta not in (0, *accepted):
        formerly = "" if before == recorded else f" (before it was raised: {_format_both(*before)})"
        raise LedgerError(
            f"data set {known.dataset!r} is declared with a budget of "
            f"{_format_both(declaration.epsilon, declaration.delta)}, but recorded with {_format_both(*recorded)}"
            f"{formerly}; a recorded budget never shrinks and grows only on the record: "
            f"put it back in the configuration{_write_raise(known, declaration)}"
        )
    if declaration.delta not in accepted:
        fact = replace(fact, delta=accepted[0])
    return None if fact == last else fact


def _write_raise(known: DatasetRow, declaration: Declaration) -> str:
    """The command that raises what is recorded to what is declared, where that is more and nothing is less."""
    options = [("--epsilon", known.epsilon, declaration.epsilon), ("--delta", known.delta, declaration.delta)]
    raised = [f"{name} {format_amount(total)}" for name, recorded, total in options if total > recorded]
    if not raised or declaration.epsilon < known.epsilon or 0 < declaration.delta < known.delta:
        return ""
    return f", or run `idios ledger raise {shlex.quote(known.dataset)} {' '.join(raised)}`"


def _refuse_other_promise(known: DatasetRow, declaration: Declaration) -> None:
    """What was answered was promised to people: the ε of answers with another promise are no part of the same sum.

    An answer about rows for ε costs a person with m rows up to mε. Where adding or removing a record costs ε, replacing
    one costs up to 2ε, or any amount if noise is fitted to the data. Free answers count too: a number of records may be
    exact only while each of them is a person, and while replacing one is all that is protected. Under replace that
    number is told to every analyst who is let in. Entries of before say nothing of notion and level: what is declared
    first after them is taken.
    """
    before, now = known.promise, declaration.promise
    if not before.neighbours:
        before = now._replace(unit=before.unit)
    counted_otherwise = (before.neighbours, before.unit) != (now.neighbours, now.unit)
    told = known.granted and before.neighbours == Neighbours.REPLACE and counted_otherwise
    if before == now or not (known.charges or told):
        return
    differing = [name for name in Promise._fields if getattr(before, name) != getattr(now, name)]
    formerly, declared = (" and ".join(_describe_part(each, name) for name in differing) for each in (before, now))
    happened, stays = f"was granted to analysts with {formerly}, which told them how many there are", "That stays known"
    if known.charges:
        happened = f"was asked about with {formerly}: no promise covers what was spent then and what would be spent now"
        stays = FRESH_BUDGET
    raise LedgerError(
        f"data set {known.dataset!r} is declared with {declared}, but {happened}. Declare it as before; or retire it, "
        f"for ever, and declare another data set. {stays}"
    )


def _describe_part(promise: Promise, name: str) -> str:
    value = getattr(promise, name)
    if name == "unit":
        return f"the unit {value}" if value else "no unit"
    return f'{name} = "{value}"'


def _refuse_other_budget(store: RowStore, declaration: Declaration) -> None:
    """Refuse a table that was asked about as another data set's, as public, or as a data set of its own.

    Another budget lacks what the same people lost before; and what was read as public was protected by nothing.
    """
    now = _find_budgets(declaration)
    for row in store.list_all(DatasetRow):
        before = _find_budgets(row.declared) if row.charges else {}
        for name in sorted(now.keys() & before.keys()):
            if now[name] == before[name]:
                continue
            if not before[name]:
                why = "nothing protects what was answered from it. Declare it as before"
            elif not now[name]:
                why = "its people were promised noise that joins with it would not have. Declare it as before"
            else:
                why = (
                    "the budget that pays now lacks what was paid then. Declare it as before, or under another name "
                    "once `idios ledger forfeit` counts there what was spent on it"
                )
            raise LedgerError(
                f"{name!r} is declared {_describe_budget(name, now[name])}, but was asked about "
                f"{_describe_budget(name, before[name])}: {why}"
            )


def _find_budgets(declared: Declaration | Declared) -> dict[str, str]:
    """By table, the data set whose budget pays for it, or "" where it is public."""
    own = dict.fromkeys((declared.dataset, *declared.tables), declared.dataset)
    return own | dict.fromkeys(declared.public, "")


def _describe_budget(name: str, payer: str) -> str:
    if not payer:
        return "as public"
    return "as a data set of its own" if name == payer else f"as rows of the people of {payer!r}"


def _format_both(epsilon: Fraction, delta: Fraction) -> str:
    return f"ε = {format_amount(epsilon)}, δ = {format_amount(delta)}"


def raise_budget(store: RowStore, name: str, epsilon: Fraction | None, delta: Fraction | None) -> Raised:
    """Raise a data set's budget to new totals; None leaves one as it is."""
    known = require_live_dataset(store, name)
    fact = Raised(name, known.epsilon if epsilon is None else epsilon, known.delta if delta is None else delta)
    if fact.epsilon < known.epsilon or fact.delta < known.delta or fact == Raised(name, known.epsilon, known.delta):
        raise InvalidInput(
            f"raising data set {name!r} takes new totals above the recorded ε = {format_amount(known.epsilon)}, "
            f"δ = {format_amount(known.delta)}, not ε = {format_amount(fact.epsilon)}, δ = {format_amount(fact.delta)}"
        )
    if known.accounting is Accounting.CONCENTRATED and fact.delta >= 1:
        raise InvalidInput(f"concentrated accounting needs a δ below 1, not {format_amount(fact.delta)}")
    return fact


def forfeit(
    store: RowStore, name: str, epsilon: Fraction, delta: Fraction, rho: Fraction | None, reason: str
) -> Forfeited:
    """Count amounts as spent, also beyond the budget: what was learnt is learnt."""
    require_dataset(store, name)
    epsilon, delta = check_amount("epsilon", epsilon), check_amount("delta", delta)
    rho = None if rho is None else round_rho_up(rho)
    if not epsilon and not delta and not rho:
        raise InvalidInput(f"forfeiting of data set {name!r} takes an ε, a δ or a ρ above 0")
    return Forfeited(name, epsilon, delta, check_text("reason", reason), rho)


def retire(store: RowStore, name: str) -> Retired | None:
    """Let a data set answer nothing more."""
    return Retired(name) if require_dataset(store, name).retired is None else None


def add_analyst(store: RowStore, name: str) -> AnalystAdded:
    """Make an analyst known."""
    if store.get(AnalystRow, name) is not None:
        raise InvalidInput(f"analyst {name!r} exists already; choose another name")
    return AnalystAdded(name)


def grant(
    store: RowStore, analyst: str, dataset: str, epsilon: Fraction | None, delta: Fraction | None
) -> Granted | None:
    """Let an analyst ask about a data set, up to caps of their own."""
    require_analyst(store, analyst)
    require_live_dataset(store, dataset)
    known = store.get(GrantRow, analyst, dataset)
    if known is not None and known.withdrawn is None and (known.epsilon, known.delta) == (epsilon, delta):
        return None
    return Granted(analyst, dataset, epsilon, delta)


def withdraw(store: RowStore, analyst: str, dataset: str) -> Withdrawn | None:
    """Let an analyst no longer ask about a data set, retired or not."""
    require_dataset(store, dataset)
    return Withdrawn(analyst, dataset) if _require_any_grant(store, analyst, dataset).withdrawn is None else None


def issue_token(store: RowStore, fact: TokenIssued | ControllerTokenIssued) -> TokenIssued | ControllerTokenIssued:
    """Give a token to an analyst who is known, or to a controller."""
    if isinstance(fact, TokenIssued):
        require_analyst(store, fact.analyst)
    return fact


def revoke_token(store: RowStore, name: str) -> TokenRevoked | None:
    """Accept a token no longer."""
    known = store.get(TokenRow, name)
    if known is None:
        # What was given is not repeated: it may be the secret itself.
        raise NotPermitted("the ledger knows no token of that name; `idios analyst tokens` lists the names")
    return TokenRevoked(name) if known.revoked is None else None


def get_price(store: RowStore, request: ChargeRequest) -> Price:
    """Say whom the request would charge: no analyst twice for one question."""
    require_live_dataset(store, request.dataset)
    require_promise(store, request.dataset, request.promise)
    question = store.get(QuestionRow, request.key)
    paid = True
    if request.analyst is not None:
        require_grant(store, request.analyst, request.dataset)
        paid = question is not None and store.get(PaymentRow, request.key, request.analyst) is not None
    return Price(
        stored=question is not None and question.released is not None,
        charges_dataset=question is None,
        charges_analyst=not paid,
    )


def quote(store: RowStore, request: ChargeRequest) -> Price:
    """Say whom the request would charge, and what of their budgets is too little."""
    price = get_price(store, request)
    try:
        reserve(store, request)
    except BudgetExceeded as error:
        return replace(price, shortage=describe_shortage(error))
    return price


def reserve(store: RowStore, request: ChargeRequest) -> Reserved | Shared | None:
    """Charge a question to the data set and the analyst if they have not paid yet and their budgets allow it."""
    price, cost = get_price(store, request), get_cost(store, request)
    whole = require_dataset(store, request.dataset).balance
    if price.charges_dataset:
        whole.require(cost)
    if request.analyst is not None and price.charges_analyst:
        require_grant(store, request.analyst, request.dataset).find_balance(whole).require(cost)
    if price.charges_dataset:
        return Reserved(
            request.key,
            request.dataset,
            request.version,
            request.question,
            request.epsilon,
            request.delta,
            request.analyst,
            request.rho,
            request.pure,
        )
    if request.analyst is not None and price.charges_analyst:
        amounts = (request.epsilon, request.delta, omit_rho(cost), cost.pure)
        return Shared(request.key, request.dataset, request.analyst, *amounts)
    return None


def expects_charge(remembered: RowStore, request: ChargeRequest) -> bool:
    """Guess whether a request will be charged, by what a process remembers; whether it is, is decided anew.

    Where it will, it is not worth while to look for its answer before the writers' lock is taken.
    """
    try:
        return reserve(remembered, request) is not None
    except IdiosError:
        return False


def get_cost(store: RowStore, request: ChargeRequest) -> Cost:
    """Say what an analyst pays for the answer: what it was charged at, if it was.

    Neither ρ nor `pure` is in the key. A request that would answer an open charge at a greater cost is refused: what it
    releases was not paid for.
    """
    question = store.get(QuestionRow, request.key)
    if question is None:
        return request.cost
    charged = Cost(request.epsilon, request.delta, question.rho, pure=not question.impure)
    if question.released is None and not charged.covers(request.cost):
        raise InvalidInput(
            "this question was charged before at another cost, and is not answered yet: it would now be answered in "
            "another way, which costs more; ask with another ε"
        )
    return charged


def get_question(store: RowStore, key: str) -> QuestionRow:
    """Return the question of a request that was charged in this transaction or before."""
    row = store.get(QuestionRow, key)
    if row is None:
        raise LedgerError("the question was not recorded")
    return row


def require_question(store: RowStore, reservation: Reservation) -> QuestionRow:
    """Return the question that the reservation is for."""
    row = store.get(QuestionRow, reservation.key)
    if row is None or row.reserved != reservation.sequence:
        raise LedgerError(
            "the reservation is not in this ledger; an answer goes to the ledger that charged its question"
        )
    return row


def release(store: RowStore, reservation: Reservation, answer: str) -> Released | None:
    """Store the first answer to a charge; nothing is added when there is one already."""
    question = require_question(store, reservation)
    require_live_dataset(store, question.dataset)
    return Released(reservation.key, answer) if question.released is None else None


def fail(store: RowStore, reservation: Reservation, detail: str, recorded: int) -> Failed | None:
    """Record that an answer could not be computed; nothing is added once enough failures of it are recorded.

    One charge pays for any number of attempts, so that a caller could fill the chain: with questions that they stop
    most of all, of which a second one tells nothing new.
    """
    require_question(store, reservation)
    enough = 1 if detail == STOPPED else MOST_FAILURES
    return Failed(reservation.key, reservation.request.analyst, detail) if recorded < enough else None


def inspect(store: RowStore, request: ChargeRequest) -> Inspected:
    """Record that the controller looks behind a question."""
    require_dataset(store, request.dataset)
    return Inspected(request.dataset, request.version, request.question, request.epsilon, request.delta)

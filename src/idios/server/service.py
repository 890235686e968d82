"""One server process at work: what the API and the console do for a caller, with what every request needs made once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, TypeVar

from fastapi import Depends, Request

from idios.config import Settings
from idios.data.cancellation import CancellationToken
from idios.datasets import DatasetConfig
from idios.errors import ConfigurationError, InvalidInput
from idios.ledger import Anchor, Balance, Identity, IssuedToken, Ledger, Role, StoredAnswer, Verification
from idios.model import Answer, DatasetFacts, QuestionProgress, QuestionRequest, Quote
from idios.model.inspection import Costs
from idios.party import TrustedParty
from idios.server.auth import Authenticator, Limiter, caller_name, charged_analyst
from idios.server.catalogue import check_levels, describe_dataset
from idios.server.metrics import Metrics
from idios.server.question_queue import QuestionQueue, refuse_long_answer
from idios.server.work_pool import FreeWorkPool, Turns

LONGEST_DAYS = 3650
"""How long a token may be valid."""

T = TypeVar("T")


@dataclass(frozen=True)
class Service:
    """What a caller can have done, once they are authenticated; the API and the console only translate."""

    party: TrustedParty
    declared: Mapping[str, DatasetConfig]
    settings: Settings
    auth: Authenticator
    by_address: Limiter
    questions: QuestionQueue
    free_work: FreeWorkPool
    turns: Turns
    metrics: Metrics
    catalogue: Mapping[str, DatasetFacts]

    @classmethod
    def start(cls, party: TrustedParty, declared: Mapping[str, DatasetConfig], settings: Settings) -> Service:
        """Check that the party may be served, and get everything ready."""
        check_levels(declared.values())
        if party.source is not None and not party.source.secure:
            raise ConfigurationError("a seeded source of noise is for tests; a server draws from the operating system")
        served = {name: dataset for name, dataset in declared.items() if name in party.datasets}
        metrics = Metrics(party.ledger)
        release = {name: float(dataset.release_seconds) for name, dataset in served.items()}
        turns = Turns(settings)
        return cls(
            party=party,
            declared=served,
            settings=settings,
            auth=Authenticator(party.ledger, settings.session_hours, settings.requests_per_minute),
            by_address=Limiter(settings.requests_per_minute_address),
            questions=QuestionQueue(party, settings, release, metrics.count_question, turns),
            free_work=FreeWorkPool(),
            turns=turns,
            metrics=metrics,
            catalogue={name: describe_dataset(party, dataset) for name, dataset in served.items()},
        )

    @property
    def ledger(self) -> Ledger:
        """The party's ledger."""
        return self.party.ledger

    def party_for(self, identity: Identity) -> TrustedParty:
        """The party as one caller may see it: data sets that were not granted do not exist for an analyst."""
        if identity.role is Role.CONTROLLER:
            return self.party
        return self.party.limited_to(identity.granted, caller_name(identity))

    # Questions.

    async def quote(self, identity: Identity, question: QuestionRequest, encode: Callable[[Quote], T]) -> T:
        """Say what a question would cost; nothing is charged and no data is touched."""
        party = self.party_for(identity)
        return await self.questions.quote(party, question, identity, encode)

    async def ask(
        self,
        identity: Identity,
        question: QuestionRequest,
        idempotency_key: str | None,
        wait: float,
        encode: Callable[[Answer], T],
    ) -> T | QuestionProgress:
        """Charge and answer a question; one that takes longer than ``wait`` seconds is answered later."""
        party = self.party_for(identity)
        return await self.questions.ask(party, question, identity, idempotency_key, wait, encode)

    async def find_question(self, identity: Identity, id: str, encode: Callable[[QuestionProgress], T]) -> T:
        """Find a question that outlasted its request, with its answer once there is one."""
        party = self.party_for(identity)
        return await self.questions.find(party, id, identity, encode)

    async def cancel_question(self, identity: Identity, id: str, encode: Callable[[QuestionProgress], T]) -> T:
        """Stop a question; it stays charged."""
        party = self.party_for(identity)
        return await self.questions.cancel(party, id, identity, encode)

    async def render(self, identity: Identity, render: Callable[[], T]) -> T:
        """Render a reply when it is the caller's turn: one that may be long, or takes long to make."""
        return await self.turns.render(caller_name(identity), render)

    def log_fields(self, question: QuestionRequest) -> dict[str, str]:
        """What the log tells of a question: nothing, unless the controller has declared that it may."""
        return {"sql": question.sql, "epsilon": question.epsilon} if self.settings.log_questions else {}

    # What costs no budget.

    def datasets(self, identity: Identity) -> list[DatasetFacts]:
        """What is public of the data sets that the caller may ask about; one that was retired is not there any more."""
        live = {declaration.dataset for declaration in self.ledger.datasets()}
        return [self.catalogue[name] for name in self.party_for(identity).datasets if name in live]

    def balances(self, identity: Identity) -> list[Balance]:
        """What the caller may still spend; a controller sees the budgets of the data sets."""
        served = self.party.datasets
        if identity.role is Role.CONTROLLER:
            return [self.ledger.balance(name) for name in served]
        return [balance for balance in self.ledger.grants(identity.name) if balance.dataset in served]

    def answers(
        self, identity: Identity, *, dataset: str | None = None, before: int | None, limit: int
    ) -> list[StoredAnswer]:
        """The caller's own answers, newest first; a controller sees all."""
        return self.ledger.answers(dataset, charged_analyst(identity), newest_first=True, before=before, limit=limit)

    async def sandbox(self, identity: Identity, question: QuestionRequest, encode: Callable[[Answer], T]) -> T:
        """Answer about made-up data, for a limited time; the answer is encoded in the same thread."""
        party, caller = self.party_for(identity), caller_name(identity)

        def answer(cancellation: CancellationToken) -> T:
            plan = party.make_plan(question.sql, question.epsilon, question.split, question.check)
            return encode(party.try_out(refuse_long_answer(plan), cancellation))

        self.turns.check_unread(caller)
        return await self.free_work.run_with_deadline(caller, answer)

    async def run_free_work(self, identity: Identity, work: Callable[[], T]) -> T:
        """Run free work that may take seconds, when it is the caller's turn."""
        caller = caller_name(identity)
        self.turns.check_unread(caller)
        return await self.free_work.run(caller, work)

    # What a controller does.

    async def compare(self, identity: Identity, question: QuestionRequest, encode: Callable[[Costs], T]) -> T:
        """Give a question's expected error at every level; this charges nothing and is recorded."""
        return await self.run_free_work(
            identity, lambda: encode(self.party.costs(question.sql, question.epsilon, split=question.split))
        )

    async def verify(self, identity: Identity, anchor: str | None) -> Verification:
        """Hold the chain and the tables against their signatures, and against an anchor that was kept elsewhere."""
        kept = None if anchor is None else Anchor.parse(anchor)
        return await self.run_free_work(identity, lambda: self.ledger.verify(kept))

    def issue_token(self, name: str, role: Role, days: int) -> IssuedToken:
        """Issue a token: the secret, which is shown once and never again, and what is known of it."""
        if days > LONGEST_DAYS:
            raise InvalidInput(f"a token lives for at most {LONGEST_DAYS} days, got {days}")
        return self.ledger.issue_token(name, role=role, lifetime=timedelta(days=days))


def service_of(request: Request) -> Service:
    """The service of the process that a request came to."""
    service: Service = request.app.state.service
    return service


async def _served(request: Request) -> Service:
    """The same as a dependency; it is async so that it needs no thread."""
    return service_of(request)


Served = Annotated[Service, Depends(_served)]

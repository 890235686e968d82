"""What every request needs, made once: the party, authentication, limits and the queue of questions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from idios.backends.progress import Watch
from idios.config import Declared
from idios.ledger import Identity, Role
from idios.model import Answer, DatasetFacts
from idios.party import TrustedParty
from idios.server.admission import check_levels, check_source
from idios.server.catalogue import describe_dataset
from idios.server.desk import Asked, Desk, caller
from idios.server.limits import Limiter
from idios.server.metrics import Metrics
from idios.server.sessions import PURPOSE, Sessions
from idios.server.side_work import SideWork, planning_lanes
from idios.settings import Settings

T = TypeVar("T")


@dataclass(frozen=True)
class Service:
    """One server process at work."""

    party: TrustedParty
    declared: Mapping[str, Declared]
    settings: Settings
    desk: Desk
    side_work: SideWork
    sessions: Sessions
    metrics: Metrics
    catalogue: Mapping[str, DatasetFacts]
    by_token: Limiter
    by_address: Limiter
    strangers: Limiter

    @classmethod
    def start(cls, party: TrustedParty, declared: Mapping[str, Declared], settings: Settings) -> Service:
        """Check that the party may be served, and get everything ready."""
        check_levels(declared.values())
        check_source(party.source)
        served = {name: one for name, one in declared.items() if name in party.holdings}
        metrics = Metrics(party.ledger)
        release = {name: float(one.release_seconds) for name, one in served.items()}
        return cls(
            party=party,
            declared=served,
            settings=settings,
            desk=Desk(party, settings, release, metrics.count_question, planning_lanes(settings)),
            side_work=SideWork(),
            sessions=Sessions(party.ledger.derive(PURPOSE), settings.session_hours),
            metrics=metrics,
            catalogue={name: describe_dataset(party, one) for name, one in served.items()},
            by_token=Limiter(settings.requests_per_minute),
            by_address=Limiter(settings.requests_per_minute_address),
            strangers=Limiter(STRANGERS),
        )

    def party_for(self, identity: Identity) -> TrustedParty:
        """The party as one caller may see it: data sets that were not granted do not exist for an analyst."""
        if identity.role is Role.CONTROLLER:
            return self.party
        granted = {one.dataset for one in self.party.ledger.grants(identity.name)}
        return self.party.limited_to(granted)

    async def run_beside(self, identity: Identity, work: Callable[[], T]) -> T:
        """Run free work that may take seconds, when it is the caller's turn."""
        return await self.side_work.run(caller(identity), work)

    async def sandbox(self, identity: Identity, asked: Asked, encode: Callable[[Answer], T]) -> T:
        """Answer about made-up data, for a limited time; the answer is made ready to be sent in the same thread."""

        def answered(watch: Watch) -> T:
            sandbox = self.party_for(identity).sandbox
            return encode(sandbox(asked.sql, asked.epsilon, asked.weights, watch=watch))

        return await self.side_work.stoppable(caller(identity), answered)


STRANGERS = 60
"""Failed sign-ins a minute from one address: 256 random bits cannot be guessed, but trying costs work."""

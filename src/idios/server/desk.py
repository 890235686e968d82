"""The queue where questions wait and run, off the event loop, and where their progress is followed.

Rules:

1. A question is refused before it is charged if too many are waiting. A refusal needs no place in the queue, so that
   its time tells nothing about the questions before it.
2. Once charged, a question is computed to its end even if its client has gone: the answer is in the ledger,
   and asking again gives it.
3. Answers and failures leave at public moments (padding.py) and are put on record no earlier: until then a question is
   running for every caller at every process, and one that is cancelled gives no answer. One that leaves already cannot
   be cancelled, nor is a caller told that it was; the ledger's table of running questions decides which came first.
4. A question that outlasts its request is written down (the ledger's table of running questions), so that every
   process of the server can show it and stop it. Stopped or not, it stays charged.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, TypeVar

from anyio.to_thread import run_sync

from idios.backends.progress import Watch
from idios.core.exact import exact
from idios.errors import AnswerFailed, IdiosError, InvalidInput, LedgerError
from idios.ledger import Identity, Role, Running
from idios.ledger.running import LIVE
from idios.model import Answer, QuestionProgress, Quote
from idios.party import Charged, Drawn, TrustedParty
from idios.query.plan import Plan
from idios.server.lanes import Lanes
from idios.server.padding import release_after
from idios.server.problems import BUSY, CLOSING, DECLARED_ANEW, NO_SUCH_QUESTION, Refused
from idios.settings import Settings

log = logging.getLogger("idios.server")

T = TypeVar("T")

MOST_EPSILON = 1000
"""Exact arithmetic with e^ε takes time and memory in proportion to ε, before any budget is looked at."""
UNTOLD = "running"
"""The step that is reported where a question's real step may not be told."""
HEARTBEAT = 1.0
"""Seconds between two heartbeats of a question that outlasts its request."""
LOST = 30.0
"""Seconds without a heartbeat after which a question's process is taken to be gone."""


@dataclass(frozen=True)
class Asked:
    """A question as it came."""

    sql: str
    epsilon: str
    weights: dict[str, str] | None = None

    def affordable(self) -> Asked:
        """The question itself, refused if the server would have to work too long for it."""
        if exact(self.epsilon, "epsilon") > MOST_EPSILON:
            raise InvalidInput(
                f"epsilon must be at most {MOST_EPSILON:,} here, which already protects no record; ask with less"
            )
        return self


@dataclass(eq=False)
class _Question:
    """One charged question of this process."""

    party: TrustedParty
    charged: Charged
    asker: str
    came: float
    first_release: float
    watch: Watch = field(init=False)
    step: str = "waiting"
    share: float = 0.0
    cancelled: bool = False
    computed: bool = False
    moment: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when there is no other public moment to wait for."""
    id: str | None = None
    """Its id in the ledger's table of running questions, once it has outlasted its request."""
    leaving: bool = False
    """Whether its answer or failure is on its way out: it cannot be cancelled any more."""
    door: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while ``id`` or ``leaving`` is decided."""

    def __post_init__(self) -> None:
        self.watch = Watch(self._told)

    def cancel(self) -> None:
        """Cancel it for its caller.

        It keeps its place until a public moment: a place that is free earlier would tell how long it took.
        """
        self.cancelled = True
        self.watch.stop()

    def _told(self, step: str, share: float) -> None:
        self.step, self.share = step, share


class Desk:
    """The queue of one server process: it charges questions, computes them and gives their answers."""

    def __init__(
        self,
        party: TrustedParty,
        settings: Settings,
        release_seconds: Mapping[str, float],
        counted: Callable[[Charged], None],
        planning: Lanes,
    ) -> None:
        self._counted = counted
        self._planning = planning
        self._running = party.ledger.running
        self._settings = settings
        self._release = release_seconds
        self._threads = ThreadPoolExecutor(settings.concurrent_questions, "question")
        self._most = settings.concurrent_questions + settings.waiting_questions
        # One caller cannot take the last places, so that there is one for another.
        self._each = self._most - self._most // 4
        self._of: Counter[str] = Counter()
        # Nor all threads at a time, however many of their questions wait.
        self._running_each = max(1, settings.concurrent_questions * 3 // 4)
        self._lanes: dict[str, asyncio.Semaphore] = {}
        self._work: dict[asyncio.Task[Answer], _Question] = {}
        self._taken = 0
        self._here: dict[str, _Question] = {}
        self._followers: set[asyncio.Task[None]] = set()
        self._closing = False

    @property
    def taken(self) -> int:
        """How many questions were taken in and have not left yet."""
        return self._taken

    async def ask(
        self, party: TrustedParty, asked: Asked, identity: Identity, once: str | None, wait: float
    ) -> Answer | QuestionProgress:
        """Charge and answer a question; one that takes longer than ``wait`` seconds is answered later."""
        if self._closing:
            raise Refused(CLOSING)
        asker = caller(identity)
        if self._taken >= self._most or self._of[asker] >= self._each:
            raise Refused(BUSY)
        self._take(asker, 1)
        came = asyncio.get_running_loop().time()
        try:
            plan = await self.plan(party, asked, identity)
            charged = await run_sync(lambda: party.reserve(plan, analyst=analyst(identity), once=once))
        except BaseException:
            self._take(asker, -1)
            raise
        self._counted(charged)
        first = 0.0 if charged.stored else self._release.get(charged.dataset, 0.0)
        question = _Question(party, charged, asker, came, first)
        task = asyncio.create_task(self._answer(question))
        self._work[task] = question
        task.add_done_callback(self._left)
        left = wait - (asyncio.get_running_loop().time() - came)
        await asyncio.wait({task}, timeout=max(0.0, left))
        if task.done():
            return task.result()
        return await self._follow(task, question, asked, identity)

    async def plan(self, party: TrustedParty, asked: Asked, identity: Identity) -> Plan:
        """Read and plan a question when it is the caller's turn."""
        asked.affordable()
        return await self._planning.run(caller(identity), lambda: party.plan(asked.sql, asked.epsilon, asked.weights))

    async def quote(self, party: TrustedParty, asked: Asked, identity: Identity) -> Quote:
        """Say what a question would cost."""
        plan = await self.plan(party, asked, identity)
        return await run_sync(lambda: party.price(plan, analyst=analyst(identity)))

    async def find(self, party: TrustedParty, id: str, identity: Identity) -> QuestionProgress:
        """A question that outlasted its request, with its answer once there is one."""
        row = await run_sync(lambda: self._own(id, identity))
        found = self._shown(row)
        if found.state != "answered":
            return found
        request = json.loads(row.request)
        plan = await self.plan(party, Asked(**request["asked"]), identity)
        answer = await run_sync(lambda: _stored(party, plan, request["key"], identity))
        return replace(found, answer=answer)

    async def cancel(self, party: TrustedParty, id: str, identity: Identity) -> QuestionProgress:
        """Stop a question; it stays charged, and asking it again completes it without a new charge."""
        await run_sync(lambda: self._own(id, identity))
        stopped = await run_sync(lambda: self._running.cancel(id))
        if stopped and id in self._here:
            self._here[id].cancel()
        return await self.find(party, id, identity)

    async def close(self) -> None:
        """Take nothing new, finish what can be finished in time, and stop the rest, which stays charged."""
        self._closing = True
        for question in self._work.values():
            if question.cancelled:
                question.moment.set()  # its place goes to no new question, so the time tells nothing
        waited: set[asyncio.Task[Any]] = {*self._work, *self._followers}
        if waited:
            log.info("closing", extra={"fields": {"questions": self._taken}})
            _, late = await asyncio.wait(waited, timeout=self._settings.shutdown_seconds)
            if late:
                log.warning("stopping", extra={"fields": {"questions": self._taken}})
                # The end of the server is a public moment too: what is computed leaves now, the rest never.
                for question in self._work.values():
                    if not question.computed:
                        question.watch.stop()
                    question.moment.set()
                await asyncio.wait(late, timeout=5)
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _answer(self, question: _Question) -> Answer:
        """Compute in a thread, wait for the next public moment, and only then record the answer or failure."""
        party, charged, watch = question.party, question.charged, question.watch
        try:
            drawn = Drawn() if charged.stored else await self._drawn(question)
            try:
                await self._leave(question)
            except LedgerError as error:
                drawn = Drawn(error=error)  # released as a failure, which is recorded with its reason
            return await run_sync(party.release, charged, drawn, watch)
        except IdiosError:
            log.warning(
                "question stopped" if question.cancelled else "question failed",
                extra={"fields": {"question": charged.id}},
            )
            raise
        except Exception as error:
            # Any error after the charge is reported as the one constant message, which tells nothing.
            log.error("unforeseen", extra={"fields": {"question": charged.id, "error": type(error).__name__}})
            raise AnswerFailed from None

    async def _drawn(self, question: _Question) -> Drawn:
        """Compute in a thread, and keep the result until the next public moment."""
        loop = asyncio.get_running_loop()
        limit = loop.call_later(self._settings.question_seconds, question.watch.stop)
        try:
            async with self._lanes[question.asker]:
                drawn = await loop.run_in_executor(
                    self._threads, question.party.compute, question.charged, question.watch
                )
        finally:
            limit.cancel()
        question.computed = True
        await self._public_moment(question)
        return drawn

    async def _leave(self, question: _Question) -> None:
        """Let the question leave, unless it was cancelled at any process of the server."""
        async with question.door:
            id = question.id
            if id is not None and not await run_sync(lambda: self._running.leave(id)):
                question.cancel()
            question.leaving = True

    async def _public_moment(self, question: _Question) -> None:
        elapsed = asyncio.get_running_loop().time() - question.came
        left = release_after(elapsed, question.first_release) - elapsed
        with suppress(TimeoutError):
            await asyncio.wait_for(question.moment.wait(), left)

    def _take(self, asker: str, places: int) -> None:
        self._taken += places
        self._of[asker] += places
        if not self._of[asker]:
            del self._of[asker]
            del self._lanes[asker]
        elif asker not in self._lanes:
            self._lanes[asker] = asyncio.Semaphore(self._running_each)

    def _left(self, task: asyncio.Task[Answer]) -> None:
        self._take(self._work[task].asker, -1)
        del self._work[task]
        if not task.cancelled():
            task.exception()  # retrieve the exception to silence asyncio's warning

    async def _follow(
        self, task: asyncio.Task[Answer], question: _Question, asked: Asked, identity: Identity
    ) -> Answer | QuestionProgress:
        """Record a question that outlasts its request, and keep that record up to date until it ends."""
        id = secrets.token_hex(16)
        request = json.dumps({"asked": asdict(asked), "key": question.charged.key}, ensure_ascii=True)
        async with question.door:
            if not question.leaving:
                await run_sync(lambda: self._running.begin(id, caller(identity), question.charged.dataset, request))
                question.id = id
        if question.id is None:
            await asyncio.wait({task})  # only for its write to the ledger: it cannot be cancelled, so it needs no id
            return task.result()
        self._here[id] = question
        follower = asyncio.create_task(self._heartbeat(id, task, question))
        self._followers.add(follower)
        follower.add_done_callback(self._followers.discard)
        elapsed = asyncio.get_running_loop().time() - question.came
        told = question.first_release == 0
        step, share = (question.step, question.share) if told else (None, None)
        return QuestionProgress(id=id, state="running", elapsed=round(elapsed, 1), step=step, share=share)

    async def _heartbeat(self, id: str, task: asyncio.Task[Answer], question: _Question) -> None:
        told = question.first_release == 0
        try:
            while not task.done():
                step, share = (question.step, question.share) if told else (UNTOLD, 0.0)
                if await self._noted(self._running.report, id, step, share):
                    question.cancel()
                await asyncio.wait({task}, timeout=HEARTBEAT)
            state = "cancelled" if question.cancelled else "failed" if task.exception() else "answered"
            await self._noted(self._running.end, id, state)
        finally:
            del self._here[id]

    async def _noted(self, note: Callable[..., T], *said: Any) -> T | None:
        """The result of a note in the ledger; None if it could not be written, which does not end the question."""
        try:
            return await run_sync(note, *said)
        except IdiosError as error:
            # The answer itself is safe; a caller who finds the question lost asks again, free.
            log.error("progress not recorded", extra={"fields": {"error": type(error).__name__}})
            return None

    def _own(self, id: str, identity: Identity) -> Running:
        row = self._running.find(id)
        if row is None or row.caller != caller(identity):
            raise Refused(NO_SUCH_QUESTION)
        return row

    def _shown(self, row: Running) -> QuestionProgress:
        now = datetime.now(UTC)
        elapsed = round((now - datetime.fromisoformat(row.started)).total_seconds(), 1)
        state = row.state
        if row.cancel:
            state = "cancelled"
        elif state in LIVE:
            lost = (now - datetime.fromisoformat(row.heartbeat)).total_seconds() > LOST
            state = "failed" if lost else "running"
        told = state == "running" and self._release.get(row.dataset, 0.0) == 0
        step, share = (row.step, row.share) if told else (None, None)
        return QuestionProgress(id=row.id, state=state, elapsed=elapsed, step=step, share=share)


def _stored(party: TrustedParty, plan: Plan, key: str, identity: Identity) -> Answer:
    """The answer to a question that was asked before; looking at it charges nothing and reads no data."""
    if party.key(plan) != key:
        raise Refused(DECLARED_ANEW)
    # It is stored by now, but this is the answer that was paid for.
    return replace(party.recall(plan, analyst=analyst(identity)), stored=False)


def analyst(identity: Identity) -> str | None:
    """The analyst who is charged beside the data set; None for the controller."""
    return None if identity.role is Role.CONTROLLER else identity.name


def caller(identity: Identity) -> str:
    """The caller as the ledger's table of running questions names them."""
    return f"{identity.role}:{identity.name}"

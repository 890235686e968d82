"""The queue where questions wait and run, off the event loop, and where their progress is followed.

Rules:

1. A question is refused before it is charged if too many are waiting. A refusal needs no place in the queue, so that
   its time tells nothing about the questions before it.
2. Once charged, a question is computed to its end even if its client has gone: the answer is in the ledger,
   and asking again gives it.
3. Answers and failures leave at public moments (``release_after``) and are put on record no earlier: until then a
   question is running for every caller at every process, and one that is cancelled gives no answer. One that leaves
   already cannot be cancelled, nor is a caller told that it was; the ledger's table of running questions decides which
   came first.
4. A question that outlasts its request is recorded in the ledger's table of running questions, so that every
   process of the server can show it and stop it. Cancelled or not, it stays charged.
5. What is planned and what is rendered is done in the caller's turn (``work_pool.Turns``). A question whose answer is
   stored is planned, read and rendered in one, and leaves nothing behind.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, TypeVar

from anyio.to_thread import run_sync

from idios.answer.projection import count_characters
from idios.config import Settings
from idios.core.exact import exact
from idios.data.cancellation import CancellationToken
from idios.errors import AnswerFailed, IdiosError, InvalidInput, LedgerError, QuestionRefused
from idios.ledger import Identity, RunningQuestion, StoredAnswer
from idios.ledger.operational import LIVE
from idios.model import Answer, QuestionProgress, QuestionRequest, QuestionState, Quote
from idios.model.answer import LONGEST_REPLY
from idios.party import TrustedParty
from idios.pipeline import Charged, DrawnAnswer
from idios.plan.question import Plan
from idios.server.auth import caller_name, charged_analyst
from idios.server.http_errors import CLOSING, DECLARED_ANEW, NO_SUCH_QUESTION, Refused
from idios.server.work_pool import Places, Turns

log = logging.getLogger("idios.server")

T = TypeVar("T")

MOST_EPSILON = 1000
"""Exact arithmetic with e^ε takes time and memory in proportion to ε, before any budget is looked at."""
LONGEST_ANSWER = 16 * 2**20
"""Bytes that an answer may have in any case."""
GROUP = 512
"""Bytes more for each group that the data set allows, as long as a client reads so much (``LONGEST_REPLY``)."""
UNTOLD = "running"
"""The step that is reported where a question's real step may not be told."""
HEARTBEAT = 1.0
"""Seconds between two heartbeats of a question that outlasts its request."""
LOST = 30.0
"""Seconds without a heartbeat after which a question's process is taken to be gone."""


def check_affordable(question: QuestionRequest) -> QuestionRequest:
    """Refuse a question that the server would have to work too long for, and return any other."""
    for name, given in (("epsilon", question.epsilon), ("then_check", question.then_check)):
        if given is not None and exact(given, name) > MOST_EPSILON:
            raise InvalidInput(
                f"{name} must be at most {MOST_EPSILON:,} here, which already protects no record; ask with less"
            )
    return question


def refuse_long_answer(plan: Plan) -> Plan:
    """Refuse a question whose answer may be longer than the server renders, and return any other.

    An answer is rendered anew, free, whenever it is asked for; its columns and their names are the analyst's choice.
    """
    length = count_characters(plan)
    most = min(LONGEST_REPLY, max(LONGEST_ANSWER, GROUP * plan.dataset.max_groups))
    if length > most:
        raise QuestionRefused(
            f"the answer may have up to {length:,} characters, and this server sends at most {most:,}: ask for fewer "
            "columns or groups, give columns shorter names, or show fewer rows with LIMIT"
        )
    return plan


@dataclass(eq=False)
class _Job:
    """One charged question that this process computes."""

    party: TrustedParty
    charged: Charged
    caller: str
    started: float
    first_release: float
    cancellation: CancellationToken = field(init=False)
    step: str = "waiting"
    share: float = 0.0
    cancelled: bool = False
    computed: bool = False
    may_leave: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when there is no other public moment to wait for."""
    id: str | None = None
    """Its id in the ledger's table of running questions, once it has outlasted its request."""
    leaving: bool = False
    """Whether its answer or failure is on its way out: it cannot be cancelled any more."""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while ``id`` or ``leaving`` is decided."""

    def __post_init__(self) -> None:
        self.cancellation = CancellationToken(self._report)

    def cancel(self) -> None:
        """Cancel it for its caller.

        It keeps its place until a public moment: a place that is free earlier would tell how long it took.
        """
        self.cancelled = True
        self.cancellation.cancel()

    def _report(self, step: str, share: float) -> None:
        self.step, self.share = step, share


class QuestionQueue:
    """The queue of one server process: it charges questions, computes them and gives their answers."""

    def __init__(
        self,
        party: TrustedParty,
        settings: Settings,
        release_seconds: Mapping[str, float],
        count_charge: Callable[[Charged], None],
        turns: Turns,
    ) -> None:
        self._count_charge = count_charge
        self._turns = turns
        self._running = party.ledger.running
        self._settings = settings
        self._release = release_seconds
        self._threads = ThreadPoolExecutor(settings.concurrent_questions, "question")
        self._places = Places(settings.concurrent_questions, settings.waiting_questions)
        self._jobs: dict[asyncio.Task[StoredAnswer], _Job] = {}
        self._followed: dict[str, _Job] = {}
        self._followers: set[asyncio.Task[None]] = set()
        self._closing = False

    @property
    def taken(self) -> int:
        """How many questions were taken in and have not left yet."""
        return self._places.taken

    async def ask(
        self,
        party: TrustedParty,
        question: QuestionRequest,
        identity: Identity,
        idempotency_key: str | None,
        wait: float,
        encode: Callable[[Answer], T],
    ) -> T | QuestionProgress:
        """Charge and answer a question; one that takes longer than ``wait`` seconds is answered later."""
        if self._closing:
            raise Refused(CLOSING)
        caller = caller_name(identity)
        self._places.take(caller)
        started = asyncio.get_running_loop().time()
        paying = {"analyst": charged_analyst(identity), "idempotency_key": idempotency_key}

        def plan_or_recall() -> Plan | tuple[Charged, T]:
            plan = plan_request(party, question, identity)
            if (charged := party.find_stored(plan, **paying)) is None:
                return plan
            return charged, encode(party.complete(charged))  # nothing is computed: it is stored

        try:
            planned = await self._turns.render(caller, plan_or_recall)
            if not isinstance(planned, Plan):
                self._count_charge(planned[0])
                self._places.give_back(caller)
                return planned[1]
            charged = await run_sync(lambda: party.reserve(planned, **paying))
            first_release = 0.0 if charged.stored else self._release.get(charged.dataset, 0.0)
            job = _Job(party, charged, caller, started, first_release)
        except BaseException:
            self._places.give_back(caller)
            raise
        self._count_charge(charged)
        task = asyncio.create_task(self._answer(job))
        self._jobs[task] = job
        task.add_done_callback(self._forget)
        left = max(0.0, wait - (asyncio.get_running_loop().time() - started))
        await asyncio.wait({task}, timeout=None if charged.stored else left)
        released = task.result() if task.done() else await self._follow(task, job, question, identity)
        if isinstance(released, QuestionProgress):
            return released

        def show() -> T:
            return encode(party.show(charged, released))

        return await self._turns.render(caller, show, charged=True)

    async def quote(
        self, party: TrustedParty, question: QuestionRequest, identity: Identity, encode: Callable[[Quote], T]
    ) -> T:
        """Say what a question would cost."""

        def price() -> T:
            plan = plan_request(party, question, identity)
            return encode(party.price(plan, analyst=charged_analyst(identity)))

        return await self._turns.render(caller_name(identity), price)

    async def find(
        self, party: TrustedParty, id: str, identity: Identity, encode: Callable[[QuestionProgress], T]
    ) -> T:
        """Find a question that outlasted its request, with its answer once there is one."""

        def look() -> T:
            row = self._find_own(id, identity)
            progress = self._progress(row)
            if progress.state != "answered":
                return encode(progress)
            question, key = decode_record(row.request)
            plan = plan_request(party, question, identity)
            return encode(replace(progress, answer=_recall(party, plan, key, identity)))

        return await self._turns.render(caller_name(identity), look)

    async def cancel(
        self, party: TrustedParty, id: str, identity: Identity, encode: Callable[[QuestionProgress], T]
    ) -> T:
        """Stop a question; it stays charged, and asking it again completes it without a new charge."""
        await run_sync(lambda: self._find_own(id, identity))
        stopped = await run_sync(lambda: self._running.cancel(id))
        if stopped and id in self._followed:
            self._followed[id].cancel()
        return await self.find(party, id, identity, encode)

    async def close(self) -> None:
        """Take nothing new, finish what can be finished in time, and stop the rest, which stays charged."""
        self._closing = True
        self._turns.stop()
        for job in self._jobs.values():
            if job.cancelled:
                job.may_leave.set()  # its place goes to no new question, so the time tells nothing
        tasks: set[asyncio.Task[Any]] = {*self._jobs, *self._followers}
        if tasks:
            log.info("closing", extra={"fields": {"questions": self.taken}})
            _, late = await asyncio.wait(tasks, timeout=self._settings.shutdown_seconds)
            if late:
                log.warning("stopping", extra={"fields": {"questions": self.taken}})
                # The end of the server is a public moment too: what is computed leaves now, the rest never.
                for job in self._jobs.values():
                    if not job.computed:
                        job.cancellation.cancel()
                    job.may_leave.set()
                await asyncio.wait(late, timeout=5)
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _answer(self, job: _Job) -> StoredAnswer:
        """Compute in a thread, wait for the next public moment, and only then record the answer or failure."""
        party, charged, cancellation = job.party, job.charged, job.cancellation
        try:
            drawn = DrawnAnswer() if charged.stored else await self._compute(job)
            try:
                await self._leave(job)
            except LedgerError as error:
                drawn = DrawnAnswer(error=error)  # released as a failure, which is recorded with its reason
            return await run_sync(party.release, charged, drawn, cancellation)
        except IdiosError:
            event = "question stopped" if job.cancelled else "question failed"
            log.warning(event, extra={"fields": {"question": charged.id}})
            raise
        except Exception as error:
            # Any error after the charge is reported as the one constant message, which tells nothing.
            log.error("unforeseen", extra={"fields": {"question": charged.id, "error": type(error).__name__}})
            raise AnswerFailed from None

    async def _compute(self, job: _Job) -> DrawnAnswer:
        """Compute in a thread, and keep the result until the next public moment."""
        loop = asyncio.get_running_loop()
        limit = loop.call_later(self._settings.question_seconds, job.cancellation.cancel)
        try:
            async with self._places.semaphore(job.caller):
                drawn = await loop.run_in_executor(self._threads, job.party.compute, job.charged, job.cancellation)
        finally:
            limit.cancel()
        job.computed = True
        await self._public_moment(job)
        return drawn

    async def _leave(self, job: _Job) -> None:
        """Let the question leave, unless it was cancelled at any process of the server."""
        async with job.lock:
            id = job.id
            if id is not None and not await run_sync(lambda: self._running.leave(id)):
                job.cancel()
            job.leaving = True

    async def _public_moment(self, job: _Job) -> None:
        """Wait for the next public moment."""
        elapsed = asyncio.get_running_loop().time() - job.started
        left = release_after(elapsed, job.first_release) - elapsed
        with suppress(TimeoutError):
            await asyncio.wait_for(job.may_leave.wait(), left)

    def _forget(self, task: asyncio.Task[StoredAnswer]) -> None:
        self._places.give_back(self._jobs[task].caller)
        del self._jobs[task]
        if not task.cancelled():
            task.exception()  # retrieve the exception to silence asyncio's warning

    async def _follow(
        self, task: asyncio.Task[StoredAnswer], job: _Job, question: QuestionRequest, identity: Identity
    ) -> StoredAnswer | QuestionProgress:
        """Record a question that outlasts its request, and keep that record up to date until it ends."""
        id = secrets.token_hex(16)
        record = encode_record(question, job.charged.key)
        async with job.lock:
            if not job.leaving:
                await run_sync(lambda: self._running.begin(id, caller_name(identity), job.charged.dataset, record))
                job.id = id
        if job.id is None:
            await asyncio.wait({task})  # only for its write to the ledger: it cannot be cancelled, so it needs no id
            return task.result()
        self._followed[id] = job
        follower = asyncio.create_task(self._report(id, task, job))
        self._followers.add(follower)
        follower.add_done_callback(self._followers.discard)
        elapsed = round(asyncio.get_running_loop().time() - job.started, 1)
        step, share = (None, None) if job.first_release else (job.step, job.share)
        return QuestionProgress(
            id=id, state=QuestionState.RUNNING, step=step, share=share, elapsed=elapsed, question=question
        )

    async def _report(self, id: str, task: asyncio.Task[StoredAnswer], job: _Job) -> None:
        """Report a question's progress with every heartbeat, and how it ended."""
        try:
            while not task.done():
                step, share = (UNTOLD, 0.0) if job.first_release else (job.step, job.share)
                if await self._record(self._running.report, id, step, share):
                    job.cancel()
                await asyncio.wait({task}, timeout=HEARTBEAT)
            state = "cancelled" if job.cancelled else "failed" if task.exception() else "answered"
            await self._record(self._running.end, id, state)
        finally:
            del self._followed[id]

    async def _record(self, write: Callable[..., T], *values: Any) -> T | None:
        """Write progress to the ledger; None if that failed, which does not end the question."""
        try:
            return await run_sync(write, *values)
        except IdiosError as error:
            # The answer itself is safe; a caller who finds the question lost asks again, free.
            log.error("progress not recorded", extra={"fields": {"error": type(error).__name__}})
            return None

    def _find_own(self, id: str, identity: Identity) -> RunningQuestion:
        row = self._running.find(id)
        if row is None or row.caller != caller_name(identity):
            raise Refused(NO_SUCH_QUESTION)
        return row

    def _progress(self, row: RunningQuestion) -> QuestionProgress:
        now = datetime.now(UTC)
        elapsed = round((now - datetime.fromisoformat(row.started)).total_seconds(), 1)
        state = row.state
        if row.cancel:
            state = "cancelled"
        elif state in LIVE:
            lost = (now - datetime.fromisoformat(row.heartbeat)).total_seconds() > LOST
            state = "failed" if lost else "running"
        question, _ = decode_record(row.request)
        progress = QuestionProgress(id=row.id, state=QuestionState(state), elapsed=elapsed, question=question)
        if state == "running" and self._release.get(row.dataset, 0.0) == 0:
            return replace(progress, step=row.step, share=row.share)
        return progress


def plan_request(party: TrustedParty, question: QuestionRequest, identity: Identity) -> Plan:
    """Plan a question, or a check of the answer that the caller has."""
    check_affordable(question)
    sql, epsilon, split = question.sql, question.epsilon, question.split
    if question.then_check is None:
        return refuse_long_answer(party.make_plan(sql, epsilon, split, question.check))
    if question.check is not None and exact(question.check, "check"):
        raise InvalidInput("then_check is for an answer that was given without a check: leave out check")
    plan = party.make_check_plan(sql, epsilon, question.then_check, split, analyst=charged_analyst(identity))
    return refuse_long_answer(plan)


def release_after(elapsed: float, first: float) -> float:
    """The moment, in seconds after the question, at which something ready after ``elapsed`` leaves: r, 2r, 4r, …

    How long a question takes depends on the data a little: a bracket that missed, a scale that was drawn from before,
    an empty selection. So an answer, a NULL and a failure all wait for the next of a few public moments; from the time
    an analyst learns log₂ of the longest over the shortest at most, and almost always nothing.

    >>> release_after(0.01, 0.25), release_after(0.3, 0.25), release_after(1.7, 0.25), release_after(1.7, 0)
    (0.25, 0.5, 2.0, 1.7)
    """
    if first <= 0:
        return elapsed
    moment = first
    while moment < elapsed:
        moment *= 2
    return moment


def encode_record(question: QuestionRequest, key: str) -> str:
    """Encode what is needed to find the answer later, for the ledger's table of running questions."""
    return json.dumps({"asked": asdict(question), "key": key}, ensure_ascii=True)


def decode_record(record: str) -> tuple[QuestionRequest, str]:
    """Decode the question that was asked, and the key of its answer."""
    decoded = json.loads(record)
    return QuestionRequest(**decoded["asked"]), decoded["key"]


def _recall(party: TrustedParty, plan: Plan, key: str, identity: Identity) -> Answer:
    """Recall the answer to a question that was asked before; this charges nothing and reads no data."""
    if party.key(plan) != key:
        raise Refused(DECLARED_ANEW)
    # It is stored by now, but this is the answer that was paid for.
    return replace(party.recall(plan, analyst=charged_analyst(identity)), stored=False)

"""Group commit: every caller gets its own result, no earlier than it is durable, and nobody else's fault."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import pytest

from idios.errors import BudgetExceeded, LedgerTampered, LedgerUnavailable, NotPermitted
from idios.ledger import Ledger, Reservation, StoredAnswer
from idios.ledger.state import Place as RowPlace
from idios.ledger.store import MOST, CommitQueue
from tests.ledger.ledger_place import Place, ask, kinds, people
from tests.ledger.ledger_worker import table
from tests.waiting import until


class Refusal(Exception):
    """Work that has changed nothing is refused."""


class Failure(Exception):
    """Something went wrong in the middle."""


@dataclass
class Attempt:
    """A transaction on a list: what is in it counts only once it is committed."""

    facts: list[str] = field(default_factory=list)
    appended: int = 0

    @property
    def store(self) -> Attempt:
        return self

    def fetch(self, places: Sequence[RowPlace]) -> None:
        pass

    def flush(self) -> None:
        pass

    def append(self, fact: str) -> str:
        self.appended += 1
        self.facts.append(fact)
        return fact


class List:
    """A list of committed transactions and its queue; `begin_fails` and `commit_fails` are raised once."""

    timeout = 10.0

    def __init__(self) -> None:
        self.committed: list[list[str]] = []
        self.undone = 0
        self.begin_fails: Exception | None = None
        self.commit_fails: Exception | None = None
        self.queue: CommitQueue[Attempt] = CommitQueue(self, self.begin)  # type: ignore[arg-type]

    def make_busy_error(self) -> LedgerUnavailable:
        return LedgerUnavailable("busy")

    @contextmanager
    def begin(self) -> Iterator[Attempt]:
        if self.begin_fails:
            error, self.begin_fails = self.begin_fails, None
            raise error
        attempt = Attempt()
        try:
            yield attempt
            if self.commit_fails:
                error, self.commit_fails = self.commit_fails, None
                raise error
        except BaseException:
            self.undone += 1
            raise
        self.committed.append(attempt.facts)

    def run(self, work: Callable[[Attempt], str]) -> str:
        """Do the work; what it appended is durable when the queue returns."""
        result = self.queue.run(work, ())
        assert any(result in facts for facts in self.committed)
        return result

    def add(self, fact: str) -> str:
        return self.run(appending(fact))

    def run_together(
        self, pool: ThreadPoolExecutor, *works: Callable[[Attempt], Any], first: Callable[[Attempt], Any]
    ) -> list[Future[Any]]:
        """Have the first work done while all the others wait, in their order."""
        leading, go = threading.Event(), threading.Event()

        def lead(attempt: Attempt) -> Any:
            if not leading.is_set():
                leading.set()
                go.wait(10)
            return first(attempt)

        futures = [pool.submit(self.run, lead)]
        assert leading.wait(10)
        for number, work in enumerate(works, start=1):
            futures.append(pool.submit(self.run, work))
            until(lambda number=number: len(self.queue._waiting) == number)
        go.set()
        return futures


def appending(fact: str) -> Callable[[Attempt], str]:
    return lambda attempt: attempt.append(fact)


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(MOST + 8) as threads:
        yield threads


def test_a_caller_who_is_alone_has_a_transaction_of_its_own() -> None:
    place = List()
    assert [place.add("a"), place.add("b")] == ["a", "b"]
    assert place.committed == [["a"], ["b"]]
    assert not place.queue._led


def test_those_who_wait_are_committed_together_in_their_order(pool: ThreadPoolExecutor) -> None:
    place = List()
    names = [f"{number}" for number in range(10)]
    futures = place.run_together(pool, *map(appending, names), first=appending("first"))
    assert [future.result(10) for future in futures] == ["first", *names]
    assert place.committed == [["first", *names]]


def test_no_more_than_a_limit_is_committed_together(pool: ThreadPoolExecutor) -> None:
    place = List()
    names = [f"{number}" for number in range(MOST + 3)]
    futures = place.run_together(pool, *map(appending, names), first=appending("first"))
    assert [future.result(10) for future in futures] == ["first", *names]
    assert [len(facts) for facts in place.committed] == [MOST, 4]


def test_a_refusal_is_its_callers_alone(pool: ThreadPoolExecutor) -> None:
    def refuse(attempt: Attempt) -> None:
        raise Refusal

    place = List()
    futures = place.run_together(pool, appending("a"), refuse, appending("b"), first=refuse)
    assert [type(future.exception(10)) for future in futures] == [Refusal, type(None), Refusal, type(None)]
    assert (place.committed, place.undone) == ([["a", "b"]], 0)


def test_work_that_fails_half_way_is_undone_and_the_others_is_done(pool: ThreadPoolExecutor) -> None:
    def fail(attempt: Attempt) -> None:
        attempt.append("half")
        raise Failure

    place = List()
    futures = place.run_together(pool, appending("a"), fail, appending("b"), first=appending("first"))
    assert [type(future.exception(10)) for future in futures] == [type(None), type(None), Failure, type(None)]
    assert (place.committed, place.undone) == ([["first"], ["a"], ["b"]], 2)


def test_a_commit_that_fails_is_told_to_all_whose_work_was_in_it(pool: ThreadPoolExecutor) -> None:
    place = List()
    place.commit_fails = LedgerUnavailable("no room")
    futures = place.run_together(pool, appending("a"), appending("b"), first=appending("first"))
    assert [str(future.exception(10)) for future in futures] == ["no room"] * 3
    assert len({id(future.exception()) for future in futures}) == 3  # each raises an error of its own
    assert place.committed == []
    assert place.add("next") == "next"


def test_without_a_transaction_only_the_leader_has_waited_in_vain() -> None:
    place = List()
    place.begin_fails = LedgerUnavailable("locked")
    with pytest.raises(LedgerUnavailable, match="locked"):
        place.add("a")
    assert place.add("b") == "b"


def test_an_interrupted_leader_leaves_the_work_of_the_others(pool: ThreadPoolExecutor) -> None:
    def interrupt(attempt: Attempt) -> None:
        until(lambda: len(place.queue._waiting) == 2)
        attempt.append("half")
        raise KeyboardInterrupt

    place = List()
    futures = place.run_together(pool, appending("a"), appending("b"), first=interrupt)
    assert isinstance(futures[0].exception(10), KeyboardInterrupt)
    assert [future.result(10) for future in futures[1:]] == ["a", "b"]
    assert (place.committed, place.undone) == ([["a", "b"]], 1)


def test_a_leader_interrupted_by_anothers_work_hands_it_on(pool: ThreadPoolExecutor) -> None:
    interrupted = threading.Event()

    def interrupt_once(attempt: Attempt) -> str:
        if not interrupted.is_set():
            interrupted.set()
            raise KeyboardInterrupt
        return attempt.append("b")

    place = List()
    futures = place.run_together(pool, appending("a"), interrupt_once, appending("c"), first=appending("first"))
    assert isinstance(futures[0].exception(10), KeyboardInterrupt)
    assert [future.result(10) for future in futures[1:]] == ["a", "b", "c"]
    assert place.committed == [["a", "b", "c"]]


def test_an_interrupted_wait_is_no_ones_lead(pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    place, leading, go = List(), threading.Event(), threading.Event()

    def lead(attempt: Attempt) -> str:
        leading.set()
        go.wait(10)
        return attempt.append("led")

    led = pool.submit(place.run, lead)
    assert leading.wait(10)
    with monkeypatch.context() as patched:
        patched.setattr("idios.ledger.store._Job.wait", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            place.add("never")
    go.set()
    assert led.result(10) == "led"
    assert place.add("next") == "next"
    assert place.committed == [["led"], ["next"]]


def test_a_caller_who_waits_too_long_is_told_and_its_work_is_not_done(pool: ThreadPoolExecutor) -> None:
    place, leading, go = List(), threading.Event(), threading.Event()
    place.timeout = 0.02

    def lead(attempt: Attempt) -> str:
        leading.set()
        go.wait(10)
        return attempt.append("led")

    led = pool.submit(place.run, lead)
    assert leading.wait(10)
    with pytest.raises(LedgerUnavailable, match="busy"):
        place.add("late")
    go.set()
    assert led.result(10) == "led"
    assert place.committed == [["led"]]
    assert place.add("next") == "next"


# The ledger itself.


def held(ledger: Ledger, pool: ThreadPoolExecutor, works: Sequence[Callable[[], Any]]) -> list[Future[Any]]:
    """Have all of these done while another transaction holds the ledger's lock, so that they wait together."""
    queue, futures = ledger._transactions._queue, list[Future[Any]]()
    with ledger._database.lock.hold(10):
        for number, work in enumerate(works):
            futures.append(pool.submit(work))
            until(lambda number=number: queue._led and len(queue._waiting) == number)
    return futures


def test_charges_that_wait_together_are_charged_as_if_one_by_one(ledger: Ledger, pool: ThreadPoolExecutor) -> None:
    charged = ledger.reserve(ask("answered", "1/4", analyst="ada"))
    assert isinstance(charged, Reservation)
    before = len(kinds(ledger))
    works: list[Callable[[], Any]] = [
        lambda: ledger.reserve(ask("one", "1/4", analyst="ada")),
        lambda: ledger.reserve(ask("one", "1/4", analyst="bob")),
        lambda: ledger.release(charged, table('{"draw": 1}')),
        lambda: ledger.release(charged, table('{"draw": 2}')),
        lambda: ledger.reserve(ask("answered", "1/4", analyst="bob"), idempotency_key="k"),
        lambda: ledger.reserve(ask("two", "1/2", analyst="ada")),
        lambda: ledger.reserve(ask("three", "1/4", analyst="ada")),
    ]
    one, shared, first, second, stored, two, three = held(ledger, pool, works)
    assert not one.result(10).joined
    assert shared.result(10).joined
    assert first.result(10).text == second.result(10).text == '{"draw": 1}'
    assert isinstance(stored.result(10), StoredAnswer)
    assert stored.result().text == '{"draw": 1}'
    assert isinstance(two.result(10), Reservation)
    assert isinstance(three.exception(10), BudgetExceeded)
    assert kinds(ledger)[before:] == ["reserved", "shared", "released", "shared", "reserved"]
    assert ledger.balance("people").epsilon.remaining == 0
    assert ledger.balance("people", "bob").epsilon.remaining == 0
    assert ledger.verify().ok
    with pytest.raises(BudgetExceeded):
        ledger.reserve(ask("four", "1/4", analyst="ada"))


def test_answers_to_one_charge_that_wait_together_are_the_first(ledger: Ledger, pool: ThreadPoolExecutor) -> None:
    charged = ledger.reserve(ask())
    assert isinstance(charged, Reservation)
    works = [lambda draw=draw: ledger.release(charged, table(f'{{"draw": {draw}}}')) for draw in range(3)]
    assert {future.result(10).text for future in held(ledger, pool, works)} == {'{"draw": 0}'}
    assert kinds(ledger).count("released") == 1


def test_one_tampered_row_does_not_keep_others_from_being_charged(
    place: Place, ledger: Ledger, pool: ThreadPoolExecutor
) -> None:
    asked = ask("payment", "1/8", analyst="bob")
    # A payment that no entry accounts for is found when the right one is written.
    place.execute("INSERT INTO idios_payments (key, analyst) VALUES (:key, 'bob')", key=asked.key)
    works = [
        lambda: ledger.reserve(ask("before", "1/8", analyst="ada")),
        lambda: ledger.reserve(asked),
        lambda: ledger.reserve(ask("after", "1/8", analyst="ada")),
    ]
    before, tampered, after = held(ledger, pool, works)
    assert isinstance(before.result(10), Reservation)
    assert isinstance(after.result(10), Reservation)
    assert isinstance(tampered.exception(10), LedgerTampered)
    assert ledger.balance("people").epsilon.spent == Fraction(1, 4)
    assert ledger.health.trouble is not None


def test_what_another_process_or_ledger_records_counts_at_once(place: Place, ledger: Ledger) -> None:
    assert ledger.balance("people").epsilon.remaining == 1
    token = ledger.issue_token("ada").secret
    name = ledger.authenticate(token).token
    with place.open() as another:
        charge = another.reserve(ask("elsewhere", "3/4", analyst="ada"))
        assert isinstance(charge, Reservation)
        assert ledger.balance("people").epsilon.remaining == Fraction(1, 4)
        with pytest.raises(BudgetExceeded):
            ledger.reserve(ask("here", "1/2", analyst="bob"))
        another.release(charge, table('{"draw": 1}'))
        assert ledger.reserve(ask("elsewhere", "3/4", analyst="ada")) == another.reserve(charge.request)
        another.withdraw("ada", "people")
        assert [balance.analyst for balance in ledger.grants()] == ["bob"]
        with pytest.raises(NotPermitted, match="withdrawn"):
            ledger.reserve(ask("elsewhere", "3/4", analyst="ada"))
        another.revoke_token(name)
        with pytest.raises(NotPermitted):
            ledger.authenticate(token)
    worker = place.worker("spend-and-die", 1)
    worker.communicate(timeout=60)
    assert ledger.balance("people").epsilon.remaining == Fraction(1, 4) - Fraction(1, 1000)


@pytest.mark.slow
def test_a_process_killed_while_many_are_charged_together(place: Place) -> None:
    with place.open() as ledger:
        ledger.declare(people())
    worker = place.worker("spend-and-die", 100)
    output, errors = worker.communicate(timeout=60)
    assert worker.returncode == -signal.SIGKILL, errors
    told = output.split()
    with place.open() as ledger:
        assert ledger.verify().ok
        reserved = kinds(ledger).count("reserved")
        # What a caller was told is on record. What is on record and was told to nobody is lost budget.
        assert 0 < len(told) <= reserved < 100
        assert ledger.balance("people").epsilon.spent == Fraction(reserved, 1000)
        for question in told:
            joined = ledger.reserve(ask(question, "1/1000"))
            assert isinstance(joined, Reservation)
            assert joined.joined
        assert kinds(ledger).count("reserved") == reserved

"""Many threads and processes spend one budget: fully, and never more."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import pytest

from idios.core.concentrated import find_largest_rho
from idios.errors import BudgetExceeded, LedgerUnavailable
from idios.ledger import Account, ChargeRequest, Ledger, Reservation, StoredAnswer
from idios.ledger.database import FairLock, get_fair_lock
from tests.ledger.ledger_place import Place, ask, finished, kinds, people
from tests.ledger.ledger_worker import table
from tests.waiting import until

THREADS = 16
PROCESSES = 4


@pytest.mark.slow
def test_sixteen_threads_in_each_of_four_processes_spend_one_budget(place: Place) -> None:
    most = find_largest_rho(Fraction(8), Fraction("1e-6"))
    budget = most // Fraction(1, 98)  # questions at ρ = 1/98, of 256 that are asked; ε allows 56 by itself
    with place.open() as ledger:
        ledger.declare(people(8, "1e-6", accounting="concentrated"))
        workers = [place.worker("spend", process, THREADS, 4) for process in range(PROCESSES)]
        for worker in workers:
            assert worker.stdin is not None
            worker.stdin.write("go\n")
            worker.stdin.flush()
        results = [finished(worker) for worker in workers]
        assert sum(charged for charged, _ in results) == budget
        assert sum(refused for _, refused in results) == PROCESSES * THREADS * 4 - budget
        balance = ledger.balance("people")
        assert balance.rho == Account(most, Fraction(budget, 98))
        assert Fraction(budget, 98) <= most < Fraction(budget + 1, 98)
        assert not balance.pure
        assert Counter(kinds(ledger)) == {"declared": 1, "reserved": budget, "released": budget}
        assert len(ledger.answers()) == budget
        assert ledger.verify(ledger.head()).ok


def test_sixteen_threads_of_one_ledger_spend_one_budget(ledger: Ledger) -> None:
    def ask_ten(thread: int) -> int:
        charged = 0
        for number in range(10):
            try:
                ledger.reserve(ask(f"question {thread} {number}", "1/50", analyst="ada"))
                charged += 1
            except BudgetExceeded:
                pass
        return charged

    with ThreadPoolExecutor(THREADS) as pool:
        assert sum(pool.map(ask_ten, range(THREADS))) == 50
    assert ledger.balance("people").epsilon.remaining == 0
    assert ledger.balance("people", "ada").epsilon.spent == 1
    assert ledger.verify().ok


def test_threads_that_ask_the_same_question_pay_once_and_get_one_answer(ledger: Ledger) -> None:
    together = threading.Barrier(THREADS)

    def ask_same(thread: int) -> str:
        together.wait()
        result = ledger.reserve(ask(analyst="ada" if thread % 2 else "bob"))
        if isinstance(result, Reservation):
            result = ledger.release(result, table(f'{{"draw": {thread}}}'))
        return result.text

    with ThreadPoolExecutor(THREADS) as pool:
        assert len(set(pool.map(ask_same, range(THREADS)))) == 1
    assert ledger.balance("people").epsilon.spent == Fraction(1, 4)
    assert ledger.balance("people", "ada").epsilon.spent == Fraction(1, 4)
    assert ledger.balance("people", "bob").epsilon.spent == Fraction(1, 4)
    assert Counter(kinds(ledger))["released"] == 1


def test_readers_see_a_consistent_ledger_while_others_write(ledger: Ledger) -> None:
    stop = threading.Event()

    def read() -> int:
        reads = 0
        while not stop.is_set():
            assert ledger.verify().ok
            reads += 1
        return reads

    with ThreadPoolExecutor(3) as pool:
        readers = [pool.submit(read) for _ in range(3)]
        try:
            for number in range(40):
                charge = ledger.reserve(ask(f"question {number}", "1/50"))
                assert isinstance(charge, Reservation)
                ledger.release(charge, table("{}"))
        finally:
            stop.set()
        assert all(reader.result() > 0 for reader in readers)


def test_an_in_memory_ledger_serves_threads_too() -> None:
    with Ledger.open("sqlite://") as ledger, ThreadPoolExecutor(8) as pool:
        ledger.declare(people())
        list(pool.map(lambda number: ledger.reserve(ask(f"question {number}", "1/40")), range(40)))
        assert ledger.balance("people").epsilon.remaining == 0
        assert all(pool.map(lambda _: ledger.verify().ok, range(8)))


def test_a_fair_lock_serves_in_order() -> None:
    lock, served = FairLock(), list[int]()

    def pass_through(number: int) -> None:
        with lock.hold(10) as entered:
            assert entered
            served.append(number)

    threads = [threading.Thread(target=pass_through, args=(number,)) for number in range(20)]
    with lock.hold(10):
        for waiting, thread in enumerate(threads):
            thread.start()
            until(lambda waiting=waiting: len(lock._waiting) > waiting)
    for thread in threads:
        thread.join()
    assert served == list(range(20))


def test_a_fair_lock_gives_up_and_stays_usable() -> None:
    lock = FairLock()
    with lock.hold(1) as first, lock.hold(0.01) as second:
        assert (first, second) == (True, False)
    with lock.hold(0.01) as again:
        assert again


def test_a_turn_given_too_late_goes_to_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    lock = FairLock()

    class Gate:
        """Opens at the very moment its owner stops waiting."""

        def acquire(self, timeout: float | None = None) -> bool:
            if timeout is not None:
                lock._release()
            return timeout is None

        def release(self) -> None:
            pass

    assert lock._acquire(1)
    with monkeypatch.context() as patched:
        patched.setattr("idios.ledger.database.threading.Lock", Gate)
        assert not lock._acquire(1)
    with lock.hold(0.01) as entered:
        assert entered


def test_a_database_has_one_fair_lock_in_a_process() -> None:
    one = get_fair_lock("here")
    assert get_fair_lock("here") is one
    assert get_fair_lock("there") is not one


def test_a_thread_that_waits_too_long_is_told(place: Place) -> None:
    inside, leave = threading.Event(), threading.Event()
    with place.open() as slow, place.open(timeout=0.05) as hurried:
        slow.declare(people())

        def hold() -> None:
            with slow._transactions.writing():
                inside.set()
                leave.wait(10)

        holder = threading.Thread(target=hold)
        holder.start()
        inside.wait(10)
        try:
            with pytest.raises(LedgerUnavailable, match=r"was busy for 0\.05 seconds; try again; nothing was recorded"):
                hurried.reserve(ask())
        finally:
            leave.set()
            holder.join()
        assert isinstance(hurried.reserve(ask()), Reservation)


def test_what_needs_no_writing_does_not_wait_for_writers(sqlite_place: Place) -> None:
    """A refusal and an answer that is paid for come while another transaction holds the ledger's lock."""
    with sqlite_place.open() as ledger:
        ledger.declare(people())
        known = ChargeRequest("people", "1", None, "known", Fraction(1, 4))
        charge = ledger.reserve(known)
        assert isinstance(charge, Reservation)
        ledger.release(charge, table("{}"))
        with ledger._database.writing():
            assert isinstance(ledger.reserve(known), StoredAnswer)
            with pytest.raises(BudgetExceeded):
                ledger.reserve(ChargeRequest("people", "1", None, "dear", Fraction(5)))

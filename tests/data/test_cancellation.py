"""A cancellation token: progress goes out, a stop comes in, and no interrupt hits what it was not meant for."""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from idios.core.statistics import Median
from idios.data.backend import open_source
from idios.data.cancellation import CancellationToken, Cancelled
from idios.data.connection_pool import AT_ONCE, CancellableSemaphore, Connection, ConnectionPool
from idios.data.engines.duckdb import DuckDbConnection
from idios.errors import SourceError
from tests.conformance.plans import dataset, plan, whole
from tests.waiting import until

SLOW = "SELECT sum(i % 7) FROM range(1000000000000) AS r(i)"
WAIT = 20.0


def test_steps_are_told_until_the_stop() -> None:
    told: list[tuple[str, float]] = []
    cancellation = CancellationToken(lambda step, share: told.append((step, share)))
    cancellation.step("scanning", 0.2)
    assert not cancellation.cancelled
    cancellation.cancel()
    cancellation.cancel()
    with pytest.raises(Cancelled):
        cancellation.step("sorting", 0.6)
    assert told == [("scanning", 0.2)]


def test_the_callback_may_cancel() -> None:
    cancellation = CancellationToken(lambda step, share: cancellation.cancel())
    with pytest.raises(Cancelled):
        cancellation.step("scanning", 0.2)


def test_a_stop_interrupts_until_the_end_and_never_after() -> None:
    """An engine forgets interrupts that come before its statement begins, so they are repeated."""
    cancellation, interrupts = CancellationToken(), []

    def statement() -> None:
        cancellation.cancel()
        until(lambda: len(interrupts) >= 3)

    with pytest.raises(Cancelled), cancellation.interruptible(lambda: interrupts.append(1)):
        statement()
    sent = len(interrupts)
    time.sleep(0.2)  # time in which another interrupt would come: that none does is the subject
    assert len(interrupts) == sent


def test_a_stop_outside_interrupts_nothing() -> None:
    cancellation, interrupts = CancellationToken(), []
    with cancellation.interruptible(lambda: interrupts.append(1)):
        pass
    cancellation.cancel()
    entered = False
    with pytest.raises(Cancelled), cancellation.interruptible(lambda: interrupts.append(2)):
        entered = True
    time.sleep(0.2)  # time in which an interrupt would come: that none does is the subject
    assert not interrupts
    assert not entered


def test_the_end_waits_for_an_interrupt_on_its_way() -> None:
    cancellation, began, over = CancellationToken(), Event(), []

    def slow() -> None:
        began.set()
        time.sleep(0.3)  # longer than the statement takes to end
        over.append(1)

    def statement() -> None:
        cancellation.cancel()
        began.wait(WAIT)

    with pytest.raises(Cancelled), cancellation.interruptible(slow):
        statement()
    assert over


def test_only_the_errors_of_a_stop_are_stops() -> None:
    cancellation = CancellationToken()

    def stopped() -> None:
        cancellation.cancel()
        _ = 1 // 0

    with pytest.raises(ZeroDivisionError), cancellation.interruptible(lambda: None):
        _ = 1 // 0
    with pytest.raises(Cancelled) as caught, cancellation.interruptible(lambda: None):
        stopped()
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_an_interrupt_that_fails_is_tried_again() -> None:
    cancellation, tries = CancellationToken(), []

    def failing() -> None:
        tries.append(1)
        raise OSError("gone")

    def statement() -> None:
        cancellation.cancel()
        until(lambda: len(tries) >= 2)

    with pytest.raises(Cancelled), cancellation.interruptible(failing):
        statement()


def test_waiting_can_be_stopped() -> None:
    semaphore, cancellation = CancellableSemaphore(1), CancellationToken()

    def enter() -> None:
        with semaphore.acquire(cancellation):
            pytest.fail("there was no place")

    with ThreadPoolExecutor(1) as pool:
        with semaphore.acquire(CancellationToken()):
            waiting = pool.submit(enter)
            until(lambda: cancellation._action)
            cancellation.cancel()
            with pytest.raises(Cancelled):
                waiting.result(WAIT)
        with semaphore.acquire(CancellationToken()):  # the place was not lost
            pass


def test_no_place_is_lost_by_stops() -> None:
    """Many come, wait, and are stopped at any moment: before, while and after they get their place."""
    semaphore = CancellableSemaphore(2)

    def once(i: int) -> bool:
        cancellation = CancellationToken()
        with ThreadPoolExecutor(1) as other:
            other.submit(lambda: (time.sleep(i % 5 / 2000), cancellation.cancel()))
            try:
                with semaphore.acquire(cancellation):
                    time.sleep(0.001)
            except Cancelled:
                return True
        return False

    with ThreadPoolExecutor(8) as pool:
        stopped = list(pool.map(once, range(300)))
    assert any(stopped)
    semaphore.wait_until_empty()
    with semaphore.acquire(CancellationToken()), semaphore.acquire(CancellationToken()):
        pass


class _FakeConnection(Connection):
    def __init__(self) -> None:
        self.closed = False
        super().__init__()

    def run(self, statement: Any) -> Any: ...

    def interrupt(self) -> None: ...

    def close(self) -> None:
        self.closed = True


def test_a_pool_opens_what_it_needs_and_closes_when_all_are_back() -> None:
    opened: list[_FakeConnection] = []

    def open_one() -> _FakeConnection:
        opened.append(_FakeConnection())
        return opened[-1]

    pool = ConnectionPool(open_one, 2)
    for _ in range(3):
        with pool.acquire(CancellationToken()):
            pass
    assert len(opened) == 1
    with ThreadPoolExecutor(1) as threads:
        with pool.acquire(CancellationToken()) as first, pool.acquire(CancellationToken()) as second:
            assert first is not second
            closing: Future[None] = threads.submit(pool.close)
            time.sleep(0.1)  # time in which the pool would close: that it does not is the subject
            assert not closing.done()
            assert not any(connection.closed for connection in opened)
        closing.result(WAIT)
    assert [connection.closed for connection in opened] == [True, True]
    with pytest.raises(SourceError, match="closed"), pool.acquire(CancellationToken()):
        pass


def test_a_channel_that_cannot_be_opened_takes_no_place() -> None:
    def failing() -> Connection:
        raise SourceError("no server")

    pool = ConnectionPool(failing, 1)
    for _ in range(3):
        with pytest.raises(SourceError, match="no server"), pool.acquire(CancellationToken()):
            pass


VALUES = list(range(1001))


def csv_source(directory: Path) -> Path:
    path = directory / "n.csv"
    path.write_text("n\n" + "\n".join(map(str, VALUES)))
    return path


def test_a_text_file_is_read_when_it_is_opened_and_never_again(tmp_path: Path) -> None:
    data, told, path = dataset(whole("n")), [], csv_source(tmp_path)
    with open_source(path, data, lambda step, share: told.append(step)) as backend, ThreadPoolExecutor(AT_ONCE) as pool:
        assert set(told) == {"reading the file"}
        told.clear()
        path.unlink()
        found = list(pool.map(lambda _: backend.summarise(plan(data, (Median(), "n"))), range(12)))
    assert "reading the file" not in told
    assert all(one == found[0] for one in found)


@pytest.mark.parametrize("kind", ["frame", "csv"])
def test_a_frame_is_known_to_every_cursor(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many at a time as there are cursors, none of which is given back before all are taken."""
    data = dataset(whole("n"))
    source: Any = {"n": VALUES} if kind == "frame" else csv_source(tmp_path)
    inside: list[Connection] = []
    run = DuckDbConnection.run

    def together(self: DuckDbConnection, statement: Any) -> Any:
        if self not in inside:
            inside.append(self)
            until(lambda: len(inside) == AT_ONCE)
        return run(self, statement)

    with open_source(source, data) as backend, ThreadPoolExecutor(AT_ONCE) as pool:
        monkeypatch.setattr(DuckDbConnection, "run", together)
        asked = plan(data, (Median(), "n"))
        found = list(pool.map(lambda _: backend.summarise(asked), range(AT_ONCE)))
    assert len(set(map(id, inside))) == AT_ONCE
    assert all(one == found[0] for one in found)

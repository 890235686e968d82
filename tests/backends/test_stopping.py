"""A question's watch: progress goes out, a stop comes in, and no interrupt hits what it was not meant for."""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from idios.backends.base import open_source
from idios.backends.channel import AT_ONCE, Channel, Gate, Pool
from idios.backends.duckdb import DuckDbChannel
from idios.backends.progress import Stopped, Watch
from idios.core.statistics import Median
from idios.errors import SourceError
from tests.conformance.plans import dataset, plan, whole
from tests.waiting import until

SLOW = "SELECT sum(i % 7) FROM range(1000000000000) AS r(i)"
WAIT = 20.0


def test_steps_are_told_until_the_stop() -> None:
    told: list[tuple[str, float]] = []
    watch = Watch(lambda step, share: told.append((step, share)))
    watch.step("scanning", 0.2)
    assert not watch.stopped
    watch.stop()
    watch.stop()
    with pytest.raises(Stopped):
        watch.step("sorting", 0.6)
    assert told == [("scanning", 0.2)]


def test_whoever_is_told_may_stop() -> None:
    watch = Watch(lambda step, share: watch.stop())
    with pytest.raises(Stopped):
        watch.step("scanning", 0.2)


def test_a_stop_interrupts_until_the_end_and_never_after() -> None:
    """An engine forgets interrupts that come before its statement begins, so they are repeated."""
    watch, interrupts = Watch(), []

    def statement() -> None:
        watch.stop()
        until(lambda: len(interrupts) >= 3)

    with pytest.raises(Stopped), watch.interruptible(lambda: interrupts.append(1)):
        statement()
    sent = len(interrupts)
    time.sleep(0.2)  # time in which another interrupt would come: that none does is the subject
    assert len(interrupts) == sent


def test_a_stop_outside_interrupts_nothing() -> None:
    watch, interrupts = Watch(), []
    with watch.interruptible(lambda: interrupts.append(1)):
        pass
    watch.stop()
    entered = False
    with pytest.raises(Stopped), watch.interruptible(lambda: interrupts.append(2)):
        entered = True
    time.sleep(0.2)  # time in which an interrupt would come: that none does is the subject
    assert not interrupts
    assert not entered


def test_the_end_waits_for_an_interrupt_on_its_way() -> None:
    watch, began, over = Watch(), Event(), []

    def slow() -> None:
        began.set()
        time.sleep(0.3)  # longer than the statement takes to end
        over.append(1)

    def statement() -> None:
        watch.stop()
        began.wait(WAIT)

    with pytest.raises(Stopped), watch.interruptible(slow):
        statement()
    assert over


def test_only_the_errors_of_a_stop_are_stops() -> None:
    watch = Watch()

    def stopped() -> None:
        watch.stop()
        _ = 1 // 0

    with pytest.raises(ZeroDivisionError), watch.interruptible(lambda: None):
        _ = 1 // 0
    with pytest.raises(Stopped) as caught, watch.interruptible(lambda: None):
        stopped()
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_an_interrupt_that_fails_is_tried_again() -> None:
    watch, tries = Watch(), []

    def failing() -> None:
        tries.append(1)
        raise OSError("gone")

    def statement() -> None:
        watch.stop()
        until(lambda: len(tries) >= 2)

    with pytest.raises(Stopped), watch.interruptible(failing):
        statement()


def test_waiting_can_be_stopped() -> None:
    gate, watch = Gate(1), Watch()

    def enter() -> None:
        with gate.entered(watch):
            pytest.fail("there was no place")

    with ThreadPoolExecutor(1) as pool:
        with gate.entered(Watch()):
            waiting = pool.submit(enter)
            until(lambda: watch._action)
            watch.stop()
            with pytest.raises(Stopped):
                waiting.result(WAIT)
        with gate.entered(Watch()):  # the place was not lost
            pass


def test_no_place_is_lost_by_stops() -> None:
    """Many come, wait, and are stopped at any moment: before, while and after they get their place."""
    gate = Gate(2)

    def once(i: int) -> bool:
        watch = Watch()
        with ThreadPoolExecutor(1) as other:
            other.submit(lambda: (time.sleep(i % 5 / 2000), watch.stop()))
            try:
                with gate.entered(watch):
                    time.sleep(0.001)
            except Stopped:
                return True
        return False

    with ThreadPoolExecutor(8) as pool:
        stopped = list(pool.map(once, range(300)))
    assert any(stopped)
    gate.wait_until_empty()
    with gate.entered(Watch()), gate.entered(Watch()):
        pass


class _Channel(Channel):
    def __init__(self) -> None:
        self.closed = False
        super().__init__(None)

    def run(self, statement: Any) -> Any: ...

    def interrupt(self) -> None: ...

    def close(self) -> None:
        self.closed = True


def test_a_pool_opens_what_it_needs_and_closes_when_all_are_back() -> None:
    opened: list[_Channel] = []

    def open_one() -> _Channel:
        opened.append(_Channel())
        return opened[-1]

    pool = Pool(open_one, 2)
    for _ in range(3):
        with pool.channel(Watch()):
            pass
    assert len(opened) == 1
    with ThreadPoolExecutor(1) as threads:
        with pool.channel(Watch()) as first, pool.channel(Watch()) as second:
            assert first is not second
            closing: Future[None] = threads.submit(pool.close)
            time.sleep(0.1)  # time in which the pool would close: that it does not is the subject
            assert not closing.done()
            assert not any(channel.closed for channel in opened)
        closing.result(WAIT)
    assert [channel.closed for channel in opened] == [True, True]
    with pytest.raises(SourceError, match="closed"), pool.channel(Watch()):
        pass


def test_a_channel_that_cannot_be_opened_takes_no_place() -> None:
    def failing() -> Channel:
        raise SourceError("no server")

    pool = Pool(failing, 1)
    for _ in range(3):
        with pytest.raises(SourceError, match="no server"), pool.channel(Watch()):
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
    inside: list[Channel] = []
    run = DuckDbChannel.run

    def together(self: DuckDbChannel, statement: Any) -> Any:
        if self not in inside:
            inside.append(self)
            until(lambda: len(inside) == AT_ONCE)
        return run(self, statement)

    with open_source(source, data) as backend, ThreadPoolExecutor(AT_ONCE) as pool:
        monkeypatch.setattr(DuckDbChannel, "run", together)
        asked = plan(data, (Median(), "n"))
        found = list(pool.map(lambda _: backend.summarise(asked), range(AT_ONCE)))
    assert len(set(map(id, inside))) == AT_ONCE
    assert all(one == found[0] for one in found)

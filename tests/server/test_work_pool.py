"""Callers take turns, and what is free cannot be used to keep others out."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from idios.expressions.work import Work
from idios.party import TrustedParty
from idios.server import work_pool
from idios.server.http_errors import BUSY, Refused
from idios.server.work_pool import EACH, FairPool
from tests.server.office import MEDIAN, Office
from tests.waiting import until


def test_lanes_are_served_in_turn() -> None:
    done: list[str] = []

    async def main() -> None:
        pool = FairPool(1, 10, BUSY)
        held = threading.Event()

        def work(name: str) -> Callable[[], None]:
            return lambda: (held.wait(20), done.append(name))[1]

        tasks = [asyncio.create_task(pool.run("ada", work(f"ada {i}"))) for i in range(4)]
        await asyncio.sleep(0)
        tasks += [asyncio.create_task(pool.run(name, work(f"{name} {i}"))) for name in ("bob", "eve") for i in range(2)]
        await asyncio.sleep(0)
        held.set()
        await asyncio.gather(*tasks)

    asyncio.run(main())
    assert done == ["ada 0", "bob 0", "eve 0", "ada 1", "bob 1", "eve 1", "ada 2", "ada 3"]


def test_one_caller_never_has_every_thread() -> None:
    async def main() -> None:
        pool = FairPool(2, 10, BUSY)
        held = threading.Event()
        slow = [asyncio.create_task(pool.run("ada", lambda: held.wait(20))) for _ in range(5)]
        await asyncio.sleep(0)
        assert await asyncio.wait_for(pool.run("bob", lambda: "served"), 10) == "served"
        held.set()
        await asyncio.gather(*slow)

    asyncio.run(main())


def test_a_full_lane_refuses_and_other_lanes_do_not() -> None:
    async def main() -> None:
        pool = FairPool(1, 2, BUSY)
        held = threading.Event()
        tasks = [asyncio.create_task(pool.run("ada", lambda: held.wait(20))) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(Refused):
            await pool.run("ada", lambda: None)
        other = asyncio.create_task(pool.run("bob", lambda: 7))
        await asyncio.sleep(0)
        held.set()
        assert await other == 7
        await asyncio.gather(*tasks)
        assert await pool.run("ada", lambda: 8) == 8

    asyncio.run(main())


def test_a_request_that_is_cancelled_while_a_thread_becomes_free() -> None:
    """A cancelled request has not left its lane yet when the thread is given to the next one."""

    async def main() -> None:
        pool = FairPool(1, 10, BUSY)
        await pool._wait_for_turn("ada")  # has the only thread
        gone = asyncio.create_task(pool.run("bob", lambda: "never"))
        following = asyncio.create_task(pool.run("eve", lambda: "served"))
        await asyncio.sleep(0)
        gone.cancel()
        pool._end_turn("ada")
        assert await asyncio.wait_for(following, 10) == "served"
        with pytest.raises(asyncio.CancelledError):
            await gone
        assert await asyncio.wait_for(pool.run("bob", lambda: "again"), 10) == "again"

    asyncio.run(main())


def test_whoever_gives_up_leaves_the_lane() -> None:
    async def main() -> None:
        pool = FairPool(1, 2, BUSY)
        held = threading.Event()
        first = asyncio.create_task(pool.run("ada", lambda: held.wait(20)))
        second = asyncio.create_task(pool.run("ada", lambda: None))
        await asyncio.sleep(0)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        third = asyncio.create_task(pool.run("ada", lambda: 3))
        await asyncio.sleep(0)
        held.set()
        assert await third == 3
        assert await first is True
        # one whose turn has come and who is cancelled before taking it passes the turn on
        fourth = asyncio.create_task(pool.run("ada", lambda: 4))
        fifth = asyncio.create_task(pool.run("bob", lambda: 5))
        await asyncio.sleep(0)
        fourth.cancel()
        assert await fifth == 5
        assert await pool.run("ada", lambda: 6) == 6

    asyncio.run(main())


@pytest.mark.parametrize("path", ["/v1/quote", "/v1/query"])
def test_a_flood_of_slow_plans_keeps_nobody_out(office: Office, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    """Planning is held for as long as the others are served: before, it held every thread of the process."""
    begun: list[str] = []
    opened = threading.Event()
    original = TrustedParty.make_plan

    def held(party: Any, sql: str, *given: Any) -> Any:
        begun.append(sql)
        assert opened.wait(30)
        return original(party, sql, *given)

    monkeypatch.setattr(TrustedParty, "make_plan", held)
    statuses: list[int] = []

    def send(who: str, sql: str) -> None:
        statuses.append(office.call("POST", path, who, json={"sql": sql, "epsilon": "0.05"}).status_code)

    # More than a process has threads for requests.
    flood = [threading.Thread(target=send, args=("ada", MEDIAN)) for _ in range(45)]
    for thread in flood:
        thread.start()
    try:
        until(lambda: begun)
        assert office.call("GET", "/v1/budget", "bob").status_code == 200
        assert office.call("GET", "/readyz", None).status_code == 200
        assert office.call("GET", "/healthz", None).status_code == 200
        assert begun == [MEDIAN]
        other = threading.Thread(target=send, args=("grace", MEDIAN + " WHERE age > 1"))
        other.start()
        until(lambda: "controller:grace" in office.service.turns._waiting)
    finally:
        opened.set()
        for thread in flood:
            thread.join()
    other.join()
    assert statuses == [200] * 46
    assert begun[1] == MEDIAN + " WHERE age > 1", "another caller's question waits behind one plan, not behind all"


def test_a_flood_of_sandbox_questions_keeps_nobody_out(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = threading.Event()
    original = TrustedParty.try_out

    def held(*given: Any, **named: Any) -> Any:
        opened.wait(20)
        return original(*given, **named)

    monkeypatch.setattr(TrustedParty, "try_out", held)
    statuses: list[int] = []

    def flood() -> None:
        reply = office.call("POST", "/v1/sandbox", json={"sql": MEDIAN, "epsilon": "1"})
        statuses.append(reply.status_code)

    # More than a process has threads for requests.
    threads = [threading.Thread(target=flood) for _ in range(50)]
    for thread in threads:
        thread.start()
    try:
        until(lambda: len(statuses) >= 50 - EACH)
        assert statuses == [503] * (50 - EACH)
        assert office.call("GET", "/v1/me", "bob").status_code == 200
        assert office.ask().status_code == 200
    finally:
        opened.set()
        for thread in threads:
            thread.join()
    assert statuses.count(200) == EACH
    assert office.call("POST", "/v1/sandbox", json={"sql": MEDIAN, "epsilon": "1"}).status_code == 200


@pytest.mark.parametrize("path", ["/v1/quote", "/v1/sandbox", "/v1/query"])
@pytest.mark.parametrize("epsilon", ["1000.5", "1e8", "1e400", 10**12])
def test_an_epsilon_beyond_reason_is_refused_at_once(office: Office, path: str, epsilon: str | int) -> None:
    began = time.monotonic()
    reply = office.call("POST", path, json={"sql": MEDIAN, "epsilon": epsilon})
    assert (reply.status_code, reply.json()["error"]["code"]) == (422, "invalid_request")
    assert "1,000" in reply.json()["error"]["message"]
    assert time.monotonic() - began < 30  # it took more than a minute


def test_a_sandbox_question_that_takes_too_long_is_stopped(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work_pool, "LONGEST", 0.1)
    shares = ", ".join(f"PERCENTILE_DISC(age, {i / 20})" for i in range(1, 20))
    sql = f"SELECT BIN(age, 1), {shares} FROM people GROUP BY BIN(age, 1)"
    reply = office.call("POST", "/v1/sandbox", json={"sql": sql, "epsilon": "100"})
    assert (reply.status_code, reply.json()["error"]["code"]) == (422, "invalid_request")
    assert "sandbox" in reply.json()["error"]["message"]


def test_planning_that_takes_too_long_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next question waits no longer than the deadline of the one before."""
    monkeypatch.setattr("idios.server.work_pool.LONGEST", 0.3)

    threads: list[threading.Thread] = []

    def plan_for_ever() -> None:
        threads.append(threading.current_thread())
        work = Work()
        while True:
            work.spend(0)

    async def main() -> None:
        pool = FairPool(1, 2, BUSY)
        with pytest.raises(Refused, match="invalid_request"):
            await pool.run("ada", plan_for_ever)
        task = asyncio.create_task(pool.run("ada", plan_for_ever))
        await asyncio.sleep(0.05)
        task.cancel()  # its caller is gone
        assert await asyncio.wait_for(pool.run("bob", lambda: "planned"), 10) == "planned"

    asyncio.run(main())
    until(lambda: not any(thread.is_alive() for thread in threads))

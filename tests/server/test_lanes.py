"""Callers take turns: no caller's work waits behind all the work of another."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from idios.party import TrustedParty
from idios.server.lanes import Lanes
from idios.server.problems import BUSY, Refused
from tests.server.office import MEDIAN, Office
from tests.waiting import until


def test_lanes_are_served_in_turn() -> None:
    done: list[str] = []

    async def main() -> None:
        lanes = Lanes(1, 10, BUSY)
        held = threading.Event()

        def work(name: str) -> Callable[[], None]:
            return lambda: (held.wait(20), done.append(name))[1]

        tasks = [asyncio.create_task(lanes.run("ada", work(f"ada {i}"))) for i in range(4)]
        await asyncio.sleep(0)
        tasks += [
            asyncio.create_task(lanes.run(name, work(f"{name} {i}"))) for name in ("bob", "eve") for i in range(2)
        ]
        await asyncio.sleep(0)
        held.set()
        await asyncio.gather(*tasks)

    asyncio.run(main())
    assert done == ["ada 0", "bob 0", "eve 0", "ada 1", "bob 1", "eve 1", "ada 2", "ada 3"]


def test_one_caller_never_has_every_thread() -> None:
    async def main() -> None:
        lanes = Lanes(2, 10, BUSY)
        held = threading.Event()
        slow = [asyncio.create_task(lanes.run("ada", lambda: held.wait(20))) for _ in range(5)]
        await asyncio.sleep(0)
        assert await asyncio.wait_for(lanes.run("bob", lambda: "served"), 10) == "served"
        held.set()
        await asyncio.gather(*slow)

    asyncio.run(main())


def test_a_full_lane_refuses_and_other_lanes_do_not() -> None:
    async def main() -> None:
        lanes = Lanes(1, 2, BUSY)
        held = threading.Event()
        tasks = [asyncio.create_task(lanes.run("ada", lambda: held.wait(20))) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(Refused):
            await lanes.run("ada", lambda: None)
        other = asyncio.create_task(lanes.run("bob", lambda: 7))
        await asyncio.sleep(0)
        held.set()
        assert await other == 7
        await asyncio.gather(*tasks)
        assert await lanes.run("ada", lambda: 8) == 8

    asyncio.run(main())


def test_a_request_that_is_cancelled_while_a_thread_becomes_free() -> None:
    """A cancelled request has not left its lane yet when the thread is given to the next one."""

    async def main() -> None:
        lanes = Lanes(1, 10, BUSY)
        await lanes._turn("ada")  # has the only thread
        gone = asyncio.create_task(lanes.run("bob", lambda: "never"))
        next_one = asyncio.create_task(lanes.run("eve", lambda: "served"))
        await asyncio.sleep(0)
        gone.cancel()
        lanes._leave("ada")
        assert await asyncio.wait_for(next_one, 10) == "served"
        with pytest.raises(asyncio.CancelledError):
            await gone
        assert await asyncio.wait_for(lanes.run("bob", lambda: "again"), 10) == "again"

    asyncio.run(main())


def test_whoever_gives_up_leaves_the_lane() -> None:
    async def main() -> None:
        lanes = Lanes(1, 2, BUSY)
        held = threading.Event()
        first = asyncio.create_task(lanes.run("ada", lambda: held.wait(20)))
        second = asyncio.create_task(lanes.run("ada", lambda: None))
        await asyncio.sleep(0)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        third = asyncio.create_task(lanes.run("ada", lambda: 3))
        await asyncio.sleep(0)
        held.set()
        assert await third == 3
        assert await first is True
        # one whose turn has come and who is cancelled before taking it passes the turn on
        fourth = asyncio.create_task(lanes.run("ada", lambda: 4))
        fifth = asyncio.create_task(lanes.run("bob", lambda: 5))
        await asyncio.sleep(0)
        fourth.cancel()
        assert await fifth == 5
        assert await lanes.run("ada", lambda: 6) == 6

    asyncio.run(main())


@pytest.mark.parametrize("path", ["/v1/quote", "/v1/query"])
def test_a_flood_of_slow_plans_keeps_nobody_out(office: Office, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    """Planning is held for as long as the others are served: before, it held every thread of the process."""
    begun: list[str] = []
    opened = threading.Event()
    original = TrustedParty.plan

    def held(party: Any, sql: str, *given: Any) -> Any:
        begun.append(sql)
        assert opened.wait(30)
        return original(party, sql, *given)

    monkeypatch.setattr(TrustedParty, "plan", held)
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
        until(lambda: "controller:grace" in office.service.desk._planning._waiting)
    finally:
        opened.set()
        for thread in flood:
            thread.join()
    other.join()
    assert statuses == [200] * 46
    assert begun[1] == MEDIAN + " WHERE age > 1", "another caller's question waits behind one plan, not behind all"

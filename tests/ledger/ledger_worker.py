"""Another process on a ledger: `ledger_worker.py URL KEY ACTION …`; prints what it did as JSON."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from datetime import UTC, datetime
from fractions import Fraction

from idios.errors import BudgetExceeded
from idios.ledger import ChargeRequest, Ledger, Reservation
from idios.model import ReleasedTable


class TableOfText(ReleasedTable):
    """A table that is stored as a text of the test's choosing: the ledger keeps any text, byte for byte."""

    stored: str = ""

    def to_text(self) -> str:
        return self.stored


def table(text: str) -> ReleasedTable:
    made = TableOfText(dataset="people", version="1", guarantee="", statistics=(), groups=(), cells=(), margins=())
    object.__setattr__(made, "stored", text)
    return made


def main(url: str, key_file: str, action: str, *arguments: str) -> None:
    # The clock is read inside the writing transaction, which makes it the place to die in the middle of one.
    clock = Clock(deadly=arguments[0] if action == "die" else "")
    with Ledger.open(url, key_file, clock=clock) as ledger:
        if action == "spend":
            say(spend(ledger, *map(int, arguments)))
        elif action == "spend-and-die":
            spend_and_die(ledger, clock, int(arguments[0]))
        elif action == "die":
            die(ledger, clock, *arguments)
        elif action == "open":
            say(str(ledger.head()))


def say(result: object) -> None:
    sys.stdout.write(json.dumps(result))


class Clock:
    """The system's clock, deadly at one step: "in-reserve" or "in-release"."""

    def __init__(self, deadly: str) -> None:
        self.deadly = deadly
        self.step = ""
        self.left = sys.maxsize

    def __call__(self) -> datetime:
        self.left -= 1
        if (self.deadly and self.deadly == self.step) or not self.left:
            kill_me()
        return datetime.now(UTC)


def kill_me() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def spend(ledger: Ledger, process: int, threads: int, questions: int) -> list[int]:
    """Ask distinct questions from many threads; how many were charged, and how many refused.

    All cost ρ = 1/98. Every other one has Gaussian noise, and so no ε of its own.
    """
    charged, refused = [0] * threads, [0] * threads
    sys.stdin.readline()  # all processes start together

    def ask(thread: int) -> None:
        for number in range(questions):
            question = f"question {process} {thread} {number}"
            request = ChargeRequest(
                "people", "1", None, question, Fraction(1, 7), rho=Fraction(1, 98), pure=number % 2 == 0
            )
            try:
                reservation = ledger.reserve(request)
            except BudgetExceeded:
                refused[thread] += 1
            else:
                assert isinstance(reservation, Reservation)
                charged[thread] += 1
                ledger.release(reservation, table(json.dumps({"value": f"{process} {thread} {number}"})))

    workers = [threading.Thread(target=ask, args=(thread,)) for thread in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return [sum(charged), sum(refused)]


def spend_and_die(ledger: Ledger, clock: Clock, charges: int) -> None:
    """Ask distinct questions from many threads and print each that is charged, until killed within the last charge."""
    clock.left = max(charges, 2)

    def ask(thread: int) -> None:
        for number in range(charges if charges == 1 else 10 * charges):
            question = f"{thread}-{number}"
            ledger.reserve(ChargeRequest("people", "1", None, question, Fraction(1, 1000)))
            sys.stdout.write(f"{question}\n")
            sys.stdout.flush()

    workers = [threading.Thread(target=ask, args=(thread,)) for thread in range(min(16, charges))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


REQUEST = ChargeRequest("people", "1", None, "median(income)", Fraction(1, 4))


def die(ledger: Ledger, clock: Clock, step: str) -> None:
    """Walk the way of a question and be killed at the step."""
    clock.step = "in-reserve"
    reservation = ledger.reserve(REQUEST)
    assert isinstance(reservation, Reservation)
    if step == "after-reserve":
        kill_me()
    if step == "during-compute":
        threading.Timer(0.05, kill_me).start()
        while True:
            pass
    clock.step = "in-release"
    ledger.release(reservation, table('{"value": "drawn before"}'))
    kill_me()


if __name__ == "__main__":
    main(*sys.argv[1:])

"""How many questions a second the ledger charges and answers: 16 threads, one data set.

python bench/ledger.py sqlite:///ledger.db postgresql://user:password@host/database
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from fractions import Fraction
from pathlib import Path

from idios.ledger import ChargeRequest, Declaration, Ledger, Reservation
from idios.model import ReleasedTable

TABLE = ReleasedTable(
    dataset="people",
    version="1",
    guarantee="0.05-differential privacy",
    statistics=("median(x)",),
    groups=({},),
    cells=(("41320",),),
    margins=(None,),
)
THREADS = 16
SECONDS = 5.0


def rate(url: str) -> tuple[float, float, float]:
    """Reserve-and-release pairs a second, and the median and longest wait for one pair, in milliseconds."""
    waits: list[list[float]] = [[] for _ in range(THREADS)]
    with (
        tempfile.TemporaryDirectory() as directory,
        Ledger.open(url, Path(directory) / "ledger.key") as ledger,
    ):
        name = f"people-{time.time_ns()}"
        ledger.declare(Declaration(name, "1", epsilon=Fraction(10**9)))
        ledger.add_analyst(name)
        ledger.grant(name, name, epsilon=Fraction(10**9))
        deadline = time.monotonic() + SECONDS

        def spend(thread: int) -> None:
            while (began := time.monotonic()) < deadline:
                question = f"median(x{thread}) {len(waits[thread])}"
                charge = ledger.reserve(ChargeRequest(name, "1", name, question, Fraction(1, 20)))
                assert isinstance(charge, Reservation)
                ledger.release(charge, TABLE)
                waits[thread].append(time.monotonic() - began)

        threads = [threading.Thread(target=spend, args=(number,)) for number in range(THREADS)]
        began = time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        elapsed = time.monotonic() - began
        assert ledger.verify().ok
    every = sorted(wait for some in waits for wait in some)
    return len(every) / elapsed, 1000 * every[len(every) // 2], 1000 * every[-1]


def main() -> None:
    for url in sys.argv[1:]:
        pairs, median, longest = rate(url)
        engine = url.split(":")[0]
        print(f"{engine}: {pairs:.0f} questions/s; median wait {median:.1f} ms, longest {longest:.1f} ms")


if __name__ == "__main__":
    main()

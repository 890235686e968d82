"""Run inside a peer's environment: read a question from standard input, print answers and times as JSON.

It imports nothing of Idios unless the peer is Idios.
"""

from __future__ import annotations

import importlib
import json
import sys
import time


def main() -> None:
    given = json.load(sys.stdin)
    peer = importlib.import_module(f"{given['peer']}_peer")
    found = {}
    for name, ask in peer.questions(given["values"], given["low"], given["high"], given["epsilon"]).items():
        answers, start = [], time.perf_counter()
        try:
            for _ in range(given["times"]):
                answers.append(ask())
        except Exception as error:
            found[name] = {"error": f"{type(error).__name__}: {str(error)[:80]}"}
            continue
        found[name] = {"answers": answers, "seconds": (time.perf_counter() - start) / given["times"]}
    print(json.dumps(found))


if __name__ == "__main__":
    main()

"""``make bench``: every row, with what was expected of it."""

from __future__ import annotations

import sys

from bench import core, party, server


def main() -> int:
    print(f"{'':<58} {'Idios':>13} {'peer':>13} {'ratio':>10}")
    missed = 0
    for suite in (core, party, server):
        for row in suite.rows():
            print(row, flush=True)
            missed += not row.ok
    return missed


if __name__ == "__main__":
    sys.exit(main())

"""``idios demo``."""

from __future__ import annotations

import re
import subprocess
import sys


def test_demo_tells_the_story() -> None:
    done = subprocess.run([sys.executable, "-m", "idios", "demo"], capture_output=True, text=True, check=True)
    for part in ("MEDIAN(income)", "plain DP", "stored answer", "refused before anything is charged", "all as signed"):
        assert part in done.stdout
    told = " ".join(done.stdout.split())
    assert re.search(r"is [0-9.]+ times the lowest, and ε = 1 are left", told), "a ratio of stored medians is free"

"""``idios demo``."""

from __future__ import annotations

import re
import subprocess
import sys


def test_demo_tells_the_story() -> None:
    done = subprocess.run([sys.executable, "-m", "idios", "demo"], capture_output=True, text=True, check=True)
    for part in ("MEDIAN(income)", "stored answer", "refused before anything is charged", "all as signed"):
        assert part in done.stdout
    told = " ".join(done.stdout.split())
    assert re.search(r"is [0-9.]+ times the lowest, and ε = 0.5 are left", told), "a ratio of stored medians is free"
    for promise in (
        "0.5-differential privacy: whatever the data",
        "it would promise less: 0.5-individual differential",
    ):
        assert promise in told
    number = r"([0-9.,]+) "
    errors = re.search(rf"MEDIAN\(income\) FROM people │ 0.5 │ {'│ '.join([number] * 5)}│", told)
    assert errors is not None, "an answer, and how far off it is and is expected to be at both levels"
    assert float(errors[5]) == 10 < float(errors[3]) < 20

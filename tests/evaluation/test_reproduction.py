"""The reproduction as a function; the command has its tests in tests/cli."""

from __future__ import annotations

from idios.evaluation.reproduction import Effort, reproduce


def test_progress_is_told() -> None:
    told: list[float] = []
    reproduce(Effort(median=20, extremes=20), lambda step, share: told.append(share))
    assert told[0] == 0
    assert told[-1] == 1
    assert told == sorted(told)

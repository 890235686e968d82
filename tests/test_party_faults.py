"""Crashes between charge and answer: spent is never less than released, and a lost answer is completed once."""

from __future__ import annotations

import signal
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from idios.party import TrustedParty

SQL = "SELECT MEDIAN(x) FROM t"
SCRIPT = """
import os, signal, sys
from idios.party import TrustedParty
import idios.answer.release as module

folder, step = sys.argv[1:]
columns = {"x": {"type": "integer"}}
party = TrustedParty.open(f"{folder}/t.parquet", columns=columns, budget=5, ledger=f"{folder}/ledger.db")

def die(*given, **named):
    os.kill(os.getpid(), signal.SIGKILL)

if step == "before reserving":
    party.ledger.reserve = die
elif step == "before reading":
    party.datasets["t"].backend.open_snapshot = die
elif step == "before calibrating":
    module.calibrate_plan = die
elif step == "before releasing":
    party.ledger.release = die
elif step == "before answering":
    party.show = die
party.query("SELECT MEDIAN(x) FROM t", 1)
"""
STEPS = ["before reserving", "before reading", "before calibrating", "before releasing", "before answering"]


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
def test_killed_at_each_step_of_the_pipeline(step: str, tmp_path: Path) -> None:
    parquet.write_table(pa.table({"x": list(range(1001))}), tmp_path / "t.parquet")
    killed = subprocess.run([sys.executable, "-c", SCRIPT, str(tmp_path), step], check=False)
    assert killed.returncode == -signal.SIGKILL
    with TrustedParty.open(
        tmp_path / "t.parquet", columns={"x": {"type": "integer"}}, budget=5, ledger=tmp_path / "ledger.db"
    ) as party:
        released = sum((answer.epsilon for answer in party.ledger.answers("t")), Fraction(0))
        spent = party.ledger.balance("t").epsilon.spent
        assert spent >= released
        assert spent == (0 if step == "before reserving" else 1)
        assert released == (1 if step == "before answering" else 0)
        answer = party.query(SQL, 1)  # the same question completes it, without a new charge
        assert party.ledger.balance("t").epsilon.spent == 1
        assert answer.stored == (step == "before answering")
        assert party.query(SQL, 1).value == answer.value
        assert party.ledger.verify().ok

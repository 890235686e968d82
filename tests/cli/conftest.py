"""Folders to run commands in."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from tests.cli.runner import MEDIAN_AGE, configure, run_text


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a file of people and no configuration."""
    rng = np.random.default_rng(1)
    with (tmp_path / "people.csv").open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["age", "income", "region"])
        for i in range(500):
            income = round(float(rng.lognormal(10, 1)), 2) if i % 40 else ""
            lines.writerow([int(rng.integers(18, 90)), income, ["north", "south"][i % 2]])
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def declared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a configuration and a ledger in which one question is answered."""
    (tmp_path / "people.csv").write_text("age\n" + "\n".join(map(str, range(20, 60))) + "\n")
    monkeypatch.chdir(tmp_path)
    configure()
    run_text("query", MEDIAN_AGE, "--epsilon", "0.5")
    return tmp_path

"""docs/report.md is what the code makes of docs/report.sql, and good enough to be published."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from tests.cli.runner import run_json
from tests.household_report import COLUMNS, DOCUMENT, FILE, SPLIT, find_truth, generate_survey, read_file, write_report


def test_the_report_is_the_documents() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == write_report(), "run python -m tests.household_report"


def test_its_figures_are_near_the_truth() -> None:
    errors = [float(error) for error in re.findall(r"\| ([+-][0-9.]+) % \|", DOCUMENT.read_text(encoding="utf-8"))]
    assert len(errors) == 8 * 4 + 3 + 1 + 3 + 2 + 2 + 3
    assert sorted(map(abs, errors))[-2] < 2
    assert max(map(abs, errors)) < 10  # the 25th largest of 50,000


@pytest.mark.slow
def test_its_file_is_planned_and_asked_from_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    survey = generate_survey()
    pa.parquet.write_table(pa.table(survey), tmp_path / "households.parquet")
    declared = "\n".join(f"{name} = {_write_toml(column)}" for name, column in COLUMNS.items())
    (tmp_path / "idios.toml").write_text(
        '[ledger]\nurl = "sqlite:///ledger.db"\nkey_file = "ledger.key"\n'
        '[datasets.households]\nsource = "households.parquet"\nprotection = "differential"\nbudget = 4\n'
        f"[datasets.households.columns]\n{declared}\n"
    )
    monkeypatch.chdir(tmp_path)
    split = ",".join(f"{name}={part}" for name, part in SPLIT.items())
    assert f"--epsilon 4 --split {split}\n" in FILE.read_text(encoding="utf-8"), "the file says how it is planned"
    report = run_json("plan", str(FILE), "--epsilon", "4", "--split", split, "--ask", "--yes")
    assert list(report["answers"]) == [statement.name for statement in read_file()]
    rows = {name: answer["rows"] for name, answer in report["answers"].items()}
    middles = [float(row["middle"]) for row in rows["quartiles"]]
    assert middles == sorted(middles, reverse=True)
    assert len(middles) == 8
    [inequality] = rows["inequality"]
    quotient = float(inequality["p90"]) / float(inequality["p10"])
    assert float(inequality["ratio"]) == pytest.approx(quotient, abs=0.0051)
    assert [row["age_from"] for row in rows["ages"]] == ["40", "60", "20"]
    [truth] = find_truth(survey, read_file()[4].sql, []).values()
    assert float(rows["shares"][0]["north"]) == pytest.approx(truth["north"], abs=3)


def _write_toml(column: dict[str, object]) -> str:
    return f"{{ {', '.join(f'{key} = {json.dumps(value)}' for key, value in column.items())} }}"

"""A statistician's day with a labour force survey, from the file to the published figures, each beside the truth.

The file is declared as proposed, checked, planned and asked on the command line, with noise from a seed. The truth is
DuckDB's own result of the same questions.
"""

from __future__ import annotations

import csv
import math
import re
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from idios.cli.plan import PlannedStatement, read_statements
from idios.core.exact import text
from idios.core.sampling import SeededSource
from idios.model import Answer
from idios.party import TrustedParty
from tests.cli.runner import run_json, run_text
from tests.household_report import find_truth

PEOPLE, REGIONS = 20_000, [f"R{number:02d}" for number in range(1, 13)]
DERIVED = {
    "wune": "CASE WHEN status = 'unemployed' THEN weight ELSE 0 END",
    "wact": "CASE WHEN status = 'inactive' THEN 0 ELSE weight END",
}
KEYS = ("region", "status", "sex")
QUESTIONS = """
-- name: people
SELECT region, status, COUNT(*) AS people FROM lfs GROUP BY region, status;
-- name: population
SELECT region, status, SUM(weight) AS population FROM lfs GROUP BY region, status;
-- name: rate
SELECT region, sex, ROUND(100 * SUM(wune) / SUM(wact), 1) AS rate FROM lfs GROUP BY region, sex;
-- name: wage
SELECT region, sex, AVG(wage) AS wage FROM lfs WHERE status = 'employed' GROUP BY region, sex;
-- name: middle
SELECT region, sex, MEDIAN(wage) AS middle FROM lfs WHERE status = 'employed' GROUP BY region, sex;
-- name: hours
SELECT region, sex, SUM(hours) AS hours FROM lfs GROUP BY region, sex;
-- name: wages
SELECT region, status, SUM(wage) AS wages FROM lfs GROUP BY region, status;
-- name: age
SELECT region, status, AVG(age) AS age FROM lfs GROUP BY region, status;
-- name: share
SELECT region, status, 100 * COUNT(*) / SUM(COUNT(*)) OVER (PARTITION BY region) AS percent
FROM lfs GROUP BY region, status;
-- name: totals
SELECT region, sex, COUNT(*) AS people, SUM(weight) AS population FROM lfs GROUP BY ROLLUP(region, sex);
"""
STATEMENTS = read_statements(QUESTIONS)
MISSED, FALSE_ALARM = 0.06, 5.0


@pytest.fixture(scope="module")
def survey() -> dict[str, pa.Array]:
    """Regions of different sizes, weights up to 2,000, wages and hours of those who have any, and what is derived."""
    chance = np.random.default_rng(2026)
    status = chance.choice(["employed", "inactive", "unemployed"], PEOPLE, p=[0.58, 0.38, 0.04])
    sizes = np.arange(6, 18)
    weight = np.clip(chance.gamma(4, 150, PEOPLE).round(1), 0.1, 2000)
    wage = chance.lognormal(7.6, 0.5, PEOPLE).round().astype(np.int64)
    hours = np.clip(chance.normal(37, 9, PEOPLE).round(), 1, 80).astype(np.int64)
    return {
        "region": pa.array(chance.choice(REGIONS, PEOPLE, p=sizes / sizes.sum())),
        "status": pa.array(status),
        "weight": pa.array(weight),
        "age": pa.array(chance.integers(15, 90, PEOPLE)),
        "sex": pa.array(chance.choice(["female", "male"], PEOPLE)),
        "wage": pa.array(wage, mask=status == "inactive"),
        "hours": pa.array(hours, mask=status != "employed"),
        "wune": pa.array(np.where(status == "unemployed", weight, 0)),
        "wact": pa.array(np.where(status == "inactive", 0, weight)),
    }


@pytest.fixture
def folder(survey: dict[str, pa.Array], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with the file and the questions; noise is drawn from a seed."""
    opened = TrustedParty.from_config

    def open_seeded(*arguments: Any, **options: Any) -> TrustedParty:
        party = opened(*arguments, **options)
        party.source = SeededSource(2026)
        return party

    monkeypatch.setattr(TrustedParty, "from_config", open_seeded)
    monkeypatch.chdir(tmp_path)
    pa.csv.write_csv(pa.table(survey).drop_columns(list(DERIVED)), "lfs.csv")
    Path("questions.sql").write_text(QUESTIONS)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("epsilon", "bounds", "least"),
    [(10, "", 330), (10, "weight=0..2000 age=15..89 wage=0.. hours=0..80", 350), (2, "", 210)],
    ids=["all that is offered", "with bounds", "little"],
)
def test_each_figure_beside_the_truth(
    survey: dict[str, pa.Array], folder: Path, epsilon: int, bounds: str, least: int
) -> None:
    """What is published has an interval, which holds the truth as often as it says, or says why not; and is free."""
    given = [option for bound in bounds.split() for option in ("--bounds", bound)]
    assert "weight: number" in run_text("init", "lfs.csv", "--yes", *given)
    with Path("idios.toml").open("a", encoding="utf-8") as file:
        file.writelines(f'{name} = {{ expression = "{expression}" }}\n' for name, expression in DERIVED.items())
    assert "lfs: 20,000 rows" in run_text("check")

    command = ("plan", "questions.sql", "--epsilon", str(epsilon))
    assert "free: the same as people" in run_text(*command)
    assert run_json("ledger", "balance")[0]["epsilon"]["spent"] == "0"
    report, again = (run_json(*command, "--ask", "--yes") for _ in range(2))
    assert report["complete"]
    assert run_json("ledger", "balance")[0]["epsilon"]["spent"] == str(text(Fraction(9 * epsilon, 10)))
    assert again["totals"][0]["cost"] == "0"

    published = list(csv.DictReader(run_text("ledger", "export", "--format", "csv").splitlines()))
    found: Counter[str] = Counter()
    for statement in STATEMENTS:
        answer, repeated = (Answer.from_dict(asked["answers"][statement.name]) for asked in (report, again))
        assert repeated.stored
        assert repeated.to_csv() == answer.to_csv()
        if not answer.used and statement.name in answer.columns:  # a statistic as it is, which the ledger exports too
            lines = [line for line in published if line["id"] == answer.id]
            assert [line["value"] or None for line in lines] == answer.list_values(statement.name)
            assert all(line["interval"].startswith("noise, 95 %") for line in lines if line["low"])
        answer.to_csv(folder / f"{statement.name}.csv", metadata=True)
        found += judge(folder / f"{statement.name}.csv", statement, survey)
    intervals = found["held"] + found["missed"]
    assert intervals >= least, found
    allowed = FALSE_ALARM * math.sqrt(MISSED * (1 - MISSED) * intervals)
    assert found["missed"] <= MISSED * intervals + allowed, found


def judge(file: Path, statement: PlannedStatement, survey: dict[str, pa.Array]) -> Counter[str]:
    """How many figures of an exported answer have an interval that holds the truth, one that does not, or none."""
    lines = file.read_text(encoding="utf-8").splitlines()
    said = " ".join(line for line in lines if line.startswith("# "))
    rows = list(csv.DictReader(line for line in lines if not line.startswith("# ")))
    keys = [name for name in rows[0] if name in KEYS]
    # Of a median it is told how many records it is off, so its truth is all values.
    truth = find_truth(survey, statement.sql.replace("MEDIAN(", "LIST("), keys, "lfs")
    assert len(rows) == len(truth)
    found: Counter[str] = Counter()
    for row in rows:
        for figure, true_value in truth[tuple(row[name] or None for name in keys)].items():
            if figure not in keys:
                found[judge_figure(figure, row, true_value, said)] += 1
    return found


def judge_figure(figure: str, row: dict[str, str], truth: Any, said: str) -> str:
    """Whether a figure is what its line makes of it, or why it has no value or no interval."""
    if not row[figure]:
        assert re.search(rf"# note: (SUM|AVG|{figure})[^#]*NULL", said), f"nothing says why {figure} is NULL: {said}"
        return "NULL"
    low, high = (row.get(f"{figure}_{end}") for end in ("low", "high"))
    if low and high:
        assert row[f"{figure}_interval"].startswith("noise, 95 %")
        assert float(low) < float(high)
        return "held" if float(low) <= (truth or 0) <= float(high) else "missed"
    if isinstance(truth, list) and f"{figure}_check_low" in row:
        least, most = (row[f"{figure}_check_{end}"] for end in ("low", "high"))
        return "held" if is_off_by(float(row[figure]), truth, least, most) else "missed"
    # A computed figure names the statistics that have none; a median has a check where ε suffices for one.
    clipped = rf"# note: (SUM|AVG|{figure})\S* about [^#]* (too many for an|there is no) interval"
    assert isinstance(truth, list) or re.search(clipped, said), f"nothing says why {figure} has no interval: {said}"
    assert f"# no margin of {figure}: " in said
    return "no interval"


def is_off_by(median: float, values: list[int], least: str, most: str) -> bool:
    """Whether a median is between so many records too low, which is negative, and so many too high."""
    above, below = sum(value > median for value in values), sum(value < median for value in values)
    ties = len(values) - above - below + 1
    return float(least or "-inf") <= below - above + ties and below - above - ties <= float(most or "inf")

"""docs/report.md: a report on a generated survey, as it is planned and answered, each figure beside the truth.

    python -m tests.household_report

writes it anew. The noise is drawn from a seed, so that the document is always the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from idios import TrustedParty
from idios.core.sampling import SeededSource
from idios.model import Answer

DOCUMENT = Path(__file__).parents[1] / "docs" / "report.md"
HOUSEHOLDS = 50_000
EPSILON = 4
REGIONS, TENURES = ["north", "east", "south", "west"], ["owned", "rented"]
COLUMNS: dict[str, Any] = {
    "income": {"type": "integer", "nullable": False},
    "age": {"type": "integer", "bounds": [18, 97], "nullable": False},
    "region": {"type": "category", "values": REGIONS, "nullable": False},
    "tenure": {"type": "category", "values": TENURES, "nullable": False},
}
QUARTILES = ["QUANTILE(income, 0.25)", "MEDIAN(income)", "QUANTILE(income, 0.75)"]
QUESTIONS = {
    "quartiles": f"SELECT region, tenure, {', '.join(QUARTILES)} FROM households GROUP BY region, tenure",
    "deciles": "SELECT QUANTILE(income, 0.1), QUANTILE(income, 0.9) FROM households",
    "top": "SELECT KTH_LARGEST(income, 20) FROM households",
    "means": "SELECT region, AVG(income) FROM households GROUP BY region",
    "ages": "SELECT BIN(age, 20), COUNT(*) FROM households GROUP BY BIN(age, 20)",
}
SPLIT = {"quartiles": 5, "deciles": 2, "top": 2, "means": 2, "ages": 1}

Survey = dict[str, np.ndarray]


def generate_survey() -> Survey:
    """Incomes that differ by region and tenure, whole numbers, nobody knows their bounds."""
    chance = np.random.default_rng(2026)
    region, tenure = chance.integers(0, 4, HOUSEHOLDS), (chance.random(HOUSEHOLDS) < 0.4).astype(int)
    log_income = chance.normal(10.3 + 0.1 * region - 0.35 * tenure, 0.6)
    return {
        "income": np.exp(log_income).round().astype(np.int64),
        "age": np.clip(chance.normal(52, 17, HOUSEHOLDS).round(), 18, 97).astype(np.int64),
        "region": np.array(REGIONS)[region],
        "tenure": np.array(TENURES)[tenure],
    }


TRUTHS: Mapping[str, Callable[[Survey], float]] = {
    "QUANTILE(income, 0.25)": lambda rows: np.quantile(rows["income"], 0.25),
    "MEDIAN(income)": lambda rows: np.median(rows["income"]),
    "QUANTILE(income, 0.75)": lambda rows: np.quantile(rows["income"], 0.75),
    "QUANTILE(income, 0.1)": lambda rows: np.quantile(rows["income"], 0.1),
    "QUANTILE(income, 0.9)": lambda rows: np.quantile(rows["income"], 0.9),
    "KTH_LARGEST(income, 20)": lambda rows: float(np.sort(rows["income"])[-20]),
    "AVG(income)": lambda rows: rows["income"].mean(),
    "COUNT(*)": lambda rows: len(rows["income"]),
}


def select(survey: Survey, row: Mapping[str, Any]) -> Survey:
    """The households that a row is about."""
    chosen = np.ones(HOUSEHOLDS, dtype=bool)
    for key in ("region", "tenure"):
        if key in row:
            chosen &= survey[key] == row[key]
    if "BIN(age, 20)" in row:
        chosen &= survey["age"] // 20 * 20 == row["BIN(age, 20)"]
    return {name: column[chosen] for name, column in survey.items()}


def write_report() -> str:
    """Plan, ask, and write everything down."""
    survey = generate_survey()
    with TrustedParty.open(
        survey, name="households", columns=COLUMNS, budget=EPSILON, protection="differential", version="2026"
    ) as party:
        party.source = SeededSource(2026)
        plan = party.plan(QUESTIONS, EPSILON, split=SPLIT)
        planned = str(plan)
        report = plan.ask()
    parts = [
        "# A report, planned before it is spent",
        f"{HOUSEHOLDS:,} generated households, no bounds for incomes, `differential`, ε = {EPSILON} for everything. "
        "This page is written by `python -m tests.household_report`, with noise from a seed; a test holds it against "
        "the code. The truth is known here because the survey is made up.",
        "```python\nplan = party.plan(questions, epsilon=4, split={"
        + ", ".join(f'"{name}": {part}' for name, part in SPLIT.items())
        + "})\nprint(plan)\nreport = plan.ask()\n```",
        f"```text\n{planned}\n```",
    ]
    for name, sql in QUESTIONS.items():
        parts += [f"## {name.capitalize()}", f"```sql\n{sql}\n```", *describe(report[name], survey)]
    return "\n\n".join(parts) + "\n"


def describe(answer: Answer, survey: Survey) -> list[str]:
    """The rows of one answer, each figure beside the truth, its interval and its check."""
    keys = [column for column in answer.columns if column not in answer.margins]
    lines = [f"| {' | '.join([*keys, 'statistic', 'answer', 'truth', 'off by', '95 %'])} |"]
    lines.append("|" + "---|" * (len(keys) + 5))
    for i, row in enumerate(answer.rows):
        rows = select(survey, row)
        for column in answer.margins:
            value, truth = row[column], float(TRUTHS[column](rows))
            off = "" if value is None else f"{100 * (value - truth) / truth:+.2f} %"
            written = "NULL" if value is None else f"{value:,.0f}"
            cells = [*(str(row[key]) for key in keys), f"`{column}`", written, f"{truth:,.0f}", off]
            lines.append(f"| {' | '.join([*cells, describe_accuracy(answer, i, column)])} |")
    return ["\n".join(lines), *([answer.clipped_note] if answer.clipped_note else []), f"{answer.guarantee.notation}."]


def describe_accuracy(answer: Answer, row: int, column: str) -> str:
    """What an analyst is told of how far off a figure may be."""
    if answer.check_rows and column in answer.check_rows[row]:
        return str(answer.check_rows[row][column]).replace(" (95 %)", "")
    if (margin := answer.margins[column]) is not None:
        return f"± {float(margin):,.0f}"
    low, high = answer.interval_rows[row][column]
    return f"{float(low):,.0f} to {float(high):,.0f}"


if __name__ == "__main__":
    DOCUMENT.write_text(write_report(), encoding="utf-8")

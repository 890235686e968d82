"""docs/report.md: a report on a generated survey, as it is planned and answered, each figure beside the truth.

    python -m tests.household_report

writes it anew from docs/report.sql. The noise is drawn from a seed, so that the document is always the same. The truth
is DuckDB's own result of the same file: what it lacks of Idios's functions it is taught by two macros.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from idios import TrustedParty
from idios.cli.plan import PlannedStatement, read_statements
from idios.core.sampling import SeededSource
from idios.model import Answer

DOCUMENT = Path(__file__).parents[1] / "docs" / "report.md"
FILE = DOCUMENT.with_suffix(".sql")
HOUSEHOLDS = 50_000
EPSILON = 4
SPLIT = {"quartiles": 5, "inequality": 2, "top": 2}
REGIONS, TENURES = ["north", "east", "south", "west"], ["owned", "rented"]
COLUMNS: dict[str, Any] = {
    "income": {"type": "integer", "nullable": False},
    "age": {"type": "integer", "bounds": [18, 97], "nullable": False},
    "car": {"type": "integer", "bounds": [0, 1], "nullable": False},
    "region": {"type": "category", "values": REGIONS, "nullable": False},
    "tenure": {"type": "category", "values": TENURES, "nullable": False},
}
MACROS = (
    "CREATE MACRO KTH_LARGEST(x, k) AS list_reverse_sort(list(x))[k]",
    "CREATE MACRO BIN(x, width) AS x // width * width",
)

Survey = dict[str, np.ndarray] | dict[str, pa.Array]
Truth = dict[tuple[Any, ...], dict[str, Any]]


def generate_survey() -> Survey:
    """Incomes that differ by region and tenure, whole numbers, nobody knows their bounds."""
    chance = np.random.default_rng(2026)
    region, tenure = chance.integers(0, 4, HOUSEHOLDS), (chance.random(HOUSEHOLDS) < 0.4).astype(int)
    log_income = chance.normal(10.3 + 0.1 * region - 0.35 * tenure, 0.6)
    age = np.clip(chance.normal(52, 17, HOUSEHOLDS).round(), 18, 97)
    return {
        "income": np.exp(log_income).round().astype(np.int64),
        "age": age.astype(np.int64),
        "car": (chance.random(HOUSEHOLDS) < 0.8 - 0.3 * tenure).astype(np.int64),
        "region": np.array(REGIONS)[region],
        "tenure": np.array(TENURES)[tenure],
    }


def read_file() -> list[PlannedStatement]:
    """The questions, as `idios plan` reads them."""
    return read_statements(FILE.read_text(encoding="utf-8"))


def find_truth(survey: Survey, sql: str, keys: list[str], name: str = "households") -> Truth:
    """The true rows of a question, by the values of its keys."""
    with duckdb.connect() as engine:
        engine.register(name, pa.table(survey))
        for macro in MACROS:
            engine.execute(macro)
        result = engine.execute(sql)
        names = [column[0] for column in result.description or ()]
        rows = [dict(zip(names, row, strict=True)) for row in result.fetchall()]
    return {tuple(row[key] for key in keys): row for row in rows}


def write_report() -> str:
    """Plan, ask, and write everything down."""
    survey, statements = generate_survey(), read_file()
    with TrustedParty.open(
        survey, name="households", columns=COLUMNS, budget=EPSILON, protection="differential", version="2026"
    ) as party:
        party.source = SeededSource(2026)
        plan = party.plan({statement.name: statement.sql for statement in statements}, EPSILON, split=SPLIT)
        planned = str(plan)
        report = plan.ask()
    parts = [
        "# A report, planned before it is spent",
        f"{HOUSEHOLDS:,} generated households, no bounds for incomes, `differential`, ε = {EPSILON} for everything, "
        "and one file of SQL. This page is written by `python -m tests.household_report`, with noise from a seed; a "
        "test holds it against the code. The truth is known here because the survey is made up: it is what DuckDB "
        "makes of the same file. A ratio of quantiles has no interval of its own; how far off they are is told of "
        "each.",
        f"```sql\n{FILE.read_text(encoding='utf-8').strip()}\n```",
        "`idios plan` shows what each question would cost and how accurate it would be; `--ask` asks them all. "
        "Questions that `--split` does not name count 1.",
        f"```text\n{planned}\n```",
    ]
    for statement in statements:
        answer = report[statement.name]
        parts += [f"## {statement.name.capitalize()}", *describe(answer, survey, statement.sql)]
    return "\n\n".join(parts) + "\n"


def describe(answer: Answer, survey: Survey, sql: str) -> list[str]:
    """The rows of one answer, each figure beside the truth, its interval or its check."""
    keys = [column for column in answer.columns if column not in answer.margins]
    truth = find_truth(survey, sql, keys)
    lines = [f"| {' | '.join([*keys, 'result', 'answer', 'truth', 'off by', 'noise, 95 %'])} |"]
    lines.append("|" + "---|" * (len(keys) + 5))
    for i, row in enumerate(answer.rows):
        true_row = truth[tuple(row[key] for key in keys)]
        for column in answer.margins:
            value, true_value = row[column], float(true_row[column])
            off = "" if value is None else f"{100 * (value - true_value) / true_value:+.2f} %"
            figures = [format_figure(value), format_figure(true_value), off, describe_accuracy(answer, i, column)]
            lines.append(f"| {' | '.join([*(str(row[key]) for key in keys), f'`{column}`', *figures])} |")
    checks = answer.check_rows[0].items() if len(answer.check_rows) == 1 else ()
    told = [f"`{name}`: {distance}." for name, distance in checks if name in answer.used]
    return [
        "\n".join(lines),
        *told,
        *([answer.clipped_note] if answer.clipped_note else []),
        *([" ".join(answer.notes)] if answer.notes else []),
        f"{answer.guarantee.notation}.",
    ]


def format_figure(value: float | None) -> str:
    """A figure to as many digits as are read."""
    if value is None:
        return "NULL"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:,.10g}"


def describe_accuracy(answer: Answer, row: int, column: str) -> str:
    """What an analyst is told of how far off a figure may be."""
    if answer.check_rows and column in answer.check_rows[row]:
        return str(answer.check_rows[row][column]).replace(" (noise, 95 %)", "")
    if (margin := answer.margins[column]) is not None:
        return f"± {format_figure(float(margin))}"
    if answer.interval_rows and column in answer.interval_rows[row]:
        low, high = answer.interval_rows[row][column]
        return f"{format_figure(float(Fraction(low)))} to {format_figure(float(Fraction(high)))}"
    return "–"


if __name__ == "__main__":
    DOCUMENT.write_text(write_report(), encoding="utf-8")

"""``idios demo``: a trusted party answers a handful of questions on data it has just made up."""

from __future__ import annotations

import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from idios.errors import IdiosError
from idios.party import TrustedParty
from idios.sandbox import PEOPLE, PEOPLE_COLUMNS, write_people

GUESS = 10**8  # how high an income might be, if it had to be said

QUESTIONS = [
    ("SELECT MEDIAN(income) FROM people", "0.5"),
    ("SELECT KTH_LARGEST(income, 2) FROM people", "0.5"),
    ("SELECT TRIMMED_MEAN(income, 0.05) FROM people", "0.5"),
    ("SELECT IQR(income) FROM people WHERE age BETWEEN 30 AND 40", "0.5"),
    ("SELECT COUNT(*) FROM people WHERE income > 100000", "0.5"),
    ("SELECT region, MEDIAN(income) FROM people GROUP BY region", "0.5"),
]

RATIO = f"SELECT ROUND(MAX(m) / MIN(m), 3) FROM ({QUESTIONS[-1][0].replace('(income)', '(income) AS m')})"


def demo() -> None:
    """Answer a handful of questions on generated data: what each costs, promises, and what plain DP would give."""
    console = Console(width=118, highlight=False)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "people.parquet"
        write_people(path)
        ledger = Path(folder) / "ledger.db"
        with (
            TrustedParty.open(path, columns=PEOPLE_COLUMNS, budget=4, ledger=ledger) as party,
            TrustedParty.open(
                path,
                columns={**PEOPLE_COLUMNS, "income": {"type": "integer", "bounds": [0, GUESS], "nullable": False}},
                protection="differential",
                check=0,  # as at the other level, so that all of ε is for the answer
                budget=4,
            ) as plain,
        ):
            _print_demo(console, party, plain)


def _print_demo(console: Console, party: TrustedParty, plain: TrustedParty) -> None:
    console.print(
        f"\n[bold]A trusted party holds {PEOPLE:,} generated people[/bold] (DuckDB) and a budget of ε = 4 (SQLite).\n"
        "Nobody can say how high an income may be, and nobody has to:\n"
    )
    table = Table()
    for head in ("question", "cost ε", "left ε", "answer", "off by", "expected", "plain DP:\nexpected"):
        table.add_column(head, justify="left" if head == "question" else "right")
    promises = []
    for sql, epsilon in QUESTIONS:
        answer = party.query(sql, epsilon)
        cost = str(float(answer.epsilon)), _format_number(answer.remaining)
        question, label = sql.removeprefix("SELECT "), answer.columns[-1]
        if len(answer.rows) > 1:
            table.add_row(question, *cost)
        cells = zip(answer.rows, party.inspect(sql, epsilon).cells, plain.inspect(sql, epsilon).cells, strict=True)
        for row, ours, theirs in cells:
            off = abs(row[label] - float(Fraction(ours.value or 0)))
            cells_before = (question, *cost) if len(answer.rows) == 1 else (f"   {row['region']}", "", "")
            errors = (off, ours.expected_error, theirs.expected_error)
            table.add_row(*cells_before, _format_number(row[label]), *(_format_number(error) for error in errors))
        promises.append(answer.guarantee)
    console.print(table)
    console.print(
        f'[dim]expected: the mean distance from the truth, here and at protection = "differential" with bounds 0 to '
        f"{GUESS:,} guessed[/dim]"
    )
    console.print(f"\n[bold]What each answer promises[/bold]\n{promises[0]}")
    again = party.query(*QUESTIONS[0])
    console.print(
        f"\n[bold]The same question again[/bold] returns the stored answer, {_format_number(again.value)}, and costs "
        f"nothing: ε = {_format_number(again.remaining)} are left."
    )
    ratio = party.query(RATIO, QUESTIONS[-1][1])
    console.print(
        f"\n[bold]What is computed from released values[/bold] costs nothing either: the highest median of a region is "
        f"{ratio.value} times the lowest, and ε = {_format_number(ratio.remaining)} are left.\n{RATIO}"
    )
    for title, sql, epsilon in (
        ("A question nobody can answer", "SELECT MAX(income) FROM people", "0.5"),
        ("A question beyond the budget", "SELECT MEDIAN(age) FROM people", "3"),
    ):
        try:
            party.query(sql, epsilon)
        except IdiosError as refusal:
            console.print(f"\n[bold]{title}[/bold] is refused before anything is charged or read: {sql}")
            console.print(str(refusal), markup=False)
    console.print(f"\n[bold]The ledger[/bold] {party.ledger.verify()}\n")


def _format_number(value: Any) -> str:
    number = float(value)
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:,.3g}"

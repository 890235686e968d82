"""``idios demo``: a trusted party answers a handful of questions on data it has just made up."""

from __future__ import annotations

import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from idios.core.calibration import Level
from idios.errors import IdiosError
from idios.party import TrustedParty
from idios.sandbox import PEOPLE, PEOPLE_COLUMNS, write_people

QUESTIONS = [
    ("SELECT MEDIAN(income) FROM people", "0.5"),
    ("SELECT KTH_LARGEST(income, 20) FROM people", "1"),
    ("SELECT TRIMMED_MEAN(income, 0.05) FROM people", "0.5"),
    ("SELECT IQR(income) FROM people WHERE age BETWEEN 30 AND 40", "0.5"),
    ("SELECT COUNT(*) FROM people WHERE income > 100000", "0.5"),
    ("SELECT region, MEDIAN(income) FROM people GROUP BY region", "0.5"),
]

RATIO = f"SELECT ROUND(MAX(m) / MIN(m), 3) FROM ({QUESTIONS[-1][0].replace('(income)', '(income) AS m')})"


def demo() -> None:
    """Answer a handful of questions on generated data, at two levels: what each costs, promises, and is off by."""
    console = Console(width=118, highlight=False)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "people.parquet"
        write_people(path)
        ledger = Path(folder) / "ledger.db"
        with (
            TrustedParty.open(path, columns=PEOPLE_COLUMNS, budget=4, ledger=ledger) as party,
            TrustedParty.open(path, columns=PEOPLE_COLUMNS, budget=4, protection=Level.INDIVIDUAL) as fitted,
        ):
            _print_demo(console, party, fitted)


def _print_demo(console: Console, party: TrustedParty, fitted: TrustedParty) -> None:
    console.print(
        f"\n[bold]A trusted party holds {PEOPLE:,} generated people[/bold] (DuckDB) and a budget of ε = 4 (SQLite).\n"
        "Nobody can say how high an income may be, and nobody has to:\n"
    )
    table = Table()
    for head in ("question", "ε", "answer", "off by", "expected", "individual:\noff by", "\nexpected"):
        table.add_column(head, justify="left" if head == "question" else "right")
    promises: list[Any] = []
    for sql, epsilon in QUESTIONS:
        answers = [each.query(sql, epsilon) for each in (party, fitted)]
        cells = [each.inspect(sql, epsilon).cells for each in (party, fitted)]
        question, label = sql.removeprefix("SELECT "), answers[0].columns[-1]
        if grouped := len(answers[0].rows) > 1:
            table.add_row(question, _format_number(epsilon))
        for i, row in enumerate(answers[0].rows):
            errors = [
                _format_number(error)
                for answer, inspected in zip(answers, cells, strict=True)
                for error in (
                    abs(answer.rows[i][label] - float(Fraction(inspected[i].value or 0))),
                    inspected[i].expected_error,
                )
            ]
            before = (f"   {row['region']}", "") if grouped else (question, _format_number(epsilon))
            table.add_row(*before, _format_number(row[label]), *errors)
        promises = promises or [answer.guarantee for answer in answers]
    console.print(table)
    console.print(
        "[dim]expected: the mean distance from the truth. The level is differential, where a fifth of ε tells how many "
        'records an answer is off; beside it stands protection = "individual", where all of ε is for the answer[/dim]'
    )
    promised, weaker = promises
    console.print(f"\n[bold]What each answer promises[/bold]\n{promised}")
    console.print(f'\n[bold]At protection = "individual"[/bold] it would promise less:\n{weaker}')
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

"""``idios plan``: a file of questions as one report, priced before anything is spent, then asked as a whole."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from idios.cli import output
from idios.errors import InvalidInput, QuestionRefused
from idios.party import TrustedParty
from idios.reports.report import Report, ReportPlan

# A string or a quoted name may contain what looks like a comment or an end.
PIECES = re.compile(
    r"""(?P<string>'[^']*'|"[^"]*")
    |--(?P<comment>[^\n]*)
    |(?P<block>/\*.*?\*/)
    |(?P<end>;)
    |(?P<open>'|"|/\*)""",
    re.VERBOSE | re.DOTALL,
)
_NAME = re.compile(r"\s*name\s*:\s*(.*?)\s*", re.IGNORECASE)
_ALLOWED_NAME = re.compile(r"\w[\w .-]*")


@dataclass(frozen=True)
class PlannedStatement:
    """One question of a file; ``start`` is where its text begins there."""

    name: str
    sql: str
    start: int


def plan(
    file: Annotated[
        Path, typer.Argument(help="Questions, each ended by a semicolon and named by a comment before it.")
    ],
    epsilon: Annotated[
        str | None,
        typer.Option("--epsilon", "-e", help="What all questions about a data set may cost together, read exactly."),
    ] = None,
    within: Annotated[
        str | None,
        typer.Option(
            help="Instead of --epsilon: the least ε of each question for 95 % margins within this, in the units of "
            "what it releases; or within a share such as 2%, of the number of records for a count, of the largest "
            "possible sum for a sum. Of a ratio: '5 at 600' is 5 where it is divided by 600. Only where margins are "
            "public: counts, sums within bounds, and what is computed from them."
        ),
    ] = None,
    split: Annotated[
        list[str] | None,
        typer.Option("--split", "-s", help="How ε is split: -s incomes=3,ages=2; what is not named counts 1."),
    ] = None,
    config: Annotated[Path, typer.Option(help="The configuration file.")] = Path("idios.toml"),
    analyst: Annotated[
        str | None, typer.Option(help="Ask on behalf of this analyst, charged to their own cap as well.")
    ] = None,
    ask: Annotated[bool, typer.Option("--ask", help="Ask the questions, once you have confirmed the plan.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Confirm the plan beforehand.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print exact JSON.")] = False,
) -> None:
    """Plan several questions as one report: what each would cost, how accurate it would be, what is stored and free.

    Nothing is spent without --ask. With it the questions are asked one after the other, unless the budget does not
    suffice for all. After a failure or a crash the same command asks what is missing: nothing is charged twice. The
    exit code is 0 if every question is answered.

    A file such as

    \b
        -- name: adults
        SELECT COUNT(*) FROM people WHERE age >= 18;
        -- name: jobs_by_region
        SELECT region, ROUND(100 * SUM(employed) / COUNT(*), 1) AS percent  -- free: computed from what is released
        FROM people GROUP BY region ORDER BY percent DESC;

    is planned with   idios plan questions.sql --epsilon 1   and asked with   idios plan questions.sql --epsilon 1 --ask
    """
    if (epsilon is None) == (within is None):
        raise InvalidInput("say what the report may cost, such as --epsilon 4, or how accurate it must be, --within 50")
    source = _read_file(file)
    statements = read_statements(source)
    questions = {statement.name: statement.sql for statement in statements}
    with output.show_progress() as progress:
        party = TrustedParty.from_config(config, progress=progress)
    with party:
        try:
            made = party.plan(questions, epsilon, split=_read_split(split), within=within, analyst=analyst)
        except QuestionRefused as error:
            raise _place_in_file(error, source, statements) from None
        if not ask:
            output.print_json(made.to_dict()) if json else print_plan(made, output.console)
            return
        if not (json and yes):
            print_plan(made, output.stderr if json else output.console)
        if made.affordable and not yes and not output.confirm("Ask these questions?"):
            raise InvalidInput("nothing was asked, and nothing was spent")
        with output.show_progress() as progress:
            report = made.ask(progress)
    output.print_json(report.to_dict()) if json else print_report(report)
    if not report.complete:
        raise typer.Exit(1)


def print_plan(made: ReportPlan, console: Console) -> None:
    """Print every question with its price and accuracy, and the totals."""
    head, rows = made.table()
    table = Table(*head)
    for row in rows:
        table.add_row(*row)
    output.print_table(table, console)
    for total in made.totals:
        console.print(f"{total.dataset}: {total}", highlight=False)


def print_report(report: Report) -> None:
    """Print every answer under the name of its question, and what was charged."""
    for name in report.names:
        output.console.print(f"\n{name}", style="bold", highlight=False)
        if name in report.answers:
            output.print_answer(report[name])
        else:
            output.console.print(f"not answered: {report.failures[name]}", highlight=False)
    output.console.print()
    for dataset, account in report.accounts():
        output.console.print(f"{dataset}: {account}", highlight=False)


def read_statements(source: str) -> list[PlannedStatement]:
    """The questions of a file: each ends with a semicolon; comments are left out, but for those that name one.

    >>> read_statements("-- name: adults\\nSELECT 1; /* and */ SELECT ';' ;")
    [PlannedStatement(name='adults', sql='SELECT 1', start=16), PlannedStatement(name='q2', sql="SELECT ';'", start=36)]
    """
    statements: list[PlannedStatement] = []
    text = list(source)  # with blanks for comments, so that every place stays where it is
    begin, named = 0, None
    for piece in PIECES.finditer(source):
        kind, at = piece.lastgroup, piece.start()
        if kind == "open":
            what = {"'": "a string", '"': "a quoted name"}.get(piece[0], "a comment")
            raise QuestionRefused(f"{what} does not end", source, at)
        if kind in ("comment", "block"):
            if naming := _NAME.fullmatch(piece["comment"] or ""):
                _check_place(source, "".join(text[begin:at]), named, at)
                named = _check_name(naming[1], statements, source, at)
            text[at : piece.end()] = [c if c == "\n" else " " for c in piece[0]]
        if kind == "end":
            name = named or _check_name(f"q{len(statements) + 1}", statements, source, at)
            statements.append(_cut(source, "".join(text[begin:at]), begin, name))
            begin, named = piece.end(), None
    if rest := "".join(text[begin:]).strip():
        raise QuestionRefused("this question is not ended by a semicolon", source, source.index(rest[0], begin))
    if named is not None:
        raise QuestionRefused(f"no question follows the name {named!r}", source, len(source.rstrip()))
    if not statements:
        raise InvalidInput("the file has no questions: write them as SQL, each ended by a semicolon")
    return statements


def _check_place(source: str, before: str, named: str | None, at: int) -> None:
    if before.strip():
        raise QuestionRefused("a name stands before its question; the one before it needs a semicolon", source, at)
    if named is not None:
        raise QuestionRefused(f"no question follows the name {named!r}", source, at)


def _check_name(name: str, statements: list[PlannedStatement], source: str, at: int) -> str:
    if not _ALLOWED_NAME.fullmatch(name):
        raise QuestionRefused("a name has letters, digits, spaces, dots, - and _ only", source, at)
    if name in (statement.name for statement in statements):
        raise QuestionRefused(f"two questions are called {name!r}", source, at)
    return name


def _cut(source: str, text: str, begin: int, name: str) -> PlannedStatement:
    sql = text.strip()
    start = begin + len(text) - len(text.lstrip())
    if not sql:
        raise QuestionRefused("there is no question before this semicolon", source, start)
    return PlannedStatement(name, sql, start)


def _place_in_file(error: QuestionRefused, source: str, statements: list[PlannedStatement]) -> QuestionRefused:
    """The refusal of a question with its place in the file."""
    start = next((statement.start for statement in statements if statement.sql == error.source), None)
    if start is None or error.offset is None:
        return error
    return QuestionRefused(error.message, source, start + error.offset)


def _read_file(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{file} cannot be read as a file of questions: {error}") from None


def _read_split(given: list[str] | None) -> dict[str, str] | None:
    if not given:
        return None
    pairs = [part.strip().rpartition("=") for option in given for part in option.split(",")]
    if any(not name for name, _, _ in pairs):
        raise InvalidInput("a part of --split is QUESTION=NUMBER, such as --split incomes=3,ages=2")
    return {name: number for name, _, number in pairs}

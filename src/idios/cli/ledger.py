"""``idios ledger``: what was spent, what was answered, and whether the record is intact."""

from __future__ import annotations

import csv
import io
import json
import json as jsonlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from idios.cli import output
from idios.cli.analyst import DEFAULT, Config, open_ledger, record_dataset
from idios.codec import to_json
from idios.config import read_configuration
from idios.core.exact import exact, text
from idios.display import FRESH_BUDGET, format_cost, format_rho, format_short, name_interval
from idios.errors import InvalidInput
from idios.ledger import Anchor, Ledger, StoredAnswer, restore
from idios.model import BalanceList
from idios.plan.question_words import describe_question, describe_statistics, name_statistics

# Released answers as they are published by the controller: one JSON object for an answer, one CSV line for a value.
#
# What was asked is told from its normal form, in words and as calls in SQL: the ledger holds no analyst's own words.


EXPORTED = (
    *("id", "time", "dataset", "version", "group", "statistic", "value", "epsilon", "delta", "rho", "guarantee"),
    *("clipped_low", "clipped_high", "question", "low", "high", "interval", "check", "entry"),
)
"""The columns of the CSV."""


def format_json(answers: Sequence[StoredAnswer]) -> str:
    """One object for every answer."""
    content = [
        {
            "id": answer.id,
            "time": answer.time,
            "sequence": answer.sequence,
            "question": describe_question(answer.question),
            "epsilon": text(answer.epsilon),
            "delta": text(answer.delta),
            "rho": text(answer.rho),
            **to_json(replace(answer.table, statistics=name_statistics(answer.question))),
            "interval": [answer.table.name_interval(i) for i in range(len(answer.table.statistics))],
        }
        for answer in answers
    ]
    return json.dumps(content, ensure_ascii=False, indent=2)


def format_csv(answers: Sequence[StoredAnswer]) -> str:
    """One line for every released value."""
    target = io.StringIO()
    lines = csv.DictWriter(target, EXPORTED, lineterminator="\n")
    lines.writeheader()
    for answer in answers:
        lines.writerows(_list_values(answer))
    return target.getvalue().rstrip("\n")


def _list_values(answer: StoredAnswer) -> Iterator[dict[str, object]]:
    """Every released value with all that is published of it; a check is the noisy number of records too high."""
    table = answer.table
    nothing = ((None,) * len(table.statistics),) * len(table.cells)
    described = list(zip(name_statistics(answer.question), describe_statistics(answer.question), strict=True))
    extra = (table.clipped or nothing, table.intervals or nothing, table.checks or nothing)
    for group, *rows in zip(table.groups, table.cells, *extra, strict=True):
        for (statistic, question), value, limits, interval, check in zip(described, *rows, strict=True):
            yield {
                "id": answer.id,
                "time": answer.time,
                "dataset": answer.dataset,
                "version": answer.version,
                "group": "; ".join(f"{key} = {name}" for key, name in group.items()),
                "statistic": statistic,
                "value": value,
                "epsilon": text(answer.epsilon),
                "delta": text(answer.delta),
                "rho": text(answer.rho),
                "guarantee": table.guarantee,
                **dict(zip(("clipped_low", "clipped_high"), map(text, limits or ()), strict=False)),
                "question": question,
                **dict(zip(("low", "high"), interval or (), strict=False)),
                "interval": None if interval is None else name_interval(clipped=limits is not None),
                "check": None if check is None else (abs(check) + 1) // 2 * (1 if check > 0 else -1),
                "entry": answer.sequence,
            }


app = typer.Typer(
    help="The ledger: balances, entries, verification, export.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

Json = Annotated[bool, typer.Option("--json", help="Print exact JSON.")]
ZERO = Fraction(0)


@app.command()
def balance(config: Config = DEFAULT, json: Json = False) -> None:
    """Show what every data set may spend, has spent and has left, and what an ε of it promises.

    Budgets of data sets about the same people add up, also where one of them is retired.
    """
    with open_ledger(config) as ledger:
        balances = [ledger.balance(declaration.dataset) for declaration in ledger.datasets(retired=True)]
        retired = {balance.dataset for balance in balances if ledger.retired(balance.dataset)}
    if json:
        output.print_json([to_json(each) | {"retired": each.dataset in retired} for each in balances])
        return
    known = BalanceList(tuple(balances))
    table = Table("data set", *known.head)
    for balance in balances:
        cells = zip(known.head, known.cells(balance), strict=True)
        if balance.dataset in retired:
            ended = [
                "retired" if name == "remaining ε" else "" if "remaining" in name else cell for name, cell in cells
            ]
            table.add_row(balance.dataset, *ended)
        else:
            table.add_row(balance.dataset, *(cell for _, cell in cells))
    output.print_balances(table, known)


@app.command("show")
def show_entries(
    after: Annotated[int, typer.Option(help="Begin after this entry.")] = 0,
    limit: Annotated[int, typer.Option(help="How many entries.")] = 50,
    config: Config = DEFAULT,
    json: Json = False,
) -> None:
    """List the entries of the chain."""
    with open_ledger(config) as ledger:
        entries = ledger.entries(after=after, limit=limit)
    if json:
        output.print_json(
            [
                {"sequence": e.sequence, "time": e.time, "kind": e.kind, "content": jsonlib.loads(e.payload)}
                for e in entries
            ]
        )
        return
    table = Table()
    for head in ("#", "time", "kind", "content"):
        table.add_column(head)
    for entry in entries:
        table.add_row(str(entry.sequence), entry.time[:19], entry.kind, _describe_entry(jsonlib.loads(entry.payload)))
    output.print_table(table)


def _describe_entry(content: dict[str, Any]) -> str:
    """The facts of an entry that a person looks for; --json has all of them."""
    facts = []
    for name in (
        "dataset",
        "analyst",
        "accounting",
        "protection",
        "neighbours",
        "unit",
        "epsilon",
        "delta",
        "rho",
        "token",
        "controller",
        "key",
        "reason",
        "detail",
    ):
        value = content.get(name)
        if value in (None, "0/1"):
            continue
        if name in ("epsilon", "delta", "rho"):
            value = format_short(Fraction(value))
        facts.append(f"{name} {value[:16] if name == 'key' else value}")
    return ", ".join(facts)


@app.command()
def verify(
    anchor: Annotated[str | None, typer.Option(help="A line that `idios ledger head` printed earlier.")] = None,
    config: Config = DEFAULT,
) -> None:
    """Check every signature; with an anchor kept elsewhere, also that nothing was cut off."""
    with open_ledger(config) as ledger:
        result = ledger.verify(None if anchor is None else Anchor.parse(anchor))
    output.console.print(str(result), highlight=False)
    if not result.ok:
        raise typer.Exit(1)


@app.command()
def rebuild(
    anchor: Annotated[str | None, typer.Option(help="A line that `idios ledger head` printed earlier.")] = None,
    config: Config = DEFAULT,
) -> None:
    """Rebuild tables that were changed from the signed entries, which must all be good."""
    with open_ledger(config) as ledger:
        ledger.rebuild(None if anchor is None else Anchor.parse(anchor))
        output.console.print(f"Rebuilt: {ledger.verify()}", highlight=False)


@app.command()
def head(config: Config = DEFAULT) -> None:
    """Print the end of the chain as one line; keep it elsewhere."""
    with open_ledger(config) as ledger:
        output.console.out(str(ledger.head()), highlight=False)


@app.command()
def create(
    reason: Annotated[str, typer.Option(help="Why; it is the first entry of the new chain.")],
    config: Config = DEFAULT,
) -> None:
    """Begin a new ledger on purpose where the old one is lost: all spending so far is forgotten, on the record.

    The first use of a configuration needs no command: a ledger and its key are made where there is neither.
    """
    configuration = read_configuration(config)
    with Ledger.create(configuration.ledger_url, configuration.key_file, reason=reason) as ledger:
        output.console.print(f"Begun: {ledger.verify()}.", highlight=False)
    output.console.print(_FORGOTTEN, highlight=False)


@app.command()
def backup(
    file: Annotated[Path, typer.Argument(help="The file to make; it must not exist.")], config: Config = DEFAULT
) -> None:
    """Copy the ledger into a file while it is in use, check the copy, and print its head as the last line."""
    configuration = read_configuration(config)
    with Ledger.open(configuration.ledger_url, configuration.key_file, create=False) as ledger:
        verification = ledger.backup(file)
    output.stderr.print(
        f"{file}: {verification}. The key file is not in it: keep a copy of it elsewhere", highlight=False
    )
    output.console.out(str(verification.head), highlight=False)


@app.command("restore")
def restore_backup(
    file: Annotated[Path, typer.Argument(help="A file that `idios ledger backup` made.")],
    anchor: Annotated[str | None, typer.Option(help="A line that `idios ledger head` printed earlier.")] = None,
    config: Config = DEFAULT,
) -> None:
    """Put a backup back where there is no ledger; ends with 1 if entries before the anchor are lost."""
    configuration = read_configuration(config)
    known = None if anchor is None else Anchor.parse(anchor)
    result = restore(configuration.ledger_url, configuration.key_file, file, known)
    output.console.print(f"Restored: {result.verification}.", highlight=False)
    if anchor is None:
        output.console.print(
            f"Nothing tells whether newer entries are missing. If they may be: {_LOST}", highlight=False
        )
    elif result.lost:
        end = result.verification.head.sequence
        missing = f"The chain ends at entry {end}, the anchor is entry {end + result.lost}: {result.lost} missing."
        output.stderr.print(f"{missing} {_LOST}", style="bold red", highlight=False)
        raise typer.Exit(1)


_LOST = (
    "Answers given since the backup are unknown to the ledger. What they cost is not counted, and the same questions "
    "would be answered again with new noise. Count it as spent with `idios ledger forfeit DATASET --epsilon ... "
    "--reason ...` (all that remains, if you do not know how much it was), or retire the data set with `idios ledger "
    "retire`. It counts under the promise on record: where the declaration was changed since the backup, open the data "
    "set first, as with `idios quote`. Tokens that were revoked and grants that were withdrawn since the backup are "
    "valid again: revoke and withdraw them anew."
)


_FORGOTTEN = (
    "It knows no analyst, no token and no answer, and every budget is whole again. What was spent before is not "
    "counted unless you count it: `idios ledger forfeit DATASET --epsilon ... --reason ...`; or end one with `idios "
    "ledger retire`. Nor does it know what was promised: declare each data set as it was declared then."
)


@app.command("raise")
def raise_budget(
    dataset: str,
    epsilon: Annotated[str | None, typer.Option(help="The new total ε.")] = None,
    delta: Annotated[str | None, typer.Option(help="The new total δ.")] = None,
    config: Config = DEFAULT,
) -> None:
    """Raise a data set's budget to a new total, on the record.

    It weakens what was promised to everyone in the data: they lose up to the new total. The configuration may keep the
    total it has or be changed to the new one; any other is refused.
    """
    with open_ledger(config) as ledger:
        new = ledger.raise_budget(
            dataset,
            epsilon=None if epsilon is None else exact(epsilon, "epsilon"),
            delta=None if delta is None else exact(delta, "delta"),
        )
    budget = format_cost(new.epsilon.budget or ZERO, new.delta.budget or ZERO)
    output.console.print(f"{dataset}: budget {budget}; remaining {new.left_in_words}", highlight=False)


@app.command()
def forfeit(
    dataset: str,
    reason: Annotated[str, typer.Option(help="Why; it stays on the record.")],
    epsilon: Annotated[str, typer.Option(help="How much ε to count as spent.")] = "0",
    delta: Annotated[str, typer.Option(help="How much δ to count as spent.")] = "0",
    rho: Annotated[
        str | None, typer.Option(help="How much ρ to count as spent (ε²/2 unless given); from then on only ρ counts.")
    ] = None,
    config: Config = DEFAULT,
) -> None:
    """Count ε, δ or ρ as spent that no entry accounts for, such as after a restore from an old backup."""
    record_dataset(dataset, config)
    with open_ledger(config) as ledger:
        new = ledger.forfeit(
            dataset,
            epsilon=exact(epsilon, "epsilon"),
            delta=exact(delta, "delta"),
            rho=None if rho is None else exact(rho, "rho"),
            reason=reason,
        )
    output.console.print(f"{dataset}: remaining {new.left_in_words}", highlight=False)


@app.command()
def retire(
    dataset: str,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask whether it is meant.")] = False,
    config: Config = DEFAULT,
) -> None:
    """Answer nothing about a data set from here on; this cannot be undone.

    It is no way to a fresh budget for the same people. What was answered stays known: with another data set about them
    they lose up to the sum of both budgets, under the weaker of both promises, and more where neighbours or unit differ
    (where adding or removing a record costs ε, replacing one costs 2ε or, at individual and group, any amount).
    """
    output.stderr.print(f"{FRESH_BUDGET}.", highlight=False)
    if not yes and output.ask(f"Type {dataset} to retire it for ever") != dataset:
        raise InvalidInput(f"{dataset} was not retired")
    record_dataset(dataset, config)
    with open_ledger(config) as ledger:
        ledger.retire(dataset)
        balance = ledger.balance(dataset)
    spent = format_cost(balance.epsilon.spent) if balance.rho is None else f"ρ = {format_rho(balance.rho.spent)}"
    promised = f" ({balance.promise})" if balance.promise else ""
    output.console.print(f"{dataset} is retired; {spent} was spent{promised}", highlight=False)


@app.command()
def export(
    dataset: Annotated[str | None, typer.Option(help="Only this data set.")] = None,
    format: Annotated[str, typer.Option(help="csv or json.")] = "json",
    out: Annotated[Path | None, typer.Option(help="Write to this file instead of printing.")] = None,
    config: Config = DEFAULT,
) -> None:
    """Export the released answers for publication: questions in words, values, intervals, guarantees, entries."""
    if format not in ("csv", "json"):
        raise InvalidInput(f"format must be csv or json, got {format!r}")
    with open_ledger(config) as ledger:
        answers = ledger.answers(dataset)
    written = format_csv(answers) if format == "csv" else format_json(answers)
    if out is None:
        output.console.out(written, highlight=False)
    else:
        out.write_text(written + "\n", encoding="utf-8")

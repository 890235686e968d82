"""``idios``: all commands in one place, and one way to say that something went wrong."""

from __future__ import annotations

import sys
from importlib.metadata import version
from typing import Annotated

import typer

from idios.cli import analysts, asking, evaluation, ledger, setup
from idios.cli.serve import serve
from idios.cli.show import errors
from idios.demo import demo
from idios.errors import IdiosError

app = typer.Typer(
    name="idios",
    epilog='Start with:  idios query people.csv "SELECT MEDIAN(income) FROM people" --epsilon 0.5 --budget 10',
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)


def _tell_version(asked: bool) -> None:
    if asked:
        typer.echo(version("idios"))
        raise typer.Exit


@app.callback()
def start(
    version: Annotated[
        bool, typer.Option("--version", callback=_tell_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """The trusted party of individual differential privacy: ask in SQL, spend ε, get a private answer."""


app.command()(asking.query)
app.command()(asking.quote)
app.command()(asking.inspect)
app.command()(setup.init)
app.command()(setup.check)
app.command()(serve)
app.add_typer(analysts.app, name="analyst")
app.add_typer(ledger.app, name="ledger")
app.command()(evaluation.compare)
app.command()(evaluation.reproduce)
app.command()(demo)


def main() -> None:
    """Run a command; a foreseen failure is one message and exit code 1."""
    try:
        app()
    except IdiosError as error:
        errors.print(f"error: {error}", style="bold red", markup=False, highlight=False)
        sys.exit(1)

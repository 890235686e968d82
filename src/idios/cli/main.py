"""``idios``: all commands in one place, and one way to say that something went wrong."""

from __future__ import annotations

import sys
from importlib.metadata import version
from typing import Annotated

import typer

from idios.cli import analyst, compare, init, ledger, query
from idios.cli.check import check
from idios.cli.demo import demo
from idios.cli.output import stderr
from idios.cli.plan import plan
from idios.cli.serve import serve
from idios.errors import IdiosError

app = typer.Typer(
    name="idios",
    epilog='Start with:  idios query people.csv "SELECT MEDIAN(income) FROM people" --protection differential -e 1',
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(version("idios"))
        raise typer.Exit


@app.callback()
def start(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """The trusted party of individual differential privacy: ask in SQL, spend ε, get a private answer."""


app.command()(query.query)
app.command()(query.quote)
app.command()(query.inspect)
app.command()(plan)
app.command()(init.init)
app.command()(check)
app.command()(serve)
app.add_typer(analyst.app, name="analyst")
app.add_typer(ledger.app, name="ledger")
app.command()(compare.compare)
app.command()(compare.reproduce)
app.command()(demo)


def main() -> None:
    """Run a command; a foreseen failure is one message and exit code 1."""
    try:
        app()
    except IdiosError as error:
        stderr.print(f"error: {error}", style="bold red", highlight=False)
        sys.exit(1)

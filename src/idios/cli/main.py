"""``idios``: all commands in one place, and one way to say that something went wrong."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.metadata import version
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperGroup
from typer.main import get_command

from idios.errors import IdiosError


class CommandPath(NamedTuple):
    """Where a command is, in a module of this package, and what it does in a line."""

    module: str
    attribute: str
    summary: str


COMMANDS = {
    "query": CommandPath("query", "query", "Ask a question, spend ε, get a private answer."),
    "quote": CommandPath("query", "quote", "Show what a question would cost and promise."),
    "inspect": CommandPath("query", "inspect", "Show the controller the truth and the noise."),
    "shell": CommandPath("shell", "shell", "Ask questions at a prompt."),
    "plan": CommandPath("plan", "plan", "Plan several questions as one report."),
    "init": CommandPath("init", "init", "Write a commented idios.toml for one or several sources."),
    "check": CommandPath("check", "check", "Compare the data with its declaration."),
    "serve": CommandPath("serve", "serve", "Answer analysts over HTTP, with a console."),
    "compare": CommandPath("compare", "compare", "Show what each level of protection would cost."),
    "reproduce": CommandPath("compare", "reproduce", "Compute the paper's evaluation anew."),
    "demo": CommandPath("demo", "demo", "Answer a handful of questions on generated data."),
    "analyst": CommandPath("analyst", "app", "Who may ask, and how much each may spend."),
    "ledger": CommandPath("ledger", "app", "The ledger: balances, entries, verification, export."),
}


class Commands(TyperGroup):
    """The commands, each imported on its first use: that of all takes a second."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Their names in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A command or a group of them; None if there is none of this name."""
        place = COMMANDS.get(cmd_name)
        if place is None:
            return None
        found = getattr(import_module(f"idios.cli.{place.module}"), place.attribute)
        if isinstance(found, typer.Typer):
            command = get_command(found)
        else:
            alone = typer.Typer(add_completion=False, rich_markup_mode=None)
            alone.command()(found)
            command = get_command(alone)
        command.name = cmd_name
        return command

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List them without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, place.summary) for name, place in COMMANDS.items()])


app = typer.Typer(
    name="idios",
    cls=Commands,
    epilog='Start with:  idios query people.csv "SELECT MEDIAN(income) FROM people" -e 1',
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


def main() -> None:
    """Run a command; a foreseen failure is one message and exit code 1."""
    try:
        app()
    except IdiosError as error:
        from idios.cli.output import stderr

        stderr.print(f"error: {error}", style="bold red", highlight=False)
        sys.exit(1)

"""``idios shell``: a prompt for questions about a file, the data sets of a configuration, or those of a server."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from getpass import getpass
from pathlib import Path
from typing import Annotated

import typer

from idios import client
from idios.cli import output
from idios.cli.init import Header, Yes, declare_file
from idios.cli.query import Analyst, Budget, Protection, Unit
from idios.cli.shell_session import Connection, Left, Session
from idios.cli.shell_terminal import Terminal, find_history, open_terminal
from idios.cli.undeclared import explain_undeclared
from idios.config import Configuration, read_configuration
from idios.core.domain import Categories
from idios.core.exact import positive
from idios.errors import InvalidInput
from idios.model import Quote
from idios.party import TrustedParty
from idios.server.catalogue import describe_dataset


def shell(
    source: Annotated[str | None, typer.Argument(help="A data file, as `idios query` takes it.")] = None,
    config: Annotated[str | None, typer.Option(help="The configuration file (default: idios.toml).")] = None,
    server: Annotated[
        str | None, typer.Option(help="The address of a server instead; the token is in IDIOS_TOKEN, or asked for.")
    ] = None,
    epsilon: Annotated[str, typer.Option("--epsilon", "-e", help="What each question may cost; \\e changes it.")] = "",
    analyst: Analyst = None,
    budget: Budget = None,
    header: Header = None,
    yes: Yes = False,
    protection: Protection = None,
    unit: Unit = None,
) -> None:
    """Ask questions at a prompt, each quoted before it is asked.

    A question ends with a semicolon; the tab key completes data sets, columns, functions and keywords. Before ε is
    spent you see the cost and the promise, and say y. \\? lists the commands. Input that is no terminal is read line by
    line; then nothing is spent unless it says \\set ask off, and the exit code is 1 if anything went wrong.
    """
    if epsilon:
        positive(epsilon, "--epsilon")
    if server is not None:
        if source is not None or config is not None or analyst is not None:
            raise InvalidInput("--server names where the data sets are: leave out the file, --config and --analyst")
        opened = _connect(server)
    else:
        path = Path(config or "idios.toml")
        if source is not None:
            path = declare_file(source, config, budget, header, yes, protection, unit)
        opened = _open(path, analyst)
    with opened as connection:
        if sys.stdin.isatty():
            with open_terminal(connection, find_history(os.environ)) as terminal:
                _talk(Session(connection, terminal.confirm, epsilon), terminal)
            return
        session = Session(connection, epsilon=epsilon)
        _read_all(session)
    if session.failed:
        raise typer.Exit(1)


def _talk(session: Session, terminal: Terminal) -> None:
    """Read from a person until they leave."""
    names = ", ".join(session.connection.levels) or "no data sets"
    output.console.print(f"Data sets: {names}. \\? is help, \\q leaves.", highlight=False)
    while True:
        terminal.typed = session.typed
        try:
            terminal.remember(session.read(terminal.read()))
        except KeyboardInterrupt:
            session.drop()
            output.console.print()
        except EOFError:
            output.console.print()
            return
        except Left:
            return


def _read_all(session: Session) -> None:
    """Read from a file or a pipe."""
    with suppress(Left):
        for line in sys.stdin:
            session.read(line.rstrip("\n"))
    session.finish()


@contextmanager
def _open(path: Path, analyst: str | None) -> Iterator[Connection]:
    """The data sets of a configuration, in this process."""
    configuration = read_configuration(path)
    with output.show_progress() as progress:
        party = TrustedParty.from_config(path, progress=progress, retired=False)
    with party:
        yield connect_party(party, configuration, analyst)


def connect_party(party: TrustedParty, configuration: Configuration, analyst: str | None) -> Connection:
    """A party as the shell asks it."""
    datasets = {name: opened.dataset for name, opened in party.datasets.items()}
    tables = {
        name: table
        for dataset in datasets.values()
        for name, table in {**dataset.tables, dataset.name: dataset}.items()
    }

    def quote(sql: str, epsilon: str) -> Quote:
        with explain_undeclared(configuration):
            return party.quote(sql, epsilon, analyst=analyst)

    return Connection(
        quote=quote,
        query=lambda sql, epsilon: party.query(sql, epsilon, analyst=analyst),
        budget=lambda: party.budget(analyst),
        describe=lambda name: describe_dataset(party, configuration.datasets[name]),
        levels={name: str(dataset.protection.level) for name, dataset in datasets.items()},
        columns={name: list(table.columns) for name, table in tables.items()},
        labels={
            name: [
                label
                for column in table.columns.values()
                if isinstance(domain := column.domain, Categories)
                for label in domain.labels or domain.values
            ]
            for name, table in tables.items()
        },
    )


@contextmanager
def _connect(url: str) -> Iterator[Connection]:
    token = os.environ.get(client.TOKEN_VARIABLE)
    if not token and sys.stdin.isatty():
        token = getpass("Token: ")
    with client.connect(url, token) as party:
        yield connect_server(party)


def connect_server(party: client.RemoteParty) -> Connection:
    """A party on a server as the shell asks it."""
    datasets = {facts.name: facts for facts in party.datasets()}
    held = {name: facts.columns for name, facts in datasets.items()}
    tables = {table.name: table.columns for facts in datasets.values() for table in facts.tables} | held
    return Connection(
        quote=party.quote,
        query=party.query,
        budget=party.budget,
        describe=lambda name: datasets[name],
        levels={name: facts.level for name, facts in datasets.items()},
        columns={name: [column.name for column in columns] for name, columns in tables.items()},
        labels={
            name: [label for column in columns for label in column.labels or column.values or ()]
            for name, columns in tables.items()
        },
    )

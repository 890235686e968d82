"""``idios shell``: a prompt for questions about a file, the data sets of a configuration, or those of a server."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from getpass import getpass
from pathlib import Path
from typing import Annotated

import typer

from idios import client
from idios.cli import output
from idios.cli.init import Header, Yes, declare_file
from idios.cli.plan import PIECES
from idios.cli.query import Analyst, Budget, Protection, Unit
from idios.cli.shell_session import WORDS, Left, ShellConnection, ShellSession
from idios.cli.undeclared import explain_undeclared
from idios.config import Configuration, read_configuration
from idios.core.domain import Categories
from idios.core.exact import positive
from idios.errors import InvalidInput
from idios.model import Quote
from idios.party import TrustedParty
from idios.server.catalogue import describe_dataset
from idios.sql.expression_reader import list_value_functions
from idios.sql.names import quote
from idios.sql.sql_functions import function_names

# The terminal of ``idios shell``: lines with completion and a history, by Python's own readline.
#
# The history holds what was typed, questions and commands, never an answer. It is the user's alone: a file of mode 0600
# in a folder of mode 0700.


try:
    import readline
except ImportError:  # not on every system; lines are read all the same
    readline = None  # type: ignore[assignment]

KEYWORDS = (
    *("SELECT", "FROM", "WHERE", "GROUP BY", "HAVING", "ORDER BY", "LIMIT", "JOIN", "LEFT JOIN", "ON", "USING"),
    *("AS", "AND", "OR", "NOT", "BETWEEN", "IN", "IS NULL", "CASE", "WHEN", "THEN", "ELSE", "END", "ASC", "DESC"),
    *("DISTINCT", "BIN(", "OVER (", "PARTITION BY", "ROLLUP(", "CUBE(", "GROUPING SETS ("),
)
LONGEST = 1000
"""How many entries a history keeps."""
_TABLE_FOLLOWS = re.compile(r"(?:\b(?:FROM|JOIN)|\\d)\s+[\w\"]*$", re.IGNORECASE)
_NAMED_TABLE = re.compile(r"\b(?:FROM|JOIN)\s+\"?(\w+)", re.IGNORECASE)


def find_history(environment: Mapping[str, str]) -> Path:
    """Where the history is kept.

    >>> str(find_history({"XDG_STATE_HOME": "/home/ada/state"}))
    '/home/ada/state/idios/history'
    """
    state = environment.get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local" / "state") / "idios" / "history"


def list_completions(before: str, word: str, connection: ShellConnection) -> list[str]:
    """What may be meant by a word; ``before`` is the question up to its end.

    After FROM and JOIN that is a data set, within a string a label of the data sets named, and elsewhere a keyword, a
    function, or a column of these.
    """
    named = [name for name in _NAMED_TABLE.findall(before) if name in connection.columns] or list(connection.columns)
    if (opened := _find_open_string(before)) is not None:
        begun = len(opened) - len(word)  # of a label with spaces, the words before this one are typed already
        labels = [label.replace("'", "''") for name in named for label in connection.labels.get(name, ())]
        return list(dict.fromkeys(f"{label[begun:]}'" for label in _match(opened, labels)))
    if word.startswith("\\"):
        return _match(word, WORDS)
    if re.search(r"\\set\s+ask\s+\w*$", before):
        return _match(word, ("on", "off"))
    if re.search(r"\\set\s+\w*$", before):
        return _match(word, ("ask",))
    names = [quote(name) for name in connection.columns]
    if _TABLE_FOLLOWS.search(before):
        return _match(word, names)
    columns = [quote(column) for name in named for column in connection.columns[name]]
    functions = [f"{name}(" for name in (*function_names(), *list_value_functions())]
    return _match(word, [*columns, *functions, *KEYWORDS, *names])


def _match(word: str, offered: Sequence[str]) -> list[str]:
    """What begins with a word; a name in double quotes may be begun without them."""
    begun = [name for name in offered if name.upper().removeprefix('"').startswith(word.upper().removeprefix('"'))]
    return list(dict.fromkeys(name for name in begun if name.startswith('"') or not word.startswith('"')))


def _find_open_string(before: str) -> str | None:
    """What is typed of a string that is not closed yet; None outside of one."""
    opened = next((piece for piece in PIECES.finditer(before) if piece["open"]), None)
    text = "" if opened is None else before[opened.start() :]
    return text[1:] if text.startswith("'") else None


class Terminal:
    """Lines of a person at a terminal; ``typed`` is what they have typed of a question before this line."""

    def __init__(self, connection: ShellConnection) -> None:
        self.typed = ""
        self._connection = connection
        self._found: list[str] = []

    def complete(self, word: str, state: int) -> str | None:
        """What readline calls: the completions of a word, one by one."""
        if state == 0:
            line = readline.get_line_buffer()[: readline.get_endidx()]
            self._found = list_completions(f"{self.typed}{line}", word, self._connection)
        return self._found[state] if state < len(self._found) else None

    def read(self) -> str:
        """A line; EOFError at the end."""
        return input("     > " if self.typed else "idios> ")

    def confirm(self, question: str) -> bool:
        """Whether they say yes."""
        try:
            return input(question).strip().lower() in ("y", "yes")
        except (EOFError, KeyboardInterrupt):
            print()  # noqa: T201
            return False

    def remember(self, entries: Sequence[str]) -> None:
        """Add to the history."""
        if readline is not None:
            for entry in entries:
                readline.add_history(entry)


@contextmanager
def open_terminal(connection: ShellConnection, history: Path) -> Iterator[Terminal]:
    """A terminal with the history of earlier sessions, which is kept at the end."""
    terminal = Terminal(connection)
    if readline is None:
        yield terminal
        return
    readline.set_auto_history(False)  # a yes is no question
    readline.set_completer(terminal.complete)
    readline.set_completer_delims(" \t\n,()=<>+-*/;'")
    readline.parse_and_bind("bind ^I rl_complete" if "libedit" in (readline.__doc__ or "") else "tab: complete")
    readline.clear_history()
    with suppress(OSError):
        readline.read_history_file(history)
    try:
        yield terminal
    finally:
        readline.set_completer(None)
        keep_history(history)


def keep_history(history: Path) -> None:
    """Write the history for its owner alone; a folder that cannot be written keeps none."""
    with suppress(OSError):
        history.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(history, os.O_CREAT | os.O_WRONLY, 0o600))
        history.chmod(0o600)
        readline.set_history_length(LONGEST)
        readline.write_history_file(history)


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
                _talk(ShellSession(connection, terminal.confirm, epsilon), terminal)
            return
        session = ShellSession(connection, epsilon=epsilon)
        _read_all(session)
    if session.failed:
        raise typer.Exit(1)


def _talk(session: ShellSession, terminal: Terminal) -> None:
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


def _read_all(session: ShellSession) -> None:
    """Read from a file or a pipe."""
    with suppress(Left):
        for line in sys.stdin:
            session.read(line.rstrip("\n"))
    session.finish()


@contextmanager
def _open(path: Path, analyst: str | None) -> Iterator[ShellConnection]:
    """The data sets of a configuration, in this process."""
    configuration = read_configuration(path)
    with output.show_progress() as progress:
        party = TrustedParty.from_config(path, progress=progress, retired=False)
    with party:
        yield connect_party(party, configuration, analyst)


def connect_party(party: TrustedParty, configuration: Configuration, analyst: str | None) -> ShellConnection:
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

    return ShellConnection(
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
def _connect(url: str) -> Iterator[ShellConnection]:
    token = os.environ.get(client.TOKEN_VARIABLE)
    if not token and sys.stdin.isatty():
        token = getpass("Token: ")
    with client.connect(url, token) as party:
        yield connect_server(party)


def connect_server(party: client.RemoteParty) -> ShellConnection:
    """A party on a server as the shell asks it."""
    datasets = {facts.name: facts for facts in party.datasets()}
    held = {name: facts.columns for name, facts in datasets.items()}
    tables = {table.name: table.columns for facts in datasets.values() for table in facts.tables} | held
    return ShellConnection(
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

"""``idios shell``: a prompt for questions about a file, the data sets of a configuration, or those of a server."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from getpass import getpass
from pathlib import Path
from typing import Annotated, cast

import typer
from rich.table import Table

from idios import client
from idios.cli import output
from idios.cli.init import Header, Yes, declare_file
from idios.cli.plan import PIECES
from idios.cli.query import Analyst, Budget, Protection, Unit
from idios.cli.undeclared import explain_undeclared
from idios.config import Configuration, read_configuration
from idios.core.domain import Categories
from idios.core.exact import positive
from idios.display import Listing, format_number, format_short, format_value, shorten_list
from idios.errors import IdiosError, InvalidInput
from idios.model import Answer, Balance, BalanceList, ColumnFacts, DatasetFacts, Quote
from idios.party import TrustedParty
from idios.server.catalogue import describe_dataset
from idios.sql.expression_reader import list_value_functions
from idios.sql.names import quote
from idios.sql.sql_functions import function_names

# A session of ``idios shell``: what each line does, whoever it came from.
#
# 1. A question may take several lines and ends with a semicolon. A line that begins with a backslash is a command.
# 2. Before ε is spent the cost and the promise are shown, and somebody says yes; where nobody can be asked, nothing is
#    spent unless ``\set ask off`` was said. What costs nothing is answered at once.
# 3. An error is told, with its place in the question, and ends nothing but that question.


COMMANDS = {
    "\\d": ("\\d", "list the data sets"),
    "\\d NAME": ("\\d", "show the columns of a data set and what can be asked of each"),
    "\\b": ("\\b", "show the budget: what is spent, and what is left"),
    "\\e EPSILON": ("\\e", "set what each question may cost, such as \\e 0.5; alone: show it"),
    "\\set ask on|off": ("\\set", "whether you are asked before ε is spent"),
    "\\?": ("\\?", "show this help"),
    "\\q": ("\\q", "leave; so does Ctrl-D. Ctrl-C drops what was typed"),
}
"""The commands as they are written: the word that each begins with, and what it does."""
WORDS = tuple(dict.fromkeys(word for word, _ in COMMANDS.values()))

SPELLED = {"quit": "\\q", "exit": "\\q", "help": "\\?"}
"""What people type who come from another shell."""
_CATALOGUE = re.compile(r"(show|describe|desc)\b(?!\s*[(=.])", re.IGNORECASE)
"""How other shells are asked which tables and columns there are; no question begins so."""


class Left(Exception):
    """The session is over."""


@dataclass(frozen=True)
class ShellConnection:
    """The party that is asked, here or on a server."""

    quote: Callable[[str, str], Quote]
    query: Callable[[str, str], Answer]
    budget: Callable[[], Sequence[Balance]]
    describe: Callable[[str], DatasetFacts]
    """Everything public of a data set; planning what can be asked of each column takes a moment."""
    levels: Mapping[str, str]
    """The level of protection of each data set that can be asked about."""
    columns: Mapping[str, Sequence[str]]
    """The columns of each data set, and of each table that can be joined to one."""
    labels: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """What the categories of each of them are called."""


@dataclass
class ShellSession:
    """What was typed so far of a question, and how questions are asked; ``confirm`` is None where nobody can be."""

    connection: ShellConnection
    confirm: Callable[[str], bool] | None = None
    epsilon: str = ""
    ask: bool = True
    typed: str = ""
    failed: bool = field(default=False, init=False)
    """Whether anything went wrong."""

    def read(self, line: str) -> list[str]:
        """Do what a line says; returns what was completed by it, for the history."""
        written = line.strip()
        command = written if written.startswith("\\") else None if self.typed else SPELLED.get(written.rstrip(";"))
        if command is not None:
            self._try(self._run, command)
            return [command]
        if not self.typed and _CATALOGUE.match(written):
            self._try(self._refuse, "\\d lists the data sets, and \\d NAME shows the columns of one")
            return [written]
        questions, self.typed = split_questions(f"{self.typed}{line}\n")
        for question in questions:
            self._try(self._answer, question)
        return [f"{_in_one_line(question)};" for question in questions]

    def finish(self) -> None:
        """Say so if the input ended within a question."""
        if self.typed.strip():
            opened = next((piece for piece in PIECES.finditer(self.typed) if piece["open"]), None)
            why = (
                ""
                if opened is None
                else f": what begins with {_in_one_line(self.typed[opened.start() :])} does not end"
            )
            self._try(self._refuse, f"the last question is not ended by a semicolon{why}")

    def drop(self) -> None:
        """Forget what was typed of a question."""
        self.typed = ""

    def _try(self, do: Callable[[str], None], text: str) -> None:
        try:
            do(text)
        except IdiosError as error:
            self.failed = True
            output.stderr.print(f"error: {error}", style="bold red", highlight=False)

    def _refuse(self, message: str) -> None:
        raise InvalidInput(message)

    # A question.

    def _answer(self, sql: str) -> None:
        if not self.epsilon:
            raise InvalidInput("say what a question may cost: \\e 0.5 sets ε for all that follow")
        quote = self.connection.quote(sql, self.epsilon)
        if not quote.affordable:
            raise InvalidInput(f"{quote.after}; nothing was spent. \\e sets a smaller ε")
        if self.ask and (quote.cost or quote.rho):  # one that others have asked is stored, and still paid for
            print_short_quote(quote)
            if self.confirm is None:
                raise InvalidInput("nobody is here to say yes, and nothing was spent: \\set ask off asks without")
            if not self.confirm("Spend it? [y/N] "):
                output.console.print("Nothing was spent.", highlight=False)
                return
        try:
            answer = self.connection.query(sql, self.epsilon)
        except KeyboardInterrupt:
            output.stderr.print("Stopped. The question stays charged, and asking it again completes it.")
            raise
        output.print_answer(answer)

    # Commands.

    def _run(self, written: str) -> None:
        word, _, rest = written.rstrip("; ").partition(" ")
        argument = rest.strip()
        commands = {
            "\\d": self._describe,
            "\\b": self._show_budget,
            "\\e": self._set_epsilon,
            "\\set": self._set,
            "\\?": self._help,
            "\\q": self._leave,
        }
        if word not in commands:
            raise InvalidInput(f"{word} is not known; \\? lists the commands")
        commands[word](argument)

    def _describe(self, name: str) -> None:
        known = self.connection.levels
        if not name:
            table = Table("data set", "level", "columns")
            for each, level in known.items():
                table.add_row(format_value(each), level, shorten_list(self.connection.columns[each]))
            output.print_table(table)
            return
        if name.strip('"') not in known:
            raise InvalidInput(f"there is no data set {name!r}; there are {', '.join(known) or 'none'}")
        facts = self.connection.describe(name.strip('"'))
        output.console.print(f"{facts.name}: {facts.level}, least ε of a cell {format_short(facts.min_epsilon)}")
        head, rows = Listing.table(cast(Listing[ColumnFacts], facts.columns))
        table = Table(*head)
        for name, *rest in rows:
            table.add_row(*map(format_value, (quote(str(name)), *rest)))
        output.print_table(table)
        for joined in facts.tables:
            output.console.print(f"{joined.name}, which can be joined: {joined.text}", highlight=False)

    def _show_budget(self, _: str) -> None:
        balances = BalanceList(tuple(self.connection.budget()))
        table = Table("data set", *balances.head)
        for balance in balances.budgets:
            table.add_row(balance.dataset, *balances.cells(balance))
        output.print_balances(table, balances)

    def _set_epsilon(self, given: str) -> None:
        if given:
            positive(given, "ε")
            self.epsilon = given
        told = f"Each question costs ε = {self.epsilon}." if self.epsilon else "No ε is set: \\e 0.5 sets one."
        output.console.print(told, highlight=False)

    def _set(self, given: str) -> None:
        name, _, value = given.partition(" ")
        if name and (name != "ask" or value.strip() not in ("on", "off")):
            raise InvalidInput("\\set ask on, or \\set ask off, is all that can be set")
        if name:
            self.ask = value.strip() == "on"
        output.console.print(
            "You are asked before ε is spent." if self.ask else "ε is spent without asking.", highlight=False
        )

    def _help(self, _: str) -> None:
        table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
        table.add_row("SELECT … FROM … ;", "ask a question, in one line or several; the tab key completes")
        for written, (_, meaning) in COMMANDS.items():
            table.add_row(written, meaning)
        output.console.print(table)

    def _leave(self, _: str) -> None:
        raise Left


def split_questions(text: str) -> tuple[list[str], str]:
    """The questions that a semicolon ends, and what follows the last; strings and comments may contain some.

    >>> split_questions("SELECT 1; SELECT ';' -- ;")
    (['SELECT 1'], " SELECT ';' -- ;")
    """
    questions, begin = [], 0
    for piece in PIECES.finditer(text):
        if piece["open"]:
            break
        if piece["end"]:
            questions.append(text[begin : piece.start()].strip())
            begin = piece.end()
    rest = text[begin:]
    return [question for question in questions if question], rest if rest.strip() else ""


def _in_one_line(question: str) -> str:
    """A question as the history has it, without comments."""
    plain = PIECES.sub(lambda piece: " " if piece[0].startswith(("--", "/*")) else piece[0], question)
    return plain.replace("\n", " ").strip()


def print_short_quote(quote: Quote) -> None:
    """What somebody wants to know before they say yes."""
    (_, price), *_ = quote.prices
    output.console.print(f"Cost: {price}. Remaining after it: {quote.after}.", highlight=False)
    if quote.reduction:
        output.console.print(f"Reduced: {quote.reduction}.", highlight=False)
    margins = [f"{c} ± {format_number(m)}" for c, m in quote.margins.items() if m is not None]
    if margins:
        output.console.print(f"95 % of the noise will lie within: {', '.join(margins)}", highlight=False)
    for column, expected in quote.computed_margins.items():
        output.console.print(f"Margin of {format_value(column)}: {expected}", highlight=False)
    for column, risk in quote.null_risks.items():
        output.console.print(f"Risk of {column}: {risk}", highlight=False)
    for note in quote.notes:
        output.console.print(format_value(note), highlight=False)
    output.console.print(f"Promise: {quote.guarantee}", highlight=False)


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

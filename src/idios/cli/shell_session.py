"""A session of ``idios shell``: what each line does, whoever it came from.

1. A question may take several lines and ends with a semicolon. A line that begins with a backslash is a command.
2. Before ε is spent the cost and the promise are shown, and somebody says yes; where nobody can be asked, nothing is
   spent unless ``\\set ask off`` was said. What costs nothing is answered at once.
3. An error is told, with its place in the question, and ends nothing but that question.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from rich.table import Table

from idios.cli import output
from idios.cli.plan import PIECES
from idios.core.exact import positive
from idios.display import Listing, format_number, format_short, format_value, shorten_list
from idios.errors import IdiosError, InvalidInput
from idios.model import Answer, Balance, BalanceList, ColumnFacts, DatasetFacts, Quote
from idios.sql.names import quote

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

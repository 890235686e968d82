"""``idios shell``: piped, in a terminal, and on a server."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from typer.testing import CliRunner

from idios.cli.main import app
from idios.cli.shell import (
    Left,
    ShellConnection,
    ShellSession,
    connect_party,
    connect_server,
    find_history,
    list_completions,
    split_questions,
)
from idios.config import read_configuration
from idios.errors import InvalidInput
from idios.party import TrustedParty
from tests.cli.runner import MEDIAN_AGE, run
from tests.server.office import connect_office


def pipe(*lines: str, options: tuple[str, ...] = ()) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["shell", *options], input="\n".join([*lines, ""]), catch_exceptions=False)
    return result.exit_code, " ".join(result.stdout.split()), " ".join(result.stderr.split())


@pytest.fixture
def connection(declared: Path) -> Iterator[ShellConnection]:
    with TrustedParty.from_config(declared / "idios.toml") as party:
        yield connect_party(party, read_configuration(declared / "idios.toml"), None)


def test_piped_input_spends_nothing_unless_it_says_so(declared: Path) -> None:
    code, shown, errors = pipe("\\e 0.25", f"{MEDIAN_AGE};", "\\b")
    assert code == 1
    assert "Cost: ε = 0.25. Remaining after it: ε = 0.25: about 1 more like this one." in shown
    assert "Promise: 0.25-individual differential privacy" in shown
    assert "error: nobody is here to say yes, and nothing was spent: \\set ask off asks without" in errors
    assert "│ people │ 1 │ 0.5 │ 0.5 │ 0 │" in shown
    code, shown, errors = pipe(
        "\\set ask off", "SELECT MEDIAN(age) -- ; no end", "FROM people", ";", options=("-e", "0.25")
    )
    assert (code, errors) == (0, "")
    assert "ε is spent without asking." in shown
    assert "Cost: ε = 0.25. Remaining: ε = 0.25." in shown


def test_what_is_stored_is_answered_at_once(declared: Path) -> None:
    code, shown, errors = pipe(f"{MEDIAN_AGE};", options=("-e", "0.5", "--config", "idios.toml"))
    assert (code, errors) == (0, "")
    assert "a stored answer, nothing was charged" in shown


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["SELECT 1;"], "say what a question may cost: \\e 0.5"),
        (["\\e 0.1", "SELECT MEDIAN(agee)", "FROM people;"], "MEDIAN(agee) ^"),
        (["\\e 9", f"{MEDIAN_AGE};"], "not affordable: ε = 0.5 left of the data set's budget; nothing was spent"),
        (["\\e none"], "ε must be"),
        (["\\set ask maybe"], "is all that can be set"),
        (["\\set echo on"], "is all that can be set"),
        (["\\d nobody"], "there is no data set 'nobody'; there are people"),
        (["\\x 1"], "\\x is not known; \\? lists the commands"),
        (["SELECT 'one;"], "the last question is not ended by a semicolon: what begins with 'one; does not end"),
        (["SELECT 1"], "the last question is not ended by a semicolon"),
        (["SELECT 1", "\\q"], "the last question is not ended by a semicolon"),
        (["show tables"], "\\d lists the data sets, and \\d NAME shows the columns of one"),
        (["DESCRIBE people;"], "\\d NAME shows the columns of one"),
    ],
)
def test_an_error_is_told_and_the_next_line_is_read(declared: Path, lines: list[str], message: str) -> None:
    code, shown, errors = pipe("\\set", *lines)
    assert code == 1
    assert message in errors
    assert errors.count("error: ") == 1
    assert "You are asked before ε is spent." in shown


def test_commands(declared: Path) -> None:
    code, shown, errors = pipe("help", "\\d", "\\d people;", "\\e", "\\e 1/3", "quit", "\\x")
    assert (code, errors) == (0, "")
    assert "\\set ask on|off whether you are asked" in shown
    assert "│ people │ individual │ age │" in shown
    assert "people: individual, least ε of a cell 0.05" in shown
    assert "│ age │ integer │ no bounds │ yes │ no │ COUNT, SUM" in shown
    assert "No ε is set: \\e 0.5 sets one." in shown
    assert "Each question costs ε = 1/3." in shown


def test_a_file_is_declared_first(folder: Path) -> None:
    code, shown, _ = pipe("\\d", options=("people.csv", "--protection", "differential", "-e", "1"))
    assert code == 0
    assert "│ people │ differential │ age, income, region │" in shown
    assert (folder / "idios.toml").exists()


def test_names_are_shown_as_questions_write_them(folder: Path) -> None:
    (folder / "odd.csv").write_text("net income,age\n" + "10,41\n" * 20)
    code, shown, _ = pipe("\\d odd", options=("odd.csv", "--protection", "differential"))
    assert code == 0
    assert '│ "net income" │' in shown
    assert "│ age │" in shown


def test_options_that_contradict_each_other(declared: Path) -> None:
    with pytest.raises(InvalidInput, match="leave out the file"):
        run("shell", "people.csv", "--server", "https://idios.example.org")
    with pytest.raises(InvalidInput, match="--epsilon must be"):
        run("shell", "-e", "much")
    with pytest.raises(InvalidInput, match="a token is needed"):
        run("shell", "--server", "https://idios.example.org")


def test_somebody_is_asked(connection: ShellConnection, capsys: pytest.CaptureFixture[str]) -> None:
    asked = []

    def confirm(question: str) -> bool:
        asked.append(question)
        return len(asked) > 1

    session = ShellSession(connection, confirm, epsilon="0.25")
    assert session.read("SELECT MEDIAN(age) FROM people") == []
    assert session.typed == "SELECT MEDIAN(age) FROM people\n"
    assert session.read("\\b") == ["\\b"]  # a command may stand within a question
    assert session.read("; SELECT COUNT(*)") == ["SELECT MEDIAN(age) FROM people;"]
    session.drop()
    assert session.read(f"{MEDIAN_AGE};") == [f"{MEDIAN_AGE};"]
    assert asked == ["Spend it? [y/N] "] * 2
    assert [str(balance.epsilon.spent) for balance in connection.budget()] == ["3/4"]
    assert not session.failed
    with pytest.raises(Left):
        session.read("exit")


def test_a_question_that_is_stopped_stays_charged(
    connection: ShellConnection, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(sql: str, epsilon: str) -> None:
        raise KeyboardInterrupt

    session = ShellSession(ShellConnection(**(vars(connection) | {"query": stop})), None, "0.25", ask=False)
    with pytest.raises(KeyboardInterrupt):
        session.read(f"{MEDIAN_AGE}; {MEDIAN_AGE};")


def test_on_behalf_of_an_analyst(declared: Path) -> None:
    run("analyst", "add", "ada")
    run("analyst", "grant", "ada", "people", "--epsilon", "0.3")
    code, shown, _ = pipe("\\set ask off", f"{MEDIAN_AGE};", "\\b", options=("--analyst", "ada", "-e", "0.25"))
    assert code == 0
    assert "│ people │ 0.3 │ 0.25 │ 0.05 │ 0 │" in shown
    run("analyst", "grant", "ada", "people", "--epsilon", "2")  # the controller's answer is stored, and ada pays for it
    code, shown, errors = pipe(f"{MEDIAN_AGE};", "\\b", options=("--analyst", "ada", "-e", "0.5"))
    assert code == 1
    assert "Cost: ε = 0.5." in shown
    assert "nothing was spent" in errors
    assert "│ people │ 2 │ 0.25 │" in shown


def test_a_server(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with connect_office(tmp_path) as party:
        connection = connect_server(party)
        session = ShellSession(connection, lambda question: True, "0.5")
        for line in ("\\d", "\\d people", "SELECT region, COUNT(*) FROM people GROUP BY region;", "\\b"):
            session.read(line)
        assert list_completions("SELECT MEDIAN(in", "in", connection)[0] == "income"
    shown = " ".join(capsys.readouterr().out.split())
    assert not session.failed
    assert "│ people │ differential │ age, income, region │" in shown
    assert "│ north │" in shown
    assert "│ people │ 4 │ 0.5 │ 3.5 │ 0 │" in shown


def test_where_questions_end() -> None:
    assert split_questions("a; b;") == (["a", "b"], "")
    assert split_questions(";; a 'x;''y;' -- ;\n /* ; */ ;\n") == (["a 'x;''y;' -- ;\n /* ; */"], "")
    for unfinished in ("a 'x;", 'a "x;', "a /* ;", "a -- ;"):
        assert split_questions(unfinished) == ([], unfinished)


def test_completion() -> None:
    columns = {"people": ["age", "income", "odd name"], "orders": ["amount"]}
    labels = {"people": ["Thüringen", "New York", "New Mexico", "Martha's"], "orders": ["paid"]}
    calls = [lambda *_: None for _ in range(4)]
    known = ShellConnection(*calls, levels={}, columns=columns, labels=labels)  # type: ignore[arg-type]

    def found(line: str) -> list[str]:
        word = line[max(line.rfind(mark) for mark in " ,()='") + 1 :]
        return list_completions(line, word, known)

    assert found("SEL") == ["SELECT"]
    assert found("SELECT med") == ["MEDIAN("]
    assert found("SELECT MEDIAN(inc") == ["income"]
    assert found("SELECT a") == ["age", "amount", "AVG(", "ABS(", "AS", "AND", "ASC"]
    assert found("SELECT COUNT(*) FROM orders WHERE a") == ["amount", "AVG(", "ABS(", "AS", "AND", "ASC"]
    assert found('SELECT MEDIAN("odd') == ['"odd name"']
    assert found("SELECT MEDIAN(odd") == ['"odd name"']
    assert found("SELECT COUNT(*) FROM people WHERE state = 'th") == ["Thüringen'"]
    assert found("SELECT COUNT(*) FROM people WHERE state IN ('Thüringen', 'New M") == ["Mexico'"]
    assert found("SELECT COUNT(*) FROM people WHERE state = 'M") == ["Martha''s'"]
    assert found("SELECT COUNT(*) FROM orders WHERE state = '") == ["paid'"]
    assert found("SELECT COUNT(*) FROM people WHERE state = 'x' AN") == ["AND"]
    assert found("SELECT o") == ['"odd name"', "ORDER BY", "ON", "OR", "OVER (", "orders"]
    assert found("SELECT COUNT(*) FROM ") == ["people", "orders"]
    assert found("SELECT COUNT(*) FROM people JOIN o") == ["orders"]
    assert found("\\") == ["\\d", "\\b", "\\e", "\\set", "\\?", "\\q"]
    assert found("\\d p") == ["people"]
    assert found("\\set ") == ["ask"]
    assert found("\\set ask o") == ["on", "off"]


def test_where_the_history_is() -> None:
    assert find_history({}) == Path.home() / ".local" / "state" / "idios" / "history"


class Typist:
    """Types into a terminal and reads what it shows."""

    def __init__(self, folder: Path) -> None:
        self.master, slave = pty.openpty()
        environment = os.environ | {"XDG_STATE_HOME": str(folder / "state"), "TERM": "dumb", "COLUMNS": "100"}
        # where tests run in the background, SIGINT is ignored, and children would ignore it too
        start = (
            "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); import idios.cli as c; c.main()"
        )
        command = [sys.executable, "-c", start, "shell", "-e", "0.25"]
        self.process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, cwd=folder, env=environment)
        os.close(slave)
        self.shown = ""

    def wait_for(self, text: str, seconds: float = 60) -> None:
        """Read until the text is shown; what was read before is forgotten."""
        end = time.monotonic() + seconds
        while text not in self.shown:
            assert time.monotonic() < end, f"{text!r} was not shown in {self.shown!r}"
            if select.select([self.master], [], [], 0.1)[0]:
                self.shown += os.read(self.master, 4096).decode()
        self.shown = self.shown.partition(text)[2]

    def interrupt(self, shown: str) -> None:
        """Interrupt, once more if it had no effect: Python misses a signal between a key and waiting for the next."""
        for seconds in (5, 10, 20):
            self.process.send_signal(signal.SIGINT)
            with suppress(AssertionError):
                return self.wait_for(shown, seconds)
        raise AssertionError("three interrupts had no effect")

    def __enter__(self) -> Typist:
        return self

    def __exit__(self, *raised: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.master)

    def type(self, keys: str) -> None:
        os.write(self.master, keys.encode())


@pytest.mark.slow
def test_in_a_terminal(declared: Path) -> None:
    with Typist(declared) as typist:
        typist.wait_for("idios> ")
        typist.type("SELECT MED\t")
        typist.wait_for("MEDIAN(")
        typist.type("ag\t")
        typist.wait_for("age")
        typist.type(") FROM peo\t;\r")
        typist.wait_for("Spend it? [y/N] ")
        typist.type("y\r")
        typist.wait_for("Cost: ε = 0.25. Remaining: ε = 0.25.")
        typist.wait_for("idios> ")
        typist.type("SELECT half")
        typist.wait_for("half")
        typist.interrupt("idios> ")
        typist.type("SELECT MEDIAN(agee)\r")
        typist.wait_for("     > ")
        typist.type("FROM people;\r")
        typist.wait_for("              ^")
        typist.wait_for("idios> ")
        typist.type("\x04")
        assert typist.process.wait(60) == 0
    history = declared / "state" / "idios" / "history"
    assert history.read_text().splitlines() == ["SELECT MEDIAN(age) FROM people;", "SELECT MEDIAN(agee) FROM people;"]
    assert history.stat().st_mode & 0o777 == 0o600
    assert history.parent.stat().st_mode & 0o777 == 0o700

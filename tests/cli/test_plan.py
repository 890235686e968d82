"""``idios plan``: a file of questions, planned and asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from idios.cli.main import app
from idios.cli.plan import PlannedStatement, read_statements
from idios.core.exact import text
from idios.errors import AnswerFailed, BudgetExceeded, InvalidInput, QuestionRefused
from idios.ledger import Ledger
from idios.party import TrustedParty
from tests.cli.runner import configure, run, run_json, run_text

FILE = """-- Two questions; and a comment.
-- name: adults
SELECT COUNT(*) FROM people WHERE age >= 30; -- another; comment
-- name: middle
SELECT MEDIAN(age) -- inside; too
FROM people;
"""


@pytest.fixture
def questions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a data set of budget 1 and a file of questions."""
    (tmp_path / "people.csv").write_text("age\n" + "\n".join(str(20 + i % 60) for i in range(400)) + "\n")
    (tmp_path / "questions.sql").write_text(FILE)
    monkeypatch.chdir(tmp_path)
    configure()
    return tmp_path / "questions.sql"


def spent() -> str:
    with Ledger.open("sqlite:///ledger.db", "ledger.key") as ledger:
        return str(text(ledger.balance("people").epsilon.spent))


def test_statements_have_names_and_places() -> None:
    first, second = read_statements(FILE)
    assert (first.name, second.name) == ("adults", "middle")
    assert FILE[first.start :].startswith(first.sql)
    assert second.sql.split() == ["SELECT", "MEDIAN(age)", "FROM", "people"]
    unnamed = "SELECT ';--' ; /* -- name: x ; */ SELECT \"a;b\";\n--NAME:third one\nSELECT 3;"
    assert [(s.name, s.sql) for s in read_statements(unnamed)] == [
        ("q1", "SELECT ';--'"),
        ("q2", 'SELECT "a;b"'),
        ("third one", "SELECT 3"),
    ]
    assert read_statements("SELECT 'it''s';") == [PlannedStatement("q1", "SELECT 'it''s'", 0)]


@pytest.mark.parametrize(
    ("source", "message", "line"),
    [
        ("SELECT 1;\nSELECT 'x;", "a string does not end", 2),
        ('SELECT "x;', "a quoted name does not end", 1),
        ("SELECT 1;\n/* x;", "a comment does not end", 2),
        ("SELECT 1;\n\nSELECT 2\n", "not ended by a semicolon", 3),
        ("-- name: a\nSELECT 1;\n-- name: a\nSELECT 2;", "two questions are called 'a'", 3),
        ("-- name: q2\nSELECT 1;\nSELECT 2;", "two questions are called 'q2'", 3),
        ("-- name: a\n-- name: b\nSELECT 1;", "no question follows the name 'a'", 2),
        ("SELECT 1;\n-- name: b\n", "no question follows the name 'b'", 2),
        ("SELECT 1\n-- name: b\n;", "a name stands before its question", 2),
        ("-- name: a=b\nSELECT 1;", "a name has letters", 1),
        ("-- name:\nSELECT 1;", "a name has letters", 1),
        ("SELECT 1;;", "no question before this semicolon", 1),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_line(source: str, message: str, line: int) -> None:
    with pytest.raises(QuestionRefused, match=message) as refused:
        read_statements(source)
    assert refused.value.position is not None
    assert refused.value.position[0] == line


def test_a_file_without_questions() -> None:
    with pytest.raises(InvalidInput, match="no questions"):
        read_statements("-- only a comment\n")


def test_a_plan_spends_nothing(questions: Path) -> None:
    shown = run_text("plan", "questions.sql", "--epsilon", "0.8")
    assert "adults" in shown
    assert "to pay ε = 0.8; ε = 1 left, ε = 0.2 after" in shown
    planned = run_json("plan", "questions.sql", "-e", "0.8", "-s", "middle=3,adults=1")
    assert [question["epsilon"] for question in planned["questions"]] == ["0.2", "0.6"]
    assert spent() == "0"


def test_a_report_is_asked_once_it_is_confirmed(questions: Path) -> None:
    command = ["plan", "questions.sql", "-e", "0.8", "--ask"]
    declined = CliRunner().invoke(app, command, input="n\n")
    assert isinstance(declined.exception, InvalidInput)
    assert "nothing was asked" in str(declined.exception)
    unattended = CliRunner().invoke(app, command, input="")
    assert isinstance(unattended.exception, InvalidInput)
    assert "Without a terminal, add --yes" in str(unattended.exception)
    assert spent() == "0"
    confirmed = CliRunner().invoke(app, command, input="y\n")
    assert confirmed.exit_code == 0
    assert "people: charged ε = 0.8; ε = 0.2 left" in confirmed.output
    again = run_json(*command, "--yes")
    assert list(again["answers"]) == ["adults", "middle"]
    assert again["totals"][0]["cost"] == "0"
    assert again["complete"]
    assert spent() == "0.8"


def test_the_exit_code_tells_a_failure(questions: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = ("plan", "questions.sql", "-e", "0.8", "--ask", "--yes")
    original = TrustedParty.complete

    def fail(party: TrustedParty, charged: Any, *rest: Any) -> Any:
        if charged.plan.aggregates[0].label == "COUNT(*)":
            raise AnswerFailed
        return original(party, charged, *rest)

    with monkeypatch.context() as patched:
        patched.setattr(TrustedParty, "complete", fail)
        result = run(*command, "--json")
        assert result.exit_code == 1
        assert list(json.loads(result.stdout)["failures"]) == ["adults"]
        assert "not answered" in run_text(*command, code=1)
    assert run(*command).exit_code == 0
    assert spent() == "0.8"


def test_what_does_not_fit_is_not_asked(questions: Path) -> None:
    with pytest.raises(BudgetExceeded, match="as a whole"):
        run("plan", "questions.sql", "-e", "1.2", "--ask", "--yes")
    assert "not affordable" in run_text("plan", "questions.sql", "-e", "1.2")
    assert spent() == "0"


def test_a_refused_question_is_shown_where_it_stands_in_the_file(questions: Path) -> None:
    questions.write_text(FILE + "-- name: bad\n\nSELECT COUNT(*)\n  FROM people UNION 1;")
    with pytest.raises(QuestionRefused, match="question 'bad': questions cannot be combined") as refused:
        run("plan", "questions.sql", "-e", "1")
    assert refused.value.position == (10, 15)


def test_what_the_command_needs(questions: Path) -> None:
    with pytest.raises(InvalidInput, match="--epsilon 4, or how accurate"):
        run("plan", "questions.sql")
    with pytest.raises(InvalidInput, match="QUESTION=NUMBER"):
        run("plan", "questions.sql", "-e", "1", "-s", "adults")
    with pytest.raises(InvalidInput, match=r"none\.sql cannot be read"):
        run("plan", "none.sql", "-e", "1")
    assert "-- name: adults" in run("plan", "--help").stdout


def test_the_least_epsilon_for_a_margin(questions: Path) -> None:
    questions.write_text("SELECT COUNT(*) FROM people WHERE age >= 30;")
    (planned,) = run_json("plan", "questions.sql", "--within", "20")["questions"]
    assert planned["quote"]["margin"] == {"COUNT(*)": "20"}
    asked = ("quote", "SELECT COUNT(*) FROM people WHERE age >= 30", "--within")
    assert run_json(*asked, "5%")["cost"] == planned["epsilon"]
    with pytest.raises(InvalidInput, match="leave out --epsilon"):
        run(*asked, "20", "-e", "1")

"""A session that ends while its holder writes takes nothing with it; and no other visitor sees what was written."""

from __future__ import annotations

import pytest

from tests.console.running import Served, Watched

pytestmark = pytest.mark.xdist_group("chromium")

SQL = "SELECT MEDIAN(income) AS middle, AVG(age) AS mean\nFROM people\nWHERE age > 41"
SPLIT = "middle = 3\nmean = 1"
EMPTY = ("", "0.5", "")
OFFER = "You were writing a question when your session ended."
KEPT = "JSON.stringify(Object.entries(sessionStorage)) + JSON.stringify(Object.entries(localStorage))"


def _write(seen: Watched) -> None:
    """A question with everything that belongs to it, not asked yet."""
    seen.open("/console/ask")
    seen.write(SQL, "0.7")
    seen.page.get_by_text("Divide ε unevenly").click()
    seen.page.get_by_label("Split of ε").fill(SPLIT)


def _written(seen: Watched) -> tuple[str, str, str]:
    """What the form says."""
    labels = ("Question in SQL", "ε to spend", "Split of ε")
    sql, epsilon, split = (str(seen.page.get_by_label(label).input_value()) for label in labels)
    return sql, epsilon, split


def _end_session(seen: Watched) -> None:
    seen.page.context.clear_cookies()


def _sign_in_here(seen: Watched, token: str) -> None:
    """Sign in on the page that asks for it, as a visitor does who was redirected there."""
    seen.page.get_by_label("Your token").fill(token)
    seen.press("Sign in")


@pytest.mark.parametrize("button", ["^Ask", "sandbox"])
def test_a_question_is_found_again_after_signing_in(seen: Watched, running: Served, button: str) -> None:
    """Nothing of it is in an address, where logs and proxies would see it."""
    addresses: list[str] = []
    seen.page.on("request", lambda request: addresses.append(request.url))
    before = running.spent()
    seen.sign_in("ada")
    _write(seen)
    _end_session(seen)
    seen.press(button)
    _sign_in_here(seen, running.tokens["ada"])
    assert OFFER in seen.text()
    seen.follow("Go on with it")
    assert _written(seen) == (SQL, "0.7", SPLIT)
    assert seen.page.get_by_label("Split of ε").is_visible()
    seen.page.locator("#quote").get_by_text("ε = 0.525").wait_for()
    assert "SELECT" in seen.text(".paint")
    assert running.spent() == before
    assert not [address for address in addresses if "SELECT" in address or "middle" in address]


def test_a_session_that_ended_is_told_while_writing(seen: Watched, running: Served) -> None:
    token = running.analyst("gina", "1")
    seen.sign_in(token)
    seen.open("/console/ask")
    name = next(one.token for one in running.ledger.tokens() if one.holder == "gina")
    running.ledger.revoke_token(name)
    seen.write(SQL)
    seen.follow("Sign in again")
    assert "Your session has ended" in seen.text()
    _sign_in_here(seen, running.ledger.issue_token("gina"))
    seen.follow("Go on with it")
    assert _written(seen) == (SQL, "0.5", "")


def test_going_elsewhere_and_back_loses_nothing(seen: Watched) -> None:
    seen.sign_in("ada")
    _write(seen)
    seen.follow("History")
    assert OFFER not in seen.text()
    seen.follow("Ask")
    assert _written(seen) == (SQL, "0.7", SPLIT)
    seen.follow("Data sets")
    seen.follow("MEDIAN(income)")
    assert _written(seen) == ("SELECT MEDIAN(income) FROM people", "0.5", ""), "what was chosen comes first"


def test_whoever_signs_out_leaves_nothing(seen: Watched, running: Served) -> None:
    seen.sign_in("ada")
    _write(seen)
    assert "WHERE age > 41" in seen.page.evaluate(KEPT)
    seen.press("Sign out")
    assert seen.page.evaluate(KEPT) == "[][]"
    _sign_in_here(seen, running.tokens["ada"])
    assert OFFER not in seen.text()
    seen.open("/console/ask")
    assert _written(seen) == EMPTY


def test_somebody_else_does_not_find_it(seen: Watched, running: Served) -> None:
    seen.sign_in("ada")
    _write(seen)
    _end_session(seen)
    seen.press("^Ask")
    _sign_in_here(seen, running.tokens["bob"])
    assert OFFER not in seen.text()
    assert seen.page.evaluate(KEPT) == "[][]"
    seen.open("/console/ask")
    assert _written(seen) == EMPTY


def test_nothing_is_kept_of_what_was_asked(seen: Watched, running: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    seen.sign_in("ada")
    _write(seen)
    seen.press("sandbox")
    assert "WHERE age > 41" in seen.page.evaluate(KEPT), "it was not asked yet"
    seen.press("^Ask")
    assert seen.page.locator(".answer").count() == 1
    assert seen.page.evaluate(KEPT) == "[][]"
    seen.open("/console/ask")
    assert _written(seen) == EMPTY
    monkeypatch.setattr("idios.server.console.ask.PATIENCE", 0.2)
    seen.write("SELECT MEDIAN(income) FROM archive", "0.5")
    seen.press("^Ask")
    assert seen.text("h1") == "Still computing"
    assert seen.page.evaluate(KEPT) == "[][]"


def test_a_field_that_was_emptied_stays_empty(seen: Watched) -> None:
    seen.sign_in("ada")
    _write(seen)
    seen.page.get_by_label("Question in SQL").fill("")
    seen.open("/console/ask")
    assert _written(seen) == EMPTY


def test_another_window_knows_nothing_of_it(seen: Watched, running: Served) -> None:
    seen.sign_in("ada")
    _write(seen)
    other = seen.page.context.new_page()
    other.goto(running.address + "/console/ask")
    assert other.get_by_label("Question in SQL").input_value() == ""
    other.close()

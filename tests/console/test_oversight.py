"""The controller's pages in a real browser: budgets, the ledger, analysts and tokens, the cost of protection."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest

from tests.console.console_office import BY_REGION, MEDIAN
from tests.console.running import Served, Watched, served, window

pytestmark = pytest.mark.xdist_group("chromium")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("oversight")) as started:
        for who, epsilon in (("ada", "0.5"), (None, "1"), ("ada", "1.5")):
            started.service.party.query(BY_REGION, epsilon, analyst=who)
        yield started


@pytest.fixture
def seen(chromium: Any, running: Served) -> Iterator[Watched]:
    with window(chromium, running) as opened:
        opened.sign_in("grace")
        yield opened


def test_the_overview_shows_budgets_spending_and_risks(seen: Watched, running: Served) -> None:
    people = seen.page.get_by_role("region", name="people", exact=True)
    shown = " ".join(people.inner_text().split())
    assert "Spent ε = 3 Remaining ε = 7" in shown
    rows = people.locator("tbody tr").all_inner_texts()
    assert [row.strip().split("\t") for row in rows] == [["ada", "2", "2"], ["controller", "1", "1"]]
    drawing = people.get_by_role("img", name="Spending of people over time")
    assert drawing.locator("path").count() == 2
    assert drawing.bounding_box()["height"] > 150
    assert "the noise is fitted to the actual data" in seen.text()
    people.get_by_text("Raise the budget").click()
    people.get_by_label("New total of ε").fill("2")
    seen.press("^Raise$", people)
    assert "takes new totals above the recorded ε = 10" in seen.text("[role=alert]")
    assert seen.page.locator("[aria-current]").inner_text() == "Overview"
    assert people.get_by_label("New total of ε").input_value() == "2", "what was written is still there"
    people.get_by_label("New total of ε").fill("12")
    seen.press("^Raise$", people)
    assert "The budget was raised" in seen.text("[role=status]")
    assert running.ledger.balance("people").epsilon.budget == 12


def test_a_data_set_is_retired_only_by_its_name(seen: Watched, running: Served) -> None:
    surveys = seen.page.get_by_role("region", name="surveys", exact=True)
    surveys.get_by_text("Retire", exact=True).click()
    for typed in ("survey", "surveys"):
        assert not running.ledger.retired("surveys")
        surveys.get_by_label("to confirm").fill(typed)
        seen.press("Retire for ever", surveys)
    assert running.ledger.retired("surveys")
    assert "retired" in seen.page.locator("#dataset-2").inner_text()


def test_the_ledger_is_searched_and_verified(seen: Watched, running: Served) -> None:
    seen.follow("Ledger")
    everything = seen.page.locator(".entries tbody tr").count()
    seen.page.get_by_label("Kind").select_option("reserved")
    seen.page.get_by_label("Analyst").select_option("ada")
    seen.press("Search")
    found = seen.page.locator(".entries tbody tr").all_inner_texts()
    assert len(found) == 2 < everything
    assert all("reserved" in row and "ada" in row for row in found)
    seen.page.get_by_label("Containing").fill("no such text")
    seen.press("Search")
    assert "No entry is like that." in seen.text()
    seen.follow("Show all")
    head = seen.page.locator("#head").inner_text()
    assert head == str(running.ledger.head())
    seen.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    seen.page.get_by_role("button", name="Copy", exact=True).click()
    seen.page.get_by_role("button", name="Copied").wait_for()
    assert seen.page.evaluate("navigator.clipboard.readText()") == head
    seen.press("Verify")
    assert f"Verified: {running.ledger.head().sequence} entries" in seen.text("[role=status]")
    seen.page.get_by_label("Anchor").fill(f"{running.ledger.head().sequence}:{'0' * 64}")
    seen.press("Verify")
    assert "Not verified." in seen.text("[role=alert]")
    seen.page.get_by_label("Anchor").fill("nonsense")
    seen.press("Verify")
    assert "An anchor is a number" in seen.text("[role=alert]")


def test_an_analyst_is_let_in_and_out(seen: Watched, running: Served, chromium: Any) -> None:
    seen.follow("Analysts")
    seen.page.get_by_label("Name", exact=True).fill("frank")
    seen.press("^Add$")
    assert "frank" in seen.text(".names")
    seen.page.get_by_label("Analyst", exact=True).select_option("frank")
    seen.page.get_by_label("Data set").select_option("people")
    seen.page.get_by_label("Cap of ε").fill("1/3")
    seen.press("^Grant$")
    assert running.ledger.balance("people", "frank").epsilon.budget == Fraction(1, 3)
    seen.page.get_by_label("For whom").fill("frank")
    seen.page.get_by_label("Days").fill("7")
    seen.press("^Issue$")
    secret = seen.page.locator("#secret").inner_text()
    assert running.ledger.authenticate(secret).name == "frank"
    assert secret not in seen.page.url
    issued = len(running.ledger.tokens())
    seen.page.reload()
    assert seen.page.locator("#secret").count() == 0
    assert len(running.ledger.tokens()) == issued, "reloading issues no second token"
    with window(chromium, running) as franks:
        franks.sign_in(secret)
        assert "≈ 0.3333 left" in franks.text(".meters").replace("\u202f", " ")
        seen.press("Revoke the token .* of frank")
        assert "revoked" in seen.text("[role=status]")
        franks.follow("Ask")
        assert "Your session has ended" in franks.text()
    seen.press("Withdraw people from frank")
    assert "withdrawn" in seen.text("[role=status]")
    assert "frank" not in {one.analyst for one in running.ledger.grants()}


def test_the_cost_of_protection_is_drawn_and_recorded(seen: Watched, running: Served) -> None:
    seen.follow("Compare")
    before = running.ledger.head().sequence
    spent = running.spent()
    seen.page.get_by_label("Question in SQL").fill(MEDIAN)
    seen.press("^Compare$")
    drawing = seen.page.get_by_role("img", name=re.compile("Expected error of MEDIAN"))
    rows = [row.split("\t") for row in seen.page.locator("tbody tr").all_inner_texts()]
    assert [row[0] for row in rows][:2] == ["individual", "group of 5"]
    answered = [row for row in rows if row[1] != "—"]
    assert drawing.locator("circle").count() == len(answered) >= 2
    entry = running.ledger.search(limit=1)[0]
    assert (entry.sequence, entry.kind) == (before + 1, "inspected")
    assert running.spent() == spent


def test_a_controller_may_ask_too(seen: Watched, running: Served) -> None:
    before = running.spent()
    seen.follow("Ask")
    seen.write("SELECT SUM(age) FROM people", "0.25")
    seen.press("^Ask")
    assert seen.page.locator(".single output").count() == 1
    assert running.spent() == before + Fraction(1, 4)

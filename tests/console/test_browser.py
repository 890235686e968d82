"""The console in a real browser: what an analyst and a controller do from signing in to signing out."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import pytest

from tests.console.console_office import BY_REGION, MEDIAN
from tests.console.running import Served, Watched, expect, window

pytestmark = pytest.mark.xdist_group("chromium")


def test_from_signing_in_to_an_answer(seen: Watched, running: Served) -> None:
    seen.open("/")
    seen.page.get_by_label("Your token").fill("not a token")
    seen.press("Sign in")
    assert "This token is unknown, revoked or expired." in seen.text()
    seen.sign_in("ada")
    assert "ε = 4 left of 4" in seen.text(".meters")
    seen.follow("MEDIAN(income)")
    assert seen.page.get_by_label("Question in SQL").input_value() == MEDIAN
    before = running.spent()
    expect(seen.page.locator("#quote")).to_contain_text("4 → 3.5")
    expect(seen.page.locator("#quote")).to_contain_text("With concentrated accountingρ")
    expect(seen.page.locator("#quote")).to_contain_text("about 7 more like it")
    expect(seen.page.locator("#quote")).to_contain_text("1 cell, for ε = 0.05 or more")
    expect(seen.page.locator("#quote")).to_contain_text("differential privacy")
    expect(seen.page.get_by_role("button", name="Ask (spends ε = 0.5)")).to_be_visible()
    assert running.spent() == before
    seen.press("^Ask")
    number = seen.page.locator(".single output").inner_text()
    assert re.fullmatch("[0-9,.]+", number), number
    assert running.spent() == before + Fraction(1, 2)
    assert "ε = 3.5 left of 4" in seen.text(".meters")
    seen.page.reload()
    assert seen.page.locator(".single output").inner_text() == number
    assert "it is the same answer" in seen.text(".facts")
    assert running.spent() == before + Fraction(1, 2)
    seen.follow("History")
    assert seen.page.locator(".history output").first.inner_text() == number


def test_where_rho_adds_up_a_quote_tells_both_prices(seen: Watched) -> None:
    seen.sign_in("ada")
    seen.open("/console/ask")
    seen.write("SELECT COUNT(*) FROM archive WHERE age > 40", "0.05")
    quote = seen.page.locator("#quote")
    expect(quote).to_contain_text("Costρ = 0.00125")
    expect(quote).to_contain_text("With pure accountingnone: Gaussian noise has no ε of its own")
    expect(quote).to_contain_text(re.compile(r"ρ: 0\.\d+ → 0\.\d+Stands forε: [\d.]+ → [\d.]+"))
    expect(quote).to_contain_text(re.compile(r"about \d+ more like it"))
    expect(seen.page.get_by_role("button", name="Ask (spends ρ = 0.00125)")).to_be_visible()


def test_groups_are_bars_and_a_table(seen: Watched, running: Served) -> None:
    seen.sign_in(running.analyst("carol", "2"))
    seen.open("/console/ask")
    seen.write(BY_REGION, "1")
    expect(seen.page.locator("#quote")).to_contain_text("2 → 1")
    seen.press("^Ask")
    shown = seen.page.locator(".answer tbody tr").all_inner_texts()
    cells = [row.split("\t") for row in shown]
    assert [cell[0] for cell in cells] == ["north", "south", "east", "west"]
    drawn = seen.page.locator(".answer svg.chart text.value").all_text_contents()
    assert drawn == [cell[1] for cell in cells]
    widths = [float(bar.get_attribute("width")) for bar in seen.page.locator(".answer svg rect.series-1").all()]
    counts = [float(cell[1].replace(",", "")) for cell in cells]
    assert widths == sorted(widths, reverse=True)
    assert widths[0] / widths[3] == pytest.approx(counts[0] / counts[3], rel=0.05)
    assert seen.page.get_by_role("img", name=re.compile("by region")).count() == 1


def test_what_is_computed_from_statistics_is_quoted_painted_and_drawn(seen: Watched, running: Served) -> None:
    seen.sign_in(running.analyst("rosa", "2"))
    seen.open("/console/ask")
    share = "ROUND(100 * COUNT(*) / 3000, 1)"
    asked = f"SELECT region, {share} AS percent -- of all\nFROM people GROUP BY 1 ORDER BY percent LIMIT 3"
    seen.write(asked, "1")
    expect(seen.page.locator("#quote")).to_contain_text(f"COUNT(*)ε = 0.5, ± 9Computed: percent{share}")
    painted = {kind: seen.page.locator(f".paint .{kind}").all_inner_texts() for kind in ("comment", "function")}
    assert painted == {"comment": ["-- of all"], "function": ["ROUND", "COUNT"]}
    assert "LIMIT" in seen.page.locator(".paint .keyword").all_inner_texts()
    seen.press("^Ask")
    rows = [row.split("\t") for row in seen.page.locator(".answer tbody tr").all_inner_texts()]
    assert [row[0] for row in rows] == ["west", "east", "south"]
    assert seen.page.locator(".answer svg.chart text.value").all_text_contents() == [row[1] for row in rows]
    seen.write(asked.replace("ORDER", "HAVING COUNT(*) > 5000 ORDER"), "1")
    expect(seen.page.get_by_role("button", name="Ask (free)")).to_be_visible()
    seen.press("^Ask")
    assert "0 rows" in seen.text(".answer")
    assert "HAVING or LIMIT, leaves none" in seen.text(".answer")


def test_an_exhausted_budget_is_told_before_and_after(seen: Watched, running: Served) -> None:
    seen.sign_in(running.analyst("dave", "0.4"))
    seen.open("/console/ask")
    before = running.spent()
    seen.write("SELECT COUNT(*) FROM people WHERE age > 65", "0.5")
    expect(seen.page.locator("#quote")).to_contain_text("too little: ε = 0.4 left of the analyst's cap")
    seen.press("^Ask")
    problem = seen.text("[role=alert]")
    assert "More than is left: ε = 0.5 was asked for, ε = 0.4 is left." in problem
    assert "nothing was charged" in problem
    assert running.spent() == before
    assert seen.page.get_by_label("Question in SQL").input_value().startswith("SELECT COUNT(*)")
    seen.write("SELECT COUNT(*) FROM people WHERE age > 65", "0.4")
    expect(seen.page.locator("#quote")).to_contain_text("0.4 → 0")
    seen.press("^Ask")
    assert "ε = 0 left of 0.4" in seen.text(".meters")


def test_what_is_wrong_is_marked_where_it_is(seen: Watched) -> None:
    seen.sign_in("ada")
    seen.open("/console/ask")
    seen.write("SELECT MEDIAN(income)\nFROM people UNION people")
    expect(seen.page.locator(".paint mark")).to_have_text("UNION")
    expect(seen.page.locator("#quote")).to_contain_text("line 2, column 13")
    assert seen.page.locator("#quote").get_attribute("aria-live") == "polite"
    seen.write(MEDIAN)
    expect(seen.page.locator("#quote")).to_contain_text("differential privacy")
    assert seen.page.locator(".paint mark").count() == 0


def test_weights_are_offered_and_quoted(seen: Watched, running: Served) -> None:
    seen.sign_in(running.analyst("frank", "2"))
    seen.open("/console/ask")
    split, quote = seen.page.get_by_label("Split of ε"), seen.page.locator("#quote")
    assert not split.is_visible()
    seen.write("SELECT MEDIAN(income) AS middle, AVG(age) AS mean FROM people", "1")
    expect(quote).to_contain_text("middleε = 0.5")
    seen.page.get_by_text("Divide ε unevenly").click()
    expect(split).to_have_value("middle = 1\nmean = 1")
    # What was only offered follows the question.
    seen.write("SELECT MEDIAN(income) AS half, AVG(age) AS mean FROM people", "1")
    expect(split).to_have_value("half = 1\nmean = 1")
    split.fill("half = 3\nmean = 1")
    expect(quote).to_contain_text("halfε = 0.75")
    expect(quote).to_contain_text("meanε = 0.25")
    split.fill("half = 3\nmean")
    expect(quote).to_contain_text("NAME = NUMBER, such as COUNT(*) = 2; this one is not: mean")
    split.fill("half = 3\nmean = 1\nhalf = 1")
    expect(quote).to_contain_text("this one is there twice: half")
    split.fill("half = 3\nmode = 1")
    expect(quote).to_contain_text("'mode', which is no statistic here")
    seen.press("^Ask")
    assert "which is no statistic here" in seen.text("[role=alert]")
    assert split.input_value() == "half = 3\nmode = 1"
    before = running.spent()
    split.fill("half = 3\nmean = 1")
    seen.press("^Ask")
    assert seen.page.locator(".answer tbody tr").count() == 1
    assert running.spent() == before + 1
    stored = running.service.party.quote(
        "SELECT MEDIAN(income) AS half, AVG(age) AS mean FROM people", 1, split={"half": 3, "mean": 1}
    )
    assert stored.stored


def test_offered_weights_are_not_sent(seen: Watched) -> None:
    """A visitor who opens the field, then changes the question faster than the quote comes, is not refused for it."""
    seen.sign_in("ada")
    seen.open("/console/ask")
    seen.write("SELECT MEDIAN(income), AVG(age) FROM people")
    seen.page.get_by_text("Divide ε unevenly").click()
    expect(seen.page.get_by_label("Split of ε")).to_have_value("MEDIAN(income) = 1\nAVG(age) = 1")
    late = {"error": {"message": "not yet", "where": None, "fix": "wait"}}
    seen.page.route("**/v1/quote", lambda route: route.fulfill(status=422, json=late))
    seen.write("SELECT MEDIAN(income), MAX(age) FROM people")
    seen.press("sandbox")
    assert "Sandbox: made-up data" in seen.text(".answer h2")


def test_no_weights_are_offered_to_somebody_who_writes_some(seen: Watched) -> None:
    seen.sign_in("ada")
    seen.open("/console/ask")
    seen.write("SELECT MEDIAN(income) AS middle, AVG(age) AS mean FROM people", "1")
    quote, split = seen.page.locator("#quote"), seen.page.get_by_label("Split of ε")
    expect(quote).to_contain_text("middleε = 0.5")
    seen.page.locator(".divide").evaluate("one => { one.open = true; one.querySelector('textarea').focus(); }")
    seen.page.get_by_label("ε to spend").evaluate("one => { one.value = '2'; one.dispatchEvent(new Event('input')); }")
    expect(quote).to_contain_text("middleε = 1")
    assert split.input_value() == ""
    seen.page.keyboard.insert_text("middle = 3\nmean = 1")
    expect(quote).to_contain_text("middleε = 1.5")


def test_words_complete_by_keyboard(seen: Watched) -> None:
    seen.sign_in("ada")
    seen.open("/console/ask")
    field = seen.page.get_by_label("Question in SQL")
    keys = seen.page.keyboard
    field.focus()
    keys.type("sel")
    assert field.get_attribute("aria-expanded") == "true"
    listed = seen.page.get_by_role("listbox")
    expect(listed.get_by_role("option", selected=True)).to_contain_text("SELECT")
    keys.press("Enter")
    keys.type("m")
    options = [one.split("\n")[0] for one in listed.get_by_role("option").all_inner_texts()]
    assert options == ["MEDIAN", "MIN", "MAX", "MODE"]
    active = "#" + str(field.get_attribute("aria-activedescendant"))
    assert "MEDIAN" in seen.text(active)
    keys.press("ArrowDown")
    keys.press("ArrowDown")
    keys.press("ArrowUp")
    keys.press("ArrowUp")
    keys.press("Tab")
    keys.type("inc")
    keys.press("Tab")
    keys.type(") fr")
    keys.press("Enter")
    keys.type("pe")
    keys.press("Escape")
    expect(listed).to_be_hidden()
    assert field.input_value() == "SELECT MEDIAN(income) FROM pe"
    keys.type("o")
    keys.press("Enter")
    assert field.input_value() == MEDIAN
    expect(seen.page.locator("#quote")).to_contain_text("differential privacy")
    keys.press("Tab")
    assert seen.page.evaluate("document.activeElement.id") == "epsilon", "with the list closed, Tab goes on"


def test_the_sandbox_is_free(seen: Watched, running: Served) -> None:
    seen.sign_in("ada")
    before = running.ledger.head()
    seen.open("/console/ask")
    seen.write("SELECT region, AVG(age) FROM people GROUP BY region")
    seen.press("sandbox")
    assert "Sandbox: made-up data" in seen.text(".answer h2")
    assert seen.page.locator(".answer tbody tr").count() == 4
    assert running.ledger.head() == before


def test_a_revoked_token_ends_the_session(seen: Watched, running: Served) -> None:
    seen.sign_in(running.analyst("erin", "1"))
    token = next(one.token for one in running.ledger.tokens() if one.holder == "erin")
    running.ledger.revoke_token(token)
    seen.follow("History")
    assert "Your session has ended, or your token was revoked." in seen.text()
    assert seen.page.get_by_label("Your token").is_visible()


def test_signing_out(seen: Watched) -> None:
    seen.sign_in("ada")
    seen.press("Sign out")
    assert "You have signed out." in seen.text()
    seen.open("/console/history")
    assert seen.page.url.endswith("/console/sign-in")


def test_long_questions_are_watched_and_stopped(
    seen: Watched, running: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("idios.server.console.analyst_pages.PATIENCE", 0.2)
    seen.sign_in("ada")
    seen.open("/console/ask")
    seen.write("SELECT MEDIAN(income) FROM surveys", "1")
    seen.press("^Ask")
    assert seen.text("h1") == "Still computing"
    assert "It stays charged" in seen.text()
    assert running.spent("surveys") == 1
    expect(seen.page.locator("h1")).to_have_text("Answered")
    assert seen.page.locator(".single output").count() == 1
    seen.open("/console/ask")
    seen.write("SELECT MEDIAN(age) FROM archive", "0.5")
    seen.press("^Ask")
    seen.press("Stop")
    assert seen.text("h1") == "Stopped"
    assert running.spent("archive") == Fraction(1, 2)
    seen.press("To the question")
    assert seen.page.get_by_label("Question in SQL").input_value() == "SELECT MEDIAN(age) FROM archive"


def test_everything_works_without_script(chromium: Any, running: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    with window(chromium, running, java_script_enabled=False) as seen:
        seen.sign_in("ada")
        seen.open("/console/ask")
        before = running.spent()
        seen.page.get_by_label("Question in SQL").fill("SELECT AVG(age)\nFROM people")
        seen.page.get_by_label("ε to spend").fill("0.25")
        seen.press("What does it cost")
        assert "ε = 0.25" in seen.text("#quote")
        assert running.spent() == before
        seen.press("^Ask")
        assert seen.page.locator(".single output").count() == 1
        assert running.spent() == before + Fraction(1, 4)
        seen.page.get_by_label("Question in SQL").fill("SELECT MAX(age), MIN(age) FROM people")
        seen.page.get_by_text("Divide ε unevenly").click()
        seen.page.get_by_label("Split of ε").fill("MAX(age) = 4\nMIN(age) = 1")
        seen.press("What does it cost")
        assert "MAX(age) ε = 0.2 a cell" in seen.text("#quote")
        seen.page.get_by_label("Split of ε").fill("")
        monkeypatch.setattr("idios.server.console.analyst_pages.PATIENCE", 0.2)
        seen.page.get_by_label("Question in SQL").fill("SELECT MAX(age) FROM surveys")
        seen.press("^Ask")
        assert seen.text("h1") == "Still computing"
        expect(seen.page.locator("h1")).to_have_text("Answered")


def test_the_share_for_checks_is_quoted_and_told(seen: Watched, running: Served) -> None:
    seen.sign_in(running.analyst("carla", "3"))
    seen.open("/console/ask")
    seen.write(MEDIAN, "1")
    field, quote = seen.page.get_by_label("Share for checks"), seen.page.locator("#quote")
    assert field.get_attribute("placeholder") == "0"
    expect(quote).to_contain_text("MEDIAN(income)ε = 1,")
    field.fill("0.25")
    expect(quote).to_contain_text("MEDIAN(income)ε = 0.75,")
    expect(quote).to_contain_text("Check of MEDIAN(income)ε = 0.25, tells how many records off it is")
    seen.open("/console/ask")
    assert field.input_value() == "0.25", "a draft has its check too"
    expect(quote).to_contain_text("ε = 0.75,")
    seen.press("^Ask")
    assert re.search(r"How far off [\w ]*\d+ .*\(noise, 95\s%\)", seen.text(".facts"))
    seen.write(BY_REGION.replace("COUNT(*)", "MEDIAN(age)"), "2")
    field.fill("0.5")
    seen.press("^Ask")
    assert "MEDIAN(age) is off by, in added or removed records" in seen.text("table")
    assert seen.fits()

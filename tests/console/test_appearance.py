"""How every page looks: pictures for people to judge, and what can be measured: nothing sticks out, nothing jumps."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from tests.console.console_office import BY_REGION, MEDIAN
from tests.console.running import Served, Watched, expect, served, window

pytestmark = pytest.mark.xdist_group("chromium")

PICTURES = Path(__file__).parents[2] / "artefacts" / "console"
WINDOWS: dict[str, dict[str, Any]] = {
    "desktop": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 360, "height": 740}, "color_scheme": "light", "is_mobile": True},
}
CONTRASTS = """
() => {
  const channel = (value) => (value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => 0.2126 * channel(r / 255) + 0.7152 * channel(g / 255) + 0.0722 * channel(b / 255);
  const parse = (text) => (text.match(/[\\d.]+/g) ?? []).map(Number);
  const found = [];
  for (const element of document.querySelectorAll("main *, header *, footer *")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!own || element.closest("svg, .editor, .hidden, noscript, option") || !element.checkVisibility()) continue;
    let below = element;
    let back = parse(getComputedStyle(below).backgroundColor);
    while (below.parentElement && back.length === 4 && back[3] === 0) {
      below = below.parentElement;
      back = parse(getComputedStyle(below).backgroundColor);
    }
    const [a, b] = [light(parse(getComputedStyle(element).color)), light(back)];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) found.push(`${element.tagName}.${element.className}: ${ratio.toFixed(2)}`);
  }
  return found;
}
"""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("appearance")) as started:
        party, book = started.service.party, started.ledger
        for name in ("Katharina von Hohenstein-Altenburg", "carol"):
            book.add_analyst(name)
            book.grant(name, "people", epsilon=Fraction(3))
        for number, who in enumerate(("ada", None, "carol", "ada", "Katharina von Hohenstein-Altenburg")):
            party.query(BY_REGION, Fraction(number + 2, 10), analyst=who)
        party.query("SELECT region, MEDIAN(income), COUNT(*) FROM people GROUP BY region", "0.5", analyst="ada")
        party.query("SELECT COUNT(*) FROM people WHERE age > 65 AND region <> 'north'", "1/3", analyst="ada")
        yield started


def _ask(seen: Watched, sql: str, button: str) -> None:
    seen.open("/console/ask")
    seen.write(sql)
    seen.press(button)
    seen.page.locator(".answer").wait_for()
    seen.page.locator("#quote dl").wait_for()


def _long(seen: Watched, epsilon: str) -> Iterator[str]:
    seen.sign_in("ada")
    seen.open("/console/ask")
    seen.write("SELECT MEDIAN(income)\nFROM archive\nWHERE age BETWEEN 30 AND 40", epsilon)
    seen.press("^Ask")
    yield "question-running"
    seen.press("Stop")
    yield "question-stopped"
    seen.press("Sign out")


def _analyst(seen: Watched) -> Iterator[str]:
    seen.open("/console/sign-in")
    yield "sign-in"
    seen.sign_in("bob")
    yield "datasets-nothing"
    seen.press("Sign out")
    seen.sign_in("ada")
    seen.page.locator("details").first.evaluate("one => one.open = true")
    yield "datasets"
    seen.open("/console/ask")
    yield "ask"
    seen.write(
        "SELECT region, MEDIAN(income) AS middle, COUNT(*)\nFROM people\nWHERE age BETWEEN 30 AND 40\nGROUP BY region"
    )
    seen.page.locator("#quote dl").wait_for()
    yield "ask-quote"
    seen.page.get_by_text("Divide ε unevenly").click()
    split = seen.page.get_by_label("Split of ε")
    expect(split).to_have_value("middle = 1\nCOUNT(*) = 1")
    split.fill("middle = 4\nCOUNT(*) = 1")
    expect(seen.page.locator("#quote")).to_contain_text("ε = 0.05,")
    yield "ask-divided"
    split.fill("")
    seen.write("SELECT MEDIAN(income)\nFROM people JOIN cars")
    seen.page.locator(".paint mark").wait_for()
    yield "ask-refused"
    seen.page.get_by_label("Question in SQL").fill("SELECT ")
    seen.page.get_by_label("Question in SQL").press_sequentially("m")
    yield "ask-completion"
    _ask(seen, MEDIAN, "^Ask")
    yield "answer-single"
    _ask(seen, BY_REGION, "sandbox")
    yield "answer-sandbox"
    _ask(seen, "SELECT region, MEDIAN(income), COUNT(*) FROM people GROUP BY region", "^Ask")
    yield "answer-groups"
    seen.open("/console/ask")
    seen.write("SELECT COUNT(*) FROM people WHERE age > 65", "5")
    seen.press("^Ask")
    yield "ask-exhausted"
    seen.open("/console/history")
    yield "history"
    seen.open("/console/overview")
    yield "error-403"
    seen.press("Sign out")


def _controller(seen: Watched) -> Iterator[str]:
    seen.sign_in("grace")
    yield "overview"
    seen.open("/console/ledger")
    yield "ledger"
    seen.press("Verify")
    yield "ledger-verified"
    seen.open("/console/analysts")
    yield "analysts"
    seen.page.get_by_label("For whom").fill("carol")
    seen.press("^Issue$")
    yield "analysts-issued"
    seen.open("/console/compare")
    seen.page.get_by_label("Question in SQL").fill(
        "SELECT region, MEDIAN(income), AVG(age) FROM people GROUP BY region"
    )
    seen.press("^Compare$")
    yield "compare"
    seen.open("/console/nothing")
    yield "error-404"


@pytest.mark.parametrize("name", WINDOWS)
def test_every_page(chromium: Any, running: Served, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    faults = []
    with window(chromium, running, **WINDOWS[name]) as seen:
        for patience, journey in ((20, _analyst(seen)), (0.2, _long(seen, f"0.{len(name)}")), (20, _controller(seen))):
            monkeypatch.setattr("idios.server.console.ask.PATIENCE", patience)
            for page in journey:
                seen.picture(PICTURES / f"{page}-{name}.png")
                if not seen.fits():
                    faults.append(f"{page} sticks out to the right")
                faults += [f"{page}: {one}" for one in seen.page.evaluate(CONTRASTS)]
    assert faults == []


def test_the_quote_moves_nothing(chromium: Any, running: Served) -> None:
    with window(chromium, running, **WINDOWS["desktop"]) as seen:
        seen.sign_in("ada")
        seen.open("/console/ask")
        measured = "main > *, footer, .compose label, .compose textarea, .compose input, .compose button, .quote h2"
        places = f"[...document.querySelectorAll('{measured}')].map(one => one.getBoundingClientRect().top)"
        before = seen.page.evaluate(places)
        seen.write(MEDIAN)
        seen.page.locator("#quote dl").wait_for()
        assert seen.page.evaluate(places) == before


def test_the_page_can_be_walked_by_keyboard(chromium: Any, running: Served) -> None:
    with window(chromium, running, **WINDOWS["desktop"]) as seen:
        seen.sign_in("ada")
        seen.open("/console/ask")
        seen.page.keyboard.press("Tab")
        assert seen.page.evaluate("document.activeElement.textContent") == "Skip to the content"
        seen.page.keyboard.press("Enter")
        seen.page.keyboard.press("Tab")
        assert seen.page.evaluate("document.activeElement.id") == "sql"
        assert seen.page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"

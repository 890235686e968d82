"""What holds for every page: its headers, its form, its language, its labels; and nothing but text in it."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from idios.display import RHO_MEANING
from idios.server.console.pages import ASSETS, POLICY
from tests.console.console_office import BY_REGION, MEDIAN, Office, csrf, open_office, sign_in, write_office
from tests.server.office import CONCENTRATED

HOSTILE = "<script>alert(1)</script>\"' onload=x"
PAGES = ["datasets", "ask", "history", "overview", "ledger", "analysts", "compare", "nothing"]


class Page(HTMLParser):
    """What a test wants to know of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def all(self, *names: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.tags if tag in names]


def _check(text: str) -> Page:
    page = Page(text)
    assert text.startswith("<!doctype html>")
    assert page.all("html") == [{"lang": "en"}]
    assert len(page.all("h1")) == 1
    assert len(page.all("main")) == 1
    assert re.search(r"<title>\S.* · Idios</title>", text)
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids)), "an id names one thing"
    labelled = {attributes.get("for") for attributes in page.all("label")}
    for field in page.all("input", "select", "textarea"):
        assert field.get("type") == "hidden" or field["id"] in labelled, field
    for form in page.all("form"):
        assert form["method"] in ("post", "get")
    assert not any("style" in attributes for _, attributes in page.tags), "the policy forbids styles in a page"
    assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)
    assert all(attributes.get("src", "").startswith("/console/assets/") for attributes in page.all("script"))
    for attributes in page.all("a", "link", "img", "form", "script"):
        for name in ("href", "src", "action"):
            assert (attributes.get(name) or "/").startswith(("/", "#")), attributes
    return page


@pytest.mark.parametrize("name", PAGES)
def test_every_page_is_well_formed(office: Office, name: str) -> None:
    grace = sign_in(office, office.tokens.grace)
    answer = grace.get(f"/console/{name}")
    assert answer.status_code == (404 if name == "nothing" else 200)
    page = _check(answer.text)
    assert answer.headers["content-security-policy"] == POLICY
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["referrer-policy"] == "same-origin"
    assert answer.headers["x-content-type-options"] == "nosniff"
    here = [link["href"] for link in page.all("a") if "aria-current" in link]
    assert here == ([] if name == "nothing" else [f"/console/{name}"])


def test_data_sets_are_described_as_declared(office: Office) -> None:
    text = sign_in(office, office.tokens.grace).get("/console/datasets").text
    assert text.count("<dt>Records</dt><dd>500</dd>") == 2
    assert text.count("without bounds, in steps of 1, around 20000; may be missing") == 1


def test_the_sign_in_page_is_well_formed(office: Office) -> None:
    answer = office.client.get("/console/sign-in")
    _check(answer.text)
    assert answer.headers["content-security-policy"] == POLICY


def test_answers_and_problems_are_well_formed(own_office: Office) -> None:
    ada, grace = (sign_in(own_office, getattr(own_office.tokens, who)) for who in ("ada", "grace"))
    token = csrf(ada.get("/console/ask").text)
    for action in ("quote", "sandbox", "ask"):
        for sql in (MEDIAN, BY_REGION, "SELECT nothing", ""):
            fields = {"csrf": token, "sql": sql, "epsilon": "0.5", "action": action, "once": "1"}
            answer = ada.post("/console/ask", data=fields)
            assert answer.status_code == (200 if "people" in sql else 422), (action, sql)
            _check(answer.text)
    assert own_office.ledger.balance("people").epsilon.spent == 1
    for name in PAGES:
        _check(grace.get(f"/console/{name}").text)
    token = csrf(grace.get("/console/ask").text)
    for sql in (MEDIAN, BY_REGION, "SELECT nothing"):
        answer = grace.post("/console/compare", data={"csrf": token, "sql": sql, "epsilon": "0.5"})
        assert answer.status_code == (200 if "people" in sql else 422)
        _check(answer.text)


def test_names_are_text_wherever_they_appear(own_office: Office) -> None:
    book = own_office.ledger
    book.add_analyst(HOSTILE)
    book.grant(HOSTILE, "people")
    hostile = sign_in(own_office, book.issue_token(HOSTILE).secret)
    grace = sign_in(own_office, own_office.tokens.grace)
    sql = f'SELECT COUNT(*) AS "{HOSTILE.replace(chr(34), "")}" FROM people'
    token = csrf(hostile.get("/console/ask").text)
    asked = hostile.post(
        "/console/ask", data={"csrf": token, "sql": sql, "epsilon": "0.5", "action": "ask", "once": HOSTILE}
    )
    assert asked.status_code == 200
    assert "&lt;script&gt;" in asked.text
    pages = [asked.text, *(grace.get(f"/console/{name}").text for name in PAGES)]
    pages.append(grace.get("/console/ledger", params={"text": HOSTILE}).text)
    pages.append(grace.get("/console/ask", params={"sql": HOSTILE, "epsilon": HOSTILE}).text)
    refused = {"csrf": csrf(pages[1]), "analyst": HOSTILE, "dataset": HOSTILE, "epsilon": HOSTILE}
    pages.append(grace.post("/console/analysts/grant", data=refused).text)
    for page in pages:
        assert "<script>alert" not in page
        _check(page)


def test_a_question_about_a_hostile_place_is_marked_as_text(office: Office) -> None:
    ada = sign_in(office, office.tokens.ada)
    fields = {
        "csrf": csrf(ada.get("/console/ask").text),
        "sql": "SELECT MEDIAN(income)\nFROM people, <b>",
        "epsilon": "0.5",
        "action": "quote",
    }
    answer = ada.post("/console/ask", data=fields)
    assert answer.status_code == 422
    assert "<mark>" in answer.text
    assert "<b>" not in answer.text.replace("<b>ε = 4</b>", "")


def test_assets_are_kept_for_ever_and_named_by_their_content(office: Office) -> None:
    for name, asset in ASSETS.items():
        answer = office.client.get(asset.address)
        assert answer.status_code == 200
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert answer.headers["content-type"] == asset.media_type
        assert answer.content == asset.content
        assert office.client.get(f"/console/assets/{name}").status_code == 404
    assert b"http" not in ASSETS["console.css"].content
    assert b"http" not in ASSETS["console.js"].content


def test_the_console_is_no_part_of_the_api(office: Office) -> None:
    assert not [path for path in office.client.get("/openapi.json").json()["paths"] if "console" in path]


def test_errors_at_the_door_are_pages_too(own_office: Office) -> None:
    large = own_office.client.post("/console/sign-in", data={"token": "x" * 70_000})
    assert large.status_code == 413
    assert "The request is too large" in large.text
    _check(large.text)
    api = own_office.client.post("/v1/quote", content=b"x" * 70_000)
    assert api.json()["error"]["code"] == "too_large"


@pytest.mark.parametrize("limit", ["requests_per_minute", "requests_per_minute_address"])
def test_too_many_requests_are_told_on_a_page(tmp_path: Path, limit: str) -> None:
    office = open_office(write_office(tmp_path), **{limit: 16})
    with office.client:
        ada = sign_in(office, office.tokens.ada)
        answers = [ada.get("/console/datasets") for _ in range(6)]
    assert answers[0].status_code == 200
    assert answers[-1].status_code == 429
    assert int(answers[-1].headers["retry-after"]) >= 1
    assert "Too many requests" in answers[-1].text
    _check(answers[-1].text)


def test_what_nobody_foresaw_is_a_page_without_details(own_office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    ada = sign_in(own_office, own_office.tokens.ada)
    monkeypatch.setattr("idios.server.console.analyst_pages.draw_budgets", lambda balances: 1 / 0)
    answer = ada.get("/console/datasets")
    assert answer.status_code == 500
    assert "Something went wrong" in answer.text
    assert "ZeroDivision" not in answer.text
    _check(answer.text)


def test_without_a_cap_the_meter_says_what_is_left_of_the_data_set(office: Office) -> None:
    office.ledger.grant("ada", "people")
    ada = sign_in(office, office.tokens.ada)
    office.service.party.query(MEDIAN, "3")
    assert "ε = 7 left of the data set&#39;s budget" in ada.get("/console/history").text


def test_pages_tell_rho_and_what_it_means(tmp_path: Path) -> None:
    office = open_office(write_office(tmp_path, budget=CONCENTRATED))
    with office.client:
        ada, grace = (sign_in(office, token) for token in (office.tokens.ada, office.tokens.grace))
        form = {"csrf": csrf(ada.get("/console/ask").text), "sql": "SELECT COUNT(*) FROM people WHERE age > 40"}
        quoted = ada.post("/console/ask", data={**form, "epsilon": "0.05", "action": "quote"}).text
        assert "<dt>With pure accounting</dt><dd>none: Gaussian noise has no ε of its own</dd>" in quoted
        assert "about 247 more like this one" in quoted
        asked = ada.post("/console/ask", data={**form, "epsilon": "0.05", "action": "ask", "once": "1"}).text
        assert "ρ = 0.00125 (asked with ε = 0.05)" in asked
        assert "<dd>ρ = 0.309815, which stands for ε = " in asked
        refused = ada.post("/console/ask", data={**form, "epsilon": "0.9", "action": "ask", "once": "2"}).text
        assert "ρ = 0.405 was asked for, ρ ≈\u202f0.3098 is left, enough for a question with ε = 0.7" in refused
        shown = {name: grace.get(f"/console/{name}").text for name in PAGES[:-1]}
        shown["history"] = ada.get("/console/history").text
    for name in ("datasets", "history", "overview", "analysts", "ask"):
        assert RHO_MEANING in shown[name], name
    assert "ρ = 0.00125 (asked with ε = 0.05)" in shown["history"]
    assert '<th scope="col" class="number">ρ</th>' in shown["overview"]
    assert "ρ ≈\u202f0.3098<small>which stands for ε = " in shown["analysts"]
    for text in (quoted, asked, refused, *shown.values()):
        _check(text)


def test_what_it_would_cost_with_the_other_accounting_is_told(office: Office) -> None:
    ada = sign_in(office, office.tokens.ada)
    form = {"csrf": csrf(ada.get("/console/ask").text), "epsilon": "0.4", "action": "quote"}
    form["sql"] = "SELECT COUNT(*) FROM people WHERE age > 40"
    quoted = ada.post("/console/ask", data=form).text
    assert "<dt>Cost</dt><dd>ε = 0.4</dd>" in quoted
    assert f'<dt>With concentrated accounting</dt><dd title="{RHO_MEANING}">ρ = 0.08</dd>' in quoted
    assert RHO_MEANING not in ada.get("/console/history").text

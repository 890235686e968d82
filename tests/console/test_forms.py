"""What forms do, without a browser: asking once, failing honestly, deciding, and telling no secrets."""

from __future__ import annotations

import html
import logging
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from fastapi.testclient import TestClient

from idios.answer.release import draw_table
from idios.display import CLIPPED_BIAS
from idios.errors import AnswerFailed, LedgerUnavailable
from idios.model import Quote, ReleasedTable
from idios.server import work_pool
from idios.server.http_errors import BUSY, Refused
from tests.console.console_office import (
    BY_REGION,
    MEDIAN,
    Office,
    break_after_issuing,
    csrf,
    sign_in,
)
from tests.server.office import open_office, write_office
from tests.waiting import until

TWO = "SELECT COUNT(*) AS n, MEDIAN(income) AS middle FROM people WHERE age > 40"


def _ask(client: TestClient, sql: str, **fields: str) -> Any:
    page = client.get("/console/ask").text
    once = re.search(r'name="once" value="([0-9a-f]{32})"', page)
    assert once
    sent = {"csrf": csrf(page), "once": once[1], "sql": sql, "epsilon": "0.5", "action": "ask", **fields}
    return client.post("/console/ask", data=sent)


def test_a_form_is_charged_once(own_office: Office) -> None:
    ada = sign_in(own_office, own_office.tokens.ada)
    first, second = _ask(ada, BY_REGION, once="a"), _ask(ada, BY_REGION, once="a")
    assert first.status_code == second.status_code == 200
    assert own_office.ledger.balance("people", "ada").epsilon.spent == Fraction(1, 2)
    assert own_office.ledger.balance("people").epsilon.spent == Fraction(1, 2)
    assert "it is the same answer" in second.text
    other = _ask(ada, MEDIAN, once="a")
    assert other.status_code == 200, "a visitor who goes back and changes the question is not refused"
    assert own_office.ledger.balance("people").epsilon.spent == 1


def test_the_sandbox_of_the_console_has_the_time_limit_of_the_api(
    own_office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work_pool, "LONGEST", 0.1)
    shares = ", ".join(f"PERCENTILE_DISC(age, {i / 20})" for i in range(1, 20))
    sql = f"SELECT BIN(age, 1), {shares} FROM people GROUP BY BIN(age, 1)"
    answer = _ask(sign_in(own_office, own_office.tokens.ada), sql, action="sandbox", epsilon="100")
    assert answer.status_code == 422
    assert "seconds that planning and the sandbox have" in answer.text


def test_ends_of_lines_do_not_move_the_place(own_office: Office) -> None:
    ada = sign_in(own_office, own_office.tokens.ada)
    answer = _ask(ada, "SELECT MEDIAN(income)\r\nFROM people\r\nUNION people", action="quote")
    assert answer.status_code == 422
    assert "<mark>UNION</mark> people" in answer.text
    assert "Nothing was charged." in answer.text


@pytest.mark.parametrize(
    ("error", "status", "told"),
    [
        (AnswerFailed(), 500, "Ask the same question again; it costs nothing more."),
        (Refused(BUSY), 503, "Ask again in a few seconds."),
        (LedgerUnavailable("sqlite:///secret/place is locked"), 503, "Try again in a moment"),
    ],
)
def test_what_fails_is_told_on_the_page(
    own_office: Office, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int, told: str
) -> None:
    async def fails(*_: Any) -> None:
        raise error

    ada = sign_in(own_office, own_office.tokens.ada)
    monkeypatch.setattr(own_office.service.questions, "ask", fails)
    answer = _ask(ada, MEDIAN)
    assert answer.status_code == status
    assert told in answer.text
    assert ("Nothing was charged." in answer.text) == (status == 503 and "nothing was charged" not in answer.text)
    assert "secret/place" not in answer.text
    assert MEDIAN in answer.text, "the question is still there"


def test_decisions_are_taken_and_recorded(own_office: Office) -> None:
    grace = sign_in(own_office, own_office.tokens.grace)
    book = own_office.ledger
    token = csrf(grace.get("/console/analysts").text)

    def send(path: str, **fields: str) -> Any:
        return grace.post(f"/console/{path}", data={"csrf": token, **fields})

    assert send("analysts/add", name="eve").headers["location"] == "/console/analysts?done=added"
    assert "eve" in book.analysts()
    assert send("analysts/grant", analyst="eve", dataset="people", epsilon="1/2").status_code == 303
    assert book.balance("people", "eve").epsilon.budget == Fraction(1, 2)
    assert send("datasets/people/raise", epsilon="11", delta="").status_code == 303
    assert book.balance("people").epsilon.budget == 11
    issued = send("analysts/token", name="eve", role="analyst", days="7")
    secret = re.search(r'<code id="secret">([^<]+)</code>', issued.text)
    assert secret
    assert book.authenticate(secret[1]).name == "eve"
    assert send("analysts/revoke", token=book.authenticate(secret[1]).token).status_code == 303
    assert sign_in_status(own_office, secret[1]) == 401
    assert send("analysts/withdraw", analyst="eve", dataset="people").status_code == 303
    kinds = [entry.kind for entry in book.search(analyst="eve")]
    assert kinds == ["withdrawn", "token-revoked", "token-issued", "granted", "analyst-added"]


def test_a_secret_is_shown_though_the_ledger_fails_just_then(
    own_office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    grace = sign_in(own_office, own_office.tokens.grace)
    sent = {"csrf": csrf(grace.get("/console/analysts").text), "name": "ada", "role": "analyst", "days": "7"}
    with monkeypatch.context() as faults:
        break_after_issuing(own_office, faults)
        page = grace.post("/console/analysts/token", data=sent)
    secret = re.search(r'<code id="secret">([^<]+)</code>', page.text)
    assert secret
    identity = own_office.ledger.authenticate(secret[1])
    assert identity.token in page.text, "the list of tokens has the new one"


def test_a_retired_data_set_is_not_on_the_page_of_data_sets(own_office: Office) -> None:
    ada, grace = (sign_in(own_office, token) for token in (own_office.tokens.ada, own_office.tokens.grace))
    assert "SELECT+COUNT%28%2A%29+FROM+people" in ada.get("/console/datasets").text
    own_office.ledger.retire("people")
    for client, listed in ((ada, False), (grace, True)):
        page = client.get("/console/datasets")
        assert page.status_code == 200
        assert "FROM+people" not in page.text
        assert ("FROM+patients" in page.text) == listed, "the other one is the controller's to see"


def sign_in_status(office: Office, token: str) -> int:
    client = TestClient(office.client.app, follow_redirects=False)
    return int(client.post("/console/sign-in", data={"token": token}).status_code)


@pytest.mark.parametrize(
    ("path", "fields", "told"),
    [
        ("analysts/add", {"name": ""}, "analyst"),
        ("analysts/add", {"name": "ada"}, "ada"),
        ("analysts/grant", {"analyst": "nobody", "dataset": "people"}, "nobody"),
        ("analysts/grant", {"analyst": "ada", "dataset": "people", "epsilon": "much"}, "much"),
        ("analysts/token", {"name": "nobody", "role": "analyst", "days": "9"}, "nobody"),
        ("analysts/token", {"name": "ada", "role": "analyst", "days": "99999"}, "3650"),
        ("analysts/token", {"name": "ada", "role": "analyst", "days": "soon"}, "soon"),
        ("analysts/revoke", {"token": "0" * 16}, "no token of that name"),
        ("analysts/withdraw", {"analyst": "bob", "dataset": "people"}, "bob"),
        ("datasets/people/raise", {"epsilon": "1"}, "above"),
        ("datasets/people/retire", {"name": "peoples"}, "peoples"),
        ("datasets/nothing/retire", {"name": "nothing"}, "nothing"),
        ("ledger/verify", {"anchor": "x"}, "anchor"),
        ("compare", {"sql": "SELECT 1", "epsilon": "1"}, "SELECT"),
    ],
)
def test_what_cannot_be_done_changes_nothing(office: Office, path: str, fields: dict[str, str], told: str) -> None:
    grace = sign_in(office, office.tokens.grace)
    head = office.ledger.head()
    answer = grace.post(f"/console/{path}", data={"csrf": csrf(grace.get("/console/analysts").text), **fields})
    alert = re.search(r'<div class="notice bad" role="alert">(.*?)</div>', answer.text, re.DOTALL)
    assert answer.status_code in (403, 422)
    assert alert
    assert told in alert[1]
    assert "Ask the controller" not in alert[1], "they are the controller"
    assert office.ledger.head() == head


def test_no_secret_is_logged(own_office: Office, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        grace = sign_in(own_office, own_office.tokens.grace)
        page = grace.get("/console/analysts").text
        fields = {"csrf": csrf(page), "name": "ada", "role": "analyst", "days": "9"}
        issued = re.search(r'<code id="secret">([^<]+)</code>', grace.post("/console/analysts/token", data=fields).text)
        _ask(sign_in(own_office, own_office.tokens.ada), MEDIAN)
    assert issued
    written = "\n".join(f"{record.getMessage()} {vars(record)}" for record in caplog.records if record.name != "httpx")
    assert "/console/analysts/token" in written
    for secret in (issued[1], own_office.tokens.grace, own_office.tokens.ada, csrf(page), MEDIAN):
        assert secret not in written


def test_history_tells_what_was_clipped(own_office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = (Fraction(-1200), Fraction(88000))

    def clipped(*given: Any) -> ReleasedTable:
        table = draw_table(*given)
        return replace(table, clipped=((limits, *(None,) * (len(table.statistics) - 1)),) * len(table.cells))

    monkeypatch.setattr("idios.pipeline.draw_table", clipped)
    party, ada = own_office.service.party, sign_in(own_office, own_office.tokens.ada)
    party.query("SELECT COUNT(*) FROM people WHERE age > 20", "0.05", analyst="ada")
    told = ada.get("/console/history").text
    assert f"Values outside [−1,200, 88,000] were clipped to it. {CLIPPED_BIAS}" in told
    party.query(BY_REGION, "0.5", analyst="ada")
    told = ada.get("/console/history").text
    assert told.count(CLIPPED_BIAS) == 2
    assert told.count("clipped to [−1,200, 88,000]") > 1
    headers = {"Authorization": f"Bearer {own_office.tokens.ada}"}
    listed = own_office.client.get("/v1/answers", headers=headers).json()["answers"]
    assert listed[1]["clipped"] == [[["-1200", "88000"]]]


def test_history_is_paged_and_ones_own(own_office: Office) -> None:
    party = own_office.service.party
    for number in range(23):
        party.query(f"SELECT COUNT(*) FROM people WHERE age > {20 + number}", "0.05", analyst="ada")
    party.query(MEDIAN, "0.05")
    ada = sign_in(own_office, own_office.tokens.ada)
    first = ada.get("/console/history").text
    assert first.count('<li class="card">') == 20
    assert "where age is at least 43" in first
    assert "MEDIAN(income)" not in first
    older = re.search(r'href="(/console/history\?before=[0-9]+)">Older', first)
    assert older
    second = ada.get(older[1]).text
    assert second.count('<li class="card">') == 3
    assert "Older" not in second
    assert "where age is at least 21" in second
    assert "MEDIAN(income)" in sign_in(own_office, own_office.tokens.grace).get("/console/history").text
    assert "Nothing has been answered yet." in sign_in(own_office, own_office.tokens.bob).get("/console/history").text


def test_a_reload_repeats_its_key_and_another_question_has_another(
    own_office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = []
    queue_ask = own_office.service.questions.ask

    async def noted(party: Any, asked: Any, identity: Any, once: str, wait: float, encode: Any) -> Any:
        keys.append(once)
        return await queue_ask(party, asked, identity, once, wait, encode)

    monkeypatch.setattr(own_office.service.questions, "ask", noted)
    ada = sign_in(own_office, own_office.tokens.ada)
    for sql, once, split in (
        *((MEDIAN, "a", ""), (MEDIAN, "a", ""), (BY_REGION, "a", ""), (MEDIAN, "b", "")),
        *((TWO, "a", ""), (TWO, "a", "n = 2\r\nmiddle = 1")),
    ):
        assert _ask(ada, sql, once=once, split=split).status_code == 200
    assert keys[0] == keys[1]
    assert len(set(keys)) == 5
    assert all(re.fullmatch("[!-~]{1,200}", key) for key in keys)


def test_a_quote_tells_the_least_epsilon(own_office: Office) -> None:
    own_office.ledger.grant("ada", "patients")
    ada = sign_in(own_office, own_office.tokens.ada)
    by_age = "SELECT BIN(age, 10), MEDIAN(income) FROM patients GROUP BY BIN(age, 10)"
    refused = _ask(ada, by_age, action="quote")
    assert refused.status_code == 422
    assert "13 values whose noise is fitted to the data" in refused.text
    assert "13 cells, for ε = 0.65 or more" in _ask(ada, by_age, action="quote", epsilon="1").text
    assert "13 cells, for ε = 0.1 or more" in _ask(ada, by_age.replace("patients", "people"), action="quote").text


def test_a_quote_tells_how_far_off_a_computed_column_will_be(own_office: Office) -> None:
    ada = sign_in(own_office, own_office.tokens.ada)
    sql = "SELECT region, 2 * COUNT(*) AS d, MEDIAN(income) / 2 AS h FROM people GROUP BY region"
    margins = own_office.service.party.quote(sql, 1, analyst="ada").computed_margins
    shown = html.unescape(_ask(ada, sql, action="quote", epsilon="1").text)
    assert f"<code>2 * COUNT(*)</code>, margin {margins['d']}<" in shown
    assert f"margin {margins['h']}<" in shown
    assert "± 24 (noise, 95 %)" in str(margins["d"])
    assert str(margins["h"]).startswith("not public: MEDIAN(income)")
    headers = {"Authorization": f"Bearer {own_office.tokens.ada}"}
    sent = own_office.client.post("/v1/quote", json={"sql": sql, "epsilon": "1"}, headers=headers).json()
    assert Quote.from_dict(sent).computed_margins == margins


def test_a_quote_warns_of_null(own_office: Office) -> None:
    ada = sign_in(own_office, own_office.tokens.ada)
    shown = _ask(ada, "SELECT MEDIAN(income) FROM people WHERE age > 40", action="quote", epsilon="1", check="0").text
    assert "MEDIAN(income): NULL is possible where fewer than about 101 values are selected" in shown
    assert "NULL is" not in _ask(ada, "SELECT COUNT(*) FROM people WHERE age > 40", action="quote").text


def test_weights_divide_what_is_asked(own_office: Office) -> None:
    ada = sign_in(own_office, own_office.tokens.ada)
    split = "n = 1" + "\r\n" * 2500 + " middle=4 "  # a browser counts the end of a line as one
    quoted = _ask(ada, TWO, action="quote", split=split, check="0").text
    assert "ε = 0.1 a cell" in quoted
    assert "ε = 0.4 a cell" in quoted
    assert '<details class="divide" open>' in quoted
    assert _ask(ada, TWO, action="sandbox", split=split).status_code == 200
    assert _ask(ada, TWO, split=split, check="0").status_code == 200
    party = own_office.service.party
    assert party.quote(TWO, "0.5", split={"n": 1, "middle": 4}, check=0).stored
    assert not party.quote(TWO, "0.5", check=0).stored
    assert "open" not in (re.findall('<details class="divide"[^>]*>', _ask(ada, TWO, action="quote").text)[0])


@pytest.mark.parametrize("action", ["quote", "sandbox", "ask"])
@pytest.mark.parametrize(
    ("split", "told"),
    [
        ("n = 1", "middle"),
        ("n = 1\nmedian = 2", "&#39;median&#39;, which is no statistic here"),
        ("n = 1\nmiddle = 0", "greater than 0"),
        ("n = 1\nmiddle = much", "much"),
        ("n = 1\nmiddle", "NAME = NUMBER, such as COUNT(*) = 2; this one is not: middle."),
        ("n = 1\nmiddle =", "this one is not: middle =."),
        ("n = 1\n= 2", "this one is not: = 2."),
        ("n = 1\nmiddle = 2\nn = 3", "this one is there twice: n."),
        ("n = 1" + "\n" * 4000 + "middle = 2", "at most 4000 characters"),
    ],
)
def test_a_split_that_cannot_be_used_is_told_and_kept(office: Office, action: str, split: str, told: str) -> None:
    head = office.ledger.head()
    answer = _ask(sign_in(office, office.tokens.ada), TWO, action=action, split=split)
    alert = re.search(r'<div class="notice bad" role="alert">(.*?)</div>', answer.text, re.DOTALL)
    kept = re.search(r'<textarea id="split"[^>]*>\n(.*?)</textarea>', answer.text, re.DOTALL)
    assert answer.status_code == 422
    assert alert
    assert told in alert[1]
    assert "Nothing was charged." in alert[1]
    assert kept
    assert kept[1] == split
    assert office.ledger.head() == head


def test_a_question_goes_back_into_the_form_without_an_address_that_tells_it(
    own_office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("idios.server.console.analyst_pages.PATIENCE", 0)
    ada = sign_in(own_office, own_office.tokens.ada)
    gone = _ask(ada, TWO, split="n = 1\r\nmiddle = 4")
    assert gone.status_code == 303

    def answered_page() -> str | None:
        text: str = ada.get(gone.headers["location"]).text
        return None if "Still computing" in text else text

    page = until(answered_page)
    assert "split n = 1, middle = 4" in page
    form = re.search(r'<form method="(\w+)" action="/console/ask">(.*?)</form>', page, re.DOTALL)
    assert form
    assert form[1] == "post"
    fields = {name: html.unescape(value) for name, value in re.findall(r'name="(\w+)" value="([^"]*)"', form[2])}
    head = own_office.ledger.head()
    written = ada.post("/console/ask", data=fields).text
    assert html.escape(TWO) in written
    assert ">\nn = 1\nmiddle = 4</textarea>" in written
    assert 'role="alert"' not in written
    assert own_office.ledger.head() == head


@pytest.mark.parametrize(
    "computed",
    [
        "COUNT(*) / 3 * 1e40",
        "COUNT(*) * 1e308 * 10",
        "-1e399 / 7 * COUNT(*)",
        "COUNT(*) / 1e399",
        "CASE WHEN COUNT(*) > 10 THEN 1e399 * COUNT(*) ELSE COUNT(*) / 1e399 END",
        "CASE WHEN COUNT(*) > 10 THEN '1/0' END",
        f"CASE WHEN COUNT(*) > 10 THEN '{'9' * 5000}' END",
    ],
)
def test_a_value_of_any_length_is_shown_by_every_page(own_office: Office, computed: str) -> None:
    ada = sign_in(own_office, own_office.tokens.ada)
    for sql in (f"SELECT {computed} FROM people", f"SELECT region, {computed} AS c FROM people GROUP BY region"):
        assert _ask(ada, sql, action="sandbox").status_code == 200
        shown = _ask(ada, sql)
        assert ada.get(shown.headers["location"]).status_code == 200 if shown.is_redirect else shown.status_code == 200
        history = ada.get("/console/history")
        assert history.status_code == 200
        for page in set(re.findall(r"/console/questions/[0-9a-f-]+", history.text)):
            assert ada.get(page).status_code == 200


@pytest.mark.parametrize("label", ["1/0", "007", "-00012.50", "9" * 5000, "2026-01-31T00:00:00"])
def test_a_label_that_looks_like_a_number_is_a_label(tmp_path: Path, label: str) -> None:
    config = write_office(tmp_path)
    config.write_text(config.read_text().replace('"north"', f'"{label}"'))
    people = parquet.read_table(tmp_path / "people.parquet")
    parquet.write_table(people.set_column(2, "region", pa.array([label] * len(people))), tmp_path / "people.parquet")
    office = open_office(config)
    with office.client:
        ada = sign_in(office, office.tokens.ada)
        for sql in ("SELECT MODE(region) AS m FROM people", "SELECT MODE(region) AS m, COUNT(*) AS n FROM people"):
            answer = _ask(ada, sql, epsilon="2")
            assert answer.status_code == 200
            assert f">{label}<" in answer.text
        history = ada.get("/console/history")
        assert history.status_code == 200
        assert history.text.count(f">{label}<") == 2

"""The analyst's pages: what may be asked about, the page where questions are asked, and what was answered.

A question is asked free on made-up data, or charged on the real one. One that takes longer than a page should is shown
on a page of its own, which reloads itself. A field of the form splits ε unevenly, with one line for each statistic: its
name and a number.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import partial
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Path, Query
from fastapi.responses import Response

from idios.codec import to_json
from idios.core.neighbours import to_plural
from idios.display import format_cost
from idios.errors import IdiosError, InvalidInput
from idios.ledger import StoredAnswer
from idios.model import Accounting, Answer, DatasetFacts, QuestionProgress, QuestionRequest, Quote, TableFacts
from idios.plan.question_words import describe_selection
from idios.server.auth import caller_name
from idios.server.console.access import FormVisit, PageVisit, Visit
from idios.server.console.charts import draw_budgets
from idios.server.console.formatting import format_amount
from idios.server.console.pages import redirect, show
from idios.server.console.presentation import mark_error, present_answer
from idios.server.http_errors import Problem, Refused, to_problem
from idios.server.messages import read_page
from idios.server.question_queue import check_affordable
from idios.sql.expression_reader import list_value_functions
from idios.sql.literals import quote_string
from idios.sql.names import quote
from idios.sql.sql_functions import list_functions

router = APIRouter()

PAGE = 20
"""How many answers a page of the history lists at most; fewer if they are long."""
MOST_LISTED = 1_000
"""How many cells of one answer the history lists."""
PATIENCE = 4.0
"""Seconds after which a question gets a page of its own."""
LONGEST_QUESTION = 20_000
LONGEST_SPLIT = 4_000
SPLIT_LINE = "NAME = NUMBER, such as COUNT(*) = 2"
EPSILON = "0.5"
NUMBERS = ("integer", "decimal", "number")
CHARGED_PROBLEMS = ("answer_failed",)
KEYWORDS = (
    *("SELECT", "FROM", "WHERE", "GROUP BY", "HAVING", "ORDER BY", "LIMIT", "OFFSET", "ASC", "DESC", "AS", "DISTINCT"),
    *("AND", "OR", "NOT", "BETWEEN", "IN", "LIKE", "IS NULL", "IS NOT NULL", "IS DISTINCT FROM"),
    *("CASE", "WHEN", "THEN", "ELSE", "END", "JOIN", "LEFT JOIN", "ON", "USING"),
    *("OVER", "PARTITION BY", "ROLLUP", "CUBE", "GROUPING SETS", "GROUPING"),
)

Id = Annotated[str, Path(pattern="^[0-9a-f]{32}$")]


@router.get("/console/datasets")
async def datasets(visit: PageVisit) -> Response:
    """Every data set the visitor may ask about, with what it guarantees and what can be asked of each column."""

    def page() -> Response:
        described = [_with_links(to_json(dataset)) for dataset in visit.service.datasets(visit.identity)]
        budgets = draw_budgets(visit.service.balances(visit.identity))
        return show(visit, "datasets.html", datasets=described, budgets=budgets)

    return await visit.service.render(visit.identity, page)


@router.get("/console/history")
async def history(visit: PageVisit, before: Annotated[int | None, Query(ge=1, le=2**53)] = None) -> Response:
    """The visitor's own answers, newest first; a controller sees all."""

    def read(before: int | None, limit: int) -> list[StoredAnswer]:
        return visit.service.answers(visit.identity, before=before, limit=limit)

    def page() -> Response:
        answers, older = read_page(read, lambda stored: len(stored.text), before, PAGE)
        described = [
            {
                **_shorten(to_json(answer.released)),
                "selected": describe_selection(answer.question),
                "price": _price(visit, answer),
                "kinds": ["category" if name.startswith("MODE(") else "number" for name in answer.released.statistics],
            }
            for answer in answers
        ]
        older = older if older is not None and read(older, 1) else None
        budgets = draw_budgets(visit.service.balances(visit.identity))
        return show(visit, "history.html", answers=described, older=older, first=before is None, budgets=budgets)

    return await visit.service.render(visit.identity, page)


@router.get("/console/ask")
async def ask_page(
    visit: PageVisit,
    sql: Annotated[str, Query(max_length=LONGEST_QUESTION)] = "",
    epsilon: Annotated[str, Query(max_length=200)] = EPSILON,
) -> Response:
    """An empty form, or one with a question filled in, which is not asked yet."""
    return await _render_ask_page(visit, QuestionRequest(sql, epsilon))


@router.post("/console/ask")
async def ask(visit: FormVisit) -> Response:
    """Quote, try, ask or check what the form says, and show the result; or only fill it in, to go on writing."""
    question = QuestionRequest(visit.field("sql"), visit.field("epsilon"), check=visit.field("check") or None)
    action = visit.form.get("action", "quote")
    if action == "write":
        return await _render_ask_page(visit, question)
    try:
        if not 0 < len(question.sql) <= LONGEST_QUESTION:
            raise InvalidInput(f"a question has 1 to {LONGEST_QUESTION} characters, got {len(question.sql)}")
        question = replace(question, split=read_split(visit.field("split")))
        if action == "check":
            question = replace(question, check="0", then_check=visit.field("then_check"))
        check_affordable(question)
        if action in ("ask", "check"):
            visit.request.scope["idios.log"] = visit.service.log_fields(question)
            key = _idempotency_key(visit, question)
            reply = await visit.service.ask(
                visit.identity, question, key, PATIENCE, partial(_show_answer, visit, question)
            )
            return redirect(f"/console/questions/{reply.id}") if isinstance(reply, QuestionProgress) else reply
        if action == "sandbox":
            shown = partial(_show_answer, visit, question, sandbox=True)
            return await visit.service.sandbox(visit.identity, question, shown)
        quoted = partial(_show_quote, visit, question)
        return await visit.service.quote(visit.identity, question, quoted)
    except (IdiosError, Refused) as error:
        problem = to_problem(error)
        visit.request.scope["idios.counted"] = problem.counted
        values = {"problem": problem, "mark": mark_error(question.sql, problem.where)}
        return await _render_ask_page(visit, question, charged=True, status=problem.status, **values)


@router.get("/console/questions/{id}")
async def question_page(id: Id, visit: PageVisit) -> Response:
    """A question that takes its time: running, stopped, failed or answered."""

    def page(progress: QuestionProgress) -> Response:
        question = progress.question or QuestionRequest("", "")
        return show(
            visit,
            "question.html",
            progress=progress,
            question=question,
            split=write_split(question.split),
            once=secrets.token_hex(16),
            sandbox=False,
            answer=None if progress.answer is None else present_answer(progress.answer),
            budgets=draw_budgets(visit.service.balances(visit.identity)),
        )

    return await visit.service.find_question(visit.identity, id, page)


@router.post("/console/questions/{id}/stop")
async def stop(id: Id, visit: FormVisit) -> Response:
    """Stop computing; the question stays charged."""
    return await visit.service.cancel_question(visit.identity, id, lambda _: redirect(f"/console/questions/{id}"))


def _price(visit: Visit, answer: StoredAnswer) -> str | None:
    """What an answer cost in words, where ρ adds up."""
    described = visit.service.catalogue.get(answer.dataset)
    if described is None or described.accounting is Accounting.PURE:
        return None
    return format_cost(answer.epsilon, answer.delta, answer.rho, answer.pure)


def _idempotency_key(visit: Visit, question: QuestionRequest) -> str:
    """The idempotency key of a form and its question: a reload repeats it, and a changed text gets another."""
    facts = json.dumps([visit.field("once"), asdict(question)])
    return "console-" + hashlib.sha256(facts.encode()).hexdigest()


def _shorten(released: dict[str, Any]) -> dict[str, Any]:
    """A released table as far as the page lists its rows; ``rows`` is how many there are."""
    most = max(1, MOST_LISTED // max(1, len(released["statistics"])))
    lists = ("groups", "cells", "clipped")
    shortened = {name: value[:most] if name in lists else value for name, value in released.items()}
    return {**shortened, "rows": len(released["cells"])}


async def _render_ask_page(
    visit: Visit, question: QuestionRequest, *, charged: bool = False, **values: Any
) -> Response:
    """The form in the visitor's turn; what went wrong is told however much of theirs waits."""
    turns, caller = visit.service.turns, caller_name(visit.identity)
    return await turns.run(caller, lambda: _ask_page(visit, question, **values), refuse=not charged)


def _show_answer(visit: Visit, question: QuestionRequest, answer: Answer, *, sandbox: bool = False) -> Response:
    return _ask_page(visit, question, answer=present_answer(answer), sandbox=sandbox)


def _show_quote(visit: Visit, question: QuestionRequest, quote: Quote) -> Response:
    return _ask_page(visit, question, quote=quote)


def _ask_page(visit: Visit, question: QuestionRequest, *, status: int = 200, **values: Any) -> Response:
    problem: Problem | None = values.get("problem")
    context = {
        "answer": None,
        "sandbox": False,
        "quote": None,
        "mark": None,
        "nothing_charged": problem is not None and problem.code not in CHARGED_PROBLEMS,
        **values,
        "question": question,
        "split": visit.field("split"),
        "declared_check": _describe_check(visit),
        "several": " or ".join(sorted({to_plural(word) for word in _list_unit_words(visit)})),
        "plurals": {word: to_plural(word) for word in ("record", *_list_unit_words(visit))},
        "once": secrets.token_hex(16),
        "words": list_words(visit),
        "budgets": draw_budgets(visit.service.balances(visit.identity)),
    }
    return show(visit, "ask.html", status=status, **context)


def _list_unit_words(visit: Visit) -> list[str]:
    """What one of those is called whom the visitor's data sets protect."""
    return [visit.service.catalogue[name].unit_word for name in visit.party.datasets] or ["record"]


def _describe_check(visit: Visit) -> str:
    """The share for checks that the visitor's data sets declare, where it is one."""
    shares = {visit.service.catalogue[name].check for name in visit.party.datasets}
    return format_amount(shares.pop()) if len(shares) == 1 else "as declared"


def read_split(text: str) -> dict[str, str] | None:
    """Read the split that a field's lines give, None if it is empty; whether they fit the question is not known here.

    >>> read_split("MEDIAN(income) = 2\\n\\nCOUNT(*) = 1/3\\n"), read_split(" ")
    ({'MEDIAN(income)': '2', 'COUNT(*)': '1/3'}, None)
    """
    if len(text) > LONGEST_SPLIT:
        raise InvalidInput(f"how ε is divided has at most {LONGEST_SPLIT} characters, got {len(text)}")
    split: dict[str, str] = {}
    for line in text.split("\n"):
        if not line.strip():
            continue
        name, sign, number = (part.strip() for part in line.rpartition("="))
        if not sign or not name or not number:
            raise InvalidInput(f"to divide ε, write lines of the form {SPLIT_LINE}; this one is not: {line.strip()}")
        if name in split:
            raise InvalidInput(f"to divide ε, name each statistic once; this one is there twice: {name}")
        split[name] = number
    return split or None


def write_split(split: Mapping[str, str] | None) -> str:
    """Write the lines that give these split.

    >>> write_split({"MEDIAN(income)": "2", "COUNT(*)": "1/3"})
    'MEDIAN(income) = 2\\nCOUNT(*) = 1/3'
    """
    return "\n".join(f"{name} = {number}" for name, number in (split or {}).items())


def list_words(visit: Visit) -> str:
    """List the words that a question can be made of, as JSON: what is inserted, what kind of word it is, and a hint."""
    words: dict[str, list[str]] = {}
    for name in visit.party.datasets:
        dataset = visit.service.catalogue[name]
        words.setdefault(quote(name), [quote(name), "data set", dataset.level])
        for linked in dataset.tables:
            words.setdefault(quote(linked.name), [quote(linked.name), "table", linked.text])
        tables: list[DatasetFacts | TableFacts] = [dataset, *dataset.tables]
        for table in tables:
            for column in table.columns:
                text = quote(column.name)
                words.setdefault(text, [text, "column", column.type])
                for value in column.labels or column.values or ():
                    quoted = quote_string(value)
                    words.setdefault(quoted, [quoted, "value", column.name])
            holding = [name for columns in table.links for name in columns.split(", ")]
            targets = {each.partition(".")[2] for target in table.links.values() for each in target.split(", ")}
            for key in (*table.unit, *holding, *sorted(targets)):
                words.setdefault(quote(key), [quote(key), "column", "key"])
    functions = [
        [function.name, "function", function.signature.partition(" or ")[0]]
        for function in list_functions()
        if not function.spelling.synonym and not function.spelling.distinct
    ]
    functions += [[name, "function", form.partition(" or ")[0]] for name, form in list_value_functions().items()]
    return json.dumps(
        [*words.values(), *functions, *([keyword, "keyword", ""] for keyword in KEYWORDS)], ensure_ascii=False
    )


def _with_links(described: dict[str, Any]) -> dict[str, Any]:
    """Add an address for every question that can be asked to a data set's public description."""
    tables = [{**table, "columns": _list_offers(table)} for table in described.get("tables", [])]
    count = _link(f"SELECT COUNT(*) FROM {quote(described['name'])}")
    return {**described, "columns": _list_offers(described), "tables": tables, "count": count}


def _list_offers(described: dict[str, Any]) -> list[dict[str, Any]]:
    """The columns of a table, each with the questions that can be asked of it."""
    table, unit = quote(described["name"]), ", ".join(map(quote, described.get("unit", ())))
    columns = []
    for column in described["columns"]:
        offers = [{**offer, "href": _link(f"SELECT {offer['call']} FROM {table}")} for offer in column["functions"]]
        name = quote(column["name"])
        if unit and column["type"] in NUMBERS:
            reduced = f"SELECT MEDIAN({name}) FROM (SELECT AVG({name}) AS {name} FROM {table} GROUP BY {unit})"
            offers.append({"call": f"MEDIAN of AVG({name}) by {unit}", "answerable": True, "href": _link(reduced)})
        grouped = f"SELECT {name}, COUNT(*) FROM {table} GROUP BY {name}"
        columns.append(
            {
                **column,
                "possible": [offer for offer in offers if offer["answerable"]],
                "impossible": [offer for offer in offers if not offer["answerable"]],
                "grouped": _link(grouped)
                if column["values"] and column["groups"] and not described.get("public")
                else None,
            }
        )
    return columns


def _link(sql: str) -> str:
    return "/console/ask?" + urlencode({"sql": sql})

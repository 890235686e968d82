"""From SQL text to a question: what is not known is refused, with what is allowed instead.

    cut ─▶ parse ─▶ FROM: which data set ─▶ WHERE ─▶ GROUP BY ─▶ SELECT, HAVING, ORDER BY, LIMIT ─▶ Question

No data is touched, and nothing of the text goes any further: a question holds declared names, exact numbers and
the analyst's own labels. Every aggregate that stands anywhere in the innermost SELECT is a statistic that is released
(``Question.measures``). All else is computed from these, after the release (``postprocessing``).
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from operator import is_
from threading import Lock

from idios.declare.schema import Dataset
from idios.errors import QuestionRefused
from idios.plan.planner import Prepared, prepare
from idios.plan.question import Question
from idios.sql.inner_reader import InnerReader
from idios.sql.join_reader import drop_prefixes, read_source
from idios.sql.lexer import QuestionText, tokenize
from idios.sql.names import fold_case, quote
from idios.sql.outer_reader import OuterReader
from idios.sql.parser import SelectNode, parse
from idios.sql.reduction_reader import PeopleReader, ReductionReader, groups_by_unit, refuse_unit
from idios.sql.rows_reader import RowsReader

MAX_SELECTS = 10
KEPT = 256
"""How many questions are kept as they were read, of all callers together."""
CALLERS = 32
"""How many callers of a server keep questions at a time, each an equal part."""
LONGEST_KEPT = 4096
"""How many characters a question may have that is kept."""
WORK_KEPT = 4 * 10**6
"""How much work all questions took that are kept prepared: a unit leaves some 25 bytes."""
_QUOTED = re.compile(r'"[^"]*"|\'[^\']*\'')
_STRING = re.compile(r"'([^']*)'")


class RecentQuestions:
    """The questions that were read last: one is quoted, asked, and asked again with another ε, in the same words.

    How quickly a question is read tells whether it was read before. So each caller of a server has their own
    (``of_caller``): none finds out by that what another drafts.

    >>> from idios.core.domain import Domain, Kind
    >>> from idios.declare.schema import Column
    >>> people = {"people": Dataset("people", {"age": Column("age", Kind.INTEGER, Domain())})}
    >>> recent, sql = RecentQuestions(), "SELECT MEDIAN(age) FROM people"
    >>> recent.read(sql, people) is recent.read(sql, people), recent.read(sql, people) == read(sql, people)
    (True, True)
    """

    def __init__(self, parts: int = 1) -> None:
        self._parts = parts
        self._of_callers: OrderedDict[str, RecentQuestions] = OrderedDict()
        self._kept: OrderedDict[tuple[str, ...], tuple[list[Dataset], Question]] = OrderedDict()
        self._prepared: OrderedDict[int, tuple[Question, Dataset, Prepared]] = OrderedDict()
        self._lock = Lock()

    def of_caller(self, caller: str) -> RecentQuestions:
        """The recent questions of one caller, kept apart; those of the caller seen longest ago are forgotten first."""
        with self._lock:
            own = self._of_callers.setdefault(caller, RecentQuestions(CALLERS))
            self._of_callers.move_to_end(caller)
            if len(self._of_callers) > CALLERS:
                self._of_callers.popitem(last=False)
            return own

    def read(self, sql: str, datasets: Mapping[str, Dataset]) -> Question:
        """Read one question about one of some data sets, unless it was read of the very same ones before."""
        if not isinstance(sql, str) or len(sql) > LONGEST_KEPT:
            return read(sql, datasets)
        key, declared = (sql, *datasets), list(datasets.values())
        with self._lock:
            known = self._kept.get(key)
            if known is not None and all(map(is_, known[0], declared)):
                self._kept.move_to_end(key)
                return known[1]
        question = read(sql, datasets)
        with self._lock:
            self._kept[key] = declared, question
            if len(self._kept) > KEPT // self._parts:
                self._kept.popitem(last=False)
        return question

    def prepare(self, question: Question, dataset: Dataset) -> Prepared:
        """Prepare one of these questions, unless that was done before; what took much work is soon forgotten."""
        with self._lock:
            known = self._prepared.get(id(question))
            if known is not None and known[0] is question and known[1] is dataset:
                self._prepared.move_to_end(id(question))
                return known[2]
        prepared = prepare(question, dataset)
        with self._lock:
            self._prepared[id(question)] = question, dataset, prepared
            work = sum(each.work for _, _, each in self._prepared.values())
            while len(self._prepared) > KEPT // self._parts or work > WORK_KEPT // self._parts:
                work -= self._prepared.popitem(last=False)[1][2].work
        return prepared


def read(sql: str, datasets: Mapping[str, Dataset]) -> Question:
    """Read one question about one of some data sets.

    >>> from idios.core.domain import Domain, Kind
    >>> from idios.declare.schema import Column
    >>> people = Dataset("people", {"age": Column("age", Kind.INTEGER, Domain(lower=0, upper=120))})
    >>> question = read("SELECT median(AGE) AS m FROM people WHERE age > 17.5", {"people": people})
    >>> question.measures
    (Measure(label='m', statistic=Median(q=Fraction(1, 2)), column='age', offset=7),)
    >>> question.filter
    Among(column='age', intervals=((18, 120),), nulls=False)
    """
    try:
        return _read(sql, datasets)
    except QuestionRefused as refused:
        if (unquoted := _find_unquoted(refused, datasets)) is not None:
            name, place = unquoted
            message = f"a name that is no plain word is written in double quotes: {quote(name)}"
            raise QuestionRefused(message, refused.source, place) from None
        if (misquoted := _find_misquoted(refused, datasets)) is not None:
            message = f"what stands in single quotes is text, and no name: write {quote(misquoted)}"
            raise QuestionRefused(message, refused.source, refused.offset) from None
        raise


def _read(sql: str, datasets: Mapping[str, Dataset]) -> Question:
    text = tokenize(sql)
    selects = _list_selects(text, parse(text))
    innermost, around = selects[-1], selects[:-1]
    source = read_source(text, innermost, datasets)
    dataset = source.dataset
    for select in around:
        drop_prefixes(text, select)
    if not dataset.unit:
        question = InnerReader(text, innermost, dataset).read()
    elif groups_by_unit(text, innermost, dataset):
        reduced = ReductionReader(text, innermost, source, outermost=not around)
        made = reduced.read()
        reduced.refuse_unit_outside(around[-1])
        question = PeopleReader(text, around.pop(), dataset, made).read()
    else:
        declared = {fold_case(name) for name in dataset.columns}
        parts = [*(item.node for item in innermost.items), innermost.where]
        refuse_unit(text, parts, dataset, declared)
        question = RowsReader(text, innermost, source).read()
    if question.reduction is not None:
        question = replace(question, reduction=replace(question.reduction, join=source.join))
    for select in reversed(around):
        shown = OuterReader(text, select, question.shown[-1].items).read()
        question = replace(question, shown=(*question.shown, shown))
    return question


def _find_unquoted(refused: QuestionRefused, datasets: Mapping[str, Dataset]) -> tuple[str, int] | None:
    """A declared name that stands without the quotes it needs, and where; one word only where reading ended."""
    written = fold_case(_QUOTED.sub(lambda quoted: " " * len(quoted[0]), refused.source))
    names = _list_names(datasets)
    told = refused.message.split()
    named = [name for name in names if fold_case(name) in written and quote(name) not in (name, *told)]
    for name in sorted(named, key=lambda name: (-len(name), name)):
        place = written.find(fold_case(name))
        while place >= 0:
            end = place + len(name)
            whole = not (written[max(0, place - 1) : place].isalnum() or written[end : end + 1].isalnum())
            if whole and (" " in name or (refused.offset is not None and place <= refused.offset < end)):
                return name, place
            place = written.find(fold_case(name), end)
    return None


def _find_misquoted(refused: QuestionRefused, datasets: Mapping[str, Dataset]) -> str | None:
    """The declared name that stands as a string where reading ended; None if the refusal is about its text."""
    found = _STRING.match(refused.source, refused.offset or 0)
    if found is None or found[0] in refused.message:
        return None
    return next((name for name in sorted(_list_names(datasets)) if fold_case(name) == fold_case(found[1])), None)


def _list_names(datasets: Mapping[str, Dataset]) -> set[str]:
    """Every name that is declared, of data sets and of columns."""
    tables = [table for dataset in datasets.values() for table in (dataset, *dataset.tables.values())]
    return {name for table in tables for name in (table.name, *table.columns, *table.unit)}


def _list_selects(text: QuestionText, select: SelectNode) -> list[SelectNode]:
    """The SELECTs from the outermost to the innermost, each of which stands in FROM of the one before."""
    selects = [select]
    while selects[-1].source is not None and isinstance(selects[-1].source.content, SelectNode):
        selects.append(selects[-1].source.content)
        if len(selects) > MAX_SELECTS:
            raise text.refusal(f"at most {MAX_SELECTS} SELECT stand in one another")
    return selects

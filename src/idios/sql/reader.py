"""From SQL text to a question: what is not known is refused, with what is allowed instead.

    cut ─▶ parse ─▶ FROM: which data set ─▶ WHERE ─▶ GROUP BY ─▶ SELECT, HAVING, ORDER BY, LIMIT ─▶ Question

No data is touched, and nothing of the text goes any further: a question holds declared names, exact numbers and
the analyst's own labels. Every aggregate that stands anywhere in the innermost SELECT is a statistic that is released
(``Question.measures``). All else is computed from these, after the release (``postprocessing``).
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from operator import is_
from threading import Lock

from idios.core.domain import Kind
from idios.core.statistics import (
    Count,
    DiscreteQuantile,
    KthLargest,
    KthSmallest,
    Mean,
    Median,
    Quantile,
    Statistic,
    Sum,
    TrimmedMean,
    WinsorizedMean,
)
from idios.declare.schema import Dataset
from idios.errors import QuestionRefused
from idios.expressions.language import Expression, Reference, Type
from idios.plan.planner import Prepared, prepare
from idios.plan.postprocessing import FOLDS, Fold, Item, Select
from idios.plan.question import Key, Question
from idios.plan.reductions import (
    KEY,
    NUMBERS,
    ROW,
    SPREAD,
    ReducedValue,
    Reduction,
    limit_groups,
    make_columns,
)
from idios.sql.expression_reader import read_condition_of_values, read_expression
from idios.sql.inner_reader import InnerReader
from idios.sql.join_reader import FromClause, drop_prefixes, read_source
from idios.sql.lexer import QuestionText, tokenize
from idios.sql.literals import TypedExpression
from idios.sql.names import fold_case, quote, resolve_name, to_upper
from idios.sql.parser import CallNode, ListItem, Name, SelectNode, Star, SyntaxNode, parse
from idios.sql.reduction_reader import (
    PeopleReader,
    ReductionReader,
    groups_by_unit,
    propose_reduction,
    propose_selection,
    refuse_unit,
)
from idios.sql.select_reader import GROUPING, NO_SETS, SelectReader, has_call
from idios.sql.statistic_reader import Called

# Reads a question about the rows of people, which is one about people.


_SPREAD = (Median, Quantile, DiscreteQuantile, TrimmedMean, WinsorizedMean)
"""What is offered of rows in which everyone counts alike."""


class RowsReader(InnerReader):
    """Reads a question about the rows of a data set with a unit, as one about people.

    COUNT(*), COUNT(x) and SUM(x) of rows are sums over people of their own, and AVG(x) is the mean over people of their
    means, in which everyone counts alike. So they do in quantiles and trimmed means of rows (``SPREAD``). Nothing else
    of rows changes little when one person changes, so that everything else is refused, with the reduction that could be
    asked instead. GROUP BY needs a declared number of groups for each person. Where a number of rows is declared, all
    statistics are of these.
    """

    def __init__(self, text: QuestionText, tree: SelectNode, source: FromClause) -> None:
        super().__init__(text, tree, source.dataset)
        self.source = source
        self.names = {column: source.label(column) for column in self.names}
        self.values: list[ReducedValue] = []

    def read(self) -> Question:
        """The question, as far as this SELECT is it."""
        selected = self.read_selected()
        self._read_keys()
        if self.keys and not (self.dataset.groups or self.dataset.row_limit):
            raise self._refuse_groups()
        shown = self._read_shown()
        function = ROW if self.dataset.row_limit else KEY
        keys = [ReducedValue(function, key.column) for key in self.keys]
        values = tuple(dict.fromkeys([*keys, *self.values]))
        called = {value.name: value.column for value in values if value.column is not None}
        reduction = Reduction(selected, values, rows=self.dataset.row_limit, labels=called)
        if self.dataset.row_limit is None:
            reduction = limit_groups(reduction, [key.column for key in self.keys], self.dataset)
        return Question(
            self.dataset.name,
            tuple(self.measures),
            keys=tuple(replace(key, column=value.name) for key, value in zip(self.keys, keys, strict=True)),
            shown=shown,
            source=self.text.source,
            reduction=reduction,
        )

    def _read_key(self, node: SyntaxNode) -> Key | None:
        """A key; anything but a category only where rows are kept as they are."""
        if self.dataset.row_limit is not None:
            return super()._read_key(node)
        column = None
        if isinstance(node, Name):
            column = self.columns[resolve_name(self.text, node, self.columns, "column")]
        key = super()._read_key(node) if column is None or column.kind is Kind.CATEGORY else None
        if key is None or key.width is not None:
            which = key.column if key is not None else column.name if column is not None else "this"
            raise self.text.refusal(
                f"the rows of a {self.dataset.unit_word} are grouped by categories, and {which} is none: select a "
                "period or a range by WHERE",
                node.start,
            )
        return key

    def resolve_statistic(self, called: Called, node: SyntaxNode) -> Called:
        """The statistic of people that is one of rows."""
        statistic, column = called.statistic, called.column
        over: Statistic = Sum()
        if self.dataset.row_limit:
            if column is not None:
                self.values.append(ReducedValue(ROW, column.name))
            return called
        if type(statistic) in _SPREAD and column is not None:
            value, over = ReducedValue(SPREAD, column.name), statistic
        elif type(statistic) is Count:
            value = ReducedValue("COUNT", None if column is None or not column.nullable else column.name)
        elif type(statistic) is Sum and column is not None:
            value = ReducedValue("SUM", column.name)
        elif type(statistic) is Mean and column is not None:
            value, over = ReducedValue("AVG", column.name), Mean()
        else:
            raise self._refuse_statistic(called, node)
        if any((value.function == SPREAD) != (known.function == SPREAD) for known in self.values):
            raise self.text.refusal(
                f"{called.written} and what stands beside it are of rows in different ways: quantiles and trimmed "
                "means of rows are asked for by themselves",
                node.start,
            )
        self.values.append(value)
        return Called(over, make_columns(self.dataset, [value])[value.name], called.written)

    def _refuse_statistic(self, called: Called, node: SyntaxNode) -> QuestionRefused:
        columns = [] if called.column is None else [(self._choose_function(called), called.column)]
        instead = propose_reduction(self.tree, self.source, called.written, columns, self.keys)
        return self.text.refusal(
            f"{called.written} of rows is not offered, as one {self.dataset.unit_word} may have many: there are "
            "COUNT, SUM, AVG, quantiles and trimmed means. Reduce the rows of each "
            f"{self.dataset.unit_word} to one value first: {instead}",
            node.start,
        )

    def _choose_function(self, called: Called) -> str:
        """A function that reduces a column to what is most like it."""
        column, statistic = called.column, called.statistic
        if isinstance(statistic, KthSmallest | KthLargest):
            return "MIN" if isinstance(statistic, KthSmallest) else "MAX"
        if column is not None and column.kind in NUMBERS:
            return "AVG"
        return "MAX" if self.dataset.order is None else "LAST"

    def _refuse_groups(self) -> QuestionRefused:
        """Say what is declared to allow groups, and what can be asked without.

        The rows are not reduced to one group for each person here: which of several is theirs would be made up, and a
        sum of rows would become another.
        """
        word, example = self.dataset.unit_word, self._propose_one_group()
        instead = f"; or ask about one group: {example}" if example else ", or ask about one group at a time, by WHERE"
        return self.text.refusal(
            f"the rows of one {word} may be in many groups, which GROUP BY of rows does not protect. The controller "
            f"can declare groups = 2 or another number, in how many groups a {word} counts{instead}",
            self.tree.group[0].start,
        )

    def _propose_one_group(self) -> str:
        """The statistics of the first group, if they can be asked for as they are listed; else nothing."""
        selects = [token for token in self.text.tokens if token.keyword == "SELECT"]
        try:
            listed = [each for each in self.listed if not self._is_key(each.node)]
            if len(selects) > 1 or not listed or not all(self._find_statistic(each.node) for each in listed):
                return ""
        except QuestionRefused:
            return ""
        return propose_selection(self.tree, self.source, listed, self.keys)

    def _is_key(self, node: SyntaxNode) -> bool:
        column = self._find_column(node) if isinstance(node, Name) else None
        return column is not None and column.name in [key.column for key in self.keys]


# A SELECT around another: over released rows, so that all of it is post-processing.
#
# Its aggregates are of released values: MAX(m) is the greatest of the medians that were released, not a statistic of
# the data. None of them costs anything.


class OuterReader(SelectReader):
    """Reads a SELECT around one that gives ``columns``."""

    def __init__(self, text: QuestionText, tree: SelectNode, columns: Sequence[Item]) -> None:
        super().__init__(text, tree)
        self.every = [type(item.node) for item in tree.items] == [Star]
        if self.every:
            self.listed = ()
        self.columns = columns
        self._places: dict[str, list[int]] = {}
        for place, column in enumerate(columns):
            self._places.setdefault(fold_case(column.label), []).append(place)
        self.keys: list[TypedExpression] = []
        self._sets: tuple[tuple[int, ...], ...] | None = None
        self.key_nodes: dict[SyntaxNode, int] = {}
        self.folds: dict[Fold, int] = {}
        computed = [*(listed.node for listed in self.listed), tree.having, *(order.value for order in tree.order)]
        self.grouped = bool(tree.group) or tree.sets is not None or has_call(computed, FOLDS)

    def read(self) -> Select:
        """The whole SELECT."""
        condition: Expression | None = None
        if self.tree.where is not None:
            condition = read_condition_of_values(self.text, self.tree.where, self.find_column_or_refuse)
        self._read_keys()
        self.find_all()
        if self.every:
            if self.grouped:
                raise self.text.refusal("a star shows rows as they are: list keys and aggregates by name", 0)
            for i, column in enumerate(self.columns):
                self.add_item(column.label, self._refer(i), column.label, None)
        for listed in self.listed:
            named = listed.node.text if isinstance(listed.node, Name) else ""
            label = listed.label or named or listed.spelling
            self.add_item(label, self.read_item(listed), listed.spelling, listed.start)
        having, order, (limit, offset) = self.read_having(), self.read_order(), self.read_limits()
        return Select(
            tuple(self.items),
            condition,
            tuple(key.expression for key in self.keys),
            tuple(self.folds) if self.grouped else None,
            self._sets,
            tuple(self.windows),
            having,
            order,
            limit,
            offset,
        )

    def _read_keys(self) -> None:
        places = []
        for node in self.tree.group:
            item = None if self.find_column(node) is not None else self.resolve_item(node, "GROUP BY")
            target = node if item is None else item.node
            if target not in self.key_nodes:
                self.key_nodes[target] = len(self.keys)
                self.keys.append(read_expression(self.text, target, self.find_column_or_refuse))
            places.append(self.key_nodes[target])
        self._sets = self.read_sets(places)

    def read_item(self, listed: ListItem) -> TypedExpression:
        """One item of the list; a key of GROUP BY may be any expression."""
        key = self.key_nodes.get(listed.node)
        return super().read_item(listed) if key is None else self._refer_to_key(key)

    def read_value(self, node: SyntaxNode) -> TypedExpression:
        """Anything that is computed here; what is written as a key of GROUP BY is written, is that key."""
        if any(not isinstance(key.expression, Reference) for key in self.keys) and not has_call([node], FOLDS):
            with suppress(QuestionRefused):  # labels are no columns
                expression = read_expression(self.text, node, self.find_column_or_refuse).expression
                for place, key in enumerate(self.keys):
                    if key.expression == expression:
                        return self._refer_to_key(place)
        return super().read_value(node)

    def find(self, node: SyntaxNode) -> TypedExpression | None:
        """A result of the SELECT inside; in groups a key, or an aggregate."""
        if not self.grouped:
            return self.find_column(node)
        if isinstance(node, CallNode) and to_upper(node.function) in FOLDS:
            return self._read_fold(node)
        column = self.find_column(node)
        if column is None:
            return None
        for i, key in enumerate(self.keys):
            if key.expression == column.expression:
                return self._refer_to_key(i)
        raise self.text.refusal("a column is shown beside aggregates only if it is a key of GROUP BY", node.start)

    def find_column(self, node: SyntaxNode) -> TypedExpression | None:
        """A result of the SELECT inside."""
        if not isinstance(node, Name):
            return None
        matching = self._places.get(fold_case(node.text), [])
        if node.quoted:
            matching = [place for place in matching if self.columns[place].label == node.text]
        if len(matching) > 1:
            raise self.text.refusal(f"{node.text!r} could be several results: write it in double quotes", node.start)
        return self._refer(matching[0]) if matching else None

    def find_column_or_refuse(self, node: SyntaxNode) -> TypedExpression | None:
        """A result of the SELECT inside, where labels of this one mean nothing."""
        found = self.find_column(node)
        if found is None and isinstance(node, Name):
            raise self.refuse_name(node)
        return found

    def refuse_name(self, node: SyntaxNode) -> QuestionRefused:
        """Say which results there are."""
        listed = ", ".join(column.label for column in self.columns)
        named = node.text if isinstance(node, Name) else ""
        return self.text.refusal(f"there is no result {named!r} here: there are {listed}", node.start)

    def _refer(self, place: int) -> TypedExpression:
        column = self.columns[place]
        return TypedExpression(
            Reference(place), column.type, column.bits, whole=column.whole, column=column.column, released=True
        )

    def _refer_to_key(self, place: int) -> TypedExpression:
        key = self.keys[place]
        return TypedExpression(Reference(place), key.type, key.bits, whole=key.whole, column=key.column, released=True)

    def _read_fold(self, node: CallNode) -> TypedExpression:
        name = to_upper(node.function)
        if node.distinct or node.within is not None:
            raise self.text.refusal(f"{name} of released rows is written {name}(result)", node.start)
        fold, read = self.make_fold(name, node, self.find_column_or_refuse)
        return self._add_fold(fold, read)

    def read_grouping(self, node: CallNode) -> TypedExpression:
        """GROUPING(key)."""
        if self.tree.sets is None or len(node.arguments) != 1:
            raise self.text.refusal(NO_SETS, node.start)
        key = self.read_value(node.arguments[0]).expression
        if not isinstance(key, Reference) or int(key.name) >= len(self.keys):
            raise self.text.refusal("GROUPING is of a key of GROUP BY", node.start)
        return self._add_fold(Fold(GROUPING, key), TypedExpression(key, Type.NUMBER, 1, whole=True))

    def count_places(self) -> int:
        """How many values a row has before those of windows."""
        return len(self.keys) + len(self.folds) if self.grouped else len(self.columns)

    def _add_fold(self, fold: Fold, read: TypedExpression) -> TypedExpression:
        place = self.folds.setdefault(fold, len(self.folds))
        return replace(read, expression=Reference(len(self.keys) + place))


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

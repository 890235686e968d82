"""Reads the innermost SELECT, whose aggregates are released: WHERE, GROUP BY, and what is shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from idios.core.domain import Kind
from idios.core.exact import text as written
from idios.core.statistics import (
    Count,
    Mean,
    Statistic,
    Sum,
)
from idios.declare.schema import Column, Dataset, find_kind
from idios.errors import QuestionRefused
from idios.expressions.language import Reference, Type
from idios.expressions.predicates import Predicate
from idios.plan.postprocessing import Fold, Select
from idios.plan.question import Key, Measure, Question
from idios.sql.conditions import read_where
from idios.sql.lexer import QuestionText
from idios.sql.literals import TypedExpression
from idios.sql.names import find_spelt, fold_case, quote, resolve_name, to_upper
from idios.sql.parser import CallNode, ListItem, Name, SelectNode, SyntaxNode, walk
from idios.sql.select_reader import GROUPING, MAX_ITEMS, NO_SETS, SelectReader
from idios.sql.statistic_reader import Called, read_column, read_number, read_statistic
from idios.sql.suggestions import list_some

TYPES = {"date": Type.DATE, "timestamp": Type.TIMESTAMP, "category": Type.TEXT}
"""What can be computed with a kind of answer; the other kinds are numbers."""
KEY_TYPES = {Kind.CATEGORY: Type.TEXT, Kind.DATE: Type.DATE, Kind.TIMESTAMP: Type.TIMESTAMP}


class InnerReader(SelectReader):
    """Reads the innermost SELECT, whose aggregates are released; ``columns`` maps its names to declared columns."""

    def __init__(
        self,
        text: QuestionText,
        tree: SelectNode,
        dataset: Dataset,
        columns: Mapping[str, Column] | None = None,
    ) -> None:
        super().__init__(text, tree)
        self.dataset = dataset
        self.columns = dataset.columns if columns is None else columns
        self.names = {column.name: name for name, column in reversed(list(self.columns.items()))}
        self.keys: list[Key] = []
        self.sets: tuple[tuple[int, ...], ...] | None = None
        self.measures: list[Measure] = []
        self._places: dict[tuple[Statistic, str | None], int] = {}
        self._first_places: list[int] = []
        self._called: dict[SyntaxNode, Called | None] = {}

    def read(self) -> Question:
        """The question, as far as this SELECT is it."""
        selected = self.read_selected()
        self._read_keys()
        shown = self._read_shown()
        return Question(self.dataset.name, tuple(self.measures), selected, tuple(self.keys), shown, self.text.source)

    def read_selected(self) -> Predicate:
        """WHERE."""
        try:
            return read_where(self.text, self.tree.where, self.columns)
        except QuestionRefused:
            self._refuse_results()
            raise

    def _refuse_results(self) -> None:
        """Where WHERE names a result, say where a condition on one stands."""
        columns = {fold_case(name) for name in self.columns}
        labels = {fold_case(item.label) for item in self.listed if item.label} - columns
        for node in walk(self.tree.where):
            if isinstance(node, Name) and fold_case(node.text) in labels:
                raise self.text.refusal(
                    f"{node.text} is a result, and WHERE selects records: a condition on results stands in HAVING",
                    node.start,
                )

    # GROUP BY.

    def _read_keys(self) -> None:
        places = []
        for node in self.tree.group:
            key = self._read_key(self._resolve_key(node))
            if key is None:
                raise self.text.refusal(
                    "GROUP BY lists columns of categories or booleans and BIN(column, width), by name, label or number",
                    node.start,
                )
            meanings = [known.meaning for known in self.keys]
            if key.meaning not in meanings and key.column in [known.column for known in self.keys]:
                raise self.text.refusal(f"{key.column} is already a key of GROUP BY", key.offset)
            if key.meaning not in meanings:
                self.keys.append(key)
            places.append(meanings.index(key.meaning) if key.meaning in meanings else len(meanings))
        self.sets = self.read_sets(places)

    def _resolve_key(self, node: SyntaxNode) -> SyntaxNode:
        """What a key stands for: a number and a label for an item of SELECT; a column that can be a key for itself."""
        column = self._find_column(node) if isinstance(node, Name) else None
        item = None
        if column is None or column.kind is not Kind.CATEGORY:
            item = self.resolve_item(node, "GROUP BY")
        return node if item is None else item.node

    def _find_column(self, name: Name) -> Column | None:
        """The declared column of a name, if it is one."""
        if name.meaning is not None:
            return self.columns.get(name.meaning)
        if not find_spelt(self.text, replace(name, quoted=False), self.columns):
            return None
        return self.columns[resolve_name(self.text, name, self.columns, "column")]

    def _read_key(self, node: SyntaxNode) -> Key | None:
        """A column or BIN(column, width); None for anything else."""
        if isinstance(node, Name):
            column = self.columns[resolve_name(self.text, node, self.columns, "column")]
            if column.kind is not Kind.CATEGORY and not column.holds_truth:
                coded = (
                    f"; codes are declared by their controller: {column.name} = {{ values = [1, 2] }}, and truth as "
                    '{ type = "boolean" }'
                )
                raise self.text.refusal(
                    f"{column.name} is no category: answers are given by GROUP BY BIN({column.name}, width) "
                    f"or as statistics of the column{coded if column.kind is Kind.INTEGER else ''}",
                    node.start,
                )
            return Key(self.names[column.name], column.name, None, node.start)
        if not isinstance(node, CallNode) or to_upper(node.function) != "BIN":
            return None
        arguments = node.arguments
        if len(arguments) != 2 or node.distinct or node.within is not None:
            raise self.text.refusal("BIN is written BIN(column, width)", node.start)
        column = self.read_column(arguments[0], "BIN(column, width)")
        if column.kind is Kind.CATEGORY:
            raise self.text.refusal(f"{column.name} is a category: GROUP BY {column.name}", node.start)
        width = read_number(self.text, arguments[1], "the width of a bin")
        if width <= 0:
            raise self.text.refusal("the width of a bin is greater than 0", node.start)
        return Key(f"BIN({self.names[column.name]}, {written(width)})", column.name, width, node.start)

    # What is shown.

    def _read_shown(self) -> tuple[Select]:
        for listed in self.listed:  # so that a statistic goes by the name that the list gives it
            called = None if self._is_of_keys(listed.node) else self._find_statistic(listed.node)
            if called is not None:
                self._add_measure(called, listed.label or listed.spelling, listed.start)
        self.find_all()
        shown = [self._read_listed(listed) for listed in self.listed]
        named = {read.expression: label for label, read in reversed(shown)}
        self.keys = [replace(key, label=named.get(Reference(place), key.label)) for place, key in enumerate(self.keys)]
        for place, key in enumerate(self.keys):
            if Reference(place) not in named:
                self.add_item(key.label, self._refer_to_key(place), key.label, key.offset)
        for listed, (label, read) in zip(self.listed, shown, strict=True):
            self.add_item(label, read, listed.spelling, listed.start)
        having, order, (limit, offset) = self.read_having(), self.read_order(), self.read_limits()
        if not self.measures:
            raise self.text.refusal("SELECT lists no statistic, such as COUNT(*) or MEDIAN(column)", 0)
        shown_as = {item.label: item.expression for item in self.items}
        for measure, place in zip(self.measures, self._first_places, strict=True):
            own = Reference(len(self.keys) + place)
            if shown_as.get(measure.label, own) != own:
                raise self.text.refusal(
                    f"two different results are called {measure.label!r}: name one of them with AS", measure.offset
                )
        keys = tuple(Reference(place) for place in range(len(self.keys) if self.sets is not None else 0))
        select = Select(
            tuple(self.items), None, keys, None, self.sets, tuple(self.windows), having, order, limit, offset
        )
        if self.sets is not None:
            totals = [Fold("TOTAL", Reference(len(keys) + place)) for place in range(len(self.measures))]
            select = replace(select, folds=(*totals, *(Fold(GROUPING, key) for key in keys)))
        return (select,)

    def _read_listed(self, listed: ListItem) -> tuple[str, TypedExpression]:
        read = self.read_item(listed)
        label = listed.label
        if not label and isinstance(listed.node, Name) and isinstance(read.expression, Reference):
            place = int(read.expression.name)
            label = self.names[self.keys[place].column] if place < len(self.keys) else ""
        label = label or listed.spelling
        self.label(label, read)
        return label, read

    def find(self, node: SyntaxNode) -> TypedExpression | None:
        """A key of GROUP BY or a statistic."""
        if isinstance(node, Name) or self._is_bin(node):
            meaning: tuple[str, Fraction | None] | None
            if isinstance(node, Name):
                column = self._find_column(node)
                meaning = None if column is None else (column.name, None)
            else:
                bins = self._read_key(node)
                meaning = None if bins is None else bins.meaning
            for place, known in enumerate(self.keys):
                if known.meaning == meaning:
                    return self._refer_to_key(place)
            if not isinstance(node, Name):
                raise self.refuse_name(node)
            return None
        called = self._find_statistic(node)
        return None if called is None else self._refer_to_measure(called, node)

    def read_grouping(self, node: CallNode) -> TypedExpression:
        """GROUPING(key)."""
        key = self.find(node.arguments[0]) if len(node.arguments) == 1 else None
        if self.sets is None or key is None or not isinstance(key.expression, Reference):
            raise self.text.refusal(NO_SETS if self.sets is None else "GROUPING is of a key of GROUP BY", node.start)
        place = len(self.keys) + len(self.measures) + int(key.expression.name)
        return TypedExpression(Reference(place), Type.NUMBER, 1, whole=True)

    def count_places(self) -> int:
        """How many values a row has before those of windows."""
        return len(self.keys) * (1 if self.sets is None else 2) + len(self.measures)

    def _find_statistic(self, node: SyntaxNode) -> Called | None:
        if node not in self._called:
            called = read_statistic(self.text, node, self.read_column)
            if called is not None and self.sets is not None and not isinstance(called.statistic, Count | Sum):
                raise self._refuse_total(called, node)
            self._called[node] = None if called is None else self.resolve_statistic(called, node)
        return self._called[node]

    def read_column(self, node: SyntaxNode, signature: str) -> Column:
        """The column of a call that is written in this way."""
        return read_column(self.text, node, self.columns, signature)

    def _refuse_total(self, called: Called, node: SyntaxNode) -> QuestionRefused:
        """Say what adds up, and what to write for a mean."""
        instead = f"{called.written} of each level would be a question of its own, asked with the keys of that level"
        if isinstance(called.statistic, Mean) and called.column is not None:
            name = quote(called.column.name)
            instead = f"the mean of a total is that of its parts where it is written SUM({name}) / COUNT({name})"
        return self.text.refusal(
            f"totals are sums of the cells that are released, of COUNT and SUM: {instead}", node.start
        )

    def resolve_statistic(self, called: Called, node: SyntaxNode) -> Called:
        """The statistic that is released for one that is written."""
        return called

    def refuse_name(self, node: SyntaxNode) -> QuestionRefused:
        """Say that a column is no key, or that it is no column."""
        advice = ""
        if isinstance(node, Name):
            if self.items and self._find_column(node) is None:  # HAVING or ORDER BY, which name results
                results = list_some([item.label for item in self.items])
                told = f"there is no result {node.text!r} here: there are {results}"
                return self.text.refusal(told, node.start)
            column = self.columns[resolve_name(self.text, node, self.columns, "column")]
            if self.opened:
                told = f"OVER is of what is released, such as {self.opened}(SUM({node.text})) OVER ()"
                return self.text.refusal(f"{told}, and {node.text} is a column of records", node.start)
            if column.kind is not Kind.CATEGORY and not column.holds_truth:
                advice = f": {column.name} is no category, so write GROUP BY BIN({column.name}, width), or a statistic"
        return self.text.refusal(
            f"a column is shown beside statistics only if it is a key of GROUP BY{advice}", node.start
        )

    def _is_of_keys(self, node: SyntaxNode) -> bool:
        return isinstance(node, CallNode) and to_upper(node.function) in ("BIN", GROUPING)

    def _is_bin(self, node: SyntaxNode) -> bool:
        return isinstance(node, CallNode) and to_upper(node.function) == "BIN"

    def _refer_to_key(self, place: int) -> TypedExpression:
        key = self.keys[place]
        column = self.dataset.columns[key.column]
        kind, named = KEY_TYPES.get(column.kind, Type.NUMBER), column if column.kind is Kind.CATEGORY else None
        if key.width is None and named is None:
            kind = Type.BOOLEAN
        return TypedExpression(Reference(place), kind, whole=column.kind is Kind.INTEGER, column=named, released=True)

    def _refer_to_measure(self, called: Called, node: SyntaxNode) -> TypedExpression:
        meaning = called.meaning
        if meaning not in self._places:
            self._add_measure(called, called.written, node.start)
        place = self._places[meaning]
        kind = find_kind(called.statistic, called.column, self.dataset.protection.fineness)
        column = called.column if kind == "category" else None
        shown, whole = TYPES.get(kind, Type.NUMBER), kind == "integer"
        return TypedExpression(Reference(len(self.keys) + place), shown, whole=whole, column=column, released=True)

    def _add_measure(self, called: Called, label: str, offset: int | None) -> None:
        asked = Measure(label, called.statistic, called.meaning[1], offset)
        if asked not in self.measures:
            if len(self.measures) == MAX_ITEMS:
                raise self.text.refusal(f"a question asks for at most {MAX_ITEMS} statistics", offset)
            self._first_places.append(self._places.setdefault(called.meaning, len(self.measures)))
            self.measures.append(asked)

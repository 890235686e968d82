"""Reads the innermost SELECT, whose aggregates are released: WHERE, GROUP BY, and what is shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from idios.core.domain import Kind
from idios.core.exact import text as written
from idios.core.statistics import (
    Statistic,
)
from idios.errors import QuestionRefused
from idios.query.conditions import read_where
from idios.query.expressions import Reference, Type
from idios.query.lexer import QuestionText
from idios.query.literals import Typed
from idios.query.parser import allow_only, column_identifier, fold_case, offset_of, resolve_name, to_upper
from idios.query.plan import Key, Measure, Question
from idios.query.postprocessing import Select
from idios.query.predicates import Predicate
from idios.query.schema import Column, Dataset, find_kind
from idios.query.select_reader import Listed, SelectReader
from idios.query.statistic_reader import Called, read_column, read_number, read_statistic
from idios.query.suggestions import list_some

TYPES = {"date": Type.DATE, "timestamp": Type.TIMESTAMP, "category": Type.TEXT}
"""What can be computed with a kind of answer; the other kinds are numbers."""
KEY_TYPES = {Kind.CATEGORY: Type.TEXT, Kind.DATE: Type.DATE, Kind.TIMESTAMP: Type.TIMESTAMP}


class InnerReader(SelectReader):
    """Reads the innermost SELECT, whose aggregates are released; ``columns`` are by the names they have in it."""

    def __init__(
        self,
        text: QuestionText,
        tree: exp.Expression,
        number: int,
        dataset: Dataset,
        columns: Mapping[str, Column] | None = None,
    ) -> None:
        super().__init__(text, tree, number)
        self.dataset = dataset
        self.columns = dataset.columns if columns is None else columns
        self.names = {column.name: name for name, column in reversed(list(self.columns.items()))}
        self.keys: list[Key] = []
        self.measures: list[Measure] = []
        self._places: dict[tuple[Statistic, str | None], int] = {}
        self._first_places: list[int] = []
        self._called: dict[int, Called | None] = {}

    def read(self) -> Question:
        """The question, as far as this SELECT is it."""
        selected = self.read_selected()
        self._read_keys()
        shown = self._read_shown()
        return Question(self.dataset.name, tuple(self.measures), selected, tuple(self.keys), shown, self.text.source)

    def read_selected(self) -> Predicate:
        """WHERE."""
        try:
            return read_where(self.text, self.tree, self.columns)
        except QuestionRefused:
            self._refuse_results(self.tree.args["where"])
            raise

    def _refuse_results(self, where: exp.Expression) -> None:
        """Where WHERE names a result, say where a condition on one stands."""
        columns = {fold_case(name) for name in self.columns}
        labels = {fold_case(item.label) for item in self.listed if item.label} - columns
        for node in where.walk():
            if type(node) is exp.Column and fold_case(node.name) in labels:
                raise self.text.refusal(
                    f"{node.name} is a result, and WHERE selects records: a condition on results stands in HAVING",
                    offset_of(node),
                )

    # GROUP BY.

    def _read_keys(self) -> None:
        group = self.tree.args.get("group")
        if group is None:
            return
        allow_only(self.text, group, "expressions")
        for node in group.expressions:
            key = self._read_key(self._resolve_key(node))
            if key is None:
                raise self.text.refusal(
                    "GROUP BY lists columns of categories or booleans and BIN(column, width), by name, label or number",
                    offset_of(node),
                )
            if key.meaning in [known.meaning for known in self.keys]:
                continue
            if key.column in [known.column for known in self.keys]:
                raise self.text.refusal(f"{key.column} is already a key of GROUP BY", key.offset)
            self.keys.append(key)

    def _resolve_key(self, node: exp.Expression) -> exp.Expression:
        """What a key stands for: a number and a label for an item of SELECT; a column that can be a key for itself."""
        name = column_identifier(self.text, node)
        column = None if name is None else self._find_column(name)
        item = None
        if column is None or column.kind is not Kind.CATEGORY:
            item = self.resolve_item(node, "GROUP BY")
        return node if item is None else item.node

    def _find_column(self, name: exp.Expression) -> Column | None:
        """The declared column of a name, if it is one."""
        named = str(name.this)
        if any(named == known or fold_case(named) == fold_case(known) for known in self.columns):
            return self.columns[resolve_name(self.text, name, self.columns, "column")]
        return None

    def _read_key(self, node: exp.Expression) -> Key | None:
        """A column or BIN(column, width); None for anything else."""
        if (name := column_identifier(self.text, node)) is not None:
            column = self.columns[resolve_name(self.text, name, self.columns, "column")]
            if column.kind is not Kind.CATEGORY and not column.holds_truth:
                coded = (
                    f"; codes are declared by their controller: {column.name} = {{ values = [1, 2] }}, and truth as "
                    '{ type = "boolean" }'
                )
                raise self.text.refusal(
                    f"{column.name} is no category: answers are given by GROUP BY BIN({column.name}, width) "
                    f"or as statistics of the column{coded if column.kind is Kind.INTEGER else ''}",
                    offset_of(node),
                )
            return Key(self.names[column.name], column.name, None, offset_of(node))
        if type(node) is not exp.Anonymous or to_upper(str(node.this)) != "BIN":
            return None
        allow_only(self.text, node, "this", "expressions")
        arguments = node.expressions
        if len(arguments) != 2:
            raise self.text.refusal("BIN is written BIN(column, width)", offset_of(node))
        column = read_column(self.text, arguments[0], self.columns, "BIN(column, width)")
        if column.kind is Kind.CATEGORY:
            raise self.text.refusal(f"{column.name} is a category: GROUP BY {column.name}", offset_of(node))
        width = read_number(self.text, arguments[1], "the width of a bin")
        if width <= 0:
            raise self.text.refusal("the width of a bin is greater than 0", offset_of(node))
        return Key(f"BIN({self.names[column.name]}, {written(width)})", column.name, width, offset_of(node))

    # What is shown.

    def _read_shown(self) -> tuple[Select]:
        for listed in self.listed:  # so that a statistic goes by the name that the list gives it
            called = None if self._is_bin(listed.node) else self._find_statistic(listed.node)
            if called is not None:
                self._add_measure(called, listed.label or listed.spelling, listed.start)
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
        return (Select(tuple(self.items), having=having, order=order, limit=limit, offset=offset),)

    def _read_listed(self, listed: Listed) -> tuple[str, Typed]:
        read = self.read_item(listed)
        label = listed.label
        if not label and type(listed.node) is exp.Column and isinstance(read.expression, Reference):
            place = int(read.expression.name)
            label = self.names[self.keys[place].column] if place < len(self.keys) else ""
        label = label or listed.spelling
        self.label(label, read)
        return label, read

    def find(self, node: exp.Expression) -> Typed | None:
        """A key of GROUP BY or a statistic."""
        if type(node) is exp.Column or self._is_bin(node):
            name = column_identifier(self.text, node)
            if name is None:
                bins = self._read_key(node)
                meaning = None if bins is None else bins.meaning
            else:
                column = self._find_column(name)
                meaning = None if column is None else (column.name, None)
            for place, known in enumerate(self.keys):
                if known.meaning == meaning:
                    return self._refer_to_key(place)
            if name is None:
                raise self.refuse_name(node)
            return None
        called = self._find_statistic(node)
        return None if called is None else self._refer_to_measure(called, node)

    def _find_statistic(self, node: exp.Expression) -> Called | None:
        if id(node) not in self._called:
            called = read_statistic(self.text, node, self.columns)
            self._called[id(node)] = None if called is None else self.resolve_statistic(called, node)
        return self._called[id(node)]

    def resolve_statistic(self, called: Called, node: exp.Expression) -> Called:
        """The statistic that is released for one that is written."""
        return called

    def refuse_name(self, node: exp.Expression) -> QuestionRefused:
        """Say that a column is no key, or that it is no column."""
        name, advice = column_identifier(self.text, node), ""
        if name is not None:
            if self.items and self._find_column(name) is None:  # HAVING or ORDER BY, which name results
                results = list_some([item.label for item in self.items])
                told = f"there is no result {str(name.this)!r} here: there are {results}"
                return self.text.refusal(told, offset_of(node))
            column = self.columns[resolve_name(self.text, name, self.columns, "column")]
            if column.kind is not Kind.CATEGORY and not column.holds_truth:
                advice = f": {column.name} is no category, so write GROUP BY BIN({column.name}, width), or a statistic"
        return self.text.refusal(
            f"a column is shown beside statistics only if it is a key of GROUP BY{advice}", offset_of(node)
        )

    def _is_bin(self, node: exp.Expression) -> bool:
        return type(node) is exp.Anonymous and to_upper(str(node.this)) == "BIN"

    def _refer_to_key(self, place: int) -> Typed:
        key = self.keys[place]
        column = self.dataset.columns[key.column]
        kind, named = KEY_TYPES.get(column.kind, Type.NUMBER), column if column.kind is Kind.CATEGORY else None
        if key.width is None and named is None:
            kind = Type.BOOLEAN
        return Typed(Reference(place), kind, whole=column.kind is Kind.INTEGER, column=named, released=True)

    def _refer_to_measure(self, called: Called, node: exp.Expression) -> Typed:
        meaning = called.meaning
        if meaning not in self._places:
            self._add_measure(called, called.written, offset_of(node))
        place = self._places[meaning]
        kind = find_kind(called.statistic, called.column, self.dataset.protection.fineness)
        column = called.column if kind == "category" else None
        shown, whole = TYPES.get(kind, Type.NUMBER), kind == "integer"
        return Typed(Reference(len(self.keys) + place), shown, whole=whole, column=column, released=True)

    def _add_measure(self, called: Called, label: str, offset: int | None) -> None:
        asked = Measure(label, called.statistic, called.meaning[1], offset)
        if asked not in self.measures:
            self._first_places.append(self._places.setdefault(called.meaning, len(self.measures)))
            self.measures.append(asked)

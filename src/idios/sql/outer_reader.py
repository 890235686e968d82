"""A SELECT around another: over released rows, so that all of it is post-processing.

Its aggregates are of released values: MAX(m) is the greatest of the medians that were released, not a statistic of the
data. None of them costs anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from idios.errors import QuestionRefused
from idios.expressions.language import Expression, Reference, Type
from idios.plan.postprocessing import FOLDS, Fold, Item, Select
from idios.sql.expression_reader import read_condition_of_values, read_expression
from idios.sql.lexer import QuestionText
from idios.sql.literals import Typed
from idios.sql.names import fold_case, to_upper
from idios.sql.parser import CallNode, ListItem, Name, SelectNode, Star, SyntaxNode
from idios.sql.select_reader import GROUPING, NO_SETS, SelectReader, has_call


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
        self.keys: list[Typed] = []
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

    def read_item(self, listed: ListItem) -> Typed:
        """One item of the list; a key of GROUP BY may be any expression."""
        key = self.key_nodes.get(listed.node)
        return super().read_item(listed) if key is None else self._refer_to_key(key)

    def read_value(self, node: SyntaxNode) -> Typed:
        """Anything that is computed here; what is written as a key of GROUP BY is written, is that key."""
        if any(not isinstance(key.expression, Reference) for key in self.keys) and not has_call([node], FOLDS):
            with suppress(QuestionRefused):  # labels are no columns
                expression = read_expression(self.text, node, self.find_column_or_refuse).expression
                for place, key in enumerate(self.keys):
                    if key.expression == expression:
                        return self._refer_to_key(place)
        return super().read_value(node)

    def find(self, node: SyntaxNode) -> Typed | None:
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

    def find_column(self, node: SyntaxNode) -> Typed | None:
        """A result of the SELECT inside."""
        if not isinstance(node, Name):
            return None
        matching = self._places.get(fold_case(node.text), [])
        if node.quoted:
            matching = [place for place in matching if self.columns[place].label == node.text]
        if len(matching) > 1:
            raise self.text.refusal(f"{node.text!r} could be several results: write it in double quotes", node.start)
        return self._refer(matching[0]) if matching else None

    def find_column_or_refuse(self, node: SyntaxNode) -> Typed | None:
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

    def _refer(self, place: int) -> Typed:
        column = self.columns[place]
        return Typed(
            Reference(place), column.type, column.bits, whole=column.whole, column=column.column, released=True
        )

    def _refer_to_key(self, place: int) -> Typed:
        key = self.keys[place]
        return Typed(Reference(place), key.type, key.bits, whole=key.whole, column=key.column, released=True)

    def _read_fold(self, node: CallNode) -> Typed:
        name = to_upper(node.function)
        if node.distinct or node.within is not None:
            raise self.text.refusal(f"{name} of released rows is written {name}(result)", node.start)
        fold, read = self.make_fold(name, node, self.find_column_or_refuse)
        return self._add_fold(fold, read)

    def read_grouping(self, node: CallNode) -> Typed:
        """GROUPING(key)."""
        if self.tree.sets is None or len(node.arguments) != 1:
            raise self.text.refusal(NO_SETS, node.start)
        key = self.read_value(node.arguments[0]).expression
        if not isinstance(key, Reference) or int(key.name) >= len(self.keys):
            raise self.text.refusal("GROUPING is of a key of GROUP BY", node.start)
        return self._add_fold(Fold(GROUPING, key), Typed(key, Type.NUMBER, 1, whole=True))

    def count_places(self) -> int:
        """How many values a row has before those of windows."""
        return len(self.keys) + len(self.folds) if self.grouped else len(self.columns)

    def _add_fold(self, fold: Fold, read: Typed) -> Typed:
        place = self.folds.setdefault(fold, len(self.folds))
        return replace(read, expression=Reference(len(self.keys) + place))

"""A SELECT around another: over released rows, so that all of it is post-processing.

Its aggregates are of released values: MAX(m) is the greatest of the medians that were released, not a statistic of the
data. None of them costs anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from sqlglot import exp

from idios.errors import QuestionRefused
from idios.query.expression_reader import read_condition_of_values, read_expression
from idios.query.expressions import Expression, Reference, Type
from idios.query.lexer import QuestionText
from idios.query.literals import Typed
from idios.query.parser import allow_only, column_identifier, fold_case, offset_of, to_upper
from idios.query.postprocessing import FOLDS, Fold, Item, Select
from idios.query.select_reader import Listed, SelectReader, has_call

COUNT_BITS = 32
"""How long the number of released rows may be."""


class OuterReader(SelectReader):
    """Reads a SELECT around one that gives ``columns``."""

    def __init__(self, text: QuestionText, tree: exp.Expression, number: int, columns: Sequence[Item]) -> None:
        if len(tree.expressions) == 1 and type(tree.expressions[0]) is exp.Star:
            allow_only(text, tree.expressions[0])
            self.every = True
            tree.set("expressions", [])
        else:
            self.every = False
        self.columns = columns
        super().__init__(text, tree, number)
        self.keys: list[Typed] = []
        self.key_nodes: dict[int, int] = {}
        self.folds: list[Fold] = []
        clauses = [tree.args[clause] for clause in ("having", "order") if tree.args.get(clause) is not None]
        self.grouped = tree.args.get("group") is not None or has_call(
            [*(listed.node for listed in self.listed), *clauses], FOLDS
        )

    def read(self) -> Select:
        """The whole SELECT."""
        where = self.tree.args.get("where")
        condition: Expression | None = None
        if where is not None:
            allow_only(self.text, where, "this")
            condition = read_condition_of_values(self.text, where.this, self.find_column_or_refuse)
        self._read_keys()
        if self.every:
            if self.grouped:
                raise self.text.refusal("a star shows rows as they are: list keys and aggregates by name", 0)
            for i, column in enumerate(self.columns):
                self.add_item(column.label, self._refer(i), column.label, None)
        for listed in self.listed:
            label = listed.label or self._name_of(listed.node) or listed.spelling
            self.add_item(label, self.read_item(listed), listed.spelling, listed.start)
        having, order, (limit, offset) = self.read_having(), self.read_order(), self.read_limits()
        return Select(
            tuple(self.items),
            condition,
            tuple(key.expression for key in self.keys),
            tuple(self.folds) if self.grouped else None,
            having,
            order,
            limit,
            offset,
        )

    def _list_items(self, number: int) -> list[Listed]:
        return [] if self.every else super()._list_items(number)

    def _read_keys(self) -> None:
        group = self.tree.args.get("group")
        if group is None:
            return
        allow_only(self.text, group, "expressions")
        for node in group.expressions:
            item = None if self.find_column(node) is not None else self.resolve_item(node, "GROUP BY")
            target = node if item is None else item.node
            self.key_nodes[id(target)] = len(self.keys)
            self.keys.append(read_expression(self.text, target, self.find_column_or_refuse))

    def read_item(self, listed: Listed) -> Typed:
        """One item of the list; a key of GROUP BY may be any expression."""
        key = self.key_nodes.get(id(listed.node))
        return super().read_item(listed) if key is None else self._refer_to_key(key)

    def read_value(self, node: exp.Expression) -> Typed:
        """Anything that is computed here; what is written as a key of GROUP BY is written, is that key."""
        if any(not isinstance(key.expression, Reference) for key in self.keys) and not has_call([node], FOLDS):
            with suppress(QuestionRefused):  # labels are no columns
                expression = read_expression(self.text, node, self.find_column_or_refuse).expression
                for place, key in enumerate(self.keys):
                    if key.expression == expression:
                        return self._refer_to_key(place)
        return super().read_value(node)

    def find(self, node: exp.Expression) -> Typed | None:
        """A result of the SELECT inside; in groups a key, or an aggregate."""
        if not self.grouped:
            return self.find_column(node)
        if type(node) is exp.Anonymous and to_upper(str(node.this)) in FOLDS:
            return self._read_fold(node)
        column = self.find_column(node)
        if column is None:
            return None
        for i, key in enumerate(self.keys):
            if key.expression == column.expression:
                return self._refer_to_key(i)
        raise self.text.refusal("a column is shown beside aggregates only if it is a key of GROUP BY", offset_of(node))

    def find_column(self, node: exp.Expression) -> Typed | None:
        """A result of the SELECT inside."""
        name = self._name_of(node)
        if name is None:
            return None
        quoted = bool(node.this.args.get("quoted"))
        matching = [
            i
            for i, column in enumerate(self.columns)
            if column.label == name or (not quoted and fold_case(column.label) == fold_case(name))
        ]
        if len(matching) > 1:
            raise self.text.refusal(f"{name!r} could be several results: write it in double quotes", offset_of(node))
        return self._refer(matching[0]) if matching else None

    def find_column_or_refuse(self, node: exp.Expression) -> Typed | None:
        """A result of the SELECT inside, where labels of this one mean nothing."""
        found = self.find_column(node)
        if found is None and type(node) is exp.Column:
            raise self.refuse_name(node)
        return found

    def refuse_name(self, node: exp.Expression) -> QuestionRefused:
        """Say which results there are."""
        listed = ", ".join(column.label for column in self.columns)
        return self.text.refusal(
            f"there is no result {self._name_of(node)!r} here: there are {listed}", offset_of(node)
        )

    def _name_of(self, node: exp.Expression) -> str | None:
        name = column_identifier(self.text, node)
        return None if name is None else str(name.this)

    def _refer(self, place: int) -> Typed:
        column = self.columns[place]
        return Typed(
            Reference(place), column.type, column.bits, whole=column.whole, column=column.column, released=True
        )

    def _refer_to_key(self, place: int) -> Typed:
        key = self.keys[place]
        return Typed(Reference(place), key.type, key.bits, whole=key.whole, column=key.column, released=True)

    def _read_fold(self, node: exp.Expression) -> Typed:
        allow_only(self.text, node, "this", "expressions")
        name, arguments = to_upper(str(node.this)), list(node.expressions)
        if len(arguments) != 1 or type(arguments[0]) is exp.Distinct:
            raise self.text.refusal(f"{name} of released rows is written {name}(result)", offset_of(node))
        if type(arguments[0]) is exp.Star and name == "COUNT":
            allow_only(self.text, arguments[0])
            return self._add_fold(Fold(name), Type.NUMBER, COUNT_BITS, whole=True)
        value = read_expression(self.text, arguments[0], self.find_column_or_refuse)
        if name in ("SUM", "AVG", "MEAN", "MEDIAN") and value.type not in (Type.NUMBER, None):
            raise self.text.refusal(f"{name} is of numbers, and this is a {value.type}", offset_of(node))
        if name in ("MIN", "MAX") and value.type is Type.BOOLEAN:
            raise self.text.refusal(f"{name} is of values that have an order", offset_of(node))
        whole = name == "COUNT" or (name in ("SUM", "MIN", "MAX") and value.whole)
        kind = Type.NUMBER if name == "COUNT" else value.type
        fold = self._add_fold(Fold(name, value.expression), kind, value.bits + COUNT_BITS, whole=whole)
        return replace(fold, column=value.column, released=value.released) if name in ("MIN", "MAX") else fold

    def _add_fold(self, fold: Fold, kind: Type | None, bits: int, *, whole: bool) -> Typed:
        if fold not in self.folds:
            self.folds.append(fold)
        return Typed(Reference(len(self.keys) + self.folds.index(fold)), kind, bits, whole=whole)

"""What every SELECT has in common: its list, HAVING, ORDER BY, LIMIT and OFFSET, as post-processing of rows.

What a name means differs: in the innermost SELECT it is a key of GROUP BY, around it a result of the SELECT inside. In
either, a name that is neither may be the label of an item of the list.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import replace

from idios.errors import QuestionRefused
from idios.expressions.language import Expression, Literal, Reference, Type, list_references
from idios.plan.postprocessing import FOLDS, Fold, Item, OrderItem, OverWindow
from idios.sql.expression_reader import (
    Leaf,
    read_condition_of_values,
    read_expression,
    read_whole_number,
)
from idios.sql.lexer import QuestionText
from idios.sql.literals import TypedExpression
from idios.sql.names import fold_case, to_upper
from idios.sql.parser import (
    CallNode,
    ListItem,
    Name,
    Number,
    OrderNode,
    SelectNode,
    Star,
    SyntaxNode,
    WindowNode,
    walk,
)

NESTED = "OVER within OVER is written as a SELECT around another"

MAX_ITEMS = 200
MAX_KEYS = 64
COUNT_BITS = 32
"""How long the number of released rows may be."""
GROUPING = "GROUPING"
NO_SETS = "GROUPING(key) tells the totals of GROUP BY ROLLUP, CUBE or GROUPING SETS apart, and there are none here"


class SelectReader(ABC):
    """Reads one SELECT."""

    def __init__(self, text: QuestionText, tree: SelectNode) -> None:
        self.text, self.tree = text, tree
        clauses: tuple[tuple[str, Sequence[object], int], ...] = (
            ("SELECT", tree.items, MAX_ITEMS),
            ("GROUP BY", tree.group, MAX_KEYS),
            ("ORDER BY", tree.order, MAX_ITEMS),
        )
        for clause, listed, most in clauses:
            if len(listed) > most:
                raise text.refusal(f"{clause} lists at most {most} items, got {len(listed)}")
        self.listed = tree.items
        self._by_label: dict[str, list[ListItem]] = {}
        for item in tree.items:
            self._by_label.setdefault(fold_case(item.label), []).append(item)
        self.items: list[Item] = []
        self.windows: dict[OverWindow, int] = {}
        self.opened = ""
        """The aggregate before OVER whose argument is being read."""
        self._labelled: dict[str, dict[str, TypedExpression]] = {}
        self._read: dict[SyntaxNode, TypedExpression] = {}

    @abstractmethod
    def find(self, node: SyntaxNode) -> TypedExpression | None:
        """What a name or a call means here, labels apart; None if it is none that is known here."""

    def count_places(self) -> int:
        """How many values a row has before those of windows; all have to be known (``find_all``)."""
        raise NotImplementedError

    def read_grouping(self, node: CallNode) -> TypedExpression:
        """GROUPING(key): whether a row is a total over a key."""
        raise NotImplementedError

    @abstractmethod
    def refuse_name(self, node: SyntaxNode) -> QuestionRefused:
        """Why a name that is no label either is refused."""

    def leaf(self, node: SyntaxNode) -> TypedExpression | None:
        """What a name or a call means here."""
        if type(node) is Star:
            raise self.text.refusal("a star stands in COUNT(*), or alone in SELECT * FROM (SELECT …)", node.start)
        if type(node) is WindowNode:
            return self._read_window(node)
        if type(node) is CallNode and to_upper(node.function) == GROUPING:
            return self.read_grouping(node)
        known = self.find(node)
        if known is None and type(node) is Name:
            known = self._find_labelled(node)
            if known is None:
                raise self.refuse_name(node)
        return known

    def label(self, label: str, read: TypedExpression) -> None:
        """Let a name stand for what was read, unless it stands for something already."""
        self._labelled.setdefault(fold_case(label), {}).setdefault(label, read)

    def _find_labelled(self, name: Name) -> TypedExpression | None:
        alike = {} if name.prefix is not None else self._labelled.get(fold_case(name.text), {})
        if name.quoted:
            return alike.get(name.text)
        if len(alike) > 1:
            raise self._refuse_alike(name)
        return next(iter(alike.values()), None)

    def _refuse_alike(self, name: Name) -> QuestionRefused:
        return self.text.refusal(f"{name.text} could be several results: write it in double quotes", name.start)

    def read_sets(self, places: Sequence[int]) -> tuple[tuple[int, ...], ...] | None:
        """The sets of places of keys, of each of which the list of GROUP BY has the given place."""
        if self.tree.sets is None:
            return None
        sets = [tuple(sorted({places[place] for place in kept})) for kept in self.tree.sets]
        if len(set(sets)) < len(sets):
            raise self.text.refusal("GROUP BY has one set of keys twice: each gives its rows once", self.tree.start)
        return tuple(sets)

    def find_all(self) -> None:
        """Find all that windows are computed from, so that the places of windows come after it."""
        having, order = self.tree.having, [part.value for part in self.tree.order]
        nodes = list(walk(*(item.node for item in self.listed), having, *order))
        if any(type(node) is WindowNode for node in walk(having)):
            told = "HAVING chooses the rows that OVER is computed from: write a SELECT around this one, with WHERE"
            raise self.text.refusal(told, having.start if having else None)
        if self.tree.sets is not None or any(type(node) is WindowNode for node in nodes):
            for node in nodes:
                if type(node) is CallNode:
                    self.leaf(node)

    def _read_window(self, node: WindowNode) -> TypedExpression:
        name = to_upper(node.function)
        if name not in FOLDS:
            told = f"{name} OVER is not offered: there are {', '.join(FOLDS)} OVER. ORDER BY puts rows in order"
            raise self.text.refusal(told, node.start)
        if inner := next((each for each in walk(*node.arguments, *node.partition) if type(each) is WindowNode), None):
            raise self.text.refusal(NESTED, inner.start)
        self.opened = name
        fold, read = self.make_fold(name, node, self.leaf)
        self.opened = ""
        partition = [read_expression(self.text, part, self.leaf).expression for part in node.partition]
        reached = {
            int(place) for part in (fold.argument or Literal(None), *partition) for place in list_references(part)
        }
        if max(reached, default=0) >= self.count_places():  # by the name of a result
            raise self.text.refusal(NESTED, node.start)
        place = self.windows.setdefault(OverWindow(fold, tuple(partition)), len(self.windows))
        return replace(read, expression=Reference(self.count_places() + place))

    def make_fold(self, name: str, node: CallNode | WindowNode, leaf: Leaf) -> tuple[Fold, TypedExpression]:
        """An aggregate over rows that are released, and what is known of its values."""
        if len(node.arguments) != 1:
            raise self.text.refusal(f"{name} of released rows is written {name}(result)", node.start)
        argument, unknown = node.arguments[0], Literal(None)
        if type(argument) is Star and name == "COUNT":
            return Fold(name), TypedExpression(unknown, Type.NUMBER, COUNT_BITS, whole=True)
        value = read_expression(self.text, argument, leaf)
        if name in ("SUM", "AVG", "MEAN", "MEDIAN") and value.type not in (Type.NUMBER, None):
            raise self.text.refusal(f"{name} is of numbers, and this is a {value.type}", node.start)
        if name in ("MIN", "MAX") and value.type is Type.BOOLEAN:
            raise self.text.refusal(f"{name} is of values that have an order", node.start)
        whole = name == "COUNT" or (name in ("SUM", "MIN", "MAX") and value.whole)
        kind = Type.NUMBER if name == "COUNT" else value.type
        made = TypedExpression(unknown, kind, value.bits + COUNT_BITS, whole=whole)
        kept = replace(made, column=value.column, released=value.released) if name in ("MIN", "MAX") else made
        return Fold(name, value.expression), kept

    def resolve_item(self, node: SyntaxNode, clause: str) -> ListItem | None:
        """The item of the list that a number or a label in GROUP BY or ORDER BY stands for; None if it is none."""
        if type(node) is Number:
            number = read_whole_number(self.text, node, f"the number of a result in {clause}")
            if not 1 <= number <= len(self.listed):
                raise self.text.refusal(
                    f"{clause} {number} is no item of SELECT, which lists {len(self.listed)}", node.start
                )
            return self.listed[number - 1]
        if type(node) is not Name or node.prefix is not None or not node.text:
            return None
        alike = self._by_label.get(fold_case(node.text), [])
        if node.quoted:
            alike = [item for item in alike if item.label == node.text]
        if len({item.label for item in alike}) > 1:
            raise self._refuse_alike(node)
        return alike[0] if alike else None

    def read_item(self, listed: ListItem) -> TypedExpression:
        """One item of the list, read once however often its number or its label stands for it."""
        if listed.node not in self._read:
            self._read[listed.node] = self.read_value(listed.node)
        return self._read[listed.node]

    def read_value(self, node: SyntaxNode) -> TypedExpression:
        """Anything that is computed here."""
        return read_expression(self.text, node, self.leaf)

    def add_item(self, label: str, read: TypedExpression, written: str, start: int | None) -> None:
        """Show something; the same under the same name once."""
        item = Item(label, read.expression, read.type, read.whole, written, read.bits, read.column)
        same = next((known for known in self.items if known.label == label), None)
        if same is None:
            self.items.append(item)
            self.label(label, read)
        elif same.expression != item.expression:
            raise self.text.refusal(f"two different results are called {label!r}: name one of them with AS", start)

    def read_having(self) -> Expression | None:
        """HAVING, a condition on what is released."""
        having = self.tree.having
        return None if having is None else read_condition_of_values(self.text, having, self.leaf)

    def read_order(self) -> tuple[OrderItem, ...]:
        """ORDER BY."""
        return tuple(self._read_order(part) for part in self.tree.order)

    def _read_order(self, part: OrderNode) -> OrderItem:
        item = self.resolve_item(part.value, "ORDER BY")
        read = self.read_value(part.value) if item is None else self.read_item(item)
        return OrderItem(read.expression, part.descending, part.nulls_first)

    def read_limits(self) -> tuple[int | None, int]:
        """LIMIT and OFFSET."""
        limit, offset = self.tree.limit, self.tree.offset
        return (
            None if limit is None else read_whole_number(self.text, limit, "LIMIT"),
            0 if offset is None else read_whole_number(self.text, offset, "OFFSET"),
        )


def has_call(nodes: Iterable[SyntaxNode | None], names: Iterable[str]) -> bool:
    """Whether one of some functions is called anywhere."""
    wanted = set(names)
    return any(type(part) is CallNode and to_upper(part.function) in wanted for part in walk(*nodes))

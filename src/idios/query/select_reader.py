"""What every SELECT has in common: its list, HAVING, ORDER BY, LIMIT and OFFSET, as post-processing of rows.

What a name means differs: in the innermost SELECT it is a key of GROUP BY, around it a result of the SELECT inside. In
either, a name that is neither may be the label of an item of the list.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

from idios.errors import QuestionRefused
from idios.query.expression_reader import (
    read_condition_of_values,
    read_expression,
    read_whole_number,
)
from idios.query.expressions import Expression
from idios.query.lexer import QuestionText
from idios.query.literals import Typed
from idios.query.names import fold_case, to_upper
from idios.query.parser import CallNode, ListItem, Name, Number, OrderNode, SelectNode, Star, SyntaxNode, walk
from idios.query.postprocessing import Item, Order

MAX_ITEMS = 200
MAX_KEYS = 64


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
        self._labelled: dict[str, dict[str, Typed]] = {}
        self._read: dict[SyntaxNode, Typed] = {}

    @abstractmethod
    def find(self, node: SyntaxNode) -> Typed | None:
        """What a name or a call means here, labels apart; None if it is none that is known here."""

    @abstractmethod
    def refuse_name(self, node: SyntaxNode) -> QuestionRefused:
        """Why a name that is no label either is refused."""

    def leaf(self, node: SyntaxNode) -> Typed | None:
        """What a name or a call means here."""
        if type(node) is Star:
            raise self.text.refusal("a star stands in COUNT(*), or alone in SELECT * FROM (SELECT …)", node.start)
        known = self.find(node)
        if known is None and type(node) is Name:
            known = self._find_labelled(node)
            if known is None:
                raise self.refuse_name(node)
        return known

    def label(self, label: str, read: Typed) -> None:
        """Let a name stand for what was read, unless it stands for something already."""
        self._labelled.setdefault(fold_case(label), {}).setdefault(label, read)

    def _find_labelled(self, name: Name) -> Typed | None:
        alike = {} if name.prefix is not None else self._labelled.get(fold_case(name.text), {})
        if name.quoted:
            return alike.get(name.text)
        if len(alike) > 1:
            raise self._refuse_alike(name)
        return next(iter(alike.values()), None)

    def _refuse_alike(self, name: Name) -> QuestionRefused:
        return self.text.refusal(f"{name.text} could be several results: write it in double quotes", name.start)

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

    def read_item(self, listed: ListItem) -> Typed:
        """One item of the list, read once however often its number or its label stands for it."""
        if listed.node not in self._read:
            self._read[listed.node] = self.read_value(listed.node)
        return self._read[listed.node]

    def read_value(self, node: SyntaxNode) -> Typed:
        """Anything that is computed here."""
        return read_expression(self.text, node, self.leaf)

    def add_item(self, label: str, read: Typed, written: str, start: int | None) -> None:
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

    def read_order(self) -> tuple[Order, ...]:
        """ORDER BY."""
        return tuple(self._read_order(part) for part in self.tree.order)

    def _read_order(self, part: OrderNode) -> Order:
        item = self.resolve_item(part.value, "ORDER BY")
        read = self.read_value(part.value) if item is None else self.read_item(item)
        return Order(read.expression, part.descending, part.nulls_first)

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

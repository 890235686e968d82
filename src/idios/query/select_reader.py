"""What every SELECT has in common: its list, HAVING, ORDER BY, LIMIT and OFFSET, as post-processing of rows.

What a name means differs: in the innermost SELECT it is a key of GROUP BY, around it a result of the SELECT inside. In
either, a name that is neither may be the label of an item of the list.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass

from sqlglot import exp

from idios.errors import QuestionRefused
from idios.query.expression_reader import (
    read_condition_of_values,
    read_expression,
    read_whole_number,
)
from idios.query.expressions import Expression
from idios.query.lexer import KEYWORDS, SHAPE, QuestionText
from idios.query.literals import Typed
from idios.query.parser import allow_only, column_identifier, fold_case, offset_of, to_upper
from idios.query.postprocessing import Item, Order

MAX_ITEMS = 200
CLAUSES = ("expressions", "from_", "where", "group", "having", "order", "limit", "offset")

_ALIAS = re.compile(r'\s+(?:AS\s+)?("[^"]*"|\w+)$', re.IGNORECASE)


@dataclass(frozen=True)
class Listed:
    """An item of a SELECT list as it is written; ``label`` is its name, empty if it is given none."""

    node: exp.Expression
    label: str
    start: int
    spelling: str


class SelectReader(ABC):
    """Reads one SELECT; ``number`` counts them from the outermost."""

    def __init__(self, text: QuestionText, tree: exp.Expression, number: int) -> None:
        allow_only(text, tree, *CLAUSES)
        self.text, self.tree = text, tree
        self.listed = self._list_items(number)
        self.items: list[Item] = []
        self._labelled: dict[str, dict[str, Typed]] = {}

    @abstractmethod
    def find(self, node: exp.Expression) -> Typed | None:
        """What a name or a call means here, labels apart; None if it is none that is known here."""

    @abstractmethod
    def refuse_name(self, node: exp.Expression) -> QuestionRefused:
        """Why a name that is no label either is refused."""

    def leaf(self, node: exp.Expression) -> Typed | None:
        """What a name or a call means here."""
        if type(node) is exp.Star:
            raise self.text.refusal("a star stands in COUNT(*), or alone in SELECT * FROM (SELECT …)", offset_of(node))
        known = self.find(node)
        if known is None and (name := column_identifier(self.text, node)) is not None:
            known = self._find_labelled(name)
            if known is None:
                raise self.refuse_name(node)
        return known

    def label(self, label: str, read: Typed) -> None:
        """Let a name stand for what was read, unless it stands for something already."""
        self._labelled.setdefault(fold_case(label), {}).setdefault(label, read)

    def _find_labelled(self, name: exp.Expression) -> Typed | None:
        written = str(name.this)
        alike = self._labelled.get(fold_case(written), {})
        if name.args.get("quoted"):
            return alike.get(written)
        if len(alike) > 1:
            raise self._refuse_alike(name)
        return next(iter(alike.values()), None)

    def _refuse_alike(self, name: exp.Expression) -> QuestionRefused:
        return self.text.refusal(f"{name.this} could be several results: write it in double quotes", offset_of(name))

    def _list_items(self, number: int) -> list[Listed]:
        nodes, spelt = self.tree.expressions, self.text.select_items(number)
        if len(nodes) > MAX_ITEMS:
            raise self.text.refusal(f"SELECT lists at most {MAX_ITEMS} items, got {len(nodes)}")
        if len(spelt) != len(nodes):
            raise self.text.refusal(f"the SELECT list cannot be read. {SHAPE}", 0)
        listed = []
        for node, (start, spelling) in zip(nodes, spelt, strict=True):
            if type(node) is exp.Alias:
                allow_only(self.text, node, "this", "alias")
                label = self._read_label(node.args["alias"])
                listed.append(Listed(node.this, label, start, _ALIAS.sub("", spelling)))
            else:
                listed.append(Listed(node, "", start, spelling))
        return listed

    def _read_label(self, node: exp.Expression) -> str:
        if type(node) is not exp.Identifier:
            raise self.text.refusal("AS is followed by a name", offset_of(node))
        allow_only(self.text, node, "this", "quoted")
        label = str(node.this)
        if not label.strip() or (not node.args.get("quoted") and to_upper(label) in KEYWORDS):
            raise self.text.refusal(f"{label} is no name: a result is followed by AS and its name", offset_of(node))
        return label

    def resolve_item(self, node: exp.Expression, clause: str) -> Listed | None:
        """The item of the list that a number or a label in GROUP BY or ORDER BY stands for; None if it is none."""
        if type(node) is exp.Literal and not node.args.get("is_string"):
            number = read_whole_number(self.text, node, f"the number of a result in {clause}")
            if not 1 <= number <= len(self.listed):
                raise self.text.refusal(
                    f"{clause} {number} is no item of SELECT, which lists {len(self.listed)}", offset_of(node)
                )
            return self.listed[number - 1]
        name = column_identifier(self.text, node)
        if name is None:
            return None
        alike = [item for item in self.listed if item.label and fold_case(item.label) == fold_case(str(name.this))]
        if name.args.get("quoted"):
            alike = [item for item in alike if item.label == str(name.this)]
        if len({item.label for item in alike}) > 1:
            raise self._refuse_alike(name)
        return alike[0] if alike else None

    def read_item(self, listed: Listed) -> Typed:
        """One item of the list."""
        return self.read_value(listed.node)

    def read_value(self, node: exp.Expression) -> Typed:
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
        having = self.tree.args.get("having")
        if having is None:
            return None
        allow_only(self.text, having, "this")
        return read_condition_of_values(self.text, having.this, self.leaf)

    def read_order(self) -> tuple[Order, ...]:
        """ORDER BY."""
        order = self.tree.args.get("order")
        if order is None:
            return ()
        allow_only(self.text, order, "expressions")
        return tuple(self._read_order(part) for part in order.expressions)

    def _read_order(self, part: exp.Expression) -> Order:
        if type(part) is not exp.Ordered:
            raise self.text.refusal("ORDER BY lists results, each with ASC or DESC", offset_of(part))
        allow_only(self.text, part, "this", "desc", "nulls_first")
        item = self.resolve_item(part.this, "ORDER BY")
        read = self.read_value(part.this) if item is None else self.read_item(item)
        return Order(read.expression, bool(part.args.get("desc")), bool(part.args.get("nulls_first")))

    def read_limits(self) -> tuple[int | None, int]:
        """LIMIT and OFFSET."""
        limit, offset = (self._read_limit(clause) for clause in ("limit", "offset"))
        return limit, offset or 0

    def _read_limit(self, clause: str) -> int | None:
        node = self.tree.args.get(clause)
        if node is None:
            return None
        allow_only(self.text, node, "expression")
        return read_whole_number(self.text, node.args["expression"], clause.upper())


def has_call(nodes: Iterable[exp.Expression], names: Iterable[str]) -> bool:
    """Whether one of some functions is called anywhere."""
    wanted = set(names)
    return any(
        type(part) is exp.Anonymous and to_upper(str(part.this)) in wanted for node in nodes for part in node.walk()
    )

"""From syntax to an expression: types are checked here, so that computing it never fails.

What a name or a call means depends on where an expression stands: the caller's ``Leaf`` knows the columns, the keys and
the statistics there. Depth and the length of numbers are limited, since work before paying is bounded: chains of
operators are read in a loop, and everything else nests at most so deep.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeAlias

from idios.core.domain import Categories
from idios.declare.dates import DAY
from idios.expressions.language import (
    DATE_PARTS,
    EXTRACTED,
    TIME_PARTS,
    Call,
    Case,
    Expression,
    Literal,
    Type,
    evaluate,
)
from idios.sql.lexer import QuestionText
from idios.sql.literals import LITERALS, TypedExpression, find_category, make_moment, read_literal
from idios.sql.names import to_upper
from idios.sql.parser import (
    Between,
    CallNode,
    CaseNode,
    Chain,
    ComparisonNode,
    Extract,
    In,
    Is,
    Junction,
    Like,
    Name,
    Negative,
    Not,
    Star,
    SyntaxNode,
    walk,
)

MAX_DEPTH = 100
MAX_BITS = 8_000
MAX_ROUND = 30

_CALLED = {
    "ABS": "ABS(number)",
    "CEIL": "CEIL(number)",
    "CEILING": "CEIL(number)",
    "COALESCE": "COALESCE(value, value, …)",
    "FLOOR": "FLOOR(number)",
    "GREATEST": "GREATEST(value, value, …)",
    "LEAST": "LEAST(value, value, …)",
    "NULLIF": "NULLIF(value, value)",
    "ROUND": "ROUND(number) or ROUND(number, digits)",
}
"""The functions of values, and how each is written."""
_GIVES_WHOLE = ("floor", "ceil", *EXTRACTED)
_KEEPS_WHOLE = ("+", "-", "*", "abs", "greatest", "least", "coalesce", "nullif")


Leaf: TypeAlias = Callable[[SyntaxNode], TypedExpression | None]
"""What a name or a call means; None if it is none of the caller's, and so a function or an operator."""


def list_value_functions() -> dict[str, str]:
    """The functions of values by name, and how each is written."""
    return dict(_CALLED)


def read_expression(text: QuestionText, node: SyntaxNode, leaf: Leaf) -> TypedExpression:
    """Read an expression whose names and aggregates ``leaf`` knows."""
    return _Reader(text, leaf).read(node)


def read_condition_of_values(text: QuestionText, node: SyntaxNode, leaf: Leaf) -> Expression:
    """Read an expression that is true or not."""
    reader = _Reader(text, leaf)
    return reader.require(reader.read(node), Type.BOOLEAN, node, "a condition is expected here").expression


def read_constant(text: QuestionText, node: SyntaxNode) -> TypedExpression | None:
    """The constant that an expression without names comes to; None if it has a name or an aggregate in it."""
    if isinstance(node, LITERALS):
        return read_literal(text, node)
    for part in walk(node):
        if type(part) in (Name, Star) or (type(part) is CallNode and to_upper(part.function) not in _CALLED):
            return None
    read = read_expression(text, node, _know_nothing)
    return read if read.constant else replace(read, expression=Literal(evaluate(read.expression, ())))


def read_whole_number(text: QuestionText, node: SyntaxNode, what: str) -> int:
    """A constant that is a whole number from 0 on."""
    read = read_constant(text, node)
    value = read.expression.value if read is not None and isinstance(read.expression, Literal) else None
    if not isinstance(value, Fraction) or value.denominator != 1 or not 0 <= value < 10**9:
        raise text.refusal(f"{what} is a whole number", node.start)
    return int(value)


def _know_nothing(node: SyntaxNode) -> None:
    return None


@dataclass(frozen=True)
class _Reader:
    text: QuestionText
    leaf: Leaf
    depth: int = 0

    def read(self, node: SyntaxNode) -> TypedExpression:
        if self.depth > MAX_DEPTH // 2:
            raise self.text.refusal("the expression nests too deep", node.start)
        inner = replace(self, depth=self.depth + 1)
        if not isinstance(node, Chain):
            return inner.read_one(node)
        result = inner.read_one(node.first)
        for sign, value in node.rest:
            result = self.make_arithmetic(node, sign, result, inner.read(value))
        return result

    def read_one(self, node: SyntaxNode) -> TypedExpression:
        """Read anything but arithmetic."""
        known = self.leaf(node)
        if known is not None:
            return known
        if isinstance(node, Chain):
            return self.read(node)
        if isinstance(node, Negative):
            zero = TypedExpression(Literal(Fraction(0)), Type.NUMBER, 1, 1, True)
            return self.make_arithmetic(node, "-", zero, self.read(node.value))
        if isinstance(node, LITERALS):
            return read_literal(self.text, node)
        if isinstance(node, CaseNode):
            return self.read_case(node)
        if isinstance(node, CallNode):
            return self.read_call(node)
        if isinstance(node, Extract):
            return self.read_extract(node)
        return self.read_truth(node)

    # Types.

    def require(self, read: TypedExpression, wanted: Type, node: SyntaxNode, message: str) -> TypedExpression:
        if read.type not in (wanted, None):
            raise self.text.refusal(f"{message}, and this is a {read.type}", node.start)
        return replace(read, type=wanted)

    def unify(
        self, parts: Sequence[TypedExpression], node: SyntaxNode
    ) -> tuple[tuple[TypedExpression, ...], Type | None]:
        """Give values one type: text is read as a date where a date is expected, and a date as its first moment."""
        types = {part.type for part in parts} - {None}
        moments = types & {Type.DATE, Type.TIMESTAMP}
        if moments and types <= {Type.DATE, Type.TIMESTAMP, Type.TEXT}:
            wanted = Type.TIMESTAMP if Type.TIMESTAMP in types else Type.DATE
            return tuple(self._to_moment(part, wanted, node) for part in parts), wanted
        if len(types) > 1:
            listed = " and ".join(sorted(str(kind) for kind in types))
            raise self.text.refusal(f"values of one type are expected here, got {listed}", node.start)
        return tuple(parts), next(iter(types), None)

    def _to_moment(self, part: TypedExpression, wanted: Type, node: SyntaxNode) -> TypedExpression:
        if part.type is Type.TEXT:
            if not isinstance(part.expression, Literal):
                raise self.text.refusal("text is no date: compare dates with dates", node.start)
            return make_moment(self.text, str(part.expression.value), wanted, node)
        if part.type is Type.DATE and wanted is Type.TIMESTAMP:
            return self.make("*", [part, TypedExpression(Literal(Fraction(DAY)), Type.NUMBER, 64)], wanted, node)
        return part

    # What is made of parts.

    def make(self, function: str, parts: Sequence[TypedExpression], kind: Type, node: SyntaxNode) -> TypedExpression:
        """A call, folded where it is constant."""
        longest = max((part.bits for part in parts), default=0)
        bits = sum(part.bits for part in parts) + 1 if function in ("+", "-", "*", "/") else longest + 4 * MAX_ROUND
        depth = 1 + max((part.depth for part in parts), default=0)
        if bits > MAX_BITS or depth > MAX_DEPTH:
            raise self.text.refusal("the expression is too long to be computed exactly", node.start)
        call: Expression = Call(function, tuple(part.expression for part in parts))
        whole = function in _GIVES_WHOLE or (function in _KEEPS_WHOLE and all(part.whole for part in parts))
        if all(part.constant for part in parts):
            value = evaluate(call, ())
            whole = isinstance(value, Fraction) and value.denominator == 1
            return TypedExpression(Literal(value), kind if value is not None else None, bits, 1, whole)
        return TypedExpression(call, kind, 1 if kind is Type.BOOLEAN else bits, depth, whole)

    def make_arithmetic(
        self, node: SyntaxNode, function: str, left: TypedExpression, right: TypedExpression
    ) -> TypedExpression:
        moved = left if left.type in (Type.DATE, Type.TIMESTAMP) else right
        if moved.type is Type.DATE and function in ("+", "-"):
            return self._move_date(node, function, left, right)
        if moved.type is Type.TIMESTAMP:
            raise self.text.refusal("timestamps are compared, nothing is computed from them", node.start)
        sides = [self.require(side, Type.NUMBER, node, f"{function} is of numbers") for side in (left, right)]
        return self.make(function, sides, Type.NUMBER, node)

    def _move_date(
        self, node: SyntaxNode, function: str, left: TypedExpression, right: TypedExpression
    ) -> TypedExpression:
        if left.type is right.type and function == "-":
            return self.make("-", [left, right], Type.NUMBER, node)
        date, days = (left, right) if left.type is Type.DATE else (right, left)
        if days.type not in (Type.NUMBER, None) or not days.whole or (date is right and function == "-"):
            raise self.text.refusal("a date moves by a whole number of days: day + 30", node.start)
        return self.make(function, [left, right], Type.DATE, node)

    def read_case(self, node: CaseNode) -> TypedExpression:
        default = node.default
        compared = None if node.subject is None else self.read(node.subject)
        conditions, values = [], []
        for condition, value in node.branches:
            when = self.read(condition)
            if compared is not None:
                when = self.compare("=", [compared, when], condition)
            conditions.append(self.require(when, Type.BOOLEAN, condition, "WHEN is followed by a condition"))
            values.append(self.read(value))
        values.append(TypedExpression(Literal(None), None, 0) if default is None else self.read(default))
        unified, kind = self.unify(values, node)
        depth = 1 + max(part.depth for part in (*conditions, *unified))
        if depth > MAX_DEPTH:
            raise self.text.refusal("the expression nests too deep", node.start)
        branches = zip((c.expression for c in conditions), (v.expression for v in unified[:-1]), strict=True)
        case = Case(tuple(branches), unified[-1].expression)
        whole = all(value.whole or value.type is None for value in unified)
        return TypedExpression(case, kind, max(value.bits for value in unified), depth, whole)

    def read_call(self, node: CallNode) -> TypedExpression:
        name, start = to_upper(node.function), node.start
        if name not in _CALLED:
            raise self.text.refusal(
                f"{node.function} is not offered here. Functions of values: {', '.join(_CALLED)}, CASE, EXTRACT", start
            )
        if node.distinct or node.within is not None:
            raise self.text.refusal(f"{name} is written {_CALLED[name]}", start)
        parts = [self.read(argument) for argument in node.arguments]
        function = {"CEILING": "ceil"}.get(name, name.lower())
        least, most = {"round": (1, 2), "nullif": (2, 2)}.get(function, (1, 1))
        if function in ("coalesce", "greatest", "least"):
            least, most = 1, 100
        if not least <= len(parts) <= most:
            raise self.text.refusal(f"{name} is written {_CALLED[name]}", start)
        if function in ("coalesce", "nullif", "greatest", "least"):
            unified, kind = self.unify(parts, node)
            if kind in (Type.TEXT, Type.BOOLEAN) and function in ("greatest", "least"):
                raise self.text.refusal(f"{name} is of numbers or dates, and this is a {kind}", start)
            return replace(self.make(function, unified, kind or Type.NUMBER, node), type=kind)
        numbers = [self.require(part, Type.NUMBER, node, f"{name} is of numbers") for part in parts]
        if function == "round":
            numbers.append(TypedExpression(Literal(Fraction(0)), Type.NUMBER, 1, 1, True))
            digits = numbers[1].expression
            if (
                not isinstance(digits, Literal)
                or not isinstance(digits.value, Fraction)
                or digits.value.denominator != 1
                or abs(digits.value) > MAX_ROUND
            ):
                raise self.text.refusal(
                    f"the digits of ROUND are a whole number from -{MAX_ROUND} to {MAX_ROUND}", node.start
                )
            rounded = self.make(function, numbers[:2], Type.NUMBER, node)
            return replace(rounded, whole=digits.value <= 0)
        return self.make(function, numbers, Type.NUMBER, node)

    def read_extract(self, node: Extract) -> TypedExpression:
        part = node.part.lower()
        moment = self.read(node.value)
        if part not in (*DATE_PARTS, *TIME_PARTS):
            listed = ", ".join(name.upper() for name in (*DATE_PARTS, *TIME_PARTS))
            raise self.text.refusal(f"EXTRACT takes one of {listed}", node.start)
        if moment.type not in (Type.DATE, Type.TIMESTAMP):
            raise self.text.refusal("EXTRACT is of a date or a timestamp", node.start)
        if part in TIME_PARTS and moment.type is Type.DATE:
            raise self.text.refusal(f"a date has no {part}", node.start)
        if part in DATE_PARTS and moment.type is Type.TIMESTAMP:
            day = TypedExpression(Literal(Fraction(DAY)), Type.NUMBER, 64)
            moment = self.make("/", [moment, day], Type.DATE, node)
        return self.make(f"extract {part}", [moment], Type.NUMBER, node)

    # Truth.

    def read_truth(self, node: SyntaxNode) -> TypedExpression:
        if isinstance(node, Junction):
            parts = [
                self.require(self.read(part), Type.BOOLEAN, part, "AND and OR join conditions")
                for part in node.conditions
            ]
            return self.make(node.word.lower(), parts, Type.BOOLEAN, node)
        if isinstance(node, Not):
            inner = self.require(self.read(node.value), Type.BOOLEAN, node, "NOT is followed by a condition")
            return self.make("not", [inner], Type.BOOLEAN, node)
        if isinstance(node, ComparisonNode):
            return self.compare(node.sign, [self.read(node.left), self.read(node.right)], node)
        if isinstance(node, Between):
            value, low, high = (self.read(part) for part in (node.value, node.low, node.high))
            ends = [self.compare(">=", [value, low], node), self.compare("<=", [value, high], node)]
            return self.make("and", ends, Type.BOOLEAN, node)
        if isinstance(node, In):
            value = self.read(node.value)
            equal = [self.compare("=", [value, self.read(item)], node) for item in node.items]
            return self.make("or", equal, Type.BOOLEAN, node)
        if isinstance(node, Is):
            return self.read_is(node)
        if isinstance(node, Like):
            value = self.require(self.read(node.value), Type.TEXT, node, "LIKE compares text")
            patterns = [TypedExpression(Literal(part), Type.TEXT, 0) for part in node.pattern]
            return self.make(node.function, [value, *patterns], Type.BOOLEAN, node)
        raise self.text.refusal("this is nothing that can be computed here", node.start)

    def read_is(self, node: Is) -> TypedExpression:
        value = self.read(node.value)
        if node.state == "NULL":
            return self.make("is null", [value], Type.BOOLEAN, node)
        truth = self.require(value, Type.BOOLEAN, node, f"IS {node.state} is asked of a condition")
        if node.state == "UNKNOWN":
            return self.make("is null", [truth], Type.BOOLEAN, node)
        wanted = TypedExpression(Literal(node.state == "TRUE"), Type.BOOLEAN, 1)
        distinct = self.make("is distinct", [truth, wanted], Type.BOOLEAN, node)
        return self.make("not", [distinct], Type.BOOLEAN, node)

    def compare(self, function: str, sides: Sequence[TypedExpression], node: SyntaxNode) -> TypedExpression:
        left, right = sides
        sides = [self.name_value(left, right, node), self.name_value(right, left, node)]
        unified, kind = self.unify(sides, node)
        if kind in (Type.TEXT, Type.BOOLEAN) and function not in ("=", "<>", "is distinct"):
            raise self.text.refusal(f"a {kind} has no order: use =, <> or IN", node.start)
        return self.make(function, unified, Type.BOOLEAN, node)

    def name_value(self, part: TypedExpression, other: TypedExpression, node: SyntaxNode) -> TypedExpression:
        """The value that a number, a code or a label names where it is compared with a column of categories."""
        column = other.column
        if column is None or not isinstance(column.domain, Categories) or part.type is None or not part.constant:
            return part
        index = find_category(self.text, column, part, node.start)
        value = column.domain.shown(index) if other.released else column.domain.values[index]
        return replace(part, expression=Literal(value), type=Type.TEXT)

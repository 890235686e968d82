"""From a call in SQL to a statistic: COUNT(*), MEDIAN(income), PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY income)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TypeGuard

from idios.core.domain import Categories, Kind
from idios.core.statistics import Statistic
from idios.declare.schema import Column
from idios.errors import InvalidInput
from idios.expressions.language import Literal
from idios.sql.expression_reader import list_value_functions, read_constant
from idios.sql.lexer import QuestionText
from idios.sql.names import quote, resolve_name, to_upper
from idios.sql.parser import CallNode, Name, Number, OrderNode, Star, SyntaxNode, Truth
from idios.sql.sql_functions import SqlFunction, find_advice, find_function, function_names
from idios.sql.suggestions import find_nearest

ALIKE = 0.8
"""How alike two names of functions are of which one may be a typo: MEDAN and MEDIAN, not LENGTH and LEAST."""


@dataclass(frozen=True)
class Called:
    """A statistic of a column, None for one of the records themselves; ``written`` is one way to write it."""

    statistic: Statistic
    column: Column | None
    written: str

    @cached_property
    def meaning(self) -> tuple[Statistic, str | None]:
        """The statistic and its column, whichever way it is spelt."""
        return self.statistic.normalise(), None if self.column is None else self.column.name


def read_statistic(text: QuestionText, node: SyntaxNode, read: Callable[[SyntaxNode, str], Column]) -> Called | None:
    """The statistic that a call asks for; None if it is no call, or one of a function of values."""
    if type(node) is not CallNode:
        return None
    name, arguments, start = to_upper(node.function), list(node.arguments), node.start
    within = None if node.within is None else _read_within(text, node.within)
    function = find_function(name)
    if function is None:
        if name in list_value_functions():
            return None
        raise text.refusal(f"{node.function} is not offered. {_instead(name)}", start)
    if within is not None:
        if not function.spelling.within_group or len(arguments) != 1:
            raise text.refusal(f"{name} is written {function.signature}", start)
        arguments.insert(0, within)
    if node.distinct:
        distinct = find_function(name, distinct=True)
        if distinct is None or within is not None:
            raise text.refusal(f"{name} is written {function.signature}", start)
        function, name = distinct, f"{name}(DISTINCT …)"
    elif len(arguments) == 1 and function.statistic.counts_records and counts_all(arguments[0]):
        return Called(function.statistic.make(), None, f"{name}(*)")
    return _of_column(text, function, name, arguments, read, start)


def counts_all(node: SyntaxNode) -> bool:
    """Whether COUNT of this is of all records: of a star, or of a number or a truth, which no record lacks."""
    return type(node) in (Star, Truth, Number)


def _of_column(
    text: QuestionText,
    function: SqlFunction,
    name: str,
    arguments: list[SyntaxNode],
    read: Callable[[SyntaxNode, str], Column],
    start: int,
) -> Called:
    signature, kinds = function.signature, function.statistic.kinds
    if len(arguments) != (2 if function.parameter else 1):
        starred = f" or {name}(*)" if function.statistic.counts_records else ""
        raise text.refusal(f"{name} is written {signature}{starred}", start)
    column = read(arguments[0], signature)
    if column.kind not in kinds:
        offered = ", ".join(sorted(kinds))
        told = f"{name} is offered for columns of type {offered}; {column.name} is {column.kind.with_article}"
        raise text.refusal(told + _offer_number(column, kinds), start)
    if not function.parameter:
        return Called(function.statistic.make(), column, function.spelling.write(column.name))
    parameter = read_number(text, arguments[1], f"{function.parameter} of {signature}")
    try:
        return Called(function.statistic.make(parameter), column, function.spelling.write(column.name, parameter))
    except InvalidInput as error:
        raise text.refusal(f"{name}: {error}", arguments[1].start) from None


def _offer_number(column: Column, kinds: Collection[Kind]) -> str:
    """The line that makes a column of codes one of numbers, where that is what they may be."""
    domain = column.domain
    if not isinstance(domain, Categories) or domain.labels or Kind.INTEGER not in kinds:
        return ""
    if len(domain.numbers) < len(domain.values):
        return ""
    kind = Kind.INTEGER if all(number.denominator == 1 for number in domain.numbers) else Kind.NUMBER
    line = f'{quote(column.name)} = {{ type = "{kind}" }}'
    return f". If its values are amounts and no codes, its controller declares {line}"


def _read_within(text: QuestionText, within: Sequence[OrderNode]) -> SyntaxNode:
    """The column of WITHIN GROUP (ORDER BY column)."""
    if len(within) != 1 or within[0].nulls_first:
        raise text.refusal("WITHIN GROUP is followed by (ORDER BY column)", within[0].value.start)
    if within[0].descending:
        raise text.refusal("a quantile counts from the least value: ORDER BY column", within[0].value.start)
    return within[0].value


def is_cap(node: SyntaxNode) -> TypeGuard[CallNode]:
    """Whether this is LEAST or GREATEST."""
    return type(node) is CallNode and to_upper(node.function) in ("LEAST", "GREATEST")


def read_column(text: QuestionText, node: SyntaxNode, columns: Mapping[str, Column], signature: str) -> Column:
    """A declared column that is written by its name."""
    if type(node) is not Name:
        what, how = ("caps", "its bounds") if is_cap(node) else ("is computed from", "a derived column")
        raise text.refusal(
            f"a column is expected here, nothing computed from one: {signature}. What {what} the columns of a record "
            f"is declared by the controller, as {how}",
            node.start,
        )
    return columns[resolve_name(text, node, columns, "column")]


def read_number(text: QuestionText, node: SyntaxNode, what: str) -> Fraction:
    """A constant number."""
    read = read_constant(text, node)
    value = read.expression.value if read is not None and isinstance(read.expression, Literal) else None
    if not isinstance(value, Fraction) or read is None or read.type != "number":
        raise text.refusal(f"{what} is a number", node.start)
    return value


def _instead(name: str) -> str:
    if advice := find_advice(name):
        return advice
    if name == "BIN":
        return "BIN(column, width) is a key of GROUP BY"
    if meant := find_nearest(name, [*function_names(), *list_value_functions()], ALIKE):
        return f"Did you mean {meant}?"
    return (
        f"Statistics: {', '.join(function_names())}; functions of released values: {', '.join(list_value_functions())}"
    )

"""WHERE: from a condition to the set of grid points for which it is true.

SQL's logic has three values. A record is selected where the condition is *true*, so a condition is read with the
question "where is it true?", and NOT turns it into "where is it false?" on its way down:

    true(A AND B)  = true(A) ∩ true(B)      false(A AND B) = false(A) ∪ false(B)
    true(A OR B)   = true(A) ∪ true(B)      false(A OR B)  = false(A) ∩ false(B)
    true(NOT A)    = false(A)               false(NOT A)   = true(A)
    a comparison   true on some points, false on all others, neither on NULL
    x IS …         true on some points, false on all others, and true or false on NULL
    a constant     true or false for every record, or neither

A column is its grid: the grid point g stands for the value g·step, so a constant c lies at c/step, exactly and usually
between two points. LIKE is resolved to the declared categories that match. What is computed of constants alone is
computed here (``expression_reader``); a column stands by itself, as nothing of a record is computed that its controller
has not declared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from idios.core.domain import LIMIT, Categories, Kind
from idios.core.exact import text as number_text
from idios.declare.dates import DAY, UNITS, parse_moment
from idios.declare.schema import Column
from idios.expressions.language import FUNCTIONS, Type
from idios.expressions.predicates import (
    ALWAYS,
    EVERYTHING,
    NEVER,
    NOTHING,
    Among,
    And,
    Intervals,
    Or,
    Predicate,
    complement,
    intersection,
    union,
)
from idios.expressions.preimages import COMPARED
from idios.expressions.work import Work
from idios.sql.expression_reader import read_constant
from idios.sql.lexer import QuestionText
from idios.sql.literals import MOMENT_FORMAT, TypedExpression, find_category, quote_string, rewrite_date
from idios.sql.names import fold_case, quote, resolve_name, to_upper
from idios.sql.parser import (
    TESTS,
    Between,
    CallNode,
    ComparisonNode,
    In,
    Is,
    Junction,
    Like,
    Name,
    Not,
    Null,
    SyntaxNode,
    Truth,
    walk,
)
from idios.sql.sql_functions import find_function

ALLOWED = (
    "A condition compares a column with a constant (= <> < <= > >=, BETWEEN, IN, LIKE, IS NULL, IS TRUE, IS DISTINCT "
    "FROM); conditions are joined by AND, OR and NOT"
)
DERIVED = "expressions of a row are declared by the controller as derived columns"
MATCHED = 4
"""How many characters of a value and a pattern are compared for one unit of work."""


_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True)
class _Test:
    """A condition on one column: true on some points, false on all others; on NULL it is ``on_null``."""

    column: Column
    points: Intervals
    on_null: bool | None = None

    def select(self, truth: bool) -> Predicate:
        """Where it is true, or where it is false."""
        grid = self.column.grid
        points = self.points if truth else complement(self.points)
        return Among(self.column.name, intersection(points, ((grid.lower, grid.upper),)), nulls=self.on_null is truth)


def read_condition(
    text: QuestionText,
    node: SyntaxNode,
    columns: Mapping[str, Column],
    negated: bool = False,
    work: Work | None = None,
) -> Predicate:
    """Where a condition is true; with ``negated``, where it is false."""
    work = work or Work()
    if isinstance(node, Junction):
        parts = tuple(read_condition(text, part, columns, negated, work) for part in node.conditions)
        return And(parts) if (node.word == "AND") != negated else Or(parts)
    if isinstance(node, Not):
        return read_condition(text, node.value, columns, not negated, work)
    if isinstance(node, Name):
        return _read_truth_of(text, node, columns).select(not negated)
    if isinstance(node, (*TESTS, Truth, Null)):
        constant = None if _names_a_column(node) else read_constant(text, node)
        if constant is not None:
            return ALWAYS if constant.value is (not negated) else NEVER
        if isinstance(node, TESTS):
            return _READERS[type(node)](text, node, columns, work).select(not negated)
    problem = _explain(node, columns, "this is no condition that is offered")
    raise text.refusal(f"{problem}. {ALLOWED}", node.start)


def read_where(text: QuestionText, where: SyntaxNode | None, columns: Mapping[str, Column]) -> Predicate:
    """Where WHERE of a SELECT is true; everywhere, if it has none."""
    return ALWAYS if where is None else read_condition(text, where, columns)


def _names_a_column(node: SyntaxNode) -> bool:
    """Whether one of its sides is a column, so that it need not be looked for."""
    sides = (node.left, node.right) if isinstance(node, ComparisonNode) else (getattr(node, "value", None),)
    return any(isinstance(side, Name) for side in sides)


def _explain(node: SyntaxNode, columns: Mapping[str, Column], otherwise: str) -> str:
    """What is wrong with what is not what was expected."""
    parts = list(walk(node))
    if any(type(part) is CallNode and find_function(to_upper(part.function)) for part in parts):
        return "WHERE selects records: a condition on statistics is written in HAVING, a released number as a literal"
    declared = {fold_case(name) for name in columns}
    if type(node) is Name and node.meaning is None and fold_case(node.text) not in declared:
        return f"{node.text} is no column, and a string is written in single quotes"
    if any(type(part) is Name for part in parts):
        return f"a column is compared with constants, nothing is computed from one: {DERIVED}"
    return otherwise


def _read_truth_of(text: QuestionText, node: SyntaxNode, columns: Mapping[str, Column]) -> _Test:
    """A column that is a condition by itself: it holds 0 and 1, or the categories true and false."""
    column = _column(text, node, columns)
    if not column.holds_truth:
        raise text.refusal(f"{column.name} is no condition by itself{_explain_truth(column)}", node.start)
    if isinstance(column.domain, Categories):
        return _Test(column, union((i, i) for i, value in enumerate(column.domain.values) if value == "true"))
    return _Test(column, ((1, 1),))


def _explain_truth(column: Column) -> str:
    """Why a column is no condition, and what is written instead."""
    if isinstance(column.domain, Categories):
        first = quote_string(column.domain.values[0])
        return f": compare it with one of its values, such as {quote(column.name)} = {first}"
    truth = f'; truth is declared by its controller: {quote(column.name)} = {{ type = "boolean" }}'
    return (
        f", as it may hold more than 0 and 1: compare it with a constant{truth if column.kind is Kind.INTEGER else ''}"
    )


def _read_is(text: QuestionText, node: Is, columns: Mapping[str, Column], work: Work) -> _Test:
    if node.state == "NULL":
        return _Test(_column(text, node.value, columns), NOTHING, on_null=True)
    truth = _read_truth_of(text, node.value, columns)
    if node.state == "UNKNOWN":
        return _Test(truth.column, NOTHING, on_null=True)
    return _Test(truth.column, truth.points if node.state == "TRUE" else complement(truth.points), on_null=False)


def _read_comparison(text: QuestionText, node: ComparisonNode, columns: Mapping[str, Column], work: Work) -> _Test:
    sign, left, right = node.sign, node.left, node.right
    if type(left) is not Name and (type(right) is Name or read_constant(text, left) is not None):
        sign, left, right = _MIRRORED.get(sign, sign), right, left
    column = _column(text, left, columns)
    if type(right) is Null and sign == "is distinct":
        return _Test(column, EVERYTHING, on_null=False)
    if column.kind is Kind.CATEGORY and sign in ("<", "<=", ">", ">="):
        raise text.refusal(f"{column.name} is a category, which has no order: use =, <> or IN", node.start)
    at = locate(text, column, _constant(text, right, columns), right.start)
    return _Test(column, COMPARED["<>" if sign == "is distinct" else sign](at), True if sign == "is distinct" else None)


def _read_between(text: QuestionText, node: Between, columns: Mapping[str, Column], work: Work) -> _Test:
    column = _column(text, node.value, columns)
    if column.kind is Kind.CATEGORY:
        raise text.refusal(f"{column.name} is a category, which has no order: use =, <> or IN", node.start)
    low, high = (locate(text, column, _constant(text, end, columns), end.start) for end in (node.low, node.high))
    return _Test(column, intersection(COMPARED[">="](low), COMPARED["<="](high)))


def _read_in(text: QuestionText, node: In, columns: Mapping[str, Column], work: Work) -> _Test:
    column = _column(text, node.value, columns)
    places = (locate(text, column, _constant(text, item, columns), item.start) for item in node.items)
    return _Test(column, union(run for at in places for run in COMPARED["="](at)))


def _read_like(text: QuestionText, node: Like, columns: Mapping[str, Column], work: Work) -> _Test:
    """The declared categories that match; each comparison is counted, as patterns and lists of values may be long."""
    column = _column(text, node.value, columns)
    if not isinstance(column.domain, Categories):
        raise text.refusal(f"LIKE compares text, and {column.name} is of type {column.kind}", node.start)
    named = [*enumerate(column.domain.values), *enumerate(column.domain.labels)]
    work.spend(sum(1 + (len(name) + len(node.pattern[0])) // MATCHED for _, name in named))
    matching = {i for i, name in named if FUNCTIONS[node.function].compute(name, *node.pattern)}
    return _Test(column, union((i, i) for i in sorted(matching)))


_READERS: Mapping[type[SyntaxNode], Callable[..., _Test]] = {
    ComparisonNode: _read_comparison,
    Is: _read_is,
    Between: _read_between,
    In: _read_in,
    Like: _read_like,
}


def _column(text: QuestionText, node: SyntaxNode, columns: Mapping[str, Column]) -> Column:
    if type(node) is not Name:
        problem = _explain(node, columns, "a column is expected here")
        raise text.refusal(f"{problem}. {ALLOWED}", node.start)
    return columns[resolve_name(text, node, columns, "column")]


def _constant(text: QuestionText, node: SyntaxNode, columns: Mapping[str, Column]) -> TypedExpression:
    constant = read_constant(text, node)
    if constant is None:
        problem = _explain(node, columns, "what is computed here is not offered")
        raise text.refusal(f"a constant is expected here: {problem}. {ALLOWED}", node.start)
    if constant.value is None:
        raise text.refusal("a comparison with NULL holds for no record: write IS NULL or IS NOT NULL", node.start)
    return constant


def locate(text: QuestionText, column: Column, constant: TypedExpression, at: int | None) -> Fraction:
    """c/step, the place of a constant on a column's grid.

    A place beyond the ends of the grid is refused: no value is told apart there.

    >>> from idios.core.domain import Domain
    >>> from idios.expressions.language import Literal
    >>> from idios.sql.lexer import tokenize
    >>> cents = Column("price", Kind.DECIMAL, Domain(Fraction(1, 100)))
    >>> locate(tokenize("SELECT"), cents, TypedExpression(Literal(Fraction("9.995")), Type.NUMBER), None)
    Fraction(1999, 2)
    """
    if isinstance(column.domain, Categories):
        return Fraction(find_category(text, column, constant, at))
    step, value = column.domain.step, constant.value
    if column.kind in UNITS:
        number = _microseconds(text, column, constant, at) / UNITS[column.kind]
    elif isinstance(value, bool) and column.kind is Kind.INTEGER:
        number = Fraction(int(value))
    elif constant.type is Type.NUMBER and isinstance(value, Fraction):
        number = value
    else:
        told = (
            "holds truth: compare it with TRUE or FALSE"
            if column.holds_truth
            else "is a number: compare it with a number"
        )
        raise text.refusal(f"{column.name} {told}, written without quotes", at)
    if abs(number) > LIMIT * step:
        raise text.refusal(
            f"{column.name} is read in steps of {number_text(step)}, up to 2^62 of them either way: compare it with a "
            f"number within ±{float(LIMIT * step):.3g}",
            at,
        )
    return number / step


def _microseconds(text: QuestionText, column: Column, constant: TypedExpression, at: int | None) -> Fraction:
    value = constant.value
    if isinstance(value, str):
        microseconds = parse_moment(value, dates_only=column.kind is Kind.DATE)
        if microseconds is not None:
            return Fraction(microseconds)
    if isinstance(value, Fraction) and constant.type in (Type.DATE, Type.TIMESTAMP):
        return value * (DAY if constant.type is Type.DATE else 1)
    form = (rewrite_date(value) if isinstance(value, str) else None) or f"{MOMENT_FORMAT}, without a time zone"
    raise text.refusal(f"{column.name} is a {column.kind}: compare it with {form}", at)

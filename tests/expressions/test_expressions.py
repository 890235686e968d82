"""Expressions are graphs: whatever walks one visits a node once, however often it is used."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from idios.core.domain import Domain, Kind
from idios.declare.schema import Column
from idios.errors import InvalidInput
from idios.expressions.grid import make_node, write_expression
from idios.expressions.language import (
    FUNCTIONS,
    Call,
    Case,
    Expression,
    Literal,
    Reference,
    evaluate,
    list_references,
    match_pattern,
    substitute,
    walk,
)
from idios.expressions.predicates import Among, And, Or, column_names
from idios.expressions.ranges import MAX_NARROWED, Range, find_range, narrow
from tests.expressions.test_work import Calls

DEEP = 90
ONE = Literal(Fraction(1))


def double(part: Expression) -> Expression:
    return Call("greatest", (part, part))


def choose(part: Expression) -> Expression:
    return Case(((Call(">", (part, ONE)), part),), part)


def first(part: Expression) -> Expression:
    return Call("coalesce", (part, part))


def add(part: Expression) -> Expression:
    return Call("-", (Call("+", (part, ONE)), Call("nullif", (part, part))))


def grow(step, depth: int = DEEP) -> Expression:  # type: ignore[no-untyped-def]
    graph: Expression = Reference("a")
    for _ in range(depth):
        graph = step(graph)
    return graph


@pytest.mark.parametrize("step", [double, choose, first, add])
def test_a_graph_is_walked_as_one(step) -> None:  # type: ignore[no-untyped-def]
    graph, alike = grow(step), grow(step)
    with Calls(60_000):
        assert graph == alike
        assert hash(graph) == hash(alike)
        assert graph != grow(step, DEEP - 1)
        assert graph.written_out > 2**DEEP
        assert len(list(walk(graph))) <= 5 * DEEP
        assert list_references(graph) == ("a",)
        assert substitute(graph, {"a": Reference("a")}) == graph
        assert evaluate(graph, {"a": Fraction(3)}) in (3, None)
        assert not find_range(graph, {"a": Range(Fraction(0), Fraction(9))}).empty
        assert len(write_expression(graph)) <= 121
        with pytest.raises(InvalidInput, match="too long"):
            make_node(graph, {"a": Column("a", Kind.INTEGER, Domain(lower=0, upper=9))})


def test_conditions_narrow_once_each() -> None:
    condition: Expression = Call(">", (Reference("a"), ONE))
    for _ in range(DEEP):
        condition = Call("and", (condition, condition))
    with Calls(5_000):
        narrowed = narrow(condition, {"a": Range(Fraction(0), Fraction(9))}, holds=True)
    assert narrowed is not None
    assert narrowed["a"] == Range(Fraction(1), Fraction(9))


def test_a_cases_range_is_narrowed_unless_it_is_too_large() -> None:
    """|a| by CASE: exact where branches narrow; a wider range is no error."""
    a, zero = Reference("a"), Literal(Fraction(0))
    size: Expression = Case(((Call("<", (a, zero)), Call("-", (zero, a))),), a)
    ranges = {"a": Range(Fraction(-4), Fraction(3))}
    assert find_range(size, ranges) == Range(Fraction(0), Fraction(4))
    listed = tuple((Call("=", (a, zero)), zero) for _ in range(MAX_NARROWED))
    assert find_range(Case((*size.branches, *listed), a), ranges) == Range(Fraction(-4), Fraction(4))  # type: ignore[union-attr]


def test_predicates_are_graphs_too() -> None:
    predicate: Among | And | Or = Among("a", ((1, 2),))
    for i in range(DEEP):
        predicate = (And, Or)[i % 2]((predicate, predicate))
    with Calls(5_000):
        assert column_names(predicate) == {"a"}
        assert len({predicate}) == 1


def test_nodes_differ_wherever_what_they_hold_does() -> None:
    a, b = Reference("a"), Reference("b")
    different = [
        *(Literal(value) for value in (None, True, False, Fraction(0), Fraction(1), "", "1", "True", "None", "1/1")),
        *(Literal(value) for value in (Fraction(16), Fraction(10), Fraction(1, 10), "a,b", "(", "\ud800")),
        *(Reference(name) for name in (0, 1, "0", "a", "b", "a'", 'a"', "a, b")),
        *(Call(function, parts) for function in ("+", "-") for parts in ((a, b), (b, a), (a, a), (a,), ())),
        *(Case(branches, b) for branches in (((a, b),), ((b, a),), ((a, b), (a, b)))),
        Case(((a, b),)),
        *(make(parts) for make in (And, Or) for parts in ((), (Among("a", ()),), (And(),), (Or(),), (And(), And()))),
        *(Among(*held) for held in (("a", ((1, 2),)), ("a", ((1, 2),), True), ("a", ((None, 2),)), ("b", ((1, 2),)))),
    ]
    assert len(set(different)) == len(different)
    assert len({node.digest for node in different}) == len(different)


def test_equal_parts_are_equal_whether_they_are_shared_or_not() -> None:
    rng = random.Random(3)

    def make(shared: list[Expression], depth: int) -> Expression:
        if depth == 0:
            return Reference(rng.choice("ab")) if rng.random() < 0.5 else Literal(Fraction(rng.randrange(3)))
        if shared and rng.random() < 0.4:
            return rng.choice(shared)
        made = Call(rng.choice(["+", "greatest"]), (make(shared, depth - 1), make(shared, depth - 1)))
        shared.append(made)
        return made

    def copy(node: Expression) -> Expression:
        """The same written out."""
        return Call(node.function, tuple(map(copy, node.arguments))) if isinstance(node, Call) else node

    for _ in range(200):
        graph = make([], 4)
        tree = copy(graph)
        assert (graph, hash(graph)) == (tree, hash(tree))
        row = {"a": Fraction(rng.randrange(9)), "b": None if rng.random() < 0.3 else Fraction(2)}
        assert evaluate(graph, row) == evaluate(tree, row)
        ranges = {"a": Range(Fraction(0), Fraction(9)), "b": Range(Fraction(2), Fraction(2), nullable=True)}
        assert find_range(graph, ranges) == find_range(tree, ranges)
        assert list_references(graph) == list_references(graph)
        assert set(list_references(graph)) == set(list_references(tree))
        assert graph.written_out == len(list(walk_out(tree)))


def walk_out(node: Expression):  # type: ignore[no-untyped-def]
    """Every node as often as it is used."""
    yield node
    for part in node.parts:
        yield from walk_out(part)


def test_long_texts_match_as_short_ones_do() -> None:
    rng = random.Random(4)
    for _ in range(300):
        text = "".join(rng.choices("abcé\U0001f600", k=rng.randrange(100, 160)))
        pattern = "".join(rng.choice([sign, sign, "_", "%"]) for sign in text[: rng.randrange(120)]) + "%"
        assert match_pattern(text, pattern) == matches(text, pattern), (text, pattern)
    assert FUNCTIONS["ilike"].compute("ÄB" * 99 + "\ud800", "Äb%\ud800")
    assert not FUNCTIONS["ilike"].compute("ÄB", "äb")


def matches(text: str, pattern: str) -> bool:
    """LIKE by its definition."""
    reached = {0}
    for sign in pattern:
        if sign == "%":
            reached = set(range(min(reached), len(text) + 1)) if reached else set()
        else:
            reached = {at + 1 for at in reached if at < len(text) and sign in ("_", text[at])}
    return len(text) in reached

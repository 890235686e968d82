"""A range holds every value of its expression: generated expressions on small ranges, every combination tried out."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import pytest

from idios.expressions import ranges
from idios.expressions.language import FUNCTIONS, Call, Case, Expression, Literal, Reference, Value, evaluate
from idios.expressions.ranges import LENIENT, STRICT, Range, find_range, hull, narrow


def number(*points: object, nullable: bool = False) -> tuple[Range, list[Value]]:
    """A range and points of it, both ends among them."""
    exact = [Fraction(str(point)) for point in points]
    return Range(exact[0], exact[-1], nullable), [*exact, *[None] * nullable]


def text(*values: str | bool, nullable: bool = False) -> tuple[Range, list[Value]]:
    return Range(nullable=nullable, values=frozenset(values)), [*values, *[None] * nullable]


NUMBERS = {
    "a": number(-2, 0, "1/2", 3),
    "b": number(1, "3/2", 2),
    "c": number(-3, "-5/2", -1, nullable=True),
    "d": number(0, 1, 4),
    "e": number(-1, 0, nullable=True),
    "unlimited": (Range(nullable=True), [Fraction(-(10**9)), Fraction(0), Fraction(1, 10**9), Fraction(10**9), None]),
    "from below": (Range(None, Fraction(2)), [Fraction(-(10**400)), Fraction(-1), Fraction(0), Fraction(2)]),
    "from above": (Range(Fraction(-1)), [Fraction(-1), Fraction(0), Fraction(1, 10**6), Fraction(10**400)]),
    "never": (Range(nullable=True, values=frozenset()), [None]),
}
TEXTS = {
    "s": text("north", "south", nullable=True),
    "t": text("north"),
    "u": text("no", "nord", "south"),
    "any text": (Range(nullable=True), ["north", "", None]),
}
TRUTHS = {
    "p": text(True, False, nullable=True),
    "o": text(True, False),
    "q": text(True),
    "r": text(False, nullable=True),
}
DAYS = {
    "day": number(19720, 19721, 19722, 19723, 19724, 19783, 19784),  # around the end of 2023 and a leap day
    "week": number(19722, 19725, 19728),
    "once": number("19783.25", "19783.75", nullable=True),
}
MOMENTS = {
    "moment": number(1_704_067_199_000_000, 1_704_067_199_999_999, 1_704_067_200_000_000),
    "minute": number(1_704_067_200_000_000, "1704067200000000.5", 1_704_067_230_000_000, nullable=True),
}
ALL = NUMBERS | TEXTS | TRUTHS | DAYS | MOMENTS
CONSTANTS = [Fraction(c) for c in ("-2", "-1", "0", "1/3", "1", "2", "7/2")]
PATTERNS = ["n%", "_o%", "north", "%"]


class Generator:
    """Random expressions that are well typed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def number(self, depth: int) -> Expression:
        if depth == 0 or self.random.random() < 0.15:
            return Literal(self.pick([*CONSTANTS, None])) if self.random.random() < 0.3 else self.refer(NUMBERS)
        function = self.pick(["+", "-", "*", "/", "abs", "round", "floor", "ceil", "many", "nullif", "extract", "case"])
        if function in ("abs", "floor", "ceil"):
            return Call(function, (self.number(depth - 1),))
        if function == "round":
            return Call(function, (self.number(depth - 1), Literal(Fraction(self.random.randint(-1, 2)))))
        if function == "many":
            count = self.random.randint(1, 3)
            function = self.pick(["greatest", "least", "coalesce"])
            return Call(function, tuple(self.number(depth - 1) for _ in range(count)))
        if function == "extract":
            of_time = self.random.random() < 0.3
            part = self.pick(["hour", "minute", "second"] if of_time else ["year", "quarter", "month", "day", "dow"])
            return Call(f"extract {part}", (self.moment() if of_time else self.day(depth - 1),))
        if function == "case":
            return self.case(self.number, depth)
        return Call(function, (self.number(depth - 1), self.number(depth - 1)))

    def day(self, depth: int) -> Expression:
        day = self.refer(DAYS)
        return day if depth <= 0 else Call("+", (day, Literal(Fraction(self.random.randint(-400, 400)))))

    def moment(self) -> Expression:
        return self.refer(MOMENTS)

    def text(self, depth: int) -> Expression:
        if depth == 0 or self.random.random() < 0.3:
            return Literal(self.pick(["north", "so", None])) if self.random.random() < 0.3 else self.refer(TEXTS)
        function = self.pick(["coalesce", "nullif", "greatest", "least", "case"])
        if function == "case":
            return self.case(self.text, depth)
        return Call(function, (self.text(depth - 1), self.text(depth - 1)))

    def truth(self, depth: int) -> Expression:
        if depth == 0:
            return Literal(self.pick([True, False, None])) if self.random.random() < 0.2 else self.refer(TRUTHS)
        function = self.pick(["compare", "compare", "compare", "and", "or", "not", "is null", "is distinct", "like"])
        make = self.pick([self.number, self.number, self.text])
        if function == "compare":
            return Call(self.pick(["=", "<>", "<", "<=", ">", ">="]), (make(depth - 1), make(depth - 1)))
        if function in ("and", "or"):
            return Call(function, tuple(self.truth(depth - 1) for _ in range(self.random.randint(1, 3))))
        if function == "not":
            return Call(function, (self.truth(depth - 1),))
        if function == "is null":
            return Call(function, (make(depth - 1),))
        if function == "is distinct":
            return Call(function, (make(depth - 1), make(depth - 1)))
        pattern = Literal(self.pick(PATTERNS))
        return Call(self.pick(["like", "ilike"]), (self.text(depth - 1), pattern))

    def case(self, make: Callable[[int], Expression], depth: int) -> Case:
        branches = tuple((self.truth(depth - 1), make(depth - 1)) for _ in range(self.random.randint(1, 2)))
        return Case(branches, make(depth - 1) if self.random.random() < 0.7 else Literal(None))

    def refer(self, names: Mapping[str, Any]) -> Expression:
        return Reference(self.pick(list(names)))

    def pick(self, choices: list[Any]) -> Any:
        return self.random.choice(choices)


def holds(found: Range, value: Value) -> bool:
    if value is None:
        return found.nullable
    if found.values is not None:
        return value in found.values
    if not isinstance(value, Fraction):
        return found.low is found.high is None
    return (found.low is None or found.low <= value) and (found.high is None or value <= found.high)


def check(expression: Expression) -> None:
    """Every combination of points of what the expression refers to."""
    names = sorted(name for name in ALL if refers(expression, name))
    found = find_range(expression, {name: ALL[name][0] for name in names})
    for values in product(*(ALL[name][1] for name in names)):
        row = dict(zip(names, values, strict=True))
        value = evaluate(expression, row)
        assert holds(found, value), f"{expression} is {value} on {row}, not within {found}"


def refers(expression: object, name: str) -> bool:
    if isinstance(expression, Reference):
        return expression.name == name
    parts = expression if isinstance(expression, tuple) else vars(expression).values()
    return any(refers(part, name) for part in parts if isinstance(part, tuple | Call | Case | Literal | Reference))


def count_combinations(expression: Expression) -> int:
    combinations = 1
    for name in ALL:
        combinations *= len(ALL[name][1]) if refers(expression, name) else 1
    return combinations


def generate(seed: int, count: int) -> list[Expression]:
    generator, found = Generator(seed), list[Expression]()
    while len(found) < count:
        make = generator.pick([generator.number, generator.number, generator.truth, generator.text])
        expression = make(generator.random.randint(1, 3))
        if count_combinations(expression) <= 400:
            found.append(expression)
    return found


def check_all(expressions: list[Expression]) -> None:
    for expression in expressions:
        check(expression)


def test_every_value_is_within() -> None:
    check_all(generate(1, 2500))


def test_every_function_of_the_language_has_a_range() -> None:
    assert STRICT.keys() | LENIENT.keys() == FUNCTIONS.keys()
    assert {name for name, function in FUNCTIONS.items() if function.strict} == STRICT.keys()


def with_each_reference_once(seed: int) -> list[Expression]:
    """Sums, products, quotients, and what rises, of different references."""
    pick = random.Random(seed)
    found: list[Expression] = []
    for _ in range(400):
        conditions = [Reference("p"), Reference("o")]
        parts: list[Expression] = [Reference(name) for name in pick.sample(["a", "b", "c", "d", "e"], 3)]
        while len(parts) > 1:
            first, second = parts.pop(), parts.pop()
            function = pick.choice(["+", "-", "*", "/", "greatest", "least", "coalesce", "case"])
            if function == "/":
                second = Call("+", (second, Literal(Fraction(100))))
            if function == "case":
                made: Expression = Case(((conditions.pop(), first),), second)
            else:
                made = Call(function, (first, second))
            if pick.random() < 0.3:
                made = Call(pick.choice(["floor", "ceil", "abs"]), (made,))
            parts.insert(0, made)
        found += parts
    return found


def test_ranges_are_exact_where_each_reference_occurs_once() -> None:
    """Both ends are reached, and NULL is where it is possible; ends are among the points, and 0 is for ABS."""
    for expression in with_each_reference_once(2):
        names = sorted(name for name in ALL if refers(expression, name))
        found = find_range(expression, {name: ALL[name][0] for name in names})
        points = product(*(ALL[name][1] for name in names))
        values = [evaluate(expression, dict(zip(names, row, strict=True))) for row in points]
        known = [value for value in values if isinstance(value, Fraction)]
        assert found.nullable == (None in values), expression
        assert (found.low, found.high) == (min(known), max(known)) or "abs" in str(expression), expression


X, Y, ONE = Reference("x"), Reference("y"), Literal(Fraction(1))
UPTO = Range(Fraction(0), Fraction(120), nullable=True)


def limit(value: object) -> Literal:
    return Literal(Fraction(str(value)))


@pytest.mark.parametrize(
    ("expression", "ranges", "expected"),
    [
        (Call("/", (ONE, X)), {"x": Range(Fraction(-1), Fraction(2))}, "anything or NULL"),
        (Call("/", (ONE, X)), {"x": Range(Fraction(0), Fraction(2))}, "1/2 to … or NULL"),
        (Call("/", (ONE, X)), {"x": Range(Fraction(2))}, "0 to 1/2"),
        (Call("/", (ONE, X)), {"x": Range(Fraction(-2), Fraction(0))}, "… to -1/2 or NULL"),
        (Call("/", (ONE, limit(0))), {}, "NULL"),
        (Call("*", (limit(0), X)), {"x": Range()}, "0"),
        (Call("*", (X, Y)), {"x": Range(Fraction(1)), "y": Range(Fraction(-2), Fraction(3))}, "anything"),
        (Call("-", (X, X)), {"x": UPTO}, "-120 to 120 or NULL"),
        (Case(((Call("<", (X, limit(18))), X),), limit(18)), {"x": UPTO}, "0 to 18"),
        (Case(((Call(">", (X, limit(100))), limit(100)),), X), {"x": Range(Fraction(0))}, "0 to 100"),
        (Case(((Call(">", (limit(100), X)), X),), limit(100)), {"x": Range(Fraction(0))}, "0 to 100"),
        (Case(((Call("is null", (X,)), limit(-1)),), X), {"x": UPTO}, "-1 to 120"),
        (Case(((Call("<", (X, limit(-5))), limit(7)),), ONE), {"x": UPTO}, "1"),
        (Case(((Call(">=", (X, limit(0))), limit(7)),), ONE), {"x": Range(Fraction(0))}, "7"),
        (Case(((Call("and", (Call(">", (X, limit(5))), Call("<", (X, ONE)))), limit(7)),), ONE), {"x": UPTO}, "1"),
        (Case(((X, ONE),), Case(((X, limit(5)),), limit(2))), {"x": Range(values=frozenset([True, False]))}, "1 to 2"),
        (Call("coalesce", (X, limit(130))), {"x": UPTO}, "0 to 130"),
        (Call("greatest", (X, Y)), {"x": UPTO, "y": Range(Fraction(50), Fraction(60))}, "50 to 120"),
        (Call("least", (X, limit(60))), {"x": Range()}, "… to 60"),
        (Call("nullif", (X, limit(130))), {"x": Range(Fraction(0), Fraction(120))}, "0 to 120"),
        (Call("nullif", (X, limit(100))), {"x": Range(Fraction(0), Fraction(120))}, "0 to 120 or NULL"),
        (Call("extract year", (X,)), {"x": Range(Fraction(0), Fraction(20000), nullable=True)}, "1970 to 2024 or NULL"),
        (Call("extract year", (X,)), {"x": Range(Fraction(0))}, "1970 to …"),
        (Call("extract month", (X,)), {"x": Range(Fraction(0), Fraction(90))}, "1 to 4"),
        (Call("extract month", (X,)), {"x": Range(Fraction(0), Fraction(366))}, "1 to 12"),
        (Call("=", (X, Literal("a"))), {"x": Range.of("a")}, "True"),
        (Call("<", (X, limit(121))), {"x": UPTO}, "True or NULL"),
        (Call("not", (Call("<", (X, limit(121))),)), {"x": UPTO}, "False or NULL"),
        (Call("and", (Call("<", (X, limit(121))), Literal(False))), {"x": UPTO}, "False"),
        (Call("round", (X, limit(-1))), {"x": Range(Fraction(15), Fraction(24))}, "20"),
    ],
)
def test_a_range_is_as_narrow_as_is_simple(expression: Expression, ranges: Mapping[str, Range], expected: str) -> None:
    assert str(find_range(expression, ranges)) == expected


def test_where_a_condition_holds_nothing_is_lost() -> None:
    """What the references can be where it is true, and where it is not, lies in the narrowed ranges."""
    generator = Generator(3)
    for _ in range(1500):
        condition = generator.truth(generator.random.randint(1, 3))
        if count_combinations(condition) > 400:
            continue
        names = [name for name in ALL if refers(condition, name)]
        ranges = {name: ALL[name][0] for name in names}
        narrowed = {holding: narrow(condition, ranges, holds=holding) for holding in (True, False)}
        for values in product(*(ALL[name][1] for name in names)):
            row = dict(zip(names, values, strict=True))
            left = narrowed[evaluate(condition, row) is True]
            assert left is not None
            assert all(holds(left[name], value) for name, value in row.items())


def test_the_hull_of_texts_and_numbers() -> None:
    assert hull([Range.of("a"), Range.of("b")]) == Range(values=frozenset("ab"))
    assert hull([Range.of("a"), Range()]) == Range()
    assert hull([Range.of(None)]) == Range.of(None)
    assert hull([Range(Fraction(1)), Range(None, Fraction(0), nullable=True)]) == Range(nullable=True)


GREATEST = LENIENT["greatest"]
PLANTED: dict[str, tuple[Any, str, Any]] = {
    "a product of the lower and of the upper ends": (STRICT, "*", lambda a, b: multiply_ends(a, b)),
    "a difference of the lower and of the upper ends": (STRICT, "-", lambda a, b: subtract_ends(a, b)),
    "a quotient that is never NULL": (STRICT, "/", lambda a, b: Range()),
    "the absolute value of both ends": (STRICT, "abs", lambda a: Range(*sorted(map(abs, (a.low or 0, a.high or 0))))),
    "a month that always rises": (STRICT, "extract month", ranges._rise("extract month")),
    "a weekday that always rises": (STRICT, "extract dow", ranges._rise("extract dow")),
    "less where less or equal": (STRICT, "<=", STRICT["<"]),
    "GREATEST as if nothing were NULL": (LENIENT, "greatest", lambda arguments: GREATEST(sure(arguments))),
    "COALESCE of the first alone": (LENIENT, "coalesce", lambda arguments: arguments[0]),
    "NULLIF that never is": (LENIENT, "nullif", lambda arguments: arguments[0]),
    "AND that is NULL only where all are": (LENIENT, "and", LENIENT["or"]),
    "a NULL that is distinct from NULL": (LENIENT, "is distinct", lambda arguments: Range.of(True)),
}


def multiply_ends(a: Range, b: Range) -> Range:
    ends = zip((a.low, a.high), (b.low, b.high), strict=True)
    return Range(*(None if x is None or y is None else x * y for x, y in ends))


def subtract_ends(a: Range, b: Range) -> Range:
    ends = zip((a.low, a.high), (b.low, b.high), strict=True)
    return Range(*(None if x is None or y is None else x - y for x, y in ends))


def sure(arguments: list[Range]) -> list[Range]:
    return [replace(argument, nullable=False) for argument in arguments]


@pytest.mark.parametrize("planted", list(PLANTED))
def test_a_planted_error_is_found(planted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table, function, wrong = PLANTED[planted]
    expressions = generate(1, 1500)
    monkeypatch.setitem(table, function, wrong)
    with pytest.raises(AssertionError, match="not within"):
        check_all(expressions)

"""Expressions: one small language for what is computed from values, by Idios and never by an engine's own SQL.

It has two users. What an analyst computes from released values (``postprocessing``), and what a controller computes
from the columns of a record (``Column.expression``).

Rules:

1. Every number is exact. A date is its days and a timestamp its microseconds since 1970-01-01, text is text, truth is a
   bool, and NULL is None.
2. NULL is as in SQL: a function of NULL is NULL, except where the registry says otherwise; AND, OR and NOT have three
   values; a CASE takes the first branch whose condition is true.
3. Nothing fails. Division by zero is NULL, and types are checked when an expression is read.
4. ROUND goes to the nearest, and from the middle away from zero.
5. An expression is a graph: what has a name stands in it once, however often the name is used, and n nodes may be 2ⁿ
   written out. So a walk visits a node once, and nodes are compared by digests of what they hold.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from hashlib import sha256
from typing import Any, TypeAlias, TypeVar

import numpy as np

from idios.declare.dates import DAY, split_date

Value: TypeAlias = Fraction | str | bool | None
Name: TypeAlias = str | int
T = TypeVar("T")
N = TypeVar("N", bound="Node")

MAX_REPR = 1_000
"""Of how many parts, written out, a message for developers shows each."""
SHORT = 128
"""Up to how many characters of a text are placed one by one, for LIKE."""


class Type(StrEnum):
    """What an expression gives."""

    NUMBER = "number"
    TEXT = "text"
    BOOLEAN = "boolean"
    DATE = "date"
    TIMESTAMP = "timestamp"


class Node:
    """A node of a graph of frozen data: two are equal if all that they hold is, whichever nodes they share."""

    @property
    def parts(self) -> tuple[Any, ...]:
        """The nodes that it is directly made of."""
        return ()

    @cached_property
    def digest(self) -> bytes:
        """What tells nodes apart that hold something else."""
        return _find_below(self, "digest", _make_digest)

    @cached_property
    def written_out(self) -> int:
        """How many nodes it has written out, where each stands as often as it is used."""
        return _find_below(self, "written_out", _count_written_out)

    @cached_property
    def hash(self) -> int:
        """What most nodes differ in that hold something else; it is found faster than the digest."""
        return _find_below(self, "hash", lambda node: hash((type(node), *_list_held(node))))

    def __eq__(self, other: object) -> bool:
        if self is other or type(self) is not type(other):
            return self is other
        return isinstance(other, Node) and self.hash == other.hash and self.digest == other.digest

    def __hash__(self) -> int:
        return self.hash

    def __repr__(self) -> str:
        if self.written_out > MAX_REPR:
            return f"<{type(self).__name__} of {self.written_out:.3g} parts>"
        names: tuple[str, ...] = type(self).__match_args__  # type: ignore[attr-defined]
        held = zip(names, _list_held(self), strict=True)
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in held)})"


def _find_below(node: Node, name: str, find: Callable[[Node], T]) -> T:
    """What follows for a node from what follows for its parts; all of these keep it, and no depth is too deep."""
    stack = [node]
    while stack:
        held = vars(stack[-1])
        if name in held:
            stack.pop()
        elif waiting := [part for part in stack[-1].parts if name not in vars(part)]:
            stack.extend(waiting)
        else:
            held[name] = find(stack.pop())
    found: T = vars(node)[name]
    return found


def _count_written_out(node: Node) -> int:
    count: int = 1 + sum(part.written_out for part in node.parts)
    return count


def _list_held(node: Node) -> tuple[object, ...]:
    held = vars(node)
    return tuple([held[name] for name in node.__match_args__])  # type: ignore[attr-defined]


def _make_digest(node: Node) -> bytes:
    written = f"{type(node).__name__}{_write(_list_held(node))}"
    return sha256(written.encode("utf-8", "surrogatepass")).digest()


def _write(held: object) -> str:
    """What a node holds as text, of which no two are written alike; other nodes are their digests."""
    if isinstance(held, Node):
        return held.digest.hex()
    if isinstance(held, tuple):
        return f"({','.join(map(_write, held))})"
    # in base 16, which takes no longer for long numbers
    return f"{held.numerator:x}/{held.denominator:x}" if isinstance(held, Fraction) else repr(held)


@dataclass(frozen=True, eq=False, repr=False)
class Literal(Node):
    """A constant."""

    value: Value


@dataclass(frozen=True, repr=False)
class Reference(Node):
    """A value of the row that is computed on."""

    name: Name


@dataclass(frozen=True, eq=False, repr=False)
class Call(Node):
    """A function of the registry, of some arguments."""

    function: str
    arguments: tuple[Expression, ...]

    @property
    def parts(self) -> tuple[Expression, ...]:
        """Its arguments."""
        return self.arguments


@dataclass(frozen=True, eq=False, repr=False)
class Case(Node):
    """The value of the first branch whose condition is true, or else ``otherwise``."""

    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression = Literal(None)

    @property
    def parts(self) -> tuple[Expression, ...]:
        """Each condition with its value, and the value where none is true."""
        return (*(part for branch in self.branches for part in branch), self.otherwise)


Expression: TypeAlias = Literal | Reference | Call | Case


@dataclass(frozen=True)
class Function:
    """What a function computes; one that is ``strict`` is NULL where any argument is, and never sees it."""

    compute: Callable[..., Any]
    strict: bool = True


def evaluate(
    expression: Expression, row: Mapping[Any, Value] | Sequence[Value], known: dict[int, Value] | None = None
) -> Value:
    """The value of an expression on one row; ``known`` has those of nodes, by identity, for several expressions.

    >>> half = Call("/", (Reference("a"), Literal(Fraction(2))))
    >>> str(evaluate(half, {"a": Fraction(3)})), evaluate(half, {"a": None})
    ('3/2', None)
    """
    if isinstance(expression, Literal):
        return expression.value
    if isinstance(expression, Reference):
        return row[expression.name]  # type: ignore[index]
    known = {} if known is None else known
    if id(expression) not in known:
        known[id(expression)] = _compute(expression, row, known)
    return known[id(expression)]


def _compute(expression: Call | Case, row: Mapping[Any, Value] | Sequence[Value], known: dict[int, Value]) -> Value:
    if isinstance(expression, Case):
        for condition, value in expression.branches:
            if evaluate(condition, row, known) is True:
                return evaluate(value, row, known)
        return evaluate(expression.otherwise, row, known)
    function = FUNCTIONS[expression.function]
    values = [evaluate(argument, row, known) for argument in expression.arguments]
    if function.strict and None in values:
        return None
    result: Value = function.compute(*values)
    return result


def walk(*nodes: N) -> Iterator[N]:
    """Some nodes and all of their parts, each once and after its own parts."""
    seen: set[int] = set()
    stack = [(node, False) for node in reversed(nodes)]
    while stack:
        node, done = stack.pop()
        if done:
            yield node
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            stack.extend((part, False) for part in reversed(node.parts) if id(part) not in seen)


def list_references(expression: Expression) -> tuple[Name, ...]:
    """The names that an expression refers to, each once; a node that was asked before knows them."""
    names: dict[Name, None] = {}
    seen: set[int] = set()
    stack: list[Expression] = [expression]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, Reference):
            names[node.name] = None
        elif (known := vars(node).get("references")) is not None:
            names |= known
        else:
            stack.extend(node.parts)
    vars(expression)["references"] = names
    return tuple(names)


def substitute(expression: Expression, meanings: Mapping[Any, Expression] | Sequence[Expression]) -> Expression:
    """The expression with each reference replaced by what it means."""
    made: dict[int, Expression] = {}
    for node in walk(expression):
        parts = [made[id(part)] for part in node.parts]
        if isinstance(node, Reference):
            made[id(node)] = meanings[node.name]  # type: ignore[index]
        elif isinstance(node, Call):
            made[id(node)] = Call(node.function, tuple(parts))
        elif isinstance(node, Case):
            made[id(node)] = Case(tuple(zip(parts[:-1:2], parts[1:-1:2], strict=True)), parts[-1])
        else:
            made[id(node)] = node
    return made[id(expression)]


def round_half_away(value: Fraction, digits: int = 0) -> Fraction:
    """The nearest multiple of 10^−digits; from the middle away from zero.

    >>> [str(round_half_away(Fraction(v), d)) for v, d in (("2.5", 0), ("-2.5", 0), ("1250", -2), ("0.125", 2))]
    ['3', '-3', '1300', '13/100']
    """
    unit = Fraction(10) ** -digits
    steps = math.floor(abs(value) / unit + Fraction(1, 2))
    return unit * (steps if value >= 0 else -steps)


def match_pattern(text: str, pattern: str, escape: str = "") -> bool:
    r"""Whether LIKE holds: % stands for any text and _ for one character; ``escape`` takes their meaning away.

    The places of the text that the pattern has reached so far are the bits of one number, so that the work is linear
    in the length of the pattern, and that of one step a few machine words, whatever the pattern.

    >>> match_pattern("north-east", "n%e__t"), match_pattern("50%", "50!%", "!"), match_pattern("505", "50!%", "!")
    (True, True, False)
    """
    everywhere = (2 << len(text)) - 1
    places = _find_places(text, pattern)
    reached = 1
    at = 0
    while at < len(pattern) and reached:
        sign = pattern[at]
        plain = bool(escape) and sign == escape and at + 1 < len(pattern)
        if plain:
            at += 1
            sign = pattern[at]
        at += 1
        if sign == "%" and not plain:
            reached = everywhere & -(reached & -reached)  # the first place, and all after it
        elif sign == "_" and not plain:
            reached = reached << 1 & everywhere
        else:
            reached = (reached & places.get(sign, 0)) << 1
    return bool(reached >> len(text))


def _find_places(text: str, pattern: str) -> dict[str, int]:
    """By character of a pattern, where it stands in a text, as the bits of one number."""
    places: dict[str, int] = {}
    if len(text) <= SHORT:
        for place, character in enumerate(text):
            places[character] = places.get(character, 0) | 1 << place
        return places
    # bit by bit that would grow with the square of the length
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    for character in set(pattern):
        bits = np.packbits(codes == ord(character), bitorder="little")
        places[character] = int.from_bytes(bits.tobytes(), "little")
    return places


def _and(*values: bool | None) -> bool | None:
    return False if False in values else None if None in values else True


def _or(*values: bool | None) -> bool | None:
    return True if True in values else None if None in values else False


def _pick(choose: Callable[[list[Fraction]], Fraction]) -> Callable[..., Fraction | None]:
    def pick(*values: Fraction | None) -> Fraction | None:
        known = [value for value in values if value is not None]
        return choose(known) if known else None

    return pick


def _coalesce(*values: Value) -> Value:
    return next((value for value in values if value is not None), None)


def _fold(text: str) -> str:
    return text.encode("utf-8", "surrogatepass").lower().decode("utf-8", "surrogatepass")  # bytes fold A to Z alone


def _extract(part: str) -> Callable[[Fraction], Fraction]:
    return lambda days: Fraction(split_date(math.floor(days))[part])


DATE_PARTS = ("year", "quarter", "month", "day", "dow")
TIME_PARTS = ("hour", "minute", "second")
EXTRACTED = tuple(f"extract {part}" for part in (*DATE_PARTS, *TIME_PARTS))
"""The parts of dates (of their days), and those of the time of day (of microseconds)."""

_SECOND = 10**6

FUNCTIONS: Mapping[str, Function] = {
    "+": Function(lambda a, b: a + b),
    "-": Function(lambda a, b: a - b),
    "*": Function(lambda a, b: a * b),
    "/": Function(lambda a, b: a / b if b else None),
    "abs": Function(abs),
    "round": Function(lambda value, digits: round_half_away(value, int(digits))),
    "floor": Function(lambda value: Fraction(math.floor(value))),
    "ceil": Function(lambda value: Fraction(math.ceil(value))),
    "greatest": Function(_pick(max), strict=False),
    "least": Function(_pick(min), strict=False),
    "coalesce": Function(_coalesce, strict=False),
    "nullif": Function(lambda a, b: None if a is not None and a == b else a, strict=False),
    "=": Function(lambda a, b: a == b),
    "<>": Function(lambda a, b: a != b),
    "<": Function(lambda a, b: a < b),
    "<=": Function(lambda a, b: a <= b),
    ">": Function(lambda a, b: a > b),
    ">=": Function(lambda a, b: a >= b),
    "and": Function(_and, strict=False),
    "or": Function(_or, strict=False),
    "not": Function(lambda a: not a),
    "is null": Function(lambda a: a is None, strict=False),
    "is distinct": Function(lambda a, b: a != b, strict=False),
    "like": Function(match_pattern),
    "ilike": Function(lambda a, *pattern: match_pattern(_fold(a), *map(_fold, pattern))),
    **{f"extract {part}": Function(_extract(part)) for part in DATE_PARTS},
    "extract hour": Function(lambda moment: Fraction(moment % DAY // (3600 * _SECOND))),
    "extract minute": Function(lambda moment: Fraction(moment % (3600 * _SECOND) // (60 * _SECOND))),
    "extract second": Function(lambda moment: Fraction(moment % (60 * _SECOND) // _SECOND)),
}
"""Every function, and what it means. Parts of a date are of days: a timestamp is divided by a day first."""

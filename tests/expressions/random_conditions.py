"""Random conditions in all that WHERE offers, which DuckDB can evaluate too."""

from __future__ import annotations

import random
from collections.abc import Callable

NUMBERS = {"a": ["-1", "0", "1", "2", "3", "1.5"], "b": ["-1", "-0.5", "0", "0.25", "5e-1"]}
DAYS = ["'1969-12-31'", "DATE '1970-01-01'", "DATE '1969-12-30' + 2", "DATE '1970-01-05' - 3", "'1970-01-02'"]
CONSTANTS = ["TRUE", "FALSE", "NULL", "1 = 1", "2 > 1 + 1", "1 = NULL", "'ab' LIKE 'a%'", "NULL IS NULL"]
OPERATORS = ["=", "<>", "!=", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"]


def write_number(rng: random.Random, values: list[str], depth: int = 2) -> str:
    """A constant expression whose value is exact in binary too."""
    if not depth or rng.random() < 0.5:
        return rng.choice(values)
    one, two = (write_number(rng, values, depth - 1) for _ in range(2))
    return rng.choice(
        [
            f"({one} + {two})",
            f"{one} * 2",
            f"{one} - ({two})",
            f"-({one})",
            f"({one}) / 2",
            f"ABS({one})",
            f"GREATEST({one}, {two})",
            f"COALESCE(NULL, {one})",
            f"CASE WHEN {one} < {two} THEN {one} ELSE {two} END",
        ]
    )


def write_pattern(rng: random.Random) -> str:
    """LIKE or ILIKE of a random pattern."""
    pattern = "".join(rng.choices("uvwW%_", k=rng.randint(0, 4)))
    words = rng.choice(["LIKE", "ILIKE", "NOT LIKE", "NOT ILIKE"])
    if rng.random() < 0.3:
        return f"{words} '{pattern}!{rng.choice('%_!u')}' ESCAPE '!'"
    return f"{words} '{pattern}'"


def write_comparison(rng: random.Random, name: str, constant: Callable[[], str]) -> str:
    """A column of an ordered kind and one or more constants."""
    kind = rng.randrange(8)
    negation = rng.choice(["", "NOT "])
    if kind == 0:
        return f"{name} {negation}BETWEEN {constant()} AND {constant()}"
    if kind == 1:
        return f"{name} {negation}IN ({', '.join(constant() for _ in range(rng.randint(1, 3)))})"
    if kind == 2:
        return f"{name} IS {negation}NULL"
    if kind == 3:
        return f"{name} IS {negation}DISTINCT FROM NULL"
    sides = [name, rng.choice(OPERATORS), constant()]
    return " ".join(sides if rng.random() < 0.7 else reversed(sides))


def write_leaf(rng: random.Random) -> str:
    """A condition on one column, or on none."""
    name = rng.choice("aabcceffd")
    if name in NUMBERS:
        return write_comparison(rng, name, lambda: write_number(rng, NUMBERS[name]))
    if name == "d":
        return write_comparison(rng, name, lambda: rng.choice(DAYS))
    if name == "c":
        return f"c {write_pattern(rng)}" if rng.random() < 0.7 else f"c {rng.choice(['=', 'IS DISTINCT FROM'])} 'uv'"
    if rng.random() < 0.2:
        return rng.choice(CONSTANTS)
    truth = rng.choice(["TRUE", "FALSE"])
    negation = rng.choice(["", "NOT "])
    return rng.choice(
        [
            name,
            f"{name} IS {negation}{truth}",
            f"{name} IS {negation}UNKNOWN",
            f"{name} = {truth}",
            f"{truth} <> {name}",
            f"{name} IS {negation}DISTINCT FROM {truth}",
        ]
    )


def write_condition(rng: random.Random, depth: int = 2) -> str:
    """Conditions joined at random, with parentheses or by SQL's own precedence."""
    how = rng.choice(["AND", "OR", "NOT", "FLAT", "LEAF"]) if depth else "LEAF"
    if how == "LEAF":
        return write_leaf(rng)
    if how == "NOT":
        return f"NOT ({write_condition(rng, depth - 1)})"
    if how == "FLAT":
        leaves = [rng.choice(["", "NOT ", "NOT NOT "]) + write_leaf(rng) for _ in range(3)]
        return f"{leaves[0]} {rng.choice(['AND', 'OR'])} {leaves[1]} {rng.choice(['AND', 'OR'])} {leaves[2]}"
    return f" {how} ".join(f"({write_condition(rng, depth - 1)})" for _ in range(rng.randint(2, 3)))

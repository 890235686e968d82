"""Random conditions, and random ways to say the same: for the tests of meaning and of normal form."""

from __future__ import annotations

import random
from dataclasses import dataclass

NUMBERS = {
    "a": ["-1", "0", "1", "2", "3", "4", "1.5", "-0"],
    "b": ["-1", "-0.5", "-.25", "0", "0.25", "0.3", "5e-1"],
    "d": ["-1", "0", "1", "0.5"],
}
STRINGS = {"c": ["'u'", "'v'", "'w'"]}
OPERATORS = ["=", "<>", "!=", "<", "<=", ">", ">="]
MIRRORED = {"=": "=", "<>": "<>", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
OPPOSITE = {"=": "<>", "<>": "=", "!=": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


@dataclass(frozen=True)
class Said:
    """A condition: ``how`` it is put together, of which parts or words."""

    how: str
    parts: tuple[Said, ...] = ()
    words: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.how in ("AND", "OR"):
            return "(" + f" {self.how} ".join(map(str, self.parts)) + ")"
        if self.how == "NOT":
            return f"NOT ({self.parts[0]})" if self.parts[0].how != "NOT" else f"NOT {self.parts[0]}"
        if self.how == "IN":
            return f"{self.words[0]} IN ({', '.join(self.words[1:])})"
        if self.how == "BETWEEN":
            return f"{self.words[0]} BETWEEN {self.words[1]} AND {self.words[2]}"
        return " ".join(self.words)


def leaf(rng: random.Random, names: str) -> Said:
    name = rng.choice(names)
    values = NUMBERS.get(name) or STRINGS[name]
    kind = rng.randrange(10)
    if kind == 0:
        return Said("IS", words=(name, rng.choice(["IS NULL", "IS NOT NULL"])))
    if kind == 1:
        return Said("IN", words=(name, *rng.choices(values, k=rng.randint(1, 4))))
    if kind == 2 and name in NUMBERS:
        return Said("BETWEEN", words=(name, *rng.choices(values, k=2)))
    if kind == 3:
        return Said("CONSTANT", words=(rng.choice(["TRUE", "FALSE"]),))
    operator = rng.choice(OPERATORS if name in NUMBERS else OPERATORS[:3])
    return Said("COMPARE", words=(name, operator, rng.choice(values)))


def said(rng: random.Random, depth: int = 3, names: str = "abcd") -> Said:
    """A condition on the columns of the small data set."""
    how = rng.choice(["AND", "OR", "NOT", "LEAF"]) if depth else "LEAF"
    if how == "LEAF":
        return leaf(rng, names)
    count = 1 if how == "NOT" else rng.randint(2, 3)
    return Said(how, tuple(said(rng, depth - 1, names) for _ in range(count)))


def reworded(this: Said, rng: random.Random, budget: int = 6) -> Said:
    """The same condition in other words; every rule is valid in three-valued logic."""
    parts = [reworded(part, rng, budget - 1) for part in this.parts]
    rng.shuffle(parts)
    same = Said(this.how, tuple(parts), this.words)
    if budget <= 0:
        return same
    if same.how == "BETWEEN":
        name, low, high = same.words
        same = rng.choice(
            [same, Said("AND", (Said("COMPARE", words=(low, "<=", name)), Said("COMPARE", words=(name, "<=", high))))]
        )
    elif same.how == "IN":
        name, *values = same.words
        rng.shuffle(values)
        same = rng.choice([Said("IN", words=(name, *values, values[0])), _any_of(name, values)])
    elif same.how == "COMPARE" and same.words[1] in MIRRORED:
        left, operator, right = same.words
        same = rng.choice(
            [
                Said("COMPARE", words=(right, MIRRORED[operator], left)),
                Said("NOT", (Said("COMPARE", words=(left, OPPOSITE[operator], right)),)),
            ]
        )
    elif same.how in ("AND", "OR") and rng.random() < 0.5:
        other = "OR" if same.how == "AND" else "AND"
        same = Said("NOT", (Said(other, tuple(Said("NOT", (part,)) for part in same.parts)),))
    rule = rng.randrange(6)
    if rule == 0:
        return Said("NOT", (Said("NOT", (same,)),))
    if rule == 1:
        return Said(rng.choice(["AND", "OR"]), (same, same))
    if rule == 2:
        return Said("AND", (same, Said("OR", (leaf(rng, "abcd"), same))))
    if rule == 3:
        return Said("OR", (Said("AND", (leaf(rng, "abcd"), same)), same))
    if rule == 4:
        return Said("AND", (same, Said("CONSTANT", words=("TRUE",))))
    return same


def _any_of(name: str, values: list[str]) -> Said:
    equal = tuple(Said("COMPARE", words=(name, "=", value)) for value in values)
    return Said("OR", equal) if len(equal) > 1 else equal[0]

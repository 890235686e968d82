"""Generated expressions of columns, and the points of a derived column by ``evaluate`` alone."""

from __future__ import annotations

import random
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from idios.core.domain import LIMIT, Categories
from idios.declare.schema import Column
from idios.errors import InvalidInput
from idios.expressions.language import Value, evaluate
from idios.sql.derived import derive_columns

NUMBERS = ("0", "1", "2", "3", "7", "10", "0.5", "1.25", "0.1", "100", "-1", "-2.5")
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")


class Writer:
    """Writes random expressions of some columns, by type."""

    def __init__(self, seed: int, columns: Mapping[str, Column]) -> None:
        self.draw = random.Random(seed)
        self.names: dict[str, list[str]] = {"number": [], "category": [], "date": [], "timestamp": []}
        for column in columns.values():
            kind = column.kind if column.kind in self.names else "number"
            self.names[kind].append(column.name)
        self.texts = sorted({v for c in columns.values() if isinstance(c.domain, Categories) for v in c.domain.values})

    def any(self, depth: int) -> str:
        kinds = [self.number, self.number, self.number, self.truth, self.text, self.date]
        return self.draw.choice(kinds)(depth)

    def number(self, depth: int) -> str:
        pick = self.draw.choice
        if depth <= 0 or self.draw.random() < 0.1:
            return pick([*self.names["number"] * 2, pick(NUMBERS)])
        n = lambda: self.number(depth - 1)  # noqa: E731
        forms = [
            lambda: f"({n()} {pick('+-')} {n()})",
            lambda: f"({n()} * {pick(NUMBERS)})",
            lambda: f"({n()} * {n()})",
            lambda: f"({n()} / {pick(NUMBERS)})",
            lambda: f"ROUND({n()}, {self.draw.randint(-1, 2)})",
            lambda: f"ROUND({n()})",
            lambda: f"{pick(('FLOOR', 'CEIL', 'ABS'))}({n()})",
            lambda: f"ROUND({n()} / {n()}, {self.draw.randint(-1, 2)})",
            lambda: f"{pick(('FLOOR', 'CEIL'))}({pick(NUMBERS)} * ({n()} / {n()}) {pick('+-*')} {n()})",
            lambda: f"{pick(('GREATEST', 'LEAST', 'COALESCE', 'NULLIF'))}({n()}, {n()})",
            lambda: f"{pick(('GREATEST', 'LEAST', 'COALESCE'))}({n()}, {n()}, {n()})",
            lambda: self.case(n, depth),
            lambda: self.case(n, depth),
        ]
        if self.names["date"]:
            forms.append(
                lambda: f"EXTRACT({pick(('YEAR', 'QUARTER', 'MONTH', 'DAY', 'DOW'))} FROM {self.date(depth - 1)})"
            )
            forms.append(lambda: f"({self.date(depth - 1)} - {self.date(depth - 1)})")
        if self.names["timestamp"]:
            part = pick(("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND"))
            forms.append(lambda: f"EXTRACT({part} FROM {pick(self.names['timestamp'])})")
        return pick(forms)()

    def case(self, value: Any, depth: int) -> str:
        branches = " ".join(f"WHEN {self.truth(depth - 1)} THEN {value()}" for _ in range(self.draw.randint(1, 2)))
        otherwise = f" ELSE {value()}" if self.draw.random() < 0.6 else ""
        return f"CASE {branches}{otherwise} END"

    def text(self, depth: int) -> str:
        pick = self.draw.choice
        if depth <= 0 or self.draw.random() < 0.2 or not self.names["category"]:
            return pick([*self.names["category"] * 2, f"'{pick((*self.texts, 'other'))}'"])
        t = lambda: self.text(depth - 1)  # noqa: E731
        return pick(
            [
                lambda: self.case(t, depth),
                lambda: f"COALESCE({t()}, {t()})",
                lambda: f"NULLIF({t()}, {t()})",
            ]
        )()

    def date(self, depth: int) -> str:
        pick = self.draw.choice
        if not self.names["date"] or self.draw.random() < 0.1:
            return "DATE '2024-02-29'"
        if depth <= 0 or self.draw.random() < 0.5:
            return pick(self.names["date"])
        d = lambda: self.date(depth - 1)  # noqa: E731
        return pick(
            [
                lambda: f"({d()} {pick('+-')} {pick(('1', '30', '366'))})",
                lambda: self.case(d, depth),
                lambda: f"{pick(('COALESCE', 'GREATEST'))}({d()}, {d()})",
            ]
        )()

    def truth(self, depth: int) -> str:
        pick = self.draw.choice
        n = lambda: self.number(depth - 1)  # noqa: E731
        t = lambda: self.truth(depth - 1)  # noqa: E731
        forms = [
            lambda: f"{n()} {pick(COMPARISONS)} {pick(NUMBERS)}",
            lambda: f"{pick(self.names['number'])} {pick(COMPARISONS)} {pick(NUMBERS)}",
            lambda: f"{n()} {pick(COMPARISONS)} {n()}",
            lambda: f"{n()} IS {pick(('', 'NOT '))}NULL",
            lambda: f"{n()} IS {pick(('', 'NOT '))}DISTINCT FROM {n()}",
            lambda: f"{n()} BETWEEN {pick(NUMBERS)} AND {n()}",
            lambda: f"{n()} IN (1, {n()}, 2.5)",
        ]
        if self.names["category"]:
            forms += [
                lambda: f"{self.text(depth - 1)} {pick(('=', '<>'))} {self.text(depth - 1)}",
                lambda: (
                    f"{self.text(depth - 1)} {pick(('LIKE', 'NOT LIKE', 'ILIKE'))} '{pick(('%o%', 'n_%', '%', 'N%'))}'"
                ),
                lambda: f"{self.text(depth - 1)} IS NULL",
            ]
        if self.names["date"]:
            forms.append(lambda: f"{self.date(depth - 1)} {pick(COMPARISONS)} {self.date(depth - 1)}")
        if depth > 0:
            forms += [
                lambda: f"({t()} {pick(('AND', 'OR'))} {t()})",
                lambda: f"NOT ({t()})",
                lambda: f"({t()}) IS TRUE",
            ]
        return pick(forms)()


def derive_many(seed: int, held: Mapping[str, Column], count: int, depth: int = 3) -> dict[str, Column]:
    """Some derived columns d0, d1, …, a few of which use others, narrow bounds or order values."""
    writer = Writer(seed, held)
    plain: list[dict[str, Any]] = []
    made: dict[str, Column] = {}
    while len(made) < count:
        name = f"d{len(made)}"
        table: dict[str, Any] = {"expression": writer.any(writer.draw.randint(1, depth))}
        others: dict[str, dict[str, Any]] = {}
        if plain and writer.draw.random() < 0.1:
            others = {"other": writer.draw.choice(plain)}
            table = {"expression": "COALESCE(other, NULL)"}
        elif writer.draw.random() < 0.3:
            table["bounds"] = writer.draw.choice([[-2, 5], [0, 1], [1, None]])
        if "bounds" in table and writer.draw.random() < 0.7:
            table["expression"] = writer.number(depth)
        try:
            made[name] = derive_columns({**others, name: table}, held)[name]
        except InvalidInput:
            continue
        if not others:
            plain.append(table)
    return made


def find_point(column: Column, row: Mapping[str, Value]) -> int | None:
    """The point of a derived column: its value in steps, cut to the ends of the grid and to its bounds."""
    assert column.expression is not None
    value = evaluate(column.expression, row)
    if value is None:
        return None
    if isinstance(column.domain, Categories):
        return column.domain.find(value)
    point = (Fraction(int(value)) if isinstance(value, bool) else Fraction(value)) / column.grid.step  # type: ignore[arg-type]
    assert point.denominator == 1, f"{column.formula}: {value} is no multiple of {column.grid.step}"
    return column.grid.clamp(max(-LIMIT, min(LIMIT, int(point))))


def find_value(column: Column, point: int | None) -> Value:
    """What a point of a column of the source stands for."""
    if point is None:
        return None
    return column.domain.values[point] if isinstance(column.domain, Categories) else point * column.grid.step

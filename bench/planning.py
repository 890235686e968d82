"""How long can a text keep the planner busy? Random questions, and the slowest of them changed again and again.

    python -m bench.planning --minutes 10 [--seed 1]

Only CPU time of reading, planning and quoting counts. Ends with the slowest questions that were found.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from dataclasses import dataclass, replace
from fractions import Fraction

from idios.answers import make_quote
from idios.core.calibration import Protection
from idios.core.domain import Categories, Domain, Kind
from idios.core.statistics import Parameters
from idios.errors import IdiosError
from idios.ledger import Price
from idios.model import Account, Balance
from idios.query.lexer import MAX_LENGTH
from idios.query.planner import make_plan
from idios.query.reader import read
from idios.query.schema import Column, Dataset

EXPECTED = 1.0
"""Seconds of CPU that no question may take."""
KEPT = 24
NUMERIC = [f"c{i:02}" for i in range(40)]
COLUMNS = [
    *(
        Column(name, Kind.INTEGER, Domain(lower=0, upper=20_000), nullable=bool(i % 3))
        for i, name in enumerate(NUMERIC)
    ),
    *(Column(name, Kind.NUMBER, Domain()) for name in ("free", "other")),
    Column("born", Kind.DATE, Domain.declare(bounds=(0, 20_000))),
    *(Column(name, Kind.CATEGORY, Categories(tuple(f"v{i}" for i in range(30)))) for name in ("g", "h")),
]
DATASET = Dataset(
    "t",
    {column.name: column for column in COLUMNS},
    protection=Protection.declare("differential"),
    min_epsilon=Fraction(1, 10**9),
    parameters=Parameters(quantile=None, k=None, trim=None),
)
NOBODY = Balance("t", None, Account(None, Fraction(0)), Account(None, Fraction(0)))
STATISTICS = ("COUNT", "COUNT(DISTINCT", "SUM", "AVG", "MEDIAN", "MIN", "MAX", "IQR", "VARIANCE", "STDDEV")


@dataclass(frozen=True)
class Shape:
    """A question in parts, so that one of them can be changed: the SELECT list, the conditions, the keys."""

    items: tuple[str, ...]
    conditions: tuple[str, ...]
    keys: tuple[str, ...]

    @property
    def sql(self) -> str:
        where = f" WHERE {' '.join(self.conditions)}" if self.conditions else ""
        keys = f" GROUP BY {', '.join(self.keys)}" if self.keys else ""
        return f"SELECT {', '.join((*self.keys, *self.items))} FROM t{where}{keys}"


def number(chance: random.Random) -> str:
    return chance.choice((str(chance.randrange(20_000)), f"{chance.randrange(1000)}e{chance.randrange(400)}"))


def column(chance: random.Random) -> str:
    return chance.choice((*NUMERIC, "free", "other"))


def leaf(chance: random.Random) -> str:
    """One comparison, short or as long as a question may be."""
    name, many = column(chance), chance.choice((3, 30, 300, 1000, 2500))
    no = chance.choice(("", "NOT "))
    match chance.randrange(6):
        case 0:
            step = chance.choice((1, 2, 3, 7))
            return f"{no}{name} IN ({', '.join(str(step * i) for i in range(many))})"
        case 1:
            return f"{no}{name} IN ({', '.join(number(chance) for _ in range(many))})"
        case 2:
            return f"{name} {chance.choice(('<>', '=', '<', '>='))} {number(chance)}"
        case 3:
            sign, word = chance.choice((("<>", " AND "), ("=", " OR ")))
            return f"{no}({word.join(f'{name} {sign} {chance.choice((2, 3)) * i}' for i in range(many // 2 + 1))})"
        case 4:
            other, word = column(chance), chance.choice((" OR ", " AND "))
            inner = chance.choice((" AND ", " OR "))
            return f"{no}({word.join(f'({name} > {i}{inner}{other} <> {i})' for i in range(many // 3 + 1))})"
    half = chance.randrange(2, 20)
    return "(" + " OR ".join(f"(c{i:02} > {i} AND c{i + 20} > {i})" for i in range(half)) + ")"


def item(chance: random.Random) -> str:
    name, own = column(chance), chance.choice(STATISTICS)
    call = chance.choice((f"{own}({name})", f"QUANTILE({name}, 0.{chance.randrange(1, 999):03})"))
    return call.replace("DISTINCT(", "DISTINCT ").replace(")", "))") if "DISTINCT" in call else call


def key(chance: random.Random) -> str:
    widths = (1, 2, 20, 33, 667, 5000)
    return chance.choice(("g", "h", f"BIN({chance.choice(NUMERIC)}, {chance.choice(widths)})", "BIN(born, 20)"))


def conditions(chance: random.Random, count: int) -> tuple[str, ...]:
    found = [leaf(chance)]
    for _ in range(count - 1):
        one = leaf(chance)
        if sum(map(len, found)) + len(one) < 0.9 * MAX_LENGTH:
            found += [chance.choice(("AND", "OR")), one]
    return tuple(found)


def invented(chance: random.Random) -> Shape:
    items = tuple(dict.fromkeys(item(chance) for _ in range(chance.choice((1, 2, 10, 60, 180)))))
    keys = tuple(dict.fromkeys(key(chance) for _ in range(chance.choice((0, 0, 1, 2, 3)))))
    return Shape(items, conditions(chance, chance.choice((1, 2, 3, 8, 40))), keys)


def changed(shape: Shape, chance: random.Random) -> Shape:
    """The same question with one part made anew."""
    fresh = invented(chance)
    part = chance.choice(("items", "conditions", "keys", "leaf"))
    if part != "leaf":
        return replace(shape, **{part: getattr(fresh, part)})
    at = 2 * chance.randrange((len(shape.conditions) + 1) // 2)
    return replace(shape, conditions=(*shape.conditions[:at], leaf(chance), *shape.conditions[at + 1 :]))


def measured(sql: str) -> tuple[float, str]:
    """Seconds of CPU that a question takes before it is charged or refused, and what came of it."""
    began = time.thread_time()
    try:
        planned = make_plan(read(sql, {"t": DATASET}), DATASET, 1000)
        make_quote(planned, Price(False, True, False), NOBODY, charged=True)
        found = "planned"
    except IdiosError as error:
        found = "too complex" if "too complex" in str(error) else type(error).__name__
    return time.thread_time() - began, found


def main() -> int:
    arguments = argparse.ArgumentParser(prog="python -m bench.planning")
    arguments.add_argument("--minutes", type=float, default=10)
    arguments.add_argument("--seed", type=int, default=1)
    given = arguments.parse_args()
    chance = random.Random(given.seed)
    deadline = time.monotonic() + 60 * given.minutes
    slowest: list[tuple[float, str, Shape]] = []
    outcomes: Counter[str] = Counter()
    while time.monotonic() < deadline:
        explore = not slowest or chance.random() < 0.4
        shape = invented(chance) if explore else changed(chance.choice(slowest)[2], chance)
        if len(shape.sql) > MAX_LENGTH:
            continue
        seconds, found = measured(shape.sql)
        outcomes[found] += 1
        slowest = sorted([*slowest, (seconds, found, shape)], key=lambda one: -one[0])[:KEPT]
    print(f"{sum(outcomes.values()):,} questions in {given.minutes:g} minutes: {dict(outcomes)}")
    for seconds, found, shape in slowest[:5]:
        print(f"{1000 * seconds:7.0f} ms  {found:<12} {len(shape.sql):6,} characters  {shape.sql[:110]}…")
    worst = slowest[0][0]
    verdict = "ok" if worst < EXPECTED else "MISSED"
    print(f"the slowest took {worst:.2f} s of CPU, expected below {EXPECTED:g} s: {verdict}")
    return int(worst >= EXPECTED)


if __name__ == "__main__":
    sys.exit(main())

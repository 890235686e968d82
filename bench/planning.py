"""How long can a text keep the planner busy? Random questions, and the slowest of them changed again and again.

    python -m bench.planning --minutes 10 [--seed 1]

Only CPU time of reading, planning and quoting counts. Ends with the slowest questions that were found.

    python -m bench.planning --against ../before

How long do plain questions take, compared with those of another tree? Both are measured in turns, each by its own
module of this name.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from statistics import median

from idios.answer.assembly import make_quote
from idios.core.calibration import Protection
from idios.core.domain import Categories, Domain, Kind
from idios.core.statistics import Parameters
from idios.declare.schema import Column, Dataset
from idios.errors import IdiosError
from idios.ledger import Price
from idios.model import Account, Balance
from idios.plan.planner import make_plan
from idios.sql.lexer import MAX_LENGTH
from idios.sql.reader import read

EXPECTED = 1.0
"""Seconds of CPU that no question may take."""
KEPT = 24
SLOWER = 1.2
"""How many times as long plain questions may take as they took before."""
ROUNDS = 5
PLAIN = {
    "a count": "SELECT COUNT(*) FROM t",
    "a median": "SELECT MEDIAN(free) AS m FROM t WHERE c00 > 17 AND g = 'v3'",
    "groups": "SELECT g, COUNT(*) AS n, AVG(c01), MEDIAN(free) FROM t WHERE c02 BETWEEN 18 AND 65 GROUP BY g",
    "two keys": "SELECT BIN(c03, 5000), g, COUNT(*), SUM(c04), PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY free) "
    "FROM t WHERE c03 < 19000 GROUP BY BIN(c03, 5000), g",
    "quantiles": f"SELECT {', '.join(f'QUANTILE(free, 0.{i:02}) AS q{i}' for i in range(5, 95, 5))} FROM t",
    "a list": f"SELECT COUNT(*) FROM t WHERE free IN ({', '.join(str(7 * i) for i in range(500))})",
    "exceptions": f"SELECT COUNT(*) FROM t WHERE {' AND '.join(f'free <> {3 * i}' for i in range(300))}",
    "alternatives": f"SELECT MAX(c00) FROM t WHERE {' OR '.join(f'(c01 = {i} AND c02 > {i})' for i in range(60))}",
}
"""Questions that compute nothing after the release."""
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
    """A question in parts, so that one of them can be changed: the SELECT list, the conditions, the keys, HAVING.

    So many SELECTs stand ``around`` it.
    """

    items: tuple[str, ...]
    conditions: tuple[str, ...]
    keys: tuple[str, ...]
    having: str = ""
    around: int = 0

    @property
    def sql(self) -> str:
        where = f" WHERE {' '.join(self.conditions)}" if self.conditions else ""
        keys = f" GROUP BY {', '.join(self.keys)}" if self.keys else ""
        sql = f"SELECT {', '.join((*self.keys, *self.items))} FROM t{where}{keys}{self.having}"
        for _ in range(self.around):
            sql = f"SELECT * FROM ({sql})"
        return sql


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
    call = call.replace("DISTINCT(", "DISTINCT ").replace(")", "))") if "DISTINCT" in call else call
    if chance.random() < 0.7 or own in ("MIN", "MAX"):
        return call
    many = chance.choice((1, 5, 25))
    return chance.choice(
        (
            f"ROUND({' * '.join([call] * many)} / NULLIF({call}, 0), {many})",
            f"CASE {' '.join(f'WHEN {call} > {i} THEN {number(chance)}' for i in range(many))} END",
            f"GREATEST({', '.join([call] * many)}, {' + '.join([call] * many)})",
        )
    )


def having(chance: random.Random) -> str:
    """A condition on what is released, short or long."""
    many = chance.choice((1, 30, 300, 1500))
    listed = ", ".join(number(chance) for _ in range(many))
    pattern = "%v" * many
    return chance.choice(("", "", f" HAVING COUNT(*) IN ({listed})", f" HAVING 'v' LIKE '{pattern}' OR COUNT(*) > 3"))


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
    found = conditions(chance, chance.choice((1, 2, 3, 8, 40)))
    return Shape(items, found, keys, having(chance), chance.choice((0, 0, 0, 1, 9)))


def changed(shape: Shape, chance: random.Random) -> Shape:
    """The same question with one part made anew."""
    fresh = invented(chance)
    part = chance.choice(("items", "conditions", "keys", "having", "around", "leaf"))
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


def time_plain() -> dict[str, float]:
    """Seconds of CPU that planning each plain question takes, the best of five runs."""
    found = {}
    for name, sql in PLAIN.items():
        times = 2 if len(sql) > 1000 else 20
        runs = []
        for _ in range(5):
            began = time.process_time()
            for _ in range(times):
                make_plan(read(sql, {"t": DATASET}), DATASET, 1000)
            runs.append((time.process_time() - began) / times)
        found[name] = min(runs)
    return found


def compare(before: Path) -> int:
    """Time plain questions with these sources and with those of another tree, in turns."""
    here = Path(__file__).parents[1]
    taken: dict[Path, list[dict[str, float]]] = {before: [], here: []}
    for _ in range(ROUNDS):
        for tree, rounds in taken.items():
            environment = {**os.environ, "PYTHONPATH": f"{(tree / 'src').resolve()}{os.pathsep}{tree.resolve()}"}
            command = [sys.executable, "-m", "bench.planning", "--plain"]
            ran = subprocess.run(command, cwd=tree, env=environment, check=True, capture_output=True, text=True)
            rounds.append(json.loads(ran.stdout))
    ratios = []
    for name in PLAIN:
        old, new = (median(one[name] for one in taken[tree]) for tree in (before, here))
        ratios.append(new / old)
        print(f"{name:<14} {1000 * old:7.2f} ms before, {1000 * new:7.2f} ms now: {new / old:.2f} times")
    verdict = "ok" if max(ratios) <= SLOWER else "MISSED"
    print(f"at most {max(ratios):.2f} times as long as before, expected at most {SLOWER:g}: {verdict}")
    return int(max(ratios) > SLOWER)


def main() -> int:
    arguments = argparse.ArgumentParser(prog="python -m bench.planning")
    arguments.add_argument("--against", type=Path, help="another tree of sources, to compare plain questions with")
    arguments.add_argument("--plain", action="store_true", help="time plain questions and print JSON")
    arguments.add_argument("--minutes", type=float, default=10)
    arguments.add_argument("--seed", type=int, default=1)
    given = arguments.parse_args()
    if given.plain:
        print(json.dumps(time_plain()))
        return 0
    if given.against:
        return compare(given.against)
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

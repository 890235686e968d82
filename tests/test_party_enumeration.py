"""Through SQL and back: what the party calibrates to is what trying every neighbour of the *table* gives.

Nothing here knows about selections. A table is a list of records (x, y, g); a neighbour changes, adds or removes one
whole record; a question is evaluated on it by plain Python, WHERE and GROUP BY included, with SQL's rules for NULL.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import pytest

from idios.party import TrustedParty
from tests import oracle

Record = tuple[int | None, int, str | None]
X, Y, G = (None, 0, 1, 2, 3), (0, 1), (None, "a", "b")
RECORDS: list[Record] = list(product(X, Y, G))
COLUMNS = {
    "x": {"type": "integer", "bounds": [0, 3]},
    "y": {"type": "integer", "bounds": [0, 1], "nullable": False},
    "g": {"type": "category", "values": ["a", "b"]},
}

STATISTICS: list[tuple[str, Callable[[Sequence[int]], Any]]] = [
    ("COUNT(x)", len),
    ("SUM(x)", sum),
    ("AVG(x)", oracle.mean),
    ("MEDIAN(x)", lambda v: oracle.quantile(v, Fraction(1, 2))),
    ("MAX(x)", lambda v: oracle.kth_largest(v, 1)),
    ("KTH_LARGEST(x, 2)", lambda v: oracle.kth_largest(v, 2)),
    ("PERCENTILE_DISC(x, 0.25)", lambda v: oracle.discrete_quantile(v, Fraction(1, 4))),
    ("TRIMMED_MEAN(x, 0.3)", lambda v: oracle.trimmed_mean(v, Fraction(3, 10))),
    ("IQR(x)", oracle.iqr),
    ("VARIANCE(x)", oracle.variance),
    ("COUNT(DISTINCT x)", lambda v: len(set(v))),
]
FILTERS: list[tuple[str, Callable[[Record], bool]]] = [
    ("", lambda r: True),
    (" WHERE y = 1", lambda r: r[1] == 1),
    (" WHERE NOT (x < 2)", lambda r: r[0] is not None and r[0] >= 2),
    (" WHERE x <= 2 OR y = 1", lambda r: (r[0] is not None and r[0] <= 2) or r[1] == 1),
    (" WHERE g IS NULL OR g <> 'a'", lambda r: r[2] != "a"),
]


def neighbours(table: Sequence[Record], notion: str) -> Iterator[list[Record]]:
    for i in range(len(table)):
        rest = [*table[:i], *table[i + 1 :]]
        if notion == "add-remove":
            yield rest
        else:
            for record in RECORDS:
                yield [*rest, record]
    if notion == "add-remove":
        for record in RECORDS:
            yield [*table, record]


def tables(seed: int, count: int) -> Iterator[list[Record]]:
    """Small tables with ties and NULLs, the empty one and single rows among them."""
    rng = random.Random(seed)
    yield []
    yield [(2, 1, "a")]
    for _ in range(count):
        yield [rng.choice(RECORDS) for _ in range(rng.randint(1, 6))]


@pytest.mark.slow
@pytest.mark.parametrize("notion", ["replace", "add-remove"])
@pytest.mark.parametrize("grouped", [False, True])
def test_local_sensitivity_through_sql(notion: str, grouped: bool) -> None:
    compared = 0
    select = ", ".join(f"{sql} AS s{i}" for i, (sql, _) in enumerate(STATISTICS))
    for table in tables(5 + grouped, 25):
        data = {name: [record[i] for record in table] for i, name in enumerate("xyg")}
        with TrustedParty.open(
            _typed(data),
            name="t",
            columns=COLUMNS,
            neighbours=notion,
            budget=10**6,
            min_epsilon="0.001",
            parameters={"trim": False, "quantile": False, "k": False},
            protection="individual",
        ) as party:
            for where, holds in FILTERS:
                sql = f"SELECT {select} FROM t{where}"
                if grouped:
                    sql = f"SELECT g, {select} FROM t{where} GROUP BY g"
                inspection = party.inspect(sql, 11)
                for cell in inspection.cells:
                    group = cell.group.get("g")
                    _, textbook = STATISTICS[int(cell.statistic[1:])]

                    def value(rows: Sequence[Record], holds=holds, group=group, textbook=textbook) -> Any:
                        return textbook(
                            sorted(
                                r[0] for r in rows if holds(r) and r[0] is not None and (not grouped or r[2] == group)
                            )
                        )

                    _compare(cell, value, table, notion)
                    compared += 1
    assert compared > 1000


def _compare(cell: Any, value: Callable[[Sequence[Record]], Any], table: list[Record], notion: str) -> None:
    found = [_on_grid(v) for v in (value(table), *(value(other) for other in neighbours(table, notion)))]
    assert cell.value == found[0], (cell, table)
    defined = [v for v in found if v is not None]
    bound_only = cell.statistic == "s8" and notion == "add-remove"  # the interquartile range
    if len(defined) < len(found) or bound_only:  # an undefined neighbour stands for every value in range
        assert cell.lows[1] <= min(defined, default=math.inf)
        assert cell.highs[1] >= max(defined, default=-math.inf)
        return
    assert (cell.lows[1], cell.highs[1]) == (min(found), max(found)), (cell, table)
    assert cell.local_sensitivity == max(max(found) - found[0], found[0] - min(found))


def _on_grid(value: Any) -> Fraction | None:
    grid = Fraction(1, 10**6)
    return None if value is None else math.floor(Fraction(value) / grid + Fraction(1, 2)) * grid


def _typed(data: dict[str, list[Any]]) -> Any:
    import pyarrow as pa

    return pa.table(
        {
            "x": pa.array(data["x"], pa.int64()),
            "y": pa.array(data["y"], pa.int64()),
            "g": pa.array(data["g"], pa.string()),
        }
    )

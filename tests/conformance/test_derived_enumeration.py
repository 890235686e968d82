"""Statistics of derived columns through SQL: what is calibrated to is what trying every neighbour of the table gives.

A table is a list of records (x, y, g); a neighbour changes, adds or removes one whole record. What a record's derived
columns are, which records are selected and what a statistic comes to is plain Python here, as a textbook has it.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import pyarrow as pa
import pytest

from idios.party import TrustedParty
from tests import oracle
from tests.conformance.engines import SPARK, Engine

Record = tuple[int | None, int, str | None]
RECORDS: list[Record] = list(product((None, 0, 1, 2, 3), (0, 1), (None, "a", "b")))
COLUMNS: dict[str, Any] = {
    "x": {"type": "integer", "bounds": [0, 3]},
    "y": {"type": "integer", "bounds": [0, 1], "nullable": False},
    "g": {"type": "category", "values": ["a", "b"]},
    "twice": {"expression": "x * 2"},
    "both": {"expression": "x + y"},
    "top": {"expression": "GREATEST(x, y) - 1"},
    "known": {"expression": "COALESCE(x, y)"},
    "half": {"expression": "ROUND(x / 2)"},
    "share": {"expression": "ROUND(x / (y + 1), 0)"},
    "square": {"expression": "x * x"},
    "odd": {"expression": "CASE WHEN x = 1 OR x = 3 THEN 'odd' WHEN x IS NOT NULL THEN 'even' END"},
    "side": {"expression": "CASE WHEN y = 1 THEN 'top' ELSE g END"},
    "high": {"expression": "both > 2"},
}
DERIVED: dict[str, Callable[[Record], int | None]] = {
    "twice": lambda r: None if r[0] is None else 2 * r[0],
    "both": lambda r: None if r[0] is None else r[0] + r[1],
    "top": lambda r: max(r[1], r[1] if r[0] is None else r[0]) - 1,
    "known": lambda r: r[1] if r[0] is None else r[0],
    "half": lambda r: None if r[0] is None else (r[0] + 1) // 2,
    "share": lambda r: None if r[0] is None else r[0] if not r[1] else (r[0] + 1) // 2,
    "square": lambda r: None if r[0] is None else r[0] ** 2,
}
KEYS: dict[str, Callable[[Record], str | None]] = {
    "odd": lambda r: None if r[0] is None else ("even", "odd")[r[0] % 2],
    "side": lambda r: "top" if r[1] else r[2],
}
STATISTICS: list[tuple[str, Callable[[Sequence[int]], Any]]] = [
    ("COUNT({})", len),
    ("SUM({})", sum),
    ("MEDIAN({})", lambda v: oracle.quantile(v, Fraction(1, 2))),
    ("MAX({})", lambda v: oracle.kth_largest(v, 1)),
    ("KTH_LARGEST({}, 2)", lambda v: oracle.kth_largest(v, 2)),
    ("PERCENTILE_DISC({}, 0.25)", lambda v: oracle.discrete_quantile(v, Fraction(1, 4))),
]
FILTERS: list[tuple[str, Callable[[Record], bool]]] = [
    ("", lambda r: True),
    (" WHERE twice >= 2 AND y = 1", lambda r: r[0] is not None and r[0] >= 1 and r[1] == 1),
    (" WHERE NOT both < 2 AND half <= 1", lambda r: r[0] is not None and r[0] + r[1] >= 2 and r[0] <= 2),
    (" WHERE odd = 'odd' OR side IS NULL", lambda r: r[0] in (1, 3) or (r[1] == 0 and r[2] is None)),
    (" WHERE high", lambda r: r[0] is not None and r[0] + r[1] > 2),
]


def neighbours(table: Sequence[Record], notion: str) -> Iterator[list[Record]]:
    for i in range(len(table)):
        rest = [*table[:i], *table[i + 1 :]]
        if notion == "add-remove":
            yield rest
        else:
            yield from ([*rest, record] for record in RECORDS)
    if notion == "add-remove":
        yield from ([*table, record] for record in RECORDS)


def keep(engine: Engine, table: Sequence[Record]) -> object:
    types = {"x": pa.int64(), "y": pa.int64(), "g": pa.string()}
    return engine.keep(pa.table({n: pa.array([r[i] for r in table], types[n]) for i, n in enumerate(types)}))


def reaches_everything(column: str, holds: Callable[[Record], bool], key: str | None, group: Any) -> bool:
    """Whether every point between the least and the greatest selected value can be one of the cell.

    If not, an envelope may be wider: it allows for the points between.
    """
    selected = [r for r in RECORDS if holds(r) and DERIVED[column](r) is not None]
    every = [DERIVED[column](r) for r in selected if not key or KEYS[key](r) is not None]
    own = {DERIVED[column](r) for r in selected if not key or KEYS[key](r) == group}
    return own == set(range(min(every), max(every) + 1, 2 if column == "twice" else 1))  # type: ignore[type-var, operator]


TABLES = {"duckdb": 4, "postgresql": 4, "spark": 1}


@pytest.mark.slow
@pytest.mark.parametrize("notion", ["replace", "add-remove"])
@pytest.mark.parametrize("engine", ["duckdb", "postgresql", SPARK], indirect=True)
def test_envelopes_of_derived_columns(engine: Engine, notion: str) -> None:
    draw, compared, exact = random.Random(11), 0, 0
    for number in range(TABLES[str(engine)]):
        table = [draw.choice(RECORDS) for _ in range(draw.randint(3, 7))]
        asked = list(product(DERIVED, FILTERS, (None, *KEYS)))
        asked = [("both", FILTERS[0], None)] if str(engine) == "spark" else asked[number % 4 :: 4]
        with TrustedParty.open(
            keep(engine, table),
            name="t",
            columns=COLUMNS,
            neighbours=notion,
            budget=10**6,
            min_epsilon="0.001",
            parameters={"trim": False, "quantile": False, "k": False},
            protection="individual",
        ) as party:
            for column, (where, holds), key in asked:
                select = ", ".join(f"{sql.format(column)} AS s{i}" for i, (sql, _) in enumerate(STATISTICS))
                sql = (
                    f"SELECT {key}, {select} FROM t{where} GROUP BY {key}" if key else f"SELECT {select} FROM t{where}"
                )
                for cell in party.inspect(sql, 11).cells:
                    textbook = STATISTICS[int(cell.statistic[1:])][1]

                    def value(
                        rows: Sequence[Record], holds=holds, key=key, column=column, cell=cell, t=textbook
                    ) -> Any:
                        chosen = [r for r in rows if holds(r) and (not key or KEYS[key](r) == cell.group[key])]
                        return t(sorted(v for r in chosen if (v := DERIVED[column](r)) is not None))

                    found = [value(table), *(value(other) for other in neighbours(table, notion))]
                    assert cell.value == found[0], (sql, table, cell)
                    defined = [v for v in found if v is not None]
                    low, high = min(defined, default=math.inf), max(defined, default=-math.inf)
                    assert cell.lows[1] <= low, (sql, table, cell, low)
                    assert cell.highs[1] >= high, (sql, table, cell, high)
                    compared += 1
                    # an undefined neighbour stands for every value in range; x + y > 2 narrows nothing but itself
                    defined_all = len(defined) == len(found)
                    rewritten = "high" not in where and ("both" not in where or column == "both")
                    if defined_all and rewritten and reaches_everything(column, holds, key, cell.group.get(key)):
                        assert (cell.lows[1], cell.highs[1]) == (low, high), (sql, table, cell, low, high)
                        exact += 1
    assert compared >= len(STATISTICS)
    assert exact > compared // 8

"""What an attacker learns of 1,000 secret bits at `individual`, by what fitted values cost; and what honest use costs.

The tables of docs/limits.md are made here: with these seeds every row must stand there as it is computed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from idios.core.sampling import SeededSource
from idios.errors import AnswerFailed, BudgetExceeded, InvalidInput
from idios.party import TrustedParty
from tests.attacker import GAP, SURE, Floats, Window, ask_singly, ask_together

SIZE = 1000
BITS = np.random.default_rng(0).integers(0, 2, SIZE)
BUDGETS = (2, 10)
LEAST = Fraction(1, 20)
LIMITS = Path(__file__).parent.parent / "docs" / "limits.md"


@dataclass(frozen=True)
class Learned:
    """How many bits the analyst is sure of and right or wrong about, and how many of all are guessed right."""

    right: int
    wrong: int
    guessed: float

    @classmethod
    def of(cls, likely: Floats) -> Learned:
        """From the probability of each bit that it is 1; a bit nothing is known of is guessed right half the time."""
        sure, right = np.maximum(likely, 1 - likely) >= SURE, (likely > 0.5) == BITS
        guessed = np.where(np.abs(likely - 0.5) < 1e-6, 0.5, right)
        return cls(int(np.sum(sure & right)), int(np.sum(sure & ~right)), float(np.mean(guessed)))

    @classmethod
    def by(cls, windows: Sequence[Window]) -> Learned:
        likely = np.full(SIZE, 0.5)
        for window in windows:
            likely[window.first : window.first + window.width] = window.bits
        return cls.of(likely)


def holding_bits(budget: int, protection: str = "individual", **options: Any) -> TrustedParty:
    columns = {
        "id": {"type": "integer", "bounds": [0, SIZE - 1], "nullable": False},
        "x": {"type": "integer", "nullable": False},
    }
    table = {"id": np.arange(SIZE), "x": BITS * GAP}
    party = TrustedParty.open(table, name="t", columns=columns, budget=budget, protection=protection, **options)
    party.source = SeededSource(1)
    return party


def without_a_price(budget: int) -> TrustedParty:
    """A party that sells values one by one for next to nothing: what they cost is for the caller to keep."""
    return holding_bits(budget, min_epsilon="1e-6")


def windows(count: int, width: int) -> list[Window]:
    return [Window(i * width, width) for i in range(count)]


def ask_cheaply(party: TrustedParty) -> Learned:
    """Every question has a cell for each of all windows, and costs twice the least ε, until all is known."""
    found = windows(SIZE // 8, 8)
    try:
        while not all(window.known for window in found):
            ask_together(party, found, float(2 * LEAST))
    except BudgetExceeded:
        pass
    return Learned.by(found)


def ask_once(party: TrustedParty, budget: int) -> Learned:
    """One question for the whole budget, with as many cells as it may have."""
    cells = int(budget / LEAST)
    found = windows(cells, min(9, SIZE // cells))
    ask_together(party, found, budget)
    return Learned.by(found)


def ask_capped(budget: int, width: int, repeated: bool) -> Learned:
    """Ten questions of twenty cells: always about the same windows, or each about other ones."""
    with without_a_price(budget) as party:
        found = windows(20 if repeated else 200, width)
        for i in range(10):
            ask_together(party, found if repeated else found[20 * i : 20 * (i + 1)], budget / 10)
    return Learned.by(found)


def count(budget: int) -> Learned:
    """A count for every id, whose noise is the same at every level."""
    with holding_bits(budget) as party:
        sql = f"SELECT BIN(id, 1), COUNT(*) FROM t WHERE x = {GAP} GROUP BY BIN(id, 1)"
        answer = party.query(sql, budget)
    seen = np.array([row["COUNT(*)"] for row in answer.rows])
    likely = 1 / (1 + np.exp(-budget / 2))  # of two neighbouring counts, given one beyond either
    return Learned.of(np.where(seen >= 1, likely, 1 - likely))


def best(found: Sequence[Learned]) -> str:
    """The attack that knows most, and the share of the one that guesses best."""
    most = max(found, key=lambda one: one.right)
    return f"{most.right:,} ({most.wrong} wrong) | {100 * max(one.guessed for one in found):.1f} %"


def attacked() -> list[str]:
    """The rows of what is lost, for a budget of 2 and of 10."""
    lost: dict[str, list[str]] = {rule: [] for rule in ("before", "in full", "capped", "now", "count")}
    with without_a_price(min(BUDGETS)) as party:
        lost["before"] = [best([ask_cheaply(party)])] * len(BUDGETS)
        assert party.ledger.balance("t").epsilon.remaining > 0, "nothing is left to learn before either budget is gone"
    for budget in BUDGETS:
        with holding_bits(budget) as party:
            singly = Learned.by(ask_singly(party, SIZE, 9, float(LEAST)))
        lost["in full"].append(best([singly]))
        lost["capped"].append(best([singly, ask_capped(budget, 9, True), ask_capped(budget, 5, False)]))
        lost["now"].append(best([singly, *grouped(budget)]))
        lost["count"].append(best([count(budget)]))
    return [
        "| price of a fitted value | bits known, ε = 2 | guessed right | bits known, ε = 10 | guessed right |",
        f"| before: its share of ε, which groups have side by side | {' | '.join(lost['before'])} |",
        f"| its share of ε in full, group after group | {' | '.join(lost['in full'])} |",
        f"| before, but at most 20 in a question and 200 in all | {' | '.join(lost['capped'])} |",
        f"| **now**: `min_epsilon` of the question's ε, shared as before | {' | '.join(lost['now'])} |",
        f"| for comparison: no fitted value, a `COUNT` for every id | {' | '.join(lost['count'])} |",
    ]


def grouped(budget: int) -> list[Learned]:
    """What GROUP BY adds with every default: the cheap attack where it is allowed, and one question for everything."""
    found = []
    attacks: list[Callable[[TrustedParty], Learned]] = [ask_cheaply, lambda party: ask_once(party, budget)]
    for attack in attacks:
        with holding_bits(budget) as party:
            try:
                found.append(attack(party))
            except InvalidInput:
                assert party.ledger.balance("t").epsilon.spent == 0
    return found


REGIONS = (4, 20, 100)


def honest() -> list[str]:
    """The rows of what the medians of 20,001 incomes by region cost under each price."""
    rng = np.random.default_rng(7)
    table: dict[str, Any] = {"income": rng.lognormal(10.3, 0.8, 20_001)}
    columns: dict[str, Any] = {"income": {"type": "number", "step": 1, "nullable": False}}
    for regions in REGIONS:
        table[f"r{regions}"] = [f"r{i}" for i in rng.integers(0, regions, 20_001)]
        columns[f"r{regions}"] = {"type": "category", "values": [f"r{i}" for i in range(regions)]}
    with TrustedParty.open(
        table, name="t", columns=columns, budget=1, min_epsilon="1e-6", protection="individual"
    ) as party:

        def told(regions: int, least: Fraction, *, singly: bool = False) -> str:
            """At ε = 1, or at the least ε; ``singly`` asks a question for each group, all for that ε together."""
            epsilon = max(least, Fraction(1))
            if singly:
                asked = [f"SELECT MEDIAN(income) FROM t WHERE r{regions} = 'r{i}'" for i in range(regions)]
            else:
                asked = [f"SELECT r{regions}, MEDIAN(income) FROM t GROUP BY r{regions}"]
            cells = [cell for sql in asked for cell in party.inspect(sql, epsilon / len(asked)).cells]
            error = np.mean([cell.expected_error for cell in cells])
            return f"{error:,.0f}" + (f" at its least, ε = {least}" if least > 1 else f", from ε = {float(least):g}")

        twice = 2 * LEAST
        shared = [told(n, twice) for n in REGIONS]
        in_full = [told(n, n * LEAST, singly=True) for n in REGIONS]
        now = [told(n, max(twice, n * LEAST)) for n in REGIONS]
    return [
        "| price of a fitted value | 4 regions | 20 regions | 100 regions |",
        f"| before: its share of ε, which groups have side by side | {' | '.join(shared)} |",
        f"| its share of ε in full, group after group | {' | '.join(in_full)} |",
        f"| before, but at most 20 in a question and 200 in all | {' | '.join(shared[:2])} | refused |",
        f"| **now**: `min_epsilon` of the question's ε, shared as before | {' | '.join(now)} |",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("rows", [attacked, honest])
def test_the_tables_of_the_limits_are_what_is_measured(rows: Callable[[], list[str]]) -> None:
    head, *body = rows()
    rule = "|---" * head.count(" | ") + "|---|"
    expected = "\n".join([head, rule, *body])
    assert expected in LIMITS.read_text(), f"docs/limits.md must have this table:\n{expected}"


def test_the_attacker_knows_the_noise() -> None:
    """Of several cells, loud ones have noise of 1000/ε and quiet ones of 2/ε, whatever the others are."""
    with holding_bits(10) as party:
        cells = party.inspect("SELECT BIN(id, 9), MEDIAN(x) FROM t WHERE id < 90 GROUP BY BIN(id, 9)", 1).cells
    for i, cell in enumerate(cells):
        loud = BITS[9 * i : 9 * i + 9].sum() in (4, 5)
        assert abs(cell.noise["scale"] - (GAP if loud else 2)) < Fraction(1, 10**6)
    assert len({round(cell.noise["scale"]) for cell in cells}) == 2


@pytest.mark.parametrize("level", [{}, {"protection": "group", "group": 3}])
@pytest.mark.parametrize("width", [3, 8, 50, 100, 300, 999])
def test_no_budget_buys_more_fitted_values_than_its_least_epsilon_does(width: int, level: dict[str, Any]) -> None:
    values = -(-SIZE // width)
    with holding_bits(1, **level) as party:
        sql = f"SELECT BIN(id, {width}), MEDIAN(x) FROM t GROUP BY BIN(id, {width})"
        plan = party.make_plan(sql, values * LEAST)
        assert (plan.fitted, plan.epsilon) == (values, values * LEAST)
        with pytest.raises(InvalidInput, match="or more"):
            party.make_plan(sql, values * LEAST * Fraction(99, 100))


def test_nobody_is_found_by_what_fails() -> None:
    """One value that is too large for a product of decimals, searched for by halves: every question is answered."""
    draw = random.Random(4)
    victim, people = draw.randrange(3000), 3000
    values = [Decimal(draw.randrange(10**8)).scaleb(-6) for _ in range(people)]
    values[victim] = Decimal(1_000_000)
    table = pa.table({"id": list(range(people)), "x": pa.array(values, pa.decimal128(18, 6))})
    columns = {
        "id": {"type": "integer", "bounds": [0, people], "nullable": False},
        "x": {"type": "decimal", "decimals": 6, "bounds": [0, 10**7]},
    }
    first, last = 0, people
    with TrustedParty.open(table, name="t", columns=columns, protection="differential", budget=10) as party:
        while last - first > 1:
            middle = (first + last) // 2
            try:
                party.query(f"SELECT MEDIAN(x) FROM t WHERE id >= {first} AND id < {middle}", "0.05")
                first = middle
            except AnswerFailed:
                last = middle
    assert last == people, "the search was told nothing"

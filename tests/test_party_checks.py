"""Whole answers with distance checks, through SQL: what both tell together, over all neighbouring small tables.

The loss of a checked answer is that of the answer and that of its check, given the worst answer there can be: a check
is of what was drawn before. Answers at ``differential`` are each calibrated on its own table, those at ``individual``
are frozen at the data. Tables, neighbours and the losses of answers are those of ``test_party_differential``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import pytest

from idios.core import calibration
from idios.core.calibration import Added, Mechanism, Silent
from idios.core.distance_check import DistanceCheck
from idios.core.summary import Summary
from idios.party import TrustedParty
from idios.plan.question import Aggregate, Plan
from tests.core.renyi import Losses, find_key, find_share, lose_mechanisms, lose_noise
from tests.losses import ROUNDING, find_loss
from tests.test_party_differential import (
    COLUMNS,
    RECORDS,
    Drawing,
    Table,
    list_neighbours,
    list_tables,
    make_data,
    read_table,
)

SHARE = Fraction(1, 4)
EPSILONS = {"pure": Fraction(2), "concentrated": Fraction(1, 2)}
NOTIONS = ["replace", "add-remove"]
BUDGETS: dict[str, dict[str, Any]] = {
    "pure": {"budget": 10**6},
    "concentrated": {"accounting": "concentrated", "budget": {"epsilon": 1000, "delta": "1e-6"}},
}
FAR = 10**7

QUESTIONS = [
    "SELECT MEDIAN(x) FROM t",
    "SELECT MEDIAN(x), IQR(x), COUNT(*) FROM t WHERE x <= 1",
    "SELECT QUANTILE(b, 0.25), TRIMMED_MEAN(b, 0.3) FROM t WHERE g = 'a'",
    "SELECT g, MEDIAN(b), COUNT(*) FROM t GROUP BY g",
    "SELECT g, KTH_LARGEST(b, 2), IQR(b) FROM t WHERE x >= 1 GROUP BY g",
]


OPENED: list[TrustedParty] = []


@pytest.fixture(scope="module", autouse=True)
def _parties() -> Iterator[None]:
    yield
    open_party.cache_clear()
    while OPENED:
        OPENED.pop().close()


@cache
def open_party(level: str, notion: str, size: int, accounting: str) -> TrustedParty:
    """A party whose table has this size, which is public under replace."""
    party = TrustedParty.open(
        make_data(tuple(RECORDS[:1] * size)),
        name="t",
        columns=COLUMNS,
        neighbours=notion,
        protection=level,
        min_epsilon="0.001",
        fineness=60,
        parameters={"trim": False, "quantile": False, "k": False},
        check=SHARE,
        **BUDGETS[accounting],
    )
    OPENED.append(party)
    return party


def make_plan(sql: str, level: str, notion: str, size: int, accounting: str = "pure") -> Plan:
    return open_party(level, notion, size, accounting).make_plan(sql, EPSILONS[accounting])


@pytest.fixture(autouse=True)
def _however_few_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of three records are refused where their number is public."""
    monkeypatch.setattr(calibration, "refuse_hopeless", lambda *_: None)
    monkeypatch.setattr(calibration, "refuse_too_few", lambda *_: None)
    monkeypatch.setattr(calibration, "refuse_undefined", lambda *_: None)


def list_points(aggregate: Aggregate) -> list[Fraction]:
    """Answers of every kind: all around the values, between the points of the grid, and far away."""
    unit = Fraction(aggregate.statistic.resolution(60), 4)
    return [Fraction(-FAR), *(unit * quarter for quarter in range(-6, 46)), Fraction(FAR)]


def measure_cells(drawing: Drawing) -> list[list[list[int]]]:
    """s of all points, by cell and aggregate; nothing where there is no check."""
    return [
        [
            []
            if aggregate.check is None
            else [aggregate.check.measure(aggregate.statistic, summary, point, 60) for point in list_points(aggregate)]
            for aggregate, summary in zip(drawing.plan.aggregates, cell, strict=True)
        ]
        for cell in drawing.summaries
    ]


Measured = tuple[Drawing, list[list[list[int]]]]


Drawn = tuple[Mechanism, Mechanism, DistanceCheck | None, int]


def list_drawn(one: Measured, two: Measured, frozen: bool) -> Iterator[Drawn]:
    """What is drawn in every cell, here and there, its check, and how far s moves after the worst answer."""
    (drawing, here), (other, there) = one, two
    (mine,), (theirs,) = drawing.mechanisms.values(), other.mechanisms.values()
    for cell in range(len(here)):
        for i, aggregate in enumerate(drawing.plan.aggregates):
            mechanism, its = mine[cell][i], theirs[cell][i]
            if frozen:
                its = freeze(mechanism, aggregate, other.summaries[cell][i])
            moved = max((abs(a - b) for a, b in zip(here[cell][i], there[cell][i], strict=True)), default=0)
            yield mechanism, its, None if isinstance(mechanism, Silent) else aggregate.check, moved


def freeze(mechanism: Mechanism, aggregate: Aggregate, summary: Summary) -> Mechanism:
    """The mechanism as calibrated, on another table; one without a value there stands for any, as calibration knows."""
    if not isinstance(mechanism, Added):
        return mechanism
    value = aggregate.statistic.envelope(summary, 0, 60).value
    return mechanism if value is None else replace(mechanism, value=value)


def lose(one: Measured, two: Measured, frozen: bool) -> float:
    """The loss of answers and checks together."""
    return sum(
        find_loss(mine, theirs) + (float(check.noise.log_ratio(moved)) if check else 0.0)  # type: ignore[union-attr]
        for mine, theirs, check, moved in list_drawn(one, two, frozen)
    )


def share_rho(one: Measured, two: Measured, frozen: bool, rho: Fraction) -> float:
    """What answers and checks lose together, in units of ρ."""
    parts = [
        (find_key(mine, theirs), check and (moved, check.noise))
        for mine, theirs, check, moved in list_drawn(one, two, frozen)
    ]
    return _share_rho(tuple(parts), rho)


@cache
def _share_rho(parts: tuple[tuple[Any, Any], ...], rho: Fraction) -> float:
    losses: list[Losses] = []
    for key, told in parts:
        losses += [lose_noise(*key[:2])] if isinstance(key[0], int) else lose_mechanisms(*key)
        losses += [lose_noise(*told)] if told else []
    return find_share(losses, float(rho))


def find_worst(
    sql: str, level: str, notion: str, accounting: str = "pure", change: Callable[[Plan], Plan] = lambda plan: plan
) -> float:
    """The greatest loss over all ordered pairs of neighbours, in units of what the plan costs."""
    sizes = range(1 if notion == "replace" else 0, 4 if accounting == "pure" or sql.endswith("FROM t") else 3)
    plans = {size: make_plan(sql, level, notion, size, accounting) for size in sizes}
    drawings = {table: read_table(table, change(plans[len(table)])) for table in list_tables(sizes)}
    measured: dict[Table, Measured] = {table: (drawing, measure_cells(drawing)) for table, drawing in drawings.items()}
    frozen, worst = level == "individual", 0.0
    for table, here in measured.items():
        plan = plans[len(table)]
        for other in set(list_neighbours(table, notion)) & measured.keys() - {table}:
            if accounting == "pure":
                loss = lose(here, measured[other], frozen) / float(plan.epsilon)
            else:
                loss = share_rho(here, measured[other], frozen, plan.rho)
            worst = max(worst, loss)
    return worst


def list_checks(plan: Plan) -> list[DistanceCheck]:
    return [aggregate.check for aggregate in plan.aggregates if aggregate.check]


@pytest.mark.slow
@pytest.mark.parametrize("notion", NOTIONS)
@pytest.mark.parametrize("level", ["differential", "individual"])
@pytest.mark.parametrize("sql", QUESTIONS)
def test_a_checked_answer_loses_at_most_what_it_costs(sql: str, level: str, notion: str) -> None:
    plan = make_plan(sql, level, notion, 3)
    assert plan.epsilon == EPSILONS["pure"]
    assert list_checks(plan)
    assert 0.45 < find_worst(sql, level, notion) <= 1 + ROUNDING


@pytest.mark.slow
@pytest.mark.parametrize("notion", NOTIONS)
@pytest.mark.parametrize("level", ["differential", "individual"])
@pytest.mark.parametrize("sql", QUESTIONS[:4])
def test_a_checked_answer_loses_at_most_its_rho(sql: str, level: str, notion: str) -> None:
    plan = make_plan(sql, level, notion, 3, "concentrated")
    assert {check.rho is not None for check in list_checks(plan)} == {level == "individual"}
    assert 0.1 < find_worst(sql, level, notion, "concentrated") <= 1 + ROUNDING


# ---------------------------------------------------------------------------------------------- planted errors


def change_checks(change: Callable[[DistanceCheck], DistanceCheck]) -> Callable[[Plan], Plan]:
    def changed(plan: Plan) -> Plan:
        aggregates = [replace(a, check=change(a.check)) if a.check else a for a in plan.aggregates]
        return replace(plan, aggregates=tuple(aggregates))

    return changed


@pytest.mark.slow
def test_checks_of_two_cells_with_all_of_their_share_are_caught() -> None:
    twice = change_checks(lambda check: replace(check, epsilon=2 * check.epsilon))
    assert find_worst(QUESTIONS[3], "individual", "replace", change=twice) > 1


@pytest.mark.slow
def test_gaussian_checks_of_two_cells_with_the_noise_of_one_are_caught() -> None:
    single = change_checks(lambda check: replace(check, squared=4))
    sql = "SELECT g, MEDIAN(b) FROM t GROUP BY g"
    assert find_worst(sql, "individual", "replace", "concentrated") <= 1 + ROUNDING
    assert find_worst(sql, "individual", "replace", "concentrated", single) > 1


# ------------------------------------------------------------------------------------------- what is not checked


def test_counts_and_sums_are_not_checked_where_a_floor_of_0_fits_them_to_the_data() -> None:
    """An envelope of sums far out takes minutes, and how far off they are is as good as public."""
    data = make_data(tuple(RECORDS))
    with TrustedParty.open(
        data, name="t", columns=COLUMNS, budget=10, floor=0, check=SHARE, protection="individual"
    ) as party:
        plan = party.make_plan("SELECT SUM(b), COUNT(*), COUNT(DISTINCT b), MEDIAN(b) FROM t WHERE x >= 1", 1)
    checked: Sequence[str] = [aggregate.label for aggregate in plan.aggregates if aggregate.check]
    assert checked == ["MEDIAN(b)"]

"""Margins and intervals: where they are public, that they hold, and what is said where there are none."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date
from fractions import Fraction
from itertools import chain
from typing import Any

import numpy as np
import pytest

from idios.answer.assembly import make_answer
from idios.answer.intervals import (
    UNKNOWN_MARGIN,
    StoredIntervals,
    draw_with_interval,
    find_intervals,
    find_public_range,
)
from idios.answer.release import calibrate_plan, draw_table
from idios.cli.output import print_answer
from idios.core.calibration import Added, Choice, Method, make_global_noise
from idios.core.distributions import DiscreteLaplace
from idios.core.distributions.noisy_moments import find_half_width
from idios.core.neighbours import Moves
from idios.core.sampling import SeededSource
from idios.core.statistics import FINENESS, STATISTICS, Count, Statistic
from idios.core.statistics.averages import Mean
from idios.core.statistics.spread import Variance
from idios.model import Answer, ReleasedTable
from idios.party import TrustedParty
from idios.plan.question import Plan
from idios.server.console.presentation import present_answer

ROWS = 600
CONCENTRATED = {"accounting": "concentrated", "budget": {"epsilon": 1000, "delta": "1e-6"}}
COLUMNS: dict[str, Any] = {
    "age": {"type": "integer", "bounds": [0, 120], "nullable": False},
    "income": {"type": "integer", "nullable": False},
    "region": {"type": "category", "values": ["north", "south"], "nullable": False},
    "born": {"type": "date", "bounds": ["1900-01-01", "2026-12-31"], "nullable": False},
}


def make_rows() -> dict[str, Any]:
    rng = np.random.default_rng(11)
    return {
        "age": rng.integers(18, 90, ROWS),
        "income": rng.lognormal(10, 1, ROWS).astype(np.int64) - 5000,
        "region": rng.choice(["north", "south"], ROWS),
        "born": [date(1950 + i % 50, 1 + i % 12, 1) for i in range(ROWS)],
    }


def open_party(**options: Any) -> TrustedParty:
    options = {"protection": "differential", "check": 0, "budget": 10**6} | options
    return TrustedParty.open(make_rows(), name="people", columns=COLUMNS, **options)


@pytest.fixture(scope="module")
def party() -> Iterator[TrustedParty]:
    with open_party() as opened:
        yield opened


def clip(values: np.ndarray, table: ReleasedTable) -> np.ndarray:
    """The values as the statistic saw them."""
    limits = table.clipped[0][0] if table.clipped else None
    return values if limits is None else np.clip(values, float(limits[0]), float(limits[1]))


TRUTHS = {
    "COUNT(*)": len,
    "SUM": np.sum,
    "AVG": np.mean,
    "VARIANCE": np.var,
    "STDDEV": np.std,
}


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize(
    ("notion", "where"), [("replace", ""), ("replace", "WHERE age < 60"), ("add-remove", "WHERE age < 60")]
)
@pytest.mark.parametrize("column", ["age", "income"])
@pytest.mark.parametrize("function", list(TRUTHS))
def test_an_interval_holds_the_truth_in_nineteen_of_twenty_draws(
    where: str, column: str, function: str, notion: str
) -> None:
    """Of clipped values, where limits were drawn; 100 fixed seeds, and at most 5 % + 3 standard deviations missed."""
    rows = make_rows()
    selected = rows[column][rows["age"] < 60] if where else rows[column]
    call = function if function == "COUNT(*)" else f"{function}({column})"
    with open_party(neighbours=notion) as party:
        plan = party.make_plan(f"SELECT {call} FROM people {where}", 1 if column == "age" else 16)
        backend, missed, stated = party.datasets["people"].backend, 0, 0
        for seed in range(100):
            table = draw_table(plan, backend, None, SeededSource(seed))
            [[found]] = table.intervals or [[None]]
            if found is None and column == "income":
                continue  # too many values may be clipped
            truth = float(TRUTHS[function](clip(selected, table)))
            low, high = (float(Fraction(end)) for end in found or ("0", "0"))
            assert low <= float(Fraction(table.cells[0][0] or "0")) <= high
            stated += 1
            missed += not low - 1e-6 <= truth <= high + 1e-6
    assert stated >= 30
    assert missed / stated <= 0.05 + 3 * (0.05 * 0.95 / stated) ** 0.5


def test_the_margin_of_an_average_of_a_whole_table_is_known_before_asking(party: TrustedParty) -> None:
    for sql in ("SELECT AVG(age) AS a FROM people", "SELECT VARIANCE(age) AS a FROM people"):
        quoted, answer = party.quote(sql, 1), party.query(sql, 1)
        assert quoted.margins == answer.margins
        assert quoted.margins["a"] is not None
        assert quoted.margins["a"] > 0
        assert quoted.margin_reasons == answer.margin_reasons == {}
        [(low, high)] = answer.interval_rows[0].values()
        assert Fraction(high) - Fraction(low) == 2 * quoted.margins["a"]
    # sensitivity 120/600, so that 95 % of noise of scale 0.2 is within ln 20 times that
    margin = party.quote("SELECT AVG(age) AS a FROM people", 1).margins["a"]
    assert float(margin or 0) == pytest.approx(0.2 * np.log(20), abs=1e-5)


def test_the_least_epsilon_for_the_margin_of_an_average(party: TrustedParty) -> None:
    sql = "SELECT AVG(age) AS a FROM people"
    epsilon = party.find_epsilon(sql, 2)
    assert party.quote(sql, epsilon).margins["a"] <= 2  # type: ignore[operator]
    assert party.quote(sql, epsilon * Fraction(99, 100)).margins["a"] > 2  # type: ignore[operator]


def test_a_size_that_is_not_public_tells_no_margin() -> None:
    with open_party(neighbours="add-remove") as party:
        quoted = party.quote("SELECT AVG(age) AS a, SUM(age) AS s, AVG(income) AS c FROM people", 1)
        assert quoted.margins["a"] is quoted.margins["c"] is None
        assert quoted.margins["s"] is not None
        reasons = {"a": UNKNOWN_MARGIN[Method.MOMENTS], "c": UNKNOWN_MARGIN[Method.CLIPPED]}
        assert quoted.margin_reasons == reasons


@pytest.mark.parametrize("protection", ["individual", "differential"])
def test_noise_that_follows_the_data_has_neither_and_says_so_once(protection: str) -> None:
    with open_party(protection=protection) as party:
        answer = party.query("SELECT region, MEDIAN(age) AS m, COUNT(*) AS n FROM people GROUP BY region", 4)
        assert answer.interval_columns == ("n",)
        assert list(answer.margin_reasons) == ["m"]
        method = Method.LOCAL if protection == "individual" else Method.INVERSE
        assert answer.margin_reason == UNKNOWN_MARGIN[method]
        assert not any(name.startswith("m_") for name in answer.to_pandas().columns)


def test_an_interval_stays_in_the_public_range(party: TrustedParty) -> None:
    """A count is not below 0, and a drawn value that was clamped keeps its whole margin on the other side."""
    noise = Added(3, DiscreteLaplace(Fraction(10)))
    (count,) = party.make_plan("SELECT COUNT(*) FROM people WHERE age < 60", 1).aggregates
    seen = set()
    for seed in range(50):
        point, interval, _ = draw_with_interval(count, noise, FINENESS, SeededSource(seed))
        assert point is not None
        assert interval is not None
        assert interval == (max(0, point - 30), point + 30)
        seen.add(point)
    assert 0 in seen
    fitted = replace(count, choice=Choice(Method.LOCAL, 1, Fraction(1)))
    assert draw_with_interval(fitted, noise, FINENESS, SeededSource(1))[1] is None


def test_the_number_of_records_of_a_public_table_is_exact(party: TrustedParty) -> None:
    answer = party.query("SELECT COUNT(*) AS n FROM people", 1)
    assert answer.interval_rows == ({"n": ("600", "600")},)


def test_a_stored_interval_is_the_one_that_was_drawn(party: TrustedParty) -> None:
    first = party.query("SELECT AVG(age) AS mine FROM people WHERE age < 50", 1)
    second = party.query("SELECT AVG(age) AS yours FROM people WHERE age <= 49", 1)
    assert second.stored
    assert first.interval_rows[0]["mine"] == second.interval_rows[0]["yours"]


def test_tables_of_before_have_no_intervals_and_are_answered(party: TrustedParty) -> None:
    plan = party.make_plan("SELECT AVG(age) AS a FROM people WHERE age < 50", 1)
    old = draw_table(plan, party.datasets["people"].backend, None, SeededSource(1))
    text = ReleasedTable.from_text(old.to_text().partition(',"intervals"')[0] + "}")
    answer = make_answer(plan, text, id="old")
    assert answer.interval_rows == ()
    assert answer.intervals == {}
    assert Answer.from_dict(answer.to_dict()) == answer


# Intervals at any confidence, of what is stored.

QUESTIONS = [
    "SELECT COUNT(*) AS a, SUM(age) AS b, AVG(age) AS c, VARIANCE(age) AS d FROM people",
    "SELECT COUNT(*), SUM(age), AVG(age), STDDEV(age), MEDIAN(age), MODE(region) FROM people WHERE age < 60",
    "SELECT SUM(income), AVG(income), VARIANCE(income) FROM people",
    "SELECT region, COUNT(*), SUM(income), AVG(income), STDDEV(income), COUNT(born) FROM people GROUP BY region",
    "SELECT COUNT(born), MEDIAN(born) FROM people WHERE age < 60",
]


def compute_intervals(plan: Plan, table: ReleasedTable, parts: int) -> list[list[tuple[Fraction, Fraction] | None]]:
    """As for any confidence: nothing is read from the intervals that are stored."""
    found = StoredIntervals(plan, table)
    return [[found.compute(cell, i, parts) for i in range(len(plan.aggregates))] for cell in range(len(table.cells))]


@pytest.mark.parametrize("options", [{}, {"neighbours": "add-remove"}, {"protection": "individual"}, CONCENTRATED])
def test_intervals_of_what_is_stored_widen_from_the_stored_ones(options: dict[str, Any]) -> None:
    """Computed anew at 95 % they are the stored ones, from the text that the ledger keeps; so is what is not there."""
    with open_party(**options) as party:
        for seed, sql in enumerate(QUESTIONS):
            plan = party.make_plan(sql, 40 if "income" in sql else 4)
            drawn = draw_table(plan, party.datasets["people"].backend, None, SeededSource(seed))
            table = ReleasedTable.from_text(drawn.to_text())
            stored = find_intervals(plan, table, 1)
            assert stored == compute_intervals(plan, table, 1)
            narrower = stored
            for parts in (2, 5, 20):
                wider = find_intervals(plan, table, parts)
                for near, far in zip(chain(*narrower), chain(*wider), strict=True):
                    assert (near is None) == (far is None)
                    assert near is None or far is None or far[0] <= near[0] <= near[1] <= far[1]
                narrower = wider
            assert narrower != stored


def test_tables_of_before_have_only_the_intervals_that_are_stored() -> None:
    """Their noisy sums are missing, and those of counts and sums are not needed."""
    with open_party() as party:
        plan = party.make_plan("SELECT COUNT(*), AVG(age), STDDEV(income) FROM people WHERE age < 60", 2)
        table = draw_table(plan, party.datasets["people"].backend, None, SeededSource(1))
        old = replace(table, noisy_sums=())
        assert find_intervals(plan, old, 1) == find_intervals(plan, table, 1)
        [found], [new] = find_intervals(plan, old, 2), find_intervals(plan, table, 2)
        counts = [isinstance(aggregate.statistic, Count) for aggregate in plan.aggregates]
        assert found == [pair if counted else None for pair, counted in zip(new, counts, strict=True)]
        assert None not in new[:2]


@pytest.mark.parametrize("parts", [1, 2, 5, 20])
def test_added_noise_is_within_its_interval_as_often_as_is_said(party: TrustedParty, parts: int) -> None:
    """From the exact law: of a count and a sum whatever the noise is, and no interval is wider than it must be."""
    plan = party.make_plan("SELECT COUNT(*), SUM(age) FROM people WHERE age < 60", 1)
    table = draw_table(plan, party.datasets["people"].backend, None, SeededSource(1))
    with party.datasets["people"].backend.open_snapshot(plan) as snapshot:
        [mechanisms] = calibrate_plan(plan, snapshot.summaries)
    for i, mechanism in enumerate(mechanisms):
        assert isinstance(mechanism, Added)
        noises = np.arange(-12_000, 12_001)
        chances = mechanism.noise.pmf(noises)
        # the interval of each answer is that of the first one, moved along
        [pair] = (row[i] for row in compute_intervals(plan, table, parts))
        assert pair is not None
        half = (pair[1] - pair[0]) / 2
        assert chances[abs(noises) <= half].sum() >= 1 - 0.05 / parts - 1e-12
        assert chances[abs(noises) < half].sum() < 1 - 0.05 / parts


def test_the_noise_of_made_up_data_is_for_its_own_number_of_records(
    party: TrustedParty, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer, seen = party.query("SELECT AVG(age) AS a FROM people", 1), list[tuple[Plan, ReleasedTable]]()

    def note(plan: Plan, table: ReleasedTable, **_: Any) -> Answer:
        seen.append((plan, table))
        return answer

    monkeypatch.setattr("idios.party.make_answer", note)
    party.sandbox("SELECT AVG(age) AS a FROM people", 1)
    assert seen[-1][0].dataset.size == 1000
    assert compute_intervals(*seen[-1], 1) == find_intervals(*seen[-1], 1)


def test_what_has_public_noise_is_a_number() -> None:
    """So intervals are numbers, and need not be read from moments that are written rounded."""
    for statistic in STATISTICS:
        if statistic.global_sensitivity is not Statistic.global_sensitivity or issubclass(statistic, Mean | Variance):
            assert statistic.degree == 0 or not statistic.kinds & {"date", "timestamp"}


def test_a_thousand_cells_take_no_time() -> None:
    columns: dict[str, Any] = COLUMNS | {
        "place": {"type": "category", "values": [f"p{i}" for i in range(500)], "nullable": False}
    }
    rows = make_rows() | {"place": [f"p{i % 500}" for i in range(ROWS)]}
    with TrustedParty.open(rows, name="people", columns=columns, budget=10**6, protection="differential") as party:
        plan = party.make_plan("SELECT place, COUNT(*), AVG(age) FROM people GROUP BY place", 100)
        table = draw_table(plan, party.datasets["people"].backend, None, SeededSource(1))
        find_intervals(plan, table, 2)
        start = time.process_time()
        find_intervals(plan, table, 2)
        assert time.process_time() - start < 0.5


# Rows that are chosen because of their noise.

GROUPS, FEWER, DRAWS = 200, 40, 2000
EACH = 30
GROUPED = "SELECT g, COUNT(*) AS n, SUM(x) AS s, AVG(x) AS a, COUNT(*) + SUM(x) AS both FROM t GROUP BY g"
COUNTED = "SELECT g, COUNT(*) AS n, COUNT(*) + 1 AS e FROM t GROUP BY g"
FOLDED = (
    "SELECT g, MAX(n) AS m FROM (SELECT g, h, COUNT(*) AS n FROM t GROUP BY g, h) GROUP BY g ORDER BY m DESC LIMIT 1"
)


def open_groups(groups: int) -> TrustedParty:
    """Groups of 30 values that are all alike: which of them is shown is for their noise alone to decide."""
    columns: dict[str, Any] = {
        "x": {"type": "integer", "bounds": [0, 10], "nullable": False},
        "g": {"type": "category", "values": [f"g{i}" for i in range(groups)], "nullable": False},
        "h": {"type": "category", "values": ["u", "v"], "nullable": False},
    }
    size = groups * EACH
    rows = {
        "x": [i // groups % 5 for i in range(size)],
        "g": [f"g{i % groups}" for i in range(size)],
        "h": [("u", "v")[i // groups % 2] for i in range(size)],
    }
    options: dict[str, Any] = {"protection": "differential", "check": 0, "budget": 10**6}
    return TrustedParty.open(rows, name="t", columns=columns, **options)


@pytest.fixture(scope="module")
def equal_groups() -> Iterator[TrustedParty]:
    with open_groups(GROUPS) as opened:
        yield opened


TRUE = {"n": EACH, "s": 2 * EACH, "a": 2, "both": 3 * EACH, "e": EACH + 1, "m": EACH // 2}


def draw_tables(party: TrustedParty, plan: Plan, times: int, seed: int) -> Iterator[ReleasedTable]:
    """What is released, so many times over: all the noise of an aggregate is drawn at once."""
    backend, source = party.datasets["t"].backend, SeededSource(seed)
    first, count = draw_table(plan, backend, None, source), len(plan.cells)
    with backend.open_snapshot(plan) as snapshot:
        calibrated = calibrate_plan(plan, snapshot.summaries)
    drawn = [
        draw_values(plan, number, [row[number] for row in calibrated], times, source)
        for number in range(len(plan.aggregates))
    ]
    for i in range(times):
        rows = [[column[i * count + cell] for column in drawn] for cell in range(count)]
        values, intervals, sums = (tuple(tuple(each[part] for each in row) for row in rows) for part in range(3))
        yield replace(first, cells=values, intervals=intervals, noisy_sums=sums)


def draw_values(plan: Plan, number: int, mechanisms: Sequence[Any], times: int, source: SeededSource) -> list[Any]:
    """Values with their intervals at 95 % and their noisy sums, for each cell so many times."""
    aggregate, fineness = plan.aggregates[number], plan.dataset.protection.fineness
    step = aggregate.statistic.answer_step(aggregate.grid, fineness)
    low, high = find_public_range(aggregate.statistic, aggregate.grid, fineness)

    def write(*points: int) -> tuple[str, ...]:
        return tuple(str(min(max(point, low), high) * step) for point in points)

    found: list[Any] = []
    if isinstance(mechanisms[0], Added):
        half = find_half_width(mechanisms[0].noise)
        for noise in mechanisms[0].noise.sample(times * len(mechanisms), source).tolist():
            point = int(min(max(mechanisms[len(found) % len(mechanisms)].value + noise, low), high))
            found.append((*write(point), write(point - half, point + half), None))
        return found
    noises = [noise.sample(times * len(mechanisms), source).tolist() for noise in list_noises(mechanisms[0])]
    for drawn in zip(*noises, strict=True):
        mechanism = mechanisms[len(found) % len(mechanisms)]
        sums = (mechanism.deviation + drawn[0], mechanism.size + drawn[1])
        point = mechanism.place(*sums)
        pair = None if number in plan.choosing or point is None else write(*mechanism.find_interval(*sums))
        found.append((None if point is None else write(point)[0], pair, sums))
    return found


def list_noises(mechanism: Any) -> list[DiscreteLaplace]:
    return [mechanism.sum_noise, mechanism.count_noise]


def count_covered(party: TrustedParty, sql: str, times: int, column: str) -> tuple[int, int]:
    """Of so many draws: how many show rows, and in how many of these all intervals hold."""
    plan, shown, held = party.make_plan(sql, 2), 0, 0
    for table in draw_tables(party, plan, times, 3):
        answer = make_answer(plan, table, id="")
        pairs = [row[column] for row in answer.interval_rows]
        assert len(pairs) == len(answer.exact_rows)
        shown += bool(pairs)
        held += bool(pairs) and all(Fraction(low) <= TRUE[column] <= Fraction(high) for low, high in pairs)
    return shown, held


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize(
    ("sql", "column"),
    [
        (f"{COUNTED} ORDER BY n DESC LIMIT 1", "n"),
        (f"{COUNTED} ORDER BY e LIMIT 3", "e"),
        (f"{COUNTED} HAVING COUNT(*) > 31", "n"),
        (f"SELECT g, n FROM ({COUNTED}) WHERE n > 31", "n"),
        ("SELECT g, AVG(x) AS a FROM t GROUP BY g ORDER BY a DESC LIMIT 1", "a"),
        ("SELECT g, COUNT(*) AS n, COUNT(*) + SUM(x) AS both FROM t GROUP BY g ORDER BY n DESC LIMIT 1", "both"),
        ("SELECT g, SUM(x) AS s FROM t GROUP BY g ORDER BY COUNT(*) DESC LIMIT 1", "s"),
        (FOLDED, "m"),
    ],
)
def test_intervals_of_chosen_rows_hold(sql: str, column: str) -> None:
    """Of 2,000 draws those that show no wrong interval; 40 groups, so that it takes a few seconds each."""
    with open_groups(FEWER) as party:
        shown, held = count_covered(party, sql, DRAWS, column)
    assert shown > DRAWS * 0.9
    assert held >= 0.94 * shown


def test_the_greatest_of_many_is_within_its_interval_by_the_exact_law(equal_groups: TrustedParty) -> None:
    """It misses if any of 200 noises is beyond; at 95 % for each, as for a row fixed beforehand, nearly always."""
    plan = equal_groups.make_plan(f"{GROUPED} ORDER BY n DESC LIMIT 1", 2)
    number = dict(plan.measures)["n"]
    [table] = draw_tables(equal_groups, plan, 1, 1)
    with equal_groups.datasets["t"].backend.open_snapshot(plan) as snapshot:
        mechanism = calibrate_plan(plan, snapshot.summaries)[0][number]
    assert isinstance(mechanism, Added)
    answer = make_answer(plan, table, id="")
    low, high = map(int, answer.interval_rows[0]["n"])
    value = int(answer.exact_rows[0]["n"] or 0)
    assert high - value == value - low == answer.margins["n"] == equal_groups.quote(plan.sql, 2).margins["n"]
    fixed = find_half_width(mechanism.noise)
    assert mechanism.noise.cdf(high - value) ** GROUPS >= 0.95
    assert mechanism.noise.cdf(fixed) ** GROUPS < 0.05


@pytest.mark.parametrize(
    ("sql", "chosen"),
    [
        (GROUPED, ()),
        (f"{GROUPED} ORDER BY n DESC", ()),
        (f"{GROUPED} ORDER BY n DESC LIMIT 200", ()),
        (f"{GROUPED} ORDER BY g DESC LIMIT 2", ()),
        (f"{GROUPED} LIMIT 2", ()),
        (f"{GROUPED} HAVING g <> 'g7'", ()),
        (f"SELECT g, n, s, a FROM ({GROUPED}) WHERE g <> 'g7' LIMIT 9", ()),
        (f"{GROUPED} ORDER BY n DESC OFFSET 1", ("n", "both")),
        (f"{GROUPED} ORDER BY n DESC, s LIMIT 1", ("n", "s", "both")),
        (f"{GROUPED} HAVING a > 1", ("a",)),
        (f"{GROUPED} HAVING ROUND(a) = 2 AND g <> 'g7'", ("a",)),
        (f"SELECT g, n, s, a FROM ({GROUPED} ORDER BY n) LIMIT 4", ("n",)),
        (f"SELECT g, n, s, a FROM (SELECT * FROM ({GROUPED}) WHERE s > 5) WHERE n > 3", ("n", "s")),
    ],
)
def test_only_what_chooses_rows_is_widened(equal_groups: TrustedParty, sql: str, chosen: tuple[str, ...]) -> None:
    """Whatever else is drawn is independent of that choice, and its interval is that of a row fixed beforehand."""
    plan = equal_groups.make_plan(sql, 2)
    [table] = draw_tables(equal_groups, plan, 1, 1)
    answer, numbers = make_answer(plan, table, id=""), dict(plan.measures)
    kept = StoredIntervals(plan, table)
    cells = {f"g{plan.cells[i][0]}": i for i in range(GROUPS)}
    assert answer.exact_rows
    for row, intervals in zip(answer.exact_rows, answer.interval_rows, strict=True):
        for label in ("n", "s", "a"):
            pair = kept.compute(cells[str(row["g"])], numbers[label], GROUPS if label in chosen else 1)
            assert tuple(map(Fraction, intervals[label])) == pair
    told = [note for note in answer.notes if note.startswith("Rows are chosen by")]
    assert bool(told) == bool(chosen)
    quoted = equal_groups.quote(sql, 2)
    assert quoted.margins == {label: answer.margins.get(label, quoted.margins[label]) for label in quoted.margins}
    assert [note for note in quoted.notes if note.startswith("Rows are chosen by")] == told


def test_chosen_rows_say_so(equal_groups: TrustedParty, capsys: pytest.CaptureFixture[str]) -> None:
    """In words, wherever an answer is read: which values chose, and how often the intervals hold then."""
    sql = f"{GROUPED} HAVING s > 0 ORDER BY n DESC LIMIT 2"
    answer = equal_groups.query(sql, 10)
    told = (
        "Rows are chosen by n and s as released, noise included: the truth might choose others.",
        "Intervals of n and s are each at 1 − 0.05/200: in 95 % of all draws none that is shown is wrong, of each "
        "statistic by itself.",
    )
    assert answer.notes == told
    assert Answer.from_dict(answer.to_dict()).notes == told
    print_answer(answer)
    printed = " ".join(capsys.readouterr().out.split())
    written = {"text": str(answer), "notebook": answer._repr_html_(), "csv": answer.to_csv(metadata=True) or ""}
    for way, text in {**written, "terminal": printed, "quote": str(equal_groups.quote(sql, 11))}.items():
        for sentence in told:
            assert sentence in text.replace("&gt;", ">"), way
    view = present_answer(answer)
    assert all(bar in str(view.charts[0]) for bar in ("g",))
    assert view.answer.notes == told


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT region FROM people GROUP BY region HAVING COUNT(*) > 5",
        "SELECT region, SUM(age) AS s FROM people GROUP BY region ORDER BY COUNT(*) LIMIT 1",
        "SELECT MAX(n) AS m FROM (SELECT region, COUNT(*) AS n FROM people GROUP BY region HAVING COUNT(*) > 5)",
    ],
)
def test_nothing_is_said_of_intervals_that_are_not_shown(party: TrustedParty, sql: str) -> None:
    [told] = party.quote(sql, 1).notes
    assert told.startswith("Rows are chosen by")
    assert not any(party.query(sql, 1).interval_rows) or "SUM(age)" in sql


def test_two_statistics_that_choose_do_not_hold_together(party: TrustedParty) -> None:
    """Each has 5 % of its own: where both are shown always, all their intervals hold in some 90 % of all draws."""
    sql = "SELECT COUNT(*) AS n, SUM(age) AS s FROM people WHERE age < 60 HAVING n > -1000 AND s > -1000000"
    plan = party.make_plan(sql, 2)
    assert len(plan.choosing) == 2
    together = 1.0
    for aggregate in plan.aggregates:
        moves = Moves(aggregate.neighbours, 1, 0)
        noise = make_global_noise(aggregate.choice, aggregate.statistic, aggregate.grid, moves, 10**6)
        together *= 1 - 2 * noise.cdf(-find_half_width(noise) - 1)
    assert together < 0.95
    assert party.quote(sql, 2).notes[-1].endswith("none that is shown is wrong, of each statistic by itself.")


def test_a_single_row_may_be_chosen_too(party: TrustedParty) -> None:
    """There is one that could have been, so that its interval is as it was; but it may be shown because it is wrong."""
    answer = party.query("SELECT COUNT(*) AS n FROM people WHERE age < 60 HAVING n > 0", 2)
    assert answer.notes == (
        "Rows are chosen by n as released, noise included: the truth might choose others.",
        "Intervals of n are each at 95 %: in 95 % of all draws none that is shown is wrong.",
    )


def test_rows_chosen_by_what_has_no_interval_say_only_that(party: TrustedParty) -> None:
    sql = "SELECT region, MEDIAN(age) AS m FROM people GROUP BY region ORDER BY m LIMIT 1"
    assert party.query(sql, 20).notes == (
        "Rows are chosen by m as released, noise included: the truth might choose others.",
    )
    assert party.query("SELECT COUNT(*) AS n FROM people HAVING n > 5", 1).notes == ()  # that is public

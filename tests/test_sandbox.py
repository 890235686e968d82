"""The sandbox: made-up tables from the declaration alone, answered by the code that answers real ones."""

from __future__ import annotations

import datetime
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from idios import sandbox as module
from idios.datasets import read_columns
from idios.errors import IdiosError, Unanswerable
from idios.party import TrustedParty
from idios.sandbox import ROWS, make_twin

COLUMNS: dict[str, Any] = {
    "age": {"type": "integer", "bounds": [0, 120], "nullable": False},
    "income": {"type": "integer"},
    "weight": {"type": "number", "step": "0.1", "bounds": [0, 300]},
    "height": {"type": "number"},
    "price": {"type": "decimal", "decimals": 2},
    "member": {"type": "boolean", "nullable": False},
    "born": {"type": "date"},
    "joined": {"type": "date", "bounds": ["2020-01-01", "2020-12-31"]},
    "seen": {"type": "timestamp"},
    "left": {"type": "timestamp", "bounds": ["2021-01-01", "2021-01-02"]},
    "region": {"type": "category", "values": ["north", "south", "east"]},
}
DATA = {
    "age": [30],
    "income": [4711],
    "weight": [70.5],
    "height": [1.8],
    "price": [9.99],
    "member": [True],
    "born": [datetime.date(1990, 1, 1)],
    "joined": [datetime.date(2020, 2, 2)],
    "seen": [datetime.datetime(2020, 1, 1)],
    "left": [datetime.datetime(2021, 1, 1, 12)],
    "region": ["north"],
}


def opened(rows: int = 50, **options: Any) -> TrustedParty:
    table = pa.table({name: values * rows for name, values in DATA.items()})
    return TrustedParty.open(table, name="people", columns=COLUMNS, budget=1, **options)


def _never(*given: object) -> Any:
    raise AssertionError("data was touched")


STATISTICS = [
    *(f"{name}(age)" for name in ("COUNT", "SUM", "AVG", "MEDIAN", "MIN", "MAX", "IQR", "VARIANCE", "STDDEV")),
    *(f"COUNT({column})" for column in COLUMNS),
    *(f"COUNT(DISTINCT {column})" for column in COLUMNS),
    *(f"MEDIAN({column})" for column in COLUMNS if column != "region"),
    *(f"KTH_LARGEST({column}, 2)" for column in COLUMNS if column != "region"),
    *(f"PERCENTILE_DISC({column}, 0.25)" for column in COLUMNS if column != "region"),
    *("COUNT(*)", "TRIMMED_MEAN(income, 0.05)", "WINSORIZED_MEAN(price, 0.1)", "QUANTILE(height, 0.9)"),
    *("KTH_SMALLEST(income, 5)", "MODE(region)", "SUM(weight)", "AVG(weight)", "AVG(member)", "MAX(joined)"),
    "MIN(left)",
]


@pytest.mark.slow
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("protection", ["individual", "group", "differential"])
def test_whatever_the_party_would_answer_is_answered_without_data_or_account(
    neighbours: str, protection: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"group": 2} if protection == "group" else {}
    with opened(neighbours=neighbours, protection=protection, **options) as party:
        before = party.ledger.head()
        for name in ("open_snapshot", "rows", "check"):
            monkeypatch.setattr(party.datasets["people"].backend, name, _never)
        answered = 0
        for statistic in STATISTICS:
            sql = f"SELECT {statistic} FROM people"
            try:
                plan = party.make_plan(sql, 1)
            except IdiosError as refusal:
                with pytest.raises(type(refusal)):
                    party.sandbox(sql, 1)
                continue
            answer = party.sandbox(sql, 1)
            assert answer.sandbox
            assert "free, invented data" in str(answer)
            answered += 1
            assert (answer.epsilon, answer.guarantee) == (plan.epsilon, plan.guarantee)
            assert answer.remaining is None
            assert not answer.stored
            assert answer.to_dict()["remaining"] is None
            if statistic.startswith(("COUNT", "MODE", "MEDIAN(age")):
                assert answer.value is not None
        assert answered > 50
        groups = party.sandbox("SELECT region, COUNT(*) FROM people WHERE age > 30 GROUP BY region", 1)
        assert [row["region"] for row in groups.rows] == ["north", "south", "east"]
        assert party.ledger.head() == before
        assert party.ledger.balance("people").epsilon.spent == 0
        assert not party.ledger.answers()


def test_refusals_are_the_same() -> None:
    with opened() as party, pytest.raises(Unanswerable, match="KTH_LARGEST"):
        party.sandbox("SELECT MAX(income) FROM people", 1)


def test_the_noise_is_real_and_nothing_is_kept() -> None:
    with opened() as party:
        drawn = {party.sandbox("SELECT MEDIAN(income) FROM people", "0.1").value for _ in range(8)}
    assert len(drawn) > 1


def test_the_twin_follows_from_the_declaration_alone() -> None:
    sql = "SELECT COUNT(*), MEDIAN(income) FROM people"
    tables = []
    for rows in (10, 99):
        with opened(rows) as party:
            party.sandbox(sql, 1)
            backend = party.twins.of(party.datasets["people"].dataset)
            tables.append([backend.points(name).to_pylist() for name in COLUMNS])  # type: ignore[attr-defined]
            assert backend.rows() == ROWS
            assert backend.check().sound
    assert tables[0] == tables[1]
    assert make_twin(read_columns(COLUMNS)).equals(make_twin(read_columns(COLUMNS)))
    changed = read_columns(COLUMNS | {"age": {"type": "integer", "bounds": [0, 121], "nullable": False}})
    assert not make_twin(changed)["age"].equals(make_twin(read_columns(COLUMNS))["age"])


def test_values_are_spread_over_what_is_declared() -> None:
    table = make_twin(read_columns(COLUMNS))
    for name, declared in COLUMNS.items():
        assert table[name].null_count == (0 if declared.get("nullable") is False else ROWS // 20)
    age = table["age"].to_numpy()
    assert set(np.unique(age)) <= set(range(121))
    assert len(np.unique(age)) > 100
    assert 50 < age.mean() < 70
    weight = np.array([value for value in table["weight"].to_pylist() if value is not None])
    assert 0 <= weight.min() < 10 < 290 < weight.max() <= 300
    assert np.allclose(weight * 10, np.round(weight * 10))
    income = np.array([value for value in table["income"].to_pylist() if value is not None])
    assert -1000 <= income.min() < -900 < 900 < income.max() <= 1000
    assert np.array_equal(income, np.round(income))
    assert {table["member"].to_numpy().tolist().count(value) > 400 for value in (0, 1)} == {True}
    born = [value for value in table["born"].to_pylist() if value is not None]
    assert datetime.date(1990, 1, 1) < min(born) < datetime.date(2000, 1, 1) < max(born) < datetime.date(2010, 1, 1)
    joined = [value for value in table["joined"].to_pylist() if value is not None]
    assert {value.year for value in joined} == {2020}
    assert len({value.month for value in joined}) == 12
    assert {value.year for value in table["left"].to_pylist() if value is not None} == {2021}
    assert {1995, 2005} < {value.year for value in table["seen"].to_pylist() if value is not None}
    regions = table["region"].to_pylist()
    assert all(regions.count(value) > 250 for value in ("north", "south", "east"))


@pytest.mark.parametrize(
    "declared",
    [
        {"type": "number", "step": "1e-100"},
        {"type": "number", "step": "1e100"},
        {"type": "integer", "step": 1000},
        {"type": "integer", "step": "1/3"},
        {"type": "integer", "bounds": [-(2**62), 2**62]},
        {"type": "integer", "bounds": [5, 5]},
        {"type": "integer", "bounds": [5, None]},
        {"type": "number", "bounds": [None, -7]},
        {"type": "decimal", "step": "0.25", "bounds": [0, None]},
        {"type": "date", "step": 7},
        {"type": "date", "bounds": ["0001-01-01", "9999-12-31"]},
        {"type": "timestamp", "bounds": ["1900-01-01", None]},
        {"type": "category", "values": ["it's one"]},
    ],
)
def test_odd_declarations_have_twins(declared: dict[str, Any]) -> None:
    [column] = read_columns({"x": declared}).values()
    table = make_twin({"x": column})
    assert len(table) == ROWS
    dataset = {"x": declared}
    source = {"x": table["x"]}  # fits whatever is declared
    with TrustedParty.open(pa.table(source), name="t", columns=dataset, budget=1) as party:
        statistic = "MODE(x)" if declared["type"] == "category" else "MEDIAN(x)"
        answer = party.sandbox(f"SELECT {statistic} FROM t", 1)
        assert answer.value is not None
        if declared.get("bounds") == [5, 5]:
            assert answer.value == 5
        low = declared.get("bounds", [None])[0]
        if isinstance(low, int):
            assert Fraction(answer.exact_rows[0][answer.columns[0]] or 0) >= low
        assert party.twins.of(party.datasets["t"].dataset).check().sound


def test_a_twin_is_made_once_and_only_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []

    def counting(columns: Any, *given: Any) -> Any:
        made.append(columns)
        return make_twin(columns, *given)

    monkeypatch.setattr(module, "make_twin", counting)
    with opened() as party:
        assert not made
        with pytest.raises(IdiosError):
            party.sandbox("SELECT MEDIAN(nothing) FROM people", 1)
        assert not made
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda i: party.sandbox(f"SELECT COUNT(*) FROM people WHERE age > {i}", 1), range(24)))
        assert len(made) == 1


def test_a_limited_party_has_no_sandbox_for_the_rest() -> None:
    with opened() as party:
        party.sandbox("SELECT COUNT(*) FROM people", 1)
        limited = party.limited_to(["people"])
        assert limited.twins is party.twins
        assert limited.sandbox("SELECT COUNT(*) FROM people", 1).value == ROWS
        with pytest.raises(IdiosError):
            party.limited_to([]).sandbox("SELECT COUNT(*) FROM people", 1)


@pytest.mark.parametrize(
    ("declared", "low", "high"),
    [
        ({"type": "integer", "centre": 30_000}, 29_000, 31_000),
        ({"type": "number", "step": 50, "centre": -30_000}, -80_000, 20_000),
        ({"type": "integer", "bounds": [29_900, None], "centre": 30_000}, 29_900, 31_000),
        ({"type": "integer", "bounds": [None, 30_100], "centre": 30_000}, 29_000, 30_100),
        ({"type": "integer", "bounds": [0, 120], "centre": 40}, 0, 120),
        ({"type": "date", "centre": "2020-06-01"}, datetime.date(2010, 6, 3), datetime.date(2030, 6, 2)),
    ],
)
def test_without_bounds_values_lie_around_the_centre(declared: dict[str, Any], low: Any, high: Any) -> None:
    values = [value for value in make_twin(read_columns({"x": declared}))["x"].to_pylist() if value is not None]
    tenth = (high - low) / 10
    assert low <= min(values) < low + tenth
    assert high - tenth < max(values) <= high


def test_a_centre_at_the_end_of_the_grid_has_a_twin() -> None:
    for declared in ({"type": "integer", "centre": 2**62}, {"type": "date", "centre": "9999-12-31"}):
        assert len(make_twin(read_columns({"x": declared}))) == ROWS

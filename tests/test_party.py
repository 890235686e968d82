"""The trusted party: the pipeline from SQL to a stored, private answer."""

from __future__ import annotations

import datetime
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

import idios
from idios.answer.release import calibrate_plan, draw_cell
from idios.core.clipping import ClippingPlan
from idios.core.distributions import DiscreteLaplace
from idios.core.sampling import SeededSource
from idios.data.backend import Backend, CancellationToken
from idios.errors import (
    AnswerFailed,
    BudgetExceeded,
    ConfigurationError,
    IdiosError,
    InvalidInput,
    KeyReused,
    LedgerError,
    NotPermitted,
    QuestionRefused,
    Unanswerable,
)
from idios.ledger import Ledger
from idios.party import TrustedParty

COLUMNS: dict[str, Any] = {
    "age": {"type": "integer", "bounds": [0, 120], "nullable": False},
    "income": {"type": "integer"},
    "region": {"type": "category", "values": ["north", "south", "east"]},
    "born": {"type": "date"},
}


def frame(rows: int = 2001) -> pa.Table:
    rng = np.random.default_rng(3)
    ages = rng.integers(18, 90, rows)
    return pa.table(
        {
            "age": ages,
            "income": pa.array([None if i % 50 == 0 else int(v) for i, v in enumerate(rng.lognormal(10, 1, rows))]),
            "region": rng.choice(["north", "south", "elsewhere"], rows),
            "born": pa.array([datetime.date(2026, 1, 1) - datetime.timedelta(days=int(a) * 365) for a in ages]),
        }
    )


@pytest.fixture
def party() -> Any:
    with TrustedParty.open(frame(), name="people", columns=COLUMNS, budget=10, protection="individual") as opened:
        yield opened


def test_one_cell(party: TrustedParty) -> None:
    truth = party.inspect("SELECT MEDIAN(income) FROM people", 1).value
    answer = party.query("SELECT MEDIAN(income) FROM people", "0.5")
    assert answer.value == pytest.approx(float(truth), rel=0.05)
    assert answer.rows == ({answer.columns[0]: answer.value},)
    assert (answer.epsilon, answer.delta, answer.remaining) == (Fraction(1, 2), 0, Fraction(19, 2))
    assert answer.guarantee.notation == "0.5-iDP"
    assert answer.margin is None
    assert "controller" in answer.margin_reason
    assert not answer.stored
    json.loads(answer.to_json())


def test_the_same_question_in_other_words_is_the_same_answer(party: TrustedParty) -> None:
    first = party.query("SELECT MEDIAN(income) FROM people WHERE age BETWEEN 30 AND 40", "0.5")
    for other in (
        "select median(income) as m from people where not (age < 30 or age > 40)",
        "SELECT QUANTILE(income, 0.5) FROM people WHERE age <= 40 AND age >= 30 AND age >= 30",
        "SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY income) FROM people WHERE age > 29 AND age < 41",
    ):
        again = party.query(other, 0.5)
        assert again.value == first.value
        assert again.stored
        assert again.id == first.id
        assert again.remaining == first.remaining
    assert party.query("SELECT MEDIAN(income) AS m FROM people WHERE age BETWEEN 30 AND 40", 0.5).columns == ("m",)
    more = party.query("SELECT MEDIAN(income) FROM people WHERE age BETWEEN 30 AND 40", "0.6")
    assert not more.stored


def test_groups_are_all_answered_declared_or_not_present(party: TrustedParty) -> None:
    answer = party.query("SELECT region, COUNT(*) AS n, MEDIAN(income) FROM people GROUP BY region", 2)
    assert [row["region"] for row in answer.rows] == ["north", "south", "east"]
    assert answer.columns[:2] == ("region", "n")
    assert answer.rows[2]["n"] is not None
    assert answer.rows[2][answer.columns[2]] is None  # no rows: no finite envelope
    assert answer.margin["n"] > 0
    with pytest.raises(AttributeError, match="several, see rows"):
        _ = answer.value
    inspection = party.inspect("SELECT region, COUNT(*) AS n, MEDIAN(income) FROM people GROUP BY region", 2)
    counts = [cell for cell in inspection.cells if cell.statistic == "n"]
    # ε = 2, two statistics, and under replace a record can be in two of the groups: 1/2 for each cell
    assert {cell.noise["epsilon"] for cell in counts} == {Fraction(1, 2)}
    assert {cell.noise["scale"] for cell in counts} == {2}
    with pytest.raises(AttributeError, match="one cell"):
        _ = inspection.value


def test_bins(party: TrustedParty) -> None:
    answer = party.query("SELECT BIN(age, 30), COUNT(*) FROM people GROUP BY BIN(age, 30)", 2)
    assert len(answer.rows) == 5
    assert [row[answer.columns[0]] for row in answer.rows][:3] == [0, 30, 60]


def test_dates_are_dates(party: TrustedParty) -> None:
    answer = party.query("SELECT KTH_LARGEST(born, 2) FROM people", 2)
    assert isinstance(answer.value, datetime.date)
    median = party.query("SELECT MEDIAN(born) FROM people", 2).value
    assert isinstance(median, datetime.datetime)
    assert 1900 < median.year < 2030


def test_mode(party: TrustedParty) -> None:
    assert party.query("SELECT MODE(region) FROM people", 1).value in ("north", "south")
    assert party.inspect("SELECT MODE(region) FROM people", 1).noise["distribution"] == "exponential mechanism"


def test_distinct_categories(party: TrustedParty) -> None:
    answer = party.query("SELECT COUNT(DISTINCT region) FROM people", 8)
    assert answer.value in (0, 1, 2, 3, 4)
    assert answer.margin is not None
    assert party.inspect("SELECT COUNT(DISTINCT region) FROM people", 1).value == 2


def test_public_counts_are_exact_and_free(party: TrustedParty) -> None:
    answer = party.query("SELECT COUNT(*) FROM people", 1)
    assert answer.value == 2001
    assert answer.epsilon == 0
    assert answer.remaining == 10
    assert answer.margin == 0


def test_quote_touches_no_data(party: TrustedParty, monkeypatch: pytest.MonkeyPatch) -> None:
    for dataset in party.datasets.values():
        monkeypatch.setattr(dataset.backend, "open_snapshot", _never)
    quote = party.quote("SELECT COUNT(*), MEDIAN(income) FROM people WHERE age > 30", 1)
    assert quote.cost == 1
    assert set(quote.split.values()) == {Fraction(1, 2)}
    assert (quote.remaining_before, quote.remaining_after) == (10, 9)
    assert quote.cells == 2
    assert (quote.fitted, quote.least_epsilon) == (1, Fraction(1, 10))
    assert quote.affordable
    assert not quote.stored
    assert sorted(m is None for m in quote.margins.values()) == [False, True]
    assert not party.quote("SELECT MEDIAN(age) FROM people", 11).affordable
    json.dumps(quote.to_dict())


def test_a_quote_tells_what_fitted_values_cost_at_least(party: TrustedParty) -> None:
    sql = "SELECT BIN(age, 10), MEDIAN(income) FROM people GROUP BY BIN(age, 10)"
    with pytest.raises(InvalidInput, match=r"13 values .* epsilon = 0\.65 or more"):
        party.quote(sql, "0.1")
    quote = party.quote(sql, "0.65")
    assert (quote.fitted, quote.least_epsilon, quote.cost) == (13, Fraction(13, 20), Fraction(13, 20))
    assert "least ε: 0.65 (13 values have noise fitted to the data)" in str(quote)
    counted = party.quote(sql.replace("MEDIAN(income)", "COUNT(*)"), "0.1")
    assert (counted.fitted, counted.least_epsilon) == (0, Fraction(1, 10))
    assert "least ε: 0.1\n" in str(counted)


def test_a_closed_party_charges_nothing(tmp_path: Path) -> None:
    """Its data cannot be read any more, so that a question would be charged and not answered."""

    def open_party() -> TrustedParty:
        columns = {"x": {"type": "integer"}}
        return TrustedParty.open({"x": [1, 2, 3]}, name="t", columns=columns, budget=3, ledger=tmp_path / "ledger.db")

    with open_party() as party:
        pass
    for ask in (party.query, party.quote):
        with pytest.raises(LedgerError, match=r"ledger\.db was closed; open it again; nothing was recorded"):
            ask("SELECT MEDIAN(x) FROM t", 1)
    with open_party() as party:
        assert party.budget()[0].epsilon.spent == 0


def test_fitted_values_that_are_too_cheap_are_refused_before_anything_is_charged(party: TrustedParty) -> None:
    sql, before = "SELECT BIN(age, 10), MEDIAN(income) FROM people GROUP BY BIN(age, 10)", party.ledger.head()
    for ask in (party.query, party.inspect, party.sandbox):
        with pytest.raises(InvalidInput, match="fitted to the data"):
            ask(sql, "0.1")
    assert party.ledger.head() == before


def test_weights(party: TrustedParty) -> None:
    quote = party.quote(
        "SELECT COUNT(*) AS n, MEDIAN(income) AS m FROM people WHERE age > 1", 1, split={"n": 1, "m": 3}
    )
    assert quote.split == {"n": Fraction(1, 4), "m": Fraction(3, 4)}


def _never(*given: object) -> Any:
    raise AssertionError("data was touched")


def test_refusals_come_before_the_charge_and_the_data(party: TrustedParty, monkeypatch: pytest.MonkeyPatch) -> None:
    for dataset in party.datasets.values():
        monkeypatch.setattr(dataset.backend, "open_snapshot", _never)
    for sql, epsilon, error in [
        ("SELECT MAX(income) FROM people", 1, Unanswerable),
        ("SELECT MIN(income) FROM people", 1, Unanswerable),
        ("SELECT MEDIAN(wealth) FROM people", 1, QuestionRefused),
        ("SELECT MEDIAN(income) FROM animals", 1, IdiosError),
        ("DROP TABLE people", 1, QuestionRefused),
        ("SELECT MEDIAN(income) FROM people", 0, InvalidInput),
        ("SELECT MEDIAN(income) FROM people", "0.01", IdiosError),
        ("SELECT MEDIAN(income) FROM people", 11, BudgetExceeded),
    ]:
        with pytest.raises(error):
            party.query(sql, epsilon)
    assert party.ledger.balance("people").epsilon.spent == 0
    with pytest.raises(Unanswerable, match="KTH_LARGEST"):
        party.query("SELECT MAX(income) FROM people", 1)


def test_the_budget_ends(party: TrustedParty) -> None:
    party.query("SELECT MEDIAN(income) FROM people", 9)
    with pytest.raises(BudgetExceeded) as caught:
        party.query("SELECT MEDIAN(age) FROM people", 2)
    assert caught.value.remaining == 1
    assert caught.value.requested == 2
    assert party.query("SELECT MEDIAN(income) FROM people", 9).stored


def test_whatever_fails_after_the_charge_is_one_constant_message(
    party: TrustedParty, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    backend: Backend = party.datasets["people"].backend
    right = backend.open_snapshot
    messages = set()
    for failure in (ValueError("secret 4711"), MemoryError(), OSError("gone")):

        def fails(*given: object, failure: Exception = failure) -> Any:
            raise failure

        monkeypatch.setattr(backend, "open_snapshot", fails)
        with pytest.raises(AnswerFailed) as caught:
            party.query("SELECT MEDIAN(income) FROM people", 1)
        messages.add(str(caught.value))
        assert caught.value.__cause__ is None
    assert len(messages) == 1
    assert "4711" not in messages.pop()
    assert "4711" not in caplog.text  # logs travel; they name the kind of error
    assert "ValueError" in caplog.text
    details = [entry.payload for entry in party.ledger.entries(kinds=("failed",))]
    assert "4711" in details[0]  # the ledger has it, for the controller
    assert len(details) == 3
    assert party.ledger.balance("people").epsilon.spent == 1  # charged once, kept
    monkeypatch.setattr(backend, "open_snapshot", right)
    assert party.query("SELECT MEDIAN(income) FROM people", 1).value is not None  # completed without a new charge
    assert party.ledger.balance("people").epsilon.spent == 1


def test_a_question_is_stopped_while_it_draws_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """It draws them cell by cell, of which there can be many."""
    cancellation, drawn = CancellationToken(), []

    def draw_limits(*_: object) -> tuple[int, int]:
        cancellation.cancel()
        drawn.append(1)
        return 0, 9

    monkeypatch.setattr(ClippingPlan, "draw_limits", draw_limits)
    columns = {"x": {"type": "integer"}, "g": {"type": "integer", "bounds": [0, 99]}}
    with TrustedParty.open({"x": [1, 2], "g": [1, 2]}, columns=columns, budget=9, protection="differential") as party:
        with pytest.raises(AnswerFailed):
            party.query("SELECT SUM(x) FROM data GROUP BY BIN(g, 1)", 1, cancellation=cancellation)
        assert len(drawn) == 1


def test_a_stopped_question_stays_charged_and_is_completed_by_the_same(
    party: TrustedParty, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    sql = "SELECT MEDIAN(income) FROM people"
    told: list[str] = []

    def stopping(step: str, share: float) -> None:
        told.append(step)
        cancellation.cancel()

    cancellation = CancellationToken(stopping)
    with pytest.raises(AnswerFailed) as caught:
        party.query(sql, 1, cancellation=cancellation)
    assert caught.value.__cause__ is None
    assert len(told) == 1
    assert party.ledger.balance("people").epsilon.spent == 1
    [entry] = party.ledger.entries(kinds=("failed",))
    assert json.loads(entry.payload)["detail"] == "stopped"
    assert [record.levelname for record in caplog.records] == ["INFO"]
    answer = party.query(sql, 1, cancellation=CancellationToken(lambda step, share: told.append(step)))
    assert answer.value is not None
    assert not answer.stored
    assert told[-1] == "summarised"
    assert party.ledger.balance("people").epsilon.spent == 1
    assert party.query(sql, 1).stored


def test_a_stop_between_the_summaries_and_the_noise_is_in_time(
    party: TrustedParty, monkeypatch: pytest.MonkeyPatch
) -> None:
    cancellation = CancellationToken()
    backend = party.datasets["people"].backend
    right = backend.open_snapshot

    @contextmanager
    def open_snapshot(*given: Any) -> Iterator[Any]:
        with right(*given) as snapshot:
            cancellation.cancel()
            yield snapshot

    monkeypatch.setattr(backend, "open_snapshot", open_snapshot)
    with pytest.raises(AnswerFailed):
        party.query("SELECT MEDIAN(income) FROM people", 1, cancellation=cancellation)
    assert not party.ledger.answers("people")


def test_charged_first_and_completed_later(party: TrustedParty) -> None:
    sql = "SELECT MEDIAN(income) FROM people"
    charged = party.reserve(party.make_plan(sql, 1))
    assert (charged.dataset, charged.stored, charged.analyst) == ("people", False, None)
    assert party.ledger.balance("people").epsilon.spent == 1
    assert not party.ledger.answers("people")
    answer = party.complete(charged)
    assert answer.id == charged.id
    assert not answer.stored
    again = party.reserve(party.make_plan(sql, 1))
    assert again.stored
    assert party.complete(again).value == answer.value
    assert party.complete(charged).value == answer.value  # twice completed is once released
    assert party.ledger.balance("people").epsilon.spent == 1


def test_an_answer_that_is_paid_for_is_given_though_the_grant_was_withdrawn(party: TrustedParty) -> None:
    party.ledger.add_analyst("ada")
    party.ledger.grant("ada", "people")
    charged = party.reserve(party.make_plan("SELECT MEDIAN(age) FROM people", "0.5"), analyst="ada")
    party.ledger.withdraw("ada", "people")
    assert party.complete(charged).remaining == 0
    with pytest.raises(NotPermitted):
        party.query("SELECT MEDIAN(age) FROM people", "0.5", analyst="ada")


def test_for_a_limited_party_the_other_data_sets_do_not_exist(party: TrustedParty) -> None:
    sql = "SELECT MEDIAN(income) FROM people"
    nobody, somebody = party.limited_to([]), party.limited_to({"people", "animals"})
    messages = set()
    for name in ("people", "animals"):
        with pytest.raises(QuestionRefused) as caught:
            nobody.query(f"SELECT MEDIAN(income) FROM {name}", 1)
        messages.add(caught.value.message.replace(name, ""))
    assert len(messages) == 1
    assert somebody.query(sql, 1).value == party.query(sql, 1).value


def test_a_callers_key_is_for_one_question(party: TrustedParty) -> None:
    sql = "SELECT MEDIAN(income) FROM people"
    first = party.query(sql, 1, idempotency_key="abc")
    again = party.query(sql, 1, idempotency_key="abc")
    assert again.stored
    assert again.value == first.value
    with pytest.raises(KeyReused):
        party.query("SELECT MEDIAN(age) FROM people", 1, idempotency_key="abc")
    assert party.ledger.balance("people").epsilon.spent == 1


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_differential_answers_every_statistic_of_a_bounded_column(neighbours: str) -> None:
    with TrustedParty.open(
        frame(), name="people", columns=COLUMNS, budget=100, protection="differential", neighbours=neighbours
    ) as party:
        for statistic in ("MEDIAN(age)", "AVG(age)", "MAX(age)", "IQR(age)", "STDDEV(age)", "TRIMMED_MEAN(age, 0.1)"):
            assert party.query(f"SELECT {statistic} FROM people", 5).value is not None
            party.query(
                f"SELECT {statistic} FROM people WHERE age > 119", 1
            )  # does not raise, though nobody is selected


def test_differential_without_bounds_refuses_privately() -> None:
    with TrustedParty.open(frame(), name="people", columns=COLUMNS, budget=100, protection="differential") as party:
        answer = party.query("SELECT MEDIAN(income) FROM people", 5)
        assert answer.value is not None
        assert answer.delta == 0
        assert answer.guarantee.notation == "5-DP"
        empty = [
            party.query(f"SELECT MEDIAN(income) FROM people WHERE age = {age}", 1).value for age in range(115, 120)
        ]
        assert None in empty, "each is answered at most once in a thousand times"
        assert party.ledger.balance("people").delta.spent == 0


def test_group_level() -> None:
    with TrustedParty.open(frame(), name="people", columns=COLUMNS, budget=9, protection="group", group=3) as party:
        inspection = party.inspect("SELECT MEDIAN(income) FROM people", 1)
        assert len(inspection.lows) == 4
        assert inspection.level == "group"
        with pytest.raises(Unanswerable):
            party.query("SELECT KTH_LARGEST(income, 3) FROM people", 1)
        assert party.query("SELECT KTH_LARGEST(income, 5) FROM people", 1).guarantee.group == 3


@pytest.mark.parametrize("kind", ["arrow", "pandas", "polars", "dict", "parquet", "csv", "duckdb"])
def test_every_kind_of_source(kind: str, tmp_path: Path) -> None:
    table = frame(301)
    source: Any = table
    if kind == "pandas":
        source = table.to_pandas()
    elif kind == "polars":
        source = pl.from_arrow(table)
    elif kind == "dict":
        source = table.to_pydict()
    elif kind == "parquet":
        source = tmp_path / "people.parquet"
        parquet.write_table(table, source)
    elif kind == "csv":
        source = str(tmp_path / "people.csv")
        pd.DataFrame(table.to_pydict()).astype({"income": "Int64"}).to_csv(source, index=False)
    elif kind == "duckdb":
        import duckdb

        with duckdb.connect(str(tmp_path / "d.duckdb")) as connection:
            connection.register("given", table)
            connection.execute("CREATE TABLE people AS SELECT * FROM given")
        source = f"{tmp_path / 'd.duckdb'}::people"
    reference = sorted(v for v in table["income"].to_pylist() if v is not None)
    with TrustedParty.open(source, name="people", columns=COLUMNS, budget=1) as party:
        inspection = party.inspect("SELECT MEDIAN(income), COUNT(income) FROM people", 1)
        by_name = {cell.statistic: cell.value for cell in inspection.cells}
        assert sorted(by_name.values()) == sorted([len(reference), Fraction(np.median(reference))])


def test_configuration_file(tmp_path: Path) -> None:
    parquet.write_table(frame(), tmp_path / "people.parquet")
    (tmp_path / "idios.toml").write_text(
        """
[datasets.people]
source = "people.parquet"
budget = 3
[datasets.people.columns]
age = { type = "integer", bounds = [0, 120] }
"""
    )
    with TrustedParty.from_config(tmp_path / "idios.toml") as party:
        party.query("SELECT MEDIAN(age) FROM people", 1)
    with TrustedParty.from_config(tmp_path / "idios.toml") as party:
        assert party.query("SELECT MEDIAN(age) FROM people", 1).stored
        assert party.ledger.balance("people").epsilon.remaining == 2
    (tmp_path / "people.parquet").unlink()
    with pytest.raises(IdiosError, match="people"):
        TrustedParty.from_config(tmp_path / "idios.toml")
    with pytest.raises(ConfigurationError):
        TrustedParty.from_config(tmp_path / "other.toml")


def test_a_retired_data_set_is_an_error_or_left_out(tmp_path: Path) -> None:
    parquet.write_table(frame(), tmp_path / "people.parquet")
    parquet.write_table(frame(), tmp_path / "others.parquet")
    declared = """
[datasets.{name}]
source = "{name}.parquet"
budget = 3
[datasets.{name}.columns]
age = {{ type = "integer", bounds = [0, 120] }}
"""
    config = tmp_path / "idios.toml"
    config.write_text(declared.format(name="people") + declared.format(name="others"))
    with TrustedParty.from_config(config, retired=False) as party:
        assert set(party.datasets) == {"people", "others"}
        party.ledger.retire("others")
    with pytest.raises(NotPermitted, match="retired"):
        TrustedParty.from_config(config)
    (tmp_path / "others.parquet").unlink()  # the data of what is retired may be gone
    with TrustedParty.from_config(config, retired=False) as party:
        assert set(party.datasets) == {"people"}
        assert party.query("SELECT MEDIAN(age) FROM people", 1).value is not None


def test_analysts_have_their_own_caps(party: TrustedParty) -> None:
    for name, cap in (("ada", 1), ("bo", 2)):
        party.ledger.add_analyst(name)
        party.ledger.grant(name, "people", epsilon=Fraction(cap))
    sql = "SELECT MEDIAN(income) FROM people"
    first = party.query(sql, 1, analyst="ada")
    assert first.remaining == 0
    second = party.query(sql, 1, analyst="bo")
    assert second.value == first.value
    assert second.remaining == 1
    assert party.ledger.balance("people").epsilon.spent == 1
    with pytest.raises(BudgetExceeded):
        party.query("SELECT MEDIAN(age) FROM people", 1, analyst="ada")
    with pytest.raises(IdiosError):
        party.query(sql, 1, analyst="nobody")
    assert party.quote(sql, 1, analyst="bo").cost == 0


def test_without_a_cap_the_data_set_is_what_remains(party: TrustedParty) -> None:
    for name in ("ada", "bo"):
        party.ledger.add_analyst(name)
        party.ledger.grant(name, "people")
    sql = "SELECT MEDIAN(income) FROM people"
    quoted = party.quote(sql, 1, analyst="ada")
    assert (quoted.cost, quoted.remaining_before, quoted.remaining_after) == (1, 10, 9)
    assert party.query(sql, 1, analyst="ada").remaining == 9
    # The data set pays for a question once, so it costs bo nothing of what limits them.
    quoted = party.quote(sql, 1, analyst="bo")
    assert (quoted.cost, quoted.remaining_before, quoted.remaining_after, quoted.affordable) == (1, 9, 9, True)
    assert party.query(sql, 1, analyst="bo").remaining == 9
    party.query("SELECT MEDIAN(age) FROM people", 9)
    assert party.query(sql, 1, analyst="ada").remaining == 0
    quoted = party.quote("SELECT MAX(age) FROM people", 1, analyst="ada")
    assert (quoted.remaining_before, quoted.affordable) == (0, False)
    assert quoted.shortage == "ε = 0 left of the data set's budget"
    party.ledger.add_analyst("cy")
    party.ledger.grant("cy", "people")
    assert party.quote(sql, 1, analyst="cy").affordable, "what is stored needs none of the data set's budget"
    assert party.query(sql, 1, analyst="cy").remaining == 0


def test_a_quote_says_what_is_too_little() -> None:
    columns = {"income": {"type": "integer"}}
    options = {"protection": "differential", "budget": 10}
    with TrustedParty.open({"income": list(range(1000))}, name="t", columns=columns, **options) as party:
        party.ledger.add_analyst("ada")
        party.ledger.grant("ada", "t", epsilon=Fraction(2))
        sql = "SELECT MEDIAN(income) FROM t"
        assert party.quote(sql, 1, analyst="ada").shortage is None
        assert party.quote(sql, 3, analyst="ada").shortage == "ε = 2 left of the analyst's cap"
        assert party.quote(sql, 11, analyst="ada").shortage == "ε = 10 left of the data set's budget"
        party.query(sql, 1, analyst="ada")
        assert party.quote(sql, 1, analyst="ada").shortage is None, "it is stored and paid for"


def test_inspections_are_recorded(party: TrustedParty) -> None:
    party.inspect("SELECT MEDIAN(income) FROM people", 1)
    assert [entry.kind for entry in party.ledger.entries()][-1] == "inspected"
    assert party.ledger.balance("people").epsilon.spent == 0


def test_the_noise_is_what_the_inspection_says() -> None:
    """Drawn many times over: the spread of the answers is that of the inspected scale."""
    ledger = Ledger.open("sqlite://")
    table = frame(201)
    with TrustedParty.open(
        table, name="people", columns=COLUMNS, budget=10**6, ledger=ledger, protection="individual"
    ) as party:
        sql = "SELECT MEDIAN(age) FROM people WHERE age < 80"
        inspection = party.inspect(sql, 1)
        plan, source = party.make_plan(sql, 1), SeededSource(5)
        [[mechanism]] = calibrate_plan(plan, party.datasets["people"].backend.summarise(plan))
        drawn = [float(draw_cell(plan, plan.aggregates[0], mechanism, source)[0] or 0) for _ in range(1000)]
        scale, value = float(inspection.noise["scale"]), float(inspection.value)
        assert np.mean([abs(d - value) for d in drawn]) == pytest.approx(scale, rel=0.15)


def test_a_column_declared_not_nullable_that_misses_values_is_answered_all_the_same(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """What is missing reads as a public point, so that only the controller sees a difference."""
    columns = {
        "income": {"type": "integer", "nullable": False},
        "only": {"type": "category", "values": ["a"], "nullable": False},
    }
    incomes = [20_000 + 7 * i for i in range(500)]
    as_declared: dict[str, list[Any]] = {"income": incomes, "only": ["a"] * 500}
    untrue: dict[str, list[Any]] = {"income": [None, *incomes[1:]], "only": ["other", None, *["a"] * 498]}
    told = []
    for table in (as_declared, untrue):
        with TrustedParty.open(pa.table(table), name="people", columns=columns, budget=10) as party:
            for question in (
                "SELECT COUNT(*) FROM people",
                "SELECT COUNT(income) FROM people",
                "SELECT COUNT(*) FROM people WHERE only = 'a'",
                "SELECT only, COUNT(*) FROM people GROUP BY only",
                "SELECT COUNT(only) FROM people",
            ):
                answer = party.query(question, 1)
                told.append((answer.rows, answer.epsilon))
            assert 20_000 < party.query("SELECT MEDIAN(income) FROM people", 5).value < 24_000
            assert party.datasets["people"].backend.check().sound == (table is as_declared)
    assert told[:5] == told[5:], "exact and free, and the same for both"
    assert [row["COUNT(*)"] for row in told[0][0]] == [500]
    assert [record.name for record in caplog.records] == ["idios.controller"]


def test_public_names() -> None:
    assert idios.TrustedParty is TrustedParty


def test_groups_of_any_growth() -> None:
    household: dict[str, Any] = {"size": 5, "growth": "flat"}
    count = "SELECT COUNT(*) FROM people WHERE age > 40"
    with TrustedParty.open(
        frame(), name="people", columns=COLUMNS, budget=9, protection="group", group=household
    ) as party:
        quote = party.quote(count, "0.5")
        assert quote.cost == Fraction(1, 2)
        assert quote.guarantee.notation == "(0.5, 0.5, …, 0.5)-gDP"
        answer = party.query(count, "0.5")
        assert answer.guarantee == quote.guarantee
        assert answer.margins == quote.margins
        assert answer.margin == DiscreteLaplace(Fraction(10)).central_interval(0.95)[1]
        assert type(answer).from_dict(answer.to_dict()) == answer
        assert answer.to_dict()["guarantee"]["epsilons"] == ["0.5"] * 5
        assert party.ledger.balance("people").epsilon.spent == Fraction(1, 2)
        assert party.inspect(count, "0.5").cells[0].noise["scale"] == 10
        levels = [row.level for row in party.costs(count, "0.5").rows]
        assert levels[:2] == ["individual", "group of 5, flat"]
    with TrustedParty.open(frame(), name="people", columns=COLUMNS, budget=9, protection="group", group=5) as party:
        assert party.quote(count, "0.5").guarantee.notation == "0.5-DP"
        assert party.inspect(count, "0.5").cells[0].noise["scale"] == 2


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_any_rank_order_or_share_at_differential(neighbours: str) -> None:
    columns = COLUMNS | {"income": {"type": "integer", "nullable": False}}
    values = np.random.default_rng(5).lognormal(10, 1, 100_000).round().astype(int)
    sides = np.random.default_rng(6).choice(["north", "south"], 100_000)
    table = pa.table({"income": values, "region": sides})
    declared: dict[str, Any] = {name: columns[name] for name in ("income", "region")}
    expected = {
        "QUANTILE(income, 0.137)": np.quantile(values, 0.137),
        "PERCENTILE_CONT(income, 0.999)": np.quantile(values, 0.999),
        "KTH_LARGEST(income, 777)": np.sort(values)[-777],
        "KTH_SMALLEST(income, 50001)": np.median(values),
        "TRIMMED_MEAN(income, 0.123)": np.sort(values)[12_300:-12_300].mean(),
        "KTH_LARGEST(income, 1000000000000)": None,
    }
    with TrustedParty.open(
        table, name="people", columns=declared, budget=99, protection="differential", neighbours=neighbours
    ) as party:
        for call, value in expected.items():
            if value is None and neighbours == "replace":
                with pytest.raises(Unanswerable, match="there are 100,000 records"):
                    party.query(f"SELECT {call} FROM people WHERE region = 'north'", 1)
            elif value is None:
                assert party.query(f"SELECT {call} FROM people", 1).value is None
            else:
                assert party.query(f"SELECT {call} FROM people", 5).value == pytest.approx(float(value), rel=0.2)

"""The registry: what every statistic says of itself, and that one class is all that a new one needs."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import FrozenInstanceError, dataclass, fields, is_dataclass
from fractions import Fraction
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest

import idios
from idios.core import statistics
from idios.core.domain import Domain
from idios.core.statistics import (
    STATISTICS,
    Count,
    DiscreteQuantile,
    DistinctCount,
    InterquartileRange,
    KthLargest,
    KthSmallest,
    Maximum,
    Mean,
    Median,
    Minimum,
    Mode,
    Parameters,
    Quantile,
    Spelling,
    StandardDeviation,
    Statistic,
    Sum,
    TrimmedMean,
    Variance,
    WinsorizedMean,
)
from idios.core.statistics.order import OrderStatistic
from idios.errors import QuestionRefused
from idios.evaluation import compare
from idios.sql.sql_functions import find_function, list_functions
from tests import oracle
from tests.core.statistics import test_envelopes as contract
from tests.oracle import small_tables

README = (Path(__file__).parents[3] / "README.md").read_text()
of_every_statistic = pytest.mark.parametrize("statistic", STATISTICS, ids=lambda statistic: statistic.name)


@of_every_statistic
def test_a_statistic_is_a_frozen_description(statistic: type[Statistic]) -> None:
    assert is_dataclass(statistic)
    assert statistic.__doc__
    assert statistic.kinds
    examples = statistic.examples()
    assert examples
    assert all(type(example) is statistic for example in examples)
    with pytest.raises(FrozenInstanceError):
        examples[0].anything = 1  # type: ignore[attr-defined]
    own = [field.name for field in fields(statistic)]
    assert len(own) <= 1
    if statistic.parameter is not None:
        assert own == [statistic.parameter.name]
        proposed = statistic.make(statistic.parameter.propose(Parameters()))
        assert proposed.find_objection(Parameters()) is None


@of_every_statistic
def test_its_names_are_its_own_and_documented(statistic: type[Statistic]) -> None:
    assert statistic.spellings
    for spelling in statistic.spellings:
        function = find_function(spelling.name, distinct=spelling.distinct)
        assert function is not None
        assert function.statistic is statistic, "two statistics share a name"
        if not spelling.synonym:
            assert spelling.name in README
    assert not any(find_function(name) for name in statistic.advice)


def test_no_name_is_used_twice() -> None:
    for names in (
        [statistic.name for statistic in STATISTICS],
        [statistic.function for statistic in STATISTICS if statistic.function],
        [function.name for function in list_functions()],
    ):
        assert max(Counter(names).values()) == 1


@of_every_statistic
def test_its_library_function_takes_its_parameter(statistic: type[Statistic]) -> None:
    if statistic.function is None:
        assert not hasattr(idios, statistic.name)
        return
    own = list(inspect.signature(getattr(idios, statistic.function)).parameters.values())[1:]
    positional = [argument.name for argument in own if argument.kind is not inspect.Parameter.KEYWORD_ONLY]
    if statistic.selects:
        assert positional == ["categories"]
    else:
        assert positional == ([statistic.parameter.name] if statistic.parameter else [])


@of_every_statistic
def test_the_normal_spelling_is_final_and_the_same_statistic(statistic: type[Statistic]) -> None:
    for example in statistic.examples():
        normal = example.normalise()
        assert normal.normalise() == normal
        assert normal.argument == example.argument
        for table in small_tables((0, 2), range(5), [0]):
            assert normal.define(table.values) == example.define(table.values)


@of_every_statistic
def test_its_examples_are_compared_with_enumeration(statistic: type[Statistic]) -> None:
    """The contract tests of envelopes try every example of every registered class."""
    assert set(statistic.examples()) <= set(contract.EXAMPLES)


TEXTBOOK: dict[type[Statistic], Callable[..., Fraction | int | None]] = {
    Count: len,
    DistinctCount: lambda values: len(set(values)),
    Sum: sum,
    Mean: oracle.mean,
    Minimum: lambda values: oracle.kth_smallest(values, 1),
    Maximum: lambda values: oracle.kth_largest(values, 1),
    KthSmallest: oracle.kth_smallest,
    KthLargest: oracle.kth_largest,
    Median: lambda values: oracle.quantile(values, Fraction(1, 2)),
    Quantile: oracle.quantile,
    DiscreteQuantile: oracle.discrete_quantile,
    InterquartileRange: oracle.iqr,
    TrimmedMean: oracle.trimmed_mean,
    WinsorizedMean: oracle.winsorized_mean,
    Variance: oracle.variance,
    StandardDeviation: oracle.variance,
    Mode: lambda values: min(values, key=lambda v: (-values.count(v), v), default=None),
}
"""The definitions once more, written without a look at the classes."""


@pytest.mark.parametrize("statistic", TEXTBOOK, ids=lambda statistic: statistic.name)
def test_definitions_are_those_of_the_textbook(statistic: type[Statistic]) -> None:
    for example in statistic.examples():
        arguments = [example.argument] if statistic.parameter else []
        for table in small_tables((-2, 3), range(8), [0]):
            assert example.define(table.values) == TEXTBOOK[statistic](table.values, *arguments), table


# One class, and nothing else: everything below is answered by it.


@dataclass(frozen=True)
class LowMedian(OrderStatistic):
    """The lower of the two middle values, p(s) = ⌊(s + 1)/2⌋."""

    name: ClassVar[str] = "low_median"
    spellings: ClassVar[tuple[Spelling, ...]] = (Spelling("LOW_MEDIAN"),)
    function: ClassVar[str | None] = "low_median"

    def define(self, values: Sequence[int]) -> int | None:
        """The middle of an odd number of values, the lower middle of an even one."""
        return values[(len(values) - 1) // 2] if values else None

    def position(self, size: int) -> tuple[int, int]:
        """⌊(s + 1)/2⌋."""
        return (size + 1) // 2, 1


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The made-up statistic in the registry, for one test."""
    monkeypatch.setattr(statistics, "STATISTICS", (*STATISTICS, LowMedian))


VALUES = np.arange(1000)


def made_up_party() -> idios.TrustedParty:
    data = pd.DataFrame({"x": VALUES, "half": np.where(VALUES < 500, "low", "high")})
    columns = {"x": {"type": "integer"}, "half": {"type": "category", "values": ["low", "high"]}}
    return idios.TrustedParty.open(data, name="numbers", budget=100, columns=columns, protection="individual")


@pytest.mark.usefixtures("registered")
def test_a_made_up_statistic_is_answered_through_sql() -> None:
    with made_up_party() as party:
        assert party.query("SELECT LOW_MEDIAN(x) FROM numbers", epsilon=5).value == pytest.approx(499, abs=20)
        rows = party.query("SELECT half, low_median(x) AS middle FROM numbers GROUP BY half", epsilon=20).rows
        assert {row["half"]: row["middle"] for row in rows} == {
            "low": pytest.approx(249, abs=20),
            "high": pytest.approx(749, abs=20),
        }
        inspection = party.inspect("SELECT LOW_MEDIAN(x) FROM numbers", epsilon=1)
        assert (inspection.value, inspection.local_sensitivity) == (499, 1)
        assert party.quote("SELECT LOW_MEDIAN(x), COUNT(*) FROM numbers", epsilon=1).cost == 1
        assert {row.level for row in party.costs("SELECT LOW_MEDIAN(x) FROM numbers", epsilon=1).rows}
        with pytest.raises(QuestionRefused, match=r"LOW_MEDIAN is offered for columns of type .*; half is a category"):
            party.query("SELECT LOW_MEDIAN(half) FROM numbers", epsilon=1)
        with pytest.raises(QuestionRefused, match="LOW_MEDIAN"):
            party.query("SELECT NOTHING(x) FROM numbers", epsilon=1)


@pytest.mark.usefixtures("registered")
def test_a_made_up_statistic_is_listed_and_compared() -> None:
    assert "LOW_MEDIAN(column)" in [function.signature for function in list_functions()]
    rows = compare(VALUES, epsilon=1, statistics=["low_median"])
    assert {row.value for row in rows} == {499.0}


def test_a_made_up_statistic_is_gone_again() -> None:
    assert find_function("LOW_MEDIAN") is None
    with made_up_party() as party, pytest.raises(QuestionRefused, match="LOW_MEDIAN is not offered"):
        party.query("SELECT LOW_MEDIAN(x) FROM numbers", epsilon=1)


@pytest.mark.slow
@pytest.mark.parametrize(("notion", "selection"), [("replace", False), ("replace", True), ("add-remove", False)])
def test_a_made_up_statistic_passes_the_contract(notion: str, selection: bool) -> None:
    for bounded in (True, False):
        contract.test_envelope_is_enumeration(LowMedian(), notion, selection, bounded)
        contract.test_envelopes_of_neighbours_are_nested(LowMedian(), notion, selection, bounded)


@dataclass(frozen=True)
class HighMedian(LowMedian):
    """Its position is wrong by one for even sizes, so that enumeration must object."""

    def position(self, size: int) -> tuple[int, int]:
        """⌊s/2⌋ + 1."""
        return size // 2 + 1, 1


def test_a_wrong_formula_is_caught() -> None:
    with pytest.raises(AssertionError):
        contract.test_envelope_is_enumeration(HighMedian(), "replace", False, True)
    assert HighMedian().range(Domain()) == LowMedian().range(Domain())

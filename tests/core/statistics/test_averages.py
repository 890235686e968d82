"""Averages under add-remove: all splits of the changes at once, against one after the other in fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from idios.core.domain import Domain
from idios.core.neighbours import Moves, Neighbours
from idios.core.statistics import Mean, Statistic, TrimmedMean, WinsorizedMean
from idios.core.summary import Ranks
from tests.summaries import summarise

FAR = 2**61
values = st.one_of(
    st.lists(st.integers(-9, 9), min_size=1, max_size=200),
    st.lists(st.integers(-FAR, FAR), min_size=1, max_size=100),
    st.lists(st.sampled_from([0, 1, 10**9]), min_size=1, max_size=100),
    st.builds(lambda value, size: [value] * size, st.sampled_from([-7, 0, FAR]), st.integers(1, 100)),
)
THIRDS = [Fraction("0.3333333333333333"), Fraction("0.3333333333333333334"), Fraction(1, 3**45)]
"""Shares of many digits, as a float has them and more."""
trims = st.sampled_from([Fraction(0), Fraction(1, 20), Fraction(1, 7), Fraction(1, 4), Fraction(49, 100), *THIRDS])
bounds = st.sampled_from([(None, None), (-FAR, None), (None, FAR), (-FAR, FAR), (-(10**320), 10**320)])


@settings(max_examples=400, deadline=None)
@given(values, trims, bounds, st.integers(0, 40), st.sampled_from([Mean, TrimmedMean, WinsorizedMean]))
def test_all_splits_at_once(
    data: list[int],
    p: Fraction,
    ends: tuple[int | None, int | None],
    distance: int,
    kind: type[TrimmedMean | WinsorizedMean],
) -> None:
    statistic = kind() if kind is Mean else kind(p)
    domain = Domain(Fraction(1), *ends)
    moves = Moves(Neighbours.ADD_REMOVE, len(data))
    summary = summarise(sorted(data), statistic, domain, moves, distance)
    assert statistic.envelope(summary, distance) == Statistic.envelope(statistic, summary, distance)


@pytest.mark.parametrize(
    "moves",
    [Moves(Neighbours.ADD_REMOVE, 9), Moves(Neighbours.REPLACE, 9), Moves(Neighbours.REPLACE, 9, 4)],
)
def test_a_mean_reads_no_more_than_what_can_be_changed(moves: Moves) -> None:
    for distance in range(4):
        read = [rank for first, last in Mean().ranks(moves, distance) for rank in range(first, last + 1)]
        assert read == [*range(1, distance + 1), *range(10 - distance, 10)]


@pytest.mark.parametrize("p", THIRDS)
@pytest.mark.parametrize("kind", [TrimmedMean, WinsorizedMean])
def test_a_share_of_many_digits(kind: type[TrimmedMean | WinsorizedMean], p: Fraction) -> None:
    statistic, size = kind(p), 3000
    moves = Moves(Neighbours.ADD_REMOVE, size)
    summary = summarise(list(range(size)), statistic, Domain(Fraction(1), 0, size), moves, 2)
    assert statistic.envelope(summary, 2) == Statistic.envelope(statistic, summary, 2)


@pytest.mark.parametrize(("scale", "kept_as"), [(1, np.int64), (FAR, object)])
def test_numbers_are_as_wide_as_they_must_be(scale: int, kept_as: type) -> None:
    statistic = TrimmedMean(Fraction(1, 10))
    moves = Moves(Neighbours.ADD_REMOVE, 50)
    summary = summarise([scale] * 50, statistic, Domain(Fraction(1), 0, scale), moves, 5)
    found = Ranks(summary, 5).sum_of(np.arange(1, 4), np.arange(48, 51))
    assert found.dtype == kept_as
    assert found.tolist() == [48 * scale] * 3


def test_a_rank_that_was_not_summarised_is_not_made_up() -> None:
    statistic = TrimmedMean(Fraction(1, 10))
    moves = Moves(Neighbours.ADD_REMOVE, 1000)
    summary = summarise(list(range(1000)), statistic, Domain(Fraction(1), 0, 999), moves, 5)
    with pytest.raises(LookupError, match="not summarised"):
        Ranks(summary, 5).sum_of(np.arange(400, 402), np.arange(500, 502))

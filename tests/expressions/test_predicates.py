"""The intervals of predicates against Python's own sets."""

import functools
import itertools

from hypothesis import given
from hypothesis import strategies as st

from idios.expressions.predicates import (
    EVERYTHING,
    NOTHING,
    complement,
    intersection,
    intersection_of_all,
    partition,
    union,
)

UNIVERSE = range(-8, 9)
ends = st.none() | st.integers(-6, 6)
runs = st.lists(st.tuples(ends, ends), max_size=5)


def points(intervals):
    return {
        p
        for p in UNIVERSE
        for first, last in intervals
        if (first is None or first <= p) and (last is None or p <= last)
    }


def is_normal(intervals):
    inner = [end for run in intervals for end in run][1:-1]
    return None not in inner and all(one[1] + 1 < other[0] for one, other in itertools.pairwise(intervals))


@given(runs)
def test_a_union_has_the_points_of_its_parts_in_normal_form(some):
    assert points(union(some)) == points(some)
    assert is_normal(union(some))


@given(runs, runs)
def test_an_intersection_has_the_common_points(some, others):
    both = intersection(union(some), union(others))
    assert points(both) == points(some) & points(others)
    assert is_normal(both)


@given(runs)
def test_a_complement_has_all_other_points_and_undoes_itself(some):
    rest = complement(union(some))
    assert points(rest) == set(UNIVERSE) - points(some)
    assert complement(rest) == union(some)


def test_everything_and_nothing_are_each_other_s_complement():
    assert complement(EVERYTHING) == NOTHING
    assert complement(NOTHING) == EVERYTHING


@given(st.lists(runs, min_size=1, max_size=4))
def test_the_intersection_of_all_is_that_of_each_with_the_next(many):
    sets = [union(some) for some in many]
    assert intersection_of_all(sets) == functools.reduce(intersection, sets)


@given(runs, st.sets(st.integers(-8, 8)), st.integers(0, 3))
def test_splitting_is_intersecting_with_each_part(some, starts, gap):
    ordered = sorted(starts)
    parts = [(first, max(first, following - 1 - gap)) for first, following in itertools.pairwise(ordered)]
    assert partition(union(some), parts) == tuple(intersection(union(some), (part,)) for part in parts)

"""Intervals in a row against a look at every point."""

import random

from idios.expressions.diagram import SpanRow, join_spans


def _cut(rng: random.Random, points: range) -> list[tuple[int, int]]:
    """Some disjoint intervals that ascend."""
    cuts = sorted(rng.sample(points, 2 * rng.randrange(1, 6)))
    return list(zip(cuts[::2], cuts[1::2], strict=True))


def test_spans_say_what_the_points_of_each_interval_lead_to() -> None:
    rng = random.Random(1)
    for _ in range(300):
        intervals = _cut(rng, range(30))
        nodes = [[(a, b, rng.randrange(3)) for a, b in _cut(rng, range(30))] for _ in range(rng.randrange(1, 4))]
        row = SpanRow(intervals)
        found = {
            i: goals
            for alike, goals in join_spans(span for runs in nodes for span in row.list_spans(runs))
            for i in alike
        }
        reached = [
            {goal for runs in nodes for a, b, goal in runs if any(a <= point <= b for point in range(first, last + 1))}
            for first, last in intervals
        ]
        assert found == {i: goals for i, goals in enumerate(reached) if goals}


def test_intervals_and_runs_may_have_no_end() -> None:
    row = SpanRow([(None, 3), (4, 4), (5, None)])
    assert row.list_spans([(None, None, 1)]) == [(0, 3, 1)]
    assert row.list_spans([(None, 4, 1), (9, None, 2)]) == [(0, 2, 1), (2, 3, 2)]
    assert list(join_spans([])) == []


def test_many_alike_are_one_span() -> None:
    row = SpanRow([(i, i) for i in range(100)])
    assert row.list_spans([(i, i, 1) for i in range(100)]) == [(0, 100, 1)]

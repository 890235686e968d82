"""Equal meaning, equal text; different meaning, different text: checked by enumeration."""

import itertools
import random
from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from idios.core.domain import Domain, Kind
from idios.declare.schema import Column
from idios.errors import QuestionRefused
from idios.expressions.diagram import DiagramManager
from idios.expressions.predicates import ALWAYS, NEVER, Among, And, Or, holds
from idios.sql.reader import read
from tests.sql.declared import SMALL, dataset
from tests.sql.wording import reworded, said

RECORDS = [
    dict(zip("abcd", row, strict=True))
    for row in itertools.product([None, 0, 1, 2, 3], [-2, -1, 0, 1, 2], [None, 0, 1, 2], [None, -1, 0, 1])
]


def condition(words):
    return read(f"SELECT COUNT(*) FROM small WHERE {words}", {"small": SMALL}).filter


def text(predicate):
    return DiagramManager(SMALL.columns).build(predicate).text


def table(predicate):
    return tuple(holds(predicate, record) for record in RECORDS)


@pytest.mark.slow
def test_rewording_never_changes_the_text():
    rng = random.Random(3)
    for _ in range(1000):
        first = said(rng, depth=2)
        other = reworded(first, rng, budget=2)
        assert text(condition(first)) == text(condition(other)), f"{first}\n{other}"


@pytest.mark.slow
def test_texts_are_equal_exactly_where_truth_tables_are():
    rng = random.Random(4)
    by_text, by_table = defaultdict(set), defaultdict(set)
    for depth in (1, 2, 3):
        for _ in range(600):
            predicate = condition(said(rng, depth))
            by_text[text(predicate)].add(table(predicate))
            by_table[table(predicate)].add(text(predicate))
    assert all(len(tables) == 1 for tables in by_text.values())
    assert all(len(texts) == 1 for texts in by_table.values())
    assert len(by_text) > 500


points = st.integers(-3, 4)
leaves = st.builds(
    lambda name, first, width, nulls: Among(name, ((first, first + width),), nulls),
    st.sampled_from("abcd"),
    points,
    st.integers(0, 4),
    st.booleans(),
)
predicates = st.recursive(
    leaves,
    lambda inner: (
        st.builds(And, st.lists(inner, max_size=3).map(tuple)) | st.builds(Or, st.lists(inner, max_size=3).map(tuple))
    ),
    max_leaves=8,
)


@settings(max_examples=200, deadline=None)
@given(predicates)
def test_always_never_and_what_is_possible_agree_with_enumeration(predicate):
    diagram = DiagramManager(SMALL.columns).build(predicate)
    selected = [record for record in RECORDS if holds(predicate, record)]
    assert diagram.always == (len(selected) == len(RECORDS))
    assert diagram.never == (not selected)
    for name in "abcd":
        intervals, nulls = diagram.possible(name)
        possible = {p for first, last in intervals for p in range(first, last + 1)}
        assert possible == {record[name] for record in selected} - {None}
        assert nulls == (None in {record[name] for record in selected})


@settings(max_examples=300, deadline=None)
@given(predicates, st.sets(st.sampled_from("abcd")), st.integers(1, 3))
def test_combinations_of_intervals_agree_with_enumeration(predicate, kept, width):
    diagram = DiagramManager(SMALL.columns).build(predicate)
    selected = [record for record in RECORDS if holds(predicate, record)]
    names = sorted(kept)
    grids = [SMALL.columns[name].grid for name in names]
    # every second division leaves its first point out, as one of a part of a column does
    divisions = [
        [(first, min(first + width - 1, grid.upper)) for first in range(grid.lower + i % 2, grid.upper + 1, width)]
        for i, grid in enumerate(grids)
    ]
    found = diagram.combinations(list(zip(names, divisions, strict=True)))
    assert list(found) == [
        cell
        for cell in itertools.product(*(range(len(intervals)) for intervals in divisions))
        if any(
            all(
                record[name] is not None and intervals[i][0] <= record[name] <= intervals[i][1]
                for name, intervals, i in zip(names, divisions, cell, strict=True)
            )
            for record in selected
        )
    ]


@settings(max_examples=200, deadline=None)
@given(predicates, st.sets(st.sampled_from("abcd")))
def test_a_diagram_onto_some_columns_leaves_the_others_open(predicate, kept):
    diagram = DiagramManager(SMALL.columns).build(predicate).project(*kept)
    assert set(diagram.columns) <= kept
    selected = {tuple(record[name] for name in sorted(kept)) for record in RECORDS if holds(predicate, record)}
    divisions = [
        (name, [(p, p) for p in range(SMALL.columns[name].grid.lower, SMALL.columns[name].grid.upper + 1)])
        for name in sorted(kept)
    ]
    found = {
        tuple(intervals[i][0] for (_, intervals), i in zip(divisions, cell, strict=True))
        for cell in diagram.combinations(divisions)
    }
    assert found == {values for values in selected if None not in values}


@settings(max_examples=200, deadline=None)
@given(predicates, predicates)
def test_joining_diagrams_is_joining_predicates(one, other):
    diagrams = DiagramManager(SMALL.columns)
    assert (diagrams.build(one) & diagrams.build(other)).text == diagrams.build(And((one, other))).text
    assert (diagrams.build(one) | diagrams.build(other)).text == diagrams.build(Or((one, other))).text


def test_constants():
    assert text(ALWAYS) == "true"
    assert text(NEVER) == "false"


def test_unbounded_columns_have_open_runs():
    columns = {"x": Column("x", Kind.NUMBER, Domain())}
    diagram = DiagramManager(columns).build(Or((Among("x", ((None, 3),)), Among("x", ((10**30, None),)))))
    assert diagram.possible("x") == (((None, 3), (10**30, None)), False)
    assert DiagramManager(columns).build(Among("x", ((None, None),), nulls=True)).always


def test_a_condition_that_explodes_is_refused():
    columns = [Column(f"{half}{i:02}", Kind.INTEGER, Domain(), nullable=False) for half in "xy" for i in range(20)]
    wide = dataset("wide", *columns)
    # x₀=y₀ or x₁=y₁ or …, in effect: every column of the first half must be remembered for the second
    pairs = " OR ".join(f"(x{i:02} > 0 AND y{i:02} > 0)" for i in range(20))
    question = read(f"SELECT COUNT(*) FROM wide WHERE {pairs}", {"wide": wide})
    with pytest.raises(QuestionRefused, match="too complex"):
        DiagramManager(wide.columns).build(question.filter)


def test_long_lists_are_cheap():
    wide = dataset("wide", Column("x", Kind.INTEGER, Domain()))
    listed = ", ".join(str(7 * i) for i in range(2000))
    chained = " OR ".join(f"x = {7 * i}" for i in range(1200))
    for where in (f"x IN ({listed})", chained):
        question = read(f"SELECT COUNT(*) FROM wide WHERE {where}", {"wide": wide})
        assert not DiagramManager(wide.columns).build(question.filter).never


def test_too_many_columns_are_refused():
    wide = dataset("wide", *(Column(f"x{i}", Kind.INTEGER, Domain()) for i in range(65)))
    where = " AND ".join(f"x{i} > 0" for i in range(65))
    question = read(f"SELECT COUNT(*) FROM wide WHERE {where}", {"wide": wide})
    with pytest.raises(QuestionRefused, match="65 different columns, at most 64"):
        DiagramManager(wide.columns).build(question.filter)

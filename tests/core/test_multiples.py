"""Groups of records: how they are declared, and what their multiples of ε ask of mechanisms and of parts."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from random import Random
from typing import Any

import pytest

from idios.core.calibration import Level, Protection
from idios.core.multiples import (
    MAX_GROUP,
    SINGLE,
    check_multiples,
    declare_multiples,
    describe_multiples,
    limit_epsilon,
    linear_multiples,
    part_multiples,
)
from idios.core.neighbours import Neighbours
from idios.errors import InvalidInput
from tests.core.parts import lose_in_parts


def test_three_ways_to_declare_one_group() -> None:
    assert declare_multiples(3) == declare_multiples("3") == declare_multiples([1, 2, 3]) == linear_multiples(3)
    assert declare_multiples({"size": 3}) == declare_multiples({"size": 3, "growth": "linear"}) == linear_multiples(3)
    assert declare_multiples({"size": 3, "growth": "flat"}) == declare_multiples((1, 1.0, "1")) == SINGLE * 3
    assert declare_multiples([0.1, "1/3"]) == (Fraction(1, 10), Fraction(1, 3))


@pytest.mark.parametrize(
    ("group", "message"),
    [
        ([2, 1], "must not decrease, as what protects 2 records protects 1: got 2, 1"),
        ([1, 2, 3, 4, 3], r"protects 5 records protects 4: got 1, 2, …, 3"),
        ([0, 1], "must be greater than 0, got 0, 1"),
        ([-1], "must be greater than 0, got -1"),
        ([], "must be greater than 0, got none"),
        ("flat", "group must be a finite number, got 'flat'"),
        (["flat"], "a multiple of ε in group must be a finite number, got 'flat'"),
        ([1, [1]], "a multiple of ε in group must be a finite number"),
        ([1, True], "a multiple of ε in group must be a finite number"),
        ("1,1", "group must be a finite number"),
        (0, "group must be a whole number, at least 1, got 0"),
        (1.5, "group must be a whole number"),
        ([1] * (MAX_GROUP + 1), "at most 1000 multiples of ε, got 1001"),
        (MAX_GROUP + 1, "group must be at most 1000 records"),
        pytest.param(10**5000, "group must be at most 1000 records", id="too long to print"),
        ({"size": 1001, "growth": "flat"}, "size of group must be at most 1000 records"),
        ({"growth": "flat"}, "group must be { size = …"),
        ({"size": 3, "growth": "square"}, "'growth': 'square'"),
        ({"size": 3, "grows": "flat"}, "group must be { size = …"),
        ({"size": "many"}, "size of group must be a finite number, got 'many'"),
    ],
)
def test_what_is_no_group_is_refused(group: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        Protection.declare("group", group=group)


def test_groups_belong_to_their_level() -> None:
    for level in ("individual", "differential"):
        with pytest.raises(InvalidInput, match='belongs to protection = "group" only'):
            Protection.declare(level, group=[1, 1])
    with pytest.raises(InvalidInput, match="belong to the level group"):
        Protection(Level.INDIVIDUAL, SINGLE * 2)
    assert Protection.declare("group", group=MAX_GROUP).group == MAX_GROUP
    assert Protection.declare("group", group=[1, 1]).multiples == SINGLE * 2


def test_in_words() -> None:
    assert describe_multiples(SINGLE) == "1"
    assert describe_multiples(linear_multiples(12)) == "12"
    assert describe_multiples(SINGLE * 12) == "12, flat"
    assert describe_multiples(declare_multiples([1, 2, 3, 3, 3])) == "5, with ε × (1, 2, …, 3)"
    assert describe_multiples(declare_multiples([2, 2])) == "2, with ε × (2, 2)"


def vectors(seed: int, size: int, count: int) -> list[tuple[Fraction, ...]]:
    """Random multiples, and the ones that are written most."""
    rng = Random(seed)
    drawn = [tuple(sorted(Fraction(rng.randint(1, 12), 4) for _ in range(size))) for _ in range(count)]
    return [linear_multiples(size), SINGLE * size, *drawn]


def test_a_differentially_private_mechanism_is_given_the_most_that_keeps_the_promise() -> None:
    for multiples in vectors(1, 5, 50):
        share = limit_epsilon(Fraction(1), multiples)
        kept = [size * share / multiple for size, multiple in enumerate(multiples, start=1)]
        assert max(kept) == 1


@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize("parts", [2, 3, 6])
def test_parts_keep_the_promise_together_and_no_more_could_be_asked(neighbours: Neighbours, parts: int) -> None:
    """By trying every way in which i records can touch the parts."""
    touched = 2 if neighbours is Neighbours.REPLACE else 1
    for multiples in vectors(2, 3, 12):
        each = part_multiples(multiples)
        check_multiples(each)
        together = lose_in_parts([each] * parts, touched)
        assert all(loss <= touched * multiple for loss, multiple in zip(together, multiples, strict=True))
        assert any(loss == touched * multiple for loss, multiple in zip(together, multiples, strict=True))
        assert all(c <= m for c, m in zip(each, multiples, strict=True))


def test_flat_parts_do_not_make_a_flat_whole() -> None:
    together = lose_in_parts([SINGLE * 3] * 6, 1)
    assert together == [1, 2, 3]
    assert lose_in_parts([SINGLE * 3] * 6, 2) == [2, 4, 6]


def test_where_nothing_falls_parts_promise_what_the_whole_does() -> None:
    for rates in product((1, 2, 3), repeat=3):
        multiples = tuple(Fraction(size * rate) for size, rate in enumerate(sorted(rates), start=1))
        assert part_multiples(multiples) == multiples

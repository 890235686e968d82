from __future__ import annotations

from fractions import Fraction

import pytest

from idios.core.calibration import Level
from idios.core.guarantee import Guarantee, compose_choice, compose_parallel, compose_sequential, split_between_parts
from idios.core.neighbours import Neighbours
from idios.errors import InvalidInput

REPLACE, ADD_REMOVE = Neighbours.REPLACE, Neighbours.ADD_REMOVE


def idp(epsilon: str, neighbours: Neighbours = REPLACE) -> Guarantee:
    return Guarantee(Level.INDIVIDUAL, Fraction(epsilon), neighbours)


def test_sequential_is_the_sum_and_exact() -> None:
    assert compose_sequential([idp("0.1")] * 10).epsilon == 1
    assert compose_sequential([idp("1/3"), idp("1/6")]).epsilon == Fraction(1, 2)


def test_parallel_pays_twice_under_replace() -> None:
    assert compose_parallel([idp("0.25"), idp("0.5"), idp("0.1")]).epsilon == Fraction(3, 4)
    assert compose_parallel([idp("0.25"), idp("0.5")], fixed_parts=True).epsilon == Fraction(1, 2)
    assert compose_parallel([idp("0.25", ADD_REMOVE), idp("0.5", ADD_REMOVE)]).epsilon == Fraction(1, 2)
    one = Fraction(1)
    for notion in (REPLACE, ADD_REMOVE):
        share = split_between_parts(one, notion, 7)
        assert compose_parallel([Guarantee(Level.INDIVIDUAL, share, notion)] * 7).epsilon == one
    assert split_between_parts(one, REPLACE, 1) == one


def test_a_choice_costs_the_greatest() -> None:
    assert compose_choice([idp("1"), idp("2")]) == idp("2")


def test_the_weaker_level_remains() -> None:
    dp = Guarantee(Level.DIFFERENTIAL, Fraction(1), REPLACE, delta=Fraction(1, 10**6))
    group = Guarantee(Level.GROUP, Fraction(1), REPLACE, group=5)
    assert compose_sequential([dp, idp("1")]) == Guarantee(
        Level.INDIVIDUAL, Fraction(2), REPLACE, delta=Fraction(1, 10**6)
    )
    smaller = Guarantee(Level.GROUP, Fraction(1), REPLACE, group=3)
    assert compose_sequential([group, smaller]).group == 3
    with pytest.raises(InvalidInput, match="cannot be composed with one that has a delta"):
        compose_sequential([group, dp])


def test_notions_of_neighbour_never_mix() -> None:
    with pytest.raises(InvalidInput, match="different notions"):
        compose_sequential([idp("1"), idp("1", ADD_REMOVE)])
    with pytest.raises(InvalidInput, match="at least one"):
        compose_sequential([])


def test_one_sentence_each() -> None:
    every = [
        idp("0.5"),
        Guarantee(Level.GROUP, Fraction(1, 2), REPLACE, group=5),
        Guarantee(Level.DIFFERENTIAL, Fraction(1, 2), ADD_REMOVE, delta=Fraction(1, 10**6)),
        Guarantee(Level.DIFFERENTIAL, Fraction(0), REPLACE),
    ]
    for guarantee in every:
        sentence = str(guarantee)
        assert sentence.endswith(".")
        assert "\n" not in sentence
    assert "neither are groups" in str(every[0])
    assert "e^100000" in str(idp("100000"))
    assert [g.notation for g in every] == [
        "0.5-iDP",
        "(0.5, 1, …, 2.5)-gDP",
        "(0.5, 0.000001)-DP",
        "0-DP",
    ]


def test_illegal_guarantees_cannot_be_made() -> None:
    for arguments in [{"epsilon": Fraction(-1)}, {"delta": Fraction(2)}, {"group": 0}, {"group": 2}]:
        with pytest.raises(InvalidInput):
            Guarantee(**{"level": Level.INDIVIDUAL, "epsilon": Fraction(1), "neighbours": REPLACE, **arguments})
    with pytest.raises(InvalidInput, match="has no delta"):
        Guarantee(Level.GROUP, Fraction(1), REPLACE, delta=Fraction(1, 10), group=2)

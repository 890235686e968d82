from __future__ import annotations

from fractions import Fraction
from random import Random

import pytest

from idios.core.calibration import Level
from idios.core.guarantee import (
    Guarantee,
    compose_choice,
    compose_parallel,
    compose_sequential,
    round_up,
    split_between_parts,
)
from idios.core.neighbours import Neighbours
from idios.errors import InvalidInput
from tests.core.parts import lose_in_parts

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


# Groups.


def gdp(*epsilons: object, neighbours: Neighbours = REPLACE) -> Guarantee:
    return Guarantee.for_groups([Fraction(str(epsilon)) for epsilon in epsilons], neighbours)


def test_a_vector_prints_itself() -> None:
    flat, grown = gdp("0.5", "0.5", "0.5"), gdp("0.5", "0.75", 1, 1, 2)
    assert flat.notation == "(0.5, 0.5, 0.5)-gDP"
    assert grown.notation == "(0.5, 0.75, …, 2)-gDP"
    assert str(flat).startswith(
        "(0.5, 0.5, 0.5)-group differential privacy: replacing any one record of the actual data, or up to 3 together, "
        "changes the probability of any answer by a factor of at most e^0.5 ≈ 1.65, for the noise calibrated"
    )
    assert str(grown).startswith(
        "(0.5, 0.75, …, 2)-group differential privacy for up to 5 records: replacing any i of them in the actual data "
        "changes the probability of any answer by a factor of at most e to the power of the i-th of these numbers, for"
    )
    for guarantee in (flat, grown):
        assert str(guarantee).endswith("how it was calibrated is not covered.")
        assert "\n" not in str(guarantee)


def test_a_vector_that_grows_linearly_is_the_guarantee_of_before() -> None:
    before = Guarantee(Level.GROUP, Fraction(1, 2), REPLACE, group=3)
    assert gdp("0.5", 1, "1.5") == before
    assert gdp("0.5", 1, "1.5").epsilons is None
    assert str(gdp("0.5", 1, "1.5")) == str(before)
    assert [before.protect(size) for size in (1, 2, 3)] == [Fraction(1, 2), 1, Fraction(3, 2)]


def test_nothing_is_spent_only_where_no_group_loses() -> None:
    assert str(gdp(0, 0)) == "No privacy is spent: the answer is publicly known."
    assert "publicly known" not in str(gdp(0, 1))


def test_illegal_vectors_cannot_be_made() -> None:
    with pytest.raises(InvalidInput, match="never protected with a smaller"):
        gdp(2, 1)
    for changes in ({"group": 3}, {"epsilon": Fraction(2)}, {"level": Level.DIFFERENTIAL, "group": 1}):
        arguments = {"level": Level.GROUP, "epsilon": Fraction(1), "neighbours": REPLACE, "group": 2}
        with pytest.raises(InvalidInput):
            Guarantee(**{**arguments, **changes}, epsilons=(Fraction(1), Fraction(1)))  # type: ignore[arg-type]


def test_vectors_add_up_component_by_component() -> None:
    assert compose_sequential([gdp(1, 1, 1), gdp(1, 2, 4)]) == gdp(2, 3, 5)
    assert compose_sequential([gdp(1, 1, 1), Guarantee(Level.GROUP, Fraction(1), REPLACE, group=2)]) == gdp(2, 3)
    dp = Guarantee(Level.DIFFERENTIAL, Fraction(1), REPLACE)
    assert compose_sequential([gdp(1, 1, 1), dp]) == gdp(2, 3, 4)
    assert compose_sequential([gdp(1, 1, 1), idp("1")]) == idp("2")
    assert compose_choice([gdp(2, 2, 2), gdp(1, 2, 3)]) == gdp(2, 2, 3)


@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize("notion", [REPLACE, ADD_REMOVE])
def test_parallel_composition_of_groups_by_enumeration(notion: Neighbours, fixed: bool) -> None:
    """Never less than what i records can lose; and no more where parts are alike and many, or grow as DP does."""
    touched = 2 if notion is REPLACE and not fixed else 1
    rng = Random(7)
    for number in (2, 3, 6):
        for _ in range(25):
            drawn = [sorted(rng.randint(1, 6) for _ in range(3)) for _ in range(number)]
            grown = [[(i + 1) * rate for i, rate in enumerate(sorted(part))] for part in drawn]
            flat = [[4, 4, 4]] * number
            for vectors, exact in ((drawn, False), (grown, True), (flat, number in (touched, 6))):
                parts = [gdp(*vector, neighbours=notion) for vector in vectors]
                whole = compose_parallel(parts, fixed_parts=fixed)
                worst = lose_in_parts([[Fraction(e) for e in vector] for vector in vectors], touched)
                promised = [whole.protect(size) for size in (1, 2, 3)]
                assert all(loss <= epsilon for loss, epsilon in zip(worst, promised, strict=True))
                assert promised == worst or not exact


def test_what_is_charged_bounds_every_group() -> None:
    """A count with noise for five flat records promises one record a fifth, and is charged in full."""
    flat, one = (Fraction(1),) * 5, Fraction(1)
    count = Guarantee(Level.DIFFERENTIAL, one / 5, REPLACE)
    assert round_up(count, flat) == gdp(1, 1, 1, 1, 1)
    assert round_up(compose_sequential([count, gdp(1, 1, 1, 1, 1)]), flat) == gdp(2, 2, 2, 2, 2)
    dp = Guarantee(Level.DIFFERENTIAL, one, REPLACE)
    for multiples in ((one, 2 * one), (one, 3 * one), (one,)):
        assert round_up(dp, multiples) == dp
    with_delta = Guarantee(Level.DIFFERENTIAL, one, REPLACE, delta=Fraction(1, 100))
    assert round_up(with_delta, (one,)) == with_delta
    assert round_up(idp("1"), (one,)) == idp("1")
    nothing = Guarantee(Level.DIFFERENTIAL, Fraction(0), REPLACE)
    assert round_up(nothing, flat) == nothing

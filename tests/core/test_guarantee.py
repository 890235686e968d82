from __future__ import annotations

from fractions import Fraction
from random import Random

import pytest

from idios.codec import from_json, to_json
from idios.core.accounting import compose_choice, compose_parallel, compose_sequential, round_up, split_between_parts
from idios.core.calibration import Level
from idios.core.concentrated import convert_to_epsilon
from idios.core.guarantee import Guarantee
from idios.core.multiples import SINGLE, Multiples, declare_multiples
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


# Concentrated.

DELTA = Fraction(1, 10**6)
FLAT = declare_multiples({"size": 3, "growth": "flat"})


def zcdp(rho: str, level: Level = Level.DIFFERENTIAL, multiples: Multiples = SINGLE) -> Guarantee:
    return Guarantee.concentrated(level, Fraction(rho), REPLACE, DELTA, multiples)


def test_a_concentrated_guarantee_stands_for_epsilon_and_delta() -> None:
    one = zcdp("1/8")
    assert (one.rho, one.delta, one.epsilon) == (Fraction(1, 8), DELTA, convert_to_epsilon(Fraction(1, 8), DELTA))
    assert one.is_concentrated
    assert not Guarantee(Level.DIFFERENTIAL, Fraction(1), REPLACE, rho=Fraction(1, 2)).is_concentrated
    assert not Guarantee(Level.DIFFERENTIAL, Fraction(1), REPLACE, DELTA).is_concentrated
    assert one.notation == "0.125-zCDP"
    assert zcdp("1/8", Level.INDIVIDUAL).notation == "0.125-concentrated iDP"


def test_groups_have_the_square_of_their_multiple_and_never_i_times_epsilon() -> None:
    five = zcdp("1/800", Level.GROUP, declare_multiples(5))
    assert [five.protect_rho(i) for i in (1, 2, 5)] == [Fraction(i * i, 800) for i in (1, 2, 5)]
    assert [five.protect(i) for i in (1, 2, 5)] == [convert_to_epsilon(Fraction(i * i, 800), DELTA) for i in (1, 2, 5)]
    assert all(five.protect(i) > i * five.epsilon for i in range(2, 6))
    assert five.notation == "(0.206, 0.43, …, 1.143; 0.000001)-gDP"
    flat = zcdp("1/800", Level.GROUP, FLAT)
    assert flat.protect(3) == flat.epsilon
    assert flat.rhos == (Fraction(1, 800),) * 3
    grown = zcdp("1/4", Level.GROUP, declare_multiples(["0.5", 1]))
    assert [grown.protect_rho(i) for i in (1, 2)] == [Fraction(1, 4), 1]  # ρ is that of one record
    assert zcdp("1/4", Level.GROUP, SINGLE).group == 1


def test_one_sentence_says_what_rho_is_and_one_what_it_stands_for() -> None:
    frozen = "for the noise calibrated on the actual data; how it was calibrated is not covered"
    every = [zcdp("1/800"), zcdp("1/800", Level.INDIVIDUAL), zcdp("1/800", Level.GROUP, declare_multiples(5))]
    for guarantee in every:
        sentence = str(guarantee)
        assert "a Rényi divergence of at most 0.00125·α, for every order α > 1" in sentence
        assert "It stands for (0.206, " in sentence
        assert "up to a probability of 0.000001" in sentence
        assert sentence.endswith(".")
        assert "\n" not in sentence
        assert (frozen in sentence) == (guarantee.level is not Level.DIFFERENTIAL)
    assert "e^0.206 ≈ 1.23" in str(every[0])
    assert "neither are groups of records" in str(every[1])
    assert "and 5 of them at most 0.03125·α" in str(every[2])
    assert str(zcdp("0")) == "No privacy is spent: the answer is publicly known."
    assert "publicly known" not in str(zcdp("1/10000000000000"))  # for which δ alone is enough: ε is 0


def test_a_pure_guarantee_says_its_rho_in_a_clause() -> None:
    for level in Level:
        plain = Guarantee(level, Fraction(1, 2), REPLACE)
        known = Guarantee(level, Fraction(1, 2), REPLACE, rho=Fraction(1, 32))
        assert known.notation == plain.notation
        assert str(known).replace(", and ρ = 0.03125 in concentrated accounting", "") == str(plain)
        assert known != plain


def test_a_known_rho_is_attached_to_a_pure_guarantee() -> None:
    rho = Fraction(1, 8)
    assert idp("1").attach_rho(rho) == Guarantee(Level.INDIVIDUAL, Fraction(1), REPLACE, rho=rho)
    assert gdp(1, 1, 1).attach_rho(rho, FLAT) == Guarantee.for_groups([Fraction(1)] * 3, REPLACE, [rho] * 3)
    steep = declare_multiples(["0.5", 2])
    assert gdp("0.5", 2).attach_rho(rho, steep).rhos == (rho, 16 * rho)


def test_long_numbers_are_rounded_up_in_words_and_exact_in_the_field() -> None:
    long = zcdp("1/30000000000001")
    assert long.rho == Fraction(1, 30000000000001)
    assert long.notation == "0.00000000000003334-zCDP"
    assert idp("0.123400000001").notation == "0.1235-iDP"
    assert idp("1/3").notation == "1/3-iDP"


@pytest.mark.parametrize(
    "guarantee",
    [
        zcdp("1/3"),
        zcdp("1/3", Level.INDIVIDUAL),
        zcdp("1/3", Level.GROUP, declare_multiples(3)),
        zcdp("1/3", Level.GROUP, FLAT),
        Guarantee(Level.DIFFERENTIAL, Fraction(1), REPLACE, rho=Fraction(1, 8)),
        Guarantee.for_groups([Fraction(1)] * 3, REPLACE, [Fraction(1, 8)] * 3),
        idp("1"),
    ],
    ids=lambda guarantee: guarantee.notation,
)
def test_json_and_back(guarantee: Guarantee) -> None:
    plain = to_json(guarantee)
    assert from_json(Guarantee, plain, "a guarantee") == guarantee
    assert ("rho" in plain) == (guarantee.rho is not None)
    assert plain["notation"] == guarantee.notation


def test_illegal_rhos_cannot_be_made() -> None:
    arguments = {"level": Level.GROUP, "epsilon": Fraction(1), "neighbours": REPLACE, "group": 2}
    for changes in (
        {"rho": Fraction(-1)},
        {"rhos": (Fraction(1), Fraction(2))},
        {"rho": Fraction(1), "rhos": (Fraction(1),)},
        {"rho": Fraction(2), "rhos": (Fraction(2), Fraction(1))},
    ):
        with pytest.raises(InvalidInput):
            Guarantee(**{**arguments, **changes})  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="belongs to the level group"):
        zcdp("1", Level.DIFFERENTIAL, FLAT)
    with pytest.raises(AssertionError, match="without ρ"):
        idp("1").protect_rho(1)


def test_rho_adds_up_and_is_converted_once() -> None:
    assert compose_sequential([zcdp("1/8"), zcdp("1/4")]) == zcdp("3/8")
    pure = Guarantee(Level.DIFFERENTIAL, Fraction(1, 2), REPLACE, rho=Fraction(1, 32))
    assert compose_sequential([zcdp("1/8"), pure]) == zcdp("5/32")
    assert compose_sequential([pure, pure]) == Guarantee(Level.DIFFERENTIAL, Fraction(1), REPLACE, rho=Fraction(1, 16))
    assert compose_sequential([pure, idp("1")]) == idp("3/2")  # a part without ρ leaves none
    mixed = compose_sequential([zcdp("1/8"), idp("1")])
    assert (mixed.epsilon, mixed.delta, mixed.rho) == (1 + zcdp("1/8").epsilon, DELTA, None)
    assert compose_choice([zcdp("1/8"), pure]) == zcdp("1/8")
    assert compose_parallel([zcdp("1/8"), zcdp("1/4"), zcdp("1/16")]) == zcdp("3/8")
    assert compose_parallel([zcdp("1/8"), zcdp("1/4")], fixed_parts=True) == zcdp("1/4")
    assert compose_parallel([pure] * 9).rho == Fraction(1, 16)


def test_groups_add_up_by_their_own_rho() -> None:
    linear, flat = zcdp("1/8", Level.GROUP, declare_multiples(3)), zcdp("1/8", Level.GROUP, FLAT)
    assert compose_sequential([linear, zcdp("1/8")]) == zcdp("1/4", Level.GROUP, declare_multiples(3))
    both = compose_sequential([linear, flat])
    assert [both.protect_rho(i) for i in (1, 2, 3)] == [Fraction(n, 8) for n in (2, 5, 10)]
    assert [both.protect(i) for i in (1, 2, 3)] == [convert_to_epsilon(both.protect_rho(i), DELTA) for i in (1, 2, 3)]
    assert compose_sequential([linear, zcdp("1/8", Level.INDIVIDUAL)]) == zcdp("1/4", Level.INDIVIDUAL)
    with pytest.raises(InvalidInput, match="cannot be composed with one that has a delta"):
        compose_sequential([linear, gdp(1, 1)])
    vector = Guarantee.for_groups([Fraction(1)] * 3, REPLACE, [Fraction(1, 8)] * 3)
    assert compose_sequential([vector, vector]).rhos == (Fraction(1, 4),) * 3


@pytest.mark.parametrize("notion", [REPLACE, ADD_REMOVE])
def test_parallel_composition_of_rho_by_enumeration(notion: Neighbours) -> None:
    touched, rng = 2 if notion is REPLACE else 1, Random(3)
    for _ in range(40):
        vectors = [sorted(Fraction(rng.randint(1, 9), 8) for _ in range(3)) for _ in range(rng.choice([2, 3, 6]))]
        parts = [Guarantee.for_groups([Fraction(1)] * 3, notion, vector) for vector in vectors]
        whole = compose_parallel(parts)
        worst = lose_in_parts(vectors, touched)
        assert all(loss <= whole.protect_rho(i) for i, loss in enumerate(worst, start=1))
    same = [Guarantee.concentrated(Level.GROUP, Fraction(1, 8), notion, DELTA, declare_multiples(3))] * 6
    squares = [Fraction(i * i, 8) for i in (1, 2, 3)]
    assert lose_in_parts([squares] * 6, touched) == [compose_parallel(same).protect_rho(i) for i in (1, 2, 3)]


def test_what_is_charged_in_rho_bounds_every_group() -> None:
    """A count that is zCDP promises i records i²·ρ: a flat group of three is charged nine times as much."""
    charged = round_up(zcdp("1/9"), FLAT)
    assert charged == zcdp("1", Level.GROUP, FLAT)
    assert round_up(zcdp("1/9"), declare_multiples(3)) == round_up(zcdp("1/9"), SINGLE) == zcdp("1/9")
    linear = zcdp("1/9", Level.GROUP, declare_multiples(3))
    assert round_up(linear, declare_multiples(3)) == linear
    assert round_up(compose_sequential([linear, zcdp("1/9")]), FLAT) == zcdp("2", Level.GROUP, FLAT)
    halved = round_up(zcdp("1/9"), declare_multiples(["0.5", 1]))
    assert halved == zcdp("1/9")
    pure = Guarantee(Level.DIFFERENTIAL, Fraction(1, 3), REPLACE, rho=Fraction(1, 18))
    assert round_up(pure, FLAT) == Guarantee.for_groups([Fraction(1)] * 3, REPLACE, [Fraction(1, 2)] * 3)
    assert round_up(pure, declare_multiples(3)) == pure

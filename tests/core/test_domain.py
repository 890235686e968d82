from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from idios.core.domain import LEAST_STEP, Categories, Domain, Kind, default_step
from idios.core.exact import FARTHEST
from idios.errors import InvalidInput


def test_default_steps_are_facts_of_the_type() -> None:
    assert default_step(Kind.INTEGER) == 1
    assert default_step(Kind.NUMBER) == Fraction(1, 10**6)
    assert default_step(Kind.DECIMAL, decimals=3) == Fraction(1, 1000)
    assert default_step(Kind.DATE) == default_step(Kind.TIMESTAMP) == 1
    with pytest.raises(InvalidInput, match="values, not a step"):
        default_step(Kind.CATEGORY)


@pytest.mark.parametrize("step", [0, -1, "0.0"])
def test_a_step_is_positive(step: object) -> None:
    with pytest.raises(InvalidInput, match="step must be greater than 0"):
        Domain.declare(step=step)
    with pytest.raises(InvalidInput, match="step must be greater than 0"):
        Domain(Fraction(-1))


@pytest.mark.parametrize("bounds", [(5, 1), ("2", "1.5")])
def test_reversed_bounds(bounds: tuple[object, object]) -> None:
    with pytest.raises(InvalidInput, match="lower ≤ upper"):
        Domain.declare(bounds=bounds)


@pytest.mark.parametrize("bounds", [5, (1,), (1, 2, 3), "12"])
def test_bounds_are_a_pair(bounds: object) -> None:
    with pytest.raises(InvalidInput, match="a pair"):
        Domain.declare(bounds=bounds)  # type: ignore[arg-type]


@pytest.mark.parametrize("bounds", [(0, float("nan")), (float("-inf"), 1), ("low", "high")])
def test_bounds_are_finite(bounds: tuple[object, object]) -> None:
    with pytest.raises(InvalidInput, match="a bound must be a finite number"):
        Domain.declare(bounds=bounds)


def test_either_bound_may_be_missing() -> None:
    income = Domain.declare(bounds=(0, None))
    assert (income.low, income.high, income.bounded, income.points) == (0, float("inf"), False, float("inf"))
    assert income.read(-3) == 0


@given(st.fractions(), st.fractions(min_value=Fraction(1, 1000), max_value=1000))
def test_reading_is_the_nearest_grid_point_halves_up(value: Fraction, step: Fraction) -> None:
    point = Domain(step).read(value)
    assert -Fraction(1, 2) < Fraction(point) - value / step <= Fraction(1, 2)


FINITE = st.one_of(
    st.integers(),
    st.fractions(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.builds(lambda sign, digits, power: Decimal((sign, (digits,), power)), *[st.integers(0, 1), st.integers(0, 9)],
              st.integers(-(10**6), 10**6)),
    st.builds(lambda digit, power: digit * 10**power, st.integers(-9, 9), st.integers(0, 3000)),
    st.builds(lambda digit, power: Fraction(digit, 10**power), st.integers(-9, 9), st.integers(0, 3000)),
)  # fmt: skip


@settings(deadline=None)
@given(FINITE, FINITE, st.sampled_from([LEAST_STEP, Fraction(1, 7), Fraction(1), 1 / LEAST_STEP]))
def test_every_finite_value_is_read_and_reading_is_monotone(one: object, other: object, step: Fraction) -> None:
    for domain in (Domain(step), Domain(step, -5, 5), Domain(step, 3), Domain(step, upper=-3)):
        low, high = sorted([one, other])
        assert domain.read(low) <= domain.read(high)
        assert domain.low <= domain.read(low) <= domain.high
        assert abs(domain.read(low)) <= FARTHEST / step


def test_a_far_value_reads_as_the_bound_or_as_the_public_end() -> None:
    for far in (Decimal("1E+500"), 10**400 + 1, Fraction(10**900, 7)):
        assert Domain.declare(step="0.01", bounds=(0, 100)).read(far) == 10_000
        assert Domain.declare(step="0.01", bounds=(0, 100)).read(-far) == 0
        assert Domain.declare(step="0.01").read(far) == 10**402
        assert Domain.declare(bounds=(None, 5)).read(-far) == -(10**400)
    with pytest.raises(InvalidInput, match="where values end"):
        Domain.declare(bounds=(0, 10**400 + 1))


def test_narrowing() -> None:
    ages = Domain(Fraction(1), 0, 120)
    assert ages.narrowed(30, 40) == Domain(Fraction(1), 30, 40)
    assert ages.narrowed(None, 40) == Domain(Fraction(1), 0, 40)
    assert ages.narrowed(-5, None) == ages
    assert ages.narrowed(121, None) is None
    assert Domain().narrowed(None, 7) == Domain(upper=7)
    assert Domain(centre=50).narrowed(0, 7) == Domain(lower=0, upper=7, centre=50), "a guess stays what it is"


def test_a_centre_changes_nothing_that_is_read() -> None:
    cents, near = Domain.declare(step="0.01"), Domain.declare(step="0.01", centre="300.004")
    assert (cents.centre, near.centre) == (0, 30_000)
    assert all(cents.read(value) == near.read(value) for value in (-5, 0, "12.345", 10**9))
    assert Domain.declare(bounds=(10, 20)).centre == 0, "whatever the bounds"
    assert Domain.declare(bounds=(10, 20), centre=20).centre == 20
    for outside in (9, 21, 0):
        with pytest.raises(InvalidInput, match="within the bounds"):
            Domain.declare(bounds=(10, 20), centre=outside)
    for no_number in ("middle", float("nan"), "1e401"):
        with pytest.raises(InvalidInput, match="centre must be"):
            Domain.declare(centre=no_number)


def test_undeclared_categories_are_missing() -> None:
    regions = Categories(("north", "south"))
    assert [regions.find(v) for v in ("south", "SOUTH", None, 3)] == [1, None, None, None]
    for values in [(), ("a", "a")]:
        with pytest.raises(InvalidInput):
            Categories(values)

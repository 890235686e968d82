"""How ε and ρ are shared, and what an answer costs and promises under both accountings."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from idios.core.calibration import Level, Method, Protection
from idios.core.concentrated import pure_rho, range_rho
from idios.core.exact import round_root_down
from idios.core.neighbours import Neighbours
from idios.declare.schema import Budget
from idios.errors import InvalidInput
from idios.plan.budget import divide
from tests.sql.declared import PEOPLE, declared, planned

F = Fraction
BUDGET = Budget(F(5), F(1, 10**6))
SHARE = F(1, 10)


def concentrated(level="differential", **changes):
    protection = Protection.declare(level, **({"group": 3} if level == "group" else {}))
    return declared(PEOPLE, protection=protection, budget=BUDGET, min_epsilon=F(1, 1000), **changes)


def plan(sql, epsilon=SHARE, split=None, level="differential", **changes):
    return planned(sql, epsilon, split, concentrated(level, **changes))


@given(
    st.fractions(F(1, 1000), 10),
    st.lists(st.fractions(F(1, 100), 100), min_size=1, max_size=6),
)
def test_shares_or_their_squares_add_up(epsilon, proportions):
    takers = [True] * len(proportions)
    assert sum(divide(epsilon, proportions, takers, squares=False)) == epsilon
    squares = sum(share**2 for share in divide(epsilon, proportions, takers, squares=True))
    assert epsilon**2 * F(99999, 100000) ** 2 < squares <= epsilon**2


def test_statistics_share_rho_with_concentrated_accounting_and_epsilon_without():
    sql = "SELECT MEDIAN(income), QUANTILE(income, 0.25) FROM people"
    assert {a.epsilon for a in plan(sql).aggregates} == {F(70710, 10**6) + F(6, 10**7)}
    pure = planned(sql, SHARE, None, declared(PEOPLE, min_epsilon=F(1, 1000)))
    assert {a.epsilon for a in pure.aggregates} == {SHARE / 2}


def test_a_median_is_charged_an_eighth_and_a_count_a_half():
    assert plan("SELECT MEDIAN(income) FROM people").rho == range_rho(SHARE)
    count = plan("SELECT COUNT(*) FROM people WHERE age < 18")
    assert (count.rho, count.pure, count.epsilon) == (pure_rho(SHARE), False, SHARE)
    assert count.guarantee.rho == count.rho
    assert count.guarantee.delta == BUDGET.delta
    median = plan("SELECT MEDIAN(income) FROM people")
    assert median.pure
    assert (median.guarantee.epsilon, median.guarantee.delta) == (SHARE, 0)


@pytest.mark.parametrize("level", ["individual", "group"])
def test_what_is_fitted_to_the_data_has_gaussian_noise(level):
    made = plan("SELECT region, MEDIAN(income) FROM people GROUP BY region", F(1, 2), level=level)
    [aggregate] = made.aggregates
    assert (aggregate.choice.method, made.rho) == (Method.LOCAL, pure_rho(F(1, 2)))
    assert made.guarantee.level == level
    assert made.guarantee.delta == BUDGET.delta


def test_groups_are_promised_what_the_square_of_their_size_stands_for():
    from idios.core.concentrated import convert_to_epsilon

    guarantee = plan("SELECT MEDIAN(income) FROM people", level="group").guarantee
    assert [guarantee.protect(i) for i in (1, 2, 3)] == [
        convert_to_epsilon(i**2 * pure_rho(SHARE), BUDGET.delta) for i in (1, 2, 3)
    ]
    assert guarantee.protect(2) != 2 * guarantee.epsilon


CELLS = [
    ("COUNT(*)", F(1), F(1, 2)),  # Gaussian
    ("MEDIAN(income)", F(1, 2), F(1, 8)),
    ("TRIMMED_MEAN(income, 0.1)", round_root_down(SHARE**2 / 2) / SHARE, F(1, 8)),
    ("AVG(age)", F(1), F(1, 2)),
    ("MODE(sex)", F(1, 2), F(1, 8)),
]


@pytest.mark.parametrize(("statistic", "share", "rho"), CELLS)
def test_cells_get_as_much_as_keeps_the_rho_of_one_selection(statistic, share, rho):
    alone = plan(f"SELECT {statistic} FROM people WHERE age > 7")
    cells = plan(f"SELECT region, {statistic} FROM people GROUP BY region")
    assert alone.rho == rho * SHARE**2
    assert rho * SHARE**2 * F(9999, 10000) < cells.rho <= alone.rho
    assert cells.aggregates[0].epsilon == share * SHARE


@pytest.mark.parametrize("epsilon", [SHARE, F(1, 2)])
@pytest.mark.parametrize("statistic", ["SUM(income)", "AVG(income)", "VARIANCE(income)"])
def test_shared_limits_are_charged_once_and_noise_in_two_cells(statistic, epsilon):
    """All of it is what one selection with limits of its own costs, so no more than limits of each cell would."""
    alone = plan(f"SELECT {statistic} FROM people WHERE age > 7", epsilon)
    cells = plan(f"SELECT region, {statistic} FROM people WHERE age > 7 GROUP BY region", epsilon)
    [aggregate] = cells.aggregates
    limits = aggregate.choice.clipping
    once = range_rho(limits.threshold_epsilon + 2 * limits.count_epsilon)
    once += 2 * pure_rho(limits.tally_epsilon) + pure_rho(limits.size_epsilon)
    once += range_rho(limits.centre.epsilon) if limits.centre else 0
    noise = {"SUM(income)": 2, "AVG(income)": F(1, 2), "VARIANCE(income)": F(3, 8)}[statistic]
    assert cells.rho == once + noise * limits.noise_epsilon**2
    assert alone.rho * F(99, 100) < cells.rho <= alone.rho


def test_under_add_remove_every_cell_gets_everything():
    made = plan("SELECT region, MEDIAN(income) FROM people GROUP BY region", neighbours=Neighbours.ADD_REMOVE)
    assert (made.aggregates[0].epsilon, made.rho) == (SHARE, range_rho(SHARE))


def test_a_question_too_large_for_rho_is_planned_purely():
    sql = "SELECT COUNT(*), MEDIAN(income) FROM people WHERE age > 7"
    large = plan(sql, F(2))
    assert pure_rho(F(2)) > BUDGET.rho
    assert large.pure
    assert large.epsilon == 2
    assert {a.epsilon for a in large.aggregates} == {F(1)}


def test_noise_of_another_kind_is_another_question():
    sql, epsilon = "SELECT COUNT(*) FROM people WHERE age > 7", SHARE
    gaussian = plan(sql, epsilon)
    laplace = planned(sql, epsilon, None, declared(concentrated(), budget=Budget(F(5))))
    assert gaussian.epsilon == laplace.epsilon
    assert gaussian.normal_form != laplace.normal_form
    inverse = "SELECT MEDIAN(income) FROM people"  # the same draw, whatever is added up
    assert plan(inverse).normal_form == planned(inverse, SHARE, None, declared(concentrated(), budget=None)).normal_form


def test_fitted_values_cost_rho_each():
    sql = "SELECT region, MEDIAN(income) FROM people GROUP BY region"
    made = plan(sql, F(1, 2), level="individual")
    assert made.least_epsilon == 2 * F(1, 1000)  # √4
    with pytest.raises(InvalidInput, match="too small: 4 values"):
        planned(sql, F(19, 10_000), None, concentrated("individual"))


def test_relative_errors_are_balanced_where_they_are_public():
    from dataclasses import replace

    from idios.core.domain import Domain, Kind
    from idios.declare.schema import Column

    columns = {
        **PEOPLE.columns,
        "signed": Column("signed", Kind.INTEGER, Domain(lower=-10, upper=10), nullable=False),
        "narrow": Column("narrow", Kind.INTEGER, Domain(lower=90, upper=100), nullable=False),
    }
    people = replace(declared(PEOPLE, min_epsilon=F(1, 1000)), columns=columns)

    def shares(sql, split=None, people=people):
        return [a.epsilon for a in planned(sql, 1, split, people).aggregates]

    # SUM moves by 20 where the largest value is 10, COUNT by 1 of 1
    assert sorted(shares("SELECT COUNT(*), SUM(signed) FROM people WHERE age > 7")) == [F(1, 3), F(2, 3)]
    # on the whole table a replacement moves SUM(narrow) by 10 of 100
    assert sorted(shares("SELECT SUM(narrow), SUM(signed) FROM people")) == [F(1, 21), F(20, 21)]
    assert shares("SELECT COUNT(*), SUM(signed) FROM people WHERE age > 7", [1, 1]) == [F(1, 2)] * 2
    assert shares("SELECT SUM(signed), MEDIAN(age) FROM people") == [F(1, 2)] * 2  # not public
    coarse = replace(people, min_epsilon=F(1, 20))
    assert shares("SELECT SUM(narrow), SUM(signed) FROM people", people=coarse) == [F(1, 2)] * 2  # too little


def test_levels_of_guarantees_follow_what_answers():
    assert plan("SELECT COUNT(*) FROM people WHERE age > 7", level="individual").guarantee.level is Level.DIFFERENTIAL
    assert plan("SELECT MEDIAN(income) FROM people", level="individual").guarantee.level is Level.INDIVIDUAL


def test_a_sum_of_zeros_has_no_relative_sensitivity() -> None:
    """WHERE x = 0 leaves nothing to divide by, and SUM(x) is public."""
    made = planned("SELECT SUM(age), COUNT(*) FROM people WHERE age = 0")
    assert [aggregate.epsilon > 0 for aggregate in made.aggregates] == [True, False]

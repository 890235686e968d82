"""What a plan decides: shares to the last fraction, cells, domains, mechanisms, and what it refuses."""

import re
from dataclasses import replace
from fractions import Fraction

import pytest

from idios.answer.intervals import describe_risk
from idios.core.calibration import Level, Method, Protection
from idios.core.domain import Categories, Domain, Kind
from idios.core.exact import text
from idios.core.guarantee import Guarantee
from idios.core.neighbours import Neighbours
from idios.core.statistics import FINE, Count, Maximum, Mean, Median, Minimum, Parameters
from idios.declare.schema import Column
from idios.errors import IdiosError, InvalidInput, QuestionRefused, Unanswerable
from idios.expressions.predicates import ALWAYS, Among
from idios.plan.planner import make_plan
from idios.sql.reader import read
from tests.sql.declared import PEOPLE, dataset, declared, planned, protected

F = Fraction


def shares(sql, epsilon=1, split=None, people=PEOPLE):
    return {a.label: a.epsilon for a in planned(sql, epsilon, split, people).aggregates}


def test_epsilon_is_split_evenly_and_exactly():
    assert shares("SELECT MEDIAN(income), AVG(age), SUM(price) FROM people", "0.7") == {
        "MEDIAN(income)": F(7, 30),
        "AVG(age)": F(7, 30),
        "SUM(price)": F(7, 30),
    }


@pytest.mark.parametrize("split", [[2, 1], {"m": 2, "AVG(age)": 1}, ("1", F(1, 2)), {"m": "0.5", "AVG(age)": 0.25}])
def test_epsilon_is_split_in_proportion(split):
    assert shares("SELECT MEDIAN(income) AS m, AVG(age) FROM people", "0.9", split) == {
        "m": F(6, 10),
        "AVG(age)": F(3, 10),
    }


@pytest.mark.parametrize(
    ("split", "message"),
    [
        ([1], "does not fit"),
        ("12", "does not fit"),
        (3, "does not fit"),
        ([1, 0], "greater than 0"),
        ([1, -1], "greater than 0"),
        ([1, "x"], "finite number"),
        ({"m": 1}, "no part to AVG"),
        ({"m": 1, "AVG(age)": 1, "x": 1}, "'x', which is no statistic"),
    ],
)
def test_a_split_that_does_not_fit_is_refused(split, message):
    with pytest.raises(InvalidInput, match=message):
        planned("SELECT MEDIAN(income) AS m, AVG(age) FROM people", 1, split)


def test_several_cells_get_half_under_replace_and_all_under_add_remove():
    sql = "SELECT MEDIAN(income), COUNT(*) FROM people GROUP BY region"
    assert set(shares(sql, 1).values()) == {F(1, 4)}
    added = declared(neighbours=Neighbours.ADD_REMOVE)
    assert set(shares(sql, 1, people=added).values()) == {F(1, 2)}
    for people in (PEOPLE, added):
        made = planned(sql, 1, people=people)
        assert (made.epsilon, made.guarantee.epsilon) == (1, 1)


def test_one_possible_cell_gets_everything():
    made = planned("SELECT MEDIAN(income) FROM people WHERE region = 'east' GROUP BY region", 1)
    assert made.cells == ((0,),)
    assert made.groups[0].values == ("east",)
    assert made.aggregates[0].epsilon == made.epsilon == 1


@pytest.mark.parametrize("epsilon", [0, -1, "x", None, float("nan"), float("inf"), True, "1/0"])
def test_epsilon_is_a_number_greater_than_0(epsilon):
    with pytest.raises(InvalidInput, match="epsilon"):
        planned("SELECT MEDIAN(income) FROM people", epsilon)


def test_a_question_is_planned_for_its_own_data_set():
    with pytest.raises(InvalidInput, match="about 'people', the data set given is 'other'"):
        make_plan(read("SELECT COUNT(*) FROM people", {"people": PEOPLE}), declared(name="other"), 1)


def test_the_count_of_a_whole_table_is_free_under_replace():
    made = planned("SELECT COUNT(*), COUNT(age) FROM people WHERE age >= 0 OR age < 0")
    assert (made.epsilon, made.rho, made.filter) == (0, 0, ALWAYS)
    (count,) = made.aggregates
    assert (count.epsilon, count.choice.method, count.whole) == (0, Method.EXACT, True)
    assert [number for _, number in made.measures] == [0, 0]
    assert str(made.guarantee) == "No privacy is spent: the answer is publicly known."


def test_what_is_free_takes_no_share():
    assert shares("SELECT COUNT(*), MEDIAN(age) FROM people", split=[5, 1]) == {"COUNT(*)": 0, "MEDIAN(age)": 1}


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(income) FROM people",
        "SELECT COUNT(*) FROM people WHERE age > 3",
        "SELECT COUNT(*) FROM people WHERE income IS NOT NULL",
        "SELECT COUNT(*) FROM people GROUP BY sex",
    ],
)
def test_other_counts_are_not_free(sql):
    made = planned(sql)
    assert made.epsilon == 1
    assert not made.aggregates[0].whole
    assert made.aggregates[0].choice.method is Method.GLOBAL


def test_a_whole_table_under_add_remove_is_not_free():
    assert planned("SELECT COUNT(*) FROM people", people=declared(neighbours=Neighbours.ADD_REMOVE)).epsilon == 1


@pytest.mark.parametrize(
    ("sql", "whole"),
    [
        ("SELECT MEDIAN(age) FROM people", True),
        ("SELECT MEDIAN(age) FROM people WHERE age IS NOT NULL", True),
        ("SELECT MEDIAN(age) FROM people WHERE age <= 120 AND TRUE", True),
        ("SELECT MEDIAN(income) FROM people", False),
        ("SELECT MEDIAN(income) FROM people WHERE income IS NOT NULL", False),
        ("SELECT MEDIAN(age) FROM people WHERE age > 0", False),
        ("SELECT MEDIAN(age) FROM people GROUP BY sex", False),
    ],
)
def test_whole_is_a_public_fact(sql, whole):
    assert planned(sql).aggregates[0].whole is whole


@pytest.mark.parametrize(
    ("where", "low", "high"),
    [
        ("income < 50000", None, 49_999),
        ("income > 10 AND income <= 20", 11, 20),
        ("income IN (5, 500)", 5, 500),
        ("income BETWEEN 0 AND 9 OR (income = 77 AND age > 3)", 0, 77),
        ("age > 3", None, None),
        ("income < 5 OR age > 3", None, None),
        ("income < 5 OR income IS NULL", None, 4),
    ],
)
def test_a_filter_narrows_the_domain_of_its_column(where, low, high):
    (median,) = planned(f"SELECT MEDIAN(income) FROM people WHERE {where}").aggregates
    assert median.domain == Domain(F(1), low, high)


def test_a_narrowed_column_has_bounds():
    made = planned("SELECT AVG(income), MAX(income) FROM people WHERE income BETWEEN 0 AND 100000")
    assert {a.choice.method for a in made.aggregates} == {Method.LOCAL}


UNBOUNDED = [
    ("MAX(income)", "KTH_LARGEST(income, 2)"),
    ("MIN(seen)", "KTH_SMALLEST(seen, 2)"),
    ('MAX("Größe in cm")', 'KTH_LARGEST("Größe in cm", 2)'),
]


@pytest.mark.parametrize(("call", "instead"), UNBOUNDED)
def test_what_has_no_answer_is_refused_with_what_has(call, instead):
    with pytest.raises(Unanswerable) as caught:
        planned(f"SELECT {call} FROM people")
    assert str(caught.value).startswith(f"{call} cannot be answered")
    assert instead in str(caught.value)
    assert "BETWEEN" in str(caught.value)
    planned(f"SELECT {instead} FROM people")


@pytest.mark.parametrize("level", [{"level": "individual"}, {"level": "group", "group": 3}, {"level": "differential"}])
@pytest.mark.parametrize("call", ["SUM(income)", "AVG(income)", "VARIANCE(income)", "STDDEV(income)"])
def test_where_bounds_are_missing_every_level_draws_limits(call, level):
    made = planned(f"SELECT {call} FROM people", people=protected(**level))
    assert made.aggregates[0].choice.method is Method.CLIPPED
    assert made.guarantee.level is Level.DIFFERENTIAL
    assert made.guarantee.epsilon == 1
    clipping = made.aggregates[0].choice.clipping
    assert clipping.epsilon == made.aggregates[0].choice.epsilon


def test_a_group_needs_a_greater_k():
    people = protected("group", group=4)
    with pytest.raises(Unanswerable, match=r"KTH_LARGEST\(income, 5\)"):
        planned("SELECT KTH_LARGEST(income, 2) FROM people", people=people)
    made = planned("SELECT KTH_LARGEST(income, 5) FROM people", people=people)
    assert made.guarantee.notation == "(1, 2, 3, 4)-gDP"


FLAT = {"size": 5, "growth": "flat"}


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(income) FROM people",
        "SELECT MEDIAN(income), COUNT(income), MODE(region) FROM people",
        "SELECT SUM(price), MEDIAN(income) FROM people GROUP BY sex",
        "SELECT COUNT(*) FROM people GROUP BY region",
    ],
)
def test_a_question_promises_and_costs_what_was_declared_of_groups(sql):
    """Whichever mechanisms answer it, so that what is spent bounds every group."""
    flat = planned(sql, people=protected("group", group=FLAT))
    assert flat.guarantee.epsilons == (1, 1, 1, 1, 1)
    assert flat.epsilon == 1
    assert flat.guarantee.level is Level.GROUP
    halved = planned(sql, people=protected("group", group=["0.5", 1, 1]))
    assert halved.guarantee.epsilons == (F(1, 2), 1, 1)
    assert halved.epsilon == F(1, 2)
    before = planned(sql, people=protected("group", group=5)).guarantee
    assert before.epsilons is None
    assert before.epsilon == 1


def test_a_differentially_private_answer_says_so_where_groups_grow_as_fast():
    for group in (5, [1, 2, 4], [1, 3]):
        assert planned(
            "SELECT COUNT(income) FROM people", people=protected("group", group=group)
        ).guarantee == Guarantee(Level.DIFFERENTIAL, F(1), Neighbours.REPLACE)
    public = planned("SELECT COUNT(*) FROM people", people=protected("group", group=FLAT))
    assert public.epsilon == 0


def test_the_least_epsilon_is_that_of_one_record():
    people = protected("group", group=["0.5", 1])
    planned("SELECT MEDIAN(income) FROM people", "0.1", people=people)
    with pytest.raises(InvalidInput, match=r"leaves 0.045 .* ask with epsilon = 0.1 or more"):
        planned("SELECT MEDIAN(income) FROM people", "0.09", people=people)
    planned(f"SELECT MEDIAN(income) {BY_AGE}", "1.3", people=people)
    with pytest.raises(InvalidInput, match=r"13 values .* epsilon = 1\.3 or more"):
        planned(f"SELECT MEDIAN(income) {BY_AGE}", "1.29", people=people)


def test_differential_privacy_needs_neither_bounds_nor_delta():
    people = protected("differential")
    made = planned("SELECT MEDIAN(income), IQR(income), AVG(age), COUNT(income) FROM people", 2, [3, 1, 2, 2], people)
    methods = {a.label: a.choice.method for a in made.aggregates}
    assert methods["MEDIAN(income)"] is methods["IQR(income)"] is Method.INVERSE
    assert made.epsilon == 2
    assert made.guarantee.notation == "2-DP"


def test_a_question_of_many_cells_refuses_more_readily():
    people = protected("differential")
    one = planned("SELECT MEDIAN(income) FROM people", 2, people=people).aggregates[0].choice
    many = planned(f"SELECT MEDIAN(income) {BY_AGE}", 2, people=people)
    assert many.aggregates[0].choice.refusal == len(many.cells) * one.refusal


def list_quantiles():
    """Twenty different ones."""
    ranks = [f"0.{rank}" for rank in ("3", "35", "4", "45", "5", "55", "6", "65", "7", "75")]
    return [f'QUANTILE({column}, {q}) AS "{column} {q}"' for column in ("income", "age") for q in ranks]


def test_a_question_of_many_statistics_refuses_as_readily_as_one_of_many_cells():
    """R is 1000 for each value that may be drawn out of reach: not for counts, nor for what is never refused."""
    people = protected("differential", fineness=10)

    def list_refusals(select: str, by: str = "", epsilon: object = 40) -> list[int]:
        made = planned(f"SELECT {select} FROM people {by}", epsilon, people=people)
        return [a.choice.refusal for a in made.aggregates if a.choice.method is Method.INVERSE]

    quantiles = ", ".join(list_quantiles())
    assert list_refusals("MEDIAN(income)") == [1000]
    assert list_refusals(quantiles) == [20_000] * 20
    assert list_refusals("MEDIAN(income), IQR(income), TRIMMED_MEAN(income, 0.25)") == [3000] * 3
    assert list_refusals("MEDIAN(income), COUNT(income), AVG(income), MIN(age), MAX(age)") == [1000]
    assert list_refusals("MEDIAN(income) AS m, MEDIAN(income) AS n, MEDIAN(age)") == [2000] * 2
    assert list_refusals("MEDIAN(income), IQR(income)", "GROUP BY sex") == [4000] * 2
    assert list_refusals("MEDIAN(income), MEDIAN(age)", "WHERE age > 40") == [2000] * 2


def test_what_a_question_of_many_statistics_says_of_null_is_of_all_of_them():
    people = protected("differential")
    one = planned("SELECT MEDIAN(income) FROM people WHERE age > 40", 1, people=people)
    many = planned("SELECT MEDIAN(income), MEDIAN(age) FROM people WHERE age > 40", 2, people=people)
    risks = [describe_risk(made.aggregates[0], None) for made in (one, many)]
    assert [re.findall("[0-9]+", risk) for risk in risks] == [["101"], ["105"]]
    income = replace(people.columns["income"], nullable=False)
    few = declared(people, size=25, columns={**people.columns, "income": income})
    planned("SELECT MEDIAN(income) FROM people", 1, people=few)
    others = ", ".join(call for call in list_quantiles() if "income, 0.5)" not in call)
    with pytest.raises(Unanswerable, match="at least 113 records"):
        planned(f"SELECT MEDIAN(income), {others} FROM people", 20, people=few)


def test_with_several_cells_what_is_not_fitted_counts_additions_and_removals():
    people = protected("differential")
    whole, cells = (planned(f"SELECT MEDIAN(income) FROM people{by}", people=people) for by in ("", " GROUP BY sex"))
    assert whole.aggregates[0].neighbours is Neighbours.REPLACE
    assert cells.aggregates[0].neighbours is Neighbours.ADD_REMOVE
    fitted = planned("SELECT MEDIAN(income), COUNT(*) FROM people GROUP BY sex")
    by_label = {a.label: a.neighbours for a in fitted.aggregates}
    assert by_label["MEDIAN(income)"] is Neighbours.REPLACE
    assert by_label["COUNT(*)"] is Neighbours.ADD_REMOVE


@pytest.mark.parametrize(
    ("sql", "level"),
    [
        ("SELECT MEDIAN(income) FROM people", Level.INDIVIDUAL),
        ("SELECT COUNT(income) FROM people", Level.DIFFERENTIAL),
        ("SELECT MODE(region), SUM(price) FROM people", Level.DIFFERENTIAL),
        ("SELECT COUNT(income), MEDIAN(income) FROM people", Level.INDIVIDUAL),
    ],
)
def test_the_guarantee_is_that_of_the_weakest_mechanism(sql, level):
    assert planned(sql).guarantee.level is level


def test_every_released_cell_has_the_least_epsilon():
    planned("SELECT MEDIAN(income) FROM people", "0.05")
    planned("SELECT MEDIAN(income), AVG(age) FROM people GROUP BY sex", "0.2")
    with pytest.raises(InvalidInput, match=r"leaves 0.04 .* ask with epsilon = 0.05 or more"):
        planned("SELECT MEDIAN(income) FROM people", "0.04")
    with pytest.raises(InvalidInput, match=r"in each of 2 groups.* epsilon = 0.2 or more"):
        planned("SELECT MEDIAN(income), AVG(age) FROM people GROUP BY sex", "0.199")
    with pytest.raises(InvalidInput, match=r"for AVG\(age\).* epsilon = 0.5 or more"):
        planned("SELECT MEDIAN(income), AVG(age) FROM people", "0.3", [9, 1])
    planned("SELECT COUNT(*) FROM people", "0.000001")


BY_AGE = "FROM people GROUP BY BIN(age, 10)"  # 13 groups


def test_values_fitted_to_the_data_are_priced_singly():
    planned(f"SELECT MEDIAN(income) {BY_AGE}", "0.65")
    with pytest.raises(InvalidInput) as caught:
        planned(f"SELECT MEDIAN(income) {BY_AGE}", "0.64")
    message = str(caught.value)
    assert "epsilon = 0.64" in message
    assert "13 values whose noise is fitted to the data" in message
    assert "Ask with epsilon = 0.65 or more" in message
    assert 'protection = "differential"' in message
    with pytest.raises(InvalidInput, match=r"26 values .* epsilon = 1\.3 or more"):
        planned(f"SELECT MEDIAN(income), AVG(age) {BY_AGE}", "1.29")
    with pytest.raises(InvalidInput, match=r"4 values .* epsilon = 0\.2 or more"):
        planned("SELECT MEDIAN(income) FROM people GROUP BY region", "0.19")


@pytest.mark.parametrize(
    "people",
    [
        protected("group", group=3),
        declared(neighbours=Neighbours.ADD_REMOVE),
        declared(protection=Protection.declare("group", group=2), neighbours=Neighbours.ADD_REMOVE),
    ],
)
def test_the_price_of_fitted_values_is_that_of_every_level_below_differential(people):
    planned(f"SELECT MEDIAN(income) {BY_AGE}", "0.65", people=people)
    with pytest.raises(InvalidInput, match=r"13 values .* epsilon = 0\.65 or more"):
        planned(f"SELECT MEDIAN(income) {BY_AGE}", "0.64", people=people)


@pytest.mark.parametrize(
    ("select", "people"),
    [
        ("COUNT(*)", PEOPLE),
        ("SUM(price)", PEOPLE),
        ("COUNT(DISTINCT income)", PEOPLE),
        ("MODE(region)", PEOPLE),
        ("MEDIAN(age)", protected("differential")),
        ("MEDIAN(income)", protected("differential")),
    ],
)
def test_what_is_not_fitted_to_the_data_is_not_priced_singly(select, people):
    made = planned(f"SELECT {select} {BY_AGE}", "0.1", people=people)
    assert (made.fitted, made.least_epsilon) == (0, F(1, 10))


def test_without_a_floor_counts_are_fitted_to_the_data_and_priced_so():
    exact = declared(protection=Protection.declare("individual", floor=0))
    with pytest.raises(InvalidInput, match=r"13 values .* epsilon = 0\.65 or more"):
        planned(f"SELECT COUNT(*) {BY_AGE}", "0.1", people=exact)


@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize("split", [None, [1, 9], [9, 1]])
@pytest.mark.parametrize("select", ["MEDIAN(income), COUNT(income)", "MEDIAN(age), AVG(age)", "COUNT(*), SUM(price)"])
@pytest.mark.parametrize("keys", ["", " GROUP BY sex", " GROUP BY sex, region", " GROUP BY BIN(age, 10), region"])
def test_a_question_is_answered_from_its_least_epsilon_on(neighbours, split, select, keys):
    people, sql = declared(neighbours=neighbours), f"SELECT {select} FROM people{keys}"
    made = planned(sql, 1000, split, people)
    least = made.least_epsilon
    assert made.fitted * people.min_epsilon <= least
    assert planned(sql, least, split, people).least_epsilon == least
    with pytest.raises(InvalidInput, match=f"epsilon = {text(least)} or more"):
        planned(sql, least * F(999, 1000), split, people)


def test_what_is_publicly_known_has_no_least_epsilon():
    assert planned("SELECT COUNT(*) FROM people").least_epsilon == 0


PARAMETERS = [
    ("QUANTILE(age, 0.333)", "q is a multiple of 0.05 between 0 and 1"),
    ("PERCENTILE_DISC(age, 0.01)", "q is a multiple of 0.05 between 0 and 1"),
    ("QUANTILE(age, 0)", r"ask for MIN\(column\) or KTH_SMALLEST\(column, k\)"),
    ("PERCENTILE_DISC(age, 1)", r"ask for MAX\(column\) or KTH_LARGEST\(column, k\)"),
    ("KTH_LARGEST(age, 4)", "k is one of 1, 2, 3, 5, 10, 20"),
    ("KTH_SMALLEST(age, 1e300)", "k is one of 1, 2, 3, 5, 10, 20"),
    ("TRIMMED_MEAN(age, 0.07)", "p is a multiple of 0.05 below 0.5"),
    ("WINSORIZED_MEAN(age, 0.07)", "p is a multiple of 0.05 below 0.5"),
]


@pytest.mark.parametrize(("call", "allowed"), PARAMETERS)
def test_parameters_come_from_public_sets(call, allowed):
    with pytest.raises(QuestionRefused, match=allowed) as caught:
        planned(f"SELECT COUNT(*), {call} FROM people")
    assert caught.value.position == (1, 18)
    free = declared(parameters=Parameters(None, None, None))
    if ", 0)" in call or ", 1)" in call:
        with pytest.raises(QuestionRefused, match=allowed):
            planned(f"SELECT {call} FROM people", people=free)
    else:
        planned(f"SELECT {call} FROM people", people=free)


ODD = {
    "PERCENTILE_CONT({x}, 0.999)": None,
    "QUANTILE({x}, 0.137)": None,
    "PERCENTILE_DISC({x}, 0.001)": None,
    "KTH_LARGEST({x}, 777)": None,
    "TRIMMED_MEAN({x}, 0.123)": None,
    "WINSORIZED_MEAN({x}, 0.499)": None,
    "KTH_LARGEST({x}, 1000000)": "at least 1,000,000 values, and there are 100,000 records",
    "KTH_SMALLEST({x}, 1000000000000)": "at least 1,000,000,000,000 values, and there are 100,000 records",
    "QUANTILE({x}, 0.0005)": "denominator of at most 1000, got 0.0005",
    "TRIMMED_MEAN({x}, 0.0005)": r"p is a multiple of 0\.001 below 0\.5",
    "KTH_LARGEST({x}, 1.5)": "k must be a whole number",
}


@pytest.mark.parametrize("neighbours", Neighbours)
def test_every_rank_order_and_share_is_offered_where_noise_is_not_fitted(neighbours):
    size = 100_000 if neighbours is Neighbours.REPLACE else None
    people = declared(protected("differential"), parameters=FINE, neighbours=neighbours, size=size)
    for call, problem in ODD.items():
        for where in ("", " WHERE sex = 'f'", " GROUP BY sex"):
            for column in ("age", "income"):
                sql = f"SELECT {call.format(x=column)} FROM people{where}"
                if problem and (size or "records" not in problem):
                    with pytest.raises((QuestionRefused, Unanswerable), match=problem):
                        planned(sql, people=people)
                else:
                    assert planned(sql, people=people).epsilon == 1


def test_a_quantile_too_near_an_open_end_is_refused_with_advice():
    income = Column("income", Kind.NUMBER, Domain(), nullable=False)
    people = dataset("people", income, protection=Protection.declare("differential"), parameters=FINE, size=50)
    with pytest.raises(Unanswerable, match=r"ask for a quantile further from the ends\. In SQL: MEDIAN\(income\)"):
        planned("SELECT PERCENTILE_CONT(income, 0.999) FROM people", people=people)
    with pytest.raises(
        Unanswerable,
        match=r"k ≥ 100, or with about 100 times as much epsilon\. In SQL: KTH_LARGEST\(income, 100\), KTH_LARGEST\(i",
    ):
        planned("SELECT MAX(income) FROM people", "0.1", people=declared(people, size=100_000))


def test_statistics_without_a_parameter_are_always_offered():
    people = declared(parameters=Parameters(F(3, 10), frozenset({5}), F(3, 10)))
    planned("SELECT MEDIAN(age), MIN(age), MAX(age), AVG(age), IQR(age), QUANTILE(age, 0.5) FROM people", people=people)
    with pytest.raises(QuestionRefused, match=r"multiple of 0\.3"):
        planned("SELECT PERCENTILE_DISC(age, 0.5) FROM people", people=people)


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT COUNT(*) FROM people WHERE age < 0", "nothing to ask"),
        ("SELECT COUNT(*) FROM people WHERE age > 3 AND NOT age > 2", "nothing to ask"),
        ("SELECT COUNT(*) FROM people WHERE region LIKE 'mars'", "It selects no value of region, which has '"),
        ("SELECT COUNT(*) FROM people WHERE age > 3 AND region NOT LIKE '%'", "no value of region, which has '"),
        ("SELECT COUNT(*) FROM people WHERE sex IS NULL", "nothing to ask"),
        ("SELECT COUNT(*) FROM people WHERE region IS NULL GROUP BY region", "can be in any group"),
        ("SELECT COUNT(*), COUNT(income) FROM people WHERE income IS NULL", "can have a value of income"),
        ("SELECT MEDIAN(income) FROM people WHERE income IS NULL", "can have a value of income"),
    ],
)
def test_what_can_never_be_selected_is_refused(sql, message):
    with pytest.raises(QuestionRefused, match=message):
        planned(sql)


def test_bins_cover_the_declared_bounds():
    (group,) = planned("SELECT BIN(age, 50), COUNT(*) FROM people GROUP BY BIN(age, 50)").groups
    assert group.intervals == ((0, 49), (50, 99), (100, 120))
    assert group.values == (0, 50, 100)
    (group,) = planned("SELECT COUNT(*) FROM people GROUP BY BIN(price, 33.33)").groups
    assert group.intervals == ((0, 3332), (3333, 6665), (6666, 9998), (9999, 10_000))
    assert group.values == (0, F("33.33"), F("66.66"), F("99.99"))
    (group,) = planned("SELECT COUNT(*) FROM people GROUP BY BIN(born, 10000)").groups
    assert group.values == ("1970-01-01", "1997-05-19", "2024-10-04")


def test_bins_below_zero_are_aligned_too():
    cold = dataset("cold", Column("t", Kind.INTEGER, Domain(lower=-15, upper=4)))
    (group,) = planned("SELECT COUNT(*) FROM cold GROUP BY BIN(t, 10)", people=cold).groups
    assert group.intervals == ((-15, -11), (-10, -1), (0, 4))
    assert group.values == (-20, -10, 0)


def test_a_filter_can_bound_bins_and_leaves_out_those_it_excludes():
    made = planned("SELECT COUNT(*) FROM people WHERE income BETWEEN 5 AND 25 GROUP BY BIN(income, 10)")
    assert made.groups[0].intervals == ((0, 9), (10, 19), (20, 29))
    made = planned(
        "SELECT COUNT(*) FROM people WHERE age < 5 OR age BETWEEN 7 AND 9 OR age >= 110 GROUP BY BIN(age, 10)"
    )
    assert made.groups[0].values == (0, 110, 120)
    assert made.cells == ((0,), (1,), (2,))


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("BIN(income, 10)", "bins need bounds"),
        ("BIN(age, 2.5)", "multiple of the column's step, which is 1"),
        ("BIN(price, 0.001)", "multiple of the column's step, which is 0.01"),
        ("BIN(price, 0.05)", "makes 2,001 groups, at most 1,000"),
        ("BIN(born, 1), BIN(price, 0.01), region", "makes 800,120,004 groups"),
    ],
)
def test_bins_that_cannot_be_listed_are_refused(key, message):
    with pytest.raises(QuestionRefused, match=message):
        planned(f"SELECT COUNT(*) FROM people GROUP BY {key}")


def test_cells_that_the_filter_excludes_together_are_left_out():
    made = planned(
        "SELECT sex, region, COUNT(*) FROM people "
        "WHERE region = 'north' OR (region = 'west' AND sex = 'f') GROUP BY sex, region"
    )
    assert [group.column for group in made.groups] == ["region", "sex"]
    named = [tuple(g.values[i] for g, i in zip(made.groups, cell, strict=True)) for cell in made.cells]
    assert named == [("north", "f"), ("north", "m"), ("west", "f")]


def test_a_cell_without_any_value_is_none():
    made = planned("SELECT MEDIAN(income) FROM people WHERE region = 'north' OR income IS NULL GROUP BY region")
    assert made.groups[0].values == ("north",)
    with_count = planned("SELECT COUNT(*) FROM people WHERE region = 'north' OR income IS NULL GROUP BY region")
    assert len(with_count.cells) == 4


def test_the_executed_filter_includes_the_groups():
    made = planned("SELECT COUNT(*) FROM people WHERE age > 3 GROUP BY region")
    assert set(made.filter.parts) == {Among("age", ((4, 120),)), Among("region", ((0, 3),))}
    assert planned("SELECT COUNT(*) FROM people GROUP BY sex").filter == ALWAYS


def test_a_statistic_listed_twice_is_released_once():
    made = planned(
        "SELECT MEDIAN(age) AS a, QUANTILE(age, 0.5) AS b, percentile_cont(0.5) WITHIN GROUP (ORDER BY age) AS c, "
        "MAX(age), KTH_LARGEST(age, 1), MIN(age), KTH_SMALLEST(age, 1), AVG(age), TRIMMED_MEAN(age, 0), "
        "WINSORIZED_MEAN(age, 0), COUNT(*), COUNT(age), MEDIAN(age) AS a FROM people",
        4,
    )
    assert [type(a.statistic) for a in made.aggregates] == [Count, Maximum, Mean, Median, Minimum]
    assert [a.epsilon for a in made.aggregates] == [0, 1, 1, 1, 1]
    index = {type(a.statistic): i for i, a in enumerate(made.aggregates)}
    assert [made.measures[i][1] for i in range(3)] == [index[Median]] * 3
    assert [label for label, _ in made.measures][:4] == ["a", "b", "c", "MAX(age)"]
    assert len(made.measures) == 12


def test_weights_of_one_statistic_listed_twice_add_up():
    sql = "SELECT MEDIAN(age) AS a, QUANTILE(age, 0.5) AS b, MAX(age) AS c FROM people"
    for split in ([1, 1, 2], {"a": 1, "b": 1, "c": 2}, {"a": 2, "c": 2}):
        assert set(shares(sql, 1, split).values()) == {F(1, 2)}


def test_outputs_show_keys_that_select_does_not_list():
    made = planned("SELECT COUNT(*) AS n, region AS r FROM people GROUP BY sex, region, BIN(age, 60)")
    assert [group.label for group in made.groups] == ["BIN(age, 60)", "r", "sex"]
    assert [item.label for item in made.shown[0].items] == ["sex", "BIN(age, 60)", "n", "r"]
    assert (made.keys, made.measures) == ((2, 1, 0), (("n", 0),))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT AVG(age) AS x, MAX(age) AS x FROM people",
        "SELECT region, COUNT(*) AS region FROM people GROUP BY region",
        "SELECT COUNT(*) AS region FROM people GROUP BY region",
    ],
)
def test_two_results_of_one_name_are_refused(sql):
    with pytest.raises(QuestionRefused, match="two different results are called"):
        planned(sql)


def test_a_mode_has_its_own_mechanism():
    (mode,) = planned("SELECT MODE(region) FROM people WHERE region <> 'north'").aggregates
    assert mode.choice.method is Method.EXPONENTIAL
    assert mode.domain == Categories(("north", "south", "east", "west"))
    assert mode.epsilon == 1


def test_a_distinct_count_of_categories_is_of_their_indices():
    (count,) = planned("SELECT COUNT(DISTINCT region) FROM people WHERE region <> 'north'").aggregates
    assert (count.column, count.domain) == ("region", Domain(lower=1, upper=3))


def test_the_choice_has_the_epsilon_of_the_cell():
    (median,) = planned("SELECT MEDIAN(age) FROM people GROUP BY sex", "0.3").aggregates
    assert median.choice.epsilon == median.epsilon == F(3, 20)


def test_every_refusal_is_one_that_is_foreseen():
    for sql in ("SELECT MAX(income) FROM people", "SELECT COUNT(*) FROM people WHERE age < 0"):
        with pytest.raises(IdiosError):
            planned(sql)

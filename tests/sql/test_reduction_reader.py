"""Which SELECT is a reduction, what it makes, and what is refused of people and rows."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from idios.core.calibration import Protection
from idios.core.domain import Categories, Domain, Kind
from idios.core.neighbours import Neighbours
from idios.core.statistics import Mean, Median, Sum
from idios.declare.schema import Column, Dataset
from idios.errors import QuestionRefused, Unanswerable
from idios.plan.planner import make_plan
from idios.plan.question import Plan
from idios.plan.question_words import describe_question, describe_selection
from idios.plan.reductions import ReducedValue
from idios.sql.reader import read

COLUMNS = [
    Column("amount", Kind.DECIMAL, Domain(Fraction(1, 100), lower=0)),
    Column("score", Kind.INTEGER, Domain(lower=-5, upper=9), nullable=False),
    Column("paid", Kind.INTEGER, Domain(lower=0, upper=1)),
    Column("open", Kind.CATEGORY, Categories(("true", "false"))),
    Column("region", Kind.CATEGORY, Categories(("north", "south"))),
    Column("time", Kind.TIMESTAMP, Domain()),
]
ORDERS = Dataset(
    "orders",
    {column.name: column for column in COLUMNS},
    Neighbours.REPLACE,
    Protection.declare("differential"),
    unit=("person_id", "country"),
    unit_word="person",
    order="time",
    size=1000,
)
UNIT = "GROUP BY person_id, country"


def plan(sql: str, dataset: Dataset = ORDERS) -> Plan:
    return make_plan(read(sql, {"orders": dataset}), dataset, 5)


def of_people(reduced: str, where: str = "", outer: str = "MEDIAN(v)") -> Plan:
    return plan(f"SELECT {outer} FROM (SELECT person_id, {reduced} AS v FROM orders {where} {UNIT})")


def test_a_group_by_of_exactly_the_unit_is_a_reduction() -> None:
    sql = (
        "SELECT MEDIAN(total) FROM (SELECT SUM(amount) AS total, country FROM orders WHERE paid GROUP BY 2, PERSON_ID)"
    )
    question = read(sql, {"orders": ORDERS})
    assert question.reduction is not None
    assert question.reduction.values == (ReducedValue("SUM", "amount"),)
    [measure] = question.measures
    assert (measure.label, measure.statistic, measure.column) == ("MEDIAN(total)", Median(), "SUM(amount)")


def test_the_unit_may_be_labelled() -> None:
    made = plan("SELECT COUNT(*) FROM (SELECT person_id AS p, country FROM orders WHERE paid GROUP BY P, country)")
    assert made.dataset.reduction is not None


def test_any_other_select_inside_is_released() -> None:
    inside = f"SELECT r, MEDIAN(s) AS m FROM (SELECT LAST(region) AS r, SUM(amount) AS s FROM orders {UNIT}) GROUP BY r"
    made = plan(f"SELECT MAX(m) FROM ({inside})")
    assert [(aggregate.label, len(made.cells)) for aggregate in made.aggregates] == [("m", 2)]
    assert len(made.shown) == 2


@pytest.mark.parametrize(
    ("reduced", "where", "kind", "domain", "nullable"),
    [
        ("COUNT(*)", "", Kind.INTEGER, Domain(lower=1), False),
        ("COUNT(amount)", "", Kind.INTEGER, Domain(lower=0), False),
        ("COUNT(score)", "", Kind.INTEGER, Domain(lower=1), False),
        ("SUM(amount)", "", Kind.DECIMAL, Domain(Fraction(1, 100), lower=0), True),
        ("SUM(score)", "", Kind.INTEGER, Domain(), False),
        ("SUM(score)", "WHERE score >= 3", Kind.INTEGER, Domain(lower=3), False),
        ("SUM(score)", "WHERE score < 0", Kind.INTEGER, Domain(upper=-1), False),
        ("MEAN(score)", "", Kind.NUMBER, Domain(Fraction(1, 1000), -5000, 9000), False),
        ("AVG(amount)", "WHERE amount IS NOT NULL", Kind.NUMBER, Domain(Fraction(1, 100_000), lower=0), False),
        ("MEDIAN(score)", "", Kind.NUMBER, Domain(Fraction(1, 2), -10, 18), False),
        ("MIN(amount)", "WHERE amount > 7", Kind.DECIMAL, Domain(Fraction(1, 100), lower=701), False),
        ("LAST(score)", "", Kind.INTEGER, Domain(lower=-5, upper=9), False),
        ("ANY(paid)", "", Kind.INTEGER, Domain(lower=0, upper=1), True),
        ("LEAST(SUM(amount), 150)", "", Kind.DECIMAL, Domain(Fraction(1, 100), 0, 15_000), True),
        ("GREATEST(LEAST(SUM(score), 150), -10)", "", Kind.INTEGER, Domain(lower=-10, upper=150), False),
        ("LEAST(150, GREATEST(-10, SUM(score)))", "", Kind.INTEGER, Domain(lower=-10, upper=150), False),
        ("LEAST(SUM(score), 150, 20 + 10)", "", Kind.INTEGER, Domain(upper=30), False),
        ("LEAST(AVG(score), 1.5)", "", Kind.NUMBER, Domain(Fraction(1, 1000), -5000, 1500), False),
        ("LEAST(COUNT(*), 3)", "", Kind.INTEGER, Domain(lower=1, upper=3), False),
        ("LEAST(MIN(score), 2)", "WHERE score >= 5", Kind.INTEGER, Domain(lower=2, upper=2), False),
        ("LEAST(MAX(time), DATE '1970-01-02')", "", Kind.TIMESTAMP, Domain(upper=86_400_000_000), True),
    ],
)
def test_domains_follow_from_declarations(reduced: str, where: str, kind: Kind, domain: Domain, nullable: bool) -> None:
    made = of_people(reduced, where)
    column = made.dataset.columns[str(made.aggregates[0].column)]
    assert (column.kind, column.domain, column.nullable) == (kind, domain, nullable)


def test_truth_is_the_greatest_or_the_least_by_the_declared_order() -> None:
    calls = {
        "BOOL_OR(paid)": "MAX(paid)",
        "ALL(paid)": "MIN(paid)",
        "ANY(open)": "MIN(open)",
        "BOOL_AND(open)": "MAX(open)",
    }
    for call, canonical in calls.items():
        made = of_people(call, outer="COUNT(v)")
        assert [value.name for value in made.dataset.reduction.values][1:] == [canonical], call  # type: ignore[union-attr]


def test_the_number_of_people_is_public_only_of_a_whole_table() -> None:
    whole, filtered = (of_people("COUNT(*)", where, "COUNT(*)") for where in ("", "WHERE score > 3"))
    assert (whole.epsilon, whole.dataset.size) == (0, 1000)
    assert (filtered.epsilon, filtered.dataset.size) == (5, None)
    tautology = of_people("COUNT(*)", "WHERE score > 3 OR score < 4", "COUNT(*)")
    assert tautology.normal_form == whole.normal_form


def test_rows_are_sums_over_people() -> None:
    made = read(
        "SELECT COUNT(*), COUNT(score), COUNT(paid), SUM(amount), AVG(amount) AS m FROM orders", {"orders": ORDERS}
    )
    assert [(measure.label, type(measure.statistic), measure.column) for measure in made.measures] == [
        ("COUNT(*)", Sum, "COUNT(*)"),
        ("COUNT(score)", Sum, "COUNT(*)"),
        ("COUNT(paid)", Sum, "COUNT(paid)"),
        ("SUM(amount)", Sum, "SUM(amount)"),
        ("m", Mean, "AVG(amount)"),
    ]
    assert plan("SELECT COUNT(*) FROM orders").epsilon == 5


def test_equal_questions_have_one_normal_form() -> None:
    one = plan(f"SELECT MEDIAN(a) FROM (SELECT SUM(amount) AS a FROM orders WHERE score > 3 {UNIT}) WHERE a > 5")
    two = plan(
        "SELECT MEDIAN(total) AS m FROM (SELECT COUNT(*) AS n, SUM(amount) AS total, country FROM orders "
        "WHERE NOT score <= 3 GROUP BY country, person_id) WHERE 5 < total"
    )
    assert one.normal_form == two.normal_form
    others = [
        f"SELECT MEDIAN(a) FROM (SELECT SUM(amount) AS a FROM orders WHERE score > 4 {UNIT}) WHERE a > 5",
        f"SELECT MEDIAN(a) FROM (SELECT AVG(amount) AS a FROM orders WHERE score > 3 {UNIT}) WHERE a > 5",
        f"SELECT MEDIAN(a) FROM (SELECT SUM(amount) AS a FROM orders {UNIT}) WHERE a > 5",
    ]
    assert len({one.normal_form, *(plan(sql).normal_form for sql in others)}) == 4
    rows = plan("SELECT SUM(amount) FROM orders WHERE score > 3")
    people = plan(f"SELECT SUM(a) FROM (SELECT SUM(amount) AS a FROM orders WHERE score > 3 {UNIT})")
    assert rows.normal_form == people.normal_form


def test_a_cap_inside_is_a_cap_around() -> None:
    inside = of_people("GREATEST(LEAST(SUM(score), 150), -10)", outer="SUM(v), AVG(v)")
    spelt = [
        of_people("SUM(score)", outer="SUM(LEAST(GREATEST(v, -10), 150)), AVG(GREATEST(LEAST(150.0, v), 1 - 11))"),
        of_people("LEAST(SUM(score), 150)", outer="SUM(GREATEST(v, -10)), AVG(GREATEST(LEAST(v, 170), -10))"),
        of_people("GREATEST(SUM(score), -10)", outer="AVG(LEAST(v, 150, 151)), SUM(LEAST(v, 150))"),
    ]
    assert {each.normal_form for each in spelt} == {inside.normal_form}
    others = ["SUM(score)", "LEAST(SUM(score), 150)", "GREATEST(LEAST(SUM(score), 151), -10)"]
    forms = {of_people(other, outer="SUM(v), AVG(v)").normal_form for other in others}
    assert len({inside.normal_form, *forms}) == 4


def test_a_cap_that_no_value_lies_beyond_changes_nothing() -> None:
    plain = of_people("MAX(score)")
    for capped in ("LEAST(MAX(score), 9)", "GREATEST(LEAST(MAX(score), 20), -5)"):
        assert of_people(capped).normal_form == plain.normal_form
        assert (
            of_people("MAX(score)", outer=f"MEDIAN({capped.replace('MAX(score)', 'v')})").normal_form
            == plain.normal_form
        )


def test_a_capped_value_has_bounds() -> None:
    """So its maximum is answered, its sum needs no drawn limits, and it has bins."""
    with pytest.raises(Unanswerable):
        of_people("SUM(amount)", outer="MAX(v)")
    made = of_people("SUM(amount)", outer="MAX(LEAST(v, 150)), SUM(LEAST(v, 150)), SUM(v)")
    domains = {aggregate.label: aggregate.domain.grid for aggregate in made.aggregates}
    assert [(domain.lower, domain.upper) for domain in domains.values()].count((0, 15_000)) == 2
    assert domains["SUM(LEAST(v, 150))"].bounded is not domains["SUM(v)"].bounded
    binned = plan(
        f"SELECT BIN(LEAST(v, 150), 50), COUNT(*) FROM (SELECT SUM(amount) AS v FROM orders {UNIT}) "
        "GROUP BY BIN(LEAST(v, 150), 50)"
    )
    assert len(binned.cells) == 4


def test_a_label_that_looks_like_a_cap_is_none() -> None:
    made = plan(
        'SELECT MEDIAN(LEAST(v, 9)), MEDIAN("LEAST(v, 9)") FROM '
        f'(SELECT SUM(score) AS v, MIN(score) AS "LEAST(v, 9)" FROM orders {UNIT})'
    )
    assert {aggregate.column for aggregate in made.aggregates} == {"LEAST(SUM(score), 9)", "MIN(score)"}


def test_a_cap_in_words() -> None:
    form = of_people("SUM(score)", outer="SUM(GREATEST(LEAST(v, 150), -10))").normal_form
    asked = "sum of each person's sum of score (values below -10 count as -10, values above 150 count as 150)"
    assert describe_question(form) == asked
    dated = of_people("MAX(time)", outer="MEDIAN(LEAST(v, TIMESTAMP '2026-06-30 12:00:00'))").normal_form
    assert "(values above 2026-06-30 12:00:00 count as 2026-06-30 12:00:00)" in describe_question(dated)


def test_questions_in_words() -> None:
    form = of_people("SUM(amount)", "WHERE region = 'north'", "MEDIAN(v), COUNT(*)").normal_form
    assert describe_question(form) == (
        "number of people and median of each person's sum of amount, of rows where region is north"
    )
    assert describe_selection(form) == "of rows where region is north"
    assert describe_question(plan("SELECT COUNT(*) FROM orders").form) == "sum of each person's number of rows"


REFUSED = [
    (f"SELECT person_id, SUM(amount) FROM orders {UNIT}", "never released"),
    ("SELECT MEDIAN(s) FROM (SELECT SUM(amount) AS s FROM orders GROUP BY person_id)", "nothing else"),
    (f"SELECT MEDIAN(s) FROM (SELECT SUM(amount) AS s FROM orders {UNIT}, region)", "nothing else"),
    (f"SELECT COUNT(DISTINCT person_id) FROM (SELECT SUM(amount) AS s, person_id FROM orders {UNIT})", "apart"),
    (f"SELECT COUNT(*) FROM (SELECT SUM(amount) AS s FROM orders {UNIT}) WHERE country = 'x'", "apart"),
    (f"SELECT MEDIAN(s) FROM (SELECT SUM(amount) + 1 AS s FROM orders {UNIT})", "no value of a person"),
    (f"SELECT MEDIAN(s) FROM (SELECT COUNT(DISTINCT region) AS s FROM orders {UNIT})", "no value of a person"),
    (f"SELECT MEDIAN(s) FROM (SELECT STDDEV(amount) AS s FROM orders {UNIT})", "no value of a person"),
    (f"SELECT MEDIAN(s) FROM (SELECT SUM(region) AS s FROM orders {UNIT})", "of numbers"),
    (f"SELECT MEDIAN(s) FROM (SELECT BOOL_OR(score) AS s FROM orders {UNIT})", "column of truth"),
    (f"SELECT MEDIAN(s) FROM (SELECT SUM(amount) AS s FROM orders {UNIT} HAVING COUNT(*) > 1)", "no HAVING"),
    (f"SELECT MEDIAN(s) FROM (SELECT SUM(amount) AS s FROM orders {UNIT} LIMIT 5)", "no LIMIT"),
    (f"SELECT MEDIAN(s) FROM (SELECT SUM(amount) AS s, MIN(amount) AS S FROM orders {UNIT})", "two different values"),
    (f"SELECT s FROM (SELECT SUM(amount) AS s FROM orders {UNIT})", "shown beside statistics only"),
    ("SELECT MEDIAN(person_id) FROM orders", "tells people apart"),
    (f"SELECT MEDIAN(s) FROM (SELECT SUM(amount) AS s FROM orders WHERE score > 99 {UNIT})", "no row can ever"),
    *(
        (f"SELECT AVG({cap}) FROM (SELECT SUM(score) AS s, LAST(region) AS r, MAX(time) AS t FROM orders {UNIT})", why)
        for cap, why in [
            ("LEAST(s, t)", "LEAST caps one number or date of a person by constants"),
            ("LEAST(s)", "caps one number or date"),
            ("LEAST(150)", "caps one number or date"),
            ("LEAST(s + 1, 150)", "caps one number or date"),
            ("LEAST(s, NULL)", "none of them NULL"),
            ("LEAST(r, 'north')", "caps one number or date"),
            ("LEAST(DISTINCT s, 150)", "caps one number or date|LEAST"),
            ("LEAST(SUM(s), 150)", "a column is expected here"),
            ("LEAST(s, 0.5)", r"a multiple of 1, the step of SUM\(score\)"),
            ("LEAST(s, 'x')", "is a number"),
            ("LEAST(s, 1e30)", "up to 2.62"),
            ("GREATEST(LEAST(s, 0), 150)", "the same for every person"),
            ("GREATEST(LEAST(s, 150), 150)", "the same for every person"),
        ]
    ),
    (f"SELECT AVG(n) FROM (SELECT LEAST(COUNT(*), 1) AS n FROM orders {UNIT})", "the same for every person"),
    (
        f"SELECT AVG(n) FROM (SELECT LEAST(score, 1) AS n FROM orders {UNIT})",
        "LEAST.value, 150. and GREATEST.value, 0.",
    ),
    (f"SELECT AVG(n) FROM (SELECT SUM(LEAST(score, 1)) AS n FROM orders {UNIT})", "declared .* as its bounds"),
    ("SELECT SUM(LEAST(score, 150)) FROM orders", "What caps the columns of a record .* as its bounds"),
]


@pytest.mark.parametrize(("sql", "why"), REFUSED)
def test_refused(sql: str, why: str) -> None:
    with pytest.raises(QuestionRefused, match=why):
        plan(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT VARIANCE(amount) FROM orders WHERE region = 'north' AND (score > 3)",
        "SELECT IQR(amount) FROM orders",
        "SELECT VARIANCE(score) + 1 AS v FROM orders",
        "SELECT MODE(region) FROM orders",
        "SELECT COUNT(DISTINCT score) FROM orders",
        "SELECT region, COUNT(*) FROM orders GROUP BY region",
        "SELECT region, MEDIAN(amount) FROM orders WHERE score > 3 GROUP BY 1",
        "SELECT KTH_LARGEST(score, 20) FROM orders",
    ],
)
def test_what_is_refused_of_rows_comes_with_a_question_that_is_answered(sql: str) -> None:
    with pytest.raises(QuestionRefused) as refused:
        plan(sql)
    message = str(refused.value).splitlines()[0]
    instead = message[message.index("SELECT") : message.rindex(" (line")]
    assert plan(instead).dataset.reduction is not None


def test_last_needs_an_order() -> None:
    with pytest.raises(QuestionRefused, match="declares no order"):
        plan(f"SELECT MEDIAN(s) FROM (SELECT LAST(amount) AS s FROM orders {UNIT})", replace(ORDERS, order=None))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM orders WHERE person_id = 7",
        "SELECT MEDIAN(person_id) FROM orders",
        "SELECT person_id, COUNT(*) FROM orders",
        f"SELECT country, COUNT(*) FROM (SELECT SUM(amount) AS s FROM orders {UNIT}) GROUP BY country",
    ],
)
def test_what_tells_people_apart_is_nothing_to_ask_about(sql: str) -> None:
    with pytest.raises(QuestionRefused, match="tells people apart"):
        plan(sql)


def test_advice_calls_a_value_as_the_question_does() -> None:
    with pytest.raises(Unanswerable, match=r"KTH_LARGEST\(s, \d+\).*WHERE s BETWEEN"):
        plan(f"SELECT MAX(s) FROM (SELECT SUM(amount) AS s FROM orders {UNIT})")

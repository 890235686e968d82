"""What a question may say, and what is said to one that may not."""

import re
from dataclasses import replace
from fractions import Fraction

import pytest

from idios.core.domain import Domain, Kind
from idios.core.statistics import (
    Count,
    DiscreteQuantile,
    DistinctCount,
    InterquartileRange,
    KthLargest,
    KthSmallest,
    Maximum,
    Mean,
    Median,
    Minimum,
    Mode,
    Quantile,
    StandardDeviation,
    Sum,
    TrimmedMean,
    Variance,
    WinsorizedMean,
)
from idios.declare.schema import Column, Dataset
from idios.errors import InvalidInput, QuestionRefused
from idios.expressions.language import Reference
from idios.expressions.predicates import ALWAYS, NEVER, Among, And, Or
from idios.plan.planner import make_plan
from idios.plan.question import Key, Question
from idios.sql import reader
from idios.sql.reader import KEPT, LONGEST_KEPT, RecentQuestions, read
from tests.sql.declared import PEOPLE, dataset

QUARTER = Fraction(1, 4)


def question(sql):
    return read(sql, {"people": PEOPLE})


STATISTICS = [
    ("COUNT(*)", Count(), None),
    ("COUNT(income)", Count(), "income"),
    ("COUNT(region)", Count(), "region"),
    ("COUNT(DISTINCT region)", DistinctCount(), "region"),
    ("count ( distinct born )", DistinctCount(), "born"),
    ("SUM(price)", Sum(), "price"),
    ("AVG(price)", Mean(), "price"),
    ("MEDIAN(income)", Median(), "income"),
    ("median(born)", Median(), "born"),
    ("PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY income)", Quantile(QUARTER), "income"),
    ("PERCENTILE_CONT(income, 0.25)", Quantile(QUARTER), "income"),
    ("percentile_disc(.25) within group (order by seen asc)", DiscreteQuantile(QUARTER), "seen"),
    ("PERCENTILE_DISC(income, 25e-2)", DiscreteQuantile(QUARTER), "income"),
    ("QUANTILE(income, 0.250)", Quantile(QUARTER), "income"),
    ("MIN(age)", Minimum(), "age"),
    ("MAX(seen)", Maximum(), "seen"),
    ("KTH_LARGEST(income, 2)", KthLargest(2), "income"),
    ("KTH_SMALLEST(born, 3)", KthSmallest(3), "born"),
    ("IQR(income)", InterquartileRange(), "income"),
    ("TRIMMED_MEAN(income, 0.05)", TrimmedMean(Fraction(1, 20)), "income"),
    ("WINSORIZED_MEAN(income, 0.05)", WinsorizedMean(Fraction(1, 20)), "income"),
    ("VARIANCE(age)", Variance(), "age"),
    ("VAR_POP(age)", Variance(), "age"),
    ("STDDEV(age)", StandardDeviation(), "age"),
    ("STDDEV_POP(age)", StandardDeviation(), "age"),
    ("MODE(region)", Mode(), "region"),
    ('MEDIAN("Größe in cm")', Median(), "Größe in cm"),
    ('MEDIAN("limit")', Median(), "limit"),
    ("Median(INCOME)", Median(), "income"),
]


@pytest.mark.parametrize(("call", "statistic", "column"), STATISTICS)
def test_every_statistic_is_read(call, statistic, column):
    (measure,) = question(f"SELECT {call} FROM people").measures
    assert (measure.statistic, measure.column) == (statistic, column)
    assert type(measure.statistic) is type(statistic)


def test_labels_are_what_was_written():
    asked = question(
        'SELECT REGION, median( INCOME ) , kth_largest(income,2) AS "second best", count(*) n, '
        "percentile_cont(0.5)  within group(order by income)\n FROM People GROUP BY region"
    )
    assert [item.label for item in asked.shown[0].items] == [
        "region",
        "median(INCOME)",
        "second best",
        "n",
        "percentile_cont(0.5) within group(order by income)",
    ]
    assert asked.dataset == "people"


def test_keys_are_read():
    asked = question("SELECT BIN(age, 10) AS decade, COUNT(*) FROM people GROUP BY Region, bin(AGE, 1e1), region")
    assert asked.keys == (Key("region", "region"), Key("decade", "age", Fraction(10)))
    assert [item.label for item in asked.shown[0].items] == ["region", "decade", "COUNT(*)"]


CONDITIONS = [
    ("age < 30", Among("age", ((0, 29),))),
    ("30 > age", Among("age", ((0, 29),))),
    ("age <= 29.9", Among("age", ((0, 29),))),
    ("age > -1", Among("age", ((0, 120),))),
    ("age >= 119.5", Among("age", ((120, 120),))),
    ("age > 1e18", Among("age", ())),
    ("age = 30", Among("age", ((30, 30),))),
    ("age = 30.5", Among("age", ())),
    ("age <> 30.5", Among("age", ((0, 120),))),
    ("age <> 0", Among("age", ((1, 120),))),
    ("NOT age <> 0", Among("age", ((0, 0),))),
    ("age BETWEEN 30 AND 40", Among("age", ((30, 40),))),
    ("age NOT BETWEEN 30 AND 40", Among("age", ((0, 29), (41, 120)))),
    ("age BETWEEN 40 AND 30", Among("age", ())),
    ("age IN (3, 1, 2, 7.5, 99, 999)", Among("age", ((1, 3), (99, 99)))),
    ("age NOT IN (0)", Among("age", ((1, 120),))),
    ("age IS NULL", Among("age", (), nulls=True)),
    ("age IS NOT NULL", Among("age", ((0, 120),))),
    ("NOT income IS NULL", Among("income", ((None, None),))),
    ("income < -0", Among("income", ((None, -1),))),
    ("income >= 4611686018427387904", Among("income", ((2**62, None),))),
    ("price < 9.995", Among("price", ((0, 999),))),
    ("price = 9.99", Among("price", ((999, 999),))),
    ("price = 9.995", Among("price", ())),
    ('"Größe in cm" > 180', Among("Größe in cm", ((361, None),))),
    ("region = 'south'", Among("region", ((1, 1),))),
    ("region IN ('north', 'west', 'north')", Among("region", ((0, 0), (3, 3)))),
    ("smoker = TRUE", Among("smoker", ((0, 0),))),
    ("age = TRUE", Among("age", ((1, 1),))),
    ("born < DATE '1970-01-11'", Among("born", ((0, 9),))),
    ("born < '1970-01-11'", Among("born", ((0, 9),))),
    ("born >= DATE '1950-01-01'", Among("born", ((0, 20_000),))),
    ("seen = TIMESTAMP '1970-01-01 00:00:01'", Among("seen", ((10**6, 10**6),))),
    ("seen > '1969-12-31'", Among("seen", ((-86_400_000_000 + 1, None),))),
    ("TRUE", ALWAYS),
    ("NOT TRUE", NEVER),
    ("age = 1 AND NOT (sex = 'f' OR age > 2)", None),
]


@pytest.mark.parametrize(("where", "meaning"), CONDITIONS)
def test_conditions_become_grid_points(where, meaning):
    found = question(f"SELECT COUNT(*) FROM people WHERE {where}").filter
    if meaning is None:
        meaning = And((Among("age", ((1, 1),)), And((Among("sex", ((1, 1),)), Among("age", ((0, 2),))))))
    assert found == meaning


def test_a_question_refuses_to_be_made_of_nothing():
    with pytest.raises(InvalidInput, match="at least one statistic"):
        Question("people", ())
    with pytest.raises(InvalidInput, match="lists the column 'x' as 'y'"):
        Dataset("t", {"y": Column("x", Kind.INTEGER, Domain())})


def test_or_is_any():
    found = question("SELECT COUNT(*) FROM people WHERE age = 1 OR age = 2 OR NOT (age = 3 AND sex = 'f')").filter
    inner = Or((Among("age", ((0, 2), (4, 120))), Among("sex", ((1, 1),))))
    assert found == Or((Among("age", ((1, 1),)), Among("age", ((2, 2),)), inner))


REFUSED = [
    ("SELECT MEDIAN(incom) FROM people", "the column 'incom' is not declared. Did you mean income?", (1, 15)),
    ('SELECT MEDIAN("Income") FROM people', "the column 'Income' is not declared", (1, 15)),
    ("SELECT MEDIAN(qqq) FROM people", 'Declared: "Größe in cm", age', (1, 15)),
    ("SELECT COUNT(*) FROM persons", "there is no data set 'persons'", (1, 22)),
    ('SELECT COUNT(*) FROM "PEOPLE"', "there is no data set 'PEOPLE'", (1, 22)),
    ("SELECT COUNT(*) FROM people p", "without an alias", (1, 22)),
    ("SELECT COUNT(*) FROM people, people", "a table is joined once", None),
    ("SELECT COUNT(*) FROM read_csv('a.csv')", "FROM names one declared data set", (1, 22)),
    ("SELECT COUNT(*) FROM (people)", "A question reads", None),
    ("SELECT COUNT(*)", "FROM is missing", None),
    ("SELECT 1 FROM people", "SELECT lists no statistic", (1, 1)),
    ("SELECT 'a' FROM people", "SELECT lists no statistic", (1, 1)),
    ("SELECT NULL FROM people", "SELECT lists no statistic", (1, 1)),
    ("SELECT NOT MAX(age) FROM people", "NOT is followed by a condition, and this is a number", (1, 8)),
    ("SELECT COUNT(*) + 'a' FROM people", "+ is of numbers, and this is a text", None),
    ("SELECT COUNT(*) = 'a' FROM people", "values of one type are expected here, got number and text", None),
    ("SELECT COUNT(*) + MODE(region) FROM people", "+ is of numbers, and this is a text", None),
    ("SELECT MAX(seen) - MIN(seen) FROM people", "timestamps are compared", None),
    ("SELECT MAX(born) + 0.5 FROM people", "a date moves by a whole number of days", None),
    ("SELECT ROUND(MAX(age), 0.5) FROM people", "the digits of ROUND", None),
    ("SELECT ROUND(MAX(age), 99) FROM people", "the digits of ROUND", None),
    ("SELECT ROUND() FROM people", "ROUND is written ROUND(number)", (1, 8)),
    ("SELECT NULLIF(MAX(age)) FROM people", "NULLIF is written NULLIF(value, value)", (1, 8)),
    ("SELECT GREATEST(MODE(region), 'a') FROM people", "GREATEST is of numbers or dates", (1, 8)),
    ("SELECT ABS(MODE(region)) FROM people", "ABS is of numbers, and this is a text", (1, 8)),
    ("SELECT CASE WHEN 1 THEN COUNT(*) END FROM people", "WHEN is followed by a condition", None),
    ("SELECT CASE WHEN TRUE THEN COUNT(*) ELSE 'a' END FROM people", "values of one type", None),
    ("SELECT COUNT(*) FROM people HAVING COUNT(*)", "a condition is expected here", (1, 36)),
    ("SELECT COUNT(*) FROM people HAVING age > 3", "only if it is a key of GROUP BY", (1, 36)),
    ("SELECT COUNT(*) FROM people HAVING n > 3", "there is no result 'n' here: there are COUNT(*) (line", (1, 36)),
    ("SELECT COUNT(*) AS n FROM people WHERE age > 3 AND N > 3", "on results stands in HAVING", (1, 52)),
    ("SELECT COUNT(*) FROM people ORDER BY 2", "ORDER BY 2 is no item of SELECT", (1, 38)),
    ("SELECT COUNT(*) FROM people ORDER BY 0", "ORDER BY 0 is no item of SELECT", (1, 38)),
    ("SELECT COUNT(*) FROM people ORDER BY 1.5", "is a whole number", (1, 38)),
    ("SELECT COUNT(*) FROM people ORDER BY age", "only if it is a key of GROUP BY", (1, 38)),
    ("SELECT COUNT(*) FROM people LIMIT -1", "LIMIT is a whole number", None),
    ("SELECT COUNT(*) FROM people LIMIT COUNT(*)", "LIMIT is a whole number", None),
    ("SELECT COUNT(*) FROM people LIMIT 1 OFFSET 0.5", "OFFSET is a whole number", None),
    ("SELECT COUNT(*) FROM people GROUP BY 2", "GROUP BY 2 is no item of SELECT", (1, 38)),
    ("SELECT COUNT(*), * FROM people", "a star stands in COUNT(*)", (1, 18)),
    ("SELECT * FROM people", "a star", None),
    ("SELECT LN(COUNT(*)) FROM people", "LN is not offered. Statistics: COUNT", (1, 8)),
    ("SELECT MAX(m) FROM (SELECT MEDIAN(age) AS m FROM people) WHERE n > 1", "there is no result 'n' here", None),
    ("SELECT KTH_LARGEST(m, 2) FROM (SELECT MEDIAN(age) AS m FROM people)", "KTH_LARGEST is not offered", None),
    ("SELECT m, MAX(m) FROM (SELECT MEDIAN(age) AS m FROM people)", "only if it is a key of GROUP BY", None),
    ("SELECT SUM(r) FROM (SELECT MODE(region) AS r FROM people)", "SUM is of numbers", None),
    ("SELECT *, MAX(m) FROM (SELECT MEDIAN(age) AS m FROM people)", "a star", None),
    ("SELECT MAX(age) FROM (SELECT MEDIAN(age) AS m FROM people)", "there is no result 'age' here", None),
    ("SELECT 1 FROM (SELECT 2 FROM people)", "SELECT lists no statistic", None),
    ("SELECT COUNT(*) FROM (FROM people)", "FROM is followed by a data set or by (SELECT …)", None),
    ("SELECT MAX(m) FROM (FROM MEDIAN(age) AS m FROM people)", "FROM is followed by a data set", None),
    ("SELECT 1 FROM (FROM (SELECT COUNT(*) FROM people))", "FROM is followed by a data set", None),
    ("SELECT 1 FROM " + "(SELECT 1 FROM " * 12 + "people" + ")" * 12, "at most 10 SELECT", None),
    ("SELECT age FROM people", "age is no category", (1, 8)),
    ("SELECT region FROM people", "only if it is a key of GROUP BY", (1, 8)),
    ("SELECT region FROM people GROUP BY region", "SELECT lists no statistic", (1, 1)),
    ("SELECT MEDAN(age) FROM people", "MEDAN is not offered. Did you mean MEDIAN?", (1, 8)),
    ("SELECT getenv('HOME') FROM people", "getenv is not offered. Statistics: COUNT, SUM", (1, 8)),
    ("SELECT ABS(age) FROM people", "a column is shown beside statistics only if it is a key", (1, 12)),
    ("SELECT VAR_SAMP(age) FROM people", "VARIANCE(column), which divides by n", (1, 8)),
    ("SELECT STDDEV_SAMP(age) FROM people", "STDDEV(column), which divides by n", (1, 8)),
    ("SELECT BIN(age, 10), COUNT(*) FROM people", "only if it is a key of GROUP BY", (1, 8)),
    ("SELECT SUM(ABS(age)) FROM people", "a column is expected here, nothing computed from one: SUM(column)", (1, 12)),
    ("SELECT SUM(-age) FROM people", "a column is expected here", None),
    ("SELECT SUM(1) FROM people", "a column is expected here", (1, 12)),
    ("SELECT SUM(age, income) FROM people", "SUM is written SUM(column)", (1, 8)),
    ("SELECT SUM() FROM people", "SUM is written SUM(column)", (1, 8)),
    ("SELECT COUNT() FROM people", "COUNT is written COUNT(column) or COUNT(*)", (1, 8)),
    ("SELECT COUNT(DISTINCT age, sex) FROM people", "COUNT(DISTINCT column)", (1, 8)),
    ("SELECT MEDIAN(age, 1) FROM people", "MEDIAN is written MEDIAN(column)", (1, 8)),
    ("SELECT KTH_LARGEST(age) FROM people", "KTH_LARGEST is written KTH_LARGEST(column, k)", (1, 8)),
    ("SELECT KTH_LARGEST(2, age) FROM people", "a column is expected here", (1, 20)),
    ("SELECT KTH_LARGEST(age, 1.5) FROM people", "k must be a whole number", (1, 25)),
    ("SELECT KTH_LARGEST(age, 0) FROM people", "k must be a whole number, at least 1", (1, 25)),
    ("SELECT KTH_LARGEST(age, -2) FROM people", "k must be a whole number", (1, 25)),
    ("SELECT KTH_LARGEST(age, sex) FROM people", "k of KTH_LARGEST(column, k) is a number", (1, 25)),
    ("SELECT KTH_LARGEST(age, '2') FROM people", "is a number", (1, 25)),
    ("SELECT QUANTILE(age, 1.5) FROM people", "q must be a share between 0 and 1, got 1.5 (line", (1, 22)),
    ("SELECT QUANTILE(age, 90) FROM people", "between 0 and 1, got 90: did you mean 0.9?", (1, 22)),
    ("SELECT TRIMMED_MEAN(age, 5) FROM people", "in [0, 0.5), got 5: did you mean 0.05?", (1, 26)),
    ("SELECT TRIMMED_MEAN(age, 0.5) FROM people", "must be in [0, 0.5)", (1, 26)),
    ("SELECT PERCENTILE_CONT(0.5) FROM people", "WITHIN GROUP (ORDER BY column)", (1, 8)),
    ("SELECT PERCENTILE_CONT(age, 0.5) WITHIN GROUP (ORDER BY age) FROM people", "PERCENTILE_CONT is written", (1, 8)),
    ("SELECT MEDIAN() WITHIN GROUP (ORDER BY age) FROM people", "MEDIAN is written MEDIAN(column)", (1, 8)),
    ("SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY age, sex) FROM people", "followed by (ORDER BY column)", None),
    (
        "SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY age DESC) FROM people",
        "a quantile counts from the least value",
        (1, 52),
    ),
    (
        "SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY age NULLS FIRST) FROM people",
        "followed by (ORDER BY column)",
        (1, 52),
    ),
    ("SELECT MEDIAN(region) FROM people", "MEDIAN is offered for columns of type date, decimal", (1, 8)),
    (
        "SELECT SUM(born) FROM people",
        "SUM is offered for columns of type decimal, integer, number; born is a date",
        (1, 8),
    ),
    ("SELECT AVG(seen) FROM people", "seen is a timestamp", (1, 8)),
    ("SELECT VARIANCE(born) FROM people", "born is a date", (1, 8)),
    ("SELECT IQR(born) FROM people", "born is a date", (1, 8)),
    ("SELECT MODE(age) FROM people", "MODE is offered for columns of type category", (1, 8)),
    ("SELECT COUNT(*) FROM people WHERE 1", "no condition that is offered", (1, 35)),
    ("SELECT COUNT(*) FROM people WHERE age = NULL", "write IS NULL", None),
    ("SELECT COUNT(*) FROM people WHERE age IN (1, NULL)", "write IS NULL", None),
    ("SELECT COUNT(*) FROM people WHERE age = '30'", "written without quotes", (1, 41)),
    ("SELECT COUNT(*) FROM people WHERE income = TRUE", "income is a number", None),
    ("SELECT COUNT(*) FROM people WHERE region = 1", "a string in single quotes", (1, 44)),
    ("SELECT COUNT(*) FROM people WHERE region = TRUE", "a string in single quotes", None),
    ("SELECT COUNT(*) FROM people WHERE region < 'north'", "no order: use =, <> or IN", (1, 35)),
    ("SELECT COUNT(*) FROM people WHERE region BETWEEN 'a' AND 'b'", "no order", (1, 35)),
    ("SELECT COUNT(*) FROM people WHERE born = 3", "DATE '2026-01-31'", (1, 42)),
    ("SELECT COUNT(*) FROM people WHERE born = '2020-13-01'", "DATE '2026-01-31'", (1, 42)),
    ("SELECT COUNT(*) FROM people WHERE born = '2020-01-01 00:00'", "DATE '2026-01-31'", (1, 42)),
    ("SELECT COUNT(*) FROM people WHERE born = DATE '2020-02-30'", "'2020-02-30' is no date", (1, 42)),
    ("SELECT COUNT(*) FROM people WHERE born = DATE 'infinity'", "is no date", (1, 42)),
    ("SELECT COUNT(*) FROM people WHERE born = DATE '2020-02-03 10:00'", "is no date", (1, 42)),
    ("SELECT COUNT(*) FROM people WHERE seen = TIMESTAMP '2020-01-01 00:00:00+01:00'", "without a time zone", (1, 42)),
    ("SELECT COUNT(*) FROM people WHERE seen = '2020-01-01 24:00'", "DATE '2026-01-31'", (1, 42)),
    ("SELECT COUNT(*) FROM people WHERE age = DATE '2020-01-01'", "age is a number", (1, 41)),
    ("SELECT COUNT(*) FROM people WHERE", "a condition is missing after WHERE", (1, 29)),
    ("SELECT COUNT(*) FROM people WHERE age > 3 AND", "missing after AND: write one, or leave AND out", (1, 43)),
    ("SELECT COUNT(*) FROM people WHERE age > 3 OR GROUP BY region", "a condition is missing after OR", (1, 43)),
    ("SELECT COUNT(*) FROM people WHERE (NOT) AND age > 3", "a condition is missing after NOT", (1, 36)),
    ("SELECT COUNT(*) FROM people WHERE age == 30", "== is no comparison: write = (line", (1, 39)),
    ("SELECT COUNT(*) FROM people WHERE age => 30", "=> is no comparison: write >= (line", (1, 39)),
    ("SELECT COUNT(*) FORM people", "FORM has no meaning here. Did you mean FROM?", (1, 17)),
    ("SELECT COUNT(*) FROM people WEHRE age > 3", "Did you mean WHERE?", (1, 29)),
    ("SELECT region, COUNT(*) FROM people gruop BY region", "Did you mean GROUP?", (1, 37)),
    ("SELECT COUNT(*) FROM people LIMT 3", "Did you mean LIMIT?", (1, 29)),
    ("SELECT MEDIAN('AGE') FROM people", "in single quotes is text, and no name: write age", (1, 15)),
    ("SELECT COUNT('age') FROM people", "in single quotes is text, and no name: write age", (1, 14)),
    ("SELECT COUNT(*) FROM people WHERE 'age' > 30", "in single quotes is text, and no name: write age", (1, 35)),
    ("SELECT COUNT(*) FROM 'people'", "in single quotes is text, and no name: write people", (1, 22)),
    ("SELECT COUNT(*) FROM people WHERE region = 'age'", "'age' is no declared value of region", (1, 44)),
    ("SELECT COUNT(NULL) FROM people", "a column is expected here", None),
    ("SELECT COUNT(DISTINCT 1) FROM people", "a column is expected here", (1, 23)),
    ("SELECT STD(age) FROM people", "STD is not offered. STDDEV(column), which divides by n, is offered", (1, 8)),
    ("SELECT VAR(age) FROM people", "VARIANCE(column), which divides by n, is offered", (1, 8)),
    ("SELECT AVERAGE(age) FROM people", "AVG(column) is offered", (1, 8)),
    ("SELECT COUNT(*) AS a FROM people ORDER BY b", "there is no result 'b' here: there are a (line", (1, 43)),
    ("SELECT COUNT(*) AS a FROM people GROUP BY region HAVING b > 1", "'b' here: there are region, a (l", (1, 57)),
    ("SELECT b, COUNT(*) AS a FROM people", "the column 'b' is not declared", (1, 8)),
    ("SELECT COUNT(*) FROM people WHERE age >", "cannot be read from here", None),
    ("SELECT COUNT(*) FROM people WHERE age > 3 age", "cannot be read from here", (1, 43)),
    ("SELECT COUNT(*) FROM people GROUP BY age", "GROUP BY BIN(age, width)", (1, 38)),
    ("SELECT COUNT(*) FROM people GROUP BY 1", "GROUP BY lists columns of categories or booleans and BIN", (1, 38)),
    ("SELECT COUNT(*) FROM people GROUP BY ALL", "ALL is not supported", (1, 38)),
    ("SELECT COUNT(*) FROM people GROUP BY (region, sex)", "a list in parentheses follows IN only", (1, 45)),
    ("SELECT COUNT(*) FROM people GROUP BY ROLLUP (age)", "GROUP BY BIN(age, width)", (1, 46)),
    ("SELECT COUNT(*) FROM people GROUP BY ROLLUP (region) WITH ROLLUP", "WITH options are not supported", (1, 54)),
    ("SELECT SUM(age) OVER () FROM people", "such as SUM(SUM(age)) OVER ()", (1, 12)),
    ("SELECT COUNT(*) FROM people GROUP BY region HAVING COUNT(*) OVER () > 1", "HAVING chooses the rows", (1, 52)),
    ("SELECT COUNT(*) FROM people WHERE COUNT(*) OVER () > 1", "", None),
    ("SELECT SUM(SUM(COUNT(*)) OVER ()) OVER () FROM people", "OVER within OVER is written as a SELECT", (1, 12)),
    (
        "SELECT COUNT(*) AS n, SUM(n) OVER () AS t, MAX(t) OVER () FROM people",
        "OVER within OVER is written as a SELECT",
        (1, 44),
    ),
    (
        "SELECT COUNT(*) AS n, n / SUM(n) OVER () AS s, MAX(n) OVER (PARTITION BY s) FROM people",
        "OVER within OVER is written as a SELECT",
        (1, 48),
    ),
    ("SELECT ROW_NUMBER() OVER () FROM people", "ROW_NUMBER OVER is not offered: there are COUNT, SUM", (1, 8)),
    ("SELECT MEDIAN(age) FROM people GROUP BY CUBE(sex)", "of each level would be a question of its own", (1, 8)),
    ("SELECT COUNT(DISTINCT age) FROM people GROUP BY ROLLUP(sex)", "totals are sums of the cells", (1, 8)),
    ("SELECT sex FROM people GROUP BY ROLLUP(sex) ORDER BY AVG(age)", "written SUM(age) / COUNT(age)", (1, 54)),
    ("SELECT GROUPING(sex), COUNT(*) FROM people GROUP BY sex", "and there are none here", (1, 8)),
    ("SELECT GROUPING(age), COUNT(*) FROM people GROUP BY CUBE(sex)", "a key of GROUP BY", None),
    ("SELECT COUNT(*) FROM people GROUP BY sex, CUBE(sex)", "one set of keys twice", None),
    ("SELECT COUNT(*) FROM people GROUP BY GROUPING SETS ((), ())", "one set of keys twice", (1, 1)),
    ("SELECT n FROM (SELECT COUNT(*) AS n FROM people) GROUP BY GROUPING SETS (())", "beside aggregates only", (1, 8)),
    ("SELECT GROUPING(n) FROM (SELECT COUNT(*) AS n FROM people)", "and there are none here", (1, 8)),
    ("SELECT COUNT(*) FROM people GROUP BY BIN(age)", "BIN(column, width)", (1, 38)),
    ("SELECT COUNT(*) FROM people GROUP BY BIN(age, 0)", "greater than 0", (1, 38)),
    ("SELECT COUNT(*) FROM people GROUP BY BIN(age, -5)", "greater than 0", (1, 38)),
    ("SELECT COUNT(*) FROM people GROUP BY BIN(age, sex)", "the width of a bin is a number", (1, 47)),
    ("SELECT COUNT(*) FROM people GROUP BY BIN(region, 2)", "region is a category", (1, 38)),
    ("SELECT COUNT(*) FROM people GROUP BY BIN(age, 5), BIN(age, 10)", "already a key", (1, 51)),
    ('SELECT COUNT(*) AS "" FROM people', "is no name", None),
    ("SELECT COUNT(*) NULL FROM people", "NULL is no name", (1, 17)),
    ("SELECT COUNT(*) group, MAX(age) FROM people", "group is no name", (1, 17)),
    ("SELECT COUNT(*) FROM people TABLESAMPLE", "without an alias", (1, 22)),
    ("SELECT COUNT(*) FROM people FOR UPDATE", "", None),
    ("SELECT TOP 3 COUNT(*) FROM people", "TOP is not supported: end the question with LIMIT 3", (1, 8)),
    ("SELECT COUNT(*) INTO x FROM people", "", None),
    ("SELECT " + ", ".join(["COUNT(*)"] * 201) + " FROM people", "at most 200 items", None),
]


@pytest.mark.parametrize(("sql", "fragment", "position"), REFUSED)
def test_refusals_say_what_is_allowed_and_where(sql, fragment, position):
    with pytest.raises(QuestionRefused) as caught:
        question(sql)
    assert fragment in str(caught.value)
    if position is not None:
        assert caught.value.position == position


@pytest.mark.parametrize("counted", ["1", "0.5", "TRUE"])
def test_a_count_of_a_constant_is_one_of_all_records(counted):
    every = question("SELECT COUNT(*) AS n FROM people")
    assert question(f"SELECT COUNT({counted}) AS n FROM people") == every


def test_names_that_differ_in_case_only_need_quotes():
    twins = dataset("twins", Column("x", Kind.INTEGER, Domain()), Column("X", Kind.INTEGER, Domain()))
    with pytest.raises(QuestionRefused, match="could be any of"):
        read("SELECT MEDIAN(x) FROM twins", {"twins": twins})
    assert read('SELECT MEDIAN("X") FROM TWINS', {"twins": twins}).measures[0].column == "X"


@pytest.mark.parametrize("name", ["Größe in cm", "Gro\u0308ße", "a b", "a-b", "2x", "limit", "net income (EUR)"])
def test_names_that_need_quotes_are_shown_in_quotes(name):
    odd = dataset("odd", Column(name, Kind.INTEGER, Domain(lower=0, upper=99)))
    for before, after in (("SELECT MAX(", ") FROM odd"), ("SELECT COUNT(*) FROM odd GROUP BY BIN(", ", 3)")):
        with pytest.raises(QuestionRefused, match=f'written.* "{re.escape(name)}"') as refused:
            read(before + name + after, {"odd": odd})
        assert refused.value.offset == len(before)
        assert read(f'{before}"{name}"{after}', {"odd": odd})


def test_quotes_are_not_told_of_what_is_wrong_otherwise():
    odd = dataset("odd", Column("a b", Kind.INTEGER, Domain()), Column("order", Kind.INTEGER, Domain()))
    for sql in (
        'SELECT MAX("a b"), LOG(3) FROM odd',
        "SELECT 'a b', LOG(3) FROM odd",
        "SELECT LOG(3) FROM odd ORDER BY 1",
    ):
        with pytest.raises(QuestionRefused, match="LOG is not offered"):
            read(sql, {"odd": odd})


def test_letters_beyond_ascii_have_no_case():
    umlaut = dataset("t", Column("größe", Kind.INTEGER, Domain()))
    assert read("SELECT MEDIAN(größe) FROM t", {"t": umlaut}).measures[0].column == "größe"
    with pytest.raises(QuestionRefused, match="not declared"):
        read("SELECT MEDIAN(GRÖSSE) FROM t", {"t": umlaut})
    kelvin = dataset("t", Column("k", Kind.INTEGER, Domain()))
    with pytest.raises(QuestionRefused, match="not declared"):
        read("SELECT MEDIAN(\u212a) FROM t", {"t": kelvin})
    with pytest.raises(QuestionRefused, match="m\u0131n is not offered"):
        read("SELECT m\u0131n(k) FROM t", {"t": kelvin})


@pytest.mark.parametrize("name", ["date", "timestamp", "end", "year", "values", "left", "at", "type", "rows", "set"])
def test_words_that_no_question_needs_are_plain_names(name):
    odd = dataset("odd", Column(name, Kind.INTEGER, Domain(lower=0, upper=9)))
    asked = read(f"SELECT MAX({name}) AS {name} FROM odd WHERE {name} > 3", {"odd": odd})
    assert (asked.measures[0].column, asked.measures[0].label) == (name, name)


def test_a_closing_semicolon_and_odd_spaces_are_fine():
    assert question("\r\n select\tCOUNT ( * ) \n\n FROM people ;\n") == question("SELECT COUNT ( * ) FROM people")


SPELT = """
SELECT FROM WHERE GROUP BY AND OR NOT IN IS NULL BETWEEN AS DISTINCT ORDER WITHIN ASC DATE TIMESTAMP TRUE FALSE COUNT
people age x ( ) , * = < - ; 1 'a' NULLS FIRST LAST IGNORE RESPECT ALL USING ON LEFT TABLE VALUES UNNEST ONLY FINAL ROW
SYMMETRIC ESCAPE AT TIME ZONE LOCAL SAMPLE FOR UPDATE INTO TOP VIEW LATERAL SEMI ANTI OUTER CROSS NATURAL INTERVAL MAP
EXCLUDE REPLACE RENAME RLIKE GLOB DIV XOR ISNULL NOTNULL CONNECT PRIOR PIVOT TABLESAMPLE SETTINGS FORMAT OPTION STRUCT
COLLATE CLUSTER SORT PREWHERE TOTALS ROLLUP CUBE SEPARATOR OVERFLOW WITHOUT KEY RETURNING DEFAULT ARRAY
"""
ADDED = SPELT.split()


@pytest.mark.slow
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT region , COUNT ( * ) AS n FROM people WHERE age > 3 AND region IN ( 'north' , 'south' ) "
        "OR age BETWEEN 1 AND 2 GROUP BY region , BIN ( age , 50 )",
        "SELECT PERCENTILE_CONT ( 0.5 ) WITHIN GROUP ( ORDER BY income ) , COUNT ( DISTINCT sex ) , "
        "KTH_LARGEST ( income , 2 ) x FROM people WHERE NOT ( seen > TIMESTAMP '2020-01-01' ) AND income IS NOT NULL",
    ],
)
def test_no_word_of_a_question_is_ignored(sql):
    """A word too many is refused, or changes the question: its meaning, or the name of a result."""
    words, asked, ignored = sql.split(" "), question(sql), set()
    for i in range(len(words) + 1):
        for word in ADDED:
            try:
                other = question(" ".join([*words[:i], word, *words[i:]]))
            except QuestionRefused:
                continue
            if other == asked:
                ignored.add((words[i - 1] if i else "", word))
    assert ignored <= {(words[-1], ";"), (")", "AS")}


def test_ascending_is_the_order_of_a_quantile():
    ordered = [f"SELECT PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY age{asc}) AS q FROM people" for asc in ("", " ASC")]
    assert question(ordered[0]) == question(ordered[1])


def test_labels_that_differ_in_case_only_need_quotes():
    asked = 'SELECT COUNT(*) AS "N", SUM(age) AS n FROM people ORDER BY {}'
    with pytest.raises(QuestionRefused, match="could be several results"):
        question(asked.format("n"))
    with pytest.raises(QuestionRefused, match="could be several results"):
        question(asked.format("n + 1"))
    first, second = (question(asked.format(name)).shown[0].order[0].expression for name in ('"N"', '"n"'))
    assert (first, second) == (Reference(0), Reference(1))


def test_a_question_is_read_once_of_the_same_data_sets() -> None:
    recent, sql = RecentQuestions(), "SELECT MEDIAN(income) FROM people"
    first = recent.read(sql, {"people": PEOPLE})
    assert first == question(sql)
    assert recent.read(sql, {"people": PEOPLE}) is first
    # neither of another declaration of that name, nor where the caller may ask about less
    assert recent.read(sql, {"people": replace(PEOPLE)}) is not first
    with pytest.raises(QuestionRefused):
        recent.read(sql, {})
    with pytest.raises(QuestionRefused):
        recent.read(sql.replace("income", "nothing"), {"people": PEOPLE})


def test_few_questions_are_kept_and_none_that_is_long() -> None:
    recent = RecentQuestions()
    for k in range(1, KEPT + 10):
        recent.read(f"SELECT KTH_LARGEST(income, {k}) FROM people", {"people": PEOPLE})
    assert len(recent._kept) == KEPT
    last = f"SELECT KTH_LARGEST(income, {KEPT + 9}) FROM people"
    assert recent.read(last, {"people": PEOPLE}) is recent.read(last, {"people": PEOPLE})
    recent.read(f"SELECT MEDIAN(income) FROM people {' ' * LONGEST_KEPT}", {"people": PEOPLE})
    assert len(recent._kept) == KEPT


def test_callers_keep_their_questions_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """How quickly a question is read tells nothing about what another caller drafts."""
    recent, sql, people = RecentQuestions(), "SELECT MEDIAN(income) FROM people", {"people": PEOPLE}
    ada, bob = recent.of_caller("ada"), recent.of_caller("bob")
    assert recent.of_caller("ada") is ada
    known = ada.read(sql, people)
    assert ada.read(sql, people) is known
    assert bob.read(sql, people) is not known
    assert ada.prepare(known, PEOPLE) is ada.prepare(known, PEOPLE)
    assert bob.prepare(known, PEOPLE) is not ada.prepare(known, PEOPLE)
    assert recent.read(sql, people) is not known
    monkeypatch.setattr(reader, "CALLERS", 4)
    for number in range(3 * KEPT):
        own = recent.of_caller(f"caller {number}")
        own.read(f"SELECT KTH_LARGEST(income, {number + 1}) FROM people", people)
        ada.read(f"SELECT KTH_LARGEST(income, {number + 1}) FROM people", people)
    assert len(recent._of_callers) == 4
    assert len(ada._kept) < KEPT / 8


def test_a_recent_question_is_prepared_once_and_planned_as_before() -> None:
    recent, sql = RecentQuestions(), "SELECT region, MEDIAN(income) FROM people WHERE age > 17 GROUP BY region"
    question = recent.read(sql, {"people": PEOPLE})
    prepared = recent.prepare(question, PEOPLE)
    work = prepared.targets[0].selection.manager.work
    spent = work.spent
    for epsilon in range(1, 50):
        plan = make_plan(question, PEOPLE, epsilon, preparing=recent.prepare)
        assert plan == make_plan(question, PEOPLE, epsilon)
        assert plan.form == make_plan(question, PEOPLE, epsilon).form
    assert recent.prepare(question, PEOPLE) is prepared
    assert work.spent == spent, "planning again takes no work that is counted"
    other = replace(PEOPLE, max_groups=7)
    assert recent.prepare(question, other) is not prepared, "another declaration may mean another plan"


def test_few_questions_that_took_much_work_are_kept_prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    recent = RecentQuestions()
    texts = [f"SELECT region, COUNT(*) FROM people WHERE age > {age} GROUP BY region" for age in range(4)]
    questions = [recent.read(text, {"people": PEOPLE}) for text in texts]
    limit = 2 * recent.prepare(questions[0], PEOPLE).work
    monkeypatch.setattr(reader, "WORK_KEPT", limit)
    for question in questions:
        recent.prepare(question, PEOPLE)
    kept = [each.work for _, _, each in recent._prepared.values()]
    assert len(kept) == 2
    assert sum(kept) <= limit

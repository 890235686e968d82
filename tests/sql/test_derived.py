"""Derived columns as a controller declares them, and the questions that they make one."""

from __future__ import annotations

import random
from contextlib import suppress
from fractions import Fraction
from typing import Any

import pytest

from idios.core.domain import Categories, Domain, Kind
from idios.datasets import read_columns
from idios.declare.schema import Dataset
from idios.errors import InvalidInput, QuestionRefused
from idios.expressions.language import evaluate
from idios.plan.planner import make_plan
from idios.plan.question_words import describe_question
from idios.sql.reader import read

HELD: dict[str, Any] = {
    "age": {"type": "integer", "bounds": [0, 120], "nullable": False},
    "wage": {"type": "integer"},
    "hours": {"type": "decimal", "step": "0.25", "bounds": [0, 80]},
    "a": "integer",
    "b": "integer",
    "day": "date",
    "late": {"type": "date", "bounds": ["2020-01-01", "2022-12-31"], "nullable": False},
    "moment": "timestamp",
    "region": {"type": "category", "values": ["north", "south", "east"]},
}
DERIVED: dict[str, Any] = {
    "age_group": {"expression": "CASE WHEN age < 18 THEN 'child' ELSE 'adult' END"},
    "yearly": {"expression": "wage * 52"},
    "year": {"expression": "EXTRACT(YEAR FROM day)"},
    "month": {"expression": "EXTRACT(MONTH FROM late)"},
    "adult": {"expression": "age >= 18"},
    "share": {"expression": "ROUND(a / b, 2)"},
    "both": {"expression": "a + b"},
    "more": {"expression": "GREATEST(a, b)"},
    "far": {"expression": "ABS(wage - 100)"},
    "side": {"expression": "CASE region WHEN 'north' THEN 'up' WHEN 'south' THEN 'down' END"},
    "known": {"expression": "COALESCE(region, 'none')"},
    "cut": {"expression": "wage + 5", "bounds": [0, 100]},
    "next": {"expression": "cut * 2"},
    "rounded": {"expression": "ROUND(hours)"},
    "when": {"expression": "EXTRACT(YEAR FROM moment)"},
    "few": {"expression": "region", "values": ["south", "north"]},
}
PEOPLE = Dataset("t", read_columns(HELD | DERIVED))


def form(where: str, select: str = "COUNT(*)", dataset: Dataset = PEOPLE) -> str:
    return make_plan(read(f"SELECT {select} FROM t WHERE {where}", {"t": dataset}), dataset, 1).normal_form


@pytest.mark.parametrize(
    ("expression", "kind", "domain", "nullable"),
    [
        ("age * 2 + 1", Kind.INTEGER, Domain(lower=1, upper=241), False),
        ("hours + 0.5", Kind.DECIMAL, Domain(Fraction(1, 4), lower=2, upper=322), True),
        ("hours * 0.1", Kind.DECIMAL, Domain(Fraction(1, 40), lower=0, upper=320), True),
        ("hours / 3", Kind.DECIMAL, Domain(Fraction(1, 12), lower=0, upper=320), True),
        ("hours * hours", Kind.DECIMAL, Domain(Fraction(1, 16), lower=0, upper=102_400), True),
        ("ROUND(hours, 1)", Kind.DECIMAL, Domain(Fraction(1, 10), lower=0, upper=800), True),
        ("FLOOR(hours / 7)", Kind.INTEGER, Domain(lower=0, upper=11), True),
        ("COALESCE(hours, 0)", Kind.DECIMAL, Domain(Fraction(1, 4), lower=0, upper=320), False),
        ("CASE WHEN age < 18 THEN 0 WHEN age >= 18 THEN 1 END", Kind.INTEGER, Domain(lower=0, upper=1), False),
        ("late + 30", Kind.DATE, Domain(lower=18_292, upper=19_387, day=1), False),
        ("day - late", Kind.INTEGER, Domain(), True),
        ("age < 18 OR wage > 5", Kind.INTEGER, Domain(lower=0, upper=1), True),
        ("ROUND(age / (1 + age), 1)", Kind.DECIMAL, Domain(Fraction(1, 10), lower=0, upper=1200), False),
        ("EXTRACT(DOW FROM day)", Kind.INTEGER, Domain(lower=0, upper=6), True),
        ("region", Kind.CATEGORY, Categories(("north", "south", "east")), True),
        (
            "CASE WHEN age < 9 THEN 'z' WHEN age < 18 THEN 'a' ELSE 'z' END",
            Kind.CATEGORY,
            Categories(("z", "a")),
            False,
        ),
        ("age_group = 'child'", Kind.INTEGER, Domain(lower=0, upper=1), False),
        ("CASE WHEN adult THEN age END", Kind.INTEGER, Domain(lower=18, upper=120), True),
        ("a * 5 + b * 5", Kind.INTEGER, Domain(Fraction(5)), True),
    ],
)
def test_what_follows_from_an_expression(
    expression: str, kind: Kind, domain: Domain | Categories, nullable: bool
) -> None:
    column = read_columns(HELD | DERIVED | {"x": {"expression": expression}})["x"]
    assert (column.kind, column.domain, column.nullable) == (kind, domain, nullable)
    assert column.formula == expression


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            {"expression": "wages + 1"},
            r"'x', expression: the column 'wages' is not declared. Did you mean wage\? \(line 1, column 1",
        ),
        ({"expression": "age +"}, "'x', expression: the text cannot be read"),
        ({"expression": "age, wage"}, "An expression is made of declared columns"),
        ({"expression": "age AS a"}, "An expression is made of declared columns"),
        ({"expression": "age FROM t"}, "'x', expression: "),
        ({"expression": "(SELECT age)"}, "'x', expression: "),
        ({"expression": "age; DROP TABLE t"}, "'x', expression: "),
        ({"expression": "MEDIAN(age)"}, r"MEDIAN is not offered here.*\(line 1, column 1\)"),
        ({"expression": "age + region"}, "is of numbers, and this is a text"),
        ({"expression": "region < 'north'"}, "has no order"),
        ({"expression": "CASE WHEN age THEN 1 END"}, "WHEN is followed by a condition"),
        ({"expression": "CASE WHEN age < 1 THEN 'a' ELSE 1 END"}, "values of one type are expected"),
        ({"expression": "a / b"}, "a / b divides by a column.*ROUND"),
        ({"expression": "a / b > 2"}, "compare products instead of quotients"),
        ({"expression": "a * b * wage"}, r"'x', expression 'a \* b \* wage': .* more than 38 digits.*declare bounds"),
        ({"expression": "ROUND(a, 30) + wage"}, "more than 38 digits"),
        ({"expression": "1 + 1"}, "names no column"),
        ({"expression": "NULLIF(age, NULL) / 0"}, "always NULL"),
        ({"expression": 7}, "an expression is text, got int"),
        ({"expression": "x + 1"}, "in a circle: x → x"),
        ({"expression": "age", "type": "integer"}, "type is not declared of a derived column: it follows"),
        ({"expression": "age", "step": 1}, "step is not declared"),
        ({"expression": "age", "nullable": False}, "nullable is not declared"),
        ({"expression": "age", "values": ["a"]}, "values belong to text"),
        ({"expression": "age", "other": 1}, "'other' is not known; of a derived column known are expression"),
        ({"expression": "age", "bounds": [200, 300]}, "lies within 0..120, and the declared bounds outside"),
        ({"expression": "age", "bounds": [3]}, "bounds must be a pair"),
        ({"expression": "region", "values": ["west"]}, "values lists 'west', which the expression never gives"),
        ({"expression": "region", "values": "north"}, "values are a list"),
        ({"expression": "region", "bounds": [0, 1]}, "bounds belongs to numeric columns"),
        ({"expression": "age > 1", "bounds": [0, 1]}, "bounds belongs to numbers"),
        ({"expression": "GREATEST(" * 19 + "age" + ", 1)" * 19}, None),
        ({"expression": "+".join(["age"] * 3000)}, "'x', expression"),
    ],
)
def test_what_cannot_be_derived_is_refused(table: dict[str, Any], message: str | None) -> None:
    if message is None:
        read_columns(HELD | {"x": table})
        return
    with pytest.raises(InvalidInput, match=message):
        read_columns(HELD | {"x": table})


def test_what_a_derived_column_reads_as_is_what_others_are_derived_from() -> None:
    following = PEOPLE.columns["next"].expression
    assert following is not None
    found = [evaluate(following, {"wage": wage}) for wage in (None, Fraction(-50), Fraction(1), Fraction(1000))]
    assert found == [None, 0, 12, 200]
    named = {"part": {"expression": "known", "values": ["none", "south"]}, "of": {"expression": "COALESCE(part, 'x')"}}
    columns = read_columns(HELD | DERIVED | named)
    assert (columns["known"].nullable, columns["part"].nullable, columns["of"].nullable) == (False, True, False)
    assert columns["part"].domain == Categories(("none", "south"))
    assert columns["of"].expression is not None
    assert [evaluate(columns["of"].expression, {"region": r}) for r in (None, "south", "east")] == [
        "none",
        "south",
        "x",
    ]


def test_long_chains_of_derived_columns_are_refused_and_not_written_out() -> None:
    chain = {f"x{i}": {"expression": f"ROUND(x{i - 1} + x{i - 1}) - x{i - 1}" if i else "age"} for i in range(40)}
    with pytest.raises(InvalidInput, match=r"becomes too long|nests too deep|too long"):
        read_columns(HELD | chain)
    with pytest.raises(InvalidInput, match="in a circle: p → q → p"):
        read_columns(HELD | {"p": {"expression": "q + 1"}, "q": {"expression": "age + p"}})


WORDS = """
age wage hours day moment region ( ) ( ) + - * / , CASE WHEN THEN ELSE END AND OR NOT IS NULL TRUE = <> < BETWEEN IN
LIKE ROUND FLOOR ABS GREATEST COALESCE NULLIF EXTRACT YEAR FROM DATE '2024-01-01' 'a' 0 1 2.5 1e300 1e-300 ESCAPE x
"""


def test_any_text_is_an_expression_or_refused() -> None:
    draw, words = random.Random(3), WORDS.split()
    written = "CASE WHEN age < 5 AND region LIKE 'a' THEN ROUND ( wage / age , 2 ) ELSE EXTRACT ( YEAR FROM day ) END"
    for _ in range(250):
        text = written.split()
        for _ in range(draw.randint(1, 4)):
            place = draw.randrange(len(text))
            text[place : place + draw.randint(0, 1)] = draw.choices(words, k=draw.randint(0, 1))
        with suppress(InvalidInput):
            read_columns(HELD | {"x": {"expression": " ".join(text)}})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("age_group = 'child'", "age < 18"),
        ("age_group <> 'child'", "NOT age < 18"),
        ("yearly > 520", "wage > 10"),
        ("yearly = 52", "wage = 1"),
        ("yearly BETWEEN 50 AND 110", "wage IN (1, 2)"),
        ("year = 2024", "day BETWEEN DATE '2024-01-01' AND DATE '2024-12-31'"),
        ('"when" >= 2024', "moment >= TIMESTAMP '2024-01-01 00:00:00'"),
        ("month = 2 AND year = 2021", "late >= '2020-02-01' AND year = 2021 AND month <= 2 AND month > 1"),
        ("month = 2 AND late < '2021-01-01'", "late BETWEEN '2020-02-01' AND '2020-02-29'"),
        ("adult = 1", "age >= 18"),
        ("adult", "age >= 18"),
        ("NOT adult", "age_group = 'child'"),
        ("both IS NULL", "a IS NULL OR b IS NULL"),
        ("both > 5 AND a IS NOT NULL", "both > 5"),
        ("share IS NULL", "a IS NULL OR b IS NULL OR b = 0"),
        ("more > 5", "a > 5 OR b > 5"),
        ("more IS NULL", "a IS NULL AND b IS NULL"),
        ("far < 3", "wage BETWEEN 98 AND 102"),
        ("side IS NULL", "region = 'east' OR region IS NULL"),
        ("side = 'up'", "region = 'north'"),
        ("known = 'none'", "region IS NULL"),
        ("cut = 100", "wage >= 95"),
        ("cut = 0 AND next = 0", "wage <= -5"),
        ("next < 20", "wage < 5"),
        ("rounded = 3", "hours >= 2.5 AND hours < 3.5"),
        ("few IS NULL", "region = 'east' OR region IS NULL"),
        ("few LIKE '%o%'", "region = 'north' OR region = 'south'"),
    ],
)
def test_a_condition_on_a_derived_column_is_one_on_its_columns(one: str, other: str) -> None:
    assert form(one) == form(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("age_group = 'child'", "age <= 18"),
        ("yearly > 520", "wage >= 10"),
        ("year = 2024", "day BETWEEN DATE '2024-01-01' AND DATE '2024-12-30'"),
        ("both > 5", "both >= 5"),
        ("both > 5", "more > 5"),
        ("side IS NULL", "region IS NULL"),
        ("cut = 100", "wage = 95"),
        ("rounded = 3", "hours > 2.5 AND hours < 3.5"),
        ("share = 0.5", "share = 0.25"),
    ],
)
def test_other_conditions_are_other_questions(one: str, other: str) -> None:
    assert form(one) != form(other)


def test_another_expression_is_another_question() -> None:
    changed = Dataset("t", read_columns(HELD | DERIVED | {"yearly": {"expression": "wage * 50"}}))
    assert form("age > 1", "MEDIAN(yearly)") != form("age > 1", "MEDIAN(yearly)", changed)
    assert form("age > 1", "MEDIAN(wage)") == form("age > 1", "MEDIAN(wage)", changed)
    summed = Dataset("t", read_columns(HELD | DERIVED | {"both": {"expression": "a + b + 0"}}))
    assert form("both > 5") != form("both > 5", dataset=summed)
    steps = Dataset("t", read_columns(HELD | DERIVED | {"wage": {"type": "integer", "step": 2}}))
    assert form("age > 1", "MEDIAN(yearly)") != form("age > 1", "MEDIAN(yearly)", steps)


def test_a_question_is_described_by_the_derived_name() -> None:
    sql = "SELECT age_group, MEDIAN(yearly) FROM t WHERE adult AND year = 2024 GROUP BY age_group"
    assert describe_question(make_plan(read(sql, {"t": PEOPLE}), PEOPLE, 1).normal_form) == (
        "median of yearly where age is at least 18 and day is from 2024-01-01 to 2024-12-31 and wage is known"
    )


def domain_of(select: str, where: str) -> tuple[int | None, int | None]:
    [aggregate] = make_plan(read(f"SELECT {select} FROM t WHERE {where}", {"t": PEOPLE}), PEOPLE, 1).aggregates
    return aggregate.grid.lower, aggregate.grid.upper


def test_conditions_narrow_the_domain_of_a_statistic() -> None:
    assert domain_of("SUM(yearly)", "wage BETWEEN 10 AND 20") == (10, 20)
    assert domain_of("SUM(yearly)", "yearly BETWEEN 520 AND 1040") == (10, 20)
    assert domain_of("MEDIAN(far)", "far BETWEEN 6 AND 9") == (6, 9)
    assert domain_of("MEDIAN(far)", "wage > 90 AND wage < 97") == (4, 9)
    assert domain_of("MEDIAN(more)", "more BETWEEN 3 AND 9") == (3, 9)
    assert domain_of("MEDIAN(both)", "a BETWEEN 1 AND 2 AND b BETWEEN 10 AND 20") == (11, 22)
    assert domain_of("MEDIAN(both)", "both BETWEEN 1 AND 2") == (1, 2)
    assert domain_of("MEDIAN(cut)", "wage > 50") == (56, 100)
    assert domain_of("AVG(adult)", "age < 5") == (0, 0)
    assert domain_of("MEDIAN(more)", "more > 10 AND a < 0 OR more = 3") == (3, None)


def test_groups_that_a_condition_excludes_are_no_cells() -> None:
    def cells(where: str, keys: str) -> list[tuple[Any, ...]]:
        plan = make_plan(
            read(f"SELECT {keys}, COUNT(*) FROM t WHERE {where} GROUP BY {keys}", {"t": PEOPLE}), PEOPLE, 9
        )
        return [tuple(group.values[i] for group, i in zip(plan.groups, cell, strict=True)) for cell in plan.cells]

    assert cells("age < 5", "age_group") == [("child",)]
    assert cells("age < 30 AND region <> 'north'", "age_group, side") == [("child", "down"), ("adult", "down")]
    assert cells("side = 'up' OR age < 3", "side, age_group") == [("child", "up"), ("child", "down"), ("adult", "up")]
    assert cells("region = 'south' OR side = 'up'", "region, side") == [("north", "up"), ("south", "down")]
    assert cells("far = 3 OR far = 40", "BIN(far, 10)") == [(Fraction(0),), (Fraction(40),)]


def test_a_question_that_no_record_can_answer_is_refused() -> None:
    for where in (
        "age_group = 'child' AND age > 20",
        "both > 5 AND both < 3",
        "yearly = 51",
        "side = 'up' AND few = 'south'",
    ):
        with pytest.raises(QuestionRefused, match="no record can ever fulfil WHERE"):
            form(where)
    for where in ("a < 1 AND b < 1 AND both > 5", "a < 2 AND b < 2 AND both = 7"):
        with pytest.raises(QuestionRefused, match="can have a value of both"):
            form(where, "MEDIAN(both)")

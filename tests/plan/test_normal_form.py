"""Equal questions have equal normal forms, and equal forms equal plans; other questions have others."""

import json
import random
from dataclasses import replace

import pytest

from idios.core.domain import Kind
from idios.core.neighbours import Neighbours
from idios.declare.schema import Column
from idios.errors import QuestionRefused
from tests.sql.declared import PEOPLE, SMALL, declared, planned, protected
from tests.sql.wording import reworded, said

SAME = [
    [
        "SELECT MEDIAN(income), AVG(age) FROM people",
        "select avg(AGE) as mean, median(Income) as mid from PEOPLE",
        "SELECT QUANTILE(income, 0.5), TRIMMED_MEAN(age, 0) FROM people",
        "SELECT PERCENTILE_CONT(0.50) WITHIN GROUP (ORDER BY income), WINSORIZED_MEAN(age, 0) FROM people;",
        "SELECT MEDIAN(income), MEDIAN(income) AS again, AVG(age) FROM people WHERE age >= 0",
    ],
    [
        "SELECT MIN(age) FROM people WHERE NOT (age < 30 OR age > 40)",
        "SELECT KTH_SMALLEST(age, 1) FROM people WHERE age BETWEEN 30 AND 40",
        "SELECT MIN(age) FROM people WHERE age >= 29.5 AND 41 > age",
        "SELECT MIN(age) FROM people WHERE age IN (" + ", ".join(map(str, range(30, 41))) + ")",
    ],
    [
        "SELECT COUNT(*) FROM people WHERE income IS NOT NULL",
        "SELECT COUNT(income) FROM people",
        "SELECT COUNT(income) FROM people WHERE income IS NOT NULL",
        "SELECT COUNT(*) FROM people WHERE income > 3 OR income <= 3",
    ],
    [
        "SELECT MEDIAN(income) FROM people",
        "SELECT MEDIAN(income) FROM people WHERE income IS NOT NULL",
        "SELECT MEDIAN(income) FROM people WHERE income IS NOT NULL OR age > 7",
    ],
    [
        "SELECT region, sex, COUNT(*) FROM people GROUP BY region, sex",
        "SELECT COUNT(*), sex AS s FROM people GROUP BY sex, region",
        "SELECT COUNT(age) FROM people WHERE region IS NOT NULL GROUP BY sex, region",
        "SELECT COUNT(*) FROM people WHERE region <> 'north' OR region = 'north' GROUP BY region, sex, region",
    ],
    [
        "SELECT MEDIAN(income) FROM people WHERE region = 'north'",
        "SELECT region, MEDIAN(income) FROM people WHERE region = 'north' GROUP BY region",
        "SELECT MEDIAN(income) FROM people WHERE region = 'north' GROUP BY BIN(age, 1000)",
    ],
    [
        "SELECT COUNT(*) FROM people WHERE age BETWEEN 10 AND 29 GROUP BY BIN(age, 10)",
        "SELECT COUNT(*) FROM people WHERE age BETWEEN 10 AND 29 GROUP BY BIN(age, 20)",
        "SELECT BIN(age, 10.0) AS b, COUNT(*) FROM people WHERE age > 9 AND age < 30 GROUP BY bin(age, 1e1)",
    ],
    [
        "SELECT VARIANCE(age), STDDEV(age) FROM people WHERE sex = 'f'",
        "SELECT STDDEV_POP(age), VAR_POP(age) FROM people WHERE sex <> 'm'",
    ],
    ["SELECT COUNT(*) FROM people", "SELECT COUNT(sex) FROM people WHERE sex IN ('f', 'm')"],
]


@pytest.mark.parametrize("questions", SAME)
def test_other_words_have_the_same_normal_form_and_the_same_plan(questions):
    plans = [planned(sql) for sql in questions]
    assert len({plan.normal_form for plan in plans}) == 1
    assert len({plan.cells for plan in plans} | {((),), ((0,),)}) <= 3
    released = {tuple((a.statistic, a.domain, a.whole, a.epsilon, a.choice) for a in plan.aggregates) for plan in plans}
    assert len(released) == 1


def test_questions_that_differ_have_different_normal_forms():
    forms = [planned(questions[0]).normal_form for questions in SAME]
    others = [
        planned("SELECT MEDIAN(income), AVG(age) FROM people", 2),
        planned("SELECT MEDIAN(income), AVG(age) FROM people", 1, [1, 2]),
        planned("SELECT MEDIAN(income), AVG(age) FROM people", 1, [2, 1]),
        planned("SELECT MEDIAN(income) FROM people WHERE region = 'south'"),
        planned("SELECT MEDIAN(income) FROM people WHERE region = 'north' OR region IS NULL"),
        planned("SELECT PERCENTILE_DISC(income, 0.5) FROM people"),
        planned("SELECT QUANTILE(income, 0.25) FROM people"),
        planned("SELECT KTH_LARGEST(income, 2) FROM people"),
        planned("SELECT KTH_LARGEST(income, 3) FROM people"),
        planned("SELECT KTH_SMALLEST(income, 3) FROM people"),
        planned("SELECT COUNT(*) FROM people GROUP BY sex"),
        planned("SELECT COUNT(*) FROM people GROUP BY region"),
        planned("SELECT COUNT(*) FROM people GROUP BY BIN(age, 10)"),
        planned("SELECT COUNT(*) FROM people GROUP BY BIN(age, 20)"),
        planned("SELECT COUNT(DISTINCT region) FROM people"),
        planned("SELECT MODE(region) FROM people"),
        planned("SELECT MEDIAN(income) FROM people", people=declared(neighbours=Neighbours.ADD_REMOVE)),
        planned("SELECT MEDIAN(income) FROM people", people=protected("group", group=2)),
        planned("SELECT MEDIAN(income) FROM people", people=protected("group", group=[1, 1])),
        planned("SELECT MEDIAN(income) FROM people", people=protected("group", group=[1, "1.5"])),
        planned("SELECT MEDIAN(income) FROM people", people=protected("individual", floor=0)),
        planned("SELECT MEDIAN(income) FROM persons", people=replace(PEOPLE, name="persons")),
    ]
    forms += [plan.normal_form for plan in others]
    assert len(set(forms)) == len(forms)


def test_a_changed_declaration_is_another_question():
    grid = PEOPLE.columns["income"].grid
    for domain in (replace(grid, step=grid.step / 2), replace(grid, centre=30_000)):
        changed = declared(columns=dict(PEOPLE.columns) | {"income": Column("income", Kind.NUMBER, domain)})
        for sql in ("SELECT COUNT(*) FROM people WHERE income < 5", "SELECT MEDIAN(income) FROM people"):
            assert planned(sql).normal_form != planned(sql, people=changed).normal_form
        unaffected = "SELECT MEDIAN(age) FROM people"
        assert planned(unaffected).normal_form == planned(unaffected, people=changed).normal_form


def test_versions_sizes_and_limits_are_not_in_it():
    other = declared(version="2", size=100, max_groups=5, min_epsilon=PEOPLE.min_epsilon / 2)
    sql = "SELECT MEDIAN(age) FROM people"
    assert planned(sql).normal_form == planned(sql, people=other).normal_form


def test_it_is_one_line_of_plain_json():
    form = planned("SELECT MEDIAN(\"Größe in cm\") FROM people WHERE region = 'north' GROUP BY sex").normal_form
    assert form.isascii()
    assert "\n" not in form
    assert json.dumps(json.loads(form), sort_keys=True, separators=(",", ":")) == form


def test_random_rewordings_of_whole_questions():
    rng = random.Random(5)
    equal = 0
    for _ in range(300):
        condition = said(rng, depth=2)
        items = ["MEDIAN(a) AS p", "COUNT(*) AS q", "MAX(b) AS r", "AVG(d) AS s"]
        keys = ["c", "BIN(a, 2)"]
        forms = set()
        for words in (condition, reworded(condition, rng, budget=2)):
            rng.shuffle(items)
            rng.shuffle(keys)
            sql = f"SELECT {', '.join(items)} FROM small WHERE {words} GROUP BY {', '.join(keys)}"
            try:
                forms.add(planned(sql, 2, people=SMALL).normal_form)
            except QuestionRefused as refused:
                forms.add(refused.message)
        assert len(forms) == 1, condition
        equal += "dataset" in forms.pop()
    assert equal > 150


def test_an_answer_of_earlier_mechanisms_is_not_mistaken_for_one_of_these():
    assert json.loads(planned("SELECT MEDIAN(income) FROM people").normal_form)["form"] == 2


def test_groups_that_grow_linearly_are_written_by_their_size():
    sql = "SELECT COUNT(income), MEDIAN(income) FROM people GROUP BY sex"
    forms = [planned(sql, people=protected("group", group=group)).normal_form for group in (3, [1, 2, 3], {"size": 3})]
    assert len(set(forms)) == 1
    assert '"protection":["group",3,"1",1000000]' in forms[0]
    flat = planned(sql, people=protected("group", group={"size": 3, "growth": "flat"})).normal_form
    assert '"protection":["group",["1","1","1"],"1",1000000]' in flat
    assert flat == planned(sql, people=protected("group", group=[1, 1, 1])).normal_form

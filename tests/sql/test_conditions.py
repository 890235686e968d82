"""Conditions: what each selects, which are one question, what is refused and why, and how much work they may cause."""

import pytest

from idios.core.domain import Categories, Domain, Kind
from idios.declare.schema import Column
from idios.errors import QuestionRefused
from idios.expressions.predicates import ALWAYS, NEVER, Among
from idios.sql.reader import read
from tests.sql.declared import PEOPLE, dataset, declared, planned

PLACES = ("north", "south-east", "south-west", "50%", "North", "Ä_b", "")
SURVEY = dataset(
    "survey",
    *PEOPLE.columns.values(),
    Column("married", Kind.INTEGER, Domain(lower=0, upper=1)),
    Column("only", Kind.INTEGER, Domain(lower=0, upper=0), nullable=False),
    Column("wide", Kind.INTEGER, Domain(lower=0, upper=2)),
    Column("half", Kind.NUMBER, Domain.declare(step="0.5", bounds=(0, 1))),
    Column("never", Kind.CATEGORY, Categories(("false",))),
    Column("place", Kind.CATEGORY, Categories(PLACES)),
)


def selected(condition):
    return read(f"SELECT COUNT(*) FROM survey WHERE {condition}", {"survey": SURVEY}).filter


def among(places):
    """The places by name; none of them is a condition that holds for no record."""
    listed = ", ".join(f"'{place}'" for place in places)
    return selected(f"place IN ({listed})") if places else Among("place", ())


SELECTED = [
    ("income > 0.6 * 50000000", Among("income", ((30_000_001, None),))),
    ("0.6 * 50000000 < income", Among("income", ((30_000_001, None),))),
    ("age > -(-3)", Among("age", ((4, 120),))),
    ("age = (3)", Among("age", ((3, 3),))),
    ("age BETWEEN 2 * 5 AND ABS(-12)", Among("age", ((10, 12),))),
    ("age NOT BETWEEN 1 AND 118", Among("age", ((0, 0), (119, 120)))),
    ("age IN (1 + 1, 3)", Among("age", ((2, 3),))),
    ("age IN (CASE WHEN 1 = 1 THEN 7 END)", Among("age", ((7, 7),))),
    ("born < DATE '1970-01-01' + 30", Among("born", ((0, 29),))),
    ("DATE '1970-01-11' - 3 <= born", Among("born", ((7, 20_000),))),
    ("born BETWEEN '1970-01-02' AND DATE '1970-01-03'", Among("born", ((1, 2),))),
    ("'1970-01-02' = born", Among("born", ((1, 1),))),
    ("born > TIMESTAMP '1970-01-02 12:00:00'", Among("born", ((2, 20_000),))),
    ("age = DATE '1970-03-01' - DATE '1970-01-01'", Among("age", ((59, 59),))),
    ("age IS DISTINCT FROM 0", Among("age", ((1, 120),), nulls=True)),
    ("NOT age IS DISTINCT FROM 0", Among("age", ((0, 0),))),
    ("0 IS NOT DISTINCT FROM age", Among("age", ((0, 0),))),
    ("age IS DISTINCT FROM 0.5", Among("age", ((0, 120),), nulls=True)),
    ("region IS NOT DISTINCT FROM 'north'", Among("region", ((0, 0),))),
    ("region IS DISTINCT FROM 'north'", Among("region", ((1, 3),), nulls=True)),
    ("age IS DISTINCT FROM NULL", Among("age", ((0, 120),))),
    ("NULL IS NOT DISTINCT FROM age", Among("age", (), nulls=True)),
    ("married", Among("married", ((1, 1),))),
    ("NOT married", Among("married", ((0, 0),))),
    ("NOT NOT (married)", Among("married", ((1, 1),))),
    ("married IS TRUE", Among("married", ((1, 1),))),
    ("married IS NOT TRUE", Among("married", ((0, 0),), nulls=True)),
    ("married IS FALSE", Among("married", ((0, 0),))),
    ("NOT married IS FALSE", Among("married", ((1, 1),), nulls=True)),
    ("married IS UNKNOWN", Among("married", (), nulls=True)),
    ("married IS NOT unknown", Among("married", ((0, 1),))),
    ("married = TRUE", Among("married", ((1, 1),))),
    ("only", Among("only", ())),
    ("smoker", Among("smoker", ((0, 0),))),
    ("smoker IS NOT TRUE", Among("smoker", ((1, 1),), nulls=True)),
    ("never", Among("never", ())),
    ("never IS FALSE", Among("never", ((0, 0),))),
    ("1 = 1", ALWAYS),
    ("NOT 1 = 1", NEVER),
    ("2 + 2 = 5 OR 'a' = 'b'", None),
    ("NULL", NEVER),
    ("NOT NULL", NEVER),
    ("1 = NULL", NEVER),
    ("NOT (1 / 0 > 1)", NEVER),
    ("3 IS NULL", NEVER),
    ("1 / 0 IS NULL", ALWAYS),
    ("'abc' LIKE 'a%'", ALWAYS),
    ("DATE '2020-01-01' < '2020-01-02'", ALWAYS),
]


@pytest.mark.parametrize(("condition", "points"), SELECTED)
def test_conditions_select(condition, points):
    assert points is None or selected(condition) == points


MATCHING = [
    ("place LIKE 'north'", ["north"]),
    ("place ILIKE 'NORTH'", ["north", "North"]),
    ("place LIKE 'south%'", ["south-east", "south-west"]),
    ("place LIKE '%t%'", ["north", "south-east", "south-west", "North"]),
    ("place LIKE '_orth'", ["north", "North"]),
    ("place LIKE '%-_est'", ["south-west"]),
    ("place LIKE '50!%' ESCAPE '!'", ["50%"]),
    ("place LIKE '%!_%' ESCAPE '!'", ["Ä_b"]),
    ("place ILIKE 'ä%'", []),
    ("place ILIKE 'Ä_B'", ["Ä_b"]),
    ("place LIKE ''", [""]),
    ("place LIKE '%'", list(PLACES)),
    ("place LIKE '%%%_'", [place for place in PLACES if place]),
    ("place LIKE 'n.*'", []),
]


@pytest.mark.parametrize(("condition", "matching"), MATCHING)
def test_like_means_the_declared_values_that_match(condition, matching):
    negated = condition.replace(" LIKE", " NOT LIKE").replace(" ILIKE", " NOT ILIKE")
    assert selected(condition) == among(matching)
    assert selected(f"NOT ({condition})") == selected(negated) == among([p for p in PLACES if p not in matching])


SAME = [
    ("income > 0.6 * 50000000", "NOT income <= 30000000"),
    ("age NOT BETWEEN 1 AND 118", "age < 1 OR age > 118"),
    ("smoker", "smoker = 'true'"),
    ("smoker IS NOT TRUE", "smoker = 'false' OR smoker IS NULL"),
    ("region LIKE '%th'", "region IN ('south', 'north')"),
    ("born >= DATE '1970-01-01' + 31", "born >= '1970-02-01'"),
    ("age IS DISTINCT FROM 7", "age <> 7"),
    ("age > 3 AND 1 = 1", "age > 3 OR 1 = 2"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_one_question_in_two_wordings(one, other):
    one, other = (planned(f"SELECT COUNT(*) FROM people WHERE {condition}").normal_form for condition in (one, other))
    assert one == other


def test_conditions_that_differ_on_null_are_two_questions():
    forms = {
        planned(f"SELECT COUNT(*) FROM people WHERE {condition}").normal_form
        for condition in ("smoker", "smoker IS NOT FALSE", "NOT smoker", "smoker IS NOT TRUE", "smoker IS NULL")
    }
    assert len(forms) == 5


DERIVED = "expressions of a row are declared by the controller as derived columns"
REFUSED = [
    ("age", "age is no condition by itself", 1),
    ("wide", "may hold more than 0 and 1", 1),
    ("half", "may hold more than 0 and 1", 1),
    ("region", "no condition by itself", 1),
    ("age IS TRUE", "age is no condition by itself", 1),
    ("age IS 3", "IS is followed by [NOT] NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM", 1),
    ('married IS "unknown"', "IS is followed by", 1),
    ("age = income", DERIVED, 7),
    ("age + 1 > 30", DERIVED, 1),
    ("30 < age * 2", DERIVED, 6),
    ("ABS(age) = 3", DERIVED, 1),
    ("age BETWEEN 1 AND income", DERIVED, 19),
    ("age IN (1, income)", DERIVED, 12),
    ("(age, sex) = (1, 2)", "a list in parentheses follows IN only", 5),
    ("EXTRACT(YEAR FROM born) = 2000", DERIVED, None),
    ("age IN ()", "list of constants", 1),
    ("3 BETWEEN age AND 5", "a column is expected here", 1),
    ('region = "north"', "north is no column, and a string is written in single quotes", 10),
    ("COUNT(*) > 3", "written in HAVING, a released number as a literal", 1),
    ("income > MEDIAN(income)", "written in HAVING", 10),
    ("region = 'South'", "'South' is no declared value of region. Did you mean 'south'?", 10),
    ("region IN ('north', 'wset')", "Did you mean 'west'?", 21),
    ("region <> 'mars'", "'mars' is no declared value of region. Declared: 'north', 'south', 'east', 'west'", 11),
    ("'mars' IS DISTINCT FROM region", "'mars' is no declared value of region", 1),
    ("region = '" + "it''s" * 100 + "'", "'" + "it''s" * 15 + "…' is no declared value", 10),
    ("never = TRUE", "'true' is no declared value of never. Declared: 'false'", None),
    ("LOWER('a') = 'a'", "a column is expected here", 1),
    ("age > LENGTH('a')", "what is computed here is not offered", 7),
    ("age < 3 < 5", "stands in parentheses", 7),
    ("married = TRUE IS NULL", "stands in parentheses", None),
    ("FALSE = TRUE IS NULL", "stands in parentheses", None),
    ("married = NOT TRUE", "stands in parentheses", None),
    ("age > 1 / 0", "write IS NULL", 7),
    ("age = 'a'", "written without quotes", 7),
    ("age < DATE '2020-01-01'", "age is a number", None),
    ("born < 3 + 4", "DATE '2026-01-31'", 8),
    ("born < '1970-01-01' + 1", "+ is of numbers", None),
    ("seen < TIMESTAMP '1970-01-01 00:00:00' + 1", "timestamps are compared", None),
    ("age LIKE '1%'", "LIKE compares text, and age is of type integer", 1),
    ("'a' LIKE region", "LIKE is followed by a pattern", None),
    ("region LIKE 3", "LIKE is followed by a pattern", None),
    ("region LIKE 'a' ESCAPE '!!'", "ESCAPE by one sign", None),
    ("region LIKE 'a' ESCAPE 'a'", "ESCAPE by one sign", None),
    ("region LIKE 'a!' ESCAPE '!'", "nothing follows the last escape sign", None),
    ("region LIKE 'a' LIKE 'b'", "stands in parentheses", None),
    ("(region = 'north') IS TRUE", DERIVED, None),
]


@pytest.mark.parametrize(("condition", "message", "column"), REFUSED)
def test_refusals_say_why_and_where(condition, message, column):
    with pytest.raises(QuestionRefused) as caught:
        selected(condition)
    assert message in str(caught.value)
    if column is not None:
        assert caught.value.position == (1, len("SELECT COUNT(*) FROM survey WHERE ") + column)


def test_a_pattern_causes_bounded_work():
    many = declared(
        SURVEY, columns={"g": Column("g", Kind.CATEGORY, Categories(tuple(f"v{i:0100}" for i in range(900))))}
    )
    ask = "SELECT COUNT(*) FROM survey WHERE "
    assert read(ask + "g LIKE '%1%2%3%'", {"survey": many}).filter.intervals
    assert not read(ask + f"g LIKE '{'%a' * 1000}%'", {"survey": many}).filter.intervals
    for hostile in (f"g LIKE '{'%a_' * 6000}%'", " OR ".join("g LIKE '%1%2%3%4%5%'" for _ in range(600))):
        with pytest.raises(QuestionRefused, match="too complex"):
            read(ask + hostile, {"survey": many})
    long = f"'{'a' * 9_000}' LIKE '{'%a_' * 3_000}b'"
    assert read(ask + long, {"survey": many}).filter == NEVER


def test_every_comparison_is_read():
    for sign in ("=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"):
        assert selected(f"age {sign} 5").column == "age"

"""Ten thousand texts, valid, damaged and hostile: each is planned or refused on purpose, and none takes long.

Most of them compute something after the release; ten thousand more are in ``tests.test_party_sql``.
"""

import random
import string
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from idios.errors import IdiosError
from idios.expressions.predicates import column_names
from tests.plan.random_selects import DATE, NUMBER, TEXT, TIMESTAMP, Named, make_question
from tests.sql.declared import PEOPLE, planned, protected

ANY = ["COUNT({})", "COUNT(DISTINCT {})"]
ORDERED = [
    *ANY,
    "MEDIAN({})",
    "PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY {})",
    "PERCENTILE_DISC({}, 0.75)",
    "QUANTILE({}, 0.9)",
    "MIN({})",
    "MAX({})",
    "KTH_LARGEST({}, 2)",
    "KTH_SMALLEST({}, 3)",
]
NUMERIC = [
    *ORDERED,
    "SUM({})",
    "AVG({})",
    "IQR({})",
    "TRIMMED_MEAN({}, 0.05)",
    "WINSORIZED_MEAN({}, 0.1)",
    "VARIANCE({})",
    "STDDEV({})",
]
CATEGORY = [*ANY, "MODE({})"]
NUMBERS = ["0", "-1", "30", "2.5", "1e3", "-0", "99999999999999999999"]
MOMENTS = ["DATE '2001-02-03'", "'1987-06-05'"]
STRINGS = ["'north'", "'f'", "'it''s'", "'true'"]
COLUMNS = {
    "age": (NUMERIC, NUMBERS),
    "income": (NUMERIC, NUMBERS),
    "price": (NUMERIC, NUMBERS),
    '"Größe in cm"': (NUMERIC, NUMBERS),
    "born": (ORDERED, MOMENTS),
    "SEEN": (ORDERED, [*MOMENTS, "TIMESTAMP '2001-02-03 04:05:06.7'"]),
    "region": (CATEGORY, STRINGS),
    "sex": (CATEGORY, STRINGS),
}
HOSTILE = [
    "COPY people TO 'stolen.csv'",
    "ATTACH 'secrets.txt' AS p",
    "PRAGMA database_list",
    "SET enable_external_access = true",
    "SELECT getenv('HOME') FROM people",
    "SELECT COUNT(*) FROM read_csv_auto('secrets.txt')",
    "SELECT COUNT(*) FROM read_text('secrets.txt')",
    "SELECT COUNT(*) FROM 'secrets.txt'",
    'SELECT COUNT(*) FROM "secrets.txt"',
    "SELECT COUNT(*) FROM glob('*')",
    "SELECT COUNT(*) FROM people WHERE income = (SELECT MAX(income) FROM people)",
    "SELECT COUNT(*) FROM people WHERE EXISTS (SELECT 1)",
    "SELECT COUNT(*) FROM people p, people q WHERE p.age = q.age",
    "SELECT COUNT(*) FROM people NATURAL JOIN people",
    "SELECT COUNT(*) FROM people LATERAL VIEW explode(x)",
    "SELECT MEDIAN(CASE WHEN age = 3 THEN income ELSE 0 END) FROM people",
    "SELECT MEDIAN(income * (age = 3)) FROM people",
    "SELECT 1 / COUNT(*) FROM people",
    "SELECT error(income) FROM people",
    "SELECT COUNT(*) FROM people WHERE age = 1; DELETE FROM people",
    "SELECT COUNT(*) FROM people WHERE age = 1 -- AND sex = 'f'",
    "SELECT COUNT(*) FROM people /*! WHERE 1 */",
    "SELECT COUNT(*) FROM people WHERE region = '' OR 1=1 --'",
    "SELECT COUNT(*) FROM people UNION ALL SELECT income FROM people",
    "SELECT COUNT(*) FROM people HAVING COUNT(*) > 3",
    "SELECT MEDIAN(income) FROM people QUALIFY ROW_NUMBER() OVER () = 1",
    "SELECT COUNT(*) FROM people TABLESAMPLE 1 PERCENT",
    "SELECT COUNT(*) FROM people PIVOT (SUM(age) FOR sex IN ('f'))",
    "SELECT COUNT(*) FROM people FOR SYSTEM_TIME AS OF '2020-01-01'",
    "SELECT COUNT(*) FROM people WHERE age IN (SELECT age FROM people)",
    "SELECT COUNT(*) FROM people WHERE age = ANY(ARRAY[1])",
    "SELECT COUNT(*) FROM people WHERE age = {{ env }}",
    "SELECT COUNT(*) FROM people WHERE region = $tag$a$tag$",
    "SELECT COUNT(*) FROM people WHERE region = U&'\\0061'",
    "SELECT COUNT(*) FROM people WHERE region ~ 'a*'",
    "SELECT COUNT(*) FROM people WHERE region SIMILAR TO 'a'",
    "SELECT COUNT(*) FROM people WHERE region COLLATE x = 'a'",
    "SELECT COUNT(*) FROM people WHERE age BETWEEN SYMMETRIC 3 AND 1",
    "SELECT COUNT(*) FROM people WHERE age IS DISTINCT FROM 3",
    "SELECT COUNT(*) FROM people WHERE age = 1 XOR age = 2",
    "SELECT COUNT(*) FROM people WHERE random() < 0.5",
    "SELECT COUNT(*) FROM people WHERE age < 1e999",
    "SELECT COUNT(*) FROM people WHERE age < -1e-999999999999999999",
    "SELECT COUNT(*) FROM people WHERE age < NaN",
    "SELECT COUNT(*) FROM people WHERE income < 'Infinity'",
    "SELECT COUNT(*) FROM people WHERE born < DATE '99999-01-01'",
    "SELECT COUNT(*) FROM people WHERE born < DATE '0001-01-01'",
    "SELECT COUNT(*) FROM people WHERE seen < TIMESTAMP '9999-12-31 23:59:59.999999'",
    "SELECT BIN(seen, 1), COUNT(*) FROM people WHERE seen BETWEEN '0001-01-01' AND '9999-12-31' GROUP BY BIN(seen, 1)",
    "SELECT COUNT(*) FROM people GROUP BY BIN(born, 1e-300)",
    "SELECT COUNT(*) FROM people GROUP BY BIN(born, 1e300)",
    "SELECT COUNT(*) FROM people WHERE age = 1\0",
    "SELECT COUNT(*) FROM people\u2028WHERE age = 1",
    "SELECT COUNT(*) FROM pe\u200bople",
    "SELECT COUNT(*) FROM p\u0435ople",
    "SELECT \uff23\uff2f\uff35\uff2e\uff34(*) FROM people",
    "SELECT COUNT(\uff0a) FROM people",
    "SELECT COUNT(*) FROM people WHERE age = \u0663",
    "SELECT COUNT(*) FROM people WHERE age = \u00b2",
    "SELECT COUNT(*) FROM people WHERE region = \u2018north\u2019",
    "SELECT COUNT(*) FROM people WHERE " + "(" * 3000 + "age = 1" + ")" * 3000,
    "SELECT COUNT(*) FROM people WHERE " + "NOT " * 3000 + "age = 1",
    "SELECT COUNT(*) FROM people WHERE age = " + "-" * 3000 + "1",
    "SELECT COUNT(*) FROM people WHERE age = " + "- " * 3000 + "1",
    "SELECT " + "MAX(" * 18 + "age" + ")" * 18 + " FROM people",
    "SELECT COUNT(*) FROM people WHERE " + "age = 1 AND " * 1500 + "TRUE",
    "SELECT COUNT(*) FROM people WHERE " + "age = 1 OR sex = 'f' AND " * 700 + "TRUE",
    "SELECT COUNT(*) FROM people WHERE age = 1" + " = 1" * 4000,
    "SELECT COUNT(*) FROM people WHERE age IS" + " NOT" * 19 + " NULL",
    "SELECT COUNT(*) FROM people WHERE age IN (" + ", ".join(map(str, range(3500))) + ")",
    "SELECT COUNT(*) FROM people WHERE age IN (" + ", ".join(map(str, range(100_000))) + ")",
    "SELECT COUNT(*) FROM people WHERE income IN (" + ", ".join(str(i * 10**9) for i in range(1300)) + ")",
    "SELECT COUNT(*) FROM people WHERE region IN ('" + "x" * 19_000 + "')",
    "SELECT COUNT(*) FROM people WHERE age < " + "9" * 19_000,
    "SELECT COUNT(*) FROM people WHERE age < 0." + "9" * 19_000,
    "SELECT " + ", ".join(["MEDIAN(income)"] * 1200) + " FROM people",
    "SELECT " + ", ".join(f"MEDIAN(income) AS a{i}" for i in range(199)) + " FROM people",
    "SELECT COUNT(*) AS " + "x" * 19_000 + " FROM people",
    "SELECT COUNT(*) FROM people WHERE " + "a." * 5000 + "b = 1",
    "SELECT COUNT(*) FROM people WHERE " + "STRUCT<" * 2500 + "age = 1",
    "SELECT COUNT(*) FROM people WHERE " + "DATE " * 3500 + "'2001-01-01' = born",
    "SELECT COUNT(*) FROM people WHERE " + "PRIOR " * 3000 + "age = 1",
    "SELECT COUNT(*) FROM people WHERE age " + "BETWEEN 1 AND " * 1300 + "2",
    "SELECT COUNT(*) FROM people WHERE age " + "IN (1) " * 2500,
    "SELECT COUNT(*) FROM people WHERE age " + "IS NULL " * 2400,
    "SELECT COUNT(*) FROM people " + "WHERE age = 1 " * 1300,
    "SELECT COUNT(*) FROM people " + "FROM people " * 1300,
    "SELECT" * 3000,
    "'" * 19_999,
    '"' * 19_999,
    "," * 19_999,
    "SELECT COUNT(*) FROM people WHERE age = 1" + "\n" * 19_000,
    "SELECT " + "\U0001f600" * 1000 + " FROM people",
    "SELECT CASE COUNT(*) WHEN 1 THEN 'a' WHEN 'b' THEN 2 END FROM people",
    "SELECT " + "CASE WHEN COUNT(*) > 1 THEN " * 3000 + "1" + " END" * 3000 + " FROM people",
    "SELECT CASE " + "WHEN COUNT(*) > 1 THEN 1 " * 700 + "END AS a FROM people",
    "SELECT CASE " + "CASE " * 3000 + "FROM people",
    "SELECT " + "COUNT(*) + " * 1700 + "1 AS a FROM people",
    "SELECT " + "COUNT(*) * " * 1700 + "1 AS a FROM people",
    "SELECT 1" + " / 0" * 4500 + " + COUNT(*) AS a FROM people",
    "SELECT " + "1e399 * " * 2400 + "COUNT(*) AS a FROM people",
    "SELECT COUNT(*) AS a FROM people HAVING a IN (" + ", ".join(map(str, range(3500))) + ")",
    "SELECT COUNT(*) AS a FROM people HAVING " + "a > 1 AND " * 1800 + "TRUE",
    "SELECT COUNT(*) AS a FROM people HAVING " + "NOT " * 4000 + "TRUE",
    "SELECT region, COUNT(*) FROM people GROUP BY region HAVING region LIKE '" + "%_" * 9000 + "'",
    "SELECT COUNT(*) FROM people WHERE region LIKE '" + "%_" * 9000 + "'",
    "SELECT COUNT(*) FROM people WHERE region LIKE 'a' ESCAPE '" + "!" * 9000 + "'",
    "SELECT ROUND(COUNT(*), 1e300) FROM people",
    "SELECT ROUND(COUNT(*), -1e300) FROM people",
    "SELECT ROUND(COUNT(*), COUNT(*)) FROM people",
    "SELECT GREATEST(" + ", ".join(["COUNT(*)"] * 1900) + ") FROM people",
    "SELECT COALESCE() + COUNT(*) FROM people",
    "SELECT COUNT(*) FROM people LIMIT 1e300",
    "SELECT COUNT(*) FROM people LIMIT -1",
    "SELECT COUNT(*) FROM people LIMIT COUNT(*)",
    "SELECT COUNT(*) FROM people LIMIT (SELECT 1)",
    "SELECT COUNT(*) FROM people OFFSET 999999999999999999999",
    "SELECT COUNT(*) FROM people ORDER BY 0",
    "SELECT COUNT(*) FROM people ORDER BY 2",
    "SELECT COUNT(*) FROM people ORDER BY " + ", ".join(["1"] * 9000),
    "SELECT COUNT(*) FROM people ORDER BY income",
    "SELECT COUNT(*) FROM people ORDER BY random()",
    "SELECT COUNT(*) AS a, a AS b, b AS a FROM people",
    "SELECT a AS a FROM people",
    "SELECT a + 1 AS a, COUNT(*) FROM people",
    "SELECT income, COUNT(*) FROM people",
    "SELECT income + COUNT(*) FROM people",
    "SELECT COUNT(*) FROM people HAVING income > 3",
    "SELECT MAX(income) FROM (SELECT income FROM people)",
    "SELECT MAX(income) FROM (SELECT * FROM people)",
    "SELECT * FROM people",
    "SELECT *, COUNT(*) FROM people",
    "SELECT * FROM (SELECT COUNT(*) FROM people), people",
    "SELECT n FROM (SELECT COUNT(*) AS n FROM people) JOIN people",
    "SELECT n FROM (SELECT COUNT(*) AS n FROM people UNION SELECT 1)",
    "SELECT n FROM (SELECT COUNT(*) AS n FROM people) WHERE n = (SELECT MAX(age) FROM people)",
    "SELECT n FROM (SELECT COUNT(*) AS n FROM people) WHERE income > 3",
    "SELECT MEDIAN(income) FROM (SELECT COUNT(*) AS n FROM people)",
    "SELECT KTH_LARGEST(n, 1) FROM (SELECT COUNT(*) AS n FROM people)",
    "SELECT MAX(MAX(n)) FROM (SELECT COUNT(*) AS n FROM people)",
    "SELECT COUNT(DISTINCT n) FROM (SELECT COUNT(*) AS n FROM people)",
    "SELECT * FROM (" * 11 + "SELECT COUNT(*) FROM people" + ")" * 11,
    "SELECT * FROM (" * 900 + "SELECT COUNT(*) FROM people" + ")" * 900,
    "SELECT * FROM (SELECT COUNT(*) FROM people",
    "SELECT * FROM SELECT COUNT(*) FROM people",
    "SELECT EXTRACT(" + "YEAR FROM " * 1700 + "MIN(born)) FROM people",
    "SELECT EXTRACT(EPOCH FROM MIN(born)) FROM people",
    "SELECT EXTRACT(YEAR FROM born) FROM people",
    "SELECT MIN(born) + MIN(born) FROM people",
    "SELECT MIN(born) * 2 FROM people",
    "SELECT MIN(born) + 1e399 AS d FROM people",
    "SELECT MODE(region) + 1 FROM people",
    "SELECT MODE(region) < 'north' AS b FROM people",
    "SELECT COUNT(*) = 'many' AS b FROM people",
    "SELECT NOT COUNT(*) AS b FROM people",
    "SELECT COUNT(*) % 2 FROM people",
    "SELECT COUNT(*) || 'x' FROM people",
    "SELECT COUNT(*)::int FROM people",
    "SELECT IF(COUNT(*) > 3, 1, 0) FROM people",
    "SELECT SQRT(COUNT(*)) FROM people",
    "SELECT COUNT(*) /* a /* b */ c */ FROM people",
    "SELECT COUNT(*) /* never ends FROM people",
    "SELECT COUNT(*) " + "/**/" * 4900 + " FROM people",
    "SELECT COUNT(*) " + "--\n" * 6000 + " FROM people",
    "\ud800",
    "SELECT COUNT(*) FROM people WHERE region = '\udcff'",
]
SPELT = """
SELECT FROM WHERE GROUP BY AND OR NOT IN IS NULL BETWEEN AS DISTINCT ORDER WITHIN ASC DESC DATE TIMESTAMP TRUE FALSE
COUNT SUM MEDIAN BIN KTH_LARGEST people age region ( ) ( ) , , * = <> < <= > >= - . ; 1 2.5 'a' JOIN HAVING CASE OVER
UNION NULLS FIRST FILTER + / WHEN THEN ELSE END LIKE ILIKE ESCAPE LIMIT OFFSET ROUND GREATEST COALESCE EXTRACT YEAR
(SELECT /* */ -- IGNORE RESPECT ALL ANY USING ON LEFT TABLE VALUES UNNEST :: || [ ] { } $1 ? : @x ' "
"""
WORDS = SPELT.split()


def call(rng):
    column = rng.choice(list(COLUMNS))
    return rng.choice(["COUNT(*)", *COLUMNS[column][0]]).format(column)


def condition(rng, depth=2):
    kind = rng.randrange(8 if depth else 5)
    column = rng.choice(list(COLUMNS))
    literals = COLUMNS[column][1]
    ordered = literals is not STRINGS
    if kind == 0:
        return f"{column} IS {rng.choice(['', 'NOT '])}NULL"
    if kind == 1:
        return f"{column} {rng.choice(['', 'NOT '])}IN ({', '.join(rng.choices(literals, k=rng.randint(1, 4)))})"
    if kind == 2 and ordered:
        return f"{column} BETWEEN {rng.choice(literals)} AND {rng.choice(literals)}"
    if kind in (2, 3, 4):
        operators = ["=", "<>", "<", "<=", ">", ">="] if ordered else ["=", "<>"]
        return f"{column} {rng.choice(operators)} {rng.choice(literals)}"
    if kind == 5:
        return f"NOT ({condition(rng, depth - 1)})"
    return f"({condition(rng, depth - 1)} {rng.choice(['AND', 'OR'])} {condition(rng, depth - 1)})"


def computed(rng):
    """A question that computes something from what it releases."""
    statistics = {call(rng) for _ in range(rng.randint(1, 3))}
    kinds = {"MODE": TEXT, "born": DATE, "SEEN": TIMESTAMP}
    named = [
        Named(one, next((kind for part, kind in kinds.items() if part in one and "COUNT" not in one), NUMBER))
        for one in sorted(statistics)
    ]
    keys = rng.sample(
        [Named("region", TEXT), Named("sex", TEXT), Named("BIN(age, 10)", NUMBER)], k=rng.choice([0, 1, 2])
    )
    return make_question(rng, named, keys, f"WHERE {condition(rng)}" if rng.random() < 0.3 else "")


def valid(rng):
    """A question by the grammar; it may still ask for too much, or for nothing."""
    if rng.random() < 0.7:
        return computed(rng)
    keys = rng.sample(["region", "sex", "BIN(age, 10)", "BIN(price, 5)"], k=rng.choice([0, 0, 0, 1, 2]))
    items = [*rng.sample(keys, k=rng.randint(0, len(keys))), *(call(rng) for _ in range(rng.randint(1, 3)))]
    sql = f"SELECT {', '.join(items)} FROM people"
    if rng.random() < 0.6:
        sql += f" WHERE {condition(rng)}"
    return sql + (f" GROUP BY {', '.join(keys)}" if keys else "")


def mutated(rng):
    sql = list(valid(rng)) if rng.random() < 0.7 else list(rng.choice(HOSTILE)[:400])
    for _ in range(rng.randint(1, 2)):
        at = rng.randrange(len(sql) + 1)
        change = rng.randrange(4)
        if change == 0:
            sql.insert(at, rng.choice(string.printable + "\0ä\u202e'\"`\u212a"))
        elif change == 1 and sql:
            del sql[min(at, len(sql) - 1)]
        elif change == 2:
            sql.insert(at, f" {rng.choice(WORDS)} ")
        else:
            other = min(at + rng.randint(0, 20), len(sql))
            sql[at:other] = sql[at:other] * 2
    return "".join(sql)


def jumbled(rng):
    return "SELECT " + " ".join(rng.choices(WORDS, k=rng.randint(1, 30)))


def outcome(sql, people=PEOPLE):
    """None if refused on purpose, else the plan, which may name nothing that is not declared."""
    try:
        plan = planned(sql, 4, people=people)
    except IdiosError:
        return None
    assert column_names(plan.filter) <= set(people.columns)
    assert {group.column for group in plan.groups} <= set(people.columns)
    assert {a.column for a in plan.aggregates} <= {None, *people.columns}
    assert plan.epsilon in (0, 4)
    return plan


@pytest.mark.parametrize("sql", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_texts_are_refused_or_harmless_and_quick(sql):
    start = time.process_time()
    outcome(sql)
    assert time.process_time() - start < 3


@pytest.mark.slow
@pytest.mark.parametrize(("make", "count", "least"), [(valid, 2500, 0.4), (mutated, 5500, 0.01), (jumbled, 2000, 0)])
def test_ten_thousand_texts_are_planned_or_refused(make, count, least):
    rng = random.Random(6)
    people = [PEOPLE, protected("differential")]
    answered = sum(outcome(make(rng), people[i % 2]) is not None for i in range(count))
    assert answered >= least * count


@settings(max_examples=400, deadline=None)
@given(st.text(max_size=200) | st.text(alphabet=string.printable, max_size=200))
def test_any_text_at_all(sql):
    outcome(sql)
    outcome(f"SELECT {sql} FROM people")
    outcome(f"SELECT COUNT(*) FROM people WHERE {sql}")


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=25))
def test_any_order_of_words(words):
    outcome("SELECT COUNT(*) FROM people WHERE " + " ".join(words))

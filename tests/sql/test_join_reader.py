"""FROM and JOIN: what is joined, what a name means, and what is refused."""

from __future__ import annotations

import random
import re
from dataclasses import replace

import pytest

from idios.core.calibration import Protection
from idios.core.domain import Categories, Domain, Kind
from idios.declare.schema import Column, Dataset, Link
from idios.errors import IdiosError, QuestionRefused
from idios.plan.planner import make_plan
from idios.plan.question import Plan
from idios.plan.question_words import describe_question
from idios.sql.derived import derive_columns
from idios.sql.reader import read


def _number(name: str) -> Column:
    return Column(name, Kind.INTEGER, Domain())


PRODUCTS = Dataset(
    "products",
    {"kind": Column("kind", Kind.CATEGORY, Categories(("food", "toy"))), "note": _number("note")},
    public=True,
)
TO_PEOPLE = Link(("person",), "people", ("id",))
ORDERS = Dataset(
    "orders",
    {"amount": _number("amount"), "note": _number("note")},
    unit=("person",),
    order="note",
    links=(TO_PEOPLE, Link(("product",), "products", ("id",))),
)
VISITS = Dataset(
    "visits",
    {"length": _number("length")},
    unit=("id",),
    links=(Link(("id",), "people", ("id",)), Link(("gift",), "products", ("id",))),
)
ITEMS = Dataset(
    "items",
    {"price": _number("price"), "note": _number("note")},
    links=(Link(("order", "line"), "orders", ("number", "line")), Link(("product",), "products", ("id",))),
)
MARKS = Dataset("marks", {"mark": _number("mark")}, links=(Link(("item",), "items", ("id",)),))
PEOPLE = Dataset(
    "people",
    {"age": _number("age"), "region": Column("region", Kind.CATEGORY, Categories(("n", "s")), nullable=False)},
    protection=Protection.declare("differential"),
    unit=("id",),
    unit_word="person",
    tables={"orders": ORDERS, "visits": VISITS, "products": PRODUCTS, "items": ITEMS, "marks": MARKS},
    covers_everyone=False,
)  # fmt: skip


def plan(sql: str, people: Dataset = PEOPLE) -> Plan:
    return make_plan(read(sql, {"people": people}), people, 3)


SAME = [
    "SELECT MEDIAN(s) FROM (SELECT SUM(amount) AS s FROM orders JOIN people ON person = id WHERE age > 3 "
    "GROUP BY person)",
    "SELECT MEDIAN(s) FROM (SELECT person, SUM(o.amount) AS s FROM orders AS o INNER JOIN people p ON p.id = o.person "
    "WHERE p.age > 3 GROUP BY o.person)",
    "SELECT MEDIAN(t.s) FROM (SELECT id, SUM(amount) s FROM people JOIN orders o ON ((o.person = people.id)) "
    'WHERE NOT "people"."age" <= 3 GROUP BY id) t',
    "SELECT MEDIAN(s) FROM (SELECT p.id, SUM(amount) AS s FROM orders o JOIN people p ON o.person = p.id WHERE age > 3 "
    "GROUP BY p.ID)",
    "SELECT MEDIAN(s) FROM (SELECT p.id, SUM(amount) AS s FROM orders o JOIN people p ON o.person = p.id WHERE age > 3 "
    "GROUP BY 1)",
]


def test_spellings_of_one_question_have_one_form() -> None:
    assert len({plan(sql).normal_form for sql in SAME}) == 1


ON_ORDERS = "items.order = orders.number AND orders.line = items.line"


def test_rows_that_belong_to_rows_are_read_with_these() -> None:
    """Whether the other table is written or not, from either, by JOIN or LEFT JOIN."""
    for select, sources in (
        ("SUM(price)", ["items", f"items JOIN orders ON {ON_ORDERS}", f"items LEFT JOIN orders ON {ON_ORDERS}",
         f"orders JOIN items ON {ON_ORDERS}"]),
        ("SUM(mark)", ["marks m LEFT JOIN items i ON m.item = i.id LEFT JOIN products p ON i.product = p.id",
         "marks LEFT JOIN items ON item = items.id LEFT JOIN products ON items.product = products.id LEFT JOIN orders "
         f"ON {ON_ORDERS}"]),
    ):  # fmt: skip
        made = [plan(f"SELECT COUNT(*), {select} FROM {source}") for source in sources]
        assert len({each.normal_form for each in made}) == 1
        assert {each.dataset.unit for each in made} == {("orders.person",)}
        assert {each.dataset.name for each in made} == {"people"}
    left = plan(f"SELECT COUNT(*) FROM orders LEFT JOIN items ON {ON_ORDERS}")
    assert left.normal_form != plan("SELECT COUNT(*) FROM items").normal_form
    assert describe_question(plan("SELECT SUM(mark) FROM marks").normal_form) == (
        "sum of each person's sum of marks.mark, of rows of items, marks and orders"
    )


def test_people_are_told_apart_by_any_table_that_is_joined() -> None:
    ask = "SELECT MEDIAN(s) FROM (SELECT SUM(price) AS s FROM items {} GROUP BY {})"
    joined = f"JOIN orders ON {ON_ORDERS} JOIN people p ON orders.person = p.id"
    by_orders, by_people = plan(ask.format(joined, "person")), plan(ask.format(joined, "p.id"))
    assert by_orders.normal_form == by_people.normal_form
    for joined, unit, message in (
        ("", "person", 'person is in orders, to which the rows of items belong: add JOIN orders ON items."order" = '
         "orders.number AND items.line = orders.line to FROM"),
        ("", "orders.person", "there is no table 'orders'"),
        (f"JOIN orders ON {ON_ORDERS}", "price", "grouped by categories, and items.price is none"),
        (f"JOIN orders ON {ON_ORDERS}", "orders.number", "the column 'number' is not declared"),
    ):  # fmt: skip
        with pytest.raises(QuestionRefused) as caught:
            plan(ask.format(joined, unit))
        assert message in str(caught.value)
    assert plan("SELECT SUM(price) AS person FROM items ORDER BY person").dataset.unit == ("orders.person",)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT MEDIAN(s) FROM (SELECT SUM(amount) AS s FROM orders LEFT JOIN people ON person = id WHERE age > 3 "
        "GROUP BY person)",
        "SELECT MEDIAN(s) FROM (SELECT SUM(amount) AS s FROM orders JOIN people ON person = people.id JOIN products ON "
        "product = products.id WHERE age > 3 GROUP BY person)",
    ],
)
def test_another_join_is_another_question(sql: str) -> None:
    assert plan(sql).normal_form != plan(SAME[0]).normal_form


def test_another_version_or_declaration_of_a_joined_table_is_another_question() -> None:
    first = plan(SAME[0]).normal_form
    for changed in (
        replace(ORDERS, version="2"),
        replace(ORDERS, columns=dict(ORDERS.columns) | {"amount": replace(_number("amount"), nullable=False)}),
    ):
        assert plan(SAME[0], replace(PEOPLE, tables=dict(PEOPLE.tables) | {"orders": changed})).normal_form != first
    other = replace(PRODUCTS, version="2")
    assert plan(SAME[0], replace(PEOPLE, tables=dict(PEOPLE.tables) | {"products": other})).normal_form == first


def test_a_question_says_what_it_joins() -> None:
    made = plan("SELECT AVG(amount) FROM orders LEFT JOIN products AS q ON product = q.id WHERE kind = 'food'")
    assert describe_question(made.normal_form) == (
        "mean of each person's mean of orders.amount, of rows of orders and products where products.kind is food"
    )
    assert describe_question(made.form) == describe_question(made.normal_form)
    turned = plan(f"SELECT COUNT(*) FROM orders JOIN items ON {ON_ORDERS}")
    assert describe_question(turned.form) == describe_question(turned.normal_form)


def test_keys_of_rows_go_by_their_own_names() -> None:
    people = replace(PEOPLE, groups=2)
    joined = f"items JOIN orders ON {ON_ORDERS} JOIN products q ON items.product = q.id"
    for sql in (
        f"SELECT kind, COUNT(*) FROM {joined} GROUP BY kind ORDER BY kind",
        f"SELECT q.kind, COUNT(*) FROM {joined} GROUP BY q.kind ORDER BY q.kind",
        f"SELECT kind, COUNT(*) FROM (SELECT kind, SUM(price) FROM {joined} GROUP BY person, kind) GROUP BY kind",
        f"SELECT kind, n FROM (SELECT kind, COUNT(*) AS n FROM {joined} GROUP BY kind) WHERE kind = 'toy'",
    ):
        assert read(sql, {"people": people}).shown[-1].items[0].label == "kind", sql


def test_a_condition_on_a_derived_column_is_one_on_its_sources() -> None:
    """Unless LEFT JOIN may find nothing, where it is NULL, whatever it would be of sources that are NULL."""
    derived = derive_columns({"large": {"expression": "COALESCE(amount, 0) > 9"}}, ORDERS.columns)
    orders = replace(ORDERS, columns=dict(ORDERS.columns) | derived)
    people = replace(PEOPLE, tables=dict(PEOPLE.tables) | {"orders": orders})
    ask = "SELECT COUNT(*), SUM(age) FROM {} WHERE {}"
    for source, same in (
        ("orders o JOIN people p ON o.person = p.id", True),
        ("orders o LEFT JOIN people p ON o.person = p.id", True),
        ("people p JOIN orders o ON o.person = p.id", True),
        ("people p LEFT JOIN orders o ON o.person = p.id", False),
    ):
        forms = [plan(ask.format(source, where), people).normal_form for where in ("large = TRUE", "amount > 9")]
        assert (forms[0] == forms[1]) == same, source
        forms = [plan(ask.format(source, where), people).normal_form for where in
                 ("large = FALSE", "NOT amount > 9 OR amount IS NULL")]  # fmt: skip
        assert (forms[0] == forms[1]) == same, source


def test_the_number_of_people_is_secret_wherever_one_may_have_no_row() -> None:
    people = replace(
        PEOPLE,
        size=50,
        covers_everyone=True,
        tables={"products": PRODUCTS},
        links=(Link(("gift",), "products", ("id",)),),
    )
    for joined, size in (
        ("", 50),
        ("LEFT JOIN products ON gift = products.id", 50),
        ("JOIN products ON gift = products.id", None),
    ):
        made = plan(f"SELECT COUNT(*) FROM (SELECT COUNT(*) FROM people {joined} GROUP BY people.id)", people)
        assert made.dataset.size == size
        assert made.dataset.has_everyone == (size is not None)
    assert not plan("SELECT COUNT(*) FROM (SELECT COUNT(*) FROM people GROUP BY id)").dataset.has_everyone
    orders = replace(PEOPLE, name="orders", links=(), unit=("person",), size=50, covers_everyone=True)
    orders = replace(orders, tables={"items": ITEMS, "products": PRODUCTS})
    for source, size in (
        ("orders", 50),
        (f"orders LEFT JOIN items ON {ON_ORDERS}", 50),
        (f"orders JOIN items ON {ON_ORDERS}", None),
        (f"items JOIN orders ON {ON_ORDERS}", None),
        (f"items LEFT JOIN orders ON {ON_ORDERS}", None),
    ):
        sql = f"SELECT COUNT(*) FROM (SELECT COUNT(*) FROM {source} GROUP BY person)"
        made = make_plan(read(sql, {"orders": orders}), orders, 3)
        assert (made.dataset.size, made.dataset.has_everyone) == (size, size is not None)


def test_names_mean_the_columns_of_their_tables() -> None:
    made = plan(
        "SELECT MEDIAN(a), MEDIAN(b), MEDIAN(c) FROM (SELECT LAST(o.note) AS a, MAX(q.note) AS b, SUM(length) AS c "
        "FROM visits AS v JOIN people USING (id) JOIN orders AS o ON o.person = people.id JOIN products q "
        "ON v.gift = q.id GROUP BY id)"
    )
    assert set(made.dataset.columns) == {
        "COUNT(*)", 'LAST("orders.note")', 'MAX("products.note")', 'SUM("visits.length")'
    }  # fmt: skip
    assert made.dataset.order == "orders.note"
    assert made.dataset.unit == ("visits.id",)


REFUSED = [
    ("FROM orders, people", "Declared is: JOIN people ON orders.person = people.id"),
    ("FROM orders JOIN people", "Declared is: JOIN people ON orders.person = people.id"),
    ("FROM orders CROSS JOIN people", "a join is [INNER] JOIN"),
    ("FROM orders NATURAL JOIN people", "a join is [INNER] JOIN"),
    ("FROM orders RIGHT JOIN people ON person = id", "a join is [INNER] JOIN"),
    ("FROM orders FULL OUTER JOIN people ON person = id", "a join is [INNER] JOIN"),
    ("FROM orders OUTER JOIN people ON person = id", "a join is [INNER] JOIN"),
    ("FROM orders LEFT SEMI JOIN people ON person = id", "a join is [INNER] JOIN"),
    ("FROM orders JOIN people ON amount = age", "Declared is"),
    ("FROM orders JOIN people ON person > id", "Declared is"),
    ("FROM orders JOIN people ON person = id AND age > 3", "Declared is"),
    ("FROM orders JOIN people ON person = id OR 1 = 1", "Declared is"),
    ("FROM orders JOIN people ON person = person", "Declared is"),
    ("FROM orders JOIN people ON TRUE", "Declared is"),
    ("FROM orders JOIN people USING (person)", "there is no link USING a column 'person'"),
    ("FROM orders JOIN orders ON person = person", "a table is joined once"),
    ("FROM orders JOIN people p ON person = id JOIN people q ON person = q.id", "a table is joined once"),
    ("FROM orders JOIN firms ON person = id", "no linked data set 'firms'"),
    ("FROM orders o JOIN people o ON o.person = o.id", "two tables are called 'o'"),
    # what ties the rows of different people
    ("FROM products JOIN orders ON product = id", "products is public"),
    ("FROM orders JOIN products ON product = id JOIN visits ON visits.gift = products.id", "no link to any table"),
    ("FROM orders JOIN visits ON person = visits.id", "no link to any table"),
    ("FROM people JOIN products ON age = products.id", "no link to any table"),
    ("FROM products", "products is public"),
    ("FROM items JOIN visits ON items.product = gift", "no link to any table"),
    (
        "FROM items JOIN products ON items.product = products.id JOIN orders ON orders.product = products.id",
        'JOIN orders ON items."order" = orders.number AND items.line = orders.line',
    ),
    ('FROM items JOIN orders ON items."order" = orders.number', 'JOIN orders ON items."order" = orders.number AND'),
    ("FROM items JOIN orders USING (line)", 'JOIN orders ON items."order" = orders.number AND items.line = orders'),
    ("FROM items JOIN people ON items.order = people.id", "no link to any table"),
    ("FROM marks JOIN orders ON item = number", "no link to any table"),
    ("FROM orders JOIN (people JOIN visits ON people.id = visits.id) ON person = id", "JOIN is followed by"),
    ("FROM orders JOIN people JOIN visits ON people.id = visits.id ON person = people.id", "a join is [INNER] JOIN"),
    ("FROM orders JOIN (SELECT COUNT(*) FROM people) ON person = id", "JOIN is followed by a declared data set"),
    ("FROM (SELECT COUNT(*) FROM people) AS p JOIN orders ON person = id", "JOIN stands in the innermost"),
    ("FROM orders o", "without an alias"),
    ("FROM orders TABLESAMPLE", "without an alias"),
    ("FROM orders AS o (a, b)", ""),
    ("FROM main.orders", "without a prefix"),
]


@pytest.mark.parametrize(("source", "message"), REFUSED)
def test_undeclared_joins_are_refused(source: str, message: str) -> None:
    with pytest.raises(QuestionRefused) as caught:
        plan(f"SELECT COUNT(*) {source}")
    assert message in str(caught.value)


JOINED = "FROM orders o JOIN people p ON o.person = p.id JOIN products q ON o.product = q.id"


@pytest.mark.parametrize(
    ("select", "message"),
    [
        ("SUM(note)", "note could be orders.note and products.note: write it with its prefix"),
        ("SUM(orders.amount)", "there is no table 'orders'"),
        ("SUM(o.age)", "the column 'age' is not declared"),
        ("SUM(o.product)", "the column 'product' is not declared"),
        ("SUM(a.o.amount)", "without a prefix"),
        ("SUM(age + amount)", "a column is expected here"),
        ("SUM(q.id)", "the column 'id' is not declared"),
        ("STDDEV(amount)", "SELECT STDDEV(amount) FROM (SELECT AVG(o.amount) AS amount FROM orders o JOIN people p ON "
         "o.person = p.id JOIN products q ON o.product = q.id GROUP BY o.person)"),
        ("COUNT(*), o.sum(amount)", ""),
    ],
)  # fmt: skip
def test_names_that_mean_nothing_or_too_much_are_refused(select: str, message: str) -> None:
    with pytest.raises(QuestionRefused) as caught:
        plan(f"SELECT {select} {JOINED}")
    assert message in str(caught.value)


def test_the_unit_of_a_table_that_may_have_no_row_is_no_unit() -> None:
    sql = (
        "SELECT COUNT(*) FROM (SELECT COUNT(*) FROM orders AS o LEFT JOIN people AS p ON o.person = p.id GROUP BY p.id)"
    )
    with pytest.raises(QuestionRefused, match=r"p\.id"):
        plan(sql)
    assert plan(sql.replace("LEFT ", "")).dataset.unit == ("orders.person",)


def test_what_is_proposed_instead_says_whose_rows_they_are() -> None:
    with pytest.raises(QuestionRefused) as caught:
        plan("SELECT STDDEV(price) FROM items i WHERE i.note > 3")
    proposed = str(caught.value).partition("first: ")[2].partition(" (line")[0]
    assert proposed == (
        'SELECT STDDEV(price) FROM (SELECT AVG(i.price) AS price FROM items i JOIN orders ON i."order" = orders.number '
        "AND i.line = orders.line WHERE i.note > 3 GROUP BY orders.person)"
    )
    assert plan(proposed).dataset.unit == ("orders.person",)


def test_the_words_of_joins_are_names_where_there_is_none() -> None:
    words = Dataset("t", {name: _number(name) for name in ("left", "on", "using", "inner")})
    assert (
        len(read("SELECT SUM(left), SUM(on), SUM(using), SUM(inner) FROM t WHERE left > 3", {"t": words}).measures) == 4
    )
    assert read("SELECT SUM(x.left) FROM t x WHERE x.on > 3", {"t": words}).measures[0].column == "left"


HURT = [
    *SAME,
    f"SELECT MEDIAN(s) FROM (SELECT SUM(price) AS s FROM marks m JOIN items ON m.item = items.id LEFT JOIN orders ON "
    f"{ON_ORDERS} GROUP BY person)",
    "SELECT COUNT(*), SUM(amount) FROM orders JOIN products ON product = products.id WHERE kind = 'toy'",
    "SELECT MAX(m) FROM (SELECT BIN(n, 2) AS b, MEDIAN(a) AS m FROM (SELECT COUNT(*) AS n, AVG(age) AS a FROM people "
    "GROUP BY id) WHERE n BETWEEN 1 AND 10 GROUP BY 1) t",
    "SELECT MAX(m) FROM (FROM MEDIAN(age) AS m FROM people)",
]
TOKEN = re.compile(r"\w+|'[^']*'|[^\s\w]")
MORE = [
    "SELECT",
    "FROM",
    "JOIN",
    "LEFT",
    "ON",
    "USING",
    "(",
    ")",
    ",",
    ".",
    "*",
    "AS",
    "GROUP",
    "BY",
    "WHERE",
    "HAVING",
    "ORDER",
    "LIMIT",
    "CASE",
    "NULL",
    "DISTINCT",
    "0",
    "1",
    "id",
    "x",
]


def test_damaged_questions_about_people_and_joins_are_planned_or_refused() -> None:
    """Any other error, as of ``FROM (FROM …)`` once, would be one of the server."""
    rng, planned = random.Random(3), 0
    for _ in range(4000):
        tokens = TOKEN.findall(rng.choice(HURT))
        for _ in range(rng.randint(0, 3)):
            at = rng.randrange(len(tokens))
            tokens[at : at + rng.randint(0, 1)] = [rng.choice([*MORE, *tokens])] * rng.randint(0, 1)
        try:
            planned += bool(plan(" ".join(tokens)))
        except IdiosError:
            continue
    assert 100 < planned < 2700

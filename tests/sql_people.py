"""What docs/sql.md shows of people with many rows and of joins: a shop with customers, their orders and products."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from idios import TrustedParty
from idios.datasets import read_columns
from idios.declare.schema import Column, Dataset
from idios.errors import QuestionRefused, Unanswerable
from idios.plan.question_words import describe_question
from idios.plan.reductions import FUNCTIONS, ROWS, ReducedValue, make_columns

COLUMNS = {
    "amount": {"type": "integer", "bounds": [0, None], "nullable": False},
    "channel": {"type": "category", "values": ["shop", "web"], "nullable": False},
    "paid": {"type": "boolean", "nullable": False},
    "day": {"type": "date", "nullable": False},
}
REDUCED = (
    "MEDIAN(spent) FROM (SELECT customer, SUM(amount) AS spent FROM orders WHERE channel = 'web' GROUP BY customer)",
    "COUNT(*) FROM (SELECT COUNT(*) AS orders FROM orders GROUP BY customer) WHERE orders >= 3",
    "c, AVG(a) FROM (SELECT LAST(channel) AS c, AVG(amount) AS a FROM orders GROUP BY customer) GROUP BY c",
    "COUNT(*) FROM (SELECT BOOL_AND(paid) AS reliable FROM orders GROUP BY customer) WHERE reliable",
    "COUNT(*), SUM(amount), AVG(amount) FROM orders",
    "MEDIAN(amount) FROM orders",
    "channel, COUNT(*) FROM orders GROUP BY channel",
    "AVG(LEAST(s, 150)) FROM (SELECT SUM(amount) AS s FROM orders GROUP BY customer)",
    "MAX(n) FROM (SELECT GREATEST(LEAST(COUNT(*), 9), 2) AS n FROM orders GROUP BY customer)",
    "MAX(s) FROM (SELECT LEAST(SUM(amount), 0.5) AS s FROM orders GROUP BY customer)",
    "SUM(LEAST(amount, 150)) FROM orders",
    "MAX(m) FROM (SELECT channel, COUNT(*) AS m FROM orders GROUP BY channel)",
    "VARIANCE(amount) FROM orders",
    "MEDIAN(m) FROM (SELECT amount AS m FROM orders GROUP BY customer)",
    "MEDIAN(m) FROM (SELECT MODE(channel) AS m FROM orders GROUP BY customer)",
    "customer, COUNT(*) FROM orders GROUP BY customer",
)
JOINED = (
    "SUM(amount) FROM orders JOIN products ON orders.product = products.code WHERE kind = 'food'",
    "SUM(o.amount) FROM orders AS o JOIN customers AS c ON o.customer = c.id WHERE c.age >= 40",
    "MEDIAN(spent) FROM (SELECT SUM(amount) AS spent FROM customers LEFT JOIN orders ON id = customer GROUP BY id)",
    "AVG(age) FROM customers",
    "COUNT(*) FROM orders JOIN customers ON amount = age",
    "COUNT(*) FROM orders CROSS JOIN products",
    "COUNT(*) FROM orders, products",
    "COUNT(*) FROM orders RIGHT JOIN products ON product = code",
    "COUNT(*) FROM products",
    "COUNT(*) FROM orders JOIN suppliers ON supplier = id",
)


def open_shop() -> TrustedParty:
    """Customers with a budget, their orders, and public products."""
    return TrustedParty.open(
        {"id": list(range(1000)), "age": [18 + i % 60 for i in range(1000)]},
        name="customers",
        unit="id",
        unit_word="customer",
        groups=2,
        protection="differential",
        budget=10**6,
        columns={"age": {"type": "integer", "bounds": [0, 120]}},
        linked={
            "orders": {
                "source": {
                    "customer": [i % 900 for i in range(3000)],
                    "product": ["ab"[i % 2] for i in range(3000)],
                    "amount": [i % 61 for i in range(3000)],
                    "channel": [("shop", "web")[i % 2] for i in range(3000)],
                    "paid": [i % 2 for i in range(3000)],
                    "day": [date(2026, 1, 1 + i % 28) for i in range(3000)],
                },
                "unit": "customer",
                "order": "day",
                "links": {"customer": "customers.id", "product": "products.code"},
                "columns": COLUMNS,
            },
            "products": {
                "source": {"code": ["a", "b"], "kind": ["food", "toy"]},
                "public": True,
                "columns": {"kind": {"type": "category", "values": ["food", "toy"]}},
            },
        },
    )


def list_reductions() -> list[tuple[str, str, Column]]:
    """Every function that reduces the rows of a person: how it is written, what it is, and what its values are."""
    orders = Dataset("orders", read_columns(COLUMNS))
    found = []
    for value in (ROWS, *(ReducedValue(name, "amount") for name in FUNCTIONS)):
        words = "number of rows" if value == ROWS else FUNCTIONS[value.function].words.format(column="amount")
        found.append((value.name, words, make_columns(orders, [value])[value.name]))
    return found


def describe_questions(party: TrustedParty, questions: Sequence[str]) -> list[tuple[str, str]]:
    """Each question with what it asks, or why it is refused."""
    found = []
    for sql in questions:
        try:
            asked = describe_question(party.make_plan(f"SELECT {sql}", 2).normal_form)
        except (QuestionRefused, Unanswerable) as error:
            asked = "refused: " + str(error).split("\n")[0].split(" (line ")[0].split(". A question reads")[0]
        found.append((sql, asked))
    return found

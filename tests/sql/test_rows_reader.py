"""What is refused of the rows of people, and what is proposed instead."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import product

import pytest

from idios.core.domain import Categories, Kind
from idios.declare.schema import Column
from idios.errors import QuestionRefused
from tests.sql.test_reduction_reader import ORDERS, plan

MONTH = Column("the month", Kind.CATEGORY, Categories(("1", "2"), ("Mario's", "May")))
ROWS = replace(ORDERS, columns={**ORDERS.columns, MONTH.name: MONTH})
PROPOSED = re.compile(r"(?:one group|first): (SELECT .*) \(line")


def refuse(sql: str, groups: int | None = None) -> str:
    with pytest.raises(QuestionRefused) as refused:
        plan(sql, replace(ROWS, groups=groups))
    return str(refused.value).splitlines()[0]


def test_one_group_is_proposed_and_never_one_that_is_made_up_for_each_person() -> None:
    told = refuse(
        'SELECT "the month", SUM(amount) AS total, COUNT(*) FROM orders AS o WHERE score > 3 OR paid = 1 '
        'GROUP BY "the month" ORDER BY total DESC'
    )
    assert "declare groups = 2 or another number, in how many groups a person counts" in told
    assert (
        'SELECT SUM(amount) AS total, COUNT(*) FROM orders AS o WHERE (score > 3 OR paid = 1) AND o."the month" = '
        "'Mario''s'"
    ) in told
    assert "MAX" not in told


def test_keys_are_read_before_that_is_told() -> None:
    for key, told in (
        ("state", "the column 'state' is not declared"),
        ("score", "grouped by categories, and score is none: select a period or a range by WHERE"),
        ("BIN(score, 2)", "grouped by categories, and score is none"),
        ("BIN(state, 2)", "the column 'state' is not declared"),
        ("EXTRACT(YEAR FROM time)", ""),
        ("region, time", "and time is none"),
    ):
        for groups in (None, 2):
            message = refuse(f"SELECT COUNT(*) FROM orders GROUP BY {key}", groups)
            assert told in message
            assert not PROPOSED.search(message)


def test_whatever_is_proposed_can_be_planned() -> None:
    statistics = (
        *("COUNT(*)", "SUM(amount) AS total", "AVG(score)", "MEDIAN(o.amount)", "STDDEV(amount)", "MODE(region)"),
        *("COUNT(DISTINCT score)", "SUM(score) / COUNT(*)", "KTH_LARGEST(score, 20)", "COUNT(*), MEDIAN(score)"),
    )
    keys = ("region", '"the month"', 'region, "the month"', "o.region", "1")
    found = 0
    for listed, key, where, order, groups in product(
        statistics, keys, ("", " WHERE score > 3 OR paid = 1"), ("", " ORDER BY 1 LIMIT 3"), (None, 2)
    ):
        shown = "region" if key == "1" else key
        sql = f"SELECT {shown}, {listed} FROM orders AS o{where} GROUP BY {key}{order}"
        try:
            plan(sql, replace(ROWS, groups=groups))
        except QuestionRefused as refused:
            if proposed := PROPOSED.search(str(refused)):
                found += 1
                plan(proposed[1], replace(ROWS, groups=groups))
    assert found > 100

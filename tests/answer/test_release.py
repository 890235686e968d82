"""What a quote says of answers that may be NULL or far off."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest

from idios.model import Quote
from idios.party import TrustedParty

COLUMNS: dict[str, Any] = {
    "age": {"type": "integer", "bounds": [0, 120], "nullable": False},
    "income": {"type": "integer", "nullable": False},
    "region": {"type": "category", "values": ["north", "south"]},
}


def quote(select: str, rest: str = "", *, rows: int = 400, epsilon: str = "1", **options: Any) -> Quote:
    rng = np.random.default_rng(3)
    data = {
        "age": rng.integers(18, 90, rows),
        "income": rng.lognormal(10, 1, rows).astype(np.int64),
        "region": rng.choice(["north", "south"], rows),
    }
    options = {"protection": "differential"} | options
    with TrustedParty.open(data, name="people", columns=COLUMNS, budget=10, check=0, **options) as party:
        return party.quote(f"SELECT {select} FROM people {rest}", epsilon)


def test_nothing_is_said_where_an_answer_is_nearly_certain() -> None:
    quoted = quote("MEDIAN(income), AVG(income), COUNT(*), KTH_LARGEST(income, 20)", rows=3000, epsilon="4")
    assert quoted.null_risks == {}
    assert "null_risks" not in quoted.to_dict()
    assert "risk" not in str(quoted)
    assert quote("MEDIAN(income)", "WHERE age > 40", protection="individual").null_risks == {}


@pytest.mark.parametrize(("rows", "word", "enough"), [(50, "possible", "2.3"), (25, "likely", "4.5")])
def test_a_public_number_of_records_that_is_too_small(rows: int, word: str, enough: str) -> None:
    (risk,) = quote("MEDIAN(income) AS m", rows=rows).null_risks.values()
    assert risk == (
        f"NULL is {word}: an answer is nearly certain from about 101 values on, and there are {rows}; ε of about "
        f"{enough} would do"
    )
    assert quote("MEDIAN(income) AS m", rows=rows, epsilon=enough).null_risks == {}
    (risk,) = quote("IQR(income)", "WHERE age > 40", rows=50).null_risks.values()
    assert "about 201 values on, and there are at most 50" in risk


@pytest.mark.parametrize(
    ("statistic", "rows", "told"),
    [
        ("SUM", 150, "NULL or far off is likely: it takes about 172 values, and there are 150; ε of about 1.3"),
        ("AVG", 400, "no interval is likely: it takes about 3,660 values, and there are 400; ε of about 11"),
    ],
)
def test_a_public_number_of_values_that_is_too_small_for_drawn_limits(statistic: str, rows: int, told: str) -> None:
    """From the number of values and ε, both public; with the ε that is named the same is told no more."""
    (risk,) = quote(f"{statistic}(income)", rows=rows).null_risks.values()
    assert risk == f"{told}, or declared bounds, would do"
    enough = re.findall("ε of about ([0-9.]+)", risk)[0]
    assert told.partition(":")[0] not in str(quote(f"{statistic}(income)", rows=rows, epsilon=enough).null_risks)
    assert quote(f"{statistic}(income)", rows=rows, epsilon="40").null_risks == {}


def test_no_more_records_than_are_too_few() -> None:
    (risk,) = quote("AVG(income)", "WHERE age > 40", rows=100).null_risks.values()
    assert risk == (
        "NULL or far off is likely: it takes about 149 values, and there are at most 100; ε of at least about 1.7, or "
        "declared bounds, would be needed"
    )


def test_a_secret_number_of_records() -> None:
    select = "MEDIAN(income) AS m, AVG(income) AS a, MAX(age) AS x, AVG(age) AS b, COUNT(*) AS c"
    quoted = quote(select, "WHERE age > 40", epsilon="5")
    assert quoted.null_risks == {
        "m": "NULL is possible where fewer than about 101 values are selected",
        "a": "NULL or far off where fewer than about 149 values are selected; twice the ε takes half as many, declared "
        "bounds none",
        "x": "far off where fewer than about 25 values are selected",
    }
    assert Quote.from_dict(json.loads(json.dumps(quoted.to_dict()))) == quoted
    for shown in (str(quoted), quoted._repr_html_()):
        assert "risk of m" in shown
        assert quoted.null_risks["a"] in shown
    # each of two cells has half of ε and is calibrated to additions and removals, which medians survive twice as well
    (by_region,) = quote("region, MEDIAN(income)", "GROUP BY region").null_risks.values()
    assert "about 103 values" in by_region
    (added,) = quote("MEDIAN(income)", neighbours="add-remove").null_risks.values()
    assert "about 50 values" in added


def test_sums_of_a_column_without_bounds_at_every_level() -> None:
    for options in ({"protection": "individual"}, {"protection": "group", "group": 3}):
        (risk,) = quote("SUM(income)", "WHERE age > 40", **options).null_risks.values()
        assert risk == (
            "NULL or far off where fewer than about 112 values other than 0 are selected; twice the ε takes half as "
            "many, declared bounds none"
        )

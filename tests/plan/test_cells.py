"""Groups of columns that hold truth."""

from __future__ import annotations

from typing import Any

from idios.party import TrustedParty


def test_booleans_are_groups_of_false_and_true() -> None:
    working = [True] * 30 + [False] * 50 + [None] * 20
    columns: dict[str, Any] = {
        "working": "boolean",
        "age": {"type": "integer", "bounds": [0, 120]},
        "adult": {"expression": "age >= 18"},
    }
    with TrustedParty.open(
        {"working": working, "age": [10] * 40 + [50] * 60}, name="people", columns=columns, budget=9000
    ) as party:
        asked = party.query("SELECT working, COUNT(*) AS n FROM people GROUP BY working", epsilon=1000)
        assert asked.rows == ({"working": False, "n": 50}, {"working": True, "n": 30})
        assert asked.types == {"working": "boolean", "n": "integer"}
        same = party.query("SELECT BIN(working, 1) AS w, COUNT(*) AS n FROM people GROUP BY w", epsilon=1000)
        assert (same.stored, same.rows) == (True, ({"w": 0, "n": 50}, {"w": 1, "n": 30}))
        for computed in (
            "SELECT working AS w, COUNT(*) AS n FROM people GROUP BY 1 HAVING working",
            "SELECT * FROM (SELECT working AS w, COUNT(*) AS n FROM people GROUP BY w) WHERE NOT w IS FALSE",
            "SELECT working AS w, COUNT(*) AS n FROM people GROUP BY working ORDER BY w DESC LIMIT 1",
        ):
            shown = party.query(computed, epsilon=1000)
            assert (shown.stored, shown.rows) == (True, ({"w": True, "n": 30},)), computed
        derived = party.query("SELECT adult, COUNT(*) AS n FROM people WHERE NOT working GROUP BY adult", epsilon=1000)
        assert derived.rows == ({"adult": False, "n": 10}, {"adult": True, "n": 40})
        one = party.query(
            "SELECT working, COUNT(*) AS n FROM people WHERE working = TRUE GROUP BY working", epsilon=1000
        )
        assert one.rows == ({"working": True, "n": 30},)


def test_people_are_grouped_by_booleans_of_theirs() -> None:
    rows = {"who": [i % 100 for i in range(300)], "late": [i % 100 < 30 for i in range(300)]}
    asked = "SELECT ever, COUNT(*) AS n FROM (SELECT BOOL_OR(late) AS ever FROM bills GROUP BY who) GROUP BY ever"
    by_row = "SELECT late AS ever, COUNT(*) AS n FROM bills GROUP BY late"
    for several, sql in (({}, asked), ({"rows": 1}, by_row)):
        declared: dict[str, Any] = {"columns": {"late": {"type": "boolean", "nullable": False}}, **several}
        with TrustedParty.open(rows, name="bills", unit="who", budget=9000, **declared) as party:
            assert party.query(sql, epsilon=1000).rows == ({"ever": False, "n": 70}, {"ever": True, "n": 30})

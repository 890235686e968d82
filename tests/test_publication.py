"""What a published answer says of itself, and that nobody reads in it what another analyst wrote."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest

from idios.cli.ledger import EXPORTED, format_csv, format_json
from idios.party import TrustedParty

COLUMNS = {
    "age": {"type": "integer", "bounds": [0, 120], "nullable": False},
    "region": {"type": "category", "values": ["north", "south"], "nullable": False},
}
HERS = 'SELECT region AS "her hunch", MEDIAN(age) AS mayor, COUNT(*) AS "secret n" FROM people GROUP BY region'
HIS = "select count(*), region, median(age) from people where age >= 0 group by region"


@pytest.fixture
def party() -> Iterator[TrustedParty]:
    rng = np.random.default_rng(5)
    rows = {"age": rng.integers(18, 90, 2000), "region": rng.choice(["north", "south"], 2000)}
    options = {"version": "2026-11", "protection": "differential"}
    with TrustedParty.open(rows, name="people", columns=COLUMNS, budget=10, **options) as opened:
        for name in ("ada", "bob"):
            opened.ledger.add_analyst(name)
            opened.ledger.grant(name, "people")
        yield opened


def test_an_answer_says_what_was_asked_of_what_when_and_where_it_is_recorded(party: TrustedParty) -> None:
    answer = party.query(HERS, 4, analyst="ada")
    [stored] = party.ledger.answers("people")
    assert answer.question == "number of records and median of age, by region"
    assert answer.sql == HERS
    assert (answer.dataset, answer.version) == ("people", "2026-11")
    assert (answer.time, answer.sequence) == (stored.time, stored.sequence)
    written = answer.to_csv(metadata=True) or ""
    for told in (answer.question, HERS, "2026-11", str(answer.guarantee), stored.time, f"# entry: {stored.sequence}"):
        assert told in written
    assert party.sandbox(HERS, 4).sequence is None


def test_the_same_answer_is_in_the_second_analysts_own_words(party: TrustedParty) -> None:
    first, second = party.query(HERS, 4, analyst="ada"), party.query(HIS, 4, analyst="bob")
    assert second.stored
    assert second.sql == HIS
    assert (second.question, second.sequence, second.time) == (first.question, first.sequence, first.time)
    assert [row["median(age)"] for row in second.rows] == [row["mayor"] for row in first.rows]
    [listed] = party.ledger.answers("people", "bob")
    for shown in (second.to_json(), str(listed.released), listed.text):
        for hers in ("hunch", "mayor", "secret"):
            assert hers not in shown
    assert set(listed.table.statistics) == {"COUNT(*)", "MEDIAN(age)"}
    assert listed.table.groups == ({"region": "north"}, {"region": "south"})


def test_the_ledger_holds_nobodys_words(party: TrustedParty) -> None:
    party.query(HERS, 4, analyst="ada")
    entries = "".join(entry.payload for entry in party.ledger.entries())
    for hers in ("hunch", "mayor", "secret"):
        assert hers not in entries
        assert hers not in format_csv(party.ledger.answers()) + format_json(party.ledger.answers())


def test_the_controllers_export_has_a_row_for_each_value(party: TrustedParty) -> None:
    answer = party.query(HERS, 4, analyst="ada")
    lines = format_csv(party.ledger.answers()).splitlines()
    rows = [dict(zip(EXPORTED, line.split(","), strict=False)) for line in lines[1:]]
    assert lines[0].split(",") == list(EXPORTED)
    assert len(rows) == 4
    assert {row["statistic"] for row in rows} == {"COUNT(*)", "MEDIAN(age)"}
    text = "\n".join(lines)
    assert '"number of records, by region"' in text
    assert '"median of age, by region"' in text
    for row in answer.interval_rows:
        low, high = row["secret n"]
        assert f'{low},{high},"noise, 95 %",' in text
        assert Fraction(low) < Fraction(high)
    assert all(line.endswith(f",{answer.sequence}") for line in lines[1:])
    assert '"question": "number of records and median of age, by region"' in format_json(party.ledger.answers())


def test_bins_are_named_by_their_width(party: TrustedParty) -> None:
    party.query("SELECT BIN(age, 60) AS mine, COUNT(*) FROM people GROUP BY BIN(age, 60)", 1)
    [stored] = party.ledger.answers("people")
    assert [list(group) for group in stored.table.groups] == [["BIN(age, 60)"]] * 3

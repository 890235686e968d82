"""What is said where a literal, or the column that it is compared with, is written as in an office and not in SQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from idios.errors import QuestionRefused
from idios.party import TrustedParty

COLUMNS = {
    "education": {"values": ["school", "degree"]},
    "children": {"values": [0, 1, 2]},
    "share": {"values": ["0.5", "1.5"]},
    "sex": {"values": {1: "male", 2: "female"}},
    "income": {"type": "number"},
    "working": {"type": "boolean"},
    "rooms": {"type": "integer"},
    "day": {"type": "date"},
}
REFUSED = [
    ("COUNT(*) FROM people WHERE education = 'n/a'", "'n/a' is NULL in the file: write education IS NULL (line 1"),
    ("COUNT(*) FROM people WHERE education = 'na'", "'na' is no declared value of education"),
    ("COUNT(*) FROM people WHERE income > 1,500", "A number is written without marks for thousands"),
    ("COUNT(*) FROM people WHERE income > 1.500,75 AND sex = 1", "A number is written without marks for thousands"),
    ("COUNT(*) FROM people WHERE income BETWEEN 1,500 AND 2,500", "A number is written without marks for thousands"),
    ("ROUND(AVG(income),500) FROM people people people", "A name that is also an SQL word"),
    ("AVG(children) FROM people", 'its controller declares children = { type = "integer" } (line 1'),
    ("AVG(share) FROM people", 'its controller declares share = { type = "number" } (line 1'),
    ("AVG(sex) FROM people", "sex is a category (line 1"),
    ("AVG(education) FROM people", "education is a category (line 1"),
    ("COUNT(*) FROM people WHERE day > '1.2.2022'", "compare it with DATE '2022-02-01' (line 1"),
    ("COUNT(*) FROM people WHERE day > DATE '01.02.2022'", "write DATE '2022-02-01' (line 1"),
    ("COUNT(*) FROM people WHERE day > '01.13.2022'", "compare it with DATE '2026-01-31' or TIMESTAMP"),
    ("MODE(income) FROM people", "income is a number (line 1"),
    (
        "COUNT(*) FROM people WHERE working = 'true'",
        "working holds truth: compare it with TRUE or FALSE, written without",
    ),
    ("COUNT(*) FROM people WHERE rooms", "more than 0 and 1: compare it with a constant; truth is declared by its con"),
    ("COUNT(*) FROM people GROUP BY rooms", 'rooms = { values = [1, 2] }, and truth as { type = "boolean" } (line 1'),
    ("COUNT(*) FROM people WHERE education", "with one of its values, such as education = 'school' (line 1"),
]


@pytest.fixture(scope="module")
def party(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TrustedParty]:
    path: Path = tmp_path_factory.mktemp("office") / "people.csv"
    path.write_text(
        f"{';'.join(COLUMNS)}\n" + "school;1;0.5;1;3.5;true;3;2026-01-01\nn/a;2;1.5;2;4.5;false;4;2026-01-02\n" * 20
    )
    csv = {"delimiter": ";", "nulls": ["n/a"]}
    with TrustedParty.open(path, columns=COLUMNS, csv=csv, budget=1, protection="differential") as opened:
        yield opened


@pytest.mark.parametrize(("question", "told"), REFUSED)
def test_what_is_written_otherwise_is_refused_with_how_to_write_it(
    party: TrustedParty, question: str, told: str
) -> None:
    with pytest.raises(QuestionRefused) as refused:
        party.query(f"SELECT {question}", epsilon=1)
    assert told in str(refused.value)

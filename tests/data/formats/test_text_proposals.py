"""What fields of text seem to be: numbers with words among them, dates by their format, marks of thousands, headers."""

from __future__ import annotations

from pathlib import Path

import pytest

from idios.core.domain import Kind
from idios.data.formats.csv_proposal import propose_format
from idios.data.formats.text_proposals import MOST_CODES, MOST_WORDS, RARE, WORDS_AMONG, is_no_answer, propose_reading
from idios.errors import SourceError

AGES = {str(age): 5 for age in range(20, 70)}
SIZE = sum(AGES.values())


def test_words_among_numbers() -> None:
    """As many as the rules say, and not one more."""
    for word in ("k.A.", "K.A.", "n/a", "-", "don't know", "Keine Angabe", "ns/nc"):
        assert is_no_answer(word)
        reading = propose_reading({**AGES, word: 10 * SIZE})
        assert (reading.kind, reading.words) == (Kind.INTEGER, {word})
    most = SIZE // (WORDS_AMONG - 1)
    assert propose_reading({**AGES, "x": most}).kind is Kind.INTEGER
    assert propose_reading({**AGES, "x": most + 1}).kind is Kind.CATEGORY
    words = {f"word {i}": 1 for i in range(MOST_WORDS)}
    assert propose_reading({**AGES, **words}).words == set(words)
    assert propose_reading({**AGES, **words, "one more": 1}).kind is Kind.CATEGORY
    codes = {str(code): 100 for code in range(MOST_CODES)}
    assert propose_reading({**codes, "d": 10}).kind is Kind.CATEGORY  # another code
    assert propose_reading({**codes, str(MOST_CODES): 100, "d": 10}).kind is Kind.INTEGER
    assert propose_reading({**codes, "n/a": 10}).kind is Kind.INTEGER
    assert propose_reading({"n/a": 10, "-": 5}).kind is Kind.CATEGORY
    # a number of another kind is no word
    assert propose_reading({**AGES, "1.5": 1}).kind is Kind.NUMBER
    assert propose_reading({**AGES, "2024-01-31": 1}).kind is Kind.CATEGORY


@pytest.mark.parametrize(
    ("fields", "formats"),
    [
        (["22.01.1996", "1.12.2001", "05.05.1950"], ["%d.%m.%Y"]),
        (["01/22/1996", "12/01/2001"], ["%m/%d/%Y"]),
        (["22/01/1996", "12/01/2001"], ["%d/%m/%Y"]),
        (["11/01/1996", "12/01/2001"], ["%d/%m/%Y", "%m/%d/%Y"]),
        (["22-01-96", "1-2-03"], ["%d-%m-%y"]),
        (["22.01.1996 12:30", "1.2.2001 0:15"], ["%d.%m.%Y %H:%M"]),
        (["1/22/1996 3:45 PM", "1/2/1996 12:00 am"], ["%m/%d/%Y %I:%M %p"]),
        (["22-Jan-1996", "03-MAY-2001"], ["%d-%b-%Y"]),
        (["4 May 2001", "5 May 2001"], ["%d %b %Y"]),
        (["22/01/1996", "01/22/1996"], []),
        (["22.01.1996", "01/22/1996"], []),
        (["31.02.1996", "30.02.1996"], []),
        (["22.01.1996", "a house"], []),
    ],
)
def test_formats_of_dates(fields: list[str], formats: list[str]) -> None:
    reading = propose_reading(dict.fromkeys(fields, 50))
    assert list(reading.formats) == formats
    timed = any(":" in format for format in formats)
    assert reading.kind is (Kind.TIMESTAMP if timed else Kind.DATE if formats else Kind.CATEGORY)
    with_words = propose_reading({**dict.fromkeys(fields, 50), "k.A.": 500})
    assert with_words.formats == reading.formats


def propose(tmp_path: Path, *columns: list[str], delimiter: str = ";", names: bool = True) -> tuple[str, str]:
    """The decimal mark and that of thousands which are proposed for a file of some columns, beside one of text."""
    columns = (*columns, ["text"] * len(columns[0]))
    records = [
        [f'"{field}"' if delimiter in field else field for field in record] for record in zip(*columns, strict=True)
    ]
    lines = [[f"name{i}" for i in range(len(columns))], *records] if names else records
    path = tmp_path / "marks.csv"
    path.write_text("\n".join(delimiter.join(line) for line in lines), encoding="utf-8")
    proposed = propose_format(path)
    assert proposed.header == names
    return proposed.decimal, proposed.thousands


def test_marks_of_thousands(tmp_path: Path) -> None:
    """Where they are certain, and nothing speaks against them."""
    assert propose(tmp_path, ["1.234,50", "12,25", "7"]) == (",", ".")
    assert propose(tmp_path, ["1,234.50", "12.25", "7"]) == (".", ",")
    assert propose(tmp_path, ["1.234.567", "123.456", "7"]) == (",", ".")
    assert propose(tmp_path, ["1 234,50", "12", "7"]) == (",", " ")
    assert propose(tmp_path, ["1\u202f234\u202f567", "12", "7"], ["1,5", "2,5", "3"]) == (",", " ")
    assert propose(tmp_path, ["1'234.50", "12", "7"]) == (".", "'")
    assert propose(tmp_path, ["1,234.50", "12,000", "7"], delimiter=",") == (".", ",")
    assert propose(tmp_path, ["17.000", "4.500", "k.A."], ["1.234,50", "1", "2"]) == (",", ".")
    # not certain
    assert propose(tmp_path, ["17.000", "4.500", "7"]) == (".", "")
    assert propose(tmp_path, ["17,000", "4,500", "7"]) == (",", "")
    assert propose(tmp_path, ["1 234", "4 500", "7"], ["1", "2", "3"]) == (".", "")
    # three digits are not everywhere, or another column has decimal points
    assert propose(tmp_path, ["1.234.56", "1.234.567", "7"], ["1", "2", "3"]) == (".", "")
    assert propose(tmp_path, ["1.234.567", "1.234.568", "7"], ["1.25", "2.5", "3"]) == (".", "")


def test_no_record_becomes_a_name(tmp_path: Path) -> None:
    """Whatever numbers and dates look like in it."""
    assert propose(tmp_path, ["1.234,50", "12,25", "7"], ["a", "b", "c"], names=False)
    assert propose(tmp_path, ["22.01.1996", "23.02.1997"], ["a", "b"], names=False)
    assert propose(tmp_path, ["22.01.1996", "23.02.1997"], ["a", "b"])
    for first in ("n/a", "x"):
        with pytest.raises(SourceError, match="cannot be told"):
            propose(tmp_path, [first, *AGES, "x"], names=False)


def test_words_that_mean_missing_in_a_file(tmp_path: Path) -> None:
    """Usual ones, and others that are not rare and no value of a column of text."""
    path = tmp_path / "words.csv"
    ages = list(AGES) * 5
    for word, times, text, nulls in (
        ("n/a", 1, "north", ("n/a",)),
        ("refused", RARE - 1, "north", ()),
        ("refused", RARE, "refused", ("refused",)),
        ("x", RARE, "north", ("x",)),
        ("x", RARE - 1, "north", ()),
        ("x", RARE, "x", ()),
    ):
        path.write_text("\n".join(["age;region", *(f"{age};{text}" for age in [*ages, *[word] * times])]))
        assert propose_format(path).nulls == nulls

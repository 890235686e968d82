"""CSV files: what is written comes back record by record, whatever the records say, or the file is refused."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import idios.data.formats.csv as reader
from idios.core.domain import Kind
from idios.core.statistics import Count, KthSmallest, Mode
from idios.data.backend import CsvFormat, describe_source, open_source
from idios.data.formats.csv import CsvFile
from idios.data.formats.csv_proposal import propose_format
from idios.errors import InvalidInput, SourceError
from tests.conformance.plans import category, dataset, number, of_kind, plan, whole
from tests.conformance.reference import Table
from tests.conformance.test_statistics import same


def written(records: list[list[str]], ending: str = "\r\n") -> str:
    """The file that RFC 4180 makes of some records: a field with a comma, a quote or an end of line is quoted."""

    def field(text: str) -> str:
        return '"' + text.replace('"', '""') + '"' if set(text) & set(',"\r\n') else text

    return "".join(",".join(map(field, record)) + ending for record in records)


def read(path: Path, format: CsvFormat | None = None, wanted: list[str] | None = None) -> list[tuple[str | None, ...]]:
    format = format or CsvFormat()
    file = CsvFile(path, format)
    names = file.read_names()
    pieces = list(file.read_records(names, wanted or names))
    return [tuple(record.values()) for piece in pieces for record in piece.to_pylist()]


# what a Unicode file can hold: everything but halves of surrogate pairs
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.text("\"',;\t\\\r\n a", max_size=8)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("csv")


@given(st.integers(1, 4).flatmap(lambda width: st.lists(st.lists(texts, min_size=width, max_size=width), max_size=8)))
def test_every_record_comes_back_as_it_was_written(folder: Path, records: list[list[str]]) -> None:
    width = len(records[0]) if records else 1
    names = [f"c{i}" for i in range(width)]
    path = folder / "any.csv"
    for ending, final in (("\r\n", True), ("\n", False)):
        text = written([names, *records], ending)
        # an empty line that does not end is no line
        path.write_bytes((text if final or width == 1 else text.removesuffix(ending)).encode())
        assert read(path) == [tuple(field or None for field in record) for record in records]


def test_where_a_block_ends_makes_no_difference(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Quotes, ends of lines and characters of several bytes on both sides of it, and blocks in which no record ends."""
    draw, path, refused = random.Random(24), folder / "blocks.csv", 0
    for _ in range(600):
        monkeypatch.setattr(reader, "BLOCK", draw.randrange(24, 60))
        width = draw.randrange(1, 3)
        fields = [["".join(draw.choice([*SPICES, "a"]) for _ in range(draw.randrange(8))) for _ in range(width)]]
        fields += [[draw.choice(["a", "b\r\nc", "", "日本"]) for _ in range(width)] for _ in range(draw.randrange(12))]
        draw.shuffle(fields)
        names = [f"c{i}" for i in range(width)]
        path.write_bytes(written([names, *fields], draw.choice(["\r\n", "\n"])).encode())
        try:
            assert read(path) == [tuple(field or None for field in record) for record in fields]
        except SourceError:  # a record longer than a block
            refused += 1
    assert refused < 300


SPICES = [
    '"',
    '""',
    "'",
    "\\",
    '\\"',
    ",",
    ";",
    "\t",
    "|",
    "\r",
    "\n",
    "\r\n",
    "#",
    " ",
    "",
    "NULL",
    "\ufeff",
    "é",
    "日本",
    "\0",
]


@pytest.mark.slow
def test_one_record_of_an_undeclared_column_changes_no_other(folder: Path) -> None:
    """4,000 pairs of files that differ in one record: as many rows, and the declared fields as they were."""
    draw = random.Random(58)

    def field() -> str:
        return "".join(draw.choice([*SPICES, "a", "7"]) for _ in range(draw.randrange(6)))

    path = folder / "pair.csv"
    for _ in range(4_000):
        rows = draw.randrange(1, 12)
        records = [["id", "note"], *([str(i), field()] for i in range(rows))]
        changed = [*records]
        changed[1 + draw.randrange(rows)][1] = field()
        for one in (records, changed):
            path.write_bytes(written(one).encode())
            assert read(path, wanted=["id"]) == [(str(i),) for i in range(rows)]


MALFORMED = {
    "too many fields": ("n,x,c\n" + "1,2,a\n" * 30_000 + "3,4,a,secret\n", "line 30,002 has 4 fields and not 3"),
    "too few fields": ("n,x,c\n1,2,a\nsecret,4\n", "line 3 has 2 fields and not 3"),
    "a header that is too short": ("n,x\n1,2,secret\n", "has 3 fields and not 2"),
    "a quote that is never closed": ('n,x,c\n1,2,a\n3,4,"secret\n', "never closed"),
    "one that is never closed in a column that nobody asks about": (
        'n,x,c,d\n1,2,a,b\n3,4,a,"secret\n5,6,a,b\n',
        "quote",
    ),
    "no text": (b"n,x,c\n1,2,secret\xff\n", "not utf-8: declare its encoding"),
    "half a character at the end": ("n,x,c\n1,2,é".encode()[:-1], "not utf-8"),
    "nothing": ("", "is empty"),
    "two columns of one name": ("n,x,c,c\n1,2,a,b\n", "has 2 columns 'c'"),
    "a column that is not there": ("n,x\n1,2\n", "has no column 'c' among its 2$"),
    "a column that is called otherwise": (
        "n,X,secret\n1,2,a\n",
        "has no column 'x', 'c' among its 3. Did you mean 'X'?",
    ),
    "another delimiter": ("n;x;c\n1;2;a\n", "among its 1. Of a csv file, declare its delimiter"),
    "a record where a header should be": ("secret,4711\n1,2\n", "if the file has no header"),
    "an endless record": ('n,x,c\n1,2,"' + "secret\n" * 3_000_000, "never closed"),
}


@pytest.mark.parametrize("kind", MALFORMED)
def test_a_malformed_file_is_refused_as_a_whole_when_it_is_opened(tmp_path: Path, kind: str) -> None:
    content, message = MALFORMED[kind]
    path = tmp_path / "malformed.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    data = dataset(whole("n"), number("x", "0.5"), category("c", "a"))
    with pytest.raises(SourceError, match=message) as raised:
        open_source(path, data)
    assert "secret" not in str(raised.value)


def test_a_declared_format(tmp_path: Path) -> None:
    path = tmp_path / "declared.csv"
    path.write_bytes("1;1,5;'Zürich; \\'x'\nNA;1.5;.\n 3 ;-,25;Zürich\n;.;NA\n".encode("cp1252"))
    format = CsvFormat.declare(
        {
            "delimiter": ";",
            "decimal": ",",
            "quote": "'",
            "escape": "\\",
            "header": False,
            "encoding": "cp1252",
            "nulls": ["NA", "."],
        }
    )
    data = dataset(
        whole("column1"), of_kind(Kind.DECIMAL, "column2", "0.25"), category("column3", "Zürich", "Zürich; 'x")
    )
    table: Table = {
        "column1": [1, None, 3, None],
        "column2": [1.5, None, -0.25, None],
        "column3": ["Zürich; 'x", None, "Zürich", None],
    }
    with open_source(path, data, csv_format=format) as backend:
        same(backend, plan(data, (KthSmallest(1), "column1"), (KthSmallest(1), "column2"), distance=4), table)
        same(backend, plan(data, (Mode(), "column3"), (Count(), None)), table)
        assert [c.missing for c in backend.check().columns] == [2, 1, 2]
    for encoding in ("utf-16", "utf-8-sig", "utf-32"):
        path.write_bytes("n\n7\n".encode(encoding))
        data = dataset(whole("n"))
        with open_source(path, data, csv_format=CsvFormat(encoding=encoding)) as backend:
            same(backend, plan(data, (KthSmallest(1), "n")), {"n": [7]})


REFUSED = [
    ({"delimeter": ";"}, "'delimeter' is not known"),
    ({"delimiter": ""}, "delimiter must be one ASCII character"),
    ({"delimiter": "::"}, "delimiter must be one ASCII character"),
    ({"quote": "«"}, "quote must be one ASCII character"),
    ({"escape": "\n"}, "escape must be one ASCII character"),
    ({"delimiter": "\0"}, "delimiter must be one ASCII character"),
    ({"delimiter": "a"}, "no letter, digit or end of line"),
    ({"escape": "7"}, "no letter, digit or end of line"),
    ({"encoding": "undefined"}, "no text encoding"),
    ({"delimiter": '"'}, "must differ"),
    ({"decimal": ";"}, "decimal must be"),
    ({"header": "yes"}, "header must be true or false"),
    ({"encoding": "klingon"}, "no text encoding 'klingon'"),
    ({"encoding": "base64"}, "no text encoding 'base64'"),
    ({"nulls": "NA"}, "nulls must be a list"),
    ({"nulls": [9]}, "nulls must be a list"),
]


@pytest.mark.parametrize(("given", "message"), REFUSED)
def test_a_format_that_cannot_be_is_refused(given: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        CsvFormat.declare(given)


def test_numbers_too_long_for_any_type_read_as_the_ends_of_the_grid(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    digits = ["1" + "0" * 60, "-" + "9" * 4_000, "0" * 100 + "5", "7" * 38]
    path.write_text("n\n" + "\n".join(digits) + "\n")
    data = dataset(whole("n"))
    with open_source(path, data) as backend:
        same(backend, plan(data, (KthSmallest(1), "n"), distance=4), {"n": [int(text) for text in digits]})
        assert [c.too_far for c in backend.check().columns] == [3]


PROPOSED = {
    "plain": ("id,income,when\n1,2.5,2024-01-31\n2,,2024-02-01\n", ",", True, ["id", "income", "when"]),
    "semicolons and decimal commas": ("id;x\n1;2,5\n2;3,25\n", ";", True, ["id", "x"]),
    "tabs": ("id\tname\n1\tAda\n2\tBo, Al\n", "\t", True, ["id", "name"]),
    "no header": ("Ada,41,1990-01-31\nBo,35,1988-01-01\n", ",", False, ["column1", "column2", "column3"]),
    "no header, text and numbers": ("Ada,41\nBo,35\n", ",", False, ["column1", "column2"]),
    "one column": ("income\n5\n7\n", ",", True, ["income"]),
    "quoted": ('"a b","c\nd"\n1,"x, y"\n2,z\n', ",", True, ["a b", "c\nd"]),
}


@pytest.mark.parametrize("kind", PROPOSED)
def test_a_proposal(tmp_path: Path, kind: str) -> None:
    content, delimiter, header, names = PROPOSED[kind]
    path = tmp_path / "proposed.csv"
    path.write_text(content)
    format = propose_format(path)
    assert (format.delimiter, format.header) == (delimiter, header)
    assert [name for name, *_ in describe_source(path, format)] == names


def test_the_kinds_of_a_proposal(tmp_path: Path) -> None:
    path = tmp_path / "kinds.csv"
    path.write_text(
        "i;x;d;t;b;c;e\n1;1,5;2024-01-31;2024-01-31 10:00;true;a;\n-2;3;2024-02-01;2024-02-01T11:00Z;false;1x;\n"
    )
    format = propose_format(path)
    assert format.decimal == ","
    kinds = [kind for _, kind, _ in describe_source(path, format)]
    assert kinds == [Kind.INTEGER, Kind.NUMBER, Kind.DATE, Kind.TIMESTAMP, Kind.CATEGORY, Kind.CATEGORY, Kind.CATEGORY]


def test_a_first_line_that_may_be_a_record_is_asked_about(tmp_path: Path) -> None:
    path = tmp_path / "texts.csv"
    path.write_text("Ada,north\nBo,south\n")
    with pytest.raises(SourceError, match="--header or --no-header") as raised:
        propose_format(path)
    assert "Ada" not in str(raised.value)
    format = propose_format(path, header=False)
    assert [name for name, *_ in describe_source(path, format)] == ["column1", "column2"]


def test_columns_that_differ_in_their_capitals(tmp_path: Path) -> None:
    path = tmp_path / "capitals.csv"
    path.write_text("a,A\n1,20\n3,40\n")
    data = dataset(whole("a"), whole("A"))
    with open_source(path, data) as backend:
        same(
            backend, plan(data, (KthSmallest(1), "a"), (KthSmallest(1), "A"), distance=2), {"a": [1, 3], "A": [20, 40]}
        )


@pytest.mark.parametrize("content", ["n", "n\n", "n\r\n", "\ufeffn"])
def test_a_header_alone(tmp_path: Path, content: str) -> None:
    path = tmp_path / "header.csv"
    path.write_text(content, newline="")
    with open_source(path, dataset(whole("n"))) as backend:
        assert backend.rows() == 0


def test_a_proposal_looks_at_whole_records(tmp_path: Path) -> None:
    """The last one that is read may be cut off; and only CR and LF end a line."""
    path = tmp_path / "cut.csv"
    path.write_text("n,t\n" + '1,"a\nb\u2028c\x0b"\n' * 20_000)
    assert propose_format(path).delimiter == ","
    assert describe_source(path)[0] == ("n", Kind.INTEGER, 0)


def test_a_proposal_of_another_encoding(tmp_path: Path) -> None:
    path = tmp_path / "old.csv"
    for encoding in ("latin-1", "utf-16", "utf-8"):
        path.write_bytes("Straße,n\nHöhe,5\n".encode(encoding))
        format = propose_format(path)
        assert format.encoding == encoding
        assert describe_source(path, format)[0][0] == "Straße"
    for late, encoding in (("é", "latin-1"), ("é", "utf-8"), ("€", "cp1252")):
        path.write_bytes(b"name,n\n" + b"Muller,5\n" * 50_000 + f"{late},5\n".encode(encoding) * 20)
        assert propose_format(path).encoding == encoding


def test_a_proposal_of_a_file_whose_lines_do_not_fit(tmp_path: Path) -> None:
    path = tmp_path / "ragged.csv"
    path.write_text("a,b\n1,2,3\n4;5\n")
    with pytest.raises(SourceError, match="different numbers of fields"):
        propose_format(path)
    lines = ["name,age", *["Ada,36"] * 40]
    for wrong, told in (
        ([*lines, "Bo,4,1", *lines], "',', line 42 has 3 fields and most have 2"),
        (["People 2024", "", *lines], "',', line 1 has 1 field and most have 2"),
        ([*lines, "", "Source: a survey"], "',', line 43 has 1 field and most have 2"),
        (['"name\n",age', *lines, "Bo;4,1,1"], "',', line 44 has 3 fields and most have 2"),
        ([line.replace(",", ";") for line in [*lines, "Bo", *lines]], "';', line 42 has 1 field and most have 2"),
    ):
        path.write_text("\n".join(wrong) + "\n")
        with pytest.raises(SourceError, match=re.escape(f"divided by {told}")) as raised:
            propose_format(path)
        assert "Bo" not in str(raised.value)

"""Values that are declared to mean "missing": every engine reads them as NULL, and nothing beside them."""

from __future__ import annotations

import datetime
import random
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pytest

from idios import TrustedParty
from idios.core.statistics import Count, KthLargest, KthSmallest, Median, Mode
from idios.data.backend import open_source
from idios.declare.declared_columns import read_column
from idios.errors import InvalidInput, SourceError
from idios.expressions.predicates import Among
from tests.conformance.engines import Engine
from tests.conformance.plans import by, dataset, plan, whole
from tests.conformance.reference import Table
from tests.conformance.test_statistics import same

DAY, MOMENT = datetime.date, datetime.datetime
COLUMNS = {
    "n": read_column("n", {"type": "integer", "bounds": [0, 120], "missing": [99, 999, 7.5]}),
    "coarse": read_column("coarse", {"type": "integer", "step": 10, "missing": [99]}),
    "x": read_column("x", {"type": "number", "step": 0.5, "missing": [-1, "99.9"]}),
    "single": read_column("single", {"type": "number", "step": 0.5, "missing": ["99.9"]}),
    "money": read_column("money", {"type": "decimal", "decimals": 2, "missing": ["99.99", "0.001"]}),
    "sex": read_column("sex", {"type": "category", "values": [1, 2], "missing": [9]}),
    "code": read_column("code", {"values": {1: "yes", 2: "no"}, "missing": [9, -1]}),
    "region": read_column("region", {"type": "category", "values": ["a", "it's"], "missing": ["k. A.", "don't know"]}),
    "day": read_column("day", {"type": "date", "missing": [DAY(9999, 12, 31)]}),
    "moment": read_column("moment", {"type": "timestamp", "missing": [MOMENT(1900, 1, 1)]}),
    "must": read_column("must", {"type": "integer", "bounds": [1, 5], "nullable": False, "missing": [9]}),
    "plain": whole("plain", (0, 9)),
}
TYPES = {
    "n": pa.int16(),
    "coarse": pa.int64(),
    "x": pa.float64(),
    "single": pa.float32(),
    "money": pa.decimal128(12, 2),
    "sex": pa.int32(),
    "code": pa.float64(),
    "region": pa.string(),
    "day": pa.date32(),
    "moment": pa.timestamp("us"),
    "must": pa.int64(),
    "plain": pa.int64(),
}
HELD: dict[str, list[object]] = {
    "n": [99, 7, 999, 98, None, 100, 0, 120],
    "coarse": [99, 98, 100, 95, 104, 5, None, -99],
    "x": [-1.0, 99.9, 99.8, 0.0, None, 1.5, -1.5, float("nan")],
    "single": [1.5, 99.9, 99.5, 0.0, None, 1.5, -1.5, 2.0],
    "money": [Decimal("99.99"), Decimal("99.98"), Decimal("0.00"), None, Decimal("-99.99"), Decimal(1), *(None,) * 2],
    "sex": [9, 1, 2, 1, 99, None, 9, 2],
    "code": [9.0, 1.0, -1.0, 2.0, None, 1.5, float("nan"), 9.5],
    "region": ["a", "k. A.", "it's", "don't know", "other", None, "a", "K. A."],
    "day": [DAY(9999, 12, 31), DAY(2020, 1, 1), DAY(9999, 12, 30), None, *(DAY(1970, 1, 1),) * 4],
    "moment": [MOMENT(1900, 1, 1), MOMENT(1900, 1, 1, 0, 0, 0, 1), None, *(MOMENT(1970, 1, 2),) * 5],
    "must": [9, 1, 2, 3, 9, 4, 5, None],
    "plain": list(range(8)),
}
SENTINELS: dict[str, set[object]] = {
    "n": {99, 999},
    "coarse": {99},
    "x": {-1.0, 99.9},
    "single": {99.9},
    "money": {Decimal("99.99")},
    "sex": {9},
    "code": {9.0, -1.0},
    "region": {"k. A.", "don't know"},
    "day": {DAY(9999, 12, 31)},
    "moment": {MOMENT(1900, 1, 1)},
    "must": {9},
}
KNOWN: Table = {
    name: [None if value in SENTINELS.get(name, ()) else value for value in values] for name, values in HELD.items()
} | {"code": [None, "1", None, "2", None, "1.5", "nan", "9.5"]}
NUMERIC = [name for name in HELD if name not in ("sex", "code", "region")]
DATA = dataset(*COLUMNS.values())


def test_sentinels_are_null_before_anything_else(engine: Engine) -> None:
    with engine.open(pa.table(HELD, schema=pa.schema(list(TYPES.items()))), DATA) as backend:
        asked = [(KthSmallest(1), name) for name in NUMERIC]
        same(backend, plan(DATA, *asked, (Mode(), "sex"), (Mode(), "code"), (Mode(), "region"), distance=8), KNOWN)
        same(backend, plan(DATA, (Count(), "n"), where=Among("region", ((0, 0),), nulls=True)), KNOWN)
        same(backend, plan(DATA, (Count(), None), where=Among("n", ((98, 120),))), KNOWN)
        same(backend, plan(DATA, (Median(), "plain"), where=Among("x", (), nulls=True)), KNOWN)
        same(backend, plan(DATA, (Count(), None), (Median(), "n"), groups=[by(COLUMNS["sex"])]), KNOWN)
        report = {column.name: column for column in backend.check().columns}
    assert {name: report[name].missing for name in KNOWN} == {name: list(KNOWN[name]).count(None) for name in KNOWN}
    assert report["must"].nulls == 3


@pytest.mark.slow
def test_large_tables_too(quick_engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are sampled, and the sample knows of sentinels or is not trusted."""
    draw = random.Random(19)
    held = {"n": [draw.choice([99, draw.randrange(99)]) for _ in range(60_000)], "x": [*range(60_000)]}
    known: Table = {"n": [None if value == 99 else value for value in held["n"]], "x": held["x"]}
    data = dataset(replace(COLUMNS["n"], missing=(Fraction(99),)), whole("x"))
    sources = [quick_engine.keep(pa.table(held))]
    if str(quick_engine) == "duckdb":  # tables that are not copied
        with duckdb.connect(str(tmp_path / "people.duckdb")) as connection:
            connection.register("frame", pa.table(held))
            connection.execute("CREATE TABLE people AS SELECT * FROM frame")
        monkeypatch.setattr("idios.data.engines.duckdb.KEPT", 0)
        sources += [pa.table(held), str(tmp_path / "people.duckdb"), quick_engine.keep(pa.table(held))]
    for source in sources:
        with open_source(source, data) as backend:
            same(backend, plan(data, (Median(), "n"), (KthLargest(2), "n"), (Median(), "x")), known)
            same(backend, plan(data, (Median(), "x"), where=Among("n", (), nulls=True)), known)


def test_people_whose_key_is_a_sentinel_are_nobody(tmp_path: Path) -> None:
    """Of a typed file and of a csv file alike, and of the frame that it came from."""
    table = pa.table({"id": [1, 1, 99, 99, None, 2], "n": [1, 2, 3, 4, 5, 6]})
    arrow_csv.write_csv(table, tmp_path / "people.csv")
    people = read_column("id", {"type": "integer", "missing": [99]})
    data = replace(dataset(whole("n"), people), unit=("id",), unit_word="person")
    for source in (table, tmp_path / "people.csv"):
        with open_source(source, data) as backend:
            report = backend.check()
            assert report.people is not None
            assert (report.people.people, report.people.rows_of_nobody) == (2, 3)


def test_other_sentinels_make_another_question(tmp_path: Path) -> None:
    def ask(missing: list[int]) -> bool:
        declared = {"age": {"type": "integer", "bounds": [0, 120], "missing": missing}}
        with TrustedParty.open(
            {"age": [30, 40, 99]}, name="people", columns=declared, budget=9, ledger=tmp_path / "ledger.db"
        ) as party:
            return party.query("SELECT MEDIAN(age) FROM people WHERE age > 20", 1).stored

    assert [ask([]), ask([99]), ask([99, 98]), ask([98, 99]), ask([])] == [False, False, False, True, True]


REFUSED = {
    "no list": ({"type": "integer", "missing": 9}, "must be a list"),
    "a text": ({"type": "integer", "missing": "9"}, "must be a list"),
    "no number": ({"type": "integer", "missing": ["NA"]}, "a missing value"),
    "no date": ({"type": "date", "missing": [5.5]}, "a missing value must be a date"),
    "too many": ({"type": "integer", "missing": list(range(101))}, "at most 100"),
    "too long": ({"type": "number", "missing": [10**18]}, "at most 18 digits"),
    "no decimal": ({"type": "number", "missing": [Fraction(1, 3)]}, "at most 18 digits"),
    "both": ({"type": "category", "values": [1, 9], "missing": [9]}, "'9' is declared as a value and as missing"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_sentinels_that_cannot_be_are_refused(kind: str) -> None:
    declared, message = REFUSED[kind]
    with pytest.raises(InvalidInput, match=message):
        read_column("n", declared)


def test_truth_values_have_no_sentinels() -> None:
    data = dataset(read_column("b", {"type": "boolean", "missing": [9]}))
    with pytest.raises(SourceError, match="'b' declares missing values, and the source holds boolean"):
        open_source({"b": [True, False]}, data)
    with open_source({"b": [1, 0, 9]}, data) as backend:
        assert backend.check().columns[0].missing == 1


def test_a_csv_file_has_them_beside_its_null_strings(tmp_path: Path) -> None:
    path = tmp_path / "coded.csv"
    path.write_text("n,sex,x\n 99 ,9,99.90\n7,1,-1.0\n099,2,99.8\n,9 ,\n")
    data = dataset(COLUMNS["n"], COLUMNS["sex"], COLUMNS["x"])
    known: Table = {"n": [None, 7, None, None], "sex": [None, "1", "2", None], "x": [None, None, 99.8, None]}
    with open_source(path, data) as backend:
        same(backend, plan(data, (KthSmallest(1), "n"), (KthSmallest(1), "x"), (Mode(), "sex"), distance=4), known)
        assert [(column.missing, column.outside) for column in backend.check().columns] == [(3, 0), (1, 1), (3, 0)]

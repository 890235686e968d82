"""Samples of files: spread over all of their records, the same each time, and told as what they are."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyreadstat
import pytest

import idios
from idios.data.formats.reservoir import Reservoir
from idios.errors import SourceError
from idios.propose.proposals import Schema

SIZE, ROWS = 6000, 1000
SORTED = pd.DataFrame(
    {
        "state": [f"state {i // 200:02}" for i in range(SIZE)],
        "income": [i if i < SIZE // 2 else i + 0.5 for i in range(SIZE)],
        "code": ["a" if i < SIZE // 2 else "b" for i in range(SIZE)],
    }
)


def write(path: Path) -> None:
    kind = path.name.split(".", 1)[1]
    if kind == "xlsx":
        SORTED.to_excel(path, index=False)
    elif kind == "sav":
        pyreadstat.write_sav(SORTED, path)
    elif kind.startswith("jsonl"):
        SORTED.to_json(path, orient="records", lines=True)
    elif kind == "parquet":
        SORTED.to_parquet(path)
    else:
        texts = SORTED.assign(income=[f"{i:g}" for i in SORTED["income"]])
        texts.to_csv(path, index=False)


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "jsonl", "jsonl.gz", "xlsx", "sav", "parquet"])
def test_a_sorted_file_is_proposed_as_a_whole(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"sorted.{ending}"
    write(path)
    proposed = idios.schema(path, rows=ROWS)
    assert proposed["state"]["values"] == [f"state {i:02}" for i in range(SIZE // 200)]
    assert proposed["income"] == {"type": "number"}
    assert proposed["code"] == {"values": ["a", "b"]}
    assert (proposed.records, proposed.sample.total) == (ROWS, SIZE)
    assert "Proposed from 1,000 of 6,000 records, spread over all of them, for their controller" in repr(proposed)
    assert repr(idios.schema(path, rows=ROWS)) == repr(proposed)
    assert "Proposed from 6,000 records, for" in repr(idios.schema(path))


def test_names_that_come_late_are_found(tmp_path: Path) -> None:
    path = tmp_path / "late.jsonl"
    filler = "x" * 200
    lines = [f'{{"a": {i}, "filler": "{filler}"}}' for i in range(3000)] + ['{"a": 1.5, "late": "b"}'] * 1000
    path.write_text("\n".join(lines) + "\n")
    assert set(idios.schema(path)) == {"a", "filler", "late"}
    assert idios.schema(path)["a"] == {"type": "number"}


def test_words_and_marks_that_come_late_belong_to_the_format(tmp_path: Path) -> None:
    path = tmp_path / "late.csv"
    early = [f"{'x' * 100};{i}" for i in range(3000)]
    late = [f"{'x' * 100};{i}.{i % 1000:03},50" for i in range(1, 900)] + [f"{'x' * 100};k.A."] * 500
    path.write_text("\n".join(["filler;amount", *early, *late]) + "\n")
    proposed = idios.schema(path)
    assert proposed.csv_format is not None
    assert (proposed.csv_format.decimal, proposed.csv_format.thousands) == (",", ".")
    assert proposed.csv_format.nulls == ("k.A.",)
    assert proposed["amount"] == {"type": "number"}


@pytest.mark.parametrize("pieces", [[10], [0, 4, 6], [2000, 5, 0, 3000], [1] * 3000])
def test_a_reservoir_draws_from_everywhere(pieces: list[int]) -> None:
    drawn, start = Reservoir(100), 0
    for size in pieces:
        drawn.add(pa.table({"number": pa.array(range(start, start + size), pa.int64())}))
        start += size
    numbers = drawn.read()["number"].to_pylist()
    assert drawn.total == start
    assert len(numbers) == min(100, start)
    assert numbers == sorted(set(numbers))
    assert start <= 100 or (numbers[10] < start / 3 and numbers[-10] > start * 2 / 3)


def propose_in_database(postgresql_url: str, statement: str) -> Schema:
    """What is proposed of a table that a statement makes."""
    import psycopg

    with psycopg.connect(postgresql_url, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA sampled")
        try:
            connection.execute(f"CREATE {statement}")
            return idios.schema(f"{postgresql_url}?table=sampled.people", rows=ROWS)
        finally:
            connection.execute("DROP SCHEMA sampled CASCADE")


def test_a_table_of_a_database_is_proposed_from_a_sample(postgresql_url: str) -> None:
    """As a file is: categories, codes, values that mean missing; rare values and keys are left out."""
    proposed = propose_in_database(
        postgresql_url,
        """TABLE sampled.people AS SELECT i AS person_id, 1 + i % 2 AS sex, 16 + i % 70 AS age,
        CASE WHEN i % 20 = 0 THEN 999999 ELSE 900 + 7 * (i % 3000) END AS income,
        CASE WHEN i = 77 THEN 'a hamlet' WHEN i % 9 > 0 THEN (ARRAY['north', 'south'])[1 + i % 2] END AS region,
        i / 7.0::float8 AS height, (i % 900 / 100.0)::numeric(9, 2) AS wage, i % 3 = 0 AS works,
        DATE '2024-01-01' + i % 300 AS day, jsonb_build_array(i) AS unknown
        FROM generate_series(1, 6000) AS i""",
    )
    assert dict(proposed) == {
        "sex": {"values": [1, 2]},
        "age": {"type": "integer"},
        "income": {"type": "integer", "missing": [999999]},
        "region": {"values": ["north", "south"]},
        "height": {"type": "number"},
        "wage": {"type": "decimal", "decimals": 2},
        "works": {"type": "boolean"},
        "day": {"type": "date"},
    }
    assert proposed.notes["person_id"].startswith("a key, left out")
    assert 800 < proposed.records < 1200, "about as many as are asked for"
    assert proposed.sample.total == SIZE
    assert "of 6,000 records, spread over all of them" in repr(proposed)


def test_no_value_of_a_database_decides_whether_there_is_a_proposal(postgresql_url: str) -> None:
    """Whatever a type holds is written as text: numbers that are none, infinite dates, text of any letters."""
    proposed = propose_in_database(
        postgresql_url,
        """TABLE sampled.people (x float8, y float4, n numeric, day date, moment timestamptz, word text, long text);
        INSERT INTO sampled.people SELECT v::float8, v::float4, v::numeric, d::date, d::timestamptz,
        chr(1 + i) || chr(128512), repeat('long', 100000) FROM generate_series(1, 30) AS i,
        unnest(ARRAY['NaN', '1e-30', '-0', '7']) AS v, unnest(ARRAY['infinity', '-infinity', '4713-01-01 BC']) AS d""",
    )
    kinds = {"x": "number", "y": "number", "n": "decimal", "day": "date", "moment": "timestamp"}
    assert {name: table["type"] for name, table in proposed.items() if "type" in table} == kinds
    assert proposed["word"]["values"] == sorted(chr(1 + i) + chr(128512) for i in range(1, 31))


def test_a_view_that_fails_says_so(postgresql_url: str) -> None:
    with pytest.raises(SourceError, match="some values of the columns cannot be read as text"):
        propose_in_database(
            postgresql_url, "VIEW sampled.people AS SELECT 1 / (i - 50) AS x FROM generate_series(1, 99) AS i"
        )

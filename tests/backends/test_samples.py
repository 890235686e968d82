"""Samples of files: spread over all of their records, the same each time, and told as what they are."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyreadstat
import pytest

import idios
from idios.backends.reservoir import Reservoir

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

"""An answer as it is published: tidy columns, CSV and what is said beside it."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from idios.display import SAMPLING
from idios.errors import InvalidInput
from idios.model import Answer, Distance
from tests.model.test_answer import some_answer

INTERVALS = ({"n": ("5", "19"), "m": ("1.25", "5/3")}, {})
NUMBERED = {"time": "2026-11-16T09:00:00.000000Z", "sequence": 7, "version": "2026-11"}


def published(**changes: Any) -> Answer:
    told = {"question": "number of records, by region", "sql": "SELECT region,\n COUNT(*) AS n …", **NUMBERED}
    return some_answer(**({"interval_rows": INTERVALS} | told | changes))


def test_intervals_follow_their_statistic_in_data_frames() -> None:
    answer = published()
    names = ["region", "n", "n_low", "n_high", "m", "m_low", "m_high", "d", "t"]
    frame = answer.to_pandas()
    assert list(frame.columns) == answer.to_polars().columns == names
    assert frame["n_low"].tolist() == [5, pd.NA]
    assert str(frame["n_high"].dtype) == "Int64"
    assert frame["m_high"][0] == answer.to_polars()["m_high"][0] == pytest.approx(5 / 3)
    assert list(some_answer().to_pandas().columns) == ["region", "n", "m", "d", "t"], "what has none has no columns"


def test_checks_follow_too_and_a_taken_name_is_kept() -> None:
    answer = replace(published(), check_rows=({"m": Distance(-3, None)}, {}))
    frame = answer.to_pandas()
    assert frame["m_check_low"].tolist() == [-3, pd.NA]
    assert frame["m_check_high"].isna().all()
    named = replace(
        some_answer(),
        columns=("n", "n_low"),
        rows=({"n": 1, "n_low": 2},),
        exact_rows=({"n": "1", "n_low": "2"},),
        margins={"n": None, "n_low": None},
        types={},
        interval_rows=({"n": ("0", "3")},),
    )
    assert list(named.to_pandas().columns) == ["n", "n_low_", "n_high", "n_low"]
    assert named.to_pandas()["n_low"].tolist() == [2]


def test_limits_follow_too() -> None:
    limits = ({"m": (Fraction(-1), Fraction(5, 3))}, {})
    frame = replace(published(), clipped_rows=limits).to_pandas()
    assert list(frame.columns)[4:9] == ["m", "m_low", "m_high", "m_clipped_low", "m_clipped_high"]
    assert frame["m_clipped_low"][0] == -1
    assert pd.isna(frame["m_clipped_high"][1])
    written = replace(published(), clipped_rows=limits).to_csv(metadata=True) or ""
    assert "m_high,m_interval,m_clipped_low,m_clipped_high,d" in written
    assert '"noise, 95 %, of the clipped values",-1,1.6666666666666667,' in written
    assert ",-1,1.6666666666666667," in written


def test_csv_begins_with_the_table(tmp_path: Path) -> None:
    answer = published()
    written = answer.to_csv()
    assert written == (
        "region,n,n_low,n_high,n_interval,m,m_low,m_high,m_interval,d,t\n"
        'north,12,5,19,"noise, 95 %",1.5,1.25,1.6666666666666667,"noise, 95 %",2026-01-02,2026-01-02T03:04:05.000006\n'
        "south,,,,,,,,,,\n"
    )
    assert answer.to_csv(tmp_path / "answer.csv") is None
    assert (tmp_path / "answer.csv").read_bytes().decode() == written
    assert len(pd.read_csv(tmp_path / "answer.csv")) == 2


def test_a_comment_in_a_question_ends_with_its_line() -> None:
    answer = replace(some_answer(), sql="SELECT COUNT(*) -- all\nFROM people")
    assert "# sql: SELECT COUNT(*) /* all */ FROM people\n" in (answer.to_csv(metadata=True) or "")


def test_metadata_stands_before_it_in_lines_that_readers_skip() -> None:
    answer = published()
    written = answer.to_csv(metadata=True) or ""
    comments = dict(line[2:].split(": ", 1) for line in written.splitlines() if line.startswith("# "))
    assert comments == {
        "dataset": "people",
        "version": "2026-11",
        "question": "number of records, by region",
        "sql": "SELECT region,  COUNT(*) AS n …",
        "guarantee": str(answer.guarantee),
        "cost": "ε = 0.5",
        "margin of n (noise, 95 %)": "± 7",
        "interval of n": "noise, 95 %",
        "interval of m": "noise, 95 %",
        "noise": SAMPLING,
        "no margin of m": "it is not public",
        "time": NUMBERED["time"],
        "entry": "7",
        "id": "1",
    }
    assert written.endswith(answer.to_csv() or "")
    assert pd.read_csv(io.StringIO(written), comment="#").equals(pd.read_csv(io.StringIO(answer.to_csv())))
    assert "# sandbox: the data was invented\n" in (replace(answer, sandbox=True).to_csv(metadata=True) or "")


def test_a_text_that_looks_like_a_fraction_is_not_one() -> None:
    answer = published()
    odd = [{**answer.exact_rows[0], "region": name} for name in ("1/2 north", "a/b", 'a "b", c')]
    rows = tuple({**answer.rows[0], "region": row["region"]} for row in odd)
    two = replace(answer, exact_rows=tuple(odd), rows=rows, interval_rows=())
    read = list(csv.DictReader(io.StringIO(two.to_csv())))
    assert [row["region"] for row in read] == ["1/2 north", "a/b", 'a "b", c']


def test_people_read_intervals_in_brackets_or_in_a_column() -> None:
    several = str(published())
    assert "n (noise, 95 %)" in several
    assert "5 to 19" in several
    one = replace(
        published(), rows=published().rows[:1], exact_rows=published().exact_rows[:1], interval_rows=INTERVALS[:1]
    )
    assert "n = 12 (noise, 95 %: 5 to 19), m = 1.5 (noise, 95 %: 1.25 to 1.66667)" in str(one)
    assert one.intervals == {"n": (5, 19), "m": (1.25, pytest.approx(5 / 3))}
    for shown in (one._repr_html_(), published()._repr_html_()):
        assert "5 to 19" in shown
        assert "number of records, by region" in shown


def test_json_has_all_of_it_and_comes_back() -> None:
    answer = published()
    sent = json.loads(answer.to_json())
    assert sent["intervals"] == [{"n": ["5", "19"], "m": ["1.25", "5/3"]}, {}]
    assert {key: sent[key] for key in NUMBERED} == NUMBERED
    assert Answer.from_dict(sent) == answer
    old = {key: value for key, value in sent.items() if key not in ("intervals", "question", "sql", *NUMBERED)}
    assert Answer.from_dict(old) == some_answer()


@pytest.mark.parametrize(
    ("intervals", "message"),
    [
        ([{}], "a list of 2"),
        ([{"region": ["a", "b"]}, {}], "must name statistics"),
        ([{"n": ["5"]}, {}], "a list of 2"),
        ([{"n": ["five", "19"]}, {}], "an exact number"),
        ([{"n": ["1/2", "19"]}, {}], "not of the type integer"),
        ([{"n": [5, 19]}, {}], "texts"),
        ([{"n": ["19", "5"]}, {}], "low ≤ high"),
    ],
)
def test_intervals_that_do_not_fit_are_refused(intervals: list[Any], message: str) -> None:
    sent = published().to_dict() | {"intervals": intervals}
    with pytest.raises(InvalidInput, match=message):
        Answer.from_dict(sent)


def test_a_long_value_has_an_exact_interval() -> None:
    far = str(10**400)
    wide = published(interval_rows=({"n": ("0", far)}, {}))
    assert far in (wide.to_csv() or "")
    assert Fraction(wide.interval_rows[0]["n"][1]) == 10**400

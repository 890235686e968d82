"""``idios init``: the proposed configuration."""

from __future__ import annotations

import gzip
from fractions import Fraction
from pathlib import Path

import openpyxl
import pandas as pd
import pyreadstat
import pytest

import idios
from idios.config import read_configuration
from idios.data.formats.statistics_files import read_value_labels
from idios.declare.schema import Budget
from idios.errors import (
    ConfigurationError,
    InvalidInput,
    SourceError,
)
from tests.cli.runner import answer_prompts, run, run_json


def test_a_file_without_a_header(folder: Path) -> None:
    """No record becomes a name, neither in the configuration nor on the way there."""
    (folder / "bare.csv").write_text("Ada,41,north\nBo,35,south\n" * 50)
    shown = run("init", "bare.csv", "--yes", "--no-sample")
    written = (folder / "idios.toml").read_text()
    assert "header = false" in written
    assert 'column2 = { type = "integer" }' in written
    assert not any(value in text for value in ("Ada", "41", "north") for text in (written, shown.stdout, shown.stderr))
    answer = run_json("query", "SELECT MEDIAN(column2) FROM bare", "-e", "1")
    assert answer["rows"]
    (folder / "texts.csv").write_text("Ada,north\nBo,south\n")
    with pytest.raises(SourceError, match="--header or --no-header"):
        run("init", "texts.csv", "--out", "texts.toml", "--yes")
    run("init", "texts.csv", "--out", "texts.toml", "--yes", "--no-header", "--values", "column1=Ada,Bo")
    assert "header = false" in (folder / "texts.toml").read_text()


def test_the_next_command_stands_on_one_line(folder: Path) -> None:
    """It is copied from there."""
    out = f"{'a' * 80}.toml"
    assert f"idios check --config {out}\n" in run("init", "people.csv", "--yes", "--out", out).stdout


def test_init_writes_what_it_is_told_and_never_overwrites(folder: Path) -> None:
    run("init", "people.csv", "--yes", "--budget", "7", "--bounds", "age=0..120", "--values", "region=north,south")
    text = (folder / "idios.toml").read_text()
    assert 'age = { type = "integer", bounds = [0, 120] }' in text
    assert "# check = 0.2 " in text
    assert 'region = { type = "category", values = ["north", "south"] }' in text
    answer = run_json("query", "SELECT region, AVG(age) FROM people GROUP BY region", "-e", "1")
    assert [row["region"] for row in answer["rows"]] == ["north", "south"]
    with pytest.raises(ConfigurationError, match="never overwritten"):
        run("init", "people.csv", "--yes")
    (folder / "others.csv").write_text((folder / "people.csv").read_text())
    with pytest.raises(ConfigurationError) as refused:
        run("init", "others.csv", "--yes")
    assert '`idios query others.csv "SELECT …" --config idios.toml` adds a file to it' in str(refused.value)
    asked = "SELECT MEDIAN(age) FROM others"
    run("query", "others.csv", asked, "--config", "idios.toml", "-e", "1", "--protection", "differential")
    assert list(read_configuration(folder / "idios.toml").datasets) == ["people", "others"]
    with pytest.raises(InvalidInput, match="no column"):
        run("init", "people.csv", "--yes", "--out", "b.toml", "--bounds", "nope=1..2")
    with pytest.raises(InvalidInput, match=r"NAME=LOW\.\.HIGH"):
        run("init", "people.csv", "--yes", "--out", "b.toml", "--bounds", "age:1")
    for unreadable in ("age=120..0", "age=zero..ten"):
        with pytest.raises(InvalidInput):
            run("init", "people.csv", "--yes", "--out", "b.toml", "--bounds", unreadable)
    assert not (folder / "b.toml").exists()


def test_init_explains_both_accountings_and_writes_the_one_chosen(folder: Path) -> None:
    run("init", "people.csv", "--yes", "--out", "pure.toml")
    run("init", "people.csv", "--yes", "--budget", "5", "--accounting", "concentrated", "--delta", "1e-6")
    budgets = []
    for name in ("pure.toml", "idios.toml"):
        assert '# What adds up to the budget. "pure": the ε of all answers' in (folder / name).read_text()
        budgets.append(read_configuration(folder / name).datasets["people"].dataset.budget)
    assert budgets == [Budget(Fraction(10)), Budget(Fraction(5), Fraction(1, 10**6))]
    for wrong in (["--accounting", "concentrated"], ["--delta", "1e-6"], ["--accounting", "other"]):
        with pytest.raises(InvalidInput, match="accounting"):
            run("init", "people.csv", "--yes", "--out", "b.toml", *wrong)
    assert not (folder / "b.toml").exists()


def test_init_says_what_each_level_means_and_every_choice_can_be_taken(folder: Path) -> None:
    assert "noise is fitted" not in run("init", "people.csv", "--yes", "--bounds", "age=0..120").stderr
    text = (folder / "idios.toml").read_text()
    assert "one MEDIAN of a column of 0s and 1000s" in text
    assert 'so a server needs analysts = "trusted"' in text
    assert (
        "# release_seconds = 0.25  # on a server: answers leave at 0.25, 0.5, 1, 2, … seconds, so that time tells "
        'nothing; default at "differential"\n'
    ) in text
    written = 'protection = "differential"\n'
    assert read_configuration(folder / "idios.toml").datasets["people"].dataset.protection.level == "differential"
    for level, lines in (
        ("group", ['protection = "group" ', "group = 5", 'analysts = "trusted"']),
        ("individual", ['protection = "individual"', 'analysts = "trusted"']),
    ):
        chosen = text.replace(written, "")
        for line in lines:
            assert f"\n# {line}" in chosen
            chosen = chosen.replace(f"\n# {line}", f"\n{line}")
        (folder / "chosen.toml").write_text(chosen)
        declared = read_configuration(folder / "chosen.toml").datasets["people"]
        assert declared.dataset.protection.level == level
        assert declared.analysts_trusted


def test_init_tells_what_a_weaker_level_does_not_promise(folder: Path) -> None:
    result = run("init", "people.csv", "--yes", "--protection", "individual")
    assert 'protection = "individual": At this level the noise is fitted' in " ".join(result.stderr.split())
    assert read_configuration(folder / "idios.toml").datasets["people"].dataset.protection.level == "individual"


def test_init_asks_for_a_total_at_a_terminal(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = answer_prompts(monkeypatch, "3")
    shown = " ".join(run("init", "people.csv", "--no-sample").stderr.split())
    assert "ε limits what all answers together may tell about one record" in shown
    assert asked[0] == ("Total ε that may ever be spent on 'people'", "10")
    assert read_configuration(folder / "idios.toml").datasets["people"].dataset.budget == Budget(Fraction(3))
    (folder / "other.csv").write_text((folder / "people.csv").read_text())
    several = ("init", "people.csv", "other.csv", "--no-sample", "--unit", "people=age", "--out", "two.toml")
    assert "may tell about one person" in " ".join(run(*several).stderr.split())
    assert asked[-1][0].endswith("on 'people' and on 'other'")
    told = len(asked)
    for i, quiet in enumerate((["--yes"], ["--budget", "10"], ["--no-ask"])):
        run("init", "people.csv", "--no-sample", "--out", f"{i}.toml", *quiet)
        assert read_configuration(folder / f"{i}.toml").datasets["people"].dataset.budget == Budget(Fraction(10))
    assert len(asked) == told


def test_init_proposes_how_a_file_is_written(folder: Path) -> None:
    """A survey as R writes it for a German Excel: from the file to an answer, nothing declared by hand."""
    lines = ["alter;lohn;größe", *(f"{20 + i % 50};{i},5;{'NA' if i % 9 == 0 else 170 + i % 20}" for i in range(300))]
    with gzip.open(folder / "umfrage.csv.gz", "wb") as file:
        file.write("\n".join(lines).encode("latin-1"))
    run("init", "umfrage.csv.gz", "--yes")
    written = (folder / "idios.toml").read_text()
    assert 'csv = { delimiter = ";", header = true, decimal = ",", encoding = "latin-1", nulls = ["NA"] }' in written
    assert '"größe" = { type = "integer" }' in written
    run("check")
    assert run_json("query", 'SELECT MEDIAN("größe") FROM umfrage', "-e", "1")["rows"]


def test_init_proposes_the_labelled_codes_of_a_statistics_file(folder: Path) -> None:
    frame = pd.DataFrame({"sex": [1.0, 2.0] * 100, "job": [1.0, -2.0] * 100, "income": [*map(float, range(200))]})
    labels = {"sex": {1: "male", 2: 'fem"ale\nx'}, "job": {1: "other", -2: "other"}, "income": {999: "Not\nknown."}}
    pyreadstat.write_sav(frame, folder / "survey.sav", variable_value_labels=labels)
    run("init", "survey.sav")  # no record was read, so that nothing has to be confirmed
    written = (folder / "idios.toml").read_text()
    assert r'sex = { values = { 1 = "male", 2 = "fem\"ale\nx" } }' in written
    assert 'job = { values = { 1 = "1 other", -2 = "-2 other" } }' in written  # two labels are alike
    assert '[999] }  # 999 is "Not known."' in written
    answer = run_json("query", "SELECT sex, COUNT(*) FROM survey WHERE sex = 'male' GROUP BY sex", "-e", "1")
    assert answer["rows"][0]["sex"] == "male"
    assert read_value_labels(folder / "survey.sav")["sex"] == {"1": "male", "2": 'fem"ale\nx'}
    assert read_value_labels(folder / "people.csv") == {}


def test_init_asks_about_every_file_of_which_it_read_records(folder: Path) -> None:
    pd.DataFrame({"age": range(100)}).to_excel(folder / "ages.xlsx", sheet_name="Ages 2026", index=False)
    pd.DataFrame({"age": range(100)}).to_json(folder / "ages.jsonl", orient="records", lines=True)
    for source, name in (("ages.xlsx::Ages 2026", '"Ages 2026"'), ("ages.jsonl", "ages")):
        with pytest.raises(ConfigurationError, match="add --yes"):
            run("init", source, "--out", f"{name}.toml")
        run("init", source, "--out", f"{name}.toml", "--yes")
        answer = run_json("query", f"SELECT MEDIAN(age) FROM {name}", "-e", "1", "--config", f"{name}.toml")
        assert answer["rows"]
    with pytest.raises(SourceError, match="has no sheet 'Ages'; it has 'Ages 2026'"):
        run("init", "ages.xlsx::Ages", "--out", "none.toml", "--yes")


def test_bounds_on_one_side(folder: Path) -> None:
    run("init", "people.csv", "--yes", "--bounds", "age=0..120", "--bounds", "income=0..")
    assert 'income = { type = "number", bounds = "0.." }' in (folder / "idios.toml").read_text()
    column = read_configuration(folder / "idios.toml").datasets["people"].dataset.columns["income"]
    assert (column.grid.lower, column.grid.upper) == (0, None)
    with pytest.raises(InvalidInput, match=r"0\.\. where only one is known"):
        run("init", "people.csv", "--yes", "--out", "b.toml", "--bounds", "income=..")


def test_what_names_no_column_is_refused_with_the_nearest(folder: Path) -> None:
    for given in (("--bounds", "agee=0..9"), ("--values", "agee=1,2"), ("--unit", "agee"), ("--unit", "age,agee")):
        with pytest.raises(InvalidInput, match=r"no column 'agee'. Did you mean 'age'\?"):
            run("init", "people.csv", "--yes", *given)
    (folder / "visits.csv").write_text("age,cost\n" + "41,10\n" * 20)
    for link in ("visits.agee=people.age", "visits.age=people.agee"):
        with pytest.raises(InvalidInput, match=r"no column 'agee'. Did you mean 'age'\?"):
            run("init", "people.csv", "visits.csv", "--yes", "--unit", "people=age", "--link", link)
    assert not (folder / "idios.toml").exists()


def test_many_columns_are_summarised(folder: Path) -> None:
    answers = {f"q{i}": [1, 2, 3, 9] * 50 for i in range(100)}
    pd.DataFrame({"age": range(200), **answers}).to_csv(folder / "survey.csv", index=False)
    shown = " ".join(run("init", "survey.csv", "--yes").stderr.split())
    assert "100 × category: q0, q1, q2, q3, q4, q5, q6, q7, … (92 more)" in shown
    assert "1 × integer: age" in shown
    assert "with values that mean missing: q0" in shown
    assert "101 columns are as declared; at most 50 values are missing, of q0" in run("check").stdout


def test_nothing_is_sampled_that_nobody_confirms(folder: Path) -> None:
    pd.DataFrame({"region": ["north", "south"] * 100}).to_parquet(folder / "regions.parquet")
    run("init", "regions.parquet")
    assert "north" not in (folder / "idios.toml").read_text()
    run("init", "regions.parquet", "--out", "sampled.toml", "--yes")
    assert 'region = { values = ["north", "south"] }' in (folder / "sampled.toml").read_text()


def test_the_names_of_columns_are_names(folder: Path) -> None:
    """Neither a record nor a title becomes one, and none is empty or there twice."""
    (folder / "twice.csv").write_text("age,sex,age\n" + "41,1,3\n" * 50)
    (folder / "index.csv").write_text(",age\n" + "".join(f"{i},41\n" for i in range(50)))
    for name, wrong in (("twice", "the columns 1 and 3 are called 'age'"), ("index", "column 1 of 2 has none")):
        for options in ((), ("--header",)):
            with pytest.raises(SourceError, match=wrong):
                run("init", f"{name}.csv", "--yes", *options)
    (folder / "empty.csv").write_text("\n")
    with pytest.raises(SourceError, match="is empty"):
        run("init", "empty.csv", "--yes")
    pd.DataFrame([["f", 4765], ["m", 5100]] * 50).to_excel(folder / "bare.xlsx", index=False, header=False)
    with pytest.raises(SourceError, match="must be names") as raised:
        run("init", "bare.xlsx", "--yes")
    assert "4765" not in str(raised.value)
    assert "write one into cell 2" in str(raised.value)
    people = pd.DataFrame({"sex": ["f", "m"] * 50, "income": range(100), "age": range(100)})
    people.to_excel(folder / "title.xlsx", index=False, startrow=3)
    workbook = openpyxl.load_workbook(folder / "title.xlsx")
    workbook.active.cell(2, 1, "Households 2024")
    workbook.save(folder / "title.xlsx")
    with pytest.raises(SourceError, match="row 4 looks like the names; delete what stands above it"):
        run("init", "title.xlsx", "--yes")
    people.set_axis(["sex", "sex", "age"], axis=1).to_excel(folder / "same.xlsx", index=False)
    with pytest.raises(SourceError, match="the columns 1 and 2 are called 'sex'"):
        run("init", "same.xlsx", "--yes")


def test_names_that_may_be_years_are_asked_about(folder: Path) -> None:
    (folder / "years.csv").write_text("region,2019,2020\n" + "".join(f"north,{i},{7 * i}\n" for i in range(99)))
    with pytest.raises(SourceError, match="say --header or --no-header"):
        run("init", "years.csv", "--yes")
    with pytest.raises(SourceError, match=r'say csv=\{"header": True\} or csv=\{"header": False\}'):
        idios.schema("years.csv")
    for header, names in ((True, ["region", "2019", "2020"]), (False, ["column1", "column2", "column3"])):
        proposed = idios.schema("years.csv", csv={"header": header})
        assert list(proposed) == names
        assert proposed.csv_format is not None
        assert proposed.csv_format.header is header
    assert "2019: integer" in run("init", "years.csv", "--yes", "--header").stderr
    with pytest.raises(InvalidInput, match="the source is none"):
        idios.schema({"a": [1]}, csv={"header": True})
    born = "".join(f"{1950 + i % 40},{i}\n" for i in range(99))
    (folder / "born.csv").write_text(born)  # among other years, 1950 is one of them
    assert list(idios.schema("born.csv")) == ["column1", "column2"]


@pytest.mark.parametrize("ending", ["csv", "xlsx", "jsonl"])
def test_a_file_without_records_is_told_as_that(folder: Path, ending: str) -> None:
    path = folder / f"header.{ending}"
    if ending == "xlsx":
        pd.DataFrame({"age": [], "sex": []}).to_excel(path, index=False)
    else:
        path.write_text("age,sex\n" if ending == "csv" else "\n")
    for options in ((), ("--header",)):
        with pytest.raises(SourceError, match="no records"):
            run("init", path.name, "--yes", *options)


def test_what_is_shown_is_what_is_confirmed(folder: Path) -> None:
    with pytest.raises(ConfigurationError, match="add --yes"):
        run("init", "people.csv")
    with pytest.raises(InvalidInput, match="'region' is proposed as a category, which has no bounds"):
        run("init", "people.csv", "--yes", "--bounds", "region=1..2")
    assert "region: category: north, south" in run("init", "people.csv", "--yes").stderr


def test_a_column_that_cannot_be_read_fails_the_check(folder: Path) -> None:
    (folder / "commas.csv").write_text("x;y\n" + "1,5;2\n" * 50)
    run("init", "commas.csv", "--yes")
    assert run("check").exit_code == 0
    config = folder / "idios.toml"
    config.write_text(config.read_text().replace('decimal = ","', 'decimal = "."'))
    checked = run("check")
    assert "50 values do not have the declared type" in " ".join(checked.stdout.split())
    assert checked.exit_code == 1


def write_office_file(folder: Path, more: int = 0) -> None:
    """A file as an office exports it: dates, thousands, words among numbers, and rows of people."""
    lines = [
        ";".join(["alter", "lohn", "geboren", "besucht", "land", "ort", "kunde_nr", *(f"q{i}" for i in range(more))])
    ]
    for i in range(600):
        age = "k.A." if i % 20 == 0 else "Ada weiß nicht" if i % 150 == 7 else str(18 + i % 60)
        day, land = f"{1 + i % 28:02}.{1 + i % 12:02}.{1950 + i % 50}", ["Bayern", "Hessen", "keine Angabe"][i % 3]
        visited = f"{1 + i % 12:02}/{1 + i // 12 % 12:02}/2024"
        values = [age, f"{1 + i % 9}.{100 + i},50", day, visited, land, f"Ort {i}", str(i % 200)]
        lines.append(";".join([*values, *["1"] * more]))
    (folder / "amt.csv").write_text("\n".join(lines))


def test_init_reads_a_file_as_offices_write_it(folder: Path) -> None:
    write_office_file(folder)
    shown = " ".join(run("init", "amt.csv", "--yes").stderr.split())
    assert "alter: integer; 4 values that are no numbers read as missing" in shown
    assert "ort: text with more than 500 values, left out" in shown
    written = (folder / "idios.toml").read_text()
    for line in (
        'csv = { delimiter = ";", header = true, decimal = ",", thousands = ".", nulls = ["k.A."] }  # nulls read as',
        'alter = { type = "integer" }  # values that are no numbers read as missing; idios check counts them\n',
        'lohn = { type = "number" }\n',
        'geboren = { type = "date", format = "%d.%m.%Y" }\n',
        '# besucht = { type = "date", format = "%d/%m/%Y" }  # which are days and which months cannot be told',
        'land = { values = ["Bayern", "Hessen", "keine Angabe"] }  # "keine Angabe" may mean that there is no answer',
        '# ort = { values = "codes/ort.csv" }  # text with more than 60 values: list them in a file',
        '# unit = "kunde_nr"  # its values repeat',
    ):
        assert f"\n{line}" in written
    assert "records are protected and not people" not in shown, (
        "people are told of by themselves, until --unit is given"
    )
    assert "Ada" not in written + shown
    checked = run("check")
    assert "4 values do not have the declared type" in " ".join(checked.stdout.split())
    assert checked.exit_code == 0
    counted = "SELECT COUNT(alter) AS a, COUNT(lohn) AS l, COUNT(geboren) AS g FROM amt"
    (row,) = run_json("query", counted, "-e", "9.9")["rows"]
    assert [abs(int(row[name]) - n) < 30 for name, n in (("a", 566), ("l", 600), ("g", 600))] == [True] * 3
    # what is offered can be declared as it is written
    (folder / "codes").mkdir()
    (folder / "codes" / "ort.csv").write_text("\n".join(f"Ort {i}" for i in range(600)))
    (folder / "more.toml").write_text(written.replace("# ort", "ort").replace("# besucht", "besucht"))
    assert {"ort", "besucht"} <= set(read_configuration(folder / "more.toml").datasets["amt"].dataset.columns)


def test_of_many_columns_what_is_doubtful_is_said(folder: Path) -> None:
    write_office_file(folder, more=20)
    shown = " ".join(run("init", "amt.csv", "--yes").stderr.split())
    assert "alter: values that are no numbers read as missing" in shown
    assert "besucht: which are days and which months cannot be told" in shown
    assert "Ada" not in shown


def test_init_says_in_a_line_what_the_levels_promise(folder: Path) -> None:
    run("init", "people.csv", "--yes")
    written = (folder / "idios.toml").read_text()
    assert (
        "differential: ε for each record of any data\n# that there could be; individual: ε for each record" in written
    )

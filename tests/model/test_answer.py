"""Answers and quotes: to JSON and back, into data frames, and as people see them."""

from __future__ import annotations

import builtins
import datetime
import json
import pickle
from copy import copy
from dataclasses import fields, replace
from fractions import Fraction
from html.parser import HTMLParser
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import idios
from idios.codec import from_json, to_json
from idios.core.calibration import Level
from idios.core.exact import text
from idios.core.guarantee import Guarantee
from idios.core.neighbours import Neighbours
from idios.errors import IdiosError, InvalidInput
from idios.model.answer import PYTHON_TYPES, Answer, python_value
from idios.model.quote import Quote

names = st.text(min_size=1, max_size=8)
fractions = st.fractions(min_value=0, max_value=10**9)
written = {
    "integer": st.integers(-(10**30), 10**30).map(str),
    "number": st.one_of(st.fractions(), st.integers(-(10**6), 10**6).map(Fraction)).map(text),
    "date": st.dates().map(str),
    "timestamp": st.datetimes().map(datetime.datetime.isoformat),
    "category": st.text(max_size=8),
    "boolean": st.sampled_from(["true", "false"]),
}


@st.composite
def guarantees(draw: st.DrawFn) -> Guarantee:
    level = draw(st.sampled_from(Level))
    group = draw(st.integers(1, 9)) if level is Level.GROUP else 1
    delta = Fraction(0) if level is Level.GROUP else draw(st.fractions(0, 1))
    notion = draw(st.sampled_from(Neighbours))
    if level is Level.GROUP and draw(st.booleans()):
        return Guarantee.for_groups(sorted(draw(st.lists(st.fractions(0, 50), min_size=1, max_size=9))), notion)
    return Guarantee(level, draw(st.fractions(0, 50)), notion, delta, group)


@st.composite
def answers(draw: st.DrawFn) -> Answer:
    columns = tuple(draw(st.lists(names, min_size=1, max_size=4, unique=True)))
    types = {column: draw(st.sampled_from(list(PYTHON_TYPES))) for column in columns}
    cells = st.fixed_dictionaries({c: st.one_of(st.none(), written[kind]) for c, kind in types.items()})
    exact_rows = draw(st.lists(cells, max_size=4))
    statistics = draw(st.lists(st.sampled_from(columns), min_size=1, unique=True))
    margins = {column: draw(st.one_of(st.none(), fractions)) for column in statistics}
    limits = st.tuples(st.fractions(), fractions).map(lambda pair: (pair[0], pair[0] + pair[1]))
    clipped = st.dictionaries(st.sampled_from(statistics), limits)
    return Answer(
        id=draw(names),
        dataset=draw(names),
        columns=columns,
        rows=tuple({c: python_value(row[c], types[c]) for c in columns} for row in exact_rows),
        exact_rows=tuple(exact_rows),
        epsilon=draw(fractions),
        delta=draw(fractions),
        guarantee=draw(guarantees()),
        remaining=draw(st.one_of(st.none(), fractions)),
        margins=margins,
        margin_reasons={column: "because" for column, margin in margins.items() if margin is None},
        stored=draw(st.booleans()),
        types=types if draw(st.booleans()) else {},
        sandbox=draw(st.booleans()),
        clipped_rows=tuple(draw(clipped) for _ in exact_rows) if draw(st.booleans()) else (),
        interval_rows=tuple(
            {c: (row[c], row[c]) for c in statistics if row[c] is not None and draw(st.booleans())}
            for row in exact_rows
        ),
        question=draw(names),
        sequence=draw(st.none() | st.integers(1, 9)),
    )


@settings(max_examples=200, deadline=None)
@given(answers())
def test_an_answer_comes_back_as_it_was(answer: Answer) -> None:
    sent = json.loads(answer.to_json())
    back = Answer.from_dict(sent)
    assert back == answer
    assert back.to_dict() == sent
    for row, original in zip(back.rows, answer.rows, strict=True):
        assert [type(row[column]) for column in back.columns] == [type(original[column]) for column in back.columns]
    assert str(back) == str(answer)
    assert str(back.guarantee) == sent["guarantee"]["sentence"]


@settings(max_examples=100, deadline=None)
@given(st.data(), guarantees())
def test_a_quote_comes_back_as_it_was(data: st.DataObject, guarantee: Guarantee) -> None:
    columns = tuple(data.draw(st.lists(names, min_size=1, max_size=3, unique=True)))
    maybe = st.one_of(st.none(), fractions)
    margins = {column: data.draw(maybe) for column in columns}
    quote = Quote(
        dataset=data.draw(names),
        columns=columns,
        cost=data.draw(fractions),
        delta=data.draw(fractions),
        rho=data.draw(fractions),
        pure=data.draw(st.booleans()),
        split={column: data.draw(fractions) for column in columns},
        cells=data.draw(st.integers(0, 10**6)),
        fitted=data.draw(st.integers(0, 10**6)),
        least_epsilon=data.draw(fractions),
        guarantee=guarantee,
        remaining_before=data.draw(maybe),
        remaining_after=data.draw(maybe),
        remaining_rho_before=data.draw(maybe),
        remaining_rho_after=data.draw(maybe),
        more=data.draw(st.none() | st.integers(0, 10**6)),
        shortage=data.draw(st.none() | names),
        stored=data.draw(st.booleans()),
        margins=margins,
        margin_reasons={column: "because" for column, margin in margins.items() if margin is None},
        null_risks={column: "NULL is possible" for column in columns if data.draw(st.booleans())},
    )
    back = Quote.from_dict(json.loads(json.dumps(quote.to_dict())))
    assert back == quote
    assert str(back) == str(quote)
    check_html(quote._repr_html_())


def some_answer(**changes: Any) -> Answer:
    exact = {"region": "north", "n": "12", "m": "1.5", "d": "2026-01-02", "t": "2026-01-02T03:04:05.000006"}
    types = {"region": "category", "n": "integer", "m": "number", "d": "date", "t": "timestamp"}
    rows = (exact, dict.fromkeys(exact) | {"region": "south"})
    return replace(
        Answer(
            id="1",
            dataset="people",
            columns=tuple(exact),
            rows=tuple({c: python_value(row[c], types[c]) for c in exact} for row in rows),
            exact_rows=rows,
            epsilon=Fraction(1, 2),
            delta=Fraction(0),
            guarantee=Guarantee(Level.INDIVIDUAL, Fraction(1, 2), Neighbours.REPLACE),
            remaining=Fraction(19, 2),
            margins={"n": Fraction(7), "m": None},
            margin_reasons={"m": "it is not public"},
        ),
        **changes,
    )


def some_guarantee(**changes: Any) -> dict[str, Any]:
    return {**some_answer().to_dict()["guarantee"], **changes}


def test_kinds_are_read_off_the_values_and_nothing_is_made_up() -> None:
    answer = some_answer()
    assert answer.types == {"region": "category", "n": "integer", "m": "number", "d": "date", "t": "timestamp"}
    empty = some_answer(rows=answer.rows[1:], exact_rows=answer.exact_rows[1:], types={})
    assert empty.types == {"region": "category"}
    assert Answer.from_dict(empty.to_dict()) == empty
    told = some_answer(rows=answer.rows[1:], exact_rows=answer.exact_rows[1:], types={"n": "integer"})
    assert told.types == {"region": "category", "n": "integer"}


def test_answers_of_a_party_come_back_as_they_were() -> None:
    columns = {
        "age": {"type": "number", "step": "0.5", "bounds": [0, 3]},
        "born": {"type": "date", "bounds": ["1990-01-01", "2000-01-01"]},
        "region": {"type": "category", "values": ["a", "b"]},
    }
    born = [datetime.date(1991, 1, 1 + i % 20) for i in range(60)]
    data = {"age": [i % 7 / 2 for i in range(60)], "born": born, "region": ["a", "b"] * 30}
    with idios.TrustedParty.open(data, name="t", columns=columns, budget=100) as party:
        for sql in (
            "SELECT MEDIAN(born), KTH_LARGEST(born, 2), MODE(region), COUNT(*), AVG(age) FROM t",
            "SELECT BIN(age, 1.5), COUNT(*) FROM t GROUP BY BIN(age, 1.5)",
            "SELECT region, MAX(age) FROM t GROUP BY region",
        ):
            answer = party.query(sql, 5)
            assert Answer.from_dict(json.loads(answer.to_json())) == answer
            assert set(answer.types) == set(answer.columns)
            quote = party.quote(sql, 5)
            assert Quote.from_dict(json.loads(json.dumps(quote.to_dict()))) == quote


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": 0.5}, "epsilon must be an exact number written as text, got 0.5"),
        ({"epsilon": "1e999999999"}, "epsilon must be an exact number"),
        ({"epsilon": "1/0"}, "epsilon must be an exact number"),
        ({"epsilon": None}, "epsilon must be an exact number"),
        ({"columns": "n"}, "columns must be a list"),
        ({"columns": [1]}, "columns must be a list of texts"),
        ({"columns": ["n"]}, "every row must have the columns n"),
        ({"rows": [[1]]}, "every row must have the columns"),
        ({"types": {}}, "types must give column 'region' one of integer, number"),
        ({"types": None}, "types must be a JSON object, got None"),
        ({"stored": "no"}, "stored must be true or false"),
        ({"guarantee": {"notation": "0.5-iDP", "sentence": "…"}}, "^an answer: guarantee: level must be a text"),
        (
            {"guarantee": some_guarantee(level="total")},
            "^an answer: guarantee: level must be one of individual, group, differential, got 'total'",
        ),
        ({"guarantee": some_guarantee(group=0)}, "a group of at least one record"),
        ({"guarantee": some_guarantee(group=True)}, "group must be a whole number, got True"),
        ({"guarantee": some_guarantee(level="group", group=2, epsilons=["0.5"])}, "one number for each size of group"),
        ({"guarantee": some_guarantee(level="group", group=2, epsilons=["0.5", 1])}, "must be an exact number written"),
        ({"guarantee": some_guarantee(level="group", group=2, epsilons="flat")}, "epsilons must be a list"),
        ({"margin": {"n": 7}}, "margin: n must be an exact number"),
        ({"clipped": {"m": ["1", "2"]}}, "clipped must be a list, got"),
        ({"clipped": [{"m": ["1", "2"]}]}, "clipped must be a list of 2"),
        ({"clipped": [{"m": ["1", "2"]}, []]}, "clipped must be a JSON object"),
        ({"clipped": [{"m": ["1", "2"]}, {"m": ["1"]}]}, "clipped: m must be a list of 2"),
        ({"clipped": [{"m": ["1", "2"]}, {"m": [1, "2"]}]}, "clipped: m must be an exact number written as text"),
        ({"clipped": [{"m": ["1", "1e99"]}, {}]}, "clipped: m must be an exact number written as text"),
        ({"clipped": [{"m": ["1", "9" * 5000]}, {}]}, "clipped: m must be an exact number written as text"),
        ({"clipped": [{"m": ["2", "1"]}, {}]}, "low ≤ high"),
        ({"clipped": [{"region": ["1", "2"]}, {}]}, "clipped must name statistics, which are n, m"),
        ({"clipped": [{"<b>": ["1", "2"]}, {}]}, "clipped must name statistics"),
        ({"clipped": [{"m": None}, {}]}, "clipped: m must be a list"),
    ],
)
def test_what_is_not_an_answer_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        Answer.from_dict({**some_answer().to_dict(), **change})


@pytest.mark.parametrize(
    ("kind", "value"),
    [("integer", "1.5"), ("integer", "1_0"), ("number", "x"), ("number", "9" * 5000), ("date", "x"), ("integer", 7)],
)
def test_values_of_another_type_are_refused(kind: str, value: Any) -> None:
    content = some_answer().to_dict()
    content["types"]["n"], content["rows"][0]["n"] = kind, value
    with pytest.raises(InvalidInput, match="column 'n'"):
        Answer.from_dict(content)
    with pytest.raises(InvalidInput, match="JSON object"):
        Answer.from_dict([])  # type: ignore[arg-type]


def test_pandas() -> None:
    frame = some_answer().to_pandas()
    assert list(frame.columns) == ["region", "n", "m", "d", "t"]
    assert [str(dtype) for dtype in frame.dtypes] == ["string", "Int64", "float64", "datetime64[s]", "datetime64[us]"]
    assert frame["n"][0] == 12
    assert frame["n"].isna().tolist() == [False, True]
    assert frame["t"][0].to_pydatetime() == datetime.datetime(2026, 1, 2, 3, 4, 5, 6)


def test_polars() -> None:
    pl = pytest.importorskip("polars")
    frame = some_answer().to_polars()
    assert frame.schema == {
        "region": pl.String,
        "n": pl.Int64,
        "m": pl.Float64,
        "d": pl.Date,
        "t": pl.Datetime("us"),
    }
    assert frame.rows() == [tuple(row.values()) for row in some_answer().rows]


def test_arrow() -> None:
    table = some_answer().to_arrow()
    types = [pa.string(), pa.int64(), pa.float64(), pa.date32(), pa.timestamp("us")]
    assert table.schema == pa.schema(list(zip(some_answer().columns, types, strict=True)))
    assert table.to_pylist() == list(some_answer().rows)


def test_frames_keep_what_does_not_fit_and_what_is_empty() -> None:
    huge = some_answer(columns=("n",), rows=({"n": 2**70},), exact_rows=({"n": str(2**70)},), margins={"n": None})
    assert huge.to_pandas()["n"][0] == 2**70
    assert huge.to_polars()["n"][0] == 2**70
    assert huge.to_arrow()["n"].to_pylist() == [2**70]
    far = some_answer(columns=("n",), rows=({"n": 10**90},), exact_rows=({"n": str(10**90)},), margins={"n": None})
    assert far.to_arrow()["n"].to_pylist() == [str(10**90)]
    none = some_answer(columns=("n",), rows=({"n": None},), exact_rows=({"n": None},), types={})
    assert none.to_pandas()["n"][0] is None
    assert none.to_polars()["n"][0] is None
    assert none.to_arrow()["n"].to_pylist() == [None]
    bins = some_answer(columns=("b",), rows=({"b": 1.5}, {"b": 3}), exact_rows=({"b": "1.5"}, {"b": "3"}), types={})
    assert bins.to_pandas()["b"].tolist() == bins.to_polars()["b"].to_list() == [1.5, 3.0]
    assert bins.to_arrow()["b"].to_pylist() == [1.5, 3.0]


@pytest.mark.parametrize(
    ("package", "method"), [("pandas", "to_pandas"), ("polars", "to_polars"), ("pyarrow", "to_arrow")]
)
def test_a_missing_package_is_named(package: str, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == package:
            raise ModuleNotFoundError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=f"needs the package {package}: pip install {package}") as caught:
        getattr(some_answer(), method)()
    assert isinstance(caught.value, IdiosError)


class Tags(HTMLParser):
    """Collects what a browser would see, and fails on tags that are not closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.opened: list[str] = []
        self.seen: set[str] = set()
        self.attributes: set[tuple[str, str | None]] = set()
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.opened.append(tag)
        self.seen.add(tag)
        self.attributes.update(attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.opened.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data + "\n"


def check_html(page: str) -> Tags:
    """Only tables and paragraphs, nothing but alignment as style: no script, no colour, nothing loaded."""
    tags = Tags(page)
    assert tags.opened == []
    assert tags.seen <= {"table", "thead", "tbody", "tr", "th", "td", "p"}
    assert tags.attributes <= {("style", "text-align: left"), ("style", "text-align: right")}
    return tags


def test_a_notebook_shows_values_guarantee_cost_and_remaining() -> None:
    seen = check_html(some_answer()._repr_html_()).text
    for part in ("north", "12", "1.5", "NULL", "2026-01-02", "ε = 0.5", "ε = 9.5", "0.5-iDP", "n ± 7"):
        assert part in seen.split("\n"), part
    assert "it is not public" in seen
    assert str(some_answer().guarantee) in seen


@settings(max_examples=50, deadline=None)
@given(answers())
def test_everything_in_a_notebook_is_escaped(answer: Answer) -> None:
    check_html(answer._repr_html_())
    evil = "<script>alert('1')</script>&amp;"
    row = dict.fromkeys(answer.columns, evil)
    clipped = ({evil: (Fraction(0), Fraction(1))}, {})
    changed = replace(
        answer,
        rows=(row, row),
        margins={evil: None},
        margin_reasons={evil: evil},
        types={},
        clipped_rows=clipped,
        interval_rows=(),
        question=evil,
    )
    tags = check_html(changed._repr_html_())
    assert evil in tags.text
    assert f"{evil} clipped to" in tags.text


def test_text_for_people() -> None:
    assert str(some_answer()).splitlines() == [
        "region     n     m  d           t",
        "north     12   1.5  2026-01-02  2026-01-02 03:04:05.000006",
        "south   NULL  NULL  NULL        NULL",
        "0.5-iDP; cost: ε = 0.5; remaining: ε = 9.5",
    ]
    one = some_answer(rows=some_answer().rows[:1], columns=("n",), remaining=None, delta=Fraction(1, 10**6))
    assert str(one) == "n = 12\n0.5-iDP; cost: ε = 0.5, δ = 0.000001; remaining: no limit"
    assert "cost: stored, free" in str(some_answer(stored=True))
    assert "cost: free, invented data" in str(some_answer(sandbox=True))
    assert "\x1b" not in str(some_answer(rows=(dict.fromkeys(one.rows[0], "\x1b[2J"),)))
    medians = {"columns": ("t",), "types": {"t": "timestamp"}, "rows": (), "margins": {"t": None}}
    for stored, shown in (("2026-01-02T00:00:00", "2026-01-02"), ("2026-01-02T12:00:00", "2026-01-02 12:00:00")):
        assert str(some_answer(exact_rows=({"t": stored},), **medians)).startswith(f"t = {shown}\n")


CLIPPED = (Fraction(-1200), Fraction(88000))
BIAS = "An interval allows for what clipping usually takes away, and not for values that lie very far out."


def one_row(**changes: Any) -> Answer:
    row, exact = some_answer().rows[0], some_answer().exact_rows[0]
    return some_answer(rows=({"m": row["m"]},), exact_rows=({"m": exact["m"]},), columns=("m",), **changes)


def test_what_was_clipped_is_told_in_one_sentence() -> None:
    answer = one_row(margins={"m": None}, clipped_rows=({"m": CLIPPED},))
    assert answer.clipped == {"m": (-1200, 88000)}
    assert str(answer).splitlines() == [
        "m = 1.5",
        f"Values outside [−1,200, 88,000] were clipped to it. {BIAS}",
        "0.5-iDP; cost: ε = 0.5; remaining: ε = 9.5",
    ]
    seen = check_html(answer._repr_html_()).text
    assert seen.count(f"Values outside [−1,200, 88,000] were clipped to it. {BIAS}") == 1
    assert answer.to_dict()["clipped"] == [{"m": ["-1200", "88000"]}]
    two = one_row(clipped_rows=({"n": (Fraction(0), Fraction(1, 3)), "m": (Fraction(1, 4), Fraction(5001, 2))},))
    assert two.clipped == {"n": (0, 1 / 3), "m": (0.25, 2500.5)}
    assert two.clipped_note == (
        "n: values outside [0, 0.333333] were clipped to it; m: values outside [0.25, 2,500.5] were clipped to it. "
        f"{BIAS}"
    )


def test_what_was_clipped_in_groups_stands_in_columns() -> None:
    answer = some_answer(clipped_rows=({"m": CLIPPED}, {}))
    assert answer.clipped == ({"m": (-1200, 88000)}, {})
    assert str(answer).splitlines() == [
        "region     n     m  d           t                           m clipped to",
        "north     12   1.5  2026-01-02  2026-01-02 03:04:05.000006  [−1,200, 88,000]",
        "south   NULL  NULL  NULL        NULL",
        BIAS,
        "0.5-iDP; cost: ε = 0.5; remaining: ε = 9.5",
    ]
    seen = check_html(answer._repr_html_()).text
    assert seen.count("[−1,200, 88,000]") == seen.count(BIAS) == 1
    assert list(answer.to_pandas().columns) == ["region", "n", "m", "m_clipped_low", "m_clipped_high", "d", "t"]


def test_an_answer_without_clipping_does_not_mention_it() -> None:
    for answer in (some_answer(), one_row(), some_answer(clipped_rows=({}, {}))):
        assert "clipped" not in str(answer)
        assert "clipped" not in answer._repr_html_()
    assert "clipped" not in some_answer().to_dict()
    assert one_row().clipped == {}
    assert some_answer().clipped == ()


def test_limits_of_any_size_can_be_shown() -> None:
    far = one_row(margins={"m": None}, clipped_rows=({"m": (Fraction(-(10**400), 3), Fraction(10**400))},))
    assert "Values outside [−3.333e399, 1e400]" in str(far)
    assert far.clipped["m"][0] == -(10**400) // 3 + 1


def test_a_long_table_is_cut_short_when_shown() -> None:
    row, exact = some_answer().rows[0], some_answer().exact_rows[0]
    long = some_answer(rows=(row,) * 130, exact_rows=(exact,) * 130)
    assert "… and 30 more rows" in str(long)
    assert "… and 30 more rows" in check_html(long._repr_html_()).text
    assert str(long).count("north") == 100


def test_a_quote_for_people() -> None:
    columns = {"x": {"type": "integer", "bounds": [0, 10]}}
    with idios.TrustedParty.open(
        {"x": list(range(50))}, name="t", columns=columns, budget=1, protection="individual"
    ) as party:
        quote = party.quote("SELECT MEDIAN(x), SUM(x) FROM t", 2)
    said = str(quote)
    assert "cost: ε = 2" in said
    assert "each cell: MEDIAN(x): ε = 1, SUM(x): ε = 1" in said
    assert "remaining before: ε = 1" in said
    assert "remaining after: not affordable: ε = 1 left of the data set's budget" in said
    assert "margin of MEDIAN(x): not public" in said
    assert "margin of SUM(x): ±" in said
    assert said.endswith(str(quote.guarantee))
    assert "not affordable: ε = 1 left of the data set's budget" in check_html(quote._repr_html_()).text.split("\n")


def test_the_guarantee_of_a_group_carries_its_vector_only_where_it_is_not_linear() -> None:
    linear = Guarantee(Level.GROUP, Fraction(1, 2), Neighbours.REPLACE, group=3)
    before = to_json(linear)
    assert set(before) == {"notation", "sentence", "level", "epsilon", "neighbours", "delta", "group"}
    assert from_json(Guarantee, before, "a guarantee") == linear
    flat = Guarantee.for_groups([Fraction(1, 2)] * 3, Neighbours.REPLACE)
    assert to_json(flat)["epsilons"] == ["0.5", "0.5", "0.5"]
    assert from_json(Guarantee, to_json(flat), "a guarantee") == flat


def test_rows_that_are_made_late_are_those_that_were_given() -> None:
    early = some_answer()
    facts = {field.name: getattr(early, field.name) for field in fields(early) if field.name != "rows"}
    by_column = [[row[column] for row in early.exact_rows] for column in early.columns]

    def make_late() -> Answer:
        return Answer(**facts | {"exact_rows": ()}, by_column=by_column)

    assert not {"rows", "exact_rows"} & vars(make_late()).keys(), "nobody has read them"
    assert (make_late().rows, make_late().exact_rows) == (early.rows, early.exact_rows)
    assert (str(make_late()), make_late().to_dict()) == (str(early), early.to_dict())
    for other in (make_late(), copy(make_late()), replace(make_late()), pickle.loads(pickle.dumps(make_late()))):
        assert other == early
        assert other.rows is other.rows

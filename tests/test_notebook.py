"""``%%idios`` in a notebook, its short errors, and frames that are lazy or streams."""

from __future__ import annotations

import ast
import json
import linecache
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import idios
from idios.errors import IdiosError, InvalidInput
from idios.model import Answer, Quote
from idios.notebook import ask, find_party, read_line
from tests.server.office import connect_office

MEDIAN = "SELECT MEDIAN(x) FROM t"


class Shell:
    """What the extension needs of IPython."""

    def __init__(self) -> None:
        self.user_ns: dict[str, Any] = {}
        self.magics: dict[tuple[str, str], Callable[..., Any]] = {}

    def register_magic_function(self, function: Callable[..., Any], magic_kind: str, magic_name: str) -> None:
        self.magics[magic_kind, magic_name] = function


def open_party(source: Any = None, **options: Any) -> idios.TrustedParty:
    data = {"x": list(range(900))} if source is None else source
    return idios.TrustedParty.open(data, name="t", columns={"x": {"type": "integer"}}, budget=4, **options)


@pytest.fixture
def shell() -> Iterator[Shell]:
    loaded = Shell()
    idios.load_ipython_extension(loaded)
    with open_party() as party:
        loaded.user_ns |= {"party": party, "_": party, "same": party, "other": 3}
        yield loaded


def test_a_cell_is_a_question(shell: Shell) -> None:
    magic = shell.magics["line_cell", "idios"]
    assert "%%idios" in (magic.__doc__ or "")
    quoted = magic("-e 0.5 --quote", f"{MEDIAN};\n")
    assert isinstance(quoted, Quote)
    assert str(quoted.cost) == "1/2"
    answer = magic("--epsilon=0.5 -o medians -p same", f"\n{MEDIAN}\n;")
    assert isinstance(answer, Answer)
    assert shell.user_ns["medians"] is answer
    assert magic("-e 0.5 --sandbox", MEDIAN).sandbox
    assert magic(f"-e 0.5 {MEDIAN}").stored
    assert magic(f"-e 0.5 -- again\n{MEDIAN}").stored
    (balance,) = magic("")
    assert str(balance.epsilon.spent) == "1/2"


@pytest.mark.parametrize(
    ("line", "cell", "message"),
    [
        ("", MEDIAN, "say what the question may cost: %%idios -e EPSILON"),
        ("-e 1", "\n ; ", "there is no question"),
        ("-e 1", None, "there is no question"),
        ("-e 1 -x", MEDIAN, "-x is not known"),
        ("-e 1 --qoute", MEDIAN, "--qoute is not known"),
        ("-e 1 please", MEDIAN, "'please' is not known"),
        ("-e 1 -p other", MEDIAN, "there is no party 'other'"),
        ("-e 1 -o 3x", MEDIAN, "-o names a variable, got '3x'"),
        ("-e much", MEDIAN, "epsilon must be"),
    ],
)
def test_what_cannot_be_read_is_told_and_costs_nothing(shell: Shell, line: str, cell: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        ask(shell.user_ns, line, cell)
    assert not shell.user_ns["party"].budget()[0].epsilon.spent


def test_which_party_is_asked() -> None:
    with pytest.raises(InvalidInput, match="no party yet: open one with"):
        find_party({"x": 1})
    with open_party() as one, open_party() as other:
        assert find_party({"one": one, "again": one}) is one
        with pytest.raises(InvalidInput, match="several parties: say which, with -p and one of one, other"):
            find_party({"other": other, "one": one})
    assert read_line("-e 1 -p one").party == "one"


def test_a_server_is_asked_in_the_same_way(tmp_path: Path) -> None:
    with connect_office(tmp_path) as party:
        answer = ask({"party": party}, "-e 0.5", "SELECT COUNT(*) FROM people WHERE age > 40")
        assert isinstance(answer, Answer)
        assert answer.left == "ε = 3.5"
        assert "ada (analyst)" in party._repr_html_()
        assert "Fraction" not in repr(party.datasets()[0].columns[0]) + repr(party.datasets()[0])


def test_an_error_shows_the_message_and_the_line_of_the_caller(shell: Shell) -> None:
    written = "epsilon = 1\nparty.query('SELECT MEDIAN(y) FROM t', epsilon)\n"
    linecache.cache["<cell 7>"] = (len(written), None, written.splitlines(keepends=True), "<cell 7>")
    with pytest.raises(IdiosError) as caught:
        exec(compile(written, "<cell 7>", "exec"), shell.user_ns)
    first, *rest = "\n".join(caught.value._render_traceback_()).splitlines()
    assert first.startswith("QuestionRefused: ")
    assert first.endswith("(line 1, column 15)")
    assert rest == [
        "  SELECT MEDIAN(y) FROM t",
        "                ^",
        "in line 2: party.query('SELECT MEDIAN(y) FROM t', epsilon)",
    ]
    assert InvalidInput("never raised")._render_traceback_() == ["InvalidInput: never raised"]


def test_lazy_frames_and_streams_are_read_once() -> None:
    table = pa.table({"x": list(range(900))})
    collected = []

    def count(frame: pl.DataFrame) -> pl.DataFrame:
        collected.append(1)
        return frame

    lazy = pl.LazyFrame({"x": list(range(1000))}).map_batches(count).filter(pl.col("x") < 900)
    for source in (lazy, pa.RecordBatchReader.from_batches(table.schema, table.to_batches()), table.to_batches()[0]):
        with open_party(source) as party:
            assert party.datasets["t"].dataset.size == 900
            for epsilon in (1, 2):
                assert 300 < party.query(MEDIAN, epsilon).value < 600
    assert len(collected) == 1
    broken = pl.LazyFrame({"x": ["secret"]}).select(pl.col("x").cast(pl.Int64))
    with pytest.raises(idios.SourceError, match="cannot be collected") as caught:
        open_party(broken)
    assert "secret" not in str(caught.value)


def test_the_notebook_of_the_documentation_runs() -> None:
    """Its cells, in their order; whatever they show, shows itself. One that is to fail is marked so."""
    page = json.loads((Path(__file__).parent.parent / "docs" / "notebook.ipynb").read_text())
    cells = [cell for cell in page["cells"] if cell["cell_type"] == "code"]
    assert not any(cell["outputs"] for cell in cells)
    notebook, shown = Shell(), {}
    for number, cell in enumerate(cells):
        source = "".join(cell["source"])
        fails = "raises-exception" in cell["metadata"].get("tags", [])
        expected = (
            pytest.raises(IdiosError) if fails else pytest.warns(idios.NoAnswer) if "nan" in source else nullcontext()
        )
        with expected:
            shown[number] = run_cell(notebook, source)
    tables = [found for found in shown.values() if found is not None]
    assert len(tables) == 7
    assert all("<table" in found._repr_html_() for found in tables)


def run_cell(notebook: Shell, source: str) -> Any:
    """What a cell shows: its magic, or its last expression."""
    if source == "%load_ext idios":
        return idios.load_ipython_extension(notebook)
    if source.startswith("%"):
        line, _, rest = source.lstrip("%").removeprefix("idios").partition("\n")
        return notebook.magics["line_cell", "idios"](line, rest if source.startswith("%%") else None)
    *before, last = ast.parse(source).body
    exec(compile(ast.Module(before, []), "cell", "exec"), notebook.user_ns)
    if isinstance(last, ast.Expr):
        return eval(compile(ast.Expression(last.value), "cell", "eval"), notebook.user_ns)
    return exec(compile(ast.Module([last], []), "cell", "exec"), notebook.user_ns)

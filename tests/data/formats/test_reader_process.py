"""What a file does to the process that reads it is a refusal in the process that asked."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

from idios.data.engines import duckdb, duckdb_sources
from idios.data.formats import csv, files, reader_process, resources, text_files
from idios.data.formats.files import FileKind, FileSource
from idios.errors import SourceError, SourceUnavailable

SOURCE = FileSource(FileKind.EXCEL, Path("book.xlsx"), (Path("book.xlsx"),))
STREAM = """
import json, os, sys
request = json.loads(sys.stdin.readline())
sys.path[:] = request["modules"]
import pyarrow as pa
from idios.data.formats import foreign_files, reader_process
from idios.errors import SourceError
def read(source, **options):
    table = pa.table({"n": [1, 2]})
    TEXT
foreign_files.read_foreign_file = read
reader_process.answer(request)
"""


def run(monkeypatch: pytest.MonkeyPatch, text: str) -> pa.Table:
    """What is returned where the library does this."""
    monkeypatch.setattr(reader_process, "_START", STREAM.replace("TEXT", text))
    return reader_process.run_reader(SOURCE)


def test_a_table_is_returned_and_what_is_printed_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    printing = "print('{}'); os.write(1, b'{}'); os.write(2, b'{}'); return table"
    assert run(monkeypatch, printing).to_pydict() == {"n": [1, 2]}
    assert run(monkeypatch, "return pa.table({})").num_columns == 0


def test_what_is_not_needed_is_not_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrow looks for pandas when it is given a list, and that takes longer than everything else."""
    pytest.importorskip("pandas")
    listed = "pa.array(iter(['x'])); return pa.table({'modules': [name for name in sys.modules if '.' not in name]})"
    imported = run(monkeypatch, listed).column("modules").to_pylist()
    assert "pyarrow" in imported
    assert {"duckdb", "ibis", "pandas", "sqlalchemy", "sqlglot"} & set(imported) == set()


def test_a_table_that_lies_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A value beyond the list of values, as a reader may write it that a file has taken over."""
    lying = "c = pa.DictionaryArray.from_arrays(pa.array([7]), pa.array(['a']), safe=False)\n"
    lying += "    return pa.Table.from_arrays([c], ['c'])"
    with pytest.raises(SourceError, match=r"'book\.xlsx' cannot be read as an Excel file: it is damaged"):
        run(monkeypatch, lying)


def test_a_refusal_is_told_in_its_own_words(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SourceError, match=r"^no sheet 'é'$"):
        run(monkeypatch, r"raise SourceError('no sheet \'é\'')")


ENDINGS = {
    "abort": "os.abort()",
    "segmentation fault": "os.kill(os.getpid(), 11)",
    "exit": "os._exit(0)",
    "panic": "raise BaseException",
    "an error": "raise ValueError",
    "memory": "bytearray(10**12)",
    "memory, bit by bit": "x = [bytes(2**20)]\n    while True: x.append(bytes(2**20))",
    "nothing after the first line": "pa.ipc.new_stream = lambda output, _: (output.flush(), os._exit(0)); return table",
    "half an answer": "pa.ipc.new_stream = lambda output, _: (output.write(b'1'), output.flush(), os.abort())\n"
    "    return table",
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ENDINGS)
def test_a_process_that_ends_is_a_refusal(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "limit_reader", lambda: 0)
    with pytest.raises(SourceError, match=r"'book.xlsx' cannot be read as an Excel file: it is damaged, or .+ 512 MiB"):
        run(monkeypatch, ENDINGS[kind])


def test_what_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader_process, "SECONDS", 1)
    with pytest.raises(SourceError, match="or 1 seconds of a processor"):
        run(monkeypatch, "while True: pass")


def test_what_is_returned_is_as_small_as_what_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "limit_reader", lambda: 0)
    monkeypatch.setattr(reader_process, "LEAST", 192)
    shared = "return pa.Table.from_arrays([pa.array(range(2**22))] * 8, list('abcdefgh'))"
    with pytest.raises(SourceError, match="needs more than 192 MiB"):
        run(monkeypatch, shared)


def test_a_process_that_cannot_be_started_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for python in ("", str(tmp_path / "absent"), str(tmp_path)):
        monkeypatch.setattr(reader_process.sys, "executable", python)
        with pytest.raises(SourceUnavailable, match=r"no process can be started to read 'book\.xlsx'"):
            reader_process.run_reader(SOURCE)


def test_limits_are_those_that_are_documented() -> None:
    documented = Path("docs/files.md").read_text()
    for written in (
        f"at least {reader_process.LEAST} MiB",
        f"{reader_process.SECONDS} seconds of a processor",
        f"{files.LARGEST // 2**30} GiB, or {files.MOST_TIMES} times the size",
        f"columns of csv, names in JSON lines | {csv.MOST_COLUMNS:,} |",
        f"a record of csv, or of JSON lines | {csv.BLOCK // 2**20} MiB |",
        f"{duckdb_sources.MOST_EACH:,} for each byte of the files",
        f"kept in memory between questions | {duckdb.KEPT_TEXT // 2**20} MiB",
    ):
        assert written in documented
    assert csv.BLOCK == text_files.LONGEST
    assert duckdb_sources.MOST_ROWS == 2**30


def test_a_reader_inherits_no_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("IDIOS_TOKEN", "secret")
    read = run(monkeypatch, "return pa.table({'n': list(os.environ)})")
    assert not {"AWS_SECRET_ACCESS_KEY", "IDIOS_TOKEN", "HOME"} & set(read.column("n").to_pylist())


DEEDS = {
    "a command": "os.system('true')",
    "a program": "import subprocess; subprocess.run(['true'])",
    "a fork": "os.fork()",
    "a server": "import socket; socket.create_connection(('127.0.0.1', 9))",
    "a name": "import socket; socket.getaddrinfo('localhost', 9)",
    "a file": "open(request['files'][0] + '.written', 'wb', buffering=0).write(b'x')",
}


@pytest.mark.parametrize("kind", DEEDS)
def test_a_reader_starts_and_sends_and_writes_nothing(
    kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    deed = f"""
    try:
        {DEEDS[kind]}
    except OSError as error:
        return pa.table({{"n": [type(error).__name__]}})
    return table"""
    assert run(monkeypatch, deed).column("n").to_pylist() in (["PermissionError"], ["OSError"])
    assert all(os.path.getsize(path) == 0 for path in tmp_path.iterdir())

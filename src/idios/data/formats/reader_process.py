"""The process in which libraries read files that somebody handed over (``foreign_files``).

Rules:

1. What a file does to its reader it does to that process: one that ends, for whatever reason, is a refusal here.
2. Its memory is limited, so is the size of what it returns, and so is its time: a small file can hold large tables.
3. It inherits no environment, so no credentials, and it starts no program, connects to nothing and writes no file. A
   library that tried would be refused by Python, as far as it is written in Python; none of ours should.

A request is a line of JSON; an answer is a line of JSON, and an Arrow stream if that says nothing else.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any, cast

import pyarrow as pa

from idios.data.formats.files import FileKind, FileSource
from idios.errors import SourceError, SourceUnavailable

SECONDS = 600
"""How much time of a processor a reader may take."""
LEAST = 512
"""Mebibytes that every reader may take."""

_START = """
import json, sys
request = json.loads(sys.stdin.readline())
sys.path[:] = request["modules"]
from idios.data.formats.reader_process import answer
answer(request)
"""
_INHERITED = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT", "TMPDIR", "TEMP", "TZ")
_SET = {"ARROW_DEFAULT_MEMORY_POOL": "system", "OPENBLAS_NUM_THREADS": "1", "RUST_BACKTRACE": "0"}
_REFUSED = ("subprocess.", "socket.", "os.system", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "os.startfile")
"""What Python announces before it starts a program or connects to a server."""


def run_reader(
    source: FileSource, wanted: Sequence[str] | None = None, most: int | None = None, *, records: bool = True
) -> pa.Table:
    """What ``read_foreign_file`` returns, read in a process of its own."""
    from idios.data.formats.resources import limit_reader  # which imports DuckDB, that no reader needs

    memory = max(LEAST, limit_reader()) * 2**20
    request = {
        "modules": [str(path) for path in sys.path],
        "memory": memory,
        "seconds": SECONDS,
        "kind": source.kind.value,
        "path": str(source.path),
        "files": [str(path) for path in source.files],
        "table": source.table,
        "options": {"wanted": None if wanted is None else list(wanted), "most": most, "records": records},
    }
    inherited = {key: os.environ[key] for key in _INHERITED if key in os.environ}
    environment = inherited | _SET
    command = [sys.executable, "-I", "-c", _START]
    pipe = subprocess.PIPE
    try:
        process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env=environment)
    except OSError as error:
        raise SourceUnavailable(f"no process can be started to read {source.path.name!r}: {error.strerror}") from None
    with process:
        if process.stdin is None or process.stdout is None:
            raise AssertionError("the process has pipes")
        try:
            with suppress(BrokenPipeError):
                process.stdin.write(json.dumps(request).encode() + b"\n")
                process.stdin.flush()
            header = process.stdout.readline(2**20)
            answered = json.loads(header) if header.endswith(b"\n") else {}
            if "refused" in answered:
                raise SourceError(answered["refused"])
            if answered:
                table = pa.ipc.open_stream(_Limited(process.stdout, memory)).read_all()
                table.validate(full=True)  # lengths that lie would be read beyond their buffers
                return table
        except (pa.ArrowException, OSError, _TooLarge):
            pass  # it ended while it wrote, or wrote too much
        finally:
            process.kill()
    raise SourceError(
        f"{source.path.name!r} cannot be read as {source.kind.in_words}: it is damaged, or its reader needs more than "
        f"{memory // 2**20:,} MiB of memory, or {SECONDS} seconds of a processor"
    )


class _TooLarge(Exception):
    """More was returned than the memory of a reader holds."""


class _Limited:
    """A pipe that ends with an error after so many bytes."""

    closed = False

    def __init__(self, pipe: IO[bytes], most: int) -> None:
        self._pipe, self._left = pipe, most

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        if size > self._left:
            raise _TooLarge
        content = self._pipe.read(size)
        self._left -= len(content)
        return content

    def close(self) -> None:
        """Leave the pipe to its process."""
        self.closed = True


def answer(request: dict[str, Any]) -> None:
    """Read what was requested, and write it to the standard output; in a process that does nothing else."""
    from idios.data.formats.foreign_files import read_foreign_file

    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no part of the answer
    _limit(request["memory"], request["seconds"])
    sys.meta_path.insert(0, cast(Any, SimpleNamespace(find_spec=_leave_out)))
    sys.addaudithook(_refuse)
    paths = tuple(Path(path) for path in request["files"])
    source = FileSource(FileKind(request["kind"]), Path(request["path"]), paths, request["table"])
    try:
        table = read_foreign_file(source, **request["options"])
    except SourceError as error:
        output.write(json.dumps({"refused": str(error)}).encode() + b"\n")
    else:
        output.write(b'{"read": true}\n')
        with pa.ipc.new_stream(output, table.schema) as stream:
            stream.write_table(table)
    output.flush()
    os._exit(0)  # threads of libraries are not waited for


def _leave_out(name: str, *_: object) -> None:
    if name == "pandas":  # which Arrow looks for, whatever it is given, and no reader needs: most of the time of a file
        raise ModuleNotFoundError(name=name)


def _limit(memory: int, seconds: int) -> None:
    try:
        import resource
    except ImportError:  # Windows, where the process is the only limit
        return
    limits = {resource.RLIMIT_DATA: memory, resource.RLIMIT_CPU: seconds, resource.RLIMIT_FSIZE: 0}
    for limit, most in {**limits, resource.RLIMIT_CORE: 0}.items():
        with suppress(ValueError, OSError):  # a lower one is set, or the system has none of the kind
            resource.setrlimit(limit, (most, most))


def _refuse(event: str, _: object) -> None:
    if event.startswith(_REFUSED):
        raise PermissionError(f"a reader of files may not do this: {event}")

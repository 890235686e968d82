"""Files as sources: which kind each is, and which files a source stands for.

Rules:

1. The kind follows from the ending of the name, or from a declared csv format; the content never decides it. Content
   that begins like another kind is refused with a word about that.
2. A name is one of a file, or a pattern, or a folder. What is not there is an error that names what is similar; nothing
   else is opened instead.
3. A pattern or a folder stands for Parquet files. They are listed once, when the source is opened, in the order of
   their names; names that begin with ``.`` or ``_`` are left out, as Spark does.
4. What lies in a folder is read from that folder: a link in it that leads out of it is refused. A source that is itself
   a link is followed, as its name was written by the controller.
5. A small file does not become an endless one: what is compressed as a whole ends at a multiple of its size.
"""

from __future__ import annotations

import glob
import gzip
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from importlib import import_module
from os.path import exists, isdir, isfile  # those of Path fail where a text is too long for a name
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, BinaryIO, Self, cast

from idios.errors import SourceError


class FileKind(StrEnum):
    """What a file is, in words."""

    CSV = "csv"
    JSON_LINES = "JSON lines"
    EXCEL = "Excel"
    STATA = "Stata"
    SPSS = "SPSS"
    SAS = "SAS transport"
    PARQUET = "Parquet"
    ARROW = "Arrow"
    DUCKDB = "DuckDB"
    DELTA = "Delta"
    ICEBERG = "Iceberg"
    GZIP = "gzip"

    @property
    def in_words(self) -> str:
        """A file of this kind."""
        article = "an" if self.startswith(("Arrow", "Excel", "SPSS", "Iceberg")) else "a"
        return f"{article} {self} {'table' if self in (FileKind.DELTA, FileKind.ICEBERG) else 'file'}"


ENDINGS = {
    ".csv": FileKind.CSV,
    ".tsv": FileKind.CSV,
    ".txt": FileKind.CSV,
    ".jsonl": FileKind.JSON_LINES,
    ".ndjson": FileKind.JSON_LINES,
    ".xlsx": FileKind.EXCEL,
    ".dta": FileKind.STATA,
    ".sav": FileKind.SPSS,
    ".zsav": FileKind.SPSS,
    ".xpt": FileKind.SAS,
    ".parquet": FileKind.PARQUET,
    ".arrow": FileKind.ARROW,
    ".feather": FileKind.ARROW,
    ".duckdb": FileKind.DUCKDB,
}
COMPRESSED = ".gz"
PACKED = (FileKind.CSV, FileKind.JSON_LINES)
"""What may be compressed as a whole."""
UNTYPED = (*PACKED, FileKind.EXCEL, FileKind.STATA, FileKind.SPSS, FileKind.SAS)
"""What is read as text under declared columns."""
UNKNOWN_TO_DUCKDB = (FileKind.ARROW, FileKind.DELTA, FileKind.ICEBERG)
"""What has types, and is read into memory when it is opened."""
LARGEST, MOST_TIMES = 2**30, 200
"""The content of a compressed file has at most so many bytes, or is at most so many times as large as the file."""
WITH_TABLES = {FileKind.EXCEL: "sheets", FileKind.DUCKDB: "tables"}
FILES = "a .csv, .parquet, .xlsx, .jsonl, .arrow, .dta, .sav or .xpt file, or file.duckdb::table"
EXTRAS = {
    "python_calamine": "excel",
    "pyreadstat": "statistics-files",
    "deltalake": "delta",
    "pyiceberg.table": "iceberg",
}
"""The modules that read what the plain install does not, and what installs them."""

_BEGINNINGS = {
    b"PAR1": FileKind.PARQUET,
    b"PK\x03\x04": FileKind.EXCEL,
    b"ARROW1": FileKind.ARROW,
    b"FEA1": FileKind.ARROW,
    b"$FL2@(#)": FileKind.SPSS,
    b"$FL3@(#)": FileKind.SPSS,
    b"<stata_dta>": FileKind.STATA,
    b"HEADER RECORD*******LIB": FileKind.SAS,
    b"\x1f\x8b": FileKind.GZIP,
}
_TEXTUAL = (FileKind.SPSS, FileKind.STATA, FileKind.SAS)
"""What begins with text that nothing else begins with."""
_DUCKDB = b"DUCK"
"""It stands at the eighth byte."""


@dataclass(frozen=True)
class FileSource:
    """The files of a source, what they are, and the table or sheet that is named in one."""

    kind: FileKind
    path: Path
    """The file, or the folder or pattern that was written."""
    files: tuple[Path, ...]
    table: str = ""
    base: Path | None = None
    """The folder below which the files of a folder or pattern are."""

    @property
    def compressed(self) -> bool:
        """Whether it is read through gzip."""
        return self.path.name.lower().endswith(COMPRESSED)


def find_files(source: object, *, is_csv: bool = False) -> FileSource:
    """The files that a source is now; ``is_csv`` declares a file of any ending that has no other meaning as csv."""
    written, _, table = str(source).partition("::")
    path = Path(written).absolute()
    if isdir(path):
        found = _find_folder(path, written)
    elif isfile(path):
        found = FileSource(_find_kind(path, written, is_csv), path, (path,), table)
    elif glob.has_magic(written) and path.suffix.lower() == ".parquet":
        base = _find_base(path)
        listed = _keep_visible((Path(each) for each in glob.glob(str(path), recursive=True)), base)
        if not listed:
            raise SourceError(f"no file matches {written!r}")
        _refuse_links(listed, base)
        found = FileSource(FileKind.PARQUET, path, listed, base=base)
    else:
        raise SourceError(describe_absent(written))
    if table and found.kind not in WITH_TABLES:
        raise SourceError(
            f"only a .duckdb file has tables and an .xlsx file sheets to choose from: write {written!r} alone"
        )
    return found


def is_csv_file(source: object) -> bool:
    """Whether a source is called like a csv file, compressed or not."""
    return isinstance(source, str | Path) and _find_ending(Path(source)) in (".csv", ".tsv", ".txt")


def may_be_csv(source: object) -> bool:
    """Whether a source is a file that can be declared as csv: no address, and called like nothing else."""
    if not isinstance(source, str | Path) or "://" in str(source) or "::" in str(source):
        return False
    return ENDINGS.get(_find_ending(Path(source)), FileKind.CSV) is FileKind.CSV


def read_stem(written: str) -> str:
    """The name that the data of a file, pattern or folder goes by.

    >>> read_stem("shop/orders.csv.gz"), read_stem("shop/orders/*/*.parquet"), read_stem("shop/orders/")
    ('orders', 'orders', 'orders')
    """
    path = Path(written)
    if glob.has_magic(written) and not exists(path):
        path = _find_base(path.absolute())
    return Path(path.stem).stem if path.suffix.lower() == COMPRESSED else path.stem


def describe_absent(written: str) -> str:
    """What is said of a file that is not there."""
    path = Path(written)
    try:
        names = [each.name for each in path.absolute().parent.iterdir()]
    except OSError:
        names = []
    similar = get_close_matches(path.name, names, n=1, cutoff=0.8)
    return f"there is no file {written!r}" + (f"; did you mean {similar[0]!r}?" if similar else "")


def recognise(path: Path) -> FileKind | None:
    """The kind that a file begins like; None if that is text, or nothing that is known.

    A csv file may begin with the name PAR1, or have DUCK at the eighth place, but no control characters beside it.
    """
    with path.open("rb") as file:
        beginning = file.read(32)
    found = next((kind for mark, kind in _BEGINNINGS.items() if beginning.startswith(mark)), None)
    if beginning[8:12] == _DUCKDB:
        found = FileKind.DUCKDB
    return found if found in _TEXTUAL or any(byte < ord("\t") for byte in beginning) else None


def refuse_mislabelled(source: FileSource) -> None:
    """Say so if a file begins like one of another kind than its name says."""
    for path in () if source.kind in (FileKind.DELTA, FileKind.ICEBERG) else source.files:
        try:
            found = recognise(path)
        except OSError as error:
            raise SourceError(f"{path.name!r} cannot be read: {error.strerror}") from None
        expected = FileKind.GZIP if source.compressed else source.kind
        if found is not None and found is not expected:
            endings = " or ".join(_list_endings(found)) or COMPRESSED
            raise SourceError(
                f"{path.name!r} is called like {expected.in_words} and begins like {found.in_words}: give it the "
                f"ending {endings}"
            )
        if found is None and source.compressed:
            raise SourceError(f"{path.name!r} is not compressed: take {COMPRESSED} off its name")


def import_reader(module: str) -> ModuleType:
    """What reads a format that the plain install does not, imported when it is needed."""
    try:
        return import_module(module)
    except ImportError as error:
        raise SourceError(
            f"this file needs a reader that is not installed ({error.name}): pip install 'idios[{EXTRAS[module]}]'"
        ) from error


class ContentReader:
    """The content of a file, decompressed if it is called .gz."""

    def __init__(self, path: Path) -> None:
        try:
            self._raw: BinaryIO = path.open("rb")
        except OSError as error:
            raise SourceError(f"{path.name!r} cannot be read: {error.strerror}") from None
        self._name, self._size = path.name, max(1, path.stat().st_size)
        self._content: BinaryIO = self._raw
        self._left = max(LARGEST, MOST_TIMES * self._size)
        if path.name.lower().endswith(COMPRESSED):
            self._content = cast(BinaryIO, gzip.GzipFile(fileobj=self._raw))

    def read(self, size: int) -> bytes:
        """The next bytes, at most so many; none at the end."""
        try:
            content = self._content.read(size)
        except (EOFError, zlib.error, gzip.BadGzipFile):
            raise SourceError(f"{self._name!r} cannot be decompressed: it is damaged, or was cut off") from None
        self._left -= len(content)
        if self._left < 0 and self._content is not self._raw:
            raise SourceError(
                f"{self._name!r} is not read: decompressed it is larger than {LARGEST // 2**30} GiB and more than "
                f"{MOST_TIMES} times as large as the file. Decompress it yourself if that is what it should be"
            )
        return content

    @property
    def share(self) -> float:
        """The share of the file that was read."""
        return min(1.0, self._raw.tell() / self._size)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._raw.close()


@dataclass(frozen=True)
class OpenedFile:
    """A file as it was when it was opened: its path, which file it is, its size and its time."""

    path: Path
    facts: tuple[int, ...]

    @classmethod
    def list(cls, source: Any) -> tuple[OpenedFile, ...]:
        """The files behind a source; none if it is something else, or not there."""
        if not isinstance(source, str | Path):
            return ()
        try:
            return tuple(cls(path, _read_facts(path)) for path in find_files(source, is_csv=True).files)
        except (SourceError, OSError):
            return ()

    @property
    def changed(self) -> bool:
        """Whether it was replaced, written to or removed since."""
        try:
            return _read_facts(self.path) != self.facts
        except OSError:
            return True


def describe_files(files: Sequence[OpenedFile]) -> str:
    """Text that is another one when the size or time of a file is, or, of several, the name of one."""
    if len(files) == 1:
        return _describe(files[0])
    return "\n".join(f"{file.path.name}: {_describe(file)}" for file in files)


def _describe(file: OpenedFile) -> str:
    _, _, size, time = file.facts
    return f"{size} bytes, {time} ns"


def _read_facts(path: Path) -> tuple[int, ...]:
    status = path.stat()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _find_ending(path: Path) -> str:
    name = path.name.lower()
    kept = name.removesuffix(COMPRESSED)
    return Path(kept).suffix if kept == name or ENDINGS.get(Path(kept).suffix) in PACKED else COMPRESSED


def _find_kind(path: Path, written: str, is_csv: bool) -> FileKind:
    kind = ENDINGS.get(_find_ending(path))
    if kind is None and is_csv:
        return FileKind.CSV
    if kind is None:
        raise SourceError(
            f"a source file must be {FILES}, got {written!r}; of a text file with another ending declare how it is "
            'written, such as csv = { delimiter = ";" }'
        )
    return kind


def _find_base(pattern: Path) -> Path:
    """The folder below which the files of a pattern are."""
    return next(folder for folder in pattern.parents if not glob.has_magic(str(folder)) or isdir(folder))


def _find_folder(path: Path, written: str) -> FileSource:
    """A folder: a table of Delta or Iceberg if it has their logs, else its Parquet files."""
    if (path / "_delta_log").is_dir():
        _refuse_links((path / "_delta_log").rglob("*"), path)
        return FileSource(FileKind.DELTA, path, tuple(sorted((path / "_delta_log").iterdir())))
    versions = list((path / "metadata").glob("*.metadata.json"))
    if versions:
        newest = _find_newest(versions)
        _refuse_links([newest], path)
        return FileSource(FileKind.ICEBERG, path, (newest,))
    listed = _keep_visible(path.rglob("*.parquet"), path)
    if not listed:
        raise SourceError(f"the folder {written!r} has no .parquet files")
    _refuse_links(listed, path)
    return FileSource(FileKind.PARQUET, path, listed, base=path)


def _refuse_links(paths: Iterable[Path], folder: Path) -> None:
    """Refuse a folder from which a link leads elsewhere: whoever hands over a folder must not choose other files."""
    whole = folder.resolve()
    for path in paths:
        if not path.resolve().is_relative_to(whole):
            raise SourceError(
                f"{str(path.relative_to(folder))!r} is a link that leads out of the folder {folder.name!r}, and is not "
                "followed: put the file itself there, or name it as the source"
            )
        if path.exists() and not (path.is_file() or path.is_dir()):  # a pipe, which is waited for without end
            raise SourceError(f"{str(path.relative_to(folder))!r} in the folder {folder.name!r} is no file")


def _find_newest(versions: Sequence[Path]) -> Path:
    """The metadata of an Iceberg table with the highest number: 00002-….metadata.json, v2.metadata.json."""

    def read_number(path: Path) -> int:
        digits = path.name.lstrip("v").partition("-")[0].partition(".")[0]
        return int(digits) if digits.isdecimal() else -1

    return max(versions, key=lambda path: (read_number(path), path.name))


def _keep_visible(paths: Iterable[Path], folder: Path) -> tuple[Path, ...]:
    """The files among some paths, sorted, without hidden ones: whose name, or a folder's, begins with . or _."""
    return tuple(
        sorted(
            path
            for path in paths
            if path.is_file() and not any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
        )
    )


def _list_endings(kind: FileKind) -> list[str]:
    return [ending for ending, each in ENDINGS.items() if each is kind]

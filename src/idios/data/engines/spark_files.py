"""A folder of Parquet files as it was when it was opened: the files that were there, and no others.

Spark reads a folder as it finds it, statement by statement, and the rounds of one question are several statements. So
the files are listed once, with their sizes and times, and a view of just those is what all questions read:

1. A file that is added later is not seen until the data set is opened again.
2. A file that was replaced, written to or removed is noticed before the next question is charged, and again before
   what was read is released.

The list is Spark's own (the source ``binaryFile`` without its content), so it is the same in Spark Connect, and no
record is read for it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from idios.errors import SourceError, SourceUnavailable

_PATTERN_CHARACTERS = re.compile(r"([][{}*?\\])")
"""What Hadoop reads as a pattern in a path."""


@dataclass(frozen=True)
class PinnedFiles:
    """The files below a path: the name, the size in bytes and the time in microseconds of each."""

    path: str
    files: frozenset[tuple[str, int, int]]

    @classmethod
    def list(cls, session: SparkSession, path: str) -> PinnedFiles:
        """What lies below a path now, without what Spark ignores: names that begin with ``.`` or ``_``."""
        try:
            listed = session.read.format("binaryFile").load(escape_pattern(path))
            facts = listed.selectExpr("path", "length", "unix_micros(modificationTime) AS time").collect()
        except AnalysisException as error:
            raise SourceError(f"Spark finds nothing at the path {path}") from error
        except Exception as error:  # of Java, or of what holds the files
            raise SourceUnavailable(f"Spark cannot list the files at {path} at the moment, or may not") from error
        if not facts:
            raise SourceError(f"the path {path} has no files")
        return cls(path, frozenset((fact["path"], fact["length"], fact["time"]) for fact in facts))

    def read(self, session: SparkSession) -> DataFrame:
        """These files, with the columns that the names of folders tell (``year=2024``)."""
        names = sorted(name for name, _, _ in self.files)
        reader = session.read
        if any(_below(name) != _below(self.path) for name in names):  # else the path is the file itself
            reader = reader.option("basePath", self.path)  # which is taken as it is
        try:
            return reader.parquet(*map(escape_pattern, names))
        except Exception as error:  # Java's own, of a footer that is none
            raise SourceError(f"the files at {self.path} are not Parquet, or may not be read") from error

    def is_kept(self, session: SparkSession) -> bool:
        """Whether each file is there as it was; others may have come."""
        try:
            return self.files <= PinnedFiles.list(session, self.path).files
        except SourceUnavailable:
            raise
        except SourceError:
            return False

    @property
    def facts(self) -> str:
        """Text that is another one when a file is."""
        return "\n".join(f"{name} {size} {time}" for name, size, time in sorted(self.files))


def escape_pattern(path: str) -> str:
    """A path as Spark takes it, whatever characters it has.

    >>> escape_pattern("/data/[a]*")
    '/data/\\\\[a\\\\]\\\\*'
    """
    return _PATTERN_CHARACTERS.sub(r"\\\1", path)


def _below(path: str) -> str:
    """A path without its file system, as ``file:/data`` and ``/data`` are one."""
    return re.sub(r"^[a-zA-Z][a-zA-Z0-9+.-]*:(//[^/]*)?", "", path).rstrip("/")

"""Fields of text as the kinds of columns: how each is written, and the SQL that reads it.

Formats without types (csv, JSON lines, Excel) and formats whose types say little of what a column means (Stata, SPSS,
SAS, which hold codes, counts and amounts as floats) give text for every field; from there on all of them are one.

    integer     digits with a sign, or true and false
    number      digits, the decimal mark, an exponent
    decimal     up to 20 digits before and 18 after the decimal mark
    date        2024-12-31
    timestamp   2024-12-31 23:59, 2024-12-31T23:59:59.999999+01:00; UTC where no offset is written; 2024-12-31 is its
                first moment
    category    any text, blanks included

With a format of their own (``declare/dates.py``), dates and timestamps are written in that alone; cells of Excel
that are dates stay dates. With a mark of thousands, whole numbers, numbers and decimals may have it before every three
digits, or nowhere.

Blanks around a field aside, what is not written so cannot be read, and ``check`` counts it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import ibis.expr.datatypes as dt  # type: ignore[import-untyped]
import pyarrow as pa

from idios.core.domain import Kind
from idios.data.engines.duckdb_dialect import DIALECT
from idios.declare.dates import write_form

_DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
FORMS: dict[Kind, tuple[str, str, dt.DataType]] = {
    Kind.INTEGER: (r"[+-]?0*[0-9]{1,38}", "HUGEINT", dt.Decimal(38, 0)),
    Kind.NUMBER: (r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", "DOUBLE", dt.float64),
    Kind.DECIMAL: (r"[+-]?([0-9]{1,20}(\.[0-9]{0,18})?|\.[0-9]{1,18})", "DECIMAL(38, 18)", dt.Decimal(38, 18)),
    Kind.DATE: (_DATE, "DATE", dt.date),
    Kind.TIMESTAMP: (
        _DATE + r"([ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?(Z|[+-][0-9]{2}(:?[0-9]{2})?)?)?",
        "TIMESTAMPTZ",
        dt.Timestamp(timezone="UTC", scale=6),
    ),
}
"""By kind: how a field is written, as what it is cast, and what that gives."""
BLANKS = " \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
"""What DuckDB's trim takes away."""
_MARKED = (Kind.NUMBER, Kind.DECIMAL)
"""The kinds that are written with a decimal mark."""
_GROUPED = (Kind.INTEGER, *_MARKED)
"""The kinds that are written with marks of thousands, if there are any."""


THOUSANDS = {".": "[.]", ",": ",", " ": "[ \u00a0\u202f]", "'": "['\u2019]"}
"""What may stand before every three digits, and what is read as it: blanks that do not break lines are blanks."""


@dataclass(frozen=True)
class Notation:
    """How the numbers of a file are written; ``dated`` says that dates have a type of their own, and are ISO 8601."""

    decimal: str = "."
    thousands: str = ""
    dated: bool = False

    @property
    def grouped(self) -> str:
        """The regular expression of numbers with marks of thousands."""
        mark, point = THOUSANDS[self.thousands], f"[{self.decimal}]"
        return rf"[+-]?[0-9]{{1,3}}({mark}[0-9]{{3}})+({point}[0-9]*)?([eE][+-]?[0-9]+)?"

    def normalise(self, field: str) -> str:
        """A number as Python writes it; what is none becomes none. The same as what ``parse_field`` writes in SQL.

        >>> Notation(",", ".").normalise("1.234,5"), Notation(",", ".").normalise("1.5")
        ('1234.5', '1,5')
        """
        if self.thousands and re.fullmatch(self.grouped, field):
            field = re.sub(THOUSANDS[self.thousands], "", field)
        return field.translate(_SWAPPED) if self.decimal == "," else field


PLAIN, DATED = Notation(), Notation(dated=True)
_SWAPPED = str.maketrans(",.", ".,")


def parse_field(kind: Kind, field: str, notation: Notation = PLAIN, format: str = "") -> tuple[str, dt.DataType]:
    """The SQL that reads one text field as a kind, and the type it gives; dates may have a ``format``."""
    if kind is Kind.CATEGORY:
        return field, dt.string
    form, type_name, held = FORMS[kind]
    text = f"trim({field})"
    if format:
        moment = f"CAST(try_strptime({text}, {DIALECT.string(format)}) AS {type_name})"
        value = f"WHEN regexp_full_match({text}, {DIALECT.string(write_form(format))}) THEN {moment}"
        value += f" WHEN regexp_full_match({text}, '{form}') THEN TRY_CAST({text} AS {type_name})" * notation.dated
        return f"CASE {value} END", held
    if kind in _GROUPED and notation.thousands:
        mark, grouped = DIALECT.string(THOUSANDS[notation.thousands]), DIALECT.string(notation.grouped)
        bare = f"regexp_replace({text}, {mark}, '', 'g')"
        text = f"CASE WHEN regexp_full_match({text}, {grouped}) THEN {bare} ELSE {text} END"
    if kind in _MARKED and notation.decimal != ".":
        # a point is no decimal mark then, and must not become one
        text = f"translate({text}, '{notation.decimal}.', '.{notation.decimal}')"
    value = f"WHEN regexp_full_match({text}, '{form}') THEN TRY_CAST({text} AS {type_name})"
    if kind is Kind.INTEGER:
        # what is too long for the type lies beyond every grid, and reads as its end
        value += f" WHEN regexp_full_match({text}, '[+]?[0-9]+') THEN CAST('{10**38}' AS HUGEINT)"
        value += f" WHEN regexp_full_match({text}, '-[0-9]+') THEN CAST('{-(10**38)}' AS HUGEINT)"
        value += f" WHEN lower({text}) = 'true' THEN 1 WHEN lower({text}) = 'false' THEN 0"
    return f"CASE {value} END", held


def hold_fields(columns: Sequence[Sequence[str | None] | pa.ChunkedArray]) -> pa.Table:
    """Columns of text as a table of field0, field1, …; half a character reads as a replacement for it."""
    try:
        arrays = [pa.array(column, pa.string()) if isinstance(column, Sequence) else column for column in columns]
    except UnicodeEncodeError:
        arrays = [pa.array([_mend(field) for field in column], pa.string()) for column in columns]
    return pa.Table.from_arrays(arrays, [f"field{i}" for i in range(len(columns))])


def _mend(field: str | None) -> str | None:
    return None if field is None else field.encode("utf-8", "replace").decode()

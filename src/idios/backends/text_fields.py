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

Blanks around a field aside, what is not written so cannot be read, and ``check`` counts it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

import ibis.expr.datatypes as dt  # type: ignore[import-untyped]
import pyarrow as pa

from idios.core.domain import Kind

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
_MARKED = (Kind.NUMBER, Kind.DECIMAL)
"""The kinds that are written with a decimal mark."""


def parse_field(kind: Kind, field: str, decimal: str = ".") -> tuple[str, dt.DataType]:
    """The SQL that reads one text field as a kind, and the type it gives."""
    if kind is Kind.CATEGORY:
        return field, dt.string
    form, type_name, held = FORMS[kind]
    text = f"trim({field})"
    if kind in _MARKED and decimal != ".":
        # a point is no decimal mark then, and must not become one
        text = f"translate({text}, '{decimal}.', '.{decimal}')"
    value = f"WHEN regexp_full_match({text}, '{form}') THEN TRY_CAST({text} AS {type_name})"
    if kind is Kind.INTEGER:
        # what is too long for the type lies beyond every grid, and reads as its end
        value += f" WHEN regexp_full_match({text}, '[+]?[0-9]+') THEN CAST('{10**38}' AS HUGEINT)"
        value += f" WHEN regexp_full_match({text}, '-[0-9]+') THEN CAST('{-(10**38)}' AS HUGEINT)"
        value += f" WHEN lower({text}) = 'true' THEN 1 WHEN lower({text}) = 'false' THEN 0"
    return f"CASE {value} END", held


_ORDER = (Kind.INTEGER, Kind.NUMBER, Kind.DATE, Kind.TIMESTAMP)


def propose_kind(fields: Sequence[str], decimal: str = ".", nulls: Collection[str] = ()) -> Kind:
    """The kind that all of some fields, none of them empty, can be read as; text if there is no other.

    >>> propose_kind(["1,5", "NA"], ",", ["NA"])
    <Kind.NUMBER: 'number'>
    """
    known = [field for field in fields if field not in nulls]
    if known and all(field.lower() in ("true", "false") for field in known):
        return Kind.INTEGER
    marked = [field.replace(",", ".") for field in known] if decimal == "," else known
    for kind in _ORDER:
        if known and all(re.fullmatch(FORMS[kind][0], field) for field in marked):
            return kind
    return Kind.CATEGORY


def hold_fields(columns: Sequence[Sequence[str | None]]) -> pa.Table:
    """Columns of text as a table of field0, field1, …; half a character reads as a replacement for it."""
    try:
        arrays = [pa.array(column, pa.string()) for column in columns]
    except UnicodeEncodeError:
        arrays = [pa.array([_mend(field) for field in column], pa.string()) for column in columns]
    return pa.Table.from_arrays(arrays, [f"field{i}" for i in range(len(columns))])


def _mend(field: str | None) -> str | None:
    return None if field is None else field.encode("utf-8", "replace").decode()


def propose_kinds(columns: Mapping[str, Sequence[str | None]]) -> list[tuple[str, Kind, int]]:
    """The kinds that columns of text can be read as."""
    stripped = {name: [field.strip(" ") for field in fields if field] for name, fields in columns.items()}
    return [(name, propose_kind([field for field in fields if field]), 0) for name, fields in stripped.items()]

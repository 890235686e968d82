"""CSV files, read as the declared types and nothing else.

Every field is text first. It is read as its column's kind if, blanks around it aside, it is written as follows;
otherwise it reads as NULL and ``check`` counts it. An empty field is NULL.

    integer     up to 38 digits with a sign, or true and false
    number      digits, a decimal point, an exponent
    decimal     up to 20 digits before and 18 after a decimal point
    date        2024-12-31
    timestamp   2024-12-31 23:59, 2024-12-31T23:59:59.999999+01:00; UTC where no offset is written
    category    any text, blanks included
"""

from __future__ import annotations

import ibis.expr.datatypes as dt  # type: ignore[import-untyped]

from idios.core.domain import Kind

OPTIONS = (
    "all_varchar = true, header = true, skip = 0, comment = '', strict_mode = true, ignore_errors = false, "
    "null_padding = false"
)
"""Nothing is skipped: a line that does not fit is an error, never one line less."""

GUESSED = "header = true, skip = 0, comment = '', dateformat = '%Y-%m-%d'"
"""For a first look at the types."""

_DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_FORMS: dict[Kind, tuple[str, str, dt.DataType]] = {
    Kind.INTEGER: (r"[+-]?[0-9]{1,38}", "HUGEINT", dt.Decimal(38, 0)),
    Kind.NUMBER: (r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", "DOUBLE", dt.float64),
    Kind.DECIMAL: (r"[+-]?([0-9]{1,20}(\.[0-9]{0,18})?|\.[0-9]{1,18})", "DECIMAL(38, 18)", dt.Decimal(38, 18)),
    Kind.DATE: (_DATE, "DATE", dt.date),
    Kind.TIMESTAMP: (
        _DATE + r"[ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?(Z|[+-][0-9]{2}(:?[0-9]{2})?)?",
        "TIMESTAMPTZ",
        dt.Timestamp(timezone="UTC"),
    ),
}


def parsed(kind: Kind, field: str) -> tuple[str, dt.DataType]:
    """The SQL that reads one text field as a kind, and the type it gives."""
    if kind is Kind.CATEGORY:
        return field, dt.string
    form, type_name, held = _FORMS[kind]
    text = f"trim({field})"
    value = f"WHEN regexp_full_match({text}, '{form}') THEN TRY_CAST({text} AS {type_name})"
    if kind is Kind.INTEGER:
        value += f" WHEN lower({text}) = 'true' THEN 1 WHEN lower({text}) = 'false' THEN 0"
    return f"CASE {value} END", held

"""Values for people: plain text for terminals, HTML for notebooks, data frames of pandas and polars, Arrow tables.

The HTML uses no colours and no style sheet: a notebook's own, light or dark, applies. Everything in it is escaped.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from html import escape
from json import dumps
from typing import Any, Generic, TypeVar
from unicodedata import category

from idios.core.exact import Extended, text
from idios.errors import IdiosError

T = TypeVar("T")

MOST_ROWS = 100
"""How many rows of a table are shown; the rest is counted."""


LONG = 10**21
"""From here on a number is a power of ten: its digits would fill a page."""
_EXPONENT = re.compile(r"\.?0*e([+-])0*")

NO_ROWS = "No row is shown: what comes after the release, such as HAVING or LIMIT, leaves none."
"""What is said below a table without rows."""


class PackageMissing(IdiosError, ImportError):
    """A data frame was asked for whose package is not installed."""


def format_value(value: Any) -> str:
    """One value for people; NULL where there is none, no line breaks or control characters."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return format_number(value)
    if isinstance(value, datetime.datetime) and value.time() == datetime.time.min:
        value = value.date()  # the median of dates may lie between two of them, and mostly does not
    written = str(text(value)) if isinstance(value, Fraction) else str(value)
    return "".join(c if c.isprintable() else " " for c in written)


def escape_controls(written: str) -> str:
    r"""Text of which a terminal obeys no character: what moves, colours, hides or turns text is written as an escape.

    >>> escape_controls("a\x1b[31mb\u202ec, 1\u202f000 €")
    'a\\x1b[31mb\\u202ec, 1\u202f000 €'
    """
    return "".join(c if is_harmless(c) else c.encode("unicode_escape").decode() for c in written)


def escape_json(written: str) -> str:
    """The same of JSON, which stays what it is."""
    return written if written.isprintable() else "".join(c if is_harmless(c) else dumps(c)[1:-1] for c in written)


def is_harmless(c: str) -> bool:
    """Whether a terminal shows a character, or a space or the end of a line for it, and does nothing else."""
    return c.isprintable() or c in "\n\t" or category(c) == "Zs"


def format_number(number: Fraction | float) -> str:
    """A number for people, wherever one is shown: thousands apart, and two decimals from there on, else six digits.

    >>> [format_number(number) for number in (41320, -1234567.250001, 1234.5, Fraction(1, 3), 0, 0.5, 10**25, 1.25e-7)]
    ['41,320', '−1,234,567.25', '1,234.5', '0.333333', '0', '0.5', '1e25', '1.25e-7']
    """
    if isinstance(number, float) and not math.isfinite(number):
        return str(number).replace("-", "−")
    exact = Fraction(number)
    sign, size = "−" if exact < 0 else "", abs(exact)
    if size >= LONG or 0 < size < Fraction(1, 10_000):
        return sign + format_digits(size, 4, power=True)
    if size < 1000:
        return sign + format_digits(size, 6, power=False)
    whole, decimals = divmod(math.floor(size * 100 + Fraction(1, 2)), 100)
    return f"{sign}{whole:,}" + f".{decimals:02}".rstrip("0").rstrip(".")


def format_digits(number: Fraction, digits: int, *, power: bool) -> str:
    """Format a number of any size to some digits, as a power of ten where that is asked for or shorter."""
    context = Context(prec=digits, rounding=ROUND_HALF_UP, Emax=MAX_EMAX, Emin=MIN_EMIN)
    rounded = context.divide(number.numerator, number.denominator)
    written = (
        f"{rounded:.{digits - 1}e}" if power or rounded.adjusted() >= digits else f"{rounded.normalize(context):f}"
    )
    return _EXPONENT.sub(lambda exponent: "e" + exponent[1].replace("+", ""), written)


def to_float(number: Fraction) -> float:
    """The nearest float; infinite where what was computed lies beyond the last.

    >>> to_float(Fraction(1, 4)), to_float(Fraction(-(10**400), 3))
    (0.25, -inf)
    """
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def format_amount(value: Fraction | None) -> str:
    """An amount of ε or δ: a decimal where that ends, otherwise a fraction; None means that there is no limit.

    >>> format_amount(Fraction(1, 4)), format_amount(Fraction(1, 3)), format_amount(None)
    ('0.25', '1/3', 'no limit')
    """
    return "no limit" if value is None else str(text(value))


def format_short(value: Extended | None) -> str:
    """A number for people: exact where that is short, else six digits.

    >>> format_short(Fraction(1, 3)), format_short(Fraction(12345678, 87654321)), format_short(None)
    ('1/3', '0.140845', 'no limit')
    """
    if value is None:
        return "no limit"
    written = str(text(value))
    return written if len(written) <= 12 else f"{to_float(Fraction(value)):.6g}"


MOST_LISTED = 12
"""How many names are listed in a line."""


def shorten_list(names: Iterable[str]) -> str:
    """Names in a line, of which the first few are told.

    >>> shorten_list(["age", "income"]), shorten_list(f"q{i}" for i in range(100))[-15:]
    ('age, income', 'q11 and 88 more')
    """
    listed = [format_value(name) for name in names]
    more = f" and {len(listed) - MOST_LISTED:,} more" if len(listed) > MOST_LISTED else ""
    return ", ".join(listed[:MOST_LISTED]) + more


FRESH_BUDGET = (
    "What was answered stays known: with the budget of another data set the same people lose up to the sum of both "
    "budgets, under the weaker of both promises, and more where neighbours or unit differ"
)
"""What is said where a data set is given up: another name is a fresh budget to the ledger, and not to the people."""

RHO_MEANING = (
    "ρ is what concentrated accounting adds up: ε²/2 or less for a question of ε; all of it together stands for one ε, "
    "up to the probability δ."
)
"""What ρ is, for a reader who knows ε."""


def format_rho(rho: Fraction) -> str:
    """An amount of ρ to six digits, for people to read.

    >>> format_rho(Fraction(1, 800)), format_rho(Fraction(2, 3))
    ('0.00125', '0.666667')
    """
    return f"{float(rho):.6g}"


def format_cost(
    epsilon: Fraction, delta: Fraction = Fraction(0), rho: Fraction | None = None, pure: bool = True
) -> str:
    """What a question costs; δ only where there is any, and with concentrated accounting ρ first.

    >>> format_cost(Fraction(1, 2)), format_cost(Fraction(1), Fraction(1, 10))
    ('ε = 0.5', 'ε = 1, δ = 0.1')
    >>> format_cost(Fraction(1, 20), rho=Fraction(1, 800), pure=False)
    'ρ = 0.00125 (asked with ε = 0.05)'
    """
    amount = f"ε = {text(epsilon)}" + (f", δ = {text(delta)}" if delta else "")
    if rho is None:
        return amount
    return f"ρ = {format_rho(rho)} " + (f"({amount} by pure accounting)" if pure else f"(asked with {amount})")


def format_left(epsilon: Fraction | None, rho: Fraction | None = None) -> str:
    """What is left to spend; with concentrated accounting ρ, and the ε that it stands for.

    >>> format_left(Fraction(3)), format_left(Fraction(3), Fraction(1, 5)), format_left(None)
    ('ε = 3', 'ρ = 0.2, which stands for ε = 3', 'no limit')
    """
    if epsilon is None:
        return format_amount(None)
    if rho is None:
        return f"ε = {format_short(epsilon)}"
    return f"ρ = {format_rho(rho)}, {format_meaning(epsilon, rho)}"


def format_meaning(epsilon: Fraction, rho: Fraction) -> str:
    """The ε of what is left: what ρ stands for, or where none of that is left, what ε by itself still allows.

    >>> format_meaning(Fraction(3), Fraction(1, 5)), format_meaning(Fraction(1), Fraction(0))
    ('which stands for ε = 3', 'but ε = 1 by pure accounting')
    """
    stands = "which stands for" if rho or not epsilon else "but"
    return f"{stands} ε = {float(epsilon):.4g}" + ("" if rho or not epsilon else " by pure accounting")


CLIPPED_BIAS = "An interval allows for what clipping usually takes away, and not for values that lie very far out."
SAMPLING = "Margins and intervals are of the noise alone: sampling error is not in them."
"""What no reader of an interval should take it for."""


def name_interval(*, clipped: bool = False) -> str:
    """What an interval or a margin is of; where values were clipped it is of those, and not of the true ones.

    >>> name_interval(), name_interval(clipped=True)
    ('noise, 95 %', 'noise, 95 %, of the clipped values')
    """
    return f"noise, 95 %, {describe_clipped()}" if clipped else "noise, 95 %"


def describe_clipped(sources: Sequence[str] = ()) -> str:
    """What a number is of where values were clipped; ``sources`` are the statistics whose values these are.

    >>> describe_clipped(), describe_clipped(["SUM(a)", "SUM(b)"])
    ('of the clipped values', 'of the clipped values of SUM(a), SUM(b)')
    """
    return "of the clipped values" + (f" of {shorten_list(sources)}" if sources else "")


def name_reasons(reasons: Mapping[str, str]) -> str:
    """Each reason once, after the names of what it is the reason of.

    >>> name_reasons({"a": "unknown", "b": "no number", "c": "unknown"})
    'a, c: unknown; b: no number'
    """
    names: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        names.setdefault(reason, []).append(name)
    return "; ".join(f"{', '.join(of)}: {reason}" for reason, of in names.items())


def format_limits(low: Fraction, high: Fraction) -> str:
    """The limits that values were clipped to, thousands apart.

    >>> format_limits(Fraction(-1200), Fraction(88000)), format_limits(Fraction(0), Fraction(1, 3))
    ('[−1,200, 88,000]', '[0, 0.333333]')
    """
    return f"[{format_number(low)}, {format_number(high)}]"


def describe_clipping(limits: Mapping[str, str], *, named: bool, of: Mapping[str, str] | None = None) -> str:
    """What was clipped in one row, by statistic; ``named`` says that there are others from which to tell them apart.

    ``of`` names what was clipped where that is no value of a record, but of a person.

    >>> describe_clipping({"AVG(income)": "[0, 9]"}, named=False)
    'Values outside [0, 9] were clipped to it.'
    >>> describe_clipping({"AVG(income)": "[0, 9]", "SUM(age)": "[1, 2]"}, named=True)
    'AVG(income): values outside [0, 9] were clipped to it; SUM(age): values outside [1, 2] were clipped to it.'
    >>> describe_clipping({"COUNT(*)": "[1, 61]"}, named=False, of={"COUNT(*)": "each person's number of rows"})
    "Each person's number of rows outside [1, 61] was clipped to it."
    """
    owned = {name: format_value(value) for name, value in (of or {}).items()}
    said = {
        name: f"{owned[name]} outside {within} was clipped to it"
        if name in owned
        else f"values outside {within} were clipped to it"
        for name, within in limits.items()
    }
    if not named:
        [only] = list(said.values())[:1]
        return f"{only[:1].upper()}{only[1:]}."
    return f"{'; '.join(f'{format_value(name)}: {words}' for name, words in said.items())}."


def table_text(head: Sequence[str], rows: Sequence[Sequence[Any]], right: Collection[int] = ()) -> str:
    """A table whose columns are aligned; those in ``right`` to the right.

    >>> print(table_text(["region", "n"], [["north", 12], ["south", 7]], right=[1]))
    region   n
    north   12
    south    7
    """
    lines = [[format_value(name) for name in head]]
    lines += [[format_value(value) for value in row] for row in rows[:MOST_ROWS]]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    written = [
        "  ".join(
            value.rjust(width) if i in right else value.ljust(width)
            for i, (value, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]
    return "\n".join([*written, *_rest(len(rows))])


def table_html(head: Sequence[str], rows: Sequence[Sequence[Any]], right: Collection[int] = ()) -> str:
    """The same table for a notebook."""

    def line(tag: str, values: Sequence[Any]) -> str:
        sides = ("right" if i in right else "left" for i in range(len(values)))
        cells = (
            f'<{tag} style="text-align: {side}">{escape(format_value(value))}</{tag}>'
            for value, side in zip(values, sides, strict=True)
        )
        return f"<tr>{''.join(cells)}</tr>"

    body = "".join(line("td", row) for row in rows[:MOST_ROWS])
    return f"<table><thead>{line('th', head)}</thead><tbody>{body}</tbody></table>" + "".join(
        paragraph_html(line) for line in _rest(len(rows))
    )


def pairs_text(pairs: Iterable[tuple[str, Any]]) -> str:
    """Names and their values, a line each."""
    return "\n".join(f"{format_value(name)}: {format_value(value)}" for name, value in pairs)


def pairs_html(pairs: Iterable[tuple[str, Any]]) -> str:
    """The same for a notebook."""
    lines = (
        f'<tr><th style="text-align: left">{escape(format_value(name))}</th>'
        f'<td style="text-align: left">{escape(format_value(value))}</td></tr>'
        for name, value in pairs
    )
    return f"<table><tbody>{''.join(lines)}</tbody></table>"


def paragraph_html(sentence: str) -> str:
    """A paragraph for a notebook."""
    return f"<p>{escape(format_value(sentence))}</p>"


def _rest(rows: int) -> list[str]:
    return [f"… and {rows - MOST_ROWS} more rows"] if rows > MOST_ROWS else []


class Listing(tuple[T, ...], Generic[T]):
    """A tuple that prints as a table: ``head`` names its columns, ``cells`` gives those of one item."""

    _head: Sequence[str]
    _cells: Callable[[T], Sequence[Any]]

    def __new__(cls, items: Iterable[T], head: Sequence[str], cells: Callable[[T], Sequence[Any]]) -> Listing[T]:
        """A listing of these items."""
        listing = super().__new__(cls, items)
        listing._head, listing._cells = head, cells
        return listing

    def table(self) -> tuple[Sequence[str], list[Sequence[Any]]]:
        """The head and the rows of its table."""
        return self._head, [self._cells(item) for item in self]

    def __str__(self) -> str:
        return table_text(*self.table())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return table_html(*self.table())


def to_pandas(columns: Mapping[str, list[Any]], types: Mapping[str, str]) -> Any:
    """A pandas data frame; every type admits missing values."""
    try:
        import pandas as pd
    except ImportError:
        raise PackageMissing("to_pandas needs the package pandas: pip install pandas") from None
    dtypes = {
        "number": "float64",
        "date": "datetime64[s]",
        "timestamp": "datetime64[us]",
        "category": "string",
        "boolean": "boolean",
    }
    frame = {}
    for column, values in columns.items():
        kind = types.get(column, "")
        dtype = "Int64" if kind == "integer" and _fits(values) else dtypes.get(kind, "object")
        frame[column] = pd.Series(values, dtype=dtype)
    return pd.DataFrame(frame, columns=list(columns))


def to_polars(columns: Mapping[str, list[Any]], types: Mapping[str, str]) -> Any:
    """A polars data frame."""
    try:
        import polars as pl
    except ImportError:
        raise PackageMissing("to_polars needs the package polars: pip install polars") from None
    dtypes: dict[str, Any] = {
        "number": pl.Float64,
        "date": pl.Date,
        "timestamp": pl.Datetime("us"),
        "category": pl.String,
        "boolean": pl.Boolean,
    }
    frame = []
    for column, values in columns.items():
        kind = types.get(column, "")
        if kind == "number":
            values = [None if value is None else float(value) for value in values]
        whole = pl.Int64 if kind == "integer" and _fits(values) else pl.Object
        dtype = dtypes.get(kind, whole if kind == "integer" else pl.Null)
        frame.append(pl.Series(column, values, dtype))
    return pl.DataFrame(frame)


def to_arrow(columns: Mapping[str, list[Any]], types: Mapping[str, str]) -> Any:
    """An Arrow table; whole numbers beyond 64 bits are decimals, and beyond those text."""
    try:
        import pyarrow as pa
    except ImportError:
        raise PackageMissing("to_arrow needs the package pyarrow: pip install pyarrow") from None
    held: dict[str, Any] = {
        "number": pa.float64(),
        "date": pa.date32(),
        "timestamp": pa.timestamp("us"),
        "category": pa.string(),
        "boolean": pa.bool_(),
    }
    arrays = []
    for column, values in columns.items():
        kind = types.get(column, "")
        if kind == "number":
            values = [None if value is None else float(value) for value in values]
        if kind == "integer" and not _fits(values):
            short = all(value is None or abs(value) < 10**76 for value in values)
            values = [None if value is None else Decimal(value) if short else str(value) for value in values]
            arrays.append(pa.array(values, pa.decimal256(76, 0) if short else pa.string()))
        else:
            arrays.append(pa.array(values, pa.int64() if kind == "integer" else held.get(kind, pa.null())))
    return pa.table(arrays, names=list(columns))


def _fits(values: list[int | None]) -> bool:
    """Whether whole numbers fit the 64 bits of a data frame; where they do not, they are kept as Python's own."""
    return all(value is None or -(2**63) <= value < 2**63 for value in values)

"""Idios: private statistics of data that nobody can bound, and a trusted party that keeps the account.

One statistic of an array, for an ε; nothing is remembered between calls:

>>> import idios
>>> incomes = [21_000 + 10 * i for i in range(2001)]
>>> 25_000 < idios.median(incomes, epsilon=0.5) < 37_000
True

Questions in SQL about a file, a frame or a dict of columns, charged to a budget:

>>> columns = {"income": {"type": "integer", "nullable": False}}
>>> party = idios.TrustedParty.open({"income": incomes}, name="people", columns=columns, budget=2)
>>> print(party.quote("SELECT MEDIAN(income) FROM people", epsilon=0.5).after)  # free: no data is read
ε = 1.5: about 3 more like this one
>>> answer = party.query("SELECT MEDIAN(income) FROM people", epsilon=0.5)
>>> 25_000 < answer.value < 37_000
True
>>> print(answer.left)
ε = 1.5
>>> party.query("SELECT MEDIAN(income) FROM people", epsilon=2)
Traceback (most recent call last):
idios.errors.BudgetExceeded: data set 'people': ε = 2 asked, 1.5 left of 2; ask with less, or have the controller ...
>>> party.close()

``idios.connect(url, token)`` asks a server in the same way. All that goes wrong on purpose is an ``idios.IdiosError``.
In a notebook ``%load_ext idios`` adds ``%%idios``, a cell that is a question; in a terminal there is ``idios shell``.

The functions of arrays read a list or a numpy, pandas, polars or Arrow column. Beside their own parameter they take:

    epsilon      what the answer may cost, exactly as written: 0.1 is one tenth
    step         the grid of the column; by default that of its type: 1 for integers, 10⁻⁶ for floats, the scale of
                 decimals, a day for dates, a microsecond for timestamps (which count from 1970). A list has the type of
                 its elements, which must be one; an empty one reads as floats
    bounds       (lower, upper) as publicly known, either may be None; values outside read as the nearer bound, and
                 without a bound values end at ±10⁴⁰⁰
    centre       a public guess of where the values lie, 0 by default; it affects accuracy and nothing else
    neighbours   "replace" (one record changes; the number of records is public) or "add-remove"
    protection   "differential" by default, whatever the data; or one of the paper's levels, "individual" and "group"
                 (with group), whose noise is fitted to the data: how it was fitted is not covered
    group        how many records are protected together, with ε, 2ε, …; or the multiples of ε, such as [1, 1.5, 2]; or
                 {"size": 5, "growth": "flat"}, five records like one
    floor        the least sensitivity, 1 by default; 0 is the paper to the letter
    nullable     whether values can be missing; by default whether the column's type can hold missing values

Missing are None, NaN, ±∞, NaT, NA and what is masked. Values and categories must be of one type (bool, number, text,
date or timestamp), in which a value that is not declared reads as missing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from idios.client import ServerError, connect
    from idios.display import PackageMissing
    from idios.errors import (
        AnswerFailed,
        BudgetExceeded,
        ConfigurationError,
        DataChanged,
        IdiosError,
        InvalidInput,
        KeyReused,
        LedgerError,
        LedgerTampered,
        LedgerUnavailable,
        NotPermitted,
        QuestionRefused,
        SourceError,
        SourceUnavailable,
        Unanswerable,
        WrongLedgerKey,
    )
    from idios.functions import (
        NoAnswer,
        count,
        histogram,
        iqr,
        kth_largest,
        kth_smallest,
        maximum,
        mean,
        median,
        minimum,
        mode,
        quantile,
        stddev,
        total,
        trimmed_mean,
        variance,
        winsorized_mean,
    )
    from idios.party import TrustedParty
    from idios.propose.proposals import schema

    __version__: str

__all__ = [
    "AnswerFailed",
    "BudgetExceeded",
    "ConfigurationError",
    "DataChanged",
    "IdiosError",
    "InvalidInput",
    "KeyReused",
    "LedgerError",
    "LedgerTampered",
    "LedgerUnavailable",
    "NoAnswer",
    "NotPermitted",
    "PackageMissing",
    "QuestionRefused",
    "ServerError",
    "SourceError",
    "SourceUnavailable",
    "TrustedParty",
    "Unanswerable",
    "WrongLedgerKey",
    "__version__",
    "connect",
    "count",
    "histogram",
    "iqr",
    "kth_largest",
    "kth_smallest",
    "maximum",
    "mean",
    "median",
    "minimum",
    "mode",
    "quantile",
    "schema",
    "stddev",
    "total",
    "trimmed_mean",
    "variance",
    "winsorized_mean",
]

_MODULES = {
    "NoAnswer": "functions",
    "PackageMissing": "display",
    "ServerError": "client",
    "TrustedParty": "party",
    "connect": "client",
    "schema": "propose.proposals",
}
"""Where a name is from; what is not listed is an error of ``errors`` with a capital, else one of ``functions``."""


def __getattr__(name: str) -> Any:
    """Import what a name is from on its first use: engines and ledger take a second that not everyone needs."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "__version__":
        from importlib.metadata import PackageNotFoundError, version

        try:
            found: Any = version("idios")
        except PackageNotFoundError:
            raise AttributeError("a source tree that is not installed has no version") from None
    else:
        module = _MODULES.get(name, "errors" if name[0].isupper() else "functions")
        found = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = found
    return found


def load_ipython_extension(shell: Any) -> None:
    """What ``%load_ext idios`` calls: adds the magic ``%%idios``."""
    from idios.notebook import register

    register(shell)


def __dir__() -> list[str]:
    return sorted(__all__)

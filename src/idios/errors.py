"""Everything Idios raises on purpose.

    IdiosError
    ├── InvalidInput            a parameter is not acceptable: ε, step, bounds, q, k, …
    ├── ConfigurationError      idios.toml declares something that cannot be
    ├── QuestionRefused         the text of a question asks for something that is not offered
    ├── Unanswerable            well formed, but no mechanism at this level can answer it
    ├── BudgetExceeded          the data set's or the analyst's budget does not allow the question
    ├── KeyReused               an idempotency key was used before, with another question
    ├── NotPermitted            an unknown or retired data set, an unknown analyst, no grant, no valid token
    ├── AnswerFailed            charged, and then no answer could be computed; always the same message
    ├── SourceError             the data cannot be read as declared: a missing file, table, column, …
    │   ├── DataChanged         the file, or the promise of its answers, is not the one that was opened
    │   └── SourceUnavailable   the engine that holds the data is away; nothing was charged
    └── LedgerError             the ledger cannot record what it was asked to
        ├── LedgerUnavailable   its database is locked, full, read-only, missing or gone
        ├── WrongLedgerKey      its key file is missing, damaged or another ledger's
        └── LedgerTampered      what is stored is not what was signed

Rules:

1. A message names what was given, what is required and what to do instead.
2. No message ever contains a value of the data.
3. Anything else that escapes is a bug.
"""

from __future__ import annotations

import linecache
from fractions import Fraction
from types import TracebackType


class IdiosError(Exception):
    """Any failure that Idios foresees; catch this one to catch them all."""

    def _render_traceback_(self) -> list[str]:
        """What IPython and Jupyter show instead of a traceback: the message, and the caller's own line."""
        return [f"{type(self).__name__}: {self}", *_find_caller(self.__traceback__)]


class InvalidInput(IdiosError, ValueError):
    """A parameter was given that is not acceptable, whatever the data."""


class ConfigurationError(IdiosError):
    """A configuration file declares something that cannot be, or cannot be read."""


class QuestionRefused(IdiosError):
    """The question asks for something that is not offered; it prints where, if that is known.

    >>> refused = QuestionRefused("joins are not supported", "SELECT COUNT(*) FROM a JOIN b", 23)
    >>> refused.position
    (1, 24)
    >>> print(refused)
    joins are not supported (line 1, column 24)
      SELECT COUNT(*) FROM a JOIN b
                             ^
    """

    def __init__(self, message: str, source: str = "", offset: int | None = None) -> None:
        super().__init__(message, source, offset)
        self.message = message
        self.source = source
        self.offset = offset
        self.undeclared = ""
        """The column that is asked about and not declared, if that is why."""

    @property
    def position(self) -> tuple[int, int] | None:
        """Line and column in the text of the question, both counted from 1."""
        if self.offset is None:
            return None
        before = self.source[: self.offset]
        return before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1

    def __str__(self) -> str:
        if self.position is None:
            return self.message
        line, column = self.position
        shown, caret = _excerpt(self.source.split("\n")[line - 1], column - 1)
        return f"{self.message} (line {line}, column {column})\n  {shown}\n  {' ' * caret}^"


class Unanswerable(IdiosError):
    """The question is well formed, but the declared facts do not allow an answer at this level."""


class SourceError(IdiosError):
    """The data cannot be read as it was declared; written for the controller, never for an analyst."""


class DataChanged(SourceError):
    """The data, or what is promised of it, is not what was opened; found out from public facts, never from records."""


class SourceUnavailable(SourceError):
    """The engine that holds the data cannot be reached at the moment, or has nobody to do the work."""


class AnswerFailed(IdiosError):
    """The question was charged and no answer could be computed; why, is in the ledger, for the controller alone.

    The message never varies: an error that depended on the data would be an answer.
    """

    def __init__(self) -> None:
        super().__init__(
            "the question was charged, but no answer could be computed; the controller's ledger says why. Asking the "
            "same question again costs nothing more"
        )


class BudgetExceeded(IdiosError):
    """A budget does not allow the question; nothing was charged.

    `quantity` is "epsilon", "delta" or "rho"; `analyst` is None when the data set's own budget is too small.
    """

    # The defaults let it travel between processes: unpickling calls the class with the message alone.
    def __init__(
        self,
        message: str,
        *,
        dataset: str = "",
        analyst: str | None = None,
        quantity: str = "epsilon",
        requested: Fraction = Fraction(0),
        remaining: Fraction = Fraction(0),
    ) -> None:
        super().__init__(message)
        self.dataset = dataset
        self.analyst = analyst
        self.quantity = quantity
        self.requested = requested
        self.remaining = remaining


class KeyReused(IdiosError):
    """The caller used an idempotency key before with another question; nothing was charged."""


class NotPermitted(IdiosError):
    """The ledger does not know the name it was given, or does not allow it what was asked."""


class LedgerError(IdiosError):
    """The ledger cannot record what it was asked to; it is as it was before."""


class LedgerUnavailable(LedgerError):
    """The ledger's database is locked, full, read-only, missing or gone."""


class WrongLedgerKey(LedgerError):
    """The ledger's key file is missing, damaged, or belongs to another ledger."""


class LedgerTampered(LedgerError):
    """What the ledger's database holds is not what was signed."""


def _find_caller(trace: TracebackType | None) -> list[str]:
    """The last line of the caller's own code on the way to an error: before this package, or a magic, is entered."""
    found: list[str] = []
    while trace is not None:
        module = trace.tb_frame.f_globals.get("__name__", "").partition(".")[0]
        if module == "idios":
            break
        line = linecache.getline(trace.tb_frame.f_code.co_filename, trace.tb_lineno).strip()
        if module != "IPython":
            found = [f"in line {trace.tb_lineno}: {line}"] if line and not line.startswith("get_ipython()") else []
        trace = trace.tb_next
    return found


_EXCERPT = 100


def _excerpt(line: str, at: int) -> tuple[str, int]:
    """The part of a line around one place, one printed column a character, and where that place is in it."""
    first = max(0, min(at - _EXCERPT // 2, len(line) - _EXCERPT))
    shown = line[first : first + _EXCERPT]
    return "".join(c if c.isprintable() else " " for c in shown).rstrip(), at - first

"""The functions of SQL, as the registry of statistics lists them, and what to ask instead of the unanswerable."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

from idios.core import statistics
from idios.core.statistics import Median, Parameters, Spelling, Statistic
from idios.errors import Unanswerable


@dataclass(frozen=True)
class SqlFunction:
    """One name in SQL and the statistic that it stands for."""

    statistic: type[Statistic]
    spelling: Spelling

    @property
    def name(self) -> str:
        """The name as lists show it."""
        return f"{self.spelling.name}(DISTINCT)" if self.spelling.distinct else self.spelling.name

    @property
    def parameter(self) -> str | None:
        """What its second argument is called; None if it takes none."""
        return self.statistic.parameter.name if self.statistic.parameter else None

    @property
    def signature(self) -> str:
        """How a call is written.

        >>> find_function("KTH_LARGEST").signature
        'KTH_LARGEST(column, k)'
        """
        plain = self.spelling.write("column", self.parameter)
        if not self.spelling.within_group:
            return plain
        return f"{plain} or {self.spelling.name}({self.parameter}) WITHIN GROUP (ORDER BY column)"

    def write_example(self, column: str, parameters: Parameters) -> str:
        """A call that the declared parameters allow; the column is written as given."""
        parameter = self.statistic.parameter
        return self.spelling.write(column, parameter.propose(parameters) if parameter else None)


def list_functions() -> tuple[SqlFunction, ...]:
    """Every name that a question can call, COUNT(DISTINCT …) last."""
    return (*_by_name(statistics.STATISTICS).values(), *_by_name(statistics.STATISTICS, distinct=True).values())


def function_names() -> tuple[str, ...]:
    """The names in capitals."""
    return tuple(_by_name(statistics.STATISTICS))


def find_function(name: str, *, distinct: bool = False) -> SqlFunction | None:
    """The function of a name in capitals; with ``distinct`` the one that NAME(DISTINCT column) calls."""
    return _by_name(statistics.STATISTICS, distinct=distinct).get(name)


def find_advice(name: str) -> str | None:
    """What to write instead of a name that other dialects offer."""
    return next((s.advice[name] for s in statistics.STATISTICS if name in s.advice), None)


@cache
def _by_name(registered: tuple[type[Statistic], ...], distinct: bool = False) -> Mapping[str, SqlFunction]:
    return {
        spelling.name: SqlFunction(statistic, spelling)
        for statistic in registered
        for spelling in statistic.spellings
        if spelling.distinct == distinct
    }


def propose_alternatives(
    statistic: Statistic, column: str, parameters: Parameters, answerable: Callable[[Statistic], object]
) -> str:
    """What can be asked of a column instead, in SQL; ``answerable`` raises Unanswerable for what cannot."""
    calls: list[str] = []
    quoted = column if re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)?", column) else f'"{column}"'
    for candidate in (*statistic.alternatives(parameters), Median()):
        try:
            answerable(candidate)
        except Unanswerable:
            continue
        calls.append(candidate.spellings[0].write(quoted, candidate.argument if candidate.parameter else None))
        if len(calls) == 2:
            break
    narrowed = f"a narrower question: WHERE {quoted} BETWEEN … AND …"
    return f"In SQL: {', '.join(calls)}, or {narrowed}" if calls else f"In SQL: {narrowed}"

"""Where the wanted ranks of columns should lie, guessed from a sample: see ``brackets.py``.

Of a whole column of a source that does not change, the sketch is kept for later questions, and how many values lie
below some points: later brackets are narrower, and need no count. A sketch whose guess was wrong is replaced by that of
the next sample.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from idios.data.brackets import Bracket, Known, Sketch, outermost, shares_near
from idios.data.group_counts import cut_span
from idios.data.queries import CellColumn, Queries, Run
from idios.data.requirements import ENDS, NOMINAL, Requirements
from idios.data.scan import Need
from idios.data.sql.selection import ONLY

Brackets: TypeAlias = dict[CellColumn, tuple[Bracket, ...]]

FEW = 5_000
"""Up to this many values at either end are fetched with ORDER BY and LIMIT."""

POINTS = 64
"""At about so many points inside a bracket the values below are counted."""

COARSE = [i / 32 for i in range(33)]
"""The shares of a sketch that says only where to begin to count."""


@dataclass(frozen=True)
class ColumnSample:
    """A way to take a sample: what stands after FROM, and about what share of the records it gives."""

    source: str
    share: float


@dataclass(frozen=True)
class KeptColumn:
    """What is kept of a whole column: its sketch, and what was counted where that said to look."""

    sketch: Sketch
    size: int | None = None
    """How many values there are, once they were counted."""
    below: Mapping[int, int] = field(default_factory=dict)
    """By point, how many values lie below."""

    @property
    def population(self) -> int:
        """How many values there are, or may be."""
        return self.sketch.population if self.size is None else self.size

    def bracket(self, first: int, last: int) -> Bracket | None:
        """Where ranks first..last should lie.

        >>> sketch = Sketch(400, 0.5, (0.0, 0.25, 0.75, 1.0), (0, 10, 90, 99))
        >>> KeptColumn(sketch).bracket(400, 401)
        Bracket(low=10, high=90, tied_low=False, tied_high=False, start=None)
        >>> KeptColumn(sketch, 800, {10: 210, 40: 395, 50: 410, 91: 620}).bracket(400, 401)
        Bracket(low=40, high=49, tied_low=False, tied_high=False, start=395)
        """
        guessed = self.sketch.bracket(first, last)
        if guessed is None:
            return None
        low, high, tied_low, tied_high = guessed.low, guessed.high, guessed.tied_low, guessed.tied_high
        starts = [point for point, below in self.below.items() if below < first and not guessed.open_low]
        ends = [point - 1 for point, below in self.below.items() if below >= last and not guessed.open_high]
        if (nearer := max(starts, default=low)) > low:
            low, tied_low = nearer, False
        if (nearer := min(ends, default=high)) < high:
            high, tied_high = nearer, False
        if low < high:  # else it is one point, or the sketch is wrong, which will be found out
            guessed = Bracket(low, high, tied_low, tied_high)
        return replace(guessed, start=self.below.get(guessed.low))

    def count(self, known: Known, brackets: Sequence[Bracket]) -> KeptColumn:
        """The same with what is known, of which the last pieces are those of the brackets."""
        below = dict(self.below)
        for bracket, piece in zip(brackets, known.pieces[-len(brackets) :], strict=True):
            below |= {bracket.low: piece.start, bracket.high + 1: piece.end}
            if self.size is None and len(piece.inside) > POINTS:
                inside = np.sort(piece.inside)
                points = np.unique(inside[:: len(inside) // POINTS])
                starts = piece.start + piece.lows + np.searchsorted(inside, points)
                below |= zip(points.tolist(), starts.tolist(), strict=True)
        return replace(self, size=known.size, below=below)


@dataclass(frozen=True)
class Guesses:
    """The guesses of one run of a plan; ``large`` says that its table is."""

    requirements: Requirements
    queries: Queries
    needs: Mapping[str, Need]
    large: bool

    @cached_property
    def inner(self) -> dict[str, list[Run]]:
        """The columns for which brackets are needed, and the ranks they would be asked for."""
        inner = {name: self._bracketed(name, runs, NOMINAL) for name, runs in self.requirements.nominal.items()}
        return {name: runs for name, runs in inner.items() if runs}

    def is_large_and_plain(self, name: str) -> bool:
        """Whether the ends of a column are quick to find in its source, and worth it."""
        return self.large and self.requirements.is_plain(name)

    def _bracketed(self, name: str, runs: Iterable[Run], size: int) -> list[Run]:
        """Those that are not among the values at the ends, where all are; the scan holds one list of all brackets."""
        need, nominal = self.needs[name], self.requirements.nominal[name]
        most = ENDS if need.least or need.greatest else 0
        if not need.total and self.is_large_and_plain(name) and self.requirements.reads_ends(nominal, FEW):
            most = FEW
        return [run for run in runs if run[1] > most and size - run[0] >= most]

    def guess(self, sample: ColumnSample, missed: Iterable[CellColumn] | None = None) -> Brackets:
        """Where the wanted ranks should lie; by this sample, if the brackets of some columns and cells ``missed``."""
        if not self.inner:
            return {}  # ends alone, which the source could not give in order: sorting finds them
        guesses: Brackets = {}
        for key, column in self._sketch(sample, again=missed is not None).items():
            if missed is not None and key not in missed:
                continue
            brackets = [
                column.bracket(*run)
                for aggregate in self.requirements.ranked
                if self.requirements.alias(aggregate) == key[1]
                for run in self._bracketed(
                    key[1], self.requirements.runs(aggregate, column.population), column.population
                )
            ]
            guesses[key] = outermost(bracket for bracket in brackets if bracket is not None)
        return {key: outer for key, outer in guesses.items() if outer}

    def keep(self, brackets: Mapping[CellColumn, Sequence[Bracket]], known: Mapping[CellColumn, Known]) -> None:
        """Keep what was counted below brackets and inside."""
        if (kept := self._kept) is None:
            return
        for key, of_column in brackets.items():
            if (column := kept.get(self._name_kept(key))) is not None:
                kept[self._name_kept(key)] = column.count(known[key], of_column)

    def _sketch(self, sample: ColumnSample, *, again: bool) -> dict[CellColumn, KeptColumn]:
        """What is kept of the columns, with the quantiles of a sample where there are none yet."""
        places = {rank / NOMINAL for runs in self.inner.values() for run in runs for rank in run}
        shares, names = tuple(shares_near(places)), sorted(self.inner)
        kept = {} if self._kept is None else self._kept
        before = {(ONLY, name): kept.get(self._name_kept((ONLY, name))) for name in names}
        found = {key: column for key, column in before.items() if column is not None and column.sketch.shares == shares}
        if not again and len(found) == len(names):
            return found
        sketches = replace(self.queries, source=sample.source).sketches(names, shares, sample.share)
        found = {key: KeptColumn(sketch) for key, sketch in sketches.items()}
        kept.update((self._name_kept(key), column) for key, column in found.items())
        return found

    @property
    def _kept(self) -> dict[Hashable, Any] | None:
        """What the source keeps of whole columns, if it does."""
        return self.queries.kept if self.requirements.selection.is_whole else None

    def _name_kept(self, key: CellColumn) -> Hashable:
        # names are those of a relation, and stand for other columns in other plans
        return KeptColumn, self.queries.source, key[0], self.requirements.selection.column_name(key[1])

    def guess_spans(self, sample: ColumnSample) -> dict[str, dict[int, list[Run]]]:
        """About where the wanted ranks of each column lie in each cell; one that was not sampled is like the others."""
        sampled = replace(self.queries, source=sample.source)
        guesses: dict[str, dict[int, Run]] = {}
        for (cell, name), sketch in sampled.sketches(sorted(self.inner), COARSE, sample.share).items():
            ranked = (aggregate for aggregate in self.requirements.ranked if self.requirements.alias(aggregate) == name)
            runs = [run for aggregate in ranked for run in self.requirements.runs(aggregate, sketch.population)]
            if runs:
                span = sketch.span(min(first for first, _ in runs), max(last for _, last in runs))
                guesses.setdefault(name, {})[cell] = span
        spans: dict[str, dict[int, list[Run]]] = {}
        for name, of in guesses.items():
            every = min(first for first, _ in of.values()), max(last for _, last in of.values())
            spans[name] = {cell: cut_span(*of.get(cell, every)) for cell in self.requirements.cells}
        return spans

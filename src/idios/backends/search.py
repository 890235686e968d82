"""How the order statistics of a plan are found.

1. In a small table: by sorting.
2. At the ends of a large column: by asking for its first and last few, in order.
3. Elsewhere: a sample is sketched, brackets are guessed from it, and the scan that counts anyway fetches what lies
   inside. Ranks that were missed are looked for again with an even sample, and then by sorting.

Each is one query for all cells, whatever their number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from idios.backends.asked import NOMINAL, Asked
from idios.backends.brackets import Bracket, Known, outermost, shares_near
from idios.backends.progress import Progress
from idios.backends.queries import Key, Queries, Run
from idios.backends.scan import Need, scan
from idios.backends.selection import ONLY
from idios.core.summary import Window
from idios.query.predicates import ALWAYS

SMALL = 50_000
"""Up to this many records, sorting is as fast as any other way."""

FEW = 5_000
"""Up to this many values at either end are fetched with ORDER BY and LIMIT."""


@dataclass(frozen=True)
class Sample:
    """A way to take a sample: what stands after FROM, and about what share of the records it gives."""

    source: str
    share: float


@dataclass
class Search:
    """The counts, sums and order statistics of one run of a plan."""

    asked: Asked
    queries: Queries
    needs: Mapping[str, Need]
    samples: Sequence[Sample]
    """Ways to take a sample, quickest first; none if the table is small."""
    progress: Progress
    records: dict[int, int] = field(default_factory=dict)
    known: dict[Key, Known] = field(default_factory=dict)
    windows: dict[tuple[int, str, Run], Window] = field(default_factory=dict)

    def scan(self) -> None:
        """Count, add up, and look into the first brackets."""
        brackets: dict[Key, tuple[Bracket, ...]] = {}
        if self.samples and self._inner:
            self.progress("sampling", 0.0)
            brackets = self._guess(self.samples[0])
        self.progress("scanning", 0.2)
        self.records, self.known = scan(self.queries, self.needs, brackets)

    def complete(self) -> None:
        """Find the order statistics that are not known yet."""
        if self._plain:
            self._take_ends()
        for sample in self.samples[1:]:
            missing = {(cell, name) for name, cells in self._missing().items() for cell in cells}
            if sum(self.known[key].size for key in missing) > SMALL:
                self._search_again(sample, missing)
        for name, runs in self._missing().items():
            self.progress("sorting", 0.6)
            found = self.queries.sorted_windows(name, runs, sums=self.needs[name].total)
            for cell, windows in found.items():
                self.windows |= {(cell, name, run): cut for run, cut in zip(runs[cell], windows, strict=True)}

    def of(self, cell: int, name: str) -> Known:
        """What is known of a column in a cell."""
        return self.known.get((cell, name), Known())

    def window(self, cell: int, name: str, run: Run, *, sums: bool) -> Window:
        """One run of ranks, with the sum of everything below it if wanted."""
        found = self.of(cell, name).window(*run, sums=sums)
        if found is None:
            found = self.windows[cell, name, run]
        return found if sums else replace(found, below=0)

    @property
    def _plain(self) -> bool:
        """Whether a large column is read as it stands in the source, so that its ends are quick to find there."""
        return bool(self.samples) and not self.asked.plan.groups and self.asked.plan.filter == ALWAYS

    @cached_property
    def _inner(self) -> dict[str, list[Run]]:
        """The columns for which brackets are needed, and the ranks they would be asked for."""
        inner = {name: self._bracketed(runs, NOMINAL) for name, runs in self.asked.nominal.items()}
        return {name: runs for name, runs in inner.items() if runs}

    def _bracketed(self, runs: Iterable[Run], size: int) -> list[Run]:
        return [run for run in runs if not (self._plain and (run[0] <= FEW or size - run[1] < FEW))]

    def _guess(self, sample: Sample, only: Iterable[Key] | None = None) -> dict[Key, tuple[Bracket, ...]]:
        """Where the wanted ranks should lie, by a sample; of some columns in some cells ``only``."""
        if not self._inner:
            return {}  # ends alone, which the source could not give in order: sorting finds them
        places = {rank / NOMINAL for runs in self._inner.values() for run in runs for rank in run}
        sampled = replace(self.queries, source=sample.source)
        sketches = sampled.sketches(sorted(self._inner), shares_near(places), sample.share)
        guesses: dict[Key, tuple[Bracket, ...]] = {}
        for key, sketch in sketches.items():
            if only is not None and key not in only:
                continue
            brackets = [
                sketch.bracket(*run)
                for aggregate in self.asked.ranked
                if self.asked.name(aggregate) == key[1]
                for run in self._bracketed(self.asked.runs(aggregate, sketch.population), sketch.population)
            ]
            guesses[key] = outermost(bracket for bracket in brackets if bracket is not None)
        return {key: found for key, found in guesses.items() if found}

    def _take_ends(self) -> None:
        for name, runs in self.asked.nominal.items():
            known = self.known[ONLY, name]
            if known.unread:
                continue  # the order of the source is not that of the points
            bottom = max((last for first, last in runs if first <= FEW), default=0)
            top = max((NOMINAL - first + 1 for first, last in runs if NOMINAL - last < FEW), default=0)
            pieces = [self.queries.bottom(name, bottom)] if bottom else []
            pieces += [self.queries.top(name, top, known.size, known.total)] if top else []
            self.known[ONLY, name] = known.extended(pieces)

    def _search_again(self, sample: Sample, missing: set[Key]) -> None:
        self.progress("sampling again", 0.5)
        brackets = self._guess(sample, missing)
        needs = {name: Need(total=self.needs[name].total) for _, name in brackets}
        _, found = scan(self.queries, needs, brackets)
        for key in brackets:
            self.known[key] = self.known[key].extended(found[key].pieces)

    def _missing(self) -> dict[str, dict[int, list[Run]]]:
        """The runs of ranks that no piece holds, by column and cell."""
        missing: dict[str, dict[int, list[Run]]] = {}
        for aggregate in self.asked.ranked:
            name = self.asked.name(aggregate)
            for cell in self.asked.cells:
                known = self.of(cell, name)
                for run in self.asked.runs(aggregate, known.size):
                    wanted = missing.setdefault(name, {}).setdefault(cell, [])
                    if not known.holds(*run) and run not in wanted:
                        wanted.append(run)
        missing = {name: {c: runs for c, runs in cells.items() if runs} for name, cells in missing.items()}
        return {name: cells for name, cells in missing.items() if cells}

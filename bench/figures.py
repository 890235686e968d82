"""What a benchmark finds: figures with their spread, what is expected of them, and what they were the last time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

FOLDER = Path(__file__).parents[1] / ".bench"
"""Where generated data and the environments of peers are kept between runs."""


@dataclass(frozen=True)
class Settings:
    """How much is measured."""

    quick: bool = False
    growth: bool = False
    """Whether 10⁸ rows are read too."""
    rows: int | None = None
    """How many rows, where a section does not know better."""
    repetitions: int = 5
    only: str = ""
    """Words of the figures that are measured; all, if there are none."""

    def wants(self, what: str) -> bool:
        """Whether a figure is measured."""
        return self.only in what

    def choose_rows(self, many: int, few: int) -> int:
        """The number of rows that was asked for, or that of a whole or a quick run."""
        return self.rows or (few if self.quick else many)

    @property
    def turns(self) -> str:
        """How often things are timed, in words."""
        return f"medians of at least {self.repetitions} turns"

    @property
    def seconds_of_a_row(self) -> float:
        """After this time a row has no further repetition."""
        return 2 if self.quick else 40


@dataclass(frozen=True)
class Figure:
    """One line of a table: a ratio, or a number with a unit, between the least and greatest of its repetitions."""

    what: str
    value: float | None
    """None where nothing could be measured, for the reason that the note gives."""
    least: float = 0.0
    greatest: float = 0.0
    expected: float | None = None
    at_least: bool = False
    """Whether what is expected is the least and not the most."""
    unit: str = "×"
    ours: str = ""
    beside: str = ""
    note: str = ""
    last: float | None = None
    """The figure of the run before."""

    @property
    def kept(self) -> bool | None:
        """Whether it is as expected; None where nothing is."""
        if self.value is None or self.expected is None:
            return None if self.expected is None else False
        return self.value >= self.expected if self.at_least else self.value <= self.expected

    def follow(self, former: Figure | None) -> Figure:
        """The same beside the former one; what could not be measured keeps what was known last."""
        if former is None:
            return self
        return replace(self, last=former.last if former.value is None else former.value)

    @property
    def cells(self) -> list[str]:
        """What a table shows of it."""
        bound = "" if self.expected is None else f"{'≥' if self.at_least else '≤'} {self._write(self.expected)}"
        spread = f"{self._write(self.least)} to {self._write(self.greatest)}" if self.least < self.greatest else ""
        return [
            self.what,
            self.ours,
            self.beside,
            self._write(self.value) if self.value is not None else "not measured",
            spread,
            bound,
            {True: "yes", False: "no", None: ""}[self.kept],
            "" if self.last is None else self._write(self.last),
            self.note,
        ]

    def __str__(self) -> str:
        _, ours, beside, value, spread, bound, kept, last, note = self.cells
        told = [f"{ours} / {beside}" if ours and beside else ours or beside, spread, bound and f"expected {bound}"]
        told += [{"yes": "kept", "no": "NOT KEPT", "": ""}[kept], last and f"last {last}", note]
        return f"{self.what:<50} {value:>12}   {'; '.join(filter(None, told))}"

    def _write(self, value: float) -> str:
        written = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
        return f"{written} {self.unit}" if self.unit not in ("×", "") else written


TITLES = ("what", "ours", "beside it", "figure", "spread", "expected", "kept", "last time", "")


def write_time(seconds: float) -> str:
    """Seconds for people to read."""
    if seconds >= 1:
        return f"{seconds:.2f} s"
    return f"{seconds * 1e3:.3g} ms"

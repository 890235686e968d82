"""What a controller declares of a data set: its columns, its protection, and what may be asked.

All of it is public. A column's values are read onto its grid (numbers, dates, timestamps) or as the index of a
declared category; whatever does not fit reads as NULL, and NULL is never a value. A column that is declared not
nullable has no NULL: there it reads as a public point, record by record (``data/sql/grid_sql.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

from idios.core.calibration import Protection
from idios.core.concentrated import find_largest_rho
from idios.core.domain import LIMIT, Categories, Domain, Kind
from idios.core.neighbours import Counted, Neighbours
from idios.core.statistics import Parameters, Statistic
from idios.errors import InvalidInput

if TYPE_CHECKING:
    from idios.expressions.language import Expression
    from idios.plan.reductions import Reduction


@dataclass(frozen=True)
class Column:
    """One declared column: a grid or categories, and whether a value may be missing.

    ``missing`` are values that mean that there is none: texts of a category, otherwise numbers (days or microseconds
    since 1970 of dates and timestamps).

    A derived column has an ``expression`` of columns that the source holds, and the ``formula`` that its controller
    wrote for it.
    """

    name: str
    kind: Kind
    domain: Domain | Categories
    nullable: bool = True
    expression: Expression | None = None
    formula: str = field(default="", compare=False)
    missing: tuple[Fraction | str, ...] = ()
    format: str = ""
    """How dates are written in a file without types; "" is ISO 8601."""
    null_words: tuple[str, ...] = field(default=(), compare=False)
    """The words of a file that read as NULL, for messages alone."""

    def __post_init__(self) -> None:
        if (self.kind is Kind.CATEGORY) != isinstance(self.domain, Categories):
            raise InvalidInput(f"column {self.name!r}: a category column declares values, any other a grid")
        for what, point in (("bounds", self.grid.lower), ("bounds", self.grid.upper), ("centre", self.grid.centre)):
            if point is not None and abs(point) > LIMIT:
                raise InvalidInput(
                    f"column {self.name!r}: {what} must lie within 2^62 steps of 0, which is as far as values are "
                    "told apart: declare a larger step"
                )

    @property
    def grid(self) -> Domain:
        """The grid of the column; the indices of its values, for a category."""
        return self.domain.grid

    @property
    def holds_truth(self) -> bool:
        """Whether it is a condition by itself: of 0 and 1, as declared booleans are, or the categories true and false.

        >>> Column("working", Kind.INTEGER, Domain(lower=0, upper=1)).holds_truth
        True
        """
        if isinstance(self.domain, Categories):
            return set(self.domain.values) <= {"true", "false"}
        low, high = self.domain.lower, self.domain.upper
        whole = self.kind is Kind.INTEGER and self.domain.step == 1
        return whole and low is not None and high is not None and 0 <= low <= high <= 1


def find_kind(statistic: Statistic, column: Column | None, fineness: int) -> str:
    """The type of a statistic's answers: integer, number, date, timestamp or category."""
    if statistic.selects:
        return "category"
    if column is None or statistic.degree == 0:
        return "integer"
    if column.kind is Kind.TIMESTAMP or (column.kind is Kind.DATE and statistic.fractional):
        return "timestamp"
    if column.kind is Kind.DATE:
        return "date"
    return "integer" if statistic.answer_step(column.grid, fineness).denominator == 1 else "number"


@dataclass(frozen=True)
class Budget:
    """What may be spent on a data set, as its controller declares it: ε, or with concentrated accounting (ε, δ).

    >>> print(f"{float(Budget(Fraction(5), Fraction(1, 10**6)).rho):.4f}")
    0.4631
    """

    epsilon: Fraction
    delta: Fraction = Fraction(0)

    @property
    def concentrated(self) -> bool:
        """Whether the ρ of answers are added up, rather than their ε."""
        return self.delta > 0

    @property
    def rho(self) -> Fraction:
        """The greatest ρ that stands for (ε, δ)."""
        return find_largest_rho(self.epsilon, self.delta)


@dataclass(frozen=True)
class Link:
    """Columns of one table that hold keys of another: ``keys`` are columns of ``table``, one for each."""

    columns: tuple[str, ...]
    table: str
    keys: tuple[str, ...]

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Each column with the key that it holds."""
        return tuple(zip(self.columns, self.keys, strict=True))

    @property
    def written(self) -> tuple[str, str]:
        """Both sides as a controller writes them.

        >>> Link(("part", "maker"), "made", ("id", "firm")).written
        ('part, maker', 'made.id, made.firm')
        """
        return ", ".join(self.columns), ", ".join(f"{self.table}.{key}" for key in self.keys)


@dataclass(frozen=True)
class Dataset:
    """Everything public about a data set.

    ``budget`` is the declared one, which the ledger may have raised since; None where nothing is charged. ``check`` is
    the share of a question's ε that tells how far off its answers are. ``size`` is the number of records where that is
    public: under replace, once the data is open.

    With a ``unit``, columns that tell people apart, neighbours are people with all their rows, and ``size`` is the
    number of people. ``unit_word`` is what one of them is called. Nothing is asked of rows then, but of a *reduced*
    data set, which has one record for each person: see ``reductions``. ``order`` is the column that says which row of
    a person is the last. ``rows`` and ``groups`` say how many of a person's rows count, and in how many groups.
    ``unique`` says that each person has one row in it, which is checked when it is opened.

    ``tables`` are those that can be joined to it by declared ``links``: more rows of the same people, which are paid
    from its budget, and ``public`` ones. A table of these that is not public and has no unit belongs to the people
    whose the rows are that it links to (``joins``). ``covers_everyone`` says that no one of its people is without a
    row in it.
    """

    name: str
    columns: Mapping[str, Column]
    neighbours: Neighbours = Neighbours.REPLACE
    protection: Protection = field(default_factory=Protection)
    min_epsilon: Fraction = Fraction(1, 20)
    max_groups: int = 1000
    parameters: Parameters = field(default_factory=Parameters)
    version: str = ""
    budget: Budget | None = None
    check: Fraction = Fraction(0)
    size: int | None = None
    unit: tuple[str, ...] = ()
    unit_word: str = "record"
    unique: bool = False
    order: str | None = None
    rows: int | None = None
    groups: int | None = None
    reduction: Reduction | None = None
    links: tuple[Link, ...] = ()
    tables: Mapping[str, Dataset] = field(default_factory=dict)
    public: bool = False
    covers_everyone: bool = True

    @property
    def records(self) -> int:
        """How many records a person has at most in what is asked about."""
        return 1 if self.reduction is None else self.reduction.records

    @property
    def row_limit(self) -> int | None:
        """How many rows of a person count in questions about its rows; None where no limit is declared."""
        return 1 if self.unique else self.rows

    @property
    def counted(self) -> Counted:
        """The noun for one record, and how many values a person may have."""
        return Counted(self.unit_word, 1 if self.reduction is None else self.reduction.values_each)

    @property
    def promised(self) -> Protection:
        """The protection that is declared; ``protection`` is that of records, of which a person may have several."""
        declared = None if self.reduction is None else self.reduction.promised
        return self.protection if declared is None else declared

    def label_column(self, name: str) -> str:
        """What a column is called in a question; a value that people are reduced to goes by its label."""
        return name if self.reduction is None else self.reduction.labels.get(name, name)

    @property
    def has_everyone(self) -> bool:
        """Whether the data can exclude nobody from the table."""
        return self.reduction is None or self.reduction.keeps_everyone

    @property
    def concentrated(self) -> bool:
        """Whether the ρ of answers are added up, rather than their ε."""
        return self.budget is not None and self.budget.concentrated

    def __post_init__(self) -> None:
        if not self.columns:
            raise InvalidInput(f"data set {self.name!r} declares no columns")
        for name, column in self.columns.items():
            if name != column.name:
                raise InvalidInput(f"data set {self.name!r} lists the column {column.name!r} as {name!r}")

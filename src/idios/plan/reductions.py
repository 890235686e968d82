"""Reductions: few records for each person, made of all their rows. Nothing else of a data set with a unit is asked.

    rows ─ WHERE ─▶ rows of each person ─ SUM, AVG, MAX, … ─▶ one record for each person ─▶ statistics, as of any table
                                        ─ GROUP BY keys too ─▶ one in each of at most c groups
                                        ─ at most m of them ─▶ the rows that are kept
                                        ─ M even quantiles ──▶ M values, whatever the number of rows

Proposition. Let two tables differ in one person, with all their rows. Then their reduced tables differ in one record,
which is replaced, enters or leaves.
Proof. A person's record is a function of their own rows: WHERE is decided row by row, and every function here depends
on the multiset of a person's rows alone. So the records of all others stay as they are. Someone with no row that
fulfils WHERE has no record. ∎

So whatever holds of the records of a table and one change holds here of people, however many rows they have:

1. The number of people is public under replace, and the number of records of the reduced table only where nobody can
   be left out: everyone has a row (``Dataset.covers_everyone``), and WHERE holds for every row (``keeps_everyone``).
2. A reduced value lives on a public grid, which follows from that of its column, and from WHERE. No bound is known of
   a sum or of a number of rows, but that neither falls below its least term.
3. Rows without a unit belong to nobody, and are left out of everything.
4. A question may cap a value by constants, as LEAST(SUM(sales), 150): min(max(v, a), b) is a function of the person's
   rows too, and of NULL it is NULL. The constants are public, and so are bounds of its grid like declared ones.

*Several records.* Where a person has at most r records (``Reduction.records``), which are a function of their own rows,
two tables that differ in one person have reduced tables that differ in at most r records: under add-remove r of them
come or leave. Under replace everyone has r places for records, some of them empty, which are outside every selection:
r places are replaced. So what is promised to r records together is promised to a person (``protect_records``). Who has
more is limited in the engine, after WHERE, by a hash of the person and of what is limited: never by position, as then
the rows of others would decide.

1. ``groups = c``: a person's rows in each of c groups, each reduced to one record. Others of their groups are left out.
2. ``rows = m``: m rows of a person, of those that WHERE selects.
3. Quantiles of rows in which everyone counts alike: each person's rows are read as M values, the i-th of which is their
   value at rank ⌈(2i − 1)·k/2M⌉ of k. A row then has a share of 1/k in what is theirs, up to 1/M. A person has M
   values, however many rows, so that one person is M records here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, NamedTuple

from idios.core.calibration import Protection
from idios.core.domain import LIMIT, Categories, Domain, Kind
from idios.core.exact import whole
from idios.core.multiples import MAX_GROUP
from idios.core.neighbours import to_plural
from idios.declare.schema import Column, Dataset
from idios.errors import InvalidInput, QuestionRefused
from idios.expressions.diagram import Diagram, DiagramManager
from idios.expressions.predicates import ALWAYS, EVERYTHING, Among, And, Predicate, simplify
from idios.expressions.work import Work
from idios.plan.derived_values import find_possible
from idios.plan.joins import Join, join_tables

MEAN_FINENESS = 1000
"""A person's mean is read in this part of their column's step."""
MEDIAN_FINENESS = 2
"""A person's median lies on half steps, exactly."""
SPREAD_VALUES = 20
"""M: as how many values a person's rows are read where a statistic is of rows, and everyone counts alike."""
NUMBERS = (Kind.INTEGER, Kind.NUMBER, Kind.DECIMAL)
NUMBERS_AND_TIMES = (*NUMBERS, Kind.DATE, Kind.TIMESTAMP)
COUNTED = (*NUMBERS_AND_TIMES, Kind.CATEGORY)


MAX_WORD = 30


def read_unit(given: Any) -> tuple[str, ...]:
    """Check the columns that tell people apart; none where a record is all that there is of a person.

    >>> read_unit("person_id"), read_unit(["country", "number"]), read_unit(None)
    (('person_id',), ('country', 'number'), ())
    """
    if given is None:
        return ()
    listed = [given] if isinstance(given, str) else given
    if (
        not isinstance(listed, Sequence)
        or not listed
        or not all(isinstance(name, str) and name for name in listed)
        or len(set(listed)) != len(listed)
    ):
        raise InvalidInput(f"unit must be the name of a column, or a list of different names, got {given!r}")
    return tuple(listed)


def read_unit_word(given: Any, unit: tuple[str, ...]) -> str:
    """Check what a unit is called."""
    if given is None:
        return "person" if unit else "record"
    if not unit:
        raise InvalidInput("unit_word is what a unit is called: declare unit, the columns that tell them apart")
    if not isinstance(given, str) or not given.isalpha() or not given.islower() or len(given) > MAX_WORD:
        raise InvalidInput(f'unit_word must be a word in small letters, such as "household", got {given!r}')
    return given


def read_order(given: Any, of_people: bool, columns: Mapping[str, Column]) -> str | None:
    """Check the column that says which row of a person is the last."""
    if given is None:
        return None
    if not of_people:
        raise InvalidInput("order says which row of a person is the last: declare unit too")
    if given not in columns or columns[given].kind is Kind.CATEGORY:
        raise InvalidInput(f"order must be a declared column of numbers, dates or timestamps, got {given!r}")
    return str(given)


def read_limit(given: Any, name: str, unit: tuple[str, ...], people: int) -> int | None:
    """Check how many rows or groups of a person are counted at most, where so many people are protected together."""
    if given is None:
        return None
    if not unit:
        raise InvalidInput(f"{name} limits how many {name} of a person count: declare unit too")
    limit = whole(given, name)
    if limit * people > MAX_GROUP:
        together = "" if people == 1 else f", as {people:,} are protected together"
        raise InvalidInput(f"{name} must be at most {MAX_GROUP // people:,}{together}, got {limit:,}")
    return limit


class Bound(NamedTuple):
    """A constant that caps a value: its grid point, and how it is written."""

    point: int
    written: str


@dataclass(frozen=True)
class ReducedValue:
    """One function of a person's rows: of a column, or of the rows themselves (None); the question may cap it."""

    function: str
    column: str | None = None
    lower: Bound | None = None
    upper: Bound | None = None

    def cap(self, function: str, point: int, written: str) -> ReducedValue:
        """LEAST or GREATEST of the value and a constant."""
        bound = Bound(point, written)
        if function == "LEAST":
            return replace(self, lower=self.lower and min(self.lower, bound), upper=min(self.upper or bound, bound))
        return replace(self, lower=max(self.lower or bound, bound), upper=self.upper and max(self.upper, bound))

    def write_cap(self, value: str) -> str:
        """The cap in SQL, around the value."""
        value = f"LEAST({value}, {self.upper.written})" if self.upper else value
        return f"GREATEST({value}, {self.lower.written})" if self.lower else value

    @property
    def form(self) -> tuple[Any, ...]:
        """The function and its column, and its bounds where it is capped."""
        bounds = (self.lower and self.lower.written, self.upper and self.upper.written)
        return self.function, self.column, *(bounds if any(bounds) else ())

    @property
    def bounds(self) -> Domain:
        """The bounds as grid points."""
        return Domain(lower=self.lower and self.lower.point, upper=self.upper and self.upper.point)

    @property
    def name(self) -> str:
        """The value in SQL, whatever the analyst called it.

        >>> ReducedValue("COUNT").name, ReducedValue("SUM", "amount").name, ReducedValue("MAX", "*").name
        ('COUNT(*)', 'SUM(amount)', 'MAX("*")')
        """
        if self.column is None:
            return self.write_cap(f"{self.function}(*)")
        if self.function in (ROW, SPREAD):
            return self.column
        plain = re.fullmatch(r"[A-Za-z_]\w*", self.column, re.ASCII)
        quoted = self.column if plain else '"' + self.column.replace('"', '""') + '"'
        return quoted if self.function == KEY else self.write_cap(f"{self.function}({quoted})")


KEY = "KEY"
"""The value of a key, which all rows of a group have."""
ROW = "ROW"
"""The value of a row itself, where rows are kept."""
SPREAD = "SPREAD"
"""The values that stand for those of all of a person's rows."""
ROWS = ReducedValue("COUNT")
"""The number of a person's rows."""


@dataclass(frozen=True)
class Reduction:
    """Which rows of each person are read, and which functions of them.

    ``form`` is the canonical text of ``filter`` and ``named`` are the columns in it; ``keeps_everyone`` says whether
    nobody is left out, and ``base`` are the columns of the rows. ``reduce`` fills these in. ``join`` says which tables
    the rows are of, where they are not of the data set's own alone.

    By ``keys`` a person's rows are reduced in each of at most ``groups`` groups; ``crowded`` says whether anyone can be
    in more. With ``rows`` they are not reduced, and so many of them are kept. ``promised`` is what is declared of the
    protection of people. ``labels`` are what values are called in the question, for messages.
    """

    filter: Predicate
    values: tuple[ReducedValue, ...]
    form: str = ""
    named: tuple[str, ...] = ()
    keeps_everyone: bool = False
    base: Mapping[str, Column] | None = None
    join: Join | None = None
    keys: tuple[str, ...] = ()
    groups: int = 1
    crowded: bool = False
    rows: int | None = None
    promised: Protection | None = None
    labels: Mapping[str, str] = field(default_factory=dict, compare=False)

    @property
    def spread(self) -> bool:
        """Whether each person's rows are read as a fixed number of values."""
        return any(value.function == SPREAD for value in self.values)

    @property
    def records(self) -> int:
        """How many records a person has at most."""
        return self.rows or self.groups * self.values_each

    @property
    def values_each(self) -> int:
        """How many values stand for one person, and group of theirs."""
        return SPREAD_VALUES if self.spread else 1

    def count_apart(self, grouped: Iterable[str]) -> int:
        """Over how many cells a person's records are spread evenly, in a question grouped by these columns."""
        named = {value.column for value in self.values if value.function == KEY and value.name in set(grouped)}
        return self.groups if set(self.keys) <= named else 1

    def find(self, name: str) -> ReducedValue:
        """The value that a column of the reduced data set holds."""
        return next(value for value in self.values if value.name == name)


def reduce(dataset: Dataset, reduction: Reduction, work: Work) -> Dataset:
    """The data set that has one record for each person."""
    if reduction.join is not None:
        dataset = join_tables(dataset, reduction.join)
    selected = DiagramManager(dataset.columns, work).build(reduction.filter)
    if selected.never:
        raise QuestionRefused("no row can ever fulfil WHERE, given the declared columns: there is nothing to ask")
    always = [ROWS if reduction.rows is None else ReducedValue(ROW, next(iter(dataset.columns)))]
    values = tuple(dict.fromkeys([*([] if reduction.spread else always), *reduction.values]))
    limited = bool((reduction.rows or 1) > 1 or reduction.keys)  # everyone has one row, where one counts
    possible = _count_groups(selected, [dataset.columns[key] for key in reduction.keys])
    made = replace(
        reduction,
        groups=min(reduction.groups, possible),
        crowded=possible > reduction.groups,
        filter=ALWAYS if selected.always else simplify(reduction.filter, dataset.columns, work),
        values=values,
        form=selected.text,
        named=tuple(selected.columns),
        keeps_everyone=selected.always and dataset.covers_everyone and not limited,
        base=dataset.columns,
        promised=dataset.protection,
    )
    _refuse_too_many(made, dataset)
    named = {value.column for value in values if value.column is not None}
    narrowed = {name: _narrow(dataset.columns[name], selected) for name in sorted(named)}
    return replace(
        dataset,
        columns=make_columns(replace(dataset, columns=dict(dataset.columns) | narrowed), values),
        size=dataset.size * made.records if made.keeps_everyone and dataset.size is not None else None,
        reduction=made,
        protection=dataset.protection.protect_records(made.records),
        check=dataset.check if made.records == 1 else Fraction(0),  # it would tell a number of records, not of people
    )


def limit_groups(reduction: Reduction, keys: Sequence[str], dataset: Dataset) -> Reduction:
    """A reduction of each person's rows by keys too, in as many groups as are declared.

    Rows without a key are in no group, and take the place of none.
    """
    if not keys:
        return reduction
    if dataset.groups is None:
        raise AssertionError(f"{dataset.name} declares no groups")
    chosen = tuple(sorted(set(keys)))  # so that their order is no other question
    known = (Among(key, EVERYTHING) for key in chosen)
    return replace(reduction, filter=And((reduction.filter, *known)), keys=chosen, groups=dataset.groups)


def _count_groups(selected: Diagram, keys: Sequence[Column]) -> int:
    """In how many groups the rows of one person can be, by the declared values and by WHERE."""
    groups = 1
    for key in keys:
        low, high = int(key.grid.low), int(key.grid.high)
        points, _ = find_possible(selected, key.name)
        groups *= sum(
            (high if last is None else last) - (low if first is None else first) + 1 for first, last in points
        )
    return groups


def _refuse_too_many(reduction: Reduction, dataset: Dataset) -> None:
    """Refuse what takes more records of people who are protected together than can be protected."""
    people, each = dataset.protection.group, reduction.records
    if people * each > MAX_GROUP:
        several = f"{people:,} {to_plural(dataset.unit_word)} together have" if people > 1 else "that is"
        raise QuestionRefused(
            f"a {dataset.unit_word} counts here with up to {each:,} values, and {several} more than the "
            f"{MAX_GROUP:,} that can be protected together: reduce the rows of each {dataset.unit_word} to one value, "
            "or to fewer groups"
        )


def _narrow(column: Column, selected: Diagram) -> Column:
    """The column, narrowed to the values that WHERE allows."""
    points, nullable = find_possible(selected, column.name)
    if not points:
        return column
    if isinstance(column.domain, Categories):
        return replace(column, nullable=nullable)
    low, high = points[0][0], points[-1][1]
    # what lies beyond the ends of the grid reads as the ends, also where a filter selects it
    low, high = low if low is None else min(low, LIMIT), high if high is None else max(high, -LIMIT)
    domain = column.domain.narrowed(low, high)
    return column if domain is None else replace(column, domain=domain, nullable=nullable)


def make_columns(dataset: Dataset, values: Iterable[ReducedValue]) -> dict[str, Column]:
    """The columns of a reduced data set, by their canonical names."""
    return {value.name: _make_column(value, dataset.columns) for value in values}


def _make_column(value: ReducedValue, columns: Mapping[str, Column]) -> Column:
    if value.column is None:
        made = Column(value.name, Kind.INTEGER, Domain(lower=1), nullable=False)
    else:
        function = FUNCTIONS.get(value.function) or SEVERAL[value.function]
        made = function.make(value.name, columns[value.column])
    if not (value.lower or value.upper):
        return made
    grid, bounds = made.grid, value.bounds
    lower = bounds.lower if grid.lower is None else bounds.clamp(grid.lower)
    upper = bounds.upper if grid.upper is None else bounds.clamp(grid.upper)
    return replace(made, domain=replace(grid, lower=lower, upper=upper))


@dataclass(frozen=True)
class ReducingFunction:
    """A function of a person's rows, for columns of some kinds; ``words`` say it of a ``{column}``."""

    kinds: tuple[Kind, ...]
    make: Callable[[str, Column], Column]
    words: str


def _count(name: str, column: Column) -> Column:
    return Column(name, Kind.INTEGER, Domain(lower=0 if column.nullable else 1), nullable=False)


def _sum(name: str, column: Column) -> Column:
    """What is no less than 0 adds up to no less than any part of it, and a person has one part at least."""
    lower, upper = column.grid.lower, column.grid.upper
    domain = Domain(
        column.grid.step,
        lower if lower is not None and lower >= 0 else None,
        upper if upper is not None and upper <= 0 else None,
        column.grid.centre,
    )
    return Column(name, column.kind, domain, column.nullable)


def _finer(fineness: int) -> Callable[[str, Column], Column]:
    """A value between those of the column, in a part of its step."""

    def scale(point: int | None) -> int | None:
        return None if point is None else max(-LIMIT, min(LIMIT, point * fineness))

    def make(name: str, column: Column) -> Column:
        grid = column.grid
        domain = Domain(grid.step / fineness, scale(grid.lower), scale(grid.upper), scale(grid.centre) or 0)
        return Column(name, Kind.NUMBER, domain, column.nullable)

    return make


def _same(name: str, column: Column) -> Column:
    return Column(name, column.kind, column.domain, column.nullable)


FUNCTIONS: Mapping[str, ReducingFunction] = {
    "COUNT": ReducingFunction(COUNTED, _count, "number of known {column}"),
    "SUM": ReducingFunction(NUMBERS, _sum, "sum of {column}"),
    "AVG": ReducingFunction(NUMBERS, _finer(MEAN_FINENESS), "mean of {column}"),
    "MIN": ReducingFunction(COUNTED, _same, "least {column}"),
    "MAX": ReducingFunction(COUNTED, _same, "greatest {column}"),
    "MEDIAN": ReducingFunction(NUMBERS, _finer(MEDIAN_FINENESS), "median of {column}"),
    "LAST": ReducingFunction(COUNTED, _same, "last {column}"),
}
"""By its name in SQL. Each has one value for each multiset of rows:

COUNT(*), COUNT(x), SUM, MIN, MAX  as SQL has them. NULL is left out, and a person with nothing else has NULL.
AVG      ⌊1000·sum/count + ½⌋ thousandths of a step.
MEDIAN   the two middle values together, in half steps; the middle one twice.
LAST     the value of the row with the greatest ``Dataset.order``, of those that have a value; where several have that,
         the greatest value. A row without an order comes before all that have one.

A category is the place of its value among the declared ones, and so has their order.
"""


SEVERAL: Mapping[str, ReducingFunction] = {
    KEY: ReducingFunction((Kind.CATEGORY,), _same, "{column}"),
    ROW: ReducingFunction(COUNTED, _same, "{column}"),
    SPREAD: ReducingFunction(NUMBERS_AND_TIMES, _same, "{column}"),
}
"""What is a person's where they have several records; nobody writes it."""


def describe_value(function: str, column: str | None, lower: str | None = None, upper: str | None = None) -> str:
    """A person's value in words.

    >>> describe_value("SUM", "amount", None, "150"), describe_value("COUNT", None)
    ('sum of amount (values above 150 count as 150)', 'number of rows')
    """
    known = FUNCTIONS.get(function) or SEVERAL.get(function)
    words = known.words if known else f"{function} of {{column}}"
    caps = [f"values {side} {end} count as {end}" for side, end in (("below", lower), ("above", upper)) if end]
    capped = f" ({', '.join(caps)})".replace("'", "") if caps else ""
    return ("number of rows" if column is None else words.format(column=column)) + capped


def read_truth(function: str, column: Column) -> str:
    """MAX or MIN, whichever BOOL_OR or BOOL_AND is of a column of truth, by the order of its values."""
    rising = not isinstance(column.domain, Categories) or column.domain.values[-1] == "true"
    return "MAX" if (function == "BOOL_OR") == rising else "MIN"

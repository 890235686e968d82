"""What each level of protection, and each DP baseline, would cost on a controller's own data.

Everything here is computed from the true data without any noise, so it is for the controller's eyes: neither the
values nor the errors may reach an analyst. Nothing is charged, because nothing is released.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from os.path import isfile  # Path.is_file fails where a text is too long for a name
from pathlib import Path
from typing import Any

import numpy as np

from idios.audit import CLIPPINGS, GROUP, WORSE, Expectation, average_expectations, expect_answer, list_levels
from idios.core import statistics as registry
from idios.core.calibration import Level, Protection, calibrate, choose
from idios.core.domain import LIMIT, Categories, Domain, Kind, count_day, default_step
from idios.core.exact import Number, positive, text
from idios.core.multiples import declare_multiples, describe_multiples
from idios.core.neighbours import Neighbours
from idios.core.sampling import SeededSource
from idios.core.statistics import (
    InterquartileRange,
    KthLargest,
    KthSmallest,
    Maximum,
    Median,
    Quantile,
    Statistic,
    Sum,
    TrimmedMean,
    Variance,
    WinsorizedMean,
)
from idios.data.arrays import NumberColumn, read_numbers, to_grid
from idios.data.backend import describe_source, open_source
from idios.data.engines.sql_backend import SqlBackend
from idios.data.formats.csv_proposal import propose_format
from idios.data.formats.files import is_csv_file
from idios.data.sql.grid_sql import with_sources
from idios.datasets import DatasetConfig
from idios.declare.schema import Column, Dataset
from idios.errors import InvalidInput, SourceError, Unanswerable
from idios.evaluation.document import Figure, Panel, Section, Series, Table, format_cell, make_jsonable
from idios.evaluation.noises import Admissible, paper_pair, tight_pair
from idios.evaluation.rivals import POSITIVE, list_rivals, measure_answers
from idios.evaluation.smooth import Floats, maximum_smooth_sensitivity, median_smooth_sensitivity

# The standard-DP mechanisms that a comparison sets beside Idios' own levels: expected errors, in floats.
#
# All are for replace, a column with bounds [L, U] and a public number of records n.
#
#   Laplace at the global sensitivity   k-th, IQR, sum: U − L            quantile between two ranks, at r: max(r, 1 − r)
#                                       trimmed mean: (U − L)/(n − 2k)   of that, so (U − L)/2 for the median of even n
#                                       variance: (U − L)²·(n − 1)/n²    winsorized mean: (k + 1)·(U − L)/n
#   smooth sensitivity, γ = 3           median, maximum
#   exponential mechanism               median


@dataclass(frozen=True)
class Baseline:
    """One mechanism: what it is called, and E|error| for values, bounds and ε."""

    name: str
    style: str
    error: Callable[[Floats, float, float, float], float]


def list_baselines(statistic: Statistic) -> tuple[Baseline, ...]:
    """List the mechanisms that exist for a statistic; none for counts, whose levels all are the DP mechanism."""
    baselines = []
    if _global_sensitivity(statistic, 100, 1.0) is not None:

        def laplace(values: Floats, lower: float, upper: float, epsilon: float) -> float:
            return (_global_sensitivity(statistic, len(values), upper - lower) or 0.0) / epsilon

        baselines.append(Baseline("DP, Laplace at the global sensitivity", "global", laplace))
    smooth = {Median: median_smooth_sensitivity, Maximum: maximum_smooth_sensitivity}.get(type(statistic))
    if smooth is not None:
        for words, style, pair in (("the paper's", "smooth", paper_pair), ("tight", "tight", tight_pair)):

            def heavy(
                values: Floats,
                lower: float,
                upper: float,
                epsilon: float,
                pair: Callable[[float, float], tuple[float, float]] = pair,
            ) -> float:
                alpha, beta = pair(3, epsilon)
                return smooth(values, lower, upper, beta) / alpha * Admissible(3).expected_absolute

            baselines.append(Baseline(f"DP, smooth sensitivity γ = 3 ({words} pair)", style, heavy))
    if isinstance(statistic, Median):
        baselines.append(Baseline("DP, exponential mechanism", "exponential", exponential_median_error))
    return tuple(baselines)


def exponential_median_error(values: Floats, lower: float, upper: float, epsilon: float) -> float:
    """E|t − median| for t drawn from [L, U] with density ∝ e^(−(ε/2)·|rank(t) − n/2|).

    >>> round(exponential_median_error(np.array([0.0, 1.0]), 0.0, 1.0, epsilon=1.0), 3)  # uniform between the two
    0.25
    """
    knots = np.concatenate([[lower], np.sort(values), [upper]])
    middle = float(np.median(values))
    low, high = knots[:-1], knots[1:]
    weights = np.exp(-epsilon / 2 * np.abs(np.arange(len(low)) - len(values) / 2))
    inside = (low < middle) & (middle < high)
    apart = np.where(inside, (middle - low) ** 2 + (high - middle) ** 2, (high - low) * np.abs(low + high - 2 * middle))
    total = float(weights @ (high - low))
    # where all values are the bound there is no interval to draw from, and nothing else to answer
    return float(weights @ apart) / 2 / total if total else 0.0


def _global_sensitivity(statistic: Statistic, n: int, width: float) -> float | None:
    """The greatest change by one replaced record over all data sets of n records; None where none is listed."""
    if isinstance(statistic, KthLargest | KthSmallest | InterquartileRange | Sum):
        return width
    if isinstance(statistic, Quantile):
        # (1−r)·x_k + r·x_{k+1} moves by (1−r)·(x_{k+1} − x_k) + r·(x_{k+2} − x_{k+1}) at most
        numerator, parts = statistic.position(n)
        rest = numerator % parts / parts
        return width * max(rest, 1 - rest)
    if isinstance(statistic, TrimmedMean):
        return width / (n - 2 * math.floor(statistic.p * n))
    if isinstance(statistic, WinsorizedMean):
        return width * (math.floor(statistic.p * n) + 1) / n
    if isinstance(statistic, Variance):
        return width**2 * (n - 1) / n**2
    return None


DEFAULT = ("median", "kth_largest 2", "trimmed_mean 0.05", "iqr", "mean", "maximum")
"""The statistics that are compared unless others are named."""
DRAWS = 2_000
"""How often a mechanism that is simulated is asked."""
LIKELY = 0.5
"""A mechanism that refuses more often than this has no error worth naming."""
RARE = 1e-6
"""A refusal less likely than this is not worth a word."""
EYES = "For the controller's eyes: computed from the true data, nothing here is protected and nothing was charged."


@dataclass(frozen=True)
class ComparisonRow:
    """One statistic by one mechanism; ``error`` is E|answer − value|, None if there is no answer, or infinite."""

    statistic: str
    value: float | None
    mechanism: str
    promise: str
    error: float | None
    refusal: float = 0.0
    note: str = ""
    style: str = "local"

    @property
    def relative(self) -> float | None:
        """The error as a share of the value."""
        return None if self.error is None or not self.value else self.error / abs(self.value)


@dataclass(frozen=True)
class Comparison:
    """All rows, with what they were computed for."""

    rows: tuple[ComparisonRow, ...]
    size: int
    missing: int
    epsilon: str
    bounds: tuple[str, str] | None
    neighbours: str = Neighbours.REPLACE.value

    def __iter__(self) -> Iterator[ComparisonRow]:
        return iter(self.rows)

    def frame(self) -> Any:
        """The rows as a pandas data frame."""
        try:
            import pandas as pd
        except ImportError as error:
            raise InvalidInput("a data frame needs pandas, which is not installed: use .rows") from error
        return pd.DataFrame([_row_to_dict(row) for row in self.rows])

    def to_dict(self) -> dict[str, Any]:
        """Everything, fit for JSON."""
        facts = {"size": self.size, "missing": self.missing, "epsilon": self.epsilon, "bounds": self.bounds}
        facts["neighbours"] = self.neighbours
        content: dict[str, Any] = make_jsonable(
            {"note": EYES, **facts, "rows": [_row_to_dict(row) for row in self.rows]}
        )
        return content


def compare(
    values: Any,
    *,
    epsilon: Number = 1,
    statistics: Sequence[str] = DEFAULT,
    step: Number | None = None,
    bounds: Sequence[Number | None] | None = None,
    group: object = GROUP,
    nullable: bool | None = None,
) -> Comparison:
    """Expected errors of chosen statistics of a column, at each level and of the DP baselines.

    ``group`` is what a data set declares: a size, the multiples of ε, or a size with its growth.

    >>> comparison = compare([20 + i % 50 for i in range(1001)], statistics=["median"], nullable=False)
    >>> [row.mechanism for row in comparison][:3]
    ['individual', 'group of 5', 'differential']
    >>> 0.9 < comparison.rows[0].error <= 1  # a floor of one step
    True
    """
    column = read_numbers(values, step=step, bounds=bounds, nullable=nullable)
    return compare_column(column, statistics, epsilon, group)


def compare_frame(values: Any, **options: Any) -> Any:
    """``compare`` as a pandas data frame."""
    return compare(values, **options).frame()


def compare_column(
    column: NumberColumn,
    statistics: Sequence[str],
    epsilon: Number,
    group: object = None,
    declared: Dataset | None = None,
) -> Comparison:
    """``compare`` for a column that is read already, with what is ``declared`` of neighbours and protection."""
    spent = positive(epsilon, "epsilon")
    if not len(column.raw):
        raise InvalidInput("the column has no values to compare on")
    domain = column.domain
    notion, protection = Neighbours.REPLACE, Protection()
    if declared is not None:
        notion, protection = declared.neighbours, declared.protection
    if group is None:
        group = protection.multiples if protection.level is Level.GROUP else GROUP
    levels = _list_levels(group, protection)
    rows = []
    for written in statistics:
        statistic = parse_statistic(written)
        label = " ".join(written.replace(":", " ").split())
        bounded = _place_on_grid(column, domain)
        value = _compute_value(statistic, bounded)
        own = [
            replace(
                ComparisonRow(label, value, level.name, level.promise, None, style=level.style),
                **_compute_level(statistic, bounded, level.protection, spent, notion),
            )
            for level in levels
        ]
        rows += [replace(row, note=WORSE) if _is_worse(row, own[-1]) else row for row in own]
        rows += _compute_baselines(statistic, label, value, bounded, float(spent))
        rows += _compute_rivals(statistic, label, value, bounded, float(spent))
    ends = (_format_bound(domain.lower, domain), _format_bound(domain.upper, domain)) if domain.bounded else None
    return Comparison(tuple(rows), len(column.raw), column.missing or 0, str(text(spent)), ends, notion.value)


@dataclass(frozen=True)
class _Level:
    """One of Idios' own levels."""

    name: str
    promise: str
    style: str
    protection: Protection


def _list_levels(group: object, protection: Protection) -> list[_Level]:
    multiples = declare_multiples(group)
    individual, grouped, differential = list_levels(protection, multiples).values()
    size = describe_multiples(multiples)
    return [
        _Level("individual", "ε-iDP", "local", individual),
        _Level(f"group of {size}", f"gDP, g = {size}", "group", grouped),
        _Level("differential", "ε-DP", "differential", differential),
    ]


def _is_worse(row: ComparisonRow, differential: ComparisonRow) -> bool:
    """Whether a weaker level costs more than the strongest."""
    if row.error is None or differential.error is None or row.note or differential.refusal > RARE:
        return False
    return differential.error < row.error


def parse_statistic(written: str) -> Statistic:
    """Read a statistic as it is written: a name, and its parameter if it has one.

    >>> parse_statistic("median").name, parse_statistic("kth_largest 2"), parse_statistic("trimmed_mean 0.05").p
    ('median', KthLargest(k=2), Fraction(1, 20))
    """
    # Counts and categories are left out: every level protects them with the same noise, but for groups that are flat.
    offered = {s.function: s for s in registry.STATISTICS if s.function and s.degree and not s.selects}
    name, *arguments = written.replace(":", " ").split() or [""]
    statistic = offered.get(name)
    if statistic is not None and len(arguments) == (statistic.parameter is not None):
        return statistic.make(*arguments)
    plain = [name for name, kind in offered.items() if kind.parameter is None]
    with_parameter = [f"{name} NUMBER" for name, kind in offered.items() if kind.parameter is not None]
    raise InvalidInput(f"a statistic is one of {', '.join([*plain, *with_parameter])}; got {written!r}")


def _compute_value(statistic: Statistic, column: NumberColumn) -> float | None:
    """The true value, None where it is undefined."""
    point = statistic.envelope(column.summarise(statistic, Neighbours.REPLACE, 0), 0).value
    return None if point is None else point * float(statistic.answer_step(column.domain))


def _compute_level(
    statistic: Statistic, column: NumberColumn, protection: Protection, epsilon: Fraction, notion: Neighbours
) -> dict[str, Any]:
    """What one of Idios' own levels costs, exactly as it would answer."""
    moves = column.moves(notion)
    size = moves.size if moves.whole else None
    try:
        choice = choose(statistic, column.domain, notion, moves.whole, protection, epsilon, size=size)
    except Unanswerable as refusal:
        # the reason alone: "needs an upper bound", "cannot be answered at …"
        return {"note": str(refusal).partition(", and the column")[0].removeprefix(f"{statistic.name} ")}
    summary = column.summarise(choice.reading or statistic, notion, choice.distance)
    truth = column.summarise(statistic, notion, 0)
    source, clipping = SeededSource(CLIPPINGS), choice.clipping
    clipped = [summary]
    if clipping is not None:
        limits = [clipping.draw_limits(summary, source)[:2] for _ in range(CLIPPINGS)]
        clipped = [column.sum_clipped(pair, statistic, notion) for pair in limits]
    drawn = [
        expect_answer(calibrate(choice, statistic, one, protection), statistic, truth, protection) for one in clipped
    ]
    return _describe(average_expectations(drawn))


def _describe(expected: Expectation) -> dict[str, Any]:
    """The expected error, the probability of a refusal, and what there is to say."""
    refusal = expected.refusal
    if expected.value is None:
        return {"refusal": 1.0, "note": "undefined on so few values"}
    if expected.error is None:
        return {"refusal": 1.0, "note": "no answer: too few values for a finite envelope"}
    if refusal > LIKELY:
        return {"refusal": refusal, "note": f"refuses with probability {refusal:.3g}: too few values"}
    note = f"refuses with probability {refusal:.1g}" if refusal > RARE else ""
    return {"error": expected.error, "refusal": refusal, "note": note}


def _compute_baselines(
    statistic: Statistic, label: str, value: float | None, column: NumberColumn, epsilon: float
) -> list[ComparisonRow]:
    """The textbook mechanisms; all need bounds, and take the number of values for public."""
    rows = []
    values = np.asarray(column.raw, dtype=np.float64) * float(column.domain.step)
    low, high = (float(end * column.domain.step) for end in (column.domain.low, column.domain.high))
    for baseline in list_baselines(statistic):
        row = ComparisonRow(
            label, value, baseline.name, "ε-DP", math.inf, note="infinite: needs bounds", style=baseline.style
        )
        if column.domain.bounded:
            row = replace(row, error=baseline.error(values, low, high, epsilon), note="")
        rows.append(row)
    return rows


def _compute_rivals(
    statistic: Statistic, label: str, value: float | None, column: NumberColumn, epsilon: float
) -> list[ComparisonRow]:
    """Other people's mechanisms without bounds, simulated; the draws are seeded, so the rows are always the same."""
    rows: list[ComparisonRow] = []
    points, step = np.sort(np.asarray(column.raw, dtype=np.float64)), float(column.domain.step)
    if value is None:
        return rows
    for rival in list_rivals(statistic):
        if rival.name == POSITIVE and points[0] < 0:
            continue
        answers = rival.draw(points, epsilon, DRAWS, np.random.default_rng(DRAWS))
        error, refusal = measure_answers(answers, value / step, points)
        row = ComparisonRow(label, value, f"DP without bounds, {rival.name}", "ε-DP", None, refusal, style=rival.style)
        if refusal > LIKELY:
            rows.append(replace(row, note=f"refuses with probability {refusal:.3g}: too few values"))
        else:
            rows.append(replace(row, error=error * step, note=f"simulated, {DRAWS:,} draws"))
    return rows


def _place_on_grid(column: NumberColumn, domain: Domain) -> NumberColumn:
    """The column's grid points, held within a domain of the same step."""
    points = column.raw if column.on_grid else to_grid(column.raw, Domain(domain.step))
    if domain.lower is not None or domain.upper is not None:
        points = np.clip(points, domain.lower, domain.upper)
    return NumberColumn(points, domain, column.missing, on_grid=True)


def _format_bound(bound: int | None, domain: Domain) -> str:
    return str(text((bound or 0) * domain.step))


def _row_to_dict(row: ComparisonRow) -> dict[str, Any]:
    content = asdict(row) | {"relative_error": row.relative}
    del content["style"]
    return content


# As a section of a report.


def make_section(comparison: Comparison, column: str) -> Section:
    """The comparison as a section of a report: one table, and one panel for every statistic."""
    names = list(dict.fromkeys(row.statistic for row in comparison))
    panels = tuple(_make_panel(name, [row for row in comparison if row.statistic == name], column) for name in names)
    known = f"bounds {comparison.bounds[0]} to {comparison.bounds[1]}" if comparison.bounds else "no bounds"
    figure = Figure(
        "comparison",
        f"What each level costs on {column} (ε = {comparison.epsilon})",
        panels,
        "Expected distance between the answer and the true value. What has no answer, or an infinite error, is listed "
        "without a mark.",
    )
    rows = tuple(
        (row.statistic, row.value, row.mechanism, row.promise, row.error, format_percentage(row), row.note)
        for row in comparison
    )
    table = Table(
        "compared",
        "Expected errors",
        ("statistic", "true value", "mechanism", "promise", "expected error", "of the value", "note"),
        rows,
        f"Under {comparison.neighbours}; the baselines and mechanisms of others under replace. The DP baselines take "
        "the number of values for public, and no answer is clamped to its bounds.",
    )
    missing = f", {comparison.missing:,} missing" if comparison.missing else ""
    text = f"{EYES} {comparison.size:,} values of {column}{missing}; ε = {comparison.epsilon}, {known}."
    return Section("comparison", "Levels and baselines", text, (figure,), (table,), comparison.to_dict())


def format_percentage(row: ComparisonRow) -> str:
    """The error as a share of the value."""
    relative = row.relative
    return "" if relative is None or math.isinf(relative) else f"{format_cell(100 * relative)} %"


def _make_panel(name: str, rows: list[ComparisonRow], column: str) -> Panel:
    listed = {row.mechanism: _format_mechanism(row) for row in rows}
    series = tuple(
        Series(row.mechanism, row.style, (row.error,), (listed[row.mechanism],))
        for row in rows
        if row.error is not None and math.isfinite(row.error)
    )
    value = rows[0].value
    return Panel(
        series,
        f"expected absolute error ({column}, log scale)",
        "",
        f"{name} (true value {format_cell(value)})",
        log_x=True,
        categories=tuple(listed.values()),
    )


def _format_mechanism(row: ComparisonRow) -> str:
    if row.error is None:
        words = "refuses" if row.refusal else row.note
        return f"{row.mechanism}: {words}"
    return row.mechanism if math.isfinite(row.error) else f"{row.mechanism}: infinite"


def read_column(
    source: str,
    name: str,
    *,
    step: object = None,
    bounds: Sequence[object] | None = None,
    declared: DatasetConfig | None = None,
) -> NumberColumn:
    """The grid points of a numeric column, read by the same rules as for a question.

    A column that is ``declared`` is read as that; ``step`` and ``bounds`` replace what is declared of these. Of any
    other the type is that of the source, and it can miss values if some are missing: good enough for its owner.
    """
    given = None if declared is None else declared.dataset.columns.get(name)
    if declared is not None and given is not None:
        csv_format, alone = declared.csv_format, _declare_alone(declared.dataset, given, step, bounds)
    else:
        found = propose_format(Path(source)) if is_csv_file(source) and isfile(source) else None
        csv_format = found if declared is None else declared.csv_format
        kinds = {column: (kind, decimals) for column, kind, decimals in describe_source(source, csv_format)}
        if name not in kinds:
            listed = ", ".join(repr(column) for column in kinds)
            raise InvalidInput(f"{source!r} has no column {name!r}; it has {listed}")
        kind, decimals = kinds[name]
        if kind is Kind.CATEGORY:
            raise InvalidInput(f"the column {name!r} is text; a comparison needs numbers")
        grid = default_step(kind, decimals) if step is None else step
        domain = Domain.declare(step=grid, bounds=bounds, day=count_day(kind))
        alone = Dataset("compared", {name: Column(name, kind, domain)})
    with open_source(source, alone, csv_format=csv_format) as backend:
        if not isinstance(backend, SqlBackend):
            raise SourceError(f"{source!r} lives where its values cannot be fetched")
        held = backend.points(name)
    points, column = held.drop_null().to_numpy(), alone.columns[name]
    if len(points) and max(-int(points.min()), int(points.max())) >= LIMIT:
        raise InvalidInput(f"a value of {name!r} lies 2^62 steps from 0 or further: declare a larger step")
    can_miss = held.null_count > 0 if given is None else given.nullable
    return NumberColumn(points.astype(np.int64), column.grid, held.null_count if can_miss else None, on_grid=True)


def _declare_alone(dataset: Dataset, column: Column, step: object, bounds: Sequence[object] | None) -> Dataset:
    """A data set with one of its columns, and those that this is derived from."""
    if isinstance(column.domain, Categories):
        raise InvalidInput(f"the column {column.name!r} is declared as a category; a comparison needs numbers")
    if (dataset.unit or dataset.links) and not (dataset.unique or dataset.public):
        raise InvalidInput(
            f"people may have several rows in {dataset.name!r}, and a comparison is one of records: `idios inspect` "
            "tells what a question about people costs, and unique = true declares that each has one row"
        )
    if step is not None and column.expression is not None:
        raise InvalidInput(f"the step of {column.name!r} follows from its expression: leave out --step")
    domain = column.domain
    if step is not None or bounds is not None:
        ends = [None if end is None else end * domain.step for end in (domain.lower, domain.upper)]
        domain = Domain.declare(step=step or domain.step, bounds=bounds or ends, day=count_day(column.kind))
    sources = {name: dataset.columns[name] for name in with_sources([column.name], dataset.columns)}
    columns = sources | {column.name: replace(column, domain=domain)}
    return replace(dataset, columns=columns, order=None, links=(), tables={})

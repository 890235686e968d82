"""The paper's evaluation, run from beginning to end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from idios.core.distributions import DiscreteLaplace
from idios.core.domain import Domain
from idios.core.neighbours import Moves, Neighbours
from idios.core.statistics import Histogram, RangeCount
from idios.core.summary import Summary
from idios.evaluation.document import Figure, Panel, Section, Series, Table, make_jsonable
from idios.evaluation.errata import Erratum, compute_errata
from idios.evaluation.extremes import NAMES as EXTREME_NAMES
from idios.evaluation.extremes import Sweep, run_sweeps
from idios.evaluation.made_samples import SHAPES, make_generator
from idios.evaluation.medians import EPSILONS, SIZES, PanelMeasurement, measure_panel
from idios.evaluation.medians import NAMES as MEDIAN_NAMES
from idios.evaluation.noises import Admissible, Laplace, Staircase, Symmetric, paper_pair, tight_pair

# The sections of the reproduction's report: noise, medians, the fair fight, extremes, counts and errata.


ERROR_LABEL = "mean absolute error (data units)"
LIKELY = 0.5
"""A mechanism that refuses more often than this is not drawn as if it answered."""

CONVENTIONS = (
    "Bounds: 0 and 1 for U[0, 1]; each data set's own minimum and maximum for N(0, 1) and Exp(1), as in the paper. "
    "That is kind to every DP curve, and with bounds so chosen none of them is really DP (erratum 7). Smooth "
    "sensitivity: γ = 3 with (α, β) = (ε/12, ε/3), β being the noise's. Even n: the median is the mean of the middle "
    "two. Every point is the mean, over the same drawn data sets, of the exact expectation for each of them."
)

NOISE_EPSILON = 1.0
COVERAGE = 0.95
NOISES: tuple[tuple[str, str, Symmetric, float | None], ...] = (
    ("iDP, Laplace", "local", Laplace(1 / NOISE_EPSILON), 3.0),
    ("DP smooth, γ = 2, the paper's pair", "smooth2", Admissible(2, 1 / paper_pair(2, NOISE_EPSILON)[0]), 101.7),
    ("DP smooth, γ = 3, the paper's pair", "smooth", Admissible(3, 1 / paper_pair(3, NOISE_EPSILON)[0]), 34.2),
    ("DP smooth, γ = 2, tight pair", "tight2", Admissible(2, 1 / tight_pair(2, NOISE_EPSILON)[0]), None),
    ("DP smooth, γ = 3, tight pair", "tight", Admissible(3, 1 / tight_pair(3, NOISE_EPSILON)[0]), None),
    ("staircase", "staircase", Staircase(1, NOISE_EPSILON), None),
)
"""Name, style, noise and the half-width that the paper prints, if it does."""

RECORDS = 1000
DOMAIN = Domain(Fraction(1), 0, 999)
RANGES = ((0, 0), (0, 9), (0, 99), (0, 499), (0, 989), (0, 998), (0, 999), (1000, 1999))


def describe_noise() -> Section:
    """Describe densities and 95 % intervals, computed, beside what is printed."""
    x = np.linspace(-30, 30, 601)
    curves = tuple(
        Series(name, style, tuple(map(float, x)), tuple(map(float, noise.pdf(x))))
        for name, style, noise, _ in NOISES[:3]
    )
    halves = [(name, noise.central_interval(COVERAGE)[1], printed, noise) for name, _, noise, printed in NOISES]
    return Section(
        "noise",
        "The noise",
        "Every sensitivity is 1 and ε is 1, as in the paper. That the local and the smooth sensitivity are equal is "
        "the worst case for iDP; the noises differ all the same, because smooth sensitivity needs heavy tails.",
        (
            Figure(
                "densities",
                "Noise densities (ε = 1, sensitivities 1)",
                (
                    Panel(curves, "noise (in units of the sensitivity)", "density"),
                    Panel(
                        curves,
                        "noise (in units of the sensitivity)",
                        "density (log scale)",
                        log_y=True,
                        y_range=(1e-6, 1.0),
                    ),
                ),
                "The paper's first figure. On the left its linear scale; on the right the tails.",
                columns=2,
            ),
        ),
        (
            Table(
                "intervals",
                "95 % intervals",
                ("noise", "computed half-width", "printed", "E|noise|"),
                tuple(
                    (name, round(half, 2), printed, noise.expected_absolute) for name, half, printed, noise in halves
                ),
                "The paper prints the first three. The tight pairs are as private as the paper's and about four times "
                "narrower; a mean absolute error does not exist for γ = 2.",
            ),
        ),
        {
            name: {"half_width": half, "printed": printed, "expected_absolute": noise.expected_absolute}
            for name, half, printed, noise in halves
        },
    )


def describe_medians(measured: Sequence[PanelMeasurement]) -> Section:
    """Describe the paper's nine panels, with a simulation beside the expectations."""
    panels = tuple(
        Panel(
            tuple(
                series
                for key in ("smooth", "local")
                for series in (
                    Series(MEDIAN_NAMES[key], key, panel.epsilons, panel.errors[key]),
                    Series(f"{MEDIAN_NAMES[key]}: simulated", key, panel.epsilons, panel.simulated[key], dots=True),
                )
            ),
            "ε",
            ERROR_LABEL,
            f"{panel.shape.name}, n = {panel.n:,}",
            log_y=True,
        )
        for panel in measured
    )
    rows = tuple(
        (
            panel.shape.name,
            panel.n,
            panel.at("local", 1.0),
            panel.simulated["local"][-1],
            panel.at("smooth", 1.0),
            panel.simulated["smooth"][-1],
            panel.at("smooth", 1.0) / panel.at("local", 1.0),
        )
        for panel in measured
    )
    return Section(
        "panels",
        "The median, as in the paper",
        f"{CONVENTIONS} {measured[0].sets:,} data sets a point; markers are simulations with one draw of noise for "
        "each. The paper's axes are linear; here they are logarithmic, since a linear axis would show one curve only.",
        (
            Figure(
                "panels",
                "Mean absolute error of the median: iDP against DP with smooth sensitivity",
                panels,
                "The paper's second figure. iDP falls like 1/ε; smooth sensitivity faster, since a larger ε also "
                "smooths less.",
                columns=3,
            ),
        ),
        (
            Table(
                "panels-at-1",
                "Mean absolute error at ε = 1",
                ("records from", "n", "iDP", "simulated", "smooth γ = 3", "simulated", "ratio"),
                rows,
            ),
        ),
        {
            "data_sets": measured[0].sets,
            "epsilons": list(measured[0].epsilons),
            "conventions": CONVENTIONS,
            "panels": [
                {
                    "distribution": panel.shape.key,
                    "n": panel.n,
                    "idp": panel.errors["local"],
                    "smooth": panel.errors["smooth"],
                    "standard_errors": {"idp": panel.deviations["local"], "smooth": panel.deviations["smooth"]},
                    "simulated": {"idp": panel.simulated["local"], "smooth": panel.simulated["smooth"]},
                }
                for panel in measured
            ],
        },
    )


def describe_fair_fight(measured: Sequence[PanelMeasurement]) -> Section:
    """Describe the same panels against DP at its best, and what each level of protection costs."""
    rivals = _draw_panels(
        "fair",
        "The fair fight: iDP against DP at its best",
        measured,
        ("smooth", "tight", "exponential", "inverse", "unbounded", "local", "staircase"),
        "The same data sets. At ε = 1 the best DP medians are within a factor of 1.5 to 2.4 of iDP. The one without "
        "bounds is drawn where it answers more often than not. Smooth sensitivity with γ = 2 has no mean error.",
    )
    levels = _draw_panels(
        "levels",
        "What each level of protection costs",
        measured,
        ("bounded", "unbounded", "group10", "group5", "group2", "local"),
        "From ε-iDP over groups of 2, 5 and 10 to differential privacy. A group larger than n/2 − 1 can move the "
        "median past the data, so without bounds its curve is infinite and missing at n = 10.",
    )
    idp, rivals_of_it = ("local", "staircase"), ("inverse", "exponential", "tight", "smooth", "tight2")
    keys = (*idp, "group2", "group5", "group10", "bounded", "unbounded", *rivals_of_it)
    rows = tuple((MEDIAN_NAMES[key], *(_format_error(panel, key) for panel in measured)) for key in keys)
    refusals = tuple(
        (f"{MEDIAN_NAMES[key]}: probability of a refusal", *(panel.at(f"{key}_refusal", 1.0) for panel in measured))
        for key in ("bounded", "unbounded")
    )
    return Section(
        "fair",
        "The fair fight",
        "The paper's baseline is loose (its pair spends 0.73 of ε) and not the best one there is. Here is the same "
        "experiment with tight parameters, with mechanisms that have no heavy tails, with the one that Idios answers "
        "with at the level differential, which needs no bounds, with the least noise that ε allows, and with groups.",
        (rivals, levels),
        (
            Table(
                "fair-at-1",
                "Mean absolute error at ε = 1",
                ("mechanism", *(f"{panel.shape.name}, n = {panel.n:,}" for panel in measured)),
                (*rows, *refusals),
                "Differential privacy with a refusal: the error is that of an answer within reach of the data.",
            ),
        ),
        {
            "epsilons": list(measured[0].epsilons),
            "panels": [{"distribution": panel.shape.key, "n": panel.n, **panel.errors} for panel in measured],
        },
    )


def _format_error(panel: PanelMeasurement, key: str) -> float | str:
    likely = f"{key}_refusal" not in panel.errors or panel.at(f"{key}_refusal", 1.0) <= LIKELY
    return panel.at(key, 1.0) if likely else "refuses"


def _draw_panels(
    name: str, title: str, measured: Sequence[PanelMeasurement], keys: Sequence[str], caption: str
) -> Figure:
    panels = []
    for panel in measured:
        series = []
        for key in keys:
            y: tuple[float | None, ...] = panel.errors[key]
            if key in ("bounded", "unbounded"):
                pairs = zip(panel.errors[key], panel.errors[f"{key}_refusal"], strict=True)
                y = tuple(error if refusal <= LIKELY else None for error, refusal in pairs)
            series.append(Series(MEDIAN_NAMES[key], key, panel.epsilons, y))
        heading = f"{panel.shape.name}, n = {panel.n:,}"
        panels.append(Panel(tuple(series), "ε", ERROR_LABEL, heading, log_y=True))
    return Figure(name, title, tuple(panels), caption, columns=3)


def describe_extremes(sweeps: Sequence[Sweep]) -> Section:
    """Describe maximum against second maximum."""
    panels = tuple(
        Panel(
            tuple(Series(EXTREME_NAMES[key], key, sweep.x, errors) for key, errors in sweep.errors.items()),
            sweep.label,
            ERROR_LABEL,
            log_x=sweep.log,
            log_y=True,
        )
        for sweep in sweeps
    )
    size = next(sweep for sweep in sweeps if sweep.name == "size")
    wanted = [size.x.index(float(n)) for n in (101, 1001, 10_001)]
    rows = tuple((EXTREME_NAMES[key], *(errors[i] for i in wanted)) for key, errors in size.errors.items())
    return Section(
        "maximum",
        "Maximum against second maximum",
        "Records from N(0, 1) with public bounds, ε = 1. The maximum can jump to the bound by one record at every data "
        "set, so even local sensitivity pays for the domain. The second largest cannot: its noise is that of the gaps "
        "beside it, and no bounds are needed. It is another question, though: the distance between the two values is "
        "drawn as well. And it is the outlier that pays: a person far above the rest widens the noise of the "
        "second largest, and only the third is free of them. Nor is the advantage over differential privacy what it "
        "seems beside inverse sensitivity, the weakest mechanism for an extreme. A scan that counts the values above "
        "public thresholds (AboveThreshold; Durfee 2023) is the best one here: it is within a factor of two of iDP "
        "from a hundred records on, of any domain if its thresholds grow on both sides of 0, and an outlier hardly "
        "moves it. What is left to iDP are few records.",
        (
            Figure(
                "maximum",
                "Largest and second largest of N(0, 1): global, smooth and local calibration, and scans (ε = 1)",
                panels,
                "Left: more records. Middle: a wider domain. Right: one outlier (n = 1001, bounds ±100).",
                columns=3,
            ),
        ),
        (
            Table(
                "maximum-at-1",
                "Mean absolute error at ε = 1, bounds ±100",
                ("calibration", *(f"n = {int(size.x[i]):,}" for i in wanted)),
                rows,
            ),
        ),
        {sweep.name: {"x": sweep.x, **sweep.errors} for sweep in sweeps},
    )


def describe_counts() -> Section:
    """Describe local and global sensitivities of counts on one drawn table, and the errors that follow."""
    values = make_generator(4).integers(0, 1000, RECORDS)
    column = Moves(Neighbours.REPLACE, RECORDS)
    ranges = [(f"{first} … {last}", *_measure_range(RangeCount(first, last), values, column)) for first, last in RANGES]
    histograms = []
    for cells in (2, 10, 100):
        counts = np.bincount(values * cells // 1000, minlength=cells).tolist()
        for notion in Neighbours:
            moves, histogram = Moves(notion, RECORDS), Histogram(cells)
            local, bound = histogram.local_sensitivity(counts, moves, 1), histogram.global_sensitivity(moves)
            histograms.append((cells, str(notion), local, bound, _count_error(local, 1.0), _count_error(bound, 1.0)))
    panels = tuple(
        Panel(
            (
                Series("iDP, local sensitivity", "local", EPSILONS, tuple(_count_error(local, e) for e in EPSILONS)),
                Series(
                    "DP, global sensitivity", "global", EPSILONS, tuple(_count_error(bound, e) for e in EPSILONS), True
                ),
            ),
            "ε",
            "mean absolute error (records)",
            title,
        )
        for title, local, bound in (
            ("count of records in 0 … 99", ranges[2][2], ranges[2][3]),
            ("each cell of a histogram with 10 cells", histograms[2][2], histograms[2][3]),
        )
    )
    return Section(
        "counts",
        "Range and histogram queries",
        f"On {RECORDS:,} records drawn from 0 … 999: one record moves a count by 1 wherever it is, so calibrating to "
        "the local sensitivity is calibrating to the global one. The two curves are the same curve.",
        (
            Figure(
                "counts",
                "Counts: iDP gains nothing",
                panels,
                "Discrete Laplace noise at the local (line) and at the global sensitivity (markers).",
                columns=2,
            ),
        ),
        (
            Table(
                "ranges",
                "Range counts at ε = 1",
                ("range", "records in it", "local sensitivity", "global", "iDP error", "DP error"),
                tuple(ranges),
                "Only a range that holds the whole domain, or misses it, has sensitivity 0: at every data set, so "
                "globally too.",
            ),
            Table(
                "histograms",
                "Histograms at ε = 1 (error of each cell)",
                ("cells", "neighbours", "local sensitivity (L1)", "global", "iDP error", "DP error"),
                tuple(histograms),
                "2 under replace, where a record leaves one cell and enters another; the paper says 1.",
            ),
        ),
        {"ranges": ranges, "histograms": histograms},
    )


def _measure_range(query: RangeCount, values: object, column: Moves) -> tuple[int, int, int, float, float]:
    points = np.asarray(values)
    inside = int(((points >= query.first) & (points <= query.last)).sum())
    moves = query.moves(column, DOMAIN, inside)
    local = int(query.envelope(Summary(DOMAIN, moves, ()), 1).local_sensitivity)
    bound = int(query.global_sensitivity(DOMAIN, moves) or 0)
    return inside, local, bound, _count_error(local, 1.0), _count_error(bound, 1.0)


def _count_error(sensitivity: int, epsilon: float) -> float:
    return DiscreteLaplace(sensitivity / Fraction(str(epsilon))).expected_absolute


def describe_errata(errata: Sequence[Erratum]) -> Section:
    """Describe the errata as small tables."""
    return Section(
        "errata",
        "Errata of the paper",
        "Lines of the paper that do not run as printed, each at the smallest case that shows it. The words, the proofs "
        "and the tests are in docs/errata.md.",
        tables=tuple(erratum.to_table(i) for i, erratum in enumerate(errata, 1)),
        numbers=[
            {
                "number": i,
                "title": erratum.title,
                "case": erratum.case,
                "printed": str(erratum.printed),
                "holds": str(erratum.holds),
            }
            for i, erratum in enumerate(errata, 1)
        ],
    )


Progress = Callable[[str, float], None]


@dataclass(frozen=True)
class Effort:
    """How many data sets are drawn for every point."""

    median: int = 40_000
    extremes: int = 10_000


FULL = Effort()
QUICK = Effort(median=1_000, extremes=500)


def reproduce(effort: Effort = FULL, progress: Progress | None = None) -> tuple[Section, ...]:
    """Compute every section; ``progress`` is called with each step and the share of the work done before it."""
    tell = progress or (lambda step, share: None)
    tell("noise", 0.0)
    noise = describe_noise()
    panels = []
    jobs = [(shape, n) for shape in SHAPES for n in SIZES]
    for i, (shape, n) in enumerate(jobs):
        tell(f"median of {shape.name}, n = {n:,}", 0.05 + 0.75 * i / len(jobs))
        panels.append(measure_panel(shape, n, effort.median))
    tell("maximum", 0.8)
    sweeps = run_sweeps(effort.extremes)
    tell("counts and errata", 0.95)
    computed = (
        noise,
        describe_medians(panels),
        describe_fair_fight(panels),
        describe_extremes(sweeps),
        describe_counts(),
        describe_errata(compute_errata()),
    )
    tell("done", 1.0)
    return computed


def collect_numbers(sections: tuple[Section, ...]) -> dict[str, Any]:
    """Collect the numbers of all sections, fit for JSON."""
    return {section.name: make_jsonable(section.numbers) for section in sections}

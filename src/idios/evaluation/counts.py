"""Range and histogram queries: iDP gains nothing, because the local sensitivity is the global one."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from idios.core.distributions import DiscreteLaplace
from idios.core.domain import Domain
from idios.core.neighbours import Moves, Neighbours
from idios.core.statistics import Histogram, RangeCount
from idios.core.summary import Summary
from idios.evaluation.content import Figure, Panel, Section, Series, Table
from idios.evaluation.panels import EPSILONS
from idios.evaluation.samples import generator

RECORDS = 1000
DOMAIN = Domain(Fraction(1), 0, 999)
RANGES = ((0, 0), (0, 9), (0, 99), (0, 499), (0, 989), (0, 998), (0, 999), (1000, 1999))


def section() -> Section:
    """Local and global sensitivities of counts on one drawn table, and the errors that follow."""
    values = generator(4).integers(0, 1000, RECORDS)
    column = Moves(Neighbours.REPLACE, RECORDS)
    ranges = [(f"{first} … {last}", *_range(RangeCount(first, last), values, column)) for first, last in RANGES]
    histograms = []
    for cells in (2, 10, 100):
        counts = np.bincount(values * cells // 1000, minlength=cells).tolist()
        for notion in Neighbours:
            moves, histogram = Moves(notion, RECORDS), Histogram(cells)
            local, bound = histogram.local_sensitivity(counts, moves, 1), histogram.global_sensitivity(moves)
            histograms.append((cells, str(notion), local, bound, _error(local, 1.0), _error(bound, 1.0)))
    panels = tuple(
        Panel(
            (
                Series("iDP, local sensitivity", "local", EPSILONS, tuple(_error(local, e) for e in EPSILONS)),
                Series("DP, global sensitivity", "global", EPSILONS, tuple(_error(bound, e) for e in EPSILONS), True),
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


def _range(query: RangeCount, values: object, column: Moves) -> tuple[int, int, int, float, float]:
    points = np.asarray(values)
    inside = int(((points >= query.first) & (points <= query.last)).sum())
    moves = query.moves(column, DOMAIN, inside)
    local = int(query.envelope(Summary(DOMAIN, moves, ()), 1).local_sensitivity)
    bound = int(query.global_sensitivity(DOMAIN, moves) or 0)
    return inside, local, bound, _error(local, 1.0), _error(bound, 1.0)


def _error(sensitivity: int, epsilon: float) -> float:
    return DiscreteLaplace(sensitivity / Fraction(str(epsilon))).expected_absolute
